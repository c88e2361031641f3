/* foreign.h - files of an output folder that no run of burst made and that a run would overwrite.
 */
#ifndef BURST_JOBS_FOREIGN_H
#define BURST_JOBS_FOREIGN_H

#include "manifest.h"

/* ERR_CONFIG that names the first file below dir (which may be absent) that matches a pattern, that
 * an output could overwrite, and that neither the manifest nor `also` (NULL-terminated names in
 * dir; NULL: none) lists. */
int foreign_check(const char *dir, const char *const *patterns, const struct manifest *m,
		  const char *const *also, struct err *err);
/* The same message for a known file; more: how many others there are. Returns -1. */
int foreign_refuse(const char *dir, const char *name, size_t more, struct err *err);

#endif
