/* test_modal_list.c - sandboxes are listed: by the account, or by app where that is refused. */
#include "modal_play.h"

static void test_list(void **state)
{
	(void)state;
	lists_alone();
	Modal__Client__GPUConfig l40s = {.base = MESSAGE(gpuconfig), .gpu_type = (char *)"L40S"};
	Modal__Client__TaskInfo running = {.base = MESSAGE(task_info),
					   .has_started_at = true,
					   .started_at = 150.5,
					   .gpu_config = &l40s};
	Modal__Client__TaskInfo over = {.base = MESSAGE(task_info),
					.has_started_at = true,
					.started_at = 100,
					.has_finished_at = true,
					.finished_at = 120,
					.result = &failure};
	Modal__Client__SandboxInfo rows[] = {
		row("sb-new", 200, 5, NULL), row("sb-run", 150, 5, &running),
		row("sb-half", 140, 4, NULL), row("sb-over", 100, 5, &over),
		row("sb-stranger", 90, 0, NULL)};
	Modal__Client__SandboxInfo *first[] = {&rows[0], &rows[1], &rows[2]},
				   *second[] = {&rows[2], &rows[3], &rows[4]},
				   *third[] = {&rows[4]};
	Modal__Client__SandboxListResponse page1 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 3, .sandboxes = first};
	Modal__Client__SandboxListResponse page2 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 3, .sandboxes = second};
	Modal__Client__SandboxListResponse page3 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = third};
	Modal__Client__TunnelData web = {.base = MESSAGE(tunnel_data),
					 .unencrypted_host = (char *)"w.modal.host",
					 .has_unencrypted_port = true,
					 .unencrypted_port = 1,
					 .has_container_port = true,
					 .container_port = 80};
	Modal__Client__TunnelData ssh = {.base = MESSAGE(tunnel_data),
					 .host = (char *)"t.modal.host",
					 .has_port = true,
					 .port = 443,
					 .unencrypted_host = (char *)"r435.modal.host",
					 .has_unencrypted_port = true,
					 .unencrypted_port = 34797,
					 .has_container_port = true,
					 .container_port = 22};
	Modal__Client__TunnelData *both[] = {&web, &ssh};
	Modal__Client__GenericResult late = {
		.base = MESSAGE(generic_result), .has_status = true, .status = 4};
	Modal__Client__SandboxGetTunnelsResponse not_yet = {
		.base = MESSAGE(sandbox_get_tunnels_response), .result = &late};
	Modal__Client__SandboxGetTunnelsResponse up = {
		.base = MESSAGE(sandbox_get_tunnels_response),
		.result = &success,
		.n_tunnels = 2,
		.tunnels = both};
	const struct answer boots[] = {TOKEN,        LIST(&page1),
				       LIST(&page2), LIST(&page3),
				       TASK(NULL),   {"SandboxGetTunnels", 0, &not_yet, NULL}};
	struct played p = modal_play(OP_LIST, NULL, boots, 6);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 3);
	const struct pod_view *v = p.result.pods;
	assert_string_equal(v[0].id, "sb-new");
	assert_int_equal(v[0].state, POD_STATE_QUEUED);
	assert_int_equal(v[0].created_at_s, 200);
	assert_string_equal(v[0].marker.machine, "m1");
	assert_int_equal(v[0].marker.hard_end_s, 1800000000);
	assert_string_equal(v[1].id, "sb-run");
	assert_int_equal(v[1].state, POD_STATE_RUNNING);
	assert_string_equal(v[1].gpu, "L40S");
	assert_int_equal(v[1].port, 0);
	assert_string_equal(v[2].id, "sb-over");
	assert_int_equal(v[2].state, POD_STATE_GONE);
	assert_non_null(strstr(v[2].detail, "its start script failed: no\\x0asuch tag"));
	UNPACKED(SandboxListRequest, l1, &p.call[1], sandbox_list_request);
	UNPACKED(SandboxListRequest, l2, &p.call[2], sandbox_list_request);
	UNPACKED(SandboxListRequest, l3, &p.call[3], sandbox_list_request);
	assert_false(l1->has_before_timestamp);
	assert_string_equal(l1->tags[0]->tag_name, "burst");
	assert_true(l2->before_timestamp > 140 && l2->before_timestamp < 140.001);
	assert_true(l3->before_timestamp > 90 && l3->before_timestamp < 90.001);
	modal_played_free(&p);
	const struct answer is_up[] = {
		LIST(&page1), LIST(NULL), TASK(NULL), {"SandboxGetTunnels", 0, &up, NULL}};
	p = modal_play(OP_LIST, NULL, is_up, 4);
	assert_string_equal(p.result.pods[1].host, "r435.modal.host");
	assert_int_equal(p.result.pods[1].port, 34797);
	assert_string_equal(p.result.pods[1].user, "root");
	modal_played_free(&p);
	p = modal_play(OP_LIST, NULL, is_up, 3); /* it is known now */
	assert_int_equal(p.result.pods[1].port, 34797);
	modal_played_free(&p);
	/* a listing that fails in the middle is no listing; a tunnel that fails is just not there
	 * yet */
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){LIST(&page1), {"SandboxListV2", 14, NULL, NULL}}, 2);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	assert_int_equal(p.result.pod_count, 0);
	modal_played_free(&p);
	memset(modal_provider->addresses, 0, sizeof(modal_provider->addresses));
	p = modal_play(
		OP_LIST, NULL,
		(const struct answer[]){
			LIST(&page1), LIST(NULL), TASK(NULL), {"SandboxGetTunnels", 5, NULL, NULL}},
		4);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.err.kind, ERR_NONE);
	modal_played_free(&p);
	/* rows that cannot be paged past, or named */
	Modal__Client__SandboxInfo timeless = row("sb-x", 0, 5, NULL),
				   nameless = row("../x", 50, 5, NULL), *odd[] = {&timeless},
				   *odder[] = {&nameless};
	Modal__Client__SandboxListResponse page4 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = odd};
	Modal__Client__SandboxListResponse page5 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = odder};
	p = modal_play(OP_LIST, NULL, (const struct answer[]){LIST(&page4)}, 1);
	assert_int_equal(p.last, OP_FAILED);
	modal_played_free(&p);
	p = modal_play(OP_LIST, NULL, (const struct answer[]){LIST(&page5)}, 1);
	assert_int_equal(p.last, OP_FAILED);
	modal_played_free(&p);
}

/* That a sandbox runs may be told by its row in other ways, or by its having an address alone. */
static void test_rows_that_do_not_say_when_it_started(void **state)
{
	(void)state;
	lists_alone();
	Modal__Client__TunnelData ssh = {.base = MESSAGE(tunnel_data),
					 .unencrypted_host = (char *)"r435.modal.host",
					 .has_unencrypted_port = true,
					 .unencrypted_port = 34797,
					 .has_container_port = true,
					 .container_port = 22};
	Modal__Client__TunnelData *tunnels[] = {&ssh};
	Modal__Client__GenericResult late = {
		.base = MESSAGE(generic_result), .has_status = true, .status = 4};
	Modal__Client__SandboxGetTunnelsResponse not_yet = {
		.base = MESSAGE(sandbox_get_tunnels_response), .result = &late};
	Modal__Client__SandboxGetTunnelsResponse up = {
		.base = MESSAGE(sandbox_get_tunnels_response),
		.result = &success,
		.n_tunnels = 1,
		.tunnels = tunnels};
	Modal__Client__TaskInfo task = {.base = MESSAGE(task_info), .id = (char *)"ta-1"};
	Modal__Client__SandboxInfo ready = row("sb-ready", 400, 5, NULL),
				   shown = row("sb-shown", 300, 5, NULL),
				   queued = row("sb-queued", 200, 5, NULL),
				   scheduled = row("sb-scheduled", 100, 5, &task);
	Modal__Client__SandboxInfo *rows[] = {&ready, &shown, &queued, &scheduled},
				   *one[] = {&scheduled}, *other[] = {&queued};
	Modal__Client__SandboxListResponse page = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 4, .sandboxes = rows};
	Modal__Client__SandboxListResponse page1 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = one};
	Modal__Client__SandboxListResponse page2 = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = other};

	ready.has_ready_at = true;
	ready.ready_at = 410;
	shown.n_tunnels = 1;
	shown.tunnels = tunnels;
	/* the ready one and the scheduled one are asked for theirs; the queued one has none */
	struct played p =
		modal_play(OP_LIST, NULL,
			   (const struct answer[]){TOKEN,
						   LIST(&page),
						   LIST(NULL),
						   TASK(NULL),
						   {"SandboxGetTunnels", 0, &not_yet, NULL},
						   {"SandboxGetTunnels", 0, &not_yet, NULL}},
			   6);
	assert_int_equal(p.last, OP_DONE);
	UNPACKED(SandboxGetTaskIdRequest, q, &p.call[3], sandbox_get_task_id_request);
	UNPACKED(SandboxGetTunnelsRequest, t1, &p.call[4], sandbox_get_tunnels_request);
	UNPACKED(SandboxGetTunnelsRequest, t2, &p.call[5], sandbox_get_tunnels_request);
	assert_string_equal(q->sandbox_id, "sb-queued");
	assert_string_equal(t1->sandbox_id, "sb-ready");
	assert_string_equal(t2->sandbox_id, "sb-scheduled");
	assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
	assert_int_equal(p.result.pods[1].state, POD_STATE_RUNNING);
	assert_int_equal(p.result.pods[1].port, 34797);
	assert_int_equal(p.result.pods[2].state, POD_STATE_QUEUED);
	assert_int_equal(p.result.pods[3].state, POD_STATE_CREATING);
	modal_played_free(&p);
	forget_known();
	/* each no more often than every few seconds */
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){
			       LIST(&page1), LIST(NULL), {"SandboxGetTunnels", 0, &not_yet, NULL}},
		       3);
	assert_int_equal(p.last, OP_DONE);
	modal_played_free(&p);
	p = modal_play(OP_LIST, NULL, (const struct answer[]){LIST(&page1), LIST(NULL)}, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	modal_played_free(&p);
	modal_provider->known[0].asked_ms -= 60000;
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){
			       LIST(&page1), LIST(NULL), {"SandboxGetTunnels", 0, &up, NULL}},
		       3);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
	assert_string_equal(p.result.pods[0].host, "r435.modal.host");
	modal_played_free(&p);
	/* where nobody tells whether it has a task: after a while */
	forget_known();
	const struct answer untold = {"SandboxGetTaskId", 12, NULL, NULL};
	p = modal_play(OP_LIST, NULL, (const struct answer[]){LIST(&page2), LIST(NULL), untold}, 3);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	modal_played_free(&p);
	modal_provider->known[0].seen_ms -= 60000;
	p = modal_play(
		OP_LIST, NULL,
		(const struct answer[]){
			LIST(&page2), LIST(NULL), untold, {"SandboxGetTunnels", 0, &up, NULL}},
		4);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pods[0].state, POD_STATE_RUNNING);
	modal_played_free(&p);
}

/* The list is of our app; the environment is looked through once. Where Modal has no
 * SandboxListV2, SandboxList does; where it refuses both, what is known is looked up by its id, and
 * the answer says that it is no list. */
static void test_lists_by_app(void **state)
{
	(void)state;
	Modal__Client__SandboxInfo mine = row("sb-1", 200, 5, NULL),
				   other = row("sb-2", 100, 5, NULL), *own[] = {&mine},
				   *both[] = {&mine, &other};
	Modal__Client__SandboxListResponse page = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 1, .sandboxes = own};
	Modal__Client__SandboxListResponse all = {
		.base = MESSAGE(sandbox_list_response), .n_sandboxes = 2, .sandboxes = both};
	Modal__Client__SandboxWaitResponse over = {.base = MESSAGE(sandbox_wait_response),
						   .result = &failure};
	const struct answer none = LIST(NULL), v1_none = {"SandboxList", 0, NULL, NULL},
			    v1_page = {"SandboxList", 0, &page, NULL};
	const struct answer tunnels = {"SandboxGetTunnels", 5, NULL, NULL};

	mine.app_id = (char *)"ap-1";
	other.app_id = (char *)"ap-2";
	struct played p = modal_play(OP_LIST, NULL,
				     (const struct answer[]){TOKEN,
							     APP,
							     LIST(&page),
							     none,
							     {"SandboxList", 0, &all, NULL},
							     v1_none,
							     TASK(NULL)},
				     7);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 2);
	assert_false(p.result.partial);
	UNPACKED(AppGetOrCreateRequest, a, &p.call[1], app_get_or_create_request);
	assert_false(a->has_object_creation_type);
	UNPACKED(SandboxListRequest, l1, &p.call[2], sandbox_list_request);
	UNPACKED(SandboxListRequest, l2, &p.call[4], sandbox_list_request);
	assert_string_equal(l1->app_id, "ap-1");
	assert_null(l2->app_id);
	assert_string_equal(l2->tags[0]->tag_name, "burst");
	modal_played_free(&p);
	/* the next one is of the app alone, and another app's sandbox is no missing one */
	p = modal_play(OP_LIST, NULL, (const struct answer[]){LIST(&page), none, TASK(NULL)}, 3);
	assert_int_equal(p.result.pod_count, 1);
	modal_played_free(&p);
	/* an environment that is not to be listed is not asked for again */
	modal_provider->has_swept = false;
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){LIST(&page),
					       none,
					       {"SandboxList", 9, NULL, "app_id is required"},
					       TASK(NULL)},
		       4);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 1);
	assert_true(modal_provider->has_swept);
	modal_played_free(&p);
	/* no SandboxListV2 */
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){
			       {"SandboxListV2", 12, NULL, NULL}, v1_page, v1_none, TASK(NULL)},
		       4);
	assert_int_equal(p.result.pod_count, 1);
	assert_false(p.result.partial);
	UNPACKED(SandboxListRequest, l3, &p.call[1], sandbox_list_request);
	assert_string_equal(l3->app_id, "ap-1");
	modal_played_free(&p);
	/* neither: it lives, has a task, is asked for its address */
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){{"SandboxList", 9, NULL, "lists are off"},
					       {"SandboxWait", 0, NULL, NULL},
					       TASK(&a_task),
					       tunnels},
		       4);
	assert_int_equal(p.last, OP_DONE);
	assert_true(p.result.partial);
	assert_non_null(strstr(str_text(&p.result.text), "lists are off"));
	assert_non_null(strstr(str_text(&p.result.text), "SandboxWait"));
	assert_int_equal(p.result.pods[0].state, POD_STATE_CREATING);
	modal_played_free(&p);
	/* what this handle has never seen is looked up when it is asked for */
	char *ids[] = {(char *)"sb-9", (char *)"../x", (char *)"sb-1", NULL};
	struct op_want want = {.ids = ids};
	p = modal_play(OP_LIST, &want,
		       (const struct answer[]){{"SandboxList", 7, NULL, "no"},
					       {"SandboxWait", 0, &over, NULL},
					       {"SandboxWait", 0, &over, NULL}},
		       3);
	assert_int_equal(p.last, OP_DONE);
	assert_true(p.result.partial);
	assert_int_equal(p.result.pod_count, 2);
	assert_int_equal(p.result.pods[1].state, POD_STATE_GONE);
	modal_played_free(&p);
	/* SandboxWait is refused as well: its task tells */
	Modal__Client__TaskInfo goes_on = {.base = MESSAGE(task_info),
					   .id = (char *)"ta-1",
					   .has_started_at = true,
					   .started_at = 150};
	Modal__Client__TaskInfo has_ended = {.base = MESSAGE(task_info),
					     .id = (char *)"ta-1",
					     .has_started_at = true,
					     .started_at = 150,
					     .has_finished_at = true,
					     .finished_at = 170,
					     .result = &failure};
	Modal__Client__TaskGetInfoResponse lives = {.base = MESSAGE(task_get_info_response),
						    .info = &goes_on};
	Modal__Client__TaskGetInfoResponse ended = {.base = MESSAGE(task_get_info_response),
						    .info = &has_ended};
	const struct answer off = {"SandboxList", 9, NULL, "lists are off"},
			    no_wait = {"SandboxWait", 12, NULL, NULL};
	const struct {
		const char *name;
		struct answer task, info, then;
		int count;
		enum pod_state state;
	} by_task[] = {
		{"it runs",
		 TASK(&a_task),
		 {"TaskGetInfo", 0, &lives, NULL},
		 tunnels,
		 5,
		 POD_STATE_RUNNING},
		{"it has ended",
		 TASK(&a_task),
		 {"TaskGetInfo", 0, &ended, NULL},
		 tunnels,
		 4,
		 POD_STATE_GONE},
		{"it ended without a task", TASK(&ended_without_a_task), tunnels, tunnels, 3,
		 POD_STATE_GONE},
		{"nothing tells",
		 {"SandboxGetTaskId", 12, NULL, NULL},
		 {"SandboxGetTaskId", 12, NULL, NULL},
		 tunnels,
		 4,
		 POD_STATE_CREATING},
	};
	for (size_t i = 0; i < ARRAY_LEN(by_task); i++) {
		forget_known();
		modal_remember(modal_provider, &(struct pod_view){.id = "sb-1",
								  .gpu = "L40S",
								  .state = POD_STATE_CREATING});
		const struct answer answers[] = {off, no_wait, by_task[i].task, by_task[i].info,
						 by_task[i].then};
		p = modal_play(OP_LIST, NULL, answers, by_task[i].count);
		if (p.last != OP_DONE || p.result.pod_count != 1 ||
		    p.result.pods[0].state != by_task[i].state)
			fail_msg("%s: %d, state %d", by_task[i].name, p.last,
				 p.result.pod_count ? (int)p.result.pods[0].state : -1);
		modal_played_free(&p);
	}
	/* a create whose answer was lost has no id that is known: it is looked for by its name */
	Modal__Client__SandboxGetFromNameResponse found = {
		.base = MESSAGE(sandbox_get_from_name_response), .sandbox_id = (char *)"sb-7"};
	const struct answer refused = {"SandboxList", 9, NULL, "lists are off"};
	struct op_want lost = renting();
	forget_known();
	COPY_TEXT(modal_provider->builder_version, "2025.06");
	p = modal_play(OP_RENT, &lost,
		       (const struct answer[]){IMAGE, SECRET, {"SandboxCreate", -1, NULL, NULL}},
		       3);
	assert_int_equal(p.err.kind, ERR_AMBIGUOUS);
	modal_played_free(&p);
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){refused, {"SandboxGetFromName", 5, NULL, NULL}}, 2);
	assert_int_equal(p.result.pod_count, 0);
	assert_true(p.result.partial);
	modal_played_free(&p);
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){refused,
					       {"SandboxGetFromName", 0, &found, NULL},
					       {"SandboxWait", 0, NULL, NULL},
					       TASK(NULL)},
		       4);
	assert_int_equal(p.result.pod_count, 1);
	assert_string_equal(p.result.pods[0].id, "sb-7");
	assert_string_equal(p.result.pods[0].marker.attempt, "00112233");
	UNPACKED(SandboxGetFromNameRequest, by_name, &p.call[1], sandbox_get_from_name_request);
	assert_string_equal(by_name->sandbox_name, "burst-00112233");
	assert_string_equal(by_name->app_name, "burst");
	modal_played_free(&p);
	/* an app that is made anew has another id; one that there is none of holds nothing */
	modal_provider->lists_v1 = false;
	forget_known();
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){{"SandboxListV2", 5, NULL, "App not found"},
					       {"AppGetOrCreate", 5, NULL, NULL}},
		       2);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.result.pod_count, 0);
	assert_false(p.result.partial);
	modal_played_free(&p);
	modal_provider->has_swept = false;
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){{"AppGetOrCreate", 5, NULL, NULL},
					       {"SandboxList", 14, NULL, NULL}},
		       2);
	assert_int_equal(p.last, OP_FAILED);
	modal_played_free(&p);
	p = modal_play(OP_LIST, NULL,
		       (const struct answer[]){APP, {"SandboxListV2", 14, NULL, NULL}}, 2);
	assert_int_equal(p.last, OP_FAILED);
	assert_int_equal(p.err.kind, ERR_TRANSIENT);
	modal_played_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_list, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_rows_that_do_not_say_when_it_started,
						modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_lists_by_app, modal_set_up, modal_tear_down),
	};

	return cmocka_run_group_tests_name("modal list", tests, NULL, NULL);
}
