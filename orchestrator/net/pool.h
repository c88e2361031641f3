/* pool.h - a few threads for work that would block the loop: walking, hashing, (de)compressing,
 * fsync. */
#ifndef BURST_NET_POOL_H
#define BURST_NET_POOL_H

#include <stdbool.h>

#include "loop.h"

struct pool;

/* threads: 1..16; they block all signals. */
struct pool *pool_new(struct loop *loop, int threads);
/* work(arg) runs on some thread, in the order of asking when there is one; afterwards done(arg)
 * runs on the loop's thread (NULL: nothing does). arg is the caller's all the time. */
void pool_run(struct pool *pool, void (*work)(void *arg), void (*done)(void *arg), void *arg);
/* Nothing is queued, running, or waiting for its done(). */
bool pool_idle(const struct pool *pool);
/* Waits until everything accepted has run, calls the outstanding done()s (which may not pool_run()
 * any more), and ends the threads. Before loop_free(). NULL is fine. */
void pool_free(struct pool *pool);

DEFINE_CLEANUP(pool_free, struct pool *)

#endif
