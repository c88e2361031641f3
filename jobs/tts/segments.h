/* segments.h - from a script to segments: long items are cut, each piece gets its voice, its
 * options and its key. */
#ifndef BURST_JOBS_TTS_SEGMENTS_H
#define BURST_JOBS_TTS_SEGMENTS_H

#include "engines.h"
#include "lexicon.h"
#include "sample.h"
#include "script.h"

/* What speaks, as far as it is the same for the whole job. All borrowed. */
struct speaker {
	const char *engine;
	const struct engine *known; /* NULL: the user's own engine */
	const char *worker;         /* the user's own command; NULL: the engine's */
	const char *setup;          /* the script that makes its environment; NULL: none */
	const char *pins;           /* everything else that decides its sound; NULL */
	const char *voice;          /* for items without one; NULL: the engine's own choice */
	const char *voices_dir;     /* NULL: none */
	struct samples *samples;    /* the voice samples that were asked for so far */
	const struct job_setup *job_setup; /* decides which of them may be read; NULL: all may */
	json_t *options;                   /* never NULL */
	int64_t seed;
	struct split_limits limits;
	const struct lexicon *lexicon; /* NULL: none */
};

/* The part of a segment that only this type of job knows. */
struct spoken {
	char *text;             /* the text for the engine */
	char *shown;            /* the script's own words */
	double before_s;        /* the script's own pause before it; 0: none */
	size_t item;            /* index in the script */
	const char *voice;      /* borrowed from the script or the speaker; NULL: none */
	const char *voice_file; /* name of a job_file; NULL: none */
	json_t *options;
	int64_t seed; /* of the first try */
};

struct segments {
	struct segment *list;
	struct spoken *spoken; /* in the same order */
	size_t count, cap, spoken_cap;
	/* segments without the voice that the engine needs: the first one is reported */
	size_t voice_missed;
	json_t *times;          /* while they are made: how often each former key occurred */
	struct job_file *files; /* the voices that are files; the samples own the data */
	size_t file_count, file_cap;
};

/* -1: the first mistake. Where job_setup collects mistakes, they go there instead and the result is
 * 0, though segments with a mistake are not complete. */
int segments_make(struct segments *out, const struct script *script, const struct speaker *speaker,
		  struct err *err);
void segments_free(struct segments *s);
/* Each voice once, sorted; NULL-terminated. The caller frees the array, not its texts. */
const char **segments_voices(const struct segments *s);
/* Whether there is such a voice. For script.check_voice; ctx is the speaker. */
int segments_check_voice(void *speaker, const char *voice, struct err *err);

#endif
