/* core.c - the run as a whole: which function handles an event, when to stop, when it is over, and
 * its summary. */
#include "impl.h"

#include <stdlib.h>

/* ---- stopping ---- */

/* The first signal stops the run, the second ends the time for fetching, the third exits. */
static void on_signal(struct core *c, int number)
{
	if (++c->signals == 1) {
		c->signal = number;
		core_stop(c);
		core_note(c, NOTE_NOTE,
			  "stopping: fetching what is finished, then releasing the pods "
			  "(again: release them now)");
		return;
	}
	c->grace_until = c->now;
	c->dirty = true;
	if (c->signals >= 3)
		core_note(c, NOTE_WARN, "leaving at once");
}

/* While the run stops, a connected pod with files or commands still has time. */
static bool may_be_released_now(const struct core *c, const struct core_pod *p)
{
	if (c->conf.reap || c->signals > 1)
		return true;
	bool halting = p->workload.halting && p->workload.batches > 0;

	return !(p->presence.link == LINK_UP && (pod_owes(p) || halting) &&
		 c->now < c->grace_until);
}

/* The run stops: releases each pod whose files are not waited for. */
static void release_all_pods(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		if (pod_is_retired(p))
			continue;
		if (p->phase == POD_RENTING && p->wake_at != NEVER)
			pod_resend(c, p);
		if (may_be_released_now(c, p) && !leave_for_inspection(c, i))
			pod_set_leave(c, p, LEAVE_NOW);
	}
	pods_decide(c);
}

/* ---- the end ---- */

/* Warns of accounts where an unknown pod may bill, and returns true if there is one. If a known pod
 * explains exit 9, only a lost create is reported. */
static bool report_hidden_pods(struct core *c)
{
	bool any = false, explained = pods_count(c, pod_may_bill);

	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if (!listing_may_hide_pod(v))
			continue;
		any = true;
		if (explained && !listing_awaits_twin(v))
			continue;
		core_note(c, NOTE_WARN,
			  "%s: its pods could not be listed since %s: an extra pod may be billing; "
			  "run `burst reap` to check again",
			  c->conf.providers[i].name,
			  listing_awaits_twin(v) ? "the reply to a create was lost"
						 : "the last create");
	}
	return any;
}

/* Whether the end need not wait for any pod: it is gone, or was waited for long enough. */
static bool are_pods_over(struct core *c)
{
	bool over = true;

	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		if (p->presence.files == FILES_SALVAGING && c->signals < 2)
			over = false;
		if (!pod_may_bill(p))
			continue;
		bool given_up = p->rental.key == KEY_REPORTED ||
				(p->phase == POD_AMBIGUOUS
					 ? c->signals > 1 || c->now >= p->rental.rented_at +
									       AMBIGUOUS_LIMIT_MS
					 : pod_is_retired(p) && c->now >= p->overdue_at);
		over = over && given_up;
	}
	return over;
}

/* Ends the run if nothing is left to wait for, or at the third signal. */
static void try_to_end(struct core *c)
{
	if (c->signals < 3) {
		bool done = core_is_stopping(c) || segments_settled(c);
		if (!done || pods_count(c, pod_is_active) || !are_pods_over(c) ||
		    !listing_all_final(c))
			return;
		/* Files on a volume may still be on their way although their pod is gone. */
		if (!core_is_stopping(c) && !segments_settled(c))
			return;
		bool waits = !core_is_stopping(c) || (c->signals < 2 && c->now < c->grace_until);
		if (waits && pods_count(c, pod_owes))
			return;
	}
	c->unreleased = report_hidden_pods(c) || pods_count(c, pod_may_bill);
	c->ended = true;
	core_act(c, ACT_END, -1);
}

static void check_duration_cap(struct core *c)
{
	struct err err;

	if (!c->ends_at || c->now < budget_ends_at(c) || core_is_stopping(c) || segments_settled(c))
		return;
	c->capped = true;
	err_set(&err, ERR_CAP, "caps.max_duration was reached");
	core_fault(c, -1, &err);
}

/* One step of a run that has begun: pods get work, are rented, handed over or dismissed. */
static void decide_step(struct core *c)
{
	pods_decide_all(c);
	width_release_surplus(c);
	replan_advance(c);
	pods_decide(c);
	if (core_is_stopping(c))
		return;
	if (!c->replan.stop.kind)
		width_advance(c);
	handover_begin(c);
	if (!c->todo)
		pods_decide_all(c); /* This call may have dealt out the last work, so other pods may
				       have none. */
	handover_resend_orders(c);
	pods_leave_settled(c);
	pods_decide(c);
}

/* What follows from the facts of this step, until the end of the run. */
static void advance(struct core *c)
{
	if (c->ended || !c->started)
		return;
	check_duration_cap(c);
	if (c->offers_again_at && c->now >= c->offers_again_at && !core_is_stopping(c))
		query_restart(c);
	if (!core_is_stopping(c))
		decide_step(c);
	if (core_is_stopping(c)) /* by now */
		release_all_pods(c);
	try_to_end(c);
	if (!c->ended)
		listing_send_due(c);
}

static void set_wake_at(struct core *c)
{
	int64_t at = NEVER;

	for (int i = 0; i < c->pod_count; i++)
		at = MIN(at, pod_wake_at(c, &c->pods[i]));
	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if (listing_timeout_at(c, v) > c->now)
			at = MIN(at, listing_timeout_at(c, v));
		if (!v->listing && v->list_at != NEVER)
			at = MIN(at, MAX(v->list_at, v->list_not_before));
		if (v->rent_not_before > c->now)
			at = MIN(at, v->rent_not_before);
	}
	if (c->offers_again_at && !core_is_stopping(c))
		at = MIN(at, c->offers_again_at);
	if (c->ends_at && !c->free_since && !core_is_stopping(c) && !segments_settled(c))
		at = MIN(at, c->ends_at);
	if (c->capacity_since && !core_is_stopping(c) &&
	    c->capacity_since + c->conf.wait_ms > c->now)
		at = MIN(at, c->capacity_since + c->conf.wait_ms);
	if (core_is_stopping(c) && c->grace_until > c->now)
		at = MIN(at, c->grace_until);
	at = MIN(at, MIN(MIN(width_wake_at(c), warm_wake_at(c)), replan_wake_at(c)));
	c->wake_at = c->ended ? NEVER : at;
}

/* ---- the step ---- */

static void on_tick(struct core *c)
{
	c->dirty = true;
	for (int i = 0; i < c->pod_count; i++)
		if (c->now >= pod_wake_at(c, &c->pods[i]))
			pod_tick(c, i);
	pods_decide(c);
	for (int i = 0; i < c->pod_count; i++)
		pod_keep_up(c, i);
}

/* EV_START: the caps begin to count, adopted pods are taken over, and accounts are listed where a
 * pod may be left. */
static void on_start(struct core *c)
{
	c->started = c->dirty = true;
	c->began_at = c->now;
	c->capacity_since = c->now;
	if (c->conf.max_duration_ms)
		c->ends_at = c->now + c->conf.max_duration_ms;
	budget_fit_pods(c);
	for (int i = 0; i < c->conf.provider_count; i++)
		switch_check_provider(c, i);
	for (int i = 0; i < c->conf.provider_count; i++)
		if (c->conf.providers[i].used_before) {
			c->vendors[i].used = true;
			/* before a list that is sent now */
			if (c->conf.providers[i].used_lately)
				c->vendors[i].made_at = c->now - 1;
			listing_make_due(c, i);
		}
	for (int i = 0; i < c->pod_count; i++) {
		pod_set_log_deadline(c, i);
		c->vendors[c->pods[i].rental.provider].used = true;
		listing_make_due(c, c->pods[i].rental.provider);
		pod_begin_adopted(c, i);
	}
}

/* EV_SLEPT: every wait begins anew, and accounts are listed at once. */
static void on_slept(struct core *c)
{
	query_on_slept(c);
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		if (v->used)
			v->list_at = c->now;
		if (v->listing) /* its reply may have arrived and not been read */
			v->listing_since = c->now;
	}
	pods_on_slept(c);
	c->dirty = true;
}

void core_step(struct core *c, const struct event *ev, struct actions *out)
{
	c->now = ev->now_ms;
	c->wall = ev->wall_ms;
	c->out = out;
	c->dirty = false;
	if (c->ended)
		return;
	switch (ev->type) {
	case EV_START: on_start(c); break;
	case EV_TICK: on_tick(c); break;
	case EV_OFFERS:
	case EV_VOLUME: query_on_answer(c, ev); break;
	case EV_VOLUME_FILLS: query_on_volume_fills(c, ev); break;
	case EV_IMAGE: query_on_image_answer(c, ev); break;
	case EV_INSPECTED: seen_on_inspection(c, ev); break;
	case EV_LISTED: listing_on_reply(c, ev); break;
	case EV_RENTED:
	case EV_RENT_FAILED:
	case EV_CONNECTED:
	case EV_CONNECT_FAILED:
	case EV_LOST:
	case EV_SWITCH_BAD:
	case EV_SHARED_READY:
	case EV_PREPARE_FAILED:
	case EV_WORKERS:
	case EV_WORKERS_FAILED:
	case EV_UNPULLED:
	case EV_LOG:
	case EV_SALVAGED:
	case EV_HANDOVER_DONE:
	case EV_SYNCED:
	case EV_NOT_WANTED:
	case EV_TAKEN:
	case EV_ADOPTED:
	case EV_RELEASED: pod_event(c, ev); break;
	case EV_SOUGHT: warm_on_seek_done(c); break;
	case EV_RUNNING: dispatch_on_running(c, ev); break;
	case EV_BATCH_STARTED: dispatch_on_started(c, ev); break;
	case EV_BATCH_DONE: dispatch_on_done(c, ev); break;
	case EV_REVOKED: dispatch_on_revoked(c, ev); break;
	case EV_CHECKPOINT: dispatch_on_checkpoint(c, ev); break;
	case EV_RENDERED: dispatch_on_rendered(c, ev); break;
	case EV_SEGMENT_FAILED: dispatch_on_failed(c, ev); break;
	case EV_FETCHED: fetch_on_arrived(c, ev); break;
	case EV_FETCH_FAILED: fetch_on_failed(c, ev); break;
	case EV_LOCAL: fetch_on_placed(c, ev); break;
	case EV_FILES: fetch_on_files(c, ev); break;
	case EV_SIGNAL: on_signal(c, ev->number); break;
	case EV_SLEPT: on_slept(c); break;
	case EV_FAULT: core_fault(c, -1, ev->err); break;
	}
	pods_decide(c);
	if (core_is_stopping(c) || c->replan.stop.kind)
		c->dirty = true;
	if (c->dirty) {
		advance(c);
		budget_note_free_wait(c);
		set_wake_at(c);
	}
#ifdef CORE_CHECKED
	const char *broken = core_check(c);
	if (broken)
		fprintf(stderr, "core: after event %d: not true: %s\n", (int)ev->type, broken),
			abort();
#endif
}

int64_t core_wake_at(const struct core *c)
{
	return c->wake_at;
}

/* ---- making and asking ---- */

struct core *core_new(const struct core_conf *conf, const struct core_segment *segments,
		      size_t count)
{
	struct core *c = xcalloc(1, sizeof(*c));

	c->conf = *conf;
	c->random = conf->seed;
	c->wake_at = NEVER;

	c->canary_ok = !conf->canary || conf->batch_size_count;
	c->seg_count = count;
	c->segs = xcalloc(count, sizeof(*c->segs));
	for (size_t i = 0; i < count; i++)
		c->segs[i] = (struct seg){.weight = segments[i].weight,
					  .est_s = segments[i].est_s,
					  .group = segments[i].group,
					  .cached = segments[i].done};
	for (int i = 0; i < CORE_PROVIDERS_MAX; i++) {
		c->vendors[i].owner = -1;
		c->vendors[i].list_at = NEVER;
		c->vendors[i].listed_at = INT64_MIN / 2;
		c->vendors[i].listing_since = INT64_MIN / 2;
		c->vendors[i].created_at = c->vendors[i].surfaced_at = INT64_MIN / 4;
		c->vendors[i].made_at = INT64_MIN;
	}
	segments_init(c);
	forecast_init(c);
	return c;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	dispatch_free(c);
	forecast_free(c);
	free(c->segs);
	free(c->pods);
	free(c->due);
	free(c->candidates);
	free(c);
}

int core_adopt(struct core *c, const struct core_pod *pod)
{
	struct core_pod *p = pod_new(c);

	*p = *pod;
	if (p->phase != POD_GONE && !p->rental.create_at)
		p->rental.create_at = -1; /* 0 would mean "not yet" */
	p->wake_at = p->overdue_at = NEVER;
	p->workload.last_group = UINT32_MAX;
	p->workload.counted_waste_ms = p->workload.wasted_ms;
	p->presence.past = PAST_UNREAD;
	return pod_index(c, p);
}

int core_pod_count(const struct core *c)
{
	return c->pod_count;
}

const struct core_pod *core_pod_at(const struct core *c, int pod)
{
	return &c->pods[pod];
}

const struct core_batch *core_batch_at(const struct core *c, uint32_t batch)
{
	return &c->batches[batch];
}

bool core_has_batch(const struct core *c, uint32_t batch, int pod)
{
	return batch < c->batch_count && c->batches[batch].pod == pod;
}

enum core_seg_state core_seg_state(const struct core *c, uint32_t segment)
{
	return (enum core_seg_state)c->segs[segment].state;
}

int core_seg_holder(const struct core *c, uint32_t segment)
{
	return c->segs[segment].state == SEG_HELD ? c->segs[segment].pod : -1;
}

int core_seg_tries(const struct core *c, uint32_t segment)
{
	return c->segs[segment].tries;
}

/* What a provider says of a pod that could not be confirmed gone; "": nothing. */
static const char *why_unreleased(const struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (pod_may_bill(&c->pods[i]) && c->pods[i].rental.view.detail[0])
			return c->pods[i].rental.view.detail;
	return "";
}

/* Sets the run's status, and the error that decides its exit status. */
static void set_verdict(const struct core *c, struct core_summary *s)
{
	bool all_local = c->local == c->seg_count && !c->canary_bad_all;

	if (c->unreleased) {
		s->status = RUN_UNRELEASED;
		const char *why = why_unreleased(c);
		err_set(&s->err, ERR_UNRELEASED,
			"a pod could not be confirmed gone: it may still be billing%s%s",
			why[0] ? ": " : "", why);
		s->err.signal = c->signals >= 3 ? c->signal : 0;
	} else if (c->signals) {
		s->status = RUN_INTERRUPTED;
		err_set(&s->err, ERR_INTERRUPTED, "interrupted");
		s->err.signal = c->signal;
	} else if (all_local || c->conf.reap) {
		s->status = RUN_DONE;
	} else if (c->capped && c->fault.kind == ERR_CAP) {
		s->status = RUN_CAPPED;
		s->err = c->fault;
	} else {
		s->status = c->local > 0 ? RUN_PARTIAL : RUN_FAILED;
		s->err = c->fault;
		if (s->err.kind == ERR_NONE)
			err_set(&s->err, ERR_JOB, "%zu of %zu segments failed", c->failed,
				c->seg_count);
	}
}

void core_summary(const struct core *c, int64_t now_ms, struct core_summary *s)
{
	*s = (struct core_summary){
		.total = c->seg_count, .local = c->local, .failed = c->failed, .cached = c->cached};
	int slots = 0;

	s->weight_left = segments_weight_left(c);
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		s->billed_ms += core_billed_ms(p, now_ms);
		s->cost_microusd += core_cost(p, now_ms);
		s->counted_microusd += core_counted(p, now_ms);
		s->vendor_microusd += p->rental.vendor_microusd;
		s->compute_ms += core_compute_ms(p);
		s->wasted_ms += p->workload.wasted_ms;
		s->live += pod_may_bill(p);
		if (p->phase == POD_WORKING)
			slots += p->workload.workers_ready;
	}
	s->rate = pace_rate(c) * slots;
	set_verdict(c, s);
}
