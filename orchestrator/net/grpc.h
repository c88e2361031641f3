/* grpc.h - carries CALL_GRPC over http.c: unary calls and streams from the server, all of them over
 * one HTTP/2 connection to a server (http.h says when not; plain for http, which is only for this
 * machine).
 *
 * One thread: the loop's. Times in ms of clock_boot_ms(). */
#ifndef BURST_NET_GRPC_H
#define BURST_NET_GRPC_H

#include "grpc_wire.h"
#include "http.h"

/* of a message sent, and of a reply's body whatever call.max_bytes says */
enum { GRPC_MOST_BYTES = 100 << 20 };

struct grpc_call;

/* One call through all its tries; all 0 before the first. */
struct grpc_tries {
	char key[40]; /* x-idempotency-key, the same on each */
	/* tries after a failure, and because the server said when to come again */
	int again, put_off;
	int64_t first_ms;   /* when it was sent first */
	int64_t put_off_ms; /* spent waiting because the server said so */
};

/* Sends *call (copied), with call.headers as metadata; grpc-timeout is timeout_ms. A unary call
 * also bears the headers by which the other side knows its tries apart: x-idempotency-key (unless
 * the call has one), x-retry-attempt, x-retry-delay, x-throttle-retry-attempt,
 * x-throttle-retry-delay. tries is written now and not used later.
 *
 * done() comes exactly once, from the loop; *reply as for http_send(). It has not failed when a
 * status came, OK or not, from the server or from what stands between (then by HTTP's);
 * grpc_status, err (kind, words, retry_after_ms) and details say which. With reply->failed err.kind
 * is also ERR_BUG when the other side does not keep to gRPC. body holds whole messages only; of a
 * stream also those that came before it broke. */
struct grpc_call *grpc_send(struct loop *loop, struct http *http, const struct call *call,
			    struct grpc_tries *tries, void (*done)(void *ctx, struct reply *reply),
			    void *ctx);
/* No callback afterwards; the handle is dead after done(). What is under way must be cancelled
 * before http_free(). NULL is fine. */
void grpc_cancel(struct grpc_call *call);

/* How long to wait before the call is sent again with the same tries, or -1: the reply stands.
 * Streams are never sent again. Where the server's details say when to come again it is done,
 * without counting as a try, until call.put_off_ms in all; for a call without may_repeat only if it
 * was refused for there being too many. Else what may_repeat is tried three times more after
 * failures that can pass, 0.1 s later, 0.2 s, 0.4 s, and up to as much again by chance. */
int64_t grpc_again_ms(struct grpc_tries *tries, const struct call *call, const struct reply *reply);

#endif
