/* schedule.h - schedules: their timers (systemd, cron), and the request that a due time puts into
 * the queue. */
#ifndef BURST_UNATTENDED_SCHEDULE_H
#define BURST_UNATTENDED_SCHEDULE_H

#include "base/calendar.h"
#include "store/store.h"

/* ---- the texts for the timers; no I/O; exported for tests ---- */

/* Append to *to. program: the path of burst. */
void schedule_cron_lines(struct str *to, const struct schedule_row *row, const struct calendar *c,
			 const char *program, const char *state_dir);
void schedule_systemd_timer(struct str *to, const struct schedule_row *row,
			    const struct calendar *c);
void schedule_systemd_service(struct str *to, const struct schedule_row *row, const char *program,
			      const char *state_dir);
/* Appends the crontab without the lines of this schedule. Returns whether it had some. */
bool schedule_cron_remove(struct str *to, const char *crontab, const char *name,
			  const char *state_dir);
/* Whether the text of a service belongs to this state folder. */
bool schedule_unit_has_state(const char *text, const char *state_dir);
/* ERR_USAGE: a path that this timer cannot carry. what: "burst", "the state folder". */
int schedule_check_path(enum schedule_backend backend, const char *what, const char *path,
			struct err *err);

/* ---- installing timers ---- */

/* wish: "systemd", "crontab", or NULL: any that exists. ERR_LOCAL: none exists, or not the one
 * wished for. */
int schedule_choose(const char *wish, enum schedule_backend *out, struct err *err);
/* Installs the timer, in place of one of this name and state folder. If that fails, the earlier
 * timer stays as it was. Appends to *note what the user should know, a line each. */
int schedule_install(const char *state_dir, const struct schedule_row *row, struct str *note,
		     struct err *err);
/* Removes the timer. Succeeds if there is none, or only one of another state folder. */
int schedule_uninstall(const char *state_dir, const struct schedule_row *row, struct err *err);
bool schedule_is_installed(const char *state_dir, const struct schedule_row *row);

/* ---- what is due ---- */

enum schedule_due { SCHEDULE_NOT_DUE, SCHEDULE_DUE, SCHEDULE_TOO_LATE };
/* Sets *due_ms to the last due time behind since_ms, which is the one submitted last or the
 * schedule's creation, and *missed to the number of earlier ones since then. For tests. */
enum schedule_due schedule_check_due(const struct schedule_row *row, const struct calendar *c,
				     int64_t since_ms, int64_t now_ms, int64_t *due_ms,
				     int *missed);
/* Puts one request into the queue if one or more times have become due since the last one; by_hand:
 * in any case. A time that is too late to be made up for becomes a request with state removed. One
 * transaction. ERR_NOT_FOUND: there is no such schedule. */
int schedule_submit(struct store *store, const char *name, bool by_hand, int64_t now_ms,
		    struct err *err);

#endif
