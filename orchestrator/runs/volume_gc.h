/* volume_gc.h - removes from a volume what is no longer needed: folders of runs that are over and
 * fetched, and partial builds. */
#ifndef BURST_RUNS_VOLUME_GC_H
#define BURST_RUNS_VOLUME_GC_H

#include "runs.h"

struct gc_want {
	/* only runs that ended, or folders that changed last, at least this long ago */
	int64_t age_ms;
	/* also runs that this ledger does not know, and those with outputs that are not all local
	 */
	bool force;
	bool dry_run;
	/* called with a line for each folder that is removed or kept, and one at the end */
	void (*tell)(void *ctx, const char *line);
	void *ctx;
};

/* Lists what is removed, with its bytes, and what is kept although it is old enough. Never touches
 * a running run: it holds the run's lock while it removes the folder. ERR_USAGE if the provider
 * cannot do this without a pod. */
int volume_gc(const struct runs *rs, const struct engine_provider *p, const struct volume_row *v,
	      const struct gc_want *want, struct err *err);
/* Records that the run's files are no longer, or not all, on this volume; reads it back. */
int volume_gc_note(struct store *store, const char *run, const char *provider,
		   const char *volume_id, struct err *err);
bool volume_gc_is_noted(struct store *store, const char *run, const char *provider,
			const char *volume_id);

#endif
