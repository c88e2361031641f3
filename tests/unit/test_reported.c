/* test_reported.c - which reports of a finished file are believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/jsonx.h"
#include "base/mem.h"
#include "engine/engine.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *label, *name, *event;
	enum report_fault fault;
} cases[] = {
	{"as an agent reports it", "a.wav",
	 "{\"path\":\"runs/r1/0123/out/a.wav\",\"sha256\":\"" HASH "\",\"bytes\":100}",
	 REPORT_FINE},
	{"empty", "a.wav", "{\"path\":\"a\",\"sha256\":\"" HASH "\",\"bytes\":0}", REPORT_FINE},
	{"as large as can be", "a.wav", "{\"path\":\"a\",\"sha256\":\"" HASH "\",\"bytes\":1000}",
	 REPORT_FINE},
	{"larger", "a.wav", "{\"path\":\"a\",\"sha256\":\"" HASH "\",\"bytes\":1001}",
	 REPORT_TOO_LARGE},
	{"less than nothing", "a.wav", "{\"path\":\"a\",\"sha256\":\"" HASH "\",\"bytes\":-1}",
	 REPORT_INVALID},
	{"of no size", "a.wav", "{\"path\":\"a\",\"sha256\":\"" HASH "\"}", REPORT_INVALID},
	{"a size that is no number", "a.wav",
	 "{\"path\":\"a\",\"sha256\":\"" HASH "\",\"bytes\":\"1\"}", REPORT_INVALID},
	{"a path out of the volume", "a.wav",
	 "{\"path\":\"../../etc/passwd\",\"sha256\":\"" HASH "\",\"bytes\":1}", REPORT_INVALID},
	{"an absolute path", "a.wav",
	 "{\"path\":\"/etc/passwd\",\"sha256\":\"" HASH "\",\"bytes\":1}", REPORT_INVALID},
	{"no path", "a.wav", "{\"sha256\":\"" HASH "\",\"bytes\":1}", REPORT_INVALID},
	{"no hash", "a.wav", "{\"path\":\"a\",\"bytes\":1}", REPORT_INVALID},
	{"half a hash", "a.wav", "{\"path\":\"a\",\"sha256\":\"0123456789abcdef\",\"bytes\":1}",
	 REPORT_INVALID},
	{"letters that no hash has", "a.wav",
	 "{\"path\":\"a\",\"sha256\":"
	 "\"X123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
	 "\"bytes\":1}",
	 REPORT_INVALID},
	{"a name out of the output folder", "../a.wav",
	 "{\"path\":\"a\",\"sha256\":\"" HASH "\",\"bytes\":1}", REPORT_INVALID},
	{"without a name", NULL, "{\"path\":\"a\",\"sha256\":\"" HASH "\",\"bytes\":1}",
	 REPORT_INVALID},
};

static void test_what_is_believed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *event = jsonx_parse(cases[i].event, strlen(cases[i].event), NULL);
		struct reported_file file;
		assert_non_null(event);
		enum report_fault got = reported_file(event, cases[i].name, 1000, &file);
		if (got != cases[i].fault)
			fail_msg("%s: %d, not %d", cases[i].label, got, cases[i].fault);
		json_decref(event);
	}
}

static void test_numbers_are_bounded(void **state)
{
	static const char text[] = "{\"seconds\":-3,\"rate\":-1}",
			  large[] = "{\"seconds\":1e300,\"rate\":99999999999}",
			  plain[] = "{\"seconds\":1.5}";
	json_t *event = jsonx_parse(text, strlen(text), NULL);

	(void)state;
	assert_true(reported_seconds(event) == 0);
	assert_int_equal(reported_rate(event), 0);
	json_decref(event);
	event = jsonx_parse(large, strlen(large), NULL);
	assert_true(reported_seconds(event) == 1e7);
	assert_in_range(reported_rate(event), 0, 1 << 24);
	json_decref(event);
	event = jsonx_parse(plain, strlen(plain), NULL);
	assert_true(reported_seconds(event) == 1.5);
	json_decref(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_believed),
		cmocka_unit_test(test_numbers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
