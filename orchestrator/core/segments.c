/* segments.c - the state of each segment, and the open ones by weight. */
#include "impl.h"

#include <stdlib.h>

/* ---- the heap of open segments of one group; a stale entry (not TODO any more) is dropped when it
 * surfaces ---- */

static bool heavier(const struct core *c, uint32_t a, uint32_t b)
{
	if (c->segs[a].weight != c->segs[b].weight)
		return c->segs[a].weight > c->segs[b].weight;
	return a < b;
}

static void sift_up(struct core *c, struct heap *h, size_t i)
{
	while (i && heavier(c, h->list[i], h->list[(i - 1) / 2])) {
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
			if (heavier(c, h->list[k], h->list[best]))
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

/* The heaviest TODO segment of the group, -1 when there is none. */
int64_t segments_top(struct core *c, struct heap *h)
{
	while (h->count && c->segs[h->list[0]].state != SEG_TODO)
		heap_pop(c, h);
	return h->count ? (int64_t)h->list[0] : -1;
}

/* ---- states of a segment ---- */

void segment_leave_pod(struct core *c, struct seg *s)
{
	if (s->state == SEG_HELD)
		c->pods[s->pod].workload.held--;
}

void segment_reopen(struct core *c, uint32_t i)
{
	struct seg *s = &c->segs[i];
	struct heap *h = &c->heaps[s->group];

	segment_leave_pod(c, s);
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

void segment_take(struct core *c, uint32_t i, enum core_seg_state to, int pod)
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

void segment_settle(struct core *c, uint32_t i, enum core_seg_state to)
{
	struct seg *s = &c->segs[i];

	if (s->state == SEG_TODO)
		segment_take(c, i, to, s->pod);
	segment_leave_pod(c, s);
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

/* A segment is lost with its pod at most LOSSES_MAX times: the segment itself may end pods. */
void segment_lost(struct core *c, uint32_t i)
{
	if (++c->segs[i].losses >= LOSSES_MAX)
		segment_settle(c, i, SEG_FAILED);
	else
		segment_reopen(c, i);
}
