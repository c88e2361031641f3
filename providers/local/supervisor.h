/* supervisor.h - the state of a pod's supervisor: supervise.c runs it, first.c starts the pod's
 * first process. */
#ifndef BURST_LOCAL_SUPERVISOR_H
#define BURST_LOCAL_SUPERVISOR_H

#include "ids.h"
#include "supervise.h"

enum { SUPERVISOR_KILL_MS = 8000 }; /* what killed processes may take to be gone */

struct supervisor {
	const struct store *store;
	struct pod_record *record;
	const struct pod_plan *plan;
	int alive;
	int signals;             /* signalfd */
	int listen_fd;           /* bound in the machine's network; until `forward` owns it */
	struct forward *forward; /* NULL: the pod shares the network, or does not run yet */
	char *scratch, *volume;  /* volume NULL: none */
	struct sandbox_users users;
	/* what a pod in namespaces prints: a pipe, so that it holds no file of this machine; -1:
	 * none */
	int output;
	pid_t init; /* 0: none; it may be gone already: see ended */
	bool asked; /* a client requested its release */
	bool ended; /* init has been waited for */
	int status;
};

/* first.c */
int supervisor_start_pod(struct supervisor *s, struct err *err);

/* supervise.c */
bool supervisor_shares_network(const struct supervisor *s);
int supervisor_open_door(struct supervisor *s, struct err *err);

#endif
