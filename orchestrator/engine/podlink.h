/* podlink.h - makes, watches and ends the connection to one agent. */
#ifndef BURST_ENGINE_PODLINK_H
#define BURST_ENGINE_PODLINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"

struct engine;
struct fetcher;
struct link;

/* The connection to one pod's agent. A lost one leads back to PODLINK_NONE; the core decides
 * whether another is made. Only podlink.c writes it. */
struct podlink {
	enum podlink_state {
		PODLINK_NONE,
		PODLINK_CONNECTING,  /* there is a link; no hello yet */
		PODLINK_CATCHING_UP, /* hello came; events of the time without a client come first
				      */
		PODLINK_UP           /* the core knows */
	} state;
	struct link *link; /* NULL: PODLINK_NONE */
	/* of a pod whose release has no answer yet: orders its agent to end it */
	struct link *spare;
	struct fetcher *fetcher; /* from the hello on */
	/* of the hello, while catching up */
	struct event greeting; /* EV_CONNECTED */
	int64_t caught_up_at;  /* the number of the last event before the hello */
	int64_t running_t;
	json_t *running;   /* ids of the segments that its workers hold */
	bool zstd;         /* the pod can unpack it */
	bool clock_logged; /* how far its clock is off, once */
};

/* Closes the connection that there is and makes another one. EV_CONNECTED or EV_CONNECT_FAILED
 * follows; neither, if another run has taken the pod (handed.h). */
void podlink_connect(struct engine *e, int pod);
/* Ends the connection. If the core waits for the answer to the pod's release, it is kept as `spare`
 * instead; if the pod is gone, its keys are removed. */
void podlink_close(struct engine *e, int pod);
/* For a pod whose provider refuses its release. Tells its agent to end the pod, over the present
 * connection or else (unless standing_only) a new one. */
void podlink_finish(struct engine *e, int pod, bool standing_only);
/* Once a second, while the job has work: ends the connection of pods that fell silent. */
void podlink_watch(struct engine *e);
/* By how many ms the pod's clock differs from ours at wall_ms, negative: behind; from its hello, 0
 * if that does not report it. */
int64_t podlink_clock_off(const json_t *hello, int64_t wall_ms);

#endif
