/* late.h - shared libraries that are loaded when they are first needed, and not with the program:
 * together they and what they bring along take longer to load than most commands run. Loaded with
 * the program, libcurl, libssh2, libcrypto and libarchive made "burst --version" take 16.0 ms
 * instead of 1.4, and "burst ps" 14.1 ms of CPU instead of 7.4 (two cores, Debian 12, 40 turns of
 * each in one run). Types and constants come from their headers; only functions are looked up. */
#ifndef BURST_BASE_LATE_H
#define BURST_BASE_LATE_H

#include "err.h"
#include "mem.h"

struct late_function {
	const char *name;
	void *to; /* where the pointer to it is kept */
};

/* A struct's member for `PREFIX##name`, and the row that fills it in. */
#define LATE_MEMBER(prefix, name)  __typeof__(prefix##name) *name;
#define LATE_ROW(of, prefix, name) {#prefix #name, &(of).name},

/* Loads `file` for the rest of the process and looks up all functions. ERR_LOCAL names the Debian
 * package that holds the file, or the missing function. */
int late_load(const char *file, const char *package, const struct late_function *list, size_t count,
	      struct err *err);

#endif
