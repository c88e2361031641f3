/* start.h - `start`: copies what workers need, then starts them. */
#ifndef BURST_JOBS_AGENT_START_H
#define BURST_JOBS_AGENT_START_H

#include <stdbool.h>

#include "agent.h"
#include "json.h"

char *put_text(const struct json *op, const char *key);
void start_forget(struct agent *a);
void start_checked(struct agent *a, bool fine);
void op_start(struct agent *a, const struct json *op);

#endif
