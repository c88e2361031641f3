/* test_natural.c - names in the order in which people list them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/pattern.h"

/* Each list is in order. */
static const char *const lists[][10] = {
	{"Chapter 1", "Chapter 2", "Chapter 10"},
	{"1", "2", "10", "100", "a"},
	{"Chapter", "Chapter 2"},
	{"chapter 1", "Chapter 2", "chapter 3"},
	{"Ch 001", "Ch 01", "Ch 1", "Ch 02", "Ch 2"},
	{"part 1-2", "part 1-10", "part 2-1"},
	{"1.2", "1.10", "1.10a"},
	{"99999999999999999999999998", "99999999999999999999999999", "100000000000000000000000000"},
	{"Arm", "\xc3\x84rmel", "Art", "Zahn"},        /* Ärmel */
	{"Arm", "A\xcc\x88rmel", "Art", "\xc3\xa4rz"}, /* the same in two letters */
	{"Stra\xc3\x9f"
	 "e 2",
	 "Stra\xc3\x9f"
	 "e 10"},                                      /* Straße */
	{"\xd0\x93\xd0\xbb 2", "\xd0\xb3\xd0\xbb 10"}, /* Гл 2, гл 10 */
	{"", "a", "a b", "aa"},
	{"a", "\xff", "\xff\xff"}, /* no text at all */
	{"frame-0001.png", "frame-0002.png", "frame-0010.png"},
};

static void test_lists(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t a = 0; a < ARRAY_LEN(lists[i]) && lists[i][a]; a++)
			for (size_t b = 0; b < ARRAY_LEN(lists[i]) && lists[i][b]; b++) {
				int order = natural_order(lists[i][a], lists[i][b]),
				    right = (a > b) - (a < b);
				if ((order > 0) - (order < 0) != right)
					fail_msg("\"%s\" and \"%s\": %d", lists[i][a], lists[i][b],
						 order);
			}
}

/* qsort() needs an order without circles: x < y and y < z means x < z. */
static void test_no_circles(void **state)
{
	static const char *const parts[] = {"a", "A",        "0",        "1",    "01", "10",
					    " ", "\xc3\xa4", "\xcc\x88", "\xff", "z",  "-"};
	char names[60][24];
	unsigned seed = 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		names[i][0] = '\0';
		for (int n = 0; n < 4; n++) {
			seed = seed * 1103515245u + 12345u;
			strcat(names[i], parts[(seed >> 16) % ARRAY_LEN(parts)]);
		}
	}
	for (size_t x = 0; x < ARRAY_LEN(names); x++)
		for (size_t y = 0; y < ARRAY_LEN(names); y++) {
			int xy = natural_order(names[x], names[y]);
			assert_int_equal(xy > 0, natural_order(names[y], names[x]) < 0);
			assert_int_equal(xy == 0, !strcmp(names[x], names[y]));
			for (size_t z = 0; z < ARRAY_LEN(names); z++)
				if (xy < 0 && natural_order(names[y], names[z]) < 0 &&
				    natural_order(names[x], names[z]) >= 0)
					fail_msg("\"%s\", \"%s\", \"%s\"", names[x], names[y],
						 names[z]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_no_circles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
