/* test_vast_offers.c - what is searched for, what is offered, and what is refused before that. */
#include "vast_play.h"

#define ASK(id, gpu, more)                                                                         \
	"{\"id\":" id ",\"gpu_name\":\"" gpu "\",\"gpu_ram\":24564,\"num_gpus\":1,"                \
	"\"dph_base\":0.4,\"dph_total\":0.41,\"min_bid\":0.2,\"storage_cost\":0.18,"               \
	"\"inet_up_cost\":0.01,\"inet_down_cost\":0.005,\"geolocation\":\"Somewhere, SE\","        \
	"\"cpu_cores_effective\":16,\"cpu_ram\":64000,\"rentable\":true,"                          \
	"\"end_date\":1900000000.5" more "}"
#define OFFERS(list) "{\"offers\":[" list "]}"

static const char *const some[] = {"RTX 4090", "L40S:2", "A100", NULL};

static void a_search_says_what_is_wanted(void **state)
{
	struct op_want want = {.offers = {.gpus = some, .cpu = 8, .memory_gb = 32, .disk_gb = 100}};

	(void)state;
	section_add_item(vast_conf, "countries", "DE", "test");
	struct played p = PLAY(OP_OFFERS, &want, {200, OFFERS(ASK("7000001", "RTX 4090", ""))});
	check_done("search", &p);
	check_call(&p, 0, "POST", ROOT "/v0/bundles/");
	CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
	CLEANUP(json_decref)
	json_t *expected = json_loads(
		"{\"type\":\"on-demand\",\"limit\":500,\"order\":[[\"dph_total\",\"asc\"]],"
		"\"allocated_storage\":100,\"gpu_name\":{\"in\":[\"RTX 4090\",\"L40S\","
		"\"A100 SXM4\",\"A100 PCIE\"]},\"num_gpus\":{\"in\":[1,2,1]},"
		"\"verified\":{\"eq\":true},\"rentable\":{\"eq\":true},"
		"\"reliability\":{\"gte\":0.98},\"direct_port_count\":{\"gte\":1},"
		"\"disk_space\":{\"gte\":100},\"inet_down\":{\"gte\":200},"
		"\"inet_up\":{\"gte\":200},\"cuda_max_good\":{\"gte\":12.8},"
		"\"cpu_cores_effective\":{\"gte\":8},\"cpu_ram\":{\"gte\":32000},"
		"\"geolocation\":{\"in\":[\"DE\"]}}",
		0, NULL);
	if (!json_equal(body, expected))
		fail_msg("%s", str_text(&p.call[0].body));
	played_free(&p);
}

/* The newer one of what the job and the image need; min_cuda replaces the image's. */
static void a_host_has_the_cuda_that_is_needed(void **state)
{
	static const struct {
		const char *set, *image, *needed;
		double want; /* 0: any host will do */
	} cases[] = {
		{NULL, NULL, "13.0", 13.0},     {NULL, NULL, "12.4", 12.8},
		{NULL, "me/x:1", "12.4", 12.4}, {"none", NULL, "12.4", 12.4},
		{"none", NULL, NULL, 0},        {"12.6", NULL, "12.4", 12.6},
		{NULL, "me/x:1", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = {.offers = {.gpus = some, .image = cases[i].image},
				       .least_cuda = cases[i].needed};
		if (cases[i].set)
			section_set_text(vast_conf, "min_cuda", cases[i].set, "test");
		struct played p = PLAY(OP_OFFERS, &want, {200, OFFERS(ASK("1", "RTX 4090", ""))});
		CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
		double got = jsonx_number(json_object_get(body, "cuda_max_good"), "gte", 0);
		if (got != cases[i].want)
			fail_msg("%zu: %g", i, got);
		played_free(&p);
		section_unset(vast_conf, "min_cuda");
	}
}

static void an_offer_has_all_that_it_costs(void **state)
{
	struct op_want want = {.offers = {.gpus = some, .disk_gb = 100}};
	struct played p = PLAY(OP_OFFERS, &want, {200, OFFERS(ASK("7000001", "RTX 4090", ""))});

	(void)state;
	check_done("offers", &p);
	assert_int_equal(p.result.offer_count, 1);
	const struct offer *o = &p.result.offers[0];
	assert_string_equal(o->id, "7000001/0/1900000000");
	assert_string_equal(o->gpu, "RTX 4090");
	assert_string_equal(o->region, "SE");
	assert_string_equal(o->with, "16 cores, 64 GB, disk, traffic");
	assert_int_equal(o->vram_gb, 24);
	/* 0.4 for the machine, 100 GB x 0.18 / 720 h, 2 GB x 0.015 */
	assert_in_range(o->price_microusd_h, 455000, 455001);
	played_free(&p);
}

static void bids_are_offers_of_their_own(void **state)
{
	struct op_want want = {.offers = {.gpus = some, .spot = true}};
	const char *two = OFFERS(ASK("7000001", "RTX 4090", ""));

	(void)state;
	struct played p = PLAY(OP_OFFERS, &want, {200, two}, {200, two});
	check_done("bids", &p);
	assert_non_null(strstr(str_text(&p.call[1].body), "\"type\":\"bid\""));
	assert_int_equal(p.result.offer_count, 2);
	assert_false(p.result.offers[0].spot);
	assert_true(p.result.offers[1].spot);
	assert_string_equal(p.result.offers[1].id, "7000001/220000/1900000000");
	played_free(&p);
	section_set_int(vast_conf, "bid", 100000, "test"); /* below the least bid */
	p = PLAY(OP_OFFERS, &want, {200, two}, {200, two});
	check_done("too low a bid", &p);
	assert_int_equal(p.result.offer_count, 1);
	played_free(&p);
}

static const struct {
	const char *name, *list;
	int vram_gb;
	enum err_kind kind;
	const char *says;
} without[] = {
	{"nothing", "", 0, ERR_NO_CAPACITY, "no RTX 4090, L40S:2, A100 is available at Vast.ai"},
	{"another GPU", ASK("1", "RTX 3090", ""), 0, ERR_NO_CAPACITY, ""},
	{"more of them", ASK("1", "RTX 4090", ",\"num_gpus\":2"), 0, ERR_NO_CAPACITY, ""},
	{"rented", ASK("1", "RTX 4090", ",\"rentable\":false"), 0, ERR_NO_CAPACITY, ""},
	{"no price", ASK("1", "RTX 4090", ",\"dph_base\":0,\"dph_total\":0"), 0, ERR_NO_CAPACITY,
	 ""},
	{"an absurd price", ASK("1", "RTX 4090", ",\"dph_base\":1e300"), 0, ERR_NO_CAPACITY, ""},
	{"no id", ASK("0", "RTX 4090", ""), 0, ERR_NO_CAPACITY, ""},
	{"too little memory", ASK("1", "RTX 4090", ""), 40, ERR_NO_CAPACITY, ""},
	{"no such memory in any", "", 100, ERR_CONFIG,
	 "this job needs a GPU with 100 GB of memory; those in gpu have 80 at most"},
	{"numbers as texts", "{\"id\":\"1\",\"gpu_name\":4090}", 0, ERR_NO_CAPACITY, ""},
	{"no objects", "1,null,[]", 0, ERR_NO_CAPACITY, ""},
};

static void without_offers_there_is_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(without); i++) {
		struct op_want want = {.offers = {.gpus = some, .vram_gb = without[i].vram_gb}};
		CLEANUP(free_text) char *text = xasprintf(OFFERS("%s"), without[i].list);
		CLEANUP(free_text) char *body = last_wins(text);
		struct played p = PLAY(OP_OFFERS, &want, {200, body});
		check_failed(without[i].name, &p, without[i].kind);
		if (!strstr(p.err.msg, without[i].says))
			fail_msg("%s: \"%s\"", without[i].name, p.err.msg);
		played_free(&p);
	}
}

static const struct {
	const char *vast;
	int mb;
	const char *name;
	int gb; /* as sold: drivers report a little less */
} names[] = {
	{"A100 SXM4", 81920, "A100 80GB SXM", 80},
	{"A100 SXM4", 40960, "A100 40GB", 40},
	{"A100 PCIE", 81920, "A100 80GB PCIe", 80},
	{"H100 SXM", 81559, "H100 SXM", 80},
	{"H100 PCIE", 81559, "H100 PCIe", 80},
	{"Tesla V100", 32768, "V100 32GB", 32},
	{"RTX 6000Ada", 49140, "RTX 6000 Ada", 48},
	{"RTX PRO 6000 WS", 97887, "RTX PRO 6000", 96},
	{"L40S", 46068, "L40S", 48},
	{"Tesla T4", 15360, "T4", 16},
	{"RTX 4070", 12282, "RTX 4070", 12},
};

static void names_are_the_catalogues(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct op_want want = {0};
		CLEANUP(free_text)
		char *text = xasprintf(OFFERS(ASK("1", "%s", ",\"gpu_ram\":%d")), names[i].vast,
				       names[i].mb);
		CLEANUP(free_text) char *body = last_wins(text);
		struct played p = PLAY(OP_OFFERS, &want, {200, body});
		check_done(names[i].vast, &p);
		assert_string_equal(p.result.offers[0].gpu, names[i].name);
		assert_int_equal(p.result.offers[0].vram_gb, names[i].gb);
		played_free(&p);
	}
}

static void each_card_of_the_catalogue_is_found_again(void **state)
{
	size_t count;
	const struct gpu *catalog = gpu_catalog(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const char *const wish[] = {catalog[i].name, NULL};
		struct op_want want = {.offers.gpus = wish};
		struct played p = PLAY(OP_OFFERS, &want, {200, OFFERS("")});
		CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
		const json_t *list = json_object_get(json_object_get(body, "gpu_name"), "in");
		char name[GPU_MAX];
		assert_true(json_array_size(list) >= 1);
		vast_set_gpu_name(name, json_string_value(json_array_get(list, 0)),
				  catalog[i].vram_gb);
		assert_string_equal(name, catalog[i].name);
		played_free(&p);
	}
}

static void wishes_that_can_never_be_met(void **state)
{
	static const char *const none[] = {"none", NULL}, *const bad[] = {"L40S:x", NULL},
				 *const mixed[] = {"L4", "none", NULL};
	static const char *const secrets[] = {"HF_TOKEN", NULL};
	struct op_want want = {.offers.gpus = none};

	(void)state;
	struct played p = PLAY(OP_OFFERS, &want, {-2});
	check_failed("no GPU", &p, ERR_CONFIG);
	played_free(&p);
	want.offers.gpus = bad;
	p = PLAY(OP_OFFERS, &want, {-2});
	check_failed("a bad name", &p, ERR_CONFIG);
	played_free(&p);
	want.offers.gpus = mixed;
	COPY_TEXT(want.offers.volume.name, "cache");
	p = PLAY(OP_OFFERS, &want, {-2});
	check_failed("a volume", &p, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "tied to one machine"));
	played_free(&p);
	want.offers.volume.name[0] = '\0';
	want.secrets = secrets;
	p = PLAY(OP_OFFERS, &want, {-2});
	check_failed("a secret", &p, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "HF_TOKEN"));
	assert_non_null(strstr(p.err.msg, "providers.vast.allow_secrets"));
	assert_int_equal(p.calls, 0);
	played_free(&p);
	section_set_bool(vast_conf, "allow_secrets", true, "test");
	p = PLAY(OP_OFFERS, &want, {200, OFFERS(ASK("1", "L4", ""))});
	check_done("an allowed secret", &p);
	played_free(&p);
}

static void a_config_that_cannot_work(void **state)
{
	static const struct {
		const char *key, *value;
	} wrong[] = {
		{"api_url", "http://example.com"}, {"min_cuda", "new"}, {"image", "../x"},
		{"countries", "Germany"},          {"countries", "de"}, {"registry", "ghcr.io/me"},
		{"registry", "ghcr.io/me=a;b"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct op_want want = {0};
		if (!strcmp(wrong[i].key, "countries") || !strcmp(wrong[i].key, "registry"))
			section_add_item(vast_conf, wrong[i].key, wrong[i].value, "burst.cfg:7");
		else
			section_set_text(vast_conf, wrong[i].key, wrong[i].value, "burst.cfg:7");
		struct played p = PLAY(OP_BALANCE, &want, {-2});
		check_failed(wrong[i].key, &p, ERR_CONFIG);
		assert_non_null(strstr(p.err.msg, "burst.cfg:7"));
		played_free(&p);
		section_unset(vast_conf, wrong[i].key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_search_says_what_is_wanted),
		T(a_host_has_the_cuda_that_is_needed),
		T(an_offer_has_all_that_it_costs),
		T(bids_are_offers_of_their_own),
		T(without_offers_there_is_a_reason),
		T(names_are_the_catalogues),
		T(each_card_of_the_catalogue_is_found_again),
		T(wishes_that_can_never_be_met),
		T(a_config_that_cannot_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
