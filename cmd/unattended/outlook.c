/* outlook.c - what plans say of a queue: its work, whose pods it may share, and why it waits. */
#include "outlook.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/err.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "engine/pooled.h"
#include "store/facts.h"

/* ---- what plans say ---- */

/* The object's number times factor; -1: the object has none. */
static int64_t number_or_unknown(const json_t *object, const char *name, double factor)
{
	const json_t *value = json_is_object(object) ? json_object_get(object, name) : NULL;

	return json_is_number(value) ? (int64_t)(json_number_value(value) * factor + .5) : -1;
}

struct when_work outlook_planned(const json_t *said)
{
	const json_t *pick = said ? json_object_get(said, "pick") : NULL;
	int64_t billed_ms = number_or_unknown(pick, "billed_s", 1000),
		work_ms = number_or_unknown(pick, "work_s", 1000),
		pods = MAX(number_or_unknown(pick, "pods", 1), (int64_t)1),
		warm = MAX(number_or_unknown(said, "warm_pods", 1), (int64_t)0);
	bool known = billed_ms >= 0 && work_ms >= 0;

	return (struct when_work){
		.segments = number_or_unknown(said, "to_render", 1),
		.by_ms = said ? clock_read_rfc3339(jsonx_text(said, "due_at", "")) * 1000 : 0,
		.makespan_ms = number_or_unknown(pick, "makespan_p90_s", 1000),
		.price_microusd_h = number_or_unknown(pick, "price_usd_hour", 1e6),
		.work_ms = work_ms,
		/* what is billed beside the rendering, per pod; pods kept by other runs cost no
		   boot */
		.cold_ms = known ? MAX(billed_ms - work_ms, (int64_t)0) * (pods - MIN(warm, pods)) /
					   pods
				 : -1,
	};
}

/* Whose pods the group takes over, or uses first: "run ID", "job FOLDER". */
static void name_first(const json_t *group, char *to, size_t room)
{
	const char *run = jsonx_text(group, "takes_over", "");
	const json_t *first = json_array_get(json_object_get(group, "jobs"), 0);
	CLEANUP(free_text)
	char *folder = path_dir(json_is_string(first) ? json_string_value(first) : "");

	if (run[0])
		snprintf(to, room, "run %s", run);
	else
		snprintf(to, room, "the job in %.60s", path_base(folder));
}

void outlook_read_joint(struct outlook *o, const char *config, const json_t *said)
{
	const json_t *job = NULL, *item;
	size_t i;

	json_array_foreach (json_object_get(said, "jobs"), i, item)
		if (!strcmp(jsonx_text(item, "config", ""), config))
			job = item;
	int64_t number = job ? jsonx_int(job, "group", 0) : 0;
	const json_t *group = json_array_get(json_object_get(said, "groups"), (size_t)(number - 1));
	if (number < 1 || !group)
		return;
	const json_t *first = json_array_get(json_object_get(group, "jobs"), 0);
	bool follows = jsonx_text(group, "takes_over", "")[0] || !json_is_string(first) ||
		       strcmp(json_string_value(first), config) != 0;
	COPY_TEXT(o->pool, jsonx_text(job, "pool", ""));
	if (follows) {
		o->work.pod_until_ms = clock_read_rfc3339(jsonx_text(job, "starts_at", "")) * 1000;
		name_first(group, o->pod_of, sizeof(o->pod_of));
		return;
	}
	o->work.group_by_ms = clock_read_rfc3339(jsonx_text(group, "latest_start_at", "")) * 1000;
	o->work.work_ms = MAX(o->work.work_ms, number_or_unknown(group, "work_seconds", 1000));
}

/* ---- what may change them ---- */

/* The number of pods that runs offer to others now. A plan made with another number is stale. */
static int count_offered_pods(struct store *store)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int offered = 0;

	if (store_pods(store, NULL, true, &pods, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		offered += pooled_is_offered(&pods[i], clock_wall_ms());
	free(pods);
	return offered;
}

/* How many requests and runs there are that the job could share pods with. */
static size_t count_others(struct store *store, const char *config)
{
	struct request_row *rows = NULL;
	struct run_row *runs = NULL;
	size_t count = 0, others = 0;

	if (store_requests(store, NULL, true, &rows, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			others += strcmp(rows[i].config, config) != 0;
	free(rows);
	if (store_runs(store, NULL, true, 0, &runs, &count, NULL) == 0)
		others += count;
	free(runs);
	return others;
}

void outlook_count(struct outlook *o, struct store *store, const char *config)
{
	o->offered = count_offered_pods(store);
	o->others = count_others(store, config);
}

bool outlook_has_changed(const struct outlook *o, struct store *store, const char *config)
{
	return o->offered != count_offered_pods(store) || o->others != count_others(store, config);
}

/* ---- pods of others ---- */

bool outlook_has_pod(const struct outlook *o, struct store *store)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	bool found = false;

	if (!o->work.pod_until_ms || store_pods(store, NULL, true, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !found; i++)
		found = pooled_is_offered(&pods[i], clock_wall_ms()) &&
			pooled_serves(pods[i].pool, o->pool);
	free(pods);
	return found;
}

void outlook_take_pod(struct outlook *o)
{
	o->work.pod_until_ms = o->work.cold_ms = 0;
}

/* How much later than planned the pods may come. */
#define POD_GRACE_MS 60000

int outlook_note_pod(struct outlook *o, struct store *store, const char *config,
		     const struct when_answer *a, struct err *err)
{
	char line[sizeof(o->noted_pod)] = "0 ", key[SHA256_NAME];

	if (a->why == WHEN_POD && !a->start)
		snprintf(line, sizeof(line), "%lld %s",
			 (long long)(o->work.pod_until_ms + POD_GRACE_MS), o->pool);
	if (!strcmp(line, o->noted_pod[0] ? o->noted_pod : "0 "))
		return 0;
	sha256_name(config, key);
	COPY_TEXT(o->noted_pod, line);
	return fact_put(store, FACT_QUEUE_POD, key, NULL, line, err);
}

/* ---- in words ---- */

void outlook_explain(const struct outlook *o, const struct when_answer *a, char *to, size_t room)
{
	const struct when_work *work = &o->work;
	char price[32], time[32];

	switch (a->why) {
	case WHEN_QUIET:
		snprintf(to, room, "starts at %s unless another request follows",
			 clock_local(time, sizeof(time), "%H:%M:%S", a->until_ms));
		return;
	case WHEN_RETRY:
		snprintf(to, room, "the last start failed; next try at %s",
			 clock_rfc3339(time, sizeof(time), a->until_ms));
		return;
	case WHEN_PRICE:
		snprintf(to, room, "the price is %s/h",
			 money_show(price, sizeof(price), work->price_microusd_h));
		return;
	case WHEN_NO_PRICE: snprintf(to, room, "the price is unknown now"); return;
	case WHEN_SEGMENTS:
		if (work->segments < 0)
			snprintf(to, room, "the number of segments to render is unknown now");
		else
			snprintf(to, room, "%lld segment%s to render so far",
				 (long long)work->segments, work->segments == 1 ? "" : "s");
		return;
	case WHEN_WORK:
		snprintf(to, room, "%s of work so far; it starts with %s",
			 duration_show(price, sizeof(price), work->work_ms),
			 duration_show(time, sizeof(time), when_least_work_ms(work->cold_ms)));
		return;
	case WHEN_POD:
		snprintf(to, room, "it shares the pods of %s, which are free at about %s",
			 o->pod_of,
			 clock_local(time, sizeof(time), "%H:%M:%S", work->pod_until_ms));
		return;
	case WHEN_READY:
	case WHEN_WAITED:
	case WHEN_BY:
	case WHEN_EMPTY: break;
	}
	snprintf(to, room, "%s", when_name(a->why));
}
