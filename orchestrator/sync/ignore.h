/* ignore.h - which paths of a tree do not travel.
 *
 * The rules stand in `.burstignore` at the root of the tree, else in its `.gitignore` and in those
 * of the folders below, and are git's: comments, `!`, `*`, `**`, `?`, `[...]`, `\`, anchoring by
 * `/`, folders only by a trailing `/`, the last rule that fits decides, and nothing inside a
 * dropped folder can be taken back. `.git` never travels, at any depth. Not read: a user's global
 * excludes, `.git/info/exclude`, the index (a tracked file that a rule names stays behind), and
 * `.gitignore` files above the root. */
#ifndef BURST_SYNC_IGNORE_H
#define BURST_SYNC_IGNORE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct ignore;

/* Reads the rules at the root of the tree `root`. A rules file over 1 MiB or an unreadable one is
 * an error (ERR_CONFIG, ERR_LOCAL): without its rules, files that must stay here would travel.
 * ignore_free() it. */
int ignore_open(struct ignore **out, const char *root, struct err *err);
/* A walker says which folder (path below the root) it enters, and calls ignore_leave() when it is
 * done with it. Adds the folder's own `.gitignore` where those are in force. After an error the
 * folder counts as not entered. */
int ignore_enter(struct ignore *ig, const char *folder, struct err *err);
void ignore_leave(struct ignore *ig);
/* Does this path (below the root, inside the folder entered last) stay behind? Its parents are
 * taken to travel: a walker never descends into what was dropped. */
bool ignore_drops(const struct ignore *ig, const char *path, bool is_folder);
void ignore_free(struct ignore *ig); /* NULL is fine */

DEFINE_CLEANUP(ignore_free, struct ignore *)

#endif
