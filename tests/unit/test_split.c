/* test_split.c - where texts are cut, and what normalising leaves of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "jobs/text/script.h"

/* Pieces are shown with a bar between them. */
static const struct {
	const char *name;
	size_t max, min;
	const char *text, *want, *language;
} cuts[] = {
	{"a short text is one piece", 20, 5, "Hello there.", "Hello there."},
	{"a text of just the length is one piece", 12, 2, "Hello there.", "Hello there."},
	{"at the end of a sentence", 20, 5, "One is here. Two is there too.",
	 "One is here.|Two is there too."},
	{"the last sentence that fits", 30, 5, "One is. Two is. Three is there. Four.",
	 "One is. Two is.|Three is there. Four."},
	{"not in an abbreviation", 25, 5, "We saw Dr. Smith go home, then we left.",
	 "We saw Dr. Smith go home,|then we left."},
	{"not behind an initial", 26, 5, "It was by J. Smith, I think it was.",
	 "It was by J. Smith,|I think it was."},
	{"not before a small letter", 24, 4, "It cost 5 approx. or so, they said.",
	 "It cost 5 approx. or so,|they said."},
	{"a closing quote stays with its sentence", 24, 5, "He said: \"Go now.\" Then he left us.",
	 "He said: \"Go now.\"|Then he left us."},
	{"at a comma when no sentence ends", 20, 5, "first this thing, then that other",
	 "first this thing,|then that other"},
	{"between words when there is no comma", 13, 4, "aaaa bbbb cccc dddd",
	 "aaaa bbbb|cccc dddd"},
	{"within a word when there is no blank", 10, 2, "abcdefghijklmnopqrst",
	 "abcdefghij|klmnopqrst"},
	{"the rest is not too short", 10, 5, "abcdefghijkl", "abcdef|ghijkl"},
	{"a cut leaves a first piece that is long enough", 20, 10,
	 "Ah. Now this is what we call a text.", "Ah. Now this is what|we call a text."},
	{"code points count, not bytes", 10, 2, "äöüäöüäöüä", "äöüäöüäöüä"},
	{"a sequence is never cut", 4, 1, "äöüäöü", "äöüä|öü"},
	{"a combining mark stays with its letter", 4, 1,
	 "abcde\xcc\x81"
	 "fgh",
	 "abcd|e\xcc\x81"
	 "f|gh"},
	{"sentences of scripts without blanks", 8, 2, "今日は晴れ。明日は雨です。",
	 "今日は晴れ。|明日は雨です。"},
	{"not behind an ordinal number", 60, 5,
	 "Er las von Leuten, die im 19. Jahrhundert lebten, und auch im 20. Jahrhundert noch.",
	 "Er las von Leuten, die im 19. Jahrhundert lebten,|und auch im 20. Jahrhundert noch.",
	 "de"},
	{"a sign behind a blank stays with its word", 22, 4, "Qui est là aujourd'hui ? Personne.",
	 "Qui est là|aujourd'hui ?|Personne.", "fr"},
	{"a thumb keeps its colour", 3, 1, "ab👍🏽cd", "ab|👍🏽|cd"},
};

static void cut_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		struct split_limits limits = {cuts[i].max, cuts[i].min};
		struct str got = STR_INIT;
		struct piece *pieces;
		size_t count = split_text(cuts[i].text, &limits, cuts[i].language, &pieces);
		for (size_t k = 0; k < count; k++) {
			str_add(&got, k ? "|" : "");
			str_addn(&got, pieces[k].text, pieces[k].len);
		}
		if (strcmp(str_text(&got), cuts[i].want))
			fail_msg("%s: got \"%s\", want \"%s\"", cuts[i].name, str_text(&got),
				 cuts[i].want);
		str_free(&got);
		free(pieces);
	}
}

static const struct {
	const char *name, *text, *want;
} normal[] = {
	{"blanks are one blank", "  a \t b\r\n\nc  ", "a b c"},
	{"hard blanks are blanks",
	 "a\xc2\xa0"
	 "b\xe3\x80\x80"
	 "c",
	 "a b c"},
	{"control characters go", "a\x01\x1b[31mb\x7f", "a[31mb"},
	{"invisible characters go",
	 "\xef\xbb\xbf"
	 "a\xe2\x80\x8b"
	 "b\xe2\x80\xae"
	 "c\xc2\xad",
	 "abc"},
	{"nothing stays nothing", " \n ", ""},
};

static void normalise_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(normal); i++) {
		struct str got = STR_INIT;
		split_normalise(&got, normal[i].text, strlen(normal[i].text));
		if (strcmp(str_text(&got), normal[i].want))
			fail_msg("%s: got \"%s\", want \"%s\"", normal[i].name, str_text(&got),
				 normal[i].want);
		str_free(&got);
	}
}

static void find_words(void **state)
{
	static const char *const some[] = {"a", "7", "%", "é", "日", "😀", "...x"};
	static const char *const none[] = {"", "...", "?!", "— … —", "\"\"", "。", "«»", "-- --"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(some); i++)
		if (!split_has_words(some[i]))
			fail_msg("\"%s\" can be spoken", some[i]);
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (split_has_words(none[i]))
			fail_msg("\"%s\" cannot be spoken", none[i]);
}

/* A bar stands where a sentence ends, a slash where a clause does. */
static const struct {
	const char *language, *text;
} ends[] = {
	{"en", "Dr. Smith met J. R. R. Tolkien, / e.g. at No. 5.| He said no.| They left at 5 "
	       "p.m.| The end."},
	{"en", "It cost approx. 5 dollars etc. in the U.S. Army; / the U.S.| It was 3.5 km."},
	{"en", "\"Stop!\" / he said.| \"Go.\"| She went... / and came back."},
	{"en", "See fig. 3 and vol. 2.| That was St. Peter in Main St.| He knew Mr. Who vs. Prof. "
	       "No.| Yes."},
	{"de", "Im 19. Jahrhundert lebte er.| Am 3. Mai 1990.| Dann kam Ludwig II. von Bayern."},
	{"de", "Am 12. Juni und König Ludwig II. König war er bis 1886.| Deutschland war groß."},
	{"de", "Brot, / Milch usw. sind da.| Er kaufte Brot usw.| Die Str. Nr. 5 ist lang."},
	{"de", "Nach Abs. 3 gilt z. B. Folgendes, / d. h. alles.| Das sind ca. 5 Mio. Euro."},
	{"en", "See Vol. III and Plan A.| The end.| No.| I cannot come."},
	{"de", "Sie wohnt Hauptstr. 4, / Whg. 3.| Er wohnt in der Bahnhofstr.| Dort ist es laut."},
	{"de", "Prof. Dr. med. Lang kam.| Das dauerte 5 Min.| Danach ging er."},
	{"es", "EE. UU. y S. A. de C. V. cerraron."},
	{"pl", "Św. Jan przyszedł.| Poszedł."},
	{"pt", "O Séc. XIX foi longo."},
	{"de", "Er ist 19.| Sie ist älter.| Über approx. spricht bzw. schreibt Hr. Dr. Maier."},
	{"fr", "M. Dupont habite av. Foch, / près de St. Jean.| Qui ?| Elle ! / cria-t-il."},
	{"fr", "Cf. p. 5 et chap. 2, / etc.| Il est là : / voilà."},
	{"es", "El Sr. López vive en la av. Mayor.| ¿Qué?| EE.UU. es grande, / etc.| La pág. 3."},
	{"it", "Il sig. Rossi e la sig.ra Bianchi, / ecc.| Poi vanno a pag. 3.| È vero."},
	{"pt", "O Sr. Silva e a Dra. Lima, / etc.| Depois, / na pág. 3.| É verdade."},
	{"nl", "Dhr. Jansen kocht o.a. brood, / enz.| Daarna ging hij naar St. Nicolaas."},
	{"pl", "Prof. Nowak, / ul. Długa, / itd.| Potem np. Kraków w 1990 r.| To prawda."},
	{"en_US", "Mr. Fox.| Mrs. Fox."},
	{NULL, "Dr. Fox und Hr. Maier, / e.g. Mme. Curie.| Done."},
	{"ja", "昔々、/あるところに。|「行こう。」/と言った。|はい。"},
	{"zh", "今天很好。|你来，/不来？|来！”|他说。"},
	{"th", "สวัสดีครับ / ผมชื่อสมชาย"},
	{"ru", "Он пришёл! / сказал он.| Да, / пришёл."},
};

static void find_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		CLEANUP(str_free) struct str text = STR_INIT;
		CLEANUP(str_free) struct str got = STR_INIT;
		for (const char *p = ends[i].text; *p; p++) {
			bool mark = *p == '|' || *p == '/';
			if (mark && p[-1] == ' ') /* " / " stands for a blank */
				text.len--;
			if (!mark)
				str_addc(&text, *p);
		}
		const char *plain = str_text(&text);
		for (const char *p = plain; *p;) {
			const char *from = p;
			utf8_next(&p);
			str_addn(&got, from, (size_t)(p - from));
			enum split_end end =
				*p ? split_end_at(plain, p, ends[i].language) : SPLIT_WORD;
			if (end != SPLIT_WORD)
				str_add(&got, end == SPLIT_STOP ? "|" : *p == ' ' ? " /" : "/");
		}
		if (strcmp(str_text(&got), ends[i].text))
			fail_msg("%s: got \"%s\", want \"%s\"", ends[i].language, str_text(&got),
				 ends[i].text);
	}
}

static unsigned next_random(unsigned *seed)
{
	return *seed = *seed * 1103515245u + 12345u, *seed >> 16 & 0x7fff;
}

/* Whatever the text: nothing is lost, nothing is too long, nothing is too short. */
static void keep_every_character(void **state)
{
	static const char *const parts[] = {"a",    "word", " ", ". ",       ", ",   "!",   "ä",
					    "日本", "。",   "😀", "\xcc\x81", "Dr. ", "\" ", "3.14"};
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		struct split_limits limits = {2 + next_random(&seed) % 60, 0};
		struct str raw = STR_INIT, text = STR_INIT, bare = STR_INIT, got = STR_INIT;
		limits.min_chars = next_random(&seed) % (limits.max_chars / 2 + 1);
		for (unsigned n = next_random(&seed) % 120; n--;)
			str_add(&raw, parts[next_random(&seed) % ARRAY_LEN(parts)]);
		split_normalise(&text, str_text(&raw), raw.len);
		struct piece *pieces;
		size_t count = split_text(str_text(&text), &limits, "en", &pieces);
		for (size_t i = 0; i < count; i++) {
			size_t chars = split_chars(pieces[i].text, pieces[i].len);
			assert_true(pieces[i].len > 0 && utf8_valid(pieces[i].text, pieces[i].len));
			/* a run of marks on one letter is the one thing that may be longer */
			if (chars > limits.max_chars && !strstr(str_text(&text), "\xcc\x81"))
				fail_msg("%zu characters of %zu: %s", chars, limits.max_chars,
					 str_text(&text));
			if (count > 1 && chars < limits.min_chars &&
			    !strstr(str_text(&text), "\xcc\x81"))
				fail_msg("%zu characters of at least %zu: %s", chars,
					 limits.min_chars, str_text(&text));
			str_addn(&got, pieces[i].text, pieces[i].len);
		}
		struct str joined = STR_INIT;
		for (const char *p = str_text(&text); *p; p++)
			if (*p != ' ')
				str_addc(&bare, *p);
		for (const char *p = str_text(&got); *p; p++)
			if (*p != ' ')
				str_addc(&joined, *p);
		assert_string_equal(str_text(&joined), str_text(&bare));
		free(pieces);
		str_free(&raw);
		str_free(&text);
		str_free(&bare);
		str_free(&got);
		str_free(&joined);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_texts),
		cmocka_unit_test(find_ends),
		cmocka_unit_test(normalise_texts),
		cmocka_unit_test(find_words),
		cmocka_unit_test(keep_every_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
