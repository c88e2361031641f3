/* test_http.c - HTTP calls and what comes of each answer. */
#include "net_test.h"

#include <time.h>

#include "http_bed.h"
#include "net/http.h"

#define TEN     "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct {
	const char *name;
	struct answer answer;
	bool failed, was_sent;
	enum err_kind kind;
	int status;
	const char *body;
} cases[] = {
	{"a plain answer",
	 {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", WHOLE},
	 false,
	 true,
	 0,
	 200,
	 "ok"},
	{"byte by byte",
	 {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", BYTES},
	 false,
	 true,
	 0,
	 200,
	 "ok"},
	{"chunks",
	 {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
	  BYTES},
	 false,
	 true,
	 0,
	 200,
	 "abcde"},
	{"no length",
	 {"HTTP/1.0 200 OK\r\n\r\nuntil the end", WHOLE},
	 false,
	 true,
	 0,
	 200,
	 "until the end"},
	{"an error is an answer",
	 {"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nbad", WHOLE},
	 false,
	 true,
	 0,
	 500,
	 "bad"},
	{"a redirect is an answer",
	 {"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", WHOLE},
	 false,
	 true,
	 0,
	 302,
	 ""},
	{"100 first",
	 {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n", WHOLE},
	 false,
	 true,
	 0,
	 204,
	 ""},
	{"cut body",
	 {"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nshort", WHOLE},
	 true,
	 true,
	 ERR_NETWORK,
	 200,
	 NULL},
	{"cut chunks",
	 {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc", WHOLE},
	 true,
	 true,
	 ERR_NETWORK,
	 200,
	 NULL},
	{"cut head", {"HTTP/1.1 200 OK\r\nContent-Le", WHOLE}, true, true, ERR_NETWORK, -1, NULL},
	{"no status",
	 {"HTTP/200 OK\r\nContent-Length: 2\r\n\r\nok", WHOLE},
	 true,
	 true,
	 ERR_UNTRUSTED,
	 0,
	 NULL},
	{"no answer", {"", WHOLE}, true, true, ERR_NETWORK, -1, NULL},
	{"not HTTP", {"SSH-2.0-OpenSSH_9.2\r\n", WHOLE}, true, true, ERR_NETWORK, -1, NULL},
	{"reset before the request", {"", RESET_FIRST}, true, true, ERR_NETWORK, -1, NULL},
	{"reset after the request", {"", RESET_AFTER}, true, true, ERR_NETWORK, -1, NULL},
	{"too large, told",
	 {"HTTP/1.1 200 OK\r\nContent-Length: 1100\r\n\r\n" HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
		  HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED,
	  WHOLE},
	 true,
	 true,
	 ERR_UNTRUSTED,
	 200,
	 NULL},
	{"too large, untold",
	 {"HTTP/1.0 200 OK\r\n\r\n" HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
		  HUNDRED HUNDRED HUNDRED,
	  BYTES},
	 true,
	 true,
	 ERR_UNTRUSTED,
	 200,
	 NULL},
	{"just not too large",
	 {"HTTP/1.0 200 OK\r\n\r\n" HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
		  HUNDRED HUNDRED,
	  WHOLE},
	 false,
	 true,
	 0,
	 200,
	 HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED},
};

static void test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct call call = call_for("POST", &cases[i].answer);
		str_add(&call.body, "{}");
		struct got g = make_call(&call);
		print_message("   %s: %d %s\n", cases[i].name, g.reply.status, g.reply.err.msg);
		assert_int_equal(g.reply.failed, cases[i].failed);
		if (cases[i].answer.manner !=
		    RESET_FIRST) /* which may come before the request or within it */
			assert_int_equal(g.reply.was_sent, cases[i].was_sent);
		if (!g.reply.was_sent)
			assert_int_equal(atomic_load(&http_server.requests), 0);
		assert_int_equal(g.reply.err.kind, cases[i].kind);
		if (cases[i].status >= 0)
			assert_int_equal(g.reply.status, cases[i].status);
		if (cases[i].body)
			assert_string_equal(str_text(&g.reply.body), cases[i].body);
		assert_true(atomic_load(&http_server.requests) <= 1); /* never twice */
		reply_free(&g.reply);
	}
}

static void test_request_as_asked(void **state)
{
	struct call call = call_for("PUT", &answer_ok);
	char value[16];

	(void)state;
	str_addn(&call.body, "a\0b", 3);
	call_header(&call, "Authorization: Bearer abc");
	call_header(&call, "X-Empty:");
	struct got g = make_call(&call);
	const char *heard = str_text(&http_server.heard);
	assert_true(starts_with(heard, "PUT /path?q=1 HTTP/1.1\r\n"));
	assert_non_null(strstr(heard, "\r\nAuthorization: Bearer abc\r\n"));
	assert_non_null(strstr(heard, "\r\nX-Empty:\r\n"));
	assert_non_null(strstr(heard, "\r\nUser-Agent: burst-test/1\r\n"));
	assert_non_null(strstr(heard, "\r\nContent-Length: 3\r\n"));
	assert_null(strcasestr(heard, "Expect"));
	assert_null(strcasestr(heard, "Content-Type"));
	assert_memory_equal(http_server.heard.s + http_server.heard.len - 3, "a\0b", 3);
	assert_true(reply_header(&g.reply, "x-two", value, sizeof(value)));
	assert_true(starts_with(str_text(&g.reply.head), "HTTP/1.1 200 OK\r\nX-One: 1\r\n"));
	reply_free(&g.reply);
	static const char *const methods[] = {"GET", "DELETE", "HEAD", "PATCH"};
	static const struct answer none = {"HTTP/1.1 204 No\r\n\r\n", WHOLE};
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		call = call_for(methods[i], &none);
		g = make_call(&call);
		assert_int_equal(g.reply.status, 204);
		assert_true(starts_with(str_text(&http_server.heard), methods[i]));
		reply_free(&g.reply);
	}
}

static const struct {
	const char *name, *url, *header, *method;
} refused[] = {
	{"plain http to a name", "http://example.org/", NULL, "GET"},
	{"plain http to an address", "http://10.0.0.1/", NULL, "GET"},
	{"a name that looks local", "http://127.0.0.1.example.org/", NULL, "GET"},
	{"a name that looks local, too", "http://localhost.example.org/", NULL, "GET"},
	{"another protocol", "ftp://127.0.0.1/", NULL, "GET"},
	{"a file", "file:///etc/passwd", NULL, "GET"},
	{"a password in the URL", "https://user:pass@example.org/", NULL, "GET"},
	{"a line break in the URL", "http://127.0.0.1/a\r\nX: y", NULL, "GET"},
	{"a blank in the URL", "http://127.0.0.1/a b", NULL, "GET"},
	{"no URL", "", NULL, "GET"},
	{"a line break in a header", NULL, "X-A: b\r\nX-C: d", "GET"},
	{"a line break in a header's name", NULL, "X-A\r\nX-C: d", "GET"},
	{"a header without a name", NULL, ": d", "GET"},
	{"no header", NULL, "nothing", "GET"},
	{"a method with a blank", NULL, NULL, "GET /x"},
	{"no method", NULL, NULL, ""},
	{"a method with a line break", NULL, NULL, "GET\r\n"},
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct call call = call_for(refused[i].method, &answer_ok);
		int before = atomic_load(&http_server.connections);
		if (refused[i].url) {
			free(call.url);
			call.url = xstrdup(refused[i].url);
		}
		if (refused[i].header)
			call_header(&call, "%s", refused[i].header);
		struct got g = make_call(&call);
		print_message("   %s: %s\n", refused[i].name, g.reply.err.msg);
		assert_true(g.reply.failed);
		assert_false(g.reply.was_sent);
		assert_int_equal(g.reply.err.kind, ERR_CONFIG);
		assert_int_equal(atomic_load(&http_server.connections), before);
		reply_free(&g.reply);
	}
}

static void test_never_sent(void **state)
{
	struct call call = call_for("POST", &answer_ok);
	int port, fd = listen_on_loopback(&port);

	(void)state;
	close(fd); /* nobody listens there now */
	free(call.url);
	call.url = xasprintf("http://127.0.0.1:%d/", port);
	struct got g = make_call(&call);
	assert_true(g.reply.failed);
	assert_false(g.reply.was_sent);
	assert_int_equal(g.reply.err.kind, ERR_NETWORK);
	reply_free(&g.reply);

	call = call_for("POST", &answer_ok); /* it speaks no TLS */
	free(call.url);
	call.url = xasprintf("https://127.0.0.1:%d/", http_server.port);
	static const struct answer plain = {"HTTP/1.1 400 Bad\r\n\r\n", RESET_FIRST};
	http_server.answer = &plain;
	g = make_call(&call);
	assert_true(g.reply.failed);
	assert_false(g.reply.was_sent);
	assert_int_equal(g.reply.err.kind, ERR_NETWORK);
	reply_free(&g.reply);
}

static void test_slow_and_cancel(void **state)
{
	static const struct answer hang = {"", HANG};
	struct call call = call_for("POST", &hang);
	int64_t since = clock_boot_ms();

	(void)state;
	call.timeout_ms = 1500; /* time enough to send it, under valgrind on a busy machine too */
	struct got g = make_call(&call);
	assert_true(g.reply.failed);
	assert_true(g.reply.was_sent);
	assert_int_equal(g.reply.err.kind, ERR_NETWORK);
	assert_in_range(clock_boot_ms() - since, 1400, 10000);
	reply_free(&g.reply);

	struct got never = {0};
	call = call_for("POST", &hang);
	struct http_call *c = http_send(http, &call, note_reply, &never);
	TURN_UNTIL(http_loop, atomic_load(&http_server.requests) == 1);
	http_cancel(c);
	c = http_send(http, &call, note_reply, &never); /* and one that was never begun */
	http_cancel(c);
	free(call.url);
	call.url = xstrdup("http://example.org/"); /* and one that was refused */
	c = http_send(http, &call, note_reply, &never);
	http_cancel(c);
	loop_turn(http_loop, 0);
	assert_int_equal(never.count, 0);
	call_free(&call);
}

/* What costs money goes over the wire once; what may be repeated uses a kept connection. */
static void test_kept_connections(void **state)
{
	static const struct answer keep = {
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok", WHOLE};
	static const struct answer once = {
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok",
		ONCE_THEN_RESET};
	int before = atomic_load(&http_server.connections);

	(void)state;
	http_free(http); /* with one that has never waited in vain */
	http = http_new(http_loop, "burst-test/1");
	for (int i = 0; i < 5; i++) {
		struct call call = call_for("GET", &keep);
		call.may_repeat = true;
		struct got g = make_call(&call);
		assert_int_equal(g.reply.status, 200);
		assert_true(g.reply.was_sent);
		reply_free(&g.reply);
	}
	assert_int_equal(atomic_load(&http_server.connections) - before, 1);

	before = atomic_load(&http_server.connections);
	for (int i = 0; i < 3; i++) {
		struct call call = call_for("POST", &once);
		str_add(&call.body, "create");
		struct got g = make_call(&call);
		assert_int_equal(g.reply.status, 200);
		assert_int_equal(atomic_load(&http_server.requests), 1);
		reply_free(&g.reply);
	}
	assert_int_equal(atomic_load(&http_server.connections) - before, 3);
}

static void test_retry_after(void **state)
{
	static const struct {
		const char *value;
		int64_t least_ms, most_ms;
	} values[] = {{"7", 7000, 7000},
		      {"0", 0, 0},
		      {"-5", 0, 0},
		      {"soon", 0, 0},
		      {"99999999999", 86400000, 86400000},
		      {"Wed, 21 Oct 2015 07:28:00 GMT", 0, 0},
		      {NULL, 20000, 30000}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		static char texts[ARRAY_LEN(values)][256]; /* the server may look at them later */
		static struct answer answers[ARRAY_LEN(values)];
		char date[64];
		time_t then = time(NULL) + 30;
		struct tm tm;
		strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&then, &tm));
		snprintf(texts[i], sizeof(texts[i]),
			 "HTTP/1.1 429 Slow down\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n",
			 values[i].value ? values[i].value : date);
		answers[i] = (struct answer){texts[i], WHOLE};
		struct call call = call_for("GET", &answers[i]);
		struct got g = make_call(&call);
		assert_int_equal(g.reply.status, 429);
		assert_in_range(g.reply.retry_after_ms, values[i].least_ms, values[i].most_ms);
		reply_free(&g.reply);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),         cmocka_unit_test(test_request_as_asked),
		cmocka_unit_test(test_refused),         cmocka_unit_test(test_never_sent),
		cmocka_unit_test(test_slow_and_cancel), cmocka_unit_test(test_kept_connections),
		cmocka_unit_test(test_retry_after),
	};
	return cmocka_run_group_tests(tests, start_http_bed, end_http_bed);
}
