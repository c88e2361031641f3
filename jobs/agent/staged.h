/* staged.h - a stream that was put on the volume before there was a pod: staged/NAME.0, NAME.1, ...
 */
#ifndef BURST_JOBS_AGENT_STAGED_H
#define BURST_JOBS_AGENT_STAGED_H

#include <stdbool.h>
#include <sys/types.h>

struct tree_args {
	const char *dir, *id, *base;
	/* a stream in parts on the volume, and the hash that it must have */
	const char *from, *sha256;
	const char *parts;
	const char *volume;
	bool zstd, lanes, unstaged, baseless;
};

/* A child that reads the parts; its output becomes stdin. It fails if they differ from what was put
 * there. */
pid_t staged_start(const struct tree_args *args);
void staged_remove(const struct tree_args *args);

#endif
