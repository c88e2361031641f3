/* scan.h - checks a config's text before libconfig parses it, for what libconfig accepts without a
 * warning: bytes after a NUL, an unterminated comment or text, a number that is too large and cut,
 * and @include. */
#ifndef BURST_CONFIG_SCAN_H
#define BURST_CONFIG_SCAN_H

#include "base/err.h"

/* ERR_CONFIG with "shown:line: ..." */
int scan_text(const char *text, size_t len, const char *shown, struct err *err);

#endif
