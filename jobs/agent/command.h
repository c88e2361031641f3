/* command.h - runs a segment that is a shell command in a private copy of the code. */
#ifndef BURST_JOBS_AGENT_COMMAND_H
#define BURST_JOBS_AGENT_COMMAND_H

#include "agent.h"

void command_free(struct command *c);
void command_start(struct agent *a, struct worker *w);
void command_exited(struct agent *a, struct worker *w, int status);
/* It was silent for too long. */
void command_hangs(struct agent *a, struct worker *w);

/* Asks each running command to end, by SIGTERM, and kills it after grace_ms. What it has finished
 * is reported, and then its batch as revoked. */
void commands_halt(struct agent *a, int64_t grace_ms);
bool command_is_halting(const struct agent *a);
void command_turn(struct agent *a, struct worker *w);

#endif
