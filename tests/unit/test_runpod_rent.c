/* test_runpod_rent.c - a pod is created: what is sent, and the kind of each failure. */
#include "runpod_play.h"

#include <sys/mount.h>

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
	section_set_bool(runpod_conf, "placement_filters", true, "test");
	want.rent.memory_gb = 32;
	struct played p = PLAY(OP_RENT, &want, {201, CREATED});
	check_done("filters", &p);
	assert_non_null(strstr(str_text(&p.call[0].body), "\"minRamPerGpu\":16"));
	played_free(&p);
}

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
	section_add_item(runpod_conf, "registry", "ghcr.io/acme=cred1", "t:4");
	section_add_item(runpod_conf, "registry", "acme/=cred2", "t:4");
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

/* All known versions from the least one on; a newer one than burst knows stays a bound. */
static void a_spot_pod_has_the_cuda_that_is_needed(void **state)
{
	static const struct {
		const char *needed, *first;
		size_t count;
	} cases[] = {{"12.4", "12.8", 12}, {"13.0", "13.0", 10}, {"14.2", "14.2", 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = a_rent();
		want.rent.offer.spot = true;
		want.least_cuda = cases[i].needed;
		struct played p = PLAY(OP_RENT, &want, {200, "{\"data\":{}}"});
		CLEANUP(json_decref) json_t *body = body_of(&p.call[0]);
		const json_t *input = json_object_get(json_object_get(body, "variables"), "input");
		const json_t *list = json_object_get(input, "allowedCudaVersions");
		assert_string_equal(json_string_value(json_array_get(list, 0)), cases[i].first);
		assert_int_equal(json_array_size(list), cases[i].count);
		played_free(&p);
	}
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
	struct played p = runpod_play(OP_RENT, &want, NULL, 0);
	check_failed("a volume in COMMUNITY", &p, ERR_CONFIG);
	COPY_TEXT(want.rent.offer.id, "SECURE/US-KS-2/1/NVIDIA L4");
	p = runpod_play(OP_RENT, &want, NULL, 0);
	check_failed("a volume elsewhere", &p, ERR_NO_CAPACITY);
	COPY_TEXT(want.rent.offer.id, "SECURE/US-KS-2/0/NVIDIA L4");
	p = runpod_play(OP_RENT, &want, NULL, 0);
	check_failed("not our offer", &p, ERR_BUG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_create_says_all_that_it_must),
		T(a_plain_create_names_no_more_than_it_must),
		T(filters_that_the_server_does_not_know_are_left_out),
		T(every_failure_has_its_kind),
		T(a_spot_pod_is_refused_by_http),
		T(a_credential_is_for_its_own_images),
		T(a_429_waits_for_every_window),
		T(a_spot_pod_is_bid_for),
		T(a_spot_pod_has_the_cuda_that_is_needed),
		T(a_volume_pins_the_create),
	};

	return cmocka_run_group_tests_name("runpod rent", tests, NULL, NULL);
}
