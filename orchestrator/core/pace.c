/* pace.c - how quickly batches are rendered, as this run has measured it. */
#include "impl.h"

/* A worker's first batch includes its start (it loads models, caches are cold), so later batches
 * count as soon as there are any. */
bool pace_is_rough(const struct core *c)
{
	return c->pace.ms <= 0;
}

double pace_rate(const struct core *c)
{
	const struct pace *pace = pace_is_rough(c) ? &c->first_pace : &c->pace;

	return pace->ms > 0 ? pace->weight * 1000 / pace->ms : 0;
}

/* An upper bound: if later results of a first batch are known, the start counts until its first
 * result only. */
double pace_at_best(const struct core *c)
{
	double rate = pace_rate(c);

	if (!pace_is_rough(c))
		return rate;
	double measured = speed_rate(c);
	if (measured > 0)
		return MAX(rate, measured);
	return c->warm_pace.weight > 0
		       ? MAX(rate, c->warm_pace.weight * 1000 / MAX(c->warm_pace.ms, 1))
		       : rate * FIRST_BATCH_SLOWER;
}

double pace_weight_held(const struct core *c)
{
	double held = 0;

	for (size_t i = c->first_open; i < c->batch_count; i++)
		if (!c->batches[i].over)
			held += c->batches[i].weight - c->batches[i].rendered;
	return held;
}

/* Fits a line through the times of batches of different sizes: a batch's own cost, as the weight
 * that its time would render. 0: unknown, or hardly anything is fixed. */
double pace_fixed_weight(const struct core *c)
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

void pace_note_size(struct core *c, const struct core_batch *b, double ms)
{
	struct fit *f = &c->fit;

	if (b->first || c->pods[b->pod].workload.batching == BATCHING_CONTINUOUS)
		return; /* batches rendered beside it distort its time */
	*f = (struct fit){f->count * 0.9 + 1, f->weight * 0.9 + b->weight, f->ms * 0.9 + ms,
			  f->weight2 * 0.9 + b->weight * b->weight,
			  f->weight_ms * 0.9 + b->weight * ms};
}

/* More of a batch is rendered. Before its end it counts once half of it is rendered and results
 * came one by one: an engine may report all results at the end, and the first of them would seem to
 * have taken the whole time. */
void pace_batch(struct core *c, struct core_batch *b, double weight, int64_t t)
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
	/* older measurements decay, so that the estimate follows a pod that slows down */
	if (!b->measured_t) {
		pace->weight *= 0.9;
		pace->ms *= 0.9;
		b->measured_t = b->started_t;
	}
	pace->weight += b->rendered - b->measured;
	pace->ms += (double)MAX(t - b->measured_t, 0);
	b->measured = b->rendered;
	b->measured_t = MAX(t, b->measured_t);
	/* whether another pod pays may have changed */
	c->dirty = c->dirty || c->conf.pods > 1;
}

/* Finished, but not measured yet. */
static void count_unpaced(struct core_pod *p, double weight)
{
	if (!p->workload.unpaced)
		p->workload.unpaced_t = MAX(p->workload.unpaced_t, p->workload.busy_since_t);
	p->workload.unpaced++;
	p->workload.unpaced_weight += weight;
}

/* Batches of a continuous engine overlap, so the pod's output over time counts. Its first results
 * arrive together after one segment's time, so the measurement starts when its places have been
 * filled once. */
static void measure_continuous(struct core *c, struct core_pod *p, struct core_batch *b,
			       double weight, int64_t t)
{
	int workers = MAX(p->workload.workers_ready, 1);

	b->rendered = MIN(b->rendered + weight, b->weight);
	count_unpaced(p, weight);
	if (p->workload.unpaced < speed_batch_most(c, p) * (size_t)workers)
		return;
	c->pace.weight = c->pace.weight * 0.9 + p->workload.unpaced_weight;
	int64_t ms = MAX(t - p->workload.unpaced_t, 1) * workers;
	c->pace.ms = c->pace.ms * 0.9 + (double)ms;
	forecast_measured_beside(c, p, p->workload.unpaced, p->workload.unpaced_weight, ms);
	p->workload.unpaced = 0;
	p->workload.unpaced_weight = 0;
	p->workload.unpaced_t = t;
	c->dirty = c->dirty || c->conf.pods > 1;
}

/* The batch of a segment that its pod holds, while it is rendered; else NULL. */
static struct core_batch *batch_in_hand(const struct core *c, const struct event *ev)
{
	struct core_batch *b = &c->batches[c->segs[ev->segment].batch];

	return b->pod == ev->pod && b->started && !b->over ? b : NULL;
}

/* A failed segment took time as well; the next result of its batch includes it. */
void pace_failed(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_in_hand(c, ev);
	struct core_pod *p = &c->pods[ev->pod];
	double weight = c->segs[ev->segment].weight;

	if (!b)
		return;
	b->rendered = MIN(b->rendered + weight, b->weight);
	if (b->first && b->result_t)
		c->warm_pace.weight += weight;
	if (p->workload.batching == BATCHING_CONTINUOUS && !b->first)
		count_unpaced(p, weight);
}

void pace_segment(struct core *c, const struct event *ev)
{
	struct core_batch *b = batch_in_hand(c, ev);
	struct core_pod *p = &c->pods[ev->pod];

	if (!b)
		return;
	if (p->workload.batching == BATCHING_CONTINUOUS && !b->first)
		measure_continuous(c, p, b, c->segs[ev->segment].weight, ev->t);
	else
		pace_batch(c, b, c->segs[ev->segment].weight, ev->t);
}
