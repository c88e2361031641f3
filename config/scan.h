/* scan.h - a look at a config's text before libconfig sees it, for what libconfig takes in silence:
 * bytes after a NUL, a comment or a text without an end, a number that does not fit and is cut, and
 * files pulled in by @include. */
#ifndef BURST_CONFIG_SCAN_H
#define BURST_CONFIG_SCAN_H

#include "base/err.h"

/* ERR_CONFIG with "shown:line: ..." */
int scan_text(const char *text, size_t len, const char *shown, struct err *err);

#endif
