/* host_entry.h - entries of pods for ssh(1), and the line that includes them. */
#ifndef BURST_CMD_SSH_HOST_ENTRY_H
#define BURST_CMD_SSH_HOST_ENTRY_H

#include "cmd/cmd.h"

/* Of every pod that can be reached now: entries of those that are gone go with the old file. */
int host_entries_write(struct cmd_context *ctx, const char *path, struct err *err);
/* The user's own file of ssh takes ours in by one line at its top: below a Host it would be that
 * host's alone. */
int host_entries_include(struct cmd_context *ctx, const char *path, struct err *err);

#endif
