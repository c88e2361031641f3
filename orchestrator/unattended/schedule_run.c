/* schedule_run.c - decides whether a run of a schedule is due, starts it, retries it, and records
 * the result.
 *
 * One process at a time works for a schedule and holds the lock of its log. It finds times that
 * became due meanwhile when it checks again. If it dies with the machine, the row still says
 * "running", and the next process continues the run. */
#include "schedule.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/path.h"
#include "base/program.h"
#include "net/child.h"

enum {
	LATE_MS = 5 * 60000, /* on a machine that is awake, no timer fires later than this */
	LOG_MOST = 1 << 20,
	KEPT = 200,      /* firings that the ledger keeps */
	BUSY_MS = 30000, /* between two checks whether a run of the same job has ended */
	EXIT_NO_CAPACITY = 4,
	EXIT_OUTSIDE = 6,
	EXIT_BUSY = 7,
};

struct shift {
	struct store *store;
	const char *state_dir;
	const struct schedule_row *row;
	struct calendar c;
	struct firing_row firing;
	char **environment;
	int log; /* where its run writes */
};

/* ---- what is due? ---- */

enum schedule_due schedule_check_due(const struct schedule_row *row, const struct calendar *c,
				     int64_t since_ms, int64_t now_ms, int64_t *due_ms, int *missed)
{
	*due_ms = calendar_last(c, since_ms, now_ms, missed);
	if (*due_ms < 0)
		return SCHEDULE_NOT_DUE;
	return now_ms - *due_ms > MAX(row->catch_up_ms, LATE_MS) ? SCHEDULE_TOO_LATE : SCHEDULE_DUE;
}

int64_t schedule_due_ms(const struct firing_row *f)
{
	struct tm t = {0};

	return strptime(f->due, "%Y-%m-%dT%H:%M:%SZ", &t) ? (int64_t)timegm(&t) * 1000
							  : f->started_ms;
}

static int newest_firing(const struct shift *s, struct firing_row *out, bool *found,
			 struct err *err)
{
	struct firing_row *rows = NULL;
	size_t count = 0;

	if (store_firings(s->store, s->row->name, 1, &rows, &count, err) < 0)
		return -1;
	*found = count > 0;
	if (count)
		*out = rows[0];
	free(rows);
	return 0;
}

static void begin_firing(struct shift *s, int64_t due_ms, int missed, enum firing_state state)
{
	s->firing = (struct firing_row){.missed = missed, .started_ms = clock_wall_ms()};
	COPY_TEXT(s->firing.schedule, s->row->name);
	s->firing.state = state;
	clock_rfc3339(s->firing.due, sizeof(s->firing.due), due_ms);
}

static int keep(struct shift *s, enum firing_state state, const char *said, struct err *err)
{
	s->firing.state = state;
	COPY_TEXT(s->firing.said, said);
	if (state != FIRING_RUNNING)
		s->firing.ended_ms = clock_wall_ms();
	return store_put_firing(s->store, &s->firing, err);
}

/* ---- the run ---- */

/* The same each time for one due time, and different on each machine. */
static int64_t jitter_ms(const struct shift *s)
{
	CLEANUP(free_text) char *text = xasprintf("%s\n%s", s->row->config, s->firing.due);
	unsigned char hash[32];
	uint64_t number;

	sha256_raw(text, strlen(text), hash);
	memcpy(&number, hash, sizeof(number));
	return s->row->jitter_ms ? (int64_t)(number % (uint64_t)s->row->jitter_ms) : 0;
}

/* Uses the clock that counts sleep, so that a laptop which slept does not wait again. */
static void wait_until(int64_t boot_ms)
{
	for (int64_t left; (left = boot_ms - clock_boot_ms()) > 0;)
		poll(NULL, 0, (int)MIN(left, 1000));
}

static void name_run(struct shift *s)
{
	struct run_row *runs = NULL;
	size_t count = 0;

	if (store_runs(s->store, s->row->config, false, 1, &runs, &count, NULL) == 0 && count &&
	    runs[0].started_ms >= s->firing.started_ms)
		COPY_TEXT(s->firing.run, runs[0].id);
	free(runs);
}

/* Returns its exit status, or -1 if it could not start. */
static int run_once(struct shift *s, struct err *err)
{
	CLEANUP(free_text) char *folder = path_dir(s->row->config);
	const char *const argv[] = {child_self(), "run", "--yes", s->row->config, NULL};
	char at[32];

	if (s->log > STDERR_FILENO)
		dprintf(s->log, "==== %s: %s, due %s\n",
			clock_rfc3339(at, sizeof(at), clock_wall_ms()), s->row->name,
			s->firing.due);
	int status = program_run(&(struct program){.argv = argv,
						   .folder = folder,
						   .environment = s->environment,
						   .output_fd = s->log,
						   .forwards = true},
				 NULL, NULL, err);
	if (status >= 0 && s->log > STDERR_FILENO)
		dprintf(s->log, "==== %s: exit %d\n",
			clock_rfc3339(at, sizeof(at), clock_wall_ms()), status);
	return status;
}

/* Time until the next try; -1: none. */
static int64_t next_try_ms(const struct shift *s, int status, int64_t left_ms)
{
	int64_t wait = status == EXIT_BUSY ? MIN(BUSY_MS, s->row->retry_after_ms)
					   : s->row->retry_after_ms << MIN(s->firing.tries - 1, 10);
	bool again = status == EXIT_BUSY ? s->row->overlap == OVERLAP_WAIT
					 : (status == EXIT_NO_CAPACITY || status == EXIT_OUTSIDE) &&
						   s->firing.tries <= s->row->retries;

	return again && wait < left_ms ? wait : -1;
}

static int run_it(struct shift *s, struct err *err)
{
	int64_t due = schedule_due_ms(&s->firing);

	for (;;) {
		s->firing.tries++;
		if (store_put_firing(s->store, &s->firing, err) < 0)
			return -1;
		int status = run_once(s, err);
		if (status < 0)
			return -1;
		s->firing.exit_status = status;
		name_run(s);
		int64_t wait = next_try_ms(s, status, due + s->row->window_ms - clock_wall_ms());
		if (wait < 0)
			return status;
		s->firing.tries -= status == EXIT_BUSY; /* it has not begun */
		wait_until(clock_boot_ms() + wait);
	}
}

static int finish(struct shift *s, int status, struct err *err)
{
	char said[64] = "";

	if (status == EXIT_BUSY && s->row->overlap == OVERLAP_SKIP)
		return keep(s, FIRING_SKIPPED, "another run of the job was active", err);
	if (status)
		snprintf(said, sizeof(said), "exit %d", status);
	return keep(s, status ? FIRING_FAILED : FIRING_DONE, said, err);
}

static int perform(struct shift *s, struct err *err)
{
	wait_until(clock_boot_ms() + jitter_ms(s));
	int status = run_it(s, err);
	if (status >= 0)
		return finish(s, status, err) < 0 ? -1 : status;
	keep(s, FIRING_FAILED, err ? err->msg : "", NULL);
	return -1;
}

/* ---- a timer's call ---- */

/* Continues a firing whose process is gone, while there is time. */
static int take_up(struct shift *s, struct err *err)
{
	if (clock_wall_ms() >
	    schedule_due_ms(&s->firing) + MAX(s->row->window_ms, s->row->catch_up_ms))
		return keep(s, FIRING_FAILED, "its process died (was the machine off?)", err);
	log_line(LOG_NOTE, "schedule %s: the run due %s died with its process; starting it again",
		 s->row->name, s->firing.due);
	return perform(s, err) < 0 ? -1 : 0;
}

static void forget_old(struct shift *s)
{
	struct firing_row *rows = NULL;
	size_t count = 0;

	if (store_firings(s->store, s->row->name, 0, &rows, &count, NULL) == 0)
		for (size_t i = KEPT; i < count; i++)
			store_remove_firing(s->store, &rows[i], NULL);
	free(rows);
}

/* Returns 1 if something was due and is handled, 0 if not. */
static int fire_once(struct shift *s, int *status, bool *ran, struct err *err)
{
	struct firing_row last;
	int64_t due_ms, since = s->row->made_ms;
	bool found;
	int missed;

	if (newest_firing(s, &last, &found, err) < 0)
		return -1;
	if (found && last.state == FIRING_RUNNING) {
		s->firing = last;
		return take_up(s, err) < 0 ? -1 : 1;
	}
	since = found ? MAX(since, schedule_due_ms(&last)) : since;
	enum schedule_due due =
		schedule_check_due(s->row, &s->c, since, clock_wall_ms(), &due_ms, &missed);
	if (due == SCHEDULE_NOT_DUE)
		return 0;
	begin_firing(s, due_ms, missed, FIRING_RUNNING);
	if (due == SCHEDULE_TOO_LATE)
		return keep(s, FIRING_MISSED,
			    "the machine was off or asleep for longer than --catch-up", err) < 0
			       ? -1
			       : 1;
	if (*ran && s->row->overlap == OVERLAP_SKIP)
		return keep(s, FIRING_SKIPPED, "the previous run was still active", err) < 0 ? -1
											     : 1;
	*ran = true;
	*status = perform(s, err);
	return *status < 0 ? -1 : 1;
}

char *schedule_log(const char *state_dir, const char *name)
{
	CLEANUP(free_text) char *dir = path_join(state_dir, "schedules");
	CLEANUP(free_text) char *file = xasprintf("%s.log", name);

	return path_join(dir, file);
}

/* Opens the log (a new one if it has grown large) and takes its lock. ERR_BUSY: another process
 * works for this schedule. */
static int open_log(struct shift *s, int *lock, struct err *err)
{
	CLEANUP(free_text) char *path = schedule_log(s->state_dir, s->row->name);
	CLEANUP(free_text) char *dir = path_dir(path);
	CLEANUP(free_text) char *locked = xasprintf("%s.lock", path);

	if (path_mkdirs(dir, 0700, err) < 0 || path_lock(locked, "schedule", lock, err) < 0)
		return -1;
	s->log = path_open_log(path, LOG_MOST);
	if (s->log < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	return 0;
}

/* Turns lines into an array for exec; it points into text. The caller frees it. */
static char **environment_of(char *text)
{
	size_t count = 0, cap = 0;
	char **list = NULL, *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		GROW(list, count, cap);
		list[count++] = line;
	}
	GROW(list, count, cap);
	list[count] = NULL;
	return list;
}

int schedule_wake(struct store *store, const char *state_dir, const struct schedule_row *row,
		  struct err *err)
{
	CLEANUP(free_text) char *text = xstrdup(row->environment);
	struct shift s = {.store = store, .state_dir = state_dir, .row = row, .log = -1};
	int lock = -1, status = 0, more = 0;
	bool ran = false;

	if (calendar_parse(row->rule, &s.c, err) < 0)
		return -1;
	if (open_log(&s, &lock, err) < 0) {
		if (err->kind != ERR_BUSY)
			return -1;
		err_clear(err);
		return 0;
	}
	s.environment = environment_of(text);
	while ((more = fire_once(&s, &status, &ran, err)) > 0)
		;
	forget_old(&s);
	free(s.environment);
	fd_close(s.log);
	fd_close(lock);
	return more < 0 ? -1 : status;
}

int schedule_by_hand(struct store *store, const char *state_dir, const struct schedule_row *row,
		     struct err *err)
{
	CLEANUP(free_text) char *text = xstrdup(row->environment);
	struct schedule_row now = *row;
	struct shift s = {.store = store, .state_dir = state_dir, .row = &now, .log = -1};
	int lock = -1;

	now.jitter_ms = now.retries = 0;
	now.overlap = OVERLAP_SKIP;
	if (open_log(&s, &lock, err) < 0)
		return err->kind == ERR_BUSY
			       ? err_set(err, ERR_BUSY,
					 "schedule %s: a run is already active (see `burst ps`)",
					 row->name)
			       : -1;
	fd_close(s.log);
	s.log = STDERR_FILENO;
	s.environment = environment_of(text);
	begin_firing(&s, clock_wall_ms(), 0, FIRING_RUNNING);
	int status = perform(&s, err);
	free(s.environment);
	fd_close(lock);
	return status;
}
