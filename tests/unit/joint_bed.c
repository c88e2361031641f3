/* joint_bed.c - draws jobs and offers for tests of the joint plan. */
#include "joint_bed.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "plan/joint_impl.h"
#include "plan_bed.h"

static void draw_machine(struct plan_machine *m, int id)
{
	double boot_s = random_between(5, 120);

	*m = (struct plan_machine){
		.id = id,
		.price_h = random_between(.2, 4),
		.quantum_s = random_between(0, 1) < .5 ? 1 : 0,
		.per_run_usd = random_between(0, 1) < .3 ? random_between(0, .005) : 0,
		.cold.phase[COLD_BOOT] = {boot_s, boot_s * random_between(1, 2), 3},
		.cold.phase[COLD_SETUP] = {random_between(0, 1) < .3 ? 20 : 0, 25, 3},
		.cold.phase[COLD_LOAD] = {random_between(0, 10), 10, 3},
		.speed = {random_between(0, 1), random_between(0, .02), random_between(.0001, .01)},
		.workers = 1 + (int)random_between(0, 1.5),
		.batch_max = random_between(0, 1) < .1 ? 0 : 1 + (int)random_between(0, 40),
		.tail_s = random_between(0, 3),
		.release_s = random_between(0, 1),
		.speed_sigma = random_between(0, 1) < .6 ? random_between(.02, .5) : 0,
		.interrupted_every_s = random_between(0, 1) < .2 ? random_between(600, 20000) : 0,
		.interruptions = 2,
	};
	m->cold.phase[COLD_SETUP].p90_s = m->cold.phase[COLD_SETUP].p50_s * 1.2;
	m->cold.phase[COLD_LOAD].p90_s = m->cold.phase[COLD_LOAD].p50_s;
}

static void draw_job(struct joint_job *j, struct plan_work *w)
{
	size_t count = 1 + (size_t)(random_between(0, 1) < .3 ? random_between(0, 400)
							      : random_between(0, 40));
	double lengths[401];

	for (size_t i = 0; i < count; i++)
		lengths[i] = random_between(20, 300);
	plan_work_init(w, lengths, count, 32, 0);
	*j = (struct joint_job){
		.kind = random_between(0, 1) < .3,
		.work = w,
		.ready_s = random_between(0, 1) < .4 ? random_between(0, 900) : 0,
		.by_s = random_between(0, 1) < .6 ? random_between(60, 2400) : INFINITY,
		.begin_by_s = random_between(0, 1) < .2 ? random_between(0, 1200) : INFINITY,
		.budget_usd = random_between(0, 1) < .15 ? random_between(.005, .2) : 0,
	};
}

void joint_bed_random(struct joint_bed *bed, size_t jobs, size_t machines, int pods_most)
{
	*bed = (struct joint_bed){.works = xcalloc(jobs, sizeof(*bed->works)),
				  .jobs = xcalloc(jobs, sizeof(*bed->jobs))};
	for (int k = 0; k < BED_KINDS; k++) {
		for (size_t i = 0; i < machines; i++)
			draw_machine(&bed->machines[k][i], (int)i);
		bed->kinds[k] = (struct joint_kind){
			bed->machines[k], machines, {.canary = 3, .pods_most = pods_most}};
		bed->kinds[k].wish.staged = random_between(0, 1) < .5;
	}
	for (size_t i = 0; i < jobs; i++)
		draw_job(&bed->jobs[i], &bed->works[i]);
	bed->up = (struct joint_up){.pods = 1 + (int)random_between(0, 1.9),
				    .free_s = random_between(0, 600)};
	draw_machine(&bed->up.machine, 0);
	bed->of = (struct joint_case){.kinds = bed->kinds,
				      .jobs = bed->jobs,
				      .job_count = jobs,
				      .ups = &bed->up,
				      .up_count = random_between(0, 1) < .33,
				      .budget_usd = INFINITY};
}

void joint_bed_budget(struct joint_bed *bed)
{
	struct joint_plan p;

	joint_choose(&p, &bed->of);
	bed->of.budget_usd = p.score.cost_usd * random_between(.3, 1.1);
	joint_free(&p);
}

void joint_bed_free(struct joint_bed *bed)
{
	free(bed->works);
	free(bed->jobs);
}

bool joint_is_near(const struct joint_score *found, const struct joint_score *exact)
{
	return found->left_out == exact->left_out && found->late == exact->late &&
	       found->late_s <= exact->late_s * 1.02 + 1e-3 &&
	       found->cost_usd <= exact->cost_usd * 1.02;
}

void joint_add(struct plan_work *to, const struct plan_work *from)
{
	joint_add_work(to, from);
}

int joint_compare(const struct joint_score *a, const struct joint_score *b)
{
	if (a->left_out != b->left_out)
		return a->left_out < b->left_out ? -1 : 1;
	if (a->late != b->late)
		return a->late < b->late ? -1 : 1;
	if (fabs(a->late_s - b->late_s) > 1e-3)
		return a->late_s < b->late_s ? -1 : 1;
	return (a->cost_usd > b->cost_usd) - (a->cost_usd < b->cost_usd);
}
