/* test_clocks.c - a machine whose clock is off: seen from the date of a vendor's replies, and from
 * what a pod says first. */
#include "net_test.h"

#include <pthread.h>
#include <time.h>

#include "base/path.h"
#include "base/str.h"
#include "engine/caller.h"
#include "engine/engine.h"
#include "engine/link.h"
#include "small_job.h"
#include "jobs/agent/kit.h"
#include "scratch.h"

static const struct {
	const char *text;
	int64_t epoch_s; /* -1: not a date */
} dates[] = {
	{"Thu, 01 Jan 1970 00:00:00 GMT", 0},
	{"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
	{"Tue, 29 Feb 2000 23:59:59 GMT", 951868799},
	{"Wed, 01 Mar 2000 00:00:00 GMT", 951868800},
	{"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
	{"Fri, 20 Nov 2026 12:00:00 GMT", 1795176000},
	{"Sun Nov  6 08:49:37 1994", -1},
	{"Sunday, 06-Nov-94 08:49:37 GMT", -1},
	{"Sun, 06 Nov 1994 08:49:37 +0100", -1},
	{"Sun, 06 Nov 1994 08:49:37 GMT and more", -1},
	{"Sun, 06 anF 1994 08:49:37 GMT", -1},
	{"Sun, 00 Nov 1994 08:49:37 GMT", -1},
	{"Sun, 06 Nov 1994 24:49:37 GMT", -1},
	{"", -1},
};

static void test_http_dates(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(dates); i++) {
		int64_t got = -1;
		if (!clock_http_date(dates[i].text, &got))
			got = -1;
		if (got != dates[i].epoch_s)
			fail_msg("\"%s\": %lld, not %lld", dates[i].text, (long long)got,
				 (long long)dates[i].epoch_s);
	}
}

#define NOON "Date: Fri, 20 Nov 2026 12:00:00 GMT\r\n"
static const int64_t noon_ms = 1795176000000;

static const struct {
	const char *name, *head;
	int64_t sent_ms, now_ms; /* after noon, by our clock */
	bool known;
	int64_t off_ms;
} replies[] = {
	{"right", NOON, -50, 70, true, 0},
	{"within the second that it names", NOON, 100, 900, true, 0},
	{"a day behind", NOON, -86400000, -86399000, true, -86399000},
	{"an hour ahead", NOON, 3600999, 3602000, true, 3600000},
	{"slept while waiting for it", NOON, -1000, 7200000, true, 0},
	{"a cache has had it for an hour", NOON "Age: 3600\r\n", 3600000, 3600100, true, 0},
	{"an age that is none", NOON "Age: -99999999999999999999\r\n", -50, 70, true, 0},
	{"no date", "Server: x\r\n", 0, 0, false, 0},
	{"a date that is none", "Date: today\r\n", 0, 0, false, 0},
};

static void test_replies(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
		struct reply r = {.head = STR_INIT};
		int64_t off = 0;
		str_addf(&r.head, "HTTP/1.1 200 OK\r\n%s", replies[i].head);
		bool known = reply_clock_off(&r, noon_ms + replies[i].sent_ms,
					     noon_ms + replies[i].now_ms, &off);
		if (known != replies[i].known || off != replies[i].off_ms)
			fail_msg("%s: %d, %lld ms", replies[i].name, known, (long long)off);
		reply_free(&r);
	}
}

/* ---- a vendor whose every operation is one GET from a server on loopback ---- */

struct provider {
	int port, rents;
	int64_t hard_end_s; /* of the newest create */
	bool list_asks;
};
struct op {
	struct provider *p;
	enum op_kind kind;
};

static struct op *begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	*op = (struct op){p, kind};
	p->rents += kind == OP_RENT;
	if (kind == OP_RENT)
		p->hard_end_s = want->rent.marker.hard_end_s;
	return op;
}

static enum op_next next(struct op *op, const struct reply *reply, struct call *call,
			 int64_t *wait_ms, struct op_result *result, struct err *err)
{
	(void)wait_ms;
	if (op->kind == OP_LIST && !op->p->list_asks)
		return OP_DONE;
	if (op->kind == OP_RENT) {
		err_set(err, ERR_REFUSED, "not today");
		return OP_FAILED;
	}
	if (!reply) {
		*call = (struct call){.kind = CALL_HTTP, .method = "GET", .timeout_ms = 20000};
		call->url = xasprintf("http://127.0.0.1:%d/", op->p->port);
		return OP_CALL;
	}
	if (reply->failed) {
		*err = reply->err;
		return OP_FAILED;
	}
	if (op->kind == OP_OFFERS) {
		result->offers = xcalloc(1, sizeof(*result->offers));
		result->offers[0] = (struct offer){.provider = "cloudy", .id = "1", .gpu = "none"};
		result->offer_count = 1;
	}
	str_add(&result->text, "ok: the key is accepted\n");
	return OP_DONE;
}

static void op_free(struct op *op)
{
	free(op);
}

static const char *account(const struct provider *p)
{
	(void)p;
	return "tester";
}

static const struct provider_ops cloudy = {.abi = PROVIDER_ABI,
					   .name = "cloudy",
					   .account = account,
					   .begin = begin,
					   .next = next,
					   .op_free = op_free};

struct server {
	int listener;
	int64_t off_s;
};

static void *serve_once(void *arg)
{
	struct server *s = arg;
	char date[64], request[4096];
	time_t now = time(NULL) + s->off_s;
	struct tm tm;

	int fd = accept(s->listener, NULL, NULL);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	if (fd >= 0 && recv(fd, request, sizeof(request), 0) > 0)
		dprintf(fd,
			"HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Length: 2\r\nConnection: "
			"close\r\n\r\n{}",
			date);
	close(fd);
	return NULL;
}

static const struct {
	const char *name;
	int64_t off_s;     /* of the server's clock */
	const char *words; /* in what is said; NULL: nothing is */
} clocks[] = {
	{"right", 0, NULL},
	{"a minute and a half", 90, NULL},
	{"a minute and a half ahead", -90, NULL},
	{"three minutes", 180, "clock is 3m00s behind cloudy's"},
	{"a day behind", 86400, "clock is 24h00m behind cloudy's"},
	{"an hour ahead (a time zone set by hand)", -3600, "clock is 1h00m ahead of cloudy's"},
};

static void test_clock_is_compared(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
		struct server s = {.off_s = clocks[i].off_s};
		struct provider p = {0};
		struct op_result result = {0};
		struct err err = {0};
		pthread_t thread;
		s.listener = listen_on_loopback(&p.port);
		pthread_create(&thread, NULL, serve_once, &s);
		int got = caller_perform(&(struct engine_provider){&cloudy, &p, NULL}, OP_CHECK,
					 NULL, PATIENCE_MS, &result, &err);
		pthread_join(thread, NULL);
		close(s.listener);
		if (got < 0)
			fail_msg("%s: %s", clocks[i].name, err.msg);
		const char *text = str_text(&result.text);
		if (clocks[i].words ? strncmp(text, "bad: this machine's", 19) ||
					      !strstr(text, clocks[i].words)
				    : strcmp(text, "ok: the key is accepted\n"))
			fail_msg("%s: \"%s\"", clocks[i].name, text);
		if (!strstr(text, "ok: the key is accepted\n"))
			fail_msg("%s: the provider's own words are missing in \"%s\"",
				 clocks[i].name, text);
		op_result_free(&result);
	}
}

/* Whose hard end is over is judged by the clock of who lists them. */
static void test_list_tells_their_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
		struct server s = {.off_s = clocks[i].off_s};
		struct provider p = {.list_asks = true};
		struct op_result result = {0};
		struct err err = {0};
		int64_t now_ms = 0;
		pthread_t thread;
		s.listener = listen_on_loopback(&p.port);
		pthread_create(&thread, NULL, serve_once, &s);
		int got = caller_list(&(struct engine_provider){&cloudy, &p, NULL}, NULL,
				      PATIENCE_MS, &result, &now_ms, &err);
		pthread_join(thread, NULL);
		close(s.listener);
		if (got < 0)
			fail_msg("%s: %s", clocks[i].name, err.msg);
		int64_t off = now_ms - clock_wall_ms();
		if (llabs(off - clocks[i].off_s * 1000) > 2000 + PATIENCE_MS)
			fail_msg("%s: off by %lld ms", clocks[i].name, (long long)off);
		op_result_free(&result);
	}
}

/* ---- a run there ---- */

enum { LIFE_S = 3600 };

static void test_nothing_is_rented(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
		struct server s = {.off_s = clocks[i].off_s};
		struct provider p = {0};
		struct segment_result result = {0};
		struct run_row row = {.id = "r1"};
		struct err err = {0};
		pthread_t thread;
		struct engine_setup setup = {
			.kit = pod_kit(),
			.conf = {.run = "r1",
				 .machine = "m",
				 .pods = 1,
				 .max_duration_ms = LIFE_S * 1000,
				 .boot_limit_ms = 60000,
				 .lease_ms = 60000,
				 .check_tries = 1},
			.providers = {{&cloudy, &p}},
			.provider_count = 1,
			.job_ops = &small_job,
			.results = &result,
			.run = &row,
		};
		char *dir = new_folder();
		setup.run_dir = dir;
		setup.store = store_memory();
		s.listener = listen_on_loopback(&p.port);
		pthread_create(&thread, NULL, serve_once, &s);
		struct engine *e = engine_new(&setup);
		int status = engine_run(e, &err);
		engine_free(e);
		pthread_join(thread, NULL);
		close(s.listener);
		store_close(setup.store);
		remove_folder(dir);
		if (p.rents != !clocks[i].words)
			fail_msg("%s: %d creates", clocks[i].name, p.rents);
		int64_t end_s = time(NULL) + LIFE_S + MIN(clocks[i].off_s, 0);
		if (p.rents && (p.hard_end_s > end_s + 2 || p.hard_end_s < end_s - 10))
			fail_msg("%s: a pod would end %lld s late by its vendor's clock",
				 clocks[i].name, (long long)(p.hard_end_s - end_s));
		if (clocks[i].words && (status != 2 || !strstr(err.msg, clocks[i].words)))
			fail_msg("%s: exit %d, \"%s\"", clocks[i].name, status, err.msg);
		if (!clocks[i].words && !strstr(err.msg, "not today"))
			fail_msg("%s: exit %d, \"%s\"", clocks[i].name, status, err.msg);
	}
}

static const struct {
	int64_t off_ms;
	const char *words;
} shown[] = {
	{-61000, "1m01s behind"},      {95000, "1m35s ahead of"},   {-179200, "3m00s behind"},
	{86399000, "24h00m ahead of"}, {-16200000, "4h30m behind"},
};

static void test_words(void **state)
{
	char text[48];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		assert_string_equal(clock_offset_show(text, sizeof(text), shown[i].off_ms),
				    shown[i].words);
}

/* ---- a pod's hello ---- */

static const struct {
	const char *name, *hello;
	int64_t off_ms;
} hellos[] = {
	{"just begun", "{\"began_s\":1795176000,\"t\":0}", 0},
	{"begun an hour ago", "{\"began_s\":1795172400,\"t\":3600000}", 0},
	{"two minutes behind", "{\"began_s\":1795175800,\"t\":80000}", -120000},
	{"a day ahead", "{\"began_s\":1795262400,\"t\":0}", 86400000},
	{"it does not say", "{\"t\":5}", 0},
	{"no clock says that", "{\"began_s\":9223372036854775807,\"t\":9223372036854775807}",
	 2000000000000000 - 1795176000000},
	{"nor that", "{\"began_s\":-9223372036854775807,\"t\":-9223372036854775807}", 0},
};

static void test_hello(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
		json_t *hello = json_loads(hellos[i].hello, 0, NULL);
		int64_t off = podlink_clock_off(hello, noon_ms);
		if (off != hellos[i].off_ms)
			fail_msg("%s: %lld ms", hellos[i].name, (long long)off);
		json_decref(hello);
	}
}

int main(void)
{
	struct err err;
	if (engine_ready(&err) < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_http_dates),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_clock_is_compared),
		cmocka_unit_test(test_list_tells_their_time),
		cmocka_unit_test(test_nothing_is_rented),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_hello),
	};

	return cmocka_run_group_tests_name("clocks", tests, NULL, NULL);
}
