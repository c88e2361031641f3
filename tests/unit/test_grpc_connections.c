/* test_grpc_connections.c - how calls share a connection, and what is never sent twice. */
#include "grpc_bench.h"

#include "base/jsonx.h"

#define TLS_ONLY(test)                                                                             \
	{                                                                                          \
#test " over TLS", test, over_tls, in_the_clear, NULL                              \
	}

/* As in a new process: with no connection, and none that let us wait in vain. */
static void begin_anew(void)
{
	http_free(grpc_http);
	grpc_http = http_new(grpc_loop, "burst-test/1");
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
		char *text =
			grpc_script(i == 7 ? "{\"end\":\"hang\"}" : "{\"pieces\":[\"" ABC "\"]}");
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
		CLEANUP(free_text) char *text = grpc_script("{\"end\":\"hang\"}");
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
		CLEANUP(free_text) char *text = grpc_script(answers);
		call = asking("Say", text);
		call.may_repeat = i & 1;
		g = carry(&call);
		CLEANUP(json_decref) json_t *said = heard();
		assert_true(g.reply.failed && g.reply.was_sent);
		assert_int_equal(requests_in(said), 1);
		reply_free(&g.reply);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TLS_ONLY(test_one_connection),
		TLS_ONLY(test_no_more_of_a_connection_without_answers),
		BOTH(test_never_twice),
	};

	return cmocka_run_group_tests_name("grpc connections", tests, grpc_start, grpc_stop);
}
