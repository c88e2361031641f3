/* join.c - joins the segments of a script into one track with subtitles and chapters */
#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/program.h"
#include "wav.h"

/* ---- join meter ----
 * How far the join of a track is: passes over the sound, each with its usual time. */

struct join_meter {
	pthread_mutex_t lock;
	double all, done, pass; /* ms for a second of sound; pass: of the one under way */
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

/* The join begins; its passes take so much in all. */
static void join_meter_begin(struct join_meter *m, double of_all)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->all = of_all;
	m->done = m->pass = 0;
	pthread_mutex_unlock(&m->lock);
}

/* More is to do than was expected; negative: less. */
static void join_meter_add(struct join_meter *m, double more)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->all += more;
	pthread_mutex_unlock(&m->lock);
}

/* A pass begins. It moves the position of fd, which it may share with a child, from 0 to `bytes`.
 * 0: not known. fd must stay open until join_meter_passed(). */
static void join_meter_pass(struct join_meter *m, double of_pass, int fd, int64_t bytes)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->pass = of_pass;
	m->fd = fd;
	m->bytes = bytes;
	pthread_mutex_unlock(&m->lock);
}

static void join_meter_passed(struct join_meter *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->done += m->pass;
	m->pass = 0;
	pthread_mutex_unlock(&m->lock);
}

static double passed_now(const struct join_meter *m)
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
	double share = m->all > 0 ? (m->done + passed_now(m)) / m->all : 0;
	pthread_mutex_unlock(&m->lock);
	return MIN(share, 1.0);
}

/* ---- ffmpeg ----
 * Runs ffmpeg without a shell: converts WAV files and sets their loudness. */

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

/* Converts the WAV file `from` to this format, as `to`, a name in the folder `dir`. Takes
 * descriptors, since a path could have become a link. Only burst may write to dir. */
static int ffmpeg_convert(int from, int dir, const char *to, const struct wav_format *format,
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

/* Brings `from` to a loudness (EBU R128, true peak at most -1.5 dB) in two or three passes. Keeps
 * length and rate; writes 16 bits. *lufs: the loudness of the result. The meter was told to
 * expect JOIN_LOUDNESS_MS. */
static int ffmpeg_loudness(int from, int dir, const char *to, const struct wav_format *format,
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

/* Encodes the WAV file `from` as `to`, a name in the folder `dir`. chapters: a FFMETADATA file in
 * dir; NULL: none. ERR_JOB: ffmpeg is missing or fails. */
static int ffmpeg_encode(int from, int dir, const char *chapters, const char *to,
			 const struct ffmpeg_format *format, struct join_meter *meter,
			 struct err *err)
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

/* ---- join ----
 * Joins the segments of a script into one track with subtitles and chapters. */

/* The lengths of pieces are rounded: leave room for that. */
#define NEARLY 0.99

/* The join writes to the disk after so much, so that the samples written show its progress. */
enum { SYNC_BYTES = 64 << 20 };

/* burst's own folder in the output folder while a join runs */
#define WORK_NAME ".joined.work"

struct track {
	const char *dir;
	const char *part_of_name; /* "partial.": segments are missing; "" */
	int out, work;            /* descriptors, so that each path is looked up once */
	FILE *f;
	struct wav_format format;
	int64_t frames;
	int64_t synced;   /* bytes of samples */
	bool long_header; /* RF64 */
	bool subtitles;
	struct cue *cues; /* one per piece; the cues own their pauses */
	size_t cue_count;
	struct cue *chapters; /* one per title */
};

static void track_close(struct track *t)
{
	file_close(t->f);
	t->f = NULL;
	fd_close(t->work);
	if (t->out >= 0)
		path_remove_tree_at(t->out, WORK_NAME, WORK_NAME, NULL);
	fd_close(t->out);
	for (size_t i = 0; i < t->cue_count; i++)
		free((void *)t->cues[i].pauses);
	free(t->cues);
	free(t->chapters);
}

static int write_bytes(struct track *t, const void *bytes, size_t len, struct err *err)
{
	if (fwrite(bytes, 1, len, t->f) != len)
		return err_set(err, ERR_LOCAL, "joined.wav: %s", strerror(errno));
	return 0;
}

static int add_silence(struct track *t, int64_t frames, struct err *err)
{
	static const unsigned char zeros[65536];

	t->frames += frames;
	for (int64_t left = frames * wav_frame_bytes(&t->format); left > 0;) {
		size_t n = (size_t)MIN(left, (int64_t)sizeof(zeros));
		if (write_bytes(t, zeros, n, err) < 0)
			return -1;
		left -= (int64_t)n;
	}
	return 0;
}

static int copy_samples(struct track *t, FILE *from, const struct wav_info *info, struct err *err)
{
	char block[65536];

	if (fseeko(from, info->data_offset, SEEK_SET) < 0)
		return err_set(err, ERR_LOCAL, "%s", strerror(errno));
	for (int64_t left = info->frames * wav_frame_bytes(&info->format); left > 0;) {
		size_t n = fread(block, 1, (size_t)MIN(left, (int64_t)sizeof(block)), from);
		if (!n)
			return err_set(err, ERR_LOCAL, "%s",
				       ferror(from) ? strerror(errno) : "the file shrank");
		if (write_bytes(t, block, n, err) < 0)
			return -1;
		left -= (int64_t)n;
	}
	t->frames += info->frames;
	return 0;
}

/* Opens a plain file below the folder without following a link. */
static int open_wav(int dir, const char *name, FILE **out, struct wav_info *info, struct err *err)
{
	int fd = path_open_below(dir, name, O_RDONLY);
	CLEANUP(file_close) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f)
		return err_set(err, ERR_LOCAL, "%s", strerror(errno));
	if (wav_read_header(f, info, err) < 0)
		return -1;
	*out = TAKE(f);
	return 0;
}

/* Converts a piece whose rate, number of channels or coding differs. */
static int open_converted(struct track *t, FILE *from, FILE **out, struct wav_info *info,
			  struct err *err)
{
	if (ffmpeg_convert(fileno(from), t->work, "convert.wav", &t->format, err) < 0)
		return err_wrap(err,
				"its sound format differs from the first segment's; converting");
	return open_wav(t->work, "convert.wav", out, info, err);
}

/* Finds where a text of more than one line may be cut. Without pauses, its length decides. */
static void find_pauses(const struct track *t, FILE *f, const struct wav_info *info,
			struct cue *cue)
{
	int64_t *pauses;
	int count;

	if (!t->subtitles || strlen(cue->text) <= CAPTION_WIDTH ||
	    (count = wav_pauses(f, info, &pauses, NULL)) < 0)
		return;
	for (int i = 0; i < count; i++)
		pauses[i] += cue->begin;
	cue->pauses = pauses;
	cue->pause_count = (size_t)count;
}

static int add_piece(struct track *t, const struct join_piece *piece, struct cue *cue,
		     struct err *err)
{
	CLEANUP(file_close) FILE *f = NULL;
	struct wav_info info;

	if (open_wav(t->out, piece->file, &f, &info, err) < 0)
		return err_wrap(err, "%s", piece->file);
	if (!wav_same_format(&info.format, &t->format)) {
		CLEANUP(file_close) FILE *other = TAKE(f);
		if (open_converted(t, other, &f, &info, err) < 0)
			return err_wrap(err, "%s", piece->file);
	}
	if (!t->long_header &&
	    (t->frames + info.frames) * wav_frame_bytes(&t->format) > WAV_MOST_BYTES)
		return err_set(err, ERR_BUG, "joined.wav: longer than its segments");
	*cue = (struct cue){.text = piece->text, .begin = t->frames};
	find_pauses(t, f, &info, cue);
	if (copy_samples(t, f, &info, err) < 0)
		return err_wrap(err, "%s", piece->file);
	cue->end = t->frames;
	return 0;
}

static int64_t gap_before(const struct track *t, const struct join_piece *pieces, size_t i,
			  const struct join_options *options)
{
	double seconds =
		pieces[i].item == pieces[i - 1].item ? options->piece_gap_s : options->gap_s;

	return llround(MAX(seconds, pieces[i].before_s) * t->format.rate);
}

/* A chapter lasts from the first sound of its first piece to the start of the next chapter. */
static void add_chapter(struct track *t, int chapter, int64_t at, size_t chapter_count)
{
	if (chapter < 0 || (size_t)chapter >= chapter_count)
		return;
	struct cue *c = &t->chapters[chapter];
	if (c->begin < 0)
		c->begin = at;
	c->end = t->frames;
}

/* Chooses the header by the length that the track will have. */
static int begin(struct track *t, const struct join_piece *pieces, size_t count,
		 const struct join_options *options, struct err *err)
{
	const unsigned char header[WAV_RF64_HEADER_BYTES] = {0};
	const int64_t most = options->plain_bytes ? options->plain_bytes : WAV_MOST_BYTES;
	CLEANUP(file_close) FILE *first = NULL;
	struct wav_info info;
	double frames = 0;

	if (open_wav(t->out, pieces[0].file, &first, &info, err) < 0)
		return err_wrap(err, "%s", pieces[0].file);
	t->format = info.format;
	for (size_t i = 0; i < count; i++)
		frames += pieces[i].seconds * t->format.rate +
			  (i > 0 ? (double)gap_before(t, pieces, i, options) : 0);
	frames *= wav_frame_bytes(&t->format);
	join_meter_pass(options->meter, JOIN_COPY_MS, fileno(t->f), (int64_t)frames);
	t->long_header = frames > (double)most * NEARLY;
	return write_bytes(t, header, t->long_header ? WAV_RF64_HEADER_BYTES : WAV_HEADER_BYTES,
			   err);
}

static int write_header(struct track *t, struct err *err)
{
	const int64_t bytes = t->frames * wav_frame_bytes(&t->format);
	unsigned char header[WAV_RF64_HEADER_BYTES];

	if (t->long_header)
		wav_make_rf64_header(header, &t->format, bytes);
	else
		wav_make_header(header, &t->format, (uint32_t)bytes);
	if (fseeko(t->f, 0, SEEK_SET) < 0 ||
	    write_bytes(t, header, t->long_header ? WAV_RF64_HEADER_BYTES : WAV_HEADER_BYTES, err) <
		    0)
		return err_wrap(err, "header");
	return 0;
}

static int sync_part(struct track *t, struct err *err)
{
	if (fflush(t->f) != 0 || fsync(fileno(t->f)) < 0)
		return err_set(err, ERR_LOCAL, "joined.wav: %s", strerror(errno));
	t->synced = t->frames * wav_frame_bytes(&t->format);
	return 0;
}

static int add_all(struct track *t, const struct join_piece *pieces, size_t count,
		   size_t chapter_count, const struct join_options *options, struct err *err)
{
	if (begin(t, pieces, count, options, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && add_silence(t, gap_before(t, pieces, i, options), err) < 0)
			return -1;
		if (add_piece(t, &pieces[i], &t->cues[i], err) < 0)
			return -1;
		add_chapter(t, pieces[i].chapter, t->cues[i].begin, chapter_count);
		if (t->frames * wav_frame_bytes(&t->format) - t->synced > SYNC_BYTES &&
		    sync_part(t, err) < 0)
			return -1;
	}
	return write_header(t, err) < 0 ? -1 : sync_part(t, err);
}

static int check_length(int dir, const char *file, int64_t frames, struct err *err)
{
	CLEANUP(file_close) FILE *f = NULL;
	struct wav_info info;

	if (open_wav(dir, file, &f, &info, err) < 0)
		return -1;
	if (llabs((long long)(info.frames - frames)) * 1000 >
	    info.format.rate) /* tolerance: a millisecond */
		return err_set(err, ERR_LOCAL, "ffmpeg changed the length by %lld samples",
			       (long long)(info.frames - frames));
	return 0;
}

/* Replaces the plain track by one at the requested loudness. */
static int normalise(struct track *t, const struct join_options *options, double *lufs,
		     struct err *err)
{
	CLEANUP(fd_close) int from = path_open_below(t->work, "part.wav", O_RDONLY);

	if (from < 0)
		return err_set(err, ERR_LOCAL, "joined.wav: %s", strerror(errno));
	if (ffmpeg_loudness(from, t->work, "loud.wav", &t->format, options->lufs, options->meter,
			    lufs, err) < 0 ||
	    check_length(t->work, "loud.wav", t->frames, err) < 0)
		return err_wrap(err, "loudness of joined.wav");
	if (renameat(t->work, "loud.wav", t->work, "part.wav") < 0)
		return err_set(err, ERR_LOCAL, "joined.wav: %s", strerror(errno));
	return 0;
}

static void note_length(const struct track *t, struct str *notes)
{
	char length[24];

	str_addf(notes, "joined.%swav: %s", t->part_of_name,
		 duration_show(length, sizeof(length), t->frames * 1000 / t->format.rate));
}

static int set_loudness(struct track *t, const struct join_options *options, struct str *notes,
			struct err *err)
{
	double lufs;

	if (!options->normalise || !ffmpeg_found()) {
		if (options->normalise)
			join_meter_add(options->meter, -JOIN_LOUDNESS_MS);
		note_length(t, notes);
		str_add(notes, options->normalise
				       ? ", loudness left as it is: ffmpeg is not installed\n"
				       : "\n");
		return 0;
	}
	struct err why = {0};
	if (normalise(t, options, &lufs, &why) < 0) {
		if (why.kind != ERR_JOB)
			return err_set(err, why.kind, "%s", why.msg);
		note_length(t, notes);
		str_addf(notes, ", loudness left as it is: %s\n", why.msg);
		return 0;
	}
	note_length(t, notes);
	str_addf(notes, " at %.1f LUFS\n", lufs);
	return 0;
}

/* Writes the chapters for ffmpeg to burst's own folder. Returns false if there are none. */
static bool put_chapters(const struct track *t, size_t chapter_count)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t heard = 0;

	for (size_t i = 0; i < chapter_count; i++)
		heard += t->chapters[i].begin != t->chapters[i].end;
	if (!heard)
		return false;
	subtitles_chapters(&text, t->chapters, chapter_count, t->format.rate);
	return path_write_at(t->work, "chapters.txt", "chapters.txt", str_text(&text), text.len,
			     0600, NULL) == 0;
}

/* "joined.srt", or "joined.partial.srt": a track that lacks segments must not replace a whole one.
 * The caller frees it. */
static char *name_of(const struct track *t, const char *ending)
{
	return xasprintf("joined.%s%s", t->part_of_name, ending);
}

/* Makes joined.m4b and the like from the finished track. If a format fails, adds a note: the track
 * exists, so the run has not failed. */
static int encode(const struct track *t, size_t chapter_count, const struct join_options *options,
		  struct str *notes, struct err *err)
{
	bool chapters = options->formats[0] && put_chapters(t, chapter_count);

	for (size_t i = 0; i < JOIN_FORMATS_MOST && options->formats[i]; i++) {
		const struct ffmpeg_format *format = options->formats[i];
		bool with = chapters && format->chapters;
		CLEANUP(free_text) char *name = name_of(t, format->name);
		CLEANUP(fd_close) int from = path_open_below(t->work, "part.wav", O_RDONLY);
		struct err why = {0};
		if (from < 0)
			return err_set(err, ERR_LOCAL, "joined.wav: %s", strerror(errno));
		if (ffmpeg_encode(from, t->work, with ? "chapters.txt" : NULL, name, format,
				  options->meter, &why) < 0) {
			if (why.kind != ERR_JOB)
				return err_set(err, why.kind, "%s", why.msg);
			str_addf(notes, "%s: not made: %s\n", name, why.msg);
			continue;
		}
		if (renameat(t->work, name, t->out, name) < 0)
			return err_set(err, ERR_LOCAL, "%s/%s: %s", t->dir, name, strerror(errno));
		str_addf(notes, "%s: %s\n", name, with ? "with its chapters" : "the same track");
	}
	return 0;
}

static int put(const struct track *t, const char *ending, const struct str *text, struct err *err)
{
	CLEANUP(free_text)
	char *name = strcmp(ending, "txt") ? name_of(t, ending)
					   : xasprintf("chapters.%stxt", t->part_of_name);
	CLEANUP(free_text) char *path = path_join(t->dir, name);

	return path_write_at(t->out, name, path, str_text(text), text->len, 0666, err);
}

static int write_texts(const struct track *t, size_t count, size_t chapter_count,
		       const struct join_options *options, struct str *notes, struct err *err)
{
	CLEANUP(str_free) struct str srt = STR_INIT;
	CLEANUP(str_free) struct str vtt = STR_INIT;
	CLEANUP(str_free) struct str chapters = STR_INIT;

	if (options->subtitles) {
		subtitles_srt(&srt, t->cues, count, t->format.rate);
		subtitles_vtt(&vtt, t->cues, count, t->format.rate);
		if (put(t, "srt", &srt, err) < 0 || put(t, "vtt", &vtt, err) < 0)
			return -1;
		str_addf(notes, "joined.%ssrt, joined.%svtt: subtitles\n", t->part_of_name,
			 t->part_of_name);
	}
	size_t heard = 0;
	for (size_t i = 0; i < chapter_count; i++)
		heard += t->chapters[i].begin != t->chapters[i].end;
	if (!heard)
		return 0;
	subtitles_chapters(&chapters, t->chapters, chapter_count, t->format.rate);
	str_addf(notes, "chapters.%stxt: %zu chapter%s\n", t->part_of_name, heard,
		 heard == 1 ? "" : "s");
	return put(t, "txt", &chapters, err);
}

/* Makes the working folder; removes what an interrupted join left there. */
static int open_work(struct track *t, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(t->dir, WORK_NAME);

	t->out = path_open_dir(t->dir);
	if (t->out < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", t->dir, strerror(errno));
	if (path_remove_tree_at(t->out, WORK_NAME, path, err) < 0)
		return -1;
	if (mkdirat(t->out, WORK_NAME, 0700) < 0 ||
	    (t->work = openat(t->out, WORK_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) <
		    0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	return 0;
}

static int open_part(struct track *t, struct err *err)
{
	if (open_work(t, err) < 0)
		return -1;
	int fd = path_open_new_at(t->work, "part.wav", O_RDWR, 0666);
	t->f = fd < 0 ? NULL : fdopen(fd, "w+");
	if (!t->f)
		return err_set(err, ERR_LOCAL, "joined.wav: %s", strerror(errno));
	return 0;
}

static int rename_part(struct track *t, struct err *err)
{
	CLEANUP(free_text) char *name = name_of(t, "wav");

	if (renameat(t->work, "part.wav", t->out, name) < 0)
		return err_set(err, ERR_LOCAL, "%s/%s: %s", t->dir, name, strerror(errno));
	if (fsync(t->out) < 0 && errno != EINVAL) /* some file systems cannot fsync folders */
		return err_set(err, ERR_LOCAL, "%s: fsync: %s", t->dir, strerror(errno));
	return 0;
}

/* The whole track is there. */
static void remove_partial(const struct track *t)
{
	static const char *const names[] = {JOIN_PARTIAL_NAMES};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unlinkat(t->out, names[i], 0);
}

static int make(struct track *t, const struct join_piece *pieces, size_t count,
		size_t chapter_count, const struct join_options *options, struct str *notes,
		struct err *err)
{
	if (open_part(t, err) < 0)
		return -1;
	join_meter_begin(options->meter, join_ms_per_s(options));
	int added = add_all(t, pieces, count, chapter_count, options, err);
	join_meter_passed(options->meter);
	if (added < 0)
		return -1;
	file_close(t->f);
	t->f = NULL;
	if (set_loudness(t, options, notes, err) < 0 ||
	    encode(t, chapter_count, options, notes, err) < 0 || rename_part(t, err) < 0)
		return -1;
	if (write_texts(t, count, chapter_count, options, notes, err) < 0)
		return -1;
	if (!options->partial)
		remove_partial(t);
	return 0;
}

double join_ms_per_s(const struct join_options *options)
{
	double ms = JOIN_COPY_MS + (options->normalise ? JOIN_LOUDNESS_MS : 0);

	for (size_t i = 0; i < JOIN_FORMATS_MOST && options->formats[i]; i++)
		ms += options->formats[i]->ms_per_s;
	return ms;
}

int join_pieces(const char *dir, const struct join_piece *pieces, size_t count,
		const char *const *chapters, size_t chapter_count,
		const struct join_options *options, struct str *notes, struct err *err)
{
	struct track t = {.dir = dir,
			  .part_of_name = options->partial ? "partial." : "",
			  .out = -1,
			  .work = -1,
			  .subtitles = options->subtitles,
			  .cue_count = count};

	if (!count)
		return 0;
	t.cues = xcalloc(count, sizeof(*t.cues));
	t.chapters = xcalloc(chapter_count + 1, sizeof(*t.chapters));
	for (size_t i = 0; i < chapter_count; i++)
		t.chapters[i] = (struct cue){.text = chapters[i], .begin = -1, .end = -1};
	int result = make(&t, pieces, count, chapter_count, options, notes, err);
	track_close(&t);
	return result;
}
