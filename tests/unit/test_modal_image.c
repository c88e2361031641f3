/* test_modal_image.c - the image of a sandbox: its recipe, its build, one that is known. */
#include "modal_play.h"

static const Modal__Client__ImageGetOrCreateResponse unbuilt = {
	.base = MESSAGE(image_get_or_create_response), .image_id = (char *)"im-1"};

static void test_image_is_built(void **state)
{
	(void)state;
	Modal__Client__TaskLogs log = {.base = MESSAGE(task_logs),
				       .data = (char *)"Step 1\nE: no such \x1bpackage\n\n"},
				*logs[] = {&log};
	Modal__Client__ImageJoinStreamingResponse said = {
		.base = MESSAGE(image_join_streaming_response),
		.n_task_logs = 1,
		.task_logs = logs,
		.entry_id = (char *)"7-1"};
	Modal__Client__ImageJoinStreamingResponse good = {
		.base = MESSAGE(image_join_streaming_response), .result = &success};
	Modal__Client__ImageJoinStreamingResponse bad = {
		.base = MESSAGE(image_join_streaming_response), .result = &failure};
	Modal__Client__GenericResult wordless = {
		.base = MESSAGE(generic_result), .has_status = 1, .status = 2};
	Modal__Client__ImageJoinStreamingResponse bad_too = {
		.base = MESSAGE(image_join_streaming_response), .result = &wordless};
	Modal__Client__ImageJoinStreamingResponse stopped = {
		.base = MESSAGE(image_join_streaming_response), .result = &terminated};
	struct op_want want = renting();

	COPY_TEXT(modal_provider->app_id, "ap-1");
	COPY_TEXT(modal_provider->builder_version, "2025.06");
	modal_token_take(&modal_provider->token, "token-one");
#define UNBUILT                                                                                    \
	{                                                                                          \
		"ImageGetOrCreate", 0, &unbuilt, NULL                                              \
	}
#define JOIN(code, ...)                                                                            \
	streamed("ImageJoinStreaming", code, (const void *const[]){__VA_ARGS__},                   \
		 (int)(sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *)))
	/* opened again where it ended, also when it broke; the result comes in the end */
	struct answer goes_on[] = {UNBUILT,         JOIN(0, &said),
				   JOIN(-1, &said), JOIN(0, &said, &good),
				   SECRET,          {"SandboxCreate", 0, &created, NULL}};
	struct played p = modal_play(OP_RENT, &want, goes_on, 6);
	assert_int_equal(p.last, OP_DONE);
	assert_int_equal(p.waits, 2);
	UNPACKED(ImageJoinStreamingRequest, first, &p.call[1], image_join_streaming_request);
	UNPACKED(ImageJoinStreamingRequest, second, &p.call[2], image_join_streaming_request);
	assert_string_equal(modal_text(first->last_entry_id), "");
	assert_string_equal(second->last_entry_id, "7-1");
	assert_true(p.call[1].stream && p.call[1].stream_limit_ms == 5000 && first->timeout == 5);
	assert_string_equal(str_text(&p.said), "im-1 is being built\nStep 1\nE: no such "
					       "\\x1bpackage\nStep 1\nE: no such \\x1bpackage\n"
					       "Step 1\nE: no such \\x1bpackage\n");
	modal_played_free(&p);
	/* by itself, what it said last comes with the image */
	struct answer alone[] = {UNBUILT, JOIN(0, &said, &good)};
	p = modal_play(OP_IMAGE, &want, alone, 2);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(str_text(&p.said), "im-1 is being built\n");
	assert_string_equal(str_text(&p.result.text), "Step 1\nE: no such \\x1bpackage\n");
	assert_true(starts_with(p.result.image, "im-1 ") && strlen(p.result.image) == 5 + 64);
	modal_played_free(&p);
	struct answer fails[] = {UNBUILT, JOIN(0, &said, &bad)};
	p = modal_play(OP_RENT, &want, fails, 2);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_string_equal(p.err.msg, "image: the image cannot be built: no\\x0asuch tag; its log "
				       "ends: Step 1 | E: no such \\x1bpackage");
	modal_played_free(&p);
	struct answer says_why[] = {UNBUILT, JOIN(0, &said, &bad_too)};
	p = modal_play(OP_RENT, &want, says_why, 2);
	assert_string_equal(p.err.msg,
			    "image: the image cannot be built: Step 1 | E: no such \\x1bpackage");
	modal_played_free(&p);
	struct answer breaks[] = {UNBUILT, JOIN(-1, &said), JOIN(-1, &said), JOIN(14, &said),
				  JOIN(-1, &said)};
	p = modal_play(OP_RENT, &want, breaks, 5);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	modal_played_free(&p);
	struct answer again[] = {UNBUILT,           JOIN(0, &stopped), UNBUILT,
				 JOIN(0, &stopped), UNBUILT,           JOIN(0, &stopped)};
	p = modal_play(OP_RENT, &want, again, 6);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	modal_played_free(&p);
	struct answer *const all[] = {goes_on, alone, fails, says_why, breaks, again};
	static const size_t sizes[] = {6, 2, 2, 2, 5, 6};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t k = 0; k < sizes[i]; k++)
			free(all[i][k].stream);
}

static const char *const packages[] = {"espeak-ng", "libstdc++6", NULL};

static void test_image_recipe(void **state)
{
	(void)state;
	struct op_want want = renting();
	want.rent.packages = packages;
	want.rent.agent = "\177ELF\0agent";
	want.rent.agent_len = 10;
	want.rent.agent_path = "/usr/local/lib/burst/0123";
	want.rent.image = "ghcr.io/acme/voices:1";
	section_add_item(modal_conf, "registry_secrets", "ghcr.io/ac=other", "t:4");
	section_add_item(modal_conf, "registry_secrets", "ghcr.io/acme=registry", "t:4");
	COPY_TEXT(modal_provider->app_id, "ap-1");
	COPY_TEXT(modal_provider->builder_version, "2025.06");
	modal_token_take(&modal_provider->token, "token-one");
	struct played p = modal_play(OP_IMAGE, &want, (const struct answer[]){SECRET, IMAGE}, 2);
	assert_int_equal(p.last, OP_DONE);
	UNPACKED(SecretGetOrCreateRequest, s, &p.call[0], secret_get_or_create_request);
	assert_string_equal(s->deployment_name, "registry");
	assert_false(s->has_object_creation_type); /* it is looked for, never made */
	UNPACKED(ImageGetOrCreateRequest, i, &p.call[1], image_get_or_create_request);
	assert_int_equal(i->image->n_dockerfile_commands, 5);
	assert_non_null(strstr(i->image->dockerfile_commands[1], " curl espeak-ng libstdc++6 && "));
	assert_string_equal(i->image->dockerfile_commands[2],
			    "COPY /.burst-agent /usr/local/lib/burst/0123");
	assert_string_equal(i->image->dockerfile_commands[3],
			    "RUN chmod 755 /usr/local/lib/burst/0123");
	assert_string_equal(i->image->context_files[0]->filename, "/.burst-agent");
	assert_int_equal(i->image->context_files[0]->data.len, 10);
	assert_memory_equal(i->image->context_files[0]->data.data, "\177ELF\0agent", 10);
	assert_int_equal(i->image->image_registry_config->registry_auth_type, 4);
	assert_string_equal(i->image->image_registry_config->secret_id, "st-1");
	modal_played_free(&p);
	p = modal_play(OP_IMAGE, &want,
		       (const struct answer[]){{"SecretGetOrCreate", 5, NULL, "none"}}, 1);
	assert_int_equal(p.err.kind, ERR_CONFIG);
	assert_non_null(
		strstr(p.err.msg,
		       "t:4: providers.modal.registry_secrets: Modal has no secret \"registry\""));
	modal_played_free(&p);
	/* nobody else's registry is shown it */
	want.rent.image = "evil.example/ghcr.io/acme/voices:1";
	p = modal_play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	UNPACKED(ImageGetOrCreateRequest, public, &p.call[0], image_get_or_create_request);
	assert_null(public->image->image_registry_config);
	modal_played_free(&p);
	static const char *const names[] = {"",   "Vim",   "a b", "x;reboot",
					    "-y", "a$(b)", "a=1", "a/b"};
	for (size_t n = 0; n < ARRAY_LEN(names); n++) {
		const char *const bad[] = {"espeak-ng", names[n], NULL};
		want.rent.packages = bad;
		p = modal_play(OP_IMAGE, &want, NULL, 0);
		if (p.err.kind != ERR_CONFIG ||
		    !strstr(p.err.msg, "is not the name of a Debian package"))
			fail_msg("\"%s\": %s", names[n], p.err.msg);
		modal_played_free(&p);
	}
}

/* What the job's set-up makes gets into it before the agent, whose next version is no reason to
 * make it again where layers are kept. */
static void test_image_with_a_setup(void **state)
{
	(void)state;
	struct op_want want = renting();
	char path[] = "/usr/local/lib/burst/setup", other[] = "/usr/local/lib/burst/weights",
	     run[] = "sh /usr/local/lib/burst/setup";
	struct image_step steps[] = {{.path = path, .text = "echo one\n", .run = run},
				     {.path = other, .text = "echo two\n", .run = run}};
	want.rent.agent = "agent";
	want.rent.agent_len = 5;
	want.rent.agent_path = "/usr/local/lib/burst/0123";
	COPY_TEXT(modal_provider->app_id, "ap-1");
	COPY_TEXT(modal_provider->builder_version, "2025.06");
	modal_token_take(&modal_provider->token, "token-one");
	struct played p = modal_play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	CLEANUP(free_text) char *without = xstrdup(p.result.image);
	modal_played_free(&p);
	want.rent.steps = steps;
	want.rent.step_count = 2;
	p = modal_play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	assert_int_equal(p.last, OP_DONE);
	assert_string_not_equal(p.result.image, without);
	UNPACKED(ImageGetOrCreateRequest, i, &p.call[0], image_get_or_create_request);
	assert_int_equal(i->image->n_dockerfile_commands, 9);
	assert_string_equal(i->image->dockerfile_commands[2],
			    "COPY /.burst-step-0 /usr/local/lib/burst/setup");
	assert_string_equal(i->image->dockerfile_commands[3], "RUN sh /usr/local/lib/burst/setup");
	assert_string_equal(i->image->dockerfile_commands[4],
			    "COPY /.burst-step-1 /usr/local/lib/burst/weights");
	assert_string_equal(i->image->dockerfile_commands[6],
			    "COPY /.burst-agent /usr/local/lib/burst/0123");
	assert_int_equal(i->image->n_context_files, 3);
	assert_string_equal(i->image->context_files[1]->filename, "/.burst-step-1");
	assert_memory_equal(i->image->context_files[1]->data.data, "echo two\n", 9);
	assert_string_equal(i->image->context_files[2]->filename, "/.burst-agent");
	modal_played_free(&p);
}

static void test_image_is_known(void **state)
{
	(void)state;
	struct op_want want = renting();
	struct answer gone = {"ImageFromId", 5, NULL, "no such image"};
	struct answer there = {"ImageFromId", 0, NULL, NULL};
	struct answer nothing = {"SandboxCreate", 5, NULL, "not found"};

	COPY_TEXT(modal_provider->app_id, "ap-1");
	COPY_TEXT(modal_provider->builder_version, "2025.06");
	modal_token_take(&modal_provider->token, "token-one");
	struct played p = modal_play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	char known[IMAGE_MAX];
	COPY_TEXT(known, p.result.image);
	modal_played_free(&p);
	want.rent.known_image = known;
	/* one small call, and at the create none */
	p = modal_play(OP_IMAGE, &want, &there, 1);
	UNPACKED(ImageFromIdRequest, f, &p.call[0], image_from_id_request);
	assert_string_equal(f->image_id, "im-1");
	assert_string_equal(p.result.image, known);
	assert_string_equal(str_text(&p.said), "");
	modal_played_free(&p);
	p = modal_play(OP_RENT, &want,
		       (const struct answer[]){SECRET, {"SandboxCreate", 0, &created, NULL}}, 2);
	assert_string_equal(p.result.pods[0].id, "sb-1");
	assert_string_equal(p.result.image, known);
	modal_played_free(&p);
	/* it is gone: built again, before the run, or when a create does not find it */
	p = modal_play(OP_IMAGE, &want, (const struct answer[]){gone, IMAGE}, 2);
	assert_string_equal(p.result.image, known);
	modal_played_free(&p);
	p = modal_play(
		OP_RENT, &want,
		(const struct answer[]){
			SECRET, nothing, gone, IMAGE, SECRET, {"SandboxCreate", 0, &created, NULL}},
		6);
	assert_int_equal(p.last, OP_DONE);
	assert_string_equal(p.result.image, known);
	modal_played_free(&p);
	/* but once only; and what else is not found is no matter of the image */
	p = modal_play(OP_RENT, &want,
		       (const struct answer[]){SECRET, nothing, gone, IMAGE, SECRET, nothing}, 6);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	modal_played_free(&p);
	p = modal_play(OP_RENT, &want, (const struct answer[]){SECRET, nothing, there}, 3);
	assert_int_equal(p.err.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(p.err.msg, "create: SandboxCreate: not found"));
	modal_played_free(&p);
	p = modal_play(OP_IMAGE, &want, (const struct answer[]){{"ImageFromId", -1, NULL, NULL}},
		       1);
	assert_int_equal(p.err.kind, ERR_NETWORK);
	modal_played_free(&p);
	p = modal_play(OP_IMAGE, &want,
		       (const struct answer[]){{"ImageFromId", 12, NULL, "no such call"}, IMAGE},
		       2);
	assert_int_equal(p.last, OP_DONE);
	modal_played_free(&p);
	/* of another recipe, or no image of ours at all */
	static const char *const others[] = {"", "im-1", "im-1 ", "im-1 0123", "\n", "im-1;x 0123"};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		want.rent.known_image = others[i];
		p = modal_play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
		assert_int_equal(p.last, OP_DONE);
		modal_played_free(&p);
	}
	want.rent.known_image = known;
	want.rent.packages = packages;
	p = modal_play(OP_IMAGE, &want, (const struct answer[]){IMAGE}, 1);
	assert_string_not_equal(p.result.image, known);
	modal_played_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_image_is_built, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_image_recipe, modal_set_up, modal_tear_down),
		cmocka_unit_test_setup_teardown(test_image_with_a_setup, modal_set_up,
						modal_tear_down),
		cmocka_unit_test_setup_teardown(test_image_is_known, modal_set_up, modal_tear_down),
	};

	return cmocka_run_group_tests_name("modal image", tests, NULL, NULL);
}
