/* test_grpc.c - grpc.c and the caller above it against a server in Node that answers as each test
 * tells it to (grpc_server.js); and what is pure, without one. */
#include "net_test.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "base/path.h"
#include "base/section.h"
#include "engine/caller.h"
#include "net/grpc.h"
#include "providers/modal/modal.h"

static struct loop *loop;
static struct http *http;
static pid_t server_pid;
static int server_stdin = -1, plain_port, tls_port;
static bool secure; /* calls go over TLS */
static char dir[] = "/tmp/burst-grpc-XXXXXX";

/* ---- what is pure: frames ---- */

static const char abc[] = "\0\0\0\0\3abc", empty[] = "\0\0\0\0\0",
		  two[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\2de";

static const struct {
	const char *name;
	const char *bytes;
	size_t len;
	bool stream;
	size_t most;
	enum err_kind kind; /* of the frames or of the end */
	const char *want;
	size_t want_len;
	size_t messages;
} frames[] = {
	{"a message", abc, 8, false, 100, 0, "abc", 3, 1},
	{"an empty message", empty, 5, false, 100, 0, "", 0, 1},
	{"one message of a stream", abc, 8, true, 100, 0, "\0\0\0\3abc", 7, 1},
	{"three of a stream", two, 20, true, 100, 0, "\0\0\0\3abc\0\0\0\0\0\0\0\2de", 17, 3},
	{"none of a stream", "", 0, true, 100, 0, "", 0, 0},
	{"none where there is one", "", 0, false, 100, ERR_BUG, "", 0, 0},
	{"two where there is one", two, 20, false, 100, ERR_BUG, "abc", 3, 1},
	{"compressed", "\1\0\0\0\3abc", 8, false, 100, ERR_BUG, "", 0, 0},
	{"no frame", "<html>", 6, true, 100, ERR_BUG, "", 0, 0},
	{"cut in the prefix", abc, 3, false, 100, ERR_BUG, "", 0, 0},
	{"cut in the message", abc, 7, false, 100, ERR_BUG, "", 0, 0},
	{"cut in the second", two, 12, true, 100, ERR_BUG, "\0\0\0\3abc", 7, 1},
	{"as large as allowed", abc, 8, false, 3, 0, "abc", 3, 1},
	{"larger than allowed", abc, 8, false, 2, ERR_UNTRUSTED, "", 0, 0},
	{"a stream as large as allowed", two, 20, true, 17, 0, "\0\0\0\3abc\0\0\0\0\0\0\0\2de", 17,
	 3},
	{"a stream larger than allowed", two, 20, true, 16, ERR_UNTRUSTED, "\0\0\0\3abc\0\0\0\0",
	 11, 2},
	{"4 GiB", "\0\377\377\377\377abc", 8, false, GRPC_MOST_BYTES, ERR_UNTRUSTED, "", 0, 0},
	{"4 GiB after a message", "\0\0\0\0\1a\0\377\377\377\377", 11, true, GRPC_MOST_BYTES,
	 ERR_UNTRUSTED, "\0\0\0\1a", 5, 1},
};

/* In two pieces cut at `at`, or each byte alone for SIZE_MAX. */
static void check_frames(size_t i, size_t at)
{
	CLEANUP(str_free) struct str to = STR_INIT;
	struct grpc_reader r = {.stream = frames[i].stream, .most = frames[i].most, .to = &to};
	struct err err = {0};
	size_t len = frames[i].len, step = at == SIZE_MAX ? 1 : MAX(at, 1);
	int got = 0;

	for (size_t from = 0; from < len && got == 0; from += step) {
		if (from && at != SIZE_MAX)
			step = len - from;
		got = grpc_read(&r, frames[i].bytes + from, MIN(step, len - from), &err);
	}
	if (got == 0)
		got = grpc_read_end(&r, &err);
	grpc_read_drop(&r);
	if (err.kind != frames[i].kind || (got < 0) != (frames[i].kind != 0) ||
	    r.messages != frames[i].messages || to.len != frames[i].want_len ||
	    memcmp(str_text(&to), frames[i].want, to.len))
		fail_msg("%s, cut at %zd: kind %d (%s), %zu messages, %zu bytes", frames[i].name,
			 (ssize_t)at, err.kind, err.msg, r.messages, to.len);
}

static void test_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		for (size_t at = 0; at <= frames[i].len; at++)
			check_frames(i, at);
		check_frames(i, SIZE_MAX);
	}
	CLEANUP(str_free) struct str out = STR_INIT;
	grpc_add_frame(&out, "abc", 3);
	grpc_add_frame(&out, NULL, 0);
	assert_int_equal(out.len, 13);
	assert_memory_equal(out.s, "\0\0\0\0\3abc\0\0\0\0\0", 13);
}

/* ---- what is pure: the status ---- */

static const struct {
	const char *name, *head;
	bool have;
	int code;
	const char *words;
	const char *details;
} statuses[] = {
	{"none", "HTTP/2 200\r\ncontent-type: application/grpc", false, 0, "", ""},
	{"OK", "HTTP/2 200\r\ngrpc-status: 0", true, 0, "", ""},
	{"words", "HTTP/2 200\r\ngrpc-status: 5\r\ngrpc-message: no%20such%20app%3a \"b\"", true, 5,
	 "no such app: \"b\"", ""},
	{"the trailers have the last word", "HTTP/2 200\r\ngrpc-status: 0\r\ngrpc-status: 13", true,
	 13, "", ""},
	{"UTF-8", "HTTP/2 200\r\ngrpc-status: 2\r\ngrpc-message: Z%C3%BCrich", true, 2,
	 "Z\xc3\xbcrich", ""},
	{"percent signs that are none",
	 "HTTP/2 200\r\ngrpc-status: 2\r\ngrpc-message: 50% of %zz %4", true, 2, "50% of %zz %4",
	 ""},
	{"a terminal is not driven",
	 "HTTP/2 200\r\ngrpc-status: 2\r\ngrpc-message: a%1b[2J%0ab%00c%ff", true, 2,
	 "a\\x1b[2J\\x0ab c\\xff", ""},
	{"no number", "HTTP/2 200\r\ngrpc-status: five", true, 2, "", ""},
	{"a negative one", "HTTP/2 200\r\ngrpc-status: -1", true, 2, "", ""},
	{"a giant", "HTTP/2 200\r\ngrpc-status: 99999999999999999999999", true, 2, "", ""},
	{"nobody's code", "HTTP/2 200\r\ngrpc-status: 17", true, 2, "", ""},
	{"an empty one", "HTTP/2 200\r\ngrpc-status:", true, 2, "", ""},
	{"details", "HTTP/2 200\r\ngrpc-status: 8\r\ngrpc-status-details-bin: YWJjZA==", true, 8,
	 "", "abcd"},
	{"details without padding",
	 "HTTP/2 200\r\ngrpc-status: 8\r\ngrpc-status-details-bin: YWJjZA", true, 8, "", "abcd"},
	{"details that are none", "HTTP/2 200\r\ngrpc-status: 8\r\ngrpc-status-details-bin: \xff!",
	 true, 8, "", ""},
};

static void test_statuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		CLEANUP(str_free) struct str words = STR_INIT;
		CLEANUP(str_free) struct str details = STR_INIT;
		struct reply r = {0};
		int code = 0;
		str_add(&r.head, statuses[i].head);
		bool have = grpc_read_status(&r, &code, &words, &details);
		if (have != statuses[i].have || code != statuses[i].code ||
		    strcmp(str_text(&words), statuses[i].words) ||
		    strcmp(str_text(&details), statuses[i].details))
			fail_msg("%s: %d, %d, \"%s\", \"%s\"", statuses[i].name, have, code,
				 str_text(&words), str_text(&details));
		reply_free(&r);
	}
	/* however long, it is cut, and not within a character */
	CLEANUP(str_free) struct str words = STR_INIT;
	CLEANUP(str_free) struct str details = STR_INIT;
	struct reply r = {0};
	int code;
	str_add(&r.head, "HTTP/2 200\r\ngrpc-status: 3\r\ngrpc-message: xx");
	for (int i = 0; i < 20000; i++)
		str_add(&r.head, "%E2%82%AC");
	assert_true(grpc_read_status(&r, &code, &words, &details));
	assert_true(words.len > 200 && words.len <= 300);
	assert_true(utf8_valid(words.s, words.len));
	assert_null(strstr(words.s, "\\x"));
	reply_free(&r);
}

static void test_kinds(void **state)
{
	(void)state;
	assert_int_equal(grpc_err_kind(GRPC_OK), ERR_NONE);
	for (int code = 1; code <= 16; code++)
		assert_true(grpc_err_kind(code) != ERR_NONE && grpc_code_name(code)[0]);
	assert_int_equal(grpc_err_kind(GRPC_UNAUTHENTICATED), ERR_CREDENTIALS);
	assert_int_equal(grpc_err_kind(GRPC_RESOURCE_EXHAUSTED), ERR_RATE_LIMITED);
	assert_int_equal(grpc_err_kind(GRPC_NOT_FOUND), ERR_NOT_FOUND);
	assert_int_equal(grpc_err_kind(GRPC_INVALID_ARGUMENT), ERR_REFUSED);
	assert_int_equal(grpc_err_kind(GRPC_UNAVAILABLE), ERR_TRANSIENT);
	assert_int_equal(grpc_err_kind(-7), ERR_TRANSIENT);
	assert_string_equal(grpc_code_name(99), "UNKNOWN");
	static const int table[][2] = {{400, GRPC_INTERNAL},          {401, GRPC_UNAUTHENTICATED},
				       {403, GRPC_PERMISSION_DENIED}, {404, GRPC_UNIMPLEMENTED},
				       {429, GRPC_UNAVAILABLE},       {502, GRPC_UNAVAILABLE},
				       {503, GRPC_UNAVAILABLE},       {504, GRPC_UNAVAILABLE},
				       {500, GRPC_UNKNOWN},           {302, GRPC_UNKNOWN}};
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(grpc_code_of_http(table[i][0]), table[i][1]);
}

/* ---- what is pure: details ---- */

static void add_bytes(struct str *to, int field, const void *bytes, size_t len)
{
	str_addc(to, (char)(field << 3 | 2));
	assert_true(len < 128);
	str_addc(to, (char)len);
	str_addn(to, bytes, len);
}

/* A status as the server's own library writes it: code, words, one Any. */
static void add_status(struct str *to, const char *url, float seconds)
{
	CLEANUP(str_free) struct str policy = STR_INIT;
	CLEANUP(str_free) struct str any = STR_INIT;

	str_addc(&policy, 1 << 3 | 5);
	str_addn(&policy, &seconds, 4); /* little-endian, as all we build on */
	add_bytes(&any, 1, url, strlen(url));
	add_bytes(&any, 2, policy.s, policy.len);
	str_addn(to, "\x08\x08", 2);
	add_bytes(to, 2, "slow", 4);
	add_bytes(to, 3, any.s, any.len);
}

static const char policy_url[] = "type.modal.com/modal.client.RPCRetryPolicy";

static const struct {
	const char *name, *url;
	float seconds;
	int64_t want_ms; /* -1: no policy */
} policies[] = {
	{"half a second", policy_url, 0.5f, 500},
	{"another prefix", "type.googleapis.com/modal.client.RPCRetryPolicy", 2, 2000},
	{"at once is soon", policy_url, 0, 100},
	{"less than nothing", policy_url, -3, 100},
	{"for ever is a day", policy_url, 1e30f, 86400000},
	{"infinity is a day", policy_url, INFINITY, 86400000},
	{"not a number", policy_url, NAN, -1},
	{"something else", "type.modal.com/modal.client.RPCRetryPolicies", 1, -1},
	{"something that ends so", "type.modal.com/modal.client.NoRPCRetryPolicy", 1, -1},
	{"no type", "", 1, -1},
};

static void test_policies(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		CLEANUP(str_free) struct str details = STR_INIT;
		int64_t ms = -1;
		add_status(&details, policies[i].url, policies[i].seconds);
		bool have = grpc_read_retry_policy(details.s, details.len, &ms);
		if (have != (policies[i].want_ms >= 0) || (have && ms != policies[i].want_ms))
			fail_msg("%s: %d, %lld ms", policies[i].name, have, (long long)ms);
		/* cut anywhere: nothing is read beyond it */
		for (size_t len = 0; len < details.len; len++) {
			CLEANUP(free_text) char *exact = xmalloc(len + 1);
			memcpy(exact, details.s, len);
			char *part = xrealloc(TAKE(exact), MAX(len, 1));
			assert_false(grpc_read_retry_policy(part, len, &ms));
			free(part);
		}
	}
	int64_t ms;
	/* a length beyond all */
	assert_false(grpc_read_retry_policy("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, &ms));
	/* groups are not spoken */
	assert_false(grpc_read_retry_policy("\x1b\x1c", 2, &ms));
	assert_false(grpc_read_retry_policy(NULL, 0, &ms));
}

/* ---- the server ---- */

static void start_server(void)
{
	int in[2], out[2];
	char line[32] = "";

	CLEANUP(free_text) char *key = path_join(dir, "key");
	CLEANUP(free_text) char *cert = path_join(dir, "cert");
	CLEANUP(free_text)
	char *command = xasprintf("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
				  "-nodes -keyout %s -out %s -days 2 "
				  "-subj /CN=t -addext subjectAltName=IP:127.0.0.1 2>/dev/null",
				  key, cert);
	bool has_tls = system(command) == 0;
	setenv("CURL_CA_BUNDLE", cert, 1);
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	server_pid = fork();
	if (server_pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execlp("node", "node", "tests/unit/grpc_server.js", has_tls ? key : NULL, cert,
		       (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	server_stdin = in[1];
	fcntl(server_stdin, F_SETFD, FD_CLOEXEC);
	for (size_t at = 0;
	     at < sizeof(line) - 1 && read(out[0], line + at, 1) == 1 && line[at] != '\n'; at++)
		;
	close(out[0]);
	sscanf(line, "%d %d", &plain_port, &tls_port);
}

static int set_up(void **state)
{
	(void)state;
	unsetenv("http_proxy");
	loop = loop_new();
	assert_int_equal(http_ready(NULL), 0);
	http = http_new(loop, "burst-test/1");
	assert_non_null(mkdtemp(dir));
	start_server();
	return 0;
}

static int over_tls(void **state)
{
	(void)state;
	secure = true;
	return 0;
}

static int in_the_clear(void **state)
{
	(void)state;
	secure = false;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	http_free(http);
	loop_free(loop);
	if (server_stdin >= 0)
		close(server_stdin);
	if (server_pid)
		waitpid(server_pid, NULL, 0);
	return path_remove_tree(dir, NULL);
}

/* Without Node there is nobody to talk to. */
#define NEED_SERVER()                                                                              \
	do {                                                                                       \
		if (secure ? !tls_port : !plain_port) {                                            \
			print_message("   skipped: node or openssl does not run here\n");          \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

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

static struct call asking(const char *method, const char *message)
{
	struct call call = {.kind = CALL_GRPC,
			    .timeout_ms = 30000,
			    .url = xasprintf("%s://127.0.0.1:%d/t.Test/%s",
					     secure ? "https" : "http",
					     secure ? tls_port : plain_port, method)};

	str_add(&call.body, message);
	return call;
}

static struct got carry(struct call *call)
{
	struct grpc_tries tries = {0};
	struct got g = {0};

	grpc_send(loop, http, call, &tries, on_done, &g);
	assert_int_equal(g.count, 0);
	call_free(call);
	TURN_UNTIL(loop, g.count);
	assert_int_equal(g.count, 1);
	return g;
}

/* What the server heard since it was last asked. */
static json_t *heard(void)
{
	struct call call = asking("Heard", "");
	struct err err;

	call.may_repeat = true;
	struct got g = carry(&call);
	assert_false(g.reply.failed);
	json_t *said = jsonx_parse(g.reply.body.s, g.reply.body.len, &err);
	assert_non_null(said);
	reply_free(&g.reply);
	return said;
}

static const char *header_of(const json_t *said, size_t request, const char *name)
{
	return jsonx_text(
		json_object_get(json_array_get(json_object_get(said, "requests"), request),
				"headers"),
		name, "");
}

static size_t requests_in(const json_t *said)
{
	return json_array_size(json_object_get(said, "requests"));
}

#define ABC   "0000000003616263"
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

static char *script(const char *answers)
{
	return xasprintf("{\"answers\":[%s]}", answers);
}

static void test_answers(void **state)
{
	(void)state;
	NEED_SERVER();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(free_text) char *text = script(cases[i].answer);
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

/* ---- frames of HTTP/2 as no server's library would write them ---- */

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

/* ---- sizes ---- */

static void test_large(void **state)
{
	(void)state;
	NEED_SERVER();
	CLEANUP(free_text) char *text = script("{\"zeros\":9000000}");
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

/* ---- time ---- */

static void test_deadline(void **state)
{
	(void)state;
	NEED_SERVER();
	int64_t since = clock_boot_ms();
	CLEANUP(free_text) char *text = script("{\"end\":\"hang\"}");
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
		CLEANUP(free_text) char *text = script(hung[i].answer);
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
	char *text = script("{\"pieces\":[\"" ABC "\"],\"trailers\":{\"grpc-status\":\"5\"}}");
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
	CLEANUP(free_text) char *text = script("{\"end\":\"hang\"}");
	struct grpc_tries tries = {0};
	struct got never = {0};
	struct call call = asking("Say", text);
	call.stream = true;
	call.stream_limit_ms = 50;
	struct grpc_call *c = grpc_send(loop, http, &call, &tries, on_done, &never);
	loop_turn(loop, 10);
	grpc_cancel(c);
	grpc_cancel(NULL);
	call_free(&call);
	for (int64_t until = clock_boot_ms() + 100; clock_boot_ms() < until;)
		loop_turn(loop, 10);
	assert_int_equal(never.count, 0);
}

/* ---- one connection ---- */

/* As in a new process: with no connection, and none that let us wait in vain. */
static void begin_anew(void)
{
	http_free(http);
	http = http_new(loop, "burst-test/1");
}

static void test_one_connection(void **state)
{
	(void)state;
	NEED_SERVER();
	begin_anew();
	struct loop *own_loop = loop_new();
	struct http *own = http_new(own_loop, "burst-test/2");
	struct grpc_tries tries[8] = {0};
	struct grpc_call *hanging = NULL;
	struct got got[8] = {0};
	json_t *said = heard();
	int before = (int)jsonx_int(said, "connections", 0);
	json_decref(said);

	/* at once, before there is a connection; some may be repeated, some not; the last hangs
	 * meanwhile */
	for (int i = 0; i < 8; i++) {
		CLEANUP(free_text)
		char *text = script(i == 7 ? "{\"end\":\"hang\"}" : "{\"pieces\":[\"" ABC "\"]}");
		struct call call = asking("Say", text);
		call.may_repeat = i % 2;
		struct grpc_call *sent =
			grpc_send(own_loop, own, &call, &tries[i], on_done, &got[i]);
		hanging = i == 7 ? sent : NULL;
		call_free(&call);
	}
	for (int i = 0; i < 7; i++) {
		TURN_UNTIL(own_loop, got[i].count);
		assert_int_equal(got[i].reply.err.kind, ERR_NONE);
		reply_free(&got[i].reply);
	}
	assert_int_equal(got[7].count, 0);
	for (int i = 0; i < 3; i++) { /* and one after the other */
		struct call call = asking("Echo", "x");
		struct grpc_tries t = {0};
		struct got g = {0};
		grpc_send(own_loop, own, &call, &t, on_done, &g);
		call_free(&call);
		TURN_UNTIL(own_loop, g.count);
		assert_int_equal(g.reply.err.kind, ERR_NONE);
		reply_free(&g.reply);
	}
	said = heard();
	assert_int_equal(jsonx_int(said, "connections", 0), before + 1);
	json_decref(said);
	grpc_cancel(hanging);
	http_free(own);
	loop_free(own_loop);
	assert_int_equal(got[7].count, 0);
}

/* A call that nobody answers in time: its connection may lead nowhere any more. */
static void test_no_more_of_a_connection_without_answers(void **state)
{
	int64_t before = 0;

	(void)state;
	NEED_SERVER();
	begin_anew();
	for (int i = 0; i < 4; i++) {
		CLEANUP(json_decref) json_t *said = heard();
		int64_t now = jsonx_int(said, "connections", 0);
		if (i)
			assert_int_equal(now, before + (i > 1));
		before = now;
		if (i != 1)
			continue;
		CLEANUP(free_text) char *text = script("{\"end\":\"hang\"}");
		struct call call = asking("Say", text);
		call.timeout_ms = 300;
		struct got g = carry(&call);
		assert_int_equal(g.reply.grpc_status, GRPC_DEADLINE_EXCEEDED);
		reply_free(&g.reply);
	}
	begin_anew();
}

/* What is sent once is heard once, though it went over a kept connection that broke before an
 * answer: whether it is sent again, and as which try of the call, is said by us. */
static void test_never_twice(void **state)
{
	(void)state;
	NEED_SERVER();
	begin_anew();
	for (int i = 0; i < 4; i++) {
		struct call call = asking("Echo", "x");
		call.may_repeat = true;
		struct got g = carry(&call); /* the connection is there and kept */
		assert_int_equal(g.reply.err.kind, ERR_NONE);
		reply_free(&g.reply);
		json_decref(heard());
		CLEANUP(free_text)
		char *answers = xasprintf("{\"end\":\"%s\"},{\"pieces\":[\"" ABC "\"]}",
					  i & 2 ? "dead" : "cut");
		CLEANUP(free_text) char *text = script(answers);
		call = asking("Say", text);
		call.may_repeat = i & 1;
		g = carry(&call);
		CLEANUP(json_decref) json_t *said = heard();
		assert_true(g.reply.failed && g.reply.was_sent);
		assert_int_equal(requests_in(said), 1);
		reply_free(&g.reply);
	}
}

/* ---- tried again ---- */

static void test_again(void **state)
{
	(void)state;
	struct call call = {.may_repeat = true};
	struct grpc_tries t = {0};
	static const int passing[] = {GRPC_CANCELLED, GRPC_UNKNOWN, GRPC_DEADLINE_EXCEEDED,
				      GRPC_INTERNAL, GRPC_UNAVAILABLE};

	for (int code = 0; code <= 16; code++) {
		struct reply r = {.grpc_status = code};
		bool passes = false;
		for (size_t i = 0; i < ARRAY_LEN(passing); i++)
			passes |= passing[i] == code;
		t = (struct grpc_tries){0};
		assert_int_equal(grpc_again_ms(&t, &call, &r) >= 0, passes);
		assert_int_equal(t.again, passes);
		call.may_repeat = false;
		assert_int_equal(grpc_again_ms(&t, &call, &r), -1);
		call.once_by_name = true;
		assert_int_equal(grpc_again_ms(&t, &call, &r) >= 0, code == GRPC_UNAVAILABLE);
		call.once_by_name = false;
		call.may_repeat = true;
		call.stream = true;
		assert_int_equal(grpc_again_ms(&t, &call, &r), -1);
		call.stream = false;
	}
	t = (struct grpc_tries){0};
	struct reply lost = {
		.failed = true, .err = {.kind = ERR_NETWORK}, .grpc_status = GRPC_UNAVAILABLE};
	for (int64_t wait = 100; wait <= 400; wait *= 2) {
		int64_t got = grpc_again_ms(&t, &call, &lost);
		assert_true(got >= wait && got < 2 * wait);
	}
	assert_int_equal(grpc_again_ms(&t, &call, &lost), -1);
	t = (struct grpc_tries){0};
	struct reply broken = {
		.failed = true, .err = {.kind = ERR_BUG}, .grpc_status = GRPC_INTERNAL};
	assert_int_equal(grpc_again_ms(&t, &call, &broken), -1);

	/* put off by the server: not counted as tries, and not for ever */
	struct reply busy = {.grpc_status = GRPC_RESOURCE_EXHAUSTED};
	add_status(&busy.details, policy_url, 25);
	t = (struct grpc_tries){0};
	assert_int_equal(grpc_again_ms(&t, &call, &busy), 25000);
	assert_int_equal(grpc_again_ms(&t, &call, &busy), 25000);
	/* that would be more than a minute */
	assert_int_equal(grpc_again_ms(&t, &call, &busy), -1);
	assert_int_equal(t.put_off, 2);
	assert_int_equal(t.again, 0);
	t = (struct grpc_tries){0};
	call.put_off_ms = -1;
	assert_int_equal(grpc_again_ms(&t, &call, &busy), -1);
	call.put_off_ms = 26000;
	assert_int_equal(grpc_again_ms(&t, &call, &busy), 25000);
	assert_int_equal(grpc_again_ms(&t, &call, &busy), -1);
	t = (struct grpc_tries){0};
	/* refused before anything was done: it may come again; anything else is for others to judge
	 */
	call.may_repeat = false;
	assert_int_equal(grpc_again_ms(&t, &call, &busy), 25000);
	busy.grpc_status = GRPC_UNAVAILABLE;
	assert_int_equal(grpc_again_ms(&t, &call, &busy), -1);
	reply_free(&busy);
}

/* ---- the caller: a vendor whose every operation is one call ---- */

struct provider {
	const char *method, *message;
	bool may_repeat, stream;
	int64_t put_off_ms;
	struct reply last; /* what came back in the end */
};
struct op {
	struct provider *p;
};

static struct op *begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	(void)kind, (void)want;
	op->p = p;
	return op;
}

static enum op_next next(struct op *op, const struct reply *reply, struct call *call,
			 int64_t *wait_ms, struct op_result *result, struct err *err)
{
	struct provider *p = op->p;

	(void)wait_ms, (void)result;
	if (!reply) {
		*call = asking(p->method, p->message);
		call->may_repeat = p->may_repeat;
		call->stream = p->stream;
		call->put_off_ms = p->put_off_ms;
		call_header(call, "x-modal-token-secret: as-verysecret");
		return OP_CALL;
	}
	p->last = (struct reply){.failed = reply->failed,
				 .was_sent = reply->was_sent,
				 .grpc_status = reply->grpc_status,
				 .retry_after_ms = reply->retry_after_ms};
	if (!reply->failed && reply->grpc_status == GRPC_OK)
		return OP_DONE;
	*err = reply->err;
	return OP_FAILED;
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

static int ask(struct provider *p, struct err *err)
{
	struct op_result result = {0};
	int got = caller_ask(&(struct engine_provider){&cloudy, p, NULL}, OP_LIST, NULL,
			     PATIENCE_MS, &result, err);

	op_result_free(&result);
	return got;
}

/* All requests of one call bear the same key, which no other call had. */
static void check_key(const json_t *said, const char *name)
{
	static char before[40];
	const char *key = header_of(said, 0, "x-idempotency-key");

	if (strlen(key) != 36 || !strcmp(key, before))
		fail_msg("%s: key \"%s\"", name, key);
	COPY_TEXT(before, key);
	for (size_t i = 1; i < requests_in(said); i++)
		if (strcmp(key, header_of(said, i, "x-idempotency-key")))
			fail_msg("%s: request %zu has another key", name, i);
}

#define UNAVAILABLE "{\"end\":\"only\",\"trailers\":{\"grpc-status\":\"14\"}}"
#define FINE        "{\"pieces\":[\"" ABC "\"]}"

static const struct {
	const char *name;
	const char *answers;
	bool may_repeat, stream;
	size_t requests;
	enum err_kind kind;
} retried[] = {
	{"UNAVAILABLE once", UNAVAILABLE "," FINE, true, false, 2, 0},
	{"UNAVAILABLE for ever", UNAVAILABLE, true, false, 4, ERR_TRANSIENT},
	{"never twice", UNAVAILABLE "," FINE, false, false, 1, ERR_TRANSIENT},
	{"a stream", UNAVAILABLE "," FINE, true, true, 1, ERR_TRANSIENT},
	{"INTERNAL", "{\"end\":\"only\",\"trailers\":{\"grpc-status\":\"13\"}}," FINE, true, false,
	 2, 0},
	{"reset", "{\"end\":\"reset\",\"code\":8}," FINE, true, false, 2, 0},
	{"reset, never twice", "{\"end\":\"reset\",\"code\":8}," FINE, false, false, 1,
	 ERR_NETWORK},
	{"a proxy's 502", "{\"status\":502,\"type\":\"text/html\",\"end\":\"none\"}," FINE, true,
	 false, 2, 0},
	{"NOT_FOUND", "{\"end\":\"only\",\"trailers\":{\"grpc-status\":\"5\"}}," FINE, true, false,
	 1, ERR_NOT_FOUND},
	{"too many, nobody says when to come again",
	 "{\"end\":\"only\",\"trailers\":{\"grpc-status\":\"8\"}}," FINE, true, false, 1,
	 ERR_RATE_LIMITED},
};

static void test_retried(void **state)
{
	(void)state;
	NEED_SERVER();
	for (size_t i = 0; i < ARRAY_LEN(retried); i++) {
		CLEANUP(free_text) char *text = script(retried[i].answers);
		struct provider p = {.method = "Say",
				     .message = text,
				     .may_repeat = retried[i].may_repeat,
				     .stream = retried[i].stream};
		struct err err = {0};
		ask(&p, &err);
		CLEANUP(json_decref) json_t *said = heard();
		if (err.kind != retried[i].kind || requests_in(said) != retried[i].requests)
			fail_msg("%s: %zu requests, %d %s", retried[i].name, requests_in(said),
				 err.kind, err.msg);
		if (retried[i].stream)
			continue;
		check_key(said, retried[i].name);
		for (size_t r = 0; r < requests_in(said); r++) {
			double late = atof(header_of(said, r, "x-retry-delay"));
			assert_int_equal(atoi(header_of(said, r, "x-retry-attempt")), r);
			assert_string_equal(header_of(said, r, "x-throttle-retry-attempt"), "0");
			assert_string_equal(header_of(said, r, "x-throttle-retry-delay"), "");
			assert_true(r ? late >= 0.1 && late < 60
				      : !header_of(said, r, "x-retry-delay")[0]);
		}
	}
}

/* A refusal that says when to come again. */
static char *put_off(float seconds, const char *then)
{
	CLEANUP(str_free) struct str details = STR_INIT;
	CLEANUP(str_free) struct str text = STR_INIT;

	add_status(&details, policy_url, seconds);
	base64_add(&text, details.s, details.len);
	/* as gRPC's libraries write it */
	for (const char *pad; (pad = strchr(str_text(&text), '='));) {
		text.len = (size_t)(pad - text.s);
		text.s[text.len] = '\0';
	}
	return xasprintf("{\"answers\":[{\"end\":\"only\",\"trailers\":{\"grpc-status\":\"8\","
			 "\"grpc-message\":\"rate\",\"grpc-status-details-bin\":\"%s\"}}%s]}",
			 str_text(&text), then);
}

static void test_put_off(void **state)
{
	(void)state;
	NEED_SERVER();
	struct err err = {0};
	int64_t since = clock_boot_ms();
	CLEANUP(free_text) char *once = put_off(0.3f, "," UNAVAILABLE "," FINE);
	struct provider p = {.method = "Say", .message = once, .may_repeat = true};
	assert_int_equal(ask(&p, &err), 0);
	assert_true(clock_boot_ms() - since >= 400);
	CLEANUP(json_decref) json_t *said = heard();
	assert_int_equal(requests_in(said), 3);
	check_key(said, "put off once");
	assert_string_equal(header_of(said, 1, "x-throttle-retry-attempt"), "1");
	assert_string_equal(header_of(said, 1, "x-retry-attempt"), "0");
	assert_true(atof(header_of(said, 1, "x-throttle-retry-delay")) >= 0.3);
	assert_string_equal(header_of(said, 1, "x-retry-delay"), "");
	assert_string_equal(header_of(said, 2, "x-throttle-retry-attempt"), "1");
	assert_string_equal(header_of(said, 2, "x-retry-attempt"), "1");
	assert_true(atof(header_of(said, 2, "x-retry-delay")) >= 0.4);

	/* for ever: until the cap, then it says how long */
	CLEANUP(free_text) char *always = put_off(0.1f, "");
	p = (struct provider){.method = "Say", .message = always, .put_off_ms = 350};
	assert_int_equal(ask(&p, &err), -1);
	assert_int_equal(err.kind, ERR_RATE_LIMITED);
	assert_int_equal(err.retry_after_ms, 100);
	assert_int_equal(p.last.retry_after_ms, 100);
	assert_non_null(strstr(err.msg, "RESOURCE_EXHAUSTED: rate"));
	CLEANUP(json_decref) json_t *more = heard();
	assert_int_equal(requests_in(more), 4);
	check_key(more, "put off for ever");
}

/* ---- a vendor that speaks it ---- */

/* The token first, then the call that bears it, both over one engine; what comes back is
 * understood. */
static void test_modal(void **state)
{
	(void)state;
	NEED_SERVER();
	CLEANUP(section_free) struct section *conf = section_new(provider_modal.options, "t");
	CLEANUP(free_text)
	char *root = xasprintf("%s://127.0.0.1:%d", secure ? "https" : "http",
			       secure ? tls_port : plain_port);
	struct provider *modal = NULL;
	struct op_result result = {0};
	struct op_want want = {.id = "sb-1"};
	struct err err = {0};

	section_set_text(conf, "token_id", "ak-one", "t");
	section_set_text(conf, "token_secret", "as-two", "t");
	section_set_text(conf, "server_url", root, "t");
	assert_int_equal(provider_modal.open(&modal, conf, "/", &err), 0);
	struct engine_provider ep = {&provider_modal, modal, NULL};
	/* token "tok"; a sandbox that was terminated; a task; a page of no rows */
	struct call can =
		asking("Can", "{\"AuthTokenGet\":\"0a03746f6b\",\"SandboxTerminate\":\"\","
			      "\"SandboxWait\":\"0a020803\",\"AppGetOrCreate\":\"0a0461702d31\","
			      "\"SandboxListV2\":\"\",\"SandboxList\":\"\"}");
	struct got g = carry(&can);
	reply_free(&g.reply);
	json_decref(heard());
	assert_int_equal(caller_ask(&ep, OP_RELEASE, &want, PATIENCE_MS, &result, &err), 0);
	op_result_free(&result);
	assert_int_equal(caller_ask(&ep, OP_INSPECT, &want, PATIENCE_MS, &result, &err), 0);
	assert_int_equal(result.pod_count, 1);
	assert_int_equal(result.pods[0].state, POD_STATE_GONE);
	assert_string_equal(result.pods[0].detail, "it was terminated");
	op_result_free(&result);
	assert_int_equal(caller_ask(&ep, OP_LIST, NULL, PATIENCE_MS, &result, &err), 0);
	assert_int_equal(result.pod_count, 0);
	op_result_free(&result);
	assert_int_equal(caller_ask(&ep, OP_BILLING, &want, PATIENCE_MS, &result, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_string_equal(
		err.msg, "asking what a sandbox used: SandboxGetTaskId: UNIMPLEMENTED: not canned");
	provider_modal.close(modal);
	static const char *const asked[] = {"AuthTokenGet",    "SandboxTerminate", "SandboxWait",
					    "AppGetOrCreate",  "SandboxListV2",    "SandboxList",
					    "SandboxGetTaskId"};
	CLEANUP(json_decref) json_t *said = heard();
	for (size_t i = 0; requests_in(said) != ARRAY_LEN(asked) && i < requests_in(said); i++)
		print_message("asked: %s\n", header_of(said, i, ":path"));
	assert_int_equal(requests_in(said), ARRAY_LEN(asked));
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		assert_string_equal(strrchr(header_of(said, i, ":path"), '/') + 1, asked[i]);
		assert_string_equal(header_of(said, i, "x-modal-token-id"), "ak-one");
		assert_string_equal(header_of(said, i, "x-modal-auth-token"), i ? "tok" : "");
		assert_string_equal(header_of(said, i, "x-modal-host"), "127.0.0.1");
		assert_true(jsonx_bool(json_array_get(json_object_get(said, "requests"), i),
				       "framed", false));
	}
}

/* ---- what --trace shows ---- */

static void collect(void *ctx, enum log_level level, const char *line)
{
	(void)level;
	str_addf(ctx, "%s\n", line);
}

static void test_trace(void **state)
{
	(void)state;
	NEED_SERVER();
	CLEANUP(str_free) struct str shown = STR_INIT;
	struct err err = {0};
	struct provider p = {
		.method = "Echo", .message = "MESSAGE-AS-verysecret", .may_repeat = true};
	log_setup(LOG_TRACE, collect, &shown);
	log_secret("ak-known1");
	int got = ask(&p, &err);
	CLEANUP(free_text)
	char *text = script("{\"end\":\"only\",\"trailers\":{\"grpc-status\":\"3\",\"grpc-"
			    "message\":\"not ak-known1\"}}");
	p = (struct provider){.method = "Say", .message = text};
	ask(&p, &err);
	CLEANUP(free_text)
	char *page = script("{\"status\":503,\"type\":\"text/"
			    "plain\",\"pieces\":[\"73746f726d\"],\"end\":\"none\"}");
	p = (struct provider){.method = "Say", .message = page};
	ask(&p, &(struct err){0});
	log_setup(LOG_ERROR, NULL, NULL);
	assert_int_equal(got, 0);
	const char *s = str_text(&shown);
	print_message("%s", s);
	assert_null(strstr(s, "verysecret"));
	assert_null(strstr(s, "MESSAGE"));
	assert_null(strstr(s, "ak-known1"));
	assert_null(strstr(err.msg, "ak-known1"));
	static const char *const lines[] = {"> POST http://127.0.0.1:",
					    "> x-modal-token-secret: [secret]\n",
					    "> x-idempotency-key: ",
					    "> [26 bytes]\n",
					    "< grpc-status: 0\n",
					    "< Echo: OK, [1 message, 21 bytes]\n",
					    "< grpc-message: not [secret]\n",
					    "< Say: INVALID_ARGUMENT, [0 messages, 0 bytes]\n",
					    "< storm\n"};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (!strstr(s, lines[i]))
			fail_msg("the trace lacks \"%s\"", lines[i]);
}

int main(void)
{
#define BOTH(test)                                                                                 \
	cmocka_unit_test(test),                                                                    \
	{                                                                                          \
#test " over TLS", test, over_tls, in_the_clear, NULL                              \
	}
#define TLS_ONLY(test)                                                                             \
	{                                                                                          \
#test " over TLS", test, over_tls, in_the_clear, NULL                              \
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_again),
		BOTH(test_answers),
		BOTH(test_request),
		cmocka_unit_test(test_raw),
		BOTH(test_large),
		BOTH(test_deadline),
		BOTH(test_stream_limit),
		BOTH(test_cancel),
		TLS_ONLY(test_one_connection),
		TLS_ONLY(test_no_more_of_a_connection_without_answers),
		BOTH(test_never_twice),
		BOTH(test_retried),
		BOTH(test_put_off),
		BOTH(test_modal),
		cmocka_unit_test(test_trace),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
