/* quiet.h - decides when a connected pod is stuck: it has been silent for too long, or only
 * pretends to work. The caller counts in ticks of a second, so that a pod is not blamed for the
 * time in which this machine slept or was busy. */
#ifndef BURST_ENGINE_QUIET_H
#define BURST_ENGINE_QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quiet_task {
	QUIET_NONE,  /* it has no task with a known time */
	QUIET_SETUP, /* its agent ends them after a time that we gave */
	QUIET_INSTALL,
	QUIET_START, /* its agent restarts a worker that is silent for 300 s before its hello */
	QUIET_BATCH, /* its agent restarts a worker that is silent for the time of a hang */
};

/* Of one pod. The seconds begin anew with each hello. Only quiet.c writes it. */
struct quiet {
	bool answer_due; /* a renewal of its lease was sent, which the agent answers at once */
	int unanswered_s;
	int unheard_s;   /* without a report of its work, its workers' lines included */
	int fruitless_s; /* without an event that advanced the work */
	enum quiet_task task;
	int task_s;
	int64_t est_ms; /* of the longest batch that it was sent */
};

struct quiet_now {
	enum quiet_task task;
	int64_t hang_ms; /* of the job */
	int64_t lease_ms;
	bool loading; /* a worker of it is about to be started, or started again */
};

enum { QUIET_SETUP_S = 1800, QUIET_INSTALL_S = 900 }; /* limits that the agent gets */

/* Its hello came: counts from here on. What it was sent before stays known. */
void quiet_hello(struct quiet *q);
/* At its hello it held a batch already. Of several, the estimates add up. */
void quiet_found(struct quiet *q, int64_t est_ms);
/* It was sent a line that its agent answers at once. */
void quiet_asked(struct quiet *q);
/* An event of its agent. fruitful: it reports new work. */
void quiet_event(struct quiet *q, const char *what, bool fruitful);
/* A batch was sent; alone: it has no other one. */
void quiet_sent(struct quiet *q, int64_t est_ms, bool alone);
/* Call it once a second. False: the pod is stuck, and `why` gets the reason. */
bool quiet_tick(struct quiet *q, const struct quiet_now *now, char *why, size_t room);

#endif
