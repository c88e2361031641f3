/* path.h - files and folders of this machine: small whole-file reads and writes, kernel locks, and
 * which names are safe. */
#ifndef BURST_BASE_PATH_H
#define BURST_BASE_PATH_H

#include <sys/types.h>

#include "err.h"
#include "str.h"

/* dir + "/" + name; an absolute name stands alone. The caller frees it. */
char *path_join(const char *dir, const char *name);
/* The folder part ("." if there is none), which the caller frees; and the last part, which points
 * into path. */
char *path_dir(const char *path);
const char *path_base(const char *path);
/* Creates the folder and its parents with this mode; an existing folder is success. */
int path_mkdirs(const char *path, mode_t mode, struct err *err);
/* The folder as it is called below root, however the two are written; NULL: it is not there, or
 * elsewhere. The caller frees it. */
char *path_below(const char *root, const char *dir);
/* Whether the path is the folder or lies below it, by their names. */
bool path_is_below(const char *path, const char *folder);
/* Whole file into *out (at most max bytes, ERR_CONFIG when larger; ERR_NOT_FOUND when absent). */
int path_read(const char *path, size_t max, struct str *out, struct err *err);
/* The same of a plain file alone: no link, and no pipe, socket, terminal or device, which would be
 * read without end, or waited for while a pod bills (ERR_CONFIG). For every file of a project. A
 * path that may lead through links is resolved first, by realpath(), and what it leads to is judged
 * by the caller. */
int path_read_plain(const char *path, size_t max, struct str *out, struct err *err);
int path_read_plain_at(int dir, const char *name, const char *shown, size_t max, struct str *out,
		       struct err *err);
/* A descriptor of such a file. dir: AT_FDCWD, or the folder that name is in. */
int path_open_plain_at(int dir, const char *name, const char *shown, struct err *err);
/* The same of what is open; path is for messages. */
int fd_read_all(int fd, const char *path, size_t max, struct str *out, struct err *err);
/* Writes beside, fsyncs, renames into place, fsyncs the folder: afterwards the old file or the new
 * one is there, whole. */
int path_write(const char *path, const void *bytes, size_t len, mode_t mode, struct err *err);
int path_write_at(int dir, const char *name, const char *shown, const void *bytes, size_t len,
		  mode_t mode, struct err *err);
/* A file that was not there before, whatever stood under this name: a link is removed, not gone
 * through. A descriptor, or -1 and errno. */
int path_open_new(const char *path, int flags, mode_t mode);
int path_open_new_at(int dir, const char *name, int flags, mode_t mode);
/* All of it, whatever interrupts; -1 and errno. */
int fd_write_all(int fd, const void *from, size_t len);
int path_fsync_dir(const char *dir, struct err *err);
bool path_exists(const char *path);
/* Removes a file or a whole tree, however deep, without following links out of it; absent is
 * success. */
int path_remove_tree(const char *path, struct err *err);
/* Also where its owner may not enter, read or change some of the folders. */
int path_remove_closed_tree(const char *path, struct err *err);
/* The same of what lies in folder `dir`; sets errno, too. */
int path_remove_tree_at(int dir, const char *name, const char *shown, struct err *err);
/* Pins the output folder: from here on path_open_dir(dir) opens the folder of fd, even if that path
 * is moved or replaced later. Keeps a duplicate of fd. fd -1: unpins. Call before threads use
 * path_open_dir(). */
void path_hold_dir(const char *dir, int fd);
/* A descriptor, to be closed: of the folder that is held under this very path, else of what stands
 * there. -1 and errno. */
int path_open_dir(const char *dir);
/* What lies below a folder, through no link: name is path_is_safe(). flags are open()'s, without
 * O_CREAT; O_NOFOLLOW and O_NONBLOCK are added. -1 and errno. */
int path_open_below(int dir, const char *name, int flags);
/* The folder that it lies in; *base: the last part of name. */
int path_open_parent(int dir, const char *name, const char **base);
/* An exclusive kernel lock on the file, made if needed; freed when *fd is closed or the process
 * ends, even if a child of it lives. ERR_BUSY if any process holds it, this one included. `note`
 * replaces the file's text and says which process holds the lock; messages show its first line. No
 * other function may open the file in a process that holds its lock. One thread. */
int path_lock(const char *path, const char *note, int *fd, struct err *err);
/* Whether any process holds it, this one included; takes nothing. The first line of the holder's
 * note is appended to note, unless that is NULL. */
bool path_is_locked(const char *path, struct str *note);
/* For appending, made if needed (0600). One of more than `most` bytes is first renamed to "PATH.1".
 * A descriptor, or -1 and errno. */
int path_open_log(const char *path, int64_t most);
/* A relative path that cannot leave its folder and cannot confuse a terminal: no "..", ".", empty
 * part, leading '/', backslash or control character, valid UTF-8, at most 1024 bytes, no part over
 * 255. */
bool path_is_safe(const char *path);
/* Whether it leads into a folder that is git's own: what lies there is run by git, and no clone
 * brings it along. */
bool path_in_git_folder(const char *path);
/* Suffix of a file while it is fetched. */
#define PATH_PART ".part"
/* Whether a pod may call an output so, below an output folder: a safe path, not into git's folder,
 * and no name that burst itself uses there ("x.part"). */
bool path_may_be_output(const char *path);
/* Bytes free for us on the file system of path, -1 when unknown. */
int64_t path_free_bytes(const char *path);
int64_t fd_free_bytes(int fd);

#endif
