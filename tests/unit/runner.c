/* runner.c - the unit programs of one group as one program: its name says which file's tests it
 * runs. The Makefile renames the main() of test_x.c to test_x_main(). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define UNIT(name) int name##_main(void);
#include UNITS
#undef UNIT

static const struct {
	const char *name;
	int (*run)(void);
} units[] = {
#define UNIT(name) {#name, name##_main},
#include UNITS
#undef UNIT
};

int main(void)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i].name, program_invocation_short_name))
			return units[i].run();
	fprintf(stderr, "%s: has none of these tests:\n", program_invocation_short_name);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		fprintf(stderr, "\t%s\n", units[i].name);
	return 2;
}
