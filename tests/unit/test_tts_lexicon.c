/* test_tts_lexicon.c - words of any case and patterns of the lexicon; test_wording.c has the rest.
 */
#include "tts_helpers.h"

#include "base/clock.h"
#include "jobs/text/script.h"

static const struct {
	const char *words, *text, *want;
} rows[] = {
	{"nginx\tengine x\tany-case\n", "Nginx, NGINX and nginx2.",
	 "engine x, engine x and nginx2."},
	{"us\tu s\tany-case\nUS\tUnited States\n", "US and us", "United States and u s"},
	{"US\tUnited States\nus bank\tthe bank\tany-case\n", "US Bank, US",
	 "the bank, United States"},
	{"[0-9]+ ?km\tsome kilometres\tpattern\n", "It is 12 km or 5km, not 7kmh.",
	 "It is some kilometres or some kilometres, not 7kmh."},
	{"v[0-9]\ta version\tpattern, any-case\n", "V2 v3 av4", "a version a version av4"},
	{"^Note\tAttention\tpattern\nend$\tstop\tpattern\n", "Note Note end end",
	 "Attention Note end stop"},
	{"cat\tfeline\nc.t\tanimal\tpattern\nc.+\tall\tpattern\n", "cat cot cup",
	 "feline animal all"},
	{"caf.\tbar\tpattern\n", "caf\xc3\xa9 cafs",
	 "caf\xc3\xa9 bar"}, /* half of a letter is none */
	{"a\\.b\tdot\tpattern\n", "a.b axb", "dot axb"},
};

static const struct {
	const char *words, *message;
} wrong[] = {
	{"a\tb\tloud\n", "w:1: \"loud\" behind the second tab must be any-case, pattern or "
			 "ipa"},
	{"a.\tb\tpattern, ipa\n", "w:1: a pattern cannot be ipa"},
	{"(a)\\1\tb\tpattern\n", "w:1: pattern \"(a)\\1\": it refers back to a group"},
	{"a{1,51}\tb\tpattern\n", "w:1: pattern \"a{1,51}\": it repeats more than 50 times"},
	{"a*\tb\tpattern\n", "w:1: pattern \"a*\": it matches an empty text"},
	{"ok\tb\n(a\tb\tpattern\n", "w:2: pattern \"(a\": "},
};

static const struct phoneme_marks kokoro = {"kokoro", "[", "](/", "/)"},
				  piper = {"piper", NULL, "[[", "]]"},
				  espeak = {.engine = "espeak"};

static struct lexicon *read_words(const char *words, const struct phoneme_marks *ipa,
				  struct err *err)
{
	struct lexicon *l = NULL;

	return lexicon_read(&l, "w", words, strlen(words), ipa, err) < 0 ? NULL : l;
}

static void words_and_patterns(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(lexicon_text_free) struct lexicon_text t = {0};
		struct err err = {0};
		struct lexicon *l = read_words(rows[i].words, &kokoro, &err);
		if (!l)
			fail_msg("%s", err.msg);
		lexicon_apply(l, rows[i].text, strlen(rows[i].text), &t);
		if (strcmp(t.spoken, rows[i].want) != 0)
			fail_msg("got \"%s\", want \"%s\"", t.spoken, rows[i].want);
		char *shown = lexicon_shown(&t, rows[i].text, 0, strlen(t.spoken));
		assert_string_equal(shown, rows[i].text);
		free(shown);
		lexicon_free(l);
	}
}

static void mistakes_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct err err = {0};
		assert_null(read_words(wrong[i].words, &kokoro, &err));
		if (!starts_with(err.msg, wrong[i].message))
			fail_msg("got \"%s\", want \"%s\"", err.msg, wrong[i].message);
	}
}

/* A match is found wherever the windows of the search begin. */
static void long_texts(void **state)
{
	struct lexicon *l = read_words("xy[0-9]+z\tW\tpattern\n", &kokoro, NULL);

	(void)state;
	for (size_t before = 0; before < 1100; before++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		CLEANUP(lexicon_text_free) struct lexicon_text t = {0};
		for (size_t i = 0; i < before; i++)
			str_addc(&text, i % 2 ? ' ' : 'x');
		str_add(&text, before % 2 ? " xy12345z end" : "xy12345z end");
		lexicon_apply(l, str_text(&text), text.len, &t);
		if (!ends_with(t.spoken, "W end"))
			fail_msg("%zu bytes before it", before);
	}
	lexicon_free(l);
}

/* No pattern takes more than a moment: this one tries every beginning to the end. */
static void no_pattern_takes_long(void **state)
{
	struct lexicon *l = read_words("(a|aa)+(a|aa)*b\tW\tpattern\n", &kokoro, NULL);
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(lexicon_text_free) struct lexicon_text t = {0};
	int64_t began = clock_boot_ms();

	(void)state;
	for (size_t i = 0; i < 100000; i++)
		str_addc(&text, 'a');
	lexicon_apply(l, str_text(&text), text.len, &t);
	assert_int_equal(t.count, 0);
	assert_true(clock_boot_ms() - began < 60000);
	lexicon_free(l);
}

/* Phonemes in place of a word, as each engine takes them; the script's word is shown. */
static void phonemes(void **state)
{
	static const struct {
		const struct phoneme_marks *ipa;
		const char *words, *want;
	} cases[] = {
		{&kokoro, "Alice\tˈælɪs\tipa\n", "Hi [Alice](/ˈælɪs/), it is New York."},
		{&kokoro, "new york\t/njuːˈjɔːk/\tipa, any-case\n",
		 "Hi Alice, it is [new-york](/njuːˈjɔːk/)."},
		{&piper, "Alice\t[ˈælɪs]\tipa\nYork\tˈjɔːk\tipa\n",
		 "Hi [[ˈælɪs]], it is New [[ˈjɔːk]]."},
	};
	static const struct {
		const struct phoneme_marks *ipa;
		const char *words, *message;
	} faults[] = {
		{&espeak, "# x\nAlice\tˈælɪs\tipa\n",
		 "w:2: ipa: espeak takes no phonemes: write how \"Alice\" is spoken in letters, or "
		 "choose kokoro or piper"},
		{&piper, "a\tx y\tipa\n",
		 "w:1: ipa: \"x y\" must be phonemes without blanks, as in ˈælɪs"},
		{&piper, "a\tx]]\tipa\n",
		 "w:1: ipa: \"x]]\" must be phonemes without blanks, as in ˈælɪs"},
		{&piper, "a\t//\tipa\n",
		 "w:1: ipa: \"/\" must be phonemes without blanks, as in ˈælɪs"},
	};
	static const char text[] = "Hi Alice, it is New York.";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(lexicon_text_free) struct lexicon_text t = {0};
		struct err err = {0};
		struct lexicon *l = read_words(cases[i].words, cases[i].ipa, &err);
		if (!l)
			fail_msg("%s", err.msg);
		lexicon_apply(l, text, strlen(text), &t);
		assert_string_equal(t.spoken, cases[i].want);
		CLEANUP(free_text) char *shown = lexicon_shown(&t, text, 0, strlen(t.spoken));
		assert_string_equal(shown, text);
		lexicon_free(l);
	}
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		struct err err = {0};
		assert_null(read_words(faults[i].words, faults[i].ipa, &err));
		assert_string_equal(err.msg, faults[i].message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_and_patterns),    cmocka_unit_test(phonemes),
		cmocka_unit_test(mistakes_are_named),    cmocka_unit_test(long_texts),
		cmocka_unit_test(no_pattern_takes_long),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
