/* queue_client.h - the processes of a queue: its runner in the background, and the commands that
 * the runner performs. */
#ifndef BURST_CMD_UNATTENDED_QUEUE_CLIENT_H
#define BURST_CMD_UNATTENDED_QUEUE_CLIENT_H

#include "cmd/cmd.h"
#include "unattended/queue.h"

/* What the runner passes to the `burst run` that it starts. */
struct queued {
	char run[24]; /* id for the run; "": no runner started this process */
};
/* Reads it and removes it from the environment. */
void queued_read(struct queued *out);

/* Starts a background runner, with the log KEY.queue.log, unless there is one. */
int queue_start_runner(const struct cmd_context *ctx, const char *config, struct err *err);
/* The same if a request is open. For commands that touch the config's job. */
void queue_wake(const struct cmd_context *ctx, const char *config);
/* The same for the queues of all other configs: a reboot may have ended their runners. */
void queue_wake_others(const struct cmd_context *ctx, const char *config);

/* Runs the runner in this process; see struct queue_client for its errors. */
int queue_run(struct cmd_context *ctx, const char *config, struct err *err);

#endif
