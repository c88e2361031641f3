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

enum { LIMIT_MS = 20000, CRONTAB_MOST = 1 << 20 };

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

/* Reads the crontab; a user without one has an empty one. */
static int read_crontab(struct str *text, struct err *err)
{
	CLEANUP(str_free) struct str said = STR_MAX(4096);
	int status = program_run(PROGRAM("crontab", "-l"), text, &said, err);

	if (status == 0 || (status > 0 && strstr(str_text(&said), "no crontab for")))
		return text->over ? err_set(err, ERR_LOCAL,
					    "the crontab is larger than %d bytes: not changed",
					    CRONTAB_MOST)
				  : 0;
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
	schedule_cron_without(&text, str_text(&before), row->name);
	schedule_cron_block(&text, row, c, child_self(), state_dir);
	if (write_crontab(&text, err) < 0)
		return -1;
	if (!path_exists("/run/crond.pid") && !path_exists("/var/run/crond.pid") &&
	    !path_exists("/var/run/cron.pid"))
		str_add(note, "no cron daemon is running (no /run/crond.pid): start one, or this "
			      "schedule never runs\n");
	return 0;
}

static int uninstall_cron(const struct schedule_row *row, struct err *err)
{
	CLEANUP(str_free) struct str before = STR_MAX(CRONTAB_MOST);
	CLEANUP(str_free) struct str text = STR_INIT;

	if (!has_crontab())
		return 0;
	if (read_crontab(&before, err) < 0)
		return -1;
	return schedule_cron_without(&text, str_text(&before), row->name)
		       ? write_crontab(&text, err)
		       : 0;
}

static bool in_crontab(const struct schedule_row *row)
{
	CLEANUP(str_free) struct str text = STR_MAX(CRONTAB_MOST);
	CLEANUP(str_free) struct str rest = STR_INIT;

	return read_crontab(&text, NULL) == 0 &&
	       schedule_cron_without(&rest, str_text(&text), row->name);
}

/* ---- files of systemd and launchd ---- */

/* "~/.config/systemd/user/burst-nightly.timer". NULL: no home. The caller frees it. */
static char *unit_file(const char *name, bool timer)
{
	CLEANUP(free_text) char *config = home_xdg("XDG_CONFIG_HOME", ".config");

	return config ? xasprintf("%s/systemd/user/burst-%s.%s", config, name,
				  timer ? "timer" : "service")
		      : NULL;
}

static char *plist_file(const char *name)
{
	CLEANUP(free_text) char *home = home_dir();

	return home ? xasprintf("%s/Library/LaunchAgents/burst.%s.plist", home, name) : NULL;
}

static int write_file(const char *path, const struct str *text, struct err *err)
{
	if (!path)
		return err_set(err, ERR_LOCAL, "no home folder for the schedule's files: set HOME");
	CLEANUP(free_text) char *dir = path_dir(path);
	return path_mkdirs(dir, 0755, err) < 0
		       ? -1
		       : path_write(path, str_text(text), text->len, 0644, err);
}

static int remove_file(const char *path, struct err *err)
{
	return path ? path_remove_tree(path, err) : 0;
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

static int install_systemd(const char *state_dir, const struct schedule_row *row,
			   const struct calendar *c, struct str *note, struct err *err)
{
	CLEANUP(str_free) struct str timer_text = STR_INIT;
	CLEANUP(str_free) struct str service_text = STR_INIT;
	CLEANUP(free_text) char *timer = unit_file(row->name, true);
	CLEANUP(free_text) char *service = unit_file(row->name, false);
	CLEANUP(free_text) char *unit = xasprintf("burst-%s.timer", row->name);

	schedule_systemd_timer(&timer_text, row, c);
	schedule_systemd_service(&service_text, row, child_self(), state_dir);
	if (write_file(service, &service_text, err) < 0 ||
	    write_file(timer, &timer_text, err) < 0 ||
	    program_must(PROGRAM("systemctl", "--user", "daemon-reload"), NULL, NULL, err) < 0 ||
	    program_must(PROGRAM("systemctl", "--user", "enable", "--now", unit), NULL, NULL, err) <
		    0)
		return -1;
	note_lingering(note);
	return 0;
}

static int uninstall_systemd(const struct schedule_row *row, struct err *err)
{
	CLEANUP(free_text) char *timer = unit_file(row->name, true);
	CLEANUP(free_text) char *service = unit_file(row->name, false);
	CLEANUP(free_text) char *unit = xasprintf("burst-%s.timer", row->name);
	bool answers = has_systemd();

	if (answers && timer && path_exists(timer) &&
	    program_must(PROGRAM("systemctl", "--user", "disable", "--now", unit), NULL, NULL,
			 err) < 0)
		return -1;
	if (remove_file(timer, err) < 0 || remove_file(service, err) < 0)
		return -1;
	return answers ? program_must(PROGRAM("systemctl", "--user", "daemon-reload"), NULL, NULL,
				      err)
		       : 0;
}

/* ---- launchd ---- */

static int install_launchd(const char *state_dir, const struct schedule_row *row,
			   const struct calendar *c, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *path = plist_file(row->name);
	CLEANUP(free_text) char *domain = xasprintf("gui/%ld", (long)getuid());

	schedule_launchd_plist(&text, row, c, child_self(), state_dir);
	if (write_file(path, &text, err) < 0)
		return -1;
	return program_must(PROGRAM("launchctl", "bootstrap", domain, path), NULL, NULL, err);
}

static int uninstall_launchd(const struct schedule_row *row, struct err *err)
{
	CLEANUP(free_text) char *path = plist_file(row->name);
	CLEANUP(free_text) char *label = xasprintf("gui/%ld/burst.%s", (long)getuid(), row->name);

	if (path && path_exists(path) && program_found("launchctl"))
		program_run(PROGRAM("launchctl", "bootout", label), NULL, NULL,
			    NULL); /* not loaded is no failure */
	return remove_file(path, err);
}

/* ---- all of them ---- */

static int install(const char *state_dir, const struct schedule_row *row, const struct calendar *c,
		   struct str *note, struct err *err)
{
	switch (row->backend) {
	case BACKEND_SYSTEMD: return install_systemd(state_dir, row, c, note, err);
	case BACKEND_LAUNCHD: return install_launchd(state_dir, row, c, err);
	case BACKEND_CRONTAB:
	case BACKEND_UNKNOWN: break;
	}
	return install_cron(state_dir, row, c, note, err);
}

int schedule_install(const char *state_dir, const struct schedule_row *row, struct str *note,
		     struct err *err)
{
	struct calendar c;

	if (!child_self())
		return err_set(err, ERR_LOCAL,
			       "the path of this program is unknown: call it by its full path");
	if (calendar_parse(row->rule, &c, err) < 0)
		return -1;
	if (install(state_dir, row, &c, note, err) == 0)
		return 0;
	schedule_uninstall(row, NULL); /* leave no partial installation */
	return -1;
}

int schedule_uninstall(const struct schedule_row *row, struct err *err)
{
	switch (row->backend) {
	case BACKEND_SYSTEMD: return uninstall_systemd(row, err);
	case BACKEND_LAUNCHD: return uninstall_launchd(row, err);
	case BACKEND_CRONTAB:
	case BACKEND_UNKNOWN: break;
	}
	return uninstall_cron(row, err);
}

bool schedule_is_installed(const struct schedule_row *row)
{
	CLEANUP(free_text) char *path = NULL;

	switch (row->backend) {
	case BACKEND_SYSTEMD: path = unit_file(row->name, true); break;
	case BACKEND_LAUNCHD: path = plist_file(row->name); break;
	case BACKEND_CRONTAB:
	case BACKEND_UNKNOWN: return in_crontab(row);
	}
	return path && path_exists(path);
}
