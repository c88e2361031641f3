/* test_notify.c - which end of a run is which event, and what templates make of a run's JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cmd/notify_words.h"
#include "base/jsonx.h"
#include "base/mem.h"

static void ends_are_events(void **state)
{
	static const struct {
		enum run_status status;
		bool failed_before;
		enum notify_event event;
	} cases[] = {
		{RUN_DONE, false, NOTIFY_DONE},        {RUN_DONE, true, NOTIFY_RECOVERED},
		{RUN_PARTIAL, false, NOTIFY_FAILED},   {RUN_FAILED, true, NOTIFY_FAILED},
		{RUN_CAPPED, false, NOTIFY_CAPPED},    {RUN_UNRELEASED, true, NOTIFY_UNRELEASED},
		{RUN_INTERRUPTED, false, NOTIFY_NONE}, {RUN_RUNNING, true, NOTIFY_NONE},
		{RUN_UNKNOWN, false, NOTIFY_NONE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (notify_event_of(cases[i].status, cases[i].failed_before) != cases[i].event)
			fail_msg("%s", run_status_word(cases[i].status));
	for (int event = 0; event < NOTIFY_EVENTS; event++)
		assert_int_equal(notify_event_named(notify_event_name((enum notify_event)event)),
				 event);
	assert_int_equal(notify_event_named("none"), NOTIFY_NONE);
	assert_int_equal(notify_event_named(""), NOTIFY_NONE);
}

static const char run_text[] =
	"{\"run\":\"1125-1\",\"job\":\"quiz\",\"commit\":\"c0ffee\",\"status\":\"failed\","
	"\"output\":\"/o\",\"started_at\":\"2026-11-25T10:00:00Z\",\"ended_at\":null,"
	"\"segments\":{\"total\":3,\"rendered\":2,\"cached\":0,\"failed\":1},\"billed_seconds\":75."
	"0,\"compute_seconds\":1.5,\"cost_usd\":0.02,"
	"\"pods\":[{},{}],\"error\":{\"code\":\"job\",\"message\":\"it said \\\"no\\\"\\nand {job} "
	"\\u0007\",\"pod\":null}}";

static void check_fill(const char *template, const char *want)
{
	CLEANUP(json_decref) json_t *run = json_loads(run_text, 0, NULL);
	CLEANUP(str_free) struct str got = STR_INIT;
	struct err err = {0};

	assert_non_null(run);
	int status = notify_fill(&got, template, NOTIFY_FAILED, run, &err);
	if (want && status == 0)
		assert_string_equal(str_text(&got), want);
	else if (want || !strstr(err.msg, "is not a field; known: event, run, job"))
		fail_msg("%s: %s", template, err.msg);
}

static void templates_are_filled(void **state)
{
	(void)state;
	check_fill("", "");
	check_fill("{commit}", "c0ffee");
	check_fill("{event} {run} {job} {status} {output} {started} {ended}.",
		   "failed 1125-1 quiz failed /o 2026-11-25T10:00:00Z .");
	check_fill("{rendered}/{total} {cached} {failed} {pods} {cost} {billed} {compute} {code}",
		   "2/3 0 1 2 $0.0200 1m15s 1.5s job");
	/* values are not templates */
	check_fill("<{error}>", "<it said \"no\"\nand {job} \a>");
	check_fill(" {\"text\": \"{error}\", \"n\": {total}}",
		   " {\"text\": \"it said \\\"no\\\"\\nand {job} \\u0007\", \"n\": 3}");
	check_fill("[\"{job}\"]", "[\"quiz\"]");
	check_fill("{ {Job} {job {} {job", "{ {Job} {job {} {job");
	check_fill("{rendered} of {total}: {error}", "2 of 3: it said \"no\"\nand {job} \a");
	check_fill("[{job}] {error}", "[quiz] it said \"no\"\nand {job} \a");
	check_fill("{nothing}", NULL);
	check_fill("{pod}", NULL);
}

static void lines_are_lines(void **state)
{
	CLEANUP(json_decref) json_t *run = json_loads(run_text, 0, NULL);
	CLEANUP(json_decref) json_t *nothing = json_object();
	CLEANUP(str_free) struct str line = STR_INIT;

	(void)state;
	notify_title(&line, NOTIFY_CAPPED, run);
	assert_string_equal(str_text(&line), "burst: quiz: capped");
	str_reset(&line);
	notify_title(&line, NOTIFY_FAILED, nothing);
	assert_string_equal(str_text(&line), "burst: failed");
	str_reset(&line);
	notify_summary(&line, run);
	assert_non_null(strstr(str_text(&line),
			       "2 rendered, 0 cached, 1 failed of 3; $0.0200: it said \"no\""));
	assert_null(strpbrk(str_text(&line), "\n\a"));
	str_reset(&line);
	json_object_del(run, "error");
	notify_summary(&line, run);
	assert_string_equal(str_text(&line), "2 rendered, 0 cached of 3; $0.0200");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_events),
		cmocka_unit_test(templates_are_filled),
		cmocka_unit_test(lines_are_lines),
	};

	return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
