/* test_core.c - single decisions of the pure core, one table a decision: events go in, actions and
 * phases come out. What whole runs do under faults is the simulator's to show (tests/sim). */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "core/impl.h"

/* ---- a run under test ---- */

#define WALL_MS 1800000000000ll /* the wall clock at boot clock 0 */
#define SECOND  1000ll
#define MINUTE  (60 * SECOND)
#define HOUR    (60 * MINUTE)

struct bench {
	struct core_conf conf;
	struct core *core;
	struct actions out; /* of the last word to it, and of all ticks of wait() */
	int64_t now;
	struct event hello; /* what its workers say beside how many they are */
	struct core_segment segments[1024];
	size_t count;
};

static void set_up(struct bench *b, size_t segments)
{
	*b = (struct bench){.now = 1000000, .count = segments};
	b->conf = (struct core_conf){
		.run = "r1",
		.machine = "0123456789abcdef",
		.provider_count = 1,
		.pods = 1,
		.workers = 1,
		.max_batch = 4,
		.wait_ms = MINUTE,
		.lease_ms = 10 * MINUTE,
		.boot_limit_ms = 5 * MINUTE,
		.check_tries = 1,
		.seed = 7,
		.providers = {{"alpha", false, 1000, 5000}, {"beta", false, 1000, 5000}},
	};
	for (size_t i = 0; i < segments; i++)
		b->segments[i] = (struct core_segment){.weight = 1, .est_s = 1};
}

static void tear_down(struct bench *b)
{
	core_free(b->core);
	free(b->out.list);
}

static void say(struct bench *b, struct event ev)
{
	ev.now_ms = b->now;
	ev.wall_ms = WALL_MS + b->now;
	core_step(b->core, &ev, &b->out);
}

/* Says one thing; only the actions that follow are kept. */
static void tell(struct bench *b, struct event ev)
{
	b->out.count = 0;
	say(b, ev);
}

static void tell_err(struct bench *b, enum event_type type, int pod, enum err_kind kind)
{
	struct err err;

	err_set(&err, kind, "words about it");
	tell(b, (struct event){.type = type, .pod = pod, .err = &err});
}

/* Time passes, with a tick whenever the core asked for one. */
static void wait_ms(struct bench *b, int64_t ms)
{
	int64_t until = b->now + ms;

	b->out.count = 0;
	for (int ticks = 0; core_wake_at(b->core) <= until; ticks++) {
		assert_true(ticks < 100000);
		b->now = MAX(b->now, core_wake_at(b->core));
		say(b, (struct event){.type = EV_TICK});
	}
	b->now = until;
}

/* How many actions of this kind there were (pod -1: of any pod). */
static int did(const struct bench *b, enum action_type type, int pod)
{
	int n = 0;

	for (size_t i = 0; i < b->out.count; i++)
		n += b->out.list[i].type == type && (pod < 0 || b->out.list[i].pod == pod);
	return n;
}

static const struct action *first(const struct bench *b, enum action_type type)
{
	for (size_t i = 0; i < b->out.count; i++)
		if (b->out.list[i].type == type)
			return &b->out.list[i];
	fail_msg("an action of kind %d was expected", type);
	return NULL;
}

static const struct core_pod *pod(const struct bench *b, int i)
{
	assert_true(i < core_pod_count(b->core));
	return core_pod_at(b->core, i);
}

static void check_phase(const struct bench *b, const char *name, int i, enum pod_phase want)
{
	if (pod(b, i)->phase != want)
		fail_msg("%s: pod %d is %s, not %s", name, i, pod_phase_name(pod(b, i)->phase),
			 pod_phase_name(want));
}

static void check_int(const char *name, const char *what, long long got, long long want)
{
	if (got != want)
		fail_msg("%s: %s is %lld, not %lld", name, what, got, want);
}

static struct core_summary summary(const struct bench *b)
{
	struct core_summary s;

	core_summary(b->core, b->now, &s);
	return s;
}

static int exit_status(const struct bench *b)
{
	struct core_summary s = summary(b);

	return err_exit_status(&s.err);
}

static struct offer offer(int n, int64_t price)
{
	struct offer o = {.provider = "alpha", .price_microusd_h = price, .wish = n};

	snprintf(o.id, sizeof(o.id), "offer-%d", n);
	snprintf(o.gpu, sizeof(o.gpu), "GPU %d", n);
	return o;
}

static void start(struct bench *b)
{
	b->core = core_new(&b->conf, b->segments, b->count);
	tell(b, (struct event){.type = EV_START});
}

static void start_with(struct bench *b, const struct offer *offers, size_t count)
{
	start(b);
	tell(b, (struct event){.type = EV_OFFERS, .offers = offers, .count = count});
}

/* A run with one offer at $1 an hour. */
static void start_simply(struct bench *b)
{
	struct offer o = offer(0, 1000000);

	start_with(b, &o, 1);
}

static struct pod_view view_of(const struct bench *b, int i, enum pod_state state)
{
	struct pod_view v = {.state = state, .port = state == POD_STATE_RUNNING ? 22 : 0};

	snprintf(v.id, sizeof(v.id), "p%d", i);
	COPY_TEXT(v.marker.run, b->conf.run);
	COPY_TEXT(v.marker.attempt, pod(b, i)->attempt);
	return v;
}

static void rented_as(struct bench *b, int i, struct pod_view v)
{
	tell(b, (struct event){.type = EV_RENTED, .pod = i, .views = &v, .count = 1});
}

static void rented(struct bench *b, int i)
{
	rented_as(b, i, view_of(b, i, POD_STATE_CREATING));
}

/* The vendor's list, asked for now: pods by their numbers in one state, -1 ends them. */
static void list_in(struct bench *b, enum pod_state state, int i, int k)
{
	struct pod_view views[2];
	size_t count = 0;

	if (i >= 0)
		views[count++] = view_of(b, i, state);
	if (k >= 0)
		views[count++] = view_of(b, k, state);
	tell(b,
	     (struct event){.type = EV_LISTED, .views = views, .count = count, .asked_at = b->now});
}

static void list_running(struct bench *b, int i)
{
	list_in(b, POD_STATE_RUNNING, i, -1);
}

static void list_nothing(struct bench *b)
{
	list_in(b, POD_STATE_GONE, -1, -1);
}

static void connected(struct bench *b, int i)
{
	tell(b, (struct event){.type = EV_CONNECTED,
			       .pod = i,
			       .switch_ok = true,
			       .switch_proven = true,
			       .t = b->now});
}

/* From rented to working in 15 s; b->out then holds what it was first given. */
static void bring_up(struct bench *b, int i)
{
	rented(b, i);
	b->now += 15 * SECOND;
	list_running(b, i);
	connected(b, i);
	tell(b, (struct event){.type = EV_SHARED_READY, .pod = i});
	tell(b, (struct event){.type = EV_WORKERS,
			       .pod = i,
			       .number = b->conf.workers,
			       .max_batch = b->hello.max_batch,
			       .batching = b->hello.batching,
			       .speed = b->hello.speed});
	check_phase(b, "brought up", i, POD_WORKING);
}

static void began(struct bench *b, int i, uint32_t batch)
{
	tell(b, (struct event){.type = EV_BATCH_STARTED, .pod = i, .batch = batch, .t = b->now});
}

static void rendered(struct bench *b, int i, uint32_t segment)
{
	tell(b, (struct event){.type = EV_RENDERED,
			       .pod = i,
			       .segment = segment,
			       .t = b->now,
			       .elapsed_ms = 100});
}

static void safe(struct bench *b, int i, uint32_t segment, bool good)
{
	tell(b,
	     (struct event){
		     .type = EV_HOME, .pod = i, .segment = segment, .ok = true, .check_ok = good});
	tell(b, (struct event){.type = EV_SAFE, .pod = i, .segment = segment});
}

static void done(struct bench *b, int i, uint32_t batch)
{
	tell(b, (struct event){.type = EV_BATCH_DONE, .pod = i, .batch = batch, .t = b->now});
}

static void render_batch(struct bench *b, int i, uint32_t batch, int64_t ms, bool good)
{
	struct core_batch k = *core_batch_at(b->core, batch);

	began(b, i, batch);
	b->now += ms;
	for (size_t s = 0; s < k.count; s++) {
		rendered(b, i, k.segments[s]);
		safe(b, i, k.segments[s], good);
	}
	done(b, i, batch);
}

/* Creates still under way succeed, releases are accepted, and pods not listed any more, until the
 * run has ended. */
static void end_well(struct bench *b)
{
	for (int round = 0; round < 20 && !core_ended(b->core); round++) {
		for (int i = 0; i < core_pod_count(b->core); i++) {
			if (pod(b, i)->phase == POD_RENTING)
				rented(b, i);
			if (pod(b, i)->phase == POD_RELEASING)
				tell(b, (struct event){.type = EV_RELEASED, .pod = i});
		}
		b->now += MINUTE;
		list_nothing(b);
	}
	if (!core_ended(b->core))
		fail_msg("the run does not end");
}

/* ---- renting ---- */

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
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b.now});
	check_phase(&b, "listed", 0, POD_CONNECTING);
	b.now += 100 * SECOND;
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	assert_string_equal(pod(&b, 0)->id, "p0");
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
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b.now});
	check_int("another machine's", "pods", core_pod_count(b.core), before);
	COPY_TEXT(v.marker.machine, "0123456789abcdef");
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b.now});
	check_int("ours", "pods", core_pod_count(b.core), before + 1);
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
		tell(&b, (struct event){.type = EV_LISTED, .partial = true, .asked_at = b.now});
		check_phase(&b, "not among those looked up", 0, POD_WORKING);
	}
	render_batch(&b, 0, 0, 1000, true);
	check_phase(&b, "done", 0, POD_RELEASING);
	tell(&b, (struct event){.type = EV_RELEASED});
	for (int k = 0; k < 3; k++) {
		b.now += 10 * SECOND;
		tell(&b, (struct event){.type = EV_LISTED, .partial = true, .asked_at = b.now});
	}
	check_phase(&b, "nothing is known of it", 0, POD_CONFIRMING);
	struct pod_view v = view_of(&b, 0, POD_STATE_GONE);
	for (int k = 0; k < 2; k++) {
		b.now += 10 * SECOND;
		tell(&b, (struct event){.type = EV_LISTED,
					.partial = true,
					.views = &v,
					.count = 1,
					.asked_at = b.now});
	}
	check_phase(&b, "looked up", 0, POD_GONE);
	assert_true(core_ended(b.core));
	assert_int_equal(exit_status(&b), 0);
	tear_down(&b);
}

/* The row that stands right before it says what is about to be done. */
static void check_saved_first(const struct bench *b, const char *name, enum action_type type, int i)
{
	for (size_t n = 0; n < b->out.count; n++) {
		if (b->out.list[n].type != type || b->out.list[n].pod != i)
			continue;
		if (!n || b->out.list[n - 1].type != ACT_SAVE || b->out.list[n - 1].pod != i)
			fail_msg("%s: not saved before it is done", name);
		return;
	}
	fail_msg("%s: not done at all", name);
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
	assert_string_not_equal(pod(&b, 0)->attempt, pod(&b, 2)->attempt);
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
	assert_false(core_ended(b.core));
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
	assert_int_equal(pod(&b, 0)->create_at, b.now);
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
	assert_true(core_ended(b.core)); /* it is not tried for ever */
	assert_int_equal(core_pod_count(b.core), 0);
	assert_int_equal(exit_status(&b), 2);
	assert_string_equal(summary(&b).err.msg, "words about it");
	tear_down(&b);

	/* a signal meanwhile: there is nothing to wait for */
	set_up(&b, 40);
	b.conf.providers[0].makes_image = true;
	start_with(&b, &o, 1);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 2});
	assert_true(core_ended(b.core));
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
	assert_true(pod(&b, 0)->detached);
	tear_down(&b);
}

static void left_alone(struct bench *b, int i, int turn)
{
	tell(b, (struct event){.type = EV_LEFT_ALONE, .pod = i, .number = turn});
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
	check_int("not up", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	bring_up(&b, 0);
	int turn = first(&b, ACT_HANDOVER)->number;
	check_int("said", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	left_alone(&b, 0, turn - 1);
	check_int("an older answer", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	left_alone(&b, 0, turn);
	check_int("answered", "handover", core_handover(b.core), HANDOVER_DONE);
	began(&b, 0, 0);
	rendered(&b, 0, 0);
	/* it is rendered again */
	tell(&b, (struct event){.type = EV_HOME, .segment = 0, .ok = true, .check_ok = false});
	check_int("more work", "sent", did(&b, ACT_SEND, 0), 1);
	check_int("more work", "told again", did(&b, ACT_HANDOVER, 0), 1);
	check_int("more work", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	assert_true(first(&b, ACT_SEND) < first(&b, ACT_HANDOVER));
	left_alone(&b, 0, turn);
	check_int("an answer from before it", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	left_alone(&b, 0, turn + 1);
	check_int("answered again", "handover", core_handover(b.core), HANDOVER_DONE);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 15});
	check_int("stopping", "handover", core_handover(b.core), HANDOVER_NOT_YET);
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
	check_int("one pod", "handover", core_handover(b.core), HANDOVER_DONE);
	struct pod_view over = view_of(&b, 0, POD_STATE_GONE);
	over.end = POD_END_OUTSIDE;
	over.preempted = true;
	tell(&b, (struct event){.type = EV_LISTED, .views = &over, .count = 1, .asked_at = b.now});
	check_int("it is taken back", "handover", core_handover(b.core), HANDOVER_NOT_YET);
	for (int i = 0; i < 60 && b.core->pod_count < 2; i++)
		wait_ms(&b, SECOND);
	tell(&b, (struct event){.type = EV_SALVAGED});
	b.core->pods[1].volume = v;
	bring_up(&b, 1);
	check_int("another one", "handed over", did(&b, ACT_HANDOVER, 1), 1);
	assert_true(pod(&b, 1)->detached);
	left_alone(&b, 1, 1);
	check_int("another one", "handover", core_handover(b.core), HANDOVER_DONE);
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
			wait_ms(&b, ASK_PATIENCE_MS + SECOND);
			COPY_TEXT(o.provider, "beta");
		}
		tell(&b,
		     (struct event){.type = EV_OFFERS, .provider = late, .offers = &o, .count = 1});
		b.core->pods[0].volume = v;
		rented(&b, 0);
		struct pod_view view = view_of(&b, 0, POD_STATE_RUNNING);
		tell(&b, (struct event){.type = EV_LISTED,
					.provider = late,
					.views = &view,
					.count = 1,
					.asked_at = b.now});
		connected(&b, 0);
		tell(&b, (struct event){.type = EV_SHARED_READY});
		tell(&b, (struct event){.type = EV_WORKERS, .number = 1});
		check_int(late ? "late" : "it answered", "handed over", did(&b, ACT_HANDOVER, 0),
			  1);
		tear_down(&b);
	}
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
		check_int(name, "creates", did(&b, ACT_RENT, -1), refusals[i].rents);
		check_int(name, "row written", did(&b, ACT_SAVE, 0), 1);
		int64_t rest = b.core->candidates[0].rest_until;
		if (refusals[i].rest_s < 0)
			check_int(name, "rests for ever", rest > b.now + 24 * HOUR, 1);
		else
			check_int(name, "rest", rest ? (rest - b.now) / 1000 : 0,
				  refusals[i].rest_s);
		if (refusals[i].rents)
			assert_string_equal(pod(&b, 1)->offer.id, "offer-1");
		if (refusals[i].status >= 0) {
			end_well(&b);
			check_int(name, "exit", exit_status(&b), refusals[i].status);
		} else {
			check_int(name, "stopping", core_stopping(b.core), false);
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
		for (int k = 0; k < 3 && !core_stopping(b.core); k++) {
			if (core_pod_count(b.core) <= k)
				wait_ms(&b, CORE_LOG_LOOK_MS +
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
		check_int(name, "stopping", core_stopping(b.core), all_refused[i].status >= 0);
		if (core_stopping(b.core)) {
			end_well(&b);
			check_int(name, "exit", exit_status(&b), all_refused[i].status);
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
	for (int k = 0; k < 99 && !core_ended(b.core); k++) {
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
	for (int k = 0; k < 999 && !core_ended(b.core); k++) {
		int last = core_pod_count(b.core) - 1;
		other = other || !strcmp(pod(&b, last)->offer.id, "offer-1");
		if (did(&b, ACT_OFFERS, -1))
			tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		else if (pod(&b, last)->phase == POD_RENTING)
			tell_err(&b, EV_RENT_FAILED, last, ERR_RATE_LIMITED);
		else
			wait_ms(&b, core_wake_at(b.core) - b.now);
		creates += did(&b, ACT_RENT, -1);
	}
	assert_true(core_ended(b.core));
	assert_true(other);
	assert_in_range(creates, 3, 24);
	assert_int_equal(exit_status(&b), 4);
	tear_down(&b);
}

/* ---- queued by its vendor ---- */

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
		tell(b, (struct event){
				.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b->now});
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
	check_int("the next offer", "creates", did(&b, ACT_RENT, 1), 1);
	assert_string_equal(pod(&b, 1)->offer.id, "offer-1");
	ended_unplaced(&b, 0);
	assert_int_equal(core_billed_ms(pod(&b, 0), b.now), 0);
	assert_int_equal(core_cost(pod(&b, 0), b.now), 0);
	bring_up(&b, 1);
	check_int("the one that came up", "pod", first(&b, ACT_SEND)->pod, 1);
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
	for (int k = 0; k < 999 && !core_ended(b.core); k++) {
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
	assert_true(core_ended(b.core));
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
	assert_false(core_stopping(b.core));
	wait_ms(&b, 2 * SECOND);
	assert_true(core_stopping(b.core));
	assert_int_equal(exit_status(&b), 6);
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
		assert_false(core_ended(b.core));
		tell(&b, (struct event){.type = EV_RELEASED, .pod = i});
	}
	end_well(&b);
	assert_string_equal(summary(&b).status, "interrupted");
	tear_down(&b);

	set_up(&b, 2); /* nothing moves: then they are reported */
	b.conf.pods = 2;
	start_simply(&b);
	rented(&b, 0);
	rented(&b, 1);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 15});
	wait_ms(&b, 6 * MINUTE);
	assert_true(core_ended(b.core));
	assert_string_equal(summary(&b).status, "unreleased");
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
		check_int("rest", "s", (b.core->candidates[0].rest_until - b.now) / 1000,
			  rests_s[i]);
		b.now += rests_s[i] * 1000 - 1;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_int("while it rests", "creates", did(&b, ACT_RENT, -1), 0);
		b.now += 1;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_int("after its rest", "creates", did(&b, ACT_RENT, -1), 1);
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
		for (int round = 0; round < 30 && !core_ended(b.core); round++) {
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
			check_int(name, "creates", did(&b, ACT_RENT, -1), 0);
			if (!core_ended(b.core))
				wait_ms(&b, core_wake_at(b.core) - b.now);
		}
		check_int(name, "ended", core_ended(b.core), true);
		check_int(name, "waited", (b.now - began_at) / 1000, unfit[i].waits_s);
		check_int(name, "exit", exit_status(&b), unfit[i].status);
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
		for (int round = 0; round < 30 && !core_ended(b.core); round++) {
			if (did(&b, ACT_OFFERS, -1) && both)
				tell(&b,
				     (struct event){.type = EV_OFFERS,
						    .provider = 1,
						    .err = &(struct err){.kind = ERR_CONFIG,
									 .msg = "no such GPU"}});
			else if (did(&b, ACT_OFFERS, -1))
				tell(&b,
				     (struct event){.type = EV_OFFERS, .provider = 1, .count = 0});
			if (!core_ended(b.core))
				wait_ms(&b, core_wake_at(b.core) - b.now);
		}
		check_int("two vendors", "exit", exit_status(&b), both ? 2 : 4);
		check_int("two vendors", "waited", (b.now - began_at) / 1000, both ? 0 : 60);
		tear_down(&b);
	}
}

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
	check_int("first", "questions", did(&b, ACT_VOLUME, -1), 1);
	tell(&b, (struct event){.type = EV_VOLUME_FILLS});
	for (int k = 0; k < 20; k++) {
		wait_ms(&b, MINUTE);
		check_int("filled", "other questions",
			  did(&b, ACT_VOLUME, -1) + did(&b, ACT_OFFERS, -1) + did(&b, ACT_NOTE, -1),
			  0);
	}
	tell(&b, (struct event){.type = EV_VOLUME, .volume = &v});
	check_int("full", "questions", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_int("full", "creates", did(&b, ACT_RENT, -1), 1);
	tear_down(&b);
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
		check_int("sold out", "the next vendor's volume", did(&b, ACT_VOLUME, -1), 1);
		tell(&b, (struct event){.type = EV_VOLUME_FILLS, .provider = 1});
		for (int64_t began_at = b.now;
		     !core_stopping(b.core) && b.now < began_at + 60 * MINUTE;) {
			creates = sell_out(&b, &o, creates, lists);
			check_int("filled", "time passes", core_wake_at(b.core) > b.now, true);
			wait_ms(&b, MIN(core_wake_at(b.core) - b.now, MINUTE));
		}
		check_int("filled", "creates", creates >= 50, true);
		check_int("filled", "stopping", core_stopping(b.core), false);
		int64_t over_at = b.now;
		creates = sell_out(&b, &o, creates, lists);
		tell(&b, (struct event){
				 .type = EV_VOLUME,
				 .provider = 1,
				 .err = &(struct err){.kind = ERR_TRANSIENT, .msg = "no answer"}});
		while (!core_stopping(b.core) && b.now < over_at + 60 * MINUTE) {
			creates = sell_out(&b, &o, creates, lists);
			if (!core_stopping(b.core))
				wait_ms(&b, MIN(core_wake_at(b.core) - b.now, MINUTE));
		}
		check_int("over", "waited", (b.now - over_at) / 1000, 600);
		check_int("over", "exit", exit_status(&b), 6);
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
	check_int("at first", "creates", did(&b, ACT_RENT, -1), 2);
	bring_up(&b, 0);
	tell_err(&b, EV_RENT_FAILED, 1, ERR_NO_CAPACITY);
	for (int64_t until = b.now + 5 * MINUTE; b.now < until; wait_ms(&b, 5 * SECOND)) {
		creates = sell_out(&b, &o, creates, true);
		list_running(&b, 0);
		creates = sell_out(&b, &o, creates, true);
	}
	check_int("meanwhile", "creates", creates >= 5, true);
	check_phase(&b, "meanwhile", 0, POD_WORKING);
	list_in(&b, POD_STATE_GONE, 0, -1);
	check_phase(&b, "lost", 0, POD_GONE);
	check_int("lost", "stopping", core_stopping(b.core), false);
	int64_t lost_at = b.now, before = creates;
	while (!core_stopping(b.core) && b.now < lost_at + 10 * MINUTE) {
		creates = sell_out(&b, &o, creates, true);
		if (!core_stopping(b.core))
			wait_ms(&b, MIN(core_wake_at(b.core) - b.now, MINUTE));
	}
	check_int("lost", "creates", creates > before, true);
	/* the first refusal came after 15 s */
	check_int("lost", "waited s", (b.now - lost_at) / 1000, 75);
	check_int("lost", "exit", exit_status(&b), 4);
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
		check_int("first", "questions", did(&b, ACT_OFFERS, -1), 1);
		wait_ms(&b, ASK_PATIENCE_MS + SECOND);
		check_int("in vain", "questions", did(&b, ACT_OFFERS, -1), vendors - 1);
		assert_string_equal(first(&b, ACT_NOTE)->text,
				    "alpha has not answered for 30 s what it offers (its rate "
				    "limit may be used up)");
		if (vendors == 2) {
			check_int("the next", "whom", first(&b, ACT_OFFERS)->provider, 1);
			COPY_TEXT(o.provider, "beta");
			tell(&b,
			     (struct event){
				     .type = EV_OFFERS, .provider = 1, .offers = &o, .count = 1});
			check_int("the next", "creates", did(&b, ACT_RENT, -1), 1);
		} else {
			wait_ms(&b, b.conf.wait_ms);
			check_int("alone", "stopping", core_stopping(b.core), true);
			check_int("alone", "exit", exit_status(&b), 6);
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
		wait_ms(&b, ASK_PATIENCE_MS + SECOND);
		COPY_TEXT(o.provider, "beta");
		while (!core_stopping(b.core) && b.now < began_at + 20 * MINUTE) {
			if (did(&b, ACT_OFFERS, -1))
				tell(&b, (struct event){.type = EV_OFFERS,
							.provider = 1,
							.offers = &o,
							.count = 1});
			while (did(&b, ACT_RENT, -1)) {
				creates++;
				tell_err(&b, EV_RENT_FAILED, next++, ERR_NO_CAPACITY);
			}
			if (!core_stopping(b.core))
				wait_ms(&b, MIN(core_wake_at(b.core) - b.now, MINUTE));
		}
		check_int("sold out", "creates", creates >= (for_ever ? 18 : 9), true);
		check_int("sold out", "stopping", core_stopping(b.core), !for_ever);
		if (!for_ever) {
			check_int("sold out", "waited", (b.now - began_at) / 1000, 600);
			check_int("sold out", "exit", exit_status(&b), 6);
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
	wait_ms(&b, ASK_PATIENCE_MS + SECOND);
	COPY_TEXT(o.provider, "beta");
	past.bad_until_ms = WALL_MS + b.now + HOUR;
	tell(&b,
	     (struct event){
		     .type = EV_OFFERS, .provider = 1, .offers = &o, .past = &past, .count = 1});
	check_int("nothing else is to be had", "creates", did(&b, ACT_RENT, -1), 1);
	tear_down(&b);
}

/* What is told of the time to go counts what pods hold as well. */
static void test_what_is_left(void **state)
{
	struct offer o = offer(0, 1000000);
	struct core_summary before, after;
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_with(&b, &o, 1);
	core_summary(b.core, b.now, &before);
	bring_up(&b, 0);
	assert_true(did(&b, ACT_SEND, 0) > 0);
	core_summary(b.core, b.now, &after);
	assert_true(before.weight_left > 0);
	assert_true(after.weight_left == before.weight_left);
	tear_down(&b);
}

static struct core_outlook outlook(const struct bench *b)
{
	struct core_outlook o;

	core_outlook(b->core, b->now, &o);
	return o;
}

/* A pod that boots is expected after a minute where nothing is known of it; then the segments take
 * their estimates; then the pod is released, and seen to be gone. */
static void test_outlook_of_one_pod(void **state)
{
	struct offer o = offer(0, 3600000); /* $0.001 a second */
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start(&b);
	check_int("no offer yet", "render", outlook(&b).render_ms, -1);
	check_int("no offer yet", "total", outlook(&b).total_microusd, -1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_int("renting", "render", outlook(&b).render_ms, 64000);
	check_int("renting", "gone", outlook(&b).gone_ms, 64000 + 5000 + 1500);
	check_int("renting", "total", outlook(&b).total_microusd, 65500);
	rented(&b, 0);
	b.now += 50000;
	check_int("overdue soon", "render", outlook(&b).render_ms, 15000 + 4000);
	check_int("overdue soon", "total", outlook(&b).total_microusd, 50000 + 20500);
	list_running(&b, 0);
	connected(&b, 0);
	tell(&b, (struct event){.type = EV_SHARED_READY, .pod = 0});
	tell(&b, (struct event){.type = EV_WORKERS, .pod = 0, .number = 1});
	check_phase(&b, "at work", 0, POD_WORKING);
	check_int("at work", "render", outlook(&b).render_ms, 4000);
	check_int("at work", "stopping", outlook(&b).stopping, false);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 2});
	check_int("stopped", "stops", outlook(&b).stops, 1);
	check_int("stopped", "stopping", outlook(&b).stopping, true);
	check_int("stopped", "render", outlook(&b).render_ms, 0);
	tear_down(&b);
}

/* The second pod helps from when it is up. */
static void test_outlook_counts_pods_that_boot(void **state)
{
	struct offer o[2] = {offer(0, 3600000), offer(0, 3600000)};
	struct bench b;

	(void)state;
	set_up(&b, 8);
	b.conf.pods = 2;
	b.conf.at_once = true;
	for (size_t i = 0; i < 8; i++)
		b.segments[i].est_s = 30;
	start_with(&b, o, 2);
	check_int("two", "pods", core_pod_count(b.core), 2);
	check_int("both boot", "render", outlook(&b).render_ms, 60000 + 120000);
	b.now += 20000;
	bring_up(&b, 0);
	int64_t cold_ms = pod(&b, 0)->ready_at - pod(&b, 0)->create_at;
	int64_t left_ms = MAX(cold_ms - (b.now - pod(&b, 1)->create_at), cold_ms / 4);
	check_int("one works", "render", outlook(&b).render_ms, left_ms + (240000 - left_ms) / 2);
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
	assert_true(core_ended(b.core));
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
	check_int("at first", "it is made", first(&b, ACT_VOLUME)->flag, false);
	tell_err(&b, EV_VOLUME, 0, ERR_NOT_FOUND);
	check_int("missing", "offers are asked for", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .err = &sold_out});
	check_int("sold out", "volumes", did(&b, ACT_VOLUME, -1), 0);
	wait_ms(&b, MINUTE);
	check_int("later", "offers are asked for", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &dear, .count = 1});
	check_int("too dear", "volumes", did(&b, ACT_VOLUME, -1), 0);
	wait_ms(&b, 2 * MINUTE);
	check_int("still", "offers are asked for", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = o, .count = 3});
	check_int("free", "it is made", first(&b, ACT_VOLUME)->flag, true);
	check_int("free", "creates of pods", did(&b, ACT_RENT, -1), 0);
	check_int("free", "regions", core_offer_regions(b.core, 0, regions, ARRAY_LEN(regions)), 2);
	assert_string_equal(regions[0], "west");
	assert_string_equal(regions[1], "east");
	wait_ms(&b, 1000);
	check_int("meanwhile", "creates and volumes",
		  did(&b, ACT_RENT, -1) + did(&b, ACT_VOLUME, -1), 0);
	tell(&b, (struct event){.type = EV_VOLUME, .volume = &v});
	check_int("made", "creates before it is known what is there", did(&b, ACT_RENT, -1), 0);
	check_int("made", "offers are asked for", did(&b, ACT_OFFERS, -1), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = o, .count = 1});
	check_int("made", "creates", did(&b, ACT_RENT, -1), 1);
	assert_string_equal(pod(&b, 0)->volume.id, "v1");
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
	check_int("free", "it is made", first(&b, ACT_VOLUME)->flag, true);
	tell(&b, (struct event){.type = EV_VOLUME, .err = &lost});
	check_int("lost", "who is asked", first(&b, ACT_VOLUME)->provider, 1);
	check_int("lost", "it is made there", first(&b, ACT_VOLUME)->flag, false);
	tell(&b, (struct event){.type = EV_VOLUME, .provider = 1, .err = &lost});
	wait_ms(&b, MINUTE);
	check_int("again", "who is asked", first(&b, ACT_VOLUME)->provider, 0);
	check_int("again", "it is made", first(&b, ACT_VOLUME)->flag, false);
	tear_down(&b);
}

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
		assert_int_equal(atoi(pod(&b, i)->offer.id), want[i]);
		tell_err(&b, EV_RENT_FAILED, i, ERR_NO_CAPACITY);
	}
	tear_down(&b);
}

/* Three cheap spot offers and one on demand: after two refusals the one on demand goes first, and
 * is kept to. */
static void test_spot_refused_twice(void **state)
{
	struct offer offers[] = {offer(0, 300000), offer(0, 310000), offer(0, 320000),
				 offer(0, 900000)};
	static const int want[] = {0, 1, 3, 2};
	struct bench b;

	(void)state;
	for (int i = 0; i < 4; i++) {
		snprintf(offers[i].id, sizeof(offers[i].id), "%d", i);
		offers[i].spot = i < 3;
	}
	set_up(&b, 4);
	start_with(&b, offers, 4);
	/* when that one is refused too, spot is better than nothing */
	for (int i = 0; i < 4; i++) {
		check_int("spot", "offer", atoi(pod(&b, i)->offer.id), want[i]);
		tell_err(&b, EV_RENT_FAILED, i, ERR_NO_CAPACITY);
	}
	tear_down(&b);
	/* a price that the caps forbid is no other way */
	set_up(&b, 4);
	b.conf.max_price_microusd_h = 500000;
	start_with(&b, offers, 4);
	for (int i = 0; i < 3; i++) {
		check_int("too dear", "offer", atoi(pod(&b, i)->offer.id), i);
		tell_err(&b, EV_RENT_FAILED, i, ERR_NO_CAPACITY);
	}
	tear_down(&b);
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
		check_int(prices[i].name, "releases", did(&b, ACT_RELEASE, 0), !prices[i].kept);
		check_int(prices[i].name, "creates", did(&b, ACT_RENT, -1), 0);
		check_int(prices[i].name, "price", pod(&b, 0)->price_microusd_h,
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
		     (struct event){.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b.now});
		check_phase(&b, prices[i].name, 0, prices[i].kept ? POD_CONNECTING : POD_RELEASING);
		check_int(prices[i].name, "releases", did(&b, ACT_RELEASE, 0), !prices[i].kept);
		check_int(prices[i].name, "price", pod(&b, 0)->price_microusd_h,
			  MAX(prices[i].price, INT64_C(1000000)));
		tear_down(&b);
	}
}

/* ---- a create whose reply was lost ---- */

static void start_ambiguous(struct bench *b)
{
	set_up(b, 4);
	b->conf.wait_ms = HOUR;
	start_simply(b);
	b->now += 2 * SECOND;
	tell_err(b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
}

static void test_ambiguous_is_adopted(void **state)
{
	struct bench b;

	(void)state;
	start_ambiguous(&b);
	assert_int_equal(did(&b, ACT_LIST, -1), 1);
	struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
	struct pod_view other = v; /* bears another attempt's name: not ours to adopt */
	COPY_TEXT(other.id, "px");
	COPY_TEXT(other.marker.run, "r2");
	struct pod_view both[] = {other, v};
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_LISTED, .views = both, .count = 2, .asked_at = b.now});
	check_phase(&b, "found by its name", 0, POD_CONNECTING);
	assert_string_equal(pod(&b, 0)->id, "p0");
	assert_int_equal(core_pod_count(b.core), 1);
	check_saved_first(&b, "adopted", ACT_CONNECT, 0);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	tear_down(&b);
}

/* Its client died before it heard of it, and it ended itself: vendors that list such pods have it
 * for ever. */
static void test_ambiguous_is_found_when_it_is_over(void **state)
{
	struct bench b;

	(void)state;
	start_ambiguous(&b);
	struct pod_view v = view_of(&b, 0, POD_STATE_GONE);
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b.now});
	check_phase(&b, "found by its name, and gone", 0, POD_GONE);
	assert_string_equal(pod(&b, 0)->id, "p0");
	assert_int_equal(core_pod_count(b.core), 2); /* another one does its work */
	tear_down(&b);
}

/* The answer to its create was held up for longer than its offer's pods take to boot. */
static void test_ambiguous_is_adopted_late(void **state)
{
	struct offer o = offer(0, 1000000);
	struct offer_past past = {.boot_ms = 15 * SECOND};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start(&b);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .past = &past, .count = 1});
	check_int("limit", "s", pod(&b, 0)->boot_limit_ms / 1000, 60);
	b.now += 2 * MINUTE;
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	list_in(&b, POD_STATE_RUNNING, 0, -1);
	check_phase(&b, "it has been there all the time", 0, POD_CONNECTING);
	wait_ms(&b, 59 * SECOND);
	check_phase(&b, "it may be reached", 0, POD_CONNECTING);
	wait_ms(&b, 2 * SECOND);
	check_phase(&b, "but not for ever", 0, POD_RELEASING);
	tear_down(&b);
}

static const struct {
	const char *name;
	int64_t looks_s[4]; /* when a listing without it was asked for, after the reply was lost */
	enum pod_phase phase;
} lost_creates[] = {
	{"one look is no proof", {60}, POD_AMBIGUOUS},
	{"two looks 59 s apart are none", {1, 60}, POD_AMBIGUOUS},
	{"two looks 60 s apart are none: the first may have come too early",
	 {1, 61},
	 POD_AMBIGUOUS},
	{"nor with one soon after", {1, 61, 65}, POD_AMBIGUOUS},
	{"two of them 60 s after the first are", {1, 61, 66}, POD_NEVER},
	{"looks between do not matter", {1, 40, 61, 66}, POD_NEVER},
	{"what was asked before the loss does not count", {-1, 59}, POD_AMBIGUOUS},
};

static void test_ambiguous_is_given_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lost_creates); i++) {
		const char *name = lost_creates[i].name;
		struct bench b;
		start_ambiguous(&b);
		int64_t lost_at = b.now;
		for (int k = 0; k < 4 && lost_creates[i].looks_s[k]; k++) {
			check_phase(&b, name, 0, POD_AMBIGUOUS);
			check_int(name, "creates meanwhile", did(&b, ACT_RENT, -1), 0);
			int64_t asked = lost_at + lost_creates[i].looks_s[k] * SECOND;
			b.now = MAX(b.now, asked);
			tell(&b, (struct event){.type = EV_LISTED, .asked_at = asked});
		}
		check_phase(&b, name, 0, lost_creates[i].phase);
		/* it may have lived unseen all the time: the cap counts it until now, at $1 an hour
		 */
		bool over = lost_creates[i].phase == POD_NEVER;
		int64_t most = money_for(1000000, over ? b.now - pod(&b, 0)->create_at
						       : 24 * HOUR + SELF_END_MS);
		check_int(name, "counted",
			  b.core->spent_microusd + (over ? 0 : budget_committed(b.core)), most);
		/* only then may something else be rented, under a name of its own */
		b.now += 3 * SECOND;
		struct offer o = offer(0, 1000000);
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_int(name, "creates", did(&b, ACT_RENT, -1),
			  lost_creates[i].phase == POD_NEVER);
		tear_down(&b);
	}
}

static void test_ambiguous_is_looked_for_often_at_first(void **state)
{
	struct bench b;
	int early = 0, looks = 0;

	(void)state;
	start_ambiguous(&b);
	int64_t lost_at = b.now;
	while (pod(&b, 0)->phase == POD_AMBIGUOUS && looks < 1000) {
		b.now += 100;
		list_nothing(&b);
		looks++;
		early += b.now - lost_at < 5 * SECOND;
		if (!did(&b, ACT_LIST, -1))
			wait_ms(&b, core_wake_at(b.core) - b.now);
	}
	check_int("in the first 5 s", "looks", early >= 4 && early <= 6, 1);
	check_int("in all", "looks", looks >= 8 && looks <= 24, 1);
	tear_down(&b);
}

static void test_surfaces_after_all(void **state)
{
	struct bench b;

	(void)state;
	start_ambiguous(&b);
	list_nothing(&b);
	b.now += MINUTE;
	list_nothing(&b);
	b.now += 5 * SECOND;
	list_nothing(&b);
	check_phase(&b, "given up", 0, POD_NEVER);
	b.now += SECOND;
	list_running(&b, 0);
	check_phase(&b, "it was there all the same", 0, POD_RELEASING);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
	tear_down(&b);
}

static void test_second_pod_of_one_create(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	rented(&b, 0);
	struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
	COPY_TEXT(v.id, "twin");
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b.now});
	check_phase(&b, "a pod too many", 1, POD_RELEASING);
	assert_int_equal(did(&b, ACT_RELEASE, 1), 1);
	assert_string_not_equal(pod(&b, 0)->attempt, pod(&b, 1)->attempt);
	check_phase(&b, "the one we know", 0, POD_BOOTING);
	tear_down(&b);
}

static void work_and_be_gone(struct bench *b)
{
	connected(b, 0);
	tell(b, (struct event){.type = EV_SHARED_READY, .pod = 0});
	tell(b, (struct event){.type = EV_WORKERS, .pod = 0, .number = 1});
	for (uint32_t batch = 0; pod(b, 0)->phase == POD_WORKING; batch++)
		render_batch(b, 0, batch, SECOND, true);
	tell(b, (struct event){.type = EV_RELEASED, .pod = 0});
	for (int k = 0; k < 3; k++) {
		b->now += 6 * SECOND;
		list_nothing(b);
	}
	check_phase(b, "gone", 0, POD_GONE);
}

/* A create whose answer was lost may have made two: one is found, does the work and is gone. When
 * the answer was lost. */
static int64_t lose_sight_of_a_twin(struct bench *b)
{
	start_ambiguous(b);
	int64_t lost_at = b->now;
	list_running(b, 0);
	work_and_be_gone(b);
	return lost_at;
}

static void check_for_a_twin(struct bench *b, int64_t lost_at)
{
	check_int("another may surface", "ended", core_ended(b->core), false);
	wait_ms(b, lost_at + SURFACE_LIMIT_MS - 1 - b->now);
	int looks = did(b, ACT_LIST, -1);
	wait_ms(b, 1);
	check_int("a minute after the loss", "looks", looks + did(b, ACT_LIST, -1), 1);
	list_nothing(b);
	check_int("none did", "ended", core_ended(b->core), true);
	check_int("none did", "exit", exit_status(b), 0);
}

/* ... the other may surface late. */
static void test_late_twin_of_a_lost_create(void **state)
{
	struct bench b;

	(void)state;
	int64_t lost_at = lose_sight_of_a_twin(&b);
	check_for_a_twin(&b, lost_at);
	tear_down(&b);
}

/* ... also where the first one was listed before the answer was lost. */
static void test_late_twin_of_one_that_was_listed(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	b.now += 2 * SECOND;
	list_running(&b, 0);
	check_phase(&b, "listed", 0, POD_RENTING);
	b.now += SECOND;
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	int64_t lost_at = b.now;
	work_and_be_gone(&b);
	check_for_a_twin(&b, lost_at);
	tear_down(&b);
}

/* Late twins are noticed also while no pod needs a look and nothing can be rented. */
static void test_late_twin_while_nothing_is_offered(void **state)
{
	struct bench b;
	bool seen = false;

	(void)state;
	start_ambiguous(&b);
	int64_t surfaces_at = b.now + 40 * SECOND;
	list_in(&b, POD_STATE_STOPPED, 0, -1);
	struct pod_view twin = view_of(&b, 0, POD_STATE_RUNNING);
	COPY_TEXT(twin.id, "twin");
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
	tell_err(&b, EV_RENT_FAILED, 1, ERR_NO_CAPACITY);
	tell(&b, (struct event){.type = EV_OFFERS});
	for (int turn = 0; turn < 200 && !seen; turn++) {
		seen = b.now >= surfaces_at;
		tell(&b,
		     (struct event){
			     .type = EV_LISTED, .views = &twin, .count = seen, .asked_at = b.now});
		while (!seen && b.now < surfaces_at + MINUTE && !did(&b, ACT_LIST, -1)) {
			int64_t wake_at = core_wake_at(b.core);
			wait_ms(&b, MAX(wake_at - b.now, 1));
			if (did(&b, ACT_OFFERS, -1))
				tell(&b, (struct event){.type = EV_OFFERS});
		}
	}
	assert_int_equal(core_pod_count(b.core), 3);
	check_phase(&b, "the twin", 2, POD_RELEASING);
	assert_in_range(b.now, surfaces_at, surfaces_at + TWIN_LOOK_MS);
	check_phase(&b, "the one that was found first", 0, POD_GONE);
	tear_down(&b);
}

/* ... and when no list can be had by then, nobody knows whether there is one. */
static void test_lost_sight_of_a_lost_create(void **state)
{
	struct bench b;

	(void)state;
	lose_sight_of_a_twin(&b);
	for (int k = 0; k < 20 && !core_ended(b.core); k++) {
		tell_err(&b, EV_LISTED, 0, ERR_NETWORK);
		if (!core_ended(b.core))
			wait_ms(&b, core_wake_at(b.core) - b.now);
	}
	check_int("no list", "ended", core_ended(b.core), true);
	check_int("no list", "exit", exit_status(&b), 9);
	tear_down(&b);
}

/* ... nor by when the vendor, by its limits, may be asked again: the exit does not wait for that.
 */
static void test_last_look_that_limits_keep_back(void **state)
{
	struct err err = {0};
	struct bench b;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	rented(&b, 0);
	err_set(&err, ERR_RATE_LIMITED, "no room");
	err.retry_after_ms = 12 * HOUR;
	tell(&b, (struct event){.type = EV_LISTED, .err = &err});
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
	wait_ms(&b, CONFIRM_LIMIT_MS + LAST_LOOK_MS);
	check_int("limits", "ended", core_ended(b.core), true);
	check_int("limits", "exit", exit_status(&b), 9);
	tear_down(&b);
}

/* A list that never comes, as when the caller waits for room: a run that is told to end does. */
static void test_ambiguous_and_a_signal(void **state)
{
	struct bench b;

	(void)state;
	start_ambiguous(&b);
	wait_ms(&b, 10 * SECOND);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
	wait_ms(&b, 4 * MINUTE);
	check_int("looked for", "ended", core_ended(b.core), false);
	wait_ms(&b, 2 * MINUTE);
	check_int("given up", "ended", core_ended(b.core), true);
	check_int("given up", "exit", exit_status(&b), 9);
	tear_down(&b);
}

/* Its vendor cannot be asked any more: the work goes to the next one, and what it may cost stays
 * counted. */
static void test_ambiguous_out_of_sight(void **state)
{
	struct offer o = offer(0, 1000000), other = offer(1, 2000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.provider_count = 2;
	b.conf.max_cost_microusd = 0;
	start_with(&b, &o, 1);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	int64_t lost_at = b.now;
	while (b.core->vendors[1].offers_ask == ASK_NOT) {
		tell_err(&b, EV_LISTED, 0, ERR_TRANSIENT);
		wait_ms(&b, core_wake_at(b.core) - b.now);
		assert_true(b.now < lost_at + OUT_OF_SIGHT_MS + 30 * SECOND &&
			    !did(&b, ACT_RENT, -1));
	}
	assert_true(b.now >= lost_at + OUT_OF_SIGHT_MS);
	int64_t held = budget_committed(b.core);
	tell(&b, (struct event){.type = EV_OFFERS, .provider = 1, .offers = &other, .count = 1});
	check_int("elsewhere", "creates", did(&b, ACT_RENT, -1), 1);
	check_int("elsewhere", "provider", pod(&b, 1)->provider, 1);
	check_phase(&b, "the lost one", 0, POD_AMBIGUOUS);
	assert_true(held > 0 && budget_committed(b.core) > held);
	tear_down(&b);
}

/* ... and where the cap leaves no room beside it, the run ends when it has waited as long as it was
 * told to. */
static void test_ambiguous_holds_the_cap(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.wait_ms = HOUR;
	b.conf.max_cost_microusd = 2000000;
	start_simply(&b);
	tell_err(&b, EV_RENT_FAILED, 0, ERR_AMBIGUOUS);
	for (int k = 0; k < 59 && !core_stopping(b.core); k++) {
		tell_err(&b, EV_LISTED, 0, ERR_TRANSIENT);
		wait_ms(&b, MINUTE);
	}
	check_int("an hour", "stopping", core_stopping(b.core), false);
	tell_err(&b, EV_LISTED, 0, ERR_TRANSIENT);
	wait_ms(&b, 2 * MINUTE);
	check_int("an hour", "stopping", core_stopping(b.core), true);
	tear_down(&b);
}

/* An attempt of an earlier client whose key was another one: that this one sees nothing proves
 * nothing, and it is no use to wait. */
static void test_lost_create_of_another_key(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct core_pod was = {.phase = POD_AMBIGUOUS,
				       .attempt = "a1",
				       .elsewhere = true,
				       .price_microusd_h = 1000000};
		struct bench b;
		set_up(&b, 0);
		b.conf.reap = true;
		b.core = core_new(&b.conf, b.segments, b.count);
		was.create_at = b.now - MINUTE;
		was.hard_end_ms = b.now + HOUR - 2 * late * HOUR;
		was.hard_end_s = (WALL_MS + was.hard_end_ms) / 1000;
		core_adopt(b.core, &was);
		tell(&b, (struct event){.type = EV_START});
		for (int k = 0; k < 30 && !core_ended(b.core); k++) {
			b.now += 5 * SECOND;
			list_nothing(&b);
		}
		check_int("an attempt elsewhere", "ended", core_ended(b.core), true);
		check_int("an attempt elsewhere", "exit", exit_status(&b), late ? 0 : 9);
		tear_down(&b);
	}
}

/* ---- the canary ---- */

static void test_canary_before_width(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 200);
	b.conf.canary = true;
	b.conf.pods = 3;
	start_with(&b, &o, 1);
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	bring_up(&b, 0);
	assert_int_equal(did(&b, ACT_SEND, -1), 1);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	assert_int_equal(core_batch_at(b.core, 0)->count, CORE_CANARY);
	began(&b, 0, 0);
	b.now += SECOND;
	uint32_t segment = core_batch_at(b.core, 0)->segments[0];
	rendered(&b, 0, segment);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	safe(&b, 0, segment, true);
	assert_true(did(&b, ACT_SEND, 0) > 0); /* the way is open */
	/* how long the rest will take is not known yet */
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	tear_down(&b);
}

/* A segment whose file is missing took its worker's time: it does not make the others look slow, so
 * that a second pod is rented. */
static void test_a_failed_segment_is_measured(void **state)
{
	double rates[2], paces[2];

	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		struct bench b;
		set_up(&b, 100);
		b.conf.canary = true;
		start_simply(&b);
		bring_up(&b, 0);
		const struct core_batch k = *core_batch_at(b.core, 0);
		began(&b, 0, 0);
		for (int i = 0; i < CORE_CANARY; i++) {
			b.now += SECOND;
			if (i == 1 && fails) {
				struct err err;
				err_set(&err, ERR_NOT_FOUND, "no such file");
				tell(&b, (struct event){.type = EV_SEGMENT_FAILED,
							.pod = 0,
							.segment = k.segments[i],
							.err = &err});
			} else {
				rendered(&b, 0, k.segments[i]);
			}
		}
		rates[fails] = dispatch_rate(b.core);
		paces[fails] = dispatch_rate_at_best(b.core);
		tear_down(&b);
	}
	assert_true(rates[0] > 0 && rates[1] == rates[0]);
	assert_true(paces[0] > 0 && paces[1] == paces[0]);
}

/* A deadline takes all of them: they come up side by side, and the first one up has the canary. */
static void test_all_at_once_for_a_deadline(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 200);
	b.conf.canary = true;
	b.conf.pods = 3;
	b.conf.at_once = true;
	start_with(&b, &o, 1);
	check_int("at once", "pods rented", core_pod_count(b.core), 3);
	bring_up(&b, 1);
	assert_int_equal(did(&b, ACT_SEND, 1), 1);
	assert_int_equal(core_batch_at(b.core, 0)->count, CORE_CANARY);
	bring_up(&b, 0);
	assert_int_equal(did(&b, ACT_SEND, 0), 0); /* not before it is known that the job works */
	began(&b, 1, 0);
	b.now += SECOND;
	uint32_t segment = core_batch_at(b.core, 0)->segments[0];
	rendered(&b, 1, segment);
	safe(&b, 1, segment, true);
	assert_true(did(&b, ACT_SEND, 0) > 0);
	tear_down(&b);
}

/* ---- planned again ---- */

/* A second for each segment, on either of two GPUs; pods come up in 15 s. */
static const struct core_forecast forecasts[] = {
	{.provider = "alpha",
	 .gpu = "GPU 0",
	 .speed.each_s = 1,
	 .measured = true,
	 .batch_max = 4,
	 .cold_p50_s = 15,
	 .cold_p90_s = 20},
	{.provider = "alpha",
	 .gpu = "GPU 1",
	 .speed.each_s = 1,
	 .measured = true,
	 .batch_max = 4,
	 .cold_p50_s = 15,
	 .cold_p90_s = 20},
};

static void set_up_planned(struct bench *b, size_t segments, int64_t deadline_s)
{
	set_up(b, segments);
	b->conf.plan = (struct core_plan){.forecasts = forecasts,
					  .forecast_count = ARRAY_LEN(forecasts),
					  .deadline_ms = deadline_s * SECOND,
					  .pods_most = 4,
					  .pods_open = true,
					  .gpus_open = true};
}

/* This pod renders so many of the batches that it has, each segment in so many ms. */
static void work_on(struct bench *b, int i, int batches, int64_t each_ms)
{
	for (uint32_t n = 0; batches && n < b->core->batch_count; n++) {
		const struct core_batch *k = core_batch_at(b->core, n);
		if (k->pod != i || k->over || k->started)
			continue;
		render_batch(b, i, n, each_ms * (int64_t)k->count, true);
		batches--;
	}
	assert_int_equal(batches, 0);
}

static void check_said(const struct bench *b, const char *name, const char *words)
{
	if (!core_replans(b->core) ||
	    !strstr(core_replan_said(b->core, core_replans(b->core) - 1), words))
		fail_msg("%s: it said \"%s\", not \"%s\"", name,
			 core_replans(b->core)
				 ? core_replan_said(b->core, core_replans(b->core) - 1)
				 : "",
			 words);
}

static void test_slower_or_faster_than_planned(void **state)
{
	static const struct {
		const char *name;
		int64_t deadline_s, each_ms;
		int pods; /* rented in all */
		bool fixed;
		const char *said;
	} cases[] = {
		{"1.9 times as slow", 300, 1900, 1, false, NULL},
		{"2.1 times as slow", 300, 2100, 2, false,
		 "slower than planned: 2.1 s a segment on GPU 0 instead of 1 s; renting 1 more pod "
		 "with GPU 0 to keep the deadline: about "},
		{"four times", 300, 4000, 4, false, "renting 3 more pods"},
		{"there is time enough", 3000, 4000, 1, false, NULL},
		{"nobody waits", 0, 4000, 1, false, NULL},
		{"the width is the user's", 700, 4000, 1, true, NULL}, /* a little late */
		{"faster", 300, 300, 1, false, NULL},
		{"out of reach", 100, 20000, 1, false, "the deadline cannot be met"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up_planned(&b, 200, cases[i].deadline_s);
		if (cases[i].fixed)
			b.conf.plan.pods_most = b.conf.plan.pods_open = 0;
		start_simply(&b);
		bring_up(&b, 0);
		work_on(&b, 0, 2, cases[i].each_ms);
		check_int(cases[i].name,
			  "re-plans after a worker's first batch, and one more of its batches",
			  core_replans(b.core) && cases[i].each_ms < 5000, 0);
		work_on(&b, 0, 1, cases[i].each_ms);
		check_int(cases[i].name, "pods", core_pod_count(b.core), cases[i].pods);
		check_int(cases[i].name, "re-plans", core_replans(b.core), cases[i].said != NULL);
		if (cases[i].said)
			check_said(&b, cases[i].name, cases[i].said);
		tear_down(&b);
	}
}

/* What is in the hands of its worker is rendered, and kept. */
static void test_stops_for_a_deadline(void **state)
{
	struct bench b;

	(void)state;
	set_up_planned(&b, 200, 100);
	start_simply(&b);
	bring_up(&b, 0);
	work_on(&b, 0, 1, 20000);
	began(&b, 0, 1);
	began(&b, 0, 2);
	b.now += 80 * SECOND;
	done(&b, 0, 1);
	check_said(&b, "stop", "stopping when the current batches are done");
	assert_int_equal(did(&b, ACT_REVOKE, 0), 1);
	check_phase(&b, "while it renders", 0, POD_WORKING);
	b.now += SECOND;
	const struct core_batch k = *core_batch_at(b.core, 2);
	for (size_t n = 0; n < k.count; n++) {
		rendered(&b, 0, k.segments[n]);
		safe(&b, 0, k.segments[n], true);
	}
	done(&b, 0, 2);
	tell(&b, (struct event){.type = EV_REVOKED, .pod = 0, .batch = 3});
	end_well(&b);
	assert_int_equal(exit_status(&b), 5);
	assert_string_equal(summary(&b).status, "capped");
	assert_non_null(strstr(summary(&b).err.msg, "`burst resume r1` continues from here"));
	assert_int_equal(summary(&b).safe, 4 + k.count);
	assert_int_equal(core_pod_count(b.core), 1);
	tear_down(&b);
}

/* A price moves when one batch is done. By the forecast the deadline cannot be met; at the pace of
 * that batch it can. Where batches are as slow as that, it stops. */
static void test_does_not_stop_for_a_forecast(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		struct offer o = offer(0, 1000000);
		struct bench b;
		set_up_planned(&b, 200, 100);
		b.conf.plan.pods_most = b.conf.plan.pods_open = 0;
		start_with(&b, &o, 1);
		bring_up(&b, 0);
		work_on(&b, 0, slow ? 3 : 1, slow ? 10000 : 200);
		o.price_microusd_h = 1300000;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_int(slow ? "slow" : "fast", "stops", b.core->replan.stop.kind != ERR_NONE,
			  slow);
		check_int(slow ? "slow" : "fast", "re-plans", core_replans(b.core), slow);
		tear_down(&b);
	}
}

static void test_gives_back_what_comes_up(void **state)
{
	struct bench b;
	struct offer o = offer(0, 1000000);

	(void)state;
	set_up_planned(&b, 100, 0);
	b.conf.pods = 3;
	b.conf.at_once = true;
	start_with(&b, &o, 1);
	assert_int_equal(core_pod_count(b.core), 3);
	bring_up(&b, 0);
	rented(&b, 1);
	rented(&b, 2);
	work_on(&b, 0, 3, 330);
	check_said(&b, "faster",
		   "faster than planned: 0.33 s a segment on GPU 0 instead of 1 s; releasing 2 "
		   "pods that boot");
	check_phase(&b, "given back", 1, POD_RELEASING);
	check_phase(&b, "given back", 2, POD_RELEASING);
	wait_ms(&b, MINUTE);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	tear_down(&b);
}

/* GPU 1 costs 30 % less than it did, or GPU 0 costs more. */
static void test_prices_that_move(void **state)
{
	static const struct {
		const char *name;
		int64_t first, second;
		bool open, replaces;
	} cases[] = {
		{"a tenth more", 1090000, 1000000, true, false},
		{"no other price is better", 1120000, 1000000, true, false},
		{"another GPU is cheaper by 30 %", 1000000, 700000, true, true},
		{"by 15 %", 1000000, 850000, true, false},
		{"the GPUs are the user's", 1000000, 700000, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
		struct bench b;
		set_up_planned(&b, 400, 0);
		b.conf.plan.gpus_open = cases[i].open;
		start_with(&b, offers, 2);
		bring_up(&b, 0);
		wait_ms(&b, 5 * MINUTE + SECOND);
		check_int(cases[i].name, "looks at prices", did(&b, ACT_OFFERS, -1), cases[i].open);
		work_on(&b, 0, 2, 1000);
		offers[0].price_microusd_h = cases[i].first;
		offers[1].price_microusd_h = cases[i].second;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		check_int(cases[i].name, "re-plans", core_replans(b.core), cases[i].replaces);
		check_int(cases[i].name, "pods", core_pod_count(b.core), 1 + cases[i].replaces);
		if (cases[i].replaces) {
			check_said(&b, cases[i].name,
				   "the price of GPU 1 at alpha moved from $1.00 to $0.7000 an "
				   "hour; continuing with 1 pod of GPU 1");
			assert_string_equal(pod(&b, 1)->offer.gpu, "GPU 1");
			work_on(&b, 0, 1, 1000);
			/* it works until the other one does */
			assert_true(did(&b, ACT_SEND, 0) > 0);
			bring_up(&b, 1);
			assert_int_equal(did(&b, ACT_REVOKE, 0), 1);
			assert_int_equal(core_pod_count(b.core), 2);
		}
		tear_down(&b);
	}
}

/* With no room for both, the old one ends first. */
static void test_replaces_within_pods(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up_planned(&b, 400, 0);
	b.conf.plan.pods_most = b.conf.plan.pods_open = 0;
	start_with(&b, offers, 2);
	bring_up(&b, 0);
	wait_ms(&b, 5 * MINUTE + SECOND);
	work_on(&b, 0, 1, 1000);
	offers[1].price_microusd_h = 500000;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
	check_said(&b, "replaced", "continuing with 1 pod of GPU 1");
	assert_int_equal(core_pod_count(b.core), 1);
	tell(&b, (struct event){.type = EV_REVOKED, .pod = 0, .batch = 1});
	tell(&b, (struct event){.type = EV_REVOKED, .pod = 0, .batch = 2});
	check_phase(&b, "drained", 0, POD_RELEASING);
	assert_int_equal(core_pod_count(b.core), 2);
	assert_string_equal(pod(&b, 1)->offer.gpu, "GPU 1");
	tear_down(&b);
}

/* The second pod that the user allows was not worth it: while the old one works on, one new pod
 * takes its place, not two. */
static void test_replaces_one_of_two(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up_planned(&b, 44, 0);
	b.conf.canary = true;
	b.conf.pods = 2;
	b.conf.plan.pods_most = b.conf.plan.pods_open = 0;
	start_with(&b, offers, 2);
	bring_up(&b, 0);
	work_on(&b, 0, 2, 1000);
	assert_int_equal(core_pod_count(b.core), 1);
	offers[1].price_microusd_h = 300000;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
	check_said(&b, "replaced", "continuing with 1 pod of GPU 1");
	check_phase(&b, "the old one", 0, POD_WORKING);
	check_int("in its place", "pods", core_pod_count(b.core), 2);
	tear_down(&b);
}

/* The better GPU is sold out until 25 s of work are left. A pod of it would come up in 15 s, while
 * the old one works on: not worth it. */
static void test_replaces_too_late(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up_planned(&b, 44, 0);
	b.conf.canary = true;
	b.conf.wait_ms = HOUR;
	start_with(&b, offers, 2);
	bring_up(&b, 0);
	work_on(&b, 0, 2, 1000);
	offers[1].price_microusd_h = 300000;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
	check_said(&b, "replaced", "continuing with 1 pod of GPU 1");
	assert_string_equal(pod(&b, 1)->offer.gpu, "GPU 1");
	for (int i = 0; i < 3; i++) {
		int newest = core_pod_count(b.core) - 1;
		if (pod(&b, newest)->phase == POD_RENTING)
			tell_err(&b, EV_RENT_FAILED, newest, ERR_NO_CAPACITY);
		work_on(&b, 0, 1, 1000);
	}
	check_int("sold out", "segments done", summary(&b).safe, 19);
	int rented = core_pod_count(b.core);
	check_phase(&b, "the newest", rented - 1, POD_NEVER);
	wait_ms(&b, MINUTE);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
	check_int("at the end", "pods", core_pod_count(b.core), rented);
	check_phase(&b, "the old one", 0, POD_WORKING);
	tear_down(&b);
}

/* Its price, two hours for a segment, and a cap on cost of an hour. */
static void test_a_budget_for_nothing(void **state)
{
	struct bench b;

	(void)state;
	set_up_planned(&b, 200, 0);
	b.conf.max_cost_microusd = 1000000;
	start_simply(&b);
	bring_up(&b, 0);
	work_on(&b, 0, 1, 1000);
	began(&b, 0, 1);
	b.now += 58 * MINUTE;
	done(&b, 0, 1);
	check_said(&b, "no money", "stopping: the budget does not pay for one more segment");
	check_phase(&b, "no money", 0, POD_RELEASING);
	end_well(&b);
	assert_int_equal(exit_status(&b), 5);
	assert_int_equal(summary(&b).safe, 4);
	tear_down(&b);
}

/* Room is kept for pods that a plan may add: a pod holds its share of the cap until it ends. */
static void test_a_reserve_for_haste(void **state)
{
	struct bench b;

	(void)state;
	set_up_planned(&b, 200, 300);
	b.conf.max_cost_microusd = 1000000;
	b.conf.plan.cost_microusd = 60000;
	start_simply(&b);
	bring_up(&b, 0);
	assert_in_range(pod(&b, 0)->hard_end_ms - b.now, 28 * MINUTE, 30 * MINUTE);
	work_on(&b, 0, 3, 2100);
	assert_int_equal(core_pod_count(b.core), 2);
	assert_true(budget_committed(b.core) <= b.conf.max_cost_microusd);
	tear_down(&b);
}

static void test_two_plans_are_the_most(void **state)
{
	struct offer offers[] = {offer(0, 1000000), offer(1, 1000000)};
	struct bench b;

	(void)state;
	set_up_planned(&b, 1000, 0);
	start_with(&b, offers, 2);
	bring_up(&b, 0);
	for (int round = 1; round <= 3; round++) {
		const char *gpu = round % 2 ? "GPU 1" : "GPU 0";
		int had = core_pod_count(b.core);
		wait_ms(&b, 3 * MINUTE);
		offers[round % 2].price_microusd_h /= 4 * round;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		check_int("re-plans", gpu, core_replans(b.core), MIN(round, 2));
		check_int("pods", gpu, core_pod_count(b.core), round <= 2 ? had + 1 : had);
		if (round > 2)
			break;
		/* at once it is not planned again, whatever is heard */
		offers[round % 2].price_microusd_h /= 2;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		check_int("re-plans at once", gpu, core_replans(b.core), round);
		offers[round % 2].price_microusd_h *= 2;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		bring_up(&b, round);
		for (int i = 0; i < 20 && pod(&b, round - 1)->phase == POD_WORKING; i++)
			for (uint32_t n = 0; n < b.core->batch_count; n++)
				if (core_batch_at(b.core, n)->pod == round - 1 &&
				    !core_batch_at(b.core, n)->over)
					tell(&b, (struct event){.type = EV_REVOKED,
								.pod = round - 1,
								.batch = n});
		check_phase(&b, gpu, round - 1, POD_RELEASING);
	}
	tear_down(&b);
}

/* ---- whole runs by the virtual clock: pods come up in cold_ms, a worker takes ms_each for each
 * unit of weight ---- */

struct play {
	struct bench *b;
	int64_t cold_ms, ms_each;
	/* of each pod: its next segment is rendered; 0: it has no batch in hand */
	int64_t next_at[16];
	uint32_t batch[16];
	size_t segment[16];
};

static void come_up(struct play *p, int i)
{
	struct bench *b = p->b;

	list_running(b, i);
	connected(b, i);
	tell(b, (struct event){.type = EV_SHARED_READY, .pod = i});
	tell(b, (struct event){.type = EV_WORKERS, .pod = i, .number = 1});
}

static void next_segment(struct play *p, int i)
{
	const struct core_batch *k = core_batch_at(p->b->core, p->batch[i]);

	p->next_at[i] = p->b->now + (int64_t)(p->b->segments[k->segments[p->segment[i]]].weight *
					      (double)p->ms_each);
}

static void take_batch(struct play *p, int i)
{
	for (uint32_t n = 0; n < p->b->core->batch_count; n++) {
		const struct core_batch *k = core_batch_at(p->b->core, n);
		if (k->pod != i || k->over || k->started)
			continue;
		began(p->b, i, n);
		p->batch[i] = n;
		p->segment[i] = 0;
		next_segment(p, i);
		return;
	}
}

static void segment_done(struct play *p, int i)
{
	const struct core_batch k = *core_batch_at(p->b->core, p->batch[i]);
	uint32_t segment = k.segments[p->segment[i]];

	p->next_at[i] = 0;
	rendered(p->b, i, segment);
	safe(p->b, i, segment, true);
	if (++p->segment[i] < k.count)
		next_segment(p, i);
	else
		done(p->b, i, p->batch[i]);
}

static int64_t next_of(const struct play *p, int i)
{
	const struct core_pod *k = pod(p->b, i);

	if (k->phase < POD_WORKING)
		return k->create_at + p->cold_ms;
	return k->phase == POD_WORKING && p->next_at[i] ? p->next_at[i] : INT64_MAX;
}

static void play_pod(struct play *p, int i)
{
	struct bench *b = p->b;

	if (pod(b, i)->phase == POD_RENTING)
		rented(b, i);
	else if (pod(b, i)->phase < POD_WORKING && b->now >= pod(b, i)->create_at + p->cold_ms)
		come_up(p, i);
	else if (pod(b, i)->phase == POD_WORKING && p->next_at[i] && b->now >= p->next_at[i])
		segment_done(p, i);
	if (pod(b, i)->phase == POD_WORKING && !p->next_at[i])
		take_batch(p, i);
}

/* Until all segments are safe, or the run stops; returns how long that took. */
static int64_t play(struct bench *b, int64_t cold_ms, int64_t ms_each)
{
	struct play p = {.b = b, .cold_ms = cold_ms, .ms_each = ms_each};
	int64_t began_at = b->now;

	for (int turns = 0; !dispatch_settled(b->core) && !core_stopping(b->core); turns++) {
		assert_true(turns < 100000);
		for (int i = 0; i < core_pod_count(b->core); i++)
			play_pod(&p, i);
		if (dispatch_settled(b->core))
			break;
		int64_t at = core_wake_at(b->core);
		for (int i = 0; i < core_pod_count(b->core); i++)
			at = MIN(at, next_of(&p, i));
		b->now = MAX(b->now, at);
		if (b->now >= core_wake_at(b->core))
			tell(b, (struct event){.type = EV_TICK});
	}
	return b->now - began_at;
}

/* 20 min of work, pods that take 90 s, a deadline of 5 min: six pods at once take 90 + 200 s, where
 * a canary alone first would take 2 x 90 + 200 s. */
static void test_a_deadline_pays_one_cold_start(void **state)
{
	int64_t took[2];

	(void)state;
	for (int at_once = 0; at_once < 2; at_once++) {
		struct bench b;
		set_up(&b, 1000);
		for (size_t i = 0; i < b.count; i++)
			b.segments[i].weight = 1 + (double)(i % 3) / 10; /* 1.1 in the mean */
		b.conf.canary = true;
		b.conf.pods = 6;
		b.conf.at_once = at_once;
		start_simply(&b);
		took[at_once] = play(&b, 90 * SECOND, 1091);
		check_int("a deadline", "pods", core_pod_count(b.core), 6);
		check_int("a deadline", "segments", summary(&b).safe, 1000);
		tear_down(&b);
	}
	assert_in_range(took[1], 290 * SECOND, 300 * SECOND);
	assert_in_range(took[0], 350 * SECOND, 400 * SECOND);
}

/* Ten minutes of work were planned for one pod, and a deadline of 15 min. It takes 2.5 times as
 * long: more pods keep the deadline. */
static void test_a_new_plan_keeps_the_deadline(void **state)
{
	static const struct {
		int64_t deadline_s, ms_each;
		int pods;
		bool in_time;
	} cases[] = {{900, 1000, 1, true},
		     {900, 2500, 2, true},
		     {900, 4000, 4, true},
		     {2400, 2500, 1, true},
		     {0, 2500, 1, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		char name[32];
		snprintf(name, sizeof(name), "case %zu", i);
		set_up_planned(&b, 600, cases[i].deadline_s);
		b.conf.canary = true;
		start_simply(&b);
		int64_t took = play(&b, 60 * SECOND, cases[i].ms_each);
		check_int(name, "segments", summary(&b).safe, 600);
		check_int(name, "pods", core_pod_count(b.core), cases[i].pods);
		if (cases[i].in_time && took > cases[i].deadline_s * SECOND)
			fail_msg("%s: it took %lld s", name, (long long)took / 1000);
		tear_down(&b);
	}
}

/* Its segments are announced one by one, the first after the worker's start. */
static void render_bit_by_bit(struct bench *b, int i, uint32_t batch, int64_t start_ms,
			      int64_t each_ms)
{
	struct core_batch k = *core_batch_at(b->core, batch);

	began(b, i, batch);
	b->now += start_ms;
	for (size_t s = 0; s < k.count; s++) {
		b->now += each_ms;
		rendered(b, i, k.segments[s]);
		safe(b, i, k.segments[s], true);
	}
	done(b, i, batch);
}

/* 200 segments, of which three are the canary; then batches of 4. A pod comes up in 15 s. */
static void test_width_by_later_batches(void **state)
{
	static const struct {
		const char *name;
		int64_t start_ms, each_ms;
		/* the results of a batch are announced at its end */
		bool at_once;
		/* further pods rented then, of the two that are allowed */
		int after_canary, after_next;
	} cases[] = {
		{"next to nothing to do", 0, 15, false, 0, 0},
		{"not enough for a second one", 0, 220, false, 0, 0},
		{"the worker's start does not count", 5000, 150, false, 0, 0},
		{"however long it was", 60000, 150, false, 0, 0},
		{"enough for one more", 0, 250, false, 1, 1},
		{"enough for two more", 0, 400, false, 2, 2},
		{"known by the next batch only", 0, 400, true, 0, 2},
		{"and not enough by that", 12000, 150, true, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 200);
		b.conf.canary = true;
		b.conf.pods = 3;
		start_simply(&b);
		bring_up(&b, 0);
		for (uint32_t k = 0; k < 2; k++) {
			int64_t start_ms = k ? 0 : cases[i].start_ms;
			if (cases[i].at_once)
				render_batch(&b, 0, k, start_ms + (k ? 4 : 3) * cases[i].each_ms,
					     true);
			else
				render_bit_by_bit(&b, 0, k, start_ms, cases[i].each_ms);
			check_int(cases[i].name,
				  k ? "pods after the next batch" : "pods after the canary",
				  core_pod_count(b.core),
				  1 + (k ? cases[i].after_next : cases[i].after_canary));
		}
		tear_down(&b);
	}
}

/* Seed 1126014068008172 of the simulator: nothing was known of how long it had taken, so another
 * one seemed to come up at once. */
static void test_start_of_a_pod_whose_connection_was_lost_meanwhile(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 40);
	start_simply(&b);
	rented(&b, 0);
	b.now += 15 * SECOND;
	list_running(&b, 0);
	connected(&b, 0);
	tell(&b, (struct event){.type = EV_SHARED_READY, .pod = 0});
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_CONNECTED,
				.pod = 0,
				.switch_ok = true,
				.workers_alive = true,
				.t = b.now});
	check_phase(&b, "connected again", 0, POD_WORKING);
	assert_int_equal(budget_cold(b.core), 16 * SECOND);
	tear_down(&b);
}

/* What the run's earlier life wrote down of it tells this one how long a further pod takes (seed
 * 1126171735140936). */
static void test_start_of_a_pod_that_is_taken_over(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 40);
	b.core = core_new(&b.conf, b.segments, b.count);
	struct core_pod p = {.phase = POD_BOOTING,
			     .id = "p0",
			     .attempt = "a0",
			     .create_at = b.now - 100 * SECOND,
			     .rented_at = b.now - 99 * SECOND,
			     .connected_at = b.now - 80 * SECOND,
			     .synced_at = b.now - 60 * SECOND,
			     .ready_at = b.now - 50 * SECOND,
			     .hard_end_ms = b.now + HOUR,
			     .hard_end_s = (WALL_MS + b.now + HOUR) / 1000};
	core_adopt(b.core, &p);
	tell(&b, (struct event){.type = EV_START});
	assert_int_equal(budget_cold(b.core), COLD_GUESS_MS);
	list_running(&b, 0);
	tell(&b, (struct event){.type = EV_CONNECTED,
				.pod = 0,
				.switch_ok = true,
				.workers_alive = true,
				.t = b.now});
	check_phase(&b, "taken over", 0, POD_WORKING);
	assert_int_equal(budget_cold(b.core), 50 * SECOND);
	tear_down(&b);
}

/* The others are quicker than it seemed: what was rented may not be worth its start any more while
 * it comes up, in 15 s. */
static void test_pods_that_come_too_late_are_released(void **state)
{
	static const struct {
		const char *name;
		int64_t after_s; /* so long after it was rented ... */
		/* ... so many are over, each in a fortieth of the time that one took */
		int batches;
		bool stays;
	} cases[] = {
		{"much is left", 2, 2, true},
		{"12 s from being up, and 11 s are left", 2, 10, false},
		{"4 s from being up, and 11 s are left", 11, 10, true},
		{"next to nothing is left", 11, 44, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 200);
		b.conf.canary = true;
		b.conf.pods = 2;
		start_simply(&b);
		bring_up(&b, 0);
		render_batch(&b, 0, 0, 3000, true);
		render_batch(&b, 0, 1, 4000, true);
		check_int(cases[i].name, "pods", core_pod_count(b.core), 2);
		rented(&b, 1);
		b.now += cases[i].after_s * SECOND;
		for (int k = 0; k < cases[i].batches; k++)
			render_batch(&b, 0, (uint32_t)k + 2, 100, true);
		check_phase(&b, cases[i].name, 1, cases[i].stays ? POD_BOOTING : POD_RELEASING);
		/* none is rented in its place */
		check_int(cases[i].name, "pods", core_pod_count(b.core), 2);
		tear_down(&b);
	}
}

static void test_what_a_further_pod_brings(void **state)
{
	enum { C = 30000, EVER = 100 * C };
	static const struct {
		const char *name;
		double work_ms;
		struct stint others[3], one;
		size_t count;
		int64_t least_ms;
		bool pays;
	} cases[] = {
		{"alone, all is for it", C, {{0}}, {C, EVER}, 0, C, true},
		{"beside one, which works while it comes up and then on",
		 3 * C,
		 {{0, EVER}},
		 {C, EVER},
		 1,
		 C,
		 true},
		{"a little less to do", 3 * C - 1, {{0, EVER}}, {C, EVER}, 1, C, false},
		{"beside two", 5 * C, {{0, EVER}, {0, EVER}}, {C, EVER}, 2, C, true},
		{"beside two, a little less",
		 5 * C - 1,
		 {{0, EVER}, {0, EVER}},
		 {C, EVER},
		 2,
		 C,
		 false},
		{"beside one and one that comes up as late",
		 4 * C,
		 {{0, EVER}, {C, EVER}},
		 {C, EVER},
		 2,
		 C,
		 true},
		{"beside one that comes up, a little less",
		 4 * C - 1,
		 {{0, EVER}, {C, EVER}},
		 {C, EVER},
		 2,
		 C,
		 false},
		{"others that come later take nothing from it",
		 C,
		 {{3 * C, EVER}},
		 {C, EVER},
		 1,
		 C,
		 true},
		{"the other one's time is over soon", 2 * C, {{0, C}}, {C, EVER}, 1, C, true},
		{"the other one takes no more work", C, {{0, -C}}, {C, EVER}, 1, C, true},
		{"its own time is too short", 10 * C, {{0, EVER}}, {C, 2 * C - 1}, 1, C, false},
		{"its own time is just enough", 10 * C, {{0, EVER}}, {C, 2 * C}, 1, C, true},
		{"half up, and enough for a quarter of the rest",
		 C,
		 {{0, EVER}},
		 {C / 2, EVER},
		 1,
		 C / 8,
		 true},
		{"half up, and nothing left by then",
		 C / 2,
		 {{0, EVER}},
		 {C / 2, EVER},
		 1,
		 C / 8,
		 false},
		{"nothing to do", 0, {{0, EVER}}, {C, EVER}, 1, C, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_int(cases[i].name, "pays",
			  width_pays(cases[i].work_ms, cases[i].others, cases[i].count,
				     cases[i].one, cases[i].least_ms),
			  cases[i].pays);
}

static const struct {
	const char *name;
	int bad; /* of three first segments, how many come out bad */
	int64_t took_s;
	double est_s; /* each of the three */
	bool stops;
	enum batching batching;
	struct batch_speed speed; /* as measured by earlier runs; segments weigh 10 */
} canaries[] = {
	{"all good", 0, 2, 1, false},
	{"two of three bad", 2, 2, 1, false},
	{"all bad", 3, 2, 1, true},
	{"slow, yet below 20 times the estimate", 0, 119, 2, false},
	{"20 times slower than estimated", 0, 120, 2, true},
	{"slower than that, yet below a minute", 0, 59, 0.1, false},
	{"a minute", 0, 60, 0.1, true},
	{"three of a padded engine take about as long as 32", 0, 70, 1, false, BATCHING_PADDED},
	{"20 times as long as 32", 0, 640, 1, true, BATCHING_PADDED},
	{"three take 9.6 s as measured, 180 ms by the job's estimate",
	 0,
	 80,
	 0.06,
	 false,
	 BATCHING_PADDED,
	 {3000, 600, 20}},
	{"nearly 20 times that", 0, 191, 0.06, false, BATCHING_PADDED, {3000, 600, 20}},
	{"20 times that", 0, 192, 0.06, true, BATCHING_PADDED, {3000, 600, 20}},
	{"slower than the job's estimate, and as measured",
	 0,
	 600,
	 1,
	 false,
	 BATCHING_NONE,
	 {100, 0, 1000}},
	{"three alone in a worker of 32 places, each measured by its share",
	 0,
	 70,
	 0.06,
	 false,
	 BATCHING_CONTINUOUS,
	 {0, 0, 100}},
	{"20 times as long as all 32 take", 0, 640, 0.06, true, BATCHING_CONTINUOUS, {0, 0, 100}},
};

static void test_canary_judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(canaries); i++) {
		const char *name = canaries[i].name;
		struct bench b;
		set_up(&b, 60);
		b.conf.canary = true;
		b.conf.pods = 2;
		b.conf.max_batch = 32;
		b.hello = (struct event){.max_batch = 32,
					 .batching = canaries[i].batching,
					 .speed = canaries[i].speed};
		for (size_t s = 0; s < b.count; s++) {
			b.segments[s].est_s = canaries[i].est_s;
			b.segments[s].weight = 10;
		}
		start_simply(&b);
		bring_up(&b, 0);
		struct core_batch k = *core_batch_at(b.core, 0);
		began(&b, 0, 0);
		b.now += canaries[i].took_s * SECOND;
		for (size_t s = 0; s < k.count; s++) {
			rendered(&b, 0, k.segments[s]);
			safe(&b, 0, k.segments[s], (int)s >= canaries[i].bad);
		}
		done(&b, 0, 0);
		check_int(name, "stopped", core_stopping(b.core), canaries[i].stops);
		if (canaries[i].stops) {
			end_well(&b);
			check_int(name, "exit", exit_status(&b), 1);
		}
		tear_down(&b);
	}
}

/* By which a silent worker counts as hanging. */
static void test_expected_times(void **state)
{
	static const struct {
		const char *name;
		enum batching batching;
		struct batch_speed speed;
		/* of three segments and of 29, each of weight 10 and estimated as 2 s */
		int64_t canary_ms, second_ms;
	} cases[] = {
		{"one after the other", BATCHING_NONE, {0}, 6000, 0},
		{"all at once: three take as long as 29, the most",
		 BATCHING_PADDED,
		 {0},
		 58000,
		 58000},
		{"as measured", BATCHING_PADDED, {1000, 100, 10}, 2300, 4900},
		{"three alone where 29 have room", BATCHING_CONTINUOUS, {0}, 58000, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 32);
		b.conf.canary = true;
		b.conf.max_batch = 29;
		b.hello = (struct event){
			.max_batch = 29, .batching = cases[i].batching, .speed = cases[i].speed};
		for (size_t s = 0; s < b.count; s++) {
			b.segments[s].est_s = 2;
			b.segments[s].weight = 10;
		}
		start_simply(&b);
		bring_up(&b, 0);
		check_int(cases[i].name, "canary", (long long)core_batch_expected_ms(b.core, 0),
			  cases[i].canary_ms);
		if (cases[i].second_ms) {
			render_batch(&b, 0, 0, 1000, true);
			check_int(cases[i].name, "second batch",
				  (long long)core_batch_expected_ms(b.core, 1), cases[i].second_ms);
		}
		tear_down(&b);
	}
}

/* ---- batches ---- */

static void test_batches_shrink(void **state)
{
	struct bench b;
	size_t sent = 0, last = SIZE_MAX, biggest = 0;

	(void)state;
	set_up(&b, 60);
	b.conf.max_batch = 32;
	b.conf.workers = 2;
	start_simply(&b);
	bring_up(&b, 0);
	for (uint32_t batch = 0; sent < b.count; batch++) {
		assert_true(batch < b.core->batch_count);
		size_t size = core_batch_at(b.core, batch)->count;
		/* the first was measured by nothing; later ones follow what is left */
		if (size > last)
			fail_msg("batch %u has %zu segments, the one before it %zu", batch, size,
				 last);
		last = size;
		biggest = MAX(biggest, size);
		sent += size;
		render_batch(&b, 0, batch, (int64_t)size * 500, true);
	}
	assert_int_equal(last, 1);
	assert_true(biggest >= 10);
	assert_true(biggest <= 32);
	assert_int_equal(summary(&b).safe, 60);
	tear_down(&b);
}

/* It has nobody to finish together with. */
static void test_batches_of_one_worker_do_not_shrink(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 100);
	b.conf.max_batch = 32;
	b.conf.canary = true;
	start_simply(&b);
	bring_up(&b, 0);
	for (uint32_t batch = 0; batch < b.core->batch_count; batch++)
		render_batch(&b, 0, batch, 500, true);
	assert_int_equal(b.core->batch_count, 5);
	for (uint32_t batch = 1; batch < 4; batch++)
		assert_int_equal(core_batch_at(b.core, batch)->count, 32);
	assert_int_equal(summary(&b).safe, 100);
	tear_down(&b);
}

/* 300 segments on two workers, whose engine takes so long for a batch and so much more for each of
 * its segments. */
static void test_batches_that_cost_by_themselves(void **state)
{
	static const struct {
		const char *name;
		int64_t fixed_ms, each_ms, most_ms; /* most_ms: of compute, by both */
	} cases[] = {
		{"all of a batch at once: four batches would be 10.4 s", 978, 22, 16000},
		{"one after the other", 0, 500, 150000},
		{"one after the other, with a little for each batch", 20, 500, 152000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		int64_t compute_ms = 0;
		set_up(&b, 300);
		b.conf.max_batch = 80;
		b.conf.workers = 2;
		b.conf.canary = true;
		start_simply(&b);
		bring_up(&b, 0);
		for (uint32_t batch = 0; batch < b.core->batch_count; batch++) {
			int64_t ms =
				cases[i].fixed_ms +
				(int64_t)core_batch_at(b.core, batch)->count * cases[i].each_ms;
			compute_ms += ms;
			render_batch(&b, 0, batch, ms, true);
		}
		check_int(cases[i].name, "segments", (long long)summary(&b).safe, 300);
		if (compute_ms > cases[i].most_ms)
			fail_msg("%s: %lld ms in %zu batches, more than %lld", cases[i].name,
				 (long long)compute_ms, b.core->batch_count,
				 (long long)cases[i].most_ms);
		tear_down(&b);
	}
}

/* An engine that renders a batch at once: full batches, then even shares for all workers. */
static void test_padded_batches(void **state)
{
	static const struct {
		const char *name;
		int segments, workers, max_batch, conf_max;
		bool cap;
		const char *sizes;
	} cases[] = {
		{"one is enough", 60, 1, 80, 16, false, "60"},
		{"equal rounds", 300, 1, 80, 16, false, "75 75 75 75"},
		{"two workers", 300, 2, 80, 16, false, "75 75 75 75"},
		{"a share for each of three", 60, 3, 80, 16, false, "20 20 20"},
		{"and of a second round", 250, 3, 80, 16, false, "42 42 42 42 41 41"},
		{"fewer segments than workers", 2, 3, 80, 16, false, "1 1"},
		{"the worker can do less than the job assumes", 40, 1, 10, 16, false,
		 "10 10 10 10"},
		{"the user's word", 40, 1, 80, 16, true, "14 13 13"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str sizes = STR_INIT;
		struct bench b;
		set_up(&b, (uint32_t)cases[i].segments);
		b.conf.max_batch = cases[i].conf_max;
		b.conf.max_batch_is_cap = cases[i].cap;
		b.conf.workers = cases[i].workers;
		b.hello = (struct event){.max_batch = cases[i].max_batch,
					 .batching = BATCHING_PADDED};
		start_simply(&b);
		bring_up(&b, 0);
		for (uint32_t batch = 0; batch < b.core->batch_count; batch++) {
			str_addf(&sizes, "%s%zu", batch ? " " : "",
				 core_batch_at(b.core, batch)->count);
			render_batch(&b, 0, batch,
				     1000 + 20 * (int64_t)core_batch_at(b.core, batch)->count,
				     true);
		}
		if (strcmp(str_text(&sizes), cases[i].sizes) != 0)
			fail_msg("%s: got %s, want %s", cases[i].name, str_text(&sizes),
				 cases[i].sizes);
		tear_down(&b);
	}
}

/* Two pods whose workers take `places` segments at a time. */
static void start_continuous(struct bench *b, uint32_t segments, int places)
{
	struct offer o = offer(0, 1000000);

	set_up(b, segments);
	b->conf.pods = 2;
	b->conf.max_batch = 16;
	b->hello = (struct event){.max_batch = places, .batching = BATCHING_CONTINUOUS};
	start_with(b, &o, 1);
	bring_up(b, 0);
	bring_up(b, 1);
}

/* The next one that the pod holds of this run's batches, in the order in which they were given. */
static uint32_t next_held(const struct bench *b, int i)
{
	for (uint32_t k = 0; k < b->core->batch_count; k++) {
		const struct core_batch *batch = core_batch_at(b->core, k);
		for (size_t s = 0; batch->pod == i && s < batch->count; s++)
			if (core_seg_state(b->core, batch->segments[s]) == SEG_HELD)
				return batch->segments[s];
	}
	return UINT32_MAX;
}

/* Rendered, or, with `fails`, failed for good. */
static void end_one(struct bench *b, int i, bool fails)
{
	uint32_t segment = next_held(b, i), batch = b->core->segs[segment].batch;

	for (uint32_t k = 0; k < b->core->batch_count; k++)
		if (core_batch_at(b->core, k)->pod == i && !core_batch_at(b->core, k)->started)
			began(b, i, k);
	if (fails) {
		struct err err;
		err_set(&err, ERR_JOB, "no voice for it");
		tell(b,
		     (struct event){
			     .type = EV_SEGMENT_FAILED, .pod = i, .segment = segment, .err = &err});
	} else {
		rendered(b, i, segment);
	}
	const struct core_batch *k = core_batch_at(b->core, batch);
	for (size_t s = 0; s < k->count; s++)
		if (core_seg_state(b->core, k->segments[s]) == SEG_HELD)
			return;
	done(b, i, batch);
}

static void finish_one(struct bench *b, int i)
{
	end_one(b, i, false);
}

/* All places of a worker, and half as many that wait with its agent; as one is finished, more are
 * sent, before any batch is over. */
static void test_continuous_is_kept_full(void **state)
{
	struct bench b;
	size_t most = 0, least = SIZE_MAX;

	(void)state;
	start_continuous(&b, 400, 16);
	for (int i = 0; i < 2; i++)
		check_int("at first", "held", (long long)pod(&b, i)->held, 24);
	assert_true(did(&b, ACT_SEND, 1) == 6); /* four segments each */
	for (int n = 0; n < 150; n++)
		for (int i = 0; i < 2; i++) {
			b.now += 10;
			finish_one(&b, i);
			most = MAX(most, pod(&b, i)->held);
			least = MIN(least, pod(&b, i)->held);
		}
	check_int("while there is enough", "the most held", (long long)most, 24);
	assert_true(least > 16); /* the agent has one for whoever asks */
	check_int(
		"finished", "segments",
		(long long)(b.core->seg_count - b.core->todo - pod(&b, 0)->held - pod(&b, 1)->held),
		300);
	tear_down(&b);
}

/* What is left is shared: no pod keeps what another one could begin. */
static void test_continuous_shares_the_end(void **state)
{
	struct bench b;

	(void)state;
	start_continuous(&b, 100, 16);
	for (int n = 0; n < 60; n++)
		for (int i = 0; i < 2; i++) {
			b.now += 10;
			if (next_held(&b, i) == UINT32_MAX)
				continue;
			finish_one(&b, i);
			long long a = (long long)pod(&b, 0)->held, z = (long long)pod(&b, 1)->held;
			if (b.core->todo && llabs(a - z) > 6)
				fail_msg("after %d rounds: %lld with one pod, %lld with the other, "
					 "%zu with none",
					 n, a, z, b.core->todo);
		}
	check_int("in the end", "left",
		  (long long)(b.core->todo + pod(&b, 0)->held + pod(&b, 1)->held), 0);
	tear_down(&b);

	start_continuous(&b, 8, 16);
	for (int i = 0; i < 2; i++) /* though one was up before the other */
		check_int("few", "held", (long long)pod(&b, i)->held, 4);
	tear_down(&b);
}

/* Places are filled by the user's word, if there is one. The pace is what a pod finishes, however
 * its batches overlap; a segment that fails took as long as another one. */
static void test_continuous_pace(void **state)
{
	(void)state;
	for (int fails = -1; fails < 16; fails++) { /* which of the first ones, or none */
		struct bench b;
		set_up(&b, 400);
		b.conf.max_batch = 8;
		b.conf.max_batch_is_cap = true;
		b.hello = (struct event){.max_batch = 16, .batching = BATCHING_CONTINUOUS};
		start_simply(&b);
		bring_up(&b, 0);
		check_int("by the user's word", "held", (long long)pod(&b, 0)->held, 12);
		for (int n = 0; n < 200; n++) {
			/* the batches of the worker's first eight segments began at 0: each one
			 * takes 800 ms */
			b.now += 100;
			end_one(&b, 0, n == fails);
		}
		double rate = dispatch_rate(b.core);
		if (rate < 9 || rate > 11) /* segments weigh 1 */
			fail_msg("segment %d fails: ten segments a second are measured as %.2f",
				 fails, rate);
		assert_false(dispatch_rate_is_rough(b.core));
		tear_down(&b);
	}
}

/* A pod is lost with several batches begun: each of its segments goes to the other one, once, and
 * wasted time counts once. */
static void test_continuous_pod_lost(void **state)
{
	struct bench b;
	bool seen[100] = {false};

	(void)state;
	start_continuous(&b, 100, 16);
	for (int n = 0; n < 6; n++) {
		b.now += SECOND;
		finish_one(&b, 0);
	}
	size_t held = pod(&b, 0)->held, todo = b.core->todo;
	tell_err(&b, EV_WORKERS_FAILED, 0, ERR_JOB);
	check_int("lost", "held", (long long)pod(&b, 0)->held, 0);
	check_int("lost", "open again", (long long)(b.core->todo + pod(&b, 1)->held),
		  (long long)(held + todo + 24));
	assert_true(pod(&b, 0)->wasted_ms <= 6 * SECOND);
	for (int n = 0; n < 94; n++) {
		uint32_t segment = next_held(&b, 1);
		assert_int_not_equal(segment, UINT32_MAX);
		assert_false(seen[segment]);
		seen[segment] = true;
		finish_one(&b, 1);
	}
	assert_int_equal(b.core->todo, 0);
	tear_down(&b);
}

/* To measure an engine: batches of sizes that the caller names, nothing else in flight beside them.
 */
static void test_batches_of_given_sizes(void **state)
{
	static const struct {
		const char *name;
		int segments, workers, max_batch;
		const int sizes[6];
		/* a "|" wherever the pod was given nothing before all that it had was done */
		const char *sent;
	} cases[] = {
		{"in their order", 16, 1, 8, {1, 1, 2, 4, 8}, "1|1|2|4|8"},
		{"each worker gets one", 6, 2, 8, {1, 2}, "1 1|2 2"},
		{"no larger than the worker takes", 9, 1, 3, {1, 2, 4, 8}, "1|2|3|3"},
		{"the last size for what is left", 9, 1, 8, {1, 2}, "1|2|2|2|2"},
		{"fewer segments than sizes", 4, 1, 8, {1, 1, 2, 4}, "1|1|2"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(str_free) struct str sent = STR_INIT;
		struct bench b;
		size_t done = 0;
		set_up(&b, (uint32_t)cases[i].segments);
		b.conf.workers = cases[i].workers;
		b.conf.max_batch = 16;
		b.conf.canary = true;
		b.conf.batch_sizes = cases[i].sizes;
		while (b.conf.batch_size_count < ARRAY_LEN(cases[i].sizes) &&
		       cases[i].sizes[b.conf.batch_size_count])
			b.conf.batch_size_count++;
		b.hello = (struct event){.max_batch = cases[i].max_batch,
					 .batching = BATCHING_PADDED};
		start_simply(&b);
		bring_up(&b, 0);
		while (done < b.core->batch_count) {
			size_t count = b.core->batch_count;
			for (uint32_t batch = (uint32_t)done; batch < count; batch++)
				str_addf(&sent, "%s%zu",
					 !batch          ? ""
					 : batch == done ? "|"
							 : " ",
					 core_batch_at(b.core, batch)->count);
			for (; done < count; done++) {
				check_int(cases[i].name, "batches while others are out",
					  (long long)b.core->batch_count, (long long)count);
				render_batch(&b, 0, (uint32_t)done, 1000, true);
			}
		}
		if (strcmp(str_text(&sent), cases[i].sent) != 0)
			fail_msg("%s: got %s, want %s", cases[i].name, str_text(&sent),
				 cases[i].sent);
		check_int(cases[i].name, "segments", (long long)summary(&b).safe,
			  cases[i].segments);
		tear_down(&b);
	}
}

static void test_long_ones_first(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 6);
	for (int i = 0; i < 6; i++)
		b.segments[i].weight = 1 + i;
	start_simply(&b);
	bring_up(&b, 0);
	assert_int_equal(core_batch_at(b.core, 0)->segments[0], 5);
	tear_down(&b);
}

static void test_max_batch(void **state)
{
	static const struct {
		const char *name;
		int conf, worker; /* what the config says, and what the worker says of itself */
		double max_weight;
		bool command;
		size_t most;
	} cases[] = {
		{"the config's", 4, 0, 0, false, 4},
		{"the worker can less", 4, 2, 0, false, 2},
		{"the worker can more", 4, 9, 0, false, 4},
		{"padding counts: longest times how many", 8, 0, 3, false, 3},
		{"commands one at a time", 1, 0, 0, true, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 200);
		b.conf.max_batch = cases[i].conf;
		b.conf.max_batch_weight = cases[i].max_weight;
		b.conf.command = cases[i].command;
		start_simply(&b);
		rented(&b, 0);
		b.now += 10;
		list_running(&b, 0);
		connected(&b, 0);
		tell(&b, (struct event){.type = EV_SHARED_READY, .pod = 0});
		tell(&b, (struct event){.type = EV_WORKERS,
					.pod = 0,
					.number = 1,
					.max_batch = cases[i].worker});
		check_int(cases[i].name, "size", (long long)core_batch_at(b.core, 0)->count,
			  (long long)cases[i].most);
		check_int(cases[i].name, "batches", did(&b, ACT_SEND, 0), cases[i].command ? 1 : 2);
		tear_down(&b);
	}
}

/* What is said of a segment that does not come out. Splitting a batch that kills its worker is the
 * agent's (test_agent): here comes only its last word. */
static const struct {
	const char *name;
	enum err_kind kind;
	int times;
	enum core_seg_state state;
} failures[] = {
	{"poison: failed at once, not moved to another pod", ERR_JOB, 1, SEG_FAILED},
	{"a file that is not as announced: again", ERR_UNTRUSTED, 2, SEG_TODO},
	{"... three times", ERR_UNTRUSTED, 3, SEG_FAILED},
	{"a file that is not there: again", ERR_NOT_FOUND, 2, SEG_TODO},
	{"... three times", ERR_NOT_FOUND, 3, SEG_FAILED},
};

static void test_failed_segments(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct bench b;
		struct err err;
		set_up(&b, 2);
		b.conf.max_batch = 1;
		start_simply(&b);
		bring_up(&b, 0);
		err_set(&err, failures[i].kind, "it cannot be");
		for (int k = 0; k < failures[i].times; k++) {
			struct event ev = {
				.type = EV_SEGMENT_FAILED, .pod = 0, .segment = 0, .err = &err};
			tell(&b, ev);
		}
		enum core_seg_state got = core_seg_state(b.core, 0);
		if (failures[i].state == SEG_TODO) /* it may have been sent again at once */
			check_int(failures[i].name, "open", got == SEG_TODO || got == SEG_HELD, 1);
		else
			check_int(failures[i].name, "state", got, failures[i].state);
		tear_down(&b);
	}
}

/* Found by fuzzing a vendor's list: without its address a pod that was lost could not be tried
 * again. */
static void test_address_that_a_list_leaves_out(void **state)
{
	struct bench b;
	struct pod_view v;

	(void)state;
	set_up(&b, 2);
	start_simply(&b);
	bring_up(&b, 0);
	check_int("brought up", "port", pod(&b, 0)->view.port, 22);
	v = view_of(&b, 0, POD_STATE_RUNNING);
	v.port = 0;
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b.now});
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	check_int("lost", "connects", did(&b, ACT_CONNECT, 0), 1);
	check_int("lost", "port", pod(&b, 0)->view.port, 22);
	v.port = 2022;
	tell(&b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b.now});
	check_int("listed with another", "port", pod(&b, 0)->view.port, 2022);
	tear_down(&b);
}

/* Found by fuzzing a pod: one whose agent never called its batch done was paid for until its hard
 * end. */
static void test_batch_that_never_ends(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 2);
	start_simply(&b);
	bring_up(&b, 0);
	began(&b, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		rendered(&b, 0, i);
		safe(&b, 0, i, true);
	}
	wait_ms(&b, 9 * SECOND);
	check_phase(&b, "its word is waited for", 0, POD_WORKING);
	wait_ms(&b, 2 * SECOND);
	check_int("all is safe", "releases", did(&b, ACT_RELEASE, 0), 1);
	end_well(&b);
	check_int("all is safe", "exit status", exit_status(&b), 0);
	tear_down(&b);
}

static void test_poison_stays_failed(void **state)
{
	struct err err;
	struct bench b;

	(void)state;
	err_set(&err, ERR_JOB, "poison");
	set_up(&b, 2);
	b.conf.max_batch = 1;
	start_simply(&b);
	bring_up(&b, 0);
	began(&b, 0, 0);
	tell(&b, (struct event){.type = EV_SEGMENT_FAILED, .pod = 0, .segment = 0, .err = &err});
	/* its pod goes: the other segment moves on, this one does not */
	list_in(&b, POD_STATE_GONE, 0, -1);
	bring_up(&b, 1);
	assert_int_equal(did(&b, ACT_SEND, 1), 1);
	uint32_t batch = first(&b, ACT_SEND)->batch;
	assert_int_equal(core_batch_at(b.core, batch)->segments[0], 1);
	render_batch(&b, 1, batch, SECOND, true);
	end_well(&b);
	assert_string_equal(summary(&b).status, "partial");
	assert_int_equal(exit_status(&b), 1);
	tear_down(&b);
}

/* The vendor's list has this one pod, over for this reason. */
static void list_over(struct bench *b, int i, enum pod_end end, bool preempted, const char *detail)
{
	struct pod_view v = view_of(b, i, POD_STATE_GONE);

	v.end = end;
	v.preempted = preempted;
	COPY_TEXT(v.detail, detail);
	tell(b, (struct event){.type = EV_LISTED, .views = &v, .count = 1, .asked_at = b->now});
}

/* When it ended is said by its vendor's clock, and ours may be wrong by two minutes: what it cost
 * counts against the cap. */
static void test_ends_by_another_clock(void **state)
{
	static const struct {
		const char *name;
		int64_t ahead_ms, there_ago_s, billed_s; /* it ended 30 s ago, after 75 s */
	} cases[] = {
		{"our clock is right", 0, 0, 76},
		{"ours is ahead", 60000, 0, 76},
		{"ours is behind", -20000, 0, 76},
		{"it was there a moment ago", 0, 10, 95},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 2);
		start_simply(&b);
		int64_t made_at = b.now;
		bring_up(&b, 0);
		b.now = made_at + 105 * SECOND;
		if (cases[i].there_ago_s) {
			b.now -= cases[i].there_ago_s * SECOND;
			list_running(&b, 0);
			b.now += cases[i].there_ago_s * SECOND;
		}
		struct pod_view v = view_of(&b, 0, POD_STATE_GONE);
		v.end = POD_END_OUTSIDE;
		v.preempted = true;
		v.ended_at_s = (WALL_MS + made_at + 75 * SECOND - cases[i].ahead_ms) / 1000;
		tell(&b, (struct event){.type = EV_LISTED,
					.views = &v,
					.count = 1,
					.asked_at = b.now,
					.ahead_ms = cases[i].ahead_ms});
		check_phase(&b, cases[i].name, 0, POD_GONE);
		check_int(cases[i].name, "billed s", core_billed_ms(pod(&b, 0), b.now) / 1000,
			  cases[i].billed_s);
		tear_down(&b);
	}
}

static void test_ends_are_told_apart(void **state)
{
	static const struct {
		const char *name;
		enum pod_end end;
		bool preempted;
		const char *detail, *reason;
	} cases[] = {
		{"preempted", POD_END_OUTSIDE, true, "it was terminated",
		 "the vendor reclaimed it (preempted)"},
		{"ended by somebody else", POD_END_OUTSIDE, false, "it was terminated",
		 "it was terminated"},
		{"out of memory", POD_END_MEMORY, false, "raise pod.memory_gb",
		 "raise pod.memory_gb"},
		{"its lifetime", POD_END_LIFETIME, false, "its lifetime was over",
		 "its lifetime was over"},
		{"nobody says", POD_END_UNKNOWN, false, "", "it is gone"},
		{"the container was lost after it had come up", POD_END_SETUP, false, "no mount",
		 "no mount"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 2);
		start_simply(&b);
		bring_up(&b, 0);
		list_over(&b, 0, cases[i].end, cases[i].preempted, cases[i].detail);
		check_phase(&b, cases[i].name, 0, POD_GONE);
		assert_string_equal(pod(&b, 0)->reason, cases[i].reason);
		check_int(cases[i].name, "released all the same", did(&b, ACT_RELEASE, 0), 0);
		/* its work goes to another one at once */
		check_int(cases[i].name, "rented", did(&b, ACT_RENT, -1), 1);
		bring_up(&b, 1);
		check_int(cases[i].name, "sent", did(&b, ACT_SEND, 1) > 0, true);
		tear_down(&b);
	}
}

/* A pod that works by itself and ends by itself has finished; one that was ended has not. */
static void test_ends_of_detached_pods(void **state)
{
	static const struct {
		enum pod_end end;
		bool preempted, finished;
	} cases[] = {{POD_END_UNKNOWN, false, true}, {POD_END_SCRIPT, false, true},
		     {POD_END_OUTSIDE, true, false}, {POD_END_OUTSIDE, false, false},
		     {POD_END_MEMORY, false, false}, {POD_END_LIFETIME, false, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 2);
		b.core = core_new(&b.conf, b.segments, b.count);
		struct core_pod p = {.phase = POD_BOOTING,
				     .id = "p0",
				     .attempt = "a0",
				     .price_microusd_h = 1000000,
				     .detached = true,
				     .create_at = b.now - MINUTE,
				     .rented_at = b.now - MINUTE,
				     .connected_at = b.now - MINUTE,
				     .hard_end_ms = b.now + HOUR};
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		list_over(&b, 0, cases[i].end, cases[i].preempted, "x");
		check_phase(&b, "over", 0, POD_GONE);
		check_int("fault", "of a pod that finished", pod(&b, 0)->fault == ERR_NONE,
			  cases[i].finished);
		tear_down(&b);
	}
}

/* A container that cannot be made is tried once more, and costs no more than that. */
static void test_container_that_cannot_be_made(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 2);
	b.conf.wait_ms = HOUR;
	start_with(&b, &o, 1);
	rented(&b, 0);
	list_over(&b, 0, POD_END_SETUP, false, "it could not be set up: no such mount");
	check_phase(&b, "first", 0, POD_GONE);
	check_int("first", "rented at once", did(&b, ACT_RENT, -1), 0);
	b.now += 2 * SECOND;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_int("first", "tried again", did(&b, ACT_RENT, -1), 1);
	rented(&b, 1);
	list_over(&b, 1, POD_END_SETUP, false, "it could not be set up: no such mount");
	b.now += MINUTE;
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_int("second", "tried again", did(&b, ACT_RENT, -1), 0);
	list_nothing(&b);
	assert_true(core_ended(b.core));
	assert_int_equal(exit_status(&b), 2);
	assert_non_null(strstr(summary(&b).err.msg,
			       "2 pods in a row could not start, the last p1: it "
			       "could not be set up: no such mount; check pod.image"));
	tear_down(&b);
}

/* One that came up in between shows that the image is not at fault. */
static void test_container_that_was_made_in_between(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 2);
	b.conf.wait_ms = HOUR;
	start_with(&b, &o, 1);
	for (int i = 0; i < 4; i += 2) {
		rented(&b, i);
		list_over(&b, i, POD_END_SETUP, false, "no such mount");
		b.now += MINUTE;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		bring_up(&b, i + 1);
		uint32_t batch = first(&b, ACT_SEND)->batch;
		began(&b, i + 1, batch);
		list_over(&b, i + 1, POD_END_OUTSIDE, true, "");
		check_int("after one that came up", "rented", did(&b, ACT_RENT, -1), 1);
	}
	assert_false(core_ended(b.core));
	tear_down(&b);
}

static void test_segment_that_ends_pods(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 1);
	start_with(&b, &o, 1);
	for (int i = 0; i < LOSSES_MAX; i++) {
		assert_int_equal(core_seg_state(b.core, 0) == SEG_FAILED, false);
		bring_up(&b, i);
		began(&b, i, (uint32_t)i);
		list_in(&b, POD_STATE_GONE, i, -1);
		b.now += 3 * OFFER_REST_MS;
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	}
	assert_int_equal(core_seg_state(b.core, 0), SEG_FAILED);
	end_well(&b);
	assert_int_equal(exit_status(&b), 1);
	tear_down(&b);
}

/* ---- coming up, or not ---- */

/* A run with one offer whose pods took boot_ms so far. */
static void start_knowing(struct bench *b, int64_t boot_ms)
{
	struct offer o = offer(0, 1000000);
	struct offer_past past = {.boot_ms = boot_ms};

	start(b);
	tell(b, (struct event){.type = EV_OFFERS, .offers = &o, .past = &past, .count = 1});
	rented(b, 0);
}

static void log_says(struct bench *b, int i, int lines)
{
	tell(b, (struct event){.type = EV_LOG, .pod = i, .number = lines});
}

static void test_boot_limit_of_the_median(void **state)
{
	static const struct {
		const char *name;
		int64_t boot_ms, most_ms, gives_up_ms;
	} cases[] = {
		{"nothing is known", 0, 5 * MINUTE, 5 * MINUTE},
		{"three times the median", 40 * SECOND, 5 * MINUTE, 2 * MINUTE},
		{"a minute at least", 2 * SECOND, 5 * MINUTE, MINUTE},
		{"never more than the config's", 4 * MINUTE, 5 * MINUTE, 5 * MINUTE},
		{"the config's, below the least", 2 * SECOND, 20 * SECOND, 20 * SECOND},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.boot_limit_ms = cases[i].most_ms;
		start_knowing(&b, cases[i].boot_ms);
		int64_t began = pod(&b, 0)->create_at;
		wait_ms(&b, cases[i].gives_up_ms - 1);
		check_phase(&b, cases[i].name, 0, POD_BOOTING);
		/* and at half time */
		int early = cases[i].gives_up_ms / 2 > LOG_EARLY_MS + LOG_WAIT_MS;
		check_int(cases[i].name, "log read", did(&b, ACT_LOG, 0),
			  early + (cases[i].gives_up_ms >= LOG_WORTH_MS));
		/* nobody has such a log: that gives nobody more time */
		tell_err(&b, EV_LOG, 0, ERR_NOT_FOUND);
		wait_ms(&b, 1);
		check_phase(&b, cases[i].name, 0, POD_RELEASING);
		check_int(cases[i].name, "after ms", b.now - began, cases[i].gives_up_ms);
		check_int(cases[i].name, "written down", did(&b, ACT_BAD_HOST, 0), 1);
		tear_down(&b);
	}
}

/* A median that is of no use, as with a new and larger image, does not give up one pod after the
 * other. */
static void test_each_stuck_pod_gives_the_next_more_time(void **state)
{
	static const int64_t limits_s[] = {60, 120, 240};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.retry_until_up = true;
	start_knowing(&b, 15 * SECOND);
	for (int i = 0; i < (int)ARRAY_LEN(limits_s); i++) {
		struct offer o = offer(0, 1000000);
		struct offer_past past = {.boot_ms = 15 * SECOND};
		check_int("limit", "s", pod(&b, i)->boot_limit_ms / 1000, limits_s[i]);
		wait_ms(&b, limits_s[i] * SECOND);
		check_phase(&b, "given up", i, POD_RELEASING);
		tell(&b, (struct event){.type = EV_RELEASED, .pod = i});
		b.now += BAD_HOST_REST_MS;
		tell(&b,
		     (struct event){.type = EV_OFFERS, .offers = &o, .past = &past, .count = 1});
		if (i == 2) /* one that comes up, and is lost */
			bring_up(&b, 3);
		else
			rented(&b, i + 1);
	}
	list_in(&b, POD_STATE_GONE, 3, -1);
	check_int("after one that came up", "s", pod(&b, 4)->boot_limit_ms / 1000, 60);
	tear_down(&b);
}

/* At its deadline: what the provider's log says decides, once for each deadline. */
static void test_log_that_moves_gives_time(void **state)
{
	static const struct {
		const char *name;
		int lines[4]; /* of the answers at each deadline; -1: given up before that */
		int64_t lasts_s;
	} cases[] = {
		{"it stands still", {0, -1}, 2 * 60},
		{"it moves once", {3, 0, -1}, 4 * 60},
		{"it moves twice", {3, 1, 0, -1}, 6 * 60},
		{"it moves for ever", {3, 1, 1, 1}, 8 * 60},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 4);
		b.conf.boot_limit_ms = 4 * MINUTE; /* hence never more than eight minutes */
		start_knowing(&b, 40 * SECOND);
		int64_t began = pod(&b, 0)->create_at;
		wait_ms(&b, MINUTE);
		check_int(name, "read at half time", did(&b, ACT_LOG, 0), 1);
		log_says(&b, 0, 5);
		wait_ms(&b, MINUTE - 1);
		for (int k = 0; k < 4 && cases[i].lines[k] >= 0; k++) {
			check_int(name, "not read in between", did(&b, ACT_LOG, 0), 0);
			check_phase(&b, name, 0, POD_BOOTING);
			wait_ms(&b, 1);
			if (pod(&b, 0)->phase == POD_RELEASING)
				break;
			check_int(name, "read at the deadline", did(&b, ACT_LOG, 0), 1);
			log_says(&b, 0, cases[i].lines[k]);
			if (cases[i].lines[k])
				wait_ms(&b, 2 * MINUTE - 1);
		}
		check_phase(&b, name, 0, POD_RELEASING);
		check_int(name, "lasted s", (b.now - began) / 1000, cases[i].lasts_s);
		tear_down(&b);
	}
}

static void test_log_that_never_comes(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_knowing(&b, 40 * SECOND);
	wait_ms(&b, MINUTE);
	log_says(&b, 0, 5);
	wait_ms(&b, MINUTE + LOG_WAIT_MS - 1);
	check_phase(&b, "it is waited for", 0, POD_BOOTING);
	wait_ms(&b, 1);
	check_phase(&b, "not longer", 0, POD_RELEASING);
	log_says(&b, 0, 5); /* late */
	check_phase(&b, "late", 0, POD_RELEASING);
	tear_down(&b);
}

static void test_up_while_the_log_is_read(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_knowing(&b, 40 * SECOND);
	wait_ms(&b, MINUTE);
	log_says(&b, 0, 5);
	wait_ms(&b, MINUTE);
	assert_int_equal(did(&b, ACT_LOG, 0), 1);
	list_running(&b, 0);
	connected(&b, 0);
	log_says(&b, 0, 0);
	check_phase(&b, "it answered in time", 0, POD_PREPARING);
	wait_ms(&b, 5 * MINUTE);
	check_phase(&b, "and is kept", 0, POD_PREPARING);
	tell(&b, (struct event){.type = EV_SHARED_READY, .pod = 0});
	tell(&b, (struct event){.type = EV_WORKERS, .pod = 0, .number = 1});
	assert_int_equal(did(&b, ACT_GOOD_HOST, 0), 1);
	assert_int_equal(did(&b, ACT_BAD_HOST, -1), 0);
	tear_down(&b);
}

/* ---- offers that are avoided ---- */

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
		check_int(cases[i].name, "creates", did(&b, ACT_RENT, -1), 1);
		if (strcmp(pod(&b, 0)->offer.id, cases[i].takes) != 0)
			fail_msg("%s: took %s", cases[i].name, pod(&b, 0)->offer.id);
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
		assert_int_equal(pod(&b, 0)->provider, others);
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
	check_int("while its log is read", "pods", core_pod_count(b.core), 1);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ENDED});
	assert_string_equal(pod(&b, 1)->offer.id, "offer-1");
	b.now += BAD_HOST_REST_MS + 1;
	tell_err(&b, EV_RENT_FAILED, 1, ERR_NO_CAPACITY);
	assert_string_equal(pod(&b, 2)->offer.id, "offer-0"); /* nothing else is to be had */
	b.now += MINUTE;
	tell_err(&b, EV_RENT_FAILED, 2, ERR_NO_CAPACITY);
	assert_string_equal(pod(&b, 3)->offer.id, "offer-1");
	tear_down(&b);
}

/* ---- a pod is lost ---- */

/* Of its four segments one is safe, one arrived, one only rendered, one in hand. */
static void test_lost_pods_work(void **state)
{
	static const struct {
		const char *name;
		enum pod_state seen;
		bool release;
	} cases[] = {
		{"stopped: released all the same", POD_STATE_STOPPED, true},
		{"gone by the vendor's word", POD_STATE_GONE, false},
		{"failed", POD_STATE_FAILED, true},
	};
	static const enum core_seg_state want[4] = {SEG_SAFE, SEG_RENDERED, SEG_TODO, SEG_TODO};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.command = true; /* one segment at a time, in order */
		b.conf.max_batch = 1;
		start_simply(&b);
		bring_up(&b, 0);
		for (uint32_t s = 0; s < 4; s++) {
			began(&b, 0, s);
			b.now += SECOND;
			if (s == 3)
				break;
			rendered(&b, 0, s);
			if (s == 0)
				safe(&b, 0, s, true);
			else if (s == 1)
				tell(&b, (struct event){.type = EV_HOME,
							.segment = s,
							.ok = true,
							.check_ok = true});
			done(&b, 0, s);
		}
		tell_err(&b, EV_LOST, 0, ERR_NETWORK);
		list_in(&b, cases[i].seen, 0, -1);
		for (uint32_t s = 0; s < 4; s++)
			check_int(cases[i].name, "segment's state", core_seg_state(b.core, s),
				  want[s]);
		check_int(cases[i].name, "released", did(&b, ACT_RELEASE, 0), cases[i].release);
		tell(&b, (struct event){.type = EV_SAFE, .segment = 1});
		check_int(cases[i].name, "its file was home", core_seg_state(b.core, 1), SEG_SAFE);
		tear_down(&b);
	}
}

static void test_lost_connection_is_not_a_lost_pod(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 8);
	start_simply(&b);
	bring_up(&b, 0);
	began(&b, 0, 0);
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	check_phase(&b, "lost", 0, POD_CONNECTING);
	assert_int_equal(did(&b, ACT_CONNECT, 0), 1);
	assert_int_equal(core_seg_state(b.core, core_batch_at(b.core, 0)->segments[0]), SEG_HELD);
	b.now += SECOND;
	tell(&b, (struct event){.type = EV_CONNECTED,
				.pod = 0,
				.switch_ok = true,
				.workers_alive = true,
				.t = b.now});
	check_phase(&b, "back", 0, POD_WORKING);
	assert_int_equal(did(&b, ACT_SEND, 0), 1); /* the batch that had not begun is said again */
	assert_int_equal(first(&b, ACT_SEND)->batch, 1);
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	wait_ms(&b, UNREACHABLE_LIMIT_MS - 1);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	wait_ms(&b, 1);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	tear_down(&b);
}

/* A pod of an earlier life of this run that renders segment 0 (of four) when it is taken over. */
static void take_over_busy_pod(struct bench *b)
{
	set_up(b, 4);
	b->conf.max_batch = 1;
	b->core = core_new(&b->conf, b->segments, b->count);
	struct core_pod p = {.phase = POD_BOOTING,
			     .id = "p0",
			     .attempt = "a0",
			     .price_microusd_h = 1000000,
			     .create_at = b->now - MINUTE,
			     .rented_at = b->now - MINUTE,
			     .connected_at = b->now - MINUTE,
			     .hard_end_ms = b->now + HOUR};
	core_adopt(b->core, &p);
	tell(b, (struct event){.type = EV_START});
	list_running(b, 0);
	tell(b, (struct event){.type = EV_RUNNING, .segment = 0, .t = b->now});
	tell(b,
	     (struct event){
		     .type = EV_CONNECTED, .switch_ok = true, .workers_alive = true, .t = b->now});
	check_phase(b, "taken over", 0, POD_WORKING);
}

/* Taken over while lists fail: it may wait for a machine still, so no host is blamed (seed
 * 1125899907086616). One that was seen is. */
static void test_unseen_pods_blame_no_host(void **state)
{
	(void)state;
	for (int seen = 0; seen < 2; seen++) {
		struct bench b;
		set_up(&b, 4);
		b.core = core_new(&b.conf, b.segments, b.count);
		struct core_pod p = {.phase = POD_BOOTING,
				     .id = "p0",
				     .attempt = "a0",
				     .price_microusd_h = 1000000,
				     .create_at = b.now - MINUTE,
				     .rented_at = b.now - MINUTE,
				     .hard_end_ms = b.now + HOUR};
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		if (seen)
			list_in(&b, POD_STATE_CREATING, 0, -1);
		for (int i = 0; i < 40 && pod(&b, 0)->phase == POD_BOOTING; i++) {
			tell(&b, (struct event){.type = EV_LISTED,
						.err = &(struct err){.kind = ERR_TRANSIENT,
								     .msg = "no list for you"}});
			wait_ms(&b, 15 * SECOND);
		}
		check_phase(&b, "given up", 0, POD_RELEASING);
		check_int(seen ? "seen" : "unseen", "blamed", did(&b, ACT_BAD_HOST, 0), seen);
		tear_down(&b);
	}
}

static void test_taken_over_in_the_middle(void **state)
{
	struct bench b;

	(void)state;
	take_over_busy_pod(&b);
	assert_int_equal(core_seg_state(b.core, 0), SEG_HELD);
	assert_int_equal(did(&b, ACT_REVOKE, 0), 1);
	assert_int_equal(did(&b, ACT_SEND, 0), 1); /* one is in hand, one waits behind it */
	assert_int_equal(core_batch_at(b.core, first(&b, ACT_SEND)->batch)->segments[0], 1);
	b.now += SECOND;
	rendered(&b, 0, 0);
	assert_int_equal(did(&b, ACT_FETCH, 0), 1);
	assert_int_equal(did(&b, ACT_SEND, 0), 1);
	done(&b, 0, UINT32_MAX); /* the agent calls it by another client's name */
	safe(&b, 0, 0, true);
	for (int k = 0; k < 3; k++) /* 0 stands for what was in hand */
		render_batch(&b, 0, (uint32_t)k + 1, SECOND, true);
	check_phase(&b, "done", 0, POD_RELEASING);
	assert_int_equal(pod(&b, 0)->wasted_ms, 0);
	end_well(&b);
	assert_int_equal(exit_status(&b), 0);
	tear_down(&b);
}

static void test_taken_over_and_lost(void **state)
{
	struct bench b;

	(void)state;
	take_over_busy_pod(&b);
	list_in(&b, POD_STATE_GONE, 0, -1);
	assert_int_equal(core_seg_state(b.core, 0), SEG_TODO);
	assert_int_equal(pod(&b, 0)->batches, 0);
	tear_down(&b);
}

/* ---- letting go ---- */

static void test_release_of_the_idle_one(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 2);
	b.conf.pods = 2;
	b.conf.max_batch = 1;
	b.conf.command = true;
	start_simply(&b);
	bring_up(&b, 0);
	bring_up(&b, 1);
	began(&b, 0, 0);
	began(&b, 1, 1);
	rendered(&b, 0, 0);
	done(&b, 0, 0);
	check_phase(&b, "its file is not home", 0, POD_WORKING);
	safe(&b, 0, 0, true);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
	check_phase(&b, "nothing is left for it", 0, POD_RELEASING);
	check_phase(&b, "the other works on", 1, POD_WORKING);
	assert_int_equal(did(&b, ACT_RELEASE, 1), 0);
	tear_down(&b);
}

/* A pod with one segment, rendered, whose file is on its way; its volume can be read without it, or
 * not. */
static void all_but_home(struct bench *b, bool apart, bool free)
{
	struct volume v = {.id = "v1", .apart = apart};
	struct offer o = offer(0, 1000000);

	set_up(b, 1);
	b->conf.max_batch = 1;
	b->conf.command = b->conf.want_volume = true;
	b->conf.providers[0].pods_are_free = free;
	start(b);
	tell(b, (struct event){.type = EV_VOLUME, .volume = &v});
	tell(b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	bring_up(b, 0);
	began(b, 0, 0);
	rendered(b, 0, 0);
	done(b, 0, 0);
}

static void test_sync_before_the_files_are_home(void **state)
{
	static const struct {
		const char *name;
		bool apart, free;
		int asked;
	} cases[] = {
		{"its volume can be read without it", true, false, 1},
		{"it cannot", false, false, 0},
		{"pods that cost nothing", true, true, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		all_but_home(&b, cases[i].apart, cases[i].free);
		check_int(cases[i].name, "syncs", did(&b, ACT_SYNC, 0), cases[i].asked);
		check_phase(&b, cases[i].name, 0, POD_WORKING);
		tear_down(&b);
	}
}

static void test_durable_pods_go_first(void **state)
{
	struct bench b;

	(void)state;
	all_but_home(&b, true, false);
	int turn = first(&b, ACT_SYNC)->number;
	tell(&b, (struct event){.type = EV_SYNCED, .number = turn, .ok = false});
	check_phase(&b, "not now", 0, POD_WORKING);
	wait_ms(&b, 1900);
	check_int("not now", "syncs", did(&b, ACT_SYNC, 0), 0);
	wait_ms(&b, 200);
	check_int("later", "syncs", did(&b, ACT_SYNC, 0), 1);
	tell(&b, (struct event){.type = EV_SYNCED, .number = turn, .ok = true});
	check_phase(&b, "an answer to the first question", 0, POD_WORKING);
	tell(&b, (struct event){.type = EV_SYNCED, .number = turn + 1, .ok = true});
	check_phase(&b, "durable", 0, POD_RELEASING);
	check_int("durable", "releases", did(&b, ACT_RELEASE, 0), 1);
	check_int("durable", "fetches from its volume", did(&b, ACT_FETCH, 0), 1);
	assert_true(pod(&b, 0)->durable && pod(&b, 0)->via_volume);
	tear_down(&b);
}

static void test_a_transfer_that_breaks(void **state)
{
	static const int pauses[] = {500, 1000, 2000};
	struct bench b;

	(void)state;
	all_but_home(&b, false, true);
	/* with its event; this is of the batch's end */
	check_int("rendered", "fetches", did(&b, ACT_FETCH, 0), 0);
	tell_err(&b, EV_HOME_FAILED, 0, ERR_NETWORK);
	check_int("broke once", "fetches", did(&b, ACT_FETCH, 0), 1);
	for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
		tell_err(&b, EV_HOME_FAILED, 0, ERR_NETWORK);
		check_int("broke again", "fetches at once", did(&b, ACT_FETCH, 0), 0);
		wait_ms(&b, pauses[i] - 100);
		check_int("broke again", "fetches before its pause is over", did(&b, ACT_FETCH, 0),
			  0);
		wait_ms(&b, 200);
		check_int("broke again", "fetches", did(&b, ACT_FETCH, 0), 1);
	}
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	wait_ms(&b, 500);
	check_int("no connection", "fetches", did(&b, ACT_FETCH, 0), 0);
	tear_down(&b);

	all_but_home(&b, false, true);
	for (int i = 0; i < 4; i++) {
		tell_err(&b, EV_HOME_FAILED, 0, ERR_NETWORK);
		wait_ms(&b, 5 * SECOND);
	}
	assert_int_equal(core_seg_state(b.core, 0), SEG_RENDERED);
	/* there is something about this file: it is rendered again */
	tell_err(&b, EV_HOME_FAILED, 0, ERR_NETWORK);
	assert_int_not_equal(core_seg_state(b.core, 0), SEG_RENDERED);
	tear_down(&b);

	all_but_home(&b, false, true);
	tell_err(&b, EV_HOME_FAILED, 0, ERR_NETWORK);
	tell_err(&b, EV_HOME_FAILED, 0, ERR_NETWORK);
	tell_err(&b, EV_LOST, 0, ERR_NETWORK); /* in the pause */
	wait_ms(&b, SECOND);
	check_int("the connection went in the pause", "fetches", did(&b, ACT_FETCH, 0), 0);
	tear_down(&b);
}

static void test_files_of_durable_pods_are_waited_for(void **state)
{
	static const enum err_kind kinds[] = {ERR_NOT_FOUND, ERR_NETWORK, ERR_CREDENTIALS,
					      ERR_RATE_LIMITED};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct bench b;
		int asked = 0;
		all_but_home(&b, true, false);
		tell(&b, (struct event){.type = EV_SYNCED,
					.number = first(&b, ACT_SYNC)->number,
					.ok = true});
		tell(&b, (struct event){.type = EV_RELEASED});
		for (int64_t until = b.now + 9 * MINUTE; b.now < until;) {
			tell_err(&b, EV_HOME_FAILED, 0, kinds[i]);
			check_int("delayed", "creates", did(&b, ACT_RENT, -1), 0);
			wait_ms(&b, 15 * SECOND);
			asked += did(&b, ACT_FETCH, 0);
		}
		assert_in_range(asked, 30, 40);
		assert_int_equal(core_seg_state(b.core, 0), SEG_RENDERED);
		b.now += MINUTE + SECOND;
		tell_err(&b, EV_HOME_FAILED, 0, kinds[i]);
		/* `burst fetch` may bring it yet */
		assert_int_equal(core_seg_state(b.core, 0), SEG_FAILED);
		end_well(&b);
		tear_down(&b);
	}
}

static void test_slept_over_files_of_a_durable_pod(void **state)
{
	(void)state;
	for (int slept = 0; slept < 2; slept++) {
		struct bench b;
		all_but_home(&b, true, false);
		tell(&b, (struct event){.type = EV_SYNCED,
					.number = first(&b, ACT_SYNC)->number,
					.ok = true});
		tell(&b, (struct event){.type = EV_RELEASED});
		b.now += HOUR;
		if (slept)
			tell(&b, (struct event){.type = EV_SLEPT});
		tell_err(&b, EV_HOME_FAILED, 0, ERR_NETWORK); /* there is none yet */
		check_int(slept ? "slept" : "an hour in vain", "state", core_seg_state(b.core, 0),
			  slept ? SEG_RENDERED : SEG_FAILED);
		if (slept) {
			wait_ms(&b, SECOND);
			check_int("slept", "fetches", did(&b, ACT_FETCH, 0), 1);
		}
		tear_down(&b);
	}
}

static void test_durable_pods_of_an_earlier_life(void **state)
{
	struct bench b;
	struct core_pod p = {.phase = POD_GONE,
			     .id = "p0",
			     .attempt = "a0",
			     .durable = true,
			     .volume = {.id = "v1", .apart = true}};

	(void)state;
	set_up(&b, 2);
	b.core = core_new(&b.conf, b.segments, b.count);
	core_adopt(b.core, &p);
	tell(&b, (struct event){.type = EV_START});
	check_int("at the start", "salvages", did(&b, ACT_SALVAGE, 0), 1);
	check_int("before its log is read", "questions for offers", did(&b, ACT_OFFERS, -1), 0);
	/* it is asked again, and nothing is rented meanwhile */
	tell_err(&b, EV_SALVAGED, 0, ERR_NETWORK);
	check_int("not to be had now", "questions for offers", did(&b, ACT_OFFERS, -1), 0);
	wait_ms(&b, SECOND);
	check_int("not to be had now", "salvages", did(&b, ACT_SALVAGE, 0), 1);
	rendered(&b, 0, 1);
	check_int("read", "fetches", did(&b, ACT_FETCH, 0), 1);
	tell(&b, (struct event){.type = EV_SALVAGED});
	check_int("read to its end", "questions for offers", did(&b, ACT_OFFERS, -1), 1);
	assert_int_equal(core_seg_state(b.core, 0), SEG_TODO);
	assert_int_equal(core_seg_state(b.core, 1), SEG_RENDERED);
	tear_down(&b);
}

/* ... nor is what a pod finished that was handed over, and has had its time since: nobody needs to
 * reach it for that. */
static void test_files_of_a_pod_whose_time_was_over(void **state)
{
	static const struct {
		const char *name;
		bool apart, was_reached;
		int64_t hard_end_s;
		bool salvaged;
	} cases[] = {
		{"its volume can be read without it", true, true, -3600, true},
		{"it cannot", false, true, -3600, false},
		{"nobody ever reached it", true, false, -3600, false},
		{"it has time left", true, true, 3600, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 2);
		b.now += 24 * HOUR;
		struct core_pod p = {.phase = POD_BOOTING,
				     .id = "p0",
				     .attempt = "a0",
				     .detached = true,
				     .volume = {.id = "v1", .apart = cases[i].apart},
				     .create_at = b.now - 2 * HOUR,
				     .rented_at = b.now - 2 * HOUR,
				     .hard_end_ms = b.now + cases[i].hard_end_s * SECOND};
		p.connected_at = cases[i].was_reached ? p.create_at + MINUTE : 0;
		b.core = core_new(&b.conf, b.segments, b.count);
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		wait_ms(&b, 0);
		check_int(name, "released", did(&b, ACT_RELEASE, 0), cases[i].hard_end_s < 0);
		check_int(name, "salvages", did(&b, ACT_SALVAGE, 0), cases[i].salvaged);
		if (cases[i].salvaged) {
			rendered(&b, 0, 1);
			check_int(name, "fetches", did(&b, ACT_FETCH, 0), 1);
			tell(&b, (struct event){.type = EV_SALVAGED});
			assert_int_equal(core_seg_state(b.core, 0), SEG_TODO);
			assert_int_equal(core_seg_state(b.core, 1), SEG_RENDERED);
		}
		tear_down(&b);
	}
}

static void test_release_of_one_out_of_reach(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 2);
	b.conf.pods = 2;
	b.conf.max_batch = 1;
	b.conf.command = true;
	start_simply(&b);
	bring_up(&b, 0);
	bring_up(&b, 1);
	began(&b, 0, 0);
	rendered(&b, 0, 0);
	done(&b, 0, 0);
	tell(&b, (struct event){.type = EV_HOME, .segment = 0, .ok = true, .check_ok = true});
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	check_phase(&b, "its file is not safe yet", 0, POD_CONNECTING);
	tell(&b, (struct event){.type = EV_SAFE, .segment = 0});
	check_phase(&b, "nothing is left for it", 0, POD_RELEASING);
	check_phase(&b, "the other works on", 1, POD_WORKING);
	tear_down(&b);
}

/* A pod that was seen, then released at 0 s; when was it looked for, was it there, and what
 * follows. */
static const struct {
	const char *name;
	int64_t gap_ms;
	struct {
		int64_t at_ms;
		bool there;
	} looks[4];
	int count;
	enum pod_phase phase;
} confirmations[] = {
	{"one look is not enough", 5000, {{1000}}, 1, POD_CONFIRMING},
	{"two looks too close", 5000, {{1000}, {5999}}, 2, POD_CONFIRMING},
	{"two looks 5 s apart", 5000, {{1000}, {6000}}, 2, POD_GONE},
	{"a look asked for before the release", 5000, {{-1000}, {4500}}, 2, POD_CONFIRMING},
	{"seen in between: from the start",
	 5000,
	 {{1000}, {4000, true}, {7000}},
	 3,
	 POD_CONFIRMING},
	{"seen in between, then two clean ones",
	 5000,
	 {{1000}, {4000, true}, {7000}, {12000}},
	 4,
	 POD_GONE},
	{"one look where the list is the truth", 0, {{1000}}, 1, POD_GONE},
	{"still there after 20 s: asked again", 5000, {{21000, true}}, 1, POD_RELEASING},
};

static void release_seen_pod(struct bench *b, int64_t gap_ms)
{
	set_up(b, 1);
	b->conf.providers[0].look_gap_ms = gap_ms;
	start_simply(b);
	bring_up(b, 0);
	render_batch(b, 0, 0, SECOND, true);
	check_phase(b, "done", 0, POD_RELEASING);
	tell(b, (struct event){.type = EV_RELEASED, .pod = 0});
	check_phase(b, "accepted", 0, POD_CONFIRMING);
}

static void test_two_looks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(confirmations); i++) {
		struct bench b;
		release_seen_pod(&b, confirmations[i].gap_ms);
		int64_t released_at = b.now;
		for (int k = 0; k < confirmations[i].count; k++) {
			int64_t asked = released_at + confirmations[i].looks[k].at_ms;
			struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
			b.now = MAX(b.now, asked);
			tell(&b, (struct event){.type = EV_LISTED,
						.views = &v,
						.count = confirmations[i].looks[k].there,
						.asked_at = asked});
		}
		check_phase(&b, confirmations[i].name, 0, confirmations[i].phase);
		check_int(confirmations[i].name, "ended", core_ended(b.core),
			  confirmations[i].phase == POD_GONE);
		tear_down(&b);
	}
}

/* A pod that its vendor never listed, released as soon as its create was answered: absence alone
 * proves nothing yet. */
static const struct {
	const char *name;
	int64_t gap_ms;
	struct {
		int64_t at_s; /* after the answer to the create */
		bool there;
	} looks[4];
	int count;
	enum pod_phase phase;
} surfacings[] = {
	{"two clean looks within a minute", 5000, {{2}, {59}}, 2, POD_CONFIRMING},
	{"... and one when it would have surfaced", 5000, {{2}, {59}, {60}}, 3, POD_GONE},
	{"two looks, both after a minute", 5000, {{61}, {66}}, 2, POD_GONE},
	{"one look after a minute", 5000, {{61}}, 1, POD_CONFIRMING},
	{"it surfaced: two looks will do", 5000, {{2}, {7, true}, {12}, {17}}, 4, POD_GONE},
	{"where the list is the truth", 0, {{2}}, 1, POD_GONE},
};

static void test_never_listed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(surfacings); i++) {
		const char *name = surfacings[i].name;
		struct bench b;
		set_up(&b, 4);
		b.conf.providers[0].look_gap_ms = surfacings[i].gap_ms;
		start_simply(&b);
		tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
		rented(&b, 0);
		int64_t rented_at = b.now;
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
		for (int k = 0; k < surfacings[i].count; k++) {
			wait_ms(&b, rented_at + surfacings[i].looks[k].at_s * SECOND - b.now);
			list_in(&b, POD_STATE_RUNNING, surfacings[i].looks[k].there ? 0 : -1, -1);
		}
		check_phase(&b, name, 0, surfacings[i].phase);
		check_int(name, "ended", core_ended(b.core), surfacings[i].phase == POD_GONE);
		tear_down(&b);
	}
}

/* ... and it is looked for all that minute, so that it is released again when it surfaces, but not
 * without a pause. */
static void test_looks_for_the_never_listed(void **state)
{
	struct bench b;
	int looks = 0;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
	rented(&b, 0);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
	while (!core_ended(b.core) && looks < 1000) {
		b.now += 100;
		list_nothing(&b);
		looks++;
		if (!did(&b, ACT_LIST, -1) && !core_ended(b.core))
			wait_ms(&b, core_wake_at(b.core) - b.now);
	}
	check_int("a minute", "looks", looks >= 10 && looks <= 20, 1);
	tear_down(&b);
}

/* ... and whoever knew of no such pod when it was released, so soon after its create, is asked once
 * more before it counts as gone. */
static void test_released_before_it_was_known(void **state)
{
	struct bench b;
	int releases = 0;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
	rented(&b, 0);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
	for (int k = 0; k < 40 && !core_ended(b.core); k++) {
		b.now += 4 * SECOND;
		list_nothing(&b);
		if (!did(&b, ACT_RELEASE, 0))
			continue;
		releases++;
		check_phase(&b, "asked once more", 0, POD_RELEASING);
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
	}
	check_phase(&b, "in the end", 0, POD_GONE);
	check_int("before it counts as gone", "releases", releases, 1);
	tear_down(&b);
}

/* A pod whose release was answered with "no such pod", once: seconds from then to each list, and
 * whether that shows it. Nothing was ended, so it takes the gap of an ambiguous create, another
 * release, and two lists after that. */
static const struct {
	const char *name;
	int64_t gap_ms;
	struct {
		int64_t at_s;
		bool there;
	} looks[8];
	int count, releases;
	enum pod_phase phase;
} denials[] = {
	{"two lists 5 s apart prove nothing", 5000, {{1}, {7}}, 2, 0, POD_CONFIRMING},
	{"nor do all of a minute",
	 5000,
	 {{1}, {11}, {21}, {31}, {41}, {51}, {60}},
	 7,
	 0,
	 POD_CONFIRMING},
	{"after a minute it is released again", 5000, {{1}, {31}, {61}}, 3, 1, POD_CONFIRMING},
	{"one list after that is not enough", 5000, {{1}, {31}, {61}, {62}}, 4, 1, POD_CONFIRMING},
	{"two lists after that", 5000, {{1}, {31}, {61}, {62}, {67}}, 5, 1, POD_GONE},
	{"it is there again after 20 s", 5000, {{1}, {11}, {21, true}}, 3, 1, POD_CONFIRMING},
	{"then the minute begins anew",
	 5000,
	 {{1}, {11}, {21, true}, {22}, {61}, {67}, {81}},
	 7,
	 1,
	 POD_CONFIRMING},
	{"where the list is the truth", 0, {{1}}, 1, 0, POD_GONE},
};

static void test_denied_when_it_is_released(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(denials); i++) {
		const char *name = denials[i].name;
		struct bench b;
		int releases = 0;
		set_up(&b, 1);
		b.conf.providers[0].look_gap_ms = denials[i].gap_ms;
		start_simply(&b);
		bring_up(&b, 0);
		list_running(&b, 0);
		render_batch(&b, 0, 0, SECOND, true);
		check_phase(&b, name, 0, POD_RELEASING);
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
		int64_t denied_at = b.now;
		for (int k = 0; k < denials[i].count; k++) {
			wait_ms(&b, denied_at + denials[i].looks[k].at_s * SECOND - b.now);
			list_in(&b, POD_STATE_RUNNING, denials[i].looks[k].there ? 0 : -1, -1);
			if (!did(&b, ACT_RELEASE, 0))
				continue;
			releases++;
			tell(&b, (struct event){
					 .type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
		}
		check_phase(&b, name, 0, denials[i].phase);
		check_int(name, "releases", releases, denials[i].releases);
		check_int(name, "ended", core_ended(b.core), denials[i].phase == POD_GONE);
		tear_down(&b);
	}
}

/* A pod that was at work is released, and its provider answers so: is its agent told to end it, and
 * over which connection? */
static const struct {
	const char *name;
	enum err_kind kind;
	int64_t retry_ms;
	int times, told;
} release_refusals[] = {
	{"the key was revoked", ERR_CREDENTIALS, 0, 1, 1},
	{"... and is refused each time", ERR_CREDENTIALS, 0, 3, 3},
	{"the key has no right to", ERR_REFUSED, 0, 1, 1},
	{"out of order once", ERR_TRANSIENT, 0, 1, 0},
	{"out of order twice", ERR_TRANSIENT, 0, 2, 1},
	{"out of order, for a minute", ERR_TRANSIENT, 60000, 1, 1},
	{"no answer twice", ERR_NETWORK, 0, 2, 1},
	{"its limit lets it through soon", ERR_RATE_LIMITED, 2000, 2, 0},
	{"its limit says so again and again", ERR_RATE_LIMITED, 2000, 4, 1},
	{"its limit is used up for an hour", ERR_RATE_LIMITED, 3600000, 1, 1},
};

static void answer_release(struct bench *b, enum err_kind kind, int64_t retry_ms)
{
	struct err err = {.kind = kind, .retry_after_ms = retry_ms, .msg = "no"};

	tell(b, (struct event){.type = EV_RELEASED, .pod = 0, .err = &err});
}

static void test_its_agent_ends_what_its_provider_does_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(release_refusals); i++) {
		struct bench b;
		int told = 0;
		set_up(&b, 1);
		start_simply(&b);
		bring_up(&b, 0);
		render_batch(&b, 0, 0, SECOND, true);
		check_phase(&b, release_refusals[i].name, 0, POD_RELEASING);
		for (int k = 0; k < release_refusals[i].times; k++) {
			answer_release(&b, release_refusals[i].kind, release_refusals[i].retry_ms);
			told += did(&b, ACT_FINISH, 0);
			wait_ms(&b, 60 * SECOND); /* it is asked again meanwhile */
		}
		check_int(release_refusals[i].name, "told", told, release_refusals[i].told);
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
		check_int(release_refusals[i].name, "closed once it is accepted",
			  did(&b, ACT_CLOSE, 0), 1);
		tear_down(&b);
	}
}

/* Its provider ends it never and lists it no more: it has ended itself, and billed until the first
 * list without it. */
static void test_gone_though_its_release_is_refused(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	bring_up(&b, 0);
	list_running(&b, 0);
	render_batch(&b, 0, 0, SECOND, true);
	answer_release(&b, ERR_REFUSED, 0);
	assert_int_equal(did(&b, ACT_FINISH, 0), 1);
	int64_t told_at = b.now;
	list_running(&b, 0);
	for (int s = 10; s <= 60; s += 10) {
		wait_ms(&b, told_at + s * SECOND - b.now);
		list_nothing(&b);
		check_phase(&b, "not for long enough", 0, POD_RELEASING);
		answer_release(&b, ERR_REFUSED, 0);
	}
	wait_ms(&b, 10 * SECOND);
	list_nothing(&b);
	check_phase(&b, "a minute of lists without it", 0, POD_GONE);
	assert_int_equal(core_billed_ms(pod(&b, 0), b.now) / 1000,
			 (told_at + 10 * SECOND - pod(&b, 0)->create_at + 999) / 1000);
	check_int("then", "ended", core_ended(b.core), 1);
	tear_down(&b);
}

/* Its address is known and its sshd does not answer yet: every quarter of a second counts, for half
 * a minute. */
static void test_connects_again_soon(void **state)
{
	struct bench b;
	int64_t longest = 0, most_later = 0;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	rented(&b, 0);
	list_running(&b, 0);
	int64_t began_at = b.now;
	while (b.now - began_at < MINUTE) {
		int64_t asked_at = b.now;
		assert_int_equal(did(&b, ACT_CONNECT, 0), 1);
		tell_err(&b, EV_CONNECT_FAILED, 0, ERR_NETWORK);
		while (!did(&b, ACT_CONNECT, 0)) {
			wait_ms(&b, core_wake_at(b.core) - b.now);
			if (did(&b, ACT_LIST, -1))
				list_running(&b, 0);
		}
		if (asked_at - began_at < 25 * SECOND)
			longest = MAX(longest, b.now - asked_at);
		most_later = MAX(most_later, b.now - asked_at);
	}
	assert_in_range(longest, 200, 250);
	assert_in_range(most_later, 1000, CONNECT_RETRY_MAX_MS);
	tear_down(&b);
}

/* One that the list had shown, is denied twice, and then seen: it bills until its provider says
 * that it ended it. */
static void test_released_and_not_known_though_it_was_listed(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	bring_up(&b, 0);
	render_batch(&b, 0, 0, SECOND, true);
	check_phase(&b, "all is home", 0, POD_RELEASING);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
	b.now += SECOND;
	list_nothing(&b);
	b.now += 61 * SECOND;
	list_nothing(&b);
	check_phase(&b, "asked once more", 0, POD_RELEASING);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ABSENT});
	b.now += SECOND;
	list_running(&b, 0);
	check_phase(&b, "there it is", 0, POD_RELEASING);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ENDED});
	for (int k = 0; k < 3; k++) {
		b.now += 6 * SECOND;
		list_nothing(&b);
	}
	check_phase(&b, "in the end", 0, POD_GONE);
	tear_down(&b);
}

/* ... and a pod that is only late in the list is not given up while it boots. */
static void test_late_in_the_list(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	rented(&b, 0);
	for (int k = 0; k < 5; k++) {
		b.now += 11 * SECOND;
		list_nothing(&b);
		check_phase(&b, "not listed yet", 0, POD_BOOTING);
	}
	b.now += SECOND;
	list_running(&b, 0);
	check_phase(&b, "there it is", 0, POD_CONNECTING);
	for (int k = 0; k < 2; k++) {
		b.now += 5 * SECOND;
		list_nothing(&b);
	}
	check_phase(&b, "listed, then not: gone", 0, POD_RELEASING);
	tear_down(&b);
}

static void test_release_is_repeated_and_reported(void **state)
{
	struct bench b;
	int asked = 1;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	bring_up(&b, 0);
	render_batch(&b, 0, 0, SECOND, true);
	int64_t began_at = b.now;
	for (bool open = true; !core_ended(b.core);) {
		assert_true(b.now - began_at < 2 * CONFIRM_LIMIT_MS);
		if (open)
			tell_err(&b, EV_RELEASED, 0, ERR_TRANSIENT);
		wait_ms(&b, core_wake_at(b.core) - b.now);
		open = did(&b, ACT_RELEASE, 0);
		asked += open;
		if (did(&b, ACT_LIST, -1))
			list_running(&b, 0);
	}
	assert_true(asked > 15); /* at least every 15 s, for five minutes */
	assert_true(b.now - began_at >= CONFIRM_LIMIT_MS);
	assert_string_equal(summary(&b).status, "unreleased");
	assert_int_equal(exit_status(&b), 9);
	assert_int_equal(summary(&b).safe, 1);
	tear_down(&b);
}

/* The vendor's word on when to come again does not keep a pod for half an hour. */
static void test_release_that_limits_keep_back(void **state)
{
	struct err err = {0};
	struct bench b;
	int asked = 1;

	(void)state;
	set_up(&b, 1);
	start_simply(&b);
	bring_up(&b, 0);
	render_batch(&b, 0, 0, SECOND, true);
	err_set(&err, ERR_RATE_LIMITED, "no room");
	err.retry_after_ms = 30 * MINUTE;
	for (int k = 0; k < 4; k++) {
		tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .err = &err});
		wait_ms(&b, MINUTE);
		asked += did(&b, ACT_RELEASE, 0);
		if (did(&b, ACT_LIST, -1))
			list_running(&b, 0);
	}
	check_int("limits", "releases", asked, 5);
	check_int("limits", "ended", core_ended(b.core), false);
	tear_down(&b);
}

/* ... and no list that says for how long it wants to be left alone keeps a run from looking for its
 * pods. */
static void test_list_that_wants_to_be_left_alone(void **state)
{
	static const enum err_kind kinds[] = {ERR_TRANSIENT, ERR_RATE_LIMITED};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct bench b;
		set_up(&b, 4);
		start_simply(&b);
		rented(&b, 0);
		err_set(&err, kinds[i], "HTTP 503");
		err.retry_after_ms = 24 * HOUR;
		tell(&b, (struct event){.type = EV_LISTED, .err = &err});
		wait_ms(&b, 20 * SECOND);
		check_int("asked for a little patience", "lists", did(&b, ACT_LIST, -1), 0);
		wait_ms(&b, 41 * SECOND);
		check_int("... and for a day", "lists", did(&b, ACT_LIST, -1), 1);
		list_running(&b, 0);
		check_phase(&b, "seen", 0, POD_CONNECTING);
		tear_down(&b);
	}
}

/* The lid was closed for an hour: it looks before it judges. */
static void test_slept_over_a_release(void **state)
{
	struct bench b;

	(void)state;
	for (int answered = 0; answered < 2; answered++) {
		set_up(&b, 1);
		start_simply(&b);
		bring_up(&b, 0);
		render_batch(&b, 0, 0, SECOND, true);
		check_phase(&b, "asleep", 0, POD_RELEASING);
		if (answered)
			tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
		else
			tell_err(&b, EV_RELEASED, 0, ERR_TRANSIENT);
		if (did(&b, ACT_LIST, -1))
			list_nothing(&b);
		b.now += HOUR;
		tell(&b, (struct event){.type = EV_SLEPT});
		int looks = did(&b, ACT_LIST, -1);
		wait_ms(&b, 0);
		check_int("awake", "ended", core_ended(b.core), false);
		check_int("awake", "looks", looks + did(&b, ACT_LIST, -1), 1);
		check_int("awake", "releases", did(&b, ACT_RELEASE, 0), !answered);
		if (!answered)
			tell(&b, (struct event){.type = EV_RELEASED, .pod = 0});
		for (int k = 0; k < 3 && !core_ended(b.core); k++) {
			list_nothing(&b);
			b.now += 6 * SECOND;
		}
		check_int("seen", "exit", exit_status(&b), 0);
		tear_down(&b);
	}
}

static void test_slept_over_a_boot(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	rented(&b, 0);
	list_in(&b, POD_STATE_CREATING, 0, -1);
	b.now += b.conf.boot_limit_ms + MINUTE;
	tell(&b, (struct event){.type = EV_SLEPT});
	check_int("awake", "looks", did(&b, ACT_LIST, -1), 1);
	wait_ms(&b, 10 * SECOND);
	check_phase(&b, "awake", 0, POD_BOOTING);
	list_running(&b, 0);
	check_phase(&b, "it had come up", 0, POD_CONNECTING);
	tear_down(&b);
}

/* The answers may be here, and are read after it is known that it slept. */
static void test_slept_over_the_first_offers(void **state)
{
	static const int64_t waits_ms[] = {10 * MINUTE, 10 * SECOND};
	struct offer o = offer(0, 1000000);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(waits_ms); i++) {
		struct bench b;
		int64_t left_ms = MIN(waits_ms[i], (int64_t)ASK_PATIENCE_MS);
		set_up(&b, 4);
		b.conf.wait_ms = waits_ms[i];
		start(&b);
		b.now += 8 * HOUR;
		tell(&b, (struct event){.type = EV_SLEPT});
		wait_ms(&b, left_ms - 1);
		check_int("awake", "stopping", core_stopping(b.core), false);
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_int("read", "creates", did(&b, ACT_RENT, -1), 1);
		tear_down(&b);

		set_up(&b, 4);
		b.conf.wait_ms = waits_ms[i];
		start(&b);
		b.now += 8 * HOUR;
		tell(&b, (struct event){.type = EV_SLEPT});
		wait_ms(&b, ASK_PATIENCE_MS + SECOND);
		check_int("nothing came", "exit", exit_status(&b), 6);
		tear_down(&b);
	}
}

static void test_slept_over_the_last_look(void **state)
{
	struct bench b;

	(void)state;
	int64_t lost_at = lose_sight_of_a_twin(&b);
	int looks = 0;
	while (b.now < lost_at + SURFACE_LIMIT_MS) {
		wait_ms(&b, core_wake_at(b.core) - b.now);
		looks = did(&b, ACT_LIST, -1);
		if (looks && b.now < lost_at + SURFACE_LIMIT_MS)
			list_nothing(&b);
	}
	check_int("a minute after the loss", "looks", looks, 1);
	int64_t asked_at = b.now;
	b.now += HOUR;
	tell(&b, (struct event){.type = EV_SLEPT});
	wait_ms(&b, 0);
	check_int("awake", "ended", core_ended(b.core), false);
	tell(&b, (struct event){.type = EV_LISTED, .asked_at = asked_at});
	check_int("read", "ended", core_ended(b.core), true);
	check_int("read", "exit", exit_status(&b), 0);
	tear_down(&b);
}

/* ---- money and time ---- */

static void test_committed(void **state)
{
	/* a pod at $3.60 an hour costs 1000 micro-dollars a second; its hard end is 100 s from now
	 * (and ending itself may take it 5 s), it was asked for 10 s ago */
	static const struct {
		const char *name;
		enum pod_phase phase;
		bool released; /* accepted */
		int64_t want;
	} cases[] = {
		{"being rented: all that it may come to", POD_RENTING, false, 120000},
		{"ambiguous: as if it lived", POD_AMBIGUOUS, false, 120000},
		{"working", POD_WORKING, false, 120000},
		{"the release is not accepted yet", POD_RELEASING, false, 120000},
		{"accepted, not confirmed: until now", POD_CONFIRMING, true, 10000},
		{"gone: in the sum already", POD_GONE, true, 0},
		{"never existed", POD_NEVER, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct core_pod p = {.phase = cases[i].phase,
				     .price_microusd_h = 3600000,
				     .create_at = 40000,
				     .hard_end_ms = 150000,
				     .released_at = cases[i].released ? 49000 : 0};
		struct core c = {.pods = &p, .pod_count = 1, .now = 50000, .spent_microusd = 7};
		check_int(cases[i].name, "micro-dollars", budget_committed(&c), 7 + cases[i].want);
	}
}

static void test_hard_end(void **state)
{
	static const struct {
		const char *name;
		int64_t price, max_cost, spent, deadline_s;
		int more;
		int64_t want_s; /* from now; -1: no room */
		int64_t cold_s; /* what the newest pod took to come up; 0: none did */
	} cases[] = {
		{"no cap: a day", 3600000, 0, 0, 0, 1, 24 * 3600},
		{"caps.max_duration", 3600000, 0, 0, 600, 1, 600},
		{"caps.max_cost, less 10 s to end itself", 3600000, 100000, 0, 0, 1, 90},
		{"what is left of it", 3600000, 100000, 40000, 0, 1, 50},
		{"shared with pods to come", 3600000, 100000, 0, 0, 2, 40, 6},
		{"not where half of it would go into coming up", 3600000, 100000, 0, 0, 2, 90, 7},
		{"nor where nothing is known of that", 3600000, 100000, 0, 0, 2, 90},
		{"the earlier of both", 3600000, 100000, 0, 30, 1, 30},
		{"a pod for nothing", 0, 100000, 0, 0, 1, 24 * 3600},
		{"spent", 3600000, 100000, 100000, 0, 1, -1},
		{"not worth its boot", 3600000, 19999, 0, 0, 1, -1},
		{"just worth it", 3600000, 20000, 0, 0, 1, 10},
		{"the end is near", 3600000, 0, 0, 9, 1, -1},
		{"it would come up in time for nothing", 3600000, 0, 0, 60, 1, -1, 48},
		{"it would come up in time for a little", 3600000, 0, 0, 60, 1, 60, 47},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct core c = {
			.now = 5000,
			.spent_microusd = cases[i].spent,
			.deadline_at = cases[i].deadline_s ? 5000 + cases[i].deadline_s * 1000 : 0,
			.cold_ms = cases[i].cold_s * 1000};
		c.conf.max_cost_microusd = cases[i].max_cost;
		int64_t end = budget_hard_end(&c, cases[i].price, cases[i].more);
		check_int(cases[i].name, "hard end", end < 0 ? -1 : (end - 5000) / 1000,
			  cases[i].want_s);
	}
}

static void test_shares_of_a_cap(void **state)
{
	static const struct {
		const char *name;
		int64_t left_s; /* of one pod's time */
		int most;
		int64_t cold_s;
		int want;
	} cases[] = {
		{"plenty", 3600, 4, 33, 4},
		{"$0.06 at $0.69 an hour, boots unknown", 313, 3, 60, 1},
		{"enough for two", 500, 3, 33, 2},
		{"five boots and the time for releasing, each", 3 * (5 * 33 + 10 + 40), 3, 33, 3},
		{"a little less", 3 * (5 * 33 + 10 + 39), 3, 33, 2},
		{"one alone", 10, 1, 33, 1},
		{"nothing", 0, 3, 33, 1},
		{"no pods to come", 1000, 0, 33, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_int(cases[i].name, "shares",
			  budget_shares(cases[i].left_s * SECOND, cases[i].most,
					cases[i].cold_s * SECOND),
			  cases[i].want);
}

static void test_margin(void **state)
{
	(void)state;
	check_int("a minute", "margin", budget_margin(MINUTE), 6000);
	check_int("an hour", "margin", budget_margin(HOUR), 20000);
}

static void test_hard_end_of_a_pod(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.max_duration_ms = 100 * SECOND;
	start_simply(&b);
	int64_t hard_end = b.now + 100 * SECOND;
	assert_int_equal(pod(&b, 0)->hard_end_ms, hard_end);
	assert_int_equal(pod(&b, 0)->hard_end_s, (WALL_MS + hard_end) / 1000);
	/* no lease beyond it */
	assert_int_equal(pod(&b, 0)->first_lease_end_s, pod(&b, 0)->hard_end_s);
	bring_up(&b, 0);
	wait_ms(&b, hard_end - 20 * SECOND - b.now - 1);
	assert_int_equal(did(&b, ACT_REVOKE, 0), 0);
	wait_ms(&b, 1);
	assert_int_equal(did(&b, ACT_REVOKE, 0), 1); /* two margins before: nothing new is begun */
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	wait_ms(&b, 10 * SECOND);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 1); /* one margin before: released */
	tear_down(&b);
}

/* ... though there is work, and a pod that waits for it: what that has finished comes home, then it
 * goes, and none is rented. */
static void test_nothing_is_begun_beside_the_cap(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 40);
	b.conf.max_duration_ms = 100 * SECOND;
	start_simply(&b);
	int64_t hard_end = b.now + 100 * SECOND;
	bring_up(&b, 0);
	check_int("early", "batches", did(&b, ACT_SEND, 0) > 0, true);
	began(&b, 0, 0);
	uint32_t segment = core_batch_at(b.core, 0)->segments[0];
	rendered(&b, 0, segment);
	wait_ms(&b, hard_end - 20 * SECOND - b.now);
	check_int("near the cap", "batches", did(&b, ACT_SEND, 0), 0);
	done(&b, 0, 0);
	check_int("it has done what it had", "batches", did(&b, ACT_SEND, 0), 0);
	check_int("a file is on its way", "releases", did(&b, ACT_RELEASE, 0), 0);
	safe(&b, 0, segment, true);
	wait_ms(&b, hard_end - 10 * SECOND - b.now);
	check_int("it is home", "batches", did(&b, ACT_SEND, 0), 0);
	check_int("it is home", "releases", did(&b, ACT_RELEASE, 0), 1);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	check_int("beside the cap", "creates", did(&b, ACT_RENT, -1), 0);
	end_well(&b);
	check_int("in the end", "exit", exit_status(&b), 5);
	tear_down(&b);
}

/* Whatever its length, the client gives a pod up before the pod ends itself. */
static void test_first_lease_outlasts_the_boot_limit(void **state)
{
	static const struct {
		const char *name;
		int64_t boot_limit_s, lease_s;
	} cases[] = {{"shortest", 5, 8},
		     {"short", 30, 33},
		     {"a minute", 60, 66},
		     {"usual", 600, 630},
		     {"longest", 7200, 7230}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;

		set_up(&b, 4);
		b.conf.boot_limit_ms = cases[i].boot_limit_s * SECOND;
		start_simply(&b);
		int64_t created = b.now;
		check_int(cases[i].name, "first lease", pod(&b, 0)->first_lease_end_s,
			  (WALL_MS + created) / 1000 + cases[i].lease_s);
		rented(&b, 0);
		b.now += 10;
		list_running(&b, 0);
		wait_ms(&b, created + cases[i].boot_limit_s * SECOND - b.now);
		check_int(cases[i].name, "releases", did(&b, ACT_RELEASE, 0) > 0, true);
		tear_down(&b);
	}
}

static void test_lease(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 8);
	start_simply(&b);
	/* no lease behind boot_limit */
	assert_int_equal(pod(&b, 0)->first_lease_end_s,
			 (WALL_MS + b.now + 5 * MINUTE + 30 * SECOND) / 1000);
	rented(&b, 0);
	b.now += 10;
	list_running(&b, 0);
	wait_ms(&b, MINUTE);
	check_int("not connected", "renewals", did(&b, ACT_RENEW, 0), 0);
	connected(&b, 0);
	wait_ms(&b, 0);
	check_int("at once", "renewals", did(&b, ACT_RENEW, 0), 1);
	wait_ms(&b, 10 * MINUTE - 1);
	check_int("every third of a lease", "renewals", did(&b, ACT_RENEW, 0), 2);
	wait_ms(&b, 1);
	check_int("... to the ms", "renewals", did(&b, ACT_RENEW, 0), 1);
	b.now += MINUTE;
	tell(&b, (struct event){.type = EV_SLEPT});
	wait_ms(&b, 0);
	check_int("the machine slept", "renewals", did(&b, ACT_RENEW, 0), 1);
	tell_err(&b, EV_LOST, 0, ERR_NETWORK);
	wait_ms(&b, MINUTE);
	check_int("no connection", "renewals", did(&b, ACT_RENEW, 0), 0);
	tear_down(&b);
}

static void test_caps_end_the_run(void **state)
{
	static const struct {
		const char *name;
		int64_t max_duration_ms, max_cost;
		bool work_done;
		int status;
	} cases[] = {
		{"caps.max_duration", 2 * MINUTE, 0, false, 5},
		{"caps.max_cost", 0, 40000, false, 5}, /* $1/h: 144 s */
		{"all was safe in time", 2 * MINUTE, 0, true, 0},
		{"no cap", 0, 0, true, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 1);
		b.conf.max_duration_ms = cases[i].max_duration_ms;
		b.conf.max_cost_microusd = cases[i].max_cost;
		start_simply(&b);
		bring_up(&b, 0);
		if (cases[i].work_done)
			render_batch(&b, 0, 0, SECOND, true);
		else
			began(&b, 0, 0);
		for (int k = 0; k < 30 && pod(&b, 0)->phase < POD_RELEASING; k++)
			wait_ms(&b, 10 * SECOND);
		end_well(&b);
		check_int(cases[i].name, "exit", exit_status(&b), cases[i].status);
		check_int(cases[i].name, "below the cap",
			  !cases[i].max_cost || summary(&b).cost_microusd <= cases[i].max_cost, 1);
		check_int(cases[i].name, "pods", core_pod_count(b.core), 1);
		tear_down(&b);
	}
}

static const struct event alive_again = {
	.type = EV_CONNECTED, .switch_ok = true, .workers_alive = true, .number = 1};

/* Pods of an earlier life of the run that came up a minute ago and may live for four hours more, at
 * $1 an hour each; listed as running, not connected yet. */
static void adopt_living(struct bench *b, int i, int64_t ready_at)
{
	struct core_pod p = {.phase = POD_BOOTING,
			     .price_microusd_h = 1000000,
			     .create_at = b->now - MINUTE,
			     .rented_at = b->now - MINUTE,
			     .running_at = b->now - MINUTE,
			     .ready_at = ready_at,
			     .listed = true,
			     .hard_end_ms = b->now + 4 * HOUR,
			     .hard_end_s = (WALL_MS + b->now + 4 * HOUR) / 1000};

	snprintf(p.id, sizeof(p.id), "p%d", i);
	snprintf(p.attempt, sizeof(p.attempt), "a%d", i);
	COPY_TEXT(p.offer.provider, "alpha");
	p.offer.price_microusd_h = p.price_microusd_h;
	core_adopt(b->core, &p);
}

static void find_living(struct bench *b, int pods)
{
	b->core = core_new(&b->conf, b->segments, b->count);
	for (int i = 0; i < pods; i++)
		adopt_living(b, i, 0);
	tell(b, (struct event){.type = EV_START});
	list_in(b, POD_STATE_RUNNING, 0, pods > 1 ? 1 : -1);
}

static void take_over(struct bench *b, int pods)
{
	find_living(b, pods);
	for (int i = 0; i < pods; i++) {
		struct event ev = alive_again;
		ev.pod = i;
		tell(b, ev);
	}
}

/* What two pods have in hand, and have done, is known before either is given work: the first to
 * answer would do it again. */
static void test_taken_over_one_after_the_other(void **state)
{
	static const struct {
		const char *name;
		bool worked, answers;
		int64_t waits_s;
	} cases[] = {
		{"both answer", true, true, 0},
		{"the other one is not reached", true, false, 20},
		{"the other one had never worked", false, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct event ev = alive_again;
		struct bench b;
		set_up(&b, 8);
		b.conf.pods = 2;
		b.conf.max_batch = 1;
		b.core = core_new(&b.conf, b.segments, b.count);
		adopt_living(&b, 0, b.now - MINUTE / 2);
		adopt_living(&b, 1, cases[i].worked ? b.now - MINUTE / 2 : 0);
		tell(&b, (struct event){.type = EV_START});
		wait_ms(&b, 5 * SECOND);
		list_in(&b, POD_STATE_RUNNING, 0, 1);
		int64_t listed_at = b.now;
		rendered(&b, 0, 0);
		tell(&b, ev);
		check_phase(&b, cases[i].name, 0, POD_WORKING);
		int sent = did(&b, ACT_SEND, -1);
		if (cases[i].answers) {
			check_int(cases[i].name, "sent too early", sent, 0);
			b.now += SECOND;
			rendered(&b, 1, 1);
			tell(&b, (struct event){
					 .type = EV_RUNNING, .pod = 1, .segment = 2, .t = b.now});
			ev.pod = 1;
			tell(&b, ev);
			check_int(cases[i].name, "sent to the first", did(&b, ACT_SEND, 0), 2);
			check_int(cases[i].name, "sent to the second", did(&b, ACT_SEND, 1), 1);
			check_int(cases[i].name, "is done", core_seg_state(b.core, 1),
				  SEG_RENDERED);
			check_int(cases[i].name, "is in hand", core_seg_state(b.core, 2), SEG_HELD);
		} else {
			while (!sent && b.now < listed_at + MINUTE) {
				wait_ms(&b, SECOND);
				sent = did(&b, ACT_SEND, 0);
			}
			check_int(cases[i].name, "sent after s", (b.now - listed_at) / 1000,
				  cases[i].waits_s);
		}
		tear_down(&b);
	}
}

/* Whoever goes on with a run may have lowered its caps: they hold for the pods that he finds, too.
 */
static void test_lower_caps_hold_for_pods_taken_over(void **state)
{
	static const struct {
		const char *name;
		int pods;
		int64_t max_cost, max_duration_ms;
		int64_t ends_s, margin_s; /* from now */
	} cases[] = {
		{"caps.max_cost: six minutes, one of them over", 1, 100000, 0,
		 300 - SELF_END_MS / 1000, 20},
		{"... for two pods", 2, 100000, 0, 120 - SELF_END_MS / 1000, 17},
		{"caps.max_cost is used up", 1, 10000, 0, 0, 0},
		{"caps.max_duration", 1, 0, 10 * MINUTE, 600, 20},
		{"room for all of it", 2, 9000000, 5 * HOUR, 4 * 3600, 20},
	};
	struct offer o = offer(0, 1000000);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 40);
		b.conf.pods = cases[i].pods;
		b.conf.max_cost_microusd = cases[i].max_cost;
		b.conf.max_duration_ms = cases[i].max_duration_ms;
		int64_t began_at = b.now;
		take_over(&b, cases[i].pods);
		while (pod(&b, 0)->phase < POD_RELEASING) {
			assert_true(b.now - began_at < 5 * HOUR);
			wait_ms(&b, MAX(core_wake_at(b.core) - b.now, 0));
			if (did(&b, ACT_LIST, -1))
				list_in(&b, POD_STATE_RUNNING, 0, cases[i].pods > 1 ? 1 : -1);
		}
		int64_t went_s = (b.now - began_at) / 1000;
		if (llabs(went_s - (cases[i].ends_s - cases[i].margin_s)) > 2)
			fail_msg("%s: goes after %lld s", name, (long long)went_s);
		for (int k = 0; k < cases[i].pods; k++) {
			check_phase(&b, name, k, POD_RELEASING);
			check_int(name, "its own end", pod(&b, k)->hard_end_ms + pod(&b, k)->cut_ms,
				  began_at + 4 * HOUR);
		}
		if (cases[i].ends_s && cases[i].max_cost)
			check_int(name, "within the cap",
				  summary(&b).cost_microusd <= cases[i].max_cost, 1);
		if (cases[i].ends_s < HOUR / 1000) {
			tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
			end_well(&b);
			check_int(name, "exit", exit_status(&b), 5);
		}
		tear_down(&b);
	}
}

/* What a pod of an earlier life had cost was noted by a clock that may have been set back since.
 * Its vendor's tells how old it is. */
static void test_older_than_our_clock_says(void **state)
{
	static const struct {
		const char *name;
		/* by its vendor's clock than by ours, which is so far ahead of it */
		int64_t older_s, ahead_ms;
		int64_t took_ms; /* its list */
		bool untold;     /* nobody knows its clock */
		int64_t billed_s;
		bool goes;
	} cases[] = {
		{"it does not say", -1, 0, 0, false, 60, false},
		{"our clock is right", 0, 0, 0, false, 60, false},
		{"... and so is its", 1, 0, 0, false, 60, false},
		{"... and its answer is slow", 0, -10000, 12000, false, 72, false},
		{"ours was set back by two minutes", 0, -120000, 0, false, 178, false},
		{"... and its answer is slow", 0, -120000, 12000, false, 178, false},
		{"... and it is older than the cap lets it be", 0, -360000, 0, false, 418, true},
		{"ours was set forward", 0, 120000, 0, false, 60, false},
		{"its clock is not known", 120, 0, 0, true, 60, false},
		{"it was made before any pod of this run", 48 * 3600, 0, 0, false, 60, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 40);
		b.conf.pods = 1;
		b.conf.max_cost_microusd = 100000; /* six minutes */
		take_over(&b, 1);
		struct pod_view v = view_of(&b, 0, POD_STATE_RUNNING);
		/* so that by ours, put right, it is as old as its row says, or older */
		int64_t made_ms = WALL_MS + pod(&b, 0)->create_at - cases[i].older_s * SECOND,
			asked_at = b.now;
		v.created_at_s = cases[i].older_s < 0 ? 0 : made_ms / 1000;
		b.now += cases[i].took_ms;
		tell(&b, (struct event){.type = EV_LISTED,
					.views = &v,
					.count = 1,
					.asked_at = asked_at,
					.ahead_ms = cases[i].ahead_ms,
					.clock_known = !cases[i].untold});
		check_int(cases[i].name, "billed s", core_billed_ms(pod(&b, 0), b.now) / 1000,
			  cases[i].billed_s);
		check_int(cases[i].name, "saved", did(&b, ACT_SAVE, 0) > 0,
			  pod(&b, 0)->create_at < asked_at - MINUTE);
		if (cases[i].goes) {
			wait_ms(&b, 1);
			assert_int_equal(did(&b, ACT_RELEASE, 0), 1);
		} else {
			check_int(cases[i].name, "within the cap",
				  money_for(1000000, pod(&b, 0)->hard_end_ms + SELF_END_MS -
							     pod(&b, 0)->create_at) <= 100000,
				  1);
		}
		tear_down(&b);
	}
}

/* A day away is not billed: one that has ended itself meanwhile takes nothing from another that
 * works. */
static void test_one_that_ended_itself_shortens_no_other(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 40);
	b.now += 24 * HOUR;
	b.conf.pods = 2;
	b.conf.max_cost_microusd = 10000000;
	b.core = core_new(&b.conf, b.segments, b.count);
	/* began 8 hours ago: for 4 hours at $1.20, for 10 at $0.50, which is 9.80 */
	for (int i = 0; i < 2; i++) {
		int64_t began = b.now - 8 * HOUR, end = began + (i ? 10 : 4) * HOUR;
		struct core_pod p = {.phase = POD_BOOTING,
				     .detached = true,
				     .price_microusd_h = i ? 500000 : 1200000,
				     .create_at = began,
				     .rented_at = began,
				     .running_at = began,
				     .connected_at = began + MINUTE,
				     .listed = true,
				     .hard_end_ms = end,
				     .hard_end_s = (WALL_MS + end) / 1000};
		snprintf(p.id, sizeof(p.id), "p%d", i);
		snprintf(p.attempt, sizeof(p.attempt), "a%d", i);
		COPY_TEXT(p.offer.provider, "alpha");
		p.offer.price_microusd_h = p.price_microusd_h;
		core_adopt(b.core, &p);
	}
	int64_t end = pod(&b, 1)->hard_end_ms;
	tell(&b, (struct event){.type = EV_START});
	wait_ms(&b, SECOND);
	check_phase(&b, "at work", 1, POD_BOOTING);
	check_int("at work", "its hard end", pod(&b, 1)->hard_end_ms, end);
	assert_int_equal(did(&b, ACT_RELEASE, 1), 0);
	tear_down(&b);
}

static void adopt_of_four_hours(struct bench *b, int64_t end) /* at $1.20, to end itself then */
{
	struct core_pod p = {.phase = POD_BOOTING,
			     .id = "p0",
			     .attempt = "a0",
			     .price_microusd_h = 1200000,
			     .create_at = b->now - 4 * HOUR,
			     .rented_at = b->now - 4 * HOUR,
			     .hard_end_ms = end,
			     .hard_end_s = (WALL_MS + end) / 1000};

	b->conf.max_cost_microusd = 10000000;
	b->conf.wait_ms = 10 * HOUR;
	b->core = core_new(&b->conf, b->segments, b->count);
	core_adopt(b->core, &p);
	tell(b, (struct event){.type = EV_START});
}

/* An outage: nobody can end it, not it itself either, and what it costs meanwhile is nobody else's.
 */
static void test_what_cannot_be_ended_is_paid_for(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.now += 24 * HOUR;
	adopt_of_four_hours(&b, b.now + MINUTE);
	list_running(&b, 0);
	for (int64_t until = b.now + 3 * HOUR; b.now < until;) {
		if (pod(&b, 0)->phase == POD_RELEASING)
			tell_err(&b, EV_RELEASED, 0, ERR_TRANSIENT);
		wait_ms(&b, 10 * SECOND);
	}
	check_phase(&b, "after hours", 0, POD_RELEASING);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	int64_t left = (10 - 7 * 1.2) * 3600;
	assert_in_range((pod(&b, 1)->hard_end_ms - b.now) / 1000, left - 60, left); /* at $1 */
	tear_down(&b);
}

/* Its container may never have run, and so not ended it: nothing is rented on the guess that it
 * has. */
static void test_nothing_is_rented_unseen(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.now += 24 * HOUR;
	adopt_of_four_hours(&b, b.now - 3 * HOUR);
	tell_err(&b, EV_LISTED, 0, ERR_TRANSIENT);
	tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	wait_ms(&b, 10 * SECOND);
	assert_int_equal(did(&b, ACT_RENT, -1), 0);
	list_running(&b, 0); /* it is there: 4.80 are spent, and are growing */
	assert_int_equal(did(&b, ACT_RENT, -1), 1);
	assert_in_range((pod(&b, 1)->hard_end_ms - b.now) / 1000, 5 * 3600, 52 * 360);
	tear_down(&b);
}

/* ... which is not held against what it finished: that comes home first. */
static void test_lower_price_for_a_pod_taken_over(void **state)
{
	(void)state;
	for (int dear = 0; dear < 2; dear++) {
		struct bench b;
		set_up(&b, 40);
		b.conf.max_price_microusd_h = 1000000 - dear;
		take_over(&b, 1);
		check_phase(&b, "taken over", 0, dear ? POD_RELEASING : POD_WORKING);
		check_int("taken over", "sent", did(&b, ACT_SEND, 0) > 0, !dear);
		tear_down(&b);
	}
	struct bench b;
	set_up(&b, 40);
	b.conf.max_price_microusd_h = 900000;
	find_living(&b, 1);
	rendered(&b, 0, 3); /* as its log says */
	tell(&b, alive_again);
	check_int("with a file", "fetches", did(&b, ACT_FETCH, 0), 1);
	check_int("with a file", "releases", did(&b, ACT_RELEASE, 0), 0);
	safe(&b, 0, 3, true);
	check_int("it is home", "releases", did(&b, ACT_RELEASE, 0), 1);
	tear_down(&b);
}

/* A pod of an earlier life ended itself, and somebody looks 86 s after its create. Its provider has
 * a record of how long it ran. */
static void test_booked_until_its_providers_end(void **state)
{
	static const struct {
		const char *name;
		bool listed; /* once in this life */
		enum release_word word;
		/* began_s: after its create; 0: its provider does not say when */
		int64_t began_s, ran_s;
		int64_t billed_s;
	} cases[] = {
		{"ended after 20 s", false, RELEASE_TAKEN, 5, 15, 21},
		{"... by its provider, which knew of none", false, RELEASE_ABSENT, 5, 15, 21},
		{"it never ran", false, RELEASE_TAKEN, 5, 0, 6},
		{"it is not said when it began", false, RELEASE_TAKEN, 0, 15, -1},
		{"a record beyond our look", false, RELEASE_TAKEN, 5, 600, -1},
		{"it was there when we looked", true, RELEASE_TAKEN, 5, 15, -1},
		{"its release ended it", false, RELEASE_ENDED, 5, 15, -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 4);
		b.conf.reap = true;
		int64_t create_at = b.now - 86 * SECOND, hard_end = create_at + HOUR;
		struct core_pod p = {.phase = POD_BOOTING,
				     .id = "p0",
				     .attempt = "a0",
				     .price_microusd_h = 690000,
				     .create_at = create_at,
				     .rented_at = create_at,
				     .hard_end_ms = hard_end,
				     .hard_end_s = (WALL_MS + hard_end) / 1000,
				     .detached = true};
		p.vendor_started_s =
			cases[i].began_s ? (WALL_MS + create_at) / 1000 + cases[i].began_s : 0;
		b.core = core_new(&b.conf, b.segments, b.count);
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		if (cases[i].listed)
			list_in(&b, POD_STATE_RUNNING, 0, -1);
		for (int k = 0; k < 60 && pod(&b, 0)->phase != POD_GONE; k++) {
			if (pod(&b, 0)->phase == POD_RELEASING)
				tell(&b,
				     (struct event){.type = EV_RELEASED, .number = cases[i].word});
			wait_ms(&b, 5 * SECOND);
			list_nothing(&b);
		}
		check_phase(&b, name, 0, POD_GONE);
		int64_t before_ms = core_billed_ms(pod(&b, 0), b.now);
		bool sooner = core_ran_for(b.core, 0, cases[i].ran_s * SECOND);
		check_int(name, "sooner", sooner, cases[i].billed_s > 0);
		check_int(name, "billed s", core_billed_ms(pod(&b, 0), b.now) / 1000,
			  sooner ? cases[i].billed_s : before_ms / 1000);
		tear_down(&b);
	}
}

/* Power was cut twelve hours ago, with a pod that was to end itself an hour after its create; the
 * boot clock began anew since. */
static void test_found_gone_the_next_day(void **state)
{
	static const struct {
		const char *name;
		int64_t hard_end_s;    /* from its create */
		enum pod_state listed; /* UNKNOWN: not */
		enum release_word word;
		int64_t billed_s;
	} cases[] = {
		{"its vendor knows of none", 3600, POD_STATE_UNKNOWN, RELEASE_ABSENT,
		 3600 + SELF_END_MS / 1000},
		{"... and does not say so, but lists none", 3600, POD_STATE_UNKNOWN, RELEASE_TAKEN,
		 3600 + SELF_END_MS / 1000},
		{"its vendor calls it gone, and not since when", 3600, POD_STATE_GONE,
		 RELEASE_TAKEN, 3600 + SELF_END_MS / 1000},
		{"it was there until now", 3600, POD_STATE_UNKNOWN, RELEASE_ENDED, 12 * 3600 + 1},
		{"it was listed", 3600, POD_STATE_RUNNING, RELEASE_TAKEN, 12 * 3600},
		{"it was to end itself a minute ago, by a clock that may be off", 12 * 3600 - 60,
		 POD_STATE_UNKNOWN, RELEASE_ABSENT, 12 * 3600 + 1},
	};
	struct offer o = offer(0, 690000);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = cases[i].name;
		struct bench b;
		set_up(&b, 4);
		b.conf.max_cost_microusd = 5000000;
		int64_t create_at = b.now - 12 * HOUR,
			hard_end = create_at + cases[i].hard_end_s * SECOND;
		struct core_pod p = {.phase = POD_BOOTING,
				     .id = "p0",
				     .attempt = "a0",
				     .price_microusd_h = 690000,
				     .create_at = create_at,
				     .rented_at = create_at,
				     .hard_end_ms = hard_end,
				     .hard_end_s = (WALL_MS + hard_end) / 1000};
		b.core = core_new(&b.conf, b.segments, b.count);
		core_adopt(b.core, &p);
		tell(&b, (struct event){.type = EV_START});
		if (cases[i].listed != POD_STATE_UNKNOWN)
			list_in(&b, cases[i].listed, 0, -1);
		wait_ms(&b, SECOND);
		for (int k = 0; k < 40 && pod(&b, 0)->phase != POD_GONE; k++) {
			if (pod(&b, 0)->phase == POD_RELEASING)
				tell(&b,
				     (struct event){.type = EV_RELEASED, .number = cases[i].word});
			wait_ms(&b, 5 * SECOND);
			list_nothing(&b);
		}
		check_phase(&b, name, 0, POD_GONE);
		check_int(name, "billed s", core_billed_ms(pod(&b, 0), b.now) / 1000,
			  cases[i].billed_s);
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		check_int(name, "goes on", did(&b, ACT_RENT, -1), cases[i].billed_s < 4 * 3600);
		tear_down(&b);
	}
}

/* ---- stopping ---- */

/* A pod with one segment rendered but not home, and a batch in hand. */
static void start_busy(struct bench *b)
{
	set_up(b, 8);
	b->conf.max_batch = 1;
	start_simply(b);
	bring_up(b, 0);
	began(b, 0, 0);
	rendered(b, 0, core_batch_at(b->core, 0)->segments[0]);
	done(b, 0, 0);
}

static void test_signals(void **state)
{
	struct bench b;
	struct event sigint = {.type = EV_SIGNAL, .number = SIGINT};

	(void)state;
	start_busy(&b);
	uint32_t segment = core_batch_at(b.core, 0)->segments[0];
	tell(&b, sigint);
	check_int("first", "revokes", did(&b, ACT_REVOKE, 0), 1);
	check_int("first", "releases", did(&b, ACT_RELEASE, 0), 0); /* a file is still on its way */
	safe(&b, 0, segment, true);
	check_int("first, all is home", "releases", did(&b, ACT_RELEASE, 0), 1);
	end_well(&b);
	check_int("first", "exit", exit_status(&b), 130);
	tear_down(&b);

	start_busy(&b);
	tell(&b, sigint);
	wait_ms(&b, FETCH_GRACE_MS - 1);
	check_int("first", "releases within 30 s", did(&b, ACT_RELEASE, 0), 0);
	wait_ms(&b, 1);
	check_int("first", "releases after 30 s", did(&b, ACT_RELEASE, 0), 1);
	tear_down(&b);

	start_busy(&b);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
	tell(&b, sigint);
	check_int("second", "releases", did(&b, ACT_RELEASE, 0), 1);
	check_int("second", "ended", core_ended(b.core), false); /* it is confirmed all the same */
	end_well(&b);
	check_int("second", "exit", exit_status(&b), 143);
	tear_down(&b);

	start_busy(&b);
	tell(&b, sigint);
	tell(&b, sigint);
	tell(&b, sigint);
	check_int("third", "ended", core_ended(b.core), true);
	check_int("third", "exit", exit_status(&b), 9);
	tear_down(&b);
}

static void test_signal_while_renting(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_simply(&b);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGINT});
	check_int("the create is under way", "ended", core_ended(b.core), false);
	rented(&b, 0);
	check_int("it came", "releases", did(&b, ACT_RELEASE, 0), 1);
	check_int("it came", "connects", did(&b, ACT_CONNECT, 0), 0);
	tear_down(&b);
}

static const enum err_kind by_gravity[] = {ERR_CAP, ERR_CREDENTIALS, ERR_NETWORK, ERR_NO_CAPACITY,
					   ERR_JOB};
static const int statuses[] = {5, 3, 6, 4, 1};

static void test_exit_precedence(void **state)
{
	struct bench b;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(by_gravity); i++)
		for (size_t k = 0; k < ARRAY_LEN(by_gravity); k++) {
			set_up(&b, 4);
			start(&b);
			tell_err(&b, EV_FAULT, 0, by_gravity[i]);
			check_int(err_kind_name(by_gravity[i]), "exit", exit_status(&b),
				  statuses[i]);
			tear_down(&b);

			set_up(&b, 4);
			start_simply(&b);
			tell_err(&b, EV_FAULT, 0, by_gravity[i]);
			tell_err(&b, EV_FAULT, 0, by_gravity[k]);
			check_int(err_kind_name(by_gravity[i]), err_kind_name(by_gravity[k]),
				  exit_status(&b), statuses[MIN(i, k)]);
			tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
			check_int(err_kind_name(by_gravity[i]), "and a signal", exit_status(&b),
				  143);
			tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
			tell(&b, (struct event){.type = EV_SIGNAL, .number = SIGTERM});
			check_int(err_kind_name(by_gravity[i]), "and a pod left", exit_status(&b),
				  9);
			tear_down(&b);
		}
}

static void test_no_work_no_pod(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 3);
	for (int i = 0; i < 3; i++)
		b.segments[i].done = true;
	start(&b);
	assert_true(core_ended(b.core));
	assert_int_equal(did(&b, ACT_OFFERS, -1) + did(&b, ACT_VOLUME, -1), 0);
	assert_int_equal(exit_status(&b), 0);
	assert_int_equal(summary(&b).cached, 3);
	tear_down(&b);
}

/* What an agent had logged before it began anew is told once more, and its pod seems to be at work.
 */
static void test_failed_to_prepare_at_work(void **state)
{
	struct bench b;
	struct err err = {0};

	(void)state;
	err_set(&err, ERR_TRANSIENT, "the mirror is away");
	set_up(&b, 4);
	start_simply(&b);
	bring_up(&b, 0);
	check_int("at work", "sent", did(&b, ACT_SEND, 0) > 0, true);
	tell(&b, (struct event){.type = EV_PREPARE_FAILED, .pod = 0, .err = &err});
	check_int("it has no workers after all", "released", did(&b, ACT_RELEASE, 0), true);
	tear_down(&b);
}

/* The volume of a pod fills up: others may have room for what it was to do. Where nothing was ever
 * rendered none would. */
static void test_workers_cannot_go_on(void **state)
{
	struct offer o = offer(0, 1000000);

	(void)state;
	for (int some = 0; some < 2; some++) {
		struct bench b;
		struct err err = {0};
		err_set(&err, ERR_JOB, "the volume is full or cannot be written");
		set_up(&b, 8);
		b.conf.max_batch = 2;
		start_simply(&b);
		bring_up(&b, 0);
		if (some)
			render_batch(&b, 0, 0, SECOND, true);
		tell(&b, (struct event){.type = EV_WORKERS_FAILED, .pod = 0, .err = &err});
		check_int("full", "releases", did(&b, ACT_RELEASE, 0), 1);
		tell(&b, (struct event){.type = EV_OFFERS, .offers = &o, .count = 1});
		wait_ms(&b, SECOND);
		int failed = 0, todo = 0;
		for (uint32_t i = 0; i < 8; i++) {
			failed += core_seg_state(b.core, i) == SEG_FAILED;
			todo += core_seg_state(b.core, i) == SEG_TODO;
		}
		check_int("full", "failed segments", failed, 0);
		check_int("full", "segments for others", todo, some ? 6 : 8);
		check_int("full", "pods", core_pod_count(b.core), 1 + some);
		if (!some) {
			end_well(&b);
			check_int("full from the start", "exit", exit_status(&b), 1);
		}
		tear_down(&b);
	}
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
		check_int(cases[i].name, "releases", did(&b, ACT_RELEASE, 0), 1);
		/* its agent ends with a word of its own */
		tell(&b, (struct event){.type = EV_WORKERS_FAILED, .pod = 0, .err = &err});
		tell(&b, (struct event){.type = EV_OFFERS, .offers = offers, .count = 2});
		wait_ms(&b, SECOND);
		check_int(cases[i].name, "pods", core_pod_count(b.core), 1 + cases[i].goes_on);
		if (cases[i].goes_on) {
			assert_string_equal(pod(&b, 1)->offer.gpu, "GPU 1");
		} else {
			end_well(&b);
			check_int(cases[i].name, "exit", exit_status(&b), 1);
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
		check_int("unfit", "pods", core_pod_count(b.core), !both);
		if (!both)
			assert_string_equal(pod(&b, 0)->offer.gpu, "GPU 1");
		tear_down(&b);
	}
}

static void test_unproven_pods_get_no_work(void **state)
{
	static const struct {
		const char *name;
		bool switch_ok, unproven_ok, works;
	} cases[] = {
		{"its switch works", true, false, true},
		{"it does not", false, false, false},
		{"it does not, and the config lets it", false, true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.unproven_ok = cases[i].unproven_ok;
		start_simply(&b);
		rented(&b, 0);
		b.now += 10;
		list_running(&b, 0);
		tell(&b, (struct event){.type = EV_CONNECTED,
					.pod = 0,
					.switch_ok = cases[i].switch_ok,
					.t = b.now});
		check_int(cases[i].name, "prepared", did(&b, ACT_PREPARE, 0), cases[i].works);
		check_int(cases[i].name, "released", did(&b, ACT_RELEASE, 0), !cases[i].works);
		tear_down(&b);
	}
}

/* It is the same image elsewhere: two pods tell enough, whether their provider calls them failed or
 * lets them pull for ever. */
static void test_images_that_cannot_be_pulled(void **state)
{
	struct offer o[] = {offer(0, 1000000), offer(0, 1100000), offer(0, 1200000)};
	struct err why = {.kind = ERR_CONFIG, .msg = "manifest unknown"};

	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		struct bench b;
		set_up(&b, 4);
		b.conf.boot_limit_ms = 5 * MINUTE;
		start_with(&b, o, 3);
		for (int i = 0; i < 2; i++) {
			check_int("unpulled", "pods", core_pod_count(b.core), i + 1);
			rented(&b, i);
			if (fails) {
				list_in(&b, POD_STATE_FAILED, i, -1);
				check_int("failed", "pods while its log is read",
					  core_pod_count(b.core), i + 1);
				tell(&b,
				     (struct event){.type = EV_UNPULLED, .pod = i, .err = &why});
				check_int("failed", "hosts that are no worse for it",
					  did(&b, ACT_GOOD_HOST, i), 1);
			} else {
				wait_ms(&b, LOG_EARLY_MS);
				check_int("pulling", "logs read", did(&b, ACT_LOG, i), 1);
				tell(&b,
				     (struct event){.type = EV_UNPULLED, .pod = i, .err = &why});
				check_int("pulling", "bad hosts", did(&b, ACT_BAD_HOST, i), 0);
			}
			assert_string_equal(pod(&b, i)->reason,
					    "its image cannot be pulled: manifest unknown");
			/* the log is read again at its end */
			tell(&b, (struct event){.type = EV_UNPULLED, .pod = i, .err = &why});
			tell(&b, (struct event){
					 .type = EV_RELEASED, .pod = i, .number = RELEASE_ENDED});
		}
		check_int("unpulled", "pods", core_pod_count(b.core), 2);
		check_int("unpulled", "stopping", core_stopping(b.core), true);
		assert_non_null(
			strstr(summary(&b).err.msg,
			       "the image cannot be pulled: manifest unknown; check pod.image"));
		check_int("unpulled", "kind", summary(&b).err.kind, ERR_CONFIG);
		tear_down(&b);
	}
}

static void inspected(struct bench *b, enum pod_state state)
{
	struct pod_view view = {.state = state, .port = state == POD_STATE_RUNNING ? 22 : 0};

	COPY_TEXT(view.id, pod(b, 0)->id);
	COPY_TEXT(view.host, "127.0.0.1");
	COPY_TEXT(view.user, "root");
	COPY_TEXT(view.marker.attempt, pod(b, 0)->attempt);
	COPY_TEXT(view.marker.run, b->conf.run);
	tell(b, (struct event){.type = EV_INSPECTED,
			       .pod = 0,
			       .views = &view,
			       .count = 1,
			       .asked_at = b->now});
}

/* Lists that omit a pod for good prove nothing of it: its provider is asked for it by its id, while
 * it comes up and at its end. */
static void test_a_pod_that_lists_omit(void **state)
{
	struct offer o = offer(0, 1000000);
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_with(&b, &o, 1);
	rented(&b, 0);
	tell(&b, (struct event){.type = EV_LISTED, .asked_at = b.now + 1});
	check_int("too new", "asked for", did(&b, ACT_INSPECT, 0), 0);
	for (int i = 0; i < 30; i++) {
		wait_ms(&b, 6000);
		tell(&b, (struct event){.type = EV_LISTED, .asked_at = b.now});
		check_int("omitted", "asked for", did(&b, ACT_INSPECT, 0), 1);
		inspected(&b, POD_STATE_CREATING);
		check_phase(&b, "three minutes long", 0, POD_BOOTING);
	}
	inspected(&b, POD_STATE_RUNNING);
	check_int("it runs", "connects", did(&b, ACT_CONNECT, 0), 1);
	tell_err(&b, EV_CONNECT_FAILED, 0, ERR_UNTRUSTED);
	check_int("let go", "releases", did(&b, ACT_RELEASE, 0), 1);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ENDED});
	for (int i = 0; i < 4; i++) {
		wait_ms(&b, 6000);
		tell(&b, (struct event){.type = EV_LISTED, .asked_at = b.now});
	}
	check_int("clean lists", "asked for", did(&b, ACT_INSPECT, 0), 1);
	check_phase(&b, "they are no proof", 0, POD_CONFIRMING);
	inspected(&b, POD_STATE_RUNNING);
	check_int("it is there", "releases", did(&b, ACT_RELEASE, 0), 1);
	tell(&b, (struct event){.type = EV_RELEASED, .pod = 0, .number = RELEASE_ENDED});
	for (int i = 0; i < 4; i++) {
		wait_ms(&b, 6000);
		tell(&b, (struct event){.type = EV_LISTED, .asked_at = b.now});
	}
	inspected(&b, POD_STATE_GONE);
	check_phase(&b, "its provider denies it", 0, POD_GONE);
	tear_down(&b);
}

/* Rights of an account's pods are the same for each of them: two tell enough, and none is needed
 * where an earlier run was told. */
static void test_accounts_whose_pods_cannot_end_themselves(void **state)
{
	struct offer o[] = {offer(0, 1000000), offer(0, 1100000), offer(0, 1200000)};
	struct bench b;

	(void)state;
	set_up(&b, 4);
	start_with(&b, o, 3);
	for (int i = 0; i < 2; i++) {
		check_int("without a switch", "pods", core_pod_count(b.core), i + 1);
		rented(&b, i);
		b.now += 10;
		list_running(&b, i);
		tell(&b, (struct event){.type = EV_CONNECTED, .pod = i, .t = b.now});
	}
	check_int("without a switch", "pods", core_pod_count(b.core), 2);
	check_int("without a switch", "stopping", core_stopping(b.core), true);
	assert_non_null(strstr(summary(&b).err.msg, "pod.allow_unproven_switch"));
	tear_down(&b);

	for (int allowed = 0; allowed < 2; allowed++) {
		set_up(&b, 4);
		COPY_TEXT(b.conf.providers[0].no_switch, "http 403 curl");
		b.conf.unproven_ok = allowed;
		start(&b);
		check_int("known", "offers are asked for", did(&b, ACT_OFFERS, -1), allowed);
		check_int("known", "ended", core_ended(b.core), !allowed);
		if (!allowed)
			assert_non_null(strstr(summary(&b).err.msg, "http 403 curl"));
		tear_down(&b);
	}
}

/* ---- pods that other runs may take ---- */

static void work_with_offer(struct bench *b, int64_t keep_ms)
{
	set_up(b, 4);
	b->conf.pooled = true;
	b->conf.keep_warm_ms = keep_ms;
	start_simply(b);
	bring_up(b, 0);
	render_batch(b, 0, 0, 2 * SECOND, true);
}

static void test_offered_pod_is_taken(void **state)
{
	struct bench b;

	(void)state;
	work_with_offer(&b, MINUTE);
	assert_int_equal(did(&b, ACT_OFFER, 0), 1);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	check_phase(&b, "on offer", 0, POD_WORKING);
	b.now += 3 * SECOND;
	tell(&b, (struct event){.type = EV_TAKEN, .pod = 0, .t = b.now - SECOND});
	check_phase(&b, "taken", 0, POD_GONE);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	assert_int_equal(pod(&b, 0)->gone_at, b.now - SECOND);
	/* it is listed on, as what it is to another run: that is no pod of ours */
	list_running(&b, 0);
	check_phase(&b, "listed on", 0, POD_GONE);
	assert_int_equal(did(&b, ACT_RELEASE, 0), 0);
	end_well(&b);
	struct core_summary sum;
	core_summary(b.core, b.now, &sum);
	assert_string_equal(sum.status, "done");
	tear_down(&b);
}

static void test_offered_pod_that_nobody_takes(void **state)
{
	struct bench b;

	(void)state;
	work_with_offer(&b, MINUTE);
	assert_int_equal(did(&b, ACT_OFFER, 0), 1);
	wait_ms(&b, 20 * SECOND);
	check_phase(&b, "released", 0, POD_RELEASING);
	/* taken at that very moment: the ledger decides */
	tell(&b, (struct event){.type = EV_TAKEN, .pod = 0, .t = b.now});
	check_phase(&b, "taken after all", 0, POD_GONE);
	end_well(&b);
	tear_down(&b);
}

static void test_unasked_pod_goes_at_once(void **state)
{
	struct bench b;

	(void)state;
	work_with_offer(&b, 0);
	assert_int_equal(did(&b, ACT_OFFER, 0), 1);
	tell(&b, (struct event){.type = EV_UNASKED, .pod = 0});
	check_phase(&b, "released", 0, POD_RELEASING);
	end_well(&b);
	tear_down(&b);
}

static void test_a_signal_offers_nothing(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 4);
	b.conf.pooled = true;
	b.conf.keep_warm_ms = MINUTE;
	start_simply(&b);
	bring_up(&b, 0);
	tell(&b, (struct event){.type = EV_SIGNAL, .number = 2});
	render_batch(&b, 0, 0, 2 * SECOND, true);
	assert_int_equal(did(&b, ACT_OFFER, 0), 0);
	end_well(&b);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offered_pod_is_taken),
		cmocka_unit_test(test_offered_pod_that_nobody_takes),
		cmocka_unit_test(test_unasked_pod_goes_at_once),
		cmocka_unit_test(test_a_signal_offers_nothing),
		cmocka_unit_test(test_journal_before_rent),
		cmocka_unit_test(test_listed_while_its_create_is_under_way),
		cmocka_unit_test(test_listed_pod_of_another_machine),
		cmocka_unit_test(test_image_before_pods),
		cmocka_unit_test(test_image_cannot_be_built),
		cmocka_unit_test(test_nothing_is_rented_without_a_row),
		cmocka_unit_test(test_journal_before_handover),
		cmocka_unit_test(test_handover_is_answered),
		cmocka_unit_test(test_replacement_is_handed_over),
		cmocka_unit_test(test_handover_beside_a_late_vendor),
		cmocka_unit_test(test_refused_creates),
		cmocka_unit_test(test_all_offers_are_refused),
		cmocka_unit_test(test_refused_by_one_vendor_of_two),
		cmocka_unit_test(test_wide_runs_rent_a_few_at_once),
		cmocka_unit_test(test_limits_of_the_account),
		cmocka_unit_test(test_offers_do_not_come),
		cmocka_unit_test(test_releases_wait_for_their_turn),
		cmocka_unit_test(test_sold_out_rests_longer),
		cmocka_unit_test(test_spot_refused_twice),
		cmocka_unit_test(test_no_offer_fits),
		cmocka_unit_test(test_one_vendor_of_two_has_never),
		cmocka_unit_test(test_a_volume_that_is_filled),
		cmocka_unit_test(test_sold_out_beside_a_volume_that_is_filled),
		cmocka_unit_test(test_sold_out_while_a_pod_works),
		cmocka_unit_test(test_next_vendor_is_told),
		cmocka_unit_test(test_offers_never_come),
		cmocka_unit_test(test_sold_out_beside_a_late_vendor),
		cmocka_unit_test(test_avoided_offer_beside_a_late_vendor),
		cmocka_unit_test(test_what_is_left),
		cmocka_unit_test(test_outlook_of_one_pod),
		cmocka_unit_test(test_outlook_counts_pods_that_boot),
		cmocka_unit_test(test_volume_is_missing),
		cmocka_unit_test(test_volume_is_made_beside_an_offer),
		cmocka_unit_test(test_volume_cannot_be_made),
		cmocka_unit_test(test_one_vendor_of_two_has_never),
		cmocka_unit_test(test_order_of_offers),
		cmocka_unit_test(test_price_of_what_came),
		cmocka_unit_test(test_price_of_a_listing),
		cmocka_unit_test(test_ambiguous_is_adopted),
		cmocka_unit_test(test_ambiguous_is_found_when_it_is_over),
		cmocka_unit_test(test_ambiguous_is_adopted_late),
		cmocka_unit_test(test_ambiguous_is_given_up),
		cmocka_unit_test(test_ambiguous_is_looked_for_often_at_first),
		cmocka_unit_test(test_surfaces_after_all),
		cmocka_unit_test(test_late_twin_of_a_lost_create),
		cmocka_unit_test(test_late_twin_of_one_that_was_listed),
		cmocka_unit_test(test_late_twin_while_nothing_is_offered),
		cmocka_unit_test(test_lost_sight_of_a_lost_create),
		cmocka_unit_test(test_last_look_that_limits_keep_back),
		cmocka_unit_test(test_ambiguous_and_a_signal),
		cmocka_unit_test(test_ambiguous_out_of_sight),
		cmocka_unit_test(test_ambiguous_holds_the_cap),
		cmocka_unit_test(test_lost_create_of_another_key),
		cmocka_unit_test(test_second_pod_of_one_create),
		cmocka_unit_test(test_canary_before_width),
		cmocka_unit_test(test_a_failed_segment_is_measured),
		cmocka_unit_test(test_all_at_once_for_a_deadline),
		cmocka_unit_test(test_slower_or_faster_than_planned),
		cmocka_unit_test(test_stops_for_a_deadline),
		cmocka_unit_test(test_does_not_stop_for_a_forecast),
		cmocka_unit_test(test_gives_back_what_comes_up),
		cmocka_unit_test(test_prices_that_move),
		cmocka_unit_test(test_replaces_within_pods),
		cmocka_unit_test(test_replaces_one_of_two),
		cmocka_unit_test(test_replaces_too_late),
		cmocka_unit_test(test_a_budget_for_nothing),
		cmocka_unit_test(test_a_reserve_for_haste),
		cmocka_unit_test(test_two_plans_are_the_most),
		cmocka_unit_test(test_a_deadline_pays_one_cold_start),
		cmocka_unit_test(test_a_new_plan_keeps_the_deadline),
		cmocka_unit_test(test_width_by_later_batches),
		cmocka_unit_test(test_start_of_a_pod_whose_connection_was_lost_meanwhile),
		cmocka_unit_test(test_start_of_a_pod_that_is_taken_over),
		cmocka_unit_test(test_pods_that_come_too_late_are_released),
		cmocka_unit_test(test_what_a_further_pod_brings),
		cmocka_unit_test(test_canary_judged),
		cmocka_unit_test(test_expected_times),
		cmocka_unit_test(test_batches_shrink),
		cmocka_unit_test(test_batches_of_one_worker_do_not_shrink),
		cmocka_unit_test(test_batches_that_cost_by_themselves),
		cmocka_unit_test(test_padded_batches),
		cmocka_unit_test(test_continuous_is_kept_full),
		cmocka_unit_test(test_continuous_shares_the_end),
		cmocka_unit_test(test_continuous_pace),
		cmocka_unit_test(test_continuous_pod_lost),
		cmocka_unit_test(test_batches_of_given_sizes),
		cmocka_unit_test(test_long_ones_first),
		cmocka_unit_test(test_max_batch),
		cmocka_unit_test(test_failed_segments),
		cmocka_unit_test(test_address_that_a_list_leaves_out),
		cmocka_unit_test(test_batch_that_never_ends),
		cmocka_unit_test(test_poison_stays_failed),
		cmocka_unit_test(test_ends_by_another_clock),
		cmocka_unit_test(test_ends_are_told_apart),
		cmocka_unit_test(test_ends_of_detached_pods),
		cmocka_unit_test(test_container_that_cannot_be_made),
		cmocka_unit_test(test_container_that_was_made_in_between),
		cmocka_unit_test(test_create_that_hangs),
		cmocka_unit_test(test_refused_list),
		cmocka_unit_test(test_limits_that_do_not_end),
		cmocka_unit_test(test_queued_goes_to_the_next_offer),
		cmocka_unit_test(test_queued_without_another_offer),
		cmocka_unit_test(test_queued_and_placed),
		cmocka_unit_test(test_segment_that_ends_pods),
		cmocka_unit_test(test_boot_limit_of_the_median),
		cmocka_unit_test(test_each_stuck_pod_gives_the_next_more_time),
		cmocka_unit_test(test_log_that_moves_gives_time),
		cmocka_unit_test(test_log_that_never_comes),
		cmocka_unit_test(test_up_while_the_log_is_read),
		cmocka_unit_test(test_avoided_offers_go_last),
		cmocka_unit_test(test_avoided_offers_go_behind_other_vendors),
		cmocka_unit_test(test_bad_hosts_rest_and_go_last),
		cmocka_unit_test(test_lost_pods_work),
		cmocka_unit_test(test_lost_connection_is_not_a_lost_pod),
		cmocka_unit_test(test_unseen_pods_blame_no_host),
		cmocka_unit_test(test_taken_over_in_the_middle),
		cmocka_unit_test(test_taken_over_and_lost),
		cmocka_unit_test(test_release_of_the_idle_one),
		cmocka_unit_test(test_sync_before_the_files_are_home),
		cmocka_unit_test(test_durable_pods_go_first),
		cmocka_unit_test(test_a_transfer_that_breaks),
		cmocka_unit_test(test_files_of_durable_pods_are_waited_for),
		cmocka_unit_test(test_slept_over_files_of_a_durable_pod),
		cmocka_unit_test(test_durable_pods_of_an_earlier_life),
		cmocka_unit_test(test_files_of_a_pod_whose_time_was_over),
		cmocka_unit_test(test_release_of_one_out_of_reach),
		cmocka_unit_test(test_two_looks),
		cmocka_unit_test(test_never_listed),
		cmocka_unit_test(test_looks_for_the_never_listed),
		cmocka_unit_test(test_released_before_it_was_known),
		cmocka_unit_test(test_denied_when_it_is_released),
		cmocka_unit_test(test_connects_again_soon),
		cmocka_unit_test(test_its_agent_ends_what_its_provider_does_not),
		cmocka_unit_test(test_gone_though_its_release_is_refused),
		cmocka_unit_test(test_released_and_not_known_though_it_was_listed),
		cmocka_unit_test(test_late_in_the_list),
		cmocka_unit_test(test_release_is_repeated_and_reported),
		cmocka_unit_test(test_release_that_limits_keep_back),
		cmocka_unit_test(test_list_that_wants_to_be_left_alone),
		cmocka_unit_test(test_slept_over_a_release),
		cmocka_unit_test(test_slept_over_a_boot),
		cmocka_unit_test(test_slept_over_the_first_offers),
		cmocka_unit_test(test_slept_over_the_last_look),
		cmocka_unit_test(test_committed),
		cmocka_unit_test(test_hard_end),
		cmocka_unit_test(test_shares_of_a_cap),
		cmocka_unit_test(test_margin),
		cmocka_unit_test(test_hard_end_of_a_pod),
		cmocka_unit_test(test_nothing_is_begun_beside_the_cap),
		cmocka_unit_test(test_first_lease_outlasts_the_boot_limit),
		cmocka_unit_test(test_lease),
		cmocka_unit_test(test_caps_end_the_run),
		cmocka_unit_test(test_taken_over_one_after_the_other),
		cmocka_unit_test(test_lower_caps_hold_for_pods_taken_over),
		cmocka_unit_test(test_older_than_our_clock_says),
		cmocka_unit_test(test_one_that_ended_itself_shortens_no_other),
		cmocka_unit_test(test_what_cannot_be_ended_is_paid_for),
		cmocka_unit_test(test_nothing_is_rented_unseen),
		cmocka_unit_test(test_lower_price_for_a_pod_taken_over),
		cmocka_unit_test(test_booked_until_its_providers_end),
		cmocka_unit_test(test_found_gone_the_next_day),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_signal_while_renting),
		cmocka_unit_test(test_exit_precedence),
		cmocka_unit_test(test_no_work_no_pod),
		cmocka_unit_test(test_failed_to_prepare_at_work),
		cmocka_unit_test(test_workers_cannot_go_on),
		cmocka_unit_test(test_unfit_card),
		cmocka_unit_test(test_card_known_as_unfit),
		cmocka_unit_test(test_unproven_pods_get_no_work),
		cmocka_unit_test(test_accounts_whose_pods_cannot_end_themselves),
		cmocka_unit_test(test_a_pod_that_lists_omit),
		cmocka_unit_test(test_images_that_cannot_be_pulled),
	};

	return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
