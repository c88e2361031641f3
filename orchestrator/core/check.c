/* check.c - what holds of a run's state after every step. Builds with CORE_CHECKED end at the first
 * line that does not; others never call it. */
#include "impl.h"

#include <math.h>
#include <stdlib.h>

/* Counted from the segments and batches of one pod. */
struct tally {
	int unfetched, batches;
	size_t held;
};

struct checker {
	const struct core *c;
	struct tally *of; /* by pod */
	size_t todo, local, failed;
	double weight;
	const char *broken; /* the first line that does not hold */
};

/* Records the name of the first invariant that does not hold. */
static void expect(struct checker *k, bool holds, const char *name)
{
	if (!holds && !k->broken)
		k->broken = name;
}

static bool has_pod(const struct core *c, int pod)
{
	return pod >= 0 && pod < c->pod_count;
}

static bool batch_lists(const struct core_batch *b, uint32_t segment)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->segments[i] == segment)
			return true;
	return false;
}

/* A segment that a pod holds, and its batch. */
static void check_held_segment(struct checker *k, uint32_t i)
{
	const struct core *c = k->c;
	const struct seg *s = &c->segs[i];

	if (s->batch >= c->batch_count) {
		expect(k, false, "a segment in hand belongs to a batch");
		return;
	}
	const struct core_batch *b = &c->batches[s->batch];
	expect(k, b->pod == s->pod, "a segment in hand and its batch have the same pod");
	expect(k, !b->over, "the batch of a segment in hand is not over");
	expect(k, batch_lists(b, i), "the batch of a segment in hand lists it");
}

/* Checks one segment, and counts it for its pod and for the sums. */
static void check_segment(struct checker *k, uint32_t i)
{
	const struct seg *s = &k->c->segs[i];
	bool on_pod = s->state == SEG_HELD || s->state == SEG_RENDERED;

	k->todo += s->state == SEG_TODO;
	k->local += s->state == SEG_LOCAL;
	k->failed += s->state == SEG_FAILED;
	k->weight += s->state == SEG_TODO ? s->weight : 0;
	expect(k, !s->cached || s->state == SEG_LOCAL, "a cached segment stays local");
	expect(k, !s->arrived || s->state != SEG_TODO,
	       "a file that arrived belongs to no open segment");
	if (!on_pod)
		return;
	if (!has_pod(k->c, s->pod)) {
		expect(k, false, "a segment that is held or rendered has a pod");
		return;
	}
	k->of[s->pod].unfetched += s->state == SEG_RENDERED;
	k->of[s->pod].held += s->state == SEG_HELD;
	if (s->state == SEG_HELD)
		check_held_segment(k, i);
}

static void check_batch(struct checker *k, size_t i)
{
	const struct core_batch *b = &k->c->batches[i];

	if (!has_pod(k->c, b->pod)) {
		expect(k, false, "a batch has an owner");
		return;
	}
	const struct core_pod *p = &k->c->pods[b->pod];
	k->of[b->pod].batches += !b->over;
	expect(k, b->over || !pod_is_retired(p) || p->presence.files == FILES_SALVAGING,
	       "a released pod holds no batch");
	expect(k, b->over || i >= k->c->first_open, "all batches before first_open are over");
}

static void check_pod(struct checker *k, int i)
{
	const struct core_pod *p = &k->c->pods[i];
	const struct workload *w = &p->workload;
	bool gone = p->phase == POD_GONE;

	expect(k, p->phase >= POD_RENTING && p->phase <= POD_NEVER, "a pod has a phase");
	expect(k, w->unfetched == k->of[i].unfetched, "a pod's unfetched segments are counted");
	expect(k, w->batches == k->of[i].batches, "a pod's batches are counted");
	expect(k, w->held == k->of[i].held, "a pod's segments in hand are counted");
	expect(k, w->files >= 0 && w->saves >= 0, "no pod has fewer than no files on their way");
	expect(k, !w->saves || !pod_is_retired(p), "no checkpoint is awaited of a released pod");
	expect(k, w->busy >= 0, "no pod has fewer than no busy workers");
	expect(k, w->wasted_ms >= 0 && w->wasted_ms <= core_compute_ms(p), "wasted <= computed");
	expect(k, !w->inherited || w->inherited <= k->c->batch_count, "an inherited batch exists");
	expect(k, p->presence.link != LINK_UP || pod_lives(p), "only a living pod is connected");
	expect(k, !p->due, "every pod that is due was decided");
	expect(k, p->phase != POD_CONFIRMING || p->rental.released_at,
	       "a released pod has its time");
	expect(k, !gone || !p->rental.create_at || p->rental.gone_at, "a gone pod has its time");
	expect(k, !gone || p->rental.released_at <= p->rental.gone_at, "no pod is gone and bills");
}

static void check_vendor(struct checker *k, const struct vendor *v)
{
	bool there = has_pod(k->c, v->owner);

	expect(k, there || v->owner == -1, "the pod that prepares a volume exists");
	expect(k, !there || v->shared_ready || !pod_is_retired(&k->c->pods[v->owner]),
	       "the pod that prepares a volume is there");
	expect(k, !v->dead || v->err.kind, "a provider that is given up has a reason");
}

static void check_sums(struct checker *k)
{
	const struct core *c = k->c;
	int64_t spent = 0;
	double weight = 0;

	for (int i = 0; i < c->pod_count; i++)
		spent += c->pods[i].phase == POD_GONE && c->pods[i].rental.gone_at
				 ? core_cost(&c->pods[i], c->now) + core_may_have_cost(&c->pods[i])
				 : core_may_have_cost(&c->pods[i]);
	for (uint32_t i = 0; i < c->heap_count; i++)
		weight += c->heaps[i].weight;
	expect(k, k->todo == c->todo, "open segments are counted");
	expect(k, k->local == c->local && k->failed == c->failed, "settled segments are counted");
	expect(k, fabs(k->weight - c->weight_todo) < 0.01,
	       "the weight of open segments is their sum");
	expect(k, fabs(weight - c->weight_todo) < 0.01, "the groups' weights are its parts");
	expect(k, spent == c->spent_microusd, "what is spent is what the gone pods cost");
	expect(k, !c->ended || c->signals > 2 || core_is_stopping(c) || segments_settled(c),
	       "a run ends when its work is over or it stops");
}

const char *core_check(const struct core *c)
{
	struct checker k = {.c = c, .of = xcalloc((size_t)c->pod_count + 1, sizeof(*k.of))};

	for (size_t i = 0; i < c->batch_count; i++)
		check_batch(&k, i);
	for (uint32_t i = 0; i < c->seg_count; i++)
		check_segment(&k, i);
	for (int i = 0; i < c->pod_count; i++)
		check_pod(&k, i);
	for (int i = 0; i < c->conf.provider_count; i++)
		check_vendor(&k, &c->vendors[i]);
	check_sums(&k);
	free(k.of);
	return k.broken;
}
