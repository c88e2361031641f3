/* http_reply.c - takes what a server sends: head, body, status. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>

#include "base/path.h"
#include "http_impl.h"

enum {
	BODY_MOST = 16 << 20,   /* where the call names no max_bytes */
	REFUSAL_MOST = 1 << 20, /* of a body that arrives in place of a file */
	HEAD_MOST = 256 << 10,
	RETRY_AFTER_MOST_S = 24 * 3600,
};

void http_reply_fail(struct http_call *c, enum err_kind kind, const char *what)
{
	struct reply *reply = &c->down.reply;

	if (reply->failed)
		return;
	reply->failed = true;
	err_set(&reply->err, kind, "%s %s: %s", c->method, c->shown_url, what);
}

/* Each reply on the connection has a head of its own: a 100, a proxy's answer, then the reply
 * proper. The last one counts; trailers are added to it. */
static size_t on_head(char *bytes, size_t size, size_t n, void *ctx)
{
	struct http_call *c = ctx;
	struct str *head = &c->down.reply.head;
	size_t len = size * n, shown = len;

	if (len >= 5 && !strncmp(bytes, "HTTP/", 5)) {
		str_reset(head);
		c->down.head_whole = false;
	}
	while (shown && (bytes[shown - 1] == '\r' || bytes[shown - 1] == '\n'))
		shown--;
	if (!shown) {
		c->down.head_whole = true;
		return len;
	}
	if (head->len)
		str_add(head, "\r\n");
	str_addn(head, bytes, shown);
	if (!head->over)
		return len;
	http_reply_fail(c, ERR_UNTRUSTED, "the reply's head is larger than allowed");
	return 0;
}

static int open_file(struct http_call *c, long status)
{
	if (status == 200 && c->down.ranged) {
		http_reply_fail(c, ERR_UNTRUSTED,
				"the server sends the whole where a part was asked for");
		return -1;
	}
	c->down.fd = open(c->down.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (c->down.fd < 0) {
		http_reply_fail(c, ERR_LOCAL, strerror(errno));
		return -1;
	}
	return 0;
}

static int write_file(struct http_call *c, long status, const char *bytes, size_t len)
{
	if (c->down.fd < 0 && open_file(c, status) < 0)
		return -1;
	if (fd_write_all(c->down.fd, bytes, len) < 0) {
		http_reply_fail(c, ERR_LOCAL, strerror(errno));
		return -1;
	}
	c->down.bytes += (int64_t)len;
	return 0;
}

static int pass_on(struct http_call *c, long status, const char *bytes, size_t len)
{
	struct err err = {0};

	c->down.reply.status = (int)status;
	c->down.bytes += (int64_t)len;
	if (c->down.on_piece(c->ctx, &c->down.reply, bytes, len, &err) == 0)
		return 0;
	http_reply_fail(c, err.kind, err.msg);
	return -1;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
	struct http_call *c = ctx;
	size_t len = size * n;
	long status = 0;

	curl_lib.easy_getinfo(c->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	bool to_file = c->down.path && (status == 200 || status == 206);
	/* The file's limit does not apply to the text of a refusal. */
	size_t most = c->down.path && !to_file ? REFUSAL_MOST : c->down.max_bytes;
	if (len > most || (size_t)c->down.bytes + c->down.reply.body.len > most - len) {
		http_reply_fail(c, ERR_UNTRUSTED, "the reply is larger than allowed");
		return 0;
	}
	if (c->down.on_piece)
		return pass_on(c, status, bytes, len) == 0 ? len : 0;
	if (to_file)
		return write_file(c, status, bytes, len) == 0 ? len : 0;
	str_addn(&c->down.reply.body, bytes, len);
	return len;
}

void http_reply_init(struct http_call *c, const struct call *call, http_on_piece *on_piece)
{
	const char *range = http_header_value(call, "Range");

	c->down.path = call->body_to ? xstrdup(call->body_to) : NULL;
	c->down.fd = -1;
	c->down.max_bytes = call->max_bytes ? call->max_bytes : BODY_MOST;
	c->down.ranged = range && strncasecmp(range, "bytes=0-", 8) != 0;
	c->down.reply.head = STR_MAX(HEAD_MOST);
	c->down.on_piece = on_piece;
}

void http_reply_listen(struct http_call *c)
{
	CURL *easy = c->transfer.easy;

	curl_lib.easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
	curl_lib.easy_setopt(easy, CURLOPT_HEADERDATA, c);
	curl_lib.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_lib.easy_setopt(easy, CURLOPT_WRITEDATA, c);
}

void http_reply_measure(struct http_call *c)
{
	CURL *easy = c->transfer.easy;
	struct reply *reply = &c->down.reply;
	curl_off_t wall_us = 0, retry_s = 0;
	long status = 0;

	curl_lib.easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &wall_us);
	curl_lib.easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_s);
	curl_lib.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	reply->wall_ms = wall_us / 1000;
	reply->status = (int)status;
	reply->retry_after_ms = retry_s > 0 ? MIN(retry_s, RETRY_AFTER_MOST_S) * 1000 : 0;
}

void http_reply_close(struct http_call *c)
{
	reply_free(&c->down.reply);
	fd_close(c->down.fd);
	free(c->down.path);
}
