/* env.h - lists of environment variables, and the file of them that the start script leaves. */
#ifndef BURST_JOBS_AGENT_ENV_H
#define BURST_JOBS_AGENT_ENV_H

#include <stddef.h>

#include "json.h"

/* A list of NAME=value texts, NULL-terminated. */
struct env {
	char **list;
	size_t count;
};

void env_set(struct env *env, const char *name, const char *value);
const char *env_get(const struct env *env, const char *name, const char *absent);
/* Whether the pod is a container or machine of its own; else nothing of the system is changed. */
bool env_is_container(const struct env *env);
void env_free(struct env *env);
struct env env_copy(const struct env *from);

/* Reads the NAME='value' lines that the start script left. Drops the keys
 * that workers must not have: the start script's and those that BURST_HIDE names. */
void env_parse(struct env *env, const char *text);
void env_unset(struct env *env, const char *name);

/* What the job lists of its user's environment; what the script is told of its pod comes after it.
 */
void env_add_object(struct env *env, const struct json *object);

#endif
