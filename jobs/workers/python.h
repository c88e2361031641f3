/* python.h - the Python workers that burst contains: the harness, and the files of each engine. */
#ifndef BURST_JOBS_WORKERS_PYTHON_H
#define BURST_JOBS_WORKERS_PYTHON_H

#include "job.h"

enum { PYTHON_FILES_MAX = 24 }; /* of one engine, with the harness */

/* What starts the harness. A worker of the user's own that names it gets the harness too. */
extern const char python_harness_main[];
/* NULL-terminated: the files that every worker of the harness needs beside its engine. */
extern const char *const python_harness[];

/* A file of jobs/workers/, or a lock file of jobs/workers/lock/, by its name there. Its data ends
 * with a zero byte that len does not count. NULL: there is no such file. */
const struct job_file *python_file(const char *name);

#endif
