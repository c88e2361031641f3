/* test_economics.c - the planner's arithmetic against worked cases from published figures: one row per case.
 *
 * S: a 300-question render on one card. W: wide or tall. M: batching. F: Poisson demand. P: memory, spot, owning. BE: against an
 * API. Where a source contradicts itself, the row asserts our arithmetic and its text quotes the source. Cases that only cite a
 * measurement, without inputs, are left out. Prices are in dollars an hour. */
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

enum tolerance { ABSOLUTE, RELATIVE };

struct row {
	const char *id, *what;
	double got, expected;
	enum tolerance kind;
	double tolerance;
};

#define MINUTES(n) ((n) * 60.0)

static void assert_near(double got, double expected, double tolerance)
{
	if (fabs(got - expected) > tolerance)
		fail_msg("got %.6g, expected %.6g", got, expected);
}

static void check_rows(const char *part, const struct row *rows, size_t count)
{
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		const struct row *r = &rows[i];
		double room = r->kind == ABSOLUTE ? r->tolerance : fabs(r->expected) * r->tolerance;
		if (fabs(r->got - r->expected) <= room + 1e-12)
			continue;
		print_error("%s %s: got %.6g, expected %.6g\n", r->id, r->what, r->got, r->expected);
		wrong++;
	}
	print_message("%s: %zu cases, %zu wrong\n", part, count, wrong);
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

static void one_render(void **state)
{
	(void)state;
	const double cold = 90, slow = MINUTES(15), work = MINUTES(20);
	const double without = cost_usd(0.69, cost_wide_billed_s(1, slow, work));
	const struct row rows[] = {
		{"S-1", "20 min at .69 (source: $0.40)", cost_usd(0.69, work), 0.2300, ABSOLUTE, 0.0005},
		{"S-1", "minutes that $0.40 buys", 0.40 / 0.69 * 60, 34.78, ABSOLUTE, 0.01},
		{"S-2", "with a cold start of 15 min", without, 0.4025, ABSOLUTE, 0.0005},
		{"S-2", "its makespan, min", cost_wide_makespan_s(1, slow, work) / 60, 35, ABSOLUTE, 0.01},
		{"S-3", "with a volume, 90 s", cost_usd(0.69, cost_wide_billed_s(1, cold, work)), 0.2473, ABSOLUTE, 0.0005},
		{"S-3", "what the volume saves a run", without - cost_usd(0.69, cost_wide_billed_s(1, cold, work)), 0.1553, ABSOLUTE, 0.0005},
		{"S-4", "at a price with a volume, .89", cost_usd(0.89, cost_wide_billed_s(1, cold, work)), 0.3189, ABSOLUTE, 0.0005},
		{"S-4", "at .99", cost_usd(0.99, cost_wide_billed_s(1, cold, work)), 0.3548, ABSOLUTE, 0.0005},
		{"S-5", "break-even of 20 GB, .69 on both sides", cost_volume_break_even(1.40, without, cost_usd(0.69, cold + work)), 9.02, RELATIVE, 0.01},
		{"S-5", ".99 on both sides", cost_volume_break_even(1.40, cost_usd(0.99, slow + work), cost_usd(0.99, cold + work)), 6.29, RELATIVE, 0.01},
		{"S-5", ".69 against .89", cost_volume_break_even(1.40, without, cost_usd(0.89, cold + work)), 16.7, RELATIVE, 0.01},
		{"S-5", ".69 against .99", cost_volume_break_even(1.40, without, cost_usd(0.99, cold + work)), 29.3, RELATIVE, 0.01},
		{"S-6", "seconds a question", work / 300, 4.0, ABSOLUTE, 0.01},
		{"S-6", "dollars a question, warm", cost_usd(0.69, work) / 300, 0.000767, RELATIVE, 0.01},
		{"S-6", "dollars a question, S-2", without / 300, 0.001342, RELATIVE, 0.01},
		{"S-8", "A5000 GB/s per $/h", bandwidth_per_dollar("RTX A5000", 0.16), 4800, ABSOLUTE, 1},
		{"S-8", "4090", bandwidth_per_dollar("RTX 4090", 0.34), 2965, ABSOLUTE, 1},
		{"S-8", "5090 (source: best; it is third of four)", bandwidth_per_dollar("RTX 5090", 0.69), 2597, ABSOLUTE, 1},
		{"S-8", "H100", bandwidth_per_dollar("H100 SXM", 2.69), 1245, ABSOLUTE, 1},
		{"S-9", "5090 to A5000 by bandwidth (source: 3)", 1792.0 / gpu_find("RTX A5000")->bandwidth_gb_s, 2.33, ABSOLUTE, 0.01},
		{"S-9", "at the source's 3x the A5000 costs", cost_usd(0.16, MINUTES(60)), 0.16, ABSOLUTE, 0.0005},
		{"S-10", "A5000 minutes", minutes_by_bandwidth("RTX A5000"), 46.67, RELATIVE, 0.01},
		{"S-10", "4090 minutes", minutes_by_bandwidth("RTX 4090"), 35.56, RELATIVE, 0.01},
		{"S-10", "H100 minutes", minutes_by_bandwidth("H100 SXM"), 10.70, RELATIVE, 0.01},
		{"S-10", "A5000 without a cold start", usd_by_bandwidth("RTX A5000", 0.16, 0), 0.1244, RELATIVE, 0.01},
		{"S-10", "4090 without", usd_by_bandwidth("RTX 4090", 0.34, 0), 0.2015, RELATIVE, 0.01},
		{"S-10", "H100 without", usd_by_bandwidth("H100 SXM", 2.69, 0), 0.4796, RELATIVE, 0.01},
		{"S-10", "A5000, 90 s", usd_by_bandwidth("RTX A5000", 0.16, 1.5), 0.1284, RELATIVE, 0.01},
		{"S-10", "4090, 90 s", usd_by_bandwidth("RTX 4090", 0.34, 1.5), 0.2100, RELATIVE, 0.01},
		{"S-10", "5090, 90 s", usd_by_bandwidth("RTX 5090", 0.69, 1.5), 0.2473, RELATIVE, 0.01},
		{"S-10", "H100, 90 s", usd_by_bandwidth("H100 SXM", 2.69, 1.5), 0.5469, RELATIVE, 0.01},
		{"S-10", "A5000, 15 min", usd_by_bandwidth("RTX A5000", 0.16, 15), 0.1644, RELATIVE, 0.01},
		{"S-10", "4090, 15 min", usd_by_bandwidth("RTX 4090", 0.34, 15), 0.2865, RELATIVE, 0.01},
		{"S-10", "5090, 15 min", usd_by_bandwidth("RTX 5090", 0.69, 15), 0.4025, RELATIVE, 0.01},
		{"S-10", "H100, 15 min", usd_by_bandwidth("H100 SXM", 2.69, 15), 1.1521, RELATIVE, 0.01},
		{"S-12", "5090 TB/s", gpu_find("RTX 5090")->bandwidth_gb_s / 1000.0, 1.79, ABSOLUTE, 0.01},
		{"S-15", "a CPU pod at .12 for 10 min of upload saves", cost_usd(0.69, MINUTES(10)) - cost_usd(0.12, MINUTES(10)), 0.095, ABSOLUTE, 0.0005},
	};
	check_rows("S", rows, ARRAY_LEN(rows));
}

static void wide_or_tall(void **state)
{
	(void)state;
	const double q = 0.001261 / 0.000222, k = 4800.0 / 300;
	const struct speed batched = {.once_s = 2 / 1.0222356, .each_s = 2 - 2 / 1.0222356}; /* t(1) 2 s, r of M-1 */
	const struct row rows[] = {
		{"W-1", "H200 to L4 by bandwidth (source: 15)", (double)gpu_find("H200")->bandwidth_gb_s / gpu_find("L4")->bandwidth_gb_s, 16, ABSOLUTE, 0},
		{"W-2", "ratio of prices", q, 5.68, RELATIVE, 0.01},
		{"W-2", "H200 cheaper per byte", k / q, 2.82, RELATIVE, 0.01},
		{"W-3", "work from which on tall wins, in cold starts", cost_tall_from_s(1, q, k), 7.256, RELATIVE, 0.01},
		{"W-3", "with a cold start of 10 s", cost_tall_from_s(10, q, k), 72.6, RELATIVE, 0.01},
		{"W-4", "billed", cost_wide_billed_s(1, 10, 2), 12, ABSOLUTE, 0},
		{"W-4", "used", cost_used(1, 10, 2), 0.167, ABSOLUTE, 0.001},
		{"W-5", "twenty pods, billed", cost_wide_billed_s(20, 10, 40), 240, ABSOLUTE, 0},
		{"W-5", "twenty pods, makespan", cost_wide_makespan_s(20, 10, 40), 12, ABSOLUTE, 0},
		{"W-6", "one pod", cost_wide_billed_s(1, 10, 40), 50, ABSOLUTE, 0},
		{"W-7", "one batch of twenty", 10 + speed_batch_s(&batched, 1, 20), 12.83, RELATIVE, 0.01},
		{"W-7", "twenty pods against it", 240 / (10 + speed_batch_s(&batched, 1, 20)), 18.7, RELATIVE, 0.01},
		{"W-8", "work for 70 %, cold start 10 s", cost_work_for_used_s(0.7, 10), 23.3, ABSOLUTE, 0.1},
		{"W-8", "90 s", cost_work_for_used_s(0.7, 90), 210, ABSOLUTE, 0.1},
		{"W-8", "15 min", cost_work_for_used_s(0.7, 900), MINUTES(35), ABSOLUTE, 0.1},
		{"W-12", "H200 GB", gpu_find("H200")->vram_gb, 141, ABSOLUTE, 0},
	};
	check_rows("W", rows, ARRAY_LEN(rows));
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
		{"M-1", "t(64)/t(1)", speed_batch_s(&s, 1, 64) / speed_batch_s(&s, 1, 1), 2.370, RELATIVE, 0.005},
		{"M-2", "cost at a duty of 40 %", demand_usd_per_million(1, 1e6, 0.4), 2.5, ABSOLUTE, 1e-9},
		{"M-6", "138 of the A100's TFLOPS", 138 / gpu_find("A100")->tflops, 0.442, ABSOLUTE, 0.005},
		{"M-6", "163", 163 / gpu_find("A100")->tflops, 0.522, ABSOLUTE, 0.005},
		{"M-10", "cost an item at half the use", demand_usd_per_million(1, 1e6, 0.3) / demand_usd_per_million(1, 1e6, 0.6), 2, ABSOLUTE, 1e-9},
		{"M-11", "what N more pods cost", cost_usd(0.69, cost_wide_billed_s(8, 90, 1200) - cost_wide_billed_s(4, 90, 1200)), cost_usd(0.69, 4 * 90), ABSOLUTE, 1e-9},
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
		{11, .6821, 6.821, .2509, 26.1, 42.2}, {12, .4494, 2.247, .0608, 11.0, 19.0}, {13, .2853, .951, .0142, 5.80, 11.2},
		{14, .1741, .435, .0032, 3.12, 7.14},  {15, .1020, .204, .0007, 1.43, 4.65},  {16, .0573, .096, .0001, .23, 2.91},
		{17, .0309, .0442, .0000, 0, 1.61},	 {18, .0159, .0199, .0000, 0, .58},
	};
	static const struct {
		int pods;
		double more;
	} poisson[] = {{10, .417}, {11, .303}, {12, .208}, {13, .136}, {14, .0835}, {15, .0487}, {16, .0270}, {17, .0143}, {18, .0072}};
	struct row rows[128];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(erlang); i++) {
		int pods = erlang[i].pods;
		rows[n++] = (struct row){"F-3", "P(wait)", demand_waits(pods, 10), erlang[i].waits, RELATIVE, 0.01};
		rows[n++] = (struct row){"F-3", "mean wait", demand_mean_wait_s(pods, 10, 10), erlang[i].mean, RELATIVE, 0.01};
		rows[n++] = (struct row){"F-3", "P(wait > 10 s)", demand_waits_longer(pods, 10, 10, 10), erlang[i].over10, ABSOLUTE, 0.0002};
		rows[n++] = (struct row){"F-3", "p95", demand_wait_quantile_s(pods, 10, 10, 0.95), erlang[i].p95, ABSOLUTE, 0.06};
		rows[n++] = (struct row){"F-3", "p99", demand_wait_quantile_s(pods, 10, 10, 0.99), erlang[i].p99, ABSOLUTE, 0.06};
	}
	for (size_t i = 0; i < ARRAY_LEN(poisson); i++)
		rows[n++] = (struct row){"F-4", "P(more than N busy)", demand_more_than(poisson[i].pods, 10), poisson[i].more, RELATIVE, 0.01};
	const struct row more[] = {
		{"F-2", "12 pods run at (source: 75 %)", 10 / 12.0, 0.833, ABSOLUTE, 0.001},
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
	const struct row rows[] = {
		{"P-1", "7B fp16 weights, GB", 7 * vram_precision_bytes("fp16"), 14, ABSOLUTE, 0},
		{"P-2", "7B int4 weights, GB", 7 * vram_precision_bytes("int4"), 3.5, ABSOLUTE, 0},
		{"P-3", "7B fp16, GiB (source: roughly 18 GB)", model_gib("fp16"), 16.950, ABSOLUTE, 0.001},
		{"P-4", "int4 (source: 4.5)", model_gib("int4"), 4.2375, ABSOLUTE, 0.001},
		{"P-5", "int8", model_gib("int8"), 8.475, ABSOLUTE, 0.001},
		{"P-5", "fp32", model_gib("fp32"), 33.900, ABSOLUTE, 0.001},
		{"P-8", "105 GB on 4 cards", 105 / 4.0, 26.25, ABSOLUTE, 0},
		{"P-9", "int4 fits an L4", fits("L4", model_gib("int4")), 1, ABSOLUTE, 0},
		{"P-9", "fp16 fits an L4 (source: needs an A100)", fits("L4", model_gib("fp16")), 1, ABSOLUTE, 0},
		{"P-9", "fp16 fits a T4", fits("T4", model_gib("fp16")), 0, ABSOLUTE, 0},
		{"P-11", "10,000 requests an hour of 100 ms, erlang", 10000 * 0.1 / 3600, 0.278, ABSOLUTE, 0.001},
		{"P-12", "A100, dense FP16", gpu_find("A100")->tflops, 312, ABSOLUTE, 0},
		{"P-12", "H100, dense FP16", gpu_find("H100")->tflops, 989, ABSOLUTE, 0},
		{"P-13", "H100 to A100, bandwidth (source: 3)", (double)gpu_find("H100")->bandwidth_gb_s / gpu_find("A100")->bandwidth_gb_s, 1.64, ABSOLUTE, 0.01},
		{"P-13", "compute", gpu_find("H100")->tflops / gpu_find("A100")->tflops, 3.17, ABSOLUTE, 0.01},
		{"P-14", "T4 GB", gpu_find("T4")->vram_gb, 16, ABSOLUTE, 0},
		{"P-14", "T4 TFLOPS", gpu_find("T4")->tflops, 65, ABSOLUTE, 0},
		{"P-14", "L4 TFLOPS", gpu_find("L4")->tflops, 121, ABSOLUTE, 0},
		{"P-14", "A100 GB/s", gpu_find("A100")->bandwidth_gb_s, 2039, ABSOLUTE, 0},
		{"P-14", "H100 GB/s", gpu_find("H100")->bandwidth_gb_s, 3350, ABSOLUTE, 0},
		{"P-22", "saving, spot at -60 %", kept_saving(0.6, 0, 20, 0), 0.593, ABSOLUTE, 0.001},
		{"P-22", "-70 %", kept_saving(0.7, 0, 20, 0), 0.695, ABSOLUTE, 0.001},
		{"P-22", "-90 %", kept_saving(0.9, 0, 20, 0), 0.898, ABSOLUTE, 0.001},
		{"P-22", "-60 %, 2.5 cold starts of 90 s", kept_saving(0.6, 2.5, 20, 90), 0.592, ABSOLUTE, 0.001},
		{"P-22", "-60 %, 2.5 of 15 min", kept_saving(0.6, 2.5, 20, 900), 0.581, ABSOLUTE, 0.001},
		{"P-25", "a reservation at -30 % pays from", demand_reserved_duty(0.3), 0.7, ABSOLUTE, 1e-9},
		{"P-25", "-60 %", demand_reserved_duty(0.6), 0.4, ABSOLUTE, 1e-9},
		{"P-28", "a card of one's own, three years (source: about 25,000)", 150000 / 8.0 + 3 * 2000, 24750, ABSOLUTE, 0},
		{"P-31", "own from, at 4.00 (source: 40-50 %)", demand_own_duty(18750, 2000, 3, 4), 0.235, ABSOLUTE, 0.005},
		{"P-31", "at 2.50", demand_own_duty(18750, 2000, 3, 2.5), 0.377, ABSOLUTE, 0.005},
		{"P-31", "at 1.79", demand_own_duty(18750, 2000, 3, 1.79), 0.526, ABSOLUTE, 0.005},
		{"P-31", "at 1.39", demand_own_duty(18750, 2000, 3, 1.39), 0.678, ABSOLUTE, 0.005},
		{"P-31", "at 1.19", demand_own_duty(18750, 2000, 3, 1.19), 0.791, ABSOLUTE, 0.005},
		{"P-32", "four pods forgotten for 90 h at 1.79", cost_usd(1.79, 4 * 90 * 3600.0), 644.4, ABSOLUTE, 0.5},
		{"P-36", "2.0004 s, whole seconds", cost_quantum_s(2.0004, 1), 3, ABSOLUTE, 0},
		{"KV", "MiB a token of Chatterbox's T3", vram_kv_mib_per_token(30, 16, 64, 2), 0.1172, ABSOLUTE, 0.0001},
		{"KV", "of Turbo's", vram_kv_mib_per_token(24, 16, 64, 2), 0.0938, ABSOLUTE, 0.0001},
		{"2.8", "Young, 30 s and 8 h", cost_young_s(30, 8 * 3600), 1314.5, ABSOLUTE, 0.1},
		{"2.8", "its overhead", cost_young_overhead(30, 8 * 3600), 0.0456, ABSOLUTE, 0.0001},
		{"2.8", "Young, 10 s and 2 h", cost_young_s(10, 2 * 3600), 379.5, ABSOLUTE, 0.1},
		{"2.8", "Young, 60 s and 10 h", cost_young_s(60, 10 * 3600), 2078.5, ABSOLUTE, 0.1},
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
		{"BE-1", .22, 1480800, .149, .037, .0099, .005, .00149}, {"BE-2", .43, 1480800, .290, .073, .019, .0097, .0029},
		{"BE-3", .69, 1056100, .653, .163, .0436, .0218, .0065}, {"BE-4", .69, 1662100, .415, .104, .0277, .0138, .00415},
		{"BE-5", .22, 57840, 3.80, .95, .2536, .127, .038},	{"BE-6", .59, 2160000, .273, .068, .0182, .0091, .00273},
	};
	struct row rows[64];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		double p = own[i].price_h, c = own[i].chars_h;
		rows[n++] = (struct row){own[i].id, "$ a million characters", demand_usd_per_million(p, c, 1), own[i].usd, RELATIVE, 0.01};
		rows[n++] = (struct row){own[i].id, "duty against $4", demand_api_duty(p, c, 4), own[i].at4, RELATIVE, 0.02};
		rows[n++] = (struct row){own[i].id, "against $15", demand_api_duty(p, c, 15), own[i].at15, RELATIVE, 0.02};
		rows[n++] = (struct row){own[i].id, "against $30", demand_api_duty(p, c, 30), own[i].at30, RELATIVE, 0.03};
		rows[n++] = (struct row){own[i].id, "against $100", demand_api_duty(p, c, 100), own[i].at100, RELATIVE, 0.02};
	}
	check_rows("BE", rows, n);
}

/* ---- golden choices ---- */

/* Modal's list prices of September 2026, an hour. */
static const struct {
	const char *gpu;
	double price_s;
	double bandwidth; /* 0: the catalog's */
} modal[] = {{"T4", .000164, 0},	 {"L4", .000222, 0},	    {"A10", .000306, 0},	{"L40S", .000542, 0},
	     {"A100 40GB", .000583, 0}, {"A100 80GB SXM", .000694, 0}, {"RTX PRO 6000", .000842, 1792}, {"H100 SXM", .001097, 0},
	     {"H200 SXM", .001261, 0},  {"B200", .001736, 0}};

enum { CARDS = ARRAY_LEN(modal) };

/* Each item moves 600 GB of memory, plus a host floor that no card shortens; cold start 10 s, batch 1. */
static void modal_machines(struct plan_machine machines[CARDS], double floor_s)
{
	for (int i = 0; i < CARDS; i++) {
		double bandwidth = modal[i].bandwidth > 0 ? modal[i].bandwidth : gpu_find(modal[i].gpu)->bandwidth_gb_s;
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
	} bottoms[] = {{1, 50, "T4"}, {51, 53, "A100 40GB"}, {54, 121, "A100 80GB SXM"}, {122, 173, "H200 SXM"}, {174, 1000, "B200"}};
	struct plan_machine machines[CARDS];
	const struct plan_wish wish = {.goal = PLAN_COST, .pods = 1};
	struct row rows[ARRAY_LEN(table) * CARDS];
	size_t n = 0;

	modal_machines(machines, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct plan_work w = even_work(table[i].items, 1);
		for (int card = 0; card < CARDS; card++) {
			struct plan p;
			plan_compute(&p, &w, &machines[card], card, 1, 1, &wish);
			rows[n++] = (struct row){"UC-1", modal[card].gpu, p.cost_usd / (double)table[i].items * 1e6, table[i].usd_million[card], RELATIVE, 0.01};
		}
	}
	check_rows("UC-1", rows, n);
	for (size_t i = 0; i < ARRAY_LEN(bottoms); i++) {
		assert_string_equal(cheapest_card(bottoms[i].from, 0), bottoms[i].gpu);
		assert_string_equal(cheapest_card(bottoms[i].to, 0), bottoms[i].gpu);
	}
}

static void a_host_floor_makes_the_cheapest_card_win(void **state)
{
	(void)state;
	for (size_t items = 1; items <= 1000; items = items * 3 + 1)
		assert_string_equal(cheapest_card(items, 0.25), "T4");
	assert_string_equal(cheapest_card(1000, 0.25), "T4");
}

static void pods_for_a_deadline(void **state)
{
	(void)state;
	static const struct {
		double deadline_min, cold_min;
		int pods; /* 0: none meets it */
		double usd;
	} cases[] = {
		{5, 1.5, 6, .3335},  {10, 1.5, 3, .2818}, {16, 1.5, 2, .2645}, {20, 1.5, 2, .2645},  {30, 1.5, 1, .2473}, {40, 1.5, 1, .2473},
		{5, 15, 0, 0},	     {10, 15, 0, 0},	  {16, 15, 20, 3.68},  {20, 15, 4, .92},     {30, 15, 2, .575},	  {40, 15, 1, .4025},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan_work w = even_work(1200, 1); /* 20 minutes in seconds, so that any width divides it well */
		struct plan_machine m = {.price_h = 0.69, .workers = 1, .batch_max = 1, .speed.each_s = 1};
		const struct plan_wish wish = {.goal = PLAN_COST, .deadline_s = MINUTES(cases[i].deadline_min)};
		struct plan p;
		m.cold.phase[COLD_BOOT] = (struct cold_time){MINUTES(cases[i].cold_min), MINUTES(cases[i].cold_min), 3};
		enum plan_verdict verdict = plan_choose(&p, &w, &m, 1, &wish);
		assert_int_equal(verdict, cases[i].pods ? PLAN_FOUND : PLAN_TOO_SLOW);
		assert_int_equal(cost_pods_for_deadline(wish.deadline_s, MINUTES(cases[i].cold_min), MINUTES(20)), cases[i].pods);
		if (!cases[i].pods)
			continue;
		assert_int_equal(p.pods, cases[i].pods);
		assert_near(p.cost_usd, cases[i].usd, 0.0005);
	}
}

static void twenty_lines(void **state)
{
	(void)state;
	static const struct {
		int pods, batch;
		double billed_s, makespan_s;
	} cases[] = {{20, 1, 240, 12}, {4, 1, 80, 20}, {2, 1, 60, 30}, {1, 1, 50, 50}, {1, 20, 12.83, 12.83}};
	struct plan_work w = even_work(20, 20);
	struct plan_machine m = {.price_h = 1, .workers = 1, .batch_max = 20, .cold.phase[COLD_BOOT] = {10, 10, 3}};
	const struct plan_wish wish = {0};

	m.speed = (struct speed){.once_s = 2 / 1.0222356, .each_s = 2 - 2 / 1.0222356};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan p;
		plan_compute(&p, &w, &m, 0, cases[i].pods, cases[i].batch, &wish);
		assert_near(p.billed_s, cases[i].billed_s, 0.01);
		assert_near(p.makespan_p50_s, cases[i].makespan_s, 0.01);
	}
}

static void pods_for_a_budget(void **state)
{
	(void)state;
	struct plan_work w = even_work(1200, 1);
	struct plan_machine m = {.price_h = 0.69, .workers = 1, .batch_max = 1, .speed.each_s = 1, .cold.phase[COLD_BOOT] = {90, 90, 3}};
	const struct plan_wish wish = {.goal = PLAN_TIME, .budget_usd = 0.30};
	struct plan p;

	assert_int_equal(plan_choose(&p, &w, &m, 1, &wish), PLAN_FOUND);
	assert_int_equal(p.pods, 4);
	assert_int_equal(cost_pods_for_budget(0.30, 0.69, 90, 1200), 4);
	assert_near(p.makespan_p50_s, MINUTES(6.5), 0.1);
	assert_near(p.cost_usd, 0.2990, 0.0005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_render),
		cmocka_unit_test(wide_or_tall),
		cmocka_unit_test(batching),
		cmocka_unit_test(demand),
		cmocka_unit_test(memory_and_owning),
		cmocka_unit_test(against_an_api),
		cmocka_unit_test(the_u_curve),
		cmocka_unit_test(a_host_floor_makes_the_cheapest_card_win),
		cmocka_unit_test(pods_for_a_deadline),
		cmocka_unit_test(twenty_lines),
		cmocka_unit_test(pods_for_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
