/* glob.h - the part that all patterns with stars have in common: which star tries again when the
 * rest does not fit. Shared by pattern.c (outputs) and ignore.c (git's rules), which differ in
 * everything else. */
#ifndef BURST_SYNC_GLOB_H
#define BURST_SYNC_GLOB_H

#include <stdbool.h>

struct glob_kind {
	/* Takes one element of the pattern that is no star and what it fits of the text; false: it
	 * does not fit (the two may then have moved). */
	bool (*one)(const char **pattern, const char **text);
	/* What a star takes at least: moves on by one character; the text is not at its end. */
	void (*step)(const char **text);
	/* git's way: two stars cross folders only where '/' or nothing stands before and behind
	 * them. */
	bool whole_parts;
};

/* Does the whole text fit? Does not recurse; time at most length of pattern x square of the length
 * of text. */
bool glob_match(const struct glob_kind *kind, const char *pattern, const char *text);

#endif
