/* past.h - records for later runs, of this process or another, how quickly pods of an offer came
 * up, and which offers gave a stuck or bad pod. Such an offer is avoided for half an hour, twice as
 * long for each further such pod rented after that, six hours at most; a pod of it that works
 * clears it. Times are wall clock ms. */
#ifndef BURST_ENGINE_PAST_H
#define BURST_ENGINE_PAST_H

#include "core/core.h"
#include "store/store.h"

/* What decides whether a card can run a job: the pods' image (NULL: each provider's own), its
 * set-up (NULL: none), and whether it computes in BF16. */
struct past_image {
	const char *image, *setup;
	bool bf16;
};
#define PAST_NO_BF16 "it has no BF16, in which the engine computes"

/* One for each offer, which the caller frees (NULL for none). Unreadable facts count as not
 * known. of: NULL: no job. */
struct offer_past *past_of_offers(struct store *store, const struct past_image *of,
				  const struct offer *offers, size_t count, int64_t wall_ms);

/* A pod reported that its card cannot run this image. This holds for a fortnight, because a tag may
 * be pushed again. */
void past_card_unfit(struct store *store, const struct past_image *of, const char *provider,
		     const char *gpu, const char *why, int64_t wall_ms);
/* Why not, and since when; false: nothing is known against it. */
bool past_card_is_unfit(struct store *store, const struct past_image *of, const char *provider,
			const char *gpu, int64_t wall_ms, char *why, size_t room,
			int64_t *since_ms);
/* Returns true if something was known against it. */
bool past_card_forget(struct store *store, const struct past_image *of, const char *provider,
		      const char *gpu);

/* A pod of this offer, rented at that time, was bad. host: where it was; "": its vendor never said.
 */
int past_bad_pod(struct store *store, const struct offer *offer, const char *host, const char *why,
		 int64_t rented_ms, int64_t wall_ms, struct err *err);
/* A pod of the offer works. */
int past_clear(struct store *store, const struct offer *offer, struct err *err);

/* A pod of this account has reported whether it can end itself: the line of its switch
 * (jobs/agent/CONTROL.md). */
void past_switch_reported(struct store *store, const char *account, const char *line,
			  int64_t wall_ms);
/* The report, within a day, that a pod of it was not allowed to end itself; "": none. Rights may
 * change, so it expires. */
void past_no_switch(struct store *store, const char *account, int64_t wall_ms, char *words,
		    size_t room);

/* How long pods of this GPU took from the create to the handshake, from the newest twenty; from any
 * GPU if fewer than three had this one. rows: newest first, all of one provider. 0: fewer than
 * three in all. */
int64_t past_boot_ms(const struct pod_row *rows, size_t count, const char *gpu);

#endif
