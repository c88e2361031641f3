/* plan_parts.h - pieces for plan_show.c and plan_json.c: short texts, sentences about a plan, and
 * its inputs. */
#ifndef BURST_CMD_SHOW_PLAN_PARTS_H
#define BURST_CMD_SHOW_PLAN_PARTS_H

#include "plan_show.h"

enum { PLAN_TEXT = 160 };
#define PLAN_USED_GOAL 0.7

char *plan_seconds(char to[24], double seconds);
/* "$0.0033"; small amounts with two significant digits, "$0.000025". */
char *plan_dollars(char to[32], double usd);
/* "RTX 4090 at runpod", printable. */
char *plan_offer(char to[PLAN_TEXT], const struct offer *o);
double plan_each_usd(const struct estimate *e, const struct plan *p);
/* The fastest plan within the budget, or the cheapest in time, as a user would choose them. Returns
 * false if there is none. */
bool plan_best_for(struct plan *out, const struct estimate *e, enum plan_goal goal, bool in_time,
		   bool in_budget);
/* Prints a line of text. On a terminal, wraps at its width and indents the following lines. */
void plan_say(FILE *to, int indent, const char *fmt, ...) PRINTF(3, 4);

/* "left out", or what else a plan does with such a card. */
const char *plan_unfit_name(enum estimate_unfit kind);
/* Prints what each offer lacks that is too small, once for each GPU. */
void plan_misfits_show(FILE *to, const struct estimate *e);
/* The same, once for each GPU of a provider; new reference. */
json_t *plan_misfits_json(const struct estimate *e);

/* Prints what limits the plan, whether to use more or larger pods, the 70 % rule, other costs,
 * faster and cheaper plans. */
void plan_words_show(FILE *to, const struct estimate *e, const struct plan *pick);
/* Prints how often a command's checkpoint is saved, if it may have one. */
void plan_saves_show(FILE *to, const struct extras *x);
/* Prints the plan in one sentence, or the wish that cannot be fulfilled. */
void plan_verdict_show(FILE *to, const struct estimate *e, const struct plan *pick,
		       enum plan_verdict verdict);
/* Adds a line for each wish that the plan does not follow to the letter, and why. */
void plan_wishes(struct str *to, const struct estimate *e, const struct plan *pick);
void plan_wishes_show(FILE *to, const struct estimate *e, const struct plan *pick);
/* Prints every input with its source and age. */
void plan_inputs_show(FILE *to, const struct estimate *e, const struct plan *pick);
/* Prints the same job with twice and ten times as many segments. */
void plan_what_if_show(FILE *to, const struct estimate *e);

#endif
