/* pods.c - decides what follows from the facts about the pods. pods_decide() alone gives them work,
 * has it made durable, offers pods to other runs, and releases them. */
#include "impl.h"

/* ---- decisions ---- */

/* A pod to be released has delivered its files, or its time for that is over. */
static bool is_over(const struct core *c, const struct core_pod *p)
{
	return pod_is_leaving(p) && ((p->fetch_until && c->now >= p->fetch_until) ||
				     (p->inspect_until && c->now >= p->inspect_until));
}

static void decide_leaving(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	bool fetch_first = p->presence.link == LINK_UP && !pod_files_on_volume(p) && pod_owes(p) &&
			   c->signals < 2 && p->fault != ERR_UNTRUSTED;

	if (pod_lacks_id(p))
		return; /* as soon as it is known to exist */
	if (p->leave == LEAVE_DECIDE && fetch_first) {
		leave_empty(c, p);
		return;
	}
	bool stays = pod_owes(p) || p->inspect_until; /* even while it cannot be reached */
	if (p->leave == LEAVE_EMPTY && stays && !is_over(c, p))
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

/* For a pod that does not work and is not to be released. */
static void decide_coming(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	bool idle = !p->workload.batches && !pod_owes(p);

	if (idle)
		c->dirty = true; /* unreachable, and perhaps no longer needed */
	if (p->phase != POD_WORKING && idle && !c->todo && !core_stopping(c)) {
		pod_dismiss(c, pod, ERR_NONE, "no work is left for it");
		decide_leaving(c, pod);
	} else if (p->phase == POD_AWAITING_VOLUME) {
		decide_awaiting_volume(c, p);
	}
}

static void decide_working(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	dispatch_fill(c, pod);
	/* A pod on offer gets no work again, even if another pod's work is lost meanwhile. */
	if (p->workload.batches || (!pod_nothing_comes(c, p) && !p->offered_until))
		return;
	if (pod_owes(p)) {
		durable_request(c, p);
	} else if (!warm_is_offered(c, pod)) {
		pod_dismiss(c, pod, ERR_NONE, "done");
		decide_leaving(c, pod);
	}
}

/* A worker may spoil the file of one segment. If files of several segments in a row are bad, the
 * pod is. */
static void judge_files(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	char last[160];

	if (p->workload.bad_files < BAD_FILES_MAX || (pod_is_leaving(p) && !pod_owes(p)))
		return;
	p->workload.bad_files = 0;
	COPY_TEXT(last, p->reason);
	resting_bad_host(c, pod, "its files do not match what it announced");
	pod_dismiss(c, pod, ERR_UNTRUSTED, "its files do not match what it announces: %s", last);
}

static void decide(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->phase == POD_RELEASING && c->now >= p->wake_at) {
		p->wake_at = NEVER;
		core_act(c, ACT_RELEASE, pod);
		c->dirty = true;
	}
	if (pod_is_retired(p))
		return;
	judge_files(c, pod);
	if (pod_is_leaving(p))
		decide_leaving(c, pod);
	else if (p->phase == POD_WORKING && p->presence.link == LINK_UP)
		decide_working(c, pod);
	else
		decide_coming(c, pod);
}

void pods_decide(struct core *c)
{
	for (size_t i = 0; i < c->due_count; i++) {
		c->pods[c->due[i]].due = false;
		decide(c, c->due[i]);
	}
	c->due_count = 0;
}

void pods_decide_all(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (!pod_is_retired(&c->pods[i]))
			pod_due(c, i);
	pods_decide(c);
}

/* When all segments are settled, a pod bills for nothing, even if its agent does not report its
 * batches as over. */
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
		if (pod_active(&c->pods[i]) && c->pods[i].workload.batches > 0)
			pod_dismiss(c, i, ERR_NONE, "done, though its agent does not confirm it");
}

/* ---- time ---- */

static void watch_hard_end(struct core *c, struct core_pod *p)
{
	int64_t margin = budget_margin(p->rental.hard_end_ms - p->rental.create_at);
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
			core_take_back(c, p, MIN(margin / 4, (int64_t)HALT_GRACE_MS));
		pod_due(c, pod);
	}
}

static bool has_deadline(const struct core_pod *p)
{
	return p->phase == POD_BOOTING || p->phase == POD_CONNECTING || p->phase == POD_PREPARING ||
	       p->phase == POD_LOADING;
}

static void watch_deadline(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);

	if (!has_deadline(p) || c->now < p->deadline_at)
		return;
	if (p->rental.place != PLACE_GIVEN && p->phase == POD_BOOTING) {
		queue_watch(c, p);
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
	if (!boot_log_may_help(c, p))
		boot_timed_out(c, p);
}

void pod_tick(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->presence.refetch_at && c->now >= p->presence.refetch_at) {
		p->presence.refetch_at = 0;
		if (p->presence.files == FILES_SALVAGING)
			core_act(c, ACT_SALVAGE, pod);
		else if (p->presence.link == LINK_UP || pod_files_on_volume(p))
			fetch_pending(c, pod);
		c->dirty = true;
	}
	if (p->presence.sync_at && c->now >= p->presence.sync_at) {
		p->presence.sync_at = 0;
		pod_due(c, pod);
		c->dirty = true;
	}
	if (p->presence.log_at && c->now >= p->presence.log_at && boot_is_under_way(p))
		boot_read_log(c, p);
	watch_deadline(c, p);
	watch_hard_end(c, p);
	if (p->phase == POD_RELEASING
		    ? c->now >= p->wake_at
		    : is_over(c, p) || (p->offered_until && c->now >= p->offered_until))
		pod_due(c, pod);
}

/* Upkeep of a pod that stays, after the decisions. */
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

/* The earliest moment at which pod_tick() has something to do. */
int64_t pod_wake_at(const struct core *c, const struct core_pod *p)
{
	int64_t at = p->presence.refetch_at ? p->presence.refetch_at : NEVER;

	if (!pod_may_bill(p))
		return at;
	if (pod_is_retired(p))
		return MIN(at,
			   p->deadline_at > c->now ? MIN(p->wake_at, p->deadline_at) : p->wake_at);
	if (p->presence.sync_at)
		at = MIN(at, p->presence.sync_at);
	if (p->phase == POD_AMBIGUOUS && p->rental.rented_at + AMBIGUOUS_LIMIT_MS > c->now)
		at = MIN(at, p->rental.rented_at + AMBIGUOUS_LIMIT_MS);
	if (!pod_lacks_id(p)) {
		int64_t margin = budget_margin(p->rental.hard_end_ms - p->rental.create_at);
		at = MIN(at, MIN(p->wake_at, p->rental.hard_end_ms -
						     (pod_is_draining(p) ? margin : 2 * margin)));
		if (has_deadline(p))
			at = MIN(at, p->deadline_at);
		if (p->presence.log_at && boot_is_under_way(p))
			at = MIN(at, p->presence.log_at);
		if (p->offered_until)
			at = MIN(at, MAX(p->offered_until, c->now));
		if (p->inspect_until)
			at = MIN(at, MAX(p->inspect_until, c->now));
		else if (pod_is_leaving(p) && p->fetch_until)
			at = MIN(at, p->fetch_until);
		if (p->presence.link == LINK_UP && p->presence.lease == LEASE_CLIENT)
			at = MIN(at, p->presence.renew_at);
		if (pod_log_awaited(c, p))
			at = MIN(at, p->presence.log_by);
	}
	return at;
}

/* A pod's silence during the sleep is not held against it. */
void pods_slept(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		p->presence.renew_at = c->now;
		if (pod_files_on_volume(p))
			p->presence.rescue_until = c->now + RESCUE_LIMIT_MS;
		if (p->phase == POD_RELEASING)
			p->wake_at = MIN(p->wake_at, c->now);
		if (p->phase == POD_RELEASING || p->phase == POD_CONFIRMING)
			p->deadline_at = MAX(p->deadline_at, c->now + CONFIRM_LIMIT_MS);
		else if (p->phase == POD_BOOTING || p->phase == POD_CONNECTING)
			p->deadline_at = MAX(p->deadline_at, c->now + WOKEN_BOOT_MS);
		else if (p->phase == POD_AMBIGUOUS)
			p->rental.rented_at = MAX(p->rental.rented_at,
						  c->now - AMBIGUOUS_LIMIT_MS + FINAL_LIST_MS);
	}
}
