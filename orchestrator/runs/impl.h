/* impl.h - shared by the files of this folder. */
#ifndef BURST_RUNS_IMPL_H
#define BURST_RUNS_IMPL_H

#include "runs.h"

/* Passes a line to runs->watch. */
void runs_note(const struct runs *rs, enum log_level level, const char *fmt, ...) PRINTF(3, 4);

#endif
