/* file_source.h - fetches a pod's outputs: over SSH from the pod, or without it from its volume. */
#ifndef BURST_ENGINE_FILE_SOURCE_H
#define BURST_ENGINE_FILE_SOURCE_H

#include "fetch.h"

struct engine;

struct file_source {
	/* Begins to fetch an output, the segment's file of this number. want->done() follows once;
	 * ERR_NETWORK: retry at once. Returns false if no file can come from here now; nothing was
	 * begun. */
	bool (*get)(struct engine *e, int pod, uint32_t segment, size_t file,
		    const struct fetch_want *want);
	/* Cancels the files whose want->ctx is_one() accepts. */
	void (*cancel)(struct engine *e, int pod, bool (*is_one)(const void *ctx, const void *arg),
		       const void *arg);
};

const struct file_source *file_source_of(const struct engine *e, int pod);

#endif
