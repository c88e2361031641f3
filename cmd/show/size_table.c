/* size_table.c - prints the Erlang C table of a pool of pods: waits and cost for each size. */
#include "size_table.h"

#include <math.h>

#include "base/clock.h"
#include "plan/demand.h"
#include "table.h"

enum { ROWS_BELOW = 7, ROWS_ABOVE = 3 }; /* rows of the table, around the recommended size */

static int first_row(const struct size_request *r, int pods)
{
	return MAX((int)floor(r->load) + 1, pods - ROWS_BELOW);
}

static double usd_per_thousand(const struct size_request *r, int pods)
{
	return pods * r->price_h / 3600 / r->per_s * 1000;
}

static void cell_seconds(struct table *t, double s)
{
	if (s > 0 && s < 0.001)
		table_cell(t, "<1ms");
	else if (s > 0 && s < 1)
		table_cell(t, "%.0fms", s * 1000);
	else
		table_cell(t, s < 100 ? "%.1fs" : "%.0fs", s);
}

static void print_table(const struct size_request *r, int pods)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "PODS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "USED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "WAIT AT ALL", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "MEAN WAIT", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "P50", TABLE_RIGHT, 3);
	table_column(t, "P95", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "P99", TABLE_RIGHT, 2);
	if (r->price_h > 0) {
		table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
		table_column(t, "$/1000 REQUESTS", TABLE_RIGHT, 1);
	}
	table_column(t, "", TABLE_LEFT, TABLE_WHOLE);
	for (int n = first_row(r, pods); n <= pods + ROWS_ABOVE; n++) {
		struct demand_size s = demand_size(n, r->load, r->service_s);
		table_cell(t, "%d", n);
		table_cell(t, "%.1f%%", 100 * s.used);
		table_cell(t, "%.2f%%", 100 * s.waits);
		cell_seconds(t, s.mean_s);
		cell_seconds(t, s.p50_s);
		cell_seconds(t, s.p95_s);
		cell_seconds(t, s.p99_s);
		if (r->price_h > 0) {
			table_cell(t, "%.2f", n * r->price_h);
			table_cell(t, "%.4f", usd_per_thousand(r, n));
		}
		table_cell(t, "%s", n == pods ? "<" : "");
	}
	table_print(t, stdout, terminal_width(stdout));
}

void size_table_print(const struct size_request *r, int pods)
{
	char hour[32], each[32], busy[32], price[32];

	printf("%s requests an hour of %s s keep %s pods busy\n\n",
	       number_show(hour, r->per_s * 3600, 6), number_show(each, r->service_s, 6),
	       number_show(busy, r->load, 4));
	print_table(r, pods);
	printf("\n%d pod%s: ", pods, pods == 1 ? "" : "s");
	if (r->has_goal && r->goal.share > 0)
		printf("the fewest with which %g%% of the requests wait at most %g s\n",
		       100 * r->goal.share, r->goal.wait_s);
	else if (r->has_goal)
		printf("the fewest with which the mean wait is at most %g s\n", r->goal.wait_s);
	else
		printf("about one request in ten waits; --wait p95=2s sizes for your own limit\n");
	if (r->price_h > 0)
		printf("price: $%s an hour and pod (%s), paid while pods are idle, too\n",
		       number_show(price, r->price_h, 6), r->price_from);
	else
		printf("no cost shown: give --price USD (an hour and pod) or --gpu GPU\n");
}

json_t *size_table_json(const struct size_request *r, int chosen)
{
	json_t *sizes = json_array();

	for (int n = first_row(r, chosen); n <= chosen + ROWS_ABOVE; n++) {
		struct demand_size s = demand_size(n, r->load, r->service_s);
		json_t *o = json_pack("{s:i,s:f,s:f,s:f,s:f,s:f,s:f}", "pods", n, "used", s.used,
				      "waits", s.waits, "mean_wait_s", s.mean_s, "p50_s", s.p50_s,
				      "p95_s", s.p95_s, "p99_s", s.p99_s);
		json_object_set_new(o, "usd_hour",
				    r->price_h > 0 ? json_real(n * r->price_h) : json_null());
		json_object_set_new(o, "usd_per_thousand",
				    r->price_h > 0 ? json_real(usd_per_thousand(r, n))
						   : json_null());
		json_array_append_new(sizes, o);
	}
	return json_pack("{s:f,s:f,s:f,s:i,s:o}", "requests_per_s", r->per_s, "service_s",
			 r->service_s, "load", r->load, "pods", chosen, "sizes", sizes);
}
