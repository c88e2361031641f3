/* dispatch.c - who renders what: long segments first, batches that shrink toward the end so that
 * all pods finish together, and what happens to a segment until its file is safe. */
#include "impl.h"

#include <stdlib.h>

/* ---- the heap of open segments of one group; a stale entry (not TODO any more) is dropped when it
 * surfaces ---- */

static bool heavier(const struct core *c, uint32_t a, uint32_t b)
{
	if (c->segs[a].weight != c->segs[b].weight)
		return c->segs[a].weight > c->segs[b].weight;
	return a < b;
}

static void sift_up(struct core *c, struct heap *h, size_t i)
{
	while (i && heavier(c, h->list[i], h->list[(i - 1) / 2])) {
		uint32_t up = h->list[(i - 1) / 2];
		h->list[(i - 1) / 2] = h->list[i];
		h->list[i] = up;
		i = (i - 1) / 2;
	}
}

static void sift_down(struct core *c, struct heap *h, size_t i)
{
	for (;;) {
		size_t best = i;
		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < h->count; k++)
			if (heavier(c, h->list[k], h->list[best]))
				best = k;
		if (best == i)
			return;
		uint32_t was = h->list[i];
		h->list[i] = h->list[best];
		h->list[best] = was;
		i = best;
	}
}

static void heap_pop(struct core *c, struct heap *h)
{
	h->list[0] = h->list[--h->count];
	sift_down(c, h, 0);
}

/* The heaviest TODO segment of the group, -1 when there is none. */
static int64_t heap_top(struct core *c, struct heap *h)
{
	while (h->count && c->segs[h->list[0]].state != SEG_TODO)
		heap_pop(c, h);
	return h->count ? (int64_t)h->list[0] : -1;
}

/* ---- states of a segment ---- */

static void leave_pod(struct core *c, struct seg *s)
{
	if (s->state == SEG_HELD)
		c->pods[s->pod].held--;
}

static void make_todo(struct core *c, uint32_t i)
{
	struct seg *s = &c->segs[i];
	struct heap *h = &c->heaps[s->group];

	leave_pod(c, s);
	c->dirty = true; /* an idle worker may be waiting for work */
	s->state = SEG_TODO;
	s->arrived = false;
	s->pod = -1;
	c->todo++;
	c->weight_todo += s->weight;
	h->weight += s->weight;
	GROW(h->list, h->count, h->cap);
	h->list[h->count++] = i;
	sift_up(c, h, h->count - 1);
}

static void take_todo(struct core *c, uint32_t i, enum core_seg_state to, int pod)
{
	struct seg *s = &c->segs[i];

	c->todo--;
	c->weight_todo -= s->weight;
	c->heaps[s->group].weight -= s->weight;
	s->state = (uint8_t)to;
	s->pod = pod;
	if (to == SEG_HELD)
		c->pods[pod].held++;
	if (!c->todo)
		c->dirty = true; /* pods that are still on their way are not needed any more */
}

static void settle(struct core *c, uint32_t i, enum core_seg_state to)
{
	struct seg *s = &c->segs[i];

	if (s->state == SEG_TODO)
		take_todo(c, i, to, s->pod);
	leave_pod(c, s);
	s->state = (uint8_t)to;
	if (to == SEG_SAFE)
		c->safe++;
	else
		c->failed++;
	if (dispatch_settled(c))
		c->dirty = true;
}

void dispatch_init(struct core *c)
{
	for (size_t i = 0; i < c->seg_count; i++)
		c->heap_count = MAX(c->heap_count, c->segs[i].group + 1);
	c->heaps = xcalloc(c->heap_count, sizeof(*c->heaps));
	for (size_t i = 0; i < c->seg_count; i++) {
		c->segs[i].pod = -1;
		if (c->segs[i].cached) {
			c->segs[i].state = SEG_SAFE;
			c->safe++;
			c->cached++;
		} else {
			make_todo(c, (uint32_t)i);
		}
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

bool dispatch_settled(const struct core *c)
{
	return c->safe + c->failed == c->seg_count;
}

/* A worker's first batch holds its start (models are loaded, caches are cold), so later ones count
 * as soon as there are any. */
bool dispatch_rate_is_rough(const struct core *c)
{
	return c->pace.ms <= 0;
}

double dispatch_rate(const struct core *c)
{
	const struct pace *pace = dispatch_rate_is_rough(c) ? &c->first_pace : &c->pace;

	return pace->ms > 0 ? pace->weight * 1000 / pace->ms : 0;
}

/* One that is certainly not too low: where later results of a first batch are known, as if the
 * start had ended with its first one. */
double dispatch_rate_at_best(const struct core *c)
{
	double rate = dispatch_rate(c);

	if (!dispatch_rate_is_rough(c))
		return rate;
	double measured = speed_rate(c);
	if (measured > 0)
		return MAX(rate, measured);
	return c->warm_pace.weight > 0
		       ? MAX(rate, c->warm_pace.weight * 1000 / MAX(c->warm_pace.ms, 1))
		       : rate * FIRST_BATCH_SLOWER;
}

double dispatch_held(const struct core *c)
{
	double held = 0;

	for (size_t i = c->first_open; i < c->batch_count; i++)
		if (!c->batches[i].over)
			held += c->batches[i].weight - c->batches[i].rendered;
	return held;
}

void dispatch_requeue(struct core *c, uint32_t i)
{
	make_todo(c, i);
}

/* A segment is lost with its pod at most LOSSES_MAX times: something about it may be what kills
 * pods. */
static void requeue_lost(struct core *c, uint32_t i)
{
	if (++c->segs[i].losses >= LOSSES_MAX)
		settle(c, i, SEG_FAILED);
	else
		make_todo(c, i);
}

/* ---- batches ---- */

static uint32_t new_batch(struct core *c, int pod)
{
	while (c->first_open < c->batch_count && c->batches[c->first_open].over)
		c->first_open++;
	GROW(c->batches, c->batch_count, c->batch_cap);
	c->batches[c->batch_count] = (struct core_batch){.pod = pod};
	return (uint32_t)c->batch_count++;
}

static void add_to_batch(struct core *c, uint32_t batch, uint32_t i)
{
	struct core_batch *b = &c->batches[batch];

	take_todo(c, i, SEG_HELD, b->pod);
	c->segs[i].batch = batch;
	b->segments = xrealloc(b->segments, (b->count + 1) * sizeof(*b->segments));
	b->segments[b->count++] = i;
	b->weight += c->segs[i].weight;
}

static void send_batch(struct core *c, uint32_t batch)
{
	struct core_batch *b = &c->batches[batch];

	c->pods[b->pod].batches++;
	c->pods[b->pod].syncing = false; /* what was made durable was not all */
	c->pods[b->pod].alone = c->pods[b->pod].alone_said = false;
	core_act(c, ACT_SEND, b->pod)->batch = batch;
}

/* Workers that could share what is left, those still on their way included. */
static int worker_slots(const struct core *c)
{
	int slots = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (pod_active(p) && !p->draining)
			slots += p->workers_ready ? p->workers_ready : c->conf.workers;
	}
	return slots ? slots : 1;
}

/* How many segments a batch for this pod may have. An engine that renders one after the other gains
 * nothing from more than the job names. */
size_t dispatch_batch_most(const struct core *c, const struct core_pod *p)
{
	int most = c->conf.max_batch;

	if (p->max_batch > 0 &&
	    (p->max_batch < most || (p->batching != BATCHING_NONE && !c->conf.max_batch_is_cap)))
		most = p->max_batch;
	return (size_t)MAX(most, 1);
}

/* By the line through what batches of different sizes took: what a batch costs by itself, in weight
 * that its time would render. 0: nothing is known, or next to nothing is fixed. */
static double fixed_weight(const struct core *c)
{
	const struct fit *f = &c->fit;
	double spread = f->count * f->weight2 - f->weight * f->weight;

	if (f->count < 1 || spread < f->weight * f->weight / 100) /* a tenth of their mean */
		return 0;
	double each = (f->count * f->weight_ms - f->weight * f->ms) / spread,
	       fixed = (f->ms - each * f->weight) / f->count;
	if (fixed <= 0)
		return 0;
	return each > 0 ? fixed / each : c->weight_todo;
}

/* Segments in the next batch for an engine that renders all of it at once: full ones while there is
 * more than one for each worker, then even shares, so that all workers finish together. Batches
 * that were given are counted, since a share is one of a round. No share is so small that most of
 * its time goes into what a batch costs by itself. */
static size_t padded_count(const struct core *c, const struct core_pod *p)
{
	size_t most = dispatch_batch_most(c, p), slots = (size_t)worker_slots(c);
	size_t batches = (c->todo + most - 1) / most, fewest = batches;

	while ((c->padded + batches) % slots)
		batches++;
	double fixed = fixed_weight(c);
	if (fixed > 0)
		batches = MAX(fewest, MIN(batches, (size_t)(c->weight_todo / fixed)));
	return MIN((c->todo + batches - 1) / batches, most);
}

/* The size of a batch of which three quarters of the time go into its segments, where each batch
 * costs something by itself, as it does with engines that render all of it at once: by the line
 * through what batches of different sizes took. 0: nothing is known. */
static double worthwhile_weight(const struct core *c)
{
	if (c->fit.count <= 0)
		return c->weight_todo; /* nothing is known yet, and a small batch would teach little
					*/
	return MIN(3 * fixed_weight(c), c->weight_todo);
}

static void note_size(struct core *c, const struct core_batch *b, double ms)
{
	struct fit *f = &c->fit;

	if (b->first || c->pods[b->pod].batching == BATCHING_CONTINUOUS)
		return; /* the time of one that others were rendered beside says nothing */
	*f = (struct fit){f->count * 0.9 + 1, f->weight * 0.9 + b->weight, f->ms * 0.9 + ms,
			  f->weight2 * 0.9 + b->weight * b->weight,
			  f->weight_ms * 0.9 + b->weight * ms};
}

/* A share of what is left, so that sizes shrink toward the end and all workers finish together. It
 * is not so small that the round trips show, and not so large that a lost pod hurts. A single
 * worker has no other worker to finish together with: small batches would only slow an engine that
 * renders a whole batch at once. */
static double batch_weight(const struct core *c)
{
	int slots = worker_slots(c);
	double weight = slots == 1 && c->canary_ok && dispatch_rate(c) > 0
				? c->weight_todo
				: c->weight_todo / (3.0 * slots);
	double rate = dispatch_rate(c);

	weight = MAX(weight, MIN(worthwhile_weight(c), c->weight_todo / slots));
	/* The first pod gets its share, in two batches, until it is known how many others are worth
	 * it: they are rented only then. */
	if (c->conf.canary && c->conf.pods > 1 && dispatch_rate_is_rough(c))
		weight = MIN(weight,
			     c->weight_todo / (2.0 * c->conf.pods * MAX(c->conf.workers, 1)));
	if (rate > 0) {
		weight = MIN(weight, rate * 20);
		weight = MAX(weight, rate * 0.25);
	}
	return weight;
}

/* ---- engines that take segments while they render others ---- */

/* Several batches share a worker's places, so that one ends, and another one can follow, well
 * before all places are free. */
static size_t continuous_batch(const struct core *c, const struct core_pod *p)
{
	return MAX(dispatch_batch_most(c, p) / CONTINUOUS_BATCHES, (size_t)1);
}

/* How many segments the pod should hold: its workers' places, and half as many that wait there, so
 * that a worker that asks is answered at once; toward the end no more than its share. */
static size_t continuous_hold(const struct core *c, const struct core_pod *p)
{
	size_t workers = (size_t)MAX(p->workers_ready, 1),
	       places = dispatch_batch_most(c, p) * workers, left = c->todo;
	size_t slots = (size_t)worker_slots(c);

	for (int i = 0; i < c->pod_count; i++)
		left += pod_active(&c->pods[i]) ? c->pods[i].held : 0;
	return MIN(places + (places + 1) / 2, (left + slots - 1) / slots * workers);
}

/* A batch is sent when there is room for all of it. A pod with nothing to do gets what is left,
 * whatever its share. */
static bool continuous_wants(const struct core *c, const struct core_pod *p)
{
	size_t hold = continuous_hold(c, p), next = MIN(continuous_batch(c, p), c->todo);

	return !p->held || p->held + next <= hold;
}

static size_t continuous_count(const struct core *c, const struct core_pod *p)
{
	return MAX(MIN(continuous_batch(c, p), continuous_hold(c, p)), (size_t)1);
}

static size_t batch_count(const struct core *c, const struct core_pod *p)
{
	switch (p->batching) {
	case BATCHING_PADDED: return padded_count(c, p);
	case BATCHING_CONTINUOUS: return continuous_count(c, p);
	case BATCHING_NONE: break;
	}
	return dispatch_batch_most(c, p);
}

static struct heap *pick_group(struct core *c, struct core_pod *p)
{
	if (p->last_group < c->heap_count && heap_top(c, &c->heaps[p->last_group]) >= 0)
		return &c->heaps[p->last_group];
	struct heap *best = NULL;
	for (uint32_t g = 0; g < c->heap_count; g++)
		if (heap_top(c, &c->heaps[g]) >= 0 && (!best || c->heaps[g].weight > best->weight))
			best = &c->heaps[g];
	if (best)
		p->last_group = (uint32_t)(best - c->heaps);
	return best;
}

static bool send_next(struct core *c, int pod)
{
	struct heap *h = pick_group(c, &c->pods[pod]);
	if (!h)
		return false;
	enum batching batching = c->pods[pod].batching;
	size_t count = batch_count(c, &c->pods[pod]);
	double most = batching == BATCHING_NONE ? batch_weight(c) : c->weight_todo, longest = 0;
	uint32_t batch = new_batch(c, pod);

	for (int64_t i; (i = heap_top(c, h)) >= 0;) {
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

static void send_canary(struct core *c, int pod)
{
	uint32_t batch = new_batch(c, pod);
	size_t most = MIN((size_t)CORE_CANARY, dispatch_batch_most(c, &c->pods[pod]));

	for (uint32_t i = 0; i < c->seg_count && c->batches[batch].count < most; i++)
		if (c->segs[i].state == SEG_TODO)
			add_to_batch(c, batch, i);
	c->canary_sent = true;
	c->canary_batch = batch;
	send_batch(c, batch);
}

/* The next of the sizes that the caller wants. */
static void send_given(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	size_t at = MIN(p->given, c->conf.batch_size_count - 1),
	       most = MIN((size_t)MAX(c->conf.batch_sizes[at], 1), dispatch_batch_most(c, p));

	p->given++;
	for (int worker = 0; worker < MAX(p->workers_ready, 1) && c->todo; worker++) {
		uint32_t batch = new_batch(c, pod);
		for (uint32_t i = 0; i < c->seg_count && c->batches[batch].count < most; i++)
			if (c->segs[i].state == SEG_TODO)
				add_to_batch(c, batch, i);
		send_batch(c, batch);
	}
}

static bool wants_more(const struct core *c, const struct core_pod *p)
{
	if (p->batching == BATCHING_CONTINUOUS)
		return continuous_wants(c, p);
	/* one batch in each worker's hands and one waiting behind it, so that no worker waits for a
	 * round trip */
	return p->batches < (c->conf.command ? 1 : 2 * MAX(p->workers_ready, 1));
}

void dispatch_fill(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->phase != POD_WORKING || !p->connected || p->unwanted || p->draining ||
	    core_stopping(c) || core_reads_old(c))
		return;
	if (c->conf.batch_size_count) {
		if (!p->batches && c->todo)
			send_given(c, pod);
		return;
	}
	if (!c->canary_ok) {
		if (!c->canary_sent && c->todo)
			send_canary(c, pod);
		if (!c->canary_sent || !c->batches[c->canary_batch].over ||
		    c->batches[c->canary_batch].pod != pod)
			return;
	}
	while (c->todo && wants_more(c, p) && send_next(c, pod))
		;
}

/* Everything that is left, dealt out evenly to the pods that work: afterwards they need us no more.
 */
void dispatch_deal(struct core *c)
{
	bool dealt = true;

	while (c->todo && dealt) {
		dealt = false;
		for (int i = 0; i < c->pod_count && c->todo; i++)
			if (c->pods[i].phase == POD_WORKING && c->pods[i].connected &&
			    !c->pods[i].unwanted && !c->pods[i].draining)
				dealt = send_next(c, i) || dealt;
	}
}

static struct core_batch *batch_of(struct core *c, const struct event *ev)
{
	if (ev->batch >= c->batch_count || c->batches[ev->batch].pod != ev->pod)
		return NULL;
	return &c->batches[ev->batch];
}

static void count_busy(struct core_pod *p, int64_t t, int change)
{
	if (p->adopted && !p->recounted) {
		/* the ledger's figure was of the time when its row was written; now all of its log
		 * is read */
		p->recounted = true;
		p->compute_ms = 0;
	}
	p->last_t = MAX(p->last_t, t);
	if (p->busy == 0 && change > 0)
		p->busy_since_t = p->last_t;
	p->busy += change;
	if (p->busy == 0 && change < 0)
		p->compute_ms += p->last_t - p->busy_since_t;
	if (p->busy < 0)
		p->busy = 0;
}

/* What a pod that is taken over has in hand is not dealt out again: it counts as one batch, begun.
 */
void dispatch_running(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];

	if (!p->adopted || p->phase != POD_CONNECTING || p->unwanted ||
	    c->segs[ev->segment].state != SEG_TODO)
		return;
	p->last_t = MAX(p->last_t, ev->t);
	if (!p->inherited) {
		p->inherited = new_batch(c, ev->pod) + 1;
		c->batches[p->inherited - 1].started = true;
		c->batches[p->inherited - 1].started_t = ev->t;
		c->batches[p->inherited - 1].first = true; /* when it really began is not known */
		p->batches++;
	}
	add_to_batch(c, p->inherited - 1, ev->segment);
}

/* The agent knows it as batches of another client, so it is over when the last of its segments is.
 */
static void after_inherited(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (!p->inherited)
		return;
	struct core_batch *b = &c->batches[p->inherited - 1];
	for (size_t i = 0; i < b->count; i++) {
		const struct seg *s = &c->segs[b->segments[i]];
		if (s->state == SEG_HELD && s->pod == pod && s->batch == p->inherited - 1)
			return;
	}
	b->over = true;
	p->inherited = 0;
	p->batches--;
	p->worked_at = c->now;
	pod_after_work(c, pod);
}

void dispatch_started(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_of(c, ev);

	if (b && (b->over || b->started))
		return;
	count_busy(&c->pods[ev->pod], ev->t, 1);
	if (b) {
		b->started = true;
		b->started_t = ev->t;
		b->first = c->pods[ev->pod].begun++ < MAX(c->pods[ev->pod].workers_ready, 1);
	}
}

/* So much more of a batch is rendered. Before its end it counts when half of it is, and came bit by
 * bit: an engine may announce all of its results at the end, and the first of these would look as
 * if it had taken all the time. */
static void measure(struct core *c, struct core_batch *b, double weight, int64_t t)
{
	struct pace *pace = b->first ? &c->first_pace : &c->pace;

	b->rendered = MIN(b->rendered + weight, b->weight);
	if (b->first && b->result_t && !b->over) {
		c->warm_pace.weight += weight;
		c->warm_pace.ms += (double)MAX(t - b->newest_t, 0);
	}
	b->newest_t = t;
	b->result_t = b->result_t ? b->result_t : t;
	if (!b->over && (b->rendered * 2 < b->weight || (t - b->result_t) * 4 < t - b->started_t))
		return;
	/* older measurements fade, so that the estimate follows a pod that slows down */
	if (!b->measured_t) {
		pace->weight *= 0.9;
		pace->ms *= 0.9;
		b->measured_t = b->started_t;
	}
	pace->weight += b->rendered - b->measured;
	pace->ms += (double)MAX(t - b->measured_t, 0);
	b->measured = b->rendered;
	b->measured_t = MAX(t, b->measured_t);
	/* another pod may be worth it now, or not any more */
	c->dirty = c->dirty || c->conf.pods > 1;
}

/* Finished, and in no measurement yet. */
static void count_unpaced(struct core_pod *p, double weight)
{
	if (!p->unpaced)
		p->unpaced_t = MAX(p->unpaced_t, p->busy_since_t);
	p->unpaced++;
	p->unpaced_weight += weight;
}

/* Batches of a continuous engine overlap, so what counts is what its pod finishes in a time. The
 * first ones come all at once, after the time that one segment takes: they count when its places
 * have been filled once. */
static void measure_continuous(struct core *c, struct core_pod *p, struct core_batch *b,
			       double weight, int64_t t)
{
	int workers = MAX(p->workers_ready, 1);

	b->rendered = MIN(b->rendered + weight, b->weight);
	count_unpaced(p, weight);
	if (p->unpaced < dispatch_batch_most(c, p) * (size_t)workers)
		return;
	c->pace.weight = c->pace.weight * 0.9 + p->unpaced_weight;
	int64_t ms = MAX(t - p->unpaced_t, 1) * workers;
	c->pace.ms = c->pace.ms * 0.9 + (double)ms;
	forecast_measured_beside(c, p, p->unpaced, p->unpaced_weight, ms);
	p->unpaced = 0;
	p->unpaced_weight = 0;
	p->unpaced_t = t;
	c->dirty = c->dirty || c->conf.pods > 1;
}

/* The batch of a segment that its pod holds, while it is rendered; else NULL. */
static struct core_batch *batch_in_hand(const struct core *c, const struct event *ev)
{
	struct core_batch *b = &c->batches[c->segs[ev->segment].batch];

	return b->pod == ev->pod && b->started && !b->over ? b : NULL;
}

/* It took time as well, which the next result of its batch includes. */
static void measure_failed(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_in_hand(c, ev);
	struct core_pod *p = &c->pods[ev->pod];
	double weight = c->segs[ev->segment].weight;

	if (!b)
		return;
	b->rendered = MIN(b->rendered + weight, b->weight);
	if (b->first && b->result_t)
		c->warm_pace.weight += weight;
	if (p->batching == BATCHING_CONTINUOUS && !b->first)
		count_unpaced(p, weight);
}

static void measure_segment(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_in_hand(c, ev);
	struct core_pod *p = &c->pods[ev->pod];

	if (!b)
		return;
	if (p->batching == BATCHING_CONTINUOUS && !b->first)
		measure_continuous(c, p, b, c->segs[ev->segment].weight, ev->t);
	else
		measure(c, b, c->segs[ev->segment].weight, ev->t);
}

void dispatch_done(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];
	struct core_batch *b = batch_of(c, ev);

	if (!b) { /* of an earlier life of this run */
		count_busy(p, ev->t, -1);
		return;
	}
	if (b->over)
		return;
	b->over = true;
	p->batches--;
	if (b->started) {
		count_busy(p, ev->t, -1);
		if (p->batching != BATCHING_CONTINUOUS || b->first)
			measure(c, b, b->weight - b->rendered, ev->t);
		note_size(c, b, (double)(ev->t - b->started_t));
		forecast_measured(c, b, ev->t - b->started_t);
	}
	if (b->started && c->canary_sent && ev->batch == c->canary_batch)
		speed_judge_canary(c, b, ev->t - b->started_t);
	/* what the batch did not account for goes round again (the agent reports each segment, so
	 * this is a rare thing) */
	for (size_t i = 0; i < b->count; i++) {
		struct seg *s = &c->segs[b->segments[i]];
		if (s->state == SEG_HELD && s->pod == ev->pod && s->batch == ev->batch)
			requeue_lost(c, b->segments[i]);
	}
	p->worked_at = c->now;
	pod_after_work(c, ev->pod);
}

void dispatch_revoked(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_of(c, ev);

	if (!b || b->over)
		return;
	b->over = true;
	c->pods[ev->pod].batches--;
	for (size_t i = 0; i < b->count; i++) {
		struct seg *s = &c->segs[b->segments[i]];
		if (s->state == SEG_HELD && s->batch == ev->batch)
			make_todo(c, b->segments[i]);
	}
	pod_after_work(c, ev->pod);
}

/* ---- from rendered to safe ---- */

/* The first good file opens the way for more pods; as many bad ones as the canary has segments end
 * the run. */
static void canary_word(struct core *c, uint32_t i, bool good)
{
	struct err err;

	if (c->canary_ok)
		return;
	if (good) {
		c->canary_ok = true;
		c->dirty = true;
		return;
	}
	if (++c->canary_bad < MIN((size_t)CORE_CANARY, c->seg_count - c->cached))
		return;
	c->canary_bad_all = true;
	err_set(&err, ERR_JOB, "the first segments all failed: stopped while it is cheap");
	core_fault(c, c->segs[i].pod, &err);
}

static void ask_file(struct core *c, int pod, uint32_t i)
{
	c->segs[i].fetching = true;
	core_act(c, ACT_FETCH, pod)->segment = i;
}

void dispatch_rendered(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];
	struct core_pod *p = &c->pods[ev->pod];

	p->last_t = MAX(p->last_t, ev->t);
	bool held_here = s->state == SEG_HELD && s->pod == ev->pod;
	if (s->cached)
		return; /* safe from an earlier life of this run: read once more */
	bool reachable = p->via_volume || (p->phase >= POD_CONNECTING && p->phase <= POD_WORKING);
	if (s->pod == ev->pod && (s->state == SEG_RENDERED || s->state == SEG_SAFE))
		return; /* read a second time from its log */
	if (held_here)
		measure_segment(c, ev);
	if (s->state == SEG_TODO && reachable) {
		/* rendered by an earlier life of this run */
		take_todo(c, ev->segment, SEG_HELD, ev->pod);
		held_here = true;
	}
	if (!held_here) {
		/* another pod has it or has done it, or its file cannot be fetched */
		p->wasted_ms += ev->elapsed_ms;
		return;
	}
	leave_pod(c, s);
	s->state = SEG_RENDERED;
	s->arrived = s->fetching = false;
	s->fetch_tries = 0;
	s->elapsed_ms = (uint32_t)MIN(ev->elapsed_ms, UINT32_MAX);
	p->unhome++;
	p->kept = c->kept_something = true;
	if (p->connected || p->via_volume)
		ask_file(c, ev->pod, ev->segment);
	after_inherited(c, ev->pod);
	if (p->batching == BATCHING_CONTINUOUS)
		dispatch_fill(c, ev->pod); /* its worker has room for another one by now */
}

static void fail_segment(struct core *c, uint32_t i)
{
	settle(c, i, SEG_FAILED);
	canary_word(c, i, false);
}

void dispatch_failed(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];

	if ((s->state != SEG_HELD && s->state != SEG_TODO) ||
	    (s->state == SEG_HELD && s->pod != ev->pod))
		return;
	if (s->state == SEG_HELD)
		measure_failed(c, ev);
	bool file_trouble = ev->err->kind == ERR_UNTRUSTED || ev->err->kind == ERR_NOT_FOUND;
	if (file_trouble && ++s->home_tries < HOME_TRIES_MAX) {
		if (s->state == SEG_HELD)
			make_todo(c, ev->segment);
	} else {
		fail_segment(c, ev->segment);
		c->pods[ev->pod].failed_here = true;
	}
	after_inherited(c, ev->pod);
	pod_after_work(c, ev->pod);
}

static bool on_its_way(const struct core *c, const struct event *ev)
{
	const struct seg *s = &c->segs[ev->segment];

	return s->state == SEG_RENDERED && s->pod == ev->pod && !s->arrived;
}

static void render_again(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];

	p->unhome--;
	p->wasted_ms += c->segs[ev->segment].elapsed_ms;
	make_todo(c, ev->segment);
	c->dirty = true;
	pod_after_work(c, ev->pod);
}

void dispatch_home(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];

	if (!on_its_way(c, ev))
		return;
	s->fetching = false;
	bool again = !ev->check_ok && s->tries + 1 < c->conf.check_tries && !core_stopping(c);
	if (again) {
		s->tries++;
		core_act(c, ACT_DISCARD, ev->pod)->segment = ev->segment;
		render_again(c, ev);
		return;
	}
	s->arrived = true;
	s->suspect = !ev->check_ok;
	struct action *a = core_act(c, ACT_KEEP, ev->pod);
	a->segment = ev->segment;
	a->flag = !ev->check_ok;
}

/* One segment's file may be spoilt by its worker; when it is one after the other, the pod is. */
static void count_bad_file(struct core *c, struct core_pod *p, const struct event *ev)
{
	if (p->phase >= POD_RELEASING || ++p->bad_files < BAD_FILES_MAX)
		return;
	pod_bad_host(c, ev->pod, "its files do not match what it announced");
	pod_let_go(c, ev->pod, ERR_UNTRUSTED, "its files do not match what it announces: %s",
		   ev->err->msg);
}

void dispatch_home_failed(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];
	struct core_pod *p = &c->pods[ev->pod];

	if (s->state != SEG_RENDERED || s->pod != ev->pod)
		return;
	if (ev->err->kind == ERR_LOCAL) {
		core_fault(c, ev->pod, ev->err);
		p->unhome--;
		make_todo(c, ev->segment);
		pod_after_work(c, ev->pod);
		return;
	}
	/* its name cannot be stored here: a render on another pod would have the same name */
	if (ev->err->kind == ERR_JOB) {
		p->unhome--;
		p->failed_here = true;
		fail_segment(c, ev->segment);
		pod_after_work(c, ev->pod);
		return;
	}
	if (s->arrived)
		return;
	s->fetching = false;
	if (p->durable && p->via_volume && c->now < p->rescue_until &&
	    (ev->err->kind != ERR_UNTRUSTED || ++s->fetch_tries < FETCH_TRIES_MAX)) {
		pod_file_delayed(c, ev->pod);
		return;
	}
	if (p->durable && p->via_volume && ev->err->kind != ERR_UNTRUSTED) {
		p->unhome--;
		fail_segment(c, ev->segment); /* it can be fetched later */
		return;
	}
	bool drop = ev->err->kind == ERR_NETWORK || ev->err->kind == ERR_TRANSIENT;
	if (drop && !p->via_volume && !p->connected)
		return; /* asked for again when the connection is back: pod.c */
	if (drop && ++s->fetch_tries < FETCH_TRIES_MAX) {
		if (s->fetch_tries == 1)
			ask_file(c, ev->pod, ev->segment);
		else
			pod_file_delayed(c, ev->pod); /* what broke twice may need a moment */
		return;
	}
	bool first = s->home_tries == 0;
	if (++s->home_tries < HOME_TRIES_MAX) {
		render_again(c, ev);
		if (first)
			count_bad_file(c, p, ev);
		return;
	}
	p->unhome--;
	fail_segment(c, ev->segment);
	pod_after_work(c, ev->pod);
}

void dispatch_safe(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];

	if (s->state != SEG_RENDERED)
		return;
	int pod = s->pod;
	settle(c, ev->segment, SEG_SAFE);
	c->pods[pod].unhome--;
	c->pods[pod].safe_at = c->now;
	c->pods[pod].bad_files = 0;
	pod_file_came(c, pod);
	c->pod_failures = 0;
	canary_word(c, ev->segment, !s->suspect);
	pod_after_work(c, pod);
}

void dispatch_forget_fetches(struct core *c, int pod)
{
	for (uint32_t i = 0; c->pods[pod].unhome > 0 && i < c->seg_count; i++)
		if (c->segs[i].pod == pod)
			c->segs[i].fetching = false;
}

void dispatch_refetch(struct core *c, int pod)
{
	for (uint32_t i = 0; c->pods[pod].unhome > 0 && i < c->seg_count; i++) {
		const struct seg *s = &c->segs[i];
		if (s->state == SEG_RENDERED && s->pod == pod && !s->arrived && !s->fetching)
			ask_file(c, pod, i);
	}
}

void dispatch_resend(struct core *c, int pod)
{
	for (uint32_t i = 0; c->pods[pod].batches > 0 && i < c->batch_count; i++)
		if (c->batches[i].pod == pod && !c->batches[i].started && !c->batches[i].over)
			core_act(c, ACT_SEND, pod)->batch = i;
}

/* Batches cut off count as wasted from their start to the last sign of life. */
static void cut_batches(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	int64_t all_ms = 0, longest_ms = 0;

	for (size_t i = 0; p->batches > 0 && i < c->batch_count; i++) {
		struct core_batch *b = &c->batches[i];
		if (b->pod != pod || b->over)
			continue;
		b->over = true;
		int64_t ms = b->started ? p->last_t - b->started_t : 0;
		all_ms += ms;
		longest_ms = MAX(longest_ms, ms);
	}
	/* which were rendered side by side */
	p->wasted_ms += p->batching == BATCHING_CONTINUOUS ? longest_ms : all_ms;
	if (c->canary_sent && !c->canary_ok && c->batches[c->canary_batch].pod == pod)
		c->canary_sent = false; /* the next pod begins with one */
	p->compute_ms = core_compute_ms(p);
	p->busy = 0;
	p->batches = 0;
	p->inherited = 0;
}

void dispatch_lost(struct core *c, int pod)
{
	bool holds = c->pods[pod].batches > 0;

	cut_batches(c, pod);
	c->dirty = true;
	for (uint32_t i = 0; holds && i < c->seg_count; i++) {
		struct seg *s = &c->segs[i];
		if (s->pod != pod || s->state != SEG_HELD)
			continue;
		if (c->batches[s->batch].started)
			requeue_lost(c, i);
		else
			make_todo(c, i); /* it cannot be what ended the pod */
	}
}

/* Its finished files cannot be fetched (any more) either. */
void dispatch_lost_files(struct core *c, int pod)
{
	for (uint32_t i = 0; c->pods[pod].unhome > 0 && i < c->seg_count; i++) {
		struct seg *s = &c->segs[i];
		if (s->pod != pod || s->state != SEG_RENDERED || s->arrived)
			continue;
		c->pods[pod].wasted_ms += s->elapsed_ms;
		c->pods[pod].unhome--;
		requeue_lost(c, i);
	}
	c->dirty = true;
}
