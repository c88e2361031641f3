/* modal_play.c - plays Modal to its translator: answers in order, each checked against the call
 * that it answers. */
#include "modal_play.h"

#include <sys/mount.h>
#include <unistd.h>

struct section *modal_conf;

struct provider *modal_provider;

int modal_set_up(void **state)
{
	struct err err = {0};

	(void)state;
	modal_conf = section_new(provider_modal.options, "burst.cfg:1");
	section_set_text(modal_conf, "token_id", "ak-test1", "test");
	section_set_text(modal_conf, "token_secret", "as-test2", "test");
	if (provider_modal.open(&modal_provider, modal_conf, "/", &err) < 0)
		fail_msg("%s", err.msg);
	return 0;
}

int modal_tear_down(void **state)
{
	(void)state;
	provider_modal.close(modal_provider);
	modal_provider = NULL;
	section_free(modal_conf);
	return 0;
}

static void fill_reply(struct reply *r, const struct answer *a)
{
	if (strstr(a->method, "://")) { /* plain HTTP: the code is its status */
		*r = (struct reply){
			.status = MAX(a->code, 0), .failed = a->code < 0, .was_sent = true};
		if (r->failed)
			err_set(&r->err, ERR_NETWORK, "the line was cut");
		const char *length = a->words ? strstr(a->words, "Content-Length: ") : NULL;
		r->to_bytes = length ? atoll(length + 16) : 0;
		str_add(&r->head, a->words ? a->words : "");
		if (a->body)
			str_add(&r->body, a->body);
		return;
	}
	*r = (struct reply){.grpc_status = MAX(a->code, 0),
			    .failed = a->code < 0,
			    .was_sent = a->code != -2,
			    .sent_before = a->words && !strncmp(a->words, "again: ", 7)};
	if (a->code < 0) {
		err_set(&r->err, a->code == -4 ? ERR_UNTRUSTED : ERR_NETWORK, "the line was cut");
		r->grpc_status = 14;
	} else if (a->code) { /* as net/grpc.c would say it */
		static const enum err_kind kinds[] = {[5] = ERR_NOT_FOUND,
						      [8] = ERR_RATE_LIMITED,
						      [14] = ERR_TRANSIENT,
						      [16] = ERR_CREDENTIALS};
		enum err_kind kind = a->code < (int)ARRAY_LEN(kinds) && kinds[a->code]
					     ? kinds[a->code]
					     : ERR_REFUSED;
		err_set(&r->err, kind, "%s: %s", a->method, a->words ? a->words : "no");
	}
	str_addn(&r->body, a->stream ? a->stream : "", a->stream_len);
	if (!a->code && a->message) {
		size_t len = protobuf_c_message_get_packed_size(a->message);
		CLEANUP(free_text) char *bytes = xmalloc(len + 1);
		protobuf_c_message_pack(a->message, (uint8_t *)bytes);
		str_addn(&r->body, bytes, len);
	} else if (!a->code && a->words) {
		str_add(&r->body, a->words); /* bytes that are no message */
	}
}

struct played modal_play(enum op_kind kind, const struct op_want *want,
			 const struct answer *answers, int count)
{
	struct played p = {0};
	struct reply reply = {0};
	struct op *op = provider_modal.begin(modal_provider, kind, want);
	bool replied = false;

	for (;;) {
		struct call call = {0};
		int64_t wait_ms = 0;
		p.last = provider_modal.next(op, replied ? &reply : NULL, &call, &wait_ms,
					     &p.result, &p.err);
		reply_free(&reply);
		replied = false;
		if (p.last == OP_WAIT || p.last == OP_CALL) {
			str_add(&p.said, str_text(&p.result.text));
			op_result_free(&p.result);
		}
		if (p.last == OP_WAIT) {
			p.waits++;
			p.waited_ms += wait_ms;
			assert_true(p.waits < 100);
			continue;
		}
		if (p.last != OP_CALL)
			break;
		const char *method = call.kind == CALL_GRPC ? strrchr(call.url, '/') + 1 : call.url;
		if (p.calls == count || strcmp(answers[p.calls].method, method))
			fail_msg("call %d is %s, not %s", p.calls, method,
				 p.calls == count ? "(none)" : answers[p.calls].method);
		fill_reply(&reply, &answers[p.calls]);
		p.call[p.calls++] = call;
		replied = true;
	}
	provider_modal.op_free(op);
	if (p.calls != count)
		fail_msg("%d of %d calls: %s", p.calls, count, p.err.msg);
	return p;
}

void modal_played_free(struct played *p)
{
	for (int i = 0; i < p->calls; i++)
		call_free(&p->call[i]);
	op_result_free(&p->result);
	str_free(&p->said);
}

const Modal__Client__AuthTokenGetResponse first_token = {
	.base = PROTOBUF_C_MESSAGE_INIT(&modal__client__auth_token_get_response__descriptor),
	.token = (char *)"token-one"};

const Modal__Client__TokenInfoGetResponse info = {
	.base = PROTOBUF_C_MESSAGE_INIT(&modal__client__token_info_get_response__descriptor),
	.workspace_name = (char *)"acme\x1b[2J"};

const Modal__Client__AppGetOrCreateResponse app = {.base = MESSAGE(app_get_or_create_response),
						   .app_id = (char *)"ap-1"};

static Modal__Client__EnvironmentSettings settings = {.base = MESSAGE(environment_settings),
						      .image_builder_version = (char *)"2025.06"};

static Modal__Client__EnvironmentMetadata metadata = {.base = MESSAGE(environment_metadata),
						      .settings = &settings};

const Modal__Client__EnvironmentGetOrCreateResponse an_environment = {
	.base = MESSAGE(environment_get_or_create_response), .metadata = &metadata};

Modal__Client__GenericResult success = {
	.base = MESSAGE(generic_result), .has_status = 1, .status = 1};

Modal__Client__GenericResult failure = {.base = MESSAGE(generic_result),
					.has_status = 1,
					.status = 2,
					.exception = (char *)"no\nsuch tag"};

Modal__Client__GenericResult terminated = {
	.base = MESSAGE(generic_result), .has_status = 1, .status = 3};

const Modal__Client__ImageGetOrCreateResponse built = {
	.base = MESSAGE(image_get_or_create_response),
	.image_id = (char *)"im-1",
	.result = &success};

const Modal__Client__SecretGetOrCreateResponse secret = {
	.base = MESSAGE(secret_get_or_create_response), .secret_id = (char *)"st-1"};

const Modal__Client__SandboxCreateResponse created = {.base = MESSAGE(sandbox_create_response),
						      .sandbox_id = (char *)"sb-1"};

static struct env_pair env[] = {{(char *)"BURST_RUN", (char *)"r1", false},
				{(char *)"BURST_HOST_KEY_B64", (char *)"a2V5", true}};

struct op_want renting(void)
{
	struct op_want want = {
		.rent = {.offer = {.provider = "modal",
				   .id = "L40S:2",
				   .gpu = "L40S",
				   .gpus = 2,
				   .price_microusd_h = 3900000},
			 .name = "burst-00112233",
			 .marker = {.machine = "m1", .run = "r1", .attempt = "00112233"},
			 .volume = {.id = "vo-1"},
			 .mount = "/workspace",
			 .start_script = "echo 'hello'",
			 .env = env,
			 .env_count = ARRAY_LEN(env)}};

	want.rent.marker.hard_end_s = clock_wall_ms() / 1000 + 3600;
	return want;
}

void *unpacked(const struct call *call, const ProtobufCMessageDescriptor *type)
{
	void *m = protobuf_c_message_unpack(type, NULL, call->body.len,
					    (const uint8_t *)str_text(&call->body));

	assert_non_null(m);
	return m;
}

/* A stream's messages as net/ hands them over. */
static char *stream_of(const void *const *messages, int count, size_t *len)
{
	struct str s = STR_INIT;

	for (int i = 0; i < count; i++) {
		size_t size = protobuf_c_message_get_packed_size(messages[i]);
		uint8_t *bytes = xmalloc(size + 4);
		for (int b = 0; b < 4; b++)
			bytes[b] = (uint8_t)(size >> (24 - 8 * b));
		protobuf_c_message_pack(messages[i], bytes + 4);
		str_addn(&s, bytes, size + 4);
		free(bytes);
	}
	*len = s.len;
	return str_detach(&s);
}

struct answer streamed(const char *method, int code, const void *const *messages, int count)
{
	struct answer a = {method, code, NULL, NULL};

	a.stream = stream_of(messages, count, &a.stream_len);
	return a;
}

static Modal__Client__SandboxTag ours[] = {
	{.base = MESSAGE(sandbox_tag), .tag_name = (char *)"burst", .tag_value = (char *)"1"},
	{.base = MESSAGE(sandbox_tag),
	 .tag_name = (char *)"burst-machine",
	 .tag_value = (char *)"m1"},
	{.base = MESSAGE(sandbox_tag), .tag_name = (char *)"burst-run", .tag_value = (char *)"r1"},
	{.base = MESSAGE(sandbox_tag),
	 .tag_name = (char *)"burst-attempt",
	 .tag_value = (char *)"00112233"},
	{.base = MESSAGE(sandbox_tag),
	 .tag_name = (char *)"burst-hard-end",
	 .tag_value = (char *)"1800000000"},
};

static Modal__Client__SandboxTag *our_tags[] = {&ours[0], &ours[1], &ours[2], &ours[3], &ours[4]};

Modal__Client__SandboxInfo row(const char *id, double created_at, size_t tags,
			       Modal__Client__TaskInfo *task)
{
	return (Modal__Client__SandboxInfo){.base = MESSAGE(sandbox_info),
					    .id = (char *)id,
					    .has_created_at = true,
					    .created_at = created_at,
					    .n_tags = tags,
					    .tags = our_tags,
					    .task_info = task};
}

const Modal__Client__SandboxGetTaskIdResponse a_task = {
	.base = MESSAGE(sandbox_get_task_id_response), .task_id = (char *)"ta-1"};

const Modal__Client__SandboxGetTaskIdResponse ended_without_a_task = {
	.base = MESSAGE(sandbox_get_task_id_response), .task_result = &terminated};

void lists_alone(void)
{
	COPY_TEXT(modal_provider->app_id, "ap-1");
	modal_provider->has_swept = true;
}

void forget_known(void)
{
	memset(modal_provider->known, 0, sizeof(modal_provider->known));
	modal_provider->next_known = 0;
}
