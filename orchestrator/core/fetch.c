/* fetch.c - follows segments until their files are local. */
#include <stdlib.h>

#include "impl.h"

/* ---- segments: the state of each segment, and the open ones by weight ---- */

/* ---- the heap of open segments of one group; a stale entry (not TODO any more) is dropped when it
 * surfaces ---- */

/* A total order: of equal weights, the lower index counts as heavier. */
static bool is_heavier(const struct core *c, uint32_t a, uint32_t b)
{
	if (c->segs[a].weight != c->segs[b].weight)
		return c->segs[a].weight > c->segs[b].weight;
	return a < b;
}

static void sift_up(struct core *c, struct heap *h, size_t i)
{
	while (i && is_heavier(c, h->list[i], h->list[(i - 1) / 2])) {
		uint32_t up = h->list[(i - 1) / 2];
		h->list[(i - 1) / 2] = h->list[i];
		h->list[i] = up;
		i = (i - 1) / 2;
	}
}

static void sift_down(struct core *c, struct heap *h, size_t i)
{
	for (;;) {
		size_t best = i;
		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < h->count; k++)
			if (is_heavier(c, h->list[k], h->list[best]))
				best = k;
		if (best == i)
			return;
		uint32_t was = h->list[i];
		h->list[i] = h->list[best];
		h->list[best] = was;
		i = best;
	}
}

static void heap_pop(struct core *c, struct heap *h)
{
	h->list[0] = h->list[--h->count];
	sift_down(c, h, 0);
}

int64_t segments_heaviest(struct core *c, struct heap *h)
{
	while (h->count && c->segs[h->list[0]].state != SEG_TODO)
		heap_pop(c, h);
	return h->count ? (int64_t)h->list[0] : -1;
}

/* ---- states of a segment ---- */

void segment_uncount_held(struct core *c, struct seg *s)
{
	if (s->state == SEG_HELD)
		c->pods[s->pod].workload.held--;
}

void segment_reopen(struct core *c, uint32_t i)
{
	struct seg *s = &c->segs[i];
	struct heap *h = &c->heaps[s->group];

	segment_uncount_held(c, s);
	c->dirty = true; /* an idle worker may be waiting for work */
	s->state = SEG_TODO;
	s->arrived = false;
	s->pod = -1;
	c->todo++;
	c->weight_todo += s->weight;
	h->weight += s->weight;
	GROW(h->list, h->count, h->cap);
	h->list[h->count++] = i;
	sift_up(c, h, h->count - 1);
}

void segment_assign(struct core *c, uint32_t i, enum core_seg_state to, int pod)
{
	struct seg *s = &c->segs[i];

	c->todo--;
	c->weight_todo -= s->weight;
	c->heaps[s->group].weight -= s->weight;
	s->state = (uint8_t)to;
	s->pod = pod;
	if (to == SEG_HELD)
		c->pods[pod].workload.held++;
	if (!c->todo)
		c->dirty = true; /* pods that still boot are no longer needed */
}

/* Moves a segment to its final state, LOCAL or FAILED. */
static void segment_settle(struct core *c, uint32_t i, enum core_seg_state to)
{
	struct seg *s = &c->segs[i];

	if (s->state == SEG_TODO)
		segment_assign(c, i, to, s->pod);
	segment_uncount_held(c, s);
	s->state = (uint8_t)to;
	if (to == SEG_LOCAL)
		c->local++;
	else
		c->failed++;
	if (segments_settled(c))
		c->dirty = true;
}

void segments_init(struct core *c)
{
	for (size_t i = 0; i < c->seg_count; i++)
		c->heap_count = MAX(c->heap_count, c->segs[i].group + 1);
	c->heaps = xcalloc(c->heap_count, sizeof(*c->heaps));
	for (size_t i = 0; i < c->seg_count; i++) {
		c->segs[i].pod = -1;
		if (c->segs[i].cached) {
			c->segs[i].state = SEG_LOCAL;
			c->local++;
			c->cached++;
		} else {
			segment_reopen(c, (uint32_t)i);
		}
	}
}

bool segments_settled(const struct core *c)
{
	return c->local + c->failed == c->seg_count;
}

double segments_weight_left(const struct core *c)
{
	double left = 0;

	for (size_t i = 0; i < c->seg_count; i++)
		left += seg_is_unrendered(c->segs[i].state) ? c->segs[i].weight : 0;
	return left;
}

void segment_on_pod_lost(struct core *c, uint32_t i)
{
	if (++c->segs[i].losses >= LOSSES_MAX)
		segment_settle(c, i, SEG_FAILED);
	else
		segment_reopen(c, i);
}

/* ---- fetch ----
 * A segment from rendered to local: its file is fetched, checked and placed, or the segment is
 * rendered again. */

/* The first good file allows more pods. As many bad ones as the canary has stop the run. */
static void judge_canary(struct core *c, uint32_t i, bool good)
{
	struct err err;

	if (c->canary_ok)
		return;
	if (good) {
		c->canary_ok = true;
		c->dirty = true;
		return;
	}
	if (++c->canary_bad < MIN((size_t)CORE_CANARY, c->seg_count - c->cached))
		return;
	c->canary_bad_all = true;
	err_set(&err, ERR_JOB, "the first segments all failed: stopped while it is cheap");
	core_fault(c, c->segs[i].pod, &err);
}

void fetch_begin(struct core *c, int pod, uint32_t i)
{
	c->segs[i].fetching = true;
	core_act(c, ACT_FETCH, pod)->segment = i;
}

void fetch_fail_segment(struct core *c, uint32_t i)
{
	segment_settle(c, i, SEG_FAILED);
	judge_canary(c, i, false);
}

/* Whether the event is about a segment that its pod has rendered and that has not arrived. */
static bool is_awaited(const struct core *c, const struct event *ev)
{
	const struct seg *s = &c->segs[ev->segment];

	return s->state == SEG_RENDERED && s->pod == ev->pod && !s->arrived;
}

/* The fetched file is of no use: counts its render as wasted, and opens the segment again. */
static void reopen_for_render(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];

	p->workload.unfetched--;
	core_count_wasted(p, c->segs[ev->segment].elapsed_ms);
	segment_reopen(c, ev->segment);
	c->dirty = true;
	pod_mark_due(c, ev->pod);
}

void fetch_on_arrived(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];

	if (!is_awaited(c, ev))
		return;
	s->fetching = false;
	bool again = !ev->check_ok && s->tries + 1 < c->conf.check_tries && !core_is_stopping(c);
	if (again) {
		s->tries++;
		core_act(c, ACT_DISCARD, ev->pod)->segment = ev->segment;
		reopen_for_render(c, ev);
		return;
	}
	s->arrived = true;
	s->suspect = !ev->check_ok;
	struct action *a = core_act(c, ACT_PLACE, ev->pod);
	a->segment = ev->segment;
	a->flag = !ev->check_ok;
}

/* Counts it against the pod, whose end judge_bad_files() in pods.c decides. Keeps the text. */
static void note_bad_file(struct core_pod *p, const struct err *err)
{
	p->workload.bad_files++;
	COPY_TEXT(p->reason, err->msg);
}

/* Whether the pod's files are on the volume for good: a later fetch, even one after this run, can
 * still have them. */
static bool files_outlast_pod(const struct core_pod *p)
{
	return p->presence.durable && pod_files_on_volume(p);
}

/* Whether this machine or the job is at fault, so that no other try in this run can help. Then the
 * segment is settled: left to a resume while the run stops, or failed. */
static bool settle_unstorable(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];

	if (ev->err->kind == ERR_LOCAL) {
		/* stops the run; the segment is left to a resume */
		core_fault(c, ev->pod, ev->err);
		p->workload.unfetched--;
		segment_reopen(c, ev->segment);
	} else if (ev->err->kind == ERR_JOB) {
		/* its name cannot be stored here: another pod's render would have the same name */
		p->workload.unfetched--;
		p->workload.failed_here = true;
		fetch_fail_segment(c, ev->segment);
	} else {
		return false;
	}
	pod_mark_due(c, ev->pod);
	return true;
}

void fetch_on_failed(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];
	struct core_pod *p = &c->pods[ev->pod];

	if (s->state != SEG_RENDERED || s->pod != ev->pod)
		return;
	if (settle_unstorable(c, ev) || s->arrived)
		return;
	s->fetching = false;
	if (files_outlast_pod(p) && c->now < p->presence.rescue_until &&
	    (ev->err->kind != ERR_UNTRUSTED || ++s->fetch_tries < FETCH_TRIES_MAX)) {
		fetch_retry_later(c, ev->pod);
		return;
	}
	if (files_outlast_pod(p) && ev->err->kind != ERR_UNTRUSTED) {
		p->workload.unfetched--;
		fetch_fail_segment(c, ev->segment); /* the user can fetch it later */
		return;
	}
	bool broke = ev->err->kind == ERR_NETWORK || ev->err->kind == ERR_TRANSIENT;
	if (broke && !pod_files_on_volume(p) && p->presence.link != LINK_UP)
		return; /* requested again when the connection is back: pods.c */
	if (broke && ++s->fetch_tries < FETCH_TRIES_MAX) {
		if (s->fetch_tries == 1)
			fetch_begin(c, ev->pod, ev->segment);
		else
			fetch_retry_later(c, ev->pod); /* after two failures, wait a moment */
		return;
	}
	bool first = s->file_tries == 0;
	if (++s->file_tries < FILE_TRIES_MAX) {
		reopen_for_render(c, ev);
		if (first)
			note_bad_file(p, ev->err);
		return;
	}
	p->workload.unfetched--;
	fetch_fail_segment(c, ev->segment);
	pod_mark_due(c, ev->pod);
}

void fetch_on_placed(struct core *c, const struct event *ev)
{
	struct seg *s = &c->segs[ev->segment];

	if (s->state != SEG_RENDERED)
		return;
	int pod = s->pod;
	segment_settle(c, ev->segment, SEG_LOCAL);
	c->pods[pod].workload.unfetched--;
	c->pods[pod].workload.local_at = c->now;
	c->pods[pod].workload.bad_files = 0;
	fetch_reset_delay(c, pod);
	c->pod_failures = 0;
	judge_canary(c, ev->segment, !s->suspect);
	pod_mark_due(c, pod);
}

void fetch_forget_transfers(struct core *c, int pod)
{
	for (uint32_t i = 0; c->pods[pod].workload.unfetched > 0 && i < c->seg_count; i++)
		if (c->segs[i].pod == pod)
			c->segs[i].fetching = false;
}

void fetch_request_pending(struct core *c, int pod)
{
	for (uint32_t i = 0; c->pods[pod].workload.unfetched > 0 && i < c->seg_count; i++) {
		const struct seg *s = &c->segs[i];
		if (s->state == SEG_RENDERED && s->pod == pod && !s->arrived && !s->fetching)
			fetch_begin(c, pod, i);
	}
}

void fetch_give_up_segments(struct core *c, int pod)
{
	for (uint32_t i = 0; c->pods[pod].workload.unfetched > 0 && i < c->seg_count; i++) {
		struct seg *s = &c->segs[i];
		if (s->pod != pod || s->state != SEG_RENDERED || s->arrived)
			continue;
		core_count_wasted(&c->pods[pod], s->elapsed_ms);
		c->pods[pod].workload.unfetched--;
		segment_on_pod_lost(c, i);
	}
	c->dirty = true;
}

void fetch_on_files(struct core *c, const struct event *ev)
{
	c->pods[ev->pod].workload.files = ev->number;
	c->dirty = true;
	pod_mark_due(c, ev->pod);
}

void fetch_request_outputs(struct core *c, int pod)
{
	if (c->pods[pod].workload.files > 0)
		core_act(c, ACT_FILES, pod);
}

void fetch_give_up_outputs(struct core *c, int pod)
{
	if (c->pods[pod].workload.files > 0)
		core_act(c, ACT_FILES, pod)->flag = true;
}

/* Files that cannot be fetched now are requested later, not rendered again. */
void fetch_retry_later(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (!p->presence.refetch_at)
		p->presence.refetch_at =
			c->now + MIN((int64_t)REFETCH_MIN_MS << MIN(p->presence.refetches++, 6),
				     (int64_t)REFETCH_MAX_MS);
	c->dirty = true;
}

void fetch_reset_delay(struct core *c, int pod)
{
	c->pods[pod].presence.refetches = 0;
	c->pods[pod].presence.rescue_until = c->now + RESCUE_LIMIT_MS;
}
