/* held.c - the parts that a worker holds, and for how long it held them. */
#include "held.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "queue.h"

size_t part_open(const struct part *p)
{
	size_t open = 0;
	for (size_t i = 0; i < p->n; i++)
		open += !p->batch->seg[p->at[i]].settled;
	return open;
}

size_t in_flight(const struct worker *w)
{
	size_t count = 0;
	for (const struct part *p = w->parts; p; p = p->next)
		count += w->continuous ? part_open(p) : p->n;
	return count;
}

void share_advance(const struct agent *a, struct worker *w)
{
	int64_t now = now_ms(a);
	size_t held = w->continuous ? in_flight(w) : 0;
	if (held)
		w->share_ms += (double)(now - w->share_at_ms) / (double)held;
	w->share_at_ms = now;
}

void worker_drop(const struct agent *a, struct worker *w, struct part *p)
{
	struct part **at = &w->parts;
	if (w->continuous)
		p->batch->busy_ms += (double)part_open(p) * (w->share_ms - p->share_ms);
	else
		p->batch->busy_ms += (double)(now_ms(a) - w->began_ms);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->batch->running--;
	if (!w->parts && w->state == WORKER_BUSY)
		w->state = WORKER_IDLE;
}

struct part *worker_leave(const struct agent *a, struct worker *w, struct batch *b)
{
	struct part *all = part_new(0, 0);
	share_advance(a, w);
	for (struct part *p = w->parts, *next; p; p = next) {
		next = p->next;
		if (p->batch != b)
			continue;
		worker_drop(a, w, p);
		all = xrealloc(all, sizeof(*all) + (all->n + p->n) * sizeof(size_t));
		memcpy(all->at + all->n, p->at, p->n * sizeof(size_t));
		all->n += p->n;
		all->kills = MAX(all->kills, p->kills);
		free(p);
	}
	all->batch = b;
	return all;
}

void worker_failed_parts(struct agent *a, struct worker *w, const char *reason, const char *words)
{
	size_t held = in_flight(w);
	while (w->parts) {
		struct batch *b = w->parts->batch;
		struct part *p = worker_leave(a, w, b);
		part_failed(a, w, p, held, reason, words);
		free(p);
		batch_settled(a, b);
	}
}

struct segment *held_segment(const struct worker *w, const char *id, struct part **part)
{
	for (struct part *p = w->parts; p && id; p = p->next)
		for (size_t i = 0; i < p->n; i++)
			if (!strcmp(p->batch->seg[p->at[i]].id, id)) {
				*part = p;
				return &p->batch->seg[p->at[i]];
			}
	return NULL;
}

struct batch *held_batch(const struct worker *w, const char *id)
{
	for (const struct part *p = w->parts; p; p = p->next)
		if (!strcmp(p->batch->id, id))
			return p->batch;
	return NULL;
}

void worker_requeue(struct agent *a, struct worker *w)
{
	while (w->parts) {
		struct batch *b = w->parts->batch;
		struct part *p = worker_leave(a, w, b), *rest = part_unsettled(b, p);
		part_add_slice(b, rest, 0, rest->n, p->kills);
		b->start_reported = false;
		free(rest);
		free(p);
		batch_settled(a, b);
	}
}
