/* files.h - opens, writes and removes files below a folder without following links; checks names.
 */
#ifndef BURST_JOBS_AGENT_FILES_H
#define BURST_JOBS_AGENT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/str.h"

void close_fd(int *fd);

/* Returns whether `path` is relative and stays in its folder: no "..", ".", empty part or leading
 * '/'. */
bool path_inside(const char *path);

bool name_safe(const char *name);
int mkdirs(const char *path, mode_t mode);

/* Opens the folder that holds `path` below root, without following any link. `make` creates missing
 * folders. *name points at the last part. */
int open_parent(int root, const char *path, bool make, const char **name);

/* Opens a regular file below root for reading, without following any link. ELOOP: it is not a
 * regular file. */
int open_below(int root, const char *path, struct stat *st);

/* Opens the folder `path` below root, without following any link. */
int open_folder(int root, const char *path, bool make);

/* Removes everything in the folder `fd`, then closes fd. */
int remove_inside(int fd);

/* Removes a file or a whole tree, however deep; removes links, never follows them. Returns 0 also
 * if it does not exist, else -1 with errno. */
int remove_at(int dir, const char *name);
int write_beside(const char *path, const char *text, mode_t mode);
int read_file(const char *path, size_t most, struct str *out);
int read_all(int fd, size_t most, struct str *out);
int pread_all(int fd, char *to, size_t len, int64_t offset);

/* Renames a tree out of the way, then removes it in this process. */
void set_aside(int root, const char *path);

#endif
