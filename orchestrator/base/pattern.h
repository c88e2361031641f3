/* pattern.h - patterns for file names, and the order in which people list names */
#ifndef BURST_BASE_PATTERN_H
#define BURST_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* ---- glob ----
 * The part that all patterns with stars have in common: which star takes more when the rest does
 * not match. Shared by pattern.c (outputs) and ignore.c (git's rules), which differ in everything
 * else. */

struct glob_kind {
	/* Matches one element of the pattern that is no star, and moves both behind what matched.
	 * Returns false if it does not match; the two may have moved then. */
	bool (*one)(const char **pattern, const char **text);
	/* Moves on by one character, the least that a star takes; the text is not at its end. */
	void (*step)(const char **text);
	/* git's rule: two stars cross folders only between '/' or the pattern's ends */
	bool whole_parts;
};

/* Whether the whole text matches. Time at most length of pattern x square of the length of text. */
bool glob_match(const struct glob_kind *kind, const char *pattern, const char *text);

/* ---- pattern ----
 * Which files are outputs of a command, as in outputs = ["renders/?*.mp4"]. Both burst and its
 * agent use it.
 *
 * "*": any characters but '/'. "**": any characters, '/' included; as a whole part of the path it
 * stands with the '/' behind it for any number of folders, also none: a/XX/b, where XX is **,
 * matches a/b and a/x/y/b. "?": one character (UTF-8) but '/'. "[a-z]": one character of a set,
 * never '/'; "[!...]" or "[^...]": one not of the set; a first ']' is itself, and so is a '[' that
 * is never closed. "\c": the character c itself; a lone "\" at the end matches nothing.
 *
 * All else stands for itself; case matters; a leading dot is nothing special; the whole path must
 * match. */

bool pattern_match(const char *pattern, const char *path);
/* Whether one of the patterns matches; they end with a NULL. patterns may be NULL: false. */
bool pattern_match_any(const char *const *patterns, const char *path);

/* ---- natural ----
 * The order in which people list names: "Chapter 2" before "Chapter 10". */

/* Compares names as qsort() wants it: numbers by value, letters without case and accents ("Ä" is
 * "a"). Names that are equal then are compared by their bytes, so 0 means equal bytes. Accepts
 * invalid UTF-8. */
int natural_order(const char *a, const char *b);
/* The same for names of these lengths. */
int natural_order_n(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
