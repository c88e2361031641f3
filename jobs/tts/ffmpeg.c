/* ffmpeg.c - runs ffmpeg without a shell: converts sound, sets its loudness, encodes tracks; and
 * measures how far that is */
#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/program.h"

/* ---- join meter: passes over the sound, each with its usual time ---- */

struct join_meter {
	pthread_mutex_t lock;
	double all, done, pass; /* ms for a second of sound; pass: of the pass under way */
	int fd;
	int64_t bytes;
};

struct join_meter *join_meter_new(void)
{
	struct join_meter *m = xcalloc(1, sizeof(*m));

	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void join_meter_free(struct join_meter *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	free(m);
}

void join_meter_begin(struct join_meter *m, double of_all)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->all = of_all;
	m->done = m->pass = 0;
	pthread_mutex_unlock(&m->lock);
}

void join_meter_done(struct join_meter *m, double so_far)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->done = so_far;
	pthread_mutex_unlock(&m->lock);
}

void join_meter_pass(struct join_meter *m, double of_pass, int fd, int64_t bytes)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->pass = of_pass;
	m->fd = fd;
	m->bytes = bytes;
	pthread_mutex_unlock(&m->lock);
}

void join_meter_passed(struct join_meter *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->done += m->pass;
	m->pass = 0;
	pthread_mutex_unlock(&m->lock);
}

/* In ms for a second of sound, by the position of the pass's input. */
static double ms_of_pass_so_far(const struct join_meter *m)
{
	if (m->pass <= 0 || m->bytes <= 0)
		return 0;
	double at = (double)lseek(m->fd, 0, SEEK_CUR);
	return m->pass * MIN(MAX(at / (double)m->bytes, 0.0), 1.0);
}

double join_meter_share(struct join_meter *m)
{
	if (!m)
		return 0;
	pthread_mutex_lock(&m->lock);
	double share = m->all > 0 ? (m->done + ms_of_pass_so_far(m)) / m->all : 0;
	pthread_mutex_unlock(&m->lock);
	return MIN(share, 1.0);
}

/* ---- ffmpeg ---- */

#define STDERR_MAX        ((size_t)256 << 10)
#define TRUE_PEAK         -1.5
#define SILENCE_LUFS      -70.0
#define TOLERANCE_LU      0.15
#define DECODED_MAX_BYTES ((size_t)256 << 20)
enum { DECODE_LIMIT_MS = 60 * 1000 };

/* Lets ffmpeg read nothing but stdin: a pod's file may be a list of other files or URLs. */
#define READ_WAV "-f wav -protocol_whitelist pipe -i pipe:0"
/* Leaves out dates and versions, so that the same sound gives the same bytes. */
#define EXACT "-map_metadata -1 -fflags +bitexact -flags:a +bitexact"

/* ---- the command line ---- */

struct args {
	char *list[64]; /* ends with NULL */
	size_t count;
};

/* Adds words that are separated by blanks. */
static void add_words(struct args *a, const char *fmt, ...) PRINTF(2, 3);
static void add_words(struct args *a, const char *fmt, ...)
{
	char words[512];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(words, sizeof(words), fmt, ap);
	va_end(ap);
	for (const char *at = words + strspn(words, " "); *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		if (a->count + 1 < ARRAY_LEN(a->list))
			a->list[a->count++] = xstrndup(at, len);
		at += len;
	}
}

/* Adds one word, which may have blanks. */
static void add_word(struct args *a, const char *word)
{
	if (a->count + 1 < ARRAY_LEN(a->list))
		a->list[a->count++] = xstrdup(word);
}

static struct args args_new(void)
{
	struct args a = {0};

	add_words(&a, "ffmpeg -nostdin -hide_banner");
	return a;
}

static void args_free_cleanup(struct args *a)
{
	while (a->count)
		free(a->list[--a->count]);
}

bool ffmpeg_found(void)
{
	CLEANUP(args_free) struct args args = args_new();

	add_words(&args, "-version");
	return program_run(&(struct program){.argv = (const char *const *)args.list}, NULL, NULL,
			   NULL) == 0;
}

/* ---- from WAV to something else ---- */

/* The input of one run of ffmpeg, its working folder, and the meter of its progress. */
struct place {
	int from, dir;
	struct join_meter *meter; /* NULL: not asked for */
	double ms_per_s;          /* of this run */
};

/* Runs ffmpeg with the sound as stdin. `to`: what it makes in the folder, removed before; NULL:
 * nothing. said: stderr. */
static int run_ffmpeg(const struct args *args, const struct place *place, const char *to,
		      struct str *said, struct err *err)
{
	struct stat st;

	if (lseek(place->from, 0, SEEK_SET) < 0 ||
	    (to && unlinkat(place->dir, to, 0) < 0 && errno != ENOENT))
		return err_set(err, ERR_LOCAL, "%s: %s", to ? to : "sound", strerror(errno));
	/* ffmpeg reads its stdin from beginning to end and shares its position with us */
	join_meter_pass(place->meter, place->ms_per_s, place->from,
			fstat(place->from, &st) == 0 ? st.st_size : 0);
	int result = program_must(&(struct program){.argv = (const char *const *)args->list,
						    .input_fd = place->from,
						    .folder_fd = place->dir,
						    .is_long = true},
				  NULL, said, err);
	join_meter_passed(place->meter);
	return result;
}

static const char *codec_of(const struct wav_format *format)
{
	if (format->is_float)
		return format->bits == 64 ? "pcm_f64le" : "pcm_f32le";
	return format->bits == 16 ? "pcm_s16le" : format->bits == 24 ? "pcm_s24le" : "pcm_s32le";
}

/* Returns whether a WAV file made of this file may be too long for a plain header. */
static bool may_exceed_plain_wav(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size > WAV_MOST_BYTES / 2;
}

/* Converts the input by one filter (NULL: none) to the WAV file `to`. `to` NULL: only measures. */
static int run_filter(const struct place *place, const char *to, const struct wav_format *format,
		      const char *filter, struct str *said, struct err *err)
{
	CLEANUP(args_free) struct args args = args_new();

	add_words(&args, "-nostats -y " READ_WAV);
	if (filter)
		add_words(&args, "-af %s", filter);
	if (to)
		add_words(&args, "-ar %d -ac %d -c:a %s " EXACT " -rf64 %s -f wav %s", format->rate,
			  format->channels, codec_of(format),
			  may_exceed_plain_wav(place->from) ? "auto" : "never", to);
	else
		add_words(&args, "-f null -");
	return run_ffmpeg(&args, place, to, said, err);
}

int ffmpeg_convert(int from, int dir, const char *to, const struct wav_format *format,
		   struct err *err)
{
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);

	return run_filter(&(struct place){.from = from, .dir = dir}, to, format, NULL, &said, err);
}

/* ---- loudness ---- */

/* The number behind a label in the summary that the ebur128 filter prints last; NAN: none. */
static double read_summary(const struct str *said, const char *label)
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

/* ERR_JOB: there is not enough sound. */
static int measure_loudness(const struct place *place, const struct wav_format *format,
			    struct loudness *out, struct err *err)
{
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);

	if (run_filter(place, NULL, format, "ebur128=framelog=verbose:peak=true", &said, err) < 0)
		return -1;
	*out = (struct loudness){read_summary(&said, "I:"), read_summary(&said, "Peak:")};
	if (isnan(out->integrated))
		return err_set(err, ERR_LOCAL, "ffmpeg printed no measurement");
	if (!isfinite(out->peak) || out->integrated <= SILENCE_LUFS)
		return err_set(err, ERR_JOB, "there is not enough sound to measure");
	return 0;
}

/* Writes the track `to` with one gain (dB) for all of it, so that pauses keep their level;
 * loudnorm's dynamic mode would change it. If the peaks leave no room, a limiter at four times the
 * rate reduces them. peak: of the input. *lufs: the result's loudness, by ebur128. */
static int apply_gain(const struct place *place, const char *to, const struct wav_format *format,
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
	if (run_filter(place, to, &out, str_text(&filter), &said, err) < 0)
		return -1;
	*lufs = read_summary(&said, "I:");
	return isnan(*lufs) ? err_set(err, ERR_LOCAL, "ffmpeg printed no measurement") : 0;
}

int ffmpeg_loudness(int from, int dir, const char *to, const struct wav_format *format,
		    double target, struct join_meter *meter, double *lufs, struct err *err)
{
	struct place place = {from, dir, meter, JOIN_MEASURE_MS};
	struct loudness in;

	if (measure_loudness(&place, format, &in, err) < 0)
		return -1;
	double gain = target - in.integrated;
	place.ms_per_s = in.peak + gain > TRUE_PEAK ? JOIN_LIMIT_MS : JOIN_GAIN_MS;
	if (apply_gain(&place, to, format, gain, in.peak, lufs, err) < 0)
		return -1;
	if (fabs(target - *lufs) <= TOLERANCE_LU)
		return 0;
	/* the limiter has reduced the loudness: run once more with the loss added */
	return apply_gain(&place, to, format, gain + target - *lufs, in.peak, lufs, err);
}

/* ---- formats of a track ---- */

static const int aac_rates[] = {8000,  11025, 12000, 16000, 22050, 24000, 32000,
				44100, 48000, 64000, 88200, 96000, 0};
static const int mp3_rates[] = {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 0};
static const int opus_rates[] = {8000, 12000, 16000, 24000, 48000, 0};
static const int mp3_kbits[] = {8,  16,  24,  32,  40,  48,  56,  64,  80,
				96, 112, 128, 160, 192, 224, 256, 320, 0};

/* MP3 of at most 24,000 samples a second is MPEG-2, of more MPEG-1. */
enum { MPEG2_RATE = 24000, MPEG2_KBIT_MOST = 160, MPEG1_KBIT_LEAST = 32 };

static const struct ffmpeg_format formats[] = {
	{"m4b", "-c:a aac", "-b:a 80k", "-movflags +faststart -f ipod", NULL, aac_rates, 320, false,
	 COVER_STREAM, 3.3},
	{"mp3", "-c:a libmp3lame", "-q:a 3", "-id3v2_version 3 -f mp3", mp3_kbits, mp3_rates, 320,
	 false, COVER_STREAM, 2.0},
	/* for Ogg, ffmpeg rounds the seconds of its own chapters: some begin one too late */
	{"opus", "-c:a libopus", "-b:a 48k", "-f ogg", NULL, opus_rates, 256, true, COVER_TAG, 3.5},
	{"flac", "-c:a flac", "", "-f flac", NULL, NULL, 0, true, COVER_STREAM, 0.4},
	{"epub", "-c:a aac", "-b:a 64k", "-movflags +faststart -f ipod", NULL, aac_rates, 320,
	 false, COVER_NONE, 3.3, true},
};

const struct ffmpeg_format *ffmpeg_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

/* Appends "8, 16 or 24". */
static void add_choices(struct str *to, const int *list)
{
	for (; *list; list++)
		str_addf(to, "%d%s", *list, !list[1] ? "" : !list[2] ? " or " : ", ");
}

static bool is_listed(const int *list, int value)
{
	for (; *list; list++)
		if (*list == value)
			return true;
	return false;
}

int ffmpeg_check_rate(const struct ffmpeg_format *format, int rate, struct err *err)
{
	CLEANUP(str_free) struct str choices = STR_INIT;

	if (!format->rates || is_listed(format->rates, rate))
		return 0;
	add_choices(&choices, format->rates);
	return err_set(err, ERR_CONFIG, "%s has %s samples a second, not %d", format->name,
		       str_text(&choices), rate);
}

int ffmpeg_check_kbit(const struct ffmpeg_format *format, const struct join_coding *coding,
		      struct err *err)
{
	CLEANUP(str_free) struct str choices = STR_INIT;
	const int kbit = coding->kbit, rate = coding->rate;

	if (!format->kbit_most)
		return err_set(err, ERR_CONFIG, "%s has no bit rate", format->name);
	if (format->kbits && !is_listed(format->kbits, kbit)) {
		add_choices(&choices, format->kbits);
		return err_set(err, ERR_CONFIG, "%s has %s kbit/s, not %d", format->name,
			       str_text(&choices), kbit);
	}
	if (kbit < 8 || kbit > format->kbit_most)
		return err_set(err, ERR_CONFIG, "%s has 8 to %d kbit/s, not %d", format->name,
			       format->kbit_most, kbit);
	if (format->kbits && rate && rate <= MPEG2_RATE && kbit > MPEG2_KBIT_MOST)
		return err_set(err, ERR_CONFIG, "%s of %d samples a second has at most %d kbit/s",
			       format->name, rate, MPEG2_KBIT_MOST);
	if (format->kbits && rate > MPEG2_RATE && kbit < MPEG1_KBIT_LEAST)
		return err_set(err, ERR_CONFIG, "%s of %d samples a second has at least %d kbit/s",
			       format->name, rate, MPEG1_KBIT_LEAST);
	return 0;
}

int ffmpeg_encode(int from, int dir, const struct ffmpeg_tags *tags, const char *to,
		  const struct ffmpeg_format *format, const struct join_coding *coding,
		  struct join_meter *meter, double share, struct err *err)
{
	const struct place place = {from, dir, meter, format->ms_per_s * share};
	CLEANUP(args_free) struct args args = args_new();
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);
	struct err why = {0};

	add_words(&args, "-nostats -v error -y " READ_WAV);
	add_words(&args, "-f ffmetadata -protocol_whitelist file -i %s", tags->metadata);
	if (tags->cover)
		add_words(&args, "-f %s -protocol_whitelist file -i %s",
			  tags->is_png ? "png_pipe" : "jpeg_pipe", tags->cover);
	add_words(&args, "-map 0:a -map_metadata 1 -map_chapters %d",
		  format->chapters_are_tags ? -1 : 1);
	if (tags->cover) {
		add_words(&args, "-map 2:v -c:v copy -disposition:v attached_pic -metadata:s:v");
		add_word(&args,
			 "comment=Cover (front)"); /* the kind of picture, for ID3 and FLAC */
	}
	if (tags->language[0])
		add_words(&args, "-metadata:s:a:0 language=%s", tags->language);
	add_words(&args, "%s", format->codec);
	if (coding->kbit && format->kbit_most)
		add_words(&args, "-b:a %dk", coding->kbit);
	else
		add_words(&args, "%s", format->quality);
	if (coding->channels)
		add_words(&args, "-ac %d", coding->channels);
	if (coding->rate)
		add_words(&args, "-ar %d", coding->rate);
	add_words(&args, "%s %s", format->settings, to);
	if (run_ffmpeg(&args, &place, to, &said, &why) == 0)
		return 0;
	if (why.kind == ERR_NOT_FOUND)
		return err_set(err, ERR_JOB, "ffmpeg is not installed");
	return err_set(err, ERR_JOB, "%s", why.msg);
}

/* ---- from something else to WAV ---- */

/* Converts the file "in" of the folder to the WAV file "out". ffmpeg gets a folder of its own: it
 * can read an MP4 file only if it can seek in it, and must not open any other file. */
static int decode_in_folder(const char *dir, const char *kind, int rate, struct err *err)
{
	CLEANUP(fd_close) int folder = path_open_dir(dir);
	CLEANUP(args_free) struct args args = args_new();
	CLEANUP(str_free) struct str said = STR_MAX(STDERR_MAX);

	if (folder < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", dir, strerror(errno));
	add_words(&args,
		  "-nostats -v error -y -protocol_whitelist file -f %s -i file:in -map 0:a:0 "
		  "-t 600 -ac 1 -c:a pcm_s16le " EXACT,
		  kind);
	if (rate)
		add_words(&args, "-ar %d", rate);
	add_words(&args, "-f wav file:out");
	return program_must(&(struct program){.argv = (const char *const *)args.list,
					      .folder_fd = folder,
					      .limit_ms = DECODE_LIMIT_MS},
			    NULL, &said, err);
}

int ffmpeg_decode(const struct str *file, const char *kind, int rate, struct str *wav,
		  struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	CLEANUP(free_text)
	char *dir = xasprintf("%s/burst-sound-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	struct err why = {0};

	if (!mkdtemp(dir))
		return err_set(err, ERR_LOCAL, "%s: %s", dir, strerror(errno));
	CLEANUP(free_text) char *in = path_join(dir, "in");
	CLEANUP(free_text) char *out = path_join(dir, "out");
	int result = path_write(in, file->s, file->len, 0600, err);
	if (result == 0 && decode_in_folder(dir, kind, rate, &why) < 0)
		result = err_set(err, why.kind == ERR_NOT_FOUND ? ERR_NOT_FOUND : ERR_JOB, "%s",
				 why.msg);
	if (result == 0)
		result = path_read(out, DECODED_MAX_BYTES, wav, err);
	path_remove_tree(dir, NULL);
	return result;
}
