/* trust.h - where burst's own files are, and which paths a project's file may name */
#ifndef BURST_CONFIG_TRUST_H
#define BURST_CONFIG_TRUST_H

#include <stdbool.h>

#include "base/err.h"
#include "base/section.h"
#include "provider.h"

/* ---- real path ----
 * Finds where a path leads, also if what it names is missing. */

/* The path with links followed, or the one that it will have once missing folders are made. The
 * caller frees it. */
char *real_path(const char *path);
/* Normalizes "/a/./b//../c" to "/a/c". The caller frees it. */
char *real_path_plain(const char *path);
/* Moves a path below `from` to the same name below `to` (both real); else copies it. The caller
 * frees it. */
char *real_path_move(const char *path, const char *from, const char *to);

/* ---- places ----
 * Finds the folder of burst's state. */

/* The folder of burst's state, absolute; it may be missing. NULL: no home, or BURST_STATE_DIR is
 * relative. The caller frees it. */
char *places_state(void);

/* ---- trust ----
 * Decides which paths a project's file may name. The file comes with a cloned repository. What it
 * makes burst read is sent to pods, and what it makes burst write stays on this machine, so
 * neither may be a place for the user's own things. */

struct trust {
	const char *project; /* real path of the config's folder */
	/* real paths of further folders that the user allows; NULL-terminated; or NULL */
	const char *const *allowed;
	/* A path below copy is judged by the same name below top, since a commit's files are the
	 * project's. Real paths; NULL: none. */
	const char *top, *copy;
};

/* Checks that the project's file may name this path. key: its name in messages, "job.output". path:
 * absolute. written: burst writes to it. ERR_CONFIG, without file and line, unless the path leads
 * into the project or into an allowed folder. Refused even there:
 * - files with the user's keys (~/.ssh, ~/.netrc, the vendors' own), burst's config and state;
 * - hidden files of the home folder, below the allowed folder or a project that holds the home
 *   folder;
 * - system folders and other users' homes, in a project that lies above them;
 * - git's own folder, unless burst only reads it and the user allows that very folder. */
int trust_path(const struct trust *t, const char *key, const char *path, bool written,
	       struct err *err);
/* Checks that the user may allow this folder. ERR_CONFIG, without file and line, if its path is
 * relative, if it contains the home folder, or if it leads through a link of this project to a
 * folder outside. */
int trust_check_allowed(const char *folder, const char *project, struct err *err);
/* Calls keep() for each place that must never be synced: files with the user's keys, burst's config
 * and state. */
void trust_keep_back(void (*keep)(const char *path));

/* Whether a real path is the folder or lies below it, even by another name (a bind mount, another
 * case). */
bool trust_is_below(const char *real, const char *folder);
/* The project of a config in this folder (a real path): the repository that holds it, else the
 * folder. The caller frees it. */
char *trust_root(const char *project);

/* ERR_CONFIG if this list of variables for pods names a key of one of these providers (NULL-
 * terminated). */
int trust_check_env(const char *path, const struct section *s, const char *key,
		    const struct provider_ops *const *providers, struct err *err);

#endif
