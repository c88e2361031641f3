/* schedule.c - schedules: their timers in systemd and cron, and the request that a due time puts
 * into the queue.
 *
 * Each timer starts `burst schedule run NAME --due` at the schedule's times and, if missed ones are
 * made up for, every quarter of an hour: cron makes up for nothing, and systemd skips a time that
 * the clock skips. burst decides whether a time is due, and submits one request for it. The queue
 * does the rest. */
#include "schedule.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/err.h"
#include "base/path.h"
#include "base/program.h"
#include "net/child.h"
#include "requests.h"

enum {
	TICK_MINUTES = 15,   /* between the starts that make up for missed times */
	LATE_MS = 5 * 60000, /* no timer of a machine that is awake fires later than this */
	LIMIT_MS = 20000,    /* for one call of crontab or systemctl */
	CRONTAB_MOST = 1 << 20,
	FILE_MOST = 1 << 20,
};

/* ==== the texts of the timers ==== */

/* ---- cron ---- */

/* Quotes a word for cron's shell. A "%" would end the command. */
static void append_cron_word(struct str *to, const char *word)
{
	CLEANUP(str_free) struct str quoted = STR_INIT;

	str_add_shell(&quoted, word);
	for (const char *p = str_text(&quoted); *p; p++)
		str_addf(to, *p == '%' ? "\\%c" : "%c", *p);
}

/* Appends " BURST_STATE_DIR=WORD ". Together with the schedule's name, that identifies a schedule's
 * lines, because two state folders may have a schedule of one name. */
static void append_cron_state(struct str *to, const char *state_dir)
{
	str_add(to, " BURST_STATE_DIR=");
	append_cron_word(to, state_dir);
	str_addc(to, ' ');
}

static void append_cron_line(struct str *to, const char *fields, const struct schedule_row *row,
			     const char *program, const char *state_dir)
{
	str_add(to, fields);
	append_cron_state(to, state_dir);
	append_cron_word(to, program);
	str_addf(to, " schedule run %s --due >/dev/null 2>&1\n", row->name);
}

void schedule_cron_lines(struct str *to, const struct schedule_row *row, const struct calendar *c,
			 const char *program, const char *state_dir)
{
	CLEANUP(str_free) struct str fields = STR_INIT;

	calendar_write(c, &fields);
	if (to->len && to->s[to->len - 1] != '\n')
		str_addc(to, '\n');
	append_cron_line(to, str_text(&fields), row, program, state_dir);
	if (row->catch_up_ms)
		append_cron_line(to, "*/15 * * * *", row, program, state_dir);
}

bool schedule_cron_remove(struct str *to, const char *crontab, const char *name,
			  const char *state_dir)
{
	CLEANUP(str_free) struct str state = STR_INIT;
	CLEANUP(free_text) char *command = xasprintf(" schedule run %s --due", name);
	bool found = false;
	const char *line;
	size_t len;

	append_cron_state(&state, state_dir);
	while ((line = str_next_line(&crontab, &len))) {
		CLEANUP(free_text) char *text = xstrndup(line, len);
		bool ours = strstr(text, command) && strstr(text, str_text(&state));
		found = found || ours;
		if (!ours)
			str_addn(to, line, (size_t)(crontab - line));
	}
	return found;
}

/* ---- systemd ---- */

void schedule_systemd_timer(struct str *to, const struct schedule_row *row,
			    const struct calendar *c)
{
	str_addf(to,
		 "# written by `burst schedule add`; `burst schedule rm %s` removes "
		 "it\n[Unit]\nDescription=burst schedule %s: %s\n\n[Timer]\n",
		 row->name, row->name, row->rule);
	calendar_write_systemd(c, to);
	if (row->catch_up_ms)
		str_addf(to, "OnCalendar=*:0/%d\nPersistent=true\n", TICK_MINUTES);
	str_addf(to, "AccuracySec=1s\nUnit=burst-%s.service\n\n[Install]\nWantedBy=timers.target\n",
		 row->name);
}

/* Appends a quoted word of a unit's line. doubled: the signs that systemd expands there: "%", and
 * in commands "$". */
static void append_unit_word(struct str *to, const char *word, const char *doubled)
{
	str_addc(to, '"');
	for (const char *p = word; *p; p++) {
		if (*p == '"' || *p == '\\')
			str_addc(to, '\\');
		if (strchr(doubled, *p))
			str_addc(to, *p);
		str_addc(to, *p);
	}
	str_addc(to, '"');
}

/* The line that tells whose unit it is: two state folders may have a schedule of one name. */
static void append_unit_state(struct str *to, const char *state_dir)
{
	CLEANUP(free_text) char *setting = xasprintf("BURST_STATE_DIR=%s", state_dir);

	str_add(to, "Environment=");
	append_unit_word(to, setting, "%");
	str_addc(to, '\n');
}

/* Appends "ExecStart=PROGRAM". systemd accepts no program path with quotes or backslashes, and
 * expands no "$" in it, so a shell gets such a path as a word. */
static void append_unit_command(struct str *to, const char *program)
{
	str_add(to, "ExecStart=");
	if (strpbrk(program, "$\"'\\"))
		str_add(to, "/bin/sh -c \"exec \\\"$$0\\\" \\\"$$@\\\"\" ");
	append_unit_word(to, program, "%$");
}

void schedule_systemd_service(struct str *to, const struct schedule_row *row, const char *program,
			      const char *state_dir)
{
	str_addf(to,
		 "# written by `burst schedule add`; `burst schedule rm %s` removes "
		 "it\n[Unit]\nDescription=burst schedule %s\n\n[Service]\nType=oneshot\n",
		 row->name, row->name);
	append_unit_state(to, state_dir);
	append_unit_command(to, program);
	str_addf(to,
		 " schedule run %s --due\n"
		 "# kept pods and the queue's client outlive the run; a stop is passed on to it\n"
		 "KillMode=process\n"
		 "# a run that is stopped fetches its files and releases its pods first\n"
		 "TimeoutStopSec=600\n",
		 row->name);
}

bool schedule_unit_has_state(const char *text, const char *state_dir)
{
	CLEANUP(str_free) struct str mark = STR_INIT;

	append_unit_state(&mark, state_dir);
	return strstr(text, str_text(&mark)) != NULL;
}

/* ---- both ---- */

int schedule_check_path(enum schedule_backend backend, const char *what, const char *path,
			struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	bool cron = backend == BACKEND_CRONTAB;
	const char *odd = cron || utf8_valid(path, strlen(path)) ? NULL : "is not UTF-8";

	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			odd = "has a line break or another control character";
	if (!odd)
		return 0;
	str_add_printable(&shown, path, strlen(path), 300);
	return err_set(err, ERR_USAGE, "schedule: the path of %s %s, which no timer can carry: %s",
		       what, odd, str_text(&shown));
}

/* ==== installing timers ==== */

#define PROGRAM(...)                                                                               \
	(&(struct program){.argv = (const char *const[]){__VA_ARGS__, NULL}, .limit_ms = LIMIT_MS})

/* ---- which timer ---- */

/* Whether this user's systemd answers: it is missing in a container and after a plain `su`. */
static bool has_systemd(void)
{
	return program_exists("systemctl") &&
	       program_run(PROGRAM("systemctl", "--user", "show-environment"), NULL, NULL, NULL) ==
		       0;
}

static bool has_crontab(void)
{
	return program_exists("crontab");
}

static const struct {
	enum schedule_backend backend;
	bool (*is_there)(void);
	const char *lacks;
} backends[] = {
	{BACKEND_SYSTEMD, has_systemd,
	 "no systemd of this user answers (`systemctl --user show-environment`): log in on a "
	 "system that runs one, or use --backend crontab"},
	{BACKEND_CRONTAB, has_crontab,
	 "crontab is not installed: install cron (Debian: apt install cron)"},
};

int schedule_choose(const char *wish, enum schedule_backend *out, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(backends); i++) {
		if (wish && strcmp(wish, schedule_backend_word(backends[i].backend)) != 0)
			continue;
		if (backends[i].is_there()) {
			*out = backends[i].backend;
			return 0;
		}
		if (wish)
			return err_set(err, ERR_LOCAL, "%s", backends[i].lacks);
	}
	if (wish)
		return err_set(err, ERR_USAGE, "--backend %s: expected systemd or crontab", wish);
	return err_set(err, ERR_LOCAL,
		       "no timer found: no systemd of this user answers, and crontab is not "
		       "installed: install cron (Debian: apt install cron)");
}

/* ---- crontab ---- */

/* ERR_LOCAL: the crontab was cut, or has a zero byte, so that writing it back would lose a part. */
static int check_crontab(const struct str *text, struct err *err)
{
	if (text->over)
		return err_set(err, ERR_LOCAL, "the crontab is larger than %d bytes: not changed",
			       CRONTAB_MOST);
	return memchr(str_text(text), '\0', text->len)
		       ? err_set(err, ERR_LOCAL,
				 "the crontab has a zero byte: not changed; remove it with "
				 "`crontab -e`")
		       : 0;
}

/* Reads the crontab; a user without one has an empty one. */
static int read_crontab(struct str *text, struct err *err)
{
	CLEANUP(str_free) struct str said = STR_MAX(4096);
	int status = program_run(PROGRAM("crontab", "-l"), text, &said, err);

	if (status == 0 || (status > 0 && strstr(str_text(&said), "no crontab for")))
		return check_crontab(text, err);
	if (status < 0)
		return -1;
	return err_set(err, ERR_LOCAL, "`crontab -l` failed: %.*s",
		       (int)strcspn(str_text(&said), "\n"), str_text(&said));
}

static int write_crontab(const struct str *text, struct err *err)
{
	struct program *p = text->len ? PROGRAM("crontab", "-") : PROGRAM("crontab", "-r");

	p->input = text->len ? str_text(text) : NULL;
	return program_must(p, NULL, NULL, err);
}

static int install_cron(const char *state_dir, const struct schedule_row *row,
			const struct calendar *c, struct str *note, struct err *err)
{
	CLEANUP(str_free) struct str before = STR_MAX(CRONTAB_MOST);
	CLEANUP(str_free) struct str text = STR_INIT;

	if (read_crontab(&before, err) < 0)
		return -1;
	schedule_cron_remove(&text, str_text(&before), row->name, state_dir);
	schedule_cron_lines(&text, row, c, child_self(), state_dir);
	if (write_crontab(&text, err) < 0)
		return -1;
	if (!path_exists("/run/crond.pid") && !path_exists("/var/run/crond.pid") &&
	    !path_exists("/var/run/cron.pid"))
		str_add(note, "no cron daemon is running (no /run/crond.pid): start one, or this "
			      "schedule never runs\n");
	return 0;
}

static int uninstall_cron(const char *state_dir, const struct schedule_row *row, struct err *err)
{
	CLEANUP(str_free) struct str before = STR_MAX(CRONTAB_MOST);
	CLEANUP(str_free) struct str text = STR_INIT;

	if (!has_crontab())
		return 0;
	if (read_crontab(&before, err) < 0)
		return -1;
	return schedule_cron_remove(&text, str_text(&before), row->name, state_dir)
		       ? write_crontab(&text, err)
		       : 0;
}

static bool is_in_crontab(const char *state_dir, const struct schedule_row *row)
{
	CLEANUP(str_free) struct str text = STR_MAX(CRONTAB_MOST);
	CLEANUP(str_free) struct str rest = STR_INIT;

	return read_crontab(&text, NULL) == 0 &&
	       schedule_cron_remove(&rest, str_text(&text), row->name, state_dir);
}

/* ---- systemd ---- */

/* The service (0) and the timer (1) of a schedule, as on disk before a change; "": missing. */
struct units {
	char *path[2];
	char *timer; /* "burst-nightly.timer" */
	struct str text[2];
};

static void units_free_cleanup(struct units *u)
{
	for (int i = 0; i < 2; i++) {
		free(u->path[i]);
		str_free(&u->text[i]);
	}
	free(u->timer);
}

static int units_open(struct units *u, const char *name, struct err *err)
{
	static const char *const kinds[] = {"service", "timer"};
	CLEANUP(free_text) char *config = home_xdg("XDG_CONFIG_HOME", ".config");

	*u = (struct units){.timer = xasprintf("burst-%s.timer", name)};
	if (!config)
		return err_set(err, ERR_LOCAL, "no home folder for the schedule's units: set HOME");
	for (int i = 0; i < 2; i++) {
		struct err why = {0};
		u->path[i] = xasprintf("%s/systemd/user/burst-%s.%s", config, name, kinds[i]);
		if (path_read(u->path[i], FILE_MOST, &u->text[i], &why) < 0 &&
		    why.kind != ERR_NOT_FOUND)
			return err_set(err, ERR_LOCAL, "%s", why.msg);
	}
	return 0;
}

/* Whether the units belong to a schedule of this name of another state folder. */
static bool units_are_foreign(const struct units *u, const char *state_dir)
{
	return u->text[0].len && !schedule_unit_has_state(str_text(&u->text[0]), state_dir);
}

static int write_unit(const char *path, const struct str *text, struct err *err)
{
	CLEANUP(free_text) char *dir = path_dir(path);

	return path_mkdirs(dir, 0755, err) < 0
		       ? -1
		       : path_write(path, str_text(text), text->len, 0644, err);
}

static void units_restore(const struct units *u)
{
	for (int i = 0; i < 2; i++)
		if (u->text[i].len)
			write_unit(u->path[i], &u->text[i], NULL);
		else
			path_remove_tree(u->path[i], NULL);
}

/* Says that the timer runs only while the user is logged in, unless systemd lets it linger. */
static void note_lingering(struct str *note)
{
	CLEANUP(str_free) struct str answer = STR_MAX(256);
	const char *user = getenv("USER");

	if (!user || !program_exists("loginctl") ||
	    program_run(PROGRAM("loginctl", "show-user", user, "-p", "Linger", "--value"), &answer,
			NULL, NULL) != 0 ||
	    starts_with(str_text(&answer), "no"))
		str_add(note, "it runs only while you are logged in; `loginctl enable-linger` lets "
			      "it run from boot\n");
}

static int systemd_reload(struct err *err)
{
	return program_must(PROGRAM("systemctl", "--user", "daemon-reload"), NULL, NULL, err);
}

/* Makes systemd read the units again and start the timer, also anew with its new times. */
static int systemd_start(const struct units *u, struct err *err)
{
	return systemd_reload(err) < 0 ||
			       program_must(PROGRAM("systemctl", "--user", "enable", u->timer),
					    NULL, NULL, err) < 0
		       ? -1
		       : program_must(PROGRAM("systemctl", "--user", "restart", u->timer), NULL,
				      NULL, err);
}

static int systemd_stop(const struct units *u, struct err *err)
{
	return program_must(PROGRAM("systemctl", "--user", "disable", "--now", u->timer), NULL,
			    NULL, err);
}

/* Writes both units and starts the timer. On failure restores the earlier units and timer. */
static int replace_units(const struct units *u, const struct str *service, const struct str *timer,
			 struct err *err)
{
	if (write_unit(u->path[0], service, err) == 0 && write_unit(u->path[1], timer, err) == 0 &&
	    systemd_start(u, err) == 0)
		return 0;
	if (!u->text[1].len)
		systemd_stop(u, NULL);
	units_restore(u);
	if (u->text[1].len)
		systemd_start(u, NULL);
	else
		systemd_reload(NULL);
	return -1;
}

static int install_units(const char *state_dir, const struct schedule_row *row,
			 const struct calendar *c, struct str *note, struct err *err)
{
	CLEANUP(str_free) struct str service = STR_INIT;
	CLEANUP(str_free) struct str timer = STR_INIT;
	CLEANUP(units_free) struct units u = {0};

	if (units_open(&u, row->name, err) < 0)
		return -1;
	if (units_are_foreign(&u, state_dir))
		return err_set(err, ERR_USAGE,
			       "schedule: another state folder has a schedule \"%s\" (%s): choose "
			       "another name, or remove that one with its BURST_STATE_DIR",
			       row->name, u.path[0]);
	schedule_systemd_service(&service, row, child_self(), state_dir);
	schedule_systemd_timer(&timer, row, c);
	if (replace_units(&u, &service, &timer, err) < 0)
		return -1;
	note_lingering(note);
	return 0;
}

static int uninstall_units(const char *state_dir, const struct schedule_row *row, struct err *err)
{
	CLEANUP(units_free) struct units u = {0};

	if (units_open(&u, row->name, err) < 0)
		return -1;
	if (units_are_foreign(&u, state_dir))
		return 0;
	bool answers = has_systemd();
	if ((answers && u.text[1].len && systemd_stop(&u, err) < 0) ||
	    path_remove_tree(u.path[1], err) < 0 || path_remove_tree(u.path[0], err) < 0)
		return -1;
	return answers ? systemd_reload(err) : 0;
}

/* ---- both ---- */

int schedule_install(const char *state_dir, const struct schedule_row *row, struct str *note,
		     struct err *err)
{
	struct calendar c;

	if (!child_self())
		return err_set(err, ERR_LOCAL,
			       "the path of this program is unknown: call it by its full path");
	if (schedule_check_path(row->backend, "burst", child_self(), err) < 0 ||
	    schedule_check_path(row->backend, "the state folder", state_dir, err) < 0 ||
	    calendar_parse(row->rule, &c, err) < 0)
		return -1;
	return row->backend == BACKEND_SYSTEMD ? install_units(state_dir, row, &c, note, err)
					       : install_cron(state_dir, row, &c, note, err);
}

int schedule_uninstall(const char *state_dir, const struct schedule_row *row, struct err *err)
{
	return row->backend == BACKEND_SYSTEMD ? uninstall_units(state_dir, row, err)
					       : uninstall_cron(state_dir, row, err);
}

bool schedule_is_installed(const char *state_dir, const struct schedule_row *row)
{
	CLEANUP(units_free) struct units u = {0};

	if (row->backend != BACKEND_SYSTEMD)
		return is_in_crontab(state_dir, row);
	return units_open(&u, row->name, NULL) == 0 && u.text[0].len && u.text[1].len &&
	       !units_are_foreign(&u, state_dir);
}

/* ==== what is due ==== */

enum schedule_due schedule_check_due(const struct schedule_row *row, const struct calendar *c,
				     int64_t since_ms, int64_t now_ms, int64_t *due_ms, int *missed)
{
	*due_ms = calendar_last(c, since_ms, now_ms, missed);
	if (*due_ms < 0)
		return SCHEDULE_NOT_DUE;
	return now_ms - *due_ms > MAX(row->catch_up_ms, (int64_t)LATE_MS) ? SCHEDULE_TOO_LATE
									  : SCHEDULE_DUE;
}

/* Sets row->due_ms to the due time, and *out for it. Returns 1, 0 if none is due, or -1. */
static int fill_due_request(struct schedule_row *row, int64_t now_ms, struct request_row *out,
			    struct err *err)
{
	int64_t due_ms;
	struct calendar c;
	int missed;

	if (calendar_parse(row->rule, &c, err) < 0)
		return -1;
	enum schedule_due due = schedule_check_due(row, &c, MAX(row->made_ms, row->due_ms), now_ms,
						   &due_ms, &missed);
	if (due == SCHEDULE_NOT_DUE)
		return 0;
	row->due_ms = due_ms;
	if (due == SCHEDULE_TOO_LATE) {
		out->state = REQUEST_REMOVED;
		out->ended_ms = now_ms;
		COPY_TEXT(out->error,
			  "missed: the machine was off or asleep for longer than --catch-up");
	}
	if (missed)
		log_line(LOG_NOTE, "schedule %s: %d earlier time%s missed", row->name, missed,
			 missed == 1 ? " was" : "s were");
	return 1;
}

/* In a transaction, so that of several timers that fire at once one submits. */
static int submit_in_transaction(struct store *s, const char *name, bool by_hand, int64_t now_ms,
				 struct err *err)
{
	struct request_row request = {.state = REQUEST_PENDING, .created_ms = now_ms};
	struct schedule_row row;

	if (store_schedule(s, name, &row, err) < 0)
		return -1;
	if (by_hand)
		row.due_ms = now_ms;
	int due = by_hand ? 1 : fill_due_request(&row, now_ms, &request, err);
	if (due <= 0)
		return due;
	COPY_TEXT(request.config, row.config);
	if (requests_put_new(s, &request, err) < 0)
		return -1;
	COPY_TEXT(row.request, request.id);
	return store_put_schedule(s, &row, err);
}

int schedule_submit(struct store *s, const char *name, bool by_hand, int64_t now_ms,
		    struct err *err)
{
	if (store_begin(s, err) < 0)
		return -1;
	return store_end(s, submit_in_transaction(s, name, by_hand, now_ms, err), err);
}
