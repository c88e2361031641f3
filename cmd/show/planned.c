/* planned.c - compares a run with its plan. */
#include "planned.h"

#include <math.h>

#include "base/clock.h"
#include "output.h"

void planned_say_replans(FILE *to, const struct run_row *run)
{
	const char *at = run->replanned, *line;
	size_t len;

	for (int i = 0; i < run->replans && (line = str_next_line(&at, &len)); i++) {
		fputs("planned again: ", to);
		output_safe_line(to, line, len);
	}
}

bool planned_compare(char *to, size_t room, const struct run_row *run, const struct pod_row *pods,
		     size_t count)
{
	int64_t first = INT64_MAX, last = 0;
	char planned[24], was[24], planned_usd[32], was_usd[32];

	for (size_t i = 0; i < count; i++) {
		if (pods[i].create_ms > 0)
			first = MIN(first, pods[i].create_ms);
		last = MAX(last, MAX(pods[i].safe_ms, pods[i].worked_ms));
	}
	if (run->planned_ms <= 0 || last <= first || run->status != RUN_DONE)
		return false;
	bool free = run->planned_microusd <= 0; /* then only the time can differ */
	double was_amount = free ? (double)(last - first) : (double)run->cost_microusd;
	double planned_amount = free ? (double)run->planned_ms : (double)run->planned_microusd;
	int off = (int)llround(MIN(100 * (was_amount - planned_amount) / planned_amount, 1e6));
	snprintf(to, room, "planned %s, %s; was %s, %s (%+d%%)",
		 duration_show(planned, sizeof(planned), run->planned_ms),
		 money_show(planned_usd, sizeof(planned_usd), run->planned_microusd),
		 duration_show(was, sizeof(was), last - first),
		 money_show(was_usd, sizeof(was_usd), run->cost_microusd), off);
	return true;
}
