/* grpc_bench.c - starts the server of the gRPC tests, sends calls to it and keeps what comes back.
 */
#include "grpc_bench.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "scratch.h"

struct loop *grpc_loop;

struct http *grpc_http;

static pid_t server_pid;

static int server_stdin = -1;

int plain_port;

int tls_port;

bool grpc_secure;

static char grpc_dir[FOLDER_MAX];

static void add_bytes(struct str *to, int field, const void *bytes, size_t len)
{
	str_addc(to, (char)(field << 3 | 2));
	assert_true(len < 128);
	str_addc(to, (char)len);
	str_addn(to, bytes, len);
}

void add_status(struct str *to, const char *url, float seconds)
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

const char policy_url[] = "type.modal.com/modal.client.RPCRetryPolicy";

static void start_server(void)
{
	int in[2], out[2];
	char line[32] = "";

	CLEANUP(free_text) char *key = path_join(grpc_dir, "key");
	CLEANUP(free_text) char *cert = path_join(grpc_dir, "cert");
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

int grpc_start(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	unsetenv("http_proxy");
	grpc_loop = loop_new();
	assert_int_equal(http_ready(NULL), 0);
	grpc_http = http_new(grpc_loop, "burst-test/1");
	new_folder_at(grpc_dir);
	start_server();
	return 0;
}

int over_tls(void **state)
{
	(void)state;
	grpc_secure = true;
	return 0;
}

int in_the_clear(void **state)
{
	(void)state;
	grpc_secure = false;
	return 0;
}

int grpc_stop(void **state)
{
	(void)state;
	http_free(grpc_http);
	loop_free(grpc_loop);
	if (server_stdin >= 0)
		close(server_stdin);
	if (server_pid)
		waitpid(server_pid, NULL, 0);
	return path_remove_tree(grpc_dir, NULL);
}

void on_done(void *ctx, struct reply *reply)
{
	struct got *g = ctx;

	g->count++;
	g->reply = *reply;
	memset(reply, 0, sizeof(*reply));
}

struct call asking(const char *method, const char *message)
{
	struct call call = {.kind = CALL_GRPC,
			    .timeout_ms = 30000,
			    .url = xasprintf("%s://127.0.0.1:%d/t.Test/%s",
					     grpc_secure ? "https" : "http",
					     grpc_secure ? tls_port : plain_port, method)};

	str_add(&call.body, message);
	return call;
}

struct got carry(struct call *call)
{
	struct grpc_tries tries = {0};
	struct got g = {0};

	grpc_send(grpc_loop, grpc_http, call, &tries, on_done, &g);
	assert_int_equal(g.count, 0);
	call_free(call);
	TURN_UNTIL(grpc_loop, g.count);
	assert_int_equal(g.count, 1);
	return g;
}

json_t *heard(void)
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

const char *header_of(const json_t *said, size_t request, const char *name)
{
	return jsonx_text(
		json_object_get(json_array_get(json_object_get(said, "requests"), request),
				"headers"),
		name, "");
}

size_t requests_in(const json_t *said)
{
	return json_array_size(json_object_get(said, "requests"));
}

char *grpc_script(const char *answers)
{
	return xasprintf("{\"answers\":[%s]}", answers);
}
