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

/* ---- how long joining takes: a fixed part, and a part for each second of sound ---- */

struct join_time {
	double fixed_ms, ms_per_s;
};

/* ms_per_s: of an idle machine. slowdown: how much slower this one is, at least 1. */
struct join_time join_time_prior(double ms_per_s, double slowdown);
/* Processes that want a processor, for each that there is: from 1 to 8. */
double join_time_slowdown(void);
double join_time_ms(const struct join_time *j, double sound_s);
/* How much of a join was done when. All zero: nothing is known yet. */
struct join_pace {
	double after_ms[32], share[32];
	unsigned looks;
};

/* What is left of a join that was expected to take expected_ms, after so long. share: how much of
 * it is done. Goes by the last seconds, since a copy becomes slower once memory is full. At the
 * start it goes by the whole join and what was expected. Notes the look in *pace. */
double join_time_left_ms(struct join_pace *pace, double expected_ms, double after_ms, double share);
/* A join of so much sound took so long. It corrects the part that most of its time was expected to
 * be: two seconds of sound tell nothing of ten hours. */
void join_time_learn(struct join_time *j, double sound_s, double ms);

/* As the ledger keeps it. Returns false for other texts; *j is then unchanged. */
bool join_time_read(struct join_time *j, const char *text);
void join_time_write(const struct join_time *j, char to[64]);

/* ---- from a running engine ---- */

/* Fills *v and reuses its array. join: of this machine. pace: of this run's join. */
void view_of_engine(struct view *v, const struct engine *e, const struct join_time *join,
		    struct join_pace *pace);

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
/* "3.2/s", "14/min", "" for none. Returns `to`. */
char *view_rate_show(char *to, size_t room, double per_s);
/* Whole cents; below one cent, hundredths of a cent. Returns `to`. */
char *view_money_show(char *to, size_t room, int64_t microusd);

/* ---- from the ledger ---- */

/* Fills *v and reuses its array. What only the client knows (the time left, details of phases)
 * stays unknown. Returns false if the ledger has no such run or cannot be read; *v is then
 * unchanged. */
bool view_of_ledger(struct view *v, const struct cmd_context *ctx, const char *run);

/* ---- lines at the bottom of a terminal, below other output ---- */

struct screen;

/* For stderr, which must be a terminal with a movable cursor. */
struct screen *screen_new(void);
/* Leaves the last lines in place. Accepts NULL. */
void screen_free(struct screen *s);
/* The usable size: one column and one row less than the terminal has, for the cursor. 80x24 if the
 * terminal reports none. */
void screen_size(int *columns, int *rows);
/* Replaces the last drawing by these lines. Each has a newline and fits screen_size(). */
void screen_draw(struct screen *s, const char *lines);
/* Hides the lines, so that other output can follow; screen_restore() draws them again below it. */
void screen_clear(struct screen *s);
void screen_restore(struct screen *s);

DEFINE_CLEANUP(screen_free, struct screen *)

/* ---- a run whose engine works here ---- */

struct progress;
struct progress *progress_new(const struct cmd_context *ctx);
void progress_draw(struct progress *p, const struct engine *e);
/* At the end: records how long joining took, for later estimates. */
void progress_learn(struct progress *p, const struct engine *e);
void progress_free(struct progress *p);

/* ---- a run that another process drives ---- */

/* Returns once the client has ended, whatever the run's state. */
void follow_run(struct cmd_context *ctx, const struct run_row *run);

#endif
