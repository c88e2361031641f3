/* plan_result.h - what `burst plan` found. */
#ifndef BURST_CMD_SHOW_PLAN_RESULT_H
#define BURST_CMD_SHOW_PLAN_RESULT_H

#include "cmd/launch/better.h"
#include "cmd/launch/caps.h"
#include "plan_show.h"

struct plan_result {
	const struct launch *launch; /* its job has been read */
	const struct estimate *estimate;
	const struct plan *pick;
	enum plan_verdict verdict;
	const struct better *better;
	const struct caps *caps; /* NULL: offers that are compared, not rented */
	int warm;                /* pods of other runs that the run would take over */
	const struct plan_words *words;
};

/* refused: something is in the way of a run; the caller says what. */
void plan_result_print(const struct plan_result *r, bool refused);
/* New reference; tests/schema/plan.json. err: what is in the way of a run; NULL: nothing. */
json_t *plan_result_json(const struct plan_result *r, const struct err *err);

#endif
