/* test_str.c - text: growing, cut, split, shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "checks.h"

/* ---- str ---- */

static void str_grows(void **state)
{
	CLEANUP(str_free) struct str s = STR_INIT;
	char want[3000];

	(void)state;
	assert_string_equal(str_text(&s), "");
	str_drop(&s, 5);
	memset(want, 'w', sizeof(want) - 1);
	want[sizeof(want) - 1] = '\0';
	str_addf(&s, "%s|%d", want, 7);
	assert_int_equal(s.len, sizeof(want) + 1);
	assert_true(ends_with(s.s, "w|7"));
	str_drop(&s, sizeof(want) - 1);
	assert_string_equal(s.s, "|7");
	str_addn(&s, "\0z", 2);
	assert_int_equal(s.len, 4);
	assert_memory_equal(s.s, "|7\0z", 5);
	char *text = str_detach(&s);
	assert_string_equal(text, "|7");
	free(text);
	assert_int_equal(s.len, 0);
	text = str_detach(&s);
	assert_string_equal(text, "");
	free(text);
}

/* Each line in brackets; "]" is missing after a line without its newline. */
static void add_line(struct str *to, const char *line, size_t len, bool whole)
{
	str_addc(to, '[');
	str_addn(to, line, len);
	if (whole)
		str_addc(to, ']');
}

static void texts_are_split_into_lines(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", ""},
		{"\n", "[]"},
		{"one", "[one"},
		{"one\n", "[one]"},
		{"one\r\n\ntwo", "[one\r][][two"},
		{"\n\nlast\n", "[][][last]"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		/* no NUL behind the bytes: reading past them is a finding of the sanitizers */
		size_t all = strlen(cases[i].text), len;
		CLEANUP(free_text)
		char *copy = memcpy(xmalloc(MAX(all, (size_t)1)), cases[i].text, all);
		CLEANUP(str_free) struct str of_text = STR_INIT, of_bytes = STR_INIT;
		const char *text = cases[i].text, *at = copy, *end = copy + all, *line;
		while ((line = str_next_line(&text, &len)))
			add_line(&of_text, line, len, line[len] == '\n');
		while ((line = bytes_next_line(&at, end, &len)))
			add_line(&of_bytes, line, len, line + len < end);
		assert_string_equal(str_text(&of_text), cases[i].want);
		assert_string_equal(str_text(&of_bytes), cases[i].want);
	}
}

static void the_last_line_has_words(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", ""},
		{" \r\n\n\t", ""},
		{"one", "one"},
		{"one\n two \r\n \n", " two"},
		{"one\n\ntwo", "two"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		size_t len;
		str_add(&text, cases[i].text);
		const char *line = str_last_line(&text, &len);
		assert_int_equal(len, strlen(cases[i].want));
		assert_memory_equal(line, cases[i].want, len);
	}
}

static void a_line_of_bytes_may_hold_nul(void **state)
{
	static const char bytes[] = "a\0b\nc";
	const char *at = bytes, *end = bytes + sizeof(bytes) - 1;
	size_t len;

	(void)state;
	assert_ptr_equal(bytes_next_line(&at, end, &len), bytes);
	assert_int_equal(len, 3);
	assert_string_equal(bytes_next_line(&at, end, &len), "c");
	assert_int_equal(len, 1);
	assert_null(bytes_next_line(&at, end, &len));
}

static void str_keeps_its_cap(void **state)
{
	CLEANUP(str_free) struct str s = STR_MAX(5);

	(void)state;
	str_add(&s, "abc");
	str_add(&s, "de");
	assert_false(s.over);
	str_add(&s, "");
	assert_false(s.over);
	str_addc(&s, 'f');
	assert_true(s.over);
	assert_string_equal(s.s, "abcde");
	str_reset(&s);
	assert_false(s.over);
	str_add(&s, "12345678");
	assert_true(s.over);
	assert_string_equal(s.s, "12345");
}

static void words_pass_through_sh(void **state)
{
	static const char *const words[] = {
		"plain",        "",
		"two words",    "it's",
		"''",           "'",
		"$HOME `id`",   "a\"b\\c\\",
		"new\nline",    "*?[a]~",
		"-n",           "a;b&c|d>e",
		"tab\there",    "caf\xc3\xa9",
		"\xff\xfe",     "!history #c",
		"trailing\n\n",
	};
	char everything[256];

	(void)state;
	for (int i = 1; i < 256; i++)
		everything[i - 1] = (char)i;
	everything[255] = '\0';
	for (size_t i = 0; i <= ARRAY_LEN(words); i++) {
		const char *word = i < ARRAY_LEN(words) ? words[i] : everything;
		CLEANUP(str_free) struct str command = STR_INIT;
		char got[512];
		str_add(&command, "printf %s ");
		str_add_shell(&command, word);
		FILE *f = popen(command.s, "r");
		assert_non_null(f);
		size_t n = fread(got, 1, sizeof(got) - 1, f);
		assert_int_equal(pclose(f), 0);
		got[n] = '\0';
		check_text("word", got, word);
	}
}

static const struct {
	const char *name, *bytes;
	size_t len, most;
	const char *want;
} printables[] = {
	{"plain", S("hello"), 0, "hello"},
	{"newline and escape", S("a\n\x1b[31mb"), 0, "a\\x0a\\x1b[31mb"},
	{"tab is a space", S("a\tb"), 0, "a b"},
	{"NUL and DEL", S("a\0b\x7f"), 0, "a\\x00b\\x7f"},
	{"UTF-8 stays", S("caf\xc3\xa9 \xf0\x9f\x98\x80"), 0, "caf\xc3\xa9 \xf0\x9f\x98\x80"},
	{"not UTF-8", S("a\xff\xc3"), 0, "a\\xff\\xc3"},
	{"C1 control",
	 S("\xc2\x9b"
	   "31m"),
	 0, "\\xc2\\x9b31m"},
	{"right to left override",
	 S("\xe2\x80\xae"
	   "abc"),
	 0,
	 "\\xe2\\x80\\xae"
	 "abc"},
	{"isolates", S("\xe2\x81\xa6"), 0, "\\xe2\\x81\\xa6"},
	{"line separator", S("\xe2\x80\xa8"), 0, "\\xe2\\x80\\xa8"},
	{"Arabic letter mark", S("\xd8\x9c"), 0, "\\xd8\\x9c"},
	{"a dash of the same block stays", S("\xe2\x80\x94"), 0, "\xe2\x80\x94"},
	{"cut", S("abcdef"), 3, "abc..."},
	{"not cut at the limit", S("abc"), 3, "abc"},
	{"never cut inside a character", S("ab\xc3\xa9 d"), 3, "ab..."},
	{"nor inside a long one", S("ab\xf0\x9f\x98\x80 d"), 5, "ab..."},
	{"cut behind a character", S("ab\xc3\xa9 d"), 4, "ab\xc3\xa9..."},
	{"bytes that are none are cut anywhere", S("a\x80\x80\x80\x80"), 3, "a\\x80\\x80..."},
};

static void foreign_text_is_made_printable(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(printables); i++) {
		CLEANUP(str_free) struct str got = STR_INIT;
		str_add_printable(&got, printables[i].bytes, printables[i].len, printables[i].most);
		check_text(printables[i].name, str_text(&got), printables[i].want);
	}
}

static const struct {
	const char *name, *bytes;
	size_t len;
	bool valid;
} utf8s[] = {
	{"empty", S(""), true},
	{"ASCII with NUL", S("a\0b"), true},
	{"U+0080", S("\xc2\x80"), true},
	{"U+07FF", S("\xdf\xbf"), true},
	{"U+0800", S("\xe0\xa0\x80"), true},
	{"U+FFFF", S("\xef\xbf\xbf"), true},
	{"U+10000", S("\xf0\x90\x80\x80"), true},
	{"U+10FFFF", S("\xf4\x8f\xbf\xbf"), true},
	{"overlong slash", S("\xc0\xaf"), false},
	{"overlong in three", S("\xe0\x80\xaf"), false},
	{"overlong in four", S("\xf0\x80\x80\xaf"), false},
	{"last overlong in four", S("\xf0\x8f\xbf\xbf"), false},
	{"first surrogate", S("\xed\xa0\x80"), false},
	{"last before the surrogates", S("\xed\x9f\xbf"), true},
	{"beyond the last", S("\xf4\x90\x80\x80"), false},
	{"five bytes", S("\xf8\x88\x80\x80\x80"), false},
	{"lone continuation", S("\x80"), false},
	{"cut short", S("\xe2\x82"), false},
	{"wrong continuation", S("\xe2\x28\xa1"), false},
};

static void utf8_edges(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(utf8s); i++)
		check_int(utf8s[i].name, utf8_valid(utf8s[i].bytes, utf8s[i].len), utf8s[i].valid);
}

static void nearest_word_is_near(void **state)
{
	static const char *const words[] = {"provider", "gpu", "pods", "spot", "caps", NULL};

	(void)state;
	assert_string_equal(nearest_word("provder", words), "provider");
	assert_string_equal(nearest_word("pod", words), "pods");
	assert_string_equal(nearest_word("pdos", words), "pods");
	assert_null(nearest_word("pfff", words));
	assert_null(nearest_word("zzzzzz", words));
	assert_null(nearest_word("", words));
}

/* ---- section ---- */

static void texts_are_cut_between_characters(void **state)
{
	static const struct {
		const char *text;
		size_t room;
		const char *want;
	} cases[] = {
		{"abc", 4, "abc"},
		{"abcd", 4, "abc"},
		{"ab\u00e9", 4, "ab"},
		{"a\u00e9", 4, "a\u00e9"},
		{"\u20ac\u20ac", 6, "\u20ac"},
		{"\U0001f600\U0001f600", 8, "\U0001f600"},
		{"\U0001f600", 4, ""},
		{"", 1, ""},
	};
	char to[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		format_text(to, cases[i].room, "%s", cases[i].text);
		assert_string_equal(to, cases[i].want);
		copy_text(to, cases[i].room, cases[i].text);
		assert_string_equal(to, cases[i].want);
		assert_int_equal(utf8_fit(cases[i].text, cases[i].room - 1), strlen(cases[i].want));
	}
}

static void long_texts_end_at_a_word(void **state)
{
	static const struct {
		const char *text;
		size_t room;
		const char *want;
	} cases[] = {
		{"a short text", 13, "a short text"},
		{"a short text", 12, "a short..."},
		{"error: no such file", 16, "error: no..."},
		{"error: no-such-file-here", 16, "error: no-su..."},
		{"failed, because of it", 13, "failed..."},
		{"aaaaaaaaaaaaaaa", 8, "aaaa..."},
		{"\u20ac\u20ac\u20ac\u20ac", 8, "\u20ac..."},
		{"", 8, ""},
	};
	char to[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		copy_words(to, cases[i].room, cases[i].text);
		assert_string_equal(to, cases[i].want);
	}
}

/* ---- mem ---- */

static void text_is_cut_between_characters(void **state)
{
	static const struct {
		const char *name, *from, *want;
	} cases[] = {
		{"fits", "abcd", "abcd"},
		{"cut", "abcdef", "abcd"},
		{"NULL", NULL, ""},
		{"a character that fits", "ab\xc3\xa9", "ab\xc3\xa9"},
		{"half a character", "abc\xc3\xa9", "abc"},
		{"a third of one", "abc\xe2\x82\xac", "abc"},
		{"three quarters of one", "a\xf0\x9f\x98\x80", "a"},
		{"a whole one before the cut", "ab\xc3\xa9z", "ab\xc3\xa9"},
		{"not UTF-8", "\x80\x80\x80\x80\x80\x80", "\x80\x80\x80\x80"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char to[5] = "????";
		COPY_TEXT(to, cases[i].from);
		check_text(cases[i].name, to, cases[i].want);
	}
	char self[8] = "abcdefg";
	COPY_TEXT(self, self + 2);
	assert_string_equal(self, "cdefg");
}

static void arrays_grow_and_values_move(void **state)
{
	int *list = NULL;
	size_t count = 0, cap = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		GROW(list, count, cap);
		list[count++] = i;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
	int *taken = TAKE(list);
	assert_null(list);
	free(taken);
	char *text = xasprintf("%d-%s", 7, "x");
	assert_string_equal(text, "7-x");
	free_text(text);
	free_text(NULL);
	file_close(NULL);
	fd_close(-1);
	text = xstrndup("abc", 2);
	assert_string_equal(text, "ab");
	free(text);
}

static void test_hex(void **state)
{
	static const char valid[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	char text[70];

	(void)state;
	assert_true(sha256_is_hex(valid));
	assert_true(starts_with_hex(valid, 64) && !starts_with_hex(valid, 65));
	assert_true(starts_with_hex("", 0) && starts_with_hex("ffx", 2));
	assert_false(starts_with_hex("ffx", 3));
	assert_false(sha256_is_hex(NULL));
	assert_false(sha256_is_hex(""));
	assert_false(sha256_is_hex(valid + 1));
	snprintf(text, sizeof(text), "%s0", valid);
	assert_false(sha256_is_hex(text));
	snprintf(text, sizeof(text), "%s", valid);
	text[63] = 'F';
	assert_false(sha256_is_hex(text));
	text[63] = 'g';
	assert_false(sha256_is_hex(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(str_grows),
		cmocka_unit_test(str_keeps_its_cap),
		cmocka_unit_test(texts_are_split_into_lines),
		cmocka_unit_test(the_last_line_has_words),
		cmocka_unit_test(a_line_of_bytes_may_hold_nul),
		cmocka_unit_test(words_pass_through_sh),
		cmocka_unit_test(foreign_text_is_made_printable),
		cmocka_unit_test(utf8_edges),
		cmocka_unit_test(nearest_word_is_near),
		cmocka_unit_test(texts_are_cut_between_characters),
		cmocka_unit_test(long_texts_end_at_a_word),
		cmocka_unit_test(text_is_cut_between_characters),
		cmocka_unit_test(arrays_grow_and_values_move),
		cmocka_unit_test(test_hex),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
