/* estimate.h - what the config wishes of a plan, and estimates for it. */
#ifndef BURST_CMD_LAUNCH_ESTIMATE_H
#define BURST_CMD_LAUNCH_ESTIMATE_H

#include "launch.h"
#include "runs/estimate.h"

/* The job is loaded. ERR_CONFIG: goal, value_of_time or deadline is invalid; ERR_CAP: the deadline
 * was missed. Free with estimate_free(). */
int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count,
		  struct err *err);
/* Notes invalid values of goal, value_of_time and deadline. */
void estimate_check_wish(const struct section *top, struct mistakes *m);
/* Whether the config sets a deadline. */
bool estimate_has_deadline(const struct section *top);
/* Seconds from now: "20m", or a time of day ("07:00"): the next one, or the last one if it was less
 * than six hours ago (then *out_s is not above 0: it was missed). Returns false for other texts. */
bool estimate_deadline(const char *text, int64_t wall_ms, double *out_s);

#endif
