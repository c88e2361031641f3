/* calibrate.h - what `burst calibrate` measured, for the command and for what it prints. */
#ifndef BURST_CMD_LAUNCH_CALIBRATE_H
#define BURST_CMD_LAUNCH_CALIBRATE_H

#include <jansson.h>
#include <stdio.h>

#include "base/gpus.h"
#include "estimate.h"

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

struct launch;
/* Chooses the GPUs to measure: those of the config, else the cheapest that fit, with their batch
 * sizes and expectations. ERR_NO_CAPACITY: none can be rented. */
int calibrate_choose_cards(struct launch *l, struct calibrate_card *cards, size_t *count,
			   struct err *err);
/* The ledger's expectations for the offer's card now. */
int calibrate_view_card(struct launch *l, const struct offer *offer, struct calibrate_view *out,
			struct err *err);
/* Total segments of the card's batches. */
size_t calibrate_segments(const struct calibrate_card *c, const struct job_needs *needs);
/* Dollars of a median cold start of the card. */
double calibrate_cold_usd(const struct calibrate_card *c);
/* Rents the card within what is left to be spent, and renders there. Its exit status; -1: nothing
 * was begun. */
int calibrate_rent(const struct cmd_context *ctx, struct calibrate_card *c, int64_t left_microusd,
		   struct err *err);
/* Measures all of them, with most_microusd in all. The worst exit status; -1 with *err: there was
 * one card alone, and nothing was begun. */
int calibrate_measure(struct launch *l, struct calibrate_card *cards, size_t count,
		      int64_t most_microusd, struct err *err);

/* Printed before it rents. */
void calibrate_show_plan(FILE *to, const struct calibrate_card *cards, size_t count,
			 int64_t most_microusd);
/* Prints measured and predicted curves of each card, then compares the cards. */
void calibrate_show(FILE *to, const struct calibrate_card *cards, size_t count);
/* New reference; tests/schema/calibrate.json. */
json_t *calibrate_to_json(const struct calibrate_card *cards, size_t count, int status);

#endif
