/* grpc.h - carries CALL_GRPC over http.h: unary calls and streams from the server, all of them over
 * one HTTP/2 connection to a server (http.h has the exceptions; plain for an http URL, which is
 * allowed for this machine alone).
 *
 * One thread: the loop's. Times in ms of clock_boot_ms(). */
#ifndef BURST_NET_GRPC_H
#define BURST_NET_GRPC_H

#include "grpc_wire.h"
#include "http.h"

/* of a message sent, and of a reply's body whatever call.max_bytes is */
enum { GRPC_MOST_BYTES = 100 << 20 };

struct grpc_call;

/* One call through all its attempts; all 0 before the first. */
struct grpc_tries {
	char key[40]; /* x-idempotency-key, the same on each */
	/* attempts after a failure, and after a delay that the server set */
	int again, put_off;
	int64_t first_ms;   /* when the first one was sent */
	int64_t put_off_ms; /* waited because the server set a delay */
};

/* Sends *call (copied), with call.headers as metadata; grpc-timeout is timeout_ms. A unary call
 * also has the headers by which the server tells its attempts apart: x-idempotency-key (unless the
 * call has one), x-retry-attempt, x-retry-delay, x-throttle-retry-attempt, x-throttle-retry-delay.
 * tries is written now and not used later.
 *
 * done() comes exactly once, from the loop; *reply as for http_send(). The reply has not failed if
 * a status came, OK or not, from the server or from a proxy (then derived from HTTP's);
 * grpc_status, err (kind, message, retry_after_ms) and details describe it. With reply->failed
 * err.kind may also be ERR_BUG: the server violates gRPC. body holds whole messages only; of a
 * stream also those before it broke. */
struct grpc_call *grpc_send(struct loop *loop, struct http *http, const struct call *call,
			    struct grpc_tries *tries, void (*done)(void *ctx, struct reply *reply),
			    void *ctx);
/* No callback afterwards; the handle is dead after done(). Cancel what is under way before
 * http_free(). Accepts NULL. */
void grpc_cancel(struct grpc_call *call);

/* How long to wait in ms before the call is sent again with the same tries, or -1: the reply is
 * final. Streams are never sent again. If the server's details set a delay, the call is repeated
 * after it, which does not count as an attempt, until call.put_off_ms in all; a call without
 * may_repeat only if it was refused because there were too many. Otherwise a call with may_repeat
 * has three more attempts after failures that can pass, 0.1 s later, 0.2 s, 0.4 s, each plus up to
 * as much again at random. */
int64_t grpc_again_ms(struct grpc_tries *tries, const struct call *call, const struct reply *reply);

#endif
