/* keep.c - pods that outlive their run: kept for a while by a client of their own, and taken over
 * by the next run that can use them. */
#include "keep.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "base/path.h"
#include "detach.h"
#include "net/child.h"
#include "output.h"
#include "report.h"
#include "find_run.h"

enum {
	LOOK_MS = 100,
	FIRST_MS = 10 * 1000, /* for the pods of a run that has just ended */
};

/* ---- settings ---- */

int64_t keep_warm_ms(const struct config *config)
{
	const char *text = section_text(config_top(config), "keep_warm");
	int64_t ms = 0;

	if (text && !strcmp(text, "auto"))
		return KEEP_WARM_AUTO;
	return text && duration_parse(text, &ms, NULL) == 0 ? ms : 0;
}

/* ---- a client of their own ---- */

/* In the child: a session of its own, which outlives the terminal and the run. */
static void become_keeper(const struct launch *l, int log)
{
	const char *argv[] = {"burst", "keep", l->run.row.id, NULL};
	sigset_t none;

	detach_child(log);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	guard_leave();
	execv(child_self() ? child_self() : l->ctx->argv[0], (char **)argv);
	_exit(127);
}

static void start_keeper(void *ctx)
{
	struct launch *l = ctx;

	if (l->keeper_started)
		return;
	l->keeper_started = true;
	CLEANUP(free_text) char *path = path_join(l->run.dir, "keep.log");
	CLEANUP(fd_close) int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		become_keeper(l, log);
	if (pid < 0)
		log_line(LOG_WARN, "no pod is kept: fork: %m");
}

/* ---- taking over ---- */

/* Its keys first: a run that owns a pod can always come back to it. */
static int copy_keys(const struct cmd_context *ctx, const struct pod_row *pod, const char *to,
		     struct err *err)
{
	static const char *const kinds[] = {"key", "host"};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		CLEANUP(free_text) char *name = xasprintf("%s.%s", pod->attempt, kinds[i]);
		CLEANUP(free_text) char *from = run_path(&ctx->runs, pod->run, name);
		CLEANUP(free_text) char *path = run_path(&ctx->runs, to, name);
		CLEANUP(str_free) struct str text = STR_INIT;
		if (path_read(from, 65536, &text, err) < 0 ||
		    path_write(path, str_text(&text), text.len, 0600, err) < 0)
			return -1;
		explicit_bzero(text.s, text.len);
	}
	return 0;
}

static bool take(struct cmd_context *ctx, const char *to, const struct run_row *run, bool kept,
		 struct pod_row *pod, struct err *err)
{
	if (copy_keys(ctx, pod, to, err) == 0 &&
	    kept_take(ctx->store, to, run, kept, clock_wall_ms(), pod, err) == 0)
		return true;
	CLEANUP(free_text) char *dir = run_path(&ctx->runs, to, NULL);
	engine_drop_keys(dir, pod->attempt);
	return false;
}

/* The last that was kept first: those that fewer runs need are released the sooner. */
static int by_kept(const void *a, const void *b)
{
	int64_t x = ((const struct pod_row *)a)->kept_ms, y = ((const struct pod_row *)b)->kept_ms;

	return x > y ? -1 : x < y;
}

static bool take_what_fits(void *ctx, const json_t *want, struct pod_row *pod)
{
	struct launch *l = ctx;
	struct pod_row *pods = NULL;
	struct err err = {0};
	size_t count = 0;
	bool taken = false;

	if (store_pods(l->ctx->store, NULL, true, &pods, &count, NULL) < 0)
		return false;
	if (count)
		qsort(pods, count, sizeof(*pods), by_kept);
	for (size_t i = 0; i < count && !taken; i++) {
		if (!kept_fits(want, &pods[i], clock_wall_ms()))
			continue;
		*pod = pods[i];
		taken = take(l->ctx, l->run.row.id, NULL, false, pod, &err);
		if (!taken)
			log_line(LOG_DEBUG, "pod %s: not taken over: %s", pod_row_called(pod),
				 err.msg);
	}
	free(pods);
	return taken;
}

int keep_warm_pods(struct launch *l, int64_t planned_ms)
{
	struct engine_setup *s = &l->run.setup;
	struct pod_row *pods = NULL;
	size_t count = 0;
	int fit = 0;

	launch_conf_from_config(l);
	keep_pool(l);
	l->run.row.planned_ms = planned_ms;
	CLEANUP(json_decref)
	json_t *want =
		kept_want(s, s->conf.max_cost_microusd ? s->conf.max_cost_microusd : INT64_MAX);
	if (store_pods(l->ctx->store, NULL, true, &pods, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		fit += kept_fits(want, &pods[i], clock_wall_ms());
	free(pods);
	return fit;
}

static bool is_wanted(void *ctx, const struct pod_row *pod)
{
	struct launch *l = ctx;
	struct run_row *runs = NULL;
	size_t count = 0;
	bool wanted = false;

	if (store_runs(l->ctx->store, NULL, true, 0, &runs, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !wanted; i++) {
		CLEANUP(json_decref)
		json_t *want = jsonx_parse(runs[i].wants, strlen(runs[i].wants), NULL);
		wanted = kept_fits(want, pod, clock_wall_ms()) &&
			 run_has_client(&l->ctx->runs, runs[i].id);
	}
	free(runs);
	return wanted;
}

void keep_pool(struct launch *l)
{
	struct engine_setup *s = &l->run.setup;

	s->conf.pooled = true;
	s->conf.keep_warm_ms = keep_warm_ms(l->ctx->config);
	s->keep = start_keeper;
	s->wanted = is_wanted;
	s->take = take_what_fits;
	kept_describe(s, s->pool);
}

/* ---- `burst keep RUN`: keeps the pods that a run leaves ---- */

static volatile sig_atomic_t told_to_end;

static void on_signal(int number)
{
	told_to_end = number;
}

static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = on_signal};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &act, NULL);
}

/* How many it has taken by now; the run's row is written with the first. */
static int take_offered(struct launch *l, const char *from, int had)
{
	struct pod_row *pods = NULL;
	struct err err = {0};
	size_t count = 0;

	if (store_pods(l->ctx->store, from, true, &pods, &count, NULL) < 0)
		return had;
	for (size_t i = 0; i < count; i++) {
		if (!kept_is_offered(&pods[i], clock_wall_ms()))
			continue;
		if (take(l->ctx, l->run.row.id, had ? NULL : &l->run.row, true, &pods[i], &err)) {
			had++;
			log_line(LOG_NOTE, "pod %s: kept", pod_row_called(&pods[i]));
		} else {
			log_line(LOG_WARN, "pod %s: not kept: %s", pod_row_called(&pods[i]),
				 err.msg);
		}
	}
	free(pods);
	return had;
}

/* Until when the last of those that it still has is kept; 0: it has none. Keys of those that were
 * handed on are dropped. */
static int64_t kept_until_ms(struct launch *l)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int64_t until_ms = 0;

	if (store_pods(l->ctx->store, l->run.row.id, false, &pods, &count, NULL) < 0)
		return INT64_MAX;
	for (size_t i = 0; i < count; i++) {
		char attempt[20];
		snprintf(attempt, sizeof(attempt), "%.16s", pods[i].attempt);
		if (pods[i].handed_to[0])
			engine_drop_keys(l->run.dir, attempt);
		else if (!pod_row_over(&pods[i]))
			until_ms = MAX(until_ms, pods[i].kept_until_ms);
	}
	free(pods);
	return until_ms;
}

static void watch(struct launch *l, const char *from)
{
	int64_t began_ms = clock_boot_ms(), until_ms = 0;
	int had = 0;

	while (!told_to_end) {
		if (clock_boot_ms() - began_ms < FIRST_MS)
			had = take_offered(l, from, had);
		else if (!had)
			return;
		until_ms = had ? kept_until_ms(l) : INT64_MAX;
		if (had && (!until_ms || clock_wall_ms() >= until_ms))
			return;
		poll(NULL, 0, LOOK_MS);
	}
}

static int end(struct launch *l, struct err *err)
{
	size_t open = 0;

	if (run_open_pods(&l->ctx->runs, l->run.row.id, &open, err) < 0)
		return -1;
	if (open) { /* as of a run whose client is gone: nothing else looks after them now */
		struct run_row row = l->run.row;
		fd_close(l->run.lock);
		l->run.lock = -1;
		return run_release(&l->ctx->runs, &row, RUN_DONE, err);
	}
	run_end(&l->run.row, RUN_DONE);
	if (run_sum(&l->ctx->runs, &l->run.row, clock_wall_ms(), err) < 0)
		return -1;
	return store_put_run(l->ctx->store, &l->run.row, err);
}

static int keep(struct launch *l, const char *from, struct err *err)
{
	struct run_row of;

	if (store_run(l->ctx->store, from, &of, err) < 0)
		return -1;
	if (run_new_id(&l->ctx->runs, l->run.row.id, err) < 0)
		return -1;
	COPY_TEXT(l->run.row.job, of.job);
	COPY_TEXT(l->run.row.type, KEEP_RUN);
	COPY_TEXT(l->run.row.machine, l->run.machine);
	l->run.row.status = RUN_RUNNING;
	l->run.row.started_ms = clock_wall_ms();
	l->run.row.max_cost_microusd = of.max_cost_microusd;
	catch_signals();
	if (run_take(&l->run, RUN_CLIENT, err) < 0)
		return -1;
	watch(l, of.id);
	if (store_run(l->ctx->store, l->run.row.id, &l->run.row, NULL) < 0) {
		path_remove_tree(l->run.dir, NULL);
		return 0; /* nothing was left to keep */
	}
	return end(l, err);
}

static int run_keep(struct cmd_context *ctx, struct err *err)
{
	struct launch l;

	launch_init(&l, ctx);
	int status = keep(&l, ctx->args[0], err);
	launch_free(&l);
	return status;
}

const struct cmd cmd_keep = {
	.name = "keep",
	.args = "RUN",
	.min_args = 1,
	.max_args = 1,
	.summary = "keep the pods that a run leaves for the next one",
	.needs = NEED_LEDGER | NEED_ACCOUNTS,
	.group = CMD_GROUP_OTHER,
	.hidden = true,
	.run = run_keep,
};
