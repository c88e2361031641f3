/* advice.h - what a run's figures say about the next one. */
#ifndef BURST_CMD_ADVICE_H
#define BURST_CMD_ADVICE_H

#include <stdbool.h>

#include "base/str.h"
#include "store/store.h"

/* Adds a line for each thing worth changing: less than 70 % of billed time used (the largest cause, and what reaches 70 %), GPUs that
 * had next to nothing to do, or nothing but. Adds nothing where all is well, or nothing was billed. */
void advice_add(struct str *to, const struct pod_row *pods, size_t count, int64_t now_ms);

#endif
