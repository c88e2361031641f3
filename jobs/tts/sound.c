/* sound.c - reads WAV files, measures their sound and judges whether it fits the text */
#include "wav.h"
#include "state.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/str.h"

/* ---- wav ----
 * Reads WAV files and measures their sound in constant memory. */

#define QUIET             0.00316 /* -50 dBFS */
#define PAUSE             0.01    /* -40 dBFS: breath and room noise stay below */
#define PAUSE_WINDOWS     8
#define FULL_SCALE        0.99996 /* 32767 of 16 bits; a limiter's maximum just below is not clipped */
#define CLIP_RUN          3
#define WINDOW_S          0.01
#define MAX_CHANNELS      16
#define BLOCK_FRAMES      4096
#define MAX_HEADER_CHUNKS 64

/* Reads a little-endian number. */
static uint32_t read_le(const unsigned char *p, int bytes)
{
	uint32_t value = 0;

	for (int i = bytes; i-- > 0;)
		value = value << 8 | p[i];
	return value;
}

static void put_le(unsigned char *p, uint32_t value, int bytes)
{
	for (int i = 0; i < bytes; i++, value >>= 8)
		p[i] = (unsigned char)value;
}

int wav_frame_bytes(const struct wav_format *format)
{
	return format->channels * format->bits / 8;
}

bool wav_same_format(const struct wav_format *a, const struct wav_format *b)
{
	return a->rate == b->rate && a->channels == b->channels && a->bits == b->bits &&
	       a->is_float == b->is_float;
}

double wav_seconds(const struct wav_info *info)
{
	return (double)info->frames / info->format.rate;
}

/* Sets ERR_JOB with this text and returns -1. */
static int refuse_file(struct err *err, const char *what)
{
	return err_set(err, ERR_JOB, "%s", what);
}

/* The tag of the samples' coding in a fmt chunk: 1 PCM, 3 float, others unknown here. */
static uint32_t coding_tag(const unsigned char *p, uint32_t len)
{
	uint32_t tag = read_le(p, 2);

	/* extensible: the real tag begins the sub-format */
	return tag == 0xfffe && len >= 26 ? read_le(p + 24, 2) : tag;
}

static bool is_readable_coding(uint32_t tag, int bits)
{
	return (tag == 1 && (bits == 16 || bits == 24 || bits == 32)) ||
	       (tag == 3 && (bits == 32 || bits == 64));
}

bool wav_coding_known(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	for (size_t at = 12; at + 8 + 16 <= len;) {
		uint32_t size = read_le(p + at + 4, 4);
		if (!memcmp(p + at, "fmt ", 4))
			return is_readable_coding(
				coding_tag(p + at + 8, (uint32_t)MIN((size_t)size, len - at - 8)),
				(int)read_le(p + at + 22, 2));
		at += 8 + (size_t)size + (size & 1);
	}
	return true;
}

static int read_format(const unsigned char *p, uint32_t len, struct wav_format *out,
		       struct err *err)
{
	if (len < 16)
		return refuse_file(err, "not a WAV file: its fmt chunk is too short");
	uint32_t tag = coding_tag(p, len), align = read_le(p + 12, 2);
	*out = (struct wav_format){
		.rate = (int)read_le(p + 4, 4),
		.channels = (int)read_le(p + 2, 2),
		.bits = (int)read_le(p + 14, 2),
		.is_float = tag == 3,
	};
	if (!is_readable_coding(tag, out->bits))
		return err_set(
			err, ERR_JOB,
			"a WAV coding that is not read here (tag %u, %d bits); PCM or float is",
			tag, out->bits);
	if (out->rate < 1000 || out->rate > 768000 || out->channels < 1 ||
	    out->channels > MAX_CHANNELS || align != (uint32_t)wav_frame_bytes(out))
		return err_set(err, ERR_JOB, "an impossible WAV header (%d Hz, %d channels)",
			       out->rate, out->channels);
	return 0;
}

static int64_t read_le64(const unsigned char *p)
{
	return (int64_t)((uint64_t)read_le(p + 4, 4) << 32 | read_le(p, 4));
}

/* says: the size in the header, with the 8 bytes before what it counts. */
static int check_riff(int64_t says, int64_t file_bytes, struct err *err)
{
	if (says > file_bytes + 1) /* some writers count a padding byte that they do not write */
		return err_set(err, ERR_JOB,
			       "the file is cut: its header says %lld bytes, it has %lld",
			       (long long)says, (long long)file_bytes);
	if (says < file_bytes - 1)
		return err_set(err, ERR_JOB, "the header says %lld bytes, the file has %lld",
			       (long long)says, (long long)file_bytes);
	return 0;
}

/* Notes where the samples are. ERR_JOB: the file has fewer. */
static int set_data(struct wav_info *info, int64_t at, int64_t len, int64_t file_bytes,
		    struct err *err)
{
	int frame = wav_frame_bytes(&info->format);

	if (!frame)
		return refuse_file(err, "not a WAV file: its data come before the format");
	if (len < 0 || len > file_bytes - at)
		return err_set(err, ERR_JOB, "the file is cut: %lld bytes of sound are missing",
			       (long long)(len < 0 ? 0 : len - (file_bytes - at)));
	if (len % frame)
		return refuse_file(err, "the file is cut within a sample");
	info->data_offset = at;
	info->frames = len / frame;
	return 0;
}

static int refuse_cut_header(struct err *err)
{
	return refuse_file(err, "the file is cut: its header is not complete");
}

/* Reads the sizes of file and samples from the first chunk of RF64. */
static int read_ds64(FILE *f, int64_t file_bytes, int64_t *data_bytes, struct err *err)
{
	unsigned char chunk[8 + 28];
	uint32_t len;

	if (fread(chunk, 1, sizeof(chunk), f) != sizeof(chunk))
		return refuse_cut_header(err);
	len = read_le(chunk + 4, 4);
	if (memcmp(chunk, "ds64", 4) || len < 28 ||
	    fseeko(f, (off_t)len - 28 + (len & 1), SEEK_CUR))
		return refuse_file(err, "not a WAV file: RF64 without its sizes");
	*data_bytes = read_le64(chunk + 16);
	int64_t says = read_le64(chunk + 8);
	return check_riff(says < 0 || says > INT64_MAX - 8 ? INT64_MAX : says + 8, file_bytes, err);
}

/* Reads the head of RIFF or RF64 and checks the file's size. *data_bytes: size of the samples in
 * RF64; -1: the chunk of the samples has it. */
static int read_head(FILE *f, int64_t file_bytes, int64_t *data_bytes, struct err *err)
{
	unsigned char head[12];

	*data_bytes = -1;
	if (fread(head, 1, sizeof(head), f) != sizeof(head))
		return ferror(f) ? err_set(err, ERR_LOCAL, "%s", strerror(errno))
				 : refuse_cut_header(err);
	if (!memcmp(head, "RF64", 4) && !memcmp(head + 8, "WAVE", 4))
		return read_ds64(f, file_bytes, data_bytes, err);
	if (memcmp(head, "RIFF", 4) || memcmp(head + 8, "WAVE", 4))
		return refuse_file(err, "not a WAV file");
	return check_riff((int64_t)read_le(head + 4, 4) + 8, file_bytes, err);
}

int wav_read_header(FILE *f, struct wav_info *out, struct err *err)
{
	unsigned char chunk[8], fmt[40];
	int64_t data_bytes;
	struct wav_info info = {0};
	int64_t bytes = fseeko(f, 0, SEEK_END) < 0 ? -1 : (int64_t)ftello(f);

	if (bytes < 0 || fseeko(f, 0, SEEK_SET) < 0)
		return err_set(err, ERR_LOCAL, "%s", strerror(errno));
	if (bytes == 0)
		return refuse_file(err, "the file is empty");
	if (read_head(f, bytes, &data_bytes, err) < 0)
		return -1;
	for (int i = 0; i < MAX_HEADER_CHUNKS; i++) {
		if (fread(chunk, 1, sizeof(chunk), f) != sizeof(chunk))
			return refuse_cut_header(err);
		uint32_t len = read_le(chunk + 4, 4), use = 0;
		if (!memcmp(chunk, "data", 4)) {
			bool elsewhere = data_bytes >= 0 && len == UINT32_MAX;
			if (set_data(&info, ftello(f), elsewhere ? data_bytes : len, bytes, err) <
			    0)
				return -1;
			*out = info;
			return 0;
		}
		if (!memcmp(chunk, "fmt ", 4)) {
			use = MIN(len, (uint32_t)sizeof(fmt));
			if (fread(fmt, 1, use, f) != use)
				return refuse_cut_header(err);
			if (read_format(fmt, use, &info.format, err) < 0)
				return -1;
		}
		if (fseeko(f, (off_t)len - use + (len & 1), SEEK_CUR) < 0)
			return refuse_cut_header(err);
	}
	return refuse_file(err, "not a WAV file: too many chunks before its data");
}

/* Reads one sample; full scale is 1. */
static double sample_at(const unsigned char *p, const struct wav_format *format)
{
	if (format->is_float && format->bits == 32) {
		uint32_t raw = read_le(p, 4);
		float value;
		memcpy(&value, &raw, sizeof(value));
		return (double)value;
	}
	if (format->is_float) {
		uint64_t raw = (uint64_t)read_le(p + 4, 4) << 32 | read_le(p, 4);
		double value;
		memcpy(&value, &raw, sizeof(value));
		return value;
	}
	uint32_t raw = read_le(p, format->bits / 8) << (32 - format->bits);
	return (double)(int32_t)raw / 2147483648.0;
}

struct listener {
	struct wav_sound sound;
	int64_t window, in_window;                     /* in frames */
	double window_peak, window_sum, window_energy; /* energy: sum of squares */
	double sum, loud_energy, last_energy[2];
	/* last: in the two newest windows */
	int64_t samples, loud_samples, window_samples, last_samples[2];
	int64_t quiet_run, longest; /* in windows */
	bool heard;
	int64_t clip_run[MAX_CHANNELS], clipped;
	bool not_a_number;
	bool notes_pauses;
	int64_t windows, pause_run;
	struct span *pauses, heard_at; /* pauses: owned */
	size_t pause_count, pause_cap;
	bool notes_levels;
	float *levels; /* peaks of the windows; owned */
	size_t level_count, level_cap;
};

/* Adds the window to the sums of the file, and of its loud parts. */
static void end_window_energy(struct listener *l)
{
	l->last_energy[0] = l->last_energy[1];
	l->last_samples[0] = l->last_samples[1];
	l->last_energy[1] = l->window_energy;
	l->last_samples[1] = l->window_samples;
	if (l->window_peak >= QUIET) {
		l->loud_energy += l->window_energy;
		l->loud_samples += l->window_samples;
	}
	l->sum += l->window_sum;
	l->samples += l->window_samples;
	l->window_energy = l->window_sum = 0;
	l->window_samples = 0;
}

/* Notes the pause that this window ends, if one does. */
static void end_window_pause(struct listener *l)
{
	int64_t begin = l->windows++ * l->window;

	if (l->window_peak < PAUSE) {
		l->pause_run++;
		return;
	}
	if (!l->heard_at.end)
		l->heard_at.begin = begin;
	else if (l->pause_run >= PAUSE_WINDOWS) {
		GROW(l->pauses, l->pause_count, l->pause_cap);
		l->pauses[l->pause_count++] =
			(struct span){begin - l->pause_run * l->window, begin};
	}
	l->heard_at.end = begin + l->in_window;
	l->pause_run = 0;
}

static void end_window(struct listener *l)
{
	if (l->notes_pauses)
		end_window_pause(l);
	if (l->notes_levels) {
		GROW(l->levels, l->level_count, l->level_cap);
		l->levels[l->level_count++] = (float)l->window_peak;
	}
	end_window_energy(l);
	if (l->window_peak < QUIET) {
		l->quiet_run++;
	} else {
		if (l->heard)
			l->longest = MAX(l->longest, l->quiet_run);
		l->heard = true;
		l->quiet_run = 0;
	}
	l->in_window = 0;
	l->window_peak = 0;
}

static void measure_sample(struct listener *l, int channel, double sample)
{
	double loud = fabs(sample);

	if (!isfinite(loud)) {
		l->not_a_number = true;
		return;
	}
	l->window_sum += sample;
	l->window_energy += sample * sample;
	l->window_samples++;
	l->window_peak = MAX(l->window_peak, loud);
	l->sound.peak = MAX(l->sound.peak, loud);
	if (loud < FULL_SCALE) {
		l->clip_run[channel] = 0;
		return;
	}
	l->clip_run[channel]++;
	if (l->clip_run[channel] == CLIP_RUN)
		l->clipped += CLIP_RUN;
	else if (l->clip_run[channel] > CLIP_RUN)
		l->clipped++;
}

static void measure_block(struct listener *l, const unsigned char *bytes, size_t frames,
			  const struct wav_format *format)
{
	for (size_t i = 0; i < frames; i++) {
		for (int c = 0; c < format->channels; c++, bytes += format->bits / 8)
			measure_sample(l, c, sample_at(bytes, format));
		if (++l->in_window == l->window)
			end_window(l);
	}
}

/* As wav_sound.tail. */
static double tail_of(const struct listener *l)
{
	int64_t samples = l->last_samples[0] + l->last_samples[1];

	if (!samples || !(l->loud_energy > 0))
		return 0;
	double end = (l->last_energy[0] + l->last_energy[1]) / (double)samples;
	return sqrt(end / (l->loud_energy / (double)l->loud_samples));
}

static int measure_all_samples(struct listener *l, FILE *f, const struct wav_info *info,
			       struct err *err)
{
	size_t frame = (size_t)wav_frame_bytes(&info->format);

	if (fseeko(f, info->data_offset, SEEK_SET) < 0)
		return err_set(err, ERR_LOCAL, "%s", strerror(errno));
	unsigned char *block = xmalloc(BLOCK_FRAMES * frame);
	for (int64_t left = info->frames; left > 0;) {
		size_t want = (size_t)MIN(left, (int64_t)BLOCK_FRAMES),
		       got = fread(block, frame, want, f);
		measure_block(l, block, got, &info->format);
		if (got != want) {
			free(block);
			return err_set(err, ERR_LOCAL, "%s",
				       ferror(f) ? strerror(errno) : "the file shrank");
		}
		left -= (int64_t)got;
	}
	free(block);
	if (l->in_window)
		end_window(l);
	return 0;
}

int wav_listen(FILE *f, const struct wav_info *info, struct wav_sound *out, struct err *err)
{
	struct listener l = {.window = (int64_t)(info->format.rate * WINDOW_S)};

	if (measure_all_samples(&l, f, info, err) < 0)
		return -1;
	if (l.not_a_number)
		return refuse_file(err, "it holds samples that are not numbers");
	l.sound.inner_silence = (double)(l.longest * l.window) / info->format.rate;
	if (info->frames)
		l.sound.clipped =
			(double)l.clipped / (double)(info->frames * info->format.channels);
	l.sound.offset = l.samples ? l.sum / (double)l.samples : 0;
	l.sound.tail = tail_of(&l);
	l.sound.loud_s = (double)l.loud_samples / info->format.channels / info->format.rate;
	*out = l.sound;
	return 0;
}

int wav_pauses(FILE *f, const struct wav_info *info, struct span **out, struct span *sound,
	       struct err *err)
{
	struct listener l = {.window = (int64_t)(info->format.rate * WINDOW_S),
			     .notes_pauses = true};

	if (measure_all_samples(&l, f, info, err) < 0) {
		free(l.pauses);
		return -1;
	}
	*out = l.pauses;
	*sound = l.heard_at;
	return (int)MIN(l.pause_count, (size_t)INT_MAX);
}

int64_t wav_level_frames(const struct wav_info *info)
{
	return (int64_t)(info->format.rate * WINDOW_S);
}

int wav_levels(FILE *f, const struct wav_info *info, float **out, size_t *count, struct err *err)
{
	struct listener l = {.window = wav_level_frames(info), .notes_levels = true};

	if (measure_all_samples(&l, f, info, err) < 0) {
		free(l.levels);
		return -1;
	}
	*out = l.levels;
	*count = l.level_count;
	return 0;
}

/* The fmt chunk and the start of the data chunk: 32 bytes. */
static void put_format(unsigned char *to, const struct wav_format *format, uint32_t data_bytes)
{
	uint32_t frame = (uint32_t)wav_frame_bytes(format);

	memcpy(to, "fmt ", 4);
	put_le(to + 4, 16, 4);
	put_le(to + 8, format->is_float ? 3 : 1, 2);
	put_le(to + 10, (uint32_t)format->channels, 2);
	put_le(to + 12, (uint32_t)format->rate, 4);
	put_le(to + 16, (uint32_t)format->rate * frame, 4);
	put_le(to + 20, frame, 2);
	put_le(to + 22, (uint32_t)format->bits, 2);
	memcpy(to + 24, "data", 4);
	put_le(to + 28, data_bytes, 4);
}

static void put_le64(unsigned char *p, int64_t value)
{
	put_le(p, (uint32_t)value, 4);
	put_le(p + 4, (uint32_t)((uint64_t)value >> 32), 4);
}

size_t wav_make_header(unsigned char *to, const struct wav_format *format, int64_t data_bytes,
		       bool rf64)
{
	if (!rf64) {
		memcpy(to, "RIFF", 4);
		put_le(to + 4, (uint32_t)data_bytes + WAV_HEADER_BYTES - 8, 4);
		memcpy(to + 8, "WAVE", 4);
		put_format(to + 12, format, (uint32_t)data_bytes);
		return WAV_HEADER_BYTES;
	}
	memcpy(to, "RF64", 4);
	put_le(to + 4, UINT32_MAX, 4);
	memcpy(to + 8, "WAVEds64", 8);
	put_le(to + 16, 28, 4);
	put_le64(to + 20, data_bytes + WAV_RF64_HEADER_BYTES - 8);
	put_le64(to + 28, data_bytes);
	put_le64(to + 36, data_bytes / wav_frame_bytes(format));
	put_le(to + 44, 0, 4); /* no further sizes */
	put_format(to + 48, format, UINT32_MAX);
	return WAV_RF64_HEADER_BYTES;
}

/* ---- habits ----
 * Learns how a voice speaks from its files, and finds unusual ones. */

#define NEWEST        64
#define JUDGE_FROM    12
#define RATE_FROM     3
#define LETTERS_LEAST 24
#define LONG_TIMES    1.9 /* factors on the median of the voice for a text of this length */
#define SHORT_TIMES   0.5
#define SLACK_S       0.6
#define TAIL_LOUD     0.5  /* share above which a file ends at full voice */
#define TAIL_USUAL    0.25 /* most files of the voice end below this share */

/* One voice. The newest files are in a ring. */
struct voice {
	char *name;
	double per_letter[NEWEST], tail[NEWEST];
	size_t count;      /* files so far, in both rings */
	int rate;          /* rate of most files so far */
	size_t rate_votes; /* votes for that rate, less those against it */
	size_t files;
};

struct habits {
	pthread_mutex_t lock;
	struct voice *voices;
	size_t count, cap;
};

struct habits *habits_new(void)
{
	struct habits *h = xcalloc(1, sizeof(*h));

	pthread_mutex_init(&h->lock, NULL);
	return h;
}

void habits_free(struct habits *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->count; i++)
		free(h->voices[i].name);
	free(h->voices);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

static struct voice *voice_of(struct habits *h, const char *name)
{
	for (size_t i = 0; i < h->count; i++)
		if (!strcmp(h->voices[i].name, name))
			return &h->voices[i];
	GROW(h->voices, h->count, h->cap);
	h->voices[h->count] = (struct voice){.name = xstrdup(name)};
	return &h->voices[h->count++];
}

/* The spoken length: a letter of any script counts one, a digit as many letters as its name. */
static double letters_of(const char *text)
{
	double letters = 0;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		letters += isdigit(*p) ? 4 : isalpha(*p) || *p >= 0xc0;
	return letters;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The value below which this part of the ring's newest values lies. count: of all values so far. */
static double quantile(const double *ring, size_t count, double part)
{
	double sorted[NEWEST];
	size_t n = MIN(count, (size_t)NEWEST);

	memcpy(sorted, ring, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[(size_t)((double)(n - 1) * part)];
}

/* Finds the usual rate by majority vote. Returns false, with the reason in why, if this differs. */
static bool learn_rate(struct voice *v, int rate, char *why, size_t size)
{
	bool differs = v->files >= RATE_FROM && rate != v->rate;

	if (differs)
		format_text(why, size, "%d samples a second where this voice's other files have %d",
			    rate, v->rate);
	v->files++;
	if (rate == v->rate)
		v->rate_votes++;
	else if (v->rate_votes > 0)
		v->rate_votes--;
	else
		v->rate = rate;
	return !differs;
}

/* Returns false, with the reason in why, if the voice takes much more or less time for such a
 * text. */
static bool is_usual_length(const struct voice *v, double letters, double seconds, char *why,
			    size_t size)
{
	double usual = quantile(v->per_letter, v->count, 0.5) * letters;

	if (seconds > usual * LONG_TIMES + SLACK_S) {
		format_text(why, size,
			    "%.1f s where this voice takes about %.1f s: something may be repeated",
			    seconds, usual);
		return false;
	}
	if (seconds < usual * SHORT_TIMES - SLACK_S / 2) {
		format_text(why, size,
			    "%.1f s where this voice takes about %.1f s: something may be missing",
			    seconds, usual);
		return false;
	}
	return true;
}

/* Returns false, with the reason in why, if only this file ends at full voice. */
static bool is_usual_end(const struct voice *v, double tail, char *why, size_t size)
{
	if (tail <= TAIL_LOUD || quantile(v->tail, v->count, 0.9) >= TAIL_USUAL)
		return true;
	format_text(why, size,
		    "it ends in full voice, where this voice's other files fade: the end may be "
		    "cut off");
	return false;
}

/* Returns false, with the reason in why, for an unusual file. Learns from each file that has enough
 * letters, also from unusual ones. */
static bool judge_and_learn(struct voice *v, const char *text, const struct heard *heard, char *why,
			    size_t size)
{
	double letters = letters_of(text);

	if (!learn_rate(v, heard->rate, why, size))
		return false;
	if (letters < LETTERS_LEAST)
		return true;
	bool usual =
		v->count < JUDGE_FROM || (is_usual_length(v, letters, heard->seconds, why, size) &&
					  is_usual_end(v, heard->tail, why, size));
	v->per_letter[v->count % NEWEST] = heard->seconds / letters;
	v->tail[v->count % NEWEST] = heard->tail;
	v->count++;
	return usual;
}

bool habits_judge(struct habits *h, const char *name, const char *text, const struct heard *heard,
		  char *why, size_t size)
{
	pthread_mutex_lock(&h->lock);
	bool usual = judge_and_learn(voice_of(h, name), text, heard, why, size);
	pthread_mutex_unlock(&h->lock);
	return usual;
}

/* ---- check ----
 * Judges whether a finished WAV file fits its text. */

#define SLACK_LEAST_S 0.25 /* slack for a short text */
#define SLACK_MOST_S  2.0  /* slack for pauses before and after */
#define SILENT_PEAK   0.001
#define CAP_WINDOW_S  0.1

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

/* The highest number of letters spoken for a character that is no ASCII letter. */
static double most_spoken_letters(unsigned char c)
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
	double least = 0, most = 0, second = CHARS_PER_S * (limits->speed > 0 ? limits->speed : 1);

	for (const unsigned char *p = (const unsigned char *)text; *p;) {
		size_t word = 0;
		while (isalpha(p[word]))
			word++;
		if (word) {
			most += (double)word * (is_spelled(p, word) ? 6 : 1.25); /* "double-u" */
			least += (double)word;
			p += word;
		} else {
			most += most_spoken_letters(*p);
			least += isdigit(*p) || *p == ' ' || *p >= 0xc0;
			p++;
		}
	}
	*least_s = MAX(limits->min_duration * least / second - SLACK_LEAST_S, 0.02);
	*most_s = limits->max_duration * most / second + SLACK_MOST_S;
}

/* A text without letters may be silent: some voices speak the name of a sign, others do not. */
static bool has_letters(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (isalnum(*p) || (*p >= 0xc3 && *p <= 0xe1) || (*p >= 0xe3 && *p <= 0xed))
			return true;
	return false;
}

/* Sets the verdict: the file does not fit, and why. Returns 0, since the check itself succeeded. */
static int reject(struct check *out, const char *fmt, ...) PRINTF(2, 3);
static int reject(struct check *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vformat_text(out->reason, sizeof(out->reason), fmt, ap);
	va_end(ap);
	out->ok = false;
	return 0;
}

/* This and the two below return 0 and may set the verdict. */
static int judge_length(const char *text, const struct check_limits *limits, struct check *out)
{
	double least, most;

	check_window(text, limits, &least, &most);
	if (limits->cap_s > 0 && out->seconds >= limits->cap_s - CAP_WINDOW_S)
		return reject(out, "%.1f s: the engine stops at %.0f s, the end is missing",
			      out->seconds, limits->cap_s);
	if (out->seconds < least)
		return reject(out, "too short: %.2f s where the text takes at least %.2f s",
			      out->seconds, least);
	if (out->seconds > most)
		return reject(out, "too long: %.2f s where the text takes at most %.2f s",
			      out->seconds, most);
	return 0;
}

static int judge_sound(const struct wav_sound *sound, const char *text,
		       const struct check_limits *limits, struct check *out)
{
	if (sound->peak < SILENT_PEAK && has_letters(text))
		return reject(out, "silent all through");
	if (sound->inner_silence > limits->max_silence)
		return reject(out, "%.1f s of silence inside", sound->inner_silence);
	if (sound->clipped > limits->max_clipped)
		return reject(out, "clipped: %.1f %% of the samples", 100 * sound->clipped);
	if (limits->max_offset > 0 && fabs(sound->offset) > limits->max_offset)
		return reject(out, "its mean is %.0f %% of full scale off zero",
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

/* Turns a fault of the file into a verdict and returns 0. -1: the file cannot be read. */
static int verdict_of(struct err *why, struct check *out, struct err *err)
{
	if (why->kind != ERR_JOB)
		return err_set(err, why->kind, "%s", why->msg);
	return reject(out, "%s", why->msg);
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
