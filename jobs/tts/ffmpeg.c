#include "ffmpeg.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/str.h"

#define STDERR_MAX    ((size_t)256 << 10)
#define TRUE_PEAK     -1.5
#define SILENCE_LUFS  -70.0

extern char **environ;

static void read_to_end(int fd, struct str *text)
{
	char buf[4096];

	for (;;) {
		ssize_t n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		str_addn(text, buf, (size_t)n);
	}
}

static int start(const char *const *argv, int stderr_fd, pid_t *pid)
{
	posix_spawn_file_actions_t files;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, stderr_fd, 2);
	int why = posix_spawnp(pid, argv[0], &files, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return why;
}

/* The last line that says something. */
static const char *last_line(struct str *text)
{
	while (text->len && strchr("\r\n ", text->s[text->len - 1]))
		text->s[--text->len] = '\0';
	const char *newline = text->len ? strrchr(text->s, '\n') : NULL;
	return newline ? newline + 1 : str_text(text);
}

static int run(const char *const *argv, struct str *said, struct err *err)
{
	int ends[2], status;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, ERR_LOCAL, "pipe: %s", strerror(errno));
	CLEANUP(fd_close) int from = ends[0];
	int why = start(argv, ends[1], &pid);
	close(ends[1]);
	if (why)
		return err_set(err, why == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL, "%s: %s", argv[0], strerror(why));
	read_to_end(from, said);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, ERR_LOCAL, "%s: wait: %s", argv[0], strerror(errno));
	if (status == 0)
		return 0;
	CLEANUP(str_free) struct str shown = STR_INIT;
	const char *line = last_line(said);
	str_add_printable(&shown, line, strlen(line), 200);
	return err_set(err, ERR_LOCAL, "%s failed: %s", argv[0], str_text(&shown));
}

bool ffmpeg_found(void)
{
	const char *const argv[] = {"ffmpeg", "-nostdin", "-hide_banner", "-version", NULL};
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);

	return run(argv, &said, NULL) == 0;
}

static const char *codec(const struct wav_format *format)
{
	if (format->is_float)
		return format->bits == 64 ? "pcm_f64le" : "pcm_f32le";
	return format->bits == 16 ? "pcm_s16le" : format->bits == 24 ? "pcm_s24le" : "pcm_s32le";
}

/* filter may be NULL; `to` NULL: measure only. */
static int render(const char *from, const char *to, const struct wav_format *format, const char *filter,
		  struct str *said, struct err *err)
{
	char rate[16], channels[16];
	const char *argv[32];
	size_t n = 0;

	snprintf(rate, sizeof(rate), "%d", format->rate);
	snprintf(channels, sizeof(channels), "%d", format->channels);
	const char *const head[] = {"ffmpeg", "-nostdin", "-hide_banner", "-nostats", "-y", "-i", from};
	const char *const tail[] = {"-ar", rate, "-ac", channels, "-c:a", codec(format), "-map_metadata", "-1",
				    "-fflags", "+bitexact", "-flags:a", "+bitexact", "-f", "wav", to};
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
	return run(argv, said, err);
}

int ffmpeg_convert(const char *from, const char *to, const struct wav_format *format, struct err *err)
{
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);

	return render(from, to, format, NULL, &said, err);
}

/* loudnorm prints one JSON object, last; its numbers are texts. */
static json_t *printed_object(const struct str *said, struct err *err)
{
	const char *open = strrchr(str_text(said), '{'), *close = open ? strchr(open, '}') : NULL;

	if (!close) {
		err_set(err, ERR_LOCAL, "ffmpeg printed no measurement");
		return NULL;
	}
	return jsonx_parse(open, (size_t)(close - open) + 1, err);
}

static double number_of(const json_t *object, const char *key)
{
	return strtod(jsonx_text(object, key, "nan"), NULL);
}

struct loudness {
	double integrated, peak, range, threshold;
};

static int measure(const char *file, const struct wav_format *format, struct loudness *out, struct err *err)
{
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);

	if (render(file, NULL, format, "loudnorm=print_format=json", &said, err) < 0)
		return -1;
	CLEANUP(json_decref) json_t *object = printed_object(&said, err);
	if (!object)
		return -1;
	*out = (struct loudness){number_of(object, "input_i"), number_of(object, "input_tp"),
				 number_of(object, "input_lra"), number_of(object, "input_thresh")};
	if (!isfinite(out->integrated) || !isfinite(out->peak) || out->integrated <= SILENCE_LUFS)
		return err_set(err, ERR_JOB, "there is no sound to measure");
	return 0;
}

/* One gain for all where the peaks leave room: loudnorm then changes nothing else. Where they do not, the same gain with a
 * limiter for the peaks: loudnorm's own way out would ride the level up and down through the pauses. */
static char *gain_filter(const struct loudness *in, double target, int rate)
{
	double gain = target - in->integrated;

	if (in->peak + gain <= TRUE_PEAK)
		return xasprintf("loudnorm=I=%.2f:TP=%.2f:LRA=%.2f:measured_I=%.2f:measured_TP=%.2f:measured_LRA=%.2f:"
				 "measured_thresh=%.2f:offset=0:linear=true",
				 target, TRUE_PEAK, MIN(MAX(in->range + 1, 11.0), 50.0), in->integrated, in->peak,
				 in->range, in->threshold);
	return xasprintf("volume=%.3fdB:precision=double,aresample=%d,alimiter=limit=%.5f:attack=5:release=50:level=0:"
			 "latency=1,aresample=%d",
			 gain, rate * 4, pow(10, TRUE_PEAK / 20), rate);
}

int ffmpeg_loudness(const char *from, const char *to, const struct wav_format *format, double target, double *lufs,
		    struct err *err)
{
	struct wav_format out = *format;
	struct loudness before, after;

	if (measure(from, format, &before, err) < 0)
		return -1;
	out.bits = 16;
	out.is_float = false;
	CLEANUP(free_text) char *filter = gain_filter(&before, target, format->rate);
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);
	if (render(from, to, &out, filter, &said, err) < 0 || measure(to, &out, &after, err) < 0)
		return -1;
	*lufs = after.integrated;
	return 0;
}
