/* grpc.h - carries CALL_GRPC over http.h, and gRPC's frames and statuses */
#ifndef BURST_NET_GRPC_H
#define BURST_NET_GRPC_H

#include "http.h"
#include "provider.h"

/* ---- grpc wire ----
 * GRPC inside HTTP/2: messages in frames, a status in the trailers, details in protobuf. Pure,
 * for grpc.c; everything read here may come from a hostile server. */

enum grpc_code {
	GRPC_OK,
	GRPC_CANCELLED,
	GRPC_UNKNOWN,
	GRPC_INVALID_ARGUMENT,
	GRPC_DEADLINE_EXCEEDED,
	GRPC_NOT_FOUND,
	GRPC_ALREADY_EXISTS,
	GRPC_PERMISSION_DENIED,
	GRPC_RESOURCE_EXHAUSTED,
	GRPC_FAILED_PRECONDITION,
	GRPC_ABORTED,
	GRPC_OUT_OF_RANGE,
	GRPC_UNIMPLEMENTED,
	GRPC_INTERNAL,
	GRPC_UNAVAILABLE,
	GRPC_DATA_LOSS,
	GRPC_UNAUTHENTICATED,
};
/* "UNAVAILABLE"; undefined codes are UNKNOWN. Static. */
const char *grpc_code_name(int code);
/* What a call that ended so means for burst; ERR_NONE for OK. */
enum err_kind grpc_err_kind(int code);
/* What an HTTP status without a gRPC status means: a proxy's answer. */
int grpc_code_of_http(int http_status);

/* Appends one frame with one message. */
void grpc_add_frame(struct str *to, const void *message, size_t len);

/* Takes the frames of a reply, in pieces of any size. Set stream, most and to, all else 0. */
struct grpc_reader {
	/* any number of messages, each with its length before it in `to`; else exactly one, without
	 * length */
	bool stream;
	size_t most; /* bytes that `to` may grow to */
	struct str *to;
	unsigned char prefix[5];
	size_t have;     /* of the prefix */
	size_t left;     /* of the message whose prefix is complete */
	size_t whole;    /* bytes of `to` that are whole messages */
	size_t messages; /* whole ones */
};
/* -1: ERR_UNTRUSTED (larger than allowed, as soon as its length is known) or ERR_BUG (compressed,
 * no frame, one too many). */
int grpc_read(struct grpc_reader *r, const void *bytes, size_t len, struct err *err);
/* Whether the reply may end here: ERR_BUG in the middle of a message, or without the one message of
 * a unary call. */
int grpc_read_end(const struct grpc_reader *r, struct err *err);
/* Drops an incomplete message. */
void grpc_read_drop(struct grpc_reader *r);

/* Reads the status in the head or the trailers; false: there is none. *words gets the message,
 * percent-decoded, at most a few hundred bytes, safe for a terminal; *details the bytes of grpc-
 * status-details-bin (empty if they cannot be decoded). */
bool grpc_read_status(const struct reply *reply, int *code, struct str *words, struct str *details);

/* If the details (a google.rpc.Status, which has a modal.client.RPCStatus's fields) hold an
 * RPCRetryPolicy: how long the server wants us to wait before the same call, at least 100 ms, at
 * most a day. */
bool grpc_read_retry_policy(const void *details, size_t len, int64_t *after_ms);

/* ---- grpc ----
 * Carries CALL_GRPC over http.h: unary calls and streams from the server, all of them over one
 * HTTP/2 connection to a server (http.h has the exceptions; plain for an http URL, which is
 * allowed for this machine alone).
 *
 * One thread: the loop's. Times in ms of clock_boot_ms(). */

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
