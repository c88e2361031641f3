/* keep_pool.c - lets an engine take over kept pods, and starts the client that keeps a run's pods.
 */
#include "keep_pool.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/err.h"
#include "base/path.h"
#include "base/program.h"
#include "net/child.h"

/* ---- the keeping client ---- */

/* In the child: starts a session of its own, which outlives the terminal and the run. */
static void become_keeper(const struct launch *l, int log)
{
	const char *argv[] = {"burst", "keep", l->run.row.id, NULL};
	sigset_t none;

	program_to_background(log);
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

/* ---- callbacks of the engine ---- */

static bool is_wanted(void *ctx, const struct pod_row *pod)
{
	const struct launch *l = ctx;

	return runs_want_pod(l->run.runs, pod);
}

static bool take_what_fits(void *ctx, const json_t *want, struct pod_row *pod)
{
	struct launch *l = ctx;

	return run_take_kept(&l->run, want, pod);
}

void keep_pool(struct launch *l)
{
	struct engine_setup *s = &l->run.setup;

	s->conf.pooled = true;
	s->conf.keep_warm_ms = l->order.keep_warm_ms;
	s->keep = start_keeper;
	s->wanted = is_wanted;
	s->take = take_what_fits;
	kept_describe(s, s->pool);
}

int keep_warm_pods(struct launch *l, int64_t planned_ms)
{
	launch_conf(l);
	keep_pool(l);
	l->run.row.planned_ms = planned_ms;
	return run_kept_pods(&l->run);
}
