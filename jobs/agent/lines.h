/* lines.h - turns program output into log events, line by line, within limits per second and in
 * total. */
#ifndef BURST_JOBS_AGENT_LINES_H
#define BURST_JOBS_AGENT_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "agent.h"
#include "base/str.h"

/* The last state of a line that a program overwrites repeatedly (a progress bar), as a terminal
 * would show it. */
const char *last_state(const char *line, size_t *len);

/* id names a segment or a task; NULL: the line is worker w's. */
void event_log(struct agent *a, int w, const char *id, const char *line, size_t len);

/* Keeps only the last overwritten state of an unfinished line longer than `most`. */
void written_over(struct str *b, size_t most);

/* Logs every complete line of `b`. Cuts an endless line and skips its rest, unless the line is
 * overwritten. */
void log_lines(struct agent *a, struct str *b, bool *skipping, int w, const char *id);
void keep_tail(char *tail, size_t room, const char *bytes, size_t len);

/* The last non-empty line of a stderr tail. */
const char *last_line(char *tail);

/* Logs the second line that a child process printed. */
void note_line(struct agent *a, char *result);

#endif
