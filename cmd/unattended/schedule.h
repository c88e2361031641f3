/* schedule.h - `burst schedule`: what wakes it (systemd, launchd, cron), when a run is due, and
 * what its runs see of the environment. */
#ifndef BURST_CMD_UNATTENDED_SCHEDULE_H
#define BURST_CMD_UNATTENDED_SCHEDULE_H

#include "base/calendar.h"
#include "cmd/cmd.h"

/* ---- schedule_env.c: the environment of its runs ---- */

/* NAME=value lines of what a run needs of our environment, and no key of any account. ERR_LOCAL:
 * too long for the ledger. */
int schedule_environment(const struct cmd_context *ctx, char *out, size_t room, struct err *err);
/* ERR_CREDENTIALS: the key of a provider that this config names is in our environment alone, where
 * no schedule finds it. */
int schedule_check_keys(const struct cmd_context *ctx, struct err *err);

/* ---- schedule_text.c: what the programs that wake it are told; no I/O ---- */

/* program: the path of burst. Appended to *to. */
void schedule_cron_block(struct str *to, const struct schedule_row *row, const struct calendar *c,
			 const char *program, const char *state_dir);
void schedule_systemd_timer(struct str *to, const struct schedule_row *row,
			    const struct calendar *c);
void schedule_systemd_service(struct str *to, const struct schedule_row *row, const char *program,
			      const char *state_dir);
void schedule_launchd_plist(struct str *to, const struct schedule_row *row,
			    const struct calendar *c, const char *program, const char *state_dir);
/* A crontab without the block of this schedule; whether it had one. */
bool schedule_cron_without(struct str *to, const char *crontab, const char *name);

/* ---- schedule_wake.c: telling them ---- */

/* wish: "systemd", "launchd", "crontab", or NULL: what is there. ERR_LOCAL: none of them is, or the
 * one that is wished is not. */
int schedule_choose(const char *wish, enum schedule_backend *out, struct err *err);
/* Puts it in place, whatever was there of this name. *note (appended) says what the user should
 * know. */
int schedule_install(const struct cmd_context *ctx, const struct schedule_row *row,
		     struct str *note, struct err *err);
/* Leaves no trace; absent is success. */
int schedule_uninstall(const struct schedule_row *row, struct err *err);
bool schedule_is_installed(const struct schedule_row *row);

/* ---- schedule_run.c ---- */

enum schedule_due { SCHEDULE_NOT_DUE, SCHEDULE_DUE, SCHEDULE_TOO_LATE };
/* since_ms: the due time of its last firing, or when it was made. *missed: how many more were due
 * since then. */
enum schedule_due schedule_check_due(const struct schedule_row *row, const struct calendar *c,
				     int64_t since_ms, int64_t now_ms, int64_t *due_ms,
				     int *missed);
/* When it was due: its key as a moment. */
int64_t schedule_due_ms(const struct firing_row *f);
/* Runs what is due, which may be nothing, and writes it down. Returns the exit status. */
int schedule_wake(struct cmd_context *ctx, const struct schedule_row *row, struct err *err);
/* Runs it now, on this terminal. Returns the exit status of the run. */
int schedule_by_hand(struct cmd_context *ctx, const struct schedule_row *row, struct err *err);
/* The file that its runs write to; to be freed. */
char *schedule_log(const struct cmd_context *ctx, const char *name);

/* ---- schedule_add.c ---- */

/* Adds the schedule that arguments and flags describe, or replaces the one of this name.
 * ERR_USAGE, ERR_CONFIG: it could never run. */
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
