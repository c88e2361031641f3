/* supervisor.h - the state of a pod's supervisor. supervise.c runs it; first.c starts the pod's
 * first process. */
#ifndef BURST_LOCAL_SUPERVISOR_H
#define BURST_LOCAL_SUPERVISOR_H

#include "ids.h"
#include "sandbox.h"
#include "supervise.h"

enum { SUPERVISOR_KILL_MS = 8000 }; /* time allowed for killed processes to end */

struct supervisor {
	const struct store *store;
	struct pod_record *record;
	const struct pod_plan *plan;
	int alive;
	int signals;             /* signalfd */
	int listen_fd;           /* bound in the machine's network; `forward` takes it over */
	struct forward *forward; /* NULL: the pod shares the network, or does not run yet */
	char *scratch, *volume;  /* volume NULL: none */
	struct sandbox_users users;
	/* output of a pod in namespaces: a pipe, so that the pod holds no file of this machine; -1:
	 * none */
	int output;
	pid_t init; /* 0: none; may be gone already, see ended */
	bool asked; /* a client requested the release */
	bool ended; /* init was reaped */
	int status;
};

/* first.c */
int supervisor_start_pod(struct supervisor *s, struct err *err);

/* door.c */
bool supervisor_shares_network(const struct supervisor *s);
int supervisor_open_door(struct supervisor *s, struct err *err);

#endif
