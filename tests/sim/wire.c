/* wire.c - carries the operations of real translators over the virtual clock, as engine/caller.c does over real lines, and hands
 * what comes of them to the core as engine/vendor.c does. What goes wrong on the way goes wrong here, call by call. */
#include "wire.h"

#include <stdlib.h>
#include <time.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/crypto.h"
#include "orchestrator/base/log.h"
#include "orchestrator/engine/caller.h"
#include "orchestrator/engine/limit.h"
#include "orchestrator/net/grpc.h"
#include "providers/modal/modal.h"
#include "providers/runpod/runpod.h"

enum { REPEATS_MAX = 3, REPEAT_FIRST_MS = 200, RENT_QUEUE_MS = 10000, LOG_FRESH_MS = 5000 }; /* as in caller.c and vendor.c */
enum { ENV_MAX = 24, BAD_MAX = 16, KINDS = WIRE_MODAL + 1 };

const struct wire_gpu wire_gpus[2] = {{"NVIDIA L40S", "L40S", "L40S", 48}, {"NVIDIA L4", "L4", "L4", 24}};
const char *const wire_datacenters[2] = {"EU-RO-1", "US-KS-2"};
static const char *const wishes[] = {"L40S", "L4", NULL};

/* ---- what there is ---- */

struct sent { /* a call; whoever carries or may repeat it holds it */
	int refs;
	struct call call;
};

struct carried { /* one trip of a call */
	bool used;
	uint64_t op;
	int number, life;
	struct sent *sent;
	struct answer answer;
	int64_t sent_at; /* true time */
	int64_t slow_reply_ms;
	bool failed, was_sent, cut, hung_up;
	bool puts_off, fails_before, fails_after, loses_reply;
	int garbage, x; /* 0: none */
};

struct wire_op {
	struct wire_op *next;
	uint64_t serial;
	int provider, pod;
	enum op_kind kind;
	struct op *op;
	struct op_want want;
	struct env_pair env[ENV_MAX];
	size_t env_count;
	char image[IMAGE_MAX];
	int64_t asked_at;
	struct sent *sent;
	int repeats;
	struct grpc_tries tries;
	int64_t sent_wall_ms, queued_at;
	void (*done)(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err);
};

struct pod_log { /* of one pod of this life */
	bool asked;
	int64_t read_at;
	uint32_t *lines;
	size_t count, cap;
};

struct wire_life { /* of one client */
	struct provider *handles[VENDORS_MAX];
	struct volume volumes[VENDORS_MAX];
	struct wire_op *ops;
	struct pod_log *logs;
	size_t log_count;
	int64_t clock_off[VENDORS_MAX];
	bool clock_known[VENDORS_MAX];
};

struct bad_offer {
	char id[160];
	int64_t at;
};

struct ledger { /* what a laptop's ledger keeps of a vendor */
	char image[IMAGE_MAX];
	struct bad_offer bad[BAD_MAX];
};

struct wire {
	struct section *conf[VENDORS_MAX];
	struct server servers[VENDORS_MAX];
	struct wired *machines;
	size_t machine_count;
	struct wire_life lives[CLIENTS_MAX];
	struct ledger ledgers[LAPTOPS_MAX][VENDORS_MAX];
	struct carried *carried;
	size_t carried_count, carried_cap;
	uint64_t serials, random;
	struct wire_tally tally[KINDS];
};

/* ---- the clocks and the chance that translators know (see the Makefile: --wrap) ---- */

static struct client *calling;

int64_t __real_clock_boot_ms(void);
int64_t __real_clock_wall_ms(void);
uint64_t __real_random_u64(void);
int64_t __wrap_clock_boot_ms(void);
int64_t __wrap_clock_wall_ms(void);
uint64_t __wrap_random_u64(void);
void __wrap_log_secret(const char *text);

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
	uint64_t z = (calling->sim->wire->random += 0x9e3779b97f4a7c15ull);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	return z ^ (z >> 31);
}

/* Millions of tokens of sessions would be remembered. */
void __wrap_log_secret(const char *text)
{
	(void)text;
}

/* ---- small things ---- */

static struct str take_str(struct str *from)
{
	struct str taken = *from;

	*from = STR_INIT;
	return taken;
}

bool wire_is(const struct sim *s, int vendor)
{
	return s->plan->vendors[vendor].wire != WIRE_NONE;
}

const struct wire_tally *wire_tallies(const struct sim *s)
{
	return s->wire ? s->wire->tally : NULL;
}

static const struct provider_ops *ops_of(const struct sim *s, int vendor)
{
	return s->plan->vendors[vendor].wire == WIRE_RUNPOD ? &provider_runpod : &provider_modal;
}

static struct wire_life *life_of(struct client *cl)
{
	return &cl->sim->wire->lives[cl->number];
}

static struct ledger *ledger_of(struct client *cl, int vendor)
{
	return &cl->sim->wire->ledgers[cl->laptop - cl->sim->laptops][vendor];
}

const char *call_header_of(const struct call *call, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < call->header_count; i++)
		if (!strncasecmp(call->headers[i], name, len) && call->headers[i][len] == ':')
			return call->headers[i] + len + 2;
	return "";
}

void answer_free(struct answer *a)
{
	str_free(&a->head);
	str_free(&a->body);
	*a = (struct answer){0};
}

static void let_go(struct sent *sent)
{
	if (!sent || --sent->refs)
		return;
	call_free(&sent->call);
	free(sent);
}

struct wired *wire_of(struct sim *s, const struct machine *m)
{
	struct wire *w = s->wire;
	size_t number = (size_t)(m - s->machines);

	if (number >= w->machine_count) {
		size_t count = MAX(2 * w->machine_count, number + 8);
		w->machines = xrealloc(w->machines, count * sizeof(*w->machines));
		memset(w->machines + w->machine_count, 0, (count - w->machine_count) * sizeof(*w->machines));
		w->machine_count = count;
	}
	return &w->machines[number];
}

struct machine *wire_find(struct sim *s, int vendor, const char *id)
{
	for (size_t i = 0; i < s->machine_count; i++)
		if (s->machines[i].vendor == vendor && !strcmp(s->machines[i].id, id))
			return &s->machines[i];
	return NULL;
}

/* ---- beginning and end of a schedule, and of a client's life ---- */

static struct section *conf_of(const struct vendor_plan *v)
{
	struct section *conf = section_new(v->wire == WIRE_RUNPOD ? provider_runpod.options : provider_modal.options, "burst.cfg:1");

	if (v->wire == WIRE_MODAL) {
		section_set_text(conf, "token_id", "ak-test1", "sim");
		section_set_text(conf, "token_secret", "as-test2", "sim");
		return conf;
	}
	section_set_text(conf, "api_key", "rpa_key123", "sim");
	section_set_text(conf, "cloud", v->community ? "ANY" : "SECURE", "sim");
	if (v->apart) {
		section_set_text(conf, "s3_access_key", "user_1", "sim");
		section_set_text(conf, "s3_secret_key", "rps_1", "sim");
		section_set_text(conf, "s3_url", "https://s3.example.org", "sim");
	}
	return conf;
}

void wire_open(struct sim *s)
{
	struct wire *w = NULL;

	for (int i = 0; i < VENDORS_MAX; i++) {
		if (!wire_is(s, i))
			continue;
		if (!w)
			s->wire = w = xcalloc(1, sizeof(*w));
		w->conf[i] = conf_of(&s->plan->vendors[i]);
		w->servers[i] = (struct server){.vendor = i, .images = json_object(), .secrets = json_object()};
		w->servers[i].volumes = s->plan->vendors[i].has_volume;
		w->tally[s->plan->vendors[i].wire].runs = 1;
	}
	if (w)
		w->random = s->plan->seed;
}

void wire_free(struct sim *s)
{
	struct wire *w = s->wire;

	if (!w)
		return;
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (s->clients[i].sim)
			wire_end_life(&s->clients[i]);
	for (size_t i = 0; i < w->carried_count; i++) {
		let_go(w->carried[i].sent);
		answer_free(&w->carried[i].answer);
	}
	for (size_t i = 0; i < w->machine_count; i++) {
		json_decref(w->machines[i].env);
		json_decref(w->machines[i].tags);
		free(w->machines[i].text);
	}
	for (int i = 0; i < VENDORS_MAX; i++) {
		json_decref(w->servers[i].images);
		json_decref(w->servers[i].secrets);
		section_free(w->conf[i]);
	}
	free(w->machines);
	free(w->carried);
	free(w);
	s->wire = NULL;
}

void wire_begin_life(struct client *cl)
{
	struct wire *w = cl->sim->wire;
	struct err err = {0};

	if (!w)
		return;
	struct wire_life *l = life_of(cl);
	*l = (struct wire_life){0};
	for (int i = 0; i < VENDORS_MAX; i++)
		if (wire_is(cl->sim, i) && ops_of(cl->sim, i)->open(&l->handles[i], w->conf[i], "/", &err) < 0)
			broke(cl->sim, "the provider cannot be opened: %s", err.msg);
}

static void op_end(struct client *cl, struct wire_op *o)
{
	struct wire_op **link = &life_of(cl)->ops;

	while (*link != o)
		link = &(*link)->next;
	*link = o->next;
	calling = cl;
	ops_of(cl->sim, o->provider)->op_free(o->op);
	calling = NULL;
	for (size_t i = 0; i < o->env_count; i++) {
		free(o->env[i].name);
		free(o->env[i].value);
	}
	let_go(o->sent);
	free(o);
}

void wire_end_life(struct client *cl)
{
	if (!cl->sim->wire)
		return;
	struct wire_life *l = life_of(cl);
	while (l->ops)
		op_end(cl, l->ops);
	for (int i = 0; i < VENDORS_MAX; i++)
		if (l->handles[i])
			ops_of(cl->sim, i)->close(l->handles[i]);
	for (size_t i = 0; i < l->log_count; i++)
		free(l->logs[i].lines);
	free(l->logs);
	*l = (struct wire_life){0};
}

/* ---- carrying: engine/caller.c ---- */

static void step(struct client *cl, struct wire_op *o, const struct reply *reply);

static void again_later(struct client *cl, const struct wire_op *o, int64_t ms, bool whole_step)
{
	struct happening *h = client_later(cl, ms, W_WIRE_AGAIN);

	h->x = (int64_t)o->serial;
	h->y = whole_step;
}

static void finish(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err)
{
	struct wire_op copy = *o; /* what done() needs of it outlives it */
	struct err why = err ? *err : (struct err){0};

	if (err)
		trace(cl->sim, "op %llu (%s): %s: %s", (unsigned long long)o->serial, ops_of(cl->sim, o->provider)->name,
		      err_kind_name(why.kind), why.msg);
	op_end(cl, o);
	copy.done(cl, &copy, result, err ? &why : NULL);
}

static int64_t room_in(struct client *cl, const struct wire_op *o)
{
	const struct provider_ops *ops = ops_of(cl->sim, o->provider);

	return limiter_take(cl->limiter, ops->account(life_of(cl)->handles[o->provider]), ops->calls_per_minute, o->sent->call.class,
			    wall_now(cl));
}

static void wait_for_room(struct client *cl, struct wire_op *o, int64_t wait_ms)
{
	struct err err = {0};

	if (!o->queued_at)
		o->queued_at = boot_now(cl);
	if (o->kind != OP_RENT || o->sent->call.class != CALL_CREATE || boot_now(cl) - o->queued_at < RENT_QUEUE_MS) {
		again_later(cl, o, wait_ms, false);
		return;
	}
	err_set(&err, ERR_RATE_LIMITED, "the account's rate limit leaves no room for a create now");
	err.retry_after_ms = wait_ms;
	finish(cl, o, NULL, &err);
}

static struct carried *new_carried(struct wire *w)
{
	for (size_t i = 0; i < w->carried_count; i++)
		if (!w->carried[i].used)
			return &w->carried[i];
	GROW(w->carried, w->carried_count, w->carried_cap);
	return &w->carried[w->carried_count++];
}

static void free_carried(struct carried *c)
{
	let_go(c->sent);
	answer_free(&c->answer);
	*c = (struct carried){0};
}

static struct happening *back_later(struct client *cl, struct sim *s, const struct carried *c, int64_t delay)
{
	struct happening *h = client_later(cl, delay, W_WIRE_REPLY);

	h->life = c->life;
	h->x = c - s->wire->carried;
	return h;
}

/* What the faults of the plan do to this trip. */
static void fit_faults(struct sim *s, struct carried *c)
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

static void show_call(struct sim *s, const struct carried *c, int provider)
{
	const struct call *call = &c->sent->call;

	if (!s->tracing)
		return;
	const char *name = call->kind == CALL_GRPC ? strrchr(call->url, '/') + 1 : call->url;
	trace(s, "call %d (op %llu): %s: %s %s, %zu bytes", c->number, (unsigned long long)c->op, ops_of(s, provider)->name,
	      call->kind == CALL_GRPC ? "gRPC" : call->method, name, call->body.len);
}

/* From then on a pod bills because its vendor cannot be told, or does not listen: that is not the client's to cap. */
static void note_release(struct client *cl, const struct wire_op *o, const struct carried *c)
{
	struct machine *m = o->kind == OP_RELEASE ? wire_find(cl->sim, o->provider, o->want.id) : NULL;
	bool comes_there = !c->failed && !c->puts_off && !c->fails_before;

	if (m && !comes_there && m->release_asked < 0)
		m->release_asked = cl->sim->now;
}

/* The request is on its way, and nobody is there any more to hear the answer. */
static void crash_now(struct client *cl)
{
	static const enum fault_kind kinds[] = {F_CRASH_RESUME, F_CRASH_REAP, F_CRASH_RESUME, F_CRASH_RESUME};
	const struct fault *f = strikes(cl->sim, F_CRASH_AT_CALL);

	if (!f)
		return;
	struct fault crash = *f;
	crash.kind = kinds[(f->x >> 1) % 4];
	client_crash(cl, &crash);
}

static void carry(struct client *cl, struct wire_op *o)
{
	struct sim *s = cl->sim;
	struct wire *w = s->wire;
	const struct fault *f;

	o->sent_wall_ms = wall_now(cl);
	int64_t wait = o->sent->call.unlimited ? 0 : room_in(cl, o), latency = s->plan->vendors[o->provider].latency_ms;
	if (wait > 0) {
		wait_for_room(cl, o, wait);
		return;
	}
	o->queued_at = 0;
	struct carried *c = new_carried(w);
	*c = (struct carried){.used = true, .op = o->serial, .life = cl->life, .sent = o->sent, .sent_at = s->now, .was_sent = true};
	o->sent->refs++;
	c->number = (int)++w->tally[s->plan->vendors[o->provider].wire].calls;
	show_call(s, c, o->provider);
	f = strikes(s, F_CALL_LOST);
	if (f) { /* not connected, reset, or never answered */
		c->failed = true;
		c->was_sent = f->x % 3;
		note_release(cl, o, c);
		back_later(cl, s, c, f->x % 3 == 2 ? o->sent->call.timeout_ms : latency);
		return;
	}
	f = strikes(s, F_CALL_SLOW);
	int64_t slow = f && f->x & 1 ? f->ms % 10000 : 0;
	c->slow_reply_ms = f && !(f->x & 1) ? f->ms % 70000 : 0;
	fit_faults(s, c);
	note_release(cl, o, c);
	struct happening *h = client_later(cl, latency + slow, W_WIRE_CALL);
	h->provider = o->provider;
	h->x = c - w->carried;
	crash_now(cl);
}

static void step(struct client *cl, struct wire_op *o, const struct reply *reply)
{
	struct op_result result = {0};
	struct err err = {0};
	int64_t wait_ms = 0;
	struct call next = {0};

	calling = cl;
	enum op_next what = ops_of(cl->sim, o->provider)->next(o->op, reply, &next, &wait_ms, &result, &err);
	calling = NULL;
	if (what == OP_CALL || what == OP_WAIT)
		op_result_free(&result);
	switch (what) {
	case OP_CALL:
		let_go(o->sent);
		o->sent = xcalloc(1, sizeof(*o->sent));
		*o->sent = (struct sent){1, next};
		carry(cl, o);
		return;
	case OP_WAIT: again_later(cl, o, wait_ms, true); return;
	case OP_DONE: finish(cl, o, &result, NULL); break;
	case OP_FAILED: finish(cl, o, NULL, &err); break;
	}
	op_result_free(&result);
}

static struct wire_op *begin(struct client *cl, int provider, int pod, enum op_kind kind,
			     void (*done)(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err))
{
	struct wire_life *l = life_of(cl);
	struct wire_op *o = xcalloc(1, sizeof(*o));

	o->serial = ++cl->sim->wire->serials;
	o->provider = provider;
	o->pod = pod;
	o->kind = kind;
	o->done = done;
	o->asked_at = boot_now(cl);
	o->next = l->ops;
	l->ops = o;
	cl->sim->wire->tally[cl->sim->plan->vendors[provider].wire].ops++;
	return o;
}

/* Its want is filled in. It never calls back from inside. */
static void go(struct client *cl, struct wire_op *o)
{
	calling = cl;
	o->op = ops_of(cl->sim, o->provider)->begin(life_of(cl)->handles[o->provider], o->kind, &o->want);
	calling = NULL;
	again_later(cl, o, 0, true);
}

/* ---- at the server ---- */

static void break_off(struct carried *c)
{
	c->failed = true;
	str_reset(&c->answer.head);
	str_reset(&c->answer.body);
}

static void spoil_http(struct carried *c)
{
	struct str *body = &c->answer.body;

	if (body->len)
		body->len = body->len / 2;
	switch (c->garbage) {
	case 1: c->cut = true; return; /* fewer bytes than were announced */
	case 2: break;
	case 3:
		str_reset(body);
		str_add(body, "<html><body>Please wait</body></html>");
		break;
	default: str_reset(body); str_add(body, "{\"zebra\":{\"stripes\":[1,2]}}");
	}
	if (body->s)
		body->s[body->len] = '\0';
}

static void spoil_grpc(struct carried *c)
{
	struct answer *a = &c->answer;

	switch (c->garbage) {
	case 1: /* it ends in the middle of a message */
		str_reset(&a->body);
		str_addn(&a->body, "\0\0\0\0\7abc", 8);
		return;
	case 2: /* ... without a status */
		str_reset(&a->head);
		str_add(&a->head, "HTTP/2 200\r\nContent-Type: application/grpc\r\n");
		return;
	case 3: /* of something between the server and us */
		str_reset(&a->head);
		str_reset(&a->body);
		str_add(&a->head, "HTTP/2 200\r\nContent-Type: text/html\r\n");
		str_add(&a->body, "<html></html>");
		return;
	default: /* no message of this kind */
		str_reset(&a->body);
		grpc_add_frame(&a->body, "\xff\xff\xff", 3);
	}
}

static void answer_failure(struct sim *s, struct carried *c, bool grpc)
{
	static const int http[] = {500, 502, 503, 504}, codes[] = {GRPC_UNAVAILABLE, GRPC_INTERNAL, GRPC_UNKNOWN};
	struct answer *a = &c->answer;

	(void)s;
	if (grpc && c->x % 4) {
		modal_status(a, codes[c->x % 4 - 1], "it broke: 50% of it");
		return;
	}
	answer_free(a);
	a->status = http[c->x % 4];
	str_addf(&a->head, "HTTP/1.1 %d X\r\nContent-Type: text/html\r\n", a->status);
	str_add(&a->body, "<html><body>Bad gateway</body></html>");
}

static void serve(struct sim *s, struct carried *c, int provider, int client)
{
	bool grpc = s->plan->vendors[provider].wire == WIRE_MODAL, refused = false;
	size_t machines = s->machine_count;

	s->wire->servers[provider].asked_by = client;
	if (c->puts_off && grpc)
		modal_put_off(&c->answer, GRPC_RESOURCE_EXHAUSTED, "slower, please", 0.5 + c->number % 5);
	else if (c->puts_off)
		runpod_put_off(s, &c->answer, 1 + c->number % 4);
	else if (c->fails_before)
		answer_failure(s, c, grpc);
	else if (grpc)
		modal_serve(s, &s->wire->servers[provider], &c->sent->call, &c->answer);
	else
		runpod_serve(s, &s->wire->servers[provider], &c->sent->call, &c->answer);
	refused = c->puts_off || c->fails_before;
	if (!refused && c->fails_after)
		answer_failure(s, c, grpc);
	else if (!refused && c->garbage && grpc)
		spoil_grpc(c);
	else if (!refused && c->garbage)
		spoil_http(c);
	if (c->loses_reply || !c->answer.status)
		break_off(c);
	bool spoilt = c->failed || c->fails_after || c->garbage || c->slow_reply_ms;
	for (size_t i = machines; spoilt && i < s->machine_count; i++)
		s->machines[i].reply_lost = true;
}

/* When the client hears of it: it does not wait for ever. */
static int64_t heard_after(struct sim *s, struct carried *c, int64_t latency)
{
	const struct call *call = &c->sent->call;
	int64_t took = s->now - c->sent_at + latency + c->answer.delay_ms + c->slow_reply_ms;

	if (!c->failed && call->stream && call->stream_limit_ms && (c->answer.endless || took > call->stream_limit_ms)) {
		c->hung_up = true;
		if (!c->answer.endless) /* nothing had come by then */
			answer_free(&c->answer);
		return MAX(c->sent_at + call->stream_limit_ms - s->now, INT64_C(0));
	}
	if (took > call->timeout_ms || (!c->failed && c->answer.endless)) {
		if (!c->answer.endless)
			break_off(c);
		c->failed = true;
		return MAX(c->sent_at + call->timeout_ms - s->now, INT64_C(0));
	}
	return took - (s->now - c->sent_at);
}

static void add_date(struct sim *s, struct answer *a)
{
	time_t now = (time_t)((WALL_EPOCH_MS + s->now) / 1000);
	struct tm tm;
	char text[48];

	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	str_addf(&a->head, "Date: %s\r\n", text);
}

void wire_arrives(struct sim *s, const struct happening *h)
{
	struct carried *c = &s->wire->carried[h->x];
	struct client *cl = &s->clients[h->client];

	serve(s, c, h->provider, h->client);
	if (!c->failed)
		add_date(s, &c->answer);
	int64_t wait = heard_after(s, c, s->plan->vendors[h->provider].latency_ms);
	if (c->life != cl->life) {
		free_carried(c);
		return;
	}
	back_later(cl, s, c, wait);
}

/* ---- the reply, as net/http.c and net/grpc.c make it ---- */

static void fail_reply(struct reply *r, const struct carried *c)
{
	r->failed = true;
	r->was_sent = c->was_sent;
	err_set(&r->err, ERR_NETWORK, c->was_sent ? "the connection was lost" : "not connected");
}

static void take_http(struct carried *c, struct reply *r)
{
	char after[16];

	r->status = c->answer.status;
	r->body = take_str(&c->answer.body);
	r->head = take_str(&c->answer.head);
	if (c->failed || c->cut)
		fail_reply(r, c);
	else if (reply_header(r, "Retry-After", after, sizeof(after)))
		r->retry_after_ms = atoll(after) * 1000;
}

static void grpc_failed(struct reply *r, enum err_kind kind, const char *what)
{
	r->failed = r->was_sent = true;
	err_set(&r->err, kind, "%s", what);
	r->grpc_status = grpc_code_of_kind(kind);
}

static void grpc_said(struct reply *r, const struct str *words)
{
	err_set(&r->err, grpc_err_kind(r->grpc_status), "%s: %s", grpc_code_name(r->grpc_status), str_text(words));
}

/* grpc.c: judge(), on_http() */
static void take_grpc(struct carried *c, const struct call *call, struct reply *r)
{
	CLEANUP(str_free) struct str words = STR_INIT;
	struct str messages = STR_INIT;
	struct grpc_reader reader = {.stream = call->stream, .most = call->max_bytes, .to = &messages};
	char type[32] = "";
	struct err err = {0};
	int64_t after_ms;

	r->status = c->answer.status;
	r->head = take_str(&c->answer.head);
	bool grpc = r->status == 200 && reply_header(r, "Content-Type", type, sizeof(type)) && !strncmp(type, "application/grpc", 16);
	bool framed = !grpc || grpc_read(&reader, c->answer.body.s, c->answer.body.len, &err) == 0;
	if (c->failed) {
		fail_reply(r, c);
		r->grpc_status = GRPC_UNAVAILABLE;
	} else if (!framed) {
		grpc_failed(r, err.kind, err.msg);
	} else if (grpc_read_status(r, &r->grpc_status, &words, &r->details)) {
		if (r->grpc_status != GRPC_OK)
			grpc_said(r, &words);
		else if (!c->hung_up && grpc_read_end(&reader, &err) < 0)
			grpc_failed(r, err.kind, err.msg);
	} else if (c->hung_up && (!r->status || grpc)) {
		r->grpc_status = GRPC_OK;
	} else if (grpc) {
		grpc_failed(r, ERR_NETWORK, "the reply ends without a status");
		r->grpc_status = GRPC_UNKNOWN;
	} else {
		r->grpc_status = grpc_code_of_http(r->status);
		str_addf(&words, "HTTP status %d and no word of gRPC", r->status);
		grpc_said(r, &words);
	}
	if (grpc_read_retry_policy(r->details.s, r->details.len, &after_ms))
		r->retry_after_ms = after_ms;
	r->err.retry_after_ms = r->err.kind ? r->retry_after_ms : 0;
	grpc_read_drop(&reader);
	if (call->stream || (!r->failed && r->grpc_status == GRPC_OK)) {
		r->body = messages;
		return;
	}
	str_free(&messages);
}

static void compare_clocks(struct client *cl, const struct wire_op *o, const struct reply *r)
{
	struct wire_life *l = life_of(cl);
	int64_t off_ms;

	if (r->failed || !reply_clock_off(r, o->sent_wall_ms, wall_now(cl), &off_ms))
		return;
	l->clock_off[o->provider] = off_ms;
	l->clock_known[o->provider] = true;
}

/* caller.c: caller_check_clock() */
static int check_clock(struct client *cl, int provider, struct err *err)
{
	const struct wire_life *l = life_of(cl);

	if (!l->clock_known[provider] || llabs(l->clock_off[provider]) <= CALLER_CLOCK_OFF_MS)
		return 0;
	return err_set(err, ERR_CONFIG, "this machine's clock is off by %lld s", (long long)l->clock_off[provider] / 1000);
}

/* caller.c: again_ms() */
static int64_t again_ms(struct client *cl, struct wire_op *o, const struct reply *r)
{
	int64_t wait;

	if (o->sent->call.kind == CALL_GRPC) {
		calling = cl;
		wait = grpc_again_ms(&o->tries, &o->sent->call, r);
		calling = NULL;
		return wait;
	}
	if (!o->sent->call.may_repeat || o->repeats >= REPEATS_MAX)
		return -1;
	if (r->failed ? r->err.kind != ERR_NETWORK && r->err.kind != ERR_TRANSIENT : r->status < 500)
		return -1;
	wait = (int64_t)REPEAT_FIRST_MS << o->repeats++;
	calling = cl;
	wait += (int64_t)(random_u64() % (uint64_t)wait);
	calling = NULL;
	return MAX(wait, r->retry_after_ms);
}

static void show_reply(struct sim *s, const struct carried *c, const struct reply *r)
{
	if (r->failed)
		trace(s, "reply %d: failed: %s", c->number, r->err.msg);
	else if (c->sent->call.kind == CALL_GRPC)
		trace(s, "reply %d: %s, %zu bytes%s%s", c->number, grpc_code_name(r->grpc_status), r->body.len, r->err.kind ? ": " : "",
		      r->err.kind ? r->err.msg : c->hung_up ? ", hung up" : "");
	else
		trace(s, "reply %d: %d, %zu bytes%s%.80s", c->number, r->status, r->body.len, r->status >= 300 ? ": " : "",
		      r->status >= 300 ? str_text(&r->body) : "");
}

static struct wire_op *find_op(struct client *cl, uint64_t serial)
{
	for (struct wire_op *o = life_of(cl)->ops; o; o = o->next)
		if (o->serial == serial)
			return o;
	return NULL;
}

static void on_reply(struct client *cl, struct carried *c)
{
	__attribute__((cleanup(reply_free))) struct reply r = {0};
	struct wire_op *o = find_op(cl, c->op);

	/* the machine slept too long over it */
	if (!c->failed && cl->sim->now - c->sent_at > c->sent->call.timeout_ms)
		break_off(c);
	if (c->sent->call.kind == CALL_GRPC)
		take_grpc(c, &c->sent->call, &r);
	else
		take_http(c, &r);
	show_reply(cl->sim, c, &r);
	free_carried(c);
	if (!o)
		return;
	compare_clocks(cl, o, &r);
	limiter_learn(cl->limiter, ops_of(cl->sim, o->provider)->account(life_of(cl)->handles[o->provider]), &r,
		      &(struct limit_call){o->sent_wall_ms, wall_now(cl), 0});
	int64_t wait = again_ms(cl, o, &r);
	if (wait >= 0) {
		again_later(cl, o, wait, false);
		return;
	}
	o->repeats = 0;
	o->tries = (struct grpc_tries){0};
	step(cl, o, &r);
}

void wire_hears(struct client *cl, const struct happening *h)
{
	if (h->what == W_WIRE_REPLY) {
		on_reply(cl, &cl->sim->wire->carried[h->x]);
		return;
	}
	struct wire_op *o = find_op(cl, (uint64_t)h->x);
	if (o && h->y)
		step(cl, o, NULL);
	else if (o)
		carry(cl, o);
}

/* ---- what is asked and what the answers mean: engine/vendor.c ---- */

static void offers_done(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = EV_OFFERS, .provider = o->provider};
	struct offer_past *past = NULL;
	struct err off = {0};

	if (result && check_clock(cl, o->provider, &off) < 0) {
		err = &off;
	} else if (result) {
		const struct vendor_plan *v = &cl->sim->plan->vendors[o->provider];
		ev.offers = result->offers;
		ev.count = result->offer_count;
		ev.past = past = xcalloc(ev.count + 1, sizeof(*past));
		for (size_t i = 0; i < ev.count; i++) {
			past[i].boot_ms = cl->sim->plan->knows_boots ? v->boot_ms : 0;
			for (int k = 0; k < BAD_MAX; k++) {
				const struct bad_offer *b = &ledger_of(cl, o->provider)->bad[k];
				if (!b->at || strcmp(b->id, ev.offers[i].id))
					continue;
				past[i].bad_at_ms = b->at;
				past[i].bad_until_ms = b->at + 1800000;
			}
		}
	}
	client_told(cl, &ev, err);
	free(past);
}

static void ask_offers(struct client *cl, int provider)
{
	struct wire_op *o = begin(cl, provider, -1, OP_OFFERS, offers_done);

	o->want.offers.gpus = wishes;
	o->want.offers.spot = !cl->reaping && cl->sim->plan->vendors[provider].spot;
	o->want.offers.cpu = o->want.offers.memory_gb = 1;
	o->want.offers.volume = life_of(cl)->volumes[provider];
	go(cl, o);
}

static void volume_done(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err)
{
	struct volume *v = &life_of(cl)->volumes[o->provider];
	struct event ev = {.type = EV_VOLUME, .provider = o->provider, .volume = v};
	struct err none = {0};

	if (result && result->volume_count) {
		*v = result->volumes[0];
		v->apart = provider_can_fetch(ops_of(cl->sim, o->provider), life_of(cl)->handles[o->provider], v);
	} else if (!err) {
		err_set(&none, ERR_TRANSIENT, "it named no volume");
		err = &none;
	}
	client_told(cl, &ev, err);
}

static void ask_volume(struct client *cl, int provider)
{
	struct wire_op *o = begin(cl, provider, -1, OP_VOLUME, volume_done);

	o->want.volume.name = "cache";
	o->want.volume.size_gb = 50;
	o->want.volume.create = true;
	o->want.volume.gpus = wishes;
	go(cl, o);
}

static void list_done(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = EV_LISTED, .provider = o->provider, .asked_at = o->asked_at};

	if (result) {
		ev.views = result->pods;
		ev.count = result->pod_count;
	}
	client_told(cl, &ev, err);
}

static void add_recipe(struct client *cl, struct wire_op *o)
{
	struct rent_request *r = &o->want.rent;
	static const char *const packages[] = {"espeak-ng", NULL};

	r->packages = packages;
	r->agent = "the agent";
	r->agent_len = 9;
	r->agent_path = "/usr/local/bin/burst-agent";
	COPY_TEXT(o->image, ledger_of(cl, o->provider)->image);
	r->known_image = o->image[0] ? o->image : NULL;
}

static void keep_image(struct client *cl, int provider, const char *image)
{
	if (image[0])
		COPY_TEXT(ledger_of(cl, provider)->image, image);
}

static void image_done(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = EV_IMAGE, .provider = o->provider};

	if (result)
		keep_image(cl, o->provider, result->image);
	client_told(cl, &ev, err);
}

static void ask_image(struct client *cl, int provider)
{
	struct wire_op *o = begin(cl, provider, -1, OP_IMAGE, image_done);

	add_recipe(cl, o);
	go(cl, o);
}

static void rent_done(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = err ? EV_RENT_FAILED : EV_RENTED, .pod = o->pod, .provider = o->provider};

	if (result) {
		ev.views = result->pods;
		ev.count = 1;
		keep_image(cl, o->provider, result->image);
		if (!wire_find(cl->sim, o->provider, result->pods[0].id))
			broke(cl->sim, "rented pod \"%s\", which nobody made", result->pods[0].id);
	}
	client_told(cl, &ev, err);
}

static void add_env(struct wire_op *o, const char *name, char *value)
{
	o->env[o->env_count++] = (struct env_pair){xstrdup(name), value, false};
}

bool wire_rent(struct client *cl, int pod)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	struct err err = {0};

	if (!wire_is(cl->sim, p->provider))
		return false;
	if (check_clock(cl, p->provider, &err) < 0) {
		struct happening *h = client_later(cl, 1, W_CREATED);
		h->pod = pod;
		h->provider = p->provider;
		h->kind = err.kind;
		return true;
	}
	struct wire_op *o = begin(cl, p->provider, pod, OP_RENT, rent_done);
	struct rent_request *r = &o->want.rent;
	r->offer = p->offer;
	snprintf(r->name, sizeof(r->name), "burst-%s", p->attempt);
	COPY_TEXT(r->marker.machine, cl->job->conf.machine);
	COPY_TEXT(r->marker.run, cl->job->conf.run);
	COPY_TEXT(r->marker.attempt, p->attempt);
	r->marker.hard_end_s = p->hard_end_s;
	r->volume = p->volume;
	r->mount = "/workspace";
	r->cpu = r->memory_gb = 1;
	add_recipe(cl, o);
	r->start_script = "exec burst\n";
	add_env(o, "BURST_VENDOR", xstrdup(ops_of(cl->sim, p->provider)->name));
	add_env(o, "BURST_RUN", xstrdup(cl->job->conf.run));
	add_env(o, "BURST_ATTEMPT", xstrdup(p->attempt));
	add_env(o, "BURST_MACHINE", xstrdup(cl->job->conf.machine));
	add_env(o, "BURST_HARD_END", xasprintf("%lld", (long long)p->hard_end_s));
	add_env(o, "BURST_FIRST_LEASE_END", xasprintf("%lld", (long long)p->first_lease_end_s));
	add_env(o, "BURST_AUTHORIZED_KEY", xstrdup("ssh-ed25519 AAAA burst"));
	r->env = o->env;
	r->env_count = o->env_count;
	go(cl, o);
	return true;
}

/* ---- logs, and giving back ---- */

static struct pod_log *log_of(struct client *cl, int pod)
{
	struct wire_life *l = life_of(cl);

	if ((size_t)pod >= l->log_count) {
		size_t count = (size_t)pod + 8;
		l->logs = xrealloc(l->logs, count * sizeof(*l->logs));
		memset(l->logs + l->log_count, 0, (count - l->log_count) * sizeof(*l->logs));
		l->log_count = count;
	}
	return &l->logs[pod];
}

/* vendor.c: is_new_line() */
static bool is_new_line(struct pod_log *p, const char *line, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)line[i]) * 16777619u;
	for (size_t i = 0; i < p->count; i++)
		if (p->lines[i] == hash)
			return false;
	GROW(p->lines, p->count, p->cap);
	p->lines[p->count++] = hash;
	return true;
}

static void log_done(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = EV_LOG, .pod = o->pod, .provider = o->provider};
	struct pod_log *p = log_of(cl, o->pod);

	if (!err) {
		p->read_at = boot_now(cl);
		for (const char *line = str_text(&result->text); *line;) {
			size_t len = strcspn(line, "\n");
			if (len && !starts_with(line, "container: "))
				ev.number += is_new_line(p, line, len);
			line += len + (line[len] == '\n');
		}
	}
	client_told(cl, &ev, err);
}

static struct wire_op *about_pod(struct client *cl, int pod, enum op_kind kind,
				 void (*done)(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err))
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	struct wire_op *o = begin(cl, p->provider, pod, kind, done);

	COPY_TEXT(o->want.id, p->id);
	go(cl, o);
	return o;
}

static void release_done(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err)
{
	struct event ev = {.type = EV_RELEASED, .pod = o->pod, .provider = o->provider, .number = err ? RELEASE_TAKEN : (int)result->release};

	client_told(cl, &ev, err);
}

static void last_log_done(struct client *cl, struct wire_op *o, struct op_result *result, const struct err *err)
{
	(void)result, (void)err;
	about_pod(cl, o->pod, OP_RELEASE, release_done);
}

static void release(struct client *cl, int pod)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	struct pod_log *log = log_of(cl, pod);
	struct machine *m = wire_find(cl->sim, p->provider, p->id);

	if (m)
		m->let_go = true;
	else
		broke(cl->sim, "a release of \"%s\", which nobody made", p->id);
	bool asks = p->fault != ERR_NONE && p->fault != ERR_CAP && !p->connected_at && !log->asked;
	log->asked = log->asked || asks;
	if (asks && !(log->read_at && boot_now(cl) - log->read_at < LOG_FRESH_MS))
		about_pod(cl, pod, OP_LOGS, last_log_done);
	else
		about_pod(cl, pod, OP_RELEASE, release_done);
}

bool wire_mark_host(struct client *cl, int pod, int64_t at)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);

	if (!wire_is(cl->sim, p->provider))
		return false;
	struct bad_offer *bad = ledger_of(cl, p->provider)->bad, *to = &bad[0];
	for (int i = BAD_MAX - 1; i >= 0; i--)
		if (!bad[i].at || !strcmp(bad[i].id, p->offer.id))
			to = &bad[i];
	COPY_TEXT(to->id, p->offer.id);
	to->at = at;
	return true;
}

bool wire_act(struct client *cl, const struct action *a)
{
	bool of_pod = a->type == ACT_LOG || a->type == ACT_RELEASE;
	int provider = of_pod ? core_pod_at(cl->core, a->pod)->provider : a->provider;

	if (!cl->sim->wire || !wire_is(cl->sim, provider))
		return false;
	switch ((int)a->type) {
	case ACT_OFFERS: ask_offers(cl, provider); return true;
	case ACT_VOLUME: ask_volume(cl, provider); return true;
	case ACT_IMAGE: ask_image(cl, provider); return true;
	case ACT_LIST: go(cl, begin(cl, provider, -1, OP_LIST, list_done)); return true;
	case ACT_LOG: about_pod(cl, a->pod, OP_LOGS, log_done); return true;
	case ACT_RELEASE: release(cl, a->pod); return true;
	default: return false;
	}
}

/* ---- waiting for a GPU, at Modal ---- */

void wire_freed(struct sim *s, int vendor, int offer)
{
	int runs = 0;

	for (size_t i = 0; i < s->machine_count; i++) {
		const struct machine *m = &s->machines[i];
		runs += m->vendor == vendor && m->offer == offer && !m->is_over && !m->queued;
	}
	for (size_t i = 0; i < s->machine_count && runs < s->plan->vendors[vendor].capacity[offer]; i++) {
		struct machine *m = &s->machines[i];
		if (m->vendor != vendor || m->offer != offer || m->is_over || !m->queued)
			continue;
		m->queued = m->never_runs = false;
		m->runs_at = s->now + s->plan->vendors[vendor].boot_ms;
		later(s, s->plan->vendors[vendor].boot_ms, W_CONTAINER)->machine = (int)i;
		runs++;
	}
}
