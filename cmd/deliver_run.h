/* deliver_run.h - a delivery in the ledger: a run of its own, which knows whose outputs it
 * delivers. */
#ifndef BURST_CMD_DELIVER_RUN_H
#define BURST_CMD_DELIVER_RUN_H

#include "launch.h"

/* Is a run's config, by its path in the ledger, one that burst has written for a delivery? A
 * project's file cannot have such a path (config.h), and the path makes nothing trusted. */
bool deliver_run_is(const struct cmd_context *ctx, const char *config);
#define DELIVER_JOB_ENDING "-deliver" /* of its job's name */
/* A delivery's client receives its config through a descriptor of a file without a name. The parent
 * calls deliver_run_hand(), which returns the descriptor, or -1 with *err; the child calls
 * deliver_run_tell() between fork and exec. */
int deliver_run_hand(const char *config, const char *text, size_t len, struct err *err);
void deliver_run_tell(int fd);
/* In the client, once: the descriptor; -1: none was handed over, or burst did not make it. */
int deliver_run_handed(void);
/* The newest delivery that goes by it. 1: there is one; 0: none; -1 with *err. */
int deliver_run_newest(struct cmd_context *ctx, const char *key, struct run_row *out,
		       struct err *err);
/* The newest delivery of what this run has rendered, over or not. Likewise. */
int deliver_run_of(struct cmd_context *ctx, const struct run_row *run, struct run_row *out,
		   struct err *err);
/* Of the delivery that goes by this key: it begins now, for this run ("": for none), with these
 * outputs. */
int deliver_run_begins(struct store *store, const char *key, const char *parent, const char *state,
		       struct err *err);
/* A delivery of what the job in this file has rendered. */
bool deliver_run_is_of(struct cmd_context *ctx, const struct run_row *run, const char *config);
/* The run whose outputs this one delivers; false: it is no delivery, or one that no run in the
 * ledger began. */
bool deliver_run_render(struct cmd_context *ctx, const struct run_row *run, struct run_row *out);
/* It went well for these very outputs, the last time that it did. */
bool deliver_run_went_well(struct store *store, const char *key, const char *state);
/* What a run and all deliveries of what it rendered took together. */
struct deliver_total {
	size_t deliveries;
	char newest[24]; /* of them; "": none */
	int64_t billed_ms, compute_ms, cost_microusd;
};
int deliver_run_total(struct cmd_context *ctx, const struct run_row *run, int64_t now_ms,
		      struct deliver_total *out, struct err *err);
/* A delivery's own client: its command has ended well, if it was begun at all. The exit status,
 * noted; -1 with *err. */
int deliver_run_judge(struct launch *l, struct err *err);
/* The run to come back to: that of a delivery, where that is the one that run_find() finds unasked.
 */
int deliver_run_find(struct cmd_context *ctx, const char *name, struct run_row *out,
		     struct err *err);
/* What to do instead of coming back to a delivery; -1. */
int deliver_run_refuse(struct cmd_context *ctx, const struct run_row *run, struct err *err);

#endif
