/* checkpoint.h - keeps what commands save in $BURST_CHECKPOINT, for their next attempts.
 *
 * The agent takes a snapshot of the folder (jobs/agent/CONTROL.md, "checkpoint"). It is safe once
 * the pod's volume has it for good, or this machine. The newest safe one of each segment is noted
 * in the ledger, and given to the segment's next attempt: by its path on the same volume, else sent
 * from here. If that fails for good, the command begins anew, and what it saves replaces the older
 * snapshot only once it holds as much computing time. */
#ifndef BURST_ENGINE_CHECKPOINT_H
#define BURST_ENGINE_CHECKPOINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct checkpoints;
struct sending;
struct timer;
struct upsync;

/* A snapshot on its way to one pod, before its batch. Only checkpoint.c writes it. */
struct bringing {
	unsigned
		turn; /* of the newest; what ends with an older one is ignored. 0: there was none */
	uint32_t segment, batch;
	void (*send)(struct engine *e, int pod, uint32_t batch); /* NULL: nothing is on its way */
	struct upsync *sync;
	struct timer *again;  /* before the next try; NULL: none */
	int tries;            /* that failed */
	struct sending *what; /* NULL: nothing is being sent */
	char here[65];        /* the tree that this pod has on its volume; "": none */
};

/* Reads what an earlier client of this run noted. After work_read(). */
void checkpoints_read(struct engine *e);
void checkpoints_free(struct engine *e);

/* Adds how often snapshots are taken to the order that starts a pod's commands. */
void checkpoint_how(struct engine *e, int pod, json_t *start);
/* Sends the batch by send(): now, or when the pod has the snapshot that its command continues from.
 * Not at all if the connection ends first: the core then orders it again. */
void checkpoint_send(struct engine *e, int pod, uint32_t batch,
		     void (*send)(struct engine *e, int pod, uint32_t batch));
/* Adds the snapshot to a command's task; false: there is none. */
bool checkpoint_task(struct engine *e, int pod, uint32_t segment, json_t *task);

/* What the agent reports of snapshots. replayed: read from the pod's log on its volume. Returns
 * false if no agent of ours reports that. */
bool checkpoint_event(struct engine *e, int pod, const json_t *event, bool replayed);
/* The pod's files can be fetched: fetches the snapshots that a lost connection cut off. */
void checkpoint_connected(struct engine *e, int pod);
void checkpoint_drop(struct engine *e, int pod); /* its connection ends */
/* Its command has succeeded: a snapshot on its way here is not waited for. */
void checkpoint_finished(struct engine *e, uint32_t segment);
/* The segment's files have their names: its snapshot is not needed any more. */
void checkpoint_done(struct engine *e, uint32_t segment);

#endif
