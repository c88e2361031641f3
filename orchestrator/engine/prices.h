/* prices.h - the prices of offers as earlier looks found them, in the ledger.
 *
 * A kind of offer is what costs the same: a provider's GPU, how many, region, spot or not. Of each,
 * the ledger keeps the price and the stock when they change, else once an hour, for 35 days or as
 * many looks as a fact holds. */
#ifndef BURST_ENGINE_PRICES_H
#define BURST_ENGINE_PRICES_H

#include "plan/forecast.h"
#include "rented.h"
#include "store/store.h"

bool prices_is_same_kind(const struct offer *a, const struct offer *b);

/* Notes what these offers cost at this moment: of each kind, the lowest price. Best effort: a
 * ledger that cannot be written notes nothing. */
void prices_note(struct store *store, const struct offer *offers, size_t count, int64_t wall_ms);

/* The looks at the offer's kind, the oldest first, in local time; NULL: none. The caller frees the
 * list. */
struct forecast_price *prices_read(struct store *store, const struct offer *offer, size_t *count);
/* The lowest of their prices in each hour in which there were looks, the oldest first; NULL: none.
 * The caller frees the list. */
struct forecast_price *prices_read_lowest(struct store *store, const struct offer *offers,
					  size_t offer_count, size_t *count);
/* When such a pod usually costs less than now. Returns false if the looks show no such hours. */
bool prices_cheaper(struct forecast_cheaper *out, struct store *store, const struct offer *offer);

#endif
