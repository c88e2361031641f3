/* deal.c - gives batches to workers, and watches the workers. */
#include "deal.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "answers.h"
#include "base/str.h"
#include "command.h"
#include "events.h"
#include "held.h"
#include "json.h"
#include "lines.h"
#include "process.h"
#include "queue.h"
#include "worker.h"

enum {
	RESTARTS_MAX = 20,
	IN_ROW_MAX = 5,
	HELLO_SILENCE_MS = 300 * 1000,
	HELLO_MAX_MS = 1800 * 1000,
};

static void worker_restart_or_fail(struct agent *a, struct worker *w, const char *words)
{
	char error[600];
	if (w->restarts >= RESTARTS_MAX || w->in_row >= IN_ROW_MAX) {
		snprintf(error, sizeof(error), "it ended %d times%s%s%s", w->restarts + 1,
			 w->in_row >= IN_ROW_MAX ? " without a finished segment" : "",
			 *words ? ": " : "", words);
		worker_failed(a, w, error, NULL);
		return;
	}
	w->restarts++;
	w->state = WORKER_RESTARTING;
	w->restart_ms = now_ms(a) + MIN(w->in_row > 1 ? (w->in_row - 1) * 500 : 0, 5000);
}

void worker_exited(struct agent *a, struct worker *w, int status)
{
	kill_group(w->pid); /* processes that the worker started */
	worker_read_out(a, w, 64);
	worker_read_err(a, w, 64);
	bool oom = !w->killed_for && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	const char *reason = w->killed_for ? w->killed_for : oom ? "oom" : "crash";
	const char *words = last_line(w->err_tail);
	bool shrinks = w->parts ? oom && in_flight(w) > 1 : w->reported_oom;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	worker_close(w);
	struct str *b = event_begin(a, "worker");
	js_int(b, "w", w->w);
	js_text(b, "state", "exited");
	js_int(b, "code", code);
	js_text(b, "error", *words ? words : reason);
	event_end(a);
	worker_failed_parts(a, w, reason, words);
	if (w->state == WORKER_FAILED || a->fatal)
		return;
	if (!shrinks)
		w->in_row++;
	char *copy = xstrdup(words);
	worker_restart_or_fail(a, w, *copy ? copy : reason);
	free(copy);
}

/* SIGKILL does not end it, so a driver or file system blocks it. Blame the machine, not a segment.
 */
static void worker_undead(struct agent *a, struct worker *w)
{
	if (w->command)
		return command_exited(a, w, SIGKILL);
	worker_requeue(a, w);
	worker_failed(a, w, "it was killed and does not end", NULL);
}

static int64_t hang_limit_ms(const struct agent *a, const struct worker *w)
{
	double estimate_s = 0; /* sum over its parts */
	for (const struct part *p = w->parts; p; p = p->next)
		estimate_s += p->batch->estimate_s *
			      (w->continuous ? (double)p->n / (double)p->batch->n : 1);
	return MAX(a->hang_ms, (int64_t)(MIN(estimate_s, 1e6) * 10000));
}

void worker_check_hang(struct agent *a, struct worker *w)
{
	int64_t now = now_ms(a), silent = now - w->line_ms;
	if (w->state == WORKER_RESTARTING && now >= w->restart_ms) {
		worker_start(a, w);
	} else if (w->killed_for && w->pid > 0 && w->state != WORKER_FAILED &&
		   now - w->killed_ms > a->kill_wait_ms) {
		worker_undead(a, w);
	} else if (w->state == WORKER_LOADING && !w->killed_for &&
		   (silent > MAX((int64_t)HELLO_SILENCE_MS, a->hang_ms) ||
		    now - w->began_ms > HELLO_MAX_MS)) {
		worker_kill(a, w, "hang");
	} else if (w->state == WORKER_BUSY && !w->command && !w->killed_for) {
		int64_t limit = hang_limit_ms(a, w);
		if (silent > limit || now - w->progress_ms > 10 * limit)
			worker_kill(a, w, "hang");
	} else if (w->state == WORKER_BUSY && w->command && a->hang_ms > 0 && !w->killed_for &&
		   silent > a->hang_ms) {
		command_hangs(a, w);
	}
}

static void worker_give(struct agent *a, struct worker *w, struct batch *b)
{
	struct part *p = b->parts;
	bool start_reported = w->continuous && b->start_reported;
	b->parts = p->next;
	share_advance(a, w);
	if (!w->parts) {
		w->began_ms = w->line_ms = w->progress_ms = w->segment_ms = now_ms(a);
		w->room = w->max_batch;
	}
	p->next = w->parts;
	p->batch = b;
	p->share_ms = w->share_ms;
	w->parts = p;
	w->room -= (int64_t)p->n;
	w->state = WORKER_BUSY;
	w->reported_oom = false;
	b->begun = b->start_reported = true;
	b->running++;
	for (size_t i = 0; i < p->n; i++)
		b->seg[p->at[i]].tries++;
	if (!start_reported) {
		struct str *e = event_begin(a, "batch");
		js_text(e, "id", b->id);
		js_text(e, "state", "started");
		js_int(e, "w", w->w);
		js_int(e, "segments", (int64_t)p->n);
		event_end(a);
	}
	if (a->command)
		return;
	str_addc(&w->to, '{');
	js_text(&w->to, "batch", b->id);
	js_key(&w->to, "segments");
	str_addc(&w->to, '[');
	for (size_t i = 0; i < p->n; i++) {
		js_key(&w->to, NULL);
		str_add(&w->to, b->seg[p->at[i]].task);
	}
	str_add(&w->to, "]}\n");
	worker_write(w);
}

/* How many segments the worker may receive now. A part suspected of killing its worker is tried
 * alone. */
static int64_t worker_room(const struct agent *a, const struct worker *w)
{
	int64_t most = a->command      ? 1
		       : a->part_limit ? MIN(a->part_limit, (int64_t)w->max_batch)
				       : w->max_batch;
	if (w->killed_for)
		return 0;
	if (w->state == WORKER_IDLE)
		return most;
	if (w->state != WORKER_BUSY || !w->continuous || w->parts->kills)
		return 0;
	return MAX(MIN(w->room, most - (int64_t)in_flight(w)), (int64_t)0);
}

/* The batch that this worker's next segments come from. */
static struct batch *next_batch(const struct agent *a, const struct worker *w)
{
	struct batch *b = a->queue;
	while (b && (!b->parts || (b->running && !held_batch(w, b->id))))
		b = b->next;
	return b && b->parts->kills && w->parts ? NULL : b;
}

/* Cuts the part after `most` segments; the rest stays first in the batch. */
static void part_fit(struct batch *b, size_t most)
{
	struct part *p = b->parts;
	if (p->n <= most)
		return;
	struct part *rest = part_new(p->n - most, p->kills);
	memcpy(rest->at, p->at + most, rest->n * sizeof(size_t));
	rest->next = p->next;
	p->next = rest;
	p->n = most;
}

void dispatch(struct agent *a)
{
	if (a->fatal || a->draining || a->leaving)
		return;
	for (int i = 0; i < a->worker_count; i++) {
		struct worker *w = &a->workers[i];
		struct batch *b;
		int64_t room;
		while ((room = worker_room(a, w)) > 0 && (b = next_batch(a, w))) {
			part_fit(b, (size_t)room);
			worker_give(a, w, b);
			if (a->command)
				command_start(a, w);
		}
	}
}
