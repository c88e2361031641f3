/* wire_runpod.c - RunPod in memory: REST v2 and the little of GraphQL that is used, over the
 * machines of the cloud. What a request must be is held to what the vendor publishes: a request
 * that RunPod would call malformed is our own mistake. */
#include "wire.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"

#define RUNPOD_FILES "https://s3.example.org/"
#define CAPACITY                                                                                   \
	"There are no longer any instances available with the requested specifications. Please "   \
	"refresh and try again."
#define PASSING "Something went wrong. Please try again later or contact support."

static void say(struct exchange *x, int status)
{
	x->a->status = status;
	str_addf(&x->a->head, "HTTP/1.1 %d X\r\nContent-Type: application/%sjson\r\n", status,
		 status >= 400 ? "problem+" : "");
}

static void problem(struct exchange *x, int status, const char *detail)
{
	say(x, status);
	str_addf(&x->a->body, "{\"title\":\"X\",\"status\":%d,\"detail\":\"%s\"}", status, detail);
}

/* Ours must never be malformed. */
static void malformed(struct exchange *x, const char *what)
{
	broke(x->s, "RunPod would refuse this as malformed: %s: %s %s", what, x->call->method,
	      x->call->url);
	problem(x, 422, what);
}

void runpod_put_off(struct sim *s, struct answer *a, int seconds)
{
	(void)s;
	a->again_ms = seconds * 1000;
	a->status = 429;
	str_addf(&a->head,
		 "HTTP/1.1 429 X\r\nContent-Type: application/problem+json\r\nRetry-After: %d\r\n",
		 seconds);
	str_addf(&a->head, "RateLimit: \"minute\";r=0;t=%d, \"hour\";r=2800;t=1812\r\n",
		 seconds + 1);
	str_add(&a->body, "{\"title\":\"Too Many Requests\",\"status\":429,\"detail\":\"rate limit "
			  "exceeded for the minute window\"}");
}

/* ---- its window of a minute ---- */

static bool has_room(struct exchange *x)
{
	int64_t now = x->s->now;

	if (!x->plan->quota)
		return true;
	if (!x->v->window_began || now - x->v->window_began >= 60000) {
		x->v->window_began = now;
		x->v->asked = 0;
	}
	int64_t left_s = (60000 - (now - x->v->window_began) + 999) / 1000;
	bool room = x->v->asked < x->plan->quota;
	if (room) {
		x->v->asked++;
	} else {
		x->a->status = 429;
		x->s->refused++;
	}
	str_addf(&x->a->head,
		 "RateLimit-Policy: \"minute\";q=%d;w=60\r\nRateLimit: \"minute\";r=%d;t=%lld\r\n",
		 x->plan->quota, x->plan->quota - x->v->asked, (long long)left_s);
	if (!room)
		str_addf(&x->a->head, "Retry-After: %lld\r\n", (long long)left_s);
	return room;
}

/* ---- pods ---- */

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

static void add_time(struct str *to, int64_t at)
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
	add_time(to, m->created);
	str_add(to, ",\"startedAt\":");
	if (m->running)
		add_time(to, m->runs_at);
	else
		str_add(to, "null");
	str_addc(to, '}');
}

static bool surfaced(struct exchange *x, const struct machine *m)
{
	return m->visible <= x->s->now && x->s->now >= m->denied_until;
}

/* All that is told of a pod and never changes. */
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

/* ---- creating ---- */

static const char *const create_fields[] = {
	"name",       "image",           "gpu", "cpu",  "cloud",    "dataCenterIds", "mounts",
	"disk",       "ports",           "env", "args", "registry", "startSsh",      "startJupyter",
	"templateId", "globalNetworking"};

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

/* The kind of GPU and, where there is one, the data centre: which of the plan's offers that is; -1:
 * none. */
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
	case ERR_NO_CAPACITY: problem(x, 400, CAPACITY); break;
	case ERR_RATE_LIMITED: runpod_put_off(x->s, x->a, 2); break;
	case ERR_TRANSIENT: problem(x, 400, PASSING); break;
	case ERR_CREDENTIALS: problem(x, 401, "missing bearer token"); break;
	case ERR_REFUSED:
		if (x->s->now % 2)
			problem(x, 403, "access denied");
		else
			problem(x, 400, "request could not be processed");
		break;
	default:
		if (x->s->now % 2)
			problem(x, 500, "internal error");
	}
	return true;
}

enum { DISK_MICROUSD_H = 5480 }; /* 40 GB: in the pod's cost and on its bill, and in no catalog */

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

#define VOLUME_ID "agv6w2qcg%d"

/* -1: there is none of that id. */
static int volume_of(struct exchange *x, const char *id)
{
	char one[24];

	for (int i = 0; i < x->v->volumes; i++) {
		snprintf(one, sizeof(one), VOLUME_ID, i);
		if (!strcmp(one, id))
			return i;
	}
	return -1;
}

/* body as of REST v2; the machine, or NULL: the answer says why. */
static struct machine *create(struct exchange *x, const json_t *body, int64_t bid)
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
		problem(x, 400, CAPACITY);
		return NULL;
	}
	int volume = mount ? volume_of(x, jsonx_text(mount, "volumeId", "")) : -1;
	if (mount && (volume < 0 || jsonx_text(mount, "path", "")[0] != '/')) {
		malformed(x, "network volume not found");
		return NULL;
	}
	if (mount && (strcmp(cloud, "SECURE") || !dc ||
		      strcmp(dc, wire_datacenters[x->v->volume_dc[volume]]) != 0)) {
		malformed(x, "the volume is elsewhere");
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

static void answer_create(struct exchange *x, const struct machine *m)
{
	if (!m)
		return;
	if (m->reply_lost) {
		if (x->s->now % 3)
			problem(x, x->s->now % 3 == 1 ? 500 : 504, PASSING);
		return;
	}
	say(x, 201);
	add_pod(x, m);
}

static void create_pod(struct exchange *x)
{
	CLEANUP(json_decref)
	json_t *body = jsonx_parse(str_text(&x->call->body), x->call->body.len, NULL);
	const char *wrong = body ? check_body(body) : "no JSON";

	if (wrong || strcmp(call_header_of(x->call, "Content-Type"), "application/json"))
		malformed(x, wrong ? wrong : "Content-Type");
	else
		answer_create(x, create(x, body, 0));
}

/* ---- looking ---- */

static void list_pods(struct exchange *x)
{
	bool any = false;

	switch ((int)cloud_list_fails(x->s, x->v->vendor, &x->a->delay_ms)) {
	case ERR_NONE: break;
	case ERR_RATE_LIMITED: runpod_put_off(x->s, x->a, 5); return;
	case ERR_CREDENTIALS: problem(x, 403, "access denied"); return;
	default: problem(x, 503, "upstream is unavailable"); return;
	}
	say(x, 200);
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

	say(x, 200);
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

/* ---- ending ---- */

static void delete_pod(struct exchange *x, struct machine *m)
{
	struct wired *w = m ? wire_of(x->s, m) : NULL;

	if (!m || m->is_over || m->visible > x->s->now || strikes(x->s, F_RELEASE_UNKNOWN)) {
		if (m)
			cloud_asked(x->s, m); /* it does not let go of it */
		problem(x, 404, "pod not found");
		return;
	}
	if (w->locked) {
		cloud_asked(x->s, m);
		problem(x, 409, "pod is locked");
		return;
	}
	switch ((int)cloud_let_go(x->s, m, x->v->asked_by)) {
	case ERR_NONE: say(x, 204); break;
	case ERR_NOT_FOUND: problem(x, 404, "pod not found"); break;
	case ERR_RATE_LIMITED: runpod_put_off(x->s, x->a, 1 + (int)(x->s->now % 4)); break;
	default: problem(x, 500, "internal error"); break;
	}
	if (strikes(x->s, F_RELEASE_LOST))
		x->a->status = 0;
}

static void patch_pod(struct exchange *x, struct machine *m)
{
	CLEANUP(json_decref)
	json_t *body = jsonx_parse(str_text(&x->call->body), x->call->body.len, NULL);

	if (json_object_size(body) != 1 || !json_is_false(json_object_get(body, "locked"))) {
		malformed(x, "not an edit of ours");
		return;
	}
	wire_of(x->s, m)->locked = false;
	say(x, 200);
	add_pod(x, m);
}

static void one_pod(struct exchange *x, const char *path)
{
	char id[64] = "";
	size_t len = strcspn(path, "/?");

	memcpy(id, path, MIN(len, sizeof(id) - 1));
	struct machine *m = wire_find(x->s, x->v->vendor, id);
	if (!strcmp(x->call->method, "DELETE") ||
	    (!strcmp(x->call->method, "POST") && !strcmp(path + len, "/action")))
		delete_pod(x, m);
	else if (!m || m->is_over || !surfaced(x, m))
		problem(x, 404, "pod not found");
	else if (!strcmp(x->call->method, "PATCH"))
		patch_pod(x, m);
	else if (starts_with(path + len, "/logs"))
		get_logs(x, m);
	else if (!strcmp(x->call->method, "GET")) {
		say(x, 200);
		add_pod(x, m);
	} else
		malformed(x, "nobody asks so");
}

/* ---- catalog and volumes ---- */

static const char *stock(struct exchange *x, int offer)
{
	int left = x->plan->capacity[offer] - x->s->in_use[x->v->vendor][offer];

	return left <= 0 ? "NONE" : left == 1 ? "LOW" : "HIGH";
}

static void list_gpus(struct exchange *x)
{
	struct str *to = &x->a->body;

	if (!strstr(x->call->url, "include=AVAILABILITY&product=POD&count=")) {
		malformed(x, "product is required with include=AVAILABILITY");
		return;
	}
	if (strikes(x->s, F_OFFERS_FAIL)) {
		problem(x, 502, "bad gateway");
		return;
	}
	bool none = strikes(x->s, F_OFFERS_EMPTY);
	say(x, 200);
	str_add(to, "{\"gpus\":[");
	for (int i = 0; i < x->plan->offer_count; i += 2) {
		const struct wire_gpu *gpu = &wire_gpus[i / 2];
		double price = (double)x->s->prices[x->v->vendor][i] / 1e6;
		str_addf(to,
			 "%s{\"id\":\"%s\",\"name\":\"%s\",\"manufacturer\":\"NVIDIA\",\"memory\":%"
			 "d,\"secure\":true,\"community\":%s,"
			 "\"price\":{\"secure\":%.6f,\"community\":%.6f},\"maxCount\":{\"secure\":"
			 "8,\"community\":2},\"availability\":\"%s\","
			 "\"dataCenters\":[",
			 i ? "," : "", gpu->runpod, gpu->name, gpu->memory_gb,
			 x->plan->community ? "true" : "false", price, price,
			 none ? "NONE" : "HIGH");
		for (int k = i; k < MIN(i + 2, x->plan->offer_count); k++)
			str_addf(to, "%s{\"id\":\"%s\",\"name\":\"x\",\"availability\":\"%s\"}",
				 k > i ? "," : "", wire_datacenters[k % 2],
				 none              ? "NONE"
				 : x->plan->boasts ? "HIGH"
						   : stock(x, k));
		str_add(to, "]}");
	}
	str_add(to, "]}");
}

static void list_datacenters(struct exchange *x)
{
	struct str *to = &x->a->body;

	say(x, 200);
	str_add(to, "{\"dataCenters\":[");
	for (int i = 0; i < MIN(x->plan->offer_count, 2); i++)
		str_addf(to,
			 "%s{\"id\":\"%s\",\"name\":\"x\",\"networkVolumeTypes\":[\"STANDARD\"],"
			 "\"gpuAvailability\":[{\"id\":\"%s\",\"name\":\"%s\","
			 "\"availability\":\"HIGH\"}]}",
			 i ? "," : "", wire_datacenters[i], wire_gpus[0].runpod, wire_gpus[0].name);
	str_add(to, "]}");
}

static void add_volume(struct exchange *x, int i)
{
	str_addf(&x->a->body,
		 "{\"id\":\"" VOLUME_ID
		 "\",\"name\":\"cache\",\"size\":50,\"dataCenter\":\"%s\",\"type\":\"STANDARD\"}",
		 i, wire_datacenters[x->v->volume_dc[i]]);
}

static void list_volumes(struct exchange *x)
{
	if (strikes(x->s, F_VOLUME_FAILS)) {
		problem(x, 500, "internal error");
		return;
	}
	say(x, 200);
	str_add(&x->a->body, "{\"networkVolumes\":[");
	for (int i = 0; i < x->v->volumes; i++) {
		if (i)
			str_addc(&x->a->body, ',');
		add_volume(x, i);
	}
	str_add(&x->a->body, "]}");
}

static void create_volume(struct exchange *x)
{
	CLEANUP(json_decref)
	json_t *body = jsonx_parse(str_text(&x->call->body), x->call->body.len, NULL);
	const char *dc = jsonx_text(body, "dataCenter", "");

	/* of clients that begin at the same moment each may make one: its names are not unique. And
	 * what a dead client sent may come after what its next life found and sent. */
	bool overtaken = x->s->hit[F_CRASH_AT_CALL] && x->s->hit[F_CALL_SLOW];
	if (!overtaken && x->v->volumes &&
	    (x->s->plan->client_count == 1 || x->v->volumes > x->s->plan->client_count))
		broke(x->s, "a second volume of one name is made at RunPod");
	if (strcmp(jsonx_text(body, "name", ""), "cache") || jsonx_int(body, "size", 0) < 10 ||
	    (strcmp(dc, wire_datacenters[0]) && strcmp(dc, wire_datacenters[1]))) {
		malformed(x, "name, size, dataCenter");
		return;
	}
	x->v->volume_dc[x->v->volumes] = !strcmp(dc, wire_datacenters[1]);
	say(x, 201);
	add_volume(x, x->v->volumes++);
}

/* ---- GraphQL ---- */

static void floors(struct exchange *x)
{
	say(x, 200);
	str_add(&x->a->body, "{\"data\":{\"gpuTypes\":[");
	for (int i = 0; i < x->plan->offer_count; i += 2)
		str_addf(&x->a->body,
			 "%s{\"id\":\"%s\",\"lowestPrice\":{\"minimumBidPrice\":%.6f,"
			 "\"uninterruptablePrice\":1,\"stockStatus\":\"Low\"}}",
			 i ? "," : "", wire_gpus[i / 2].runpod,
			 (double)x->s->prices[x->v->vendor][i] / 2e6);
	str_add(&x->a->body, "]}}");
}

/* Into the words of REST v2. */
static json_t *in_new_words(const json_t *input)
{
	json_t *env = json_object(), *pair;
	const char *dc = jsonx_text(input, "dataCenterId", NULL),
		   *volume = jsonx_text(input, "networkVolumeId", NULL);
	size_t i;

	json_array_foreach (json_object_get(input, "env"), i, pair)
		json_object_set(env, jsonx_text(pair, "key", "?"), json_object_get(pair, "value"));
	json_t *body = json_pack(
		"{s:s,s:s,s:{s:s,s:I},s:s,s:o}", "name", jsonx_text(input, "name", ""), "image",
		jsonx_text(input, "imageName", ""), "gpu", "id", jsonx_text(input, "gpuTypeId", ""),
		"count", (json_int_t)jsonx_int(input, "gpuCount", 0), "cloud",
		jsonx_text(input, "cloudType", ""), "env", env);
	if (dc)
		json_object_set_new(body, "dataCenterIds", json_pack("[s]", dc));
	if (volume)
		json_object_set_new(body, "mounts",
				    json_pack("{s:[{s:s,s:s}]}", "network", "volumeId", volume,
					      "path", jsonx_text(input, "volumeMountPath", "")));
	return body;
}

static void spot(struct exchange *x, const json_t *whole)
{
	const json_t *input = json_object_get(json_object_get(whole, "variables"), "input");
	CLEANUP(json_decref) json_t *body = in_new_words(input);
	int64_t bid = (int64_t)(jsonx_number(input, "bidPerGpu", 0) * 1e6 + 0.5);

	if (bid <= 0 || !jsonx_text(input, "dockerArgs", "")[0] ||
	    !jsonx_text(input, "name", "")[0]) {
		malformed(x, "bidPerGpu, dockerArgs, name");
		return;
	}
	struct machine *m = create(x, body, bid);
	if (!m) { /* the old API says with 200 what went wrong */
		bool sold_out = x->a->status == 400 && strstr(str_text(&x->a->body), CAPACITY);
		if (sold_out) {
			str_reset(&x->a->body);
			str_reset(&x->a->head);
			say(x, 200);
			str_add(&x->a->body, "{\"errors\":[{\"message\":\"" CAPACITY
					     "\"}],\"data\":{\"podRentInterruptable\":null}}");
		}
		return;
	}
	if (m->reply_lost) {
		answer_create(x, m);
		return;
	}
	say(x, 200);
	str_addf(&x->a->body,
		 "{\"data\":{\"podRentInterruptable\":{\"id\":\"%s\",\"desiredStatus\":\"RUNNING\","
		 "\"imageName\":\"x\",\"machineId\":\"y\"}}}",
		 m->id);
}

static void graphql(struct exchange *x)
{
	CLEANUP(json_decref)
	json_t *whole = jsonx_parse(str_text(&x->call->body), x->call->body.len, NULL);
	const char *query = jsonx_text(whole, "query", "");

	if (strstr(query, "podRentInterruptable"))
		spot(x, whole);
	else if (strstr(query, "gpuTypes"))
		floors(x);
	else
		malformed(x, "nobody asks so");
}

/* ---- bills: dollars, by the hour ---- */

static void add_hours(struct exchange *x, const struct machine *m)
{
	struct str *to = &x->a->body;

	for (int64_t at = m->created; at < m->ended;) {
		int64_t wall = WALL_EPOCH_MS + at,
			end = MIN(at + HOUR_MS - wall % HOUR_MS, m->ended);
		double dollars = (double)m->price * (double)(end - at) / HOUR_MS / 1e6;
		str_addf(to, "%s{\"podId\":\"%s\",\"startTime\":", at > m->created ? "," : "",
			 m->id);
		add_time(to, at - wall % HOUR_MS);
		str_add(to, ",\"endTime\":");
		add_time(to, at - wall % HOUR_MS + HOUR_MS);
		str_addf(to, ",\"gpuAmount\":%.9f,\"totalAmount\":%.9f}", dollars, dollars);
		at = end;
	}
}

/* A pod that has just ended has no record yet, now and then. */
static void bill(struct exchange *x, const char *query)
{
	char id[64] = "";
	size_t len = strcspn(query, "&");

	memcpy(id, query, MIN(len, sizeof(id) - 1));
	const struct machine *m = wire_find(x->s, x->v->vendor, id);
	if (!m || !strstr(query, "bucketSize=hour")) {
		malformed(x, "podId, bucketSize");
		return;
	}
	say(x, 200);
	str_add(&x->a->body, "{\"records\":[");
	if (m->is_over && x->s->now % 4)
		add_hours(x, m);
	str_add(&x->a->body, "]}");
}

/* ---- S3 ---- */

static void say_s3(struct exchange *x, int status, const char *body, size_t len)
{
	bool head = !strcmp(x->call->method, "HEAD");

	x->a->status = status;
	str_addf(&x->a->head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n", status, len);
	str_addn(&x->a->body, body, head ? 0 : len);
}

static void no_s3(struct exchange *x, int status, const char *code)
{
	CLEANUP(free_text)
	char *body = xasprintf("<Error><Code>%s</Code><Message>no</Message></Error>", code);

	say_s3(x, status, body, strlen(body));
}

static void s3_file(struct exchange *x, const char *key)
{
	CLEANUP(str_free) struct str file = STR_INIT;

	if (!strcmp(x->call->method, "PUT")) {
		if (x->s->now % 16) /* accepted, and now and then lost */
			json_object_set_new(x->v->files, key,
					    json_string(str_text(&x->call->body)));
		say_s3(x, 200, "", 0);
	} else if (!wire_file(x->s, x->v, key, &file)) {
		no_s3(x, 404, "NoSuchKey");
	} else {
		say_s3(x, 200, str_text(&file), file.len);
	}
}

/* /VOLUME/KEY, signed for where the volume is. */
static void s3(struct exchange *x, const char *path)
{
	char id[64] = "", region[64];
	size_t len = strcspn(path, "/");

	memcpy(id, path, MIN(len, sizeof(id) - 1));
	int volume = volume_of(x, id);
	const struct call *c = x->call;
	if (volume < 0 || !path[len] || !path[len + 1]) {
		malformed(x, "bucket, key");
		return;
	}
	snprintf(region, sizeof(region), "aws:amz:%s:s3",
		 wire_datacenters[x->v->volume_dc[volume]]);
	if (!c->sigv4 || strcmp(c->sigv4, region) || strcmp(c->user ? c->user : "", "user_1") ||
	    strcmp(c->password ? c->password : "", "rps_1") ||
	    call_header_of(c, "Authorization")[0])
		malformed(x, "who asks for a file?");
	else
		s3_file(x, path + len + 1);
}

/* ---- which of them ---- */

void runpod_serve(struct sim *s, struct server *v, const struct call *call, struct answer *a)
{
	struct exchange x = {s, v, &s->plan->vendors[v->vendor], call, a};
	static const char root[] = "https://api.runpod.io", files[] = RUNPOD_FILES;
	const char *path = call->url + strlen(root);
	bool get = !strcmp(call->method, "GET"), post = !strcmp(call->method, "POST");

	if (starts_with(call->url, files))
		s3(&x, call->url + strlen(files));
	else if (!starts_with(call->url, root) ||
		 strcmp(call_header_of(call, "Authorization"), "Bearer rpa_key123"))
		malformed(&x, "who asks?");
	else if (!has_room(&x))
		str_add(&a->body,
			"{\"title\":\"Too Many Requests\",\"status\":429,\"detail\":\"rate limit "
			"exceeded for the minute window\"}");
	else if (!strcmp(path, "/graphql") && post)
		graphql(&x);
	else if (!strcmp(path, "/v2/pods") && get)
		list_pods(&x);
	else if (!strcmp(path, "/v2/pods") && post)
		create_pod(&x);
	else if (starts_with(path, "/v2/billing/pods?podId=") && get)
		bill(&x, path + strlen("/v2/billing/pods?podId="));
	else if (starts_with(path, "/v2/pods/"))
		one_pod(&x, path + strlen("/v2/pods/"));
	else if (starts_with(path, "/v2/catalog/gpus?") && get)
		list_gpus(&x);
	else if (starts_with(path, "/v2/catalog/datacenters?") && get)
		list_datacenters(&x);
	else if (!strcmp(path, "/v2/network-volumes") && get)
		list_volumes(&x);
	else if (!strcmp(path, "/v2/network-volumes") && post)
		create_volume(&x);
	else
		malformed(&x, "no such path");
}
