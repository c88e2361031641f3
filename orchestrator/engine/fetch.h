/* fetch.h - fetches finished files over one `burst-agent send` channel per pod. It requests them
 * without waiting for answers; worker threads verify and write one while the next ones arrive.
 *
 * A file has two descriptors from shortly before its request until its done(). Each connection may
 * always have one such file; all connections of an engine share the number of others, and the
 * memory for bytes that wait for the disk. */
#ifndef BURST_ENGINE_FETCH_H
#define BURST_ENGINE_FETCH_H

#include "net/pool.h"
#include "net/ssh.h"
#include "sync/receive.h"

struct fetcher; /* one per connection */
struct fetch;   /* one file */

struct fetch_want {
	const char *output_dir,
		*name;            /* the destination; the pod gives the name, which is checked */
	const char *path;         /* on the pod, as the agent names it */
	int64_t bytes, max_bytes; /* as announced; more than max_bytes is ERR_UNTRUSTED */
	const char *sha256;
	/* Called in a worker thread when length and hash are verified, before the rename, so that
	 * the job can check the content. May be NULL. */
	void (*inspect)(void *ctx, const char *part_path);
	/* Only for fetch_local_new(). Called in the loop before the file is read; false cancels it.
	 * May be NULL. */
	bool (*wanted)(const void *ctx);
	/* Called in the loop, exactly once. err NULL: *r is the verified file under its .part name;
	 * it rests (receive_rest) and is the callee's. Otherwise ERR_NETWORK (connection lost; the
	 * next attempt continues what arrived), ERR_NOT_FOUND, ERR_UNTRUSTED, ERR_LOCAL, ERR_BUSY
	 * (an older fetch of that name has not ended yet), ERR_INTERRUPTED (cancelled). */
	void (*done)(void *ctx, struct receive *r, const struct err *err);
	void *ctx;
};

/* What all connections of an engine share. */
struct fetch_share {
	int files;   /* that may still be opened */
	size_t held; /* bytes that wait for the disk */
};

/* share is borrowed. A channel that owes files, is not paused and brings no byte for silent_ms is
 * closed: its files end with ERR_NETWORK. After four in a row stuck(ctx) is called instead, which
 * must close the fetcher. */
struct fetcher *fetcher_new(struct ssh *ssh, struct loop *loop, struct pool *pool,
			    struct fetch_share *share, int64_t silent_ms,
			    void (*stuck)(void *ctx, const char *why), void *ctx);
/* Strings are copied. */
void fetcher_get(struct fetcher *f, const struct fetch_want *want);
/* Cancels the files whose ctx is_one() accepts: they end with ERR_INTERRUPTED, at once or when
 * their thread returns them. */
void fetcher_cancel(struct fetcher *f, bool (*is_one)(const void *ctx, const void *arg),
		    const void *arg);
/* Before the connection closes, or after. A file whose bytes have all arrived ends by itself; the
 * others end with ERR_NETWORK. Accepts NULL. */
void fetcher_close(struct fetcher *f);

/* The same steps for a file that a provider is about to put on this disk. Strings are copied.
 * fetch_local_begin() or fetch_local_fail() must follow. */
struct fetch *fetch_local_new(struct pool *pool, const struct fetch_want *want);
/* The answer of want->wanted(); true without one. */
bool fetch_local_wanted(const struct fetch *x);
/* Copies the file `local` to the .part name, verifies it, and removes `local`. */
void fetch_local_begin(struct fetch *x, const char *local);
/* Ends it with a copy of *err. */
void fetch_local_fail(struct fetch *x, const struct err *err);

#endif
