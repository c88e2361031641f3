/* voices.c - lists the voices of espeak-ng, so that a misspelt one is found before a pod is rented.
 */
#include "voices.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

/* As printed by `espeak-ng --voices` 1.51, and the shorter names that it accepts for them. Sorted.
 */
/* clang-format off */
static const char *const languages[] = {
	"af", "am", "an", "ar", "as", "az", "ba", "be", "bg", "bn", "bpy", "bs", "ca",
	"chr", "cmn", "cmn-latn-pinyin", "cs", "cv", "cy", "da", "de", "el", "en",
	"en-029", "en-gb", "en-gb-scotland", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-gb-x-rp",
	"en-us", "en-us-nyc", "eo", "es", "es-419", "es-mx", "et", "eu", "fa", "fa-latn", "fi",
	"fr", "fr-be", "fr-ch", "fr-fr", "ga", "gd", "gn", "grc", "gu", "hak", "haw", "hbs", "he",
	"hi", "hr", "ht", "hu", "hy", "hy-arevela", "hy-arevmda", "hyw", "ia", "id", "io", "is",
	"it", "ja", "jbo", "ka", "kk", "kl", "kn", "ko", "kok", "ku", "ky", "la", "lb", "lfn",
	"lt", "ltg", "lv", "mi", "mk", "ml", "mr", "ms", "mt", "my", "nb", "nci", "ne", "nl",
	"no", "nog", "om", "or", "pa", "pap", "piqd", "pl", "pt", "pt-br", "pt-pt", "py", "qdb",
	"qu", "quc", "qya", "ro", "ru", "ru-lv", "sd", "shn", "si", "sjn", "sk", "sl", "smj",
	"sq", "sr", "sv", "sw", "ta", "te", "th", "tk", "tn", "tr", "tt", "ug", "uk", "ur", "uz",
	"vi", "vi-vn-x-central", "vi-vn-x-south", "yue", "zh", "zh-cmn", "zh-yue", NULL,
};
/* clang-format on */

/* Checks the shape first: a voice becomes an argument and a part of file names on the pod. */
static bool has_shape(const char *voice)
{
	size_t letters = 0, part = 0;
	const char *p = voice;

	while (isalpha((unsigned char)p[letters]))
		letters++;
	if (letters < 2 || letters > 4)
		return false;
	for (p += letters; *p == '-'; p += part + 1) {
		for (part = 0; isalnum((unsigned char)p[1 + part]);)
			part++;
		if (!part)
			return false;
	}
	if (*p == '+')
		for (p++, part = 0; isalnum((unsigned char)*p); part++)
			p++;
	return !*p && part < 40 && p[-1] != '+';
}

int voices_check_espeak(const char *voice, struct err *err)
{
	char name[64];
	size_t len = strcspn(voice, "+");

	if (!has_shape(voice) || len >= sizeof(name)) {
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, voice, strlen(voice), 40);
		return err_set(
			err, ERR_CONFIG,
			"voice \"%s\" is not a voice of espeak-ng (as in \"en-us\" or \"de+f3\")",
			str_text(&shown));
	}
	for (size_t i = 0; i < len; i++)
		name[i] = (char)tolower((unsigned char)voice[i]);
	name[len] = '\0';
	for (size_t i = 0; languages[i]; i++)
		if (!strcmp(languages[i], name))
			return 0;
	const char *near = nearest_word(name, languages);
	return err_set(err, ERR_CONFIG, "voice \"%s\" is unknown to espeak-ng%s%s%s", voice,
		       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}
