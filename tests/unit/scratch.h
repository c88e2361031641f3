/* scratch.h - folders and files for tests: the one place that makes temporary ones. folder.h has a
 * folder for a whole program. */
#ifndef BURST_TESTS_SCRATCH_H
#define BURST_TESTS_SCRATCH_H

#include <stddef.h>

enum { FOLDER_MAX = 256 };

/* Makes a folder below TMPDIR, for remove_folder(). Fails the test if it cannot be made. */
char *new_folder(void);
/* The same, with its path in the caller's buffer, for path_remove_tree(). */
void new_folder_at(char to[FOLDER_MAX]);

/* Removes it with all that is in it and frees its path; returns 0 or -1. */
int remove_folder(char *path);

/* Writes a file that only its owner can read, and makes its folders. Fails the test if it cannot.
 */
void put_bytes(const char *path, const void *bytes, size_t len);
void write_text(const char *path, const char *text);

#endif
