/* test_report.c - phases of pods, and what is shown as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/jsonx.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"

/* ---- phases ---- */

#define LIVED                                                                                      \
	.create_ms = 1000, .running_ms = 3000, .reached_ms = 3500, .connected_ms = 3600,           \
	.synced_ms = 4600

static const struct {
	const char *name;
	struct pod_row pod;
	int64_t phases[PHASES]; /* queue boot connect sync load compute idle fetch kept release */
	int64_t wall_ms;
} lives[] = {
	{"a whole life",
	 {LIVED, .ready_ms = 5000, .worked_ms = 15000, .safe_ms = 15500, .release_ms = 15510,
	  .released_ms = 15600, .gone_ms = 21000, .compute_ms = 9000},
	 {2000, 500, 100, 1000, 400, 9000, 1000, 500, 0, 5500},
	 20000},
	{"it never answered",
	 {.create_ms = 1000, .running_ms = 3000, .release_ms = 600000, .gone_ms = 606000},
	 {2000, 597000, 0, 0, 0, 0, 0, 0, 0, 6000},
	 605000},
	{"cut off at work",
	 {LIVED, .ready_ms = 5000, .release_ms = 9000, .gone_ms = 10000, .compute_ms = 3500},
	 {2000, 500, 100, 1000, 400, 3500, 500, 0, 0, 1000},
	 9000},
	{"cut off at work, and what was finished came home",
	 {LIVED, .ready_ms = 5000, .safe_ms = 9000, .release_ms = 9000, .gone_ms = 10000,
	  .compute_ms = 3500},
	 {2000, 500, 100, 1000, 400, 3500, 0, 500, 0, 1000},
	 9000},
	{"cut off in its second batch",
	 {LIVED, .ready_ms = 5000, .worked_ms = 6000, .safe_ms = 9000, .release_ms = 9000,
	  .gone_ms = 10000, .compute_ms = 3500},
	 {2000, 500, 100, 1000, 400, 3500, 0, 500, 0, 1000},
	 9000},
	{"it lives and works",
	 {LIVED, .ready_ms = 5000, .compute_ms = 2000},
	 {2000, 500, 100, 1000, 400, 2000, 25000, 0, 0, 0},
	 31000},
	{"a mark that nobody saw",
	 {.create_ms = 1000, .reached_ms = 3500, .connected_ms = 3600, .gone_ms = 5000},
	 {0, 2500, 100, 1400, 0, 0, 0, 0, 0, 0},
	 4000},
	{"a clock that went back",
	 {.create_ms = 1000,
	  .running_ms = 900,
	  .reached_ms = 1500,
	  .release_ms = 1200,
	  .gone_ms = 2000},
	 {0, 500, 0, 0, 0, 0, 0, 0, 0, 500},
	 1000},
	{"kept for another run, and released",
	 {.create_ms = 1000,
	  .running_ms = 1000,
	  .kept_ms = 1000,
	  .release_ms = 9000,
	  .gone_ms = 9500},
	 {0, 0, 0, 0, 0, 0, 0, 0, 8000, 500},
	 8500},
	{"kept still",
	 {.create_ms = 1000, .running_ms = 1000, .kept_ms = 1000},
	 {0, 0, 0, 0, 0, 0, 0, 0, 31000, 0},
	 31000},
	{"handed over by the client that kept it",
	 {.create_ms = 1000,
	  .running_ms = 1000,
	  .kept_ms = 1000,
	  .release_ms = 9000,
	  .gone_ms = 9000},
	 {0, 0, 0, 0, 0, 0, 0, 0, 8000, 0},
	 8000},
	{"only an intent", {.attempt = "x"}, {0}, 0},
};

static void test_phases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lives); i++) {
		int64_t got[PHASES], sum = 0;
		struct pod_facts f;
		report_phases(&lives[i].pod, 32000, got);
		for (int p = 0; p < PHASES; p++) {
			sum += got[p];
			if (got[p] != lives[i].phases[p])
				fail_msg("%s: %s: got %lld, want %lld", lives[i].name,
					 phase_name((enum phase)p), (long long)got[p],
					 (long long)lives[i].phases[p]);
		}
		pod_facts_of(&f, &lives[i].pod, 32000);
		assert_int_equal(f.age_ms, lives[i].wall_ms);
		assert_int_equal(sum, lives[i].wall_ms);
	}
}

static void test_json_of_odd_bytes(void **state)
{
	struct run_row run = {
		.id = "r1", .output = "/tmp/\xff", .status = RUN_DONE, .cost_microusd = 100000};
	struct pod_row pod = {.create_ms = 1000,
			      .gone_ms = 1300,
			      .state = POD_ROW_GONE,
			      .gpu = "a\xfe",
			      .billed_ms = 300};
	json_t *object = report_run_json(&run, &pod, 1, 2000);
	CLEANUP(free_text) char *line = output_json_line(object);

	(void)state;
	json_decref(object);
	assert_non_null(strstr(line, "/tmp/\\\\xff"));
	assert_non_null(strstr(line, "\"cost_usd\":0.1,"));
	assert_non_null(strstr(line, "\"billed_seconds\":0.3,"));
}

static void test_json_names_what_may_bill(void **state)
{
	struct run_row run = {.id = "r1",
			      .status = RUN_UNRELEASED,
			      .error_code = "unreleased",
			      .error = "a pod is left"};
	struct pod_row pods[] = {{.create_ms = 1,
				  .id = "p1",
				  .state = POD_ROW_GONE,
				  .gone_ms = 2,
				  .error = "it stopped by itself"},
				 {.create_ms = 1, .id = "p2", .state = POD_ROW_LIVE}};
	json_t *object = report_run_json(&run, pods, 2, 2000);
	CLEANUP(free_text) char *line = output_json_line(object);

	(void)state;
	json_decref(object);
	assert_non_null(strstr(line, "\"error\":{\"code\":\"unreleased\",\"message\":\"a pod is "
				     "left\",\"pod\":\"p2\"}"));
	assert_non_null(strstr(line, "\"errors\":[{\"code\":\"pod\",\"message\":\"it stopped by "
				     "itself\",\"pod\":\"p1\"}]"));
}

static void test_json_drives_no_terminal(void **state)
{
	static const char foreign[] = "\xc2\x9b"
				      "2J\x7f\xe2\x80\xae\xd8\x9c\xc3\xa4\xf0\x9f\x98\x80\033[m";
	CLEANUP(json_decref) json_t *text = json_pack("{s:s}", "gpu", foreign);
	CLEANUP(free_text) char *line = output_json_line(text);
	CLEANUP(json_decref) json_t *again = json_loads(line, 0, NULL);

	(void)state;
	assert_string_equal(
		line,
		"{\"gpu\":\"\\u009b2J\\u007f\\u202e\\u061c\xc3\xa4\xf0\x9f\x98\x80\\u001B[m\"}");
	assert_string_equal(json_string_value(json_object_get(again, "gpu")), foreign);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_json_of_odd_bytes),
		cmocka_unit_test(test_json_names_what_may_bill),
		cmocka_unit_test(test_json_drives_no_terminal),
	};

	return cmocka_run_group_tests_name("cmd", tests, NULL, NULL);
}
