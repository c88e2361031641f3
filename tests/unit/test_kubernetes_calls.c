/* test_kubernetes_calls.c - operations of the Kubernetes translator that take several calls: lists
 * in pages, keys on their way, releases of pods whose node is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/jsonx.h"
#include "kubernetes_bed.h"
#include "providers/kubernetes/kubernetes.h"

/* ---- an operation, step by step ---- */

struct steps {
	struct op *op;
	struct op_result result;
	struct err err;
	char path[2048]; /* the last call's last argument but that of its input */
};

static enum op_next step(struct steps *s, const struct reply *reply)
{
	struct call call = {0};
	int64_t wait_ms;
	enum op_next next =
		provider_kubernetes.next(s->op, reply, &call, &wait_ms, &s->result, &s->err);

	s->path[0] = '\0';
	for (char **word = next == OP_CALL ? call.argv : NULL; word && *word; word++)
		if (strcmp(*word, "--filename=-") != 0)
			COPY_TEXT(s->path, *word);
	if (next == OP_CALL)
		call_free(&call);
	return next;
}

/* The same with a reply of kubectl: its exit status, stdout and stderr. */
static enum op_next answer(struct steps *s, int status, const char *body, const char *said)
{
	struct reply reply = {.status = status};

	str_add(&reply.body, body);
	str_add(&reply.head, said);
	enum op_next next = step(s, &reply);
	reply_free(&reply);
	return next;
}

static void begin(struct steps *s, enum op_kind kind, const struct op_want *want)
{
	*s = (struct steps){.op = provider_kubernetes.begin(provider, kind, want)};
	assert_int_equal(step(s, NULL), OP_CALL);
}

static void end(struct steps *s)
{
	provider_kubernetes.op_free(s->op);
	op_result_free(&s->result);
}

#define POD(name, more)                                                                            \
	"{\"metadata\":{\"name\":\"" name "\"" more                                                \
	"},\"spec\":{\"nodeName\":\"gpu-7\"},\"status\":{"                                         \
	"\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\","    \
	"\"lastTransitionTime\":\"2026-11-28T08:00:00Z\"}],\"containerStatuses\":[{\"state\":{"    \
	"\"running\":{}}}]}}"
#define LIST(token, items) "{\"metadata\":{\"continue\":\"" token "\"},\"items\":[" items "]}"

/* ---- lists ---- */

static void test_all_pages_are_read(void **state)
{
	struct steps s;

	(void)state;
	begin(&s, OP_LIST, NULL);
	assert_true(ends_with(s.path, "/pods?labelSelector=burst.dev%2Fmachine&limit=200"));
	assert_int_equal(answer(&s, 0, LIST("dG9r_-Zw", POD("a", "") "," POD("b", "")), ""),
			 OP_CALL);
	assert_true(ends_with(s.path, "&limit=200&continue=dG9r_-Zw"));
	assert_int_equal(answer(&s, 0, LIST("", POD("c", "")), ""), OP_DONE);
	assert_int_equal(s.result.pod_count, 3);
	assert_string_equal(s.result.pods[2].id, "c");
	end(&s);
}

/* A part of a list never passes for the whole. */
static void test_pages_that_cannot_be_used(void **state)
{
	static const struct {
		const char *name, *body;
	} firsts[] = {
		{"a token that is no token", LIST("a&b", POD("a", ""))},
		{"an empty page before another one", LIST("dG9r", "")},
	};
	struct steps s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(firsts); i++) {
		begin(&s, OP_LIST, NULL);
		if (answer(&s, 0, firsts[i].body, "") != OP_FAILED || s.err.kind != ERR_TRANSIENT)
			fail_msg("%s: taken (%s)", firsts[i].name, s.err.msg);
		end(&s);
	}
	begin(&s, OP_LIST, NULL);
	assert_int_equal(answer(&s, 0, LIST("dG9r", POD("a", "")), ""), OP_CALL);
	assert_int_equal(answer(&s, 1, "",
				"Error from server (Expired): The provided continue parameter is "
				"too old to display a consistent list result.\n"),
			 OP_FAILED);
	assert_int_equal(s.err.kind, ERR_TRANSIENT);
	end(&s);
}

#define GPU_NODE(product)                                                                          \
	"{\"metadata\":{\"labels\":{\"nvidia.com/gpu.product\":\"" product "\"}},\"status\":{"     \
	"\"allocatable\":{\"nvidia.com/gpu\":\"1\"}}}"

static void test_all_pages_of_nodes_are_read(void **state)
{
	static const char *const wishes[] = {"L40S", "T4", NULL};
	const struct op_want want = {.offers.gpus = wishes};
	struct steps s;

	(void)state;
	begin(&s, OP_OFFERS, &want);
	assert_true(ends_with(s.path, "/api/v1/nodes?limit=200"));
	assert_int_equal(answer(&s, 0, LIST("dG9r_-Zw", GPU_NODE("NVIDIA-L40S")), ""), OP_CALL);
	assert_true(ends_with(s.path, "/nodes?limit=200&continue=dG9r_-Zw"));
	assert_int_equal(answer(&s, 0, LIST("bmV4dA", "{\"metadata\":{}}"), ""), OP_CALL);
	assert_true(ends_with(s.path, "/nodes?limit=200&continue=bmV4dA"));
	assert_int_equal(answer(&s, 0, LIST("", GPU_NODE("Tesla-T4")), ""), OP_DONE);
	assert_int_equal(s.result.offer_count, 2);
	assert_string_equal(s.result.offers[0].gpu, "L40S");
	assert_string_equal(s.result.offers[1].gpu, "T4");
	end(&s);
	/* a part of the nodes never passes for all */
	begin(&s, OP_OFFERS, &want);
	assert_int_equal(answer(&s, 0, LIST("dG9r", GPU_NODE("NVIDIA-L40S")), ""), OP_CALL);
	assert_int_equal(answer(&s, 1, "", "Error from server (Expired): too old\n"), OP_FAILED);
	assert_int_equal(s.err.kind, ERR_TRANSIENT);
	end(&s);
}

/* ---- keys ---- */

/* The pod is released, and its keys forgotten, while they are on their way to it. */
static void test_a_pod_released_while_it_gets_its_keys(void **state)
{
	const struct op_want want = {.id = "a"};
	struct reply late = {.failed = true, .was_sent = true, .err.kind = ERR_TRANSIENT};
	struct steps list, release;

	(void)state;
	kube_keys_add(provider, "a", xstrdup("export X=1\n# whole\n"));
	begin(&list, OP_LIST, NULL);
	assert_int_equal(answer(&list, 0, LIST("", POD("a", "")), ""), OP_CALL);
	assert_int_equal(answer(&list, 1, "", "error: timed out"), OP_DONE);
	assert_int_equal(list.result.pods[0].state, POD_STATE_CREATING);
	assert_int_equal(list.result.pods[0].reach, REACH_NONE); /* nothing dials it */
	end(&list);
	begin(&list, OP_LIST, NULL);
	assert_int_equal(answer(&list, 0, LIST("", POD("a", "")), ""), OP_CALL);
	begin(&release, OP_RELEASE, &want);
	assert_int_equal(step(&list, &late), OP_DONE);
	assert_int_equal(list.result.pod_count, 1);
	end(&release);
	end(&list);
}

/* The exec has said that it took the keys, and then did not end. */
static void test_keys_that_arrived_count(void **state)
{
	struct reply late = {.failed = true, .was_sent = true, .err.kind = ERR_TRANSIENT};
	struct steps s;

	(void)state;
	kube_keys_add(provider, "a", xstrdup("export X=1\n# whole\n"));
	begin(&s, OP_LIST, NULL);
	assert_int_equal(answer(&s, 0, LIST("", POD("a", "")), ""), OP_CALL);
	str_add(&late.body, "taken\n");
	assert_int_equal(step(&s, &late), OP_DONE);
	assert_int_equal(s.result.pods[0].state, POD_STATE_RUNNING);
	reply_free(&late);
	end(&s);
}

/* A later client adopts two pods. One has its keys; the other's client died with them. */
static void test_pods_of_a_client_that_died(void **state)
{
	static char a[] = "a", b[] = "b";
	char *ids[] = {a, b, NULL};
	const struct op_want want = {.ids = ids};
	struct steps s;

	(void)state;
	begin(&s, OP_LIST, &want);
	assert_int_equal(
		answer(&s, 0, LIST("", POD("a", "") "," POD("b", "") "," POD("c", "")), ""),
		OP_CALL);
	assert_int_equal(answer(&s, 0, "taken\n", ""), OP_CALL);
	assert_int_equal(answer(&s, 0, "keyless\n", ""), OP_DONE);
	assert_int_equal(s.result.pods[0].state, POD_STATE_RUNNING);
	assert_int_equal(s.result.pods[1].state, POD_STATE_STOPPED);
	assert_string_equal(s.result.pods[1].detail, "its client died before the pod had its keys");
	assert_int_equal(s.result.pods[2].state, POD_STATE_RUNNING);
	end(&s);
	/* nothing is asked twice */
	begin(&s, OP_LIST, &want);
	assert_int_equal(answer(&s, 0, LIST("", POD("a", "") "," POD("b", "")), ""), OP_DONE);
	assert_int_equal(s.result.pods[1].state, POD_STATE_STOPPED);
	end(&s);
	/* nor of a pod that is released, while lists still show it */
	const struct op_want gone = {.id = "d"};
	static char d[] = "d";
	char *released[] = {d, NULL};
	const struct op_want listed = {.ids = released};
	begin(&s, OP_RELEASE, &gone);
	end(&s);
	begin(&s, OP_LIST, &listed);
	assert_int_equal(answer(&s, 0, LIST("", POD("d", "")), ""), OP_DONE);
	end(&s);
}

/* ---- releases ---- */

#define DELETED(when) ",\"deletionTimestamp\":\"" when "\""
#define LONG_AGO      "2001-01-01T00:00:00Z"
#define NODE(ready)                                                                                \
	"{\"items\":[{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready         \
	"\"}]}}]}"

static const struct {
	const char *name, *pod, *nodes; /* nodes NULL: they may not be listed */
	bool asks, forces;
} releases[] = {
	{"it has just been asked for its end", POD("a", DELETED("2999-01-01T00:00:00Z")), "", false,
	 false},
	{"its node is lost", POD("a", DELETED(LONG_AGO)), NODE("Unknown"), true, true},
	{"its node is no more", POD("a", DELETED(LONG_AGO)), "{\"items\":[]}", true, true},
	{"its node answers: it holds its GPU", POD("a", DELETED(LONG_AGO)), NODE("True"), true,
	 false},
	{"its node says that it is not ready", POD("a", DELETED(LONG_AGO)), NODE("False"), true,
	 false},
	{"nodes may not be listed", POD("a", DELETED(LONG_AGO)), NULL, true, false},
	{"a list of nodes that is none", POD("a", DELETED(LONG_AGO)), "{}", true, false},
	{"a reply that is no pod", "{\"kind\":\"Status\"}", "", false, false},
};

static void test_a_pod_whose_node_is_lost(void **state)
{
	const struct op_want want = {.id = "a"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(releases); i++) {
		struct steps s;
		begin(&s, OP_RELEASE, &want);
		assert_true(ends_with(s.path, "/pods/a?gracePeriodSeconds=5"));
		enum op_next next = answer(&s, 0, releases[i].pod, "");
		bool asks = next == OP_CALL &&
			    strstr(s.path, "/nodes?fieldSelector=metadata.name%3Dgpu-7");
		if (next == OP_CALL)
			next = answer(
				&s, releases[i].nodes ? 0 : 1,
				releases[i].nodes ? releases[i].nodes : "",
				releases[i].nodes
					? ""
					: "Error from server (Forbidden): nodes is forbidden");
		bool forces = next == OP_CALL && ends_with(s.path, "/pods/a?gracePeriodSeconds=0");
		if (next == OP_CALL)
			next = answer(&s, 0, releases[i].pod, "");
		if (next != OP_DONE || asks != releases[i].asks || forces != releases[i].forces ||
		    (s.result.text.len > 0) != forces)
			fail_msg("%s: asks for the node %d, forces %d, says \"%s\"",
				 releases[i].name, asks, forces, str_text(&s.result.text));
		end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_pages_of_nodes_are_read, open_provider,
						close_provider),
		cmocka_unit_test_setup_teardown(test_all_pages_are_read, open_provider,
						close_provider),
		cmocka_unit_test_setup_teardown(test_pages_that_cannot_be_used, open_provider,
						close_provider),
		cmocka_unit_test_setup_teardown(test_a_pod_released_while_it_gets_its_keys,
						open_provider, close_provider),
		cmocka_unit_test_setup_teardown(test_keys_that_arrived_count, open_provider,
						close_provider),
		cmocka_unit_test_setup_teardown(test_pods_of_a_client_that_died, open_provider,
						close_provider),
		cmocka_unit_test_setup_teardown(test_a_pod_whose_node_is_lost, open_provider,
						close_provider),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
