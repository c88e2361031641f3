/* offers.h - what the providers offer now, and which of it a run would rent */
#ifndef BURST_CMD_LAUNCH_OFFERS_H
#define BURST_CMD_LAUNCH_OFFERS_H

#include <jansson.h>

#include "engine/engine.h"
#include "engine/past.h"
#include "order.h"
#include "runs/runs.h"

/* ---- offer list ----
 * Fetches what the providers would rent now, for `burst plan` and `burst offers`. */

struct known_offer {
	struct offer offer;
	struct offer_past past;
	int provider; /* index in the config's list */
	bool avoided;
};

enum offers_where {
	OFFERS_ANYWHERE,
	OFFERS_AT_VOLUME, /* only where the order's volume is, or would be created */
};

/* Fetches the offers of one provider that the order wants, for at most most_ms. ERR_CONFIG: a run
 * would never rent there. op_result_free(out) on success. */
int offers_fetch(const struct order *o, const struct engine_provider *p, enum offers_where where,
		 int64_t most_ms, struct op_result *out, struct err *err);
enum { OFFERS_ASK_MS = 60 * 1000 }; /* how long a command waits for a reply that it shows */
/* Asks the run's open providers in turn, and warns of those that fail. Sorted: OFFERS_AT_VOLUME in
 * the order in which a run would take them, OFFERS_ANYWHERE by price. The caller frees *out.
 * Returns -1 if every provider failed, else 0, even if none has an offer. */
int offer_list_fetch(const struct order *o, const struct run *run, enum offers_where where,
		     struct known_offer **out, size_t *count, struct err *err);
/* Drops the offers without what job.needs names, and notes how many. */
void offer_list_keep_fitting(const struct order *o, struct known_offer *offers, size_t *count);
void offer_list_print(FILE *to, const struct known_offer *offers, size_t count);
/* The object of one offer for --json. New reference. */
json_t *known_offer_json(const struct known_offer *k);

/* ---- wanted ----
 * The offers that a plan may use: those that a run would rent, whether a provider, a file or a
 * price list has them. */

/* Why an offer is left out, in the order in which that is checked. */
enum not_wanted {
	NOT_ITS_PROVIDER, /* not in `provider` */
	NOT_ITS_PLACE,    /* not in the provider's `cloud` or `datacenters` */
	NOT_AT_VOLUME,    /* elsewhere than the config's volume */
	NOT_ITS_GPU,      /* not in `gpu`, or not as many */
	NOT_SPOT,         /* spot = false */
	NOT_IN_STOCK,
	NOT_WITH_NEEDS,    /* without what job.needs names */
	NOT_AT_PRICE,      /* above caps.max_price_per_hour */
	NOT_AFTER_FAILURE, /* avoided: its last pod was bad; it is left out if there is any other */
	NOT_WANTED_KINDS
};

/* The caller sets order and store. */
struct wanted {
	const struct order *order;
	struct store *store;
	struct offer *list; /* after wanted_end(): in the order in which a run would take them */
	size_t count;
	size_t kept;           /* after these in the list: pods that other runs keep */
	struct offer *avoided; /* until wanted_end(): these would do */
	size_t avoided_count;
	size_t left_out[NOT_WANTED_KINDS];
	struct offer cheapest;      /* of those above the cap on the price */
	bool unasked;               /* no provider has narrowed the offers */
	struct volume_row *volumes; /* those of the config's volume that the ledger knows */
	size_t volume_count;
};

/* Adds what a run would rent of these offers of an open provider, which has narrowed them to the
 * config's GPUs and places. */
void wanted_add(struct wanted *w, const struct offer *from, size_t count);
void wanted_add_known(struct wanted *w, const struct known_offer *from, size_t count);
/* The same for offers that no provider has narrowed: saved ones and list prices. avoided: whether
 * each is marked so; NULL: none is. */
void wanted_add_unasked(struct wanted *w, const struct config *config, const struct offer *from,
			size_t count, const bool *avoided);
/* Call when all have been added: sorts them; if there are no others, takes those to avoid. */
void wanted_end(struct wanted *w);
/* Call last: adds pods that other runs keep, as keep_warm_offers() lists them. */
void wanted_add_kept(struct wanted *w, const struct offer *kept, size_t count);
/* Notes how many lack what job.needs names, and whose version of CUDA is unknown. */
void wanted_log_needs(const struct wanted *w);
/* Notes how many were left out and why, a line for each reason. */
void wanted_log_left_out(const struct wanted *w);
/* ERR_CAP if nothing is left because of caps.max_price_per_hour. */
int wanted_check_price(const struct wanted *w, struct err *err);
void wanted_free(struct wanted *w);

static inline void wanted_free_cleanup(struct wanted *w)
{
	wanted_free(w);
}

#endif
