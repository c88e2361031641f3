/* child.h - runs the calls that are child processes (CALL_CHILD).
 *
 * A child has its own process group, so that a terminal's Ctrl-C does not reach it; the default
 * signal actions; the limit of descriptors that burst began with; burst's environment without its
 * keys; and no descriptor of burst but its stdin, stdout and stderr. One thread: the loop's.
 * Times in ms. */
#ifndef BURST_NET_CHILD_H
#define BURST_NET_CHILD_H

#include <sys/types.h>

#include "loop.h"
#include "provider.h"

struct child;

/* Sets the path of this very program, which argv[0] "burst" means from now on. Copied. Without it
 * "burst" is searched in PATH. */
void child_set_self(const char *path);
const char *child_self(void); /* as set; NULL: never set */

/* Starts call->argv with call->body (or the file body_from) as its stdin; everything needed of
 * *call is copied. done() comes exactly once, from the loop, when stdout and stderr have ended and
 * the child is reaped, or 1 s after its death if a grandchild keeps them open. The callback may
 * keep or leave *reply, as with http_send().
 *
 * reply->status is the exit code or 128 + signal, reply->body the stdout (or it was appended to
 * body_to), reply->head the first 64 KiB of stderr. With reply->failed, err.kind is ERR_LOCAL (it
 * could not be started, was_sent false; or a file), ERR_TRANSIENT (timeout_ms over; 0: no limit) or
 * ERR_UNTRUSTED (more than max_bytes of stdout; 0 means 16 MiB); after the last two its process
 * group gets SIGTERM, and SIGKILL 2 s later. */
struct child *child_send(struct loop *loop, const struct call *call,
			 void (*done)(void *ctx, struct reply *reply), void *ctx);
/* Starts call->argv as a connection: one end of a socket pair is its stdin and stdout, and *fd
 * becomes the other end, the caller's, close-on-exec and nonblocking; -1 if the program cannot be
 * started. done() comes as for child_send(), with an empty body; call->timeout_ms is ignored.
 * Neither its exit code nor the end of the stream says anything of what was carried. */
struct child *child_dial(struct loop *loop, const struct call *call, int *fd,
			 void (*done)(void *ctx, struct reply *reply), void *ctx);
/* The last line of its stderr that has a word, printable and shortened to room; "": none yet. Until
 * done() returns. */
void child_last_words(const struct child *child, char *out, size_t room);
/* No callback afterwards: the process group gets SIGTERM, then SIGKILL after 2 s or when the loop
 * is freed. The handle is dead after done(). Accepts NULL. */
void child_cancel(struct child *child);

#endif
