/* engines.h - the speech engines: what each needs on a pod, its voices and weights, and the set-
 * up script that brings them */
#ifndef BURST_JOBS_TTS_ENGINES_H
#define BURST_JOBS_TTS_ENGINES_H

#include <jansson.h>

#include "base/err.h"
#include "job.h"
#include "jobs/text/script.h"

/* ---- engines ----
 * The speech engines that burst supports: what each needs on a pod, and how its worker starts.
 */

/* A setting that `options` of the config or of a script line may have. */
struct engine_option {
	const char *name;
	bool whole; /* whole numbers only */
	double least, most;
	/* the accepted words, in any case; NULL-terminated. NULL: the value is no word */
	const char *const *words;
	size_t text_bytes; /* greatest length; 0: the value is no text */
};

/* What `burst engines` shows of an engine. */
struct engine_facts {
	const char *code_licence, *weights_licence;
	/* approximate MB of Debian packages and of weights of unknown size; `lock` and `weights`
	 * give the rest of the download */
	int debian_mb;
	/* cloning: what a sample must be; NULL: only the engine's own voices */
	const char *languages, *cloning;
	int sample_rate;
	const char *ran; /* what has run live, and on what hardware */
};

/* A file of an engine's weights, as named by the hub that publishes it. */
struct engine_weight {
	const char *repository, *revision, *file;
	/* published hash; NULL: unknown, only the revision pins the file */
	const char *sha256;
	int64_t bytes;  /* 0: unknown */
	const char *as; /* name in $BURST_ENV/weights; NULL: `file` */
};

/* Debian packages that its worker or its set-up needs. */
struct engine_debian {
	const char *what;     /* in messages */
	const char *have;     /* body of a shell function that succeeds if the pod has it */
	const char *patterns; /* of its packages and those below, for dpkg-query */
	const char *const *installed, *const *packages; /* as in struct job_needs */
};

/* Terms of weights that forbid some use. */
struct engine_terms {
	const char *licence, *link, *forbids;
};

/* Files in the environment for each voice of the job. VOICES: NULL-terminated. MIRROR: as in
 * environment_setup(). */
struct engine_voices {
	const char *revision; /* of the published voices; part of every segment's key */
	/* A program of jobs/workers/ that makes $BURST_ENV/voices from $BORROWED/weights. Its
	 * arguments are both folders and the voices. */
	const char *program;
	/* Lock files of the packages that the program needs; they are removed afterwards. NULL-
	 * terminated, borrowed. */
	const char *const *(*locks)(const char *const *voices, const char *mirror);
	/* calls environment_add_weight() for each file */
	void (*weights)(const char *const *voices, const char *mirror, json_t *to);
	/* samples a second; a worker refuses voices of different rates. NULL: all have one */
	int (*rate)(const char *voice);
	/* NULL: no use is forbidden */
	const struct engine_terms *(*terms)(const char *voice);
};

struct engine {
	const char *name;
	struct engine_facts facts;
	const char *voice;         /* default; NULL: none */
	const char *const *voices; /* its own, NULL-terminated; NULL: files of job.voices */
	bool any_case;             /* of the voices' letters */
	bool variants;             /* of its voices: "de+f3" */
	unsigned letters; /* enum letters: scripts of its languages; 0: depends on the voice */
	/* scripts that this voice reads; NULL: all of the engine's */
	unsigned (*letters_of)(const char *voice);
	/* The language of what it speaks, as in split_end_at(); borrowed from its arguments or
	 * static. NULL: unknown. */
	const char *(*language_of)(const char *voice, const json_t *options);
	bool gpu;
	bool bf16;                        /* as in struct job_needs */
	const char *variant, *variant_is; /* likewise */
	int vram_gb, max_batch;
	double max_batch_weight;
	double seconds_per_char; /* on one worker */
	double seconds_each;
	struct job_prior prior; /* all zero if seconds_per_char suffices */
	double cap_s;           /* length at which it stops without a message; 0: none */
	/* the command that starts it; environment_worker() adds the versions to check */
	const char *worker;
	const struct engine_debian *debian;
	/* its Python packages: jobs/workers/lock/LOCK.txt; NULL: no Python */
	const char *lock;
	/* lock file of packages that come as source and are built by packages in `lock`; NULL: none
	 */
	const char *sources;
	/* it uses the image's torch, which the set-up must not change; torchaudio comes from the
	 * image or is installed */
	bool torch, torchaudio;
	/* the list ends with a NULL repository; NULL: none, or each voice has its own */
	const struct engine_weight *weights;
	/* program of jobs/workers/ that prepares the weights in their folder; NULL: none */
	const char *prepare;
	const struct engine_terms *terms;     /* of the weights; NULL: they forbid no use */
	const struct engine_voices *by_voice; /* NULL: voices need no files in the environment */
	const struct engine_option
		*options; /* options that its worker reads; the list ends with a NULL name */
	const struct job_file *(*file)(void); /* the worker's program; NULL: the set-up brings it */
	/* its files in jobs/workers/ beside the harness, NULL-terminated; NULL: no Python worker */
	const char *const *python;
	struct phoneme_marks ipa; /* how it takes phonemes in a text; zeros: not at all */
	/* value of its option "speed" for normal speech; 0: no such option */
	double normal_speed;
	/* Lengths of a voice sample, in seconds. 0: no bound, or unknown. */
	double sample_least_s; /* it must be longer */
	double sample_most_s;  /* it must not be longer */
	double sample_usual_s; /* shorter samples work but resemble the speaker less */
	double sample_used_s;  /* the part that its model uses; the rest gives at most the timbre */
	bool needs_sample;     /* the engine has no voice of its own */
	bool reads_words;      /* it uses a sample's words: NAME.txt beside NAME.wav */
};

/* Returns NULL for an unknown name. */
const struct engine *engine_find(const char *name);
/* Checks a voice of the engine's own. ERR_CONFIG names the nearest one, or some that exist. */
int engine_check_voice(const struct engine *engine, const char *voice, struct err *err);
/* What is known of a voice of the engine's own. Static or borrowed; NULL: unknown. */
struct voice_facts {
	char language[16];   /* "de", "pt-BR"; "": unknown */
	const char *sex;     /* "female" or "male" */
	const char *licence; /* of its weights */
	const char *forbids; /* what the licence forbids; NULL: no use */
	const char *link;    /* to those terms */
	const char *says;    /* a sentence in its language, or numbers */
};

void voice_facts(struct voice_facts *out, const struct engine *engine, const char *voice);
/* Checks a value as the engine's worker would. ERR_CONFIG names what it accepts; the caller adds
 * the place of the value. */
int engine_check_option(const struct engine *engine, const char *name, const json_t *value,
			struct err *err);
/* Speed of speech with this value of the option "speed" (0: not set), relative to normal speech. */
double engine_speed(const struct engine *engine, double value);
/* The value of its option "speed" for this speed, within what the option takes. */
double engine_speed_value(const struct engine *engine, double speed);
/* Returns all engines; static. */
const struct engine *engine_list(size_t *count);
/* For "did you mean". NULL-terminated, static. */
const char *const *engine_names(void);

/* ---- whisper ----
 * The models of job.check.words, which hear what a file says. */

/* jobs/workers/lock/NAME.txt: their Python packages */
#define WHISPER_LOCK "words"

struct whisper {
	const char *name; /* as in job.check.words */
	bool english;     /* it knows no other language */
	/* the list ends with a NULL repository */
	const struct engine_weight *weights;
	/* Seconds of one core for each 30 s, or less, of a file. Measured on an x86-64 server,
	 * int8. */
	double core_s;
};

/* NULL: there is no such model. */
const struct whisper *whisper_find(const char *name);
/* Whether texts of this language can be compared word by word; NULL: unknown, so they can. */
bool whisper_can_compare(const char *language);

/* ---- environment ----
 * Makes the set-up script of an engine's environment on a pod: Python packages, weights, voices.
 */

/* The script that installs the engine's Debian packages (job_needs.install). The caller frees it.
 */
char *environment_install(const struct engine *engine);
/* The script that makes $BURST_ENV for these checked voices (NULL-terminated; ignored by engines
 * whose voices need no files). MIRROR: source of the weights in place of the hub, or NULL. Only
 * files without a known hash name the mirror in the script. The others are the same everywhere, so
 * an environment filled from one mirror serves another. heard: the transcriber of job.check.words;
 * NULL: none. Returns NULL if there is nothing to make. The caller frees it. */
char *environment_setup(const struct engine *engine, const char *const *voices, const char *mirror,
			const struct whisper *heard);
/* The part of the script that makes the Python packages, for an image. In an image where it has
 * run, environment_setup() uses the result and fetches no packages. Returns NULL if there is
 * nothing to make. The caller frees it. */
char *environment_packages(const struct engine *engine);
/* The command that starts the worker, with the versions to check. The caller frees it. */
char *environment_worker(const struct engine *engine);
/* Versions and revisions that decide the sound; part of every segment's key. NULL: unknown. The
 * caller frees it. */
char *environment_pins(const struct engine *engine);
/* Download of a first set-up with the default voice, in MB: packages (approximate) and weights,
 * without torch. heard: as in environment_setup(). */
int environment_download_mb(const struct engine *engine, const struct whisper *heard);
/* Adds a file to the list that burst_weights.py reads. For struct engine_voices. */
void environment_add_weight(json_t *list, const struct engine_weight *weight, const char *mirror);

#endif
