/* salvage.h - reads the event log that a pod left on its volume. */
#ifndef BURST_ENGINE_SALVAGE_H
#define BURST_ENGINE_SALVAGE_H

struct engine;

/* Answered by EV_SALVAGED. */
void salvage_pod(struct engine *e, int pod);

#endif
