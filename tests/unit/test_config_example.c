/* test_config_example.c - the config that `burst init` writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/example.h"
#include "config_bed.h"
#include "folder.h"

static void test_example_opens(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	(void)state;
	example_config(&text, "my \"job\"", "[\"local\"]", &known_tts, known_providers);
	CLEANUP(config_free) struct config *c = must_open(NULL, str_text(&text));
	assert_string_equal(config_job_name(c), "my \"job\"");
	assert_null(strstr(str_text(&text), "api_key"));
}

static void test_short_example(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct job_ops unknown = {.type = "unknown"};
	int lines = 0;

	(void)state;
	assert_true(example_short(&text, "my \"job\"", "[\"local\"]", &known_tts));
	for (const char *p = str_text(&text); *p; p++)
		lines += *p == '\n';
	assert_in_range(lines, 8, 15);
	assert_non_null(strstr(str_text(&text), "name = \"my \\\"job\\\"\";"));
	assert_false(example_short(&text, "x", "[\"local\"]", &unknown));
}

/* Every line that stands there as a comment can be taken into use. */
static void test_example_uncommented_opens(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str bare = STR_INIT;

	(void)state;
	example_config(&text, "x", "[\"local\"]", &known_tts, known_providers);
	for (const char *line = str_text(&text); *line;) {
		size_t len = strcspn(line, "\n"), tabs = strspn(line, "\t");
		bool setting = !strncmp(line + tabs, "# ", 2) &&
			       (memmem(line, len, " = ", 3) || memmem(line, len, "};", 2));
		str_addn(&bare, setting ? line + tabs + 2 : line, setting ? len - tabs - 2 : len);
		str_addc(&bare, '\n');
		line += len + 1;
	}
	CLEANUP(config_free) struct config *c = must_open(NULL, str_text(&bare));
	assert_true(section_has(config_top(c), "keep_on_failure"));
	assert_true(section_has(config_provider(c, "local"), "price_per_hour"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_example_opens),
		cmocka_unit_test(test_short_example),
		cmocka_unit_test(test_example_uncommented_opens),
	};

	return cmocka_run_group_tests_name("config_example", tests, enter_home, leave_folder);
}
