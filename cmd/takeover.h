/* takeover.h - an old run with its pods, taken up by another client: to go on with it, or to give
 * them back. */
#ifndef BURST_CMD_TAKEOVER_H
#define BURST_CMD_TAKEOVER_H

#include "launch.h"

enum {
	OVERDUE_ASK_MS =
		90 * 1000 /* for a provider's own time; a minute of it for the account's limits */
};

/* Goes on with it: locks it, checks that the job is still the one its pods work on, takes its pods
 * and what is done already. */
int takeover_resume(struct launch *l, const struct run_row *run, struct err *err);
/* Its pods alone, with their providers, and what they have cost, for l->run, which is locked. A pod
 * that is past its hard end and whose provider cannot be asked counts as gone. */
int takeover_pods(struct launch *l, struct err *err);
/* A pod whose provider cannot be asked is closed in the ledger, at what it can have cost by its
 * hard end. */
int takeover_write_off(struct cmd_context *ctx, struct pod_row *pod, struct err *err);

#endif
