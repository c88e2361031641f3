/* test_economics_owning.c - memory, spot, owning a card and paying an API, against worked cases:
 * one row per case. P: memory, spot, owning. BE: against an API. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/gpus.h"
#include "plan/cost.h"
#include "formulas.h"
#include "rows.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_and_owning),
		cmocka_unit_test(against_an_api),
	};

	return cmocka_run_group_tests(tests, NULL, print_count);
}
