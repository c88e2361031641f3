/* list.c - lists the sandboxes of an app: its pages, creates with lost replies, and once the
 * sandboxes of other apps. */
#include "list.h"

#include <math.h>

#include "base/section.h"

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
	return modal_call(t, CALL_POLL,
			  op->sweeping || op->provider->lists_v1 ? "SandboxList" : "SandboxListV2",
			  &request.base, 0);
}

static int read_row(struct turn *t, const Modal__Client__SandboxInfo *info)
{
	struct marker marker = {0};

	modal_read_marker(info->tags, info->n_tags, &marker);
	if (!marker.attempt[0] || (info->id && modal_is_listed(t->op, info->id)))
		return 0;
	if (!modal_id_is_sound(info->id, "sb-"))
		return err_set(t->err, ERR_TRANSIENT, "listing sandboxes: one has no usable id");
	struct pod_view *view = modal_add_pod(t->op);
	COPY_TEXT(view->id, info->id);
	COPY_TEXT(view->name, modal_text(info->name));
	view->marker = marker;
	view->state =
		info->ready_at > 0 || info->n_tunnels ? POD_STATE_RUNNING : POD_STATE_CREATING;
	view->created_at_s = modal_seconds(info->created_at);
	if (info->n_regions == 1)
		COPY_TEXT(view->region, modal_text(info->regions[0]));
	modal_read_task(t->op->provider, view, info->task_info);
	if (strcmp(modal_text(info->app_id), t->op->provider->app_id) && t->op->sweeping)
		return 0; /* of another app, so the next list cannot have it */
	modal_remember(t->op->provider, view);
	struct known *k = modal_known_of(t->op->provider, view->id);
	k->scheduled = k->scheduled || (info->task_info && modal_text(info->task_info->id)[0]) ||
		       view->state == POD_STATE_RUNNING;
	if (!modal_address_of(t->op->provider, view->id))
		modal_take_tunnels(t->op->provider, view, info->tunnels, info->n_tunnels);
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

static enum op_next next_lost(struct turn *t)
{
	struct op *op = t->op;
	Modal__Client__SandboxGetFromNameRequest request =
		MODAL__CLIENT__SANDBOX_GET_FROM_NAME_REQUEST__INIT;

	while (op->looked_lost < ARRAY_LEN(op->provider->lost) &&
	       !op->provider->lost[op->looked_lost].name[0])
		op->looked_lost++;
	if (op->looked_lost == ARRAY_LEN(op->provider->lost))
		return modal_call_missing(t);
	request.sandbox_name = op->provider->lost[op->looked_lost].name;
	request.app_name = (char *)section_text(op->provider->conf, "app");
	request.environment_name = (char *)section_text(op->provider->conf, "environment");
	op->step = ASKED_LOST;
	return modal_call(t, CALL_POLL, "SandboxGetFromName", &request.base, 0);
}

/* A missing name proves little: only running sandboxes have names. */
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

/* Lists the whole environment once: `burst reap` must find what an earlier burst.cfg rented in
 * another app. Modal calls this list deprecated, so a refusal is no error. */
static enum op_next sweep(struct turn *t)
{
	struct op *op = t->op;

	if (op->provider->has_swept)
		return modal_call_missing(t);
	op->sweeping = true;
	op->before = 0;
	op->pages = 0;
	return request_page(t);
}

static enum op_next take_swept_page(struct turn *t)
{
	struct op *op = t->op;
	int more = read_page(t);

	if (more > 0)
		return request_page(t);
	op->provider->has_swept = !more || modal_is_refused(t->reply);
	bool needed = !op->provider->app_id[0] || t->err->kind == ERR_BUG ||
		      t->err->kind == ERR_CREDENTIALS;
	if (!op->provider->has_swept && needed)
		return OP_FAILED;
	err_clear(t->err);
	return modal_call_missing(t);
}

/* Falls back to looking up each known sandbox by its id. */
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

static enum op_next request_app(struct turn *t)
{
	t->op->step = ASKED_LIST_APP;
	return modal_call_app(t, false);
}

static enum op_next take_page(struct turn *t)
{
	struct op *op = t->op;
	int more = read_page(t);

	if (more > 0)
		return request_page(t);
	if (!more)
		return sweep(t);
	if (modal_is_refused(t->reply) && !op->provider->lists_v1) {
		err_clear(t->err);
		op->provider->lists_v1 = true;
		op->got.pod_count = 0;
		op->before = 0;
		return request_page(t);
	}
	if (modal_is_refused(t->reply))
		return lists_are_refused(t);
	if (t->err->kind != ERR_NOT_FOUND || op->app_again)
		return OP_FAILED;
	err_clear(t->err);
	op->app_again = true; /* the app may have been recreated */
	return request_app(t);
}

/* A missing app has no sandboxes. */
static enum op_next take_list_app(struct turn *t)
{
	if (modal_take_app(t) == 0)
		return request_page(t);
	if (t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	err_clear(t->err);
	t->op->provider->app_id[0] = '\0';
	return sweep(t);
}

/* Adds the ids of sandboxes from an earlier client or another app. */
static void take_ids(struct op *op)
{
	for (char *const *id = op->want ? op->want->ids : NULL; id && *id; id++) {
		struct pod_view view = {.state = POD_STATE_CREATING};
		if (!modal_id_is_sound(*id, "sb-") || modal_known_of(op->provider, *id))
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
	case ASKED_MISSING: return modal_take_missing(t);
	case ASKED_MISSING_TASK: return modal_take_missing_task(t);
	case ASKED_MISSING_INFO: return modal_take_missing_info(t);
	case ASKED_LAST_TASK: return modal_take_last_task(t);
	case ASKED_TASK:
		if (modal_take_listed_task(t, &op->got.pods[op->looked_task]) < 0)
			return OP_FAILED;
		op->looked_task++;
		return modal_next_task(t);
	case ASKED_TUNNELS:
		if (modal_read_tunnels(t, &op->got.pods[op->looked]) < 0)
			return OP_FAILED;
		op->looked++;
		return modal_next_address(t);
	}
	take_ids(op);
	return op->provider->app_id[0] ? request_page(t) : request_app(t);
}
