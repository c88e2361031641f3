/* wanted.h - the offers that a plan may use: those that a run would rent, whether a provider, a
 * file or a price list has them. */
#ifndef BURST_CMD_LAUNCH_WANTED_H
#define BURST_CMD_LAUNCH_WANTED_H

#include "launch.h"

/* Why an offer is left out, in the order in which that is checked. */
enum not_wanted {
	NOT_ITS_PROVIDER, /* not in `provider` */
	NOT_ITS_PLACE,    /* not in the provider's `cloud` or `datacenters` */
	NOT_AT_VOLUME,    /* elsewhere than the config's volume */
	NOT_ITS_GPU,      /* not in `gpu`, or not as many */
	NOT_SPOT,         /* spot = false */
	NOT_IN_STOCK,
	NOT_AT_PRICE,      /* above caps.max_price_per_hour */
	NOT_AFTER_FAILURE, /* avoided: its last pod was bad; it is left out if there is any other */
	NOT_WANTED_KINDS
};

struct wanted {
	struct offer *list; /* in the order in which they came */
	size_t count;
	struct offer *avoided; /* until wanted_end(): these would do */
	size_t avoided_count;
	size_t left_out[NOT_WANTED_KINDS];
	struct offer cheapest;      /* of those above the cap on the price */
	struct volume_row *volumes; /* those of the config's volume that the ledger knows */
	size_t volume_count;
};

/* Adds what a run would rent of these offers of an open provider, which has narrowed them to the
 * config's GPUs and places. */
void wanted_add(const struct launch *l, struct wanted *w, const struct offer *from, size_t count);
/* The same for offers that no provider has narrowed: saved ones and list prices. avoided: whether
 * each is marked so; NULL: none is. */
void wanted_add_unasked(struct launch *l, struct wanted *w, const struct offer *from, size_t count,
			const bool *avoided);
/* All have been added: takes the avoided ones if there are no others. */
void wanted_end(struct wanted *w);
/* Notes how many were left out and why, a line for each reason. */
void wanted_tell(const struct wanted *w);
/* ERR_CAP if nothing is left because of caps.max_price_per_hour. */
int wanted_check_price(const struct wanted *w, struct err *err);
void wanted_free(struct wanted *w);

static inline void wanted_free_cleanup(struct wanted *w)
{
	wanted_free(w);
}

#endif
