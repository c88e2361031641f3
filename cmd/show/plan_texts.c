/* plan_texts.c - short texts about a plan: times, dollars, offers, one sentence. */
#include <math.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "plan_parts.h"
#include "table.h"
#include "text.h"

char *plan_seconds(char to[24], double seconds)
{
	return duration_show(to, 24, (int64_t)(MIN(seconds, 1e9) * 1000));
}

char *plan_dollars(char to[32], double usd)
{
	if (usd > 1e-9 && usd < 0.001)
		snprintf(to, 32, "$%.*f", 1 - (int)floor(log10(usd)), usd);
	else
		money_show(to, 32, (int64_t)llround(usd * 1e6));
	return to;
}

char *plan_offer(char to[PLAN_TEXT], const struct offer *o)
{
	CLEANUP(str_free) struct str gpu = STR_INIT; /* a provider's text */
	const char *name = gpu_called(o->gpu);

	str_add_printable(&gpu, name, strlen(name), 60);
	format_text(to, PLAN_TEXT, "%s at %s%s", str_text(&gpu), o->provider,
		    o->spot ? ", spot" : "");
	return to;
}

double plan_each_usd(const struct estimate *e, const struct plan *p)
{
	return e->open ? p->cost_usd / (double)e->open : 0;
}

bool plan_best_for(struct plan *out, const struct estimate *e, enum plan_goal goal, bool in_time,
		   bool in_budget)
{
	struct plan_wish wish = e->wish;

	wish.goal = goal;
	wish.staged = e->wish.staged && goal == PLAN_COST;
	wish.deadline_s = in_time ? wish.deadline_s : 0;
	wish.budget_usd = in_budget ? wish.budget_usd : 0;
	return plan_choose(out, &e->work, e->machines, e->count, &wish) == PLAN_FOUND;
}

void plan_say(FILE *to, int indent, const char *fmt, ...)
{
	int width = terminal_width(to);
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (width)
		text_wrap(to, line, 0, indent, width);
	else
		fprintf(to, "%s\n", line);
}

char *plan_sentence(char *to, size_t room, const struct estimate *e, const struct plan *pick)
{
	char offer[PLAN_TEXT], time[24], cost[32];

	format_text(to, room, "%d pod%s of %s: about %s, %s", pick->pods,
		    pick->pods == 1 ? "" : "s", plan_offer(offer, &e->offers[pick->machine]),
		    plan_seconds(time, pick->makespan_p50_s), plan_dollars(cost, pick->cost_usd));
	return to;
}
