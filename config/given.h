/* given.h - writes the settings of a config that no file holds as a burst.cfg for people. */
#ifndef BURST_CONFIG_GIVEN_H
#define BURST_CONFIG_GIVEN_H

#include "base/str.h"
#include "config.h"

/* Writes every value except those of the user's own file, and always the providers. Paths below the
 * config's folder become relative to it. Leaves out user-only keys. */
void config_print_given(struct str *to, const struct config *c);

#endif
