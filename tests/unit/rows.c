/* rows.c - compares worked cases, and counts them. */
#include "rows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static size_t rows_checked;

void check_rows(const char *part, const struct row *rows, size_t count)
{
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		const struct row *r = &rows[i];
		double room = r->kind == ABSOLUTE ? r->tolerance : fabs(r->expected) * r->tolerance;
		if (fabs(r->got - r->expected) <= room + 1e-12)
			continue;
		print_error("%s %s: got %.6g, expected %.6g\n", r->id, r->what, r->got,
			    r->expected);
		wrong++;
	}
	print_message("%s: %zu cases, %zu wrong\n", part, count, wrong);
	rows_checked += count;
	assert_int_equal(wrong, 0);
}

double is_card(const char *got, const char *wanted)
{
	return !strcmp(got, wanted);
}

int print_count(void **state)
{
	(void)state;
	print_message("%zu rows in all\n", rows_checked);
	return 0;
}
