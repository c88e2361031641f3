/* test_made.c - what the files of a track are called, and which of an earlier one are removed. */
#include "join_bed.h"

#include <string.h>

/* ---- names ---- */

static void names_are_portable(void **state)
{
	static const struct {
		const char *title, *want; /* NULL: nothing of it can be in a name */
	} cases[] = {
		{"The Storm", "The Storm"},
		{"Alice: Through the Glass", "Alice - Through the Glass"},
		{"12:30", "12-30"},
		{"AC/DC \\ live", "AC-DC - live"},
		{"What? \"Why\" <*>|", "What Why"},
		{"...and then...", "and then"},
		{"-rf", "rf"},
		{"  two   blanks ", "two blanks"},
		{"\xd0\x92\xd0\xbe\xd0\xb9\xd0\xbd\xd0\xb0 \xe5\x92\x8c",
		 "\xd0\x92\xd0\xbe\xd0\xb9\xd0\xbd\xd0\xb0 \xe5\x92\x8c"},
		{"a\x1b[31m\xe2\x80\xae\x62", "a[31mb"},
		{"a very long title that goes on and on until no file system likes it any more",
		 "a very long title that goes on and on until no file system likes"},
		{"???", NULL},
		{"", NULL},
		{"\xff", NULL},
		{NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(free_text) char *got = join_portable_name(cases[i].title, 64);
		const char *want = cases[i].want ? cases[i].want : "(nothing)";
		if (strcmp(got ? got : "(nothing)", want) != 0)
			fail_msg("\"%s\": \"%s\", not \"%s\"", cases[i].title,
				 got ? got : "(nothing)", want);
		if (got && script_id_fault(got))
			fail_msg("\"%s\": %s", got, script_id_fault(got));
	}
	/* a cut never falls inside a character */
	CLEANUP(free_text)
	char *cut = join_portable_name("\xe5\x92\x8c\xe5\x92\x8c\xe5\x92\x8c", 8);
	assert_string_equal(cut, "\xe5\x92\x8c\xe5\x92\x8c");
}

static void tracks_have_names(void **state)
{
	static const struct {
		const char *name, *title, *want;
	} cases[] = {
		{"joined", "A Book", "joined"},
		{"{title}", "A Book: One", "A Book - One"},
		{"{title} read aloud", "A Book", "A Book read aloud"},
		{"{title}", NULL, "joined"},
		{"{title}", "???", "joined"},
		{"my book", NULL, "my book"},
	};
	static const struct {
		const char *name, *fault;
	} faults[] = {
		{"", "it is empty"},
		{"a/b", "it is not a regular file name"},
		{"{author}", "only {title} may stand in braces"},
		{"book.m4b", "leave out its ending"},
		{"book.WAV", "leave out its ending"},
		{"book.partial", "leave out its ending"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(free_text) char *got = join_name_make(cases[i].name, cases[i].title);
		assert_string_equal(got, cases[i].want);
		assert_null(join_name_fault(cases[i].name));
	}
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		const char *fault = join_name_fault(faults[i].name);
		assert_string_equal(fault ? fault : "no fault", faults[i].fault);
	}
	assert_null(join_name_fault("Mr. Smith"));
	CLEANUP(free_text) char *stem = join_chapter_stem(3, "The End?");
	assert_string_equal(stem, "chapter-03 The End");
	CLEANUP(free_text) char *plain = join_chapter_stem(0, NULL);
	assert_string_equal(plain, "chapter-00");
}

/* ---- files of earlier tracks ---- */

static const struct join_piece pieces[] = {{"a.wav", "First.", BORDER_NONE, 0},
					   {"a.wav", "Second.", BORDER_LINE, 1}};

/* Joins with these titles of the two chapters. */
static void join_as(const struct join_options *options, size_t count, const char *first,
		    const char *second, struct str *notes)
{
	const char *const titles[] = {first, second};
	struct err err = {0};

	str_free(notes);
	if (join_pieces(folder, pieces, count, titles, 2, options, notes, &err) < 0)
		fail_msg("%s", err.msg);
}

static void earlier_chapters_are_removed(void **state)
{
	struct join_options options = {PAUSES(0.5), .job = "book", .by_chapter = true};
	CLEANUP(str_free) struct str notes = STR_INIT;

	(void)state;
	clear_folder();
	put_tone("a.wav", 8000, 1, 1, 0.5, 0);
	put_text("chapter-07 My own.wav", "mine");
	join_as(&options, 2, "One", "Two", &notes);
	assert_true(is_there("chapter-01 One.wav") && is_there("chapter-02 Two.wav"));
	assert_null(strstr(str_text(&notes), "removed"));
	/* one is renamed */
	join_as(&options, 2, "One", "The End", &notes);
	assert_true(is_there("chapter-02 The End.wav"));
	assert_false(is_there("chapter-02 Two.wav"));
	assert_non_null(strstr(str_text(&notes),
			       "removed 1 file of an earlier track: chapter-02 Two.wav\n"));
	/* a track that lacks segments removes nothing */
	options.partial = true;
	join_as(&options, 1, "Other", "End", &notes);
	assert_true(is_there("chapter-01 One.wav") && is_there("chapter-02 The End.wav"));
	assert_true(is_there("joined.partial.wav"));
	/* nor does that of another job */
	options.partial = false;
	options.job = "other";
	options.name = "other";
	join_as(&options, 1, "Other", "End", &notes);
	assert_true(is_there("chapter-01 One.wav") && is_there("joined.wav") &&
		    is_there("other.wav"));
	/* what the user has changed stays */
	options.job = "book";
	options.name = NULL;
	put_text("chapter-02 The End.wav", "changed");
	join_as(&options, 1, "One", "End", &notes);
	assert_true(is_there("chapter-01 One.wav") && is_there("chapter-02 The End.wav"));
	assert_true(is_there("chapter-07 My own.wav") && is_there("chapter-01 Other.wav"));
	assert_false(is_there("joined.partial.wav"));
	assert_non_null(strstr(str_text(&notes), "joined.wav: 1.0s\n"));
}

static void an_earlier_name_is_removed(void **state)
{
	struct join_options options = {PAUSES(0.5), .subtitles = true};
	CLEANUP(str_free) struct str notes = STR_INIT;

	(void)state;
	clear_folder();
	put_tone("a.wav", 8000, 1, 1, 0.5, 0);
	join_as(&options, 2, "One", "Two", &notes);
	assert_true(is_there("joined.wav") && is_there("joined.srt"));
	options.name = "A Book";
	options.partial = true;
	join_as(&options, 1, "One", "Two", &notes);
	assert_true(is_there("joined.wav") && is_there("A Book.partial.wav"));
	options.partial = false;
	join_as(&options, 2, "One", "Two", &notes);
	assert_true(is_there("A Book.wav") && is_there("A Book.vtt") && is_there("chapters.txt"));
	assert_false(is_there("joined.wav") || is_there("joined.srt") ||
		     is_there("A Book.partial.wav"));
	assert_non_null(strstr(str_text(&notes), "A Book.srt, A Book.vtt: subtitles\n"));
}

/* The folder is the user's, so lines of its record may name anything. */
static void a_record_of_others(void **state)
{
	struct join_options options = {PAUSES(0.5)};
	CLEANUP(str_free) struct str notes = STR_INIT;

	(void)state;
	clear_folder();
	put_tone("a.wav", 8000, 1, 1, 0.5, 0);
	put_text("x", "mine");
	put_text(".joined.made", "{\"job\":\"\",\"file\":\"../x\",\"bytes\":4,\"mtime_s\":0}\n"
				 "{\"job\":\"\",\"file\":\"x\",\"bytes\":4,\"mtime_s\":1}\n[]\n\n{"
				 "\"file\":3}\n\xff\n"
				 "{\"job\":\"\",\"file\":\"x\"");
	join_as(&options, 2, "One", "Two", &notes);
	assert_true(is_there("x") && is_there("joined.wav"));
	CLEANUP(free_text) char *record = get_text(".joined.made");
	assert_null(strstr(record, "\"x\""));
	assert_non_null(strstr(record, "\"file\":\"joined.wav\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_portable),
		cmocka_unit_test(tracks_have_names),
		cmocka_unit_test(earlier_chapters_are_removed),
		cmocka_unit_test(an_earlier_name_is_removed),
		cmocka_unit_test(a_record_of_others),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
