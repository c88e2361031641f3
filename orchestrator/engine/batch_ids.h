/* batch_ids.h - what agents call a batch, or a turn of the handover: "LIFE-NUMBER". LIFE tells them
 * from those of an earlier client of the run. */
#ifndef BURST_ENGINE_BATCH_IDS_H
#define BURST_ENGINE_BATCH_IDS_H

#include <stdint.h>

struct engine;

/* The caller frees it. */
char *batch_id(const struct engine *e, uint32_t number);
/* UINT32_MAX: of an earlier client, or no such id. */
uint32_t batch_id_number(const struct engine *e, const char *id);

#endif
