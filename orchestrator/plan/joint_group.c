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

/* ---- facts ---- */

static void describe_machine(struct joint_machine *out, const struct plan_machine *m, bool is_up)
{
	*out = (struct joint_machine){.m = *m, .handover_s = joint_handover_s(m), .is_up = is_up};
	if (is_up)
		out->m.cold = (struct cold){0};
	plan_basis_init(&out->basis, &out->m);
}

static size_t count_kinds(const struct joint_case *of)
{
	int most = -1;

	for (size_t i = 0; i < of->job_count; i++)
		most = MAX(most, of->jobs[i].kind);
	return (size_t)(most + 1);
}

void joint_facts_init(struct joint_facts *f, const struct joint_case *of)
{
	size_t kinds = count_kinds(of);

	*f = (struct joint_facts){.of = of,
				  .machines = xcalloc(kinds + 1, sizeof(*f->machines)),
				  .ups = xcalloc(of->up_count + 1, sizeof(*f->ups))};
	for (size_t k = 0; k < kinds; k++) {
		const struct joint_kind *kind = &of->kinds[k];
		f->machines[k] = xcalloc(kind->machine_count + 1, sizeof(*f->machines[k]));
		for (size_t i = 0; i < kind->machine_count; i++)
			describe_machine(&f->machines[k][i], &kind->machines[i], false);
	}
	for (size_t up = 0; up < of->up_count; up++)
		describe_machine(&f->ups[up], &of->ups[up].machine, true);
}

void joint_facts_free(struct joint_facts *f)
{
	for (size_t k = 0; f->machines && f->machines[k]; k++)
		free(f->machines[k]);
	free(f->machines);
	free(f->ups);
	*f = (struct joint_facts){0};
}

const struct joint_machine *joint_machine(const struct joint_facts *f, int kind,
					  const struct variant *v)
{
	return v->up >= 0 ? &f->ups[v->up] : &f->machines[kind][v->machine];
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

int *joint_join(const struct joint_case *of, const int *a, size_t a_count, const int *b,
		size_t b_count)
{
	int *jobs = xcalloc(a_count + b_count, sizeof(*jobs));

	memcpy(jobs, a, a_count * sizeof(*a));
	if (b_count)
		memcpy(jobs + a_count, b, b_count * sizeof(*b));
	joint_sort(of, jobs, a_count + b_count);
	return jobs;
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

enum { WIDEST = 64 };

static int widest(const struct joint_kind *kind, const struct plan_machine *m,
		  const struct plan_work *w)
{
	int most = kind->wish.pods_most > 0 ? MIN(kind->wish.pods_most, (int)WIDEST) : WIDEST;

	if (m->pods_max > 0)
		most = MIN(most, m->pods_max);
	return (int)MIN((size_t)most, MAX(w->count, (size_t)1));
}

int joint_width(const struct joint_kind *kind, const struct plan_machine *m,
		const struct plan_work *w, int index)
{
	static const int widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, WIDEST};
	int most = widest(kind, m, w);

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

/* Computing that no plan of this work is below, of all pods together. pods: that it rents at least,
 * which may be fewer than it asks for. */
static double least_work_s(const struct mark *mark, const struct joint_kind *kind,
			   const struct plan_machine *m, double pods)
{
	const struct plan_wish *wish = &kind->wish;
	const struct plan_work *w = mark->work;
	size_t canary = w->count > (size_t)wish->canary ? (size_t)wish->canary : 0;
	double left = (double)(w->count - canary),
	       batches = MAX(ceil(left / m->batch_max), MIN(pods * m->workers, left)),
	       longest = mark->least->longest[(int)MIN(batches, PLAN_FEW_BATCHES + 1.0)];

	return cost_attempts(1, wish->failing_share) *
	       (batches * m->speed.once_s + m->speed.longest_s * longest +
		m->speed.each_s * w->sum * left / (double)w->count);
}

static int64_t to_ms(double seconds)
{
	return (int64_t)(MIN(seconds, 1e12) * 1000);
}

/* Adds the lateness of the jobs from `from` to `to` if the one before them does not end sooner than
 * before_s after the group's start, nor the last of them sooner than end_s. */
static void add_lateness(struct rank *to, const struct outline *o, size_t from, size_t last,
			 double before_s, double end_s)
{
	const struct joint_job *jobs = o->f->of->jobs;
	double start_s = jobs[o->jobs[0]].ready_s;

	for (size_t k = from; k <= last; k++) {
		const struct joint_job *j = &jobs[o->jobs[k]];
		double begins_s = MAX(start_s + before_s, j->ready_s),
		       ends_s = MAX(start_s + (k == last ? end_s : before_s), j->ready_s),
		       late_s = MAX(ends_s - j->by_s, begins_s - j->begin_by_s);
		if (late_s <= IN_TIME_S)
			continue;
		to->late++;
		to->late_ms += to_ms(late_s);
	}
}

/* The least time of such work on fewest to most pods, from the first one's cold start to its last
 * batch. What pods wait for each other and share falls or rises with each pod, so that the least of
 * it is at one of both ends. */
static double least_busy_s(const struct mark *mark, const struct joint_machine *on, bool staged,
			   double work_s, double fewest, double most)
{
	const struct speed *speed = &on->m.speed;
	double coming_s = staged ? on->basis.cold_p50 - on->basis.setup : 0,
	       by_worker_s = work_s / on->m.workers, longest = mark->work->longest_one,
	       narrow_s = by_worker_s / fewest + coming_s * (fewest - 1) / fewest,
	       wide_s = by_worker_s / most + coming_s * (most - 1) / most;

	return MAX(MIN(narrow_s, wide_s),
		   speed_batch_s(speed, longest, longest) + coming_s * (fewest - 1) / fewest);
}

/* In the slow tenth, work takes at least its median, and all together at least as much longer as
 * the cold start alone. */
struct rank joint_floor(const struct outline *o, const struct joint_machine *on, int width,
			int fewest)
{
	const struct joint_kind *kind = &o->f->of->kinds[o->f->of->jobs[o->jobs[0]].kind];
	const struct plan_machine *m = &on->m;
	const struct plan_basis *k = &on->basis;
	double work_s = 0, before_s = 0, end_s = 0;
	struct rank least = {0};

	for (size_t i = 0, from = 0; i < o->mark_count; from = o->marks[i++].at + 1) {
		work_s = least_work_s(&o->marks[i], kind, m, fewest);
		end_s = k->cold_p50 + k->cold_slack + (double)o->marks[i].at * on->handover_s +
			least_busy_s(&o->marks[i], on, kind->wish.staged, work_s, fewest, width) +
			m->tail_s;
		add_lateness(&least, o, from, o->marks[i].at, before_s, MAX(end_s, before_s));
		before_s = MAX(end_s, before_s);
	}
	double handed_s = (double)(o->count - 1) * on->handover_s,
	       billed_s = k->cold_billed + (fewest - 1) * (k->cold_billed - k->setup) +
			  work_s / m->workers + fewest * (m->tail_s + m->release_s + handed_s);
	least.usd = cost_usd(m->price_h, billed_s) + m->per_run_usd * (double)o->count;
	return least;
}

int joint_fewest(const struct joint_kind *kind, int width, int width_below)
{
	return kind->wish.staged ? width_below + 1 : width;
}

static int best_first(const void *a, const void *b)
{
	const struct promising *x = a, *y = b;
	int order = rank_compare(&x->least, &y->least);

	return order ? order : (x->machine > y->machine) - (x->machine < y->machine);
}

struct promising *joint_order_machines(const struct outline *o, size_t *count)
{
	int number = o->f->of->jobs[o->jobs[0]].kind;
	const struct joint_kind *kind = &o->f->of->kinds[number];
	struct promising *list = xcalloc(kind->machine_count + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < kind->machine_count; i++) {
		const struct joint_machine *on = &o->f->machines[number][i];
		int pods = widest(kind, &on->m, o->marks[o->mark_count - 1].work);
		if (on->m.batch_max > 0)
			list[n++] = (struct promising){joint_floor(o, on, pods, 1), (int)i};
	}
	if (n)
		qsort(list, n, sizeof(*list), best_first);
	*count = n;
	return list;
}

/* ---- a group in time ---- */

void joint_step(struct step *out, const struct joint_kind *kind, const struct joint_machine *on,
		int width, const struct plan_work *prefix, size_t before)
{
	struct plan_wish wish = kind->wish;
	struct plan p;
	double handovers_s = on->handover_s * (double)(before + on->is_up);

	wish.pods = width;
	wish.staged = wish.staged && !on->is_up;
	if (!plan_at_width(&p, prefix, &on->m, &on->basis, &wish))
		p = (struct plan){.pods = width, .makespan_p50_s = INFINITY};
	*out = (struct step){
		.p50_s = p.makespan_p50_s + handovers_s,
		.p90_s = p.makespan_p90_s + handovers_s,
		.usd = p.cost_usd + on->m.per_run_usd * (double)before +
		       cost_usd(on->m.price_h, handovers_s * p.pods),
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

bool joint_place(const struct joint_facts *f, const int *jobs, size_t count,
		 const struct variant *v, const struct step *steps, struct rank *rank,
		 struct joint_group *group, struct joint_fate *fates)
{
	const struct joint_case *of = f->of;
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
	       usd = last->usd +
		     cost_usd(joint_machine(f, kind, v)->m.price_h, idle_s * last->pods);
	*rank = (struct rank){.usd = usd};
	for (size_t k = 0; k < count; k++) {
		double late = late_s(&of->jobs[jobs[k]], &spans[k], start_s);
		rank->late += late > IN_TIME_S;
		rank->late_ms += late > IN_TIME_S ? to_ms(late) + 1 : 0;
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

void gangs_remove(struct gangs *g, size_t i)
{
	free(g->list[i].jobs);
	g->list[i] = g->list[--g->count];
}

void gangs_copy(struct gangs *to, const struct gangs *from)
{
	gangs_free(to);
	for (size_t i = 0; i < from->count; i++)
		gangs_add(to, from->list[i].jobs, from->list[i].count, &from->list[i].best);
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

struct step *joint_steps(const struct joint_facts *f, const struct gang *g)
{
	const struct joint_case *of = f->of;
	int kind = of->jobs[g->jobs[0]].kind;
	struct step *steps = xcalloc(g->count, sizeof(*steps));
	struct plan_work *w = xcalloc(1, sizeof(*w));

	for (size_t k = 0; k < g->count; k++) {
		joint_add_work(w, of->jobs[g->jobs[k]].work);
		joint_step(&steps[k], &of->kinds[kind], joint_machine(f, kind, &g->best),
			   g->best.width, w, k);
	}
	free(w);
	return steps;
}
