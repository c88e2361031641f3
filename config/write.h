/* write.h - a text in burst.cfg's syntax. */
#ifndef BURST_CONFIG_WRITE_H
#define BURST_CONFIG_WRITE_H

#include "base/str.h"

/* In quotes. */
void config_quote(struct str *to, const char *text);

#endif
