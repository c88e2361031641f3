/* tree_internal.h - how tree.c, tree_scan.c and tree_text.c put a tree together. Not for other
 * files. */
#ifndef BURST_SYNC_TREE_INTERNAL_H
#define BURST_SYNC_TREE_INTERNAL_H

#include "tree.h"

/* A new entry at the end, not sorted yet; the pointer is valid until the next one. */
struct tree_entry *tree_append(struct tree *tree, const char *path, enum tree_type type);
/* Sorts the entries, sums up and computes the id. */
void tree_seal(struct tree *tree);
bool tree_path_ok(const char *path);
/* A link's target that the text form can hold; and one that stays inside the tree. */
bool tree_target_fits(const char *target);
bool tree_target_inside(const char *path, const char *target);

#endif
