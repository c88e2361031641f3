/* check.h - judges whether a finished WAV file fits its text. Reads the file in constant memory;
 * the voice's habits keep what earlier files showed. */
#ifndef BURST_JOBS_TTS_CHECK_H
#define BURST_JOBS_TTS_CHECK_H

#include "habits.h"
#include "job.h"

struct check_limits {
	double min_duration, max_duration; /* factors on the expected time */
	double max_silence;                /* in seconds, between sounds */
	double max_clipped;                /* share of clipped samples */
	double max_offset;                 /* mean of all samples; 1.0 = full scale */
	struct habits *habits;             /* of the run's voices; NULL: do not compare files */
	const char *voice;                 /* key into habits: the voice and its settings */
	double cap_s; /* length at which the engine stops without a message; 0: none */
	double speed; /* relative to the usual rate of speech */
};

/* The shortest and longest time that reading this text may take at the usual 15 characters a
 * second. Digits, symbols, capitals and letters of other scripts are written short and spoken long,
 * so they raise the upper end. */
void check_window(const char *text, const struct check_limits *limits, double *least_s,
		  double *most_s);
/* As job_ops.check. */
int check_wav(const char *file, const char *text, const struct check_limits *limits,
	      struct check *out, struct err *err);

#endif
