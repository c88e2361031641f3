/* plan_result.h - prints the result of `burst plan`. */
#ifndef BURST_CMD_SHOW_PLAN_RESULT_H
#define BURST_CMD_SHOW_PLAN_RESULT_H

#include "caps_show.h"
#include "job.h"
#include "plan_show.h"

/* A choice of GPU and pods that is clearly better than the one that the user fixed. */
struct better {
	bool found;
	char line[400]; /* "2 pods cost $0.0040; 1 pod would cost $0.0021 and take 12s longer" */
	struct plan plan;
	struct offer offer; /* of the recommended plan */
};

struct plan_result {
	const struct job_ops *job_ops;
	struct job *job; /* loaded */
	const struct estimate *estimate;
	const struct plan *pick;
	enum plan_verdict verdict;
	const struct better *better;
	const struct caps *caps; /* NULL: offers that are only compared */
	int64_t keep_ms;         /* keep_warm: ms, 0: none, KEEP_WARM_AUTO */
	int warm;                /* pods of other runs that the run would take over */
	const struct plan_words *words;
};

/* refused: a run would be refused; the caller reports why. */
void plan_result_print(const struct plan_result *r, bool refused);
/* New reference; tests/schema/plan.json. err: why a run would be refused; NULL: it would not. */
json_t *plan_result_json(const struct plan_result *r, const struct err *err);

#endif
