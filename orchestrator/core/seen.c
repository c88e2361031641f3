/* seen.c - what providers' listings show: pods that boot, end, surface late, or should not exist.
 */
#include "impl.h"

#include "base/clock.h"

/* The create reply may omit the price, or give a provisional one. Returns false if the pod is too
 * expensive and is released. */
static bool takes_price(struct core *c, struct core_pod *p, int64_t price_microusd_h)
{
	if (price_microusd_h <= p->rental.price_microusd_h)
		return true;
	p->rental.price_microusd_h = price_microusd_h;
	pod_save(c, p);
	return pod_is_leaving(p) || pod_fits_caps(c, p);
}

/* A list that omits an address once does not change it. */
static void keep_address(struct pod_view *now, const struct pod_view *before)
{
	if (now->port)
		return;
	now->port = before->port;
	COPY_TEXT(now->host, before->host);
	COPY_TEXT(now->user, before->user);
}

static void pod_take_view(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	struct pod_view before = p->rental.view;

	p->rental.view = *view;
	keep_address(&p->rental.view, &before);
	p->rental.missing_lists = 0;
	if (!p->rental.vendor_started_s)
		p->rental.vendor_started_s =
			view->started_at_s; /* a restarted container was billed before, too */
	if (view->state == POD_STATE_RUNNING && !p->presence.running_at)
		p->presence.running_at = c->now;
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
		resting_bad_host(c, pod_index(c, p),
				 view->detail[0] ? view->detail : "it failed to start");
		pod_dismiss(c, pod_index(c, p), ERR_TRANSIENT, "it failed to start: %s",
			    view->detail[0] ? view->detail : "the vendor does not say why");
		if (core_log_first(p, c->now)) /* the log's reason may hold for the next pod, too */
			pod_vendor(c, p)->diagnosed_by = c->now + CORE_LOG_READ_MS;
		break;
	case POD_STATE_GONE:
		if (view->end == POD_END_QUEUED)
			resting_sold_out(c, p, 0);
		if (view->end == POD_END_SETUP && !p->presence.connected_at)
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

static void missing(struct core *c, struct core_pod *p, int64_t requested_at)
{
	if (requested_at < p->rental.rented_at + 1 || p->presence.link == LINK_UP)
		return; /* a list may be wrong, a connection is not */
	if (c->conf.providers[p->rental.provider].list_gap_ms &&
	    (pod_is_omitted(p) || c->now - p->rental.rented_at >= UNLISTED_MS))
		core_act(c, ACT_INSPECT, pod_index(c, p)); /* the list may omit it for good */
	if (pod_is_omitted(p))
		return;
	/* one list without it is no proof: ids surface late */
	if (p->rental.missing_lists++ == 0) {
		p->rental.clean_at = requested_at;
		c->dirty = true;
		return;
	}
	if (requested_at >= proof_at(c, p))
		pod_vanished(c, p,
			     p->presence.connected_at ? "it is gone"
						      : "the vendor no longer lists it",
			     false);
}

/* A pod of this run with an unknown id: the second pod of one create, or one that surfaced after
 * all. */
static void stray(struct core *c, int provider, const struct pod_view *view)
{
	struct core_pod *p = pod_new(c);

	p->rental.provider = provider;
	p->rental.view = *view;
	p->rental.listing = LISTING_SHOWS;
	p->rental.seen_at = c->now;
	/* a ledger row of its own, so that its twin's is not lost */
	pod_name_attempt(c, p);
	COPY_TEXT(p->rental.id, view->id);
	COPY_TEXT(p->rental.offer.provider, c->conf.providers[provider].name);
	COPY_TEXT(p->rental.offer.gpu, view->gpu);
	COPY_TEXT(p->rental.offer.region, view->region);
	p->rental.price_microusd_h = view->price_microusd_h;
	p->rental.create_at = view->created_at_s
				      ? MIN(c->now, core_boot_of(c, provider, view->created_at_s))
				      : c->now;
	p->rental.rented_at = c->now;
	p->rental.hard_end_s = view->marker.hard_end_s;
	p->rental.hard_end_ms = p->rental.hard_end_s * 1000 - c->wall + c->now;
	pod_enter(c, p, POD_BOOTING);
	snprintf(p->reason, sizeof(p->reason), "an extra pod");
	core_note(c, NOTE_WARN, "pod %s: has this run's marker but is not needed; releasing it",
		  p->rental.id);
	pod_set_leave(c, p, LEAVE_NOW);
}

static void pod_take_end(struct core *c, struct core_pod *p, const struct pod_view *view,
			 int64_t requested_at)
{
	proof_outlived_until(c, p, requested_at);
	p->rental.view.state = POD_STATE_GONE;
	p->rental.view.ended_at_s = view->ended_at_s;
	pod_set_gone(c, p);
}

void seen_rented(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	pod_rented(c, p, view);
	if (!pod_is_leaving(p) && pod_fits_caps(c, p))
		pod_take_view(c, p, view);
}

static struct core_pod *pod_by_id(struct core *c, int provider, const char *id)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].rental.provider == provider && !strcmp(c->pods[i].rental.id, id))
			return &c->pods[i];
	return NULL;
}

static struct core_pod *pod_by_attempt(struct core *c, int provider, const char *attempt)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].rental.provider == provider &&
		    !strcmp(c->pods[i].rental.attempt, attempt) && !c->pods[i].rental.id[0])
			return &c->pods[i];
	return NULL;
}

/* An earlier client's clock may have been ahead of today's: by its provider's clock the pod has
 * cost more. */
static void take_age(struct core *c, struct core_pod *p, const struct pod_view *view,
		     int64_t requested_at)
{
	int64_t made_at = core_boot_of(c, p->rental.provider, view->created_at_s) + CLOCK_NOISE_MS +
			  c->now - requested_at;
	/* what it cost another run before does not count for this one */
	bool odd = p->rental.reused || !view->created_at_s ||
		   view->created_at_s < p->rental.hard_end_s - OLDEST_S;
	char more[24];

	if (!pod_vendor(c, p)->clock_known || odd || p->rental.create_at > c->began_at ||
	    made_at >= p->rental.create_at)
		return;
	core_note(c, NOTE_NOTE,
		  "pod %s: by the clock of %s it is %s older than by this machine's, which was "
		  "set back: that counts as billed",
		  core_pod_called(p), c->conf.providers[p->rental.provider].name,
		  duration_show(more, sizeof(more), p->rental.create_at - made_at));
	p->rental.create_at = made_at ? made_at : -1;
	c->aged = true;
	pod_save(c, p);
}

/* The pod bills, so use it before the create is answered. There may be a second one. */
static void create_hangs(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	if (c->conf.providers[p->rental.provider].list_gap_ms)
		pod_vendor(c, p)->surfaced_at = c->now + SURFACE_LIMIT_MS;
	core_note(c, NOTE_NOTE,
		  "pod %s: %s has not answered its create for %d s but lists it: adopted", view->id,
		  c->conf.providers[p->rental.provider].name,
		  (int)((c->now - p->rental.create_at) / 1000));
}

/* A list shows the pod of a create without a reply. */
static void unanswered_seen(struct core *c, int provider, const struct pod_view *view,
			    int64_t requested_at)
{
	struct core_pod *p = pod_by_attempt(c, provider, view->marker.attempt);
	/* it ended before its id was known */
	bool over = view->state == POD_STATE_GONE;

	if (!p && !over)
		stray(c, provider, view);
	if (!p || (over && p->phase != POD_AMBIGUOUS))
		return;
	p->rental.listing = LISTING_SHOWS;
	p->rental.seen_at = over ? p->rental.seen_at : requested_at;
	if (p->rental.key == KEY_OTHER)
		p->rental.key = KEY_OURS;
	/* its reply is under way, or lost */
	if (p->phase == POD_RENTING && c->now - p->rental.create_at < HUNG_CREATE_MS) {
		p->rental.view = *view;
		return;
	}
	if (p->phase == POD_RENTING)
		create_hangs(c, p, view);
	/* a create with a lost reply did make a pod */
	if (p->phase == POD_NEVER)
		p->leave = LEAVE_NOW;
	c->spent_microusd -= core_may_have_cost(p);
	p->rental.released_at = 0;
	p->phase = POD_AMBIGUOUS;
	p->fault = ERR_NONE;
	take_age(c, p, view, requested_at);
	seen_rented(c, p, view);
}

/* A list shows a pod that counted as gone. */
static void gone_seen(struct core *c, struct core_pod *p, const struct pod_view *view,
		      int64_t requested_at)
{
	if (view->state == POD_STATE_GONE || requested_at <= p->rental.gone_at)
		return;
	core_note(c, NOTE_WARN, "pod %s: listed again after it was gone; releasing it again",
		  p->rental.id);
	c->spent_microusd -= core_cost(p, c->now) + core_may_have_cost(p);
	queue_listed_again(p);
	proof_refuted(p);
	pod_enter(c, p, POD_BOOTING);
	pod_set_leave(c, p, LEAVE_NOW);
}

/* Its vendor reports that it ended, and how or when: a fact, to which listings add nothing. That a
 * vendor merely does not know a pod proves little: see proof.c. */
static bool end_is_reported(const struct pod_view *view)
{
	return view->state == POD_STATE_GONE &&
	       (view->end != POD_END_UNKNOWN || view->ended_at_s > 0);
}

static void one_seen(struct core *c, int provider, const struct pod_view *view,
		     int64_t requested_at)
{
	struct core_pod *p = pod_by_id(c, provider, view->id);
	/* run ids are short: another machine may have drawn the same one */
	bool ours = !strcmp(view->marker.run, c->conf.run) && view->marker.attempt[0] &&
		    (!view->marker.machine[0] || !strcmp(view->marker.machine, c->conf.machine));

	if (!p && ours)
		unanswered_seen(c, provider, view, requested_at);
	if (!p || p->rental.exit == EXIT_TAKEN)
		return;
	if (!pod_may_bill(p)) {
		gone_seen(c, p, view, requested_at);
		return;
	}
	p->rental.listing = LISTING_SHOWS;
	if (view->state != POD_STATE_GONE)
		p->rental.seen_at = MAX(p->rental.seen_at, requested_at);
	p->rental.key = KEY_OURS;
	take_age(c, p, view, requested_at);
	queue_ended(p, view);
	if (p->phase == POD_CONFIRMING && end_is_reported(view))
		pod_take_end(c, p, view, requested_at);
	else if (p->phase == POD_CONFIRMING)
		proof_confirm(c, p, view->state, requested_at);
	else if (p->phase == POD_RELEASING && view->state != POD_STATE_GONE)
		proof_refused(c, p, true, requested_at);
	else if (p->phase == POD_RELEASING && p->rental.tries) /* its provider reports its end */
		pod_take_end(c, p, view, requested_at);
	else if (requested_at >= p->rental.rented_at)
		pod_take_view(c, p, view);
}

/* For a pod that lists omit. That its provider denies it proves nothing while the pod may be too
 * new. Once an inspection has shown it, inspections decide. */
void seen_inspected(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];
	const struct pod_view *view = ev->err ? NULL : &ev->views[0];

	c->dirty = true;
	if (!view || ev->requested_at < p->rental.rented_at || pod_lacks_id(p) || !pod_may_bill(p))
		return;
	if (view->state == POD_STATE_GONE) {
		if (p->phase == POD_CONFIRMING && pod_is_omitted(p) &&
		    ev->requested_at >= p->rental.released_at)
			pod_set_gone(c, p);
		else if (!pod_is_retired(p) && pod_is_omitted(p) && p->presence.link != LINK_UP)
			pod_vanished(c, p, "its provider no longer knows this pod", false);
		return;
	}
	if (!pod_is_omitted(p) && !pod_is_retired(p)) {
		core_note(c, NOTE_INFO,
			  "pod %s: %s omits it from its lists, but shows it when asked for it "
			  "by id",
			  p->rental.id, c->conf.providers[p->rental.provider].name);
		p->rental.listing =
			p->rental.listing == LISTING_SHOWS ? LISTING_STOPPED : LISTING_OMITS;
	}
	p->rental.seen_at = MAX(p->rental.seen_at, ev->requested_at);
	take_age(c, p, view, ev->requested_at);
	if (p->phase == POD_CONFIRMING)
		proof_confirm(c, p, view->state, ev->requested_at);
	else
		pod_take_view(c, p, view);
}

static bool in_list(const struct core_pod *p, const struct pod_view *views, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (p->rental.id[0] ? !strcmp(views[i].id, p->rental.id)
				    : !strcmp(views[i].marker.attempt, p->rental.attempt))
			return true;
	return false;
}

void seen_views(struct core *c, int provider, const struct pod_view *views, size_t count,
		int64_t requested_at, bool partial)
{
	for (size_t i = 0; i < count; i++)
		one_seen(c, provider, &views[i], requested_at);
	if (c->aged)
		budget_fit_adopted(c);
	c->aged = false;
	for (int i = 0; i < c->pod_count && !partial; i++) {
		struct core_pod *p = &c->pods[i];
		if (p->rental.provider != provider || in_list(p, views, count))
			continue;
		if (p->phase == POD_AMBIGUOUS)
			proof_ambiguous(c, p, requested_at);
		else if (p->phase == POD_CONFIRMING)
			proof_confirm(c, p, POD_STATE_GONE, requested_at);
		else if (p->phase == POD_RELEASING)
			proof_refused(c, p, false, requested_at);
		else if (pod_lives(p))
			missing(c, p, requested_at);
	}
}
