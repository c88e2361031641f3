/* test_core_capacity.c - no capacity: queued pods, providers that are sold out, answer late or
 * never, and how long a run waits. */
#include "core_bench.h"

static void queued(struct bench *b, int i)
{
	rented_as(b, i, view_of(b, i, POD_STATE_QUEUED));
}

/* Released, and listed as what it was: never placed. */
static void ended_unplaced(struct bench *b, int i)
{
	struct pod_view v = view_of(b, i, POD_STATE_GONE);

	v.end = POD_END_QUEUED;
	check_phase(b, "let go", i, POD_RELEASING);
	tell(b, (struct event){.type = EV_RELEASED, .pod = i});
	for (int look = 0; look < 4 && pod(b, i)->phase != POD_GONE; look++) {
		b->now += 5 * SECOND;
		tell(b,
		     (struct event){
			     .type = EV_LISTED, .views = &v, .count = 1, .requested_at = b->now});
	}
	check_phase(b, "in the end", i, POD_GONE);
}

static void test_queued_goes_to_the_next_offer(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.wait_ms = 10 * MINUTE;
	start_with(&b, offers, 2);
	queued(&b, 0);
	wait_ms(&b, 59 * SECOND);
	check_phase(&b, "within its time", 0, POD_BOOTING);
	wait_ms(&b, 2 * SECOND);
	check_phase(&b, "after it", 0, POD_RELEASING);
	assert_int_equal(did(&b, ACT_BAD_HOST, -1), 0);
	assert_int_equal(did(&b, ACT_LOG, -1), 0);
	check_field("the next offer", "creates", did(&b, ACT_RENT, 1), 1);
	assert_string_equal(pod(&b, 1)->rental.offer.id, "offer-1");
	ended_unplaced(&b, 0);
	assert_int_equal(core_billed_ms(pod(&b, 0), b.now), 0);
	assert_int_equal(core_cost(pod(&b, 0), b.now), 0);
	bring_up(&b, 1);
	check_field("the one that came up", "pod", first(&b, ACT_SEND)->pod, 1);
	tear_down(&b);
}

/* Nothing else is to be had: its place in the queue is kept, but not until its first lease would be
 * over when it is placed. */
static void test_queued_without_another_offer(void **state)
{
	struct bench b;
	int pods = 0;

	(void)state;
	set_up(&b, 4);
	b.conf.wait_ms = 10 * MINUTE;
	start_simply(&b);
	int64_t began_at = b.now;
	queued(&b, 0);
	wait_ms(&b, 2 * MINUTE);
	check_phase(&b, "nothing else", 0, POD_BOOTING);
	for (int k = 0; k < 999 && !has_ended(&b); k++) {
		int last = core_pod_count(b.core) - 1;
		struct offer o = offer(0, 1000000);
		if (did(&b, ACT_OFFERS, -1))
			tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		else if (pod(&b, last)->phase == POD_RENTING)
			queued(&b, last);
		else if (pod(&b, last)->phase == POD_RELEASING)
			ended_unplaced(&b, last);
		else if (did(&b, ACT_LIST, -1) && pod(&b, last)->phase == POD_BOOTING)
			list_in(&b, POD_STATE_QUEUED, last, -1);
		else if (did(&b, ACT_LIST, -1))
			list_nothing(&b);
		else
			wait_ms(&b, core_wake_at(b.core) - b.now);
		pods = core_pod_count(b.core);
	}
	assert_true(has_ended(&b));
	assert_in_range(b.now - began_at, 10 * MINUTE, 12 * MINUTE);
	assert_int_equal(exit_status(&b), 4);
	assert_in_range(pods, 2, 6);
	assert_int_equal(summary(&b).billed_ms, 0);
	tear_down(&b);
}

/* From then on it boots, and has its time for that; what it costs counts from its create. */
static void test_queued_and_placed(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.wait_ms = 10 * MINUTE;
	start_simply(&b);
	queued(&b, 0);
	wait_ms(&b, 100 * SECOND);
	list_in(&b, POD_STATE_CREATING, 0, -1);
	wait_ms(&b, 4 * MINUTE);
	check_phase(&b, "it boots", 0, POD_BOOTING);
	wait_ms(&b, 62 * SECOND);
	check_phase(&b, "stuck", 0, POD_RELEASING);
	assert_int_equal(did(&b, ACT_BAD_HOST, 0), 1);
	assert_true(core_billed_ms(pod(&b, 0), b.now) >= 6 * MINUTE);
	tear_down(&b);
}

/* Limits that are used up for an hour keep back the offers, too, which are asked for anew. */
static void test_offers_do_not_come(void **state)
{
	struct err err = {0};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.wait_ms = MINUTE;
	start_simply(&b);
	err_set(&err, ERR_RATE_LIMITED, "no room");
	err.retry_after_ms = 30 * MINUTE;
	tell(&b, (struct event){.type = EV_RENT_FAILED, .pod = 0, .err = &err});
	wait_ms(&b, 59 * SECOND);
	assert_false(core_is_stopping(b.core));
	wait_ms(&b, 2 * SECOND);
	assert_true(core_is_stopping(b.core));
	assert_int_equal(exit_status(&b), 6);
	tear_down(&b);
}

static void test_sold_out_rests_longer(void **state)
{
	static const int64_t rests_s[] = {5, 10, 20, 40, 60, 60};
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.retry_until_up = true;
	start_simply(&b);
	for (size_t i = 0; i < ARRAY_LEN(rests_s); i++) {
		tell_err(&b, EV_RENT_FAILED, (int)i, ERR_NO_CAPACITY);
		check_field("rest", "s", (b.core->candidates[0].rest_until - b.now) / 1000,
			    rests_s[i]);
		b.now += rests_s[i] * 1000 - 1;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_field("while it rests", "creates", did(&b, ACT_RENT, -1), 0);
		b.now += 1;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_field("after its rest", "creates", did(&b, ACT_RENT, -1), 1);
	}
	tear_down(&b);
}

/* When no offer fits: what the run waits for, and how it ends if nothing changes. */
static const struct {
	const char *name;
	size_t offers;
	int64_t price, max_price, max_cost;
	enum err_kind failed; /* the offers could not be read */
	int64_t waits_s;
	int status;
	int64_t floor; /* the least that anything wanted costs, as the vendor says */
} unfit[] = {
	{"nobody offers it", 0, 0, 0, 0, ERR_NONE, 60, 4},
	{"all above caps.max_price_per_hour, as what is sold out is", 1, 1000000, 999999, 0,
	 ERR_NONE, 0, 5, 1000000},
	{"sold out, and above it as well", 0, 0, 999999, 0, ERR_NONE, 0, 5, 1000000},
	{"all above it but what is sold out", 1, 1000000, 999999, 0, ERR_NONE, 60, 4, 900000},
	{"all above caps.max_price_per_hour", 1, 1000000, 999999, 0, ERR_NONE, 60, 4},
	{"caps.max_cost has no room for 10 s", 1, 3600000, 0, 14000, ERR_NONE, 0, 5},
	{"credentials refused", 0, 0, 0, 0, ERR_CREDENTIALS, 0, 3},
	{"the vendor cannot be asked", 0, 0, 0, 0, ERR_NETWORK, 60, 6},
	{"a wrong key in the config", 0, 0, 0, 0, ERR_CONFIG, 0, 2},
};

static void test_no_offer_fits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(unfit); i++) {
		const char *name = unfit[i].name;
		struct offer o = offer(0, unfit[i].price);
		struct bench b;
		set_up(&b, 4);
		b.conf.max_price_microusd_h = unfit[i].max_price;
		b.conf.max_cost_microusd = unfit[i].max_cost;
		start(&b);
		int64_t began_at = b.now;
		for (int round = 0; round < 30 && !has_ended(&b); round++) {
			if (!round || did(&b, ACT_OFFERS, -1)) {
				if (unfit[i].failed)
					tell_err(&b, EV_OFFERS, 0, unfit[i].failed);
				else
					tell(&b,
					     (struct event){.type = EV_OFFERS,
							    .offers = &o,
							    .count = unfit[i].offers,
							    .floor_microusd_h = unfit[i].floor});
			}
			check_field(name, "creates", did(&b, ACT_RENT, -1), 0);
			if (!has_ended(&b))
				wait_ms(&b, core_wake_at(b.core) - b.now);
		}
		check_field(name, "ended", has_ended(&b), true);
		check_field(name, "waited", (b.now - began_at) / 1000, unfit[i].waits_s);
		check_field(name, "exit", exit_status(&b), unfit[i].status);
		tear_down(&b);
	}
}

/* The one names what it never has; that is the run's end only where nobody else could have it. */
static void test_one_vendor_of_two_has_never(void **state)
{
	(void)state;
	for (int both = 0; both < 2; both++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.provider_count = 2;
		start(&b);
		int64_t began_at = b.now;
		tell_err(&b, EV_OFFERS, 0, ERR_CONFIG);
		for (int round = 0; round < 30 && !has_ended(&b); round++) {
			if (did(&b, ACT_OFFERS, -1) && both)
				tell(&b,
				     (struct event){.type = EV_OFFERS,
						    .provider = 1,
						    .err = &(struct err){.kind = ERR_CONFIG,
									 .msg = "no such GPU"}});
			else if (did(&b, ACT_OFFERS, -1))
				tell(&b,
				     (struct event){.type = EV_OFFERS, .provider = 1, .count = 0});
			if (!has_ended(&b))
				wait_ms(&b, core_wake_at(b.core) - b.now);
		}
		check_field("two vendors", "exit", exit_status(&b), both ? 2 : 4);
		check_field("two vendors", "waited", (b.now - began_at) / 1000, both ? 0 : 60);
		tear_down(&b);
	}
}

static int first_renting(const struct bench *b)
{
	for (int i = 0; i < core_pod_count(b->core); i++)
		if (pod(b, i)->phase == POD_RENTING)
			return i;
	return -1;
}

/* Whoever is asked for offers lists the same one, of which there is none left; whoever is asked for
 * a volume has none. */
static int sell_out(struct bench *b, const struct offer *o, int creates, bool lists)
{
	for (bool more = true; more;) {
		int i = first_renting(b);
		if (lists && did(b, ACT_OFFERS, -1))
			tell(b, (struct event){.type = EV_OFFERS, .offers = o, .count = 1});
		else if (did(b, ACT_VOLUME, -1))
			tell(b, (struct event){.type = EV_VOLUME,
					       .provider = 1,
					       .err = &(struct err){.kind = ERR_TRANSIENT,
								    .msg = "no answer"}});
		else if (i >= 0)
			tell_err(b, EV_RENT_FAILED, i, ERR_NO_CAPACITY), creates++;
		else
			more = false;
	}
	return creates;
}

/* It may take an hour: who was sold out is asked again meanwhile, and the wait for capacity begins
 * when it is over. */
static void test_sold_out_beside_a_volume_that_is_filled(void **state)
{
	struct volume v = {.id = "v1"};
	struct offer o = offer(0, 1000000);

	(void)state;
	for (int lists = 0; lists < 2; lists++) { /* the second time it is asked, too */
		struct bench b;
		int creates = 0;
		set_up(&b, 4);
		b.conf.provider_count = 2;
		b.conf.want_volume = true;
		b.conf.wait_ms = 10 * MINUTE;
		start(&b);
		tell(&b, (struct event){.type = EV_VOLUME, .volume = &v});
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		while (did(&b, ACT_RENT, -1))
			tell_err(&b, EV_RENT_FAILED, creates++, ERR_NO_CAPACITY);
		check_field("sold out", "the next vendor's volume", did(&b, ACT_VOLUME, -1), 1);
		tell(&b, (struct event){.type = EV_VOLUME_FILLS, .provider = 1});
		for (int64_t began_at = b.now;
		     !core_is_stopping(b.core) && b.now < began_at + 60 * MINUTE;) {
			creates = sell_out(&b, &o, creates, lists);
			check_field("filled", "time passes", core_wake_at(b.core) > b.now, true);
			wait_ms(&b, MIN(core_wake_at(b.core) - b.now, MINUTE));
		}
		check_field("filled", "creates", creates >= 50, true);
		check_field("filled", "stopping", core_is_stopping(b.core), false);
		int64_t over_at = b.now;
		creates = sell_out(&b, &o, creates, lists);
		tell(&b, (struct event){
				 .type = EV_VOLUME,
				 .provider = 1,
				 .err = &(struct err){.kind = ERR_TRANSIENT, .msg = "no answer"}});
		while (!core_is_stopping(b.core) && b.now < over_at + 60 * MINUTE) {
			creates = sell_out(&b, &o, creates, lists);
			if (!core_is_stopping(b.core))
				wait_ms(&b, MIN(core_wake_at(b.core) - b.now, MINUTE));
		}
		check_field("over", "waited", (b.now - over_at) / 1000, 600);
		check_field("over", "exit", exit_status(&b), 6);
		tear_down(&b);
	}
}

/* That no second pod was to be had while the first one worked is no reason to end when that one is
 * lost. */
static void test_sold_out_while_a_pod_works(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;
	int creates = 2;

	(void)state;
	set_up(&b, 400);
	b.conf.pods = 2;
	start_with(&b, &o, 1);
	check_field("at first", "creates", did(&b, ACT_RENT, -1), 2);
	bring_up(&b, 0);
	tell_err(&b, EV_RENT_FAILED, 1, ERR_NO_CAPACITY);
	for (int64_t until = b.now + 5 * MINUTE; b.now < until; wait_ms(&b, 5 * SECOND)) {
		creates = sell_out(&b, &o, creates, true);
		list_running(&b, 0);
		creates = sell_out(&b, &o, creates, true);
	}
	check_field("meanwhile", "creates", creates >= 5, true);
	check_phase(&b, "meanwhile", 0, POD_WORKING);
	list_in(&b, POD_STATE_GONE, 0, -1);
	check_phase(&b, "lost", 0, POD_GONE);
	check_field("lost", "stopping", core_is_stopping(b.core), false);
	int64_t lost_at = b.now, before = creates;
	while (!core_is_stopping(b.core) && b.now < lost_at + 10 * MINUTE) {
		creates = sell_out(&b, &o, creates, true);
		if (!core_is_stopping(b.core))
			wait_ms(&b, MIN(core_wake_at(b.core) - b.now, MINUTE));
	}
	check_field("lost", "creates", creates > before, true);
	/* the first refusal came after 15 s */
	check_field("lost", "waited s", (b.now - lost_at) / 1000, 75);
	check_field("lost", "exit", exit_status(&b), 4);
	tear_down(&b);
}

/* It may be dearer, and then nobody likes to learn it from the bill. */
static void test_next_vendor_is_told(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.provider_count = 2;
	COPY_TEXT(b.conf.providers[0].name, "one");
	COPY_TEXT(b.conf.providers[1].name, "two");
	start(&b);
	tell(&b, (struct event){
			 .type = EV_OFFERS,
			 .err = &(struct err){.kind = ERR_NO_CAPACITY, .msg = "nothing is free"}});
	tell(&b, (struct event){.type = EV_OFFERS, .provider = 1, .offers = &o, .count = 1});
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	assert_string_equal(first(&b, ACT_NOTE)->text, "trying two; one: nothing is free");
	tear_down(&b);
}

/* The first question of all may wait for an hour, where limits are used up: the next vendor is
 * asked, and its own answer is welcome. */
static void test_offers_never_come(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	for (int vendors = 1; vendors <= 2; vendors++) {
		set_up(&b, 4);
		b.conf.provider_count = vendors;
		start(&b);
		check_field("first", "questions", did(&b, ACT_OFFERS, -1), 1);
		wait_ms(&b, QUERY_OVERDUE_MS + SECOND);
		check_field("in vain", "questions", did(&b, ACT_OFFERS, -1), vendors - 1);
		assert_string_equal(first(&b, ACT_NOTE)->text,
				    "alpha has not answered for 30 s what it offers (its rate "
				    "limit may be used up)");
		if (vendors == 2) {
			check_field("the next", "whom", first(&b, ACT_OFFERS)->provider, 1);
			COPY_TEXT(o.provider, "beta");
			tell(&b,
			     (struct event){
				     .type = EV_OFFERS, .provider = 1, .offers = &o, .count = 1});
			check_field("the next", "creates", did(&b, ACT_RENT, -1), 1);
		} else {
			wait_ms(&b, b.conf.wait_ms);
			check_field("alone", "stopping", core_is_stopping(b.core), true);
			check_field("alone", "exit", exit_status(&b), 6);
		}
		tear_down(&b);
	}
}

/* Whether the first vendor answers or not: the next one that is sold out is tried again, until the
 * run has waited enough. */
static void test_sold_out_beside_a_late_vendor(void **state)
{
	struct offer o = offer(0, 1000000);

	(void)state;
	for (int for_ever = 0; for_ever < 2; for_ever++) {
		struct bench b;
		int creates = 0, next = 0;
		set_up(&b, 4);
		b.conf.provider_count = 2;
		b.conf.wait_ms = 10 * MINUTE;
		b.conf.retry_until_up = for_ever;
		start(&b);
		int64_t began_at = b.now;
		wait_ms(&b, QUERY_OVERDUE_MS + SECOND);
		COPY_TEXT(o.provider, "beta");
		while (!core_is_stopping(b.core) && b.now < began_at + 20 * MINUTE) {
			if (did(&b, ACT_OFFERS, -1))
				tell(&b, (struct event){.type = EV_OFFERS,
							.provider = 1,
							.offers = &o,
							.count = 1});
			while (did(&b, ACT_RENT, -1)) {
				creates++;
				tell_err(&b, EV_RENT_FAILED, next++, ERR_NO_CAPACITY);
			}
			if (!core_is_stopping(b.core))
				wait_ms(&b, MIN(core_wake_at(b.core) - b.now, MINUTE));
		}
		check_field("sold out", "creates", creates >= (for_ever ? 18 : 9), true);
		check_field("sold out", "stopping", core_is_stopping(b.core), !for_ever);
		if (!for_ever) {
			check_field("sold out", "waited", (b.now - began_at) / 1000, 600);
			check_field("sold out", "exit", exit_status(&b), 6);
		}
		tear_down(&b);
	}
}

static void test_avoided_offer_beside_a_late_vendor(void **state)
{
	struct offer_past past = {.bad_why = "sshd never spoke"};
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.provider_count = 2;
	start(&b);
	wait_ms(&b, QUERY_OVERDUE_MS + SECOND);
	COPY_TEXT(o.provider, "beta");
	past.bad_until_ms = WALL_MS + b.now + HOUR;
	tell(&b,
	     (struct event){
		     .type = EV_OFFERS, .provider = 1, .offers = &o, .past = &past, .count = 1});
	check_field("nothing else is to be had", "creates", did(&b, ACT_RENT, -1), 1);
	tear_down(&b);
}

/* What a user must tell apart: each reason has its label, and the line is whole. */
static const struct {
	const char *name;
	enum err_kind kind;
	bool answered; /* it had said before what it offers */
	const char *label;
	int status; /* of a run that ends at once; -1: it waits */
} reasons[] = {
	{"no network", ERR_NETWORK, false, "no network: alpha: ", -1},
	{"an API that fails", ERR_TRANSIENT, false, "provider failed: alpha: ", -1},
	{"a rate limit", ERR_RATE_LIMITED, false, "rate limit: alpha: ", -1},
	{"no money", ERR_BALANCE, false, "alpha: ", 3},
	{"a refused key", ERR_CREDENTIALS, false, "alpha: ", 3},
	{"a wrong certificate", ERR_UNTRUSTED, false, "alpha: ", 6},
	{"the page of a hotel's network", ERR_UNTRUSTED, true, "not trusted: alpha: ", -1},
};

static const char *last_note(const struct bench *b)
{
	const char *text = "";

	for (size_t i = 0; i < b->out.count; i++)
		if (b->out.list[i].type == ACT_NOTE)
			text = b->out.list[i].text;
	return text;
}

static void test_reasons_are_told_apart(void **state)
{
	char words[401];

	(void)state;
	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		struct err err = {0};
		struct bench b;
		set_up(&b, 4);
		b.conf.wait_ms = 10 * MINUTE;
		start(&b);
		if (reasons[i].answered) {
			tell(&b, (struct event){.type = EV_OFFERS});
			wait_ms(&b, core_wake_at(b.core) - b.now);
		}
		err_set(&err, reasons[i].kind, "%s", words);
		tell(&b, (struct event){.type = EV_OFFERS, .err = &err});
		assert_true(core_is_stopping(b.core) == (reasons[i].status >= 0));
		if (reasons[i].status >= 0) {
			check_field(reasons[i].name, "status", exit_status(&b), reasons[i].status);
			assert_true(starts_with(summary(&b).err.msg, reasons[i].label));
		} else {
			print_message("   %s\n", last_note(&b));
			assert_true(starts_with(last_note(&b), reasons[i].label));
			assert_non_null(strstr(last_note(&b), "x; next try in "));
			assert_true(ends_with(last_note(&b), " UTC)"));
		}
		tear_down(&b);
	}
}

/* In the end it is told how long was waited, and what can help, whoever found nothing. */
static void test_a_providers_own_words_of_no_capacity(void **state)
{
	struct err err = {0};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.wait_ms = MINUTE;
	start(&b);
	err_set(&err, ERR_NO_CAPACITY, "no card is left");
	for (int i = 0; i < 20 && !core_is_stopping(b.core); i++) {
		tell(&b, (struct event){.type = EV_OFFERS, .err = &err});
		if (!core_is_stopping(b.core))
			wait_ms(&b, core_wake_at(b.core) - b.now);
	}
	check_field("it ends", "status", exit_status(&b), 4);
	assert_string_equal(summary(&b).err.msg,
			    "no usable pod could be rented within 1m00s: alpha: no card is left; "
			    "more GPUs in gpu, another provider, or a longer wait can help");
	tear_down(&b);
}

/* Two creates under way: the account cannot pay for one, and the other is sold out. Waiting for the
 * next offers cannot help. */
static void test_nobody_pays_for_the_next(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.pods = 2;
	b.conf.at_once = true;
	b.conf.wait_ms = 10 * MINUTE;
	start_simply(&b);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_BALANCE);
	assert_false(core_is_stopping(b.core));
	tell_err(&b, EV_RENT_FAILED, 1, ERR_NO_CAPACITY);
	assert_true(core_is_stopping(b.core));
	check_field("at once", "status", exit_status(&b), 3);
	tear_down(&b);
}

/* One may have a bad host; two in a row tell that something stands between. */
static void test_pods_that_are_not_ours(void **state)
{
	static const enum err_kind kinds[] = {ERR_UNTRUSTED, ERR_REFUSED};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct offer offers[] = {offer(0, 1000000), offer(1, 1000000), offer(2, 1000000)};
		struct bench b;
		set_up(&b, 4);
		b.conf.wait_ms = 10 * MINUTE;
		start_with(&b, offers, 3);
		for (int k = 0; k < 2; k++) {
			check_field("a pod", "creates", did(&b, ACT_RENT, k), 1);
			rented(&b, k);
			list_running(&b, k);
			tell_err(&b, EV_CONNECT_FAILED, k, kinds[i]);
		}
		assert_true(core_is_stopping(b.core));
		check_field("no third one", "creates", did(&b, ACT_RENT, 2), 0);
		check_field("it ends", "status", exit_status(&b), 6);
		assert_non_null(strstr(summary(&b).err.msg,
				       "alpha: 2 pods in a row could not be trusted: pod "));
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queued_goes_to_the_next_offer),
		cmocka_unit_test(test_queued_without_another_offer),
		cmocka_unit_test(test_queued_and_placed),
		cmocka_unit_test(test_offers_do_not_come),
		cmocka_unit_test(test_sold_out_rests_longer),
		cmocka_unit_test(test_no_offer_fits),
		cmocka_unit_test(test_one_vendor_of_two_has_never),
		cmocka_unit_test(test_sold_out_beside_a_volume_that_is_filled),
		cmocka_unit_test(test_sold_out_while_a_pod_works),
		cmocka_unit_test(test_next_vendor_is_told),
		cmocka_unit_test(test_offers_never_come),
		cmocka_unit_test(test_sold_out_beside_a_late_vendor),
		cmocka_unit_test(test_avoided_offer_beside_a_late_vendor),
		cmocka_unit_test(test_reasons_are_told_apart),
		cmocka_unit_test(test_a_providers_own_words_of_no_capacity),
		cmocka_unit_test(test_nobody_pays_for_the_next),
		cmocka_unit_test(test_pods_that_are_not_ours),
	};

	return cmocka_run_group_tests_name("core capacity", tests, NULL, NULL);
}
