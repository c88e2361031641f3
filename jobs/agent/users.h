/* users.h - the users of workers and scripts, and their environment. */
#ifndef BURST_JOBS_AGENT_USERS_H
#define BURST_JOBS_AGENT_USERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent.h"
#include "env.h"

/* Becomes another user, for good: no program can regain root. First gives that user the process's
 * own descriptors, because programs reopen /dev/stdout and the like. */
int child_switch(const struct agent *a, uid_t uid);

/* Sets the user's name and folders. An image's folders for root are not writable for other users.
 */
void env_user(const struct agent *a, struct env *env, uid_t uid);
void worker_env(struct agent *a, struct env *env, int w);
void groups_find(struct agent *a);

/* Adds the users to /etc/passwd: some programs look up their own name. */
void passwd_add(struct agent *a);

/* Returns whether the agent can switch users and the new user can work in the workers' folders. */
bool can_separate(struct agent *a);

#endif
