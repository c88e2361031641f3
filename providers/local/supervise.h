/* supervise.h - runs a pod's supervisor, from the pod's start to its end. */
#ifndef BURST_PROVIDERS_LOCAL_SUPERVISE_H
#define BURST_PROVIDERS_LOCAL_SUPERVISE_H

#include "pod.h"

enum { SUPERVISE_BEAT_MS = 3000 }; /* it touches `alive` at least this often */
/* =SCRATCH in the environment of a pod that is a process group: a path, since ids are unique only
 * within one state folder */
#define SUPERVISE_MARK "BURST_LOCAL_POD"

/* Boots the pod, forwards its connections, ends it (on SIGTERM, by preemption, or when the start
 * script exits), records all of that and retires it. stdin, stdout and stderr are /dev/null and the
 * pod's log; the only other open descriptor is alive. Returns an exit status. */
int supervise(const struct store *store, struct pod_record *record, const struct pod_plan *plan,
	      int alive);

#endif
