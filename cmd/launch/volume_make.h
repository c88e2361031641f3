/* volume_make.h - creates a volume, and records volumes in the ledger. */
#ifndef BURST_CMD_LAUNCH_VOLUME_MAKE_H
#define BURST_CMD_LAUNCH_VOLUME_MAKE_H

#include "launch.h"

/* Writes a provider's description of a volume to the ledger, and to *row unless it is NULL. */
void volume_remember(struct cmd_context *ctx, const char *provider, const struct volume *v,
		     struct volume_row *row);
/* Creates the volume with the config's size near most of the GPUs (NULL: anywhere), unless the
 * provider has one of this name. Waits for another client that is creating one. Returns 1 if it was
 * created, 0 if it existed, -1 with *err. The caller has checked the size (volume_trust.h). */
int volume_make(struct launch *l, const struct engine_provider *p, const char *name,
		const char *const *gpus, struct volume_row *row, struct err *err);

#endif
