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

static void shift(struct pod_row *p, int seconds)
{
	int64_t *times[] = {&p->create_ms,  &p->running_ms,  &p->reached_ms, &p->connected_ms,
			    &p->synced_ms,  &p->ready_ms,    &p->worked_ms,  &p->safe_ms,
			    &p->release_ms, &p->released_ms, &p->gone_ms};

	for (size_t k = 0; k < ARRAY_LEN(times); k++)
		*times[k] += (int64_t)seconds * 1000;
}

static void add_of_pods(struct str *to, const struct pod_row *pods, size_t count)
{
	advice_add(to, &(struct advice_of){NULL, "", pods, count, 10000000});
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
		{"idle", 5, 5, 30, 60, "went into waiting for work (60%): render more in one run"},
		{"nothing computed", 90, 5, 0, 0, NULL},
		{"enough work, lost elsewhere", 10, 0, 40, 60,
		 "went into waiting for work (55%): render more in one run"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row p = pod_with(cases[i].boot_s, cases[i].sync_s, cases[i].compute_s,
					    cases[i].idle_s);
		add_of_pods(&text, &p, 1);
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
		shift(&pods[1], cases[i].begins_s);
		pods[0].gone_ms += 5000; /* it was seen to be gone only when the second one ran */
		add_of_pods(&text, pods, 2);
		if (!strstr(str_text(&text), cases[i].says) ||
		    strstr(str_text(&text), cases[i].says_not))
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
	}
}

/* A pod that booted 5 s, synced 60 s and computed 30 s: the remedy follows from what was synced. */
static void what_shortens_a_sync(void **state)
{
	(void)state;
	static const struct {
		const char *name, *volume;
		int64_t synced_bytes, setup_ms;
		const char *says;
	} cases[] = {
		{"volume", "v", 120000000, 0, "(63%): fill the volume beforehand with `burst"},
		{"much code", "", 120000000, 0,
		 "(63%): name what the pods do not need in .burstign"},
		{"much code and a short set-up", "", 120000000, 20000,
		 "(63%): name what the pods do"},
		{"set-up", "", 120000000, 50000, "(63%): a `volume` keeps it for the next run"},
		{"little code", "", 200000, 0, "(63%): a `volume` keeps it for the next run"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row p = pod_with(5, 60, 30, 0);
		COPY_TEXT(p.volume_name, cases[i].volume);
		p.synced_bytes = cases[i].synced_bytes;
		p.setup_ms = cases[i].setup_ms;
		add_of_pods(&text, &p, 1);
		if (!strstr(str_text(&text), cases[i].says))
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
	}
}

/* 50 s until the handshake was done, 30 s of computing: the larger part is named. */
static void connecting_is_not_booting(void **state)
{
	(void)state;
	static const struct {
		int boot_s;
		const char *says;
	} cases[] = {{20, "into connecting (38%): each step waits for the network"},
		     {40, "into booting (50%): render more in one run"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row p = pod_with(50, 0, 30, 0);
		p.reached_ms = p.running_ms + cases[i].boot_s * 1000;
		add_of_pods(&text, &p, 1);
		if (!strstr(str_text(&text), cases[i].says))
			fail_msg("case %zu: it says \"%s\"", i, str_text(&text));
	}
}

/* Of 70 billed seconds 60 were computed. 40 were lost: 20 / 70 were kept. */
static void lost_work_is_no_work(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool preempted;
		int lost_s;
		const char *says;
	} cases[] = {
		{"nothing lost", false, 0, ""},
		{"reclaimed", true, 40,
		 "29% of the billed time computed what was kept; most of the rest went into work "
		 "that was lost (57%): save more often (job.checkpoint), or rent without `spot`\n"},
		{"failed", false, 40, "work that was lost (57%): see `burst logs`\n"},
		{"all of it", true, 60,
		 "0% of the billed time computed what was kept; most of the "},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row p = pod_with(10, 0, 60, 0);
		p.preempted = cases[i].preempted;
		p.wasted_ms = cases[i].lost_s * 1000;
		add_of_pods(&text, &p, 1);
		if (cases[i].says[0] ? !strstr(str_text(&text), cases[i].says) : text.len > 0)
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
	}
}

/* Both pods boot 20 s. The first one loses its 30 s of work and is replaced at once. Its provider
 * has it as ended 10 s later. 120 s are billed, 40 s are kept; one pod at a time needs 46.7 s. */
static void a_lost_pod_is_replaced_at_once(void **state)
{
	(void)state;
	static const char *const errors[] = {"the vendor reclaimed it (preempted)", "no answer"};

	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct pod_row pods[2] = {pod_with(20, 0, 30, 0), pod_with(20, 0, 40, 0)};
		struct pod_row *first = &pods[0];
		first->preempted = i == 0;
		COPY_TEXT(first->error, errors[i]);
		first->wasted_ms = 30000;
		first->worked_ms = first->safe_ms = first->release_ms = 0;
		first->released_ms += 10000;
		first->gone_ms += 10000;
		first->billed_ms += 10000;
		shift(&pods[1], 50);
		add_of_pods(&text, pods, 2);
		const char *says = str_text(&text);
		if (!strstr(says, "33% of the billed time") || !strstr(says, "booting (33%)") ||
		    !strstr(says, "on 1 pod, this run had 40s") || strstr(says, "fewer pods"))
			fail_msg("%s: it says \"%s\"", errors[i], says);
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
		add_of_pods(&text, pods, 2);
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
		add_of_pods(&text, pods, (size_t)cases[i].pods);
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
		advice_add_seats(&text, &(struct advice_of){s, "r", &pod, 1, 1000000});
		if (cases[i].says ? strcmp(str_text(&text), cases[i].says) != 0 : text.len > 0)
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
		store_close(s);
	}
}

/* Each size took t(b) = .978 + .0217 b for segments of 100 characters, so S(20) / S(80) is 48 %. A
 * batch of one size, or a time that does not grow with b, does not tell S. */
static void seats_that_nothing_shows(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int sizes[3];
		double grows_s;
		int earlier; /* size of batches in a run before; 0: there was none */
		const char *says;
	} cases[] = {
		{"one size",
		 {20, 20, 20},
		 .0217,
		 0,
		 "used 50%, seats unknown: batches of 20 segments on average, where 80 fit; these "
		 "batches do not show what larger ones gain, `burst calibrate` does\n"},
		{"one size, and others in a run before", {20, 20, 20}, .0217, 40, "seats 48%: "},
		{"a time that shrinks", {18, 20, 22}, -.003, 0, "seats unknown: batches of 20 "},
		{"full batches of one size",
		 {80, 80, 80},
		 .0217,
		 0,
		 "seats 100%: batches of 80 segments on average, where 80 fit; full batches "
		 "without "
		 "a cold start cost 2.0 times less\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct store *s = store_memory();
		struct pod_row pod = pod_with(50, 0, 50, 0);
		struct batch_row rows[12] = {0};
		struct err err = {0};
		size_t count = cases[i].earlier ? 12 : 9;
		for (size_t k = 0; k < count; k++) {
			struct batch_row *b = &rows[k];
			b->segments = k < 9 ? cases[i].sizes[k % 3] : cases[i].earlier;
			b->most = 80;
			b->batching = ROW_BATCHING_PADDED;
			snprintf(b->id, sizeof(b->id), "%zu", k);
			COPY_TEXT(b->attempt, "a");
			COPY_TEXT(b->run, k < 9 ? "r" : "earlier");
			COPY_TEXT(b->speed, "e|o|none|local|1");
			b->longest = 100;
			b->sum = 100.0 * b->segments;
			b->took_ms = (int64_t)(978 + 1000 * cases[i].grows_s * b->segments);
			assert_int_equal(store_put_batch(s, b, &err), 0);
		}
		assert_int_equal(learn_fold(s, rows, count, true, 1000, &err), 0);
		advice_add_seats(&text, &(struct advice_of){s, "r", &pod, 1, 1000000});
		if (!strstr(str_text(&text), cases[i].says))
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
		store_close(s);
	}
}

/* Batches of three pods that begin at second 2. */
static void one_long_segment_is_named(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct {
			const char *pod;
			int done_s, took_s;
			double longest, sum;
		} batches[3];
		const char *says; /* NULL: nothing */
	} cases[] = {
		{"long",
		 {{"a", 22, 20, 400, 400}, {"b", 8, 6, 30, 120}, {"c", 9, 7, 30, 150}},
		 "one long segment took 20s of the 20s in which the run rendered, 13s of it with "
		 "no "
		 "other batch left: split it, or use fewer pods\n"},
		{"long with a short one",
		 {{"a", 22, 20, 400, 420}, {"b", 8, 6, 30, 120}, {"c", 9, 7, 30, 150}},
		 "one long segment took 20s"},
		{"two long ones",
		 {{"a", 22, 20, 400, 400}, {"b", 22, 20, 400, 400}, {"c", 9, 7, 30, 150}},
		 NULL},
		{"many short ones",
		 {{"a", 22, 20, 30, 400}, {"b", 8, 6, 30, 120}, {"c", 9, 7, 30, 150}},
		 NULL},
		{"one pod",
		 {{"a", 22, 14, 400, 400}, {"a", 8, 6, 30, 120}, {"a", 5, 3, 30, 60}},
		 NULL},
		{"hardly longer",
		 {{"a", 12, 10, 400, 400}, {"b", 8, 6, 30, 120}, {"c", 10, 8, 30, 150}},
		 NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		struct store *s = store_memory();
		struct pod_row pods[3] = {pod_with(1, 0, 20, 0), pod_with(1, 0, 20, 0),
					  pod_with(1, 0, 20, 0)};
		struct err err = {0};
		for (size_t k = 0; k < 3; k++) {
			struct batch_row b = {.segments = 4,
					      .longest = cases[i].batches[k].longest,
					      .sum = cases[i].batches[k].sum,
					      .took_ms = cases[i].batches[k].took_s * 1000,
					      .done_ms = cases[i].batches[k].done_s * 1000};
			snprintf(b.id, sizeof(b.id), "%zu", k);
			COPY_TEXT(b.attempt, cases[i].batches[k].pod);
			COPY_TEXT(b.run, "r");
			assert_int_equal(store_put_batch(s, &b, &err), 0);
		}
		advice_add(&text, &(struct advice_of){s, "r", pods, 3, 1000000});
		if (cases[i].says ? !strstr(str_text(&text), cases[i].says) : text.len > 0)
			fail_msg("%s: it says \"%s\"", cases[i].name, str_text(&text));
		/* pods that waited for the long one: the line that follows has the cause */
		str_reset(&text);
		for (size_t k = 1; k < 3; k++)
			pods[k] = pod_with(1, 0, 6, 14);
		advice_add(&text, &(struct advice_of){s, "r", pods, 3, 1000000});
		bool named = strstr(str_text(&text),
				    "into waiting for one long segment (44%)\none long ") != NULL;
		if (named != (cases[i].says != NULL))
			fail_msg("%s, waiting: it says \"%s\"", cases[i].name, str_text(&text));
		store_close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(causes_are_named),
		cmocka_unit_test(a_replacement_is_no_width),
		cmocka_unit_test(what_shortens_a_sync),
		cmocka_unit_test(connecting_is_not_booting),
		cmocka_unit_test(lost_work_is_no_work),
		cmocka_unit_test(a_lost_pod_is_replaced_at_once),
		cmocka_unit_test(gpus_that_idle_or_are_pinned),
		cmocka_unit_test(width_that_pays),
		cmocka_unit_test(seats_of_engines_that_batch),
		cmocka_unit_test(seats_that_nothing_shows),
		cmocka_unit_test(one_long_segment_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
