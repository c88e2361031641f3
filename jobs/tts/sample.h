/* sample.h - voice samples: each is found in the job's folder, judged, and converted to a WAV file
 * for the worker before anything is rented. */
#ifndef BURST_JOBS_TTS_SAMPLE_H
#define BURST_JOBS_TTS_SAMPLE_H

#include "engines.h"
#include "job.h"

/* One voice of the job. */
struct sample {
	char *voice;
	char *fault;                 /* its fault; NULL: none */
	bool told;                   /* the fault was reported */
	struct str wav;              /* the bytes that go to the pods */
	struct str words;            /* its words; empty: unknown */
	char hash[SHA256_HEX];       /* of the file as it lies in the folder */
	char words_hash[SHA256_HEX]; /* of the file and its words; "": there are none */
};

/* Where samples come from and which engine uses them. All borrowed. */
struct sample_wants {
	const char *dir; /* NULL: the job names no folder */
	const char *engine_name;
	const struct engine *engine;       /* NULL: the user's own worker */
	const struct job_setup *job_setup; /* decides which files may be read; NULL: all may */
};

struct samples {
	struct sample **list;
	size_t count, cap;
};

/* Reads and judges a voice at its first use; never NULL. A line for the user names anything unusual
 * about it. */
struct sample *samples_get(struct samples *s, const struct sample_wants *wants, const char *voice);
/* 0: the voice is good, or its fault was reported before. -1: ERR_CONFIG, once for each voice,
 * without the place that names it. */
int samples_check(struct samples *s, const struct sample_wants *wants, const char *voice,
		  struct err *err);
void samples_free(struct samples *s);

#endif
