/* pods.c - pods: rented, read, ended; their logs and bills. */
#include "impl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/gpus.h"
#include "base/jsonx.h"

enum { DISK_GB_MICROUSD = 100000, MONTH_H = 730 }; /* a month */
enum {
	LOG_WAIT_MS = 8000,
	LOG_LINES = 200,
	LOG_MOST = 64 << 10,
	BLOCK_MOST_BYTES = 1 << 20,
	CLOCKS_APART_S = 120
};

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

/* ssh.direct; where a server does not fill it in, the mapping of port 22. Never ssh.proxy: it
 * carries no files. */
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
	/* what is stopped can go on showing the address it had */
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

static struct pod_view *add_pod(struct op *op)
{
	op->got.pods = xrealloc(op->got.pods, (op->got.pod_count + 1) * sizeof(*op->got.pods));
	struct pod_view *pod = &op->got.pods[op->got.pod_count++];

	*pod = (struct pod_view){0};
	return pod;
}

/* ---- renting ---- */

/* As JSON, which sets both: a bare string would only be words for whatever entrypoint the image
 * has, and that may never come to them (docs.runpod.io, manage templates: container start command).
 * A new string. */
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

static json_t *start_env(const struct op *op)
{
	const struct rent_request *rent = &op->want->rent;
	json_t *env = json_object();

	for (size_t i = 0; i < rent->env_count; i++) {
		json_object_set_new(env, rent->env[i].name, json_string(rent->env[i].value));
		/* RunPod's own name for it */
		if (!strcmp(rent->env[i].name, "BURST_AUTHORIZED_KEY"))
			json_object_set_new(env, "PUBLIC_KEY", json_string(rent->env[i].value));
	}
	/* the marker is read back from here, whatever else the caller sends */
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

int64_t disk_gb_of(int64_t wanted_gb, const struct placement *where)
{
	/* less is refused as if it were for want of GPUs */
	int64_t gb = MAX(wanted_gb ? wanted_gb : RUNPOD_DISK_GB, (int64_t)RUNPOD_DISK_LEAST_GB);

	return where->cpu ? cpu_disk_gb(gb, where->count) : gb;
}

int64_t disk_microusd_h(int64_t wanted_gb, const struct placement *where)
{
	return (disk_gb_of(wanted_gb, where) * DISK_GB_MICROUSD + MONTH_H - 1) / MONTH_H;
}

static bool sends_filters(const struct op *op)
{
	return section_bool(op->provider->conf, "placement_filters") && !op->tries &&
	       (op->want->rent.cpu || op->want->rent.memory_gb);
}

static json_t *gpu_wanted(const struct op *op, const struct placement *where)
{
	const char *cuda = cuda_floor(op->provider, op->want->rent.image);
	const struct rent_request *rent = &op->want->rent;
	json_t *gpu = json_object();

	json_object_set_new(gpu, "id", json_string(where->type));
	/* its documented default does not work */
	json_object_set_new(gpu, "count", json_integer(where->count));
	if (cuda)
		json_object_set_new(gpu, "minCudaVersion", json_string(cuda));
	if (sends_filters(op) && rent->memory_gb)
		json_object_set_new(gpu, "minRamPerGpu",
				    json_integer(MAX(rent->memory_gb / where->count, (int64_t)1)));
	if (sends_filters(op) && rent->cpu)
		json_object_set_new(gpu, "minVcpuCountPerGpu",
				    json_integer(MAX(rent->cpu / where->count, (int64_t)1)));
	return gpu;
}

static json_t *create_body(const struct op *op, const struct placement *where)
{
	const struct rent_request *rent = &op->want->rent;
	const char *image = image_of(op->provider, rent->image);
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
		json_object_set_new(body, "gpu", gpu_wanted(op, where));
	json_object_set_new(body, "disk", json_integer(disk_gb_of(rent->disk_gb, where)));
	json_object_set_new(body, "ports", json_pack("[s]", "22/tcp"));
	if (rent->volume.id[0])
		json_object_set_new(body, "mounts",
				    json_pack("{s:[{s:s,s:s}]}", "network", "volumeId",
					      rent->volume.id, "path",
					      rent->mount ? rent->mount : "/workspace"));
	if (registry)
		json_object_set_new(body, "registry", json_string(registry));
	json_object_set_new(body, "args", json_string(args));
	json_object_set_new(body, "env", start_env(op));
	return body;
}

/* GraphQL knows no floor, only a list. */
static json_t *cuda_versions(const char *floor)
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
	return list;
}

static json_t *spot_input(const struct op *op, const struct placement *where)
{
	const struct rent_request *rent = &op->want->rent;
	const char *image = image_of(op->provider, rent->image), *name;
	const char *cuda = cuda_floor(op->provider, rent->image);
	const char *registry = provider_registry_name(op->provider->conf, "registry", image);
	CLEANUP(json_decref) json_t *env = start_env(op);
	CLEANUP(free_text) char *args = start_command(rent->start_script);
	json_t *input = json_object(), *pairs = json_array(), *value;

	json_object_foreach (env, name, value)
		json_array_append_new(pairs, json_pack("{s:s,s:O}", "key", name, "value", value));
	json_object_set_new(input, "name", json_string(rent->name));
	json_object_set_new(input, "imageName", json_string(image));
	/* not in its published specification; a server that did not know it would make no pod */
	if (registry)
		json_object_set_new(input, "containerRegistryAuthId", json_string(registry));
	json_object_set_new(input, "gpuTypeId", json_string(where->type));
	json_object_set_new(input, "gpuCount", json_integer(where->count));
	int64_t bid = rent->offer.price_microusd_h - disk_microusd_h(rent->disk_gb, where);
	json_object_set_new(input, "bidPerGpu", json_real((double)(bid / where->count) / 1e6));
	json_object_set_new(input, "cloudType",
			    json_string(where->community ? "COMMUNITY" : "SECURE"));
	json_object_set_new(input, "containerDiskInGb",
			    json_integer(disk_gb_of(rent->disk_gb, where)));
	json_object_set_new(input, "volumeInGb", json_integer(0));
	json_object_set_new(input, "volumeMountPath",
			    json_string(rent->mount ? rent->mount : "/workspace"));
	if (rent->volume.id[0])
		json_object_set_new(input, "networkVolumeId", json_string(rent->volume.id));
	if (where->datacenter[0])
		json_object_set_new(input, "dataCenterId", json_string(where->datacenter));
	if (cuda)
		json_object_set_new(input, "allowedCudaVersions", cuda_versions(cuda));
	json_object_set_new(input, "ports", json_string("22/tcp"));
	/* its hosts need not have an address of their own: no ssh.direct then */
	if (where->community)
		json_object_set_new(input, "supportPublicIp", json_true());
	json_object_set_new(input, "dockerArgs", json_string(args));
	json_object_set_new(input, "env", pairs);
	return input;
}

static int check_rent(const struct op *op, struct placement *where, struct err *err)
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
	/* the volume decides, whatever the offer says */
	if (where->datacenter[0] && rent->volume.region[0] &&
	    strcmp(where->datacenter, rent->volume.region))
		return err_set(err, ERR_NO_CAPACITY, "volume \"%s\" is in %s, this offer in %s",
			       rent->volume.name, rent->volume.region, where->datacenter);
	if (rent->volume.region[0])
		COPY_TEXT(where->datacenter, rent->volume.region);
	return 0;
}

static enum op_next ask_rent(struct turn *t, const struct placement *where)
{
	static const char mutation[] =
		"mutation($input: PodRentInterruptableInput!){podRentInterruptable(input:$input)"
		"{id desiredStatus imageName machineId}}";

	if (!t->op->want->rent.offer.spot)
		return api_ask(t, CALL_CREATE, "POST", create_body(t->op, where), "/pods");
	return api_ask_graphql(t, CALL_CREATE, mutation,
			       json_pack("{s:o}", "input", spot_input(t->op, where)));
}

/* The pod exists: whatever else the answer lacks, its id is what counts. */
static int take_rented(struct turn *t, const json_t *from)
{
	const struct rent_request *rent = &t->op->want->rent;
	struct pod_view view;

	if (pods_read(from, &view, t->err) < 0) {
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
	*add_pod(t->op) = view;
	return 0;
}

static int read_rented(struct turn *t)
{
	CLEANUP(json_decref) json_t *whole = NULL;

	if (!t->op->want->rent.offer.spot) {
		whole = api_object(t, "create");
		return whole ? take_rented(t, whole) : -1;
	}
	const json_t *data = api_data(t, "create of a spot pod", &whole);
	if (!data)
		return -1;
	const json_t *pod = json_object_get(data, "podRentInterruptable");
	if (json_is_null(pod))
		return err_set(t->err, ERR_NO_CAPACITY,
			       "create of a spot pod: nothing at this bid");
	return take_rented(t, pod);
}

/* A server older than our filters names them; nothing was made. */
static bool refuses_filters(const struct turn *t)
{
	return sends_filters(t->op) && !t->reply->failed && t->reply->status == 422 &&
	       (strstr(str_text(&t->reply->body), "minRamPerGpu") ||
		strstr(str_text(&t->reply->body), "minVcpuCountPerGpu"));
}

enum op_next rent_next(struct turn *t)
{
	struct placement where;

	if (check_rent(t->op, &where, t->err) < 0)
		return OP_FAILED;
	if (!t->reply)
		return ask_rent(t, &where);
	if (refuses_filters(t)) {
		t->op->tries++;
		return ask_rent(t, &where);
	}
	return read_rented(t) < 0 ? OP_FAILED : api_done(t);
}

/* ---- looking ---- */

/* A vendor that has forgotten a pod bills nothing for it. */
enum op_next inspect_next(struct turn *t)
{
	if (!t->reply)
		return api_ask(t, CALL_POLL, "GET", NULL, "/pods/%s", t->op->want->id);
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

/* "burst-ATTEMPT": the name stays when a user changes the environment of the pod at RunPod's
 * console. What is not in the list counts as gone. */
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

/* 1: there are further pages. */
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
			continue; /* not one of burst's */
		if (pods_read(item, &view, t->err) < 0)
			return err_wrap(t->err, "listing pods");
		/* others came and went between two pages */
		if (!t->op->pages || !is_listed(t->op, view.id))
			*add_pod(t->op) = view;
	}
	return api_further_pages(t, answer, "pods");
}

enum op_next list_next(struct turn *t)
{
	if (!t->reply)
		return api_ask_pods(t);
	CLEANUP(json_decref) json_t *answer = api_object(t, "listing pods");
	int more = answer ? read_page(t, answer) : -1;
	if (more > 0)
		return api_ask_pods(t);
	return more < 0 ? OP_FAILED : api_done(t);
}

/* ---- ending ---- */

static bool is_gone(struct turn *t, const char *doing)
{
	t->op->got.release = api_check(t, doing) == 0 ? RELEASE_ENDED : RELEASE_ABSENT;
	return t->op->got.release == RELEASE_ENDED || t->err->kind == ERR_NOT_FOUND;
}

/* DELETE; where that is not allowed (409: locked, or by its state): unlock, DELETE, terminate. */
enum op_next release_next(struct turn *t)
{
	static const char *const doing = "ending a pod";
	struct op *op = t->op;
	const char *id = op->want->id;

	switch (op->step++) {
	case 0: return api_ask(t, CALL_RELEASE, "DELETE", NULL, "/pods/%s", id);
	case 1:
		if (is_gone(t, doing))
			break;
		if (t->err->kind != ERR_REFUSED && t->err->kind != ERR_CONFIG &&
		    t->err->kind != ERR_BUG)
			return OP_FAILED;
		op->first = *t->err;
		err_clear(t->err);
		return api_ask(t, CALL_RELEASE, "PATCH", json_pack("{s:b}", "locked", 0),
			       "/pods/%s", id);
	case 2: /* whatever it said */
		return api_ask(t, CALL_RELEASE, "DELETE", NULL, "/pods/%s", id);
	case 3:
		if (is_gone(t, doing))
			break;
		err_clear(t->err);
		return api_ask(t, CALL_RELEASE, "POST", json_pack("{s:s}", "action", "terminate"),
			       "/pods/%s/action", id);
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

/* Docker's and the registries' words for: there is no such image for this account, however often it
 * is asked for. */
static bool pull_is_hopeless(const char *line)
{
	static const char *const words[] = {"manifest unknown",
					    "manifest for ",
					    "no matching manifest",
					    "pull access denied",
					    "repository does not exist",
					    "unauthorized",
					    "authentication required",
					    "invalid reference format",
					    "access to the resource is denied",
					    "toomanyrequests"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(line, words[i]))
			return true;
	return false;
}

static bool pull_failed(const char *line)
{
	return strcasestr(line, "error pulling image") || strcasestr(line, "failed to pull") ||
	       pull_is_hopeless(line);
}

/* Where a pull fails over and over, or in words that leave no hope, and nothing has come after it.
 */
struct pulls {
	int failures;
	char last[300];
};

static void follow_pull(struct pulls *p, const char *line)
{
	if (pull_failed(line)) {
		p->failures += pull_is_hopeless(line) ? 2 : 1;
		COPY_TEXT(p->last, line);
	} else if (!strcasestr(line, "pulling")) {
		p->failures = 0;
	}
}

static void add_event(struct str *to, const struct str *data, struct pulls *pulls)
{
	CLEANUP(json_decref) json_t *event = jsonx_parse(str_text(data), data->len, NULL);
	const char *line = jsonx_text(event, "line", NULL);

	if (!line)
		return; /* cut off, or not a line of the log */
	if (!strcmp(jsonx_text(event, "source", ""), "system"))
		follow_pull(pulls, line);
	str_addf(to, "%s: ", jsonx_text(event, "source", "log"));
	for (const char *p = line; *p; p++)
		str_addc(to, *p == '\n' || *p == '\r' ? ' ' : *p);
	str_addc(to, '\n');
}

static void read_events(struct str *to, const char *text)
{
	CLEANUP(str_free) struct str data = STR_MAX(BLOCK_MOST_BYTES);
	struct pulls pulls = {0};

	while (*text) {
		size_t len = strcspn(text, "\n"),
		       shown = len && text[len - 1] == '\r' ? len - 1 : len;
		bool whole = text[len] == '\n';
		if (!whole)
			break; /* the connection was cut within this line */
		if (!shown) {
			add_event(to, &data, &pulls);
			str_reset(&data);
		} else if (shown >= 5 && !strncmp(text, "data:", 5)) {
			size_t skip = 5 + (shown > 5 && text[5] == ' ');
			if (data.len)
				str_addc(&data, '\n');
			str_addn(&data, text + skip, shown - skip);
		}
		text += len + 1;
	}
	add_event(to, &data, &pulls);
	if (pulls.failures < 2)
		return;
	str_add(to, "image: ");
	for (const char *p = pulls.last; *p; p++)
		str_addc(to, *p == '\n' || *p == '\r' ? ' ' : *p);
	str_addc(to, '\n');
}

/* The stream never ends by itself and says nothing, not even its head, before there is a line: the
 * time limit ends it, and what came until then is the log. */
enum op_next logs_next(struct turn *t)
{
	if (!t->reply) {
		enum op_next next = api_ask(t, CALL_POLL, "GET", NULL, "/pods/%s/logs?tail=%d",
					    t->op->want->id, LOG_LINES);
		call_header(t->call, "Accept: text/event-stream");
		t->call->may_repeat = false;
		t->call->timeout_ms =
			t->op->want->log_ms ? MIN(t->op->want->log_ms, LOG_WAIT_MS) : LOG_WAIT_MS;
		return next;
	}
	if ((!t->reply->failed || !t->reply->was_sent) && api_check(t, "log of a pod") < 0)
		return OP_FAILED;
	t->op->got.text = STR_MAX(LOG_MOST);
	read_events(&t->op->got.text, str_text(&t->reply->body));
	return api_done(t);
}

/* ---- its bill ---- */

/* Hours are the vendor's: by its clock the pod may be a little older. */
static enum op_next ask_bill(struct turn *t)
{
	const struct op_want *want = t->op->want;
	char since[32] = "";

	if (want->since_s > CLOCKS_APART_S)
		clock_rfc3339(since, sizeof(since), (want->since_s - CLOCKS_APART_S) * 1000);
	return api_ask(t, CALL_POLL, "GET", NULL, "/billing/pods?podId=%s&bucketSize=hour%s%s",
		       want->id, since[0] ? "&startTime=" : "", since);
}

static int by_start(const void *a, const void *b)
{
	const struct bill_hour *x = a, *y = b;

	return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

static void take_hour(struct op_bill *bill, const json_t *record, size_t *cap)
{
	GROW(bill->hours, bill->hour_count, *cap);
	struct bill_hour *hour = &bill->hours[bill->hour_count++];
	hour->start_s = api_time(jsonx_text(record, "startTime", ""));
	hour->end_s = api_time(jsonx_text(record, "endTime", ""));
	hour->cost_microusd = api_microusd(record, "totalAmount");
	bill->cost_microusd += hour->cost_microusd;
}

/* Dollars an hour are all that RunPod tells; the seconds in them follow from the pod's price, which
 * holds the disk's. */
static void imply_seconds(struct op_bill *bill, const struct op_want *want)
{
	if (want->bill.price_microusd_h <= 0)
		return;
	double ms = (double)bill->cost_microusd * 3600000.0 / (double)want->bill.price_microusd_h;
	bill->billed_ms = (int64_t)MIN(ms, 1e15);
}

static int read_bill(struct turn *t, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "records"), *item;
	struct op_bill *bill = &t->op->got.billing;
	size_t i, cap = 0;

	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "billing: the answer has no records");
	json_array_foreach (list, i, item) {
		if (strcmp(jsonx_text(item, "podId", ""), t->op->want->id))
			continue;
		take_hour(bill, item, &cap);
	}
	if (!bill->hour_count)
		return err_set(t->err, ERR_NOT_FOUND, "RunPod has no record of pod %s's costs yet",
			       t->op->want->id);
	qsort(bill->hours, bill->hour_count, sizeof(*bill->hours), by_start);
	imply_seconds(bill, t->op->want);
	return 0;
}

enum op_next billing_next(struct turn *t)
{
	if (!t->reply)
		return ask_bill(t);
	CLEANUP(json_decref) json_t *answer = api_object(t, "billing");
	return answer && read_bill(t, answer) == 0 ? api_done(t) : OP_FAILED;
}
