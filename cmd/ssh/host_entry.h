/* host_entry.h - writes entries of pods for ssh(1), and the line that includes them. */
#ifndef BURST_CMD_SSH_HOST_ENTRY_H
#define BURST_CMD_SSH_HOST_ENTRY_H

#include "cmd/cmd.h"

/* Writes an entry for each pod that can be reached now. The new file replaces the old one, with its
 * stale entries. */
int host_entries_write(struct cmd_context *ctx, const char *path, struct err *err);
/* Adds the include line at the top of the user's ssh config: below a Host it would apply to that
 * host only. */
int host_entries_include(struct cmd_context *ctx, const char *path, struct err *err);

#endif
