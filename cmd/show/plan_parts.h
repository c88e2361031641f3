/* plan_parts.h - the pieces that plan_show.c and plan_json.c are made of: short texts, sentences
 * about a plan, and its inputs. */
#ifndef BURST_CMD_SHOW_PLAN_PARTS_H
#define BURST_CMD_SHOW_PLAN_PARTS_H

#include "plan_show.h"

enum { PLAN_TEXT = 160 };
#define PLAN_USED_GOAL 0.7

char *plan_seconds(char to[24], double seconds);
/* "$0.0033"; small ones with two significant digits, "$0.000025". */
char *plan_dollars(char to[32], double usd);
/* "RTX 4090 at runpod", printable. */
char *plan_offer(char to[PLAN_TEXT], const struct offer *o);
double plan_each_usd(const struct estimate *e, const struct plan *p);
/* The fastest that the budget pays for, and the cheapest that is in time, as a user would ask
 * for them. False: there is none. */
bool plan_best_for(struct plan *out, const struct estimate *e, enum plan_goal goal, bool in_time,
		   bool in_budget);
/* A line of words; on a terminal broken at its width, the following lines indented. */
void plan_say(FILE *to, int indent, const char *fmt, ...) PRINTF(3, 4);

/* What each offer that is too small lacks, once for each GPU. */
void plan_misfits_show(FILE *to, const struct estimate *e);
/* The same, once for each GPU of a provider; a new reference. */
json_t *plan_misfits_json(const struct estimate *e);

/* What limits the plan, whether to go wider or taller, the 70 % rule, what else it costs, faster
 * and cheaper plans. */
void plan_words_show(FILE *to, const struct estimate *e, const struct plan *pick);
/* The plan in one sentence, or which wish cannot be fulfilled. */
void plan_verdict_show(FILE *to, const struct estimate *e, const struct plan *pick,
		       enum plan_verdict verdict);
/* Every input, where it is from, and how old it is. */
void plan_inputs_show(FILE *to, const struct estimate *e, const struct plan *pick);
/* The same job with twice and ten times as many segments. */
void plan_what_if_show(FILE *to, const struct estimate *e);

struct launch;
struct caps;
/* The planner's choice among these offers, printed. caps: over runs; NULL: offers that are
 * compared, not rented. Returns the exit status. */
int plan_offers(struct launch *l, const struct offer *offers, size_t count,
		const struct plan_words *words, const struct caps *caps, struct err *err);
/* plan_saved.c: the same for offers that `burst offers --json` wrote, or for list prices. */
int plan_from_file(struct launch *l, const char *path, struct plan_words *words, struct err *err);
int plan_from_lists(struct launch *l, struct plan_words *words, struct err *err);

#endif
