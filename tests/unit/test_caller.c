/* test_caller.c - calls to a provider: whose limits, impossible answers, pauses, lists, logs. */
#include "net_test.h"

#include <pthread.h>

#include "base/path.h"
#include "caller_bed.h"
#include "engine/engine.h"
#include "engine/limit.h"
#include "jobs/agent/kit.h"
#include "scratch.h"
#include "small_job.h"

/* ---- a vendor whose storage is another service ---- */

static void *refuse_once(void *arg)
{
	char request[4096];
	int fd = accept(*(int *)arg, NULL, NULL);

	if (fd >= 0 && recv(fd, request, sizeof(request), 0) > 0)
		dprintf(fd, "HTTP/1.1 429 Slow Down\r\nRetry-After: 3600\r\nRateLimit: "
			    "\"minute\";r=0;t=60\r\nContent-Length: 0\r\n"
			    "Connection: close\r\n\r\n");
	close(fd);
	return NULL;
}

static const struct {
	const char *name;
	bool unlimited, waits;
} refusals[] = {
	{"the API's own: everything waits, releases too", false, true},
	{"that of the storage beside it: nothing does", true, false},
};

static void test_whose_limits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct provider p = {.unlimited = refusals[i].unlimited};
		struct store *store = store_memory();
		struct op_result result = {0};
		struct err err = {0};
		pthread_t thread;
		int listener = listen_on_loopback(&p.port);
		pthread_create(&thread, NULL, refuse_once, &listener);
		assert_int_equal(caller_perform(&(struct engine_provider){&one_call, &p, store},
						OP_FETCH, NULL, PATIENCE_MS, &result, &err),
				 -1);
		pthread_join(thread, NULL);
		close(listener);
		assert_string_equal(err.msg, "HTTP 429");
		struct limiter *l = limiter_new(store);
		int64_t wait = limiter_take(l, "tester", 60, CALL_RELEASE, clock_wall_ms());
		if ((wait > 0) != refusals[i].waits)
			fail_msg("%s: a release waits %lld ms", refusals[i].name, (long long)wait);
		limiter_free(l);
		store_close(store);
	}
}

/* ---- a vendor, or a plug-in, whose answers cannot be right ---- */

static enum op_next answer_oddly(struct op *op, const struct reply *reply, struct call *call,
				 int64_t *wait_ms, struct op_result *result, struct err *err)
{
	(void)op, (void)reply, (void)call, (void)wait_ms, (void)err;
	result->pods = xcalloc(1, sizeof(*result->pods));
	result->pod_count = 1;
	COPY_TEXT(result->pods[0].id, "../../x");
	return OP_DONE;
}

static const struct provider_ops odd = {.abi = PROVIDER_ABI,
					.name = "odd",
					.account = account_of,
					.begin = begin_op,
					.next = answer_oddly,
					.op_free = free_op};

static void test_answers_are_checked_once_for_all(void **state)
{
	static const struct {
		enum op_kind kind;
		enum err_kind want;
	} cases[] = {
		{OP_LIST, ERR_UNTRUSTED},
		{OP_INSPECT, ERR_UNTRUSTED},
		{OP_RENT, ERR_AMBIGUOUS}, /* there may be a pod, and it bills */
	};
	struct store *store = store_memory();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct provider p = {.unlimited = true};
		struct op_result result = {0};
		struct err err = {0};
		assert_int_equal(caller_perform(&(struct engine_provider){&odd, &p, store},
						cases[i].kind, NULL, PATIENCE_MS, &result, &err),
				 -1);
		assert_int_equal(err.kind, cases[i].want);
		assert_string_equal(err.msg, "its answer cannot be trusted: it names a pod "
					     "with an id that cannot be one");
		assert_int_equal(result.pod_count, 0);
	}
	store_close(store);
}

/* "Come again in an hour" with a 503: that is whoever asked to decide, and at once. */
static void *away_for_an_hour(void *arg)
{
	char request[4096];

	for (int k = 0; k < 2; k++) {
		int fd = accept(*(int *)arg, NULL, NULL);
		if (fd >= 0 && recv(fd, request, sizeof(request), 0) > 0)
			dprintf(fd,
				"HTTP/1.1 503 Away\r\nRetry-After: %d\r\nContent-Length: "
				"0\r\nConnection: close\r\n\r\n",
				k ? 3600 : 0);
		close(fd);
	}
	return NULL;
}

static void test_a_pause_that_is_too_long(void **state)
{
	struct provider p = {.unlimited = true, .may_repeat = true};
	struct store *store = store_memory();
	struct op_result result = {0};
	struct err err = {0};
	pthread_t thread;
	int64_t began = clock_boot_ms();

	(void)state;
	int listener = listen_on_loopback(&p.port);
	pthread_create(&thread, NULL, away_for_an_hour, &listener);
	assert_int_equal(caller_perform(&(struct engine_provider){&one_call, &p, store}, OP_LIST,
					NULL, PATIENCE_MS, &result, &err),
			 -1);
	pthread_join(thread, NULL);
	close(listener);
	/* the second answer: the first was followed by another call */
	assert_string_equal(err.msg, "HTTP 503");
	assert_true(clock_boot_ms() - began < PATIENCE_MS / 2);
	store_close(store);
}

/* ---- who refuses tells the time all the same ---- */

static void *refuse_two_hours_ago(void *arg)
{
	char request[4096], date[64];
	time_t then = time(NULL) - 7200;
	struct tm tm;
	int fd = accept(*(int *)arg, NULL, NULL);

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&then, &tm));
	if (fd >= 0 && recv(fd, request, sizeof(request), 0) > 0)
		dprintf(fd,
			"HTTP/1.1 401 No\r\nDate: %s\r\nContent-Length: 0\r\nConnection: "
			"close\r\n\r\n",
			date);
	close(fd);
	return NULL;
}

static void test_a_refusal_tells_the_time(void **state)
{
	struct provider p = {.class = CALL_POLL};
	struct store *store = store_memory();
	struct engine_provider at = {&one_call, &p, store};
	struct op_result result = {0};
	struct err err = {0};
	pthread_t thread;
	int64_t there_ms = 0;

	(void)state;
	int listener = listen_on_loopback(&p.port);
	pthread_create(&thread, NULL, refuse_two_hours_ago, &listener);
	assert_int_equal(caller_list(&at, NULL, PATIENCE_MS, &result, &there_ms, &err), -1);
	assert_string_equal(err.msg, "HTTP 401");
	assert_true(llabs(clock_wall_ms() - 7200 * 1000 - there_ms) < 60000);
	pthread_join(thread, NULL);
	close(listener);
	store_close(store);
}

/* ---- a vendor whose log is not to be had for a while, and whose pod has failed ---- */

enum { LOG_MS = 25000 };

static void set_pod(struct op_result *result, enum pod_state state)
{
	result->pods = xcalloc(1, sizeof(*result->pods));
	result->pod_count = 1;
	COPY_TEXT(result->pods[0].id, "p1");
	result->pods[0].state = state;
	result->pods[0].price_microusd_h = 3600000;
}

static enum op_next rent(struct provider *p, struct op_result *result, struct err *err)
{
	if (p->rents++) {
		err_set(err, ERR_REFUSED, "not today");
		return OP_FAILED;
	}
	set_pod(result, POD_STATE_CREATING);
	return OP_DONE;
}

static enum op_next next(struct op *op, const struct reply *reply, struct call *call,
			 int64_t *wait_ms, struct op_result *result, struct err *err)
{
	struct provider *p = op->p;
	(void)reply, (void)call;

	switch ((int)op->kind) {
	case OP_OFFERS:
		result->offers = xcalloc(1, sizeof(*result->offers));
		result->offers[0] = (struct offer){
			.provider = "slow", .id = "1", .gpu = "none", .price_microusd_h = 3600000};
		result->offer_count = 1;
		return OP_DONE;
	case OP_RENT: return rent(p, result, err);
	case OP_LIST:
		if (!p->rents || p->releases)
			return OP_DONE;
		p->failed_at = p->failed_at ? p->failed_at : clock_boot_ms();
		set_pod(result, POD_STATE_FAILED);
		return OP_DONE;
	case OP_LOGS:
		*wait_ms = LOG_MS;
		op->waited = !op->waited;
		return op->waited ? OP_WAIT : OP_DONE;
	case OP_RELEASE:
		p->releases++;
		p->released_at = clock_boot_ms();
		return OP_DONE;
	default: err_set(err, ERR_NOT_FOUND, "nothing of the kind"); return OP_FAILED;
	}
}

static const struct provider_ops slow = {.abi = PROVIDER_ABI,
					 .name = "slow",
					 .account = account_of,
					 .begin = begin_op,
					 .next = next,
					 .op_free = free_op,
					 .poll_ms = 50};

/* Of one whose pods' logs can be read after their end. */
static const struct provider_ops keeps = {.abi = PROVIDER_ABI,
					  .name = "slow",
					  .account = account_of,
					  .begin = begin_op,
					  .next = next,
					  .op_free = free_op,
					  .poll_ms = 50,
					  .logs_outlive = true};

static const struct {
	const char *name;
	const struct provider_ops *ops;
	int64_t least_ms, most_ms; /* from its failure to its release */
} looks[] = {
	{"a second for a look", &slow, CORE_LOG_READ_MS - 50, LOG_MS - 5000},
	{"a log that outlives its pod is not waited for", &keeps, 0, CORE_LOG_READ_MS - 100},
};

static void test_release_waits_for_no_log(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
		struct provider p = {0};
		struct segment_result result = {0};
		struct run_row row = {.id = "r1"};
		struct err err = {0};
		struct engine_setup setup = {
			.kit = pod_kit(),
			.conf = {.run = "r1",
				 .machine = "m",
				 .pods = 1,
				 .boot_limit_ms = 60000,
				 .lease_ms = 60000,
				 .check_tries = 1},
			.providers = {{looks[i].ops, &p}},
			.provider_count = 1,
			.job_ops = &small_job,
			.results = &result,
			.run = &row,
		};
		char *dir = new_folder();
		setup.run_dir = dir;
		setup.store = store_memory();
		struct engine *e = engine_new(&setup);
		engine_run(e, &err);
		engine_free(e);
		store_close(setup.store);
		remove_folder(dir);
		int64_t took = p.released_at - p.failed_at;
		if (!p.failed_at || p.releases != 1 || took < looks[i].least_ms ||
		    took > looks[i].most_ms)
			fail_msg("%s: %d rents, %d releases, after %lld ms: %s", looks[i].name,
				 p.rents, p.releases, (long long)took, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose_limits),
		cmocka_unit_test(test_answers_are_checked_once_for_all),
		cmocka_unit_test(test_a_pause_that_is_too_long),
		cmocka_unit_test(test_a_refusal_tells_the_time),
		cmocka_unit_test(test_release_waits_for_no_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
