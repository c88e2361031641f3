/* test_kit.c - the agents that burst carries: each is a program for the machine that it is for, and
 * the bootstrap names all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "jobs/agent/kit.h"

/* Offset 18 of an ELF file. */
static const struct {
	const char *machine;
	unsigned elf;
} machines[POD_AGENTS] = {{"x86_64", 62}, {"aarch64", 183}};

static void agents_fit_their_machines(void **state)
{
	(void)state;
	const struct pod_kit *kit = pod_kit();

	assert_true(kit->agents[0].len > 0 || kit->agents[1].len > 0);
	for (size_t i = 0; i < POD_AGENTS; i++) {
		const struct pod_agent *agent = &kit->agents[i];
		const unsigned char *head = agent->bytes;
		assert_string_equal(agent->machine, machines[i].machine);
		if (!agent->len)
			continue;
		assert_memory_equal(head, "\177ELF\2\1", 6);
		assert_int_equal(head[18] | head[19] << 8, machines[i].elf);
	}
}

static void the_bootstrap_names_each(void **state)
{
	(void)state;
	const struct pod_kit *kit = pod_kit();

	for (size_t i = 0; i < POD_AGENTS; i++) {
		CLEANUP(free_text)
		char *without = xasprintf("built without an agent for %s", machines[i].machine);
		assert_true((strstr(kit->bootstrap, kit->agents[i].hash) != NULL) ==
			    (kit->agents[i].len > 0));
		assert_true((strstr(kit->bootstrap, without) != NULL) == !kit->agents[i].len);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(agents_fit_their_machines),
		cmocka_unit_test(the_bootstrap_names_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
