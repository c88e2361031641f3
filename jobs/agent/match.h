/* match.h - which names are outputs: the patterns of a job. */
#ifndef BURST_JOBS_AGENT_MATCH_H
#define BURST_JOBS_AGENT_MATCH_H

#include <stdbool.h>

/* The rule of orchestrator/base/pattern.h: `*` and `?` stay in a folder, `**` crosses folders;
 * after a '/' or at the start,
 * `**` + `/` is any number of folders, none too; [..] is a set. After a mismatch the last star
 * takes one character more, and when it can take none, the last double star takes more. */
bool agent_pattern_match(const char *p, const char *name);

#endif
