/* missing.c - looks up sandboxes that a listing's pages lack or describe too little: whether one
 * has ended or is queued, and its sshd's address. */
#include "list.h"

#include "base/clock.h"

enum {
	/* MODAL_TUNNEL_S if only one sandbox boots: its address is returned at once */
	TUNNEL_ALONE_S = 5,
	/* Most lookups in one listing: */
	TUNNELS_MOST = 16,   /* addresses */
	EARLY_MOST = 4,      /* addresses of sandboxes that are not shown as running */
	TASKS_MOST = 32,     /* whether a sandbox is queued */
	EARLY_GAP_MS = 5000, /* between two early lookups of one sandbox */
	/* no earlier lookup if the list does not show a task */
	UNSCHEDULED_MS = 10000,
};

enum op_next modal_call_task_of(struct turn *t, const char *id)
{
	Modal__Client__SandboxGetTaskIdRequest request =
		MODAL__CLIENT__SANDBOX_GET_TASK_ID_REQUEST__INIT;

	request.sandbox_id = (char *)id;
	return modal_call(t, CALL_POLL, "SandboxGetTaskId", &request.base, 0);
}

int modal_take_listed_task(struct turn *t, struct pod_view *view)
{
	struct known *k = modal_known_of(t->op->provider, view->id);
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

enum op_next modal_next_task(struct turn *t)
{
	struct op *op = t->op;

	for (; op->looked_task < op->got.pod_count && op->requested_tasks < TASKS_MOST;
	     op->looked_task++) {
		const struct pod_view *view = &op->got.pods[op->looked_task];
		const struct known *k = modal_known_of(op->provider, view->id);
		if (!k || k->scheduled || view->state != POD_STATE_CREATING)
			continue;
		op->requested_tasks++;
		return modal_call_task_of(t, view->id);
	}
	for (size_t i = 0; i < op->got.pod_count; i++) {
		struct pod_view *view = &op->got.pods[i];
		const struct known *k = modal_known_of(op->provider, view->id);
		if (k && k->queued && !k->scheduled && view->state == POD_STATE_CREATING)
			view->state = POD_STATE_QUEUED;
	}
	op->step = ASKED_TUNNELS;
	return modal_next_address(t);
}

enum op_next modal_call_wait(struct turn *t, const char *id)
{
	Modal__Client__SandboxWaitRequest request = MODAL__CLIENT__SANDBOX_WAIT_REQUEST__INIT;

	request.sandbox_id = (char *)id;
	request.has_timeout = true; /* 0: report the state now */
	return modal_call(t, CALL_POLL, "SandboxWait", &request.base, 0);
}

int modal_take_wait(struct turn *t, struct pod_view *view)
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

static struct known *known_at(const struct op *op)
{
	return &op->provider->known[op->looked_known];
}

/* Looks up the next known sandbox that is not listed: it has ended, or the list is wrong. A known
 * end never changes. */
static enum op_next next_missing(struct turn *t)
{
	struct op *op = t->op;

	for (; op->looked_known < ARRAY_LEN(op->provider->known); op->looked_known++) {
		const struct pod_view *view = &known_at(op)->view;
		if (!view->id[0] || modal_is_listed(op, view->id))
			continue;
		if (view->state != POD_STATE_GONE)
			return modal_call_wait(t, view->id);
		*modal_add_pod(op) = *view;
	}
	op->step = ASKED_TASK;
	return modal_next_task(t);
}

static enum op_next missing_is_seen(struct turn *t)
{
	struct pod_view *view = modal_add_pod(t->op);

	*view = known_at(t->op)->view;
	if (view->state == POD_STATE_QUEUED)
		view->state = POD_STATE_CREATING; /* the next request shows whether it still is */
	t->op->looked_known++;
	t->op->step = ASKED_MISSING;
	return next_missing(t);
}

/* A client or its lifetime ended it, and no task of it was ever seen: it may have been queued all
 * the time. */
static bool may_have_been_queued(const struct known *k)
{
	return !k->scheduled && k->view.state == POD_STATE_GONE && !k->view.started_at_s &&
	       (k->view.end == POD_END_UNKNOWN || k->view.end == POD_END_OUTSIDE ||
		k->view.end == POD_END_LIFETIME);
}

enum op_next modal_take_missing_task(struct turn *t)
{
	struct known *k = known_at(t->op);
	Modal__Client__TaskGetInfoRequest request = MODAL__CLIENT__TASK_GET_INFO_REQUEST__INIT;
	MODAL_MESSAGE(Modal__Client__SandboxGetTaskIdResponse, answer, t, "looking at a sandbox",
		      modal__client__sandbox_get_task_id_response__descriptor);

	if (!answer && !modal_is_refused(t->reply))
		return OP_FAILED;
	err_clear(t->err);
	if (answer && answer->task_result && answer->task_result->status) {
		modal_set_ended(t->op->provider, &k->view, answer->task_result);
	} else if (answer && modal_text(answer->task_id)[0]) {
		request.task_id = answer->task_id;
		t->op->step = ASKED_MISSING_INFO;
		return modal_call(t, CALL_POLL, "TaskGetInfo", &request.base, 0);
	}
	return missing_is_seen(t);
}

enum op_next modal_take_missing_info(struct turn *t)
{
	struct known *k = known_at(t->op);
	MODAL_MESSAGE(Modal__Client__TaskGetInfoResponse, answer, t, "looking at a sandbox",
		      modal__client__task_get_info_response__descriptor);

	if (!answer && !modal_is_refused(t->reply))
		return OP_FAILED;
	err_clear(t->err);
	k->scheduled = true;
	modal_read_task(t->op->provider, &k->view, answer ? answer->info : NULL);
	return missing_is_seen(t);
}

enum op_next modal_take_missing(struct turn *t)
{
	struct known *k = known_at(t->op);

	/* so soon after the create, not found proves nothing */
	if (!t->reply->failed && t->reply->grpc_status == 5) {
		k->view.id[0] = '\0';
		t->op->looked_known++;
		return next_missing(t);
	}
	if (modal_is_refused(t->reply)) {
		err_clear(t->err);
		t->op->step = ASKED_MISSING_TASK;
		return modal_call_task_of(t, k->view.id);
	}
	if (modal_take_wait(t, &k->view) < 0)
		return OP_FAILED;
	if (!may_have_been_queued(k))
		return missing_is_seen(t);
	t->op->step = ASKED_LAST_TASK;
	return modal_call_task_of(t, k->view.id);
}

enum op_next modal_take_last_task(struct turn *t)
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
	/* a missing figure is no failure: burst then assumes a higher cost */
	err_clear(t->err);
	return missing_is_seen(t);
}

/* Whether to request the address of a sandbox that the list does not show as running. Some lists
 * lack started_at, but a running sandbox has an address, so burst tries from time to time. */
static bool is_worth_a_try(struct op *op, const struct pod_view *view)
{
	struct known *k = modal_known_of(op->provider, view->id);
	int64_t now = clock_boot_ms();

	if (!k || view->state != POD_STATE_CREATING || op->requested_early == EARLY_MOST ||
	    now < k->asked_ms + EARLY_GAP_MS ||
	    (!k->scheduled && now < k->seen_ms + UNSCHEDULED_MS))
		return false;
	k->asked_ms = now;
	op->requested_early++;
	return true;
}

/* Whether it is the only listed sandbox, so that waiting for its address delays no other. */
static bool is_alone(const struct op *op)
{
	return op->got.pod_count == 1;
}

/* How long Modal may wait for this address. News of the sandbox (it has a task now) is returned at
 * once. */
static int tunnel_patience_s(const struct op *op, const struct pod_view *view)
{
	struct known *k = modal_known_of(op->provider, view->id);
	bool news = !k || k->told != view->state;

	if (k)
		k->told = view->state;
	return is_alone(op) && !news ? TUNNEL_ALONE_S : MODAL_TUNNEL_S;
}

enum op_next modal_next_address(struct turn *t)
{
	struct op *op = t->op;

	for (; op->looked < op->got.pod_count && op->requested_tunnels < TUNNELS_MOST;
	     op->looked++) {
		struct pod_view *view = &op->got.pods[op->looked];
		if (modal_address_of(op->provider, view->id))
			continue;
		if (view->state == POD_STATE_RUNNING || is_worth_a_try(op, view)) {
			op->requested_tunnels++;
			return modal_call_tunnels(t, view->id, tunnel_patience_s(op, view));
		}
	}
	for (size_t i = 0; i < op->got.pod_count; i++)
		modal_set_address(op->provider, &op->got.pods[i]);
	return modal_done(t);
}

enum op_next modal_call_missing(struct turn *t)
{
	t->op->step = ASKED_MISSING;
	return next_missing(t);
}
