/* reference.h - passes the key tables to a reader, which writes help, the man page or
 * config/README.md. */
#ifndef BURST_CONFIG_REFERENCE_H
#define BURST_CONFIG_REFERENCE_H

#include "base/section.h"
#include "job.h"
#include "provider.h"

struct reference_row {
	const char *path;  /* "caps.max_cost" */
	const char *kind;  /* "dollars" */
	const char *value; /* the default in burst.cfg's form; NULL: none */
	const char *help;
	const char
		*range; /* the allowed values; NULL: the help text has them, or all are allowed */
	unsigned flags; /* enum option_flag */
};

/* Callbacks of a reader. Texts are valid until the callback returns. */
struct reference_reader {
	void *ctx;
	void (*section)(void *ctx, const char *title,
			const char *text); /* called before its rows */
	void (*row)(void *ctx, const struct reference_row *row);
};

/* Reads all keys: of burst, of each job type, and of each provider in the registry. The registries
 * end with NULL. */
void reference_read(const struct reference_reader *to, const struct job_ops *const *jobs,
		    const struct provider_ops *const *providers);

#endif
