/* check.c - judges whether a finished WAV file fits its text. */
#include "check.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>

#include "wav.h"

#define CHARS_PER_SECOND 15.0
#define SLACK_LEAST_S    0.25 /* slack for a short text */
#define SLACK_MOST_S     2.0  /* slack for pauses before and after */
#define SILENT_PEAK      0.001
#define CAP_WINDOW_S     0.1

/* A word without lower-case letters or without vowels is spelled out: "HTML", "kHz", "W". */
static bool is_spelled(const unsigned char *word, size_t len)
{
	bool small = false, vowel = false;

	for (size_t i = 0; i < len; i++) {
		small |= islower(word[i]) != 0;
		vowel |= strchr("aeiouyAEIOUY", word[i]) != NULL;
	}
	return !small || !vowel;
}

/* The highest number of letters spoken for one character outside ASCII. */
static double spoken_letters(unsigned char c)
{
	if (isdigit(c))
		return 9; /* "7" in "1,700,000": "seven hundred thousand" */
	if (strchr(" .,;:!?'\"-()", c))
		return 1;
	if (c < 0x80)
		return 12; /* "%", "&", "@" */
	if ((c & 0xc0) == 0x80)
		return 0;
	return c < 0xce ? 3 : 16; /* Latin letters with marks; others may be spelled by name */
}

void check_window(const char *text, const struct check_limits *limits, double *least_s,
		  double *most_s)
{
	double least = 0, most = 0,
	       second = CHARS_PER_SECOND * (limits->speed > 0 ? limits->speed : 1);

	for (const unsigned char *p = (const unsigned char *)text; *p;) {
		size_t word = 0;
		while (isalpha(p[word]))
			word++;
		if (word) {
			most += (double)word * (is_spelled(p, word) ? 6 : 1.25); /* "double-u" */
			least += (double)word;
			p += word;
		} else {
			most += spoken_letters(*p);
			least += isdigit(*p) || *p == ' ' || *p >= 0xc0;
			p++;
		}
	}
	*least_s = MAX(limits->min_duration * least / second - SLACK_LEAST_S, 0.02);
	*most_s = limits->max_duration * most / second + SLACK_MOST_S;
}

/* Some voices speak the name of a sign ("#", an emoji); others rightly say nothing. */
static bool has_letters(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (isalnum(*p) || (*p >= 0xc3 && *p <= 0xe1) || (*p >= 0xe3 && *p <= 0xed))
			return true;
	return false;
}

static int blame(struct check *out, const char *fmt, ...) PRINTF(2, 3);
static int blame(struct check *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vformat_text(out->reason, sizeof(out->reason), fmt, ap);
	va_end(ap);
	out->ok = false;
	return 0;
}

static int judge_length(const char *text, const struct check_limits *limits, struct check *out)
{
	double least, most;

	check_window(text, limits, &least, &most);
	if (limits->cap_s > 0 && out->seconds >= limits->cap_s - CAP_WINDOW_S)
		return blame(out, "%.1f s: the engine stops at %.0f s, the end is missing",
			     out->seconds, limits->cap_s);
	if (out->seconds < least)
		return blame(out, "too short: %.2f s where the text takes at least %.2f s",
			     out->seconds, least);
	if (out->seconds > most)
		return blame(out, "too long: %.2f s where the text takes at most %.2f s",
			     out->seconds, most);
	return 0;
}

static int judge_sound(const struct wav_sound *sound, const char *text,
		       const struct check_limits *limits, struct check *out)
{
	if (sound->peak < SILENT_PEAK && has_letters(text))
		return blame(out, "silent all through");
	if (sound->inner_silence > limits->max_silence)
		return blame(out, "%.1f s of silence inside", sound->inner_silence);
	if (sound->clipped > limits->max_clipped)
		return blame(out, "clipped: %.1f %% of the samples", 100 * sound->clipped);
	if (limits->max_offset > 0 && fabs(sound->offset) > limits->max_offset)
		return blame(out, "its mean is %.0f %% of full scale off zero",
			     100 * fabs(sound->offset));
	return 0;
}

/* Judges a good file by the voice's habits. A bad file must not change them. */
static int judge_habits(const struct wav_sound *sound, const char *text,
			const struct check_limits *limits, struct check *out)
{
	struct heard heard = {
		.seconds = out->seconds, .rate = out->sample_rate, .tail = sound->tail};

	if (limits->habits && !habits_judge(limits->habits, limits->voice, text, &heard,
					    out->reason, sizeof(out->reason)))
		out->ok = false;
	return 0;
}

/* Turns a fault of the file into a verdict. A failure to read it stays an error. */
static int verdict_of(struct err *why, struct check *out, struct err *err)
{
	if (why->kind != ERR_JOB)
		return err_set(err, why->kind, "%s", why->msg);
	return blame(out, "%s", why->msg);
}

int check_wav(const char *file, const char *text, const struct check_limits *limits,
	      struct check *out, struct err *err)
{
	CLEANUP(file_close) FILE *f = fopen(file, "re");
	struct wav_info info;
	struct wav_sound sound;
	struct err why = {0};

	*out = (struct check){.ok = true};
	if (!f)
		return err_set(err, ERR_LOCAL, "%s: %s", file, strerror(errno));
	if (wav_read_header(f, &info, &why) < 0)
		return verdict_of(&why, out, err);
	out->seconds = wav_seconds(&info);
	out->sample_rate = info.format.rate;
	if (wav_listen(f, &info, &sound, &why) < 0)
		return verdict_of(&why, out, err);
	judge_length(text, limits, out);
	if (out->ok)
		judge_sound(&sound, text, limits, out);
	return out->ok ? judge_habits(&sound, text, limits, out) : 0;
}
