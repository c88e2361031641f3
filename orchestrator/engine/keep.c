/* keep.c - offers pods to other runs, and takes over those that they offer. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/str.h"
#include "impl.h"
#include "pooled.h"
#include "plan/cost.h"
#include "store/facts.h"

/* ---- gaps ---- */

/* The fact's text: free_ms, then the gaps, the newest last. */
struct gaps {
	int64_t free_ms; /* since when a pod has been free without a new run; 0: none is */
	int64_t list_ms[HOLD_GAPS_MOST];
	size_t count;
};

/* Adds the newest gap; a full list loses its oldest. */
static void add_gap(struct gaps *g, int64_t ms)
{
	if (g->count == HOLD_GAPS_MOST)
		memmove(g->list_ms, g->list_ms + 1, --g->count * sizeof(*g->list_ms));
	g->list_ms[g->count++] = ms;
}

static void read_gaps(struct store *store, const char *pool, struct gaps *g)
{
	char text[1024], *at = text, *end;

	*g = (struct gaps){0};
	if (!fact_get(store, FACT_GAPS, pool, NULL, text, sizeof(text)))
		return;
	g->free_ms = strtoll(at, &end, 10);
	for (at = end; *at == ' '; at = end) {
		int64_t ms = strtoll(at, &end, 10);
		if (end == at)
			return;
		add_gap(g, MAX(ms, 0));
	}
}

static void write_gaps(struct store *store, const char *pool, const struct gaps *g)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_addf(&text, "%lld", (long long)g->free_ms);
	for (size_t i = 0; i < g->count; i++)
		str_addf(&text, " %lld", (long long)g->list_ms[i]);
	fact_put(store, FACT_GAPS, pool, NULL, str_text(&text), NULL);
}

void gaps_note_free(struct store *store, const char *pool, int64_t now_ms)
{
	struct gaps g;

	read_gaps(store, pool, &g);
	if (g.free_ms)
		return;
	g.free_ms = now_ms;
	write_gaps(store, pool, &g);
}

void gaps_note_start(struct store *store, const char *pool, int64_t now_ms)
{
	struct gaps g;

	read_gaps(store, pool, &g);
	if (!g.free_ms)
		return;
	add_gap(&g, MAX(now_ms - g.free_ms, 0));
	g.free_ms = 0;
	write_gaps(store, pool, &g);
}

int64_t gaps_keep_ms(struct store *store, const char *pool, int64_t cold_ms)
{
	struct gaps g;

	read_gaps(store, pool, &g);
	return hold_ms(g.list_ms, g.count, cold_ms);
}

/* ---- keep ----
 * Offers pods of this run to other runs. */

enum {
	WANTED_MS = 10 * 1000, /* for a waiting run, which looks several times a second */
	AUTO_LEAST_MS = 1000   /* a shorter hold would end before a run could begin */
};

/* The lease lasts until the client that keeps the pod releases it: that client need not connect. */
static void lengthen_lease(struct engine *e, int pod, int64_t keep_ms)
{
	pod_send(e, pod,
		 json_pack("{s:s,s:I}", "op", "renew", "lease_s",
			   (json_int_t)((keep_ms + e->setup->conf.lease_ms) / 1000)));
}

static bool is_pod_wanted(struct engine *e, int pod)
{
	struct pod_row row = engine_pod_row(e, pod);

	COPY_TEXT(row.pool, e->setup->pool);
	row.kept_until_ms = clock_wall_ms() + WANTED_MS;
	return e->setup->wanted && e->setup->wanted(e->setup->ctx, &row);
}

/* Puts the pod on offer for so long. Returns false if the ledger could not be written. */
static bool offer_for(struct engine *e, int pod, int64_t ms)
{
	lengthen_lease(e, pod, ms);
	return pooled_offer(e, pod, clock_wall_ms() + ms);
}

/* Whether another run already keeps a pod that is as good as those of this run. */
static bool other_run_keeps_one(const struct engine *e)
{
	const char *run = e->setup->run->id;
	struct pod_row *pods = NULL;
	size_t count = 0;
	bool kept = false;

	if (store_pods(e->setup->store, NULL, true, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !kept; i++)
		kept = strcmp(pods[i].run, run) != 0 && strcmp(pods[i].handed_from, run) != 0 &&
		       pooled_is_offered(&pods[i], clock_wall_ms()) &&
		       pooled_serves(pods[i].pool, e->setup->pool);
	free(pods);
	return kept;
}

/* With keep_warm = "auto": how long to keep a pod; 0: not at all. most_ms: the length of a cold
 * start. Keeps no more pods than the next run may need, and no longer than pays by the past gaps
 * between runs. */
static int64_t auto_keep_ms(const struct engine *e, int64_t most_ms)
{
	gaps_note_free(e->setup->store, e->setup->pool, clock_wall_ms());
	if (!most_ms || other_run_keeps_one(e))
		return 0;
	int64_t ms = MIN(gaps_keep_ms(e->setup->store, e->setup->pool, most_ms), most_ms);
	return ms < AUTO_LEAST_MS ? 0 : ms;
}

void keep_offer(struct engine *e, int pod, int64_t keep_ms)
{
	char span[24];

	if (e->setup->conf.keep_warm_ms == KEEP_WARM_AUTO)
		keep_ms = auto_keep_ms(e, keep_ms);
	if (!e->setup->keep)
		keep_ms = 0;
	bool wanted = is_pod_wanted(e, pod);
	if ((!keep_ms && !wanted) || !offer_for(e, pod, MAX(keep_ms, wanted ? WANTED_MS : 0))) {
		post_pod(e, EV_NOT_WANTED, pod, NULL);
		return;
	}
	if (!keep_ms) {
		engine_log(e, LOG_INFO, "pod %s: offered to a run that waits for one",
			   pod_called(e, pod));
		return;
	}
	engine_log(e, LOG_INFO, "pod %s: kept for another run for %s", pod_called(e, pod),
		   duration_show(span, sizeof(span), keep_ms));
	e->setup->keep(e->setup->ctx);
}

bool keep_has_offer(const struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++)
		if (e->pods[i].pooled.state == POOLED_OFFERED)
			return true;
	return false;
}

/* ---- seek ----
 * Takes over pods that other runs offer, and publishes what this run waits for. */

static void adopt_taken(struct engine *e, const struct pod_row *row)
{
	struct core_pod pod;

	core_pod_of_row(e, row, &pod);
	pod.presence.lease = LEASE_CLIENT; /* whatever an earlier client of this run was */
	int at = pods_adopt(e, &pod, row);
	post_pod(e, EV_ADOPTED, at, NULL);
	engine_log(e, LOG_NOTE, "pod %s: taken over from run %s, with no cold start",
		   pod_called(e, at), row->handed_from);
}

/* Writes to the run's row which pods it would take, if that has changed; "": it waits for none. */
static void write_wants(struct engine *e, const char *text)
{
	struct run_row *run = e->setup->run;

	if (!strcmp(run->wants, text))
		return;
	COPY_TEXT(run->wants, text);
	journal_run(e);
}

/* If the text does not fit the row, the run takes what happens to be on offer. */
static void publish_wants(struct engine *e, const json_t *want)
{
	CLEANUP(free_text) char *text = jsonx_line(want);

	write_wants(e, strlen(text) < sizeof(e->setup->run->wants) ? text : "");
}

void keep_seek(struct engine *e, int wanted)
{
	struct event ev = {.type = EV_SOUGHT};
	CLEANUP(json_decref) json_t *want = pooled_want(e->setup, core_money_left(e->core));
	struct pod_row row;

	if (!e->sought)
		gaps_note_start(e->setup->store, e->setup->pool, clock_wall_ms());
	e->sought = true;
	if (core_waits(e->core))
		publish_wants(e, want);
	while (wanted-- > 0 && e->setup->take && e->setup->take(e->setup->ctx, want, &row))
		adopt_taken(e, &row);
	post(e, &ev, NULL);
}

void keep_clear_wants(struct engine *e)
{
	if (e->setup->conf.pooled && !core_waits(e->core))
		write_wants(e, "");
}
