/* plan.c - how long the planner takes to choose among 200 offers x 64 pods x 12 batch sizes, and
 * how far its choice is from the best. The peer, in the same run: brute force, which plays out each
 * of these plans batch by batch. Prints one line a game; tests nothing. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "plan/choose.h"
#include "plan/cost.h"
#include "plan_bed.h"

enum {
	OFFERS = 200,
	PODS = 64,
	SEGMENTS = 3000,
	BATCH_MAX = 2048,
	GAMES = 2,
	REPEATS = 21,
	CANARY = 3
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorted batches of at most b, as even as the dispatcher cuts them, go to the pod that is free
 * first. staged: the first pod renders a canary, then the others come up. Returns the cost. Times
 * are from when the first pod is ready. */
static double play(const double *lengths, const struct plan_machine *m, int pods, int b,
		   bool staged)
{
	double free_at[PODS] = {0}, cold_s = cold_p50_s(&m->cold), billed_s = 0;
	int segments = SEGMENTS - (staged ? CANARY : 0),
	    rounds = (segments + b * pods - 1) / (b * pods), batches = MIN(rounds * pods, segments);
	double canary_s = staged ? speed_batch_s(&m->speed, lengths[SEGMENTS / 2],
						 CANARY * lengths[SEGMENTS / 2])
				 : 0;

	for (int i = 0; i < pods && staged; i++)
		free_at[i] = canary_s + (i ? cold_s : 0);

	b = (segments + batches - 1) / batches;
	for (int first = 0; first < segments; first += b) {
		double sum = 0;
		int next = 0;
		for (int i = first; i < segments && i < first + b; i++)
			sum += lengths[i];
		for (int i = 1; i < pods; i++)
			if (free_at[i] < free_at[next])
				next = i;
		free_at[next] += speed_batch_s(&m->speed, lengths[first], sum);
	}
	for (int i = 0; i < pods; i++)
		billed_s += cost_quantum_s(
			(staged && i ? -canary_s : cold_s) + free_at[i] + m->tail_s, m->quantum_s);
	return cost_usd(m->price_h, billed_s);
}

static double brute_force(const double *lengths, const struct plan_machine *machines, bool staged)
{
	double best = INFINITY;

	for (int i = 0; i < OFFERS; i++)
		for (int pods = 1; pods <= PODS; pods++)
			for (int b = 1; b <= machines[i].batch_max; b *= 2)
				best = MIN(best, play(lengths, &machines[i], pods, b, staged));
	return best;
}

static void random_machine(struct plan_machine *m)
{
	*m = (struct plan_machine){
		.price_h = random_between(.2, 7),
		.quantum_s = 1,
		.cold.phase[COLD_BOOT] = {random_between(5, 200), 0, 3},
		.speed = {random_between(0, 1), random_between(0, .02), random_between(.0001, .01)},
		.workers = 1,
		.batch_max = BATCH_MAX,
		.tail_s = random_between(0, 3),
	};
	m->cold.phase[COLD_BOOT].p90_s = m->cold.phase[COLD_BOOT].p50_s;
}

static void random_game(uint64_t number, double lengths[SEGMENTS],
			struct plan_machine machines[OFFERS])
{
	seed = number;
	for (int i = 0; i < SEGMENTS; i++)
		lengths[i] = random_between(30, 280);
	for (int i = 0; i < OFFERS; i++)
		random_machine(&machines[i]);
}

/* The median ms of a choice, with the sums over all batch sizes, which a plan makes once. */
static double choose_timed(struct plan *p, struct plan_work *w, double lengths[SEGMENTS],
			   const struct plan_machine machines[OFFERS], const struct plan_wish *wish)
{
	double took[REPEATS];

	for (int i = 0; i < REPEATS; i++) {
		double before = cpu_ms();
		plan_work_init(w, lengths, SEGMENTS, BATCH_MAX, 0);
		plan_choose(p, w, machines, OFFERS, wish);
		took[i] = cpu_ms() - before;
	}
	qsort(took, REPEATS, sizeof(*took), by_size);
	return took[REPEATS / 2];
}

static void game(int number, bool staged)
{
	struct plan_machine machines[OFFERS];
	double lengths[SEGMENTS];
	const struct plan_wish wish = {
		.goal = PLAN_COST, .canary = staged ? CANARY : 0, .staged = staged};
	struct plan_work w;
	struct plan p;

	random_game((uint64_t)number, lengths, machines);
	double took_ms = choose_timed(&p, &w, lengths, machines, &wish);
	double before = cpu_ms(), best = brute_force(lengths, machines, staged),
	       brute_ms = cpu_ms() - before;
	double usd = play(lengths, &machines[p.machine], p.pods, p.batch, staged);
	printf("%d offers x %d pods x %d batch sizes, %d segments%s: %.2f ms; brute force %.0f ms, "
	       "%.0f times that; its choice costs %+.2f %% of brute force's\n",
	       OFFERS, PODS, w.sizes, SEGMENTS, staged ? ", a canary first" : "", took_ms, brute_ms,
	       brute_ms / took_ms, 100 * (usd / best - 1));
}

/* As wide as a run may be: a deadline, or a budget that pays for hundreds of pods. */
static void wide_game(const char *what, const struct plan_wish *wish)
{
	struct plan_machine machines[OFFERS];
	double lengths[SEGMENTS];
	struct plan_work w;
	struct plan p;

	random_game(7, lengths, machines);
	double took_ms = choose_timed(&p, &w, lengths, machines, wish);
	printf("%d offers x %d pods x %d batch sizes, %s: %.2f ms; %d pods\n", OFFERS,
	       PLAN_PODS_MOST, w.sizes, what, took_ms, p.pods);
}

int main(void)
{
	for (int i = 1; i <= GAMES; i++)
		game(i, false);
	for (int i = 1; i <= GAMES; i++)
		game(i, true);
	wide_game("the fastest for $50",
		  &(struct plan_wish){.goal = PLAN_TIME, .budget_usd = 50, .canary = CANARY});
	wide_game("the cheapest in 20 s",
		  &(struct plan_wish){.goal = PLAN_COST, .within_s = 20, .canary = CANARY});
	wide_game("$100 an hour of waiting", &(struct plan_wish){.goal = PLAN_BALANCED,
								 .value_of_time_h = 100,
								 .canary = CANARY});
	wide_game("too slow", &(struct plan_wish){.goal = PLAN_COST, .within_s = 1});
	return 0;
}
