/* test_modal_rent.c - a sandbox is created: app, secret, what is refused. */
#include "modal_play.h"

#define BUILDER                                                                                    \
	{                                                                                          \
		"EnvironmentGetOrCreate", 0, &an_environment, NULL                                 \
	}

static void test_rent(void **state)
{
	(void)state;
	const struct answer answers[] = {TOKEN, APP,    BUILDER,
					 IMAGE, SECRET, {"SandboxCreate", 0, &created, NULL}};
	struct op_want want = renting();
	struct played p = modal_play(OP_RENT, &want, answers, 6);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 1);
	const struct pod_view *pod = &p.result.pods[0];
	assert_string_equal(pod->id, "sb-1");
	assert_string_equal(pod->name, "burst-00112233");
	assert_string_equal(pod->marker.attempt, "00112233");
	assert_int_equal(pod->state, POD_STATE_QUEUED);
	assert_int_equal(pod->price_microusd_h, 3900000);
	UNPACKED(AppGetOrCreateRequest, a, &p.call[1], app_get_or_create_request);
	assert_string_equal(a->app_name, "burst");
	assert_int_equal(a->object_creation_type, 1);
	UNPACKED(ImageGetOrCreateRequest, i, &p.call[3], image_get_or_create_request);
	assert_string_equal(i->app_id, "ap-1");
	assert_string_equal(i->builder_version, "2025.06");
	assert_string_equal(i->image->dockerfile_commands[0], "FROM " MODAL_IMAGE);
	UNPACKED(SecretGetOrCreateRequest, s, &p.call[4], secret_get_or_create_request);
	assert_int_equal(s->object_creation_type, 5);
	assert_int_equal(s->n_env_dict, 4);
	assert_string_equal(s->env_dict[2]->key, "BURST_HIDE");
	assert_string_equal(s->env_dict[3]->key, "BURST_SYNC_CMD");
	assert_string_equal(s->env_dict[3]->value, "sync");
	assert_string_equal(s->env_dict[1]->key, "BURST_HOST_KEY_B64");
	assert_string_equal(s->env_dict[1]->value, "a2V5");
	UNPACKED(SandboxCreateRequest, c, &p.call[5], sandbox_create_request);
	const Modal__Client__Sandbox *d = c->definition;
	assert_string_equal(c->app_id, "ap-1");
	assert_int_equal(d->n_entrypoint_args, 3);
	assert_string_equal(d->entrypoint_args[2], "echo 'hello'");
	assert_string_equal(d->image_id, "im-1");
	assert_string_equal(d->secret_ids[0], "st-1");
	assert_int_equal(d->resources->milli_cpu, 4000);
	assert_int_equal(d->resources->milli_cpu_max, 4000);
	assert_int_equal(d->resources->memory_mb, 16384);
	assert_int_equal(d->resources->memory_mb_max, 16384);
	assert_int_equal(d->resources->gpu_config->count, 2);
	assert_string_equal(d->resources->gpu_config->gpu_type, "L40S");
	assert_in_range(d->timeout_secs, 3600 + 110, 3600 + 121);
	assert_string_equal(d->volume_mounts[0]->volume_id, "vo-1");
	assert_string_equal(d->volume_mounts[0]->mount_path, "/workspace");
	assert_true(d->volume_mounts[0]->allow_background_commits);
	assert_int_equal(d->open_ports->ports[0]->port, 22);
	assert_true(d->open_ports->ports[0]->unencrypted);
	assert_int_equal(d->network_access->network_access_type, 1);
	assert_null(d->scheduler_placement);
	assert_string_equal(d->name, "burst-00112233");
	assert_false(d->has_idle_timeout_secs);
	assert_int_equal(c->n_tags, 5);
	for (int n = 0; n < 6; n++)
		assert_int_equal(p.call[n].may_repeat, n != 5);
	assert_int_equal(p.call[5].class, CALL_CREATE);
	modal_played_free(&p);

	/* what is known is not asked again; no GPU, no volume, a region */
	want.rent.volume.id[0] = '\0';
	COPY_TEXT(want.rent.offer.id, "CPU");
	COPY_TEXT(want.rent.offer.region, "us-east");
	want.rent.cpu = 2;
	want.rent.memory_gb = 5;
	want.rent.marker.hard_end_s = clock_wall_ms() / 1000 + 90 * 3600;
	p = modal_play(OP_RENT, &want,
		       (const struct answer[]){IMAGE, SECRET, {"SandboxCreate", 0, &created, NULL}},
		       3);
	UNPACKED(SandboxCreateRequest, c2, &p.call[2], sandbox_create_request);
	assert_non_null(c2->definition->resources->gpu_config);
	assert_false(c2->definition->resources->gpu_config->has_count);
	assert_int_equal(c2->definition->n_volume_mounts, 0);
	assert_int_equal(c2->definition->resources->milli_cpu, 2000);
	assert_int_equal(c2->definition->resources->milli_cpu_max, 2000);
	assert_int_equal(c2->definition->resources->memory_mb, 5120);
	assert_int_equal(c2->definition->resources->memory_mb_max, 5120);
	assert_int_equal(c2->definition->timeout_secs, 86400);
	assert_string_equal(c2->definition->scheduler_placement->regions[0], "us-east");
	modal_played_free(&p);
}

static const struct {
	const char *name;
	struct answer last; /* of SandboxCreate, or of what comes before it */
	enum err_kind kind;
} failed_rents[] = {
	{"lost", {"SandboxCreate", -1, NULL, NULL}, ERR_AMBIGUOUS},
	{"never sent", {"SandboxCreate", -2, NULL, NULL}, ERR_NETWORK},
	{"UNAVAILABLE", {"SandboxCreate", 14, NULL, NULL}, ERR_AMBIGUOUS},
	{"INTERNAL", {"SandboxCreate", 13, NULL, NULL}, ERR_AMBIGUOUS},
	{"the name is in use: by our own earlier try",
	 {"SandboxCreate", 6, NULL, NULL},
	 ERR_AMBIGUOUS},
	{"too many a second",
	 {"SandboxCreate", 8, NULL, "Sandbox creation rate limit (5/s) exceeded"},
	 ERR_RATE_LIMITED},
	{"no GPU", {"SandboxCreate", 8, NULL, "no capacity for L40S"}, ERR_NO_CAPACITY},
	{"wrong", {"SandboxCreate", 3, NULL, NULL}, ERR_REFUSED},
	{"not ours any more", {"SandboxCreate", 16, NULL, NULL}, ERR_CREDENTIALS},
	{"no image, where an earlier try may have made it",
	 {"SandboxCreate", 5, NULL, "again: Image not found."},
	 ERR_AMBIGUOUS},
	{"no GPU, where an earlier try may have had one",
	 {"SandboxCreate", 8, NULL, "again: no capacity for L40S"},
	 ERR_AMBIGUOUS},
	{"an answer without an id", {"SandboxCreate", 0, NULL, NULL}, ERR_AMBIGUOUS},
	{"an answer that is none", {"SandboxCreate", 0, NULL, "\xff\xff\xff"}, ERR_AMBIGUOUS},
	{"the secret lost", {"SecretGetOrCreate", -1, NULL, NULL}, ERR_NETWORK},
	{"the secret UNAVAILABLE", {"SecretGetOrCreate", 14, NULL, NULL}, ERR_TRANSIENT},
	{"the secret without an id", {"SecretGetOrCreate", 0, NULL, NULL}, ERR_TRANSIENT},
};

static void test_rent_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failed_rents); i++) {
		struct op_want want = renting();
		COPY_TEXT(modal_provider->app_id, "ap-1");
		COPY_TEXT(modal_provider->builder_version, "2025.06");
		modal_token_take(&modal_provider->token, "token-one");
		bool at_secret = !strcmp(failed_rents[i].last.method, "SecretGetOrCreate");
		struct answer answers[] = {
			IMAGE, SECRET, failed_rents[i].last, {"AuthTokenGet", 16, NULL, NULL}};
		if (at_secret)
			answers[1] = failed_rents[i].last;
		struct played p =
			modal_play(OP_RENT, &want, answers,
				   (at_secret ? 2 : 3) + (failed_rents[i].last.code == 16));
		if (p.last != OP_FAILED || p.err.kind != failed_rents[i].kind)
			fail_msg("%s: %d, kind %d: %s", failed_rents[i].name, p.last, p.err.kind,
				 p.err.msg);
		modal_played_free(&p);
	}
	/* a token that cannot be had makes nothing ambiguous, even right before the create */
	struct op_want want = renting();
	modal_token_free(&modal_provider->token);
	struct played p = modal_play(OP_RENT, &want,
				     (const struct answer[]){{"AuthTokenGet", -1, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	modal_played_free(&p);
	/* offers that are none */
	modal_token_take(&modal_provider->token, "token-one");
	static const char *const none[] = {"",        ":2",     "L40S:0",  "L40S:9",
					   "L40S:99", "L40S:x", "L40S:2x", "L40S:"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		COPY_TEXT(want.rent.offer.id, none[i]);
		p = modal_play(OP_RENT, &want, NULL, 0);
		assert_int_equal(p.err.kind, ERR_BUG);
		modal_played_free(&p);
	}
}

static void test_refusals_say_what_to_do(void **state)
{
	static const struct {
		int code;
		const char *words, *hint;
		enum err_kind kind;
	} cases[] = {
		{9, "Old client", "trying again, or another size of pod, does not help",
		 ERR_REFUSED},
		{10, "conflict", "Modal carried out something else at that moment", ERR_AMBIGUOUS},
		{8, "Workspace spend limit reached", "see Usage and Billing", ERR_BALANCE},
		{8, "workspace billing cycle spend limit reached", "see Usage and Billing",
		 ERR_BALANCE},
		{8, "Workspace ac-1 has exceeded its spend limit", "see Usage and Billing",
		 ERR_BALANCE},
		{9, "Please add a payment method", "see Usage and Billing", ERR_BALANCE},
		{5, "Environment budget exceeded", "see Usage and Billing", ERR_BALANCE},
		{7, "Credits are used up", "see Usage and Billing", ERR_BALANCE},
		{3, "Invalid mount path '/budget-exceeded'", "budget", ERR_REFUSED},
		{14, "billing: connection limit reached", "billing", ERR_AMBIGUOUS},
		{8, "no L40S left", "no L40S left", ERR_NO_CAPACITY},
		{8, "Workspace GPU limit reached", "GPU limit", ERR_NO_CAPACITY},
		{8, "rate limit (5/s)", "rate limit (5/s)", ERR_RATE_LIMITED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = renting();
		COPY_TEXT(modal_provider->app_id, "ap-1");
		COPY_TEXT(modal_provider->builder_version, "2025.06");
		modal_token_take(&modal_provider->token, "token-one");
		struct answer answers[] = {
			IMAGE, SECRET, {"SandboxCreate", cases[i].code, NULL, cases[i].words}};
		struct played p = modal_play(OP_RENT, &want, answers, 3);
		if (p.err.kind != cases[i].kind || !strstr(p.err.msg, cases[i].hint) ||
		    strstr(p.err.msg, "memory"))
			fail_msg("%s: kind %d: %s", cases[i].words, p.err.kind, p.err.msg);
		modal_played_free(&p);
	}
}

/* Modal gives a better GPU than was asked for without a word. */
static void test_gpu_really_got(void **state)
{
	(void)state;
	lists_alone();
	Modal__Client__GPUConfig asked = {.base = MESSAGE(gpuconfig), .gpu_type = (char *)"H100"};
	Modal__Client__TaskInfo task = {.base = MESSAGE(task_info), .gpu_config = &asked};
	Modal__Client__SandboxInfo one = row("sb-1", 150, 5, &task), *rows[] = {&one};
	Modal__Client__SandboxListResponse page = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = rows};
	static const struct {
		const char *type, *want;
	} cases[] = {{"H200", "H200 SXM"},
		     {"H100", "H100 SXM"},
		     {NULL, "H100 SXM"},
		     {"H500-NEW", "H500-NEW"}};

	modal_token_take(&modal_provider->token, "token-one");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		task.gpu_type = (char *)cases[i].type;
		struct played p = modal_play(
			OP_LIST, NULL,
			(const struct answer[]){
				LIST(&page), {"SandboxListV2", 0, NULL, NULL}, TASK(NULL)},
			3);
		assert_string_equal(p.result.pods[0].gpu, cases[i].want);
		modal_played_free(&p);
	}
}

static void test_release(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1"};
	static const struct {
		int code;
		enum op_next last;
		enum err_kind kind;
	} cases[] = {{0, OP_DONE, 0},
		     {5, OP_DONE, 0},
		     {14, OP_FAILED, ERR_TRANSIENT},
		     {16, OP_FAILED, ERR_CREDENTIALS},
		     {-1, OP_FAILED, ERR_NETWORK}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		modal_token_take(&modal_provider->token, "token-one");
		const struct answer answers[] = {{"SandboxTerminate", cases[i].code, NULL, NULL},
						 {"AuthTokenGet", 16, NULL, NULL}};
		struct played p = modal_play(OP_RELEASE, &want, answers, 1 + (cases[i].code == 16));
		assert_int_equal(p.last, cases[i].last);
		assert_int_equal(p.err.kind, cases[i].kind);
		assert_int_equal(p.result.release,
				 cases[i].code == 5 ? RELEASE_ABSENT : RELEASE_TAKEN);
		assert_int_equal(p.call[0].class, CALL_RELEASE);
		assert_true(p.call[0].may_repeat);
		modal_played_free(&p);
	}
}

static const struct offer *offer_of(const struct played *p, const char *id)
{
	for (size_t i = 0; i < p->result.offer_count; i++)
		if (!strcmp(p->result.offers[i].id, id))
			return &p->result.offers[i];
	return NULL;
}

static void test_offers(void **state)
{
	(void)state;
	static Modal__Client__TextEntry rates[] = {
		{.base = MESSAGE(text_entry), .key = (char *)"gpu_l4", .value = (char *)"0.80"},
		{.base = MESSAGE(text_entry), .key = (char *)"gpu_l40s", .value = (char *)"1.95"},
		{.base = MESSAGE(text_entry),
		 .key = (char *)"GPU A100 80GB",
		 .value = (char *)"2.50"},
		{.base = MESSAGE(text_entry),
		 .key = (char *)"gpu_a100_40gb",
		 .value = (char *)"2.10"},
		{.base = MESSAGE(text_entry), .key = (char *)"gpu_h100", .value = (char *)"lots"},
		{.base = MESSAGE(text_entry), .key = (char *)"cpu", .value = (char *)"0.05"},
		{.base = MESSAGE(text_entry),
		 .key = (char *)"sandbox-cpu",
		 .value = (char *)"0.25"},
	};
	Modal__Client__TextEntry *list[ARRAY_LEN(rates)];
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		list[i] = &rates[i];
	Modal__Client__WorkspaceBillingRatesResponse said = {
		.base = MESSAGE(workspace_billing_rates_response),
		.n_rates = ARRAY_LEN(rates),
		.rates = list};
	const struct answer rated_offers[] = {{"WorkspaceBillingRates", 0, &said, NULL}},
			    hidden[] = {{"WorkspaceBillingRates", 7, NULL, "no"}};
	const int64_t rest = 4 * 250000 + 16 * 30000;
	static const char *const wishes[] = {"L40S", "A100", "RTX 4090", "L4:2",
					     "H100", "none", NULL},
				 *h100[] = {"H100", NULL}, *rtx[] = {"RTX 4090", NULL},
				 *misspelt[] = {"H10O", "5900", NULL},
				 *small[] = {"L4", "5090", NULL},
				 *one_wrong[] = {"H10O", "5090", "L4", NULL},
				 *many[] = {"L40S:9", NULL}, *cpu_alone[] = {"none", NULL};
	struct op_want want = {.offers = {.gpus = wishes}};

	modal_token_take(&modal_provider->token, "token-one");
	struct played p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.offer_count, 5);
	assert_int_equal(offer_of(&p, "L40S")->price_microusd_h, 1950000 + rest);
	assert_int_equal(offer_of(&p, "L40S")->wish, 0);
	assert_int_equal(offer_of(&p, "A100-80GB")->price_microusd_h, 2500000 + rest);
	assert_int_equal(offer_of(&p, "A100-40GB")->wish, 1);
	assert_int_equal(offer_of(&p, "L4:2")->price_microusd_h, 1600000 + rest);
	assert_int_equal(offer_of(&p, "L4:2")->gpus, 2);
	assert_int_equal(offer_of(&p, "CPU")->price_microusd_h, rest);
	assert_string_equal(offer_of(&p, "CPU")->gpu, "none");
	modal_played_free(&p);
	want.offers.vram_gb = 48;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_null(offer_of(&p, "L4:2"));
	assert_null(offer_of(&p, "A100-40GB"));
	assert_non_null(offer_of(&p, "A100-80GB"));
	assert_null(offer_of(&p, "CPU"));
	modal_played_free(&p);
	want.offers.vram_gb = 0;
	want.offers.gpus = NULL;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.result.offer_count, 4);
	modal_played_free(&p);
	/* what the job asks for is what is paid for */
	want.offers.cpu = 8;
	want.offers.memory_gb = 64;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(offer_of(&p, "L40S")->price_microusd_h, 1950000 + 8 * 250000 + 64 * 30000);
	modal_played_free(&p);
	want.offers.cpu = want.offers.memory_gb = 0;
	/* cores and memory as they are wanted, with any GPU and with none; a disk costs nothing */
	want.offers.gpus = wishes;
	want.offers.cpu = 1;
	want.offers.memory_gb = 3;
	want.offers.disk_gb = 500;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(offer_of(&p, "L4:2")->price_microusd_h, 1600000 + 250000 + 3 * 30000);
	assert_int_equal(offer_of(&p, "CPU")->price_microusd_h, 250000 + 3 * 30000);
	modal_played_free(&p);
	want.offers.cpu = 257;
	p = modal_play(OP_OFFERS, &want, NULL, 0);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_string_equal(p.err.msg, "no sandbox of Modal's has 257 cores: lower pod.cpu");
	modal_played_free(&p);
	want.offers.cpu = want.offers.disk_gb = 0;
	want.offers.memory_gb = 4097;
	p = modal_play(OP_OFFERS, &want, NULL, 0);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	modal_played_free(&p);
	want.offers.memory_gb = 0;
	/* no price: said, with what to do; GPUs that Modal has not, now or later: the config is
	 * wrong */
	want.offers.gpus = h100;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "what H100 costs"));
	assert_non_null(strstr(p.err.msg, "providers.modal.gpu_prices"));
	modal_played_free(&p);
	want.offers.gpus = rtx;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_string_equal(p.err.msg, "Modal has no GPU called \"RTX 4090\"");
	modal_played_free(&p);
	want.offers.gpus = misspelt;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_string_equal(p.err.msg,
			    "Modal has no GPU called \"H10O\", \"5900\"; did you mean \"H100\"?");
	modal_played_free(&p);
	want.offers.gpus = one_wrong;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.result.offer_count, 1);
	assert_string_equal(str_text(&p.result.text),
			    "Modal has no GPU called \"H10O\"; did you mean \"H100\"?\n");
	modal_played_free(&p);
	want.offers.gpus = small;
	want.offers.vram_gb = 48;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_non_null(strstr(p.err.msg, "none of these with the 48 GB that this job needs"));
	modal_played_free(&p);
	want.offers.vram_gb = 0;
	want.offers.gpus = many;
	p = modal_play(OP_OFFERS, &want, rated_offers, 1);
	assert_string_equal(p.err.msg,
			    "gpu = [\"L40S:9\"]: no sandbox of Modal's has so many (8 at most)");
	modal_played_free(&p);
	/* where they may not be seen, its list prices do, and that is said; a GPU that the list
	 * lacks has none */
	want.offers.gpus = h100;
	p = modal_play(OP_OFFERS, &want, hidden, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(offer_of(&p, "H100")->price_microusd_h, 3949200 + 4 * 150000 + 16 * 30000);
	assert_non_null(strstr(str_text(&p.result.text),
			       "using its list prices of 2026-09-01 (H100 $3.95 an hour)"));
	modal_played_free(&p);
	want.offers.gpus = cpu_alone;
	p = modal_play(OP_OFFERS, &want, hidden, 1);
	assert_int_equal(p.result.offer_count, 1);
	assert_string_equal(str_text(&p.result.text), "");
	modal_played_free(&p);
	/* prices of one's own go before Modal's, and do where those may not be seen */
	section_add_item(modal_conf, "gpu_prices", "H100=3.95", "t");
	want.offers.gpus = h100;
	p = modal_play(OP_OFFERS, &want, hidden, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(offer_of(&p, "H100")->price_microusd_h, 3950000 + 4 * 150000 + 16 * 30000);
	assert_string_equal(str_text(&p.result.text), "");
	modal_played_free(&p);
	p = modal_play(OP_OFFERS, &want,
		       (const struct answer[]){{"WorkspaceBillingRates", 16, NULL, NULL},
					       {"AuthTokenGet", 16, NULL, NULL}},
		       2);
	assert_int_equal(p.err.kind, ERR_CREDENTIALS);
	modal_played_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rent, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_rent_fails, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_refusals_say_what_to_do, modal_set_up,
						modal_tear_down),
		cmocka_unit_test_setup_teardown(test_gpu_really_got, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_release, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_offers, modal_set_up, modal_tear_down),
	};

	return cmocka_run_group_tests_name("modal rent", tests, NULL, NULL);
}
