/* dispatch.c - gives batches to pods. */
#include <stdlib.h>

#include "impl.h"

/* ---- sizes ----
 * How much work a pod holds, and the size of its next batch: sizes shrink toward the end so that
 * all pods finish together. */

/* Workers that could share what is left, including those that still boot. */
static int worker_slots(const struct core *c)
{
	int slots = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (pod_is_active(p) && !pod_is_draining(p))
			slots += p->workload.workers_ready ? p->workload.workers_ready
							   : c->conf.workers;
	}
	return slots ? slots : 1;
}

/* Segments in the next batch for an engine that renders a whole batch at once: full batches while
 * there is more than one for each worker, then even shares, so that all workers finish together.
 * Batches already given count, since a share is one of a round. A share is never so small that a
 * batch's fixed cost dominates. */
static size_t padded_size(const struct core *c, const struct core_pod *p)
{
	size_t most = speed_batch_most(c, p), slots = (size_t)worker_slots(c);
	size_t batches = (c->todo + most - 1) / most, fewest = batches;

	while ((c->padded + batches) % slots)
		batches++;
	double fixed = pace_fixed_weight(c);
	if (fixed > 0)
		batches = MAX(fewest, MIN(batches, (size_t)(c->weight_todo / fixed)));
	return MIN((c->todo + batches - 1) / batches, most);
}

/* The weight of a batch at which three quarters of its time go into its segments, for engines with
 * a fixed cost per batch. All that is left while nothing was measured: a small batch would teach
 * little. */
static double least_useful_weight(const struct core *c)
{
	if (c->fit.count <= 0)
		return c->weight_todo;
	return MIN(3 * pace_fixed_weight(c), c->weight_todo);
}

/* The most weight of the next batch for an engine that renders one segment after the other. It is a
 * share of what is left, so that sizes shrink toward the end and all workers finish together: not
 * so small that round trips show, not so large that a lost pod hurts. A single worker needs no
 * small batches: they would only slow an engine that renders a whole batch at once. */
static double batch_weight_max(const struct core *c)
{
	int slots = worker_slots(c);
	double weight = slots == 1 && c->canary_ok && pace_rate(c) > 0
				? c->weight_todo
				: c->weight_todo / (3.0 * slots);
	double rate = pace_rate(c);

	weight = MAX(weight, MIN(least_useful_weight(c), c->weight_todo / slots));
	/* Until it is known how many other pods pay, the first pod gets its share in two batches.
	 */
	if (c->conf.canary && c->conf.pods > 1 && pace_is_rough(c))
		weight = MIN(weight,
			     c->weight_todo / (2.0 * c->conf.pods * MAX(c->conf.workers, 1)));
	if (rate > 0) {
		weight = MIN(weight, rate * 20);
		weight = MAX(weight, rate * 0.25);
	}
	return weight;
}

/* Segments in a batch of a continuous engine. Several batches share a worker's places, so that one
 * ends and another one follows well before all places are free. */
static size_t continuous_size(const struct core *c, const struct core_pod *p)
{
	return MAX(speed_batch_most(c, p) / CONTINUOUS_BATCHES, (size_t)1);
}

/* How many segments the pod should hold: its workers' places plus half as many in its queue, so
 * that a worker never waits; toward the end no more than its share. */
static size_t continuous_hold(const struct core *c, const struct core_pod *p)
{
	size_t workers = (size_t)MAX(p->workload.workers_ready, 1),
	       places = speed_batch_most(c, p) * workers, left = c->todo;
	size_t slots = (size_t)worker_slots(c);

	for (int i = 0; i < c->pod_count; i++)
		left += pod_is_active(&c->pods[i]) ? c->pods[i].workload.held : 0;
	return MIN(places + (places + 1) / 2, (left + slots - 1) / slots * workers);
}

/* Whether the whole next batch fits into what the pod should hold. A pod without work gets what is
 * left, whatever its share. */
static bool continuous_wants_batch(const struct core *c, const struct core_pod *p)
{
	size_t hold = continuous_hold(c, p), next = MIN(continuous_size(c, p), c->todo);

	return !p->workload.held || p->workload.held + next <= hold;
}

/* Segments in the next batch: no more than the pod should hold, at least one. */
static size_t continuous_next_size(const struct core *c, const struct core_pod *p)
{
	return MAX(MIN(continuous_size(c, p), continuous_hold(c, p)), (size_t)1);
}

/* The most segments that the pod's next batch may have. */
static size_t batch_size_max(const struct core *c, const struct core_pod *p)
{
	switch (p->workload.batching) {
	case BATCHING_PADDED: return padded_size(c, p);
	case BATCHING_CONTINUOUS: return continuous_next_size(c, p);
	case BATCHING_NONE: break;
	}
	return speed_batch_most(c, p);
}

/* Whether the pod should get one more batch now. */
static bool wants_batch(const struct core *c, const struct core_pod *p)
{
	if (p->workload.batching == BATCHING_CONTINUOUS)
		return continuous_wants_batch(c, p);
	/* one batch in work and one queued per worker, so that no worker waits for a round trip */
	return p->workload.batches < (c->conf.command ? 1 : 2 * MAX(p->workload.workers_ready, 1));
}

/* ---- dispatch ----
 * Which pod renders which segment: batches that are sent, started, done, revoked and lost. */

/* Appends an empty batch for the pod and returns its number. */
static uint32_t add_batch(struct core *c, int pod)
{
	while (c->first_open < c->batch_count && c->batches[c->first_open].over)
		c->first_open++;
	GROW(c->batches, c->batch_count, c->batch_cap);
	c->batches[c->batch_count] = (struct core_batch){.pod = pod};
	return (uint32_t)c->batch_count++;
}

/* Gives an open segment to the batch and its pod. */
static void add_to_batch(struct core *c, uint32_t batch, uint32_t i)
{
	struct core_batch *b = &c->batches[batch];

	segment_assign(c, i, SEG_HELD, b->pod);
	c->segs[i].batch = batch;
	b->segments = xrealloc(b->segments, (b->count + 1) * sizeof(*b->segments));
	b->segments[b->count++] = i;
	b->weight += c->segs[i].weight;
}

static void send_batch(struct core *c, uint32_t batch)
{
	struct core_batch *b = &c->batches[batch];
	struct core_pod *p = &c->pods[b->pod];

	p->workload.batches++;
	pod_void_sync(p);
	lease_on_work_added(p);
	core_act(c, ACT_SEND, b->pod)->batch = batch;
}

/* The group of the pod's next batch: the one of its last batch while any is left, else the
 * heaviest. NULL: no segment is open. */
static struct heap *pick_group(struct core *c, struct core_pod *p)
{
	if (p->workload.last_group < c->heap_count &&
	    segments_heaviest(c, &c->heaps[p->workload.last_group]) >= 0)
		return &c->heaps[p->workload.last_group];
	struct heap *best = NULL;
	for (uint32_t g = 0; g < c->heap_count; g++)
		if (segments_heaviest(c, &c->heaps[g]) >= 0 &&
		    (!best || c->heaps[g].weight > best->weight))
			best = &c->heaps[g];
	if (best)
		p->workload.last_group = (uint32_t)(best - c->heaps);
	return best;
}

/* Makes the next batch and sends it. Returns false if no segment is open. */
static bool send_next_batch(struct core *c, int pod)
{
	struct heap *h = pick_group(c, &c->pods[pod]);
	if (!h)
		return false;
	enum batching batching = c->pods[pod].workload.batching;
	size_t count = batch_size_max(c, &c->pods[pod]);
	double most = batching == BATCHING_NONE ? batch_weight_max(c) : c->weight_todo, longest = 0;
	uint32_t batch = add_batch(c, pod);

	for (int64_t i; (i = segments_heaviest(c, h)) >= 0;) {
		struct core_batch *b = &c->batches[batch];
		double w = c->segs[i].weight;
		longest = MAX(longest, w);
		if (b->count && (b->count >= count || b->weight + w > most))
			break;
		if (b->count && c->conf.max_batch_weight > 0 &&
		    longest * (double)(b->count + 1) > c->conf.max_batch_weight)
			break;
		add_to_batch(c, batch, (uint32_t)i);
	}
	c->padded += batching == BATCHING_PADDED;
	send_batch(c, batch);
	return true;
}

/* Sends the first few segments, whose results decide whether more pods are rented. */
static void send_canary(struct core *c, int pod)
{
	uint32_t batch = add_batch(c, pod);
	size_t most = MIN((size_t)CORE_CANARY, speed_batch_most(c, &c->pods[pod]));

	for (uint32_t i = 0; i < c->seg_count && c->batches[batch].count < most; i++)
		if (c->segs[i].state == SEG_TODO)
			add_to_batch(c, batch, i);
	c->canary_sent = true;
	c->canary_batch = batch;
	send_batch(c, batch);
}

/* Sends each worker the next batch of the sizes in conf.batch_sizes. */
static void send_given_sizes(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	size_t at = MIN(p->workload.given, c->conf.batch_size_count - 1),
	       most = MIN((size_t)MAX(c->conf.batch_sizes[at], 1), speed_batch_most(c, p));

	p->workload.given++;
	for (int worker = 0; worker < MAX(p->workload.workers_ready, 1) && c->todo; worker++) {
		uint32_t batch = add_batch(c, pod);
		for (uint32_t i = 0; i < c->seg_count && c->batches[batch].count < most; i++)
			if (c->segs[i].state == SEG_TODO)
				add_to_batch(c, batch, i);
		send_batch(c, batch);
	}
}

/* Not a pod on offer: another run may have taken it before its agent gets the work. */
static bool can_take_work(const struct core_pod *p)
{
	return p->phase == POD_WORKING && p->presence.link == LINK_UP && p->leave == LEAVE_NOT &&
	       !p->offered_until;
}

void dispatch_fill_pod(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (!can_take_work(p) || core_is_stopping(c) || core_is_reading_past_logs(c))
		return;
	if (c->conf.batch_size_count) {
		if (!p->workload.batches && c->todo)
			send_given_sizes(c, pod);
		return;
	}
	if (!c->canary_ok) {
		if (!c->canary_sent && c->todo)
			send_canary(c, pod);
		/* pods that are all up bill while they wait, and bad segments stop all of them */
		if (!c->conf.at_once && (!c->canary_sent || !c->batches[c->canary_batch].over ||
					 c->batches[c->canary_batch].pod != pod))
			return;
	}
	while (c->todo && wants_batch(c, p) && send_next_batch(c, pod))
		;
}

void dispatch_deal_all(struct core *c)
{
	bool dealt = true;

	while (c->todo && dealt) {
		dealt = false;
		for (int i = 0; i < c->pod_count && c->todo; i++)
			if (can_take_work(&c->pods[i]))
				dealt = send_next_batch(c, i) || dealt;
	}
}

/* The batch that the event names; NULL if this client did not send it to that pod. */
static struct core_batch *batch_of(struct core *c, const struct event *ev)
{
	if (ev->batch >= c->batch_count || c->batches[ev->batch].pod != ev->pod)
		return NULL;
	return &c->batches[ev->batch];
}

/* Counts one more or one less worker that holds a batch from t on (agent's clock), and adds the
 * time in which any did to compute_ms. */
static void change_busy(struct core_pod *p, int64_t t, int change)
{
	if (p->presence.past != PAST_NONE && !p->workload.recounted) {
		/* The ledger's figure dates from its row's last write; the log that is being read
		 * covers everything. */
		p->workload.recounted = true;
		p->workload.noted_ms = p->workload.compute_ms;
		p->workload.compute_ms = 0;
		p->workload.counted_waste_ms = 0;
	}
	p->workload.last_t = MAX(p->workload.last_t, t);
	if (p->workload.busy == 0 && change > 0)
		p->workload.busy_since_t = p->workload.last_t;
	p->workload.busy += change;
	if (p->workload.busy == 0 && change < 0)
		p->workload.compute_ms += p->workload.last_t - p->workload.busy_since_t;
	if (p->workload.busy < 0)
		p->workload.busy = 0;
}

/* What an adopted pod is rendering is not dealt out again: it counts as one started batch. */
void dispatch_on_running(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];

	if (p->presence.past == PAST_NONE || p->phase != POD_CONNECTING || pod_is_leaving(p) ||
	    c->segs[ev->segment].state != SEG_TODO)
		return;
	p->workload.last_t = MAX(p->workload.last_t, ev->t);
	if (!p->workload.inherited) {
		p->workload.inherited = add_batch(c, ev->pod) + 1;
		c->batches[p->workload.inherited - 1].started = true;
		c->batches[p->workload.inherited - 1].started_t = ev->t;
		c->batches[p->workload.inherited - 1].first = true; /* its real start is unknown */
		p->workload.batches++;
	}
	add_to_batch(c, p->workload.inherited - 1, ev->segment);
}

/* Whether a segment of the batch is still held by its pod. */
static bool is_holding_segment(const struct core *c, size_t batch)
{
	const struct core_batch *b = &c->batches[batch];

	for (size_t i = 0; i < b->count; i++) {
		const struct seg *s = &c->segs[b->segments[i]];
		if (s->state == SEG_HELD && s->pod == b->pod && s->batch == batch)
			return true;
	}
	return false;
}

/* The agent reports what the pod was rendering at its takeover as batches of another client. The
 * batch that stands for all of them ends with the last of its segments. */
static void close_inherited_if_done(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (!p->workload.inherited)
		return;
	if (is_holding_segment(c, p->workload.inherited - 1))
		return;
	c->batches[p->workload.inherited - 1].over = true;
	p->workload.inherited = 0;
	p->workload.batches--;
	p->workload.worked_at = c->now;
	pod_mark_due(c, pod);
}

void dispatch_on_started(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_of(c, ev);

	if (b && (b->over || b->started))
		return;
	change_busy(&c->pods[ev->pod], ev->t, 1);
	if (b) {
		b->started = true;
		b->started_t = ev->t;
		b->started_at = c->pods[ev->pod].presence.link == LINK_UP ? c->now : 0;
		b->first = c->pods[ev->pod].workload.begun++ <
			   MAX(c->pods[ev->pod].workload.workers_ready, 1);
	}
}

void dispatch_on_done(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];
	struct core_batch *b = batch_of(c, ev);

	if (!b) { /* of an earlier client of this run */
		change_busy(p, ev->t, -1);
		return;
	}
	if (b->over)
		return;
	b->over = true;
	p->workload.batches--;
	if (b->started) {
		change_busy(p, ev->t, -1);
		if (p->workload.batching != BATCHING_CONTINUOUS || b->first)
			pace_add_rendered(c, b, b->weight - b->rendered, ev->t);
		pace_add_size(c, b, (double)(ev->t - b->started_t));
		forecast_add_batch(c, b, ev->t - b->started_t);
	}
	if (b->started && c->canary_sent && ev->batch == c->canary_batch)
		speed_judge_canary(c, b, ev->t - b->started_t);
	/* Segments that the batch did not account for are rendered again. The agent reports each
	 * segment, so this is rare. */
	for (size_t i = 0; i < b->count; i++) {
		struct seg *s = &c->segs[b->segments[i]];
		if (s->state == SEG_HELD && s->pod == ev->pod && s->batch == ev->batch)
			segment_on_pod_lost(c, b->segments[i]);
	}
	p->workload.worked_at = c->now;
	pod_mark_due(c, ev->pod);
}

/* Counts as wasted what the pod has spent on a batch since its start or last checkpoint. */
static void count_cut_off(struct core_pod *p, const struct core_batch *b)
{
	core_count_wasted(p, p->workload.last_t - MAX(b->started_t, b->saved_t));
}

/* A batch of an earlier client was revoked, which the agent alone knows: opens its segment. */
static void on_inherited_revoked(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];
	const struct seg *s = ev->segment < c->seg_count ? &c->segs[ev->segment] : NULL;

	if (!s || !p->workload.inherited || s->state != SEG_HELD || s->pod != ev->pod ||
	    s->batch != p->workload.inherited - 1)
		return;
	change_busy(p, ev->t, -1);
	count_cut_off(p, &c->batches[s->batch]);
	segment_reopen(c, ev->segment);
	close_inherited_if_done(c, ev->pod);
}

void dispatch_on_revoked(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_of(c, ev);
	struct core_pod *p = &c->pods[ev->pod];

	if (!b)
		on_inherited_revoked(c, ev);
	if (!b || b->over)
		return;
	b->over = true;
	p->workload.batches--;
	if (b->started) { /* a halted command: its time is lost, its finished files are not */
		change_busy(p, ev->t, -1);
		count_cut_off(p, b);
	}
	for (size_t i = 0; i < b->count; i++) {
		struct seg *s = &c->segs[b->segments[i]];
		if (s->state == SEG_HELD && s->batch == ev->batch)
			segment_reopen(c, b->segments[i]);
	}
	pod_mark_due(c, ev->pod);
}

/* A segment that advances is not to blame for the loss of its pods. */
void dispatch_on_checkpoint(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];
	struct core_pod *p = &c->pods[ev->pod];

	p->workload.saves = pod_is_retired(p) ? 0 : ev->number;
	pod_mark_due(c, ev->pod);
	c->dirty = true;
	if (!ev->ok)
		return;
	if (s->state == SEG_HELD && s->pod == ev->pod)
		c->batches[s->batch].saved_t = MAX(c->batches[s->batch].saved_t, ev->t);
	if (seg_is_unrendered((enum core_seg_state)s->state))
		s->losses = 0;
	p->workload.last_t = MAX(p->workload.last_t, ev->t);
}

void dispatch_on_rendered(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];
	struct core_pod *p = &c->pods[ev->pod];

	p->workload.last_t = MAX(p->workload.last_t, ev->t);
	bool held_here = s->state == SEG_HELD && s->pod == ev->pod;
	if (s->cached)
		return; /* local since an earlier client: read again from the log */
	bool reachable = pod_files_on_volume(p) || pod_has_address(p);
	if (s->pod == ev->pod && (s->state == SEG_RENDERED || s->state == SEG_LOCAL))
		return; /* read a second time from its log */
	if (held_here)
		pace_add_segment(c, ev);
	if (s->state == SEG_TODO && reachable) {
		/* An earlier client of this run had it rendered. */
		segment_assign(c, ev->segment, SEG_HELD, ev->pod);
		held_here = true;
	}
	if (!held_here) {
		/* Another pod has or had it, or its file cannot be fetched. */
		core_count_wasted(p, ev->elapsed_ms);
		return;
	}
	segment_uncount_held(c, s);
	s->state = SEG_RENDERED;
	s->arrived = s->fetching = false;
	s->fetch_tries = 0;
	s->elapsed_ms = (uint32_t)MIN(ev->elapsed_ms, UINT32_MAX);
	p->workload.unfetched++;
	c->rendered_something = true;
	if (p->presence.link == LINK_UP || pod_files_on_volume(p))
		fetch_begin(c, ev->pod, ev->segment);
	close_inherited_if_done(c, ev->pod);
	if (p->workload.batching == BATCHING_CONTINUOUS)
		pod_mark_due(c, ev->pod); /* its worker has room for another segment */
}

void dispatch_on_failed(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];

	if ((s->state != SEG_HELD && s->state != SEG_TODO) ||
	    (s->state == SEG_HELD && s->pod != ev->pod))
		return;
	if (s->state == SEG_HELD)
		pace_add_failed(c, ev);
	bool file_trouble = ev->err->kind == ERR_UNTRUSTED || ev->err->kind == ERR_NOT_FOUND;
	if (file_trouble && ++s->file_tries < FILE_TRIES_MAX) {
		if (s->state == SEG_HELD)
			segment_reopen(c, ev->segment);
	} else {
		fetch_fail_segment(c, ev->segment);
		c->pods[ev->pod].workload.failed_here = true;
	}
	close_inherited_if_done(c, ev->pod);
	pod_mark_due(c, ev->pod);
}

void dispatch_resend(struct core *c, int pod)
{
	for (uint32_t i = 0; c->pods[pod].workload.batches > 0 && i < c->batch_count; i++)
		if (c->batches[i].pod == pod && !c->batches[i].started && !c->batches[i].over)
			core_act(c, ACT_SEND, pod)->batch = i;
}

/* Extends the pod's busy time to when burst last knew it alive: a pod that worked in silence had
 * its batches until then. */
static void extend_busy_until_seen(struct core *c, struct core_pod *p)
{
	int64_t seen_at = p->presence.link == LINK_UP ? c->now : p->presence.lost_at;

	if (p->rental.released_at)
		seen_at = MIN(seen_at, p->rental.released_at);
	for (size_t i = 0; p->workload.batches > 0 && i < c->batch_count; i++) {
		const struct core_batch *b = &c->batches[i];
		if (b->pod == pod_index(c, p) && !b->over && b->started && b->started_at)
			p->workload.last_t =
				MAX(p->workload.last_t, b->started_t + seen_at - b->started_at);
	}
}

/* Ends the pod's batches. They count as wasted from their start, last checkpoint or newest result
 * on, until the pod was last seen. A batch whose results were all read from the volume is not cut
 * off. */
static void cut_batches(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	int64_t wasted_ms = 0; /* of batches side by side, the longest counts */

	extend_busy_until_seen(c, p);
	for (size_t i = 0; p->workload.batches > 0 && i < c->batch_count; i++) {
		struct core_batch *b = &c->batches[i];
		if (b->pod != pod || b->over)
			continue;
		b->over = true;
		int64_t from_t = MAX(MAX(b->started_t, b->saved_t), b->newest_t);
		if (b->started && is_holding_segment(c, i))
			wasted_ms = MAX(wasted_ms, p->workload.last_t - from_t);
	}
	core_count_wasted(p, wasted_ms);
	if (c->canary_sent && !c->canary_ok && c->batches[c->canary_batch].pod == pod)
		c->canary_sent = false; /* the next pod starts with a canary */
	p->workload.compute_ms = core_compute_ms(p);
	p->workload.busy = 0;
	p->workload.batches = 0;
	p->workload.inherited = 0;
}

void dispatch_on_pod_lost(struct core *c, int pod)
{
	bool holds = c->pods[pod].workload.batches > 0;

	cut_batches(c, pod);
	c->dirty = true;
	for (uint32_t i = 0; holds && i < c->seg_count; i++) {
		struct seg *s = &c->segs[i];
		if (s->pod != pod || s->state != SEG_HELD)
			continue;
		if (c->batches[s->batch].started)
			segment_on_pod_lost(c, i);
		else
			segment_reopen(
				c, i); /* a batch that had not started cannot have ended the pod */
	}
}

void dispatch_free(struct core *c)
{
	for (uint32_t i = 0; i < c->heap_count; i++)
		free(c->heaps[i].list);
	free(c->heaps);
	for (size_t i = 0; i < c->batch_count; i++)
		free(c->batches[i].segments);
	free(c->batches);
}
