/* example.h - writes the commented burst.cfg of `burst init` from the key tables. */
#ifndef BURST_CONFIG_EXAMPLE_H
#define BURST_CONFIG_EXAMPLE_H

#include "base/str.h"
#include "job.h"
#include "provider.h"

/* Writes a file of at most 15 lines for a job of this type named `name`. Returns false if the type
 * has none. */
bool example_short(struct str *to, const char *name, const struct job_ops *job);
/* Writes a file with every key and its default. */
void example_config(struct str *to, const char *name, const struct job_ops *job,
		    const struct provider_ops *const *providers);
/* A script of three lines for the example job. */
extern const char example_script[];

#endif
