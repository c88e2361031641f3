/* width.c - how many pods: what providers are asked for, when another pod is worth its cold start,
 * and why none is rented. */
#include "impl.h"

#include <stdlib.h>

#include "base/clock.h"

/* ---- query ----
 * What to request of providers before a pod is rented: offers, a volume, an image. Handles their
 * answers. */

/* Whether the provider was asked for its volume or offers and has not answered. */
static bool is_query_open(const struct vendor *v)
{
	return v->volume_query == QUERY_SENT || v->offers_query == QUERY_SENT;
}

/* Notes once that the provider is overdue. With a used-up rate limit its reply may take an hour:
 * burst asks the next provider, and uses the reply when it comes. */
static void note_overdue(struct core *c, int provider)
{
	struct vendor *v = &c->vendors[provider];

	if (v->err.kind != ERR_NONE)
		return;
	err_set(&v->err, ERR_TRANSIENT,
		"%s: no reply to the request for offers (its rate limit may be used up)",
		c->conf.providers[provider].name);
	core_note(c, NOTE_WARN,
		  "%s has not answered for %d s what it offers (its rate limit may be used up)",
		  c->conf.providers[provider].name, QUERY_OVERDUE_MS / 1000);
}

/* When its reply becomes overdue; NEVER: none is expected, or it fills its volume. */
static int64_t overdue_at(const struct vendor *v)
{
	return is_query_open(v) && !v->filling ? v->requested_at + QUERY_OVERDUE_MS : NEVER;
}

static bool is_overdue(const struct core *c, const struct vendor *v)
{
	return c->now >= overdue_at(v);
}

/* Filling a volume has no time limit, and nothing can be rented at its provider before it ends. */
static bool is_any_volume_filling(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (c->vendors[i].filling && !c->vendors[i].dead)
			return true;
	return false;
}

/* Asks the next provider that was not asked yet. Returns true while some provider may still answer
 * in time; overdue ones are skipped. */
static bool send_next_query(struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		if (v->dead || v->offers_query == QUERY_FAILED || v->volume_query == QUERY_FAILED)
			continue;
		if (v->repricing &&
		    v->offers_query ==
			    QUERY_UNSENT) { /* the reply to the price query serves as well */
			v->repricing = false;
			v->offers_query = QUERY_SENT;
			v->requested_at = c->now;
		}
		if (is_query_open(v)) {
			if (!is_overdue(c, v))
				return true;
			note_overdue(c, i);
			continue;
		}
		enum action_type what = c->conf.want_volume && v->volume_query == QUERY_UNSENT
						? ACT_VOLUME
						: ACT_OFFERS;
		if (what == ACT_OFFERS && v->offers_query != QUERY_UNSENT)
			continue;
		*(what == ACT_VOLUME ? &v->volume_query : &v->offers_query) = QUERY_SENT;
		v->requested_at = c->now;
		core_act(c, what, -1)->provider = i;
		return true;
	}
	return false;
}

/* Whether every provider was asked and none has answered: only overdue answers can come. */
static bool is_every_query_open(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].dead && !is_query_open(&c->vendors[i]))
			return false;
	return true;
}

/* Whether a provider that fills no volume has answered, or is overdue. */
static bool has_other_answered(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if (!v->dead && !v->filling &&
		    (is_overdue(c, v) || v->offers_query >= QUERY_ANSWERED ||
		     v->volume_query == QUERY_FAILED))
			return true;
	}
	return false;
}

bool query_is_awaited(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if ((is_query_open(v) && !is_overdue(c, v)) || v->image_query == QUERY_SENT)
			return true;
	}
	return false;
}

/* Replies from before a sleep may be here and unread. The others get their full time from now on.
 * */
void query_on_slept(struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (is_query_open(&c->vendors[i]))
			c->vendors[i].requested_at = c->now;
	if (c->capacity_since)
		c->capacity_since =
			MAX(c->capacity_since, c->now - MAX(c->conf.wait_ms - QUERY_OVERDUE_MS, 0));
}

void query_restart(struct core *c)
{
	c->offers_again_at = 0;
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		if (v->offers_query != QUERY_SENT)
			v->offers_query = QUERY_UNSENT;
		if (v->volume_query == QUERY_FAILED)
			v->volume_query = QUERY_UNSENT;
	}
	c->dirty = true;
}

void query_on_volume_fills(struct core *c, const struct event *ev)
{
	c->vendors[ev->provider].filling = true;
	c->dirty = true;
}

/* Whether waiting cannot help. A certificate counts only before the first answer: later, the
 * sign-in page of a network may stand in between for a while. */
static bool is_final_failure(const struct vendor *v, enum err_kind kind)
{
	return kind == ERR_CREDENTIALS || kind == ERR_CONFIG || kind == ERR_BALANCE ||
	       (kind == ERR_UNTRUSTED && !v->answered);
}

void query_on_answer(struct core *c, const struct event *ev)
{
	struct vendor *v = &c->vendors[ev->provider];
	enum query *ask = ev->type == EV_VOLUME ? &v->volume_query : &v->offers_query;

	c->dirty = true;
	bool for_prices = ev->type == EV_OFFERS && v->repricing;
	v->repricing = v->repricing && !for_prices;
	if (for_prices && ev->err)
		return;
	if (v->filling && ev->type == EV_VOLUME) {
		v->filling = false;
		/* nothing could be rented there until now */
		c->capacity_since = c->capacity_since ? c->now : 0;
	}
	if (ev->type == EV_VOLUME && ev->err && ev->err->kind == ERR_NOT_FOUND &&
	    c->conf.make_volume && !v->to_make) {
		*ask = QUERY_ANSWERED;
		v->to_make = true;
		memset(&v->err, 0, sizeof(v->err));
		return;
	}
	bool made_volume = ev->type == EV_VOLUME && v->to_make;
	v->to_make = v->to_make && !made_volume;
	*ask = ev->err ? QUERY_FAILED : QUERY_ANSWERED;
	if (ev->err) {
		v->err = *ev->err;
		if (ev->type == EV_VOLUME && v->err.kind == ERR_NOT_FOUND)
			v->err.kind = ERR_CONFIG; /* it will not appear by itself */
		v->dead = is_final_failure(v, v->err.kind);
		/* if it is the last provider, the run ends with this message */
		core_note(c, v->dead && vendors_has_any_left(c) ? NOTE_WARN : NOTE_INFO, "%s: %s",
			  c->conf.providers[ev->provider].name, ev->err->msg);
		return;
	}
	v->answered = true;
	if (!v->dead) /* a dead provider keeps its reason, even if another reply arrives */
		memset(&v->err, 0, sizeof(v->err));
	if (ev->type == EV_VOLUME)
		v->volume = *ev->volume;
	if (made_volume) { /* offers in other regions than the new volume's are of no use */
		offers_replace(c, ev->provider, NULL, NULL, 0);
		v->offers_query = QUERY_UNSENT;
	}
	if (ev->type == EV_OFFERS)
		v->floor_microusd_h = ev->floor_microusd_h;
	if (ev->type == EV_OFFERS)
		offers_replace(c, ev->provider, ev->offers, ev->past, ev->count);
}

/* A recipe that cannot be built fails with every offer. Other failures may pass. */
void query_on_image_answer(struct core *c, const struct event *ev)
{
	struct vendor *v = &c->vendors[ev->provider];
	const char *name = c->conf.providers[ev->provider].name;

	c->dirty = true;
	if (!ev->err) {
		v->image_query = QUERY_ANSWERED;
		v->image_failures = 0;
		c->capacity_since = c->now; /* nothing could be rented until now */
		return;
	}
	v->image_query = QUERY_UNSENT;
	if (is_final_failure(v, ev->err->kind) || ev->err->kind == ERR_REFUSED) {
		vendor_give_up(c, ev->provider, ev->err->kind, "%s", ev->err->msg);
		return;
	}
	if (!v->image_failures)
		c->capacity_since = c->now; /* the time of the build does not count as waiting */
	core_note(c, NOTE_INFO, "%s: %s; retrying", name, ev->err->msg);
	err_set(&c->capacity, ev->err->kind, "%s: %s", name, ev->err->msg);
	int64_t rest = MAX(ev->err->retry_after_ms, 2000LL << MIN(v->image_failures++, 5));
	for (size_t i = 0; i < c->candidate_count; i++)
		if (c->candidates[i].provider == ev->provider)
			c->candidates[i].rest_until =
				MAX(c->candidates[i].rest_until, c->now + rest);
}

bool query_wait_is_over(const struct core *c)
{
	return !c->conf.retry_until_up && !is_any_volume_filling(c) && c->capacity_since &&
	       c->now - c->capacity_since >= c->conf.wait_ms;
}

/* Whether pods can be rented with their image; else requests it. No pod exists and nothing is
 * billed while the image is built. */
static bool ensure_image(struct core *c, int provider)
{
	struct vendor *v = &c->vendors[provider];

	if (!c->conf.providers[provider].makes_image)
		return true;
	if (v->image_query == QUERY_UNSENT) {
		v->image_query = QUERY_SENT;
		core_act(c, ACT_IMAGE, -1)->provider = provider;
	}
	return v->image_query == QUERY_ANSWERED;
}

/* Whether no volume has to be made; else requests one. A volume is billed until a user removes it,
 * and it ties its pods to its region, so burst makes none before a pod could be rented there. */
static bool ensure_volume(struct core *c, int provider)
{
	struct vendor *v = &c->vendors[provider];

	if (!v->to_make)
		return true;
	v->volume_query = QUERY_SENT;
	v->requested_at = c->now;
	struct action *a = core_act(c, ACT_VOLUME, -1);
	a->provider = provider;
	a->flag = true;
	return false;
}

/* The next pod is rented beside the new volume, so nothing else is rented meanwhile. */
static bool is_volume_being_made(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if (v->to_make && v->volume_query == QUERY_SENT && !v->filling && !is_overdue(c, v))
			return true;
	}
	return false;
}

/* ---- how wide ---- */

/* Returns true for a lost create at a provider that cannot be listed: its outcome may stay unknown.
 * Its possible cost is held back, and the work continues elsewhere. */
static bool is_unobservable(const struct core *c, const struct core_pod *p)
{
	return p->phase == POD_AMBIGUOUS && c->now - p->rental.rented_at >= UNOBSERVABLE_MS &&
	       c->vendors[p->rental.provider].list_failures >= LIST_FAILURES_MAX;
}

int width_count_active(const struct core *c, int *working, int *coming)
{
	int active = 0;

	*working = *coming = 0;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (!pod_is_active(p) || is_unobservable(c, p))
			continue;
		active++;
		*working += p->phase == POD_WORKING && !pod_is_draining(p);
		*coming += pod_is_coming_up(p) && p->phase != POD_AMBIGUOUS;
	}
	return active;
}

/* How many pods there may be now: one before the canary is good, never more than open segments. */
static int width_wanted(const struct core *c)
{
	if (!c->todo)
		return 0;
	if (!c->canary_ok && !c->conf.at_once)
		return 1;
	size_t most = c->todo; /* no more pods than segments */
	return (size_t)c->conf.pods < most ? c->conf.pods : (int)most;
}

/* The rule, which plan/README.md explains under "How wide": `pods` is the most that are rented at
 * once. A further pod bills while it comes up and renders nothing, so it is rented only if it would
 * then have work for at least as long: below that it adds more to the cost than it takes from the
 * time. One that comes up is released again when there will be work for less than a quarter of the
 * time that it still needs. A worker's start is no work: first batches count only as far as they
 * cannot be too slow (pace_at_best()). With a deadline that takes several pods (conf.at_once) all
 * are rented and work at once; the canary runs on the first that is up. */
bool width_pays(double work_ms, const struct stint *others, size_t count, struct stint one,
		int64_t least_ms)
{
	int64_t until = one.from_ms + least_ms;
	double done_ms = 0;

	if (one.to_ms < until)
		return false;
	for (size_t i = 0; i < count; i++)
		done_ms += (double)MAX(MIN(others[i].to_ms, until) - others[i].from_ms, 0);
	return work_ms - done_ms >= (double)least_ms;
}

/* When the pod works, in ms from now. An overdue pod may be ready at any moment, or never. */
static struct stint stint_of(const struct core *c, const struct core_pod *p)
{
	int64_t cold = budget_cold_ms(c),
		drain_at = p->rental.hard_end_ms - 2 * budget_pod_margin(p), to = drain_at - c->now;

	return (struct stint){
		.from_ms = p->presence.ready_at
				   ? 0
				   : MAX(cold - (c->now - pod_boots_from(p, c->now)), cold / 4),
		.to_ms = p->outgoing ? MIN(to, cold) : to}; /* until a pod that replaces it is up */
}

/* What is left, as the time that one pod would need for it. */
static double work_left_ms(const struct core *c)
{
	return (c->weight_todo + pace_weight_held(c)) * 1000 / (pace_at_best(c) * c->conf.workers);
}

/* Whether a pod with this stint would find work for least_ms beside the others. except: the index
 * of a pod that does not count; -1: none. */
static bool does_pod_pay(const struct core *c, int except, struct stint one, int64_t least_ms)
{
	struct stint *others = xcalloc((size_t)c->pod_count, sizeof(*others));
	size_t count = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (i != except && pod_is_active(p) && !pod_is_draining(p) &&
		    p->phase != POD_AMBIGUOUS)
			others[count++] = stint_of(c, p);
	}
	bool enough = width_pays(work_left_ms(c), others, count, one, least_ms);
	free(others);
	return enough;
}

/* Whether another pod pays that is rented now and must end at `end`. */
static bool is_another_worth_it(const struct core *c, int working, int64_t end)
{
	int64_t life = end - c->now, cold = budget_cold_ms(c);

	if (c->conf.at_once)
		return life > 0;
	if (pace_rate(c) <= 0)
		return !working || !c->conf.canary; /* only the canary runs, so the rest cannot be
						       estimated yet */
	return does_pod_pay(c, -1, (struct stint){cold, life - 2 * budget_margin(life)},
			    cold * (1 + c->too_many));
}

/* The work may be over before a booting pod has begun: judges the one furthest from ready. */
void width_release_surplus(struct core *c)
{
	int working, coming, last = -1;

	width_count_active(c, &working, &coming);
	if (c->conf.at_once || !working || !coming || !c->canary_ok || !c->todo ||
	    pace_rate(c) <= 0 || pace_is_rough(c))
		return;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		bool comes = pod_is_active(p) && pod_is_coming_up(p) && p->phase != POD_AMBIGUOUS &&
			     !p->presence.ready_at && p->presence.past == PAST_NONE;
		if (comes && (last < 0 || p->rental.create_at >= c->pods[last].rental.create_at))
			last = i;
	}
	if (last < 0)
		return;
	struct stint one = stint_of(c, &c->pods[last]);
	/* whether its own time is over is decided elsewhere: watch_hard_end() */
	one.to_ms = NEVER / 2;
	if (does_pod_pay(c, last, one, one.from_ms / 4))
		return;
	c->too_many++;
	core_note(c, NOTE_INFO,
		  "pod %s: released while booting: the other pods will have finished by then",
		  core_pod_called(&c->pods[last]));
	pod_dismiss(c, last, ERR_NONE, "the work left would not have paid for its start");
}

bool width_is_undecided(const struct core *c, int active)
{
	return c->todo && c->conf.canary && active < width_wanted(c) && pace_is_rough(c);
}

/* ---- renting ---- */

/* Whether the wait is over and something was refused: offers may be listed forever while every
 * create reports them as sold out. */
static bool is_capacity_wait_over(const struct core *c)
{
	return query_wait_is_over(c) && c->capacity.kind != ERR_NONE;
}

/* Returns true, with *err, if everything wanted costs more than the cap, including what is sold
 * out: waiting does not help. If a pod was rented before, prices have risen since and may fall
 * again. */
static bool is_all_above_price_cap(const struct core *c, struct err *err)
{
	int64_t cap = c->conf.max_price_microusd_h, least = INT64_MAX;
	const char *where = "";
	char most[32], price[32];

	if (!cap || c->conf.retry_until_up || c->pod_count)
		return false;
	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if (v->dead)
			continue;
		if (v->offers_query != QUERY_ANSWERED || v->floor_microusd_h <= cap)
			return false;
		if (v->floor_microusd_h < least)
			where = c->conf.providers[i].name;
		least = MIN(least, v->floor_microusd_h);
	}
	if (least == INT64_MAX)
		return false;
	err_set(err, ERR_CAP,
		"caps.max_price_per_hour is %s, but the cheapest matching pod costs %s an hour "
		"(%s): raise the cap, or choose another GPU",
		money_show(most, sizeof(most), cap), money_show(price, sizeof(price), least),
		where);
	err_about(err, "caps.max_price_per_hour");
	return true;
}

/* Tells causes of a wait apart for which the user has to do different things. */
static const char *wait_label(enum err_kind kind)
{
	switch ((int)kind) {
	case ERR_NONE:
	case ERR_NO_CAPACITY: return "no capacity";
	case ERR_NETWORK: return "no network";
	case ERR_CREDENTIALS:
	case ERR_NO_ACCOUNT: return "key refused";
	case ERR_BALANCE: return "no money";
	case ERR_RATE_LIMITED: return "rate limit";
	case ERR_UNTRUSTED: return "not trusted";
	case ERR_REFUSED:
	case ERR_CONFIG:
	case ERR_NOT_FOUND: return "refused";
	}
	return "provider failed";
}

/* Says why nothing is rented, when the next try is, and when the run ends. */
static void note_wait(struct core *c, int64_t at, const struct err *why)
{
	const char *label = wait_label(why->kind),
		   *reason = why->msg[0] ? why->msg : "no offers now";
	bool labelled = starts_with(reason, label);
	char next[24], left[24], until[32], end[80] = "";
	int64_t over_at = MAX(c->capacity_since + c->conf.wait_ms, c->now);

	if (c->conf.retry_until_up)
		snprintf(end, sizeof(end), ", without limit");
	else if (!is_any_volume_filling(c))
		snprintf(end, sizeof(end), ", giving up in %s (%.5s UTC)",
			 duration_show(left, sizeof(left), over_at - c->now),
			 clock_rfc3339(until, sizeof(until), c->wall + over_at - c->now) + 11);
	core_note(c, NOTE_NOTE, "%s%s%s; next try in %s%s", labelled ? "" : label,
		  labelled ? "" : ": ", reason, duration_show(next, sizeof(next), at - c->now),
		  end);
}

/* The gravest reason of the providers. */
static struct err gravest_provider_err(const struct core *c)
{
	bool hopeless = !vendors_has_any_left(c);
	struct err err = {0};

	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct err *why = &c->vendors[i].err;
		const char *name = c->conf.providers[i].name;
		/* what one provider can never have is no reason while another could have it */
		bool never = c->vendors[i].dead && why->kind != ERR_CREDENTIALS &&
			     why->kind != ERR_BALANCE;
		if (!why->kind || core_gravity(why->kind) <= core_gravity(err.kind) ||
		    (never && !hopeless))
			continue;
		err = *why;
		if (!starts_with(err.msg, name))
			err_wrap(&err, "%s", name);
	}
	return err;
}

/* Whether every provider has failed: the reason of an earlier create is of less use then. */
static bool has_no_provider_answered(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].err.kind)
			return false;
	return true;
}

/* The wait is over, or no provider is left: stops the run. err: the gravest error of a provider;
 * kind ERR_NONE: none failed. */
static void end_without_capacity(struct core *c, struct err err)
{
	static const char advice[] =
		"; more GPUs in gpu, another provider, or a longer wait can help";
	char waited[24];

	duration_show(waited, sizeof(waited), c->now - c->capacity_since);
	if (err.kind == ERR_NONE) {
		bool sold_out =
			c->capacity.kind == ERR_NONE ||
			(c->capacity.kind == ERR_RATE_LIMITED && !c->capacity.retry_after_ms);
		err_set(&err, sold_out ? ERR_NO_CAPACITY : c->capacity.kind,
			"no usable pod could be rented within %s: %s%s", waited,
			c->capacity.msg[0] ? c->capacity.msg
					   : "no provider offers what the job needs",
			sold_out || c->capacity.kind == ERR_NO_CAPACITY ? advice : "");
	} else if (err.kind == ERR_NO_CAPACITY) {
		struct err said = err;
		err_set(&err, said.kind, "no usable pod could be rented within %s: %s%s", waited,
			said.msg, advice);
	} else if (err.kind == ERR_NETWORK) {
		err_wrap(&err, "%s", wait_label(err.kind));
	}
	core_fault(c, -1, &err);
}

/* Nothing can be rented now: says so and sets the next try, or stops the run. active: pods that the
 * run has. again_at: when an offer may be available again. */
static void wait_or_end_run(struct core *c, int active, int64_t again_at)
{
	struct err err = {0};

	if (!active && is_all_above_price_cap(c, &err)) {
		c->capped = true;
		core_fault(c, -1, &err);
		return;
	}
	if (!c->capacity_since && !active)
		c->capacity_since = c->now;
	bool hopeless = !vendors_has_any_left(c);
	err = gravest_provider_err(c);
	if (active || (!query_wait_is_over(c) && !hopeless)) {
		int64_t at = MAX(c->now + OFFERS_RETRY_MS, MIN(again_at, c->now + OFFER_REST_MS));
		if (!c->conf.retry_until_up && !active && !is_any_volume_filling(c))
			at = MIN(at, c->capacity_since + c->conf.wait_ms);
		if (!active && !is_every_query_open(c))
			note_wait(c, at,
				  c->capacity.msg[0] && !has_no_provider_answered(c) ? &c->capacity
										     : &err);
		c->offers_again_at = at;
		return;
	}
	end_without_capacity(c, err);
}

/* Says which cap leaves no room for a pod. */
static const char *cap_without_room(const struct core *c)
{
	if (c->ends_at && !budget_allows_work_until(c, budget_ends_at(c)))
		return "caps.max_duration was reached";
	return c->pod_count ? "caps.max_cost leaves no room for another pod"
			    : "caps.max_cost does not pay for one pod: raise it, or choose a "
			      "cheaper GPU";
}

/* Whether money may become available again. The possible cost of a pod is held back until it is
 * confirmed gone; then most of it is free. */
static bool may_room_return(const struct core *c)
{
	if (c->ends_at && !budget_allows_work_until(c, budget_ends_at(c)))
		return false;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		bool in_vain = c->vendors[p->rental.provider].list_refused &&
			       c->now - p->rental.rented_at >= AMBIGUOUS_LIMIT_MS;
		if (is_unobservable(c, p) && (in_vain || query_wait_is_over(c)))
			continue;
		if (pod_may_bill(p) && (!pod_is_retired(p) || c->now < p->overdue_at))
			return true;
	}
	return false;
}

/* Returns true while burst reads why a pod failed: the reason may hold for the next one. */
static bool is_diagnosing(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (c->vendors[i].diagnosed_by > c->now)
			return true;
	return false;
}

/* Returns true while a rate limit of some provider delays creates. */
static bool is_rate_limited(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].dead && c->vendors[i].rent_not_before > c->now)
			return true;
	return false;
}

/* Whether no further create should be sent to this provider now: a thousand at once would all wait
 * for the account's limits. */
static bool has_enough_creates(const struct core *c, int provider)
{
	int most = c->vendors[provider].rents_at_once ? c->vendors[provider].rents_at_once
						      : RENTS_AT_ONCE;
	int under_way = 0;

	for (int i = 0; i < c->pod_count; i++)
		under_way +=
			c->pods[i].rental.provider == provider && c->pods[i].phase == POD_RENTING;
	return under_way >= most;
}

/* Returns true for a pod that has a machine and is not to be released. */
static bool is_on_machine(const struct core_pod *p)
{
	return pod_is_active(p) && !pod_lacks_id(p) && p->rental.place == PLACE_GIVEN;
}

/* The offer to rent now. NULL: none; a lack of capacity is noted. */
static struct candidate *choose_offer(struct core *c, int active)
{
	int64_t again_at;
	struct candidate *k = offers_pick(c, &again_at);

	if (!k && send_next_query(c)) {
		/* other providers may have an offer before the volume is filled */
		if ((!active && is_capacity_wait_over(c)) ||
		    (is_any_volume_filling(c) && has_other_answered(c) &&
		     c->now >= c->offers_again_at && !(active && is_rate_limited(c))))
			wait_or_end_run(c, active, again_at);
		return NULL;
	}
	if (!k)
		k = offers_pick_any(c, &again_at);
	if (!k && active && is_rate_limited(c))
		return NULL; /* rate limits are no lack of capacity */
	if (!k) {
		c->waits = true;
		/* when no provider is left, waiting for the next offers cannot help */
		if (c->now >= c->offers_again_at || (!active && !vendors_has_any_left(c)))
			wait_or_end_run(c, active, again_at);
	} else if (!active && is_capacity_wait_over(c)) {
		wait_or_end_run(c, active, again_at);
		return NULL;
	}
	return k;
}

/* Rents one more pod. Returns false if none should or can be rented now. */
static bool rent_next(struct core *c, int working, int active, int outgoing)
{
	struct candidate *k = choose_offer(c, active);
	struct err err;

	if (!k)
		return false;
	c->past_boot_ms = k->past.boot_ms;
	int64_t end =
		budget_hard_end(c, k->offer.price_microusd_h, c->conf.pods - active + outgoing);
	if (end < 0) {
		if (active || may_room_return(c))
			return false;
		c->capped = true;
		err_set(&err, ERR_CAP, "%s", cap_without_room(c));
		core_fault(c, -1, &err);
		return false;
	}
	if (active && !is_another_worth_it(c, working, end))
		return false;
	if (!ensure_image(c, k->provider) || has_enough_creates(c, k->provider) ||
	    !ensure_volume(c, k->provider))
		return false;
	pod_rent(c, k, end);
	return true;
}

void width_advance(struct core *c)
{
	int working, coming, active = width_count_active(c, &working, &coming),
			     outgoing = core_count_outgoing(c);

	if (pods_count(c, is_on_machine))
		/* if this pod is lost, the time without another one must not end the run */
		c->capacity_since = 0;
	if (core_is_reading_past_logs(c) || !budget_spending_is_known(c) ||
	    is_volume_being_made(c) || is_diagnosing(c)) {
		c->waits = false;
		return;
	}
	/* outgoing pods count until they are released */
	for (; active - outgoing < width_wanted(c) && active < core_pods_most(c); active++) {
		if (active && !is_another_worth_it(c, working, NEVER / 2))
			break;
		if (!warm_may_rent(c,
				   MIN(width_wanted(c) + outgoing, core_pods_most(c)) - active) ||
		    !rent_next(c, working, active, outgoing))
			return;
	}
	c->waits = false;
}

int64_t width_wake_at(const struct core *c)
{
	int64_t at = c->settled_at && c->now < c->settled_at + SETTLED_MS
			     ? c->settled_at + SETTLED_MS
			     : NEVER;

	for (int i = 0; i < c->conf.provider_count && !core_is_stopping(c); i++)
		if (c->vendors[i].diagnosed_by > c->now)
			at = MIN(at, c->vendors[i].diagnosed_by);
	for (int i = 0; i < c->conf.provider_count && !core_is_stopping(c); i++)
		if (!is_overdue(c, &c->vendors[i]))
			at = MIN(at, overdue_at(&c->vendors[i]));
	return at;
}
