/* reuse_state.h - what reuse.c finds and reuse_bring.c moves. */
#ifndef BURST_JOBS_TTS_REUSE_STATE_H
#define BURST_JOBS_TTS_REUSE_STATE_H

#include "reuse.h"

/* The beginning of the name of a file that waits for its own name. */
#define REUSE_PARK ".burst-moving-"

enum { NOBODY = -1 };

/* A name of the manifest, and the file that has it. */
struct owned {
	const char *file;
	enum { UNJUDGED, ABSENT, FOREIGN, OURS } state;
	char sha256[SHA256_HEX];
	const struct manifest_entry *entry; /* OURS: the latest line with this hash */
	ssize_t segment;                    /* the segment that has the name; NOBODY */
	bool in_place;                      /* its segment needs exactly this file */
	size_t wanted;                      /* segments of other names that need it */
	ssize_t first;                      /* the first of these */
};

/* Where a segment's file comes from. */
struct origin {
	enum { NOWHERE, IN_PLACE, FROM_FOLDER, FROM_CACHE } where;
	size_t owned;     /* FROM_FOLDER */
	ssize_t next;     /* the next segment that needs the same file */
	ssize_t own_name; /* which of `owned` has its name; NOBODY */
};

struct reuse {
	struct reuse_want want;
	struct manifest m;
	struct owned *owned; /* in the order of their names */
	size_t owned_count;
	struct manifest_entry **by_key; /* sorted by key, later lines first */
	struct origin *origins;
	struct job_changes changes;
};

/* Whether an interrupted move left the file under this name. */
bool reuse_is_parked(const char *file);

#endif
