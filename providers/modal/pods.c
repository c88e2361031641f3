/* pods.c - one sandbox: its state, its release, its logs. */
#include "list.h"

enum {
	LOGS_S = 5,
	LOG_MOST = 64 << 10,
};

enum op_next modal_call_task(struct turn *t)
{
	return modal_call_task_of(t, t->op->want->id);
}

/* ---- inspect ---- */

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
		modal_set_ended(t->op->provider, view, answer->task_result);
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
		return modal_call_wait(t, op->want->id);
	}
	view = &op->got.pods[0];
	if (op->step == 1) {
		if (modal_take_wait(t, view) < 0)
			return OP_FAILED;
		op->step = 2;
		if (view->state != POD_STATE_GONE)
			return modal_call_task(t);
	} else if (op->step == 2) {
		if (take_task(t, view) < 0)
			return OP_FAILED;
		op->step = 3;
		if (view->state == POD_STATE_RUNNING && !modal_address_of(op->provider, view->id))
			return modal_call_tunnels(t, view->id, MODAL_TUNNEL_S);
	} else if (modal_read_tunnels(t, view) < 0) {
		return OP_FAILED;
	}
	modal_set_address(op->provider, view);
	return modal_done(t);
}

enum op_next modal_release_next(struct turn *t)
{
	Modal__Client__SandboxTerminateRequest request =
		MODAL__CLIENT__SANDBOX_TERMINATE_REQUEST__INIT;

	struct known *k = modal_known_of(t->op->provider, t->op->want->id);

	if (!t->reply) {
		if (k && k->view.state != POD_STATE_GONE)
			k->ours = true;
		request.sandbox_id = (char *)t->op->want->id;
		return modal_call(t, CALL_RELEASE, "SandboxTerminate", &request.base, 0);
	}
	if (modal_answered(t, "ending a sandbox") < 0) {
		if (t->err->kind != ERR_NOT_FOUND)
			return OP_FAILED;
		/* so soon after the create, not found proves nothing */
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
			modal_unpack(&modal__client__task_logs_batch__descriptor, len, message);
		for (size_t i = 0; batch && i < batch->n_items; i++)
			str_add(to, modal_text(batch->items[i]->data));
		if (batch)
			modal__client__task_logs_batch__free_unpacked(batch, NULL);
	}
	if (to->len && to->s[to->len - 1] != '\n')
		str_addc(to, '\n');
}

/* The output of start script and sshd, one stream after the other. */
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
	return modal_call_stream(t, "SandboxGetLogs", &request.base, LOGS_S);
}
