/* path.h - files and folders of this machine: small whole-file reads and writes, kernel locks, and
 * which names are safe. */
#ifndef BURST_BASE_PATH_H
#define BURST_BASE_PATH_H

#include <sys/types.h>

#include "err.h"
#include "str.h"

/* dir + "/" + name; an absolute name stands alone. The caller frees it. */
char *path_join(const char *dir, const char *name);
/* The folder part of a path ("." if there is none), which the caller frees. */
char *path_dir(const char *path);
/* The last part of a path; points into it. */
const char *path_base(const char *path);
/* Creates the folder and its parents with this mode; an existing folder is success. */
int path_mkdirs(const char *path, mode_t mode, struct err *err);
/* The path of dir relative to root, after links in both are resolved; NULL: one does not exist, or
 * dir is not below root. The caller frees it. */
char *path_below(const char *root, const char *dir);
/* Whether path is the folder or lies below it, by their names alone. */
bool path_is_below(const char *path, const char *folder);

/* In the *_at functions, name is in the open folder `dir` (or AT_FDCWD), shown is for messages. */

/* Appends a whole file to *out. ERR_CONFIG: larger than max bytes. ERR_NOT_FOUND: absent. */
int path_read(const char *path, size_t max, struct str *out, struct err *err);
/* The same, but refuses (ERR_CONFIG) links, and pipes, sockets, terminals and devices, which could
 * block or have no end while a pod bills. For every file of a project. If a path may lead through
 * links, the caller resolves it first with realpath() and checks where it leads. */
int path_read_plain(const char *path, size_t max, struct str *out, struct err *err);
int path_read_plain_at(int dir, const char *name, const char *shown, size_t max, struct str *out,
		       struct err *err);
/* Opens such a file for reading. Returns a descriptor, or -1 with *err. */
int path_open_plain_at(int dir, const char *name, const char *shown, struct err *err);
/* Reads an open file to its end, as path_read() does; path is for messages. */
int fd_read_all(int fd, const char *path, size_t max, struct str *out, struct err *err);
/* Replaces a file atomically: writes a temporary file beside it, fsyncs, renames, fsyncs the
 * folder. After a crash either the old file or the new one is there, whole. */
int path_write(const char *path, const void *bytes, size_t len, mode_t mode, struct err *err);
int path_write_at(int dir, const char *name, const char *shown, const void *bytes, size_t len,
		  mode_t mode, struct err *err);
/* Makes a new file: removes an old file or link of this name first, and never follows a link.
 * Returns a descriptor, or -1 and errno. */
int path_open_new(const char *path, int flags, mode_t mode);
int path_open_new_at(int dir, const char *name, int flags, mode_t mode);
/* Writes all bytes; retries after signals. -1 and errno. */
int fd_write_all(int fd, const void *from, size_t len);
int path_fsync_dir(const char *dir, struct err *err);
bool path_exists(const char *path); /* true also for a link that leads nowhere */
/* Removes a file or a tree, however deep; follows no links. Success if absent. ERR_LOCAL. */
int path_remove_tree(const char *path, struct err *err);
/* The same, and first gives the owner rights to folders that lack them. */
int path_remove_closed_tree(const char *path, struct err *err);
/* path_remove_closed_tree() in the open folder `dir`; sets errno, too. */
int path_remove_tree_at(int dir, const char *name, const char *shown, struct err *err);
/* Pins the output folder: from here on path_open_dir(dir) opens the folder of fd, even if that path
 * is moved or replaced later. Keeps a duplicate of fd. fd -1: unpins. Call before threads use
 * path_open_dir(). */
void path_hold_dir(const char *dir, int fd);
/* Opens the folder pinned under this very path, else the one there. A descriptor, or -1 and errno.
 */
int path_open_dir(const char *dir);
/* Opens a file or folder below `dir` without following a link on the way. name must be
 * path_is_safe(). flags are open()'s, without O_CREAT; O_NOFOLLOW and O_NONBLOCK are added. Returns
 * a descriptor, or -1 and errno. */
int path_open_below(int dir, const char *name, int flags);
/* Opens in the same way the folder that contains name; *base: the last part of name. */
int path_open_parent(int dir, const char *name, const char **base);
/* Locks a file exclusively; makes it if needed. The kernel frees the lock when *fd is closed or the
 * process ends, even if a child lives on. `note` replaces the file's text and says which process
 * holds the lock; messages show its first line. ERR_BUSY: a process holds it, perhaps this one. A
 * process that holds the lock must not open the file in any other way. One thread. */
int path_lock(const char *path, const char *note, int *fd, struct err *err);
/* Whether any process, this one included, holds the lock. The first line of the holder's note is
 * appended to *note, unless that is NULL. */
bool path_is_locked(const char *path, struct str *note);
/* Opens a log for appending; makes it if needed (0600). First renames a log of more than `most`
 * bytes to "PATH.1". Returns a descriptor, or -1 and errno. */
int path_open_log(const char *path, int64_t most);
/* Whether a relative path cannot leave its folder and cannot confuse a terminal: no "..", ".",
 * empty part, leading '/', backslash or control character, valid UTF-8, at most 1024 bytes, no part
 * over 255. */
bool path_is_safe(const char *path);
/* Whether the path leads into a ".git": git runs files there, and a clone does not bring them. */
bool path_in_git_folder(const char *path);
/* Suffix of a file while burst fetches it. */
#define PATH_PART ".part"
/* Whether a pod may give an output this path below the output folder: a safe path, not into git's
 * folder, and no name that burst itself uses there ("x.part"). */
bool path_may_be_output(const char *path);
/* Bytes that this user may still write on the file system of path; -1: unknown. */
int64_t path_free_bytes(const char *path);
int64_t fd_free_bytes(int fd);

#endif
