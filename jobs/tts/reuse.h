/* reuse.h - which finished files of the output folder and of the render cache the segments of a
 * script can use, whatever their names, and how they get the names that the script gives them now.
 *
 * A file of the folder counts if a line of the manifest has its hash. reuse_find() only reads;
 * reuse_bring() acts: it appends the lines of all new names, then renames one file after the other,
 * so that at each moment each file is whole and known to the manifest. A file whose name belongs to
 * another segment is renamed; files are copied from a name that no segment has, and from the cache.
 * Files that swap names are parked under a name of their own, with a line of their own. After a
 * crash, reuse_find() finds all of them. */
#ifndef BURST_JOBS_TTS_REUSE_H
#define BURST_JOBS_TTS_REUSE_H

#include "jobs/manifest.h"

struct reuse;

/* What the job says of its segments. All borrowed. */
struct reuse_want {
	const struct job *job;
	const struct segment *segments;
	size_t count;
	const char *dir; /* the output folder */
	bool force;      /* foreign files may be written over */
	bool anew;       /* nothing is reused */
	/* A file of the render cache: fills the result; a descriptor, or -1: there is none. NULL:
	 * no cache. */
	int (*cached)(const struct job *job, size_t index, struct segment_result *result);
	/* As in the manifest. New reference. */
	json_t *(*line)(const struct job *job, size_t index, const struct segment_result *result);
};

/* Fills the results of segments that need no render. ERR_CONFIG: a foreign file has a segment's
 * name, or the manifest is bad. */
int reuse_find(struct reuse **out, const struct reuse_want *want, struct segment_result *results,
	       struct err *err);
void reuse_free(struct reuse *r);
void reuse_count(const struct reuse *r, struct job_changes *out);
/* To be called once, under the folder's lock. A result whose file cannot be copied is open again.
 */
int reuse_bring(struct reuse *r, struct segment_result *results, struct str *notes,
		struct err *err);

/* Names of the folder's files that no segment has and that a job of this type made; they match the
 * manifest. */
struct reuse_names {
	char **list;
	size_t count, cap;
};
int reuse_stale(const struct reuse_want *want, struct reuse_names *out, struct err *err);
void reuse_names_free(struct reuse_names *names);

static inline void reuse_names_free_cleanup(struct reuse_names *names)
{
	reuse_names_free(names);
}

#endif
