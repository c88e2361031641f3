/* language.c - tells a text's language by its most frequent words, and warns if its voice speaks
 * another one */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "state.h"

/* Frequent words that rarely occur in texts of the other languages here. Between blanks. */
static const struct known {
	const char *code, *name, *words;
} known[] = {
	{"de", "German",
	 " der die und das ist nicht ein eine zu den von mit sich auf dem des für im war auch als "
	 "er sie "
	 "ich wir dass wie aber nach noch wird oder sind bei aus "},
	{"en", "English",
	 " the of and to in is was that it he for with as his on be at by had not are but from or "
	 "have "
	 "an they which you were her she there been this "},
	{"es", "Spanish",
	 " el la los las de y que en un una es por con no se para su lo como más del al pero fue "
	 "está "
	 "son muy cuando hay sin yo "},
	{"fr", "French",
	 " le la les de des et un une est que qui dans en du pas pour il elle au sur ne se ce avec "
	 "sont "
	 "mais plus je nous vous par cette était "},
	{"it", "Italian",
	 " il la le di che è e un una in per non con del della sono da si come più ma gli al anche "
	 "nel "
	 "dei era questo ha "},
	{"nl", "Dutch",
	 " de het een en van is dat in te niet op zijn voor met die aan er om hij ze ook maar naar "
	 "werd "
	 "bij uit wordt heeft "},
	{"pl", "Polish",
	 " i w nie na się z do to że jest jak o za co po ale od przez był tak ma są tym jego gdy "
	 "czy "},
	{"pt", "Portuguese",
	 " o a os as de e que em um uma é do da não para com se por no na dos mais como mas foi "
	 "ele ela "
	 "ao são seu sua "},
};

#define LANGUAGES ARRAY_LEN(known)

struct score {
	size_t words;
	size_t points[LANGUAGES], hits[LANGUAGES];
};

enum {
	HITS_LEAST = 12,  /* of frequent words: fewer may be a quotation */
	SHARE_LEAST = 25, /* % of all words, in points */
};

static void count_word(struct score *s, const char *word, size_t len)
{
	bool has[LANGUAGES];
	size_t languages = 0;
	char key[16];

	s->words++;
	if (len + 3 > sizeof(key))
		return;
	key[0] = key[len + 1] = ' ';
	key[len + 2] = '\0';
	for (size_t i = 0; i < len; i++)
		key[i + 1] = (char)tolower((unsigned char)word[i]);
	for (size_t k = 0; k < LANGUAGES; k++)
		languages += has[k] = strstr(known[k].words, key) != NULL;
	for (size_t k = 0; k < LANGUAGES; k++) {
		s->hits[k] += has[k];
		s->points[k] += has[k] ? languages == 1 ? 2 : 1 : 0;
	}
}

static void count_words(struct score *s, const char *text)
{
	while (*text) {
		size_t len = 0;
		while (isalpha((unsigned char)text[len]) || (unsigned char)text[len] >= 0x80)
			len++;
		if (len)
			count_word(s, text, len);
		text += len + (text[len] != '\0');
	}
}

/* The language of the counted words; NULL: too few words, or no language stands out. */
static const struct known *best_of(const struct score *s)
{
	size_t best = 0, second = 0;

	for (size_t k = 1; k < LANGUAGES; k++)
		if (s->points[k] > s->points[best])
			best = k;
	for (size_t k = 0; k < LANGUAGES; k++)
		if (k != best && s->points[k] > second)
			second = s->points[k];
	bool clear = s->points[best] * 2 >= second * 3 && s->hits[best] >= HITS_LEAST &&
		     s->points[best] * 100 >= s->words * SHARE_LEAST;
	return clear ? &known[best] : NULL;
}

const char *language_guess(const char *text)
{
	struct score s = {0};

	count_words(&s, text);
	const struct known *best = best_of(&s);
	return best ? best->code : NULL;
}

static const char *name_of(const char *code)
{
	size_t i = 0;

	while (i + 1 < LANGUAGES && strcmp(known[i].code, code) != 0)
		i++;
	return known[i].name;
}

/* Whether two codes name one language, regions aside. */
static bool same_language(const char *a, const char *b)
{
	size_t len = strspn(a, "abcdefghijklmnopqrstuvwxyz");

	return len == strspn(b, "abcdefghijklmnopqrstuvwxyz") && !strncmp(a, b, len);
}

/* The language that a segment's voice speaks; NULL: unknown. */
static const char *voice_language(const struct job *job, size_t i)
{
	const struct spoken *spoken = &job->segments.spoken[i];

	return job->engine && job->engine->language_of && spoken->voice
		       ? job->engine->language_of(spoken->voice, spoken->options)
		       : NULL;
}

/* Judges the texts of one voice. */
static void note_voice(const struct job *job, const char *voice, struct str *notes)
{
	char code[16] = "";
	CLEANUP(str_free) struct str all = STR_INIT;

	for (size_t i = 0; i < job->segments.count; i++) {
		const char *its = job->segments.spoken[i].voice;
		if (!its || strcmp(its, voice) != 0)
			continue;
		if (!code[0] && voice_language(job, i))
			COPY_TEXT(code, voice_language(job, i));
		str_addf(&all, "%s ", job->segments.spoken[i].shown);
	}
	const char *text = job->language ? job->language : language_guess(str_text(&all));
	if (!code[0] || !text || same_language(code, text))
		return;
	str_addf(notes, "voice %s speaks \"%s\", and its texts ", voice, code);
	if (job->language)
		str_addf(notes, "are \"%s\" by job.language\n", job->language);
	else
		str_addf(notes,
			 "read like %s (\"%s\"): choose another voice, or set job.language = "
			 "\"%s\" if "
			 "they are\n",
			 name_of(text), text, code);
}

void tts_note_languages(const struct job *job, struct str *notes)
{
	const char **voices = segments_voices(&job->segments);

	for (size_t i = 0; voices[i]; i++)
		note_voice(job, voices[i], notes);
	free(voices);
}
