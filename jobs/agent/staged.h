/* staged.h - a stream that was put on the volume before there was a pod: staged/NAME.0, NAME.1, ...
 */
#ifndef BURST_JOBS_AGENT_STAGED_H
#define BURST_JOBS_AGENT_STAGED_H

#include <stdbool.h>
#include <sys/types.h>

struct tree_args {
	const char *dir, *id, *base;
	/* a stream that lies in parts on the volume, and what it must be */
	const char *from, *sha256;
	const char *parts;
	const char *volume;
	bool zstd, lanes, unstaged, baseless;
};

/* A child that reads the parts; they become our stdin. It fails unless they are what was put there.
 */
pid_t staged_start(const struct tree_args *args);
void staged_remove(const struct tree_args *args);

#endif
