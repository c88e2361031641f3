/* impl.h - what the files of this folder share. */
#ifndef BURST_RUNS_IMPL_H
#define BURST_RUNS_IMPL_H

#include "runs.h"

/* Hands a line to runs->watch. */
void runs_note(const struct runs *rs, enum log_level level, const char *fmt, ...) PRINTF(3, 4);

#endif
