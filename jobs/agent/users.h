/* users.h - the users of workers and scripts, and the environment that these get. */
#ifndef BURST_JOBS_AGENT_USERS_H
#define BURST_JOBS_AGENT_USERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent.h"
#include "env.h"

/* Becomes another user; no program can make it root again. What it was given to read and write
 * becomes its own first, since /dev/stdout and the like are opened again. */
int child_switch(const struct agent *a, uid_t uid);

/* Sets its name and its folders. The folders that an image sets for its root are not writable for
 * another user. */
void env_user(const struct agent *a, struct env *env, uid_t uid);
void worker_env(struct agent *a, struct env *env, int w);
void groups_find(struct agent *a);

/* Some programs want to know who they are. */
void passwd_add(struct agent *a);

/* Whether another user is possible, and can work in the workers' folders. */
bool can_separate(struct agent *a);

#endif
