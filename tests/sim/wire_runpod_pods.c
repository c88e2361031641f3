/* wire_runpod_pods.c - the pods of RunPod in memory: made, listed, read and ended. */
#include "wire.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "wire_runpod.h"

static const char *const create_fields[] = {
	"name",       "image",           "gpu", "cpu",  "cloud",    "dataCenterIds", "mounts",
	"disk",       "ports",           "env", "args", "registry", "startSsh",      "startJupyter",
	"templateId", "globalNetworking"};

enum { DISK_MICROUSD_H = 5480 }; /* 40 GB: in the pod's cost and on its bill, and in no catalog */

static const char *status_of(struct exchange *x, const struct machine *m)
{
	if (m->odd_until > x->s->now && !m->is_over)
		return "RESTARTING";
	if (m->is_over)
		return "TERMINATED";
	if (m->stopped)
		return "EXITED";
	if (m->failed && x->s->now >= m->runs_at)
		return "ERROR";
	if (m->running)
		return "RUNNING";
	return x->s->now - m->created < 1000 ? "PROVISIONING" : "STARTING";
}

void runpod_add_time(struct str *to, int64_t at)
{
	char text[32];

	str_addf(to, "\"%s\"", clock_rfc3339(text, sizeof(text), WALL_EPOCH_MS + at));
}

static void add_address(struct exchange *x, const struct machine *m)
{
	struct str *to = &x->a->body;

	if (!m->running)
		str_add(to, "\"ssh\":{\"proxy\":null,\"direct\":null},\"runtime\":null,");
	else if (x->plan->vague)
		str_addf(to,
			 "\"ssh\":{\"proxy\":null,\"direct\":null},\"runtime\":{\"uptime\":1,"
			 "\"ports\":[{\"private\":22,\"public\":%zu,"
			 "\"type\":\"tcp\",\"ip\":\"192.0.2.7\"}]},",
			 10000 + (size_t)(m - x->s->machines) % 50000);
	else
		str_addf(to,
			 "\"ssh\":{\"proxy\":null,\"direct\":{\"host\":\"192.0.2.7\",\"port\":%zu,"
			 "\"username\":\"root\"}},\"runtime\":{},",
			 10000 + (size_t)(m - x->s->machines) % 50000);
}

static void add_pod(struct exchange *x, const struct machine *m)
{
	struct str *to = &x->a->body;
	bool bills = !m->is_over && !m->stopped;

	str_addf(to, "%s\"status\":\"%s\",\"actions\":[\"terminate\"],\"cost\":%.6f,",
		 wire_of(x->s, m)->text, status_of(x, m), bills ? (double)m->price / 1e6 : 0.0);
	add_address(x, m);
	str_add(to, "\"createdAt\":");
	runpod_add_time(to, m->created);
	str_add(to, ",\"startedAt\":");
	if (m->running)
		runpod_add_time(to, m->runs_at);
	else
		str_add(to, "null");
	str_addc(to, '}');
}

static bool surfaced(struct exchange *x, const struct machine *m)
{
	return m->visible <= x->s->now && x->s->now >= m->denied_until;
}

/* The part of a pod's description that never changes. */
static char *unchanging(const struct machine *m, const json_t *body, const char *dc,
			const char *cloud)
{
	CLEANUP(free_text) char *env = jsonx_line(json_object_get(body, "env"));
	const struct wire_gpu *gpu = &wire_gpus[m->offer / 2];

	return xasprintf("{\"id\":\"%s\",\"name\":\"%s\",\"image\":\"%s\",\"args\":\"\",\"disk\":"
			 "40,\"ports\":[\"22/tcp\"],\"env\":%s,"
			 "\"registry\":null,\"mounts\":{},\"gpu\":{\"id\":\"%s\",\"count\":1},"
			 "\"cloud\":\"%s\",\"dataCenterId\":\"%s\","
			 "\"cudaVersion\":null,\"template\":null,\"locked\":false,"
			 "\"globalNetworking\":{\"enabled\":false},",
			 m->id, jsonx_text(body, "name", ""), jsonx_text(body, "image", ""), env,
			 gpu->runpod, cloud, dc);
}

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

static const char *check_body(const json_t *body)
{
	static const char *const gpu_fields[] = {"id", "count", "allowedCudaVersions",
						 "minCudaVersion"};
	const json_t *gpu = json_object_get(body, "gpu"), *value;
	const char *key;

	json_object_foreach ((json_t *)body, key, value)
		if (!is_one_of(key, create_fields, ARRAY_LEN(create_fields)))
			return "additional property";
	json_object_foreach ((json_t *)gpu, key, value)
		if (!is_one_of(key, gpu_fields, ARRAY_LEN(gpu_fields)))
			return "additional property of gpu";
	if (!jsonx_text(body, "name", "")[0] || !jsonx_text(body, "image", "")[0])
		return "missing property";
	if (!json_is_object(gpu) || json_object_get(body, "cpu"))
		return "exactly one of gpu or cpu must be set";
	if (!json_is_integer(json_object_get(gpu, "count")))
		return "gpu.count";
	if (jsonx_int(body, "disk", 0) < 20 || !json_is_string(json_object_get(body, "args")))
		return "disk, args";
	if (json_array_size(json_object_get(body, "ports")) != 1)
		return "ports";
	if (!json_is_object(json_object_get(body, "env")) ||
	    json_object_size(json_object_get(body, "env")) > 50)
		return "env";
	json_object_foreach (json_object_get(body, "env"), key, value)
		if (!json_is_string(value))
			return "env";
	return NULL;
}

/* Which of the plan's offers this kind of GPU and data center is; -1: none. */
static int offer_of(struct exchange *x, const char *type, const char *dc)
{
	int first = -1;

	for (int i = 0; i < x->plan->offer_count; i++) {
		if (strcmp(wire_gpus[i / 2].runpod, type) ||
		    (dc[0] && strcmp(wire_datacenters[i % 2], dc)))
			continue;
		if (x->s->in_use[x->v->vendor][i] < x->plan->capacity[i])
			return i;
		first = first < 0 ? i : first;
	}
	return first;
}

static struct create *intent_of(struct exchange *x, const json_t *env)
{
	const char *attempt = jsonx_text(env, "BURST_ATTEMPT", "");

	for (size_t i = 0; i < x->s->create_count; i++)
		if (!strcmp(x->s->creates[i].attempt, attempt))
			return &x->s->creates[i];
	broke(x->s, "a create for attempt \"%s\", which nobody made", attempt);
	return NULL;
}

static bool refused(struct exchange *x, const struct create *c)
{
	switch ((int)cloud_refuses(x->s, c)) {
	case ERR_NONE: return false;
	case ERR_NO_CAPACITY: runpod_problem(x, 400, RUNPOD_NO_CAPACITY); break;
	case ERR_RATE_LIMITED: runpod_put_off(x->s, x->a, 2); break;
	case ERR_TRANSIENT: runpod_problem(x, 400, RUNPOD_TRY_LATER); break;
	case ERR_CREDENTIALS: runpod_problem(x, 401, "missing bearer token"); break;
	case ERR_BALANCE: runpod_problem(x, 402, "insufficient balance"); break;
	case ERR_REFUSED:
		if (x->s->now % 2)
			runpod_problem(x, 403, "access denied");
		else
			runpod_problem(x, 400, "request could not be processed");
		break;
	default:
		if (x->s->now % 2)
			runpod_problem(x, 500, "internal error");
	}
	return true;
}

static struct machine *make(struct exchange *x, const struct create *c, const json_t *body,
			    const char *cloud, int64_t bid, bool twin)
{
	struct machine *m = cloud_make(x->s, c, twin);
	struct wired *w = wire_of(x->s, m);

	if (bid) {
		m->spot = true;
		m->price = m->price * bid / x->s->prices[c->provider][c->offer];
	}
	m->price += DISK_MICROUSD_H;
	COPY_TEXT(w->name, jsonx_text(body, "name", ""));
	w->locked = strikes(x->s, F_POD_LOCKED) != NULL;
	w->env = json_incref(json_object_get(body, "env"));
	w->text = unchanging(m, body, cloud[0] == 'C' ? "US-XX-1" : wire_datacenters[c->offer % 2],
			     cloud);
	return m;
}

int runpod_volume_of(struct exchange *x, const char *id)
{
	char one[24];

	for (int i = 0; i < x->v->volumes; i++) {
		snprintf(one, sizeof(one), RUNPOD_VOLUME_ID, i);
		if (!strcmp(one, id))
			return x->v->volume_gone[i] ? -1 : i;
	}
	return -1;
}

struct machine *runpod_create(struct exchange *x, const json_t *body, int64_t bid)
{
	const json_t *env = json_object_get(body, "env"), *gpu = json_object_get(body, "gpu");
	const json_t *mount =
		json_array_get(json_object_get(json_object_get(body, "mounts"), "network"), 0);
	const char *cloud = jsonx_text(body, "cloud", "SECURE");
	const char *dc =
		json_string_value(json_array_get(json_object_get(body, "dataCenterIds"), 0));
	const struct create *intent = intent_of(x, env);
	int offer = offer_of(x, jsonx_text(gpu, "id", ""), dc ? dc : "");

	if (!intent)
		return NULL;
	if (offer < 0 || jsonx_int(gpu, "count", 0) != 1) {
		runpod_problem(x, 400, RUNPOD_NO_CAPACITY);
		return NULL;
	}
	int volume = mount ? runpod_volume_of(x, jsonx_text(mount, "volumeId", "")) : -1;
	if (mount && volume < 0 && starts_with(jsonx_text(mount, "volumeId", ""), "agv6w2qcg")) {
		runpod_problem(x, 400, "network volume not found"); /* removed meanwhile */
		return NULL;
	}
	if (mount && (volume < 0 || jsonx_text(mount, "path", "")[0] != '/')) {
		runpod_malformed(x, "network volume not found");
		return NULL;
	}
	if (mount && (strcmp(cloud, "SECURE") || !dc ||
		      strcmp(dc, wire_datacenters[x->v->volume_dc[volume]]) != 0)) {
		runpod_malformed(x, "the volume is elsewhere");
		return NULL;
	}
	struct create c = *intent;
	c.offer = offer;
	c.hard_end_s = strtoll(jsonx_text(env, "BURST_HARD_END", "0"), NULL, 10);
	c.first_lease_end_s = strtoll(jsonx_text(env, "BURST_FIRST_LEASE_END", "0"), NULL, 10);
	c.late_start_s = strtoll(jsonx_text(env, "BURST_LATE_START_S", "0"), NULL, 10);
	if (refused(x, &c))
		return NULL;
	struct machine *m = make(x, &c, body, cloud, bid, false);
	size_t number = (size_t)(m - x->s->machines);
	m->reply_lost = strikes(x->s, F_CREATE_LOST_MADE);
	if (strikes(x->s, F_CREATE_TWICE))
		make(x, &c, body, cloud, bid, true);
	return &x->s->machines[number];
}

void runpod_answer_create(struct exchange *x, const struct machine *m)
{
	if (!m)
		return;
	if (m->reply_lost) {
		if (x->s->now % 3)
			runpod_problem(x, x->s->now % 3 == 1 ? 500 : 504, RUNPOD_TRY_LATER);
		return;
	}
	runpod_say(x, 201);
	add_pod(x, m);
}

void runpod_create_pod(struct exchange *x)
{
	CLEANUP(json_decref)
	json_t *body = jsonx_parse(str_text(&x->call->body), x->call->body.len, NULL);
	const char *wrong = body ? check_body(body) : "no JSON";

	if (wrong || strcmp(call_header_of(x->call, "Content-Type"), "application/json"))
		runpod_malformed(x, wrong ? wrong : "Content-Type");
	else
		runpod_answer_create(x, runpod_create(x, body, 0));
}

void runpod_list_pods(struct exchange *x)
{
	bool any = false;

	switch ((int)cloud_list_fails(x->s, x->v->vendor, &x->a->delay_ms)) {
	case ERR_NONE: break;
	case ERR_RATE_LIMITED: runpod_put_off(x->s, x->a, 5); return;
	case ERR_CREDENTIALS: runpod_problem(x, 403, "access denied"); return;
	default: runpod_problem(x, 503, "upstream is unavailable"); return;
	}
	runpod_say(x, 200);
	str_add(&x->a->body, "{\"pods\":[");
	for (size_t i = 0; i < x->s->machine_count; i++) {
		struct machine *m = &x->s->machines[i];
		if (!cloud_listed_now(x->s, m, x->v->vendor) || cloud_missed(x->s, m))
			continue;
		if (any)
			str_addc(&x->a->body, ',');
		add_pod(x, m);
		any = true;
	}
	str_add(&x->a->body, "]}");
}

static void get_logs(struct exchange *x, const struct machine *m)
{
	struct str *to = &x->a->body;
	int64_t pulled_ms = m->never_runs ? 0 : MIN(x->s->now, m->runs_at) - m->created;

	runpod_say(x, 200);
	x->a->endless = true;
	str_add(to, "id: 1\r\ndata: "
		    "{\"ts\":\"2026-06-01T12:02:03Z\",\"source\":\"system\",\"line\":\"create "
		    "container\"}\r\n\r\n");
	for (int64_t i = 1; i <= MIN(pulled_ms / 4000, INT64_C(100)) && !m->failed; i++)
		str_addf(to, "data: {\"source\":\"system\",\"line\":\"layer %lld is pulled\"}\n\n",
			 (long long)i);
	if (m->running)
		str_add(to, "data: {\"source\":\"container\",\"line\":\"burst: sshd is "
			    "started\"}\n\ndata: {\"source\":\"cont");
}

static void delete_pod(struct exchange *x, struct machine *m)
{
	struct wired *w = m ? wire_of(x->s, m) : NULL;

	if (!m || m->is_over || m->visible > x->s->now || strikes(x->s, F_RELEASE_UNKNOWN)) {
		if (m)
			cloud_release_requested(x->s, m); /* it does not release it */
		runpod_problem(x, 404, "pod not found");
		return;
	}
	if (w->locked) {
		cloud_release_requested(x->s, m);
		runpod_problem(x, 409, "pod is locked");
		return;
	}
	switch ((int)cloud_let_go(x->s, m, x->v->asked_by)) {
	case ERR_NONE: runpod_say(x, 204); break;
	case ERR_NOT_FOUND: runpod_problem(x, 404, "pod not found"); break;
	case ERR_RATE_LIMITED: runpod_put_off(x->s, x->a, 1 + (int)(x->s->now % 4)); break;
	default: runpod_problem(x, 500, "internal error"); break;
	}
	if (strikes(x->s, F_RELEASE_LOST))
		x->a->status = 0;
}

static void patch_pod(struct exchange *x, struct machine *m)
{
	CLEANUP(json_decref)
	json_t *body = jsonx_parse(str_text(&x->call->body), x->call->body.len, NULL);

	if (json_object_size(body) != 1 || !json_is_false(json_object_get(body, "locked"))) {
		runpod_malformed(x, "not an edit of ours");
		return;
	}
	wire_of(x->s, m)->locked = false;
	runpod_say(x, 200);
	add_pod(x, m);
}

void runpod_one_pod(struct exchange *x, const char *path)
{
	char id[64] = "";
	size_t len = strcspn(path, "/?");

	memcpy(id, path, MIN(len, sizeof(id) - 1));
	struct machine *m = wire_find(x->s, x->v->vendor, id);
	if (!strcmp(x->call->method, "DELETE") ||
	    (!strcmp(x->call->method, "POST") && !strcmp(path + len, "/action")))
		delete_pod(x, m);
	else if (!m || m->is_over || !surfaced(x, m))
		runpod_problem(x, 404, "pod not found");
	else if (!strcmp(x->call->method, "PATCH"))
		patch_pod(x, m);
	else if (starts_with(path + len, "/logs"))
		get_logs(x, m);
	else if (!strcmp(x->call->method, "GET")) {
		runpod_say(x, 200);
		add_pod(x, m);
	} else
		runpod_malformed(x, "nobody asks so");
}
