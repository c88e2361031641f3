/* queue.c - batches, their parts, and what becomes of a part that failed. */
#include "queue.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "events.h"
#include "json.h"
#include "room.h"
#include "todo.h"

void segment_failed(struct agent *a, const char *batch, const char *id, int try, const char *reason,
		    const char *error)
{
	if (volume_is_to_blame(a, error))
		return;
	struct str *b = event_begin(a, "segment");
	js_text(b, "id", id);
	js_text(b, "batch", batch);
	js_int(b, "try", try);
	js_bool(b, "ok", false);
	js_text(b, "reason", reason);
	js_text(b, "error", error);
	event_end(a);
}

void batch_free(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->seg[i].id);
		free(b->seg[i].file);
		free(b->seg[i].task);
		free(b->seg[i].run);
	}
	while (b->parts) {
		struct part *next = b->parts->next;
		free(b->parts);
		b->parts = next;
	}
	free(b->seg);
	free(b->id);
	free(b);
}

void batch_unlink(struct agent *a, struct batch *b)
{
	struct batch **at = &a->queue;
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
}

struct part *part_new(size_t n, int kills)
{
	struct part *p = xcalloc(1, sizeof(*p) + n * sizeof(size_t));
	p->n = n;
	p->kills = kills;
	return p;
}

/* Puts the part behind the batch's other parts, so that they render before a suspect part. */
static void part_add(struct batch *b, struct part *p)
{
	struct part **at = &b->parts;
	while (*at)
		at = &(*at)->next;
	*at = p;
}

void part_add_slice(struct batch *b, const struct part *of, size_t from, size_t n, int kills)
{
	if (!n)
		return;
	struct part *p = part_new(n, kills);
	memcpy(p->at, of->at + from, n * sizeof(size_t));
	part_add(b, p);
}

void batch_settled(struct agent *a, struct batch *b)
{
	if (b->parts || b->running)
		return;
	struct job *j = job_add(a, JOB_BATCH, b->id);
	j->ms = (int64_t)b->busy_ms;
	j->halted = b->halted;
	batch_unlink(a, b);
	batch_free(b);
}

static void batch_retry_event(struct agent *a, const char *id, int w, const char *reason)
{
	struct str *b = event_begin(a, "batch");
	js_text(b, "id", id);
	js_text(b, "state", "retry");
	js_int(b, "w", w);
	js_text(b, "reason", reason);
	event_end(a);
}

struct part *part_unsettled(const struct batch *b, const struct part *p)
{
	struct part *rest = part_new(p->n, p->kills);
	rest->n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (!b->seg[p->at[i]].settled)
			rest->at[rest->n++] = p->at[i];
	return rest;
}

static void segment_is_poison(struct agent *a, struct batch *b, struct segment *s,
			      const char *reason, const char *words)
{
	char error[600];
	bool says = !strcmp(reason, "worker");
	if (says)
		snprintf(error, sizeof(error), "%s",
			 *words ? words : "the worker could not render it");
	else
		snprintf(error, sizeof(error), "it ended its worker twice (%s)%s%s", reason,
			 *words ? ": " : "", words);
	segment_failed(a, b->id, s->id, s->tries, says ? "worker" : "poison", error);
	s->settled = true;
}

void part_failed(struct agent *a, const struct worker *w, struct part *p, size_t in_flight,
		 const char *reason, const char *words)
{
	struct batch *b = p->batch;
	struct part *rest = part_unsettled(b, p);
	bool oom = !strcmp(reason, "oom"), says = !strcmp(reason, "worker");
	if (rest->n == 1 && in_flight == 1) {
		struct segment *s = &b->seg[rest->at[0]];
		if (says || ++s->alone_kills >= 2)
			segment_is_poison(a, b, s, reason, words);
	}
	if (rest->n && !b->seg[rest->at[0]].settled) {
		batch_retry_event(a, b->id, w->w, says ? "crash" : reason);
		b->start_reported = false;
		if (oom && in_flight > 1)
			a->part_limit = (int64_t)in_flight / 2;
		if (oom && w->continuous && in_flight > 1) {
			part_add_slice(b, rest, 0, rest->n, p->kills);
		} else if (rest->n == 1 || (!oom && !p->kills && !says)) {
			part_add_slice(b, rest, 0, rest->n, p->kills + 1);
		} else {
			size_t half = (rest->n + 1) / 2;
			part_add_slice(b, rest, 0, half, MAX(p->kills, 1));
			part_add_slice(b, rest, half, rest->n - half, MAX(p->kills, 1));
		}
	}
	free(rest);
}
