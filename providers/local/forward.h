/* forward.h - carries TCP connections from a listening socket of this machine to a port of the
 * pod's own loopback.
 *
 * Sockets stay in the network namespace in which they were made: the listening one is the
 * machine's, those made here belong to the namespace the process is in by now. Nothing here blocks;
 * the owner polls. */
#ifndef BURST_PROVIDERS_LOCAL_FORWARD_H
#define BURST_PROVIDERS_LOCAL_FORWARD_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FORWARD_MAX = 256,
	FORWARD_POLL_MAX = 1 + 2 * FORWARD_MAX
}; /* connections at a time; entries for poll */

struct forward;
/* Owns listen_fd from now on. Connections that the pod's port refuses are closed at once: the
 * client sees a drop. round_trip_ms > 0: a line as long as that, on which a connection carries at
 * most 4 MiB a round trip. */
struct forward *forward_new(int listen_fd, int pod_port, int64_t round_trip_ms);
void forward_free(struct forward *f); /* NULL is fine */
/* Fills what to wait for (room for FORWARD_POLL_MAX); returns how many. *next_ms: the boot clock's
 * time at which forward_serve() is due even when nothing of it happens; INT64_MAX: none (always,
 * where there is no round trip). Then give
 * the same entries to forward_serve(). */
size_t forward_wants(struct forward *f, struct pollfd *set, int64_t *next_ms);
void forward_serve(struct forward *f, const struct pollfd *set, size_t count);

#endif
