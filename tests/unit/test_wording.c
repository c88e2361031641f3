/* test_wording.c - what a script's words become before an engine speaks them: pauses are taken out,
 * words of the lexicon replaced, long texts cut; what people read keeps the script's own words. */
#include "tts_helpers.h"

#include "jobs/text/script.h"
#include "jobs/tts/state.h"

static const struct phoneme_marks no_ipa = {.engine = "espeak"};

static struct lexicon *lexicon(const char *text)
{
	struct lexicon *l = NULL;
	struct err err = {0};

	if (lexicon_read(&l, "words.tsv", text, strlen(text), &no_ipa, &err) < 0)
		fail_msg("%s", err.msg);
	return l;
}

static void words_are_replaced(void **state)
{
	static const struct {
		const char *words, *text, *spoken;
	} rows[] = {
		{"nginx\tengine x\n", "nginx, not Nginx or nginxes.",
		 "engine x, not Nginx or nginxes."},
		{"AI\tA I\n", "AI said MAID, AI.", "A I said MAID, A I."},
		/* the longest */
		{"New York\tNoo York\nNew\tNyoo\n", "New York is New.", "Noo York is Nyoo."},
		/* nothing is replaced twice */
		{"a\tb\nb\tc\n", "a b", "b c"},
		/* ends with no letter */
		{"C++\tC plus plus\n", "C++ and C++17", "C plus plus and C plus plus17"},
		{"# no word\n\nStra\xc3\x9f"
		 "e\tstrasse\r\n",
		 "Stra\xc3\x9f"
		 "e, Stra\xc3\x9f"
		 "en",
		 "strasse, Stra\xc3\x9f"
		 "en"},
		{"\xef\xbb\xbf"
		 "x\ty\n",
		 "x", "y"},
		{"", "as it is", "as it is"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct lexicon *l = lexicon(rows[i].words);
		CLEANUP(lexicon_text_free) struct lexicon_text t = {0};
		lexicon_apply(l, rows[i].text, strlen(rows[i].text), &t);
		assert_string_equal(t.spoken, rows[i].spoken);
		CLEANUP(free_text)
		char *shown = lexicon_shown(&t, rows[i].text, 0, strlen(t.spoken));
		assert_string_equal(shown, rows[i].text);
		lexicon_free(l);
	}
}

static void a_cut_within_a_word_shows_it_once(void **state)
{
	static const char text[] = "Ask nginx now";
	struct lexicon *l = lexicon("nginx\tengine x\n");
	CLEANUP(lexicon_text_free) struct lexicon_text t = {0};

	(void)state;
	lexicon_apply(l, text, strlen(text), &t); /* "Ask engine x now" */
	CLEANUP(free_text) char *first = lexicon_shown(&t, text, 0, strlen("Ask engine"));
	CLEANUP(free_text)
	char *second = lexicon_shown(&t, text, strlen("Ask engine "), strlen(t.spoken));
	assert_string_equal(first, "Ask nginx");
	assert_string_equal(second, "now");
	CLEANUP(free_text)
	char *inside = lexicon_shown(&t, text, strlen("Ask engine "), strlen("Ask engine x"));
	assert_string_equal(inside, "x"); /* never an empty subtitle */
	lexicon_free(l);
}

static void bad_lexicons_are_named(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"a\tb\nno tab\n",
		 "words.tsv:2: no tab; write the word, a tab, and how to speak it"},
		{"\tb\n", "words.tsv:1: no word before the tab"},
		{"a\t \n", "words.tsv:1: nothing after the tab: how is \"a\" spoken?"},
		{"a\tb\n\na\tc\n", "words.tsv:3: \"a\" is in line 1 already"},
		{"\xff\tb\n", "words.tsv:1: not valid UTF-8; save the file as UTF-8"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct lexicon *l = NULL;
		struct err err = {0};
		assert_int_equal(lexicon_read(&l, "words.tsv", rows[i].text, strlen(rows[i].text),
					      &no_ipa, &err),
				 -1);
		assert_string_equal(err.msg, rows[i].message);
		assert_int_equal(err.kind, ERR_CONFIG);
	}
}

static void pauses_are_cut_out(void **state)
{
	static const struct {
		const char *text, *parts[3];
		double before_s[3];
	} rows[] = {
		{"One.", {"One."}, {0}},
		{"One. [pause 0.5s] Two.", {"One.", "Two."}, {0, 0.5}},
		{"[pause 500ms]One [pause 2 s]", {"", "One", ""}, {0, 0.5, 2}},
		{"the [pauses] and [pause", {"the [pauses] and [pause"}, {0}},
		{"[pause 1s][pause 1.5s] x", {"", "", "x"}, {0, 1, 1.5}},
		{"a [pause:2s] b", {"a", "b"}, {0, 2}},
		{"a [PAUSE 1s] b", {"a", "b"}, {0, 1}},
		{"a [pause: 500ms] b", {"a", "b"}, {0, 0.5}},
		{"a [pause=1s] b", {"a", "b"}, {0, 1}},
		{"a [pause = 1,5 sec] b", {"a", "b"}, {0, 1.5}},
		{"a [pause for 1s] b", {"a", "b"}, {0, 1}},
		{"a {pause:1s} b", {"a", "b"}, {0, 1}},
		{"a (pause) b [pause] c", {"a", "b", "c"}, {0, 1, 1}},
		{"a [short pause] b (long pause) c", {"a", "b", "c"}, {0, 0.5, 2}},
		{"a (long-break) b [pause short] c", {"a", "b", "c"}, {0, 2, 0.5}},
		{"a [break 500ms] b", {"a", "b"}, {0, 0.5}},
		{"a [1s pause] b [silence: 2 seconds] c", {"a", "b", "c"}, {0, 1, 2}},
		{"a <break time=\"500ms\"/> b <break time='1.5s' /> c",
		 {"a", "b", "c"},
		 {0, 0.5, 1.5}},
		{"a <break/> b <break strength=\"x-strong\"/> c", {"a", "b", "c"}, {0, 0.75, 1.25}},
		{"a <BREAK strength=medium></break> b", {"a", "", "b"}, {0, 0.75, 0}},
		{"a <break strength='none'/> b <silence msec=\"250\"/> c",
		 {"a", "b", "c"},
		 {0, 0, 0.25}},
		{"a [[slnc 500]] b <#1.5#> c", {"a", "b", "c"}, {0, 0.5, 1.5}},
		{"a (break a leg) b", {"a (break a leg) b"}, {0}},
		{"(break 2 eggs) [break a leg] [silences] (pause 5 minutes)",
		 {"(break 2 eggs) [break a leg] [silences] (pause 5 minutes)"},
		 {0}},
		{"the [long pauses] of 1 < 2 (see [3])",
		 {"the [long pauses] of 1 < 2 (see [3])"},
		 {0}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pause_part *parts;
		const char *bad;
		size_t bad_len, count = pause_parts(rows[i].text, &parts, &bad, &bad_len);
		assert_null(bad);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].parts); k++) {
			if (!rows[i].parts[k])
				continue;
			assert_true(k < count);
			assert_int_equal(parts[k].len, strlen(rows[i].parts[k]));
			assert_memory_equal(parts[k].text, rows[i].parts[k], parts[k].len);
			assert_float_equal(parts[k].before_s, rows[i].before_s[k], 1e-9);
		}
		free(parts);
	}
}

static void scene_breaks_are_known(void **state)
{
	static const char *const yes[] = {"***",   "* * *", "---",    "- - -", "#",         "###",
					  "~",     "~~~",   "•••",    "• • •", "⁂",         "—",
					  "– – –", "___",   "+++",    "=====", "-oOo-",     "o0o",
					  "❦",     "☙ ❧",   "◆",      "★ ★ ★", "§",         "· · ·",
					  "※",     "*~*~*", "<><><>", "-*-",   "＊　＊　＊"};
	static const char *const no[] = {"...", "!?",  "1",   "* a *", "", "I",
					 "oo",  "ooo", "XXX", "&",     "😀"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(yes) + ARRAY_LEN(no); i++) {
		CLEANUP(str_free) struct str line = STR_INIT;
		bool want = i < ARRAY_LEN(yes);
		const char *raw = want ? yes[i] : no[i - ARRAY_LEN(yes)];
		split_normalise(&line, raw, strlen(raw));
		if (pause_is_scene_break(str_text(&line)) != want)
			fail_msg("\"%s\" was %s for a scene break", raw,
				 want ? "not taken" : "taken");
	}
}

static void chapters_are_known(void **state)
{
	static const char *const yes[] = {"# Chapter 1",
					  "## One",
					  "Chapter 1",
					  "CHAPTER ONE",
					  "Chapter I.",
					  "chapter twenty-one",
					  "Chapter 3: The Storm",
					  "Chapter 3 - The Storm",
					  "Chapter 3 — was it?",
					  "Chapter 12 The Storm",
					  "Part Two",
					  "BOOK THE FIRST",
					  "Kapitel 1",
					  "2. Kapitel",
					  "Erstes Kapitel",
					  "ZWÖLFTES KAPITEL",
					  "Chapitre premier",
					  "CAPÍTULO 4",
					  "Capitolo terzo",
					  "Hoofdstuk 7. Water",
					  "Rozdział IV",
					  "Глава 3",
					  "ГЛАВА ПЕРВАЯ",
					  "Prologue",
					  "EPILOG",
					  "Epilogue: After",
					  "第一章 風",
					  "第12章"};
	static const char *const no[] = {"#hashtag",
					 "#",
					 "Chapter",
					 "Chapter one was long",
					 "Chapter 1 was the best of all.",
					 "Part of it",
					 "Part 2 of the plan",
					 "Book a table",
					 "One chapter more",
					 "The first chapter is long.",
					 "In chapter 3",
					 "Introduction to it all",
					 "Teil dessen",
					 "Deux livres",
					 "第三者"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (!heading_is(yes[i]))
			fail_msg("\"%s\" begins no chapter", yes[i]);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (heading_is(no[i]))
			fail_msg("\"%s\" begins a chapter", no[i]);
}

static void bad_pauses_are_found(void **state)
{
	static const char *const rows[] = {"[pause soon]",   "[pause 1]",
					   "[pause 1m]",     "[pause 61s]",
					   "[pause -1s]",    "[pause 1s extra]",
					   "[pause 1.2.3s]", "[pause 1msx]",
					   "[pause:1500]",   "{pause: long ago}",
					   "(pause: 2 min)", "[break 5x]",
					   "<break time=1>", "<break time=\"2m\"/>",
					   "(pause 90s)",    "<#61#>",
					   "[pause 1s 2s]",  "[silence=?]"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pause_part *parts;
		const char *bad;
		size_t bad_len;
		pause_parts(rows[i], &parts, &bad, &bad_len);
		if (!bad)
			fail_msg("%s was taken for a pause", rows[i]);
		assert_int_equal(bad_len, strlen(rows[i]));
		free(parts);
	}
}

static void load(struct script *s, const char *text, enum input_mode mode)
{
	static const struct split_limits limits = {40, 5};
	struct err err = {0};

	put_text("s.txt", text);
	CLEANUP(free_text) char *path = in_folder("s.txt");
	if (script_load(s, path, "s.txt", mode, &limits, &err) < 0)
		fail_msg("%s", err.msg);
}

static void a_script_becomes_segments(void **state)
{
	static const struct {
		const char *id, *text, *shown;
		double before_s;
		enum border border;
	} want[] = {
		{"001-1", "Ask engine x.", "Ask nginx.", 0, BORDER_NONE},
		{"001-2", "Then wait.", "Then wait.", 1.5, BORDER_SENTENCE},
		{"002", "After a long pause.", "After a long pause.", 2, BORDER_LINE},
		{"003-1", "A sentence long enough,", "A sentence long enough,", 0, BORDER_LINE},
		{"003-2", "and engine x behind the middle.", "and nginx behind the middle.", 0,
		 BORDER_NONE},
	};
	char name[] = "own", worker[] = "w";
	struct lexicon *l = lexicon("nginx\tengine x\n");
	json_t *options = json_object();
	struct job job = {.engine_name = name,
			  .worker = worker,
			  .options = options,
			  .limits = {40, 5},
			  .lexicon = l};
	struct err err = {0};

	(void)state;
	clear_folder();
	load(&job.script,
	     "Ask nginx. [pause 1.5s] Then wait. [pause 1s] !\n[pause 2s]\nAfter a long pause.\n"
	     "A sentence long enough, and nginx behind the middle.\n",
	     INPUT_LINES);
	assert_int_equal(segments_make(&job, &err), 0);
	assert_int_equal(job.segments.count, ARRAY_LEN(want));
	for (size_t i = 0; i < job.segments.count; i++) {
		assert_string_equal(job.segments.list[i].id, want[i].id);
		assert_string_equal(job.segments.spoken[i].text, want[i].text);
		assert_string_equal(job.segments.spoken[i].shown, want[i].shown);
		assert_float_equal(job.segments.spoken[i].before_s, want[i].before_s, 1e-9);
		assert_int_equal(job.segments.spoken[i].border, want[i].border);
	}
	segments_free(&job.segments);
	script_free(&job.script);
	lexicon_free(l);
	json_decref(options);
}

/* Another pause is no other sound: nothing is rendered again for it. Another lexicon is, for the
 * lines it changes. */
static void keys_follow_what_is_spoken(void **state)
{
	static const char *const scripts[] = {"Ask nginx. [pause 1s] Wait.\n",
					      "Ask nginx. [pause 3s] Wait.\n"};
	char name[] = "own", worker[] = "w";
	struct lexicon *l = lexicon("nginx\tengine x\n");
	json_t *options = json_object();
	char keys[3][2][SHA256_HEX];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct job job = {.engine_name = name,
				  .worker = worker,
				  .options = options,
				  .limits = {40, 5},
				  .lexicon = i == 2 ? l : NULL};
		struct err err = {0};
		load(&job.script, scripts[i % 2], INPUT_LINES);
		assert_int_equal(segments_make(&job, &err), 0);
		assert_int_equal(job.segments.count, 2);
		for (size_t k = 0; k < 2; k++)
			COPY_TEXT(keys[i][k], job.segments.list[k].key);
		segments_free(&job.segments);
		script_free(&job.script);
	}
	assert_string_equal(keys[0][0], keys[1][0]);
	assert_string_equal(keys[0][1], keys[1][1]);
	assert_string_not_equal(keys[0][0], keys[2][0]);
	assert_string_equal(keys[0][1], keys[2][1]);
	lexicon_free(l);
	json_decref(options);
}

static void bad_pauses_name_their_line(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"Fine.\nBad [pause 9] here.\n",
		 "s.txt:2: \"[pause 9]\" is not a pause; write it like [pause 0.5s], 60 s at most"},
		{"Fine.\n{Break: soon}\n", "s.txt:2: \"{Break: soon}\" is not a pause; write it "
					   "like [pause 0.5s], 60 s at most"},
		{"[pause 2s]\n", "s.txt: there is nothing to speak in it"},
	};
	static const struct split_limits limits = {40, 5};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(script_free) struct script s = {0};
		struct err err = {0};
		put_text("s.txt", rows[i].text);
		CLEANUP(free_text) char *path = in_folder("s.txt");
		assert_int_equal(script_load(&s, path, "s.txt", INPUT_LINES, &limits, &err), -1);
		assert_string_equal(err.msg, rows[i].message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_replaced),
		cmocka_unit_test(a_cut_within_a_word_shows_it_once),
		cmocka_unit_test(bad_lexicons_are_named),
		cmocka_unit_test(pauses_are_cut_out),
		cmocka_unit_test(bad_pauses_are_found),
		cmocka_unit_test(scene_breaks_are_known),
		cmocka_unit_test(chapters_are_known),
		cmocka_unit_test(a_script_becomes_segments),
		cmocka_unit_test(keys_follow_what_is_spoken),
		cmocka_unit_test(bad_pauses_name_their_line),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
