/* machine.c - what the pod is: processors, memory, disks, programs, clocks. */
#include "machine.h"

#include <ctype.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "files.h"

int64_t uptime_s(void)
{
	struct str text = {0};
	int64_t s = read_file("/proc/uptime", 64, &text) == 0 && text.len ? atoll(text.s)
									  : clock_boot_ms() / 1000;
	str_free(&text);
	return s;
}

bool have_program(const char *name)
{
	const char *path = getenv("PATH");
	char *copy = xstrdup(path ? path : ""), *save = NULL;
	bool found = false;
	for (char *dir = strtok_r(copy, ":", &save); dir && !found;
	     dir = strtok_r(NULL, ":", &save)) {
		char *file = xasprintf("%s/%s", dir, name);
		found = access(file, X_OK) == 0;
		free(file);
	}
	free(copy);
	return found;
}

int cpu_count(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	struct str text = {0};
	long long quota, period;
	if (read_file("/sys/fs/cgroup/cpu.max", 100, &text) == 0 && text.len &&
	    sscanf(text.s, "%lld %lld", &quota, &period) == 2 && period > 0 && quota > 0)
		count = (int)MIN((int64_t)count, MAX((quota + period - 1) / period, (long long)1));
	str_free(&text);
	return count;
}

int64_t memory_mb(void)
{
	int64_t mb = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20;
	static const char *const limits[] = {"/sys/fs/cgroup/memory.max",
					     "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct str text = {0};
		if (read_file(limits[i], 100, &text) == 0 && text.len &&
		    isdigit((unsigned char)text.s[0]))
			mb = MIN(mb, (int64_t)(atoll(text.s) >> 20));
		str_free(&text);
	}
	return mb;
}

int64_t oom_kills(int fd)
{
	static const char key[] = "oom_kill ";
	char text[1024];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	text[MAX(n, (ssize_t)0)] = 0;
	const char *at = strstr(text, key);
	return at ? atoll(at + strlen(key)) : 0;
}

/* The path of this process in the hierarchy that a line of /proc/self/cgroup names by `key`. */
static char *cgroup_file(const char *groups, const char *key, const char *top, const char *name)
{
	const char *at = strstr(groups, key), *path = at ? at + strlen(key) : "";
	return xasprintf("%s%.*s/%s", top, (int)strcspn(path, "\n"), path, name);
}

int oom_open(void)
{
	static const struct {
		const char *key, *top, *name;
	} hierarchies[] = {{"0::", "/sys/fs/cgroup", "memory.events"},
			   {":memory:", "/sys/fs/cgroup/memory", "memory.oom_control"}};
	struct str groups = {0};
	int fd = -1;
	read_file("/proc/self/cgroup", 4096, &groups);
	for (size_t i = 0; i < 2 * ARRAY_LEN(hierarchies) && fd < 0; i++) {
		/* in a container, its own group may be at the top */
		char *file = cgroup_file(i % 2 ? "" : str_text(&groups), hierarchies[i / 2].key,
					 hierarchies[i / 2].top, hierarchies[i / 2].name);
		fd = open(file, O_RDONLY | O_CLOEXEC);
		free(file);
	}
	str_free(&groups);
	return fd;
}

int64_t free_bytes(const char *path)
{
	struct statvfs v;
	return statvfs(path, &v) < 0 ? -1 : (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

enum { TMPFS = 0x01021994 };

bool disk_fits(const char *path)
{
	struct statvfs v;
	struct statfs f;
	return statvfs(path, &v) == 0 && !(v.f_flag & ST_NOEXEC) && statfs(path, &f) == 0 &&
	       (long)f.f_type != TMPFS;
}
