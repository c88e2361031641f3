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

/* What is known of each of these offers; the caller frees the list (NULL for none). Unreadable
 * facts count as not known. of: NULL: no job. */
struct offer_past *past_of_offers(struct store *store, const struct past_image *of,
				  const struct offer *offers, size_t count, int64_t wall_ms);

/* Records that a card cannot run this image, as a pod reported. This holds for a fortnight, because
 * a tag may be pushed again. */
void past_card_unfit(struct store *store, const struct past_image *of, const char *provider,
		     const char *gpu, const char *why, int64_t wall_ms);
/* Whether a card is known to be unfit for this image; why, and since when. */
bool past_card_is_unfit(struct store *store, const struct past_image *of, const char *provider,
			const char *gpu, int64_t wall_ms, char *why, size_t room,
			int64_t *since_ms);
/* Forgets that a card is unfit. Returns true if something was known against it. */
bool past_card_forget(struct store *store, const struct past_image *of, const char *provider,
		      const char *gpu);

/* Records that a pod of this offer, rented at that time, was bad. host: where it was; "": its
 * vendor never said. Returns -1 if the ledger could not be written. */
int past_bad_pod(struct store *store, const struct offer *offer, const char *host, const char *why,
		 int64_t rented_ms, int64_t wall_ms, struct err *err);
/* A pod of the offer works: removes what is recorded against the offer. */
int past_clear(struct store *store, const struct offer *offer, struct err *err);

/* Records whether a pod of this account can end itself, by the line that it reports of its switch
 * (jobs/agent/CONTROL.md). */
void past_switch_reported(struct store *store, const char *account, const char *line,
			  int64_t wall_ms);
/* Copies the report, within a day, that a pod of the account was not allowed to end itself; "":
 * none. Rights may change, so it expires. */
void past_no_switch(struct store *store, const char *account, int64_t wall_ms, char *words,
		    size_t room);

/* How long pods of this GPU took from the create to the handshake, from the newest twenty; from any
 * GPU if fewer than three had this one. rows: newest first, all of one provider. 0: fewer than
 * three in all. Exported for tests. */
int64_t past_boot_ms(const struct pod_row *rows, size_t count, const char *gpu);

#endif
