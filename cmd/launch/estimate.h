/* estimate.h - a job, offers and the ledger as the planner wants them: work, machines and
 * wishes. */
#ifndef BURST_CMD_LAUNCH_ESTIMATE_H
#define BURST_CMD_LAUNCH_ESTIMATE_H

#include "extras.h"
#include "launch.h"
#include "plan/choose.h"
#include "plan/vram.h"

enum { ESTIMATE_FROM = 128, ESTIMATE_UNFIT = 300 };

struct estimate {
	struct plan_work work;
	struct plan_wish wish;
	struct plan_machine *machines;     /* one for each offer, in their order */
	char (*speed_from)[ESTIMATE_FROM]; /* what each speed was taken from */
	struct extras *extras;             /* beside the price of its pods */
	struct extra failing;              /* share of renders that are done again */
	const struct offer *offers;        /* the caller's */
	size_t count;
	size_t segments, open; /* open: to render */
	double *lengths;       /* of these, the longest first */
	double sum;            /* of their lengths: characters for speech */
	double audio_s;        /* of speech, by how fast people speak; 0: no speech */
	char price_from[96];   /* where the prices are from, and from when */
	/* set by the caller: the config's order of providers and GPUs does not bind the choice */
	bool in_any_order;
	bool known; /* some offer has a speed, measured or prior */
	/* the job needs more memory than any offer has; need_gb says how much */
	bool never_fits;
	int need_gb;
	/* of a GPU job: what its set-up fetches on a pod where its environment is not there; 0:
	 * not known */
	int setup_download_mb;
	bool setup_by_card; /* its set-up needs the card: a pod without a GPU cannot run it */
	const char *volume; /* that the run would use; NULL: none */
	/* why the card of each offer cannot run the job's image, as a pod has said; "": it may */
	char (*unfit)[ESTIMATE_UNFIT];
	bool none_can_run;     /* that is so of all offers that are large enough */
	struct vram_need need; /* of all workers of a pod, where the engine says; GiB */
};

/* The job has been read. ERR_CONFIG: goal, value_of_time or deadline cannot be used; ERR_CAP:
 * the deadline was missed. Free with estimate_free(). */
int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count,
		  struct err *err);
void estimate_free(struct estimate *e);
/* The best plan for what is wished with the offers that a run would rent first (the config
 * orders providers and GPUs), where a speed is known; else, and where nothing fits,
 * PLAN_NOTHING_FITS and an empty *out. */
enum plan_verdict estimate_choose(const struct estimate *e, struct plan *out);
/* GiB that a job can use of the memory of this offer's cards. */
double estimate_usable_gib(const struct offer *o);
/* Fills the wish from the config. ERR_CONFIG: goal, value_of_time or deadline cannot be used;
 * ERR_CAP: the deadline was missed. */
int estimate_read_wish(const struct section *top, struct plan_wish *wish, struct err *err);
/* Notes goal, value_of_time and deadline where they cannot be used. */
void estimate_check_wish(const struct section *top, struct mistakes *m);
/* Does the config set one? */
bool estimate_has_deadline(const struct section *top);
/* Seconds from now: "20m", or a time of day ("07:00"): the next one, or the last one where that
 * was less than six hours ago (then *out_s is not above 0: it was missed). False: it is neither. */
bool estimate_deadline(const char *text, int64_t wall_ms, double *out_s);

#endif
