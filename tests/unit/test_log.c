/* test_log.c - what is logged, and what is redacted in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/str.h"
#include "checks.h"

struct heard {
	enum log_level level;
	struct str text;
};

static void hear(void *ctx, enum log_level level, const char *line)
{
	struct heard *heard = ctx;

	heard->level = level;
	str_add(&heard->text, line);
	str_addc(&heard->text, '\n');
}

static void logs_say_what_is_wanted(void **state)
{
	struct heard heard = {0};

	(void)state;
	log_setup(LOG_NOTE, hear, &heard);
	log_line(LOG_NOTE, "pod %s", "p1");
	log_line(LOG_INFO, "not this");
	assert_int_equal(heard.level, LOG_NOTE);
	assert_string_equal(str_text(&heard.text), "pod p1\n");
	assert_true(log_wants(LOG_ERROR));
	assert_false(log_wants(LOG_DEBUG));
	log_setup(LOG_TRACE, NULL, NULL);
	assert_false(log_wants(LOG_ERROR));
	log_line(LOG_ERROR, "into the void");
	str_free(&heard.text);
}

static void check_redacted(const char *name, const char *bytes, size_t len, const char *want,
			   size_t want_len)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_addn(&text, bytes, len);
	log_redact(&text);
	if (text.len != want_len || memcmp(text.s, want, want_len))
		fail_msg("%s: got \"%s\", want \"%s\"", name, text.s, want);
}

static void secrets_are_redacted(void **state)
{
	struct heard heard = {0};
	struct str empty = STR_INIT;

	(void)state;
	log_secret("rpa_ABCDEF");
	log_secret("rpa_ABCDEF_and_more");
	log_secret("rpa_ABCDEF");
	log_secret("secret"); /* stands in the very word that replaces it */
	log_secret("short");  /* too short to be looked for */
	log_secret(NULL);
	log_secret("");
	check_redacted("once", S("key=rpa_ABCDEF;"), S("key=[secret];"));
	check_redacted("twice", S("rpa_ABCDEFrpa_ABCDEF"), S("[secret][secret]"));
	check_redacted("the longer of two", S("<rpa_ABCDEF_and_more>"), S("<[secret]>"));
	check_redacted("behind a NUL", S("a\0rpa_ABCDEF\0b"), S("a\0[secret]\0b"));
	check_redacted("nearly", S("rpa_ABCDE"), S("rpa_ABCDE"));
	check_redacted("short ones stay", S("short"), S("short"));
	check_redacted("the word itself", S("a secret!"), S("a [secret]!"));
	log_redact(&empty);
	assert_int_equal(empty.len, 0);

	log_setup(LOG_TRACE, hear, &heard);
	log_line(LOG_TRACE, "authorization: Bearer %s", "rpa_ABCDEF_and_more");
	assert_string_equal(str_text(&heard.text), "authorization: Bearer [secret]\n");
	str_free(&heard.text);
	log_setup(LOG_NOTE, NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logs_say_what_is_wanted),
		cmocka_unit_test(secrets_are_redacted),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
