/* state.h - the state of a job of type "tts", from its samples to its reused files. Private to
 * jobs/tts/ */
#ifndef BURST_JOBS_TTS_STATE_H
#define BURST_JOBS_TTS_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "engines.h"
#include "job.h"
#include "jobs/renders.h"
#include "join.h"
#include "jobs/text/script.h"

/* The usual rate of speech. */
#define CHARS_PER_S 15.0

/* ---- sample ----
 * Voice samples: finds each in the job's folder, judges it, and converts it to a WAV file for the
 * worker before anything is rented. */

/* One voice of the job. */
struct sample {
	char *voice;
	char *fault;                 /* NULL: none */
	bool told;                   /* the fault was reported to the user */
	struct str wav;              /* the bytes for the pods */
	struct str words;            /* its words; empty: unknown */
	char hash[SHA256_HEX];       /* hash of the file in the folder */
	char words_hash[SHA256_HEX]; /* hash of the file and its words; "": no words */
};

struct samples {
	struct sample **list;
	size_t count, cap;
};

/* Reads and judges a voice of the job's folder at its first use; never returns NULL. Prints a line
 * for the user about anything unusual. */
struct sample *samples_get(struct job *job, const char *voice);
/* Returns 0 if the voice is good or its fault was reported before. Else returns -1 with ERR_CONFIG,
 * once for each voice; the caller adds the place that names it. */
int samples_check(struct job *job, const char *voice, struct err *err);
void samples_free(struct samples *s);

/* ---- habits ----
 * What the files of one voice have in common: their length for a text, how they end, their rate.
 * A run learns it from its own files.
 *
 * A file far outside the habits of its voice is suspect: the engine repeated words, swallowed the
 * end, or was cut off. The measure is the median of the newest files, so that a few bad ones do
 * not spoil it. Thread-safe. */

struct habits;

struct heard {
	double seconds;
	int rate; /* samples a second */
	/* loudness of the last 20 ms relative to the loud parts (wav_sound.tail) */
	double tail;
};

struct habits *habits_new(void);
void habits_free(struct habits *h);

/* Compares a file with earlier files of the same name (a voice and its settings), then adds it.
 * Judges only after 12 files and only texts of 24 letters or more; the rate after 3 files. Returns
 * false if the file is unusual; why is a part of a sentence. For check_wav() and tests. */
bool habits_judge(struct habits *h, const char *name, const char *text, const struct heard *heard,
		  char *why, size_t size);

/* ---- check ----
 * Judges whether a finished WAV file fits its text. Reads the file in constant memory; the
 * voice's habits keep what earlier files showed. */

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
 * so they raise the upper end. For check_wav() and tests. */
void check_window(const char *text, const struct check_limits *limits, double *least_s,
		  double *most_s);
/* As job_ops.check: *out is the verdict; -1: the file cannot be read. */
int check_wav(const char *file, const char *text, const struct check_limits *limits,
	      struct check *out, struct err *err);

/* ---- segments ----
 * Turns a script into segments: cuts long items, gives each piece its voice, options and key. */

/* The part of a segment that is specific to this type of job. */
struct spoken {
	char *text;             /* the text for the engine */
	char *shown;            /* the script's own words */
	enum border border;     /* between it and the segment before */
	double before_s;        /* seconds of the script's pause before it; 0: none */
	size_t item;            /* index in the script */
	const char *voice;      /* borrowed from script or job; NULL: none */
	const char *language;   /* of the text, as in split_end_at(); borrowed likewise */
	const char *voice_file; /* name of a job_file; NULL: none */
	json_t *options;
	int64_t seed; /* of the first try */
	/* job.fit: as in struct join_piece */
	double at_s, until_s;
	double overdue_s; /* how long after until_s it will end, as estimated; 0: in time */
};

struct segments {
	struct segment *list;
	struct spoken *spoken; /* parallel to the segments */
	size_t count, cap, spoken_cap;
	/* segments that lack the voice which the engine needs; the first is reported */
	size_t voice_missed;
	json_t *times;          /* while segments are made: how often each content occurred */
	struct job_file *files; /* voices that are files; the samples own the data */
	size_t file_count, file_cap;
};

/* Makes job->segments from its script. Returns -1 at the first mistake. If the loading collects
 * mistakes, adds them there and returns 0, but segments with a mistake are incomplete. */
int segments_make(struct job *job, struct err *err);
void segments_free(struct segments *s);
/* Each voice once, sorted; NULL-terminated. The caller frees the array, not its texts. */
const char **segments_voices(const struct segments *s);
/* Checks that the voice exists. For script.check_voice; ctx is the job. */
int segments_check_voice(void *job, const char *voice, struct err *err);

/* ---- fit ----
 * Renders each cue of subtitles so that it fits its time (job.fit). */

/* The time of item `index`, for its pieces. */
struct fit {
	double begin_s, until_s;
	double factor;    /* its speed, relative to that of its options */
	double overdue_s; /* as in struct spoken */
};

/* letters, pauses_s: of all that is spoken of the item, and of the silence within it. */
struct fit fit_item(const struct job *job, size_t index, double letters, double pauses_s);
/* Sets the option of the engine's speed; nothing if the engine has none. */
void fit_set_speed(const struct engine *engine, double factor, json_t *options);
/* ERR_CONFIG: job.fit is set, and the script has no times. Sets job->fit. */
int fit_read(struct job *job, const struct section *conf, struct err *err);
/* Appends a line about the cues that will not fit. */
void fit_foresee(const struct job *job, struct str *notes);

/* ---- state ----
 * The state of a job of type "tts" once its config is read. Private to jobs/tts/. */

struct job {
	char *output, *voice, *language, *worker, *voices_dir, *engine_name, *setup,
		*setup_packages, *install, *speed_options, *estimate_gpu;
	char *worker_line, *pins;   /* of burst's own engines */
	char *mirror, *mirror_pair; /* NULL: weights come from the hub */
	const char *setup_env[3];
	const struct engine *engine; /* NULL: the user's own worker */
	json_t *options;
	char *own_setup; /* the user's; NULL: none */
	int64_t seed;
	struct split_limits limits;
	const struct job_setup
		*loading; /* borrowed while the job is loaded; NULL: all may be read */
	struct speakers speakers;
	struct script script;
	struct lexicon *lexicon; /* NULL: none */
	struct samples samples;
	struct segments segments;
	struct job_needs needs;
	struct job_file *files;
	char **env;
	bool fit; /* the script's items are fitted to their times */
	bool check_enabled;
	struct check_limits check;
	struct habits *habits;       /* of the job's voices; thread-safe */
	const struct whisper *heard; /* hears the files; NULL: nothing does */
	bool join;
	struct join_options join_as;
	char *joined_as, *name;    /* the track's name; the job's */
	const char **joined_names; /* files that the join writes; ends with NULL */
	size_t joined_count, joined_cap;
	struct renders *renders; /* NULL: none */
	/* decides the sound, but is in no key: the pods' image, the user's set-up, a mirror of
	 * weights */
	char *made_by;
	char commit[65]; /* the commit whose files were read; "": the working tree */
	bool anew, prune;
	struct reuse *reuse; /* result of find_cached(); NULL: not called yet */
};

/* ---- join ----
 * The group `join` of the config. */

extern const struct option_spec join_keys[];
/* The checks that need no script. Returns -1 unless `m` collects mistakes. */
int join_check(const struct section *conf, struct mistakes *m, struct err *err);
/* Reads the group and makes the names of the track's files. ERR_CONFIG: a segment has one of them.
 */
int join_read(struct job *job, const struct section *conf, struct err *err);
/* ERR_CONFIG: a file of the output folder has a name of the track and is something else's. */
int join_check_folder(const struct job *job, struct err *err);

/* ---- book ----
 * What the finished track says of itself. */

extern const struct option_spec book_options[];
/* Completes what the script says of itself by the config's group `book`, its cover and the job's
 * name. input: the script's path. ERR_CONFIG: the cover cannot be used. */
int book_settle(struct script_book *book, const struct job_setup *setup, const char *input,
		struct err *err);

/* language.c: appends a line for each voice that speaks another language than its texts have. */
void tts_note_languages(const struct job *job, struct str *notes);
/* The code of a text's language, if it is one of de, en, es, fr, it, nl, pl, pt and the text is
 * long enough to tell; else NULL. Static. */
const char *language_guess(const char *text);

/* heard.c: job.check.words. Checks the key against the engine and the other keys. */
int heard_check_conf(const struct section *conf, struct err *err);
/* Checks the languages of the texts once there are segments; mistakes as in check_conf(). */
int heard_check_languages(const struct job *job, const struct section *conf, struct mistakes *m,
			  struct err *err);
/* Starts a worker that hears its files. line: how it starts otherwise. The caller frees it. */
char *heard_worker(const struct job *job, const char *line);
/* Adds to the estimate of each segment what hearing its file takes, if that is known. Call once. */
void heard_add_estimates(struct job *job);
/* Appends a line about what hearing the files that are not there yet takes. */
void heard_foresee(const struct job *job, const struct segment_result *results, struct str *notes);
/* Compares a file's transcript with its text; a file without one passes. Changes *out only if the
 * file is suspect. */
void heard_judge(const struct job *job, size_t index, const char *file, struct check *out);
/* Adds the transcript of a finished file to its line of the manifest. */
void heard_tell(const struct job *job, size_t index, json_t *line);
/* Appends a line for the files that were not heard, and two for each suspect of its words. */
void heard_note_unheard(const struct job *job, const struct segment_result *results,
			struct str *notes);
void heard_note_suspect(const struct job *job, size_t index, struct str *notes);

/* needs.c: fills job->needs from its config and its segments. */
void tts_fill_needs(struct job *job, const struct section *conf);
/* As in job_ops. */
int tts_foresee(struct job *job, const struct segment_result *results, struct str *notes,
		struct err *err);

/* finished.c: handles files that exist already, and the end of the job. As in job_ops. */
int tts_record(struct job *job, size_t index, const struct segment_result *results, size_t count,
	       struct err *err);
/* Checks a finished file. habits: of the run's voices; NULL: do not compare the file. */
int tts_check_file(const struct job *job, size_t index, const char *file, struct habits *habits,
		   struct check *out, struct err *err);
void tts_kept(struct job *job, size_t index, const struct segment_result *result);
int tts_find_cached(struct job *job, struct segment_result *results, bool force, struct err *err);
void tts_changes(const struct job *job, struct job_changes *out);
void tts_read_as(const struct job *job, struct str *to);
void tts_left_out(const struct job *job, struct str *to);
/* As job_ops.bring, after tts_find_cached(). Call once. */
int tts_bring(struct job *job, struct segment_result *results, struct str *notes, struct err *err);
void tts_reuse_free(struct reuse *r);
int tts_finish(struct job *job, const struct segment_result *results, struct str *notes,
	       struct err *err);

#endif
