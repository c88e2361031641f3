/* pods.c - a Pod object as a pod_view: what the cluster's words mean for a pod of burst */
#include "base/clock.h"
#include "base/jsonx.h"
#include "impl.h"

enum {
	/* a pull may fail because its registry hiccups, and is repeated by the kubelet */
	PULL_RETRIED_S = 60,
	/* a container that outlives its grace by so much is on a node that does not answer */
	NODE_SILENT_S = 15
};

/* What is read of a Pod besides the view. */
struct seen {
	const json_t *status, *waiting, *running, *terminated; /* borrowed; NULL: absent */
	const char *node, *phase, *reason;
	int64_t deleted_s; /* when its grace is over; 0: its end was not asked for */
	bool disrupted;    /* the cluster takes it back */
};

static struct seen look_at(const json_t *pod)
{
	const json_t *status = json_object_get(pod, "status"),
		     *main = json_array_get(json_object_get(status, "containerStatuses"), 0),
		     *state = json_object_get(main, "state"),
		     *target = kube_condition(pod, "DisruptionTarget");

	return (struct seen){
		.status = status,
		.waiting = json_object_get(state, "waiting"),
		.running = json_object_get(state, "running"),
		.terminated = json_object_get(state, "terminated"),
		.node = jsonx_text(json_object_get(pod, "spec"), "nodeName", ""),
		.phase = jsonx_text(status, "phase", ""),
		.reason = jsonx_text(status, "reason", ""),
		.deleted_s = clock_read_rfc3339(
			jsonx_text(json_object_get(pod, "metadata"), "deletionTimestamp", "")),
		.disrupted = !strcmp(jsonx_text(target, "status", ""), "True"),
	};
}

static void explain(struct pod_view *view, const char *reason, const char *message)
{
	CLEANUP(str_free) struct str shown = STR_INIT;

	str_add_printable(&shown, message, strlen(message), sizeof(view->detail) - 48);
	format_text(view->detail, sizeof(view->detail), "%.60s%s%s", reason,
		    reason[0] && shown.len ? ": " : "", str_text(&shown));
}

/* ---- it has ended ---- */

/* Words of status.reason by which a kubelet or the cluster says that it took the pod back. The
 * condition DisruptionTarget is missing before Kubernetes 1.26 and on a node's shutdown. */
static bool is_taken_back(const char *reason)
{
	static const char *const words[] = {"Evicted",    "Preempting",   "Shutdown",
					    "Terminated", "NodeShutdown", "NodeLost"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(reason, words[i]))
			return true;
	return false;
}

/* The phase says the least: a preempted pod that obeys SIGTERM, and one whose child was killed for
 * memory, can both be Succeeded (seen on Kubernetes 1.37). */
static void read_end(const struct seen *seen, struct pod_view *view)
{
	const char *why = jsonx_text(seen->terminated, "reason", "");

	view->state = POD_STATE_GONE;
	view->ended_at_s = clock_read_rfc3339(jsonx_text(seen->terminated, "finishedAt", ""));
	if (seen->disrupted || is_taken_back(seen->reason)) {
		view->preempted = true;
		view->end = POD_END_OUTSIDE;
	} else if (!strcmp(why, "OOMKilled")) {
		view->end = POD_END_MEMORY;
	} else if (!strcmp(seen->reason, "DeadlineExceeded")) {
		view->end = POD_END_LIFETIME;
	} else if (!view->started_at_s) {
		view->end = POD_END_QUEUED;
	} else if (!strcmp(why, "StartError") || !strcmp(why, "ContainerCannotRun")) {
		view->end = POD_END_SETUP;
	} else if (seen->terminated) {
		view->end = seen->deleted_s ? POD_END_OUTSIDE : POD_END_SCRIPT;
	} else {
		view->end = POD_END_VENDOR; /* the node refused it: OutOfcpu and the like */
	}
	explain(view, seen->reason[0] ? seen->reason : why,
		jsonx_text(seen->status, "message", jsonx_text(seen->terminated, "message", "")));
}

/* ---- it has not ---- */

/* No node of the cluster can change what these mean. */
static bool is_hopeless(const char *reason, const char *message)
{
	static const char *const reasons[] = {"InvalidImageName", "ErrImageNeverPull",
					      "CreateContainerConfigError"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (!strcmp(reason, reasons[i]))
			return true;
	return strstr(reason, "Image") && provider_judge_pull(message, true) == PULL_HOPELESS;
}

static bool is_setup_trouble(const char *reason)
{
	return strstr(reason, "Image") || starts_with(reason, "CreateContainer") ||
	       starts_with(reason, "RunContainer");
}

/* It has a node, and its container does not run yet. */
static void read_boot(const struct seen *seen, int64_t now_s, struct pod_view *view)
{
	const char *reason = jsonx_text(seen->waiting, "reason", ""),
		   *message = jsonx_text(seen->waiting, "message", "");

	view->state = POD_STATE_CREATING;
	if (!is_setup_trouble(reason))
		return;
	explain(view, reason, message);
	if (is_hopeless(reason, message) || now_s - view->started_at_s > PULL_RETRIED_S) {
		view->state = POD_STATE_FAILED;
		view->end = POD_END_SETUP;
	}
}

static void read_queue(const json_t *pod, struct pod_view *view)
{
	const json_t *scheduled = kube_condition(pod, "PodScheduled");

	view->state = POD_STATE_QUEUED;
	explain(view, jsonx_text(scheduled, "reason", ""), jsonx_text(scheduled, "message", ""));
}

static bool has_ended(const struct seen *seen)
{
	return !strcmp(seen->phase, "Succeeded") || !strcmp(seen->phase, "Failed");
}

static bool is_silent(const struct seen *seen, int64_t now_s)
{
	return seen->deleted_s && !has_ended(seen) && now_s > seen->deleted_s + NODE_SILENT_S;
}

/* Someone has asked for its end. Within its grace it works on; after that nothing is known of it
 * until its node answers. */
static void read_deletion(const struct seen *seen, int64_t now_s, struct pod_view *view)
{
	bool silent = is_silent(seen, now_s);

	view->state = seen->running && !silent ? POD_STATE_RUNNING : POD_STATE_STOPPED;
	view->preempted = seen->disrupted;
	view->end = POD_END_OUTSIDE;
	if (silent && seen->node[0])
		format_text(view->detail, sizeof(view->detail),
			    "node %.80s does not confirm its end", seen->node);
	else if (silent)
		COPY_TEXT(view->detail, "a finalizer keeps its object; it has no node");
}

static void read_state(const json_t *pod, int64_t now_s, struct pod_view *view)
{
	struct seen seen = look_at(pod);

	if (has_ended(&seen)) {
		read_end(&seen, view);
	} else if (seen.deleted_s) {
		read_deletion(&seen, now_s, view);
	} else if (!view->started_at_s) {
		read_queue(pod, view);
	} else if (seen.running) {
		view->state = POD_STATE_RUNNING;
	} else if (!strcmp(seen.phase, "Pending") || !strcmp(seen.phase, "Running")) {
		read_boot(&seen, now_s, view);
	} else {
		view->state = POD_STATE_UNKNOWN;
		format_text(view->detail, sizeof(view->detail), "node %.80s does not answer",
			    seen.node);
	}
}

bool kube_is_silent(const json_t *pod, int64_t now_s)
{
	struct seen seen = look_at(pod);

	return is_silent(&seen, now_s);
}

/* ---- one and many ---- */

/* When a node was chosen: from then on it holds a GPU. 0: none was. */
static int64_t scheduled_at(const json_t *pod)
{
	const json_t *scheduled = kube_condition(pod, "PodScheduled"),
		     *status = json_object_get(pod, "status");
	int64_t at = !strcmp(jsonx_text(scheduled, "status", ""), "True")
			     ? clock_read_rfc3339(jsonx_text(scheduled, "lastTransitionTime", ""))
			     : 0;

	return at ? at : clock_read_rfc3339(jsonx_text(status, "startTime", ""));
}

/* A count of micro-dollars from an annotation, which anyone may have changed. */
static int64_t read_price(const char *text)
{
	long long price = 0;

	return sscanf(text, "%13lld", &price) == 1 && price > 0 ? price : 0;
}

int kube_read_pod(const json_t *pod, int64_t now_s, struct pod_view *out, struct err *err)
{
	const json_t *meta = json_object_get(pod, "metadata"),
		     *labels = json_object_get(meta, "labels"),
		     *notes = json_object_get(meta, "annotations");
	const char *name = jsonx_text(meta, "name", "");
	struct pod_view view = {0};

	if (!kube_is_name(name))
		return err_set(err, ERR_TRANSIENT, "a pod without a usable name");
	COPY_TEXT(view.id, name);
	COPY_TEXT(view.name, name);
	(void)marker_read(&view.marker, jsonx_text(labels, LABEL_MACHINE, ""),
			  jsonx_text(labels, LABEL_RUN, ""), jsonx_text(labels, LABEL_ATTEMPT, ""),
			  jsonx_text(notes, NOTE_HARD_END, ""));
	COPY_TEXT(view.gpu, jsonx_text(notes, NOTE_GPU, ""));
	COPY_TEXT(view.region, jsonx_text(meta, "namespace", ""));
	view.spot = !strcmp(jsonx_text(notes, NOTE_SPOT, ""), "true");
	view.price_microusd_h = read_price(jsonx_text(notes, NOTE_PRICE, ""));
	view.created_at_s = clock_read_rfc3339(jsonx_text(meta, "creationTimestamp", ""));
	view.started_at_s = scheduled_at(pod);
	read_state(pod, now_s, &view);
	/* each try is a kubectl: none while its image is pulled */
	view.reach = view.state == POD_STATE_RUNNING ? REACH_DIAL : REACH_NONE;
	*out = view;
	return 0;
}

int kube_read_pods(const json_t *list, int64_t now_s, struct op_result *result, struct err *err)
{
	const json_t *items = json_object_get(list, "items"), *pod;
	size_t i;

	/* a reply that is no list must not pass for an empty one */
	if (!json_is_array(items))
		return err_set(err, ERR_TRANSIENT, "a list of pods without items");
	json_array_foreach (items, i, pod) {
		struct pod_view view;
		if (kube_read_pod(pod, now_s, &view, err) < 0)
			return -1;
		*op_result_add_pod(result) = view;
	}
	return op_result_check_counts(result, err);
}
