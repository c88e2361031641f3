/* pods.c - sandboxes that exist: listed, looked at, ended; their logs. */
#include "impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/section.h"

enum {
	PAGES_MOST = 200,
	/* How long one look for an address may take, if there are several. It is asked again with
	 * the next listing. */
	TUNNEL_S = 1,
	/* the same if one sandbox alone is coming up: its address is reported as soon as there is
	 * one */
	TUNNEL_ALONE_S = 5,
	TUNNELS_MOST = 16, /* of one listing */
	/* of one listing: looks for sandboxes that it does not show as running */
	EARLY_MOST = 4,
	EARLY_GAP_MS = 5000, /* between two such looks for the same sandbox */
	/* no such question before, where the list does not tell whether it has a task */
	UNSCHEDULED_MS = 10000,
	TASKS_MOST = 32, /* of one listing: sandboxes that may be queued */
	LOGS_S = 5,
	LOG_MOST = 64 << 10,
};
/* of a listing */
enum {
	ASKED_LIST_APP = 1,
	ASKED_PAGE,
	ASKED_LOST,
	ASKED_MISSING,
	ASKED_MISSING_TASK,
	ASKED_MISSING_INFO,
	ASKED_LAST_TASK,
	ASKED_TASK,
	ASKED_TUNNELS
};

struct pod_view *modal_add_pod(struct op *op)
{
	op->got.pods = xrealloc(op->got.pods, (op->got.pod_count + 1) * sizeof(*op->got.pods));
	struct pod_view *pod = &op->got.pods[op->got.pod_count++];

	*pod = (struct pod_view){0};
	return pod;
}

/* ---- those that are known ---- */

static struct known *known_of(struct provider *p, const char *id)
{
	for (size_t i = 0; i < ARRAY_LEN(p->known); i++)
		if (!strcmp(p->known[i].view.id, id))
			return &p->known[i];
	return NULL;
}

void modal_remember(struct provider *p, const struct pod_view *view)
{
	struct known *k = known_of(p, view->id);
	char gpu[GPU_MAX] = "";

	if (k) {
		COPY_TEXT(gpu, k->view.gpu);
	} else {
		k = &p->known[p->next_known++ % ARRAY_LEN(p->known)];
		*k = (struct known){.seen_ms = clock_boot_ms()};
	}
	k->view = *view;
	k->queued = k->queued || view->state == POD_STATE_QUEUED;
	if (!view->gpu[0])
		COPY_TEXT(k->view.gpu, gpu);
}

/* ---- addresses ---- */

static struct address *address_of(struct provider *p, const char *id)
{
	for (size_t i = 0; i < ARRAY_LEN(p->addresses); i++)
		if (!strcmp(p->addresses[i].id, id))
			return &p->addresses[i];
	return NULL;
}

/* The raw way to port 22, if these tunnels have one. It does not change while the sandbox lives. */
static void take_tunnels(struct provider *p, struct pod_view *view,
			 Modal__Client__TunnelData *const *tunnels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *host = modal_text(tunnels[i]->unencrypted_host);
		uint32_t port = tunnels[i]->unencrypted_port;
		if (tunnels[i]->container_port != 22 || !*host ||
		    strlen(host) >= sizeof(view->host) || !port || port > 65535)
			continue;
		struct address *a = &p->addresses[p->next_address++ % ARRAY_LEN(p->addresses)];
		COPY_TEXT(a->id, view->id);
		COPY_TEXT(a->host, host);
		a->port = (int)port;
		return;
	}
}

static void set_address(struct provider *p, struct pod_view *view)
{
	const struct address *a = address_of(p, view->id);

	if (!a || view->state == POD_STATE_GONE)
		return;
	view->state = POD_STATE_RUNNING;
	COPY_TEXT(view->host, a->host);
	COPY_TEXT(view->user, "root");
	view->port = a->port;
}

static enum op_next ask_tunnels(struct turn *t, const char *id, int most_s)
{
	Modal__Client__SandboxGetTunnelsRequest request =
		MODAL__CLIENT__SANDBOX_GET_TUNNELS_REQUEST__INIT;

	request.sandbox_id = (char *)id;
	request.has_timeout = true;
	request.timeout = (float)most_s;
	return modal_ask(t, CALL_POLL, "SandboxGetTunnels", &request.base, most_s);
}

/* Not up yet, ended meanwhile: nothing to wonder at, the next look says so. */
static int read_tunnels(struct turn *t, struct pod_view *view)
{
	MODAL_MESSAGE(Modal__Client__SandboxGetTunnelsResponse, answer, t,
		      "asking for a sandbox's address",
		      modal__client__sandbox_get_tunnels_response__descriptor);

	if (!answer) {
		bool passes = t->err->kind != ERR_CREDENTIALS && t->err->kind != ERR_BUG;
		if (passes)
			err_clear(t->err);
		return passes ? 0 : -1;
	}
	take_tunnels(t->op->provider, view, answer->tunnels, answer->n_tunnels);
	return 0;
}

/* ---- reading ---- */

static const char *tag(Modal__Client__SandboxTag *const *tags, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(modal_text(tags[i]->tag_name), name))
			return modal_text(tags[i]->tag_value);
	return "";
}

static void read_marker(Modal__Client__SandboxTag *const *tags, size_t count, struct marker *out)
{
	(void)marker_read(out, tag(tags, count, MODAL_TAG_MACHINE), tag(tags, count, MODAL_TAG_RUN),
			  tag(tags, count, MODAL_TAG_ATTEMPT), tag(tags, count, MODAL_TAG_END));
}

static int64_t seconds(double at)
{
	return at > 0 && at < EPOCH_MOST_S ? (int64_t)at : 0;
}

/* Modal has no word for "preempted": a sandbox that it takes back is terminated, like one that a
 * client ends. Only those with GPUs are taken back, and those whose end we asked for were not. */
static bool was_taken_back(struct provider *p, const struct pod_view *view)
{
	const struct known *k = known_of(p, view->id);
	const char *gpu = view->gpu[0] || !k ? view->gpu : k->view.gpu;

	return view->end == POD_END_OUTSIDE && *gpu && strcmp(gpu, "none") != 0 && !(k && k->ours);
}

/* How it ended, for the core and for people. */
static void set_ended(struct provider *p, struct pod_view *view,
		      const Modal__Client__GenericResult *result)
{
	static const struct {
		enum pod_end end;
		const char *words;
	} ends[] = {
		{POD_END_UNKNOWN, "it ended"},
		{POD_END_SCRIPT, "its start script ended"},
		{POD_END_SCRIPT, "its start script failed"},
		{POD_END_OUTSIDE, "it was terminated"},
		{POD_END_LIFETIME, "its lifetime ended"},
		{POD_END_SETUP, "it could not be set up"},
		{POD_END_VENDOR, "Modal's own failure"},
		{POD_END_IDLE, "it was idle too long"},
		{POD_END_MEMORY, "it used more memory than it has: raise pod.memory_gb"},
	};
	int status =
		result->status > 0 && result->status < (int)ARRAY_LEN(ends) ? result->status : 0;
	CLEANUP(str_free) struct str detail = STR_INIT;

	view->state = POD_STATE_GONE;
	view->end = ends[status].end;
	view->preempted = was_taken_back(p, view);
	str_add(&detail, ends[status].words);
	if (view->preempted)
		str_add(&detail,
			", and not by burst: Modal reclaims sandboxes with GPUs when it needs "
			"them");
	if (result->exitcode)
		str_addf(&detail, " (exit code %d)", result->exitcode);
	if (modal_text(result->exception)[0]) {
		str_add(&detail, ": ");
		str_add_printable(&detail, result->exception, strlen(result->exception), 120);
	}
	COPY_TEXT(view->detail, str_text(&detail));
}

/* Modal may give a better GPU than was asked for, at the same price: gpu_type is the one it has. */
static void read_gpu(struct pod_view *view, const Modal__Client__TaskInfo *task)
{
	const char *type = modal_text(task->gpu_type);

	if (!*type && task->gpu_config)
		type = modal_text(task->gpu_config->gpu_type);
	const struct gpu *gpu = *type ? gpu_find(type) : NULL;
	if (*type)
		COPY_TEXT(view->gpu, gpu ? gpu->name : type);
}

static void read_task(struct provider *p, struct pod_view *view,
		      const Modal__Client__TaskInfo *task)
{
	if (!task)
		return;
	view->started_at_s = seconds(task->started_at);
	view->ended_at_s = seconds(task->finished_at);
	read_gpu(view, task);
	if (view->started_at_s)
		view->state = POD_STATE_RUNNING;
	if (task->result && task->result->status)
		set_ended(p, view, task->result);
	else if (view->ended_at_s)
		view->state = POD_STATE_GONE;
}

/* ---- listing ---- */

/* The sandboxes of our app that bear our tag and have not ended; newest first, page by page. A page
 * begins with the last row of the one before, so that none of the same moment is lost between them:
 * what is not listed is taken for gone. Modal's own client lists with SandboxListV2; SandboxList is
 * the older call for it. */
static enum op_next ask_page(struct turn *t)
{
	struct op *op = t->op;
	Modal__Client__SandboxTag ours = MODAL__CLIENT__SANDBOX_TAG__INIT, *tags[] = {&ours};
	Modal__Client__SandboxListRequest request = MODAL__CLIENT__SANDBOX_LIST_REQUEST__INIT;

	if (op->pages++ == PAGES_MOST) {
		err_set(t->err, ERR_BUG, "listing sandboxes: Modal's list does not end");
		return OP_FAILED;
	}
	ours.tag_name = (char *)MODAL_TAG;
	ours.tag_value = (char *)"1";
	request.n_tags = 1;
	request.tags = tags;
	request.app_id = op->sweeping ? NULL : op->provider->app_id;
	request.environment_name = (char *)section_text(op->provider->conf, "environment");
	request.has_before_timestamp = op->before > 0;
	request.before_timestamp = nextafter(op->before, INFINITY);
	op->step = ASKED_PAGE;
	return modal_ask(t, CALL_POLL,
			 op->sweeping || op->provider->lists_v1 ? "SandboxList" : "SandboxListV2",
			 &request.base, 0);
}

static bool is_listed(const struct op *op, const char *id)
{
	for (size_t i = 0; i < op->got.pod_count; i++)
		if (!strcmp(op->got.pods[i].id, id))
			return true;
	return false;
}

static int read_row(struct turn *t, const Modal__Client__SandboxInfo *info)
{
	struct marker marker = {0};

	read_marker(info->tags, info->n_tags, &marker);
	if (!marker.attempt[0] || (info->id && is_listed(t->op, info->id)))
		return 0;
	if (!modal_id_is_sound(info->id, "sb-"))
		return err_set(t->err, ERR_TRANSIENT, "listing sandboxes: one has no usable id");
	struct pod_view *view = modal_add_pod(t->op);
	COPY_TEXT(view->id, info->id);
	COPY_TEXT(view->name, modal_text(info->name));
	view->marker = marker;
	view->state =
		info->ready_at > 0 || info->n_tunnels ? POD_STATE_RUNNING : POD_STATE_CREATING;
	view->created_at_s = seconds(info->created_at);
	if (info->n_regions == 1)
		COPY_TEXT(view->region, modal_text(info->regions[0]));
	read_task(t->op->provider, view, info->task_info);
	if (strcmp(modal_text(info->app_id), t->op->provider->app_id) && t->op->sweeping)
		return 0; /* of another app: that the next list does not have it is no news */
	modal_remember(t->op->provider, view);
	struct known *k = known_of(t->op->provider, view->id);
	k->scheduled = k->scheduled || (info->task_info && modal_text(info->task_info->id)[0]) ||
		       view->state == POD_STATE_RUNNING;
	if (!address_of(t->op->provider, view->id))
		take_tunnels(t->op->provider, view, info->tunnels, info->n_tunnels);
	return 0;
}

/* Not now or later: INVALID_ARGUMENT, PERMISSION_DENIED, FAILED_PRECONDITION, UNIMPLEMENTED. */
static bool is_refused(const struct reply *r)
{
	return !r->failed && (r->grpc_status == 3 || r->grpc_status == 7 || r->grpc_status == 9 ||
			      r->grpc_status == 12);
}

/* Whether there may be more: 1, 0, or -1. */
static int read_page(struct turn *t)
{
	double oldest = t->op->before;
	MODAL_MESSAGE(Modal__Client__SandboxListResponse, answer, t, "listing sandboxes",
		      modal__client__sandbox_list_response__descriptor);

	if (!answer)
		return -1;
	for (size_t i = 0; i < answer->n_sandboxes; i++) {
		const Modal__Client__SandboxInfo *info = answer->sandboxes[i];
		if (read_row(t, info) < 0)
			return -1;
		if (info->created_at > 0 && (oldest <= 0 || info->created_at < oldest))
			oldest = info->created_at;
	}
	if (!answer->n_sandboxes || (t->op->before > 0 && !(oldest < t->op->before)))
		return 0;
	if (oldest <= 0)
		return err_set(
			t->err, ERR_TRANSIENT,
			"listing sandboxes: the rows of Modal's list have no times to continue "
			"from");
	t->op->before = oldest;
	return 1;
}

/* ---- is it queued? ---- */

static enum op_next ask_task(struct turn *t, const char *id)
{
	Modal__Client__SandboxGetTaskIdRequest request =
		MODAL__CLIENT__SANDBOX_GET_TASK_ID_REQUEST__INIT;

	request.sandbox_id = (char *)id;
	return modal_ask(t, CALL_POLL, "SandboxGetTaskId", &request.base, 0);
}

enum op_next modal_ask_task(struct turn *t)
{
	return ask_task(t, t->op->want->id);
}

/* Only a sandbox that was placed on a machine has a task. */
static int take_listed_task(struct turn *t, struct pod_view *view)
{
	struct known *k = known_of(t->op->provider, view->id);
	MODAL_MESSAGE(Modal__Client__SandboxGetTaskIdResponse, answer, t,
		      "asking whether a sandbox is queued",
		      modal__client__sandbox_get_task_id_response__descriptor);

	if (!answer) {
		if (t->err->kind == ERR_CREDENTIALS || t->err->kind == ERR_BUG)
			return -1;
		/* it does not tell, now or later */
		if (t->err->kind == ERR_REFUSED || t->err->kind == ERR_NOT_FOUND)
			k->queued = false;
		err_clear(t->err);
		return 0;
	}
	k->scheduled = modal_text(answer->task_id)[0];
	k->queued = !k->scheduled;
	return 0;
}

/* The next of those listed that may be queued. */
static enum op_next next_address(struct turn *t);
static enum op_next next_task(struct turn *t)
{
	struct op *op = t->op;

	for (; op->looked_task < op->got.pod_count && op->asked_tasks < TASKS_MOST;
	     op->looked_task++) {
		const struct pod_view *view = &op->got.pods[op->looked_task];
		const struct known *k = known_of(op->provider, view->id);
		if (!k || k->scheduled || view->state != POD_STATE_CREATING)
			continue;
		op->asked_tasks++;
		return ask_task(t, view->id);
	}
	for (size_t i = 0; i < op->got.pod_count; i++) {
		struct pod_view *view = &op->got.pods[i];
		const struct known *k = known_of(op->provider, view->id);
		if (k && k->queued && !k->scheduled && view->state == POD_STATE_CREATING)
			view->state = POD_STATE_QUEUED;
	}
	op->step = ASKED_TUNNELS;
	return next_address(t);
}

/* ---- how it is now ---- */

static enum op_next ask_wait(struct turn *t, const char *id)
{
	Modal__Client__SandboxWaitRequest request = MODAL__CLIENT__SANDBOX_WAIT_REQUEST__INIT;

	request.sandbox_id = (char *)id;
	request.has_timeout = true; /* 0: as it is now */
	return modal_ask(t, CALL_POLL, "SandboxWait", &request.base, 0);
}

static int take_wait(struct turn *t, struct pod_view *view)
{
	MODAL_MESSAGE(Modal__Client__SandboxWaitResponse, answer, t, "looking at a sandbox",
		      modal__client__sandbox_wait_response__descriptor);

	if (!answer && t->err->kind != ERR_NOT_FOUND)
		return -1;
	if (!answer) {
		err_clear(t->err);
		view->state = POD_STATE_GONE;
		COPY_TEXT(view->detail, "Modal does not know this sandbox");
	} else if (answer->result && answer->result->status) {
		set_ended(t->op->provider, view, answer->result);
	}
	return 0;
}

/* ---- listing, the end of it ---- */

static struct known *known_at(const struct op *op)
{
	return &op->provider->known[op->looked_known];
}

/* The next of those that are known and not listed: they have ended, or the list is wrong. What has
 * ended once stays so. */
static enum op_next next_missing(struct turn *t)
{
	struct op *op = t->op;

	for (; op->looked_known < ARRAY_LEN(op->provider->known); op->looked_known++) {
		const struct pod_view *view = &known_at(op)->view;
		if (!view->id[0] || is_listed(op, view->id))
			continue;
		if (view->state != POD_STATE_GONE)
			return ask_wait(t, view->id);
		*modal_add_pod(op) = *view;
	}
	op->step = ASKED_TASK;
	return next_task(t);
}

static enum op_next missing_is_seen(struct turn *t)
{
	struct pod_view *view = modal_add_pod(t->op);

	*view = known_at(t->op)->view;
	if (view->state == POD_STATE_QUEUED)
		view->state = POD_STATE_CREATING; /* whether it still is, is asked next */
	t->op->looked_known++;
	t->op->step = ASKED_MISSING;
	return next_missing(t);
}

/* It was ended from outside, or by its lifetime, and no task of it was ever seen: it may have been
 * queued all the time. */
static bool may_have_been_queued(const struct known *k)
{
	return !k->scheduled && k->view.state == POD_STATE_GONE && !k->view.started_at_s &&
	       (k->view.end == POD_END_UNKNOWN || k->view.end == POD_END_OUTSIDE ||
		k->view.end == POD_END_LIFETIME);
}

/* Where SandboxWait is refused, its task tells whether it has ended. What is refused as well says
 * nothing, so it is taken to live. */
static enum op_next take_missing_task(struct turn *t)
{
	struct known *k = known_at(t->op);
	Modal__Client__TaskGetInfoRequest request = MODAL__CLIENT__TASK_GET_INFO_REQUEST__INIT;
	MODAL_MESSAGE(Modal__Client__SandboxGetTaskIdResponse, answer, t, "looking at a sandbox",
		      modal__client__sandbox_get_task_id_response__descriptor);

	if (!answer && !is_refused(t->reply))
		return OP_FAILED;
	err_clear(t->err);
	if (answer && answer->task_result && answer->task_result->status) {
		set_ended(t->op->provider, &k->view, answer->task_result);
	} else if (answer && modal_text(answer->task_id)[0]) {
		request.task_id = answer->task_id;
		t->op->step = ASKED_MISSING_INFO;
		return modal_ask(t, CALL_POLL, "TaskGetInfo", &request.base, 0);
	}
	return missing_is_seen(t);
}

static enum op_next take_missing_info(struct turn *t)
{
	struct known *k = known_at(t->op);
	MODAL_MESSAGE(Modal__Client__TaskGetInfoResponse, answer, t, "looking at a sandbox",
		      modal__client__task_get_info_response__descriptor);

	if (!answer && !is_refused(t->reply))
		return OP_FAILED;
	err_clear(t->err);
	k->scheduled = true;
	read_task(t->op->provider, &k->view, answer ? answer->info : NULL);
	return missing_is_seen(t);
}

static enum op_next take_missing(struct turn *t)
{
	struct known *k = known_at(t->op);

	/* so soon after its birth that may be no proof */
	if (!t->reply->failed && t->reply->grpc_status == 5) {
		k->view.id[0] = '\0';
		t->op->looked_known++;
		return next_missing(t);
	}
	if (is_refused(t->reply)) {
		err_clear(t->err);
		t->op->step = ASKED_MISSING_TASK;
		return ask_task(t, k->view.id);
	}
	if (take_wait(t, &k->view) < 0)
		return OP_FAILED;
	if (!may_have_been_queued(k))
		return missing_is_seen(t);
	t->op->step = ASKED_LAST_TASK;
	return ask_task(t, k->view.id);
}

/* What ended without a task was never placed. */
static enum op_next take_last_task(struct turn *t)
{
	struct known *k = known_at(t->op);
	MODAL_MESSAGE(Modal__Client__SandboxGetTaskIdResponse, answer, t,
		      "asking whether a sandbox was queued",
		      modal__client__sandbox_get_task_id_response__descriptor);

	if (answer && !modal_text(answer->task_id)[0] && answer->task_result &&
	    answer->task_result->status) {
		k->view.end = POD_END_QUEUED;
		k->view.preempted = false;
		COPY_TEXT(k->view.detail,
			  "it ended while it was queued: Modal had no machine for it");
	}
	/* a figure that is not had is no reason to fail: what it has cost is then taken for more */
	err_clear(t->err);
	return missing_is_seen(t);
}

/* When a sandbox runs the list may well not say (no client of Modal's goes by started_at): it has
 * an address then, and is asked for it every now and then. */
static bool is_worth_a_try(struct op *op, const struct pod_view *view)
{
	struct known *k = known_of(op->provider, view->id);
	int64_t now = clock_boot_ms();

	if (!k || view->state != POD_STATE_CREATING || op->asked_early == EARLY_MOST ||
	    now < k->asked_ms + EARLY_GAP_MS ||
	    (!k->scheduled && now < k->seen_ms + UNSCHEDULED_MS))
		return false;
	k->asked_ms = now;
	op->asked_early++;
	return true;
}

/* It is the only one that is listed: no other sandbox's look waits for its address. */
static bool is_alone(const struct op *op)
{
	return op->got.pod_count == 1;
}

/* How long Modal may wait for the address of this one. News of it (it has a task now) is told at
 * once. */
static int tunnel_patience_s(const struct op *op, const struct pod_view *view)
{
	struct known *k = known_of(op->provider, view->id);
	bool news = !k || k->told != view->state;

	if (k)
		k->told = view->state;
	return is_alone(op) && !news ? TUNNEL_ALONE_S : TUNNEL_S;
}

/* The next of those listed whose way in is not known yet. */
static enum op_next next_address(struct turn *t)
{
	struct op *op = t->op;

	for (; op->looked < op->got.pod_count && op->asked_tunnels < TUNNELS_MOST; op->looked++) {
		struct pod_view *view = &op->got.pods[op->looked];
		if (address_of(op->provider, view->id))
			continue;
		if (view->state == POD_STATE_RUNNING || is_worth_a_try(op, view)) {
			op->asked_tunnels++;
			return ask_tunnels(t, view->id, tunnel_patience_s(op, view));
		}
	}
	for (size_t i = 0; i < op->got.pod_count; i++)
		set_address(op->provider, &op->got.pods[i]);
	return modal_done(t);
}

static enum op_next pages_are_read(struct turn *t)
{
	t->op->step = ASKED_MISSING;
	return next_missing(t);
}

/* ---- without a list: creates whose answers were lost ---- */

static enum op_next next_lost(struct turn *t)
{
	struct op *op = t->op;
	Modal__Client__SandboxGetFromNameRequest request =
		MODAL__CLIENT__SANDBOX_GET_FROM_NAME_REQUEST__INIT;

	while (op->looked_lost < ARRAY_LEN(op->provider->lost) &&
	       !op->provider->lost[op->looked_lost].name[0])
		op->looked_lost++;
	if (op->looked_lost == ARRAY_LEN(op->provider->lost))
		return pages_are_read(t);
	request.sandbox_name = op->provider->lost[op->looked_lost].name;
	request.app_name = (char *)section_text(op->provider->conf, "app");
	request.environment_name = (char *)section_text(op->provider->conf, "environment");
	op->step = ASKED_LOST;
	return modal_ask(t, CALL_POLL, "SandboxGetFromName", &request.base, 0);
}

/* That there is none of that name proves little: only what runs has a name. */
static enum op_next take_lost(struct turn *t)
{
	struct provider *p = t->op->provider;
	size_t at = t->op->looked_lost++;
	MODAL_MESSAGE(Modal__Client__SandboxGetFromNameResponse, answer, t,
		      "looking for a sandbox by its name",
		      modal__client__sandbox_get_from_name_response__descriptor);

	err_clear(t->err);
	if (answer && modal_id_is_sound(answer->sandbox_id, "sb-")) {
		struct pod_view view = {.state = POD_STATE_CREATING, .marker = p->lost[at].marker};
		COPY_TEXT(view.id, answer->sandbox_id);
		COPY_TEXT(view.name, p->lost[at].name);
		modal_remember(p, &view);
		p->lost[at].name[0] = '\0';
	}
	return next_lost(t);
}

/* ---- listing, from its beginning ---- */

/* Once, `burst reap` above all may find what an earlier burst.cfg had rented in another app. Modal
 * calls a list of the whole environment deprecated, so it is done without where it is refused. */
static enum op_next sweep(struct turn *t)
{
	struct op *op = t->op;

	if (op->provider->has_swept)
		return pages_are_read(t);
	op->sweeping = true;
	op->before = 0;
	op->pages = 0;
	return ask_page(t);
}

static enum op_next take_swept_page(struct turn *t)
{
	struct op *op = t->op;
	int more = read_page(t);

	if (more > 0)
		return ask_page(t);
	op->provider->has_swept = !more || is_refused(t->reply);
	bool needed = !op->provider->app_id[0] || t->err->kind == ERR_BUG ||
		      t->err->kind == ERR_CREDENTIALS;
	if (!op->provider->has_swept && needed)
		return OP_FAILED;
	err_clear(t->err);
	return pages_are_read(t);
}

/* Its sandboxes are known by their ids, then: each is looked up by itself. */
static enum op_next lists_are_refused(struct turn *t)
{
	struct op *op = t->op;

	COPY_TEXT(op->refused, t->err->msg);
	str_addf(&op->got.text,
		 "Modal refuses to list sandboxes (%s): those that burst knows are looked up one "
		 "by one (SandboxWait, "
		 "where that is refused TaskGetInfo); others would not be found",
		 op->refused);
	op->got.partial = true;
	op->got.pod_count = 0;
	err_clear(t->err);
	return next_lost(t);
}

static enum op_next ask_app(struct turn *t)
{
	t->op->step = ASKED_LIST_APP;
	return modal_ask_app(t, false);
}

static enum op_next take_page(struct turn *t)
{
	struct op *op = t->op;
	int more = read_page(t);

	if (more > 0)
		return ask_page(t);
	if (!more)
		return sweep(t);
	if (is_refused(t->reply) && !op->provider->lists_v1) {
		err_clear(t->err);
		op->provider->lists_v1 = true;
		op->got.pod_count = 0;
		op->before = 0;
		return ask_page(t);
	}
	if (is_refused(t->reply))
		return lists_are_refused(t);
	if (t->err->kind != ERR_NOT_FOUND || op->app_again)
		return OP_FAILED;
	err_clear(t->err);
	op->app_again = true; /* the app may have been made anew */
	return ask_app(t);
}

/* Without the app there is nothing of ours in it. */
static enum op_next take_list_app(struct turn *t)
{
	if (modal_take_app(t) == 0)
		return ask_page(t);
	if (t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	err_clear(t->err);
	t->op->provider->app_id[0] = '\0';
	return sweep(t);
}

/* Of an earlier client, or another app. */
static void take_ids(struct op *op)
{
	for (char *const *id = op->want ? op->want->ids : NULL; id && *id; id++) {
		struct pod_view view = {.state = POD_STATE_CREATING};
		if (!modal_id_is_sound(*id, "sb-") || known_of(op->provider, *id))
			continue;
		COPY_TEXT(view.id, *id);
		modal_remember(op->provider, &view);
	}
}

enum op_next modal_list_next(struct turn *t)
{
	struct op *op = t->op;

	switch (op->step) {
	case ASKED_LIST_APP: return take_list_app(t);
	case ASKED_PAGE: return op->sweeping ? take_swept_page(t) : take_page(t);
	case ASKED_LOST: return take_lost(t);
	case ASKED_MISSING: return take_missing(t);
	case ASKED_MISSING_TASK: return take_missing_task(t);
	case ASKED_MISSING_INFO: return take_missing_info(t);
	case ASKED_LAST_TASK: return take_last_task(t);
	case ASKED_TASK:
		if (take_listed_task(t, &op->got.pods[op->looked_task]) < 0)
			return OP_FAILED;
		op->looked_task++;
		return next_task(t);
	case ASKED_TUNNELS:
		if (read_tunnels(t, &op->got.pods[op->looked]) < 0)
			return OP_FAILED;
		op->looked++;
		return next_address(t);
	}
	take_ids(op);
	return op->provider->app_id[0] ? ask_page(t) : ask_app(t);
}

/* ---- one of them ---- */

static int take_task(struct turn *t, struct pod_view *view)
{
	MODAL_MESSAGE(Modal__Client__SandboxGetTaskIdResponse, answer, t, "looking at a sandbox",
		      modal__client__sandbox_get_task_id_response__descriptor);

	if (!answer)
		return -1;
	if (modal_text(answer->task_id)[0])
		view->state = POD_STATE_RUNNING;
	else if (!answer->task_result || !answer->task_result->status)
		view->state = POD_STATE_QUEUED;
	else
		set_ended(t->op->provider, view, answer->task_result);
	return 0;
}

enum op_next modal_inspect_next(struct turn *t)
{
	struct op *op = t->op;
	struct pod_view *view;

	if (op->step == 0) {
		view = modal_add_pod(op);
		COPY_TEXT(view->id, op->want->id);
		view->state = POD_STATE_CREATING;
		op->step = 1;
		return ask_wait(t, op->want->id);
	}
	view = &op->got.pods[0];
	if (op->step == 1) {
		if (take_wait(t, view) < 0)
			return OP_FAILED;
		op->step = 2;
		if (view->state != POD_STATE_GONE)
			return modal_ask_task(t);
	} else if (op->step == 2) {
		if (take_task(t, view) < 0)
			return OP_FAILED;
		op->step = 3;
		if (view->state == POD_STATE_RUNNING && !address_of(op->provider, view->id))
			return ask_tunnels(t, view->id, TUNNEL_S);
	} else if (read_tunnels(t, view) < 0) {
		return OP_FAILED;
	}
	set_address(op->provider, view);
	return modal_done(t);
}

enum op_next modal_release_next(struct turn *t)
{
	Modal__Client__SandboxTerminateRequest request =
		MODAL__CLIENT__SANDBOX_TERMINATE_REQUEST__INIT;

	struct known *k = known_of(t->op->provider, t->op->want->id);

	if (!t->reply) {
		if (k && k->view.state != POD_STATE_GONE)
			k->ours = true;
		request.sandbox_id = (char *)t->op->want->id;
		return modal_ask(t, CALL_RELEASE, "SandboxTerminate", &request.base, 0);
	}
	if (modal_answered(t, "ending a sandbox") < 0) {
		if (t->err->kind != ERR_NOT_FOUND)
			return OP_FAILED;
		/* so soon after its birth that may be no proof */
		t->op->got.release = RELEASE_ABSENT;
	}
	err_clear(t->err);
	return modal_done(t);
}

/* ---- its log ---- */

static void add_lines(struct str *to, const struct str *body)
{
	const void *message;
	size_t at = 0, len;

	while (modal_next_message(body, &at, &message, &len)) {
		Modal__Client__TaskLogsBatch *batch =
			modal__client__task_logs_batch__unpack(NULL, len, message);
		for (size_t i = 0; batch && i < batch->n_items; i++)
			str_add(to, modal_text(batch->items[i]->data));
		if (batch)
			modal__client__task_logs_batch__free_unpacked(batch, NULL);
	}
	if (to->len && to->s[to->len - 1] != '\n')
		str_addc(to, '\n');
}

/* What the start script and sshd printed, one stream after the other. */
enum op_next modal_logs_next(struct turn *t)
{
	static const int streams[] = {MODAL__CLIENT__FILE_DESCRIPTOR__FILE_DESCRIPTOR_INFO,
				      MODAL__CLIENT__FILE_DESCRIPTOR__FILE_DESCRIPTOR_STDOUT,
				      MODAL__CLIENT__FILE_DESCRIPTOR__FILE_DESCRIPTOR_STDERR};
	Modal__Client__SandboxGetLogsRequest request =
		MODAL__CLIENT__SANDBOX_GET_LOGS_REQUEST__INIT;

	if (t->reply) {
		if (modal_answered(t, "log of a sandbox") < 0 && !t->reply->body.len)
			return OP_FAILED;
		err_clear(t->err);
		add_lines(&t->op->got.text, &t->reply->body);
	} else {
		t->op->got.text = STR_MAX(LOG_MOST);
	}
	if (t->op->step == (int)ARRAY_LEN(streams))
		return modal_done(t);
	request.sandbox_id = (char *)t->op->want->id;
	request.has_file_descriptor = request.has_timeout = true;
	request.file_descriptor = streams[t->op->step++];
	request.timeout = LOGS_S;
	request.last_entry_id = (char *)"0-0";
	return modal_ask_stream(t, "SandboxGetLogs", &request.base, LOGS_S);
}
