/* caps.h - caps over runs: what the ledger says stands against them, and the share that a run takes
 * before it rents. */
#ifndef BURST_CMD_LAUNCH_CAPS_H
#define BURST_CMD_LAUNCH_CAPS_H

#include "launch.h"
#include "runs/allow.h"

enum { CAPS_MOST = 4 };

struct caps {
	struct allowance list[CAPS_MOST];
	size_t count; /* 0: the config has no such cap */
};

/* As things stand. self: a run whose own reservation does not count; "": none. Within store_begin()
 * it stays true until the commit. */
int caps_read(struct caps *out, const struct launch *l, const char *self, struct err *err);
/* Before a run is planned: lowers caps.max_cost of the config to what is left, with a word of it;
 * ERR_CAP where that is nothing. It reserves nothing: caps_begin() decides. */
int caps_fit(struct launch *l, struct err *err);
/* The same for a plan, which is shown all the same: lowers caps.max_cost where something is left.
 */
int caps_plan(struct caps *out, struct launch *l, struct err *err);
/* ERR_CAP where nothing of use is left of them. */
int caps_refuse(const struct caps *caps, const struct launch *l, struct err *err);
/* A line for each; an array. NULL: there is none. */
void caps_show(FILE *to, const struct caps *caps);
json_t *caps_to_json(const struct caps *caps);
/* Puts the row of l->run, a new run, if what it may cost is left, in one transaction, so that of
 * many runs at once no two take the same dollars. Lowers its cap as above; ERR_CAP where what is
 * left is of no use. */
int caps_begin(struct launch *l, struct err *err);
/* The same for a run that is taken up again, whose pods are those of l->setup.adopt: they keep what
 * they may still cost. It is never refused, as files wait to be fetched and pods to be released;
 * where nothing is left it rents nothing new. */
int caps_go_on(struct launch *l, struct err *err);
/* Adds the cap to the message of a run that a lowered max_cost has ended. */
void caps_explain(const struct launch *l, struct err *err);

#endif
