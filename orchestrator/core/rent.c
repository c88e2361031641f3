/* rent.c - chooses an offer, and rents it. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "impl.h"

/* ---- offers ----
 * Which offer to try next. */

/* By the config's order of providers, then of GPUs, then by the plan's choice between pods on
 * demand and spot pods, then by price. */
static int compare_preference(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->provider != y->provider)
		return x->provider < y->provider ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->is_second != y->is_second)
		return y->is_second ? -1 : 1;
	if (x->offer.price_microusd_h != y->offer.price_microusd_h)
		return x->offer.price_microusd_h < y->offer.price_microusd_h ? -1 : 1;
	int by_region = strcmp(x->offer.region, y->offer.region);
	return by_region ? by_region : strcmp(x->offer.id, y->offer.id);
}

void offers_sort(struct core *c)
{
	for (size_t i = 0; i < c->candidate_count; i++) {
		struct candidate *k = &c->candidates[i];
		bool first = c->replan.gpu[0] && !strcmp(k->offer.gpu, c->replan.gpu);
		k->rank = first ? -1 : k->offer.wish;
		k->is_second = c->conf.plan.on_demand && k->offer.spot;
	}
	if (c->candidate_count)
		qsort(c->candidates, c->candidate_count, sizeof(*c->candidates),
		      compare_preference);
}

static bool is_same_offer(const struct candidate *k, int provider, const struct offer *o)
{
	return k->provider == provider && k->offer.spot == o->spot && !strcmp(k->offer.id, o->id) &&
	       !strcmp(k->offer.region, o->region);
}

static struct candidate *find_candidate(struct core *c, int provider, const struct offer *o)
{
	for (size_t i = 0; i < c->candidate_count; i++)
		if (is_same_offer(&c->candidates[i], provider, o))
			return &c->candidates[i];
	return NULL;
}

void offers_replace(struct core *c, int provider, const struct offer *list,
		    const struct offer_past *past, size_t count)
{
	struct candidate *fresh = xcalloc(count + 1, sizeof(*fresh));
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct candidate *old = find_candidate(c, provider, &list[i]);
		if (old)
			fresh[i] = *old;
		fresh[i].offer = list[i];
		fresh[i].provider = provider;
		if (past)
			fresh[i].past = past[i];
		if (old && !fresh[i].past.unfit[0]) /* the ledger may not have been writable */
			COPY_TEXT(fresh[i].past.unfit, old->past.unfit);
	}
	for (size_t i = 0; i < c->candidate_count; i++)
		if (c->candidates[i].provider != provider)
			c->candidates[kept++] = c->candidates[i];
	c->candidate_count = kept;
	for (size_t i = 0; i < count; i++) {
		GROW(c->candidates, c->candidate_count, c->candidate_cap);
		c->candidates[c->candidate_count++] = fresh[i];
	}
	free(fresh);
	offers_sort(c);
	forecast_note_prices(c);
}

static bool is_too_expensive(const struct core *c, const struct candidate *k)
{
	return c->conf.max_price_microusd_h &&
	       k->offer.price_microusd_h > c->conf.max_price_microusd_h;
}

/* For its price, above caps.max_price_per_hour, or for a card that cannot run the job. */
static bool is_barred(const struct core *c, const struct candidate *k)
{
	return k->past.unfit[0] || is_too_expensive(c, k);
}

void offers_bar_card(struct core *c, const struct core_pod *p, bool anywhere, const char *why)
{
	for (size_t i = 0; i < c->candidate_count; i++) {
		struct candidate *k = &c->candidates[i];
		if ((anywhere || k->provider == p->rental.provider) &&
		    gpu_is_same(k->offer.gpu, p->rental.offer.gpu))
			COPY_TEXT(k->past.unfit, why);
	}
}

bool offers_has_any_left(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].dead && c->vendors[i].offers_query == QUERY_UNSENT)
			return true;
	for (size_t i = 0; i < c->candidate_count; i++)
		if (!c->vendors[c->candidates[i].provider].dead && !is_barred(c, &c->candidates[i]))
			return true;
	return false;
}

bool offers_is_ready(const struct core *c, const struct candidate *k)
{
	const struct vendor *v = &c->vendors[k->provider];

	return !v->dead && (!c->conf.want_volume || v->volume_query == QUERY_ANSWERED) &&
	       !is_barred(c, k) && !offer_avoided(&k->past, c->wall) &&
	       MAX(k->rest_until, v->rent_not_before) <= c->now;
}

/* The first offer in order of preference that can be rented now; NULL: none. */
static struct candidate *pick(struct core *c, bool avoided_too, int64_t *again_at)
{
	*again_at = NEVER;
	for (size_t i = 0; i < c->candidate_count; i++) {
		struct candidate *k = &c->candidates[i];
		const struct vendor *v = &c->vendors[k->provider];
		if (v->dead || (c->conf.want_volume && v->volume_query != QUERY_ANSWERED) ||
		    core_skips_offer(c, k))
			continue;
		if (k->past.unfit[0]) {
			if (c->capacity.kind == ERR_NONE)
				err_set(&c->capacity, ERR_NO_CAPACITY, "%s: %s: %s",
					k->offer.provider, k->offer.gpu, k->past.unfit);
			continue;
		}
		if (is_too_expensive(c, k)) {
			if (c->capacity.kind == ERR_NONE)
				err_set(&c->capacity, ERR_NO_CAPACITY,
					"%s: %s costs more than caps.max_price_per_hour",
					k->offer.provider, k->offer.gpu);
			continue;
		}
		int64_t from = MAX(k->rest_until, c->vendors[k->provider].rent_not_before);
		if (from > c->now) {
			*again_at = MIN(*again_at, from);
			continue;
		}
		if (!avoided_too && offer_avoided(&k->past, c->wall))
			continue;
		return k;
	}
	return NULL;
}

struct candidate *offers_pick(struct core *c, int64_t *again_at)
{
	return pick(c, false, again_at);
}

struct candidate *offers_pick_any(struct core *c, int64_t *again_at)
{
	return pick(c, true, again_at);
}

bool offers_has_other_than(const struct core *c, const struct core_pod *p)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (i != p->rental.provider && !c->vendors[i].dead &&
		    c->vendors[i].offers_query == QUERY_UNSENT)
			return true;
	for (size_t i = 0; i < c->candidate_count; i++) {
		const struct candidate *k = &c->candidates[i];
		if (offers_is_ready(c, k) &&
		    !is_same_offer(k, p->rental.provider, &p->rental.offer))
			return true;
	}
	return false;
}

bool offer_avoided(const struct offer_past *past, int64_t wall_ms)
{
	return past->bad_until_ms > wall_ms;
}

char *offer_past_show(char *to, size_t room, const struct offer_past *past, int64_t wall_ms)
{
	int64_t minutes = MAX(wall_ms - past->bad_at_ms, 0) / 60000;
	char when[32];

	if (!offer_avoided(past, wall_ms)) {
		to[0] = '\0';
		return to;
	}
	snprintf(when, sizeof(when),
		 minutes >= 120 ? "%d h ago"
		 : minutes      ? "%d min ago"
				: "just now",
		 (int)(minutes >= 120 ? minutes / 60 : minutes));
	snprintf(to, room, "gave up %s: %s", when, past->bad_why);
	return to;
}

/* Reports once that the offer is avoided, and what follows from that. */
static void note_avoided(struct core *c, struct candidate *k, const char *what_follows)
{
	const struct offer *o = &k->offer;
	char why[160];

	if (k->told)
		return;
	k->told = true;
	core_note(c, NOTE_NOTE, "%s %s%s%s%s: %s; %s", o->provider, o->gpu, o->spot ? " spot" : "",
		  o->region[0] ? " in " : "", o->region,
		  offer_past_show(why, sizeof(why), &k->past, c->wall), what_follows);
}

/* Before the chosen offer is rented: reports better ones that are avoided, or that it is. */
static void note_avoided_before(struct core *c, const struct candidate *chosen)
{
	for (struct candidate *k = c->candidates; k <= chosen; k++) {
		if (!offer_avoided(&k->past, c->wall) || c->vendors[k->provider].dead ||
		    is_barred(c, k) || k->rest_until > c->now)
			continue;
		note_avoided(c, k,
			     k == chosen ? "no other offer is left, so it is retried"
					 : "others are tried before it");
	}
}

size_t core_offer_regions(const struct core *c, int provider, const char *regions[], size_t room)
{
	size_t count = 0, at;

	for (size_t i = 0; i < c->candidate_count; i++) {
		const struct candidate *k = &c->candidates[i];
		if (k->provider != provider || is_barred(c, k) || k->rest_until > c->now ||
		    budget_hard_end(c, k->offer.price_microusd_h, 1) < 0)
			continue;
		if (!k->offer.region[0])
			return 0;
		for (at = 0; at < count && strcmp(regions[at], k->offer.region) != 0; at++)
			;
		if (at == count && count < room)
			regions[count++] = k->offer.region;
	}
	return count;
}

struct candidate *offers_of(struct core *c, const struct core_pod *p)
{
	return find_candidate(c, p->rental.provider, &p->rental.offer);
}

/* ---- offers that are not tried for a while: sold out, refused, or with a bad host ---- */

void offers_rest_for(struct core *c, const struct core_pod *p, int64_t ms)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->rest_until = c->now + ms;
}

void offers_rest_bad_host(struct core *c, int pod, const char *why)
{
	struct candidate *k = offers_of(c, &c->pods[pod]);

	if (k) {
		k->rest_until = c->now + BAD_HOST_REST_MS;
		k->past.bad_at_ms = c->wall;
		k->past.bad_until_ms = MAX(k->past.bad_until_ms, c->wall + AVOID_MS);
		COPY_TEXT(k->past.bad_why, why);
		k->told = false;
	}
	COPY_TEXT(core_act(c, ACT_BAD_HOST, pod)->text, why);
}

/* An offer may be sold out for a moment or a day, so the rest doubles each time. */
void offers_rest_sold_out(struct core *c, const struct core_pod *p, int64_t least_ms)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->rest_until = c->now + MAX(least_ms, MIN(5000LL << MIN(k->refusals++, 5),
							   (int64_t)OFFER_REST_MS));
}

void offers_rest_after_trouble(struct core *c, const struct core_pod *p, int64_t least_ms)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->rest_until = c->now + MAX(least_ms, 2000LL << MIN(k->refusals++, 5));
}

/* ---- rent: a pod from the create to its answer, and what a refusal means for the next one ---- */

/* How long a pod of this offer may boot (ms). One that takes longer, while its provider's log shows
 * no progress, is stuck. The median misleads for a new, large image: each pod that times out
 * doubles the limit of the next. */
static int64_t boot_limit_of(const struct core *c, const struct candidate *from)
{
	int64_t most = c->conf.boot_limit_ms,
		least = MAX((int64_t)BOOT_LIMIT_MIN_MS, c->patience_ms);

	return from->past.boot_ms ? MIN(MAX(BOOT_FACTOR * from->past.boot_ms, least), most) : most;
}

/* Notes why the next provider is used, which may cost several times as much. If the previous one
 * failed, that was reported. */
static void note_next_vendor(struct core *c, int provider)
{
	const struct vendor *before = provider ? &c->vendors[provider - 1] : NULL;
	const struct err *why = before && before->err.kind ? &before->err : &c->capacity;

	if (before && !before->dead && !c->vendors[provider].used && why->kind)
		core_note(c, NOTE_NOTE, "trying %s; %s: %s", c->conf.providers[provider].name,
			  c->conf.providers[provider - 1].name, why->msg);
}

int64_t core_late_start_ms(const struct core_conf *conf)
{
	return MIN((int64_t)LATE_START_MS, conf->boot_limit_ms / 4);
}

/* The client's boot_limit expires by its own clock. If the lease ended at that very moment, a pod
 * might end itself before a busy client has looked; the run would take it for vanished and not
 * blame its host. */
int64_t core_first_lease_ms(const struct core_conf *conf)
{
	int64_t boot = conf->boot_limit_ms;

	return boot + MIN(MAX(boot / 10, (int64_t)BOOT_GRACE_MIN_MS), (int64_t)BOOT_GRACE_MAX_MS);
}

/* `wait` bounds the time in a free queue. Without a limit the pod queues again after a week. */
static void set_free_wait(struct core *c, struct core_pod *p)
{
	struct rental *r = &p->rental;

	r->run_ms = r->hard_end_ms - c->now;
	r->wait_ms = c->conf.retry_until_up ? FREE_WAIT_MOST_MS
					    : MIN(c->conf.wait_ms, (int64_t)FREE_WAIT_MOST_MS);
	r->hard_end_ms += r->wait_ms;
	r->queued_at = c->now;
}

void pod_rent(struct core *c, struct candidate *from, int64_t hard_end_at)
{
	note_avoided_before(c, from);
	note_next_vendor(c, from->provider);
	struct core_pod *p = pod_new(c);

	p->rental.provider = from->provider;
	p->rental.offer = from->offer;
	pod_name_attempt(c, p);
	p->rental.volume = c->vendors[from->provider].volume;
	p->rental.price_microusd_h = from->offer.price_microusd_h;
	p->rental.hard_end_ms = hard_end_at;
	if (pod_provider(c, p)->waits_free)
		set_free_wait(c, p);
	p->rental.hard_end_s = (c->wall + p->rental.hard_end_ms - c->now) / 1000;
	p->rental.first_lease_end_s =
		MIN(p->rental.hard_end_s,
		    (c->wall + p->rental.wait_ms + core_first_lease_ms(&c->conf)) / 1000);
	p->rental.create_at = c->now;
	p->presence.boot_limit_ms = boot_limit_of(c, from);
	p->overdue_at = c->now + p->presence.boot_limit_ms;
	p->presence.log_at =
		p->presence.boot_limit_ms >= LOG_WORTH_MS
			? c->now + MIN(p->presence.boot_limit_ms / 2, (int64_t)LOG_EARLY_MS)
			: 0;
	pod_enter(c, p, POD_RENTING);
	pod_save(c, p);
	core_act(c, ACT_RENT, pod_index(c, p));
	bool has_gpu = !gpu_is_none(p->rental.offer.gpu); /* pods without a GPU are not reclaimed */
	if (!pod_vendor(c, p)->used && has_gpu && pod_provider(c, p)->caution)
		core_note(c, NOTE_NOTE, "%s", pod_provider(c, p)->caution);
	pod_vendor(c, p)->used = true;
}

void pod_set_never_existed(struct core *c, struct core_pod *p, const struct err *why)
{
	pod_enter(c, p, POD_NEVER);
	p->fault = why->kind;
	COPY_TEXT(p->reason, why->msg);
	c->capacity = *why;
	if (!c->capacity_since)
		c->capacity_since = c->now;
	pod_save(c, p);
}

/* Whether this provider refused each of its offers that the run may rent; false if it has none.
 * *count: how many it refused so far. */
static bool has_refused_all_offers(const struct core *c, int provider, int *count)
{
	*count = 0;
	for (size_t i = 0; i < c->candidate_count; i++) {
		const struct candidate *k = &c->candidates[i];
		if (k->provider != provider || is_barred(c, k))
			continue;
		if (!k->refused)
			return false;
		++*count;
	}
	return *count > 0;
}

/* A create was refused by a rate limit, which applies to all offers: a single create finds out when
 * there is room again. A provider that names no time may limit one kind of GPU: if the next create
 * is refused as well, another offer is tried. Creates under way together count once. */
static void on_rate_limited(struct core *c, const struct core_pod *p, const struct err *err)
{
	struct vendor *v = pod_vendor(c, p);
	bool again = c->now >= v->rent_not_before && !err->retry_after_ms;

	v->rate_refusals += again;
	int64_t wait = MIN((int64_t)RATE_LIMITED_MS << MIN(MAX(v->rate_refusals - 1, 0), 5),
			   (int64_t)RATE_LIMITED_MOST_MS);
	v->rent_not_before = MAX(v->rent_not_before, c->now + MAX(err->retry_after_ms, wait));
	v->rents_at_once = 1;
	if (again && v->rate_refusals >= RATE_REFUSALS)
		offers_rest_sold_out(c, p, 0);
}

/* A create was refused. The next offer may succeed. If a provider refuses all its offers and never
 * accepted one, the request is wrong: gives the provider up. */
static void on_refused(struct core *c, const struct core_pod *p, const struct err *err)
{
	const char *name = pod_provider(c, p)->name;
	struct vendor *v = pod_vendor(c, p);
	struct candidate *k = offers_of(c, p);
	int count;

	core_note(c, NOTE_WARN, "%s %s%s%s: %s", p->rental.offer.provider, p->rental.offer.gpu,
		  p->rental.offer.region[0] ? " in " : "", p->rental.offer.region, err->msg);
	offers_rest_for(c, p, NEVER / 2);
	if (k)
		k->refused = true;
	if (v->accepted || !has_refused_all_offers(c, p->rental.provider, &count))
		return;
	vendor_give_up(
		c, p->rental.provider, err->kind,
		"the request is refused at each of its offers (%d): check pod and providers.%s "
		"in burst.cfg: %s",
		count, name, err->msg);
}

static void set_ambiguous(struct core *c, struct core_pod *p)
{
	char until[32];

	pod_enter(c, p, POD_AMBIGUOUS);
	p->rental.rented_at = c->now; /* only listings sent from now on count */
	pod_save(c, p);
	listing_make_due(c, p->rental.provider);
	core_note(c, NOTE_WARN,
		  "%s: the reply to a create was lost; looking for the pod, and for a "
		  "second one, until %.8s UTC or later: %s",
		  pod_provider(c, p)->name,
		  clock_rfc3339(until, sizeof(until), c->wall + pod_ambiguous_ms(c, p)) + 11,
		  p->reason);
}

/* Whether the create is sent again: the name works once, so that makes no second pod. After a lost
 * reply a later refusal proves nothing about the first create. */
static bool resend_later(struct core *c, struct core_pod *p, const struct err *err)
{
	bool passing = err->kind == ERR_AMBIGUOUS || err->kind == ERR_TRANSIENT ||
		       err->kind == ERR_NETWORK || err->kind == ERR_RATE_LIMITED;

	if (!pod_provider(c, p)->create_once || !passing || core_is_stopping(c) ||
	    p->rental.resends >= RESENDS_MOST)
		return false;
	int64_t wait = (int64_t)RESEND_MS << p->rental.resends++;
	p->wake_at = c->now + MAX(wait, MIN(err->retry_after_ms, (int64_t)RATE_LIMITED_MOST_MS));
	c->dirty = true;
	core_note(c, NOTE_NOTE, "%s: the reply to a create was lost; sending it again: %s",
		  pod_provider(c, p)->name, err->msg);
	return true;
}

void pod_resend(struct core *c, struct core_pod *p)
{
	p->wake_at = NEVER;
	if (core_is_stopping(c))
		set_ambiguous(c, p);
	else
		core_act(c, ACT_RENT, pod_index(c, p));
	c->dirty = true;
}

/* The create may have made a pod. Returns false if a list has shown it meanwhile. */
static bool on_create_lost(struct core *c, struct core_pod *p, const struct err *err)
{
	pod_vendor(c, p)->made_at = c->now;
	pod_awaits_twin(c, p);
	if (p->rental.view.id[0])
		return false;
	COPY_TEXT(p->reason, err->msg);
	if (!resend_later(c, p, err))
		set_ambiguous(c, p);
	return true;
}

/* Nothing more is rented there if the request is wrong for it, whatever the offer. */
static void note_hopeless(struct vendor *v, const struct err *err)
{
	if (err->kind != ERR_CREDENTIALS && err->kind != ERR_BALANCE && err->kind != ERR_CONFIG)
		return;
	v->dead = true;
	v->err = *err;
}

bool pod_on_rent_failed(struct core *c, struct core_pod *p, const struct err *err)
{
	struct vendor *v = pod_vendor(c, p);

	v->created_at = c->now;
	note_hopeless(v, err);
	if (err->kind == ERR_AMBIGUOUS || p->rental.resends)
		return on_create_lost(c, p, err);
	switch (err->kind) {
	case ERR_NO_CAPACITY:
		offers_rest_sold_out(c, p, err->retry_after_ms);
		core_note(c, NOTE_INFO, "%s %s: %s", p->rental.offer.provider, p->rental.offer.gpu,
			  err->msg);
		break;
	case ERR_CREDENTIALS:
	case ERR_BALANCE:
	case ERR_CONFIG: break; /* note_hopeless() */
	case ERR_LOCAL:
	case ERR_BUG: core_fault(c, pod_index(c, p), err); break;
	case ERR_RATE_LIMITED: on_rate_limited(c, p, err); break;
	case ERR_TRANSIENT:
	case ERR_NETWORK: offers_rest_after_trouble(c, p, err->retry_after_ms); break;
	default: on_refused(c, p, err); break;
	}
	pod_set_never_existed(c, p, err);
	return true;
}

void pod_on_rented(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	COPY_TEXT(p->rental.id, view->id);
	p->rental.rented_at = c->now;
	if (!pod_is_queued(p, view))
		c->capacity_since = 0;
	pod_vendor(c, p)->rate_refusals = 0;
	if (p->phase != POD_AMBIGUOUS) /* else its create is older than the list that shows it */
		pod_vendor(c, p)->created_at = pod_vendor(c, p)->made_at = c->now;
	pod_vendor(c, p)->accepted = true;
	if (pod_vendor(c, p)->rents_at_once)
		pod_vendor(c, p)->rents_at_once =
			MIN(2 * pod_vendor(c, p)->rents_at_once, RENTS_AT_ONCE);
	/* some providers leave out part of the price */
	p->rental.price_microusd_h = MAX(view->price_microusd_h, p->rental.offer.price_microusd_h);
	pod_enter(c, p, POD_BOOTING);
	/* The reply may have taken longer than a boot, or have come from a list. The pod could not
	 * be reached meanwhile. */
	p->overdue_at =
		MAX(p->overdue_at, MIN(c->now + p->presence.boot_limit_ms, pod_boot_end(c, p)));
	pod_save(c, p);
	listing_make_due(c, p->rental.provider);
	pod_mark_due(c, pod_index(c, p));
}
