/* extras.h - what a run costs beside the price of its pods: storage, egress, delivery,
 * interruptions, segments rendered again. Each has a text that names its source. */
#ifndef BURST_CMD_LAUNCH_EXTRAS_H
#define BURST_CMD_LAUNCH_EXTRAS_H

#include "launch.h"

enum { EXTRAS_FROM = 128 };

struct extra {
	double value;
	char from[EXTRAS_FROM]; /* "": no source */
};

/* For one offer and one run. */
struct extras {
	struct extra storage, egress, delivery; /* in dollars */
	struct extra interrupted;               /* seconds between interruptions */
	double delivery_s;
	/* according to the ledger, the pods' image has the result of the job's set-up */
	bool env_in_image;
	char pods_seen[16]; /* day of the newest pod that cold starts were learned from */
};

/* Dollars a run for the config's volume at this provider: a month's price over the runs of this
 * config in 30 days, including the next one. row: of the ledger; NULL: it has no such volume. */
struct extra extras_storage(struct launch *l, const char *provider, const struct volume_row *row);
/* Dollars to fetch this much from pods of the provider. */
struct extra extras_egress(struct launch *l, const char *provider, double gb);
/* Mean seconds between interruptions of such a pod; 0: it is never interrupted. pods: of this
 * provider. */
struct extra extras_interrupted(const char *provider, bool spot, const struct pod_row *pods,
				size_t count);
/* Share of renders that fail their check, in the job's last runs. */
struct extra extras_failing(struct launch *l);
/* Dollars of the config's `deliver`, which runs on a pod without a GPU; *seconds: its time. */
struct extra extras_delivery(struct launch *l, double *seconds);

#endif
