/* python.h - the Python workers that burst carries inside: the harness, and what each engine adds
 * to it. */
#ifndef BURST_JOBS_WORKERS_PYTHON_H
#define BURST_JOBS_WORKERS_PYTHON_H

#include "job.h"

enum { PYTHON_FILES_MAX = 24 }; /* of one engine, with the harness */

/* What starts the harness; a worker of the user's own that names it gets the harness with it. */
extern const char python_harness_main[];
/* NULL-terminated: what every worker of the harness needs beside its engine. */
extern const char *const python_harness[];

/* A file of jobs/workers/, or a lock file of jobs/workers/lock/, by its name there. Its data ends
 * with a zero byte that len does not count. NULL: there is no such file. */
const struct job_file *python_file(const char *name);

#endif
