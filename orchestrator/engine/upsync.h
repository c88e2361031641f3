/* upsync.h - puts a tree on a pod's volume under its id: one exec, one tar stream, nothing sent
 * that is there already. The stream is cut into frames. How fast the first ones go decides whether
 * more sessions are opened to carry the next ones, which are put together again on the pod
 * (jobs/agent/CONTROL.md, `tree --lanes`; when one of those is lost all goes again, over one), and
 * whether they are packed: on a line that the processor cannot fill, if they shrink. */
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
	const struct tree *base; /* what the volume has, as far as we know; NULL: nothing */
	bool zstd;               /* the pod can unpack it; what is packed is decided on the way */
	/* The stream lies on the volume already, as staged/TREE-ID.0 and so on; what that lacks is
	 * sent all the same. 0: no. */
	int staged_parts;
	char staged_sha256[SHA256_HEX];
	int64_t silent_ms; /* without a byte that it took, or a word of it, for longer than this: it
			    * is stuck. Where all is sent, or was there, it unpacks and syncs, and
			    * has so long as that may take */
	int *lanes_left;   /* of the further sessions that all pods may have together; borrowed */
	/* In the loop, exactly once: sent is the bytes that went over the line (0: it was there).
	 */
	void (*done)(void *ctx, int64_t sent, const struct err *err);
	void *ctx;
};

/* The link stays the caller's and outlives the transfer. */
struct upsync *upsync_start(struct loop *loop, struct link *link, struct pool *pool,
			    const struct upsync_want *want);
void upsync_cancel(struct upsync *u); /* no done() afterwards; NULL is fine */

#endif
