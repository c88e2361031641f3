/* wire_modal_sandboxes.c - the sandboxes of Modal in memory: made, listed, waited for and ended. */
#include "wire_modal.h"

enum { CREATES_PER_S = 5, DAY_S = 86400 };

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

/* The first of that kind with room, or the first. */
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
	case ERR_BALANCE:
		modal_no(x, GRPC_FAILED_PRECONDITION, "Workspace is over its spend limit");
		break;
	case ERR_REFUSED:
		modal_no(x, GRPC_FAILED_PRECONDITION, "Sandboxes are disabled for this workspace");
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

	m->price = m->offered; /* no reply names its real price */
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
	/* it arrived twice: the second time its name is in use, and that is the reply */
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

void modal_sandbox_create(struct exchange *x)
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
	if (!modal_image_by_id(x, plain(d->image_id), &image)) {
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

void modal_set_result(const struct machine *m, Modal__Client__GenericResult *to)
{
	to->has_status = true;
	if (m->life_over)
		to->status = 4;
	else if (m->evicted)
		to->status = 8;
	else if (m->preempted || m->release_requested >= 0)
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

struct row_told {
	Modal__Client__SandboxInfo info;
	Modal__Client__SandboxTag tag[5], *tags[5];
	Modal__Client__TaskInfo task;
	Modal__Client__TunnelData tunnel, *tunnels[1];
};

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
	/* no contract promises this */
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

void modal_sandbox_list(struct exchange *x)
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
		x->s->unlisted_at[x->v->vendor] =
			x->s->now; /* a client that knows no id sees no pod */
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

void modal_sandbox_get_from_name(struct exchange *x)
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

void modal_sandbox_get_tunnels(struct exchange *x)
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

void modal_sandbox_wait(struct exchange *x)
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

void modal_sandbox_terminate(struct exchange *x)
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
			cloud_release_requested(x->s, m); /* it does not release it */
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

void modal_sandbox_get_logs(struct exchange *x)
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
