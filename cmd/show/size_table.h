/* size_table.h - prints the table of sizes of a pool for a stream of requests. */
#ifndef BURST_CMD_SHOW_SIZE_TABLE_H
#define BURST_CMD_SHOW_SIZE_TABLE_H

#include <jansson.h>
#include <stdbool.h>

#include "plan/demand.h"

struct size_request {
	double per_s, service_s, load;
	double price_h; /* of a pod; 0: unknown */
	char price_from[64];
	bool has_goal;
	struct demand_goal goal;
};

void size_table_print(const struct size_request *r, int pods);
json_t *size_table_json(const struct size_request *r, int chosen);

#endif
