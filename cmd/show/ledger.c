/* ledger.c - what a run was planned to cost, and the bills of vendors, beside what the ledger has.
 */
#include "ledger.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "output.h"
#include "report.h"
#include "runs/bill.h"
#include "store/pod_cost.h"

/* ---- planned and actual ---- */

void planned_say_replans(FILE *to, const struct run_row *run)
{
	const char *at = run->replanned, *line;
	size_t len;

	for (int i = 0; i < run->replans && (line = str_next_line(&at, &len)); i++) {
		fputs("planned again: ", to);
		output_safe_line(to, line, len);
	}
}

static int percent_more(int64_t was, int64_t planned)
{
	return (int)llround(MIN(100 * (double)(was - planned) / (double)planned, 1e6));
}

bool planned_compare(char *to, size_t room, const struct run_row *run, const struct pod_row *pods,
		     size_t count)
{
	int64_t first = INT64_MAX, last = 0;
	char planned[24], was[24], planned_usd[32], was_usd[32], more_cost[32] = "";

	for (size_t i = 0; i < count; i++) {
		if (pods[i].create_ms > 0)
			first = MIN(first, pods[i].create_ms);
		last = MAX(last, MAX(pods[i].safe_ms, pods[i].worked_ms));
	}
	if (run->planned_ms <= 0 || last <= first || run->status != RUN_DONE)
		return false;
	bool priced = !run->unpriced_ms;
	if (priced && run->planned_microusd > 0)
		snprintf(more_cost, sizeof(more_cost), ", %+d%% cost",
			 percent_more(run->cost_microusd, run->planned_microusd));
	snprintf(to, room, "planned %s%s%s; was %s%s%s (%+d%% time%s)",
		 duration_show(planned, sizeof(planned), run->planned_ms), priced ? ", " : "",
		 priced ? money_show(planned_usd, sizeof(planned_usd), run->planned_microusd) : "",
		 duration_show(was, sizeof(was), last - first), priced ? ", " : "",
		 priced ? money_show(was_usd, sizeof(was_usd), run->cost_microusd) : "",
		 percent_more(last - first, run->planned_ms), more_cost);
	return true;
}

/* ---- bills of vendors beside our count ---- */

struct bill_facts {
	struct pod_row row;
	const char *id, *run;
	bool has_dollars, final;
	int64_t list_microusd; /* below 0: unknown, as below */
	int64_t vendor_ms, vendor_microusd, beside_microusd, ask_again_ms;
	int64_t more_microusd; /* if has_dollars */
	const char *vendor_is, *state, *why;
};

static struct bill_facts bill_facts_of(const struct asked_pod *pod, const struct pod_row *row)
{
	bool dollars = bill_has_dollars(row),
	     timed = bill_is_known(row) && (row->billed_vendor_ms || row->vendor_reported);

	return (struct bill_facts){
		.row = *row,
		.id = row->id,
		.run = row->run,
		.has_dollars = dollars,
		.final = pod->asked && pod->verdict.final,
		.list_microusd = row->price_list_microusd_h ? row->price_list_microusd_h : -1,
		.vendor_ms = timed ? row->billed_vendor_ms : -1,
		.vendor_microusd = dollars ? row->cost_vendor_microusd : -1,
		.beside_microusd = dollars ? row->cost_beside_microusd : -1,
		.ask_again_ms = pod->asked ? pod->verdict.ask_again_ms : 0,
		.more_microusd = dollars ? row->cost_vendor_microusd - row->cost_microusd : 0,
		.vendor_is = !timed                 ? NULL
			     : row->vendor_reported ? "reported"
						    : "implied",
		.state = pod->asked ? bill_state_name(pod->verdict.state) : "not_asked",
		.why = pod->asked ? pod->verdict.why : pod->why_not,
	};
}

/* How much more the vendor billed than burst counted. */
static json_t *more_json(const void *of)
{
	const struct bill_facts *f = of;

	return f->has_dollars ? report_dollars(f->more_microusd) : json_null();
}

static void our_cost_text(char *to, size_t room, const void *of)
{
	const struct bill_facts *f = of;

	cost_show(to, room, f->row.cost_microusd, f->row.unpriced);
}

static void more_text(char *to, size_t room, const void *of)
{
	const struct bill_facts *f = of;
	char text[32];

	if (!f->has_dollars || !f->more_microusd)
		snprintf(to, room, f->has_dollars ? "0" : "-");
	else
		snprintf(to, room, "%c%s", f->more_microusd < 0 ? '-' : '+',
			 bill_money(text, sizeof(text), llabs(f->more_microusd)));
}

enum { BILL_TABLE = 1, BILL_OBJECT = 2, BILL_BOTH = BILL_TABLE | BILL_OBJECT };
#define AT(field) offsetof(struct bill_facts, field)
static const struct shown_column bill_columns[] = {
	{BILL_BOTH, "id", "POD", UNIT_WORD, AT(id)},
	{BILL_BOTH, "run", "RUN", UNIT_WORD, AT(run), 4},
	{BILL_OBJECT, "provider", NULL, UNIT_TEXT, AT(row.provider)},
	{BILL_OBJECT, "price_usd_hour", NULL, UNIT_USD, AT(row.price_microusd_h)},
	{BILL_OBJECT, "price_list_usd_hour", NULL, UNIT_USD, AT(list_microusd)},
	{BILL_BOTH, "billed_seconds", "OUR TIME", UNIT_MS, AT(row.billed_ms), 1},
	{BILL_BOTH, "cost_usd", "OUR COST", UNIT_USD, AT(row.cost_microusd), .text = our_cost_text},
	{BILL_BOTH, "billed_vendor_s", "ITS TIME", UNIT_MS, AT(vendor_ms), 2},
	{BILL_BOTH, "billed_vendor_is", "", UNIT_WORD, AT(vendor_is), 3},
	{BILL_BOTH, "cost_vendor_usd", "ITS COST", UNIT_USD, AT(vendor_microusd)},
	{BILL_OBJECT, "cost_beside_usd", NULL, UNIT_USD, AT(beside_microusd)},
	{BILL_BOTH, "difference_usd", "MORE", UNIT_FIGURE, .json = more_json, .text = more_text},
	{BILL_OBJECT, "state", NULL, UNIT_WORD, AT(state)},
	{BILL_OBJECT, "why", NULL, UNIT_WORD, AT(why)},
	{BILL_OBJECT, "final", NULL, UNIT_FLAG, AT(final)},
	{BILL_OBJECT, "asked_at", NULL, UNIT_TIME, AT(row.vendor_asked_ms)},
	{BILL_OBJECT, "ask_again_at", NULL, UNIT_TIME, AT(ask_again_ms)},
};
#undef AT

static void add_to_sum(struct bill_facts *sum, const struct bill_facts *f)
{
	sum->row.billed_ms += f->row.billed_ms;
	sum->row.cost_microusd += f->row.cost_microusd;
	sum->vendor_ms += MAX(f->vendor_ms, 0);
	sum->vendor_microusd += MAX(f->vendor_microusd, 0);
	sum->has_dollars = sum->has_dollars || f->has_dollars;
	sum->more_microusd += f->more_microusd;
}

void bills_print(bool json, const struct reconciliation *r)
{
	static const struct columns of_bills = {bill_columns, ARRAY_LEN(bill_columns)};
	struct rows rows = rows_begin(json, &of_bills, BILL_TABLE, BILL_OBJECT);
	struct bill_facts sum = {.id = "on a bill", .run = "", .vendor_is = ""};
	size_t known = 0;

	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < r->pods[i].share_count; k++) {
			const struct pod_row *share = &r->pods[i].shares[k];
			struct bill_facts f = bill_facts_of(&r->pods[i], share);
			if (!reconcile_shows(r, share))
				continue;
			rows_add(&rows, &f);
			if (!bill_is_known(share))
				continue;
			known++;
			add_to_sum(&sum, &f);
		}
	if (known > 1 && !json)
		rows_add(&rows, &sum);
	rows_end(&rows);
	if (r->count && !json)
		putchar('\n');
	for (size_t i = 0; i < r->count && !json; i++)
		output_line(stdout, "%s: %s%s", r->pods[i].whole.id,
			    r->pods[i].verdict.state == BILL_EXCESS ? "TOO MUCH: " : "",
			    r->pods[i].asked ? r->pods[i].verdict.why : r->pods[i].why_not);
}
