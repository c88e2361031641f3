/* test_quiet.c - when a pod that says nothing, or pretends to work, counts as stuck: second by
 * second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "engine/link.h"

static const struct {
	const char *name;
	struct quiet_now now;
	int64_t est_ms;
	const char *says; /* every `each_s` seconds; NULL: nothing */
	int each_s;
	bool fruitful, asked;
	int least_s, most_s; /* when it is stuck; most_s 0: never within three hours */
	const char *why;
} cases[] = {
	{"answers nothing",
	 {QUIET_NONE, 60000, 600000, false},
	 0,
	 NULL,
	 0,
	 false,
	 true,
	 180,
	 182,
	 "its agent has not answered"},
	{"answers nothing, on a short lease",
	 {QUIET_NONE, 60000, 10000, false},
	 0,
	 NULL,
	 0,
	 false,
	 true,
	 20,
	 22,
	 "its agent has not answered"},
	{"was asked nothing",
	 {QUIET_NONE, 60000, 600000, false},
	 0,
	 NULL,
	 0,
	 false,
	 false,
	 0,
	 0,
	 NULL},
	{"a batch, and leases alone",
	 {QUIET_BATCH, 60000, 600000, false},
	 0,
	 "lease",
	 100,
	 false,
	 true,
	 120,
	 122,
	 "no sign of its work"},
	{"a long batch",
	 {QUIET_BATCH, 60000, 600000, false},
	 30000,
	 "lease",
	 100,
	 false,
	 true,
	 360,
	 362,
	 "no sign of its work"},
	{"a batch while a worker loads",
	 {QUIET_BATCH, 60000, 600000, true},
	 0,
	 "lease",
	 100,
	 false,
	 true,
	 360,
	 362,
	 "no sign of its work"},
	{"a batch, with its worker's lines alone",
	 {QUIET_BATCH, 60000, 600000, false},
	 0,
	 "log",
	 30,
	 false,
	 true,
	 3000,
	 3002,
	 "its work has not advanced"},
	{"a batch, segment by segment",
	 {QUIET_BATCH, 60000, 600000, false},
	 0,
	 "segment",
	 100,
	 true,
	 true,
	 0,
	 0,
	 NULL},
	{"a worker that loads without a word",
	 {QUIET_START, 60000, 600000, false},
	 0,
	 "lease",
	 100,
	 false,
	 true,
	 360,
	 362,
	 "no sign of its work"},
	{"a worker that says for ever that it loads",
	 {QUIET_START, 60000, 600000, false},
	 0,
	 "log",
	 100,
	 false,
	 true,
	 1980,
	 1982,
	 "its preparation has not finished"},
	{"a setup that does not end",
	 {QUIET_SETUP, 60000, 600000, false},
	 0,
	 "log",
	 10,
	 false,
	 true,
	 1980,
	 1982,
	 "its preparation has not finished"},
	{"an install that does not end",
	 {QUIET_INSTALL, 60000, 600000, false},
	 0,
	 "log",
	 10,
	 false,
	 true,
	 1080,
	 1082,
	 "its preparation has not finished"},
};

static void limits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct quiet q = {0};
		char why[100] = "";
		int s = 0;
		quiet_sent(&q, cases[i].est_ms, true);
		for (bool well = true; well && s < 3 * 3600; s++) {
			q.answer_due = q.answer_due || cases[i].asked;
			if (cases[i].says && s % cases[i].each_s == 0)
				quiet_event(&q, cases[i].says, cases[i].fruitful);
			well = quiet_tick(&q, &cases[i].now, why, sizeof(why));
		}
		bool stuck = why[0] != '\0';
		if (stuck != (cases[i].most_s > 0) ||
		    (stuck && (s < cases[i].least_s || s > cases[i].most_s ||
			       !starts_with(why, cases[i].why))))
			fail_msg("%s: after %d s: %s", cases[i].name, s, why);
	}
}

static void a_next_task_has_its_own_time(void **state)
{
	struct quiet q = {0};
	struct quiet_now now = {QUIET_SETUP, 60000, 600000, false};
	char why[100];

	(void)state;
	for (int s = 0; s < 1900; s++)
		assert_true(quiet_tick(&q, &now, why, sizeof(why)));
	now.task = QUIET_INSTALL;
	for (int s = 0; s < 1000; s++)
		assert_true(quiet_tick(&q, &now, why, sizeof(why)));
	quiet_sent(&q, 60000, true);
	quiet_sent(&q, 10000, false);
	assert_int_equal(q.est_ms, 60000);
	quiet_sent(&q, 10000, true);
	assert_int_equal(q.est_ms, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits),
		cmocka_unit_test(a_next_task_has_its_own_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
