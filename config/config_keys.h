/* config_keys.h - the table of burst's own keys in burst.cfg. Help, checks and the example file of
 * `burst init` come from it. */
#ifndef BURST_CONFIG_CONFIG_KEYS_H
#define BURST_CONFIG_CONFIG_KEYS_H

#include "base/err.h"
#include "base/section.h"

extern const struct option_spec config_keys[];

/* The allowed values of a key ("caps.max_cost"), for messages and help. NULL: all of its type. */
const char *keys_range(const char *path);

/* Checks bounds of single keys, and names that no provider accepts. Paths are as in
 * "caps.max_cost". Adds mistakes to m and returns 0; if m is NULL, the first one is an error. */
int keys_check_ranges(const struct section *top, struct mistakes *m, struct err *err);

#endif
