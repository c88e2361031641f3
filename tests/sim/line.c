/* line.c - what lies below the real engine/caller.c and net/grpc.c: a loop whose timers are
 * happenings on the virtual clock, and HTTP to servers in memory that read the very bytes (see
 * the Makefile: --wrap). What goes wrong on the way goes wrong here, call by call; and who
 * stands here sees whether those two keep their own rules. */
#include <stdlib.h>

#include "line.h"

enum { SILENCE_MS = 60000 }; /* as in http.c */

struct timer {                   /* the data of its happening */
	void (*fire)(void *ctx); /* NULL: no more */
	void *ctx;
};

/* ---- whose code runs now: its clock, and its chance ---- */

static struct client *calling;

struct client *line_caller(void)
{
	return calling;
}

struct client *line_enter(struct client *cl)
{
	struct client *was = calling;

	calling = cl;
	return was;
}

void line_leave(struct client *was)
{
	calling = was;
}

int64_t __real_clock_boot_ms(void);
int64_t __real_clock_wall_ms(void);
uint64_t __real_random_u64(void);
void __real_random_bytes(void *to, size_t len);
int64_t __wrap_clock_boot_ms(void);
int64_t __wrap_clock_wall_ms(void);
uint64_t __wrap_random_u64(void);
void __wrap_random_bytes(void *to, size_t len);
void __wrap_log_secret(const char *text);
struct timer *__wrap_loop_timer(struct loop *loop, int64_t after_ms, void (*fire)(void *ctx),
				void *ctx);
void __wrap_loop_untimer(struct timer *t);
struct http_call *__wrap_http_send(struct http *http, const struct call *call,
				   void (*done)(void *ctx, struct reply *reply), void *ctx);
struct http_call *__wrap_http_send_pieces(struct http *http, const struct call *call,
					  http_on_piece *on_piece,
					  void (*done)(void *ctx, struct reply *reply), void *ctx);
void __wrap_http_hang_up(struct http_call *c);
void __wrap_http_cancel(struct http_call *c);

int64_t __wrap_clock_boot_ms(void)
{
	return calling ? boot_now(calling) : __real_clock_boot_ms();
}

int64_t __wrap_clock_wall_ms(void)
{
	return calling ? wall_now(calling) : __real_clock_wall_ms();
}

uint64_t __wrap_random_u64(void)
{
	if (!calling)
		return __real_random_u64();
	uint64_t z = (calling->sim->lines->random += 0x9e3779b97f4a7c15ull);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	return z ^ (z >> 31);
}

void __wrap_random_bytes(void *to, size_t len)
{
	if (!calling) {
		__real_random_bytes(to, len);
		return;
	}
	for (size_t i = 0; i < len; i += 8) {
		uint64_t few = __wrap_random_u64();
		memcpy((char *)to + i, &few, MIN(len - i, sizeof(few)));
	}
}

/* Otherwise millions of session tokens would be remembered. */
void __wrap_log_secret(const char *text)
{
	(void)text;
}

/* ---- the loop ---- */

struct timer *__wrap_loop_timer(struct loop *loop, int64_t after_ms, void (*fire)(void *ctx),
				void *ctx)
{
	if (loop->cut)
		return NULL;
	struct timer *t = xcalloc(1, sizeof(*t));
	*t = (struct timer){fire, ctx};
	client_later(loop->cl, after_ms, W_WIRE_AGAIN)->data = t;
	return t;
}

void __wrap_loop_untimer(struct timer *t)
{
	if (t)
		t->fire = NULL;
}

void line_fires(const struct happening *h)
{
	struct timer *t = h->data;

	if (t->fire)
		t->fire(t->ctx);
}

/* ---- trips ---- */

void line_open(struct sim *s)
{
	s->lines = xcalloc(1, sizeof(*s->lines));
	s->lines->random = s->plan->seed;
}

static void empty(struct http_call *c)
{
	call_free(&c->call);
	answer_free(&c->answer);
	reply_free(&c->reply);
}

void line_close(struct sim *s)
{
	struct lines *l = s->lines;

	if (!l)
		return;
	for (size_t i = 0; i < l->count; i++) {
		empty(l->calls[i]);
		free(l->calls[i]);
	}
	free(l->calls);
	free(l->idle);
	free(l);
	s->lines = NULL;
}

static void copy_call(struct call *to, const struct call *from)
{
	*to = *from;
	to->url = xstrdup(from->url);
	to->body = STR_INIT;
	str_addn(&to->body, from->body.s, from->body.len);
	to->headers = xcalloc(from->header_count, sizeof(*to->headers));
	for (size_t i = 0; i < from->header_count; i++)
		to->headers[i] = xstrdup(from->headers[i]);
	to->sigv4 = from->sigv4 ? xstrdup(from->sigv4) : NULL;
	to->user = from->user ? xstrdup(from->user) : NULL;
	to->password = from->password ? xstrdup(from->password) : NULL;
	to->body_to = from->body_to ? xstrdup(from->body_to) : NULL;
	to->body_from = NULL;
}

static struct http_call *new_call(struct client *cl, struct op *op, const struct call *call)
{
	struct lines *l = cl->sim->lines;
	struct http_call *c;

	if (l->idle_count) {
		c = l->idle[--l->idle_count];
	} else {
		c = xcalloc(1, sizeof(*c));
		c->slot = l->count;
		GROW(l->calls, l->count, l->cap);
		l->calls[l->count++] = c;
	}
	*c = (struct http_call){.slot = c->slot,
				.serial = ++l->serials,
				.cl = cl,
				.op = op,
				.provider = op->provider,
				.sent_at = cl->sim->now,
				.sent_offset = cl->laptop->wall_offset,
				.wanted = true,
				.was_sent = true};
	c->number = (int)++wire_tally_of(cl->sim, op->provider)->calls;
	copy_call(&c->call, call);
	if (op->kind == OP_RELEASE)
		COPY_TEXT(c->ends, op->want->id);
	if (call->body_from)
		wire_read_local(cl, call->body_from, call->body_from_offset, call->body_from_bytes,
				&c->call.body);
	if (call->body_from || call->body_to) /* none of its bytes may be lost */
		c->call.timeout_ms = MIN(c->call.timeout_ms, (int64_t)SILENCE_MS);
	return c;
}

void line_put_back(struct http_call *c)
{
	struct lines *l = c->cl->sim->lines;

	if (c->on_way || c->wanted)
		return;
	empty(c);
	c->serial = 0;
	GROW(l->idle, l->idle_count, l->idle_cap);
	l->idle[l->idle_count++] = c;
}

void line_hear_later(struct http_call *c, int64_t delay)
{
	struct happening *h = client_later(c->cl, delay, W_WIRE_REPLY);

	h->x = (int64_t)c->slot;
	h->y = (int64_t)c->serial;
}

/* ---- the reply ---- */

static void fail(struct http_call *c, enum err_kind kind, const char *what)
{
	if (c->reply.failed)
		return;
	c->reply.failed = true;
	err_set(&c->reply.err, kind, "%s", what);
}

static void show_reply(struct http_call *c, const struct reply *r)
{
	if (r->failed)
		trace(c->cl->sim, "reply %d: failed: %s", c->number, r->err.msg);
	else
		trace(c->cl->sim, "reply %d: %d, %zu bytes%s%s%.80s", c->number, r->status,
		      c->answer.body.len, c->hung_up ? ", hung up" : "",
		      r->status >= 300 ? ": " : "",
		      r->status >= 300 ? str_text(&c->answer.body) : "");
}

/* Forgets the call before its owner hears of it. */
static void tell(struct http_call *c)
{
	struct reply r = c->reply;
	void (*done)(void *, struct reply *) = c->done;
	void *ctx = c->ctx;
	char after[16];

	c->reply = (struct reply){0};
	r.was_sent = c->was_sent;
	r.wall_ms = c->cl->sim->now - c->sent_at;
	if (reply_header(&r, "Retry-After", after, sizeof(after)))
		r.retry_after_ms = atoll(after) * 1000;
	show_reply(c, &r);
	rules_heard(c, &r);
	if (plant(PLANT_RETRY_AFTER_UNHEARD) && r.status == 429)
		r.status = 503;
	c->wanted = false;
	line_put_back(c);
	done(ctx, &r);
	reply_free(&r);
}

/* In two pieces if the owner takes pieces. */
static void take_in(struct http_call *c)
{
	struct reply *r = &c->reply;
	struct str *body = &c->answer.body;
	size_t half = body->len / 2, len[] = {half, body->len - half};
	struct err err = {0};

	r->status = c->answer.status;
	r->head = c->answer.head;
	c->answer.head = STR_INIT;
	bool refused = c->call.body_to && r->status != 200 && r->status != 206;
	if (body->len > c->call.max_bytes && !refused) {
		fail(c, ERR_UNTRUSTED, "the reply is larger than allowed");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(len) && c->on_piece && !r->failed; i++)
		if (len[i] && c->on_piece(c->ctx, r, body->s + i * half, len[i], &err) < 0)
			fail(c, err.kind, err.msg);
	if (c->call.body_to && !refused) {
		wire_write_local(c->cl, c->call.body_to, body->s, body->len);
		r->to_bytes = (int64_t)body->len;
	} else if (!c->on_piece) {
		str_addn(&r->body, body->s, body->len);
	}
	if (c->cut && !c->on_piece)
		fail(c, ERR_NETWORK, "the connection was lost");
}

/* Its reply arrives, or it times out, or the connection closes. */
void line_hears(struct sim *s, const struct happening *h)
{
	struct http_call *c = s->lines->calls[h->x];
	/* the machine slept too long during the call */
	bool late = s->now - c->sent_at > c->call.timeout_ms;

	if (c->serial != (uint64_t)h->y)
		return;
	if (c->hung_up) {
		tell(c);
		return;
	}
	if (late && !c->open)
		line_break_off(c);
	if (!c->open && !c->failed)
		take_in(c);
	else
		fail(c, ERR_NETWORK, c->was_sent ? "the connection was lost" : "not connected");
	if (c->answer.endless && !c->open && !c->reply.failed) {
		c->open = true;
		line_hear_later(c, c->sent_at + c->call.timeout_ms - s->now);
		return;
	}
	tell(c);
}

void __wrap_http_hang_up(struct http_call *c)
{
	c->hung_up = true;
	line_hear_later(c, 0);
}

void __wrap_http_cancel(struct http_call *c)
{
	if (!c)
		return;
	c->wanted = false;
	line_put_back(c);
}

/* ---- sending ---- */

/* Applies the plan's faults to this trip. */
static void fit_faults(struct sim *s, struct http_call *c)
{
	const struct fault *f;

	c->puts_off = strikes(s, F_CALL_429);
	f = strikes(s, F_CALL_5XX);
	if (f && f->x & 1)
		c->fails_before = true;
	else if (f)
		c->fails_after = true;
	c->x = f ? f->x >> 1 : 0;
	c->loses_reply = strikes(s, F_CALL_REPLY_LOST);
	f = strikes(s, F_CALL_GARBAGE);
	c->garbage = f ? 1 + f->x % 4 : 0;
}

static void show_call(struct sim *s, const struct http_call *c)
{
	const struct call *call = &c->call;

	if (!s->tracing)
		return;
	const char *name = c->on_piece ? strrchr(call->url, '/') + 1 : call->url;
	trace(s, "call %d (op %llu): %s: %s %s, %zu bytes", c->number,
	      (unsigned long long)c->op->serial, s->plan->jobs[0].conf.providers[c->provider].name,
	      call->method, name, call->body.len);
}

/* The request is under way, and the client dies before the reply. */
static void crash_now(struct client *cl)
{
	static const enum fault_kind kinds[] = {F_CRASH_RESUME, F_CRASH_REAP, F_CRASH_RESUME,
						F_CRASH_RESUME};
	const struct fault *f = strikes(cl->sim, F_CRASH_AT_CALL);

	if (!f)
		return;
	struct fault crash = *f;
	crash.kind = kinds[(f->x >> 1) % 4];
	client_crash(cl, &crash);
}

static void send_out(struct http_call *c)
{
	struct sim *s = c->cl->sim;
	int64_t latency = s->plan->vendors[c->provider].latency_ms;
	const struct fault *f = strikes(s, F_CALL_LOST);

	if (f)
		s->unlisted_at[c->provider] = s->now;
	if (f) { /* not connected, reset, or never answered */
		c->failed = true;
		c->was_sent = f->x % 3;
		line_note_release(s, c);
		line_hear_later(c, f->x % 3 == 2 ? c->call.timeout_ms : latency);
		return;
	}
	f = strikes(s, F_CALL_SLOW);
	int64_t slow = f && f->x & 1 ? f->ms % 10000 : 0;
	c->slow_reply_ms = f && !(f->x & 1) ? f->ms % 70000 : 0;
	fit_faults(s, c);
	if (f || c->puts_off || c->fails_before || c->fails_after || c->loses_reply || c->garbage)
		s->unlisted_at[c->provider] = s->now;
	line_note_release(s, c);
	c->on_way = true;
	struct happening *h = client_later(c->cl, latency + slow, W_WIRE_CALL);
	h->provider = c->provider;
	h->x = (int64_t)c->slot;
	crash_now(c->cl);
}

struct http_call *__wrap_http_send_pieces(struct http *http, const struct call *call,
					  http_on_piece *on_piece,
					  void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	struct client *cl = http->loop.cl;
	struct op *o = http->loop.cut ? NULL : rules_asker(cl, call);

	if (!o)
		return NULL;
	struct http_call *c = new_call(cl, o, call);
	c->on_piece = on_piece;
	c->done = done;
	c->ctx = ctx;
	show_call(cl->sim, c);
	rules_sent(c);
	send_out(c);
	return c;
}

struct http_call *__wrap_http_send(struct http *http, const struct call *call,
				   void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	return __wrap_http_send_pieces(http, call, NULL, done, ctx);
}
