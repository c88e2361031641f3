/* test_runpod_account.c - an account of RunPod: its section, its balance, the check of `burst
 * doctor`. */
#include "runpod_play.h"

#include <unistd.h>

#define MYSELF                                                                                     \
	"{\"data\":{\"myself\":{\"clientBalance\":12.5,\"currentSpendPerHr\":0.69,\"spendLimit\":" \
	"80}}}"

static void the_balance_is_told(void **state)
{
	struct op_want want = {0};
	struct played p = PLAY(OP_BALANCE, &want, {200, MYSELF});

	(void)state;
	check_done("balance", &p);
	assert_int_equal(p.result.balance_microusd, 12500000);
	played_free(&p);
	p = PLAY(OP_BALANCE, &want, {200, "{\"data\":{\"myself\":{\"clientBalance\":-0.5}}}"});
	check_done("a debt", &p);
	assert_int_equal(p.result.balance_microusd, 0);
	played_free(&p);
	p = PLAY(OP_BALANCE, &want, {200, "{\"data\":{\"myself\":{\"clientBalance\":null}}}"});
	check_done("not told", &p);
	assert_int_equal(p.result.balance_microusd, -1);
	played_free(&p);
	p = PLAY(OP_CHECK, &want, {200, "{\"pods\":[]}"},
		 {200, "{\"data\":{\"myself\":{\"clientBalance\":-0.5}}}"});
	assert_non_null(strstr(str_text(&p.result.text), "\nbad: the account has no credit\n"));
	played_free(&p);
	p = PLAY(OP_BALANCE, &want, {410});
	check_done("GraphQL is gone", &p);
	assert_int_equal(p.result.balance_microusd, -1);
	played_free(&p);
	p = PLAY(OP_BALANCE, &want, {200, "{\"errors\":[{\"message\":\"Unauthorized request\"}]}"});
	check_failed("a wrong key", &p, ERR_CREDENTIALS);
	played_free(&p);
}

static void doctor_hears_what_is_wrong(void **state)
{
	struct op_want want = {0};
	struct played p = PLAY(OP_CHECK, &want, {200, "{\"pods\":[]}"}, {200, MYSELF});

	(void)state;
	check_done("check", &p);
	assert_non_null(strstr(str_text(&p.result.text),
			       "ok: " ROOT " accepts the key\nok: spending $0.69"));
	assert_non_null(strstr(str_text(&p.result.text), "warn: no RUNPOD_S3_ACCESS_KEY"));
	played_free(&p);
	static const struct {
		const char *name, *me, *words;
	} purses[] = {
		{"all", "\"currentSpendPerHr\":0.69,\"spendLimit\":80",
		 "\nok: spending $0.6900 an hour now, the account's limit is $80.00 an hour\n"},
		{"no limit", "\"currentSpendPerHr\":0,\"spendLimit\":null",
		 "\nok: spending $0.00 an hour now, the account's limit is not reported\n"},
		{"no spending", "\"spendLimit\":80",
		 "\nwarn: the spending per hour is not reported, the account's limit is $80.00 an "
		 "hour\n"},
		{"at the limit", "\"currentSpendPerHr\":80.5,\"spendLimit\":80",
		 "\nbad: spending $80.50 an hour now, no more can be rented: the account's limit "
		 "is $80.00 an hour\n"},
	};
	for (size_t i = 0; i < ARRAY_LEN(purses); i++) {
		CLEANUP(free_text)
		char *me = xasprintf("{\"data\":{\"myself\":{\"clientBalance\":12.5,%s}}}",
				     purses[i].me);
		p = PLAY(OP_CHECK, &want, {200, "{\"pods\":[]}"}, {200, me});
		check_done(purses[i].name, &p);
		if (!strstr(str_text(&p.result.text), purses[i].words))
			fail_msg("%s: \"%s\"", purses[i].name, str_text(&p.result.text));
		played_free(&p);
	}
	p = PLAY(OP_CHECK, &want, {401, PROBLEM(401, "expired")});
	check_done("a wrong key", &p);
	assert_true(starts_with(str_text(&p.result.text), "bad: "));
	assert_int_equal(p.err.kind, ERR_NONE);
	played_free(&p);
	p = PLAY(OP_CHECK, &want, {200, "{\"pods\":[]}"}, {410});
	assert_non_null(strstr(str_text(&p.result.text), "\nwarn: balance"));
	played_free(&p);
}

static const struct {
	const char *name, *key, *text;
	const char *says; /* NULL: fine */
} settings[] = {
	{"plain http to a stranger", "api_url", "http://api.example.com", "https"},
	{"plain http to a name like ours", "api_url", "http://127.0.0.1.example.com", "https"},
	{"plain http at home", "api_url", "http://127.0.0.1:8080/", NULL},
	{"plain http at home, v6", "api_url", "http://[::1]:8080", NULL},
	{"a key in the address", "api_url", "https://user@host", "URL"},
	{"no address", "api_url", "api.runpod.io", "URL"},
	{"plain http for files", "s3_url", "http://s3.example.com", "https"},
	{"a cloud", "cloud", "ANY", NULL},
	{"no cloud", "cloud", "secure", "SECURE"},
	{"a version", "min_cuda", "12.10", NULL},
	{"a bare major", "min_cuda", "12", "version"},
	{"half a pair of keys", "s3_access_key", "user_1", "only one"},
};

static void the_section_is_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		struct provider *p = NULL;
		struct err err = {0};
		CLEANUP(section_free)
		struct section *s = section_new(provider_runpod.options, "burst.cfg:3");
		section_set_text(s, "api_key", "rpa_key123", "env");
		section_set_text(s, settings[i].key, settings[i].text, "burst.cfg:5");
		int result = provider_runpod.open(&p, s, "/state", &err);
		if (settings[i].says ? result == 0 || err.kind != ERR_CONFIG ||
					       !strstr(err.msg, settings[i].says)
				     : result < 0)
			fail_msg("%s: %d, %s", settings[i].name, result, err.msg);
		provider_runpod.close(p);
	}
}

/* Without a key or a call, and each of them. */
static void all_mistakes_are_noted(void **state)
{
	static const char *const gpus[] = {"none", NULL}, *const nameless[] = {"", NULL};
	CLEANUP(section_free)
	struct section *s = section_new(provider_runpod.options, "burst.cfg:3");
	struct op_want want = {.offers = {.gpus = gpus}};
	struct mistakes m = {0};
	struct err err = {0};

	(void)state;
	section_set_text(s, "cloud", "secure", "burst.cfg:5");
	section_set_text(s, "min_cuda", "12", "burst.cfg:6");
	section_set_int(s, "bid", -1, "burst.cfg:7");
	section_add_item(s, "datacenters", "eu-ro-1", "burst.cfg:8");
	assert_int_equal(provider_runpod.check_conf(s, &m, &err), 0);
	assert_int_equal(m.count, 4);
	mistakes_free(&m);
	section_set_text(s, "cloud", "COMMUNITY", "burst.cfg:5");
	assert_int_equal(provider_runpod.check_wishes(s, &want, &m, &err), 0);
	assert_int_equal(m.count, 1);
	assert_true(
		starts_with(m.list[0].err.msg,
			    "burst.cfg:5: providers.runpod.cloud = \"COMMUNITY\", but CPU pods"));
	mistakes_free(&m);
	want.offers.vram_gb = 8;
	assert_int_equal(provider_runpod.check_wishes(s, &want, &m, &err), 0);
	assert_string_equal(m.list[0].err.key, "gpu");
	mistakes_free(&m);
	want.offers.gpus = nameless;
	assert_int_equal(provider_runpod.check_wishes(s, &want, NULL, &err), -1);
	assert_string_equal(err.key, "gpu");
}

static void an_account_is_the_same_for_the_same_key(void **state)
{
	struct provider *a, *b;
	struct err err;

	(void)state;
	assert_int_equal(provider_runpod.open(&a, runpod_conf, "/1", &err), 0);
	CLEANUP(free_text) char *first = xstrdup(provider_runpod.account(a));
	provider_runpod.close(a);
	assert_null(strstr(first, "rpa_"));
	assert_int_equal(provider_runpod.open(&b, runpod_conf, "/2", &err), 0);
	assert_string_equal(provider_runpod.account(b), first);
	provider_runpod.close(b);
	section_set_text(runpod_conf, "api_key", "rpa_other999", "env");
	assert_int_equal(provider_runpod.open(&b, runpod_conf, "/2", &err), 0);
	assert_string_not_equal(provider_runpod.account(b), first);
	provider_runpod.close(b);
	section_free(runpod_conf);
	runpod_conf = section_new(provider_runpod.options, "x");
	assert_int_equal(provider_runpod.open(&b, runpod_conf, "/2", &err), -1);
	assert_int_equal(err.kind, ERR_CREDENTIALS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_balance_is_told),
		T(doctor_hears_what_is_wrong),
		T(the_section_is_checked),
		T(all_mistakes_are_noted),
		T(an_account_is_the_same_for_the_same_key),
	};

	return cmocka_run_group_tests_name("runpod account", tests, NULL, NULL);
}
