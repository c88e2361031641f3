/* strays.c - ends processes that workers left behind. */
#include "strays.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "files.h"

struct process {
	pid_t pid, parent;
	uid_t uid;
};

/* Lists all processes. */
static void processes(struct str *out)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	while (d && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name), parent = 0;
		if (pid <= 1)
			continue;
		char *file = xasprintf("/proc/%d/stat", pid), state = 0;
		struct str text = {0};
		struct stat st;
		const char *after;
		if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
		    read_file(file, 1024, &text) == 0 && text.len &&
		    (after = strrchr(text.s, ')')) &&
		    sscanf(after, ") %c %d", &state, &parent) == 2 && state != 'Z')
			str_addn(out, &(struct process){pid, parent, st.st_uid},
				 sizeof(struct process));
		str_free(&text);
		free(file);
	}
	if (d)
		closedir(d);
}

static bool is_known(const struct agent *a, pid_t pid)
{
	for (int i = 0; i < a->worker_count; i++)
		if (pid == a->workers[i].pid)
			return true;
	return pid == a->task.pid || pid == a->gpu_pid || pid == a->usage_pid ||
	       pid == a->sync_pid || pid == a->save.pid;
}

/* Returns whether the process descends from the agent (PR_SET_CHILD_SUBREAPER) and not from a
 * process that the agent started on purpose. */
static bool is_stray(const struct agent *a, const struct process *all, size_t n, struct process p)
{
	for (size_t steps = 0; steps < n && !is_known(a, p.pid); steps++) {
		size_t i = 0;
		if (p.parent == getpid())
			return true;
		while (i < n && all[i].pid != p.parent)
			i++;
		if (i == n)
			return false;
		p = all[i];
	}
	return false;
}

void kill_strays(struct agent *a)
{
	for (int tries = 0; tries < 100; tries++) {
		struct str list = {0};
		size_t found = 0;
		processes(&list);
		const struct process *all = (const struct process *)list.s;
		size_t n = list.len / sizeof(*all);
		for (size_t i = 0; i < n; i++)
			if (is_stray(a, all, n, all[i])) {
				kill(all[i].pid, SIGKILL);
				found++;
			}
		str_free(&list);
		if (!found)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 10 * 1000000}, NULL);
	}
}
