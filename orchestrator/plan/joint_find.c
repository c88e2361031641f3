/* joint_find.c - finds the best offer and width for one group of many jobs. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "joint_impl.h"

enum {
	/* jobs that all get a plan; of a larger group some do, and the others lie between them */
	CHECKPOINTS = 8,
	CHECKPOINTS_LARGE = 4,
	STEPS_HERE = 256,
	/* what takes as long as a tenth of a plan */
	EFFORT_PLAN = 10,
	EFFORT_WORK = 2, /* adding a job's work */
};

const struct rank rank_worst = {INT_MAX, INT_MAX, INT64_MAX, INFINITY};

/* ---- the state of a search ---- */

/* What is known of a job by itself, on pods of its own and without a limit, by cost or not. */
struct alone {
	enum { ALONE_UNKNOWN, ALONE_NONE, ALONE_FOUND } state[2];
	struct variant best[2];
};

void many_init(struct many *m, const struct joint_facts *f)
{
	*m = (struct many){.f = f,
			   .of = f->of,
			   .budget_usd = INFINITY,
			   .effort_most = INT_MAX,
			   .up_used = xcalloc(f->of->up_count + 1, sizeof(bool)),
			   .alone = xcalloc(f->of->job_count + 1, sizeof(struct alone)),
			   .random = 1};
}

void many_free(struct many *m)
{
	free(m->up_used);
	free(m->alone);
	free(m->failed);
	*m = (struct many){0};
}

bool many_may_go_on(const struct many *m)
{
	return m->effort < m->effort_most;
}

/* As plans are compared, or by cost alone. */
static int compare(const struct many *m, const struct rank *a, const struct rank *b)
{
	return m->by_cost ? (a->usd > b->usd) - (a->usd < b->usd) : rank_compare(a, b);
}

/* ---- the value of a group ---- */

/* A group whose variants are compared. */
struct trial {
	struct many *m;
	const struct joint_kind *kind;
	int number; /* of the kind */
	struct outline o;
	struct plan_work work[MARKS_MOST];
	struct least least[MARKS_MOST];
	double usd_most;
	struct rank below; /* the best so far, or what it must be better than */
};

static void trial_init(struct trial *t, struct many *m, const struct query *q)
{
	struct plan_work w = {0};
	struct outline *o = &t->o;
	size_t count = q->count;

	t->m = m;
	t->number = m->of->jobs[q->jobs[0]].kind;
	t->kind = &m->of->kinds[t->number];
	t->usd_most = q->usd_most;
	t->below = q->below;
	*o = (struct outline){.f = m->f, .jobs = q->jobs, .count = count};
	for (size_t k = 0; k < count; k++) {
		joint_add_work(&w, m->of->jobs[q->jobs[k]].work);
		size_t n = o->mark_count,
		       next = (n * count + CHECKPOINTS_LARGE - 1) / CHECKPOINTS_LARGE;
		if (count > CHECKPOINTS && k && k + 1 < MIN(next, count))
			continue;
		t->work[n] = w;
		joint_least_init(&t->least[n], &w);
		o->marks[o->mark_count++] = (struct mark){k, &t->work[n], &t->least[n]};
	}
	m->effort += (int)count * EFFORT_WORK;
}

static const struct plan_work *work_of_all(const struct trial *t)
{
	return &t->work[t->o.mark_count - 1];
}

/* Fills the steps between two marks by the work of the jobs. */
static void fill_between(const struct trial *t, struct step *steps, size_t from, size_t to)
{
	const struct joint_job *jobs = t->m->of->jobs;
	double sum = 0, done = 0;

	for (size_t k = from + 1; k <= to; k++)
		sum += jobs[t->o.jobs[k]].work->sum;
	for (size_t k = from + 1; k < to; k++) {
		done += jobs[t->o.jobs[k]].work->sum;
		double part = sum > 0 ? done / sum : 1;
		steps[k] = steps[to];
		steps[k].p50_s = steps[from].p50_s + part * (steps[to].p50_s - steps[from].p50_s);
		steps[k].p90_s = steps[from].p90_s + part * (steps[to].p90_s - steps[from].p90_s);
	}
}

/* Values the variant. Returns false if a budget of a job does not pay for it. */
static bool try_variant(struct trial *t, struct variant *v)
{
	const struct joint_machine *on = joint_machine(t->m->f, t->number, v);
	struct step here[STEPS_HERE], *steps = here;

	if (t->o.count > STEPS_HERE)
		steps = xcalloc(t->o.count, sizeof(*steps));
	for (size_t i = 0; i < t->o.mark_count; i++) {
		size_t at = t->o.marks[i].at;
		joint_step(&steps[at], t->kind, on, v->width, &t->work[i], at);
		if (i)
			fill_between(t, steps, t->o.marks[i - 1].at, at);
	}
	t->m->effort += (int)t->o.mark_count * EFFORT_PLAN;
	bool pays = joint_place(t->m->f, t->o.jobs, t->o.count, v, steps, &v->rank, NULL, NULL);
	if (steps != here)
		free(steps);
	return pays;
}

static bool is_better(const struct trial *t, const struct rank *r)
{
	return r->usd <= t->usd_most && compare(t->m, r, &t->below) < 0;
}

/* Takes the variant if it is the best so far. */
static bool consider(struct trial *t, struct variant *v, struct variant *best)
{
	if (!try_variant(t, v) || !is_better(t, &v->rank))
		return false;
	*best = *v;
	t->below = v->rank;
	return true;
}

/* Whether no plan above the floor, or a wider one, can be better. */
static bool is_over(const struct trial *t, const struct rank *floor)
{
	return floor->usd > t->usd_most ||
	       ((t->m->by_cost || (!t->below.out && !t->below.late)) && floor->usd >= t->below.usd);
}

static bool try_machine(struct trial *t, int machine, struct variant *best)
{
	const struct joint_machine *on = &t->m->f->machines[t->number][machine];
	int below = 0, width;
	bool any = false;

	for (int i = 0; (width = joint_width(t->kind, &on->m, work_of_all(t), i)); i++) {
		struct variant v = {.machine = machine, .up = -1, .width = width};
		struct rank floor =
			joint_floor(&t->o, on, width, joint_fewest(t->kind, width, below));
		below = width;
		t->m->effort += (int)t->o.mark_count;
		if (is_over(t, &floor))
			break;
		if (is_better(t, &floor) && consider(t, &v, best))
			any = true;
	}
	return any;
}

static bool try_machines(struct trial *t, struct variant *best)
{
	size_t count;
	struct promising *list = joint_order_machines(&t->o, &count);
	bool any = false;

	t->m->effort += (int)(count * t->o.mark_count);
	for (size_t i = 0; i < count; i++)
		if (is_better(t, &list[i].least))
			any |= try_machine(t, list[i].machine, best);
	free(list);
	return any;
}

static bool try_ups(struct trial *t, struct variant *best)
{
	const struct joint_case *of = t->m->of;
	bool any = false;

	for (size_t up = 0; up < of->up_count; up++) {
		const struct joint_up *u = &of->ups[up];
		struct variant v = {.machine = -1, .up = (int)up, .width = u->pods};
		if (u->kind == t->number && u->machine.batch_max > 0 && !t->m->up_used[up])
			any |= consider(t, &v, best);
	}
	return any;
}

/* Finds the best machine for one job without limits. */
static void find_alone(const struct trial *t, struct alone *a)
{
	struct trial free_of_limits = *t;
	bool by_cost = t->m->by_cost;

	for (size_t i = 0; i < t->o.mark_count; i++) {
		free_of_limits.o.marks[i].work = &free_of_limits.work[i];
		free_of_limits.o.marks[i].least = &free_of_limits.least[i];
	}
	free_of_limits.usd_most = INFINITY;
	free_of_limits.below = rank_worst;
	bool found = try_machines(&free_of_limits, &a->best[by_cost]);
	a->state[by_cost] = found ? ALONE_FOUND : ALONE_NONE;
}

/* try_machines() for one job. */
static bool try_alone(struct trial *t, struct variant *best)
{
	bool by_cost = t->m->by_cost;
	struct alone *a = &t->m->alone[t->o.jobs[0]];
	const struct variant *v = &a->best[by_cost];

	if (a->state[by_cost] == ALONE_UNKNOWN)
		find_alone(t, a);
	if (a->state[by_cost] == ALONE_NONE)
		return false;
	if (v->rank.usd > t->usd_most)
		return try_machines(t, best);
	if (!is_better(t, &v->rank))
		return false;
	*best = *v;
	return true;
}

bool many_find(struct many *m, const struct query *q, struct variant *best)
{
	struct trial t;

	trial_init(&t, m, q);
	bool any = try_ups(&t, best);
	any |= q->count == 1 ? try_alone(&t, best) : try_machines(&t, best);
	return any;
}

/* The next wider variant on the same offer; width 0: none. */
static struct variant wider(const struct trial *t, const struct variant *v)
{
	struct variant next = *v;

	next.width = 0;
	for (int i = 0, width = 1; v->up < 0 && width && next.width <= v->width; i++) {
		width = joint_width(t->kind, &t->kind->machines[v->machine], work_of_all(t), i);
		next.width = width;
	}
	return next;
}

bool many_extend(struct many *m, const struct gang *g, int job, struct variant *v)
{
	int *jobs = joint_join(m->of, g->jobs, g->count, &job, 1);
	struct query q = {jobs, g->count + 1, INFINITY, rank_worst};
	struct trial t;

	trial_init(&t, m, &q);
	*v = g->best;
	bool fits = try_variant(&t, v);
	struct variant next = wider(&t, v);
	if (next.width && (!fits || v->rank.late) && try_variant(&t, &next) &&
	    (!fits || rank_compare(&next.rank, &v->rank) < 0)) {
		*v = next;
		fits = true;
	}
	free(jobs);
	return fits;
}
