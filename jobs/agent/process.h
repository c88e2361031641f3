/* process.h - starts processes and ends them. */
#ifndef BURST_JOBS_AGENT_PROCESS_H
#define BURST_JOBS_AGENT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent.h"
#include "env.h"

/* Renames the folder at once, then removes it in a child. The same segment may run again in a
 * folder of this name. */
void remove_in_background(const char *dir);

struct spawn {
	const char *script; /* for sh -c */
	const char *dir;    /* NULL: $BURST_HOME */
	const char *copy;   /* a folder to copy to `dir`; NULL: dir exists */
	/* a tree of the volume to copy to work/kept if it matches; or NULL */
	const char *kept;
	bool own_dir; /* dir is made, and belongs to this child alone */
	uid_t uid;    /* runs the child, if the agent can choose; 0: the agent's own user */
	const struct env *env;
	int in, out, err; /* in -1: /dev/null */
};

pid_t spawn(struct agent *a, const struct spawn *s);

/* Runs `work` in a child of the agent; `out` receives its output. */
pid_t spawn_own(struct agent *a, int (*work)(struct agent *a), int out);
int make_pipe(int *read_end, int *write_end);
void nonblocking(int fd);
void kill_group(pid_t pid);

/* Kills a child that was not reaped, also if it has left its group. */
void kill_child(pid_t pid);

#endif
