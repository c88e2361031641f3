/* reuse_state.h - what reuse.c finds and reuse_bring.c moves. */
#ifndef BURST_JOBS_TTS_REUSE_STATE_H
#define BURST_JOBS_TTS_REUSE_STATE_H

#include "reuse.h"

/* Prefix of a parked file's name. */
#define REUSE_PARK ".burst-moving-"

enum { NO_INDEX = -1 };

/* A name of the manifest and its file. */
struct owned {
	const char *file;
	enum { UNJUDGED, ABSENT, FOREIGN, OURS } state;
	char sha256[SHA256_HEX];
	const struct manifest_entry *entry; /* OURS: the latest line with this hash */
	ssize_t segment;                    /* the segment with this name; NO_INDEX: none */
	bool in_place;                      /* that segment needs exactly this file */
	size_t wanted;                      /* number of other segments that need it */
	ssize_t first;                      /* the first of them */
};

/* The source of a segment's file. */
struct origin {
	enum { NOWHERE, IN_PLACE, FROM_FOLDER, FROM_CACHE } where;
	size_t owned;     /* index; FROM_FOLDER */
	ssize_t next;     /* next segment that needs the same file */
	ssize_t own_name; /* index of `owned` with the segment's name; NO_INDEX: none */
};

struct reuse {
	struct reuse_want want;
	struct manifest m;
	struct owned *owned; /* sorted by name */
	size_t owned_count;
	struct manifest_entry **by_key; /* sorted by key, later lines first */
	struct origin *origins;
	struct job_changes changes;
};

/* Returns whether an interrupted move left the file under this name. */
bool reuse_is_parked(const char *file);

#endif
