/* status_line.h - prints the summary of a ledger as one line, and as JSON. */
#ifndef BURST_CMD_SHOW_STATUS_LINE_H
#define BURST_CMD_SHOW_STATUS_LINE_H

#include "config/config.h"
#include "runs/glance.h"
#include "unattended/queue.h"

struct status_line {
	const char *ledger; /* "read" | "none" | "locked" */
	struct glance glance;
	struct queue_open queued;
	struct config_cap per_day; /* from the user's own file */
};

void status_line_print(const struct status_line *s);
/* tests/schema/status.json */
void status_line_print_json(const struct status_line *s);

#endif
