/* foreign.h - finds files in an output folder that burst did not make and a run would overwrite. */
#ifndef BURST_JOBS_FOREIGN_H
#define BURST_JOBS_FOREIGN_H

#include "manifest.h"

/* ERR_CONFIG names the first foreign file below dir: it matches a pattern, an output could
 * overwrite it, and neither the manifest nor `also` (NULL-terminated names in dir; NULL: none)
 * lists it. dir may be missing. */
int foreign_check(const char *dir, const char *const *patterns, const struct manifest *m,
		  const char *const *also, struct err *err);
/* Sets that error for the foreign file `name`; more: number of other such files. Returns -1. */
int foreign_refuse(const char *dir, const char *name, size_t more, struct err *err);

#endif
