/* better.c - finds a plan that is clearly better than the given one. */
#include "better.h"

#define CLEARLY         0.8
#define LEAST_SAVED_S   5.0
#define LEAST_SAVED_USD 0.0005

static double saved_s(const struct plan *given, const struct plan *other)
{
	return given->makespan_p50_s - other->makespan_p50_s;
}

static double saved_usd(const struct plan *given, const struct plan *other)
{
	return given->cost_usd - other->cost_usd;
}

static bool is_much_faster(const struct plan *given, const struct plan *other)
{
	return other->makespan_p50_s <= CLEARLY * given->makespan_p50_s &&
	       saved_s(given, other) >= LEAST_SAVED_S;
}

static bool is_much_cheaper(const struct plan *given, const struct plan *other)
{
	return other->cost_usd <= CLEARLY * given->cost_usd &&
	       saved_usd(given, other) >= LEAST_SAVED_USD;
}

/* In dollars, an hour of waiting being worth something. */
static bool is_much_better(const struct plan *given, const struct plan *other, double value_h)
{
	double before = given->cost_usd + value_h * given->makespan_p50_s / 3600,
	       after = other->cost_usd + value_h * other->makespan_p50_s / 3600;

	return after <= CLEARLY * before && before - after >= LEAST_SAVED_USD;
}

/* Whether `other` is so much better than the given plan that burst should mention it. */
static bool by_goal(const struct plan *given, const struct plan *other,
		    const struct plan_wish *wish)
{
	switch (wish->goal) {
	case PLAN_COST: return is_much_cheaper(given, other);
	case PLAN_TIME: return is_much_faster(given, other);
	case PLAN_BALANCED: return is_much_better(given, other, wish->value_of_time_h);
	}
	return false;
}

bool plan_better(struct plan *out, const struct plan *given, const struct plan_work *w,
		 const struct plan_machine *machines, size_t count, const struct plan_wish *wish)
{
	struct plan_wish any = *wish;
	struct plan other;

	any.pods = 0;
	/* it is missed as it is */
	if (wish->deadline_s > 0 && given->makespan_p90_s > wish->deadline_s)
		any.deadline_s = given->makespan_p90_s;
	if (wish->budget_usd > 0 && given->pods_usd > wish->budget_usd)
		any.budget_usd = given->pods_usd;
	if (plan_choose(&other, w, machines, count, &any) == PLAN_FOUND &&
	    by_goal(given, &other, wish)) {
		*out = other;
		return true;
	}
	any.goal = PLAN_TIME;
	any.budget_usd = given->pods_usd;
	if (given->pods_usd <= 0 || plan_choose(&other, w, machines, count, &any) != PLAN_FOUND ||
	    !is_much_faster(given, &other) || saved_usd(given, &other) < 0)
		return false;
	*out = other;
	return true;
}
