/* pool.h - a few threads for work that would block the loop: walking, hashing, (de)compressing,
 * fsync. */
#ifndef BURST_NET_POOL_H
#define BURST_NET_POOL_H

#include <stdbool.h>

#include "loop.h"

struct pool;

/* threads: 1..16; they block all signals. */
struct pool *pool_new(struct loop *loop, int threads);
/* work(arg) runs on some thread; with one thread, in the order of the calls. Then done(arg) runs on
 * the loop's thread (NULL: nothing does). The caller owns arg throughout. */
void pool_run(struct pool *pool, void (*work)(void *arg), void (*done)(void *arg), void *arg);
/* Nothing is queued, running, or waiting for its done(). */
bool pool_idle(const struct pool *pool);
/* Waits until everything accepted has run, makes the outstanding done() calls (which may not
 * pool_run() any more), and ends the threads. Before loop_free(). Accepts NULL. */
void pool_free(struct pool *pool);

DEFINE_CLEANUP(pool_free, struct pool *)

#endif
