/* follow.c - follows a run that another process drives: prints its log, and the view that its
 * client keeps in the run's folder, or without that what the ledger has. */
#include "follow.h"

#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "output.h"
#include "view_ledger.h"
#include "view_show.h"

enum { LOOK_MS = 250, FILE_MS = 1000, LEDGER_MS = 2000, LEDGER_SHARE = 10, LINE_MAX_BYTES = 4096 };

struct follower {
	struct cmd_context *ctx;
	const char *run;
	FILE *log;  /* NULL: none */
	char *file; /* of the view */
	struct view view;
	int64_t read_at; /* boot clock: when the view was read; 0: not yet */
	int64_t next_at; /* when to read it again */
};

/* ---- the log ---- */

static void print_more(struct follower *w)
{
	char line[LINE_MAX_BYTES];

	if (!w->log)
		return;
	while (fgets(line, sizeof(line), w->log))
		output_lines(stderr, line);
	clearerr(w->log);
}

/* What happened before is in the log; the view shows where the run stands. */
static void skip_earlier(struct follower *w)
{
	char line[LINE_MAX_BYTES];
	size_t lines = 0;

	while (w->log && fgets(line, sizeof(line), w->log))
		lines += strchr(line, '\n') != NULL;
	if (w->log)
		clearerr(w->log);
	if (lines && !w->ctx->quiet)
		output_line(stderr, "%zu earlier line%s: `burst logs %s`", lines,
			    lines == 1 ? "" : "s", w->run);
}

/* ---- the view ---- */

static void read_view(struct follower *w, int64_t now)
{
	if (now < w->next_at)
		return;
	if (view_get(&w->view, w->file)) {
		w->next_at = now + FILE_MS;
	} else if (view_of_ledger(&w->view, w->ctx, w->run)) {
		/* with very many segments, reading the ledger takes long */
		w->next_at = clock_boot_ms() +
			     MAX((int64_t)LEDGER_MS, LEDGER_SHARE * (clock_boot_ms() - now));
	} else {
		return;
	}
	w->read_at = now;
	w->view.watched = true;
}

/* Shows the view with the current time, between two reads. */
static void show(struct follower *w, struct view_show *to, int64_t now)
{
	struct view v = w->view;
	int64_t since = now - w->read_at;

	if (!w->read_at)
		return;
	v.age_ms += since;
	v.eta_ms = v.eta_ms < 0 ? VIEW_UNKNOWN : MAX(v.eta_ms - since, 0);
	view_show_next(to, &v, now);
}

void follow_run(struct cmd_context *ctx, const struct run_row *run)
{
	CLEANUP(free_text) char *path = run_path(&ctx->runs, run->id, "log");
	CLEANUP(file_close) FILE *log = fopen(path, "re");
	struct follower w = {.ctx = ctx,
			     .run = run->id,
			     .log = log,
			     .file = run_path(&ctx->runs, run->id, VIEW_FILE)};

	skip_earlier(&w);
	struct view_show *to = view_show_new(ctx);
	while (run_is_alive(&ctx->runs, run->id)) {
		int64_t now = clock_boot_ms();
		print_more(&w);
		read_view(&w, now);
		show(&w, to, now);
		poll(NULL, 0, LOOK_MS);
	}
	view_show_free(to);
	print_more(&w);
	view_free(&w.view);
	free(w.file);
}
