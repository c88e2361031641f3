/* grpc.c - carries gRPC calls over HTTP/2. */
#include "grpc.h"

#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"

enum {
	AGAIN_MOST = 3,
	AGAIN_FIRST_MS = 100,
	PUT_OFF_MS = 60000,
	OTHER_MOST = 4096,
	TIMEOUT_DIGITS_MOST = 99999999,
	TIMER_SLACK_MS = 10
};

struct grpc_call {
	struct http_call *http;
	struct timer *timer; /* until a stream is hung up, or a refusal is reported */
	char *name;          /* "SandboxCreate" */
	int64_t timeout_ms;
	bool stream, hung_up;
	bool framed; /* the reply is gRPC's */
	struct grpc_reader reader;
	struct str body;
	struct str other; /* the first bytes of a body that is not gRPC's, for --trace */
	struct err refusal;
	void (*done)(void *ctx, struct reply *reply);
	void *ctx;
};

static void free_call(struct grpc_call *g)
{
	http_cancel(g->http);
	loop_untimer(g->timer);
	str_free(&g->body);
	str_free(&g->other);
	free(g->name);
	free(g);
}

void grpc_cancel(struct grpc_call *g)
{
	if (g)
		free_call(g);
}

/* ---- the reply ---- */

static bool is_grpc(const struct reply *r)
{
	char type[32];

	return r->status == 200 && reply_header(r, "Content-Type", type, sizeof(type)) &&
	       !strncasecmp(type, "application/grpc", 16);
}

static int on_piece(void *ctx, const struct reply *so_far, const void *bytes, size_t len,
		    struct err *err)
{
	struct grpc_call *g = ctx;

	if (!g->framed && is_grpc(so_far))
		g->framed = true;
	if (g->framed)
		return grpc_read(&g->reader, bytes, len, err);
	str_addn(&g->other, bytes, MIN(len, OTHER_MOST - g->other.len));
	return 0;
}

/* The message of a status that is not OK. */
static void describe(const struct grpc_call *g, struct reply *r, struct str *words)
{
	const char *name = grpc_code_name(r->grpc_status);

	log_redact(words);
	if (words->len)
		err_set(&r->err, grpc_err_kind(r->grpc_status), "%s: %s: %s", g->name, name,
			str_text(words));
	else
		err_set(&r->err, grpc_err_kind(r->grpc_status), "%s: %s", g->name, name);
}

static void fail(struct grpc_call *g, struct reply *r, enum err_kind kind, const char *what)
{
	r->failed = true;
	err_set(&r->err, kind, "%s: %s", g->name, what);
	r->grpc_status = grpc_code_of_kind(kind);
}

/* The connection did not fail: takes what the server answered. */
static void judge(struct grpc_call *g, struct reply *r)
{
	CLEANUP(str_free) struct str words = STR_INIT;
	struct err err = {0};

	if (grpc_read_status(r, &r->grpc_status, &words, &r->details)) {
		if (r->grpc_status != GRPC_OK)
			describe(g, r, &words);
		else if (!g->hung_up && grpc_read_end(&g->reader, &err) < 0)
			fail(g, r, err.kind, err.msg);
		return;
	}
	if (g->hung_up && !r->was_sent) {
		fail(g, r, ERR_NETWORK, "not connected by the time at which the stream was to end");
		return;
	}
	if (g->hung_up && (!r->status || is_grpc(r)))
		return;
	if (is_grpc(r)) { /* libcurl sometimes takes a lost connection for the end of the reply */
		fail(g, r, ERR_NETWORK, "the reply ends without a status");
		r->grpc_status = GRPC_UNKNOWN;
		return;
	}
	r->grpc_status = grpc_code_of_http(r->status);
	str_addf(&words, "HTTP status %d without a gRPC status", r->status);
	describe(g, r, &words);
}

static void trace(const struct grpc_call *g, const struct reply *r)
{
	CLEANUP(str_free) struct str other = STR_INIT;

	if (!log_wants(LOG_TRACE))
		return;
	http_trace_body(&other, g->other.s, g->other.len);
	if (other.len)
		log_line(LOG_TRACE, "< %s", str_text(&other));
	log_line(LOG_TRACE, "< %s: %s, [%zu message%s, %zu bytes]%s%s", g->name,
		 grpc_code_name(r->grpc_status), g->reader.messages,
		 g->reader.messages == 1 ? "" : "s", r->body.len, g->hung_up ? ", hung up" : "",
		 r->failed ? ", failed" : "");
}

static void on_http(void *ctx, struct reply *reply)
{
	struct grpc_call *g = ctx;
	struct reply r = *reply;
	void (*done)(void *, struct reply *) = g->done;
	void *done_ctx = g->ctx;
	int64_t after_ms;

	memset(reply, 0, sizeof(*reply));
	g->http = NULL;
	if (!r.failed)
		judge(g, &r);
	else
		r.grpc_status = r.err.kind == ERR_NETWORK && g->timeout_ms &&
						r.wall_ms + TIMER_SLACK_MS >= g->timeout_ms
					? GRPC_DEADLINE_EXCEEDED
					: grpc_code_of_kind(r.err.kind);
	if (grpc_read_retry_policy(r.details.s, r.details.len, &after_ms))
		r.retry_after_ms = after_ms;
	r.err.retry_after_ms = r.err.kind ? r.retry_after_ms : 0;
	grpc_read_drop(&g->reader);
	if (g->stream || (!r.failed && r.grpc_status == GRPC_OK)) {
		str_free(&r.body);
		r.body = g->body;
		g->body = STR_INIT;
	}
	trace(g, &r);
	free_call(g);
	done(done_ctx, &r);
	reply_free(&r);
}

static void on_limit(void *ctx)
{
	struct grpc_call *g = ctx;

	g->timer = NULL;
	g->hung_up = true;
	http_hang_up(g->http);
}

static void on_refusal(void *ctx)
{
	struct grpc_call *g = ctx;
	struct reply r = {
		.failed = true, .err = g->refusal, .grpc_status = GRPC_RESOURCE_EXHAUSTED};

	g->timer = NULL;
	on_http(g, &r);
}

/* ---- the request ---- */

static bool has_header(const struct call *call, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < call->header_count; i++)
		if (!strncasecmp(call->headers[i], name, len) && call->headers[i][len] == ':')
			return true;
	return false;
}

/* A random UUID, as RFC 9562 writes it (version 4). */
static void make_key(char key[40])
{
	unsigned char b[16];

	random_bytes(b, sizeof(b));
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(key, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
}

static void add_tries(struct call *to, const struct call *call, struct grpc_tries *t)
{
	int64_t now = clock_boot_ms();

	if (!t->key[0])
		make_key(t->key);
	if (!t->first_ms)
		t->first_ms = now;
	double since_s = (double)(now - t->first_ms) / 1000;
	if (!has_header(call, "x-idempotency-key"))
		call_header(to, "x-idempotency-key: %s", t->key);
	call_header(to, "x-retry-attempt: %d", t->again);
	if (t->again)
		call_header(to, "x-retry-delay: %.3f", since_s);
	call_header(to, "x-throttle-retry-attempt: %d", t->put_off);
	if (t->put_off)
		call_header(to, "x-throttle-retry-delay: %.3f", since_s);
}

static void add_timeout(struct call *to, int64_t timeout_ms)
{
	if (timeout_ms > TIMEOUT_DIGITS_MOST)
		call_header(to, "grpc-timeout: %lldS",
			    (long long)MIN(timeout_ms / 1000, TIMEOUT_DIGITS_MOST));
	else if (timeout_ms > 0)
		call_header(to, "grpc-timeout: %lldm", (long long)timeout_ms);
}

static void build(struct call *to, const struct call *call, struct grpc_tries *tries)
{
	*to = (struct call){
		.kind = CALL_HTTP,
		.class = call->class,
		.may_repeat = call->may_repeat,
		.timeout_ms = call->timeout_ms,
		.method = "POST",
		.url = xstrdup(call->url),
	};
	call_header(to, "Content-Type: application/grpc");
	call_header(to, "TE: trailers");
	call_header(to, "grpc-accept-encoding: identity");
	call_header(to, "accept-encoding: identity");
	add_timeout(to, call->timeout_ms);
	for (size_t i = 0; i < call->header_count; i++)
		call_header(to, "%s", call->headers[i]);
	if (!call->stream)
		add_tries(to, call, tries);
	grpc_add_frame(&to->body, call->body.s, call->body.len);
}

/* The part after the last slash of the URL, as far as it is a name. */
static char *method_name(const char *url)
{
	const char *slash = strrchr(url, '/'), *from = slash ? slash + 1 : url;
	CLEANUP(str_free) struct str name = STR_INIT;

	str_add_printable(&name, from, strcspn(from, "?#"), 80);
	return xstrdup(name.len ? str_text(&name) : "gRPC");
}

struct grpc_call *grpc_send(struct loop *loop, struct http *http, const struct call *call,
			    struct grpc_tries *tries, void (*done)(void *ctx, struct reply *reply),
			    void *ctx)
{
	struct grpc_call *g = xcalloc(1, sizeof(*g));
	size_t most = call->max_bytes ? MIN(call->max_bytes, GRPC_MOST_BYTES) : GRPC_MOST_BYTES;

	g->name = method_name(call->url);
	g->timeout_ms = call->timeout_ms;
	g->stream = call->stream;
	g->done = done;
	g->ctx = ctx;
	g->reader = (struct grpc_reader){.stream = call->stream, .most = most, .to = &g->body};
	if (call->body.len > GRPC_MOST_BYTES) {
		err_set(&g->refusal, ERR_REFUSED,
			"%s: a request of %zu bytes is larger than the %d that gRPC calls may have",
			g->name, call->body.len, GRPC_MOST_BYTES);
		g->timer = loop_timer(loop, 0, on_refusal, g);
		return g;
	}
	struct call inner;
	build(&inner, call, tries);
	/* a frame has at most 5 bytes on the wire for each 4 that are kept */
	inner.max_bytes = most / 4 * 5 + 1024;
	g->http = http_send_pieces(http, &inner, on_piece, on_http, g);
	call_free(&inner);
	if (call->stream && call->stream_limit_ms > 0)
		g->timer = loop_timer(loop, call->stream_limit_ms, on_limit, g);
	return g;
}

/* ---- again? ---- */

static bool can_pass(const struct reply *r)
{
	if (r->failed)
		return r->err.kind == ERR_NETWORK || r->err.kind == ERR_TRANSIENT;
	switch (r->grpc_status) {
	case GRPC_CANCELLED:
	case GRPC_UNKNOWN:
	case GRPC_DEADLINE_EXCEEDED:
	case GRPC_INTERNAL:
	case GRPC_UNAVAILABLE: return true;
	}
	return false;
}

int64_t grpc_again_ms(struct grpc_tries *t, const struct call *call, const struct reply *r)
{
	int64_t most_ms = call->put_off_ms ? call->put_off_ms : PUT_OFF_MS, after_ms;

	if (call->stream || (!r->failed && r->grpc_status == GRPC_OK))
		return -1;
	if (grpc_read_retry_policy(r->details.s, r->details.len, &after_ms)) {
		if (!call->may_repeat && r->grpc_status != GRPC_RESOURCE_EXHAUSTED)
			return -1;
		if (t->put_off_ms + after_ms > most_ms)
			return -1;
		t->put_off_ms += after_ms;
		t->put_off++;
		return after_ms;
	}
	bool repeats = call->may_repeat ||
		       (call->once_by_name && !r->failed && r->grpc_status == GRPC_UNAVAILABLE);
	if (!repeats || t->again >= AGAIN_MOST || !can_pass(r) || r->retry_after_ms > most_ms)
		return -1;
	int64_t wait = (int64_t)AGAIN_FIRST_MS << t->again++;
	return MAX(wait + (int64_t)(random_u64() % (uint64_t)wait), r->retry_after_ms);
}
