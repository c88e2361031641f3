/* wire_modal.c - Modal in memory: the calls of modal.client.ModalClient that are used, each message
 * unpacked from the very bytes and answered with packed ones, over the machines of the cloud. What
 * it would call an invalid argument is our own mistake. */
#include "wire_modal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "net/grpc_wire.h"

#define APP_ID "ap-0000000000000000000001"
enum { CREATES_PER_S = 5, DAY_S = 86400 };

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

/* The moment it was made stands at its end. */
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

struct built {
	const char *id;
	int64_t at;
};

static bool image_by_id(struct exchange *x, const char *id, struct built *out)
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

/* Says so at once when it is built, else for as long as it was asked to wait. */
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
	if (!image_by_id(x, plain(r->image_id), &image)) {
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
	if (!image_by_id(x, plain(r->image_id), &image)) {
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

/* ---- sandboxes: made ---- */

static const char *check_definition(const Modal__Client__Sandbox *d)
{
	size_t args = 0;

	if (!d)
		return "definition is missing";
	for (size_t i = 0; i < d->n_entrypoint_args; i++)
		args += strlen(d->entrypoint_args[i]) + 1;
	if (!d->has_timeout_secs || d->timeout_secs < 1 || d->timeout_secs > DAY_S)
		return "timeout_secs";
	if (!args || args > 65536)
		return "entrypoint_args";
	if (!d->network_access || d->network_access->network_access_type != 1)
		return "network_access";
	if (!d->open_ports || d->open_ports->n_ports != 1 || d->open_ports->ports[0]->port != 22 ||
	    !d->open_ports->ports[0]->unencrypted)
		return "open_ports";
	if (!d->resources || !d->resources->milli_cpu || !d->resources->memory_mb)
		return "resources";
	if (d->n_secret_ids != 1 || !plain(d->name)[0] || strlen(d->name) > 64)
		return "secret_ids, name";
	return NULL;
}

static bool name_is_used(struct exchange *x, const char *name)
{
	for (size_t i = 0; i < x->s->machine_count; i++) {
		const struct machine *m = &x->s->machines[i];
		if (m->vendor == x->v->vendor && !m->is_over &&
		    !strcmp(wire_of(x->s, m)->name, name))
			return true;
	}
	return false;
}

/* The first of that kind which has room, or the first. */
static int offer_of(struct exchange *x, const char *gpu)
{
	int first = -1;

	for (int i = 0; i < x->plan->offer_count; i++) {
		if (strcmp(wire_gpus[i / 2].modal, gpu))
			continue;
		if (x->s->in_use[x->v->vendor][i] < x->plan->capacity[i])
			return i;
		first = first < 0 ? i : first;
	}
	return first;
}

static bool refused(struct exchange *x, const struct create *c)
{
	switch ((int)cloud_refuses(x->s, c)) {
	case ERR_NONE:
	case ERR_NO_CAPACITY: return false; /* it will wait for one */
	case ERR_RATE_LIMITED:
		if (x->s->now % 2)
			modal_put_off(x->a, GRPC_RESOURCE_EXHAUSTED,
				      "Sandbox creation rate limit (5/s) exceeded", 1.5);
		else
			modal_no(x, GRPC_RESOURCE_EXHAUSTED,
				 "Sandbox creation rate limit (5/s) exceeded");
		break;
	case ERR_TRANSIENT: modal_no(x, GRPC_UNAVAILABLE, "no worker can be asked"); break;
	case ERR_CREDENTIALS: modal_no(x, GRPC_UNAUTHENTICATED, "Token missing or invalid"); break;
	case ERR_REFUSED:
		modal_no(x, GRPC_FAILED_PRECONDITION, "Workspace budget limit reached");
		break;
	default:
		modal_no(x, x->s->now % 2 ? GRPC_INTERNAL : GRPC_DEADLINE_EXCEEDED,
			 "internal error");
		break;
	}
	return true;
}

static int64_t price_of(struct exchange *x, int offer, const Modal__Client__Resources *r)
{
	return x->s->prices[x->v->vendor][offer] + (int64_t)r->milli_cpu * 150 +
	       (int64_t)r->memory_mb * 30000 / 1024;
}

static void too_late(struct exchange *x, struct machine *m, int64_t life_s)
{
	struct happening *h = later(x->s, life_s * 1000, W_STRUCK);

	h->machine = (int)(m - x->s->machines);
	h->x = F_LIFE_OVER;
}

static void make(struct exchange *x, const struct create *c,
		 const Modal__Client__SandboxCreateRequest *r, json_t *env)
{
	const Modal__Client__Sandbox *d = r->definition;
	Modal__Client__SandboxCreateResponse answer = MODAL__CLIENT__SANDBOX_CREATE_RESPONSE__INIT;
	bool waits = x->plan->full[c->offer] ||
		     x->s->in_use[c->provider][c->offer] >= x->plan->capacity[c->offer];
	struct machine *m = cloud_make(x->s, c, false);
	struct wired *w = wire_of(x->s, m);

	m->price = m->offered; /* what it asks in truth is told nobody */
	if (c->price != price_of(x, c->offer, d->resources) && !x->s->hit[F_PRICE_MOVES])
		broke(x->s, "a sandbox of %lld micro-dollars an hour was offered for %lld",
		      (long long)price_of(x, c->offer, d->resources), (long long)c->price);
	if (waits) {
		m->queued = m->never_runs = true;
		m->runs_at = INT64_MAX / 2;
	}
	COPY_TEXT(w->name, d->name);
	w->env = json_incref(env);
	w->tags = json_array();
	for (size_t i = 0; i < r->n_tags; i++)
		json_array_append_new(w->tags, json_pack("[s,s]", plain(r->tags[i]->tag_name),
							 plain(r->tags[i]->tag_value)));
	const struct fault *f = strikes(x->s, F_LIFE_OVER);
	too_late(x, m, f ? 1 + f->ms / 1000 : d->timeout_secs);
	m->reply_lost = strikes(x->s, F_CREATE_LOST_MADE);
	answer.sandbox_id = m->id;
	/* it came twice: the second time its name is in use, and that answer is what gets back */
	if (strikes(x->s, F_CREATE_TWICE)) {
		m->reply_lost = true;
		modal_no(x, GRPC_ALREADY_EXISTS, "Sandbox with this name already exists.");
	} else if (m->reply_lost && x->s->now % 2)
		modal_no(x, x->s->now % 4 == 1 ? GRPC_INTERNAL : GRPC_UNAVAILABLE,
			 "internal error");
	else if (m->reply_lost)
		x->a->status = 0;
	else
		modal_yes(x, &answer.base);
}

static void sandbox_create(struct exchange *x)
{
	REQUEST(Modal__Client__SandboxCreateRequest, r, x,
		modal__client__sandbox_create_request__descriptor);
	const Modal__Client__Sandbox *d = r ? r->definition : NULL;
	const char *wrong = check_definition(d);
	struct create *intent = NULL;
	struct built image;

	if (!r)
		return;
	json_t *env = wrong ? NULL : json_object_get(x->v->secrets, d->secret_ids[0]);
	const char *attempt = plain(json_string_value(json_object_get(env, "BURST_ATTEMPT")));
	for (size_t i = 0; i < x->s->create_count; i++)
		if (!strcmp(x->s->creates[i].attempt, attempt))
			intent = &x->s->creates[i];
	int offer = wrong || !d->resources->gpu_config
			    ? -1
			    : offer_of(x, plain(d->resources->gpu_config->gpu_type));
	if (wrong || !env || !intent || offer < 0 || r->n_tags != 5) {
		modal_malformed(x, wrong ? wrong : "secret, attempt, gpu, tags");
		return;
	}
	if (d->n_volume_mounts &&
	    (!x->v->volumes || strcmp(plain(d->volume_mounts[0]->volume_id), VOLUME_ID) != 0)) {
		modal_malformed(x, "volume");
		return;
	}
	if (strikes(x->s, F_IMAGE_GONE))
		json_object_clear(x->v->images);
	if (!image_by_id(x, plain(d->image_id), &image)) {
		modal_no(x, GRPC_NOT_FOUND, "Image not found.");
		return;
	}
	if (image.at > x->s->now) {
		modal_malformed(x, "the image is not built");
		return;
	}
	if (name_is_used(x, d->name)) {
		modal_no(x, GRPC_ALREADY_EXISTS, "Sandbox with this name already exists.");
		return;
	}
	struct create c = *intent;
	c.offer = offer;
	c.hard_end_s = atoll(plain(json_string_value(json_object_get(env, "BURST_HARD_END"))));
	c.first_lease_end_s =
		atoll(plain(json_string_value(json_object_get(env, "BURST_FIRST_LEASE_END"))));
	c.late_start_s =
		atoll(plain(json_string_value(json_object_get(env, "BURST_LATE_START_S"))));
	if (refused(x, &c))
		return;
	if (x->s->now / 1000 != x->v->second_began) {
		x->v->second_began = x->s->now / 1000;
		x->v->second_creates = 0;
	}
	if (x->v->second_creates++ >= CREATES_PER_S)
		modal_no(x, GRPC_RESOURCE_EXHAUSTED, "Sandbox creation rate limit (5/s) exceeded");
	else
		make(x, &c, r, env);
}

/* ---- sandboxes: told ---- */

void modal_set_result(const struct machine *m, Modal__Client__GenericResult *to)
{
	to->has_status = true;
	if (m->life_over)
		to->status = 4;
	else if (m->evicted)
		to->status = 8;
	else if (m->preempted || m->release_asked >= 0)
		to->status = 3;
	else
		to->status = m->failed ? 5 : 1;
	to->exception = m->failed ? (char *)"failed to mount the image" : NULL;
}

double wire_modal_seconds(struct exchange *x, const struct machine *m, int64_t at)
{
	return (double)(WALL_EPOCH_MS + at) / 1000 + (double)(m - x->s->machines) * 1e-6;
}

static double made_at(struct exchange *x, const struct machine *m)
{
	return wire_modal_seconds(x, m, m->created);
}

static bool bears(const struct wired *w, const char *name, const char *value)
{
	const json_t *tag;
	size_t i;

	json_array_foreach (w->tags, i, tag)
		if (!strcmp(json_string_value(json_array_get(tag, 0)), name) &&
		    !strcmp(json_string_value(json_array_get(tag, 1)), value))
			return true;
	return false;
}

static bool is_row(struct exchange *x, const struct machine *m,
		   const Modal__Client__SandboxListRequest *r)
{
	if (m->is_over || !cloud_listed_now(x->s, m, x->v->vendor))
		return false;
	if (r->has_before_timestamp && !(made_at(x, m) < r->before_timestamp))
		return false;
	for (size_t i = 0; i < r->n_tags; i++)
		if (!bears(wire_of(x->s, m), plain(r->tags[i]->tag_name),
			   plain(r->tags[i]->tag_value)))
			return false;
	return true;
}

struct row_told {
	Modal__Client__SandboxInfo info;
	Modal__Client__SandboxTag tag[5], *tags[5];
	Modal__Client__TaskInfo task;
	Modal__Client__TunnelData tunnel, *tunnels[1];
};

static void set_tunnel(struct exchange *x, const struct machine *m, Modal__Client__TunnelData *to)
{
	modal__client__tunnel_data__init(to);
	to->host = (char *)"x.r5.modal.host";
	to->unencrypted_host = (char *)"r435.modal.host";
	to->has_port = to->has_unencrypted_port = to->has_container_port = true;
	to->port = 443;
	to->unencrypted_port = 10000 + (uint32_t)(m - x->s->machines) % 50000;
	to->container_port = 22;
}

static void tell_row(struct exchange *x, struct machine *m, struct row_told *to)
{
	const struct wired *w = wire_of(x->s, m);
	const json_t *tag;
	size_t i;

	modal__client__sandbox_info__init(&to->info);
	to->info.id = m->id;
	to->info.name = (char *)w->name;
	to->info.has_created_at = true;
	to->info.created_at = made_at(x, m);
	json_array_foreach (w->tags, i, tag) {
		modal__client__sandbox_tag__init(&to->tag[i]);
		to->tag[i].tag_name = (char *)json_string_value(json_array_get(tag, 0));
		to->tag[i].tag_value = (char *)json_string_value(json_array_get(tag, 1));
		to->tags[i] = &to->tag[i];
	}
	to->info.n_tags = json_array_size(w->tags);
	to->info.tags = to->tags;
	modal__client__task_info__init(&to->task);
	to->task.gpu_type = (char *)wire_gpus[m->offer / 2].modal;
	/* nobody has promised that it is */
	bool told = m->running && !(x->plan->vague && (m - x->s->machines) % 2);
	to->task.has_started_at = told;
	to->task.started_at = told ? wire_modal_seconds(x, m, m->runs_at) : 0;
	to->info.task_info = &to->task;
	if (m->running && !x->plan->vague) {
		set_tunnel(x, m, &to->tunnel);
		to->tunnels[0] = &to->tunnel;
		to->info.n_tunnels = 1;
		to->info.tunnels = to->tunnels;
	}
}

/* The newest first, a page at a time. */
static void sandbox_list(struct exchange *x)
{
	REQUEST(Modal__Client__SandboxListRequest, r, x,
		modal__client__sandbox_list_request__descriptor);
	Modal__Client__SandboxListResponse answer = MODAL__CLIENT__SANDBOX_LIST_RESPONSE__INIT;
	struct row_told told[8];
	Modal__Client__SandboxInfo *rows[8];

	if (!r)
		return;
	bool v2 = strstr(x->call->url, "SandboxListV2"), whole = !plain(r->app_id)[0];
	if (!whole && strcmp(r->app_id, APP_ID)) {
		modal_malformed(x, "app_id");
		return;
	}
	if (x->plan->lists == LISTS_NONE)
		x->s->unlisted_at[x->v->vendor] = x->s->now; /* whoever knows no id sees no pod */
	if (x->plan->lists == LISTS_NONE || (v2 && x->plan->lists == LISTS_V1) ||
	    (whole && x->plan->lists == LISTS_NOT_WHOLE)) {
		modal_no(x, v2 ? GRPC_UNIMPLEMENTED : GRPC_FAILED_PRECONDITION, "no such list");
		return;
	}
	switch ((int)cloud_list_fails(x->s, x->v->vendor, &x->a->delay_ms)) {
	case ERR_NONE: break;
	case ERR_RATE_LIMITED:
		modal_put_off(x->a, GRPC_RESOURCE_EXHAUSTED, "slower, please", 2);
		return;
	case ERR_CREDENTIALS: modal_no(x, GRPC_UNAUTHENTICATED, "no list for you"); return;
	default:
		modal_no(x, GRPC_UNAVAILABLE, "the connection to the backend was lost: 50% of it");
		return;
	}
	for (size_t i = x->s->machine_count;
	     i-- > 0 && answer.n_sandboxes < (size_t)x->plan->page_rows;) {
		struct machine *m = &x->s->machines[i];
		if (!is_row(x, m, r) || cloud_missed(x->s, m))
			continue;
		tell_row(x, m, &told[answer.n_sandboxes]);
		rows[answer.n_sandboxes] = &told[answer.n_sandboxes].info;
		answer.n_sandboxes++;
	}
	answer.sandboxes = rows;
	modal_yes(x, &answer.base);
}

static void sandbox_get_from_name(struct exchange *x)
{
	REQUEST(Modal__Client__SandboxGetFromNameRequest, r, x,
		modal__client__sandbox_get_from_name_request__descriptor);
	Modal__Client__SandboxGetFromNameResponse answer =
		MODAL__CLIENT__SANDBOX_GET_FROM_NAME_RESPONSE__INIT;

	if (!r)
		return;
	for (size_t i = 0; i < x->s->machine_count; i++) {
		const struct machine *m = &x->s->machines[i];
		if (m->vendor == x->v->vendor && !m->is_over &&
		    !strcmp(wire_of(x->s, m)->name, plain(r->sandbox_name)))
			answer.sandbox_id = (char *)m->id;
	}
	if (answer.sandbox_id)
		modal_yes(x, &answer.base);
	else
		modal_no(x, GRPC_NOT_FOUND, "no such sandbox");
}

static void sandbox_get_tunnels(struct exchange *x)
{
	REQUEST(Modal__Client__SandboxGetTunnelsRequest, r, x,
		modal__client__sandbox_get_tunnels_request__descriptor);
	Modal__Client__SandboxGetTunnelsResponse answer =
		MODAL__CLIENT__SANDBOX_GET_TUNNELS_RESPONSE__INIT;
	Modal__Client__GenericResult result = MODAL__CLIENT__GENERIC_RESULT__INIT;
	Modal__Client__TunnelData tunnel, *tunnels[] = {&tunnel};
	const struct machine *m = r ? wire_find(x->s, x->v->vendor, plain(r->sandbox_id)) : NULL;

	if (!r)
		return;
	result.has_status = true;
	answer.result = &result;
	if (!m || m->is_over) {
		modal_no(x, m && x->s->now % 2 ? GRPC_FAILED_PRECONDITION : GRPC_NOT_FOUND,
			 "Sandbox has already completed");
		return;
	}
	if (m->running) {
		result.status = 1;
		set_tunnel(x, m, &tunnel);
		answer.n_tunnels = 1;
		answer.tunnels = tunnels;
	} else {
		result.status = 4;
		x->a->delay_ms = (int64_t)(r->timeout * 1000);
	}
	modal_yes(x, &answer.base);
}

static void sandbox_wait(struct exchange *x)
{
	REQUEST(Modal__Client__SandboxWaitRequest, r, x,
		modal__client__sandbox_wait_request__descriptor);
	Modal__Client__SandboxWaitResponse answer = MODAL__CLIENT__SANDBOX_WAIT_RESPONSE__INIT;
	Modal__Client__GenericResult result = MODAL__CLIENT__GENERIC_RESULT__INIT;
	const struct machine *m = r ? wire_find(x->s, x->v->vendor, plain(r->sandbox_id)) : NULL;

	if (!r)
		return;
	if (!m || (m->visible > x->s->now && x->plan->forgets)) {
		modal_no(x, GRPC_NOT_FOUND, "Sandbox not found.");
		return;
	}
	if (m->is_over) {
		modal_set_result(m, &result);
		answer.result = &result;
	} else if (x->s->now % 2) { /* running: absent, or a status of 0 */
		answer.result = &result;
	}
	modal_yes(x, &answer.base);
}

static void sandbox_terminate(struct exchange *x)
{
	REQUEST(Modal__Client__SandboxTerminateRequest, r, x,
		modal__client__sandbox_terminate_request__descriptor);
	Modal__Client__SandboxTerminateResponse answer =
		MODAL__CLIENT__SANDBOX_TERMINATE_RESPONSE__INIT;
	Modal__Client__GenericResult result = MODAL__CLIENT__GENERIC_RESULT__INIT;
	struct machine *m = r ? wire_find(x->s, x->v->vendor, plain(r->sandbox_id)) : NULL;

	if (!r)
		return;
	if (!m || (m->visible > x->s->now && x->plan->forgets) ||
	    (!m->is_over && strikes(x->s, F_RELEASE_UNKNOWN))) {
		if (m)
			cloud_asked(x->s, m); /* it does not let go of it */
		modal_no(x, GRPC_NOT_FOUND, "Sandbox not found.");
		return;
	}
	if (m->is_over) {
		modal_set_result(m, &result);
		answer.existing_result = &result;
	}
	switch ((int)cloud_let_go(x->s, m, x->v->asked_by)) {
	case ERR_NONE: modal_yes(x, &answer.base); break;
	case ERR_NOT_FOUND:
		if (m->is_over)
			modal_yes(x, &answer.base);
		else
			modal_no(x, GRPC_NOT_FOUND, "Sandbox not found.");
		break;
	case ERR_RATE_LIMITED:
		modal_put_off(x->a, GRPC_RESOURCE_EXHAUSTED, "slower, please", 3);
		break;
	default: modal_no(x, GRPC_INTERNAL, "internal error"); break;
	}
	if (strikes(x->s, F_RELEASE_LOST))
		x->a->status = 0;
}

/* What the service says of it, on the stream INFO; the entrypoint's own words on STDOUT. */
static void sandbox_get_logs(struct exchange *x)
{
	REQUEST(Modal__Client__SandboxGetLogsRequest, r, x,
		modal__client__sandbox_get_logs_request__descriptor);
	const struct machine *m = r ? wire_find(x->s, x->v->vendor, plain(r->sandbox_id)) : NULL;

	if (!r)
		return;
	if (!m) {
		modal_no(x, GRPC_NOT_FOUND, "Sandbox not found.");
		return;
	}
	int64_t loaded_ms = m->never_runs ? 0 : MIN(x->s->now, m->runs_at) - m->created;
	modal_begin_head(x->a);
	for (int64_t i = 0; i <= MIN(loaded_ms / 4000, INT64_C(100)) && r->file_descriptor != 2;
	     i++) {
		Modal__Client__TaskLogsBatch batch = MODAL__CLIENT__TASK_LOGS_BATCH__INIT;
		Modal__Client__TaskLogs item = MODAL__CLIENT__TASK_LOGS__INIT, *items[] = {&item};
		if (r->file_descriptor == 1 && (!m->running || i))
			break;
		CLEANUP(free_text)
		char *line = r->file_descriptor == 1
				     ? xstrdup("burst: sshd is started\n")
				     : xasprintf("loading image, %lld\n", (long long)i);
		item.data = line;
		batch.n_items = 1;
		batch.items = items;
		modal_add_frame(x, &batch.base);
	}
	x->a->endless = !m->is_over;
	if (m->is_over)
		str_add(&x->a->head, "grpc-status: 0\r\n");
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
	{"SandboxCreate", sandbox_create, false},
	{"SandboxList", sandbox_list, false},
	{"SandboxListV2", sandbox_list, false},
	{"SandboxGetFromName", sandbox_get_from_name, false},
	{"SandboxGetTunnels", sandbox_get_tunnels, false},
	{"SandboxWait", sandbox_wait, false},
	{"SandboxTerminate", sandbox_terminate, false},
	{"SandboxGetLogs", sandbox_get_logs, true},
	{"WorkspaceBillingRates", billing_rates, false},
	{"VolumeGetOrCreate", volume_get_or_create, false},
	{"VolumeGetFile2", modal_get_file, false},
	{"VolumePutFiles2", modal_put_files, false},
	{"SandboxGetTaskId", modal_task_id, false},
	{"TaskGetInfo", modal_task_info, false},
	{"SandboxGetResourceUsage", modal_usage, false},
};

/* The one message in its frame. */
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
