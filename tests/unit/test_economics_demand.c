/* test_economics_demand.c - demand and sizes of work, against worked cases: one
 * row per case. F: Poisson demand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/cost.h"
#include "formulas.h"
#include "rows.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demand),
		cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests(tests, NULL, print_count);
}
