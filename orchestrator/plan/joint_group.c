/* joint_group.c - what one group of the joint plan takes and costs. */
#include "joint_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define IN_TIME_S 1e-6

struct rank rank_sum(const struct rank *a, const struct rank *b)
{
	return (struct rank){a->out + b->out, a->late + b->late, a->late_ms + b->late_ms,
			     a->usd + b->usd};
}

int rank_compare(const struct rank *a, const struct rank *b)
{
	if (a->out != b->out)
		return a->out < b->out ? -1 : 1;
	if (a->late != b->late)
		return a->late < b->late ? -1 : 1;
	if (a->late_ms != b->late_ms)
		return a->late_ms < b->late_ms ? -1 : 1;
	return (a->usd > b->usd) - (a->usd < b->usd);
}

double joint_handover_s(const struct plan_machine *m)
{
	static const enum cold_phase again[] = {COLD_CONNECT, COLD_SYNC,    COLD_IMPORT, COLD_READ,
						COLD_BUILD,   COLD_WARM_UP, COLD_PROBE,  COLD_LOAD};
	double s = 0;

	for (size_t i = 0; i < ARRAY_LEN(again); i++)
		s += m->cold.phase[again[i]].p50_s;
	return s;
}

/* ---- order and work ---- */

struct due {
	double by_s, ready_s;
	int job;
};

static int first_due(const void *a, const void *b)
{
	const struct due *x = a, *y = b;

	if (x->by_s != y->by_s)
		return x->by_s < y->by_s ? -1 : 1;
	if (x->ready_s != y->ready_s)
		return x->ready_s < y->ready_s ? -1 : 1;
	return (x->job > y->job) - (x->job < y->job);
}

void joint_sort(const struct joint_case *of, int *jobs, size_t count)
{
	struct due *due = xcalloc(count + 1, sizeof(*due));

	for (size_t i = 0; i < count; i++) {
		const struct joint_job *j = &of->jobs[jobs[i]];
		due[i] = (struct due){MIN(j->by_s, j->begin_by_s), j->ready_s, jobs[i]};
	}
	qsort(due, count, sizeof(*due), first_due);
	for (size_t i = 0; i < count; i++)
		jobs[i] = due[i].job;
	free(due);
}

/* The place of this batch size, or of the largest below it: sizes of two jobs differ in their last
 * one alone. */
static int size_at(const struct plan_work *w, int size)
{
	int i = w->sizes - 1;

	while (i > 0 && w->size[i] > size)
		i--;
	return i;
}

/* The mean of the longest in `batches` batches of both, shared in proportion to their segments. */
static double few_of_both(const struct plan_work *a, const struct plan_work *b, int batches)
{
	double part = (double)a->count / (double)(a->count + b->count);
	int of_a = (int)(part * batches + .5);

	of_a = MAX(MIN(of_a, batches - 1), 1);
	return part * a->few[of_a] + (1 - part) * b->few[batches - of_a];
}

void joint_add_work(struct plan_work *to, const struct plan_work *from)
{
	if (!to->count || !from->count) {
		*to = to->count ? *to : *from;
		return;
	}
	struct plan_work a = *to, b = *from;
	if (a.size[a.sizes - 1] < b.size[b.sizes - 1]) {
		a = *from;
		b = *to;
	}
	*to = a;
	for (int i = 0; i < a.sizes; i++) {
		int k = size_at(&b, a.size[i]);
		to->longest[i] += b.longest[k];
		to->heaviest[i] = MAX(a.heaviest[i], b.heaviest[k]);
	}
	to->few[1] = MAX(a.few[1], b.few[1]);
	for (int n = 2; n <= PLAN_FEW_BATCHES; n++)
		to->few[n] = few_of_both(&a, &b, n);
	to->count += b.count;
	to->sum += b.sum;
	to->audio_s += b.audio_s;
	to->longest_one = MAX(a.longest_one, b.longest_one);
}

/* ---- widths ---- */

int joint_width(const struct joint_kind *kind, const struct plan_machine *m,
		const struct plan_work *w, int index)
{
	static const int widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64};
	int most = kind->wish.pods_most > 0 ? kind->wish.pods_most : 64;

	if (m->pods_max > 0)
		most = MIN(most, m->pods_max);
	most = (int)MIN((size_t)most, MAX(w->count, (size_t)1));
	if (index >= (int)ARRAY_LEN(widths))
		return 0;
	if (widths[index] <= most)
		return widths[index];
	return index && widths[index - 1] < most ? most : 0;
}

/* ---- bounds ---- */

void joint_least_init(struct least *l, const struct plan_work *w)
{
	double least = w->count > PLAN_FEW_BATCHES
			       ? (PLAN_FEW_BATCHES + 1) * w->sum / (double)w->count
			       : INFINITY;

	for (int n = PLAN_FEW_BATCHES + 1; n > 0; n--) {
		if (n <= PLAN_FEW_BATCHES)
			least = MIN(least, n * w->few[n]);
		l->longest[n] = least;
	}
	l->longest[0] = l->longest[1];
}

/* What no plan of a group is below. pods: that it rents at least, which may be fewer than it asks
 * for. */
static double least_work_s(const struct least *l, const struct joint_kind *kind,
			   const struct plan_machine *m, const struct plan_work *w, double pods)
{
	const struct plan_wish *wish = &kind->wish;
	size_t canary = w->count > (size_t)wish->canary ? (size_t)wish->canary : 0;
	double left = (double)(w->count - canary),
	       batches = MAX(ceil(left / m->batch_max), MIN(pods * m->workers, left));

	return cost_attempts(1, wish->failing_share) *
	       (batches * m->speed.once_s +
		m->speed.longest_s * l->longest[(int)MIN(batches, PLAN_FEW_BATCHES + 1.0)] +
		m->speed.each_s * w->sum * left / (double)w->count);
}

struct floor joint_floor(const struct least *l, const struct joint_case *of, const int *jobs,
			 size_t count, const struct plan_machine *m, const struct plan_work *w,
			 int width, int width_below)
{
	const struct joint_job *first = &of->jobs[jobs[0]], *last = &of->jobs[jobs[count - 1]];
	const struct joint_kind *kind = &of->kinds[first->kind];
	/* a staged plan may rent fewer, but more than the width below has */
	double pods = kind->wish.staged ? width_below + 1 : width,
	       work_s = least_work_s(l, kind, m, w, pods), cold_s = cold_billed_p50_s(&m->cold),
	       handed_s = (double)(count - 1) * joint_handover_s(m);
	double billed_s = cold_s + (pods - 1) * (cold_s - cold_setup_s(&m->cold)) +
			  work_s / m->workers + pods * (m->tail_s + m->release_s + handed_s),
	       late_s = first->ready_s + cold_p50_s(&m->cold) + handed_s +
			work_s / (width * m->workers) + m->tail_s - last->by_s;

	return (struct floor){
		.late_ms = late_s > 0 ? (int64_t)(MIN(late_s, 1e12) * 1000) : 0,
		.usd = cost_usd(m->price_h, billed_s) + m->per_run_usd * (double)count,
	};
}

struct priced {
	double usd;
	int machine;
};

static int cheapest_first(const void *a, const void *b)
{
	const struct priced *x = a, *y = b;

	if (x->usd != y->usd)
		return x->usd < y->usd ? -1 : 1;
	return (x->machine > y->machine) - (x->machine < y->machine);
}

int *joint_order_machines(const struct least *l, const struct joint_case *of, const int *jobs,
			  size_t count, const struct plan_work *w, size_t *machines)
{
	const struct joint_kind *kind = &of->kinds[of->jobs[jobs[0]].kind];
	struct priced *list = xcalloc(kind->machine_count + 1, sizeof(*list));
	int *order = xcalloc(kind->machine_count + 1, sizeof(*order));
	size_t n = 0;

	for (size_t i = 0; i < kind->machine_count; i++) {
		const struct plan_machine *m = &kind->machines[i];
		if (m->batch_max > 0)
			list[n++] = (struct priced){joint_floor(l, of, jobs, count, m, w, 1, 0).usd,
						    (int)i};
	}
	if (n)
		qsort(list, n, sizeof(*list), cheapest_first);
	for (size_t i = 0; i < n; i++)
		order[i] = list[i].machine;
	free(list);
	*machines = n;
	return order;
}

/* ---- a group in time ---- */

const struct plan_machine *joint_machine(const struct joint_case *of, int kind,
					 const struct variant *v)
{
	return v->up >= 0 ? &of->ups[v->up].machine : &of->kinds[kind].machines[v->machine];
}

void joint_step(struct step *out, const struct joint_kind *kind, const struct plan_machine *m,
		bool is_up, int width, const struct plan_work *prefix, size_t before)
{
	struct plan_machine up;
	struct plan_wish wish = kind->wish;
	struct plan p;
	double handovers_s = joint_handover_s(m) * (double)(before + is_up);

	wish.goal = PLAN_COST;
	wish.within_s = wish.budget_usd = 0;
	wish.pods = width;
	if (is_up) {
		up = *m;
		up.cold = (struct cold){0};
		wish.staged = false;
		m = &up;
	}
	if (plan_choose(&p, prefix, m, 1, &wish) == PLAN_NOTHING_FITS)
		p = (struct plan){.pods = width, .makespan_p50_s = INFINITY};
	*out = (struct step){
		.p50_s = p.makespan_p50_s + handovers_s,
		.p90_s = p.makespan_p90_s + handovers_s,
		.usd = p.cost_usd + m->per_run_usd * (double)before +
		       cost_usd(m->price_h, handovers_s * p.pods),
		.pods = p.pods,
		.batch = p.batch,
		.width = width,
		.work_s = p.work_s,
	};
}

/* A job's place in its group, for the slow tenth: it ends end_s after the moment when the group's
 * pods would have started to be never idle before it. */
struct span {
	double before_s; /* of that moment until it begins */
	double end_s;    /* until it ends */
	double since_s;  /* the moment, where a job up to this one is not ready sooner */
};

static void find_spans(const struct joint_case *of, const int *jobs, size_t count,
		       const struct step *steps, struct span *spans)
{
	double before_s = 0, since_s = -INFINITY;

	for (size_t k = 0; k < count; k++) {
		since_s = MAX(since_s, of->jobs[jobs[k]].ready_s - before_s);
		spans[k] = (struct span){before_s, MAX(steps[k].p90_s, before_s), since_s};
		before_s = spans[k].end_s;
	}
}

/* How late a job is where its group starts then. */
static double late_s(const struct joint_job *j, const struct span *s, double start_s)
{
	double from_s = MAX(start_s, s->since_s);

	return MAX(MAX(from_s + s->end_s - j->by_s, from_s + s->before_s - j->begin_by_s), 0.0);
}

/* The latest start that makes no job later than the soonest one does. */
static double latest_start(const struct joint_case *of, const int *jobs, size_t count,
			   const struct span *spans, double soonest_s)
{
	double latest_s = INFINITY;

	for (size_t k = 0; k < count; k++) {
		const struct joint_job *j = &of->jobs[jobs[k]];
		double late = late_s(j, &spans[k], soonest_s);
		latest_s = MIN(latest_s, MIN(j->by_s + late - spans[k].end_s,
					     j->begin_by_s + late - spans[k].before_s));
	}
	return MAX(latest_s, soonest_s);
}

/* Since when the pods would have to work to be never idle, by the median. */
static double busy_since(const struct joint_case *of, const int *jobs, size_t count,
			 const struct step *steps)
{
	double before_s = 0, since_s = -INFINITY;

	for (size_t k = 0; k < count; k++) {
		since_s = MAX(since_s, of->jobs[jobs[k]].ready_s - before_s);
		before_s = MAX(before_s, steps[k].p50_s);
	}
	return since_s;
}

/* The group's start: as late as makes no job later, but no later than its pods are never idle. */
static double best_start(const struct joint_case *of, const int *jobs, size_t count,
			 const struct variant *v, const struct span *spans, double busy_s)
{
	double ready_s = of->jobs[jobs[0]].ready_s;

	if (v->up >= 0)
		return MAX(ready_s, of->ups[v->up].free_s);
	double latest_s = latest_start(of, jobs, count, spans, ready_s);
	return MAX(ready_s, MIN(busy_s, latest_s));
}

static double work_of(const struct joint_case *of, const int *jobs, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += of->jobs[jobs[i]].work->sum;
	return sum;
}

/* The part of a group's cost that is a job's: by its work. */
static double share_of(const struct joint_job *j, double work, size_t count)
{
	return work > 0 ? j->work->sum / work : 1.0 / (double)count;
}

static bool pays_own_budgets(const struct joint_case *of, const int *jobs, size_t count, double usd)
{
	double work = work_of(of, jobs, count);

	for (size_t k = 0; k < count; k++) {
		const struct joint_job *j = &of->jobs[jobs[k]];
		if (j->budget_usd > 0 && usd * share_of(j, work, count) > j->budget_usd + 1e-9)
			return false;
	}
	return true;
}

static void fill_fates(const struct joint_case *of, const int *jobs, size_t count,
		       const struct step *steps, const struct span *spans, double start_s,
		       double usd, struct joint_fate *fates)
{
	double before_s = 0, since_s = -INFINITY, work = work_of(of, jobs, count);

	for (size_t k = 0; k < count; k++) {
		const struct joint_job *j = &of->jobs[jobs[k]];
		double late = late_s(j, &spans[k], start_s);
		since_s = MAX(since_s, j->ready_s - before_s);
		double from_s = MAX(start_s, since_s), end_s = MAX(steps[k].p50_s, before_s);
		fates[jobs[k]] = (struct joint_fate){
			.begin_s = from_s + before_s,
			.end_s = from_s + end_s,
			.end_p90_s = MAX(start_s, spans[k].since_s) + spans[k].end_s,
			.late_s = late > IN_TIME_S ? late : 0,
			.cost_usd = usd * share_of(j, work, count),
			.why = late > IN_TIME_S ? JOINT_LATE : JOINT_KEPT,
		};
		before_s = end_s;
	}
}

enum { SPANS_HERE = 256 };

bool joint_place(const struct joint_case *of, const int *jobs, size_t count,
		 const struct variant *v, const struct step *steps, struct rank *rank,
		 struct joint_group *group, struct joint_fate *fates)
{
	const struct step *last = &steps[count - 1];
	int kind = of->jobs[jobs[0]].kind;
	struct span here[SPANS_HERE], *spans = here;

	if (count > SPANS_HERE)
		spans = xcalloc(count, sizeof(*spans));
	find_spans(of, jobs, count, steps, spans);
	double busy_s = busy_since(of, jobs, count, steps),
	       start_s = best_start(of, jobs, count, v, spans, busy_s),
	       from_s = v->up >= 0 ? of->ups[v->up].free_s : start_s,
	       idle_s = MAX(MAX(start_s, busy_s) - from_s, 0.0),
	       usd = last->usd + cost_usd(joint_machine(of, kind, v)->price_h, idle_s * last->pods);
	*rank = (struct rank){.usd = usd};
	for (size_t k = 0; k < count; k++) {
		double late = late_s(&of->jobs[jobs[k]], &spans[k], start_s);
		rank->late += late > IN_TIME_S;
		rank->late_ms += late > IN_TIME_S ? (int64_t)(MIN(late, 1e12) * 1000 + 1) : 0;
	}
	if (group)
		*group = (struct joint_group){.kind = kind,
					      .machine = v->machine,
					      .up = v->up,
					      .pods = last->pods,
					      .batch = last->batch,
					      .start_s = start_s,
					      .latest_s =
						      latest_start(of, jobs, count, spans, start_s),
					      .work_s = last->work_s,
					      .idle_s = idle_s,
					      .cost_usd = usd,
					      .count = count};
	if (fates)
		fill_fates(of, jobs, count, steps, spans, start_s, usd, fates);
	bool pays = isfinite(last->p50_s) && pays_own_budgets(of, jobs, count, usd);
	if (spans != here)
		free(spans);
	return pays;
}

/* ---- solutions ---- */

void gangs_free(struct gangs *g)
{
	for (size_t i = 0; i < g->count; i++)
		free(g->list[i].jobs);
	free(g->list);
	*g = (struct gangs){0};
}

struct gang *gangs_add(struct gangs *g, const int *jobs, size_t count, const struct variant *best)
{
	GROW(g->list, g->count, g->cap);
	struct gang *gang = &g->list[g->count++];
	*gang = (struct gang){.jobs = xcalloc(count, sizeof(*jobs)), .count = count, .best = *best};
	memcpy(gang->jobs, jobs, count * sizeof(*jobs));
	return gang;
}

struct rank gangs_rank(const struct gangs *g, size_t jobs)
{
	struct rank sum = {.out = (int)jobs};

	for (size_t i = 0; i < g->count; i++) {
		sum = rank_sum(&sum, &g->list[i].best.rank);
		sum.out -= (int)g->list[i].count;
	}
	return sum;
}

struct step *joint_steps(const struct joint_case *of, const struct gang *g)
{
	int kind = of->jobs[g->jobs[0]].kind;
	struct step *steps = xcalloc(g->count, sizeof(*steps));
	struct plan_work *w = xcalloc(1, sizeof(*w));

	for (size_t k = 0; k < g->count; k++) {
		joint_add_work(w, of->jobs[g->jobs[k]].work);
		joint_step(&steps[k], &of->kinds[kind], joint_machine(of, kind, &g->best),
			   g->best.up >= 0, g->best.width, w, k);
	}
	free(w);
	return steps;
}
