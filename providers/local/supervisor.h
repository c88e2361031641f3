/* supervisor.h - the state of a pod's supervisor, and what it runs */
#ifndef BURST_PROVIDERS_LOCAL_SUPERVISOR_H
#define BURST_PROVIDERS_LOCAL_SUPERVISOR_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "vendor.h"
#include "sandbox.h"

/* ---- supervise: runs a pod's supervisor, from the pod's start to its end ---- */

enum { SUPERVISE_BEAT_MS = 3000 }; /* it touches `alive` at least this often */
/* =SCRATCH in the environment of a pod that is a process group: a path, since ids are unique only
 * within one state folder */
#define SUPERVISE_MARK "BURST_LOCAL_POD"

/* ---- supervisor: the state of a pod's supervisor ---- */

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

/* ---- forward ----
 * Forwards TCP connections from a listening socket of this machine to a port of the pod's own
 * loopback.
 *
 * A socket stays in the network namespace in which it was made: the listening one in the
 * machine's, those made here in the process's current one. Nothing here blocks; the owner polls. */

enum {
	FORWARD_MAX = 256,
	FORWARD_POLL_MAX = 1 + 2 * FORWARD_MAX
}; /* FORWARD_MAX connections at a time; entries for poll */

struct forward;
/* Takes over listen_fd. Closes a connection at once if the pod's port refuses it: the client sees a
 * drop. */
struct forward *forward_new(int listen_fd, int pod_port);
void forward_free(struct forward *f); /* accepts NULL */
/* Fills the entries to poll (room for FORWARD_POLL_MAX) and returns their number. *next_ms: boot
 * clock time at which forward_serve() is due without an event; INT64_MAX: none. Then pass the same
 * entries to forward_serve(). */
size_t forward_fill_poll(struct forward *f, struct pollfd *set, int64_t *next_ms);
void forward_serve(struct forward *f, const struct pollfd *set, size_t count);

#endif
