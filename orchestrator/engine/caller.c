#include "caller.h"

#include <stdlib.h>

#include "../base/clock.h"
#include "../base/crypto.h"
#include "../base/log.h"
#include "../net/child.h"
#include "../net/grpc.h"
#include "limit.h"

enum { REPEATS_MAX = 3, REPEAT_FIRST_MS = 200, CLOCKS_MAX = 16, RENT_QUEUE_MS = 10000 };

struct vendor_clock {
	const struct provider_ops *ops;
	int64_t off_ms;
};

struct caller {
	struct loop *loop;
	struct http *http;
	struct limiter *limiter;
	struct caller_op *first; /* under way */
	struct vendor_clock clocks[CLOCKS_MAX];
	int clock_count;
};

struct caller_op {
	struct caller *caller;
	struct caller_op *next, **link;
	const struct provider_ops *ops;
	const struct provider *provider;
	struct store *store;
	enum op_kind kind;
	struct op *op;
	struct op_want want;
	void (*done)(void *ctx, struct op_result *result, const struct err *err);
	void (*said)(void *ctx, const char *lines);
	void *ctx;
	struct call call; /* kept while it may have to be repeated */
	int repeats;
	struct grpc_tries tries;
	int64_t sent_wall_ms;
	int64_t queued_at; /* since then it waits for room in the limits; 0: it does not */
	struct http_call *http;
	struct grpc_call *grpc;
	struct child *child;
	struct timer *timer;
};

struct caller *caller_new(struct loop *loop, struct http *http)
{
	struct caller *c = xcalloc(1, sizeof(*c));

	c->loop = loop;
	c->http = http;
	return c;
}

static void op_end(struct caller_op *o)
{
	*o->link = o->next;
	if (o->next)
		o->next->link = o->link;
	http_cancel(o->http);
	grpc_cancel(o->grpc);
	child_cancel(o->child);
	loop_untimer(o->timer);
	o->ops->op_free(o->op);
	call_free(&o->call);
	free(o);
}

void caller_free(struct caller *c)
{
	if (!c)
		return;
	while (c->first)
		op_end(c->first);
	limiter_free(c->limiter);
	free(c);
}

static void step(struct caller_op *o, const struct reply *reply);

static void on_timer(void *ctx)
{
	struct caller_op *o = ctx;

	o->timer = NULL;
	step(o, NULL);
}

static void carry(struct caller_op *o);

static void on_repeat(void *ctx)
{
	struct caller_op *o = ctx;

	o->timer = NULL;
	carry(o);
}

/* How long to wait before the call is sent again; -1: the reply stands. */
static int64_t again_ms(struct caller_op *o, const struct reply *r)
{
	if (o->call.kind == CALL_GRPC)
		return grpc_again_ms(&o->tries, &o->call, r);
	if (!o->call.may_repeat || o->repeats >= REPEATS_MAX)
		return -1;
	if (r->failed ? r->err.kind != ERR_NETWORK && r->err.kind != ERR_TRANSIENT : o->call.kind != CALL_HTTP || r->status < 500)
		return -1;
	int64_t wait = (int64_t)REPEAT_FIRST_MS << o->repeats++;
	wait += (int64_t)(random_u64() % (uint64_t)wait);
	return MAX(wait, r->retry_after_ms);
}

static struct limiter *limiter_of(struct caller_op *o)
{
	if (!o->caller->limiter)
		o->caller->limiter = limiter_new(o->store);
	return o->caller->limiter;
}

/* ---- the provider's clock and ours ---- */

static const struct vendor_clock *clock_of(const struct caller *c, const struct provider_ops *ops)
{
	for (int i = 0; i < c->clock_count; i++)
		if (c->clocks[i].ops == ops)
			return &c->clocks[i];
	return NULL;
}

static void compare_clocks(struct caller_op *o, const struct reply *r)
{
	struct caller *c = o->caller;
	int64_t off_ms;

	if (o->call.kind == CALL_CHILD || r->failed || !reply_clock_off(r, o->sent_wall_ms, clock_wall_ms(), &off_ms))
		return;
	struct vendor_clock *k = (struct vendor_clock *)clock_of(c, o->ops);
	if (!k && c->clock_count == CLOCKS_MAX)
		return;
	if (!k)
		k = &c->clocks[c->clock_count++];
	*k = (struct vendor_clock){o->ops, off_ms};
}

int caller_check_clock(const struct caller *caller, const struct provider_ops *ops, struct err *err)
{
	const struct vendor_clock *k = clock_of(caller, ops);
	char off[48], now[32];

	if (!k || (k->off_ms >= -CALLER_CLOCK_OFF_MS && k->off_ms <= CALLER_CLOCK_OFF_MS))
		return 0;
	return err_set(err, ERR_CONFIG,
		       "this machine's clock is %s %s's, which says %s: pods would end at the wrong time, so none is rented "
		       "there; set the clock (\"timedatectl set-ntp true\" as root, or by hand) and run this again",
		       clock_off_show(off, sizeof(off), k->off_ms), ops->name,
		       clock_rfc3339(now, sizeof(now), clock_wall_ms() - k->off_ms));
}

static void on_reply(void *ctx, struct reply *reply)
{
	struct caller_op *o = ctx;

	o->http = NULL;
	o->grpc = NULL;
	o->child = NULL;
	compare_clocks(o, reply);
	if (o->call.kind != CALL_CHILD)
		limiter_learn(limiter_of(o), o->ops->account(o->provider), reply, o->sent_wall_ms, clock_wall_ms());
	int64_t wait = again_ms(o, reply);
	if (wait >= 0) {
		log_line(LOG_DEBUG, "%s: again in %lld ms: %s", o->ops->name, (long long)wait,
			 reply->err.kind ? reply->err.msg : "the server failed");
		o->timer = loop_timer(o->caller->loop, wait, on_repeat, o);
		return;
	}
	o->repeats = 0;
	o->tries = (struct grpc_tries){0};
	step(o, reply);
}

static void finish(struct caller_op *o, struct op_result *result, const struct err *err)
{
	void (*done)(void *, struct op_result *, const struct err *) = o->done;
	void *ctx = o->ctx;
	struct err copy = err ? *err : (struct err){0};

	op_end(o);
	done(ctx, result, err ? &copy : NULL);
}

/* A create is not kept waiting for long, since nobody could stop it: nothing was sent, and the core may want something else
 * by then. */
static void wait_for_room(struct caller_op *o, int64_t wait_ms)
{
	int64_t now = clock_boot_ms();
	struct err err = {0};

	if (!o->queued_at)
		o->queued_at = now;
	if (o->kind != OP_RENT || o->call.class != CALL_CREATE || now - o->queued_at < RENT_QUEUE_MS) {
		o->timer = loop_timer(o->caller->loop, wait_ms, on_repeat, o);
		return;
	}
	err_set(&err, ERR_RATE_LIMITED, "the account's rate limit leaves no room for a create now");
	err.retry_after_ms = wait_ms;
	finish(o, NULL, &err);
}

static void carry(struct caller_op *o)
{
	o->sent_wall_ms = clock_wall_ms();
	if (o->call.kind == CALL_CHILD) {
		o->child = child_send(o->caller->loop, &o->call, on_reply, o);
		return;
	}
	int64_t wait = o->call.unlimited ? 0 : limiter_take(limiter_of(o), o->ops->account(o->provider), o->ops->calls_per_minute,
							     o->call.class, o->sent_wall_ms);
	if (wait > 0) {
		wait_for_room(o, wait);
		return;
	}
	o->queued_at = 0;
	if (o->call.kind == CALL_GRPC)
		o->grpc = grpc_send(o->caller->loop, o->caller->http, &o->call, &o->tries, on_reply, o);
	else
		o->http = http_send(o->caller->http, &o->call, on_reply, o);
}

static void step(struct caller_op *o, const struct reply *reply)
{
	struct op_result result = {0};
	struct err err = {0};
	int64_t wait_ms = 0;

	struct call next = {0};
	enum op_next what = o->ops->next(o->op, reply, &next, &wait_ms, &result, &err);
	if (what == OP_CALL || what == OP_WAIT) {
		if (o->said && result.text.len)
			o->said(o->ctx, str_text(&result.text));
		op_result_free(&result);
	}
	switch (what) {
	case OP_CALL:
		call_free(&o->call);
		o->call = next;
		carry(o);
		return;
	case OP_WAIT:
		o->timer = loop_timer(o->caller->loop, wait_ms, on_timer, o);
		return;
	case OP_DONE:
		finish(o, &result, NULL);
		break;
	case OP_FAILED:
		finish(o, NULL, &err);
		break;
	}
	op_result_free(&result);
}

struct caller_op *caller_begin(struct caller *caller, const struct engine_provider *provider, enum op_kind kind,
			       const struct op_want *want,
			       void (*done)(void *ctx, struct op_result *result, const struct err *err), void *ctx)
{
	struct caller_op *o = xcalloc(1, sizeof(*o));

	o->caller = caller;
	o->ops = provider->ops;
	o->provider = provider->handle;
	o->store = provider->store;
	o->done = done;
	o->ctx = ctx;
	if (want)
		o->want = *want;
	o->kind = kind;
	o->op = o->ops->begin(provider->handle, kind, &o->want);
	o->next = caller->first;
	o->link = &caller->first;
	if (o->next)
		o->next->link = &o->next;
	caller->first = o;
	o->timer = loop_timer(caller->loop, 0, on_timer, o); /* never calls back from inside */
	return o;
}

void caller_listen(struct caller_op *o, void (*said)(void *ctx, const char *lines))
{
	o->said = said;
}

void caller_cancel(struct caller_op *o)
{
	if (o)
		op_end(o);
}

struct answer {
	bool have;
	struct op_result *result;
	struct err err;
};

static void on_answer(void *ctx, struct op_result *result, const struct err *err)
{
	struct answer *a = ctx;

	a->have = true;
	if (err)
		a->err = *err;
	else
		*a->result = *result, memset(result, 0, sizeof(*result));
}

static int ask(const struct engine_provider *provider, enum op_kind kind, const struct op_want *want, int64_t most_ms,
	       struct op_result *result, int64_t *clock_off_ms, struct err *err)
{
	if (http_ready(err) < 0)
		return -1;
	CLEANUP(loop_free) struct loop *loop = loop_new();
	CLEANUP(http_free) struct http *http = http_new(loop, "burst/" BURST_VERSION);
	CLEANUP(caller_free) struct caller *caller = caller_new(loop, http);
	struct answer a = {.result = result};
	struct err clock;
	int64_t until = clock_boot_ms() + most_ms;

	caller_begin(caller, provider, kind, want, on_answer, &a);
	while (!a.have && clock_boot_ms() < until)
		loop_turn(loop, until - clock_boot_ms());
	if (!a.have)
		return err_set(err, ERR_NETWORK, "%s: no answer in time", provider->ops->name);
	if (a.err.kind) {
		*err = a.err;
		return -1;
	}
	const struct vendor_clock *k = clock_of(caller, provider->ops);
	*clock_off_ms = k ? k->off_ms : 0;
	if (kind == OP_CHECK && caller_check_clock(caller, provider->ops, &clock) < 0) {
		CLEANUP(str_free) struct str said = result->text;
		result->text = (struct str)STR_INIT;
		str_addf(&result->text, "bad: %s\n%s", clock.msg, str_text(&said));
	}
	return 0;
}

int caller_ask(const struct engine_provider *provider, enum op_kind kind, const struct op_want *want, int64_t most_ms,
	       struct op_result *result, struct err *err)
{
	int64_t off_ms;

	return ask(provider, kind, want, most_ms, result, &off_ms, err);
}

int caller_list(const struct engine_provider *provider, int64_t most_ms, struct op_result *result, int64_t *now_ms, struct err *err)
{
	int64_t off_ms;

	if (ask(provider, OP_LIST, NULL, most_ms, result, &off_ms, err) < 0)
		return -1;
	*now_ms = clock_wall_ms() - off_ms;
	return 0;
}
