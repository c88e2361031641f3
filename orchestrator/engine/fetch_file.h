/* fetch_file.h - one fetched file, whether a channel brings it or a provider. */
#ifndef BURST_ENGINE_FETCH_FILE_H
#define BURST_ENGINE_FETCH_FILE_H

#include "base/str.h"
#include "fetch.h"

enum {
	FETCH_SLICE = 256 << 10, /* bytes that are written at once */
};

enum stage { ST_WAITING, ST_OPENING, ST_READY, ST_REQUESTED, ST_ARRIVING, ST_FINISHING, ST_OVER };

/* What the connection of a file does when the file changes; all run in the loop. */
struct fetch_hooks {
	void (*leave)(struct fetch *x); /* it takes x out of its list */
	void (*opened)(struct fetcher *f);
	void (*written)(struct fetcher *f); /* a thread has returned a file */
	void (*ended)(struct fetcher *f);   /* the file of f is freed */
};

/* The loop thread owns all of it, but for r, out and result, which belong to a worker thread while
 * `busy`. */
struct fetch {
	struct fetcher *fetcher;         /* NULL: the connection is gone, or there never was one */
	const struct fetch_hooks *hooks; /* NULL: it has no connection */
	struct fetch *next;
	struct pool *pool;
	char *output_dir, *name, *path, *sha256;
	char *local; /* fetch_local.c: the file it is copied from; NULL: none */
	int64_t bytes, max_bytes;
	void (*inspect)(void *ctx, const char *part_path);
	bool (*wanted)(const void *ctx);
	void (*done)(void *ctx, struct receive *r, const struct err *err);
	void *ctx;
	enum stage stage;
	struct fetch_share *share; /* NULL: it does not count there */
	int64_t offset;            /* first byte that is requested */
	int64_t arrived;           /* bytes since offset */
	struct str in;             /* arrived, not yet given to a thread */
	bool all_here, busy;
	struct err failure; /* ends it when the thread returns it; kind 0: none */
	/* a worker thread's while busy */
	struct receive *r;
	struct str out;
	struct err result;
	bool finish; /* out is the end of the file */
};

/* The strings of *want are copied. */
struct fetch *fetch_new(const struct fetch_want *want, struct pool *pool);
/* Calls done() and frees x, which no thread has. err NULL: x->r is verified. */
void fetch_end(struct fetch *x, const struct err *err);
/* Ends x, at once or when its thread returns it. */
void fetch_fail(struct fetch *x, enum err_kind kind, const char *what);
/* Takes x from its connection, if it has one; x ends when its thread returns it. */
void fetch_detach(struct fetch *x);
/* Has a thread open its part; the hook opened() follows if bytes are missing. */
void fetch_open(struct fetch *x);
/* Gives what has arrived to a thread, if none has the file now and there is enough of it. */
void fetch_write(struct fetch *x);
/* In a worker thread: opens the part; sets x->result. */
void fetch_work_open(void *fetch);
/* In a worker thread: has the job inspect the verified file. */
void fetch_inspect(struct fetch *x);

#endif
