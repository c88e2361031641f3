/* kubernetes.c - the Kubernetes provider: its keys, and which calls each operation consists of */
#include "kubernetes.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/incbin.h"
#include "base/jsonx.h"
#include "impl.h"

/* ---- config ---- */

static const struct option_spec options[] = {
	{"context", OPTION_TEXT, OPTION_USER_ONLY | OPTION_REQUIRED, NULL,
	 "context of your kubeconfig: kubectl config get-contexts"},
	{"kubeconfig", OPTION_PATH, OPTION_USER_ONLY, NULL,
	 "kubeconfig file (absent: as kubectl finds it)"},
	{"namespace", OPTION_TEXT, OPTION_USER_ONLY, "default", "namespace of pods and volumes"},
	{"image", OPTION_TEXT, 0, KUBERNETES_IMAGE, "image of pods if pod.image is absent"},
	{"pull_secret", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "Secret of the namespace that reads private images"},
	{"prices", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "GPUs and the dollars that an hour of one costs, as in [\"L40S=1.10\", \"T4\"]; without a "
	 "price the cost is unknown"},
	{"spot_prices", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "the same on nodes that may be taken back"},
	{"node_selector", OPTION_TEXTS, 0, NULL,
	 "labels that a node must have, as in [\"pool=gpu\"]"},
	{"tolerations", OPTION_TEXTS, 0, NULL,
	 "taints that pods tolerate, as in [\"dedicated=gpu:NoSchedule\"]"},
	{"spot_selector", OPTION_TEXTS, 0, NULL,
	 "labels of nodes that may be taken back, as in [\"cloud.google.com/gke-spot=true\"]"},
	{"spot_tolerations", OPTION_TEXTS, 0, NULL, "taints of such nodes"},
	{"runtime_class", OPTION_TEXT, 0, NULL, "RuntimeClass of pods, as in \"nvidia\""},
	{"queue", OPTION_TEXT, 0, NULL, "Kueue's LocalQueue for pods"},
	{"priority_class", OPTION_TEXT, OPTION_USER_ONLY, NULL, "PriorityClass of pods"},
	{"service_account", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "ServiceAccount of pods; they never get its token"},
	{"user_namespaces", OPTION_BOOL, OPTION_USER_ONLY, "false",
	 "root in a pod is a user without rights on its node (hostUsers: false)"},
	{"storage_class", OPTION_TEXT, 0, NULL, "StorageClass of volumes that burst makes"},
	{"volume_access", OPTION_TEXT, 0, "ReadWriteOnce",
	 "access mode of such volumes; more than one pod needs \"ReadWriteMany\""},
	{NULL},
};

static int check_name(const struct section *s, const char *group, const char *key, struct err *err)
{
	const char *text = section_text(s, key);

	return text && !kube_is_name(text)
		       ? provider_bad_value(s, group, key,
					    "a name of small letters, digits and '-'", err)
		       : 0;
}

static int check_access(const struct section *s, const char *group, const char *key,
			struct err *err)
{
	const char *text = section_text(s, key);

	return strcmp(text, "ReadWriteOnce") && strcmp(text, "ReadWriteMany")
		       ? provider_bad_value(s, group, key, "\"ReadWriteOnce\" or \"ReadWriteMany\"",
					    err)
		       : 0;
}

static int kubernetes_check_conf(const struct section *s, struct mistakes *m, struct err *err)
{
	static const struct key_check checks[] = {
		{"namespace", check_name},
		{"image", provider_check_image},
		{"pull_secret", check_name},
		{"prices", provider_check_cards},
		{"spot_prices", provider_check_cards},
		{"node_selector", kube_check_selector},
		{"tolerations", kube_check_tolerations},
		{"spot_selector", kube_check_selector},
		{"spot_tolerations", kube_check_tolerations},
		{"runtime_class", check_name},
		{"queue", check_name},
		{"priority_class", check_name},
		{"service_account", check_name},
		{"storage_class", check_name},
		{"volume_access", check_access},
		{NULL, NULL},
	};

	return provider_check_keys(checks, s, "providers.kubernetes", m, err);
}

static int check_spot(const struct section *s, const struct op_want *want, struct err *err)
{
	if (!want->offers.spot || section_count(s, "spot_selector") ||
	    section_count(s, "spot_tolerations"))
		return 0;
	err_set(err, ERR_CONFIG,
		"spot = true: name the nodes that may be taken back in "
		"providers.kubernetes.spot_selector or spot_tolerations");
	return err_about(err, "spot");
}

static int kubernetes_check_wishes(const struct section *s, const struct op_want *want,
				   struct mistakes *m, struct err *err)
{
	static want_check *const checks[] = {check_spot, NULL};

	return provider_judge_wishes(checks, s, want, m, err);
}

/* ---- offers ---- */

enum { SEE_NODES, SEE_CLAIM };

static enum op_next ask_offers(struct op *op, struct call *call, struct err *err)
{
	if (op->step == SEE_CLAIM)
		return kube_request_in_namespace(op, call, "get", NULL, "persistentvolumeclaims/%s",
						 op->want->offers.volume.id);
	if (kubernetes_check_wishes(op->provider->section, op->want, NULL, err) < 0)
		return OP_FAILED;
	return kube_nodes_ask(op, call);
}

/* A claim that one node mounts at a time serves one pod: the cluster may put the next one on
 * another node, where it would wait for ever. */
static void limit_to_one_pod(const json_t *claim, struct op_result *result)
{
	const json_t *modes = json_object_get(json_object_get(claim, "spec"), "accessModes"), *mode;
	size_t i;

	json_array_foreach (modes, i, mode)
		if (json_is_string(mode) && !strcmp(json_string_value(mode), "ReadWriteMany"))
			return;
	for (i = 0; i < result->offer_count; i++)
		result->offers[i].pods_max = 1;
	str_addf(&result->text,
		 "volume claim %s is not ReadWriteMany: one pod at a time can use it\n",
		 jsonx_text(json_object_get(claim, "metadata"), "name", ""));
}

/* Reads a page of nodes. Without the right to list them (op->found.partial) the config says which
 * GPUs there are. OP_DONE: it was the last one. */
static enum op_next take_nodes(struct op *op, const struct reply *reply, struct err *err)
{
	int more = 0;

	if (reply->status == 0) {
		more = kube_nodes_take(op, reply, op->want->offers.spot, err);
		op->found.partial = false;
	} else {
		(void)kube_failed(op, reply, err);
		if (err->kind != ERR_CREDENTIALS || !strstr(str_text(&reply->head), "(Forbidden)"))
			return OP_FAILED;
		err_clear(err);
		op->found.partial = true;
	}
	return more < 0 ? OP_FAILED : more ? OP_CALL : OP_DONE;
}

static enum op_next take_offers(struct op *op, const struct reply *reply, struct op_result *result,
				struct err *err)
{
	CLEANUP(json_decref) json_t *claim = NULL;

	if (op->step == SEE_NODES) {
		enum op_next next = take_nodes(op, reply, err);
		if (next != OP_DONE)
			return next;
		op->step = SEE_CLAIM;
		if (kube_is_name(op->want->offers.volume.id))
			return OP_CALL;
	} else if (reply->status != 0) {
		return kube_failed(op, reply, err);
	} else if (!(claim = kube_object(reply, err))) {
		return OP_FAILED;
	}
	kube_read_offers(op, !op->found.partial, result);
	if (claim)
		limit_to_one_pod(claim, result);
	return OP_DONE;
}

/* ---- rent ---- */

enum { MAKE_POD, SEE_POD };

static enum op_next ask_rent(struct op *op, struct call *call)
{
	if (op->step == SEE_POD) {
		call->class = CALL_POLL;
		return kube_request_in_namespace(op, call, "get", NULL, "pods/%s",
						 op->want->rent.name);
	}
	/* now, not with the reply: a pod whose reply is lost may be found in a list */
	char *keys = kube_keys_text(&op->want->rent);
	if (keys)
		kube_keys_add(op->provider, op->want->rent.name, keys);
	return kube_request_in_namespace(op, call, "create",
					 kube_pod_spec(op->provider->section, &op->want->rent),
					 "pods?fieldValidation=Strict");
}

/* The name is random and works once, so a pod that has it is ours unless its label says otherwise.
 */
static enum op_next take_rent(struct op *op, const struct reply *reply, struct op_result *result,
			      struct err *err)
{
	const struct rent_request *rent = &op->want->rent;
	struct pod_view view;

	if (reply->status != 0 && op->step == MAKE_POD &&
	    strstr(str_text(&reply->head), "(AlreadyExists)")) {
		op->step = SEE_POD;
		return OP_CALL;
	}
	if (reply->status != 0) {
		(void)kube_failed(op, reply, err);
		if (err->kind != ERR_AMBIGUOUS)
			kube_keys_forget(op->provider, rent->name);
		return OP_FAILED;
	}
	CLEANUP(json_decref) json_t *pod = kube_object(reply, err);
	if (!pod || kube_read_pod(pod, clock_wall_ms() / 1000, &view, err) < 0)
		return child_no_answer(op, err->msg, err);
	if (strcmp(view.marker.attempt, rent->marker.attempt) != 0) {
		err_set(err, ERR_REFUSED,
			"kubernetes: pod %s exists already, and burst did not make it", rent->name);
		return OP_FAILED;
	}
	*op_result_add_pod(result) = view;
	kube_keys_hold_back(op->provider, result);
	return OP_DONE;
}

/* ---- logs ---- */

enum { SEE_STATE, SEE_LOG };

/* Why it does not run, as the cluster says: in the pod's status, which needs no right to events. */
static void add_status_lines(const json_t *pod, struct str *to)
{
	struct pod_view view;
	struct err err;

	if (kube_read_pod(pod, clock_wall_ms() / 1000, &view, &err) < 0)
		return;
	if (view.detail[0])
		str_addf(to, "%s%s\n", view.end == POD_END_SETUP ? "image: " : "", view.detail);
}

static enum op_next ask_logs(const struct op *op, struct call *call)
{
	if (op->step == SEE_STATE)
		return kube_request_in_namespace(op, call, "get", NULL, "pods/%s", op->want->id);
	return kube_request_in_namespace(
		op, call, "get", NULL,
		"pods/%s/log?container=main&tailLines=1000&limitBytes=262144", op->want->id);
}

static enum op_next take_logs(struct op *op, const struct reply *reply, struct op_result *result,
			      struct err *err)
{
	const char *at = str_text(&reply->body), *end = at + reply->body.len, *line;
	size_t len;

	if (op->step == SEE_STATE) {
		if (reply->status != 0)
			return kube_failed(op, reply, err);
		CLEANUP(json_decref) json_t *pod = kube_object(reply, err);
		if (!pod)
			return OP_FAILED;
		add_status_lines(pod, &op->kept);
		op->step = SEE_LOG;
		return OP_CALL;
	}
	/* a container that has not started has no log, which is no failure */
	while (reply->status == 0 && (line = bytes_next_line(&at, end, &len))) {
		str_add(&result->text, "container: ");
		str_add_printable(&result->text, line, len, 0);
		str_addc(&result->text, '\n');
	}
	str_add(&result->text, str_text(&op->kept));
	return OP_DONE;
}

/* ---- every operation ---- */

static bool is_about_a_pod(enum op_kind kind)
{
	return kind == OP_INSPECT || kind == OP_RELEASE || kind == OP_LOGS || kind == OP_BILLING;
}

static enum op_next kubernetes_ask(struct op *op, struct call *call, struct op_result *result,
				   struct err *err)
{
	if (is_about_a_pod(op->kind) && !kube_is_name(op->want->id)) {
		err_set(err, ERR_NOT_FOUND, "kubernetes: no pod can have the id \"%s\"",
			op->want->id);
		return OP_FAILED;
	}
	switch (op->kind) {
	case OP_CHECK: return kube_check_ask(op, call, result, err);
	case OP_OFFERS: return ask_offers(op, call, err);
	case OP_VOLUME:
	case OP_VOLUMES:
	case OP_VOLUME_REMOVE: return kube_volume_ask(op, call, result, err);
	case OP_RENT: return ask_rent(op, call);
	case OP_INSPECT:
	case OP_LIST: return kube_list_ask(op, call);
	case OP_RELEASE: return kube_release_ask(op, call, err);
	case OP_LOGS: return ask_logs(op, call);
	case OP_BILLING:
		err_set(err, ERR_NOT_FOUND, "kubernetes: a cluster writes no bills");
		return OP_FAILED;
	case OP_BALANCE: return OP_DONE; /* a cluster has none */
	case OP_STAGE:
	case OP_FETCH:
	case OP_VOLUME_LS:
	case OP_VOLUME_DELETE:
	case OP_VOLUME_SIZE:
	case OP_IMAGE: break;
	}
	err_set(err, ERR_BUG, "kubernetes: %s is not offered", child_verb(op->kind));
	return OP_FAILED;
}

static enum op_next kubernetes_take(struct op *op, const struct reply *reply,
				    struct op_result *result, struct err *err)
{
	switch (op->kind) {
	case OP_CHECK: return kube_check_take(op, reply, result, err);
	case OP_OFFERS: return take_offers(op, reply, result, err);
	case OP_VOLUME:
	case OP_VOLUMES:
	case OP_VOLUME_REMOVE: return kube_volume_take(op, reply, result, err);
	case OP_RENT: return take_rent(op, reply, result, err);
	case OP_INSPECT:
	case OP_LIST: return kube_list_take(op, reply, result, err);
	case OP_LOGS: return take_logs(op, reply, result, err);
	case OP_RELEASE: return kube_release_take(op, reply, result, err);
	case OP_BILLING:
	case OP_BALANCE:
	case OP_STAGE:
	case OP_FETCH:
	case OP_VOLUME_LS:
	case OP_VOLUME_DELETE:
	case OP_VOLUME_SIZE:
	case OP_IMAGE: break;
	}
	return reply->status == 0 ? OP_DONE : kube_failed(op, reply, err);
}

static const struct child_vendor vendor = {
	.name = KUBERNETES_NAME,
	.words = kube_words,
	.ask = kubernetes_ask,
	.take = kubernetes_take,
};

static enum op_next kubernetes_next(struct op *op, const struct reply *reply, struct call *call,
				    int64_t *wait_ms, struct op_result *result, struct err *err)
{
	struct reply lost;

	(void)wait_ms;
	/* keys that could not be brought to one pod are no reason not to show the others, and a
	 * release that was accepted stays so */
	if (reply && reply->failed && op->step > 0 &&
	    (op->kind == OP_LIST || op->kind == OP_INSPECT || op->kind == OP_RELEASE)) {
		lost = *reply;
		lost.failed = false;
		lost.status = 1;
		reply = &lost;
	}
	enum op_next next = child_next(op, reply, call, result, err);
	/* waiting does not bring the program */
	if (next == OP_FAILED && reply && reply->failed && reply->err.kind == ERR_LOCAL &&
	    !reply->was_sent && (op->kind == OP_OFFERS || op->kind == OP_CHECK))
		err_set(err, ERR_CONFIG, "kubernetes: %s: kubectl 1.30 or newer is needed here",
			reply->err.msg);
	return next;
}

/* ---- open ---- */

static int kubernetes_open(struct provider **out, const struct section *s, const char *state_dir,
			   struct err *err)
{
	const char *context = section_text(s, "context");

	if (!context || !*context)
		return err_set(err, ERR_NO_ACCOUNT,
			       "kubernetes: no context: name one of kubectl config get-contexts in "
			       "providers.kubernetes.context of your own burst.cfg, or in "
			       "KUBERNETES_CONTEXT");
	if (kubernetes_check_conf(s, NULL, err) < 0)
		return -1;
	/* a list covers one namespace of one cluster, so the name has both */
	CLEANUP(free_text)
	char *where = xasprintf("%s\n%s", context, section_text(s, "namespace"));
	CLEANUP(free_text) char *account = provider_account_name(KUBERNETES_NAME, where);
	*out = child_open(&vendor, s, state_dir, account);
	(*out)->own = kube_keys_new();
	return 0;
}

static void kubernetes_close(struct provider *p)
{
	if (p)
		kube_keys_free(p->own);
	child_close(p);
}

static int kubernetes_dial(const struct provider *p, const struct pod_view *pod, struct call *call,
			   struct err *err)
{
	if (!kube_is_name(pod->id))
		return err_set(err, ERR_REFUSED, "kubernetes: no pod can have the id \"%s\"",
			       pod->id);
	kube_arguments(p->section, call);
	kube_exec_arguments(call, pod->id);
	call_arg(call, "sh");
	call_arg(call, KUBERNETES_HOME "/connect");
	return 0;
}

INCBIN(kubernetes_end_script, "providers/kubernetes/end.sh");

const struct provider_ops provider_kubernetes = {
	.abi = PROVIDER_ABI,
	.name = KUBERNETES_NAME,
	.summary = "pods on your Kubernetes cluster, through kubectl",
	.setup =
		"your own file needs the cluster: providers = { kubernetes = { context = \"work\"; "
		"namespace = \"renders\"; prices = [\"L40S=1.10\"]; }; };",
	.end_script = kubernetes_end_script,
	.options = options,
	.poll_ms = 2000,
	.waits_free = true,
	.create_once = true,
	.open = kubernetes_open,
	.close = kubernetes_close,
	.account = child_account,
	.begin = child_begin,
	.next = kubernetes_next,
	.op_free = child_op_free,
	.check_conf = kubernetes_check_conf,
	.check_wishes = kubernetes_check_wishes,
	.dial = kubernetes_dial,
	.rights = kube_rights,
};
