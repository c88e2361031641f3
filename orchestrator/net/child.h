/* child.h - carries the calls that are child processes (CALL_CHILD).
 *
 * A child gets a process group of its own, so that a terminal's Ctrl-C does not reach it, the
 * default signal actions, the limit of descriptors that we began with, our environment without our
 * keys, and no descriptor of ours but its stdin, stdout and stderr. One thread: the loop's. Times
 * in ms. */
#ifndef BURST_NET_CHILD_H
#define BURST_NET_CHILD_H

#include "loop.h"
#include "provider.h"

struct child;

/* Where this very program is: what argv[0] "burst" means from now on. Copied. Without it "burst" is
 * looked for in PATH. */
void child_set_self(const char *path);
const char *child_self(void); /* as set; NULL: never set */

/* Starts call->argv with call->body (or the file body_from) as its stdin; everything needed of
 * *call is copied. done() comes exactly once, from the loop, when stdout and stderr are at their
 * end and the child is reaped, or 1 s after its death when a grandchild keeps them open. *reply is
 * the callback's to keep or to leave, as with http_send().
 *
 * reply->status is the exit code or 128 + signal, reply->body the stdout (or it was appended to
 * body_to), reply->head the first 64 KiB of stderr. With reply->failed, err.kind is ERR_LOCAL (it
 * could not be started, was_sent false; or a file), ERR_TRANSIENT (timeout_ms over; 0: no limit) or
 * ERR_UNTRUSTED (more than max_bytes of stdout; 0 there means 16 MiB); after the last two its
 * process group gets SIGTERM, and SIGKILL 2 s later. */
struct child *child_send(struct loop *loop, const struct call *call,
			 void (*done)(void *ctx, struct reply *reply), void *ctx);
/* No callback afterwards: the process group gets SIGTERM, then SIGKILL after 2 s or when the loop
 * is freed. The handle is dead after done(). NULL is fine. */
void child_cancel(struct child *child);

#endif
