/* reference.h - the key tables for readers: help, the man page and config/README.md are written
 * from it. */
#ifndef BURST_CONFIG_REFERENCE_H
#define BURST_CONFIG_REFERENCE_H

#include "base/section.h"
#include "job.h"
#include "provider.h"

struct reference_row {
	const char *path;  /* "caps.max_cost" */
	const char *kind;  /* "dollars" */
	const char *value; /* the default in the form of burst.cfg; NULL: none */
	const char *help;
	const char *range; /* the allowed values; NULL: the help text says it, or all are allowed */
	unsigned flags;    /* enum option_flag */
};

/* Texts made for the reader. They live until the function returns. */
struct reference_reader {
	void *ctx;
	void (*section)(void *ctx, const char *title, const char *text); /* before its rows */
	void (*row)(void *ctx, const struct reference_row *row);
};

/* All keys: of burst itself, of each type of job, of each provider that is part of burst. The
 * registries end with NULL. */
void reference_read(const struct reference_reader *to, const struct job_ops *const *jobs,
		    const struct provider_ops *const *providers);

#endif
