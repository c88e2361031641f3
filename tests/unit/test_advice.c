/* test_advice.c - what a run's figures say about the next one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "../../cmd/advice.h"

/* A pod that was billed until its release, with so many seconds in each step. */
static struct pod_row pod_with(int boot_s, int sync_s, int compute_s, int idle_s)
{
	struct pod_row p = {.state = "gone", .price_microusd_h = 3600000, .create_ms = 1000};

	p.running_ms = p.create_ms;
	p.reached_ms = p.running_ms + boot_s * 1000;
	p.connected_ms = p.reached_ms;
	p.synced_ms = p.connected_ms + sync_s * 1000;
	p.ready_ms = p.synced_ms;
	p.worked_ms = p.ready_ms + (compute_s + idle_s) * 1000;
	p.safe_ms = p.release_ms = p.released_ms = p.gone_ms = p.worked_ms;
	p.compute_ms = compute_s * 1000;
	p.billed_ms = p.released_ms - p.create_ms;
	return p;
}

static void causes_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int boot_s, sync_s, compute_s, idle_s;
		const char *says; /* NULL: nothing */
	} cases[] = {
		{"all is well", 10, 1, 90, 0, NULL},
		{"exactly 70 %", 30, 0, 70, 0, NULL},
		{"boot", 90, 5, 30, 0, "24% of the billed time computed; most of the rest went into coming up (72%)"},
		{"what reaches 70 %", 90, 0, 30, 0, "70% takes 3m30s of work on 1 pod, this run had 30s"},
		{"sync", 5, 60, 30, 0, "went into syncing and setting up (63%): fill the volume before"},
		{"idle", 5, 5, 30, 60, "went into waiting for work (60%): use fewer pods"},
		{"nothing computed", 90, 5, 0, 0, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row p = pod_with(cases[i].boot_s, cases[i].sync_s, cases[i].compute_s, cases[i].idle_s);
		advice_add(&text, &p, 1, 1000000);
		if (cases[i].says ? !strstr(str_text(&text), cases[i].says) : text.len > 0)
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
	}
}

static void gpus_that_idle_or_are_pinned(void **state)
{
	(void)state;
	static const struct {
		int p50[2], p95[2];
		const char *says;
	} cases[] = {{{1, 2}, {4, 6}, "at most 6% busy"}, {{1, 90}, {4, 99}, NULL}, {{99, 100}, {100, 100}, "always busy"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row pods[2];
		for (int k = 0; k < 2; k++) {
			pods[k] = pod_with(1, 0, 90, 0);
			pods[k].gpu_samples = 20;
			pods[k].gpu_busy_p50 = cases[i].p50[k];
			pods[k].gpu_busy_p95 = cases[i].p95[k];
		}
		advice_add(&text, pods, 2, 1000000);
		if (cases[i].says ? !strstr(str_text(&text), cases[i].says) : text.len > 0)
			fail_msg("case %zu: it says \"%s\"", i, str_text(&text));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(causes_are_named),
		cmocka_unit_test(gpus_that_idle_or_are_pinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
