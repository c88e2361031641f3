/* own_client.h - a second client of burst, started by a run to fill a volume. */
#ifndef BURST_CMD_LAUNCH_OWN_CLIENT_H
#define BURST_CMD_LAUNCH_OWN_CLIENT_H

#include <sys/types.h>

/* Waits for a child that has a process group of its own; SIGINT, SIGTERM and SIGHUP that come
 * meanwhile are passed on to it. Returns its exit status, 128 + N if signal N ended it. */
int own_client_wait(pid_t pid);

#endif
