/* test_modal_account.c - an account of Modal: its section, its token, the check of `burst doctor`.
 */
#include "modal_play.h"

#include <unistd.h>

static const char *header_of(const struct call *call, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < call->header_count; i++)
		if (!strncmp(call->headers[i], name, len) && call->headers[i][len] == ':')
			return call->headers[i] + len + 2;
	return "";
}

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
		modal_token_back_off(&t);
		assert_in_range(t.refresh_at_ms - clock_boot_ms(), want - 100, want + 1);
	}
	modal_token_free(&t);
	assert_false(modal_token_is_usable(&t));
}

static const Modal__Client__AuthTokenGetResponse second_token = {
	.base = PROTOBUF_C_MESSAGE_INIT(&modal__client__auth_token_get_response__descriptor),
	.token = (char *)"token-two"};

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
	struct played p = modal_play(OP_CHECK, NULL, answers, 3);
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
	modal_played_free(&p);
	/* it is kept for the next operation, which says what is wrong */
	p = modal_play(OP_CHECK, NULL,
		       (const struct answer[]){{"TokenInfoGet", 16, NULL, "stale"},
					       {"AuthTokenGet", 0, &second_token, NULL},
					       {"TokenInfoGet", 16, NULL, "bad token"}},
		       3);
	assert_int_equal(p.last, OP_DONE); /* a finding, no failure */
	assert_int_equal(p.err.kind, ERR_NONE);
	assert_true(starts_with(str_text(&p.result.text), "bad: "));
	assert_non_null(strstr(str_text(&p.result.text),
			       "bad token (are MODAL_TOKEN_ID and MODAL_TOKEN_SECRET right?)\n"));
	modal_played_free(&p);
	p = modal_play(OP_CHECK, NULL,
		       (const struct answer[]){{"TokenInfoGet", 0, NULL, "\xff\xff"}}, 1);
	assert_non_null(strstr(str_text(&p.result.text),
			       "bad: asking Modal whose token this is: the answer cannot be read"));
	modal_played_free(&p);
	p = modal_play(OP_CHECK, NULL,
		       (const struct answer[]){{"TokenInfoGet", 12, NULL, NULL},
					       {"ClientHello", 0, &hello, NULL}},
		       2);
	assert_true(starts_with(str_text(&p.result.text), "warn: Modal says: you are old (burst"));
	modal_played_free(&p);
	p = modal_play(OP_CHECK, NULL,
		       (const struct answer[]){{"TokenInfoGet", 0, &info, NULL},
					       {"ClientHello", 9, NULL, "Old client"}},
		       2);
	assert_int_equal(p.last, OP_DONE);
	assert_non_null(
		strstr(str_text(&p.result.text),
		       "\nbad: greeting Modal: ClientHello: Old client (something about the "
		       "account or this client is not as Modal wants it: "));
	modal_played_free(&p);
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
	struct played p = modal_play(OP_CHECK, NULL, fine, 3);
	modal_played_free(&p);
	p = modal_play(OP_CHECK, NULL, fine + 1, 2);
	modal_played_free(&p);
	/* half its life is over, and the server does not answer: it goes on with the one it has,
	 * and does not ask at once again */
	modal_provider->token.refresh_at_ms = clock_boot_ms();
	p = modal_play(OP_CHECK, NULL, lost, 3);
	assert_string_equal(header_of(&p.call[1], "x-modal-auth-token"), "token-one");
	modal_played_free(&p);
	p = modal_play(OP_CHECK, NULL, fine + 1, 2);
	modal_played_free(&p);
	modal_provider->token.refresh_at_ms = clock_boot_ms();
	p = modal_play(OP_CHECK, NULL, again, 3);
	assert_string_equal(header_of(&p.call[2], "x-modal-auth-token"), "token-two");
	modal_played_free(&p);
	/* no longer who we say we are: that is the end, whatever the old one is worth */
	struct op_want want = {.id = "sb-1"};
	modal_provider->token.refresh_at_ms = clock_boot_ms();
	p = modal_play(OP_RELEASE, &want,
		       (const struct answer[]){{"AuthTokenGet", 16, NULL, "gone"}}, 1);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_CREDENTIALS);
	modal_played_free(&p);
	p = modal_play(OP_CHECK, NULL, (const struct answer[]){{"AuthTokenGet", 16, NULL, "gone"}},
		       1);
	assert_int_equal(p.last, OP_DONE);
	assert_non_null(strstr(str_text(&p.result.text),
			       "bad: asking for a token of the session: AuthTokenGet: gone"));
	modal_played_free(&p);
	/* dead, and none to be had */
	modal_provider->token.dead_at_ms = clock_boot_ms();
	p = modal_play(OP_RELEASE, &want, lost, 1);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	modal_played_free(&p);
	/* one that would break out of its header */
	Modal__Client__AuthTokenGetResponse evil = first_token;
	evil.token = (char *)"a\r\nx-evil: b";
	p = modal_play(OP_RELEASE, &want, (const struct answer[]){{"AuthTokenGet", 0, &evil, NULL}},
		       1);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	modal_played_free(&p);
}

static char *account_of(const char *token_id, const char *named)
{
	CLEANUP(section_free) struct section *s = section_new(provider_modal.options, "t");
	struct provider *p = NULL;
	struct err err;

	section_set_text(s, "token_id", token_id, "t");
	section_set_text(s, "token_secret", "as-1", "t");
	if (named)
		section_set_text(s, "environment", named, "t");
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
		{"server_url", "https://a.example,https://b.example", ERR_CONFIG, NULL, NULL},
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

/* A call that is sent again bears the token that it was made with, which may be over by then: it is
 * made again with a new one, once, and the rest of the operation goes on. */
static void test_token_is_over(void **state)
{
	(void)state;
	struct op_want want = renting();
	COPY_TEXT(modal_provider->app_id, "ap-1");
	COPY_TEXT(modal_provider->builder_version, "2025.06");
	modal_token_take(&modal_provider->token, "token-one");
	const struct answer answers[] = {IMAGE,
					 {"SecretGetOrCreate", 16, NULL, NULL},
					 {"AuthTokenGet", 0, &second_token, NULL},
					 SECRET,
					 {"SandboxCreate", 0, &created, NULL}};
	struct played p = modal_play(OP_RENT, &want, answers, 5);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(header_of(&p.call[1], "x-modal-auth-token"), "token-one");
	assert_string_equal(header_of(&p.call[3], "x-modal-auth-token"), "token-two");
	assert_string_equal(header_of(&p.call[4], "x-modal-auth-token"), "token-two");
	assert_int_equal(p.call[3].body.len, p.call[1].body.len);
	assert_memory_equal(p.call[3].body.s, p.call[1].body.s, p.call[1].body.len);
	assert_int_equal(p.call[3].header_count, p.call[1].header_count);
	modal_played_free(&p);
	/* also of the very call that the first token was fetched for */
	modal_token_free(&modal_provider->token);
	struct op_want release = {.id = "sb-1"};
	p = modal_play(OP_RELEASE, &release,
		       (const struct answer[]){{"AuthTokenGet", 0, &first_token, NULL},
					       {"SandboxTerminate", 16, NULL, NULL},
					       {"AuthTokenGet", 0, &second_token, NULL},
					       {"SandboxTerminate", 0, NULL, NULL}},
		       4);
	assert_int_equal(p.last, OP_DONE);
	modal_played_free(&p);
	/* a create was not carried out either; lost when it is made again, it may have been */
	p = modal_play(OP_RENT, &want,
		       (const struct answer[]){IMAGE,
					       SECRET,
					       {"SandboxCreate", 16, NULL, NULL},
					       {"AuthTokenGet", 0, &first_token, NULL},
					       {"SandboxCreate", -1, NULL, NULL}},
		       5);
	assert_int_equal(p.err.kind, ERR_AMBIGUOUS);
	assert_false(p.call[4].may_repeat);
	modal_played_free(&p);
	/* refused with the new one as well: it is the account's own that is not taken */
	want = (struct op_want){.id = "sb-1"};
	p = modal_play(OP_RELEASE, &want,
		       (const struct answer[]){{"SandboxTerminate", 16, NULL, NULL},
					       {"AuthTokenGet", 0, &second_token, NULL},
					       {"SandboxTerminate", 16, NULL, NULL}},
		       3);
	assert_int_equal(p.err.kind, ERR_CREDENTIALS);
	modal_played_free(&p);
}

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
		cmocka_unit_test_setup_teardown(test_check, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_token_renewed, modal_set_up, modal_tear_down),
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_all_mistakes),
		cmocka_unit_test_setup_teardown(test_token_is_over, modal_set_up, modal_tear_down),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests_name("modal account", tests, NULL, NULL);
}
