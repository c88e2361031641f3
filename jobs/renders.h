/* renders.h - finished files by what they are, for all jobs and projects of this user: the render
 * cache.
 *
 * DIR/KK/KEY.SHA256 is one file: KEY says what was rendered, SHA256 is the hash of the result, KK
 * begins KEY. Files are written beside and renamed, and verified by their hash at each use, so a
 * crash or a bad disk costs one render. Several processes may use the folder at once. When it
 * exceeds its limit, the least recently used files are removed. The cache never fails a job: an
 * error is noted once, and the job continues without it. */
#ifndef BURST_JOBS_RENDERS_H
#define BURST_JOBS_RENDERS_H

#include "base/crypto.h"
#include "base/err.h"
#include "base/str.h"

struct renders; /* has its own lock: worker threads may use it */

/* NULL: no cache (dir NULL or empty, or a limit of 0). Creates nothing before the first
 * renders_put(). */
struct renders *renders_new(const char *dir, int64_t max_bytes);
void renders_free(struct renders *r);

/* An undamaged file of this key: a descriptor, and its path. A damaged file is removed. -1: there
 * is none. r may be NULL. */
int renders_find(struct renders *r, const char *key, char sha256[SHA256_HEX], char **path);
/* Keeps a copy of the file. If the key exists already, nothing changes, unless `anew`. r may be
 * NULL. */
void renders_put(struct renders *r, const char *key, int fd, const char *sha256, bool anew);
/* Trims to the limit, if this process has added anything. r may be NULL. */
void renders_trim(struct renders *r);
/* Adds a line for people about an error since the last call, if there was one. */
void renders_tell(struct renders *r, struct str *notes);

struct renders_size {
	size_t count;
	int64_t bytes;
	int64_t oldest_s, newest_s; /* last use; 0: there is none */
};
/* An absent folder has nothing in it. ERR_LOCAL. */
int renders_measure(const char *dir, struct renders_size *out, struct err *err);
/* Removes all files of the cache and nothing else; *out: what they were. */
int renders_clear(const char *dir, struct renders_size *out, struct err *err);

static inline void renders_free_cleanup(struct renders **r)
{
	renders_free(*r);
}

#endif
