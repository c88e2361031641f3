/* test_reap.c - what `burst reap` ends, and what it leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/mem.h"
#include "core/core.h"

enum { NOW_S = 1800000000 };

static const struct reap_known stranger = {0}, living = {.ours = true, .alive = true},
			       living_detached = {.ours = true, .alive = true, .detached = true},
			       dead = {.ours = true},
			       working = {.ours = true, .detached = true, .at_work = true},
			       over = {.ours = true, .ended = true},
			       again = {.ours = true, .ended = true, .alive = true},
			       idle = {.ours = true, .detached = true};

static const struct {
	const char *name;
	const struct reap_known *known;
	enum pod_state state;
	int64_t hard_end_s; /* from now */
	bool forced, unmarked;
	enum reap_what want;
} pods[] = {
	{"gone already", &idle, POD_STATE_GONE, -9000, true, false, REAP_PASS},
	{"its mark was taken from it: nobody knows until when it is wanted", &stranger,
	 POD_STATE_RUNNING, -9000, false, true, REAP_LEAVE},
	{"its mark was taken from it, and it was named", &stranger, POD_STATE_RUNNING, -9000, true,
	 true, REAP_FORCED},
	{"of another machine", &stranger, POD_STATE_RUNNING, 600, false, false, REAP_LEAVE},
	{"of another machine, at its hard end", &stranger, POD_STATE_RUNNING, -299, false, false,
	 REAP_LEAVE},
	{"of another machine, long past it", &stranger, POD_STATE_RUNNING, -301, false, false,
	 REAP_PAST},
	{"of another machine, and named", &stranger, POD_STATE_RUNNING, 600, true, false,
	 REAP_FORCED},
	{"long past it, and its client lives", &living, POD_STATE_STOPPED, -301, false, false,
	 REAP_PAST},
	{"its client lives", &living, POD_STATE_CREATING, 600, false, false, REAP_LEAVE},
	{"its client lives, and has handed over what was left", &living_detached,
	 POD_STATE_CREATING, 600, false, false, REAP_LEAVE},
	{"its client is dead: that run was given back before", &dead, POD_STATE_RUNNING, 600, false,
	 false, REAP_LEAVE},
	{"its run has ended: nobody waits for it", &over, POD_STATE_RUNNING, 600, false, false,
	 REAP_ENDED},
	{"its run has ended, and is at it again", &again, POD_STATE_RUNNING, 600, false, false,
	 REAP_LEAVE},
	{"its client is dead, and its agent works on", &working, POD_STATE_RUNNING, 600, false,
	 false, REAP_LEAVE},
	{"its client is dead, and it never came up", &idle, POD_STATE_CREATING, 600, false, false,
	 REAP_ORPHAN},
	{"its client is dead, and it was being released", &idle, POD_STATE_RUNNING, 600, false,
	 false, REAP_ORPHAN},
	{"it works on, but was named", &working, POD_STATE_RUNNING, 600, true, false, REAP_FORCED},
};

static void test_pods(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
		struct pod_view view = {.id = "p1",
					.state = pods[i].state,
					.marker = {.attempt = "a1",
						   .run = "r1",
						   .hard_end_s = NOW_S + pods[i].hard_end_s}};
		if (pods[i].unmarked)
			view.marker.attempt[0] = '\0';
		enum reap_what got =
			reap_pod(&view, pods[i].known, pods[i].forced, NOW_S * INT64_C(1000));
		if (got != pods[i].want)
			fail_msg("%s: %d, not %d", pods[i].name, (int)got, (int)pods[i].want);
	}
}

static const struct {
	const char *name;
	bool detached;
	int64_t last_s; /* its last hard end, from now; 0: it has no pods */
	bool want;
} runs[] = {
	{"its client held it", false, 600, true},
	{"without pods", false, 0, true},
	{"its agents go on", true, 600, false},
	{"its agents had to end by now, and may be a little late", true, -299, false},
	{"its agents have ended, or never will", true, -301, true},
	{"detached, and without pods", true, 0, true},
};

static void test_runs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (reap_run(runs[i].detached, runs[i].last_s ? NOW_S + runs[i].last_s : 0,
			     NOW_S * INT64_C(1000)) != runs[i].want)
			fail_msg("%s: not %d", runs[i].name, runs[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pods),
		cmocka_unit_test(test_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
