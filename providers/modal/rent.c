/* rent.c - a sandbox from nothing: the app, the version of the image builder, the image with sshd in it, a secret that carries
 * the environment, and at last the sandbox itself, which is the only step that costs money. */
#include "impl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/section.h"

enum {
	JOIN_S = 55,
	JOIN_PAUSE_MS = 500,
	BUILD_MOST_MS = 3600 * 1000,
	REBUILDS_MOST = 2,
	BROKEN_MOST = 3,
	MARGIN_S = 120,	  /* the pod ends itself at its hard end; the service a little later */
	LIFE_LEAST_S = 60,
	LIFE_MOST_S = 24 * 3600,
	ARGS_MOST = 65536,
	DETAIL_MOST = 300,
	TAGS = 5,
	LAYERS_MOST = 3,
};

enum { ASKED_APP = 1, ASKED_BUILDER, ASKED_IMAGE, ASKED_BUILT, BUILD_PAUSE, ASKED_SECRET, ASKED_SANDBOX };

static enum op_next bad(struct turn *t, enum err_kind kind, const char *what)
{
	err_set(t->err, kind, "create: %s", what);
	return OP_FAILED;
}

/* ---- the app ---- */

enum op_next modal_ask_app(struct turn *t, bool create)
{
	const struct section *conf = t->op->provider->conf;
	Modal__Client__AppGetOrCreateRequest request = MODAL__CLIENT__APP_GET_OR_CREATE_REQUEST__INIT;

	request.app_name = (char *)section_text(conf, "app");
	request.environment_name = (char *)section_text(conf, "environment");
	request.has_object_creation_type = create;
	request.object_creation_type = MODAL__CLIENT__OBJECT_CREATION_TYPE__OBJECT_CREATION_TYPE_CREATE_IF_MISSING;
	return modal_ask(t, CALL_POLL, "AppGetOrCreate", &request.base, 0);
}

int modal_take_app(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__AppGetOrCreateResponse, answer, t, "looking for the app",
		      modal__client__app_get_or_create_response__descriptor);

	if (!answer)
		return -1;
	if (!modal_id_is_sound(answer->app_id, "ap-"))
		return err_set(t->err, ERR_TRANSIENT, "looking for the app: the answer has no id that we can use");
	COPY_TEXT(t->op->provider->app_id, answer->app_id);
	return 0;
}

/* ---- the version of the image builder ---- */

static enum op_next ask_builder(struct turn *t)
{
	Modal__Client__EnvironmentGetOrCreateRequest request = MODAL__CLIENT__ENVIRONMENT_GET_OR_CREATE_REQUEST__INIT;

	request.deployment_name = (char *)section_text(t->op->provider->conf, "environment");
	return modal_ask(t, CALL_POLL, "EnvironmentGetOrCreate", &request.base, 0);
}

static int take_builder(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__EnvironmentGetOrCreateResponse, answer, t, "asking for the environment",
		      modal__client__environment_get_or_create_response__descriptor);
	const Modal__Client__EnvironmentSettings *settings = answer && answer->metadata ? answer->metadata->settings : NULL;
	const char *version = settings ? modal_text(settings->image_builder_version) : "";

	if (!answer)
		return -1;
	if (!*version || strlen(version) >= sizeof(t->op->provider->builder_version))
		return err_set(t->err, ERR_TRANSIENT,
			       "asking for the environment: it names no image builder (set MODAL_IMAGE_BUILDER_VERSION, as \"2025.06\")");
	COPY_TEXT(t->op->provider->builder_version, version);
	return 0;
}

/* ---- the image ---- */

/* A way to reach the pod is put into the image, so that it is built once and not installed at each start; where there is no apt
 * the start script looks for one. */
static const char install[] =
	"RUN if command -v apt-get >/dev/null; then apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "
	"--no-install-recommends openssh-server rsync ca-certificates curl && rm -f /etc/ssh/ssh_host_* && rm -rf "
	"/var/lib/apt/lists/*; fi; mkdir -p /run/sshd";

static enum op_next ask_image(struct turn *t)
{
	const struct rent_request *rent = &t->op->want->rent;
	const char *name = rent->image ? rent->image : section_text(t->op->provider->conf, "image");
	CLEANUP(free_text) char *from = xasprintf("FROM %s", name);
	char *layer[LAYERS_MOST] = {from, (char *)install, (char *)"ENTRYPOINT []"};
	Modal__Client__Image image = MODAL__CLIENT__IMAGE__INIT;
	Modal__Client__ImageGetOrCreateRequest request = MODAL__CLIENT__IMAGE_GET_OR_CREATE_REQUEST__INIT;

	for (const char *p = name; *p; p++)
		if (*p <= ' ' || *p >= 127)
			return bad(t, ERR_CONFIG, "pod.image is not the name of an image");
	image.n_dockerfile_commands = ARRAY_LEN(layer);
	image.dockerfile_commands = layer;
	request.image = &image;
	request.app_id = t->op->provider->app_id;
	request.builder_version = t->op->provider->builder_version;
	return modal_ask(t, CALL_POLL, "ImageGetOrCreate", &request.base, 0);
}

static enum op_next ask_built(struct turn *t)
{
	Modal__Client__ImageJoinStreamingRequest request = MODAL__CLIENT__IMAGE_JOIN_STREAMING_REQUEST__INIT;

	if (clock_boot_ms() - t->op->build_began_ms > BUILD_MOST_MS)
		return bad(t, ERR_TRANSIENT, "building the image takes too long");
	request.image_id = t->op->image_id;
	request.has_timeout = true;
	request.timeout = JOIN_S;
	request.last_entry_id = t->op->last_entry;
	t->op->step = ASKED_BUILT;
	return modal_ask_stream(t, "ImageJoinStreaming", &request.base, JOIN_S);
}

static enum op_next ask_secret(struct turn *t);

static enum op_next image_ended(struct turn *t, const Modal__Client__GenericResult *result)
{
	CLEANUP(str_free) struct str words = STR_INIT;

	if (result->status == MODAL__CLIENT__GENERIC_STATUS__GENERIC_STATUS_SUCCESS)
		return ask_secret(t);
	if (result->status == MODAL__CLIENT__GENERIC_STATUS__GENERIC_STATUS_TERMINATED && t->op->rebuilds++ < REBUILDS_MOST) {
		t->op->step = ASKED_IMAGE;
		return ask_image(t);
	}
	str_add(&words, "the image cannot be built");
	if (modal_text(result->exception)[0]) {
		str_add(&words, ": ");
		str_add_printable(&words, result->exception, strlen(result->exception), DETAIL_MOST);
	} else if (t->op->last_log.len) { /* what the build said last */
		str_addf(&words, ": %s", str_text(&t->op->last_log));
	}
	return bad(t, ERR_CONFIG, str_text(&words));
}

static enum op_next take_image(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__ImageGetOrCreateResponse, answer, t, "asking for the image",
		      modal__client__image_get_or_create_response__descriptor);

	if (!answer)
		return OP_FAILED;
	if (!modal_id_is_sound(answer->image_id, "im-"))
		return bad(t, ERR_TRANSIENT, "the answer about the image has no id that we can use");
	COPY_TEXT(t->op->image_id, answer->image_id);
	t->op->last_entry[0] = '\0';
	t->op->build_began_ms = clock_boot_ms();
	return answer->result && answer->result->status ? image_ended(t, answer->result) : ask_built(t);
}

static void keep_last_line(struct op *op, const char *text)
{
	size_t len = strlen(text), from;

	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' '))
		len--;
	for (from = len; from && text[from - 1] != '\n';)
		from--;
	if (len == from)
		return;
	str_reset(&op->last_log);
	str_add_printable(&op->last_log, text + from, len - from, DETAIL_MOST);
}

/* Each message of the stream; what the last one with a status says. */
static int32_t read_built(struct turn *t, enum op_next *what)
{
	const struct str *body = &t->reply->body;
	const void *message;
	size_t at = 0, len;
	int32_t status = 0;

	while (!status && modal_next_message(body, &at, &message, &len)) {
		Modal__Client__ImageJoinStreamingResponse *m = modal__client__image_join_streaming_response__unpack(NULL, len, message);
		if (!m)
			continue;
		for (size_t i = 0; i < m->n_task_logs; i++)
			if (!m->task_logs[i]->task_progress)
				keep_last_line(t->op, modal_text(m->task_logs[i]->data));
		if (modal_text(m->entry_id)[0] && strlen(m->entry_id) < sizeof(t->op->last_entry))
			COPY_TEXT(t->op->last_entry, m->entry_id);
		if (m->result && m->result->status) {
			status = m->result->status;
			*what = image_ended(t, m->result);
		}
		modal__client__image_join_streaming_response__free_unpacked(m, NULL);
	}
	return status;
}

static enum op_next take_built(struct turn *t)
{
	enum op_next what = OP_FAILED;

	if (read_built(t, &what))
		return what;
	/* a stream that broke is opened again where it ended, a few times in a row */
	if (modal_answered(t, "building the image") == 0)
		t->op->broken = 0;
	else if ((t->err->kind != ERR_NETWORK && t->err->kind != ERR_TRANSIENT) || ++t->op->broken > BROKEN_MOST)
		return OP_FAILED;
	err_clear(t->err);
	t->op->step = BUILD_PAUSE;
	return modal_wait(t, JOIN_PAUSE_MS);
}

/* ---- the environment ---- */

static enum op_next ask_secret(struct turn *t)
{
	const struct rent_request *rent = &t->op->want->rent;
	Modal__Client__SecretGetOrCreateRequest request = MODAL__CLIENT__SECRET_GET_OR_CREATE_REQUEST__INIT;
	Modal__Client__TextEntry *entries = xcalloc(rent->env_count + 1, sizeof(*entries));
	Modal__Client__TextEntry **list = xcalloc(rent->env_count + 1, sizeof(*list));

	for (size_t i = 0; i < rent->env_count; i++) {
		modal__client__text_entry__init(&entries[i]);
		entries[i].key = rent->env[i].name;
		entries[i].value = rent->env[i].value;
		list[i] = &entries[i];
	}
	request.environment_name = (char *)section_text(t->op->provider->conf, "environment");
	request.has_object_creation_type = true;
	request.object_creation_type = MODAL__CLIENT__OBJECT_CREATION_TYPE__OBJECT_CREATION_TYPE_EPHEMERAL;
	request.app_id = t->op->provider->app_id;
	request.n_env_dict = rent->env_count;
	request.env_dict = list;
	t->op->step = ASKED_SECRET;
	enum op_next what = modal_ask(t, CALL_POLL, "SecretGetOrCreate", &request.base, 0);
	free(entries);
	free(list);
	return what;
}

/* ---- the sandbox ---- */

/* "L40S:2", as modal_offer_write() wrote it; "CPU": none. */
static int read_offer(struct turn *t, char type[GPU_MAX], int *count)
{
	const char *id = t->op->want->rent.offer.id, *colon = strchr(id, ':');
	size_t len = colon ? (size_t)(colon - id) : strlen(id);

	*count = !colon ? 1 : colon[1] && !colon[2] ? colon[1] - '0' : 0;
	if (!len || len >= GPU_MAX || *count < 1 || *count > 8)
		return err_set(t->err, ERR_BUG, "\"%s\" is not an offer of ours", id);
	copy_text(type, len + 1, id);
	if (!strcmp(type, "CPU"))
		*count = 0;
	return 0;
}

static void set_resources(const struct rent_request *rent, Modal__Client__Resources *r)
{
	int64_t cores, memory_gb;

	modal_size(rent->cpu, rent->memory_gb, &cores, &memory_gb);
	r->has_milli_cpu = r->has_memory_mb = true;
	r->milli_cpu = (uint32_t)cores * 1000;
	r->memory_mb = (uint32_t)memory_gb * 1024;
	/* what is used beyond the request is billed: a pod must not cost more than its offer said */
	r->has_milli_cpu_max = true;
	r->milli_cpu_max = r->milli_cpu;
}

struct tags {
	Modal__Client__SandboxTag tag[TAGS], *list[TAGS];
	char end[24];
};

/* By these a sandbox is known for ours, without our ledger. */
static void set_tags(struct tags *tags, const struct marker *m)
{
	const char *const pairs[TAGS][2] = {{MODAL_TAG, "1"},
					    {MODAL_TAG_MACHINE, m->machine},
					    {MODAL_TAG_RUN, m->run},
					    {MODAL_TAG_ATTEMPT, m->attempt},
					    {MODAL_TAG_END, tags->end}};

	snprintf(tags->end, sizeof(tags->end), "%lld", (long long)m->hard_end_s);
	for (int i = 0; i < TAGS; i++) {
		modal__client__sandbox_tag__init(&tags->tag[i]);
		tags->tag[i].tag_name = (char *)pairs[i][0];
		tags->tag[i].tag_value = (char *)pairs[i][1];
		tags->list[i] = &tags->tag[i];
	}
}

/* The service's own end comes after the pod's: it is the last net under it. */
static uint32_t life_s(const struct rent_request *rent)
{
	int64_t left = rent->marker.hard_end_s - clock_wall_ms() / 1000 + MARGIN_S;

	return (uint32_t)MIN(MAX(left, (int64_t)LIFE_LEAST_S), (int64_t)LIFE_MOST_S);
}

static enum op_next ask_sandbox(struct turn *t, const char *secret_id)
{
	const struct rent_request *rent = &t->op->want->rent;
	const char *region = rent->offer.region;
	char *args[] = {(char *)"/bin/sh", (char *)"-c", (char *)rent->start_script}, *secrets[] = {(char *)secret_id},
	     *regions[] = {(char *)region}, gpu_type[GPU_MAX];
	Modal__Client__GPUConfig gpu = MODAL__CLIENT__GPUCONFIG__INIT;
	Modal__Client__Resources resources = MODAL__CLIENT__RESOURCES__INIT;
	Modal__Client__VolumeMount mount = MODAL__CLIENT__VOLUME_MOUNT__INIT, *mounts[] = {&mount};
	Modal__Client__PortSpec port = MODAL__CLIENT__PORT_SPEC__INIT, *ports[] = {&port};
	Modal__Client__PortSpecs open_ports = MODAL__CLIENT__PORT_SPECS__INIT;
	Modal__Client__SchedulerPlacement placement = MODAL__CLIENT__SCHEDULER_PLACEMENT__INIT;
	Modal__Client__NetworkAccess network = MODAL__CLIENT__NETWORK_ACCESS__INIT;
	Modal__Client__Sandbox sandbox = MODAL__CLIENT__SANDBOX__INIT;
	Modal__Client__SandboxCreateRequest request = MODAL__CLIENT__SANDBOX_CREATE_REQUEST__INIT;
	struct tags tags;
	int count;

	if (read_offer(t, gpu_type, &count) < 0)
		return OP_FAILED;
	if (strlen(rent->start_script) + 16 > ARGS_MOST)
		return bad(t, ERR_BUG, "the start script is longer than Modal takes");
	if (count) {
		gpu.has_count = true;
		gpu.count = (uint32_t)count;
		gpu.gpu_type = gpu_type;
	}
	set_resources(rent, &resources);
	resources.gpu_config = &gpu;
	mount.volume_id = (char *)rent->volume.id;
	mount.mount_path = (char *)(rent->mount ? rent->mount : "/workspace");
	mount.has_allow_background_commits = mount.allow_background_commits = true;
	port.has_port = port.has_unencrypted = port.unencrypted = true;
	port.port = 22;
	open_ports.n_ports = 1;
	open_ports.ports = ports;
	placement.n_regions = 1;
	placement.regions = regions;
	network.has_network_access_type = true;
	network.network_access_type = 1;
	set_tags(&tags, &rent->marker);

	sandbox.n_entrypoint_args = ARRAY_LEN(args);
	sandbox.entrypoint_args = args;
	sandbox.image_id = t->op->image_id;
	sandbox.n_secret_ids = 1;
	sandbox.secret_ids = secrets;
	sandbox.resources = &resources;
	sandbox.has_timeout_secs = true;
	sandbox.timeout_secs = life_s(rent);
	sandbox.n_volume_mounts = rent->volume.id[0] ? 1 : 0;
	sandbox.volume_mounts = mounts;
	sandbox.open_ports = &open_ports;
	sandbox.network_access = &network;
	sandbox.scheduler_placement = region[0] ? &placement : NULL; /* one that is named costs half as much again */
	sandbox.name = (char *)rent->name;
	request.app_id = t->op->provider->app_id;
	request.definition = &sandbox;
	request.n_tags = TAGS;
	request.tags = tags.list;
	t->op->step = ASKED_SANDBOX;
	return modal_ask(t, CALL_CREATE, "SandboxCreate", &request.base, 0);
}

static enum op_next take_secret(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__SecretGetOrCreateResponse, answer, t, "handing over the environment",
		      modal__client__secret_get_or_create_response__descriptor);

	if (!answer)
		return OP_FAILED;
	if (!modal_id_is_sound(answer->secret_id, "st-"))
		return bad(t, ERR_TRANSIENT, "the answer about the environment has no id that we can use");
	return ask_sandbox(t, answer->secret_id);
}

static enum op_next take_sandbox(struct turn *t)
{
	const struct rent_request *rent = &t->op->want->rent;
	MODAL_MESSAGE(Modal__Client__SandboxCreateResponse, answer, t, "create",
		      modal__client__sandbox_create_response__descriptor);

	if (!answer)
		return OP_FAILED;
	if (!modal_id_is_sound(answer->sandbox_id, "sb-"))
		return bad(t, ERR_AMBIGUOUS, "the answer has no id that we can use");
	struct pod_view *pod = modal_add_pod(t->op);
	COPY_TEXT(pod->id, answer->sandbox_id);
	COPY_TEXT(pod->name, rent->name);
	COPY_TEXT(pod->gpu, rent->offer.gpu);
	COPY_TEXT(pod->region, rent->offer.region);
	pod->marker = rent->marker;
	pod->state = POD_STATE_CREATING;
	pod->price_microusd_h = rent->offer.price_microusd_h;
	pod->created_at_s = clock_wall_ms() / 1000;
	modal_remember(t->op->provider, pod);
	return modal_done(t);
}

/* ---- one after the other ---- */

static enum op_next from_app(struct turn *t)
{
	if (!t->op->provider->app_id[0]) {
		t->op->step = ASKED_APP;
		return modal_ask_app(t, true);
	}
	if (!t->op->provider->builder_version[0]) {
		t->op->step = ASKED_BUILDER;
		return ask_builder(t);
	}
	t->op->step = ASKED_IMAGE;
	return ask_image(t);
}

enum op_next modal_rent_next(struct turn *t)
{
	char type[GPU_MAX];
	int count;

	switch (t->op->step) {
	case 0: return read_offer(t, type, &count) < 0 ? OP_FAILED : from_app(t);
	case ASKED_APP: return modal_take_app(t) < 0 ? OP_FAILED : from_app(t);
	case ASKED_BUILDER: return take_builder(t) < 0 ? OP_FAILED : from_app(t);
	case ASKED_IMAGE: return take_image(t);
	case ASKED_BUILT: return take_built(t);
	case BUILD_PAUSE: return ask_built(t);
	case ASKED_SECRET: return take_secret(t);
	case ASKED_SANDBOX: return take_sandbox(t);
	}
	return bad(t, ERR_BUG, "no such step");
}
