/* first.c - starts a pod's first process, in namespaces or in a process group. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "account.h"
#include "base/clock.h"
#include "base/gpus.h"
#include "base/guard.h"
#include "base/path.h"
#include "sandbox.h"
#include "supervisor.h"

#define POD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct env {
	char **list;
	size_t count, cap;
};

/* Descriptors of a pod's first process. */
struct ends {
	int go;
	int report;
	int output; /* -1: its output goes to the supervisor's */
};

static void env_set(struct env *env, const char *name, const char *value)
{
	size_t len = strlen(name);
	char *line = xasprintf("%s=%s", name, value);

	for (size_t i = 0; i < env->count; i++)
		if (starts_with(env->list[i], name) && env->list[i][len] == '=') {
			free(env->list[i]);
			env->list[i] = line;
			return;
		}
	GROW(env->list, env->count + 1, env->cap);
	env->list[env->count++] = line;
	env->list[env->count] = NULL;
}

static char *on_scratch(const struct supervisor *s, const char *name)
{
	return path_join(s->scratch, name);
}

/* Sets the real paths of a process group's folders: it has no root of its own. */
static void set_real_places(const struct supervisor *s, struct env *env)
{
	static const char *const places[][2] = {{"HOME", "home"},
						{"TMPDIR", "tmp"},
						{"BURST_HOME", "burst"},
						{"BURST_VOLUME", "volume"}};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		CLEANUP(free_text) char *path = on_scratch(s, places[i][1]);
		mkdir(path, 0700);
		env_set(env, places[i][0], path);
	}
	if (s->volume)
		env_set(env, "BURST_VOLUME", s->volume);
	env_set(env, SUPERVISE_MARK, s->scratch);
}

static char **make_env(const struct supervisor *s)
{
	struct env env = {0};
	const char *name;
	json_t *value;
	char port[8];

	env_set(&env, "PATH", POD_PATH);
	env_set(&env, "HOME", account_home_in_pod());
	json_object_foreach ((json_t *)s->plan->env, name, value)
		env_set(&env, name, json_string_value(value));
	if (supervisor_shares_network(s)) {
		snprintf(port, sizeof(port), "%d", s->record->view.port);
		env_set(&env, "BURST_SSH_PORT", port);
	}
	if (!s->record->namespaces)
		set_real_places(s, &env);
	return env.list;
}

static void default_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Makes this process end with its parent. go: a pipe that the parent writes to once it has recorded
 * this process. If it closes instead, the parent has ended. */
static void tie_to_parent(int go, int sig)
{
	char said;

	prctl(PR_SET_PDEATHSIG, sig);
	if (read(go, &said, 1) != 1)
		_exit(1);
}

/* report closes when this process becomes the script. */
static void run_script(const char *script, char **env, int report)
{
	const char *const argv[] = {"sh", script, NULL};

	umask(022);
	default_signals();
	guard_leave();
	execve("/bin/sh", (char *const *)argv, env);
	dprintf(report, "/bin/sh: %s", strerror(errno));
	_exit(127);
}

/* Replaces the machine's files that are still open by the pod's own /dev/null and a pipe. */
static int take_own_files(int output, struct err *err)
{
	int in = open("/dev/null", O_RDONLY);

	if (in < 0 || dup2(in, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
		return err_set(err, ERR_LOCAL, "/dev/null: %s", strerror(errno));
	close(output);
	if (in > 2)
		close(in);
	return 0;
}

static void boot_in_namespaces(const struct supervisor *s, char **env, struct ends ends)
{
	CLEANUP(free_text) char *state = path_dir(s->store->dir);
	struct sandbox box = {
		.scratch = s->scratch,
		.volume = s->volume,
		.mount = s->plan->mount,
		.hostname = s->record->view.id,
		.script = s->plan->script,
		.private = state,
		.gpu = !gpu_is_none(s->plan->conf->gpu),
		.shared_network = supervisor_shares_network(s),
		.users = s->users,
	};
	struct err err = {0};

	if (sandbox_build(&box, &err) < 0 || take_own_files(ends.output, &err) < 0 ||
	    sandbox_confine(&box.users, &err) < 0) {
		(void)!write(ends.report, err.msg, strlen(err.msg));
		_exit(1);
	}
	/* after the change of users, which clears it */
	tie_to_parent(ends.go, SIGKILL);
	fd_close(box.users.namespace);
	run_script(SANDBOX_SCRIPT, env, ends.report);
}

/* Runs between supervisor and script. If the supervisor is killed, this process kills the rest. If
 * this process is killed, the supervisor inherits its children and kills them. */
static void guard_script(pid_t script)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	int signals = signalfd(-1, &set, SFD_CLOEXEC);
	while (read(signals, &info, sizeof(info)) == sizeof(info)) {
		pid_t pid;
		if (info.ssi_signo == SIGTERM)
			break;
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == script)
				_exit(WIFEXITED(status) ? WEXITSTATUS(status)
							: 128 + WTERMSIG(status));
	}
	process_kill_below(SUPERVISOR_KILL_MS);
	_exit(143);
}

static void boot_in_a_group(const struct supervisor *s, char **env, int go, int report)
{
	CLEANUP(free_text) char *script = on_scratch(s, "burst-start");
	struct err err = {0};

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	tie_to_parent(go, SIGTERM);
	setpgid(0, 0);
	if (path_write(script, s->plan->script, strlen(s->plan->script), 0600, &err) < 0) {
		(void)!write(report, err.msg, strlen(err.msg));
		_exit(1);
	}
	pid_t pid = fork();
	if (pid == 0)
		run_script(script, env, report);
	close(report);
	guard_script(pid);
}

static void boot(const struct supervisor *s, struct ends ends)
{
	char **env = make_env(s);
	int keep[] = {ends.go, ends.report, ends.output, s->users.namespace};

	process_close_all_but(keep, ARRAY_LEN(keep));
	if (s->record->namespaces)
		boot_in_namespaces(s, env, ends);
	else
		boot_in_a_group(s, env, ends.go, ends.report);
	_exit(1);
}

/* Reads the child's error. The pipe closes without one when the child becomes the script. */
static int read_report(int fd, struct err *err)
{
	char text[400];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text) - 1)) < 0 && errno == EINTR)
		;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return err_set(err, ERR_LOCAL, "%s", text);
}

static int open_output(struct supervisor *s, int *end, struct err *err)
{
	int output[2];

	*end = -1;
	if (!s->record->namespaces)
		return 0;
	if (pipe2(output, O_CLOEXEC) < 0 || fcntl(output[0], F_SETFL, O_NONBLOCK) < 0)
		return err_set(err, ERR_LOCAL, "pipe: %s", strerror(errno));
	s->output = output[0];
	*end = output[1];
	return 0;
}

static int start_init(struct supervisor *s, struct err *err)
{
	int go[2], report[2], output;

	if (open_output(s, &output, err) < 0)
		return -1;
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0)
		return err_set(err, ERR_LOCAL, "pipe: %s", strerror(errno));
	s->init = fork();
	if (s->init == 0)
		boot(s, (struct ends){go[0], report[1], output});
	close(go[0]);
	close(report[1]);
	fd_close(output);
	if (s->init < 0) {
		s->init = 0;
		return err_set(err, ERR_LOCAL, "fork: %s", strerror(errno));
	}
	s->record->init = process_of(s->init);
	int result = record_save(s->store, s->record, err);
	if (result == 0)
		(void)!write(go[1], "g", 1);
	close(go[1]);
	if (result == 0)
		result = read_report(report[0], err);
	close(report[0]);
	return result;
}

/* Gives the volume to the pod's users if root started the pod. A process group runs as root, so a
 * later pod must be given its new files. */
static int hand_over_volume(const struct supervisor *s, struct err *err)
{
	if (!s->volume)
		return 0;
	if (!s->record->namespaces)
		return ids_take_back(s->volume, err);
	/* the pod's other users must enter the volume; the folder above keeps this machine's users
	 * out */
	if (s->users.ids.count && chmod(s->volume, 0755) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", s->volume, strerror(errno));
	return ids_give_tree(&s->users.ids, s->volume, err);
}

int supervisor_start_pod(struct supervisor *s, struct err *err)
{
	if (mkdir(s->scratch, 0700) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", s->scratch, strerror(errno));
	if (s->record->namespaces &&
	    sandbox_enter(s->plan->conf->shared_network, &s->users, err) < 0)
		return -1;
	if (hand_over_volume(s, err) < 0)
		return -1;
	if (!s->record->namespaces)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (start_init(s, err) < 0 || supervisor_open_door(s, err) < 0)
		return -1;
	s->record->started_ms = clock_wall_ms();
	return record_save(s->store, s->record, err);
}
