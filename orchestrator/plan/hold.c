/* hold.c - decides for how long a pod without work is held for the next run. */
#include "hold.h"

#include "base/mem.h"

static int64_t cost_ms(const int64_t *gaps_ms, size_t count, int64_t hold, int64_t cold_ms)
{
	int64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += gaps_ms[i] <= hold ? gaps_ms[i] : hold + cold_ms;
	return sum;
}

int64_t hold_ms(const int64_t *gaps_ms, size_t count, int64_t cold_ms)
{
	int64_t best = 0;

	if (count < HOLD_GAPS_LEAST)
		return cold_ms;
	/* between two gaps, the longer hold only costs more */
	for (size_t i = 0; i < count; i++)
		if (gaps_ms[i] <= cold_ms && cost_ms(gaps_ms, count, gaps_ms[i], cold_ms) <
						     cost_ms(gaps_ms, count, best, cold_ms))
			best = gaps_ms[i];
	/* the next gap is rarely the same to the millisecond */
	return best ? MIN(best + best / 4, cold_ms) : 0;
}
