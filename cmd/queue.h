/* queue.h - the queue of a burst.cfg: requests in the ledger (requests.h) and one client, its
 * runner, that renders them.
 *
 * The runner holds a lock of the kernel as long as it lives. `burst submit` commits its request,
 * then starts a runner unless one has the lock. A runner gives the lock up inside a transaction
 * that sees no open request, so that no request is left without a runner. */
#ifndef BURST_CMD_QUEUE_H
#define BURST_CMD_QUEUE_H

#include <jansson.h>

#include "cmd.h"

/* What the runner tells the `burst run` that it starts. */
struct queued {
	char run[24]; /* the id to begin under; "": no runner started us */
};
/* Takes it out of the environment. */
void queued_read(struct queued *out);

/* STATE/jobs/KEY.queue with this ending; to be freed. The folder is made. */
char *queue_path(const struct cmd_context *ctx, const char *config, const char *ending);
/* ERR_BUSY: another runner has it. The lock belongs to the process, and ends with it or when *fd is
 * closed. */
int queue_take(const struct cmd_context *ctx, const char *config, int *fd, struct err *err);
/* Without touching the lock. Not in the runner itself. */
bool queue_has_runner(const struct cmd_context *ctx, const char *config);
/* Starts a runner in the background, with the log KEY.queue.log, unless there is one. */
int queue_start_runner(const struct cmd_context *ctx, const char *config, struct err *err);

/* The same, if a request is open: for commands that touch the job of the config. */
void queue_wake(const struct cmd_context *ctx, const char *config);

struct queue_reply {
	int exit_status; /* 128 + the signal where died */
	bool died;
	json_t *said; /* the object of --json; NULL: none */
};
void queue_reply_free(struct queue_reply *reply);
/* Performs a burst command that ends its output with one JSON object, and waits for it. Signals
 * that come meanwhile are passed on. */
int queue_call(const struct cmd_context *ctx, const char *config, const char *const *argv,
	       const struct queued *queued, struct queue_reply *out, struct err *err);
/* A signal has come, here or during a call: the runner is to end. Its number, or 0. */
int queue_signal(void);
/* From here on signals are noted instead of ending the process. */
void queue_catch_signals(void);

/* Why the queue waits, for `burst queue ls`; kept in the ledger. why NULL: it does not. */
int queue_note(const struct cmd_context *ctx, const char *config, const char *why, const char *text,
	       int64_t until_ms, struct err *err);
/* NULL: nothing is noted. {"why", "text", "until_ms"} */
json_t *queue_noted(const struct cmd_context *ctx, const char *config);

/* Is the runner until no request is open; the exit status. ERR_BUSY: there is another one. */
int queue_run(struct cmd_context *ctx, const char *config, struct err *err);

#endif
