/* schedule.h - schedules: their timers (systemd, launchd, cron), and when and how a run of one is
 * started. */
#ifndef BURST_UNATTENDED_SCHEDULE_H
#define BURST_UNATTENDED_SCHEDULE_H

#include "base/calendar.h"
#include "store/store.h"

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
/* Appends a crontab without the block of this schedule. Returns whether it had one. Lines that
 * burst did not write for this state folder stay, wherever they are. */
bool schedule_cron_without(struct str *to, const char *crontab, const char *name,
			   const char *state_dir);
/* Whether the text of a service or plist is of this state folder. */
bool schedule_file_is_of(enum schedule_backend backend, const char *text, const char *state_dir);
/* ERR_USAGE: a path that this timer cannot carry. what: "burst", "the state folder". */
int schedule_check_path(enum schedule_backend backend, const char *what, const char *path,
			struct err *err);

/* ---- schedule_wake.c: installing timers ---- */

/* wish: "systemd", "launchd", "crontab", or NULL: any that exists. ERR_LOCAL: none exists, or not
 * the one wished for. */
int schedule_choose(const char *wish, enum schedule_backend *out, struct err *err);
/* Installs the timer, in place of one of this name and state folder. If that fails, the one before
 * is as it was. Appends to *note what the user should know. */
int schedule_install(const char *state_dir, const struct schedule_row *row, struct str *note,
		     struct err *err);
/* Removes all traces. Succeeds if there are none. */
int schedule_uninstall(const char *state_dir, const struct schedule_row *row, struct err *err);
bool schedule_is_installed(const char *state_dir, const struct schedule_row *row);

/* ---- schedule_run.c ---- */

enum schedule_due { SCHEDULE_NOT_DUE, SCHEDULE_DUE, SCHEDULE_TOO_LATE };
/* since_ms: due time of its last firing, or its creation. *missed: further due times since then. */
enum schedule_due schedule_check_due(const struct schedule_row *row, const struct calendar *c,
				     int64_t since_ms, int64_t now_ms, int64_t *due_ms,
				     int *missed);
/* Due time of a firing, from its key. */
int64_t schedule_due_ms(const struct firing_row *f);
/* Runs what is due, if anything, and records it. Returns the exit status. */
int schedule_wake(struct store *store, const char *state_dir, const struct schedule_row *row,
		  struct err *err);
/* Runs it now on this terminal. Returns the run's exit status. */
int schedule_by_hand(struct store *store, const char *state_dir, const struct schedule_row *row,
		     struct err *err);
/* The log file of its runs. The caller frees it. */
char *schedule_log(const char *state_dir, const char *name);

#endif
