/* ssh_keys.h - the two SSH keys of each attempt. */
#ifndef BURST_ENGINE_SSH_KEYS_H
#define BURST_ENGINE_SSH_KEYS_H

#include "base/err.h"

struct engine;
struct ssh_keys;

/* Makes the keys of a pod that is about to be rented, and writes them to the run's folder.
 * ERR_LOCAL. */
int keys_make(struct engine *e, int pod, struct err *err);
/* Reads the keys of a pod that an earlier client rented, unless they are here. ERR_LOCAL. */
int keys_load(struct engine *e, int pod, struct err *err);
/* Removes the keys of a pod that is gone, from memory and disk. */
void keys_drop(struct engine *e, int pod);
/* The pod's own private key is needed for the create alone: wipes it. */
void keys_forget_host(struct engine *e, int pod);
void keys_free(struct ssh_keys *k); /* accepts NULL */

/* All borrowed. After keys_make() or keys_load(); the latter reads neither the client's public line
 * nor the host's private key. */
const char *keys_client_private(const struct engine *e, int pod);
const char *keys_client_public(const struct engine *e, int pod);
const char *keys_host_private(const struct engine *e, int pod);
const char *keys_host_public(const struct engine *e, int pod);

/* Removes the key files of an attempt whose pod is gone from its run's folder. It has none: fine.
 */
void engine_drop_keys(const char *run_dir, const char *attempt);

#endif
