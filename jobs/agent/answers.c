/* answers.c - reads what workers send. */
#include "answers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "bounds.h"
#include "events.h"
#include "files.h"
#include "held.h"
#include "lines.h"
#include "probe.h"
#include "process.h"
#include "queue.h"
#include "room.h"
#include "todo.h"
#include "worker.h"

enum {
	WORKER_PROTOCOL = 2, /* protocol 1 is accepted too */
};

void add_phases(struct str *b, const struct json *line, int64_t unpack_ms, int64_t unpack_bytes)
{
	static const char *const names[] = {"import_s", "read_s", "build_s", "warm_up_s",
					    "probe_s"};
	const struct json *phases = json_get(line, "phases");
	if (phases && phases->type != J_OBJECT)
		phases = NULL;
	if (!phases && !unpack_bytes)
		return;
	js_key(b, "phases");
	str_addc(b, '{');
	if (unpack_bytes) {
		js_real(b, "unpack_s", (double)unpack_ms / 1000);
		js_int(b, "unpack_bytes", unpack_bytes);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		double seconds = phases ? json_number(phases, names[i], -1) : -1;
		if (seconds >= 0 && seconds <= PHASE_MOST_S)
			js_real(b, names[i], seconds);
	}
	str_addc(b, '}');
}

static void worker_hello(struct agent *a, struct worker *w, const struct json *line)
{
	const char *error = json_text(line, "error", NULL);
	int64_t protocol = json_int(line, "protocol", 0);
	if (!error && (protocol < 1 || protocol > WORKER_PROTOCOL))
		error = "it speaks another protocol";
	if (error) {
		char *copy = xstrdup(error);
		kill_child(w->pid);
		worker_failed(a, w, copy, json_text(line, "unfit", NULL));
		free(copy);
		return;
	}
	w->max_batch = (int)MIN(MAX(json_int(line, "max_batch", 1), (int64_t)1), (int64_t)1 << 20);
	const char *batching = json_text(line, "batching", "none");
	w->continuous = protocol >= 2 && !strcmp(batching, "continuous");
	w->state = WORKER_IDLE;
	struct str *b = event_begin(a, "worker");
	js_int(b, "w", w->w);
	js_text(b, "state", "ready");
	size_t from = b->len;
	js_text(b, "engine", json_text(line, "engine", ""));
	js_text(b, "version", json_text(line, "version", ""));
	js_int(b, "sample_rate", json_int(line, "sample_rate", 0));
	js_int(b, "max_batch", w->max_batch);
	js_text(b, "batching", w->continuous || strcmp(batching, "continuous") ? batching : "none");
	const struct json *gpu = json_get(line, "gpu");
	js_key(b, "gpu");
	if (gpu && gpu->type == J_TEXT)
		js_quote(b, gpu->text, gpu->len);
	else
		str_add(b, gpu && gpu->type == J_TRUE ? "true" : "false");
	free(w->hello);
	w->hello = xstrndup(b->s + from, b->len - from);
	js_int(b, "load_ms", now_ms(a) - w->began_ms);
	add_phases(b, line, a->unpack_ms, a->unpack_bytes);
	event_end(a);
	probe_keep(a, line);
}

static void segment_finished(struct agent *a, struct worker *w, const struct segment *s,
			     const struct part *p, const char *file, const struct json *line)
{
	struct job *j = job_add(a, JOB_SEGMENT, s->id);
	j->batch_id = xstrdup(p->batch->id);
	j->name = xstrdup(file);
	j->try = s->tries;
	j->seconds = json_number(line, "seconds", 0);
	j->rate =
		(int)MIN(MAX(json_int(line, "rate", json_int(line, "sample_rate", 0)), (int64_t)0),
			 (int64_t)10000000);
	j->claimed_bytes = json_int(line, "bytes", -1);
	const char *hash = json_text(line, "sha256", "");
	if (strlen(hash) == 64)
		memcpy(j->claimed_sha256, hash, 65);
	int64_t ms =
		w->continuous ? (int64_t)(w->share_ms - p->share_ms) : now_ms(a) - w->segment_ms;
	j->ms = json_int(line, "ms", ms);
	w->segment_ms = now_ms(a);
	w->in_row = 0;
}

/* A continuous worker does not report the end of a batch, so the agent counts its segments. */
static void part_answered(struct agent *a, struct worker *w, struct part *p)
{
	struct batch *b = p->batch;
	b->busy_ms += w->share_ms - p->share_ms;
	if (part_open(p))
		return;
	worker_drop(a, w, p);
	free(p);
	batch_settled(a, b);
}

/* Returns false if the worker does not hold the segment. */
static bool worker_segment(struct agent *a, struct worker *w, const struct json *line)
{
	struct part *p;
	struct segment *s = held_segment(w, json_text(line, "segment", NULL), &p);
	if (!s || s->settled)
		return s != NULL;
	const char *file = json_text(line, "file", s->file);
	share_advance(a, w);
	if (!json_yes(line, "ok"))
		segment_failed(a, p->batch->id, s->id, s->tries, "worker",
			       json_text(line, "error", "the worker does not say why"));
	else if (!file || !path_is_safe(file))
		segment_failed(a, p->batch->id, s->id, s->tries, "mismatch",
			       "the worker names no file below BURST_OUT");
	else
		segment_finished(a, w, s, p, file, line);
	s->settled = true;
	if (w->continuous)
		part_answered(a, w, p);
	return true;
}

/* The worker has finished a batch. Segments that it never reported are missing. */
static bool worker_batch(struct agent *a, struct worker *w, const struct json *line)
{
	struct batch *b = held_batch(w, json_text(line, "batch", ""));
	if (!b)
		return w->continuous; /* a continuous worker's part ends with its last segment */
	struct part *p = worker_leave(a, w, b);
	if (!json_yes(line, "done")) {
		part_failed(a, w, p, p->n, "worker", json_text(line, "error", ""));
		free(p);
		batch_settled(a, b);
		check_volume(a);
		return true;
	}
	for (size_t i = 0; i < p->n; i++) {
		struct segment *s = &b->seg[p->at[i]];
		if (!s->settled)
			segment_failed(a, b->id, s->id, s->tries, "missing",
				       "the worker ended its batch without this segment");
		s->settled = true;
	}
	free(p);
	batch_settled(a, b);
	return true;
}

/* Returns false if the line holds no valid number of segments. */
static bool worker_take(struct worker *w, const struct json *line)
{
	int64_t n = json_int(line, "take", -1);
	if (n < 0)
		return false;
	w->room = MIN(w->room + MIN(n, (int64_t)w->max_batch), (int64_t)w->max_batch);
	return true;
}

static bool is_text(const struct json *value)
{
	return value && value->type == J_TEXT;
}

/* Obeys one line of the worker's stdout. Returns false for log text, which libraries often print
 * there. */
static bool worker_obeyed(struct agent *a, struct worker *w, const struct json *line)
{
	bool fine = true;
	if (w->state == WORKER_LOADING &&
	    (json_int(line, "hello", 0) > 0 || is_text(json_get(line, "error")))) {
		worker_hello(a, w, line);
	} else if (json_yes(line, "oom")) {
		w->reported_oom = true;
		worker_failed_parts(a, w, "oom", json_text(line, "error", ""));
	} else if (is_text(json_get(line, "segment")) && json_get(line, "ok")) {
		fine = worker_segment(a, w, line);
	} else if (is_text(json_get(line, "batch")) && json_get(line, "done")) {
		fine = worker_batch(a, w, line);
	} else if (w->continuous && json_get(line, "take")) {
		fine = worker_take(w, line);
	} else {
		return false;
	}
	w->progress_ms = now_ms(a);
	if (!fine)
		worker_kill(a, w, "garbage");
	return true;
}

void worker_line(struct agent *a, struct worker *w, const char *line, size_t len)
{
	w->line_ms = now_ms(a);
	struct json_doc doc = {0};
	bool obeyed = false;
	/* a library's progress bar may precede the worker's line */
	line = last_state(line, &len);
	if (len && line[0] == '{' && w->state != WORKER_FAILED && !w->killed_for) {
		const struct json *value = json_read(&doc, line, len);
		obeyed = value && value->type == J_OBJECT && worker_obeyed(a, w, value);
		json_free(&doc);
	}
	if (!obeyed)
		event_log(a, w->w, NULL, line, len);
}

bool worker_read_out(struct agent *a, struct worker *w, int rounds)
{
	char part[64 << 10];
	ssize_t n = -1;
	while (rounds-- > 0 && (n = read(w->out, part, sizeof(part))) > 0) {
		str_addn(&w->line, part, (size_t)n);
		size_t from = 0;
		char *nl;
		while ((nl = memchr(w->line.s + from, '\n', w->line.len - from))) {
			worker_line(a, w, w->line.s + from, (size_t)(nl - w->line.s) - from);
			from = (size_t)(nl - w->line.s) + 1;
		}
		str_drop(&w->line, from);
		written_over(&w->line, LINE_MAX_BYTES);
		if (w->line.len > LINE_MAX_BYTES) {
			event_log(a, w->w, NULL, w->line.s, 200);
			worker_kill(a, w, "garbage");
			w->line.len = 0;
		}
	}
	return n != 0;
}

bool worker_read_err(struct agent *a, struct worker *w, int rounds)
{
	char part[16 << 10];
	ssize_t n = -1;
	while (rounds-- > 0 && (n = read(w->err, part, sizeof(part))) > 0) {
		w->line_ms = now_ms(a);
		keep_tail(w->err_tail, sizeof(w->err_tail), part, (size_t)n);
		str_addn(&w->err_line, part, (size_t)n);
		log_lines(a, &w->err_line, &w->skipping[1], w->w, NULL);
	}
	return n != 0;
}
