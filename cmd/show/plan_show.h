/* plan_show.h - a plan for people and for scripts. */
#ifndef BURST_CMD_SHOW_PLAN_SHOW_H
#define BURST_CMD_SHOW_PLAN_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "cmd/launch/estimate.h"

struct plan_words {
	bool explain;    /* every input, and where it comes from */
	bool what_if;    /* the same job with twice and ten times as many segments */
	char prices[96]; /* where prices are from, where no provider was asked */
};

/* pick: what was chosen, with its verdict. */
void plan_show(FILE *to, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, const struct plan_words *words);
/* New reference; tests/schema/plan.json. err: what is in the way of a run; NULL: nothing. */
json_t *plan_to_json(const struct estimate *e, const struct plan *pick, enum plan_verdict verdict,
		     const struct err *err);
/* The same where there is no plan: m has all mistakes, or none where err alone is in the way. */
json_t *plan_failure_json(const struct mistakes *m, const struct err *err);
/* One line on what is chosen: "1 pod of L4 at modal: about 3m10s, $0.0421". Returns `to`. */
char *plan_sentence(char *to, size_t room, const struct estimate *e, const struct plan *pick);

#endif
