/* test_modal_inspect.c - one sandbox: queued, ended, inspected, its logs. */
#include "modal_play.h"

/* Made here, and waits for a GPU: each listing asks, until it has a task; a list without its row
 * says so as well. */
static void test_queued(void **state)
{
	(void)state;
	lists_alone();
	Modal__Client__SandboxInfo one = row("sb-1", 200, 5, NULL), *rows[] = {&one};
	Modal__Client__SandboxListResponse page = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = rows};
	Modal__Client__SandboxWaitResponse over = {.base = MESSAGE(sandbox_wait_response),
						   .result = &terminated};
	const struct answer none = LIST(NULL);
	struct op_want want = {.id = "sb-1"};
	static const struct {
		const char *name;
		int code;
		const Modal__Client__SandboxGetTaskIdResponse *message;
		enum pod_end end;
		bool preempted;
	} lasts[] = {
		{"no task", 0, &ended_without_a_task, POD_END_QUEUED, false},
		{"it was placed at the last moment", 0, &a_task, POD_END_OUTSIDE, false},
		{"nobody tells", 14, NULL, POD_END_OUTSIDE, false},
		{"neither task nor result", 0, NULL, POD_END_OUTSIDE, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(lasts); i++) {
		forget_known();
		modal_token_take(&modal_provider->token, "token-one");
		modal_remember(
			modal_provider,
			&(struct pod_view){.id = "sb-1", .gpu = "L40S", .state = POD_STATE_QUEUED});
		struct played p = modal_play(
			OP_LIST, NULL, (const struct answer[]){LIST(&page), none, TASK(NULL)}, 3);
		assert_int_equal(p.result.pods[0].state, POD_STATE_QUEUED);
		modal_played_free(&p);
		/* an answer that does not come changes nothing */
		p = modal_play(OP_LIST, NULL,
			       (const struct answer[]){
				       LIST(&page), none, {"SandboxGetTaskId", 14, NULL, NULL}},
			       3);
		assert_int_equal(p.result.pods[0].state, POD_STATE_QUEUED);
		modal_played_free(&p);
		p = modal_play(OP_RELEASE, &want,
			       (const struct answer[]){{"SandboxTerminate", 0, NULL, NULL}}, 1);
		modal_played_free(&p);
		p = modal_play(OP_LIST, NULL,
			       (const struct answer[]){
				       none,
				       {"SandboxWait", 0, &over, NULL},
				       {"SandboxGetTaskId", lasts[i].code, lasts[i].message, NULL}},
			       3);
		assert_int_equal(p.last, OP_DONE);
		if (p.result.pods[0].state != POD_STATE_GONE ||
		    p.result.pods[0].end != lasts[i].end ||
		    p.result.pods[0].preempted != lasts[i].preempted)
			fail_msg("%s: state %d, end %d, preempted %d", lasts[i].name,
				 p.result.pods[0].state, p.result.pods[0].end,
				 p.result.pods[0].preempted);
		modal_played_free(&p);
		p = modal_play(OP_LIST, NULL, &none, 1);
		assert_int_equal(p.result.pods[0].end, lasts[i].end);
		modal_played_free(&p);
	}
	/* placed: it boots */
	forget_known();
	modal_remember(modal_provider,
		       &(struct pod_view){.id = "sb-1", .gpu = "L40S", .state = POD_STATE_QUEUED});
	struct played p = modal_play(
		OP_LIST, NULL,
		(const struct answer[]){
			LIST(&page), none, TASK(&a_task), {"SandboxGetTunnels", 5, NULL, NULL}},
		4);
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	modal_played_free(&p);
	/* it is not asked again */
	p = modal_play(OP_LIST, NULL, (const struct answer[]){LIST(&page), none}, 2);
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	modal_played_free(&p);
}

/* The list has the living alone: what it lacks, and was there, is asked how it ended. */
static void test_ends(void **state)
{
	(void)state;
	lists_alone();
	static const struct {
		const char *name, *gpu;
		int status;
		bool released, preempted;
		enum pod_end end;
		const char *detail;
	} cases[] = {
		{"exit 0", "L40S", 1, false, false, POD_END_SCRIPT, "its start script ended"},
		{"exit 3", "L40S", 2, false, false, POD_END_SCRIPT, "its start script failed"},
		{"by us", "L40S", 3, true, false, POD_END_OUTSIDE, "it was terminated"},
		{"by Modal", "L40S", 3, false, true, POD_END_OUTSIDE,
		 "it was terminated, and not by burst: Modal reclaims sandboxes with GPUs when it "
		 "needs them"},
		{"without a GPU it is not taken back", NULL, 3, false, false, POD_END_OUTSIDE,
		 "it was terminated"},
		{"its timeout", "L40S", 4, false, false, POD_END_LIFETIME, "its lifetime ended"},
		{"the image or a mount", "L40S", 5, false, false, POD_END_SETUP,
		 "it could not be set up"},
		{"Modal's own", "L40S", 6, false, false, POD_END_VENDOR, "Modal's own failure"},
		{"idle", "L40S", 7, false, false, POD_END_IDLE, "it was idle too long"},
		{"memory", "L40S", 8, false, false, POD_END_MEMORY,
		 "it used more memory than it has: raise pod.memory_gb"},
		{"a word of the future", "L40S", 77, false, false, POD_END_UNKNOWN,
		 "it ended, for a reason that burst does not know (status 77)"},
	};
	const struct answer none = {"SandboxListV2", 0, NULL, NULL};
	struct op_want want = {.id = "sb-1"};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Modal__Client__TaskInfo task = {.base = MESSAGE(task_info),
						.has_started_at = true,
						.started_at = 150.5,
						.gpu_type = (char *)cases[i].gpu};
		Modal__Client__SandboxInfo one = row("sb-1", 150, 5, &task), *rows[] = {&one};
		Modal__Client__SandboxListResponse page = {.base = MESSAGE(sandbox_list_response),
							   .n_sandboxes = 1,
							   .sandboxes = rows};
		Modal__Client__GenericResult result = {.base = MESSAGE(generic_result),
						       .has_status = true,
						       .status = cases[i].status,
						       .has_exitcode = true,
						       .exitcode = cases[i].status == 2 ? 3 : 0};
		Modal__Client__SandboxWaitResponse over = {.base = MESSAGE(sandbox_wait_response),
							   .result = &result};
		CLEANUP(free_text)
		char *detail = xasprintf("%s%s", cases[i].detail,
					 cases[i].status == 2 ? " (exit code 3)" : "");
		memset(modal_provider->known, 0, sizeof(modal_provider->known));
		modal_token_take(&modal_provider->token, "token-one");
		struct played p =
			modal_play(OP_LIST, NULL,
				   (const struct answer[]){
					   LIST(&page), none, {"SandboxGetTunnels", 5, NULL, NULL}},
				   3);
		assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
		assert_string_equal(p.result.pods[0].gpu, cases[i].gpu ? cases[i].gpu : "");
		modal_played_free(&p);
		if (cases[i].released) {
			p = modal_play(OP_RELEASE, &want,
				       (const struct answer[]){{"SandboxTerminate", 0, NULL, NULL}},
				       1);
			modal_played_free(&p);
		}
		/* it lingers: not listed, and not over either */
		p = modal_play(OP_LIST, NULL,
			       (const struct answer[]){none,
						       {"SandboxWait", 0, NULL, NULL},
						       {"SandboxGetTunnels", 5, NULL, NULL}},
			       3);
		assert_int_equal(p.result.pod_count, 1);
		assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
		modal_played_free(&p);
		/* an answer that did not come is no end */
		p = modal_play(OP_LIST, NULL,
			       (const struct answer[]){none, {"SandboxWait", 14, NULL, NULL}}, 2);
		assert_int_equal(p.err.kind, ERR_TRANSIENT);
		modal_played_free(&p);
		for (int again = 0; again < 2; again++) { /* it is asked for once */
			p = modal_play(
				OP_LIST, NULL,
				(const struct answer[]){none, {"SandboxWait", 0, &over, NULL}},
				again ? 1 : 2);
			assert_int_equal(p.result.pod_count, 1);
			const struct pod_view *v = &p.result.pods[0];
			if (v->state != POD_STATE_GONE || v->end != cases[i].end ||
			    v->preempted != cases[i].preempted || strcmp(v->detail, detail))
				fail_msg("%s: state %d, end %d, preempted %d, \"%s\"",
					 cases[i].name, v->state, v->end, v->preempted, v->detail);
			assert_string_equal(v->marker.attempt, "00112233");
			modal_played_free(&p);
		}
		p = modal_play(OP_INSPECT, &want,
			       (const struct answer[]){{"SandboxWait", 0, &over, NULL}}, 1);
		assert_int_equal(p.result.pods[0].preempted, cases[i].preempted);
		modal_played_free(&p);
	}
	/* one that was made here and never listed; who knows of no such sandbox proves nothing */
	forget_known();
	modal_remember(
		modal_provider,
		&(struct pod_view){.id = "sb-1", .gpu = "L40S", .state = POD_STATE_CREATING});
	struct played p = modal_play(
		OP_LIST, NULL, (const struct answer[]){none, {"SandboxWait", 5, NULL, NULL}}, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 0);
	modal_played_free(&p);
	p = modal_play(OP_LIST, NULL, &none, 1);
	modal_played_free(&p);
}

static void test_inspect(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1"};
	Modal__Client__SandboxWaitResponse ended = {.base = MESSAGE(sandbox_wait_response),
						    .result = &terminated};
	Modal__Client__GenericResult zero = {.base = MESSAGE(generic_result), .has_status = true};
	Modal__Client__SandboxWaitResponse goes_on = {.base = MESSAGE(sandbox_wait_response),
						      .result = &zero};
	Modal__Client__SandboxGetTaskIdResponse task = {
		.base = MESSAGE(sandbox_get_task_id_response), .task_id = (char *)"ta-1"};
	Modal__Client__SandboxGetTaskIdResponse never = {
		.base = MESSAGE(sandbox_get_task_id_response), .task_result = &failure};
	const struct {
		const char *name;
		struct answer answers[3];
		int count;
		enum pod_state state;
	} cases[] = {
		{"ended", {{"SandboxWait", 0, &ended, NULL}}, 1, POD_STATE_GONE},
		{"forgotten", {{"SandboxWait", 5, NULL, NULL}}, 1, POD_STATE_GONE},
		{"queued",
		 {{"SandboxWait", 0, NULL, NULL}, {"SandboxGetTaskId", 0, NULL, NULL}},
		 2,
		 POD_STATE_QUEUED},
		{"ended before it had a machine",
		 {{"SandboxWait", 0, NULL, NULL}, {"SandboxGetTaskId", 0, &never, NULL}},
		 2,
		 POD_STATE_GONE},
		{"runs",
		 {{"SandboxWait", 0, &goes_on, NULL},
		  {"SandboxGetTaskId", 0, &task, NULL},
		  {"SandboxGetTunnels", 0, NULL, NULL}},
		 3,
		 POD_STATE_RUNNING},
	};
	modal_token_take(&modal_provider->token, "token-one");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct played p = modal_play(OP_INSPECT, &want, cases[i].answers, cases[i].count);
		if (p.last != OP_DONE || p.result.pod_count != 1 ||
		    p.result.pods[0].state != cases[i].state || p.err.kind)
			fail_msg("%s: %d %s", cases[i].name, p.last, p.err.msg);
		modal_played_free(&p);
	}
	struct played p = modal_play(OP_INSPECT, &want,
				     (const struct answer[]){{"SandboxWait", 14, NULL, NULL}}, 1);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	modal_played_free(&p);
	static const char *const none[] = {"", "sb-", "ta-1", "sb-1/../x",
					   "sb-0123456789012345678901234567890123456789"};
	static const enum op_kind kinds[] = {OP_INSPECT, OP_RELEASE, OP_LOGS, OP_BILLING};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
			COPY_TEXT(want.id, none[i]);
			p = modal_play(kinds[k], &want, NULL, 0);
			assert_int_equal(p.err.kind, ERR_REFUSED);
			modal_played_free(&p);
		}
}

static void test_logs(void **state)
{
	(void)state;
	struct op_want want = {.id = "sb-1"};
	Modal__Client__TaskLogs one = {.base = MESSAGE(task_logs), .data = (char *)"sshd: hello"},
				*logs[] = {&one};
	Modal__Client__TaskLogsBatch batch = {
		.base = MESSAGE(task_logs_batch), .n_items = 1, .items = logs};
	modal_token_take(&modal_provider->token, "token-one");
	struct answer answers[] = {
		streamed("SandboxGetLogs", 0, (const void *const[]){&batch}, 1),
		{"SandboxGetLogs", 0, NULL, NULL},
		streamed("SandboxGetLogs", 14, (const void *const[]){&batch, &batch}, 2)};
	struct played p = modal_play(OP_LOGS, &want, answers, 3);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(str_text(&p.result.text), "sshd: hello\nsshd: hellosshd: hello\n");
	modal_played_free(&p);
	free(answers[0].stream);
	free(answers[2].stream);
	p = modal_play(OP_LOGS, &want, (const struct answer[]){{"SandboxGetLogs", 5, NULL, NULL}},
		       1);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	modal_played_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_queued, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_ends, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_inspect, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_logs, modal_set_up, modal_tear_down),
	};

	return cmocka_run_group_tests_name("modal look", tests, NULL, NULL);
}
