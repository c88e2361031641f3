/* volume_trust.h - decides which volumes a project's file may name. Every run on a volume can read
 * and change the code, environments and outputs there. So a project may use its own volumes, and
 * others only if the user allows them. */
#ifndef BURST_CMD_LAUNCH_VOLUME_TRUST_H
#define BURST_CMD_LAUNCH_VOLUME_TRUST_H

#include "launch.h"

/* 1: the provider has this volume; 0: it has none of this name; -1 with *err. */
int volume_is_there(const struct engine_provider *p, const char *name, struct err *err);

/* Before a run; run: the one that is resumed or delivered, whose pods prove what was allowed then,
 * or NULL. ERR_CONFIG, with what to type, if the project's file names a volume that does not belong
 * to the project, or would create one larger than max_volume_gb. Asks on a terminal and keeps a yes
 * in the ledger. If a provider cannot be asked whether it has the volume, closes it with a warning
 * while another provider is left. */
int volume_trust(struct launch *l, const char *run, struct err *err);
/* For `plan` and `doctor`: ERR_CONFIG if a run would refuse, or ask, at this open provider. Asks
 * nothing, writes nothing. */
int volume_trust_check(struct launch *l, int provider, struct err *err);
/* Before `burst volume create NAME`: ERR_CONFIG if the project's file chose a size that is too
 * large. */
int volume_trust_size(struct launch *l, const char *name, struct err *err);
/* The user typed the volume's name in the project's folder: the project may use it from now on.
 * Does nothing without a project. */
int volume_trust_note(struct launch *l, const char *provider, const char *name, struct err *err);
/* The volume was removed: a new one of this name has no owner yet. */
int volume_trust_forget(struct launch *l, const char *provider, const char *name, struct err *err);

#endif
