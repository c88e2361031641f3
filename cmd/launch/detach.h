/* detach.h - `run -d`: a client of its own in the background, and its starter, which waits until
 * the queue is with the pods. */
#ifndef BURST_CMD_LAUNCH_DETACH_H
#define BURST_CMD_LAUNCH_DETACH_H

#include "launch.h"

/* In the client: the descriptor on which its starter waits; -1: this is no detached client. */
int detach_starter(void);
/* In the starter: starts the client and waits for it. The run's id goes to stdout as soon as the
 * pods have the queue (with --no-wait: as soon as there is a run), or the run has ended without
 * that. Returns the exit status: 0, or that of a run that has ended by then. */
int detach(struct cmd_context *ctx, struct err *err);
/* In a forked child that is about to become a background client: gives it a session of its own, the
 * root as its folder, /dev/null as stdin, and the log as stdout and stderr (-1: /dev/null). Exits
 * with 127 if it cannot leave its folder. */
void detach_child(int log);

/* In the client; does nothing if no starter waits. There is a run. -1: the starter is gone, and
 * nothing is rented. */
int detach_begins(struct launch *l, int starter, struct err *err);
/* Now and then while it runs: lets the starter go once the pods have the queue; stops the run if
 * the starter is gone before. */
void detach_watch_starter(struct launch *l, const struct engine *e);
/* It has ended; what goes to stdout now comes behind the id. */
void detach_ends(struct launch *l);

#endif
