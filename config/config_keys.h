/* config_keys.h - every key of burst.cfg that belongs to burst itself, in one place. Help, checks
 * and the example file of `burst init` come from these tables. */
#ifndef BURST_CONFIG_CONFIG_KEYS_H
#define BURST_CONFIG_CONFIG_KEYS_H

#include "base/err.h"
#include "base/mistakes.h"
#include "base/section.h"

extern const struct option_spec config_keys[];

/* The allowed values of a key ("caps.max_cost"), for messages and help; NULL: all of its type. */
const char *keys_range(const char *path);

/* Checks bounds of single keys, and names that no provider accepts; paths as in "caps.max_cost".
 * Mistakes go to m and the result is 0; with m == NULL the first one is an error. */
int keys_check_ranges(const struct section *top, struct mistakes *m, struct err *err);

#endif
