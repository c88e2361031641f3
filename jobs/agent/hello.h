/* hello.h - the hello to a client. */
#ifndef BURST_JOBS_AGENT_HELLO_H
#define BURST_JOBS_AGENT_HELLO_H

#include <stddef.h>

#include "agent.h"
#include "base/str.h"

void add_gpus(struct agent *a, struct str *b);
void read_switch(struct agent *a, char *to, size_t room);
void hello_send(struct agent *a, struct client *c);

#endif
