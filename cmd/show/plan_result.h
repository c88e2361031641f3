/* plan_result.h - prints the result of `burst plan`. */
#ifndef BURST_CMD_SHOW_PLAN_RESULT_H
#define BURST_CMD_SHOW_PLAN_RESULT_H

#include "cmd/launch/better.h"
#include "cmd/launch/caps.h"
#include "plan_show.h"

struct plan_result {
	const struct launch *launch; /* its job is loaded */
	const struct estimate *estimate;
	const struct plan *pick;
	enum plan_verdict verdict;
	const struct better *better;
	const struct caps *caps; /* NULL: offers that are only compared */
	int warm;                /* pods of other runs that the run would take over */
	const struct plan_words *words;
};

/* refused: a run would be refused; the caller reports why. */
void plan_result_print(const struct plan_result *r, bool refused);
/* New reference; tests/schema/plan.json. err: why a run would be refused; NULL: it would not. */
json_t *plan_result_json(const struct plan_result *r, const struct err *err);

#endif
