/* sizing.h - prints what cards cost: the catalog of GPUs, calibrations. */
#ifndef BURST_CMD_SHOW_SIZING_H
#define BURST_CMD_SHOW_SIZING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/gpus.h"
#include "plan/cost.h"
#include "runs/estimate.h"

/* ---- what `burst calibrate` measured ---- */

enum { CALIBRATE_SIZES_MOST = 16, CALIBRATE_CARDS_MOST = 16 };

struct calibrate_point {
	int size, count;             /* number of segments, and of batches of this size */
	double seconds, predicted_s; /* of one batch; predicted before; 0: unknown */
};

/* Expectations for a card, before and after. */
struct calibrate_view {
	struct plan_machine machine;
	char from[ESTIMATE_FROM];
	bool known;
	double usd_each; /* for the whole job on one pod */
};

struct calibrate_card {
	struct offer offer;
	char gpu[GPU_MAX + 8]; /* as in the config: "L40S:2" */
	int sizes[CALIBRATE_SIZES_MOST];
	size_t size_count;
	double about_usd; /* 0: unknown */
	char run[24];     /* "": none began */
	int status;       /* of its run */
	bool had;         /* a run began */
	char why[160];    /* why there is no measurement; "": there is one */
	int64_t cost_microusd;
	double cold_s; /* from the create call to the first batch; 0: it did not get that far */
	struct calibrate_view before, after;
	struct calibrate_point points[CALIBRATE_SIZES_MOST];
	size_t point_count;
};

/* Printed before it rents. */
void calibrate_show_plan(FILE *to, const struct calibrate_card *cards, size_t count,
			 int64_t most_microusd);
/* Prints measured and predicted curves of each card, then compares the cards. */
void calibrate_show(FILE *to, const struct calibrate_card *cards, size_t count);
/* New reference; tests/schema/calibrate.json. */
json_t *calibrate_to_json(const struct calibrate_card *cards, size_t count, int status);

#endif
