/* given.h - what a command line says, as a burst.cfg for people. */
#ifndef BURST_CONFIG_GIVEN_H
#define BURST_CONFIG_GIVEN_H

#include "base/str.h"
#include "config.h"

/* Everything but what the user's own file says, and the providers in any case. Paths below the
 * config's folder are relative to it. Keys that only the user's own file may have are left out. */
void config_print_given(struct str *to, const struct config *c);

#endif
