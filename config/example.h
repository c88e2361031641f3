/* example.h - passes the tables of keys to a reader, and writes burst.cfg for people */
#ifndef BURST_CONFIG_EXAMPLE_H
#define BURST_CONFIG_EXAMPLE_H

#include "base/section.h"
#include "base/str.h"
#include "config.h"
#include "job.h"
#include "provider.h"

/* ---- given ----
 * Writes the settings of a config that no file holds as a burst.cfg for people. */

/* Writes every value except those of the user's own file, and always the providers. Paths below the
 * config's folder become relative to it. Leaves out user-only keys. */
void config_print_given(struct str *to, const struct config *c);

/* ---- example ----
 * Writes the commented burst.cfg of `burst init` from the key tables. */

/* Writes a file of at most 15 lines for a job of this type named `name`. providers: a list as
 * burst.cfg has it. Returns false if the type has none. */
bool example_short(struct str *to, const char *name, const char *providers,
		   const struct job_ops *job);
/* Writes a file with every key and its default. */
void example_config(struct str *to, const char *name, const char *providers,
		    const struct job_ops *job, const struct provider_ops *const *known);
/* A script of three lines for the example job. */
extern const char example_script[];

/* ---- reference ----
 * Passes the key tables to a reader, which writes help, the man page or config/README.md. */

struct reference_row {
	const char *path;  /* "caps.max_cost" */
	const char *kind;  /* "dollars" */
	const char *value; /* the default in burst.cfg's form; NULL: none */
	const char *help;
	const char *range; /* allowed values; NULL: the help text has them, or all are allowed */
	unsigned flags;    /* enum option_flag */
};

/* Callbacks of a reader. Texts are valid until the callback returns. */
struct reference_reader {
	void *ctx;
	/* begins a section; its rows follow */
	void (*section)(void *ctx, const char *title, const char *text);
	void (*row)(void *ctx, const struct reference_row *row);
};

/* Reads all keys: of burst, of each job type, and of each provider in the registry. The registries
 * end with NULL. */
void reference_read(const struct reference_reader *to, const struct job_ops *const *jobs,
		    const struct provider_ops *const *providers);

#endif
