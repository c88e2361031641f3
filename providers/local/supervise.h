/* supervise.h - what a pod's supervisor does from its birth to the pod's end. */
#ifndef BURST_PROVIDERS_LOCAL_SUPERVISE_H
#define BURST_PROVIDERS_LOCAL_SUPERVISE_H

#include "pod.h"

enum { SUPERVISE_BEAT_MS = 3000 }; /* it touches `alive` at least this often */
/* =SCRATCH in the environment of a pod that is a process group; a path, since ids are unique only
 * within one state folder */
#define SUPERVISE_MARK "BURST_LOCAL_POD"

/* Boots the pod, carries its connections, ends it (SIGTERM, preemption, or the start script's own
 * exit), writes all of that into the record and retires it. stdin, stdout and stderr are /dev/null
 * and the pod's log; no other descriptor but alive is open. Returns an exit status. */
int supervise(const struct store *store, struct pod_record *record, const struct pod_plan *plan,
	      int alive);

#endif
