/* file_kind.h - tells a file's kind from its first bytes, and refuses unusable kinds. */
#ifndef BURST_BASE_FILE_KIND_H
#define BURST_BASE_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

/* Refuses a file that cannot be spoken: ERR_CONFIG says what it is and what to do. bytes: its first
 * 4 KiB, or all. is_text_name: its name says that it is text; if not, all kinds are refused. */
int file_kind_check_spoken(const char *name, const char *bytes, size_t len, bool is_text_name,
			   struct err *err);
/* Refuses a file that cannot be a burst.cfg. A file called .cfg may hold any text. */
int file_kind_check_config(const char *name, const char *bytes, size_t len, struct err *err);

#endif
