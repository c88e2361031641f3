/* test_grpc_calls.c - single calls: answers, sizes, deadlines, streams, foreign bytes. */
#include "grpc_bench.h"

#include <pthread.h>

#include "base/jsonx.h"

#define DE    "00000000026465"
#define EMPTY "0000000000"

static const struct {
	const char *name, *answer;
	bool stream, failed;
	enum err_kind kind;
	int code;
	const char *body;
	size_t len;
	const char *words; /* in err.msg */
} cases[] = {
	{"a message", "{\"pieces\":[\"" ABC "\"]}", false, false, 0, 0, "abc", 3, NULL},
	{"byte by byte", "{\"pieces\":[\"" ABC "\"],\"bytewise\":true}", false, false, 0, 0, "abc",
	 3, NULL},
	{"an empty one", "{\"pieces\":[\"" EMPTY "\"]}", false, false, 0, 0, "", 0, NULL},
	{"another type of gRPC", "{\"type\":\"application/grpc+proto\",\"pieces\":[\"" ABC "\"]}",
	 false, false, 0, 0, "abc", 3, NULL},
	{"a stream", "{\"pieces\":[\"" ABC DE "\"]}", true, false, 0, 0, "\0\0\0\3abc\0\0\0\2de",
	 13, NULL},
	{"a stream byte by byte", "{\"pieces\":[\"" ABC EMPTY DE "\"],\"bytewise\":true}", true,
	 false, 0, 0, "\0\0\0\3abc\0\0\0\0\0\0\0\2de", 17, NULL},
	{"a stream of nothing", "{\"end\":\"only\"}", true, false, 0, 0, "", 0, NULL},
	{"no message", "{}", false, true, ERR_BUG, GRPC_INTERNAL, "", 0,
	 "Say: the server says OK and sends no message"},
	{"two messages", "{\"pieces\":[\"" ABC DE "\"]}", false, true, ERR_BUG, GRPC_INTERNAL, "",
	 0, "a second message"},
	{"refused without a body",
	 "{\"end\":\"only\",\"trailers\":{\"grpc-status\":\"5\",\"grpc-message\":\"unimpl%20X\"}}",
	 false, false, ERR_NOT_FOUND, 5, "", 0, "Say: NOT_FOUND: unimpl X"},
	{"refused after a message",
	 "{\"pieces\":[\"" ABC "\"],\"trailers\":{\"grpc-status\":\"16\"}}", false, false,
	 ERR_CREDENTIALS, 16, "", 0, "Say: UNAUTHENTICATED"},
	{"a stream that ends badly",
	 "{\"pieces\":[\"" ABC
	 "\"],\"trailers\":{\"grpc-status\":\"14\",\"grpc-message\":\"bye\"}}",
	 true, false, ERR_TRANSIENT, 14, "\0\0\0\3abc", 7, "Say: UNAVAILABLE: bye"},
	{"no trailers", "{\"pieces\":[\"" ABC "\"],\"end\":\"none\"}", false, true, ERR_NETWORK, 2,
	 "", 0, "without a status"},
	{"compressed", "{\"pieces\":[\"0100000003616263\"]}", false, true, ERR_BUG, GRPC_INTERNAL,
	 "", 0, "compressed"},
	{"no frame", "{\"pieces\":[\"3c68746d6c3e\"]}", false, true, ERR_BUG, GRPC_INTERNAL, "", 0,
	 "not framed as gRPC"},
	{"cut in a message", "{\"pieces\":[\"000000000361\"]}", false, true, ERR_BUG, GRPC_INTERNAL,
	 "", 0, "in the middle of a message"},
	{"4 GiB announced", "{\"pieces\":[\"00ffffffff61\"],\"end\":\"hang\"}", false, true,
	 ERR_UNTRUSTED, GRPC_RESOURCE_EXHAUSTED, "", 0, "larger than allowed"},
	{"a proxy's answer",
	 "{\"status\":502,\"type\":\"text/html\",\"pieces\":[\"3c68746d6c3e\"],\"end\":\"none\"}",
	 false, false, ERR_TRANSIENT, 14, "", 0, "Say: UNAVAILABLE: HTTP status 502"},
	{"a proxy that wants a password",
	 "{\"status\":401,\"type\":\"text/html\",\"end\":\"none\"}", false, false, ERR_CREDENTIALS,
	 16, "", 0, "HTTP status 401"},
	{"a page instead",
	 "{\"type\":\"text/html\",\"pieces\":[\"3c68746d6c3e\"],\"end\":\"none\"}", false, false,
	 ERR_TRANSIENT, 2, "", 0, "HTTP status 200 without a gRPC status"},
	{"gRPC's status with HTTP's",
	 "{\"status\":503,\"end\":\"only\",\"trailers\":{\"grpc-status\":\"8\"}}", false, false,
	 ERR_RATE_LIMITED, 8, "", 0, "RESOURCE_EXHAUSTED"},
	{"reset", "{\"end\":\"reset\",\"code\":8}", false, true, ERR_NETWORK, GRPC_UNAVAILABLE, "",
	 0, "CANCEL"},
	{"the connection cut", "{\"end\":\"cut\"}", false, true, ERR_NETWORK, GRPC_UNAVAILABLE, "",
	 0, NULL},
};

static void test_answers(void **state)
{
	(void)state;
	NEED_SERVER();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(free_text) char *text = grpc_script(cases[i].answer);
		struct call call = asking("Say", text);
		call.stream = cases[i].stream;
		struct got g = carry(&call);
		struct reply *r = &g.reply;
		print_message("   %s: %s\n", cases[i].name, r->err.kind ? r->err.msg : "fine");
		if (r->failed != cases[i].failed || r->err.kind != cases[i].kind ||
		    r->grpc_status != cases[i].code || r->body.len != cases[i].len ||
		    memcmp(str_text(&r->body), cases[i].body, r->body.len) ||
		    (cases[i].words && !strstr(r->err.msg, cases[i].words)))
			fail_msg("%s: failed %d, kind %d, status %d, %zu bytes, \"%s\"",
				 cases[i].name, r->failed, r->err.kind, r->grpc_status, r->body.len,
				 r->err.msg);
		assert_true(r->was_sent);
		reply_free(r);
		CLEANUP(json_decref) json_t *said = heard();
		/* nothing here may be repeated, and nothing was */
		assert_int_equal(requests_in(said), 1);
	}
}

static void test_request(void **state)
{
	(void)state;
	NEED_SERVER();
	struct call call = asking("Echo", "hello");
	call_header(&call, "x-modal-token-id: ak-1");
	struct got g = carry(&call);
	assert_false(g.reply.failed);
	assert_int_equal(g.reply.grpc_status, GRPC_OK);
	assert_int_equal(g.reply.err.kind, ERR_NONE);
	assert_string_equal(str_text(&g.reply.body), "hello");
	reply_free(&g.reply);
	CLEANUP(json_decref) json_t *said = heard();
	assert_true(
		jsonx_bool(json_array_get(json_object_get(said, "requests"), 0), "framed", false));
	assert_string_equal(header_of(said, 0, ":method"), "POST");
	assert_string_equal(header_of(said, 0, ":path"), "/t.Test/Echo");
	assert_string_equal(header_of(said, 0, "content-type"), "application/grpc");
	assert_string_equal(header_of(said, 0, "te"), "trailers");
	assert_string_equal(header_of(said, 0, "grpc-accept-encoding"), "identity");
	assert_string_equal(header_of(said, 0, "accept-encoding"), "identity");
	/* gRPC clients send neither of these */
	assert_string_equal(header_of(said, 0, "accept"), "");
	assert_string_equal(header_of(said, 0, "content-length"), "");
	assert_string_equal(header_of(said, 0, "grpc-timeout"), "30000m");
	assert_string_equal(header_of(said, 0, "user-agent"), "burst-test/1");
	assert_string_equal(header_of(said, 0, "x-modal-token-id"), "ak-1");
	assert_string_equal(header_of(said, 0, "x-retry-attempt"), "0");
	assert_string_equal(header_of(said, 0, "x-throttle-retry-attempt"), "0");
	assert_string_equal(header_of(said, 0, "x-retry-delay"), "");
	assert_string_equal(header_of(said, 0, "x-throttle-retry-delay"), "");
	const char *key = header_of(said, 0, "x-idempotency-key");
	assert_int_equal(strlen(key), 36);
	assert_true(key[8] == '-' && key[13] == '-' && key[14] == '4' && strchr("89ab", key[19]));

	/* a key of its own goes instead; a stream bears none of these headers; nothing asked for is
	 * five zero bytes */
	call = asking("Echo", "");
	call_header(&call, "x-idempotency-key: mine");
	g = carry(&call);
	assert_int_equal(g.reply.body.len, 0);
	assert_int_equal(g.reply.grpc_status, GRPC_OK);
	reply_free(&g.reply);
	call = asking("Echo", "abc");
	call.stream = true;
	g = carry(&call);
	assert_int_equal(g.reply.body.len, 7);
	reply_free(&g.reply);
	CLEANUP(json_decref) json_t *more = heard();
	assert_int_equal(requests_in(more), 2);
	assert_string_equal(header_of(more, 0, "x-idempotency-key"), "mine");
	assert_int_equal(
		jsonx_int(json_array_get(json_object_get(more, "requests"), 0), "bytes", 0), 5);
	static const char *const not_streams[] = {"x-idempotency-key", "x-retry-attempt",
						  "x-throttle-retry-attempt"};
	for (size_t i = 0; i < ARRAY_LEN(not_streams); i++)
		assert_string_equal(header_of(more, 1, not_streams[i]), "");
}

#define SETTINGS "\0\0\0\4\0\0\0\0\0"
#define ON_ONE   "\0\0\0\1" /* the first stream */
#define HEAD     "\0\0\40\1\4" ON_ONE "\210\0\14content-type\20application/grpc"
#define DATA     "\0\0\12\0\0" ON_ONE "\0\0\0\0\3abc\0\0"
#define WHOLE    "\0\0\10\0\0" ON_ONE "\0\0\0\0\3abc"
#define TRAILERS "\0\0\17\1\5" ON_ONE "\0\13grpc-status\0010"
#define RESET    "\0\0\4\3\0" ON_ONE "\0\0\0"
#define GOAWAY   "\0\0\10\7\0\0\0\0\0\0\0\0"

static const struct raw {
	const char *name, *bytes;
	size_t len;
	bool cut; /* and hung up at once */
	enum err_kind kind;
	size_t body; /* at most: libcurl drops what it has not handed over yet */
} raws[] = {
#define RAW(text) text, sizeof(text) - 1
	{"as it should be", RAW(SETTINGS HEAD WHOLE TRAILERS), false, 0, 7},
	{"reset in a message", RAW(SETTINGS HEAD DATA RESET "\2"), false, ERR_NETWORK, 7},
	{"reset after a message", RAW(SETTINGS HEAD WHOLE RESET "\10"), false, ERR_NETWORK, 7},
	{"refused", RAW(SETTINGS RESET "\7"), false, ERR_NETWORK, 0},
	{"sent away", RAW(SETTINGS GOAWAY "\0\0\0\0\0\0\0\2"), true, ERR_NETWORK, 0},
	{"cut in a message", RAW(SETTINGS HEAD DATA), true, ERR_NETWORK, 7},
	{"cut in a frame", RAW(SETTINGS HEAD "\0\0\20\0\0" ON_ONE "\0\0\0\0\3abc"), true,
	 ERR_NETWORK, 7},
	{"not HTTP/2", RAW("HTTP/1.1 400 Bad\r\n\r\n"), true, ERR_NETWORK, 0},
	{"a frame too large", RAW(SETTINGS "\377\377\377\0\0" ON_ONE), false, ERR_NETWORK, 0},
};

struct raw_server {
	int listener, requests;
	_Atomic int fd;
	const struct raw *raw;
};

/* Hears a request to its end of stream, says its piece, hangs up; until there is nobody more. */
static void *serve_raw(void *arg)
{
	struct raw_server *s = arg;
	char heard_now[4096];
	int fd;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		ssize_t n, all = 0;
		s->fd = fd;
		/* the preface, settings, the request's head and its message: the last 6 bytes are
		 * DATA of "x" */
		while ((n = recv(fd, heard_now, sizeof(heard_now), 0)) > 0 && (all += n))
			if (n >= 6 && !memcmp(heard_now + n - 6, "\0\0\0\0\1x", 6))
				break;
		s->requests += n > 0;
		if (n > 0 &&
		    send(fd, s->raw->bytes, s->raw->len, MSG_NOSIGNAL) == (ssize_t)s->raw->len) {
			if (s->raw->cut)
				shutdown(fd, SHUT_WR);
			while (recv(fd, heard_now, sizeof(heard_now), 0) > 0)
				;
		}
		close(fd);
	}
	return NULL;
}

static void test_raw(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(raws); i++) {
		struct raw_server s = {.raw = &raws[i]};
		pthread_t thread;
		int port;
		s.listener = listen_on_loopback(&port);
		pthread_create(&thread, NULL, serve_raw, &s);
		struct call call = asking("Say", "x");
		free(call.url);
		call.url = xasprintf("http://127.0.0.1:%d/t.Test/Say", port);
		call.stream = true;
		struct got g = carry(&call);
		print_message("   %s: %s\n", raws[i].name,
			      g.reply.err.kind ? g.reply.err.msg : "fine");
		shutdown(s.listener, SHUT_RDWR);
		shutdown(s.fd, SHUT_RDWR);
		pthread_join(thread, NULL);
		close(s.listener);
		if (g.reply.failed != !!raws[i].kind || g.reply.err.kind != raws[i].kind ||
		    g.reply.body.len > raws[i].body ||
		    (!raws[i].kind && g.reply.body.len != raws[i].body) || !g.reply.was_sent ||
		    s.requests != 1)
			fail_msg("%s: failed %d, kind %d, %zu bytes, %d requests, \"%s\"",
				 raws[i].name, g.reply.failed, g.reply.err.kind, g.reply.body.len,
				 s.requests, g.reply.err.msg);
		reply_free(&g.reply);
	}
}

static void test_large(void **state)
{
	(void)state;
	NEED_SERVER();
	CLEANUP(free_text) char *text = grpc_script("{\"zeros\":9000000}");
	struct call call = asking("Say", text);
	struct got g = carry(&call);
	assert_int_equal(g.reply.err.kind, ERR_NONE);
	assert_int_equal(g.reply.body.len, 9000000);
	reply_free(&g.reply);
	call = asking("Say", text);
	call.max_bytes = 8999999;
	g = carry(&call);
	assert_true(g.reply.failed);
	assert_int_equal(g.reply.err.kind, ERR_UNTRUSTED);
	assert_int_equal(g.reply.body.len, 0);
	reply_free(&g.reply);

	/* up as well, with and without leave to repeat, and back again */
	CLEANUP(str_free) struct str big = STR_INIT;
	for (int i = 0; i < 300000; i++)
		str_addf(&big, "%09d\n", i);
	for (int repeat = 0; repeat < 2; repeat++) {
		call = asking("Echo", str_text(&big));
		call.may_repeat = repeat;
		g = carry(&call);
		assert_int_equal(g.reply.err.kind, ERR_NONE);
		assert_int_equal(g.reply.body.len, big.len);
		assert_memory_equal(g.reply.body.s, big.s, big.len);
		reply_free(&g.reply);
	}

	/* more than a message may have is not even sent */
	call = asking("Echo", "");
	str_free(&call.body);
	call.body = (struct str){.s = xcalloc(1, GRPC_MOST_BYTES + 2),
				 .len = GRPC_MOST_BYTES + 1,
				 .cap = GRPC_MOST_BYTES + 2};
	g = carry(&call);
	assert_true(g.reply.failed && !g.reply.was_sent);
	assert_int_equal(g.reply.err.kind, ERR_REFUSED);
	reply_free(&g.reply);
}

static void test_deadline(void **state)
{
	(void)state;
	NEED_SERVER();
	int64_t since = clock_boot_ms();
	CLEANUP(free_text) char *text = grpc_script("{\"end\":\"hang\"}");
	struct got g = {0};
	/* a busy machine may need longer to connect */
	for (int64_t ms = 150; ms < 20000 && !g.reply.was_sent; ms *= 2) {
		reply_free(&g.reply);
		struct call call = asking("Say", text);
		call.timeout_ms = ms;
		since = clock_boot_ms();
		g = carry(&call);
	}
	assert_true(g.reply.failed && g.reply.was_sent);
	assert_int_equal(g.reply.err.kind, ERR_NETWORK);
	assert_int_equal(g.reply.grpc_status, GRPC_DEADLINE_EXCEEDED);
	assert_true(clock_boot_ms() - since < 40000);
	reply_free(&g.reply);
}

static void test_stream_limit(void **state)
{
	(void)state;
	NEED_SERVER();
	static const struct {
		const char *name, *answer;
		size_t len;
	} hung[] = {
		{"nothing came", "{\"end\":\"hang\"}", 0},
		{"a message and a half",
		 "{\"pieces\":[\"" ABC "0000000009616263\"],\"end\":\"hang\"}", 7},
		{"half a prefix", "{\"pieces\":[\"" ABC DE "0000\"],\"end\":\"hang\"}", 13},
	};
	for (size_t i = 0; i < ARRAY_LEN(hung); i++) {
		CLEANUP(free_text) char *text = grpc_script(hung[i].answer);
		struct got g = {.reply.failed = true};
		for (int64_t ms = 200;
		     ms < 20000 && (g.reply.failed || g.reply.body.len < hung[i].len); ms *= 2) {
			reply_free(&g.reply);
			struct call call = asking("Say", text);
			call.stream = true;
			call.stream_limit_ms = ms;
			g = carry(&call);
		}
		if (g.reply.failed || g.reply.err.kind || g.reply.grpc_status ||
		    g.reply.body.len != hung[i].len)
			fail_msg("%s: %d %s, %zu bytes", hung[i].name, g.reply.failed,
				 g.reply.err.msg, g.reply.body.len);
		reply_free(&g.reply);
	}
	/* one that ends before is not hung up on */
	CLEANUP(free_text)
	char *text = grpc_script("{\"pieces\":[\"" ABC "\"],\"trailers\":{\"grpc-status\":\"5\"}}");
	struct call call = asking("Say", text);
	call.stream = true;
	call.stream_limit_ms = 60000;
	struct got g = carry(&call);
	assert_int_equal(g.reply.grpc_status, GRPC_NOT_FOUND);
	reply_free(&g.reply);
	/* and where there was no connection yet, that is no end of a stream */
	int port, fd = listen_on_loopback(&port);
	call = asking("Say", "{}");
	free(call.url);
	/* it never says a word of TLS */
	call.url = xasprintf("https://127.0.0.1:%d/t.Test/Say", port);
	call.stream = true;
	call.stream_limit_ms = 100;
	g = carry(&call);
	assert_true(g.reply.failed && !g.reply.was_sent);
	assert_int_equal(g.reply.err.kind, ERR_NETWORK);
	reply_free(&g.reply);
	close(fd);
}

static void test_cancel(void **state)
{
	(void)state;
	NEED_SERVER();
	CLEANUP(free_text) char *text = grpc_script("{\"end\":\"hang\"}");
	struct grpc_tries tries = {0};
	struct got never = {0};
	struct call call = asking("Say", text);
	call.stream = true;
	call.stream_limit_ms = 50;
	struct grpc_call *c = grpc_send(grpc_loop, grpc_http, &call, &tries, on_done, &never);
	loop_turn(grpc_loop, 10);
	grpc_cancel(c);
	grpc_cancel(NULL);
	call_free(&call);
	for (int64_t until = clock_boot_ms() + 100; clock_boot_ms() < until;)
		loop_turn(grpc_loop, 10);
	assert_int_equal(never.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_answers), BOTH(test_request),  cmocka_unit_test(test_raw),
		BOTH(test_large),   BOTH(test_deadline), BOTH(test_stream_limit),
		BOTH(test_cancel),
	};

	return cmocka_run_group_tests_name("grpc calls", tests, grpc_start, grpc_stop);
}
