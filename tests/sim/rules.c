/* rules.c - whether the real engine/caller.c and net/grpc.c keep their own rules, as seen from both
 * sides of them: what a translator wants carried, and what then goes over the line. A call that may
 * not be repeated is carried once, any other a few times at most; no call goes out before the time
 * that an answer named; a release waits only where its vendor said so, and a create not for long.
 * The defects that break these rules are planted here: the two are lied to about what they carry.
 */
#include "wire.h"

#include <stdlib.h>

#include "net/grpc.h"

enum { TRIES_MAX = 4, SLACK_MS = 2000, RENT_WAIT_MS = 10000 };

/* ---- between caller.c and a translator: what is wanted is written down, to be compared with what
 * is sent ---- */

static struct op *shim_begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct client *cl = line_caller();
	struct http *line = wire_line(cl);
	struct op *o = xcalloc(1, sizeof(*o));

	*o = (struct op){.next = line->ops, .line = line, .cl = cl, .kind = kind, .want = want};
	while (line->handles[o->provider] != p)
		o->provider++;
	o->inner = wire_ops(cl->sim, o->provider)->begin(p, kind, want);
	line->ops = o;
	o->serial = (uint64_t)++wire_tally_of(cl->sim, o->provider)->ops;
	return o;
}

static bool same_call(const struct call *a, const struct call *b)
{
	return a->url && a->kind == b->kind &&
	       (a->kind == CALL_GRPC || !strcmp(a->method, b->method)) && !strcmp(a->url, b->url) &&
	       a->body.len == b->body.len &&
	       !memcmp(str_text(&a->body), str_text(&b->body), b->body.len);
}

static void note_wish(struct op *o, struct call *call)
{
	if (!same_call(&o->call, call)) {
		o->sends = o->failures = 0;
		o->refused = false;
		o->not_before = 0;
	}
	o->call = *call;
	o->asks = true;
	o->put_off_ms = 0;
	COPY_TEXT(o->last_key, o->key);
	o->key[0] = '\0';
	o->wants_since = o->cl->sim->now;
	call->may_repeat = call->may_repeat || plant(PLANT_CREATE_AGAIN);
	if (plant(PLANT_RELEASE_LAST) || (plant(PLANT_CREATE_WAITS) && call->class == CALL_CREATE))
		call->class = CALL_POLL;
}

/* By its own decision, and later. */
static void retries_later(struct op *o)
{
	o->failures = 0;
	if (o->call.class != CALL_CREATE)
		o->sends = 0;
}

/* A translator that retries at once. */
static enum op_next anew(struct op *o, struct call *call, int64_t *wait_ms,
			 struct op_result *result, struct err *err)
{
	const struct provider_ops *ops = wire_ops(o->cl->sim, o->provider);

	ops->op_free(o->inner);
	o->inner = ops->begin(o->line->handles[o->provider], o->kind, o->want);
	return ops->next(o->inner, NULL, call, wait_ms, result, err);
}

/* A translator must hear what came over the line. */
static void check_heard(const struct op *o, const struct reply *r)
{
	bool grpc = o->call.kind == CALL_GRPC,
	     failed = o->said.failed || (grpc && o->said.cut && o->said.code == GRPC_OK);

	if (o->said.hung_up && grpc && r->failed && r->was_sent)
		broke(o->cl->sim, "%s: hung up on, and taken for a failure: %s", o->call.url,
		      r->err.msg);
	if (failed && !r->failed)
		broke(o->cl->sim, "%s: broken off, and taken for an answer", o->call.url);
	if (grpc && !failed && o->said.code == GRPC_OK && r->failed)
		broke(o->cl->sim, "%s: answered, and taken for a failure: %s", o->call.url,
		      r->err.msg);
	if (!grpc && o->call.may_repeat && o->failures && o->failures < TRIES_MAX)
		broke(o->cl->sim, "%s: given up after %d tries", o->call.url, o->failures);
	if (!failed && r->retry_after_ms < o->said.again_ms)
		broke(o->cl->sim, "%s: is to be asked again in %lld ms, and %lld were said",
		      o->call.url, (long long)r->retry_after_ms, (long long)o->said.again_ms);
	if (r->status != o->said.status ||
	    (grpc && !r->failed && o->said.code >= 0 && r->grpc_status != o->said.code))
		broke(o->cl->sim, "%s: said %d, heard %d", o->call.url, o->said.status, r->status);
	if ((r->failed || r->grpc_status) && !r->err.kind)
		broke(o->cl->sim, "%s: a failure of no kind is heard", o->call.url);
}

static enum op_next shim_next(struct op *o, const struct reply *reply, struct call *call,
			      int64_t *wait_ms, struct op_result *result, struct err *err)
{
	const struct provider_ops *ops = wire_ops(o->cl->sim, o->provider);

	if (reply)
		check_heard(o, reply);
	enum op_next what = ops->next(o->inner, reply, call, wait_ms, result, err);

	if (what == OP_FAILED)
		trace(o->cl->sim, "op %llu (%s): %s: %s", (unsigned long long)o->serial, ops->name,
		      err_kind_name(err->kind), err->msg);
	if (what == OP_FAILED && plant(PLANT_TRIES_FOR_EVER) && o->kind != OP_RENT)
		what = anew(o, call, wait_ms, result, err);
	o->asks = false;
	if (what == OP_CALL)
		note_wish(o, call);
	else if (what == OP_WAIT)
		retries_later(o);
	return what;
}

static void shim_op_free(struct op *o)
{
	struct op **link;

	for (link = &o->line->ops; *link != o; link = &(*link)->next)
		;
	*link = o->next;
	wire_ops(o->cl->sim, o->provider)->op_free(o->inner);
	free(o);
}

/* grpc.c sends a framed copy; each try of a call carries the key of the one before. */
static bool is_its(const struct op *o, const struct call *call, const char *key)
{
	const struct str *sent = &call->body, *want = &o->call.body;

	if (o->key[0])
		return !strcmp(o->key, key);
	return o->asks && !o->flying && !strcmp(o->call.url, call->url) &&
	       sent->len == want->len + 5 && !memcmp(sent->s + 5, str_text(want), want->len);
}

struct op *rules_asker(struct client *cl, const struct call *call)
{
	const char *key = call_header_of(call, "x-idempotency-key");

	for (struct op *o = wire_line(cl)->ops; o; o = o->next) {
		if (o->asks && o->call.kind == CALL_HTTP ? o->call.url != call->url
							 : !is_its(o, call, key))
			continue;
		if (key[0] && !strcmp(key, o->last_key))
			broke(cl->sim, "%s: bears the key of another call", call->url);
		COPY_TEXT(o->key, key);
		return o;
	}
	broke(cl->sim, "a call that nobody wants: %s", call->url);
	return NULL;
}

static struct provider_ops shims[WIRE_MODAL + 1];

const struct provider_ops *rules_ops(const struct sim *s, int vendor)
{
	struct provider_ops *shim = &shims[s->plan->vendors[vendor].wire];

	if (shim->name)
		return shim;
	*shim = *wire_ops(s, vendor);
	shim->begin = shim_begin;
	shim->next = shim_next;
	shim->op_free = shim_op_free;
	return shim;
}

/* ---- what is sent, and heard ---- */

/* What its vendor has told this machine: when to call again, and until when its window is used up.
 */
static void check_quiet(struct http_call *c)
{
	const struct laptop *l = c->cl->laptop;
	bool taken = c->op->call.class == CALL_RELEASE && l->takes_releases[c->provider];
	/* one call a minute probes the limit */
	bool pressing = c->call.class == CALL_RELEASE || c->call.class == CALL_LIST;
	int64_t quiet =
		pressing ? MIN(l->quiet_until[c->provider], l->refused_at[c->provider] + 60000)
			 : l->quiet_until[c->provider];
	/* the clock by which it was told */
	bool set_since = l->jumped_at >= l->refused_at[c->provider];
	int64_t now = c->cl->sim->now,
		until = MAX(taken || set_since ? 0 : quiet, c->op->not_before);

	if (!c->call.unlimited && now < until)
		broke(c->cl->sim, "%s: a call %lld ms before the time that was named for it",
		      c->call.url, (long long)(until - now));
}

static void check_release(struct http_call *c)
{
	const struct laptop *l = c->cl->laptop;
	const struct op *o = c->op;
	int64_t now = c->cl->sim->now, waited = now - o->wants_since;

	if (o->call.class != CALL_RELEASE || o->sends || !waited || account_was_set(c->cl) ||
	    l->woke_at >= o->wants_since)
		return;
	if (MAX(l->told_until[c->provider], l->quiet_until[c->provider] + SLACK_MS) < now)
		broke(c->cl->sim, "a release has waited for %lld ms, though nobody told it to",
		      (long long)waited);
	/* its vendor may have repeated that meanwhile, and limit.c looks for room 5 s later */
	if (waited > RELEASED_WITHIN_MS && l->quiet_until[c->provider] + 5000 + SLACK_MS < now)
		broke(c->cl->sim, "a release has waited for more than a minute");
}

static void check_tries(struct http_call *c)
{
	struct op *o = c->op;

	if (o->sends && !o->call.may_repeat && !o->refused)
		broke(c->cl->sim, "%s: carried again, and nobody knows what came of it",
		      c->call.url);
	if (o->failures >= TRIES_MAX)
		broke(c->cl->sim, "%s: tried %d times and never answered, and tried again",
		      c->call.url, o->failures);
	if (o->put_off_ms > (o->call.put_off_ms ? o->call.put_off_ms : 60000))
		broke(c->cl->sim, "%s: put off for %lld ms, and carried again", c->call.url,
		      (long long)o->put_off_ms);
	if (o->call.class == CALL_CREATE && o->kind == OP_RENT && !o->sends &&
	    c->cl->sim->now - MAX(o->wants_since, c->cl->laptop->woke_at) > 2 * RENT_WAIT_MS)
		broke(c->cl->sim, "a create waited for %lld ms for its turn",
		      (long long)(c->cl->sim->now - o->wants_since));
}

void rules_sent(struct http_call *c)
{
	check_quiet(c);
	check_release(c);
	check_tries(c);
	c->op->sends++;
	c->op->flying = true;
}

/* -1: it says none. */
static int grpc_code(const struct reply *r)
{
	CLEANUP(str_free) struct str words = STR_INIT;
	CLEANUP(str_free) struct str details = STR_INIT;
	int code;

	return grpc_read_status(r, &code, &words, &details) ? code : -1;
}

/* Certain to have done nothing (not sent, or refused), or to do it only once if it is sent again.
 */
static bool is_refusal(const struct http_call *c, const struct reply *r, int code)
{
	if (r->failed)
		return !r->was_sent;
	if (c->on_piece)
		return code == GRPC_RESOURCE_EXHAUSTED || code == GRPC_UNAUTHENTICATED ||
		       (code == GRPC_UNAVAILABLE && c->op->call.once_by_name);
	return r->status >= 400 && r->status < 500;
}

/* No reply: another try may get one. */
static bool is_failure(const struct http_call *c, const struct reply *r, int code)
{
	if (c->hung_up)
		return false;
	return r->failed || r->status >= 500 || code == GRPC_UNAVAILABLE || code == GRPC_INTERNAL ||
	       code == GRPC_UNKNOWN;
}

static void note_limits(struct http_call *c, const struct reply *r)
{
	struct laptop *l = c->cl->laptop;
	char text[128];
	const char *t;

	if (r->failed || c->call.unlimited) /* another service does not speak for the API */
		return;
	if (reply_header(r, "RateLimit", text, sizeof(text)) && (t = strstr(text, ";t=")))
		l->told_until[c->provider] =
			MAX(l->told_until[c->provider], c->cl->sim->now + (atoi(t + 3) + 2) * 1000);
	if (c->op->call.class == CALL_RELEASE && r->status < 500 && !r->grpc_status)
		l->takes_releases[c->provider] =
			true; /* until the next 429: a failing server says nothing of limits */
	if (r->status != 429)
		return;
	l->takes_releases[c->provider] = false;
	l->refused_at[c->provider] = c->cl->sim->now;
	/* the newest reply counts */
	l->quiet_until[c->provider] = c->cl->sim->now + r->retry_after_ms;
}

/* How far the clock is certainly off, by what was heard. */
static void note_clock(struct http_call *c, const struct reply *r)
{
	int64_t off = llabs(c->cl->laptop->wall_offset) - (c->cl->sim->now - c->sent_at) - SLACK_MS;

	/* a clock that was set during the call proves nothing */
	if (!r->failed && c->answer.dated)
		c->cl->heard_off_ms[c->provider] =
			c->sent_offset == c->cl->laptop->wall_offset ? off : 0;
}

void rules_heard(struct http_call *c, const struct reply *r)
{
	struct op *o = c->op;
	int code = c->on_piece ? grpc_code(r) : -1;
	int64_t took = c->cl->sim->now - c->sent_at,
		most = o->call.stream ? o->call.stream_limit_ms : 0;

	if (most && took > most && c->cl->laptop->woke_at < c->sent_at)
		broke(c->cl->sim, "%s: listened to for %lld ms, and %lld were wanted", c->call.url,
		      (long long)took, (long long)most);
	note_limits(c, r);
	note_clock(c, r);
	o->flying = false;
	o->refused = is_refusal(c, r, code);
	o->failures = is_failure(c, r, code) ? o->failures + !c->answer.again_ms : 0;
	/* as far as it was heard */
	int64_t again_ms = r->failed || !r->status ? 0 : c->answer.again_ms;
	o->not_before = c->on_piece && again_ms ? c->cl->sim->now + again_ms : 0;
	o->put_off_ms += c->on_piece ? again_ms : 0;
	o->said = (struct said){.failed = r->failed,
				.hung_up = c->hung_up,
				.cut = c->cut && !c->hung_up,
				.status = r->status,
				.code = code,
				.again_ms = again_ms};
}
