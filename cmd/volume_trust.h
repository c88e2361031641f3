/* volume_trust.h - which volumes a project's file may name. What is on a volume is code, environments and outputs, which every run
 * there can read and change; so a project has its own, and others by its user's word alone. */
#ifndef BURST_CMD_VOLUME_TRUST_H
#define BURST_CMD_VOLUME_TRUST_H

#include "launch.h"

/* 1: the provider has it; 0: it has not; -1 with *err. */
int volume_is_there(const struct engine_provider *p, const char *name, struct err *err);

/* Before a run, with its providers open: ERR_CONFIG, with what to type, where the project's file names a volume that is not the
 * project's, or would make one that is larger than max_volume_gb. Asks where there is a terminal, and remembers a yes in the ledger.
 * Providers that cannot be asked whether there is such a volume are closed with a warning while another one can. */
int volume_trust(struct launch *l, struct err *err);
/* What a run would refuse or ask of one of the open providers, for `plan` and `doctor`: ERR_CONFIG. Nothing is asked or noted. */
int volume_trust_look(struct launch *l, int provider, struct err *err);
/* `burst volume create NAME` is about to make one: ERR_CONFIG where its size is the project's word, and too large. */
int volume_trust_size(struct launch *l, const char *name, struct err *err);
/* Its user has typed the volume's name where the project is: it is the project's, too, from now on. Without a project: nothing. */
int volume_trust_note(struct launch *l, const char *provider, const char *name, struct err *err);
/* It was removed: one that is made under this name is nobody's yet. */
int volume_trust_forget(struct launch *l, const char *provider, const char *name, struct err *err);

#endif
