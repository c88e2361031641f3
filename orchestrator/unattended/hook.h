/* hook.h - the git hooks of a job in a repository, and the result of the last trigger. */
#ifndef BURST_UNATTENDED_HOOK_H
#define BURST_UNATTENDED_HOOK_H

#include <jansson.h>

#include "base/git.h"
#include "base/str.h"
#include "store/store.h"

/* ---- the text of a hook: a shell script whose lines "# job {...}" are its settings. One file
 * serves all jobs of a repository, or of several repositories that share a hooks folder
 * (core.hooksPath). ---- */

/* Suffix of an earlier hook, which burst's hook runs first. */
#define HOOK_BEFORE ".before-burst"
enum { HOOK_FILE_MAX_BYTES = 1 << 20 };

struct hook_job {
	char *repository; /* real path of git's common folder */
	char *config;     /* path below the top of the working tree */
	/* of a bare repository: the working tree for outputs; NULL: the one that the hook runs in
	 */
	char *into;
	char *made_tree; /* "yes": `burst hook install` made that working tree; NULL: it did not */
	char *branch;    /* comma-separated patterns; NULL: every branch */
	/* comma-separated paths that trigger, in git's form; NULL: what the job reads */
	char *path;
	char *quiet, *min_segments, *max_wait; /* options of burst submit; NULL: not given */
};

struct hook_file {
	struct hook_job *jobs;
	size_t count, cap;
};

/* The hooks that burst can write. NULL-terminated. */
extern const char *const hook_names[];
/* Whether git passes lines to this hook on stdin. */
bool hook_has_lines(const char *name);

/* ERR_CONFIG: a user has edited a line of settings. */
int hook_file_parse(struct hook_file *out, const char *text, struct err *err);
/* program: absolute path of burst. ERR_CONFIG: a path is not UTF-8. */
int hook_file_write(struct str *to, const struct hook_file *f, const char *name,
		    const char *program, struct err *err);
/* Returns NULL if there is no such job. */
struct hook_job *hook_file_find(const struct hook_file *f, const char *repository,
				const char *config);
void hook_file_free(struct hook_file *f);

static inline void hook_file_free_cleanup(struct hook_file *f)
{
	hook_file_free(f);
}

/* ---- a job and its repository ---- */

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

/* ---- the hooks of a folder ---- */

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

/* ---- the last trigger ---- */

/* The last trigger of the job of this burst.cfg (a real path), or NULL. {"base", "owed", "at_ms",
 * "hook", "commit", "branch", "outcome", "why", "request"}; new reference. */
json_t *hook_recorded(struct store *store, const char *path);
int hook_record(struct store *store, const char *path, const json_t *record, struct err *err);

static inline void hook_target_free_cleanup(struct hook_target *t)
{
	hook_target_free(t);
}

#endif
