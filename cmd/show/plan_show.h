/* plan_show.h - shows a plan as text (plan_show.c, plan_reasons.c, plan_text.c) and as JSON
 * (plan_json.c). */
#ifndef BURST_CMD_SHOW_PLAN_SHOW_H
#define BURST_CMD_SHOW_PLAN_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "job.h"
#include "plan/forecast.h"
#include "runs/caps.h"
#include "runs/estimate.h"

struct plan_words {
	bool explain; /* show every input and its source */
	bool what_if; /* show the same job with twice and ten times as many segments */
	/* source of the prices, in full and in a word, if no provider was asked */
	char prices[96];
	const char *price_source;
	/* the offers have no order of providers, as a run would keep it */
	bool in_any_order;
};

/* ---- short texts, also for messages about a run ---- */

#define PLAN_USED_GOAL 0.7 /* the share of billed time that should compute */

enum { PLAN_TEXT = 160, PLAN_SOURCE = 48 };
char *plan_seconds(char to[24], double seconds);
/* "$0.0033"; small amounts with two significant digits, "$0.000025". */
char *plan_dollars(char to[32], double usd);
/* Whether the provider of the machine's offer names no price. */
bool plan_is_unpriced(const struct estimate *e, size_t machine);
/* What this much use of the machine costs; "no price given" if its provider names none. */
char *plan_cost(char to[32], const struct estimate *e, size_t machine, double usd);
/* "RTX 4090 at runpod", "L40S:2 at modal" with two cards, printable. */
char *plan_offer(char to[PLAN_TEXT], const struct offer *o);
/* The plan in one line: "1 pod of L4 at modal: about 3m10s, $0.0421". Returns `to`. */
char *plan_sentence(char *to, size_t room, const struct estimate *e, const struct plan *pick);
/* "nine runs in ten take at most 1m52s and cost at most $0.0214" */
char *plan_promise(char *to, size_t room, const struct estimate *e, const struct plan *pick);
/* "prior, never measured here", "measured in 3 runs" */
char *plan_speed_source(char to[PLAN_SOURCE], const struct plan_machine *m);
/* One run in ten is slower than the speed says by more than this factor. */
double plan_speed_factor(const struct plan_machine *m);
/* Adds a line for each wish that the plan does not follow to the letter, and why. */
void plan_wishes(struct str *to, const struct estimate *e, const struct plan *pick);
/* "left out", or what else a plan does with such a card. */
const char *plan_unfit_name(enum estimate_unfit kind);
/* Whether offer i cannot run the job, and then why. False if no offer has a speed. */
bool plan_offer_is_unfit(const struct estimate *e, size_t i, char why[ESTIMATE_UNFIT]);
/* Adds what a start ahead of its time costs at most, beside the wait that it saves. price_h 0: not
 * known. source: of the cold start. */
void plan_add_ahead(struct str *to, const struct cold_ahead *a, double price_h, const char *source);
/* The same for programs (tests/schema); new reference. */
json_t *plan_ahead_json(const struct cold_ahead *a, double price_h);
/* Dollars for each segment that is rendered. */
double plan_each_usd(const struct estimate *e, const struct plan *p);

/* ---- why a plan is as it is (plan_reasons.c) ---- */

/* Prints what limits the plan, and what would make it faster or cheaper. */
void plan_print_advice(FILE *to, const struct estimate *e, const struct plan *pick);
/* Prints every input with its source and age. */
void plan_print_inputs(FILE *to, const struct estimate *e, const struct plan *pick);
/* Prints how often a command's checkpoint is saved. */
void plan_print_saves(FILE *to, const struct extras *x);

/* ---- the result of `burst plan` ---- */

/* A choice of GPU and pods that is clearly better than the one that the user fixed. */
struct better {
	bool found;
	char line[400]; /* "2 pods cost $0.0040; 1 pod would cost $0.0021 and take 12s longer" */
	struct plan plan;
	struct offer offer; /* of the recommended plan */
};

/* The same job with the engine's other model. */
struct variant {
	const char *engine; /* NULL: it has none */
	bool known;         /* the rest is set */
	bool fits;          /* some card on offer holds it */
	struct plan plan;   /* if it fits; of the same offers */
	char line[400];     /* "engine = "qwen3-1.7b" (larger: ...) fits ..., costs ..." */
};

/* A stage after the render. */
struct plan_stage {
	const char *name;
	int pods;
	bool offered;       /* some provider has an offer for its pods now */
	struct offer offer; /* that one */
	int64_t took_ms, cost_microusd, unpriced_ms; /* of its last success; 0: there was none */
	char from[80];                               /* "as run ID took on DAY"; "" */
};

struct plan_result {
	const struct job_ops *job_ops;
	struct job *job; /* loaded */
	const struct estimate *estimate;
	const struct plan *pick;
	enum plan_verdict verdict;
	const struct better *better;
	const struct variant *variant;
	const struct caps *caps; /* NULL: offers that are only compared */
	int64_t keep_ms;         /* keep_warm: ms, 0: none, KEEP_WARM_AUTO */
	/* as prewarm says of a run's schedules; ahead_s 0: they start at their time */
	struct cold_ahead ahead;
	int64_t due_ms; /* run_choice_due_ms() */
	/* when a pod of the pick's offer usually costs less; NULL: no such hours are known */
	const struct forecast_cheaper *cheaper;
	int warm; /* pods of other runs that the run would take over */
	const struct plan_stage *stages;
	size_t stage_count;
	const struct plan_words *words;
};

/* What the volume saves a run, without which each pod would spend that time. */
struct volume_pays {
	double month_usd; /* 0: there is none, or its price is unknown */
	double saved_s, saved_usd;
	double runs; /* a month, from which it costs less than it saves */
	bool measured;
};
void plan_volume_pays(struct volume_pays *out, const struct estimate *e, const struct plan *pick);

/* Prints on stdout. refused: a run would be refused; the caller reports why. */
void plan_result_print(const struct plan_result *r, bool refused);
/* New reference; tests/schema/plan.json. err: why a run would be refused; NULL: it would not. */
json_t *plan_result_json(const struct plan_result *r, const struct err *err);
/* The same object if there is no plan. m has all mistakes, or none if err is the only obstacle. */
json_t *plan_failure_json(const struct mistakes *m, const struct err *err);

#endif
