/* pod.h - starts and ends a pod's supervisor and first process. */
#ifndef BURST_PROVIDERS_LOCAL_POD_H
#define BURST_PROVIDERS_LOCAL_POD_H

#include "record.h"

struct pod_plan {
	const struct local_conf *conf;
	const char *script; /* a POSIX shell script */
	const json_t *env;  /* object of texts */
	const char *mount;  /* absolute path of the volume in the pod */
};

/* Starts the supervisor of a new pod: a process in its own session that holds `alive`. Returns once
 * the record names it; the supervisor records the rest. The caller holds the store's lock and then
 * closes its own copy of alive. ERR_LOCAL if it did not start; nothing runs then. */
int pod_launch(const struct store *store, struct pod_record *record, const struct pod_plan *plan,
	       int alive, struct err *err);

/* Ends the pod and everything in it. Waits until its processes are gone and its scratch folder is
 * removed. Succeeds if it has ended already. ERR_TRANSIENT if one of its processes still runs. */
int pod_release(const struct store *store, const char *id, struct err *err);

/* Settles a record whose supervisor may have ended: kills remaining processes, sets the end,
 * retires the record. The caller holds the store's lock. Does nothing if the supervisor runs. */
int pod_settle(const struct store *store, const char *id, struct err *err);

#endif
