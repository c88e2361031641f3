/* test_economics.c - the planner's arithmetic against worked cases from published figures: one row
 * per case.
 *
 * S: a 300-question render on one card. W: wide or tall. M: batching. F: Poisson demand. P: memory,
 * spot, owning. BE: against an API. UC: the U-curve. WT: width by deadline. BG: by budget. Where a
 * source contradicts itself, the row asserts our arithmetic and its text quotes the source. Cases
 * that only cite a measurement, without inputs, are left out; so is S-16 (names of another tool's
 * flags). Prices are in dollars an hour. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/gpus.h"
#include "base/mem.h"
#include "plan/choose.h"
#include "plan/cost.h"
#include "plan/demand.h"
#include "plan/speed.h"
#include "plan/vram.h"
#include "cmd/advice.h"
#include "cmd/prior.h"
#include "formulas.h"

enum tolerance { ABSOLUTE, RELATIVE };

struct row {
	const char *id, *what;
	double got, expected;
	enum tolerance kind;
	double tolerance;
};

#define MINUTES(n) ((n)*60.0)

static size_t rows_checked;

static void check_rows(const char *part, const struct row *rows, size_t count)
{
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		const struct row *r = &rows[i];
		double room = r->kind == ABSOLUTE ? r->tolerance : fabs(r->expected) * r->tolerance;
		if (fabs(r->got - r->expected) <= room + 1e-12)
			continue;
		print_error("%s %s: got %.6g, expected %.6g\n", r->id, r->what, r->got,
			    r->expected);
		wrong++;
	}
	print_message("%s: %zu cases, %zu wrong\n", part, count, wrong);
	rows_checked += count;
	assert_int_equal(wrong, 0);
}

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
		.goal = PLAN_COST, .pods = 1, .deadline_s = MINUTES(deadline_min)};
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

static double is_card(const char *got, const char *wanted)
{
	return !strcmp(got, wanted);
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
	plan_compute(&p, &w, &m, 0, 1, 1, &(struct plan_wish){0});
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

	advice_add(&text, &pod, 1, NULL, 100000);
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

static void demand(void **state)
{
	(void)state;
	static const struct {
		int pods;
		double waits, mean, over10, p95, p99;
	} erlang[] = {
		{11, .6821, 6.821, .2509, 26.1, 42.2}, {12, .4494, 2.247, .0608, 11.0, 19.0},
		{13, .2853, .951, .0142, 5.80, 11.2},  {14, .1741, .435, .0032, 3.12, 7.14},
		{15, .1020, .204, .0007, 1.43, 4.65},  {16, .0573, .096, .0001, .23, 2.91},
		{17, .0309, .0442, .0000, 0, 1.61},    {18, .0159, .0199, .0000, 0, .58},
	};
	struct row rows[160];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(erlang); i++) {
		int pods = erlang[i].pods;
		rows[n++] = (struct row){"F-3",           "P(wait)", demand_waits(pods, 10),
					 erlang[i].waits, RELATIVE,  0.01};
		rows[n++] =
			(struct row){"F-3",          "mean wait", demand_mean_wait_s(pods, 10, 10),
				     erlang[i].mean, RELATIVE,    0.01};
		rows[n++] = (struct row){"F-3",
					 "P(wait > 10 s)",
					 demand_waits_longer(pods, 10, 10, 10),
					 erlang[i].over10,
					 ABSOLUTE,
					 0.0002};
		rows[n++] = (struct row){
			"F-3",         "p95",    demand_wait_quantile_s(pods, 10, 10, 0.95),
			erlang[i].p95, ABSOLUTE, 0.06};
		rows[n++] = (struct row){
			"F-3",         "p99",    demand_wait_quantile_s(pods, 10, 10, 0.99),
			erlang[i].p99, ABSOLUTE, 0.06};
	}
	const struct row more[] = {
		{"F-1", "1 request a second, 10 s each, in erlang: one pod is not enough for",
		 demand_waits(10, 1.0 * 10), 1, ABSOLUTE, 0},
		{"F-2", "12 pods run at (source: 75 %)", 10 / 12.0, 0.833, ABSOLUTE, 0.001},
		{"F-2", "13", 10 / 13.0, 0.769, ABSOLUTE, 0.001},
		{"F-2", "14", 10 / 14.0, 0.714, ABSOLUTE, 0.001},
		{"F-2", "15 (source: 60 %)", 10 / 15.0, 0.667, ABSOLUTE, 0.001},
		{"F-2", "pods at 75 % (source: 12)", ceil(10 / 0.75), 14, ABSOLUTE, 0},
		{"F-2", "pods at 60 % (source: 15)", floor(10 / 0.60), 16, ABSOLUTE, 0},
		{"F-5", "mean use", 10 / 21.0, 0.476, ABSOLUTE, 0.001},
		{"F-7", "fewer pods in one pool", 1 - 61 / 75.0, 0.19, ABSOLUTE, 0.005},
		{"F-7", "its use", 50 / 61.0, 0.82, ABSOLUTE, 0.001},
		{"F-7", "use apart", 10 / 15.0, 0.67, ABSOLUTE, 0.005},
		{"F-8", "hours of an H100 in $30",
		 30 / prior_list_price("H100 SXM", MARKET_MODAL, NULL), 7.6, ABSOLUTE, 0.05},
		{"F-8", "of a T4", 30 / prior_list_price("T4", MARKET_MODAL, NULL), 50.8, ABSOLUTE,
		 0.05},
		{"F-5", "peak of 15 erlang", demand_pods(15, 0.1025), 21, ABSOLUTE, 0},
		{"F-5", "its P(wait)", demand_waits(21, 15), 0.102, ABSOLUTE, 0.001},
		{"F-7", "one pool of 50 erlang", demand_pods(50, 0.1025), 61, ABSOLUTE, 0},
		{"F-7", "its P(wait)", demand_waits(61, 50), 0.090, ABSOLUTE, 0.001},
		{"F-7", "with one pod less", demand_waits(60, 50), 0.117, ABSOLUTE, 0.001},
		{"F-7", "five users apart", 5 * demand_pods(10, 0.1025), 75, ABSOLUTE, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		rows[n++] = more[i];
	check_rows("F", rows, n);
}

static void sizes(void **state)
{
	(void)state;
	const struct demand_size s = demand_size(15, 10, 10), over = demand_size(10, 10, 10);
	const struct row rows[] = {
		{"F-2", "use of 15 pods", s.used, 0.667, ABSOLUTE, 0.001},
		{"F-3", "P(wait) of 15", s.waits, 0.1020, RELATIVE, 0.01},
		{"F-3", "mean wait", s.mean_s, 0.204, RELATIVE, 0.01},
		{"F-3", "half wait no longer than", s.p50_s, 0, ABSOLUTE, 0},
		{"F-3", "p95", s.p95_s, 1.43, ABSOLUTE, 0.01},
		{"F-3", "p99", s.p99_s, 4.65, ABSOLUTE, 0.01},
		{"F-1", "10 pods are used to", over.used, 1, ABSOLUTE, 0},
		{"F-1", "and all wait", over.waits, 1, ABSOLUTE, 0},
		{"F-3", "square-root rule for 10", demand_pods_rule(10), 15, ABSOLUTE, 0},
		{"F-5", "for 15", demand_pods_rule(15), 21, ABSOLUTE, 0},
		{"F-7", "for 50", demand_pods_rule(50), 61, ABSOLUTE, 0},
		{"F-3", "p95 within 2 s", demand_pods_for_wait(10, 10, 0.95, 2), 15, ABSOLUTE, 0},
		{"F-3", "p95 within 4 s", demand_pods_for_wait(10, 10, 0.95, 4), 14, ABSOLUTE, 0},
		{"F-3", "p99 within 1 s", demand_pods_for_wait(10, 10, 0.99, 1), 18, ABSOLUTE, 0},
		{"F-3", "p95 without a wait", demand_pods_for_wait(10, 10, 0.95, 0), 17, ABSOLUTE,
		 0},
		{"F-3", "mean within 1 s", demand_pods_for_mean(10, 10, 1), 13, ABSOLUTE, 0},
		{"F-3", "mean within 0.9 s", demand_pods_for_mean(10, 10, 0.9), 14, ABSOLUTE, 0},
		{"P-11", "10,000 requests an hour of 100 ms (source: several GPUs)",
		 demand_pods_for_mean(10000 * 0.1 / 3600, 0.1, 0.1), 1, ABSOLUTE, 0},
	};
	check_rows("F", rows, ARRAY_LEN(rows));
	assert_true(isinf(over.mean_s) && isinf(over.p95_s));
}

static void rates_and_goals(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double per_s; /* 0: refused */
	} rates[] = {{"1/s", 1},       {"30/min", 0.5}, {"30/m", 0.5}, {"7200/h", 2},
		     {"43200/d", 0.5}, {"0.5/s", 0.5},  {"1", 0},      {"", 0},
		     {"/s", 0},        {"0/s", 0},      {"-1/s", 0},   {"1e3/s", 0},
		     {"1/y", 0},       {"1/s/s", 0},    {"inf/s", 0},  {"1.2.3/s", 0}};
	static const struct {
		const char *text;
		double share, wait_s; /* wait_s -1: refused */
	} goals[] = {{"p95=2s", 0.95, 2}, {"p99.9=500ms", 0.999, 0.5},
		     {"p50=0s", 0.5, 0},  {"mean=1m", 0, 60},
		     {"mean=0s", 0, -1},  {"p100=1s", 0, -1},
		     {"p0=1s", 0, -1},    {"95=1s", 0, -1},
		     {"p95", 0, -1},      {"p95=soon", 0, -1},
		     {"p=1s", 0, -1},     {"", 0, -1}};

	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		double per_s = 0;
		bool ok = demand_read_rate(rates[i].text, &per_s);
		if (ok != (rates[i].per_s > 0) || fabs(per_s - rates[i].per_s) > 1e-12)
			fail_msg("rate \"%s\": %s, %g a second", rates[i].text,
				 ok ? "read" : "refused", per_s);
	}
	for (size_t i = 0; i < ARRAY_LEN(goals); i++) {
		struct demand_goal g = {.wait_s = -1};
		bool ok = demand_read_goal(goals[i].text, &g);
		if (ok != (goals[i].wait_s >= 0) || fabs(g.wait_s - goals[i].wait_s) > 1e-12 ||
		    (ok && fabs(g.share - goals[i].share) > 1e-12))
			fail_msg("goal \"%s\": %s, %g of them within %g s", goals[i].text,
				 ok ? "read" : "refused", g.share, g.wait_s);
	}
}

static double fits(const char *gpu, double need_gib)
{
	return vram_fits(need_gib, gpu_find(gpu)->vram_gb);
}

static double model_gib(const char *precision)
{
	return vram_model_gib(7, vram_precision_bytes(precision));
}

static double kept_saving(double discount, double interruptions, double lost_min, double cold_s)
{
	double work_s = 20 * 3600.0;

	return 1 - (1 - discount) * (1 + (lost_min * 60 + interruptions * cold_s) / work_s);
}

static void memory_and_owning(void **state)
{
	(void)state;
	const double gib = 1 << 30, own_usd = 150000 / 8.0 + 3 * 2000;
	const struct row rows[] = {
		{"P-1", "7B fp16 weights, GB", 7 * vram_precision_bytes("fp16"), 14, ABSOLUTE, 0},
		{"P-1", "in GiB", vram_model_gib(7, 2) / 1.3, 13.04, ABSOLUTE, 0.005},
		{"P-2", "in GiB", vram_model_gib(7, 0.5) / 1.3, 3.26, ABSOLUTE, 0.005},
		{"P-2", "7B int4 weights, GB", 7 * vram_precision_bytes("int4"), 3.5, ABSOLUTE, 0},
		{"P-3", "7B fp16, GiB (source: roughly 18 GB)", model_gib("fp16"), 16.950, ABSOLUTE,
		 0.001},
		{"P-4", "int4 (source: 4.5)", model_gib("int4"), 4.2375, ABSOLUTE, 0.001},
		{"P-5", "int8", model_gib("int8"), 8.475, ABSOLUTE, 0.001},
		{"P-5", "fp32", model_gib("fp32"), 33.900, ABSOLUTE, 0.001},
		{"P-6", "training a 7B, GB before activations", 14 + 14 + 56, 84, ABSOLUTE, 0},
		{"P-7", "the same by the source's code, GiB (source: 105 GB)",
		 3 * 14e9 / gib + 56e9 / gib, 91.270, ABSOLUTE, 0.001},
		{"P-8", "105 GB on 4 cards", 105 / 4.0, 26.25, ABSOLUTE, 0},
		{"P-9", "int4 fits an L4", fits("L4", model_gib("int4")), 1, ABSOLUTE, 0},
		{"P-9", "fp16 fits an L4 (source: needs an A100)", fits("L4", model_gib("fp16")), 1,
		 ABSOLUTE, 0},
		{"P-9", "fp16 fits a T4", fits("T4", model_gib("fp16")), 0, ABSOLUTE, 0},
		{"P-10", "100M parameters in fp32, MB", 100 * vram_precision_bytes("fp32"), 400,
		 ABSOLUTE, 0},
		{"P-11", "10,000 requests an hour of 100 ms, erlang", 10000 * 0.1 / 3600, 0.278,
		 ABSOLUTE, 0.001},
		{"P-12", "A100, dense FP16", gpu_find("A100")->tflops, 312, ABSOLUTE, 0},
		{"P-12", "H100, dense FP16", gpu_find("H100")->tflops, 989, ABSOLUTE, 0},
		{"P-12", "A100, dense TF32: half (source: 312)", gpu_find("A100")->tflops / 2, 156,
		 ABSOLUTE, 0},
		{"P-12", "H100, dense TF32 (source: 989)", gpu_find("H100")->tflops / 2, 494.5,
		 ABSOLUTE, 0},
		{"P-13", "H100 to A100, bandwidth (source: 3)",
		 (double)gpu_find("H100")->bandwidth_gb_s / gpu_find("A100")->bandwidth_gb_s, 1.64,
		 ABSOLUTE, 0.01},
		{"P-13", "compute", gpu_find("H100")->tflops / gpu_find("A100")->tflops, 3.17,
		 ABSOLUTE, 0.01},
		{"P-14", "T4 GB", gpu_find("T4")->vram_gb, 16, ABSOLUTE, 0},
		{"P-14", "T4 TFLOPS", gpu_find("T4")->tflops, 65, ABSOLUTE, 0},
		{"P-14", "L4 TFLOPS", gpu_find("L4")->tflops, 121, ABSOLUTE, 0},
		{"P-14", "A100 GB/s", gpu_find("A100")->bandwidth_gb_s, 2039, ABSOLUTE, 0},
		{"P-14", "H100 GB/s", gpu_find("H100")->bandwidth_gb_s, 3350, ABSOLUTE, 0},
		{"P-14", "L4 GB", gpu_find("L4")->vram_gb, 24, ABSOLUTE, 0},
		{"P-14", "A100 GB", gpu_find("A100")->vram_gb, 80, ABSOLUTE, 0},
		{"P-14", "H100 GB", gpu_find("H100")->vram_gb, 80, ABSOLUTE, 0},
		{"P-15", "cheapest A100 (source: 3)",
		 prior_list_price("A100 80GB PCIe", MARKET_COMMUNITY, NULL), 1.19, ABSOLUTE, 0},
		{"P-15", "dearest A100 (source: 5)",
		 prior_list_price("A100 80GB SXM", MARKET_MODAL, NULL), 2.50, ABSOLUTE, 0},
		{"P-15", "cheapest H100 (source: 8)",
		 prior_list_price("H100 PCIe", MARKET_COMMUNITY, NULL), 1.99, ABSOLUTE, 0},
		{"P-15", "dearest H100 (source: 12)",
		 prior_list_price("H100 SXM", MARKET_SECURE, NULL), 3.99, ABSOLUTE, 0},
		{"P-16", "900 GB at 100 GB/s", 900 / 100.0, 9, ABSOLUTE, 0},
		{"P-16", "at 50 GB/s", 900 / 50.0, 18, ABSOLUTE, 0},
		{"P-16", "at 12.5 GB/s", 900 / 12.5, 72, ABSOLUTE, 0},
		{"P-17", "6x on 8 GPUs", 6 / 8.0, 0.75, ABSOLUTE, 0},
		{"P-17", "its serial share by Amdahl", (8 / 6.0 - 1) / 7, 0.0476, ABSOLUTE, 0.0001},
		{"P-19", "two A10G for 20 h at 1.50", cost_usd(1.50, 2 * 20 * 3600.0), 60, ABSOLUTE,
		 1e-9},
		{"P-20", "$13,000 a week, an hour", 13000 / 168.0, 77.38, ABSOLUTE, 0.01},
		{"P-20", "a GPU of one node with eight", 13000 / 168.0 / 8, 9.67, ABSOLUTE, 0.01},
		{"P-20", "a GPU of eight nodes", 13000 / 168.0 / 64, 1.21, ABSOLUTE, 0.01},
		{"P-21", "paid at -60 %", 1 - 0.6, 0.40, ABSOLUTE, 1e-9},
		{"P-21", "at -90 %", 1 - 0.9, 0.10, ABSOLUTE, 1e-9},
		{"P-22", "overhead of 20 min in 20 h", 20 / 1200.0, 0.0167, ABSOLUTE, 0.0001},
		{"P-22", "-70 %, 2.5 cold starts of 90 s", kept_saving(0.7, 2.5, 20, 90), 0.694,
		 ABSOLUTE, 0.001},
		{"P-22", "-90 %, 2.5 of 90 s", kept_saving(0.9, 2.5, 20, 90), 0.898, ABSOLUTE,
		 0.001},
		{"P-22", "-70 %, 2.5 of 15 min", kept_saving(0.7, 2.5, 20, 900), 0.686, ABSOLUTE,
		 0.001},
		{"P-22", "-90 %, 2.5 of 15 min", kept_saving(0.9, 2.5, 20, 900), 0.895, ABSOLUTE,
		 0.001},
		{"P-24", "hours lost of 28 without a checkpoint, one interruption",
		 (cost_spot_billed_s(28, 0, 0, 28, 28) - 28), 14, ABSOLUTE, 1e-9},
		{"P-22", "saving, spot at -60 %", kept_saving(0.6, 0, 20, 0), 0.593, ABSOLUTE,
		 0.001},
		{"P-22", "-70 %", kept_saving(0.7, 0, 20, 0), 0.695, ABSOLUTE, 0.001},
		{"P-22", "-90 %", kept_saving(0.9, 0, 20, 0), 0.898, ABSOLUTE, 0.001},
		{"P-22", "-60 %, 2.5 cold starts of 90 s", kept_saving(0.6, 2.5, 20, 90), 0.592,
		 ABSOLUTE, 0.001},
		{"P-22", "-60 %, 2.5 of 15 min", kept_saving(0.6, 2.5, 20, 900), 0.581, ABSOLUTE,
		 0.001},
		{"P-25", "a reservation at -30 % pays from", demand_reserved_duty(0.3), 0.7,
		 ABSOLUTE, 1e-9},
		{"P-25", "-60 %", demand_reserved_duty(0.6), 0.4, ABSOLUTE, 1e-9},
		{"P-28", "a card of one's own, three years (source: about 25,000)",
		 150000 / 8.0 + 3 * 2000, 24750, ABSOLUTE, 0},
		{"P-26", "18 h a day for a year of weeks (source: 6,500)", 18 * 7 * 52, 6552,
		 ABSOLUTE, 0},
		{"P-26", "of days", 18 * 365, 6570, ABSOLUTE, 0},
		{"P-27", "6,500 h at $4", cost_usd(4, 6500 * 3600.0), 26000, ABSOLUTE, 1e-6},
		{"P-27", "three years", 3 * cost_usd(4, 6500 * 3600.0), 78000, ABSOLUTE, 1e-6},
		{"P-29", "owning, a year (source: 21,000)", own_usd / 3, 8250, RELATIVE, 0.01},
		{"P-29", "the first year's cash", 150000 / 8.0 + 2000, 20750, ABSOLUTE, 0},
		{"P-30", "renting against owning", 78000 / own_usd, 3.15, RELATIVE, 0.01},
		{"P-30", "saved (source: 60 %)", 1 - own_usd / 78000, 0.68, ABSOLUTE, 0.005},
		{"P-31", "own from, at 4.00 (source: 40-50 %)", demand_own_duty(18750, 2000, 3, 4),
		 0.235, ABSOLUTE, 0.005},
		{"P-31", "at 2.50", demand_own_duty(18750, 2000, 3, 2.5), 0.377, ABSOLUTE, 0.005},
		{"P-31", "at 1.79", demand_own_duty(18750, 2000, 3, 1.79), 0.526, ABSOLUTE, 0.005},
		{"P-31", "at 1.39", demand_own_duty(18750, 2000, 3, 1.39), 0.678, ABSOLUTE, 0.005},
		{"P-31", "at 1.19", demand_own_duty(18750, 2000, 3, 1.19), 0.791, ABSOLUTE, 0.005},
		{"P-32", "four pods forgotten for 90 h at 1.79", cost_usd(1.79, 4 * 90 * 3600.0),
		 644.4, ABSOLUTE, 0.5},
		{"P-32", "$2,300 for four (source)", 2300 / 4.0, 575, ABSOLUTE, 0},
		{"P-32", "hours of that at 5.00", 575 / 5.0, 115, ABSOLUTE, 0},
		{"P-32", "at 3.00", 575 / 3.0, 192, ABSOLUTE, 0.5},
		{"P-32", "an hour, over 90 h", 575 / 90.0, 6.39, ABSOLUTE, 0.005},
		{"P-33", "egress of 10 GB at .09", 10 * 0.09, 0.90, ABSOLUTE, 1e-9},
		{"P-36", "2.0004 s, whole seconds", cost_quantum_s(2.0004, 1), 3, ABSOLUTE, 0},
	};
	check_rows("P", rows, ARRAY_LEN(rows));
}

static void against_an_api(void **state)
{
	(void)state;
	static const struct {
		const char *id;
		double price_h, chars_h, usd, at4, at15, at30, at100;
	} own[] = {
		{"BE-1", .22, 1480800, .149, .037, .0099, .005, .00149},
		{"BE-2", .43, 1480800, .290, .073, .019, .0097, .0029},
		{"BE-3", .69, 1056100, .653, .163, .0436, .0218, .0065},
		{"BE-4", .69, 1662100, .415, .104, .0277, .0138, .00415},
		{"BE-5", .22, 57840, 3.80, .95, .2536, .127, .038},
		{"BE-6", .59, 2160000, .273, .068, .0182, .0091, .00273},
	};
	struct row rows[64];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		double p = own[i].price_h, c = own[i].chars_h;
		rows[n++] = (struct row){own[i].id,
					 "$ a million characters",
					 demand_usd_per_million(p, c, 1),
					 own[i].usd,
					 RELATIVE,
					 0.01};
		rows[n++] = (struct row){own[i].id,  "duty against $4", demand_api_duty(p, c, 4),
					 own[i].at4, RELATIVE,          0.02};
		rows[n++] = (struct row){own[i].id,   "against $15", demand_api_duty(p, c, 15),
					 own[i].at15, RELATIVE,      0.02};
		rows[n++] = (struct row){own[i].id,   "against $30", demand_api_duty(p, c, 30),
					 own[i].at30, RELATIVE,      0.03};
		rows[n++] = (struct row){own[i].id,    "against $100", demand_api_duty(p, c, 100),
					 own[i].at100, RELATIVE,       0.02};
	}
	/* 38,460 characters in 93.5 s, behind a cold start of 15 min */
	double job_usd = cost_usd(.22, 900 + 93.5);
	rows[n++] =
		(struct row){"BE-1", "a job behind a cold start", job_usd, .0607, RELATIVE, 0.01};
	rows[n++] = (struct row){
		"BE-1", "a million characters so", job_usd / 38460 * 1e6, 1.58, RELATIVE, 0.01};
	rows[n++] = (struct row){"BE-5",
				 "what batching is worth",
				 demand_usd_per_million(.22, 57840, 1) /
					 demand_usd_per_million(.22, 1480800, 1),
				 25,
				 ABSOLUTE,
				 1};
	check_rows("BE", rows, n);
}

/* ---- golden choices ---- */

/* Modal's list prices of September 2026, an hour. */
static const struct {
	const char *gpu;
	double price_s;
	double bandwidth; /* 0: the catalog's */
} modal[] = {{"T4", .000164, 0},
	     {"L4", .000222, 0},
	     {"A10", .000306, 0},
	     {"L40S", .000542, 0},
	     {"A100 40GB", .000583, 0},
	     {"A100 80GB SXM", .000694, 0},
	     {"RTX PRO 6000", .000842, 1792},
	     {"H100 SXM", .001097, 0},
	     {"H200 SXM", .001261, 0},
	     {"B200", .001736, 0}};

enum { CARDS = ARRAY_LEN(modal) };

/* Each item moves 600 GB of memory, plus a host floor that no card shortens; cold start 10 s,
 * batch 1. */
static void modal_machines(struct plan_machine machines[CARDS], double floor_s)
{
	for (int i = 0; i < CARDS; i++) {
		double bandwidth = modal[i].bandwidth > 0 ? modal[i].bandwidth
							  : gpu_find(modal[i].gpu)->bandwidth_gb_s;
		machines[i] = (struct plan_machine){
			.id = i,
			.price_h = modal[i].price_s * 3600,
			.cold.phase[COLD_BOOT] = {10, 10, 3},
			.speed = {.once_s = floor_s, .each_s = 600 / bandwidth},
			.workers = 1,
			.batch_max = 1,
		};
	}
}

static struct plan_work even_work(size_t count, int batch_max)
{
	struct plan_work w;
	double *lengths = xcalloc(count, sizeof(*lengths));

	for (size_t i = 0; i < count; i++)
		lengths[i] = 1;
	plan_work_init(&w, lengths, count, batch_max, 0);
	free(lengths);
	return w;
}

static const char *cheapest_card(size_t items, double floor_s)
{
	struct plan_machine machines[CARDS];
	struct plan_work w = even_work(items, 1);
	const struct plan_wish wish = {.goal = PLAN_COST, .pods = 1};
	struct plan best;

	modal_machines(machines, floor_s);
	assert_int_equal(plan_choose(&best, &w, machines, CARDS, &wish), PLAN_FOUND);
	return modal[best.machine].gpu;
}

static void the_u_curve(void **state)
{
	(void)state;
	static const struct {
		size_t items;
		double usd_million[CARDS]; /* $/item x 1e6, in the order of `modal` */
	} table[] = {
		{1, {1948, 2664, 3366, 5796, 6055, 7144, 8702, 11166, 12768, 17490}},
		{10, {472, 666, 612, 918, 808, 898, 1124, 1293, 1419, 1866}},
		{50, {340, 488, 367, 485, 342, 343, 450, 416, 410, 477}},
		{100, {324, 466, 337, 431, 283, 274, 366, 306, 284, 304}},
		{1000, {309, 446, 309, 382, 231, 211, 290, 207, 170, 148}},
	};
	static const struct {
		size_t from, to;
		const char *gpu;
	} bottoms[] = {{1, 50, "T4"},
		       {51, 53, "A100 40GB"},
		       {54, 121, "A100 80GB SXM"},
		       {122, 173, "H200 SXM"},
		       {174, 1000, "B200"}};
	struct plan_machine machines[CARDS];
	const struct plan_wish wish = {.goal = PLAN_COST, .pods = 1};
	struct row rows[ARRAY_LEN(table) * CARDS + 2 * ARRAY_LEN(bottoms) + 1];
	size_t n = 0;

	modal_machines(machines, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct plan_work w = even_work(table[i].items, 1);
		for (int card = 0; card < CARDS; card++) {
			struct plan p;
			plan_compute(&p, &w, &machines[card], card, 1, 1, &wish);
			rows[n++] = (struct row){"UC-1",
						 modal[card].gpu,
						 p.cost_usd / (double)table[i].items * 1e6,
						 table[i].usd_million[card],
						 RELATIVE,
						 0.01};
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(bottoms); i++) {
		rows[n++] = (struct row){"UC-1",
					 "bottom from",
					 is_card(cheapest_card(bottoms[i].from, 0), bottoms[i].gpu),
					 1,
					 ABSOLUTE,
					 0};
		rows[n++] = (struct row){"UC-1",
					 "bottom up to",
					 is_card(cheapest_card(bottoms[i].to, 0), bottoms[i].gpu),
					 1,
					 ABSOLUTE,
					 0};
	}
	rows[n++] = (struct row){"P-35",
				 "one item, dearest against cheapest (source: 10x)",
				 table[0].usd_million[CARDS - 1] / table[0].usd_million[0],
				 9.0,
				 ABSOLUTE,
				 0.05};
	check_rows("UC-1", rows, n);
}

static void a_host_floor_makes_the_cheapest_card_win(void **state)
{
	(void)state;
	static const struct {
		int card;
		double usd_million; /* of 1,000 items */
	} table[] = {{0, 350}, {4, 377}, {2, 386}, {8, 485}, {9, 582}};
	struct plan_machine machines[CARDS];
	struct plan_work w = even_work(1000, 1);
	struct row rows[ARRAY_LEN(table) + 8];
	size_t n = 0;

	modal_machines(machines, 0.25);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct plan p;
		plan_compute(&p, &w, &machines[table[i].card], table[i].card, 1, 1,
			     &(struct plan_wish){.pods = 1});
		rows[n++] = (struct row){"UC-2",
					 modal[table[i].card].gpu,
					 p.cost_usd / 1000 * 1e6,
					 table[i].usd_million,
					 RELATIVE,
					 0.01};
	}
	for (size_t items = 1; items <= 1000; items = items * 3 + 1)
		rows[n++] = (struct row){"UC-2",
					 "the T4 is the bottom",
					 is_card(cheapest_card(items, 0.25), "T4"),
					 1,
					 ABSOLUTE,
					 0};
	rows[n++] = (struct row){"UC-2", "at 1,000 items", is_card(cheapest_card(1000, 0.25), "T4"),
				 1,      ABSOLUTE,         0};
	check_rows("UC-2", rows, n);
}

static void pods_for_a_deadline(void **state)
{
	(void)state;
	static const struct {
		double deadline_min, cold_min;
		int pods; /* 0: none meets it */
		double usd;
	} cases[] = {
		{5, 1.5, 6, .3335},  {10, 1.5, 3, .2818}, {16, 1.5, 2, .2645}, {20, 1.5, 2, .2645},
		{30, 1.5, 1, .2473}, {40, 1.5, 1, .2473}, {5, 15, 0, 0},       {10, 15, 0, 0},
		{16, 15, 20, 3.68},  {20, 15, 4, .92},    {30, 15, 2, .575},   {40, 15, 1, .4025},
	};

	struct row rows[ARRAY_LEN(cases) * 3];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		/* 20 minutes in seconds, so that any width divides it well */
		struct plan_work w = even_work(1200, 1);
		struct plan_machine m = {
			.price_h = 0.69, .workers = 1, .batch_max = 1, .speed.each_s = 1};
		const struct plan_wish wish = {.goal = PLAN_COST,
					       .deadline_s = MINUTES(cases[i].deadline_min)};
		struct plan p;
		m.cold.phase[COLD_BOOT] = (struct cold_time){MINUTES(cases[i].cold_min),
							     MINUTES(cases[i].cold_min), 3};
		enum plan_verdict verdict = plan_choose(&p, &w, &m, 1, &wish);
		bool found = verdict == PLAN_FOUND;
		rows[n++] = (struct row){"WT-1",
					 "pods by the formula",
					 cost_pods_for_deadline(wish.deadline_s,
								MINUTES(cases[i].cold_min),
								MINUTES(20)),
					 cases[i].pods,
					 ABSOLUTE,
					 0};
		rows[n++] = (struct row){
			"WT-1", "pods that are chosen", found ? p.pods : 0, cases[i].pods, ABSOLUTE,
			0};
		rows[n++] = (struct row){"WT-1",       "what they cost", found ? p.cost_usd : 0,
					 cases[i].usd, ABSOLUTE,         0.0005};
	}
	check_rows("WT-1", rows, n);
}

static void twenty_lines(void **state)
{
	(void)state;
	static const struct {
		int pods, batch;
		double billed_s, makespan_s;
	} cases[] = {{20, 1, 240, 12},
		     {4, 1, 80, 20},
		     {2, 1, 60, 30},
		     {1, 1, 50, 50},
		     {1, 20, 12.83, 12.83}};
	struct plan_work w = even_work(20, 20);
	struct plan_machine m = {
		.price_h = 1, .workers = 1, .batch_max = 20, .cold.phase[COLD_BOOT] = {10, 10, 3}};
	const struct plan_wish wish = {0};
	struct row rows[ARRAY_LEN(cases) * 2];
	size_t n = 0;

	m.speed = (struct speed){.once_s = 2 / 1.0222356, .each_s = 2 - 2 / 1.0222356};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan p;
		plan_compute(&p, &w, &m, 0, cases[i].pods, cases[i].batch, &wish);
		rows[n++] = (struct row){"WT-2",   "billed", p.billed_s, cases[i].billed_s,
					 ABSOLUTE, 0.01};
		rows[n++] = (struct row){
			"WT-2", "makespan", p.makespan_p50_s, cases[i].makespan_s, ABSOLUTE, 0.01};
	}
	check_rows("WT-2", rows, n);
}

static void pods_for_a_budget(void **state)
{
	(void)state;
	struct plan_work w = even_work(1200, 1);
	struct plan_machine m = {.price_h = 0.69,
				 .workers = 1,
				 .batch_max = 1,
				 .speed.each_s = 1,
				 .cold.phase[COLD_BOOT] = {90, 90, 3}};
	const struct plan_wish wish = {.goal = PLAN_TIME, .budget_usd = 0.30};
	struct plan p;

	assert_int_equal(plan_choose(&p, &w, &m, 1, &wish), PLAN_FOUND);
	const struct row rows[] = {
		{"BG-1", "pods that are chosen", p.pods, 4, ABSOLUTE, 0},
		{"BG-1", "pods by the formula", cost_pods_for_budget(0.30, 0.69, 90, 1200), 4,
		 ABSOLUTE, 0},
		{"BG-1", "makespan", p.makespan_p50_s, MINUTES(6.5), ABSOLUTE, 0.1},
		{"BG-1", "cost", p.cost_usd, 0.2990, ABSOLUTE, 0.0005},
	};
	check_rows("BG-1", rows, ARRAY_LEN(rows));
}

static int print_count(void **state)
{
	(void)state;
	print_message("%zu rows in all\n", rows_checked);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_render),
		cmocka_unit_test(wide_or_tall),
		cmocka_unit_test(batching),
		cmocka_unit_test(demand),
		cmocka_unit_test(sizes),
		cmocka_unit_test(rates_and_goals),
		cmocka_unit_test(memory_and_owning),
		cmocka_unit_test(against_an_api),
		cmocka_unit_test(the_u_curve),
		cmocka_unit_test(a_host_floor_makes_the_cheapest_card_win),
		cmocka_unit_test(pods_for_a_deadline),
		cmocka_unit_test(twenty_lines),
		cmocka_unit_test(pods_for_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, print_count);
}
