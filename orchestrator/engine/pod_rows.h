/* pod_rows.h - converts between a pod of the core and its row in the ledger. */
#ifndef BURST_ENGINE_POD_ROWS_H
#define BURST_ENGINE_POD_ROWS_H

#include "core/core.h"
#include "store/store.h"

struct engine;

/* A time of the boot clock, converted from the wall clock; 0 stays 0. */
int64_t pod_rows_wall_ms(int64_t boot_ms);

/* A pod of an earlier client, from its row; out->provider is -1 if this run does not know its
 * provider. */
void core_pod_of_row(const struct engine *e, const struct pod_row *row, struct core_pod *out);

/* The ledger's row of one of the core's pods. */
struct pod_row engine_pod_row(const struct engine *e, int pod);

#endif
