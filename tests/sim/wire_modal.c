/* wire_modal.c - Modal in memory: the calls of modal.client.ModalClient that are used, each message
 * unpacked from the very bytes and answered with packed ones, over the machines of the cloud. What
 * it would call an invalid argument is our own mistake. */
#include "wire_modal.h"

#include <stdlib.h>

#include "base/crypto.h"

/* ---- answering ---- */

void modal_begin_head(struct answer *a)
{
	str_reset(&a->head);
	str_reset(&a->body);
	a->status = 200;
	str_add(&a->head, "HTTP/2 200\r\nContent-Type: application/grpc\r\n");
}

void modal_status(struct answer *a, int code, const char *words)
{
	modal_begin_head(a);
	str_addf(&a->head, "grpc-status: %d\r\ngrpc-message: ", code);
	for (const char *p = words; *p; p++)
		if (*p == '%' || *p < ' ')
			str_addf(&a->head, "%%%02X", (unsigned char)*p);
		else
			str_addc(&a->head, *p);
	str_add(&a->head, "\r\n");
}

static void add_field(struct str *to, int number, const void *bytes, size_t len)
{
	str_addc(to, (char)(number << 3 | 2));
	str_addc(to, (char)len); /* all of these are short */
	str_addn(to, bytes, len);
}

void modal_put_off(struct answer *a, int code, const char *words, double seconds)
{
	static const char url[] = "type.modal.com/modal.client.RPCRetryPolicy";
	CLEANUP(str_free) struct str policy = STR_INIT;
	CLEANUP(str_free) struct str any = STR_INIT;
	CLEANUP(str_free) struct str status = STR_INIT;
	float after = (float)seconds;

	modal_status(a, code, words);
	a->again_ms = (int64_t)(seconds * 1000);
	str_addc(&policy, 1 << 3 | 5);
	str_addn(&policy, &after, sizeof(after)); /* little-endian, as everything this runs on */
	add_field(&any, 1, url, strlen(url));
	add_field(&any, 2, policy.s, policy.len);
	str_addc(&status, 1 << 3);
	str_addc(&status, (char)code);
	add_field(&status, 3, any.s, any.len);
	str_add(&a->head, "grpc-status-details-bin: ");
	base64_add(&a->head, status.s, status.len);
	str_add(&a->head, "\r\n");
}

void modal_no(struct exchange *x, enum grpc_code code, const char *words)
{
	modal_status(x->a, code, words);
}

void modal_malformed(struct exchange *x, const char *what)
{
	broke(x->s, "Modal would refuse this as malformed: %s: %s", what, x->call->url);
	modal_no(x, GRPC_INVALID_ARGUMENT, what);
}

void modal_add_frame(struct exchange *x, const ProtobufCMessage *message)
{
	uint8_t few[4096], *bytes = few;
	size_t len = protobuf_c_message_get_packed_size(message);

	if (len > sizeof(few))
		bytes = xmalloc(len);
	protobuf_c_message_pack(message, bytes);
	grpc_add_frame(&x->a->body, bytes, len);
	if (bytes != few)
		free(bytes);
}

void modal_yes(struct exchange *x, const ProtobufCMessage *message)
{
	modal_begin_head(x->a);
	modal_add_frame(x, message);
	str_add(&x->a->head, "grpc-status: 0\r\n");
}

void *modal_request(struct exchange *x, const ProtobufCMessageDescriptor *type)
{
	void *message = protobuf_c_message_unpack(type, NULL, x->call->body.len,
						  (const uint8_t *)str_text(&x->call->body));

	if (!message)
		modal_malformed(x, type->short_name);
	return message;
}

void modal_request_free(void *variable)
{
	ProtobufCMessage *message = *(ProtobufCMessage **)variable;

	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
}

static void name_thing(struct exchange *x, char *to, size_t room, const char *prefix)
{
	snprintf(to, room, "%s%022d", prefix, ++x->v->made);
}

/* ---- session, app, environment ---- */

static char *session(struct exchange *x)
{
	CLEANUP(str_free) struct str middle = STR_INIT;
	CLEANUP(free_text)
	char *claims = xasprintf("{\"exp\":%lld,\"n\":%d}",
				 (long long)(WALL_EPOCH_MS + x->s->now) / 1000 + x->plan->token_s,
				 ++x->v->token_number);

	base64_add(&middle, claims, strlen(claims));
	for (char *p = middle.s; p && *p; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
	return xasprintf("eyJhbGciOiJIUzI1NiJ9.%.*s.%lld", (int)strcspn(str_text(&middle), "="),
			 str_text(&middle), (long long)x->s->now);
}

/* Its last part is the time when it was made. */
static bool token_is_good(struct exchange *x)
{
	const char *token = call_header_of(x->call, "x-modal-auth-token"),
		   *dot = strrchr(token, '.');

	return dot && x->s->now - atoll(dot + 1) < x->plan->token_s * 1000;
}

static void auth_token_get(struct exchange *x)
{
	Modal__Client__AuthTokenGetResponse answer = MODAL__CLIENT__AUTH_TOKEN_GET_RESPONSE__INIT;
	CLEANUP(free_text) char *token = session(x);

	answer.token = token;
	modal_yes(x, &answer.base);
}

static void app_get_or_create(struct exchange *x)
{
	REQUEST(Modal__Client__AppGetOrCreateRequest, r, x,
		modal__client__app_get_or_create_request__descriptor);
	Modal__Client__AppGetOrCreateResponse answer =
		MODAL__CLIENT__APP_GET_OR_CREATE_RESPONSE__INIT;

	if (!r)
		return;
	if (strcmp(plain(r->app_name), "burst"))
		modal_malformed(x, "app_name");
	else if (!x->v->has_app && r->object_creation_type != 1)
		modal_no(x, GRPC_NOT_FOUND, "App 'burst' not found.");
	else {
		x->v->has_app = true;
		answer.app_id = (char *)APP_ID;
		modal_yes(x, &answer.base);
	}
}

static void environment_get(struct exchange *x)
{
	Modal__Client__EnvironmentSettings settings = MODAL__CLIENT__ENVIRONMENT_SETTINGS__INIT;
	Modal__Client__EnvironmentMetadata metadata = MODAL__CLIENT__ENVIRONMENT_METADATA__INIT;
	Modal__Client__EnvironmentGetOrCreateResponse answer =
		MODAL__CLIENT__ENVIRONMENT_GET_OR_CREATE_RESPONSE__INIT;

	settings.image_builder_version = (char *)"2025.06";
	metadata.settings = &settings;
	answer.metadata = &metadata;
	modal_yes(x, &answer.base);
}

/* ---- images ---- */

bool modal_image_by_id(struct exchange *x, const char *id, struct built *out)
{
	const char *recipe;
	json_t *value;

	json_object_foreach (x->v->images, recipe, value) {
		*out = (struct built){json_string_value(json_array_get(value, 0)),
				      json_integer_value(json_array_get(value, 1))};
		if (!strcmp(out->id, id))
			return true;
	}
	return false;
}

static void image_get_or_create(struct exchange *x)
{
	REQUEST(Modal__Client__ImageGetOrCreateRequest, r, x,
		modal__client__image_get_or_create_request__descriptor);
	Modal__Client__ImageGetOrCreateResponse answer =
		MODAL__CLIENT__IMAGE_GET_OR_CREATE_RESPONSE__INIT;
	Modal__Client__GenericResult result = MODAL__CLIENT__GENERIC_RESULT__INIT;
	CLEANUP(str_free) struct str recipe = STR_INIT;
	char id[40];

	if (!r)
		return;
	if (!x->v->has_app || !starts_with(plain(r->app_id), "ap-") || !r->image ||
	    !r->image->n_dockerfile_commands ||
	    !starts_with(r->image->dockerfile_commands[0], "FROM ")) {
		modal_malformed(x, "app_id, image");
		return;
	}
	if (strikes(x->s, F_VOLUME_FAILS)) {
		modal_no(x, GRPC_UNAVAILABLE, "the builder is away: 50% of it");
		return;
	}
	for (size_t i = 0; i < r->image->n_dockerfile_commands; i++)
		str_addf(&recipe, "%s\n", r->image->dockerfile_commands[i]);
	json_t *have = json_object_get(x->v->images, str_text(&recipe));
	if (!have) {
		name_thing(x, id, sizeof(id), "im-");
		have = json_pack("[s,I]", id, (json_int_t)(x->s->now + x->plan->boot_ms));
		json_object_set_new(x->v->images, str_text(&recipe), have);
	}
	answer.image_id = (char *)json_string_value(json_array_get(have, 0));
	result.has_status = true;
	result.status = 1;
	if (json_integer_value(json_array_get(have, 1)) <= x->s->now)
		answer.result = &result;
	modal_yes(x, &answer.base);
}

/* Replies at once if the image is built, else after the requested wait. */
static void image_join(struct exchange *x)
{
	REQUEST(Modal__Client__ImageJoinStreamingRequest, r, x,
		modal__client__image_join_streaming_request__descriptor);
	Modal__Client__ImageJoinStreamingResponse
		log = MODAL__CLIENT__IMAGE_JOIN_STREAMING_RESPONSE__INIT,
		end = log;
	Modal__Client__TaskLogs line = MODAL__CLIENT__TASK_LOGS__INIT, *lines[] = {&line};
	Modal__Client__GenericResult result = MODAL__CLIENT__GENERIC_RESULT__INIT;
	struct built image;

	if (!r)
		return;
	if (!modal_image_by_id(x, plain(r->image_id), &image)) {
		modal_no(x, GRPC_NOT_FOUND, "no such image");
		return;
	}
	int64_t wait = image.at - x->s->now;
	modal_begin_head(x->a);
	line.data = (char *)"apt-get: unpacking\n";
	log.n_task_logs = 1;
	log.task_logs = lines;
	log.entry_id = (char *)"1-0";
	modal_add_frame(x, &log.base);
	x->a->endless = wait > (int64_t)(r->timeout * 1000);
	x->a->delay_ms = MAX(wait, INT64_C(0));
	if (x->a->endless) {
		x->a->delay_ms = 0;
		return;
	}
	result.has_status = true;
	result.status = 1;
	end.result = &result;
	end.has_eof = end.eof = true;
	modal_add_frame(x, &end.base);
	str_add(&x->a->head, "grpc-status: 0\r\n");
}

static void image_from_id(struct exchange *x)
{
	REQUEST(Modal__Client__ImageFromIdRequest, r, x,
		modal__client__image_from_id_request__descriptor);
	Modal__Client__ImageFromIdResponse answer = MODAL__CLIENT__IMAGE_FROM_ID_RESPONSE__INIT;
	struct built image;

	if (!r)
		return;
	if (!modal_image_by_id(x, plain(r->image_id), &image)) {
		modal_no(x, GRPC_NOT_FOUND, "no such image");
		return;
	}
	answer.image_id = r->image_id;
	modal_yes(x, &answer.base);
}

/* ---- secrets ---- */

static void secret_get_or_create(struct exchange *x)
{
	REQUEST(Modal__Client__SecretGetOrCreateRequest, r, x,
		modal__client__secret_get_or_create_request__descriptor);
	Modal__Client__SecretGetOrCreateResponse answer =
		MODAL__CLIENT__SECRET_GET_OR_CREATE_RESPONSE__INIT;
	char id[40];

	if (!r)
		return;
	if (r->object_creation_type != 5 || !starts_with(plain(r->app_id), "ap-")) {
		modal_malformed(x, "object_creation_type, app_id");
		return;
	}
	json_t *env = json_object();
	for (size_t i = 0; i < r->n_env_dict; i++)
		json_object_set_new(env, plain(r->env_dict[i]->key),
				    json_string(plain(r->env_dict[i]->value)));
	name_thing(x, id, sizeof(id), "st-");
	json_object_set_new(x->v->secrets, id, env);
	answer.secret_id = id;
	modal_yes(x, &answer.base);
}

/* ---- prices and volumes ---- */

static void billing_rates(struct exchange *x)
{
	Modal__Client__WorkspaceBillingRatesResponse answer =
		MODAL__CLIENT__WORKSPACE_BILLING_RATES_RESPONSE__INIT;
	Modal__Client__TextEntry entry[4], *entries[4];
	char price[2][32];

	if (strikes(x->s, F_OFFERS_FAIL)) {
		modal_no(x, GRPC_UNAVAILABLE, "away");
		return;
	}
	int count = strikes(x->s, F_OFFERS_EMPTY) ? 0 : (x->plan->offer_count + 1) / 2;
	for (int i = 0; i < count + 2; i++) {
		modal__client__text_entry__init(&entry[i]);
		entries[i] = &entry[i];
	}
	entry[0].key = (char *)"CPU";
	entry[0].value = (char *)"0.15";
	entry[1].key = (char *)"Memory";
	entry[1].value = (char *)"0.03";
	for (int i = 0; i < count; i++) {
		snprintf(price[i], sizeof(price[i]), "%.6f",
			 (double)x->s->prices[x->v->vendor][2 * i] / 1e6);
		entry[i + 2].key = (char *)wire_gpus[i].modal;
		entry[i + 2].value = price[i];
	}
	answer.n_rates = (size_t)count + 2;
	answer.rates = entries;
	modal_yes(x, &answer.base);
}

static void volume_get_or_create(struct exchange *x)
{
	REQUEST(Modal__Client__VolumeGetOrCreateRequest, r, x,
		modal__client__volume_get_or_create_request__descriptor);
	Modal__Client__VolumeGetOrCreateResponse answer =
		MODAL__CLIENT__VOLUME_GET_OR_CREATE_RESPONSE__INIT;
	Modal__Client__VolumeMetadata metadata = MODAL__CLIENT__VOLUME_METADATA__INIT;

	if (!r)
		return;
	if (strcmp(plain(r->deployment_name), "cache")) {
		modal_malformed(x, "deployment_name");
		return;
	}
	if (strikes(x->s, F_VOLUME_FAILS)) {
		modal_no(x, GRPC_INTERNAL, "away");
		return;
	}
	if (!x->v->volumes && r->object_creation_type != 1) {
		modal_no(x, GRPC_NOT_FOUND, "no such volume");
		return;
	}
	x->v->volumes = 1;
	answer.volume_id = (char *)VOLUME_ID;
	metadata.has_version = true;
	metadata.version = 2;
	answer.metadata = &metadata;
	modal_yes(x, &answer.base);
}

/* ---- which of them ---- */

static const struct {
	const char *name;
	void (*serve)(struct exchange *x);
	bool stream;
} calls[] = {
	{"AuthTokenGet", auth_token_get, false},
	{"AppGetOrCreate", app_get_or_create, false},
	{"EnvironmentGetOrCreate", environment_get, false},
	{"ImageGetOrCreate", image_get_or_create, false},
	{"ImageJoinStreaming", image_join, true},
	{"ImageFromId", image_from_id, false},
	{"SecretGetOrCreate", secret_get_or_create, false},
	{"SandboxCreate", modal_sandbox_create, false},
	{"SandboxList", modal_sandbox_list, false},
	{"SandboxListV2", modal_sandbox_list, false},
	{"SandboxGetFromName", modal_sandbox_get_from_name, false},
	{"SandboxGetTunnels", modal_sandbox_get_tunnels, false},
	{"SandboxWait", modal_sandbox_wait, false},
	{"SandboxTerminate", modal_sandbox_terminate, false},
	{"SandboxGetLogs", modal_sandbox_get_logs, true},
	{"WorkspaceBillingRates", billing_rates, false},
	{"VolumeGetOrCreate", volume_get_or_create, false},
	{"VolumeGetFile2", modal_get_file, false},
	{"VolumePutFiles2", modal_put_files, false},
	{"SandboxGetTaskId", modal_task_id, false},
	{"TaskGetInfo", modal_task_info, false},
	{"SandboxGetResourceUsage", modal_usage, false},
};

/* The single message in its frame. */
static bool unframe(struct exchange *x, struct call *bare)
{
	const unsigned char *p = (const unsigned char *)str_text(&bare->body);

	if (strcmp(bare->method, "POST") ||
	    strcmp(call_header_of(bare, "Content-Type"), "application/grpc") ||
	    strcmp(call_header_of(bare, "TE"), "trailers") || bare->body.len < 5 || p[0] ||
	    bare->body.len - 5 !=
		    ((size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4])) {
		modal_malformed(x, "that is not gRPC");
		return false;
	}
	bare->body.s += 5;
	bare->body.len -= 5;
	return true;
}

void modal_serve(struct sim *s, struct server *v, const struct call *framed, struct answer *a)
{
	struct call bare = *framed, *call = &bare;
	struct exchange x = {s, v, &s->plan->vendors[v->vendor], call, a};
	static const char root[] = "https://api.modal.com/modal.client.ModalClient/";
	const char *name = starts_with(call->url, root) ? call->url + strlen(root) : "?";

	if (starts_with(call->url, MODAL_BLOBS)) {
		modal_blob(&x);
		return;
	}
	if (!unframe(&x, call))
		return;
	if (strcmp(call_header_of(call, "x-modal-token-id"), "ak-test1") ||
	    strcmp(call_header_of(call, "x-modal-token-secret"), "as-test2") ||
	    strcmp(call_header_of(call, "x-modal-client-type"), "8") ||
	    !call_header_of(call, "x-modal-client-version")[0]) {
		modal_malformed(&x, "who asks?");
		return;
	}
	if (strcmp(name, "AuthTokenGet") && !token_is_good(&x)) {
		modal_no(&x, GRPC_UNAUTHENTICATED, "Token is over");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (!strcmp(calls[i].name, name)) {
			if (calls[i].stream == (call_header_of(call, "x-idempotency-key")[0] != 0))
				modal_malformed(&x, "a stream is none");
			calls[i].serve(&x);
			return;
		}
	modal_malformed(&x, "no such call");
}
