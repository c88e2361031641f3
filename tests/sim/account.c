/* account.c - how often an account may be asked: what its vendor counts, and the limiters of the
 * machines that share it. A machine's clients share their counts through its ledger; machines know
 * nothing of each other but what replies say.
 *
 * What is promised, and checked here: a poll or a create is refused for the account's limit only
 * where another machine asked and this one did not know of all: within the same window (what a
 * reply says is left knows nothing of calls that are on their way, here or there); or ever, with a
 * vendor that does not say what is left. A release waits for nothing but a 429, and, a minute at
 * most, for the end of a window that the vendor spoke of. After a 429 a machine leaves the account
 * alone for as long as it was told to. */
#include "sim.h"

#include <stdlib.h>

#include "base/str.h"

enum { WINDOW_MS = 60000, RENT_QUEUE_MS = 10000, RETRY_MS = 5000, RELEASE_WAIT_MS = 60000 };

struct api_call { /* on its way through the limiter, or to the vendor */
	struct happening call;
	int64_t since, extra;
};

static bool limited(const struct sim *s, int provider)
{
	return s->plan->vendors[provider].per_minute > 0;
}

static enum call_class class_of(enum what what)
{
	return what == W_RELEASE ? CALL_RELEASE : what == W_CREATE ? CALL_CREATE : CALL_POLL;
}

static bool goes_there(enum what what)
{
	return what == W_CREATE || what == W_LIST || what == W_RELEASE;
}

static enum what answer_to(enum what what)
{
	switch (what) {
	case W_CREATE: return W_CREATED;
	case W_LIST: return W_LISTED;
	case W_RELEASE: return W_RELEASED;
	default: return what;
	}
}

/* What happens to a call or its reply, with its own time and place in the queue. */
static void put(struct happening *to, const struct happening *from)
{
	struct happening h = *from;

	h.at = to->at;
	h.seq = to->seq;
	h.what = to->what;
	h.client = to->client;
	h.life = to->life;
	h.data = NULL;
	*to = h;
}

static struct happening *wrap(struct client *cl, int64_t delay, enum what what, struct api_call *k)
{
	struct happening *h = client_later(cl, delay, what);

	h->provider = k->call.provider;
	h->data = k;
	return h;
}

/* A limiter counts its windows by a clock; that clock was set during one of them. */
bool account_was_set(const struct client *cl)
{
	return cl->laptop->jumped_at >= 0 && cl->sim->now - cl->laptop->jumped_at < 2 * WINDOW_MS;
}

/* ---- the client's side ---- */

static void check_asking(struct client *cl, const struct api_call *k, enum call_class class,
			 int64_t wait)
{
	struct sim *s = cl->sim;
	int provider = k->call.provider;
	/* the clock by which it was told */
	bool set_since = cl->laptop->jumped_at >= cl->laptop->refused_at[provider];
	bool quiet = s->now < cl->laptop->quiet_until[provider] && !set_since;

	if (!wait && quiet && !(class == CALL_RELEASE && cl->laptop->takes_releases[provider]))
		broke(s, "a call %lld ms before the time that a 429 named",
		      (long long)(cl->laptop->quiet_until[provider] - s->now));
	if (!wait || quiet || class != CALL_RELEASE || account_was_set(cl))
		return;
	if (s->now > cl->laptop->told_until[provider])
		broke(s, "a release waits for room that nobody says is used up");
	if (s->now - k->since > RELEASE_WAIT_MS)
		broke(s, "a release waits for room for more than a minute");
}

static void no_room(struct client *cl, struct api_call *k, int64_t wait)
{
	struct happening *h;

	if (k->call.what != W_CREATE || cl->sim->now - k->since < RENT_QUEUE_MS) {
		wrap(cl, wait, W_ROOM, k);
		return;
	}
	h = client_later(cl, 0, W_CREATED);
	put(h, &k->call);
	h->kind = ERR_RATE_LIMITED;
	h->retry_ms = wait;
	free(k);
}

static void try_to_send(struct client *cl, struct api_call *k)
{
	struct sim *s = cl->sim;
	int provider = k->call.provider;
	const struct vendor_plan *v = &s->plan->vendors[provider];
	enum call_class class = class_of(k->call.what);
	int64_t wait =
		limiter_take(cl->limiter, cl->job->conf.providers[provider].name, v->per_minute,
			     plant(PLANT_RELEASE_WAITS) ? CALL_POLL : class, wall_now(cl));

	if (plant(PLANT_NO_LIMITER))
		wait = 0;
	check_asking(cl, k, class, wait);
	check_day(s);
	if (wait) {
		no_room(cl, k, wait);
		return;
	}
	wrap(cl, v->latency_ms, W_CALL, k);
}

/* extra: how long the vendor takes for it, without the way there and back. */
void account_send(struct client *cl, const struct happening *call, int64_t extra)
{
	const struct vendor_plan *v = &cl->sim->plan->vendors[call->provider];

	if (!limited(cl->sim, call->provider)) {
		put(client_later(cl,
				 goes_there(call->what) ? v->latency_ms : 2 * v->latency_ms + extra,
				 call->what),
		    call);
		return;
	}
	struct api_call *k = xcalloc(1, sizeof(*k));
	*k = (struct api_call){.call = *call, .since = cl->sim->now, .extra = extra};
	try_to_send(cl, k);
}

void account_room(struct client *cl, struct happening *h)
{
	try_to_send(cl, TAKE(h->data));
}

/* The limiter learns what a reply says of the account's windows before any other code does. */
void account_heard(struct client *cl, struct happening *h)
{
	struct sim *s = cl->sim;
	bool refused = h->kind == ERR_RATE_LIMITED;
	struct reply r = {.status = refused ? 429 : 200};

	if (!h->answers || !limited(s, h->provider))
		return;
	if (refused && !h->retry_ms)
		h->retry_ms = RETRY_MS;
	r.retry_after_ms = h->retry_ms;
	if (s->plan->vendors[h->provider].says_limit && h->reset_s)
		str_addf(&r.head,
			 "RateLimit-Policy: \"minute\";q=%d;w=60\r\nRateLimit: "
			 "\"minute\";r=%d;t=%d\r\n",
			 s->plan->vendors[h->provider].per_minute, h->left, h->reset_s);
	if (r.head.len)
		cl->laptop->told_until[h->provider] =
			MAX(cl->laptop->told_until[h->provider], s->now + (h->reset_s + 2) * 1000);
	if (!plant(PLANT_429_UNHEARD) || !refused)
		limiter_learn(cl->limiter, cl->job->conf.providers[h->provider].name, &r,
			      &(struct limit_call){
				      .sent_ms = wall_now(cl) - (s->now - h->said_at) -
						 s->plan->vendors[h->provider].latency_ms,
				      .now_ms = wall_now(cl),
				      .class = h->what == W_RELEASED ? CALL_RELEASE : CALL_POLL});
	if (refused || h->what == W_RELEASED)
		cl->laptop->takes_releases[h->provider] = !refused;
	if (refused) {
		cl->laptop->refused_at[h->provider] = s->now;
		/* the newest reply counts */
		cl->laptop->quiet_until[h->provider] = s->now + h->retry_ms;
	}
	reply_free(&r);
}

/* ---- the vendor's side ---- */

static void roll_over(struct account *a, int64_t now)
{
	if (a->used && now < a->began + WINDOW_MS)
		return;
	a->began = now;
	a->used = 0;
}

/* Another machine made the call, so this one could not know. */
static bool could_not_know(struct sim *s, const struct client *cl, int provider)
{
	const struct account *a = &s->accounts[provider];
	/* if replies do not report windows, one that another machine began stays out of step with
	 * ours */
	int64_t since = s->plan->vendors[provider].says_limit ? a->began : 0;

	for (int i = 0; i < LAPTOPS_MAX; i++)
		if (&s->laptops[i] != cl->laptop && a->asked[i] && a->requested_at[i] >= since)
			return true;
	return false;
}

static void say_limit(struct sim *s, struct happening *h, int provider)
{
	struct account *a = &s->accounts[provider];

	h->answers = true;
	h->said_at = s->now;
	h->left = MAX(s->plan->vendors[provider].per_minute - a->used, 0);
	h->reset_s = (int)((a->began + WINDOW_MS - s->now + 999) / 1000);
}

static void refuse(struct sim *s, struct happening *h, const struct api_call *k)
{
	struct client *cl = &s->clients[h->client];
	int64_t told = s->accounts[k->call.provider].began + WINDOW_MS - s->now;

	/* if replies do not report windows, those begun before the clock was set stay out of step
	 */
	bool out_of_step = account_was_set(cl) || (cl->laptop->jumped_at >= 0 &&
						   !s->plan->vendors[k->call.provider].says_limit);

	s->refused++;
	if (k->call.what == W_RELEASE)
		cloud_release_requested(s, &s->machines[k->call.machine]);
	if (class_of(k->call.what) != CALL_RELEASE && !out_of_step &&
	    !could_not_know(s, cl, k->call.provider))
		broke(s, "a call over the limit of %d a minute, and no other machine asked unheard",
		      s->plan->vendors[k->call.provider].per_minute);
	struct happening *r = reply_later(s, h, s->plan->vendors[k->call.provider].latency_ms,
					  answer_to(k->call.what));
	put(r, &k->call);
	r->kind = ERR_RATE_LIMITED;
	r->retry_ms = (told + 999) / 1000 * 1000;
	say_limit(s, r, k->call.provider);
}

/* A call arrives. */
void account_call(struct sim *s, struct happening *h)
{
	struct api_call *k = h->data;
	int provider = k->call.provider, laptop = (int)(s->clients[h->client].laptop - s->laptops);
	struct account *a = &s->accounts[provider];

	roll_over(a, s->now);
	if (a->used >= s->plan->vendors[provider].per_minute) {
		refuse(s, h, k);
		return;
	}
	a->used++;
	a->asked[laptop] = true;
	a->requested_at[laptop] = s->now;
	if (!goes_there(k->call.what)) {
		struct happening *r = reply_later(
			s, h, s->plan->vendors[provider].latency_ms + k->extra, k->call.what);
		put(r, &k->call);
		say_limit(s, r, provider);
		return;
	}
	k->call.client = h->client;
	k->call.life = h->life;
	switch (k->call.what) {
	case W_CREATE: cloud_create(s, &k->call); break;
	case W_LIST: cloud_list(s, &k->call); break;
	default: cloud_release(s, &k->call); break;
	}
}

/* The cloud's reply to one of its calls. */
void account_says(struct sim *s, struct happening *answer, int provider)
{
	if (limited(s, provider))
		say_limit(s, answer, provider);
}
