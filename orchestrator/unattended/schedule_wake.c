/* schedule_wake.c - installs the timer of a schedule in systemd, launchd or cron, and removes it.
 */
#include "schedule.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/home.h"
#include "base/path.h"
#include "base/program.h"
#include "net/child.h"

enum { LIMIT_MS = 20000, CRONTAB_MOST = 1 << 20, FILE_MOST = 1 << 20 };

#define PROGRAM(...)                                                                               \
	(&(struct program){.argv = (const char *const[]){__VA_ARGS__, NULL}, .limit_ms = LIMIT_MS})

/* ---- which timer ---- */

static bool has_launchd(void)
{
	struct utsname system;

	return uname(&system) == 0 && !strcmp(system.sysname, "Darwin") &&
	       program_found("launchctl");
}

/* Whether this user's systemd answers: it is missing in a container and after a plain `su`. */
static bool has_systemd(void)
{
	return program_found("systemctl") &&
	       program_run(PROGRAM("systemctl", "--user", "show-environment"), NULL, NULL, NULL) ==
		       0;
}

static bool has_crontab(void)
{
	return program_found("crontab");
}

static const struct {
	enum schedule_backend backend;
	bool (*there)(void);
	const char *lacks;
} backends[] = {
	{BACKEND_LAUNCHD, has_launchd, "launchd exists only on macOS"},
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
		if (backends[i].there()) {
			*out = backends[i].backend;
			return 0;
		}
		if (wish)
			return err_set(err, ERR_LOCAL, "%s", backends[i].lacks);
	}
	if (wish)
		return err_set(err, ERR_USAGE,
			       "--backend %s: expected systemd, launchd or "
			       "crontab",
			       wish);
	return err_set(err, ERR_LOCAL,
		       "no timer found: no systemd of this user answers, and crontab is not "
		       "installed: install cron (Debian: apt install cron)");
}

/* ---- crontab ---- */

/* Whether all of it is here as text: what is not would be lost when it is written. */
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
	schedule_cron_without(&text, str_text(&before), row->name, state_dir);
	schedule_cron_block(&text, row, c, child_self(), state_dir);
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
	return schedule_cron_without(&text, str_text(&before), row->name, state_dir)
		       ? write_crontab(&text, err)
		       : 0;
}

static bool in_crontab(const char *state_dir, const struct schedule_row *row)
{
	CLEANUP(str_free) struct str text = STR_MAX(CRONTAB_MOST);
	CLEANUP(str_free) struct str rest = STR_INIT;

	return read_crontab(&text, NULL) == 0 &&
	       schedule_cron_without(&rest, str_text(&text), row->name, state_dir);
}

/* ---- files of systemd and launchd ---- */

/* The files of a schedule; NULL where there is none, or no home. */
struct files {
	enum schedule_backend backend;
	char *path[2];      /* service and timer; or the plist */
	char *unit;         /* "burst-nightly.timer"; "gui/1000/burst.nightly" */
	struct str text[2]; /* as they were before; not there: empty */
};

static char *unit_file(const char *name, const char *kind)
{
	CLEANUP(free_text) char *config = home_xdg("XDG_CONFIG_HOME", ".config");

	return config ? xasprintf("%s/systemd/user/burst-%s.%s", config, name, kind) : NULL;
}

static char *plist_file(const char *name)
{
	CLEANUP(free_text) char *home = home_dir();

	return home ? xasprintf("%s/Library/LaunchAgents/burst.%s.plist", home, name) : NULL;
}

static void files_free_cleanup(struct files *f)
{
	for (int i = 0; i < 2; i++) {
		free(f->path[i]);
		str_free(&f->text[i]);
	}
	free(f->unit);
}

static int files_open(struct files *f, const struct schedule_row *row, struct err *err)
{
	bool systemd = row->backend == BACKEND_SYSTEMD;

	*f = (struct files){.backend = row->backend};
	f->path[0] = systemd ? unit_file(row->name, "service") : plist_file(row->name);
	f->path[1] = systemd ? unit_file(row->name, "timer") : NULL;
	f->unit = systemd ? xasprintf("burst-%s.timer", row->name)
			  : xasprintf("gui/%ld/burst.%s", (long)getuid(), row->name);
	if (!f->path[0])
		return err_set(err, ERR_LOCAL, "no home folder for the schedule's files: set HOME");
	for (int i = 0; i < 2 && f->path[i]; i++) {
		struct err why = {0};
		if (path_read(f->path[i], FILE_MOST, &f->text[i], &why) < 0 &&
		    why.kind != ERR_NOT_FOUND)
			return err_set(err, ERR_LOCAL, "%s", why.msg);
	}
	return 0;
}

/* Whether another state folder has a schedule of this name here. */
static bool files_are_foreign(const struct files *f, const char *state_dir)
{
	return f->text[0].len && !schedule_file_is_of(f->backend, str_text(&f->text[0]), state_dir);
}

static int write_file(const char *path, const struct str *text, struct err *err)
{
	CLEANUP(free_text) char *dir = path_dir(path);

	return path_mkdirs(dir, 0755, err) < 0
		       ? -1
		       : path_write(path, str_text(text), text->len, 0644, err);
}

static int files_remove(const struct files *f, struct err *err)
{
	for (int i = 1; i >= 0; i--)
		if (f->path[i] && path_remove_tree(f->path[i], err) < 0)
			return -1;
	return 0;
}

static void files_put_back(const struct files *f)
{
	for (int i = 0; i < 2; i++)
		if (f->path[i] && f->text[i].len)
			write_file(f->path[i], &f->text[i], NULL);
		else if (f->path[i])
			path_remove_tree(f->path[i], NULL);
}

/* ---- systemd ---- */

static void note_lingering(struct str *note)
{
	CLEANUP(str_free) struct str answer = STR_MAX(256);
	const char *user = getenv("USER");

	if (!user || !program_found("loginctl") ||
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

/* Reads the files again and starts the timer; one that runs is started anew, with its new times. */
static int systemd_start(const struct files *f, struct err *err)
{
	return systemd_reload(err) < 0 ||
			       program_must(PROGRAM("systemctl", "--user", "enable", f->unit), NULL,
					    NULL, err) < 0
		       ? -1
		       : program_must(PROGRAM("systemctl", "--user", "restart", f->unit), NULL,
				      NULL, err);
}

static int systemd_stop(const struct files *f, struct err *err)
{
	return program_must(PROGRAM("systemctl", "--user", "disable", "--now", f->unit), NULL, NULL,
			    err);
}

static int systemd_replace(const struct files *f, const struct str *service,
			   const struct str *timer, struct err *err)
{
	if (write_file(f->path[0], service, err) == 0 && write_file(f->path[1], timer, err) == 0 &&
	    systemd_start(f, err) == 0)
		return 0;
	if (!f->text[1].len)
		systemd_stop(f, NULL);
	files_put_back(f);
	if (f->text[1].len)
		systemd_start(f, NULL);
	else
		systemd_reload(NULL);
	return -1;
}

static int systemd_remove(const struct files *f, struct err *err)
{
	bool answers = has_systemd();

	if (answers && f->text[1].len && systemd_stop(f, err) < 0)
		return -1;
	if (files_remove(f, err) < 0)
		return -1;
	return answers ? systemd_reload(err) : 0;
}

/* ---- launchd ---- */

static int launchd_start(const struct files *f, struct err *err)
{
	CLEANUP(free_text) char *domain = xasprintf("gui/%ld", (long)getuid());

	return program_must(PROGRAM("launchctl", "bootstrap", domain, f->path[0]), NULL, NULL, err);
}

static void launchd_stop(const struct files *f)
{
	if (f->text[0].len && program_found("launchctl")) /* not loaded is no failure */
		program_run(PROGRAM("launchctl", "bootout", f->unit), NULL, NULL, NULL);
}

static int launchd_replace(const struct files *f, const struct str *text, struct err *err)
{
	launchd_stop(f);
	if (write_file(f->path[0], text, err) == 0 && launchd_start(f, err) == 0)
		return 0;
	files_put_back(f);
	if (f->text[0].len)
		launchd_start(f, NULL);
	return -1;
}

/* ---- all of them ---- */

static int install_files(const char *state_dir, const struct schedule_row *row,
			 const struct calendar *c, struct str *note, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str timer = STR_INIT;
	CLEANUP(files_free) struct files f = {0};

	if (files_open(&f, row, err) < 0)
		return -1;
	if (files_are_foreign(&f, state_dir))
		return err_set(err, ERR_USAGE,
			       "schedule: another state folder has a schedule \"%s\" (%s): choose "
			       "another name, or remove that one with its BURST_STATE_DIR",
			       row->name, f.path[0]);
	if (row->backend == BACKEND_LAUNCHD) {
		schedule_launchd_plist(&text, row, c, child_self(), state_dir);
		return launchd_replace(&f, &text, err);
	}
	schedule_systemd_service(&text, row, child_self(), state_dir);
	schedule_systemd_timer(&timer, row, c);
	if (systemd_replace(&f, &text, &timer, err) < 0)
		return -1;
	note_lingering(note);
	return 0;
}

static bool has_files(const struct schedule_row *row)
{
	return row->backend == BACKEND_SYSTEMD || row->backend == BACKEND_LAUNCHD;
}

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
	return has_files(row) ? install_files(state_dir, row, &c, note, err)
			      : install_cron(state_dir, row, &c, note, err);
}

int schedule_uninstall(const char *state_dir, const struct schedule_row *row, struct err *err)
{
	CLEANUP(files_free) struct files f = {0};

	if (!has_files(row))
		return uninstall_cron(state_dir, row, err);
	if (files_open(&f, row, err) < 0)
		return -1;
	if (files_are_foreign(&f, state_dir))
		return 0;
	if (row->backend == BACKEND_SYSTEMD)
		return systemd_remove(&f, err);
	launchd_stop(&f);
	return files_remove(&f, err);
}

bool schedule_is_installed(const char *state_dir, const struct schedule_row *row)
{
	CLEANUP(files_free) struct files f = {0};

	if (!has_files(row))
		return in_crontab(state_dir, row);
	return files_open(&f, row, NULL) == 0 && f.text[0].len &&
	       !files_are_foreign(&f, state_dir) && (!f.path[1] || f.text[1].len);
}
