/* seek.h - takes over pods that other runs offer. */
#ifndef BURST_ENGINE_SEEK_H
#define BURST_ENGINE_SEEK_H

struct engine;

/* Takes over up to `wanted` pods, and answers ACT_SEEK. While the core waits for a pod, the run's
 * row says which ones it would take. */
void seek_pods(struct engine *e, int wanted);
/* In each turn of the loop: clears that row when the run no longer waits. */
void seek_watch(struct engine *e);

#endif
