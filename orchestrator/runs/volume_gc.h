/* volume_gc.h - finds what is no longer needed on a volume: folders of runs that are over and
 * fetched, and partial builds. */
#ifndef BURST_RUNS_VOLUME_GC_H
#define BURST_RUNS_VOLUME_GC_H

#include "runs.h"

struct gc_want {
	/* only runs that ended, or folders that changed last, at least so long ago */
	int64_t age_ms;
	/* also runs that this ledger does not know, and those whose outputs are not all home */
	bool force;
	bool dry_run;
	/* hears a line for each folder that goes or stays, and one at the end */
	void (*tell)(void *ctx, const char *line);
	void *ctx;
};

/* Tells what goes, with its bytes, and what stays although it is old enough. A run that
 * lives is never touched: its lock is held while its folder goes. ERR_USAGE when the provider
 * cannot do it without a pod. */
int volume_gc(const struct runs *rs, const struct engine_provider *p, const struct volume_row *v,
	      const struct gc_want *want, struct err *err);
/* The files of this run are not on this volume any more, or not all of them: noted; and whether
 * that is so. */
int volume_gc_note(struct store *store, const char *run, const char *provider,
		   const char *volume_id, struct err *err);
bool volume_gc_took(struct store *store, const char *run, const char *provider,
		    const char *volume_id);

#endif
