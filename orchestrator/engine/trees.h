/* trees.h - what is synced to the pods. */
#ifndef BURST_ENGINE_TREES_H
#define BURST_ENGINE_TREES_H

struct engine;

/* Makes the tree of the job's own files, and begins to walk the code folder. */
void trees_make(struct engine *e);

/* Where the last scan of a code folder is kept (sync/tree.h), below the folder of all runs. To be
 * freed by the caller. */
char *engine_scan_path(const char *runs_dir, const char *code_path);

#endif
