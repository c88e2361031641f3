/* test_base.c - what every file uses: errors, text, clocks, paths, settings, logs, JSON, memory. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "base/path.h"
#include "base/program.h"
#include "base/section.h"
#include "base/str.h"
#include "folder.h"

#define S(text) (text), sizeof(text) - 1

static void check_text(const char *name, const char *got, const char *want)
{
	if (strcmp(got, want))
		fail_msg("%s: got \"%s\", want \"%s\"", name, got, want);
}

static void check_int(const char *name, int64_t got, int64_t want)
{
	if (got != want)
		fail_msg("%s: got %lld, want %lld", name, (long long)got, (long long)want);
}

/* ---- err ---- */

static void err_tells_its_story(void **state)
{
	struct err err = {.signal = 2, .retry_after_ms = 5};

	(void)state;
	assert_int_equal(err_set(&err, ERR_NETWORK, "reset by %s", "peer"), -1);
	assert_int_equal(err.signal, 0);
	assert_int_equal(err.retry_after_ms, 0);
	err.retry_after_ms = 700;
	assert_int_equal(err_wrap(&err, "segment %d", 12), -1);
	assert_int_equal(err_wrap(&err, "run 7"), -1);
	assert_string_equal(err.msg, "run 7: segment 12: reset by peer");
	assert_int_equal(err.kind, ERR_NETWORK);
	assert_int_equal(err.retry_after_ms, 700);
	assert_int_equal(err_set(&err, ERR_BUG, "again: %s", err.msg), -1);
	assert_string_equal(err.msg, "again: run 7: segment 12: reset by peer");
	err_clear(&err);
	assert_int_equal(err.kind, ERR_NONE);
	assert_string_equal(err.msg, "");
	assert_int_equal(err_set(NULL, ERR_BUG, "nobody listens"), -1);
	assert_int_equal(err_wrap(NULL, "nobody listens"), -1);
}

static void err_stays_inside_its_room(void **state)
{
	char much[2000];
	struct err err = {0};

	(void)state;
	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	err_set(&err, ERR_JOB, "%s", much);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	for (int i = 0; i < 9; i++)
		err_wrap(&err, "%s", much);
	assert_true(strlen(err.msg) < sizeof(err.msg));
}

static void err_gives_the_exit_status(void **state)
{
	static const struct {
		enum err_kind kind;
		int signal, want;
	} cases[] = {
		{ERR_NONE, 0, 0},          {ERR_JOB, 0, 1},           {ERR_LOCAL, 0, 1},
		{ERR_USAGE, 0, 2},         {ERR_CONFIG, 0, 2},        {ERR_CREDENTIALS, 0, 3},
		{ERR_NO_ACCOUNT, 0, 3},    {ERR_NO_CAPACITY, 0, 4},   {ERR_CAP, 0, 5},
		{ERR_NETWORK, 0, 6},       {ERR_AMBIGUOUS, 0, 6},     {ERR_BUSY, 0, 7},
		{ERR_UNRELEASED, 0, 9},    {ERR_INTERRUPTED, 1, 129}, {ERR_INTERRUPTED, 2, 130},
		{ERR_INTERRUPTED, 0, 143},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {.kind = cases[i].kind, .signal = cases[i].signal};
		check_int(err_kind_name(err.kind), err_exit_status(&err), cases[i].want);
	}
	for (enum err_kind k = ERR_NONE; k <= ERR_BUG; k++)
		assert_string_not_equal(err_kind_name(k), "unknown");
}

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

/* ---- clock ---- */

static const struct {
	const char *text;
	int64_t ms; /* -1: refused */
} durations[] = {
	{"90s", 90000}, {"20m", 1200000}, {"2h", 7200000},   {"1d", 86400000}, {"250ms", 250},
	{"0", 0},       {"15", -1},       {"1.5h", 5400000}, {"0.001s", 1},    {"", -1},
	{"s", -1},      {"-5s", -1},      {"+5s", -1},       {"5 s", -1},      {" 5s", -1},
	{"5s ", -1},    {"5x", -1},       {"0x10", -1},      {"1e3", -1},      {"nan", -1},
	{"inf", -1},    {"1h30m", -1},    {".", -1},         {"1..5s", -1},    {"99999999999d", -1},
	{"1,5h", -1},
};

static void durations_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
		int64_t ms = -1;
		struct err err = {0};
		int result = duration_parse(durations[i].text, &ms, &err);
		check_int(durations[i].text, ms, durations[i].ms);
		check_int(durations[i].text, result, durations[i].ms < 0 ? -1 : 0);
		check_int(durations[i].text, err.kind, result ? ERR_USAGE : ERR_NONE);
	}
}

static void durations_are_shown(void **state)
{
	static const struct {
		int64_t ms;
		const char *want;
	} cases[] = {
		{0, "0.0s"},         {849, "0.8s"},      {9949, "9.9s"},     {9950, "10s"},
		{41000, "41s"},      {59499, "59s"},     {59500, "1m00s"},   {185000, "3m05s"},
		{3599499, "59m59s"}, {3599500, "1h00m"}, {7800000, "2h10m"}, {90000000, "25h00m"},
	};
	char got[24];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_text("shown", duration_show(got, sizeof(got), cases[i].ms), cases[i].want);
}

static void times_are_written(void **state)
{
	char got[32];

	(void)state;
	check_text("epoch", clock_rfc3339(got, sizeof(got), 0), "1970-01-01T00:00:00Z");
	check_text("ms are dropped", clock_rfc3339(got, sizeof(got), 1795221667999),
		   "2026-11-21T00:41:07Z");
	int64_t before = clock_boot_ms();
	assert_true(clock_boot_ms() >= before);
	assert_true(clock_wall_ms() > 1700000000000);
}

static const struct {
	const char *text;
	int64_t microusd; /* -1: refused */
} moneys[] = {
	{"5", 5000000}, {"0.69", 690000}, {"$1.20", 1200000}, {".5", 500000},
	{"0", 0},       {"0.000001", 1},  {"", -1},           {"$", -1},
	{"-1", -1},     {"1.2.3", -1},    {"5 usd", -1},      {"0x5", -1},
	{"1e3", -1},    {"nan", -1},      {"$$5", -1},        {"2000000000", -1},
};

static void money_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(moneys); i++) {
		int64_t got = -1;
		int result = money_parse(moneys[i].text, &got, NULL);
		check_int(moneys[i].text, got, moneys[i].microusd);
		check_int(moneys[i].text, result, moneys[i].microusd < 0 ? -1 : 0);
	}
}

static void money_is_shown_and_counted(void **state)
{
	char got[32];

	(void)state;
	check_text("nothing", money_show(got, sizeof(got), 0), "$0.00");
	check_text("next to nothing", money_show(got, sizeof(got), 49), "<$0.0001");
	check_text("a hundredth of a cent", money_show(got, sizeof(got), 50), "$0.0001");
	check_text("cents", money_show(got, sizeof(got), 12300), "$0.0123");
	check_text("dollars", money_show(got, sizeof(got), 5250000), "$5.25");
	check_int("an hour", money_for(690000, 3600000), 690000);
	check_int("rounded up", money_for(690000, 1), 1);
	check_int("nothing", money_for(690000, 0), 0);
	check_int("what nobody wrote", money_for(INT64_MAX, INT64_MAX), MONEY_MOST);
	check_int("... and below nothing", money_for(INT64_MAX, INT64_MIN), -MONEY_MOST);
	check_int("years of the dearest", money_for(100000000, 315360000000), 8760000000000);
}

/* ---- path ---- */

static void paths_are_joined_and_split(void **state)
{
	static const struct {
		const char *dir, *name, *joined, *its_dir, *its_base;
	} cases[] = {
		{"a", "b", "a/b", "a", "b"}, {"a/", "b", "a/b", "a", "b"},
		{"a", "/b", "/b", "/", "b"}, {"", "b", "b", ".", "b"},
		{"/", "b", "/b", "/", "b"},  {"a/b", "c/d", "a/b/c/d", "a/b/c", "d"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(free_text) char *joined = path_join(cases[i].dir, cases[i].name);
		CLEANUP(free_text) char *dir = path_dir(joined);
		check_text("joined", joined, cases[i].joined);
		check_text("folder", dir, cases[i].its_dir);
		check_text("base", path_base(joined), cases[i].its_base);
	}
}

static const struct {
	const char *name, *path;
	bool safe;
} safes[] = {
	{"a file", "a.wav", true},
	{"in a folder", "a/b c/d.wav", true},
	{"hidden", ".a", true},
	{"three dots", "...", true},
	{"accents", "caf\xc3\xa9/\xe6\x97\xa5.wav", true},
	{"empty", "", false},
	{"absolute", "/etc/passwd", false},
	{"parent", "..", false},
	{"parent inside", "a/../b", false},
	{"parent last", "a/..", false},
	{"dot", "./a", false},
	{"dot last", "a/.", false},
	{"empty part", "a//b", false},
	{"slash last", "a/", false},
	{"backslash", "a\\b", false},
	{"newline", "a\nb", false},
	{"escape", "a\x1b[2J", false},
	{"DEL", "a\x7f", false},
	{"C1 control", "a\xc2\x9b", false},
	{"turns the text around", "a\xe2\x80\xaegpj.exe", false},
	{"not UTF-8", "a\xff", false},
	{"overlong parent", "\xc0\xae\xc0\xae/a", false},
};

static void only_safe_paths_pass(void **state)
{
	char long_part[300], long_path[1100];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(safes); i++)
		check_int(safes[i].name, path_is_safe(safes[i].path), safes[i].safe);

	memset(long_part, 'a', sizeof(long_part));
	long_part[255] = '\0';
	assert_true(path_is_safe(long_part));
	long_part[255] = 'a';
	long_part[256] = '\0';
	assert_false(path_is_safe(long_part));
	for (size_t i = 0; i < sizeof(long_path); i++)
		long_path[i] = i % 100 == 99 ? '/' : 'a';
	long_path[1024] = '\0';
	assert_true(path_is_safe(long_path));
	long_path[1024] = 'a';
	long_path[1025] = '\0';
	assert_false(path_is_safe(long_path));
}

static void folders_are_made(void **state)
{
	CLEANUP(free_text) char *deep = in_folder("made/a/b");
	CLEANUP(free_text) char *file = in_folder("made/file");
	CLEANUP(free_text) char *below = in_folder("made/file/x");
	struct stat st;
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(deep, 0700, &err), 0);
	assert_int_equal(path_mkdirs(deep, 0700, &err), 0);
	assert_int_equal(path_mkdirs("/", 0700, &err), 0);
	assert_int_equal(stat(deep, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(path_write(file, "x", 1, 0600, &err), 0);
	assert_int_equal(path_mkdirs(file, 0700, &err), -1);
	assert_int_equal(path_mkdirs(below, 0700, &err), -1);
	assert_int_equal(path_mkdirs("", 0700, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
}

static void files_are_written_whole(void **state)
{
	CLEANUP(free_text) char *dir = in_folder("written");
	CLEANUP(free_text) char *path = path_join(dir, "f");
	CLEANUP(str_free) struct str text = STR_INIT;
	struct stat st;
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(dir, 0700, &err), 0);
	assert_int_equal(path_write(path, "old", 3, 0600, &err), 0);
	assert_int_equal(path_write(path, "newer", 5, 0600, &err), 0);
	assert_int_equal(path_read(path, 5, &text, &err), 0);
	assert_string_equal(str_text(&text), "newer");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(path_read(path, 4, &text, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	/* nothing is left beside it: the folder is empty once the file is gone */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(path_write(path, "x", 1, 0600, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_int_equal(path_read(path, 5, &text, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static void a_failed_write_keeps_the_old(void **state)
{
	CLEANUP(free_text) char *path = in_folder("occupied");
	CLEANUP(free_text) char *inside = in_folder("occupied/inside");
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(inside, 0700, &err), 0);
	assert_int_equal(path_write(path, "x", 1, 0600, &err), -1); /* a folder stands there */
	assert_true(path_exists(inside));
	assert_int_equal(path_remove_tree(path, &err), 0);
}

static void trees_are_removed_but_not_what_they_point_at(void **state)
{
	CLEANUP(free_text) char *tree = in_folder("tree");
	CLEANUP(free_text) char *deep = in_folder("tree/a/b/c");
	CLEANUP(free_text) char *link_in = in_folder("tree/a/out");
	CLEANUP(free_text) char *kept = in_folder("kept");
	CLEANUP(free_text) char *kept_file = in_folder("kept/file");
	CLEANUP(free_text) char *link = in_folder("link");
	CLEANUP(free_text) char *link_slash = in_folder("link/");
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(deep, 0700, &err), 0);
	assert_int_equal(path_mkdirs(kept, 0700, &err), 0);
	assert_int_equal(path_write(kept_file, "x", 1, 0600, &err), 0);
	assert_int_equal(symlink(kept, link_in), 0);
	assert_int_equal(symlink(kept, link), 0);
	for (int i = 0; i < 300; i++) {
		CLEANUP(free_text) char *name = xasprintf("%s/%d", deep, i);
		FILE *f = fopen(name, "w");
		assert_non_null(f);
		fclose(f);
	}
	assert_int_equal(path_remove_tree(tree, &err), 0);
	assert_false(path_exists(tree));
	assert_true(path_exists(kept_file));
	assert_int_equal(path_remove_tree(link_slash, &err), 0);
	assert_false(path_exists(link));
	assert_true(path_exists(kept_file));
	assert_int_equal(path_remove_tree(kept, &err), 0);
	assert_int_equal(path_remove_tree(kept, &err), 0); /* absent is fine */
}

/* As a job may leave them: deeper than descriptors or a path reach, and closed to their owner. */
static void trees_are_removed_however_deep(void **state)
{
	enum { LEVELS = 3000, FILES = 100 };
	CLEANUP(free_text) char *tree = in_folder("tree");
	CLEANUP(free_text) char *taken = in_folder("tree/.burst-removal-0/x");
	struct rlimit was, few;
	struct err err = {0};

	(void)state;
	assert_int_equal(path_mkdirs(taken, 0700, &err), 0);
	int at = open(tree, O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < LEVELS; i++) {
		assert_int_equal(mkdirat(at, "d", 0700), 0);
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
		if (i % 7 == 0 && i)
			assert_int_equal(fchmod(at, 0), 0);
		close(at);
		at = next;
		assert_true(at >= 0);
	}
	close(at);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){.rlim_cur = FILES, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(path_remove_closed_tree(tree, &err), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_false(path_exists(tree));
}

/* Runs in a child: does it get the lock? Exits 0 when it is held by somebody named want. */
static void child_finds_it_locked(const char *path, const char *want)
{
	struct err err = {0};
	int fd = -1;

	if (path_lock(path, "the child", &fd, &err) == 0)
		_exit(2);
	_exit(err.kind == ERR_BUSY && !strcmp(err.msg, want) && fd == -1 ? 0 : 3);
}

static void a_lock_holds_across_processes(void **state)
{
	CLEANUP(free_text) char *path = in_folder("lock");
	struct err err = {0};
	int fd = -1, again = -1, status = -1;

	(void)state;
	assert_int_equal(path_lock(path, "run 7 (a longer note)\n", &fd, &err), 0);
	assert_int_equal(path_lock(path, "us", &again, &err), -1);
	assert_int_equal(err.kind, ERR_BUSY);
	assert_string_equal(err.msg, "run 7 (a longer note)");
	pid_t child = fork();
	if (child == 0)
		child_finds_it_locked(path, "run 7 (a longer note)");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd);

	assert_int_equal(path_lock(path, "short", &fd, &err), 0);
	assert_int_equal(path_lock(path, "us", &again, &err), -1);
	assert_string_equal(err.msg, "short");
	close(fd);
}

static void a_dead_process_leaves_no_lock(void **state)
{
	CLEANUP(free_text) char *path = in_folder("lock-dead");
	struct err err = {0};
	int ends[2], fd = -1;
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		int held = -1;
		if (path_lock(path, "child", &held, NULL) == 0)
			(void)!write(ends[1], "l", 1);
		pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(path_lock(path, "us", &fd, &err), -1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(path_lock(path, "us", &fd, &err), 0);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void free_room_is_known(void **state)
{
	(void)state;
	assert_true(path_free_bytes(folder) > 0);
	assert_int_equal(path_free_bytes("/does/not/exist"), -1);
}

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
	{0},
};

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

static void only_plain_files_are_read(void **state)
{
	char plain[] = "/tmp/burst-plain-XXXXXX";
	struct err err = {0};

	(void)state;
	assert_non_null(mkdtemp(plain));
	int dir = open(plain, O_RDONLY | O_DIRECTORY);
	CLEANUP(free_text) char *file = path_join(plain, "file");
	CLEANUP(free_text) char *link = path_join(plain, "link");
	CLEANUP(free_text) char *fifo = path_join(plain, "fifo");
	CLEANUP(free_text) char *absent = path_join(plain, "absent");
	CLEANUP(str_free) struct str text = STR_INIT;
	assert_int_equal(path_write(file, "text", 4, 0600, &err), 0);
	assert_int_equal(symlink(file, link), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(path_read_plain(file, 100, &text, &err), 0);
	assert_string_equal(str_text(&text), "text");
	assert_int_equal(path_read_plain_at(dir, "file", "file", 3, &text, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_int_equal(path_read_plain(link, 100, &text, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_non_null(strstr(err.msg, "link: is a link"));
	/* at once: nobody writes to it */
	assert_int_equal(path_read_plain(fifo, 100, &text, &err), -1);
	assert_non_null(strstr(err.msg, "fifo: is not a regular file"));
	assert_int_equal(path_read_plain("/dev/null", 100, &text, &err), -1);
	assert_int_equal(path_read_plain(plain, 100, &text, &err), -1);
	assert_int_equal(path_read_plain(absent, 100, &text, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	close(dir);
	path_remove_tree(plain, NULL);
}

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

static void an_empty_list_is_empty(void **state)
{
	CLEANUP(section_free) struct section *s = section_new(test_table, "a:1");

	(void)state;
	section_add_item(s, "gpu", NULL, "a:2");
	assert_true(section_has(s, "gpu"));
	assert_int_equal(section_count(s, "gpu"), 0);
}

/* ---- log ---- */

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

/* ---- programs ---- */

#define PROGRAM(...)                                                                               \
	(&(struct program){.argv = (const char *const[]){__VA_ARGS__, NULL}, .limit_ms = 20000})

static void programs_tell_what_they_say_and_how_they_end(void **state)
{
	struct str out = STR_INIT, said = STR_INIT;
	struct err err = {0};

	(void)state;
	assert_int_equal(program_run(PROGRAM("sh", "-c", "echo one; echo two >&2; exit 3"), &out,
				     &said, &err),
			 3);
	assert_string_equal(str_text(&out), "one\n");
	assert_string_equal(str_text(&said), "two\n");
	assert_int_equal(program_run(PROGRAM("sh", "-c", "kill -TERM $$"), NULL, NULL, &err),
			 128 + SIGTERM);
	assert_int_equal(program_must(PROGRAM("sh", "-c", "echo first >&2; echo last >&2; exit 1"),
				      NULL, NULL, &err),
			 -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_string_equal(err.msg, "sh failed with exit status 1: last");
	str_free(&out);
	str_free(&said);
}

/* More than a pipe holds both ways: neither side may wait for the other. */
static void programs_read_and_write_at_once(void **state)
{
	struct str in = STR_INIT, out = STR_INIT;
	struct err err = {0};

	(void)state;
	while (in.len < (1 << 20))
		str_add(&in, "a line of the input of a program\n");
	struct program *p = PROGRAM("cat");
	p->input = str_text(&in);
	assert_int_equal(program_run(p, &out, NULL, &err), 0);
	assert_int_equal(out.len, in.len);
	assert_string_equal(str_text(&out), str_text(&in));
	p = PROGRAM("true");
	p->input = str_text(&in); /* one that reads nothing of it */
	assert_int_equal(program_run(p, NULL, NULL, &err), 0);
	str_free(&in);
	str_free(&out);
}

static void programs_that_cannot_be_run_or_do_not_end(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(program_run(PROGRAM("no-such-program-anywhere"), NULL, NULL, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	struct program *p = PROGRAM("true");
	p->folder = "/no/such/folder";
	assert_int_equal(program_run(p, NULL, NULL, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	p = PROGRAM("sleep", "60");
	p->limit_ms = 100;
	assert_int_equal(program_run(p, NULL, NULL, &err), -1);
	assert_int_equal(err.kind, ERR_TRANSIENT);
	p = PROGRAM("sh", "-c", "exec >&- 2>&-; sleep 60");
	p->limit_ms = 100;
	assert_int_equal(program_run(p, NULL, NULL, &err), -1);
	/* what it leaves behind keeps its files open, and is not waited for */
	int64_t began = clock_boot_ms();
	assert_int_equal(program_run(PROGRAM("sh", "-c", "sleep 5 & exit 4"), NULL, NULL, &err), 4);
	assert_true(clock_boot_ms() - began < 4000);
	assert_true(program_found("sh"));
	assert_false(program_found("no-such-program-anywhere"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_tells_its_story),
		cmocka_unit_test(err_stays_inside_its_room),
		cmocka_unit_test(err_gives_the_exit_status),
		cmocka_unit_test(str_grows),
		cmocka_unit_test(str_keeps_its_cap),
		cmocka_unit_test(texts_are_split_into_lines),
		cmocka_unit_test(a_line_of_bytes_may_hold_nul),
		cmocka_unit_test(words_pass_through_sh),
		cmocka_unit_test(foreign_text_is_made_printable),
		cmocka_unit_test(utf8_edges),
		cmocka_unit_test(nearest_word_is_near),
		cmocka_unit_test(durations_are_read),
		cmocka_unit_test(durations_are_shown),
		cmocka_unit_test(times_are_written),
		cmocka_unit_test(money_is_read),
		cmocka_unit_test(money_is_shown_and_counted),
		cmocka_unit_test(paths_are_joined_and_split),
		cmocka_unit_test(only_safe_paths_pass),
		cmocka_unit_test(folders_are_made),
		cmocka_unit_test(files_are_written_whole),
		cmocka_unit_test(a_failed_write_keeps_the_old),
		cmocka_unit_test(trees_are_removed_but_not_what_they_point_at),
		cmocka_unit_test(trees_are_removed_however_deep),
		cmocka_unit_test(a_lock_holds_across_processes),
		cmocka_unit_test(a_dead_process_leaves_no_lock),
		cmocka_unit_test(free_room_is_known),
		cmocka_unit_test(texts_are_cut_between_characters),
		cmocka_unit_test(only_plain_files_are_read),
		cmocka_unit_test(messages_hold_no_secret),
		cmocka_unit_test(a_section_has_its_defaults),
		cmocka_unit_test(a_section_takes_what_the_file_says),
		cmocka_unit_test(an_empty_list_is_empty),
		cmocka_unit_test(logs_say_what_is_wanted),
		cmocka_unit_test(secrets_are_redacted),
		cmocka_unit_test(json_is_read),
		cmocka_unit_test(json_mistakes_are_named),
		cmocka_unit_test(text_is_cut_between_characters),
		cmocka_unit_test(arrays_grow_and_values_move),
		cmocka_unit_test(programs_tell_what_they_say_and_how_they_end),
		cmocka_unit_test(programs_read_and_write_at_once),
		cmocka_unit_test(programs_that_cannot_be_run_or_do_not_end),
	};

	return cmocka_run_group_tests_name("base", tests, make_folder, drop_folder);
}
