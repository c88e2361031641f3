/* example.h - the commented burst.cfg that `burst init` writes, made from the key tables so that it
 * never grows stale. */
#ifndef BURST_CONFIG_EXAMPLE_H
#define BURST_CONFIG_EXAMPLE_H

#include "base/str.h"
#include "job.h"
#include "provider.h"

/* A file of at most 15 lines for a job of this type named `name`. false: this type has none. */
bool example_short(struct str *to, const char *name, const struct job_ops *job);
/* The same with every key and its default. */
void example_config(struct str *to, const char *name, const struct job_ops *job,
		    const struct provider_ops *const *providers);
/* A script of three lines for it to speak. */
extern const char example_script[];

#endif
