/* folder.h - a folder of its own for a test program, removed with all that is in it. */
#ifndef BURST_TESTS_FOLDER_H
#define BURST_TESTS_FOLDER_H

#include "scratch.h"

extern char folder[FOLDER_MAX]; /* its path; good once it is made */

/* For a group's set-up and its end. */
int make_folder(void **state);
int drop_folder(void **state);

/* The same, and the program works in it meanwhile. */
int enter_folder(void **state);
int leave_folder(void **state);

/* Path of a name in the folder; to be freed. */
char *in_folder(const char *name);

#endif
