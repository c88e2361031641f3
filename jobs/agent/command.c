/* command.c - gives batches to workers, runs commands, watches both and stops them. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "base/str.h"
#include "files.h"
#include "json.h"

/* ---- a segment that is a shell command, in a private copy of the code ---- */

enum {
	COMMAND_LOG_MAX = 256 << 20,
	/* A shell whose child was killed ends soon afterwards, and says so by its exit code. */
	DOUBT_MS = 500,
	DRAIN_MS = 500, /* for the last words of what was killed */
};

static void command_free(struct command *c)
{
	for (int i = 0; i < c->watches; i++)
		free(c->watched[i]);
	free(c->watched);
	for (int i = 0; i < OUTPUT_ROWS; i++)
		for (struct output *o = c->outputs[i], *next; o; o = next) {
			next = o->next;
			free(o->name);
			free(o);
		}
	close_fd(&c->log_fd);
	close_fd(&c->notify);
	free(c->torn_name);
	checkpoint_free(c);
	free(c->id);
	free(c->dir);
	free(c);
}

static void command_env(struct agent *a, struct worker *w, const struct segment *s, struct env *env)
{
	char number[24];
	worker_env(a, env, w->w);
	snprintf(number, sizeof(number), "%lld", (long long)s->index);
	env_set(env, "BURST_INDEX", number);
	snprintf(number, sizeof(number), "%lld", (long long)s->count);
	env_set(env, "BURST_COUNT", number);
	env_set(env, "BURST_SEGMENT", s->id);
	checkpoint_env(w->command, env);
}

/* Starts a command whose checkpoint folder is ready. If that fails, its exit status is 125. */
static void command_run(struct agent *a, struct worker *w)
{
	struct segment *s = &w->parts->batch->seg[w->parts->at[0]];
	struct command *c = w->command;
	struct env env = env_copy(&a->place.env);
	int out = -1;
	/* watched before the command can write there */
	if (mkdirs(c->dir, 0755) == 0)
		command_watch(a, c);
	command_env(a, w, s, &env);
	struct spawn how = {.script = s->run ? s->run : "echo 'no command was given'; exit 125",
			    .dir = c->dir,
			    .copy = a->code,
			    .own_dir = true,
			    .uid = a->worker_root ? 0 : WORKER_UID,
			    .env = &env,
			    .in = -1};
	w->pid = make_pipe(&w->out, &out) < 0 ? -1 : (how.out = how.err = out, spawn(a, &how));
	close_fd(&out);
	c->group = w->pid;
	if (w->out >= 0)
		nonblocking(w->out);
	env_free(&env);
	if (w->pid < 0) {
		c->exited = c->by_itself = true;
		c->code = 125;
	}
}

/* Prepares the command of the slot's part; starts it unless a child fills its checkpoint first. */
static void command_start(struct agent *a, struct worker *w)
{
	struct segment *s = &w->parts->batch->seg[w->parts->at[0]];
	struct command *c = xcalloc(1, sizeof(*c));
	w->command = c;
	c->id = xstrdup(s->id);
	c->try = s->tries;
	c->dir = xasprintf("%s/work/segment.%s", a->disk, s->id);
	c->notify = c->filled = -1;
	c->oom_kills = oom_kills(a->oom_fd);
	remove_at(AT_FDCWD, c->dir);
	CLEANUP(free_text) char *log = xasprintf("%s.log", s->id);
	c->log_fd =
		openat(a->dir_fd, log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	w->err_tail[0] = 0;
	w->line.len = 0;
	w->skipping[0] = false;
	w->pid = checkpoint_prepare(a, c, s->task);
	if (!w->pid)
		command_run(a, w);
}

/* Logs what the command prints, at most `rounds` pieces. Returns false at the end of the output. */
static bool command_read(struct agent *a, struct worker *w, int rounds)
{
	struct command *c = w->command;
	char part[64 << 10];
	ssize_t n = -1;
	while (rounds-- > 0 && w->out >= 0 && (n = read(w->out, part, sizeof(part))) > 0) {
		w->line_ms = now_ms(a);
		keep_tail(w->err_tail, sizeof(w->err_tail), part, (size_t)n);
		if (c->log_fd >= 0 && c->log_bytes < COMMAND_LOG_MAX &&
		    fd_write_all(c->log_fd, part, (size_t)n) < 0) {
			close_fd(&c->log_fd);
			check_volume(a);
		}
		c->log_bytes += n;
		str_addn(&w->line, part, (size_t)n);
		log_lines(a, &w->line, &w->skipping[0], w->w, c->id);
	}
	return n != 0;
}

/* Returns whether the command chose its exit status. A shell that reports the death of its last
 * child by a signal has a status above 128. */
static bool has_ended_itself(int status)
{
	return WIFEXITED(status) &&
	       (WEXITSTATUS(status) <= 128 || WEXITSTATUS(status) > 128 + SIGRTMAX);
}

static bool is_group_gone(const struct command *c)
{
	return c->group <= 0 || (kill(-c->group, 0) < 0 && errno == ESRCH);
}

/* Kills the command, or what is left of its group. What it closes from now on is not finished. */
static void command_kill(struct agent *a, struct worker *w)
{
	struct command *c = w->command;
	command_watched(a, c, w->pid);
	c->ending = ENDING_KILLED;
	kill_group(c->group);
}

/* The child that filled the checkpoint's folder has ended: runs the command unless it was halted.
 */
static void command_filled(struct agent *a, struct worker *w)
{
	struct command *c = w->command;
	w->pid = 0;
	if (!c->halted)
		return command_run(a, w);
	c->exited = true;
	c->code = 128 + SIGTERM;
}

void command_exited(struct agent *a, struct worker *w, int status)
{
	struct command *c = w->command;
	if (!c->checkpoint.began_ms) {
		checkpoint_filled(a, c, status);
		return command_filled(a, w);
	}
	command_watched(a, c, 0);
	/* its children may still finish something in the time that they were given */
	bool goes_on = c->halted && c->ending != ENDING_KILLED && !is_group_gone(c);
	if (!goes_on)
		command_kill(a, w);
	c->by_itself = has_ended_itself(status);
	if (!c->by_itself && WIFEXITED(status) && !c->halted)
		c->doubt_from_ms = now_ms(a) - DOUBT_MS;
	c->exited = true;
	c->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	/* a child of the command may keep the pipe open; do not wait for its end */
	c->drain_until_ms = (goes_on ? MAX(c->halt_until_ms, now_ms(a)) : now_ms(a)) + DRAIN_MS;
	w->pid = 0;
}

static void command_halt(struct agent *a, struct worker *w, int64_t grace_ms)
{
	struct command *c = w->command;
	if (c->halted)
		return;
	c->halted = true;
	c->checkpoint.due_ms = 0; /* the machine may not wait for the end of the command */
	c->halt_until_ms = now_ms(a) + grace_ms;
	command_watched(a, c, w->pid);
	c->ending = MAX(c->ending, ENDING_BEGUN);
	if (!c->exited && c->group > 0)
		kill(-c->group, SIGTERM);
}

bool command_is_halting(const struct agent *a)
{
	for (int i = 0; i < a->worker_count; i++)
		if (a->workers[i].command && a->workers[i].command->halted)
			return true;
	return false;
}

void commands_halt(struct agent *a, int64_t grace_ms)
{
	for (int i = 0; i < a->worker_count; i++)
		if (a->workers[i].command)
			command_halt(a, &a->workers[i], grace_ms);
}

/* Sets j->name to the reason for a failed exit status. */
static void command_explain(struct worker *w, struct job *j)
{
	const char *words = last_line(w->err_tail);
	if (j->code == 137 && w->killed_for)
		j->name = xasprintf("it was silent for too long and was ended");
	else if (j->code == 137)
		j->name = xasprintf("it was killed%s for want of memory",
				    w->command->oom_until_ms ? "" : ", perhaps");
	else
		j->name = xasprintf("exit status %d%s%s", j->code, *words ? ": " : "", words);
}

/* Reports the end of a command by a job, which follows those of its outputs, and frees the slot. */
static void command_finish(struct agent *a, struct worker *w)
{
	struct command *c = w->command;
	struct batch *b = w->parts->batch;
	if (w->line.len && !w->skipping[0])
		event_log(a, w->w, c->id, w->line.s, w->line.len);
	if (c->log_fd >= 0)
		fsync(c->log_fd);
	command_watched(a, c, 0);
	close_fd(&c->notify);
	scan_folder(a, c, "", LOOK_OFFER);
	struct job *j = job_add(a, JOB_COMMAND, c->id);
	struct segment *s = &b->seg[w->parts->at[0]];
	j->batch_id = xstrdup(b->id);
	j->dir = xstrdup(c->dir);
	j->try = c->try;
	j->code = c->code;
	j->ms = now_ms(a) - w->began_ms;
	j->outputs = c->output_count;
	j->halted = b->halted = c->halted;
	j->lost = c->code ? 0 : c->torn;
	if (j->code)
		command_explain(w, j);
	else if (c->torn)
		j->name = xasprintf(c->oom_until_ms
					    ? "output %s may not be finished: the kernel killed a "
					      "process for want of memory"
					    : "output %s was still being written when the command "
					      "ended",
				    c->torn_name);
	s->settled = true;
	w->killed_for = NULL;
	close_fd(&w->out);
	command_free(c);
	w->command = NULL;
	w->line.len = 0;
	free(take_parts_of_batch(a, w, b));
	batch_settled(a, b);
}

void command_turn(struct agent *a, struct worker *w)
{
	struct command *c = w->command;
	if (!c->checkpoint.began_ms) {
		if (c->halted)
			kill_child(w->pid);
		return;
	}
	command_watch(a, c);
	bool more = command_read(a, w, 16), late = now_ms(a) >= c->drain_until_ms;
	command_watched(a, c, w->pid);
	if (c->halted && c->ending != ENDING_KILLED && now_ms(a) >= c->halt_until_ms)
		command_kill(a, w);
	/* what was killed may write until it is gone */
	bool over = c->exited && (late || (is_group_gone(c) && (!more || w->out < 0)));
	if (over && checkpoint_settled(a, c))
		command_finish(a, w);
	else if (!more)
		close_fd(&w->out);
}

/* ---- parts for workers, and a watch on them ---- */

enum {
	RESTARTS_MAX = 20,
	IN_ROW_MAX = 5,
	HELLO_SILENCE_MS = 300 * 1000,
	HELLO_MAX_MS = 1800 * 1000,
};

/* Plans a restart, unless the worker has ended too often. */
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
	bool shrinks = w->parts ? oom && count_held_segments(w) > 1 : w->reported_oom;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	worker_close(w);
	struct str *b = worker_event(a, w, "exited");
	js_int(b, "code", code);
	js_text(b, "error", *words ? words : reason);
	event_end(a);
	worker_failed_parts(a, w, reason, words);
	if (w->state == WORKER_FAILED || a->fatal)
		return;
	if (!shrinks)
		w->in_row++;
	CLEANUP(free_text) char *copy = xstrdup(words);
	worker_restart_or_fail(a, w, *copy ? copy : reason);
}

/* SIGKILL does not end the process, so a driver blocks it. Blames the machine, not a segment. */
static void give_up_on_unkillable(struct agent *a, struct worker *w)
{
	if (w->command)
		return command_exited(a, w, SIGKILL);
	worker_requeue(a, w);
	worker_failed(a, w, "it was killed and does not end", NULL);
}

/* Silence after which the worker hangs: ten times the estimate, at least hang_ms. */
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
		give_up_on_unkillable(a, w);
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
		command_kill(a, w);
		worker_kill(a, w, "hang");
	}
}

/* Gives the batch's first part to the worker, which it must fit. */
static void give_part(struct agent *a, struct worker *w, struct batch *b)
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
		struct str *e = batch_event(a, b->id, "started");
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
	return MAX(MIN(w->room, most - (int64_t)count_held_segments(w)), (int64_t)0);
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
static void cut_part(struct batch *b, size_t most)
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
	if (a->fatal || a->leaving)
		return;
	for (int i = 0; i < a->worker_count; i++) {
		struct worker *w = &a->workers[i];
		struct batch *b;
		int64_t room;
		while ((room = worker_room(a, w)) > 0 && (b = next_batch(a, w))) {
			cut_part(b, (size_t)room);
			give_part(a, w, b);
			if (a->command)
				command_start(a, w);
		}
	}
}

/* ---- the end of all work ---- */

/* Ends a worker or command at once; its segments go back to the queue. */
static void worker_stop(struct agent *a, struct worker *w)
{
	kill_child(w->pid);
	worker_close(w);
	if (w->command) {
		remove_in_background(w->command->dir);
		command_free(w->command);
	}
	worker_requeue(a, w);
	str_free(&w->to);
	str_free(&w->line);
	str_free(&w->err_line);
	free(w->hello);
	w->hello = NULL;
}

void stop_workers_only(struct agent *a)
{
	for (int i = 0; i < a->worker_count; i++)
		worker_stop(a, &a->workers[i]);
	free(a->workers);
	a->workers = NULL;
	a->worker_count = 0;
}

bool running_something(const struct agent *a)
{
	if (a->jobs || a->task.kind || a->deferred)
		return true;
	for (int i = 0; i < a->worker_count; i++) {
		enum worker_state s = a->workers[i].state;
		if (s == WORKER_BUSY ||
		    (a->queue && (s == WORKER_LOADING || s == WORKER_RESTARTING)))
			return true;
	}
	return false;
}

void stop_work(struct agent *a)
{
	stop_workers_only(a);
	while (a->queue) {
		struct batch *next = a->queue->next;
		batch_free(a->queue);
		a->queue = next;
	}
	while (a->jobs)
		job_done(a);
	while (a->deferred) {
		struct deferred *next = a->deferred->next;
		free(a->deferred->line);
		free(a->deferred);
		a->deferred = next;
	}
	a->task.cancelled = true;
	kill_child(a->task.pid);
	kill_strays(a);
}
