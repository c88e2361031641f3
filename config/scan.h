/* scan.h - checks a config's text before libconfig parses it, for what libconfig accepts without a
 * warning: bytes after a NUL, a comment or a text without an end, a number that does not fit and is
 * cut, and files pulled in by @include. */
#ifndef BURST_CONFIG_SCAN_H
#define BURST_CONFIG_SCAN_H

#include "base/err.h"

/* ERR_CONFIG with "shown:line: ..." */
int scan_text(const char *text, size_t len, const char *shown, struct err *err);

#endif
