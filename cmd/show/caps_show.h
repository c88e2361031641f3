/* caps_show.h - prints what is left of caps over runs. */
#ifndef BURST_CMD_SHOW_CAPS_SHOW_H
#define BURST_CMD_SHOW_CAPS_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "runs/caps.h"

/* Prints a line for each cap. */
void caps_show(FILE *to, const struct caps *caps);
/* New reference; in tests/schema/plan.json. */
json_t *caps_to_json(const struct caps *caps);

#endif
