/* trust.h - what a project's file may name. It comes with a cloned repository: what it has read travels to pods, and what it
 * has written lies on this machine, so neither may be where only its user's own things are. */
#ifndef BURST_CONFIG_TRUST_H
#define BURST_CONFIG_TRUST_H

#include <stdbool.h>

#include "base/err.h"
#include "base/section.h"
#include "provider.h"

/* key: as messages call it, "job.output"; path: absolute; written: it is written to; project: real path of the file's folder.
 * Inside the project (its folder, or the repository's that it lies in) all is fine but what is hidden in the home folder and,
 * to write to, git's own folder. Elsewhere ERR_CONFIG, without a place in front, for the disk, the home folder and what holds
 * it, and the system's folders; any other path is told (a note). */
int trust_path(const char *key, const char *path, bool written, const char *project, const char *where, struct err *err);

/* Whether a real path is the folder or lies below it, however either is written (links, bind mounts, case). */
bool trust_is_below(const char *real, const char *folder);
/* The folder that counts as the project of a config in this folder (a real path): that of the repository it lies in, else the
 * folder itself. To be freed. */
char *trust_root(const char *project);

/* ERR_CONFIG when this list of variables that travel to pods names a key of one of these providers (NULL-terminated). */
int trust_env(const char *path, const struct section *s, const char *key, const struct provider_ops *const *providers,
	      struct err *err);

#endif
