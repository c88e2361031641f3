/* rent.c - a pod from the create to its answer, and what a refusal means for the next one. */
#include "impl.h"

#include "base/clock.h"
#include "base/gpus.h"

/* A pod that takes longer, while its provider's log shows no progress, is stuck. The median
 * misleads for a new, large image: each pod that times out doubles the limit of the next. */
static int64_t boot_limit(const struct core *c, const struct candidate *from)
{
	int64_t most = c->conf.boot_limit_ms,
		least = MAX((int64_t)BOOT_LIMIT_MIN_MS, c->patience_ms);

	return from->past.boot_ms ? MIN(MAX(BOOT_FACTOR * from->past.boot_ms, least), most) : most;
}

/* The next provider may cost several times as much, so say why it is used. If the previous one
 * failed, that was reported. */
static void report_next_vendor(struct core *c, int provider)
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
static int64_t first_lease_end_s(const struct core *c)
{
	int64_t boot = c->conf.boot_limit_ms;

	return (c->wall + boot +
		MIN(MAX(boot / 10, (int64_t)BOOT_GRACE_MIN_MS), (int64_t)BOOT_GRACE_MAX_MS)) /
	       1000;
}

void pod_rent(struct core *c, struct candidate *from, int64_t hard_end_at)
{
	offers_report(c, from);
	report_next_vendor(c, from->provider);
	struct core_pod *p = pod_new(c);

	p->rental.provider = from->provider;
	p->rental.offer = from->offer;
	pod_name_attempt(c, p);
	p->rental.volume = c->vendors[from->provider].volume;
	p->rental.price_microusd_h = from->offer.price_microusd_h;
	p->rental.hard_end_ms = hard_end_at;
	p->rental.hard_end_s = (c->wall + hard_end_at - c->now) / 1000;
	p->rental.first_lease_end_s = MIN(p->rental.hard_end_s, first_lease_end_s(c));
	p->rental.create_at = c->now;
	p->presence.boot_limit_ms = boot_limit(c, from);
	p->deadline_at = c->now + p->presence.boot_limit_ms;
	p->presence.log_at =
		p->presence.boot_limit_ms >= LOG_WORTH_MS
			? c->now + MIN(p->presence.boot_limit_ms / 2, (int64_t)LOG_EARLY_MS)
			: 0;
	pod_enter(c, p, POD_RENTING);
	pod_save(c, p);
	core_act(c, ACT_RENT, pod_index(c, p));
	bool has_gpu = !gpu_is_none(p->rental.offer.gpu); /* pods without a GPU are not reclaimed */
	if (!pod_vendor(c, p)->used && has_gpu && c->conf.providers[p->rental.provider].caution)
		core_note(c, NOTE_NOTE, "%s", c->conf.providers[p->rental.provider].caution);
	pod_vendor(c, p)->used = true;
}

void pod_never_existed(struct core *c, struct core_pod *p, const struct err *why)
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
static bool all_offers_are_refused(const struct core *c, int provider, int *count)
{
	*count = 0;
	for (size_t i = 0; i < c->candidate_count; i++) {
		const struct candidate *k = &c->candidates[i];
		if (k->provider != provider || offers_barred(c, k))
			continue;
		if (!k->refused)
			return false;
		++*count;
	}
	return *count > 0;
}

/* The limit applies to all its offers: a single create finds out when there is room again. A
 * provider that names no time may limit one kind of GPU: if the next create is refused as well,
 * another offer is tried. Creates under way together count once. */
static void rate_limited(struct core *c, const struct core_pod *p, const struct err *err)
{
	struct vendor *v = pod_vendor(c, p);
	bool again = c->now >= v->rent_not_before && !err->retry_after_ms;

	v->rate_refusals += again;
	int64_t wait = MIN((int64_t)RATE_LIMITED_MS << MIN(MAX(v->rate_refusals - 1, 0), 5),
			   (int64_t)RATE_LIMITED_MOST_MS);
	v->rent_not_before = MAX(v->rent_not_before, c->now + MAX(err->retry_after_ms, wait));
	v->rents_at_once = 1;
	if (again && v->rate_refusals >= RATE_REFUSALS)
		resting_sold_out(c, p, 0);
}

/* The next offer may succeed. If a provider refuses all its offers and never accepted one, the
 * request is wrong, and waiting does not help. */
static void refused(struct core *c, const struct core_pod *p, const struct err *err)
{
	const char *name = c->conf.providers[p->rental.provider].name;
	struct vendor *v = pod_vendor(c, p);
	struct candidate *k = offers_of(c, p);
	int count;

	core_note(c, NOTE_WARN, "%s %s%s%s: %s", p->rental.offer.provider, p->rental.offer.gpu,
		  p->rental.offer.region[0] ? " in " : "", p->rental.offer.region, err->msg);
	resting_for(c, p, NEVER / 2);
	if (k)
		k->refused = true;
	resting_spot_refused(c, p);
	if (v->accepted || !all_offers_are_refused(c, p->rental.provider, &count))
		return;
	v->dead = true;
	err_set(&v->err, err->kind,
		"%s refuses the request at each of its offers (%d): check pod and providers.%s "
		"in burst.cfg: %s",
		name, count, name, err->msg);
}

bool pod_rent_failed(struct core *c, struct core_pod *p, const struct err *err)
{
	struct vendor *v = pod_vendor(c, p);
	char until[32];

	v->created_at = c->now;
	switch (err->kind) {
	case ERR_AMBIGUOUS:
		v->made_at = c->now;
		if (c->conf.providers[p->rental.provider].list_gap_ms) /* it may have made two */
			v->surfaced_at = c->now + SURFACE_LIMIT_MS;
		if (p->rental.view.id[0]) /* a list has shown it meanwhile */
			return false;
		pod_enter(c, p, POD_AMBIGUOUS);
		p->rental.rented_at = c->now; /* only listings sent from now on count */
		COPY_TEXT(p->reason, err->msg);
		pod_save(c, p);
		list_soon(c, p->rental.provider);
		core_note(c, NOTE_WARN,
			  "%s: the reply to a create was lost; looking for the pod, and for a "
			  "second one, until %.8s UTC or later: %s",
			  c->conf.providers[p->rental.provider].name,
			  clock_rfc3339(until, sizeof(until),
					c->wall + (c->conf.providers[p->rental.provider].list_gap_ms
							   ? AMBIGUOUS_GAP_MS
							   : AMBIGUOUS_SHORT_MS)) +
				  11,
			  err->msg);
		return true;
	case ERR_NO_CAPACITY:
		resting_sold_out(c, p, err->retry_after_ms);
		resting_spot_refused(c, p);
		core_note(c, NOTE_INFO, "%s %s: %s", p->rental.offer.provider, p->rental.offer.gpu,
			  err->msg);
		break;
	case ERR_CREDENTIALS:
	case ERR_BALANCE:
	case ERR_CONFIG: /* the request is wrong for this provider, whatever the offer */
		v->dead = true;
		v->err = *err;
		break;
	case ERR_LOCAL:
	case ERR_BUG: core_fault(c, pod_index(c, p), err); break;
	case ERR_RATE_LIMITED: rate_limited(c, p, err); break;
	case ERR_TRANSIENT:
	case ERR_NETWORK: resting_after_trouble(c, p, err->retry_after_ms); break;
	default: refused(c, p, err); break;
	}
	pod_never_existed(c, p, err);
	return true;
}

void pod_rented(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	COPY_TEXT(p->rental.id, view->id);
	p->rental.rented_at = c->now;
	if (view->state != POD_STATE_QUEUED)
		c->capacity_since = 0;
	pod_vendor(c, p)->rate_refusals = 0;
	pod_vendor(c, p)->created_at = pod_vendor(c, p)->made_at = c->now;
	pod_vendor(c, p)->accepted = true;
	if (p->rental.offer.spot)
		pod_vendor(c, p)->spot_refusals = 0;
	if (pod_vendor(c, p)->rents_at_once)
		pod_vendor(c, p)->rents_at_once =
			MIN(2 * pod_vendor(c, p)->rents_at_once, RENTS_AT_ONCE);
	/* some providers leave out part of the price */
	p->rental.price_microusd_h = MAX(view->price_microusd_h, p->rental.offer.price_microusd_h);
	pod_enter(c, p, POD_BOOTING);
	/* The reply may have taken longer than a boot, or have come from a list. The pod could not
	 * be reached meanwhile. */
	p->deadline_at =
		MAX(p->deadline_at, MIN(c->now + p->presence.boot_limit_ms, pod_boot_end(c, p)));
	pod_save(c, p);
	list_soon(c, p->rental.provider);
	pod_due(c, pod_index(c, p));
}
