/* volume.h - `copy`, `ls` and `rm`: folders of the volume. */
#ifndef BURST_JOBS_AGENT_VOLUME_H
#define BURST_JOBS_AGENT_VOLUME_H

/* Runs in commands, as their user: copies a tree into an existing folder. Exits 1 if the tree is
 * missing or differs. */
int agent_copy(const char *path, const char *to);
int agent_ls(const char *path);
int agent_rm(int count, char **paths);

#endif
