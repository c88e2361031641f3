/* view.h - a view of a run in progress: plain data, and the screen drawn from it.
 *
 * The client of a run fills a view from its engine (view_of_engine()) and keeps a copy in the run's
 * folder (view_put()), from which other commands read it (view_get()). Drawing is pure: a view and
 * a size become lines. Times are in ms, money in micro-dollars. */
#ifndef BURST_CMD_SHOW_VIEW_H
#define BURST_CMD_SHOW_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "core/core.h"
#include "engine/engine.h"

#define VIEW_UNKNOWN (-1)

struct view_pod {
	char name[POD_ID_MAX]; /* its id; "" until it has one */
	char provider[PROVIDER_NAME_MAX], gpu[GPU_MAX], region[REGION_MAX];
	char detail[64]; /* of its phase: "package install"; or "" */
	bool spot;
	bool handed; /* passed on to another run */
	enum pod_phase phase;
	int image_percent; /* of its image, from its provider's log, or VIEW_UNKNOWN */
	int64_t price_microusd_h, cost_microusd;
	int64_t done; /* segments that it has rendered */
	double rate;  /* segments a second; 0: unknown */
};

enum view_finish { VIEW_FINISH_NOT_YET, VIEW_FINISH_NOW, VIEW_FINISH_OVER };

struct view {
	char job[64], run[24];
	int64_t started_ms; /* wall clock */
	int64_t age_ms;
	int64_t max_cost_microusd, max_duration_ms; /* caps; 0: none */
	int64_t total, done, cached, failed;        /* segments; done includes cached ones */
	double sound_s;                             /* audio of finished segments */
	int64_t cost_microusd, total_microusd; /* so far; expected at the end, or VIEW_UNKNOWN */
	int64_t eta_ms;                        /* until the run ends, or VIEW_UNKNOWN */
	int stops; /* how often the user asked it to stop; it may also stop by itself */
	bool stopping;
	bool joins;              /* joins its outputs into one track at the end */
	enum view_finish finish; /* steps without pods: joining, the manifest */
	bool watched; /* another process than its client shows it: Ctrl-C only ends the watching */
	char doing[200]; /* what the run waits for before it has pods; "" */
	struct view_pod *pods;
	size_t pod_count;
};

void view_free(struct view *v); /* frees its contents, not the view itself */

/* ---- from a running engine ---- */

/* Fills *v and reuses its array. slowdown: how many times longer than on an idle machine an
 * encoder takes here. */
void view_of_engine(struct view *v, const struct engine *e, double slowdown);

/* ---- the copy in the run's folder, for `attach` and `ps` ---- */

/* Writes it to the file PATH. Ignores failures: nothing depends on the copy. */
void view_put(const struct view *v, const char *path);
/* Returns false if there is no such file, or it is being written; *v is then unchanged. */
bool view_get(struct view *v, const char *path);
#define VIEW_FILE "view" /* name in the run's folder */

/* ---- drawing ---- */

struct view_size {
	int columns, rows; /* at most this many are used */
	bool color;
};

/* Appends the lines to *out, each with a newline. From 40 columns and 5 rows on, it always shows
 * the total, the cost and the time left; it leaves out the least useful first. Many pods become
 * groups. */
void view_draw(struct str *out, const struct view *v, struct view_size size);
/* "186/300 (62 %), 12m of audio, ETA 1m40s, $0.03 of $1.00, about $0.06 in total": for plain
 * output. */
void view_total_line(struct str *out, const struct view *v);

/* ---- from the ledger ---- */

/* Fills *v and reuses its array. What only the client knows (the time left, details of phases)
 * stays unknown. Returns false if the ledger has no such run or cannot be read; *v is then
 * unchanged. */
bool view_of_ledger(struct view *v, const struct cmd_context *ctx, const char *run);

/* ---- a view as it changes ---- */

struct view_show;

/* For screen.c and tests. Draws at the bottom of stderr if ctx->live, where lines of output.c go
 * above it; else prints lines with the time; nothing with ctx->quiet. ctx must outlive it. Only one
 * may exist. Once ctx->live is false, plain lines follow. */
struct view_show *view_show_new(const struct cmd_context *ctx);
/* Shows the next state of the view. now_ms: boot clock. */
void view_show_next(struct view_show *s, const struct view *v, int64_t now_ms);

/* ---- a run whose engine works here ---- */

/* Shows the view of an engine, and keeps its copy in the run's folder. */
struct progress;
struct progress *progress_new(const struct cmd_context *ctx);
/* Call for each of the engine's calls of engine_setup.progress. */
void progress_draw(struct progress *p, const struct engine *e);
void progress_free(struct progress *p);

/* ---- a run that another process drives ---- */

/* Shows the run's log and view. Returns once its client has ended, whatever the run's state. */
void follow_run(struct cmd_context *ctx, const struct run_row *run);

#endif
