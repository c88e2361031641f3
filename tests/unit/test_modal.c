/* test_modal.c - the Modal translator by literal replies: what is asked, and what is made of each
 * answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/section.h"
#include "providers/modal/impl.h"
#include "providers/modal/modal.h"

enum { CALLS_MAX = 44 };

/* One answer of the other side. */
struct answer {
	const char *method; /* of the call that it answers */
	/* -1: the reply is lost after the request was sent; -2: nothing could be sent; -4: it is
	 * too long */
	int code;
	const void *message; /* ProtobufCMessage; NULL: an empty one */
	const char *words;
	char *stream; /* the messages of a stream */
	size_t stream_len;
	const char *body; /* of a plain HTTP reply */
};

struct played {
	enum op_next last;
	int calls, waits;
	int64_t waited_ms;
	struct call call[CALLS_MAX];
	struct op_result result;
	struct str said; /* on the way */
	struct err err;
};

static struct section *conf;
static struct provider *provider;

static int set_up(void **state)
{
	struct err err = {0};

	(void)state;
	conf = section_new(provider_modal.options, "burst.cfg:1");
	section_set_text(conf, "token_id", "ak-test1", "test");
	section_set_text(conf, "token_secret", "as-test2", "test");
	if (provider_modal.open(&provider, conf, "/", &err) < 0)
		fail_msg("%s", err.msg);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	provider_modal.close(provider);
	provider = NULL;
	section_free(conf);
	return 0;
}

static void fill_reply(struct reply *r, const struct answer *a)
{
	if (strstr(a->method, "://")) { /* plain HTTP: the code is its status */
		*r = (struct reply){
			.status = MAX(a->code, 0), .failed = a->code < 0, .was_sent = true};
		if (r->failed)
			err_set(&r->err, ERR_NETWORK, "the line was cut");
		const char *length = a->words ? strstr(a->words, "Content-Length: ") : NULL;
		r->to_bytes = length ? atoll(length + 16) : 0;
		str_add(&r->head, a->words ? a->words : "");
		if (a->body)
			str_add(&r->body, a->body);
		return;
	}
	*r = (struct reply){.grpc_status = MAX(a->code, 0),
			    .failed = a->code < 0,
			    .was_sent = a->code != -2,
			    .sent_before = a->words && !strncmp(a->words, "again: ", 7)};
	if (a->code < 0) {
		err_set(&r->err, a->code == -4 ? ERR_UNTRUSTED : ERR_NETWORK, "the line was cut");
		r->grpc_status = 14;
	} else if (a->code) { /* as net/grpc.c would say it */
		static const enum err_kind kinds[] = {[5] = ERR_NOT_FOUND,
						      [8] = ERR_RATE_LIMITED,
						      [14] = ERR_TRANSIENT,
						      [16] = ERR_CREDENTIALS};
		enum err_kind kind = a->code < (int)ARRAY_LEN(kinds) && kinds[a->code]
					     ? kinds[a->code]
					     : ERR_REFUSED;
		err_set(&r->err, kind, "%s: %s", a->method, a->words ? a->words : "no");
	}
	str_addn(&r->body, a->stream ? a->stream : "", a->stream_len);
	if (!a->code && a->message) {
		size_t len = protobuf_c_message_get_packed_size(a->message);
		CLEANUP(free_text) char *bytes = xmalloc(len + 1);
		protobuf_c_message_pack(a->message, (uint8_t *)bytes);
		str_addn(&r->body, bytes, len);
	} else if (!a->code && a->words) {
		str_add(&r->body, a->words); /* bytes that are no message */
	}
}

/* Carries an operation through these answers; more calls than answers, or other ones, fail the
 * test. */
static struct played play(enum op_kind kind, const struct op_want *want,
			  const struct answer *answers, int count)
{
	struct played p = {0};
	struct reply reply = {0};
	struct op *op = provider_modal.begin(provider, kind, want);
	bool replied = false;

	for (;;) {
		struct call call = {0};
		int64_t wait_ms = 0;
		p.last = provider_modal.next(op, replied ? &reply : NULL, &call, &wait_ms,
					     &p.result, &p.err);
		reply_free(&reply);
		replied = false;
		if (p.last == OP_WAIT || p.last == OP_CALL) {
			str_add(&p.said, str_text(&p.result.text));
			op_result_free(&p.result);
		}
		if (p.last == OP_WAIT) {
			p.waits++;
			p.waited_ms += wait_ms;
			assert_true(p.waits < 100);
			continue;
		}
		if (p.last != OP_CALL)
			break;
		const char *method = call.kind == CALL_GRPC ? strrchr(call.url, '/') + 1 : call.url;
		if (p.calls == count || strcmp(answers[p.calls].method, method))
			fail_msg("call %d is %s, not %s", p.calls, method,
				 p.calls == count ? "(none)" : answers[p.calls].method);
		fill_reply(&reply, &answers[p.calls]);
		p.call[p.calls++] = call;
		replied = true;
	}
	provider_modal.op_free(op);
	if (p.calls != count)
		fail_msg("%d of %d calls: %s", p.calls, count, p.err.msg);
	return p;
}

static void played_free(struct played *p)
{
	for (int i = 0; i < p->calls; i++)
		call_free(&p->call[i]);
	op_result_free(&p->result);
	str_free(&p->said);
}

static const char *header_of(const struct call *call, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < call->header_count; i++)
		if (!strncmp(call->headers[i], name, len) && call->headers[i][len] == ':')
			return call->headers[i] + len + 2;
	return "";
}

/* ---- the token of the session ---- */

static char *jwt(const char *claims)
{
	CLEANUP(str_free) struct str middle = STR_INIT;

	base64_add(&middle, claims, strlen(claims));
	for (char *p = middle.s; p && *p; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
	return xasprintf("eyJhbGciOiJIUzI1NiJ9.%.*s.c2ln", (int)strcspn(str_text(&middle), "="),
			 str_text(&middle));
}

static void test_token_expires(void **state)
{
	(void)state;
	static const struct {
		const char *claims;
		int64_t want;
	} cases[] = {
		{"{\"exp\":1800000000}", 1800000000},
		{"{\"sub\":\"\xc3\xbf\xc3\xbe?'?>>\",\"exp\":1800000001}", 1800000001},
		{"{\"exp\":1800000002.5}", 1800000002},
		{"{\"exp\":\"soon\"}", 0},
		{"{\"exp\":-5}", 0},
		{"{}", 0},
		{"[]", 0},
		{"no json", 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(free_text) char *text = jwt(cases[i].claims);
		if (modal_token_expires_s(text) != cases[i].want)
			fail_msg("%s: %lld", cases[i].claims,
				 (long long)modal_token_expires_s(text));
	}
	static const char *const none[] = {
		"", ".", "..", "a.b", "a.!.c", "a.e30.c", "no token at all"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_int_equal(modal_token_expires_s(none[i]), 0);
}

static void test_token_life(void **state)
{
	(void)state;
	struct auth_token t = {0};
	int64_t now = clock_boot_ms();
	assert_true(modal_token_is_due(&t) && !modal_token_is_usable(&t));
	modal_token_take(&t, "no-jwt");
	assert_true(!modal_token_is_due(&t) && modal_token_is_usable(&t));
	assert_in_range(t.dead_at_ms - now, 1200000, 1201000);
	assert_in_range(t.refresh_at_ms - now, 600000, 721000);
	CLEANUP(free_text)
	char *claims = xasprintf("{\"exp\":%lld}", (long long)(clock_wall_ms() / 1000 + 100));
	CLEANUP(free_text) char *text = jwt(claims);
	modal_token_take(&t, text);
	assert_in_range(t.dead_at_ms - clock_boot_ms(), 98000, 101000);
	assert_in_range(t.refresh_at_ms - clock_boot_ms(), 48000, 61000);
	CLEANUP(free_text) char *over = jwt("{\"exp\":1000}");
	modal_token_take(&t, over);
	assert_true(modal_token_is_due(&t) && !modal_token_is_usable(&t));
	modal_token_take(&t, text);
	for (int64_t want = 500, i = 0; i < 10; i++, want = MIN(want * 2, 60000)) {
		modal_token_failed(&t);
		assert_in_range(t.refresh_at_ms - clock_boot_ms(), want - 100, want + 1);
	}
	modal_token_free(&t);
	assert_false(modal_token_is_usable(&t));
}

static const Modal__Client__AuthTokenGetResponse first_token = {
	.base = PROTOBUF_C_MESSAGE_INIT(&modal__client__auth_token_get_response__descriptor),
	.token = (char *)"token-one"};
static const Modal__Client__AuthTokenGetResponse second_token = {
	.base = PROTOBUF_C_MESSAGE_INIT(&modal__client__auth_token_get_response__descriptor),
	.token = (char *)"token-two"};
static const Modal__Client__TokenInfoGetResponse info = {
	.base = PROTOBUF_C_MESSAGE_INIT(&modal__client__token_info_get_response__descriptor),
	.workspace_name = (char *)"acme\x1b[2J"};

static void test_check(void **state)
{
	(void)state;
	Modal__Client__Warning old = MODAL__CLIENT__WARNING__INIT, *warnings[] = {&old};
	Modal__Client__ClientHelloResponse hello = MODAL__CLIENT__CLIENT_HELLO_RESPONSE__INIT;
	old.message = (char *)"you are old";
	old.has_type = true;
	old.type = 1;
	hello.server_warnings = warnings;
	hello.n_server_warnings = 1;
	const struct answer answers[] = {{"AuthTokenGet", 0, &first_token, NULL},
					 {"TokenInfoGet", 0, &info, NULL},
					 {"ClientHello", 0, &hello, NULL}};
	struct played p = play(OP_CHECK, NULL, answers, 3);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(str_text(&p.result.text),
			    "ok: Modal accepts the token, of workspace acme\\x1b[2J\nwarn: Modal "
			    "says: you are old (burst passes for "
			    "modal-js/0.11.1 of version 1.0.0: update burst, or set "
			    "libmodal_version and client_version in providers.modal)\n");
	for (int i = 0; i < 3; i++) {
		assert_true(starts_with(header_of(&p.call[i], "user-agent"), "grpc-node-js/"));
		assert_string_equal(header_of(&p.call[i], "x-modal-token-id"), "ak-test1");
		assert_string_equal(header_of(&p.call[i], "x-modal-token-secret"), "as-test2");
		assert_string_equal(header_of(&p.call[i], "x-modal-client-type"), "8");
		assert_string_equal(header_of(&p.call[i], "x-modal-client-version"), "1.0.0");
		assert_string_equal(header_of(&p.call[i], "x-modal-libmodal-version"),
				    "modal-js/0.11.1");
		assert_string_equal(header_of(&p.call[i], "x-modal-host"), "api.modal.com");
		assert_string_equal(header_of(&p.call[i], "x-modal-auth-token"),
				    i ? "token-one" : "");
		assert_true(p.call[i].may_repeat);
		assert_int_equal(p.call[i].put_off_ms, 60000);
	}
	assert_string_equal(p.call[0].url,
			    "https://api.modal.com/modal.client.ModalClient/AuthTokenGet");
	played_free(&p);
	/* it is kept for the next operation, which says what is wrong */
	p = play(OP_CHECK, NULL,
		 (const struct answer[]){{"TokenInfoGet", 16, NULL, "stale"},
					 {"AuthTokenGet", 0, &second_token, NULL},
					 {"TokenInfoGet", 16, NULL, "bad token"}},
		 3);
	assert_int_equal(p.last, OP_DONE); /* a finding, no failure */
	assert_int_equal(p.err.kind, ERR_NONE);
	assert_true(starts_with(str_text(&p.result.text), "bad: "));
	assert_non_null(strstr(str_text(&p.result.text),
			       "bad token (are MODAL_TOKEN_ID and MODAL_TOKEN_SECRET right?)\n"));
	played_free(&p);
	p = play(OP_CHECK, NULL, (const struct answer[]){{"TokenInfoGet", 0, NULL, "\xff\xff"}}, 1);
	assert_non_null(strstr(str_text(&p.result.text),
			       "bad: asking Modal whose token this is: the answer cannot be read"));
	played_free(&p);
	p = play(OP_CHECK, NULL,
		 (const struct answer[]){{"TokenInfoGet", 12, NULL, NULL},
					 {"ClientHello", 0, &hello, NULL}},
		 2);
	assert_true(starts_with(str_text(&p.result.text), "warn: Modal says: you are old (burst"));
	played_free(&p);
	p = play(OP_CHECK, NULL,
		 (const struct answer[]){{"TokenInfoGet", 0, &info, NULL},
					 {"ClientHello", 9, NULL, "Old client"}},
		 2);
	assert_int_equal(p.last, OP_DONE);
	assert_non_null(strstr(str_text(&p.result.text),
			       "\nbad: greeting Modal: ClientHello: Old client\n"));
	played_free(&p);
}

static void test_token_renewed(void **state)
{
	(void)state;
	const struct answer fine[] = {{"AuthTokenGet", 0, &first_token, NULL},
				      {"TokenInfoGet", 0, &info, NULL},
				      {"ClientHello", 0, NULL, NULL}};
	const struct answer again[] = {{"AuthTokenGet", 0, &second_token, NULL},
				       {"TokenInfoGet", 0, &info, NULL},
				       {"ClientHello", 0, NULL, NULL}};
	const struct answer lost[] = {{"AuthTokenGet", -1, NULL, NULL},
				      {"TokenInfoGet", 0, &info, NULL},
				      {"ClientHello", 0, NULL, NULL}};
	struct played p = play(OP_CHECK, NULL, fine, 3);
	played_free(&p);
	p = play(OP_CHECK, NULL, fine + 1, 2);
	played_free(&p);
	/* half its life is over, and the server does not answer: it goes on with the one it has,
	 * and does not ask at once again */
	provider->token.refresh_at_ms = clock_boot_ms();
	p = play(OP_CHECK, NULL, lost, 3);
	assert_string_equal(header_of(&p.call[1], "x-modal-auth-token"), "token-one");
	played_free(&p);
	p = play(OP_CHECK, NULL, fine + 1, 2);
	played_free(&p);
	provider->token.refresh_at_ms = clock_boot_ms();
	p = play(OP_CHECK, NULL, again, 3);
	assert_string_equal(header_of(&p.call[2], "x-modal-auth-token"), "token-two");
	played_free(&p);
	/* no longer who we say we are: that is the end, whatever the old one is worth */
	struct op_want want = {.id = "sb-1"};
	provider->token.refresh_at_ms = clock_boot_ms();
	p = play(OP_RELEASE, &want, (const struct answer[]){{"AuthTokenGet", 16, NULL, "gone"}}, 1);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_CREDENTIALS);
	played_free(&p);
	p = play(OP_CHECK, NULL, (const struct answer[]){{"AuthTokenGet", 16, NULL, "gone"}}, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_non_null(strstr(str_text(&p.result.text),
			       "bad: asking for a token of the session: AuthTokenGet: gone"));
	played_free(&p);
	/* dead, and none to be had */
	provider->token.dead_at_ms = clock_boot_ms();
	p = play(OP_RELEASE, &want, lost, 1);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	played_free(&p);
	/* one that would break out of its header */
	Modal__Client__AuthTokenGetResponse evil = first_token;
	evil.token = (char *)"a\r\nx-evil: b";
	p = play(OP_RELEASE, &want, (const struct answer[]){{"AuthTokenGet", 0, &evil, NULL}}, 1);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	played_free(&p);
}

/* ---- opening ---- */

static char *account_of(const char *token_id, const char *environment)
{
	CLEANUP(section_free) struct section *s = section_new(provider_modal.options, "t");
	struct provider *p = NULL;
	struct err err;

	section_set_text(s, "token_id", token_id, "t");
	section_set_text(s, "token_secret", "as-1", "t");
	if (environment)
		section_set_text(s, "environment", environment, "t");
	assert_int_equal(provider_modal.open(&p, s, "/", &err), 0);
	char *account = xstrdup(provider_modal.account(p));
	provider_modal.close(p);
	return account;
}

/* What a list does not show is gone only where it was asked for where the pod was rented. */
static void test_account(void **state)
{
	CLEANUP(free_text)
	char *one = account_of("ak-1", NULL), *same = account_of("ak-1", NULL),
	     *dev = account_of("ak-1", "dev"), *other = account_of("ak-2", "dev");

	(void)state;
	assert_string_equal(one, same);
	assert_string_not_equal(one, dev);
	assert_string_not_equal(dev, other);
}

static void test_open(void **state)
{
	static const struct {
		const char *key, *value;
		enum err_kind kind; /* 0: it opens */
		const char *root, *host;
	} cases[] = {
		{"server_url", "https://api.modal.com:443/", 0, "https://api.modal.com:443",
		 "api.modal.com"},
		{"server_url", "https://a.example,https://b.example", 0, "https://a.example",
		 "a.example"},
		{"server_url", "http://127.0.0.1:8080", 0, "http://127.0.0.1:8080", "127.0.0.1"},
		{"server_url", "http://[::1]:8080", 0, "http://[::1]:8080", "[::1]"},
		{"server_url", "http://api.modal.com", ERR_CONFIG, NULL, NULL},
		{"server_url", "http://127.0.0.1.example.org", ERR_CONFIG, NULL, NULL},
		{"server_url", "api.modal.com", ERR_CONFIG, NULL, NULL},
		{"server_url", "https://", ERR_CONFIG, NULL, NULL},
		{"server_url", "https://user@host", ERR_CONFIG, NULL, NULL},
		{"server_url", "unix:/tmp/x", ERR_CONFIG, NULL, NULL},
		{"app", "renders-2.x_y", 0, "https://api.modal.com", "api.modal.com"},
		{"app", "two words", ERR_CONFIG, NULL, NULL},
		{"app", "", ERR_CONFIG, NULL, NULL},
		{"app", "ap-0123456789abcdefghijkl", ERR_CONFIG, NULL, NULL},
		{"client_version", "1.0\r\nx: y", ERR_CONFIG, NULL, NULL},
		{"token_secret", "", ERR_CREDENTIALS, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct provider *p = NULL;
		struct err err = {0};
		CLEANUP(section_free) struct section *s = section_new(provider_modal.options, "t");
		section_set_text(s, "token_id", "ak-1", "t");
		section_set_text(s, "token_secret", "as-1", "t");
		section_set_text(s, cases[i].key, cases[i].value, "t:3");
		int got = provider_modal.open(&p, s, "/", &err);
		if ((got < 0) != (cases[i].kind != 0) || err.kind != cases[i].kind)
			fail_msg("%s = %s: %d, %s", cases[i].key, cases[i].value, got, err.msg);
		if (got == 0) {
			assert_string_equal(p->root, cases[i].root);
			assert_string_equal(p->host, cases[i].host);
			assert_true(starts_with(provider_modal.account(p), "modal:"));
			assert_null(strstr(provider_modal.account(p), "ak-1"));
		} else if (err.kind == ERR_CONFIG) {
			assert_non_null(strstr(err.msg, "t:3: providers.modal."));
		}
		provider_modal.close(p);
	}
}

/* Without a token or a call, and each of them. */
static void test_all_mistakes(void **state)
{
	static const char *const gpus[] = {"RTX 4090", "T4:100", NULL},
				 *const small[] = {"T4", NULL},
				 *const fine[] = {"RTX 4090", "L4", NULL};
	static const char *const keys[] = {"gpu", "pod.cpu", "pod.memory_gb"};
	CLEANUP(section_free) struct section *s = section_new(provider_modal.options, "t");
	struct op_want want = {.offers = {.gpus = gpus, .cpu = 1000, .memory_gb = 100000}};
	struct mistakes m = {0};
	struct err err = {0};

	(void)state;
	section_set_text(s, "app", "two words", "t:3");
	section_set_text(s, "client_version", "1.0 x", "t:4");
	section_set_text(s, "server_url", "api.modal.com", "t:5");
	section_add_item(s, "gpu_prices", "L4", "t:6");
	assert_int_equal(provider_modal.check_conf(s, &m, &err), 0);
	assert_int_equal(m.count, 4);
	mistakes_free(&m);
	assert_int_equal(provider_modal.check_wishes(s, &want, &m, &err), 0);
	assert_int_equal(m.count, ARRAY_LEN(keys));
	for (size_t i = 0; i < m.count; i++)
		assert_string_equal(m.list[i].err.key, keys[i]);
	mistakes_free(&m);
	want = (struct op_want){.offers = {.gpus = small, .vram_gb = 24}};
	assert_int_equal(provider_modal.check_wishes(s, &want, NULL, &err), -1);
	assert_string_equal(
		err.msg,
		"gpu = [\"T4\"]: Modal has none of these with the 24 GB that this job needs");
	want.offers.gpus = fine;
	assert_int_equal(provider_modal.check_wishes(s, &want, NULL, &err), 0);
}

/* ---- renting ---- */

#define MESSAGE(what) PROTOBUF_C_MESSAGE_INIT(&modal__client__##what##__descriptor)

static const Modal__Client__AppGetOrCreateResponse app = {
	.base = MESSAGE(app_get_or_create_response), .app_id = (char *)"ap-1"};
static Modal__Client__EnvironmentSettings settings = {.base = MESSAGE(environment_settings),
						      .image_builder_version = (char *)"2025.06"};
static Modal__Client__EnvironmentMetadata metadata = {.base = MESSAGE(environment_metadata),
						      .settings = &settings};
static const Modal__Client__EnvironmentGetOrCreateResponse environment = {
	.base = MESSAGE(environment_get_or_create_response), .metadata = &metadata};
static Modal__Client__GenericResult success = {
	.base = MESSAGE(generic_result), .has_status = 1, .status = 1};
static Modal__Client__GenericResult failure = {.base = MESSAGE(generic_result),
					       .has_status = 1,
					       .status = 2,
					       .exception = (char *)"no\nsuch tag"};
static Modal__Client__GenericResult terminated = {
	.base = MESSAGE(generic_result), .has_status = 1, .status = 3};
static const Modal__Client__ImageGetOrCreateResponse built = {
	.base = MESSAGE(image_get_or_create_response),
	.image_id = (char *)"im-1",
	.result = &success};
static const Modal__Client__ImageGetOrCreateResponse unbuilt = {
	.base = MESSAGE(image_get_or_create_response), .image_id = (char *)"im-1"};
static const Modal__Client__SecretGetOrCreateResponse secret = {
	.base = MESSAGE(secret_get_or_create_response), .secret_id = (char *)"st-1"};
static const Modal__Client__SandboxCreateResponse created = {
	.base = MESSAGE(sandbox_create_response), .sandbox_id = (char *)"sb-1"};

#define TOKEN                                                                                      \
	{                                                                                          \
		"AuthTokenGet", 0, &first_token, NULL                                              \
	}
#define APP                                                                                        \
	{                                                                                          \
		"AppGetOrCreate", 0, &app, NULL                                                    \
	}
#define BUILDER                                                                                    \
	{                                                                                          \
		"EnvironmentGetOrCreate", 0, &environment, NULL                                    \
	}
#define IMAGE                                                                                      \
	{                                                                                          \
		"ImageGetOrCreate", 0, &built, NULL                                                \
	}
#define SECRET                                                                                     \
	{                                                                                          \
		"SecretGetOrCreate", 0, &secret, NULL                                              \
	}

static struct env_pair env[] = {{(char *)"BURST_RUN", (char *)"r1", false},
				{(char *)"BURST_HOST_KEY_B64", (char *)"a2V5", true}};

static struct op_want renting(void)
{
	struct op_want want = {
		.rent = {.offer = {.provider = "modal",
				   .id = "L40S:2",
				   .gpu = "L40S",
				   .gpus = 2,
				   .price_microusd_h = 3900000},
			 .name = "burst-00112233",
			 .marker = {.machine = "m1", .run = "r1", .attempt = "00112233"},
			 .volume = {.id = "vo-1"},
			 .mount = "/workspace",
			 .start_script = "echo 'hello'",
			 .env = env,
			 .env_count = ARRAY_LEN(env)}};

	want.rent.marker.hard_end_s = clock_wall_ms() / 1000 + 3600;
	return want;
}

static void *unpacked(const struct call *call, const ProtobufCMessageDescriptor *type)
{
	void *m = protobuf_c_message_unpack(type, NULL, call->body.len,
					    (const uint8_t *)str_text(&call->body));

	assert_non_null(m);
	return m;
}
#define UNPACKED(type, name, call, what)                                                           \
	__attribute__((cleanup(modal_free_cleanup))) Modal__Client__##type *name =                 \
		unpacked(call, &modal__client__##what##__descriptor)

static void test_rent(void **state)
{
	(void)state;
	const struct answer answers[] = {TOKEN, APP,    BUILDER,
					 IMAGE, SECRET, {"SandboxCreate", 0, &created, NULL}};
	struct op_want want = renting();
	struct played p = play(OP_RENT, &want, answers, 6);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 1);
	const struct pod_view *pod = &p.result.pods[0];
	assert_string_equal(pod->id, "sb-1");
	assert_string_equal(pod->name, "burst-00112233");
	assert_string_equal(pod->marker.attempt, "00112233");
	assert_int_equal(pod->state, POD_STATE_QUEUED);
	assert_int_equal(pod->price_microusd_h, 3900000);
	UNPACKED(AppGetOrCreateRequest, a, &p.call[1], app_get_or_create_request);
	assert_string_equal(a->app_name, "burst");
	assert_int_equal(a->object_creation_type, 1);
	UNPACKED(ImageGetOrCreateRequest, i, &p.call[3], image_get_or_create_request);
	assert_string_equal(i->app_id, "ap-1");
	assert_string_equal(i->builder_version, "2025.06");
	assert_string_equal(i->image->dockerfile_commands[0], "FROM " MODAL_IMAGE);
	UNPACKED(SecretGetOrCreateRequest, s, &p.call[4], secret_get_or_create_request);
	assert_int_equal(s->object_creation_type, 5);
	assert_int_equal(s->n_env_dict, 4);
	assert_string_equal(s->env_dict[2]->key, "BURST_HIDE");
	assert_string_equal(s->env_dict[3]->key, "BURST_SYNC_CMD");
	assert_string_equal(s->env_dict[3]->value, "sync");
	assert_string_equal(s->env_dict[1]->key, "BURST_HOST_KEY_B64");
	assert_string_equal(s->env_dict[1]->value, "a2V5");
	UNPACKED(SandboxCreateRequest, c, &p.call[5], sandbox_create_request);
	const Modal__Client__Sandbox *d = c->definition;
	assert_string_equal(c->app_id, "ap-1");
	assert_int_equal(d->n_entrypoint_args, 3);
	assert_string_equal(d->entrypoint_args[2], "echo 'hello'");
	assert_string_equal(d->image_id, "im-1");
	assert_string_equal(d->secret_ids[0], "st-1");
	assert_int_equal(d->resources->milli_cpu, 4000);
	assert_int_equal(d->resources->milli_cpu_max, 4000);
	assert_int_equal(d->resources->memory_mb, 16384);
	assert_int_equal(d->resources->memory_mb_max, 16384);
	assert_int_equal(d->resources->gpu_config->count, 2);
	assert_string_equal(d->resources->gpu_config->gpu_type, "L40S");
	assert_in_range(d->timeout_secs, 3600 + 110, 3600 + 121);
	assert_string_equal(d->volume_mounts[0]->volume_id, "vo-1");
	assert_string_equal(d->volume_mounts[0]->mount_path, "/workspace");
	assert_true(d->volume_mounts[0]->allow_background_commits);
	assert_int_equal(d->open_ports->ports[0]->port, 22);
	assert_true(d->open_ports->ports[0]->unencrypted);
	assert_int_equal(d->network_access->network_access_type, 1);
	assert_null(d->scheduler_placement);
	assert_string_equal(d->name, "burst-00112233");
	assert_false(d->has_idle_timeout_secs);
	assert_int_equal(c->n_tags, 5);
	for (int n = 0; n < 6; n++)
		assert_int_equal(p.call[n].may_repeat, n != 5);
	assert_int_equal(p.call[5].class, CALL_CREATE);
	played_free(&p);

	/* what is known is not asked again; no GPU, no volume, a region */
	want.rent.volume.id[0] = '\0';
	COPY_TEXT(want.rent.offer.id, "CPU");
	COPY_TEXT(want.rent.offer.region, "us-east");
	want.rent.cpu = 2;
	want.rent.memory_gb = 5;
	want.rent.marker.hard_end_s = clock_wall_ms() / 1000 + 90 * 3600;
	p = play(OP_RENT, &want,
		 (const struct answer[]){IMAGE, SECRET, {"SandboxCreate", 0, &created, NULL}}, 3);
	UNPACKED(SandboxCreateRequest, c2, &p.call[2], sandbox_create_request);
	assert_non_null(c2->definition->resources->gpu_config);
	assert_false(c2->definition->resources->gpu_config->has_count);
	assert_int_equal(c2->definition->n_volume_mounts, 0);
	assert_int_equal(c2->definition->resources->milli_cpu, 2000);
	assert_int_equal(c2->definition->resources->milli_cpu_max, 2000);
	assert_int_equal(c2->definition->resources->memory_mb, 5120);
	assert_int_equal(c2->definition->resources->memory_mb_max, 5120);
	assert_int_equal(c2->definition->timeout_secs, 86400);
	assert_string_equal(c2->definition->scheduler_placement->regions[0], "us-east");
	played_free(&p);
}

static const struct {
	const char *name;
	struct answer last; /* of SandboxCreate, or of what comes before it */
	enum err_kind kind;
} failed_rents[] = {
	{"lost", {"SandboxCreate", -1, NULL, NULL}, ERR_AMBIGUOUS},
	{"never sent", {"SandboxCreate", -2, NULL, NULL}, ERR_NETWORK},
	{"UNAVAILABLE", {"SandboxCreate", 14, NULL, NULL}, ERR_AMBIGUOUS},
	{"INTERNAL", {"SandboxCreate", 13, NULL, NULL}, ERR_AMBIGUOUS},
	{"the name is in use: by our own earlier try",
	 {"SandboxCreate", 6, NULL, NULL},
	 ERR_AMBIGUOUS},
	{"too many a second",
	 {"SandboxCreate", 8, NULL, "Sandbox creation rate limit (5/s) exceeded"},
	 ERR_RATE_LIMITED},
	{"no GPU", {"SandboxCreate", 8, NULL, "no capacity for L40S"}, ERR_NO_CAPACITY},
	{"wrong", {"SandboxCreate", 3, NULL, NULL}, ERR_REFUSED},
	{"not ours any more", {"SandboxCreate", 16, NULL, NULL}, ERR_CREDENTIALS},
	{"no image, where an earlier try may have made it",
	 {"SandboxCreate", 5, NULL, "again: Image not found."},
	 ERR_AMBIGUOUS},
	{"no GPU, where an earlier try may have had one",
	 {"SandboxCreate", 8, NULL, "again: no capacity for L40S"},
	 ERR_AMBIGUOUS},
	{"an answer without an id", {"SandboxCreate", 0, NULL, NULL}, ERR_AMBIGUOUS},
	{"an answer that is none", {"SandboxCreate", 0, NULL, "\xff\xff\xff"}, ERR_AMBIGUOUS},
	{"the secret lost", {"SecretGetOrCreate", -1, NULL, NULL}, ERR_NETWORK},
	{"the secret UNAVAILABLE", {"SecretGetOrCreate", 14, NULL, NULL}, ERR_TRANSIENT},
	{"the secret without an id", {"SecretGetOrCreate", 0, NULL, NULL}, ERR_TRANSIENT},
};

static void test_rent_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failed_rents); i++) {
		struct op_want want = renting();
		COPY_TEXT(provider->app_id, "ap-1");
		COPY_TEXT(provider->builder_version, "2025.06");
		modal_token_take(&provider->token, "token-one");
		bool at_secret = !strcmp(failed_rents[i].last.method, "SecretGetOrCreate");
		struct answer answers[] = {
			IMAGE, SECRET, failed_rents[i].last, {"AuthTokenGet", 16, NULL, NULL}};
		if (at_secret)
			answers[1] = failed_rents[i].last;
		struct played p = play(OP_RENT, &want, answers,
				       (at_secret ? 2 : 3) + (failed_rents[i].last.code == 16));
		if (p.last != OP_FAILED || p.err.kind != failed_rents[i].kind)
			fail_msg("%s: %d, kind %d: %s", failed_rents[i].name, p.last, p.err.kind,
				 p.err.msg);
		played_free(&p);
	}
	/* a token that cannot be had makes nothing ambiguous, even right before the create */
	struct op_want want = renting();
	modal_token_free(&provider->token);
	struct played p =
		play(OP_RENT, &want, (const struct answer[]){{"AuthTokenGet", -1, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	played_free(&p);
	/* offers that are none */
	modal_token_take(&provider->token, "token-one");
	static const char *const none[] = {"",        ":2",     "L40S:0",  "L40S:9",
					   "L40S:99", "L40S:x", "L40S:2x", "L40S:"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		COPY_TEXT(want.rent.offer.id, none[i]);
		p = play(OP_RENT, &want, NULL, 0);
		assert_int_equal(p.err.kind, ERR_BUG);
		played_free(&p);
	}
}

/* A stream's messages as net/ hands them over. */
static char *stream_of(const void *const *messages, int count, size_t *len)
{
	struct str s = STR_INIT;

	for (int i = 0; i < count; i++) {
		size_t size = protobuf_c_message_get_packed_size(messages[i]);
		uint8_t *bytes = xmalloc(size + 4);
		for (int b = 0; b < 4; b++)
			bytes[b] = (uint8_t)(size >> (24 - 8 * b));
		protobuf_c_message_pack(messages[i], bytes + 4);
		str_addn(&s, bytes, size + 4);
		free(bytes);
	}
	*len = s.len;
	return str_detach(&s);
}

static struct answer streamed(const char *method, int code, const void *const *messages, int count)
{
	struct answer a = {method, code, NULL, NULL};

	a.stream = stream_of(messages, count, &a.stream_len);
	return a;
}

static void test_image_is_built(void **state)
{
	(void)state;
	Modal__Client__TaskLogs log = {.base = MESSAGE(task_logs),
				       .data = (char *)"Step 1\nE: no such \x1bpackage\n\n"},
				*logs[] = {&log};
	Modal__Client__ImageJoinStreamingResponse said = {
		.base = MESSAGE(image_join_streaming_response),
		.n_task_logs = 1,
		.task_logs = logs,
		.entry_id = (char *)"7-1"};
	Modal__Client__ImageJoinStreamingResponse good = {
		.base = MESSAGE(image_join_streaming_response), .result = &success};
	Modal__Client__ImageJoinStreamingResponse bad = {
		.base = MESSAGE(image_join_streaming_response), .result = &failure};
	Modal__Client__GenericResult wordless = {
		.base = MESSAGE(generic_result), .has_status = 1, .status = 2};
	Modal__Client__ImageJoinStreamingResponse bad_too = {
		.base = MESSAGE(image_join_streaming_response), .result = &wordless};
	Modal__Client__ImageJoinStreamingResponse stopped = {
		.base = MESSAGE(image_join_streaming_response), .result = &terminated};
	struct op_want want = renting();

	COPY_TEXT(provider->app_id, "ap-1");
	COPY_TEXT(provider->builder_version, "2025.06");
	modal_token_take(&provider->token, "token-one");
#define UNBUILT                                                                                    \
	{                                                                                          \
		"ImageGetOrCreate", 0, &unbuilt, NULL                                              \
	}
#define JOIN(code, ...)                                                                            \
	streamed("ImageJoinStreaming", code, (const void *const[]){__VA_ARGS__},                   \
		 (int)(sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *)))
	/* opened again where it ended, also when it broke; the result comes in the end */
	struct answer goes_on[] = {UNBUILT,         JOIN(0, &said),
				   JOIN(-1, &said), JOIN(0, &said, &good),
				   SECRET,          {"SandboxCreate", 0, &created, NULL}};
	struct played p = play(OP_RENT, &want, goes_on, 6);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.waits, 2);
	UNPACKED(ImageJoinStreamingRequest, first, &p.call[1], image_join_streaming_request);
	UNPACKED(ImageJoinStreamingRequest, second, &p.call[2], image_join_streaming_request);
	assert_string_equal(modal_text(first->last_entry_id), "");
	assert_string_equal(second->last_entry_id, "7-1");
	assert_true(p.call[1].stream && p.call[1].stream_limit_ms == 5000 && first->timeout == 5);
	assert_string_equal(str_text(&p.said), "im-1 is being built\nStep 1\nE: no such "
					       "\\x1bpackage\nStep 1\nE: no such \\x1bpackage\n"
					       "Step 1\nE: no such \\x1bpackage\n");
	played_free(&p);
	/* by itself, what it said last comes with the image */
	struct answer alone[] = {UNBUILT, JOIN(0, &said, &good)};
	p = play(OP_IMAGE, &want, alone, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(str_text(&p.said), "im-1 is being built\n");
	assert_string_equal(str_text(&p.result.text), "Step 1\nE: no such \\x1bpackage\n");
	assert_true(starts_with(p.result.image, "im-1 ") && strlen(p.result.image) == 5 + 64);
	played_free(&p);
	struct answer fails[] = {UNBUILT, JOIN(0, &said, &bad)};
	p = play(OP_RENT, &want, fails, 2);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_string_equal(p.err.msg, "image: the image cannot be built: no\\x0asuch tag; its log "
				       "ends: Step 1 | E: no such \\x1bpackage");
	played_free(&p);
	struct answer says_why[] = {UNBUILT, JOIN(0, &said, &bad_too)};
	p = play(OP_RENT, &want, says_why, 2);
	assert_string_equal(p.err.msg,
			    "image: the image cannot be built: Step 1 | E: no such \\x1bpackage");
	played_free(&p);
	struct answer breaks[] = {UNBUILT, JOIN(-1, &said), JOIN(-1, &said), JOIN(14, &said),
				  JOIN(-1, &said)};
	p = play(OP_RENT, &want, breaks, 5);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	played_free(&p);
	struct answer again[] = {UNBUILT,           JOIN(0, &stopped), UNBUILT,
				 JOIN(0, &stopped), UNBUILT,           JOIN(0, &stopped)};
	p = play(OP_RENT, &want, again, 6);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	played_free(&p);
	struct answer *const all[] = {goes_on, alone, fails, says_why, breaks, again};
	static const size_t sizes[] = {6, 2, 2, 2, 5, 6};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t k = 0; k < sizes[i]; k++)
			free(all[i][k].stream);
}

static const char *const packages[] = {"espeak-ng", "libstdc++6", NULL};

static void test_image_recipe(void **state)
{
	(void)state;
	struct op_want want = renting();
	want.rent.packages = packages;
	want.rent.agent = "\177ELF\0agent";
	want.rent.agent_len = 10;
	want.rent.agent_path = "/usr/local/lib/burst/0123";
	want.rent.image = "ghcr.io/acme/voices:1";
	section_add_item(conf, "registry_secrets", "ghcr.io/ac=other", "t:4");
	section_add_item(conf, "registry_secrets", "ghcr.io/acme=registry", "t:4");
	COPY_TEXT(provider->app_id, "ap-1");
	COPY_TEXT(provider->builder_version, "2025.06");
	modal_token_take(&provider->token, "token-one");
	struct played p = play(OP_IMAGE, &want, (const struct answer[]){SECRET, IMAGE}, 2);
	assert_int_equal(p.last, OP_DONE);
	UNPACKED(SecretGetOrCreateRequest, s, &p.call[0], secret_get_or_create_request);
	assert_string_equal(s->deployment_name, "registry");
	assert_false(s->has_object_creation_type); /* it is looked for, never made */
	UNPACKED(ImageGetOrCreateRequest, i, &p.call[1], image_get_or_create_request);
	assert_int_equal(i->image->n_dockerfile_commands, 5);
	assert_non_null(strstr(i->image->dockerfile_commands[1], " curl espeak-ng libstdc++6 && "));
	assert_string_equal(i->image->dockerfile_commands[2],
			    "COPY /.burst-agent /usr/local/lib/burst/0123");
	assert_string_equal(i->image->dockerfile_commands[3],
			    "RUN chmod 755 /usr/local/lib/burst/0123");
	assert_string_equal(i->image->context_files[0]->filename, "/.burst-agent");
	assert_int_equal(i->image->context_files[0]->data.len, 10);
	assert_memory_equal(i->image->context_files[0]->data.data, "\177ELF\0agent", 10);
	assert_int_equal(i->image->image_registry_config->registry_auth_type, 4);
	assert_string_equal(i->image->image_registry_config->secret_id, "st-1");
	played_free(&p);
	p = play(OP_IMAGE, &want, (const struct answer[]){{"SecretGetOrCreate", 5, NULL, "none"}},
		 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_non_null(
		strstr(p.err.msg,
		       "t:4: providers.modal.registry_secrets: Modal has no secret \"registry\""));
	played_free(&p);
	/* nobody else's registry is shown it */
	want.rent.image = "evil.example/ghcr.io/acme/voices:1";
	p = play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	UNPACKED(ImageGetOrCreateRequest, public, &p.call[0], image_get_or_create_request);
	assert_null(public->image->image_registry_config);
	played_free(&p);
	static const char *const names[] = {"",   "Vim",   "a b", "x;reboot",
					    "-y", "a$(b)", "a=1", "a/b"};
	for (size_t n = 0; n < ARRAY_LEN(names); n++) {
		const char *const bad[] = {"espeak-ng", names[n], NULL};
		want.rent.packages = bad;
		p = play(OP_IMAGE, &want, NULL, 0);
		if (p.err.kind != ERR_CONFIG ||
		    !strstr(p.err.msg, "is not the name of a Debian package"))
			fail_msg("\"%s\": %s", names[n], p.err.msg);
		played_free(&p);
	}
}

/* What the job's set-up makes gets into it before the agent, whose next version is no reason to
 * make it again where layers are kept. */
static void test_image_with_a_setup(void **state)
{
	(void)state;
	struct op_want want = renting();
	char path[] = "/usr/local/lib/burst/setup", other[] = "/usr/local/lib/burst/weights",
	     run[] = "sh /usr/local/lib/burst/setup";
	struct image_step steps[] = {{.path = path, .text = "echo one\n", .run = run},
				     {.path = other, .text = "echo two\n", .run = run}};
	want.rent.agent = "agent";
	want.rent.agent_len = 5;
	want.rent.agent_path = "/usr/local/lib/burst/0123";
	COPY_TEXT(provider->app_id, "ap-1");
	COPY_TEXT(provider->builder_version, "2025.06");
	modal_token_take(&provider->token, "token-one");
	struct played p = play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	CLEANUP(free_text) char *without = xstrdup(p.result.image);
	played_free(&p);
	want.rent.steps = steps;
	want.rent.step_count = 2;
	p = play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_string_not_equal(p.result.image, without);
	UNPACKED(ImageGetOrCreateRequest, i, &p.call[0], image_get_or_create_request);
	assert_int_equal(i->image->n_dockerfile_commands, 9);
	assert_string_equal(i->image->dockerfile_commands[2],
			    "COPY /.burst-step-0 /usr/local/lib/burst/setup");
	assert_string_equal(i->image->dockerfile_commands[3], "RUN sh /usr/local/lib/burst/setup");
	assert_string_equal(i->image->dockerfile_commands[4],
			    "COPY /.burst-step-1 /usr/local/lib/burst/weights");
	assert_string_equal(i->image->dockerfile_commands[6],
			    "COPY /.burst-agent /usr/local/lib/burst/0123");
	assert_int_equal(i->image->n_context_files, 3);
	assert_string_equal(i->image->context_files[1]->filename, "/.burst-step-1");
	assert_memory_equal(i->image->context_files[1]->data.data, "echo two\n", 9);
	assert_string_equal(i->image->context_files[2]->filename, "/.burst-agent");
	played_free(&p);
}

static void test_image_is_known(void **state)
{
	(void)state;
	struct op_want want = renting();
	struct answer gone = {"ImageFromId", 5, NULL, "no such image"};
	struct answer there = {"ImageFromId", 0, NULL, NULL};
	struct answer nothing = {"SandboxCreate", 5, NULL, "not found"};

	COPY_TEXT(provider->app_id, "ap-1");
	COPY_TEXT(provider->builder_version, "2025.06");
	modal_token_take(&provider->token, "token-one");
	struct played p = play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	char known[IMAGE_MAX];
	COPY_TEXT(known, p.result.image);
	played_free(&p);
	want.rent.known_image = known;
	/* one small call, and at the create none */
	p = play(OP_IMAGE, &want, &there, 1);
	UNPACKED(ImageFromIdRequest, f, &p.call[0], image_from_id_request);
	assert_string_equal(f->image_id, "im-1");
	assert_string_equal(p.result.image, known);
	assert_string_equal(str_text(&p.said), "");
	played_free(&p);
	p = play(OP_RENT, &want,
		 (const struct answer[]){SECRET, {"SandboxCreate", 0, &created, NULL}}, 2);
	assert_string_equal(p.result.pods[0].id, "sb-1");
	assert_string_equal(p.result.image, known);
	played_free(&p);
	/* it is gone: built again, before the run, or when a create does not find it */
	p = play(OP_IMAGE, &want, (const struct answer[]){gone, IMAGE}, 2);
	assert_string_equal(p.result.image, known);
	played_free(&p);
	p = play(
		OP_RENT, &want,
		(const struct answer[]){
			SECRET, nothing, gone, IMAGE, SECRET, {"SandboxCreate", 0, &created, NULL}},
		6);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(p.result.image, known);
	played_free(&p);
	/* but once only; and what else is not found is no matter of the image */
	p = play(OP_RENT, &want,
		 (const struct answer[]){SECRET, nothing, gone, IMAGE, SECRET, nothing}, 6);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	played_free(&p);
	p = play(OP_RENT, &want, (const struct answer[]){SECRET, nothing, there}, 3);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(p.err.msg, "create: SandboxCreate: not found"));
	played_free(&p);
	p = play(OP_IMAGE, &want, (const struct answer[]){{"ImageFromId", -1, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	played_free(&p);
	p = play(OP_IMAGE, &want,
		 (const struct answer[]){{"ImageFromId", 12, NULL, "no such call"}, IMAGE}, 2);
	assert_int_equal(p.last, OP_DONE);
	played_free(&p);
	/* of another recipe, or no image of ours at all */
	static const char *const others[] = {"", "im-1", "im-1 ", "im-1 0123", "\n", "im-1;x 0123"};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		want.rent.known_image = others[i];
		p = play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
		assert_int_equal(p.last, OP_DONE);
		played_free(&p);
	}
	want.rent.known_image = known;
	want.rent.packages = packages;
	p = play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	assert_string_not_equal(p.result.image, known);
	played_free(&p);
}

/* ---- sandboxes that exist ---- */

static Modal__Client__SandboxTag ours[] = {
	{.base = MESSAGE(sandbox_tag), .tag_name = (char *)"burst", .tag_value = (char *)"1"},
	{.base = MESSAGE(sandbox_tag),
	 .tag_name = (char *)"burst-machine",
	 .tag_value = (char *)"m1"},
	{.base = MESSAGE(sandbox_tag), .tag_name = (char *)"burst-run", .tag_value = (char *)"r1"},
	{.base = MESSAGE(sandbox_tag),
	 .tag_name = (char *)"burst-attempt",
	 .tag_value = (char *)"00112233"},
	{.base = MESSAGE(sandbox_tag),
	 .tag_name = (char *)"burst-hard-end",
	 .tag_value = (char *)"1800000000"},
};
static Modal__Client__SandboxTag *our_tags[] = {&ours[0], &ours[1], &ours[2], &ours[3], &ours[4]};

static Modal__Client__SandboxInfo row(const char *id, double created_at, size_t tags,
				      Modal__Client__TaskInfo *task)
{
	return (Modal__Client__SandboxInfo){.base = MESSAGE(sandbox_info),
					    .id = (char *)id,
					    .has_created_at = true,
					    .created_at = created_at,
					    .n_tags = tags,
					    .tags = our_tags,
					    .task_info = task};
}

static const Modal__Client__SandboxGetTaskIdResponse a_task = {
	.base = MESSAGE(sandbox_get_task_id_response), .task_id = (char *)"ta-1"};
static const Modal__Client__SandboxGetTaskIdResponse ended_without_a_task = {
	.base = MESSAGE(sandbox_get_task_id_response), .task_result = &terminated};

/* What a first listing asks for beside the list was asked. */
static void lists_alone(void)
{
	COPY_TEXT(provider->app_id, "ap-1");
	provider->has_swept = true;
}

static void test_list(void **state)
{
	(void)state;
	lists_alone();
	Modal__Client__GPUConfig l40s = {.base = MESSAGE(gpuconfig), .gpu_type = (char *)"L40S"};
	Modal__Client__TaskInfo running = {.base = MESSAGE(task_info),
					   .has_started_at = true,
					   .started_at = 150.5,
					   .gpu_config = &l40s};
	Modal__Client__TaskInfo over = {.base = MESSAGE(task_info),
					.has_started_at = true,
					.started_at = 100,
					.has_finished_at = true,
					.finished_at = 120,
					.result = &failure};
	Modal__Client__SandboxInfo rows[] = {
		row("sb-new", 200, 5, NULL), row("sb-run", 150, 5, &running),
		row("sb-half", 140, 4, NULL), row("sb-over", 100, 5, &over),
		row("sb-stranger", 90, 0, NULL)};
	Modal__Client__SandboxInfo *first[] = {&rows[0], &rows[1], &rows[2]},
				   *second[] = {&rows[2], &rows[3], &rows[4]},
				   *third[] = {&rows[4]};
	Modal__Client__SandboxListResponse page1 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 3, .sandboxes = first};
	Modal__Client__SandboxListResponse page2 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 3, .sandboxes = second};
	Modal__Client__SandboxListResponse page3 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = third};
	Modal__Client__TunnelData web = {.base = MESSAGE(tunnel_data),
					 .unencrypted_host = (char *)"w.modal.host",
					 .has_unencrypted_port = true,
					 .unencrypted_port = 1,
					 .has_container_port = true,
					 .container_port = 80};
	Modal__Client__TunnelData ssh = {.base = MESSAGE(tunnel_data),
					 .host = (char *)"t.modal.host",
					 .has_port = true,
					 .port = 443,
					 .unencrypted_host = (char *)"r435.modal.host",
					 .has_unencrypted_port = true,
					 .unencrypted_port = 34797,
					 .has_container_port = true,
					 .container_port = 22};
	Modal__Client__TunnelData *both[] = {&web, &ssh};
	Modal__Client__GenericResult late = {
		.base = MESSAGE(generic_result), .has_status = true, .status = 4};
	Modal__Client__SandboxGetTunnelsResponse not_yet = {
		.base = MESSAGE(sandbox_get_tunnels_response), .result = &late};
	Modal__Client__SandboxGetTunnelsResponse up = {
		.base = MESSAGE(sandbox_get_tunnels_response),
		.result = &success,
		.n_tunnels = 2,
		.tunnels = both};
#define LIST(page)                                                                                 \
	{                                                                                          \
		"SandboxListV2", 0, page, NULL                                                     \
	}
#define TASK(answer)                                                                               \
	{                                                                                          \
		"SandboxGetTaskId", 0, answer, NULL                                                \
	}
	const struct answer boots[] = {TOKEN,        LIST(&page1),
				       LIST(&page2), LIST(&page3),
				       TASK(NULL),   {"SandboxGetTunnels", 0, &not_yet, NULL}};
	struct played p = play(OP_LIST, NULL, boots, 6);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 3);
	const struct pod_view *v = p.result.pods;
	assert_string_equal(v[0].id, "sb-new");
	assert_int_equal(v[0].state, POD_STATE_QUEUED);
	assert_int_equal(v[0].created_at_s, 200);
	assert_string_equal(v[0].marker.machine, "m1");
	assert_int_equal(v[0].marker.hard_end_s, 1800000000);
	assert_string_equal(v[1].id, "sb-run");
	assert_int_equal(v[1].state, POD_STATE_RUNNING);
	assert_string_equal(v[1].gpu, "L40S");
	assert_int_equal(v[1].port, 0);
	assert_string_equal(v[2].id, "sb-over");
	assert_int_equal(v[2].state, POD_STATE_GONE);
	assert_non_null(strstr(v[2].detail, "its start script failed: no\\x0asuch tag"));
	UNPACKED(SandboxListRequest, l1, &p.call[1], sandbox_list_request);
	UNPACKED(SandboxListRequest, l2, &p.call[2], sandbox_list_request);
	UNPACKED(SandboxListRequest, l3, &p.call[3], sandbox_list_request);
	assert_false(l1->has_before_timestamp);
	assert_string_equal(l1->tags[0]->tag_name, "burst");
	assert_true(l2->before_timestamp > 140 && l2->before_timestamp < 140.001);
	assert_true(l3->before_timestamp > 90 && l3->before_timestamp < 90.001);
	played_free(&p);
	const struct answer is_up[] = {
		LIST(&page1), LIST(NULL), TASK(NULL), {"SandboxGetTunnels", 0, &up, NULL}};
	p = play(OP_LIST, NULL, is_up, 4);
	assert_string_equal(p.result.pods[1].host, "r435.modal.host");
	assert_int_equal(p.result.pods[1].port, 34797);
	assert_string_equal(p.result.pods[1].user, "root");
	played_free(&p);
	p = play(OP_LIST, NULL, is_up, 3); /* it is known now */
	assert_int_equal(p.result.pods[1].port, 34797);
	played_free(&p);
	/* a listing that fails in the middle is no listing; a tunnel that fails is just not there
	 * yet */
	p = play(OP_LIST, NULL,
		 (const struct answer[]){LIST(&page1), {"SandboxListV2", 14, NULL, NULL}}, 2);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	assert_int_equal(p.result.pod_count, 0);
	played_free(&p);
	memset(provider->addresses, 0, sizeof(provider->addresses));
	p = play(
		OP_LIST, NULL,
		(const struct answer[]){
			LIST(&page1), LIST(NULL), TASK(NULL), {"SandboxGetTunnels", 5, NULL, NULL}},
		4);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	played_free(&p);
	/* rows that cannot be paged past, or named */
	Modal__Client__SandboxInfo timeless = row("sb-x", 0, 5, NULL),
				   nameless = row("../x", 50, 5, NULL), *odd[] = {&timeless},
				   *odder[] = {&nameless};
	Modal__Client__SandboxListResponse page4 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = odd};
	Modal__Client__SandboxListResponse page5 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = odder};
	p = play(OP_LIST, NULL, (const struct answer[]){LIST(&page4)}, 1);
	assert_int_equal(p.last, OP_FAILED);
	played_free(&p);
	p = play(OP_LIST, NULL, (const struct answer[]){LIST(&page5)}, 1);
	assert_int_equal(p.last, OP_FAILED);
	played_free(&p);
}

static void forget_known(void)
{
	memset(provider->known, 0, sizeof(provider->known));
	provider->next_known = 0;
}

/* That a sandbox runs may be told by its row in other ways, or by its having an address alone. */
static void test_rows_that_do_not_say_when_it_started(void **state)
{
	(void)state;
	lists_alone();
	Modal__Client__TunnelData ssh = {.base = MESSAGE(tunnel_data),
					 .unencrypted_host = (char *)"r435.modal.host",
					 .has_unencrypted_port = true,
					 .unencrypted_port = 34797,
					 .has_container_port = true,
					 .container_port = 22};
	Modal__Client__TunnelData *tunnels[] = {&ssh};
	Modal__Client__GenericResult late = {
		.base = MESSAGE(generic_result), .has_status = true, .status = 4};
	Modal__Client__SandboxGetTunnelsResponse not_yet = {
		.base = MESSAGE(sandbox_get_tunnels_response), .result = &late};
	Modal__Client__SandboxGetTunnelsResponse up = {
		.base = MESSAGE(sandbox_get_tunnels_response),
		.result = &success,
		.n_tunnels = 1,
		.tunnels = tunnels};
	Modal__Client__TaskInfo task = {.base = MESSAGE(task_info), .id = (char *)"ta-1"};
	Modal__Client__SandboxInfo ready = row("sb-ready", 400, 5, NULL),
				   shown = row("sb-shown", 300, 5, NULL),
				   queued = row("sb-queued", 200, 5, NULL),
				   scheduled = row("sb-scheduled", 100, 5, &task);
	Modal__Client__SandboxInfo *rows[] = {&ready, &shown, &queued, &scheduled},
				   *one[] = {&scheduled}, *other[] = {&queued};
	Modal__Client__SandboxListResponse page = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 4, .sandboxes = rows};
	Modal__Client__SandboxListResponse page1 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = one};
	Modal__Client__SandboxListResponse page2 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = other};

	ready.has_ready_at = true;
	ready.ready_at = 410;
	shown.n_tunnels = 1;
	shown.tunnels = tunnels;
	/* the ready one and the scheduled one are asked for theirs; the queued one has none */
	struct played p = play(OP_LIST, NULL,
			       (const struct answer[]){TOKEN,
						       LIST(&page),
						       LIST(NULL),
						       TASK(NULL),
						       {"SandboxGetTunnels", 0, &not_yet, NULL},
						       {"SandboxGetTunnels", 0, &not_yet, NULL}},
			       6);
	assert_int_equal(p.last, OP_DONE);
	UNPACKED(SandboxGetTaskIdRequest, q, &p.call[3], sandbox_get_task_id_request);
	UNPACKED(SandboxGetTunnelsRequest, t1, &p.call[4], sandbox_get_tunnels_request);
	UNPACKED(SandboxGetTunnelsRequest, t2, &p.call[5], sandbox_get_tunnels_request);
	assert_string_equal(q->sandbox_id, "sb-queued");
	assert_string_equal(t1->sandbox_id, "sb-ready");
	assert_string_equal(t2->sandbox_id, "sb-scheduled");
	assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
	assert_int_equal(p.result.pods[1].state, POD_STATE_RUNNING);
	assert_int_equal(p.result.pods[1].port, 34797);
	assert_int_equal(p.result.pods[2].state, POD_STATE_QUEUED);
	assert_int_equal(p.result.pods[3].state, POD_STATE_CREATING);
	played_free(&p);
	forget_known();
	/* each no more often than every few seconds */
	p = play(OP_LIST, NULL,
		 (const struct answer[]){
			 LIST(&page1), LIST(NULL), {"SandboxGetTunnels", 0, &not_yet, NULL}},
		 3);
	assert_int_equal(p.last, OP_DONE);
	played_free(&p);
	p = play(OP_LIST, NULL, (const struct answer[]){LIST(&page1), LIST(NULL)}, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	played_free(&p);
	provider->known[0].asked_ms -= 60000;
	p = play(OP_LIST, NULL,
		 (const struct answer[]){
			 LIST(&page1), LIST(NULL), {"SandboxGetTunnels", 0, &up, NULL}},
		 3);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
	assert_string_equal(p.result.pods[0].host, "r435.modal.host");
	played_free(&p);
	/* where nobody tells whether it has a task: after a while */
	forget_known();
	const struct answer untold = {"SandboxGetTaskId", 12, NULL, NULL};
	p = play(OP_LIST, NULL, (const struct answer[]){LIST(&page2), LIST(NULL), untold}, 3);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	played_free(&p);
	provider->known[0].seen_ms -= 60000;
	p = play(OP_LIST, NULL,
		 (const struct answer[]){
			 LIST(&page2), LIST(NULL), untold, {"SandboxGetTunnels", 0, &up, NULL}},
		 4);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
	played_free(&p);
}

/* The list is of our app; the environment is looked through once. Where Modal has no SandboxListV2,
 * SandboxList does; where it refuses both, what is known is looked up by its id, and the answer
 * says that it is no list. */
static void test_lists_by_app(void **state)
{
	(void)state;
	Modal__Client__SandboxInfo mine = row("sb-1", 200, 5, NULL),
				   other = row("sb-2", 100, 5, NULL), *own[] = {&mine},
				   *both[] = {&mine, &other};
	Modal__Client__SandboxListResponse page = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = own};
	Modal__Client__SandboxListResponse all = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 2, .sandboxes = both};
	Modal__Client__SandboxWaitResponse over = {.base = MESSAGE(sandbox_wait_response),
						   .result = &failure};
	const struct answer none = LIST(NULL), v1_none = {"SandboxList", 0, NULL, NULL},
			    v1_page = {"SandboxList", 0, &page, NULL};
	const struct answer tunnels = {"SandboxGetTunnels", 5, NULL, NULL};

	mine.app_id = (char *)"ap-1";
	other.app_id = (char *)"ap-2";
	struct played p = play(OP_LIST, NULL,
			       (const struct answer[]){TOKEN,
						       APP,
						       LIST(&page),
						       none,
						       {"SandboxList", 0, &all, NULL},
						       v1_none,
						       TASK(NULL)},
			       7);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 2);
	assert_false(p.result.partial);
	UNPACKED(AppGetOrCreateRequest, a, &p.call[1], app_get_or_create_request);
	assert_false(a->has_object_creation_type);
	UNPACKED(SandboxListRequest, l1, &p.call[2], sandbox_list_request);
	UNPACKED(SandboxListRequest, l2, &p.call[4], sandbox_list_request);
	assert_string_equal(l1->app_id, "ap-1");
	assert_null(l2->app_id);
	assert_string_equal(l2->tags[0]->tag_name, "burst");
	played_free(&p);
	/* the next one is of the app alone, and another app's sandbox is no missing one */
	p = play(OP_LIST, NULL, (const struct answer[]){LIST(&page), none, TASK(NULL)}, 3);
	assert_int_equal(p.result.pod_count, 1);
	played_free(&p);
	/* an environment that is not to be listed is not asked for again */
	provider->has_swept = false;
	p = play(OP_LIST, NULL,
		 (const struct answer[]){LIST(&page),
					 none,
					 {"SandboxList", 9, NULL, "app_id is required"},
					 TASK(NULL)},
		 4);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 1);
	assert_true(provider->has_swept);
	played_free(&p);
	/* no SandboxListV2 */
	p = play(OP_LIST, NULL,
		 (const struct answer[]){
			 {"SandboxListV2", 12, NULL, NULL}, v1_page, v1_none, TASK(NULL)},
		 4);
	assert_int_equal(p.result.pod_count, 1);
	assert_false(p.result.partial);
	UNPACKED(SandboxListRequest, l3, &p.call[1], sandbox_list_request);
	assert_string_equal(l3->app_id, "ap-1");
	played_free(&p);
	/* neither: it lives, has a task, is asked for its address */
	p = play(OP_LIST, NULL,
		 (const struct answer[]){{"SandboxList", 9, NULL, "lists are off"},
					 {"SandboxWait", 0, NULL, NULL},
					 TASK(&a_task),
					 tunnels},
		 4);
	assert_int_equal(p.last, OP_DONE);
	assert_true(p.result.partial);
	assert_non_null(strstr(str_text(&p.result.text), "lists are off"));
	assert_non_null(strstr(str_text(&p.result.text), "SandboxWait"));
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	played_free(&p);
	/* what this handle has never seen is looked up when it is asked for */
	char *ids[] = {(char *)"sb-9", (char *)"../x", (char *)"sb-1", NULL};
	struct op_want want = {.ids = ids};
	p = play(OP_LIST, &want,
		 (const struct answer[]){{"SandboxList", 7, NULL, "no"},
					 {"SandboxWait", 0, &over, NULL},
					 {"SandboxWait", 0, &over, NULL}},
		 3);
	assert_int_equal(p.last, OP_DONE);
	assert_true(p.result.partial);
	assert_int_equal(p.result.pod_count, 2);
	assert_int_equal(p.result.pods[1].state, POD_STATE_GONE);
	played_free(&p);
	/* SandboxWait is refused as well: its task tells */
	Modal__Client__TaskInfo goes_on = {.base = MESSAGE(task_info),
					   .id = (char *)"ta-1",
					   .has_started_at = true,
					   .started_at = 150};
	Modal__Client__TaskInfo has_ended = {.base = MESSAGE(task_info),
					     .id = (char *)"ta-1",
					     .has_started_at = true,
					     .started_at = 150,
					     .has_finished_at = true,
					     .finished_at = 170,
					     .result = &failure};
	Modal__Client__TaskGetInfoResponse lives = {.base = MESSAGE(task_get_info_response),
						    .info = &goes_on};
	Modal__Client__TaskGetInfoResponse ended = {.base = MESSAGE(task_get_info_response),
						    .info = &has_ended};
	const struct answer off = {"SandboxList", 9, NULL, "lists are off"},
			    no_wait = {"SandboxWait", 12, NULL, NULL};
	const struct {
		const char *name;
		struct answer task, info, then;
		int count;
		enum pod_state state;
	} by_task[] = {
		{"it runs",
		 TASK(&a_task),
		 {"TaskGetInfo", 0, &lives, NULL},
		 tunnels,
		 5,
		 POD_STATE_RUNNING},
		{"it has ended",
		 TASK(&a_task),
		 {"TaskGetInfo", 0, &ended, NULL},
		 tunnels,
		 4,
		 POD_STATE_GONE},
		{"it ended without a task", TASK(&ended_without_a_task), tunnels, tunnels, 3,
		 POD_STATE_GONE},
		{"nothing tells",
		 {"SandboxGetTaskId", 12, NULL, NULL},
		 {"SandboxGetTaskId", 12, NULL, NULL},
		 tunnels,
		 4,
		 POD_STATE_CREATING},
	};
	for (size_t i = 0; i < ARRAY_LEN(by_task); i++) {
		forget_known();
		modal_remember(provider, &(struct pod_view){.id = "sb-1",
							    .gpu = "L40S",
							    .state = POD_STATE_CREATING});
		const struct answer answers[] = {off, no_wait, by_task[i].task, by_task[i].info,
						 by_task[i].then};
		p = play(OP_LIST, NULL, answers, by_task[i].count);
		if (p.last != OP_DONE || p.result.pod_count != 1 ||
		    p.result.pods[0].state != by_task[i].state)
			fail_msg("%s: %d, state %d", by_task[i].name, p.last,
				 p.result.pod_count ? (int)p.result.pods[0].state : -1);
		played_free(&p);
	}
	/* a create whose answer was lost has no id that is known: it is looked for by its name */
	Modal__Client__SandboxGetFromNameResponse found = {
		.base = MESSAGE(sandbox_get_from_name_response), .sandbox_id = (char *)"sb-7"};
	const struct answer refused = {"SandboxList", 9, NULL, "lists are off"};
	struct op_want lost = renting();
	forget_known();
	COPY_TEXT(provider->builder_version, "2025.06");
	p = play(OP_RENT, &lost,
		 (const struct answer[]){IMAGE, SECRET, {"SandboxCreate", -1, NULL, NULL}}, 3);
	assert_int_equal(p.err.kind, ERR_AMBIGUOUS);
	played_free(&p);
	p = play(OP_LIST, NULL,
		 (const struct answer[]){refused, {"SandboxGetFromName", 5, NULL, NULL}}, 2);
	assert_int_equal(p.result.pod_count, 0);
	assert_true(p.result.partial);
	played_free(&p);
	p = play(OP_LIST, NULL,
		 (const struct answer[]){refused,
					 {"SandboxGetFromName", 0, &found, NULL},
					 {"SandboxWait", 0, NULL, NULL},
					 TASK(NULL)},
		 4);
	assert_int_equal(p.result.pod_count, 1);
	assert_string_equal(p.result.pods[0].id, "sb-7");
	assert_string_equal(p.result.pods[0].marker.attempt, "00112233");
	UNPACKED(SandboxGetFromNameRequest, by_name, &p.call[1], sandbox_get_from_name_request);
	assert_string_equal(by_name->sandbox_name, "burst-00112233");
	assert_string_equal(by_name->app_name, "burst");
	played_free(&p);
	/* an app that is made anew has another id; one that there is none of holds nothing */
	provider->lists_v1 = false;
	forget_known();
	p = play(OP_LIST, NULL,
		 (const struct answer[]){{"SandboxListV2", 5, NULL, "App not found"},
					 {"AppGetOrCreate", 5, NULL, NULL}},
		 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 0);
	assert_false(p.result.partial);
	played_free(&p);
	provider->has_swept = false;
	p = play(OP_LIST, NULL,
		 (const struct answer[]){{"AppGetOrCreate", 5, NULL, NULL},
					 {"SandboxList", 14, NULL, NULL}},
		 2);
	assert_int_equal(p.last, OP_FAILED);
	played_free(&p);
	p = play(OP_LIST, NULL, (const struct answer[]){APP, {"SandboxListV2", 14, NULL, NULL}}, 2);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	played_free(&p);
}

/* Made here, and waits for a GPU: each listing asks, until it has a task; a list without its row
 * says so as well. */
static void test_queued(void **state)
{
	(void)state;
	lists_alone();
	Modal__Client__SandboxInfo one = row("sb-1", 200, 5, NULL), *rows[] = {&one};
	Modal__Client__SandboxListResponse page = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = rows};
	Modal__Client__SandboxWaitResponse over = {.base = MESSAGE(sandbox_wait_response),
						   .result = &terminated};
	const struct answer none = LIST(NULL);
	struct op_want want = {.id = "sb-1"};
	static const struct {
		const char *name;
		int code;
		const Modal__Client__SandboxGetTaskIdResponse *message;
		enum pod_end end;
		bool preempted;
	} lasts[] = {
		{"no task", 0, &ended_without_a_task, POD_END_QUEUED, false},
		{"it was placed at the last moment", 0, &a_task, POD_END_OUTSIDE, false},
		{"nobody tells", 14, NULL, POD_END_OUTSIDE, false},
		{"neither task nor result", 0, NULL, POD_END_OUTSIDE, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(lasts); i++) {
		forget_known();
		modal_token_take(&provider->token, "token-one");
		modal_remember(
			provider,
			&(struct pod_view){.id = "sb-1", .gpu = "L40S", .state = POD_STATE_QUEUED});
		struct played p = play(OP_LIST, NULL,
				       (const struct answer[]){LIST(&page), none, TASK(NULL)}, 3);
		assert_int_equal(p.result.pods[0].state, POD_STATE_QUEUED);
		played_free(&p);
		/* an answer that does not come changes nothing */
		p = play(OP_LIST, NULL,
			 (const struct answer[]){
				 LIST(&page), none, {"SandboxGetTaskId", 14, NULL, NULL}},
			 3);
		assert_int_equal(p.result.pods[0].state, POD_STATE_QUEUED);
		played_free(&p);
		p = play(OP_RELEASE, &want,
			 (const struct answer[]){{"SandboxTerminate", 0, NULL, NULL}}, 1);
		played_free(&p);
		p = play(OP_LIST, NULL,
			 (const struct answer[]){
				 none,
				 {"SandboxWait", 0, &over, NULL},
				 {"SandboxGetTaskId", lasts[i].code, lasts[i].message, NULL}},
			 3);
		assert_int_equal(p.last, OP_DONE);
		if (p.result.pods[0].state != POD_STATE_GONE ||
		    p.result.pods[0].end != lasts[i].end ||
		    p.result.pods[0].preempted != lasts[i].preempted)
			fail_msg("%s: state %d, end %d, preempted %d", lasts[i].name,
				 p.result.pods[0].state, p.result.pods[0].end,
				 p.result.pods[0].preempted);
		played_free(&p);
		p = play(OP_LIST, NULL, &none, 1);
		assert_int_equal(p.result.pods[0].end, lasts[i].end);
		played_free(&p);
	}
	/* placed: it boots */
	forget_known();
	modal_remember(provider,
		       &(struct pod_view){.id = "sb-1", .gpu = "L40S", .state = POD_STATE_QUEUED});
	struct played p = play(
		OP_LIST, NULL,
		(const struct answer[]){
			LIST(&page), none, TASK(&a_task), {"SandboxGetTunnels", 5, NULL, NULL}},
		4);
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	played_free(&p);
	/* it is not asked again */
	p = play(OP_LIST, NULL, (const struct answer[]){LIST(&page), none}, 2);
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	played_free(&p);
}

/* The list has the living alone: what it lacks, and was there, is asked how it ended. */
static void test_ends(void **state)
{
	(void)state;
	lists_alone();
	static const struct {
		const char *name, *gpu;
		int status;
		bool released, preempted;
		enum pod_end end;
		const char *detail;
	} cases[] = {
		{"exit 0", "L40S", 1, false, false, POD_END_SCRIPT, "its start script ended"},
		{"exit 3", "L40S", 2, false, false, POD_END_SCRIPT, "its start script failed"},
		{"by us", "L40S", 3, true, false, POD_END_OUTSIDE, "it was terminated"},
		{"by Modal", "L40S", 3, false, true, POD_END_OUTSIDE,
		 "it was terminated, and not by burst: Modal reclaims sandboxes with GPUs when it "
		 "needs them"},
		{"without a GPU it is not taken back", NULL, 3, false, false, POD_END_OUTSIDE,
		 "it was terminated"},
		{"its timeout", "L40S", 4, false, false, POD_END_LIFETIME, "its lifetime ended"},
		{"the image or a mount", "L40S", 5, false, false, POD_END_SETUP,
		 "it could not be set up"},
		{"Modal's own", "L40S", 6, false, false, POD_END_VENDOR, "Modal's own failure"},
		{"idle", "L40S", 7, false, false, POD_END_IDLE, "it was idle too long"},
		{"memory", "L40S", 8, false, false, POD_END_MEMORY,
		 "it used more memory than it has: raise pod.memory_gb"},
		{"a word of the future", "L40S", 77, false, false, POD_END_UNKNOWN, "it ended"},
	};
	const struct answer none = {"SandboxListV2", 0, NULL, NULL};
	struct op_want want = {.id = "sb-1"};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Modal__Client__TaskInfo task = {.base = MESSAGE(task_info),
						.has_started_at = true,
						.started_at = 150.5,
						.gpu_type = (char *)cases[i].gpu};
		Modal__Client__SandboxInfo one = row("sb-1", 150, 5, &task), *rows[] = {&one};
		Modal__Client__SandboxListResponse page = {.base = MESSAGE(sandbox_list_response),
							   .n_sandboxes = 1,
							   .sandboxes = rows};
		Modal__Client__GenericResult result = {.base = MESSAGE(generic_result),
						       .has_status = true,
						       .status = cases[i].status,
						       .has_exitcode = true,
						       .exitcode = cases[i].status == 2 ? 3 : 0};
		Modal__Client__SandboxWaitResponse over = {.base = MESSAGE(sandbox_wait_response),
							   .result = &result};
		CLEANUP(free_text)
		char *detail = xasprintf("%s%s", cases[i].detail,
					 cases[i].status == 2 ? " (exit code 3)" : "");
		memset(provider->known, 0, sizeof(provider->known));
		modal_token_take(&provider->token, "token-one");
		struct played p =
			play(OP_LIST, NULL,
			     (const struct answer[]){
				     LIST(&page), none, {"SandboxGetTunnels", 5, NULL, NULL}},
			     3);
		assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
		assert_string_equal(p.result.pods[0].gpu, cases[i].gpu ? cases[i].gpu : "");
		played_free(&p);
		if (cases[i].released) {
			p = play(OP_RELEASE, &want,
				 (const struct answer[]){{"SandboxTerminate", 0, NULL, NULL}}, 1);
			played_free(&p);
		}
		/* it lingers: not listed, and not over either */
		p = play(OP_LIST, NULL,
			 (const struct answer[]){none,
						 {"SandboxWait", 0, NULL, NULL},
						 {"SandboxGetTunnels", 5, NULL, NULL}},
			 3);
		assert_int_equal(p.result.pod_count, 1);
		assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
		played_free(&p);
		/* an answer that did not come is no end */
		p = play(OP_LIST, NULL,
			 (const struct answer[]){none, {"SandboxWait", 14, NULL, NULL}}, 2);
		assert_int_equal(p.err.kind, ERR_TRANSIENT);
		played_free(&p);
		for (int again = 0; again < 2; again++) { /* it is asked for once */
			p = play(OP_LIST, NULL,
				 (const struct answer[]){none, {"SandboxWait", 0, &over, NULL}},
				 again ? 1 : 2);
			assert_int_equal(p.result.pod_count, 1);
			const struct pod_view *v = &p.result.pods[0];
			if (v->state != POD_STATE_GONE || v->end != cases[i].end ||
			    v->preempted != cases[i].preempted || strcmp(v->detail, detail))
				fail_msg("%s: state %d, end %d, preempted %d, \"%s\"",
					 cases[i].name, v->state, v->end, v->preempted, v->detail);
			assert_string_equal(v->marker.attempt, "00112233");
			played_free(&p);
		}
		p = play(OP_INSPECT, &want,
			 (const struct answer[]){{"SandboxWait", 0, &over, NULL}}, 1);
		assert_int_equal(p.result.pods[0].preempted, cases[i].preempted);
		played_free(&p);
	}
	/* one that was made here and never listed; who knows of no such sandbox proves nothing */
	forget_known();
	modal_remember(provider, &(struct pod_view){
					 .id = "sb-1", .gpu = "L40S", .state = POD_STATE_CREATING});
	struct played p = play(OP_LIST, NULL,
			       (const struct answer[]){none, {"SandboxWait", 5, NULL, NULL}}, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 0);
	played_free(&p);
	p = play(OP_LIST, NULL, &none, 1);
	played_free(&p);
}

/* Modal gives a better GPU than was asked for without a word. */
static void test_gpu_really_got(void **state)
{
	(void)state;
	lists_alone();
	Modal__Client__GPUConfig asked = {.base = MESSAGE(gpuconfig), .gpu_type = (char *)"H100"};
	Modal__Client__TaskInfo task = {.base = MESSAGE(task_info), .gpu_config = &asked};
	Modal__Client__SandboxInfo one = row("sb-1", 150, 5, &task), *rows[] = {&one};
	Modal__Client__SandboxListResponse page = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = rows};
	static const struct {
		const char *type, *want;
	} cases[] = {{"H200", "H200 SXM"},
		     {"H100", "H100 SXM"},
		     {NULL, "H100 SXM"},
		     {"H500-NEW", "H500-NEW"}};

	modal_token_take(&provider->token, "token-one");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		task.gpu_type = (char *)cases[i].type;
		struct played p =
			play(OP_LIST, NULL,
			     (const struct answer[]){
				     LIST(&page), {"SandboxListV2", 0, NULL, NULL}, TASK(NULL)},
			     3);
		assert_string_equal(p.result.pods[0].gpu, cases[i].want);
		played_free(&p);
	}
}

static void test_inspect(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1"};
	Modal__Client__SandboxWaitResponse ended = {.base = MESSAGE(sandbox_wait_response),
						    .result = &terminated};
	Modal__Client__GenericResult zero = {.base = MESSAGE(generic_result), .has_status = true};
	Modal__Client__SandboxWaitResponse goes_on = {.base = MESSAGE(sandbox_wait_response),
						      .result = &zero};
	Modal__Client__SandboxGetTaskIdResponse task = {
		.base = MESSAGE(sandbox_get_task_id_response), .task_id = (char *)"ta-1"};
	Modal__Client__SandboxGetTaskIdResponse never = {
		.base = MESSAGE(sandbox_get_task_id_response), .task_result = &failure};
	const struct {
		const char *name;
		struct answer answers[3];
		int count;
		enum pod_state state;
	} cases[] = {
		{"ended", {{"SandboxWait", 0, &ended, NULL}}, 1, POD_STATE_GONE},
		{"forgotten", {{"SandboxWait", 5, NULL, NULL}}, 1, POD_STATE_GONE},
		{"queued",
		 {{"SandboxWait", 0, NULL, NULL}, {"SandboxGetTaskId", 0, NULL, NULL}},
		 2,
		 POD_STATE_QUEUED},
		{"ended before it had a machine",
		 {{"SandboxWait", 0, NULL, NULL}, {"SandboxGetTaskId", 0, &never, NULL}},
		 2,
		 POD_STATE_GONE},
		{"runs",
		 {{"SandboxWait", 0, &goes_on, NULL},
		  {"SandboxGetTaskId", 0, &task, NULL},
		  {"SandboxGetTunnels", 0, NULL, NULL}},
		 3,
		 POD_STATE_RUNNING},
	};
	modal_token_take(&provider->token, "token-one");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct played p = play(OP_INSPECT, &want, cases[i].answers, cases[i].count);
		if (p.last != OP_DONE || p.result.pod_count != 1 ||
		    p.result.pods[0].state != cases[i].state || p.err.kind)
			fail_msg("%s: %d %s", cases[i].name, p.last, p.err.msg);
		played_free(&p);
	}
	struct played p = play(OP_INSPECT, &want,
			       (const struct answer[]){{"SandboxWait", 14, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	played_free(&p);
	static const char *const none[] = {"", "sb-", "ta-1", "sb-1/../x",
					   "sb-0123456789012345678901234567890123456789"};
	static const enum op_kind kinds[] = {OP_INSPECT, OP_RELEASE, OP_LOGS, OP_BILLING};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
			COPY_TEXT(want.id, none[i]);
			p = play(kinds[k], &want, NULL, 0);
			assert_int_equal(p.err.kind, ERR_REFUSED);
			played_free(&p);
		}
}

static void test_release(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1"};
	static const struct {
		int code;
		enum op_next last;
		enum err_kind kind;
	} cases[] = {{0, OP_DONE, 0},
		     {5, OP_DONE, 0},
		     {14, OP_FAILED, ERR_TRANSIENT},
		     {16, OP_FAILED, ERR_CREDENTIALS},
		     {-1, OP_FAILED, ERR_NETWORK}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		modal_token_take(&provider->token, "token-one");
		const struct answer answers[] = {{"SandboxTerminate", cases[i].code, NULL, NULL},
						 {"AuthTokenGet", 16, NULL, NULL}};
		struct played p = play(OP_RELEASE, &want, answers, 1 + (cases[i].code == 16));
		assert_int_equal(p.last, cases[i].last);
		assert_int_equal(p.err.kind, cases[i].kind);
		assert_int_equal(p.result.release,
				 cases[i].code == 5 ? RELEASE_ABSENT : RELEASE_TAKEN);
		assert_int_equal(p.call[0].class, CALL_RELEASE);
		assert_true(p.call[0].may_repeat);
		played_free(&p);
	}
}

/* A call that is sent again bears the token that it was made with, which may be over by then: it is
 * made again with a new one, once, and the rest of the operation goes on. */
static void test_token_is_over(void **state)
{
	(void)state;
	struct op_want want = renting();
	COPY_TEXT(provider->app_id, "ap-1");
	COPY_TEXT(provider->builder_version, "2025.06");
	modal_token_take(&provider->token, "token-one");
	const struct answer answers[] = {IMAGE,
					 {"SecretGetOrCreate", 16, NULL, NULL},
					 {"AuthTokenGet", 0, &second_token, NULL},
					 SECRET,
					 {"SandboxCreate", 0, &created, NULL}};
	struct played p = play(OP_RENT, &want, answers, 5);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(header_of(&p.call[1], "x-modal-auth-token"), "token-one");
	assert_string_equal(header_of(&p.call[3], "x-modal-auth-token"), "token-two");
	assert_string_equal(header_of(&p.call[4], "x-modal-auth-token"), "token-two");
	assert_int_equal(p.call[3].body.len, p.call[1].body.len);
	assert_memory_equal(p.call[3].body.s, p.call[1].body.s, p.call[1].body.len);
	assert_int_equal(p.call[3].header_count, p.call[1].header_count);
	played_free(&p);
	/* also of the very call that the first token was fetched for */
	modal_token_free(&provider->token);
	struct op_want release = {.id = "sb-1"};
	p = play(OP_RELEASE, &release,
		 (const struct answer[]){{"AuthTokenGet", 0, &first_token, NULL},
					 {"SandboxTerminate", 16, NULL, NULL},
					 {"AuthTokenGet", 0, &second_token, NULL},
					 {"SandboxTerminate", 0, NULL, NULL}},
		 4);
	assert_int_equal(p.last, OP_DONE);
	played_free(&p);
	/* a create was not carried out either; lost when it is made again, it may have been */
	p = play(OP_RENT, &want,
		 (const struct answer[]){IMAGE,
					 SECRET,
					 {"SandboxCreate", 16, NULL, NULL},
					 {"AuthTokenGet", 0, &first_token, NULL},
					 {"SandboxCreate", -1, NULL, NULL}},
		 5);
	assert_int_equal(p.err.kind, ERR_AMBIGUOUS);
	assert_false(p.call[4].may_repeat);
	played_free(&p);
	/* refused with the new one as well: it is the account's own that is not taken */
	want = (struct op_want){.id = "sb-1"};
	p = play(OP_RELEASE, &want,
		 (const struct answer[]){{"SandboxTerminate", 16, NULL, NULL},
					 {"AuthTokenGet", 0, &second_token, NULL},
					 {"SandboxTerminate", 16, NULL, NULL}},
		 3);
	assert_int_equal(p.err.kind, ERR_CREDENTIALS);
	played_free(&p);
}

static void test_logs(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1"};
	Modal__Client__TaskLogs one = {.base = MESSAGE(task_logs), .data = (char *)"sshd: hello"},
				*logs[] = {&one};
	Modal__Client__TaskLogsBatch batch = {
		.base = MESSAGE(task_logs_batch), .n_items = 1, .items = logs};
	modal_token_take(&provider->token, "token-one");
	struct answer answers[] = {
		streamed("SandboxGetLogs", 0, (const void *const[]){&batch}, 1),
		{"SandboxGetLogs", 0, NULL, NULL},
		streamed("SandboxGetLogs", 14, (const void *const[]){&batch, &batch}, 2)};
	struct played p = play(OP_LOGS, &want, answers, 3);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(str_text(&p.result.text), "sshd: hello\nsshd: hellosshd: hello\n");
	played_free(&p);
	free(answers[0].stream);
	free(answers[2].stream);
	p = play(OP_LOGS, &want, (const struct answer[]){{"SandboxGetLogs", 5, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	played_free(&p);
}

/* ---- what it used ---- */

static Modal__Client__TextEntry some_rates[] = {
	{.base = MESSAGE(text_entry), .key = (char *)"GPU H100", .value = (char *)"3.96"},
	{.base = MESSAGE(text_entry), .key = (char *)"GPU H200", .value = (char *)"4.5396"},
	{.base = MESSAGE(text_entry), .key = (char *)"CPU", .value = (char *)"0.18"},
	{.base = MESSAGE(text_entry), .key = (char *)"Memory", .value = (char *)"0.036"},
};
static Modal__Client__TextEntry *rate_list[] = {&some_rates[0], &some_rates[1], &some_rates[2],
						&some_rates[3]};
static const Modal__Client__WorkspaceBillingRatesResponse rated = {
	.base = MESSAGE(workspace_billing_rates_response),
	.n_rates = ARRAY_LEN(rate_list),
	.rates = rate_list};
static const Modal__Client__SandboxGetTaskIdResponse had_task = {
	.base = MESSAGE(sandbox_get_task_id_response), .task_id = (char *)"ta-1"};
static Modal__Client__GPUConfig one_gpu = {
	.base = MESSAGE(gpuconfig), .has_count = true, .count = 1};

/* It ran for 100 s, long ago, from 01:59:10.25 on. */
static Modal__Client__TaskInfo task_times(void)
{
	return (Modal__Client__TaskInfo){.base = MESSAGE(task_info),
					 .has_started_at = true,
					 .started_at = 7150.25,
					 .has_finished_at = true,
					 .finished_at = 7250.25,
					 .gpu_config = &one_gpu};
}

/* A pod of 4 cores and 16 GB that was offered with an H100: 3.96 + 0.72 + 0.576 dollars an hour. */
enum { H100_POD = 5256000, H100_POD_100S = 146000 };
#define ASKED_TASK                                                                                 \
	{                                                                                          \
		"SandboxGetTaskId", 0, &had_task, NULL                                             \
	}
#define NO_USAGE                                                                                   \
	{                                                                                          \
		"SandboxGetResourceUsage", 12, NULL, NULL                                          \
	}
#define RATED                                                                                      \
	{                                                                                          \
		"WorkspaceBillingRates", 0, &rated, NULL                                           \
	}

static void test_billed_time(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1", .bill = {.price_microusd_h = H100_POD, .gpu = "H100"}};
	Modal__Client__TaskInfo times = task_times();
	Modal__Client__TaskGetInfoResponse over = {.base = MESSAGE(task_get_info_response),
						   .info = &times};
	Modal__Client__SandboxGetTaskIdResponse never = {
		.base = MESSAGE(sandbox_get_task_id_response), .task_result = &failure};

	modal_token_take(&provider->token, "token-one");
	const struct answer told[] = {ASKED_TASK, {"TaskGetInfo", 0, &over, NULL}, NO_USAGE};
	struct played p = play(OP_BILLING, &want, told, 3);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	assert_int_equal(p.result.billing.billed_ms, 100000);
	assert_true(p.result.billing.reported);
	assert_int_equal(p.result.billing.cost_microusd, 0); /* seconds alone */
	UNPACKED(TaskGetInfoRequest, asked, &p.call[1], task_get_info_request);
	assert_string_equal(asked->task_id, "ta-1");
	UNPACKED(SandboxGetResourceUsageRequest, of, &p.call[2],
		 sandbox_get_resource_usage_request);
	assert_string_equal(of->sandbox_id, "sb-1");
	played_free(&p);
	/* it runs on; it has no machine; it never had one, or its container never began */
	times.has_finished_at = false;
	times.finished_at = 0;
	p = play(OP_BILLING, &want, told, 2);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	played_free(&p);
	p = play(OP_BILLING, &want, (const struct answer[]){{"SandboxGetTaskId", 0, NULL, NULL}},
		 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	played_free(&p);
	p = play(OP_BILLING, &want, (const struct answer[]){{"SandboxGetTaskId", 0, &never, NULL}},
		 1);
	assert_int_equal(p.last, OP_DONE);
	assert_true(p.result.billing.reported && p.result.billing.billed_ms == 0);
	played_free(&p);
	times.result = &failure;
	times.has_started_at = false;
	times.started_at = 0;
	p = play(OP_BILLING, &want, told, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_true(p.result.billing.reported && p.result.billing.billed_ms == 0);
	played_free(&p);
	/* what may be asked again is not taken for "no figure" */
	times = task_times();
	const struct answer hiccup[] = {ASKED_TASK,
					{"TaskGetInfo", 0, &over, NULL},
					{"SandboxGetResourceUsage", 14, NULL, NULL}};
	p = play(OP_BILLING, &want, hiccup, 3);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	played_free(&p);
}

static void test_billed_use(void **state)
{
	(void)state;
	static const struct {
		const char *name, *offered, *got;
		double core_s, gib_s, gpu_s;
		int64_t cost, beside;
	} cases[] = {
		{"what was asked for", "H100", "H100", 400, 1600, 100, 20000 + 16000 + 110000, 0},
		{"a better GPU at its price", "H100", "H200", 400, 1600, 100,
		 20000 + 16000 + 110000, 0},
		{"by whatever it had, where the ledger does not say", "", "H200", 400, 1600, 100,
		 20000 + 16000 + 126100, 16100},
		{"more memory than was asked for", "H100", "H100", 400, 3200, 100,
		 20000 + 32000 + 110000, 16000},
		{"a GPU for longer than it lived: nothing excuses that", "H100", "H100", 400, 1600,
		 200, 20000 + 16000 + 220000, 0},
		{"a part of it so far", "H100", "H100", 40, 160, 10, 2000 + 1600 + 11000, 0},
		{"no GPU", "none", "", 400, 1600, 0, 36000, 0},
		{"no rate for it", "B200", "B200", 400, 1600, 100, 0, 0},
		{"nothing was counted", "H100", "", 0, 0, 0, 0, 0},
		{"absurd", "H100", "H100", 1e10, 1e10, 1e10, 0, 0},
	};

	modal_token_take(&provider->token, "token-one");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = {.id = "sb-1", .bill = {.price_microusd_h = H100_POD}};
		Modal__Client__TaskInfo times = task_times();
		Modal__Client__TaskGetInfoResponse over = {.base = MESSAGE(task_get_info_response),
							   .info = &times};
		Modal__Client__SandboxGetResourceUsageResponse use = {
			.base = MESSAGE(sandbox_get_resource_usage_response),
			.has_cpu_core_nanosecs = true,
			.cpu_core_nanosecs = (uint64_t)(cases[i].core_s * 1e9),
			.has_mem_gib_nanosecs = true,
			.mem_gib_nanosecs = (uint64_t)(cases[i].gib_s * 1e9),
			.has_gpu_nanosecs = true,
			.gpu_nanosecs = (uint64_t)(cases[i].gpu_s * 1e9),
			.gpu_type = (char *)cases[i].got,
		};
		bool counted = cases[i].core_s > 0 && cases[i].core_s < 1e9;
		const struct answer told[] = {ASKED_TASK,
					      {"TaskGetInfo", 0, &over, NULL},
					      {"SandboxGetResourceUsage", 0, &use, NULL},
					      RATED};
		COPY_TEXT(want.bill.gpu, cases[i].offered);
		struct played p = play(OP_BILLING, &want, told, counted ? 4 : 3);
		if (p.last != OP_DONE || p.result.billing.cost_microusd != cases[i].cost ||
		    p.result.billing.beside_microusd != cases[i].beside)
			fail_msg("%s: cost %lld, want %lld; beside %lld, want %lld", cases[i].name,
				 (long long)p.result.billing.cost_microusd,
				 (long long)cases[i].cost,
				 (long long)p.result.billing.beside_microusd,
				 (long long)cases[i].beside);
		assert_int_equal(p.result.billing.billed_ms, 100000);
		assert_int_equal(!p.result.billing.beside_for[0], !cases[i].beside);
		if (!strcmp(cases[i].offered, "B200"))
			assert_non_null(
				strstr(p.result.billing.note, "providers.modal.gpu_prices"));
		played_free(&p);
	}
}

/* The config's prices stand over Modal's, whichever is higher; where Modal's may not be seen, its
 * defaults. */
static void test_billed_at_own_rates(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1", .bill = {.gpu = "H100"}};
	Modal__Client__TaskInfo times = task_times();
	Modal__Client__TaskGetInfoResponse over = {.base = MESSAGE(task_get_info_response),
						   .info = &times};
	Modal__Client__SandboxGetResourceUsageResponse use = {
		.base = MESSAGE(sandbox_get_resource_usage_response),
		.has_cpu_core_nanosecs = true,
		.cpu_core_nanosecs = 400000000000,
		.has_gpu_nanosecs = true,
		.gpu_nanosecs = 100000000000,
		.gpu_type = (char *)"H100"};
	const struct answer told[] = {ASKED_TASK,
				      {"TaskGetInfo", 0, &over, NULL},
				      {"SandboxGetResourceUsage", 0, &use, NULL},
				      RATED};
	const struct answer closed[] = {
		ASKED_TASK, told[1], told[2], {"WorkspaceBillingRates", 7, NULL, NULL}};

	modal_token_take(&provider->token, "token-one");
	section_add_item(conf, "gpu_prices", "H100=1.80", "t");
	struct played p = play(OP_BILLING, &want, closed, 4);
	/* 0.15 an hour of a core */
	assert_int_equal(p.result.billing.cost_microusd, 50000 + 16667);
	played_free(&p);
	p = play(OP_BILLING, &want, told, 4);
	assert_int_equal(p.result.billing.cost_microusd, 50000 + 20000); /* Modal says 0.18 */
	played_free(&p);
	some_rates[2].value = (char *)"0.09";
	p = play(OP_BILLING, &want, told, 4);
	some_rates[2].value = (char *)"0.18";
	/* its word is as good when it is less */
	assert_int_equal(p.result.billing.cost_microusd, 50000 + 10000);
	played_free(&p);
	section_set_int(conf, "core_price", 90000, "t");
	p = play(OP_BILLING, &want, told, 4);
	assert_int_equal(p.result.billing.cost_microusd, 50000 + 10000);
	played_free(&p);
	p = play(OP_BILLING, &want,
		 (const struct answer[]){
			 ASKED_TASK, told[1], told[2], {"WorkspaceBillingRates", -1, NULL, NULL}},
		 4);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	played_free(&p);
}

static Modal__Client__Timestamp hours[] = {
	{.base = MESSAGE(timestamp), .has_seconds = true, .seconds = 3600},
	{.base = MESSAGE(timestamp), .has_seconds = true, .seconds = 7200},
	{.base = MESSAGE(timestamp), .has_seconds = true, .seconds = 10800}};

static Modal__Client__WorkspaceBillingReportItem report_row(const char *app_id, int hour,
							    const char *cost)
{
	return (Modal__Client__WorkspaceBillingReportItem){
		.base = MESSAGE(workspace_billing_report_item),
		.object_id = (char *)app_id,
		.interval = hour < 0 ? NULL : &hours[hour],
		.cost = (char *)cost};
}

static void test_billed_hours_of_the_app(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1"};
	Modal__Client__TaskInfo times = task_times();
	Modal__Client__TaskGetInfoResponse over = {
		.base = MESSAGE(task_get_info_response), .info = &times, .app_id = (char *)"ap-7"};
	Modal__Client__WorkspaceBillingReportItem rows[] = {report_row("ap-7", 0, "0.1200000000"),
							    report_row("ap-7", 1, "0.5000000000"),
							    report_row("ap-7", 2, "9"),
							    report_row("ap-8", 1, "7"),
							    report_row("ap-7", -1, "7"),
							    report_row("ap-7", 1, "seven"),
							    report_row(NULL, 1, NULL)};
	const void *all[ARRAY_LEN(rows)];
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		all[i] = &rows[i];

	modal_token_take(&provider->token, "token-one");
	struct answer told[] = {ASKED_TASK,
				{"TaskGetInfo", 0, &over, NULL},
				NO_USAGE,
				streamed("WorkspaceBillingReport", 0, all, ARRAY_LEN(rows))};
	struct played p = play(OP_BILLING, &want, told, 4);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(p.result.billing.note,
			    "Modal's report has $0.6200 for its app \"burst\" from 01:00 to 03:00 "
			    "UTC, with all else that ran in it");
	assert_int_equal(p.result.billing.cost_microusd, 0); /* it is no figure of this pod */
	assert_int_equal(p.result.billing.hour_count, 0);
	UNPACKED(WorkspaceBillingReportRequest, r, &p.call[3], workspace_billing_report_request);
	assert_string_equal(r->resolution, "h");
	assert_int_equal(r->start_timestamp->seconds, 3600);
	assert_int_equal(r->end_timestamp->seconds, 10800);
	assert_int_equal(r->n_app_ids, 1);
	assert_string_equal(r->app_ids[0], "ap-7");
	assert_true(p.call[3].stream);
	played_free(&p);
	free(told[3].stream);
	static const struct {
		int code;
		const char *note;
	} without[] = {{0, "Modal's report has no such hour of its app yet"},
		       {7, "Modal's hourly report is not open to this token"},
		       {12, "Modal's hourly report is not open to this token"},
		       {14, "Modal's hourly report is not available now"},
		       {-1, "Modal's hourly report is not available now"}};
	for (size_t i = 0; i < ARRAY_LEN(without); i++) {
		told[3] = (struct answer){"WorkspaceBillingReport", without[i].code, NULL, NULL};
		p = play(OP_BILLING, &want, told, 4);
		assert_int_equal(p.last, OP_DONE);
		assert_int_equal(p.err.kind, ERR_NONE);
		assert_string_equal(p.result.billing.note, without[i].note);
		assert_int_equal(p.result.billing.billed_ms, 100000);
		played_free(&p);
	}
	/* its first hour is not over: not asked for */
	times.started_at = (double)clock_wall_ms() / 1000 - 3;
	times.finished_at = times.started_at + 2;
	p = play(OP_BILLING, &want, told, 3);
	assert_int_equal(p.last, OP_DONE);
	assert_non_null(
		strstr(p.result.billing.note, "the hours of its app can be asked for from "));
	played_free(&p);
}

/* ---- volumes ---- */

static void test_volume(void **state)
{
	(void)state;
	static const struct {
		const char *name, *volume;
		bool create;
		int code, version;
		enum err_kind kind;
	} cases[] = {
		{"there", "tts-cache", false, 0, 2, 0},
		{"there, and would have been made", "tts-cache", true, 0, 2, 0},
		{"missing", "tts-cache", false, 5, 0, ERR_NOT_FOUND},
		{"not taken, for whatever reason", "tts-cache", true, 3, 0, ERR_REFUSED},
		{"of the first version", "tts-cache", true, 0, 1, ERR_CONFIG},
		{"of no version, which is the first", "tts-cache", false, 0, 0, ERR_CONFIG},
		{"named so that Modal would not have it", "two words", true, -3, 0, ERR_CONFIG},
		{"without a name", "", true, -3, 0, ERR_CONFIG},
	};
	modal_token_take(&provider->token, "token-one");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = {.volume = {.name = cases[i].volume,
						  .create = cases[i].create,
						  .size_gb = 20}};
		Modal__Client__VolumeMetadata meta = {.base = MESSAGE(volume_metadata),
						      .has_version = true,
						      .version = cases[i].version};
		Modal__Client__VolumeGetOrCreateResponse v = {
			.base = MESSAGE(volume_get_or_create_response),
			.volume_id = (char *)"vo-1",
			.metadata = &meta};
		struct played p = play(
			OP_VOLUME, &want,
			(const struct answer[]){{"VolumeGetOrCreate", cases[i].code, &v, NULL}},
			cases[i].code != -3);
		if (p.err.kind != cases[i].kind || (p.last == OP_DONE) == (cases[i].kind != 0))
			fail_msg("%s: %d %s", cases[i].name, p.last, p.err.msg);
		if (p.last == OP_DONE) {
			UNPACKED(VolumeGetOrCreateRequest, r, &p.call[0],
				 volume_get_or_create_request);
			assert_string_equal(p.result.volumes[0].id, "vo-1");
			assert_string_equal(p.result.volumes[0].name, "tts-cache");
			assert_int_equal(p.result.volumes[0].price_microusd_month, 20 * 90000);
			assert_int_equal(r->object_creation_type, 0);
			assert_int_equal(r->version, 0);
		}
		played_free(&p);
	}
	/* made when it is missing; then nothing more is asked, whatever is said */
	struct op_want want = {.volume = {.name = "tts-cache", .create = true}};
	Modal__Client__VolumeMetadata meta = {
		.base = MESSAGE(volume_metadata), .has_version = true, .version = 2};
	Modal__Client__VolumeGetOrCreateResponse v = {
		.base = MESSAGE(volume_get_or_create_response),
		.volume_id = (char *)"vo-1",
		.metadata = &meta};
	const struct answer made[] = {{"VolumeGetOrCreate", 5, NULL, NULL},
				      {"VolumeGetOrCreate", 0, &v, NULL}};
	struct played m = play(OP_VOLUME, &want, made, 2);
	assert_int_equal(m.last, OP_DONE);
	assert_int_equal(m.err.kind, ERR_NONE);
	UNPACKED(VolumeGetOrCreateRequest, create, &m.call[1], volume_get_or_create_request);
	assert_int_equal(create->object_creation_type, 1);
	assert_int_equal(create->version, 2);
	assert_string_equal(create->deployment_name, "tts-cache");
	played_free(&m);
	m = play(OP_VOLUME, &want,
		 (const struct answer[]){{"VolumeGetOrCreate", 5, NULL, NULL},
					 {"VolumeGetOrCreate", 5, NULL, "no environment"}},
		 2);
	assert_int_equal(m.last, OP_FAILED);
	assert_int_equal(m.err.kind, ERR_NOT_FOUND);
	played_free(&m);
	struct op_want gone = {.id = "vo-1"};
	struct played p = play(OP_VOLUME_REMOVE, &gone,
			       (const struct answer[]){{"VolumeDelete", 5, NULL, NULL}}, 1);
	assert_int_equal(p.last, OP_DONE);
	played_free(&p);
	COPY_TEXT(gone.id, "sb-1");
	p = play(OP_VOLUME_REMOVE, &gone, NULL, 0);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	played_free(&p);
}

#define BLOCK "HTTP/1.1 200 OK\r\nContent-Length: 8388608"

static void test_fetch(void **state)
{
	(void)state;
	char *urls[] = {(char *)"https://s3.example/a?sig=1", (char *)"https://s3.example/b?sig=2"},
	     *fresh[] = {(char *)"https://s3.example/c?sig=3"};
	Modal__Client__VolumeGetFile2Response two = {.base = MESSAGE(volume_get_file2_response),
						     .n_get_urls = 2,
						     .get_urls = urls,
						     .has_size = true,
						     .size = 8388608 + 100};
	Modal__Client__VolumeGetFile2Response rest = two,
					      over = {.base = MESSAGE(volume_get_file2_response),
						      .has_size = true,
						      .size = 50};
	struct op_want want = {.file = {.volume = {.id = "vo-1"},
					.path = "runs/r1/a.wav",
					.local = "/tmp/x",
					.offset = 0}};
	rest.n_get_urls = 1;
	rest.get_urls = fresh;
	modal_token_take(&provider->token, "token-one");
#define GET_FILE(m)                                                                                \
	{                                                                                          \
		"VolumeGetFile2", 0, m, NULL                                                       \
	}
	struct played p = play(OP_FETCH, &want,
			       (const struct answer[]){GET_FILE(&two),
						       {urls[0], 200, NULL, BLOCK},
						       {urls[1], 200, NULL,
							"HTTP/1.1 200 OK\r\nContent-Length: 100"}},
			       3);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 8388708);
	assert_string_equal(p.call[1].body_to, "/tmp/x");
	/* none of our tokens goes to whoever keeps the blocks */
	assert_int_equal(p.call[1].header_count, 0);
	assert_false(p.call[1].may_repeat);
	played_free(&p);
	/* an address whose time was over: new ones, from where it stands */
	p = play(OP_FETCH, &want,
		 (const struct answer[]){
			 GET_FILE(&two),
			 {urls[0], 200, NULL, BLOCK},
			 {urls[1], 403, NULL, NULL},
			 GET_FILE(&rest),
			 {fresh[0], 200, NULL, "HTTP/1.1 200 OK\r\nContent-Length: 100"}},
		 5);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 8388708);
	UNPACKED(VolumeGetFile2Request, again, &p.call[3], volume_get_file2_request);
	assert_int_equal(again->start, 8388608);
	assert_string_equal(again->path, "runs/r1/a.wav");
	played_free(&p);
	const struct answer never[] = {GET_FILE(&two), {urls[0], 403, NULL, NULL},
				       GET_FILE(&two), {urls[0], 403, NULL, NULL},
				       GET_FILE(&two), {urls[0], 403, NULL, NULL},
				       GET_FILE(&two), {urls[0], 403, NULL, NULL}};
	p = play(OP_FETCH, &want, never, 8);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	played_free(&p);
	p = play(OP_FETCH, &want,
		 (const struct answer[]){GET_FILE(&two), {urls[0], -1, NULL, NULL}}, 2);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	played_free(&p);
	fresh[0] = (char *)"http://127.0.0.1:631/";
	p = play(OP_FETCH, &want, (const struct answer[]){GET_FILE(&rest)}, 1);
	assert_int_equal(p.err.kind, ERR_UNTRUSTED);
	played_free(&p);
	p = play(OP_FETCH, &want, (const struct answer[]){{"VolumeGetFile2", 5, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	played_free(&p);
	want.file.offset = 50; /* there is no more of it */
	want.file.max_bytes = 1000;
	p = play(OP_FETCH, &want, (const struct answer[]){GET_FILE(&over)}, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 0);
	UNPACKED(VolumeGetFile2Request, part, &p.call[0], volume_get_file2_request);
	assert_int_equal(part->start, 50);
	assert_int_equal(part->len, 1000);
	played_free(&p);
	static const char *const unsafe[] = {"../x", "/etc/passwd", ""};
	for (size_t i = 0; i < ARRAY_LEN(unsafe); i++) {
		want.file.path = unsafe[i];
		p = play(OP_FETCH, &want, NULL, 0);
		assert_int_equal(p.err.kind, ERR_REFUSED);
		played_free(&p);
	}
}

/* ---- files to a volume ---- */

typedef Modal__Client__VolumePutFiles2Response__MissingBlock Missing;

static Missing missing_block(uint64_t index, const char *url)
{
	return (Missing){.base = MESSAGE(volume_put_files2_response__missing_block),
			 .has_block_index = true,
			 .block_index = index,
			 .put_url = (char *)url};
}

static void test_stage(void **state)
{
	(void)state;
	/* the third is the first once more, the fourth has only zeros */
	struct file_block row[] = {{"AAAA", 8388608}, {"BBBB", 100}, {"AAAA", 8388608}, {"", 0}};
	struct op_want want = {.file = {.volume = {.id = "vo-1"},
					.path = "staged/t.0",
					.local = "/tmp/x",
					.blocks = {row, 4, 3 * 8388608 + 5}}};
	Missing m[] = {missing_block(0, "https://s3.example/a?sig=1"),
		       missing_block(1, "https://s3.example/b?sig=2"),
		       missing_block(2, "https://s3.example/a?sig=3"),
		       missing_block(3, "https://s3.example/d?sig=4"),
		       missing_block(1, "https://s3.example/b?sig=5")};
	Missing *all[] = {&m[0], &m[1], &m[2], &m[3]}, *one[] = {&m[4]}, *first[] = {&m[0]},
		*last[] = {&m[3]};
	Modal__Client__VolumePutFiles2Response all_missing = {
		.base = MESSAGE(volume_put_files2_response),
		.n_missing_blocks = 4,
		.missing_blocks = all};
	Modal__Client__VolumePutFiles2Response one_missing = {
		.base = MESSAGE(volume_put_files2_response),
		.n_missing_blocks = 1,
		.missing_blocks = one};
	Modal__Client__VolumePutFiles2Response first_missing = {
		.base = MESSAGE(volume_put_files2_response),
		.n_missing_blocks = 1,
		.missing_blocks = first};
	Modal__Client__VolumePutFiles2Response last_missing = {
		.base = MESSAGE(volume_put_files2_response),
		.n_missing_blocks = 1,
		.missing_blocks = last};
#define PUT_FILES(m) {"VolumePutFiles2", 0, m, NULL}
#define PUT_BLOCK(url, status, said)                                                               \
	{                                                                                          \
		url, status, NULL, NULL, NULL, 0, said                                             \
	}
	modal_token_take(&provider->token, "token-one");
	/* put where it is missing, each content once; what the PUTs said is brought back */
	const struct answer whole[] = {PUT_FILES(&all_missing), PUT_BLOCK(m[0].put_url, 200, "one"),
				       PUT_BLOCK(m[1].put_url, 200, "two"),
				       PUT_BLOCK(m[3].put_url, 200, ""), PUT_FILES(NULL)};
	struct played p = play(OP_STAGE, &want, whole, 5);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 3 * 8388608 + 5);
	UNPACKED(VolumePutFiles2Request, asked, &p.call[0], volume_put_files2_request);
	assert_string_equal(asked->volume_id, "vo-1");
	assert_int_equal(asked->n_files, 1);
	assert_string_equal(asked->files[0]->path, "staged/t.0");
	assert_int_equal(asked->files[0]->size, 3 * 8388608 + 5);
	assert_int_equal(asked->files[0]->n_blocks, 4);
	for (int i = 0; i < 4; i++) {
		assert_false(asked->files[0]->blocks[i]->has_put_response);
		assert_int_equal(asked->files[0]->blocks[i]->contents_sha256.len, 32);
		assert_memory_equal(asked->files[0]->blocks[i]->contents_sha256.data, row[i].sha256,
				    32);
	}
	assert_false(asked->disallow_overwrite_existing_files);
	assert_string_equal(p.call[2].method, "PUT");
	assert_string_equal(p.call[2].body_from, "/tmp/x");
	assert_int_equal(p.call[2].body_from_offset, 8388608);
	assert_int_equal(p.call[2].body_from_bytes, 100);
	assert_true(p.call[2].may_repeat && p.call[2].unlimited);
	assert_int_equal(p.call[2].header_count, 1); /* none of our tokens goes there */
	assert_string_equal(p.call[2].headers[0], "Content-Type: application/octet-stream");
	assert_null(p.call[3].body_from);
	UNPACKED(VolumePutFiles2Request, brought, &p.call[4], volume_put_files2_request);
	static const char *const said[] = {"one", "two", "one", ""};
	for (int i = 0; i < 4; i++) {
		assert_true(brought->files[0]->blocks[i]->has_put_response);
		assert_int_equal(brought->files[0]->blocks[i]->put_response.len, strlen(said[i]));
		assert_memory_equal(brought->files[0]->blocks[i]->put_response.data, said[i],
				    strlen(said[i]));
	}
	played_free(&p);
	/* all of it is there; there is nothing in it */
	p = play(OP_STAGE, &want, (const struct answer[]){PUT_FILES(NULL)}, 1);
	assert_int_equal(p.last, OP_DONE);
	played_free(&p);
	struct op_want empty = want;
	empty.file.blocks = (struct file_blocks){0};
	p = play(OP_STAGE, &empty, (const struct answer[]){PUT_FILES(NULL)}, 1);
	assert_int_equal(p.last, OP_DONE);
	UNPACKED(VolumePutFiles2Request, nothing, &p.call[0], volume_put_files2_request);
	assert_true(nothing->files[0]->has_size && !nothing->files[0]->size &&
		    !nothing->files[0]->n_blocks);
	played_free(&p);
	/* an address whose time is over: new ones, with what is known by then; a block that is
	 * missed again is put again */
	const struct answer expired[] = {PUT_FILES(&all_missing),
					 PUT_BLOCK(m[0].put_url, 200, "one"),
					 PUT_BLOCK(m[1].put_url, 403, "expired"),
					 PUT_FILES(&one_missing),
					 PUT_BLOCK(m[4].put_url, 400, "expired"),
					 PUT_FILES(&one_missing),
					 PUT_BLOCK(m[4].put_url, 200, "two"),
					 PUT_FILES(&last_missing),
					 PUT_BLOCK(m[3].put_url, 200, "x"),
					 PUT_FILES(NULL)};
	p = play(OP_STAGE, &want, expired, 10);
	assert_int_equal(p.last, OP_DONE);
	UNPACKED(VolumePutFiles2Request, part, &p.call[3], volume_put_files2_request);
	for (int i = 0; i < 4; i++)
		assert_int_equal(part->files[0]->blocks[i]->has_put_response, i == 0 || i == 2);
	played_free(&p);
	const struct answer never[] = {PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has expired"),
				       PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has expired"),
				       PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has expired"),
				       PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has expired"),
				       PUT_FILES(&first_missing),
				       PUT_BLOCK(m[0].put_url, 403, "Request has \x1b[2Jexpired")};
	p = play(OP_STAGE, &want, never, 10);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	assert_string_equal(
		p.err.msg,
		"putting staged/t.0 on the volume: HTTP 403 Request has \\x1b[2Jexpired");
	played_free(&p);
	/* what passes is waited for, a while */
	const struct answer busy[] = {
		PUT_FILES(&first_missing),           PUT_BLOCK(m[0].put_url, 503, NULL),
		PUT_BLOCK(m[0].put_url, -1, NULL),   PUT_BLOCK(m[0].put_url, 429, NULL),
		PUT_BLOCK(m[0].put_url, 200, "one"), PUT_FILES(NULL)};
	p = play(OP_STAGE, &want, busy, 6);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.waits, 3);
	assert_int_equal(p.waited_ms, 500 + 1000 + 2000);
	played_free(&p);
	const struct answer down[] = {
		PUT_FILES(&first_missing),          PUT_BLOCK(m[0].put_url, 503, NULL),
		PUT_BLOCK(m[0].put_url, 503, NULL), PUT_BLOCK(m[0].put_url, 503, NULL),
		PUT_BLOCK(m[0].put_url, 503, NULL), PUT_BLOCK(m[0].put_url, 503, NULL),
		PUT_BLOCK(m[0].put_url, 503, NULL), PUT_BLOCK(m[0].put_url, 503, "down")};
	p = play(OP_STAGE, &want, down, 8);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	played_free(&p);
	p = play(OP_STAGE, &want,
		 (const struct answer[]){PUT_FILES(&first_missing),
					 PUT_BLOCK(m[0].put_url, 413, "too large")},
		 2);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	played_free(&p);
	p = play(OP_STAGE, &want,
		 (const struct answer[]){{"VolumePutFiles2", 9, NULL, "of version 1"}}, 1);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	played_free(&p);
	/* taken for ever and never there */
	struct answer greedy[CALLS_MAX + 2];
	int n = 0;
	while (n < CALLS_MAX) {
		greedy[n++] = (struct answer)PUT_FILES(&first_missing);
		greedy[n++] = (struct answer)PUT_BLOCK(m[0].put_url, 200, "one");
	}
	p = play(OP_STAGE, &want, greedy, 42);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	played_free(&p);
	/* what no store may say */
	Missing odd[] = {missing_block(4, "https://s3.example/e"),
			 missing_block(0, "http://127.0.0.1:631/"),
			 missing_block(0, "ftp://s3.example/")};
	odd[1].has_file_index = true;
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		Missing *list[] = {&odd[i]};
		Modal__Client__VolumePutFiles2Response strange = {
			.base = MESSAGE(volume_put_files2_response),
			.n_missing_blocks = 1,
			.missing_blocks = list};
		for (odd[i].file_index = 0; odd[i].file_index < 2; odd[i].file_index++) {
			odd[i].has_file_index = true;
			p = play(OP_STAGE, &want, (const struct answer[]){PUT_FILES(&strange)}, 1);
			assert_int_equal(p.err.kind, ERR_UNTRUSTED);
			played_free(&p);
		}
	}
	/* blocks that do not fit, paths that lead out */
	struct op_want bad = want;
	bad.file.blocks.count = 3;
	p = play(OP_STAGE, &bad, NULL, 0);
	assert_int_equal(p.err.kind, ERR_BUG);
	played_free(&p);
	bad = want;
	bad.file.path = "../x";
	p = play(OP_STAGE, &bad, NULL, 0);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	played_free(&p);
}

/* ---- what is on a volume ---- */

static Modal__Client__FileEntry entry(const char *path, int type, uint64_t mtime, uint64_t size)
{
	return (Modal__Client__FileEntry){.base = MESSAGE(file_entry),
					  .path = (char *)path,
					  .has_type = true,
					  .type = type,
					  .has_mtime = true,
					  .mtime = mtime,
					  .has_size = true,
					  .size = size};
}

static Modal__Client__VolumeListFilesResponse entries_of(Modal__Client__FileEntry **list,
							 size_t count)
{
	return (Modal__Client__VolumeListFilesResponse){
		.base = MESSAGE(volume_list_files_response), .n_entries = count, .entries = list};
}

static void test_tidy(void **state)
{
	(void)state;
	Modal__Client__FileEntry e[] = {entry("runs", 2, 5, 0),
					entry("runs/r1", 2, 100, 4096),
					entry("/runs/r2/", 2, 90, 0),
					entry("runs/a.txt", 1, 50, 7),
					entry("runs/r1/x.wav", 1, 300, 1000),
					entry("runs/r1/link", 3, 310, 0)};
	Modal__Client__FileEntry *flat[] = {&e[0], &e[1], &e[2], &e[3], &e[4]},
				 *deep[] = {&e[1], &e[4], &e[5]}, *two[] = {&e[3]},
				 *none[] = {&e[0]};
	Modal__Client__VolumeListFilesResponse m1 = entries_of(flat, 3),
					       m2 = entries_of(flat + 3, 2),
					       in = entries_of(deep, 3), file = entries_of(two, 1),
					       own = entries_of(none, 1);
	struct op_want want = {.file = {.volume = {.id = "vo-1"}, .path = "runs"}};
	modal_token_take(&provider->token, "token-one");
#define LISTED(code, ...)                                                                          \
	streamed("VolumeListFiles2", code, (const void *const[]){__VA_ARGS__},                     \
		 (int)(sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *)))
	struct answer ls[] = {LISTED(-1, &m1), LISTED(0, &m1, &m2)}; /* half a list is none */
	struct played p = play(OP_VOLUME_LS, &want, ls, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.waits, 1);
	assert_int_equal(p.result.entry_count, 3);
	assert_string_equal(p.result.entries[0].name, "r1");
	assert_true(p.result.entries[0].folder);
	assert_int_equal(p.result.entries[0].bytes, -1);
	assert_int_equal(p.result.entries[0].files, -1);
	assert_int_equal(p.result.entries[0].changed_s, 0);
	assert_string_equal(p.result.entries[2].name, "a.txt");
	assert_int_equal(p.result.entries[2].bytes, 7);
	assert_int_equal(p.result.entries[2].changed_s, 50);
	UNPACKED(VolumeListFilesRequest, asked, &p.call[0], volume_list_files_request);
	assert_string_equal(asked->path, "runs");
	assert_false(asked->recursive);
	assert_int_equal(asked->max_entries, 100000);
	assert_true(p.call[0].stream && !p.call[0].stream_limit_ms &&
		    p.call[0].max_bytes == 32 << 20);
	played_free(&p);
	struct answer bare[] = {LISTED(0, &own)}, is_file[] = {LISTED(0, &file)},
		      breaks[] = {LISTED(-1, &m1), LISTED(14, &m1), LISTED(-1, &m1),
				  LISTED(-1, &m1)};
	p = play(OP_VOLUME_LS, &want, bare, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	played_free(&p);
	p = play(OP_VOLUME_LS, &want, breaks, 4);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	assert_int_equal(p.waits, 3);
	played_free(&p);
	p = play(OP_VOLUME_LS, &want, (const struct answer[]){{"VolumeListFiles2", 5, NULL, NULL}},
		 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	played_free(&p);
	want.file.path = "runs/a.txt"; /* a file is no folder */
	p = play(OP_VOLUME_LS, &want, is_file, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	played_free(&p);
	static const char *const others[] = {"run/r1", "runs2/r1", "code", "", "../runs/r1"};
	want.file.path = "runs";
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		Modal__Client__FileEntry strange = entry(others[i], 1, 1, 1), *list[] = {&strange};
		Modal__Client__VolumeListFilesResponse m = entries_of(list, 1);
		struct answer a[] = {LISTED(0, &m)};
		p = play(OP_VOLUME_LS, &want, a, 1);
		assert_int_equal(p.err.kind, ERR_UNTRUSTED);
		played_free(&p);
		free(a[0].stream);
	}

	struct answer size[] = {LISTED(0, &in)},
		      remove[] = {LISTED(0, &in), {"VolumeRemoveFile2", 0, NULL, NULL}};
	want.file.path = "runs/r1";
	p = play(OP_VOLUME_SIZE, &want, size, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.entry_count, 1);
	assert_string_equal(p.result.entries[0].name, "r1");
	assert_true(p.result.entries[0].folder);
	assert_int_equal(p.result.entries[0].bytes, 1000);
	assert_int_equal(p.result.entries[0].files, 2);
	assert_int_equal(p.result.entries[0].changed_s, 310);
	UNPACKED(VolumeListFilesRequest, sized, &p.call[0], volume_list_files_request);
	assert_true(sized->recursive);
	played_free(&p);
	p = play(OP_VOLUME_SIZE, &want,
		 (const struct answer[]){{"VolumeListFiles2", 5, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	played_free(&p);

	p = play(OP_VOLUME_DELETE, &want, remove, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.bytes, 1000);
	UNPACKED(VolumeRemoveFile2Request, removed, &p.call[1], volume_remove_file2_request);
	assert_string_equal(removed->volume_id, "vo-1");
	assert_string_equal(removed->path, "runs/r1");
	assert_true(removed->recursive);
	played_free(&p);
	remove[1].code = 5; /* somebody else was faster */
	p = play(OP_VOLUME_DELETE, &want, remove, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	played_free(&p);
	remove[1].code = 14;
	p = play(OP_VOLUME_DELETE, &want, remove, 2);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	played_free(&p);
	p = play(OP_VOLUME_DELETE, &want,
		 (const struct answer[]){{"VolumeListFiles2", 5, NULL, NULL}}, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	played_free(&p);
	static const enum op_kind kinds[] = {OP_VOLUME_LS, OP_VOLUME_SIZE, OP_VOLUME_DELETE};
	static const char *const unsafe[] = {"../x", "/runs", "runs/../../x", "", "."};
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (size_t i = 0; i < ARRAY_LEN(unsafe); i++) {
			want.file.path = unsafe[i];
			p = play(kinds[k], &want, NULL, 0);
			assert_int_equal(p.err.kind, ERR_REFUSED);
			played_free(&p);
		}
	struct answer *const streams[] = {ls,         ls + 1,     bare,       is_file, breaks,
					  breaks + 1, breaks + 2, breaks + 3, size,    remove};
	for (size_t i = 0; i < ARRAY_LEN(streams); i++)
		free(streams[i]->stream);
}

/* A list that is longer than is taken: what is known of it counts, but never as a proof of age. */
static void test_long_lists(void **state)
{
	(void)state;
	enum { MANY = 100000 };
	Modal__Client__FileEntry one = entry("env/h/x", 1, 77, 3),
				 **list = xcalloc(MANY, sizeof(*list));
	struct op_want want = {.file = {.volume = {.id = "vo-1"}, .path = "env/h"}};
	for (size_t i = 0; i < MANY; i++)
		list[i] = &one;
	Modal__Client__VolumeListFilesResponse m = entries_of(list, MANY),
					       some = entries_of(list, 10);
	struct answer many[] = {LISTED(0, &m)},
		      too_long[] = {LISTED(-4, &some), {"VolumeRemoveFile2", 0, NULL, NULL}};
	modal_token_take(&provider->token, "token-one");
	struct played p = play(OP_VOLUME_SIZE, &want, many, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.entries[0].files, MANY);
	assert_int_equal(p.result.entries[0].changed_s, 0);
	played_free(&p);
	p = play(OP_VOLUME_LS, &want, many, 1);
	assert_int_equal(p.err.kind, ERR_REFUSED);
	played_free(&p);
	p = play(OP_VOLUME_DELETE, &want, too_long, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	assert_int_equal(p.result.bytes, 30);
	played_free(&p);
	free(many[0].stream);
	free(too_long[0].stream);
	free(list);
}

static void test_volumes(void **state)
{
	(void)state;
	Modal__Client__VolumeMetadata two = {.base = MESSAGE(volume_metadata),
					     .has_version = true,
					     .version = 2},
				      old = {.base = MESSAGE(volume_metadata)};
	Modal__Client__VolumeListItem items[100], *list[100];
	char ids[100][16];
	for (int i = 0; i < 100; i++) {
		snprintf(ids[i], sizeof(ids[i]), "vo-%d", i);
		items[i] = (Modal__Client__VolumeListItem){.base = MESSAGE(volume_list_item),
							   .label = ids[i] + 3,
							   .volume_id = ids[i],
							   .has_created_at = true,
							   .created_at = 1000 - i,
							   .metadata = &old};
		list[i] = &items[i];
	}
	items[3].metadata = items[7].metadata = &two;
	Modal__Client__VolumeListResponse page = {
		.base = MESSAGE(volume_list_response), .n_items = 100, .items = list};
	Modal__Client__VolumeListResponse rest = {
		.base = MESSAGE(volume_list_response), .n_items = 2, .items = list + 7};
	Modal__Client__FileEntry e[] = {entry("a", 1, 1, (uint64_t)5 << 29), entry("d", 2, 1, 0),
					entry("d/b", 1, 1, 1)},
				 *files[] = {&e[0], &e[1], &e[2]};
	Modal__Client__VolumeListFilesResponse m = entries_of(files, 3);
	struct answer known[] = {{"VolumeList", 0, &page, NULL},
				 {"VolumeList", 0, &rest, NULL},
				 LISTED(0, &m),
				 {"VolumeListFiles2", 0, NULL, NULL}};
	modal_token_take(&provider->token, "token-one");
	struct played p = play(OP_VOLUMES, NULL, known, 4);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.volume_count, 2);
	const struct volume *v = p.result.volumes;
	assert_string_equal(v[0].id, "vo-3");
	assert_string_equal(v[0].name, "3");
	assert_string_equal(v[0].provider, "modal");
	assert_int_equal(v[0].used_bytes, ((int64_t)5 << 29) + 1);
	assert_int_equal(v[0].size_gb, 3);
	assert_int_equal(v[0].price_microusd_month, 3 * 90000);
	assert_string_equal(v[1].id, "vo-7");
	assert_int_equal(v[1].used_bytes, 0);
	assert_int_equal(v[1].price_microusd_month, 0);
	UNPACKED(VolumeListRequest, l1, &p.call[0], volume_list_request);
	UNPACKED(VolumeListRequest, l2, &p.call[1], volume_list_request);
	UNPACKED(VolumeListFilesRequest, l3, &p.call[2], volume_list_files_request);
	assert_int_equal(l1->pagination->max_objects, 100);
	assert_true(l1->pagination->created_before > (double)(clock_wall_ms() / 1000));
	assert_true(l2->pagination->created_before == 901);
	assert_string_equal(l3->volume_id, "vo-3");
	assert_string_equal(l3->path, "/");
	assert_true(l3->recursive);
	played_free(&p);
	free(known[2].stream);
	/* one that cannot be measured is known all the same */
	p = play(OP_VOLUMES, NULL,
		 (const struct answer[]){{"VolumeList", 0, &rest, NULL},
					 {"VolumeListFiles2", 13, NULL, NULL}},
		 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	assert_int_equal(p.result.volume_count, 1);
	assert_int_equal(p.result.volumes[0].used_bytes, -1);
	played_free(&p);
	/* the same page for ever; a list that fails */
	p = play(OP_VOLUMES, NULL,
		 (const struct answer[]){{"VolumeList", 0, &page, NULL},
					 {"VolumeList", 0, &page, NULL},
					 {"VolumeListFiles2", 13, NULL, NULL}},
		 3);
	assert_int_equal(p.result.volume_count, 2);
	played_free(&p);
	p = play(OP_VOLUMES, NULL,
		 (const struct answer[]){{"VolumeList", 0, &page, NULL},
					 {"VolumeList", 14, NULL, NULL}},
		 2);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	assert_int_equal(p.result.volume_count, 0);
	played_free(&p);
	items[7].volume_id = (char *)"../x";
	p = play(OP_VOLUMES, NULL, (const struct answer[]){{"VolumeList", 0, &rest, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	played_free(&p);
}

/* ---- offers ---- */

static const struct offer *offer_of(const struct played *p, const char *id)
{
	for (size_t i = 0; i < p->result.offer_count; i++)
		if (!strcmp(p->result.offers[i].id, id))
			return &p->result.offers[i];
	return NULL;
}

static void test_offers(void **state)
{
	(void)state;
	static Modal__Client__TextEntry rates[] = {
		{.base = MESSAGE(text_entry), .key = (char *)"gpu_l4", .value = (char *)"0.80"},
		{.base = MESSAGE(text_entry), .key = (char *)"gpu_l40s", .value = (char *)"1.95"},
		{.base = MESSAGE(text_entry),
		 .key = (char *)"GPU A100 80GB",
		 .value = (char *)"2.50"},
		{.base = MESSAGE(text_entry),
		 .key = (char *)"gpu_a100_40gb",
		 .value = (char *)"2.10"},
		{.base = MESSAGE(text_entry), .key = (char *)"gpu_h100", .value = (char *)"lots"},
		{.base = MESSAGE(text_entry), .key = (char *)"cpu", .value = (char *)"0.05"},
		{.base = MESSAGE(text_entry),
		 .key = (char *)"sandbox-cpu",
		 .value = (char *)"0.25"},
	};
	Modal__Client__TextEntry *list[ARRAY_LEN(rates)];
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		list[i] = &rates[i];
	Modal__Client__WorkspaceBillingRatesResponse said = {
		.base = MESSAGE(workspace_billing_rates_response),
		.n_rates = ARRAY_LEN(rates),
		.rates = list};
	const struct answer rated_offers[] = {{"WorkspaceBillingRates", 0, &said, NULL}},
			    hidden[] = {{"WorkspaceBillingRates", 7, NULL, "no"}};
	const int64_t rest = 4 * 250000 + 16 * 30000;
	static const char *const wishes[] = {"L40S", "A100", "RTX 4090", "L4:2",
					     "H100", "none", NULL},
				 *h100[] = {"H100", NULL}, *rtx[] = {"RTX 4090", NULL},
				 *misspelt[] = {"H10O", "5900", NULL},
				 *small[] = {"L4", "5090", NULL},
				 *one_wrong[] = {"H10O", "5090", "L4", NULL},
				 *many[] = {"L40S:9", NULL}, *cpu_alone[] = {"none", NULL};
	struct op_want want = {.offers = {.gpus = wishes}};

	modal_token_take(&provider->token, "token-one");
	struct played p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.offer_count, 5);
	assert_int_equal(offer_of(&p, "L40S")->price_microusd_h, 1950000 + rest);
	assert_int_equal(offer_of(&p, "L40S")->wish, 0);
	assert_int_equal(offer_of(&p, "A100-80GB")->price_microusd_h, 2500000 + rest);
	assert_int_equal(offer_of(&p, "A100-40GB")->wish, 1);
	assert_int_equal(offer_of(&p, "L4:2")->price_microusd_h, 1600000 + rest);
	assert_int_equal(offer_of(&p, "L4:2")->gpus, 2);
	assert_int_equal(offer_of(&p, "CPU")->price_microusd_h, rest);
	assert_string_equal(offer_of(&p, "CPU")->gpu, "none");
	played_free(&p);
	want.offers.vram_gb = 48;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_null(offer_of(&p, "L4:2"));
	assert_null(offer_of(&p, "A100-40GB"));
	assert_non_null(offer_of(&p, "A100-80GB"));
	assert_null(offer_of(&p, "CPU"));
	played_free(&p);
	want.offers.vram_gb = 0;
	want.offers.gpus = NULL;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.result.offer_count, 4);
	played_free(&p);
	/* what the job asks for is what is paid for */
	want.offers.cpu = 8;
	want.offers.memory_gb = 64;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(offer_of(&p, "L40S")->price_microusd_h, 1950000 + 8 * 250000 + 64 * 30000);
	played_free(&p);
	want.offers.cpu = want.offers.memory_gb = 0;
	/* cores and memory as they are wanted, with any GPU and with none; a disk costs nothing */
	want.offers.gpus = wishes;
	want.offers.cpu = 1;
	want.offers.memory_gb = 3;
	want.offers.disk_gb = 500;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(offer_of(&p, "L4:2")->price_microusd_h, 1600000 + 250000 + 3 * 30000);
	assert_int_equal(offer_of(&p, "CPU")->price_microusd_h, 250000 + 3 * 30000);
	played_free(&p);
	want.offers.cpu = 257;
	p = play(OP_OFFERS, &want, NULL, 0);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_string_equal(p.err.msg, "no sandbox of Modal's has 257 cores: lower pod.cpu");
	played_free(&p);
	want.offers.cpu = want.offers.disk_gb = 0;
	want.offers.memory_gb = 4097;
	p = play(OP_OFFERS, &want, NULL, 0);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	played_free(&p);
	want.offers.memory_gb = 0;
	/* no price: said, with what to do; GPUs that Modal has not, now or later: the config is
	 * wrong */
	want.offers.gpus = h100;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "what H100 costs"));
	assert_non_null(strstr(p.err.msg, "providers.modal.gpu_prices"));
	played_free(&p);
	want.offers.gpus = rtx;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_string_equal(p.err.msg, "Modal has no GPU called \"RTX 4090\"");
	played_free(&p);
	want.offers.gpus = misspelt;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_string_equal(p.err.msg,
			    "Modal has no GPU called \"H10O\", \"5900\"; did you mean \"H100\"?");
	played_free(&p);
	want.offers.gpus = one_wrong;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.result.offer_count, 1);
	assert_string_equal(str_text(&p.result.text),
			    "Modal has no GPU called \"H10O\"; did you mean \"H100\"?\n");
	played_free(&p);
	want.offers.gpus = small;
	want.offers.vram_gb = 48;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "none of these with the 48 GB that this job needs"));
	played_free(&p);
	want.offers.vram_gb = 0;
	want.offers.gpus = many;
	p = play(OP_OFFERS, &want, rated_offers, 1);
	assert_string_equal(p.err.msg,
			    "gpu = [\"L40S:9\"]: no sandbox of Modal's has so many (8 at most)");
	played_free(&p);
	/* where they may not be seen, its list prices do, and that is said; a GPU that the list
	 * lacks has none */
	want.offers.gpus = h100;
	p = play(OP_OFFERS, &want, hidden, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(offer_of(&p, "H100")->price_microusd_h, 3949200 + 4 * 150000 + 16 * 30000);
	assert_non_null(strstr(str_text(&p.result.text),
			       "using its list prices of 2026-09-01 (H100 $3.95 an hour)"));
	played_free(&p);
	want.offers.gpus = cpu_alone;
	p = play(OP_OFFERS, &want, hidden, 1);
	assert_int_equal(p.result.offer_count, 1);
	assert_string_equal(str_text(&p.result.text), "");
	played_free(&p);
	/* prices of one's own go before Modal's, and do where those may not be seen */
	section_add_item(conf, "gpu_prices", "H100=3.95", "t");
	want.offers.gpus = h100;
	p = play(OP_OFFERS, &want, hidden, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(offer_of(&p, "H100")->price_microusd_h, 3950000 + 4 * 150000 + 16 * 30000);
	assert_string_equal(str_text(&p.result.text), "");
	played_free(&p);
	p = play(OP_OFFERS, &want,
		 (const struct answer[]){{"WorkspaceBillingRates", 16, NULL, NULL},
					 {"AuthTokenGet", 16, NULL, NULL}},
		 2);
	assert_int_equal(p.err.kind, ERR_CREDENTIALS);
	played_free(&p);
}

/* ---- bytes ---- */

/* The bytes of a create, written down by hand from the field numbers. */
static void test_bytes(void **state)
{
	(void)state;
	Modal__Client__GPUConfig gpu = MODAL__CLIENT__GPUCONFIG__INIT;
	Modal__Client__Resources resources = MODAL__CLIENT__RESOURCES__INIT;
	Modal__Client__PortSpec port = MODAL__CLIENT__PORT_SPEC__INIT, *ports[] = {&port};
	Modal__Client__PortSpecs specs = MODAL__CLIENT__PORT_SPECS__INIT;
	Modal__Client__Sandbox sandbox = MODAL__CLIENT__SANDBOX__INIT;
	Modal__Client__SandboxTag tag = MODAL__CLIENT__SANDBOX_TAG__INIT, *tags[] = {&tag};
	Modal__Client__SandboxCreateRequest request = MODAL__CLIENT__SANDBOX_CREATE_REQUEST__INIT;
	char *args[] = {(char *)"sh"};

	gpu.has_count = true, gpu.count = 1, gpu.gpu_type = (char *)"L4";
	resources.has_memory_mb = true, resources.memory_mb = 300, resources.gpu_config = &gpu;
	port.has_port = true, port.port = 22, port.has_unencrypted = true, port.unencrypted = true;
	specs.n_ports = 1, specs.ports = ports;
	sandbox.n_entrypoint_args = 1, sandbox.entrypoint_args = args;
	sandbox.resources = &resources, sandbox.open_ports = &specs;
	sandbox.has_timeout_secs = true, sandbox.timeout_secs = 600;
	sandbox.name = (char *)"b";
	tag.tag_name = (char *)"k", tag.tag_value = (char *)"v";
	request.app_id = (char *)"ap-1", request.definition = &sandbox;
	request.n_tags = 1, request.tags = tags;
	static const char want[] = "\x0a\x04"
				   "ap-1"
				   "\x12\x21\x0a\x02sh"
				   "\x2a\x0b\x10\xac\x02\x22\x06\x10\x01\x22\x02L4"
				   "\x38\xd8\x04"
				   "\xa2\x01\x06\x0a\x04\x08\x16\x10\x01"
				   "\xf2\x01\x01"
				   "b"
				   "\x22\x06\x0a\x01k\x12\x01v";
	uint8_t got[256];
	size_t len = protobuf_c_message_pack(&request.base, got);
	if (len != sizeof(want) - 1 || memcmp(got, want, len)) {
		for (size_t i = 0; i < len; i++)
			print_message("%02x", got[i]);
		fail_msg(": %zu bytes, not %zu", len, sizeof(want) - 1);
	}
	/* what is not known is passed over */
	static const uint8_t more[] = "\x0a\x05sb-42\xfa\x3f\x02zz\xc8\x3f\x01";
	Modal__Client__SandboxCreateResponse *r =
		modal__client__sandbox_create_response__unpack(NULL, sizeof(more) - 1, more);
	assert_non_null(r);
	assert_string_equal(r->sandbox_id, "sb-42");
	modal__client__sandbox_create_response__free_unpacked(r, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_token_expires),
		cmocka_unit_test(test_token_life),
		cmocka_unit_test_setup_teardown(test_check, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_token_renewed, set_up, tear_down),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_all_mistakes),
		cmocka_unit_test(test_account),
		cmocka_unit_test_setup_teardown(test_rent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rent_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_image_is_built, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_image_recipe, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_image_with_a_setup, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_image_is_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rows_that_do_not_say_when_it_started, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_lists_by_app, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_queued, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gpu_really_got, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_inspect, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_release, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_token_is_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_logs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_billed_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_billed_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_billed_at_own_rates, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_billed_hours_of_the_app, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_volume, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fetch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stage, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tidy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_lists, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_volumes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_offers, set_up, tear_down),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
