/* test_volume_intent.c - a volume of one name is created once: what the ledger knows of its create
 * decides when another may be sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/mem.h"
#include "engine/caller.h"
#include "scratch.h"
#include "store/facts.h"

static const char *account(const struct provider *p)
{
	return (const char *)p;
}

static const struct provider_ops ops = {.name = "acme", .account = account},
				 other_ops = {.name = "zeta", .account = account};

static struct engine_provider of(const struct provider_ops *which, const char *name)
{
	return (struct engine_provider){.ops = which, .handle = (struct provider *)name};
}

static void check_waits(const char *what, struct store *s, const struct engine_provider *p,
			const char *name, bool want)
{
	int64_t wait_ms = volume_intent_wait_ms(s, p, name);

	if ((wait_ms > 50000) != want || (!want && wait_ms) || wait_ms > 60000)
		fail_msg("%s: waits for %lld ms", what, (long long)wait_ms);
}

static void how_a_create_ended_decides(void **state)
{
	static const struct {
		const char *name;
		enum err_kind kind; /* ERR_NONE: well */
		bool waits;
	} cases[] = {
		{"made: its list may show it late", ERR_NONE, true},
		{"the reply was lost", ERR_AMBIGUOUS, true},
		{"refused", ERR_REFUSED, false},
		{"no room there", ERR_NO_CAPACITY, false},
		{"its config is wrong", ERR_CONFIG, false},
		{"nothing was sent", ERR_TRANSIENT, false},
	};
	struct store *s = store_memory();
	struct engine_provider p = of(&ops, "a1");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err;
		assert_int_equal(volume_intent_put(s, &p, "v", NULL), 0);
		check_waits("sent, and its client died", s, &p, "v", true);
		err_set(&err, cases[i].kind, "so");
		volume_intent_answered(s, &p, "v", cases[i].kind ? &err : NULL);
		check_waits(cases[i].name, s, &p, "v", cases[i].waits);
	}
	volume_intent_put(s, &p, "v", NULL);
	volume_intent_drop(s, &p, "v");
	check_waits("removed", s, &p, "v", false);
	store_close(s);
}

static void each_account_has_its_own(void **state)
{
	struct store *s = store_memory();
	struct engine_provider p = of(&ops, "a1"), elsewhere = of(&other_ops, "a1"),
			       another = of(&ops, "a2");

	(void)state;
	volume_intent_put(s, &p, "v", NULL);
	check_waits("itself", s, &p, "v", true);
	check_waits("another name", s, &p, "w", false);
	check_waits("another provider", s, &elsewhere, "v", false);
	check_waits("another account", s, &another, "v", false);
	store_close(s);
}

/* A clock that was set back or forth since neither hides an intent nor makes it last. */
static void clocks_that_were_set(void **state)
{
	static const struct {
		const char *name;
		int64_t ago_ms;
		int64_t least, most;
	} cases[] = {
		{"just now", 0, 59000, 60000},
		{"half a minute ago", 30000, 29000, 30000},
		{"a minute ago", 60000, 0, 0},
		{"in an hour, by this clock", -3600000, 60000, 60000},
	};
	struct store *s = store_memory();
	struct engine_provider p = of(&ops, "a1");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char value[24], key[SHA256_NAME];
		sha256_name("acme\na1\nv", key);
		snprintf(value, sizeof(value), "%lld",
			 (long long)(clock_wall_ms() - cases[i].ago_ms));
		assert_int_equal(fact_put(s, FACT_VOLUME_CREATE, key, NULL, value, NULL), 0);
		int64_t wait_ms = volume_intent_wait_ms(s, &p, "v");
		if (wait_ms < cases[i].least || wait_ms > cases[i].most)
			fail_msg("%s: waits for %lld ms", cases[i].name, (long long)wait_ms);
	}
	/* and then it counts from now on */
	assert_true(volume_intent_wait_ms(s, &p, "v") <= 60000);
	store_close(s);
}

/* Without a row of it on disk nothing is sent. */
static void nothing_is_sent_without_it(void **state)
{
	char *dir = new_folder();
	CLEANUP(free_text) char *path = xasprintf("%s/ledger.db", dir);
	struct engine_provider p = of(&ops, "a1");
	struct store *s = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(store_open(&s, path, NULL), 0);
	store_close(s);
	assert_int_equal(store_open_to_read(&s, path, NULL), 0);
	assert_int_equal(volume_intent_put(s, &p, "v", &err), -1);
	assert_int_not_equal(err.kind, ERR_NONE);
	store_close(s);
	remove_folder(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(how_a_create_ended_decides),
		cmocka_unit_test(each_account_has_its_own),
		cmocka_unit_test(clocks_that_were_set),
		cmocka_unit_test(nothing_is_sent_without_it),
	};

	return cmocka_run_group_tests_name("volume intent", tests, NULL, NULL);
}
