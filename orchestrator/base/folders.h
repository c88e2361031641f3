/* folders.h - home and XDG folders, folders of one process, copies that share blocks */
#ifndef BURST_BASE_FOLDERS_H
#define BURST_BASE_FOLDERS_H

#include "err.h"

/* ---- home ----
 * Finds this user's home and XDG folders, and shortens paths for messages. */

/* $HOME, else the home of the password file, else NULL. The caller frees it. */
char *home_dir(void);
/* The home of the password file, which differs from $HOME under `sudo -E`. NULL: none. The caller
 * frees it. */
char *home_of_account(void);
/* $name if it is an absolute path, else home + "/" + below. NULL: no home. The caller frees it. */
char *home_xdg(const char *name, const char *below);
/* The path with the home folder written as "~". The caller frees it. */
char *home_shorten(const char *path);

/* ---- clone ----
 * Copies of whole files that share their blocks where the file system can do that. */

/* Copies all of `from`, whatever its offset, into the empty file `to`; the two share blocks if the
 * file system can do that. Later changes of one do not reach the other. -1 and errno. */
int fd_clone(int from, int to);

/* ---- held folder ----
 * Folders for the files of one process, which the next one removes if it died. */

/* Makes a folder with a random name in `dir`, and makes `dir` if needed. First removes the folders
 * in `dir` whose processes have died; names that begin with a dot stay. *lock: a descriptor that
 * keeps the new folder from being removed until the caller closes it. Returns the folder's path,
 * which the caller frees; NULL on ERR_LOCAL, then *lock is unchanged. */
char *held_folder_new(const char *dir, int *lock, struct err *err);

#endif
