/* offer_list.h - fetches what the providers would rent now, for `burst plan` and `burst offers`. */
#ifndef BURST_CMD_LAUNCH_OFFER_LIST_H
#define BURST_CMD_LAUNCH_OFFER_LIST_H

#include "engine/past.h"
#include "launch.h"

struct known_offer {
	struct offer offer;
	struct offer_past past;
	int provider; /* index in the config's list */
	bool avoided;
};

/* Asks the config's providers in turn. as_run: only what a run would use, tied to its volume, in
 * the order in which it would take them; else the cheapest first. The caller frees *out. Returns -1
 * if no provider has an offer. */
int offer_list_fetch(struct launch *l, bool as_run, struct known_offer **out, size_t *count,
		     struct err *err);
void offer_list_print(FILE *to, const struct known_offer *offers, size_t count);
/* New reference. */
json_t *offer_list_json(const struct known_offer *k);

#endif
