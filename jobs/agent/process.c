/* process.c - starts processes and ends them; runs the syncs and the queries of cards. */
#include "agent.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "files.h"
#include "json.h"
#include "trees.h"

void remove_in_background(const char *dir)
{
	static unsigned gone;
	CLEANUP(free_text) char *aside = xasprintf("%s.gone.%u.%d", dir, gone++, getpid());
	bool moved = rename(dir, aside) == 0;
	if (fork() == 0) {
		remove_at(AT_FDCWD, moved ? aside : dir);
		_exit(0);
	}
}

static void child_fail(const char *what, const char *name)
{
	dprintf(2, "burst-agent: %s %s: %s\n", what, name, strerror(errno));
	_exit(125);
}

static void child_copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int out = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (in < 0 || out < 0 || copy_tree(in, out) < 0)
		child_fail("cannot copy", from);
	close(in);
	close(out);
}

/* Makes the kernel kill a worker first when memory runs out, rather than the agent or the watch. */
static void child_offer_to_oom(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "500", 3) < 0)
		errno = 0;
	close_fd(&fd);
}

/* Copies the kept tree, or nothing if it does not match the client's id. */
static void child_take_kept(const struct agent *a, const char *id)
{
	CLEANUP(free_text) char *path = xasprintf("debs/%s", id);
	int work = open_folder(a->disk_fd, "work", false);
	remove_at(work, "kept");
	if (sha256_is_hex(id) && tree_take(a->volume_fd, path, id, work, "kept") != TAKEN)
		dprintf(2, "burst-agent: the packages that were kept are not what they were\n");
	close_fd(&work);
}

/* Makes this child die with the agent, also if that has died since the fork. */
static void die_with_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(125);
}

/* Turns the forked child into the shell of *s. Does not return. */
static void child_become(const struct agent *a, const struct spawn *s, pid_t parent)
{
	const char *home = a->place.home;
	uid_t uid = a->separate ? s->uid : 0;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_DFL);
	setpgid(0, 0);
	child_offer_to_oom();
	int in = s->in >= 0 ? s->in : open("/dev/null", O_RDONLY);
	if (dup2(in, 0) < 0 || dup2(s->out, 1) < 0 || dup2(s->err, 2) < 0)
		_exit(125);
	umask(022);
	if (s->kept)
		child_take_kept(a, s->kept);
	if (s->dir && mkdirs(s->dir, 0755) < 0)
		child_fail("cannot make", s->dir);
	if (uid && s->own_dir && lchown(s->dir, uid, uid) < 0)
		child_fail("cannot give away", s->dir);
	if (uid && child_switch(a, uid) < 0)
		child_fail("cannot become another user for", s->script);
	die_with_parent(parent);
	if (s->copy)
		child_copy(s->copy, s->dir);
	if (chdir(s->dir ? s->dir : uid ? "/" : home) < 0)
		child_fail("cannot enter", s->dir ? s->dir : home);
	const char *prepared = env_get(s->env, "BURST_ENV", NULL);
	if (uid && prepared && access(prepared, R_OK | X_OK) < 0 && errno == EACCES)
		child_fail("the pod's volume cannot be read by another user than root "
			   "(pod.worker_root = true allows root):",
			   prepared);
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)s->script, NULL};
	execve("/bin/sh", argv, s->env->list);
	child_fail("cannot run", "/bin/sh");
}

pid_t spawn(struct agent *a, const struct spawn *s)
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		child_become(a, s, parent);
	if (pid > 0)
		setpgid(pid, pid);
	return pid;
}

pid_t spawn_own(struct agent *a, int (*work)(struct agent *a), int *out)
{
	int read_end = -1, write_end = -1;
	if (out && make_pipe(&read_end, &write_end) < 0)
		return -1;
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGTERM, SIG_DFL);
		setpgid(0, 0);
		die_with_parent(parent);
		if (out)
			dup2(write_end, 1);
		_exit(work(a));
	}
	close_fd(&write_end);
	if (pid > 0)
		setpgid(pid, pid);
	else
		close_fd(&read_end);
	if (out)
		*out = read_end;
	return pid;
}

void kill_group(pid_t pid)
{
	if (pid > 0)
		kill(-pid, SIGKILL);
}

void kill_child(pid_t pid)
{
	kill_group(pid);
	if (pid > 0)
		kill(pid, SIGKILL);
}

/* ---- processes that workers left behind ---- */

struct process {
	pid_t pid, parent;
	uid_t uid;
};

/* Appends a struct process for each process of the machine, without zombies. */
static void list_processes(struct str *out)
{
	CLEANUP(close_dir) DIR *d = opendir("/proc");
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
}

/* Returns whether the agent started this process on purpose. */
static bool is_own_child(const struct agent *a, pid_t pid)
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
	for (size_t steps = 0; steps < n && !is_own_child(a, p.pid); steps++) {
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
		list_processes(&list);
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

/* ---- syncs ---- */

enum {
	SYNC_AGAIN_MS = 3 * 1000,
	SYNC_PATIENCE_MS = 60 * 1000,
};

/* Makes the event file and the volume durable. Returns -1 with errno. */
static int volume_sync(struct agent *a)
{
	events_sync(a);
	int failed = volume_flush(&a->place);
	a->synced_ms = now_ms(a);
	return failed;
}

bool sync_alone(struct agent *a)
{
	if (a->unsynced_ms && now_ms(a) - a->synced_ms < SYNC_AGAIN_MS)
		return false;
	if (volume_sync(a) == 0) {
		a->unsynced_ms = 0;
		return true;
	}
	int saved = errno;
	if (!a->unsynced_ms)
		a->unsynced_ms = a->synced_ms;
	else if (a->synced_ms - a->unsynced_ms > SYNC_PATIENCE_MS)
		fatal(a, "the volume does not keep what is written: %s", strerror(saved));
	return false;
}

void end_pod(struct agent *a, const char *reason)
{
	if (a->over)
		return;
	a->over = true;
	a->over_ms = now_ms(a);
	volume_sync(a);
	CLEANUP(free_text)
	char *file = xasprintf("%s/end", a->place.home), *text = xasprintf("%s\n", reason);
	write_beside(file, text, 0600);
}

int sync_work(struct agent *a)
{
	return volume_flush(&a->place) < 0;
}

static void sync_report(struct agent *a, bool ok)
{
	struct str *b = notice_begin(a, "synced");
	js_int(b, "turn", a->sync_turn);
	js_bool(b, "ok", ok);
	notice_end(a);
}

void sync_start(struct agent *a, int turn)
{
	events_sync(a);
	a->sync_turn = turn;
	a->sync_next_turn = -1;
	a->sync_pid = spawn_own(a, sync_work, NULL);
	if (a->sync_pid <= 0) {
		a->sync_pid = 0;
		sync_report(a, false);
	}
}

void sync_ended(struct agent *a, int status)
{
	a->sync_pid = 0;
	sync_report(a, status == 0);
	if (a->sync_next_turn >= 0)
		sync_start(a, a->sync_next_turn);
}

/* ---- cards and their use, as nvidia-smi prints them ---- */

/* Returns the pid; *out reads what it prints. */
static pid_t start_nvidia_smi(struct agent *a, const char *script, int *out)
{
	int write_end = -1;
	if (make_pipe(out, &write_end) < 0)
		return 0;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct spawn s = {
		.script = script, .env = &a->place.env, .in = -1, .out = write_end, .err = null};
	pid_t pid = spawn(a, &s);
	close_fd(&write_end);
	close_fd(&null);
	nonblocking(*out);
	return pid;
}

void gpu_query(struct agent *a)
{
	char file[PATH_MAX];
	a->gpu_out = a->usage_out = -1;
	if (!find_program("nvidia-smi", file))
		return;
	a->gpu_pid = start_nvidia_smi(
		a, "exec nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits",
		&a->gpu_out);
	a->gpu_until_ms = now_ms(a) + 15000;
}

/* A card's name and its memory (a number, or "[N/A]" where the host shares its own); a line
 * without a comma says why there is no card: "No devices were found". */
void gpu_line(struct agent *a, const char *line)
{
	const char *comma = strrchr(line, ',');
	if (!comma || a->gpu_count == (int)ARRAY_LEN(a->gpus))
		return;
	snprintf(a->gpus[a->gpu_count++], sizeof(a->gpus[0]), "%.*s", (int)(comma - line), line);
}

void usage_line(struct agent *a, const char *line)
{
	const char *comma = strchr(line, ',');
	if (!comma || !isdigit((unsigned char)*line))
		return;
	a->usage_percent += (int)MIN(atoll(line), (long long)100);
	a->usage_mb += MIN(MAX(atoll(comma + 1), (long long)0), (long long)1 << 32);
	if (++a->usage_cards < MAX(a->gpu_count, 1))
		return;
	struct str *b = notice_begin(a, "usage");
	js_int(b, "gpu", a->usage_percent / a->usage_cards);
	js_int(b, "memory_mb", a->usage_mb);
	notice_end(a);
	a->usage_cards = a->usage_percent = 0;
	a->usage_mb = 0;
}

void gpu_read(struct agent *a, int *fd, struct str *b, void (*take)(struct agent *, const char *))
{
	char part[4096], *nl;
	ssize_t n = *fd < 0 ? -1 : read(*fd, part, sizeof(part));
	if (n > 0)
		str_addn(b, part, (size_t)n);
	while (b->len && (nl = memchr(b->s, '\n', b->len))) {
		*nl = 0;
		take(a, b->s);
		str_drop(b, (size_t)(nl - b->s) + 1);
	}
	if (b->len > sizeof(part))
		b->len = 0;
	if (n == 0)
		close_fd(fd);
}

void usage_follow_workers(struct agent *a)
{
	bool wanted = a->gpu_count && a->worker_count && attached_client(a);
	if (wanted && !a->usage_pid)
		a->usage_pid =
			start_nvidia_smi(a,
					 "exec nvidia-smi --query-gpu=utilization.gpu,memory.used "
					 "--format=csv,noheader,nounits -l 2",
					 &a->usage_out);
	else if (!wanted && a->usage_pid)
		kill_group(a->usage_pid);
}
