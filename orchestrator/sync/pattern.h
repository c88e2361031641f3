/* pattern.h - which files are outputs of a command: "out/**.mp4". The agent has a copy of this rule of its own; both are
 * held against tests/unit/pattern_cases.h.
 *
 *   *      any characters but '/'            ?      one character (UTF-8) but '/'
 *   **     any characters, '/' included      [a-z]  one character of a set, never '/'; [!..] or [^..]: not of the set;
 *                                                   ']' first is itself; '[' that is never closed is itself
 *                                            \c     the character c itself
 * "**" at the start or after '/', and followed by '/', stands with that '/' for any folders, none included: a/XX/b with
 * XX = ** fits a/b.
 * All else stands for itself; case matters; a leading dot is nothing special; the whole path must fit. */
#ifndef BURST_SYNC_PATTERN_H
#define BURST_SYNC_PATTERN_H

#include <stdbool.h>

/* Time grows at most with length of pattern x length of path squared. */
bool pattern_match(const char *pattern, const char *path);

#endif
