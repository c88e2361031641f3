/* manifest.h - OUT/manifest.jsonl: which files of the output folder burst made, and what they are.
 *
 * One JSON object a line. While a run lasts, lines are appended; at the end the file is written
 * anew in the order of the script. It lies in the user's folder, so its bytes are not trusted: they
 * are capped and checked line by line, and a cut last line is dropped. Several lines may name one
 * file; a file belongs to burst if its hash is that of any of them. */
#ifndef BURST_JOBS_MANIFEST_H
#define BURST_JOBS_MANIFEST_H

#include "base/str.h"
#include "job.h"

struct manifest_entry {
	const char *id, *file; /* inside line */
	char key[SHA256_HEX], sha256[SHA256_HEX];
	char *line; /* as text, which takes a tenth of the memory; id and file stand behind it */
};

struct manifest {
	bool present;                   /* whether there is a manifest at all */
	struct manifest_entry *entries; /* in the order of the file */
	size_t count, cap;
	size_t bad_line; /* lenient reading only: the first line that could not be read; 0: none */
	struct manifest_entry **by_file; /* sorted by file, later lines first */
};

/* Reads dir/manifest.jsonl; an absent one is an empty manifest. A bad line is ERR_CONFIG unless
 * lenient, which skips it. */
int manifest_read(const char *dir, bool lenient, struct manifest *out, struct err *err);
/* The same from bytes; name is what messages call it. */
int manifest_parse(const char *name, const char *bytes, size_t len, bool lenient,
		   struct manifest *out, struct err *err);
void manifest_free(struct manifest *m);
/* Whether the folder has one, whatever it holds. */
bool manifest_is_there(int folder);

/* by_file[i] is the newest line of its file. */
bool manifest_is_latest(const struct manifest *m, size_t i);
/* The lines of a file, newest first: the first one and how many follow; NULL: there are none. */
struct manifest_entry *const *manifest_find(const struct manifest *m, const char *file,
					    size_t *count);

/* A file that exists: the entry with its very hash (one with this key preferred; key may be NULL),
 * or NULL if burst did not make the file. -1: it cannot be read. An absent file gives NULL and
 * *absent. */
int manifest_match(const struct manifest *m, const char *dir, const char *file, const char *key,
		   const struct manifest_entry **out, bool *absent, struct err *err);

/* Everything that the line says. New reference. */
json_t *manifest_entry_json(const struct manifest_entry *entry);

/* Fills the result of a segment whose file is reused from an earlier run. */
void manifest_restore(const struct manifest_entry *entry, struct segment_result *result);

/* Begins a line: the fields that every type writes in the same way. commit: of job_setup; "": none.
 * New reference. */
json_t *manifest_line(const struct segment *segment, const struct segment_result *result,
		      const char *file, const char *commit);
/* Adds the fields that come from the result alone: provider, gpu, batch, attempt, cached, tries,
 * suspect. */
void manifest_add_result(json_t *line, const struct segment_result *result);

/* Lines to be written; {0} is none. There may be a hundred thousand, so they are kept as text. */
struct manifest_lines {
	struct str text;
	char **files;
	size_t count, cap;
};
void manifest_lines_add(struct manifest_lines *lines, json_t *line); /* line is taken */
void manifest_lines_free(struct manifest_lines *lines);
/* Appends in one write, synced. Safe from several threads and processes at once. */
int manifest_append(const char *dir, const struct manifest_lines *lines, struct err *err);
/* Writes the whole file anew: the given lines (whose files are sorted here), then those of old
 * files that are still there and not among them, marked "former", so that they stay known as ours.
 */
int manifest_rewrite(const char *dir, struct manifest_lines *lines, struct err *err);

static inline void manifest_lines_free_cleanup(struct manifest_lines *lines)
{
	manifest_lines_free(lines);
}

static inline void manifest_free_cleanup(struct manifest *m)
{
	manifest_free(m);
}

#endif
