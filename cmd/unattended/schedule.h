/* schedule.h - `burst schedule`: its timers (systemd, launchd, cron), when a run is due, and the
 * environment of its runs. */
#ifndef BURST_CMD_UNATTENDED_SCHEDULE_H
#define BURST_CMD_UNATTENDED_SCHEDULE_H

#include "base/calendar.h"
#include "cmd/cmd.h"

/* ---- schedule_env.c: the environment of its runs ---- */

/* Writes NAME=value lines for a run from our environment, without keys of accounts. ERR_LOCAL: too
 * long for the ledger. */
int schedule_environment(const struct cmd_context *ctx, char *out, size_t room, struct err *err);
/* ERR_CREDENTIALS: a provider's key exists only in our environment, where a schedule cannot find
 * it. */
int schedule_check_keys(const struct cmd_context *ctx, struct err *err);

/* ---- schedule_text.c: the texts for the timers; no I/O ---- */

/* Append to *to. program: the path of burst. */
void schedule_cron_block(struct str *to, const struct schedule_row *row, const struct calendar *c,
			 const char *program, const char *state_dir);
void schedule_systemd_timer(struct str *to, const struct schedule_row *row,
			    const struct calendar *c);
void schedule_systemd_service(struct str *to, const struct schedule_row *row, const char *program,
			      const char *state_dir);
void schedule_launchd_plist(struct str *to, const struct schedule_row *row,
			    const struct calendar *c, const char *program, const char *state_dir);
/* Appends a crontab without the block of this schedule. Returns whether it had one. */
bool schedule_cron_without(struct str *to, const char *crontab, const char *name);

/* ---- schedule_wake.c: installing timers ---- */

/* wish: "systemd", "launchd", "crontab", or NULL: any that exists. ERR_LOCAL: none exists, or not
 * the one wished for. */
int schedule_choose(const char *wish, enum schedule_backend *out, struct err *err);
/* Installs the timer and replaces one of this name. Appends to *note what the user should know. */
int schedule_install(const struct cmd_context *ctx, const struct schedule_row *row,
		     struct str *note, struct err *err);
/* Removes all traces. Succeeds if there are none. */
int schedule_uninstall(const struct schedule_row *row, struct err *err);
bool schedule_is_installed(const struct schedule_row *row);

/* ---- schedule_run.c ---- */

enum schedule_due { SCHEDULE_NOT_DUE, SCHEDULE_DUE, SCHEDULE_TOO_LATE };
/* since_ms: due time of its last firing, or its creation. *missed: further due times since then. */
enum schedule_due schedule_check_due(const struct schedule_row *row, const struct calendar *c,
				     int64_t since_ms, int64_t now_ms, int64_t *due_ms,
				     int *missed);
/* Due time of a firing, from its key. */
int64_t schedule_due_ms(const struct firing_row *f);
/* Runs what is due, if anything, and records it. Returns the exit status. */
int schedule_wake(struct cmd_context *ctx, const struct schedule_row *row, struct err *err);
/* Runs it now on this terminal. Returns the run's exit status. */
int schedule_by_hand(struct cmd_context *ctx, const struct schedule_row *row, struct err *err);
/* The log file of its runs. The caller frees it. */
char *schedule_log(const struct cmd_context *ctx, const char *name);

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
