/* test_runpod_volume.c - volumes: found, made where pods can be, listed and removed. */
#include "runpod_play.h"

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
	section_add_item(runpod_conf, "datacenters", "US-KS-2", "test");
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
	section_add_item(runpod_conf, "datacenters", "US-GA-1", "test");
	p = PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, CENTRES},
		 {201, VOLUME("v9", "cache", "US-GA-1")}, {500});
	assert_non_null(strstr(str_text(&p.call[2].body), "US-GA-1"));
	played_free(&p);
	section_clear_items(runpod_conf, "datacenters");
	section_add_item(runpod_conf, "datacenters", "AP-JP-1", "test");
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
		const char *spare;            /* what people are told of the other one */
		int removed;                  /* status of the DELETE of ours; 0: none */
	} cases[] = {
		{"theirs comes first",
		 VOLUMES(VOLUME("v9", "cache", "EU-RO-1") "," VOLUME("v2", "cache", "EU-RO-1")),
		 "v2", "removing ours, v9", 204},
		{"theirs comes first, and ours cannot be removed",
		 VOLUMES(VOLUME("v9", "cache", "EU-RO-1") "," VOLUME("v2", "cache", "EU-RO-1")),
		 "v2", "remove it: `burst volume rm v9`", 500},
		{"ours comes first",
		 VOLUMES(VOLUME("w1", "cache", "EU-RO-1") "," VOLUME("v9", "cache", "EU-RO-1")),
		 "v9", "`burst volume rm w1`"},
		{"ours is not listed yet", VOLUMES(VOLUME("v2", "cache", "EU-RO-1")), "v2",
		 "removing ours, v9", 204},
		{"another name", VOLUMES(VOLUME("v2", "other", "EU-RO-1")), "v9"},
		{"theirs comes first, elsewhere", VOLUMES(VOLUME("v2", "cache", "US-KS-2")), "v2",
		 "using v2 in US-KS-2, removing ours, v9", 204},
		{"ours comes first, theirs is elsewhere: people must say which",
		 VOLUMES(VOLUME("w1", "cache", "US-KS-2")), NULL},
	};
	struct op_want want = a_volume(true);
	struct str told = STR_INIT;

	(void)state;
	log_setup(LOG_NOTE, keep_line, &told);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		str_reset(&told);
		struct played p =
			PLAY(OP_VOLUME, &want, {200, VOLUMES("")}, {200, CENTRES},
			     {201, VOLUME("v9", "cache", "EU-RO-1")}, {200, cases[i].list},
			     {cases[i].removed ? cases[i].removed : 204, ""});
		assert_int_equal(p.calls == 5, cases[i].removed != 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_volume_is_found_by_name),
		T(a_volume_is_made_near_the_gpus),
		T(a_volume_is_made_where_pods_can_be),
		T(offers_for_a_volume_to_come),
		T(a_volume_is_made_near_cpu_pods),
		T(a_volume_that_another_machine_made_too),
		T(a_lost_volume_is_looked_for_never_made_twice),
		T(volumes_are_listed_and_removed),
		T(a_volume_on_a_later_page_is_found),
	};

	return cmocka_run_group_tests_name("runpod volume", tests, NULL, NULL);
}
