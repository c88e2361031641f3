#include <signal.h>
#include <stdlib.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "launch.h"

enum {
	CLIENT_STOP_MS = 360 * 1000, /* 30 s for files, five minutes until it gives a pod up */
	SAY_MS = 3000,		     /* so long nothing is said of the waiting */
};

static long client_of(const struct cmd_context *ctx, const char *run)
{
	CLEANUP(free_text) char *path = xasprintf("%s/runs/%s/lock", ctx->state_dir, run);
	CLEANUP(str_free) struct str text = STR_INIT;
	long pid = 0;

	if (path_read(path, 256, &text, NULL) < 0 || sscanf(str_text(&text), "process %ld", &pid) != 1)
		return 0;
	return pid;
}

/* Its client is asked to stop (it releases its pods itself); if it does not, we do it. */
static int stop_client(const struct cmd_context *ctx, const char *run, struct err *err)
{
	int64_t began = clock_boot_ms();
	long pid = client_of(ctx, run);
	bool said = false;

	if (pid > 1) {
		kill((pid_t)pid, SIGTERM);
		kill((pid_t)pid, SIGCONT); /* Ctrl-Z may have put it to sleep */
	}
	while (run_is_alive(ctx, run) && clock_boot_ms() - began < CLIENT_STOP_MS) {
		if (!said && clock_boot_ms() - began >= SAY_MS) {
			log_line(LOG_NOTE, "run %s: its client (process %ld) was asked to stop; waiting for it to release its pods", run, pid);
			said = true;
		}
		poll(NULL, 0, 100);
	}
	if (run_is_alive(ctx, run))
		return err_set(err, ERR_UNRELEASED,
			       "run %s: its client (process %ld) does not end: its pods may still be billing; end it with `kill -9 %ld`, "
			       "then cancel again", run, pid, pid);
	return 0;
}

static int run_cancel(struct cmd_context *ctx, struct err *err)
{
	struct run_row row;

	if (launch_find_run(ctx, ctx->arg_count ? ctx->args[0] : NULL, &row, err) < 0)
		return -1;
	if (run_is_alive(ctx, row.id) && stop_client(ctx, row.id, err) < 0)
		return -1;
	if (store_run(ctx->store, row.id, &row, err) < 0)
		return -1;
	struct pod_row *pods = NULL;
	size_t count = 0;
	if (store_pods(ctx->store, row.id, true, &pods, &count, err) < 0)
		return -1;
	free(pods);
	if (!count) {
		if (!strcmp(row.status, "running")) {
			COPY_TEXT(row.status, "interrupted");
			row.ended_ms = clock_wall_ms();
			store_put_run(ctx->store, &row, NULL);
		}
		fprintf(stderr, "run %s: %s; nothing of it bills\n", row.id, row.status);
		return 0;
	}
	if (launch_release_run(ctx, &row, "interrupted", err) < 0)
		return -1;
	fprintf(stderr, "run %s: its %zu pod%s gone\n", row.id, count, count == 1 ? " is" : "s are");
	return 0;
}

const struct cmd cmd_cancel = {
	.name = "cancel",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "stop a run and release its pods",
	.details = "Exit status 0: all its pods are gone. 9: one could not be confirmed gone.",
	.needs = NEED_LEDGER | NEED_ACCOUNTS,
	.group = CMD_GROUP_RUNS,
	.run = run_cancel,
};
