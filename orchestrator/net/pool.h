/* pool.h - a few threads for work that would block the loop: walking, hashing, (de)compressing,
 * fsync. */
#ifndef BURST_NET_POOL_H
#define BURST_NET_POOL_H

#include <stdbool.h>

#include "loop.h"

struct pool;

/* Starts 1 to 16 threads, which block all signals. */
struct pool *pool_new(struct loop *loop, int threads);
/* Queues work(arg) for one of the threads; a single thread keeps the order of the calls. Then calls
 * done(arg), if not NULL, on the loop's thread. The caller owns arg throughout. */
void pool_run(struct pool *pool, void (*work)(void *arg), void (*done)(void *arg), void *arg);
/* Whether nothing is queued, running, or waiting for its done(). */
bool pool_idle(const struct pool *pool);
/* Waits until everything accepted has run, makes the outstanding done() calls (which may not
 * pool_run() any more), and ends the threads. Before loop_free(). Accepts NULL. */
void pool_free(struct pool *pool);

DEFINE_CLEANUP(pool_free, struct pool *)

#endif
