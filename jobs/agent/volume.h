/* volume.h - `copy`, `ls` and `rm`: folders of the volume. */
#ifndef BURST_JOBS_AGENT_VOLUME_H
#define BURST_JOBS_AGENT_VOLUME_H

/* For those who are not the agent: into a folder of theirs, over what lies there. Exit 1: it is not
 * there, or is another one. */
int agent_copy(const char *path, const char *to);
int agent_ls(const char *path);
int agent_rm(int count, char **paths);

#endif
