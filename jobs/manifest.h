/* manifest.h - OUT/manifest.jsonl: which files of the output folder burst made, and what they are.
 *
 * One JSON object a line. During a run, lines are appended; at its end the file is rewritten in the
 * order of the script. The file lies in the user's folder, so it is not trusted: each line has a
 * size limit and is checked, and a cut last line is dropped. Several lines may name one file. A
 * file belongs to burst if any of its lines has the file's hash. */
#ifndef BURST_JOBS_MANIFEST_H
#define BURST_JOBS_MANIFEST_H

#include "base/str.h"
#include "job.h"

struct manifest_entry {
	const char *id, *file; /* point into the buffer behind line */
	char key[SHA256_HEX], sha256[SHA256_HEX];
	char *line; /* JSON text, which takes a tenth of a json_t's memory */
};

struct manifest {
	bool present;                   /* the folder has a manifest */
	struct manifest_entry *entries; /* in the order of the file */
	size_t count, cap;
	size_t bad_line;                 /* in lenient reading: the first invalid line; 0: none */
	struct manifest_entry **by_file; /* sorted by file, later lines first */
};

/* Reads dir/manifest.jsonl; a missing one counts as empty. An invalid line is ERR_CONFIG; if
 * lenient, it is skipped (see bad_line). Free with manifest_free(). */
int manifest_read(const char *dir, bool lenient, struct manifest *out, struct err *err);
/* Parses a manifest in the same way from bytes, for tests too; name is for messages. */
int manifest_parse(const char *name, const char *bytes, size_t len, bool lenient,
		   struct manifest *out, struct err *err);
void manifest_free(struct manifest *m);
/* Whether the open folder has a manifest, valid or not. */
bool manifest_exists(int folder);

/* Whether by_file[i] is the newest line of its file. */
bool manifest_is_latest(const struct manifest *m, size_t i);
/* Returns the entries of a file in by_file, newest first, and their number; NULL: none. */
struct manifest_entry *const *manifest_find(const struct manifest *m, const char *file,
					    size_t *count);

/* Hashes dir/file and finds its entry by the hash: one with this key if possible (key may be NULL),
 * else any. *out is NULL if burst did not make the file, and if the file is missing, which sets
 * *absent. -1: the file cannot be read. */
int manifest_match(const struct manifest *m, const char *dir, const char *file, const char *key,
		   const struct manifest_entry **out, bool *absent, struct err *err);

/* Parses the entry's line. New reference. */
json_t *manifest_entry_json(const struct manifest_entry *entry);

/* Fills the result of a segment whose file is reused from an earlier run. */
void manifest_restore(const struct manifest_entry *entry, struct segment_result *result);

/* Begins a line with the fields of all job types. commit: "": none. New reference. */
json_t *manifest_line(const struct segment *segment, const struct segment_result *result,
		      const char *file, const char *commit);
/* Adds the fields that come from the result: provider, gpu, batch, attempt, cached, tries, suspect.
 */
void manifest_add_result(json_t *line, const struct segment_result *result);

/* Lines to write; {0}: none. Kept as text, since there may be a hundred thousand. */
struct manifest_lines {
	struct str text;
	char **files;
	size_t count, cap;
};
void manifest_lines_add(struct manifest_lines *lines, json_t *line); /* takes over `line` */
void manifest_lines_free(struct manifest_lines *lines);
/* Appends the lines in one write and fsyncs. Safe from several threads and processes. ERR_LOCAL. */
int manifest_append(const char *dir, const struct manifest_lines *lines, struct err *err);
/* Replaces the manifest: the given lines, then the old lines of other files that are unchanged in
 * the folder, marked "former", so that burst still knows these as its own. Sorts lines->files and
 * adds to lines->text. */
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
