/* engines.h - the speech engines that burst knows: what each needs on a pod, and how its worker is
 * started. */
#ifndef BURST_JOBS_TTS_ENGINES_H
#define BURST_JOBS_TTS_ENGINES_H

#include <jansson.h>

#include "job.h"

/* What `options` of the config or of a line of the script may set. */
struct engine_option {
	const char *name;
	bool whole; /* no fractions */
	double least, most;
};

/* What `burst engines` tells of it. */
struct engine_facts {
	const char *code_licence, *weights_licence;
	int download_mb; /* packages and weights of a first set-up, without torch */
	const char *languages, *cloning; /* cloning: what a sample must be; NULL: it has voices of its own alone */
	int sample_rate;
	const char *ran; /* what has been run, and on what */
};

struct engine {
	const char *name;
	struct engine_facts facts;
	const char *voice; /* default; NULL: none */
	bool named_voices; /* voices have names of the engine's own; else they are files of
			      job.voices */
	bool gpu;
	int vram_gb, max_batch;
	double max_batch_weight;
	double seconds_per_char; /* of one worker's time, and what each segment costs besides */
	double seconds_each;
	struct job_prior prior; /* times: none where seconds_per_char says it all */
	double cap_s; /* length at which it stops without a word; 0: it does not */
	const char *worker, *install, *setup; /* as in struct job_needs */
	const char *const *packages;
	const struct engine_option *options; /* all that its worker reads, ended by a NULL name */
	const struct job_file *(*file)(
		void); /* the worker's program; NULL: it comes with the setup */
	const char *const *python; /* its files in jobs/workers/ beside the harness, NULL-terminated; NULL: another kind of worker */
	const char *pins; /* the versions that decide its sound: part of every key, and checked by its worker; NULL: none */
	double normal_speed; /* the value of its option "speed" that is usual speech; 0: it has no such option */
	double sample_least_s; /* a voice sample must be longer */
	int (*check_voice)(const char *voice, struct err *err); /* of named_voices */
	char *(*voice_setup)(const char *const *voices); /* in place of `setup`: what these voices need; NULL-terminated */
};

/* NULL when burst has no such engine. */
const struct engine *engine_find(const char *name);
/* Would its worker take this value? ERR_CONFIG says what it takes, without the place where it stands. */
int engine_check_option(const struct engine *engine, const char *name, const json_t *value, struct err *err);
/* How fast it speaks with this value of its option "speed" (0: not set), relative to usual speech. */
double engine_speed(const struct engine *engine, double value);
/* All of them. */
const struct engine *engine_list(size_t *count);
/* For "did you mean"; NULL-terminated. */
const char *const *engine_names(void);

#endif
