/* listing.c - requests listings of providers, and takes in what they show. */
#include "base/clock.h"
#include "impl.h"

/* ---- reap: decides what `burst reap` does with a run and with each pod ---- */

enum reap_what reap_pod(const struct pod_view *view, const struct reap_known *known, bool forced,
			int64_t now_ms)
{
	if (view->state == POD_STATE_GONE)
		return REAP_PASS;
	if (!view->marker.attempt[0]) /* without a marker, its owner and its hard end are unknown */
		return forced ? REAP_FORCED : REAP_LEAVE;
	if (pod_is_overdue(view->marker.hard_end_s, now_ms))
		return REAP_PAST;
	if (forced)
		return REAP_FORCED;
	if (!known->ours || known->alive)
		return REAP_LEAVE;
	if (known->ended)
		return REAP_ENDED;
	/* a run that is not detached is settled as a whole */
	return known->detached && !known->at_work ? REAP_ORPHAN : REAP_LEAVE;
}

bool reap_run(bool detached, int64_t last_hard_end_s, int64_t now_ms)
{
	return !detached || pod_is_overdue(last_hard_end_s, now_ms);
}

/* ---- proof: what proves that a pod is gone or never existed: listings without it ---- */

/* From when on a list without the pod proves something (boot clock). A list that lags shows a new
 * pod late. A list that has shown the pod once, or does not lag, proves it at any time. */
static int64_t surfaces_by(const struct core *c, const struct core_pod *p)
{
	/* if lists omit it, its provider's reply about its id decides */
	if (p->rental.listing != LISTING_NEVER || !pod_provider(c, p)->list_gap_ms)
		return INT64_MIN;
	return MAX(p->rental.create_at, p->rental.rented_at) + SURFACE_LIMIT_MS;
}

/* When a clean list proves the pod gone at the earliest. A provider that denies a pod has not ended
 * it, and its list may miss that pod for as long. So a denial needs the gap that closes an
 * ambiguous create. The second denial comes after that gap and needs none. */
static int64_t proof_due_at(const struct core *c, const struct core_pod *p)
{
	int64_t list_gap_ms = pod_provider(c, p)->list_gap_ms;
	int64_t gap_ms =
		list_gap_ms && p->rental.answer == ANSWER_DENIED ? AMBIGUOUS_GAP_MS : list_gap_ms;

	return MAX(p->rental.clean_at + gap_ms, surfaces_by(c, p));
}

/* Whether this key may have no right to see the pod, so that absence proves nothing; warns of it
 * once. After its hard end the pod has ended itself. */
static bool key_may_hide_pod(struct core *c, struct core_pod *p)
{
	if (p->rental.key == KEY_OURS || c->wall >= p->rental.hard_end_s * 1000 + PAST_HARD_END_MS)
		return false;
	if (p->rental.key == KEY_REPORTED)
		return true;
	p->rental.key = KEY_REPORTED;
	core_note(c, NOTE_WARN,
		  "pod %s of %s was rented with another key, and the current one cannot see it: "
		  "it may still be billing; `burst reap` with that key releases it",
		  core_pod_called(p), p->rental.offer.provider);
	return true;
}

/* A provider may deny a pod that bills, and lists may miss it twice. Releases such a pod once more
 * before burst trusts them, and returns true if it did. */
static bool release_denied_again(struct core *c, struct core_pod *p)
{
	if (p->rental.answer != ANSWER_DENIED || !pod_provider(c, p)->list_gap_ms)
		return false;
	p->rental.answer = ANSWER_DENIED_REPEAT;
	leave_release_again(c, p);
	return true;
}

/* A list shows a pod whose release was accepted or denied: it bills until the next release. */
static void proof_reset(struct core_pod *p)
{
	p->rental.released_at = 0;
	if (p->rental.answer == ANSWER_DENIED_REPEAT)
		p->rental.answer = ANSWER_DENIED;
}

/* Writes "12:00:01 UTC" for a time of the boot clock, and returns `to`. */
static char *time_show(const struct core *c, char to[24], int64_t at)
{
	char text[32];

	clock_rfc3339(text, sizeof(text), c->wall + at - c->now);
	snprintf(to, 24, "%.8s UTC", text + 11);
	return to;
}

/* Whether a pod that runs at `at` is news: lists lag, and a pod needs a moment to end. */
static bool is_outlived_long(const struct core_pod *p, int64_t at)
{
	return p->rental.accepted_at && at - p->rental.accepted_at >= OUTLIVED_SAID_MS;
}

/* A list shows the pod running although its release was accepted: it counts as billed until then,
 * and the user is warned. */
static void note_outlived(struct core *c, struct core_pod *p, enum pod_state state,
			  int64_t requested_at)
{
	bool runs = state == POD_STATE_RUNNING || state == POD_STATE_CREATING ||
		    state == POD_STATE_UNKNOWN;
	int64_t before = MAX(p->rental.outlived_at, p->rental.released_at);
	char accepted[24], at[24];

	if (!runs || p->rental.answer != ANSWER_ACCEPTED)
		return;
	p->rental.outlived_at = MAX(requested_at, p->rental.outlived_at);
	if (before == p->rental.released_at)
		pod_save(c, p);
	if (is_outlived_long(p, requested_at) &&
	    (!is_outlived_long(p, before) || before == p->rental.released_at))
		core_note(c, NOTE_WARN,
			  "pod %s: released at %s, still running at %s: it may still bill, and "
			  "counts until it is gone",
			  core_pod_called(p), time_show(c, accepted, p->rental.accepted_at),
			  time_show(c, at, requested_at));
}

/* The first list without a pod that outlived its release: the pod had ended by then. */
static void proof_end_outliving(struct core *c, struct core_pod *p, int64_t requested_at)
{
	if (!pod_outlives_release(p) || pod_is_omitted(p))
		return;
	p->rental.released_at = MAX(requested_at, p->rental.released_at);
	pod_save(c, p);
}

/* What a list or an inspection proves of a pod whose release was accepted or denied. state: as
 * shown; POD_STATE_GONE: it does not show the pod. The pod is gone after enough clean lists; a pod
 * that is still shown is released again. */
static void proof_after_release(struct core *c, struct core_pod *p, enum pod_state state,
				int64_t requested_at)
{
	if (requested_at < p->rental.released_at)
		return;
	if (state != POD_STATE_GONE) {
		p->rental.clean_lists = 0;
		note_outlived(c, p, state, requested_at);
		if (pod_is_denied(p) || (c->now - p->rental.released_at > STILL_THERE_MS &&
					 c->now - p->rental.release_at > STILL_THERE_MS)) {
			/* It is still there: release it again; until then it bills. */
			p->rental.release_at = c->now;
			proof_reset(p);
			leave_release_again(c, p);
		}
		return;
	}
	proof_end_outliving(c, p, requested_at);
	if (p->rental.clean_lists++ == 0)
		p->rental.clean_at = requested_at;
	if (p->rental.answer == ANSWER_DENIED && p->presence.link == LINK_CUT &&
	    p->rental.clean_lists <= 2)
		p->rental.released_at =
			requested_at; /* denied while its agent answered: it was there,
				     and the agent needs a moment to end it */
	c->dirty = true;
	if (requested_at < proof_due_at(c, p) || release_denied_again(c, p) ||
	    key_may_hide_pod(c, p))
		return;
	if (pod_is_omitted(p))
		core_act(c, ACT_INSPECT, pod_index(c, p)); /* lists prove nothing about it */
	else
		pod_set_gone(c, p);
}

/* A list does not show a pod whose release is refused: only lists can prove that it ended itself or
 * was ended elsewhere. */
static void proof_while_refused(struct core *c, struct core_pod *p, int64_t requested_at)
{
	bool lags = pod_provider(c, p)->list_gap_ms > 0;

	if (!p->rental.tries || requested_at < p->rental.release_at)
		return;
	if (++p->rental.clean_lists == 1)
		p->rental.clean_at = requested_at;
	c->dirty = true;
	if (p->rental.clean_lists < (lags ? 3 : 1) || key_may_hide_pod(c, p))
		return;
	if (requested_at <
	    MAX(p->rental.clean_at + (lags ? AMBIGUOUS_GAP_MS : 0), surfaces_by(c, p)))
		return;
	p->rental.released_at = MAX(p->rental.clean_at, p->rental.create_at);
	pod_set_gone(c, p);
}

static void on_listed_while_refused(struct core *c, struct core_pod *p, int64_t requested_at)
{
	if (!p->rental.tries || requested_at < p->rental.release_at)
		return;
	p->rental.clean_lists = 0;
	c->dirty = true;
}

/* A list does not show the pod of a lost create. Enough such lists prove that it never existed, or
 * ended before its id was known. */
static void proof_while_ambiguous(struct core *c, struct core_pod *p, int64_t requested_at)
{
	int64_t list_gap_ms = pod_provider(c, p)->list_gap_ms, gap_ms = pod_ambiguous_ms(c, p);
	struct err err;

	if (requested_at < p->rental.rented_at)
		return;
	/* The first list may predate the pod's appearance, and any list may miss a pod once. So two
	 * of the late lists must be clean as well. */
	if (p->rental.clean_lists++ == 0) {
		p->rental.clean_at = requested_at;
	} else if (requested_at - p->rental.clean_at >= gap_ms && !p->rental.late_clean_at &&
		   list_gap_ms) {
		p->rental.late_clean_at = requested_at;
	} else if (requested_at - p->rental.clean_at >= gap_ms &&
		   requested_at - p->rental.late_clean_at >= list_gap_ms &&
		   !key_may_hide_pod(c, p)) {
		err_set(&err, ERR_TRANSIENT, "%s", p->reason);
		offers_rest_after_trouble(c, p, 0);
		/* It may have lived between two lists, or before it would have been listed:
		 * max_cost counts that as spent. */
		p->rental.released_at = budget_billed_until(p, requested_at);
		pod_set_never_existed(c, p, &err);
		c->spent_microusd += core_may_have_cost(p);
	}
}

/* ---- seen ----
 * What providers' listings show: pods that boot, end, surface late, or should not exist. */

/* Takes a higher price: the create reply may omit it, or give a provisional one. Returns false if
 * the pod is too expensive and is dismissed. */
static bool update_price(struct core *c, struct core_pod *p, int64_t price_microusd_h)
{
	if (price_microusd_h <= p->rental.price_microusd_h)
		return true;
	p->rental.price_microusd_h = price_microusd_h;
	pod_save(c, p);
	return pod_is_leaving(p) || pod_check_caps(c, p);
}

/* A list that omits an address once does not change it. */
static void keep_address(struct pod_view *now, const struct pod_view *before)
{
	if (now->reach)
		return;
	now->reach = before->reach;
	now->port = before->port;
	COPY_TEXT(now->host, before->host);
	COPY_TEXT(now->user, before->user);
}

/* What a list or an inspection shows of a pod that is not released. */
static void pod_on_view(struct core *c, struct core_pod *p, const struct pod_view *view)
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
	if (!update_price(c, p, view->price_microusd_h))
		return;
	queue_on_listed(c, p, view);
	switch (view->state) {
	case POD_STATE_QUEUED: break;
	case POD_STATE_UNKNOWN:
	case POD_STATE_CREATING:
	case POD_STATE_RUNNING:
		if (view->reach && p->phase == POD_BOOTING)
			pod_connect(c, p);
		break;
	case POD_STATE_STOPPED:
		pod_on_vanished(c, p,
				view->preempted   ? "the vendor reclaimed it (preempted)"
				: view->detail[0] ? view->detail
						  : "it stopped by itself");
		break;
	case POD_STATE_FAILED:
		offers_rest_bad_host(c, pod_index(c, p),
				     view->detail[0] ? view->detail : "it failed to start");
		pod_dismiss(c, pod_index(c, p), ERR_TRANSIENT, "it failed to start: %s",
			    view->detail[0] ? view->detail : "the vendor does not say why");
		if (core_reads_log_first(
			    p, c->now)) /* the log's reason may hold for the next pod, too */
			pod_vendor(c, p)->diagnosed_by = c->now + CORE_LOG_READ_MS;
		break;
	case POD_STATE_GONE:
		if (p->rental.place == PLACE_NEVER)
			offers_rest_sold_out(c, p, 0);
		if (view->end == POD_END_SETUP && !p->presence.connected_at)
			pod_on_unmade(c, p,
				      view->detail[0] ? view->detail
						      : "the vendor does not say why");
		else
			pod_on_gone(c, p,
				    view->preempted   ? "the vendor reclaimed it (preempted)"
				    : view->detail[0] ? view->detail
						      : "it is gone");
		break;
	}
}

/* A list does not show a pod that should live. Enough such lists mean that it has ended. */
static void on_missing_from_list(struct core *c, struct core_pod *p, int64_t requested_at)
{
	if (requested_at < p->rental.rented_at + 1 || p->presence.link == LINK_UP)
		return; /* a list may be wrong, a connection is not */
	if (pod_provider(c, p)->list_gap_ms &&
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
	if (requested_at >= proof_due_at(c, p))
		pod_on_vanished(c, p,
				p->presence.connected_at ? "it is gone"
							 : "the vendor no longer lists it");
}

/* Adds and releases a pod of this run with an unknown id: the second pod of one create, or one that
 * surfaced after all. */
static void release_stray(struct core *c, int provider, const struct pod_view *view)
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
	p->rental.create_at =
		view->created_at_s ? MIN(c->now, core_boot_time_of(c, provider, view->created_at_s))
				   : c->now;
	p->rental.rented_at = c->now;
	p->rental.hard_end_s = view->marker.hard_end_s;
	p->rental.hard_end_ms = p->rental.hard_end_s * 1000 - c->wall + c->now;
	if (c->conf.providers[provider].waits_free) {
		p->rental.run_ms = MAX(p->rental.hard_end_ms - c->now, 1);
		p->rental.queued_at = p->rental.create_at;
		queue_note_start(c, p, view, c->now);
	}
	pod_enter(c, p, POD_BOOTING);
	snprintf(p->reason, sizeof(p->reason), "an extra pod");
	core_note(c, NOTE_WARN, "pod %s: has this run's marker but is not needed; releasing it",
		  p->rental.id);
	pod_save(c, p); /* before its release: a client that dies there leaves its id */
	pod_set_leave(c, p, LEAVE_NOW);
}

/* The provider reports how or when a released pod ended: it is gone. */
static void pod_on_reported_end(struct core *c, struct core_pod *p, const struct pod_view *view,
				int64_t requested_at)
{
	proof_end_outliving(c, p, requested_at);
	p->rental.view.state = POD_STATE_GONE;
	p->rental.view.ended_at_s = view->ended_at_s;
	pod_set_gone(c, p);
}

void seen_on_rented(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	queue_note_start(c, p, view, p->rental.create_at);
	queue_on_end(p, view);
	pod_on_rented(c, p, view);
	if (!pod_is_leaving(p) && pod_check_caps(c, p))
		pod_on_view(c, p, view);
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

/* Moves the pod's create back if it is older by its provider's clock, since it has cost more then:
 * an earlier client's clock may have been ahead of today's. */
static void correct_age(struct core *c, struct core_pod *p, const struct pod_view *view,
			int64_t requested_at)
{
	int64_t made_at = core_boot_time_of(c, p->rental.provider, view->created_at_s) +
			  CLOCK_NOISE_MS + c->now - requested_at;
	/* what it cost another run before does not count for this one */
	bool not_comparable = p->rental.reused || p->rental.run_ms || !view->created_at_s ||
			      view->created_at_s < p->rental.hard_end_s - OLDEST_S;
	char more[24];

	if (!pod_vendor(c, p)->clock_known || not_comparable || p->rental.create_at > c->began_at ||
	    made_at >= p->rental.create_at)
		return;
	core_note(c, NOTE_NOTE,
		  "pod %s: by the clock of %s it is %s older than by this machine's, which was "
		  "set back: that counts as billed",
		  core_pod_called(p), pod_provider(c, p)->name,
		  duration_show(more, sizeof(more), p->rental.create_at - made_at));
	p->rental.create_at = made_at ? made_at : -1;
	c->aged = true;
	pod_save(c, p);
}

/* A create hangs, but a list shows its pod. The pod bills, so it is used before the create is
 * answered. There may be a second one. */
static void note_hung_create(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	pod_awaits_twin(c, p);
	core_note(c, NOTE_NOTE,
		  "pod %s: %s has not answered its create for %d s but lists it: adopted", view->id,
		  pod_provider(c, p)->name, (int)((c->now - p->rental.create_at) / 1000));
}

/* A list shows a pod of this run whose id is not known: adopts it if its create has no reply, else
 * releases it as a stray. */
static void on_unanswered_seen(struct core *c, int provider, const struct pod_view *view,
			       int64_t requested_at)
{
	struct core_pod *p = pod_by_attempt(c, provider, view->marker.attempt);
	/* it ended before its id was known */
	bool over = view->state == POD_STATE_GONE;

	if (!p && !over)
		release_stray(c, provider, view);
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
		note_hung_create(c, p, view);
	/* a create with a lost reply did make a pod */
	if (p->phase == POD_NEVER)
		p->leave = LEAVE_NOW;
	c->spent_microusd -= core_may_have_cost(p);
	p->rental.released_at = 0;
	p->phase = POD_AMBIGUOUS;
	p->fault = ERR_NONE;
	correct_age(c, p, view, requested_at);
	seen_on_rented(c, p, view);
}

/* A list shows a pod that counted as gone: releases it again. */
static void on_gone_seen(struct core *c, struct core_pod *p, const struct pod_view *view,
			 int64_t requested_at)
{
	if (view->state == POD_STATE_GONE || requested_at <= p->rental.gone_at)
		return;
	core_note(c, NOTE_WARN, "pod %s: listed again after it was gone; releasing it again",
		  p->rental.id);
	c->spent_microusd -= core_cost(p, c->now) + core_may_have_cost(p);
	queue_on_listed_again(p);
	proof_reset(p);
	pod_enter(c, p, POD_BOOTING);
	pod_set_leave(c, p, LEAVE_NOW);
}

/* Passes what a list shows of one pod on, by the phase of the pod. */
static void on_pod_listed(struct core *c, int provider, const struct pod_view *view,
			  int64_t requested_at)
{
	struct core_pod *p = pod_by_id(c, provider, view->id);
	/* run ids are short: another machine may have drawn the same one */
	bool ours = !strcmp(view->marker.run, c->conf.run) && view->marker.attempt[0] &&
		    (!view->marker.machine[0] || !strcmp(view->marker.machine, c->conf.machine));

	if (!p && ours)
		on_unanswered_seen(c, provider, view, requested_at);
	if (!p || p->rental.exit == EXIT_TAKEN)
		return;
	if (!pod_may_bill(p)) {
		on_gone_seen(c, p, view, requested_at);
		return;
	}
	p->rental.listing = LISTING_SHOWS;
	if (view->state != POD_STATE_GONE)
		p->rental.seen_at = MAX(p->rental.seen_at, requested_at);
	p->rental.key = KEY_OURS;
	correct_age(c, p, view, requested_at);
	queue_note_start(c, p, view, requested_at);
	queue_on_end(p, view);
	if (p->phase == POD_CONFIRMING)
		COPY_TEXT(p->rental.view.detail, view->detail);
	if (p->phase == POD_CONFIRMING && pod_end_is_reported(view))
		pod_on_reported_end(c, p, view, requested_at);
	else if (p->phase == POD_CONFIRMING)
		proof_after_release(c, p, view->state, requested_at);
	else if (p->phase == POD_RELEASING && view->state != POD_STATE_GONE)
		on_listed_while_refused(c, p, requested_at);
	else if (p->phase == POD_RELEASING && p->rental.tries) /* its provider reports its end */
		pod_on_reported_end(c, p, view, requested_at);
	else if (requested_at >= p->rental.rented_at)
		pod_on_view(c, p, view);
}

/* For a pod that lists omit. An end that the provider reports is one, as in a list: lists may
 * forget pods that have ended. While the pod may be too new, its provider's denial proves nothing.
 * Once an inspection has shown the pod, inspections decide. */
void seen_on_inspection(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];
	const struct pod_view *view = ev->err ? NULL : &ev->views[0];

	c->dirty = true;
	if (!view || ev->requested_at < p->rental.rented_at || pod_lacks_id(p) || !pod_may_bill(p))
		return;
	if (pod_end_is_reported(view)) {
		on_pod_listed(c, ev->provider, view, ev->requested_at);
		return;
	}
	if (view->state == POD_STATE_GONE) {
		if (p->phase == POD_CONFIRMING && pod_is_omitted(p) &&
		    ev->requested_at >= p->rental.released_at)
			pod_set_gone(c, p);
		else if (!pod_is_retired(p) && pod_is_omitted(p) && p->presence.link != LINK_UP)
			pod_on_vanished(c, p, "its provider no longer knows this pod");
		return;
	}
	if (!pod_is_omitted(p) && !pod_is_retired(p)) {
		core_note(c, NOTE_INFO,
			  "pod %s: %s omits it from its lists, but shows it when asked for it "
			  "by id",
			  p->rental.id, pod_provider(c, p)->name);
		p->rental.listing =
			p->rental.listing == LISTING_SHOWS ? LISTING_STOPPED : LISTING_OMITS;
	}
	p->rental.seen_at = MAX(p->rental.seen_at, ev->requested_at);
	correct_age(c, p, view, ev->requested_at);
	queue_note_start(c, p, view, ev->requested_at);
	if (p->phase == POD_CONFIRMING)
		proof_after_release(c, p, view->state, ev->requested_at);
	else
		pod_on_view(c, p, view);
}

static bool is_in_list(const struct core_pod *p, const struct pod_view *views, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (p->rental.id[0] ? !strcmp(views[i].id, p->rental.id)
				    : !strcmp(views[i].marker.attempt, p->rental.attempt))
			return true;
	return false;
}

/* Takes in a list of this provider. partial: absence from it proves nothing. */
static void on_views_listed(struct core *c, int provider, const struct pod_view *views,
			    size_t count, int64_t requested_at, bool partial)
{
	for (size_t i = 0; i < count; i++)
		on_pod_listed(c, provider, &views[i], requested_at);
	if (c->aged)
		budget_fit_pods(c);
	c->aged = false;
	for (int i = 0; i < c->pod_count && !partial; i++) {
		struct core_pod *p = &c->pods[i];
		if (p->rental.provider != provider || is_in_list(p, views, count))
			continue;
		if (p->phase == POD_AMBIGUOUS)
			proof_while_ambiguous(c, p, requested_at);
		else if (p->phase == POD_CONFIRMING)
			proof_after_release(c, p, POD_STATE_GONE, requested_at);
		else if (p->phase == POD_RELEASING)
			proof_while_refused(c, p, requested_at);
		else if (pod_lives(p))
			on_missing_from_list(c, p, requested_at);
	}
}

/* ---- listing: when to request listings of providers: one for all pods of an account ---- */

/* How long after its provider's last list this pod needs the next one; NEVER: not at all. */
static int64_t list_interval_ms(const struct core *c, const struct vendor *v,
				const struct core_pod *p)
{
	const struct core_provider *k = pod_provider(c, p);
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
			return MIN(MAX(proof_due_at(c, p) - v->listed_at, 0),
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

/* When to list for the second pod of a lost create. It may surface when no other pod needs a list,
 * and while nothing can be rented. */
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
			int64_t interval = list_interval_ms(c, v, &c->pods[k]);
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

/* Warns of a list that failed again. Without its list no pod comes up and none can be proven gone.
 * A list that burst cannot parse will not improve: after some failures it stops the run. */
static void note_failed_list(struct core *c, int provider, const struct err *err)
{
	int failures = c->vendors[provider].list_failures;

	if (failures == (err->kind == ERR_BUG || err->kind == ERR_CREDENTIALS ? 0 : 2))
		core_note(c, NOTE_WARN, "%s: %s", c->conf.providers[provider].name, err->msg);
	if (err->kind == ERR_BUG && failures + 1 >= LIST_FAILURES_MAX)
		core_fault(c, -1, err);
}

static bool has_ambiguous_pod(const struct core *c, int provider)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].rental.provider == provider && c->pods[i].phase == POD_AMBIGUOUS)
			return true;
	return false;
}

/* A refused list proves no pod absent, so nothing waits for it. Pods with known ids can be
 * inspected. The pod of a lost create has no known id, so nothing is rented there for a while. */
static void on_list_refused(struct core *c, int provider)
{
	struct vendor *v = &c->vendors[provider];

	v->list_failures = LIST_FAILURES_MAX;
	if (has_ambiguous_pod(c, provider))
		v->rent_not_before = MAX(v->rent_not_before, c->now + FINAL_LIST_MS);
}

/* A list of this provider sent at or after this moment counts as the final one. */
static int64_t final_list_since(const struct core *c, const struct vendor *v)
{
	return c->signals > 1 ? v->created_at + 1 : MAX(v->created_at + 1, v->surfaced_at);
}

int64_t listing_timeout_at(const struct core *c, const struct vendor *v)
{
	bool waits = v->listing || v->list_not_before > c->now;
	int64_t limit_ms =
		c->signals < 2 && listing_may_hide_pod(v) ? HIDDEN_POD_LIST_MS : FINAL_LIST_MS;

	return waits && v->used ? MAX(v->listing_since, final_list_since(c, v)) + limit_ms : NEVER;
}

bool listing_all_final(struct core *c)
{
	bool all = true;

	/* The final listing before the exit: burst must know every pod of its own that exists. */
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		int64_t from = final_list_since(c, v);
		if (!v->used || v->listed_at >= from)
			continue;
		if (v->list_failures >= LIST_FAILURES_MAX || c->now >= listing_timeout_at(c, v))
			continue;
		all = false;
		v->list_at = MIN(v->list_at, MAX(c->now, from));
	}
	return all;
}

void listing_on_reply(struct core *c, const struct event *ev)
{
	struct vendor *v = &c->vendors[ev->provider];

	v->listing = false;
	c->dirty = true;
	if (ev->err) {
		note_failed_list(c, ev->provider, ev->err);
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
		on_list_refused(c, ev->provider);
	else
		v->listed_at = ev->requested_at;
	v->ahead_ms = ev->ahead_ms;
	v->clock_known = ev->clock_known;
	on_views_listed(c, ev->provider, ev->views, ev->count, ev->requested_at, ev->partial);
}
