/* script.h - the text to be spoken, in the form that the readers of the input formats produce:
 * items in order, and a list of complaints with file:line. */
#ifndef BURST_JOBS_TTS_SCRIPT_H
#define BURST_JOBS_TTS_SCRIPT_H

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"
#include "job.h"
#include "split.h"

struct script_item {
	char *id;        /* NULL until one is made for it */
	char *text;      /* normalised, never empty */
	char *voice;     /* NULL: the job's */
	json_t *options; /* object or NULL: passed to the engine, over the job's options */
	json_t *extra;   /* object or NULL: unknown keys, carried to the manifest */
	bool has_seed;
	int64_t seed;
	const char *source; /* file and line, for messages; the name is the script's */
	size_t line;
	int chapter; /* index, -1: before the first */
	bool heading;
	bool prose; /* a listener does not notice its borders: it may be merged with a neighbour */
	bool ends_sentence; /* so may each item of a list or table, with or without a stop */
	double before_s;    /* a pause that stands alone before it */
};

struct script {
	struct script_item *items;
	size_t count, cap;
	char **chapters; /* titles */
	size_t chapter_count, chapter_cap;
	char **sources;
	size_t source_count, source_cap;
	json_t *ids; /* id -> index */

	const struct job_setup
		*job_setup; /* decides which files of a folder may be read; NULL: all may */
	/* Whether this voice is known; -1 with a message if not. NULL: all are. */
	int (*check_voice)(void *ctx, const char *voice, struct err *err);
	/* Whether the engine accepts these options of an item; -1 with a message if not. NULL: it
	 * accepts all. */
	int (*check_options)(void *ctx, json_t *options, struct err *err);
	void *ctx;

	double pause_s; /* a pause that the next item follows */
	struct {        /* parts of the script that are not spoken */
		size_t code_blocks, images, footnotes;
	} silent;

	size_t complaints; /* the first complaint is kept */
	char complaint[512];
};

enum input_mode { INPUT_AUTO, INPUT_LINES, INPUT_PARAGRAPHS };

/* Reads an input file or a folder of .txt files. name is what messages call it. Merges items that
 * are too short, makes missing ids. ERR_CONFIG: the first complaint, and how many more there are.
 */
int script_load(struct script *script, const char *path, const char *name, enum input_mode mode,
		const struct split_limits *limits, struct err *err);
void script_free(struct script *script);

/* The readers, one for each format; pure. Mistakes become complaints. */
void input_read_text(struct script *s, const char *source, const char *bytes, size_t len,
		     enum input_mode mode);
void input_read_jsonl(struct script *s, const char *source, const char *bytes, size_t len);
void input_read_table(struct script *s, const char *source, const char *bytes, size_t len,
		      bool tabs);
void input_read_markdown(struct script *s, const char *source, const char *bytes, size_t len);

/* "2 code blocks, 1 footnote": the parts of the script that are not spoken; adds nothing if all
 * are. */
void script_tell_silent(const struct script *s, struct str *to);

/* For the readers. */
const char *script_source(struct script *s, const char *name);
void script_complain(struct script *s, const char *source, size_t line, const char *fmt, ...)
	PRINTF(4, 5);
/* Takes over id, voice, options, extra of the item and sets its text from raw bytes; checks all of
 * them. */
void script_add(struct script *s, struct script_item *item, const char *raw, size_t len);
int script_chapter(struct script *s, const char *title);
/* After the readers: merging, ids, and the result. */
void script_merge(struct script *s, const struct split_limits *limits);
void script_number(struct script *s);
int script_verdict(const struct script *s, const char *name, struct err *err);
/* Whether this can be a file's name on every system. NULL, or what is wrong with it. */
const char *script_id_fault(const char *id);

/* The next line of a text without its end (LF or CRLF); false at the end. *at moves. */
bool next_line(const char **at, const char *end, const char **line, size_t *len);

static inline void script_free_cleanup(struct script *s)
{
	script_free(s);
}

#endif
