/* sample.h - voice samples: each is found in the job's folder, judged, and made a WAV file for the
 * worker, before anything is rented. */
#ifndef BURST_JOBS_TTS_SAMPLE_H
#define BURST_JOBS_TTS_SAMPLE_H

#include "engines.h"
#include "job.h"

/* One voice of the job. */
struct sample {
	char *voice;
	char *fault;                 /* what is wrong with it; NULL: nothing */
	bool told;                   /* the fault was handed out */
	struct str wav;              /* what goes to the pods */
	struct str words;            /* what is said in it; empty: not known */
	char hash[SHA256_HEX];       /* of the file as it lies in the folder */
	char words_hash[SHA256_HEX]; /* of the same with its words; "": there are none */
};

/* Where samples come from and whom they are for. All borrowed. */
struct sample_wants {
	const char *dir; /* NULL: the job names no folder */
	const char *engine_name;
	const struct engine *engine;       /* NULL: a worker of the user's own */
	const struct job_setup *job_setup; /* who may read which file; NULL: all may */
};

struct samples {
	struct sample **list;
	size_t count, cap;
};

/* Reads and judges a voice the first time that it is asked for; never NULL. A line for the user
 * says what is unusual about it. */
struct sample *samples_get(struct samples *s, const struct sample_wants *wants, const char *voice);
/* 0: the voice is good, or its fault was told before. -1: ERR_CONFIG, once for each voice, without
 * the place that names it. */
int samples_check(struct samples *s, const struct sample_wants *wants, const char *voice,
		  struct err *err);
void samples_free(struct samples *s);

#endif
