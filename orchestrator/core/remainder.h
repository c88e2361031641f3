/* remainder.h - what is left of a run when it is planned again. Private to core/. */
#ifndef BURST_CORE_REMAINDER_H
#define BURST_CORE_REMAINDER_H

#include "impl.h"

#include "plan/choose.h"
#include "plan/replan.h"

enum { OFFERS_MOST = 16 }; /* GPUs that are weighed */

struct remainder { /* what replan_choose() is shown, and which pods and candidates that is */
	struct replan_case of;
	struct plan_work work;
	double lightest;
	struct replan_pod *pods;
	int *pod_at;
	struct replan_offer offers[OFFERS_MOST];
	struct candidate *candidates[OFFERS_MOST];
};

/* Free with remainder_free(). */
void remainder_measure(struct core *c, struct remainder *r);
void remainder_free(struct remainder *r);
bool remainder_comes_up(const struct core_pod *p); /* it bills, and renders nothing yet */

#endif
