/* joint.c - plans all jobs that wait together, and says what becomes of each. */
#include "joint.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "joint_impl.h"

const char *joint_why_name(enum joint_why why)
{
	switch (why) {
	case JOINT_KEPT: return "";
	case JOINT_LATE: return "late";
	case JOINT_NOTHING_FITS: return "nothing fits";
	case JOINT_OWN_BUDGET: return "budget";
	case JOINT_SHARED_BUDGET: return "shared budget";
	}
	return "";
}

/* ---- what becomes of each job ---- */

static void add_group(struct joint_plan *out, const struct joint_facts *f, const struct gang *g)
{
	struct joint_group *group = &out->groups[out->group_count++];
	struct rank rank;
	size_t first = group > out->groups ? group[-1].first + group[-1].count : 0;
	struct step *steps = joint_steps(f, g);

	joint_place(f, g->jobs, g->count, &g->best, steps, &rank, group, out->fates);
	group->first = first;
	for (size_t k = 0; k < g->count; k++) {
		struct joint_fate *fate = &out->fates[g->jobs[k]];
		fate->group = (int)(group - out->groups);
		out->order[first + k] = g->jobs[k];
		group->end_s = MAX(group->end_s, fate->end_s);
		group->end_p90_s = MAX(group->end_p90_s, fate->end_p90_s);
		out->score.late += fate->late_s > 0;
		out->score.late_s += fate->late_s;
	}
	out->score.cost_usd += group->cost_usd;
	free(steps);
}

/* Why a job has no group: alone, with all the money there is, it would have had none either, or
 * would. */
static enum joint_why why_left_out(const struct joint_facts *f, int job)
{
	struct joint_job alone = f->of->jobs[job];
	struct joint_case one = *f->of;
	struct joint_facts with = *f;
	struct gangs g = {0};
	enum joint_why why = JOINT_SHARED_BUDGET;

	one.jobs = &alone;
	one.job_count = 1;
	one.budget_usd = INFINITY;
	with.of = &one;
	joint_simple(&g, &with, false);
	if (!g.count) {
		alone.budget_usd = 0;
		joint_simple(&g, &with, false);
		why = g.count ? JOINT_OWN_BUDGET : JOINT_NOTHING_FITS;
	}
	gangs_free(&g);
	return why;
}

static int soonest_first(const void *a, const void *b)
{
	const struct joint_group *x = a, *y = b;

	if (x->start_s != y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static void sort_groups(struct joint_plan *out)
{
	if (out->group_count)
		qsort(out->groups, out->group_count, sizeof(*out->groups), soonest_first);
	for (size_t i = 0; i < out->group_count; i++)
		for (size_t k = 0; k < out->groups[i].count; k++)
			out->fates[out->order[out->groups[i].first + k]].group = (int)i;
}

static void fill_plan(struct joint_plan *out, const struct joint_facts *f, struct gangs *g,
		      bool exact)
{
	const struct joint_case *of = f->of;

	*out = (struct joint_plan){
		.groups = xcalloc(g->count + 1, sizeof(*out->groups)),
		.order = xcalloc(of->job_count + 1, sizeof(*out->order)),
		.fates = xcalloc(of->job_count + 1, sizeof(*out->fates)),
		.exact = exact,
	};
	for (size_t i = 0; i < of->job_count; i++)
		out->fates[i].group = -1;
	for (size_t i = 0; i < g->count; i++)
		add_group(out, f, &g->list[i]);
	for (size_t i = 0; i < of->job_count; i++) {
		if (out->fates[i].group >= 0)
			continue;
		out->fates[i].why = why_left_out(f, (int)i);
		out->score.left_out++;
	}
	sort_groups(out);
	gangs_free(g);
}

static void plan_by(void (*search)(struct gangs *out, const struct joint_facts *f),
		    struct joint_plan *out, const struct joint_case *of, bool exact)
{
	struct joint_facts f;
	struct gangs g = {0};

	joint_facts_init(&f, of);
	search(&g, &f);
	fill_plan(out, &f, &g, exact);
	joint_facts_free(&f);
}

void joint_choose(struct joint_plan *out, const struct joint_case *of)
{
	if (joint_is_small(of))
		plan_by(joint_exact, out, of, true);
	else
		joint_search(out, of);
}

void joint_search(struct joint_plan *out, const struct joint_case *of)
{
	plan_by(joint_many, out, of, false);
}

void joint_free(struct joint_plan *p)
{
	free(p->groups);
	free(p->order);
	free(p->fates);
	*p = (struct joint_plan){0};
}

/* ---- scores ---- */

static void one_by_one(struct gangs *out, const struct joint_facts *f)
{
	joint_simple(out, f, false);
}

static void all_pooled(struct gangs *out, const struct joint_facts *f)
{
	joint_simple(out, f, true);
}

struct joint_score joint_one_by_one(const struct joint_case *of)
{
	struct joint_plan p;

	plan_by(one_by_one, &p, of, false);
	struct joint_score score = p.score;
	joint_free(&p);
	return score;
}

struct joint_score joint_all_pooled(const struct joint_case *of)
{
	struct joint_plan p;

	plan_by(all_pooled, &p, of, false);
	struct joint_score score = p.score;
	joint_free(&p);
	return score;
}
