/* test_economics.c - the time and cost of one render, wide or tall pods, and batching, against
 * worked cases: one row per case. S: a 300-question render on one card. W: wide or tall. M:
 * batching.
 *
 * Where a source contradicts itself, the row asserts our arithmetic and its text quotes the source.
 * Cases that only cite a measurement, without inputs, are left out; so is S-16 (names of another
 * tool's flags). Prices are in dollars an hour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/gpus.h"
#include "cmd/show/ledger.h"
#include "plan/cost.h"
#include "formulas.h"
#include "plan/choose.h"
#include "plan/speed.h"
#include "rows.h"
#include "plan_bed.h"

static double bandwidth_per_dollar(const char *gpu, double price_h)
{
	return gpu_find(gpu)->bandwidth_gb_s / price_h;
}

/* 20 minutes on an RTX 5090, on a card with other bandwidth. */
static double minutes_by_bandwidth(const char *gpu)
{
	return 20.0 * gpu_find("RTX 5090")->bandwidth_gb_s / gpu_find(gpu)->bandwidth_gb_s;
}

static double usd_by_bandwidth(const char *gpu, double price_h, double cold_min)
{
	return cost_usd(price_h, MINUTES(cold_min + minutes_by_bandwidth(gpu)));
}

/* S-10's four cards with this deadline for computing alone: the cheapest in time. */
static const char *card_in_time(double deadline_min)
{
	static const struct {
		const char *gpu;
		double price_h;
	} cards[] = {{"RTX A5000", .16}, {"RTX 4090", .34}, {"RTX 5090", .69}, {"H100 SXM", 2.69}};
	struct plan_machine machines[ARRAY_LEN(cards)];
	const struct plan_wish wish = {
		.goal = PLAN_COST, .pods = 1, .within_s = MINUTES(deadline_min)};
	struct plan_work w;
	struct plan best;
	double length = 1;

	for (size_t i = 0; i < ARRAY_LEN(cards); i++)
		machines[i] = (struct plan_machine){
			.price_h = cards[i].price_h,
			.workers = 1,
			.batch_max = 1,
			.speed.each_s = MINUTES(minutes_by_bandwidth(cards[i].gpu))};
	plan_work_init(&w, &length, 1, 1, 0);
	return plan_choose(&best, &w, machines, ARRAY_LEN(cards), &wish) == PLAN_FOUND
		       ? cards[best.machine].gpu
		       : "none";
}

/* Seconds for 12 items of 1 s on one pod with so many processes. */
static double with_workers(int workers)
{
	const struct plan_machine m = {
		.price_h = 1, .workers = workers, .batch_max = 1, .speed.each_s = 1};
	double lengths[12];
	struct plan_work w;
	struct plan p;

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		lengths[i] = 1;
	plan_work_init(&w, lengths, ARRAY_LEN(lengths), 1, 0);
	plan_given(&p, &w, &m, 0, 1, 1, &(struct plan_wish){0});
	return p.makespan_p50_s;
}

static void one_render(void **state)
{
	(void)state;
	const double cold = 90, slow = MINUTES(15), work = MINUTES(20);
	const double without = cost_usd(0.69, cost_wide_billed_s(1, slow, work));
	const struct row rows[] = {
		{"S-1", "20 min at .69 (source: $0.40)", cost_usd(0.69, work), 0.2300, ABSOLUTE,
		 0.0005},
		{"S-1", "minutes that $0.40 buys", 0.40 / 0.69 * 60, 34.78, ABSOLUTE, 0.01},
		{"S-2", "with a cold start of 15 min", without, 0.4025, ABSOLUTE, 0.0005},
		{"S-2", "its makespan, min", cost_wide_makespan_s(1, slow, work) / 60, 35, ABSOLUTE,
		 0.01},
		{"S-3", "with a volume, 90 s", cost_usd(0.69, cost_wide_billed_s(1, cold, work)),
		 0.2473, ABSOLUTE, 0.0005},
		{"S-3", "its makespan, min", cost_wide_makespan_s(1, cold, work) / 60, 21.5,
		 ABSOLUTE, 0.01},
		{"S-3", "minutes saved", (slow - cold) / 60, 13.5, ABSOLUTE, 0.01},
		{"S-3", "what the volume saves a run",
		 without - cost_usd(0.69, cost_wide_billed_s(1, cold, work)), 0.1553, ABSOLUTE,
		 0.0005},
		{"S-4", "at a price with a volume, .89",
		 cost_usd(0.89, cost_wide_billed_s(1, cold, work)), 0.3189, ABSOLUTE, 0.0005},
		{"S-4", "at .99", cost_usd(0.99, cost_wide_billed_s(1, cold, work)), 0.3548,
		 ABSOLUTE, 0.0005},
		{"S-5", "break-even of 20 GB, .69 on both sides",
		 cost_volume_break_even(1.40, without, cost_usd(0.69, cold + work)), 9.02, RELATIVE,
		 0.01},
		{"S-5", ".99 on both sides",
		 cost_volume_break_even(1.40, cost_usd(0.99, slow + work),
					cost_usd(0.99, cold + work)),
		 6.29, RELATIVE, 0.01},
		{"S-5", ".69 against .89",
		 cost_volume_break_even(1.40, without, cost_usd(0.89, cold + work)), 16.7, RELATIVE,
		 0.01},
		{"S-5", ".69 against .99",
		 cost_volume_break_even(1.40, without, cost_usd(0.99, cold + work)), 29.3, RELATIVE,
		 0.01},
		{"S-6", "seconds a question", work / 300, 4.0, ABSOLUTE, 0.01},
		{"S-6", "dollars a question, warm", cost_usd(0.69, work) / 300, 0.000767, RELATIVE,
		 0.01},
		{"S-6", "dollars a question, S-2", without / 300, 0.001342, RELATIVE, 0.01},
		{"S-7", "list price, H100", prior_list_price("H100 SXM", MARKET_COMMUNITY, NULL),
		 2.69, ABSOLUTE, 0},
		{"S-7", "A5000", prior_list_price("RTX A5000", MARKET_COMMUNITY, NULL), 0.16,
		 ABSOLUTE, 0},
		{"S-7", "4090", prior_list_price("RTX 4090", MARKET_COMMUNITY, NULL), 0.34,
		 ABSOLUTE, 0},
		{"S-7", "5090", prior_list_price("RTX 5090", MARKET_COMMUNITY, NULL), 0.69,
		 ABSOLUTE, 0},
		{"S-8", "A5000 GB/s per $/h", bandwidth_per_dollar("RTX A5000", 0.16), 4800,
		 ABSOLUTE, 1},
		{"S-8", "4090", bandwidth_per_dollar("RTX 4090", 0.34), 2965, ABSOLUTE, 1},
		{"S-8", "5090 (source: best; it is third of four)",
		 bandwidth_per_dollar("RTX 5090", 0.69), 2597, ABSOLUTE, 1},
		{"S-8", "H100", bandwidth_per_dollar("H100 SXM", 2.69), 1245, ABSOLUTE, 1},
		{"S-9", "5090 to A5000 by bandwidth (source: 3)",
		 1792.0 / gpu_find("RTX A5000")->bandwidth_gb_s, 2.33, ABSOLUTE, 0.01},
		{"S-9", "by compute", gpu_find("RTX 5090")->tflops / gpu_find("RTX A5000")->tflops,
		 1.89, ABSOLUTE, 0.01},
		{"S-9", "at the source's 3x the A5000 costs", cost_usd(0.16, MINUTES(60)), 0.16,
		 ABSOLUTE, 0.0005},
		{"S-10", "A5000 minutes", minutes_by_bandwidth("RTX A5000"), 46.67, RELATIVE, 0.01},
		{"S-10", "4090 minutes", minutes_by_bandwidth("RTX 4090"), 35.56, RELATIVE, 0.01},
		{"S-10", "5090 minutes", minutes_by_bandwidth("RTX 5090"), 20, RELATIVE, 0.01},
		{"S-10", "5090 without a cold start", usd_by_bandwidth("RTX 5090", 0.69, 0), 0.2300,
		 RELATIVE, 0.01},
		{"S-10", "the 5090 is right within 20 min", is_card(card_in_time(20.1), "RTX 5090"),
		 1, ABSOLUTE, 0},
		{"S-10", "and up to 35.6 min", is_card(card_in_time(35.5), "RTX 5090"), 1, ABSOLUTE,
		 0},
		{"S-10", "then the 4090", is_card(card_in_time(35.6), "RTX 4090"), 1, ABSOLUTE, 0},
		{"S-10", "then the A5000", is_card(card_in_time(47), "RTX A5000"), 1, ABSOLUTE, 0},
		{"S-10", "H100 minutes", minutes_by_bandwidth("H100 SXM"), 10.70, RELATIVE, 0.01},
		{"S-10", "A5000 without a cold start", usd_by_bandwidth("RTX A5000", 0.16, 0),
		 0.1244, RELATIVE, 0.01},
		{"S-10", "4090 without", usd_by_bandwidth("RTX 4090", 0.34, 0), 0.2015, RELATIVE,
		 0.01},
		{"S-10", "H100 without", usd_by_bandwidth("H100 SXM", 2.69, 0), 0.4796, RELATIVE,
		 0.01},
		{"S-10", "A5000, 90 s", usd_by_bandwidth("RTX A5000", 0.16, 1.5), 0.1284, RELATIVE,
		 0.01},
		{"S-10", "4090, 90 s", usd_by_bandwidth("RTX 4090", 0.34, 1.5), 0.2100, RELATIVE,
		 0.01},
		{"S-10", "5090, 90 s", usd_by_bandwidth("RTX 5090", 0.69, 1.5), 0.2473, RELATIVE,
		 0.01},
		{"S-10", "H100, 90 s", usd_by_bandwidth("H100 SXM", 2.69, 1.5), 0.5469, RELATIVE,
		 0.01},
		{"S-10", "A5000, 15 min", usd_by_bandwidth("RTX A5000", 0.16, 15), 0.1644, RELATIVE,
		 0.01},
		{"S-10", "4090, 15 min", usd_by_bandwidth("RTX 4090", 0.34, 15), 0.2865, RELATIVE,
		 0.01},
		{"S-10", "5090, 15 min", usd_by_bandwidth("RTX 5090", 0.69, 15), 0.4025, RELATIVE,
		 0.01},
		{"S-10", "H100, 15 min", usd_by_bandwidth("H100 SXM", 2.69, 15), 1.1521, RELATIVE,
		 0.01},
		{"S-12", "5090 TB/s", gpu_find("RTX 5090")->bandwidth_gb_s / 1000.0, 1.79, ABSOLUTE,
		 0.01},
		{"S-14", "twelve processes on one pod", with_workers(1) / with_workers(12), 12,
		 ABSOLUTE, 1e-9},
		{"S-15", "a CPU pod at .12 for 10 min of upload saves",
		 cost_usd(0.69, MINUTES(10)) - cost_usd(0.12, MINUTES(10)), 0.095, ABSOLUTE,
		 0.0005},
	};
	check_rows("S", rows, ARRAY_LEN(rows));
}

/* Whether a run whose GPU was so busy gets this advice. */
static double advises(int busy_p50, int busy_p95, const char *words)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const struct pod_row pod = {.state = POD_ROW_GONE,
				    .create_ms = 1,
				    .running_ms = 1,
				    .reached_ms = 1,
				    .connected_ms = 1,
				    .synced_ms = 1,
				    .ready_ms = 1,
				    .worked_ms = 90001,
				    .safe_ms = 90001,
				    .release_ms = 90001,
				    .released_ms = 90001,
				    .gone_ms = 90001,
				    .billed_ms = 90000,
				    .compute_ms = 90000,
				    .gpu_samples = 50,
				    .gpu_busy_p50 = busy_p50,
				    .gpu_busy_p95 = busy_p95};

	advice_add(&text, &(struct advice_of){NULL, "", &pod, 1, 100000});
	return strstr(str_text(&text), words) != NULL;
}

static void wide_or_tall(void **state)
{
	(void)state;
	const double q = 0.001261 / 0.000222, k = 4800.0 / 300;
	/* t(1) 2 s, r of M-1 */
	const struct speed batched = {.once_s = 2 / 1.0222356, .each_s = 2 - 2 / 1.0222356};
	const struct row rows[] = {
		{"W-1", "H200 to L4 by bandwidth (source: 15)",
		 (double)gpu_find("H200")->bandwidth_gb_s / gpu_find("L4")->bandwidth_gb_s, 16,
		 ABSOLUTE, 0},
		{"W-2", "ratio of prices", q, 5.68, RELATIVE, 0.01},
		{"W-2", "H200 cheaper per byte", k / q, 2.82, RELATIVE, 0.01},
		{"W-3", "work from which on tall wins, in cold starts", cost_tall_from_s(1, q, k),
		 7.256, RELATIVE, 0.01},
		{"W-3", "with a cold start of 10 s", cost_tall_from_s(10, q, k), 72.6, RELATIVE,
		 0.01},
		{"W-4", "billed", cost_wide_billed_s(1, 10, 2), 12, ABSOLUTE, 0},
		{"W-4", "used", cost_used(1, 10, 2), 0.167, ABSOLUTE, 0.001},
		{"W-5", "twenty pods, billed", cost_wide_billed_s(20, 10, 40), 240, ABSOLUTE, 0},
		{"W-5", "twenty pods, makespan", cost_wide_makespan_s(20, 10, 40), 12, ABSOLUTE, 0},
		{"W-6", "one pod", cost_wide_billed_s(1, 10, 40), 50, ABSOLUTE, 0},
		{"W-5", "used by one pod that renders all", cost_used(1, 10, 40), 0.8, ABSOLUTE,
		 1e-9},
		{"W-6", "twenty pods against it",
		 cost_wide_billed_s(20, 10, 40) / cost_wide_billed_s(1, 10, 40), 4.8, ABSOLUTE,
		 1e-9},
		{"W-7", "perfect batching",
		 cost_wide_billed_s(20, 10, 40) / cost_wide_billed_s(1, 10, 2), 20, ABSOLUTE, 1e-9},
		{"W-7", "t(20)", speed_batch_s(&batched, 1, 20), 2.827, RELATIVE, 0.01},
		{"W-7", "one batch of twenty", 10 + speed_batch_s(&batched, 1, 20), 12.83, RELATIVE,
		 0.01},
		{"W-7", "twenty pods against it", 240 / (10 + speed_batch_s(&batched, 1, 20)), 18.7,
		 RELATIVE, 0.01},
		{"W-8", "work for 70 %, cold start 10 s", cost_work_for_used_s(0.7, 10), 23.3,
		 ABSOLUTE, 0.1},
		{"W-8", "90 s", cost_work_for_used_s(0.7, 90), 210, ABSOLUTE, 0.1},
		{"W-8", "15 min", cost_work_for_used_s(0.7, 900), MINUTES(35), ABSOLUTE, 0.1},
		{"W-8", "items of 2 s for that", ceil(cost_work_for_used_s(0.7, 10) / 2), 12,
		 ABSOLUTE, 0},
		{"W-9", "at 9 % load: smaller or fewer",
		 advises(5, 9, "a smaller card, larger batches or fewer pods"), 1, ABSOLUTE, 0},
		{"W-9", "at 10 %: not", advises(8, 10, "a smaller card"), 0, ABSOLUTE, 0},
		{"W-9", "at 99 %: taller",
		 advises(99, 100, "a card with more bandwidth or compute"), 1, ABSOLUTE, 0},
		{"W-9", "at 98 %: not", advises(98, 100, "a card with more"), 0, ABSOLUTE, 0},
		{"W-11", "L4 on Modal, GB/s per $/h, the lowest",
		 bandwidth_per_dollar("L4", prior_list_price("L4", MARKET_MODAL, NULL)), 375,
		 ABSOLUTE, 1},
		{"W-12", "H200 GB", gpu_find("H200")->vram_gb, 141, ABSOLUTE, 0},
	};
	check_rows("W", rows, ARRAY_LEN(rows));
}

/* A model of 85 GiB on pods that hold 24 GB each: no number of them holds it, since a model is
 * never split over pods. */
static double pods_for_a_large_model(void)
{
	const struct vram_need need = {85, 0};
	const struct plan_machine m = {.price_h = 1,
				       .workers = 1,
				       .batch_max = vram_batch_max(&need, 24),
				       .speed.each_s = 1};
	double lengths[] = {1, 1, 1, 1};
	struct plan_work w;
	struct plan p;

	plan_work_init(&w, lengths, ARRAY_LEN(lengths), 1, 0);
	return plan_choose(&p, &w, &m, 1, &(struct plan_wish){0}) == PLAN_NOTHING_FITS ? 0 : p.pods;
}

static void batching(void **state)
{
	(void)state;
	const double r = speed_ratio_of_gain(64, 27);
	const struct speed s = {.once_s = 1, .each_s = r};
	const struct row rows[] = {
		{"M-1", "r of 27x at 64", r, 0.0222356, RELATIVE, 0.005},
		{"M-1", "S(2)", speed_gain(&s, 1, 2), 1.96, RELATIVE, 0.005},
		{"M-1", "S(4)", speed_gain(&s, 1, 4), 3.75, RELATIVE, 0.005},
		{"M-1", "S(8)", speed_gain(&s, 1, 8), 6.94, RELATIVE, 0.005},
		{"M-1", "S(16)", speed_gain(&s, 1, 16), 12.06, RELATIVE, 0.005},
		{"M-1", "S(32)", speed_gain(&s, 1, 32), 19.11, RELATIVE, 0.005},
		{"M-1", "S(64)", speed_gain(&s, 1, 64), 27.0, RELATIVE, 0.005},
		{"M-1", "S(128)", speed_gain(&s, 1, 128), 34.0, RELATIVE, 0.005},
		{"M-1", "limit", speed_gain(&s, 1, 1e9), 45.97, RELATIVE, 0.005},
		{"M-1", "t(64)/t(1)", speed_batch_s(&s, 1, 64) / speed_batch_s(&s, 1, 1), 2.370,
		 RELATIVE, 0.005},
		{"M-2", "cost at a duty of 40 %", demand_usd_per_million(1, 1e6, 0.4), 2.5,
		 ABSOLUTE, 1e-9},
		{"M-6", "138 of the A100's TFLOPS", 138 / gpu_find("A100")->tflops, 0.442, ABSOLUTE,
		 0.005},
		{"M-6", "163", 163 / gpu_find("A100")->tflops, 0.522, ABSOLUTE, 0.005},
		{"M-7", "8 to 3,072 GPUs", 3072 / 8.0, 384, ABSOLUTE, 0},
		{"M-9", "pods for a model larger than any card", pods_for_a_large_model(), 0,
		 ABSOLUTE, 0},
		{"M-10", "cost an item at half the use",
		 demand_usd_per_million(1, 1e6, 0.3) / demand_usd_per_million(1, 1e6, 0.6), 2,
		 ABSOLUTE, 1e-9},
		{"M-11", "what N more pods cost",
		 cost_usd(0.69, cost_wide_billed_s(8, 90, 1200) - cost_wide_billed_s(4, 90, 1200)),
		 cost_usd(0.69, 4 * 90), ABSOLUTE, 1e-9},
	};
	check_rows("M", rows, ARRAY_LEN(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_render),
		cmocka_unit_test(wide_or_tall),
		cmocka_unit_test(batching),
	};

	return cmocka_run_group_tests(tests, NULL, print_count);
}
