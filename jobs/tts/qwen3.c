/* qwen3.c - the options and weights of Qwen3-TTS.
 *
 * Several independent projects pin these sizes and hashes. They were not compared with the hub
 * itself. */
#include "qwen3.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

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

const struct engine_weight qwen3_weights[] = {
	{SMALL, "config.json", "81aca2b6fac304944d8acf345272d8a9a727d5fc2e2e66b222ab4729340c7455", 4908},
	{SMALL, "model.safetensors", "bc3c7e785eb961179c25450d1acff03f839e0002f2f3a5aeb67b5735c0fa2adb", 1811626576},
	COMMON(SMALL),
};

const struct engine_weight qwen3_clone_weights[] = {
	{SMALL_CLONE, "config.json", "2e714c787c8edb98b05432685cddb634add2de4d4e645f653d68251ef72ba011", 4494},
	{SMALL_CLONE, "model.safetensors", "180b3b10eb1c9f1b4db7806d5475bae3071c0243c299d49926bab1da3b6946f6", 1829344272},
	COMMON(SMALL_CLONE),
};

const struct engine_weight qwen3_large_weights[] = {
	{LARGE, "config.json", "17a07f527a1c25ea30b4e023a184482a23d3e279d697b1dc81b1bde498d29cf9", 4908},
	{LARGE, "model.safetensors", "38b1d5971bdbd982b561cccec982669a53b0537c3cf5e9bd4778ed07bb2f5137", 3833402552},
	COMMON(LARGE),
};

const struct engine_weight qwen3_large_clone_weights[] = {
	{LARGE_CLONE, "config.json", "b4f01752d15a488abde3e1ab44723ae4f4b9e68a4037257b098b3737893cc1f9", 4494},
	{LARGE_CLONE, "model.safetensors", "38fc7fc51c5e776e840414b6fd443962e9411b9654888fd7913e4da643cb857c", 3857413744},
	COMMON(LARGE_CLONE),
};

static const char *const languages[] = {"auto", "chinese", "english", "french", "german", "italian", "japanese", "korean", "portuguese",
					"russian", "spanish", NULL};
static const char *const voices[] = {"aiden", "dylan", "eric", "ono_anna", "ryan", "serena", "sohee", "uncle_fu", "vivian", NULL};

#define OPTIONS \
	{"language", .words = languages}, {"temperature", false, 0.01, 5}, {"top_k", true, 0, 2048}, {"top_p", false, 0.01, 1}, \
	{"repetition_penalty", false, 1, 10}, {"subtalker_temperature", false, 0.01, 5}, {"subtalker_top_k", true, 0, 2048}, \
	{"subtalker_top_p", false, 0.01, 1}
/* clang-format on */

const struct engine_option qwen3_options[] = {OPTIONS, {0}};
const struct engine_option qwen3_large_options[] = {OPTIONS, {"instruct", .text_bytes = 500}, {0}};

int qwen3_check_voice(const char *voice, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;

	for (size_t i = 0; voices[i]; i++)
		if (!strcasecmp(voices[i], voice))
			return 0;
	const char *near = nearest_word(voice, voices);
	str_add_printable(&shown, voice, strlen(voice), 60);
	if (near)
		return err_set(err, ERR_CONFIG,
			       "voice \"%s\" is unknown to qwen3; did you mean \"%s\"?",
			       str_text(&shown), near);
	return err_set(err, ERR_CONFIG,
		       "voice \"%s\" is unknown to qwen3, which has aiden, dylan, eric, ono_anna, "
		       "ryan, serena, sohee, uncle_fu and vivian; to speak "
		       "like a sample take engine = \"qwen3-clone\"",
		       str_text(&shown));
}
