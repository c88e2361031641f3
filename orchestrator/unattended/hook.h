/* hook.h - a job in a repository: its hooks there, and what became of their triggers. */
#ifndef BURST_UNATTENDED_HOOK_H
#define BURST_UNATTENDED_HOOK_H

#include <jansson.h>

#include "git.h"
#include "hook_file.h"
#include "store/store.h"

enum { HOOK_FILE_MAX_BYTES = 1 << 20 };

/* A job's burst.cfg, and its repository. */
struct hook_target {
	struct git_place place;
	char *config;   /* below the working tree's top */
	char *path;     /* real; need not be there */
	bool made_tree; /* the working tree is one that --into has made */
};
void hook_target_free(struct hook_target *t);

/* ---- what is in a hooks folder (hook_install.c) ---- */

enum hook_state {
	HOOK_NONE,    /* no such hook */
	HOOK_FOREIGN, /* another program's hook, which git runs */
	HOOK_INERT,   /* another program's hook, which git does not run: it is not executable */
	HOOK_OURS,
};
/* The hook NAME of this folder; a file of ours is read into *out. */
int hook_read_state(const char *folder, const char *name, enum hook_state *state,
		    struct hook_file *out, struct str *text, struct err *err);
int hook_install(const struct hook_target *t, const char *name, const struct hook_job *job,
		 struct err *err);
/* config NULL: all jobs of the repository. 1: something was removed, 0: there was nothing. Sets
 * t->made_tree by what the hook knew. */
int hook_remove(struct hook_target *t, const char *name, const char *config, struct err *err);

/* ---- what became of triggers (hook_record.c) ---- */

/* Of the job of this burst.cfg (a real path). NULL: no trigger yet. {"base", "owed", "at_ms",
 * "hook", "commit", "branch", "outcome", "why", "request"}; new reference. */
json_t *hook_recorded(struct store *store, const char *path);
int hook_record(struct store *store, const char *path, const json_t *record, struct err *err);

static inline void hook_target_free_cleanup(struct hook_target *t)
{
	hook_target_free(t);
}

#endif
