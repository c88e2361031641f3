/* joint_many.c - the joint plan of many jobs: adds them to groups in the order in which they are
 * due, improves that and two simpler solutions by moves, and tries again from what chance changes.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "joint_impl.h"

enum {
	EFFORT_MOST = 240 * 1000, /* of all that is tried, in tenths of plans */
	GROUPS_TRIED = 5,         /* for a new job, the newest first */
	SHAKES_IN_A_ROW = 8,
	SHAKES_VAIN = 300, /* that bring nothing, and one for each job: the search ends */
	LEFT_OUT_TRIED = 8 /* jobs of a group that may be left out for money */
};

/* All jobs, sorted. The caller frees them. */
static int *all_sorted(const struct joint_case *of)
{
	int *jobs = xcalloc(of->job_count + 1, sizeof(*jobs));

	for (size_t i = 0; i < of->job_count; i++)
		jobs[i] = (int)i;
	joint_sort(of, jobs, of->job_count);
	return jobs;
}

/* ---- simple solutions ---- */

/* Adds the jobs as one group. Returns false if nothing fits. */
static bool add_best(struct many *m, struct gangs *g, const int *jobs, size_t count)
{
	struct query q = {jobs, count, INFINITY, rank_worst};
	struct variant v;

	many_note_ups(m, g, SIZE_MAX, SIZE_MAX);
	if (!many_find(m, &q, &v))
		return false;
	gangs_add(g, jobs, count, &v);
	return true;
}

static void one_by_one(struct many *m, struct gangs *g, const int *sorted)
{
	for (size_t i = 0; i < m->of->job_count; i++)
		add_best(m, g, &sorted[i], 1);
}

/* Sorts the jobs by kind into groups; of a group that nothing fits, each by itself. */
static void all_pooled(struct many *m, struct gangs *g, const int *sorted)
{
	size_t count = m->of->job_count;
	bool *seen = xcalloc(count + 1, sizeof(*seen));
	int *jobs = xcalloc(count + 1, sizeof(*jobs));

	for (size_t first = 0; first < count; first++) {
		size_t n = 0;
		for (size_t i = first; i < count; i++)
			if (!seen[i] &&
			    m->of->jobs[sorted[i]].kind == m->of->jobs[sorted[first]].kind) {
				seen[i] = true;
				jobs[n++] = sorted[i];
			}
		if (n && !add_best(m, g, jobs, n))
			for (size_t i = 0; i < n; i++)
				add_best(m, g, &jobs[i], 1);
	}
	free(seen);
	free(jobs);
}

/* ---- greedy ---- */

static void append(struct many *m, struct gangs *g, size_t into, int job, const struct variant *v)
{
	struct gang *x = &g->list[into];
	int *jobs = joint_join(m->of, x->jobs, x->count, &job, 1);
	struct query q = {jobs, x->count + 1, INFINITY, v->rank};

	free(x->jobs);
	x->jobs = jobs;
	x->best = *v;
	x->count++;
	if (x->count & (x->count - 1))
		return;
	many_note_ups(m, g, into, into); /* now and then, whatever it has */
	many_find(m, &q, &x->best);
}

static void add_greedily(struct many *m, struct gangs *g, int job)
{
	struct query q = {&job, 1, INFINITY, rank_worst};
	struct variant alone, v, best;
	struct rank least = {.out = 1};
	size_t into = SIZE_MAX;

	many_note_ups(m, g, SIZE_MAX, SIZE_MAX);
	bool fits = many_find(m, &q, &alone);
	if (fits)
		least = alone.rank;
	for (size_t i = g->count, tried = 0; i-- > 0 && tried < GROUPS_TRIED;) {
		const struct gang *x = &g->list[i];
		if (m->of->jobs[x->jobs[0]].kind != m->of->jobs[job].kind)
			continue;
		tried++;
		if (!many_extend(m, x, job, &v))
			continue;
		struct rank with = rank_sum(&x->best.rank, &least);
		if (rank_compare(&v.rank, &with) >= 0)
			continue;
		least = (struct rank){0, v.rank.late - x->best.rank.late,
				      v.rank.late_ms - x->best.rank.late_ms,
				      v.rank.usd - x->best.rank.usd};
		best = v;
		into = i;
	}
	if (into != SIZE_MAX)
		append(m, g, into, job, &best);
	else if (fits)
		gangs_add(g, &job, 1, &alone);
}

/* ---- the shared budget ---- */

/* Gives the group that saves most its cheapest variant. Returns false if none saves anything. */
static bool make_one_cheaper(struct many *m, struct gangs *g)
{
	double most = 1e-9;
	struct variant v, cheapest;
	size_t at = 0;
	bool by_cost = m->by_cost;

	m->by_cost = true;
	for (size_t i = 0; i < g->count; i++) {
		struct gang *x = &g->list[i];
		struct query q = {x->jobs, x->count, INFINITY, x->best.rank};
		many_note_ups(m, g, i, i);
		if (!many_find(m, &q, &v) || x->best.rank.usd - v.rank.usd <= most)
			continue;
		most = x->best.rank.usd - v.rank.usd;
		cheapest = v;
		at = i;
	}
	m->by_cost = by_cost;
	if (most <= 1e-9)
		return false;
	g->list[at].best = cheapest;
	return true;
}

/* What the group saves without the job at k. *v: of the others, if there are any. */
static double saves_without(struct many *m, const struct gangs *g, size_t at, size_t k,
			    struct variant *v)
{
	const struct gang *x = &g->list[at];
	int *rest = xcalloc(x->count, sizeof(*rest));
	size_t n = 0;

	for (size_t i = 0; i < x->count; i++)
		if (i != k)
			rest[n++] = x->jobs[i];
	struct query q = {rest, n, INFINITY, rank_worst};
	many_note_ups(m, g, at, at);
	bool found = n && many_find(m, &q, v);
	free(rest);
	return found ? x->best.rank.usd - v->rank.usd : n ? 0 : x->best.rank.usd;
}

static int largest_first(const void *a, const void *b)
{
	double x = ((const double *)a)[0], y = ((const double *)b)[0];

	return (x < y) - (x > y);
}

/* The places of the jobs with most work in a group. */
static size_t list_largest(const struct many *m, const struct gang *x, size_t *places, size_t room)
{
	double(*list)[2] = xcalloc(x->count, sizeof(*list));
	size_t n = MIN(x->count, room);

	for (size_t k = 0; k < x->count; k++) {
		list[k][0] = m->of->jobs[x->jobs[k]].work->sum;
		list[k][1] = (double)k;
	}
	qsort(list, x->count, sizeof(*list), largest_first);
	for (size_t i = 0; i < n; i++)
		places[i] = (size_t)list[i][1];
	free(list);
	return n;
}

/* Takes out the job that saves most. */
static void leave_one_out(struct many *m, struct gangs *g)
{
	size_t at = 0, k = 0;
	double most = -1;
	struct variant v, best;
	bool by_cost = m->by_cost;

	m->by_cost = true;
	for (size_t i = 0; i < g->count; i++) {
		size_t places[LEFT_OUT_TRIED],
			n = list_largest(m, &g->list[i], places, LEFT_OUT_TRIED);
		for (size_t p = 0; p < n; p++) {
			double saved = saves_without(m, g, i, places[p], &v);
			if (saved <= most)
				continue;
			most = saved;
			best = v;
			at = i;
			k = places[p];
		}
	}
	m->by_cost = by_cost;
	struct gang *x = &g->list[at];
	memmove(&x->jobs[k], &x->jobs[k + 1], (x->count - k - 1) * sizeof(*x->jobs));
	if (!--x->count || most <= 0)
		gangs_remove(g, at);
	else
		x->best = best;
}

static void keep_budget(struct many *m, struct gangs *g)
{
	while (gangs_usd(g) > m->budget_usd && make_one_cheaper(m, g))
		;
	while (g->count && gangs_usd(g) > m->budget_usd)
		leave_one_out(m, g);
}

/* ---- the whole ---- */

/* Values each group anew with a plan for every job. */
static void settle(const struct joint_facts *f, struct gangs *g)
{
	for (size_t i = 0; i < g->count; i++) {
		struct gang *x = &g->list[i];
		if (x->count < MARKS_MOST)
			continue;
		struct step *steps = joint_steps(f, x);
		joint_place(f, x->jobs, x->count, &x->best, steps, &x->best.rank, NULL, NULL);
		free(steps);
	}
}

/* Settles within the budget. */
static void settle_and_pay(struct many *m, struct gangs *g)
{
	settle(m->f, g);
	for (int tries = 3; tries && gangs_usd(g) > m->budget_usd; tries--) {
		keep_budget(m, g);
		settle(m->f, g);
	}
}

/* Takes *g instead of *best if it is better. Frees *g. */
static bool keep_better(struct many *m, struct gangs *best, struct gangs *g)
{
	size_t jobs = m->of->job_count;

	settle_and_pay(m, g);
	struct rank a = gangs_rank(g, jobs), b = gangs_rank(best, jobs);
	a.usd += 1e-9;
	bool better = gangs_usd(g) <= m->budget_usd && rank_compare(&a, &b) < 0;
	if (better)
		gangs_copy(best, g);
	gangs_free(g);
	return better;
}

void joint_simple(struct gangs *out, const struct joint_facts *f, bool pooled)
{
	struct many m;
	int *sorted = all_sorted(f->of);

	many_init(&m, f);
	if (pooled)
		all_pooled(&m, out, sorted);
	else
		one_by_one(&m, out, sorted);
	m.budget_usd = f->of->budget_usd;
	keep_budget(&m, out);
	settle_and_pay(&m, out);
	free(sorted);
	many_free(&m);
}

static void improve_and_keep(struct many *m, struct gangs *best, struct gangs *g)
{
	keep_budget(m, g);
	many_improve(m, g);
	keep_better(m, best, g);
}

/* From the two simple ways as well: what is late alone may not be in a group, and the other way
 * round. */
static void search_freely(struct many *m, struct gangs *best)
{
	struct gangs simple[2] = {0}, g = {0};
	int *sorted = all_sorted(m->of);

	all_pooled(m, &simple[0], sorted);
	one_by_one(m, &simple[1], sorted);
	for (int i = 0; i < 2; i++) {
		gangs_copy(&g, &simple[i]);
		keep_better(m, best, &g);
	}
	for (size_t i = 0; i < m->of->job_count; i++)
		add_greedily(m, &g, sorted[i]);
	improve_and_keep(m, best, &g);
	improve_and_keep(m, best, &simple[0]);
	improve_and_keep(m, best, &simple[1]);
	free(sorted);
}

/* By way of the cheapest solution, which leaves out fewest jobs. Frees *g. */
static void search_cheaply(struct many *m, struct gangs *best, struct gangs *g)
{
	double budget_usd = m->budget_usd;

	m->by_cost = true;
	m->budget_usd = INFINITY;
	many_improve(m, g);
	m->budget_usd = budget_usd;
	keep_budget(m, g);
	many_improve(m, g);
	m->by_cost = false;
	improve_and_keep(m, best, g);
}

/* Shakes the best solution, and now and then what came of that. */
static void shake_and_improve(struct many *m, struct gangs *best)
{
	size_t most = m->of->job_count + SHAKES_VAIN;
	struct gangs now = {0}, g = {0};

	for (size_t vain = 0; vain < most && many_may_go_on(m); vain++) {
		if (vain % SHAKES_IN_A_ROW == 0)
			gangs_copy(&now, best);
		many_shake(m, &now);
		keep_budget(m, &now);
		many_improve(m, &now);
		gangs_copy(&g, &now);
		if (keep_better(m, best, &g))
			vain = 0;
	}
	gangs_free(&now);
}

void joint_many(struct gangs *out, const struct joint_facts *f)
{
	struct many m;
	struct gangs dear = {0}, cheap = {0};

	many_init(&m, f);
	m.effort_most = EFFORT_MOST * 2 / 3;
	search_freely(&m, out);
	m.effort_most = EFFORT_MOST;
	m.budget_usd = f->of->budget_usd;
	if (gangs_usd(out) > m.budget_usd) {
		m.effort_most *= 2;
		gangs_copy(&dear, out);
		gangs_copy(&cheap, out);
		gangs_free(out);
		improve_and_keep(&m, out, &dear);
		search_cheaply(&m, out, &cheap);
	}
	shake_and_improve(&m, out);
	many_free(&m);
}
