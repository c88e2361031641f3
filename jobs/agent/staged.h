/* staged.h - reads a stream that the client put on the volume before the pod existed:
 * staged/NAME.0, NAME.1, ... */
#ifndef BURST_JOBS_AGENT_STAGED_H
#define BURST_JOBS_AGENT_STAGED_H

#include <stdbool.h>
#include <sys/types.h>

struct tree_args {
	const char *dir, *id, *base;
	/* the parts on the volume, and the hash of the whole stream */
	const char *from, *sha256;
	const char *parts;
	const char *volume;
	bool zstd, lanes, unstaged, baseless;
};

/* Starts a child that reads the parts; its output becomes stdin. It fails if the hash differs. */
pid_t staged_start(const struct tree_args *args);
void staged_remove(const struct tree_args *args);

#endif
