/* test_ssh_hosts.c - own hosts: what several of them answer together, and what is told to ssh */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "build/kit/host_program.h"
#include "providers/ssh/impl.h"
#include "providers/ssh/ssh.h"

struct bed {
	struct section *conf;
	struct provider *provider;
	struct str told; /* the words of all calls */
};

/* One reply of a host: stdout, stderr, exit status. */
struct said {
	const char *out, *words;
	int status;
};
#define REFUSED                                                                                    \
	{                                                                                          \
		"", "ssh: connect to host box1 port 22: Connection refused\n", 255                 \
	}
#define ABSENT                                                                                     \
	{                                                                                          \
		"motd\nburst-host: absent Linux x86_64\n", "", 0                                   \
	}

static struct bed bed_new(void)
{
	struct bed b = {.conf = section_new(provider_ssh.options, "test")};
	struct err err;

	section_add_item(b.conf, "hosts", "box1", "test:1");
	section_add_item(b.conf, "hosts", "me@box2:2222", "test:1");
	section_set_int(b.conf, "price_per_hour", 300000, "test:2");
	assert_int_equal(provider_ssh.open(&b.provider, b.conf, "/state", &err), 0);
	return b;
}

static void bed_free(struct bed *b)
{
	provider_ssh.close(b->provider);
	section_free(b->conf);
	str_free(&b->told);
}

/* Carries one operation; each call gets the next of the replies. */
static enum op_next play(struct bed *b, enum op_kind kind, const struct op_want *want,
			 const struct said *said, size_t count, struct op_result *result,
			 struct err *err)
{
	struct op *op = provider_ssh.begin(b->provider, kind, want);
	struct call call = {0};
	int64_t wait_ms;

	*result = (struct op_result){0};
	enum op_next next = provider_ssh.next(op, NULL, &call, &wait_ms, result, err);
	for (size_t i = 0; next == OP_CALL; i++) {
		assert_true(i < count);
		struct reply reply = {.status = said[i].status};
		for (size_t k = 0; k < call.argc; k++)
			str_addf(&b->told, "%s ", call.argv[k]);
		str_addc(&b->told, '\n');
		call_free(&call);
		call = (struct call){0};
		str_add(&reply.body, said[i].out);
		str_add(&reply.head, said[i].words);
		next = provider_ssh.next(op, &reply, &call, &wait_ms, result, err);
		reply_free(&reply);
	}
	provider_ssh.op_free(op);
	return next;
}
#define PLAY(b, kind, want, said, result, err)                                                     \
	play(b, kind, want, said, sizeof(said) / sizeof((said)[0]), result, err)

static void a_list_without_a_host_is_partial(void **state)
{
	static const struct said both[] = {{"hello\n{\"pods\":[]}\n", "", 0},
					   {"{\"pods\":[]}\n", "", 0}};
	static const struct said one[] = {
		REFUSED,
		{"{\"pods\":[{\"id\":\"local-aa\",\"name\":\"burst-aa\","
		 "\"state\":\"running\",\"port\":4711,\"user\":\"pod\"}]}\n",
		 "", 0}};
	static const struct said none[] = {REFUSED, REFUSED};
	static char away[] = "box1:cc", here[] = "me@box2:2222:aa", missing[] = "me@box2:2222:bb";
	char *ids[] = {away, here, missing, NULL};
	struct op_want want = {.ids = ids};
	struct bed b = bed_new();
	struct op_result r;
	struct err err;

	(void)state;
	assert_int_equal(PLAY(&b, OP_LIST, &want, both, &r, &err), OP_DONE);
	assert_false(r.partial);
	assert_int_equal(r.pod_count, 0);
	op_result_free(&r);

	assert_int_equal(PLAY(&b, OP_LIST, &want, one, &r, &err), OP_DONE);
	assert_true(r.partial);
	assert_non_null(strstr(str_text(&r.text), "box1: "));
	/* the pod of the host that is away is neither there nor gone */
	assert_int_equal(r.pod_count, 2);
	assert_string_equal(r.pods[0].id, "me@box2:2222:aa");
	assert_int_equal(r.pods[0].state, POD_STATE_RUNNING);
	assert_int_equal(r.pods[0].reach, REACH_DIAL);
	assert_string_equal(r.pods[0].host, "box2");
	assert_string_equal(r.pods[1].id, "me@box2:2222:bb");
	assert_int_equal(r.pods[1].state, POD_STATE_GONE);
	op_result_free(&r);

	assert_int_equal(PLAY(&b, OP_LIST, &want, none, &r, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_NETWORK);
	bed_free(&b);
}

static void an_inspected_pod_is_not_gone_while_its_host_is_away(void **state)
{
	static const struct said away[] = {REFUSED};
	static const struct said denied[] = {
		{"", "{\"error\":{\"kind\":\"not_found\",\"message\":\"no such pod\"}}\n", 1}};
	struct op_want want = {.id = "box1:aa"};
	struct bed b = bed_new();
	struct op_result r;
	struct err err;

	(void)state;
	assert_int_equal(PLAY(&b, OP_INSPECT, &want, away, &r, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_NETWORK);
	assert_int_equal(PLAY(&b, OP_RELEASE, &want, away, &r, &err), OP_FAILED);
	assert_int_equal(PLAY(&b, OP_INSPECT, &want, denied, &r, &err), OP_DONE);
	assert_int_equal(r.pods[0].state, POD_STATE_GONE);
	op_result_free(&r);
	COPY_TEXT(want.id, "box9:aa"); /* a host that was taken out of the list */
	assert_int_equal(PLAY(&b, OP_INSPECT, &want, away, &r, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_CONFIG);
	bed_free(&b);
}

static void a_rent_whose_connection_breaks_is_ambiguous(void **state)
{
	static const struct said broken[] = {
		{"", "client_loop: send disconnect: Broken pipe\n", 255}};
	static const struct said refused[] = {REFUSED};
	static const struct said silent[] = {{"Welcome\n", "", 0}};
	struct op_want want = {.rent = {.name = "burst-aa", .start_script = "true"}};
	struct bed b = bed_new();
	struct op_result r;
	struct err err;

	(void)state;
	COPY_TEXT(want.rent.offer.id, "box1:0,");
	assert_int_equal(PLAY(&b, OP_RENT, &want, broken, &r, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_AMBIGUOUS);
	assert_int_equal(PLAY(&b, OP_RENT, &want, silent, &r, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_AMBIGUOUS);
	assert_int_equal(PLAY(&b, OP_RENT, &want, refused, &r, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_NETWORK); /* it has begun nothing */
	bed_free(&b);
}

/* Cut after any byte of the answer, with whatever exit status: it is never taken for a refusal. */
static void a_cut_answer_to_a_rent_is_ambiguous(void **state)
{
	static const char whole[] = "{\"pods\":[{\"id\":\"local-aa\",\"name\":\"burst-aa\","
				    "\"state\":\"running\",\"port\":4711}]}\n";
	struct op_want want = {.rent = {.name = "burst-aa", .start_script = "true"}};
	struct bed b = bed_new();
	struct op_result r;
	struct err err;
	char cut[sizeof(whole)];

	(void)state;
	assert_true(provider_ssh.create_once);
	COPY_TEXT(want.rent.offer.id, "box1:0,");
	for (size_t len = 0; len < sizeof(whole); len++) {
		bool complete = len >= sizeof(whole) - 2; /* without the line's end */
		snprintf(cut, len + 1, "%s", whole);
		const struct said closed[] = {{cut, "Connection to box1 closed.\n", 255}};
		const struct said ended[] = {{cut, "", 0}};
		assert_int_equal(PLAY(&b, OP_RENT, &want, closed, &r, &err), OP_FAILED);
		assert_int_equal(err.kind, ERR_AMBIGUOUS);
		assert_int_equal(PLAY(&b, OP_RENT, &want, ended, &r, &err),
				 complete ? OP_DONE : OP_FAILED);
		if (!complete)
			assert_int_equal(err.kind, ERR_AMBIGUOUS);
		op_result_free(&r);
	}
	bed_free(&b);
}

static void a_host_gets_the_program_once(void **state)
{
	static const struct said fresh[] = {
		ABSENT, {"motd\nburst-host: kept\n", "", 0}, {"motd\n{\"text\":\"a\"}\n", "", 0}};
	static const struct said noexec[] = {ABSENT, {"burst-host: kept\n", "", 0}, ABSENT};
	static const struct said full[] = {ABSENT,
					   {"", "cat: write error: No space left on device\n", 1}};
	static const struct said other[] = {
		{"burst-host: absent Linux " HOST_OTHER_MACHINE "\n", "", 0},
		{"burst-host: kept\n", "", 0},
		{"{\"text\":\"a\"}\n", "", 0}};
	static const struct said strange[] = {{"burst-host: absent Linux riscv64\n", "", 0}};
	struct op_want want = {.id = "box1:aa"};
	struct bed b = bed_new();
	struct op_result r;
	struct err err;

	(void)state;
	assert_int_equal(PLAY(&b, OP_LOGS, &want, fresh, &r, &err), OP_DONE);
	assert_string_equal(str_text(&r.text), "a");
	op_result_free(&r);
	assert_int_equal(PLAY(&b, OP_LOGS, &want, noexec, &r, &err), OP_FAILED);
	assert_non_null(strstr(err.msg, "box1: burst's program cannot be executed there"));
	assert_int_equal(PLAY(&b, OP_LOGS, &want, full, &r, &err), OP_FAILED);
	assert_non_null(strstr(err.msg, "No space left on device"));
	enum op_next next = PLAY(&b, OP_LOGS, &want, other, &r, &err);
	assert_int_equal(next, HOST_OTHER_BYTES ? OP_DONE : OP_FAILED);
	if (next == OP_FAILED) {
		assert_non_null(strstr(err.msg, "box1: is \"Linux " HOST_OTHER_MACHINE "\""));
		assert_non_null(strstr(err.msg, ": build it where"));
	} else {
		snprintf(want.id, sizeof(want.id), "-eq %d ", HOST_OTHER_BYTES);
		assert_non_null(strstr(str_text(&b.told), want.id));
		COPY_TEXT(want.id, "box1:aa");
	}
	op_result_free(&r);
	assert_int_equal(PLAY(&b, OP_LOGS, &want, strange, &r, &err), OP_FAILED);
	assert_non_null(strstr(err.msg, "box1: is \"Linux riscv64\": hosts must be"));
	bed_free(&b);
}

static void offers_are_the_free_gpus(void **state)
{
	static const struct said said[] = {
		{"{\"left\":1,\"gpus\":[{\"model\":\"NVIDIA GeForce RTX "
		 "4090\",\"memory_mib\":24564,"
		 "\"state\":\"free\"},{\"model\":\"NVIDIA GeForce RTX 4090\",\"memory_mib\":24564,"
		 "\"state\":\"free\"},{\"model\":\"NVIDIA L40S\",\"memory_mib\":46068,\"state\":"
		 "\"used\"}]}\n",
		 "", 0},
		REFUSED};
	const char *const wishes[] = {"L40S", "RTX 4090:2", "RTX 4090", NULL};
	const char *const no_gpu[] = {"none", NULL};
	struct op_want want = {.offers.gpus = wishes};
	struct bed b = bed_new();
	struct op_result r;
	struct err err;

	(void)state;
	assert_int_equal(PLAY(&b, OP_OFFERS, &want, said, &r, &err), OP_DONE);
	assert_int_equal(r.offer_count, 2);
	assert_string_equal(r.offers[0].gpu, "RTX 4090");
	assert_int_equal(r.offers[0].gpus, 1);
	assert_int_equal(r.offers[0].wish, 2);
	assert_int_equal(r.offers[0].vram_gb, 24);
	assert_int_equal(r.offers[0].pods_max, 2);
	assert_int_equal(r.offers[0].price_microusd_h, 300000);
	assert_string_equal(r.offers[0].region, "box1");
	assert_int_equal(r.offers[1].gpus, 2);
	assert_int_equal(r.offers[1].price_microusd_h, 600000);
	assert_non_null(strstr(str_text(&r.text), "me@box2:2222: "));
	op_result_free(&r);
	want.offers.gpus = no_gpu; /* leaves the GPUs to others */
	assert_int_equal(PLAY(&b, OP_OFFERS, &want, said, &r, &err), OP_DONE);
	assert_int_equal(r.offer_count, 1);
	assert_string_equal(r.offers[0].gpu, "none");
	op_result_free(&r);
	bed_free(&b);
}

static void each_host_has_its_price(void **state)
{
	static const struct said said[] = {{"{\"left\":1,\"gpus\":[]}\n", "", 0},
					   {"{\"left\":1,\"gpus\":[]}\n", "", 0}};
	static const struct {
		const char *prices, *watts; /* an item of the list */
		bool common;                /* the common price of $0.30 stays */
		int64_t kwh, box1, box2, floor;
		const char *unpriced; /* what the remark about them begins with */
	} cases[] = {
		{"box1=0.10", NULL, true, 0, 100000, 300000, 100000, ""},
		{"me@box2:2222=0.5", "box1=450", true, 300000, 135000, 500000, 135000, ""},
		{"me@box2:2222=0", NULL, true, 0, 300000, 0, 0,
		 "no price given for me@box2:2222, so caps"},
		{"box1=0.10", NULL, false, 0, 100000, 0, 0,
		 "no price given for me@box2:2222, so caps"},
		{NULL, NULL, false, 0, 0, 0, 0, "no price given, so caps"},
	};
	struct op_want want = {0};
	struct op_result r;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bed b = bed_new();
		if (!cases[i].common)
			section_unset(b.conf, "price_per_hour");
		if (cases[i].prices)
			section_add_item(b.conf, "host_prices", cases[i].prices, "test:3");
		if (cases[i].watts)
			section_add_item(b.conf, "host_watts", cases[i].watts, "test:4");
		if (cases[i].kwh)
			section_set_int(b.conf, "price_per_kwh", cases[i].kwh, "test:5");
		assert_int_equal(provider_ssh.check_conf(b.conf, NULL, &err), 0);
		assert_int_equal(PLAY(&b, OP_OFFERS, &want, said, &r, &err), OP_DONE);
		assert_int_equal(r.offer_count, 2);
		assert_int_equal(r.offers[0].price_microusd_h, cases[i].box1);
		assert_int_equal(r.offers[1].price_microusd_h, cases[i].box2);
		assert_int_equal(r.floor_microusd_h, cases[i].floor);
		provider_remark_unpriced(&provider_ssh, b.provider, &r);
		assert_true(starts_with(str_text(&r.text), cases[i].unpriced));
		assert_true(cases[i].unpriced[0] || !r.text.len);
		op_result_free(&r);
		bed_free(&b);
	}
}

static void prices_of_hosts_that_are_mistakes(void **state)
{
	static const char *const items[][2] = {
		{"host_prices", "box3=0.10"}, {"host_prices", "box1"},
		{"host_prices", "box1=-1"},   {"host_prices", "box1=x"},
		{"host_watts", "box1=450W"},  {"host_watts", "box1="},
		{"host_watts", "box1=-5"},    {"host_watts", "box1=99999999999"},
		{"host_watts", "box1=450"}, /* without price_per_kwh */
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(items); i++) {
		struct bed b = bed_new();
		section_add_item(b.conf, items[i][0], items[i][1], "test:3");
		if (provider_ssh.check_conf(b.conf, NULL, &err) == 0)
			fail_msg("%s: \"%s\" is accepted", items[i][0], items[i][1]);
		assert_int_equal(err.kind, ERR_CONFIG);
		bed_free(&b);
	}
}

static void a_volume_is_made_only_if_no_host_has_it(void **state)
{
	static const struct said missing = {
		"", "{\"error\":{\"kind\":\"not_found\",\"message\":\"no volume\"}}\n", 1};
	static const struct said made = {"{\"volumes\":[{\"name\":\"v\"}]}\n", "", 0};
	const struct said second[] = {missing, made}, first[] = {missing, missing, made},
			  unknown[] = {missing, REFUSED};
	struct op_want want = {.volume = {.name = "v", .create = true}};
	struct bed b = bed_new();
	struct op_result r;
	struct err err;

	(void)state;
	assert_int_equal(PLAY(&b, OP_VOLUME, &want, second, &r, &err), OP_DONE);
	assert_string_equal(r.volumes[0].id, "me@box2:2222:v");
	op_result_free(&r);
	assert_int_equal(PLAY(&b, OP_VOLUME, &want, first, &r, &err), OP_DONE);
	assert_string_equal(r.volumes[0].id, "box1:v");
	op_result_free(&r);
	assert_int_equal(PLAY(&b, OP_VOLUME, &want, unknown, &r, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_TRANSIENT);
	want.volume.create = false;
	const struct said nowhere[] = {missing, missing};
	assert_int_equal(PLAY(&b, OP_VOLUME, &want, nowhere, &r, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	bed_free(&b);
}

static void ssh_is_told_no_more_than_needed(void **state)
{
	static const struct said said[] = {{"", "motd\n{\"bytes\":7}\nConnection closed.\n", 0}};
	static const struct said cut[] = {{"", "Connection to box2 closed by remote host.\n", 0}};
	struct op_want want = {.file = {.path = "a'b;c", .local = "/x"}};
	struct bed b = bed_new();
	struct op_result r;
	struct err err;

	(void)state;
	COPY_TEXT(want.file.volume.id, "me@box2:2222:v");
	assert_int_equal(PLAY(&b, OP_FETCH, &want, said, &r, &err), OP_DONE);
	assert_int_equal(r.bytes, 7);
	op_result_free(&r);
	assert_non_null(strstr(str_text(&b.told), "-o BatchMode=yes "));
	assert_non_null(strstr(str_text(&b.told), " burst /state/ssh-me@box2:2222 -T "));
	assert_non_null(strstr(str_text(&b.told), "-p 2222 -l me -- box2 exec sh -c '"));
	assert_null(strstr(str_text(&b.told), "StrictHostKeyChecking"));
	assert_non_null(strstr(str_text(&b.told), " 'a'\\''b;c' '0'")); /* quoted for a shell */
	/* the exit status is that of a pipe: only burst-host's own answer counts */
	assert_int_equal(PLAY(&b, OP_FETCH, &want, cut, &r, &err), OP_FAILED);
	bed_free(&b);
}

static void names_of_hosts(void **state)
{
	static const char *const good[] = {"box1", "me@box2", "me@box2:2222", "10.0.0.7",
					   "a-b_c.d"};
	static const char *const bad[] = {"",
					  "-oProxyCommand=x",
					  "me@",
					  "@box",
					  "box:0",
					  "box:x",
					  "box:70000",
					  "a b",
					  "a;b",
					  "a/b",
					  "::1",
					  "me@-box",
					  "a..b",
					  "a'b",
					  "a-name-that-is-too-long-to-be-a-region"};
	char host[HOST_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (host_check(good[i]))
			fail_msg("%s: %s", good[i], host_check(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (!host_check(bad[i]))
			fail_msg("\"%s\" is taken for a host", bad[i]);
	assert_string_equal(host_of_id("me@box2:2222:aa", host), "aa");
	assert_string_equal(host, "me@box2:2222");
	assert_null(host_of_id("never-was-there", host));
	assert_null(host_of_id("-oProxyCommand=x:aa", host));
	assert_null(host_of_id("box1:", host));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_without_a_host_is_partial),
		cmocka_unit_test(an_inspected_pod_is_not_gone_while_its_host_is_away),
		cmocka_unit_test(a_rent_whose_connection_breaks_is_ambiguous),
		cmocka_unit_test(a_cut_answer_to_a_rent_is_ambiguous),
		cmocka_unit_test(a_host_gets_the_program_once),
		cmocka_unit_test(offers_are_the_free_gpus),
		cmocka_unit_test(each_host_has_its_price),
		cmocka_unit_test(prices_of_hosts_that_are_mistakes),
		cmocka_unit_test(a_volume_is_made_only_if_no_host_has_it),
		cmocka_unit_test(ssh_is_told_no_more_than_needed),
		cmocka_unit_test(names_of_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
