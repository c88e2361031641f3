/* rest.h - what is left of a run when it is planned again. Private to core/. */
#ifndef BURST_CORE_REST_H
#define BURST_CORE_REST_H

#include "impl.h"

#include "plan/choose.h"
#include "plan/replan.h"

enum { OFFERS_MOST = 16 }; /* GPUs that are weighed */

struct rest { /* what replan_choose() is shown, and which pods and candidates that is */
	struct replan_case of;
	struct plan_work work;
	double lightest;
	struct replan_pod *pods;
	int *pod_at;
	struct replan_offer offers[OFFERS_MOST];
	struct candidate *candidates[OFFERS_MOST];
};

/* Free with rest_free(). */
void rest_look(struct core *c, struct rest *r);
void rest_free(struct rest *r);
bool rest_comes_up(const struct core_pod *p); /* it bills, and renders nothing yet */

#endif
