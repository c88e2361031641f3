/* checks.h - comparisons that name the case that failed. */
#ifndef BURST_TESTS_CHECKS_H
#define BURST_TESTS_CHECKS_H

#include <stdint.h>

/* A literal and its length, NUL bytes included. */
#define S(text) (text), sizeof(text) - 1

void check_text(const char *name, const char *got, const char *want);
void check_int(const char *name, int64_t got, int64_t want);

#endif
