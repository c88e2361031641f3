/* upsync.h - uploads a tree to a pod's volume under its id: one exec, one tar stream; nothing is
 * sent that is there already. The stream is cut into frames. The rate of the first frames decides
 * whether further sessions carry later ones, which the agent puts in order (jobs/agent/CONTROL.md,
 * `tree --lanes`; after the loss of one, all goes again over one session), and whether frames are
 * packed: if they shrink, on a line that the processor cannot fill. */
#ifndef BURST_ENGINE_UPSYNC_H
#define BURST_ENGINE_UPSYNC_H

#include "net/pool.h"
#include "sync/tree.h"
#include "link.h"

struct upsync;

struct upsync_want {
	const char *dir;         /* "code", "kit" */
	const struct tree *tree; /* borrowed until done() */
	/* the folder it was scanned from; NULL: every entry has its data */
	const char *root;
	const struct tree *base; /* what the volume has, by the ledger; NULL: nothing */
	bool zstd; /* the pod can unpack it; whether to pack is decided during the upload */
	/* The stream is on the volume already, as staged/TREE-ID.0 and so on; missing parts are
	 * sent. 0: it is not. */
	int staged_parts;
	char staged_sha256[SHA256_HEX];
	int64_t silent_ms; /* without a byte that the pod took, or a line of it, for longer than
			      this the upload is stuck. After the last byte the pod unpacks and
			      syncs, and gets the time that this may take */
	int *lanes_left;   /* further sessions that all pods together may open; borrowed */
	/* In the loop, exactly once: sent is the bytes that went over the line (0: it was there).
	 */
	void (*done)(void *ctx, int64_t sent, const struct err *err);
	void *ctx;
};

/* The link stays the caller's and outlives the transfer. */
struct upsync *upsync_start(struct loop *loop, struct link *link, struct pool *pool,
			    const struct upsync_want *want);
void upsync_cancel(struct upsync *u); /* no done() afterwards; accepts NULL */

#endif
