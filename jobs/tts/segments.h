/* segments.h - turns a script into segments: cuts long items, gives each piece its voice, options
 * and key. */
#ifndef BURST_JOBS_TTS_SEGMENTS_H
#define BURST_JOBS_TTS_SEGMENTS_H

#include "engines.h"
#include "lexicon.h"
#include "sample.h"
#include "script.h"

/* What decides the sound of the whole job. All borrowed. */
struct speaker {
	const char *engine;
	const struct engine *known; /* NULL: the user's own engine */
	const char *worker;         /* the user's own command; NULL: the engine's */
	const char *setup;          /* script that makes its environment; NULL: none */
	const char *pins;           /* versions that decide its sound; NULL: none */
	const char *voice;          /* for items without a voice; NULL: the engine's own choice */
	const char *voices_dir;     /* NULL: none */
	struct samples *samples;    /* the voice samples read so far */
	const struct job_setup *job_setup; /* decides which samples may be read; NULL: all */
	json_t *options;                   /* never NULL */
	int64_t seed;
	struct split_limits limits;
	const struct lexicon *lexicon; /* NULL: none */
};

/* The part of a segment that is specific to this type of job. */
struct spoken {
	char *text;             /* the text for the engine */
	char *shown;            /* the script's own words */
	double before_s;        /* seconds of the script's pause before it; 0: none */
	size_t item;            /* index in the script */
	const char *voice;      /* borrowed from script or speaker; NULL: none */
	const char *voice_file; /* name of a job_file; NULL: none */
	json_t *options;
	int64_t seed; /* of the first try */
};

struct segments {
	struct segment *list;
	struct spoken *spoken; /* parallel to the segments */
	size_t count, cap, spoken_cap;
	/* segments that lack the voice which the engine needs; the first is reported */
	size_t voice_missed;
	json_t *times;          /* while segments are made: how often each former key occurred */
	struct job_file *files; /* voices that are files; the samples own the data */
	size_t file_count, file_cap;
};

/* Returns -1 at the first mistake. If job_setup collects mistakes, adds them there and returns 0,
 * but segments with a mistake are incomplete. */
int segments_make(struct segments *out, const struct script *script, const struct speaker *speaker,
		  struct err *err);
void segments_free(struct segments *s);
/* Each voice once, sorted; NULL-terminated. The caller frees the array, not its texts. */
const char **segments_voices(const struct segments *s);
/* Checks that the voice exists. For script.check_voice; ctx is the speaker. */
int segments_check_voice(void *speaker, const char *voice, struct err *err);

#endif
