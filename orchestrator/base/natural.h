/* natural.h - the order in which people list names: "Chapter 2" before "Chapter 10". */
#ifndef BURST_BASE_NATURAL_H
#define BURST_BASE_NATURAL_H

#include <stddef.h>

/* Compares names as qsort() wants it: numbers by their value, letters whatever their case and
 * accents ("Ä" is "a"). Names that are alike so are ordered by their bytes, so 0 means equal bytes.
 * Any bytes will do. */
int natural_order(const char *a, const char *b);
/* The same for the first so many bytes of each. */
int natural_order_n(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
