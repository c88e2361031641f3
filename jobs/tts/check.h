/* check.h - whether a finished WAV file sounds like its text. Reads the file in constant memory;
 * the voice's habits hold what it remembers. */
#ifndef BURST_JOBS_TTS_CHECK_H
#define BURST_JOBS_TTS_CHECK_H

#include "habits.h"
#include "job.h"

struct check_limits {
	double min_duration, max_duration; /* factor on the time that the text should take */
	double max_silence;                /* seconds, inside */
	double max_clipped;                /* share of the samples */
	double max_offset;                 /* of the mean from zero; 1.0 = full scale */
	struct habits *habits;             /* of the run's voices; NULL: files are not compared */
	const char *voice;                 /* which of them: the voice and its settings */
	double cap_s; /* the engine stops here without a message; 0: it does not */
	double speed; /* times the usual rate of speech */
};

/* The shortest and longest time that reading this text may take at the usual 15 characters a
 * second. What is written short and spoken long (digits, symbols, capitals, signs of other scripts)
 * widens the upper end. */
void check_window(const char *text, const struct check_limits *limits, double *least_s,
		  double *most_s);
/* As job_ops.check. */
int check_wav(const char *file, const char *text, const struct check_limits *limits,
	      struct check *out, struct err *err);

#endif
