/* checkpoint.h - $BURST_CHECKPOINT: the folder of a command that outlives it, and its snapshots. */
#ifndef BURST_JOBS_AGENT_CHECKPOINT_H
#define BURST_JOBS_AGENT_CHECKPOINT_H

#include "agent.h"
#include "json.h"

/* How often, by the request `start`. */
void checkpoint_read_start(struct agent *a, const struct json *op);

/* Before the command starts: makes its folder, or keeps the one that an earlier start left on this
 * pod. Returns the pid of a child that fills it from the snapshot that the task names, 0: it is
 * ready. Call checkpoint_filled() when that child has exited. */
pid_t checkpoint_prepare(struct agent *a, struct command *c, const char *task);
void checkpoint_filled(struct agent *a, struct command *c, int status);
void checkpoint_env(const struct command *c, struct env *env);

/* Takes the snapshots that are due. */
void checkpoint_tick(struct agent *a);
/* Returns true if this was the child that takes a snapshot. */
bool checkpoint_exited(struct agent *a, pid_t pid, int status);
/* Of a command that has exited: returns false while its last snapshot is being taken. Only a
 * command that failed gets one: its next attempt continues from there. */
bool checkpoint_settled(struct agent *a, struct command *c);
/* The segment is finished: its folder is not needed any more. */
void checkpoint_forget(struct agent *a, const char *id);
void checkpoint_free(struct command *c);

#endif
