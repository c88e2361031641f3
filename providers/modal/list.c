/* list.c - lists, inspects and releases sandboxes, and looks up those that a listing describes
 * too little */
#include <math.h>

#include "base/clock.h"
#include "base/section.h"
#include "impl.h"

/* The reply that a listing awaits. */
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

/* How long Modal may wait for an address if several sandboxes are listed. The next listing tries
 * again. */
enum { MODAL_TUNNEL_S = 1 };

static enum op_next request_next_address(struct turn *t);

/* Whether Modal refuses the call itself, now and later. */
static bool is_refused_for_good(const struct reply *r)
{
	return !r->failed && (r->grpc_status == STATUS_INVALID_ARGUMENT ||
			      r->grpc_status == STATUS_PERMISSION_DENIED ||
			      r->grpc_status == STATUS_FAILED_PRECONDITION ||
			      r->grpc_status == STATUS_UNIMPLEMENTED);
}

/* ---- sandboxes that a list lacks or describes too little ---- */

enum {
	/* MODAL_TUNNEL_S if only one sandbox boots: its address is returned at once */
	TUNNEL_ALONE_S = 5,
	/* Most lookups in one listing: */
	TUNNELS_MOST = 16,   /* addresses */
	EARLY_MOST = 4,      /* addresses of sandboxes that are not shown as running */
	TASKS_MOST = 32,     /* whether a sandbox is queued */
	EARLY_GAP_MS = 5000, /* between two early lookups of one sandbox */
	/* without a task in the list, no address is looked up before this age */
	UNSCHEDULED_MS = 10000,
};

enum op_next modal_call_task(struct turn *t, const char *id)
{
	Modal__Client__SandboxGetTaskIdRequest request =
		MODAL__CLIENT__SANDBOX_GET_TASK_ID_REQUEST__INIT;

	request.sandbox_id = (char *)id;
	return modal_call(t, CALL_POLL, "SandboxGetTaskId", &request.base, 0);
}

/* Notes in the provider's memory whether a listed sandbox is queued: only one on a machine has a
 * task. Fails only where the next requests would fail too. */
static int read_listed_task_reply(struct turn *t, struct pod_view *view)
{
	struct known *k = modal_find_known(t->op->provider, view->id);
	MODAL_MESSAGE(Modal__Client__SandboxGetTaskIdResponse, answer, t,
		      "asking whether a sandbox is queued",
		      modal__client__sandbox_get_task_id_response__descriptor);

	if (!answer) {
		if (t->err->kind == ERR_CREDENTIALS || t->err->kind == ERR_BUG)
			return -1;
		/* Modal does not tell, now or later */
		if (t->err->kind == ERR_REFUSED || t->err->kind == ERR_NOT_FOUND)
			k->queued = false;
		err_clear(t->err);
		return 0;
	}
	k->scheduled = modal_text(answer->task_id)[0];
	k->queued = !k->scheduled;
	return 0;
}

/* Requests the task of the next listed sandbox that may be queued. After the last one, marks those
 * that are queued and goes on to addresses. */
static enum op_next request_next_task(struct turn *t)
{
	struct op *op = t->op;

	for (; op->looked_task < op->got.pod_count && op->requested_tasks < TASKS_MOST;
	     op->looked_task++) {
		const struct pod_view *view = &op->got.pods[op->looked_task];
		const struct known *k = modal_find_known(op->provider, view->id);
		if (!k || k->scheduled || view->state != POD_STATE_CREATING)
			continue;
		op->requested_tasks++;
		return modal_call_task(t, view->id);
	}
	for (size_t i = 0; i < op->got.pod_count; i++) {
		struct pod_view *view = &op->got.pods[i];
		const struct known *k = modal_find_known(op->provider, view->id);
		if (k && k->queued && !k->scheduled && view->state == POD_STATE_CREATING)
			view->state = POD_STATE_QUEUED;
	}
	op->step = ASKED_TUNNELS;
	return request_next_address(t);
}

/* SandboxWait: the state of a sandbox now. */
static enum op_next call_wait(struct turn *t, const char *id)
{
	Modal__Client__SandboxWaitRequest request = MODAL__CLIENT__SANDBOX_WAIT_REQUEST__INIT;

	request.sandbox_id = (char *)id;
	request.has_timeout = true; /* 0: report the state now */
	return modal_call(t, CALL_POLL, "SandboxWait", &request.base, 0);
}

/* Marks the sandbox as gone if it has ended or Modal does not know it. */
static int read_wait_reply(struct turn *t, struct pod_view *view)
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
		modal_set_ended(t->op->provider, view, answer->result);
	}
	return 0;
}

/* The remembered sandbox that is being looked up. */
static struct known *known_in_turn(const struct op *op)
{
	return &op->provider->known[op->looked_known];
}

/* Looks up the next known sandbox that is not listed: it has ended, or the list is wrong. One that
 * is known to have ended is listed at once. After the last one, goes on to tasks. */
static enum op_next request_next_missing(struct turn *t)
{
	struct op *op = t->op;

	for (; op->looked_known < ARRAY_LEN(op->provider->known); op->looked_known++) {
		const struct pod_view *view = &known_in_turn(op)->view;
		if (!view->id[0] || op_result_has_pod(&op->got, view->id))
			continue;
		if (view->state != POD_STATE_GONE)
			return call_wait(t, view->id);
		*op_result_add_pod(&op->got) = *view;
	}
	op->step = ASKED_TASK;
	return request_next_task(t);
}

/* Lists the sandbox that was looked up, and looks up the next missing one. */
static enum op_next list_missing_and_go_on(struct turn *t)
{
	struct pod_view *view = op_result_add_pod(&t->op->got);

	*view = known_in_turn(t->op)->view;
	if (view->state == POD_STATE_QUEUED)
		view->state = POD_STATE_CREATING; /* the next request shows whether it still is */
	t->op->looked_known++;
	t->op->step = ASKED_MISSING;
	return request_next_missing(t);
}

/* Whether a sandbox that ended may have been queued all the time: a client or its lifetime ended
 * it, and burst never saw a task of it. */
static bool may_have_been_queued(const struct known *k)
{
	return !k->scheduled && k->view.state == POD_STATE_GONE && !k->view.started_at_s &&
	       (k->view.end == POD_END_UNKNOWN || k->view.end == POD_END_OUTSIDE ||
		k->view.end == POD_END_LIFETIME);
}

/* After a refused SandboxWait, the sandbox's task shows whether the sandbox has ended. If its task
 * is refused too, the sandbox counts as alive. */
static enum op_next on_missing_task_reply(struct turn *t)
{
	struct known *k = known_in_turn(t->op);
	Modal__Client__TaskGetInfoRequest request = MODAL__CLIENT__TASK_GET_INFO_REQUEST__INIT;
	MODAL_MESSAGE(Modal__Client__SandboxGetTaskIdResponse, answer, t, "looking at a sandbox",
		      modal__client__sandbox_get_task_id_response__descriptor);

	if (!answer && !is_refused_for_good(t->reply))
		return OP_FAILED;
	err_clear(t->err);
	if (answer && answer->task_result && answer->task_result->status) {
		modal_set_ended(t->op->provider, &k->view, answer->task_result);
	} else if (answer && modal_text(answer->task_id)[0]) {
		request.task_id = answer->task_id;
		t->op->step = ASKED_MISSING_INFO;
		return modal_call(t, CALL_POLL, "TaskGetInfo", &request.base, 0);
	}
	return list_missing_and_go_on(t);
}

static enum op_next on_missing_info_reply(struct turn *t)
{
	struct known *k = known_in_turn(t->op);
	MODAL_MESSAGE(Modal__Client__TaskGetInfoResponse, answer, t, "looking at a sandbox",
		      modal__client__task_get_info_response__descriptor);

	if (!answer && !is_refused_for_good(t->reply))
		return OP_FAILED;
	err_clear(t->err);
	k->scheduled = true;
	modal_read_task(t->op->provider, &k->view, answer ? answer->info : NULL);
	return list_missing_and_go_on(t);
}

/* Reads the reply to SandboxWait about a missing sandbox. */
static enum op_next on_missing_reply(struct turn *t)
{
	struct known *k = known_in_turn(t->op);

	/* so soon after the create, "not found" proves nothing: forget it */
	if (!t->reply->failed && t->reply->grpc_status == STATUS_NOT_FOUND) {
		k->view.id[0] = '\0';
		t->op->looked_known++;
		return request_next_missing(t);
	}
	if (is_refused_for_good(t->reply)) {
		err_clear(t->err);
		t->op->step = ASKED_MISSING_TASK;
		return modal_call_task(t, k->view.id);
	}
	if (read_wait_reply(t, &k->view) < 0)
		return OP_FAILED;
	if (!may_have_been_queued(k))
		return list_missing_and_go_on(t);
	t->op->step = ASKED_LAST_TASK;
	return modal_call_task(t, k->view.id);
}

/* Marks a sandbox that ended without a task as never run. */
static enum op_next on_last_task_reply(struct turn *t)
{
	struct known *k = known_in_turn(t->op);
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
	/* a missing figure is no failure: burst then assumes a higher cost */
	err_clear(t->err);
	return list_missing_and_go_on(t);
}

/* Returns whether to request the address of a sandbox that the list does not show as running, and
 * then counts the request. Some lists lack started_at, but a running sandbox has an address, so
 * burst tries from time to time. */
static bool claim_early_lookup(struct op *op, const struct pod_view *view)
{
	struct known *k = modal_find_known(op->provider, view->id);
	int64_t now = clock_boot_ms();

	if (!k || view->state != POD_STATE_CREATING || op->requested_early == EARLY_MOST ||
	    now < k->asked_ms + EARLY_GAP_MS ||
	    (!k->scheduled && now < k->seen_ms + UNSCHEDULED_MS))
		return false;
	k->asked_ms = now;
	op->requested_early++;
	return true;
}

/* With one listed sandbox, waiting for its address delays no other. */
static bool is_only_listed(const struct op *op)
{
	return op->got.pod_count == 1;
}

/* How long Modal may wait for this sandbox's address: less if the sandbox's state is new, so that
 * burst hears of it soon. Remembers the state as reported. */
static int choose_tunnel_wait_s(const struct op *op, const struct pod_view *view)
{
	struct known *k = modal_find_known(op->provider, view->id);
	bool is_new_state = !k || k->told != view->state;

	if (k)
		k->told = view->state;
	return is_only_listed(op) && !is_new_state ? TUNNEL_ALONE_S : MODAL_TUNNEL_S;
}

/* Requests the address of the next listed sandbox without one. After the last: done. */
static enum op_next request_next_address(struct turn *t)
{
	struct op *op = t->op;

	for (; op->looked < op->got.pod_count && op->requested_tunnels < TUNNELS_MOST;
	     op->looked++) {
		struct pod_view *view = &op->got.pods[op->looked];
		if (modal_find_address(op->provider, view->id))
			continue;
		if (view->state == POD_STATE_RUNNING || claim_early_lookup(op, view)) {
			op->requested_tunnels++;
			return modal_call_tunnels(t, view->id, choose_tunnel_wait_s(op, view));
		}
	}
	for (size_t i = 0; i < op->got.pod_count; i++)
		modal_set_address(op->provider, &op->got.pods[i]);
	return modal_done(t);
}

/* Looks up known sandboxes that no page has, after the last page. */
static enum op_next start_missing(struct turn *t)
{
	t->op->step = ASKED_MISSING;
	return request_next_missing(t);
}

/* ---- the list: its pages, lost creates, and once the sandboxes of other apps ---- */

enum { PAGES_MOST = 200 };

/* Requests a page of the app's sandboxes that have our tag and have not ended, newest first. A page
 * starts with the last row of the previous one, so that none of several sandboxes of one moment is
 * lost: a sandbox that is not listed counts as gone. Modal's own client uses SandboxListV2;
 * SandboxList is the older call. */
static enum op_next request_page(struct turn *t)
{
	struct op *op = t->op;
	Modal__Client__SandboxTag ours = MODAL__CLIENT__SANDBOX_TAG__INIT, *tags[] = {&ours};
	Modal__Client__SandboxListRequest request = MODAL__CLIENT__SANDBOX_LIST_REQUEST__INIT;

	if (op->pages++ == PAGES_MOST)
		return turn_fail(t, ERR_BUG, "listing sandboxes: Modal's list does not end");
	ours.tag_name = (char *)MODAL_TAG;
	ours.tag_value = (char *)"1";
	request.n_tags = 1;
	request.tags = tags;
	request.app_id = op->sweeping ? NULL : op->provider->app_id;
	request.environment_name = (char *)section_text(op->provider->conf, "environment");
	request.has_before_timestamp = op->before > 0;
	request.before_timestamp = nextafter(op->before, INFINITY);
	op->step = ASKED_PAGE;
	return modal_call(t, CALL_POLL,
			  op->sweeping || op->provider->lists_v1 ? "SandboxList" : "SandboxListV2",
			  &request.base, 0);
}

/* Adds a row to the result and to the provider's memory, unless it is not burst's or is there. */
static int add_listed_sandbox(struct turn *t, const Modal__Client__SandboxInfo *info)
{
	struct marker marker = {0};

	modal_read_marker(info->tags, info->n_tags, &marker);
	if (!marker.attempt[0] || (info->id && op_result_has_pod(&t->op->got, info->id)))
		return 0;
	if (!modal_id_is_sound(info->id, "sb-"))
		return err_set(t->err, ERR_TRANSIENT, "listing sandboxes: one has no usable id");
	struct pod_view *view = op_result_add_pod(&t->op->got);
	COPY_TEXT(view->id, info->id);
	COPY_TEXT(view->name, modal_text(info->name));
	view->marker = marker;
	view->state =
		info->ready_at > 0 || info->n_tunnels ? POD_STATE_RUNNING : POD_STATE_CREATING;
	view->created_at_s = modal_epoch_s(info->created_at);
	if (info->n_regions == 1)
		COPY_TEXT(view->region, modal_text(info->regions[0]));
	modal_read_task(t->op->provider, view, info->task_info);
	if (strcmp(modal_text(info->app_id), t->op->provider->app_id) && t->op->sweeping)
		return 0; /* of another app, so the next list cannot have it */
	modal_remember(t->op->provider, view);
	struct known *k = modal_find_known(t->op->provider, view->id);
	k->scheduled = k->scheduled || (info->task_info && modal_text(info->task_info->id)[0]) ||
		       view->state == POD_STATE_RUNNING;
	if (!modal_find_address(t->op->provider, view->id))
		modal_remember_address(t->op->provider, view, info->tunnels, info->n_tunnels);
	return 0;
}

/* Returns 1 if there may be more pages, 0 if not, -1 on error. */
static int read_page(struct turn *t)
{
	double oldest = t->op->before;
	MODAL_MESSAGE(Modal__Client__SandboxListResponse, answer, t, "listing sandboxes",
		      modal__client__sandbox_list_response__descriptor);

	if (!answer)
		return -1;
	for (size_t i = 0; i < answer->n_sandboxes; i++) {
		const Modal__Client__SandboxInfo *info = answer->sandboxes[i];
		if (add_listed_sandbox(t, info) < 0 ||
		    op_result_check_counts(&t->op->got, t->err) < 0)
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

/* Looks for the next lost create by its name. After the last one, looks up missing sandboxes. */
static enum op_next request_next_lost(struct turn *t)
{
	struct op *op = t->op;
	Modal__Client__SandboxGetFromNameRequest request =
		MODAL__CLIENT__SANDBOX_GET_FROM_NAME_REQUEST__INIT;

	while (op->looked_lost < ARRAY_LEN(op->provider->lost) &&
	       !op->provider->lost[op->looked_lost].name[0])
		op->looked_lost++;
	if (op->looked_lost == ARRAY_LEN(op->provider->lost))
		return start_missing(t);
	request.sandbox_name = op->provider->lost[op->looked_lost].name;
	request.app_name = (char *)section_text(op->provider->conf, "app");
	request.environment_name = (char *)section_text(op->provider->conf, "environment");
	op->step = ASKED_LOST;
	return modal_call(t, CALL_POLL, "SandboxGetFromName", &request.base, 0);
}

/* Remembers the sandbox if it was found; the listing then looks it up by id. A missing name proves
 * little: only running sandboxes have names. */
static enum op_next on_lost_reply(struct turn *t)
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
	return request_next_lost(t);
}

/* Lists the whole environment, once per provider handle: `burst reap` must find what an earlier
 * burst.cfg rented in another app. Modal calls this list deprecated, so a refusal is no error.
 * If that was done, looks up the known sandboxes that no page had. */
static enum op_next start_sweep(struct turn *t)
{
	struct op *op = t->op;

	if (op->provider->has_swept)
		return start_missing(t);
	op->sweeping = true;
	op->before = 0;
	op->pages = 0;
	return request_page(t);
}

/* A page of the environment. It must be readable only if the app is unknown. */
static enum op_next on_swept_page_reply(struct turn *t)
{
	struct op *op = t->op;
	int more = read_page(t);

	if (more > 0)
		return request_page(t);
	op->provider->has_swept = !more || is_refused_for_good(t->reply);
	bool needed = !op->provider->app_id[0] || t->err->kind == ERR_BUG ||
		      t->err->kind == ERR_CREDENTIALS;
	if (!op->provider->has_swept && needed)
		return OP_FAILED;
	err_clear(t->err);
	return start_missing(t);
}

/* Modal refuses both lists: the result is partial, each known sandbox is looked up by its id. */
static enum op_next fall_back_to_lookups(struct turn *t)
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
	return request_next_lost(t);
}

static enum op_next request_app(struct turn *t)
{
	t->op->step = ASKED_LIST_APP;
	return modal_call_app(t, MODAL_FAIL_IF_MISSING);
}

/* A page of the app's sandboxes: requests the next one, the older call if this one is refused, or
 * the app again if it is gone. */
static enum op_next on_page_reply(struct turn *t)
{
	struct op *op = t->op;
	int more = read_page(t);

	if (more > 0)
		return request_page(t);
	if (!more)
		return start_sweep(t);
	if (is_refused_for_good(t->reply) && !op->provider->lists_v1) {
		err_clear(t->err);
		op->provider->lists_v1 = true;
		op->got.pod_count = 0;
		op->before = 0;
		return request_page(t);
	}
	if (is_refused_for_good(t->reply))
		return fall_back_to_lookups(t);
	if (t->err->kind != ERR_NOT_FOUND || op->app_again)
		return OP_FAILED;
	err_clear(t->err);
	op->app_again = true; /* the app may have been recreated */
	return request_app(t);
}

/* A missing app has no sandboxes. */
static enum op_next on_app_reply(struct turn *t)
{
	if (modal_read_app_reply(t) == 0)
		return request_page(t);
	if (t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	err_clear(t->err);
	t->op->provider->app_id[0] = '\0';
	return start_sweep(t);
}

/* Remembers the sandboxes in want.ids, which are then looked up if the list lacks them. */
static void remember_wanted_ids(struct op *op)
{
	for (char *const *id = op->want ? op->want->ids : NULL; id && *id; id++) {
		struct pod_view view = {.state = POD_STATE_CREATING};
		if (!modal_id_is_sound(*id, "sb-") || modal_find_known(op->provider, *id))
			continue;
		COPY_TEXT(view.id, *id);
		modal_remember(op->provider, &view);
	}
}

enum op_next modal_list_next(struct turn *t)
{
	struct op *op = t->op;

	switch (op->step) {
	case ASKED_LIST_APP: return on_app_reply(t);
	case ASKED_PAGE: return op->sweeping ? on_swept_page_reply(t) : on_page_reply(t);
	case ASKED_LOST: return on_lost_reply(t);
	case ASKED_MISSING: return on_missing_reply(t);
	case ASKED_MISSING_TASK: return on_missing_task_reply(t);
	case ASKED_MISSING_INFO: return on_missing_info_reply(t);
	case ASKED_LAST_TASK: return on_last_task_reply(t);
	case ASKED_TASK:
		if (read_listed_task_reply(t, &op->got.pods[op->looked_task]) < 0)
			return OP_FAILED;
		op->looked_task++;
		return request_next_task(t);
	case ASKED_TUNNELS:
		if (modal_read_tunnels_reply(t, &op->got.pods[op->looked]) < 0)
			return OP_FAILED;
		op->looked++;
		return request_next_address(t);
	}
	remember_wanted_ids(op);
	return op->provider->app_id[0] ? request_page(t) : request_app(t);
}

/* ---- pods: one sandbox: its state, its release, its logs ---- */

enum {
	LOGS_S = 5,
	LOG_MOST = 64 << 10,
};

/* ---- inspect ---- */

/* Sets the state by the sandbox's task: none yet means queued. */
static int read_task_reply(struct turn *t, struct pod_view *view)
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
		modal_set_ended(t->op->provider, view, answer->task_result);
	return 0;
}

enum { INSPECT_ASKED_STATE = 1, INSPECT_ASKED_TASK, INSPECT_ASKED_TUNNELS };

enum op_next modal_inspect_next(struct turn *t)
{
	struct op *op = t->op;
	struct pod_view *view;

	if (op->step == 0) {
		view = op_result_add_pod(&op->got);
		COPY_TEXT(view->id, op->want->id);
		view->state = POD_STATE_CREATING;
		op->step = INSPECT_ASKED_STATE;
		return call_wait(t, op->want->id);
	}
	view = &op->got.pods[0];
	if (op->step == INSPECT_ASKED_STATE) {
		if (read_wait_reply(t, view) < 0)
			return OP_FAILED;
		op->step = INSPECT_ASKED_TASK;
		if (view->state != POD_STATE_GONE)
			return modal_call_task(t, op->want->id);
	} else if (op->step == INSPECT_ASKED_TASK) {
		if (read_task_reply(t, view) < 0)
			return OP_FAILED;
		op->step = INSPECT_ASKED_TUNNELS;
		if (view->state == POD_STATE_RUNNING && !modal_find_address(op->provider, view->id))
			return modal_call_tunnels(t, view->id, MODAL_TUNNEL_S);
	} else if (modal_read_tunnels_reply(t, view) < 0) {
		return OP_FAILED;
	}
	modal_set_address(op->provider, view);
	return modal_done(t);
}

enum op_next modal_release_next(struct turn *t)
{
	Modal__Client__SandboxTerminateRequest request =
		MODAL__CLIENT__SANDBOX_TERMINATE_REQUEST__INIT;

	struct known *k = modal_find_known(t->op->provider, t->op->want->id);

	if (!t->reply) {
		if (k && k->view.state != POD_STATE_GONE)
			k->ours = true;
		request.sandbox_id = (char *)t->op->want->id;
		return modal_call(t, CALL_RELEASE, "SandboxTerminate", &request.base, 0);
	}
	if (modal_check_reply(t, "ending a sandbox") < 0) {
		if (t->err->kind != ERR_NOT_FOUND)
			return OP_FAILED;
		/* so soon after the create, "not found" proves nothing */
		t->op->got.release = RELEASE_ABSENT;
	}
	err_clear(t->err);
	return modal_done(t);
}

/* ---- its log ---- */

/* Appends the text of a stream of log batches, and ends its last line. */
static void add_log_lines(struct str *to, const struct str *body)
{
	const void *message;
	size_t at = 0, len;

	while (modal_next_message(body, &at, &message, &len)) {
		Modal__Client__TaskLogsBatch *batch =
			modal_unpack(&modal__client__task_logs_batch__descriptor, len, message);
		for (size_t i = 0; batch && i < batch->n_items; i++)
			str_add(to, modal_text(batch->items[i]->data));
		if (batch)
			modal__client__task_logs_batch__free_unpacked(batch, NULL);
	}
	if (to->len && to->s[to->len - 1] != '\n')
		str_addc(to, '\n');
}

/* Fetches the output of start script and sshd, one stream after the other. */
enum op_next modal_logs_next(struct turn *t)
{
	static const int streams[] = {MODAL__CLIENT__FILE_DESCRIPTOR__FILE_DESCRIPTOR_INFO,
				      MODAL__CLIENT__FILE_DESCRIPTOR__FILE_DESCRIPTOR_STDOUT,
				      MODAL__CLIENT__FILE_DESCRIPTOR__FILE_DESCRIPTOR_STDERR};
	Modal__Client__SandboxGetLogsRequest request =
		MODAL__CLIENT__SANDBOX_GET_LOGS_REQUEST__INIT;

	if (t->reply) {
		if (modal_check_reply(t, "log of a sandbox") < 0 && !t->reply->body.len)
			return OP_FAILED;
		err_clear(t->err);
		add_log_lines(&t->op->got.text, &t->reply->body);
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
	return modal_call_stream(t, "SandboxGetLogs", &request.base, LOGS_S);
}
