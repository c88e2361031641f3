/* offers.c - which offer to try next: by the config's order of providers, then of GPUs, then by
 * price. */
#include "impl.h"

#include "base/gpus.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->provider != y->provider)
		return x->provider < y->provider ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
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
	}
	if (c->candidate_count)
		qsort(c->candidates, c->candidate_count, sizeof(*c->candidates), compare);
}

static bool same_offer(const struct candidate *k, int provider, const struct offer *o)
{
	return k->provider == provider && k->offer.spot == o->spot && !strcmp(k->offer.id, o->id) &&
	       !strcmp(k->offer.region, o->region);
}

static struct candidate *find(struct core *c, int provider, const struct offer *o)
{
	for (size_t i = 0; i < c->candidate_count; i++)
		if (same_offer(&c->candidates[i], provider, o))
			return &c->candidates[i];
	return NULL;
}

/* A new list replaces the provider's old one; what was learnt about an offer stays with it. */
void offers_take(struct core *c, int provider, const struct offer *list,
		 const struct offer_past *past, size_t count)
{
	struct candidate *fresh = xcalloc(count + 1, sizeof(*fresh));
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct candidate *old = find(c, provider, &list[i]);
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
	forecast_listed(c);
}

static bool too_expensive(const struct core *c, const struct candidate *k)
{
	return c->conf.max_price_microusd_h &&
	       k->offer.price_microusd_h > c->conf.max_price_microusd_h;
}

bool offers_barred(const struct core *c, const struct candidate *k)
{
	return k->past.unfit[0] || too_expensive(c, k);
}

static bool same_card(const char *a, const char *b)
{
	const struct gpu *known = gpu_find(a);

	return !strcmp(a, b) || (known && known == gpu_find(b));
}

void offers_unfit(struct core *c, const struct core_pod *p, bool anywhere, const char *why)
{
	for (size_t i = 0; i < c->candidate_count; i++) {
		struct candidate *k = &c->candidates[i];
		if ((anywhere || k->provider == p->rental.provider) &&
		    same_card(k->offer.gpu, p->rental.offer.gpu))
			COPY_TEXT(k->past.unfit, why);
	}
}

bool offers_any_left(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].dead && c->vendors[i].offers_query == QUERY_UNSENT)
			return true;
	for (size_t i = 0; i < c->candidate_count; i++)
		if (!c->vendors[c->candidates[i].provider].dead &&
		    !offers_barred(c, &c->candidates[i]))
			return true;
	return false;
}

/* Its provider has refused spot twice and has another offer that is available now. */
static bool spot_rests(const struct core *c, const struct candidate *k)
{
	if (!k->offer.spot || c->vendors[k->provider].spot_rest_until <= c->now)
		return false;
	for (size_t i = 0; i < c->candidate_count; i++) {
		const struct candidate *other = &c->candidates[i];
		if (other->provider == k->provider && !other->offer.spot &&
		    !offers_barred(c, other) && other->rest_until <= c->now)
			return true;
	}
	return false;
}

bool offers_ready(const struct core *c, const struct candidate *k)
{
	const struct vendor *v = &c->vendors[k->provider];

	return !v->dead && (!c->conf.want_volume || v->volume_query == QUERY_ANSWERED) &&
	       !offers_barred(c, k) && !spot_rests(c, k) && !offer_avoided(&k->past, c->wall) &&
	       MAX(k->rest_until, v->rent_not_before) <= c->now;
}

struct candidate *offers_pick(struct core *c, bool avoided_too, int64_t *again_at)
{
	*again_at = NEVER;
	for (size_t i = 0; i < c->candidate_count; i++) {
		struct candidate *k = &c->candidates[i];
		const struct vendor *v = &c->vendors[k->provider];
		if (v->dead || (c->conf.want_volume && v->volume_query != QUERY_ANSWERED) ||
		    core_skips(c, k))
			continue;
		if (k->past.unfit[0]) {
			if (c->capacity.kind == ERR_NONE)
				err_set(&c->capacity, ERR_NO_CAPACITY, "%s: %s: %s",
					k->offer.provider, k->offer.gpu, k->past.unfit);
			continue;
		}
		if (too_expensive(c, k)) {
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
		if (spot_rests(c, k) || (!avoided_too && offer_avoided(&k->past, c->wall)))
			continue;
		return k;
	}
	return NULL;
}

bool offers_other_than(const struct core *c, const struct core_pod *p)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (i != p->rental.provider && !c->vendors[i].dead &&
		    c->vendors[i].offers_query == QUERY_UNSENT)
			return true;
	for (size_t i = 0; i < c->candidate_count; i++) {
		const struct candidate *k = &c->candidates[i];
		const struct vendor *v = &c->vendors[k->provider];
		if (v->dead || offers_barred(c, k) ||
		    same_offer(k, p->rental.provider, &p->rental.offer) ||
		    offer_avoided(&k->past, c->wall))
			continue;
		if (MAX(k->rest_until, v->rent_not_before) <= c->now)
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

static void report_avoided(struct core *c, struct candidate *k, const char *so)
{
	const struct offer *o = &k->offer;
	char why[160];

	if (k->told)
		return;
	k->told = true;
	core_note(c, NOTE_NOTE, "%s %s%s%s%s: %s; %s", o->provider, o->gpu, o->spot ? " spot" : "",
		  o->region[0] ? " in " : "", o->region,
		  offer_past_show(why, sizeof(why), &k->past, c->wall), so);
}

void offers_report(struct core *c, const struct candidate *chosen)
{
	for (struct candidate *k = c->candidates; k <= chosen; k++) {
		if (!offer_avoided(&k->past, c->wall) || c->vendors[k->provider].dead ||
		    offers_barred(c, k) || k->rest_until > c->now)
			continue;
		report_avoided(c, k,
			       k == chosen ? "no other offer is left, so it is retried"
					   : "others are tried before it");
	}
}

size_t core_offer_regions(const struct core *c, int provider, const char *regions[], size_t room)
{
	size_t count = 0, at;

	for (size_t i = 0; i < c->candidate_count; i++) {
		const struct candidate *k = &c->candidates[i];
		if (k->provider != provider || offers_barred(c, k) || k->rest_until > c->now ||
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
	return find(c, p->rental.provider, &p->rental.offer);
}
