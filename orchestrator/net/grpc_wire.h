/* grpc_wire.h - gRPC inside HTTP/2: messages in frames, a status in the trailers, details in
 * protobuf. Pure, for grpc.c; everything read here may come from a hostile server. */
#ifndef BURST_NET_GRPC_WIRE_H
#define BURST_NET_GRPC_WIRE_H

#include "provider.h"

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
/* The code that comes nearest to a failure on this side. */
int grpc_code_of_kind(enum err_kind kind);

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

#endif
