/* group.c - control groups of pods: the user's systemd makes one for each, which holds all of the
 * pod's processes and bounds their memory */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/program.h"
#include "vendor.h"

#define GROUPS_AT  "/sys/fs/cgroup"
#define LINGERS_AT "/var/lib/systemd/linger"

enum {
	SYSTEMD_LIMIT_MS = 10000,
	SMALL_BYTES_MAX = 65536,
	WORDS_MOST = 24,
	END_MARGIN_S = 600 /* beyond the hard end; the supervisor ends its pod earlier */
};

/* ---- which group a process is in: cgroups(7) ---- */

/* Copies the path of the group from the text of /proc/PID/cgroup. -1: there is no unified tree. */
static int read_group(const char *text, char *to, size_t room)
{
	const char *line = starts_with(text, "0::") ? text : strstr(text, "\n0::");
	size_t len;

	if (!line)
		return -1;
	line = strchr(line, ':') + 2;
	len = strcspn(line, "\n");
	if (len >= room || strstr(line, " (deleted)"))
		return -1;
	snprintf(to, room, "%.*s", (int)len, line);
	return 0;
}

static int group_of(pid_t pid, char *to, size_t room)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *path = xasprintf("/proc/%ld/cgroup", (long)pid);

	return path_read(path, SMALL_BYTES_MAX, &text, NULL) < 0
		       ? -1
		       : read_group(str_text(&text), to, room);
}

/* Whether systemd has made the group for a pod: no other group is ever ended. */
static bool is_of_pod(const char *group)
{
	const char *name = strrchr(group, '/');

	return name && starts_with(name, "/burst-") && ends_with(name, ".scope") &&
	       !strstr(group, "..");
}

void group_find_own(char group[GROUP_MAX])
{
	if (group_of(getpid(), group, GROUP_MAX) < 0 || !is_of_pod(group))
		group[0] = '\0';
}

bool group_bounds_memory(void)
{
	char group[GROUP_MAX];

	group_find_own(group);
	CLEANUP(free_text) char *path = xasprintf(GROUPS_AT "%s/memory.max", group);
	return group[0] && path_exists(path);
}

/* ---- its end ---- */

/* Kills the process if it is in this group: its number may be another's by now. */
static void kill_in_group(pid_t pid, const char *group)
{
	CLEANUP(fd_close) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	char now[GROUP_MAX];

	if (fd >= 0 && group_of(pid, now, sizeof(now)) == 0 && !strcmp(now, group))
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

/* Returns how many others are in the group. */
static size_t kill_group_once(const char *group)
{
	CLEANUP(free_text) char *path = xasprintf(GROUPS_AT "%s/cgroup.procs", group);
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *at, *line;
	size_t len, found = 0;

	if (path_read(path, SMALL_BYTES_MAX, &text, NULL) < 0)
		return 0; /* the group has ended */
	at = str_text(&text);
	while ((line = str_next_line(&at, &len))) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);
		if (pid <= 0 || pid == getpid())
			continue;
		kill_in_group(pid, group);
		found++;
	}
	return found;
}

int group_kill(const char *group, int64_t ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int64_t until = clock_boot_ms() + ms;

	while (is_of_pod(group) && kill_group_once(group)) {
		if (clock_boot_ms() > until)
			return -1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* ---- its beginning: systemd-run(1) ---- */

struct words {
	char *list[WORDS_MOST];
	size_t count;
};

static void words_cleanup(const struct words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->list[i]);
}

/* Takes the word. */
static void add_word(struct words *w, char *word)
{
	assert(w->count + 1 < WORDS_MOST);
	w->list[w->count++] = word;
	w->list[w->count] = NULL;
}

static void add_property(struct words *w, char *property)
{
	add_word(w, xstrdup("-p"));
	add_word(w, property);
}

/* Adds a command line that runs the words behind it in a new group. knows_oom: if memory runs out,
 * only the process that the kernel chose ends, not the pod. */
static void add_systemd_run(struct words *w, const char *unit, bool knows_oom, int64_t memory_gb,
			    int64_t hard_end_s)
{
	static const char *const first[] = {"systemd-run", "--user",    "--scope",
					    "--quiet",     "--collect", "--no-ask-password"};

	for (size_t i = 0; i < ARRAY_LEN(first); i++)
		add_word(w, xstrdup(first[i]));
	add_word(w, xasprintf("--unit=%s.scope", unit));
	if (memory_gb > 0)
		add_property(w, xasprintf("MemoryMax=%lldG", (long long)memory_gb));
	if (knows_oom)
		add_property(w, xstrdup("OOMPolicy=continue"));
	if (hard_end_s) {
		int64_t left = MAX(hard_end_s - clock_wall_ms() / 1000, 0) + END_MARGIN_S;
		add_property(w, xasprintf("RuntimeMaxSec=%llds", (long long)left));
	}
	add_word(w, xstrdup("--"));
}

/* This program's own file. NULL: it is not known. */
static char *own_program(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	return n > 0 ? xstrndup(path, (size_t)n) : NULL;
}

/* A login without PAM does not set it: pam_systemd(8). */
static char *runtime_dir(void)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	return dir && dir[0] == '/' ? xstrdup(dir) : xasprintf("/run/user/%ld", (long)geteuid());
}

/* ERR_NOT_FOUND: no systemd that could make groups runs for this user. ERR_CONFIG: one does, and
 * would end all pods with the user's last login. */
static int require_lingering_systemd(struct err *err)
{
	CLEANUP(free_text) char *dir = runtime_dir();
	CLEANUP(free_text) char *socket = path_join(dir, "systemd/private");
	CLEANUP(free_text) char *lingers = path_join(LINGERS_AT, account_name());

	if (!path_exists(socket) || !program_exists("systemd-run"))
		return err_set(err, ERR_NOT_FOUND, "no systemd of this user runs there");
	if (!path_exists(GROUPS_AT "/cgroup.controllers"))
		return err_set(err, ERR_NOT_FOUND, "its control groups are of version 1");
	if (!path_exists(lingers))
		return err_set(err, ERR_CONFIG,
			       "the user's systemd there ends with the last login: run "
			       "\"loginctl enable-linger\" there");
	setenv("XDG_RUNTIME_DIR", dir, 1);
	return 0;
}

/* Makes a group in which this program says whether memory is bounded. */
static int try_group(const char *self, bool knows_oom, struct group_kind *out, struct err *err)
{
	CLEANUP(words) struct words w = {0};
	CLEANUP(free_text) char *unit = xasprintf("burst-try-%ld", (long)getpid());
	CLEANUP(str_free) struct str said = STR_INIT;

	add_systemd_run(&w, unit, knows_oom, 1, 0);
	add_word(&w, xstrdup(self));
	add_word(&w, xstrdup("group"));
	struct program p = {.argv = (const char *const *)w.list, .limit_ms = SYSTEMD_LIMIT_MS};
	if (program_must(&p, &said, NULL, err) < 0)
		return -1;
	*out = (struct group_kind){.works = true,
				   .knows_oom = knows_oom,
				   .bounds_memory = starts_with(str_text(&said), "memory")};
	return 0;
}

int group_try(struct group_kind *out, struct err *err)
{
	CLEANUP(free_text) char *self = own_program();

	*out = (struct group_kind){0};
	if (require_lingering_systemd(err) < 0)
		return -1;
	if (!self)
		return err_set(err, ERR_LOCAL, "/proc/self/exe cannot be read");
	/* from systemd 253 on scopes have it */
	return try_group(self, true, out, NULL) == 0 ? 0 : try_group(self, false, out, err);
}

bool group_logind_kills(void)
{
	/* org.freedesktop.login1(5) */
	static const char *const argv[] = {"busctl",
					   "get-property",
					   "org.freedesktop.login1",
					   "/org/freedesktop/login1",
					   "org.freedesktop.login1.Manager",
					   "KillUserProcesses",
					   NULL};
	CLEANUP(str_free) struct str said = STR_INIT;
	struct program p = {.argv = argv, .limit_ms = SYSTEMD_LIMIT_MS};

	return program_must(&p, &said, NULL, NULL) == 0 && starts_with(str_text(&said), "b true");
}

void group_become(const struct group_kind *kind, const struct pod_record *record, int64_t memory_gb,
		  const char *state_dir, int plan)
{
	struct words w = {0};

	add_systemd_run(&w, record->view.name, kind->knows_oom, memory_gb,
			record->view.marker.hard_end_s);
	add_word(&w, own_program());
	add_word(&w, xstrdup("supervise"));
	add_word(&w, xstrdup(state_dir));
	add_word(&w, xasprintf("%d", plan));
	execvp(w.list[0], w.list);
	dprintf(STDERR_FILENO, "burst-host: systemd-run: %s\n", strerror(errno));
	_exit(1);
}
