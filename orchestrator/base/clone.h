/* clone.h - copies of whole files that share their blocks where the file system can do that. */
#ifndef BURST_BASE_CLONE_H
#define BURST_BASE_CLONE_H

/* All of `from`, wherever it stands, into the empty file `to`. A change of one is never a change of
 * the other. -1 and errno. */
int fd_clone(int from, int to);

#endif
