/* renders.h - the render cache: finished files of all jobs and projects of this user.
 *
 * DIR/KK/KEY.SHA256 is one file. KEY names what was rendered, SHA256 is the hash of the result, and
 * KK begins KEY. A file is written under another name and renamed; each use verifies its hash, so a
 * crash or a bad disk costs one render. Several processes may use the folder at once. Above the
 * size limit, the least recently used files are removed. The cache never fails a job: it reports an
 * error once, and the job continues without it. */
#ifndef BURST_JOBS_RENDERS_H
#define BURST_JOBS_RENDERS_H

#include "base/crypto.h"
#include "base/err.h"
#include "base/str.h"

struct renders; /* thread-safe: it has its own lock */

/* Returns NULL if there is no cache: dir is NULL or empty, or the limit is 0. Creates nothing
 * before the first renders_put(). */
struct renders *renders_new(const char *dir, int64_t max_bytes);
void renders_free(struct renders *r);

/* In these four r may be NULL: there is no cache. */

/* Opens an undamaged file of this key; removes damaged ones. Returns a descriptor and sets sha256
 * and *path, which the caller frees; -1: no such file. */
int renders_find(struct renders *r, const char *key, char sha256[SHA256_HEX], char **path);
/* Keeps a copy of fd's whole file, whose hash is sha256. An existing file of this key stays; if
 * `anew`, it is replaced. Trims if much was added. */
void renders_put(struct renders *r, const char *key, int fd, const char *sha256, bool anew);
/* Trims to the limit if this process has added a file. */
void renders_trim(struct renders *r);
/* Adds a note for the user on damaged files or an error since the last call, if any. */
void renders_report(struct renders *r, struct str *notes);

struct renders_size {
	size_t count;
	int64_t bytes;
	int64_t oldest_s, newest_s; /* times of last use; 0: no files */
};
/* Measures the cache. A missing folder (or dir NULL) is empty. ERR_LOCAL. */
int renders_measure(const char *dir, struct renders_size *out, struct err *err);
/* Removes all files of the cache alone. *out: the size before. ERR_LOCAL: some remain. */
int renders_clear(const char *dir, struct renders_size *out, struct err *err);

static inline void renders_free_cleanup(struct renders **r)
{
	renders_free(*r);
}

#endif
