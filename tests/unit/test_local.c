/* test_local.c - the local provider's translator, by recorded replies: what is asked, and what is
 * made of each answer. */
#include "local_bed.h"

struct exchange {
	enum op_next next;
	struct call call;
	struct op_result result;
	struct err err;
};

static void exchange_free(struct exchange *x)
{
	call_free(&x->call);
	op_result_free(&x->result);
}

static struct exchange exchange_reply(enum op_kind kind, const struct op_want *want,
				      struct reply *reply)
{
	struct exchange x = {0};
	struct section *s;
	struct provider *p = open_with(NULL, &s, &x.err);
	struct op *op = provider_local.begin(p, kind, want);
	struct call none = {0};
	int64_t wait;

	assert_int_equal(provider_local.next(op, NULL, &x.call, &wait, &x.result, &x.err), OP_CALL);
	x.next = provider_local.next(op, reply, &none, &wait, &x.result, &x.err);
	reply_free(reply);
	provider_local.op_free(op);
	provider_local.close(p);
	section_free(s);
	return x;
}

static struct exchange exchange(enum op_kind kind, const struct op_want *want, int status,
				const char *out, const char *errors)
{
	struct reply reply = {.status = status};

	str_add(&reply.body, out);
	str_add(&reply.head, errors);
	return exchange_reply(kind, want, &reply);
}

#define POD                                                                                        \
	"{\"id\":\"local-a\",\"name\":\"burst-a\",\"marker\":{\"machine\":\"m\",\"run\":\"r\","    \
	"\"attempt\":\"a\","                                                                       \
	"\"hard_end_s\":9},\"state\":\"running\",\"preempted\":true,\"host\":\"127.0.0.1\","       \
	"\"port\":4022,"                                                                           \
	"\"user\":\"u\",\"gpu\":\"L4\",\"region\":\"here\",\"spot\":true,\"price\":690000,"        \
	"\"detail\":\"words\","                                                                    \
	"\"created_ms\":1999,\"started_ms\":2999,\"ended_ms\":0}"

static struct op_want a_rent(void)
{
	static char name[] = "KEY", value[] = "va\"lue";
	static struct env_pair env[] = {{name, value, true}};
	struct op_want want = {
		.rent = {
			.start_script = "true", .mount = "/workspace", .env = env, .env_count = 1}};

	COPY_TEXT(want.rent.name, "burst-a");
	COPY_TEXT(want.rent.marker.attempt, "a");
	COPY_TEXT(want.rent.volume.id, "v");
	return want;
}

static void a_rent_is_asked_by_stdin_alone(void **state)
{
	struct op_want want = a_rent();
	struct exchange x = exchange(OP_RENT, &want, 0, "{\"pods\":[" POD "]}\n", "");
	const char *argv[] = {"burst", "local-cloud", "rent", "/state"};
	struct err err;

	(void)state;
	assert_int_equal(x.call.kind, CALL_CHILD);
	assert_int_equal(x.call.class, CALL_CREATE);
	assert_false(x.call.may_repeat);
	assert_int_equal(x.call.argc, ARRAY_LEN(argv));
	for (size_t i = 0; i < ARRAY_LEN(argv); i++)
		assert_string_equal(x.call.argv[i], argv[i]);
	CLEANUP(json_decref) json_t *asked = jsonx_parse(x.call.body.s, x.call.body.len, &err);
	assert_non_null(asked);
	assert_string_equal(jsonx_text(json_object_get(asked, "env"), "KEY", ""), "va\"lue");
	assert_string_equal(jsonx_text(asked, "volume", ""), "v");
	assert_string_equal(jsonx_text(asked, "script", ""), "true");
	assert_int_equal(jsonx_int(json_object_get(asked, "conf"), "capacity", 0), 16);
	exchange_free(&x);
}

static void set_private(struct section *s)
{
	section_set_text(s, "network", "private", "burst.cfg:7");
}

static void set_host(struct section *s)
{
	section_set_text(s, "network", "host", "burst.cfg:7");
}

/* The user's own word decides; without it, only a pod that fetches packages has the network. */
static void who_has_the_network(void **state)
{
	static const struct {
		void (*set)(struct section *s);
		bool fetches, shared;
	} cases[] = {
		{NULL, false, false},    {NULL, true, true},     {set_private, true, false},
		{set_host, false, true}, {set_host, true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = a_rent();
		struct op_result result = {0};
		struct call call = {0};
		struct section *s;
		struct err err = {0};
		int64_t wait;

		want.rent.fetches_packages = cases[i].fetches;
		struct provider *p = open_with(cases[i].set, &s, &err);
		struct op *op = provider_local.begin(p, OP_RENT, &want);
		assert_int_equal(provider_local.next(op, NULL, &call, &wait, &result, &err),
				 OP_CALL);
		CLEANUP(json_decref)
		json_t *asked = jsonx_parse(call.body.s, call.body.len, &err);
		if (jsonx_bool(json_object_get(asked, "conf"), "shared_network", false) !=
		    cases[i].shared)
			fail_msg("case %zu: shared_network is %d", i, !cases[i].shared);
		call_free(&call);
		provider_local.op_free(op);
		provider_local.close(p);
		section_free(s);
	}
}

static void a_pod_is_read_whole(void **state)
{
	struct op_want want = a_rent();
	struct exchange x =
		exchange(OP_RENT, &want, 0, "{\"pods\":[" POD "]}\n", "noise on stderr\n");

	(void)state;
	assert_int_equal(x.next, OP_DONE);
	const struct pod_view *pod = &x.result.pods[0];
	assert_string_equal(pod->id, "local-a");
	assert_string_equal(pod->marker.attempt, "a");
	assert_int_equal(pod->marker.hard_end_s, 9);
	assert_int_equal(pod->state, POD_STATE_RUNNING);
	assert_true(pod->preempted && pod->spot);
	assert_int_equal(pod->port, 4022);
	assert_int_equal(pod->created_at_s, 1);
	assert_int_equal(pod->started_at_s, 2);
	assert_int_equal(pod->price_microusd_h, 690000);
	assert_string_equal(pod->detail, "words");
	exchange_free(&x);
}

#define LONG80                                                                                     \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
	"890123456789"

static const struct {
	const char *name;
	enum op_kind kind;
	int status;
	const char *out, *errors;
	enum err_kind want;
} failures[] = {
	{"no capacity is told as such", OP_RENT, 1, "",
	 "{\"error\":{\"kind\":\"no_capacity\",\"message\":\"full\"}}\n", ERR_NO_CAPACITY},
	{"the last line counts", OP_RENT, 1, "",
	 "a warning\n{\"error\":{\"kind\":\"refused\",\"message\":\"no\"}}\n", ERR_REFUSED},
	{"an unknown kind is a bug", OP_LIST, 1, "",
	 "{\"error\":{\"kind\":\"blue\",\"message\":\"no\"}}", ERR_BUG},
	{"a killed rent is ambiguous", OP_RENT, 137, "", "", ERR_AMBIGUOUS},
	{"a rent without words is ambiguous", OP_RENT, 1, "", "", ERR_AMBIGUOUS},
	{"a rent that ends well but says nothing", OP_RENT, 0, "", "", ERR_AMBIGUOUS},
	{"a rent cut in its answer", OP_RENT, 0, "{\"pods\":[{\"id\":\"local-a\",", "",
	 ERR_AMBIGUOUS},
	{"a rent that answers garbage", OP_RENT, 0, "\x01\xff garbage", "", ERR_AMBIGUOUS},
	{"a rent that answers no pod", OP_RENT, 0, "{\"pods\":[]}", "", ERR_AMBIGUOUS},
	{"a killed listing can be asked again", OP_LIST, 137, "", "", ERR_TRANSIENT},
	{"a listing cut short", OP_LIST, 0, "{\"pods\":[", "", ERR_BUG},
	{"a listing that is no list", OP_LIST, 0, "{\"pods\":{}}", "", ERR_BUG},
	{"a pod without an id", OP_LIST, 0, "{\"pods\":[{}]}", "", ERR_BUG},
	{"an id is never cut", OP_LIST, 0, "{\"pods\":[{\"id\":\"" LONG80 "\"}]}", "", ERR_BUG},
	{"no such port", OP_LIST, 0, "{\"pods\":[{\"id\":\"a\",\"port\":70000}]}", "", ERR_BUG},
	{"offers that are none", OP_OFFERS, 0, "{}", "", ERR_BUG},
	{"a volume without a name", OP_VOLUMES, 0, "{\"volumes\":[{}]}", "", ERR_BUG},
	{"billing without figures", OP_BILLING, 0, "{}", "", ERR_BUG},
	{"billing of a stranger", OP_BILLING, 1, "",
	 "{\"error\":{\"kind\":\"not_found\",\"message\":\"\"}}", ERR_NOT_FOUND},
	{"a fetch without a count", OP_FETCH, 0, "", "{}", ERR_BUG},
	{"a fetch of nothing", OP_FETCH, 1, "",
	 "{\"error\":{\"kind\":\"not_found\",\"message\":\"x\"}}", ERR_NOT_FOUND},
	{"a folder without a list", OP_VOLUME_LS, 0, "{}", "", ERR_BUG},
	{"a folder that is not there", OP_VOLUME_LS, 1, "",
	 "{\"error\":{\"kind\":\"not_found\",\"message\":\"x\"}}", ERR_NOT_FOUND},
	{"a deletion that is refused", OP_VOLUME_DELETE, 1, "",
	 "{\"error\":{\"kind\":\"refused\",\"message\":\"x\"}}", ERR_REFUSED},
	{"a release that died can be asked again", OP_RELEASE, 139, "", "", ERR_TRANSIENT},
};

static struct op_want a_want(enum op_kind kind)
{
	struct op_want want = kind == OP_RENT ? a_rent() : (struct op_want){0};

	if (kind == OP_FETCH || kind == OP_STAGE || kind == OP_VOLUME_LS ||
	    kind == OP_VOLUME_DELETE) {
		want.file.path = "a/b";
		want.file.local = "/tmp/x";
		COPY_TEXT(want.file.volume.id, "v");
	} else if (kind == OP_VOLUME) {
		want.volume.name = "v";
	} else if (kind != OP_RENT) {
		COPY_TEXT(want.id, "local-a");
	}
	return want;
}

static void failures_have_their_kind(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct op_want want = a_want(failures[i].kind);
		struct exchange x = exchange(failures[i].kind, &want, failures[i].status,
					     failures[i].out, failures[i].errors);
		if (x.next != OP_FAILED || x.err.kind != failures[i].want)
			fail_msg("%s: got %s (%s), want %s", failures[i].name,
				 x.next == OP_DONE ? "success" : err_kind_name(x.err.kind),
				 x.err.msg, err_kind_name(failures[i].want));
		exchange_free(&x);
	}
}

static void a_lost_reply_has_its_kind(void **state)
{
	static const struct {
		enum op_kind kind;
		bool sent;
		enum err_kind want;
	} cases[] = {{OP_RENT, true, ERR_AMBIGUOUS},
		     {OP_RENT, false, ERR_LOCAL},
		     {OP_LIST, true, ERR_LOCAL}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = a_want(cases[i].kind);
		struct reply reply = {.failed = true, .was_sent = cases[i].sent};
		err_set(&reply.err, ERR_LOCAL, "it could not be waited for");
		struct exchange x = exchange_reply(cases[i].kind, &want, &reply);
		assert_int_equal(x.next, OP_FAILED);
		assert_int_equal(x.err.kind, cases[i].want);
		exchange_free(&x);
	}
}

static void the_forgotten_are_gone(void **state)
{
	static const char words[] =
		"{\"error\":{\"kind\":\"not_found\",\"message\":\"no such pod\"}}\n";
	struct op_want want = a_want(OP_INSPECT);
	struct exchange x = exchange(OP_INSPECT, &want, 1, "", words);

	(void)state;
	assert_int_equal(x.next, OP_DONE);
	assert_int_equal(x.result.pods[0].state, POD_STATE_GONE);
	assert_string_equal(x.result.pods[0].id, "local-a");
	exchange_free(&x);
	x = exchange(OP_RELEASE, &want, 1, "", words);
	assert_int_equal(x.next, OP_DONE);
	assert_int_equal(x.call.class, CALL_RELEASE);
	exchange_free(&x);
}

static void offers_are_read(void **state)
{
	static const char *const gpus[] = {"RTX 5090", "none", NULL};
	struct op_want want = {.offers = {.gpus = gpus}};
	struct exchange x = exchange(OP_OFFERS, &want, 0, "{\"left\":1}", "");

	(void)state;
	assert_int_equal(x.result.offer_count, 1);
	assert_int_equal(x.result.offers[0].wish, 1);
	assert_int_equal(x.result.offers[0].pods_max, 1);
	assert_string_equal(x.result.offers[0].gpu, "none");
	assert_string_equal(x.result.offers[0].stock, "low");
	exchange_free(&x);
	x = exchange(OP_OFFERS, &want, 0, "{\"left\":0}", "");
	assert_int_equal(x.next, OP_DONE);
	assert_int_equal(x.result.offer_count, 0);
	exchange_free(&x);
	x = exchange(OP_OFFERS, &want, 0, "{}", "");
	assert_int_equal(x.next, OP_FAILED);
	exchange_free(&x);
}

static bool says_that_it_works(struct provider *p, enum op_kind kind, const char *answer)
{
	struct op_want want = kind == OP_RENT ? a_rent() : (struct op_want){0};
	struct op *op = provider_local.begin(p, kind, &want);
	struct call call, none = {0};
	struct op_result result = {0};
	struct reply reply = {0};
	struct err err;
	int64_t wait;

	str_add(&reply.body, answer);
	assert_int_equal(provider_local.next(op, NULL, &call, &wait, &result, &err), OP_CALL);
	CLEANUP(json_decref) json_t *request = jsonx_parse(call.body.s, call.body.len, &err);
	assert_int_equal(provider_local.next(op, &reply, &none, &wait, &result, &err), OP_DONE);
	provider_local.op_free(op);
	op_result_free(&result);
	reply_free(&reply);
	call_free(&call);
	return jsonx_bool(json_object_get(request, "conf"), "sandbox_works", false);
}

static void a_sandbox_is_tried_once(void **state)
{
	static const char works[] = "{\"left\":1,\"sandbox_works\":true}";
	struct section *s;
	struct err err;
	struct provider *p = open_with(NULL, &s, &err);

	(void)state;
	assert_false(says_that_it_works(p, OP_OFFERS, "{\"left\":0}"));
	assert_false(says_that_it_works(p, OP_OFFERS, works));
	assert_true(says_that_it_works(p, OP_OFFERS, works));
	assert_true(says_that_it_works(p, OP_RENT, "{\"pods\":[" POD "]}"));
	provider_local.close(p);
	section_free(s);
}

static void the_others_are_read(void **state)
{
	struct op_want want = a_want(OP_BILLING);
	struct exchange x = exchange(OP_BILLING, &want, 0, "{\"billed_ms\":1500,\"cost\":7}", "");

	(void)state;
	assert_int_equal(x.result.billing.billed_ms, 1500);
	assert_int_equal(x.result.billing.cost_microusd, 7);
	assert_true(x.result.billing.reported);
	exchange_free(&x);
	x = exchange(OP_LOGS, &want, 0, "{\"text\":\"a\\nb\\n\"}", "");
	assert_string_equal(str_text(&x.result.text), "a\nb\n");
	exchange_free(&x);
	want = a_want(OP_VOLUME);
	want.volume.size_gb = 5;
	x = exchange(OP_VOLUME, &want, 0, "{\"volumes\":[{\"name\":\"v\"}]}", "");
	assert_string_equal(x.result.volumes[0].id, "v");
	assert_int_equal(x.result.volumes[0].size_gb, 5);
	assert_int_equal(x.result.volumes[0].used_bytes, -1);
	exchange_free(&x);
	want = a_want(OP_CHECK);
	x = exchange(OP_CHECK, &want, 0, "{\"text\":\"ok: all\\n\"}", "");
	assert_string_equal(str_text(&x.result.text), "ok: all\n");
	exchange_free(&x);
	want = a_want(OP_VOLUME_REMOVE);
	x = exchange(OP_VOLUME_REMOVE, &want, 0, "{}", "");
	assert_int_equal(x.next, OP_DONE);
	exchange_free(&x);
}

static void files_travel_beside_the_words(void **state)
{
	struct op_want want = a_want(OP_FETCH);

	(void)state;
	want.file.offset = 7;
	want.file.max_bytes = 100;
	struct exchange x = exchange(OP_FETCH, &want, 0, "", "{\"bytes\":93}\n");
	assert_string_equal(x.call.body_to, "/tmp/x");
	assert_string_equal(x.call.argv[6], "7");
	assert_string_equal(x.call.argv[7], "100");
	assert_int_equal(x.call.max_bytes, 100);
	assert_int_equal(x.result.bytes, 93);
	exchange_free(&x);
	x = exchange(OP_STAGE, &want, 0, "{\"bytes\":5}\n", "");
	assert_string_equal(x.call.body_from, "/tmp/x");
	assert_int_equal(x.result.bytes, 5);
	exchange_free(&x);
}

static void there_is_no_purse(void **state)
{
	struct section *s;
	struct err err = {0};
	struct provider *p = open_with(NULL, &s, &err);
	struct op *op = provider_local.begin(p, OP_BALANCE, NULL);
	struct op_result result;
	struct call call = {0};
	int64_t wait;

	(void)state;
	assert_int_equal(provider_local.next(op, NULL, &call, &wait, &result, &err), OP_DONE);
	assert_int_equal(result.balance_microusd, -1);
	provider_local.op_free(op);
	provider_local.close(p);
	section_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rent_is_asked_by_stdin_alone),
		cmocka_unit_test(who_has_the_network),
		cmocka_unit_test(a_pod_is_read_whole),
		cmocka_unit_test(failures_have_their_kind),
		cmocka_unit_test(a_lost_reply_has_its_kind),
		cmocka_unit_test(the_forgotten_are_gone),
		cmocka_unit_test(offers_are_read),
		cmocka_unit_test(a_sandbox_is_tried_once),
		cmocka_unit_test(the_others_are_read),
		cmocka_unit_test(files_travel_beside_the_words),
		cmocka_unit_test(there_is_no_purse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
