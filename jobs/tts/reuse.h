/* reuse.h - finds finished files of the output folder and the render cache that segments can use,
 * under any name, and renames them as the script requires.
 *
 * A file of the folder counts if a line of the manifest has its hash. reuse_find() only reads.
 * reuse_bring() acts: it appends the lines of all new names, then renames one file at a time. At
 * each moment each file is complete and listed in the manifest. A file is renamed if its name
 * belongs to another segment, and copied if no segment has its name or it comes from the cache.
 * Files that swap names are parked under a third name, with a line of its own. After a crash,
 * reuse_find() finds all of them. */
#ifndef BURST_JOBS_TTS_REUSE_H
#define BURST_JOBS_TTS_REUSE_H

#include "jobs/manifest.h"

struct reuse;

/* The job's description of its segments. All borrowed. */
struct reuse_want {
	const struct job *job;
	const struct segment *segments;
	size_t count;
	const char *dir; /* the output folder */
	bool force;      /* overwrite foreign files */
	bool anew;       /* reuse nothing */
	/* Fills the result of a segment that the render cache has and returns a descriptor, or -1.
	 * NULL: no cache. */
	int (*cached)(const struct job *job, size_t index, struct segment_result *result);
	/* Makes the manifest's line. New reference. */
	json_t *(*line)(const struct job *job, size_t index, const struct segment_result *result);
};

/* Fills the results of segments that need no render. ERR_CONFIG: a foreign file has a segment's
 * name, or the manifest is invalid. */
int reuse_find(struct reuse **out, const struct reuse_want *want, struct segment_result *results,
	       struct err *err);
void reuse_free(struct reuse *r);
void reuse_count(const struct reuse *r, struct job_changes *out);
/* Call once, under the folder's lock. A segment whose file cannot be copied becomes unfinished
 * again. */
int reuse_bring(struct reuse *r, struct segment_result *results, struct str *notes,
		struct err *err);

/* Names of files that a job of this type made, that match the manifest and that no segment has. */
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
