/* unattended.h - what commands share that work without a person: a queue's processes, git's hooks,
 * and notices. */
#ifndef BURST_CMD_UNATTENDED_UNATTENDED_H
#define BURST_CMD_UNATTENDED_UNATTENDED_H

#include <jansson.h>

#include "cmd/cmd.h"

/* ---- runner.c ---- */

/* STATE/jobs/KEY.queue with this suffix. The caller frees it. */
char *queue_path(const char *state_dir, const char *config, const char *ending);
/* Tests the lock of a queue's runner without taking it. */
bool queue_has_runner(const char *state_dir, const char *config);
/* Copies the runner's note why a queue waits, and until when; 0: that is unknown. Returns false if
 * the queue does not wait. */
bool queue_wait_note(struct store *store, const char *config, char *text, size_t room,
		     int64_t *until_ms);
/* Works in this process until no request is open. ERR_BUSY: there is another runner.
 * ERR_INTERRUPTED: a signal came. ERR_LOCAL also if the ledger's file was removed or replaced:
 * requests in a new ledger then get another runner. */
int queue_run(struct cmd_context *ctx, const char *config, struct err *err);

/* Copies the id for the run that a runner passes to the `burst run` that it starts, and removes it
 * from the environment. "": no runner started this process. */
void queue_take_run_id(char run[24]);

/* Starts a background runner, with the log KEY.queue.log, unless the queue has one. */
int queue_start_runner(const struct cmd_context *ctx, const char *config, struct err *err);
/* Starts a background runner if a request is open. For commands that touch the config's job. */
void queue_wake(const struct cmd_context *ctx, const char *config);
/* queue_wake() for all other configs: a reboot may have ended their runners. */
void queue_wake_others(const struct cmd_context *ctx, const char *config);

/* Whether requests are open and no runner works on them. */
bool queue_needs_runner(const struct cmd_context *ctx, const char *config);
/* Runs a runner as a child process until the queue is empty, and passes signals on to it. Its
 * output goes to the queue's log; shown: to our stderr. Returns the runner's exit status, or -1. */
int queue_run_child(const struct cmd_context *ctx, const char *config, bool shown, struct err *err);

/* ---- queue_list.c ---- */

/* Prints the open requests of one queue (NULL: of all) and why they wait, and the newest that have
 * ended; all: also those that ended long ago. */
int queue_list(const struct cmd_context *ctx, const char *config, bool all, struct err *err);

/* ---- hook_fire.c ---- */

/* What a hook runs, `burst hook fire NAME FILE AT`: submits the commit for each job of the hook
 * that reads what the commit changes. */
int hook_fire(struct cmd_context *ctx, struct err *err);

/* ---- notify.c: tells the user how an unattended run ended (`notify` of burst.cfg) ----
 *
 * Nothing here changes an exit status: a failure is a warning and a line in the run's log. */

/* Notes mistakes in notify.on, notify.template and notify.url. */
void notify_check(const struct config *c, struct mistakes *m);
/* Called by a run's client at its end. said: its --json object. */
void notify_ended(struct cmd_context *ctx, const struct run_row *run, const json_t *said);
/* Called when another command has settled a run. run: its new row; was: its earlier status. */
void notify_settled(struct cmd_context *ctx, const struct run_row *run, enum run_status was);
/* Called when a command failed before it had a run. Notifies only without a terminal: there the
 * user reads the message. The same failure is reported again after twelve hours. */
void notify_never_began(struct cmd_context *ctx, const struct err *err);

#endif
