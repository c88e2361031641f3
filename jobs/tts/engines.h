/* engines.h - the speech engines that burst knows: what each needs on a pod, and how its worker is
 * started. */
#ifndef BURST_JOBS_TTS_ENGINES_H
#define BURST_JOBS_TTS_ENGINES_H

#include <jansson.h>

#include "job.h"

/* A setting that `options` of the config or of a line of the script may have. */
struct engine_option {
	const char *name;
	bool whole; /* no fractions */
	double least, most;
	/* NULL: not a word; else one of these, in any case; NULL-terminated */
	const char *const *words;
	size_t text_bytes; /* 0: not a text; else its greatest length */
};

/* What `burst engines` shows of it. */
struct engine_facts {
	const char *code_licence, *weights_licence;
	/* approximate, of its Debian packages and of weights whose size is unknown; `lock` and
	 * `weights` give the rest of a set-up's download */
	int debian_mb;
	/* cloning: what a sample must be; NULL: it has only its own voices */
	const char *languages, *cloning;
	int sample_rate;
	const char *ran; /* what has been run, and on what hardware */
};

/* A file of an engine's weights, as the hub that publishes them names it. */
struct engine_weight {
	const char *repository, *revision, *file;
	/* the published hash; NULL: unknown here, only the revision pins it */
	const char *sha256;
	int64_t bytes;  /* 0: not known */
	const char *as; /* its name in $BURST_ENV/weights; NULL: `file` */
};

/* Terms of weights that forbid some use. */
struct engine_terms {
	const char *licence, *link, *forbids;
};

/* The environment's files for each voice of the job. VOICES: NULL-terminated. MIRROR: as for
 * environment_setup(). */
struct engine_voices {
	const char *revision; /* of the published voices: part of every segment's key */
	/* a program of jobs/workers/ that makes $BURST_ENV/voices of $BORROWED/weights; it is
	 * called with both folders and the voices */
	const char *program;
	/* Lock files of what the program needs; removed afterwards. NULL-terminated, borrowed. */
	const char *const *(*locks)(const char *const *voices, const char *mirror);
	/* environment_add_weight() for each file */
	void (*weights)(const char *const *voices, const char *mirror, json_t *to);
	/* NULL: no use is forbidden */
	const struct engine_terms *(*terms)(const char *voice);
};

struct engine {
	const char *name;
	struct engine_facts facts;
	const char *voice; /* default; NULL: none */
	bool named_voices; /* voices have the engine's own names; else they are files of job.voices
			    */
	unsigned letters;  /* enum letters: the scripts of its languages; 0: depends on the voice */
	/* the scripts that this voice reads; NULL: all of the engine's */
	unsigned (*letters_of)(const char *voice);
	bool gpu;
	int vram_gb, max_batch;
	double max_batch_weight;
	double seconds_per_char; /* seconds of one worker, and those of each segment */
	double seconds_each;
	struct job_prior prior; /* times: none if seconds_per_char says everything */
	double cap_s;           /* length at which it stops without a message; 0: it does not */
	/* the command that starts it; environment_worker() adds the versions that it must find */
	const char *worker;
	const char *install; /* as in struct job_needs */
	const char *const *packages;
	/* its Python packages: jobs/workers/lock/LOCK.txt; NULL: it needs no Python */
	const char *lock;
	/* the lock file of packages that come as source; packages in `lock` build them; NULL: none
	 */
	const char *sources;
	/* it uses the image's torch, which must be the same after the set-up; torchaudio is the
	 * image's or installed */
	bool torch, torchaudio;
	/* ended by a NULL repository; NULL: none, or each voice has its own */
	const struct engine_weight *weights;
	/* program of jobs/workers/ that prepares the weights in their folder; NULL */
	const char *prepare;
	const struct engine_terms *terms;     /* of the weights; NULL: no use is forbidden */
	const struct engine_voices *by_voice; /* NULL: voices need no files in the environment */
	const struct engine_option
		*options; /* all options that its worker reads, ended by a NULL name */
	const struct job_file *(*file)(
		void); /* the worker's program; NULL: it comes with the set-up */
	/* its files in jobs/workers/ beside the harness, NULL-terminated; NULL: another kind of
	 * worker */
	const char *const *python;
	/* the value of its option "speed" that is normal speech; 0: it has no such option */
	double normal_speed;
	/* Of a voice sample, in seconds. 0: no such bound, or unknown */
	double sample_least_s; /* it must be longer */
	double sample_most_s;  /* it must not be longer */
	double sample_usual_s; /* shorter samples work, but sound less like the speaker */
	double sample_heard_s; /* what its model listens to; the rest of a sample gives at most the
				  timbre */
	bool needs_sample;     /* it has no voice of its own */
	bool reads_words;      /* of a sample NAME.wav, in NAME.txt beside it */
	int (*check_voice)(const char *voice, struct err *err); /* of named_voices */
};

/* NULL: burst has no such engine. */
const struct engine *engine_find(const char *name);
/* Whether its worker would accept this value. ERR_CONFIG says what it accepts, without the place
 * where the value stands. */
int engine_check_option(const struct engine *engine, const char *name, const json_t *value,
			struct err *err);
/* How fast it speaks with this value of its option "speed" (0: not set), relative to normal speech.
 */
double engine_speed(const struct engine *engine, double value);
/* All of them. */
const struct engine *engine_list(size_t *count);
/* For "did you mean"; NULL-terminated. */
const char *const *engine_names(void);

#endif
