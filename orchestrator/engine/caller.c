/* caller.c - carries the operations of providers, and knows the clocks of their servers. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/err.h"
#include "impl.h"
#include "limit.h"
#include "net/child.h"
#include "net/grpc.h"

/* ---- vendor clocks ----
 * Compares this machine's clock with those of the providers. */

enum { VENDOR_CLOCKS_MAX = 16 };

struct vendor_clock {
	const struct provider_ops *ops;
	int64_t off_ms;           /* ours is ahead of it by at least this */
	int64_t ahead_of_boot_ms; /* it is ahead of our boot clock, which is never set, by this */
};

struct vendor_clocks {
	struct vendor_clock list[VENDOR_CLOCKS_MAX];
	int count;
};

/* NULL: no reply of this provider has had a date. */
static const struct vendor_clock *find_clock(const struct vendor_clocks *c,
					     const struct provider_ops *ops)
{
	for (int i = 0; i < c->count; i++)
		if (c->list[i].ops == ops)
			return &c->list[i];
	return NULL;
}

/* Takes the provider's time from a reply, if that has a date. sent_*_ms: when its call was sent, by
 * the two clocks of this machine. */
static void vendor_clocks_learn(struct vendor_clocks *c, const struct provider_ops *ops,
				const struct reply *r, int64_t sent_wall_ms, int64_t sent_boot_ms)
{
	int64_t wall = clock_wall_ms(), boot = clock_boot_ms(), off_ms, off_now_ms;

	if (!reply_clock_off(r, sent_wall_ms, wall, &off_ms))
		return;
	/* our clock may have been set since it was sent */
	reply_clock_off(r, wall - (boot - sent_boot_ms), wall, &off_now_ms);
	struct vendor_clock *k = (struct vendor_clock *)find_clock(c, ops);
	if (!k && c->count == VENDOR_CLOCKS_MAX)
		return;
	if (!k)
		k = &c->list[c->count++];
	*k = (struct vendor_clock){ops, off_ms, wall - off_now_ms - boot};
}

/* ---- caller ----
 * Carries provider operations: sends each call, retries what may repeat, returns the result. */

enum {
	REPEATS_MAX = 3,
	REPEAT_FIRST_MS = 200,
	REPEAT_AFTER_MOST_MS = 10000,
	RENT_QUEUE_MS = 10000,
	FOR_RELEASES = 32,
	LOOK_WAITED_MS = 2000,
	CLASSES = CALL_LIST + 1
};

/* Calls of one kind that wait to be sent, in order within each class. Only the first of a class
 * checks the account's limits: the others would get the same answer. */
struct queue {
	const struct provider *provider;
	enum call_kind kind;
	bool unlimited;
	struct caller_op *first[CLASSES], **last[CLASSES];
	int64_t shut_until[CLASSES]; /* by the limits */
	struct queue *next;
};

struct caller {
	struct loop *loop;
	struct http *http;
	struct limiter *limiter;
	struct caller_op *first; /* under way */
	struct queue *queues;
	int children, calls;     /* under way now */
	struct caller_op *early; /* a look that is under way in place of a release; NULL: none */
	struct timer *room;      /* when a limit may allow a waiting call */
	struct vendor_clocks clocks;
};

struct caller_op {
	struct caller *caller;
	struct caller_op *next, **link;
	const struct provider_ops *ops;
	const struct provider *provider;
	struct store *store;
	enum op_kind kind;
	bool urgent;
	struct op *op;
	struct op_want want;
	void (*done)(void *ctx, struct op_result *result, const struct err *err);
	void (*said)(void *ctx, const char *lines);
	void *ctx;
	struct call call; /* kept for a repeat */
	int repeats;
	struct grpc_tries tries;
	int64_t sent_wall_ms, sent_boot_ms;
	struct queue *queue; /* the queue it waits in; NULL: none */
	struct caller_op *behind;
	int64_t queued_at; /* since when it has waited in a queue; 0: it does not */
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

static void send_waiting(struct caller *c);

static void leave_queue(struct caller_op *o)
{
	struct queue *q = o->queue;
	struct caller_op **at;

	if (!q)
		return;
	for (at = &q->first[o->call.class]; *at != o; at = &(*at)->behind)
		;
	*at = o->behind;
	if (!*at)
		q->last[o->call.class] = at;
	o->queue = NULL;
	o->behind = NULL;
}

/* Notes that the operation has no call under way, whether the last one succeeded or failed. */
static void forget_call(struct caller_op *o)
{
	o->caller->children -= o->child != NULL;
	o->caller->calls -= o->http || o->grpc;
	o->caller->early = o->caller->early == o ? NULL : o->caller->early;
	o->http = NULL;
	o->grpc = NULL;
	o->child = NULL;
}

/* Ends what the operation has under way, and frees it. Calls nothing back. */
static void op_end(struct caller_op *o)
{
	*o->link = o->next;
	if (o->next)
		o->next->link = o->link;
	leave_queue(o);
	http_cancel(o->http);
	grpc_cancel(o->grpc);
	child_cancel(o->child);
	forget_call(o);
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
	while (c->queues) {
		struct queue *q = c->queues;
		c->queues = q->next;
		free(q);
	}
	loop_untimer(c->room);
	limiter_free(c->limiter);
	free(c);
}

static void advance_op(struct caller_op *o, const struct reply *reply);

static void on_wait_over(void *ctx)
{
	struct caller_op *o = ctx;

	o->timer = NULL;
	advance_op(o, NULL);
}

static void queue_call(struct caller_op *o);

static void on_repeat_timer(void *ctx)
{
	struct caller_op *o = ctx;

	o->timer = NULL;
	queue_call(o);
}

/* How long to wait before the call is sent again, which is counted; -1: the reply is final. */
static int64_t repeat_after_ms(struct caller_op *o, const struct reply *r)
{
	if (o->call.kind == CALL_GRPC)
		return grpc_retry_wait_ms(&o->tries, &o->call, r);
	if (!o->call.may_repeat || o->repeats >= REPEATS_MAX)
		return -1;
	if (r->failed ? r->err.kind != ERR_NETWORK && r->err.kind != ERR_TRANSIENT
		      : o->call.kind != CALL_HTTP || r->status < 500)
		return -1;
	if (r->retry_after_ms > REPEAT_AFTER_MOST_MS)
		return -1; /* who began the operation may try again sooner */
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

int64_t caller_time_there(const struct caller *caller, const struct provider_ops *ops)
{
	const struct vendor_clock *k = find_clock(&caller->clocks, ops);

	return k ? clock_boot_ms() + k->ahead_of_boot_ms : clock_wall_ms();
}

bool caller_knows_time_there(const struct caller *caller, const struct provider_ops *ops)
{
	return find_clock(&caller->clocks, ops);
}

int64_t caller_clock_ahead_ms(const struct caller *caller, const struct provider_ops *ops)
{
	const struct vendor_clock *k = find_clock(&caller->clocks, ops);

	return k ? MAX(k->off_ms, 0) : 0;
}

int caller_check_clock(const struct caller *caller, const struct provider_ops *ops, struct err *err)
{
	const struct vendor_clock *k = find_clock(&caller->clocks, ops);
	char off[48], now[32];

	if (!k || (k->off_ms >= -CALLER_CLOCK_OFF_MS && k->off_ms <= CALLER_CLOCK_OFF_MS))
		return 0;
	return err_set(err, ERR_CONFIG,
		       "this machine's clock is %s %s's, which shows %s: pods would end at the "
		       "wrong time, so none is rented there; set the clock (\"timedatectl "
		       "set-ntp true\" as root, or by hand) and retry",
		       clock_offset_show(off, sizeof(off), k->off_ms), ops->name,
		       clock_rfc3339(now, sizeof(now), caller_time_there(caller, ops)));
}

/* One failure is common; from the second on the user should know why nothing moves. */
static void log_retry(const struct caller_op *o, const struct reply *reply, int64_t wait)
{
	bool again = MAX(o->repeats, o->tries.again) == 2;
	char status[48];

	snprintf(status, sizeof(status), "the server answers HTTP %d", reply->status);
	log_line(again ? LOG_NOTE : LOG_DEBUG, "%s: %s; asking again in %lld ms", o->ops->name,
		 reply->err.kind ? reply->err.msg : status, (long long)wait);
}

static void on_reply(void *ctx, struct reply *reply)
{
	struct caller_op *o = ctx;
	struct caller *c = o->caller;

	forget_call(o);
	if (o->call.kind != CALL_CHILD)
		vendor_clocks_learn(&c->clocks, o->ops, reply, o->sent_wall_ms, o->sent_boot_ms);
	if (o->call.kind != CALL_CHILD && !o->call.unlimited)
		limiter_learn(limiter_of(o), o->ops->account(o->provider), reply,
			      &(struct limit_call){o->sent_wall_ms, clock_wall_ms(), c->calls,
						   o->call.class});
	int64_t wait = repeat_after_ms(o, reply);
	if (wait >= 0) {
		log_retry(o, reply, wait);
		o->timer = loop_timer(c->loop, wait, on_repeat_timer, o);
		send_waiting(c);
		return;
	}
	reply->sent_before = o->tries.again > 0;
	o->repeats = 0;
	o->tries = (struct grpc_tries){0};
	advance_op(o, reply);
	send_waiting(c);
}

static void finish_op(struct caller_op *o, struct op_result *result, const struct err *err)
{
	void (*done)(void *, struct op_result *, const struct err *) = o->done;
	void *ctx = o->ctx;
	struct err copy = err ? *err : (struct err){0};

	op_end(o);
	done(ctx, result, err ? &copy : NULL);
}

/* ---- whose turn it is ---- */

static bool has_free_connection(const struct caller_op *o)
{
	const struct caller *c = o->caller;

	if (o->call.kind == CALL_CHILD)
		return c->children < CALLER_CHILDREN;
	return c->calls < CALLER_CALLS - (o->call.class == CALL_RELEASE ? 0 : FOR_RELEASES);
}

static void send_call(struct caller_op *o)
{
	struct caller *c = o->caller;

	o->queued_at = 0;
	o->sent_wall_ms = clock_wall_ms();
	o->sent_boot_ms = clock_boot_ms();
	if (o->call.kind == CALL_CHILD)
		o->child = child_send(c->loop, &o->call, on_reply, o);
	else if (o->call.kind == CALL_GRPC)
		o->grpc = grpc_send(c->loop, c->http, &o->call, &o->tries, on_reply, o);
	else
		o->http = http_send(c->http, &o->call, on_reply, o);
	c->children += o->child != NULL;
	c->calls += o->http || o->grpc;
}

static void on_room_timer(void *ctx)
{
	struct caller *c = ctx;

	c->room = NULL;
	send_waiting(c);
}

/* Returns true if the account's limits allow the call now; it is then counted. Otherwise the
 * queue's class is shut until the next try. */
static bool take_room(struct caller_op *o, struct queue *q)
{
	int64_t now = clock_boot_ms();
	enum call_class class = o->call.class;

	if (o->call.kind == CALL_CHILD || q->unlimited)
		return true;
	if (now >= q->shut_until[class]) {
		int64_t wait = limiter_take(limiter_of(o), o->ops->account(o->provider),
					    o->ops->calls_per_minute, class, clock_wall_ms());
		if (wait <= 0)
			return true;
		q->shut_until[class] = now + wait;
	}
	return false;
}

/* Fails a create that has waited for long: a queued create cannot be stopped, and the core may need
 * something else by then. */
static void fail_overdue_rent(struct caller_op *o, int64_t shut_until)
{
	int64_t now = clock_boot_ms();
	struct err err = {0};

	if (o->kind != OP_RENT || o->call.class != CALL_CREATE ||
	    now - o->queued_at < RENT_QUEUE_MS)
		return;
	/* an earlier attempt may have made a pod, although its vendor does not know of it */
	err_set(&err, o->tries.again ? ERR_AMBIGUOUS : ERR_RATE_LIMITED,
		"the account's rate limit leaves no room for a create now");
	err.retry_after_ms = MAX(shut_until - now, 1);
	finish_op(o, NULL, &err);
}

/* Sends a listing that has waited for a while before all releases. Only a look confirms that a pod
 * is gone, and a thousand releases fill all windows for long. */
static void send_waiting_list(struct queue *q)
{
	struct caller_op *o = q->first[CALL_LIST];

	if (!o || !q->first[CALL_RELEASE] || clock_boot_ms() - o->queued_at < LOOK_WAITED_MS)
		return;
	struct caller *c = o->caller;
	bool early = !has_free_connection(o);
	if (early && (c->early || o->call.kind == CALL_CHILD || c->calls >= CALLER_CALLS))
		return;
	q->shut_until[CALL_LIST] = MIN(q->shut_until[CALL_LIST], q->shut_until[CALL_RELEASE]);
	if (!take_room(o, q))
		return;
	leave_queue(o);
	c->early = early ? o : c->early;
	send_call(o);
}

/* Sends what can be sent of one class. Returns when to try again; INT64_MAX: when a call ends. */
static int64_t send_of_class(struct queue *q, enum call_class class)
{
	while (q->first[class]) {
		struct caller_op *o = q->first[class];
		if (!has_free_connection(o))
			return INT64_MAX;
		if (take_room(o, q)) {
			leave_queue(o);
			send_call(o);
			continue;
		}
		for (struct caller_op *next; o && class == CALL_CREATE; o = next) {
			next = o->behind;
			fail_overdue_rent(o, q->shut_until[class]);
		}
		return q->first[class] ? q->shut_until[class] : INT64_MAX;
	}
	return INT64_MAX;
}

/* Sends the calls that may be sent now, by class, and sets a timer for the rest. */
static void send_waiting(struct caller *c)
{
	static const enum call_class order[CLASSES] = {CALL_RELEASE, CALL_CREATE, CALL_LIST,
						       CALL_POLL};
	int64_t at = INT64_MAX;

	for (struct queue *q = c->queues; q; q = q->next)
		send_waiting_list(q);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		for (struct queue *q = c->queues; q; q = q->next)
			at = MIN(at, send_of_class(q, order[i]));
	loop_untimer(c->room);
	c->room = at == INT64_MAX
			  ? NULL
			  : loop_timer(c->loop, MAX(at - clock_boot_ms(), 1), on_room_timer, c);
}

static struct queue *find_or_add_queue(struct caller_op *o)
{
	struct caller *c = o->caller;
	struct queue *q = c->queues;

	while (q && (q->provider != o->provider || q->kind != o->call.kind ||
		     q->unlimited != o->call.unlimited))
		q = q->next;
	if (q)
		return q;
	q = xcalloc(1, sizeof(*q));
	q->provider = o->provider;
	q->kind = o->call.kind;
	q->unlimited = o->call.unlimited;
	for (int i = 0; i < CLASSES; i++)
		q->last[i] = &q->first[i];
	q->next = c->queues;
	c->queues = q;
	return q;
}

/* Adds the operation's call to its queue; it is sent at once if nothing is in the way. */
static void queue_call(struct caller_op *o)
{
	struct queue *q = find_or_add_queue(o);

	if (o->urgent && o->call.class == CALL_POLL)
		o->call.class = CALL_LIST;
	bool first = !q->first[o->call.class];
	o->queued_at = o->queued_at ? o->queued_at : clock_boot_ms();
	o->queue = q;
	*q->last[o->call.class] = o;
	q->last[o->call.class] = &o->behind;
	if (first)
		send_waiting(o->caller);
}

/* Ends the operation with its result, or an error if the result makes no sense. A create without a
 * usable answer may have made a pod. */
static void deliver_answer(struct caller_op *o, struct op_result *result)
{
	struct err err = {0};

	if (provider_check_answer(result, &err) == 0) {
		if (o->kind == OP_OFFERS)
			provider_remark_unpriced(o->ops, o->provider, result);
		finish_op(o, result, NULL);
		return;
	}
	if (o->kind == OP_RENT)
		err.kind = ERR_AMBIGUOUS;
	finish_op(o, NULL, &err);
}

/* Asks the provider what follows on the reply to the last call (NULL: on the begin, or on a wait),
 * and does that. */
static void advance_op(struct caller_op *o, const struct reply *reply)
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
		queue_call(o);
		return;
	case OP_WAIT: o->timer = loop_timer(o->caller->loop, wait_ms, on_wait_over, o); return;
	case OP_DONE: deliver_answer(o, &result); break;
	case OP_FAILED: finish_op(o, NULL, &err); break;
	}
	op_result_free(&result);
}

struct caller_op *
caller_begin(struct caller *caller, const struct engine_provider *provider, enum op_kind kind,
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
	o->timer =
		loop_timer(caller->loop, 0, on_wait_over, o); /* this function never calls back */
	return o;
}

void caller_listen(struct caller_op *o, void (*said)(void *ctx, const char *lines))
{
	o->said = said;
}

bool caller_prioritize(struct caller_op *o)
{
	bool waits = o->queue && o->call.class == CALL_POLL, begun = o->sent_wall_ms;

	o->urgent = true;
	if (waits) {
		leave_queue(o);
		queue_call(o);
	}
	return waits && !begun;
}

/* How long the account's rate limit still holds back its next request, in ms; 0: it does not. */
static int64_t caller_op_shut_ms(struct caller_op *o)
{
	if (!o->queue || o->queue->shut_until[o->call.class] <= clock_boot_ms())
		return 0;
	return limiter_wait(o->caller->limiter, o->ops->account(o->provider), o->call.class,
			    clock_wall_ms());
}

void caller_cancel(struct caller_op *o)
{
	if (!o)
		return;
	struct caller *c = o->caller;
	op_end(o);
	send_waiting(c);
}

/* ---- caller perform ----
 * Runs one operation for a command that has nothing else to do meanwhile. */

struct answer {
	bool urgent; /* caller_prioritize() */
	bool have;
	struct op_result *result;
	struct err err;
	void (*said)(void *ctx, const char *lines); /* NULL: progress lines are dropped */
	void *ctx;
};

static void pass_on_lines(void *ctx, const char *lines)
{
	struct answer *a = ctx;

	a->said(a->ctx, lines);
}

static void on_answer(void *ctx, struct op_result *result, const struct err *err)
{
	struct answer *a = ctx;

	a->have = true;
	if (err)
		a->err = *err;
	else
		*a->result = *result, memset(result, 0, sizeof(*result));
}

/* The limit may be shut for an hour: the command does not wait for its end. Returns -1. */
static int fail_rate_limited(int64_t shut_ms, struct err *err)
{
	char wait[24];

	err_set(err, ERR_RATE_LIMITED,
		"rate limit: the account's requests are used up; the next one may be sent in %s",
		duration_show(wait, sizeof(wait), shut_ms));
	err->retry_after_ms = shut_ms;
	return -1;
}

/* Judges the result of an operation for a command. by_ids: a list looked up known pods. */
static int check_result(const struct caller *caller, const struct provider_ops *ops,
			enum op_kind kind, bool by_ids, struct op_result *result, struct err *err)
{
	struct err clock;

	/* a command must not take a missing pod for one that is gone */
	if (kind == OP_LIST && result->partial && !by_ids) {
		err_set(err, ERR_REFUSED, "%s", str_text(&result->text));
		op_result_free(result);
		*result = (struct op_result){0};
		return -1;
	}
	if (kind == OP_CHECK && caller_check_clock(caller, ops, &clock) < 0) {
		CLEANUP(str_free) struct str said = result->text;
		result->text = (struct str)STR_INIT;
		str_addf(&result->text, "bad: %s\n%s", clock.msg, str_text(&said));
	}
	return 0;
}

/* As caller_perform(). *there_ms: the provider's time, set whenever it has answered. */
static int perform_op(const struct engine_provider *provider, enum op_kind kind,
		      const struct op_want *want, int64_t most_ms, struct answer *a,
		      int64_t *there_ms, struct err *err)
{
	if (http_ready(err) < 0)
		return -1;
	CLEANUP(loop_free) struct loop *loop = loop_new();
	CLEANUP(http_free) struct http *http = http_new(loop, "burst/" BURST_VERSION);
	CLEANUP(caller_free) struct caller *caller = caller_new(loop, http);
	int64_t until = clock_boot_ms() + most_ms;

	struct caller_op *op = caller_begin(caller, provider, kind, want, on_answer, a);
	if (a->urgent)
		caller_prioritize(op);
	if (a->said)
		caller_listen(op, pass_on_lines);
	while (!a->have && clock_boot_ms() < until) {
		int64_t shut_ms = caller_op_shut_ms(op);
		if (clock_boot_ms() + shut_ms > until)
			return fail_rate_limited(shut_ms, err);
		loop_turn(loop, until - clock_boot_ms());
	}
	if (!a->have)
		return err_set(err, ERR_NETWORK, "no answer in time");
	*there_ms = caller_time_there(caller, provider->ops); /* a refusal also has a date */
	if (a->err.kind) {
		*err = a->err;
		return -1;
	}
	return check_result(caller, provider->ops, kind, want && want->ids, a->result, err);
}

int caller_perform(const struct engine_provider *provider, enum op_kind kind,
		   const struct op_want *want, int64_t most_ms, struct op_result *result,
		   struct err *err)
{
	return caller_perform_shown(provider, kind, want, most_ms, NULL, NULL, result, err);
}

int caller_perform_shown(const struct engine_provider *provider, enum op_kind kind,
			 const struct op_want *want, int64_t most_ms,
			 void (*said)(void *ctx, const char *lines), void *ctx,
			 struct op_result *result, struct err *err)
{
	struct answer a = {
		.urgent = kind == OP_INSPECT, .result = result, .said = said, .ctx = ctx};
	int64_t there_ms;

	return perform_op(provider, kind, want, most_ms, &a, &there_ms, err);
}

int caller_list(const struct engine_provider *provider, char *const *ids, int64_t most_ms,
		struct op_result *result, int64_t *now_ms, struct err *err)
{
	struct op_want want = {.ids = ids};
	struct answer a = {.urgent = true, .result = result};

	return perform_op(provider, OP_LIST, &want, most_ms, &a, now_ms, err);
}

/* ---- request ---- */

struct request *request_new(struct engine *e, int provider, int pod)
{
	struct request *a = xcalloc(1, sizeof(*a));

	a->e = e;
	a->provider = provider;
	a->pod = pod;
	a->requested_at = clock_boot_ms();
	a->next = e->requests;
	a->link = &e->requests;
	if (a->next)
		a->next->link = &a->next;
	e->requests = a;
	return a;
}

void request_free(struct request *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	for (size_t i = 0; i < a->env_count; i++) {
		free(a->env[i].name);
		text_wipe(a->env[i].value);
	}
	free(a->start_script);
	core_ids_free(a->ids);
	for (char **r = a->regions; r && *r; r++)
		free(*r);
	free(a->regions);
	free(a->secrets);
	if (a->lock)
		close(a->lock);
	loop_untimer(a->timer);
	free(a);
}

void requests_forget(struct engine *e)
{
	while (e->requests)
		request_free(e->requests);
}

struct caller_op *request_begin(struct request *a, enum op_kind kind,
				void (*done)(void *ctx, struct op_result *result,
					     const struct err *err))
{
	const struct engine_provider *v = &a->e->setup->providers[a->provider];

	return caller_begin(a->e->caller, v, kind, &a->want, done, a);
}
