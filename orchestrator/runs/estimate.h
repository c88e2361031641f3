/* estimate.h - turns a job, offers and the ledger into the planner's input: work, machines and
 * wishes. */
#ifndef BURST_RUNS_ESTIMATE_H
#define BURST_RUNS_ESTIMATE_H

#include "extras.h"
#include "plan/choose.h"
#include "plan/cost.h"

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
	size_t segments, open; /* open: still to render */
	double *lengths;       /* of the open ones, the longest first */
	double sum;            /* sum of their lengths: characters for speech */
	double audio_s;        /* seconds of speech, at the usual rate; 0: no speech */
	char price_from[96];   /* source and date of the prices */
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
/* GiB of GPU memory of this offer that a job can use. */
double estimate_usable_gib(const struct offer *o);

#endif
