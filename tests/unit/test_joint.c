/* test_joint.c - the joint plan of jobs that wait, against brute force over all partitions, offers,
 * widths and starts, and against figures worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "joint_bed.h"
#include "plan/joint.h"
#include "plan_bed.h"

/* ---- brute force ---- */

/* Of a group: every offer and width, in seconds after its start. Nothing here is the product's but
 * plan_choose(). */
struct way {
	int late;
	double late_s, usd;
};

enum { WAYS_MOST = 64, SETS = 1 << 8 };

struct brute {
	const struct joint_case *of;
	struct way ways[SETS][WAYS_MOST]; /* on pods of its own */
	int way_count[SETS];
	struct way up[SETS]; /* with the pods that are up */
	bool up_fits[SETS];
	struct joint_score best;
	bool any;
};

/* The order in a group, by selection. */
static int in_order(const struct joint_case *of, unsigned set, int jobs[8])
{
	int n = 0;

	while (set) {
		int first = -1;
		for (int i = 0; i < (int)of->job_count; i++) {
			if (!(set >> i & 1))
				continue;
			const struct joint_job *a = &of->jobs[i],
					       *b = first < 0 ? NULL : &of->jobs[first];
			double due = MIN(a->by_s, a->begin_by_s),
			       other = b ? MIN(b->by_s, b->begin_by_s) : 0;
			if (!b || due < other || (due == other && a->ready_s < b->ready_s))
				first = i;
		}
		jobs[n++] = first;
		set &= ~(1u << first);
	}
	return n;
}

/* Plays a group's jobs one after the other from this start; the pods wait for jobs that are not
 * ready. */
static struct way play(const struct joint_case *of, const int *jobs, int n, const double *p50,
		       const double *p90, double start_s, double *busy_s)
{
	struct way w = {0};
	double slow_s = start_s, usual_s = start_s;

	for (int k = 0; k < n; k++) {
		const struct joint_job *j = &of->jobs[jobs[k]];
		slow_s = MAX(slow_s, j->ready_s);
		double begin_s = slow_s;
		slow_s += p90[k] - (k ? p90[k - 1] : 0);
		usual_s = MAX(usual_s, j->ready_s) + p50[k] - (k ? p50[k - 1] : 0);
		double late = MAX(slow_s - j->by_s, begin_s - j->begin_by_s);
		if (late > 1e-6) {
			w.late++;
			w.late_s += late;
		}
	}
	*busy_s = usual_s;
	return w;
}

/* The best start of a group whose plan is known: of the soonest one, and of those at which a job is
 * just in time, or the pods just not idle. */
static struct way best_start(const struct joint_case *of, const int *jobs, int n, const double *p50,
			     const double *p90, double free_s, bool is_up, double usd,
			     double usd_per_s)
{
	double starts[40], soonest_s = MAX(of->jobs[jobs[0]].ready_s, is_up ? free_s : 0);
	int count = 0;
	struct way best = {.late = 99};

	starts[count++] = soonest_s;
	for (int k = 0; k < n; k++) {
		const struct joint_job *j = &of->jobs[jobs[k]];
		double late = 0;
		/* how late this job is at the soonest start: it may stay so */
		double slow_s = soonest_s;
		for (int i = 0; i <= k; i++) {
			slow_s = MAX(slow_s, of->jobs[jobs[i]].ready_s);
			if (i == k)
				late = MAX(late, slow_s - j->begin_by_s);
			slow_s += p90[i] - (i ? p90[i - 1] : 0);
		}
		late = MAX(late, slow_s - j->by_s);
		starts[count++] = j->by_s + late - p90[k];
		starts[count++] = j->begin_by_s + late - (k ? p90[k - 1] : 0);
		starts[count++] = j->ready_s - (k ? p50[k - 1] : 0);
	}
	for (int i = 0; i < count; i++) {
		double end_s;
		if (!(starts[i] >= soonest_s) || isinf(starts[i]))
			continue;
		struct way w = play(of, jobs, n, p50, p90, starts[i], &end_s);
		double idle_s = end_s - p50[n - 1] - (is_up ? free_s : starts[i]);
		w.usd = usd + MAX(idle_s, 0.0) * usd_per_s;
		if (w.late < best.late ||
		    (w.late == best.late && (w.late_s < best.late_s - 1e-6 ||
					     (w.late_s < best.late_s + 1e-6 && w.usd < best.usd))))
			best = w;
	}
	return best;
}

/* Returns false if a job's budget does not pay its share, or nothing fits. */
static bool value(const struct joint_case *of, unsigned set, const struct plan_machine *m, int pods,
		  const struct joint_up *up, struct way *out)
{
	int jobs[8], n = in_order(of, set, jobs);
	double p50[8], p90[8], usd = 0, sum = 0;
	struct plan_work w = {0};
	struct plan_machine machine = *m;
	const struct joint_kind *kind = &of->kinds[of->jobs[jobs[0]].kind];
	struct plan p = {0};

	if (up)
		machine.cold = (struct cold){0};
	for (int k = 0; k < n; k++) {
		struct plan_wish wish = kind->wish;
		wish.pods = pods;
		wish.staged = wish.staged && !up;
		joint_add(&w, of->jobs[jobs[k]].work);
		if (plan_choose(&p, &w, &machine, 1, &wish) != PLAN_FOUND)
			return false;
		double handed_s = joint_handover_s(m) * (k + (up ? 1 : 0));
		p50[k] = p.makespan_p50_s + handed_s;
		p90[k] = p.makespan_p90_s + handed_s;
		if (k) { /* what a wider plan does sooner cannot end before the job before it */
			p50[k] = MAX(p50[k], p50[k - 1]);
			p90[k] = MAX(p90[k], p90[k - 1]);
		}
		usd = p.pods_usd + m->per_run_usd * (k + 1) + m->price_h * handed_s * p.pods / 3600;
		sum += of->jobs[jobs[k]].work->sum;
	}
	*out = best_start(of, jobs, n, p50, p90, up ? up->free_s : 0, up != NULL, usd,
			  m->price_h * p.pods / 3600);
	for (int k = 0; k < n; k++) {
		const struct joint_job *j = &of->jobs[jobs[k]];
		if (j->budget_usd > 0 && out->usd * j->work->sum / sum > j->budget_usd + 1e-9)
			return false;
	}
	return true;
}

static void value_all(struct brute *b)
{
	const struct joint_case *of = b->of;

	for (unsigned set = 1; set < 1u << of->job_count; set++) {
		const struct joint_job *first = &of->jobs[__builtin_ctz(set)];
		bool mixed = false;
		size_t items = 0;
		for (size_t i = 0; i < of->job_count; i++)
			if (set >> i & 1) {
				mixed |= of->jobs[i].kind != first->kind;
				items += of->jobs[i].work->count;
			}
		if (mixed)
			continue;
		const struct joint_kind *kind = &of->kinds[first->kind];
		for (size_t m = 0; m < kind->machine_count; m++)
			for (int pods = 1; pods <= kind->wish.pods_most && (size_t)pods <= items;
			     pods++)
				if (value(of, set, &kind->machines[m], pods, NULL,
					  &b->ways[set][b->way_count[set]]))
					b->way_count[set]++;
		if (of->up_count && of->ups[0].kind == first->kind)
			b->up_fits[set] = value(of, set, &of->ups[0].machine, of->ups[0].pods,
						&of->ups[0], &b->up[set]);
	}
}

static struct joint_score with(const struct joint_score *s, const struct way *w)
{
	return (struct joint_score){s->left_out, s->late + w->late, s->late_s + w->late_s,
				    s->cost_usd + w->usd};
}

/* Every partition of the jobs that are left, each group in every way. */
static void partition(struct brute *b, unsigned left, bool up_free, struct joint_score so_far)
{
	if (so_far.cost_usd > b->of->budget_usd + 1e-9)
		return;
	if (!left) {
		if (!b->any || joint_compare(&so_far, &b->best) < 0)
			b->best = so_far;
		b->any = true;
		return;
	}
	unsigned low = left & -left, others = left & ~low;
	for (unsigned more = others;; more = (more - 1) & others) {
		unsigned set = more | low;
		for (int i = 0; i < b->way_count[set]; i++)
			partition(b, left & ~set, up_free, with(&so_far, &b->ways[set][i]));
		if (up_free && b->up_fits[set])
			partition(b, left & ~set, false, with(&so_far, &b->up[set]));
		if (!more)
			break;
	}
	so_far.left_out++;
	partition(b, others, up_free, so_far);
}

/* Without a shared budget only the best way of a group can be part of the best plan. */
static void keep_best_ways(struct brute *b)
{
	for (unsigned set = 0; set < SETS; set++)
		for (int i = 1; i < b->way_count[set]; i++) {
			struct joint_score none = {0}, x = with(&none, &b->ways[set][i]),
					   y = with(&none, &b->ways[set][0]);
			if (joint_compare(&x, &y) < 0)
				b->ways[set][0] = b->ways[set][i];
		}
	for (unsigned set = 0; set < SETS; set++)
		b->way_count[set] = MIN(b->way_count[set], 1);
}

static struct joint_score brute_force(const struct joint_case *of)
{
	struct brute *b = xcalloc(1, sizeof(*b));
	struct joint_score best;

	b->of = of;
	value_all(b);
	if (isinf(of->budget_usd))
		keep_best_ways(b);
	partition(b, (1u << of->job_count) - 1, of->up_count > 0, (struct joint_score){0});
	best = b->best;
	free(b);
	return best;
}

static void assert_score(uint64_t number, const struct joint_score *got,
			 const struct joint_score *expected)
{
	if (got->left_out != expected->left_out || got->late != expected->late ||
	    fabs(got->late_s - expected->late_s) > 1e-3 ||
	    fabs(got->cost_usd - expected->cost_usd) > 1e-7 * (1 + expected->cost_usd))
		fail_msg("case %llu: %d left out, %d late by %.6f s, $%.9f; brute force: %d, %d by "
			 "%.6f s, $%.9f",
			 (unsigned long long)number, got->left_out, got->late, got->late_s,
			 got->cost_usd, expected->left_out, expected->late, expected->late_s,
			 expected->cost_usd);
}

static void the_exact_plan_is_the_best_of_all(void **state)
{
	(void)state;
	for (uint64_t number = 1; number <= 400; number++) {
		struct joint_bed bed;
		struct joint_plan p;
		seed = number;
		joint_bed_random(&bed, 1 + (size_t)random_between(0, 5.99), 2, 3);
		struct joint_score best = brute_force(&bed.of);
		joint_choose(&p, &bed.of);
		assert_score(number, &p.score, &best);
		joint_free(&p);
		joint_bed_free(&bed);
	}
}

static void the_exact_plan_keeps_a_shared_budget(void **state)
{
	(void)state;
	int bound = 0;

	for (uint64_t number = 1; number <= 200; number++) {
		struct joint_bed bed;
		struct joint_plan p;
		seed = 1000 + number;
		joint_bed_random(&bed, 1 + (size_t)random_between(0, 3.99), 2, 2);
		joint_bed_budget(&bed);
		struct joint_score best = brute_force(&bed.of);
		joint_choose(&p, &bed.of);
		assert_score(number, &p.score, &best);
		assert_true(p.score.cost_usd <= bed.of.budget_usd + 1e-9);
		bound += p.score.left_out > 0;
		joint_free(&p);
		joint_bed_free(&bed);
	}
	assert_true(bound > 20);
}

/* Every third one within a shared budget. `make bench BENCH=queue` takes thousands. */
static void the_search_is_near_the_exact_plan(void **state)
{
	(void)state;
	for (uint64_t number = 1; number <= 150; number++) {
		struct joint_bed bed;
		struct joint_plan exact, found;
		seed = 5000 + number;
		joint_bed_random(&bed, 8, 6, 4);
		if (number % 3 == 0)
			joint_bed_budget(&bed);
		joint_choose(&exact, &bed.of);
		joint_search(&found, &bed.of);
		assert_true(exact.exact && !found.exact);
		assert_true(found.score.cost_usd <= bed.of.budget_usd + 1e-9);
		if (!joint_is_near(&found.score, &exact.score))
			fail_msg("case %llu: %d out, %d late by %.3f s, $%.6f; exact: %d, %d by "
				 "%.3f s, $%.6f",
				 (unsigned long long)number, found.score.left_out, found.score.late,
				 found.score.late_s, found.score.cost_usd, exact.score.left_out,
				 exact.score.late, exact.score.late_s, exact.score.cost_usd);
		joint_free(&exact);
		joint_free(&found);
		joint_bed_free(&bed);
	}
}

static void no_simpler_way_is_better(void **state)
{
	(void)state;
	for (uint64_t number = 1; number <= 60; number++) {
		struct joint_bed bed;
		struct joint_plan p;
		seed = 9000 + number;
		joint_bed_random(&bed, 2 + (size_t)random_between(0, 40), 5, 4);
		joint_choose(&p, &bed.of);
		struct joint_score alone = joint_one_by_one(&bed.of),
				   pooled = joint_all_pooled(&bed.of);
		alone.cost_usd += 1e-9;
		pooled.cost_usd += 1e-9;
		assert_true(joint_compare(&p.score, &alone) <= 0);
		assert_true(joint_compare(&p.score, &pooled) <= 0);
		joint_free(&p);
		joint_bed_free(&bed);
	}
}

/* ---- worked out by hand: a dollar for 1000 s, a cold start of 100 s, a second for each segment
 * ----
 */

enum { HAND_JOBS = 3 };

struct hand {
	struct plan_machine machine;
	struct joint_kind kinds[2];
	struct plan_work work;
	struct joint_job jobs[HAND_JOBS];
	struct joint_up up;
	struct joint_case of;
};

/* Jobs of 100 s each, which may wait for ever. */
static void by_hand(struct hand *h, size_t jobs)
{
	double lengths[100];

	for (int i = 0; i < 100; i++)
		lengths[i] = 1;
	*h = (struct hand){.machine = {.price_h = 3.6,
				       .cold.phase[COLD_BOOT] = {100, 100, 3},
				       .speed = {.each_s = 1},
				       .workers = 1,
				       .batch_max = 1}};
	plan_work_init(&h->work, lengths, 100, 1, 0);
	for (int k = 0; k < 2; k++)
		h->kinds[k] = (struct joint_kind){&h->machine, 1, {.pods_most = 1}};
	for (size_t i = 0; i < jobs; i++)
		h->jobs[i] = (struct joint_job){
			.work = &h->work, .by_s = INFINITY, .begin_by_s = INFINITY};
	h->of = (struct joint_case){.kinds = h->kinds,
				    .jobs = h->jobs,
				    .job_count = jobs,
				    .ups = &h->up,
				    .budget_usd = INFINITY};
}

static struct joint_plan chosen(const struct hand *h)
{
	struct joint_plan p;

	joint_choose(&p, &h->of);
	return p;
}

/* Alone $0.20 each; together 300 s of one pod. */
static void two_jobs_of_a_kind_share_a_cold_start(void **state)
{
	(void)state;
	struct hand h;

	by_hand(&h, 2);
	h.jobs[0].by_s = 400;
	h.jobs[1].by_s = 200; /* it goes first, and is just in time */
	struct joint_plan p = chosen(&h);
	assert_int_equal(p.group_count, 1);
	assert_near(p.score.cost_usd, .3, 1e-9);
	assert_int_equal(p.order[0], 1);
	assert_near(p.fates[1].end_p90_s, 200, 1e-6);
	assert_near(p.groups[0].latest_s, 0, 1e-6);
	assert_near(p.fates[0].begin_s, 200, 1e-6);
	assert_near(p.fates[0].end_s, 300, 1e-6);
	assert_int_equal(p.score.late, 0);
	joint_free(&p);

	h.jobs[0].by_s = 250; /* the second one would be late */
	p = chosen(&h);
	assert_int_equal(p.group_count, 2);
	assert_near(p.score.cost_usd, .4, 1e-9);
	joint_free(&p);
}

static void other_kinds_are_not_joined(void **state)
{
	(void)state;
	struct hand h;

	by_hand(&h, 2);
	h.jobs[1].kind = 1;
	struct joint_plan p = chosen(&h);
	assert_int_equal(p.group_count, 2);
	assert_near(p.score.cost_usd, .4, 1e-9);
	joint_free(&p);
}

/* A job that is ready in 600 s: the other one starts at 400, so that its pod is never idle. Due by
 * 250, it would have to start by 50, and 350 s of waiting cost more than a cold start. Due by 550,
 * it starts at 350, and 50 s of waiting cost less. */
static void a_job_waits_for_another_ones_pod(void **state)
{
	(void)state;
	static const struct {
		double by_s, start_s, idle_s, usd;
		size_t groups;
	} cases[] = {{INFINITY, 400, 0, .3, 1}, {250, 0, 0, .4, 2}, {550, 350, 50, .35, 1}};
	struct hand h;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		by_hand(&h, 2);
		h.jobs[0].by_s = cases[i].by_s;
		h.jobs[1].ready_s = 600;
		struct joint_plan p = chosen(&h);
		assert_int_equal(p.group_count, cases[i].groups);
		assert_near(p.groups[0].start_s, cases[i].start_s, 1e-6);
		assert_near(p.groups[0].idle_s, cases[i].idle_s, 1e-6);
		assert_near(p.score.cost_usd, cases[i].usd, 1e-9);
		joint_free(&p);
	}
}

/* A pod that is free in 50 s costs 100 s of work and no cold start, unless the job may not wait. */
static void a_pod_that_is_up_is_taken_over(void **state)
{
	(void)state;
	struct hand h;

	by_hand(&h, 1);
	h.of.up_count = 1;
	h.up = (struct joint_up){0, h.machine, 1, 50};
	struct joint_plan p = chosen(&h);
	assert_int_equal(p.groups[0].up, 0);
	assert_near(p.groups[0].start_s, 50, 1e-6);
	assert_near(p.fates[0].end_s, 150, 1e-6);
	assert_near(p.score.cost_usd, .1, 1e-9);
	joint_free(&p);

	h.jobs[0].begin_by_s = 20;
	p = chosen(&h);
	assert_int_equal(p.groups[0].up, -1);
	assert_near(p.score.cost_usd, .2, 1e-9);
	joint_free(&p);
}

/* Each job that follows connects and loads its engine again. */
static void a_handover_takes_its_time(void **state)
{
	(void)state;
	struct hand h;

	by_hand(&h, 2);
	h.machine.cold.phase[COLD_CONNECT] = (struct cold_time){2, 2, 3};
	h.machine.cold.phase[COLD_LOAD] = (struct cold_time){8, 8, 3};
	h.machine.cold.phase[COLD_SETUP] = (struct cold_time){30, 30, 3}; /* once */
	assert_near(joint_handover_s(&h.machine), 10, 1e-9);
	struct joint_plan p = chosen(&h);
	assert_true(isinf(p.groups[0].latest_s));
	assert_near(p.score.cost_usd, .35, 1e-9); /* 140 + 100 + 10 + 100 s */
	joint_free(&p);
}

static void what_cannot_be_kept_has_its_reason(void **state)
{
	(void)state;
	struct hand h;

	by_hand(&h, 3);
	h.jobs[0].budget_usd = .05; /* a third of 400 s is $0.133 */
	h.jobs[1].by_s = 150;
	struct joint_plan p = chosen(&h);
	assert_int_equal(p.fates[0].why, JOINT_OWN_BUDGET);
	assert_int_equal(p.fates[0].group, -1);
	assert_int_equal(p.fates[1].why, JOINT_LATE);
	assert_near(p.fates[1].late_s, 50, 1e-6);
	assert_int_equal(p.fates[2].why, JOINT_KEPT);
	joint_free(&p);

	by_hand(&h, 3);
	h.of.budget_usd = .25; /* of one job alone */
	p = chosen(&h);
	assert_int_equal(p.score.left_out, 2);
	assert_int_equal((p.fates[0].why == JOINT_SHARED_BUDGET) +
				 (p.fates[1].why == JOINT_SHARED_BUDGET) +
				 (p.fates[2].why == JOINT_SHARED_BUDGET),
			 2);
	joint_free(&p);

	by_hand(&h, 1);
	h.machine.batch_max = 0;
	p = chosen(&h);
	assert_int_equal(p.fates[0].why, JOINT_NOTHING_FITS);
	assert_string_equal(joint_why_name(p.fates[0].why), "nothing fits");
	joint_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_jobs_of_a_kind_share_a_cold_start),
		cmocka_unit_test(other_kinds_are_not_joined),
		cmocka_unit_test(a_job_waits_for_another_ones_pod),
		cmocka_unit_test(a_pod_that_is_up_is_taken_over),
		cmocka_unit_test(a_handover_takes_its_time),
		cmocka_unit_test(what_cannot_be_kept_has_its_reason),
		cmocka_unit_test(the_exact_plan_is_the_best_of_all),
		cmocka_unit_test(the_exact_plan_keeps_a_shared_budget),
		cmocka_unit_test(the_search_is_near_the_exact_plan),
		cmocka_unit_test(no_simpler_way_is_better),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
