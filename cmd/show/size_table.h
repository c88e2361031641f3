/* size_table.h - what a stream of requests asks of a pool, and the table of the sizes it may
 * have. */
#ifndef BURST_CMD_SHOW_SIZE_TABLE_H
#define BURST_CMD_SHOW_SIZE_TABLE_H

#include <jansson.h>
#include <stdbool.h>

#include "plan/demand.h"

struct size_request {
	double per_s, service_s, load;
	double price_h; /* of a pod; 0: not known */
	char price_from[64];
	bool has_goal;
	struct demand_goal goal;
};

void size_table_print(const struct size_request *r, int pods);
json_t *size_table_json(const struct size_request *r, int chosen);

#endif
