/* files.h - raises how many descriptors this process may have. Many systems give a program 1,024 at
 * first and far more on request. Children get the old limit: programs that use select() fail with a
 * high one, and old programs that close every possible descriptor become slow. */
#ifndef BURST_BASE_FILES_H
#define BURST_BASE_FILES_H

/* Raises the soft limit to the hard one, once; what the limit is now. Not a failure when it cannot
 * be raised. */
long files_raise(void);
/* How many are open; a guess where the system does not say. */
int files_open(void);
/* Between fork and exec, by guard_leave(): the limit that this process began with. Calls nothing
 * that may not be called there. */
void files_restore_limit(void);

#endif
