/* test_vast_rent.c - an instance is created: what is sent, the kind of each failure, and what a
 * failed create leaves. */
#include "vast_play.h"

#define CREATED "{\"success\":true,\"new_contract\":30000001,\"instance_api_key\":\"k\"}"

/* Returns the text that gzip and base64 of the variables hold, as the pod's own shell finds it. */
static char *unpacked(const json_t *body)
{
	CLEANUP(str_free) struct str command = STR_INIT;
	CLEANUP(str_free) struct str out = STR_INIT;
	const json_t *env = json_object_get(body, "env"), *value;
	char line[4096];
	const char *name;
	size_t pieces = 0;

	assert_string_equal(jsonx_text(env, "-p 22:22", ""), "1");
	assert_string_equal(jsonx_text(env, "BURST_MARKER", ""), LABEL);
	str_add(&command, "env -i PATH=/usr/bin:/bin");
	json_object_foreach ((json_t *)env, name, value) {
		if (!starts_with(name, "BURST_P"))
			continue;
		pieces++;
		assert_in_range(strlen(name) + json_string_length(value), 10, 250);
		str_addf(&command, " %s=%s", name, json_string_value(value));
	}
	assert_int_equal(json_object_size(env), pieces + 2);
	/* the last step of the arguments is "exec sh FILE": cat shows the file instead */
	const char *script = json_string_value(json_array_get(json_object_get(body, "args"), 2));
	CLEANUP(free_text) char *shown = xstrdup(script);
	char *exec = strstr(shown, "exec sh ");
	assert_non_null(exec);
	memcpy(exec, "env;cat ", 8);
	str_add(&command, " sh -c ");
	str_add_shell(&command, shown);
	FILE *f = popen(str_text(&command), "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		str_add(&out, line);
	assert_int_equal(pclose(f), 0);
	return str_detach(&out);
}

static void a_create_says_all_that_it_must(void **state)
{
	struct op_want want = a_vast_rent();
	struct played p = PLAY(OP_RENT, &want, {200, CREATED});

	(void)state;
	check_done("create", &p);
	check_call(&p, 0, "PUT", ROOT "/v0/asks/7000001/");
	assert_false(p.call[0].may_repeat);
	assert_int_equal(p.call[0].class, CALL_CREATE);
	CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
	assert_string_equal(jsonx_text(body, "image", ""), VAST_IMAGE);
	assert_string_equal(jsonx_text(body, "label", ""), LABEL);
	assert_string_equal(jsonx_text(body, "runtype", ""), "args");
	assert_string_equal(jsonx_text(body, "onstart", ""), "/usr/bin/env");
	assert_int_equal(jsonx_int(body, "disk", 0), 40);
	assert_true(jsonx_bool(body, "cancel_unavail", false));
	assert_null(json_object_get(body, "price"));
	assert_int_equal(p.result.pod_count, 1);
	assert_string_equal(p.result.pods[0].id, "30000001");
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	assert_int_equal(p.result.pods[0].price_microusd_h, 430000);
	assert_string_equal(p.result.pods[0].marker.attempt, "00000000000000f1");
	played_free(&p);
}

static void the_pods_shell_finds_script_and_environment(void **state)
{
	struct op_want want = a_vast_rent();
	struct played p = PLAY(OP_RENT, &want, {200, CREATED});
	CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
	CLEANUP(free_text) char *text = unpacked(body);

	(void)state;
	assert_null(strstr(text, "BURST_P")); /* the pieces leave the environment */
	assert_non_null(strstr(text, "\nexport BURST_AUTHORIZED_KEY='ssh-ed25519 AAAA burst'\n"));
	assert_non_null(strstr(text, "\nexport BURST_HARD_END='1800000000'\n"));
	assert_non_null(strstr(text, "\nexport BURST_HIDE='CONTAINER_API_KEY'\n"));
	assert_non_null(strstr(text, "\nexport BURST_API_URL='https://console.vast.ai'\n"));
	assert_true(ends_with(text, want.rent.start_script));
	played_free(&p);
}

static void a_bid_and_a_small_disk(void **state)
{
	struct op_want want = a_vast_rent();

	(void)state;
	COPY_TEXT(want.rent.offer.id, "7000001/220000/0");
	want.rent.offer.spot = true;
	want.rent.image = "debian:12";
	want.rent.disk_gb = 3;
	struct played p = PLAY(OP_RENT, &want, {200, CREATED});
	CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
	assert_true(jsonx_number(body, "price", 0) > 0.2199 &&
		    jsonx_number(body, "price", 0) < 0.2201);
	assert_string_equal(jsonx_text(body, "image", ""), "debian:12");
	assert_int_equal(jsonx_int(body, "disk", 0), VAST_DISK_LEAST_GB);
	assert_true(p.result.pods[0].spot);
	played_free(&p);
}

/* With the items "me=bob" and "ghcr.io/me=eve". */
static void a_login_for_private_images_alone(void **state)
{
	static const struct {
		const char *image, *token;
		bool allowed;
		const char *login; /* NULL: none; "!WORDS": an error that has them */
	} cases[] = {
		{"debian:12", "t0k", true, NULL},
		{"melon/x", "t0k", true, NULL},
		{"ghcr.io/melon/x", "t0k", true, NULL},
		{"ghcr.io/you/x", NULL, false, NULL},
		{"me/x:1", "dckr_pat_a-B", true, "-u bob -p dckr_pat_a-B docker.io"},
		{"ghcr.io/me/x@sha256:ab", "t0k", true, "-u eve -p t0k ghcr.io"},
		{"ghcr.io/me/x", "t0k", false, "!providers.vast.allow_secrets = true"},
		{"ghcr.io/me/x", NULL, true, "!VAST_REGISTRY_TOKEN"},
		{"ghcr.io/me/x", "a b", true, "!providers.vast.registry_token"},
		{"ghcr.io/me/x", "-u root", true, "!providers.vast.registry_token"},
		{"ghcr.io/me/x", "a'b", true, "!providers.vast.registry_token"},
	};

	(void)state;
	section_add_item(vast_conf, "registry", "me=bob", "test");
	section_add_item(vast_conf, "registry", "ghcr.io/me=eve", "test");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = a_vast_rent();
		want.rent.image = cases[i].image;
		section_set_bool(vast_conf, "allow_secrets", cases[i].allowed, "test");
		section_unset(vast_conf, "registry_token");
		if (cases[i].token)
			section_set_text(vast_conf, "registry_token", cases[i].token, "test");
		const char *login = cases[i].login;
		bool fails = login && login[0] == '!';
		struct played p =
			fails ? PLAY(OP_RENT, &want, {-2}) : PLAY(OP_RENT, &want, {200, CREATED});
		if (fails) {
			check_failed(cases[i].image, &p, ERR_CONFIG);
			assert_non_null(strstr(p.err.msg, login + 1));
			assert_true(!cases[i].token || !strstr(p.err.msg, cases[i].token));
		} else {
			CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
			assert_string_equal(jsonx_text(body, "image_login", "none"),
					    login ? login : "none");
		}
		assert_int_equal(p.calls, !fails);
		played_free(&p);
	}
}

static void a_machine_that_leaves_too_early_is_not_asked_for(void **state)
{
	struct op_want want = a_vast_rent();

	(void)state;
	COPY_TEXT(want.rent.offer.id, "7000001/0/1799999000");
	struct played p = PLAY(OP_RENT, &want, {-2});
	check_failed("early end", &p, ERR_NO_CAPACITY);
	assert_int_equal(p.calls, 0);
	assert_non_null(strstr(p.err.msg, "takes the machine back 18 min before"));
	played_free(&p);
}

static void a_script_that_is_too_long_is_an_error_before_any_request(void **state)
{
	struct op_want want = a_vast_rent();
	CLEANUP(str_free) struct str script = STR_INIT;

	(void)state;
	for (int i = 0; i < 4000; i++) { /* which no compression makes short */
		char random[17];
		random_hex(random, 8);
		str_add(&script, random);
	}
	want.rent.start_script = str_text(&script);
	struct played p = PLAY(OP_RENT, &want, {-2});
	check_failed("too long", &p, ERR_CONFIG);
	assert_int_equal(p.calls, 0);
	played_free(&p);
}

static const struct {
	const char *name;
	struct answer answer;
	enum err_kind rent, list; /* ERR_NONE: not tried */
	const char *says;
} failures[] = {
	{"the offer is gone",
	 {410, REFUSAL("no_such_ask", "error 410/3907: no_such_ask Instance type 7000001 is no "
				      "longer available.")},
	 ERR_NO_CAPACITY,
	 ERR_NONE,
	 "no longer available"},
	{"no such offer",
	 {404, REFUSAL("invalid_args", "error 404/3603: no_such_ask Instance type by id 7000001 is "
				       "not available.")},
	 ERR_NO_CAPACITY,
	 ERR_NONE,
	 "not available"},
	{"too low a bid",
	 {400, REFUSAL("invalid_price", "bid too low")},
	 ERR_NO_CAPACITY,
	 ERR_NONE,
	 "bid too low"},
	{"arguments", {400, REFUSAL("invalid_args", "args")}, ERR_REFUSED, ERR_CONFIG, "args"},
	{"another's machine",
	 {403, REFUSAL("invalid_args", "not your own")},
	 ERR_REFUSED,
	 ERR_CREDENTIALS,
	 "not your own"},
	{"no money",
	 {400, REFUSAL("insufficient_credit", "Your account lacks credit")},
	 ERR_BALANCE,
	 ERR_NONE,
	 "add credit"},
	{"a key that Vast does not know",
	 {404, "{\"success\":false,\"error\":\"auth_error\",\"msg\":\"Invalid user key\"}"},
	 ERR_CREDENTIALS,
	 ERR_CREDENTIALS,
	 "is the API key correct"},
	{"no key",
	 {401, "{\"msg\":\"This action requires login.\"}"},
	 ERR_CREDENTIALS,
	 ERR_CREDENTIALS,
	 ""},
	{"too often, in plain text",
	 {429, "API requests too frequent: endpoint threshold=4.5"},
	 ERR_RATE_LIMITED,
	 ERR_RATE_LIMITED,
	 "too frequent"},
	{"500", {500, "oops"}, ERR_AMBIGUOUS, ERR_TRANSIENT, "oops"},
	{"a page of HTML",
	 {502, "<html>\x1b[31m</html>"},
	 ERR_AMBIGUOUS,
	 ERR_TRANSIENT,
	 "HTTP 502"},
	{"408", {408, ""}, ERR_AMBIGUOUS, ERR_TRANSIENT, ""},
	{"lost", {0}, ERR_AMBIGUOUS, ERR_NETWORK, ""},
	{"never sent", {-1}, ERR_NETWORK, ERR_NETWORK, ""},
	{"not JSON", {200, "{\"success\":true,"}, ERR_AMBIGUOUS, ERR_TRANSIENT, "cannot be read"},
	{"no instance in it", {200, "{\"success\":true}"}, ERR_AMBIGUOUS, ERR_TRANSIENT, ""},
	{"success false with 200",
	 {200, REFUSAL("invalid_args", "no")},
	 ERR_REFUSED,
	 ERR_REFUSED,
	 "no"},
};

static void each_failure_has_its_kind(void **state)
{
	struct op_want want = a_vast_rent();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct played p = PLAY(OP_RENT, &want, failures[i].answer);
		check_failed(failures[i].name, &p, failures[i].rent);
		if (!strstr(p.err.msg, failures[i].says))
			fail_msg("%s: \"%s\"", failures[i].name, p.err.msg);
		if (p.err.kind == ERR_RATE_LIMITED)
			assert_int_equal(p.err.retry_after_ms, 4500);
		assert_null(strchr(p.err.msg, '\x1b'));
		played_free(&p);
		if (!failures[i].list)
			continue;
		p = PLAY(OP_LIST, &want, failures[i].answer);
		check_failed(failures[i].name, &p, failures[i].list);
		played_free(&p);
	}
}

#define LEFT                                                                                       \
	"{\"success\":false,\"error\":\"invalid_price\",\"msg\":\"too low\","                      \
	"\"new_contract\":30000009}"
static const struct {
	const char *name;
	struct answer create, release;
	enum err_kind kind;
} leftovers[] = {
	{"released", {400, LEFT}, {200, "{\"success\":true}"}, ERR_NO_CAPACITY},
	{"gone already", {400, LEFT}, {404, REFUSAL("no_such_instance", "no")}, ERR_NO_CAPACITY},
	{"named in a 200", {200, LEFT}, {200, "{\"success\":true}"}, ERR_NO_CAPACITY},
	{"named in a 500", {500, LEFT}, {200, "{\"success\":true}"}, ERR_AMBIGUOUS},
	{"its release fails", {400, LEFT}, {500, "oops"}, ERR_AMBIGUOUS},
	{"its release is lost", {400, LEFT}, {0}, ERR_AMBIGUOUS},
	{"its release is refused", {400, LEFT}, {200, REFUSAL("x", "no")}, ERR_AMBIGUOUS},
};

static void what_a_failed_create_leaves_is_released(void **state)
{
	struct op_want want = a_vast_rent();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(leftovers); i++) {
		struct played p = PLAY(OP_RENT, &want, leftovers[i].create, leftovers[i].release);
		check_failed(leftovers[i].name, &p, leftovers[i].kind);
		check_call(&p, 1, "DELETE", ROOT "/v0/instances/30000009/");
		assert_int_equal(p.call[1].class, CALL_RELEASE);
		assert_non_null(strstr(p.err.msg, "too low"));
		played_free(&p);
	}
}

static void offers_of_others_are_refused(void **state)
{
	static const char *const ids[] = {"",      "7000001",      "7000001/0",    "x/0/0",
					  "0/0/0", "7000001/0/0x", "7000001/-1/0", "7000001/5/0"};
	struct op_want want = a_vast_rent();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		COPY_TEXT(want.rent.offer.id, ids[i]);
		struct played p = PLAY(OP_RENT, &want, {-2});
		check_failed(ids[i], &p, ERR_BUG);
		assert_int_equal(p.calls, 0);
		played_free(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_create_says_all_that_it_must),
		T(the_pods_shell_finds_script_and_environment),
		T(a_bid_and_a_small_disk),
		T(a_login_for_private_images_alone),
		T(a_machine_that_leaves_too_early_is_not_asked_for),
		T(a_script_that_is_too_long_is_an_error_before_any_request),
		T(each_failure_has_its_kind),
		T(what_a_failed_create_leaves_is_released),
		T(offers_of_others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
