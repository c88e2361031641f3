/* test_runpod_cpus.c - RunPod's pods without a GPU. */
#include "runpod_offers_bed.h"

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
	p = runpod_play(OP_OFFERS, &want, NULL, 0);
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
	section_set_text(runpod_conf, "cloud", "COMMUNITY", "burst.cfg:7");
	want = wanting(no_gpu);
	p = runpod_play(OP_OFFERS, &want, NULL, 0);
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
	section_set_bool(runpod_conf, "placement_filters", true, "test");
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
	struct played p = runpod_play(OP_RENT, &want, NULL, 0);
	check_failed("spot", &p, ERR_BUG);
	want.rent.offer.spot = false;
	COPY_TEXT(want.rent.offer.id, "COMMUNITY//2 vCPU/cpu3c");
	p = runpod_play(OP_RENT, &want, NULL, 0);
	check_failed("COMMUNITY", &p, ERR_BUG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(cpu_pods_are_offered),
		T(a_cpu_pod_is_as_large_as_it_must_be),
		T(a_cpu_pod_beside_gpus),
		T(a_cpu_pod_is_created),
	};

	return cmocka_run_group_tests_name("runpod offers", tests, NULL, NULL);
}
