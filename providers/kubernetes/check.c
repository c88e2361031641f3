/* check.c - the findings of `burst doctor`: kubectl, the server, each right, what a pod would meet,
 * the nodes' GPUs; and the least Role that burst needs */
#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "impl.h"

/* What burst asks of the API, and what it cannot do without it. Servers before Kubernetes 1.35 want
 * "get" for an exec over WebSocket, later ones "create". */
static const struct right {
	const char *resource, *subresource, *verb;
	const char *without; /* NULL: burst cannot work */
} rights[] = {
	{"pods", "", "get", NULL},
	{"pods", "", "list", NULL},
	{"pods", "", "create", NULL},
	{"pods", "", "delete", NULL},
	{"pods", "exec", "create", NULL},
	{"pods", "exec", "get", NULL},
	{"pods", "log", "get", "burst logs shows nothing of a pod that does not start"},
	{"persistentvolumeclaims", "", "get", "no volume can be used"},
	{"persistentvolumeclaims", "", "list", "burst volume list fails"},
	{"persistentvolumeclaims", "", "create", "volume.create = true fails"},
	{"persistentvolumeclaims", "", "delete", "burst volume rm fails"},
	{"nodes", "", "list", "GPUs are those that have a price in providers.kubernetes.prices"},
};

/* The steps, in this order; the rights are between the first two. */
enum { VERSION, RIGHTS, TRIAL = RIGHTS + ARRAY_LEN(rights), NODES, OVER };

static json_t *review_of(const struct section *conf, const struct right *right)
{
	json_t *about = json_pack("{s:s,s:s}", "verb", right->verb, "resource", right->resource);

	if (right->subresource[0])
		json_object_set_new(about, "subresource", json_string(right->subresource));
	if (strcmp(right->resource, "nodes") != 0)
		json_object_set_new(about, "namespace",
				    json_string(section_text(conf, "namespace")));
	return json_pack("{s:s,s:s,s:{s:o}}", "apiVersion", "authorization.k8s.io/v1", "kind",
			 "SelfSubjectAccessReview", "spec", "resourceAttributes", about);
}

/* A pod as burst would create it. With dryRun the server admits or refuses it and makes none, and
 * its date tells the server's clock. */
static json_t *trial_pod(const struct section *conf)
{
	struct rent_request rent = {.offer.id = "any",
				    .start_script = "exit 0",
				    .name = "burst-0000000000000000",
				    .run_s = 60,
				    .marker = {.machine = "0000000000000000",
					       .run = "doctor",
					       .attempt = "0000000000000000",
					       .hard_end_s = 1}};

	return kube_pod_spec(conf, &rent);
}

enum op_next kube_check_ask(struct op *op, struct call *call, struct op_result *result,
			    struct err *err)
{
	const struct section *conf = op->provider->section;

	(void)result;
	(void)err;
	if (op->step == VERSION) {
		kube_arguments(conf, call);
		call_arg(call, "--request-timeout=10s");
		call_arg(call, "version");
		call_arg(call, "--output=json");
		return OP_CALL;
	}
	if (op->step < TRIAL)
		return kube_request(op, call, "create", review_of(conf, &rights[op->step - RIGHTS]),
				    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
	if (op->step == TRIAL)
		return kube_request_in_namespace(op, call, "create", trial_pod(conf),
						 "pods?dryRun=All&fieldValidation=Strict");
	return kube_nodes_ask(op, call);
}

/* ---- findings ---- */

enum { OLDEST_MINOR = 30, CLOCKS_APART_S = 60 };

/* Returns false if the server does not answer: nothing else is asked then. */
static bool add_version(struct op *op, const struct reply *reply, struct err *err)
{
	struct err unreadable;
	CLEANUP(json_decref)
	json_t *object = jsonx_parse(str_text(&reply->body), reply->body.len, &unreadable);
	const json_t *client = json_object_get(object, "clientVersion"),
		     *server = json_object_get(object, "serverVersion");
	long minor = strtol(jsonx_text(client, "minor", "0"), NULL, 10);

	if (client && minor < OLDEST_MINOR)
		str_addf(&op->kept,
			 "bad: kubectl is %.40s, and 1.%d or newer is needed: older ones lose the "
			 "end of what they carry\n",
			 jsonx_text(client, "gitVersion", "?"), OLDEST_MINOR);
	if (!server) {
		(void)kube_failed(op, reply, err);
		str_addf(&op->kept, "bad: %s\n", err->msg);
		err_clear(err);
		return false;
	}
	str_addf(&op->kept, "ok: context %s, namespace %s, server %.40s\n",
		 section_text(op->provider->section, "context"),
		 section_text(op->provider->section, "namespace"),
		 jsonx_text(server, "gitVersion", "?"));
	return true;
}

static void add_right(struct op *op, const struct reply *reply, const struct right *right)
{
	struct err unreadable;
	CLEANUP(json_decref)
	json_t *object = jsonx_parse(str_text(&reply->body), reply->body.len, &unreadable);

	if (jsonx_bool(json_object_get(object, "status"), "allowed", false))
		return;
	str_addf(&op->kept,
		 "%s: no right to %s %s%s%s%s%s: burst doctor --rights prints the Role\n",
		 right->without ? "warn" : "bad", right->verb, right->resource,
		 right->subresource[0] ? "/" : "", right->subresource, right->without ? ": " : "",
		 right->without ? right->without : "");
}

static void add_trial(struct op *op, const struct reply *reply, struct err *err)
{
	CLEANUP(json_decref)
	json_t *pod = reply->status == 0 ? kube_object(reply, err) : NULL;
	int64_t dated_s = clock_read_rfc3339(
		jsonx_text(json_object_get(pod, "metadata"), "creationTimestamp", ""));
	int64_t off_s = dated_s - clock_wall_ms() / 1000;
	char shown[40];

	if (!pod) {
		(void)kube_failed(op, reply, err);
		str_addf(&op->kept, "bad: a pod would be refused: %s\n", err->msg);
	} else if (dated_s && llabs(off_s) > CLOCKS_APART_S) {
		str_addf(&op->kept,
			 "bad: this machine's clock is %s the cluster's: pods would end at the "
			 "wrong time\n",
			 clock_offset_show(shown, sizeof(shown), -off_s * 1000));
	} else {
		str_add(&op->kept, "ok: the cluster would accept a pod\n");
	}
	err_clear(err);
}

/* Returns whether there is another page. */
static bool add_nodes(struct op *op, const struct reply *reply)
{
	static const struct op_want any = {0};
	struct op_result found = {0};
	struct err unreadable;
	int more = reply->status == 0 ? kube_nodes_take(op, reply, false, &unreadable) : -1;

	if (more > 0)
		return true;
	const struct op asked = {.provider = op->provider,
				 .kind = OP_OFFERS,
				 .want = &any,
				 .found.text = op->found.text};
	kube_read_offers(&asked, more == 0, &found);
	for (size_t i = 0; i < found.offer_count; i++)
		if (found.offers[i].gpus)
			str_addf(&op->kept, "%s: %s%s\n",
				 found.offers[i].price_microusd_h ? "ok" : "warn",
				 found.offers[i].gpu,
				 found.offers[i].price_microusd_h
					 ? " has a price"
					 : " has no price in providers.kubernetes.prices: its cost "
					   "is unknown, and max_cost cannot limit it");
	if (!found.offer_count)
		str_add(&op->kept, "warn: no node has a GPU with a label that burst knows\n");
	op_result_free(&found);
	return false;
}

enum op_next kube_check_take(struct op *op, const struct reply *reply, struct op_result *result,
			     struct err *err)
{
	bool goes_on = true, more = false;

	if (op->step == VERSION)
		goes_on = add_version(op, reply, err);
	else if (op->step < TRIAL)
		add_right(op, reply, &rights[op->step - RIGHTS]);
	else if (op->step == TRIAL)
		add_trial(op, reply, err);
	else
		more = add_nodes(op, reply);
	op->step += !more;
	if (goes_on && op->step < OVER)
		return OP_CALL;
	str_add(&result->text, str_text(&op->kept));
	return OP_DONE;
}

/* ---- the Role ---- */

static void add_rules(struct str *to, bool of_nodes)
{
	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		const struct right *right = &rights[i];
		bool first = !i || strcmp(right->resource, rights[i - 1].resource) != 0 ||
			     strcmp(right->subresource, rights[i - 1].subresource) != 0;
		bool last = i + 1 == ARRAY_LEN(rights) ||
			    strcmp(right->resource, rights[i + 1].resource) != 0 ||
			    strcmp(right->subresource, rights[i + 1].subresource) != 0;
		if (!strcmp(right->resource, "nodes") != of_nodes)
			continue;
		if (first)
			str_addf(to, "- apiGroups: [\"\"]\n  resources: [\"%s%s%s\"]\n  verbs: [",
				 right->resource, right->subresource[0] ? "/" : "",
				 right->subresource);
		str_addf(to, "%s\"%s\"%s", first ? "" : ", ", right->verb, last ? "]\n" : "");
	}
}

char *kube_rights(const struct section *conf)
{
	const char *namespace = section_text(conf, "namespace");
	struct str text = STR_INIT;

	str_addf(&text,
		 "# The least that burst needs. Name who gets it, then: kubectl apply -f FILE\n"
		 "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
		 "metadata: {name: burst, namespace: %s}\nrules:\n",
		 namespace);
	add_rules(&text, false);
	str_addf(&text,
		 "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n"
		 "metadata: {name: burst, namespace: %s}\n"
		 "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: burst}\n"
		 "subjects:\n- {apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME}\n"
		 "---\n# Without this burst cannot see which GPUs the nodes have\n"
		 "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
		 "metadata: {name: burst-nodes}\nrules:\n",
		 namespace);
	add_rules(&text, true);
	str_add(&text,
		"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n"
		"metadata: {name: burst-nodes}\n"
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "
		"burst-nodes}\n"
		"subjects:\n- {apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME}\n");
	return str_detach(&text);
}
