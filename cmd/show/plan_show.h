/* plan_show.h - prints a plan as text and as JSON. */
#ifndef BURST_CMD_SHOW_PLAN_SHOW_H
#define BURST_CMD_SHOW_PLAN_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "runs/estimate.h"

struct plan_words {
	bool explain;    /* show every input and its source */
	bool what_if;    /* show the same job with twice and ten times as many segments */
	char prices[96]; /* source of the prices, if no provider was asked */
	/* the offers have no order of providers, as a run would keep it */
	bool in_any_order;
};

/* pick: the chosen plan, with its verdict. */
void plan_show(FILE *to, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, const struct plan_words *words);
/* New reference; tests/schema/plan.json. err: why a run would be refused; NULL: it would not. */
json_t *plan_to_json(const struct estimate *e, const struct plan *pick, enum plan_verdict verdict,
		     const struct err *err);
/* The same without a plan. m has all mistakes, or none if err is the only obstacle. */
json_t *plan_failure_json(const struct mistakes *m, const struct err *err);
/* The chosen plan in one line: "1 pod of L4 at modal: about 3m10s, $0.0421". Returns `to`. */
char *plan_sentence(char *to, size_t room, const struct estimate *e, const struct plan *pick);

#endif
