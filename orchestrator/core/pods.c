/* pods.c - handles the events of pods, and decides what follows. */
#include "base/clock.h"
#include "impl.h"

/* ---- boot: how long a pod may take to boot, and what its provider's log shows meanwhile ---- */

/* What a pod that timed out had reached. */
static const char *why_not_up(const struct core_pod *p)
{
	if (p->phase == POD_CONNECTING)
		return "sshd never answered";
	return p->presence.running_at ? "it ran and never had an address"
				      : "its container never ran";
}

/* Dismisses the pod, blames its host, and gives the next pod more time. */
static void on_boot_timed_out(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);
	char took[24], last[100];

	c->patience_ms = MAX(c->patience_ms, 2 * p->presence.boot_limit_ms);
	/* No reply has shown this pod yet (after a crash, lists may fail): do not blame a host that
	 * it may not have. */
	if (p->rental.view.state != POD_STATE_UNKNOWN || p->phase == POD_CONNECTING)
		offers_rest_bad_host(c, pod, why_not_up(p));
	duration_show(took, sizeof(took), c->now - pod_boots_from(p, c->now));
	COPY_TEXT(last, p->reason);
	pod_dismiss(c, pod, ERR_TRANSIENT, "it did not boot within %s%s%s", took,
		    last[0] ? ": " : "", last);
}

static bool is_booting(const struct core_pod *p)
{
	return (p->phase == POD_BOOTING || p->phase == POD_CONNECTING) &&
	       !p->presence.connected_at && !pod_is_leaving(p);
}

/* Reads the provider's log now, and again at half the boot limit if that is far enough. */
static void request_boot_log(struct core *c, struct core_pod *p)
{
	p->presence.log_reads++;
	/* The read at the deadline then shows what is new since this one. */
	int64_t half = pod_boots_from(p, c->now) + p->presence.boot_limit_ms / 2;
	p->presence.log_at = half > c->now + LOG_WAIT_MS ? half : 0;
	core_act(c, ACT_LOG, pod_index(c, p));
	c->dirty = true;
}

/* Whether the boot may go on until the log is read: a pod that still pulls its image is not stuck.
 * */
static bool ask_boot_log_at_deadline(struct core *c, struct core_pod *p)
{
	if (p->presence.log != LOG_READ || !is_booting(p) || c->now >= pod_boot_end(c, p))
		return false;
	p->presence.log = LOG_DECIDES;
	p->overdue_at = c->now + LOG_WAIT_MS;
	request_boot_log(c, p);
	return true;
}

/* EV_LOG. At the deadline, a log with news gives the pod more time; else it has timed out. */
static void on_boot_log(struct core *c, struct core_pod *p, const struct event *ev)
{
	char left[24];

	p->presence.log_reads--;
	bool moved = p->presence.log != LOG_UNREAD && !ev->err && ev->number > 0;
	if (p->presence.log == LOG_UNREAD && !ev->err)
		p->presence.log = LOG_READ;
	if (p->presence.log != LOG_DECIDES || p->presence.log_reads > 0)
		return;
	p->presence.log = LOG_READ;
	if (!is_booting(p))
		return;
	if (!moved) {
		on_boot_timed_out(c, p);
		return;
	}
	p->overdue_at = MIN(c->now + p->presence.boot_limit_ms, pod_boot_end(c, p));
	core_note(c, NOTE_NOTE,
		  "pod %s: still booting, but its provider's log shows progress: it gets "
		  "another %s",
		  p->rental.id, duration_show(left, sizeof(left), p->overdue_at - c->now));
}

/* ---- pod ----
 * Handles the events of a pod that boots and works. pods_decide() decides what follows. */

/* Prepares the pod, and what its volume shares if no other pod does; else it waits. */
static void pod_prepare(struct core *c, struct core_pod *p)
{
	struct vendor *v = pod_vendor(c, p);
	int pod = pod_index(c, p);
	bool shared = p->rental.volume.id[0] && !pod_provider(c, p)->volume_lags;

	p->presence.prepares_shared =
		!shared || (!v->shared_ready && (v->owner < 0 || v->owner == pod));
	if (shared && !v->shared_ready && !p->presence.prepares_shared) {
		pod_enter(c, p, POD_AWAITING_VOLUME);
		return;
	}
	if (shared && p->presence.prepares_shared)
		v->owner = pod;
	pod_enter(c, p, POD_PREPARING);
	p->overdue_at = c->now + PREPARE_LIMIT_MS;
	core_act(c, ACT_PREPARE, pod)->flag = p->presence.prepares_shared;
}

/* The pod works with its volume, so the shared part is there. */
static void note_volume_ready(struct core *c, const struct core_pod *p)
{
	if (p->rental.volume.id[0])
		pod_vendor(c, p)->shared_ready = true;
}

/* Milliseconds from create to ready that a further pod will need: as this pod did, less the
 * preparation of the volume if later pods find its result there. */
static int64_t cold_start_ms(const struct core *c, const struct core_pod *p)
{
	bool prepared = p->rental.volume.id[0] && p->presence.synced_at &&
			(p->presence.prepares_shared || p->presence.past != PAST_NONE);
	bool for_others = prepared && !pod_provider(c, p)->volume_lags;

	return MAX(p->presence.ready_at - pod_boots_from(p, p->presence.ready_at) -
			   (for_others ? p->presence.synced_at - p->presence.connected_at : 0),
		   0);
}

/* The agent answers and its workers run. The connection may have lost the newest orders, so they
 * are sent again. */
static void resume_work(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);

	/* from the ledger; or the connection was lost while its workers started */
	bool start_known =
		(p->presence.ready_at || p->presence.past == PAST_NONE) && !p->rental.reused;
	p->workload.workers_ready = MAX(p->workload.workers_ready, 1);
	if (!p->presence.ready_at)
		p->presence.ready_at = c->now;
	if (!c->cold_ms && start_known)
		c->cold_ms = cold_start_ms(c, p);
	note_volume_ready(c, p);
	pod_enter(c, p, POD_WORKING);
	if (p->presence.past != PAST_NONE) { /* its queue is from an earlier client: deal anew */
		p->presence.past = PAST_NONE;
		lease_take_back(c, p);
		core_act(c, ACT_REVOKE, pod);
	}
	if (pod_is_draining(p))
		core_act(c, ACT_REVOKE, pod);
	else
		dispatch_resend(c, pod);
	if (p->presence.lease != LEASE_CLIENT)
		lease_order_agent(c, pod);
	pod_mark_due(c, pod);
}

void switch_check_provider(struct core *c, int provider)
{
	struct vendor *v = &c->vendors[provider];
	const struct core_provider *k = &c->conf.providers[provider];

	if (c->conf.unproven_ok || c->conf.reap || v->dead ||
	    (!k->no_switch[0] && v->no_switch < NO_SWITCH_MOST))
		return;
	if (v->no_switch)
		vendor_give_up(c, provider, ERR_REFUSED,
			       "%d pods in a row cannot end themselves if this client dies: "
			       "pod.allow_unproven_switch = true gives such pods work",
			       v->no_switch);
	else
		vendor_give_up(c, provider, ERR_REFUSED,
			       "pods of this account could not end themselves within the last day "
			       "(%s), so none is rented: "
			       "pod.allow_unproven_switch = true gives such pods work",
			       k->no_switch);
}

/* The pod cannot end itself: without the config's consent it gets no work and is dismissed. */
static void on_switch_bad(struct core *c, struct core_pod *p)
{
	if (c->conf.unproven_ok || pod_is_leaving(p))
		return;
	pod_vendor(c, p)->no_switch++;
	pod_dismiss(c, pod_index(c, p), ERR_REFUSED,
		    "it cannot end itself if this client dies, so it gets no work "
		    "(pod.allow_unproven_switch = true gives it work)");
	switch_check_provider(c, p->rental.provider);
}

/* Whether a pod that has connected can get no work: dismisses it; a missing GPU stops the run. */
static bool dismiss_if_unusable(struct core *c, struct core_pod *p, const struct event *ev)
{
	struct err err;

	if (!ev->switch_ok && !c->conf.unproven_ok) {
		on_switch_bad(c, p);
		return true;
	}
	if (c->conf.needs_gpu && !ev->gpus) {
		err_set(&err, ERR_JOB, "pod %s has no working GPU, and this engine needs one",
			p->rental.id);
		offers_rest_bad_host(c, pod_index(c, p), "it showed no GPU");
		pod_dismiss(c, pod_index(c, p), ERR_JOB, "it shows no GPU");
		core_fault(c, pod_index(c, p), &err);
		return true;
	}
	return false;
}

/* EV_CONNECTED: the agent answers. Its files are fetched, and unless the pod leaves, its work is
 * resumed or it is prepared. */
static void on_connected(struct core *c, struct core_pod *p, const struct event *ev)
{
	int pod = pod_index(c, p);

	if (p->phase != POD_CONNECTING)
		return;
	if (pod_is_unstarted(p)) /* its provider did not report that */
		budget_start_pod(c, p, p->rental.queued_at);
	p->presence.link = LINK_UP;
	if (p->presence.past == PAST_UNREAD)
		p->presence.past = PAST_READ;
	p->presence.renew_at = c->now;
	if (!p->presence.connected_at) {
		p->presence.reached_at = ev->t ? ev->t : c->now;
		p->presence.connected_at = c->now;
		c->patience_ms = 0;
		pod_vendor(c, p)->unmade = 0;
		pod_vendor(c, p)->unlike = 0;
		if (!p->presence.running_at)
			p->presence.running_at = p->rental.rented_at;
		pod_save(c, p);
	}
	fetch_request_outputs(c, pod);
	if (pod_is_leaving(p)) { /* it stays only until its files are fetched */
		fetch_request_pending(c, pod);
		pod_mark_due(c, pod);
		return;
	}
	if (dismiss_if_unusable(c, p, ev))
		return;
	pod_vendor(c, p)->no_switch = 0;
	fetch_request_pending(c, pod);
	if (p->presence.past != PAST_NONE && !pod_check_caps(c, p)) /* the caps may be lower now */
		return;
	/* Workers of another run are reused only if this run would start them in the same way. */
	if (ev->workers_alive && !(p->rental.reused && !p->presence.ready_at)) {
		resume_work(c, p);
		return;
	}
	p->presence.past = PAST_NONE;
	if (p->workload.workers_ready || p->workload.inherited) {
		/* The agent restarted: the work it held is lost, what it finished is still on the
		 * volume. */
		p->workload.workers_ready = 0;
		dispatch_on_pod_lost(c, pod);
	}
	p->workload.begun = 0;
	pod_prepare(c, p);
}

/* Counts a pod that shows another host key, or refuses ours. One host may be bad. If a second pod
 * in a row does so, something stands between, and further pods would only bill. */
static void count_untrusted(struct core *c, struct core_pod *p, const struct err *err)
{
	struct vendor *v = pod_vendor(c, p);

	err_set(&c->capacity, err->kind, "pod %s: %s", core_pod_called(p), err->msg);
	if (!c->capacity_since)
		c->capacity_since = c->now;
	if (++v->unlike >= UNLIKE_MAX)
		vendor_give_up(c, p->rental.provider, err->kind,
			       "%d pods in a row could not be trusted: %s", v->unlike,
			       c->capacity.msg);
}

/* EV_CONNECT_FAILED: tries again after a while, or dismisses a pod that cannot be trusted. */
static void on_connect_failed(struct core *c, struct core_pod *p, const struct err *err)
{
	if (p->phase != POD_CONNECTING)
		return;
	if (err->kind == ERR_UNTRUSTED || err->kind == ERR_REFUSED) {
		count_untrusted(c, p, err);
		offers_rest_bad_host(c, pod_index(c, p), err->msg);
		pod_dismiss(c, pod_index(c, p), err->kind, "%s", err->msg);
		return;
	}
	int64_t most = p->presence.tries < CONNECT_RETRIES_SOON ? CONNECT_RETRY_SOON_MS
								: CONNECT_RETRY_MAX_MS;
	int64_t wait = (int64_t)CONNECT_RETRY_MIN_MS << MIN(p->presence.tries++, 6);
	p->wake_at = c->now + MIN(wait, most);
	COPY_TEXT(p->reason, err->msg);
	c->dirty = true;
}

/* EV_LOST: connects again, or dismisses a pod that failed verification. */
static void on_connection_lost(struct core *c, struct core_pod *p, const struct err *err)
{
	if (p->presence.link != LINK_UP)
		return;
	p->presence.link = LINK_NONE;
	pod_void_sync(p);
	if (pod_is_retired(p))
		return;
	if (err &&
	    err->kind == ERR_UNTRUSTED) { /* reconnecting cannot help: it failed verification */
		offers_rest_bad_host(c, pod_index(c, p), err->msg);
		pod_dismiss(c, pod_index(c, p), ERR_UNTRUSTED, "%s", err->msg);
		return;
	}
	core_note(c, NOTE_INFO, "pod %s: connection lost (%s); reconnecting", p->rental.id,
		  err ? err->msg : "closed");
	p->presence.link = LINK_LOST;
	p->presence.lost_at = c->now;
	fetch_forget_transfers(c, pod_index(c, p));
	/* A pod that renews its own lease may work on unseen; if it does not, its lease ends it. */
	p->overdue_at = p->presence.lease != LEASE_CLIENT ? NEVER : c->now + UNREACHABLE_LIMIT_MS;
	listing_make_due(c, p->rental.provider);
	pod_connect(c, p);
}

static void note_good_host(struct core *c, struct core_pod *p)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->past.bad_until_ms = 0;
	core_act(c, ACT_GOOD_HOST, pod_index(c, p));
}

/* EV_WORKERS: takes what the engine reports. With the first worker the pod begins to work. */
static void on_workers(struct core *c, struct core_pod *p, const struct event *ev)
{
	if (!pod_has_address(p))
		return;
	p->workload.workers_ready = ev->number;
	if (ev->max_batch > 0) {
		p->workload.max_batch = ev->max_batch;
		p->workload.batching = ev->batching;
		p->workload.speed = ev->speed;
	}
	if (!ev->number || p->phase == POD_CONNECTING)
		return; /* read from its log before EV_CONNECTED */
	note_volume_ready(c, p);
	if (!p->presence.ready_at) {
		p->presence.ready_at = c->now;
		if (!p->rental.reused)
			c->cold_ms = cold_start_ms(c, p);
		else if (!c->cold_ms)
			c->cold_ms = p->rental.cold_ms;
		pod_save(c, p);
		note_good_host(c, p);
	}
	if (p->phase != POD_WORKING)
		pod_enter(c, p, POD_WORKING);
	pod_mark_due(c, pod_index(c, p));
}

/* If the card cannot run what is in the image, bars its offers and dismisses the pod: pods with the
 * same card would fail in the same way, other cards may not. Whether that settles the event; false:
 * the card is not the cause, the run is stopping, or no offer is left. */
static bool bar_unfit_card(struct core *c, struct core_pod *p, const struct event *ev)
{
	bool anywhere = ev->number == CARD_UNFIT_ANYWHERE;

	if (ev->number == CARD_FITS)
		return p->defect == DEFECT_CARD &&
		       pod_is_leaving(p); /* its agent repeats the reason at its end */
	p->defect = DEFECT_CARD;
	offers_bar_card(c, p, anywhere, ev->err->msg);
	if (core_is_stopping(c) || !offers_has_any_left(c))
		return false;
	pod_dismiss(c, pod_index(c, p), ev->err->kind, "%s", ev->err->msg);
	return true;
}

/* EV_WORKERS_FAILED: dismisses the pod. Stops the run if nothing was ever rendered, since another
 * pod would fail in the same way. */
static void on_workers_failed(struct core *c, struct core_pod *p, const struct event *ev)
{
	const struct err *err = ev->err;

	if (bar_unfit_card(c, p, ev))
		return;
	bool first = !c->rendered_something;

	pod_dismiss(c, pod_index(c, p), err->kind, "%s", err->msg);
	if (first)
		core_fault(c, pod_index(c, p), err);
}

/* EV_PREPARE_FAILED: dismisses the pod. Stops the run if the job or this machine is at fault. */
static void on_prepare_failed(struct core *c, struct core_pod *p, const struct err *err)
{
	/* A pod that seemed to work can fail, too, by what an earlier agent logged. */
	if (p->phase != POD_PREPARING && p->phase != POD_LOADING && p->phase != POD_WORKING)
		return;
	if (err->kind == ERR_JOB || err->kind == ERR_CONFIG || err->kind == ERR_LOCAL) {
		pod_dismiss(c, pod_index(c, p), err->kind, "%s", err->msg);
		core_fault(c, pod_index(c, p), err);
		return;
	}
	pod_dismiss(c, pod_index(c, p), err->kind == ERR_NONE ? ERR_TRANSIENT : err->kind, "%s",
		    err->msg);
}

void pod_begin_adopted(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	char sooner[24];

	if (p->presence.durable && !c->conf.reap && pod_files_outlive(p)) {
		fetch_reset_delay(c, pod);
		durable_salvage(c, p);
	}
	if (p->phase == POD_GONE)
		return;
	if (p->rental.cut_ms && !pod_is_leaving(p))
		core_note(c, NOTE_NOTE,
			  "pod %s: the caps leave it less time than it was rented for: its hard "
			  "end is %s earlier",
			  core_pod_called(p),
			  duration_show(sooner, sizeof(sooner), p->rental.cut_ms));
	p->overdue_at = p->presence.lease != LEASE_CLIENT ? NEVER : c->now + c->conf.boot_limit_ms;
	if (p->phase == POD_AMBIGUOUS) {
		/* The create call may have been under way until now, and may have made two pods. */
		p->rental.rented_at = c->now;
		pod_awaits_twin(c, p);
		core_note(c, NOTE_NOTE,
			  "%s: the create of an earlier client was never answered; looking for "
			  "its pod for at least %d s",
			  pod_provider(c, p)->name, (int)(pod_ambiguous_ms(c, p) / 1000));
		return;
	}
	if (pod_is_leaving(p))
		pod_set_leave(c, p, LEAVE_NOW);
}

/* EV_ADOPTED: another run handed the pod over. The caps may leave it less time than it was rented
 * for. If this run stopped meanwhile, the pod is released like the others. */
static void on_adopted(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	c->waits = false;
	c->vendors[p->rental.provider].used = true;
	listing_make_due(c, p->rental.provider);
	if (pod_is_retired(p))
		return;
	budget_fit_handed_over(c, p);
	pod_begin_adopted(c, pod);
}

void pod_event(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];

	c->dirty = true;
	switch (ev->type) {
	case EV_RENTED:
		if (p->phase == POD_RENTING)
			seen_on_rented(c, p, &ev->views[0]);
		break;
	case EV_RENT_FAILED:
		/* false: the reply was lost, but a list has shown the pod meanwhile */
		if (p->phase == POD_RENTING && !pod_on_rent_failed(c, p, ev->err)) {
			struct pod_view seen = p->rental.view;
			seen_on_rented(c, p, &seen);
		}
		break;
	case EV_CONNECTED: on_connected(c, p, ev); break;
	case EV_CONNECT_FAILED: on_connect_failed(c, p, ev->err); break;
	case EV_LOST: on_connection_lost(c, p, ev->err); break;
	case EV_SWITCH_BAD: on_switch_bad(c, p); break;
	case EV_SHARED_READY:
		if (p->phase != POD_PREPARING)
			break;
		p->presence.synced_at = c->now;
		pod_enter(c, p, POD_LOADING);
		note_volume_ready(c, p);
		break;
	case EV_PREPARE_FAILED: on_prepare_failed(c, p, ev->err); break;
	case EV_WORKERS: on_workers(c, p, ev); break;
	case EV_WORKERS_FAILED: on_workers_failed(c, p, ev); break;
	case EV_UNPULLED: pod_on_unpulled(c, p, ev->err); break;
	case EV_LOG: on_boot_log(c, p, ev); break;
	case EV_SALVAGED: durable_on_salvaged(c, p, ev->err); break;
	case EV_HANDOVER_DONE: lease_on_confirmed(p, (uint32_t)ev->number); break;
	case EV_SYNCED: durable_on_synced(c, p, ev); break;
	case EV_RELEASED: pod_on_released(c, p, (enum release_word)ev->number, ev->err); break;
	case EV_NOT_WANTED: warm_on_not_wanted(c, p); break;
	case EV_TAKEN: warm_on_taken(c, p, ev->t); break;
	case EV_ADOPTED: on_adopted(c, ev->pod); break;
	default: break;
	}
}

/* ---- pods ----
 * Decides what follows from the facts about the pods. pods_decide() alone gives them work, has it
 * made durable, offers pods to other runs, and releases them. */

/* ---- decisions ---- */

/* Whether a leaving pod has used up its time for fetching or inspection. */
static bool is_stay_over(const struct core *c, const struct core_pod *p)
{
	return pod_is_leaving(p) && ((p->fetch_until && c->now >= p->fetch_until) ||
				     (p->inspect_until && c->now >= p->inspect_until));
}

/* For a leaving pod: fetches its files first, keeps it for inspection, or releases it. */
static void decide_leaving(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	bool fetch_first = p->presence.link == LINK_UP && !pod_files_on_volume(p) && pod_owes(p) &&
			   c->signals < 2 && p->fault != ERR_UNTRUSTED;

	if (pod_lacks_id(p))
		return; /* as soon as it is known to exist */
	if (p->leave == LEAVE_DECIDE && fetch_first) {
		leave_fetch_first(c, p);
		return;
	}
	bool stays = pod_owes(p) || p->inspect_until; /* even while it cannot be reached */
	if (p->leave == LEAVE_EMPTY && stays && !is_stay_over(c, p))
		return;
	if (pod_leaves_now(p) || !leave_for_inspection(c, pod))
		leave_release(c, p);
}

/* A pod that waits for the volume continues when the volume is ready, or prepares it if its
 * preparer is gone. */
static void decide_awaiting_volume(struct core *c, struct core_pod *p)
{
	const struct vendor *v = pod_vendor(c, p);

	if (p->presence.link == LINK_UP && (v->shared_ready || v->owner < 0))
		pod_prepare(c, p);
}

/* For a pod that comes up or connects again: dismisses it if no work is left for it. */
static void decide_coming_up(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	bool idle = !p->workload.batches && !pod_owes(p);

	if (idle)
		c->dirty = true; /* unreachable, and perhaps no longer needed */
	if (p->phase != POD_WORKING && idle && !c->todo && !core_is_stopping(c)) {
		pod_dismiss(c, pod, ERR_NONE, "no work is left for it");
		decide_leaving(c, pod);
	} else if (p->phase == POD_AWAITING_VOLUME) {
		decide_awaiting_volume(c, p);
	}
}

/* Gives a working pod work. If none is left, makes its files durable, offers or dismisses it. */
static void decide_working(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	dispatch_fill_pod(c, pod);
	/* A pod on offer gets no work again, even if another pod's work is lost meanwhile. */
	if (p->workload.batches || (!pod_gets_no_more_work(c, p) && !p->offered_until))
		return;
	if (pod_owes(p)) {
		durable_request(c, p);
	} else if (!warm_offer_or_keep(c, pod)) {
		pod_dismiss(c, pod, ERR_NONE, "done");
		decide_leaving(c, pod);
	}
}

/* A worker may spoil the file of one segment. If files of several segments in a row are bad, the
 * pod is at fault and is dismissed. */
static void judge_bad_files(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	char last[160];

	if (p->workload.bad_files < BAD_FILES_MAX || (pod_is_leaving(p) && !pod_owes(p)))
		return;
	p->workload.bad_files = 0;
	COPY_TEXT(last, p->reason);
	offers_rest_bad_host(c, pod, "its files do not match what it announced");
	pod_dismiss(c, pod, ERR_UNTRUSTED, "its files do not match what it announces: %s", last);
}

/* Decides what follows for one pod, by its phase. */
static void decide_pod(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->phase == POD_RELEASING && c->now >= p->wake_at) {
		p->wake_at = NEVER;
		core_act(c, ACT_RELEASE, pod);
		c->dirty = true;
	}
	if (pod_is_retired(p))
		return;
	judge_bad_files(c, pod);
	if (pod_is_leaving(p))
		decide_leaving(c, pod);
	else if (p->phase == POD_WORKING && p->presence.link == LINK_UP)
		decide_working(c, pod);
	else
		decide_coming_up(c, pod);
}

void pods_decide(struct core *c)
{
	for (size_t i = 0; i < c->due_count; i++) {
		c->pods[c->due[i]].due = false;
		decide_pod(c, c->due[i]);
	}
	c->due_count = 0;
}

void pods_decide_all(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (!pod_is_retired(&c->pods[i]))
			pod_mark_due(c, i);
	pods_decide(c);
}

void pods_leave_settled(struct core *c)
{
	if (!segments_settled(c)) {
		c->settled_at = 0;
		return;
	}
	if (!c->settled_at)
		c->settled_at = c->now;
	if (c->now < c->settled_at + SETTLED_MS)
		return;
	for (int i = 0; i < c->pod_count; i++)
		if (pod_is_active(&c->pods[i]) && c->pods[i].workload.batches > 0)
			pod_dismiss(c, i, ERR_NONE, "done, though its agent does not confirm it");
}

/* ---- time ---- */

/* Drains the pod shortly before its hard end, and releases it in time for that end. */
static void watch_hard_end(struct core *c, struct core_pod *p)
{
	int64_t margin = budget_pod_margin(p);
	int pod = pod_index(c, p);

	if (!pod_lives(p) || p->leave == LEAVE_DECIDE)
		return;
	if (c->now >= p->rental.hard_end_ms - margin) {
		c->capped = c->capped || !segments_settled(c);
		snprintf(p->reason, sizeof(p->reason),
			 "its hard end has passed (cap on cost or duration)");
		pod_set_leave(c, p, LEAVE_NOW);
	} else if (c->now >= p->rental.hard_end_ms - 2 * margin && p->leave == LEAVE_NOT) {
		p->leave = LEAVE_DRAINING;
		/* a command that has to stop here cannot go on elsewhere within the cap */
		c->capped = c->capped || (c->conf.command && p->workload.batches > 0);
		if (p->presence.link == LINK_UP)
			core_take_back_batches(c, p, MIN(margin / 4, (int64_t)HALT_GRACE_MS));
		pod_mark_due(c, pod);
	}
}

/* Returns true in the phases for which overdue_at is a deadline. */
static bool may_be_overdue(const struct core_pod *p)
{
	return p->phase == POD_BOOTING || p->phase == POD_CONNECTING || p->phase == POD_PREPARING ||
	       p->phase == POD_LOADING;
}

static void watch_overdue(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);

	if (!may_be_overdue(p) || c->now < p->overdue_at)
		return;
	if (p->rental.place != PLACE_GIVEN && p->phase == POD_BOOTING) {
		queue_on_deadline(c, p);
		return;
	}
	if (p->phase == POD_PREPARING || p->phase == POD_LOADING) {
		pod_dismiss(c, pod, ERR_TRANSIENT, "its workers were not ready in time");
		return;
	}
	if (p->presence.link == LINK_LOST) {
		pod_dismiss(c, pod, ERR_NETWORK, "it could not be reached again");
		return;
	}
	if (!ask_boot_log_at_deadline(c, p))
		on_boot_timed_out(c, p);
}

void pod_tick(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->phase == POD_RENTING && c->now >= p->wake_at)
		pod_resend(c, p);
	if (p->presence.refetch_at && c->now >= p->presence.refetch_at) {
		p->presence.refetch_at = 0;
		if (p->presence.files == FILES_SALVAGING)
			core_act(c, ACT_SALVAGE, pod);
		else if (p->presence.link == LINK_UP || pod_files_on_volume(p))
			fetch_request_pending(c, pod);
		c->dirty = true;
	}
	if (p->presence.sync_at && c->now >= p->presence.sync_at) {
		p->presence.sync_at = 0;
		pod_mark_due(c, pod);
		c->dirty = true;
	}
	if (p->presence.log_at && c->now >= p->presence.log_at && is_booting(p))
		request_boot_log(c, p);
	watch_overdue(c, p);
	watch_hard_end(c, p);
	if (p->phase == POD_RELEASING
		    ? c->now >= p->wake_at
		    : is_stay_over(c, p) || (p->offered_until && c->now >= p->offered_until))
		pod_mark_due(c, pod);
}

void pod_keep_up(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->phase == POD_CONNECTING && c->now >= p->wake_at) {
		p->wake_at = NEVER;
		core_act(c, ACT_CONNECT, pod);
	}
	if (p->presence.link == LINK_UP && p->presence.lease == LEASE_CLIENT &&
	    !pod_is_retired(p) && c->now >= p->presence.renew_at) {
		core_act(c, ACT_RENEW, pod);
		p->presence.renew_at = c->now + c->conf.lease_ms / 3;
		c->dirty = true;
	}
}

int64_t pod_wake_at(const struct core *c, const struct core_pod *p)
{
	int64_t at = p->presence.refetch_at ? p->presence.refetch_at : NEVER;

	if (!pod_may_bill(p))
		return at;
	if (pod_is_retired(p))
		return MIN(at,
			   p->overdue_at > c->now ? MIN(p->wake_at, p->overdue_at) : p->wake_at);
	if (p->presence.sync_at)
		at = MIN(at, p->presence.sync_at);
	if (p->phase == POD_RENTING)
		at = MIN(at, p->wake_at);
	if (p->phase == POD_AMBIGUOUS && p->rental.rented_at + AMBIGUOUS_LIMIT_MS > c->now)
		at = MIN(at, p->rental.rented_at + AMBIGUOUS_LIMIT_MS);
	if (!pod_lacks_id(p)) {
		int64_t margin = budget_pod_margin(p);
		at = MIN(at, MIN(p->wake_at, p->rental.hard_end_ms -
						     (pod_is_draining(p) ? margin : 2 * margin)));
		if (may_be_overdue(p))
			at = MIN(at, p->overdue_at);
		if (p->presence.log_at && is_booting(p))
			at = MIN(at, p->presence.log_at);
		if (p->offered_until)
			at = MIN(at, MAX(p->offered_until, c->now));
		if (p->inspect_until)
			at = MIN(at, MAX(p->inspect_until, c->now));
		else if (pod_is_leaving(p) && p->fetch_until)
			at = MIN(at, p->fetch_until);
		if (p->presence.link == LINK_UP && p->presence.lease == LEASE_CLIENT)
			at = MIN(at, p->presence.renew_at);
		if (pod_is_log_awaited(c, p))
			at = MIN(at, p->presence.log_by);
	}
	return at;
}

/* A pod's silence while this machine slept is not held against it. */
void pods_on_slept(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		p->presence.renew_at = c->now;
		if (pod_files_on_volume(p))
			p->presence.rescue_until = c->now + RESCUE_LIMIT_MS;
		if (p->phase == POD_RELEASING)
			p->wake_at = MIN(p->wake_at, c->now);
		if (p->phase == POD_RELEASING || p->phase == POD_CONFIRMING)
			p->overdue_at = MAX(p->overdue_at, c->now + CONFIRM_LIMIT_MS);
		else if (p->phase == POD_BOOTING || p->phase == POD_CONNECTING)
			p->overdue_at = MAX(p->overdue_at, c->now + WOKEN_BOOT_MS);
		else if (p->phase == POD_AMBIGUOUS)
			p->rental.rented_at = MAX(p->rental.rented_at,
						  c->now - AMBIGUOUS_LIMIT_MS + FINAL_LIST_MS);
	}
}
