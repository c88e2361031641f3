/* extras.h - what a run costs beside the price of its pods: storage, egress, stages,
 * interruptions, segments rendered again. Each has a text that names its source. */
#ifndef BURST_RUNS_EXTRAS_H
#define BURST_RUNS_EXTRAS_H

#include "plan/choose.h"
#include "runs.h"

enum { EXTRAS_FROM = 128 };

/* The job that is planned for. Texts are borrowed. */
struct estimate_of {
	const struct run *run; /* its job has been read, its providers are open */
	/* by which the ledger knows it: the path of its config, or ""; its name */
	const char *config, *job;
	const char *image;         /* of its pods; NULL: the provider's choice */
	const char *volume;        /* that they would use; NULL: none */
	int64_t volume_gb;         /* if it is created */
	const char *const *stages; /* names of what follows; NULL-terminated; NULL: nothing */
	bool gpus_named;           /* the user names the GPUs that will do */
	struct plan_wish wish;     /* as the user has it; the canary and what fails are added */
	/* Sets *usd_gb if the provider's settings have a price of fetching. True: the user gave it.
	 */
	bool (*egress_price)(void *ctx, const char *provider, double *usd_gb);
	void *ctx;
};

struct extra {
	double value;
	char from[EXTRAS_FROM]; /* "": no source */
};

/* For one offer and one run. */
struct extras {
	struct extra storage, egress, stages; /* in dollars */
	struct extra interrupted;             /* seconds between interruptions */
	struct extra saves; /* seconds between two saves of $BURST_CHECKPOINT; 0: not known yet */
	double save_s;      /* what a save takes; 0: not measured */
	double stages_s;
	/* according to the ledger, the pods' image has the result of the job's set-up */
	bool env_in_image;
	char pods_seen[16]; /* day of the newest pod that cold starts were learned from */
};

/* Dollars a run for the run's volume at this provider: a month's price over the runs of this job's
 * config in 30 days, including the next one. row: of the ledger; NULL: it has no such volume. */
struct extra extras_storage(const struct estimate_of *of, const char *provider,
			    const struct volume_row *row);
/* Dollars to fetch this much from pods of the provider. */
struct extra extras_egress(const struct estimate_of *of, const char *provider, double gb);
/* Mean seconds between interruptions of such a pod; 0: it is never interrupted. pods: of this
 * provider. */
struct extra extras_interrupted(const char *provider, bool spot, const struct pod_row *pods,
				size_t count);
/* How often a command's checkpoint is saved, if such pods are interrupted that seldom (value 0:
 * never). The source is empty for other jobs. */
void extras_saves(struct store *store, const struct job_needs *needs, struct extras *x);
/* Share of renders that fail their check, in the job's last runs. */
struct extra extras_failing(const struct estimate_of *of);
/* Dollars of its stages, as they were measured; *seconds: their time. */
struct extra extras_stages(const struct estimate_of *of, double *seconds);

#endif
