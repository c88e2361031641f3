/* process.c - identifies processes so that a reused pid is never mistaken. */
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* Reads at most room-1 bytes of a small file of /proc. Returns -1 if it is missing. */
static ssize_t read_small(const char *path, char *to, size_t room)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);

	if (n >= 0)
		to[n] = '\0';
	return n;
}

struct stat_line {
	char state;
	pid_t parent;
	uint64_t start;
};

static int read_stat(pid_t pid, struct stat_line *out)
{
	char path[40], text[1024];

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	if (read_small(path, text, sizeof(text)) <= 0)
		return -1;
	/* the name is in parentheses and may hold anything, even ") R 1": parse after the last one
	 */
	char *p = strrchr(text, ')');
	if (!p || p[1] != ' ')
		return -1;
	p += 2;
	out->state = *p;
	char *field = p;
	for (int i = 3; i < 22; i++) {
		field = strchr(field, ' ');
		if (!field)
			return -1;
		field++;
		if (i == 3)
			out->parent = (pid_t)strtol(field, NULL, 10);
	}
	out->start = strtoull(field, NULL, 10);
	return 0;
}

static void boot_id(char *to, size_t room)
{
	if (read_small("/proc/sys/kernel/random/boot_id", to, room) < 0)
		to[0] = '\0';
	to[strcspn(to, "\n")] = '\0';
}

struct process process_of(pid_t pid)
{
	struct process p = {.pid = pid};
	struct stat_line stat;

	if (pid <= 0 || read_stat(pid, &stat) < 0)
		return (struct process){0};
	p.start = stat.start;
	boot_id(p.boot, sizeof(p.boot));
	return p;
}

static int open_exactly(pid_t pid, uint64_t start)
{
	struct stat_line stat;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -1;
	/* check again after the pidfd exists: if the process is still the right one, so is the
	 * pidfd */
	if (read_stat(pid, &stat) < 0 || stat.start != start) {
		close(fd);
		return -1;
	}
	return fd;
}

static int send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* A pidfd of exactly this process, or -1 when it is gone. Close it. */
static int process_open(const struct process *p)
{
	char boot[sizeof(p->boot)];

	if (p->pid <= 0)
		return -1;
	boot_id(boot, sizeof(boot));
	return strcmp(boot, p->boot) ? -1 : open_exactly(p->pid, p->start);
}

int process_signal(const struct process *p, int sig)
{
	CLEANUP(fd_close) int fd = process_open(p);

	return fd < 0 ? -1 : send_signal(fd, sig);
}

bool process_wait_end(const struct process *p, int64_t ms)
{
	CLEANUP(fd_close) int fd = process_open(p);
	struct pollfd set = {.fd = fd, .events = POLLIN};
	int64_t until = clock_boot_ms() + ms;

	if (fd < 0)
		return true;
	for (;;) {
		int64_t left = MAX(until - clock_boot_ms(), 0);
		int n = poll(&set, 1, (int)MIN(left, 60000));
		if (n > 0)
			return true;
		if (n == 0 && left == 0)
			return false;
	}
}

/* ---- all descendants of a process ---- */

struct family {
	struct member {
		pid_t pid, parent;
		uint64_t start;
		bool doomed;
	} * list;
	size_t count, cap;
};

static void family_cleanup(struct family *f)
{
	free(f->list);
}

/* Returns whether the process's initial environment has this assignment. */
static bool has_assignment(pid_t pid, const char *assignment)
{
	char path[40], text[131072];
	size_t want = strlen(assignment) + 1;

	snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
	ssize_t n = read_small(path, text, sizeof(text));
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1)
		if ((size_t)(n - at) + 1 >= want && !strcmp(text + at, assignment))
			return true;
	return false;
}

static void read_family(struct family *f, const char *assignment)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct stat_line stat;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid <= 1 || pid == getpid() || read_stat(pid, &stat) < 0 || stat.state == 'Z')
			continue;
		bool doomed =
			assignment ? has_assignment(pid, assignment) : stat.parent == getpid();
		GROW(f->list, f->count, f->cap);
		f->list[f->count++] = (struct member){pid, stat.parent, stat.start, doomed};
	}
	if (proc)
		closedir(proc);
}

static bool parent_doomed(const struct family *f, pid_t parent)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->list[i].pid == parent)
			return f->list[i].doomed;
	return false;
}

/* Adds children of doomed processes until a round adds none. */
static void spread_doom(struct family *f)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < f->count; i++) {
			struct member *m = &f->list[i];
			if (!m->doomed && parent_doomed(f, m->parent))
				m->doomed = more = true;
		}
	}
}

static void kill_member(const struct member *m)
{
	CLEANUP(fd_close) int fd = open_exactly(m->pid, m->start);

	if (fd >= 0)
		send_signal(fd, SIGKILL);
}

static size_t kill_round(const char *assignment)
{
	CLEANUP(family) struct family f = {0};
	size_t found = 0;

	read_family(&f, assignment);
	spread_doom(&f);
	for (size_t i = 0; i < f.count; i++)
		if (f.list[i].doomed) {
			kill_member(&f.list[i]);
			found++;
		}
	return found;
}

static void reap_all(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Needs two empty scans. One scan misses a child if its parent ran when the child was read and had
 * ended when the parent was read. The second scan then finds the child below this process. */
static int kill_all(const char *assignment, int64_t ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int64_t until = clock_boot_ms() + ms;

	for (int empty = 0; empty < 2; reap_all()) {
		if (kill_round(assignment) == 0) {
			empty++;
			continue;
		}
		empty = 0;
		if (clock_boot_ms() > until)
			return -1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

int process_kill_below(int64_t ms)
{
	return kill_all(NULL, ms);
}

int process_kill_by_env(const char *assignment, int64_t ms)
{
	return kill_all(assignment, ms);
}

/* ---- descriptors ---- */

static void close_range_of(unsigned from, unsigned to)
{
	if (from > to || syscall(SYS_close_range, from, to, 0) == 0)
		return;
	long most = sysconf(_SC_OPEN_MAX);
	for (unsigned fd = from; fd <= to && fd < (unsigned)most; fd++)
		close((int)fd);
}

/* The lowest listed descriptor that is at least `from`; -1: none. */
static int next_kept(const int *keep, int count, unsigned from)
{
	int least = -1;

	for (int i = 0; i < count; i++)
		if (keep[i] >= (int)from && (least < 0 || keep[i] < least))
			least = keep[i];
	return least;
}

void process_close_all_but(const int *keep, int count)
{
	unsigned from = 3;
	int fd;

	while ((fd = next_kept(keep, count, from)) >= 0) {
		close_range_of(from, (unsigned)fd - 1);
		from = (unsigned)fd + 1;
	}
	close_range_of(from, ~0u);
}
