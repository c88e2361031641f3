/* spec.c - the Pod that is created for an attempt: no secret, no service account's token, no second
 * life */
#include "base/clock.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "impl.h"

enum {
	/* between SIGTERM and SIGKILL when the cluster takes the pod back: time to save what is
	   finished. A release gives less */
	GRACE_S = 25,
	/* the start script ends the pod at run_s; the kubelet does so this much later */
	DEADLINE_SLACK_S = 60
};

/* Labels by which pods are found, and what else is read back from the pod: any burst can judge it.
 */
static json_t *metadata(const struct section *conf, const struct rent_request *rent)
{
	const struct marker *marker = &rent->marker;
	const char *queue = section_text(conf, "queue");
	char hard_end[24], price[24];

	snprintf(hard_end, sizeof(hard_end), "%lld", (long long)marker->hard_end_s);
	snprintf(price, sizeof(price), "%lld", (long long)rent->offer.price_microusd_h);
	json_t *labels = json_pack("{s:s,s:s,s:s}", LABEL_MACHINE, marker->machine, LABEL_RUN,
				   marker->run, LABEL_ATTEMPT, marker->attempt);
	if (queue)
		json_object_set_new(labels, "kueue.x-k8s.io/queue-name", json_string(queue));
	return json_pack("{s:s,s:o,s:{s:s,s:s,s:s,s:s,s:s,s:s}}", "name", rent->name, "labels",
			 labels, "annotations", NOTE_HARD_END, hard_end, NOTE_GPU, rent->offer.gpu,
			 NOTE_PRICE, price, NOTE_SPOT, rent->offer.spot ? "true" : "false",
			 /* autoscalers move no pod with these to another node */
			 "cluster-autoscaler.kubernetes.io/safe-to-evict", "false",
			 "karpenter.sh/do-not-disrupt", "true");
}

/* A text that Kubernetes must take as it is: in commands and values of variables "$(NAME)" is
 * replaced and "$$" becomes "$" (API reference of Container). */
static json_t *literal(const char *text)
{
	CLEANUP(str_free) struct str doubled = STR_INIT;

	for (; *text; text++) {
		if (*text == '$')
			str_addc(&doubled, '$');
		str_addc(&doubled, *text);
	}
	return json_string(str_text(&doubled));
}

static json_t *env_list(const struct rent_request *rent)
{
	json_t *list = json_array();
	bool secret = false;

	for (size_t i = 0; i < rent->env_count; i++) {
		const struct env_pair *pair = &rent->env[i];
		secret = secret || pair->secret;
		if (!pair->secret && strcmp(pair->name, "BURST_HOME") != 0)
			json_array_append_new(list, json_pack("{s:s,s:o}", "name", pair->name,
							      "value", literal(pair->value)));
	}
	json_array_append_new(
		list, json_pack("{s:s,s:s}", "name", "BURST_HOME", "value", KUBERNETES_HOME));
	json_array_append_new(list, json_pack("{s:s,s:s}", "name", "BURST_REACH", "value", "dial"));
	if (secret)
		json_array_append_new(
			list, json_pack("{s:s,s:s}", "name", "BURST_KEYS", "value", "exec"));
	return list;
}

static void set_amount(json_t *to, const char *key, int64_t amount, const char *unit)
{
	char text[32];

	if (amount <= 0)
		return;
	snprintf(text, sizeof(text), "%lld%s", (long long)amount, unit);
	json_object_set_new(to, key, json_string(text));
}

static json_t *resources(const struct rent_request *rent)
{
	json_t *requests = json_object(), *limits = json_object();

	set_amount(requests, "cpu", rent->cpu, "");
	set_amount(requests, "memory", rent->memory_gb, "Gi");
	set_amount(requests, "ephemeral-storage", rent->disk_gb, "Gi");
	set_amount(limits, kube_resource_of(rent->offer.id), rent->offer.gpus, "");
	return json_pack("{s:o,s:o}", "requests", requests, "limits", limits);
}

static json_t *container(const struct section *conf, const struct rent_request *rent)
{
	json_t *mounts = json_pack("[{s:s,s:s}]", "name", "shm", "mountPath", "/dev/shm");

	if (rent->volume.id[0])
		json_array_append_new(mounts, json_pack("{s:s,s:s}", "name", "volume", "mountPath",
							rent->mount ? rent->mount : "/workspace"));
	return json_pack("{s:s,s:s,s:[s,s,o],s:o,s:o,s:o}", "name", "main", "image",
			 rent->image ? rent->image : section_text(conf, "image"), "command",
			 "/bin/sh", "-c", literal(rent->start_script), "env", env_list(rent),
			 "resources", resources(rent), "volumeMounts", mounts);
}

static json_t *volumes(const struct rent_request *rent)
{
	/* the default of 64 MB is too small for workers that share tensors */
	json_t *list = json_pack("[{s:s,s:{s:s}}]", "name", "shm", "emptyDir", "medium", "Memory");

	if (rent->volume.id[0])
		json_array_append_new(list, json_pack("{s:s,s:{s:s}}", "name", "volume",
						      "persistentVolumeClaim", "claimName",
						      rent->volume.id));
	return list;
}

/* Sets a text of the spec that the config may name. */
static void set_named(json_t *spec, const char *field, const struct section *conf, const char *key)
{
	const char *text = section_text(conf, key);

	if (text)
		json_object_set_new(spec, field, json_string(text));
}

/* Where the pod may run: labels, taints, the class of its runtime and of its priority. */
static void add_placement(json_t *spec, const struct section *conf, const struct offer *offer)
{
	json_t *selector = json_object(), *tolerations = json_array(),
	       *wanted = kube_affinity(offer->id);

	if (offer->gpus)
		json_array_append_new(tolerations, json_pack("{s:s,s:s}", "key", "nvidia.com/gpu",
							     "operator", "Exists"));
	kube_add_selector(selector, conf, "node_selector");
	kube_add_tolerations(tolerations, conf, "tolerations");
	if (offer->spot) {
		kube_add_selector(selector, conf, "spot_selector");
		kube_add_tolerations(tolerations, conf, "spot_tolerations");
	}
	json_object_set_new(spec, "nodeSelector", selector);
	json_object_set_new(spec, "tolerations", tolerations);
	if (wanted)
		json_object_set_new(spec, "affinity", wanted);
	set_named(spec, "runtimeClassName", conf, "runtime_class");
	set_named(spec, "priorityClassName", conf, "priority_class");
	set_named(spec, "serviceAccountName", conf, "service_account");
	if (section_bool(conf, "user_namespaces"))
		json_object_set_new(spec, "hostUsers", json_false());
	if (section_text(conf, "pull_secret"))
		json_object_set_new(
			spec, "imagePullSecrets",
			json_pack("[{s:s}]", "name", section_text(conf, "pull_secret")));
}

json_t *kube_pod_spec(const struct section *conf, const struct rent_request *rent)
{
	json_t *spec = json_pack("{s:s,s:i,s:b,s:b,s:[o],s:o}", "restartPolicy", "Never",
				 "terminationGracePeriodSeconds", GRACE_S,
				 "automountServiceAccountToken", 0, "enableServiceLinks", 0,
				 "containers", container(conf, rent), "volumes", volumes(rent));

	/* the kubelet counts it from the moment a node is chosen, so the image's pull is in it */
	if (rent->run_s > 0)
		json_object_set_new(spec, "activeDeadlineSeconds",
				    json_integer(rent->run_s + DEADLINE_SLACK_S));
	add_placement(spec, conf, &rent->offer);
	return json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "Pod", "metadata",
			 metadata(conf, rent), "spec", spec);
}

char *kube_keys_text(const struct rent_request *rent)
{
	struct str text = STR_INIT;

	for (size_t i = 0; i < rent->env_count; i++) {
		if (!rent->env[i].secret)
			continue;
		str_addf(&text, "export %s=", rent->env[i].name);
		str_add_shell(&text, rent->env[i].value);
		str_addc(&text, '\n');
	}
	if (!text.len)
		return NULL;
	str_add(&text, "# whole\n");
	return str_detach(&text);
}
