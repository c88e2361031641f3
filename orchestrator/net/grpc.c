/* grpc.c - carries gRPC calls over HTTP/2: frames, statuses, unary calls and streams */
#include "grpc.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/err.h"

/* ---- grpc wire ----
 * Encodes and decodes gRPC's frames and status. */

enum { WORDS_MOST = 300, AFTER_LEAST_MS = 100, AFTER_MOST_S = 86400 };

/* ---- codes ---- */

static const struct {
	const char *name;
	enum err_kind kind;
} codes[] = {
	[GRPC_OK] = {"OK", ERR_NONE},
	[GRPC_CANCELLED] = {"CANCELLED", ERR_TRANSIENT},
	[GRPC_UNKNOWN] = {"UNKNOWN", ERR_TRANSIENT},
	[GRPC_INVALID_ARGUMENT] = {"INVALID_ARGUMENT", ERR_REFUSED},
	[GRPC_DEADLINE_EXCEEDED] = {"DEADLINE_EXCEEDED", ERR_TRANSIENT},
	[GRPC_NOT_FOUND] = {"NOT_FOUND", ERR_NOT_FOUND},
	[GRPC_ALREADY_EXISTS] = {"ALREADY_EXISTS", ERR_REFUSED},
	[GRPC_PERMISSION_DENIED] = {"PERMISSION_DENIED", ERR_REFUSED},
	[GRPC_RESOURCE_EXHAUSTED] = {"RESOURCE_EXHAUSTED", ERR_RATE_LIMITED},
	[GRPC_FAILED_PRECONDITION] = {"FAILED_PRECONDITION", ERR_REFUSED},
	[GRPC_ABORTED] = {"ABORTED", ERR_TRANSIENT},
	[GRPC_OUT_OF_RANGE] = {"OUT_OF_RANGE", ERR_REFUSED},
	[GRPC_UNIMPLEMENTED] = {"UNIMPLEMENTED", ERR_REFUSED},
	[GRPC_INTERNAL] = {"INTERNAL", ERR_TRANSIENT},
	[GRPC_UNAVAILABLE] = {"UNAVAILABLE", ERR_TRANSIENT},
	[GRPC_DATA_LOSS] = {"DATA_LOSS", ERR_REFUSED},
	[GRPC_UNAUTHENTICATED] = {"UNAUTHENTICATED", ERR_CREDENTIALS},
};

/* The code itself, or UNKNOWN if it is not defined. */
static int defined_code(int code)
{
	return code >= 0 && code < (int)ARRAY_LEN(codes) ? code : GRPC_UNKNOWN;
}

const char *grpc_code_name(int code)
{
	return codes[defined_code(code)].name;
}

enum err_kind grpc_err_kind(int code)
{
	return codes[defined_code(code)].kind;
}

int grpc_code_of_http(int http_status)
{
	switch (http_status) {
	case 400: return GRPC_INTERNAL;
	case 401: return GRPC_UNAUTHENTICATED;
	case 403: return GRPC_PERMISSION_DENIED;
	case 404: return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504: return GRPC_UNAVAILABLE;
	}
	return GRPC_UNKNOWN;
}

/* The code nearest to a failure that burst itself noticed. */
static int grpc_code_of_kind(enum err_kind kind)
{
	switch ((int)kind) {
	case ERR_NETWORK:
	case ERR_TRANSIENT: return GRPC_UNAVAILABLE;
	case ERR_UNTRUSTED: return GRPC_RESOURCE_EXHAUSTED;
	case ERR_BUG: return GRPC_INTERNAL;
	}
	return GRPC_UNKNOWN;
}

/* ---- frames ---- */

static void put_length(unsigned char to[4], size_t len)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(len >> (24 - 8 * i));
}

void grpc_add_frame(struct str *to, const void *message, size_t len)
{
	unsigned char prefix[5] = {0};

	put_length(prefix + 1, len);
	str_addn(to, prefix, sizeof(prefix));
	str_addn(to, message, len);
}

static void end_message(struct grpc_reader *r)
{
	r->have = 0;
	r->messages++;
	r->whole = r->to->len;
}

/* Checks a complete prefix: whether a message may come, and its length. Errors: grpc_read(). */
static int begin_message(struct grpc_reader *r, struct err *err)
{
	size_t len = (size_t)r->prefix[1] << 24 | (size_t)r->prefix[2] << 16 |
		     (size_t)r->prefix[3] << 8 | r->prefix[4];
	size_t extra = r->stream ? 4 : 0;

	if (r->prefix[0] == 1)
		return err_set(err, ERR_BUG,
			       "the server sends a compressed message, which was not asked for");
	if (r->prefix[0] > 1)
		return err_set(err, ERR_BUG, "the reply is not framed as gRPC (flag %d)",
			       r->prefix[0]);
	if (!r->stream && r->messages)
		return err_set(err, ERR_BUG,
			       "the server sends a second message where there is one");
	if (len > r->most || r->to->len + extra > r->most - len)
		return err_set(err, ERR_UNTRUSTED,
			       "a message of %zu bytes makes the reply larger than allowed (%zu)",
			       len, r->most);
	if (r->stream)
		str_addn(r->to, r->prefix + 1, 4);
	r->left = len;
	if (!len)
		end_message(r);
	return 0;
}

int grpc_read(struct grpc_reader *r, const void *bytes, size_t len, struct err *err)
{
	const unsigned char *at = bytes, *end = at + len;

	while (at < end) {
		if (r->have < sizeof(r->prefix)) {
			r->prefix[r->have++] = *at++;
			if (r->have == sizeof(r->prefix) && begin_message(r, err) < 0)
				return -1;
			continue;
		}
		size_t n = MIN(r->left, (size_t)(end - at));
		str_addn(r->to, at, n);
		at += n;
		r->left -= n;
		if (!r->left)
			end_message(r);
	}
	return 0;
}

int grpc_read_end(const struct grpc_reader *r, struct err *err)
{
	if (r->have)
		return err_set(err, ERR_BUG, "the reply ends in the middle of a message");
	if (!r->stream && !r->messages)
		return err_set(err, ERR_BUG, "the server says OK and sends no message");
	return 0;
}

void grpc_read_drop(struct grpc_reader *r)
{
	if (r->to->len > r->whole) {
		r->to->len = r->whole;
		r->to->s[r->whole] = '\0';
	}
	r->have = r->left = 0;
}

/* ---- the status ---- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes %XX in place. %00 becomes a blank; invalid sequences stay. */
static void decode_percent(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		int high = *p == '%' ? hex_value(p[1]) : -1, low = high >= 0 ? hex_value(p[2]) : -1;
		if (low >= 0) {
			int byte = high << 4 | low;
			*to++ = byte ? (char)byte : ' ';
			p += 2;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
}

/* Appends the bytes of a header's base64, which may lack its padding; nothing if it is invalid. */
static void decode_details(struct str *to, char *text)
{
	CLEANUP(str_free) struct str padded = STR_INIT;

	text[strcspn(text, ", ")] = '\0';
	str_add(&padded, text);
	while (padded.len % 4)
		str_addc(&padded, '=');
	base64_decode(to, str_text(&padded), padded.len, NULL);
}

bool grpc_read_status(const struct reply *reply, int *code, struct str *words, struct str *details)
{
	size_t room = reply->head.len + 1;
	CLEANUP(free_text) char *text = xmalloc(room);
	char number[16];

	if (!reply_header(reply, "grpc-status", number, sizeof(number)))
		return false;
	size_t digits = strspn(number, "0123456789");
	*code = digits && digits < 4 && !number[digits] ? defined_code(atoi(number)) : GRPC_UNKNOWN;
	if (reply_header(reply, "grpc-message", text, room)) {
		decode_percent(text);
		str_add_printable(words, text, (size_t)utf8_fit(text, WORDS_MOST), 0);
	}
	if (reply_header(reply, "grpc-status-details-bin", text, room))
		decode_details(details, text);
	return true;
}

/* ---- details: the little of protobuf that is needed ---- */

struct bytes {
	const unsigned char *at, *end;
};

enum { WIRE_VARINT = 0, WIRE_8_BYTES = 1, WIRE_BYTES = 2, WIRE_4_BYTES = 5 };

struct field {
	uint64_t number;
	int type;           /* WIRE_* */
	struct bytes value; /* empty for WIRE_VARINT */
};

/* Moves behind a number. Returns false if the bytes end first or it has more than 64 bits. */
static bool take_varint(struct bytes *b, uint64_t *out)
{
	*out = 0;
	for (int shift = 0; shift < 64 && b->at < b->end; shift += 7) {
		unsigned char c = *b->at++;
		*out |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return true;
	}
	return false;
}

static bool take_bytes(struct bytes *b, uint64_t len, struct bytes *out)
{
	if (len > (uint64_t)(b->end - b->at))
		return false;
	*out = (struct bytes){b->at, b->at + len};
	b->at += len;
	return true;
}

/* Returns false at the end, and if the bytes are not protobuf. */
static bool take_field(struct bytes *b, struct field *f)
{
	uint64_t tag, len = 0;

	if (!take_varint(b, &tag))
		return false;
	f->number = tag >> 3;
	f->type = (int)(tag & 7);
	f->value = (struct bytes){b->at, b->at};
	switch (f->type) {
	case WIRE_VARINT: return take_varint(b, &len);
	case WIRE_8_BYTES: return take_bytes(b, 8, &f->value);
	case WIRE_BYTES: return take_varint(b, &len) && take_bytes(b, len, &f->value);
	case WIRE_4_BYTES: return take_bytes(b, 4, &f->value);
	}
	return false;
}

/* Whether a type's URL ends with the message's name, behind a '.' or '/'. */
static bool is_retry_policy(struct bytes url)
{
	static const char name[] = "RPCRetryPolicy";
	size_t len = sizeof(name) - 1, have = (size_t)(url.end - url.at);

	return have > len && !memcmp(url.end - len, name, len) &&
	       (url.end[-(ptrdiff_t)len - 1] == '.' || url.end[-(ptrdiff_t)len - 1] == '/');
}

/* Reads the delay of an RPCRetryPolicy, a float in field 1. Returns false if it is not a number. */
static bool read_policy(struct bytes policy, int64_t *after_ms)
{
	struct field f;
	float seconds = 0;

	while (take_field(&policy, &f)) {
		if (f.number != 1 || f.type != WIRE_4_BYTES)
			continue;
		const unsigned char *p = f.value.at;
		uint32_t bits = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				(uint32_t)p[3] << 24;
		memcpy(&seconds, &bits, sizeof(seconds));
	}
	if (isnan(seconds))
		return false;
	*after_ms = seconds >= AFTER_MOST_S ? AFTER_MOST_S * INT64_C(1000)
					    : llround(MAX((double)seconds, 0.0) * 1000);
	*after_ms = MAX(*after_ms, AFTER_LEAST_MS);
	return true;
}

/* Reads a google.protobuf.Any: a type's URL, a message. Returns false if it is no RPCRetryPolicy.
 */
static bool read_any(struct bytes any, int64_t *after_ms)
{
	struct bytes url = {any.at, any.at}, value = url;
	struct field f;

	while (take_field(&any, &f)) {
		if (f.number == 1 && f.type == WIRE_BYTES)
			url = f.value;
		if (f.number == 2 && f.type == WIRE_BYTES)
			value = f.value;
	}
	return is_retry_policy(url) && read_policy(value, after_ms);
}

bool grpc_read_retry_policy(const void *details, size_t len, int64_t *after_ms)
{
	struct bytes status = {details, len ? (const unsigned char *)details + len : details};
	struct field f;

	while (take_field(&status, &f))
		if (f.number == 3 && f.type == WIRE_BYTES && read_any(f.value, after_ms))
			return true;
	return false;
}

/* ---- grpc ----
 * Carries gRPC calls over HTTP/2. */

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

/* Whether the reply is from a gRPC server and not from a proxy. */
static bool is_grpc(const struct reply *r)
{
	char type[32];

	return r->status == 200 && reply_header(r, "Content-Type", type, sizeof(type)) &&
	       !strncasecmp(type, "application/grpc", 16);
}

/* An http_on_piece. */
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

/* Sets r->err for a status that is not OK. words: the server's message, or empty. */
static void set_status_error(const struct grpc_call *g, struct reply *r, struct str *words)
{
	const char *name = grpc_code_name(r->grpc_status);

	log_redact(words);
	if (words->len)
		err_set(&r->err, grpc_err_kind(r->grpc_status), "%s: %s: %s", g->name, name,
			str_text(words));
	else
		err_set(&r->err, grpc_err_kind(r->grpc_status), "%s: %s", g->name, name);
}

/* Marks the reply as failed: no status came, or one that contradicts the messages. */
static void fail_reply(struct grpc_call *g, struct reply *r, enum err_kind kind, const char *what)
{
	r->failed = true;
	err_set(&r->err, kind, "%s: %s", g->name, what);
	r->grpc_status = grpc_code_of_kind(kind);
}

/* Sets the status and the error of a reply whose connection did not fail. */
static void read_outcome(struct grpc_call *g, struct reply *r)
{
	CLEANUP(str_free) struct str words = STR_INIT;
	struct err err = {0};

	if (grpc_read_status(r, &r->grpc_status, &words, &r->details)) {
		if (r->grpc_status != GRPC_OK)
			set_status_error(g, r, &words);
		else if (!g->hung_up && grpc_read_end(&g->reader, &err) < 0)
			fail_reply(g, r, err.kind, err.msg);
		return;
	}
	if (g->hung_up && !r->was_sent) {
		fail_reply(g, r, ERR_NETWORK,
			   "not connected by the time at which the stream was to end");
		return;
	}
	if (g->hung_up && (!r->status || is_grpc(r)))
		return;
	if (is_grpc(r)) { /* libcurl may report a lost connection as the end of the reply */
		fail_reply(g, r, ERR_NETWORK, "the reply ends without a status");
		r->grpc_status = GRPC_UNKNOWN;
		return;
	}
	r->grpc_status = grpc_code_of_http(r->status);
	str_addf(&words, "HTTP status %d without a gRPC status", r->status);
	set_status_error(g, r, &words);
}

static void trace_reply(const struct grpc_call *g, const struct reply *r)
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

/* Turns the HTTP reply into the gRPC reply, frees the call, and passes the reply to done(). */
static void on_http_done(void *ctx, struct reply *reply)
{
	struct grpc_call *g = ctx;
	struct reply r = *reply;
	void (*done)(void *, struct reply *) = g->done;
	void *done_ctx = g->ctx;
	int64_t after_ms;

	memset(reply, 0, sizeof(*reply));
	g->http = NULL;
	if (!r.failed)
		read_outcome(g, &r);
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
	trace_reply(g, &r);
	free_call(g);
	done(done_ctx, &r);
	reply_free(&r);
}

/* The stream has lasted for stream_limit_ms. */
static void on_stream_limit(void *ctx)
{
	struct grpc_call *g = ctx;

	g->timer = NULL;
	g->hung_up = true;
	http_hang_up(g->http);
}

/* Reports, in the turn after grpc_send(), that the request was too large. */
static void on_refusal(void *ctx)
{
	struct grpc_call *g = ctx;
	struct reply r = {
		.failed = true, .err = g->refusal, .grpc_status = GRPC_RESOURCE_EXHAUSTED};

	g->timer = NULL;
	on_http_done(g, &r);
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
static void make_uuid(char key[40])
{
	unsigned char b[16];

	random_bytes(b, sizeof(b));
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(key, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
}

/* Adds the headers by which the server tells the attempts of a call apart; begins *t if needed. */
static void add_retry_headers(struct call *to, const struct call *call, struct grpc_tries *t)
{
	int64_t now = clock_boot_ms();

	if (!t->key[0])
		make_uuid(t->key);
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

/* Makes the HTTP call that carries a gRPC call. Free with call_free(). */
static void make_http_call(struct call *to, const struct call *call, struct grpc_tries *tries)
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
		add_retry_headers(to, call, tries);
	grpc_add_frame(&to->body, call->body.s, call->body.len);
}

/* The method's name in a URL, behind its last slash, for messages. The caller frees it. */
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
	make_http_call(&inner, call, tries);
	/* a frame has at most 5 bytes on the wire for each 4 that are kept */
	inner.max_bytes = most / 4 * 5 + 1024;
	g->http = http_send_pieces(http, &inner, on_piece, on_http_done, g);
	call_free(&inner);
	if (call->stream && call->stream_limit_ms > 0)
		g->timer = loop_timer(loop, call->stream_limit_ms, on_stream_limit, g);
	return g;
}

/* ---- retries ---- */

/* Whether a failure may be gone when the call is sent again. */
static bool is_passing_failure(const struct reply *r)
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

int64_t grpc_retry_wait_ms(struct grpc_tries *t, const struct call *call, const struct reply *r)
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
	if (!repeats || t->again >= AGAIN_MOST || !is_passing_failure(r) ||
	    r->retry_after_ms > most_ms)
		return -1;
	int64_t wait = (int64_t)AGAIN_FIRST_MS << t->again++;
	return MAX(wait + (int64_t)(random_u64() % (uint64_t)wait), r->retry_after_ms);
}
