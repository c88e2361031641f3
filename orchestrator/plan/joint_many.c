/* joint_many.c - the joint plan of many jobs: adds them to groups in the order in which they are
 * due, then merges and splits groups and moves jobs between them while that helps. */
#include "joint_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
	/* jobs that all get a plan; of a larger group some do, and the others lie between them */
	CHECKPOINTS = 8,
	CHECKPOINTS_LARGE = 4,
	/* plans that the search may work out; one takes up to five microseconds */
	PLANS_MOST = 8000,
	WORKS_A_PLAN = 8, /* adding the work of so many jobs takes as long as a plan */
	GROUPS_TRIED = 5, /* for a new job, the newest first */
	STEPS_HERE = 256
};

struct many {
	const struct joint_case *of;
	int plans; /* worked out so far */
	bool *up_used;
};

static bool may_go_on(const struct many *m)
{
	return m->plans < PLANS_MOST;
}

/* ---- the value of a group ---- */

/* A group whose variants are compared. */
struct trial {
	struct many *m;
	const int *jobs;
	size_t count;
	int kind;
	size_t at[CHECKPOINTS + 1];             /* places of jobs, rising; the last one's is last */
	struct plan_work work[CHECKPOINTS + 1]; /* up to them */
	size_t checkpoints;
	struct least least;
};

static void trial_init(struct trial *t, struct many *m, const int *jobs, size_t count)
{
	struct plan_work w = {0};

	*t = (struct trial){.m = m, .jobs = jobs, .count = count};
	t->kind = m->of->jobs[jobs[0]].kind;
	for (size_t k = 0; k < count; k++) {
		joint_add_work(&w, m->of->jobs[jobs[k]].work);
		size_t next = (t->checkpoints * count + CHECKPOINTS_LARGE - 1) / CHECKPOINTS_LARGE;
		if (count > CHECKPOINTS && k && k + 1 < MIN(next, count))
			continue;
		t->at[t->checkpoints] = k;
		t->work[t->checkpoints++] = w;
	}
	joint_least_init(&t->least, &w);
	m->plans += (int)(count / WORKS_A_PLAN);
}

/* Fills the steps between two checkpoints by the work of the jobs. */
static void fill_between(const struct trial *t, struct step *steps, size_t from, size_t to)
{
	const struct joint_job *jobs = t->m->of->jobs;
	double sum = 0, done = 0;

	for (size_t k = from + 1; k <= to; k++)
		sum += jobs[t->jobs[k]].work->sum;
	for (size_t k = from + 1; k < to; k++) {
		done += jobs[t->jobs[k]].work->sum;
		double part = sum > 0 ? done / sum : 1;
		steps[k] = steps[to];
		steps[k].p50_s = steps[from].p50_s + part * (steps[to].p50_s - steps[from].p50_s);
		steps[k].p90_s = steps[from].p90_s + part * (steps[to].p90_s - steps[from].p90_s);
	}
}

/* Values the variant. Returns false if a budget of a job does not pay for it. */
static bool try_variant(struct trial *t, struct variant *v)
{
	const struct joint_kind *kind = &t->m->of->kinds[t->kind];
	const struct plan_machine *machine = joint_machine(t->m->of, t->kind, v);
	struct step here[STEPS_HERE], *steps = here;

	if (t->count > STEPS_HERE)
		steps = xcalloc(t->count, sizeof(*steps));
	for (size_t i = 0; i < t->checkpoints; i++) {
		joint_step(&steps[t->at[i]], kind, machine, v->up >= 0, v->width, &t->work[i],
			   t->at[i]);
		if (i)
			fill_between(t, steps, t->at[i - 1], t->at[i]);
	}
	t->m->plans += (int)t->checkpoints;
	bool pays = joint_place(t->m->of, t->jobs, t->count, v, steps, &v->rank, NULL, NULL);
	if (steps != here)
		free(steps);
	return pays;
}

/* By cost alone, or as plans are compared. */
static bool is_better(const struct rank *a, const struct rank *b, bool by_cost)
{
	return by_cost ? a->usd < b->usd : rank_compare(a, b) < 0;
}

/* Whether no plan above the floor can be better; wider: and no wider one. */
static bool is_ruled_out(const struct rank *best, const struct floor *floor, bool by_cost,
			 bool wider)
{
	if ((by_cost || !best->late) && best->usd <= floor->usd)
		return true;
	return !wider && !by_cost && floor->late_ms && best->late <= 1 &&
	       best->late_ms < floor->late_ms;
}

static bool try_machine(struct trial *t, int machine, bool by_cost, struct variant *best, bool any)
{
	const struct joint_kind *kind = &t->m->of->kinds[t->kind];
	const struct plan_machine *m = &kind->machines[machine];
	const struct plan_work *w = &t->work[t->checkpoints - 1];
	int below = 0, width;

	for (int i = 0; (width = joint_width(kind, m, w, i)); i++) {
		struct variant v = {.machine = machine, .up = -1, .width = width};
		struct floor floor =
			joint_floor(&t->least, t->m->of, t->jobs, t->count, m, w, width, below);
		below = width;
		if (any && is_ruled_out(&best->rank, &floor, by_cost, true))
			break;
		if (any && is_ruled_out(&best->rank, &floor, by_cost, false))
			continue;
		if (try_variant(t, &v) && (!any || is_better(&v.rank, &best->rank, by_cost))) {
			*best = v;
			any = true;
		}
	}
	return any;
}

/* Returns false if no variant is possible. */
static bool try_machines(struct trial *t, bool by_cost, struct variant *best, bool any)
{
	size_t machines;
	int *order = joint_order_machines(&t->least, t->m->of, t->jobs, t->count,
					  &t->work[t->checkpoints - 1], &machines);

	for (size_t i = 0; i < machines; i++)
		any = try_machine(t, order[i], by_cost, best, any);
	free(order);
	return any;
}

/* Finds the best way to render these jobs together. own: what they take over now; -1: nothing. */
static bool find_best(struct many *m, const int *jobs, size_t count, int own, bool by_cost,
		      struct variant *best)
{
	struct trial t;
	bool any = false;

	trial_init(&t, m, jobs, count);
	for (size_t up = 0; up < m->of->up_count; up++) {
		const struct joint_up *u = &m->of->ups[up];
		struct variant v = {.machine = -1, .up = (int)up, .width = u->pods};
		if (u->kind != t.kind || u->machine.batch_max <= 0 ||
		    (m->up_used[up] && (int)up != own) || !try_variant(&t, &v))
			continue;
		if (!any || is_better(&v.rank, &best->rank, by_cost))
			*best = v;
		any = true;
	}
	return try_machines(&t, by_cost, best, any);
}

/* ---- solutions ---- */

static void note_ups(struct many *m, const struct gangs *g)
{
	for (size_t up = 0; up < m->of->up_count; up++)
		m->up_used[up] = false;
	for (size_t i = 0; i < g->count; i++)
		if (g->list[i].best.up >= 0)
			m->up_used[g->list[i].best.up] = true;
}

static void remove_gang(struct gangs *g, size_t i)
{
	free(g->list[i].jobs);
	g->list[i] = g->list[--g->count];
}

/* Jobs of a kind, sorted. The caller frees them. */
static int *all_sorted(const struct joint_case *of)
{
	int *jobs = xcalloc(of->job_count + 1, sizeof(*jobs));

	for (size_t i = 0; i < of->job_count; i++)
		jobs[i] = (int)i;
	joint_sort(of, jobs, of->job_count);
	return jobs;
}

/* The jobs of gang a, and those of b, or one job, in their order. The caller frees them. */
static int *joined(const struct joint_case *of, const int *a, size_t a_count, const int *b,
		   size_t b_count)
{
	int *jobs = xcalloc(a_count + b_count, sizeof(*jobs));

	memcpy(jobs, a, a_count * sizeof(*a));
	if (b_count)
		memcpy(jobs + a_count, b, b_count * sizeof(*b));
	joint_sort(of, jobs, a_count + b_count);
	return jobs;
}

static void copy_gangs(struct gangs *to, const struct gangs *from)
{
	gangs_free(to);
	for (size_t i = 0; i < from->count; i++)
		gangs_add(to, from->list[i].jobs, from->list[i].count, &from->list[i].best);
}

/* Adds the jobs as one group, or not, if nothing fits. */
static void add_best(struct many *m, struct gangs *g, const int *jobs, size_t count)
{
	struct variant v;

	note_ups(m, g);
	if (find_best(m, jobs, count, -1, false, &v))
		gangs_add(g, jobs, count, &v);
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
		size_t n = 0, had = g->count;
		for (size_t i = first; i < count; i++)
			if (!seen[i] &&
			    m->of->jobs[sorted[i]].kind == m->of->jobs[sorted[first]].kind) {
				seen[i] = true;
				jobs[n++] = sorted[i];
			}
		if (!n)
			continue;
		add_best(m, g, jobs, n);
		bool fits = g->count > had;
		for (size_t i = 0; i < n && !fits; i++)
			add_best(m, g, &jobs[i], 1);
	}
	free(seen);
	free(jobs);
}

/* ---- greedy ---- */

/* The next wider variant on the same offer; width 0: none. */
static struct variant wider(const struct trial *t, const struct variant *v)
{
	const struct joint_kind *kind = &t->m->of->kinds[t->kind];
	struct variant next = *v;

	next.width = 0;
	for (int i = 0, width = 1; v->up < 0 && width && next.width <= v->width; i++) {
		width = joint_width(kind, &kind->machines[v->machine], &t->work[t->checkpoints - 1],
				    i);
		next.width = width;
	}
	return next;
}

/* What the job adds to a group that keeps its offer and its width, or takes the next one. */
static bool try_append(struct many *m, const struct gang *g, int job, struct variant *v,
		       struct rank *added)
{
	int *jobs = joined(m->of, g->jobs, g->count, &job, 1);
	struct trial t;

	trial_init(&t, m, jobs, g->count + 1);
	*v = g->best;
	bool fits = try_variant(&t, v);
	struct variant next = wider(&t, v);
	if (next.width && (!fits || v->rank.late) && try_variant(&t, &next) &&
	    (!fits || rank_compare(&next.rank, &v->rank) < 0)) {
		*v = next;
		fits = true;
	}
	free(jobs);
	*added = (struct rank){0, v->rank.late - g->best.rank.late,
			       v->rank.late_ms - g->best.rank.late_ms,
			       v->rank.usd - g->best.rank.usd};
	return fits;
}

static void append(struct many *m, struct gang *g, int job, const struct variant *v)
{
	int *jobs = joined(m->of, g->jobs, g->count, &job, 1);

	free(g->jobs);
	g->jobs = jobs;
	g->best = *v;
	g->count++;
	if (!(g->count & (g->count - 1))) /* now and then, whatever it has */
		find_best(m, g->jobs, g->count, v->up, false, &g->best);
}

static void add_greedily(struct many *m, struct gangs *g, int job)
{
	struct variant alone, v, best;
	struct rank added, least;
	int into = -1;

	note_ups(m, g);
	bool fits = find_best(m, &job, 1, -1, false, &alone);
	least = fits ? alone.rank : (struct rank){.out = 1};
	for (size_t i = g->count, tried = 0; i-- > 0 && tried < GROUPS_TRIED;) {
		if (m->of->jobs[g->list[i].jobs[0]].kind != m->of->jobs[job].kind)
			continue;
		tried++;
		if (try_append(m, &g->list[i], job, &v, &added) &&
		    rank_compare(&added, &least) < 0) {
			least = added;
			best = v;
			into = (int)i;
		}
	}
	if (into >= 0)
		append(m, &g->list[into], job, &best);
	else if (fits)
		gangs_add(g, &job, 1, &alone);
}

/* A job that only a later one makes affordable, since a large group costs less for each. Adds it to
 * the first group that can pay for it. */
static void add_later(struct many *m, struct gangs *g, int job)
{
	struct variant v;

	note_ups(m, g);
	for (size_t i = 0; i < g->count && may_go_on(m); i++) {
		struct gang *x = &g->list[i];
		if (m->of->jobs[x->jobs[0]].kind != m->of->jobs[job].kind)
			continue;
		int *jobs = joined(m->of, x->jobs, x->count, &job, 1);
		bool fits = find_best(m, jobs, x->count + 1, x->best.up, false, &v);
		if (fits)
			append(m, x, job, &v);
		free(jobs);
		if (fits)
			return;
	}
}

static void add_left_out(struct many *m, struct gangs *g)
{
	bool *has = xcalloc(m->of->job_count + 1, sizeof(*has));

	for (size_t i = 0; i < g->count; i++)
		for (size_t k = 0; k < g->list[i].count; k++)
			has[g->list[i].jobs[k]] = true;
	for (size_t job = 0; job < m->of->job_count; job++)
		if (!has[job])
			add_later(m, g, (int)job);
	free(has);
}

/* ---- moves ---- */

/* Replaces two groups (b may be a: one) by one or two others, if that is better. */
static bool replace(struct many *m, struct gangs *g, size_t a, size_t b, const int *first,
		    size_t first_count, const int *second, size_t second_count)
{
	struct rank was = g->list[a].best.rank, will;
	struct variant x, y;
	int own[2] = {g->list[a].best.up, g->list[b].best.up};

	if (b != a)
		was = rank_sum(&was, &g->list[b].best.rank);
	note_ups(m, g);
	for (int i = 0; i < 2; i++)
		if (own[i] >= 0)
			m->up_used[own[i]] = false;
	if (!find_best(m, first, first_count, -1, false, &x))
		return false;
	will = x.rank;
	if (second_count) {
		if (x.up >= 0)
			m->up_used[x.up] = true;
		if (!find_best(m, second, second_count, -1, false, &y))
			return false;
		will = rank_sum(&will, &y.rank);
	}
	/* rounding is no gain */
	will.usd += 1e-9;
	if (rank_compare(&will, &was) >= 0)
		return false;
	gangs_add(g, first, first_count, &x);
	if (second_count)
		gangs_add(g, second, second_count, &y);
	/* the later one first: removing moves the last into its place */
	remove_gang(g, MAX(a, b));
	if (b != a)
		remove_gang(g, MIN(a, b));
	return true;
}

static bool same_kind(const struct many *m, const struct gangs *g, size_t a, size_t b)
{
	return m->of->jobs[g->list[a].jobs[0]].kind == m->of->jobs[g->list[b].jobs[0]].kind;
}

static bool merge_some(struct many *m, struct gangs *g)
{
	for (size_t a = 0; a < g->count; a++)
		for (size_t b = a + 1; b < g->count && may_go_on(m); b++) {
			if (!same_kind(m, g, a, b))
				continue;
			size_t n = g->list[a].count + g->list[b].count;
			int *jobs = joined(m->of, g->list[a].jobs, g->list[a].count,
					   g->list[b].jobs, g->list[b].count);
			bool done = replace(m, g, a, b, jobs, n, NULL, 0);
			free(jobs);
			if (done)
				return true;
		}
	return false;
}

static bool split_some(struct many *m, struct gangs *g)
{
	for (size_t a = 0; a < g->count; a++) {
		size_t n = g->list[a].count, by = MAX(n / CHECKPOINTS, (size_t)1);
		for (size_t k = by; k < n && may_go_on(m); k += by) {
			int *jobs = joined(m->of, g->list[a].jobs, n, NULL, 0);
			bool done = replace(m, g, a, a, jobs, k, jobs + k, n - k);
			free(jobs);
			if (done)
				return true;
		}
	}
	return false;
}

/* Moves the job at k of group a to group b, or, where b is a, to a group of its own. */
static bool move_job(struct many *m, struct gangs *g, size_t a, size_t k, size_t b)
{
	const struct gang *from = &g->list[a], *to = &g->list[b];
	int job = from->jobs[k], *rest = xcalloc(from->count, sizeof(*rest));
	size_t n = 0;

	for (size_t i = 0; i < from->count; i++)
		if (i != k)
			rest[n++] = from->jobs[i];
	int *more = b == a ? joined(m->of, &job, 1, NULL, 0)
			   : joined(m->of, to->jobs, to->count, &job, 1);
	bool done = replace(m, g, a, b, more, b == a ? 1 : to->count + 1, rest, n);
	free(rest);
	free(more);
	return done;
}

static bool move_some(struct many *m, struct gangs *g)
{
	for (size_t a = 0; a < g->count; a++)
		for (size_t k = 0; k < g->list[a].count; k++)
			for (size_t b = 0; b < g->count && may_go_on(m); b++) {
				if (!same_kind(m, g, a, b) || (b == a && g->list[a].count == 1))
					continue;
				if (move_job(m, g, a, k, b))
					return true;
			}
	return false;
}

/* Swaps job i of group a with job k of group b. */
static bool swap_jobs(struct many *m, struct gangs *g, size_t a, size_t i, size_t b, size_t k)
{
	const struct gang *x = &g->list[a], *y = &g->list[b];
	int *first = joined(m->of, x->jobs, x->count, NULL, 0),
	    *second = joined(m->of, y->jobs, y->count, NULL, 0);

	first[i] = y->jobs[k];
	second[k] = x->jobs[i];
	joint_sort(m->of, first, x->count);
	joint_sort(m->of, second, y->count);
	bool done = replace(m, g, a, b, first, x->count, second, y->count);
	free(first);
	free(second);
	return done;
}

static bool swap_some(struct many *m, struct gangs *g)
{
	for (size_t a = 0; a < g->count; a++)
		for (size_t b = a + 1; b < g->count; b++)
			for (size_t at = 0; at < g->list[a].count * g->list[b].count &&
					    same_kind(m, g, a, b) && may_go_on(m);
			     at++)
				if (swap_jobs(m, g, a, at / g->list[b].count, b,
					      at % g->list[b].count))
					return true;
	return false;
}

static void improve(struct many *m, struct gangs *g)
{
	while (may_go_on(m) &&
	       (merge_some(m, g) || split_some(m, g) || move_some(m, g) || swap_some(m, g)))
		;
}

/* ---- the shared budget ---- */

static double usd_of(const struct gangs *g)
{
	double usd = 0;

	for (size_t i = 0; i < g->count; i++)
		usd += g->list[i].best.rank.usd;
	return usd;
}

/* Gives the group that saves most its cheapest variant. Returns false if none saves anything. */
static bool make_one_cheaper(struct many *m, struct gangs *g)
{
	double most = 1e-9;
	struct variant v, cheapest;
	size_t at = 0;

	note_ups(m, g);
	for (size_t i = 0; i < g->count; i++) {
		struct gang *x = &g->list[i];
		if (!find_best(m, x->jobs, x->count, x->best.up, true, &v) ||
		    x->best.rank.usd - v.rank.usd <= most)
			continue;
		most = x->best.rank.usd - v.rank.usd;
		cheapest = v;
		at = i;
	}
	if (most <= 1e-9)
		return false;
	g->list[at].best = cheapest;
	return true;
}

/* Takes one job out of the group that costs most for each job: its largest one. */
static void leave_one_out(struct many *m, struct gangs *g)
{
	size_t at = 0, k = 0, n = 0;
	double most = -1;

	for (size_t i = 0; i < g->count; i++)
		if (g->list[i].best.rank.usd / (double)g->list[i].count > most) {
			most = g->list[i].best.rank.usd / (double)g->list[i].count;
			at = i;
		}
	struct gang *x = &g->list[at];
	for (size_t i = 1; i < x->count; i++)
		if (m->of->jobs[x->jobs[i]].work->sum > m->of->jobs[x->jobs[k]].work->sum)
			k = i;
	for (size_t i = 0; i < x->count; i++)
		if (i != k)
			x->jobs[n++] = x->jobs[i];
	x->count = n;
	note_ups(m, g);
	if (!n || !find_best(m, x->jobs, n, x->best.up, true, &x->best))
		remove_gang(g, at);
}

/* Spends what is left on groups that would be late less. */
static void spend_rest(struct many *m, struct gangs *g)
{
	for (size_t i = 0; i < g->count; i++) {
		struct gang *x = &g->list[i];
		struct variant v;
		note_ups(m, g);
		if (find_best(m, x->jobs, x->count, x->best.up, false, &v) &&
		    rank_compare(&v.rank, &x->best.rank) < 0 &&
		    usd_of(g) - x->best.rank.usd + v.rank.usd <= m->of->budget_usd)
			x->best = v;
	}
}

static void keep_budget(struct many *m, struct gangs *g)
{
	if (usd_of(g) <= m->of->budget_usd)
		return;
	while (usd_of(g) > m->of->budget_usd && make_one_cheaper(m, g))
		;
	while (g->count && usd_of(g) > m->of->budget_usd)
		leave_one_out(m, g);
	spend_rest(m, g);
}

/* ---- the whole ---- */

/* Values each group anew with a plan for every job. */
static void settle(const struct joint_case *of, struct gangs *g)
{
	for (size_t i = 0; i < g->count; i++) {
		struct gang *x = &g->list[i];
		if (x->count <= CHECKPOINTS)
			continue;
		struct step *steps = joint_steps(of, x);
		joint_place(of, x->jobs, x->count, &x->best, steps, &x->best.rank, NULL, NULL);
		free(steps);
	}
}

/* Takes *g instead of *best if it is better, and frees it. */
static void keep_better(const struct joint_case *of, struct gangs *best, struct gangs *g, bool any)
{
	settle(of, g);
	struct rank a = gangs_rank(g, of->job_count), b = gangs_rank(best, of->job_count);
	if (!any || rank_compare(&a, &b) < 0)
		copy_gangs(best, g);
	gangs_free(g);
}

void joint_simple(struct gangs *out, const struct joint_case *of, bool pooled)
{
	struct many m = {.of = of, .up_used = xcalloc(of->up_count + 1, sizeof(bool))};
	int *sorted = all_sorted(of);

	if (pooled)
		all_pooled(&m, out, sorted);
	else
		one_by_one(&m, out, sorted);
	keep_budget(&m, out);
	settle(of, out);
	free(sorted);
	free(m.up_used);
}

static void improve_and_keep(struct many *m, struct gangs *out, struct gangs *g)
{
	add_left_out(m, g);
	improve(m, g);
	keep_budget(m, g);
	keep_better(m->of, out, g, true);
}

/* Starts from the two simple ways as well: what is late alone may not be in a group, and the other
 * way round. */
void joint_many(struct gangs *out, const struct joint_case *of)
{
	struct many m = {.of = of, .up_used = xcalloc(of->up_count + 1, sizeof(bool))};
	struct gangs simple[2] = {0}, g = {0};
	int *sorted = all_sorted(of);

	for (int pooled = 0; pooled < 2; pooled++) {
		joint_simple(&simple[pooled], of, pooled);
		copy_gangs(&g, &simple[pooled]);
		keep_better(of, out, &g, pooled);
	}
	for (size_t i = 0; i < of->job_count; i++)
		add_greedily(&m, &g, sorted[i]);
	improve_and_keep(&m, out, &g);
	improve_and_keep(&m, out, &simple[1]);
	improve_and_keep(&m, out, &simple[0]);
	free(sorted);
	free(m.up_used);
}
