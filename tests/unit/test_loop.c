/* test_loop.c - loop.c and pool.c. */
#include "net_test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "net/pool.h"

struct note { /* what happened, in order */
	char seen[64];
	struct loop *loop;
	struct watch *watch, *other;
	struct timer *timer;
	int again;
};

static void add(struct note *n, char c)
{
	size_t len = strlen(n->seen);

	if (len + 1 < sizeof(n->seen))
		n->seen[len] = c;
}

static void fire_a(void *ctx)
{
	add(ctx, 'a');
}

static void fire_b(void *ctx)
{
	add(ctx, 'b');
}

static void fire_again(void *ctx)
{
	struct note *n = ctx;

	add(n, 'r');
	if (n->again--)
		loop_timer(n->loop, 0, fire_again, n);
}

static void fire_untimer(void *ctx)
{
	struct note *n = ctx;

	add(n, 'u');
	loop_untimer(TAKE(n->timer));
}

static void test_timers_fire_in_order(void **state)
{
	CLEANUP(loop_free) struct loop *loop = loop_new();
	struct note n = {.loop = loop};

	(void)state;
	loop_timer(loop, 1000, fire_b, &n);
	loop_timer(loop, 0, fire_a, &n);
	loop_timer(loop, 1000, fire_a, &n);
	TURN_UNTIL(loop, strlen(n.seen) == 3);
	assert_string_equal(n.seen, "aba");
}

static void test_a_timer_can_take_another_back(void **state)
{
	CLEANUP(loop_free) struct loop *loop = loop_new();
	struct note n = {.loop = loop};

	(void)state;
	loop_timer(loop, 0, fire_untimer, &n);
	n.timer = loop_timer(loop, 0, fire_a, &n);
	loop_timer(loop, 1, fire_b, &n);
	TURN_UNTIL(loop, strlen(n.seen) == 2);
	assert_string_equal(n.seen, "ub");
	loop_timer(loop, 100000, fire_a, &n); /* left over: freed with the loop */
}

static void test_a_timer_of_zero_does_not_starve_others(void **state)
{
	CLEANUP(loop_free) struct loop *loop = loop_new();
	struct note n = {.loop = loop, .again = 3};

	(void)state;
	loop_timer(loop, 0, fire_again, &n);
	loop_turn(loop, 0);
	assert_string_equal(n.seen, "r");
	TURN_UNTIL(loop, strlen(n.seen) == 4);
}

static void ready_read(void *ctx, short revents)
{
	struct note *n = ctx;

	add(n, revents & POLLHUP ? 'H' : 'R');
	loop_rewatch(n->watch, 0);
}

static void ready_close_other(void *ctx, short revents)
{
	struct note *n = ctx;

	(void)revents;
	add(n, 'C');
	loop_unwatch(TAKE(n->watch));
	loop_unwatch(TAKE(n->other));
}

static void test_watches(void **state)
{
	CLEANUP(loop_free) struct loop *loop = loop_new();
	struct note n = {.loop = loop};
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	n.watch = loop_watch(loop, ends[0], POLLIN, ready_read, &n);
	loop_turn(loop, 0);
	assert_string_equal(n.seen, "");
	assert_int_equal(write(ends[1], "x", 1), 1);
	loop_turn(loop, 1000);
	loop_turn(loop, 0); /* rests */
	assert_string_equal(n.seen, "R");
	char c;
	assert_int_equal(read(ends[0], &c, 1), 1);
	close(ends[1]);
	loop_rewatch(n.watch, POLLIN);
	loop_turn(loop, 1000); /* an end without data is told, too */
	assert_string_equal(n.seen, "RH");
	loop_unwatch(n.watch);
	close(ends[0]);
}

static void test_a_callback_can_close_its_neighbour(void **state)
{
	CLEANUP(loop_free) struct loop *loop = loop_new();
	struct note n = {.loop = loop};
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	n.watch = loop_watch(loop, ends[0], POLLIN, ready_close_other, &n);
	n.other = loop_watch(loop, ends[0], POLLIN, ready_close_other, &n);
	loop_turn(loop, 1000);
	loop_turn(loop, 0);
	assert_string_equal(n.seen, "C");
	close(ends[0]);
	close(ends[1]);
}

static void *wake_it(void *arg)
{
	loop_wake(arg);
	return NULL;
}

static void test_wake(void **state)
{
	CLEANUP(loop_free) struct loop *loop = loop_new();
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wake_it, loop), 0);
	int64_t since = clock_boot_ms();
	loop_turn(loop, PATIENCE_MS);
	assert_true(clock_boot_ms() - since < PATIENCE_MS / 2);
	pthread_join(thread, NULL);
	for (int i = 0; i < 100000; i++) /* a full pipe does not block */
		loop_wake(loop);
	loop_turn(loop, 0);
}

static void fire_slow(void *ctx)
{
	(void)ctx;
	poll(NULL, 0, 60); /* stands for a machine that slept */
}

static void test_gap(void **state)
{
	CLEANUP(loop_free) struct loop *loop = loop_new();

	(void)state;
	loop_turn(loop, 0);
	loop_turn(loop, 0);
	assert_true(loop_gap_ms(loop) < 40);
	loop_timer(loop, 0, fire_slow, NULL);
	loop_turn(loop, 0);
	loop_turn(loop, 0);
	assert_true(loop_gap_ms(loop) >= 55);
	loop_turn(loop, 0);
	assert_true(loop_gap_ms(loop) < 40);
}

/* ---- pool ---- */

struct sum {
	atomic_int worked;
	int done;
	struct pool *pool;
};

static void work(void *arg)
{
	atomic_fetch_add(&((struct sum *)arg)->worked, 1);
}

static void done(void *arg)
{
	struct sum *s = arg;

	if (++s->done == 1)
		pool_run(s->pool, work, done, s); /* more from inside done() */
}

static void done_only(void *arg)
{
	((struct sum *)arg)->done++;
}

static void test_pool(void **state)
{
	CLEANUP(loop_free) struct loop *loop = loop_new();
	struct sum s = {0};

	(void)state;
	s.pool = pool_new(loop, 3);
	assert_true(pool_idle(s.pool));
	for (int i = 0; i < 1000; i++)
		pool_run(s.pool, work, done, &s);
	assert_false(pool_idle(s.pool));
	TURN_UNTIL(loop, pool_idle(s.pool));
	assert_int_equal(s.done, 1001);
	assert_int_equal(atomic_load(&s.worked), 1001);
	for (int i = 0; i < 100; i++)
		pool_run(s.pool, work, done_only, &s);
	pool_run(s.pool, work, NULL, &s);
	pool_free(s.pool); /* waits, and tells */
	assert_int_equal(s.done, 1101);
	assert_int_equal(atomic_load(&s.worked), 1102);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timers_fire_in_order),
		cmocka_unit_test(test_a_timer_can_take_another_back),
		cmocka_unit_test(test_a_timer_of_zero_does_not_starve_others),
		cmocka_unit_test(test_watches),
		cmocka_unit_test(test_a_callback_can_close_its_neighbour),
		cmocka_unit_test(test_wake),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_pool),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
