/* ffmpeg.h - the ffmpeg program, run without a shell: conversion and loudness of WAV files. It is
 * optional. */
#ifndef BURST_JOBS_TTS_FFMPEG_H
#define BURST_JOBS_TTS_FFMPEG_H

#include "base/str.h"
#include "wav.h"

/* Whether ffmpeg exists and runs. */
bool ffmpeg_found(void);
/* Writes `to`, a name in the folder `dir`, as WAV of this format; from is a descriptor of a WAV
 * file. No path is looked up, since a link could have taken its place. Only burst writes into dir.
 */
int ffmpeg_convert(int from, int dir, const char *to, const struct wav_format *format,
		   struct err *err);
/* Converts a whole file, whose kind has this name in ffmpeg, into a WAV file of one channel and 16
 * bits; rate: 0: unchanged. At most ten minutes of it. ERR_NOT_FOUND: ffmpeg is not installed;
 * ERR_JOB: it cannot read the file. */
int ffmpeg_decode(const struct str *file, const char *kind, int rate, struct str *wav,
		  struct err *err);
/* Brings `from` to a loudness (EBU R128, true peak at most -1.5 dB) in two passes, or three; same
 * length and rate, 16 bits. *lufs: the result, as ffmpeg measures it. */
int ffmpeg_loudness(int from, int dir, const char *to, const struct wav_format *format,
		    double target, double *lufs, struct err *err);

/* What a joined track can be converted to. */
struct ffmpeg_format {
	const char *name;            /* in the config, and how the file's name ends: "m4b" */
	const char *const *settings; /* arguments of the encoder; NULL ends them */
	bool chapters;               /* it can hold them */
};
/* NULL: there is no format of that name. */
const struct ffmpeg_format *ffmpeg_format_find(const char *name);
/* Writes `to`, a name in the folder `dir`, from the WAV file `from`; chapters: a FFMETADATA file in
 * dir, NULL: none. ERR_JOB: ffmpeg is missing or cannot do it. */
int ffmpeg_encode(int from, int dir, const char *chapters, const char *to,
		  const struct ffmpeg_format *format, struct err *err);

#endif
