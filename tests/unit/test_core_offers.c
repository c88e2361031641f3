/* test_core_offers.c - which offer is rented: the order, hosts and cards that are avoided,
 * the price of what came. */
#include "core_bench.h"

static void test_order_of_offers(void **state)
{
	/* the wish counts before the price, the price before the region */
	struct offer offers[] = {offer(1, 100000), offer(0, 900000), offer(0, 800000),
				 offer(0, 800000)};
	static const int want[] = {3, 2, 1, 0};
	struct bench b;

	(void)state;
	COPY_TEXT(offers[2].region, "west");
	COPY_TEXT(offers[3].region, "east");
	for (int i = 0; i < 4; i++)
		snprintf(offers[i].id, sizeof(offers[i].id), "%d", i);
	set_up(&b, 4);
	start_with(&b, offers, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(atoi(pod(&b, i)->rental.offer.id), want[i]);
		tell_err(&b, EV_RENT_FAILED, i, ERR_NO_CAPACITY);
	}
	tear_down(&b);
}

/* A plan may choose a pod on demand of a GPU though its spot pods cost less an hour. */
static void test_on_demand_before_spot(void **state)
{
	static const int first[] = {1, 0}; /* of: any; on demand first */

	(void)state;
	for (int on_demand = 0; on_demand < 2; on_demand++) {
		struct offer offers[] = {offer(0, 900000), offer(0, 800000), offer(1, 100000)};
		struct bench b;
		offers[1].spot = offers[2].spot = true;
		for (int i = 0; i < 3; i++)
			snprintf(offers[i].id, sizeof(offers[i].id), "%d", i);
		set_up(&b, 4);
		b.conf.plan.on_demand = on_demand;
		start_with(&b, offers, 3);
		assert_int_equal(atoi(pod(&b, 0)->rental.offer.id), first[on_demand]);
		tell_err(&b, EV_RENT_FAILED, 0, ERR_NO_CAPACITY);
		assert_int_equal(atoi(pod(&b, 1)->rental.offer.id), 1 - first[on_demand]);
		tell_err(&b, EV_RENT_FAILED, 1, ERR_NO_CAPACITY);
		assert_int_equal(atoi(pod(&b, 2)->rental.offer.id), 2);
		tear_down(&b);
	}
}

static const struct {
	const char *name;
	int64_t price;
	bool kept;
} prices[] = {
	{"as offered", 1000000, true},
	{"at the cap", 1200000, true},
	{"above the cap", 1200001, false},
	{"the vendor does not say", 0, true},
	{"less: what it bills beside is left out", 900000, true},
};

static void test_price_of_what_came(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(prices); i++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.max_price_microusd_h = 1200000;
		start_simply(&b);
		struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
		v.price_microusd_h = prices[i].price;
		rented_as(&b, 0, v);
		check_phase(&b, prices[i].name, 0, prices[i].kept ? POD_CONNECTING : POD_RELEASING);
		check_field(prices[i].name, "releases", did(&b, ACT_RELEASE, 0), !prices[i].kept);
		check_field(prices[i].name, "creates", did(&b, ACT_RENT, -1), 0);
		check_field(prices[i].name, "price", pod(&b, 0)->rental.price_microusd_h,
			    MAX(prices[i].price, INT64_C(1000000)));
		tear_down(&b);
	}
}

/* A spot pod's create says nothing of its price: the first listing does. */
static void test_price_of_a_listing(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(prices); i++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.max_price_microusd_h = 1200000;
		start_simply(&b);
		rented(&b, 0);
		struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
		v.price_microusd_h = prices[i].price;
		b.now += SECOND;
		tell(&b,
		     (struct event){
			     .type = EV_LISTED, .views = &v, .count = 1, .requested_at = b.now});
		check_phase(&b, prices[i].name, 0, prices[i].kept ? POD_CONNECTING : POD_RELEASING);
		check_field(prices[i].name, "releases", did(&b, ACT_RELEASE, 0), !prices[i].kept);
		check_field(prices[i].name, "price", pod(&b, 0)->rental.price_microusd_h,
			    MAX(prices[i].price, INT64_C(1000000)));
		tear_down(&b);
	}
}

static const char *note_of(const struct bench *b, const char *words)
{
	for (size_t i = 0; i < b->out.count; i++)
		if (b->out.list[i].type == ACT_NOTE && strstr(b->out.list[i].text, words))
			return b->out.list[i].text;
	return NULL;
}

static void test_avoided_offers_go_last(void **state)
{
	static const struct {
		const char *name;
		int64_t bad_for_ms[2]; /* from now on */
		bool dear;             /* the second one is above the price cap */
		const char *takes, *says;
	} cases[] = {
		{"neither is bad", {0, 0}, false, "offer-0", NULL},
		{"the first is",
		 {MINUTE, 0},
		 false,
		 "offer-1",
		 "alpha GPU 0: gave up 12 min ago: sshd never spoke; others are tried before it"},
		{"it was", {-1, 0}, false, "offer-0", NULL},
		{"both are",
		 {MINUTE, MINUTE},
		 false,
		 "offer-0",
		 "no other offer is left, so it is retried"},
		{"nothing else can be paid",
		 {MINUTE, 0},
		 true,
		 "offer-0",
		 "no other offer is left, so it is retried"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct offer offers[] = {offer(0, 1000000),
					 offer(1, cases[i].dear ? 9000000 : 1000000)};
		struct offer_past past[2] = {0};
		struct bench b;
		set_up(&b, 4);
		b.conf.max_price_microusd_h = 2000000;
		for (int k = 0; k < 2; k++) {
			if (!cases[i].bad_for_ms[k])
				continue;
			past[k].bad_at_ms = WALL_MS + b.now - 12 * MINUTE;
			past[k].bad_until_ms = WALL_MS + b.now + cases[i].bad_for_ms[k];
			COPY_TEXT(past[k].bad_why, "sshd never spoke");
		}
		start(&b);
		tell(&b,
		     (struct event){.type = EV_OFFERS, .offers = offers, .past = past, .count = 2});
		check_field(cases[i].name, "creates", did(&b, ACT_RENT, -1), 1);
		if (strcmp(pod(&b, 0)->rental.offer.id, cases[i].takes) != 0)
			fail_msg("%s: took %s", cases[i].name, pod(&b, 0)->rental.offer.id);
		if (cases[i].says ? !note_of(&b, cases[i].says) : did(&b, ACT_NOTE, -1) > 0)
			fail_msg("%s: %s", cases[i].name,
				 did(&b, ACT_NOTE, -1) ? first(&b, ACT_NOTE)->text
						       : "nothing is said");
		tear_down(&b);
	}
}

/* Another vendor is asked before an avoided offer is taken; and that one is taken before the run
 * waits in vain. */
static void test_avoided_offers_go_behind_other_vendors(void **state)
{
	struct offer o = offer(0, 1000000), other = offer(1, 1000000);
	struct offer_past past = {0};
	struct bench b;

	(void)state;
	for (size_t others = 0; others < 2; others++) {
		set_up(&b, 4);
		b.conf.provider_count = 2;
		past.bad_until_ms = WALL_MS + b.now + MINUTE;
		start(&b);
		tell(&b,
		     (struct event){.type = EV_OFFERS, .offers = &o, .past = &past, .count = 1});
		assert_int_equal(did(&b, ACT_RENT, -1), 0);
		assert_int_equal(first(&b, ACT_OFFERS)->provider, 1);
		tell(&b,
		     (struct event){
			     .type = EV_OFFERS, .provider = 1, .offers = &other, .count = others});
		assert_int_equal(did(&b, ACT_RENT, -1), 1);
		assert_int_equal(pod(&b, 0)->rental.provider, others);
		tear_down(&b);
	}
}

/* What is held against a host within the run itself: left alone for a moment, then last. */
static void test_bad_hosts_rest_and_go_last(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.wait_ms = HOUR;
	start_with(&b, offers, 2);
	rented(&b, 0);
	list_in(&b, POD_STATE_FAILED, 0, -1);
	assert_int_equal(did(&b, ACT_BAD_HOST, 0), 1);
	assert_string_equal(first(&b, ACT_BAD_HOST)->text, "it failed to start");
	check_field("while its log is read", "pods", core_pod_count(b.core), 1);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ENDED});
	assert_string_equal(pod(&b, 1)->rental.offer.id, "offer-1");
	b.now += BAD_HOST_REST_MS + 1;
	tell_err(&b, EV_RENT_FAILED, 1, ERR_NO_CAPACITY);
	assert_string_equal(pod(&b, 2)->rental.offer.id, "offer-0"); /* nothing else is to be had */
	b.now += MINUTE;
	tell_err(&b, EV_RENT_FAILED, 2, ERR_NO_CAPACITY);
	assert_string_equal(pod(&b, 3)->rental.offer.id, "offer-1");
	tear_down(&b);
}

/* A worker that blames its card: the next pod has another one, and none of that card is rented
 * again, also by a new list. */
static void test_unfit_card(void **state)
{
	static const struct {
		const char *name;
		int number, gpu; /* of the second offer */
		bool goes_on;
	} cases[] = {
		{"another card", CARD_UNFIT, 1, true},
		{"the same card again", CARD_UNFIT, 0, false},
		{"no card is blamed", CARD_FITS, 1, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		struct err err = {0};
		struct offer offers[] = {offer(0, 1000000), offer(1, 2000000)};
		snprintf(offers[1].gpu, sizeof(offers[1].gpu), "GPU %d", cases[i].gpu);
		err_set(&err, ERR_JOB, "no kernels");
		set_up(&b, 8);
		start_with(&b, offers, 2);
		bring_up(&b, 0);
		b.out.count = 0;
		tell(&b, (struct event){.type = EV_WORKERS_FAILED,
					.pod = 0,
					.number = cases[i].number,
					.err = &err});
		check_field(cases[i].name, "releases", did(&b, ACT_RELEASE, 0), 1);
		/* its agent ends with a word of its own */
		tell(&b, (struct event){.type = EV_WORKERS_FAILED, .pod = 0, .err = &err});
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		wait_ms(&b, SECOND);
		check_field(cases[i].name, "pods", core_pod_count(b.core), 1 + cases[i].goes_on);
		if (cases[i].goes_on) {
			assert_string_equal(pod(&b, 1)->rental.offer.gpu, "GPU 1");
		} else {
			end_well(&b);
			check_field(cases[i].name, "exit", exit_status(&b), 1);
		}
		tear_down(&b);
	}
}

/* What the ledger knows of a card keeps it from being rented at all, be it the only one. */
static void test_card_known_as_unfit(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 2000000)};
	struct offer_past past[2] = {{.unfit = "no kernels"}, {0}};

	(void)state;
	for (int both = 0; both < 2; both++) {
		struct bench b;
		set_up(&b, 8);
		start(&b);
		if (both)
			COPY_TEXT(past[1].unfit, "no kernels either");
		tell(&b,
		     (struct event){.type = EV_OFFERS, .offers = offers, .past = past, .count = 2});
		wait_ms(&b, SECOND);
		check_field("unfit", "pods", core_pod_count(b.core), !both);
		if (!both)
			assert_string_equal(pod(&b, 0)->rental.offer.gpu, "GPU 1");
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_of_offers),
		cmocka_unit_test(test_on_demand_before_spot),
		cmocka_unit_test(test_price_of_what_came),
		cmocka_unit_test(test_price_of_a_listing),
		cmocka_unit_test(test_avoided_offers_go_last),
		cmocka_unit_test(test_avoided_offers_go_behind_other_vendors),
		cmocka_unit_test(test_bad_hosts_rest_and_go_last),
		cmocka_unit_test(test_unfit_card),
		cmocka_unit_test(test_card_known_as_unfit),
	};

	return cmocka_run_group_tests_name("core offers", tests, NULL, NULL);
}
