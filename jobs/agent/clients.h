/* clients.h - the connections of `attach` to `serve`. */
#ifndef BURST_JOBS_AGENT_CLIENTS_H
#define BURST_JOBS_AGENT_CLIENTS_H

#include "agent.h"

void client_close(struct client *c);
void client_read(struct client *c);
void client_accept(struct agent *a);
void client_tell(struct agent *a, struct client *c);
void client_turn(struct agent *a, struct client *c);

#endif
