/* test_provider.c - which answers of a provider are believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"
#include "provider.h"

static struct pod_view good_pod(void)
{
	struct pod_view v = {.state = POD_STATE_RUNNING,
			     .port = 22022,
			     .price_microusd_h = 690000,
			     .created_at_s = 1800000000};

	COPY_TEXT(v.id, "7h9k2m4n6p");
	COPY_TEXT(v.host, "203.0.113.9");
	COPY_TEXT(v.user, "root");
	COPY_TEXT(v.marker.machine, "0123456789abcdef");
	COPY_TEXT(v.marker.run, "1122-101500-ab12");
	COPY_TEXT(v.marker.attempt, "fedcba9876543210");
	return v;
}

static struct pod_view pod_at(const char *host, const char *user, int port)
{
	struct pod_view v = good_pod();

	COPY_TEXT(v.host, host);
	COPY_TEXT(v.user, user);
	v.port = port;
	return v;
}

static int check(struct pod_view *v, struct err *err)
{
	struct op_result r = {.pods = v, .pod_count = 1};

	return provider_check_answer(&r, err);
}

static void addresses(void **state)
{
	static const struct {
		const char *name, *host, *user;
		int port;
		const char *detail; /* NULL: it is believed */
	} cases[] = {
		{"an IPv4 address", "203.0.113.9", "root", 22, NULL},
		{"a name", "r435.modal.host", "root", 443, NULL},
		{"an IPv6 address", "2001:db8::1", "root", 22, NULL},
		{"the loopback address", "::1", "", 22, NULL},
		{"a user of a proxy", "ssh.example.com", "7h9k2m-64410a21", 22, NULL},
		{"a user that is an option", "h", "-oProxyCommand=touch x", 22,
		 "it names \"-oProxyCommand=touch x\" as its user for ssh"},
		{"a user with a host", "h", "a@b", 22, "as its user"},
		{"a user with a blank", "h", "a b", 22, "as its user"},
		{"a user with a control character", "h", "a\033[2J", 22,
		 "it names \"a\\x1b[2J\" as its user"},
		{"a user with a quote", "h", "a'b", 22, "as its user"},
		{"a host that is an option", "-oProxyCommand=x", "root", 22,
		 "it names \"-oProxyCommand=x\" as its host"},
		{"a host with a blank", "h -o x", "root", 22, "as its host"},
		{"a host with a user", "root@h", "root", 22, "as its host"},
		{"a host with a percent sign", "fe80::1%eth0", "root", 22, "as its host"},
		{"no host", "", "root", 22, "as its host"},
		{"a port beyond", "h", "root", 70000, "it names \"70000\" as its port"},
		{"a negative port", "h", "root", -1, "it names \"-1\" as its port"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod_view v = pod_at(cases[i].host, cases[i].user, cases[i].port);
		struct err err = {0};
		if (check(&v, &err) < 0)
			fail_msg("%s: %s", cases[i].name, err.msg);
		if (!cases[i].detail && (v.state != POD_STATE_RUNNING || v.port != cases[i].port))
			fail_msg("%s: not believed: %s", cases[i].name, v.detail);
		if (cases[i].detail && (v.state != POD_STATE_FAILED || v.port || v.host[0] ||
					v.user[0] || !strstr(v.detail, cases[i].detail)))
			fail_msg("%s: %s at %s@%s:%d: %s", cases[i].name, pod_state_name(v.state),
				 v.user, v.host, v.port, v.detail);
	}
}

/* Which pods burst connects to, and how. */
static void reaches(void **state)
{
	static const struct {
		const char *name, *host, *user;
		int port;
		enum pod_reach said, reach;
		bool failed;
	} cases[] = {
		{"an address", "h", "", 22, REACH_NONE, REACH_SSH, false},
		{"none yet", "", "", 0, REACH_NONE, REACH_NONE, false},
		{"a host without a port", "h", "root", 0, REACH_NONE, REACH_NONE, false},
		{"ssh without a port", "h", "root", 0, REACH_SSH, REACH_NONE, false},
		{"a number that means nothing", "h", "", 22, (enum pod_reach)77, REACH_SSH, false},
		{"a child", "", "", 0, REACH_DIAL, REACH_DIAL, false},
		{"a child, with a user and a host for it", "gpu-7", "ann", 0, REACH_DIAL,
		 REACH_DIAL, false},
		{"a child, and a user that is an option", "", "-l", 0, REACH_DIAL, REACH_NONE,
		 true},
		{"a child, and a host that is an option", "-v", "", 0, REACH_DIAL, REACH_NONE,
		 true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod_view v = pod_at(cases[i].host, cases[i].user, cases[i].port);
		struct err err = {0};
		v.reach = cases[i].said;
		if (check(&v, &err) < 0)
			fail_msg("%s: %s", cases[i].name, err.msg);
		if (v.reach != cases[i].reach || (v.state == POD_STATE_FAILED) != cases[i].failed)
			fail_msg("%s: reach %d, %s: %s", cases[i].name, (int)v.reach,
				 pod_state_name(v.state), v.detail);
	}
}

static void a_provider_without_a_way(void **state)
{
	struct provider_ops ops = {.name = "runpod"};
	struct pod_view v = good_pod();
	struct call call = {.kind = CALL_CHILD};
	struct err err = {0};

	(void)state;
	assert_int_equal(provider_dial(&ops, NULL, &v, &call, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_int_equal(call.argc, 0);
}

static void a_pod_that_is_over_stays_over(void **state)
{
	struct pod_view v = good_pod();
	struct err err = {0};

	(void)state;
	v.state = POD_STATE_GONE;
	COPY_TEXT(v.host, "-x");
	assert_int_equal(check(&v, &err), 0);
	assert_int_equal(v.state, POD_STATE_GONE);
	assert_int_equal(v.port, 0);
}

static void spoil_id(struct pod_view *v)
{
	COPY_TEXT(v->id, "../../x");
}
static void spoil_id_option(struct pod_view *v)
{
	COPY_TEXT(v->id, "-rf");
}
static void spoil_id_escape(struct pod_view *v)
{
	COPY_TEXT(v->id, "a\033b");
}
static void spoil_id_empty(struct pod_view *v)
{
	v->id[0] = '\0';
}
static void spoil_id_endless(struct pod_view *v)
{
	memset(v->id, 'a', sizeof(v->id));
}
static void spoil_name_endless(struct pod_view *v)
{
	memset(v->name, 'a', sizeof(v->name));
}
static void spoil_end(struct pod_view *v)
{
	v->marker.hard_end_s = INT64_MAX;
}
static void spoil_price(struct pod_view *v)
{
	v->price_microusd_h = -690000;
}
static void spoil_price_huge(struct pod_view *v)
{
	v->price_microusd_h = INT64_MAX;
}
static void spoil_time(struct pod_view *v)
{
	v->created_at_s = INT64_MIN;
}

static void answers_that_cannot_be_right(void **state)
{
	static const struct {
		const char *name;
		void (*spoil)(struct pod_view *v);
	} cases[] = {
		{"an id that is a path", spoil_id},
		{"an id that is an option", spoil_id_option},
		{"an id with an escape", spoil_id_escape},
		{"no id", spoil_id_empty},
		{"an id that does not end", spoil_id_endless},
		{"a name that does not end", spoil_name_endless},
		{"a hard end beyond all", spoil_end},
		{"a price below zero", spoil_price},
		{"a price beyond all", spoil_price_huge},
		{"a time beyond all", spoil_time},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod_view v = good_pod();
		struct err err = {0};
		cases[i].spoil(&v);
		if (check(&v, &err) == 0 || err.kind != ERR_UNTRUSTED ||
		    !strstr(err.msg, "its answer cannot be trusted"))
			fail_msg("%s: %s", cases[i].name, err.msg);
	}
}

/* Who shows them makes them printable; a stranger's pod must not keep us from seeing our own. */
static void texts_for_people_may_be_any(void **state)
{
	struct pod_view v = good_pod();
	struct err err = {0};

	(void)state;
	COPY_TEXT(v.detail, "\033]0;title\007");
	COPY_TEXT(v.marker.run, "r\033[31m");
	assert_int_equal(check(&v, &err), 0);
	assert_string_equal(v.marker.run, "r\033[31m");
}

static void offers_and_volumes(void **state)
{
	struct offer o = {.price_microusd_h = -1};
	struct volume vol = {.size_gb = 1};
	struct err err = {0};
	struct op_result dear = {.offers = &o, .offer_count = 1},
			 odd = {.volumes = &vol, .volume_count = 1};

	(void)state;
	assert_int_equal(provider_check_answer(&dear, &err), -1);
	COPY_TEXT(vol.id, "../elsewhere");
	assert_int_equal(provider_check_answer(&odd, &err), -1);
	COPY_TEXT(vol.id, "tts-cache");
	assert_int_equal(provider_check_answer(&odd, &err), 0);
}

static void counts(void **state)
{
	enum { MOST = 5000 };
	struct op_result r = {0};
	struct err err = {0};

	(void)state;
	for (int i = 0; i < MOST; i++)
		*op_result_add_pod(&r) = good_pod();
	assert_true(op_result_has_pod(&r, good_pod().id));
	assert_false(op_result_has_pod(&r, "another"));
	assert_int_equal(provider_check_answer(&r, &err), 0);
	*op_result_add_pod(&r) = good_pod();
	assert_int_equal(provider_check_answer(&r, &err), -1);
	assert_int_equal(err.kind, ERR_UNTRUSTED);
	op_result_free(&r);
	assert_int_equal(
		op_result_check_counts(&(struct op_result){.volume_count = MOST + 1}, &err), -1);
	assert_int_equal(
		op_result_check_counts(&(struct op_result){.offer_count = 10 * MOST + 1}, &err),
		-1);
}

static void images(void **state)
{
	static const struct option_spec table[] = {{"image", OPTION_TEXT, 0, NULL, "", NULL},
						   {NULL}};
	static const struct {
		const char *image;
		bool good;
	} cases[] = {
		{"debian", true},
		{"debian:12", true},
		{"nvidia/cuda:12.8.1-base-ubuntu24.04", true},
		{"ghcr.io/me/my_voices--x:1.0", true},
		{"registry.example.com:5000/a/b@sha256:0123456789abcdef", true},
		{"ghcr.io/me/../other/evil", false},
		{"..", false},
		{"ghcr.io/me/..", false},
		{"ghcr.io/me/.hidden", false},
		{"ghcr.io//me", false},
		{"/me", false},
		{"me/", false},
		{"-v", false},
		{"a b", false},
		{"a\nRUN x", false},
		{"a%2e%2e/b", false},
		{"", true}, /* as in the example: the provider's own */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(section_free) struct section *s = section_new(table, "burst.cfg:1");
		struct err err = {0};
		section_set_text(s, "image", cases[i].image, "burst.cfg:3");
		bool good = provider_check_image(s, "pod", "image", &err) == 0;
		if (good != cases[i].good ||
		    (!good &&
		     (err.kind != ERR_CONFIG || !starts_with(err.msg, "burst.cfg:3: pod.image: "))))
			fail_msg("%s: %s", cases[i].image, err.msg);
	}
	CLEANUP(section_free) struct section *none = section_new(table, "burst.cfg:1");
	assert_int_equal(provider_check_image(none, "pod", "image", NULL), 0);
}

static void pulls(void **state)
{
	static const struct {
		const char *text;
		bool of_a_pull;
		enum pull_verdict verdict;
	} cases[] = {
		{"manifest for x:9 not found: manifest unknown: x", false, PULL_HOPELESS},
		{"Error response from daemon: pull access denied for x", false, PULL_HOPELESS},
		{"denied: requested access to the resource is denied", false, PULL_HOPELESS},
		{"unauthorized: authentication required", false, PULL_HOPELESS},
		{"toomanyrequests: You have reached your unauthenticated pull rate limit", false,
		 PULL_LIMITED},
		{"toomanyrequests: access denied", true, PULL_LIMITED},
		{"rpc error: docker.io/library/x:1: not found", true, PULL_HOPELESS},
		{"exec: \"sh\": executable file not found in $PATH", false, PULL_MAY_WORK},
		{"ghcr.io/x: 403 Forbidden: denied", true, PULL_HOPELESS},
		{"permission denied", false, PULL_MAY_WORK},
		{"i/o timeout", true, PULL_MAY_WORK},
		{"", true, PULL_MAY_WORK},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enum pull_verdict verdict = provider_judge_pull(cases[i].text, cases[i].of_a_pull);
		if (verdict != cases[i].verdict)
			fail_msg("%s: %d, want %d", cases[i].text, verdict, cases[i].verdict);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(reaches),
		cmocka_unit_test(a_provider_without_a_way),
		cmocka_unit_test(a_pod_that_is_over_stays_over),
		cmocka_unit_test(answers_that_cannot_be_right),
		cmocka_unit_test(texts_for_people_may_be_any),
		cmocka_unit_test(offers_and_volumes),
		cmocka_unit_test(counts),
		cmocka_unit_test(images),
		cmocka_unit_test(pulls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
