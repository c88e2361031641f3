/* tick.c - the checks of `serve` that run ten times a second. */
#include "tick.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "bounds.h"
#include "checkpoint.h"
#include "command.h"
#include "deal.h"
#include "events.h"
#include "gpu.h"
#include "hello.h"
#include "json.h"
#include "lease.h"
#include "process.h"
#include "setup.h"
#include "stop.h"
#include "sync.h"

enum {
	RENEW_EVERY_MS = 5 * 1000,
	LEAVING_MS = 30 * 1000, /* a container that still runs then was not ended */
	LEAVE_S = 10,           /* before the lease is over; a quarter of a short one */
	LEAVE_GRACE_MS = 2000,  /* a spot pod may have 5 s in all */
};

void report_idle(struct agent *a)
{
	if (running_something(a))
		return;
	if (!a->queue && !a->idle) {
		a->idle = true;
		event_begin(a, "idle");
		event_end(a);
		events_sync(a);
	}
	if (a->draining && !a->drained) {
		a->drained = true;
		event_begin(a, "drained");
		event_end(a);
		events_sync(a);
	}
}

/* Without a client, renews the lease while work is running, and ends the pod once all work is done
 * and durable. */
static void renew_own_lease(struct agent *a)
{
	bool running = running_something(a);
	if (!a->detached || a->over)
		return;
	if (running && now_ms(a) - a->renewed_ms > RENEW_EVERY_MS)
		lease_renew(a, a->lease_s);
	if (running || a->queue)
		return;
	if (sync_alone(a))
		end_pod(a, "all work is done");
}

static void check_own_switch(struct agent *a)
{
	char line[sizeof(a->switch_line)];
	struct client *c = attached_client(a);
	if (!c || c->hello_due)
		return;
	read_switch(a, line, sizeof(line));
	if (!strcmp(line, a->switch_line))
		return;
	memcpy(a->switch_line, line, sizeof(line));
	js_text(notice_begin(a, "switch"), "switch", line);
	notice_end(a);
}

/* The task that has run longest. */
static const char *doing(const struct agent *a)
{
	bool loading = false, busy = false;
	for (int i = 0; i < a->worker_count; i++) {
		loading = loading || a->workers[i].state == WORKER_LOADING ||
			  a->workers[i].state == WORKER_RESTARTING;
		busy = busy || a->workers[i].state == WORKER_BUSY;
	}
	return a->task.keeping ? "keep"
	       : a->task.kind  ? a->task.kind
	       : busy          ? "batch"
	       : a->jobs       ? "files"
	       : loading       ? "load"
	       : a->sync_pid   ? "sync"
			       : "wait";
}

/* Sends the client a sign of life during long tasks: a client without news may release the pod. */
static void report_alive(struct agent *a)
{
	struct client *c = attached_client(a);
	if (!c || c->hello_due || now_ms(a) - a->alive_ms < ALIVE_MS)
		return;
	a->alive_ms = now_ms(a);
	js_text(notice_begin(a, "alive"), "doing", doing(a));
	notice_end(a);
}

/* Its start script was told that the container ends: a spot pod is taken back, for example. */
static bool machine_ends(struct agent *a)
{
	char *file = xasprintf("%s/leaving", a->place.home);
	if (unlink(file) == 0)
		a->left_ms = now_ms(a);
	free(file);
	return a->left_ms && now_ms(a) - a->left_ms < LEAVING_MS;
}

/* The last moment for what a command has finished to reach the volume. */
static void leave_in_time(struct agent *a)
{
	int64_t last_s = MIN((int64_t)LEAVE_S, a->lease_asked_s / 4);
	bool leaving = machine_ends(a) || (!a->over && lease_left_s(a) <= last_s);
	if (leaving && !a->leaving)
		commands_halt(a, LEAVE_GRACE_MS);
	a->leaving = leaving;
	if (!leaving)
		a->left = false;
	if (!leaving || a->left || a->jobs || command_is_halting(a) || a->sync_pid)
		return;
	a->left = true;
	sync_start(a, 0);
}

void tick(struct agent *a)
{
	int64_t now = now_ms(a);
	if (now - a->ticked_ms < 100)
		return;
	a->ticked_ms = now;
	for (int i = 0; i < a->worker_count; i++)
		worker_check_hang(a, &a->workers[i]);
	if (a->task.kind && now > a->task.until_ms) {
		a->task.timed_out = true;
		kill_child(a->task.pid);
	}
	if (a->task.kind && now > a->task.until_ms + a->kill_wait_ms)
		task_exited(a, SIGKILL);
	if (a->gpu_pid && now > a->gpu_until_ms)
		kill_child(a->gpu_pid);
	usage_follow_workers(a);
	checkpoint_tick(a);
	check_own_switch(a);
	leave_in_time(a);
	report_alive(a);
	renew_own_lease(a);
	/* exit if the start script fails to end the agent with the pod */
	if (lease_left_s(a) < -60 || (a->over && now - a->over_ms > 30000))
		a->quit = true;
}
