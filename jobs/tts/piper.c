/* piper.c - the table of piper's voices. */
#include "piper.h"

#include <string.h>

#include "base/str.h"
#include "environment.h"

#define REPOSITORY "rhasspy/piper-voices"
#define REVISION   "v1.0.0"
/* The model of PIPER_VOICE, which a Python package also contains. The project publishes no SHA-256
 * of its voices. */
#define JOE_SHA256 "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06"
#define JOE_BYTES  63201294

/* The voices of REPOSITORY at REVISION, from the project's list. Sorted. */
/* clang-format off */
static const char *const voices_known[] = {
	"ar_JO-kareem-low", "ar_JO-kareem-medium", "ca_ES-upc_ona-medium", "ca_ES-upc_ona-x_low", "ca_ES-upc_pau-x_low",
	"cs_CZ-jirka-low", "cs_CZ-jirka-medium", "cy_GB-bu_tts-medium", "cy_GB-gwryw_gogleddol-medium", "da_DK-talesyntese-medium",
	"de_DE-eva_k-x_low", "de_DE-karlsson-low", "de_DE-kerstin-low", "de_DE-mls-medium", "de_DE-pavoque-low",
	"de_DE-ramona-low", "de_DE-thorsten-high", "de_DE-thorsten-low", "de_DE-thorsten-medium",
	"de_DE-thorsten_emotional-medium", "el_GR-rapunzelina-low", "en_GB-alan-low", "en_GB-alan-medium", "en_GB-alba-medium",
	"en_GB-aru-medium", "en_GB-cori-high", "en_GB-cori-medium", "en_GB-jenny_dioco-medium",
	"en_GB-northern_english_male-medium", "en_GB-semaine-medium", "en_GB-southern_english_female-low", "en_GB-vctk-medium",
	"en_US-amy-low", "en_US-amy-medium", "en_US-arctic-medium", "en_US-bryce-medium", "en_US-danny-low",
	"en_US-hfc_female-medium", "en_US-hfc_male-medium", "en_US-joe-medium", "en_US-john-medium", "en_US-kathleen-low",
	"en_US-kristin-medium", "en_US-kusal-medium", "en_US-l2arctic-medium", "en_US-lessac-high", "en_US-lessac-low",
	"en_US-lessac-medium", "en_US-libritts-high", "en_US-libritts_r-medium", "en_US-ljspeech-high", "en_US-ljspeech-medium",
	"en_US-norman-medium", "en_US-reza_ibrahim-medium", "en_US-ryan-high", "en_US-ryan-low", "en_US-ryan-medium",
	"en_US-sam-medium", "es_AR-daniela-high", "es_ES-carlfm-x_low", "es_ES-davefx-medium", "es_ES-mls_10246-low",
	"es_ES-mls_9972-low", "es_ES-sharvard-medium", "es_MX-ald-medium", "es_MX-claude-high", "fa_IR-amir-medium",
	"fa_IR-ganji-medium", "fa_IR-ganji_adabi-medium", "fa_IR-gyro-medium", "fa_IR-reza_ibrahim-medium", "fi_FI-harri-low",
	"fi_FI-harri-medium", "fr_FR-gilles-low", "fr_FR-mls-medium", "fr_FR-mls_1840-low", "fr_FR-siwis-low",
	"fr_FR-siwis-medium", "fr_FR-tom-medium", "fr_FR-upmc-medium", "hi_IN-pratham-medium", "hi_IN-priyamvada-medium",
	"hu_HU-anna-medium", "hu_HU-berta-medium", "hu_HU-imre-medium", "is_IS-bui-medium", "is_IS-salka-medium",
	"is_IS-steinn-medium", "is_IS-ugla-medium", "it_IT-paola-medium", "it_IT-riccardo-x_low", "ka_GE-natia-medium",
	"kk_KZ-iseke-x_low", "kk_KZ-issai-high", "kk_KZ-raya-x_low", "lb_LU-marylux-medium", "lv_LV-aivars-medium",
	"ml_IN-arjun-medium", "ml_IN-meera-medium", "ne_NP-chitwan-medium", "ne_NP-google-medium", "ne_NP-google-x_low",
	"nl_BE-nathalie-medium", "nl_BE-nathalie-x_low", "nl_BE-rdh-medium", "nl_BE-rdh-x_low", "nl_NL-mls-medium",
	"nl_NL-mls_5809-low", "nl_NL-mls_7432-low", "nl_NL-pim-medium", "nl_NL-ronnie-medium", "no_NO-talesyntese-medium",
	"pl_PL-darkman-medium", "pl_PL-gosia-medium", "pl_PL-mc_speech-medium", "pl_PL-mls_6892-low", "pt_BR-cadu-medium",
	"pt_BR-edresson-low", "pt_BR-faber-medium", "pt_BR-jeff-medium", "ro_RO-mihai-medium", "ru_RU-denis-medium",
	"ru_RU-dmitri-medium", "ru_RU-irina-medium", "ru_RU-ruslan-medium", "sk_SK-lili-medium", "sl_SI-artur-medium",
	"sr_RS-serbski_institut-medium", "sv_SE-lisa-medium", "sv_SE-nst-medium", "sw_CD-lanfrica-medium", "tr_TR-dfki-medium",
	"tr_TR-fahrettin-medium", "tr_TR-fettah-medium", "uk_UA-lada-x_low", "uk_UA-ukrainian_tts-medium",
	"vi_VN-25hours_single-low", "vi_VN-vais1000-medium", "vi_VN-vivos-x_low", "zh_CN-huayan-medium", "zh_CN-huayan-x_low",
	NULL,
};
/* clang-format on */

int piper_check_voice(const char *voice, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;

	for (size_t i = 0; voices_known[i]; i++)
		if (!strcmp(voices_known[i], voice))
			return 0;
	const char *near = nearest_word(voice, voices_known);
	str_add_printable(&shown, voice, strlen(voice), 60);
	return err_set(err, ERR_CONFIG, "voice \"%s\" is unknown to piper%s%s%s", str_text(&shown),
		       near ? "; did you mean \"" : "",
		       near ? near : " (its voices are named as in \"" PIPER_VOICE "\")",
		       near ? "\"?" : "");
}

/* A package contains the default voice. If the user names a mirror, all voices come from there. */
static bool packaged(const char *voice, const char *mirror)
{
	return !mirror && !strcmp(voice, PIPER_VOICE);
}

/* onnx is needed once: it changes a voice to take its random numbers from outside. */
static const char *const *voice_locks(const char *const *voices, const char *mirror)
{
	static const char *const usual[] = {"piper-voice", NULL}, *const with_joe[] = {
									  "piper-voice",
									  "piper-joe", NULL};

	for (; *voices; voices++)
		if (packaged(*voices, mirror))
			return with_joe;
	return usual;
}

/* A voice's name is LOCALE-NAME-QUALITY. */
static char *path_of(const char *voice)
{
	const char *name = strchr(voice, '-') + 1, *quality = strrchr(voice, '-') + 1;

	return xasprintf("%.*s/%.*s/%.*s/%s/%s.onnx", (int)strcspn(voice, "_"), voice,
			 (int)(name - 1 - voice), voice, (int)(quality - 1 - name), name, quality,
			 voice);
}

static void voice_weights(const char *const *voices, const char *mirror, json_t *to)
{
	for (; *voices; voices++) {
		if (packaged(*voices, mirror))
			continue;
		CLEANUP(free_text) char *model = path_of(*voices);
		CLEANUP(free_text) char *config = xasprintf("%s.json", model);
		CLEANUP(free_text) char *as = xasprintf("%s.onnx", *voices);
		CLEANUP(free_text) char *config_as = xasprintf("%s.json", as);
		bool known = !strcmp(*voices, PIPER_VOICE);
		environment_add_weight(to,
				       &(struct engine_weight){REPOSITORY, REVISION, model,
							       known ? JOE_SHA256 : NULL,
							       known ? JOE_BYTES : 0, as},
				       mirror);
		environment_add_weight(
			to, &(struct engine_weight){REPOSITORY, REVISION, config, .as = config_as},
			mirror);
	}
}

/* Voices whose MODEL_CARD in REPOSITORY names a licence that forbids some use.
 *
 * Read 2026-11 in three projects that list these cards independently; vivos also in OHF-
 * Voice/piper1-gpl issue 211, lessac in k2-fsa/sherpa-onnx issue 3947. The cards of en_US-amy,
 * en_US-kusal, ru_RU-irina, vi_VN-25hours_single and zh_CN-huayan name no licence: users who
 * publish with them must ask. Voices that are not listed here were not checked. */
#define CARD(PATH) "https://huggingface.co/" REPOSITORY "/blob/" REVISION "/" PATH "/MODEL_CARD"
#define COMMERCIAL "commercial use"
static const struct {
	const char *begins;
	struct engine_terms terms;
} restricted[] = {
	{"de_DE-pavoque-", {"CC BY-NC-SA 4.0", CARD("de/de_DE/pavoque/low"), COMMERCIAL}},
	{"en_GB-semaine-", {"CC BY-NC-SA 4.0", CARD("en/en_GB/semaine/medium"), COMMERCIAL}},
	{"en_US-hfc_female-", {"CC BY-NC-SA 4.0", CARD("en/en_US/hfc_female/medium"), COMMERCIAL}},
	{"en_US-hfc_male-", {"CC BY-NC-SA 4.0", CARD("en/en_US/hfc_male/medium"), COMMERCIAL}},
	{"en_US-l2arctic-", {"CC BY-NC", CARD("en/en_US/l2arctic/medium"), COMMERCIAL}},
	{"en_US-lessac-", {"Blizzard 2013, research", CARD("en/en_US/lessac/high"), COMMERCIAL}},
	{"en_US-ryan-", {"CC BY-NC-SA 4.0", CARD("en/en_US/ryan/high"), COMMERCIAL}},
	{"ru_RU-ruslan-", {"CC BY-NC-SA 4.0", CARD("ru/ru_RU/ruslan/medium"), COMMERCIAL}},
	{"vi_VN-vivos-", {"CC BY-NC-SA 4.0", CARD("vi/vi_VN/vivos/x_low"), COMMERCIAL}},
};

static const struct engine_terms *voice_terms(const char *voice)
{
	for (size_t i = 0; i < ARRAY_LEN(restricted); i++)
		if (starts_with(voice, restricted[i].begins))
			return &restricted[i].terms;
	return NULL;
}

/* By the qualities "x_low" and "low", or "medium" and "high", as the project documents them. */
static int voice_rate(const char *voice)
{
	return ends_with(voice, "low") ? 16000 : 22050;
}

const struct engine_voices piper_voices = {
	.revision = REVISION,
	.program = "piper_voice.py",
	.locks = voice_locks,
	.weights = voice_weights,
	.rate = voice_rate,
	.terms = voice_terms,
};
