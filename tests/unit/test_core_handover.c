/* test_core_handover.c - a detached run: the pods have the whole job, and end themselves. */
#include "core_bench.h"

static void test_journal_before_handover(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.detached = b.conf.want_volume = true;
	struct volume v = {.id = "v1", .apart = true};
	struct offer o = offer(0, 1000000);
	start(&b);
	tell(&b, (struct event){.type = EV_VOLUME, .volume = &v});
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	bring_up(&b, 0);
	check_saved_first(&b, "handover", ACT_HANDOVER, 0);
	assert_true(pod(&b, 0)->presence.lease != LEASE_CLIENT);
	tear_down(&b);
}

static void left_alone(struct bench *b, int i, int turn)
{
	tell(b, (struct event){.type = EV_HANDOVER_DONE, .pod = i, .number = turn});
}

/* What is on its way to a pod is not with it: the agent answers for what came before the word, and
 * that comes behind all work. */
static void test_handover_is_answered(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.detached = b.conf.want_volume = true;
	b.conf.check_tries = 2;
	struct volume v = {.id = "v1", .apart = true};
	struct offer o = offer(0, 1000000);
	start(&b);
	tell(&b, (struct event){.type = EV_VOLUME, .volume = &v});
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_field("not up", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	bring_up(&b, 0);
	int turn = first(&b, ACT_HANDOVER)->number;
	check_field("said", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	left_alone(&b, 0, turn - 1);
	check_field("an older answer", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	left_alone(&b, 0, turn);
	check_field("answered", "handover", core_handover(b.core), HANDOVER_DONE);
	began(&b, 0, 0);
	rendered(&b, 0, 0);
	/* it is rendered again */
	tell(&b, (struct event){.type = EV_FETCHED, .segment = 0, .ok = true, .check_ok = false});
	check_field("more work", "sent", did(&b, ACT_SEND, 0), 1);
	check_field("more work", "told again", did(&b, ACT_HANDOVER, 0), 1);
	check_field("more work", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	assert_true(first(&b, ACT_SEND) < first(&b, ACT_HANDOVER));
	left_alone(&b, 0, turn);
	check_field("an answer from before it", "handover", core_handover(b.core),
		    HANDOVER_NOT_YET);
	left_alone(&b, 0, turn + 1);
	check_field("answered again", "handover", core_handover(b.core), HANDOVER_DONE);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 15});
	check_field("stopping", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	tear_down(&b);
}

/* The pod that takes the place of one that was lost is left alone as well; before, its client had
 * to live. */
static void test_replacement_is_handed_over(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 40);
	b.conf.detached = b.conf.want_volume = true;
	struct volume v = {.id = "v1", .apart = true};
	struct offer o = offer(0, 1000000);
	start(&b);
	tell(&b, (struct event){.type = EV_VOLUME, .volume = &v});
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	bring_up(&b, 0);
	left_alone(&b, 0, first(&b, ACT_HANDOVER)->number);
	check_field("one pod", "handover", core_handover(b.core), HANDOVER_DONE);
	struct pod_view over = view_of(&b, 0, POD_STATE_GONE);
	over.end = POD_END_OUTSIDE;
	over.preempted = true;
	tell(&b,
	     (struct event){.type = EV_LISTED, .views = &over, .count = 1, .requested_at = b.now});
	check_field("it is taken back", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	for (int i = 0; i < 60 && b.core->pod_count < 2; i++)
		wait_ms(&b, SECOND);
	tell(&b, (struct event){.type = EV_SALVAGED});
	b.core->pods[1].rental.volume = v;
	bring_up(&b, 1);
	check_field("another one", "handed over", did(&b, ACT_HANDOVER, 1), 1);
	assert_true(pod(&b, 1)->presence.lease != LEASE_CLIENT);
	left_alone(&b, 1, 1);
	check_field("another one", "handover", core_handover(b.core), HANDOVER_DONE);
	tear_down(&b);
}

/* Whether it could have another pod by a vendor that does not say what it offers is not waited for.
 */
static void test_handover_beside_a_late_vendor(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct volume v = {.id = "v1", .apart = true};
		struct offer o = offer(0, 1000000);
		struct bench b;
		set_up(&b, 40);
		b.conf.detached = true;
		b.conf.provider_count = 2;
		start(&b);
		if (late) {
			wait_ms(&b, QUERY_OVERDUE_MS + SECOND);
			COPY_TEXT(o.provider, "beta");
		}
		tell(&b,
		     (struct event){.type = EV_OFFERS, .provider = late, .offers = &o, .count = 1});
		b.core->pods[0].rental.volume = v;
		rented(&b, 0);
		struct pod_view view = view_of(&b, 0, POD_STATE_RUNNING);
		tell(&b, (struct event){.type = EV_LISTED,
					.provider = late,
					.views = &view,
					.count = 1,
					.requested_at = b.now});
		connected(&b, 0);
		tell(&b, (struct event){.type = EV_SHARED_READY});
		tell(&b, (struct event){.type = EV_WORKERS, .number = 1});
		check_field(late ? "late" : "it answered", "handed over", did(&b, ACT_HANDOVER, 0),
			    1);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_journal_before_handover),
		cmocka_unit_test(test_handover_is_answered),
		cmocka_unit_test(test_replacement_is_handed_over),
		cmocka_unit_test(test_handover_beside_a_late_vendor),
	};

	return cmocka_run_group_tests_name("core handover", tests, NULL, NULL);
}
