#include "runs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "engine/engine.h"
#include "report.h"

char *run_path(const struct cmd_context *ctx, const char *run, const char *name)
{
	return xasprintf("%s/runs/%s%s%s", ctx->state_dir, run, name ? "/" : "", name ? name : "");
}

bool run_is_alive(const struct cmd_context *ctx, const char *run)
{
	CLEANUP(free_text) char *path = run_path(ctx, run, "lock");
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	bool alive = flock(fd, LOCK_SH | LOCK_NB) < 0; /* shared: two that look at once take neither for a client */
	close(fd);
	return alive;
}

int run_open_pods(const struct cmd_context *ctx, const char *run, size_t *count, struct err *err)
{
	struct pod_row *pods = NULL;

	if (store_pods(ctx->store, run, true, &pods, count, err) < 0)
		return -1;
	free(pods);
	return 0;
}

/* Whoever asks an ended run how it ended (`attach && publish`) gets what its client would have said. */
void run_end(struct run_row *run, const char *status)
{
	static const struct {
		const char *status;
		int exit_status;
	} ends[] = {{"done", 0}, {"partial", 1}, {"interrupted", 128 + SIGTERM}, {"unreleased", 9}};

	COPY_TEXT(run->status, status);
	run->exit_status = 1;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (!strcmp(ends[i].status, status))
			run->exit_status = ends[i].exit_status;
	run->detached = false;
	run->ended_ms = run->ended_ms ? run->ended_ms : clock_wall_ms();
}

const char *run_ended_as(const struct cmd_context *ctx, const struct run_row *run)
{
	return run->rendered + run->cached < run->total || engine_is_unfinished(ctx->store, run->id) ? "partial" : "done";
}

/* The newest one that has pods which may bill; false: none has. */
static bool run_with_pods(struct cmd_context *ctx, struct run_row *out)
{
	struct pod_row *pods = NULL;
	struct run_row run;
	size_t count = 0;
	bool found = false;

	if (store_pods(ctx->store, NULL, true, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (store_run(ctx->store, pods[i].run, &run, NULL) < 0 || (found && run.started_ms <= out->started_ms))
			continue;
		*out = run;
		found = true;
	}
	free(pods);
	return found;
}

int run_find(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;

	if (name)
		return report_find_run(ctx->store, name, out, err);
	if (store_runs(ctx->store, NULL, true, 1, &runs, &count, err) < 0)
		return -1;
	if (!count && run_with_pods(ctx, out))
		return 0;
	if (!count && store_runs(ctx->store, NULL, false, 1, &runs, &count, err) < 0)
		return -1;
	if (count)
		*out = runs[0];
	free(runs);
	return count ? 0 : err_set(err, ERR_USAGE, "there is no run yet");
}
