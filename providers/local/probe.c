/* probe.c - tests once whether this machine can build a sandbox for this user. */
#include <dirent.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/path.h"
#include "record.h"
#include "sandbox.h"

enum { PROBE_LIFE_S = 60 };

static void report(int fd, const struct err *err)
{
	(void)!write(fd, err->msg, strlen(err->msg));
}

static int try_everything(const char *scratch, int report_fd)
{
	struct sandbox box = {
		.scratch = scratch, .mount = "/workspace", .hostname = "probe", .script = ""};
	struct err err = {0};
	int status = 1;

	if (sandbox_enter(false, &box.users, &err) < 0) {
		report(report_fd, &err);
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		int result = sandbox_build(&box, &err) < 0 ? -1 : sandbox_confine(&box.users, &err);
		if (result < 0)
			report(report_fd, &err);
		_exit(result < 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

/* Runs in a child, since a process cannot leave a namespace. */
static int probe_child(const char *scratch, char *why, size_t room)
{
	int ends[2], status = 1;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(try_everything(scratch, ends[1]) < 0);
	close(ends[1]);
	ssize_t n = read(ends[0], why, room - 1);
	close(ends[0]);
	why[MAX(n, 0)] = '\0';
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

/* Removes what clients left that were killed during a probe. */
static void sweep_probes(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		if (!starts_with(entry->d_name, "probe-") ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    time(NULL) - st.st_mtim.tv_sec < PROBE_LIFE_S)
			continue;
		CLEANUP(free_text) char *left = path_join(path, entry->d_name);
		record_remove_tree(left, NULL);
	}
	if (dir)
		closedir(dir);
}

int sandbox_probe(const char *dir, struct err *err)
{
	char why[256] = "";
	CLEANUP(free_text) char *scratch = xasprintf("%s/probe-%ld", dir, (long)getpid());

	sweep_probes(dir);
	if (path_mkdirs(scratch, 0700, err) < 0)
		return -1;
	int result = probe_child(scratch, why, sizeof(why));
	record_remove_tree(scratch, NULL);
	return result < 0 ? err_set(err, ERR_LOCAL, "%s", why[0] ? why : "no namespaces") : 0;
}
