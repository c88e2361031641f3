/* lines.h - what programs print, line by line, as log events, with a limit per second and in all.
 */
#ifndef BURST_JOBS_AGENT_LINES_H
#define BURST_JOBS_AGENT_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "agent.h"
#include "base/str.h"

/* The last state of a line that is overwritten again and again (a progress bar), as a terminal
 * would show it. */
const char *last_state(const char *line, size_t *len);

/* id names a segment or a task; NULL: worker w. */
void event_log(struct agent *a, int w, const char *id, const char *line, size_t len);

/* Of an unfinished line of that length, only the last overwritten state counts. */
void written_over(struct str *b, size_t most);

/* Hands on every whole line of `b`. A log line without an end is cut and the rest of it skipped,
 * unless it is overwritten. */
void log_lines(struct agent *a, struct str *b, bool *skipping, int w, const char *id);
void keep_tail(char *tail, size_t room, const char *bytes, size_t len);

/* The last non-empty line of what it said on stderr. */
const char *last_line(char *tail);

/* The second line that a child process printed goes to the log. */
void note_line(struct agent *a, char *said);

#endif
