/* lines.h - what programs print, line by line, as log events: so many bytes a second, so many in
 * all. */
#ifndef BURST_JOBS_AGENT_LINES_H
#define BURST_JOBS_AGENT_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "agent.h"
#include "base/str.h"

/* Of a line that was written over again and again (a progress bar) the last state, as a terminal
 * would show it. */
const char *last_state(const char *line, size_t *len);

/* id names a segment or a task; NULL: worker w. */
void event_log(struct agent *a, int w, const char *id, const char *line, size_t len);

/* Of a line as long as that, not whole yet, only what it was written over with counts. */
void written_over(struct str *b, size_t most);

/* Hands every whole line of `b` on. A log line that never ends is cut, what follows it is skipped,
 * unless it is written over. */
void log_lines(struct agent *a, struct str *b, bool *skipping, int w, const char *id);
void keep_tail(char *tail, size_t room, const char *bytes, size_t len);

/* The last non-empty line of what it said on stderr. */
const char *last_line(char *tail);

/* The second line that a child of ours said goes to the log. */
void note_line(struct agent *a, char *said);

#endif
