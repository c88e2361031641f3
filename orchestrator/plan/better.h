/* better.h - compares the user's own choice of GPUs or number of pods with the planner's, and
 * reports a plan that is clearly better. Pure. */
#ifndef BURST_PLAN_BETTER_H
#define BURST_PLAN_BETTER_H

#include "choose.h"

/* Clearly: a fifth less of what the goal makes small, without missing a deadline or a budget that
 * the given plan keeps; or a fifth faster at no more cost. Less than five seconds or a twentieth of
 * a cent is not worth a word. The machines are all that there are; wish.pods is ignored. False:
 * there is none. */
bool plan_better(struct plan *out, const struct plan *given, const struct plan_work *w,
		 const struct plan_machine *machines, size_t count, const struct plan_wish *wish);

#endif
