/* http_upload.c - gives libcurl the body of a request. */
#include <errno.h>

#include "http_impl.h"

/* ---- from a part of a file ---- */

static size_t on_read_file(char *to, size_t size, size_t n, void *ctx)
{
	struct http_call *c = ctx;
	size_t got = fread(to, 1, MIN(size * n, (size_t)c->up.file_left), c->up.file);

	if (!got && c->up.file_left) {
		http_reply_fail(c, ERR_LOCAL,
				ferror(c->up.file) ? "its file cannot be read"
						   : "its file became shorter");
		return CURL_READFUNC_ABORT;
	}
	c->up.file_left -= (int64_t)got;
	return got;
}

/* libcurl seeks before it sends a request again over another connection. */
static int on_seek_file(void *ctx, curl_off_t offset, int origin)
{
	struct http_call *c = ctx;

	if (origin != SEEK_SET || offset < 0 || offset > c->up.file_bytes ||
	    fseeko(c->up.file, (off_t)(c->up.file_offset + offset), SEEK_SET) < 0)
		return CURL_SEEKFUNC_FAIL;
	c->up.file_left = c->up.file_bytes - offset;
	return CURL_SEEKFUNC_OK;
}

static int set_file(struct http_call *c, const struct call *call, struct err *err)
{
	CURL *easy = c->transfer.easy;
	int64_t size;

	c->up.file = fopen(call->body_from, "re");
	if (!c->up.file || fseeko(c->up.file, 0, SEEK_END) < 0 || (size = ftello(c->up.file)) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", call->body_from, strerror(errno));
	c->up.file_offset = call->body_from_offset;
	c->up.file_bytes = call->body_from_bytes ? call->body_from_bytes : size - c->up.file_offset;
	if (c->up.file_offset < 0 || c->up.file_bytes < 0 ||
	    c->up.file_bytes > size - c->up.file_offset)
		return err_set(err, ERR_LOCAL, "%s: it is shorter than it was", call->body_from);
	c->up.file_left = c->up.file_bytes;
	if (fseeko(c->up.file, (off_t)c->up.file_offset, SEEK_SET) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", call->body_from, strerror(errno));
	curl_lib.easy_setopt(easy, CURLOPT_POST, 1L);
	curl_lib.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->up.file_bytes);
	curl_lib.easy_setopt(easy, CURLOPT_READFUNCTION, on_read_file);
	curl_lib.easy_setopt(easy, CURLOPT_READDATA, c);
	curl_lib.easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek_file);
	curl_lib.easy_setopt(easy, CURLOPT_SEEKDATA, c);
	return 0;
}

/* ---- from memory ---- */

static size_t on_read_body(char *to, size_t size, size_t n, void *ctx)
{
	struct http_call *c = ctx;
	size_t len = MIN(size * n, c->up.body.len - c->up.body_sent);

	memcpy(to, str_text(&c->up.body) + c->up.body_sent, len);
	c->up.body_sent += len;
	return len;
}

/* Refuses that libcurl sends the request again: the server may have executed the first one. */
static int on_seek_body(void *ctx, curl_off_t offset, int origin)
{
	struct http_call *c = ctx;

	(void)offset, (void)origin;
	if (!c->up.body_sent)
		return CURL_SEEKFUNC_OK;
	http_reply_fail(c, ERR_NETWORK, "the connection was lost before an answer came");
	return CURL_SEEKFUNC_FAIL;
}

static void set_body(struct http_call *c, const struct call *call)
{
	CURL *easy = c->transfer.easy;

	str_addn(&c->up.body, call->body.s, call->body.len);
	curl_lib.easy_setopt(easy, CURLOPT_POST, 1L);
	curl_lib.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->up.body.len);
	if (c->may_resend) {
		curl_lib.easy_setopt(easy, CURLOPT_POSTFIELDS, str_text(&c->up.body));
		return;
	}
	curl_lib.easy_setopt(easy, CURLOPT_READFUNCTION, on_read_body);
	curl_lib.easy_setopt(easy, CURLOPT_READDATA, c);
	curl_lib.easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek_body);
	curl_lib.easy_setopt(easy, CURLOPT_SEEKDATA, c);
}

int http_upload_set(struct http_call *c, const struct call *call, struct err *err)
{
	if (call->body_from)
		return set_file(c, call, err);
	set_body(c, call);
	return 0;
}

void http_upload_close(struct http_call *c)
{
	str_wipe(&c->up.body);
	file_close(c->up.file);
}
