/* given.h - writes the settings of a config that no file holds as a burst.cfg for people. */
#ifndef BURST_CONFIG_GIVEN_H
#define BURST_CONFIG_GIVEN_H

#include "base/str.h"
#include "config.h"

/* Every value but those of the user's own file, and the providers in any case. Paths below the
 * config's folder become relative to it. Keys that only the user's own file may have are left out.
 */
void config_print_given(struct str *to, const struct config *c);

#endif
