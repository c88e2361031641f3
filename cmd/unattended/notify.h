/* notify.h - tells the user how an unattended run ended: by a command, on the desktop, or to a web
 * address (`notify` of burst.cfg).
 *
 * Nothing here changes an exit status: what fails is a warning and a line of the run's log. */
#ifndef BURST_CMD_UNATTENDED_NOTIFY_H
#define BURST_CMD_UNATTENDED_NOTIFY_H

#include <jansson.h>

#include "cmd/cmd.h"

/* Notes mistakes in notify.on, notify.template and notify.url. */
void notify_check(const struct config *c, struct mistakes *m);
/* The client of a run, at its end: `said` is its object of --json. */
void notify_ended(struct cmd_context *ctx, const struct run_row *run, const json_t *said);
/* Another command has settled a run, whose row it has read anew; was: its status before. */
void notify_settled(struct cmd_context *ctx, const struct run_row *run, enum run_status was);
/* A command that was to run something has failed before there was a run. Without a terminal alone:
 * there, its user reads the message. The same failure is told again after twelve hours. */
void notify_never_began(struct cmd_context *ctx, const struct err *err);

#endif
