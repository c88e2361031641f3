/* conform.c - conform PROVIDER: the suite that every provider must pass, against the vendor (or the
 * stand-in) that the environment names, as `burst` itself would reach it. BURST_PROVIDER_PATH adds
 * plug-ins. Calls that are children of burst run $BURST, and keep their files in BURST_STATE_DIR.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/provider_conformance.h"
#include "config/config.h"
#include "net/child.h"
#include "net/grpc.h"
#include "net/http.h"
#include "net/loop.h"

static const char *name;
static struct loop *loop;
static struct http *http;

struct waiting {
	struct reply *reply;
	bool over;
};

static void on_reply(void *ctx, struct reply *reply)
{
	struct waiting *w = ctx;

	*w->reply = *reply;
	memset(reply, 0, sizeof(*reply));
	w->over = true;
}

static void on_time(void *ctx)
{
	*(bool *)ctx = true;
}

static void turn_until(const bool *over)
{
	while (!*over)
		loop_turn(loop, 1000);
}

static void pause_for(int64_t ms)
{
	bool over = false;

	loop_timer(loop, ms, on_time, &over);
	turn_until(&over);
}

/* gRPC calls as often as the server and their own rules want them carried. */
static void carry(void *ctx, const struct call *call, struct reply *reply)
{
	struct grpc_tries tries = {0};
	int64_t again_ms = -1;

	(void)ctx;
	do {
		struct waiting w = {.reply = reply};
		if (again_ms >= 0) {
			reply_free(reply);
			pause_for(again_ms);
		}
		if (call->kind == CALL_CHILD)
			child_send(loop, call, on_reply, &w);
		else if (call->kind == CALL_GRPC)
			grpc_send(loop, http, call, &tries, on_reply, &w);
		else
			http_send(http, call, on_reply, &w);
		turn_until(&w.over);
		again_ms = call->kind == CALL_GRPC ? grpc_retry_wait_ms(&tries, call, reply) : -1;
	} while (again_ms >= 0);
}

static void conforms(void **state)
{
	CLEANUP(config_free) struct config *config = NULL;
	struct config_source ask = {
		.user_only = true, .providers = provider_registry, .jobs = job_registry};
	struct conformance c = {.carry = carry,
				.start_script = "while :; do sleep 1; done",
				.volume = "conformance"};
	const char *dir = getenv("BURST_STATE_DIR"), *state_dir = dir ? dir : "/nonexistent";
	struct err err;

	(void)state;
	c.ops = provider_find(name);
	if (!c.ops)
		fail_msg("unknown provider \"%s\"", name);
	c.names_repeat = !strcmp(name, "runpod") || !strcmp(name, "vast");
	c.stranger = !strcmp(name, "modal")  ? "sb-0neverwasthere000000000"
		     : !strcmp(name, "vast") ? "4242"
					     : NULL;
	/* they have none that pods could share */
	if (!strcmp(name, "vast") || !strcmp(name, "acme"))
		c.volume = NULL;
	if (config_open(&config, &ask, &err) < 0)
		fail_msg("%s", err.msg);
	const struct section *account = config_account(config, name, &err);
	if (!account || c.ops->open(&c.provider, account, state_dir, &err) < 0)
		fail_msg("%s", err.msg);
	conformance_run(&c);
	c.ops->close(c.provider);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(conforms)};
	struct str bad = STR_INIT;
	struct err err;

	if (argc != 2 || http_ready(&err) < 0)
		return 2;
	name = argv[1];
	providers_load(getenv("BURST_PROVIDER_PATH"), &bad);
	fputs(str_text(&bad), stderr);
	str_reset(&bad);
	child_set_self(getenv("BURST"));
	loop = loop_new();
	http = http_new(loop, "burst/conform");
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	http_free(http);
	loop_free(loop);
	return failed;
}
