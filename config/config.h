/* config.h - burst.cfg as all commands read it: the user's file, then the project's, then the
 * environment and the flags, each over the one before, checked against the key tables of
 * config/config_keys.c, of the providers and of the job types.
 *
 * A mistake is ERR_CONFIG, one line: file:line, the key, what is wrong, what would be right. A
 * project's file comes with a cloned repository and is not trusted, wherever it lies: keys marked
 * OPTION_USER_ONLY are refused there. It may be no link out of the project, lie in no folder of
 * burst's own, and belong to no other user but root. */
#ifndef BURST_CONFIG_H
#define BURST_CONFIG_H

#include "base/err.h"
#include "base/mistakes.h"
#include "base/section.h"
#include "job.h"
#include "provider.h"

struct config;

/* The files of a commit, which replace those of the working tree. The project's file and its job
 * read below `copy` and write below `top`. Both are real paths and hold the same names. */
struct config_tree {
	const char *top, *copy;
};

struct config_source {
	const char *file; /* the project's file; NULL: ./burst.cfg if there is one */
	/* NULL: the working tree. With a tree, `file` need not exist in the working tree. It must
	 * outlive the config */
	const struct config_tree *tree;
	/* The text itself, made from the command line: no file is read, and the user chose the
	 * paths in it. `file`, an absolute path, says where it would stand. */
	const char *text;
	bool need_job; /* a config without a `job` group is an error */
	/* Do not read the project's file, since reap must work beside a broken one. Mistakes of the
	 * user's file outside the groups of known providers are warnings: pods must be released. */
	bool user_only;
	/* Collects every mistake of the files: config_open() continues after one, and
	 * config_check() fails. It must outlive the config. NULL: the first mistake ends the
	 * reading. */
	struct mistakes *mistakes;
	const struct provider_ops *const *providers; /* NULL-terminated */
	const struct job_ops *const *jobs;           /* NULL-terminated */
};

/* The registries must outlive the config. */
int config_open(struct config **out, const struct config_source *ask, struct err *err);
void config_free(struct config *c);

/* Sets a value from the command line over those of the files. key is a path as in "caps.max_cost";
 * text is in the form of a command line (lists with commas, relative paths from the current
 * folder); flag ("--max-cost") is for messages. ERR_USAGE. A key of config_adds() adds to the value
 * of the user's file. */
int config_override(struct config *c, const char *key, const char *text, const char *flag,
		    struct err *err);
/* Replaces job.output by the folder that the run began with. It still counts as the project's value
 * and is checked again: it may be a link by now. */
void config_set_output(struct config *c, const char *path);
bool config_adds(const char *key);
/* The value of a key that names paths, with absolute paths. To be freed. */
char *config_added(const char *key, const char *text);
/* Checks what no single key can show: ranges, known providers, what the job type needs. Call it
 * once, after the overrides. */
int config_check(struct config *c, struct err *err);
/* ---- a copy, for another run of this process ---- */

/* Values keep their file and line. Checks of the copy end at the first mistake. It borrows the
 * registries and config_source.tree. Free with config_free(). */
struct config *config_copy(const struct config *c);
/* The settings of a copy and of its job, to be set as section.h says. */
struct section *config_change(struct config *c);
struct section *config_change_job(struct config *c);
/* The config is burst's own from here on: it stands at `path`, by which the ledger knows it, and no
 * project's file stands behind it, so that its paths and its volume need no permission. Its job is
 * an empty one of this type, to be set as section.h says. */
struct section *config_make_own(struct config *c, const char *path, const struct job_ops *ops,
				const char *job_name);

/* ---- what it says ---- */

/* After config_check() has failed: whether the files that the config names may be read to find
 * further mistakes. */
bool config_in_bounds(const struct config *c);

/* Whether the project has a file that is not the user's own. */
bool config_is_project(const struct config *c);
/* The user's own file sets the key. */
bool config_is_users(const struct config *c, const struct section *s, const char *key);
/* The project's file sets the key or leaves it at its default; neither the user's file nor a flag
 * sets it. */
bool config_is_projects(const struct config *c, const struct section *s, const char *key);

/* job.KEY names a folder in which a link leads to this real path. ERR_CONFIG if a project's file
 * named the folder and may not name that path (trust.h). */
int config_may_read(const struct config *c, const char *key, const char *real, struct err *err);

/* config_source.mistakes: collects further mistakes. NULL: reading ends at the first one. */
struct mistakes *config_mistakes(const struct config *c);
/* Puts file and line of the key that an error is about (err_about()) in front of its message, if
 * the config has that key. */
void config_place_error(const struct config *c, struct err *err);

/* All that config/config_keys.c lists, except `job` and `providers`. */
const struct section *config_top(const struct config *c);
/* caps.per_day and caps.per_month of each file: the user's own bound all runs, a project's bound
 * its own runs, and neither replaces the other. Borrowed. */
struct config_cap {
	bool set;
	int64_t microusd;
	const char *where; /* file:line */
};
struct config_cap config_cap(const struct config *c, const char *key, bool project);
/* NULL when there is no job. Paths that the file names are absolute; a default ("out") is as its
 * table has it: path_join(config_dir(c), ...) is right for both. */
const struct section *config_job(const struct config *c);
const struct job_ops *config_job_ops(const struct config *c);
/* job.name, else the folder's name. */
const char *config_job_name(const struct config *c);
/* Real path of the project's file; NULL: there is none. */
const char *config_path(const struct config *c);
/* Its folder, absolute; the current folder when there is no file. */
const char *config_dir(const struct config *c);
/* The folder that the project's files are read from: with config_source.tree, that of the commit.
 */
const char *config_read_dir(const struct config *c);
/* What the project's file and its job read, as paths below config_source.tree's top,
 * NULL-terminated: the file itself first. */
char **config_inputs(const struct config *c);
void config_inputs_free(char **inputs); /* NULL is fine */

/* The section of a provider with the values of the files and the environment (RUNPOD_API_URL is
 * `api_url` of "runpod"; likewise for every key that is secret or the user's own). NULL: no such
 * provider. */
const struct section *config_provider(const struct config *c, const char *name);
/* The same with its secrets looked up (config/secrets.h), which may run commands: only for
 * providers that will be used. ERR_NO_ACCOUNT if no place has a required secret; the message names
 * the places. */
const struct section *config_account(struct config *c, const char *name, struct err *err);

/* ${BURST_STATE_DIR:-${XDG_STATE_HOME:-~/.local/state}/burst}, made 0700; absolute; to be freed.
 * NULL on error. */
char *config_state_dir(struct err *err);
/* ${BURST_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/burst}/renders; it need not exist; to be freed.
 * NULL: no cache, since BURST_CACHE_DIR is set and empty, or there is no home folder. */
char *config_renders_dir(void);
/* The folder beside it for the files of commits while runs read them; to be freed. It does not
 * depend on an empty BURST_CACHE_DIR, since nothing is kept there. NULL: there is no home folder.
 */
char *config_trees_dir(void);
/* Real path of the current folder's burst.cfg, without reading it. 1: *path is to be freed; 0: it
 * does not exist; -1: it is a link out of the project, so no run can have been started with it. */
int config_here(char **path, struct err *err);
/* The same of a named file or folder; NULL: the current folder. A name that does not exist is an
 * error. */
int config_find(const char *file, char **path, struct err *err);
/* The path of a project's file by name alone (a file or a folder; NULL: the current folder). It
 * need not exist: a commit or the ledger may know it. To be freed. */
char *config_named(const char *file);
/* ${XDG_CONFIG_HOME:-~/.config}/burst/burst.cfg; to be freed. NULL when there is no home. */
char *config_user_file(void);

DEFINE_CLEANUP(config_free, struct config *)

#endif
