/* http_call.c - carries one HTTP call from its request to its reply */
#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/path.h"
#include "http_impl.h"
#include "http_trace.h"

/* ---- http check ----
 * What an HTTP request may contain, and which hosts it may go to. */

struct target {
	bool plain, loopback; /* http rather than https; this machine */
};

static bool is_loopback(const char *host)
{
	struct in_addr v4;
	struct in6_addr v6;
	char bare[64];

	if (!strcasecmp(host, "localhost"))
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	COPY_TEXT(bare, host + (*host == '['));
	bare[strcspn(bare, "]")] = '\0';
	return inet_pton(AF_INET6, bare, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Fills *out. ERR_CONFIG: not a URL that burst may send a request to. */
static int http_check_url(const char *url, struct target *out, struct err *err)
{
	char *scheme = NULL, *host = NULL, *user = NULL;
	CURLU *u = curl_lib.url();
	int rc = -1;

	if (!u || curl_lib.url_set(u, CURLUPART_URL, url, 0) ||
	    curl_lib.url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
	    curl_lib.url_get(u, CURLUPART_HOST, &host, 0))
		err_set(err, ERR_CONFIG, "not a usable URL");
	else if (strcasecmp(scheme, "https") && strcasecmp(scheme, "http"))
		err_set(err, ERR_CONFIG, "unsupported URL scheme %s: only https", scheme);
	else if (curl_lib.url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK)
		err_set(err, ERR_CONFIG, "a user name or password does not belong into a URL");
	else
		rc = 0;
	if (rc == 0) {
		out->plain = !strcasecmp(scheme, "http");
		out->loopback = is_loopback(host);
		if (out->plain && !out->loopback)
			rc = err_set(err, ERR_CONFIG,
				     "plain http is allowed only for this machine, not for %s",
				     host);
	}
	curl_lib.free(scheme);
	curl_lib.free(host);
	curl_lib.free(user);
	curl_lib.url_cleanup(u);
	return rc;
}

/* Whether the text is a token of RFC 9110, as names of headers and methods are. */
static bool http_is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("!#$%&'*+-.^_`|~", text[i]))
			return false;
	return len > 0;
}

/* ERR_CONFIG: the line has no valid name, or its value could smuggle in another line. */
static int http_check_header(const char *line, struct err *err)
{
	size_t name = strcspn(line, ":");

	if (line[name] != ':' || !http_is_token(line, name))
		return err_set(err, ERR_CONFIG, "a header has no proper name");
	for (const char *p = line + name; *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 127)
			return err_set(
				err, ERR_CONFIG,
				"the value of header %.*s holds a line break or control character",
				(int)name, line);
	return 0;
}

/* The value of the call's header of that name, borrowed; NULL: it has none. */
static const char *http_header_value(const struct call *call, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < call->header_count; i++)
		if (!strncasecmp(call->headers[i], name, len) && call->headers[i][len] == ':')
			return call->headers[i] + len + 1 +
			       strspn(call->headers[i] + len + 1, " \t");
	return NULL;
}

/* ---- http reply ----
 * Takes what a server sends: head, body, status. */

enum {
	BODY_MOST = 16 << 20,   /* where the call names no max_bytes */
	REFUSAL_MOST = 1 << 20, /* of a body that arrives in place of a file */
	HEAD_MOST = 256 << 10,
	RETRY_AFTER_MOST_S = 24 * 3600,
};

/* Records the first failure of the call; later ones change nothing. */
static void http_reply_fail(struct http_call *c, enum err_kind kind, const char *what)
{
	struct reply *reply = &c->down.reply;

	if (reply->failed)
		return;
	reply->failed = true;
	err_set(&reply->err, kind, "%s %s: %s", c->method, c->shown_url, what);
}

/* libcurl has a line of a head, or a trailer. A call may get several heads: of a 100, of a proxy's
 * answer, then of the reply proper. The last one is kept, with the trailers. */
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

/* Opens the file that the body goes to. -1: the call has failed. */
static int open_body_file(struct http_call *c, long status)
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

/* -1: the call has failed. */
static int write_body_file(struct http_call *c, long status, const char *bytes, size_t len)
{
	if (c->down.fd < 0 && open_body_file(c, status) < 0)
		return -1;
	if (fd_write_all(c->down.fd, bytes, len) < 0) {
		http_reply_fail(c, ERR_LOCAL, strerror(errno));
		return -1;
	}
	c->down.bytes += (int64_t)len;
	return 0;
}

/* Passes a piece to the owner. -1: the owner refuses it, so the call has failed. */
static int pass_piece(struct http_call *c, long status, const char *bytes, size_t len)
{
	struct err err = {0};

	c->down.reply.status = (int)status;
	c->down.bytes += (int64_t)len;
	if (c->down.on_piece(c->ctx, &c->down.reply, bytes, len, &err) == 0)
		return 0;
	http_reply_fail(c, err.kind, err.msg);
	return -1;
}

/* libcurl has bytes of the body. Returns their number; any other number ends the transfer. */
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
		return pass_piece(c, status, bytes, len) == 0 ? len : 0;
	if (to_file)
		return write_body_file(c, status, bytes, len) == 0 ? len : 0;
	str_addn(&c->down.reply.body, bytes, len);
	return len;
}

static void http_reply_init(struct http_call *c, const struct call *call, http_on_piece *on_piece)
{
	const char *range = http_header_value(call, "Range");

	c->down.path = call->body_to ? xstrdup(call->body_to) : NULL;
	c->down.fd = -1;
	c->down.max_bytes = call->max_bytes ? call->max_bytes : BODY_MOST;
	c->down.ranged = range && strncasecmp(range, "bytes=0-", 8) != 0;
	c->down.reply.head = STR_MAX(HEAD_MOST);
	c->down.on_piece = on_piece;
}

static void http_reply_listen(struct http_call *c)
{
	CURL *easy = c->transfer.easy;

	curl_lib.easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
	curl_lib.easy_setopt(easy, CURLOPT_HEADERDATA, c);
	curl_lib.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_lib.easy_setopt(easy, CURLOPT_WRITEDATA, c);
}

/* Copies status and times from libcurl, whose handle is still open. */
static void http_reply_measure(struct http_call *c)
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

/* Frees c->down. */
static void http_reply_close(struct http_call *c)
{
	reply_free(&c->down.reply);
	fd_close(c->down.fd);
	free(c->down.path);
}

/* ---- http upload ----
 * Gives libcurl the body of a request. */

/* libcurl wants the next bytes of the file. */
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

/* Makes a part of a file the request's body. ERR_LOCAL. */
static int set_file_body(struct http_call *c, const struct call *call, struct err *err)
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

/* libcurl wants the next bytes of a body that it must not send twice. */
static size_t on_read_body(char *to, size_t size, size_t n, void *ctx)
{
	struct http_call *c = ctx;
	size_t len = MIN(size * n, c->up.body.len - c->up.body_sent);

	memcpy(to, str_text(&c->up.body) + c->up.body_sent, len);
	c->up.body_sent += len;
	return len;
}

/* Keeps libcurl from sending the request again: the server may have executed the first one. */
static int on_seek_body(void *ctx, curl_off_t offset, int origin)
{
	struct http_call *c = ctx;

	(void)offset, (void)origin;
	if (!c->up.body_sent)
		return CURL_SEEKFUNC_OK;
	http_reply_fail(c, ERR_NETWORK, "the connection was lost before an answer came");
	return CURL_SEEKFUNC_FAIL;
}

/* Makes a copy of call->body the request's body. */
static void set_memory_body(struct http_call *c, const struct call *call)
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

/* Makes call's body that of the request. ERR_LOCAL: its file cannot be read. */
static int http_upload_set(struct http_call *c, const struct call *call, struct err *err)
{
	if (call->body_from)
		return set_file_body(c, call, err);
	set_memory_body(c, call);
	return 0;
}

/* Frees c->up. */
static void http_upload_close(struct http_call *c)
{
	str_wipe(&c->up.body);
	file_close(c->up.file);
}

/* ---- http call ----
 * Carries one HTTP call from its request to its reply. */

enum {
	/* After this time the system has closed a connection whose peer is gone. */
	FRESH_MS = 15 * 60 * 1000,
	PROBE_IDLE_S = 30, /* TCP keepalive of a kept gRPC connection */
	PROBE_GAP_S = 10,
};

/* ---- the end ---- */

static void free_call(struct http_call *c)
{
	http_transfer_remove(&c->transfer);
	loop_untimer(c->report);
	for (struct curl_slist *h = c->headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_lib.slist_free_all(c->headers);
	http_reply_close(c);
	http_upload_close(c);
	free(c->method);
	free(c->shown_url);
	free(c);
}

static void on_drop(struct transfer *t)
{
	free_call((struct http_call *)t);
}

/* Frees the call, then calls done(), so that the owner may send another call. */
static void report_reply(struct http_call *c)
{
	struct reply reply = c->down.reply;
	void (*done)(void *, struct reply *) = c->done;
	void *ctx = c->ctx;

	memset(&c->down.reply, 0, sizeof(c->down.reply));
	reply.to_bytes = c->down.path ? c->down.bytes : 0;
	http_trace_reply(c->method, c->shown_url, &reply, c->down.on_piece ? 0 : c->down.bytes);
	free_call(c);
	done(ctx, &reply);
	reply_free(&reply);
}

static void on_report(void *ctx)
{
	struct http_call *c = ctx;

	c->report = NULL;
	report_reply(c);
}

/* Calls done() in the next turn of the loop, for a call that ended outside libcurl. */
static void report_soon(struct http_call *c)
{
	c->report = loop_timer(c->transfer.http->loop, 0, on_report, c);
}

/* What the user reads behind the server's name when no request was sent. */
static const char *describe_unsent(CURLcode rc)
{
	switch ((int)rc) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY: return "cannot be found: is this machine on a network?";
	}
	return http_transfer_kind(NULL, rc) == ERR_UNTRUSTED
		       ? "cannot be trusted: is a proxy or a network's sign-in page in between?"
		       : "cannot be reached";
}

/* Fails a call whose request was not sent: the message names the server, not the request. */
static void fail_unsent(struct http_call *c, enum err_kind kind, CURLcode rc, const char *problem)
{
	struct reply *reply = &c->down.reply;
	const char *host = strstr(c->shown_url, "://");

	host = host ? host + 3 : c->shown_url;
	reply->failed = true;
	err_set(&reply->err, kind, "%.*s %s (%s)", (int)strcspn(host, "/?#"), host,
		describe_unsent(rc), problem);
}

/* transfer.finish: completes the reply and reports it. */
static void on_finish(struct transfer *t, CURLcode rc)
{
	struct http_call *c = (struct http_call *)t;

	http_reply_measure(c);
	/* libcurl treats the end of the connection as the end of the head. */
	if (rc == CURLE_OK && !c->down.head_whole)
		http_reply_fail(c, ERR_NETWORK, "the connection was lost within the reply's head");
	/* It takes "HTTP/200 OK" for a reply and finds no status in it. */
	if (rc == CURLE_OK && c->down.reply.status <= 0)
		http_reply_fail(c, ERR_UNTRUSTED, "the reply has no HTTP status");
	/* After a timeout, a stream of HTTP/2 leaves its connection open. Later calls would use
	 * that connection, even if its peer is gone. */
	if (rc == CURLE_OPERATION_TIMEDOUT)
		t->http->fresh_until = clock_boot_ms() + FRESH_MS;
	if (rc != CURLE_OK && !c->down.reply.was_sent && !c->down.reply.failed &&
	    http_transfer_kind(t, rc) != ERR_CONFIG)
		fail_unsent(c, http_transfer_kind(t, rc), rc, http_transfer_problem(t, rc));
	else if (rc != CURLE_OK)
		http_reply_fail(c, http_transfer_kind(t, rc), http_transfer_problem(t, rc));
	report_reply(c);
}

/* ---- the request ---- */

static bool is_grpc_call(const struct call *call)
{
	const char *type = http_header_value(call, "Content-Type");

	return type && !strncasecmp(type, "application/grpc", 16);
}

static void add_header(struct http_call *c, const char *line)
{
	c->headers = curl_lib.slist_append(c->headers, line);
}

/* Adds a header with an empty value: libcurl would drop "Name:", but sends "Name;" as "Name:". */
static void add_empty_header(struct http_call *c, const char *line, size_t name_len)
{
	CLEANUP(free_text) char *semicolon = xasprintf("%.*s;", (int)name_len, line);

	add_header(c, semicolon);
}

/* Checks and sets the headers. ERR_CONFIG. */
static int add_headers(struct http_call *c, const struct call *call, struct err *err)
{
	for (size_t i = 0; i < call->header_count; i++) {
		const char *line = call->headers[i];
		if (http_check_header(line, err) < 0)
			return -1;
		size_t name = strcspn(line, ":");
		if (line[name + 1 + strspn(line + name + 1, " \t")])
			add_header(c, line);
		else
			add_empty_header(c, line, name);
	}
	/* A header that is named without a value keeps libcurl from sending one of its own. But
	 * libcurl before 8.3 signs these too, and no server can then verify the request (curl's
	 * issue 11664). A signed call therefore sets the type of its body and keeps libcurl's
	 * Expect. */
	if (!call->sigv4) {
		add_header(c, "Expect:");
		if (!http_header_value(call, "Content-Type"))
			add_header(c, "Content-Type:");
	}
	if (is_grpc_call(call)) { /* gRPC clients send neither */
		add_header(c, "Accept:");
		add_header(c, "Content-Length:");
	}
	curl_lib.easy_setopt(c->transfer.easy, CURLOPT_HTTPHEADER, c->headers);
	return 0;
}

/* Sets method and body. ERR_CONFIG: the method is no token. ERR_LOCAL: body_from cannot be read. */
static int set_request(struct http_call *c, const struct call *call, struct err *err)
{
	CURL *easy = c->transfer.easy;
	bool may_lack_body = !strcmp(c->method, "GET") || !strcmp(c->method, "DELETE");

	if (!strcmp(c->method, "?"))
		return err_set(err, ERR_CONFIG, "not a method");
	if (!call->body_from && !strcmp(c->method, "HEAD")) {
		curl_lib.easy_setopt(easy, CURLOPT_NOBODY, 1L);
		return 0;
	}
	if ((call->body_from || call->body.len || !may_lack_body) &&
	    http_upload_set(c, call, err) < 0)
		return -1;
	curl_lib.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, c->method);
	return 0;
}

/* ---- the connection ---- */

/* Whether this libcurl can send several requests over one connection that is HTTP/2 from its first
 * byte. 7.88 fails with "Error in the HTTP2 framing layer" (curl's issue 10634; fixed in 8.0.0).
 * TLS connections are not affected. */
static bool can_reuse_plain_http2(void)
{
	unsigned version = curl_lib.version_info(CURLVERSION_NOW)->version_num;

	return version < 0x075800 || version >= 0x080000;
}

static void set_security(CURL *easy, const struct target *target)
{
	const char *ca = getenv("CURL_CA_BUNDLE");

	curl_lib.easy_setopt(easy, CURLOPT_SSLVERSION,
			     (long)CURL_SSLVERSION_TLSv1_2); /* or newer */
	curl_lib.easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_lib.easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	if (ca && *ca)
		curl_lib.easy_setopt(easy, CURLOPT_CAINFO, ca);
	if (target->loopback)
		curl_lib.easy_setopt(easy, CURLOPT_PROXY, "");
	curl_lib.easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_lib.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
}

static void set_timeouts(CURL *easy, const struct call *call, long silence_s)
{
	curl_lib.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)MAX(call->timeout_ms, 0));
	/* The timeout of a file allows for large files and slow lines: too long for a dead one. */
	if (call->body_to || call->body_from) {
		curl_lib.easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_lib.easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, silence_s);
	}
}

/* If a kept connection turns out to be dead, libcurl sends the request again, whatever the method.
 * A call that must not repeat therefore gets a connection of its own. gRPC calls share one: there
 * a body that cannot be read twice prevents it, because grpc.c counts the attempts itself. */
static void set_reuse(struct http_call *c, const struct call *call, const struct target *target)
{
	CURL *easy = c->transfer.easy;
	bool grpc = is_grpc_call(call), shares = grpc && call->body.len;

	c->may_resend = !shares;
	curl_lib.easy_setopt(easy, CURLOPT_FRESH_CONNECT, call->may_repeat || shares ? 0L : 1L);
	if ((grpc && target->plain && !can_reuse_plain_http2()) ||
	    clock_boot_ms() < c->transfer.http->fresh_until) {
		curl_lib.easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
		curl_lib.easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	}
	if (grpc) {
		curl_lib.easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
		curl_lib.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
		curl_lib.easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)PROBE_IDLE_S);
		curl_lib.easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)PROBE_GAP_S);
	}
}

static void set_signature(CURL *easy, const struct call *call)
{
	if (!call->sigv4)
		return;
	curl_lib.easy_setopt(easy, CURLOPT_AWS_SIGV4, call->sigv4);
	curl_lib.easy_setopt(easy, CURLOPT_USERNAME, call->user ? call->user : "");
	curl_lib.easy_setopt(easy, CURLOPT_PASSWORD, call->password ? call->password : "");
}

/* The handshakes of TCP and TLS are over, and libcurl is about to send the request. */
static int on_request(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
	struct http_call *c = ctx;

	(void)ip, (void)local_ip, (void)port, (void)local_port;
	c->down.reply.was_sent = true;
	return CURL_PREREQFUNC_OK;
}

/* Makes the easy handle and sets all its options. ERR_CONFIG, ERR_LOCAL. */
static int prepare_transfer(struct http_call *c, const struct call *call, struct err *err)
{
	struct target target = {0};

	if (http_check_url(call->url, &target, err) < 0)
		return -1;
	CURL *easy = http_transfer_easy(&c->transfer);
	bool http2 = is_grpc_call(call) && target.plain;
	curl_lib.easy_setopt(easy, CURLOPT_URL, call->url);
	curl_lib.easy_setopt(easy, CURLOPT_USERAGENT, c->transfer.http->user_agent);
	curl_lib.easy_setopt(easy, CURLOPT_HTTP_VERSION,
			     http2 ? (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
				   : (long)CURL_HTTP_VERSION_2TLS);
	curl_lib.easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
	curl_lib.easy_setopt(easy, CURLOPT_PREREQDATA, c);
	set_security(easy, &target);
	set_timeouts(easy, call, c->transfer.http->silence_s);
	set_reuse(c, call, &target);
	set_signature(easy, call);
	http_reply_listen(c);
	return add_headers(c, call, err) < 0 || set_request(c, call, err) < 0 ? -1 : 0;
}

struct http_call *http_send_pieces(struct http *http, const struct call *call,
				   http_on_piece *on_piece,
				   void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	struct http_call *c = xcalloc(1, sizeof(*c));
	const char *method = call->method;
	struct err err = {0};

	assert(call->kind == CALL_HTTP && call->url);
	c->transfer.finish = on_finish;
	c->transfer.drop = on_drop;
	http_transfer_add(http, &c->transfer);
	c->method = xstrdup(method && http_is_token(method, strlen(method)) ? method : "?");
	c->shown_url = http_trace_url(call->url);
	c->done = done;
	c->ctx = ctx;
	http_reply_init(c, call, on_piece);
	http_trace_call(call, c->shown_url);
	if (prepare_transfer(c, call, &err) == 0) {
		http_transfer_start(&c->transfer);
		return c;
	}
	http_reply_fail(c, err.kind, err.msg);
	http_transfer_end(&c->transfer);
	report_soon(c);
	return c;
}

struct http_call *http_send(struct http *http, const struct call *call,
			    void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	return http_send_pieces(http, call, NULL, done, ctx);
}

void http_cancel(struct http_call *c)
{
	if (c)
		free_call(c);
}

void http_hang_up(struct http_call *c)
{
	if (c->report)
		return;
	http_reply_measure(c);
	http_transfer_end(&c->transfer);
	report_soon(c);
}
