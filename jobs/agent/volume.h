/* volume.h - `copy`, `ls` and `rm`: folders of the volume. */
#ifndef BURST_JOBS_AGENT_VOLUME_H
#define BURST_JOBS_AGENT_VOLUME_H

/* For commands, which are not the agent's user: copies a tree into an existing folder of theirs.
 * Exit 1: it is missing or differs. */
int agent_copy(const char *path, const char *to);
int agent_ls(const char *path);
int agent_rm(int count, char **paths);

#endif
