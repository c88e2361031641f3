/* phase.h - the phase of a pod, from its row in the ledger. pod_phase_name() has the words. */
#ifndef BURST_CMD_SHOW_PHASE_H
#define BURST_CMD_SHOW_PHASE_H

#include "core/core.h"
#include "store/store.h"

enum pod_phase phase_of_row(const struct pod_row *row);
/* The same as a word; "kept" while the pod waits for a run that can use it. */
const char *phase_word(const struct pod_row *row);

#endif
