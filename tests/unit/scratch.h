/* scratch.h - a folder for one test. folder.h has one for a whole program. */
#ifndef BURST_TESTS_SCRATCH_H
#define BURST_TESTS_SCRATCH_H

/* Makes a folder below TMPDIR, for remove_folder(). Fails the test if it cannot be made. */
char *new_folder(void);

/* Removes it with all that is in it and frees its path; returns 0 or -1. */
int remove_folder(char *path);

#endif
