/* calibrate.h - chooses what `burst calibrate` measures, and measures it. */
#ifndef BURST_CMD_LAUNCH_CALIBRATE_H
#define BURST_CMD_LAUNCH_CALIBRATE_H

#include <jansson.h>
#include <stdio.h>

#include "cmd/show/sizing.h"
#include "estimate.h"

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
int calibrate_rent(const struct launch *outer, struct calibrate_card *c, int64_t left_microusd,
		   struct err *err);
/* Measures all of them, with most_microusd in all. The worst exit status; -1 with *err: there was
 * one card alone, and nothing was begun. */
int calibrate_measure(struct launch *l, struct calibrate_card *cards, size_t count,
		      int64_t most_microusd, struct err *err);

#endif
