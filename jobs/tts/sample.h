/* sample.h - voice samples: finds each in the job's folder, judges it, and converts it to a WAV
 * file for the worker before anything is rented. */
#ifndef BURST_JOBS_TTS_SAMPLE_H
#define BURST_JOBS_TTS_SAMPLE_H

#include "engines.h"
#include "job.h"

/* One voice of the job. */
struct sample {
	char *voice;
	char *fault;                 /* NULL: none */
	bool told;                   /* the fault was reported */
	struct str wav;              /* the bytes for the pods */
	struct str words;            /* its words; empty: unknown */
	char hash[SHA256_HEX];       /* hash of the file in the folder */
	char words_hash[SHA256_HEX]; /* hash of the file and its words; "": no words */
};

/* Where samples come from and which engine uses them. All borrowed. */
struct sample_wants {
	const char *dir; /* NULL: the job names no folder */
	const char *engine_name;
	const struct engine *engine;       /* NULL: the user's own worker */
	const struct job_setup *job_setup; /* decides which files may be read; NULL: all */
};

struct samples {
	struct sample **list;
	size_t count, cap;
};

/* Reads and judges a voice at its first use; never returns NULL. Prints a line for the user about
 * anything unusual. */
struct sample *samples_get(struct samples *s, const struct sample_wants *wants, const char *voice);
/* Returns 0 if the voice is good or its fault was reported before. Else returns -1 with ERR_CONFIG,
 * once for each voice; the caller adds the place that names it. */
int samples_check(struct samples *s, const struct sample_wants *wants, const char *voice,
		  struct err *err);
void samples_free(struct samples *s);

#endif
