/* test_section.c - settings with their defaults, and JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/jsonx.h"
#include "base/section.h"
#include "checks.h"

/* ---- section ---- */

static const struct option_spec caps_table[] = {
	{"max_cost", OPTION_MONEY, 0, "5", "stop before it has cost this much", NULL},
	{"max_duration", OPTION_DURATION, 0, "1h", "stop after this long", NULL},
	{0},
};

static const struct option_spec test_table[] = {
	{"name", OPTION_TEXT, 0, NULL, "", NULL},
	{"voice", OPTION_TEXT, 0, "en", "", NULL},
	{"pods", OPTION_INT, 0, "2", "", NULL},
	{"gain", OPTION_DECIMAL, 0, "-18.5", "", NULL},
	{"spot", OPTION_BOOL, 0, "true", "", NULL},
	{"gpu", OPTION_TEXTS, 0, "L40S", "", NULL},
	{"caps", OPTION_GROUP, 0, NULL, "", caps_table},
	{"then", OPTION_GROUPS, 0, NULL, "", caps_table},
	{0},
};

static void messages_hold_no_secret(void **state)
{
	struct err err;
	char big[600];

	(void)state;
	log_secret("hunter2hunter2");
	err_set(&err, ERR_JOB, "it said %s", "hunter2hunter2");
	assert_string_equal(err.msg, "it said [secret]");
	err_wrap(&err, "at %s", "hunter2hunter2");
	assert_string_equal(err.msg, "at [secret]: it said [secret]");
	memset(big, 'x', sizeof(big));
	/* cut, it would not be known for one */
	strcpy(big + sizeof(err.msg) - 6, "hunter2hunter2");
	err_set(&err, ERR_JOB, "%s", big);
	assert_null(strstr(err.msg, "hunt"));
}

static void a_section_has_its_defaults(void **state)
{
	CLEANUP(section_free) struct section *s = section_new(test_table, "burst.cfg:1");

	(void)state;
	assert_false(section_has(s, "voice"));
	assert_null(section_text(s, "name"));
	assert_string_equal(section_text(s, "voice"), "en");
	assert_int_equal(section_int(s, "pods"), 2);
	assert_true(section_decimal(s, "gain") == -18.5);
	assert_true(section_bool(s, "spot"));
	assert_int_equal(section_count(s, "gpu"), 1);
	assert_string_equal(section_item(s, "gpu", 0), "L40S");
	assert_int_equal(section_int(section_group(s, "caps"), "max_cost"), 5000000);
	assert_int_equal(section_int(section_group(s, "caps"), "max_duration"), 3600000);
	assert_string_equal(section_where(s, NULL), "burst.cfg:1");
	assert_string_equal(section_where(s, "voice"), "burst.cfg:1");
	assert_ptr_equal(section_table(s), test_table);
	section_free(NULL);
}

static void a_section_takes_what_the_file_says(void **state)
{
	CLEANUP(section_free) struct section *s = section_new(test_table, "burst.cfg:1");

	(void)state;
	section_set_text(s, "voice", "de", "burst.cfg:3");
	section_set_text(s, "voice", section_text(s, "voice"), section_where(s, "voice"));
	assert_string_equal(section_text(s, "voice"), "de");
	assert_string_equal(section_where(s, "voice"), "burst.cfg:3");
	section_set_int(s, "pods", 4, "a:1");
	assert_int_equal(section_int(s, "pods"), 4);
	section_set_int(s, "gain", 3, "a:1"); /* an integer where a decimal is meant */
	assert_true(section_decimal(s, "gain") == 3.0);
	section_set_decimal(s, "gain", 0.25, "a:2");
	assert_true(section_decimal(s, "gain") == 0.25);
	section_set_bool(s, "spot", false, "a:2");
	assert_false(section_bool(s, "spot"));
	section_add_item(s, "gpu", "RTX 4090", "a:3");
	section_add_item(s, "gpu", "RTX 5090", "a:3");
	assert_int_equal(section_count(s, "gpu"), 2);
	assert_string_equal(section_item(s, "gpu", 1), "RTX 5090");
	struct section *caps = section_set_group(s, "caps", "a:4");
	section_set_int(caps, "max_cost", 7, "a:5");
	assert_int_equal(section_int(section_group(s, "caps"), "max_cost"), 7);
	assert_string_equal(section_where(section_group(s, "caps"), NULL), "a:4");
	assert_ptr_equal(section_set_group(s, "caps", section_where(caps, NULL)), caps);
	assert_string_equal(section_where(caps, NULL), "a:4");
	assert_true(section_has(s, "caps"));
}

static void a_list_of_groups(void **state)
{
	CLEANUP(section_free) struct section *s = section_new(test_table, "a:1");

	(void)state;
	assert_int_equal(section_count(s, "then"), 0);
	section_set_int(section_add_group(s, "then", "a:2"), "max_cost", 7, "a:3");
	section_add_group(s, "then", "a:4");
	assert_int_equal(section_count(s, "then"), 2);
	assert_int_equal(section_int(section_group_at(s, "then", 0), "max_cost"), 7);
	assert_int_equal(section_int(section_group_at(s, "then", 1), "max_cost"), 5000000);
	assert_string_equal(section_where(section_group_at(s, "then", 1), NULL), "a:4");
	section_clear_items(s, "then");
	assert_int_equal(section_count(s, "then"), 0);
	assert_false(section_has(s, "then"));
}

static void an_empty_list_is_empty(void **state)
{
	CLEANUP(section_free) struct section *s = section_new(test_table, "a:1");

	(void)state;
	section_add_item(s, "gpu", NULL, "a:2");
	assert_true(section_has(s, "gpu"));
	assert_int_equal(section_count(s, "gpu"), 0);
}

/* ---- jsonx ---- */

static void json_is_read(void **state)
{
	static const char text[] = "{\"t\":\"x\",\"i\":3,\"r\":3.0,\"n\":2.5,\"b\":true,\"z\":null,"
				   "\"huge\":1e300}";
	json_t *o = jsonx_parse(text, strlen(text), NULL);

	(void)state;
	assert_non_null(o);
	assert_string_equal(jsonx_text(o, "t", "absent"), "x");
	assert_string_equal(jsonx_text(o, "i", "absent"), "absent");
	assert_string_equal(jsonx_text(o, "z", "absent"), "absent");
	assert_string_equal(jsonx_text(NULL, "t", "absent"), "absent");
	assert_int_equal(jsonx_int(o, "i", -1), 3);
	assert_int_equal(jsonx_int(o, "r", -1), 3);
	assert_int_equal(jsonx_int(o, "t", -1), -1);
	assert_int_equal(jsonx_int(o, "huge", -1), -1);
	assert_true(jsonx_number(o, "n", 0) == 2.5);
	assert_true(jsonx_number(o, "i", 0) == 3);
	assert_true(jsonx_number(o, "t", 7) == 7);
	assert_true(jsonx_bool(o, "b", false));
	assert_true(jsonx_bool(o, "i", true));
	char *line = jsonx_line(o);
	assert_true(starts_with(line, "{\"t\":\"x\",\"i\":3,\"r\":3.0,"));
	assert_null(strchr(line, '\n'));
	free(line);
	json_decref(o);
}

static void json_mistakes_are_named(void **state)
{
	static const struct {
		const char *name, *text;
		size_t len;
	} bad[] = {
		{"empty", S("")},
		{"a list", S("[1]")},
		{"a number", S("3")},
		{"two objects", S("{}{}")},
		{"cut off", S("{\"a\":1")},
		{"a key twice", S("{\"a\":1,\"a\":2}")},
		{"not UTF-8", S("{\"a\":\"\xff\"}")},
		{"drives the terminal", S("{\"a\":\x1b[2J}")},
		{"NUL", S("{}\0")},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = {0};
		if (jsonx_parse(bad[i].text, bad[i].len, &err))
			fail_msg("%s: accepted", bad[i].name);
		check_int(bad[i].name, err.kind, ERR_BUG);
		for (const char *p = err.msg; *p; p++)
			if ((unsigned char)*p < 0x20)
				fail_msg("%s: byte %d in the message", bad[i].name, *p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_hold_no_secret),
		cmocka_unit_test(a_section_has_its_defaults),
		cmocka_unit_test(a_section_takes_what_the_file_says),
		cmocka_unit_test(a_list_of_groups),
		cmocka_unit_test(an_empty_list_is_empty),
		cmocka_unit_test(json_is_read),
		cmocka_unit_test(json_mistakes_are_named),
	};

	return cmocka_run_group_tests_name("section", tests, NULL, NULL);
}
