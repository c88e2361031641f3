/* planned.h - compares a run with its plan. */
#ifndef BURST_CMD_SHOW_PLANNED_H
#define BURST_CMD_SHOW_PLANNED_H

#include <stdbool.h>
#include <stdio.h>

#include "store/store.h"

/* Prints "planned again: " with the reason and the change, for each time; nothing if the plan has
 * held. */
void planned_say_replans(FILE *to, const struct run_row *run);
/* Writes "planned 52s, $0.0210; was 49s, $0.0200 (-5% cost)". Returns false if nothing was planned,
 * or the run did not get that far. */
bool planned_compare(char *to, size_t room, const struct run_row *run, const struct pod_row *pods,
		     size_t count);

#endif
