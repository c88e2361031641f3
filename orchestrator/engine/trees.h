/* trees.h - what is synced to the pods. */
#ifndef BURST_ENGINE_TREES_H
#define BURST_ENGINE_TREES_H

#include "sync/tree.h"

struct engine;
struct trees;

/* Makes the tree of the job's own files, and begins to scan the code folder. ready(e) follows in
 * the loop when that is done, well or not; without code it does not. Once for an engine. */
void trees_make(struct engine *e, void (*ready)(struct engine *e));
void trees_free(struct trees *t);

/* The trees live as long as the engine. NULL: the job has no such tree, or it is not scanned yet.
 */
const struct tree *trees_kit(const struct engine *e);
const struct tree *trees_code(const struct engine *e);
/* The code as the last run of this project scanned it. */
const struct tree *trees_code_before(const struct engine *e);
bool trees_scanning(const struct engine *e);
/* Why a tree could not be made; NULL: nothing failed. */
const struct err *trees_failure(const struct engine *e);

/* Where the last scan of a code folder is kept (sync/tree.h), below the folder of all runs. The
 * caller frees it. */
char *engine_scan_path(const char *runs_dir, const char *code_path);

#endif
