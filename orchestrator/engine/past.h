/* past.h - what the ledger remembers for later runs, of this process or another: how quickly pods
 * of an offer came up, and which offers gave a pod that was stuck or bad. Such an offer is avoided
 * for half an hour, twice as long for each pod more that was rented after it was to be avoided, six
 * hours at most; a pod of it that works clears it. Times are wall clock ms. */
#ifndef BURST_ENGINE_PAST_H
#define BURST_ENGINE_PAST_H

#include "core/core.h"
#include "store/store.h"

/* What decides whether a card can run a job: the pods' image (NULL: each provider's own), and what
 * is set up in it (NULL: nothing). */
struct past_image {
	const char *image, *setup;
};

/* One for each offer, to be freed by the caller (NULL for none). What cannot be read is not known.
 * of: NULL: no job. */
struct offer_past *past_of_offers(struct store *store, const struct past_image *of,
				  const struct offer *offers, size_t count, int64_t wall_ms);

/* A pod has said that its card cannot run this image. That holds for a fortnight, as a tag may be
 * pushed again. */
void past_card_unfit(struct store *store, const struct past_image *of, const char *provider,
		     const char *gpu, const char *why, int64_t wall_ms);
/* Why not, and since when; false: nothing is known against it. */
bool past_card_is_unfit(struct store *store, const struct past_image *of, const char *provider,
			const char *gpu, int64_t wall_ms, char *why, size_t room,
			int64_t *since_ms);
/* True: something was known against it. */
bool past_card_forget(struct store *store, const struct past_image *of, const char *provider,
		      const char *gpu);

/* A pod of this offer, rented then, was given up now. host: where it was, "" when its vendor never
 * said. */
int past_give_up(struct store *store, const struct offer *offer, const char *host, const char *why,
		 int64_t rented_ms, int64_t wall_ms, struct err *err);
/* A pod of it works. */
int past_clear(struct store *store, const struct offer *offer, struct err *err);

/* A pod of this account has said whether it can end itself: the line of its switch
 * (jobs/agent/CONTROL.md). */
void past_switch_said(struct store *store, const char *account, const char *line, int64_t wall_ms);
/* That a pod of it was refused its own end, within a day, as it said; "" otherwise. Rights may
 * change: after a day one may try again. */
void past_no_switch(struct store *store, const char *account, int64_t wall_ms, char *words,
		    size_t room);

/* What pods of this GPU took from the create to the handshake, of the newest twenty; of any GPU
 * where there were fewer than three with this one. rows: newest first, all of one provider. 0:
 * fewer than three in all. */
int64_t past_boot_ms(const struct pod_row *rows, size_t count, const char *gpu);

#endif
