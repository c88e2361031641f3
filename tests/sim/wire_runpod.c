/* wire_runpod.c - RunPod in memory: REST v2 and the part of GraphQL that burst uses, over the
 * machines of the cloud. Requests are checked against what the vendor publishes: a request that
 * RunPod would call malformed is our own mistake. */
#include "wire.h"

#include "base/jsonx.h"
#include "wire_runpod.h"

#define RUNPOD_FILES "https://s3.example.org/"

void runpod_say(struct exchange *x, int status)
{
	x->a->status = status;
	str_addf(&x->a->head, "HTTP/1.1 %d X\r\nContent-Type: application/%sjson\r\n", status,
		 status >= 400 ? "problem+" : "");
}

void runpod_problem(struct exchange *x, int status, const char *detail)
{
	runpod_say(x, status);
	str_addf(&x->a->body, "{\"title\":\"X\",\"status\":%d,\"detail\":\"%s\"}", status, detail);
}

void runpod_malformed(struct exchange *x, const char *what)
{
	broke(x->s, "RunPod would refuse this as runpod_malformed: %s: %s %s", what,
	      x->call->method, x->call->url);
	runpod_problem(x, 422, what);
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

static bool runpod_has_room(struct exchange *x)
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
		runpod_malformed(x, "product is required with include=AVAILABILITY");
		return;
	}
	if (strikes(x->s, F_OFFERS_FAIL)) {
		runpod_problem(x, 502, "bad gateway");
		return;
	}
	bool none = strikes(x->s, F_OFFERS_EMPTY);
	runpod_say(x, 200);
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

	runpod_say(x, 200);
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
		 "{\"id\":\"" RUNPOD_VOLUME_ID
		 "\",\"name\":\"cache\",\"size\":50,\"dataCenter\":\"%s\",\"type\":\"STANDARD\"}",
		 i, wire_datacenters[x->v->volume_dc[i]]);
}

static void list_volumes(struct exchange *x)
{
	if (strikes(x->s, F_VOLUME_FAILS)) {
		runpod_problem(x, 500, "internal error");
		return;
	}
	runpod_say(x, 200);
	str_add(&x->a->body, "{\"networkVolumes\":[");
	bool any = false;
	for (int i = 0; i < x->v->volumes; i++) {
		if (x->v->volume_gone[i])
			continue;
		if (any)
			str_addc(&x->a->body, ',');
		any = true;
		add_volume(x, i);
	}
	str_add(&x->a->body, "]}");
}

static int volumes_left(const struct server *v)
{
	int left = 0;

	for (int i = 0; i < v->volumes; i++)
		left += !v->volume_gone[i];
	return left;
}

static int make_volume(struct exchange *x, bool second_dc, int by)
{
	struct server *v = x->v;

	if (v->volumes == VOLUMES_MAX) {
		broke(x->s, "volumes without end are made at RunPod");
		return 0;
	}
	v->volume_dc[v->volumes] = second_dc;
	v->volume_by[v->volumes] = by;
	return v->volumes++;
}

/* Ids rise. Only who made a volume may remove it, while no pod has it and there is another. */
static void remove_volume(struct exchange *x, const char *id)
{
	int i = runpod_volume_of(x, id);

	if (i < 0) {
		runpod_problem(x, 404, "Tried to delete nonexistent network volume");
		return;
	}
	if (x->v->volume_by[i] != x->v->asked_by + 1)
		broke(x->s, "a volume is removed by a client that did not make it");
	if (volumes_left(x->v) < 2)
		broke(x->s, "the only volume of its name is removed");
	x->v->volume_gone[i] = !plant(PLANT_TWIN_KEPT);
	runpod_say(x, 204);
}

/* Of two that two machines made at once, the later one is removed by the client that made it. */
void runpod_check_twin(struct sim *s, const struct server *v)
{
	static const enum fault_kind kinds[] = {
		F_VOLUME_FAILS,  F_CALL_LOST,    F_CALL_REPLY_LOST, F_CALL_5XX,     F_CALL_429,
		F_CALL_GARBAGE,  F_CALL_SLOW,    F_CRASH_AT_CALL,   F_CRASH_RESUME, F_CRASH_REAP,
		F_CRASH_FOREVER, F_CRASH_HANDED, F_LEFT_GONE,       F_LEFT_FROZEN,  F_LEFT_AT_RENT,
		F_SIGNAL,        F_SLEEP};
	bool well = v->twin_made && s->plan->client_count == 1;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		well = well && !s->hit[kinds[i]];
	if (well && volumes_left(v) > 1 && !v->volume_gone[v->volumes - 1] &&
	    v->volume_by[v->volumes - 1])
		broke(s, "the second volume of one name is kept and bills for ever");
}

static void create_volume(struct exchange *x)
{
	CLEANUP(json_decref)
	json_t *body = jsonx_parse(str_text(&x->call->body), x->call->body.len, NULL);
	const char *dc = jsonx_text(body, "dataCenter", "");

	/* Clients that begin at the same moment may each make one, since names are not unique. A
	 * dead client's request may also arrive after its next life has looked and sent its own. */
	bool overtaken = x->s->hit[F_CRASH_AT_CALL] && x->s->hit[F_CALL_SLOW];
	int left = volumes_left(x->v);
	if (!overtaken && left &&
	    (x->s->plan->client_count == 1 || left > x->s->plan->client_count))
		broke(x->s, "a second volume of one name is made at RunPod");
	if (strcmp(jsonx_text(body, "name", ""), "cache") || jsonx_int(body, "size", 0) < 10 ||
	    (strcmp(dc, wire_datacenters[0]) && strcmp(dc, wire_datacenters[1]))) {
		runpod_malformed(x, "name, size, dataCenter");
		return;
	}
	/* another machine's create arrives just before this one, or just after it */
	const struct fault *twin = strikes(x->s, F_VOLUME_TWICE);
	bool second_dc = !strcmp(dc, wire_datacenters[1]);
	if (twin && twin->x % 2)
		make_volume(x, second_dc, 0);
	int made = make_volume(x, second_dc, x->v->asked_by + 1);
	if (twin && twin->x % 2 == 0)
		make_volume(x, second_dc, 0);
	x->v->twin_made = x->v->twin_made || twin;
	runpod_say(x, 201);
	add_volume(x, made);
}

/* ---- GraphQL ---- */

static void floors(struct exchange *x)
{
	runpod_say(x, 200);
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
		runpod_malformed(x, "bidPerGpu, dockerArgs, name");
		return;
	}
	struct machine *m = runpod_create(x, body, bid);
	if (!m) { /* the old API reports errors with status 200 */
		bool sold_out =
			x->a->status == 400 && strstr(str_text(&x->a->body), RUNPOD_NO_CAPACITY);
		if (sold_out) {
			str_reset(&x->a->body);
			str_reset(&x->a->head);
			runpod_say(x, 200);
			str_add(&x->a->body, "{\"errors\":[{\"message\":\"" RUNPOD_NO_CAPACITY
					     "\"}],\"data\":{\"podRentInterruptable\":null}}");
		}
		return;
	}
	if (m->reply_lost) {
		runpod_answer_create(x, m);
		return;
	}
	runpod_say(x, 200);
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
		runpod_malformed(x, "nobody asks so");
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
		runpod_add_time(to, at - wall % HOUR_MS);
		str_add(to, ",\"endTime\":");
		runpod_add_time(to, at - wall % HOUR_MS + HOUR_MS);
		str_addf(to, ",\"gpuAmount\":%.9f,\"totalAmount\":%.9f}", dollars, dollars);
		at = end;
	}
}

/* Sometimes a pod that has just ended has no record yet. */
static void bill(struct exchange *x, const char *query)
{
	char id[64] = "";
	size_t len = strcspn(query, "&");

	memcpy(id, query, MIN(len, sizeof(id) - 1));
	const struct machine *m = wire_find(x->s, x->v->vendor, id);
	if (!m || !strstr(query, "bucketSize=hour")) {
		runpod_malformed(x, "podId, bucketSize");
		return;
	}
	runpod_say(x, 200);
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
		if (x->s->now % 16) /* accepted, and sometimes lost */
			json_object_set_new(x->v->files, key,
					    json_string(str_text(&x->call->body)));
		say_s3(x, 200, "", 0);
	} else if (!wire_file(x->s, x->v, key, &file)) {
		no_s3(x, 404, "NoSuchKey");
	} else {
		say_s3(x, 200, str_text(&file), file.len);
	}
}

/* /VOLUME/KEY, signed for the volume's region. */
static void s3(struct exchange *x, const char *path)
{
	char id[64] = "", region[64];
	size_t len = strcspn(path, "/");

	memcpy(id, path, MIN(len, sizeof(id) - 1));
	int volume = runpod_volume_of(x, id);
	const struct call *c = x->call;
	if (volume < 0 || !path[len] || !path[len + 1]) {
		runpod_malformed(x, "bucket, key");
		return;
	}
	snprintf(region, sizeof(region), "aws:amz:%s:s3",
		 wire_datacenters[x->v->volume_dc[volume]]);
	if (!c->sigv4 || strcmp(c->sigv4, region) || strcmp(c->user ? c->user : "", "user_1") ||
	    strcmp(c->password ? c->password : "", "rps_1") ||
	    call_header_of(c, "Authorization")[0])
		runpod_malformed(x, "who asks for a file?");
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
		runpod_malformed(&x, "who asks?");
	else if (!runpod_has_room(&x))
		str_add(&a->body,
			"{\"title\":\"Too Many Requests\",\"status\":429,\"detail\":\"rate limit "
			"exceeded for the minute window\"}");
	else if (!strcmp(path, "/graphql") && post)
		graphql(&x);
	else if (!strcmp(path, "/v2/pods") && get)
		runpod_list_pods(&x);
	else if (!strcmp(path, "/v2/pods") && post)
		runpod_create_pod(&x);
	else if (starts_with(path, "/v2/billing/pods?podId=") && get)
		bill(&x, path + strlen("/v2/billing/pods?podId="));
	else if (starts_with(path, "/v2/pods/"))
		runpod_one_pod(&x, path + strlen("/v2/pods/"));
	else if (starts_with(path, "/v2/catalog/gpus?") && get)
		list_gpus(&x);
	else if (starts_with(path, "/v2/catalog/datacenters?") && get)
		list_datacenters(&x);
	else if (!strcmp(path, "/v2/network-volumes") && get)
		list_volumes(&x);
	else if (!strcmp(path, "/v2/network-volumes") && post)
		create_volume(&x);
	else if (starts_with(path, "/v2/network-volumes/") && !strcmp(call->method, "DELETE"))
		remove_volume(&x, path + strlen("/v2/network-volumes/"));
	else
		runpod_malformed(&x, "no such path");
}
