/* test_grpc_caller.c - a caller retries and waits; Modal's own calls; what --trace prints. */
#include "grpc_bench.h"

#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "engine/caller.h"
#include "providers/modal/modal.h"

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
	int got = caller_perform(&(struct engine_provider){&cloudy, p, NULL}, OP_LIST, NULL,
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
		CLEANUP(free_text) char *text = grpc_script(retried[i].answers);
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

/* The token first, then the call that bears it, both over one engine; what comes back is
 * understood. */
static void test_modal(void **state)
{
	(void)state;
	NEED_SERVER();
	CLEANUP(section_free) struct section *conf = section_new(provider_modal.options, "t");
	CLEANUP(free_text)
	char *root = xasprintf("%s://127.0.0.1:%d", grpc_secure ? "https" : "http",
			       grpc_secure ? tls_port : plain_port);
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
	assert_int_equal(caller_perform(&ep, OP_RELEASE, &want, PATIENCE_MS, &result, &err), 0);
	op_result_free(&result);
	assert_int_equal(caller_perform(&ep, OP_INSPECT, &want, PATIENCE_MS, &result, &err), 0);
	assert_int_equal(result.pod_count, 1);
	assert_int_equal(result.pods[0].state, POD_STATE_GONE);
	assert_string_equal(result.pods[0].detail, "it was terminated");
	op_result_free(&result);
	assert_int_equal(caller_perform(&ep, OP_LIST, NULL, PATIENCE_MS, &result, &err), 0);
	assert_int_equal(result.pod_count, 0);
	op_result_free(&result);
	assert_int_equal(caller_perform(&ep, OP_BILLING, &want, PATIENCE_MS, &result, &err), -1);
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
	char *text = grpc_script("{\"end\":\"only\",\"trailers\":{\"grpc-status\":\"3\",\"grpc-"
				 "message\":\"not ak-known1\"}}");
	p = (struct provider){.method = "Say", .message = text};
	ask(&p, &err);
	CLEANUP(free_text)
	char *page = grpc_script("{\"status\":503,\"type\":\"text/"
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
	const struct CMUnitTest tests[] = {
		BOTH(test_retried),
		BOTH(test_put_off),
		BOTH(test_modal),
		cmocka_unit_test(test_trace),
	};

	return cmocka_run_group_tests_name("grpc caller", tests, grpc_start, grpc_stop);
}
