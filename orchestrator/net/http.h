/* http.h - all of libcurl: carries the HTTP calls of providers, and makes the TCP connections that
 * ssh.c uses.
 *
 * TLS is always verified, redirects are never followed, plain http is refused for every host but
 * this machine (ERR_CONFIG). No call here blocks, and none calls back before it has returned. One
 * thread: the loop's. Times in ms. */
#ifndef BURST_NET_HTTP_H
#define BURST_NET_HTTP_H

#include "loop.h"
#include "provider.h"

struct http;
struct http_call;
struct http_connect;

/* Loads libcurl, once for the process. ERR_LOCAL: it is not installed. */
int http_ready(struct err *err);
/* From now on the loop waits through libcurl. http_ready() must have succeeded. */
struct http *http_new(struct loop *loop, const char *user_agent);
/* Ends calls without a callback. Before loop_free(), not from a callback. Accepts NULL. */
void http_free(struct http *http);

/* Carries one CALL_HTTP; everything needed of *call is copied. done() comes exactly once, from the
 * loop. The callback may keep *reply (copy the struct and reply_free() it later) or leave it: what
 * it leaves is freed afterwards.
 *
 * With reply->failed, err.kind is ERR_CONFIG (refused here: bad URL, header or plain http),
 * ERR_LOCAL (a file), ERR_NETWORK (no connection, lost, or timeout_ms over), ERR_UNTRUSTED
 * (certificate, or more than max_bytes; 0 means 16 MiB), and was_sent is false only if it is
 * certain that no byte of the request left. Any HTTP status is a success here; 3xx included.
 *
 * A call that carries a file (body_to, body_from) fails with ERR_NETWORK if no byte of it moves for
 * 60 s, whatever its timeout_ms.
 *
 * A call without may_repeat gets a connection of its own, so that libcurl never sends it twice
 * after a kept connection turns out to be dead. A request whose Content-Type is application/grpc
 * uses HTTP/2 also over plain http; its trailers are at the end of reply->head. All such requests
 * to one server share a connection, and none is sent twice there, may_repeat or not; with libcurl
 * 7.88 each has its own over plain http. After a timeout each call has its own connection for a
 * quarter of an hour.
 *
 * Only a 200 or 206 reply is appended to body_to (a 200 to a Range that does not begin at 0 is an
 * error), of max_bytes at most; the bodies of other replies, of 1 MiB at most, are in reply->body.
 */
struct http_call *http_send(struct http *http, const struct call *call,
			    void (*done)(void *ctx, struct reply *reply), void *ctx);
/* The same, but the body of every reply goes to on_piece(ctx) as it arrives, in pieces of any size,
 * and not to reply->body; max_bytes is the limit of all pieces together. so_far has the status and
 * the head, without trailers. If it returns -1 with *err, the call fails with that. */
typedef int http_on_piece(void *ctx, const struct reply *so_far, const void *bytes, size_t len,
			  struct err *err);
struct http_call *http_send_pieces(struct http *http, const struct call *call,
				   http_on_piece *on_piece,
				   void (*done)(void *ctx, struct reply *reply), void *ctx);
/* Ends the transfer now without a failure; done() comes in the next turn, with what has arrived.
 * Not from inside on_piece(). */
void http_hang_up(struct http_call *call);
/* Ends and frees the call without a callback. done() frees a call, too. Accepts NULL. */
void http_cancel(struct http_call *call);

/* Connects to host (a name or an address, IPv6 without brackets) without any proxy. done() comes
 * exactly once, from the loop: either err is NULL and fd is the callee's to close (non-blocking,
 * close-on-exec, TCP_NODELAY and SO_KEEPALIVE set), or fd is -1 and err->kind is ERR_NETWORK or
 * ERR_CONFIG. */
struct http_connect *http_connect(struct http *http, const char *host, int port, int64_t timeout_ms,
				  void (*done)(void *ctx, int fd, const struct err *err),
				  void *ctx);
void http_connect_cancel(struct http_connect *connect); /* no callback afterwards; accepts NULL */

/* Appends a request's or reply's body as one line for --trace, of at most 4 KiB, with known secrets
 * replaced. In JSON, every value of an "env" and of a key that names a credential becomes
 * "[secret]". Other text stays, but of binary data and text that mentions env only the length is
 * shown. */
void http_trace_body(struct str *to, const void *bytes, size_t len);

DEFINE_CLEANUP(http_free, struct http *)

#endif
