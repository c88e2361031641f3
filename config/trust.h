/* trust.h - what a project's file may name. It comes with a cloned repository: what it has read travels to pods, and what it
 * has written lies on this machine, so neither may be where only its user's own things are. */
#ifndef BURST_CONFIG_TRUST_H
#define BURST_CONFIG_TRUST_H

#include <stdbool.h>

#include "base/err.h"
#include "base/section.h"
#include "provider.h"

struct trust {
	const char *project;	    /* real path of the config's folder */
	const char *const *allowed; /* real paths of the folders that the user allows beside it; NULL-terminated; or NULL */
};

/* key: as messages call it, "job.output"; path: absolute; written: it is written to.
 *
 * ERR_CONFIG, without a place in front, but where the path leads into the project, or into a folder that the user allows, and there
 * into nothing that is hidden in the home folder. The system's folders and other people's homes are part of no project that lies
 * above them. Whatever is allowed: no key of the user's (~/.ssh, ~/.netrc, the vendors' own files), burst's config or state, nor, to
 * be written to, git's own folder. */
int trust_path(const struct trust *t, const char *key, const char *path, bool written, struct err *err);
/* May the user allow that folder to projects? ERR_CONFIG, without a place in front: no absolute path, one that has the home folder in
 * it, or a link by which this project leads elsewhere. */
int trust_check_allowed(const char *folder, const char *project, struct err *err);
/* Where the path really is, links followed; of what is not there yet, where it would be made. To be freed. */
char *trust_real(const char *path);
/* Tells what never travels, wherever it lies in a tree that is synced: keys of the user's, burst's config and state. */
void trust_keep_back(void (*keep)(const char *path));

/* Whether a real path is the folder or lies below it, however either is written (links, bind mounts, case). */
bool trust_is_below(const char *real, const char *folder);
/* The folder that counts as the project of a config in this folder (a real path): that of the repository it lies in, else the
 * folder itself. To be freed. */
char *trust_root(const char *project);

/* ERR_CONFIG when this list of variables that travel to pods names a key of one of these providers (NULL-terminated). */
int trust_env(const char *path, const struct section *s, const char *key, const struct provider_ops *const *providers,
	      struct err *err);

#endif
