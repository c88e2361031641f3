/* foreign.h - files of an output folder that would be written over and that no run of burst has
 * made. */
#ifndef BURST_JOBS_FOREIGN_H
#define BURST_JOBS_FOREIGN_H

#include "manifest.h"

/* ERR_CONFIG that names the first file below dir that a pattern matches (dir may be absent), an
 * output may be called, and that is neither in the manifest as it is there nor among `also`
 * (NULL-terminated names in dir; NULL: none). */
int foreign_check(const char *dir, const char *const *patterns, const struct manifest *m,
		  const char *const *also, struct err *err);
/* The same words for one that is known; more: how many others there are. Returns -1. */
int foreign_refuse(const char *dir, const char *name, size_t more, struct err *err);

#endif
