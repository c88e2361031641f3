/* notify.h - notifies the user how an unattended run ended: by a command, on the desktop, or at a
 * URL (`notify` of burst.cfg).
 *
 * Nothing here changes an exit status: a failure is a warning and a line in the run's log. */
#ifndef BURST_CMD_UNATTENDED_NOTIFY_H
#define BURST_CMD_UNATTENDED_NOTIFY_H

#include <jansson.h>

#include "cmd/cmd.h"

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
