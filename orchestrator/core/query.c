/* query.c - what to request of providers before a pod is rented: offers, a volume, an image.
 * Handles their answers. */
#include "impl.h"

/* Its volume or its offers were requested and not answered yet. */
bool query_is_open(const struct vendor *v)
{
	return v->volume_query == QUERY_SENT || v->offers_query == QUERY_SENT;
}

/* With a used-up rate limit its reply may take an hour: ask the next provider, and use the reply
 * when it comes. */
static void note_no_answer(struct core *c, int provider)
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
int64_t query_overdue_at(const struct vendor *v)
{
	return query_is_open(v) && !v->filling ? v->requested_at + QUERY_OVERDUE_MS : NEVER;
}

bool query_is_overdue(const struct core *c, const struct vendor *v)
{
	return c->now >= query_overdue_at(v);
}

/* Filling a volume has no time limit, and nothing can be rented there before it ends. */
bool query_fills_volume(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (c->vendors[i].filling && !c->vendors[i].dead)
			return true;
	return false;
}

/* Returns true while some provider may still answer in time; overdue ones are skipped. */
bool query_next(struct core *c)
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
		if (query_is_open(v)) {
			if (!query_is_overdue(c, v))
				return true;
			note_no_answer(c, i);
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

/* Every provider has been asked; only overdue answers are left to wait for. */
bool query_all_sent(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].dead && !query_is_open(&c->vendors[i]))
			return false;
	return true;
}

/* A provider that fills no volume has answered, or is overdue. */
bool query_other_answered(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if (!v->dead && !v->filling &&
		    (query_is_overdue(c, v) || v->offers_query >= QUERY_ANSWERED ||
		     v->volume_query == QUERY_FAILED))
			return true;
	}
	return false;
}

/* Replies from before a sleep may be here and unread. Those that are missing get their full time
 * from now on. */
void query_slept(struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (query_is_open(&c->vendors[i]))
			c->vendors[i].requested_at = c->now;
	if (c->capacity_since)
		c->capacity_since =
			MAX(c->capacity_since, c->now - MAX(c->conf.wait_ms - QUERY_OVERDUE_MS, 0));
}

bool query_any_left(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].dead)
			return true;
	return false;
}

void query_again(struct core *c)
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

void query_volume_fills(struct core *c, const struct event *ev)
{
	c->vendors[ev->provider].filling = true;
	c->dirty = true;
}

/* Waiting cannot help. A certificate counts only before the first answer: later, the sign-in page
 * of a network may stand in between for a while. */
static bool is_final(const struct vendor *v, enum err_kind kind)
{
	return kind == ERR_CREDENTIALS || kind == ERR_CONFIG || kind == ERR_BALANCE ||
	       (kind == ERR_UNTRUSTED && !v->answered);
}

void query_answered(struct core *c, const struct event *ev)
{
	struct vendor *v = &c->vendors[ev->provider];
	enum query *ask = ev->type == EV_VOLUME ? &v->volume_query : &v->offers_query;

	c->dirty = true;
	bool looked = ev->type == EV_OFFERS && v->repricing;
	v->repricing = v->repricing && !looked;
	if (looked && ev->err) /* it was for prices alone */
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
	bool made = ev->type == EV_VOLUME && v->to_make;
	v->to_make = v->to_make && !made;
	*ask = ev->err ? QUERY_FAILED : QUERY_ANSWERED;
	if (ev->err) {
		v->err = *ev->err;
		if (ev->type == EV_VOLUME && v->err.kind == ERR_NOT_FOUND)
			v->err.kind = ERR_CONFIG; /* it will not appear by itself */
		v->dead = is_final(v, v->err.kind);
		/* if it is the last provider, the run ends with this message */
		core_note(c, v->dead && query_any_left(c) ? NOTE_WARN : NOTE_INFO, "%s: %s",
			  c->conf.providers[ev->provider].name, ev->err->msg);
		return;
	}
	v->answered = true;
	if (!v->dead) /* a dead provider keeps its reason, even if another reply arrives */
		memset(&v->err, 0, sizeof(v->err));
	if (ev->type == EV_VOLUME)
		v->volume = *ev->volume;
	if (made) { /* offers in other regions than the new volume's are of no use */
		offers_take(c, ev->provider, NULL, NULL, 0);
		v->offers_query = QUERY_UNSENT;
	}
	if (ev->type == EV_OFFERS)
		v->floor_microusd_h = ev->floor_microusd_h;
	if (ev->type == EV_OFFERS)
		offers_take(c, ev->provider, ev->offers, ev->past, ev->count);
}

/* A recipe that cannot be built fails with every offer. Other failures may pass. */
void query_image_answered(struct core *c, const struct event *ev)
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
	if (is_final(v, ev->err->kind) || ev->err->kind == ERR_REFUSED) {
		v->dead = true;
		v->err = *ev->err;
		core_note(c, query_any_left(c) ? NOTE_WARN : NOTE_INFO, "%s: %s", name,
			  ev->err->msg);
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
	return !c->conf.retry_until_up && !query_fills_volume(c) && c->capacity_since &&
	       c->now - c->capacity_since >= c->conf.wait_ms;
}

/* No pod exists and nothing is billed while its image is built. */
bool query_has_image(struct core *c, int provider)
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

/* A volume is billed until a user removes it, and it ties its pods to its region. burst makes no
 * volume before a pod could be rented there. */
bool query_has_volume(struct core *c, int provider)
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
bool query_makes_volume(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if (v->to_make && v->volume_query == QUERY_SENT && !v->filling &&
		    !query_is_overdue(c, v))
			return true;
	}
	return false;
}
