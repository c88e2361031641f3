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
	char *line; /* as text, which takes a tenth of the memory; id and file stand behind it */
};

struct manifest {
	bool present;                   /* the folder has a manifest */
	struct manifest_entry *entries; /* in the order of the file */
	size_t count, cap;
	size_t bad_line;                 /* in lenient reading: the first invalid line; 0: none */
	struct manifest_entry **by_file; /* sorted by file, later lines first */
};

/* Reads dir/manifest.jsonl; a missing one counts as empty. An invalid line is ERR_CONFIG; if
 * lenient, it is skipped. */
int manifest_read(const char *dir, bool lenient, struct manifest *out, struct err *err);
/* Parses a manifest from bytes; name is for messages. */
int manifest_parse(const char *name, const char *bytes, size_t len, bool lenient,
		   struct manifest *out, struct err *err);
void manifest_free(struct manifest *m);
/* Returns whether the folder has a manifest, valid or not. */
bool manifest_is_there(int folder);

/* Returns whether by_file[i] is the newest line of its file. */
bool manifest_is_latest(const struct manifest *m, size_t i);
/* Finds the lines of a file, newest first: a pointer to the first, and their number. NULL: none. */
struct manifest_entry *const *manifest_find(const struct manifest *m, const char *file,
					    size_t *count);

/* Hashes a file and finds its entry: one with this key if possible (key may be NULL), else any;
 * NULL if burst did not make the file. A missing file gives NULL and *absent. Returns -1 if it
 * cannot be read. */
int manifest_match(const struct manifest *m, const char *dir, const char *file, const char *key,
		   const struct manifest_entry **out, bool *absent, struct err *err);

/* Everything that the line holds. New reference. */
json_t *manifest_entry_json(const struct manifest_entry *entry);

/* Fills the result of a segment whose file is reused from an earlier run. */
void manifest_restore(const struct manifest_entry *entry, struct segment_result *result);

/* Begins a line with the fields that every type shares. commit: of job_setup; "": none. New
 * reference. */
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
/* Appends the lines in one write and syncs. Safe from several threads and processes. */
int manifest_append(const char *dir, const struct manifest_lines *lines, struct err *err);
/* Rewrites the file: the given lines, sorted here, then lines of old files that still exist, marked
 * "former", so that burst still knows them as its own. */
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
