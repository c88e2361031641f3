/* test_advice.c - what a run's figures say about the next one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/learn.h"
#include "cmd/show/ledger.h"

/* A pod that was billed until its release, with so many seconds in each step. */
static struct pod_row pod_with(int boot_s, int sync_s, int compute_s, int idle_s)
{
	struct pod_row p = {.state = POD_ROW_GONE, .price_microusd_h = 3600000, .create_ms = 1000};

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
		{"boot", 90, 5, 30, 0,
		 "24% of the billed time computed; most of the rest went into booting (72%)"},
		{"what reaches 70 %", 90, 0, 30, 0,
		 "70% needs 3m30s of work on 1 pod, this run had 30s"},
		{"sync", 5, 60, 30, 0,
		 "went into syncing and setting up (63%): fill the volume beforehand"},
		{"idle", 5, 5, 30, 60, "went into waiting for work (60%): render more in one run"},
		{"nothing computed", 90, 5, 0, 0, NULL},
		{"enough work, lost elsewhere", 10, 0, 40, 60,
		 "went into waiting for work (55%): render more in one run"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row p = pod_with(cases[i].boot_s, cases[i].sync_s, cases[i].compute_s,
					    cases[i].idle_s);
		advice_add(&text, &p, 1, 1000000);
		if (cases[i].says ? !strstr(str_text(&text), cases[i].says) : text.len > 0)
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
	}
}

/* Two pods, each of which booted 30 s and computed 40 s: the second one beside the first, or in its
 * place. */
static void a_replacement_is_no_width(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int begins_s; /* the second, after the first */
		const char *says, *says_not;
	} cases[] = {
		{"side by side", 0, "70% needs 1 pod instead of 2 for this work", "one run\n"},
		{"just before its end", 69, "70% needs 1 pod instead of 2", "one run\n"},
		{"at its end", 70, "into booting (43%): render more in one run\n", "fewer pods"},
		{"later", 500, "into booting (43%): render more in one run\n", "fewer pods"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row pods[2] = {pod_with(30, 0, 40, 0), pod_with(30, 0, 40, 0)};
		int64_t *times[] = {&pods[1].create_ms,    &pods[1].running_ms, &pods[1].reached_ms,
				    &pods[1].connected_ms, &pods[1].synced_ms,  &pods[1].ready_ms,
				    &pods[1].worked_ms,    &pods[1].safe_ms,    &pods[1].release_ms,
				    &pods[1].released_ms,  &pods[1].gone_ms};
		for (size_t k = 0; k < ARRAY_LEN(times); k++)
			*times[k] += (int64_t)cases[i].begins_s * 1000;
		pods[0].gone_ms += 5000; /* it was seen to be gone only when the second one ran */
		advice_add(&text, pods, 2, 10000000);
		if (!strstr(str_text(&text), cases[i].says) ||
		    strstr(str_text(&text), cases[i].says_not))
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
	}
}

static void gpus_that_idle_or_are_pinned(void **state)
{
	(void)state;
	static const struct {
		int p50[2], p95[2];
		const char *says;
	} cases[] = {{{1, 2}, {4, 6}, "at most 6% busy"},
		     {{1, 90}, {4, 99}, NULL},
		     {{99, 100}, {100, 100}, "always busy"}};

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

/* The pods, or the work, that reach 70 %. */
static void width_that_pays(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int pods, boot_s, compute_s; /* of each */
		const char *says;            /* NULL: nothing */
	} cases[] = {
		{"two pods instead of four", 4, 30, 40,
		 "70% needs 2 pods instead of 4 for this work"},
		{"no number of pods", 4, 90, 30,
		 "70% needs 14m00s of work on 4 pods, this run had 2m00s"},
		{"twenty pods for twenty lines", 20, 10, 2, "70% needs 1 pod instead of 20"},
		{"all is well", 4, 10, 90, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row pods[20];
		for (int k = 0; k < cases[i].pods; k++)
			pods[k] = pod_with(cases[i].boot_s, 0, cases[i].compute_s, 0);
		advice_add(&text, pods, (size_t)cases[i].pods, 1000000);
		if (cases[i].says ? !strstr(str_text(&text), cases[i].says) : text.len > 0)
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
	}
}

/* t(b) = .978 + .0217 b: S(20) = 14.16, S(80) = 29.47. */
static void seats_of_engines_that_batch(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum row_batching batching;
		const char *says;
	} cases[] = {
		{"padded", ROW_BATCHING_PADDED,
		 "used 50%, seats 48%: batches of 20 segments on average, where 80 fit; full "
		 "batches without a cold start cost 4.2 times less\n"},
		{"one after the other", ROW_BATCHING_NONE, NULL},
		{"an old ledger", ROW_BATCHING_UNKNOWN, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct store *s = store_memory();
		struct pod_row pod = pod_with(50, 0, 50, 0);
		struct batch_row rows[20] = {0};
		struct err err = {0};
		for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
			struct batch_row *b = &rows[k];
			b->segments = 18 + (int)(k % 5);
			b->most = 80;
			b->batching = cases[i].batching;
			snprintf(b->id, sizeof(b->id), "%zu", k);
			COPY_TEXT(b->attempt, "a");
			COPY_TEXT(b->run, "r");
			COPY_TEXT(b->speed, "e|o|none|local|1");
			b->longest = 100;
			b->sum = 100.0 * b->segments;
			b->took_ms = (int64_t)(978 + 21.7 * b->segments);
			assert_int_equal(store_put_batch(s, b, &err), 0);
		}
		assert_int_equal(learn_fold(s, rows, ARRAY_LEN(rows), true, 1000, &err), 0);
		advice_add_seats(&text, s, "r", &pod, 1, 1000000);
		if (cases[i].says ? strcmp(str_text(&text), cases[i].says) != 0 : text.len > 0)
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
		store_close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(causes_are_named),
		cmocka_unit_test(a_replacement_is_no_width),
		cmocka_unit_test(gpus_that_idle_or_are_pinned),
		cmocka_unit_test(width_that_pays),
		cmocka_unit_test(seats_of_engines_that_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
