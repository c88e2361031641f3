/* test_http.c - http.c against a small server on loopback that answers whatever the test's table
 * says, well or badly. */
#include "net_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "base/path.h"
#include "net/http.h"

static struct loop *loop;
static struct http *http;

/* ---- the server ---- */

enum manner { WHOLE, BYTES, RESET_FIRST, RESET_AFTER, HANG, ONCE_THEN_RESET };

struct answer {
	const char *text; /* as it goes over the wire */
	enum manner manner;
};

struct server {
	int listener, port;
	const struct answer *answer; /* of the present test */
	atomic_int connections, requests;
	pthread_mutex_t lock;
	struct str heard; /* the last request, whole */
	pthread_t thread, served[256];
	int count;
};

static struct server server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reset_connection(int fd)
{
	struct linger now = {1, 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* Reads one request with its body (by Content-Length); false at the end. */
static bool hear(int fd, struct str *to)
{
	char c;

	str_reset(to);
	while (!to->len || !strstr(str_text(to), "\r\n\r\n"))
		if (recv(fd, &c, 1, 0) == 1)
			str_addc(to, c);
		else
			return false;
	const char *length = strcasestr(str_text(to), "\r\nContent-Length:");
	for (long left = length ? atol(length + 17) : 0; left > 0; left--)
		if (recv(fd, &c, 1, 0) == 1)
			str_addc(to, c);
		else
			return false;
	return true;
}

static bool say(int fd, const struct answer *a)
{
	size_t step = a->manner == BYTES ? 1 : strlen(a->text);

	for (size_t at = 0; at < strlen(a->text); at += step)
		if (send(fd, a->text + at, step, MSG_NOSIGNAL) < 0)
			return false;
	return true;
}

static bool answer_one(int fd, int nth)
{
	const struct answer *a = server.answer;
	struct str heard = STR_INIT;
	char c;
	bool kept = false;

	if (a->manner != RESET_FIRST && hear(fd, &heard)) {
		pthread_mutex_lock(&server.lock);
		str_reset(&server.heard);
		str_addn(&server.heard, heard.s, heard.len);
		pthread_mutex_unlock(&server.lock);
		atomic_fetch_add(&server.requests, 1);
		if (a->manner == HANG)
			kept = say(fd, a) && recv(fd, &c, 1, 0) == 1;
		else if (a->manner != RESET_AFTER && !(a->manner == ONCE_THEN_RESET && nth))
			kept = say(fd, a) && strstr(a->text, "keep-alive");
	}
	str_free(&heard);
	return kept;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg, on = 1;
	enum manner manner = server.answer->manner;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	for (int nth = 0; answer_one(fd, nth); nth++)
		;
	if (manner == RESET_FIRST || manner == RESET_AFTER || manner == ONCE_THEN_RESET)
		reset_connection(fd);
	else
		close(fd);
	return NULL;
}

static void *accept_all(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = accept(server.listener, NULL, NULL)) >= 0) {
		atomic_fetch_add(&server.connections, 1);
		assert_true(server.count < (int)ARRAY_LEN(server.served));
		pthread_create(&server.served[server.count++], NULL, serve, (void *)(intptr_t)fd);
	}
	return NULL;
}

static int set_up(void **state)
{
	(void)state;
	unsetenv("http_proxy");
	loop = loop_new();
	assert_int_equal(http_ready(NULL), 0);
	http = http_new(loop, "burst-test/1");
	server.listener = listen_on_loopback(&server.port);
	pthread_create(&server.thread, NULL, accept_all, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	http_free(http);
	loop_free(loop);
	shutdown(server.listener, SHUT_RDWR);
	pthread_join(server.thread, NULL);
	close(server.listener);
	for (int i = 0; i < server.count; i++)
		pthread_join(server.served[i], NULL);
	str_free(&server.heard);
	return 0;
}

/* ---- calls ---- */

struct got {
	int count;
	struct reply reply;
};

static void on_done(void *ctx, struct reply *reply)
{
	struct got *g = ctx;

	g->count++;
	g->reply = *reply;
	memset(reply, 0, sizeof(*reply));
}

static struct call request(const char *method, const struct answer *answer)
{
	server.answer = answer;
	atomic_store(&server.requests, 0);
	return (struct call){.kind = CALL_HTTP,
			     .method = method,
			     .timeout_ms = 20000,
			     .max_bytes = 1000,
			     .url = xasprintf("http://127.0.0.1:%d/path?q=1", server.port)};
}

static struct got carry(struct call *call)
{
	struct got g = {0};

	http_send(http, call, on_done, &g);
	assert_int_equal(g.count, 0);
	call_free(call);
	TURN_UNTIL(loop, g.count);
	assert_int_equal(g.count, 1);
	return g;
}

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
		struct call call = request("POST", &cases[i].answer);
		str_add(&call.body, "{}");
		struct got g = carry(&call);
		print_message("   %s: %d %s\n", cases[i].name, g.reply.status, g.reply.err.msg);
		assert_int_equal(g.reply.failed, cases[i].failed);
		if (cases[i].answer.manner !=
		    RESET_FIRST) /* which may come before the request or within it */
			assert_int_equal(g.reply.was_sent, cases[i].was_sent);
		if (!g.reply.was_sent)
			assert_int_equal(atomic_load(&server.requests), 0);
		assert_int_equal(g.reply.err.kind, cases[i].kind);
		if (cases[i].status >= 0)
			assert_int_equal(g.reply.status, cases[i].status);
		if (cases[i].body)
			assert_string_equal(str_text(&g.reply.body), cases[i].body);
		assert_true(atomic_load(&server.requests) <= 1); /* never twice */
		reply_free(&g.reply);
	}
}

static const struct answer ok = {
	"HTTP/1.1 200 OK\r\nX-One: 1\r\nX-Two:  two \r\nContent-Length: 2\r\n\r\nok", WHOLE};

static void test_request_as_asked(void **state)
{
	struct call call = request("PUT", &ok);
	char value[16];

	(void)state;
	str_addn(&call.body, "a\0b", 3);
	call_header(&call, "Authorization: Bearer abc");
	call_header(&call, "X-Empty:");
	struct got g = carry(&call);
	const char *heard = str_text(&server.heard);
	assert_true(starts_with(heard, "PUT /path?q=1 HTTP/1.1\r\n"));
	assert_non_null(strstr(heard, "\r\nAuthorization: Bearer abc\r\n"));
	assert_non_null(strstr(heard, "\r\nX-Empty:\r\n"));
	assert_non_null(strstr(heard, "\r\nUser-Agent: burst-test/1\r\n"));
	assert_non_null(strstr(heard, "\r\nContent-Length: 3\r\n"));
	assert_null(strcasestr(heard, "Expect"));
	assert_null(strcasestr(heard, "Content-Type"));
	assert_memory_equal(server.heard.s + server.heard.len - 3, "a\0b", 3);
	assert_true(reply_header(&g.reply, "x-two", value, sizeof(value)));
	assert_true(starts_with(str_text(&g.reply.head), "HTTP/1.1 200 OK\r\nX-One: 1\r\n"));
	reply_free(&g.reply);
	static const char *const methods[] = {"GET", "DELETE", "HEAD", "PATCH"};
	static const struct answer none = {"HTTP/1.1 204 No\r\n\r\n", WHOLE};
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		call = request(methods[i], &none);
		g = carry(&call);
		assert_int_equal(g.reply.status, 204);
		assert_true(starts_with(str_text(&server.heard), methods[i]));
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
		struct call call = request(refused[i].method, &ok);
		int before = atomic_load(&server.connections);
		if (refused[i].url) {
			free(call.url);
			call.url = xstrdup(refused[i].url);
		}
		if (refused[i].header)
			call_header(&call, "%s", refused[i].header);
		struct got g = carry(&call);
		print_message("   %s: %s\n", refused[i].name, g.reply.err.msg);
		assert_true(g.reply.failed);
		assert_false(g.reply.was_sent);
		assert_int_equal(g.reply.err.kind, ERR_CONFIG);
		assert_int_equal(atomic_load(&server.connections), before);
		reply_free(&g.reply);
	}
}

static void test_never_sent(void **state)
{
	struct call call = request("POST", &ok);
	int port, fd = listen_on_loopback(&port);

	(void)state;
	close(fd); /* nobody listens there now */
	free(call.url);
	call.url = xasprintf("http://127.0.0.1:%d/", port);
	struct got g = carry(&call);
	assert_true(g.reply.failed);
	assert_false(g.reply.was_sent);
	assert_int_equal(g.reply.err.kind, ERR_NETWORK);
	reply_free(&g.reply);

	call = request("POST", &ok); /* it speaks no TLS */
	free(call.url);
	call.url = xasprintf("https://127.0.0.1:%d/", server.port);
	static const struct answer plain = {"HTTP/1.1 400 Bad\r\n\r\n", RESET_FIRST};
	server.answer = &plain;
	g = carry(&call);
	assert_true(g.reply.failed);
	assert_false(g.reply.was_sent);
	assert_int_equal(g.reply.err.kind, ERR_NETWORK);
	reply_free(&g.reply);
}

static void test_slow_and_cancel(void **state)
{
	static const struct answer hang = {"", HANG};
	struct call call = request("POST", &hang);
	int64_t since = clock_boot_ms();

	(void)state;
	call.timeout_ms = 1500; /* time enough to send it, under valgrind on a busy machine too */
	struct got g = carry(&call);
	assert_true(g.reply.failed);
	assert_true(g.reply.was_sent);
	assert_int_equal(g.reply.err.kind, ERR_NETWORK);
	assert_in_range(clock_boot_ms() - since, 1400, 10000);
	reply_free(&g.reply);

	struct got never = {0};
	call = request("POST", &hang);
	struct http_call *c = http_send(http, &call, on_done, &never);
	TURN_UNTIL(loop, atomic_load(&server.requests) == 1);
	http_cancel(c);
	c = http_send(http, &call, on_done, &never); /* and one that was never begun */
	http_cancel(c);
	free(call.url);
	call.url = xstrdup("http://example.org/"); /* and one that was refused */
	c = http_send(http, &call, on_done, &never);
	http_cancel(c);
	loop_turn(loop, 0);
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
	int before = atomic_load(&server.connections);

	(void)state;
	http_free(http); /* with one that has never waited in vain */
	http = http_new(loop, "burst-test/1");
	for (int i = 0; i < 5; i++) {
		struct call call = request("GET", &keep);
		call.may_repeat = true;
		struct got g = carry(&call);
		assert_int_equal(g.reply.status, 200);
		assert_true(g.reply.was_sent);
		reply_free(&g.reply);
	}
	assert_int_equal(atomic_load(&server.connections) - before, 1);

	before = atomic_load(&server.connections);
	for (int i = 0; i < 3; i++) {
		struct call call = request("POST", &once);
		str_add(&call.body, "create");
		struct got g = carry(&call);
		assert_int_equal(g.reply.status, 200);
		assert_int_equal(atomic_load(&server.requests), 1);
		reply_free(&g.reply);
	}
	assert_int_equal(atomic_load(&server.connections) - before, 3);
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
		struct call call = request("GET", &answers[i]);
		struct got g = carry(&call);
		assert_int_equal(g.reply.status, 429);
		assert_in_range(g.reply.retry_after_ms, values[i].least_ms, values[i].most_ms);
		reply_free(&g.reply);
	}
}

static void test_files(void **state)
{
	static const struct answer part = {"HTTP/1.1 206 Part\r\nContent-Length: 3\r\n\r\ndef",
					   WHOLE};
	static const struct answer whole = {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef",
					    WHOLE};
	static const struct answer none = {"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone",
					   WHOLE};
	char dir[] = "/tmp/burst-http-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(dir));
	CLEANUP(free_text) char *to = path_join(dir, "to");
	CLEANUP(free_text) char *from = path_join(dir, "from");
	const struct {
		const char *range;
		const struct answer *answer;
		bool failed;
		const char *file, *body;
		int come;
		size_t most; /* of the file; a refusal may say more */
	} gets[] = {{NULL, &none, false, NULL, "gone", 0, 0},
		    {NULL, &none, false, NULL, "gone", 0, 3},
		    {NULL, &part, true, NULL, NULL, 0, 2},
		    {NULL, &part, false, "def", "", 3, 3},
		    {"Range: bytes=3-", &part, false, "defdef", "", 3, 0},
		    {"Range: bytes=3-", &whole, true, "defdef", NULL, 0, 0},
		    {"Range: bytes=0-", &whole, false, "defdefabcdef", "", 6, 0}};
	for (size_t i = 0; i < ARRAY_LEN(gets); i++) {
		struct str text = STR_INIT;
		struct call call = request("GET", gets[i].answer);
		call.body_to = xstrdup(to);
		call.max_bytes = gets[i].most;
		if (gets[i].range)
			call_header(&call, "%s", gets[i].range);
		struct got g = carry(&call);
		assert_int_equal(g.reply.failed, gets[i].failed);
		path_read(to, 100, &text, NULL);
		assert_string_equal(str_text(&text), gets[i].file ? gets[i].file : "");
		if (gets[i].body)
			assert_string_equal(str_text(&g.reply.body), gets[i].body);
		assert_int_equal(g.reply.to_bytes, gets[i].come);
		str_free(&text);
		reply_free(&g.reply);
	}
	assert_int_equal(path_write(from, "from a file", 11, 0600, NULL), 0);
	struct call call = request("PUT", &ok);
	call.body_from = xstrdup(from);
	struct got g = carry(&call);
	assert_int_equal(g.reply.status, 200);
	assert_true(starts_with(str_text(&server.heard), "PUT "));
	assert_non_null(strstr(str_text(&server.heard), "\r\nContent-Length: 11\r\n"));
	assert_true(ends_with(str_text(&server.heard), "\r\n\r\nfrom a file"));
	reply_free(&g.reply);

	/* a part of it */
	static const struct {
		int64_t offset, bytes;
		const char *sent; /* NULL: it is not that long */
	} parts[] = {{5, 1, "a"}, {5, 0, "a file"}, {0, 4, "from"}, {7, 4, "file"},
		     {11, 0, ""}, {7, 5, NULL},     {12, 0, NULL},  {-1, 3, NULL}};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		call = request("PUT", &ok);
		call.body_from = xstrdup(from);
		call.body_from_offset = parts[i].offset;
		call.body_from_bytes = parts[i].bytes;
		g = carry(&call);
		if (g.reply.failed != !parts[i].sent ||
		    (g.reply.failed && (g.reply.err.kind != ERR_LOCAL || g.reply.was_sent)))
			fail_msg("part %zu: %s", i, g.reply.err.msg);
		if (parts[i].sent) {
			const char *body = strstr(str_text(&server.heard), "\r\n\r\n");
			assert_string_equal(body ? body + 4 : NULL, parts[i].sent);
		}
		reply_free(&g.reply);
	}

	call = request("PUT", &ok);
	call.body_from = path_join(dir, "absent");
	g = carry(&call);
	assert_int_equal(g.reply.err.kind, ERR_LOCAL);
	assert_false(g.reply.was_sent);
	reply_free(&g.reply);

	call = request("PUT", &ok);
	call.body_from = xstrdup(from);
	call.sigv4 = xstrdup("aws:amz:eu-ro-1:s3");
	call.user = xstrdup("user_key");
	call.password = xstrdup("rps_secret");
	g = carry(&call);
	assert_int_equal(g.reply.status, 200);
	const char *auth = strstr(str_text(&server.heard),
				  "\r\nAuthorization: AWS4-HMAC-SHA256 Credential=user_key/");
	assert_non_null(auth);
	assert_null(strstr(str_text(&server.heard), "rps_secret"));
	const char *sha = strcasestr(str_text(&server.heard), "\r\nx-amz-content-sha256:");
	print_message("   %.*s\n", sha ? (int)strcspn(sha + 2, "\r") : 0, sha ? sha + 2 : "");
	reply_free(&g.reply);
	assert_int_equal(path_remove_tree(dir, NULL), 0);
}

/* What is signed and not sent no server can verify. */
static void test_only_what_is_sent_is_signed(void **state)
{
	static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE"};
	static const struct answer fine = {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", WHOLE};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		struct call call = request(methods[i], &fine);
		bool put = !strcmp(methods[i], "PUT");
		call.sigv4 = xstrdup("aws:amz:eu-ro-1:s3");
		call.user = xstrdup("user_key");
		call.password = xstrdup("rps_secret");
		call_header(&call, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
		if (put) {
			call_header(&call, "Content-Type: application/octet-stream");
			str_add(&call.body, "words");
		}
		struct got g = carry(&call);
		assert_int_equal(g.reply.status, 200);
		const char *heard = str_text(&server.heard),
			   *signed_ones = strstr(heard, "SignedHeaders=");
		assert_non_null(signed_ones);
		signed_ones += strlen("SignedHeaders=");
		CLEANUP(free_text) char *list = xstrndup(signed_ones, strcspn(signed_ones, ","));
		print_message("   %s: %s\n", methods[i], list);
		assert_int_equal(!strncmp(list, "content-type;", 13), put);
		for (char *rest = list, *name; (name = strsep(&rest, ";"));) {
			CLEANUP(free_text) char *line = xasprintf("\r\n%s:", name);
			if (!strcasestr(heard, line))
				fail_msg("%s: %s is signed and not sent", methods[i], name);
		}
		reply_free(&g.reply);
	}
}

/* The timeout of a file's transfer may be an hour: one that stands still is over long before. */
static void test_files_that_stand_still(void **state)
{
	static const struct answer some = {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
					   HANG};
	char dir[] = "/tmp/burst-http-XXXXXX";
	struct str text = STR_INIT;

	(void)state;
	assert_non_null(mkdtemp(dir));
	CLEANUP(free_text) char *file = path_join(dir, "file");
	assert_int_equal(path_write(file, "to go", 5, 0600, NULL), 0);
	http_set_silence(http, 1);
	struct got got[3] = {0};
	for (int i = 0; i < 3; i++) {
		struct call call = request(i == 1 ? "PUT" : "GET", &some);
		/* of any other call its own timeout holds */
		call.timeout_ms = i == 2 ? 9000 : 3600000;
		call.body_to = i == 0 ? path_join(dir, "came") : NULL;
		call.body_from = i == 1 ? xstrdup(file) : NULL;
		http_send(http, &call, on_done, &got[i]);
		call_free(&call);
	}
	TURN_UNTIL(loop, got[0].count && got[1].count && got[2].count);
	for (int i = 0; i < 3; i++) {
		assert_true(got[i].reply.failed && got[i].reply.was_sent);
		assert_int_equal(got[i].reply.err.kind, ERR_NETWORK);
		print_message("   %s\n", got[i].reply.err.msg);
		if (i == 2)
			assert_true(got[i].reply.wall_ms >= 8900);
		reply_free(&got[i].reply);
	}
	CLEANUP(free_text) char *came = path_join(dir, "came");
	path_read(came, 100, &text, NULL);
	assert_string_equal(str_text(&text), "abc");
	str_free(&text);
	http_set_silence(http, 60);
	assert_int_equal(path_remove_tree(dir, NULL), 0);
}

/* ---- TLS ---- */

/* openssl's own little server, with a certificate of its own for 127.0.0.1. */
static pid_t start_tls(const char *dir, int *port)
{
	char command[1024];
	int fd = listen_on_loopback(port);

	close(fd);
	snprintf(command, sizeof(command),
		 "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
		 "-keyout key -out cert"
		 " -days 2 -subj /CN=t -addext subjectAltName=IP:127.0.0.1 2>/dev/null",
		 dir);
	if (system(command) != 0)
		return 0;
	pid_t pid = fork();
	if (pid == 0) {
		char where[16];
		snprintf(where, sizeof(where), "%d", *port);
		if (chdir(dir) == 0)
			execlp("openssl", "openssl", "s_server", "-accept", where, "-www", "-quiet",
			       "-key", "key", "-cert", "cert", (char *)NULL);
		_exit(127);
	}
	for (int64_t late = clock_boot_ms() + 10000; clock_boot_ms() < late; poll(NULL, 0, 10)) {
		fd = connect_to_loopback(*port);
		if (fd >= 0) {
			close(fd);
			return pid;
		}
	}
	fail_msg("openssl s_server does not listen");
	return 0;
}

static struct got carry_tls(const char *host, int port)
{
	struct call call = request("POST", &ok);

	free(call.url);
	call.url = xasprintf("https://%s:%d/", host, port);
	call.max_bytes = 1 << 20;
	return carry(&call);
}

static void test_tls_is_verified(void **state)
{
	char dir[] = "/tmp/burst-http-XXXXXX";
	int port;

	(void)state;
	assert_non_null(mkdtemp(dir));
	pid_t pid = start_tls(dir, &port);
	if (!pid) {
		path_remove_tree(dir, NULL);
		print_message("SKIPPED: no openssl program on this machine\n");
		skip();
	}
	struct got g = carry_tls("127.0.0.1", port); /* nobody vouches for it */
	print_message("   %s\n", g.reply.err.msg);
	assert_int_equal(g.reply.err.kind, ERR_UNTRUSTED);
	assert_false(g.reply.was_sent);
	reply_free(&g.reply);

	CLEANUP(free_text) char *cert = path_join(dir, "cert");
	setenv("CURL_CA_BUNDLE", cert, 1);
	g = carry_tls("localhost", port); /* it is somebody else's */
	print_message("   %s\n", g.reply.err.msg);
	assert_int_equal(g.reply.err.kind, ERR_UNTRUSTED);
	assert_false(g.reply.was_sent);
	reply_free(&g.reply);

	g = carry_tls("127.0.0.1", port);
	assert_false(g.reply.failed &&
		     !g.reply.was_sent); /* past TLS, whatever s_server thinks of a POST */
	assert_true(g.reply.was_sent);
	reply_free(&g.reply);
	unsetenv("CURL_CA_BUNDLE");
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	assert_int_equal(path_remove_tree(dir, NULL), 0);
}

/* ---- bare connections ---- */

struct line {
	int count, fd;
	struct err err;
};

static void on_connected(void *ctx, int fd, const struct err *err)
{
	struct line *l = ctx;

	l->count++;
	l->fd = fd;
	if (err)
		l->err = *err;
}

static void test_connect(void **state)
{
	struct line l = {0};
	int port, one = 0, fd = listen_on_loopback(&port);
	socklen_t len = sizeof(one);
	char c;

	(void)state;
	http_connect(http, "127.0.0.1", port, 5000, on_connected, &l);
	assert_int_equal(l.count, 0);
	TURN_UNTIL(loop, l.count);
	assert_int_equal(l.err.kind, ERR_NONE);
	int other = accept(fd, NULL, NULL);
	assert_true(fcntl(l.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(l.fd, F_GETFD) & FD_CLOEXEC);
	getsockopt(l.fd, IPPROTO_TCP, TCP_NODELAY, &one, &len);
	assert_true(one);
	getsockopt(l.fd, SOL_SOCKET, SO_KEEPALIVE, &one, &len);
	assert_true(one);
	loop_turn(loop, 0); /* libcurl's own end is closed by now, ours is not */
	assert_int_equal(send(l.fd, "x", 1, 0), 1);
	assert_int_equal(recv(other, &c, 1, 0), 1);
	close(l.fd);
	close(other);
	close(fd);

	l = (struct line){0};
	http_connect(http, "127.0.0.1", port, 5000, on_connected, &l);
	TURN_UNTIL(loop, l.count);
	assert_int_equal(l.err.kind, ERR_NETWORK);
	assert_int_equal(l.fd, -1);
	static const char *const bad[] = {"", "a b", "host/path", "user@host", "x\r\ny"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		l = (struct line){0};
		http_connect(http, bad[i], 22, 5000, on_connected, &l);
		TURN_UNTIL(loop, l.count);
		assert_int_equal(l.err.kind, ERR_CONFIG);
	}
	l = (struct line){0};
	http_connect_cancel(http_connect(http, "127.0.0.1", server.port, 5000, on_connected, &l));
	loop_turn(loop, 0);
	assert_int_equal(l.count, 0);
}

/* ---- traces ---- */

static void keep_line(void *ctx, enum log_level level, const char *line)
{
	(void)level;
	str_add(ctx, line);
	str_add(ctx, "\n");
}

static void test_trace_hides_secrets(void **state)
{
	static const struct answer answer = {
		"HTTP/1.1 200 OK\r\nSet-Cookie: s3cr3t-cookie\r\nContent-Length: 29\r\n\r\n"
		"{\"env\":{\"A\":\"s3cr3t-reply\"}}\n",
		WHOLE};
	CLEANUP(str_free) struct str lines = STR_INIT;
	struct call call = request("POST", &answer);

	(void)state;
	log_setup(LOG_TRACE, keep_line, &lines);
	log_secret("s3cr3t-known");
	call_header(&call, "Authorization: Bearer s3cr3t-auth");
	call_header(&call, "x-modal-token-id: s3cr3t-id");
	call_header(&call, "X-Plain: s3cr3t-known and visible");
	str_add(&call.body, "{\"name\":\"visible-name\",\"input\":{\"env\":[{\"key\":\"K\","
			    "\"value\":\"s3cr3t-env\"}]}}");
	struct got g = carry(&call);
	log_setup(LOG_NOTE, NULL, NULL);
	print_message("%s", str_text(&lines));
	assert_null(strstr(str_text(&lines), "s3cr3t"));
	assert_non_null(strstr(str_text(&lines), "visible-name"));
	assert_non_null(strstr(str_text(&lines), "[secret] and visible"));
	assert_non_null(strstr(str_text(&lines), "Authorization: [secret]"));
	reply_free(&g.reply);
}

static const struct {
	const char *name, *body, *shown;
} bodies[] = {
	{"nothing", "", ""},
	{"other JSON", "{\"a\":[1,2]}", "{\"a\":[1,2]}"},
	{"env as an object", "{\"x\":{\"env\":{\"A\":\"b\",\"C\":\"d\"}}}",
	 "{\"x\":{\"env\":{\"A\":\"[secret]\",\"C\":\"[secret]\"}}}"},
	{"env as a list", "{\"env\":[{\"key\":\"A\",\"value\":\"b\"}]}",
	 "{\"env\":[{\"key\":\"A\",\"value\":\"[secret]\"}]}"},
	{"env as words", "{\"env\":[\"A=b\"]}", "{\"env\":[\"[secret]\"]}"},
	{"env as text", "{\"env\":\"A=b\"}", "{\"env\":\"[secret]\"}"},
	{"no env", "{\"env\":null}", "{\"env\":null}"},
	{"a list of pods", "[{\"env\":{\"A\":\"b\"}},{\"env\":{}}]",
	 "[{\"env\":{\"A\":\"[secret]\"}},{\"env\":{}}]"},
	{"a query with env", "{\"query\":\"mutation{ env: [{key: A}] }\"}",
	 "{\"query\":\"[text that mentions env]\"}"},
	{"a password", "{\"password\":\"b\"}", "{\"password\":\"[secret]\"}"},
	{"cut JSON with env", "{\"env\":{\"A\":\"b\"", "[15 bytes]"},
	{"text", "not found", "not found"},
	{"text with controls", "a\x1b[31mb\n", "a\\x1B[31mb\\x0A"},
};

static void test_trace_bodies(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		CLEANUP(str_free) struct str shown = STR_INIT;
		http_trace_body(&shown, bodies[i].body, strlen(bodies[i].body));
		if (strcasecmp(str_text(&shown), bodies[i].shown))
			fail_msg("%s: got %s, want %s", bodies[i].name, str_text(&shown),
				 bodies[i].shown);
	}
	CLEANUP(str_free) struct str shown = STR_INIT;
	http_trace_body(&shown, "\0\1\2", 3);
	assert_string_equal(str_text(&shown), "[3 bytes]");
	CLEANUP(str_free) struct str big = STR_INIT, cut = STR_INIT;
	for (int i = 0; i < 100000; i++)
		str_addc(&big, 'x');
	http_trace_body(&cut, big.s, big.len);
	assert_true(cut.len < 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_request_as_asked),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_never_sent),
		cmocka_unit_test(test_slow_and_cancel),
		cmocka_unit_test(test_kept_connections),
		cmocka_unit_test(test_retry_after),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_only_what_is_sent_is_signed),
		cmocka_unit_test(test_files_that_stand_still),
		cmocka_unit_test(test_tls_is_verified),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_trace_hides_secrets),
		cmocka_unit_test(test_trace_bodies),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
