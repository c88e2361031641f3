/* rent.c - makes a sandbox: its image (image.c), a secret with the environment, then the sandbox,
 * the only step that costs money. */
#include "impl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/section.h"

enum {
	MARGIN_S = 120, /* the service ends a sandbox this long after the pod should have ended
			   itself */
	LIFE_LEAST_S = 60,
	LIFE_MOST_S = 24 * 3600,
	ARGS_MOST = 65536, /* bytes of all arguments */
	ARGS_SHELL = 16,   /* more than "/bin/sh" and "-c" take */
	NETWORK_OPEN = 1,  /* NetworkAccess.network_access_type */
	TAGS = 5,
};

enum { ASKED_SECRET = MODAL_IMAGE_STEPS, ASKED_SANDBOX };

static enum op_next fail_create(struct turn *t, enum err_kind kind, const char *what)
{
	return turn_fail(t, kind, "create: %s", what);
}

/* ---- the environment ---- */

/* Variables that the agent gets from this provider: which ones it hides from workers, and the
 * command that makes a volume durable (`sync FOLDER`, from Modal's documentation). */
static const struct {
	const char *name, *value;
} provider_env[] = {
	{"BURST_HIDE", "MODAL_TOKEN_ID MODAL_TOKEN_SECRET MODAL_TASK_SECRET"},
	{"BURST_SYNC_CMD", "sync"},
};

/* Puts the pod's environment into a secret: a sandbox takes variables from secrets alone. */
static enum op_next request_env_secret(struct turn *t)
{
	const struct rent_request *rent = &t->op->want->rent;
	Modal__Client__SecretGetOrCreateRequest request =
		MODAL__CLIENT__SECRET_GET_OR_CREATE_REQUEST__INIT;
	size_t count = rent->env_count + ARRAY_LEN(provider_env);
	Modal__Client__TextEntry *entries = xcalloc(count, sizeof(*entries));
	Modal__Client__TextEntry **list = xcalloc(count, sizeof(*list));

	for (size_t i = 0; i < count; i++) {
		bool own = i >= rent->env_count;
		size_t at = own ? i - rent->env_count : i;
		modal__client__text_entry__init(&entries[i]);
		entries[i].key = own ? (char *)provider_env[at].name : rent->env[at].name;
		entries[i].value = own ? (char *)provider_env[at].value : rent->env[at].value;
		list[i] = &entries[i];
	}
	request.environment_name = (char *)section_text(t->op->provider->conf, "environment");
	request.has_object_creation_type = true;
	request.object_creation_type =
		MODAL__CLIENT__OBJECT_CREATION_TYPE__OBJECT_CREATION_TYPE_EPHEMERAL;
	request.app_id = t->op->provider->app_id;
	request.n_env_dict = count;
	request.env_dict = list;
	t->op->step = ASKED_SECRET;
	enum op_next what = modal_call(t, CALL_POLL, "SecretGetOrCreate", &request.base, 0);
	free(entries);
	free(list);
	return what;
}

/* ---- the sandbox ---- */

/* Reads the id of an offer, as add_offer() of offers.c wrote it: "L40S:2"; "CPU": count 0. */
static int read_offer_id(struct turn *t, char type[GPU_MAX], int *count)
{
	const char *id = t->op->want->rent.offer.id, *colon = strchr(id, ':');
	size_t len = colon ? (size_t)(colon - id) : strlen(id);

	*count = !colon ? 1 : colon[1] && !colon[2] ? colon[1] - '0' : 0;
	if (!len || len >= GPU_MAX || *count < 1 || *count > MODAL_GPUS_MOST)
		return err_set(t->err, ERR_BUG, "\"%s\" is not an offer of burst's", id);
	copy_text(type, len + 1, id);
	if (!strcmp(type, "CPU"))
		*count = 0;
	return 0;
}

static void set_resources(const struct rent_request *rent, Modal__Client__Resources *r)
{
	int64_t cores, memory_gb;

	modal_sandbox_size(rent->cpu, rent->memory_gb, &cores, &memory_gb);
	r->has_milli_cpu = r->has_memory_mb = true;
	r->milli_cpu = (uint32_t)cores * 1000;
	r->memory_mb = (uint32_t)memory_gb * 1024;
	/* no more than the request: a pod must not cost more than its offer */
	r->has_milli_cpu_max = r->has_memory_mb_max = true;
	r->milli_cpu_max = r->milli_cpu;
	r->memory_mb_max = r->memory_mb;
}

struct tags {
	Modal__Client__SandboxTag tag[TAGS], *list[TAGS];
	char end[24];
};

/* Makes the tags that identify burst's sandboxes without a ledger. tags->list points into *tags. */
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

/* Converts the hard end to the monotonic clock, once: the wall clock may jump between calls. */
static void fix_hard_end(struct op *op)
{
	if (!op->hard_end_ms)
		op->hard_end_ms =
			op->want->rent.marker.hard_end_s * 1000 - clock_wall_ms() + clock_boot_ms();
}

/* The limit after which Modal ends the sandbox: a last safeguard, so it is after the hard end. */
static uint32_t sandbox_life_s(const struct op *op)
{
	int64_t left = (op->hard_end_ms - clock_boot_ms() + 999) / 1000 + MARGIN_S;

	return (uint32_t)MIN(MAX(left, (int64_t)LIFE_LEAST_S), (int64_t)LIFE_MOST_S);
}

static void set_volume_mount(const struct rent_request *rent, Modal__Client__VolumeMount *mount)
{
	mount->volume_id = (char *)rent->volume.id;
	mount->mount_path = (char *)(rent->mount ? rent->mount : "/workspace");
	mount->has_allow_background_commits = mount->allow_background_commits = true;
}

/* Opens sshd's port as plain TCP. */
static void set_sshd_port(Modal__Client__PortSpec *port)
{
	port->has_port = port->has_unencrypted = port->unencrypted = true;
	port->port = MODAL_SSHD_PORT;
}

static enum op_next request_sandbox(struct turn *t, const char *secret_id)
{
	const struct rent_request *rent = &t->op->want->rent;
	const char *region = rent->offer.region;
	char *args[] = {(char *)"/bin/sh", (char *)"-c", (char *)rent->start_script},
	     *secrets[] = {(char *)secret_id}, *regions[] = {(char *)region}, gpu_type[GPU_MAX];
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

	if (read_offer_id(t, gpu_type, &count) < 0)
		return OP_FAILED;
	if (strlen(rent->start_script) + ARGS_SHELL > ARGS_MOST)
		return fail_create(t, ERR_BUG, "the start script is longer than Modal's limit");
	if (count) {
		gpu.has_count = true;
		gpu.count = (uint32_t)count;
		gpu.gpu_type = gpu_type;
	}
	set_resources(rent, &resources);
	resources.gpu_config = &gpu;
	set_volume_mount(rent, &mount);
	set_sshd_port(&port);
	open_ports.n_ports = 1;
	open_ports.ports = ports;
	placement.n_regions = 1;
	placement.regions = regions;
	network.has_network_access_type = true;
	network.network_access_type = NETWORK_OPEN;
	set_tags(&tags, &rent->marker);

	sandbox.n_entrypoint_args = ARRAY_LEN(args);
	sandbox.entrypoint_args = args;
	sandbox.image_id = t->op->image_id;
	sandbox.n_secret_ids = 1;
	sandbox.secret_ids = secrets;
	sandbox.resources = &resources;
	sandbox.has_timeout_secs = true;
	sandbox.timeout_secs = sandbox_life_s(t->op);
	sandbox.n_volume_mounts = rent->volume.id[0] ? 1 : 0;
	sandbox.volume_mounts = mounts;
	sandbox.open_ports = &open_ports;
	sandbox.network_access = &network;
	/* a fixed region costs half as much again */
	sandbox.scheduler_placement = region[0] ? &placement : NULL;
	sandbox.name = (char *)rent->name;
	request.app_id = t->op->provider->app_id;
	request.definition = &sandbox;
	request.n_tags = TAGS;
	request.tags = tags.list;
	t->op->step = ASKED_SANDBOX;
	return modal_call(t, CALL_CREATE, "SandboxCreate", &request.base, 0);
}

static enum op_next on_secret_reply(struct turn *t)
{
	MODAL_MESSAGE(Modal__Client__SecretGetOrCreateResponse, answer, t,
		      "handing over the environment",
		      modal__client__secret_get_or_create_response__descriptor);

	if (!answer)
		return OP_FAILED;
	if (!modal_id_is_sound(answer->secret_id, "st-"))
		return fail_create(t, ERR_TRANSIENT,
				   "the answer about the environment has no usable id");
	return request_sandbox(t, answer->secret_id);
}

/* Changes the error of a create to ERR_NO_CAPACITY if the GPU or the account's quota is used up:
 * then another GPU may be free. Modal uses the same status for a limit on the rate of creates, but
 * names a time or rate with it. */
static void recognize_no_capacity(struct turn *t)
{
	const struct reply *r = t->reply;

	if (!r->failed && !r->sent_before && t->err->kind != ERR_BALANCE &&
	    r->grpc_status == STATUS_RESOURCE_EXHAUSTED && !r->retry_after_ms &&
	    !strcasestr(r->err.msg, "rate limit"))
		t->err->kind = ERR_NO_CAPACITY;
}

/* The next listings look for the sandbox by its name. */
static void remember_lost_create(struct turn *t)
{
	struct provider *p = t->op->provider;
	size_t at = p->next_lost++ % ARRAY_LEN(p->lost);

	COPY_TEXT(p->lost[at].name, t->op->want->rent.name);
	p->lost[at].marker = t->op->want->rent.marker;
}

static enum op_next on_sandbox_reply(struct turn *t)
{
	const struct rent_request *rent = &t->op->want->rent;
	MODAL_MESSAGE(Modal__Client__SandboxCreateResponse, answer, t, "create",
		      modal__client__sandbox_create_response__descriptor);

	if (!answer) {
		recognize_no_capacity(t);
		if (t->err->kind == ERR_AMBIGUOUS)
			remember_lost_create(t);
		return t->err->kind == ERR_NOT_FOUND ? modal_recheck_image(t) : OP_FAILED;
	}
	if (!modal_id_is_sound(answer->sandbox_id, "sb-"))
		return fail_create(t, ERR_AMBIGUOUS, "the answer has no usable id");
	struct pod_view *pod = op_result_add_pod(&t->op->got);
	COPY_TEXT(pod->id, answer->sandbox_id);
	COPY_TEXT(pod->name, rent->name);
	COPY_TEXT(pod->gpu, rent->offer.gpu);
	COPY_TEXT(pod->region, rent->offer.region);
	pod->marker = rent->marker;
	pod->state = POD_STATE_QUEUED; /* Modal answers before the sandbox has a machine */
	pod->price_microusd_h = rent->offer.price_microusd_h;
	pod->created_at_s = clock_wall_ms() / 1000;
	modal_remember(t->op->provider, pod);
	return modal_done(t);
}

/* ---- the sequence of steps ---- */

enum op_next modal_rent_next(struct turn *t)
{
	char type[GPU_MAX];
	int count;

	fix_hard_end(t->op);
	if (!t->op->step && read_offer_id(t, type, &count) < 0)
		return OP_FAILED;
	switch (t->op->step) {
	case ASKED_SECRET: return on_secret_reply(t);
	case ASKED_SANDBOX: return on_sandbox_reply(t);
	}
	enum op_next what = modal_image_next(t);
	return what == OP_DONE ? request_env_secret(t) : what;
}
