/* state.h - the state of a job of type "tts" once its config is read. Private to jobs/tts/. */
#ifndef BURST_JOBS_TTS_STATE_H
#define BURST_JOBS_TTS_STATE_H

#include "job.h"

#include "check.h"
#include "environment.h"
#include "habits.h"
#include "jobs/renders.h"
#include "join.h"
#include "reuse.h"
#include "segments.h"

struct job {
	char *output, *voice, *worker, *voices_dir, *engine_name, *setup, *setup_packages,
		*speed_options, *estimate_gpu;
	char *worker_line, *pins;   /* of burst's own engines */
	char *mirror, *mirror_pair; /* NULL: weights come from the hub */
	const char *setup_env[3];
	const struct engine *engine;
	json_t *options;
	struct script script;
	struct lexicon *lexicon; /* NULL: none */
	struct samples samples;
	struct segments segments;
	struct job_needs needs;
	struct job_file *files;
	char **env;
	bool check_enabled;
	struct check_limits check;
	struct habits *habits; /* of the job's voices; thread-safe */
	bool join;
	struct join_options join_as;
	char format_names[JOIN_FORMATS_MOST][16];
	const char *joined_names[4 + JOIN_FORMATS_MOST +
				 1]; /* files that the join writes; ends with NULL if shorter */
	struct renders *renders;     /* NULL: none */
	/* decides the sound, but is in no key: the pods' image, the user's set-up, a mirror of
	 * weights */
	char *made_by;
	char commit[65]; /* the commit whose files were read; "": the working tree */
	bool anew, prune;
	struct reuse *reuse; /* result of find_cached(); NULL: not called yet */
};

void tts_free(struct job *job);

/* tts_keys.c: the keys of `job`, and the checks that need no script. */
extern const struct option_spec tts_options[];
enum { TTS_CHARS_LEAST = 20, TTS_CHARS_USUAL = 280, TTS_CHARS_MOST = 100000 };
int tts_check_conf(const struct section *conf, struct mistakes *m, struct err *err);
/* Adds job.options to an object. ERR_CONFIG. */
int tts_read_options(json_t *to, const struct section *conf, struct mistakes *m, struct err *err);
/* A copy of a key's text; NULL if absent or empty. The caller frees it. */
char *tts_text(const struct section *conf, const char *key);
/* job.input_mode; ERR_CONFIG; err may be NULL. */
int tts_read_mode(const struct section *conf, enum input_mode *out, struct err *err);

/* load.c: job_ops.load */
int tts_load(struct job **out, const struct job_setup *setup, struct err *err);

/* needs.c: what the job needs of a pod, from its config and its segments. */
void tts_fill_needs(struct job *job, const struct section *conf);

/* tts.c: checks a finished file. habits: of the run's voices; NULL: do not compare the file. */
int tts_check_file(const struct job *job, size_t index, const char *file, struct habits *habits,
		   struct check *out, struct err *err);

/* foresee.c: as in job_ops. */
int tts_foresee(struct job *job, const struct segment_result *results, struct str *notes,
		struct err *err);

/* finished.c: handles files that exist already, and the end of the job. As in job_ops. */
int tts_record(struct job *job, size_t index, const struct segment_result *results, size_t count,
	       struct err *err);
void tts_kept(struct job *job, size_t index, const struct segment_result *result);
int tts_find_cached(struct job *job, struct segment_result *results, bool force, struct err *err);
void tts_changes(const struct job *job, struct job_changes *out);
void tts_left_out(const struct job *job, struct str *to);
int tts_bring(struct job *job, struct segment_result *results, struct str *notes, struct err *err);
int tts_finish(struct job *job, const struct segment_result *results, struct str *notes,
	       struct err *err);

#endif
