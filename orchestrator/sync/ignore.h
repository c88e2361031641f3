/* ignore.h - decides which paths of a tree are not synced.
 *
 * The rules are in `.burstignore` at the root of the tree, else they are those of git: the
 * `.gitignore` files of the tree and of the folders above it up to the repository's top, its
 * `info/exclude`, and the user's own file (core.excludesFile). Comments, `!`, `*`, `**`, `?`,
 * `[...]`, `\`, anchoring by `/`, folders only by a trailing `/`; the last rule that matches
 * decides, and nothing inside a dropped folder can be taken back. `.git` never travels, at any
 * depth. A repository inside the tree keeps the rules around it and adds its own. Not as in git:
 * the index is not read (a tracked file that a rule names is not synced), rules above the tree that
 * drop the tree itself are passed over, and a repository that holds the home folder does not count.
 */
#ifndef BURST_SYNC_IGNORE_H
#define BURST_SYNC_IGNORE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct ignore;

/* Reads the rules at the root of the tree `root`. A rules file over 1 MiB or an unreadable one is
 * an error (ERR_CONFIG, ERR_LOCAL): without its rules, files that must stay here would travel. Free
 * it with ignore_free(). */
int ignore_open(struct ignore **out, const char *root, struct err *err);
/* Adds the rules of a folder (path below the root) that a walker enters: its own `.gitignore`, if
 * those count. The walker calls ignore_leave() when it has finished the folder. After an error the
 * folder counts as not entered. */
int ignore_enter(struct ignore *ig, const char *folder, struct err *err);
void ignore_leave(struct ignore *ig);
/* Whether this path (below the root, inside the folder entered last) is not synced. Its parents
 * must be synced: a walker never enters a dropped folder. */
bool ignore_drops(const struct ignore *ig, const char *path, bool is_folder);
void ignore_free(struct ignore *ig); /* accepts NULL */

DEFINE_CLEANUP(ignore_free, struct ignore *)

#endif
