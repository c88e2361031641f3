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
bool hook_reads_stdin(const char *name);

/* Reads the settings of a hook of burst. Free *out with hook_file_free(). ERR_CONFIG: a user has
 * edited a line of settings. */
int hook_file_parse(struct hook_file *out, const char *text, struct err *err);
/* Appends the hook's script with these settings. program: absolute path of burst. ERR_CONFIG: a
 * text of the settings is not UTF-8. */
int hook_file_write(struct str *to, const struct hook_file *f, const char *name,
		    const char *program, struct err *err);
/* Returns the settings of this job, borrowed; NULL: the hook is not for it. */
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
/* Finds the state of the hook `name` in this folder. Of a hook of burst, reads the settings into
 * *out (free it with hook_file_free() in any case); of any hook, its file into text. */
int hook_read_state(const char *folder, const char *name, enum hook_state *state,
		    struct hook_file *out, struct str *text, struct err *err);
/* Adds the job to the hook, or replaces its settings there. An earlier hook is kept under
 * HOOK_BEFORE, and runs first. ERR_CONFIG: an existing file must be dealt with by the user. */
int hook_install(const struct hook_target *t, const char *name, const struct hook_job *job,
		 struct err *err);
/* Removes a job from a hook; config NULL: all jobs of the repository. With the last job, puts the
 * earlier hook back. Returns 1 if it removed a job, else 0. Sets t->made_tree from its settings. */
int hook_remove(struct hook_target *t, const char *name, const char *config, struct err *err);

/* ---- the last trigger ---- */

/* The last trigger of the job of this burst.cfg (a real path), or NULL. {"base", "owed", "at_ms",
 * "hook", "commit", "branch", "outcome", "why", "request"}; new reference. */
json_t *hook_last_trigger(struct store *store, const char *path);
int hook_record_trigger(struct store *store, const char *path, const json_t *record,
			struct err *err);

static inline void hook_target_free_cleanup(struct hook_target *t)
{
	hook_target_free(t);
}

#endif
