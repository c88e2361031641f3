/* hook.h - the git hooks of a job in a repository, and the results of their triggers. */
#ifndef BURST_UNATTENDED_HOOK_H
#define BURST_UNATTENDED_HOOK_H

#include <jansson.h>

#include "base/git.h"
#include "hook_file.h"
#include "store/store.h"

enum { HOOK_FILE_MAX_BYTES = 1 << 20 };

/* A job's burst.cfg and its repository. */
struct hook_target {
	struct repo place;
	char *hooks;    /* real path of the folder of hooks; may be missing */
	char *config;   /* path below the working tree's top */
	char *path;     /* real path; the file may be missing */
	bool made_tree; /* --into made the working tree */
};
void hook_target_free(struct hook_target *t);
/* Sets t->hooks. ERR_CONFIG: the repository's own config leads out of it. */
int hook_find_folder(struct hook_target *t, struct err *err);

/* ---- the hooks of a folder (hook_install.c) ---- */

enum hook_state {
	HOOK_NONE,    /* there is no such hook */
	HOOK_FOREIGN, /* another program's hook that git runs */
	HOOK_INERT,   /* another program's hook that git does not run, since it is not executable */
	HOOK_OURS,
};
/* Finds the state of hook NAME of this folder. Reads one of burst's into *out. */
int hook_read_state(const char *folder, const char *name, enum hook_state *state,
		    struct hook_file *out, struct str *text, struct err *err);
int hook_install(const struct hook_target *t, const char *name, const struct hook_job *job,
		 struct err *err);
/* Removes a job from a hook; config NULL: all jobs of the repository. Returns 1 if something was
 * removed, else 0. Sets t->made_tree from the hook's settings. */
int hook_remove(struct hook_target *t, const char *name, const char *config, struct err *err);

/* ---- results of triggers (hook_record.c) ---- */

/* The last trigger of the job of this burst.cfg (a real path), or NULL. {"base", "owed", "at_ms",
 * "hook", "commit", "branch", "outcome", "why", "request"}; new reference. */
json_t *hook_recorded(struct store *store, const char *path);
int hook_record(struct store *store, const char *path, const json_t *record, struct err *err);

static inline void hook_target_free_cleanup(struct hook_target *t)
{
	hook_target_free(t);
}

#endif
