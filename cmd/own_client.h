/* own_client.h - a second client of burst, started by a run: it delivers, or fills a volume. */
#ifndef BURST_CMD_OWN_CLIENT_H
#define BURST_CMD_OWN_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

/* Waits for a child that has a process group of its own; SIGINT, SIGTERM and SIGHUP that come
 * meanwhile are passed on to it. held: engine_hold_signals() is in force; what it has held is
 * passed on, too, and it is in force again afterwards. Returns its exit status, 128 + N if signal N
 * ended it. */
int own_client_wait(pid_t pid, bool held);

#endif
