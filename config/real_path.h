/* real_path.h - finds where a path leads, also if what it names is missing. */
#ifndef BURST_CONFIG_REAL_PATH_H
#define BURST_CONFIG_REAL_PATH_H

#include <stdbool.h>

/* The path with links followed, or the one that it will have once missing folders are made. The
 * caller frees it. */
char *real_path(const char *path);
/* Normalizes "/a/./b//../c" to "/a/c". The caller frees it. */
char *real_path_plain(const char *path);
/* Removes the last part of a path. Returns false if none is left. */
bool real_path_up(char *path);
/* Moves a path below `from` to the same name below `to` (both real); else copies it. The caller
 * frees it. */
char *real_path_move(const char *path, const char *from, const char *to);

#endif
