/* prepare.h - prepares a pod step by step. */
#ifndef BURST_ENGINE_PREPARE_H
#define BURST_ENGINE_PREPARE_H

#include <jansson.h>
#include <stdbool.h>

#include "store/store.h"

struct engine;

/* How one pod gets what its workers need. The steps run in their order, and a failure or a lost
 * connection leads back to PREP_NONE. An early start skips them: workers get the order to start
 * before the hello, by what the ledger knows of the volume, and the first refusal leads to
 * PREP_TREES. Only prepare.c writes it. */
struct preparing {
	enum prepare_step {
		PREP_NONE,
		PREP_TREES, /* worker files and code are sent, or wait for the scan of the code */
		PREP_SETUP,
		PREP_INSTALL,
		PREP_START, /* workers got the order to start */
		PREP_DONE   /* one was ready */
	} step;
	bool early;       /* started before the hello, and not refused yet */
	bool shared_part; /* this pod also fills its volume, for all pods */
	bool from_image;  /* the last start used the environment of the image */
	int lacked;       /* how often its volume lacked what the ledger said it has */
	/* under way in PREP_TREES; NULL: not */
	struct upsync *kit_sync, *code_sync;
	/* how long its set-up took, and the bytes sent to it: as in its row */
	int64_t setup_began_ms, setup_ms, synced_bytes;
};

/* Nothing was sent to this pod yet. */
void prepare_new(struct engine *e, int pod);
/* Its workers run already, by its hello. */
void prepare_found(struct engine *e, int pod);
/* Its connection ends: ends what is under way. */
void prepare_drop(struct engine *e, int pod);
/* Begins the steps, or goes on with an early start. shared: also what its volume keeps for all
 * pods. EV_PREPARE_FAILED follows or, from workers.c, EV_WORKERS; neither, before the hello. */
void prepare_pod(struct engine *e, int pod, bool shared);
/* The code folder has been scanned: pods in PREP_TREES go on. */
void prepare_tree_ready(struct engine *e);
/* The agent is in place and has not sent hello yet: starts workers if by the ledger nothing is
 * missing. */
void prepare_early(struct engine *e, int pod);
/* Of a pod of an earlier client: what its row has. */
void prepare_adopt(struct engine *e, int pod, const struct pod_row *row);
/* An event of its agent. Returns false if it is not about preparing. An answer counts only in the
 * step that waits for it. */
bool prepare_event(struct engine *e, int pod, const char *what, const json_t *event);

#endif
