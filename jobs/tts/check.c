#include "check.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

#include "wav.h"

#define CHARS_PER_SECOND 15.0
#define SLACK_LEAST_S	 0.25 /* what a short word may lack */
#define SLACK_MOST_S	 2.0  /* pauses before and after */
#define SILENT_PEAK	 0.001
#define CAP_WINDOW_S	 0.1

/* How many letters are spoken for one that is written, at most. */
static int spoken_letters(unsigned char c, bool shouted)
{
	if (isdigit(c))
		return 9; /* "7" in "1,700,000": "seven hundred thousand" */
	if (isalpha(c))
		return shouted ? 6 : 1; /* "W": "double-u" */
	if (c == ' ' || strchr(".,;:!?'\"-()", c))
		return 1;
	if (c < 0x80)
		return 12; /* "%", "&", "@" */
	if ((c & 0xc0) == 0x80)
		return 0;
	return c < 0xce ? 3 : 16; /* Latin with marks; all else may be spelled by name */
}

void check_window(const char *text, const struct check_limits *limits, double *least_s, double *most_s)
{
	double least = 0, most = 0;
	unsigned char before = ' ';

	for (const unsigned char *p = (const unsigned char *)text; *p; before = *p++) {
		bool shouted = isupper(*p) && (isupper(p[1]) || isupper(before) || !isalpha(p[1]));
		most += spoken_letters(*p, shouted);
		least += isalnum(*p) || *p == ' ' || *p >= 0xc0;
	}
	double second = CHARS_PER_SECOND * (limits->speed > 0 ? limits->speed : 1);
	*least_s = MAX(limits->min_duration * least / second - SLACK_LEAST_S, 0.02);
	*most_s = limits->max_duration * most / second + SLACK_MOST_S;
}

static int blame(struct check *out, const char *fmt, ...) PRINTF(2, 3);
static int blame(struct check *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->reason, sizeof(out->reason), fmt, ap);
	va_end(ap);
	out->ok = false;
	return 0;
}

static int judge_length(const char *text, const struct check_limits *limits, struct check *out)
{
	double least, most;

	check_window(text, limits, &least, &most);
	if (limits->cap_s > 0 && out->seconds >= limits->cap_s - CAP_WINDOW_S)
		return blame(out, "%.1f s: the engine stops at %.0f s, the end is missing", out->seconds, limits->cap_s);
	if (out->seconds < least)
		return blame(out, "too short: %.2f s where the text takes at least %.2f s", out->seconds, least);
	if (out->seconds > most)
		return blame(out, "too long: %.2f s where the text takes at most %.2f s", out->seconds, most);
	return 0;
}

static int judge_sound(const struct wav_sound *sound, const struct check_limits *limits, struct check *out)
{
	if (sound->peak < SILENT_PEAK)
		return blame(out, "silent all through");
	if (sound->inner_silence > limits->max_silence)
		return blame(out, "%.1f s of silence inside", sound->inner_silence);
	if (sound->clipped > limits->max_clipped)
		return blame(out, "clipped: %.1f %% of the samples", 100 * sound->clipped);
	return 0;
}

/* What is wrong with the file is a verdict; what keeps us from reading it is an error. */
static int verdict_of(struct err *why, struct check *out, struct err *err)
{
	if (why->kind != ERR_JOB)
		return err_set(err, why->kind, "%s", why->msg);
	return blame(out, "%s", why->msg);
}

int check_wav(const char *file, const char *text, const struct check_limits *limits, struct check *out,
	      struct err *err)
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
	return out->ok ? judge_sound(&sound, limits, out) : 0;
}
