/* quiet.h - when a pod that is connected says nothing for so long that it is stuck, or pretends to
 * work. The caller counts in ticks of a second, so that a machine that slept, or was busy, gives a
 * pod the same chance again. */
#ifndef BURST_ENGINE_QUIET_H
#define BURST_ENGINE_QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quiet_task {
	QUIET_NONE,  /* nothing is asked of it whose time is known */
	QUIET_SETUP, /* its agent ends them after a time that we gave */
	QUIET_INSTALL,
	QUIET_START, /* its agent restarts a worker that is silent for 300 s before its hello */
	QUIET_BATCH, /* its agent restarts one that is silent for as long as a hang is */
};

struct quiet {
	bool answer_due; /* a renewal of its lease was sent, which is answered at once */
	int unanswered_s;
	int unheard_s;   /* no word of its work, its workers' lines included */
	int fruitless_s; /* nothing that brought the work further */
	enum quiet_task task;
	int task_s;
	int64_t est_ms; /* of the longest batch that it was sent */
};

struct quiet_now {
	enum quiet_task task;
	int64_t hang_ms; /* of the job */
	int64_t lease_ms;
	bool loading; /* a worker of it is, or is about to be started again */
};

enum { QUIET_SETUP_S = 1800, QUIET_INSTALL_S = 900 }; /* what the agent is told */

/* An event of its agent. fruitful: of its work, and not one that says what was known. */
void quiet_heard(struct quiet *q, const char *what, bool fruitful);
/* A batch was sent; alone: it has no other one. */
void quiet_sent(struct quiet *q, int64_t est_ms, bool alone);
/* Once a second. False: it is stuck, and `why` says how. */
bool quiet_tick(struct quiet *q, const struct quiet_now *now, char *why, size_t room);

#endif
