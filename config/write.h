/* write.h - settings as text again, in burst.cfg's syntax: for a file that another `burst` reads.
 */
#ifndef BURST_CONFIG_WRITE_H
#define BURST_CONFIG_WRITE_H

#include "base/section.h"
#include "base/str.h"

/* All values that files and flags set, one "key = value;" a line. Secrets and keys that only the
 * user's own file may have are left out: a client that reads the text reads that file too.
 * leave_out: further keys, NULL-terminated; or NULL. */
void config_print(struct str *to, const struct section *s, const char *const *leave_out);
/* One text in quotes. */
void config_quote(struct str *to, const char *text);

#endif
