/* checks.h - the checks of `burst doctor`. Each prints its findings. */
#ifndef BURST_CMD_DOCTOR_CHECKS_H
#define BURST_CMD_DOCTOR_CHECKS_H

#include "cmd/launch/launch.h"
#include "cmd/show/output.h"

enum { CHECK_ASK_MS = 30000 }; /* limit for one provider's reply */

/* checks.c */
void check_machine(struct cmd_context *ctx, struct findings *f);
void check_ledger(struct cmd_context *ctx, struct findings *f);

/* checks.c */
/* Checks the job of this folder, if there is one. */
void check_job(struct launch *l, struct findings *f);
/* Reports a prompt that a run would show on a terminal: under cron it stops the run. */
void check_volume(struct launch *l, int provider, struct findings *f);
/* Tells users without a cloud account that a neural voice runs on this machine. */
void check_voice(const struct cmd_context *ctx, struct findings *f);

/* checks.c */

/* checks.c: checks everything about one provider, with its offers */
void check_provider(struct launch *l, int provider, struct findings *f);
/* Providers that the ledger knows and `provider` does not name. */
void check_unnamed(struct launch *l, struct findings *f);

#endif
