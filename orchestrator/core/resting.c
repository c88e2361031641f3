/* resting.c - offers that are not tried for a while: sold out, refused, or with a bad host. */
#include "impl.h"

void resting_for(struct core *c, const struct core_pod *p, int64_t ms)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->rest_until = c->now + ms;
}

void resting_bad_host(struct core *c, int pod, const char *why)
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

/* An offer may be sold out for a moment or a day. */
void resting_sold_out(struct core *c, const struct core_pod *p, int64_t least_ms)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->rest_until = c->now + MAX(least_ms, MIN(5000LL << MIN(k->refusals++, 5),
							   (int64_t)OFFER_REST_MS));
}

/* There may be spot offers in thirty regions, each as unlikely to succeed as the last one. */
void resting_spot_refused(struct core *c, const struct core_pod *p)
{
	struct vendor *v = pod_vendor(c, p);

	if (!p->rental.offer.spot || ++v->spot_refusals < SPOT_REFUSALS)
		return;
	v->spot_refusals = 0;
	v->spot_rest_until = c->now + SPOT_REST_MS;
	core_note(c, NOTE_INFO, "%s: spot was refused twice: trying on demand first for a while",
		  p->rental.offer.provider);
}

void resting_after_trouble(struct core *c, const struct core_pod *p, int64_t least_ms)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->rest_until = c->now + MAX(least_ms, 2000LL << MIN(k->refusals++, 5));
}
