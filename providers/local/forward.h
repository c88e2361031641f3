/* forward.h - forwards TCP connections from a listening socket of this machine to a port of the
 * pod's own loopback.
 *
 * A socket stays in the network namespace in which it was made: the listening one in the machine's,
 * those made here in the process's current one. Nothing here blocks; the owner polls. */
#ifndef BURST_PROVIDERS_LOCAL_FORWARD_H
#define BURST_PROVIDERS_LOCAL_FORWARD_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FORWARD_MAX = 256,
	FORWARD_POLL_MAX = 1 + 2 * FORWARD_MAX
}; /* FORWARD_MAX connections at a time; entries for poll */

struct forward;
/* Takes over listen_fd. Closes a connection at once if the pod's port refuses it: the client sees a
 * drop. round_trip_ms > 0: delays bytes like a line of that length, on which a connection carries
 * at most 4 MiB a round trip. */
struct forward *forward_new(int listen_fd, int pod_port, int64_t round_trip_ms);
void forward_free(struct forward *f); /* accepts NULL */
/* Fills the entries to poll (room for FORWARD_POLL_MAX) and returns their number. *next_ms: boot
 * clock time at which forward_serve() is due without an event; INT64_MAX: none. Then pass the same
 * entries to forward_serve(). */
size_t forward_wants(struct forward *f, struct pollfd *set, int64_t *next_ms);
void forward_serve(struct forward *f, const struct pollfd *set, size_t count);

#endif
