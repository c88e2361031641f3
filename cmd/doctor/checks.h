/* checks.h - the checks of `burst doctor`. Each one prints what it finds. */
#ifndef BURST_CMD_DOCTOR_CHECKS_H
#define BURST_CMD_DOCTOR_CHECKS_H

#include "cmd/launch/launch.h"
#include "cmd/show/findings.h"

enum { CHECK_ASK_MS = 30000 }; /* for which a provider is asked */

/* machine.c */
void check_machine(struct cmd_context *ctx, struct findings *f);
void check_ledger(struct cmd_context *ctx, struct findings *f);

/* job.c */
/* In a folder without a job there is none to check. */
void check_job(struct launch *l, struct findings *f);
/* A question that a run asks on a terminal stops a run under cron. */
void check_volume(struct launch *l, int provider, struct findings *f);
/* Users without a cloud account may not know that a neural voice runs on this machine. */
void check_voice(const struct cmd_context *ctx, struct findings *f);

/* offers.c */
/* False: its balance cannot pay a run's cap. */
bool check_balance(struct launch *l, const struct engine_provider *p, struct findings *f);
/* What this job would rent. False: nothing, neither now nor later. */
bool check_offers(struct launch *l, int provider, struct findings *f);

/* provider.c: all about one provider, with its offers */
void check_provider(struct launch *l, int provider, struct findings *f);

#endif
