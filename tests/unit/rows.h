/* rows.h - worked cases of the planner's arithmetic, one row per case. */
#ifndef BURST_TESTS_ROWS_H
#define BURST_TESTS_ROWS_H

#include <stddef.h>

enum tolerance { ABSOLUTE, RELATIVE };

struct row {
	const char *id, *what;
	double got, expected;
	enum tolerance kind;
	double tolerance;
};

#define MINUTES(n) ((n)*60.0)

/* Prints each row that is wrong, and fails the test if there is one. */
void check_rows(const char *part, const struct row *rows, size_t count);
/* 1 if it is this card, else 0. */
double is_card(const char *got, const char *wanted);
/* For the end of a group: prints how many rows it compared. */
int print_count(void **state);

#endif
