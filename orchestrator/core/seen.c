/* seen.c - what the vendor's listings say of pods: those that come up, end, surface late, or are
 * there without being wanted; and when those are asked for. */
#include "impl.h"

#include "base/clock.h"

void pod_connect(struct core *c, struct core_pod *p)
{
	pod_enter(c, p, POD_CONNECTING);
	p->tries = 0;
	pod_save(c, p); /* where it listens: `burst ssh`, and a client that takes over, need it */
	core_act(c, ACT_CONNECT, pod_index(c, p));
}

/* The answer to a create may not say it, or not the last word of it. False: the pod is too dear,
 * and let go. */
static bool takes_price(struct core *c, struct core_pod *p, int64_t price_microusd_h)
{
	if (price_microusd_h <= p->price_microusd_h)
		return true;
	p->price_microusd_h = price_microusd_h;
	pod_save(c, p);
	return p->unwanted || pod_can_be_paid(c, p);
}

/* An address that a list leaves out for once is still the one to try. */
static void keep_address(struct pod_view *now, const struct pod_view *before)
{
	if (now->port)
		return;
	now->port = before->port;
	COPY_TEXT(now->host, before->host);
	COPY_TEXT(now->user, before->user);
}

void pod_take_view(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	struct pod_view before = p->view;

	p->view = *view;
	keep_address(&p->view, &before);
	p->looks = 0;
	if (!p->vendor_started_s)
		p->vendor_started_s = view->started_at_s; /* a container that starts again was
							     billed before, too */
	if (view->state == POD_STATE_RUNNING && !p->running_at)
		p->running_at = c->now;
	if (p->phase == POD_CONFIRMING || p->phase == POD_RELEASING)
		return;
	if (!takes_price(c, p, view->price_microusd_h))
		return;
	queue_seen(c, p, view->state);
	switch (view->state) {
	case POD_STATE_QUEUED: break;
	case POD_STATE_UNKNOWN:
	case POD_STATE_CREATING:
	case POD_STATE_RUNNING:
		if (view->port && p->phase == POD_BOOTING)
			pod_connect(c, p);
		break;
	case POD_STATE_STOPPED:
		pod_vanished(c, p,
			     view->preempted ? "the vendor reclaimed it (preempted)"
					     : "it stopped by itself",
			     false);
		break;
	case POD_STATE_FAILED:
		pod_bad_host(c, pod_index(c, p),
			     view->detail[0] ? view->detail : "it failed to start");
		pod_let_go(c, pod_index(c, p), ERR_TRANSIENT, "it failed to start: %s",
			   view->detail[0] ? view->detail : "the vendor does not say why");
		if (core_log_first(p, c->now)) /* what that says may be true of the next pod, too */
			pod_vendor(c, p)->why_until = c->now + CORE_LOG_LOOK_MS;
		break;
	case POD_STATE_GONE:
		if (view->end == POD_END_QUEUED)
			pod_rest_sold_out(c, p, 0);
		if (view->end == POD_END_SETUP && !p->connected_at)
			pod_unmade(c, p,
				   view->detail[0] ? view->detail : "the vendor does not say why");
		else
			pod_vanished(c, p,
				     view->preempted   ? "the vendor reclaimed it (preempted)"
				     : view->detail[0] ? view->detail
						       : "it is gone",
				     true);
		break;
	}
}

/* A list that lags shows a new pod late: until it has shown it once, or has had its time since the
 * create to do so, that it does not show it proves nothing. Where the list is the truth there is no
 * such time. */
static int64_t surfaced_by(const struct core *c, const struct core_pod *p)
{
	/* of one that lists omit the provider's word on its id decides */
	if (p->listed || p->unlisted || !c->conf.providers[p->provider].look_gap_ms)
		return INT64_MIN;
	return MAX(p->create_at, p->rented_at) + SURFACE_LIMIT_MS;
}

/* A provider that denies a pod has not ended it, and its list may miss that pod for as long: a
 * denial takes the gap that closes an ambiguous create. The second denial comes after that gap and
 * needs no further one. */
int64_t pod_proof_at(const struct core *c, const struct core_pod *p)
{
	int64_t look_gap_ms = c->conf.providers[p->provider].look_gap_ms;
	int64_t gap_ms =
		look_gap_ms && p->absent && !p->asked_twice ? AMBIGUOUS_GAP_MS : look_gap_ms;

	return MAX(p->clean_at + gap_ms, surfaced_by(c, p));
}

/* Nothing was seen of a pod that this key may have no right to see. After its hard end it has ended
 * itself. */
static bool cannot_be_told(struct core *c, struct core_pod *p)
{
	if (!p->elsewhere || c->wall >= p->hard_end_s * 1000 + PAST_HARD_END_MS)
		return false;
	if (p->unprovable)
		return true;
	p->unprovable = true;
	core_note(c, NOTE_WARN,
		  "pod %s of %s was rented with another key, and the current one cannot see it: "
		  "it may still be billing; `burst reap` with that key releases it",
		  core_pod_called(p), p->offer.provider);
	return true;
}

/* A provider may deny a pod that bills, and lists may miss it twice: release it once more before
 * trusting them. */
static bool asks_again(struct core *c, struct core_pod *p)
{
	if (!p->absent || p->asked_twice || !c->conf.providers[p->provider].look_gap_ms)
		return false;
	p->asked_twice = true;
	core_act(c, ACT_RELEASE, pod_index(c, p));
	pod_enter(c, p, POD_RELEASING);
	return true;
}

static void confirm_look(struct core *c, struct core_pod *p, bool there, int64_t asked_at)
{
	if (asked_at < p->released_at)
		return;
	if (there) {
		p->clean_looks = 0;
		if (p->absent ||
		    (c->now - p->released_at > 20000 && c->now - p->release_at > 20000)) {
			/* it is still there: ask again, and until then it bills */
			p->release_at = c->now;
			p->released_at = 0;
			p->asked_twice = false;
			core_act(c, ACT_RELEASE, pod_index(c, p));
			pod_enter(c, p, POD_RELEASING);
		}
		return;
	}
	if (p->clean_looks++ == 0)
		p->clean_at = asked_at;
	if (p->absent && p->stood && !p->asked_twice && p->clean_looks <= 2)
		p->released_at = asked_at; /* denied while it answered: it was there, and its agent
					      takes a moment to end it */
	c->dirty = true;
	if (asked_at < pod_proof_at(c, p) || asks_again(c, p) || cannot_be_told(c, p))
		return;
	if (p->unlisted)
		core_act(c, ACT_INSPECT, pod_index(c, p)); /* lists prove nothing of it */
	else
		pod_mark_gone(c, p);
}

/* Its release is refused: that it ended itself, or was ended elsewhere, only lists can tell. */
static void refused_look(struct core *c, struct core_pod *p, bool there, int64_t asked_at)
{
	bool lags = c->conf.providers[p->provider].look_gap_ms > 0;

	if (!p->tries || asked_at < p->release_at)
		return;
	p->clean_looks = there ? 0 : p->clean_looks + 1;
	if (p->clean_looks == 1)
		p->clean_at = asked_at;
	c->dirty = true;
	if (p->clean_looks < (lags ? 3 : 1) || cannot_be_told(c, p))
		return;
	if (asked_at < MAX(p->clean_at + (lags ? AMBIGUOUS_GAP_MS : 0), surfaced_by(c, p)))
		return;
	p->released_at = MAX(p->clean_at, p->create_at);
	pod_mark_gone(c, p);
}

static void ambiguous_look(struct core *c, struct core_pod *p, int64_t asked_at)
{
	int64_t look_gap_ms = c->conf.providers[p->provider].look_gap_ms;
	int64_t gap_ms = look_gap_ms ? AMBIGUOUS_GAP_MS : AMBIGUOUS_SHORT_MS;
	struct err err;

	if (asked_at < p->rented_at)
		return;
	/* the first one may have come before the list shows what is new, and a list may miss a pod
	 * for once: of those that come late enough it takes two as well */
	if (p->clean_looks++ == 0) {
		p->clean_at = asked_at;
	} else if (asked_at - p->clean_at >= gap_ms && !p->late_clean_at && look_gap_ms) {
		p->late_clean_at = asked_at;
	} else if (asked_at - p->clean_at >= gap_ms && asked_at - p->late_clean_at >= look_gap_ms &&
		   !cannot_be_told(c, p)) {
		err_set(&err, ERR_TRANSIENT, "%s", p->reason);
		pod_rest_after_trouble(c, p, 0);
		/* it may have lived between two looks, or before it would have been listed: the cap
		 * counts all that as spent */
		p->released_at = pod_billed_until(p, asked_at);
		pod_never_existed(c, p, &err);
		c->spent_microusd += core_may_have_cost(p);
	}
}

static void missing(struct core *c, struct core_pod *p, int64_t asked_at)
{
	if (asked_at < p->rented_at + 1 || p->connected)
		return; /* a list may be wrong, a connection is not */
	if (c->conf.providers[p->provider].look_gap_ms &&
	    (p->unlisted || c->now - p->rented_at >= UNLISTED_MS))
		core_act(c, ACT_INSPECT, pod_index(c, p)); /* the list may omit it for good */
	if (p->unlisted)
		return;
	/* one missing read is no proof: ids surface late */
	if (p->looks++ == 0) {
		p->clean_at = asked_at;
		c->dirty = true;
		return;
	}
	if (asked_at >= pod_proof_at(c, p))
		pod_vanished(c, p, p->connected_at ? "it is gone" : "the vendor no longer lists it",
			     false);
}

/* A pod of this run that we did not know under this id: a second pod of one create, or one that
 * surfaced after all. */
static void stray(struct core *c, int provider, const struct pod_view *view)
{
	GROW(c->pods, (size_t)c->pod_count, c->pod_cap);
	struct core_pod *p = &c->pods[c->pod_count++];

	*p = (struct core_pod){.provider = provider,
			       .view = *view,
			       .last_group = UINT32_MAX,
			       .listed = true,
			       .there_at = c->now};
	/* a row of its own in the ledger: that of its twin must not be lost */
	pod_name_attempt(c, p);
	COPY_TEXT(p->id, view->id);
	COPY_TEXT(p->offer.provider, c->conf.providers[provider].name);
	COPY_TEXT(p->offer.gpu, view->gpu);
	COPY_TEXT(p->offer.region, view->region);
	p->price_microusd_h = view->price_microusd_h;
	p->create_at = view->created_at_s
			       ? MIN(c->now, core_boot_of(c, provider, view->created_at_s))
			       : c->now;
	p->rented_at = c->now;
	p->hard_end_s = view->marker.hard_end_s;
	p->hard_end_ms = p->hard_end_s * 1000 - c->wall + c->now;
	pod_enter(c, p, POD_BOOTING);
	snprintf(p->reason, sizeof(p->reason), "an extra pod");
	core_note(c, NOTE_WARN, "pod %s: has this run's marker but is not needed; releasing it",
		  p->id);
	pod_release_now(c, pod_index(c, p));
}

static void pod_take_end(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	p->view.state = POD_STATE_GONE;
	p->view.ended_at_s = view->ended_at_s;
	pod_mark_gone(c, p);
}

static struct core_pod *pod_by_id(struct core *c, int provider, const char *id)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].provider == provider && !strcmp(c->pods[i].id, id))
			return &c->pods[i];
	return NULL;
}

static struct core_pod *pod_by_attempt(struct core *c, int provider, const char *attempt)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].provider == provider && !strcmp(c->pods[i].attempt, attempt) &&
		    !c->pods[i].id[0])
			return &c->pods[i];
	return NULL;
}

/* A pod of an earlier life was made by our clock of then, which may have been set back since: by
 * its vendor's it has cost that much. */
static void take_age(struct core *c, struct core_pod *p, const struct pod_view *view,
		     int64_t asked_at)
{
	int64_t made_at = core_boot_of(c, p->provider, view->created_at_s) + CLOCK_NOISE_MS +
			  c->now - asked_at;
	/* one of another run has cost this run nothing before it took it over */
	bool odd =
		p->reused || !view->created_at_s || view->created_at_s < p->hard_end_s - OLDEST_S;
	char more[24];

	if (!pod_vendor(c, p)->clock_known || odd || p->create_at > c->began_at ||
	    made_at >= p->create_at)
		return;
	core_note(c, NOTE_NOTE,
		  "pod %s: by the clock of %s it is %s older than by this machine's, which was "
		  "set back: that counts as billed",
		  core_pod_called(p), c->conf.providers[p->provider].name,
		  duration_show(more, sizeof(more), p->create_at - made_at));
	p->create_at = made_at ? made_at : -1;
	c->aged = true;
	pod_save(c, p);
}

/* Its pod bills: it is not left idle until the answer comes, or never does. It may be one of two.
 */
static void create_hangs(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	if (c->conf.providers[p->provider].look_gap_ms)
		pod_vendor(c, p)->surfaced_at = c->now + SURFACE_LIMIT_MS;
	core_note(c, NOTE_NOTE,
		  "pod %s: %s has not answered its create for %d s but lists it: adopted", view->id,
		  c->conf.providers[p->provider].name, (int)((c->now - p->create_at) / 1000));
}

static void one_seen(struct core *c, int provider, const struct pod_view *view, int64_t asked_at)
{
	struct core_pod *p = pod_by_id(c, provider, view->id);
	/* run ids are short: another machine may have drawn the same one */
	bool ours = !strcmp(view->marker.run, c->conf.run) && view->marker.attempt[0] &&
		    (!view->marker.machine[0] || !strcmp(view->marker.machine, c->conf.machine));

	if (!p && ours) {
		p = pod_by_attempt(c, provider, view->marker.attempt);
		/* it lived and ended before its id was known */
		bool over = view->state == POD_STATE_GONE;
		if (!p && !over)
			stray(c, provider, view);
		if (!p || (over && p->phase != POD_AMBIGUOUS))
			return;
		p->listed = true;
		p->there_at = over ? p->there_at : asked_at;
		p->elsewhere = false;
		/* its reply is under way, or lost */
		if (p->phase == POD_RENTING && c->now - p->create_at < HUNG_CREATE_MS) {
			p->view = *view;
			return;
		}
		if (p->phase == POD_RENTING)
			create_hangs(c, p, view);
		/* a create whose reply was lost: it exists after all */
		bool unwanted = p->unwanted || p->phase == POD_NEVER;
		c->spent_microusd -= core_may_have_cost(p);
		p->released_at = 0;
		p->phase = POD_AMBIGUOUS;
		p->unwanted = unwanted;
		p->fault = ERR_NONE;
		take_age(c, p, view, asked_at);
		pod_rented(c, p, view);
		return;
	}
	if (!p || p->handed)
		return;
	if (p->phase == POD_GONE || p->phase == POD_NEVER) {
		if (view->state == POD_STATE_GONE || asked_at <= p->gone_at)
			return;
		core_note(c, NOTE_WARN,
			  "pod %s: listed again after it was gone; releasing it again", p->id);
		c->spent_microusd -= core_cost(p, c->now) + core_may_have_cost(p);
		p->unplaced = false;
		p->released_at = 0;
		p->asked_twice = false;
		p->unwanted = true;
		pod_enter(c, p, POD_BOOTING);
		pod_release_now(c, pod_index(c, p));
		return;
	}
	p->listed = true;
	p->unlisted = false;
	if (view->state != POD_STATE_GONE)
		p->there_at = MAX(p->there_at, asked_at);
	p->elsewhere = p->unprovable = false;
	take_age(c, p, view, asked_at);
	if (view->state == POD_STATE_GONE)
		p->unplaced = view->end == POD_END_QUEUED;
	if (p->phase == POD_CONFIRMING)
		confirm_look(c, p, view->state != POD_STATE_GONE, asked_at);
	else if (p->phase == POD_RELEASING && view->state != POD_STATE_GONE)
		refused_look(c, p, true, asked_at);
	else if (p->phase == POD_RELEASING && p->tries) /* by its provider's own word */
		pod_take_end(c, p, view);
	else if (asked_at >= p->rented_at)
		pod_take_view(c, p, view);
}

/* Of a pod that is missing in lists. That its provider denies it proves nothing while it may be too
 * new; once shown so, that decides. */
void seen_inspected(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];
	const struct pod_view *view = ev->err ? NULL : &ev->views[0];

	c->dirty = true;
	if (!view || ev->asked_at < p->rented_at || p->phase < POD_BOOTING || p->phase >= POD_GONE)
		return;
	if (view->state == POD_STATE_GONE) {
		if (p->phase == POD_CONFIRMING && p->unlisted && ev->asked_at >= p->released_at)
			pod_mark_gone(c, p);
		else if (p->phase < POD_RELEASING && p->unlisted && !p->connected)
			pod_vanished(c, p, "its provider no longer knows this pod", false);
		return;
	}
	if (!p->unlisted && p->phase < POD_RELEASING) {
		core_note(c, NOTE_INFO,
			  "pod %s: %s omits it from its lists, but shows it when asked for it "
			  "by id",
			  p->id, c->conf.providers[p->provider].name);
		p->unlisted = true;
	}
	p->there_at = MAX(p->there_at, ev->asked_at);
	take_age(c, p, view, ev->asked_at);
	if (p->phase == POD_CONFIRMING)
		confirm_look(c, p, true, ev->asked_at);
	else
		pod_take_view(c, p, view);
}

static bool in_list(const struct core_pod *p, const struct pod_view *views, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (p->id[0] ? !strcmp(views[i].id, p->id)
			     : !strcmp(views[i].marker.attempt, p->attempt))
			return true;
	return false;
}

static void pod_seen(struct core *c, int provider, const struct pod_view *views, size_t count,
		     int64_t asked_at, bool partial)
{
	for (size_t i = 0; i < count; i++)
		one_seen(c, provider, &views[i], asked_at);
	if (c->aged)
		budget_fit_adopted(c);
	c->aged = false;
	for (int i = 0; i < c->pod_count && !partial; i++) {
		struct core_pod *p = &c->pods[i];
		if (p->provider != provider || in_list(p, views, count))
			continue;
		if (p->phase == POD_AMBIGUOUS)
			ambiguous_look(c, p, asked_at);
		else if (p->phase == POD_CONFIRMING)
			confirm_look(c, p, false, asked_at);
		else if (p->phase == POD_RELEASING)
			refused_look(c, p, false, asked_at);
		else if (p->phase >= POD_BOOTING && p->phase <= POD_WORKING)
			missing(c, p, asked_at);
	}
}

/* ---- one listing for all pods of an account ---- */

static int64_t list_interval(const struct core *c, const struct vendor *v, const struct core_pod *p)
{
	const struct core_provider *k = &c->conf.providers[p->provider];
	int64_t age = c->now - p->create_at;

	if (p->unprovable)
		return UNPROVABLE_LOOK_MS;
	switch (p->phase) {
	case POD_BOOTING:
	case POD_CONNECTING: return MIN(MAX(age / 8, k->poll_ms), MAX((int64_t)5000, k->poll_ms));
	case POD_AMBIGUOUS: /* often at first: it bills, and it may be just the pod that is waited
			       for */
		return p->late_clean_at
			       ? MAX(k->look_gap_ms, 1000)
			       : MIN(MAX((c->now - p->rented_at) / 4, k->poll_ms), (int64_t)15000);
	case POD_CONFIRMING:
		/* its provider is asked for it with each of them */
		if (p->clean_looks && p->unlisted)
			return MAX(k->look_gap_ms, 1000);
		if (p->clean_looks)
			return MIN(MAX(pod_proof_at(c, p) - v->listed_at, 0),
				   MAX(p->absent ? (int64_t)10000 : 5000, k->look_gap_ms));
		return MIN(MAX((c->now - p->release_at) / 4, k->poll_ms),
			   MAX((int64_t)5000, k->poll_ms));
	case POD_PREPARING:
	case POD_QUEUED:
	case POD_LOADING:
	case POD_WORKING: return p->looks ? MAX(k->look_gap_ms, 1000) : 30000;
	case POD_RELEASING: /* while its release is refused it may end itself; a second pod of its
			       create is told all the same */
		return !p->tries ? NEVER : p->finished_too ? 10000 : 30000;
	case POD_RENTING: { /* one look when its answer is late, and then more and more seldom */
		int64_t last = MAX(v->listed_at, v->listing_since);
		return MAX(p->create_at + HUNG_CREATE_MS, last + MAX((int64_t)5000, age / 4)) -
		       last;
	}
	case POD_WANTED:
	case POD_GONE:
	case POD_NEVER: break;
	}
	return NEVER;
}

bool seen_awaits_twin(const struct vendor *v)
{
	return v->used && v->surfaced_at >= 0 && v->listed_at < v->surfaced_at;
}

/* It may surface when no other pod needs a listing, and while nothing can be rented. */
static int64_t twin_look_at(const struct vendor *v)
{
	if (!seen_awaits_twin(v) || v->list_refused)
		return NEVER;
	return MIN(MAX(v->listed_at, v->listing_since) + TWIN_LOOK_MS, v->surfaced_at);
}

void seen_ask(struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		int64_t at = MIN(v->list_at, twin_look_at(v));
		for (int k = 0; k < c->pod_count; k++) {
			if (c->pods[k].provider != i)
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

/* Without its list no pod comes up and none is known to be gone. A list that burst cannot read
 * stays so. */
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
		if (c->pods[i].provider == provider && c->pods[i].phase == POD_AMBIGUOUS)
			return true;
	return false;
}

/* No pod is proven absent by it, and nothing is waited for that only a list could tell. Pods are
 * seen by their ids; what a lost create made has none that is known. */
static void list_is_refused(struct core *c, int provider)
{
	struct vendor *v = &c->vendors[provider];

	v->list_failures = LIST_FAILURES_MAX;
	if (any_ambiguous(c, provider))
		v->rent_not_before = MAX(v->rent_not_before, c->now + LAST_LOOK_MS);
}

void seen_listed(struct core *c, const struct event *ev)
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
		/* what would be made there could not be seen */
		if (v->list_failures >= LIST_FAILURES_MAX)
			v->rent_not_before =
				MAX(v->rent_not_before, v->list_not_before + LAST_LOOK_MS);
		return;
	}
	v->list_failures = 0;
	v->list_refused = ev->partial;
	if (ev->partial)
		list_is_refused(c, ev->provider);
	else
		v->listed_at = ev->asked_at;
	v->ahead_ms = ev->ahead_ms;
	v->clock_known = ev->clock_known;
	pod_seen(c, ev->provider, ev->views, ev->count, ev->asked_at, ev->partial);
}

/* From when on a listing of this vendor counts as the last look. */
static int64_t last_look_from(const struct core *c, const struct vendor *v)
{
	return c->signals > 1 ? v->created_at + 1 : MAX(v->created_at + 1, v->surfaced_at);
}

int64_t seen_give_up_at(const struct core *c, const struct vendor *v)
{
	bool waits = v->listing || v->list_not_before > c->now;

	return waits && v->used ? MAX(v->listing_since, last_look_from(c, v)) + LAST_LOOK_MS
				: NEVER;
}

bool seen_all_looked(struct core *c)
{
	bool all = true;

	/* the listing before the exit: nothing of ours may be there that we do not know of */
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		int64_t from = last_look_from(c, v);
		if (!v->used || v->listed_at >= from)
			continue;
		if (v->list_failures >= LIST_FAILURES_MAX || c->now >= seen_give_up_at(c, v))
			continue;
		all = false;
		v->list_at = MIN(v->list_at, MAX(c->now, from));
	}
	return all;
}
