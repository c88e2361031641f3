/* detach.h - `run -d`: a client in the background, and its starter, which waits until the pods have
 * the queue. */
#ifndef BURST_CMD_LAUNCH_DETACH_H
#define BURST_CMD_LAUNCH_DETACH_H

#include "launch.h"

/* In the client: the descriptor to its starter; -1: not a detached client. */
int detach_starter(void);
/* In the starter: starts the client and waits for it. Prints the run's id on stdout once the pods
 * have the queue (with --no-wait: once there is a run), or the run has ended before. Returns the
 * exit status: 0, or that of a run that has ended. */
int detach(struct cmd_context *ctx, struct err *err);

/* Before it rents: says whether this machine must stay awake until the run ends. */
void detach_say_needs(const struct launch *l);
/* In the client, once there is a run. Does nothing without a starter. Returns -1 if the starter is
 * gone; then nothing is rented. */
int detach_begins(struct launch *l, int starter, struct err *err);
/* Call now and then during the run: releases the starter once the pods have the queue; stops the
 * run if the starter is gone before. */
void detach_watch_starter(struct launch *l, const struct engine *e);
/* After the end: later output on stdout follows the id. */
void detach_ends(struct launch *l);

#endif
