/* ids.c - maps a pod's users to unprivileged ones of this machine */
#include "vendor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/program.h"

/* FIRST: no user database assigns ids from here up to 0x7ffdffff: useradd, directory services
 * (sssd: up to 2000200000), systemd, containers. LEAST: root, sshd and a worker. */
enum { FIRST = 0x7fb50000, COUNT = 65536, LEAST = 1024, DEPTH_MAX = 256 };
enum { UIDS_OF_ACCOUNTS = 1000, MAP_MOST_BYTES = 65536 };
enum { PASSWD_MOST_BYTES = 4 << 20, GETENT_LIMIT_MS = 10000 };

/* Always -1, ERR_LOCAL: what failed, and why. */
static int fail_with_errno(struct err *err, const char *what)
{
	return err_set(err, ERR_LOCAL, "%s: %s", what, strerror(errno));
}

static int write_map(const char *path, const char *text, struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	return fd < 0 || write(fd, text, len) != (ssize_t)len ? fail_with_errno(err, path) : 0;
}

/* ---- which ---- */

bool ids_choose_from(const char *uid_map, struct pod_ids *ids)
{
	unsigned long inside, outside, count;
	struct pod_ids best = {0};
	const char *line;
	size_t len;

	while ((line = str_next_line(&uid_map, &len))) {
		if (sscanf(line, "%lu %lu %lu", &inside, &outside, &count) != 3)
			continue;
		if (inside <= FIRST && inside + count >= (unsigned long)FIRST + COUNT) {
			*ids = (struct pod_ids){FIRST, COUNT};
			return true;
		}
		/* root of a container with few users: use the last of them, but never one that has
		 * an account */
		unsigned long end = inside + count,
			      from = MAX(inside, end > COUNT ? end - COUNT : 0);
		from = MAX(from, inside + count / 2);
		if (from >= UIDS_OF_ACCOUNTS && end - from >= LEAST && end - from > best.count)
			best = (struct pod_ids){(uid_t)from, (unsigned)(end - from)};
	}
	*ids = best;
	return best.count > 0;
}

int ids_choose(struct pod_ids *ids, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	*ids = (struct pod_ids){0};
	if (geteuid() != 0)
		return 0;
	if (path_read("/proc/self/uid_map", MAP_MOST_BYTES, &text, err) < 0)
		return -1;
	if (ids_choose_from(str_text(&text), ids))
		return 0;
	return err_set(err, ERR_LOCAL,
		       "root has no other users to run pods as: /proc/self/uid_map has too few");
}

/* ---- namespaces ---- */

static int unshare_user(struct err *err)
{
	return unshare(CLONE_NEWUSER) < 0 ? fail_with_errno(err, "no user namespace") : 0;
}

/* Maps the ids of pid's new user namespace. *fd: a descriptor of that namespace. */
static int map_ids_of_child(const struct pod_ids *ids, pid_t pid, int *fd, struct err *err)
{
	CLEANUP(free_text) char *uids = xasprintf("/proc/%ld/uid_map", (long)pid);
	CLEANUP(free_text) char *gids = xasprintf("/proc/%ld/gid_map", (long)pid);
	CLEANUP(free_text) char *ns = xasprintf("/proc/%ld/ns/user", (long)pid);
	CLEANUP(free_text)
	char *line = xasprintf("0 %lu %u\n", (unsigned long)ids->first, ids->count);

	if (write_map(uids, line, err) < 0 || write_map(gids, line, err) < 0)
		return -1;
	*fd = open(ns, O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? fail_with_errno(err, ns) : 0;
}

/* Runs in a child: makes a user namespace, reports "" or an error, and holds the namespace until
 * the parent closes its end of hold. Never returns. */
static void hold_namespace_open(int report, int hold)
{
	int keep[] = {report, hold};
	struct err err = {0};
	char none;

	process_close_all_but(keep, ARRAY_LEN(keep));
	if (unshare_user(&err) < 0)
		dprintf(report, "%s", err.msg);
	else
		(void)!write(report, "", 1);
	(void)!read(hold, &none, 1);
	_exit(0);
}

int ids_make_namespace(const struct pod_ids *ids, int *fd, struct err *err)
{
	char said[sizeof(err->msg)];
	int ends[2], hold[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_with_errno(err, "pipe");
	if (pipe2(hold, O_CLOEXEC) < 0) {
		close(ends[0]);
		close(ends[1]);
		return fail_with_errno(err, "pipe");
	}
	pid_t pid = fork();
	if (pid == 0)
		hold_namespace_open(ends[1], hold[0]);
	close(ends[1]);
	close(hold[0]);
	ssize_t n = read(ends[0], said, sizeof(said) - 1);
	close(ends[0]);
	said[MAX(n, 0)] = '\0';
	int result = n > 0 && !said[0] ? map_ids_of_child(ids, pid, fd, err)
				       : err_set(err, ERR_LOCAL, "%s",
						 n > 0 ? said : "no process for a user namespace");
	close(hold[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return result;
}

int ids_enter_namespace(int fd, struct err *err)
{
	if (setns(fd, CLONE_NEWUSER) < 0)
		return fail_with_errno(err, "user namespace");
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return fail_with_errno(err, "users of the pod");
	return 0;
}

int ids_enter_own_namespace(struct err *err)
{
	long uid = geteuid(), gid = getegid();
	char line[64];

	if (unshare_user(err) < 0)
		return -1;
	snprintf(line, sizeof(line), "%ld %ld 1\n", uid, uid);
	if (write_map("/proc/self/uid_map", line, err) < 0 ||
	    write_map("/proc/self/setgroups", "deny", err) < 0)
		return -1;
	snprintf(line, sizeof(line), "%ld %ld 1\n", gid, gid);
	return write_map("/proc/self/gid_map", line, err);
}

/* ---- whose files ---- */

static bool is_pods_id(const struct pod_ids *ids, uid_t id)
{
	return id >= ids->first && id - ids->first < ids->count;
}

uid_t ids_map_to_pod(const struct pod_ids *ids, uid_t id)
{
	return is_pods_id(ids, id) ? id : ids->first + (id < ids->count ? id : 0);
}

int ids_give_file(const struct pod_ids *ids, const char *path, struct err *err)
{
	if (!ids->count)
		return 0;
	return lchown(path, ids->first, ids->first) < 0 ? fail_with_errno(err, path) : 0;
}

static int give_entries_below(const struct pod_ids *ids, int fd, int depth, struct err *err);

/* Gives an entry and all below it to the pod. Another pod may remove entries meanwhile. */
static int give_entry(const struct pod_ids *ids, int dir, const char *name, int depth,
		      struct err *err)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail_with_errno(err, name);
	if ((!is_pods_id(ids, st.st_uid) || !is_pods_id(ids, st.st_gid)) &&
	    fchownat(dir, name, ids_map_to_pod(ids, st.st_uid), ids_map_to_pod(ids, st.st_gid),
		     AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != ENOENT)
		return fail_with_errno(err, name);
	if (!S_ISDIR(st.st_mode))
		return 0;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
			       ? 0
			       : fail_with_errno(err, name);
	return depth < DEPTH_MAX ? give_entries_below(ids, fd, depth + 1, err) : (close(fd), 0);
}

/* Gives all below the folder fd to the pod. Closes fd. */
static int give_entries_below(const struct pod_ids *ids, int fd, int depth, struct err *err)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	int result = 0;

	if (!dir) {
		close(fd);
		return fail_with_errno(err, "a folder of a volume");
	}
	while (result == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			result = give_entry(ids, fd, entry->d_name, depth, err);
	closedir(dir);
	return result;
}

int ids_give_tree(const struct pod_ids *ids, const char *path, struct err *err)
{
	struct stat st;

	if (!ids->count)
		return 0;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		fd_close(fd);
		return fail_with_errno(err, path);
	}
	if (is_pods_id(ids, st.st_uid)) {
		close(fd);
		return 0;
	}
	int top = dup(fd);
	int result = top < 0 ? fail_with_errno(err, path) : give_entries_below(ids, fd, 0, err);
	/* last: the folder's own owner shows that all below it is given */
	if (result == 0 && fchown(top, ids->first, ids->first) < 0)
		result = fail_with_errno(err, path);
	fd_close(top);
	return result < 0 ? err_wrap(err, "%s", path) : 0;
}

int ids_take_back(const char *path, struct err *err)
{
	if (geteuid() != 0)
		return 0;
	return lchown(path, 0, 0) < 0 ? fail_with_errno(err, path) : 0;
}

/* ---- the user that a pod runs as ---- */

const char *account_in_pod(void)
{
	return geteuid() == 0 ? "root" : "pod";
}

const char *account_home_in_pod(void)
{
	return geteuid() == 0 ? "/root" : "/home/pod";
}

/* The line of this user in the password file, else in the database that this machine takes accounts
 * from as well (LDAP). getpwuid() would do both, but not in a static program. A new string, or
 * NULL. */
static char *account_line(void)
{
	CLEANUP(str_free) struct str text = STR_INIT, extra = STR_INIT;
	CLEANUP(free_text) char *uid = xasprintf("%ld", (long)geteuid());
	const char *const argv[] = {"getent", "passwd", uid, NULL};
	struct program getent = {.argv = argv, .limit_ms = GETENT_LIMIT_MS};
	const char *at, *end, *line;
	size_t len;

	(void)path_read("/etc/passwd", PASSWD_MOST_BYTES, &text, NULL);
	at = str_text(&text), end = at + text.len;
	CLEANUP(free_text) char *field = xasprintf(":%s:", uid);
	while ((line = bytes_next_line(&at, end, &len))) {
		CLEANUP(free_text) char *copy = xstrndup(line, len);
		const char *password = strchr(copy, ':');
		const char *number = password ? strchr(password + 1, ':') : NULL;
		if (number && starts_with(number, field))
			return TAKE(copy);
	}
	if (program_must(&getent, &extra, NULL, NULL) < 0 || !extra.len)
		return NULL;
	str_text(&extra);
	extra.s[strcspn(extra.s, "\n")] = '\0';
	return str_detach(&extra);
}

const char *account_name(void)
{
	static char name[64];
	CLEANUP(free_text) char *line = account_line();

	if (line)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, ":"), line);
	else
		snprintf(name, sizeof(name), "%ld", (long)geteuid());
	return name;
}

bool account_has_shell(void)
{
	static const char *const none[] = {"nologin", "false", "true", "sync"};
	CLEANUP(free_text) char *line = account_line();
	const char *last = line ? strrchr(line, ':') : NULL;
	const char *shell = last && last[1] ? last + 1 : "/bin/sh";

	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (!strcmp(path_base(shell), none[i]))
			return false;
	return line && access(shell, X_OK) == 0;
}
