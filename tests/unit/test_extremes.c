/* test_extremes.c - servers that answer with extreme sizes, counts and floods
 * (tests/cloud/common/extremes.js): each call ends with a reply or an error, in time, and the
 * memory that it takes is bounded. */
#include "net_test.h"

#include <jansson.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/jsonx.h"
#include "base/str.h"
#include "net/grpc.h"
#include "net/http_impl.h"
#include "net/ssh_impl.h"

enum {
	STUCK_MS = 2000,
	CALL_MS = 3000,      /* an endless reply ends by then */
	PEAK_MOST_MIB = 600, /* MiB; the sanitizer keeps up to 256 of what was freed */
};

static struct loop *loop;
static struct http *http;
static json_t *ports;
static int node_stdin = -1;
static pid_t node;

static void read_ports(int from)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char c;

	while (read(from, &c, 1) == 1 && c != '\n')
		str_addc(&line, c);
	ports = jsonx_parse(str_text(&line), line.len, NULL);
	close(from);
}

static int start(void **state)
{
	int in[2], out[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	unsetenv("http_proxy");
	loop = loop_new();
	assert_int_equal(http_ready(NULL), 0);
	http = http_new(loop, "burst-test/1");
	http_guard_free(http->guard);
	http->guard = http_guard_new(STUCK_MS);
	assert_int_equal(pipe(in) | pipe(out), 0);
	node = fork();
	if (!node) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execlp("node", "node", "tests/cloud/common/extremes.js", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	node_stdin = in[1];
	fcntl(node_stdin, F_SETFD, FD_CLOEXEC);
	read_ports(out[0]);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	http_free(http);
	loop_free(loop);
	json_decref(ports);
	close(node_stdin);
	waitpid(node, NULL, 0);
	return 0;
}

/* Of this process, at most so far, in MiB. */
static long memory_mb(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kb) == 1)
			break;
	file_close(f);
	return kb / 1024;
}

struct got {
	int count;
	struct reply reply;
};

static void on_reply(void *ctx, struct reply *reply)
{
	struct got *g = ctx;

	g->count++;
	g->reply = *reply;
	memset(reply, 0, sizeof(*reply));
}

static struct call call_of(int port)
{
	struct call call = {.kind = CALL_HTTP,
			    .method = "POST",
			    .timeout_ms = CALL_MS,
			    .max_bytes = 1 << 20,
			    .url = xasprintf("http://127.0.0.1:%d/x", port)};

	str_add(&call.body, "{}");
	return call;
}

static struct got answered(struct call *call, bool grpc)
{
	struct grpc_tries tries = {0};
	struct got g = {0};

	if (grpc)
		grpc_send(loop, http, call, &tries, on_reply, &g);
	else
		http_send(http, call, on_reply, &g);
	call_free(call);
	TURN_UNTIL(loop, g.count);
	assert_int_equal(g.count, 1);
	return g;
}

/* What else than a kind of its own a name must lead to. */
static const struct {
	const char *name;
	enum err_kind kind;
	const char *words;
} expected[] = {
	{"header_100k", ERR_UNTRUSTED, "too large a reply"},
	{"header_10m", ERR_UNTRUSTED, "too large a reply"},
	{"header_endless", ERR_UNTRUSTED, "too large a reply"},
	{"header_name_10m", ERR_UNTRUSTED, "too large a reply"},
	{"status_10m", ERR_UNTRUSTED, "too large a reply"},
	{"headers_100000", ERR_UNTRUSTED, "head is larger than allowed"},
	{"headers_endless", ERR_UNTRUSTED, "head is larger than allowed"},
	{"body_endless", ERR_UNTRUSTED, "the reply is larger than allowed"},
	{"chunk_empty", ERR_UNTRUSTED, "the reply is larger than allowed"},
	{"dribble", ERR_NETWORK, NULL},
	{"dribble_body", ERR_NETWORK, NULL},
	{"chunk_huge", ERR_NETWORK, NULL},
	{"length_2_63", ERR_UNTRUSTED, "the reply is larger than allowed"},
	{"grpc_4g", ERR_UNTRUSTED, "larger than allowed"},
	{"h2_data_endless", ERR_BUG, "a second message"},
	{"h2_data_empty", ERR_UNTRUSTED, "floods"},
	{"h2_goaway_endless", ERR_UNTRUSTED, "floods"},
	{"h2_window_zero", ERR_NETWORK, NULL},
	{"h2_goaway", ERR_NETWORK, NULL},
	{"h2_rst_now", ERR_NETWORK, NULL},
};

static void check_kind(const char *name, const struct reply *r)
{
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		if (!strcmp(expected[i].name, name) &&
		    (r->err.kind != expected[i].kind ||
		     (expected[i].words && !strstr(r->err.msg, expected[i].words))))
			fail_msg("%s: %s (%s)", name, r->err.msg, err_kind_name(r->err.kind));
}

static void check_call(const char *name, int port, bool grpc)
{
	int64_t began = clock_boot_ms();
	struct call call = call_of(port);
	struct got g = answered(&call, grpc);
	struct reply *r = &g.reply;

	print_message("   %s: %d, %s, %lld ms, %ld MiB\n", name, r->status,
		      r->err.kind ? r->err.msg : "no error", (long long)(clock_boot_ms() - began),
		      memory_mb());
	if (r->failed && (r->err.kind == ERR_NONE || !r->was_sent))
		fail_msg("%s: failed without a kind, or as if it was not sent", name);
	assert_true(r->head.len <= 256 << 10 && r->body.len <= 1 << 20);
	check_kind(name, r);
	reply_free(r);
}

struct session {
	int count;
	struct err err;
};

static void on_ssh(void *ctx, const struct err *err)
{
	struct session *s = ctx;

	s->count++;
	if (err)
		s->err = *err;
}

static void check_ssh(const char *name, int port)
{
	struct session s = {0};
	struct ssh_setup setup = {
		.fd = connect_to_loopback(port),
		.user = "root",
		.host_key = "ssh-ed25519 "
			    "AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS",
		.private_key = "none",
		.limit_ms = CALL_MS};

	fcntl(setup.fd, F_SETFL, O_NONBLOCK);
	int64_t began = clock_boot_ms();
	struct ssh *ssh = ssh_open(loop, &setup, on_ssh, on_ssh, &s);
	TURN_UNTIL(loop, s.count);
	print_message("   %s: %s, %lld ms, %ld MiB\n", name, s.err.msg,
		      (long long)(clock_boot_ms() - began), memory_mb());
	assert_int_equal(s.count, 1);
	assert_true(s.err.kind == ERR_NETWORK || s.err.kind == ERR_UNTRUSTED);
	ssh_close(ssh);
}

static void check_wire(const char *wire)
{
	const char *name;
	json_t *one;
	int count = 0;

	if (!ports) {
		print_message("   skipped: node does not run here\n");
		skip();
	}
	json_object_foreach (ports, name, one) {
		int port = (int)jsonx_int(one, "port", 0);
		if (strcmp(jsonx_text(one, "wire", ""), wire))
			continue;
		count++;
		if (!strcmp(wire, "ssh"))
			check_ssh(name, port);
		else
			check_call(name, port, !strcmp(wire, "h2"));
	}
	assert_true(count > 10);
	assert_in_range(memory_mb(), 1, PEAK_MOST_MIB);
}

static void test_http(void **state)
{
	(void)state;
	check_wire("http");
}

static void test_http2(void **state)
{
	(void)state;
	check_wire("h2");
}

static void test_ssh(void **state)
{
	(void)state;
	check_wire("ssh");
}

static void test_json_of_many_values(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str quoted = STR_INIT;
	struct err err = {0};

	(void)state;
	str_add(&text, "{\"pods\":[");
	str_add(&quoted, "{\"pods\":\"\\\"");
	for (int i = 0; i <= JSONX_VALUES_MOST; i++) {
		str_add(&text, "[],");
		str_add(&quoted, "[],");
	}
	str_add(&text, "[]]}");
	str_add(&quoted, "\"}");
	assert_null(jsonx_parse(text.s, text.len, &err));
	assert_non_null(strstr(err.msg, "JSON of more than 500000 values"));
	json_t *one = jsonx_parse(quoted.s, quoted.len, &err);
	assert_non_null(one); /* a text is one value */
	json_decref(one);
}

/* The name of a signal may have 4 GiB, as the server says. */
static void test_ssh_memory(void **state)
{
	struct ssh s = {.blocks = {.before = &s.blocks, .after = &s.blocks}};
	void *abstract = &s;

	(void)state;
	void *bytes = ssh_on_alloc(MEMORY_MOST / 2, &abstract);
	assert_non_null(bytes);
	assert_false(s.flooded);
	assert_null(ssh_on_realloc(bytes, (size_t)MEMORY_MOST + 1, &abstract));
	assert_true(s.flooded);
	s.flooded = false;
	assert_null(ssh_on_alloc(UINT32_MAX, &abstract));
	assert_true(s.flooded);
	ssh_on_free(bytes, &abstract);
	assert_int_equal(s.memory, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_http),       cmocka_unit_test(test_http2),
		cmocka_unit_test(test_ssh),        cmocka_unit_test(test_json_of_many_values),
		cmocka_unit_test(test_ssh_memory),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
