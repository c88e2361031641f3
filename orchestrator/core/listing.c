/* listing.c - when to request listings of providers: one for all pods of an account. */
#include "impl.h"

static int64_t list_interval(const struct core *c, const struct vendor *v, const struct core_pod *p)
{
	const struct core_provider *k = &c->conf.providers[p->rental.provider];
	int64_t age = c->now - p->rental.create_at;

	if (p->rental.key == KEY_REPORTED)
		return UNPROVABLE_LIST_MS;
	switch (p->phase) {
	case POD_BOOTING:
	case POD_CONNECTING: return MIN(MAX(age / 8, k->poll_ms), MAX((int64_t)5000, k->poll_ms));
	case POD_AMBIGUOUS: /* often at first: the pod bills, and the run may wait for it */
		return p->rental.late_clean_at
			       ? MAX(k->list_gap_ms, 1000)
			       : MIN(MAX((c->now - p->rental.rented_at) / 4, k->poll_ms),
				     (int64_t)15000);
	case POD_CONFIRMING:
		/* each list is followed by an inspection of the pod */
		if (p->rental.clean_lists && pod_is_omitted(p))
			return MAX(k->list_gap_ms, 1000);
		if (p->rental.clean_lists)
			return MIN(MAX(proof_at(c, p) - v->listed_at, 0),
				   MAX(pod_is_denied(p) ? (int64_t)10000 : 5000, k->list_gap_ms));
		return MIN(MAX((c->now - p->rental.release_at) / 4, k->poll_ms),
			   MAX((int64_t)5000, k->poll_ms));
	case POD_PREPARING:
	case POD_AWAITING_VOLUME:
	case POD_LOADING:
	case POD_WORKING: return p->rental.missing_lists ? MAX(k->list_gap_ms, 1000) : 30000;
	case POD_RELEASING: /* a pod whose release is refused may end itself; agents also end the
			       second pod of a create */
		return !p->rental.tries ? NEVER : p->rental.finish_calls ? 10000 : 30000;
	case POD_RENTING: { /* once when its reply is overdue, then less and less often */
		int64_t last = MAX(v->listed_at, v->listing_since);
		return MAX(p->rental.create_at + HUNG_CREATE_MS,
			   last + MAX((int64_t)5000, age / 4)) -
		       last;
	}
	case POD_GONE:
	case POD_NEVER: break;
	}
	return NEVER;
}

bool listing_awaits_twin(const struct vendor *v)
{
	return v->used && v->surfaced_at >= 0 && v->listed_at < v->surfaced_at;
}

bool listing_may_hide_pod(const struct vendor *v)
{
	/* A refused list shows no second pod, however long burst waits. */
	bool unread = v->listed_at <= v->made_at && !v->list_refused;

	return v->used && (unread || listing_awaits_twin(v));
}

/* A twin may surface when no other pod needs a listing, and while nothing can be rented. */
static int64_t twin_list_at(const struct vendor *v)
{
	if (!listing_awaits_twin(v) || v->list_refused)
		return NEVER;
	return MIN(MAX(v->listed_at, v->listing_since) + TWIN_LIST_MS, v->surfaced_at);
}

void listing_send_due(struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		int64_t at = MIN(v->list_at, twin_list_at(v));
		for (int k = 0; k < c->pod_count; k++) {
			if (c->pods[k].rental.provider != i)
				continue;
			int64_t interval = list_interval(c, v, &c->pods[k]);
			if (interval != NEVER)
				at = MIN(at, MAX(v->listed_at, v->listing_since) + interval);
		}
		v->list_at = at;
		if (v->listing || MAX(at, v->list_not_before) > c->now)
			continue;
		v->listing = true;
		v->listing_since = c->now;
		v->list_at = NEVER;
		core_act(c, ACT_LIST, -1)->provider = i;
	}
}

/* Without its list no pod comes up and none can be proven gone. A list that burst cannot parse will
 * not improve. */
static void note_no_list(struct core *c, int provider, const struct err *err)
{
	int failures = c->vendors[provider].list_failures;

	if (failures == (err->kind == ERR_BUG || err->kind == ERR_CREDENTIALS ? 0 : 2))
		core_note(c, NOTE_WARN, "%s: %s", c->conf.providers[provider].name, err->msg);
	if (err->kind == ERR_BUG && failures + 1 >= LIST_FAILURES_MAX)
		core_fault(c, -1, err);
}

static bool any_ambiguous(const struct core *c, int provider)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].rental.provider == provider && c->pods[i].phase == POD_AMBIGUOUS)
			return true;
	return false;
}

/* A refused list proves no pod absent, so nothing waits for it. Pods with known ids can be
 * inspected; the pod of a lost create has no known id. */
static void list_is_refused(struct core *c, int provider)
{
	struct vendor *v = &c->vendors[provider];

	v->list_failures = LIST_FAILURES_MAX;
	if (any_ambiguous(c, provider))
		v->rent_not_before = MAX(v->rent_not_before, c->now + FINAL_LIST_MS);
}

/* From when on a listing of this provider counts as the final one. */
static int64_t final_list_from(const struct core *c, const struct vendor *v)
{
	return c->signals > 1 ? v->created_at + 1 : MAX(v->created_at + 1, v->surfaced_at);
}

int64_t listing_timeout_at(const struct core *c, const struct vendor *v)
{
	bool waits = v->listing || v->list_not_before > c->now;
	int64_t limit_ms =
		c->signals < 2 && listing_may_hide_pod(v) ? HIDDEN_POD_LIST_MS : FINAL_LIST_MS;

	return waits && v->used ? MAX(v->listing_since, final_list_from(c, v)) + limit_ms : NEVER;
}

bool listing_all_final(struct core *c)
{
	bool all = true;

	/* The final listing before the exit: burst must know every pod of its own that exists. */
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		int64_t from = final_list_from(c, v);
		if (!v->used || v->listed_at >= from)
			continue;
		if (v->list_failures >= LIST_FAILURES_MAX || c->now >= listing_timeout_at(c, v))
			continue;
		all = false;
		v->list_at = MIN(v->list_at, MAX(c->now, from));
	}
	return all;
}

void listing_came(struct core *c, const struct event *ev)
{
	struct vendor *v = &c->vendors[ev->provider];

	v->listing = false;
	c->dirty = true;
	if (ev->err) {
		note_no_list(c, ev->provider, ev->err);
		v->list_failures += ev->err->kind == ERR_CREDENTIALS ? LIST_FAILURES_MAX : 1;
		v->list_at = v->list_not_before =
			c->now +
			MAX(MIN(ev->err->retry_after_ms, (int64_t)LIST_AFTER_MOST_MS),
			    MIN((int64_t)1000 << MIN(v->list_failures, 5), (int64_t)15000));
		/* a pod made there could not be seen */
		if (v->list_failures >= LIST_FAILURES_MAX)
			v->rent_not_before =
				MAX(v->rent_not_before, v->list_not_before + FINAL_LIST_MS);
		return;
	}
	v->list_failures = 0;
	v->list_refused = ev->partial;
	if (ev->partial)
		list_is_refused(c, ev->provider);
	else
		v->listed_at = ev->requested_at;
	v->ahead_ms = ev->ahead_ms;
	v->clock_known = ev->clock_known;
	seen_views(c, ev->provider, ev->views, ev->count, ev->requested_at, ev->partial);
}
