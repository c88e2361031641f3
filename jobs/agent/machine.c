/* machine.c - what the pod is: processors, memory, disks, programs, clocks. */
#include "machine.h"

#include <ctype.h>
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
