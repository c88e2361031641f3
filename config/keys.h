/* keys.h - every key of burst.cfg that belongs to burst itself, in one place. Help, checks and the
 * example file of `burst init` come from these tables. */
#ifndef BURST_CONFIG_KEYS_H
#define BURST_CONFIG_KEYS_H

#include "base/err.h"
#include "base/section.h"

extern const struct option_spec config_keys[];

/* Bounds that hold for some of them; paths as in "caps.max_cost". */
int keys_check_ranges(const struct section *top, struct err *err);

#endif
