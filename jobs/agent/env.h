/* env.h - lists of environment variables, and the file of them that the start script leaves. */
#ifndef BURST_JOBS_AGENT_ENV_H
#define BURST_JOBS_AGENT_ENV_H

#include <stddef.h>

#include "json.h"

/* NAME=value texts; the list ends with NULL. */
struct env {
	char **list;
	size_t count;
};

void env_set(struct env *env, const char *name, const char *value);
const char *env_get(const struct env *env, const char *name, const char *absent);
/* Returns whether the pod is a container or machine of its own. If not, the agent changes nothing
 * in the system. */
bool env_is_container(const struct env *env);
void env_free(struct env *env);
struct env env_copy(const struct env *from);

/* Reads the NAME='value' lines that the start script left. Drops the keys that workers must not
 * have: the start script's own and those in BURST_HIDE. */
void env_parse(struct env *env, const char *text);
void env_unset(struct env *env, const char *name);

/* Adds the variables that the job takes from its user's environment. Those of the pod come later
 * and win. */
void env_add_object(struct env *env, const struct json *object);

#endif
