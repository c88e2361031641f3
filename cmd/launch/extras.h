/* extras.h - what a run costs beside the price of its pods: storage, egress, delivery,
 * interruptions, segments rendered again. Each with words on where it is from. */
#ifndef BURST_CMD_LAUNCH_EXTRAS_H
#define BURST_CMD_LAUNCH_EXTRAS_H

#include "launch.h"

enum { EXTRAS_FROM = 128 };

struct extra {
	double value;
	char from[EXTRAS_FROM]; /* "": there is none */
};

/* Of one offer, a run. */
struct extras {
	struct extra storage, egress, delivery; /* dollars */
	struct extra interrupted;               /* seconds between interruptions */
	double delivery_s;
	/* its pods' image has what the job's set-up makes, as far as the ledger knows */
	bool env_in_image;
	char pods_seen[16]; /* day of the newest pod that cold starts were learned from */
};

/* Of the config's volume at this provider, in dollars a run: a month of it over the runs of this
 * config in 30 days, the next one included. row: of the ledger; NULL: it knows no such volume. */
struct extra extras_storage(struct launch *l, const char *provider, const struct volume_row *row);
/* Dollars for fetching this much from pods of the provider. */
struct extra extras_egress(struct launch *l, const char *provider, double gb);
/* Seconds between interruptions of such a pod, on average; 0: it is not interrupted. pods: of this
 * provider. */
struct extra extras_interrupted(const char *provider, bool spot, const struct pod_row *pods,
				size_t count);
/* Share of renders whose check fails, in the job's last runs. */
struct extra extras_failing(struct launch *l);
/* Dollars of the config's `deliver`, which runs on a pod without a GPU; *seconds that it takes. */
struct extra extras_delivery(struct launch *l, double *seconds);

#endif
