/* test_http_wire.c - TLS, bare connections, and traces without secrets. */
#include "net_test.h"

#include <sys/wait.h>

#include "base/err.h"
#include "base/path.h"
#include "http_bed.h"
#include "net/http.h"
#include "scratch.h"

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
	struct call call = call_for("POST", &answer_ok);

	free(call.url);
	call.url = xasprintf("https://%s:%d/", host, port);
	call.max_bytes = 1 << 20;
	return make_call(&call);
}

static void test_tls_is_verified(void **state)
{
	char *dir = new_folder();
	int port;

	(void)state;
	pid_t pid = start_tls(dir, &port);
	if (!pid) {
		remove_folder(dir);
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
	assert_int_equal(remove_folder(dir), 0);
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
	TURN_UNTIL(http_loop, l.count);
	assert_int_equal(l.err.kind, ERR_NONE);
	int other = accept(fd, NULL, NULL);
	assert_true(fcntl(l.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(l.fd, F_GETFD) & FD_CLOEXEC);
	getsockopt(l.fd, IPPROTO_TCP, TCP_NODELAY, &one, &len);
	assert_true(one);
	getsockopt(l.fd, SOL_SOCKET, SO_KEEPALIVE, &one, &len);
	assert_true(one);
	loop_turn(http_loop, 0); /* libcurl's own end is closed by now, ours is not */
	assert_int_equal(send(l.fd, "x", 1, 0), 1);
	assert_int_equal(recv(other, &c, 1, 0), 1);
	close(l.fd);
	close(other);
	close(fd);

	l = (struct line){0};
	http_connect(http, "127.0.0.1", port, 5000, on_connected, &l);
	TURN_UNTIL(http_loop, l.count);
	assert_int_equal(l.err.kind, ERR_NETWORK);
	assert_int_equal(l.fd, -1);
	static const char *const bad[] = {"", "a b", "host/path", "user@host", "x\r\ny"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		l = (struct line){0};
		http_connect(http, bad[i], 22, 5000, on_connected, &l);
		TURN_UNTIL(http_loop, l.count);
		assert_int_equal(l.err.kind, ERR_CONFIG);
	}
	l = (struct line){0};
	http_connect_cancel(
		http_connect(http, "127.0.0.1", http_server.port, 5000, on_connected, &l));
	loop_turn(http_loop, 0);
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
	struct call call = call_for("POST", &answer);

	(void)state;
	log_setup(LOG_TRACE, keep_line, &lines);
	log_secret("s3cr3t-known");
	call_header(&call, "Authorization: Bearer s3cr3t-auth");
	call_header(&call, "x-modal-token-id: s3cr3t-id");
	call_header(&call, "X-Plain: s3cr3t-known and visible");
	str_add(&call.body, "{\"name\":\"visible-name\",\"input\":{\"env\":[{\"key\":\"K\","
			    "\"value\":\"s3cr3t-env\"}]}}");
	struct got g = make_call(&call);
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
	{"another env, in pairs", "{\"extra_env\":[[\"A\",\"b\"],[\"C\",\"d\"]]}",
	 "{\"extra_env\":[\"[secret]\",\"[secret]\"]}"},
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
		cmocka_unit_test(test_tls_is_verified),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_trace_hides_secrets),
		cmocka_unit_test(test_trace_bodies),
	};
	return cmocka_run_group_tests(tests, start_http_bed, end_http_bed);
}
