/* pods.c - reads, lists and releases pods. */
#include "impl.h"

#include "base/gpus.h"
#include "base/jsonx.h"

/* ---- reading ---- */

static enum pod_state state_of(const char *status)
{
	static const struct {
		const char *word;
		enum pod_state state;
	} words[] = {
		{"PROVISIONING", POD_STATE_CREATING}, {"STARTING", POD_STATE_CREATING},
		{"RUNNING", POD_STATE_RUNNING},       {"EXITED", POD_STATE_STOPPED},
		{"ERROR", POD_STATE_FAILED},          {"TERMINATED", POD_STATE_GONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(status, words[i].word))
			return words[i].state;
	return POD_STATE_UNKNOWN;
}

static void read_marker(const json_t *env, struct marker *out)
{
	(void)marker_read(out, jsonx_text(env, "BURST_MACHINE", ""),
			  jsonx_text(env, "BURST_RUN", ""), jsonx_text(env, "BURST_ATTEMPT", ""),
			  jsonx_text(env, "BURST_HARD_END", ""));
}

static void set_address(struct pod_view *view, const char *host, int64_t port, const char *user)
{
	if (!host[0] || strlen(host) >= sizeof(view->host) || port < 1 || port > 65535 ||
	    !user[0] || strlen(user) >= sizeof(view->user))
		return;
	COPY_TEXT(view->host, host);
	COPY_TEXT(view->user, user);
	view->port = (int)port;
}

/* Uses ssh.direct, else the mapping of port 22. Never ssh.proxy, which cannot transfer files. */
static void read_address(const json_t *from, struct pod_view *view)
{
	const json_t *direct = json_object_get(json_object_get(from, "ssh"), "direct"), *port;
	size_t i;

	set_address(view, jsonx_text(direct, "host", ""), jsonx_int(direct, "port", 0),
		    jsonx_text(direct, "username", "root"));
	if (view->port)
		return;
	json_array_foreach (json_object_get(json_object_get(from, "runtime"), "ports"), i, port)
		if (jsonx_int(port, "private", 0) == 22 &&
		    !strcmp(jsonx_text(port, "type", "tcp"), "tcp"))
			set_address(view, jsonx_text(port, "ip", ""), jsonx_int(port, "public", 0),
				    "root");
}

static void read_state(const json_t *from, struct pod_view *view)
{
	const char *status = jsonx_text(from, "status", "");
	const json_t *gpu = json_object_get(from, "gpu");

	view->state = state_of(status);
	view->preempted =
		view->spot && (view->state == POD_STATE_STOPPED || view->state == POD_STATE_GONE);
	switch (view->state) {
	case POD_STATE_UNKNOWN:
		snprintf(view->detail, sizeof(view->detail), "RunPod's status is %.40s", status);
		break;
	case POD_STATE_FAILED:
		COPY_TEXT(view->detail, "RunPod's status is ERROR: its container cannot run");
		break;
	case POD_STATE_STOPPED: COPY_TEXT(view->detail, "RunPod's status is EXITED"); break;
	case POD_STATE_RUNNING:
		if (gpu && !jsonx_int(gpu, "count", 1)) {
			view->state = POD_STATE_FAILED;
			COPY_TEXT(view->detail, "it booted without a GPU");
		}
		break;
	case POD_STATE_CREATING:
	case POD_STATE_GONE:
	case POD_STATE_QUEUED: break;
	}
}

int pods_read(const json_t *from, struct pod_view *out, struct err *err)
{
	const char *id = jsonx_text(from, "id", ""),
		   *type = jsonx_text(json_object_get(from, "gpu"), "id", "");
	const json_t *env = json_object_get(from, "env");
	struct pod_view view = {0};

	if (!api_id_is_sound(id))
		return err_set(err, ERR_TRANSIENT, "a pod without a usable id");
	COPY_TEXT(view.id, id);
	COPY_TEXT(view.name, jsonx_text(from, "name", ""));
	read_marker(env, &view.marker);
	view.spot = !strcmp(jsonx_text(env, "BURST_SPOT", ""), "1");
	read_state(from, &view);
	/* a stopped pod may still show its old address */
	if (view.state == POD_STATE_RUNNING || view.state == POD_STATE_UNKNOWN)
		read_address(from, &view);
	if (type[0])
		gpu_shown(view.gpu, type, "");
	else if (json_is_object(json_object_get(from, "cpu")))
		COPY_TEXT(view.gpu, "none");
	COPY_TEXT(view.region, jsonx_text(from, "dataCenterId", ""));
	view.price_microusd_h = api_microusd(from, "cost");
	view.created_at_s = api_time(jsonx_text(from, "createdAt", ""));
	view.started_at_s = api_time(jsonx_text(from, "startedAt", ""));
	*out = view;
	return 0;
}

struct pod_view *add_pod(struct op *op)
{
	op->got.pods = xrealloc(op->got.pods, (op->got.pod_count + 1) * sizeof(*op->got.pods));
	struct pod_view *pod = &op->got.pods[op->got.pod_count++];

	*pod = (struct pod_view){0};
	return pod;
}

/* ---- renting ---- */

/* ---- inspect and list ---- */

/* Records that a vendor which no longer knows a pod bills nothing for it. */
enum op_next inspect_next(struct turn *t)
{
	if (!t->reply)
		return api_request(t, CALL_POLL, "GET", NULL, "/pods/%s", t->op->want->id);
	CLEANUP(json_decref) json_t *pod = api_object(t, "looking at a pod");
	if (!pod && t->err->kind != ERR_NOT_FOUND)
		return OP_FAILED;
	struct pod_view view = {.state = POD_STATE_GONE};
	COPY_TEXT(view.id, t->op->want->id);
	COPY_TEXT(view.detail, "RunPod does not know this pod");
	if (pod && pods_read(pod, &view, t->err) < 0)
		return OP_FAILED;
	err_clear(t->err);
	*add_pod(t->op) = view;
	return api_done(t);
}

/* Matches "burst-ATTEMPT": the name stays if a user changes the pod's environment in RunPod's
 * console. A pod that is not listed counts as gone. */
static bool has_our_name(const json_t *pod)
{
	const char *name = jsonx_text(pod, "name", "");

	return starts_with(name, "burst-") && strspn(name + 6, "0123456789abcdef") == 16 &&
	       !name[22];
}

static bool is_listed(const struct op *op, const char *id)
{
	for (size_t i = 0; i < op->got.pod_count; i++)
		if (!strcmp(op->got.pods[i].id, id))
			return true;
	return false;
}

/* Returns 1 if there are more pages. */
static int read_page(struct turn *t, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "pods"), *item;
	struct pod_view view;
	size_t i;

	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "listing pods: the answer has no list");
	json_array_foreach (list, i, item) {
		struct marker marker = {0};
		read_marker(json_object_get(item, "env"), &marker);
		if (!marker.attempt[0] && !has_our_name(item))
			continue; /* not burst's */
		if (pods_read(item, &view, t->err) < 0)
			return err_wrap(t->err, "listing pods");
		/* pods changed between two pages */
		if (!t->op->pages || !is_listed(t->op, view.id))
			*add_pod(t->op) = view;
	}
	return api_further_pages(t, answer, "pods");
}

enum op_next list_next(struct turn *t)
{
	if (!t->reply)
		return api_request_pods(t);
	CLEANUP(json_decref) json_t *answer = api_object(t, "listing pods");
	int more = answer ? read_page(t, answer) : -1;
	if (more > 0)
		return api_request_pods(t);
	return more < 0 ? OP_FAILED : api_done(t);
}

/* ---- release ---- */

static bool is_gone(struct turn *t, const char *doing)
{
	t->op->got.release = api_check(t, doing) == 0 ? RELEASE_ENDED : RELEASE_ABSENT;
	return t->op->got.release == RELEASE_ENDED || t->err->kind == ERR_NOT_FOUND;
}

/* DELETE. If that is not allowed (409: locked, or by its state): unlock, DELETE, terminate. */
enum op_next release_next(struct turn *t)
{
	static const char *const doing = "ending a pod";
	struct op *op = t->op;
	const char *id = op->want->id;

	switch (op->step++) {
	case 0: return api_request(t, CALL_RELEASE, "DELETE", NULL, "/pods/%s", id);
	case 1:
		if (is_gone(t, doing))
			break;
		if (t->err->kind != ERR_REFUSED && t->err->kind != ERR_CONFIG &&
		    t->err->kind != ERR_BUG)
			return OP_FAILED;
		op->first = *t->err;
		err_clear(t->err);
		return api_request(t, CALL_RELEASE, "PATCH", json_pack("{s:b}", "locked", 0),
				   "/pods/%s", id);
	case 2: /* whatever the reply */
		return api_request(t, CALL_RELEASE, "DELETE", NULL, "/pods/%s", id);
	case 3:
		if (is_gone(t, doing))
			break;
		err_clear(t->err);
		return api_request(t, CALL_RELEASE, "POST",
				   json_pack("{s:s}", "action", "terminate"), "/pods/%s/action",
				   id);
	default:
		if (is_gone(t, doing))
			break;
		*t->err = op->first;
		return OP_FAILED;
	}
	err_clear(t->err);
	return api_done(t);
}

/* ---- its log ---- */
