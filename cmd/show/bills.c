/* bills.c - prints the vendors' bills beside our count, as a table or JSON. */
#include "bills.h"

#include <stdlib.h>

#include "base/clock.h"
#include "output.h"
#include "report.h"
#include "table.h"

/* ---- table ---- */

struct sums {
	int64_t billed_ms, cost, vendor_ms, vendor_cost, more;
	size_t known, with_dollars;
};

static void add_up(struct sums *s, const struct pod_row *share)
{
	if (!bill_is_known(share))
		return;
	s->known++;
	s->billed_ms += share->billed_ms;
	s->cost += share->cost_microusd;
	s->vendor_ms += share->billed_vendor_ms;
	s->vendor_cost += share->cost_vendor_microusd;
	if (!bill_has_dollars(share))
		return;
	s->with_dollars++;
	s->more += share->cost_vendor_microusd - share->cost_microusd;
}

static void cell_difference(struct table *t, int64_t microusd)
{
	char text[32];

	if (microusd)
		table_cell(t, "%c%s", microusd < 0 ? '-' : '+',
			   bill_money(text, sizeof(text), llabs(microusd)));
	else
		table_cell(t, "0");
}

static void cell_ours(struct table *t, const char *pod, const char *run, int64_t ms, int64_t cost)
{
	char text[32];

	table_cell(t, "%s", pod);
	table_cell(t, "%s", run);
	table_cell(t, "%.0fs", (double)ms / 1000);
	table_cell(t, "%s", money_show(text, sizeof(text), cost));
}

static void cell_its_dollars(struct table *t, bool known, int64_t cost, int64_t more)
{
	char text[32];

	table_cell(t, "%s", known ? money_show(text, sizeof(text), cost) : "-");
	if (known)
		cell_difference(t, more);
	else
		table_cell(t, "-");
}

static void print_pod(struct table *t, const struct pod_row *pod)
{
	cell_ours(t, pod->id, pod->run, pod->billed_ms, pod->cost_microusd);
	if (!bill_is_known(pod)) {
		for (int i = 0; i < 4; i++)
			table_cell(t, "-");
		return;
	}
	table_cell(t, pod->billed_vendor_ms || pod->vendor_reported ? "%.1fs" : "-",
		   (double)pod->billed_vendor_ms / 1000);
	table_cell(t, "%s", pod->vendor_reported ? "reported" : "implied");
	cell_its_dollars(t, bill_has_dollars(pod), pod->cost_vendor_microusd,
			 pod->cost_vendor_microusd - pod->cost_microusd);
}

static void print_why(const struct asked_pod *pod)
{
	CLEANUP(free_text)
	char *line = xasprintf("%s: %s%s", pod->whole.id,
			       pod->verdict.state == BILL_EXCESS ? "TOO MUCH: " : "",
			       pod->asked ? pod->verdict.why : pod->why_not);

	output_safe_line(stdout, line, strlen(line));
}

void bills_print(const struct reconciliation *r)
{
	CLEANUP(table_free) struct table *t = table_new();
	struct sums sums = {0};

	table_column(t, "POD", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "RUN", TABLE_LEFT, 4);
	table_column(t, "OUR TIME", TABLE_RIGHT, 1);
	table_column(t, "OUR COST", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "ITS TIME", TABLE_RIGHT, 2);
	table_column(t, "", TABLE_LEFT, 3);
	table_column(t, "ITS COST", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "MORE", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < r->pods[i].share_count; k++) {
			const struct pod_row *share = &r->pods[i].shares[k];
			if (!reconcile_shows(r, share))
				continue;
			print_pod(t, share);
			add_up(&sums, share);
		}
	if (sums.known > 1) {
		cell_ours(t, "on a bill", "", sums.billed_ms, sums.cost);
		table_cell(t, "%.1fs", (double)sums.vendor_ms / 1000);
		table_cell(t, "%s", "");
		cell_its_dollars(t, sums.with_dollars, sums.vendor_cost, sums.more);
	}
	table_print(t, stdout, terminal_width(stdout));
	if (r->count)
		putchar('\n');
	for (size_t i = 0; i < r->count; i++)
		print_why(&r->pods[i]);
}

/* ---- JSON ---- */

static json_t *times_json(const struct pod_row *pod)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "create_at",
			 report_time(pod->create_ms), "rented_at", report_time(pod->rented_ms),
			 "vendor_started_at", report_time(pod->vendor_started_ms), "running_at",
			 report_time(pod->running_ms), "release_at", report_time(pod->release_ms),
			 "released_at", report_time(pod->released_ms), "gone_at",
			 report_time(pod->gone_ms));
}

/* If several runs held the pod in an hour, each gets its part of the vendor's dollars. */
static json_t *hours_json(const struct asked_pod *pod, const struct pod_row *share)
{
	json_t *list = json_array();

	for (size_t i = 0; i < pod->told.hour_count; i++) {
		const struct bill_hour *h = &pod->told.hours[i];
		json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:o, s:o}", "from", report_time(h->start_s * 1000),
				  "to", report_time(h->end_s * 1000), "cost_usd",
				  report_dollars(bill_ours_between(share, h->start_s, h->end_s)),
				  "cost_vendor_usd",
				  report_dollars(
					  bill_hour_of(pod->shares, pod->share_count, share, h))));
	}
	return list;
}

static json_t *share_json(const struct asked_pod *pod, const struct pod_row *row)
{
	bool known = bill_has_dollars(row), timed = row->billed_vendor_ms || row->vendor_reported;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:b, s:o, "
		"s:o, s:o, s:o}",
		"run", report_text(row->run), "id", report_text(row->id), "provider",
		report_text(row->provider), "price_usd_hour", report_dollars(row->price_microusd_h),
		"price_list_usd_hour",
		row->price_list_microusd_h ? report_dollars(row->price_list_microusd_h)
					   : json_null(),
		"billed_seconds", report_seconds(row->billed_ms), "cost_usd",
		report_dollars(row->cost_microusd), "billed_vendor_s",
		timed ? report_seconds(row->billed_vendor_ms) : json_null(), "billed_vendor_is",
		timed ? json_string(row->vendor_reported ? "reported" : "implied") : json_null(),
		"cost_vendor_usd", known ? report_dollars(row->cost_vendor_microusd) : json_null(),
		"cost_beside_usd", known ? report_dollars(row->cost_beside_microusd) : json_null(),
		"difference_usd",
		known ? report_dollars(row->cost_vendor_microusd - row->cost_microusd)
		      : json_null(),
		"state", pod->asked ? bill_state_name(pod->verdict.state) : "not_asked", "why",
		report_text(pod->asked ? pod->verdict.why : pod->why_not), "final",
		pod->asked && pod->verdict.final, "asked_at", report_time(row->vendor_asked_ms),
		"ask_again_at", pod->asked ? report_time(pod->verdict.ask_again_ms) : json_null(),
		"hours", hours_json(pod, row), "times", times_json(row));
}

void bills_print_json(const struct reconciliation *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < r->pods[i].share_count; k++)
			if (reconcile_shows(r, &r->pods[i].shares[k]))
				json_array_append_new(
					list, share_json(&r->pods[i], &r->pods[i].shares[k]));
	output_json(list);
}
