/* wav.c - reads WAV files and measures their sound in constant memory. */
#include "wav.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define QUIET             0.00316 /* -50 dBFS */
#define PAUSE             0.01    /* -40 dBFS: breath and room noise stay below */
#define PAUSE_WINDOWS     8
#define FULL_SCALE        0.99996 /* 32767 of 16 bits; a limiter's maximum just below is not clipped */
#define CLIP_RUN          3
#define WINDOW_S          0.01
#define MAX_CHANNELS      16
#define BLOCK_FRAMES      4096
#define MAX_HEADER_CHUNKS 64

static uint32_t le(const unsigned char *p, int bytes)
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

static int bad(struct err *err, const char *what)
{
	return err_set(err, ERR_JOB, "%s", what);
}

static uint32_t tag_of(const unsigned char *p, uint32_t len)
{
	uint32_t tag = le(p, 2);

	/* extensible: the real tag begins the sub-format */
	return tag == 0xfffe && len >= 26 ? le(p + 24, 2) : tag;
}

static bool is_known(uint32_t tag, int bits)
{
	return (tag == 1 && (bits == 16 || bits == 24 || bits == 32)) ||
	       (tag == 3 && (bits == 32 || bits == 64));
}

bool wav_coding_known(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	for (size_t at = 12; at + 8 + 16 <= len;) {
		uint32_t size = le(p + at + 4, 4);
		if (!memcmp(p + at, "fmt ", 4))
			return is_known(
				tag_of(p + at + 8, (uint32_t)MIN((size_t)size, len - at - 8)),
				(int)le(p + at + 22, 2));
		at += 8 + (size_t)size + (size & 1);
	}
	return true;
}

static int read_format(const unsigned char *p, uint32_t len, struct wav_format *out,
		       struct err *err)
{
	if (len < 16)
		return bad(err, "not a WAV file: its fmt chunk is too short");
	uint32_t tag = tag_of(p, len), align = le(p + 12, 2);
	*out = (struct wav_format){
		.rate = (int)le(p + 4, 4),
		.channels = (int)le(p + 2, 2),
		.bits = (int)le(p + 14, 2),
		.is_float = tag == 3,
	};
	if (!is_known(tag, out->bits))
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

static int64_t le64(const unsigned char *p)
{
	return (int64_t)((uint64_t)le(p + 4, 4) << 32 | le(p, 4));
}

/* says: with the 8 bytes before what it counts. */
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

static int take_data(struct wav_info *info, int64_t at, int64_t len, int64_t file_bytes,
		     struct err *err)
{
	int frame = wav_frame_bytes(&info->format);

	if (!frame)
		return bad(err, "not a WAV file: its data come before the format");
	if (len < 0 || len > file_bytes - at)
		return err_set(err, ERR_JOB, "the file is cut: %lld bytes of sound are missing",
			       (long long)(len < 0 ? 0 : len - (file_bytes - at)));
	if (len % frame)
		return bad(err, "the file is cut within a sample");
	info->data_offset = at;
	info->frames = len / frame;
	return 0;
}

static int cut_header(struct err *err)
{
	return bad(err, "the file is cut: its header is not complete");
}

/* Reads the size of the samples from the first chunk of RF64, which has that of the file, too. */
static int read_ds64(FILE *f, int64_t file_bytes, int64_t *data_bytes, struct err *err)
{
	unsigned char chunk[8 + 28];
	uint32_t len;

	if (fread(chunk, 1, sizeof(chunk), f) != sizeof(chunk))
		return cut_header(err);
	len = le(chunk + 4, 4);
	if (memcmp(chunk, "ds64", 4) || len < 28 ||
	    fseeko(f, (off_t)len - 28 + (len & 1), SEEK_CUR))
		return bad(err, "not a WAV file: RF64 without its sizes");
	*data_bytes = le64(chunk + 16);
	int64_t says = le64(chunk + 8);
	return check_riff(says < 0 || says > INT64_MAX - 8 ? INT64_MAX : says + 8, file_bytes, err);
}

/* *data_bytes: as RF64 says; -1: the chunk of the samples says it. */
static int read_head(FILE *f, int64_t file_bytes, int64_t *data_bytes, struct err *err)
{
	unsigned char head[12];

	*data_bytes = -1;
	if (fread(head, 1, sizeof(head), f) != sizeof(head))
		return ferror(f) ? err_set(err, ERR_LOCAL, "%s", strerror(errno)) : cut_header(err);
	if (!memcmp(head, "RF64", 4) && !memcmp(head + 8, "WAVE", 4))
		return read_ds64(f, file_bytes, data_bytes, err);
	if (memcmp(head, "RIFF", 4) || memcmp(head + 8, "WAVE", 4))
		return bad(err, "not a WAV file");
	return check_riff((int64_t)le(head + 4, 4) + 8, file_bytes, err);
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
		return bad(err, "the file is empty");
	if (read_head(f, bytes, &data_bytes, err) < 0)
		return -1;
	for (int i = 0; i < MAX_HEADER_CHUNKS; i++) {
		if (fread(chunk, 1, sizeof(chunk), f) != sizeof(chunk))
			return cut_header(err);
		uint32_t len = le(chunk + 4, 4), use = 0;
		if (!memcmp(chunk, "data", 4)) {
			bool elsewhere = data_bytes >= 0 && len == UINT32_MAX;
			if (take_data(&info, ftello(f), elsewhere ? data_bytes : len, bytes, err) <
			    0)
				return -1;
			*out = info;
			return 0;
		}
		if (!memcmp(chunk, "fmt ", 4)) {
			use = MIN(len, (uint32_t)sizeof(fmt));
			if (fread(fmt, 1, use, f) != use)
				return cut_header(err);
			if (read_format(fmt, use, &info.format, err) < 0)
				return -1;
		}
		if (fseeko(f, (off_t)len - use + (len & 1), SEEK_CUR) < 0)
			return cut_header(err);
	}
	return bad(err, "not a WAV file: too many chunks before its data");
}

static double sample_at(const unsigned char *p, const struct wav_format *format)
{
	if (format->is_float && format->bits == 32) {
		uint32_t raw = le(p, 4);
		float value;
		memcpy(&value, &raw, sizeof(value));
		return (double)value;
	}
	if (format->is_float) {
		uint64_t raw = (uint64_t)le(p + 4, 4) << 32 | le(p, 4);
		double value;
		memcpy(&value, &raw, sizeof(value));
		return value;
	}
	uint32_t raw = le(p, format->bits / 8) << (32 - format->bits);
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
	int64_t windows, pause_run, *pauses; /* pauses: their middles in frames; owned */
	size_t pause_count, pause_cap;
};

static void note_energy(struct listener *l)
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

static void note_pause(struct listener *l)
{
	l->windows++;
	if (l->window_peak < PAUSE) {
		l->pause_run++;
		return;
	}
	if (l->heard && l->pause_run >= PAUSE_WINDOWS) {
		GROW(l->pauses, l->pause_count, l->pause_cap);
		l->pauses[l->pause_count++] =
			(l->windows - 1) * l->window - l->pause_run * l->window / 2;
	}
	l->pause_run = 0;
}

static void end_window(struct listener *l)
{
	if (l->notes_pauses)
		note_pause(l);
	note_energy(l);
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
		return bad(err, "it holds samples that are not numbers");
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

int wav_pauses(FILE *f, const struct wav_info *info, int64_t **out, struct err *err)
{
	struct listener l = {.window = (int64_t)(info->format.rate * WINDOW_S),
			     .notes_pauses = true};

	if (measure_all_samples(&l, f, info, err) < 0) {
		free(l.pauses);
		return -1;
	}
	*out = l.pauses;
	return (int)MIN(l.pause_count, (size_t)INT_MAX);
}

/* The chunk of the format and the start of that of the samples: 32 bytes. */
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

void wav_make_header(unsigned char to[WAV_HEADER_BYTES], const struct wav_format *format,
		     uint32_t data_bytes)
{
	memcpy(to, "RIFF", 4);
	put_le(to + 4, data_bytes + WAV_HEADER_BYTES - 8, 4);
	memcpy(to + 8, "WAVE", 4);
	put_format(to + 12, format, data_bytes);
}

static void put_le64(unsigned char *p, int64_t value)
{
	put_le(p, (uint32_t)value, 4);
	put_le(p + 4, (uint32_t)((uint64_t)value >> 32), 4);
}

void wav_make_rf64_header(unsigned char to[WAV_RF64_HEADER_BYTES], const struct wav_format *format,
			  int64_t data_bytes)
{
	memcpy(to, "RF64", 4);
	put_le(to + 4, UINT32_MAX, 4);
	memcpy(to + 8, "WAVEds64", 8);
	put_le(to + 16, 28, 4);
	put_le64(to + 20, data_bytes + WAV_RF64_HEADER_BYTES - 8);
	put_le64(to + 28, data_bytes);
	put_le64(to + 36, data_bytes / wav_frame_bytes(format));
	put_le(to + 44, 0, 4); /* no further sizes */
	put_format(to + 48, format, UINT32_MAX);
}
