/* file_kind.h - tells what a file is from its first bytes, and refuses those that burst cannot use.
 */
#ifndef BURST_BASE_FILE_KIND_H
#define BURST_BASE_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

/* Refuses a file that cannot be spoken: ERR_CONFIG says what the file is and what to do instead.
 * bytes: the file's first 4 KiB, or all of it. is_text_name: the file's name says that it is text,
 * so it is refused only if it surely is something else. Without such a name it is always refused.
 */
int file_kind_check_spoken(const char *name, const char *bytes, size_t len, bool is_text_name,
			   struct err *err);
/* Refuses in the same way a file that cannot be a burst.cfg. A file called .cfg may hold any text.
 */
int file_kind_check_config(const char *name, const char *bytes, size_t len, struct err *err);

#endif
