/* config.h - reads burst.cfg: the user's file, the project's, the environment and the flags. Each
 * overrides the one before. Values are checked against the key tables of config/keys.c, the
 * providers and the job types.
 *
 * A mistake is ERR_CONFIG, one line: file:line, the key, what is wrong, what would be right. A
 * project's file comes with a cloned repository and is never trusted. It cannot set keys marked
 * OPTION_USER_ONLY. It must not be a link out of the project, lie in a folder of burst's own, or
 * belong to a user other than this one or root. */
#ifndef BURST_CONFIG_H
#define BURST_CONFIG_H

#include "base/err.h"
#include "base/section.h"
#include "job.h"
#include "provider.h"

struct config;

/* The files of a commit, in place of those of the working tree. The project's file and its job read
 * below `copy` and write below `top`. Both are real paths and hold the same names. */
struct config_tree {
	const char *top, *copy;
};

struct config_source {
	const char *file; /* the project's file; NULL: ./burst.cfg if it exists */
	/* NULL: the working tree. Must outlive the config. With a tree, `file` may be missing from
	 * the working tree. */
	const struct config_tree *tree;
	/* Text made from the command line: no file is read, and the user chose its paths. `file` is
	 * the absolute path that it stands for. */
	const char *text;
	bool need_job; /* a config without a `job` group is an error */
	/* Skip the project's file: reap must work beside a broken one. Mistakes in the user's file,
	 * outside the groups of known providers, are warnings, because pods must be released. */
	bool user_only;
	bool project_only; /* skip the user's file: this process has read it */
	/* Collects every mistake of the files: config_open() continues after one, and
	 * config_check() fails. Must outlive the config. NULL: reading stops at the first mistake.
	 */
	struct mistakes *mistakes;
	const struct provider_ops *const *providers; /* NULL-terminated */
	const struct job_ops *const *jobs;           /* NULL-terminated */
};

/* Reads the files, then the environment. The registries must outlive the config. ERR_CONFIG,
 * ERR_LOCAL.
 */
int config_open(struct config **out, const struct config_source *ask, struct err *err);
void config_free(struct config *c);

/* Sets a value from the command line over those of the files. key is a path as in "caps.max_cost".
 * text is in command line form (lists with commas, paths relative to the current folder). flag ("--
 * max-cost") is for messages. ERR_USAGE: no such key, or not such a value. A key of
 * config_key_accumulates() adds to the value of the user's file. */
int config_override(struct config *c, const char *key, const char *text, const char *flag,
		    struct err *err);
/* Replaces job.output by the folder that the run began with. It still counts as the project's value
 * and is checked again, since it may be a link now. */
void config_set_output(struct config *c, const char *path);
/* Whether a flag adds to the key's list instead of replacing it. */
bool config_key_accumulates(const char *key);
/* The items of such a flag, its paths made absolute. The caller frees them. */
char *config_absolute_items(const char *key, const char *text);
/* Checks what needs several keys: ranges, known providers, the needs of the job type. Call once,
 * after the overrides. */
int config_check(struct config *c, struct err *err);

/* ---- what it says ---- */

/* After config_check() has failed: whether the files that the config names may be read to find more
 * mistakes. */
bool config_may_read_files(const struct config *c);

/* Whether the project has a file other than the user's own. */
bool config_has_project_file(const struct config *c);
/* Whether the user's own file sets the key. */
bool config_is_set_by_user(const struct config *c, const struct section *s, const char *key);
/* Whether the project's file sets the key or leaves its default; neither the user's file nor a flag
 * sets it. */
bool config_is_set_by_project(const struct config *c, const struct section *s, const char *key);

/* Checks a link that lies in the folder of job.KEY and leads to the path `real`. ERR_CONFIG if a
 * project's file named the folder but may not name that path (trust.h). */
int config_may_read(const struct config *c, const char *key, const char *real, struct err *err);

/* config_source.mistakes, to which a caller may add; NULL: reading stops at the first mistake. */
struct mistakes *config_mistakes(const struct config *c);
/* Prefixes an error about a key (err_about()) with file and line, if the config has the key. */
void config_place_error(const struct config *c, struct err *err);

/* The section with all keys of config/keys.c, thus without `job` and `providers`. */
const struct section *config_top(const struct config *c);
/* caps.per_day or caps.per_month (key) of a file. The user's caps bound all runs and a project's
 * caps its own runs; neither replaces the other. Borrowed. */
struct config_cap {
	bool set;
	int64_t microusd;
	const char *where; /* file:line */
};
struct config_cap config_user_cap(const struct config *c, const char *key);
struct config_cap config_project_cap(const struct config *c, const char *key);
/* NULL if there is no job. Paths from the file are absolute; a default ("out") is as in its table.
 * path_join(config_dir(c), ...) is right for both. */
const struct section *config_job(const struct config *c);
const struct job_ops *config_job_ops(const struct config *c);
/* job.name, else the folder's name. */
const char *config_job_name(const struct config *c);
/* Real path of the project's file; NULL: none. */
const char *config_path(const struct config *c);
/* Its folder, absolute; the current folder if there is no file. */
const char *config_dir(const struct config *c);
/* The folder that the project's files are read from: with config_source.tree, the commit's. */
const char *config_read_dir(const struct config *c);
/* Files that the project's file and its job read, as paths below config_source.tree's top. NULL-
 * terminated; the project's file comes first. Free with texts_free(). */
char **config_inputs(const struct config *c);

/* A provider's section, with the values of files and environment (RUNPOD_API_URL is `api_url` of
 * "runpod"; likewise every key that is secret or user-only). NULL: no such provider. */
const struct section *config_provider(const struct config *c, const char *name);
/* The same with its secrets (config/secrets.h). May run commands, so call it only for providers
 * that will be used. ERR_NO_ACCOUNT if a required secret is missing; the message names the places.
 */
const struct section *config_account(struct config *c, const char *name, struct err *err);

/* ${BURST_STATE_DIR:-${XDG_STATE_HOME:-~/.local/state}/burst}, absolute, made with mode 0700. NULL
 * on error. The caller frees it. */
char *config_state_dir(struct err *err);
/* ${BURST_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/burst}/renders; it may be missing. NULL: no cache,
 * because BURST_CACHE_DIR is empty or there is no home folder. The caller frees it. */
char *config_renders_dir(void);
/* The folder beside it for the files of commits while runs read them. Exists also with an empty
 * BURST_CACHE_DIR, since nothing stays there. NULL: no home folder. The caller frees it. */
char *config_trees_dir(void);
/* Finds the real path of a named file, or of the burst.cfg in a named folder, without reading it;
 * NULL: the current folder. Returns 1 (the caller frees *path), 0 if the current folder has none,
 * or -1 if a named one is missing or it is a link out of the project, with which no run can have
 * started. */
int config_find(const char *file, char **path, struct err *err);
/* The path of a project's file by its name alone (a file or a folder; NULL: the current folder). It
 * may be missing: a commit or the ledger may know it. The caller frees it. */
char *config_named(const char *file);
/* ${XDG_CONFIG_HOME:-~/.config}/burst/burst.cfg. NULL: no home folder. The caller frees it. */
char *config_user_file(void);

DEFINE_CLEANUP(config_free, struct config *)

#endif
