/* fetch.h - brings finished files home over one `burst-agent send` channel per pod: asked for in a
 * row without waiting for answers, verified and written by worker threads while the next ones
 * arrive.
 *
 * A file has two descriptors from shortly before it is asked for until its done(). Each connection
 * may have one such file at any time; more only while there is room, which all connections of an
 * engine share. So is the room for bytes that wait for the disk. */
#ifndef BURST_ENGINE_FETCH_H
#define BURST_ENGINE_FETCH_H

#include "net/pool.h"
#include "net/ssh.h"
#include "sync/receive.h"

struct fetcher; /* one per connection */
struct fetch;   /* one file */

struct fetch_want {
	const char *output_dir, *name; /* where it goes; name is foreign and checked */
	const char *path;              /* where it is, as the agent names it */
	int64_t bytes, max_bytes;      /* as announced; more than max_bytes is ERR_UNTRUSTED */
	const char *sha256;
	/* In a worker thread, when length and hash are right and before the rename: looks at the
	 * file. May be NULL. */
	void (*inspect)(void *ctx, const char *part_path);
	/* For fetch_local_new() alone. In the loop, before the file is read: false, it is not
	 * wanted any more. May be NULL. */
	bool (*wanted)(const void *ctx);
	/* In the loop, exactly once. err NULL: *r is the verified file under its .part name, now
	 * the callee's, and rests (receive_rest). Otherwise ERR_NETWORK (connection lost: what
	 * arrived is kept for the next try), ERR_NOT_FOUND, ERR_UNTRUSTED, ERR_LOCAL, ERR_BUSY (an
	 * older one of that name has not ended yet), ERR_INTERRUPTED (cancelled). */
	void (*done)(void *ctx, struct receive *r, const struct err *err);
	void *ctx;
};

/* What all connections of an engine share. */
struct fetch_share {
	int files;   /* how many more may be open */
	size_t held; /* bytes that wait for the disk */
};

/* share is borrowed. A channel that is asked for files and brings not one byte for silent_ms,
 * though we take them in, is given up: ERR_NETWORK for what was asked for on it. After some in a
 * row stuck(ctx) is called instead, which closes the fetcher. */
struct fetcher *fetcher_new(struct ssh *ssh, struct loop *loop, struct pool *pool,
			    struct fetch_share *share, int64_t silent_ms,
			    void (*stuck)(void *ctx, const char *why), void *ctx);
/* Strings are copied. */
void fetcher_get(struct fetcher *f, const struct fetch_want *want);
/* Those whose ctx is_one() are not wanted any more: ERR_INTERRUPTED, at once or when a thread is
 * done with them. */
void fetcher_cancel(struct fetcher *f, bool (*is_one)(const void *ctx, const void *arg),
		    const void *arg);
/* The connection is gone or going: all that is under way ends with ERR_NETWORK. NULL is fine. */
void fetcher_close(struct fetcher *f);

/* The same steps for a file that a provider is about to put on this disk. Strings are copied. One
 * of the two functions below has to follow. */
struct fetch *fetch_local_new(struct pool *pool, struct loop *loop, const struct fetch_want *want);
/* As want->wanted() says. */
bool fetch_local_wanted(const struct fetch *x);
/* It is there: verifies `local` into place under .part, and removes it. */
void fetch_local_begin(struct fetch *x, const char *local);
/* It does not come: done(), with a copy of *err. */
void fetch_local_fail(struct fetch *x, const struct err *err);

#endif
