/* estimate.h - turns a job, offers and the ledger into the planner's input */
#ifndef BURST_RUNS_ESTIMATE_H
#define BURST_RUNS_ESTIMATE_H

#include "plan/choose.h"
#include "plan/cost.h"
#include "plan/forecast.h"
#include "runs.h"
#include "store/store.h"

/* ---- extras ----
 * What a run costs beside the price of its pods: storage, egress, stages, interruptions, segments
 * rendered again. Each has a text that names its source. */

enum { EXTRAS_FROM = 240 };

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
	/* after the offers in their list: pods of one kind that other runs keep */
	size_t kept;
	struct plan_wish wish; /* as the user has it; the canary and what fails are added */
	/* Sets *value to this key of the provider's settings: money in micro-dollars, durations in
	 * ms; leaves it where such providers have no such key. True: the user gave it. */
	bool (*provider_setting)(void *ctx, const char *provider, const char *key, int64_t *value);
	void *ctx;
	/* NULL: there is no such provider. It need not be open. */
	const struct provider_ops *(*find_provider)(const char *name);
};

struct extra {
	double value;
	bool measured;          /* interruptions: by pods of this ledger, else a guess */
	char from[EXTRAS_FROM]; /* "": no source */
};

/* For one offer and one run. */
struct extras {
	struct extra storage, egress, stages; /* in dollars */
	double boot_delay_s;                  /* by the provider's settings; 0: none */
	struct forecast_prices prices;        /* earlier looks at offers of this kind */
	struct extra interrupted;             /* seconds between interruptions */
	/* a volume's price a month; seconds of each later pod's cold start that it saves, and
	 * whether these were measured */
	double month_usd, volume_saves_s;
	bool volume_measured;
	struct extra saves; /* seconds between two saves of $BURST_CHECKPOINT; 0: not known yet */
	double save_s;      /* what a save takes; 0: not measured */
	/* according to the ledger, the pods' image has the result of the job's set-up */
	bool env_in_image;
	char pods_seen[16]; /* day of the newest pod that cold starts were learned from */
};

/* Mean seconds between interruptions of such a pod; 0: it is never interrupted. pods: of this
 * provider. *taken: how many were interrupted. */
struct extra extras_interrupted(const char *provider, bool spot, const struct pod_row *pods,
				size_t count, int *taken);

/* ---- estimate ----
 * Turns a job, offers and the ledger into the planner's input: work, machines and wishes. */

enum { ESTIMATE_FROM = 300, ESTIMATE_UNFIT = 300 };

enum estimate_unfit {
	UNFIT_NOT,
	UNFIT_IMAGE, /* as a pod reported: not the job's image */
	UNFIT_BF16,
	UNFIT_UNKNOWN, /* its speed cannot be computed, and the config does not name it */
	UNFIT_NAMED,   /* the same, but the config names it: a run may rent it, without a plan */
};

struct estimate {
	struct plan_work work;
	struct plan_wish wish;
	struct plan_machine *machines;     /* one for each offer, in the same order */
	char (*speed_from)[ESTIMATE_FROM]; /* source of each speed */
	struct extras *extras;             /* costs beside the price of its pods */
	struct extra failing;              /* share of segments that are rendered again */
	const struct offer *offers;        /* borrowed */
	size_t count;
	/* pods that other runs keep, all of one kind: offers[count] and machines[count] on. They
	 * neither boot nor set up their environment */
	size_t kept;
	size_t segments, open;    /* open: still to render */
	double *lengths;          /* of the open ones, the longest first */
	double sum;               /* sum of their lengths: characters for speech */
	double audio_s;           /* seconds of speech, at the usual rate; 0: no speech */
	char price_from[96];      /* source and date of the prices */
	const char *price_source; /* in a word: "quote", "saved offer", "list price" */
	/* set by the caller: the offers are in no order of providers */
	bool in_any_order;
	bool known; /* some offer has a speed, measured or prior */
	/* the job needs more memory than any offer has; need_gb: how much */
	bool never_fits;
	int need_gb;
	/* of a GPU job: download of its set-up on a pod without its environment; 0: unknown */
	int setup_download_mb;
	bool setup_on_gpu;  /* the job's pods have GPUs */
	bool setup_by_card; /* its set-up needs the card: a pod without a GPU cannot run it */
	const char *volume; /* the volume that the run would use; NULL: none */
	/* why each offer's card is not planned with; "": it is, or it is too small */
	char (*unfit)[ESTIMATE_UNFIT];
	enum estimate_unfit *unfit_kind;
	bool none_can_run;     /* a run would not rent any of the offers that are large enough */
	const char *size_unit; /* of a command: what sum counts ("lines"); NULL: nothing */
	bool shares_card;      /* several workers of a pod compute on one card */
	struct vram_need need; /* for all workers of a pod, if the engine has figures; GiB */
};

/* What the planner knows of these offers for the job. Free with estimate_free(). */
void estimate_fill(struct estimate *out, const struct estimate_of *of, const struct offer *offers,
		   size_t count);
void estimate_free(struct estimate *e);
/* Chooses the best plan among the offers that a run would rent first (the config orders providers
 * and GPUs) and whose speed is known. PLAN_NOTHING_FITS with an empty *out if there are none. */
enum plan_verdict estimate_choose(const struct estimate *e, struct plan *out);
/* The best plan with kept pods alone, at most so many: out->machine is count. False: no such plan
 * keeps all limits. */
bool estimate_choose_kept(const struct estimate *e, int kept, struct plan *out);
/* Changes the chosen plan to one whose first pods are kept ones, at most so many, at the price and
 * speed of these. Where that are all, pick->machine becomes count. */
void estimate_take_kept(const struct estimate *e, struct plan *pick, int kept);
/* Whether this plan has kept pods alone. */
bool estimate_is_on_kept(const struct estimate *e, const struct plan *p);
/* GiB of memory of one card of this offer that an engine can use. */
double estimate_usable_gib(const struct offer *o);

#endif
