/* held_folder.h - folders for the files of one process, which the next one removes if it died. */
#ifndef BURST_BASE_HELD_FOLDER_H
#define BURST_BASE_HELD_FOLDER_H

#include "err.h"

/* Makes a folder with a random name in `dir`, and makes `dir` if needed. First removes the folders
 * in it whose processes have died; names that begin with a dot stay. *lock holds the new folder
 * until the caller closes it. Returns the folder's path, which the caller frees; NULL on ERR_LOCAL,
 * then *lock is unchanged. */
char *held_folder_new(const char *dir, int *lock, struct err *err);

#endif
