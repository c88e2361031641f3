/* users.h - the users that workers and scripts are, and what these find in their environment. */
#ifndef BURST_JOBS_AGENT_USERS_H
#define BURST_JOBS_AGENT_USERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent.h"
#include "env.h"

/* Another user for good: no program here makes it root again. What it was given to read and write
 * becomes its own first, since /dev/stdout and the like are opened anew. */
int child_switch(const struct agent *a, uid_t uid);

/* Who it is and where it keeps things. What an image has set for its root is not another user's to
 * write. */
void env_user(const struct agent *a, struct env *env, uid_t uid);
void worker_env(struct agent *a, struct env *env, int w);
void groups_find(struct agent *a);

/* Some programs want to know who they are. */
void passwd_add(struct agent *a);

/* True where another user can be, and can work where workers are to work. */
bool can_separate(struct agent *a);

#endif
