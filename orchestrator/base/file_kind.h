/* file_kind.h - tells what a file is from its first bytes, and what to do with it instead. */
#ifndef BURST_BASE_FILE_KIND_H
#define BURST_BASE_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

/* ERR_CONFIG says what the file is and what to do, if it cannot be spoken. named: its name says
 * that it is text, so only what is surely something else is refused; else all is. */
int file_kind_check_spoken(const char *name, const char *bytes, size_t len, bool named,
			   struct err *err);
/* The same for what cannot be a burst.cfg. A file called .cfg may hold any text. */
int file_kind_check_config(const char *name, const char *bytes, size_t len, struct err *err);

#endif
