/* python.h - the workers that burst embeds: the one of espeak, the harness for Python, and the
 * files of each engine in it. */
#ifndef BURST_JOBS_WORKERS_PYTHON_H
#define BURST_JOBS_WORKERS_PYTHON_H

#include "job.h"

enum { PYTHON_FILES_MAX = 24 }; /* for one engine, with the harness */

/* "espeak-worker", for pods of this machine's architecture */
extern const struct job_file espeak_worker_file;

/* The program that starts the harness. A user's own worker that names it gets the harness too. */
extern const char python_harness_main[];
/* The harness: files that every Python worker needs beside its engine. NULL-terminated. */
extern const char *const python_harness[];

/* Finds a file of jobs/workers/ or jobs/workers/lock/ by its name there. Its data ends with a zero
 * byte that len does not count. NULL: no such file. */
const struct job_file *python_file(const char *name);

#endif
