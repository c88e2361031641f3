/* test_vendor_command.c - the base of providers whose vendor is a command: steps, failures by their
 * words, what a lost rent and an unknown pod become, which cards are offered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/gpus.h"
#include "providers/child.h"

static enum op_next ask(struct op *op, struct call *call, struct op_result *result, struct err *err)
{
	(void)result;
	if (op->kind == OP_BALANCE)
		return OP_DONE;
	if (op->kind == OP_STAGE) {
		err_set(err, ERR_REFUSED, "no files here");
		return OP_FAILED;
	}
	call_arg(call, op->step ? "second" : "first");
	return OP_CALL;
}

static enum op_next take(struct op *op, const struct reply *reply, struct op_result *result,
			 struct err *err)
{
	if (reply->status != 0)
		return child_failed(op, reply, err);
	if (op->kind == OP_LIST && op->step++ == 0) {
		op_result_add_pod(result);
		return OP_CALL;
	}
	return OP_DONE;
}

static const struct child_word words[] = {
	{"no such pod", ERR_NOT_FOUND, NULL},
	{"quota", ERR_NO_CAPACITY, "ask for a larger quota"},
	{NULL},
};
static const struct child_vendor vendor = {
	.name = "acme", .words = words, .ask = ask, .take = take};

struct answer {
	enum op_next next;
	struct call call;
	struct op_result result;
	struct err err;
};

static void answer_free_cleanup(struct answer *a)
{
	call_free(&a->call);
	op_result_free(&a->result);
}

/* Runs the first step, then gives it this reply. */
static struct answer answered(enum op_kind kind, struct reply *reply)
{
	struct op_want want = {.id = "pod1"};
	struct answer a = {0};
	struct call first = {0};
	struct provider *p = child_open(&vendor, NULL, "/state", "me");
	struct op *op = child_begin(p, kind, &want);

	assert_int_equal(child_next(op, NULL, &first, &a.result, &a.err), OP_CALL);
	assert_string_equal(first.argv[0], "first");
	a.next = child_next(op, reply, &a.call, &a.result, &a.err);
	call_free(&first);
	reply_free(reply);
	child_op_free(op);
	child_close(p);
	return a;
}

static struct answer ended(enum op_kind kind, int status, const char *errors)
{
	struct reply reply = {.status = status};

	str_add(&reply.head, errors);
	return answered(kind, &reply);
}

static void a_failure_has_the_kind_of_its_words(void **state)
{
	static const struct {
		enum op_kind kind;
		int status;
		const char *errors;
		enum err_kind want;
		const char *text;
	} cases[] = {
		{OP_LIST, 1, "Exceeded QUOTA: gpus", ERR_NO_CAPACITY,
		 "acme list: Exceeded QUOTA: gpus: ask for a larger quota"},
		{OP_RENT, 1, "warning\nquota\n", ERR_NO_CAPACITY,
		 "acme rent: quota: ask for a larger quota"},
		{OP_LIST, 3, "odd\x1b[2J", ERR_TRANSIENT,
		 "acme list: no answer: exit code 3: odd\\x1b[2J"},
		{OP_RENT, 3, "odd", ERR_AMBIGUOUS, "acme rent: no answer: exit code 3: odd"},
		{OP_RENT, 137, "", ERR_AMBIGUOUS, "acme rent: no answer: killed by signal 9"},
		{OP_LIST, 1, "no such pod", ERR_NOT_FOUND, "acme list: no such pod"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(answer_free)
		struct answer a = ended(cases[i].kind, cases[i].status, cases[i].errors);
		assert_int_equal(a.next, OP_FAILED);
		assert_int_equal(a.err.kind, cases[i].want);
		assert_string_equal(a.err.msg, cases[i].text);
	}
}

static void a_child_that_gave_no_reply(void **state)
{
	static const struct {
		enum op_kind kind;
		bool was_sent;
		enum err_kind want;
	} cases[] = {
		{OP_RENT, true, ERR_AMBIGUOUS},
		{OP_RENT, false, ERR_NETWORK},
		{OP_RELEASE, true, ERR_NETWORK},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct reply reply = {.failed = true, .was_sent = cases[i].was_sent};
		err_set(&reply.err, ERR_NETWORK, "timed out");
		CLEANUP(answer_free) struct answer a = answered(cases[i].kind, &reply);
		assert_int_equal(a.next, OP_FAILED);
		assert_int_equal(a.err.kind, cases[i].want);
		assert_non_null(strstr(a.err.msg, "timed out"));
	}
}

static void an_unknown_pod_is_gone(void **state)
{
	(void)state;
	CLEANUP(answer_free) struct answer looked = ended(OP_INSPECT, 1, "no such pod");
	assert_int_equal(looked.next, OP_DONE);
	assert_int_equal(looked.result.pod_count, 1);
	assert_string_equal(looked.result.pods[0].id, "pod1");
	assert_int_equal(looked.result.pods[0].state, POD_STATE_GONE);
	CLEANUP(answer_free) struct answer released = ended(OP_RELEASE, 1, "no such pod");
	assert_int_equal(released.next, OP_DONE);
	assert_int_equal(released.result.balance_microusd, -1);
}

static void steps_follow_each_other(void **state)
{
	(void)state;
	CLEANUP(answer_free) struct answer a = ended(OP_LIST, 0, "");
	assert_int_equal(a.next, OP_CALL);
	assert_string_equal(a.call.argv[0], "second");
	assert_int_equal(a.call.class, CALL_POLL);
	assert_true(a.call.timeout_ms > 0);
}

static void without_a_child(void **state)
{
	struct op_want want = {0};
	struct op_result result = {0};
	struct call call = {0};
	struct err err = {0};
	struct provider *p = child_open(&vendor, NULL, "/state", "me");
	struct op *balance = child_begin(p, OP_BALANCE, &want);
	struct op *stage = child_begin(p, OP_STAGE, &want);

	(void)state;
	assert_string_equal(child_account(p), "me");
	assert_int_equal(child_next(balance, NULL, &call, &result, &err), OP_DONE);
	assert_int_equal(result.balance_microusd, -1);
	assert_int_equal(child_next(stage, NULL, &call, &result, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_REFUSED);
	child_op_free(balance);
	child_op_free(stage);
	child_close(p);
}

static void cards_that_the_job_wishes_for(void **state)
{
	static const char *const l40s[] = {"L40S", NULL}, *const two[] = {"T4", "L40S:2", NULL},
				 *const none[] = {"None", NULL}, *const odd[] = {"Foo 9", NULL};
	static const struct {
		const char *const *wishes;
		int wished_gb;
		const char *gpu;
		int gpus, vram_gb;
		int wish; /* -1: no offer */
		int gets_gb;
	} cases[] = {
		{NULL, 0, "L40S", 1, 0, 0, 48},   {l40s, 0, "L40S", 1, 0, 0, 48},
		{l40s, 0, "T4", 1, 0, -1, 0},     {l40s, 0, "L40S", 2, 0, -1, 0},
		{two, 0, "L40S", 2, 0, 1, 48},    {none, 0, GPU_NONE, 0, 0, 0, 0},
		{none, 0, "T4", 1, 0, 0, 16},     {l40s, 49, "L40S", 1, 0, -1, 0},
		{l40s, 49, "L40S", 1, 50, 0, 50}, {NULL, 8, GPU_NONE, 0, 0, -1, 0},
		{odd, 8, "Foo 9", 1, 0, 0, 0},
	};
	struct provider *p = child_open(&vendor, NULL, "/state", "me");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = {
			.offers = {.gpus = cases[i].wishes, .vram_gb = cases[i].wished_gb}};
		struct op_result result = {0};
		struct op *op = child_begin(p, OP_OFFERS, &want);
		struct offer *offer = child_offer(op, cases[i].gpu, cases[i].gpus, cases[i].vram_gb,
						  1100000, &result);
		if (!offer != (cases[i].wish < 0))
			fail_msg("case %zu: %s", i, offer ? "offered" : "not offered");
		if (offer) {
			assert_int_equal(offer->wish, cases[i].wish);
			assert_int_equal(offer->vram_gb, cases[i].gets_gb);
			assert_int_equal(offer->price_microusd_h, 1100000);
			assert_string_equal(offer->provider, "acme");
		}
		op_result_free(&result);
		child_op_free(op);
	}
	child_close(p);
}

static void a_list_of_cards_has_prices(void **state)
{
	static const struct option_spec table[] = {{"cards", OPTION_TEXTS, 0, NULL, ""}, {NULL}};
	static const struct {
		const char *item;
		bool price, card; /* whether each check accepts it */
	} cases[] = {
		{"L40S=1.10", true, true}, {"L40S", false, true},        {"L40S=", false, false},
		{"=1.10", false, false},   {"L40S=0", false, false},     {"L40S=x", false, false},
		{"", false, false},        {"RTX 4090=0.4", true, true},
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(section_free) struct section *s = section_new(table, "burst.cfg:1");
		section_add_item(s, "cards", cases[i].item, "burst.cfg:2");
		assert_int_equal(provider_check_prices(s, "providers.acme", "cards", &err),
				 cases[i].price ? 0 : -1);
		assert_int_equal(provider_check_cards(s, "providers.acme", "cards", &err),
				 cases[i].card ? 0 : -1);
	}
	CLEANUP(section_free) struct section *s = section_new(table, "burst.cfg:1");
	section_add_item(s, "cards", "4090=0.50", "burst.cfg:2");
	section_add_item(s, "cards", "RTX 4090=0.40", "burst.cfg:2");
	section_add_item(s, "cards", "T4", "burst.cfg:2");
	assert_int_equal(provider_price_of(s, "cards", "RTX 4090"), 400000);
	assert_int_equal(provider_price_of(s, "cards", "NVIDIA GeForce RTX 4090"), 400000);
	assert_int_equal(provider_price_of(s, "cards", "T4"), 0);
	assert_int_equal(provider_price_of(s, "cards", "H100 SXM"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_has_the_kind_of_its_words),
		cmocka_unit_test(a_child_that_gave_no_reply),
		cmocka_unit_test(an_unknown_pod_is_gone),
		cmocka_unit_test(steps_follow_each_other),
		cmocka_unit_test(without_a_child),
		cmocka_unit_test(cards_that_the_job_wishes_for),
		cmocka_unit_test(a_list_of_cards_has_prices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
