/* rent.c - rents a pod: through REST, or through GraphQL for a spot pod */
#include "base/crypto.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "impl.h"

/* The start command as JSON, which also replaces the entrypoint. A plain string would only become
 * the arguments of the image's entrypoint (docs.runpod.io, manage templates: container start
 * command). The caller frees it. */
static char *start_command(const char *script)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_add(&text, "umask 077; echo ");
	base64_add(&text, script, strlen(script));
	str_add(&text,
		" >/tmp/burst-start.b64; base64 -d /tmp/burst-start.b64 >/tmp/burst-start || "
		"openssl base64 -d -A -in /tmp/burst-start.b64 -out /tmp/burst-start; exec sh "
		"/tmp/burst-start");
	CLEANUP(json_decref)
	json_t *command =
		json_pack("{s:[s,s],s:[s]}", "entrypoint", "/bin/sh", "-c", "cmd", str_text(&text));
	return jsonx_line(command);
}

/* The rent's environment, the marker and what end.sh needs. The caller frees it. */
static json_t *pod_env(const struct op *op)
{
	const struct rent_request *rent = &op->want->rent;
	json_t *env = json_object();

	for (size_t i = 0; i < rent->env_count; i++) {
		json_object_set_new(env, rent->env[i].name, json_string(rent->env[i].value));
		/* RunPod's own name for this key */
		if (!strcmp(rent->env[i].name, "BURST_AUTHORIZED_KEY"))
			json_object_set_new(env, "PUBLIC_KEY", json_string(rent->env[i].value));
	}
	/* the marker is read back from these, whatever else the caller sends */
	char hard_end[24];
	snprintf(hard_end, sizeof(hard_end), "%lld", (long long)rent->marker.hard_end_s);
	json_object_set_new(env, "BURST_MACHINE", json_string(rent->marker.machine));
	json_object_set_new(env, "BURST_RUN", json_string(rent->marker.run));
	json_object_set_new(env, "BURST_ATTEMPT", json_string(rent->marker.attempt));
	json_object_set_new(env, "BURST_HARD_END", json_string(hard_end));
	json_object_set_new(env, "BURST_API_URL", json_string(op->provider->root));
	json_object_set_new(env, "BURST_HIDE", json_string("RUNPOD_API_KEY"));
	if (rent->offer.spot)
		json_object_set_new(env, "BURST_SPOT", json_string("1"));
	return env;
}

/* The "gpu" of a create: type, count and least CUDA version. */
static json_t *gpu_fields(const struct op *op, const struct placement *where)
{
	const char *cuda = least_cuda_version(op, op->want->rent.image);
	const struct rent_request *rent = &op->want->rent;
	json_t *gpu = json_object();

	json_object_set_new(gpu, "id", json_string(where->type));
	/* its documented default does not work */
	json_object_set_new(gpu, "count", json_integer(where->count));
	if (cuda)
		json_object_set_new(gpu, "minCudaVersion", json_string(cuda));
	bool filters = section_bool(op->provider->conf, "placement_filters");
	if (filters && rent->memory_gb)
		json_object_set_new(gpu, "minRamPerGpu",
				    json_integer(MAX(rent->memory_gb / where->count, (int64_t)1)));
	if (filters && rent->cpu)
		json_object_set_new(gpu, "minVcpuCountPerGpu",
				    json_integer(MAX(rent->cpu / where->count, (int64_t)1)));
	return gpu;
}

/* The body of POST /v2/pods. */
static json_t *rest_body(const struct op *op, const struct placement *where)
{
	const struct rent_request *rent = &op->want->rent;
	const char *image = image_or_default(op->provider, rent->image);
	const char *registry = provider_registry_name(op->provider->conf, "registry", image);
	CLEANUP(free_text) char *args = start_command(rent->start_script);
	json_t *body = json_object();

	json_object_set_new(body, "name", json_string(rent->name));
	json_object_set_new(body, "image", json_string(image));
	json_object_set_new(body, "cloud", json_string(where->community ? "COMMUNITY" : "SECURE"));
	if (where->datacenter[0])
		json_object_set_new(body, "dataCenterIds", json_pack("[s]", where->datacenter));
	if (where->cpu)
		json_object_set_new(
			body, "cpu",
			json_pack("{s:s,s:i}", "id", where->type, "vcpuCount", where->count));
	else
		json_object_set_new(body, "gpu", gpu_fields(op, where));
	json_object_set_new(body, "disk", json_integer(disk_gb_or_default(rent->disk_gb, where)));
	json_object_set_new(body, "ports", json_pack("[s]", "22/tcp"));
	if (rent->volume.id[0])
		json_object_set_new(body, "mounts",
				    json_pack("{s:[{s:s,s:s}]}", "network", "volumeId",
					      rent->volume.id, "path",
					      rent->mount ? rent->mount : "/workspace"));
	if (registry)
		json_object_set_new(body, "registry", json_string(registry));
	json_object_set_new(body, "args", json_string(args));
	json_object_set_new(body, "env", pod_env(op));
	return body;
}

/* All CUDA versions from floor on: GraphQL takes no least version, only a list. */
static json_t *cuda_versions_from(const char *floor)
{
	json_t *list = json_array();
	int major = 0, minor = 0;

	sscanf(floor, "%d.%d", &major, &minor);
	for (int v = 118; v <= 139; v++) {
		bool real = v == 118 || (v >= 120 && v <= 129) || v >= 130;
		if (real && v >= major * 10 + minor) {
			CLEANUP(free_text) char *text = xasprintf("%d.%d", v / 10, v % 10);
			json_array_append_new(list, json_string(text));
		}
	}
	if (!json_array_size(list)) /* an empty list would allow all */
		json_array_append_new(list, json_string(floor));
	return list;
}

/* The input of the mutation that rents a spot pod. */
static json_t *graphql_spot_input(const struct op *op, const struct placement *where)
{
	const struct rent_request *rent = &op->want->rent;
	const char *image = image_or_default(op->provider, rent->image), *name;
	const char *cuda = least_cuda_version(op, rent->image);
	const char *registry = provider_registry_name(op->provider->conf, "registry", image);
	CLEANUP(json_decref) json_t *env = pod_env(op);
	CLEANUP(free_text) char *args = start_command(rent->start_script);
	json_t *input = json_object(), *pairs = json_array(), *value;

	json_object_foreach (env, name, value)
		json_array_append_new(pairs, json_pack("{s:s,s:O}", "key", name, "value", value));
	json_object_set_new(input, "name", json_string(rent->name));
	json_object_set_new(input, "imageName", json_string(image));
	/* not in RunPod's published specification; a server without it would make no pod */
	if (registry)
		json_object_set_new(input, "containerRegistryAuthId", json_string(registry));
	json_object_set_new(input, "gpuTypeId", json_string(where->type));
	json_object_set_new(input, "gpuCount", json_integer(where->count));
	int64_t bid = rent->offer.price_microusd_h - disk_microusd_h(rent->disk_gb, where);
	json_object_set_new(input, "bidPerGpu", json_real((double)(bid / where->count) / 1e6));
	json_object_set_new(input, "cloudType",
			    json_string(where->community ? "COMMUNITY" : "SECURE"));
	json_object_set_new(input, "containerDiskInGb",
			    json_integer(disk_gb_or_default(rent->disk_gb, where)));
	json_object_set_new(input, "volumeInGb", json_integer(0));
	json_object_set_new(input, "volumeMountPath",
			    json_string(rent->mount ? rent->mount : "/workspace"));
	if (rent->volume.id[0])
		json_object_set_new(input, "networkVolumeId", json_string(rent->volume.id));
	if (where->datacenter[0])
		json_object_set_new(input, "dataCenterId", json_string(where->datacenter));
	if (cuda)
		json_object_set_new(input, "allowedCudaVersions", cuda_versions_from(cuda));
	json_object_set_new(input, "ports", json_string("22/tcp"));
	/* hosts of this cloud may lack a public address, and so ssh.direct */
	if (where->community)
		json_object_set_new(input, "supportPublicIp", json_true());
	json_object_set_new(input, "dockerArgs", json_string(args));
	json_object_set_new(input, "env", pairs);
	return input;
}

/* Reads and checks the offer's id. The volume's data centre replaces the offer's. */
static int read_placement_for_rent(const struct op *op, struct placement *where, struct err *err)
{
	const struct rent_request *rent = &op->want->rent;

	if (placement_read(rent->offer.id, where) < 0)
		return err_set(err, ERR_BUG, "\"%s\" is not an offer of burst's", rent->offer.id);
	if (where->cpu && rent->offer.spot)
		return err_set(err, ERR_BUG, "\"%s\": spot CPU pods do not exist", rent->offer.id);
	if (!rent->volume.id[0])
		return 0;
	if (where->community)
		return err_set(err, ERR_CONFIG,
			       "volume \"%s\" can only be attached in the SECURE cloud",
			       rent->volume.name);
	/* the volume decides the data centre, not the offer */
	if (where->datacenter[0] && rent->volume.region[0] &&
	    strcmp(where->datacenter, rent->volume.region))
		return err_set(err, ERR_NO_CAPACITY, "volume \"%s\" is in %s, this offer in %s",
			       rent->volume.name, rent->volume.region, where->datacenter);
	if (rent->volume.region[0])
		COPY_TEXT(where->datacenter, rent->volume.region);
	return 0;
}

/* Spot pods exist only in GraphQL. */
static enum op_next request_rent(struct turn *t, const struct placement *where)
{
	static const char mutation[] =
		"mutation($input: PodRentInterruptableInput!){podRentInterruptable(input:$input)"
		"{id desiredStatus imageName machineId}}";

	if (!t->op->want->rent.offer.spot)
		return api_request(t, CALL_CREATE, "POST", rest_body(t->op, where), "/pods");
	return api_request_graphql(t, CALL_CREATE, mutation,
				   json_pack("{s:o}", "input", graphql_spot_input(t->op, where)));
}

/* Adds the new pod to the result. The pod exists, so a reply without an id is ERR_AMBIGUOUS; other
 * fields that it lacks are filled in from the request. */
static int add_created_pod(struct turn *t, const json_t *from)
{
	const struct rent_request *rent = &t->op->want->rent;
	struct pod_view view;

	if (pod_read(from, &view, t->err) < 0) {
		t->err->kind = ERR_AMBIGUOUS;
		return err_wrap(t->err, "create");
	}
	if (!view.name[0])
		COPY_TEXT(view.name, rent->name);
	if (view.state == POD_STATE_UNKNOWN)
		view.state = POD_STATE_CREATING;
	if (!view.price_microusd_h)
		view.price_microusd_h = rent->offer.price_microusd_h;
	view.marker = rent->marker;
	view.spot = rent->offer.spot;
	*op_result_add_pod(&t->op->got) = view;
	return 0;
}

static int read_create_reply(struct turn *t)
{
	CLEANUP(json_decref) json_t *whole = NULL;

	if (!t->op->want->rent.offer.spot) {
		whole = api_read_object(t, "create");
		return whole ? add_created_pod(t, whole) : -1;
	}
	const json_t *data = api_read_data(t, "create of a spot pod", &whole);
	if (!data)
		return -1;
	const json_t *pod = json_object_get(data, "podRentInterruptable");
	if (json_is_null(pod))
		return err_set(t->err, ERR_NO_CAPACITY,
			       "create of a spot pod: nothing at this bid");
	return add_created_pod(t, pod);
}

enum op_next rent_next(struct turn *t)
{
	struct placement where;

	if (read_placement_for_rent(t->op, &where, t->err) < 0)
		return OP_FAILED;
	if (!t->reply)
		return request_rent(t, &where);
	return read_create_reply(t) < 0 ? OP_FAILED : api_done(t);
}
