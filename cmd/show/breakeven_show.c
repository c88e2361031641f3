/* breakeven_show.c - prints how renting compares with APIs, owning, reserving and spot pods. */
#include "breakeven_show.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "plan/demand.h"
#include "table.h"

static void add_api(struct table *t, const struct breakeven_api *api,
		    const struct breakeven_rate *rate)
{
	char share[32];
	double usd = demand_usd_per_million(rate->price_h, rate->chars_per_hour, rate->duty),
	       from = demand_api_duty(rate->price_h, rate->chars_per_hour, api->usd);

	table_cell(t, "%s", api->name);
	table_cell(t, "%.2f", api->usd);
	table_cell(t, "%s", api->seen);
	if (from > 1)
		table_cell(t, "never");
	else
		table_cell(t, "%s%% used", number_show(share, 100 * from, 2));
	if (fabs(usd - api->usd) < 0.005 * api->usd)
		table_cell(t, "both cost the same");
	else
		table_cell(t, "%s %.1fx",
			   usd < api->usd ? "renting is cheaper," : "the API is cheaper,",
			   usd < api->usd ? api->usd / usd : usd / api->usd);
}

static void print_apis(const struct breakeven *b)
{
	CLEANUP(table_free) struct table *t = table_new();
	size_t count = 1;
	const struct breakeven_api *apis = b->api ? b->api : breakeven_apis(&count);

	table_column(t, "API", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "$/M CHARS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "SEEN", TABLE_LEFT, 2);
	table_column(t, "RENTING PAYS FROM", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "NOW", TABLE_LEFT, 1);
	for (size_t i = 0; i < count; i++)
		add_api(t, &apis[i], &b->rate);
	table_print(t, stdout, terminal_width(stdout));
}

static void print_own(const struct breakeven_own *own, double price_h)
{
	double duty = demand_own_duty(own->capex_usd, own->opex_usd_year, own->years, price_h);

	if (duty > 1)
		printf("\nowning for $%.0f and $%.0f a year: never cheaper than renting at this "
		       "price, over %g years\n",
		       own->capex_usd, own->opex_usd_year, own->years);
	else
		printf("\nowning for $%.0f and $%.0f a year: cheaper than renting above %.1f%% of "
		       "all hours, over %g years\n",
		       own->capex_usd, own->opex_usd_year, 100 * duty, own->years);
}

static void print_spot(const struct breakeven *b)
{
	static const double off[] = {0.3, 0.5, 0.6, 0.7, 0.9};
	const struct breakeven_spot *s = b->spot;
	char work[24], cold[24], every[24], worth[32];

	printf("\nspot: %s of work (%s), cold start %s, interrupted every %s%s%s%s\n",
	       duration_show(work, sizeof(work), (int64_t)(s->work_s * 1000)), b->work_from,
	       duration_show(cold, sizeof(cold), (int64_t)(s->cold_s * 1000)),
	       duration_show(every, sizeof(every), (int64_t)(s->every_s * 1000)),
	       b->every_from[0] ? " (" : "", b->every_from, b->every_from[0] ? ")" : "");
	printf("spot pays when it costs at least %s%% less:",
	       number_show(worth, 100 * breakeven_spot_worth(s), 2));
	for (size_t i = 0; i < ARRAY_LEN(off); i++)
		printf("%s %.0f%% off saves %.1f%%", i ? "," : "", 100 * off[i],
		       100 * breakeven_spot_saving(s, off[i]));
	putchar('\n');
}

void breakeven_print(const struct breakeven *b)
{
	const struct breakeven_rate *r = &b->rate;

	printf("renting: $%.4f an hour, %.0f characters an hour of computing, %.0f%% of billed "
	       "time used (%s)\n",
	       r->price_h, r->chars_per_hour, 100 * r->duty, b->rate_from);
	printf("a million characters: $%.3f; at full use $%.3f\n\n",
	       demand_usd_per_million(r->price_h, r->chars_per_hour, r->duty),
	       demand_usd_per_million(r->price_h, r->chars_per_hour, 1));
	print_apis(b);
	if (b->own)
		print_own(b->own, r->price_h);
	if (b->saving > 0)
		printf("\nreserving at %.0f%% off: cheaper than renting above %.0f%% of all "
		       "hours\n",
		       100 * b->saving, 100 * demand_reserved_duty(b->saving));
	if (b->spot)
		print_spot(b);
}
