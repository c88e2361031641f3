/* prices.c - Modal's published prices on one day, for accounts that may not read their own rates.
 */
#include "impl.h"

/* Dollars an hour for one GPU; modal.com/pricing has dollars a second. */
static const struct {
	const char *gpu;
	int64_t microusd_h;
} list[] = {
	{"T4", 590400},         {"L4", 799200},
	{"A10", 1101600},       {"A10G", 1101600},
	{"L40S", 1951200},      {"A100-40GB", 2098800},
	{"A100-80GB", 2498400}, {"RTX-PRO-6000", 3031200},
	{"H100", 3949200},      {"H200", 4539600},
	{"B200", 6249600},      {"B300", 7099200},
};

int64_t modal_list_rate(const char *gpu)
{
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (!strcmp(list[i].gpu, gpu))
			return list[i].microusd_h;
	return 0;
}
