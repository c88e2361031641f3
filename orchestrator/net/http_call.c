/* http_call.c - carries one HTTP call from its request to its reply. */
#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "http_impl.h"
#include "http_trace.h"

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

/* Frees the call before its owner gets the reply, so that the owner may send another one. */
static void report(struct http_call *c)
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
	report(c);
}

static void report_soon(struct http_call *c)
{
	c->report = loop_timer(c->transfer.http->loop, 0, on_report, c);
}

static const char *without_connection(CURLcode rc)
{
	switch ((int)rc) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY: return "cannot be found: is this machine on a network?";
	}
	return http_transfer_kind(NULL, rc) == ERR_UNTRUSTED
		       ? "cannot be trusted: is a proxy or a network's sign-in page in between?"
		       : "cannot be reached";
}

/* No request left, so the reader needs the server's name and not the request. */
static void fail_unsent(struct http_call *c, enum err_kind kind, CURLcode rc, const char *problem)
{
	struct reply *reply = &c->down.reply;
	const char *host = strstr(c->shown_url, "://");

	host = host ? host + 3 : c->shown_url;
	reply->failed = true;
	err_set(&reply->err, kind, "%.*s %s (%s)", (int)strcspn(host, "/?#"), host,
		without_connection(rc), problem);
}

static void on_finish(struct transfer *t, CURLcode rc)
{
	struct http_call *c = (struct http_call *)t;

	http_reply_measure(c);
	/* libcurl takes the end of the connection for the end of the head. */
	if (rc == CURLE_OK && !c->down.head_whole)
		http_reply_fail(c, ERR_NETWORK, "the connection was lost within the reply's head");
	/* After a timeout, a stream of HTTP/2 leaves its connection open. Later calls would use
	 * that connection, even if its peer is gone. */
	if (rc == CURLE_OPERATION_TIMEDOUT)
		t->http->fresh_until = clock_boot_ms() + FRESH_MS;
	if (rc != CURLE_OK && !c->down.reply.was_sent && !c->down.reply.failed &&
	    http_transfer_kind(t, rc) != ERR_CONFIG)
		fail_unsent(c, http_transfer_kind(t, rc), rc, http_transfer_problem(t, rc));
	else if (rc != CURLE_OK)
		http_reply_fail(c, http_transfer_kind(t, rc), http_transfer_problem(t, rc));
	report(c);
}

/* ---- the request ---- */

static bool is_grpc(const struct call *call)
{
	const char *type = http_header_value(call, "Content-Type");

	return type && !strncasecmp(type, "application/grpc", 16);
}

static void add_header(struct http_call *c, const char *line)
{
	c->headers = curl_lib.slist_append(c->headers, line);
}

/* libcurl would drop "Name:", and takes "Name;" for a header without a value. */
static void add_empty_header(struct http_call *c, const char *line, size_t name_len)
{
	CLEANUP(free_text) char *semicolon = xasprintf("%.*s;", (int)name_len, line);

	add_header(c, semicolon);
}

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
	if (is_grpc(call)) { /* gRPC clients send neither */
		add_header(c, "Accept:");
		add_header(c, "Content-Length:");
	}
	curl_lib.easy_setopt(c->transfer.easy, CURLOPT_HTTPHEADER, c->headers);
	return 0;
}

static int set_request(struct http_call *c, const struct call *call, struct err *err)
{
	CURL *easy = c->transfer.easy;
	bool bare = !strcmp(c->method, "GET") || !strcmp(c->method, "DELETE");

	if (!strcmp(c->method, "?"))
		return err_set(err, ERR_CONFIG, "not a method");
	if (!call->body_from && !strcmp(c->method, "HEAD")) {
		curl_lib.easy_setopt(easy, CURLOPT_NOBODY, 1L);
		return 0;
	}
	if ((call->body_from || call->body.len || !bare) && http_upload_set(c, call, err) < 0)
		return -1;
	curl_lib.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, c->method);
	return 0;
}

/* ---- the connection ---- */

/* libcurl 7.88 breaks the second request of a connection that is HTTP/2 from its first byte ("Error
 * in the HTTP2 framing layer", curl's issue 10634; fixed in 8.0.0). TLS connections are not
 * affected. */
static bool keeps_plain_http2(void)
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
	bool grpc = is_grpc(call), once = grpc && call->body.len;

	c->may_resend = !once;
	curl_lib.easy_setopt(easy, CURLOPT_FRESH_CONNECT, call->may_repeat || once ? 0L : 1L);
	if ((grpc && target->plain && !keeps_plain_http2()) ||
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

/* libcurl calls this after the handshakes of TCP and TLS, before it sends the request. */
static int on_request(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
	struct http_call *c = ctx;

	(void)ip, (void)local_ip, (void)port, (void)local_port;
	c->down.reply.was_sent = true;
	return CURL_PREREQFUNC_OK;
}

static int prepare(struct http_call *c, const struct call *call, struct err *err)
{
	struct target target = {0};

	if (http_check_url(call->url, &target, err) < 0)
		return -1;
	CURL *easy = http_transfer_easy(&c->transfer);
	bool http2 = is_grpc(call) && target.plain;
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
	if (prepare(c, call, &err) == 0) {
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
