/* leave.c - ends a pod: its files, its release. */
#include <stdarg.h>

#include "base/clock.h"
#include "impl.h"

/* ---- durable ----
 * Fetches a pod's files by way of its volume: made durable there, they can be fetched after the
 * pod is released. */

/* Fetches the pod's finished files from its volume if that can be read without the pod; else they
 * are rendered again. */
static void durable_rescue(struct core *c, struct core_pod *p)
{
	if (!pod_owes(p))
		return;
	if (pod_files_outlive(p)) {
		p->presence.files = FILES_ON_VOLUME;
		fetch_forget_transfers(c, pod_index(c, p));
		fetch_request_pending(c, pod_index(c, p));
		fetch_request_outputs(c, pod_index(c, p));
	} else {
		fetch_give_up_segments(c, pod_index(c, p));
		fetch_give_up_outputs(c, pod_index(c, p));
	}
}

void durable_salvage(struct core *c, struct core_pod *p)
{
	fetch_forget_transfers(c, pod_index(c, p));
	p->presence.files = FILES_SALVAGING;
	core_act(c, ACT_SALVAGE, pod_index(c, p));
}

/* Like durable_salvage(), but reads the log at this time. */
static void durable_salvage_at(struct core *c, struct core_pod *p, int64_t at)
{
	fetch_forget_transfers(c, pod_index(c, p));
	p->presence.files = FILES_SALVAGING;
	p->presence.refetch_at = at;
	c->dirty = true;
}

/* A pod without work bills only until its files are durable: the rest is fetched from its volume
 * after the release. */
void durable_request(struct core *c, struct core_pod *p)
{
	if (!pod_files_outlive(p) || pod_provider(c, p)->pods_are_free ||
	    p->presence.files != FILES_ON_POD || c->now < p->presence.sync_at)
		return;
	p->presence.files = FILES_SYNCING;
	p->presence.sync_at = 0;
	core_act(c, ACT_SYNC, pod_index(c, p))->number = (int)++p->presence.sync_turn;
}

/* If nothing has come since the request, the volume has all files: dismisses the pod. */
void durable_on_synced(struct core *c, struct core_pod *p, const struct event *ev)
{
	int pod = pod_index(c, p);

	if (p->presence.files != FILES_SYNCING || (uint32_t)ev->number != p->presence.sync_turn)
		return;
	p->presence.files = FILES_ON_POD;
	if (!ev->ok) {
		p->presence.sync_at = c->now + SYNC_AGAIN_MS;
		return;
	}
	if (p->phase != POD_WORKING || pod_is_leaving(p) || p->workload.batches || !pod_owes(p) ||
	    !pod_gets_no_more_work(c, p))
		return;
	p->presence.durable = true;
	p->presence.files = FILES_ON_VOLUME;
	snprintf(p->reason, sizeof(p->reason), "done; its other files come from its volume");
	core_note(c, NOTE_INFO,
		  "pod %s: all segments done and on its volume; %d of its files are fetched "
		  "from there after it is released",
		  p->rental.id, MAX(p->workload.unfetched, p->workload.files));
	pod_set_leave(c, p, LEAVE_DECIDE);
	fetch_reset_delay(c, pod);
}

/* The log is read, or cannot be: what it does not show as finished is lost. */
void durable_on_salvaged(struct core *c, struct core_pod *p, const struct err *err)
{
	int pod = pod_index(c, p);

	if (p->presence.files != FILES_SALVAGING)
		return;
	if (err && p->presence.durable && c->now < p->presence.rescue_until && c->signals == 0) {
		/* A durable file is not rendered again because one read of the volume failed. */
		fetch_retry_later(c, pod);
		return;
	}
	p->presence.files = FILES_ON_VOLUME;
	dispatch_on_pod_lost(c, pod);
	if (err)
		fetch_give_up_segments(c, pod);
	else
		fetch_request_pending(c, pod);
	fetch_request_outputs(c, pod);
	c->dirty = true;
}

/* ---- leave ----
 * The end of a pod: why it is released, what becomes of its work, when it counts as released. */

/* A pod that ended by itself cannot report: reads its log on the volume for what it finished, or
 * gives its work up. */
static void recover_after_end(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);

	if (!c->conf.reap && pod_files_outlive(p) &&
	    (p->presence.connected_at || pod_was_listed(p))) {
		/* While its provider still shows it, its container may be in its last seconds, in
		 * which a command's finished files reach the volume. */
		if (c->conf.command && p->workload.batches > 0 && p->phase != POD_GONE)
			durable_salvage_at(c, p, c->now + LAST_SECONDS_MS);
		else
			durable_salvage(c, p);
	} else {
		dispatch_on_pod_lost(c, pod);
		fetch_give_up_segments(c, pod);
		fetch_give_up_outputs(c, pod);
	}
}

/* Whether this client has not read yet what the pod finished for an earlier one, and can. */
static bool has_unread_log(const struct core *c, const struct core_pod *p)
{
	return p->presence.past == PAST_UNREAD && p->presence.files != FILES_SALVAGING &&
	       pod_files_outlive(p) && (p->presence.connected_at || pod_was_listed(p)) &&
	       p->fault != ERR_UNTRUSTED && !core_is_stopping(c);
}

/* Keeps the pod's failure as the reason for a lack of capacity. Too many in a row stop the run. */
static void count_failure(struct core *c, const struct core_pod *p)
{
	struct err err;

	if (p->fault == ERR_NONE || c->conf.reap)
		return;
	/* If no other offer is left, the run ends with this reason. */
	err_set(&c->capacity, p->fault == ERR_CAP ? ERR_NO_CAPACITY : p->fault, "pod %s: %s",
		core_pod_called(p), p->reason);
	/* It never had a machine, so capacity is the only reason. */
	if (p->fault == ERR_NO_CAPACITY)
		return;
	if (++c->pod_failures < 3 * c->conf.pods + 3)
		return;
	err_set(&err, p->fault == ERR_CAP ? ERR_NO_CAPACITY : p->fault,
		"%d pods in a row were unusable; the last: %s", c->pod_failures, p->reason);
	core_fault(c, pod_index(c, p), &err);
}

bool core_reads_log_first(const struct core_pod *p, int64_t now_ms)
{
	bool in_doubt = p->fault != ERR_NONE && p->fault != ERR_CAP &&
			p->fault != ERR_NO_CAPACITY && !p->presence.connected_at;

	return in_doubt && p->rental.hard_end_ms - now_ms > CORE_LOG_READ_MS;
}

void leave_release_again(struct core *c, struct core_pod *p)
{
	pod_enter(c, p, POD_RELEASING);
	p->wake_at = c->now;
	pod_mark_due(c, pod_index(c, p));
}

/* For a pod that is still there: other pods get its work, its files are fetched without it. */
static void take_back_work(struct core *c, struct core_pod *p)
{
	dispatch_on_pod_lost(c, pod_index(c, p));
	if (has_unread_log(c, p))
		durable_salvage(c, p);
	else
		durable_rescue(c, p);
	pod_save(c, p);
}

void leave_release(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);
	struct vendor *v = pod_vendor(c, p);
	bool ended = p->leave == LEAVE_ENDED;

	p->workload.saves = 0;
	p->rental.release_at = c->now;
	p->rental.tries = p->rental.clean_lists = 0;
	core_act(c, ACT_RELEASE, pod);
	core_act(c, ACT_CLOSE, pod);
	p->presence.link = p->presence.link == LINK_UP && !ended ? LINK_CUT : LINK_NONE;
	pod_enter(c, p, POD_RELEASING);
	p->overdue_at = c->now + CONFIRM_LIMIT_MS;
	if (ended)
		recover_after_end(c, p);
	else
		take_back_work(c, p);
	if (v->owner == pod && !v->shared_ready)
		v->owner = -1;
}

/* Never past the pod's hard end, and only while this client holds its lease. */
bool leave_for_inspection(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	char when[32];

	if (!c->conf.keep_ms || !p->workload.failed_here || p->presence.link != LINK_UP ||
	    p->presence.lease != LEASE_CLIENT || c->signals || c->conf.reap)
		return false;
	if (!p->inspect_until) {
		p->inspect_until = MIN(c->now + c->conf.keep_ms,
				       p->rental.hard_end_ms - 2 * budget_pod_margin(p));
		p->overdue_at = NEVER; /* nothing more is expected of it */
		p->leave = LEAVE_EMPTY;
		if (p->workload.batches) {
			core_take_back_batches(c, p, HALT_GRACE_MS);
			dispatch_on_pod_lost(c, pod);
		}
		if (c->now < p->inspect_until)
			core_note(c, NOTE_WARN,
				  "pod %s: kept for inspection until %s, and bills: `burst ssh "
				  "%s`; `burst cancel %s` ends it now",
				  p->rental.id,
				  clock_rfc3339(when, sizeof(when),
						c->wall + p->inspect_until - c->now),
				  p->rental.id, c->conf.run);
	}
	return c->now < p->inspect_until;
}

/* A pod that never came to work has cost its user money for nothing: say how much. */
static void note_fault(struct core *c, struct core_pod *p)
{
	char cost[32] = "", took[24];

	if (!p->presence.ready_at && p->rental.rented_at && !pod_is_unstarted(p))
		money_show(cost, sizeof(cost), core_cost(p, c->now));
	core_note(c, NOTE_WARN, "pod %s: %s%s%s%s%s%s", core_pod_called(p), p->reason,
		  cost[0] ? " (never ready, " : "", cost, cost[0] ? " for " : "",
		  cost[0] ? duration_show(took, sizeof(took), c->now - p->rental.create_at) : "",
		  cost[0] ? ")" : "");
}

void pod_dismiss(struct core *c, int pod, enum err_kind fault, const char *fmt, ...)
{
	struct core_pod *p = &c->pods[pod];
	va_list ap;

	if (pod_is_retired(p) || p->leave == LEAVE_DECIDE || pod_leaves_now(p) ||
	    (p->inspect_until && leave_for_inspection(c, pod)))
		return;
	va_start(ap, fmt);
	vformat_text(p->reason, sizeof(p->reason), fmt, ap);
	va_end(ap);
	p->fault = fault;
	if (fault != ERR_NONE) {
		note_fault(c, p);
		count_failure(c, p);
	}
	p->workload.failed_here = p->workload.failed_here || fault == ERR_JOB;
	pod_set_leave(c, p, LEAVE_DECIDE);
	c->dirty = true;
	struct vendor *v = pod_vendor(c, p);
	if (v->owner == pod && fault == ERR_UNTRUSTED)
		v->shared_ready =
			false; /* its word is not trusted: the next pod checks the volume itself */
}

bool pod_check_caps(struct core *c, struct core_pod *p)
{
	const char *why = budget_why_refused(c, p);

	if (!why)
		return true;
	offers_rest_for(c, p, NEVER / 2);
	pod_dismiss(c, pod_index(c, p), ERR_CAP, "%s", why);
	return false;
}

void leave_fetch_first(struct core *c, struct core_pod *p)
{
	p->leave = LEAVE_EMPTY;
	p->fetch_until = c->now + FETCH_GRACE_MS;
	core_take_back_batches(c, p, HALT_GRACE_MS);
	dispatch_on_pod_lost(c, pod_index(c, p));
}

/* Corrects an end by the provider's clock (`at`, as boot clock): the pod was there when its
 * provider last showed it, and not before its create. Never 0, which would mean: not yet. */
static int64_t plausible_end(const struct core_pod *p, int64_t at)
{
	at = MAX(budget_extend_to_seen(p, at), p->rental.create_at);
	return at ? at : -1;
}

void pod_set_gone(struct core *c, struct core_pod *p)
{
	/* the provider's time has whole seconds */
	int64_t ended = p->rental.view.ended_at_s
				? plausible_end(p, core_boot_time_of(c, p->rental.provider,
								     p->rental.view.ended_at_s) +
							   999)
				: c->now;

	if (pod_outlives_release(p)) /* no list omitted it, but its provider denies its id */
		p->rental.released_at = c->now;
	if (!p->rental.released_at)
		p->rental.released_at = MIN(ended, c->now);
	p->rental.released_at = budget_billed_until(p, p->rental.released_at);
	p->rental.gone_at = c->now;
	p->workload.saves = 0;
	pod_close_gone(c, p);
	/* a pod that is gone outlives nothing */
	c->spent_microusd += core_cost(p, c->now) + core_may_have_cost(p);
}

bool core_correct_end(struct core *c, int pod, int64_t ran_ms)
{
	struct core_pod *p = &c->pods[pod];
	/* an earlier client's pod may have ended between the two clients */
	bool unseen = p->rental.exit == EXIT_UNSEEN || p->rental.create_at < c->began_at;
	int64_t began =
		p->rental.vendor_started_s
			? core_boot_time_of(c, p->rental.provider, p->rental.vendor_started_s) + 999
			: p->presence.running_at;

	if (p->phase != POD_GONE || !unseen || !began)
		return false;
	int64_t ended = plausible_end(p, began + ran_ms);
	if (ended >= p->rental.released_at)
		return false;
	c->spent_microusd -= core_cost(p, c->now);
	p->rental.released_at = ended;
	c->spent_microusd += core_cost(p, c->now);
	return true;
}

void core_set_vendor_cost(struct core *c, int pod, int64_t microusd)
{
	struct core_pod *p = &c->pods[pod];

	if (p->phase != POD_GONE)
		return;
	c->spent_microusd -= core_cost(p, c->now);
	p->rental.vendor_microusd = microusd;
	c->spent_microusd += core_cost(p, c->now);
}

/* The pod ended without a release: preempted, crashed, or its lease expired. Notes it as a failure,
 * unless its agent had its lease and may have finished. */
static void note_end(struct core *c, struct core_pod *p, const char *how)
{
	bool by_itself =
		p->rental.view.end == POD_END_UNKNOWN || p->rental.view.end == POD_END_SCRIPT;
	bool finished = p->presence.lease != LEASE_CLIENT && !p->rental.view.preempted && by_itself;

	COPY_TEXT(p->reason, how);
	p->rental.exit = EXIT_UNSEEN;
	if (!finished && !c->conf.reap) {
		p->fault = p->rental.place == PLACE_NEVER ? ERR_NO_CAPACITY : ERR_TRANSIENT;
		core_note(c, NOTE_WARN, "pod %s: %s; its unfinished segments go to other pods",
			  p->rental.id, how);
		count_failure(c, p);
	}
	struct vendor *v = pod_vendor(c, p);
	if (v->owner == pod_index(c, p) && !v->shared_ready)
		v->owner = -1;
}

/* Releasing an absent pod does no harm, and a pod that lists omit would bill. */
void pod_on_vanished(struct core *c, struct core_pod *p, const char *how)
{
	if (pod_is_retired(p))
		return;
	note_end(c, p, how);
	pod_set_leave(c, p, LEAVE_ENDED);
}

void pod_on_gone(struct core *c, struct core_pod *p, const char *how)
{
	if (pod_is_retired(p))
		return;
	note_end(c, p, how);
	pod_set_gone(c, p);
	recover_after_end(c, p);
}

/* Other offers pull the same image from the same registry, so two pods are proof enough. */
void pod_on_unpulled(struct core *c, struct core_pod *p, const struct err *why)
{
	struct vendor *v = pod_vendor(c, p);
	struct candidate *k = offers_of(c, p);

	v->diagnosed_by = 0;
	if (p->defect == DEFECT_IMAGE || p->presence.connected_at || c->conf.reap)
		return;
	p->defect = DEFECT_IMAGE;
	if (!pod_is_retired(p)) {
		pod_dismiss(c, pod_index(c, p), why->kind, "its image cannot be pulled: %s",
			    why->msg);
	} else { /* its log was read at its end */
		format_text(p->reason, sizeof(p->reason), "its image cannot be pulled: %s",
			    why->msg);
		core_note(c, NOTE_WARN, "pod %s: %s", core_pod_called(p), p->reason);
		err_set(&c->capacity, why->kind, "pod %s: %s", core_pod_called(p), p->reason);
		if (k)
			k->past.bad_until_ms = 0; /* its host is not to blame */
		core_act(c, ACT_GOOD_HOST, pod_index(c, p));
	}
	if (++v->unmade >= UNMADE_MOST)
		vendor_give_up(c, p->rental.provider, why->kind,
			       "%d pods in a row could not start: the image cannot be pulled: %s; "
			       "check pod.image",
			       v->unmade, why->msg);
}

/* One failure may be the host's fault. A second one means that the request is wrong, and it would
 * cost the same again elsewhere. */
void pod_on_unmade(struct core *c, struct core_pod *p, const char *how)
{
	struct vendor *v = pod_vendor(c, p);

	pod_on_gone(c, p, how);
	if (c->conf.reap)
		return;
	offers_rest_after_trouble(c, p, 0);
	if (++v->unmade >= UNMADE_MOST)
		vendor_give_up(c, p->rental.provider, ERR_CONFIG,
			       "%d pods in a row could not start, the last %s: %s; check pod.image",
			       v->unmade, p->rental.id, how);
}

/* An account's rate limit lets a few releases a minute through. While some are accepted, the pods
 * that wait for theirs do not time out. */
static void extend_release_limits(struct core *c, int provider)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].rental.provider == provider && c->pods[i].phase == POD_RELEASING &&
		    c->pods[i].rental.answer == ANSWER_NONE)
			c->pods[i].overdue_at = c->now + CONFIRM_LIMIT_MS;
}

/* If the provider refuses the release or cannot be reached, asks the agent to end the pod by its
 * switch, with the pod's own key. A single failure or a short rate limit is no reason, because a
 * pod that ends itself takes longer to prove gone. A limit that refuses time after time is one. */
static void ask_agent_to_end(struct core *c, struct core_pod *p, const struct err *err)
{
	bool passing = err->kind == ERR_TRANSIENT || err->kind == ERR_NETWORK ||
		       err->kind == ERR_AMBIGUOUS;
	bool soon = (err->kind == ERR_RATE_LIMITED && p->rental.tries < LIMITED_RELEASES_MAX) ||
		    (passing && p->rental.tries < 1);

	if (!p->rental.view.reach || (soon && err->retry_after_ms <= FINISH_AFTER_MS))
		return;
	core_act(c, ACT_FINISH, pod_index(c, p));
	if (!p->rental.finish_calls++)
		core_note(c, NOTE_NOTE, "pod %s: not released (%s); asking its agent to end it",
			  core_pod_called(p), err->msg);
}

/* The provider accepted the release, or denies the pod: lists decide from now on. */
static void on_release_accepted(struct core *c, struct core_pod *p, enum release_word word)
{
	if (!p->rental.released_at || word == RELEASE_ENDED)
		p->rental.released_at = c->now;
	if (word == RELEASE_ENDED)
		p->rental.seen_at = c->now;
	if (word != RELEASE_ABSENT && !p->rental.accepted_at)
		p->rental.accepted_at = c->now;
	if (p->rental.answer == ANSWER_NONE)
		extend_release_limits(c, p->rental.provider);
	if (word != RELEASE_ABSENT) {
		p->rental.answer = ANSWER_ACCEPTED;
		p->rental.key = KEY_OURS; /* this key could end it */
	} else if (p->rental.answer != ANSWER_DENIED_REPEAT) {
		p->rental.answer = ANSWER_DENIED;
	}
	p->rental.missing_lists = p->rental.clean_lists = 0;
	pod_enter(c, p, POD_CONFIRMING);
	if (pod_is_denied(p)) /* a connection that stands proves that it is there */
		core_act(c, ACT_FINISH, pod_index(c, p))->flag = true;
	else
		core_act(c, ACT_CLOSE, pod_index(c, p));
	pod_save(c, p);
	listing_make_due(c, p->rental.provider);
}

/* The release failed: it is sent again, and the agent may be asked to end the pod. */
static void on_release_failed(struct core *c, struct core_pod *p, const struct err *err)
{
	if (p->rental.answer == ANSWER_NONE && err->kind != ERR_RATE_LIMITED)
		p->rental.answer = ANSWER_REFUSED;
	ask_agent_to_end(c, p, err);
	int64_t wait =
		MIN((int64_t)RELEASE_RETRY_MIN_MS << MIN(p->rental.tries, 6), RELEASE_RETRY_MAX_MS);
	if (p->rental.tries++ == 2)
		core_note(c, NOTE_WARN, "pod %s: not released yet, retrying until it is gone: %s",
			  p->rental.id, err->msg);
	/* It bills. The provider's Retry-After may be too long, and the rate limiter holds back
	 * calls without room. */
	p->wake_at = c->now + MAX(wait, MIN(err->retry_after_ms, (int64_t)RELEASE_AFTER_MOST_MS));
	COPY_TEXT(p->reason, err->msg);
	c->dirty = true;
}

void pod_on_released(struct core *c, struct core_pod *p, enum release_word word,
		     const struct err *err)
{
	pod_vendor(c, p)->diagnosed_by = 0;
	if (p->phase != POD_RELEASING)
		return;
	if (err)
		on_release_failed(c, p, err);
	else
		on_release_accepted(c, p, word);
}
