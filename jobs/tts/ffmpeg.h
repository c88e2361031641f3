/* ffmpeg.h - runs ffmpeg without a shell: converts WAV files and sets their loudness. ffmpeg is
 * optional. */
#ifndef BURST_JOBS_TTS_FFMPEG_H
#define BURST_JOBS_TTS_FFMPEG_H

#include "base/str.h"
#include "join_meter.h"
#include "wav.h"

/* Returns whether ffmpeg exists and runs. */
bool ffmpeg_found(void);
/* Converts the WAV file `from` to this format, as `to`, a name in the folder `dir`. Takes
 * descriptors, since a path could have become a link. Only burst may write to dir. */
int ffmpeg_convert(int from, int dir, const char *to, const struct wav_format *format,
		   struct err *err);
/* Converts a whole file into a WAV file of one channel and 16 bits, at most ten minutes of it.
 * kind: ffmpeg's name for the file's format. rate 0: unchanged. ERR_NOT_FOUND: ffmpeg is not
 * installed; ERR_JOB: it cannot read the file. */
int ffmpeg_decode(const struct str *file, const char *kind, int rate, struct str *wav,
		  struct err *err);
/* Brings `from` to a loudness (EBU R128, true peak at most -1.5 dB) in two or three passes. Keeps
 * length and rate; writes 16 bits. *lufs: the loudness of the result. The meter was told to
 * expect JOIN_LOUDNESS_MS. */
int ffmpeg_loudness(int from, int dir, const char *to, const struct wav_format *format,
		    double target, struct join_meter *meter, double *lufs, struct err *err);

/* A format that a joined track can be converted to. */
struct ffmpeg_format {
	const char *name;            /* in the config, and the file's ending: "m4b" */
	const char *const *settings; /* arguments of the encoder; NULL-terminated */
	bool chapters;               /* it can hold chapters */
	double ms_per_s;             /* as JOIN_COPY_MS */
};
/* Returns NULL for an unknown name. */
const struct ffmpeg_format *ffmpeg_format_find(const char *name);
/* Encodes the WAV file `from` as `to`, a name in the folder `dir`. chapters: a FFMETADATA file in
 * dir; NULL: none. ERR_JOB: ffmpeg is missing or fails. */
int ffmpeg_encode(int from, int dir, const char *chapters, const char *to,
		  const struct ffmpeg_format *format, struct join_meter *meter, struct err *err);

#endif
