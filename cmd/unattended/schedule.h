/* schedule.h - `burst schedule`: adds, lists and removes schedules, and makes the environment of
 * their runs. */
#ifndef BURST_CMD_UNATTENDED_SCHEDULE_H
#define BURST_CMD_UNATTENDED_SCHEDULE_H

#include "cmd/cmd.h"
#include "unattended/schedule.h"

/* ---- schedule_env.c: the environment of its runs ---- */

/* Writes NAME=value lines for a run from our environment, without keys of accounts. ERR_LOCAL: too
 * long for the ledger. */
int schedule_environment(const struct cmd_context *ctx, char *out, size_t room, struct err *err);
/* ERR_CREDENTIALS: a provider's key exists only in our environment, where a schedule cannot find
 * it. */
int schedule_check_keys(const struct cmd_context *ctx, struct err *err);

/* ---- schedule_add.c ---- */

/* Adds the schedule that arguments and flags describe, or replaces the one of this name. ERR_USAGE,
 * ERR_CONFIG: it could never run. */
int schedule_add(struct cmd_context *ctx, struct err *err);
/* Removes it with its logs; active runs continue. */
int schedule_drop(struct cmd_context *ctx, const struct schedule_row *row, struct err *err);

/* ---- schedule_show.c ---- */

/* "Thu 26 Nov 02:00 CET" */
const char *schedule_show_time(char *to, size_t room, int64_t ms);
/* Prints all schedules with their next and last run. */
int schedule_list(struct cmd_context *ctx, struct err *err);
/* Prints the newest past runs of one schedule; with --json all of them. */
int schedule_show_log(struct cmd_context *ctx, const struct schedule_row *row, struct err *err);

#endif
