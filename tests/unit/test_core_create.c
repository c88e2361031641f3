/* test_core_create.c - creates: what is saved first, what a provider refuses, how many go out at
 * once, and creates that hang. */
#include "core_bench.h"

/* The answer takes longer than its lease: by then it has ended itself, and only a list of before
 * has told its id. */
static void test_listed_while_its_create_is_under_way(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	b.now += 20 * SECOND;
	struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b.now});
	check_phase(&b, "listed", 0, POD_CONNECTING);
	b.now += 100 * SECOND;
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	assert_string_equal(pod(&b, 0)->rental.id, "p0");
	for (int round = 0; round < 40 && pod(&b, 0)->phase != POD_GONE; round++) {
		wait_ms(&b, 10 * SECOND);
		list_nothing(&b);
		if (pod(&b, 0)->phase == POD_RELEASING)
			tell(&b, (struct event){.type = EV_RELEASED, .number = RELEASE_ABSENT});
	}
	check_phase(&b, "in the end", 0, POD_GONE);
	assert_in_range(core_billed_ms(pod(&b, 0), b.now), 20 * SECOND, 3 * MINUTE);
	tear_down(&b);
}

/* Run ids are short: a pod of another machine's run may bear ours. It is that machine's to release.
 */
static void test_listed_pod_of_another_machine(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
	COPY_TEXT(v.id, "theirs");
	COPY_TEXT(v.marker.attempt, "another");
	COPY_TEXT(v.marker.machine, "elsewhere");
	int before = core_pod_count(b.core);
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b.now});
	check_field("another machine's", "pods", core_pod_count(b.core), before);
	COPY_TEXT(v.marker.machine, "0123456789abcdef");
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .requested_at = b.now});
	check_field("ours", "pods", core_pod_count(b.core), before + 1);
	tear_down(&b);
}

/* A create that hangs: a list is asked for, and the pod that it shows is put to work; the answer
 * comes too late to matter. Before that a list is no reason not to wait for the answer. */
static void test_create_that_hangs(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	wait_ms(&b, 11 * SECOND);
	assert_int_equal(did(&b, ACT_LIST, -1), 0);
	wait_ms(&b, 4 * SECOND);
	assert_int_equal(did(&b, ACT_LIST, -1), 1);
	list_nothing(&b);
	check_phase(&b, "not listed yet", 0, POD_RENTING);
	wait_ms(&b, 6 * SECOND);
	assert_int_equal(did(&b, ACT_LIST, -1), 1);
	list_running(&b, 0);
	check_phase(&b, "listed", 0, POD_CONNECTING);
	connected(&b, 0);
	struct pod_view v = view_of(&b, 0, POD_STATE_CREATING);
	tell(&b, (struct event){.type = EV_RENTED, .pod = 0, .views = &v, .count = 1});
	check_phase(&b, "answered at last", 0, POD_PREPARING);
	assert_int_equal(core_pod_count(b.core), 1);
	tear_down(&b);

	set_up(&b, 4);
	start_simply(&b);
	b.now += 2 * SECOND;
	list_running(&b, 0);
	check_phase(&b, "listed at once", 0, POD_RENTING);
	rented(&b, 0);
	check_phase(&b, "answered in time", 0, POD_BOOTING);
	tear_down(&b);
}

/* A list that is refused proves nothing of what it lacks, and is not waited for at the end. Pods
 * are proven gone by their ids. */
static void test_refused_list(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	bring_up(&b, 0);
	for (int k = 0; k < 5; k++) {
		b.now += 10 * SECOND;
		tell(&b, (struct event){.type = EV_LISTED, .partial = true, .requested_at = b.now});
		check_phase(&b, "not among those looked up", 0, POD_WORKING);
	}
	render_batch(&b, 0, 0, 1000, true);
	check_phase(&b, "done", 0, POD_RELEASING);
	tell(&b, (struct event){.type = EV_RELEASED});
	for (int k = 0; k < 3; k++) {
		b.now += 10 * SECOND;
		tell(&b, (struct event){.type = EV_LISTED, .partial = true, .requested_at = b.now});
	}
	check_phase(&b, "nothing is known of it", 0, POD_CONFIRMING);
	struct pod_view v = view_of(&b, 0, POD_STATE_GONE);
	for (int k = 0; k < 2; k++) {
		b.now += 10 * SECOND;
		tell(&b, (struct event){.type = EV_LISTED,
					.partial = true,
					.views = &v,
					.count = 1,
					.requested_at = b.now});
	}
	check_phase(&b, "looked up", 0, POD_GONE);
	assert_true(has_ended(&b));
	assert_int_equal(exit_status(&b), 0);
	tear_down(&b);
}

static void test_journal_before_rent(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up(&b, 40);
	b.conf.pods = 2;
	start_with(&b, offers, 2);
	assert_int_equal(did(&b, ACT_RENT, -1), 2);
	check_saved_first(&b, "the first pod", ACT_RENT, 0);
	check_saved_first(&b, "the second pod", ACT_RENT, 1);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_NO_CAPACITY);
	check_saved_first(&b, "a next try", ACT_RENT, 2);
	assert_string_not_equal(pod(&b, 0)->rental.attempt, pod(&b, 2)->rental.attempt);
	tear_down(&b);
}

static void image(struct bench *b, enum err_kind kind)
{
	struct err err;

	err_set(&err, kind ? kind : ERR_BUG, "words about it");
	tell(b, (struct event){.type = EV_IMAGE, .err = kind ? &err : NULL});
}

static void test_image_before_pods(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up(&b, 40);
	b.conf.pods = 3;
	b.conf.providers[0].makes_image = true;
	start_with(&b, offers, 2);
	assert_int_equal(did(&b, ACT_IMAGE, -1), 1);
	assert_int_equal(core_pod_count(b.core), 0); /* nothing is billed while it is built */
	wait_ms(&b, 15 * MINUTE);                    /* longer than anyone waits for capacity */
	assert_int_equal(did(&b, ACT_IMAGE, -1), 0);
	image(&b, ERR_NETWORK);
	assert_int_equal(did(&b, ACT_IMAGE, -1), 0); /* in a while */
	assert_false(has_ended(&b));
	tear_down(&b);

	set_up(&b, 40);
	b.conf.pods = 3;
	b.conf.providers[0].makes_image = true;
	start_with(&b, offers, 2);
	image(&b, ERR_TRANSIENT);
	wait_ms(&b, 30 * 1000);
	assert_int_equal(did(&b, ACT_IMAGE, -1), 1);
	image(&b, ERR_NONE);
	assert_int_equal(did(&b, ACT_RENT, -1), 3);
	assert_int_equal(pod(&b, 0)->rental.create_at, b.now);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_NO_CAPACITY);
	assert_int_equal(did(&b, ACT_RENT, -1), 1); /* once is enough */
	assert_int_equal(did(&b, ACT_IMAGE, -1), 0);
	end_well(&b);
	tear_down(&b);
}

static void test_image_cannot_be_built(void **state)
{
	struct bench b;
	struct offer o = offer(0, 1000000);

	(void)state;
	set_up(&b, 40);
	b.conf.providers[0].makes_image = true;
	start_with(&b, &o, 1);
	image(&b, ERR_CONFIG);
	assert_true(has_ended(&b)); /* it is not tried for ever */
	assert_int_equal(core_pod_count(b.core), 0);
	assert_int_equal(exit_status(&b), 2);
	assert_string_equal(summary(&b).err.msg, "alpha: words about it");
	tear_down(&b);

	/* a signal meanwhile: there is nothing to wait for */
	set_up(&b, 40);
	b.conf.providers[0].makes_image = true;
	start_with(&b, &o, 1);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 2});
	assert_true(has_ended(&b));
	image(&b, ERR_NONE);
	assert_int_equal(core_pod_count(b.core), 0);
	tear_down(&b);
}

static void test_nothing_is_rented_without_a_row(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_LOCAL); /* as the engine says when ACT_SAVE failed */
	check_phase(&b, "no row", 0, POD_NEVER);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	end_well(&b);
	assert_int_equal(exit_status(&b), 1);
	tear_down(&b);
}

static const struct {
	const char *name;
	enum err_kind kind;
	enum pod_phase phase;
	int rents;      /* creates that follow at once, of two offers */
	int64_t rest_s; /* of the offer; -1: not for this run */
	int status;     /* of the run, when it is hopeless now; -1: it goes on */
} refusals[] = {
	{"sold out: the next offer", ERR_NO_CAPACITY, POD_NEVER, 1, 5, -1},
	{"refused: the next offer, this one never again", ERR_REFUSED, POD_NEVER, 1, -1, -1},
	{"rate limited: so are all its offers", ERR_RATE_LIMITED, POD_NEVER, 0, 0, -1},
	{"a hiccup: a rest", ERR_TRANSIENT, POD_NEVER, 1, 2, -1},
	{"no connection: a rest", ERR_NETWORK, POD_NEVER, 1, 2, -1},
	{"a lost reply is not asked again", ERR_AMBIGUOUS, POD_AMBIGUOUS, 0, 0, -1},
	{"credentials refused", ERR_CREDENTIALS, POD_NEVER, 0, 0, 3},
	{"the account cannot pay", ERR_BALANCE, POD_NEVER, 0, 0, 3},
	{"something here must be set right first", ERR_CONFIG, POD_NEVER, 0, 0, 2},
	{"the ledger is full", ERR_LOCAL, POD_NEVER, 0, 0, 1},
	{"the vendor broke the protocol", ERR_BUG, POD_NEVER, 0, 0, 6},
};

static void test_refused_creates(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		const char *name = refusals[i].name;
		struct bench b;
		set_up(&b, 4);
		start_with(&b, offers, 2);
		tell_err(&b, EV_RENT_FAILED, 0, refusals[i].kind);
		check_phase(&b, name, 0, refusals[i].phase);
		check_field(name, "creates", did(&b, ACT_RENT, -1), refusals[i].rents);
		check_field(name, "row written", did(&b, ACT_SAVE, 0), 1);
		int64_t rest = b.core->candidates[0].rest_until;
		if (refusals[i].rest_s < 0)
			check_field(name, "rests for ever", rest > b.now + 24 * HOUR, 1);
		else
			check_field(name, "rest", rest ? (rest - b.now) / 1000 : 0,
				    refusals[i].rest_s);
		if (refusals[i].rents)
			assert_string_equal(pod(&b, 1)->rental.offer.id, "offer-1");
		if (refusals[i].status >= 0) {
			end_well(&b);
			check_field(name, "exit", exit_status(&b), refusals[i].status);
		} else {
			check_field(name, "stopping", core_is_stopping(b.core), false);
		}
		tear_down(&b);
	}
}

/* What each of three offers answers, in turn, and whether the vendor is given up then. */
static const struct {
	const char *name;
	enum err_kind kinds[3]; /* ERR_NONE: it is given, and of no use */
	int64_t max_price;
	int status; /* at once; -1: the run goes on */
} all_refused[] = {
	{"all refused", {ERR_REFUSED, ERR_REFUSED, ERR_REFUSED}, 0, 6},
	{"one may be there again", {ERR_REFUSED, ERR_NO_CAPACITY, ERR_REFUSED}, 0, -1},
	{"one was given", {ERR_NONE, ERR_REFUSED, ERR_REFUSED}, 0, -1},
	{"all that the caps allow", {ERR_REFUSED, ERR_REFUSED}, 1200000, 6},
};

static void test_all_offers_are_refused(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1100000), offer(2, 1300000)};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all_refused); i++) {
		const char *name = all_refused[i].name;
		struct bench b;
		set_up(&b, 4);
		b.conf.max_price_microusd_h = all_refused[i].max_price;
		start_with(&b, offers, ARRAY_LEN(offers));
		for (int k = 0; k < 3 && !core_is_stopping(b.core); k++) {
			if (core_pod_count(b.core) <= k)
				wait_ms(&b, CORE_LOG_READ_MS +
						    SECOND); /* a failed pod's log is waited for
								before another is rented */
			if (core_pod_count(b.core) <= k)
				fail_msg("%s: no pod %d is rented", name, k);
			if (all_refused[i].kinds[k]) {
				tell_err(&b, EV_RENT_FAILED, k, all_refused[i].kinds[k]);
				continue;
			}
			rented(&b, k);
			list_in(&b, POD_STATE_FAILED, k, -1);
			/* that one is not free any more */
			tell(&b,
			     (struct event){.type = EV_OFFERS, .offers = offers + 1, .count = 2});
		}
		check_field(name, "stopping", core_is_stopping(b.core), all_refused[i].status >= 0);
		if (core_is_stopping(b.core)) {
			end_well(&b);
			check_field(name, "exit", exit_status(&b), all_refused[i].status);
		}
		tear_down(&b);
	}
}

/* The other one is not held to it, and is why a run ends that waits for it. */
static void test_refused_by_one_vendor_of_two(void **state)
{
	struct offer o = offer(0, 1000000), other = offer(1, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.provider_count = 2;
	start_with(&b, &o, 1);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_REFUSED);
	int64_t began_at = b.now;
	COPY_TEXT(other.provider, "beta");
	tell(&b, (struct event){.type = EV_OFFERS, .provider = 1, .offers = &other, .count = 1});
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	for (int k = 0; k < 99 && !has_ended(&b); k++) {
		int last = core_pod_count(b.core) - 1;
		if (did(&b, ACT_OFFERS, -1))
			tell(&b, (struct event){.type = EV_OFFERS,
						.provider = 1,
						.offers = &other,
						.count = 1});
		else if (pod(&b, last)->phase == POD_RENTING)
			tell_err(&b, EV_RENT_FAILED, last, ERR_NO_CAPACITY);
		else
			wait_ms(&b, core_wake_at(b.core) - b.now);
	}
	assert_true(b.now - began_at >= MINUTE);
	assert_int_equal(exit_status(&b), 4);
	tear_down(&b);
}

/* A thousand creates at once would wait for the account's limits and for each other. */
static void test_wide_runs_rent_a_few_at_once(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1000);
	b.conf.pods = 1000;
	b.conf.max_cost_microusd = 0;
	start_simply(&b);
	assert_int_equal(did(&b, ACT_RENT, -1), RENTS_AT_ONCE);
	for (int i = 0; i < 200; i++) {
		rented(&b, i);
		assert_int_equal(did(&b, ACT_RENT, -1), 1);
	}
	tear_down(&b);
}

/* No row and no try of its own for each create that there is no room for: one asks, and its success
 * opens the way. */
static void test_limits_of_the_account(void **state)
{
	struct err err = {0};
	struct bench b;
	int next = RENTS_AT_ONCE, tries = 0;

	(void)state;
	set_up(&b, 1000);
	b.conf.pods = 1000;
	b.conf.max_cost_microusd = 0;
	start_simply(&b);
	rented(&b, 0);
	next++;
	err_set(&err, ERR_RATE_LIMITED, "no room");
	err.retry_after_ms = 5000;
	for (int i = 1; i < next; i++) {
		tell(&b, (struct event){.type = EV_RENT_FAILED, .pod = i, .err = &err});
		assert_int_equal(did(&b, ACT_RENT, -1), 0);
	}
	/* a minute, in which it is found out now and then whether there is room again */
	for (int k = 0; k < 6; k++) {
		wait_ms(&b, 5000);
		assert_int_equal(did(&b, ACT_RENT, -1), 1);
		assert_int_equal(did(&b, ACT_OFFERS, -1), 0); /* which costs requests, too */
		tries++;
		tell(&b, (struct event){.type = EV_RENT_FAILED, .pod = next++, .err = &err});
	}
	wait_ms(&b, 5000);
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	assert_int_equal(core_pod_count(b.core), RENTS_AT_ONCE + 1 + tries + 1);
	rented(&b, next++);
	assert_int_equal(did(&b, ACT_RENT, -1), 2);
	rented(&b, next++);
	assert_int_equal(did(&b, ACT_RENT, -1), 3); /* four under way */
	tear_down(&b);
}

/* A vendor that says so of one kind of GPU, and not for how long: the other offers are tried, more
 * and more slowly. */
static void test_limits_that_do_not_end(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;
	int creates = 1;
	bool other = false;

	(void)state;
	set_up(&b, 4);
	b.conf.wait_ms = 5 * MINUTE;
	start_with(&b, offers, 2);
	for (int k = 0; k < 999 && !has_ended(&b); k++) {
		int last = core_pod_count(b.core) - 1;
		other = other || !strcmp(pod(&b, last)->rental.offer.id, "offer-1");
		if (did(&b, ACT_OFFERS, -1))
			tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		else if (pod(&b, last)->phase == POD_RENTING)
			tell_err(&b, EV_RENT_FAILED, last, ERR_RATE_LIMITED);
		else
			wait_ms(&b, core_wake_at(b.core) - b.now);
		creates += did(&b, ACT_RENT, -1);
	}
	assert_true(has_ended(&b));
	assert_true(other);
	assert_in_range(creates, 3, 24);
	assert_int_equal(exit_status(&b), 4);
	tear_down(&b);
}

/* Sixty a minute: the last of a thousand waits for a quarter of an hour, and is not given up before
 * its turn. */
static void test_releases_wait_for_their_turn(void **state)
{
	enum { PODS = 40 };
	struct bench b;

	(void)state;
	set_up(&b, PODS);
	b.conf.pods = PODS;
	b.conf.max_cost_microusd = 0;
	start_simply(&b);
	for (int i = 0; i < PODS; i++)
		rented(&b, i);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 15});
	assert_int_equal(did(&b, ACT_RELEASE, -1), PODS);
	for (int i = 0; i < PODS; i++) {
		wait_ms(&b, MINUTE);
		assert_false(has_ended(&b));
		tell(&b, (struct event){.type = EV_RELEASED, .pod = i});
	}
	end_well(&b);
	assert_int_equal(summary(&b).status, RUN_INTERRUPTED);
	tear_down(&b);

	set_up(&b, 2); /* nothing moves: then they are reported */
	b.conf.pods = 2;
	start_simply(&b);
	rented(&b, 0);
	rented(&b, 1);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 15});
	wait_ms(&b, 6 * MINUTE);
	assert_true(has_ended(&b));
	assert_int_equal(summary(&b).status, RUN_UNRELEASED);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listed_while_its_create_is_under_way),
		cmocka_unit_test(test_listed_pod_of_another_machine),
		cmocka_unit_test(test_create_that_hangs),
		cmocka_unit_test(test_refused_list),
		cmocka_unit_test(test_journal_before_rent),
		cmocka_unit_test(test_image_before_pods),
		cmocka_unit_test(test_image_cannot_be_built),
		cmocka_unit_test(test_nothing_is_rented_without_a_row),
		cmocka_unit_test(test_refused_creates),
		cmocka_unit_test(test_all_offers_are_refused),
		cmocka_unit_test(test_refused_by_one_vendor_of_two),
		cmocka_unit_test(test_wide_runs_rent_a_few_at_once),
		cmocka_unit_test(test_limits_of_the_account),
		cmocka_unit_test(test_limits_that_do_not_end),
		cmocka_unit_test(test_releases_wait_for_their_turn),
	};

	return cmocka_run_group_tests_name("core create", tests, NULL, NULL);
}
