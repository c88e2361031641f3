/* kokoro.c - the voices and weights of Kokoro-82M.
 *
 * Several projects pin these hashes and sizes for this revision. The voices, 0.5 MB each, have no
 * known hash. */
#include "kokoro.h"

#include <string.h>

#include "base/str.h"
#include "letters.h"

#define KOKORO "hexgrad/Kokoro-82M", "f3ff3571791e39611d31c381e3a41a3af07b4987"

/* clang-format off */
/* Sorted. The first letter is the language: American and British English, Spanish, French, Hindi, Italian, Japanese, Portuguese, Chinese. */
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
const struct engine_weight kokoro_weights[] = {
	{KOKORO, "config.json", "5abb01e2403b072bf03d04fde160443e209d7a0dad49a423be15196b9b43c17f",
	 2351},
	{KOKORO, "kokoro-v1_0.pth",
	 "496dba118d1a58f5f3db2efc88dbdc216e0483fc89fe6e47ee1f2c53f18ad1e4", 327212226},
	VOICES(WEIGHT){0},
};

static const char *const voices[] = {VOICES(WORD) NULL};
/* clang-format on */

const struct engine_option kokoro_options[] = {{"speed", false, 0.5, 2}, {0}};

unsigned kokoro_letters(const char *voice)
{
	return voice[0] == 'z'   ? LETTERS_HAN
	       : voice[0] == 'j' ? LETTERS_HAN | LETTERS_KANA
	       : voice[0] == 'h' ? LETTERS_LATIN | LETTERS_DEVANAGARI
				 : LETTERS_LATIN;
}

int kokoro_check_voice(const char *voice, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	bool known = false;

	for (size_t i = 0; voices[i] && !known; i++)
		known = !strcmp(voices[i], voice);
	if (known)
		return 0;
	const char *near = nearest_word(voice, voices);
	str_add_printable(&shown, voice, strlen(voice), 60);
	if (near)
		return err_set(err, ERR_CONFIG,
			       "voice \"%s\" is unknown to kokoro; did you mean \"%s\"?",
			       str_text(&shown), near);
	return err_set(err, ERR_CONFIG,
		       "voice \"%s\" is unknown to kokoro, which has 54, as " KOKORO_VOICE
		       ", bm_george, ef_dora and ff_siwis",
		       str_text(&shown));
}
