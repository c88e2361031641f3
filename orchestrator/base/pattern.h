/* pattern.h - which files are outputs of a command, as in outputs = ["renders/?*.mp4"]. burst and
 * its agent use it alike.
 *
 *   *      any characters but '/'
 *   **     any characters, '/' included. At the start or after a '/', and before a '/', it stands
 * together with the '/' behind it for any number of folders, none included: a/XX/b, where XX is **,
 * fits a/b and a/x/y/b ?      one character (UTF-8) but '/' [a-z]  one character of a set, never
 * '/'; [!...] or [^...]: one not of the set; a ']' that comes first is itself, and so is a '[' that
 * is never closed \c     the character c itself; a lone \ at the end fits nothing
 *
 * All else stands for itself; case matters; a leading dot is nothing special; the whole path must
 * fit. */
#ifndef BURST_SYNC_PATTERN_H
#define BURST_SYNC_PATTERN_H

#include <stdbool.h>

/* Time grows at most with length of pattern x square of the length of path. */
bool pattern_match(const char *pattern, const char *path);
/* Any of them, up to a NULL; patterns NULL: none. */
bool pattern_match_any(const char *const *patterns, const char *path);

#endif
