/* test_runpod_offers.c - what RunPod offers: GPUs, CPU pods, spot, data centers, prices. */
#include "runpod_offers_bed.h"

#define CATALOG_URL ROOT "/v2/catalog/gpus?include=AVAILABILITY&product=POD"

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
	p = runpod_play(OP_OFFERS, &want, NULL, 0);
	check_failed("no count", &p, ERR_CONFIG);
	/* elsewhere, but not beside the volume: said so */
	want = wanting(there);
	want.offers.volume = (struct volume){.id = "vol1", .name = "cache", .region = "EU-RO-1"};
	p = PLAY(OP_OFFERS, &want, {200, CATALOG});
	check_failed("not beside the volume", &p, ERR_NO_CAPACITY);
	assert_non_null(strstr(p.err.msg, "where volume \"cache\" is (there is some in US-KS-2)"));
	played_free(&p);
	section_set_text(runpod_conf, "cloud", "COMMUNITY", "burst.cfg:7");
	p = runpod_play(OP_OFFERS, &want, NULL, 0);
	check_failed("a volume with COMMUNITY", &p, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "burst.cfg:7"));
	section_set_text(runpod_conf, "cloud", "ANY", "burst.cfg:7");
	section_add_item(runpod_conf, "datacenters", "US-KS-2", "burst.cfg:8");
	p = runpod_play(OP_OFFERS, &want, NULL, 0);
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
	section_set_text(runpod_conf, "cloud", "ANY", "test");
	section_set_text(runpod_conf, "min_cuda", "none", "test");
	struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, CATALOG});
	check_done("any cloud", &p);
	check_call(&p, 0, "GET", CATALOG_URL "&count=1&cloud=SECURE");
	check_call(&p, 1, "GET", CATALOG_URL "&count=1&cloud=COMMUNITY");
	assert_int_equal(p.result.offer_count, 3);
	/* naming data centres keeps a COMMUNITY pod from being placed at all */
	assert_string_equal(p.result.offers[2].id, "COMMUNITY//1/NVIDIA GeForce RTX 4090");
	assert_int_equal(p.result.offers[2].price_microusd_h, 340000 + DISK_40);
	played_free(&p);
	section_add_item(runpod_conf, "datacenters", "US-KS-2", "test");
	p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, CATALOG});
	check_done("a data centre", &p);
	assert_int_equal(p.result.offer_count, 1);
	assert_string_equal(p.result.offers[0].region, "US-KS-2");
	played_free(&p);
	section_clear_items(runpod_conf, "datacenters");
	section_add_item(runpod_conf, "datacenters", "US-KS-22", "test");
	p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, CATALOG});
	check_failed("no such data centre", &p, ERR_NO_CAPACITY);
	assert_string_equal(p.err.msg,
			    "no RTX 4090 is available at RunPod now in the data centres of "
			    "providers.runpod.datacenters (there is some in EU-RO-1, US-KS-2)");
	played_free(&p);
}

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
	section_set_int(runpod_conf, "bid", 150000, "test");
	p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {200, FLOORS});
	assert_int_equal(p.result.offer_count, 2); /* below the floor: none */
	played_free(&p);
	p = PLAY(OP_OFFERS, &want, {200, CATALOG}, {410, "gone"});
	check_done("GraphQL is gone", &p);
	assert_int_equal(p.result.offer_count, 2);
	played_free(&p);
}

/* The catalog hides no host from an image that could run there, and a create asks for the same
 * floor. */
static void the_image_and_the_job_decide_the_floor(void **state)
{
	static const struct {
		const char *conf, *wanted, *floor, *needed;
	} cases[] = {
		{NULL, NULL, "&minCudaVersion=12.8"},
		{NULL, RUNPOD_IMAGE, "&minCudaVersion=12.8"},
		{NULL, "me/mine:1", ""},
		{"me/mine:1", NULL, ""},
		{"me/mine:1", RUNPOD_IMAGE, "&minCudaVersion=12.8"},
		{"me/mine:1", NULL, "&minCudaVersion=12.4", "12.4"},
		{NULL, NULL, "&minCudaVersion=12.8", "12.4"},
		{NULL, NULL, "&minCudaVersion=13.0", "13.0"},
		{NULL, "me/mine:1", "", ""},
	};
	static const char *const gpus[] = {"RTX 4090", NULL};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(free_text)
		char *url = xasprintf(CATALOG_URL "&count=1&cloud=SECURE%s", cases[i].floor);
		struct op_want want = wanting(gpus), rent = a_rent();
		section_set_text(runpod_conf, "image", cases[i].conf ? cases[i].conf : RUNPOD_IMAGE,
				 "test");
		want.offers.image = rent.rent.image = cases[i].wanted;
		want.least_cuda = rent.least_cuda = cases[i].needed;
		struct played p = PLAY(OP_OFFERS, &want, {200, CATALOG});
		check_done("offers", &p);
		check_call(&p, 0, "GET", url);
		played_free(&p);
		p = PLAY(OP_RENT, &rent, {201, "{\"id\":\"p1\"}"});
		CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
		const char *floor = strchr(cases[i].floor, '=');
		assert_string_equal(jsonx_text(json_object_get(body, "gpu"), "minCudaVersion", ""),
				    floor ? floor + 1 : "");
		played_free(&p);
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(offers_are_read),
		T(the_least_that_is_wanted),
		T(names_are_taken_as_people_write_them),
		T(what_cannot_be_offered_says_why),
		T(what_is_passed_over_is_said),
		T(clouds_and_datacenters_narrow_it),
		T(spot_is_a_tenth_above_the_floor),
		T(the_image_and_the_job_decide_the_floor),
		T(a_price_pays_for_the_disk),
	};

	return cmocka_run_group_tests_name("runpod offers", tests, NULL, NULL);
}
