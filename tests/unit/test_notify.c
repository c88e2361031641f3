/* test_notify.c - which end of a run is which event, and what templates make of a run's JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cmd/show/notify_text.h"
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
	check_fill("{summary}",
		   "it said \"no\"\\x0aand {job} \\x07; 2 rendered, 0 cached, 1 failed of 3; "
		   "$0.0200; run 1125-1");
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
	assert_ptr_equal(strstr(str_text(&line), "it said \"no\""), str_text(&line));
	assert_non_null(strstr(str_text(&line),
			       "; 2 rendered, 0 cached, 1 failed of 3; $0.0200; run 1125-1"));
	assert_null(strpbrk(str_text(&line), "\n\a"));
	json_object_set_new(run, "run", json_string("")); /* it never began: nothing to count */
	str_reset(&line);
	notify_summary(&line, run);
	assert_null(strstr(str_text(&line), "rendered"));
	str_reset(&line);
	json_object_del(run, "error");
	notify_summary(&line, run);
	assert_string_equal(str_text(&line), "2 rendered, 0 cached of 3; $0.0200");
	json_object_set_new(run, "pods",
			    json_pack("[{s:s, s:s, s:b}, {s:s, s:s, s:b}]", "id", "p1", "provider",
				      "runpod", "released", 1, "id", "p2", "provider", "modal",
				      "released", 0));
	str_reset(&line);
	notify_summary(&line, run);
	assert_string_equal(str_text(&line),
			    "pod p2 of modal may still be billing: burst reap p2 --force; "
			    "2 rendered, 0 cached of 3; $0.0200");
}

static void ntfy_is_for_people(void **state)
{
	static const struct {
		const char *url;
		bool people;
	} cases[] = {
		{"https://ntfy.sh/x", true},
		{"https://ntfy.example.org:8443/x", true},
		{"https://me:word@ntfy.example.org/x", true},
		{"https://example.org/ntfy.sh", false},
		{"https://example.org/x@ntfy.sh", false},
		{"https://myntfy.org/x", false},
		{"ntfy", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (notify_is_for_people(cases[i].url) != cases[i].people)
			fail_msg("%s", cases[i].url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_events),
		cmocka_unit_test(templates_are_filled),
		cmocka_unit_test(lines_are_lines),
		cmocka_unit_test(ntfy_is_for_people),
	};

	return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
