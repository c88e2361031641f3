/* answers.h - reads what workers say. */
#ifndef BURST_JOBS_AGENT_ANSWERS_H
#define BURST_JOBS_AGENT_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent.h"
#include "base/str.h"
#include "json.h"

enum {
	PHASE_MOST_S = 86400, /* of what a worker says of its start */
};

/* What took how long before hello, as the worker says it. Names of other phases, and what no time
 * can be, are left out. Before it comes what the agent did: unpack_bytes 0: nothing. */
void say_phases(struct str *b, const struct json *line, int64_t unpack_ms, int64_t unpack_bytes);
void worker_line(struct agent *a, struct worker *w, const char *line, size_t len);

/* Reads what is there, at most `rounds` pieces. False at the end of the file. */
bool worker_read_out(struct agent *a, struct worker *w, int rounds);
bool worker_read_err(struct agent *a, struct worker *w, int rounds);

#endif
