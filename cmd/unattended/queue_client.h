/* queue_client.h - the processes of a queue: its runner in the background, and the commands that
 * the runner performs. */
#ifndef BURST_CMD_UNATTENDED_QUEUE_CLIENT_H
#define BURST_CMD_UNATTENDED_QUEUE_CLIENT_H

#include "cmd/cmd.h"
#include "unattended/queue.h"

/* What the runner tells the `burst run` that it starts. */
struct queued {
	char run[24]; /* the id to begin under; "": no runner started us */
};
/* Takes it out of the environment. */
void queued_read(struct queued *out);

/* Starts a runner in the background, with the log KEY.queue.log, unless there is one. */
int queue_start_runner(const struct cmd_context *ctx, const char *config, struct err *err);
/* The same, if a request is open: for commands that touch the job of the config. */
void queue_wake(const struct cmd_context *ctx, const char *config);
/* The same for the queues of all configs but this one, whose runner may have died in a reboot. */
void queue_wake_others(const struct cmd_context *ctx, const char *config);

/* Is the runner in this process; struct queue_client says how it can end. */
int queue_run(struct cmd_context *ctx, const char *config, struct err *err);

#endif
