/* trees.h - what is synced to the pods. */
#ifndef BURST_ENGINE_TREES_H
#define BURST_ENGINE_TREES_H

struct engine;

/* Makes the tree of the job's own files, and begins to walk the code folder. */
void trees_make(struct engine *e);

#endif
