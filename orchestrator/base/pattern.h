/* pattern.h - patterns for file names, and the order in which people list names */
#ifndef BURST_BASE_PATTERN_H
#define BURST_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* ---- glob ----
 * The part that all patterns with stars have in common: which star tries again when the rest does
 * not fit. Shared by pattern.c (outputs) and ignore.c (git's rules), which differ in everything
 * else. */

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

/* ---- pattern ----
 * Which files are outputs of a command, as in outputs = ["renders/?*.mp4"]. burst and its agent
 * use it alike.
 *
 * * any characters but '/' ** any characters, '/' included. At the start or after a '/', and
 * before a '/', it stands together with the '/' behind it for any number of folders, none
 * included: a/XX/b, where XX is **, fits a/b and a/x/y/b ? one character (UTF-8) but '/' [a-z]
 * one character of a set, never '/'; [!...] or [^...]: one not of the set; a ']' that comes first
 * is itself, and so is a '[' that is never closed \c the character c itself; a lone \ at the end
 * fits nothing
 *
 * All else stands for itself; case matters; a leading dot is nothing special; the whole path must
 * fit. */

/* Time grows at most with length of pattern x square of the length of path. */
bool pattern_match(const char *pattern, const char *path);
/* Any of them, up to a NULL; patterns NULL: none. */
bool pattern_match_any(const char *const *patterns, const char *path);

/* ---- natural ----
 * The order in which people list names: "Chapter 2" before "Chapter 10". */

/* Compares names as qsort() wants it: numbers by their value, letters whatever their case and
 * accents ("Ä" is "a"). Names that are alike so are ordered by their bytes, so 0 means equal bytes.
 * Any bytes will do. */
int natural_order(const char *a, const char *b);
/* The same for the first so many bytes of each. */
int natural_order_n(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
