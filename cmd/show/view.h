/* view.h - a run as people see it while it goes: plain data, and the screen that is drawn from it.
 *
 * The client of a run fills a view from its engine (view_of_engine()) and leaves a copy in the
 * run's folder (view_put()), from which other commands read it (view_get()). Drawing is pure: a
 * view and a size become lines. Times are in ms, money in micro-dollars. */
#ifndef BURST_CMD_SHOW_VIEW_H
#define BURST_CMD_SHOW_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "core/core.h"

#define VIEW_UNKNOWN (-1)

struct view_pod {
	char name[POD_ID_MAX]; /* its id; "" while it has none */
	char provider[PROVIDER_NAME_MAX], gpu[GPU_MAX], region[REGION_MAX];
	char detail[64]; /* of its phase: "package install"; "" */
	bool spot;
	bool handed; /* gone for this run alone: another one has it */
	enum pod_phase phase;
	int image_percent; /* of its image, as its provider's log says, or VIEW_UNKNOWN */
	int64_t price_microusd_h, cost_microusd;
	int64_t done; /* segments that it has rendered */
	double rate;  /* segments a second; 0: not known */
};

enum view_finish { VIEW_FINISH_NOT_YET, VIEW_FINISH_NOW, VIEW_FINISH_OVER };

struct view {
	char job[64], run[24];
	int64_t started_ms; /* wall clock */
	int64_t age_ms;
	int64_t max_cost_microusd, max_duration_ms; /* the caps; 0: none */
	int64_t total, done, cached, failed;        /* segments; done counts cached ones, too */
	double sound_s;                             /* audio of those that are done */
	int64_t cost_microusd, total_microusd; /* so far; expected at the end, or VIEW_UNKNOWN */
	int64_t eta_ms;                        /* until the run ends, or VIEW_UNKNOWN */
	int stops; /* how often the user asked it to stop; the run may stop by itself, too */
	bool stopping;
	bool joins;              /* its outputs are joined into one track at the end */
	enum view_finish finish; /* what needs no pod: joining, the manifest */
	bool watched;    /* by another process than its client: Ctrl-C ends the watching alone */
	char doing[200]; /* what the pods wait for before there are any; "" */
	struct view_pod *pods;
	size_t pod_count;
};

void view_free(struct view *v); /* what it holds, not the view itself */

struct engine;
/* Fills *v, whose array is reused. join_ms_per_s: what joining takes for a second of sound on this
 * machine. */
void view_of_engine(struct view *v, const struct engine *e, double join_ms_per_s);

/* ---- the copy in the run's folder, for `attach` and `ps` ---- */

/* Writes it to the file PATH. What cannot be written is left out: nothing depends on it. */
void view_put(const struct view *v, const char *path);
/* False: there is no such file, or it is being written. *v is then unchanged. */
bool view_get(struct view *v, const char *path);
#define VIEW_FILE "view" /* its name in the run's folder */

/* ---- drawing ---- */

struct view_size {
	int columns, rows; /* at most so many of each are used */
	bool color;
};

/* Appends the lines to *out, each with a newline. From 40 columns and 5 rows on the total, the cost
 * and the time left are always there; what is least useful is left out first. A hundred pods become
 * groups. */
void view_draw(struct str *out, const struct view *v, struct view_size size);
/* What the run waits for, or does beside rendering: "all pods gone; joining 300 files"; "" where
 * the pods' phases say it all. */
void view_status(struct str *out, const struct view *v);
/* "186/300 (62 %), 12m of audio, ETA 1m40s, $0.03 of $1.00, about $0.06 in total": for output that
 * is no terminal. */
void view_total_line(struct str *out, const struct view *v);
/* "3.2/s", "14/min", "" for none. Returns `to`. */
char *view_rate_show(char *to, size_t room, double per_s);
/* Whole cents; below one, hundredths of a cent. Returns `to`. */
char *view_money_show(char *to, size_t room, int64_t microusd);

#endif
