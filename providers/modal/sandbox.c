/* sandbox.c - reads the state, address and GPU of a sandbox from replies of Modal */
#include "base/clock.h"
#include "base/gpus.h"
#include "impl.h"

enum { EXCEPTION_MOST = 120, PORT_MOST = 65535 };

struct known *modal_find_known(struct provider *p, const char *id)
{
	for (size_t i = 0; i < ARRAY_LEN(p->known); i++)
		if (!strcmp(p->known[i].view.id, id))
			return &p->known[i];
	return NULL;
}

void modal_remember(struct provider *p, const struct pod_view *view)
{
	struct known *k = modal_find_known(p, view->id);
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

struct address *modal_find_address(struct provider *p, const char *id)
{
	for (size_t i = 0; i < ARRAY_LEN(p->addresses); i++)
		if (!strcmp(p->addresses[i].id, id))
			return &p->addresses[i];
	return NULL;
}

void modal_remember_address(struct provider *p, const struct pod_view *view,
			    Modal__Client__TunnelData *const *tunnels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *host = modal_text(tunnels[i]->unencrypted_host);
		uint32_t port = tunnels[i]->unencrypted_port;
		if (tunnels[i]->container_port != MODAL_SSHD_PORT || !*host ||
		    strlen(host) >= sizeof(view->host) || !port || port > PORT_MOST)
			continue;
		struct address *a = &p->addresses[p->next_address++ % ARRAY_LEN(p->addresses)];
		COPY_TEXT(a->id, view->id);
		COPY_TEXT(a->host, host);
		a->port = (int)port;
		return;
	}
}

void modal_set_address(struct provider *p, struct pod_view *view)
{
	const struct address *a = modal_find_address(p, view->id);

	if (!a || view->state == POD_STATE_GONE)
		return;
	view->state = POD_STATE_RUNNING;
	COPY_TEXT(view->host, a->host);
	COPY_TEXT(view->user, "root");
	view->port = a->port;
}

enum op_next modal_call_tunnels(struct turn *t, const char *id, int most_s)
{
	Modal__Client__SandboxGetTunnelsRequest request =
		MODAL__CLIENT__SANDBOX_GET_TUNNELS_REQUEST__INIT;

	request.sandbox_id = (char *)id;
	request.has_timeout = true;
	request.timeout = (float)most_s;
	return modal_call(t, CALL_POLL, "SandboxGetTunnels", &request.base, most_s);
}

int modal_read_tunnels_reply(struct turn *t, struct pod_view *view)
{
	MODAL_MESSAGE(Modal__Client__SandboxGetTunnelsResponse, answer, t,
		      "asking for a sandbox's address",
		      modal__client__sandbox_get_tunnels_response__descriptor);

	if (!answer) {
		bool is_harmless = t->err->kind != ERR_CREDENTIALS && t->err->kind != ERR_BUG;
		if (is_harmless)
			err_clear(t->err);
		return is_harmless ? 0 : -1;
	}
	modal_remember_address(t->op->provider, view, answer->tunnels, answer->n_tunnels);
	return 0;
}

/* "" for a tag that is missing. */
static const char *tag_value(Modal__Client__SandboxTag *const *tags, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(modal_text(tags[i]->tag_name), name))
			return modal_text(tags[i]->tag_value);
	return "";
}

void modal_read_marker(Modal__Client__SandboxTag *const *tags, size_t count, struct marker *out)
{
	(void)marker_read(out, tag_value(tags, count, MODAL_TAG_MACHINE),
			  tag_value(tags, count, MODAL_TAG_RUN),
			  tag_value(tags, count, MODAL_TAG_ATTEMPT),
			  tag_value(tags, count, MODAL_TAG_END));
}

int64_t modal_epoch_s(double at)
{
	return at > 0 && at < EPOCH_MOST_S ? (int64_t)at : 0;
}

/* Whether Modal probably reclaimed the sandbox, which Modal reports as terminated, like one that a
 * client ends. Only sandboxes with GPUs are reclaimed, so one of these whose end burst did not
 * request counts. */
static bool looks_reclaimed(struct provider *p, const struct pod_view *view)
{
	const struct known *k = modal_find_known(p, view->id);
	const char *gpu = view->gpu[0] || !k ? view->gpu : k->view.gpu;

	return view->end == POD_END_OUTSIDE && *gpu && !gpu_is_none(gpu) && !(k && k->ours);
}

void modal_set_ended(struct provider *p, struct pod_view *view,
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
	view->preempted = looks_reclaimed(p, view);
	str_add(&detail, ends[status].words);
	if (result->status != status)
		str_addf(&detail, ", for a reason that burst does not know (status %d)",
			 result->status);
	if (view->preempted)
		str_add(&detail,
			", and not by burst: Modal reclaims sandboxes with GPUs when it needs "
			"them");
	if (result->exitcode)
		str_addf(&detail, " (exit code %d)", result->exitcode);
	if (modal_text(result->exception)[0]) {
		str_add(&detail, ": ");
		str_add_printable(&detail, result->exception, strlen(result->exception),
				  EXCEPTION_MOST);
	}
	COPY_TEXT(view->detail, str_text(&detail));
}

/* Modal may give a better GPU than requested, at the same price: task->gpu_type is the actual. */
static void set_actual_gpu(struct pod_view *view, const Modal__Client__TaskInfo *task)
{
	const char *type = modal_text(task->gpu_type);

	if (!*type && task->gpu_config)
		type = modal_text(task->gpu_config->gpu_type);
	const struct gpu *gpu = *type ? gpu_find(type) : NULL;
	if (*type)
		COPY_TEXT(view->gpu, gpu ? gpu->name : type);
}

void modal_read_task(struct provider *p, struct pod_view *view, const Modal__Client__TaskInfo *task)
{
	if (!task)
		return;
	view->started_at_s = modal_epoch_s(task->started_at);
	view->ended_at_s = modal_epoch_s(task->finished_at);
	set_actual_gpu(view, task);
	if (view->started_at_s)
		view->state = POD_STATE_RUNNING;
	if (task->result && task->result->status)
		modal_set_ended(p, view, task->result);
	else if (view->ended_at_s)
		view->state = POD_STATE_GONE;
}
