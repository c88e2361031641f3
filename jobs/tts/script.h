/* script.h - the text to speak, as the readers of the input formats produce it: items in order, and
 * a list of mistakes with file and line. */
#ifndef BURST_JOBS_TTS_SCRIPT_H
#define BURST_JOBS_TTS_SCRIPT_H

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"
#include "job.h"
#include "split.h"

struct script_item {
	char *id;        /* NULL until burst makes one */
	char *text;      /* normalised, never empty */
	char *voice;     /* NULL: the job's */
	json_t *options; /* object or NULL: passed to the engine; overrides the job's options */
	json_t *extra;   /* object or NULL: unknown keys, copied to the manifest */
	bool has_seed;
	int64_t seed;
	const char *source; /* file and line, for messages; the script owns the name */
	size_t line;
	int chapter; /* index; -1: before the first chapter */
	bool heading;
	bool prose; /* a listener cannot hear its borders, so it may merge with a neighbour */
	bool ends_sentence; /* items of a list or table may merge too, with or without a stop */
	double before_s;    /* seconds of pauses that stand alone before it */
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
		*job_setup; /* decides which files of a folder may be read; NULL: all */
	/* Checks a voice; returns -1 with a message if it is unknown. NULL: accept all. */
	int (*check_voice)(void *ctx, const char *voice, struct err *err);
	/* Checks the options of an item; returns -1 with a message if the engine rejects them.
	 * NULL: accept all. */
	int (*check_options)(void *ctx, json_t *options, struct err *err);
	void *ctx;

	double pause_s; /* seconds of pause before the next item */
	struct {        /* parts of the script that are not spoken */
		size_t code_blocks, images, footnotes;
	} silent;

	size_t complaints; /* number of mistakes; the first one is kept */
	char complaint[512];
};

enum input_mode { INPUT_AUTO, INPUT_LINES, INPUT_PARAGRAPHS };

/* Reads an input file or a folder of .txt files. name is for messages. Merges items that are too
 * short and makes missing ids. ERR_CONFIG: the first mistake and how many more there are. */
int script_load(struct script *script, const char *path, const char *name, enum input_mode mode,
		const struct split_limits *limits, struct err *err);
void script_free(struct script *script);

/* The readers, one for each format; pure. They report mistakes to the script. */
void input_read_text(struct script *s, const char *source, const char *bytes, size_t len,
		     enum input_mode mode);
void input_read_jsonl(struct script *s, const char *source, const char *bytes, size_t len);
void input_read_table(struct script *s, const char *source, const char *bytes, size_t len,
		      bool tabs);
void input_read_markdown(struct script *s, const char *source, const char *bytes, size_t len);

/* Appends the parts of the script that are not spoken, as in "2 code blocks, 1 footnote"; nothing
 * if there are none. */
void script_tell_silent(const struct script *s, struct str *to);

/* For the readers. */
const char *script_source(struct script *s, const char *name);
void script_complain(struct script *s, const char *source, size_t line, const char *fmt, ...)
	PRINTF(4, 5);
/* Takes over id, voice, options and extra of the item, sets its text from raw bytes, and checks all
 * of them. */
void script_add(struct script *s, struct script_item *item, const char *raw, size_t len);
int script_chapter(struct script *s, const char *title);
/* Runs after the readers: merges items, makes ids, returns the result. */
void script_merge(struct script *s, const struct split_limits *limits);
void script_number(struct script *s);
int script_verdict(const struct script *s, const char *name, struct err *err);
/* Returns NULL if this can be a file's name on every system, else what is wrong with it. */
const char *script_id_fault(const char *id);

/* Reads the next line of a text without its end (LF or CRLF) and moves *at. Returns false at the
 * end. */
bool next_line(const char **at, const char *end, const char **line, size_t *len);

static inline void script_free_cleanup(struct script *s)
{
	script_free(s);
}

#endif
