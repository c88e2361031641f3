/* checks.c - compares values and names the case that failed. */
#include "checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void check_text(const char *name, const char *got, const char *want)
{
	if (strcmp(got, want))
		fail_msg("%s: got \"%s\", want \"%s\"", name, got, want);
}

void check_int(const char *name, int64_t got, int64_t want)
{
	if (got != want)
		fail_msg("%s: got %lld, want %lld", name, (long long)got, (long long)want);
}
