/* test_core_volume.c - the volume: filled first, created only beside an offer. */
#include "core_bench.h"

/* Code that goes to a volume first takes as long as it takes: nobody is late, and the wait for
 * capacity has not begun. */
static void test_a_volume_that_is_filled(void **state)
{
	struct volume v = {.id = "v1"};
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.provider_count = 2;
	b.conf.want_volume = true;
	b.conf.wait_ms = MINUTE;
	start(&b);
	check_field("first", "questions", did(&b, ACT_VOLUME, -1), 1);
	tell(&b, (struct event){.type = EV_VOLUME_FILLS});
	for (int k = 0; k < 20; k++) {
		wait_ms(&b, MINUTE);
		check_field("filled", "other questions",
			    did(&b, ACT_VOLUME, -1) + did(&b, ACT_OFFERS, -1) +
				    did(&b, ACT_NOTE, -1),
			    0);
	}
	tell(&b, (struct event){.type = EV_VOLUME, .volume = &v});
	check_field("full", "questions", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_field("full", "creates", did(&b, ACT_RENT, -1), 1);
	tear_down(&b);
}

/* Nobody makes it while the run waits. */
static void test_volume_is_missing(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.want_volume = true;
	start(&b);
	tell_err(&b, EV_VOLUME, 0, ERR_NOT_FOUND);
	assert_true(has_ended(&b));
	assert_int_equal(exit_status(&b), 2);
	tear_down(&b);
}

/* A volume bills until somebody removes it: offers first, and none where nothing could be rented.
 */
static void test_volume_is_made_beside_an_offer(void **state)
{
	struct offer dear = offer(0, 9000000),
		     o[3] = {offer(0, 1000000), offer(1, 900000), offer(0, 9000000)};
	struct volume v = {.id = "v1", .region = "west"};
	struct err sold_out = {.kind = ERR_NO_CAPACITY, .msg = "none is free"};
	const char *regions[4];
	struct bench b;

	(void)state;
	COPY_TEXT(o[0].region, "west");
	COPY_TEXT(o[1].region, "east");
	COPY_TEXT(o[2].region, "north");
	set_up(&b, 4);
	b.conf.want_volume = b.conf.make_volume = true;
	b.conf.max_price_microusd_h = 2000000;
	b.conf.wait_ms = 10 * MINUTE;
	start(&b);
	check_field("at first", "it is made", first(&b, ACT_VOLUME)->flag, false);
	tell_err(&b, EV_VOLUME, 0, ERR_NOT_FOUND);
	check_field("missing", "offers are asked for", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .err = &sold_out});
	check_field("sold out", "volumes", did(&b, ACT_VOLUME, -1), 0);
	wait_ms(&b, MINUTE);
	check_field("later", "offers are asked for", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &dear, .count = 1});
	check_field("too dear", "volumes", did(&b, ACT_VOLUME, -1), 0);
	wait_ms(&b, 2 * MINUTE);
	check_field("still", "offers are asked for", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = o, .count = 3});
	check_field("free", "it is made", first(&b, ACT_VOLUME)->flag, true);
	check_field("free", "creates of pods", did(&b, ACT_RENT, -1), 0);
	check_field("free", "regions", core_offer_regions(b.core, 0, regions, ARRAY_LEN(regions)),
		    2);
	assert_string_equal(regions[0], "west");
	assert_string_equal(regions[1], "east");
	wait_ms(&b, 1000);
	check_field("meanwhile", "creates and volumes",
		    did(&b, ACT_RENT, -1) + did(&b, ACT_VOLUME, -1), 0);
	tell(&b, (struct event){.type = EV_VOLUME, .volume = &v});
	check_field("made", "creates before it is known what is there", did(&b, ACT_RENT, -1), 0);
	check_field("made", "offers are asked for", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = o, .count = 1});
	check_field("made", "creates", did(&b, ACT_RENT, -1), 1);
	assert_string_equal(pod(&b, 0)->rental.volume.id, "v1");
	tear_down(&b);
}

/* Its create fails: it is looked for before another one is sent; meanwhile the next provider has
 * its turn. */
static void test_volume_cannot_be_made(void **state)
{
	struct offer o = offer(0, 1000000);
	struct err lost = {.kind = ERR_AMBIGUOUS, .msg = "the answer was lost"};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.provider_count = 2;
	b.conf.want_volume = b.conf.make_volume = true;
	b.conf.wait_ms = 10 * MINUTE;
	start(&b);
	tell_err(&b, EV_VOLUME, 0, ERR_NOT_FOUND);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_field("free", "it is made", first(&b, ACT_VOLUME)->flag, true);
	tell(&b, (struct event){.type = EV_VOLUME, .err = &lost});
	check_field("lost", "who is asked", first(&b, ACT_VOLUME)->provider, 1);
	check_field("lost", "it is made there", first(&b, ACT_VOLUME)->flag, false);
	tell(&b, (struct event){.type = EV_VOLUME, .provider = 1, .err = &lost});
	wait_ms(&b, MINUTE);
	check_field("again", "who is asked", first(&b, ACT_VOLUME)->provider, 0);
	check_field("again", "it is made", first(&b, ACT_VOLUME)->flag, false);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_volume_that_is_filled),
		cmocka_unit_test(test_volume_is_missing),
		cmocka_unit_test(test_volume_is_made_beside_an_offer),
		cmocka_unit_test(test_volume_cannot_be_made),
	};

	return cmocka_run_group_tests_name("core volume", tests, NULL, NULL);
}
