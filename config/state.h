/* state.h - the state of a config while it is read and checked. Private to config/. */
#ifndef BURST_CONFIG_STATE_H
#define BURST_CONFIG_STATE_H

#include <sys/types.h>

#include "config.h"

enum { CONFIG_RUN_CAPS = 2 };
/* caps.per_day and caps.per_month: caps over several runs. */
extern const char *const config_run_caps[CONFIG_RUN_CAPS];

struct account {
	const struct provider_ops *ops;
	struct section *section;
	bool looked_up;
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
	struct mistakes
		*mistakes; /* borrowed from the caller; NULL: reading stops at the first mistake */
	struct config_cap user_caps[CONFIG_RUN_CAPS]; /* in the order of config_run_caps; the config
							 owns `where` */
	bool out_of_bounds; /* the project requested something that it may not have */
	bool lenient; /* only the user's file was read, to release pods: its mistakes are warnings
		       */
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

/* ---- state.c ---- */

/* Returns NULL if there is no such provider. */
struct account *config_find_account(const struct config *c, const char *name);
/* ERR_CONFIG: no provider has that name. `before` begins the message ("burst.cfg:3"). */
int config_no_provider(const struct config *c, const char *before, const char *name,
		       struct err *err);
/* Returns 0 and warns if the config only serves to release pods, else -1. */
int config_mistake(const struct config *c, struct err *err);
/* Whether the project's file sets the key or leaves its default. A flag is the user's own choice.
 * Only for a config with a project's file. */
bool config_is_projects_word(const struct config *c, const struct section *s, const char *key);
/* Whether the key is a path that the job reads and the project's file names. */
bool config_is_read(const struct config *c, const struct section *s,
		    const struct option_spec *spec);

/* ---- reading ---- */

/* parse.c: reads a source's text into the config. ERR_CONFIG. */
int config_read_source(struct config *c, struct source *source, struct err *err);
/* sources.c: finds and reads the user's file and the project's. ERR_CONFIG. */
int config_read_both(struct config *c, const struct config_source *ask, struct err *err);

#endif
