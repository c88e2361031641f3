/* grpc.h - carries CALL_GRPC over http.h, and gRPC's frames and statuses */
#ifndef BURST_NET_GRPC_H
#define BURST_NET_GRPC_H

#include "http.h"
#include "provider.h"

/* ---- grpc wire ----
 * gRPC inside HTTP/2: messages in frames, a status in the trailers, details in protobuf. Pure. All
 * input may come from a hostile server, so tests and fuzzers call these functions too. */

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
/* The name of a code, as "UNAVAILABLE"; "UNKNOWN" for undefined codes. Static. */
const char *grpc_code_name(int code);
/* The kind of error that a code means for burst; ERR_NONE for OK. */
enum err_kind grpc_err_kind(int code);
/* The code for an HTTP status without a gRPC status, as proxies answer. */
int grpc_code_of_http(int http_status);

/* Appends one frame with one message. */
void grpc_add_frame(struct str *to, const void *message, size_t len);

/* Takes the messages out of a reply's frames. The caller sets stream, most and to; others are 0. */
struct grpc_reader {
	/* The reply has any number of messages, each with its length before it in `to`. Otherwise
	 * it has exactly one message, without length. */
	bool stream;
	size_t most; /* bytes that `to` may grow to */
	struct str *to;
	unsigned char prefix[5];
	size_t have;     /* bytes of the prefix that have come */
	size_t left;     /* bytes to come of the message whose prefix is complete */
	size_t whole;    /* bytes of `to` that are whole messages */
	size_t messages; /* number of whole messages */
};
/* Reads the next bytes of a reply, of any number. ERR_UNTRUSTED: a message is larger than allowed,
 * known from its length. ERR_BUG: it is compressed, no frame, or one too many. */
int grpc_read(struct grpc_reader *r, const void *bytes, size_t len, struct err *err);
/* 0: the reply may end here. ERR_BUG: it ends within a message, or a unary call has none. */
int grpc_read_end(const struct grpc_reader *r, struct err *err);
/* Removes an incomplete message from `to`. */
void grpc_read_drop(struct grpc_reader *r);

/* Reads the status from the head or the trailers; returns false if there is none. Appends to *words
 * the message, percent-decoded, cut to a few hundred bytes, safe for a terminal; to *details the
 * bytes of grpc-status-details-bin (none if they cannot be decoded). */
bool grpc_read_status(const struct reply *reply, int *code, struct str *words, struct str *details);

/* Finds an RPCRetryPolicy in the details (a google.rpc.Status, which has the fields of
 * modal.client.RPCStatus). *after_ms: how long the server wants burst to wait before the same call,
 * cut to 100 ms to a day. Returns false if there is none. */
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

/* The attempts of one call; all 0 before the first. */
struct grpc_tries {
	char key[40];       /* x-idempotency-key, the same for each attempt */
	int again;          /* number of attempts after failures */
	int put_off;        /* number of attempts after delays that the server set */
	int64_t first_ms;   /* when the first attempt was sent */
	int64_t put_off_ms; /* sum of the delays that the server set */
};

/* Sends *call (copied), with call.headers as metadata; grpc-timeout is timeout_ms. A unary call
 * also has the headers by which the server tells its attempts apart: x-idempotency-key (unless the
 * call has one), x-retry-attempt, x-retry-delay, x-throttle-retry-attempt, x-throttle-retry-delay.
 * *tries is updated now and not used later.
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

/* Decides on a retry. Returns the ms to wait before the caller sends the call again with the same
 * tries, which this function updates; -1: the reply is final. Streams are never sent again. If the
 * server's details set a delay, that is the wait, until the delays exceed call.put_off_ms; without
 * may_repeat only after RESOURCE_EXHAUSTED. Otherwise a call with may_repeat has three more
 * attempts after failures that can pass, after 0.1 s, 0.2 s and 0.4 s, each plus up to as much at
 * random. */
int64_t grpc_retry_wait_ms(struct grpc_tries *tries, const struct call *call,
			   const struct reply *reply);

#endif
