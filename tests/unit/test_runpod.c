/* test_runpod.c - the RunPod translator by literal replies: what is asked, and what is made of each
 * answer. With BURST_REQUESTS_TO=FILE every REST request that a test provokes is appended there,
 * one JSON object a line, for tests/e2e/runpod_schema.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "jobs/agent/kit.h"
#include "providers/runpod/impl.h"
#include "providers/runpod/runpod.h"

enum { CALLS_MAX = 20 };

/* One answer of the other side, as a test writes it. */
struct answer {
	/* 0: the reply is lost after the request was sent; -1: nothing could be sent; -2: this is a
	 * wait */
	int status;
	const char *body, *head;
};

struct played {
	enum op_next last;
	int calls, waits;
	int64_t waited_ms;
	struct call call[CALLS_MAX];
	struct op_result result;
	struct err err;
};

static struct section *conf;

static int set_up(void **state)
{
	(void)state;
	conf = section_new(provider_runpod.options, "burst.cfg:1");
	section_set_text(conf, "api_key", "rpa_key123", "test");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	section_free(conf);
	return 0;
}

static void keep_request(const struct call *call)
{
	const char *path = getenv("BURST_REQUESTS_TO");

	if (!path || call->sigv4)
		return;
	CLEANUP(file_close) FILE *f = fopen(path, "ae");
	json_t *body = call->body.len ? jsonx_parse(call->body.s, call->body.len, NULL) : NULL;
	CLEANUP(json_decref)
	json_t *line =
		json_pack("{s:s,s:s,s:o?}", "method", call->method, "url", call->url, "body", body);
	CLEANUP(free_text) char *text = jsonx_line(line);
	assert_non_null(f);
	fprintf(f, "%s\n", text);
}

static void fill_reply(struct reply *r, const struct answer *a)
{
	*r = (struct reply){
		.status = MAX(a->status, 0), .failed = a->status <= 0, .was_sent = a->status == 0};
	if (r->failed)
		err_set(&r->err, ERR_NETWORK, "the line was cut");
	str_add(&r->body, a->body ? a->body : "");
	str_add(&r->head, a->head ? a->head : "");
}

/* Carries an operation through these answers; more calls than answers fail the test. */
static struct played play(enum op_kind kind, const struct op_want *want,
			  const struct answer *answers, int count)
{
	struct played p = {0};
	struct provider *provider = NULL;
	struct reply reply = {0};
	bool have = false;

	if (provider_runpod.open(&provider, conf, "/state", &p.err) < 0) {
		p.last = OP_FAILED;
		return p;
	}
	struct op *op = provider_runpod.begin(provider, kind, want);
	for (int turn = 0; turn < 100; turn++) {
		struct call call = {0};
		int64_t wait_ms = 0;
		p.last = provider_runpod.next(op, have ? &reply : NULL, &call, &wait_ms, &p.result,
					      &p.err);
		reply_free(&reply);
		have = false;
		if (p.last == OP_WAIT) {
			assert_true(wait_ms > 0);
			p.waits++;
			p.waited_ms += wait_ms;
			continue;
		}
		if (p.last != OP_CALL)
			break;
		if (p.calls == count)
			fail_msg("one call more than answers: %s %s", call.method, call.url);
		keep_request(&call);
		p.call[p.calls] = call;
		fill_reply(&reply, &answers[p.calls++]);
		have = true;
	}
	reply_free(&reply);
	provider_runpod.op_free(op);
	provider_runpod.close(provider);
	if (p.last == OP_FAILED)
		assert_true(p.err.kind != ERR_NONE && p.err.msg[0]);
	assert_null(strstr(p.err.msg, "rpa_key123"));
	return p;
}
#define PLAY(kind, want, ...)                                                                      \
	play((kind), (want), (const struct answer[]){__VA_ARGS__},                                 \
	     (int)ARRAY_LEN(((const struct answer[]){__VA_ARGS__})))

static void played_free(struct played *p)
{
	for (int i = 0; i < p->calls; i++)
		call_free(&p->call[i]);
	op_result_free(&p->result);
}

static void check_failed(const char *what, struct played *p, enum err_kind kind)
{
	if (p->last != OP_FAILED || p->err.kind != kind)
		fail_msg("%s: got %s (%s), want %s", what,
			 p->last == OP_DONE ? "done" : err_kind_name(p->err.kind), p->err.msg,
			 err_kind_name(kind));
}

static void check_done(const char *what, const struct played *p)
{
	if (p->last != OP_DONE)
		fail_msg("%s: %s: %s", what, err_kind_name(p->err.kind), p->err.msg);
}

static void check_call(const struct played *p, int i, const char *method, const char *url)
{
	if (i >= p->calls)
		fail_msg("only %d calls", p->calls);
	assert_string_equal(p->call[i].method, method);
	assert_string_equal(p->call[i].url, url);
}

#define ROOT "https://api.runpod.io"

/* ---- offers ---- */

#define DC(id, stock) "{\"id\":\"" id "\",\"name\":\"" id "\",\"availability\":\"" stock "\"}"
#define GPU(id, name, memory, secure, community, stock, dcs)                                       \
	"{\"id\":\"" id "\",\"name\":\"" name                                                      \
	"\",\"pool\":null,\"manufacturer\":\"NVIDIA\",\"memory\":" memory                          \
	",\"secure\":true,\"community\":true,\"price\":{\"secure\":" secure                        \
	",\"community\":" community                                                                \
	"},\"maxCount\":{\"secure\":8,\"community\":1},\"availability\":\"" stock                  \
	"\",\"dataCenters\":[" dcs "]}"
#define CATALOG                                                                                    \
	"{\"gpus\":[" GPU(                                                                         \
		"NVIDIA GeForce RTX 4090", "RTX 4090", "24", "0.69", "0.34", "HIGH",               \
		DC("EU-RO-1", "LOW") "," DC("US-KS-2", "HIGH") "," DC(                             \
			"US-TX-3",                                                                 \
			"NONE")) "," GPU("NVIDIA GeForce RTX 5090", "RTX 5090", "32", "0.99",      \
					 "0.69", "MEDIUM",                                         \
					 DC("US-KS-2",                                             \
					    "MEDIUM")) "," GPU("NVIDIA L40S", "L40S", "48",        \
							       "0.86", "0.79", "NONE",             \
							       "") "," GPU("NVIDIA GeForce RTX "   \
									   "3090 Ti",              \
									   "RTX 3090 Ti", "24",    \
									   "0.46", "0.27", "LOW",  \
									   DC("EU-RO-1",           \
									      "LOW")) "]}"
/* what a container's disk costs an hour: of 40 GB, which is the default, and of 20 GB */
enum { DISK_40 = 5480, DISK_20 = 2740 };

#define CATALOG_URL ROOT "/v2/catalog/gpus?include=AVAILABILITY&product=POD"

static struct op_want wanting(const char *const *gpus)
{
	return (struct op_want){.offers.gpus = gpus};
}

static void offers_are_read(void **state)
{
	static const char *const gpus[] = {"5090", "NVIDIA GeForce RTX 4090", NULL};
	struct op_want want = wanting(gpus);
	struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG});

	(void)state;
	check_done("offers", &p);
	check_call(&p, 0, "GET", CATALOG_URL "&count=1&cloud=SECURE&minCudaVersion=12.8");
	assert_string_equal(p.call[0].headers[0], "Authorization: Bearer rpa_key123");
	assert_true(p.call[0].may_repeat);
	assert_int_equal(p.result.offer_count, 3);
	const struct offer *o = &p.result.offers[0];
	assert_string_equal(o->id, "SECURE/EU-RO-1/1/NVIDIA GeForce RTX 4090");
	assert_string_equal(o->gpu, "RTX 4090");
	assert_string_equal(o->region, "EU-RO-1");
	assert_string_equal(o->stock, "low");
	assert_int_equal(o->price_microusd_h, 690000 + DISK_40);
	assert_int_equal(o->vram_gb, 24);
	assert_int_equal(o->wish, 1);
	assert_string_equal(p.result.offers[1].region, "US-KS-2");
	assert_int_equal(p.result.offers[2].wish, 0);
	played_free(&p);
}

/* What caps.max_price_per_hour is held against before anybody waits: what is sold out comes back at
 * its price. */
static void the_least_that_is_wanted(void **state)
{
	static const char *const gpus[] = {"RTX 5090", "L40S", NULL};
	static const struct {
		bool spot;
		int64_t floor;
	} cases[] = {{false, 860000 /* of the L40S, which is sold out */},
		     {true, 0 /* nobody says what that is on the spot market */}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = wanting(gpus);
		want.offers.spot = cases[i].spot;
		struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, "{\"data\":{}}"});
		check_done("the least", &p);
		assert_int_equal(p.result.offer_count, 1);
		assert_int_equal(p.result.floor_microusd_h, cases[i].floor);
		played_free(&p);
	}
}

static void names_are_taken_as_people_write_them(void **state)
{
	static const struct {
		const char *wish;
		int gpus, offers;
		int64_t price;
	} cases[] = {
		{"RTX 5090", 1, 1, 990000},
		{"5090", 1, 1, 990000},
		{"NVIDIA GeForce RTX 5090", 1, 1, 990000},
		{"rtx-5090:2", 2, 1, 1980000},
		{"3090 ti", 1, 1, 460000},
		{"RTX 4090:8", 8, 2, 5520000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *const gpus[] = {cases[i].wish, NULL};
		struct op_want want = wanting(gpus);
		struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG});
		check_done(cases[i].wish, &p);
		if ((int)p.result.offer_count != cases[i].offers ||
		    p.result.offers[0].gpus != cases[i].gpus ||
		    p.result.offers[0].price_microusd_h != cases[i].price + DISK_40)
			fail_msg("%s: %zu offers", cases[i].wish, p.result.offer_count);
		played_free(&p);
	}
}

static void what_cannot_be_offered_says_why(void **state)
{
	static const char *const sold_out[] = {"L40S", NULL}, *const unknown[] = {"RTX 5091", NULL},
				 *const odd[] = {"L40S:x", NULL};
	static const char *const there[] = {"5090", NULL};
	struct op_want want = wanting(sold_out);
	struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG});

	(void)state;
	check_failed("sold out", &p, ERR_NO_CAPACITY);
	assert_non_null(strstr(p.err.msg, "L40S"));
	played_free(&p);
	want = wanting(unknown);
	p = PLAY(OP_OFFERS, &want, {200, CATALOG});
	check_failed("unknown", &p, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "did you mean \"RTX 5090\"?"));
	played_free(&p);
	want.offers.vram_gb = 48;
	want.offers.gpus = there;
	p = PLAY(OP_OFFERS, &want, {200, CATALOG});
	check_failed("too small", &p, ERR_CONFIG);
	assert_string_equal(
		p.err.msg,
		"this job needs a GPU with 48 GB of memory; those in gpu have 32 at most");
	played_free(&p);
	want = wanting(odd);
	p = play(OP_OFFERS, &want, NULL, 0);
	check_failed("no count", &p, ERR_CONFIG);
	/* elsewhere, but not beside the volume: said so */
	want = wanting(there);
	want.offers.volume = (struct volume){.id = "vol1", .name = "cache", .region = "EU-RO-1"};
	p = PLAY(OP_OFFERS, &want, {200, CATALOG});
	check_failed("not beside the volume", &p, ERR_NO_CAPACITY);
	assert_non_null(strstr(p.err.msg, "where volume \"cache\" is (there is some in US-KS-2)"));
	played_free(&p);
	section_set_text(conf, "cloud", "COMMUNITY", "burst.cfg:7");
	p = play(OP_OFFERS, &want, NULL, 0);
	check_failed("a volume with COMMUNITY", &p, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "burst.cfg:7"));
	section_set_text(conf, "cloud", "ANY", "burst.cfg:7");
	section_add_item(conf, "datacenters", "US-KS-2", "burst.cfg:8");
	p = play(OP_OFFERS, &want, NULL, 0);
	check_failed("a volume elsewhere", &p, ERR_CONFIG);
}

/* Something can be had; what was wished for besides, and cannot, is not passed over in silence. */
static void what_is_passed_over_is_said(void **state)
{
	static const char *const gpus[] = {"RTX 4900", "5090", "L40S", "B300", "RTX 4090", NULL};
	struct op_want want = wanting(gpus);

	(void)state;
	want.offers.volume = (struct volume){.id = "vol1", .name = "cache", .region = "EU-RO-1"};
	struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG});
	check_done("one is there", &p);
	assert_int_equal(p.result.offer_count, 1);
	assert_string_equal(str_text(&p.result.text),
			    "RunPod's catalog has no GPU called \"RTX 4900\"; did you mean \"RTX "
			    "4090\"?\n5090 is available in US-KS-2, but not in EU-RO-1, where "
			    "volume \"cache\" is: skipped\n");
	played_free(&p);
}

static void clouds_and_datacenters_narrow_it(void **state)
{
	static const char *const gpus[] = {"RTX 4090", NULL};
	struct op_want want = wanting(gpus);

	(void)state;
	section_set_text(conf, "cloud", "ANY", "test");
	section_set_text(conf, "min_cuda", "none", "test");
	struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, CATALOG});
	check_done("any cloud", &p);
	check_call(&p, 0, "GET", CATALOG_URL "&count=1&cloud=SECURE");
	check_call(&p, 1, "GET", CATALOG_URL "&count=1&cloud=COMMUNITY");
	assert_int_equal(p.result.offer_count, 3);
	/* naming data centres keeps a COMMUNITY pod from being placed at all */
	assert_string_equal(p.result.offers[2].id, "COMMUNITY//1/NVIDIA GeForce RTX 4090");
	assert_int_equal(p.result.offers[2].price_microusd_h, 340000 + DISK_40);
	played_free(&p);
	section_add_item(conf, "datacenters", "US-KS-2", "test");
	p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, CATALOG});
	check_done("a data centre", &p);
	assert_int_equal(p.result.offer_count, 1);
	assert_string_equal(p.result.offers[0].region, "US-KS-2");
	played_free(&p);
	section_clear_items(conf, "datacenters");
	section_add_item(conf, "datacenters", "US-KS-22", "test");
	p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, CATALOG});
	check_failed("no such data centre", &p, ERR_NO_CAPACITY);
	assert_string_equal(p.err.msg,
			    "no RTX 4090 is available at RunPod now in the data centres of "
			    "providers.runpod.datacenters (there is some in EU-RO-1, US-KS-2); its "
			    "catalog has no data centre \"US-KS-22\", did you mean \"US-KS-2\"?");
	played_free(&p);
}

#define FLOORS                                                                                     \
	"{\"data\":{\"gpuTypes\":[{\"id\":\"NVIDIA GeForce RTX "                                   \
	"4090\",\"lowestPrice\":{\"minimumBidPrice\":0.2,"                                         \
	"\"uninterruptablePrice\":0.69,\"stockStatus\":\"High\"}},{\"id\":\"NVIDIA "               \
	"L40S\",\"lowestPrice\":null}]}}"

static void spot_is_a_tenth_above_the_floor(void **state)
{
	static const char *const gpus[] = {"4090", NULL};
	struct op_want want = wanting(gpus);

	(void)state;
	want.offers.spot = true;
	struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, FLOORS});
	check_done("spot", &p);
	check_call(&p, 1, "POST", ROOT "/graphql");
	assert_int_equal(p.result.offer_count, 4);
	assert_true(p.result.offers[2].spot);
	assert_int_equal(p.result.offers[2].price_microusd_h, 220000 + DISK_40);
	played_free(&p);
	section_set_int(conf, "bid", 150000, "test");
	p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, FLOORS});
	assert_int_equal(p.result.offer_count, 2); /* below the floor: none */
	played_free(&p);
	p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {410, "gone"});
	check_done("GraphQL is gone", &p);
	assert_int_equal(p.result.offer_count, 2);
	played_free(&p);
}

/* ---- renting ---- */

static struct op_want a_rent(void)
{
	static char name1[] = "BURST_AUTHORIZED_KEY", value1[] = "ssh-ed25519 AAAA burst",
		    name2[] = "BURST_HOST_KEY_B64", value2[] = "aG9zdGtleQ==";
	static struct env_pair env[] = {{name1, value1, false}, {name2, value2, true}};
	struct op_want want = {.rent = {.start_script = "#!/bin/sh\necho it\\'s \"me\" $HOME\n",
					.mount = "/workspace",
					.env = env,
					.env_count = 2,
					.marker.hard_end_s = 1800000000}};

	COPY_TEXT(want.rent.offer.id, "SECURE/EU-RO-1/2/NVIDIA GeForce RTX 4090");
	want.rent.offer.price_microusd_h = 1380000;
	COPY_TEXT(want.rent.name, "burst-00000000000000f1");
	COPY_TEXT(want.rent.marker.machine, "00000000000000aa");
	COPY_TEXT(want.rent.marker.run, "1121-r1");
	COPY_TEXT(want.rent.marker.attempt, "00000000000000f1");
	want.rent.volume =
		(struct volume){.id = "agv6w2qcg7", .name = "cache", .region = "EU-RO-1"};
	return want;
}

#define ENV                                                                                        \
	"\"env\":{\"BURST_MACHINE\":\"00000000000000aa\",\"BURST_RUN\":\"1121-r1\",\"BURST_"       \
	"ATTEMPT\":\"00000000000000f1\","                                                          \
	"\"BURST_HARD_END\":\"1800000000\"}"
#define POD_OF(id, status, more)                                                                   \
	"{\"id\":\"" id "\",\"name\":\"burst-00000000000000f1\",\"status\":\"" status              \
	"\",\"actions\":[\"stop\"],"                                                               \
	"\"gpu\":{\"id\":\"NVIDIA GeForce RTX "                                                    \
	"4090\",\"count\":2},\"cloud\":\"SECURE\",\"dataCenterId\":\"EU-RO-1\","                   \
	"\"cost\":1.38,\"locked\":false,\"createdAt\":\"2026-11-20T23:10:00.123Z\",\"startedAt\":" \
	"null,\"newMember\":[1]," ENV ",\"args\":\"\"" more "}"
#define DIRECT                                                                                     \
	",\"runtime\":{\"uptime\":3},\"ssh\":{\"proxy\":{\"host\":\"ssh.runpod.io\",\"port\":22,"  \
	"\"username\":\"u-1\","                                                                    \
	"\"command\":\"ssh\"},\"direct\":{\"host\":\"203.0.113.9\",\"port\":43210,\"username\":"   \
	"\"root\",\"command\":\"ssh\"}}"
#define CREATED                                                                                    \
	POD_OF("7h9k2m4n6p", "PROVISIONING",                                                       \
	       ",\"ssh\":{\"proxy\":null,\"direct\":null},\"runtime\":null")

static json_t *body_of(const struct call *call)
{
	struct err err;
	json_t *body = jsonx_parse(str_text(&call->body), call->body.len, &err);

	assert_non_null(body);
	return body;
}

/* It runs whatever entrypoint the image has. */
static void check_start_command(const char *args, const char *script)
{
	static const char before[] = "umask 077; echo ";
	CLEANUP(str_free) struct str decoded = STR_INIT;
	CLEANUP(json_decref) json_t *command = json_loads(args, 0, NULL);
	const json_t *entrypoint = json_object_get(command, "entrypoint"),
		     *cmd = json_object_get(command, "cmd");
	struct err err;

	assert_int_equal(json_object_size(command), 2);
	assert_int_equal(json_array_size(entrypoint), 2);
	assert_string_equal(json_string_value(json_array_get(entrypoint, 0)), "/bin/sh");
	assert_string_equal(json_string_value(json_array_get(entrypoint, 1)), "-c");
	assert_int_equal(json_array_size(cmd), 1);
	const char *text = json_string_value(json_array_get(cmd, 0));
	assert_true(starts_with(text, before));
	text += strlen(before);
	assert_int_equal(base64_decode(&decoded, text, strcspn(text, " "), &err), 0);
	assert_string_equal(str_text(&decoded), script);
}

static void a_create_says_all_that_it_must(void **state)
{
	struct op_want want = a_rent();
	struct played p = PLAY(OP_RENT, &want, {201, CREATED});

	(void)state;
	check_done("create", &p);
	check_call(&p, 0, "POST", ROOT "/v2/pods");
	assert_false(p.call[0].may_repeat);
	assert_int_equal(p.call[0].class, CALL_CREATE);
	CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
	const json_t *gpu = json_object_get(body, "gpu"), *env = json_object_get(body, "env");
	const json_t *mount =
		json_array_get(json_object_get(json_object_get(body, "mounts"), "network"), 0);
	assert_int_equal(jsonx_int(gpu, "count", 0), 2);
	assert_string_equal(jsonx_text(gpu, "id", ""), "NVIDIA GeForce RTX 4090");
	assert_string_equal(jsonx_text(gpu, "minCudaVersion", ""), "12.8");
	assert_string_equal(jsonx_text(env, "BURST_HIDE", ""), "RUNPOD_API_KEY");
	assert_string_equal(jsonx_text(body, "image", ""), RUNPOD_IMAGE);
	assert_string_equal(jsonx_text(body, "cloud", ""), "SECURE");
	assert_string_equal(jsonx_text(body, "name", ""), "burst-00000000000000f1");
	assert_int_equal(jsonx_int(body, "disk", 0), 40);
	assert_string_equal(json_string_value(json_array_get(json_object_get(body, "ports"), 0)),
			    "22/tcp");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(body, "dataCenterIds"), 0)),
		"EU-RO-1");
	assert_string_equal(jsonx_text(mount, "volumeId", ""), "agv6w2qcg7");
	assert_string_equal(jsonx_text(mount, "path", ""), "/workspace");
	assert_string_equal(jsonx_text(env, "PUBLIC_KEY", ""), "ssh-ed25519 AAAA burst");
	assert_string_equal(jsonx_text(env, "BURST_HARD_END", ""), "1800000000");
	assert_string_equal(jsonx_text(env, "BURST_API_URL", ""), ROOT);
	assert_null(json_object_get(body, "interruptible"));
	check_start_command(jsonx_text(body, "args", ""), want.rent.start_script);
	assert_int_equal(p.result.pod_count, 1);
	assert_string_equal(p.result.pods[0].id, "7h9k2m4n6p");
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	assert_int_equal(p.result.pods[0].price_microusd_h, 1380000);
	assert_string_equal(p.result.pods[0].marker.attempt, "00000000000000f1");
	played_free(&p);
}

static void a_plain_create_names_no_more_than_it_must(void **state)
{
	struct op_want want = a_rent();

	(void)state;
	want.rent.volume = (struct volume){0};
	want.rent.image = "debian:12";
	want.rent.disk_gb = 5;
	COPY_TEXT(want.rent.offer.id, "COMMUNITY//1/NVIDIA L4");
	struct played p = PLAY(OP_RENT, &want, {201, CREATED});
	CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
	assert_null(json_object_get(body, "mounts"));
	assert_null(json_object_get(body, "dataCenterIds"));
	assert_null(json_object_get(json_object_get(body, "gpu"), "minCudaVersion"));
	assert_int_equal(jsonx_int(body, "disk", 0), RUNPOD_DISK_LEAST_GB);
	played_free(&p);
}

static void filters_that_the_server_does_not_know_are_left_out(void **state)
{
	struct op_want want = a_rent();

	(void)state;
	section_set_bool(conf, "placement_filters", true, "test");
	want.rent.memory_gb = 32;
	struct played p = PLAY(
		OP_RENT, &want,
		{422, "{\"title\":\"Unprocessable Entity\",\"status\":422,\"detail\":\"Request "
		      "validation failed.\","
		      "\"errors\":[\"$.gpu: additional properties 'minRamPerGpu' not allowed\"]}"},
		{201, CREATED});
	check_done("filters", &p);
	assert_non_null(strstr(str_text(&p.call[0].body), "\"minRamPerGpu\":16"));
	assert_null(strstr(str_text(&p.call[1].body), "minRamPerGpu"));
	played_free(&p);
}

/* ---- pods without a GPU ---- */

#define CPU(id, most, ram, price, stock, dcs)                                                      \
	"{\"id\":\"" id                                                                            \
	"\",\"name\":\"Compute-Optimized\",\"group\":\"Gen 3\",\"vcpu\":{\"min\":2,\"max\":" most  \
	"},\"ramGbPerVcpu\":" ram ",\"price\":{\"securePerVcpu\":" price                           \
	",\"serverlessPerVcpu\":0.9},\"availability\":\"" stock "\"" dcs "}"
#define CPUS                                                                                       \
	"{\"cpus\":[" CPU(                                                                         \
		"cpu3c", "32", "2.5", "0.04", "HIGH",                                              \
		",\"dataCenters\":[" DC("EU-RO-1", "LOW") "," DC("US-KS-2", "HIGH") "," DC(        \
			"US-TX-3",                                                                 \
			"NONE") "]") "," CPU("cpu3m", "8", "8", "0.06", "MEDIUM",                  \
					     ",\"dataCenters\":[" DC(                              \
						     "US-KS-2",                                    \
						     "MEDIUM") "]") "," CPU("cpu5c", "32", "2",    \
									    "0.01", "NONE",        \
									    "") "," CPU("free",    \
											"32", "2", \
											"0",       \
											"HIGH",    \
											"") "]}"
#define CPUS_URL ROOT "/v2/catalog/cpus?include=AVAILABILITY&product=POD&vcpuCount="

static const char *const no_gpu[] = {"none", NULL};

static void cpu_pods_are_offered(void **state)
{
	struct op_want want = wanting(no_gpu);
	struct played p = PLAY(OP_OFFERS, &want, {200, CPUS});

	(void)state;
	check_done("CPU pods", &p);
	check_call(&p, 0, "GET", CPUS_URL "2");
	assert_int_equal(p.result.offer_count, 3);
	const struct offer *o = &p.result.offers[0];
	assert_string_equal(o->id, "SECURE/EU-RO-1/2 vCPU/cpu3c");
	assert_string_equal(o->gpu, "none");
	assert_string_equal(o->region, "EU-RO-1");
	assert_string_equal(o->stock, "low");
	assert_int_equal(o->gpus, 0);
	assert_int_equal(o->vram_gb, 0);
	assert_int_equal(o->price_microusd_h, 80000 + DISK_20);
	assert_string_equal(p.result.offers[2].id, "SECURE/US-KS-2/2 vCPU/cpu3m");
	assert_int_equal(p.result.offers[2].price_microusd_h, 120000 + DISK_20);
	played_free(&p);
	/* spot is not asked for: there is none */
	want.offers.spot = true;
	want.offers.volume = (struct volume){.id = "vol1", .name = "cache", .region = "US-KS-2"};
	p = PLAY(OP_OFFERS, &want, {200, CPUS});
	check_done("beside a volume", &p);
	assert_int_equal(p.result.offer_count, 2);
	assert_string_equal(p.result.offers[0].region, "US-KS-2");
	assert_false(p.result.offers[0].spot || p.result.offers[1].spot);
	played_free(&p);
}

static void a_cpu_pod_is_as_large_as_it_must_be(void **state)
{
	static const struct {
		const char *name;
		int64_t cpu, memory_gb, disk_gb;
		/* first: id of the first offer; NULL: none is large enough */
		const char *url, *first;
		size_t offers;
	} cases[] = {
		{"a power of two", 3, 0, 0, CPUS_URL "4", "SECURE/EU-RO-1/4 vCPU/cpu3c", 3},
		{"memory by the flavour's ratio", 0, 11, 0, CPUS_URL "2",
		 "SECURE/EU-RO-1/8 vCPU/cpu3c", 3},
		{"memory that is just there", 4, 10, 0, CPUS_URL "4", "SECURE/EU-RO-1/4 vCPU/cpu3c",
		 3},
		{"a disk", 0, 0, 40, CPUS_URL "4", "SECURE/EU-RO-1/4 vCPU/cpu3c", 3},
		{"more than one flavour has", 16, 0, 0, CPUS_URL "16",
		 "SECURE/EU-RO-1/16 vCPU/cpu3c", 2},
		{"more vCPUs than any", 33, 0, 0, CPUS_URL "64", NULL, 0},
		{"more memory than any", 0, 81, 0, CPUS_URL "2", NULL, 0},
		{"far too many vCPUs", 1024, 0, 0, CPUS_URL "256", NULL, 0},
		{"far too much disk", 0, 0, 100000, CPUS_URL "256", NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = wanting(no_gpu);
		want.offers.cpu = cases[i].cpu;
		want.offers.memory_gb = cases[i].memory_gb;
		want.offers.disk_gb = cases[i].disk_gb;
		struct played p = PLAY(OP_OFFERS, &want, {200, CPUS});
		check_call(&p, 0, "GET", cases[i].url);
		if (!cases[i].first) {
			check_failed(cases[i].name, &p, ERR_CONFIG);
			assert_non_null(strstr(p.err.msg, "no CPU pod of RunPod's has"));
		} else {
			check_done(cases[i].name, &p);
			if (p.result.offer_count != cases[i].offers ||
			    strcmp(p.result.offers[0].id, cases[i].first))
				fail_msg("%s: %zu offers, first %s", cases[i].name,
					 p.result.offer_count, p.result.offers[0].id);
		}
		played_free(&p);
	}
}

static void a_cpu_pod_beside_gpus(void **state)
{
	static const char *const mixed[] = {"L40S", "none", "RTX 5090", NULL}, *const wrong[] = {
										       "none",
										       "RTX 5091",
										       NULL};
	struct op_want want = wanting(mixed);

	(void)state;
	want.offers.spot = true;
	struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, CPUS}, {200, FLOORS});
	check_done("mixed", &p);
	assert_int_equal(p.result.offer_count, 4);
	assert_string_equal(p.result.offers[0].gpu, "RTX 5090");
	assert_int_equal(p.result.offers[0].wish, 2);
	assert_string_equal(p.result.offers[1].gpu, "none");
	assert_int_equal(p.result.offers[1].wish, 1);
	played_free(&p);
	/* a job that needs a GPU does not get a pod without one */
	want.offers.spot = false;
	want.offers.vram_gb = 24;
	p = PLAY(OP_OFFERS, &want, {200, CATALOG});
	check_done("mixed, with VRAM", &p);
	assert_int_equal(p.result.offer_count, 1);
	played_free(&p);
	want = wanting(no_gpu);
	want.offers.vram_gb = 24;
	p = play(OP_OFFERS, &want, NULL, 0);
	check_failed("none, with VRAM", &p, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "24 GB"));
	want = wanting(no_gpu);
	p = PLAY(OP_OFFERS, &want,
		 {200, "{\"cpus\":[" CPU("cpu3c", "32", "2", "0.04", "NONE", "") "]}"});
	check_failed("sold out", &p, ERR_NO_CAPACITY);
	assert_non_null(strstr(p.err.msg, "no CPU pod is available"));
	played_free(&p);
	want = wanting(wrong);
	p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, "{\"cpus\":[]}"});
	check_failed("an unknown GPU beside", &p, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "no GPU called \"RTX 5091\""));
	played_free(&p);
	section_set_text(conf, "cloud", "COMMUNITY", "burst.cfg:7");
	want = wanting(no_gpu);
	p = play(OP_OFFERS, &want, NULL, 0);
	check_failed("in COMMUNITY", &p, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "burst.cfg:7"));
}

static void a_cpu_pod_is_created(void **state)
{
	static const struct {
		int64_t disk_gb;
		int disk;
	} disks[] = {{0, 20}, {5, 20}, {20, 20}};
	struct op_want want = a_rent();

	(void)state;
	COPY_TEXT(want.rent.offer.id, "SECURE/EU-RO-1/2 vCPU/cpu3c");
	section_set_bool(conf, "placement_filters", true, "test");
	want.rent.memory_gb = 5;
	for (size_t i = 0; i < ARRAY_LEN(disks); i++) {
		want.rent.disk_gb = disks[i].disk_gb;
		struct played p =
			PLAY(OP_RENT, &want,
			     {201, "{\"id\":\"c1\",\"name\":\"burst-00000000000000f1\",\"status\":"
				   "\"PROVISIONING\",\"cpu\":{\"id\":\"cpu3c\",\"vcpuCount\":2,"
				   "\"memory\":5},\"cost\":0.08," ENV "}"});
		check_done("create", &p);
		CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
		const json_t *cpu = json_object_get(body, "cpu");
		const json_t *mounts = json_object_get(body, "mounts");
		assert_null(json_object_get(body, "gpu"));
		assert_int_equal(json_object_size(cpu), 2);
		assert_string_equal(jsonx_text(cpu, "id", ""), "cpu3c");
		assert_int_equal(jsonx_int(cpu, "vcpuCount", 0), 2);
		assert_int_equal(jsonx_int(body, "disk", 0), disks[i].disk);
		assert_string_equal(jsonx_text(body, "cloud", ""), "SECURE");
		assert_string_equal(json_string_value(json_array_get(
					    json_object_get(body, "dataCenterIds"), 0)),
				    "EU-RO-1");
		assert_null(json_object_get(mounts, "persistent"));
		assert_string_equal(
			jsonx_text(json_array_get(json_object_get(mounts, "network"), 0),
				   "volumeId", ""),
			"agv6w2qcg7");
		assert_string_equal(p.result.pods[0].gpu, "none");
		assert_int_equal(p.result.pods[0].price_microusd_h, 80000);
		played_free(&p);
	}
	want.rent.offer.spot = true;
	struct played p = play(OP_RENT, &want, NULL, 0);
	check_failed("spot", &p, ERR_BUG);
	want.rent.offer.spot = false;
	COPY_TEXT(want.rent.offer.id, "COMMUNITY//2 vCPU/cpu3c");
	p = play(OP_RENT, &want, NULL, 0);
	check_failed("COMMUNITY", &p, ERR_BUG);
}

#define PROBLEM(status, detail) "{\"title\":\"T\",\"status\":" #status ",\"detail\":\"" detail "\"}"

static const struct {
	const char *name;
	struct answer answer;
	/* what it means for a create, and for a question; ERR_NONE: not tried */
	enum err_kind rent, list;
	const char *says;
} failures[] = {
	{"F5: no capacity",
	 {400, PROBLEM(400, "There are no longer any instances available with the requested "
			    "specifications.")},
	 ERR_NO_CAPACITY,
	 ERR_NONE,
	 "no longer any instances"},
	{"the machine is full",
	 {400, PROBLEM(400, "This machine does not have the resources to deploy your pod.")},
	 ERR_NO_CAPACITY,
	 ERR_NONE,
	 ""},
	{"no GPUs", {400, PROBLEM(400, "No GPUs available")}, ERR_NO_CAPACITY, ERR_NONE, ""},
	{"no machines",
	 {400, PROBLEM(400, "no machines available in EU-RO-1")},
	 ERR_NO_CAPACITY,
	 ERR_NONE,
	 ""},
	{"unavailable",
	 {400, PROBLEM(400, "this GPU type is unavailable")},
	 ERR_NO_CAPACITY,
	 ERR_CONFIG,
	 ""},
	{"refresh",
	 {400, PROBLEM(400, "Please refresh and try again.")},
	 ERR_NO_CAPACITY,
	 ERR_CONFIG,
	 ""},
	/* the next offer may be given all the same; to a question it is a no */
	{"words of no kind",
	 {400, PROBLEM(400, "request could not be processed")},
	 ERR_REFUSED,
	 ERR_CONFIG,
	 "could not be processed"},
	{"a rule",
	 {400, PROBLEM(400, "minCudaVersion and allowedCudaVersions are exclusive")},
	 ERR_REFUSED,
	 ERR_CONFIG,
	 "exclusive"},
	{"no place",
	 {400, PROBLEM(400, "Failed to find data center, please try again.")},
	 ERR_TRANSIENT,
	 ERR_TRANSIENT,
	 ""},
	{"a hiccup",
	 {400, PROBLEM(400, "Something went wrong. Please try again later or contact support.")},
	 ERR_TRANSIENT,
	 ERR_TRANSIENT,
	 ""},
	{"401",
	 {401, PROBLEM(401, "missing bearer token")},
	 ERR_CREDENTIALS,
	 ERR_CREDENTIALS,
	 "missing bearer token"},
	{"F7: 402", {402, PROBLEM(402, "low")}, ERR_BALANCE, ERR_BALANCE, "add credit"},
	{"F8: 403 on one pool",
	 {403, PROBLEM(403, "access denied")},
	 ERR_REFUSED,
	 ERR_CREDENTIALS,
	 "access denied"},
	{"404", {404, PROBLEM(404, "resource not found")}, ERR_NOT_FOUND, ERR_NOT_FOUND, ""},
	{"408", {408, ""}, ERR_AMBIGUOUS, ERR_TRANSIENT, ""},
	{"409", {409, PROBLEM(409, "no")}, ERR_REFUSED, ERR_REFUSED, ""},
	{"F30: 410", {410, "Gone"}, ERR_CONFIG, ERR_CONFIG, "RUNPOD_API_URL"},
	{"422",
	 {422, "{\"title\":\"U\",\"status\":422,\"detail\":\"Request validation "
	       "failed.\",\"errors\":[\"$: missing property "
	       "'name'\",\"$: additional properties 'x' not allowed\"]}"},
	 ERR_CONFIG,
	 ERR_CONFIG,
	 "Request validation failed.: $: missing property 'name'; $: additional"},
	{"F1: 500", {500, PROBLEM(500, "oops")}, ERR_AMBIGUOUS, ERR_TRANSIENT, "oops"},
	{"F21: a page of HTML",
	 {502, "<html>\x1b[31m</html>"},
	 ERR_AMBIGUOUS,
	 ERR_TRANSIENT,
	 "HTTP 502"},
	{"F21: 200 that is HTML", {200, "<html>"}, ERR_AMBIGUOUS, ERR_TRANSIENT, ""},
	{"F21: cut JSON", {201, "{\"id\":\"7h9k"}, ERR_AMBIGUOUS, ERR_TRANSIENT, ""},
	{"an id that is none", {201, "{\"id\":\"../../x\"}"}, ERR_AMBIGUOUS, ERR_NONE, ""},
	{"no id", {201, "{}"}, ERR_AMBIGUOUS, ERR_TRANSIENT, ""},
	{"F2: lost", {0}, ERR_AMBIGUOUS, ERR_NETWORK, "cut"},
	{"never sent", {-1}, ERR_NETWORK, ERR_NETWORK, ""},
};

static void every_failure_has_its_kind(void **state)
{
	struct op_want want = a_rent(), none = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct played p = PLAY(OP_RENT, &want, failures[i].answer);
		check_failed(failures[i].name, &p, failures[i].rent);
		if (!strstr(p.err.msg, failures[i].says) || strchr(p.err.msg, '\x1b'))
			fail_msg("%s: says \"%s\"", failures[i].name, p.err.msg);
		played_free(&p);
		if (failures[i].list == ERR_NONE)
			continue;
		p = PLAY(OP_LIST, &none, failures[i].answer);
		check_failed(failures[i].name, &p, failures[i].list);
		played_free(&p);
	}
}

/* A GraphQL that has changed, or is gone, ends spot and nothing else. */
static void a_spot_pod_is_refused_by_http(void **state)
{
	static const struct {
		struct answer answer;
		enum err_kind kind;
	} refusals[] = {
		{{400, "{\"errors\":[{\"message\":\"Unknown type "
		       "\\\"PodRentInterruptableInput\\\".\"}]}"},
		 ERR_REFUSED},
		{{404, PROBLEM(404, "resource not found")}, ERR_REFUSED},
		{{410, "Gone"}, ERR_REFUSED},
		{{422, PROBLEM(422, "no")}, ERR_REFUSED},
		{{401, PROBLEM(401, "no")}, ERR_CREDENTIALS},
		{{500, "oops"}, ERR_AMBIGUOUS},
	};
	struct op_want want = a_rent();

	(void)state;
	want.rent.offer.spot = true;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct played p = PLAY(OP_RENT, &want, refusals[i].answer);
		check_failed("spot", &p, refusals[i].kind);
		played_free(&p);
	}
}

/* The catalog hides no host from an image that could run there, and a create asks for the same
 * floor. */
static void the_image_decides_the_floor(void **state)
{
	static const struct {
		const char *conf, *wanted, *floor;
	} cases[] = {
		{NULL, NULL, "&minCudaVersion=12.8"},
		{NULL, RUNPOD_IMAGE, "&minCudaVersion=12.8"},
		{NULL, "me/mine:1", ""},
		{"me/mine:1", NULL, ""},
		{"me/mine:1", RUNPOD_IMAGE, "&minCudaVersion=12.8"},
	};
	static const char *const gpus[] = {"RTX 4090", NULL};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(free_text)
		char *url = xasprintf(CATALOG_URL "&count=1&cloud=SECURE%s", cases[i].floor);
		struct op_want want = wanting(gpus), rent = a_rent();
		section_set_text(conf, "image", cases[i].conf ? cases[i].conf : RUNPOD_IMAGE,
				 "test");
		want.offers.image = rent.rent.image = cases[i].wanted;
		struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG});
		check_done("offers", &p);
		check_call(&p, 0, "GET", url);
		played_free(&p);
		p = PLAY(OP_RENT, &rent, {201, "{\"id\":\"p1\"}"});
		CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
		assert_int_equal(json_object_get(json_object_get(body, "gpu"), "minCudaVersion") !=
					 NULL,
				 cases[i].floor[0] != '\0');
		played_free(&p);
	}
}

/* A project's image is not pulled with its user's credential for another registry. */
static void a_credential_is_for_its_own_images(void **state)
{
	static const struct {
		const char *image, *registry;
	} cases[] = {
		{"ghcr.io/acme/voices:1", "cred1"},
		{"ghcr.io/acme/voices@sha256:0", "cred1"},
		{"ghcr.io/acme", "cred1"},
		{"ghcr.io/acmeevil/voices:1", NULL},
		{"evil.example/ghcr.io/acme/voices:1", NULL},
		{"evil.example/x", NULL},
		{"acme/voices:1", "cred2"},
		{"ghcr.io/ac", NULL},
		{NULL, NULL},
	};
	struct err err;

	(void)state;
	section_add_item(conf, "registry", "ghcr.io/acme=cred1", "t:4");
	section_add_item(conf, "registry", "acme/=cred2", "t:4");
	for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
		const char *image = cases[i / 2].image, *registry = cases[i / 2].registry;
		bool spot = i % 2;
		struct op_want want = a_rent();
		want.rent.image = image;
		want.rent.offer.spot = spot;
		struct played p =
			PLAY(OP_RENT, &want,
			     {spot ? 200 : 201,
			      spot ? "{\"data\":{\"podRentInterruptable\":{\"id\":\"p1\"}}}"
				   : "{\"id\":\"p1\"}"});
		check_done(image, &p);
		CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
		const json_t *input =
			spot ? json_object_get(json_object_get(body, "variables"), "input") : body;
		const char *got = json_string_value(
			json_object_get(input, spot ? "containerRegistryAuthId" : "registry"));
		if (!got != !registry || (got && strcmp(got, registry)))
			fail_msg("%s, spot %d: %s", image, spot, got);
		played_free(&p);
	}
	CLEANUP(section_free) struct section *old = section_new(provider_runpod.options, "test");
	struct provider *opened = NULL;
	section_set_text(old, "api_key", "rpa_X", "t:1");
	section_add_item(old, "registry", "cred1", "t:2");
	assert_int_equal(provider_runpod.open(&opened, old, "/tmp", &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_string_equal(err.msg, "t:2: providers.runpod.registry: \"cred1\" is not like "
				     "\"ghcr.io/me=NAME\": the images it is for, "
				     "and what reads them");
}

/* F6: the window that is exhausted may open later than Retry-After says. */
static void a_429_waits_for_every_window(void **state)
{
	struct op_want want = {0};
	struct answer answer = {
		429, PROBLEM(429, "rate limit exceeded for the minute window"),
		"HTTP/1.1 429\r\nRateLimit: \"minute\";r=0;t=12, \"hour\";r=2800;t=1812"};
	struct played p = PLAY(OP_LIST, &want, answer);

	(void)state;
	check_failed("429", &p, ERR_RATE_LIMITED);
	assert_int_equal(p.err.retry_after_ms, 12000);
	played_free(&p);
}

static void a_spot_pod_is_bid_for(void **state)
{
	struct op_want want = a_rent();

	(void)state;
	want.rent.offer.spot = true;
	want.rent.offer.price_microusd_h = 440000 + DISK_40; /* the bid is for the GPUs alone */
	struct played p = PLAY(
		OP_RENT, &want,
		{200, "{\"data\":{\"podRentInterruptable\":{\"id\":\"spot1\",\"desiredStatus\":"
		      "\"RUNNING\",\"imageName\":\"x\",\"machineId\":\"m\"}}}"});
	check_done("spot", &p);
	check_call(&p, 0, "POST", ROOT "/graphql");
	assert_false(p.call[0].may_repeat);
	CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
	const json_t *input = json_object_get(json_object_get(body, "variables"), "input");
	assert_string_equal(jsonx_text(input, "gpuTypeId", ""), "NVIDIA GeForce RTX 4090");
	assert_true(jsonx_number(input, "bidPerGpu", 0) > 0.2199 &&
		    jsonx_number(input, "bidPerGpu", 0) < 0.2201);
	assert_string_equal(jsonx_text(input, "ports", ""), "22/tcp");
	assert_null(json_object_get(input, "supportPublicIp")); /* SECURE hosts have one */
	assert_string_equal(jsonx_text(input, "networkVolumeId", ""), "agv6w2qcg7");
	assert_string_equal(
		jsonx_text(json_array_get(json_object_get(input, "allowedCudaVersions"), 0), "",
			   "-"),
		"-");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(input, "allowedCudaVersions"), 0)),
		"12.8");
	check_start_command(jsonx_text(input, "dockerArgs", ""), want.rent.start_script);
	assert_true(p.result.pods[0].spot);
	assert_int_equal(p.result.pods[0].price_microusd_h, 440000 + DISK_40);
	played_free(&p);

	static const struct {
		const char *body;
		enum err_kind kind;
	} cases[] = {
		{"{\"errors\":[{\"message\":\"There are no longer any instances available with the "
		 "requested specifications. Please "
		 "refresh and try again.\"}],\"data\":{\"podRentInterruptable\":null}}",
		 ERR_NO_CAPACITY},
		{"{\"data\":{\"podRentInterruptable\":null}}", ERR_NO_CAPACITY},
		{"{\"errors\":[{\"message\":\"Something went wrong. Please try again "
		 "later.\"}],\"data\":null}",
		 ERR_AMBIGUOUS},
		{"{\"errors\":[{\"message\":\"Your bid is below the minimum\"}]}", ERR_REFUSED},
		{"{\"errors\":[{\"message\":\"insufficient funds\"}]}", ERR_BALANCE},
		{"{\"data\":{\"podRentInterruptable\":{\"id\":\"\"}}}", ERR_AMBIGUOUS},
		{"{}", ERR_AMBIGUOUS},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		p = PLAY(OP_RENT, &want, {200, cases[i].body});
		check_failed(cases[i].body, &p, cases[i].kind);
		played_free(&p);
	}
}

static void a_volume_pins_the_create(void **state)
{
	struct op_want want = a_rent();

	(void)state;
	COPY_TEXT(want.rent.offer.id, "COMMUNITY//1/NVIDIA L4");
	struct played p = play(OP_RENT, &want, NULL, 0);
	check_failed("a volume in COMMUNITY", &p, ERR_CONFIG);
	COPY_TEXT(want.rent.offer.id, "SECURE/US-KS-2/1/NVIDIA L4");
	p = play(OP_RENT, &want, NULL, 0);
	check_failed("a volume elsewhere", &p, ERR_NO_CAPACITY);
	COPY_TEXT(want.rent.offer.id, "SECURE/US-KS-2/0/NVIDIA L4");
	p = play(OP_RENT, &want, NULL, 0);
	check_failed("not our offer", &p, ERR_BUG);
}

/* ---- looking ---- */

static const struct {
	const char *name, *status, *more;
	enum pod_state state;
	int port;
} states[] = {
	{"F9: provisioning", "PROVISIONING", "", POD_STATE_CREATING, 0},
	{"starting", "STARTING", DIRECT, POD_STATE_CREATING, 0},
	{"running", "RUNNING", DIRECT, POD_STATE_RUNNING, 43210},
	{"F10: running, no runtime", "RUNNING",
	 ",\"runtime\":null,\"ssh\":{\"proxy\":null,\"direct\":null}", POD_STATE_RUNNING, 0},
	{"F10: running, empty runtime", "RUNNING", ",\"runtime\":{}", POD_STATE_RUNNING, 0},
	{"by its mapping", "RUNNING",
	 ",\"runtime\":{\"ports\":[{\"private\":8888,\"public\":1,\"type\":\"http\",\"ip\":\"x\"},{"
	 "\"private\":22,\"public\":40022,"
	 "\"type\":\"tcp\",\"ip\":\"203.0.113.9\"}]}",
	 POD_STATE_RUNNING, 40022},
	{"a port that is none", "RUNNING",
	 ",\"ssh\":{\"direct\":{\"host\":\"h\",\"port\":70000,\"username\":\"root\"}}",
	 POD_STATE_RUNNING, 0},
	{"F15: exited, stale address", "EXITED", DIRECT, POD_STATE_STOPPED, 0},
	{"F14: error", "ERROR", "", POD_STATE_FAILED, 0},
	{"terminated", "TERMINATED", "", POD_STATE_GONE, 0},
	{"F18: an unknown word", "RESTARTING", DIRECT, POD_STATE_UNKNOWN, 43210},
	{"F25: no GPU", "RUNNING", ",\"gpu\":{\"id\":\"NVIDIA GeForce RTX 4090\",\"count\":0}",
	 POD_STATE_FAILED, 0},
	{"F27: locked", "RUNNING", ",\"locked\":true", POD_STATE_RUNNING, 0},
};

static void states_are_read(void **state)
{
	struct op_want want = {.id = "7h9k2m4n6p"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		/* the later of two members of one name counts */
		CLEANUP(free_text)
		char *body =
			xasprintf("{\"id\":\"7h9k2m4n6p\",\"name\":\"n\",\"status\":\"%s\"%s," ENV
				  ",\"createdAt\":\"2026-11-20T23:10:00Z\",\"startedAt\":\"2026-11-"
				  "21T00:10:01+01:00\"}",
				  states[i].status, states[i].more);
		struct played p = PLAY(OP_INSPECT, &want, {200, body});
		check_done(states[i].name, &p);
		const struct pod_view *v = &p.result.pods[0];
		if (v->state != states[i].state || v->port != states[i].port)
			fail_msg("%s: %s, port %d", states[i].name, pod_state_name(v->state),
				 v->port);
		assert_int_equal(v->created_at_s, 1795216200);
		assert_int_equal(v->started_at_s, 1795216201);
		assert_int_equal(v->marker.hard_end_s, 1800000000);
		played_free(&p);
	}
}

static void a_preempted_spot_pod_is_known(void **state)
{
	struct op_want want = {.id = "a"};
	struct played p =
		PLAY(OP_INSPECT, &want,
		     {200, "{\"id\":\"a\",\"status\":\"EXITED\",\"env\":{\"BURST_SPOT\":\"1\"}}"});

	(void)state;
	assert_true(p.result.pods[0].preempted);
	played_free(&p);
	p = PLAY(OP_INSPECT, &want, {200, "{\"id\":\"a\",\"status\":\"EXITED\",\"env\":{}}"});
	assert_false(p.result.pods[0].preempted);
	played_free(&p);
	p = PLAY(OP_INSPECT, &want, {404, PROBLEM(404, "pod not found")});
	check_done("forgotten", &p);
	assert_int_equal(p.result.pods[0].state, POD_STATE_GONE);
	played_free(&p);
}

/* The list shows of each pod all that it was created with. */
static void a_thousand_pods_can_be_listed(void **state)
{
	struct op_want want = a_rent(), none = {0};

	(void)state;
	want.rent.start_script = pod_kit()->start_script;
	struct played rent = PLAY(OP_RENT, &want, {201, CREATED});
	struct played list = PLAY(OP_LIST, &none, {200, "{\"pods\":[]}"});
	assert_true(rent.calls == 1 && list.calls == 1);
	assert_true(rent.call[0].body.len > 10000);
	assert_true(list.call[0].max_bytes > 1000 * (rent.call[0].body.len + 2000));
	played_free(&rent);
	played_free(&list);
}

static void only_marked_pods_are_listed(void **state)
{
	static const char list[] = "{\"pods\":[" POD_OF(
		"p1", "RUNNING",
		DIRECT) ",{\"id\":\"stranger\",\"status\":\"RUNNING\",\"env\":{}},"
			"{\"id\":\"no/id of "
			"ours\",\"env\":{}},{\"id\":\"half\",\"env\":{\"BURST_RUN\":\"r\",\"BURST_"
			"ATTEMPT\":\"a\","
			"\"BURST_MACHINE\":\"m\",\"BURST_HARD_END\":\"soon\"}}," POD_OF(
				"p2", "RUNNING", "") "],\"unknown\":{\"x\":[]}}";
	struct op_want want = {0};
	struct played p = PLAY(OP_LIST, &want, {200, list});

	(void)state;
	check_done("F28, F29", &p);
	check_call(&p, 0, "GET", ROOT "/v2/pods");
	assert_int_equal(p.result.pod_count, 2);
	assert_string_equal(p.result.pods[0].id, "p1");
	assert_string_equal(p.result.pods[0].host, "203.0.113.9");
	assert_string_equal(p.result.pods[0].user, "root");
	assert_string_equal(p.result.pods[0].gpu, "RTX 4090");
	assert_string_equal(p.result.pods[1].id, "p2");
	played_free(&p);
	/* an end beyond all time is one that can be reckoned with */
	p = PLAY(OP_LIST, &want,
		 {200, "{\"pods\":[{\"id\":\"p6\",\"env\":{\"BURST_RUN\":\"r\",\"BURST_ATTEMPT\":"
		       "\"a\",\"BURST_MACHINE\":\"m\","
		       "\"BURST_HARD_END\":\"99999999999999999999\"}}]}"});
	check_done("no end", &p);
	assert_int_equal(p.result.pod_count, 1);
	assert_int_equal(p.result.pods[0].marker.hard_end_s, EPOCH_MOST_S);
	assert_false(pod_is_overdue(p.result.pods[0].marker.hard_end_s, INT64_C(1800000000000)));
	played_free(&p);
	/* somebody has edited its environment: it bills all the same */
	p = PLAY(OP_LIST, &want,
		 {200,
		  "{\"pods\":[{\"id\":\"p3\",\"name\":\"burst-0123456789abcdef\",\"status\":"
		  "\"RUNNING\",\"env\":{}},"
		  "{\"id\":\"p4\",\"name\":\"burst-pipe\",\"status\":\"RUNNING\"},"
		  "{\"id\":\"p5\",\"name\":\"burst-0123456789abcdef0\",\"status\":\"RUNNING\"}]}"});
	check_done("its mark is gone", &p);
	assert_int_equal(p.result.pod_count, 1);
	assert_string_equal(p.result.pods[0].id, "p3");
	assert_string_equal(p.result.pods[0].marker.attempt, "");
	played_free(&p);
}

#define POD_ROW(id)      "{\"id\":\"" id "\",\"name\":\"burst-0123456789abcdef\",\"status\":\"RUNNING\"}"
#define PAGE(rows, more) "{\"pods\":[" rows "],\"pagination\":" more "}"
#define MORE(cursor)     "{\"hasNextPage\":true,\"nextCursor\":\"" cursor "\"}"

static void a_list_of_several_pages_is_read_to_its_end(void **state)
{
	struct op_want want = {0};
	struct played p =
		PLAY(OP_LIST, &want, {200, PAGE(POD_ROW("p1") "," POD_ROW("p2"), MORE("a+b/c="))},
		     {200, PAGE(POD_ROW("p2") "," POD_ROW("p3"), MORE("z"))},
		     {200, PAGE(POD_ROW("p4"), "{\"hasNextPage\":false,\"nextCursor\":null}")});

	(void)state;
	check_done("three pages", &p);
	check_call(&p, 0, "GET", ROOT "/v2/pods");
	check_call(&p, 1, "GET", ROOT "/v2/pods?cursor=a%2Bb%2Fc%3D");
	check_call(&p, 2, "GET", ROOT "/v2/pods?cursor=z");
	assert_int_equal(p.result.pod_count, 4); /* what stood on two of them is one */
	assert_string_equal(p.result.pods[3].id, "p4");
	played_free(&p);
	p = PLAY(OP_LIST, &want, {200, PAGE(POD_ROW("p1"), MORE("a"))}, {500, "oops"});
	check_failed("half a list is none", &p, ERR_TRANSIENT);
	played_free(&p);

	static const struct {
		const char *name, *page;
		bool failed;
	} pages[] = {
		{"the same page repeatedly", PAGE("", MORE("a")), true},
		{"more, and not where", PAGE("", "{\"hasNextPage\":true,\"nextCursor\":null}"),
		 true},
		{"in a way of its own", PAGE("", "{\"next\":\"abc\"}"), true},
		{"by a number", PAGE("", "{\"next\":2}"), true},
		{"by a word alone", "{\"pods\":[],\"hasMore\":true}", true},
		{"by a link", "{\"pods\":[],\"links\":{\"self\":\"/a\",\"next\":\"/b\"}}", true},
		{"by a link that is an object",
		 "{\"pods\":[],\"_links\":{\"next\":{\"href\":\"/b\"}}}", true},
		{"by how many there are", "{\"pods\":[" POD_ROW("p2") "],\"total\":3}", true},
		{"all that there are",
		 "{\"pods\":[" POD_ROW("p2") "," POD_ROW("p3") "],\"total\":3}", false},
		{"no more",
		 "{\"pods\":[],\"hasMore\":false,\"total\":900,\"links\":{\"next\":null}}", false},
		{"the last one",
		 "{\"pods\":[],\"nextCursor\":null,\"next\":\"\",\"hasNextPage\":false}", false},
		{"the last one, which says where it is itself",
		 "{\"pods\":[],\"pagination\":{\"cursor\":\"abc\",\"nextCursor\":\"abc\","
		 "\"hasNextPage\":false}}",
		 false},
	};
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		p = PLAY(OP_LIST, &want,
			 {200, "{\"pods\":[" POD_ROW("p1") "],\"nextCursor\":\"a\"}"},
			 {200, pages[i].page});
		if (pages[i].failed) {
			check_failed(pages[i].name, &p, ERR_BUG);
			assert_non_null(strstr(p.err.msg, "has further pages"));
		} else {
			check_done(pages[i].name, &p);
		}
		played_free(&p);
	}
	static const struct answer linked[] = {
		{200, "{\"pods\":[]}",
		 "HTTP/1.1 200\r\nLink: </a>; rel=\"prev\", </b>; rel=\"next\""},
		{200, "{\"pods\":[]}",
		 "HTTP/1.1 200\r\nLink: </a>; rel=\"prev\", </b>; rel=\"nextdoor\""},
	};
	p = play(OP_LIST, &want, &linked[0], 1);
	check_failed("by a header", &p, ERR_BUG);
	assert_non_null(strstr(p.err.msg, "has further pages (by its Link header)"));
	played_free(&p);
	p = play(OP_LIST, &want, &linked[1], 1);
	check_done("another header", &p);
	played_free(&p);
}

/* ---- ending ---- */

static void a_release_is_done_when_accepted_or_gone(void **state)
{
	struct op_want want = {.id = "7h9k2m4n6p"};
	struct played p = PLAY(OP_RELEASE, &want, {204});

	(void)state;
	check_done("204", &p);
	assert_int_equal(p.result.release, RELEASE_ENDED);
	check_call(&p, 0, "DELETE", ROOT "/v2/pods/7h9k2m4n6p");
	assert_int_equal(p.call[0].class, CALL_RELEASE);
	assert_true(p.call[0].may_repeat);
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {404, PROBLEM(404, "pod not found")});
	check_done("404", &p);
	assert_int_equal(p.result.release, RELEASE_ABSENT);
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {500});
	check_failed("F16: 500", &p, ERR_TRANSIENT);
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {401});
	check_failed("401", &p, ERR_CREDENTIALS);
	played_free(&p);
}

static void a_locked_pod_is_unlocked(void **state)
{
	struct op_want want = {.id = "a"};
	struct played p =
		PLAY(OP_RELEASE, &want, {409, PROBLEM(409, "locked")}, {200, "{}"}, {204});

	(void)state;
	check_done("F27", &p);
	check_call(&p, 1, "PATCH", ROOT "/v2/pods/a");
	assert_string_equal(str_text(&p.call[1].body), "{\"locked\":false}");
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {409, PROBLEM(409, "locked")}, {409}, {409}, {204});
	check_done("F27: by action", &p);
	check_call(&p, 3, "POST", ROOT "/v2/pods/a/action");
	assert_string_equal(str_text(&p.call[3].body), "{\"action\":\"terminate\"}");
	played_free(&p);
	p = PLAY(OP_RELEASE, &want, {409, PROBLEM(409, "of a cluster")}, {500}, {500}, {500});
	check_failed("F27: in vain", &p, ERR_REFUSED);
	assert_non_null(strstr(p.err.msg, "of a cluster"));
	played_free(&p);
}

static void what_is_no_id_never_stands_in_a_url(void **state)
{
	static const enum op_kind kinds[] = {OP_INSPECT, OP_RELEASE, OP_LOGS, OP_BILLING,
					     OP_VOLUME_REMOVE};
	static const char *const ids[] = {"", "../x", "a/b", "a?b", "a%2f", "a b"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (size_t k = 0; k < ARRAY_LEN(ids); k++) {
			struct op_want want = {0};
			COPY_TEXT(want.id, ids[k]);
			struct played p = play(kinds[i], &want, NULL, 0);
			check_failed(ids[k], &p, ERR_REFUSED);
		}
}

/* ---- logs, bills, balance, doctor ---- */

static void logs_are_what_came_in_time(void **state)
{
	static const char stream[] =
		"id: 2026-06-01T12:02:03Z/000000000001\r\n"
		"data: {\"ts\":\"2026-06-01T12:02:03Z\",\"source\":\"system\",\"line\":\"start "
		"container\"}\r\n\r\n"
		": comment\nid: 2\ndata: {\"source\":\"container\",\ndata: "
		"\"line\":\"Model\\nloaded.\"}\n\n"
		"data: nonsense\n\ndata: {\"source\":\"container\",\"li";
	struct op_want want = {.id = "a"};
	struct played p = PLAY(OP_LOGS, &want, {0, stream});

	(void)state;
	check_done("F20: the stream never ends", &p);
	check_call(&p, 0, "GET", ROOT "/v2/pods/a/logs?tail=200");
	assert_false(p.call[0].may_repeat);
	assert_true(p.call[0].timeout_ms <= 10000);
	assert_string_equal(str_text(&p.result.text),
			    "system: start container\ncontainer: Model loaded.\n");
	played_free(&p);
	p = PLAY(OP_LOGS, &want, {0});
	check_done("F20: no line yet", &p);
	assert_string_equal(str_text(&p.result.text), "");
	played_free(&p);
	p = PLAY(OP_LOGS, &want, {404});
	check_failed("gone", &p, ERR_NOT_FOUND);
	played_free(&p);
}

#define SYSTEM(line)    "data: {\"source\":\"system\",\"line\":\"" line "\"}\n\n"
#define CONTAINER(line) "data: {\"source\":\"container\",\"line\":\"" line "\"}\n\n"

/* A pull that fails once may go well the next time; one that fails over and over, or in words that
 * leave no hope, will not. */
static void logs_tell_what_cannot_be_pulled(void **state)
{
	static const struct {
		const char *name, *stream, *why; /* NULL: nothing is wrong */
	} cases[] = {
		{"no such image",
		 SYSTEM("pulling image a/b:1") SYSTEM("error pulling image: manifest unknown"),
		 "error pulling image: manifest unknown"},
		{"... and it tries again",
		 SYSTEM("pull access denied for a/b") SYSTEM("pulling image a/b:1"),
		 "pull access denied for a/b"},
		{"once, for another reason", SYSTEM("error pulling image: connection reset"), NULL},
		{"twice",
		 SYSTEM("failed to pull: reset") SYSTEM("pulling image")
			 SYSTEM("failed to pull: i/o timeout"),
		 "failed to pull: i/o timeout"},
		{"in the end it came",
		 SYSTEM("error pulling image: toomanyrequests") SYSTEM("image a/b:1 pulled")
			 SYSTEM("create container"),
		 NULL},
		{"its own container says so",
		 CONTAINER("manifest unknown") CONTAINER("pull access denied"), NULL},
		{"between lines of its container", SYSTEM("unauthorized: no") CONTAINER("hello"),
		 "unauthorized: no"},
		{"a name with such a word", SYSTEM("pulling image me/fail-denied:unknown"), NULL},
		{"lines in it", SYSTEM("manifest unknown\\nimage: x"), "manifest unknown image: x"},
	};
	struct op_want want = {.id = "a"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct played p = PLAY(OP_LOGS, &want, {0, cases[i].stream});
		check_done(cases[i].name, &p);
		const char *text = str_text(&p.result.text), *found = strstr(text, "\nimage: ");
		CLEANUP(free_text)
		char *line = cases[i].why ? xasprintf("\nimage: %s\n", cases[i].why) : NULL;
		if (line ? !found || strcmp(found, line) : found || starts_with(text, "image: "))
			fail_msg("%s: \"%s\"", cases[i].name, text);
		played_free(&p);
	}
}

#define RECORD(pod, total, gpu)                                                                    \
	"{\"startTime\":\"2026-11-20T23:00:00Z\",\"endTime\":\"2026-11-21T00:00:00Z\",\"podId\":"  \
	"\"" pod "\",\"totalAmount\":" total ",\"gpuAmount\":" gpu                                 \
	",\"cpuAmount\":0,\"diskAmount\":0.01}"

static void bills_are_dollars_and_imply_seconds(void **state)
{
	struct op_want want = {.id = "a", .since_s = 1795216200};
	struct played p = PLAY(OP_BILLING, &want, {200, "{\"records\":[],\"metadata\":{}}"});

	(void)state;
	check_failed("no record yet", &p, ERR_NOT_FOUND);
	check_call(&p, 0, "GET",
		   ROOT "/v2/billing/pods?podId=a&bucketSize=hour&startTime=2026-11-20T23:08:00Z");
	played_free(&p);
	p = PLAY(OP_BILLING, &want, {200, "{\"records\":[" RECORD("a", "0.13", "0.12") "]}"});
	check_done("a price that is not known implies nothing", &p);
	assert_int_equal(p.result.billing.cost_microusd, 130000);
	assert_int_equal(p.result.billing.billed_ms, 0);
	played_free(&p);
	want.bill.price_microusd_h = want.bill.list_microusd_h = 720000;
	p = PLAY(OP_BILLING, &want,
		 {200, "{\"records\":[" RECORD("a", "0.13", "0.12") "," RECORD(
			       "a", "0.07", "0.06") "," RECORD("b", "9", "9") "]}"});
	check_done("records", &p);
	assert_int_equal(p.result.billing.cost_microusd, 200000);
	assert_int_equal(p.result.billing.billed_ms, 1000000);
	assert_int_equal(p.result.billing.beside_microusd, 0);
	assert_false(p.result.billing.reported);
	assert_int_equal(p.result.billing.hour_count, 2);
	assert_int_equal(p.result.billing.hours[1].cost_microusd, 70000);
	assert_int_equal(p.result.billing.hours[0].start_s, 1795215600);
	assert_int_equal(p.result.billing.hours[0].end_s, 1795215600 + 3600);
	played_free(&p);
	p = PLAY(OP_BILLING, &want,
		 {200, "{\"records\":[" RECORD("a", "999999", "999999") "," RECORD("a", "1e300",
										   "-4") "]}"});
	check_done("absurd amounts", &p);
	assert_int_equal(p.result.billing.cost_microusd, INT64_C(999999000000));
	assert_true(p.result.billing.billed_ms > 0 &&
		    p.result.billing.billed_ms <= INT64_C(1000000000000000));
	played_free(&p);
	p = PLAY(OP_BILLING, &want, {401, PROBLEM(401, "invalid token")});
	check_failed("a wrong key", &p, ERR_CREDENTIALS);
	played_free(&p);
}

/* The disk is in each offer's price, for what was asked for. */
static void a_price_pays_for_the_disk(void **state)
{
	static const struct {
		int64_t disk_gb, price;
	} cases[] = {{0, 690000 + DISK_40},
		     {40, 690000 + DISK_40},
		     {10, 690000 + DISK_20},
		     {500, 690000 + 68494},
		     {1000, 690000 + 136987}};
	static const char *const gpus[] = {"RTX 4090", NULL};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = wanting(gpus), rent = a_rent();
		want.offers.disk_gb = rent.rent.disk_gb = cases[i].disk_gb;
		want.offers.spot = true;
		struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, FLOORS});
		check_done("offers", &p);
		assert_int_equal(p.result.offers[0].price_microusd_h, cases[i].price);
		assert_int_equal(p.result.offers[2].price_microusd_h,
				 cases[i].price - 690000 + 220000);
		rent.rent.offer = p.result.offers[2];
		rent.rent.volume.id[0] = '\0';
		played_free(&p);
		p = PLAY(OP_RENT, &rent,
			 {200, "{\"data\":{\"podRentInterruptable\":{\"id\":\"spot1\"}}}"});
		CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
		const json_t *input = json_object_get(json_object_get(body, "variables"), "input");
		assert_int_equal((int64_t)(jsonx_number(input, "bidPerGpu", 0) * 1e6 + 0.5),
				 220000);
		played_free(&p);
	}
}

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

/* ---- volumes ---- */

#define VOLUME(id, name, dc)                                                                       \
	"{\"id\":\"" id "\",\"name\":\"" name "\",\"size\":1500,\"dataCenter\":\"" dc              \
	"\",\"type\":\"STANDARD\"}"
#define CENTRE(id, types, stock4090, stock5090)                                                    \
	"{\"id\":\"" id "\",\"name\":\"x\",\"region\":\"EUROPE\",\"globalNetwork\":true,"          \
	"\"networkVolumeTypes\":[" types                                                           \
	"],\"compliance\":[],\"gpuAvailability\":[{\"id\":\"NVIDIA GeForce RTX "                   \
	"4090\",\"name\":\"RTX 4090\",\"availability\":\"" stock4090                               \
	"\"},{\"id\":\"NVIDIA GeForce RTX 5090\",\"name\":\"RTX "                                  \
	"5090\",\"availability\":\"" stock5090 "\"}]}"
#define CENTRES                                                                                    \
	"{\"dataCenters\":[" CENTRE("AP-JP-1", "", "HIGH", "HIGH") "," CENTRE(                     \
		"US-TX-3", "\"STANDARD\"", "LOW",                                                  \
		"MEDIUM") "," CENTRE("EU-RO-1", "\"STANDARD\",\"HIGH_PERFORMANCE\"", "LOW",        \
				     "MEDIUM") "," CENTRE("US-GA-1", "\"STANDARD\"", "HIGH",       \
							  "NONE") "]}"
#define VOLUMES(list) "{\"networkVolumes\":[" list "]}"

static struct op_want a_volume(bool create)
{
	static const char *const gpus[] = {"RTX 5090", "RTX 4090", NULL};

	return (struct op_want){
		.volume = {.name = "cache", .size_gb = 20, .create = create, .gpus = gpus}};
}

static void a_volume_is_found_by_name(void **state)
{
	struct op_want want = a_volume(false);
	struct played p = PLAY(OP_VOLUME, &want,
			       {200, VOLUMES(VOLUME("v1", "other", "EU-RO-1") "," VOLUME(
					     "v2", "cache", "US-KS-2"))});

	(void)state;
	check_done("found", &p);
	assert_string_equal(p.result.volumes[0].id, "v2");
	assert_string_equal(p.result.volumes[0].region, "US-KS-2");
	assert_int_equal(p.result.volumes[0].price_microusd_month, 70000000 + 500 * 50000);
	played_free(&p);
	p = PLAY(OP_VOLUME, &want, {200, VOLUMES("")});
	check_failed("not wanted to be made", &p, ERR_NOT_FOUND);
	played_free(&p);
	const char *two =
		VOLUMES(VOLUME("v1", "cache", "EU-RO-1") "," VOLUME("v2", "cache", "US-KS-2"));
	p = PLAY(OP_VOLUME, &want, {200, two});
	check_failed("two of one name", &p, ERR_CONFIG);
	played_free(&p);
	section_add_item(conf, "datacenters", "US-KS-2", "test");
	p = PLAY(OP_VOLUME, &want, {200, two});
	check_done("the data centre tells which", &p);
	assert_string_equal(p.result.volumes[0].id, "v2");
	played_free(&p);
}

static void a_volume_is_made_near_the_gpus(void **state)
{
	struct op_want want = a_volume(true);
	struct played p = PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, CENTRES},
			       {201, VOLUME("v9", "cache", "EU-RO-1")}, {200, VOLUMES("")});

	(void)state;
	check_done("made", &p);
	check_call(&p, 1, "GET", ROOT "/v2/catalog/datacenters?include=GPU_AVAILABILITY");
	check_call(&p, 2, "POST", ROOT "/v2/network-volumes");
	assert_false(p.call[2].may_repeat);
	assert_string_equal(str_text(&p.call[2].body),
			    "{\"name\":\"cache\",\"size\":20,\"dataCenter\":\"EU-RO-1\",\"type\":"
			    "\"STANDARD\"}");
	played_free(&p);
	section_add_item(conf, "datacenters", "US-GA-1", "test");
	p = PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, CENTRES},
		 {201, VOLUME("v9", "cache", "US-GA-1")}, {500});
	assert_non_null(strstr(str_text(&p.call[2].body), "US-GA-1"));
	played_free(&p);
	section_clear_items(conf, "datacenters");
	section_add_item(conf, "datacenters", "AP-JP-1", "test");
	p = PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, CENTRES});
	check_failed("no volumes there", &p, ERR_CONFIG);
	played_free(&p);
}

/* Where the wanted GPUs are, free or sold out, and within the regions of the offers that it is made
 * for. */
static void a_volume_is_made_where_pods_can_be(void **state)
{
	static const char *const ga[] = {"AP-JP-1", "US-GA-1", NULL},
				 *const tx[] = {"US-TX-3", NULL}, *const jp[] = {"AP-JP-1", NULL};
	static const char *const misspelt[] = {"RTX 4900", NULL};
	static const struct {
		const char *name;
		const char *const *regions, *const *gpus;
		const char *centres, *where; /* NULL: nowhere */
		enum err_kind kind;
	} cases[] = {
		{"anywhere", NULL, NULL, CENTRES, "EU-RO-1"},
		{"one of two takes volumes", ga, NULL, CENTRES, "US-GA-1"},
		{"the offer's", tx, NULL, CENTRES, "US-TX-3"},
		{"free where no volumes are", jp, NULL, CENTRES, NULL, ERR_NO_CAPACITY},
		{"a name that no data centre knows", NULL, misspelt, CENTRES, NULL, ERR_CONFIG},
		{"all sold out", NULL, NULL,
		 "{\"dataCenters\":[{\"id\":\"CA-MTL-1\",\"networkVolumeTypes\":[\"STANDARD\"]},{"
		 "\"id\":\"EU-RO-1\",\"networkVolumeTypes\":["
		 "\"STANDARD\"]}," CENTRE("US-TX-3", "\"STANDARD\"", "NONE", "NONE") "]}",
		 "US-TX-3"},
		{"one kind is free, the other sold out", NULL, NULL,
		 "{\"dataCenters\":[{\"id\":\"EU-RO-1\",\"networkVolumeTypes\":[\"STANDARD\"],"
		 "\"gpuAvailability\":[{\"id\":\"x\",\"name\":"
		 "\"RTX 4090\",\"availability\":\"HIGH\"}]}," CENTRE("US-TX-3", "\"STANDARD\"",
								     "LOW", "NONE") "]}",
		 "US-TX-3"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = a_volume(true);
		want.regions = cases[i].regions;
		want.volume.gpus = cases[i].gpus ? cases[i].gpus : want.volume.gpus;
		struct played p =
			PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, cases[i].centres},
			     {201, VOLUME("v9", "cache", "US-TX-3")}, {200, VOLUMES("")});
		if (cases[i].where) {
			check_done(cases[i].name, &p);
			if (!strstr(str_text(&p.call[2].body), cases[i].where))
				fail_msg("%s: %s", cases[i].name, str_text(&p.call[2].body));
		} else {
			check_failed(cases[i].name, &p, cases[i].kind);
			assert_int_equal(p.calls, 2);
		}
		played_free(&p);
	}
}

/* Before it is made, offers are those that a volume could be attached to. */
static void offers_for_a_volume_to_come(void **state)
{
	struct op_want want = {.offers = {.volume.name = "cache"}};
	struct played p = PLAY(OP_OFFERS, &want, {200, "{\"gpus\":[]}"});

	(void)state;
	check_failed("nothing is free", &p, ERR_NO_CAPACITY);
	assert_non_null(strstr(p.err.msg, "volume \"cache\" is created only when there is one"));
	check_call(
		&p, 0, "GET",
		ROOT
		"/v2/catalog/"
		"gpus?include=AVAILABILITY&product=POD&count=1&cloud=SECURE&minCudaVersion=12.8");
	assert_int_equal(p.calls, 1);
	played_free(&p);
}

static void a_volume_is_made_near_cpu_pods(void **state)
{
	struct op_want want = a_volume(true);

	(void)state;
	want.volume.gpus = no_gpu;
	struct played p = PLAY(OP_VOLUME, &want, {200, VOLUMES("")},
			       {200, "{\"dataCenters\":[{\"id\":\"EU-RO-1\",\"networkVolumeTypes\":"
				     "[\"STANDARD\"],\"cpuAvailability\":[{"
				     "\"id\":\"cpu3c\",\"availability\":\"LOW\"}]},{\"id\":\"US-TX-"
				     "3\",\"networkVolumeTypes\":"
				     "[\"STANDARD\"],\"cpuAvailability\":[{\"id\":\"cpu3c\","
				     "\"availability\":\"HIGH\"}]}]}"},
			       {201, VOLUME("v9", "cache", "US-TX-3")},
			       {200, VOLUMES(VOLUME("v9", "cache", "US-TX-3"))});
	check_done("made", &p);
	check_call(&p, 1, "GET",
		   ROOT "/v2/catalog/datacenters?include=GPU_AVAILABILITY,CPU_AVAILABILITY");
	assert_non_null(strstr(str_text(&p.call[2].body), "US-TX-3"));
	played_free(&p);
}

static void keep_line(void *ctx, enum log_level level, const char *line)
{
	(void)level;
	str_add(ctx, line);
}

/* Two machines at the same moment: both take the one whose id comes first, whoever made it. */
static void a_volume_that_another_machine_made_too(void **state)
{
	static const struct {
		const char *name, *list, *id; /* NULL: it fails */
		const char *spare;            /* what people are told ends the other one */
	} cases[] = {
		{"theirs comes first",
		 VOLUMES(VOLUME("v9", "cache", "EU-RO-1") "," VOLUME("v2", "cache", "EU-RO-1")),
		 "v2", "`burst volume rm v9`"},
		{"ours comes first",
		 VOLUMES(VOLUME("w1", "cache", "EU-RO-1") "," VOLUME("v9", "cache", "EU-RO-1")),
		 "v9", "`burst volume rm w1`"},
		{"ours is not listed yet", VOLUMES(VOLUME("v2", "cache", "EU-RO-1")), "v2"},
		{"another name", VOLUMES(VOLUME("v2", "other", "EU-RO-1")), "v9"},
		{"elsewhere: people must say which", VOLUMES(VOLUME("v2", "cache", "US-KS-2")),
		 NULL},
	};
	struct op_want want = a_volume(true);
	struct str told = STR_INIT;

	(void)state;
	log_setup(LOG_WARN, keep_line, &told);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		str_reset(&told);
		struct played p =
			PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, CENTRES},
			     {201, VOLUME("v9", "cache", "EU-RO-1")}, {200, cases[i].list});
		if (cases[i].spare && !strstr(str_text(&told), cases[i].spare))
			fail_msg("%s: told is \"%s\"", cases[i].name, str_text(&told));
		if (cases[i].id) {
			check_done(cases[i].name, &p);
			assert_int_equal(p.result.volume_count, 1);
			assert_string_equal(p.result.volumes[0].id, cases[i].id);
		} else {
			check_failed(cases[i].name, &p, ERR_CONFIG);
			assert_non_null(strstr(p.err.msg, "burst volume rm"));
		}
		played_free(&p);
	}
	want = a_volume(false);
	struct played p = PLAY(OP_VOLUME, &want,
			       {200, VOLUMES(VOLUME("v3", "cache", "EU-RO-1") "," VOLUME(
					     "v2", "cache", "EU-RO-1"))});
	check_done("both are there later on", &p);
	assert_string_equal(p.result.volumes[0].id, "v2");
	assert_non_null(
		strstr(str_text(&told), "using v2; to remove the rest: `burst volume rm v3`"));
	played_free(&p);
	log_setup(LOG_ERROR, NULL, NULL);
	str_free(&told);
}

static void a_lost_volume_is_looked_for_never_made_twice(void **state)
{
	struct op_want want = a_volume(true);
	struct played p =
		PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, CENTRES}, {0}, {200, VOLUMES("")},
		     {200, VOLUMES(VOLUME("v9", "cache", "EU-RO-1"))});

	(void)state;
	check_done("found after all", &p);
	assert_int_equal(p.waits, 2);
	played_free(&p);
	p = PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, CENTRES}, {500}, {200, VOLUMES("")},
		 {500}, {200, VOLUMES("")}, {200, VOLUMES("")}, {200, VOLUMES("")});
	check_failed("not found", &p, ERR_AMBIGUOUS);
	played_free(&p);
	p = PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, CENTRES}, {402, ""});
	check_failed("no money", &p, ERR_BALANCE);
	played_free(&p);
}

static void volumes_are_listed_and_removed(void **state)
{
	struct op_want want = {.id = "v1"};
	struct played p =
		PLAY(OP_VOLUMES, &want,
		     {200, VOLUMES(VOLUME("v1", "a", "EU-RO-1") "," VOLUME("v2", "b", "US-KS-2"))});

	(void)state;
	assert_int_equal(p.result.volume_count, 2);
	played_free(&p);
	p = PLAY(OP_VOLUME_REMOVE, &want, {204});
	check_done("removed", &p);
	check_call(&p, 0, "DELETE", ROOT "/v2/network-volumes/v1");
	played_free(&p);
	p = PLAY(OP_VOLUME_REMOVE, &want, {404, PROBLEM(404, "resource not found")});
	check_done("gone already", &p);
	played_free(&p);
	p = PLAY(OP_VOLUME_REMOVE, &want, {400, PROBLEM(400, "in use")});
	check_failed("in use", &p, ERR_CONFIG);
	played_free(&p);
}

/* ---- files without a pod ---- */

static struct op_want a_file(void)
{
	return (struct op_want){
		.file = {.volume = {.id = "vol1", .name = "cache", .region = "EU-RO-1"},
			 .path = "runs/r 1/a#b.wav",
			 .local = "/tmp/x",
			 .max_bytes = 100}};
}

/* It would be made a second time else, and billed for ever. */
static void a_volume_on_a_later_page_is_found(void **state)
{
	struct op_want want = {.volume = {.name = "cache", .size_gb = 20, .create = true}};
	struct played p =
		PLAY(OP_VOLUME, &want,
		     {200, "{\"networkVolumes\":[" VOLUME(
				   "v1", "a", "EU-RO-1") "],\"pagination\":" MORE("c2") "}"},
		     {200, VOLUMES(VOLUME("v2", "cache", "US-KS-2"))});

	(void)state;
	check_done("found", &p);
	check_call(&p, 1, "GET", ROOT "/v2/network-volumes?cursor=c2");
	assert_string_equal(p.result.volumes[0].id, "v2");
	played_free(&p);
	p = PLAY(OP_VOLUMES, &want,
		 {200, "{\"networkVolumes\":[" VOLUME(
			       "v1", "a", "EU-RO-1") "],\"pagination\":" MORE("c2") "}"},
		 {200, VOLUMES(VOLUME("v2", "cache", "US-KS-2"))});
	check_done("all", &p);
	assert_int_equal(p.result.volume_count, 2);
	played_free(&p);
	p = PLAY(OP_VOLUME, &want,
		 {200, "{\"networkVolumes\":[],\"pagination\":{\"hasNextPage\":true}}"});
	check_failed("more, and not where", &p, ERR_BUG);
	played_free(&p);
}

static void with_s3_keys(void)
{
	section_set_text(conf, "s3_access_key", "user_1", "test");
	section_set_text(conf, "s3_secret_key", "rps_1", "test");
}

static bool has_header(const struct call *call, const char *line)
{
	for (size_t i = 0; i < call->header_count; i++)
		if (!strcmp(call->headers[i], line))
			return true;
	return false;
}

static void files_need_keys_and_a_place(void **state)
{
	struct op_want want = a_file();
	struct played p = play(OP_FETCH, &want, NULL, 0);

	(void)state;
	check_failed("no keys", &p, ERR_CREDENTIALS);
	with_s3_keys();
	COPY_TEXT(want.file.volume.region, "US-TX-3");
	p = play(OP_STAGE, &want, NULL, 0);
	check_failed("no S3 there", &p, ERR_REFUSED);
	struct provider *provider;
	assert_int_equal(provider_runpod.open(&provider, conf, "/state", &p.err), 0);
	assert_true(provider_can_fetch(&provider_runpod, provider, NULL));
	provider_runpod.close(provider);
}

#define URL_OF_FILE "https://s3api-eu-ro-1.runpod.io/vol1/runs/r%201/a%23b.wav"

static void an_upload_is_looked_at_afterwards(void **state)
{
	struct op_want want = a_file();

	(void)state;
	with_s3_keys();
	struct played p = PLAY(OP_STAGE, &want, {502}, {502}, {200}, {502},
			       {200, "", "HTTP/1.1 200 OK\r\nContent-Length: 77"});
	check_done("staged", &p);
	check_call(&p, 2, "PUT", URL_OF_FILE);
	check_call(&p, 4, "HEAD", URL_OF_FILE);
	assert_int_equal(p.waits, 3);
	assert_string_equal(p.call[0].sigv4, "aws:amz:EU-RO-1:s3");
	assert_string_equal(p.call[0].user, "user_1");
	assert_string_equal(p.call[0].body_from, "/tmp/x");
	assert_true(has_header(&p.call[0], "x-amz-content-sha256: UNSIGNED-PAYLOAD"));
	assert_int_equal(p.result.bytes, 77);
	played_free(&p);
	p = PLAY(OP_STAGE, &want, {0}, {0}, {200}, {200, "", "Content-Length: 77"});
	check_done("staged, after it broke off twice", &p);
	assert_int_equal(p.waits, 2);
	played_free(&p);
	p = PLAY(OP_STAGE, &want, {0}, {0}, {0}, {0}, {200});
	check_failed("it breaks off for ever", &p, ERR_NETWORK);
	assert_int_equal(p.calls, 4);
	played_free(&p);
	p = PLAY(OP_STAGE, &want, {200}, {404});
	check_failed("F23: not there", &p, ERR_TRANSIENT);
	played_free(&p);
	p = PLAY(OP_STAGE, &want, {200}, {200, "", "Content-Length: 101"});
	check_failed("F23: another size", &p, ERR_TRANSIENT);
	played_free(&p);
	p = PLAY(OP_STAGE, &want,
		 {403,
		  "<Error><Code>RequestTimeTooSkewed</Code><Message>far off</Message></Error>"});
	check_failed("F24", &p, ERR_CREDENTIALS);
	assert_non_null(strstr(p.err.msg, "clock"));
	played_free(&p);
}

static void a_fetch_goes_on_where_it_was(void **state)
{
	struct op_want want = a_file();
	struct answer busy[14] = {0};

	(void)state;
	with_s3_keys();
	section_set_text(conf, "s3_url", "http://127.0.0.1:9000/", "test");
	struct played p = PLAY(OP_FETCH, &want, {200, "", "Content-Length: 50"});
	check_done("whole", &p);
	check_call(&p, 0, "GET", "http://127.0.0.1:9000/vol1/runs/r%201/a%23b.wav");
	assert_string_equal(p.call[0].body_to, "/tmp/x");
	assert_false(p.call[0].may_repeat); /* what came would be written twice */
	assert_int_equal(p.call[0].max_bytes, 100);
	assert_int_equal(p.result.bytes, 50);
	played_free(&p);
	want.file.offset = 30;
	p = PLAY(OP_FETCH, &want, {206, "", "Content-Length: 20"});
	assert_true(has_header(&p.call[0], "Range: bytes=30-129"));
	played_free(&p);
	p = PLAY(OP_FETCH, &want, {416});
	check_done("no more of it", &p);
	played_free(&p);
	p = PLAY(OP_FETCH, &want, {404, "<Error><Code>NoSuchKey</Code></Error>"});
	check_failed("no such file", &p, ERR_NOT_FOUND);
	played_free(&p);
	for (size_t i = 0; i < ARRAY_LEN(busy); i++)
		busy[i].status = i == 9 ? 206 : 502;
	p = play(OP_FETCH, &want, busy, 10);
	check_done("F23: 502 nine times", &p);
	played_free(&p);
	busy[9].status = 502;
	p = play(OP_FETCH, &want, busy, 13);
	check_failed("502 for ever", &p, ERR_TRANSIENT);
	assert_true(p.waited_ms > 60000);
	played_free(&p);
}

/* ---- tidying ---- */

#define KEY(key, size, when)                                                                       \
	"<Contents><Key>" key "</Key><LastModified>" when "</LastModified><Size>" size             \
	"</Size></Contents>"
#define PREFIX(prefix) "<CommonPrefixes><Prefix>" prefix "</Prefix></CommonPrefixes>"
#define LIST(more, inner)                                                                          \
	"<?xml version=\"1.0\"?>\n<ListBucketResult "                                              \
	"xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>vol1</Name>"                      \
	"<IsTruncated>" more "</IsTruncated>" inner "</ListBucketResult>"
#define TOKEN(token) "<NextContinuationToken>" token "</NextContinuationToken>"
#define OF_VOLUME    "https://s3api-eu-ro-1.runpod.io/vol1"
#define DAY1         "2026-11-20T23:10:00.000Z"
#define DAY2         "2026-11-21T23:10:00.000Z"

static struct op_want a_folder(const char *path)
{
	struct op_want want = a_file();

	want.file.path = path;
	return want;
}

static void a_folder_is_listed(void **state)
{
	struct op_want want = a_folder("runs");

	(void)state;
	with_s3_keys();
	struct played p = PLAY(OP_VOLUME_LS, &want, {502},
			       {200, LIST("true", KEY("runs/a&amp;b.txt", "7", DAY1)
							  PREFIX("runs/r1/") TOKEN("a/b="))},
			       {200, LIST("false", PREFIX("runs/r1/") PREFIX("runs/r 2/")
							   KEY("runs/", "0", DAY1))});
	check_done("listed", &p);
	check_call(&p, 0, "GET",
		   OF_VOLUME "?delimiter=%2F&list-type=2&max-keys=1000&prefix=runs%2F");
	check_call(&p, 2, "GET",
		   OF_VOLUME "?continuation-token=a%2Fb%3D&delimiter=%2F&list-type=2&max-keys=1000&"
			     "prefix=runs%2F");
	assert_string_equal(p.call[0].sigv4, "aws:amz:EU-RO-1:s3");
	assert_int_equal(p.result.entry_count, 3);
	assert_string_equal(p.result.entries[0].name, "r1");
	assert_true(p.result.entries[0].folder && p.result.entries[0].bytes == -1 &&
		    !p.result.entries[0].changed_s);
	assert_string_equal(p.result.entries[1].name, "a&b.txt");
	assert_int_equal(p.result.entries[1].bytes, 7);
	assert_int_equal(p.result.entries[1].changed_s, 1795216200);
	assert_string_equal(p.result.entries[2].name, "r 2");
	played_free(&p);
	want = a_folder("runs/r1");
	p = PLAY(
		OP_VOLUME_SIZE, &want,
		{200, LIST("true", KEY("runs/r1/log", "7", DAY2) PREFIX("runs/r1/p1/") TOKEN("t"))},
		{200, LIST("false", PREFIX("runs/r1/p2/"))},
		{200, LIST("false", KEY("runs/r1/p1/a", "100", DAY1))},
		{200, LIST("false", KEY("runs/r1/p2/", "0", DAY1))});
	check_done("measured", &p);
	check_call(&p, 2, "GET",
		   OF_VOLUME "?delimiter=%2F&list-type=2&max-keys=1000&prefix=runs%2Fr1%2Fp1%2F");
	assert_string_equal(p.result.entries[0].name, "r1");
	assert_int_equal(p.result.entries[0].bytes, 107);
	assert_int_equal(p.result.entries[0].files, 2);
	assert_int_equal(p.result.entries[0].changed_s, 1795216200 + 86400);
	played_free(&p);
}

static void a_list_that_cannot_be_trusted_is_none(void **state)
{
	static const struct {
		const char *name, *body;
		enum err_kind kind;
	} cases[] = {
		{"cut off",
		 "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>runs/r1/a</Key>",
		 ERR_TRANSIENT},
		{"a page of HTML", "<html>fine</html>", ERR_TRANSIENT},
		{"nothing", "", ERR_TRANSIENT},
		{"not said whether whole", "<ListBucketResult></ListBucketResult>", ERR_TRANSIENT},
		{"more, and not where", LIST("true", KEY("runs/r1/a", "1", DAY1)), ERR_UNTRUSTED},
		{"another folder's", LIST("false", KEY("env/h/.done", "1", DAY1)), ERR_UNTRUSTED},
		{"a way out", LIST("false", KEY("runs/r1/../../env/h", "1", DAY1)), ERR_UNTRUSTED},
		{"a way out, hidden", LIST("false", KEY("runs/r1/&#46;./x", "1", DAY1)),
		 ERR_UNTRUSTED},
		{"an entity of nobody's", LIST("false", KEY("runs/r1/&x;", "1", DAY1)),
		 ERR_UNTRUSTED},
		{"a folder that is no folder", LIST("false", PREFIX("runs/r1/p")), ERR_UNTRUSTED},
		{"itself", LIST("false", PREFIX("runs/r1/")), ERR_UNTRUSTED},
		{"nothing in it", LIST("false", ""), ERR_NOT_FOUND},
	};
	struct op_want want = a_folder("runs/r1");

	(void)state;
	with_s3_keys();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct played p = PLAY(OP_VOLUME_LS, &want, {200, cases[i].body});
		check_failed(cases[i].name, &p, cases[i].kind);
		played_free(&p);
	}
	struct played p = PLAY(OP_VOLUME_LS, &want,
			       {200, LIST("true", KEY("runs/r1/a", "1", DAY1) TOKEN("t"))},
			       {200, LIST("true", KEY("runs/r1/b", "1", DAY1) TOKEN("u"))},
			       {200, LIST("true", KEY("runs/r1/a", "1", DAY1) TOKEN("t"))});
	check_failed("F23: a loop of tokens", &p, ERR_UNTRUSTED);
	assert_non_null(strstr(p.err.msg, "the same page repeatedly"));
	played_free(&p);
	want = a_folder("../x");
	p = play(OP_VOLUME_DELETE, &want, NULL, 0);
	check_failed("a path that leads out", &p, ERR_REFUSED);
}

static void a_folder_is_removed_file_by_file(void **state)
{
	struct op_want want = a_folder("runs/r1");

	(void)state;
	struct played p = play(OP_VOLUME_DELETE, &want, NULL, 0);
	check_failed("no keys", &p, ERR_CREDENTIALS);
	assert_non_null(strstr(p.err.msg, "RunPod's console"));
	with_s3_keys();
	p = PLAY(OP_VOLUME_DELETE, &want,
		 {200, LIST("true", KEY("runs/r1/a", "7", DAY1) KEY("runs/r1/p/b c", "5", DAY1)
					    TOKEN("t"))},
		 {204}, {502}, {404}, {200, LIST("false", KEY("runs/r1/p/", "0", DAY1))}, {204},
		 {200, LIST("false", "")}, {204});
	check_done("removed", &p);
	check_call(&p, 0, "GET", OF_VOLUME "?list-type=2&max-keys=1000&prefix=runs%2Fr1%2F");
	check_call(&p, 1, "DELETE", OF_VOLUME "/runs/r1/p/b%20c");
	check_call(&p, 3, "DELETE", OF_VOLUME "/runs/r1/a");
	/* no token */
	check_call(&p, 4, "GET", OF_VOLUME "?list-type=2&max-keys=1000&prefix=runs%2Fr1%2F");
	check_call(&p, 5, "DELETE", OF_VOLUME "/runs/r1/p/");
	check_call(&p, 7, "DELETE", OF_VOLUME "/runs/r1");
	assert_int_equal(p.result.bytes, 12);
	played_free(&p);
	p = PLAY(OP_VOLUME_DELETE, &want, {200, LIST("false", KEY("runs/r1/a", "7", DAY1))},
		 {403, "<Error><Code>AccessDenied</Code></Error>"});
	check_failed("refused", &p, ERR_CREDENTIALS);
	played_free(&p);
	struct answer stays[20];
	for (size_t i = 0; i < ARRAY_LEN(stays); i++)
		stays[i] = i % 2 ? (struct answer){204}
				 : (struct answer){200, LIST("false", KEY("runs/r1/a", "7", DAY1))};
	p = play(OP_VOLUME_DELETE, &want, stays, ARRAY_LEN(stays));
	check_failed("listed for ever", &p, ERR_TRANSIENT);
	assert_true(p.waits >= 4 && p.calls < 16);
	played_free(&p);
}

/* ---- its section ---- */

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
	assert_int_equal(provider_runpod.open(&a, conf, "/1", &err), 0);
	CLEANUP(free_text) char *first = xstrdup(provider_runpod.account(a));
	provider_runpod.close(a);
	assert_null(strstr(first, "rpa_"));
	assert_int_equal(provider_runpod.open(&b, conf, "/2", &err), 0);
	assert_string_equal(provider_runpod.account(b), first);
	provider_runpod.close(b);
	section_set_text(conf, "api_key", "rpa_other999", "env");
	assert_int_equal(provider_runpod.open(&b, conf, "/2", &err), 0);
	assert_string_not_equal(provider_runpod.account(b), first);
	provider_runpod.close(b);
	section_free(conf);
	conf = section_new(provider_runpod.options, "x");
	assert_int_equal(provider_runpod.open(&b, conf, "/2", &err), -1);
	assert_int_equal(err.kind, ERR_CREDENTIALS);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(offers_are_read),
		T(the_least_that_is_wanted),
		T(the_image_decides_the_floor),
		T(names_are_taken_as_people_write_them),
		T(what_cannot_be_offered_says_why),
		T(what_is_passed_over_is_said),
		T(clouds_and_datacenters_narrow_it),
		T(spot_is_a_tenth_above_the_floor),
		T(cpu_pods_are_offered),
		T(a_cpu_pod_is_as_large_as_it_must_be),
		T(a_cpu_pod_beside_gpus),
		T(a_cpu_pod_is_created),
		T(a_create_says_all_that_it_must),
		T(a_plain_create_names_no_more_than_it_must),
		T(filters_that_the_server_does_not_know_are_left_out),
		T(every_failure_has_its_kind),
		T(a_spot_pod_is_refused_by_http),
		T(a_credential_is_for_its_own_images),
		T(a_429_waits_for_every_window),
		T(a_spot_pod_is_bid_for),
		T(a_volume_pins_the_create),
		T(states_are_read),
		T(a_preempted_spot_pod_is_known),
		T(a_thousand_pods_can_be_listed),
		T(only_marked_pods_are_listed),
		T(a_list_of_several_pages_is_read_to_its_end),
		T(a_volume_on_a_later_page_is_found),
		T(a_release_is_done_when_accepted_or_gone),
		T(a_locked_pod_is_unlocked),
		T(what_is_no_id_never_stands_in_a_url),
		T(logs_are_what_came_in_time),
		T(logs_tell_what_cannot_be_pulled),
		T(bills_are_dollars_and_imply_seconds),
		T(a_price_pays_for_the_disk),
		T(the_balance_is_told),
		T(doctor_hears_what_is_wrong),
		T(a_volume_is_found_by_name),
		T(a_volume_is_made_near_the_gpus),
		T(a_volume_is_made_where_pods_can_be),
		T(offers_for_a_volume_to_come),
		T(a_volume_is_made_near_cpu_pods),
		T(a_lost_volume_is_looked_for_never_made_twice),
		T(a_volume_that_another_machine_made_too),
		T(volumes_are_listed_and_removed),
		T(files_need_keys_and_a_place),
		T(an_upload_is_looked_at_afterwards),
		T(a_fetch_goes_on_where_it_was),
		T(a_folder_is_listed),
		T(a_list_that_cannot_be_trusted_is_none),
		T(a_folder_is_removed_file_by_file),
		T(the_section_is_checked),
		T(all_mistakes_are_noted),
		T(an_account_is_the_same_for_the_same_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
