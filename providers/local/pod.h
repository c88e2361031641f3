/* pod.h - one pod's life: its supervisor, its first process, and how both end. */
#ifndef BURST_PROVIDERS_LOCAL_POD_H
#define BURST_PROVIDERS_LOCAL_POD_H

#include "record.h"

struct pod_plan {
	const struct local_conf *conf;
	const char *script; /* POSIX sh text */
	const json_t *env;  /* object of texts */
	const char *mount;  /* absolute: where the pod sees its volume */
};

/* Starts the supervisor of a pod whose record was just made: a process in a session of its own,
 * holding `alive`. Returns once its identity is in the record; the supervisor records what follows.
 * The caller holds the store's lock and closes its own copy of alive afterwards. ERR_LOCAL if it
 * did not start: then nothing runs. */
int pod_launch(const struct store *store, struct pod_record *record, const struct pod_plan *plan,
	       int alive, struct err *err);

/* Ends the pod and everything in it, and waits until it is gone and retired (scratch folder
 * removed). Success if it has ended already. ERR_TRANSIENT if a process of it still runs. */
int pod_release(const struct store *store, const char *id, struct err *err);

/* Settles a record whose supervisor may have ended: kills what it left, sets its end, retires it.
 * The caller holds the store's lock. A pod whose supervisor runs is not touched. */
int pod_settle(const struct store *store, const char *id, struct err *err);

#endif
