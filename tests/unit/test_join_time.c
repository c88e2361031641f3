/* test_join_time.c - how long joining takes: a short join says nothing of a long one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cmd/show/view.h"

/* What joining truly takes on the machine of a case. */
struct truth {
	double fixed_ms, ms_per_s;
};

static double took(const struct truth *t, double sound_s)
{
	return t->fixed_ms + t->ms_per_s * sound_s;
}

static const struct {
	const char *name;
	double ms_per_s, slowdown; /* of the prior */
	struct truth truth;
	double learned_from[4]; /* seconds of sound of the joins before; 0: no more */
	double sound_s;
	double off_ms, off_share; /* at most so far from the truth: the larger of both */
} cases[] = {
	{"first run, short", 0.3, 1, {5, 0.16}, {0}, 2, 150, 0},
	{"first run, 2 h 40 min", 0.3, 1, {5, 0.16}, {0}, 9594, 2000, 0},
	{"first run with loudness, half an hour", 3.4, 1, {300, 3.6}, {0}, 1800, 0, 0.33},
	{"the same where six processes want each processor", 3.4, 6, {900, 18}, {0}, 1800, 0, 0.33},
	{"first run, eight hours, where seven processes want each processor",
	 0.3,
	 7,
	 {5, 0.36},
	 {0},
	 28800,
	 0,
	 0.33},
	{"two seconds, then 2 h 40 min", 0.3, 1, {5, 0.16}, {2}, 9594, 2000, 0},
	{"two seconds on a slow disk, then 2 h 40 min", 0.3, 1, {800, 0.16}, {2}, 9594, 2000, 0},
	{"two seconds thrice, then ten hours", 0.3, 1, {5, 0.5}, {2, 2, 2}, 36000, 0, 0.5},
	{"one long join, then a long one", 0.3, 1, {5, 0.16}, {9594}, 9594, 0, 0.1},
	{"a long join, then a short one", 0.3, 1, {5, 0.16}, {9594}, 2, 150, 0},
	{"short, long, short, then long", 3.4, 1, {900, 3}, {2, 7200, 2}, 7200, 0, 0.1},
	{"a busy machine", 3.4, 1, {300, 25}, {1800}, 3600, 0, 0.1},
};

static void a_join_is_foretold(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct join_time j = join_time_prior(cases[i].ms_per_s, cases[i].slowdown);
		for (size_t n = 0; n < 4 && cases[i].learned_from[n] > 0; n++)
			join_time_learn(&j, cases[i].learned_from[n],
					took(&cases[i].truth, cases[i].learned_from[n]));
		double is = took(&cases[i].truth, cases[i].sound_s),
		       said = join_time_ms(&j, cases[i].sound_s),
		       off = said > is ? said - is : is - said;
		if (off > cases[i].off_ms && off > cases[i].off_share * is)
			fail_msg("%s: said %.0f ms, took %.0f ms", cases[i].name, said, is);
	}
}

/* However wrong the expectation is: from a third of the join on, what is left is known. */
static void what_is_left_follows_what_is_done(void **state)
{
	static const double expected_ms[] = {0, 1000, 30e3, 71e3, 200e3};
	const double all_ms = 71e3;

	(void)state;
	for (size_t i = 0; i < sizeof(expected_ms) / sizeof(*expected_ms); i++) {
		struct join_pace pace = {0};
		double before = expected_ms[i], share;
		assert_true(join_time_left_ms(&pace, expected_ms[i], 0, 0) == expected_ms[i]);
		for (share = 0.34; share < 1.001; share += 0.02) {
			double said = join_time_left_ms(&pace, expected_ms[i], share * all_ms,
							share),
			       is = (1 - share) * all_ms, off = said > is ? said - is : is - said;
			if (off > is / 3 + 1)
				fail_msg("expected %.0f ms, %.0f%% done: said %.0f ms, %.0f are "
					 "left",
					 expected_ms[i], share * 100, said, is);
			if (share > 0.35 && said > before)
				fail_msg("expected %.0f ms, %.0f%% done: it grew from %.0f to %.0f "
					 "ms",
					 expected_ms[i], share * 100, before, said);
			before = said;
		}
	}
	assert_true(join_time_slowdown() >= 1 && join_time_slowdown() <= 8);
}

/* A copy fills memory first, and is then as slow as the disk. */
static void what_is_left_follows_the_present_pace(void **state)
{
	static const struct {
		const char *name;
		double fast_ms, fast_share, all_ms, expected_ms;
	} paces[] = {
		{"a page cache, then a disk", 4000, 0.6, 20e3, 5000},
		{"the same, nothing expected", 4000, 0.6, 20e3, 0},
		{"large files", 30e3, 0.7, 200e3, 30e3},
		{"a burst before it begins", 200, 0.3, 60e3, 1000},
		{"one that becomes faster", 30e3, 0.2, 60e3, 100e3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paces) / sizeof(*paces); i++) {
		const double fast = paces[i].fast_ms, slow = paces[i].all_ms - fast;
		struct join_pace pace = {0};
		for (double t = 0; t < paces[i].all_ms; t += 200) {
			double share = t < fast ? paces[i].fast_share * t / fast
						: paces[i].fast_share + (1 - paces[i].fast_share) *
										(t - fast) / slow;
			double said = join_time_left_ms(&pace, paces[i].expected_ms, t, share),
			       is = paces[i].all_ms - t, off = said > is ? said - is : is - said;
			if (t > fast + 5200 && t > 1.35 * fast && off > is / 3 + 100)
				fail_msg("%s: after %.0f ms: said %.0f ms, %.0f are left",
					 paces[i].name, t, said, is);
		}
	}
}

static void it_comes_back_as_written(void **state)
{
	static const char *const bad[] = {"", "0.156", "x y", "-1 2", "nan 1", "1 inf", "1e9 1"};
	struct join_time j = {12.5, 0.1563}, got = {7, 7};
	char text[64];

	(void)state;
	join_time_write(&j, text);
	assert_true(join_time_read(&got, text));
	assert_true(got.fixed_ms == 12.5 && got.ms_per_s == 0.1563);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (join_time_read(&got, bad[i]))
			fail_msg("\"%s\" was read", bad[i]);
	assert_true(got.fixed_ms == 12.5 && got.ms_per_s == 0.1563);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_join_is_foretold),
		cmocka_unit_test(what_is_left_follows_what_is_done),
		cmocka_unit_test(what_is_left_follows_the_present_pace),
		cmocka_unit_test(it_comes_back_as_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
