/* volume_trust.h - decides which volumes a project's file may name.
 *
 * Every run on a volume can read and change the code, environments and outputs there. So a project
 * may use its own volumes, and others only if the user allows them. */
#ifndef BURST_CMD_LAUNCH_VOLUME_TRUST_H
#define BURST_CMD_LAUNCH_VOLUME_TRUST_H

#include "launch.h"

/* Returns 1 if the provider has a volume of this name, 0 if not, -1 with *err. */
int volume_is_there(const struct engine_provider *p, const char *name, struct err *err);

/* Call before a run. run: the one that is resumed or delivered, whose pods prove what was allowed
 * then; or NULL. ERR_CONFIG, with the command to type, if the project's file names a volume that
 * does not belong to the project, or would create one larger than max_volume_gb. Prompts on a
 * terminal and records a yes in the ledger. Closes a provider that cannot report its volumes, with
 * a warning, if another one is left. */
int volume_trust(struct launch *l, const char *run, struct err *err);
/* For `plan` and `doctor`: ERR_CONFIG if a run would refuse or prompt at this open provider. Never
 * prompts and writes nothing. */
int volume_trust_check(struct launch *l, int provider, struct err *err);
/* Before `burst volume create NAME`: ERR_CONFIG if the project's file chose a size that is too
 * large. */
int volume_trust_size(struct launch *l, const char *name, struct err *err);
/* Allows the project to use the volume from now on, because the user typed its name in the
 * project's folder. Does nothing without a project. */
int volume_trust_note(struct launch *l, const char *provider, const char *name, struct err *err);
/* After a removal: a new volume of this name has no owner. */
int volume_trust_forget(struct launch *l, const char *provider, const char *name, struct err *err);

#endif
