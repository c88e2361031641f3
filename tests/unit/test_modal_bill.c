/* test_modal_bill.c - what a sandbox used and cost, by Modal's figures. */
#include "modal_play.h"

static Modal__Client__TextEntry some_rates[] = {
	{.base = MESSAGE(text_entry), .key = (char *)"GPU H100", .value = (char *)"3.96"},
	{.base = MESSAGE(text_entry), .key = (char *)"GPU H200", .value = (char *)"4.5396"},
	{.base = MESSAGE(text_entry), .key = (char *)"CPU", .value = (char *)"0.18"},
	{.base = MESSAGE(text_entry), .key = (char *)"Memory", .value = (char *)"0.036"},
};

static Modal__Client__TextEntry *rate_list[] = {&some_rates[0], &some_rates[1], &some_rates[2],
						&some_rates[3]};

static const Modal__Client__WorkspaceBillingRatesResponse rated = {
	.base = MESSAGE(workspace_billing_rates_response),
	.n_rates = ARRAY_LEN(rate_list),
	.rates = rate_list};

static const Modal__Client__SandboxGetTaskIdResponse had_task = {
	.base = MESSAGE(sandbox_get_task_id_response), .task_id = (char *)"ta-1"};

static Modal__Client__GPUConfig one_gpu = {
	.base = MESSAGE(gpuconfig), .has_count = true, .count = 1};

/* It ran for 100 s, long ago, from 01:59:10.25 on. */
static Modal__Client__TaskInfo task_times(void)
{
	return (Modal__Client__TaskInfo){.base = MESSAGE(task_info),
					 .has_started_at = true,
					 .started_at = 7150.25,
					 .has_finished_at = true,
					 .finished_at = 7250.25,
					 .gpu_config = &one_gpu};
}

/* A pod of 4 cores and 16 GB that was offered with an H100: 3.96 + 0.72 + 0.576 dollars an hour. */
enum { H100_POD = 5256000, H100_POD_100S = 146000 };

#define ASKED_TASK                                                                                 \
	{                                                                                          \
		"SandboxGetTaskId", 0, &had_task, NULL                                             \
	}
#define NO_USAGE                                                                                   \
	{                                                                                          \
		"SandboxGetResourceUsage", 12, NULL, NULL                                          \
	}
#define RATED                                                                                      \
	{                                                                                          \
		"WorkspaceBillingRates", 0, &rated, NULL                                           \
	}

static void test_billed_time(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1", .bill = {.price_microusd_h = H100_POD, .gpu = "H100"}};
	Modal__Client__TaskInfo times = task_times();
	Modal__Client__TaskGetInfoResponse over = {.base = MESSAGE(task_get_info_response),
						   .info = &times};
	Modal__Client__SandboxGetTaskIdResponse never = {
		.base = MESSAGE(sandbox_get_task_id_response), .task_result = &failure};

	modal_token_take(&modal_provider->token, "token-one");
	const struct answer told[] = {ASKED_TASK, {"TaskGetInfo", 0, &over, NULL}, NO_USAGE};
	struct played p = modal_play(OP_BILLING, &want, told, 3);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	assert_int_equal(p.result.billing.billed_ms, 100000);
	assert_true(p.result.billing.reported);
	assert_int_equal(p.result.billing.cost_microusd, 0); /* seconds alone */
	UNPACKED(TaskGetInfoRequest, asked, &p.call[1], task_get_info_request);
	assert_string_equal(asked->task_id, "ta-1");
	UNPACKED(SandboxGetResourceUsageRequest, of, &p.call[2],
		 sandbox_get_resource_usage_request);
	assert_string_equal(of->sandbox_id, "sb-1");
	modal_played_free(&p);
	/* it runs on; it has no machine; it never had one, or its container never began */
	times.has_finished_at = false;
	times.finished_at = 0;
	p = modal_play(OP_BILLING, &want, told, 2);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	modal_played_free(&p);
	p = modal_play(OP_BILLING, &want,
		       (const struct answer[]){{"SandboxGetTaskId", 0, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	modal_played_free(&p);
	p = modal_play(OP_BILLING, &want,
		       (const struct answer[]){{"SandboxGetTaskId", 0, &never, NULL}}, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_true(p.result.billing.reported && p.result.billing.billed_ms == 0);
	modal_played_free(&p);
	times.result = &failure;
	times.has_started_at = false;
	times.started_at = 0;
	p = modal_play(OP_BILLING, &want, told, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_true(p.result.billing.reported && p.result.billing.billed_ms == 0);
	modal_played_free(&p);
	/* what may be asked again is not taken for "no figure" */
	times = task_times();
	const struct answer hiccup[] = {ASKED_TASK,
					{"TaskGetInfo", 0, &over, NULL},
					{"SandboxGetResourceUsage", 14, NULL, NULL}};
	p = modal_play(OP_BILLING, &want, hiccup, 3);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	modal_played_free(&p);
}

static void test_billed_use(void **state)
{
	(void)state;
	static const struct {
		const char *name, *offered, *got;
		double core_s, gib_s, gpu_s;
		int64_t cost, beside;
	} cases[] = {
		{"what was asked for", "H100", "H100", 400, 1600, 100, 20000 + 16000 + 110000, 0},
		{"a better GPU at its price", "H100", "H200", 400, 1600, 100,
		 20000 + 16000 + 110000, 0},
		{"by whatever it had, where the ledger does not say", "", "H200", 400, 1600, 100,
		 20000 + 16000 + 126100, 16100},
		{"more memory than was asked for", "H100", "H100", 400, 3200, 100,
		 20000 + 32000 + 110000, 16000},
		{"a GPU for longer than it lived: nothing excuses that", "H100", "H100", 400, 1600,
		 200, 20000 + 16000 + 220000, 0},
		{"a part of it so far", "H100", "H100", 40, 160, 10, 2000 + 1600 + 11000, 0},
		{"no GPU", "none", "", 400, 1600, 0, 36000, 0},
		{"no rate for it", "B200", "B200", 400, 1600, 100, 0, 0},
		{"nothing was counted", "H100", "", 0, 0, 0, 0, 0},
		{"absurd", "H100", "H100", 1e10, 1e10, 1e10, 0, 0},
	};

	modal_token_take(&modal_provider->token, "token-one");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct op_want want = {.id = "sb-1", .bill = {.price_microusd_h = H100_POD}};
		Modal__Client__TaskInfo times = task_times();
		Modal__Client__TaskGetInfoResponse over = {.base = MESSAGE(task_get_info_response),
							   .info = &times};
		Modal__Client__SandboxGetResourceUsageResponse use = {
			.base = MESSAGE(sandbox_get_resource_usage_response),
			.has_cpu_core_nanosecs = true,
			.cpu_core_nanosecs = (uint64_t)(cases[i].core_s * 1e9),
			.has_mem_gib_nanosecs = true,
			.mem_gib_nanosecs = (uint64_t)(cases[i].gib_s * 1e9),
			.has_gpu_nanosecs = true,
			.gpu_nanosecs = (uint64_t)(cases[i].gpu_s * 1e9),
			.gpu_type = (char *)cases[i].got,
		};
		bool counted = cases[i].core_s > 0 && cases[i].core_s < 1e9;
		const struct answer told[] = {ASKED_TASK,
					      {"TaskGetInfo", 0, &over, NULL},
					      {"SandboxGetResourceUsage", 0, &use, NULL},
					      RATED};
		COPY_TEXT(want.bill.gpu, cases[i].offered);
		struct played p = modal_play(OP_BILLING, &want, told, counted ? 4 : 3);
		if (p.last != OP_DONE || p.result.billing.cost_microusd != cases[i].cost ||
		    p.result.billing.beside_microusd != cases[i].beside)
			fail_msg("%s: cost %lld, want %lld; beside %lld, want %lld", cases[i].name,
				 (long long)p.result.billing.cost_microusd,
				 (long long)cases[i].cost,
				 (long long)p.result.billing.beside_microusd,
				 (long long)cases[i].beside);
		assert_int_equal(p.result.billing.billed_ms, 100000);
		if (!strcmp(cases[i].offered, "B200"))
			assert_non_null(
				strstr(p.result.billing.note, "providers.modal.gpu_prices"));
		modal_played_free(&p);
	}
}

/* The config's prices stand over Modal's, whichever is higher; where Modal's may not be seen, its
 * defaults. */
static void test_billed_at_own_rates(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1", .bill = {.gpu = "H100"}};
	Modal__Client__TaskInfo times = task_times();
	Modal__Client__TaskGetInfoResponse over = {.base = MESSAGE(task_get_info_response),
						   .info = &times};
	Modal__Client__SandboxGetResourceUsageResponse use = {
		.base = MESSAGE(sandbox_get_resource_usage_response),
		.has_cpu_core_nanosecs = true,
		.cpu_core_nanosecs = 400000000000,
		.has_gpu_nanosecs = true,
		.gpu_nanosecs = 100000000000,
		.gpu_type = (char *)"H100"};
	const struct answer told[] = {ASKED_TASK,
				      {"TaskGetInfo", 0, &over, NULL},
				      {"SandboxGetResourceUsage", 0, &use, NULL},
				      RATED};
	const struct answer closed[] = {
		ASKED_TASK, told[1], told[2], {"WorkspaceBillingRates", 7, NULL, NULL}};

	modal_token_take(&modal_provider->token, "token-one");
	section_add_item(modal_conf, "gpu_prices", "H100=1.80", "t");
	struct played p = modal_play(OP_BILLING, &want, closed, 4);
	/* 0.15 an hour of a core */
	assert_int_equal(p.result.billing.cost_microusd, 50000 + 16667);
	modal_played_free(&p);
	p = modal_play(OP_BILLING, &want, told, 4);
	assert_int_equal(p.result.billing.cost_microusd, 50000 + 20000); /* Modal says 0.18 */
	modal_played_free(&p);
	some_rates[2].value = (char *)"0.09";
	p = modal_play(OP_BILLING, &want, told, 4);
	some_rates[2].value = (char *)"0.18";
	/* its word is as good when it is less */
	assert_int_equal(p.result.billing.cost_microusd, 50000 + 10000);
	modal_played_free(&p);
	section_set_int(modal_conf, "core_price", 90000, "t");
	p = modal_play(OP_BILLING, &want, told, 4);
	assert_int_equal(p.result.billing.cost_microusd, 50000 + 10000);
	modal_played_free(&p);
	p = modal_play(
		OP_BILLING, &want,
		(const struct answer[]){
			ASKED_TASK, told[1], told[2], {"WorkspaceBillingRates", -1, NULL, NULL}},
		4);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	modal_played_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_billed_time, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_billed_use, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_billed_at_own_rates, modal_set_up,
						modal_tear_down),
	};

	return cmocka_run_group_tests_name("modal bill", tests, NULL, NULL);
}
