/* state.h - the state of a config while it is read and checked. Private to config/ */
#ifndef BURST_CONFIG_STATE_H
#define BURST_CONFIG_STATE_H

#include <libconfig.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/section.h"
#include "base/str.h"
#include "config.h"

enum { CONFIG_RUN_CAPS = 2 }; /* caps over several runs: caps.per_day and caps.per_month */

struct account {
	const struct provider_ops *ops;
	struct section *section; /* providers.NAME */
	bool looked_up;          /* its secrets are in the section */
};

struct config {
	struct section *top, *job;
	const struct job_ops *job_ops;
	char *path, *dir, *job_name, *user_shown;
	char *read_path, *read_dir;     /* the path to read: with a tree, in its copy */
	const struct config_tree *tree; /* borrowed from the caller */
	char *project_shown;            /* NULL: no project's file, or it is the user's own */
	uid_t project_owner;
	const struct provider_ops *const *providers;
	struct account *accounts;
	size_t account_count;
	const struct job_ops *const *jobs;
	/* borrowed from the caller; NULL: reading stops at the first mistake */
	struct mistakes *mistakes;
	/* in the order of run_cap_keys; the config owns `where` */
	struct config_cap user_caps[CONFIG_RUN_CAPS];
	bool out_of_bounds; /* the project requested something that it may not have */
	/* only the user's file was read, to release pods: its mistakes are warnings */
	bool lenient;
};

/* One file while it is read. */
struct source {
	char *path;       /* real path of the file to read */
	char *name;       /* its path in the working tree, which identifies the project */
	char *shown;      /* its name in messages */
	char *dir;        /* folder of `name` */
	bool trusted;     /* the user's own file */
	bool has_job;     /* it may have a `job` group */
	const char *text; /* NULL: read it from the file */
	uid_t owner;
	bool open_to_others; /* other users can read it */
	/* a link leads to it: its text may belong to another user, so messages do not quote it */
	bool elsewhere;
	const char *user_shown;
	struct mistakes *mistakes; /* of the config */
};

/* ---- parse.c ---- */

/* Returns NULL if there is no such provider. */
struct account *config_find_account(const struct config *c, const char *name);
/* Returns 0 and turns *err into a warning if the config only serves to release pods, else -1. */
int config_warn_if_lenient(const struct config *c, struct err *err);
/* Sets ERR_CONFIG: no provider has that name. `before` begins the message ("burst.cfg:3"). */
int config_err_unknown_provider(const struct config *c, const char *before, const char *name,
				struct err *err);
/* check.c: whether the key is a path that the job reads and the project's file names. */
bool config_is_input_path(const struct config *c, const struct section *s,
			  const struct option_spec *spec);

/* Reads a source's text into the config. ERR_CONFIG. */
int config_read_source(struct config *c, struct source *source, struct err *err);

/* ---- value ----
 * Reads a value as the user or the environment writes it ("2.50", "10m", "runpod,modal") into a
 * section. */

/* For keys with OPTION_AUTO: this word has the same effect as a missing key. */
#define VALUE_AUTO "auto"

/* Returns NULL if the table has no such key. */
const struct option_spec *value_spec(const struct option_spec *table, const char *key);
/* The word most like `key`, for "did you mean", of a table's keys and two more words (each may be
 * NULL). NULL: none is near. */
const char *value_nearest(const struct option_spec *table, const char *more, const char *more2,
			  const char *key);
/* How the values of a type look. */
struct value_type {
	const char *kind;                      /* in help: "whole number" */
	const char *wanted;                    /* in messages: "a whole number" */
	const char *before, *example, *behind; /* a value with its quotes */
	const char *empty;                     /* for a key without a default */
};
extern const struct value_type value_types[]; /* by enum option_type */
/* What a key of this type needs: "a whole number, like 2". Returns `to`. */
char *value_wanted(char *to, size_t room, const struct option_spec *spec);
/* Makes a path absolute: "~/" is the home folder, other paths are relative to dir. The caller frees
 * it. */
char *value_path(const char *dir, const char *path);
/* Reads text by the key's type. *err has only the fault, without the key: the caller knows the name
 * that the user wrote. */
int value_set(struct section *s, const struct option_spec *spec, const char *text, const char *dir,
	      const char *where, struct err *err);

/* ---- write ----
 * A text in burst.cfg's syntax. */

/* Appends the text in quotes, with escapes. */
void config_quote(struct str *to, const char *text);
/* Appends "20m" in quotes. */
void config_add_duration(struct str *to, int64_t ms);

/* ---- config keys ----
 * The table of burst's own keys in burst.cfg. Help, checks and the example file of `burst init`
 * come from it. */

extern const struct option_spec config_keys[];

/* Checks burst's own keys: their ranges, and names that no provider accepts. Adds mistakes to m and
 * returns 0; if m is NULL, the first one is an error. */
int keys_check(const struct section *top, struct mistakes *m, struct err *err);
/* Checks the ranges of a section's keys and of the groups in it. prefix: "job." */
int keys_check_ranges(const struct section *s, const char *prefix, struct mistakes *m,
		      struct err *err);

#endif
