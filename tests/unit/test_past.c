/* test_past.c - what later runs know of an offer: the median of what its pods took to come up, and
 * for how long it is avoided. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/str.h"
#include "engine/past.h"
#include "scratch.h"

#define NOW    INT64_C(1800000000000)
#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)

/* ---- the median ---- */

static void a_pod_taken_over_did_not_boot(void **state)
{
	struct pod_row rows[4] = {0};

	(void)state;
	for (int i = 0; i < 4; i++) {
		COPY_TEXT(rows[i].gpu, "L40S");
		rows[i].create_ms = NOW;
		rows[i].connected_ms = NOW + 30000 + i;
	}
	rows[3].connected_ms = NOW + 100;
	COPY_TEXT(rows[3].handed_from, "r1");
	assert_int_equal(past_boot_ms(rows, 4, "L40S"), 30001);
}

static void median_of_boots(void **state)
{
	static const struct {
		const char *name, *gpu;
		struct {
			const char *gpu;
			int s; /* from the create to the handshake; 0: it never came up */
		} pods[8];
		int64_t want_s;
	} cases[] = {
		{"no pod yet", "L40S", {{0}}, 0},
		{"two are too few", "L40S", {{"L40S", 30}, {"L40S", 40}}, 0},
		{"an odd number", "L40S", {{"L40S", 30}, {"L40S", 600}, {"L40S", 40}}, 40},
		{"an even number",
		 "L40S",
		 {{"L40S", 30}, {"L40S", 600}, {"L40S", 40}, {"L40S", 50}},
		 45},
		{"those that never came up do not count",
		 "L40S",
		 {{"L40S", 0}, {"L40S", 30}, {"L40S", 0}, {"L40S", 40}},
		 0},
		{"this GPU's before others",
		 "L40S",
		 {{"RTX 4090", 5},
		  {"L40S", 30},
		  {"RTX 4090", 5},
		  {"L40S", 40},
		  {"L40S", 50},
		  {"RTX 4090", 5}},
		 40},
		{"others' where there are too few",
		 "L40S",
		 {{"RTX 4090", 5}, {"L40S", 30}, {"RTX 4090", 8}, {"L40S", 40}},
		 19},
		{"as its driver calls it",
		 "RTX 4090",
		 {{"NVIDIA GeForce RTX 4090", 20},
		  {"L40S", 90},
		  {"NVIDIA GeForce RTX 4090", 21},
		  {"RTX 4090", 22}},
		 21},
		{"one that nobody knows",
		 "Abacus 3",
		 {{"Abacus 3", 8}, {"L40S", 90}, {"Abacus 3", 9}, {"Abacus 3", 10}},
		 9},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod_row rows[8] = {0};
		size_t n = 0;
		for (; n < 8 && cases[i].pods[n].gpu; n++) {
			COPY_TEXT(rows[n].gpu, cases[i].pods[n].gpu);
			rows[n].create_ms = NOW;
			rows[n].connected_ms =
				cases[i].pods[n].s ? NOW + cases[i].pods[n].s * 1000 : 0;
		}
		int64_t got = past_boot_ms(rows, n, cases[i].gpu);
		if (got != cases[i].want_s * 1000)
			fail_msg("%s: %lld ms, not %lld s", cases[i].name, (long long)got,
				 (long long)cases[i].want_s);
	}
}

static void only_the_newest_twenty(void **state)
{
	struct pod_row rows[60] = {0};

	(void)state;
	for (int i = 0; i < 60; i++) {
		COPY_TEXT(rows[i].gpu, "L40S");
		rows[i].create_ms = NOW;
		rows[i].connected_ms = NOW + (i < 20 ? 10000 : 90000);
	}
	assert_int_equal(past_boot_ms(rows, 60, "L40S"), 10000);
}

/* ---- with a ledger ---- */

static struct offer offer(const char *id, bool spot)
{
	struct offer o = {
		.provider = "runpod", .gpu = "RTX 4090", .region = "EU-RO-1", .spot = spot};

	COPY_TEXT(o.id, id);
	return o;
}

static struct offer_past look(struct store *s, const struct offer *o, int64_t now)
{
	struct offer_past *list = past_of_offers(s, NULL, o, 1, now), past = list[0];

	free(list);
	return past;
}

static void give_up(struct store *s, const struct offer *o, int64_t rented_ms, int64_t now)
{
	struct err err = {0};

	if (past_bad_pod(s, o, "203.0.113.7", "sshd never spoke", rented_ms, now, &err) < 0)
		fail_msg("%s", err.msg);
}

static void the_ledger_knows_boots(void **state)
{
	struct store *s = store_memory();
	struct offer offers[] = {offer("a", false), offer("b", true), offer("c", false)};

	(void)state;
	COPY_TEXT(offers[1].gpu, "L40S");
	COPY_TEXT(offers[2].provider, "modal");
	for (int i = 0; i < 7; i++) {
		struct pod_row row = {.create_ms = NOW,
				      .connected_ms = NOW + (i < 3 ? 20000 : 60000)};
		snprintf(row.attempt, sizeof(row.attempt), "%016x", i);
		COPY_TEXT(row.provider, "runpod");
		COPY_TEXT(row.gpu, i < 3 ? "NVIDIA GeForce RTX 4090" : "L40S");
		assert_int_equal(store_put_pod(s, &row, NULL), 0);
	}
	struct offer_past *past = past_of_offers(s, NULL, offers, 3, NOW);
	assert_int_equal(past[0].boot_ms, 20000);
	assert_int_equal(past[1].boot_ms, 60000);
	assert_int_equal(past[2].boot_ms, 0);
	free(past);
	assert_null(past_of_offers(s, NULL, NULL, 0, NOW));
	store_close(s);
}

static void avoided_longer_each_time(void **state)
{
	static const int64_t minutes[] = {30, 60, 120, 240, 360, 360};
	struct store *s = store_memory();
	struct offer o = offer("SECURE/EU-RO-1/1/X", false);
	int64_t now = NOW;
	char text[160];

	(void)state;
	assert_int_equal(look(s, &o, now).bad_until_ms, 0);
	for (size_t i = 0; i < ARRAY_LEN(minutes); i++) {
		give_up(s, &o, now - MINUTE, now);
		struct offer_past past = look(s, &o, now + 12 * MINUTE);
		assert_int_equal(past.bad_at_ms, now);
		assert_int_equal(past.bad_until_ms, now + minutes[i] * MINUTE);
		assert_true(offer_avoided(&past, now + minutes[i] * MINUTE - 1));
		assert_false(offer_avoided(&past, now + minutes[i] * MINUTE));
		assert_string_equal(offer_past_show(text, sizeof(text), &past, now + 12 * MINUTE),
				    "gave up 12 min ago: sshd never spoke");
		now += minutes[i] * MINUTE + MINUTE;
	}
	give_up(s, &o, now - MINUTE, now + 25 * HOUR); /* a day later it is the first again */
	assert_int_equal(look(s, &o, now + 25 * HOUR).bad_until_ms, now + 25 * HOUR + 30 * MINUTE);
	assert_string_equal(offer_past_show(text, sizeof(text), &(struct offer_past){0}, now), "");
	store_close(s);
}

static void pods_side_by_side_are_one_lesson(void **state)
{
	struct store *s = store_memory();
	struct offer o = offer("SECURE/EU-RO-1/1/X", false);

	(void)state;
	for (int i = 0; i < 4; i++) /* all rented before the first of them was given up */
		give_up(s, &o, NOW + i * 1000, NOW + MINUTE + i * 1000);
	assert_int_equal(look(s, &o, NOW + 2 * MINUTE).bad_until_ms, NOW + 31 * MINUTE + 3000);
	store_close(s);
}

static void only_that_offer_and_until_one_works(void **state)
{
	struct store *s = store_memory();
	struct offer bad = offer("SECURE/EU-RO-1/1/X", false),
		     community = offer("COMMUNITY//1/X", false),
		     spot = offer("SECURE/EU-RO-1/1/X", true), elsewhere = bad;

	(void)state;
	COPY_TEXT(elsewhere.provider, "modal");
	assert_int_equal(past_clear(s, &bad, NULL), 0); /* nothing is held against it */
	give_up(s, &bad, NOW - MINUTE, NOW);
	assert_true(look(s, &bad, NOW).bad_until_ms > NOW);
	assert_int_equal(look(s, &community, NOW).bad_until_ms, 0);
	assert_int_equal(look(s, &spot, NOW).bad_until_ms, 0);
	assert_int_equal(look(s, &elsewhere, NOW).bad_until_ms, 0);
	assert_int_equal(past_clear(s, &bad, NULL), 0);
	assert_int_equal(look(s, &bad, NOW).bad_until_ms, 0);
	give_up(s, &bad, NOW - MINUTE, NOW + HOUR); /* it begins anew */
	assert_int_equal(look(s, &bad, NOW + HOUR).bad_until_ms, NOW + HOUR + 30 * MINUTE);
	store_close(s);
}

/* Another process reads it from the file; a clock that was wrong, or what is no such fact, keeps
 * nobody away. */
static void it_is_in_the_file(void **state)
{
	char *dir = new_folder();
	char why[200];
	struct offer o = offer("SECURE/EU-RO-1/1/X", false);
	struct store *one = NULL, *two = NULL;
	struct err err = {0};

	(void)state;
	CLEANUP(free_text) char *path = path_join(dir, "ledger.db");
	assert_int_equal(store_open(&one, path, &err), 0);
	assert_int_equal(store_open(&two, path, &err), 0);
	memset(why, 'w', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	memcpy(why, "\033[31m", 5);
	assert_int_equal(past_bad_pod(one, &o, "", why, NOW, NOW, &err), 0);
	struct offer_past past = look(two, &o, NOW + MINUTE);
	assert_int_equal(past.bad_until_ms, NOW + 30 * MINUTE);
	assert_true(starts_with(past.bad_why, "\\x1b[31mw"));
	past = look(two, &o, NOW - MINUTE);
	assert_int_equal(past.bad_until_ms, 0);
	assert_int_equal(past_clear(two, &o, &err), 0);
	assert_int_equal(look(one, &o, NOW + MINUTE).bad_until_ms, 0);
	store_close(one);
	store_close(two);
	remove_folder(dir);
}

/* ---- whether an account's pods may end themselves ---- */

static void refused_switches_are_remembered(void **state)
{
	static const struct {
		const char *name, *lines[3];
		int64_t later_ms;
		const char *want;
	} cases[] = {
		{"nothing was said", {0}, 0, ""},
		{"the key may not look", {"bad http 403 curl"}, HOUR, "http 403 curl"},
		{"nor end it",
		 {"bad ending this pod is refused: http 401 curl"},
		 HOUR,
		 "http 401 curl"},
		{"a day later", {"bad http 403 curl"}, 24 * HOUR, ""},
		{"our clock was set back", {"bad http 403 curl"}, -HOUR, ""},
		{"no fault of the account's", {"bad no answer from the API in two minutes"}, 0, ""},
		{"such a pod tells nothing of rights",
		 {"bad http 403 curl", "bad no answer from the API (curl)"},
		 0,
		 "http 403 curl"},
		{"by now it may", {"bad http 403 curl", "unproven http 200 curl"}, 0, ""},
		{"and not any more",
		 {"unproven http 200 curl", "bad http 403 curl"},
		 0,
		 "http 403 curl"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct store *s = store_memory();
		char words[120];
		for (int k = 0; k < 3 && cases[i].lines[k]; k++)
			past_switch_reported(s, "runpod:one", cases[i].lines[k], NOW);
		past_no_switch(s, "runpod:one", NOW + cases[i].later_ms, words, sizeof(words));
		if (strcmp(words, cases[i].want))
			fail_msg("%s: \"%s\", not \"%s\"", cases[i].name, words, cases[i].want);
		past_no_switch(s, "runpod:two", NOW, words, sizeof(words));
		assert_string_equal(words, "");
		store_close(s);
	}
}

/* A card that cannot run an image is left out for as long as image and set-up are the same, a
 * fortnight at most. */
static void unfit_cards(void **state)
{
	static const struct {
		const char *name;
		struct past_image of;
		const char *provider, *gpu;
		int64_t after_ms;
		bool unfit;
	} cases[] = {
		{"the same", {"torch:1", "setup"}, "runpod", "RTX 5090", 0, true},
		{"as its driver calls it",
		 {"torch:1", "setup"},
		 "runpod",
		 "NVIDIA GeForce RTX 5090",
		 HOUR,
		 true},
		{"the image is the same elsewhere",
		 {"torch:1", "setup"},
		 "modal",
		 "RTX 5090",
		 HOUR,
		 true},
		{"another image", {"torch:2", "setup"}, "runpod", "RTX 5090", HOUR, false},
		{"no image of the user's", {NULL, "setup"}, "runpod", "RTX 5090", HOUR, false},
		{"another set-up", {"torch:1", "setup 2"}, "runpod", "RTX 5090", HOUR, false},
		{"another card", {"torch:1", "setup"}, "runpod", "RTX 4090", HOUR, false},
		{"after thirteen days",
		 {"torch:1", "setup"},
		 "runpod",
		 "RTX 5090",
		 13 * 24 * HOUR,
		 true},
		{"after fifteen",
		 {"torch:1", "setup"},
		 "runpod",
		 "RTX 5090",
		 15 * 24 * HOUR,
		 false},
		{"by a clock that was wrong",
		 {"torch:1", "setup"},
		 "runpod",
		 "RTX 5090",
		 -HOUR,
		 false},
	};
	const struct past_image of = {"torch:1", "setup"}, own = {NULL, NULL};
	struct store *s = store_memory();
	char why[200] = "";
	int64_t since;

	(void)state;
	past_card_unfit(s, &of, "runpod", "RTX 5090", "no kernels\033[1m", NOW);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (past_card_is_unfit(s, &cases[i].of, cases[i].provider, cases[i].gpu,
				       NOW + cases[i].after_ms, why, sizeof(why),
				       &since) != cases[i].unfit)
			fail_msg("%s: %s", cases[i].name,
				 cases[i].unfit ? "not known" : "left out");
	assert_string_equal(why, "no kernels\\x1b[1m");
	/* each provider has an image of its own */
	past_card_unfit(s, &own, "runpod", "RTX 5090", "no kernels", NOW);
	assert_true(
		past_card_is_unfit(s, &own, "runpod", "RTX 5090", NOW, why, sizeof(why), &since));
	assert_int_equal(since, NOW);
	assert_false(
		past_card_is_unfit(s, &own, "modal", "RTX 5090", NOW, why, sizeof(why), &since));
	struct offer offers[] = {{.provider = "runpod", .gpu = "RTX 5090"},
				 {.provider = "runpod", .gpu = "none"}};
	struct offer_past *past = past_of_offers(s, &own, offers, 2, NOW);
	assert_string_equal(past[0].unfit, "no kernels");
	assert_string_equal(past[1].unfit, "");
	free(past);
	/* a job that computes in BF16: what the ledger knows does not matter */
	struct offer cards[] = {{.provider = "runpod", .gpu = "Tesla V100-SXM2-16GB"},
				{.provider = "modal", .gpu = "T4"},
				{.provider = "modal", .gpu = "L4"},
				{.provider = "runpod", .gpu = "Foo 9000"}};
	for (int bf16 = 0; bf16 < 2; bf16++) {
		const struct past_image needs = {.bf16 = bf16};
		past = past_of_offers(s, &needs, cards, ARRAY_LEN(cards), NOW);
		for (size_t i = 0; i < ARRAY_LEN(cards); i++)
			assert_string_equal(past[i].unfit, bf16 && i < 2 ? PAST_NO_BF16 : "");
		free(past);
	}
	assert_true(past_card_forget(s, &of, "runpod", "RTX 5090"));
	assert_false(past_card_forget(s, &of, "runpod", "RTX 5090"));
	assert_false(
		past_card_is_unfit(s, &of, "runpod", "RTX 5090", NOW, why, sizeof(why), &since));
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(median_of_boots),
		cmocka_unit_test(a_pod_taken_over_did_not_boot),
		cmocka_unit_test(only_the_newest_twenty),
		cmocka_unit_test(the_ledger_knows_boots),
		cmocka_unit_test(avoided_longer_each_time),
		cmocka_unit_test(pods_side_by_side_are_one_lesson),
		cmocka_unit_test(only_that_offer_and_until_one_works),
		cmocka_unit_test(it_is_in_the_file),
		cmocka_unit_test(refused_switches_are_remembered),
		cmocka_unit_test(unfit_cards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
