/* process.c - starts processes and ends them. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "copy.h"
#include "files.h"
#include "take.h"
#include "users.h"

void remove_in_background(const char *dir)
{
	static unsigned gone;
	char *aside = xasprintf("%s.gone.%u.%d", dir, gone++, getpid());
	bool moved = rename(dir, aside) == 0;
	if (fork() == 0) {
		remove_at(AT_FDCWD, moved ? aside : dir);
		_exit(0);
	}
	free(aside);
}

static void child_fail(const char *what, const char *name)
{
	dprintf(2, "burst-agent: %s %s: %s\n", what, name, strerror(errno));
	_exit(125);
}

/* Copies a tree. Fails if the tree is missing at the end: its removal may have begun before the
 * copy. */
static bool child_copied(const char *from, int to, struct copying *c)
{
	struct stat st;
	int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool whole = in >= 0 && copy_tree(in, to, c) == 0 && stat(from, &st) == 0;
	int saved = errno;
	close_fd(&in);
	errno = saved;
	return whole;
}

static void child_copy(const char *from, const char *to)
{
	enum { TRIES = 5, PAUSE_MS = 100 };
	if (mkdirs(to, 0755) < 0)
		child_fail("cannot make", to);
	for (int i = 0; i < TRIES; i++) {
		struct copying c = {.how = COPY_BYTES, .of = 1};
		int out = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bool whole = out >= 0 && child_copied(from, out, &c);
		if (!whole && !c.lost)
			child_fail("cannot copy", from);
		if (whole) {
			close(out);
			return;
		}
		/* keep the folder itself, which may be watched already */
		remove_inside(out);
		poll(NULL, 0, PAUSE_MS << i);
	}
	dprintf(2, "burst-agent: cannot copy %s: files go from it all the time\n", from);
	_exit(125);
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
	char *path = xasprintf("debs/%s", id);
	int work = open_folder(a->disk_fd, "work", false);
	remove_at(work, "kept");
	if (sha256_is_hex(id) && tree_take(a->volume_fd, path, id, work, "kept") != TAKEN)
		dprintf(2, "burst-agent: the packages that were kept are not what they were\n");
	close_fd(&work);
	free(path);
}

/* Dies with the agent, also if that has died since the fork. */
static void die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(125);
}

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
	die_with(parent);
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

pid_t spawn_own(struct agent *a, int (*work)(struct agent *a), int out)
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGTERM, SIG_DFL);
		setpgid(0, 0);
		die_with(parent);
		if (out >= 0)
			dup2(out, 1);
		_exit(work(a));
	}
	if (pid > 0)
		setpgid(pid, pid);
	return pid;
}

int make_pipe(int *read_end, int *write_end)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	*read_end = p[0];
	*write_end = p[1];
	return 0;
}

void nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
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
