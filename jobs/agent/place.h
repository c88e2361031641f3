/* place.h - where this pod keeps its files, and how its volume is made durable. */
#ifndef BURST_JOBS_AGENT_PLACE_H
#define BURST_JOBS_AGENT_PLACE_H

#include "env.h"

struct place {
	const char *home;   /* on the container's disk */
	const char *volume; /* outlives the pod */
	struct env env;     /* the pod's own environment */
};

void place_load(struct place *place);
void place_free(struct place *place);
char *on_volume(const struct place *place, const char *path);

/* Makes the volume's contents durable. Also runs the program of BURST_SYNC_CMD, which some
 * providers' volumes need. Returns -1 with errno set. */
int volume_flush(const struct place *place);

#endif
