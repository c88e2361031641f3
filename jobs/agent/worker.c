/* worker.c - starts workers and ends them. */
#include "worker.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "bounds.h"
#include "env.h"
#include "events.h"
#include "files.h"
#include "json.h"
#include "process.h"
#include "users.h"

static void worker_event(struct agent *a, struct worker *w, const char *state, const char *error,
			 const char *unfit)
{
	struct str *b = event_begin(a, "worker");
	js_int(b, "w", w->w);
	js_text(b, "state", state);
	if (error)
		js_text(b, "error", error);
	if (unfit)
		js_text(b, "unfit", unfit);
	event_end(a);
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
	worker_event(a, w, "failed", error, unfit);
	if (all_workers_failed(a))
		fatal(a, "no worker can be kept running: %s", error);
}

void worker_start(struct agent *a, struct worker *w)
{
	int in = -1, out = -1, err = -1;
	struct env env = env_copy(&a->place.env);
	worker_env(a, &env, w->w);
	char *work = xasprintf("%s/work/worker%d", a->disk, w->w);
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
	free(work);
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
