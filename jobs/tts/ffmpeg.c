/* ffmpeg.c - runs ffmpeg without a shell: converts WAV files and sets their loudness. */
#include "ffmpeg.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/program.h"

#define STDERR_MAX        ((size_t)256 << 10)
#define TRUE_PEAK         -1.5
#define SILENCE_LUFS      -70.0
#define TOLERANCE_LU      0.15
#define DECODED_MAX_BYTES ((size_t)256 << 20)
enum { DECODE_LIMIT_MS = 60 * 1000 };

/* The input of one run of ffmpeg, its working folder, and the meter of its progress. */
struct place {
	int from, dir;
	struct join_meter *meter; /* NULL: not asked for */
	double ms_per_s;          /* of this run */
};

static int run(const char *const *argv, const struct place *place, struct str *said,
	       struct err *err)
{
	struct stat st;

	/* ffmpeg reads its stdin from beginning to end, and the position is ours as well */
	join_meter_pass(place->meter, place->ms_per_s, place->from,
			fstat(place->from, &st) == 0 ? st.st_size : 0);
	int result = program_must(
		&(struct program){.argv = argv, .input_fd = place->from, .folder_fd = place->dir},
		NULL, said, err);
	join_meter_passed(place->meter);
	return result;
}

bool ffmpeg_found(void)
{
	const char *const argv[] = {"ffmpeg", "-nostdin", "-hide_banner", "-version", NULL};

	return program_run(&(struct program){.argv = argv}, NULL, NULL, NULL) == 0;
}

static const char *codec(const struct wav_format *format)
{
	if (format->is_float)
		return format->bits == 64 ? "pcm_f64le" : "pcm_f32le";
	return format->bits == 16 ? "pcm_s16le" : format->bits == 24 ? "pcm_s24le" : "pcm_s32le";
}

/* Whether what becomes of this file may be too long for a plain WAV file. */
static bool is_long(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size > WAV_MOST_BYTES / 2;
}

/* Runs one filter. filter may be NULL; `to` NULL: only measure. */
static int render(const struct place *place, const char *to, const struct wav_format *format,
		  const char *filter, struct str *said, struct err *err)
{
	char rate[16], channels[16];
	const char *argv[32];
	size_t n = 0;

	snprintf(rate, sizeof(rate), "%d", format->rate);
	snprintf(channels, sizeof(channels), "%d", format->channels);
	/* the caller has checked that a pod's file is a WAV, and no list of other files or URLs */
	const char *const head[] = {"ffmpeg", "-nostdin", "-hide_banner", "-nostats",
				    "-y",     "-f",       "wav",          "-protocol_whitelist",
				    "pipe",   "-i",       "pipe:0"};
	const char *const tail[] = {"-ar",
				    rate,
				    "-ac",
				    channels,
				    "-c:a",
				    codec(format),
				    "-map_metadata",
				    "-1",
				    "-fflags",
				    "+bitexact",
				    "-flags:a",
				    "+bitexact",
				    "-rf64",
				    is_long(place->from) ? "auto" : "never",
				    "-f",
				    "wav",
				    to};
	for (size_t i = 0; i < ARRAY_LEN(head); i++)
		argv[n++] = head[i];
	if (filter) {
		argv[n++] = "-af";
		argv[n++] = filter;
	}
	for (size_t i = 0; to && i < ARRAY_LEN(tail); i++)
		argv[n++] = tail[i];
	if (!to) {
		argv[n++] = "-f";
		argv[n++] = "null";
		argv[n++] = "-";
	}
	argv[n] = NULL;
	if (lseek(place->from, 0, SEEK_SET) < 0 ||
	    (to && unlinkat(place->dir, to, 0) < 0 && errno != ENOENT))
		return err_set(err, ERR_LOCAL, "%s: %s", to ? to : "sound", strerror(errno));
	return run(argv, place, said, err);
}

int ffmpeg_convert(int from, int dir, const char *to, const struct wav_format *format,
		   struct err *err)
{
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);

	return render(&(struct place){.from = from, .dir = dir}, to, format, NULL, &said, err);
}

/* Reads the number behind a label in the summary that the ebur128 filter prints at its end. */
static double summed_up(const struct str *said, const char *label)
{
	const char *summary = NULL, *next = str_text(said);

	while ((next = strstr(next, "Summary:")))
		summary = next++;
	const char *at = summary ? strstr(summary, label) : NULL;
	return at ? strtod(at + strlen(label), NULL) : NAN;
}

struct loudness {
	double integrated, peak;
};

static int measure(const struct place *place, const struct wav_format *format, struct loudness *out,
		   struct err *err)
{
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);

	if (render(place, NULL, format, "ebur128=framelog=verbose:peak=true", &said, err) < 0)
		return -1;
	*out = (struct loudness){summed_up(&said, "I:"), summed_up(&said, "Peak:")};
	if (isnan(out->integrated))
		return err_set(err, ERR_LOCAL, "ffmpeg printed no measurement");
	if (!isfinite(out->peak) || out->integrated <= SILENCE_LUFS)
		return err_set(err, ERR_JOB, "there is not enough sound to measure");
	return 0;
}

/* Applies one gain to the whole track, so that pauses keep their level; loudnorm's dynamic mode
 * would change it. If the peaks leave no room, a limiter at four times the rate reduces them.
 * ebur128 measures the result. */
static int apply(const struct place *place, const char *to, const struct wav_format *format,
		 double gain, double peak, double *lufs, struct err *err)
{
	struct wav_format out = {.rate = format->rate, .channels = format->channels, .bits = 16};
	CLEANUP(str_free) struct str filter = STR_INIT;
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);

	str_addf(&filter, "volume=%.3fdB:precision=double,", gain);
	if (peak + gain > TRUE_PEAK)
		str_addf(&filter,
			 "aresample=%d,alimiter=limit=%.5f:attack=5:release=50:level=0:latency=1,"
			 "aresample=%d,",
			 format->rate * 4, pow(10, TRUE_PEAK / 20), format->rate);
	str_add(&filter, "ebur128=framelog=verbose");
	if (render(place, to, &out, str_text(&filter), &said, err) < 0)
		return -1;
	*lufs = summed_up(&said, "I:");
	return isnan(*lufs) ? err_set(err, ERR_LOCAL, "ffmpeg printed no measurement") : 0;
}

int ffmpeg_loudness(int from, int dir, const char *to, const struct wav_format *format,
		    double target, struct join_meter *meter, double *lufs, struct err *err)
{
	struct place place = {from, dir, meter, JOIN_MEASURE_MS};
	struct loudness in;

	if (measure(&place, format, &in, err) < 0) {
		join_meter_add(meter, -2 * JOIN_LIMIT_MS);
		return -1;
	}
	double gain = target - in.integrated;
	bool limits = in.peak + gain > TRUE_PEAK;
	place.ms_per_s = limits ? JOIN_LIMIT_MS : JOIN_GAIN_MS;
	if (!limits)
		join_meter_add(meter, JOIN_GAIN_MS - 2 * JOIN_LIMIT_MS);
	if (apply(&place, to, format, gain, in.peak, lufs, err) < 0)
		return -1;
	if (fabs(target - *lufs) <= TOLERANCE_LU) {
		join_meter_add(meter, limits ? -JOIN_LIMIT_MS : 0);
		return 0;
	}
	/* the limiter has reduced the loudness: run once more with the loss added */
	return apply(&place, to, format, gain + target - *lufs, in.peak, lufs, err);
}

static const struct ffmpeg_format formats[] = {
	{"m4b",
	 (const char *const[]){"-c:a", "aac", "-b:a", "80k", "-movflags", "+faststart", "-f",
			       "ipod", NULL},
	 true, 3.3},
	{"mp3",
	 (const char *const[]){"-c:a", "libmp3lame", "-q:a", "3", "-id3v2_version", "3", "-f",
			       "mp3", NULL},
	 true, 2.0},
	{"opus", (const char *const[]){"-c:a", "libopus", "-b:a", "48k", "-f", "ogg", NULL}, true,
	 3.5},
	{"flac", (const char *const[]){"-c:a", "flac", "-f", "flac", NULL}, false, 0.4},
};

const struct ffmpeg_format *ffmpeg_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

int ffmpeg_encode(int from, int dir, const char *chapters, const char *to,
		  const struct ffmpeg_format *format, struct join_meter *meter, struct err *err)
{
	const struct place place = {from, dir, meter, format->ms_per_s};
	static const char *const head[] = {
		"ffmpeg", "-nostdin", "-hide_banner",        "-nostats", "-v", "error", "-y",
		"-f",     "wav",      "-protocol_whitelist", "pipe",     "-i", "pipe:0"};
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);
	struct err why = {0};
	const char *argv[48];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(head); i++)
		argv[n++] = head[i];
	if (chapters) {
		const char *const both[] = {
			"-f",   "ffmetadata", "-protocol_whitelist", "file", "-i", chapters,
			"-map", "0:a",        "-map_chapters",       "1"};
		for (size_t i = 0; i < ARRAY_LEN(both); i++)
			argv[n++] = both[i];
	}
	for (const char *const *s = format->settings; *s; s++)
		argv[n++] = *s;
	argv[n++] = to;
	argv[n] = NULL;
	if (lseek(from, 0, SEEK_SET) < 0 || (unlinkat(dir, to, 0) < 0 && errno != ENOENT))
		return err_set(err, ERR_LOCAL, "%s: %s", to, strerror(errno));
	if (run(argv, &place, &said, &why) == 0)
		return 0;
	if (why.kind == ERR_NOT_FOUND)
		return err_set(err, ERR_JOB, "ffmpeg is not installed");
	return err_set(err, ERR_JOB, "%s", why.msg);
}

/* Uses a folder of its own: ffmpeg can read an MP4 file only if it can seek in it, and must not
 * open any other file. */
static int decode_in(const char *dir, const char *kind, int rate, struct str *said, struct err *err)
{
	static const char *const head[] = {
		"ffmpeg", "-nostdin", "-hide_banner",        "-nostats", "-v",
		"error",  "-y",       "-protocol_whitelist", "file",     "-f"};
	static const char *const tail[] = {"-i",      "file:in",   "-map",          "0:a:0",
					   "-t",      "600",       "-ac",           "1",
					   "-c:a",    "pcm_s16le", "-map_metadata", "-1",
					   "-fflags", "+bitexact", "-flags:a",      "+bitexact"};
	CLEANUP(fd_close) int folder = path_open_dir(dir);
	const char *argv[40];
	char number[16];
	size_t n = 0;

	if (folder < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", dir, strerror(errno));
	for (size_t i = 0; i < ARRAY_LEN(head); i++)
		argv[n++] = head[i];
	argv[n++] = kind;
	for (size_t i = 0; i < ARRAY_LEN(tail); i++)
		argv[n++] = tail[i];
	snprintf(number, sizeof(number), "%d", rate);
	if (rate) {
		argv[n++] = "-ar";
		argv[n++] = number;
	}
	argv[n++] = "-f";
	argv[n++] = "wav";
	argv[n++] = "file:out";
	argv[n] = NULL;
	return program_must(
		&(struct program){.argv = argv, .folder_fd = folder, .limit_ms = DECODE_LIMIT_MS},
		NULL, said, err);
}

int ffmpeg_decode(const struct str *file, const char *kind, int rate, struct str *wav,
		  struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	CLEANUP(free_text)
	char *dir = xasprintf("%s/burst-sound-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);
	struct err why = {0};

	if (!mkdtemp(dir))
		return err_set(err, ERR_LOCAL, "%s: %s", dir, strerror(errno));
	CLEANUP(free_text) char *in = path_join(dir, "in");
	CLEANUP(free_text) char *out = path_join(dir, "out");
	int result = path_write(in, file->s, file->len, 0600, err);
	if (result == 0 && decode_in(dir, kind, rate, &said, &why) < 0)
		result = err_set(err, why.kind == ERR_NOT_FOUND ? ERR_NOT_FOUND : ERR_JOB, "%s",
				 why.msg);
	if (result == 0)
		result = path_read(out, DECODED_MAX_BYTES, wav, err);
	path_remove_tree(dir, NULL);
	return result;
}
