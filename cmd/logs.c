/* logs.c - `burst logs`: finds a run and prints its log, with the phases of its pods. */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/gpus.h"
#include "base/path.h"
#include "base/str.h"
#include "cmd/launch/launch.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "store/pod_cost.h"

/* ---- the timeline: a line for each moment that a pod's row in the ledger records ---- */

/* A pod's moments: its creation, the end of each phase, and its end. */
enum { MARK_CREATED = 0, MARK_PHASE = 1, MARK_FAILED = 8, MARK_GONE = 9, TIME_LEN = 32 };

struct entry {
	int64_t at_ms;
	size_t pod; /* its place in the ledger, which keeps their order */
	int mark;   /* which of the pod's moments: MARK_... */
	char *text; /* the line, without the time */
};

struct timeline {
	struct entry *entries; /* in order of time */
	size_t count, cap;
	unsigned *printed; /* of each pod: a bit for each mark that is printed already */
	size_t pods;
};

static void clear_entries(struct timeline *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->entries[i].text);
	t->count = 0;
}

static void timeline_free(struct timeline *t)
{
	clear_entries(t);
	free(t->entries);
	free(t->printed);
}

/* ---- from rows to entries ---- */

/* Adds "pod NAME: text" to the timeline, and frees text. */
static void add_entry(struct timeline *t, const struct pod_row *pod, int mark, int64_t at_ms,
		      char *text)
{
	GROW(t->entries, t->count, t->cap);
	t->entries[t->count++] =
		(struct entry){.at_ms = at_ms,
			       .pod = t->pods,
			       .mark = mark,
			       .text = xasprintf("pod %s: %s", pod_row_called(pod), text)};
	free(text);
}

static char *created_text(const struct pod_row *pod)
{
	char price[32];

	return xasprintf("requested: %s%s of %s%s%s, %s%s", gpu_called(pod->gpu),
			 pod->spot ? " spot" : "", pod->provider, pod->region[0] ? " in " : "",
			 pod->region,
			 pod->unpriced ? "no price given"
				       : money_show(price, sizeof(price), pod->price_microusd_h),
			 pod->unpriced ? "" : "/h");
}

/* The phase that ended at this time, what it took, and the pod's cost until then. */
static char *phase_text(const struct pod_row *pod, const char *phase, int64_t took_ms,
			int64_t at_ms)
{
	char took[32], cost[40];
	int64_t until = pod->released_ms > 0 ? MIN(at_ms, pod->released_ms) : at_ms;

	return xasprintf(
		"%s: %s, %s so far", phase, duration_show(took, sizeof(took), took_ms),
		cost_show(cost, sizeof(cost),
			  billed_microusd(pod->price_microusd_h, pod_row_bills_from(pod), until),
			  pod->unpriced));
}

static char *gone_text(const struct pod_row *pod, int64_t took_ms)
{
	char took[32], billed[32], cost[40], vendor[32];
	bool more = pod_row_vendor(pod) > pod_row_counted(pod, pod->gone_ms);

	return xasprintf(
		"release: %s; gone, %s billed, %s%s%s", duration_show(took, sizeof(took), took_ms),
		duration_show(billed, sizeof(billed), pod_row_billed_ms(pod, pod->gone_ms)),
		cost_show(cost, sizeof(cost), pod_row_counted(pod, pod->gone_ms), pod->unpriced),
		more ? "; by its vendor " : "",
		more ? money_show(vendor, sizeof(vendor), pod_row_vendor(pod)) : "");
}

/* Adds the end of each phase that the pod has reached, and the pod's own end. */
static void add_phases(struct timeline *t, const struct pod_row *pod)
{
	const struct {
		enum phase phase;
		int64_t at_ms;
	} marks[] = {{PHASE_QUEUE, pod->running_ms},     {PHASE_BOOT, pod->reached_ms},
		     {PHASE_CONNECT, pod->connected_ms}, {PHASE_SYNC, pod->synced_ms},
		     {PHASE_LOAD, pod->ready_ms},        {PHASE_COMPUTE, pod->worked_ms},
		     {PHASE_FETCH, pod->safe_ms}};
	int64_t before = pod->create_ms;

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		if (marks[i].at_ms < before)
			continue; /* not reached, or out of order */
		add_entry(t, pod, MARK_PHASE + (int)i, marks[i].at_ms,
			  phase_text(pod, phase_name(marks[i].phase), marks[i].at_ms - before,
				     marks[i].at_ms));
		before = marks[i].at_ms;
	}
	if (pod->gone_ms > 0)
		add_entry(t, pod, MARK_GONE, pod->gone_ms,
			  gone_text(pod, pod->gone_ms - MAX(before, pod->release_ms)));
}

static void add_pod(struct timeline *t, const struct pod_row *pod)
{
	if (pod->create_ms <= 0)
		return;
	add_entry(t, pod, MARK_CREATED, pod->create_ms, created_text(pod));
	if (pod->state == POD_ROW_FAILED)
		add_entry(t, pod, MARK_FAILED, MAX(pod->released_ms, pod->create_ms),
			  xasprintf("not rented%s%s", pod->error[0] ? ": " : "", pod->error));
	else
		add_phases(t, pod);
}

static int compare_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	return x->pod != y->pod ? (x->pod < y->pod ? -1 : 1) : x->mark - y->mark;
}

/* Replaces the timeline's entries by those of the current ledger; remembers what is printed. */
static int timeline_read(struct timeline *t, struct store *s, const char *run, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(s, run, false, &pods, &count, err) < 0)
		return -1;
	clear_entries(t);
	t->printed = xrealloc(t->printed, (count + 1) * sizeof(*t->printed));
	for (size_t i = t->pods; i < count; i++)
		t->printed[i] = 0;
	for (t->pods = 0; t->pods < count; t->pods++)
		add_pod(t, &pods[t->pods]);
	free(pods);
	if (t->count)
		qsort(t->entries, t->count, sizeof(*t->entries), compare_time);
	return 0;
}

/* ---- printing ---- */

/* Prints to stdout what ended by this second ("2026-11-25T17:05:48Z"; NULL: everything) and is not
 * printed yet. */
static void timeline_print(struct timeline *t, const char *until)
{
	char at[TIME_LEN];

	for (size_t i = 0; i < t->count; i++) {
		const struct entry *e = &t->entries[i];
		clock_rfc3339(at, sizeof(at), e->at_ms);
		if (until && strncmp(at, until, strlen("2026-11-25T17:05:48Z")) > 0)
			return;
		if (!(t->printed[e->pod] & 1u << e->mark))
			output_line(stdout, "%s %s", at, e->text);
		t->printed[e->pod] |= 1u << e->mark;
	}
}

/* ---- the log ---- */

#define LOOK_AGAIN_MS  200
#define LINE_MAX_BYTES 65536

struct reader {
	int fd;
	off_t at;
	struct str line; /* the unfinished line */
	struct timeline phases;
};

/* Whether the line begins with a time; the later pieces of a line that was cut do not. */
static bool has_time(const struct str *line)
{
	return line->len >= sizeof("2026-11-25T17:05:48Z") - 1 && line->s[10] == 'T' &&
	       line->s[19] == 'Z';
}

/* Prints the line that r->line holds, after what the timeline has until the line's time. */
static void print_line(struct reader *r)
{
	if (has_time(&r->line))
		timeline_print(&r->phases, str_text(&r->line));
	output_safe_line(stdout, str_text(&r->line), r->line.len);
	str_reset(&r->line);
}

/* Prints each line that these bytes complete; r->line keeps the rest. */
static void print_whole_lines(struct reader *r, const char *bytes, size_t len)
{
	while (len) {
		const char *newline = memchr(bytes, '\n', len);
		size_t n = newline ? (size_t)(newline - bytes) : len;
		str_addn(&r->line, bytes, n);
		if (newline || r->line.len > LINE_MAX_BYTES)
			print_line(r);
		n += newline != NULL;
		bytes += n;
		len -= n;
	}
}

/* Reads the ledger and the log file again, and prints what is new. path: the log. */
static int print_new_log(struct cmd_context *ctx, struct reader *r, const char *run,
			 const char *path, struct err *err)
{
	char buf[65536];

	if (timeline_read(&r->phases, ctx->store, run, err) < 0)
		return -1;
	for (;;) {
		ssize_t n = pread(r->fd, buf, sizeof(buf), r->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
		if (n == 0)
			return cmd_flush(err);
		r->at += n;
		print_whole_lines(r, buf, (size_t)n);
	}
}

static void say_client_gone(const struct run_row *run)
{
	CLEANUP(free_text) char *place = run_place(run);

	log_line(LOG_NOTE,
		 "run %s: client exited; end of log (`burst resume %s` continues the run, `burst "
		 "reap` releases its pods) (%s)",
		 run->id, run->id, place);
}

/* Sets *running: whether a client still writes the log. Says so if the client died. */
static int check_running(struct cmd_context *ctx, const char *id, bool *running, struct err *err)
{
	struct run_row run;

	if (store_run(ctx->store, id, &run, err) < 0)
		return -1;
	*running = run.status == RUN_RUNNING;
	if (*running && !run_is_alive(&ctx->runs, run.id)) {
		/* the run may have ended since its row was read */
		if (store_run(ctx->store, id, &run, err) < 0)
			return -1;
		if (run.status == RUN_RUNNING)
			say_client_gone(&run);
		*running = false;
	}
	return 0;
}

static int follow_until_end(struct cmd_context *ctx, struct reader *r, const char *id,
			    const char *path, struct err *err)
{
	for (bool running = true; running;) {
		poll(NULL, 0, LOOK_AGAIN_MS);
		if (check_running(ctx, id, &running, err) < 0 ||
		    print_new_log(ctx, r, id, path, err) < 0)
			return -1;
	}
	return 0;
}

/* Prints the table of all pods' phases below the log. */
static int print_phase_table(struct cmd_context *ctx, const char *id, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, id, false, &pods, &count, err) < 0)
		return -1;
	if (count)
		output_line(stdout, "%s", "");
	report_print_phases(stdout, pods, count, clock_wall_ms());
	free(pods);
	return 0;
}

static int show_log(struct cmd_context *ctx, const char *id, const char *path, struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reader r = {.fd = fd};

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_USAGE, "run %s has no log", id);
	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	int result = print_new_log(ctx, &r, id, path, err);
	if (result == 0 && opt_has(ctx, "follow"))
		result = follow_until_end(ctx, &r, id, path, err);
	if (r.line.len)
		print_line(&r);
	timeline_print(&r.phases, NULL);
	timeline_free(&r.phases);
	str_free(&r.line);
	return result < 0 ? -1 : print_phase_table(ctx, id, err);
}

/* ---- the command ---- */

/* Finds the run that the user named, else the one of this folder, else the newest of all: reading a
 * log changes nothing. */
static int find_run_or_newest(struct cmd_context *ctx, struct run_row *out, struct err *err)
{
	struct run_row *rows = NULL;
	struct err none = {0};
	size_t count = 0;

	if (run_find(ctx, ctx->arg_count ? ctx->args[0] : NULL, out, err) == 0)
		return 0;
	if (ctx->arg_count || err->kind != ERR_USAGE ||
	    store_runs(ctx->store, NULL, false, 1, &rows, &count, &none) < 0 || !count)
		return -1;
	*out = rows[0];
	free(rows);
	err_clear(err);
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct run_row row, part;

	if (find_run_or_newest(ctx, &row, err) < 0)
		return -1;
	part = row; /* the log of a stage's run is shown only by its id */
	if (!ctx->arg_count && part.stage[0] && !stage_find_whole(&ctx->runs, &part, &row))
		row = part;
	CLEANUP(free_text) char *path = run_path(&ctx->runs, row.id, "log");
	if (!ctx->arg_count && !ctx->quiet) {
		CLEANUP(free_text) char *place = run_place(&row);
		output_line(stderr, "run %s (%s)", row.id, place);
	}
	return show_log(ctx, row.id, path, err) < 0 ? run_add_place(&row, err) : cmd_flush(err);
}

static const struct opt opts[] = {
	{'f', "follow", NULL, "follow the log until the run ends"},
	{0},
};

const struct cmd cmd_logs = {
	.name = "logs",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "show a run's log, including its workers",
	.details = "Without RUN: the active run of this folder's burst.cfg, else the one whose "
		   "pods may still be billing, else the newest; where this folder has none, the "
		   "newest of all. Each phase of a pod is a line: what it took, and what the pod "
		   "had cost by then. The table of all phases follows.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
