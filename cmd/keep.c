/* keep.c - `burst keep`: the client in the background that keeps pods for the next run. */
#include <signal.h>

#include "cmd/launch/launch.h"

static volatile sig_atomic_t signalled; /* number of the last signal; 0: none */

static void on_signal(int number)
{
	signalled = number;
}

static bool stop_requested(void)
{
	return signalled;
}

static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = on_signal};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &act, NULL);
}

/* Holds the run's pods until another run takes them, their time is over, or a signal comes. */
static int run_keeper(struct cmd_context *ctx, struct err *err)
{
	struct launch l;

	launch_init(&l, ctx);
	catch_signals();
	int status = run_keep_pods(&l.run, ctx->args[0], stop_requested, err);
	launch_free(&l);
	if (status < 0 && err->kind == ERR_NOT_FOUND)
		return err_set(err, ERR_USAGE, "no run \"%.24s\"; `burst ledger` lists them",
			       ctx->args[0]);
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
	.run = run_keeper,
};
