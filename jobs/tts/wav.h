/* wav.h - reads WAV files as speech engines write them: the header, the samples as a stream, and
 * measures of the sound. */
#ifndef BURST_JOBS_TTS_WAV_H
#define BURST_JOBS_TTS_WAV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct wav_format {
	int rate, channels;
	int bits; /* of one sample: 16, 24, 32; 64 for float */
	bool is_float;
};

struct wav_info {
	struct wav_format format;
	int64_t data_offset;
	int64_t frames; /* samples of one channel */
};

/* Thresholds: quiet is below -50 dBFS, silent everywhere is below -60 dBFS. */
struct wav_sound {
	double peak;          /* 1.0 = full scale */
	double inner_silence; /* seconds of the longest quiet stretch between sounds */
	double clipped;       /* share of samples in runs of 3 or more at full scale */
	/* mean of all samples, 0 in clean sound; 1.0 = full scale */
	double offset;
	double loud_s; /* seconds that are not quiet */
	/* loudness of the last 20 ms relative to all that is not quiet */
	double tail;
};

/* Reads the header at the start of f. Sizes must match the file's. ERR_JOB names the fault ("the
 * file is cut: ..."); ERR_LOCAL: the file cannot be read. */
int wav_read_header(FILE *f, struct wav_info *out, struct err *err);
/* Returns whether burst reads this WAV file's coding. True if its header does not name one. */
bool wav_coding_known(const void *bytes, size_t len);
/* Reads all samples in constant memory. f may be at any position. */
int wav_listen(FILE *f, const struct wav_info *info, struct wav_sound *out, struct err *err);

/* Frames from one to another. */
struct span {
	int64_t begin, end;
};

/* Finds all pauses of 80 ms or more between sounds, in order. *sound: from the first sound to the
 * last; empty: there is none. Returns the count, or -1 with ERR_LOCAL. The caller frees *out. */
int wav_pauses(FILE *f, const struct wav_info *info, struct span **out, struct span *sound,
	       struct err *err);

/* A word that the file's engine marked. */
struct wav_mark {
	int64_t begin, end; /* in frames; equal: its length is unknown */
	char *text;         /* valid UTF-8 without control characters, never empty */
};

/* Reads the marked words of the file, in order of their begin: `cue ` and LIST chunks behind the
 * samples, as jobs/PROTOCOL.md describes. Drops marks that are outside the sound or have no text.
 * Returns the count; 0 also if the chunks are damaged. Free *out with wav_marks_free(). */
size_t wav_marks(FILE *f, const struct wav_info *info, struct wav_mark **out);
void wav_marks_free(struct wav_mark *marks, size_t count);
/* The transcript of the file, which its worker left in a chunk `hear` behind the samples; "" if it
 * heard no word. Safe for a terminal. NULL: the file has none, or a damaged one. The caller frees
 * it. */
char *wav_transcript(FILE *f, const struct wav_info *info);

/* The peak of each window of 10 ms, 1.0 = full scale. Returns -1 with ERR_LOCAL. The caller frees
 * *out. */
int wav_levels(FILE *f, const struct wav_info *info, float **out, size_t *count, struct err *err);
/* Frames of a window of wav_levels(). */
int64_t wav_level_frames(const struct wav_info *info);

/* Where the speech of a file lies, in frames. Without any sound it is the whole file. */
struct wav_trim {
	int64_t begin, end;
	/* nothing but silence lies between these and begin, end: stray sounds, or the file's ends
	 */
	int64_t least, most;
	size_t strays; /* short sounds far from the speech, outside of it */
};

/* Finds the speech. Returns -1 with ERR_LOCAL. */
int wav_trim(FILE *f, const struct wav_info *info, struct wav_trim *out, struct err *err);

/* Bytes of one sample of all channels. */
int wav_frame_bytes(const struct wav_format *format);
bool wav_same_format(const struct wav_format *a, const struct wav_format *b);
double wav_seconds(const struct wav_info *info);
#define WAV_HEADER_BYTES 44
/* Samples after a plain header: its fields have 32 bits. */
#define WAV_MOST_BYTES ((int64_t)UINT32_MAX - WAV_HEADER_BYTES)
/* The header of RF64 (EBU Tech 3306), the same with sizes of 64 bits. */
#define WAV_RF64_HEADER_BYTES 80
/* Writes a header for this many bytes of samples: a plain one (at most WAV_MOST_BYTES), or one of
 * RF64. Returns its size. */
size_t wav_make_header(unsigned char *to, const struct wav_format *format, int64_t data_bytes,
		       bool rf64);

#endif
