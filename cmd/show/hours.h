/* hours.h - shows in which hours of the week pods run: as a table of a page, and for programs. */
#ifndef BURST_CMD_SHOW_HOURS_H
#define BURST_CMD_SHOW_HOURS_H

#include <jansson.h>

#include "base/str.h"
#include "plan/forecast.h"

/* "hours" of `report --json` (tests/schema); a new reference. */
json_t *hours_json(const struct forecast *f);
/* Appends a section of the page that needs no script. */
void hours_append_table(struct str *to, const struct forecast *f);

#endif
