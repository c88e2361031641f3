/* choose.c - computes offers, widths and batch sizes, and picks the plan that meets the user's
 * goal */
#include "choose.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cost.h"

/* ---- choose ----
 * Computes offers, widths and batch sizes, and picks the plan that meets the user's goal. */

static int longest_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* Mean, over batches of this size, of the longest length in each. sorted: the longest first. */
static double mean_of_longest(const double *sorted, size_t count, size_t size)
{
	double sum = 0;
	size_t batches = 0;

	for (size_t first = 0; first < count; first += size, batches++)
		sum += sorted[first];
	return sum / (double)batches;
}

void plan_work_init(struct plan_work *w, double *lengths, size_t count, int batch_max,
		    double audio_s)
{
	*w = (struct plan_work){.count = count, .audio_s = audio_s};
	qsort(lengths, count, sizeof(*lengths), longest_first);
	for (size_t i = 0; i < count; i++)
		w->sum += lengths[i];
	w->longest_one = count ? lengths[0] : 0;
	w->few_least[0] = INFINITY;
	for (size_t batches = 1; batches <= PLAN_FEW_BATCHES && count; batches++) {
		w->few[batches] = mean_of_longest(lengths, count, (count + batches - 1) / batches);
		w->few_least[batches] = MIN(w->few[batches], w->few_least[batches - 1]);
	}
	int most = (int)MIN((size_t)MAX(batch_max, 1), MAX(count, 1));
	for (int b = 1; w->sizes < PLAN_BATCHES_MAX; b = MIN(b * 2, most)) {
		int i = w->sizes++;
		w->size[i] = b;
		for (size_t first = 0; first < count; first += (size_t)b)
			w->longest[i] += lengths[first];
		for (size_t one = 0; one < count && one < (size_t)b; one++)
			w->heaviest[i] += lengths[one];
		if (b >= most)
			break;
	}
}

/* ---- one plan ---- */

static double mean_length(const struct plan_work *w)
{
	return w->count ? w->sum / (double)w->count : 0;
}

/* Interpolates between the known batch sizes along straight lines. */
static double between_sizes(const struct plan_work *w, double batch,
			    double (*of)(const struct plan_work *w, int size))
{
	int above = 0;

	while (above + 1 < w->sizes && w->size[above] < batch)
		above++;
	if (!above || w->size[above] <= batch)
		return of(w, above);
	int below = above - 1;
	double part = (batch - w->size[below]) / (w->size[above] - w->size[below]);
	return of(w, below) + part * (of(w, above) - of(w, below));
}

/* The longest segment of a batch, the mean over all batches. */
static double mean_longest(const struct plan_work *w, int size)
{
	return w->longest[size] / ceil((double)w->count / w->size[size]);
}

static double heaviest_batch(const struct plan_work *w, int size)
{
	return w->heaviest[size];
}

/* How a pool of workers shares the segments: rounds of batches of one size, at most `most`. */
struct rounds {
	double rounds;  /* batches that each worker renders in turn */
	double batches; /* of all workers */
	double batch;   /* segments in each */
};

static struct rounds share_evenly(size_t count, int workers, int most)
{
	struct rounds r = {.rounds = ceil((double)count / ((double)most * workers))};

	r.batches = MIN(r.rounds * workers, (double)count);
	r.batch = r.batches > 0 ? ceil((double)count / r.batches) : 0;
	return r;
}

/* The mean length of a batch's longest segment. Few batches differ from each other, so their exact
 * lengths are used. */
static double longest_of(const struct plan_work *w, const struct rounds *r)
{
	return r->batches <= PLAN_FEW_BATCHES ? w->few[(int)r->batches]
					      : between_sizes(w, r->batch, mean_longest);
}

/* Seconds of all batches together. share: of the segments, the part that they hold. */
static double all_batches_s(const struct plan_work *w, const struct speed *s,
			    const struct rounds *r, double share)
{
	return r->batches * (s->once_s + s->longest_s * longest_of(w, r)) +
	       s->each_s * w->sum * share;
}

/* A few segments in the order of the script: their longest is a little longer than the mean. */
#define CANARY_LONGEST 1.25

/* How many segments are in the canary: one batch, so no more than a worker takes. */
static size_t canary_count(const struct plan_work *w, const struct plan_machine *m,
			   const struct plan_wish *wish)
{
	return w->count > (size_t)wish->canary ? (size_t)MIN(wish->canary, m->batch_max) : 0;
}

static double canary_s(const struct plan_work *w, const struct plan_machine *m, size_t count)
{
	const double mean = mean_length(w);

	return count ? speed_batch_s(&m->speed, MIN(mean * CANARY_LONGEST, w->longest_one),
				     mean * (double)count)
		     : 0;
}

/* The segments that are rendered before all others. Where all pods work at once, a canary as large
 * as their batches is one of these. */
static size_t separate_canary(const struct plan_work *w, const struct plan_machine *m,
			      const struct plan_wish *wish, int batch_most)
{
	size_t count = canary_count(w, m, wish);

	return wish->staged || count < (size_t)batch_most ? count : 0;
}

/* How many pods are rented after the canary: one pays if it has work for as long as it takes to
 * come up (core/width.c). */
static int staged_pods(int pods, double left_s, double coming_s)
{
	int most = coming_s > 0 ? (int)MIN(left_s / coming_s - 1, 1e6) : pods;

	return MAX(MIN(pods, most), 1);
}

/* What the pods of a plan render and when, before it is priced. Seconds; all of them are of one pod
 * or worker, but for `rest`. */
struct shape {
	int pods; /* that are really rented */
	struct rounds rounds;
	double canary; /* what the first pod renders before it shares the rest */
	double rest;   /* what all workers render after that, together */
	double one_batch;
	/* further pods come up for so long after the canary, while the first one works; 0: all come
	 * up at once */
	double coming;
	double waited; /* what the others do not render meanwhile, shared by all */
	/* the mean time for which pods wait for their create, which bills nothing */
	double queued;
};

/* Seconds of all workers together for what follows the canary. again: renders per good segment. */
static double rest_of(const struct plan_work *w, const struct plan_machine *m,
		      const struct rounds *r, size_t canary, double again)
{
	double share = w->count ? (double)(w->count - canary) / (double)w->count : 0;

	return all_batches_s(w, &m->speed, r, share) * again;
}

void plan_basis_init(struct plan_basis *out, const struct plan_machine *m)
{
	*out = (struct plan_basis){
		.cold_p50 = cold_p50_s(&m->cold),
		.cold_billed = cold_billed_p50_s(&m->cold),
		.setup = cold_setup_s(&m->cold),
		.cold = cold_spread(&m->cold),
		.factor = spread_of_factor(m->speed_sigma),
		.price = spread_of(1, m->price_h > 0 ? m->price_p90_h / m->price_h : 0),
		.cold_is_measured = cold_source(&m->cold) == PLAN_MEASURED,
	};
	out->cold_slack = MAX(spread_quantile(&out->cold, SPREAD_Z90) - out->cold_p50, 0.0);
}

#define MINUTE_S 60.0

/* Of pods that are created so many a minute, those that come before the others have done the work:
 * work_s, as one pod would take for it. */
static int created_in_time(int pods, int a_minute, double work_s)
{
	double minutes =
		1; /* by their last one, earlier pods have rendered for 1, 2, ... of them */

	while (minutes * a_minute < pods &&
	       a_minute * MINUTE_S * minutes * (minutes + 1) / 2 < work_s)
		minutes++;
	return (int)MIN((double)pods, minutes * a_minute);
}

/* Seconds, the mean of all pods. */
static double mean_queued_s(int pods, int a_minute)
{
	double full = pods / a_minute, rest = pods % a_minute;

	return MINUTE_S * (a_minute * full * (full - 1) / 2 + rest * full) / pods;
}

/* Takes the provider's limit of creates into account. work_s: as one pod would take for it. */
static void limit_creates(struct shape *s, const struct plan_machine *m, double work_s)
{
	if (!m->creates_a_minute || s->pods <= m->creates_a_minute)
		return;
	s->pods = created_in_time(s->pods, m->creates_a_minute, work_s);
	s->queued = mean_queued_s(s->pods, m->creates_a_minute);
}

/* What `pods` pods render and when; fewer if a run would not rent as many. */
static struct shape shape_of(const struct plan_work *w, const struct plan_machine *m,
			     const struct plan_basis *k, int pods, int batch_most,
			     const struct plan_wish *wish)
{
	size_t canary = separate_canary(w, m, wish, batch_most), count = w->count - canary;
	double again = cost_attempts(1, wish->failing_share), coming = k->cold_p50 - k->setup;
	struct shape s = {.pods = pods, .canary = canary_s(w, m, canary) * again};

	if (pods > 1) {
		struct rounds alone = share_evenly(count, m->workers, batch_most);
		double alone_s = rest_of(w, m, &alone, canary, again) / m->workers;
		if (wish->staged)
			s.pods = staged_pods(pods, alone_s, coming);
		limit_creates(&s, m, alone_s);
	}
	if (wish->staged && pods > 1) {
		s.coming = s.pods > 1 ? coming : 0;
		s.waited = s.coming * (s.pods - 1) / s.pods;
	}
	s.rounds = share_evenly(count, s.pods * m->workers, batch_most);
	s.rest = rest_of(w, m, &s.rounds, canary, again);
	s.one_batch = s.rounds.batches > 0 ? s.rest / s.rounds.batches : 0;
	return s;
}

/* No plan ends before the longest segment, which no two workers can share. */
static double longest_alone_s(const struct plan_work *w, const struct plan_machine *m)
{
	return speed_batch_s(&m->speed, w->longest_one, w->longest_one);
}

/* Time of the worker that ends last. With several rounds, long batches share a worker with short
 * ones; with one, it is the one with the longest. */
static double busiest_s(const struct plan_work *w, const struct plan_machine *m,
			const struct shape *s)
{
	double rounds_s = s->rounds.rounds * s->one_batch;

	if (s->rounds.rounds > 1)
		return MAX(rounds_s, longest_alone_s(w, m));
	return MAX(rounds_s, speed_batch_s(&m->speed, w->longest_one,
					   between_sizes(w, s->rounds.batch, heaviest_batch)));
}

/* Billed seconds of all pods. mean_s: of work per worker; end_s: after the last batch. */
static double billed_s(const struct plan_machine *m, const struct plan_basis *k,
		       const struct shape *s, double mean_s, double end_s)
{
	double other_s = k->cold_billed + mean_s + s->waited, first_s = other_s + s->canary;

	if (s->coming > 0)
		other_s -= k->setup + s->coming;
	return cost_quantum_s(first_s + end_s, m->quantum_s) +
	       (s->pods - 1) * cost_quantum_s(other_s + end_s, m->quantum_s);
}

/* What interruptions repeat, in seconds: repeated_s on average. Each repeats a cold start and part
 * of a batch; how many there are is a matter of chance, and how often they come an estimate. */
static struct spread repeated_spread(const struct plan_machine *m, const struct plan_basis *k,
				     double one_batch_s, double repeated_s)
{
	double each_s = k->cold.mean + one_batch_s / 2,
	       known = MAX(m->interruptions, 1); /* the guess is as good as one */

	if (repeated_s <= 0)
		return (struct spread){0};
	return (struct spread){.mean = repeated_s,
			       .variance = repeated_s * each_s + repeated_s * repeated_s / known,
			       .third = repeated_s * each_s * each_s};
}

/* What a run takes, or bills: `starts` cold starts, work whose speed is an estimate, interruptions,
 * and seconds that are exact, such that their medians are median_s together. */
static struct spread seconds_of(const struct plan_basis *k, int starts, double work_s,
				const struct spread *repeated, double median_s)
{
	/* a prior is wrong for all pods alike, while measured ones differ by chance */
	struct spread sum = k->cold_is_measured ? spread_repeat(&k->cold, starts)
						: spread_scale(&k->cold, starts);
	struct spread work = spread_scale(&k->factor, work_s);

	spread_add(&sum, &work);
	spread_add(&sum, repeated);
	sum.mean += median_s - (starts * k->cold_p50 + work_s + repeated->mean);
	return sum;
}

/* What the pods cost nine times in ten, if they bill this long. */
static double pods_p90_usd(const struct plan_machine *m, const struct plan_basis *k,
			   const struct spread *seconds, double median_s)
{
	struct spread billed = spread_times(seconds, &k->price);

	return cost_usd(m->price_h, MAX(spread_quantile(&billed, SPREAD_Z90), median_s));
}

/* What all pods cost until the first segments have been checked, where they do not wait for that.
 */
static double at_risk_usd(const struct plan_work *w, const struct plan_machine *m,
			  const struct plan_basis *k, const struct plan_wish *wish, int pods)
{
	size_t canary = canary_count(w, m, wish);
	double each_s =
		k->cold_slack + k->cold_billed + canary_s(w, m, canary) + m->tail_s + m->release_s;

	return canary && pods > 1 && !wish->staged
		       ? cost_usd(m->price_h, pods * cost_quantum_s(each_s, m->quantum_s))
		       : 0;
}

/* A plan before it is known how far it may be off. */
struct draft {
	struct plan plan;
	struct shape shape;
	double busy_s, repeated_s;
};

/* One plan: all workers render the same number of batches, of equal size and none larger than
 * `batch_most`. Its pods: how many it really comes to. Its slow tenth is not worked out yet, and
 * counts as the median, below which it never is. */
static void draft_plan(struct draft *out, const struct plan_work *w, const struct plan_machine *m,
		       const struct plan_basis *k, int machine, int pods, int batch_most,
		       const struct plan_wish *wish)
{
	struct shape s = shape_of(w, m, k, pods, batch_most, wish);
	double mean_s = s.rest / (s.pods * m->workers), work_s = s.canary + mean_s, repeated_s = 0;

	if (m->interrupted_every_s > 0)
		repeated_s = cost_spot_billed_s(work_s, k->cold_billed, m->save_s,
						m->save_every_s > 0 ? m->save_every_s : s.one_batch,
						m->interrupted_every_s) -
			     k->cold_billed - work_s;
	double busy_s = s.canary + busiest_s(w, m, &s);
	struct plan p = {
		.machine = machine,
		.pods = s.pods,
		.batch = (int)s.rounds.batch,
		.work_s = s.canary + s.rest / m->workers,
		.makespan_p50_s =
			k->cold_p50 + s.queued + busy_s + s.waited + repeated_s + m->tail_s,
		.billed_s = billed_s(m, k, &s, mean_s, repeated_s + m->tail_s + m->release_s),
	};
	p.makespan_p90_s = p.makespan_p50_s;
	p.pods_usd = cost_usd(m->price_h, p.billed_s);
	p.cost_usd = p.cost_p90_usd = p.pods_usd + m->per_run_usd;
	*out = (struct draft){p, s, busy_s, repeated_s};
}

/* The throughput at this batch size, of that at the largest one. 0: unknown. */
static double seats_of(const struct plan_work *w, const struct plan_machine *m, double batch)
{
	double length = mean_length(w), full = MIN((double)m->batch_max, (double)MAX(w->count, 1)),
	       full_gain = speed_gain(&m->speed, length, full);

	if (batch >= full)
		return 1;
	if (m->gain_unknown || full_gain <= 0)
		return 0;
	return MIN(speed_gain(&m->speed, length, batch) / full_gain, 1.0);
}

/* Adds how far the plan may be off, and how well it uses its pods. */
static void finish_plan(struct plan *out, const struct draft *d, const struct plan_work *w,
			const struct plan_machine *m, const struct plan_basis *k,
			const struct plan_wish *wish)
{
	const struct shape *s = &d->shape;
	struct spread repeated = repeated_spread(m, k, s->one_batch, d->repeated_s),
		      repeated_by_all = spread_repeat(&repeated, s->pods), takes, bills;

	*out = d->plan;
	takes = seconds_of(k, 1, d->busy_s, &repeated, out->makespan_p50_s);
	bills = seconds_of(k, s->pods, out->work_s, &repeated_by_all, out->billed_s);
	out->makespan_p90_s = MAX(spread_quantile(&takes, SPREAD_Z90), out->makespan_p50_s);
	out->cost_p90_usd = pods_p90_usd(m, k, &bills, out->billed_s) + m->per_run_usd;
	out->at_risk_usd = at_risk_usd(w, m, k, wish, s->pods);
	out->used = out->billed_s > 0 ? MIN(out->work_s / out->billed_s, 1.0) : 0;
	out->seats = seats_of(w, m, s->rounds.batch);
}

/* ---- bounds ----
 * What no plan of one machine with lo to hi pods and batches of at most one size goes below. A
 * choice among a thousand widths computes few of them, and finds the same plan. */

/* The widest that a run in stages comes to; `pods` for one that rents all at once. */
static int most_staged(const struct plan_work *w, const struct plan_machine *m,
		       const struct plan_basis *k, int batch_most, const struct plan_wish *wish,
		       int pods)
{
	return shape_of(w, m, k, pods, batch_most, wish).pods;
}

/* How few and how many batches there may be, and the fewest rounds. */
struct counts {
	double rounds, fewest, most;
};

static struct counts counts_of(size_t count, const struct plan_machine *m, int batch_most, int lo,
			       int hi)
{
	const struct rounds wide = share_evenly(count, hi * m->workers, batch_most),
			    narrow = share_evenly(count, lo * m->workers, batch_most);
	double all = (double)count;
	struct counts s = {.rounds = wide.rounds};

	s.fewest = MAX(ceil(all / batch_most), MIN(wide.rounds * lo * m->workers, all));
	s.most = MIN(narrow.rounds * hi * m->workers, all);
	return s;
}

/* The least that longest_of() can be for as many batches. */
static double least_longest(const struct plan_work *w, size_t count, const struct counts *s)
{
	double least = INFINITY, batch = s->most > 0 ? ceil((double)count / s->most) : 0;

	if (s->fewest <= PLAN_FEW_BATCHES)
		least = w->few_least[(int)MIN(s->most, PLAN_FEW_BATCHES)];
	if (s->most <= PLAN_FEW_BATCHES)
		return least;
	least = MIN(least, between_sizes(w, batch, mean_longest));
	for (int i = 0; i < w->sizes; i++)
		if (w->size[i] > batch)
			least = MIN(least, mean_longest(w, i));
	return least;
}

#define ROUNDING 1e-6 /* by which a sum in another order may differ */

/* Sets time and cost of *least; the rest of it means nothing. */
static void bound_plans(struct plan *least, const struct plan_work *w, const struct plan_machine *m,
			const struct plan_basis *k, int batch_most, const struct plan_wish *wish,
			int lo, int hi)
{
	size_t canary = separate_canary(w, m, wish, batch_most), count = w->count - canary;
	const struct counts counts = counts_of(count, m, batch_most, lo, hi);
	double again = cost_attempts(1, wish->failing_share),
	       first_s = canary_s(w, m, canary) * again,
	       coming = wish->staged ? k->cold_p50 - k->setup : 0,
	       shared_s = again *
			  (m->speed.once_s + m->speed.longest_s * least_longest(w, count, &counts)),
	       each_s = again * m->speed.each_s * w->sum * (double)count / (double)w->count,
	       rounds_s = counts.rounds * shared_s + each_s / (hi * m->workers),
	       after_s = first_s + MAX(rounds_s, longest_alone_s(w, m)) + coming * (lo - 1) / lo +
			 m->tail_s;
	double one_s = k->cold_billed + m->tail_s + m->release_s,
	       other_s = wish->staged ? one_s - k->setup : one_s,
	       others_s = (other_s >= 0 ? lo - 1 : hi - 1) * other_s,
	       work_s = (counts.fewest * shared_s + each_s) / m->workers;

	*least = (struct plan){
		.makespan_p50_s = (k->cold_p50 + after_s) * (1 - ROUNDING),
		.pods_usd =
			cost_usd(m->price_h, one_s + first_s + others_s + work_s) * (1 - ROUNDING),
	};
	least->makespan_p90_s = least->makespan_p50_s; /* no less than that */
	least->cost_usd = least->pods_usd + m->per_run_usd;
}

/* ---- the choice ---- */

/* What a plan must be. Limits of 0 do not count. */
struct search {
	enum plan_goal goal;
	double value_h; /* PLAN_BALANCED */
	double within_s, cap_s, budget_usd;
	double below_s; /* makespan_p50_s */
	struct plan best;
	bool any;
};

/* The goal keeps this small. A little of the other quantity settles ties. */
static double badness(const struct plan *p, enum plan_goal goal, double value_h)
{
	switch (goal) {
	case PLAN_COST: return p->cost_usd + 1e-9 * p->makespan_p50_s;
	case PLAN_TIME: return p->makespan_p50_s + 1e-3 * p->cost_usd;
	case PLAN_BALANCED: return p->cost_usd + cost_usd(value_h, p->makespan_p50_s);
	}
	return 0;
}

/* Whether the plan keeps the limits and serves the goal better than the best one so far. */
static bool is_improvement(const struct search *s, const struct plan *p)
{
	if ((s->within_s > 0 && p->makespan_p90_s > s->within_s + 1e-9) ||
	    (s->cap_s > 0 && p->makespan_p50_s > s->cap_s + 1e-9) ||
	    (s->budget_usd > 0 && p->pods_usd > s->budget_usd + 1e-9) ||
	    (s->below_s > 0 && p->makespan_p50_s >= s->below_s))
		return false;
	return !s->any || badness(p, s->goal, s->value_h) < badness(&s->best, s->goal, s->value_h);
}

/* The plans of one machine with batches of at most this size. */
struct widths {
	const struct plan_work *w;
	const struct plan_machine *m;
	const struct plan_basis *k;
	const struct plan_wish *wish;
	int machine, batch_most;
};

static void consider_width(struct search *s, const struct widths *of, int pods)
{
	struct draft d;
	struct plan p;

	draft_plan(&d, of->w, of->m, of->k, of->machine, pods, of->batch_most, of->wish);
	if (!is_improvement(s, &d.plan))
		return;
	finish_plan(&p, &d, of->w, of->m, of->k, of->wish);
	if (!is_improvement(s, &p))
		return;
	s->best = p;
	s->any = true;
}

/* Visits lo to hi pods in halves, without those whose least time and cost are no improvement. */
static void search_widths(struct search *s, const struct widths *of, int lo, int hi)
{
	enum { FEW_WIDTHS = 4 };
	struct plan least;

	if (hi - lo >= FEW_WIDTHS) {
		bound_plans(&least, of->w, of->m, of->k, of->batch_most, of->wish, lo, hi);
		if (!is_improvement(s, &least))
			return;
		int middle = lo + (hi - lo) / 2;
		search_widths(s, of, lo, middle);
		search_widths(s, of, middle + 1, hi);
		return;
	}
	for (int pods = lo; pods <= hi; pods++)
		consider_width(s, of, pods);
}

double plan_badness(const struct plan *p, const struct plan_wish *wish)
{
	return badness(p, wish->goal, wish->value_of_time_h);
}

int plan_widest(const struct plan_work *w, const struct plan_machine *m,
		const struct plan_wish *wish)
{
	int most = wish->pods_most > 0 ? wish->pods_most : PLAN_PODS_MOST;

	if (m->pods_max > 0)
		most = MIN(most, m->pods_max);
	return (int)MAX(MIN((size_t)most, w->count), (size_t)1);
}

/* How much of the widths is visited: some of them give the bounds something to be held against. */
enum visit { VISIT_SOME, VISIT_ALL };

static void visit_widths(struct search *s, const struct widths *of, enum visit visit)
{
	int to = most_staged(of->w, of->m, of->k, of->batch_most, of->wish,
			     plan_widest(of->w, of->m, of->wish));

	if (of->wish->pods > 0) {
		consider_width(s, of, of->wish->pods);
		return;
	}
	if (visit == VISIT_ALL) {
		search_widths(s, of, 1, to);
		return;
	}
	for (int pods = 1; pods < to; pods *= 2)
		consider_width(s, of, pods);
	consider_width(s, of, to);
}

/* The largest batch of the plans of this index: the sizes of w->size, then that of the canary,
 * which is then no separate batch where all pods work at once. 0: there is no such index. */
static int batch_most_at(const struct plan_work *w, const struct plan_machine *m,
			 const struct plan_wish *wish, int index)
{
	int sizes = 0;

	while (sizes < w->sizes && (!sizes || w->size[sizes - 1] < m->batch_max))
		sizes++;
	if (index == sizes && !wish->staged && wish->canary < m->batch_max)
		return wish->canary;
	if (index >= sizes)
		return 0;
	return index + 1 < w->sizes ? MIN(w->size[index], m->batch_max) : m->batch_max;
}

static void visit_machine(struct search *s, const struct plan_work *w, const struct plan_machine *m,
			  int index, const struct plan_wish *wish, enum visit visit)
{
	struct plan_basis k;
	struct widths of = {.w = w, .m = m, .k = &k, .wish = wish, .machine = index};

	plan_basis_init(&k, m);
	for (int i = 0; (of.batch_most = batch_most_at(w, m, wish, i)) > 0; i++)
		visit_widths(s, &of, visit);
}

/* Finds the best plan by s->goal within its limits. */
static bool find_best(struct search *s, const struct plan_work *w,
		      const struct plan_machine *machines, size_t count,
		      const struct plan_wish *wish)
{
	for (size_t i = 0; i < count && wish->pods <= 0; i++)
		visit_machine(s, w, &machines[i], (int)i, wish, VISIT_SOME);
	for (size_t i = 0; i < count; i++)
		visit_machine(s, w, &machines[i], (int)i, wish, VISIT_ALL);
	return s->any;
}

enum plan_verdict plan_choose(struct plan *out, const struct plan_work *w,
			      const struct plan_machine *machines, size_t count,
			      const struct plan_wish *wish)
{
	struct search fitting = {.goal = wish->goal,
				 .value_h = wish->value_of_time_h,
				 .within_s = wish->within_s,
				 .cap_s = wish->cap_s,
				 .budget_usd = wish->budget_usd},
		      in_time = {.goal = PLAN_COST,
				 .within_s = wish->within_s,
				 .cap_s = wish->cap_s},
		      in_budget = {.goal = PLAN_COST, .budget_usd = wish->budget_usd},
		      fastest = {.goal = PLAN_TIME}, cheapest = {.goal = PLAN_COST};

	if (find_best(&fitting, w, machines, count, wish)) {
		*out = fitting.best;
		return PLAN_FOUND;
	}
	if (!find_best(&cheapest, w, machines, count, wish))
		return PLAN_NOTHING_FITS;
	if (!find_best(&in_time, w, machines, count, wish)) {
		find_best(&fastest, w, machines, count, wish);
		*out = fastest.best;
		return PLAN_TOO_SLOW;
	}
	if (!find_best(&in_budget, w, machines, count, wish)) {
		*out = cheapest.best;
		return PLAN_TOO_EXPENSIVE;
	}
	*out = in_time.best;
	return PLAN_NEITHER;
}

bool plan_at_width(struct plan *out, const struct plan_work *w, const struct plan_machine *m,
		   const struct plan_basis *basis, const struct plan_wish *wish)
{
	struct draft d, best;
	double least = INFINITY;

	for (int i = 0, most; (most = batch_most_at(w, m, wish, i)) > 0; i++) {
		draft_plan(&d, w, m, basis, 0, wish->pods, most, wish);

		double bad = badness(&d.plan, PLAN_COST, 0);
		if (bad >= least)
			continue;
		least = bad;
		best = d;
	}
	if (isinf(least))
		return false;
	finish_plan(out, &best, w, m, basis, wish);
	return true;
}

/* ---- what is worth showing ---- */

/* What a person would call another plan: one percent faster is not. */
#define WORTH_SHOWING 0.99

size_t plan_front(struct plan *out, size_t room, const struct plan_work *w,
		  const struct plan_machine *machines, size_t count, const struct plan_wish *wish)
{
	size_t kept = 0;
	struct search s = {.goal = PLAN_COST};

	while (kept < room && find_best(&s, w, machines, count, wish)) {
		out[kept++] = s.best;
		s = (struct search){.goal = PLAN_COST,
				    .below_s = s.best.makespan_p50_s * WORTH_SHOWING};
	}
	return kept;
}

size_t plan_widths(struct plan *out, size_t room, const struct plan_work *w,
		   const struct plan_machine *machines, size_t machine,
		   const struct plan_wish *wish)
{
	const struct plan_machine *m = &machines[machine];
	int most = plan_widest(w, m, wish);
	size_t kept = 0;

	for (int pods = 1; pods <= most && kept < room; pods *= 2) {
		struct plan_wish at = *wish;
		struct search s = {.goal = PLAN_COST};
		at.pods = pods;
		/* what each width costs, whether a run would come to it or not */
		at.staged = false;
		visit_machine(&s, w, m, (int)machine, &at, VISIT_ALL);
		if (s.any)
			out[kept++] = s.best;
	}
	return kept;
}

#define LONG_AFTER 1.25 /* of the time that all others take; less is not worth a word */

/* Whether most of the time after the cold start passes with one segment alone. */
static bool waits_for_longest(const struct plan *p, const struct plan_work *w,
			      const struct plan_machine *m)
{
	double alone_s = longest_alone_s(w, m);

	return p->pods * m->workers > 1 && alone_s > cold_p50_s(&m->cold) &&
	       alone_s > LONG_AFTER * p->work_s / p->pods;
}

enum plan_bottleneck plan_bottleneck(const struct plan *p, const struct plan_work *w,
				     const struct plan_machine *m)
{
	double batches = ceil((double)w->count / p->batch);
	double host_s = m->speed.once_s * batches,
	       shared_s = m->speed.longest_s * between_sizes(w, p->batch, mean_longest) * batches;
	double each_s = m->speed.each_s * w->sum;

	if (waits_for_longest(p, w, m))
		return PLAN_BY_LONGEST;
	if (p->pods * cold_billed_p50_s(&m->cold) > p->work_s)
		return PLAN_BY_COLD_START;
	if (m->host_share >= 1 || (host_s >= shared_s && host_s >= each_s))
		return PLAN_BY_HOST;
	return shared_s >= each_s ? PLAN_BY_BANDWIDTH : PLAN_BY_COMPUTE;
}

/* ---- better: finds a plan that is clearly better than the given one ---- */

#define CLEARLY         0.8
#define LEAST_SAVED_S   5.0
#define LEAST_SAVED_USD 0.0005

static double saved_s(const struct plan *given, const struct plan *other)
{
	return given->makespan_p50_s - other->makespan_p50_s;
}

static double saved_usd(const struct plan *given, const struct plan *other)
{
	return given->cost_usd - other->cost_usd;
}

static bool is_much_faster(const struct plan *given, const struct plan *other)
{
	return other->makespan_p50_s <= CLEARLY * given->makespan_p50_s &&
	       saved_s(given, other) >= LEAST_SAVED_S;
}

static bool is_much_cheaper(const struct plan *given, const struct plan *other)
{
	return other->cost_usd <= CLEARLY * given->cost_usd &&
	       saved_usd(given, other) >= LEAST_SAVED_USD;
}

/* In dollars, with value_h for each hour of waiting. */
static bool is_much_better(const struct plan *given, const struct plan *other, double value_h)
{
	double before = given->cost_usd + value_h * given->makespan_p50_s / 3600,
	       after = other->cost_usd + value_h * other->makespan_p50_s / 3600;

	return after <= CLEARLY * before && before - after >= LEAST_SAVED_USD;
}

/* By the goal, enough that burst should mention it. */
static bool is_clearly_better(const struct plan *given, const struct plan *other,
			      const struct plan_wish *wish)
{
	switch (wish->goal) {
	case PLAN_COST: return is_much_cheaper(given, other);
	case PLAN_TIME: return is_much_faster(given, other);
	case PLAN_BALANCED: return is_much_better(given, other, wish->value_of_time_h);
	}
	return false;
}

bool plan_better(struct plan *out, const struct plan *given, const struct plan_work *w,
		 const struct plan_machine *machines, size_t count, const struct plan_wish *wish)
{
	struct plan_wish any = *wish;
	struct plan other;

	any.pods = 0;
	/* it is missed as it is */
	if (wish->within_s > 0 && given->makespan_p90_s > wish->within_s)
		any.within_s = given->makespan_p90_s;
	if (wish->cap_s > 0 && given->makespan_p50_s > wish->cap_s)
		any.cap_s = given->makespan_p50_s;
	if (wish->budget_usd > 0 && given->pods_usd > wish->budget_usd)
		any.budget_usd = given->pods_usd;
	if (plan_choose(&other, w, machines, count, &any) == PLAN_FOUND &&
	    is_clearly_better(given, &other, wish)) {
		*out = other;
		return true;
	}
	any.goal = PLAN_TIME;
	any.budget_usd = given->pods_usd;
	if (given->pods_usd <= 0 || plan_choose(&other, w, machines, count, &any) != PLAN_FOUND ||
	    !is_much_faster(given, &other) || saved_usd(given, &other) < 0)
		return false;
	*out = other;
	return true;
}
