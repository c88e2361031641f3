/* worker.c - batches and their parts, the workers that hold them, and what workers answer. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "files.h"
#include "json.h"

/* ---- the queue of slow work on files ---- */

struct job *job_add(struct agent *a, enum job_kind kind, const char *id)
{
	struct job *j = xcalloc(1, sizeof(*j));
	j->kind = kind;
	j->id = xstrdup(id);
	j->fd = j->to = -1;
	if (a->jobs_last)
		a->jobs_last->next = j;
	else
		a->jobs = j;
	a->jobs_last = j;
	return j;
}

static void job_free(struct job *j)
{
	close_fd(&j->fd);
	close_fd(&j->to);
	free(j->id);
	free(j->batch_id);
	free(j->name);
	free(j->dir);
	free(j);
}

void job_done(struct agent *a)
{
	struct job *j = a->jobs;
	a->jobs = j->next;
	if (!a->jobs)
		a->jobs_last = NULL;
	job_free(j);
}

/* ---- whether volume and disk have room ---- */

enum {
	PROBE_PIECE = 64 << 10,
	PROBE_MORE = 1 << 20,
	PROBE_LEAST = 4 << 20,
	PROBE_MOST = 64 << 20,
	PROBE_HOLDS_TIMES = 10, /* a result holds for this many times the duration of the test */
	PROBE_HOLDS_MS = 10 * 1000,
};

/* Returns false if the volume is full, with errno. */
static bool write_zeros(int fd, int64_t bytes)
{
	CLEANUP(free_text) char *zeros = xcalloc(1, PROBE_PIECE);
	bool fine = true;
	for (; fine && bytes > 0; bytes -= PROBE_PIECE)
		fine = fd_write_all(fd, zeros, PROBE_PIECE) == 0;
	fine = fine ||
	       errno == EFBIG; /* a limit on file size does not mean that the volume is full */
	return fine && fsync(fd) == 0;
}

/* Writes a file of this size as a test: statvfs ignores quotas. Notes the result for
 * is_room_known(). */
static bool is_folder_full(struct agent *a, int dir, int64_t bytes)
{
	int64_t began = now_ms(a);
	unlinkat(dir, ".probe", 0);
	int fd = create_at(dir, ".probe", 0600);
	bool full = fd < 0 ? errno == ENOSPC || errno == EDQUOT || errno == EROFS || errno == EIO
			   : !write_zeros(fd, bytes);
	if (fd >= 0)
		close(fd);
	unlinkat(dir, ".probe", 0);
	int64_t now = now_ms(a);
	a->room_bytes = full ? 0 : bytes;
	a->room_until_ms = now + MIN((now - began) * PROBE_HOLDS_TIMES, (int64_t)PROBE_HOLDS_MS);
	return full;
}

/* One test serves all files that fail together: nothing else runs meanwhile. */
static bool is_room_known(struct agent *a, int64_t bytes)
{
	return bytes <= a->room_bytes && now_ms(a) < a->room_until_ms;
}

void check_volume_for(struct agent *a, const char *words)
{
	int saved = errno;
	bool no_room = strstr(words, strerror(ENOSPC)) || strstr(words, strerror(EDQUOT));
	int64_t bytes = no_room ? PROBE_MOST
				: MIN(MAX(a->largest + PROBE_MORE, (int64_t)PROBE_LEAST),
				      (int64_t)PROBE_MOST);
	if (!a->fatal && !is_room_known(a, bytes)) {
		if (is_folder_full(a, a->dir_fd, bytes))
			fatal(a, "the volume is full or cannot be written");
		else if (a->out_fd >= 0 && is_folder_full(a, a->out_fd, bytes))
			fatal(a, "the pod's disk is full or cannot be written");
	}
	errno = saved;
}

void check_volume(struct agent *a)
{
	check_volume_for(a, "");
}

bool volume_is_to_blame(struct agent *a, const char *words)
{
	check_volume_for(a, words);
	return a->fatal;
}

/* ---- batches, their parts, and what becomes of a part that failed ---- */

struct str *segment_event(struct agent *a, const char *batch, const char *id, int try, bool ok)
{
	struct str *b = event_begin(a, "segment");
	js_text(b, "id", id);
	js_text(b, "batch", batch);
	js_int(b, "try", try);
	js_bool(b, "ok", ok);
	return b;
}

struct str *batch_event(struct agent *a, const char *id, const char *state)
{
	struct str *b = event_begin(a, "batch");
	js_text(b, "id", id);
	js_text(b, "state", state);
	return b;
}

void segment_failed(struct agent *a, const char *batch, const char *id, int try, const char *reason,
		    const char *error)
{
	if (volume_is_to_blame(a, error))
		return;
	struct str *b = segment_event(a, batch, id, try, false);
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
static void batch_add_part(struct batch *b, struct part *p)
{
	struct part **at = &b->parts;
	while (*at)
		at = &(*at)->next;
	*at = p;
}

/* Adds a part of n segments of `of`, from the index `from` on; none if n is 0. */
static void batch_add_slice(struct batch *b, const struct part *of, size_t from, size_t n,
			    int kills)
{
	if (!n)
		return;
	struct part *p = part_new(n, kills);
	memcpy(p->at, of->at + from, n * sizeof(size_t));
	batch_add_part(b, p);
}

void batch_settled(struct agent *a, struct batch *b)
{
	if (b->parts || b->running)
		return;
	struct job *j = job_add(a, JOB_BATCH, b->id);
	j->ms = (int64_t)b->busy_ms;
	j->halted = b->halted;
	if (b->halted) /* commands alone are halted, and have batches of their own */
		j->name = xstrdup(b->seg[0].id);
	batch_unlink(a, b);
	batch_free(b);
}

/* A copy of the part without settled segments. The caller frees it. */
static struct part *part_unsettled(const struct batch *b, const struct part *p)
{
	struct part *rest = part_new(p->n, p->kills);
	rest->n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (!b->seg[p->at[i]].settled)
			rest->at[rest->n++] = p->at[i];
	return rest;
}

static void settle_failed_segment(struct agent *a, struct batch *b, struct segment *s,
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

/* Decides how a failed part is tried again. reason: crash, hang, oom, garbage, or "worker" (it is
 * alive and reports an error). in_flight: how many segments its worker held. A continuous
 * worker that ran out of memory gets fewer segments at a time. After another failure its parts run
 * alone, to find the cause (worker_room). */
static void part_failed(struct agent *a, const struct worker *w, struct part *p, size_t in_flight,
			const char *reason, const char *words)
{
	struct batch *b = p->batch;
	struct part *rest = part_unsettled(b, p);
	bool oom = !strcmp(reason, "oom"), says = !strcmp(reason, "worker");
	if (rest->n == 1 && in_flight == 1) {
		struct segment *s = &b->seg[rest->at[0]];
		if (says || ++s->alone_kills >= 2)
			settle_failed_segment(a, b, s, reason, words);
	}
	if (rest->n && !b->seg[rest->at[0]].settled) {
		struct str *event = batch_event(a, b->id, "retry");
		js_int(event, "w", w->w);
		js_text(event, "reason", says ? "crash" : reason);
		event_end(a);
		b->start_reported = false;
		if (oom && in_flight > 1)
			a->part_limit = (int64_t)in_flight / 2;
		if (oom && w->continuous && in_flight > 1) {
			batch_add_slice(b, rest, 0, rest->n, p->kills);
		} else if (rest->n == 1 || (!oom && !p->kills && !says)) {
			batch_add_slice(b, rest, 0, rest->n, p->kills + 1);
		} else {
			size_t half = (rest->n + 1) / 2;
			batch_add_slice(b, rest, 0, half, MAX(p->kills, 1));
			batch_add_slice(b, rest, half, rest->n - half, MAX(p->kills, 1));
		}
	}
	free(rest);
}

/* ---- the parts that a worker holds, and for how long ---- */

static size_t count_unsettled(const struct part *p)
{
	size_t open = 0;
	for (size_t i = 0; i < p->n; i++)
		open += !p->batch->seg[p->at[i]].settled;
	return open;
}

size_t count_held_segments(const struct worker *w)
{
	size_t count = 0;
	for (const struct part *p = w->parts; p; p = p->next)
		count += w->continuous ? count_unsettled(p) : p->n;
	return count;
}

void share_advance(const struct agent *a, struct worker *w)
{
	int64_t now = now_ms(a);
	size_t held = w->continuous ? count_held_segments(w) : 0;
	if (held)
		w->share_ms += (double)(now - w->share_at_ms) / (double)held;
	w->share_at_ms = now;
}

/* Takes a part that has ended, with or without success, from the worker. The caller frees it. */
static void remove_part(const struct agent *a, struct worker *w, struct part *p)
{
	struct part **at = &w->parts;
	if (w->continuous)
		p->batch->busy_ms += (double)count_unsettled(p) * (w->share_ms - p->share_ms);
	else
		p->batch->busy_ms += (double)(now_ms(a) - w->began_ms);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->batch->running--;
	if (!w->parts && w->state == WORKER_BUSY)
		w->state = WORKER_IDLE;
}

struct part *take_parts_of_batch(const struct agent *a, struct worker *w, struct batch *b)
{
	struct part *all = part_new(0, 0);
	share_advance(a, w);
	for (struct part *p = w->parts, *next; p; p = next) {
		next = p->next;
		if (p->batch != b)
			continue;
		remove_part(a, w, p);
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
	size_t held = count_held_segments(w);
	while (w->parts) {
		struct batch *b = w->parts->batch;
		struct part *p = take_parts_of_batch(a, w, b);
		part_failed(a, w, p, held, reason, words);
		free(p);
		batch_settled(a, b);
	}
}

/* Finds a segment that the worker holds, and its part. NULL: it holds none of this id. */
static struct segment *held_segment(const struct worker *w, const char *id, struct part **part)
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
		struct part *p = take_parts_of_batch(a, w, b), *rest = part_unsettled(b, p);
		batch_add_slice(b, rest, 0, rest->n, p->kills);
		b->start_reported = false;
		free(rest);
		free(p);
		batch_settled(a, b);
	}
}

/* ---- workers ---- */

struct str *worker_event(struct agent *a, const struct worker *w, const char *state)
{
	struct str *b = event_begin(a, "worker");
	js_int(b, "w", w->w);
	js_text(b, "state", state);
	return b;
}

static bool all_workers_failed(const struct agent *a)
{
	for (int i = 0; i < a->worker_count; i++)
		if (a->workers[i].state != WORKER_FAILED)
			return false;
	return a->worker_count > 0;
}

void worker_failed(struct agent *a, struct worker *w, const char *error, const char *unfit)
{
	w->state = WORKER_FAILED;
	struct str *b = worker_event(a, w, "failed");
	js_text(b, "error", error);
	if (unfit)
		js_text(b, "unfit", unfit);
	event_end(a);
	if (all_workers_failed(a))
		fatal(a, "no worker can be kept running: %s", error);
}

void worker_start(struct agent *a, struct worker *w)
{
	int in = -1, out = -1, err = -1;
	struct env env = env_copy(&a->place.env);
	worker_env(a, &env, w->w);
	CLEANUP(free_text) char *work = xasprintf("%s/work/worker%d", a->disk, w->w);
	struct spawn s = {.script = a->worker_command,
			  .dir = a->code ? a->code : work,
			  .own_dir = !a->code,
			  .uid = a->worker_root ? 0 : WORKER_UID,
			  .env = &env};
	if (make_pipe(&in, &w->in) < 0 || make_pipe(&w->out, &out) < 0 ||
	    make_pipe(&w->err, &err) < 0) {
		w->pid = -1;
	} else {
		s.in = in, s.out = out, s.err = err;
		w->pid = spawn(a, &s);
		nonblocking(w->in);
		nonblocking(w->out);
		nonblocking(w->err);
	}
	close_fd(&in);
	close_fd(&out);
	close_fd(&err);
	env_free(&env);
	w->state = WORKER_LOADING;
	w->began_ms = w->line_ms = w->progress_ms = now_ms(a);
	w->killed_for = NULL;
	w->err_tail[0] = 0;
	w->to.len = w->line.len = w->err_line.len = 0;
	w->skipping[0] = w->skipping[1] = false;
	if (w->pid < 0)
		worker_failed(a, w, strerror(errno), NULL);
}

void worker_kill(struct agent *a, struct worker *w, const char *why)
{
	if (!w->killed_for) {
		w->killed_for = why;
		w->killed_ms = now_ms(a);
	}
	kill_child(w->pid);
}

void worker_write(struct worker *w)
{
	ssize_t n = write(w->in, w->to.s, w->to.len);
	if (n > 0)
		str_drop(&w->to, (size_t)n);
	else if (errno != EAGAIN && errno != EINTR)
		w->to.len = 0; /* the worker has ended; its exit status gives the reason */
}

void worker_close(struct worker *w)
{
	close_fd(&w->in);
	close_fd(&w->out);
	close_fd(&w->err);
	w->pid = 0;
}

/* ---- what workers send ---- */

enum { WORKER_PROTOCOL = 2 /* protocol 1 is accepted too */ };

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

/* The worker is ready, or cannot work. */
static void on_hello_line(struct agent *a, struct worker *w, const struct json *line)
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
	struct str *b = worker_event(a, w, "ready");
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

static void queue_segment_file(struct agent *a, struct worker *w, const struct segment *s,
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

/* A segment of a continuous worker's part is settled. Such a worker does not report the end of a
 * batch, so the agent counts its segments; frees the part with its last one. */
static void on_part_answered(struct agent *a, struct worker *w, struct part *p)
{
	struct batch *b = p->batch;
	b->busy_ms += w->share_ms - p->share_ms;
	if (count_unsettled(p))
		return;
	remove_part(a, w, p);
	free(p);
	batch_settled(a, b);
}

/* A segment is finished or has failed. Returns false if the worker does not hold it. */
static bool on_segment_line(struct agent *a, struct worker *w, const struct json *line)
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
		queue_segment_file(a, w, s, p, file, line);
	s->settled = true;
	if (w->continuous)
		on_part_answered(a, w, p);
	return true;
}

/* Segments that were never reported are missing. Returns false if it does not hold the batch. */
static bool on_batch_line(struct agent *a, struct worker *w, const struct json *line)
{
	struct batch *b = held_batch(w, json_text(line, "batch", ""));
	if (!b)
		return w->continuous; /* a continuous worker's part ends with its last segment */
	struct part *p = take_parts_of_batch(a, w, b);
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

/* A continuous worker accepts more segments. Returns false if the line holds no valid number. */
static bool on_take_line(struct worker *w, const struct json *line)
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
static bool obey_worker_line(struct agent *a, struct worker *w, const struct json *line)
{
	bool fine = true;
	if (w->state == WORKER_LOADING &&
	    (json_int(line, "hello", 0) > 0 || is_text(json_get(line, "error")))) {
		on_hello_line(a, w, line);
	} else if (json_yes(line, "oom")) {
		w->reported_oom = true;
		worker_failed_parts(a, w, "oom", json_text(line, "error", ""));
	} else if (is_text(json_get(line, "segment")) && json_get(line, "ok")) {
		fine = on_segment_line(a, w, line);
	} else if (is_text(json_get(line, "batch")) && json_get(line, "done")) {
		fine = on_batch_line(a, w, line);
	} else if (w->continuous && json_get(line, "take")) {
		fine = on_take_line(w, line);
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
	line = last_shown_state(line, &len);
	if (len && line[0] == '{' && w->state != WORKER_FAILED && !w->killed_for) {
		const struct json *value = json_read(&doc, line, len);
		obeyed = value && value->type == J_OBJECT && obey_worker_line(a, w, value);
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
		drop_overwritten(&w->line, LINE_MAX_BYTES);
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
