/* stop.c - stops all work. */
#include "stop.h"

#include <stdlib.h>

#include "base/str.h"
#include "command.h"
#include "held.h"
#include "process.h"
#include "queue.h"
#include "strays.h"
#include "todo.h"
#include "worker.h"

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
		    (a->queue && !a->draining && (s == WORKER_LOADING || s == WORKER_RESTARTING)))
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
