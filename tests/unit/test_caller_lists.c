/* test_caller_lists.c - lists that burst requests while it releases pods, and the rate limit that
 * both share. */
#include "net_test.h"

#include <pthread.h>
#include <signal.h>

#include "base/path.h"
#include "base/str.h"
#include "caller_bed.h"
#include "engine/engine.h"
#include "engine/limit.h"
#include "jobs/agent/kit.h"
#include "scratch.h"
#include "small_job.h"

/* ---- "come again in an hour", and pods that bill ---- */

static void *answer_all(void *arg)
{
	char request[4096];

	for (int fd; (fd = accept(*(int *)arg, NULL, NULL)) >= 0; close(fd))
		if (recv(fd, request, sizeof(request), 0) > 0)
			dprintf(fd, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
	return NULL;
}

/* A pod that is gone, and a list without it that is a call. */
static enum op_next list_by_call(struct op *op, const struct reply *reply, struct call *call,
				 int64_t *wait_ms, struct op_result *result, struct err *err)
{
	if (op->kind == OP_LIST && !reply)
		return step_once(op, reply, call, wait_ms, result, err);
	op->p->releases += op->kind == OP_RELEASE;
	result->release = RELEASE_ENDED;
	return OP_DONE;
}

static const struct provider_ops listed = {.abi = PROVIDER_ABI,
					   .name = "listed",
					   .account = account_of,
					   .begin = begin_op,
					   .next = list_by_call,
					   .op_free = free_op};

/* A minute ago. */
static void refuse_for_an_hour(struct store *store)
{
	struct reply reply = {.status = 429, .retry_after_ms = 3600 * 1000};
	int64_t then = clock_wall_ms() - 61000;
	struct limiter *l = limiter_new(store);

	limiter_learn(l, "tester", &reply, &(struct limit_call){then, then, 0, CALL_POLL});
	limiter_free(l);
}

static void *interrupt(void *arg)
{
	(void)arg;
	usleep(400000);
	kill(getpid(), SIGINT);
	return NULL;
}

/* reap: it is what the run is for. Else its pod is waited for, and asked for, when it is
 * interrupted. */
static int give_back(struct store *store, struct provider *p, bool reap, struct err *err)
{
	struct run_row run = {.id = "r1"};
	struct pod_row row = {.attempt = "a1",
			      .run = "r1",
			      .provider = "listed",
			      .account = "tester",
			      .id = "pod1",
			      .state = POD_ROW_LIVE};
	char *dir = new_folder();
	struct segment_result results = {0};
	pthread_t thread;
	struct engine_setup setup = {
		.kit = pod_kit(),
		.conf = {.run = "r1",
			 .machine = "m",
			 .lease_ms = 60000,
			 .boot_limit_ms = 60000,
			 .pods = 1,
			 .check_tries = 1,
			 .reap = reap},
		.providers = {{&listed, p, store}},
		.job_ops = reap ? NULL : &small_job,
		.results = &results,
		.provider_count = 1,
		.run = &run,
		.adopt = &row,
		.adopt_count = 1,
		.store = store,
	};

	setup.run_dir = dir;
	row.create_ms = row.rented_ms = clock_wall_ms() - 60000;
	row.running_ms = row.create_ms + 1000;
	row.hard_end_s = clock_wall_ms() / 1000 + 86400;
	assert_int_equal(store_put_pod(store, &row, err), 0);
	engine_block_signals();
	if (!reap)
		pthread_create(&thread, NULL, interrupt, NULL);
	struct engine *e = engine_new(&setup);
	int status = engine_run(e, err);
	engine_free(e);
	if (!reap)
		pthread_join(thread, NULL);
	remove_folder(dir);
	return status;
}

/* Who ends pods asks in spite of it, once a minute; nobody else does. */
static void test_looks_that_end_pods(void **state)
{
	struct provider p = {.class = CALL_POLL};
	struct store *store = store_memory(), *another;
	struct engine_provider at = {&one_call, &p, store};
	struct op_result result = {0};
	struct err err = {0};
	pthread_t thread;
	int64_t there_ms;

	(void)state;
	refuse_for_an_hour(store);
	int listener = listen_on_loopback(&p.port);
	pthread_create(&thread, NULL, answer_all, &listener);
	assert_int_equal(caller_perform(&at, OP_LIST, NULL, 300, &result, &err), -1);
	assert_int_equal(err.kind, ERR_RATE_LIMITED); /* not sent */
	assert_int_equal(caller_list(&at, NULL, PATIENCE_MS, &result, &there_ms, &err), -1);
	assert_string_equal(err.msg, "HTTP 204");
	assert_int_equal(caller_list(&at, NULL, 300, &result, &there_ms, &err), -1);
	assert_int_equal(err.kind, ERR_RATE_LIMITED);
	for (int reap = 0; reap < 2; reap++) {
		another = store_memory();
		refuse_for_an_hour(another);
		err = (struct err){0};
		p.releases = 0;
		int64_t began = clock_boot_ms();
		int status = give_back(another, &p, reap, &err);
		if (status != (reap ? 0 : 130) || p.releases != 1 ||
		    (!reap && clock_boot_ms() - began > 30000))
			fail_msg("%s: exit %d, %d releases after %lld ms: %s",
				 reap ? "reap" : "a list waited already", status, p.releases,
				 (long long)(clock_boot_ms() - began), err.msg);
		store_close(another);
	}
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
	store_close(store);
}

/* ---- a list of several calls ---- */

static int pages; /* first pages that were answered */

static enum op_next two_pages(struct op *op, const struct reply *reply, struct call *call,
			      int64_t *wait_ms, struct op_result *result, struct err *err)
{
	if (reply && op->waited)
		return OP_DONE;
	op->waited = reply != NULL;
	pages += op->waited;
	return step_once(op, NULL, call, wait_ms, result, err);
}

static const struct provider_ops paged = {.abi = PROVIDER_ABI,
					  .name = "paged",
					  .account = account_of,
					  .begin = begin_op,
					  .next = two_pages,
					  .op_free = free_op};

static void count_answer(void *ctx, struct op_result *result, const struct err *err)
{
	(void)result;
	*(int *)ctx += err ? 100 : 1;
}

/* What a list that is pressed while it waits shows is of now, unless a part of it was read before.
 */
static void test_a_list_that_was_begun(void **state)
{
	struct provider p = {.class = CALL_POLL};
	struct store *store = store_memory();
	struct engine_provider at = {&paged, &p, store};
	pthread_t thread;
	int answers = 0;

	(void)state;
	int listener = listen_on_loopback(&p.port);
	pthread_create(&thread, NULL, answer_all, &listener);
	for (int begun = 0; begun < 2; begun++) {
		struct limiter *l = limiter_new(store); /* room for as many polls */
		CLEANUP(str_free) struct str head = STR_INIT;
		str_addf(&head,
			 "RateLimit-Policy: \"minute\";q=60;w=60\r\nRateLimit: "
			 "\"minute\";r=%d;t=60\r\n",
			 18 + begun);
		struct reply reply = {.status = 200, .head = head};
		limiter_learn(l, "tester", &reply,
			      &(struct limit_call){clock_wall_ms(), clock_wall_ms(), 0, CALL_POLL});
		limiter_free(l);
		struct loop *loop = loop_new();
		struct http *http = http_new(loop, "test");
		struct caller *caller = caller_new(loop, http);
		struct caller_op *op =
			caller_begin(caller, &at, OP_LIST, NULL, count_answer, &answers);
		if (begun)
			TURN_UNTIL(loop, pages);
		for (int64_t until = clock_boot_ms() + 700; clock_boot_ms() < until;)
			loop_turn(loop, 50);
		assert_int_equal(pages, begun);
		assert_int_equal(caller_prioritize(op), !begun);
		caller_free(caller);
		http_free(http);
		loop_free(loop);
		store_close(store);
		at.store = store = store_memory();
	}
	assert_int_equal(answers, 0); /* both waited */
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
	store_close(store);
}

/* ---- more releases than a window takes ---- */

struct place_in_line {
	int *turns, at;
};

static void note_turn(void *ctx, struct op_result *result, const struct err *err)
{
	struct place_in_line *t = ctx;

	(void)result, (void)err;
	t->at = ++*t->turns;
}

/* Of `count` that are all begun at once one is a look, the others are releases: which of them it
 * was to be answered, from 1 on. */
static int turn_of_the_list(const struct engine_provider *at, int count, int look, int64_t most_ms)
{
	struct place_in_line turns[300];
	int taken = 0;
	struct loop *loop = loop_new();
	struct http *http = http_new(loop, "test");
	struct caller *caller = caller_new(loop, http);

	assert_in_range(count, 1, ARRAY_LEN(turns));
	for (int i = 0; i < count; i++) {
		turns[i] = (struct place_in_line){&taken, 0};
		caller_begin(caller, at, i == look ? OP_LIST : OP_RELEASE, NULL, note_turn,
			     &turns[i]);
	}
	for (int64_t until = clock_boot_ms() + most_ms; taken < count && clock_boot_ms() < until;)
		loop_turn(loop, 50);
	assert_int_equal(taken, count);
	caller_free(caller);
	http_free(http);
	loop_free(loop);
	return turns[look].at;
}

/* What is released is proven gone by a look, which gets its turn before all of them are through. */
static void test_a_look_among_many_releases(void **state)
{
	static const char head[] =
		"RateLimit-Policy: \"minute\";q=5;w=2\r\nRateLimit: \"minute\";r=0;t=2\r\n";
	struct provider p = {.class = CALL_LIST};
	struct store *store = store_memory();
	struct engine_provider at = {&one_call, &p, store};
	struct reply reply = {.status = 200};
	pthread_t thread;

	(void)state;
	str_add(&reply.head, head);
	struct limiter *l = limiter_new(store);
	limiter_learn(l, "tester", &reply,
		      &(struct limit_call){clock_wall_ms(), clock_wall_ms(), 0, CALL_POLL});
	limiter_free(l);
	reply_free(&reply);
	int listener = listen_on_loopback(&p.port);
	pthread_create(&thread, NULL, answer_all, &listener);
	assert_in_range(turn_of_the_list(&at, 17, 0, PATIENCE_MS), 1, 12);
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
	store_close(store);
}

static void *answer_late(void *arg)
{
	char request[4096];
	int fd = *(int *)arg;

	free(arg);
	usleep(1500000);
	if (recv(fd, request, sizeof(request), 0) > 0)
		dprintf(fd, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
	close(fd);
	return NULL;
}

static void *answer_all_late(void *arg)
{
	pthread_t threads[512];
	size_t count = 0;

	for (int fd; count < ARRAY_LEN(threads) && (fd = accept(*(int *)arg, NULL, NULL)) >= 0;
	     count++) {
		int *copy = xcalloc(1, sizeof(*copy));
		*copy = fd;
		pthread_create(&threads[count], NULL, answer_late, copy);
	}
	while (count > 0)
		pthread_join(threads[--count], NULL);
	return NULL;
}

/* They may fill every line, too, where there is no limit and the answers take long. */
static void test_a_look_among_slow_releases(void **state)
{
	struct provider p = {.class = CALL_LIST, .unlimited = true};
	struct store *store = store_memory();
	struct engine_provider at = {&one_call, &p, store};
	pthread_t thread;

	(void)state;
	int listener = listen_on_loopback(&p.port);
	assert_int_equal(listen(listener, 512), 0);
	pthread_create(&thread, NULL, answer_all_late, &listener);
	assert_in_range(turn_of_the_list(&at, 300, 299, 4 * PATIENCE_MS), 97, 280);
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looks_that_end_pods),
		cmocka_unit_test(test_a_list_that_was_begun),
		cmocka_unit_test(test_a_look_among_many_releases),
		cmocka_unit_test(test_a_look_among_slow_releases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
