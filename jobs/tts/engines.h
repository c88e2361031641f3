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
	/* NULL: it is no word; else one of these, in any case; NULL-terminated */
	const char *const *words;
	size_t text_bytes; /* 0: it is no text; else the most that one may have */
};

/* What `burst engines` tells of it. */
struct engine_facts {
	const char *code_licence, *weights_licence;
	/* of its Debian packages and of weights whose size is not known, about; what else a set-up
	 * downloads follows from `lock` and `weights` */
	int debian_mb;
	/* cloning: what a sample must be; NULL: it has voices of its own alone */
	const char *languages, *cloning;
	int sample_rate;
	const char *ran; /* what has been run, and on what */
};

/* A file of an engine's weights, as the hub that publishes them names it. */
struct engine_weight {
	const char *repository, *revision, *file;
	/* as it was published; NULL: not known here, the revision alone pins it */
	const char *sha256;
	int64_t bytes;  /* 0: not known */
	const char *as; /* its name in $BURST_ENV/weights; NULL: `file` */
};

/* Terms of weights that forbid some use. */
struct engine_terms {
	const char *licence, *link, *forbids;
};

/* What the environment of an engine has for each voice of the job. VOICES: NULL-terminated. MIRROR:
 * as for environment_setup(). */
struct engine_voices {
	const char *revision; /* of what is published: part of every segment's key */
	/* of jobs/workers/: makes $BURST_ENV/voices of $BORROWED/weights, called with both folders
	 * and the voices */
	const char *program;
	/* Lock files of what the program needs; gone when it is done. NULL-terminated, not the
	 * caller's. */
	const char *const *(*locks)(const char *const *voices, const char *mirror);
	/* environment_add_weight() for each file */
	void (*weights)(const char *const *voices, const char *mirror, json_t *to);
	/* NULL: it may be used for anything */
	const struct engine_terms *(*terms)(const char *voice);
};

struct engine {
	const char *name;
	struct engine_facts facts;
	const char *voice; /* default; NULL: none */
	bool named_voices; /* voices have names of the engine's own; else they are files of
			      job.voices */
	unsigned letters;  /* enum letters: what its languages are written in; 0: by voice */
	/* of these what this voice reads; NULL: all of them */
	unsigned (*letters_of)(const char *voice);
	bool gpu;
	int vram_gb, max_batch;
	double max_batch_weight;
	double seconds_per_char; /* of one worker's time, and what each segment costs besides */
	double seconds_each;
	struct job_prior prior; /* times: none where seconds_per_char says it all */
	double cap_s;           /* length at which it stops without a word; 0: it does not */
	/* what starts it; environment_worker() adds the versions that it must find */
	const char *worker;
	const char *install; /* as in struct job_needs */
	const char *const *packages;
	/* its Python packages: jobs/workers/lock/LOCK.txt; NULL: it needs no Python */
	const char *lock;
	/* a lock file, likewise, of packages that come as source and are built by what is in
	 * `lock`; NULL: none */
	const char *sources;
	/* the image's torch is used, and is the same at the end of the set-up; torchaudio is the
	 * image's or comes */
	bool torch, torchaudio;
	/* ended by a NULL repository; NULL: none, or by voice */
	const struct engine_weight *weights;
	/* program of jobs/workers/ that makes the weights ready in their folder; NULL */
	const char *prepare;
	const struct engine_terms *terms; /* of the weights; NULL: they may be used for anything */
	const struct engine_voices *by_voice; /* NULL: voices need nothing in the environment */
	const struct engine_option *options;  /* all that its worker reads, ended by a NULL name */
	const struct job_file *(*file)(
		void); /* the worker's program; NULL: it comes with the setup */
	/* its files in jobs/workers/ beside the harness, NULL-terminated; NULL: another kind of
	 * worker */
	const char *const *python;
	/* the value of its option "speed" that is usual speech; 0: it has no such option */
	double normal_speed;
	/* Of a voice sample, in seconds. 0: no such bound, or not known */
	double sample_least_s; /* it must be longer */
	double sample_most_s;  /* it must not be longer */
	double sample_usual_s; /* shorter ones work, and sound less like the speaker */
	double sample_heard_s; /* what its model listens to; the rest gives the timbre at most */
	bool needs_sample;     /* it has no voice of its own */
	bool reads_words;      /* of a sample NAME.wav, in NAME.txt beside it */
	int (*check_voice)(const char *voice, struct err *err); /* of named_voices */
};

/* NULL when burst has no such engine. */
const struct engine *engine_find(const char *name);
/* Would its worker take this value? ERR_CONFIG says what it takes, without the place where it
 * stands. */
int engine_check_option(const struct engine *engine, const char *name, const json_t *value,
			struct err *err);
/* How fast it speaks with this value of its option "speed" (0: not set), relative to usual speech.
 */
double engine_speed(const struct engine *engine, double value);
/* All of them. */
const struct engine *engine_list(size_t *count);
/* For "did you mean"; NULL-terminated. */
const char *const *engine_names(void);

#endif
