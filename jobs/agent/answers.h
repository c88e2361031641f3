/* answers.h - reads what workers send. */
#ifndef BURST_JOBS_AGENT_ANSWERS_H
#define BURST_JOBS_AGENT_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent.h"
#include "base/str.h"
#include "json.h"

enum {
	PHASE_MOST_S = 86400, /* limit of a phase in a worker's hello */
};

/* Appends the times of the steps before hello, as the worker reports them. Skips unknown phases and
 * impossible times. The agent's own unpacking comes first, unless unpack_bytes is 0. */
void add_phases(struct str *b, const struct json *line, int64_t unpack_ms, int64_t unpack_bytes);
void worker_line(struct agent *a, struct worker *w, const char *line, size_t len);

/* Reads the available bytes, at most `rounds` pieces. Returns false at the end of the file. */
bool worker_read_out(struct agent *a, struct worker *w, int rounds);
bool worker_read_err(struct agent *a, struct worker *w, int rounds);

#endif
