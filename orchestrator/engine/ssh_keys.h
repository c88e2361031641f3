/* ssh_keys.h - the two SSH keys of each attempt. */
#ifndef BURST_ENGINE_SSH_KEYS_H
#define BURST_ENGINE_SSH_KEYS_H

#include "base/err.h"

struct engine;

int keys_make(struct engine *e, int pod, struct err *err);
int keys_load(struct engine *e, int pod, struct err *err);
void keys_drop(struct engine *e, int pod);

/* The SSH keys of an attempt whose pod is gone, from its run's folder; none there is fine. */
void engine_drop_keys(const char *run_dir, const char *attempt);

#endif
