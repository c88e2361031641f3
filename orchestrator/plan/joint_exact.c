/* joint_exact.c - the joint plan of a few jobs: the best of all partitions into groups, each with
 * each offer and width. Sets of jobs are bits of a mask, in the order in which jobs of a group
 * render, so that the first jobs of a set are a set with its highest bits cleared. */
#include "joint_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum { SETS = 1 << JOINT_EXACT_MOST, WIDTHS = 20 };

/* What a set may be rendered with: variants of which none is as good as another one and as cheap.
 */
struct front {
	struct variant *list;
	size_t count, cap;
};

struct exact {
	const struct joint_facts *f;
	const struct joint_case *of;
	int jobs[JOINT_EXACT_MOST]; /* by bit */
	int count;
	bool has_budget;
	struct plan_work work[SETS]; /* of the sets of one kind */
	struct least least[SETS];
	int kind[SETS]; /* -1: the set has jobs of several */
	/* by machine, set and width; the last width that was worked out there. By kind in turn */
	struct step *steps;
	size_t machine_most;
	/* by set and what it takes over: 0 nothing, else up + 1 */
	struct front fronts[SETS][JOINT_UP_MOST + 1];
	/* by set and what earlier groups left to be taken over: the best without the shared budget
	 */
	struct rank best[SETS][1 << JOINT_UP_MOST];
	double cheapest[SETS][1 << JOINT_UP_MOST]; /* with no job left out that fits */
	/* the branch and bound */
	struct choice {
		unsigned set;
		struct variant v;
	} now[JOINT_EXACT_MOST], kept[JOINT_EXACT_MOST];
	int kept_count;
	struct rank kept_rank;
};

bool joint_is_small(const struct joint_case *of)
{
	return of->job_count <= JOINT_EXACT_MOST && of->up_count <= JOINT_UP_MOST;
}

/* ---- values of sets ---- */

static int list_set(const struct exact *x, unsigned set, int jobs[JOINT_EXACT_MOST])
{
	int n = 0;

	for (int bit = 0; bit < x->count; bit++)
		if (set >> bit & 1)
			jobs[n++] = x->jobs[bit];
	return n;
}

static unsigned highest_bit(unsigned set)
{
	return 1u << (31 - __builtin_clz(set));
}

static void fill_works(struct exact *x)
{
	for (unsigned set = 1; set < 1u << x->count; set++) {
		unsigned last = highest_bit(set), before = set & ~last;
		const struct joint_job *j = &x->of->jobs[x->jobs[__builtin_ctz(last)]];
		x->kind[set] = !before || x->kind[before] == j->kind ? j->kind : -1;
		if (x->kind[set] < 0)
			continue;
		x->work[set] = x->work[before];
		joint_add_work(&x->work[set], j->work);
		joint_least_init(&x->least[set], &x->work[set]);
	}
}

/* The steps of a set with its first one, then two ... jobs. */
static void fill_steps(struct exact *x, unsigned set, int machine, int index, int width,
		       struct step *steps)
{
	const struct joint_kind *kind = &x->of->kinds[x->kind[set]];
	int n = __builtin_popcount(set);

	for (unsigned prefix = set; prefix; prefix &= ~highest_bit(prefix)) {
		struct step *s =
			&x->steps[((size_t)machine * SETS + prefix) * WIDTHS + (size_t)index];
		n--;
		if (s->width != width)
			joint_step(s, kind, &x->f->machines[x->kind[set]][machine], width,
				   &x->work[prefix], (size_t)n);
		steps[n] = *s;
	}
}

/* Adds it, unless another one is as good and as cheap; then drops those that are no better. Without
 * a shared budget only the best counts. */
static void keep_variant(const struct exact *x, struct front *f, const struct variant *v)
{
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++)
		if (rank_compare(&f->list[i].rank, &v->rank) <= 0 &&
		    (!x->has_budget || f->list[i].rank.usd <= v->rank.usd))
			return;
	for (size_t i = 0; i < f->count; i++)
		if (x->has_budget && (f->list[i].rank.usd < v->rank.usd ||
				      rank_compare(&f->list[i].rank, &v->rank) < 0))
			f->list[n++] = f->list[i];
	f->count = n;
	GROW(f->list, f->count, f->cap);
	f->list[f->count++] = *v;
}

/* Whether groups of some of the set's jobs each are better than any plan above the floor. */
static bool is_split_better(const struct exact *x, unsigned set, const struct rank *floor)
{
	const struct rank *split = &x->best[set][0];

	return rank_compare(split, floor) < 0 && (!x->has_budget || split->usd <= floor->usd);
}

/* Whether no plan above the floor can count beside these; wider: and no wider one. */
static bool is_ruled_out(const struct exact *x, const struct front *f, const struct rank *floor,
			 bool wider)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct rank *r = &f->list[i].rank;
		if (wider ? !r->late && r->usd <= floor->usd
			  : rank_compare(r, floor) <= 0 && (!x->has_budget || r->usd <= floor->usd))
			return true;
	}
	return false;
}

static void value_machine(struct exact *x, unsigned set, int machine, const struct outline *o)
{
	const struct joint_kind *kind = &x->of->kinds[x->kind[set]];
	const struct joint_machine *on = &x->f->machines[x->kind[set]][machine];
	int below = 0, width;
	struct front *f = &x->fronts[set][0];
	struct step steps[JOINT_EXACT_MOST];

	for (int i = 0; (width = joint_width(kind, &on->m, &x->work[set], i)); i++) {
		struct rank floor = joint_floor(o, on, width, joint_fewest(kind, width, below));
		struct variant v = {.machine = machine, .up = -1, .width = width};
		below = width;
		if (is_ruled_out(x, f, &floor, true))
			return;
		if (is_ruled_out(x, f, &floor, false) || is_split_better(x, set, &floor))
			continue;
		fill_steps(x, set, machine, i, width, steps);
		if (joint_place(x->f, o->jobs, o->count, &v, steps, &v.rank, NULL, NULL))
			keep_variant(x, f, &v);
	}
}

static void value_up(struct exact *x, unsigned set, int up)
{
	const struct joint_up *u = &x->of->ups[up];
	int jobs[JOINT_EXACT_MOST], count = list_set(x, set, jobs);
	struct step steps[JOINT_EXACT_MOST];
	struct variant v = {.machine = -1, .up = up, .width = u->pods};
	unsigned prefix = set;

	if (u->kind != x->kind[set] || u->machine.batch_max <= 0)
		return;
	for (int k = count - 1; k >= 0; k--, prefix &= ~highest_bit(prefix))
		joint_step(&steps[k], &x->of->kinds[u->kind], &x->f->ups[up], u->pods,
			   &x->work[prefix], (size_t)k);
	if (joint_place(x->f, jobs, (size_t)count, &v, steps, &v.rank, NULL, NULL))
		keep_variant(x, &x->fronts[set][up + 1], &v);
}

static void outline_set(const struct exact *x, unsigned set, const int *jobs, struct outline *o)
{
	size_t n = (size_t)__builtin_popcount(set);

	*o = (struct outline){.f = x->f, .jobs = jobs, .count = n, .mark_count = n};
	for (; n--; set &= ~highest_bit(set))
		o->marks[n] = (struct mark){n, &x->work[set], &x->least[set]};
}

static void value_set(struct exact *x, unsigned set)
{
	int jobs[JOINT_EXACT_MOST];
	struct outline o;
	size_t machines;

	list_set(x, set, jobs);
	outline_set(x, set, jobs, &o);
	struct promising *list = joint_order_machines(&o, &machines);
	for (size_t i = 0; i < machines; i++)
		if (!is_ruled_out(x, &x->fronts[set][0], &list[i].least, false) &&
		    !is_split_better(x, set, &list[i].least))
			value_machine(x, set, list[i].machine, &o);
	free(list);
	for (size_t up = 0; up < x->of->up_count; up++)
		value_up(x, set, (int)up);
}

/* ---- partitions without the shared budget ----
 * Of equal ones, that with fewer groups. */

static const struct variant *best_of(const struct front *f)
{
	const struct variant *best = f->count ? &f->list[0] : NULL;

	for (size_t i = 1; i < f->count; i++)
		if (rank_compare(&f->list[i].rank, &best->rank) < 0)
			best = &f->list[i];
	return best;
}

static double cheapest_of(const struct front *f)
{
	double usd = INFINITY;

	for (size_t i = 0; i < f->count; i++)
		usd = MIN(usd, f->list[i].rank.usd);
	return usd;
}

/* Improves the values of a set by a group of some of its jobs, with the lowest, that takes over
 * `take` - 1, or rents. */
static void improve_by_group(struct exact *x, unsigned set, unsigned group, unsigned ups,
			     size_t take)
{
	const struct front *f = &x->fronts[group][take];
	const struct variant *v = best_of(f);
	unsigned rest = set & ~group, left = take ? ups & ~(1u << (take - 1)) : ups;

	if (!v || (take && !(ups >> (take - 1) & 1)))
		return;
	struct rank r = rank_sum(&v->rank, &x->best[rest][left]);
	if (rank_compare(&r, &x->best[set][ups]) < (rest ? 0 : 1))
		x->best[set][ups] = r;
	double usd = cheapest_of(f) + x->cheapest[rest][left];
	x->cheapest[set][ups] = MIN(x->cheapest[set][ups], usd);
}

/* Improves the values of a set by the groups that have its lowest job, and all jobs (whole), or
 * not all. */
static void improve_set(struct exact *x, unsigned set, bool whole)
{
	unsigned low = set & -set, others = set & ~low;

	for (unsigned ups = 0; ups < 1u << x->of->up_count; ups++)
		for (unsigned more = others;; more = (more - 1) & others) {
			for (size_t take = 0; take <= x->of->up_count; take++)
				if ((more == others) == whole)
					improve_by_group(x, set, more | low, ups, take);
			if (!more)
				break;
		}
}

/* The value of the set without its lowest job. */
static void leave_out_lowest(struct exact *x, unsigned set)
{
	unsigned others = set & (set - 1);

	for (unsigned ups = 0; ups < 1u << x->of->up_count; ups++) {
		x->best[set][ups] = x->best[others][ups];
		x->best[set][ups].out++;
		x->cheapest[set][ups] = INFINITY;
	}
}

/* In this order a set follows all of its parts. */
static void solve_sets(struct exact *x)
{
	for (unsigned set = 1; set < 1u << x->count; set++) {
		leave_out_lowest(x, set);
		improve_set(x, set, false);
		if (x->kind[set] >= 0) {
			value_set(x, set);
			improve_set(x, set, true);
		}
		for (unsigned ups = 0; ups < 1u << x->of->up_count; ups++)
			if (isinf(x->cheapest[set][ups]))
				x->cheapest[set][ups] = x->cheapest[set & (set - 1)][ups];
	}
}

/* ---- partitions within it ---- */

struct position {
	unsigned set, ups; /* jobs that no group has yet; pods that none has taken over */
	int depth;
	struct rank rank;
};

static bool is_hopeless(const struct exact *x, const struct position *p)
{
	const struct rank *rest = &x->best[p->set][p->ups];
	struct rank r = rank_sum(&p->rank, rest);

	if (p->rank.usd > x->of->budget_usd + 1e-9 || rank_compare(&r, &x->kept_rank) >= 0)
		return true;
	/* one more job left out would make it worse than what is kept */
	return r.out >= x->kept_rank.out &&
	       p->rank.usd + x->cheapest[p->set][p->ups] > x->of->budget_usd + 1e-9;
}

static void search(struct exact *x, const struct position *p);

static void try_group(struct exact *x, const struct position *p, unsigned group)
{
	for (size_t take = 0; take <= x->of->up_count; take++) {
		const struct front *f = &x->fronts[group][take];
		if (take && !(p->ups >> (take - 1) & 1))
			continue;
		for (size_t i = 0; i < f->count; i++) {
			struct position next = {
				.set = p->set & ~group,
				.ups = take ? p->ups & ~(1u << (take - 1)) : p->ups,
				.depth = p->depth + 1,
				.rank = rank_sum(&p->rank, &f->list[i].rank),
			};
			x->now[p->depth] = (struct choice){group, f->list[i]};
			search(x, &next);
		}
	}
}

static void search(struct exact *x, const struct position *p)
{
	unsigned low = p->set & -p->set, others = p->set & ~low;

	if (is_hopeless(x, p))
		return;
	if (!p->set) {
		x->kept_rank = p->rank;
		x->kept_count = p->depth;
		memcpy(x->kept, x->now, sizeof(x->kept));
		return;
	}
	for (unsigned more = others;; more = (more - 1) & others) {
		try_group(x, p, more | low);
		if (!more)
			break;
	}
	struct position without = *p;
	without.set = others;
	without.rank.out++;
	search(x, &without);
}

/* ---- the whole ---- */

static void prepare(struct exact *x, const struct joint_facts *f)
{
	const struct joint_case *of = f->of;

	x->f = f;
	x->of = of;
	x->count = (int)of->job_count;
	x->has_budget = isfinite(of->budget_usd);
	x->kept_rank = (struct rank){.out = x->count + 1};
	for (int i = 0; i < x->count; i++) {
		x->jobs[i] = i;
		x->machine_most = MAX(x->machine_most, of->kinds[of->jobs[i].kind].machine_count);
	}
	joint_sort(of, x->jobs, of->job_count);
	x->steps = xcalloc(x->machine_most * SETS * WIDTHS + 1, sizeof(*x->steps));
}

static void take_kept(struct gangs *out, const struct exact *x)
{
	for (int i = 0; i < x->kept_count; i++) {
		int jobs[JOINT_EXACT_MOST], n = list_set(x, x->kept[i].set, jobs);
		gangs_add(out, jobs, (size_t)n, &x->kept[i].v);
	}
}

void joint_exact(struct gangs *out, const struct joint_facts *f)
{
	const struct joint_case *of = f->of;
	struct exact *x = xcalloc(1, sizeof(*x));

	prepare(x, f);
	fill_works(x);
	solve_sets(x);
	search(x, &(struct position){.set = (1u << x->count) - 1, .ups = (1u << of->up_count) - 1});
	take_kept(out, x);
	for (unsigned set = 0; set < SETS; set++)
		for (size_t take = 0; take <= JOINT_UP_MOST; take++)
			free(x->fronts[set][take].list);
	free(x->steps);
	free(x);
}
