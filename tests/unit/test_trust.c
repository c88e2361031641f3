/* test_trust.c - which paths a project may name, by where the home folder, the project and the
 * repository are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "config/trust.h"
#include "folder.h"

static int make_root(void **state)
{
	static const char *const files[] = {"home/.ssh/id",
					    "home/.local/share/quiz/x",
					    "home/.local/share/mail/x",
					    "home/src/repo/.git/config",
					    "home/src/repo/jobs/x",
					    "home/src/repo/.hidden/x",
					    "home/src/other/x",
					    "home/.config/burst/burst.cfg",
					    "home/data/x",
					    "home/data/.deep/x",
					    "beside/x",
					    "conf/burst/burst.cfg",
					    "home/.config/.git/config",
					    "home/.config/quiz/x",
					    "home/.config/gh/hosts.yml"};

	unsetenv("XDG_CONFIG_HOME");
	if (enter_folder(state) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		write_text(files[i], "x");
	return symlink("../../.ssh", "home/src/repo/keys") < 0 ||
			       symlink("/", "home/src/repo/disk") < 0
		       ? -1
		       : 0;
}

/* "@/x" is below the test's folder. */
static char *whole(const char *path)
{
	return path[0] == '@' ? xasprintf("%s%s", folder, path + 1) : xstrdup(path);
}

static void set_home(const char *home)
{
	CLEANUP(free_text) char *path = whole(home);

	setenv("HOME", path, 1);
}

#define REPO "@/home/src/repo"
#define MAY  NULL

static const struct {
	const char *home, *project, *path;
	bool written;
	const char *allowed, *why;
} cases[] = {
	{"@/home", REPO, REPO, false, NULL, MAY},
	{"@/home", REPO "/jobs", REPO "/x", false, NULL, MAY},
	{"@/home", REPO "/jobs", REPO "/.hidden/x", false, NULL, MAY},
	{"@/home", REPO, REPO "/.git/hooks/x", true, NULL, "is git's own folder"},
	{"@/home", REPO, REPO "/.git/config", false, NULL, "is git's own folder"},
	{"@/home", REPO, "@/home/src/other/x", false, NULL, "lies outside of the project"},
	{"@/home", REPO, "@/home/src/repository", false, NULL, "lies outside of the project"},
	{"@/home", REPO, "@/home/src/other/x", false, "@/home/src", MAY},
	{"@/home", REPO, "@/home/src/other/x", false, "@/home/src/oth",
	 "lies outside of the project"},
	{"@/home", REPO, REPO "/../../src/./repo//jobs", false, NULL, MAY},
	{"@/home", REPO, REPO "/keys/id", false, NULL, "holds keys"},
	{"@/home", REPO, REPO "/keys/id", false, "@/home/.ssh", "holds keys"},
	{"@/home", REPO, REPO "/keys/new", true, NULL, "holds keys"},
	{"@/home", REPO, REPO "/disk", false, NULL, "is the whole disk"},
	{"@/home", REPO, REPO "/disk/usr", false, NULL, "lies outside of the project"},
	{"@/home", REPO, "@/home/data/.deep/x", false, "@/home/data",
	 "is hidden in your home folder"},
	{"@/home", REPO, "@/home/data/.deep/x", false, "@/home/data/.deep", MAY},
	{"@/home", REPO, "@/home", false, "@/home/data", "is your home folder"},
	{"@/home", REPO, "@", false, NULL, "contains your home folder"},
	/* below a hidden folder */
	{"@/home", "@/home/.local/share/quiz", "@/home/.local/share/quiz/.x", false, NULL, MAY},
	{"@/home", "@/home/.local/share/quiz", "@/home/.local/share/mail/x", false, NULL,
	 "lies outside of the project"},
	{"@/home", "@/home/.config/quiz", "@/home/.config/quiz/x", false, NULL, MAY},
	{"@/home", "@/home/.config/quiz", "@/home/.config/gh/hosts.yml", false, NULL, "holds keys"},
	{"@/home", "@/home/.config/quiz", "@/home/.config/.git/config", false, NULL,
	 "is git's own folder"},
	/* the home folder itself, and what is above it */
	{"@/home", "@/home", "@/home/data/x", false, NULL, MAY},
	{"@/home", "@/home", "@/home/.local/share/mail/x", false, NULL,
	 "is hidden in your home folder"},
	{"@/home", "@/home", "@/home", true, NULL, "holds keys"},
	{"@/home", "@", "@/beside/x", false, NULL, MAY},
	{"@/home", "@", "@/home/data/.deep/x", false, NULL, "is hidden in your home folder"},
	{"@/home", "@", "@/conf/burst/burst.cfg", false, NULL, "holds keys"},
	{"@/home", "@", "@", true, NULL, "holds keys"},
	/* the system's, and other people's */
	{"@/home", "/", "/etc/passwd", false, NULL, "lies outside of the project"},
	{"@/home", "/", "/home/somebody/x", false, NULL, "lies outside of the project"},
	{"@/home", "/", "/run/x", false, NULL, "lies outside of the project"},
	{"@/home", "/", "/srv/x", false, NULL, MAY},
	{"@/home", "/var", "/var/lib/x", false, NULL, MAY},
	{"@/home", "/home", "/home/somebody/x", false, NULL, "lies outside of the project"},
	{"@/home", "/home/somebody/p", "/home/somebody/p/x", false, NULL, MAY},
	{"@/home", "/home/somebody/p", "/home/somebody/x", false, NULL,
	 "lies outside of the project"},
	{"@/home", REPO, "/etc/fonts", false, "/etc/fonts", MAY},
	/* a home that is none */
	{"/", REPO, REPO "/x", false, NULL, MAY},
	{"/", REPO, "@/home/src/other/x", false, NULL, "lies outside of the project"},
	{"/", "/srv", "/srv/.hidden/x", false, NULL, MAY},
	{"/", "/", "/.ssh/x", false, NULL, "holds keys"},
	{"/", "/", "/.hidden/x", false, NULL, "is hidden in your home folder"},
	{"relative", REPO, REPO "/x", false, NULL, MAY},
	{"", REPO, "@/home/src/other/x", false, NULL, "lies outside of the project"},
};

static void test_paths(void **state)
{
	(void)state;
	setenv("BURST_STATE_DIR", "/nonexistent/state", 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};
		CLEANUP(free_text) char *project = whole(cases[i].project);
		CLEANUP(free_text) char *path = whole(cases[i].path);
		CLEANUP(free_text)
		char *allowed = cases[i].allowed ? whole(cases[i].allowed) : NULL;
		const char *list[] = {allowed, NULL};
		struct trust trust = {.project = project, .allowed = list};
		CLEANUP(free_text) char *conf = whole("@/conf");
		setenv("XDG_CONFIG_HOME", conf, 1);
		set_home(cases[i].home);
		int result = trust_path(&trust, "job.x", path, cases[i].written, &err);
		if (!cases[i].why && result < 0)
			fail_msg("home %s, project %s: %s: %s", cases[i].home, cases[i].project,
				 cases[i].path, err.msg);
		if (cases[i].why && (result == 0 || !strstr(err.msg, cases[i].why)))
			fail_msg("home %s, project %s: %s: \"%s\", not \"%s\"", cases[i].home,
				 cases[i].project, cases[i].path, err.msg, cases[i].why);
	}
}

static void test_what_may_be_allowed(void **state)
{
	static const struct {
		const char *folder;
		bool fine;
	} folders[] = {{"@/home/data", true}, {"@/none/yet", true}, {"/dev/shm", true},
		       {"@", false},          {"@/home", false},    {"/", false},
		       {"@/home/..", false},  {"data", false},      {"", false},
		       {"/proc", false},      {"/dev", false},      {"/sys/x", false}};

	(void)state;
	set_home("@/home");
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		struct err err = {0};
		CLEANUP(free_text) char *path = whole(folders[i].folder);
		if ((trust_check_allowed(path, "/nonexistent", &err) == 0) != folders[i].fine)
			fail_msg("%s: %s", folders[i].folder, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_what_may_be_allowed),
	};

	return cmocka_run_group_tests_name("trust", tests, make_root, leave_folder);
}
