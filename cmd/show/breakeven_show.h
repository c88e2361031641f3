/* breakeven_show.h - prints how renting compares with APIs, owning, reserving and spot pods. */
#ifndef BURST_CMD_SHOW_BREAKEVEN_SHOW_H
#define BURST_CMD_SHOW_BREAKEVEN_SHOW_H

#include "plan/demand.h"

struct breakeven_own {
	double capex_usd, opex_usd_year, years;
};

/* What the user wants to compare; NULL, or saving 0: not this. */
struct breakeven {
	struct breakeven_rate rate;
	const char *rate_from;
	const struct breakeven_api *api; /* NULL: all with a list price */
	const struct breakeven_own *own;
	double saving; /* of a reservation */
	const struct breakeven_spot *spot;
	const char *work_from, *every_from; /* of the spot pods' figures; "": none */
};

void breakeven_print(const struct breakeven *b);

#endif
