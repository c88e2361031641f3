/* voices.c - what is known of each engine's voices: language, sex, licence, and a sentence to try
 * them with */
#include "engines.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

/* The named voices of Qwen3-TTS-CustomVoice, from its documentation (2026-11); each speaks all ten
 * languages, best its own. */
static const struct {
	const char *voice, *language, *sex;
} qwen3_speakers[] = {
	{"aiden", "en", "male"},      {"dylan", "zh", "male"},    {"eric", "zh", "male"},
	{"ono_anna", "ja", "female"}, {"ryan", "en", "male"},     {"serena", "zh", "female"},
	{"sohee", "ko", "female"},    {"uncle_fu", "zh", "male"}, {"vivian", "zh", "female"},
};

/* The same sentence in several languages, by ISO 639-1 code. */
static const struct {
	const char *language, *says;
} sentences[] = {
	{"en", "Hello, this is how I read a story to you."},
	{"de", "Hallo, so lese ich dir eine Geschichte vor."},
	{"fr", "Bonjour, voici comment je lis une histoire."},
	{"es", "Hola, así es como leo una historia."},
	{"it", "Ciao, ecco come leggo una storia."},
	{"pt", "Olá, é assim que leio uma história."},
	{"nl", "Hallo, zo lees ik een verhaal voor."},
	{"pl", "Cześć, tak właśnie czytam opowieść."},
	{"ru", "Здравствуйте, вот так я читаю рассказ."},
	{"uk", "Вітаю, ось так я читаю оповідання."},
	{"cs", "Ahoj, takhle čtu příběh."},
	{"sv", "Hej, så här läser jag en berättelse."},
	{"da", "Hej, sådan læser jeg en historie."},
	{"nb", "Hei, slik leser jeg en historie."},
	{"no", "Hei, slik leser jeg en historie."},
	{"fi", "Hei, näin minä luen tarinan."},
	{"hu", "Szia, így olvasok fel egy történetet."},
	{"ro", "Bună, așa citesc o poveste."},
	{"tr", "Merhaba, bir hikâyeyi böyle okurum."},
	{"el", "Γεια σας, έτσι διαβάζω μια ιστορία."},
	{"ca", "Hola, així és com llegeixo una història."},
	{"vi", "Xin chào, tôi đọc truyện như thế này."},
	{"ar", "مرحبا، هكذا أقرأ القصة."},
	{"hi", "नमस्ते, मैं कहानी इस तरह पढ़ता हूँ।"},
	{"zh", "你好，我就是这样读故事的。"},
	{"cmn", "你好，我就是这样读故事的。"},
	{"ja", "こんにちは。私はこのように物語を読みます。"},
	{"ko", "안녕하세요. 저는 이야기를 이렇게 읽어요."},
};

/* Every voice can read digits in its language. */
#define NUMBERS "1, 2, 3, 4, 5."

static const char *sentence_in(const char *language)
{
	size_t len = strcspn(language, "-");

	for (size_t i = 0; i < ARRAY_LEN(sentences); i++)
		if (strlen(sentences[i].language) == len &&
		    !strncasecmp(sentences[i].language, language, len))
			return sentences[i].says;
	return NUMBERS;
}

/* Copies "de-DE" of "de_DE-thorsten-low", "pt-br" of "pt-br+f3"; NULL: "". */
static void copy_language(char *to, size_t room, const char *language)
{
	size_t len = language ? strcspn(language, "+_") : 0;

	snprintf(to, room, "%.*s", (int)len, language ? language : "");
	if (language && language[len] == '_')
		snprintf(to + strlen(to), room - strlen(to), "-%.*s",
			 (int)strcspn(language + len + 1, "-"), language + len + 1);
}

void voice_facts(struct voice_facts *out, const struct engine *engine, const char *voice)
{
	const struct engine_terms *terms =
		engine->by_voice && engine->by_voice->terms ? engine->by_voice->terms(voice) : NULL;
	bool licence_by_voice = engine->by_voice && engine->by_voice->terms;

	*out = (struct voice_facts){
		.licence = terms              ? terms->licence
			   : licence_by_voice ? NULL
					      : engine->facts.weights_licence,
		.forbids = terms ? terms->forbids : NULL,
		.link = terms ? terms->link : NULL,
	};
	copy_language(out->language, sizeof(out->language),
		      engine->language_of ? engine->language_of(voice, NULL) : NULL);
	/* Kokoro's names begin with a letter for the language and one for the sex */
	if (!strcmp(engine->name, "kokoro"))
		out->sex = voice[1] == 'f' ? "female" : "male";
	for (size_t i = 0; starts_with(engine->name, "qwen3") && i < ARRAY_LEN(qwen3_speakers); i++)
		if (!strcasecmp(qwen3_speakers[i].voice, voice)) {
			COPY_TEXT(out->language, qwen3_speakers[i].language);
			out->sex = qwen3_speakers[i].sex;
		}
	out->says = sentence_in(out->language);
}
