/* command.h - runs a segment that is a shell command in a private copy of the code. */
#ifndef BURST_JOBS_AGENT_COMMAND_H
#define BURST_JOBS_AGENT_COMMAND_H

#include "agent.h"

void command_free(struct command *c);
void command_start(struct agent *a, struct worker *w);
void command_exited(struct agent *a, struct worker *w, int status);
void command_turn(struct agent *a, struct worker *w);

#endif
