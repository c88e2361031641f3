/* outlook.h - what plans say of a queue, for its runner: its work, whose pods it may share, and why
 * it waits. */
#ifndef BURST_CMD_UNATTENDED_OUTLOOK_H
#define BURST_CMD_UNATTENDED_OUTLOOK_H

#include <jansson.h>

#include "base/err.h"
#include "plan/when.h"
#include "store/store.h"

struct outlook {
	struct when_work work;
	char pool[96];   /* what its pods must be good for, by the joint plan; "": unknown */
	char pod_of[80]; /* whose pods it takes over, in words */
	/* when it was planned: pods that runs offered; requests of other queues, and runs */
	int offered;
	size_t others;
	char noted_pod[160]; /* FACT_QUEUE_POD, as last written */
};

/* What `burst plan` says of the open segments: their number, time and price; -1: unknown. */
struct when_work outlook_planned(const json_t *said);
/* Takes from `burst queue plan` whether the queue waits for pods of others, else by when its group
 * must start and how much work that has. */
void outlook_read_joint(struct outlook *o, const char *config, const json_t *said);

/* Notes what a plan depends on, to tell later whether that has changed. */
void outlook_count(struct outlook *o, struct store *store, const char *config);
bool outlook_has_changed(const struct outlook *o, struct store *store, const char *config);

/* Whether a pod is on offer that the queue waits for. It is so for some seconds. */
bool outlook_has_pod(const struct outlook *o, struct store *store);
/* The queue waits no longer: its run takes the pod over, without a cold start. */
void outlook_take_pod(struct outlook *o);
/* Tells the runs that have pods whether the queue waits for one: they offer it for some seconds. */
int outlook_note_pod(struct outlook *o, struct store *store, const char *config,
		     const struct when_answer *a, struct err *err);

/* Writes in words why the queue waits. */
void outlook_explain(const struct outlook *o, const struct when_answer *a, char *to, size_t room);

#endif
