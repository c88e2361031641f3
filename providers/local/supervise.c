/* supervise.c - the supervisor of a local pod, from its start to its end. */
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "forward.h"
#include "account.h"
#include "sandbox.h"

enum { LOG_MAX_BYTES = 16 << 20, KILL_MS = 8000 };
#define POD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct supervisor {
	const struct store *store;
	struct pod_record *record;
	const struct pod_plan *plan;
	int alive;
	int signals;             /* signalfd */
	int listen_fd;           /* bound in the machine's network; until `forward` owns it */
	struct forward *forward; /* NULL: the pod shares the network, or does not run yet */
	char *scratch, *volume;  /* volume NULL: none */
	struct sandbox_users users;
	/* what a pod in namespaces prints: a pipe, so that it holds no file of this machine; -1:
	 * none */
	int output;
	pid_t init; /* 0: none; it may be gone already: see ended */
	bool asked; /* a client wants it released */
	bool ended; /* init has been waited for */
	int status;
};

/* ---- time and signals ---- */

/* A script that prints without end must not fill the disk; it appends, so it goes on from the
 * start. */
static void bound_log(void)
{
	struct stat st;

	if (fstat(1, &st) == 0 && st.st_size > LOG_MAX_BYTES)
		(void)!ftruncate(1, 0);
}

static void beat(struct supervisor *s)
{
	struct stat st;

	futimens(s->alive, NULL);
	/* who deletes the record deletes the only way to release the pod */
	if (fstat(s->alive, &st) == 0 && st.st_nlink == 0)
		s->asked = true;
	bound_log();
}

/* False when there is nothing more for now. */
static bool copy_output(struct supervisor *s)
{
	char buf[65536];
	ssize_t n = s->output < 0 ? -1 : read(s->output, buf, sizeof(buf));

	if (n > 0) {
		(void)fd_write_all(1, buf, (size_t)n);
		bound_log();
	} else if (n == 0) {
		close(s->output);
		s->output = -1;
	}
	return n > 0;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* a first process that failed does not read what we write */
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == s->init) {
			s->ended = true;
			s->status = status;
		}
}

static void read_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			s->asked = true;
	reap(s);
}

/* One turn: until something happens, a beat is due, or the moment `until_ms` (0: none) has come. */
static void turn(struct supervisor *s, int64_t until_ms)
{
	struct pollfd set[2 + FORWARD_POLL_MAX];
	int64_t next_ms = INT64_MAX;
	size_t count = s->forward ? forward_wants(s->forward, set + 2, &next_ms) : 0;

	if (until_ms)
		next_ms = MIN(next_ms, until_ms);
	int64_t wait = MIN(SUPERVISE_BEAT_MS - 1000, MAX(next_ms - clock_boot_ms(), 0));
	set[0] = (struct pollfd){.fd = s->signals, .events = POLLIN};
	set[1] = (struct pollfd){.fd = s->output, .events = POLLIN};
	int n = poll(set, 2 + count, (int)wait);
	if (n > 0 && set[0].revents)
		read_signals(s);
	if (n > 0 && set[1].revents)
		copy_output(s);
	if (n >= 0 && count)
		forward_serve(s->forward, set + 2, count);
}

/* Beats are by the clock, not by turns: a busy connection makes thousands of turns. */
static void turn_and_beat(struct supervisor *s, int64_t until_ms, int64_t *last_beat_ms)
{
	turn(s, until_ms);
	if (clock_boot_ms() - *last_beat_ms < SUPERVISE_BEAT_MS - 1000)
		return;
	*last_beat_ms = clock_boot_ms();
	beat(s);
}

/* ---- ports ---- */

/* A port of the machine's loopback, bound and not yet listening, so that a client is refused until
 * the pod runs. */
static int reserve_port(int *port, struct err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	/* reusable: where the pod shares the network, its own sshd binds the port beside this
	 * reservation */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
		fd_close(fd);
		return err_set(err, ERR_LOCAL, "no port: %s", strerror(errno));
	}
	*port = ntohs(at.sin_port);
	return fd;
}

static bool shares_network(const struct supervisor *s)
{
	return s->plan->conf->shared_network || !s->record->namespaces;
}

static int port_inside(const struct supervisor *s)
{
	int port = atoi(jsonx_text(s->plan->env, "BURST_SSH_PORT", "22"));

	return port > 0 && port < 65536 ? port : 22;
}

static int open_door(struct supervisor *s, struct err *err)
{
	if (shares_network(s))
		return 0;
	if (listen(s->listen_fd, 64) < 0)
		return err_set(err, ERR_LOCAL, "listen: %s", strerror(errno));
	s->forward = forward_new(s->listen_fd, port_inside(s), s->plan->conf->round_trip_ms);
	s->listen_fd = -1;
	return 0;
}

/* ---- the pod's first process ---- */

struct env {
	char **list;
	size_t count, cap;
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

/* A process group has no root of its own: its folders are where they really are. */
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
	if (shares_network(s)) {
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

/* Dies with its parent from here on. go: a pipe the parent writes to once it has noted us down; its
 * end instead means that the parent was gone before we asked. */
static void tie_to_parent(int go, int sig)
{
	char said;

	prctl(PR_SET_PDEATHSIG, sig);
	if (read(go, &said, 1) != 1)
		_exit(1);
}

/* What a pod's first process is given. */
struct ends {
	int go;
	int report;
	int output; /* -1: what it prints goes where the supervisor's goes */
};

/* report closes by itself when this becomes the script. */
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
		.gpu = strcmp(s->plan->conf->gpu, "none") != 0,
		.shared_network = shares_network(s),
		.users = s->users,
	};
	struct err err = {0};

	if (sandbox_build(&box, &err) < 0 || take_own_files(ends.output, &err) < 0 ||
	    sandbox_confine(&box.users, &err) < 0) {
		(void)!write(ends.report, err.msg, strlen(err.msg));
		_exit(1);
	}
	/* not before: it would be forgotten with the change of users */
	tie_to_parent(ends.go, SIGKILL);
	fd_close(box.users.namespace);
	run_script(SANDBOX_SCRIPT, env, ends.report);
}

/* Between the supervisor and the script: should the supervisor be killed, this one kills the rest;
 * should this one be, the supervisor inherits its children and does. */
static void mind(pid_t script)
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
	process_kill_below(KILL_MS);
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
	mind(pid);
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

/* Reads what the child had to say until it has become the script (then the pipe closes without a
 * word). */
static int hear_report(int fd, struct err *err)
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
		result = hear_report(report[0], err);
	close(report[0]);
	return result;
}

/* A pod of root's has users of its own, who must own the volume. A process group runs as root: what
 * it adds must be given to them later. */
static int hand_over_volume(const struct supervisor *s, struct err *err)
{
	if (!s->volume)
		return 0;
	if (!s->record->namespaces)
		return ids_take_back(s->volume, err);
	/* the pod's other users must pass through it; the folder above keeps this machine's out */
	if (s->users.ids.count && chmod(s->volume, 0755) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", s->volume, strerror(errno));
	return ids_give_tree(&s->users.ids, s->volume, err);
}

static int start_pod(struct supervisor *s, struct err *err)
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
	if (start_init(s, err) < 0 || open_door(s, err) < 0)
		return -1;
	s->record->started_ms = clock_wall_ms();
	return record_save(s->store, s->record, err);
}

/* ---- the end ---- */

static void kill_pod(struct supervisor *s)
{
	/* our own child and not waited for: its number cannot have gone to another */
	if (s->init && !s->ended)
		kill(s->init, SIGKILL);
	while (s->init && !s->ended) {
		pid_t pid = waitpid(s->init, &s->status, 0);
		s->ended = pid == s->init || (pid < 0 && errno == ECHILD);
	}
	if (!s->record->namespaces && process_kill_below(KILL_MS) < 0)
		dprintf(2, "burst: some of this pod's processes do not die\n");
}

static void say_how_it_ended(struct supervisor *s, bool preempted)
{
	char *to = s->record->view.detail;
	size_t room = sizeof(s->record->view.detail);

	if (to[0])
		return; /* it never began; that is said already */
	s->record->view.preempted = preempted;
	if (preempted)
		snprintf(to, room, "preempted");
	else if (s->asked)
		snprintf(to, room, "released");
	else if (WIFEXITED(s->status))
		snprintf(to, room, "the start script ended with code %d", WEXITSTATUS(s->status));
	else
		snprintf(to, room, "the start script was killed by signal %d", WTERMSIG(s->status));
}

static int finish(struct supervisor *s, bool preempted)
{
	struct err err = {0};

	say_how_it_ended(s, preempted);
	kill_pod(s);
	while (copy_output(s))
		;
	forward_free(s->forward);
	fd_close(s->listen_fd);
	s->record->ended_ms = MAX(clock_wall_ms(), s->record->created_ms);
	if (record_retire(s->store, s->record, &err) < 0) {
		dprintf(2, "burst: %s\n", err.msg);
		return 1;
	}
	return 0;
}

/* ---- the whole ---- */

static void wait_until(struct supervisor *s, int64_t until_ms, int64_t *last_beat_ms)
{
	while (!s->asked && clock_boot_ms() < until_ms)
		turn_and_beat(s, until_ms, last_beat_ms);
}

/* True when the pod was preempted; false when a client released it, or its script ended. */
static bool live(struct supervisor *s, int64_t *last_beat_ms)
{
	const struct local_conf *conf = s->plan->conf;
	bool mortal = conf->preempt_after_ms && (s->record->view.spot || conf->preempt_all);
	int64_t until = mortal ? clock_boot_ms() + conf->preempt_after_ms : 0;

	while (!s->asked && !s->ended) {
		if (mortal && clock_boot_ms() >= until)
			return true;
		turn_and_beat(s, until, last_beat_ms);
	}
	return false;
}

int supervise(const struct store *store, struct pod_record *record, const struct pod_plan *plan,
	      int alive)
{
	struct supervisor s = {.store = store,
			       .record = record,
			       .plan = plan,
			       .alive = alive,
			       .users = {.namespace = -1},
			       .output = -1};
	struct err err = {0};
	int64_t last_beat_ms = clock_boot_ms();
	bool preempted = false;

	s.signals = open_signals();
	s.scratch = record_path(store, record->view.id, "scratch");
	s.volume = record->volume[0] ? path_join(store->volumes, record->volume) : NULL;
	s.listen_fd = reserve_port(&record->view.port, &err);
	if (s.listen_fd >= 0)
		wait_until(&s, clock_boot_ms() + plan->conf->boot_delay_ms, &last_beat_ms);
	if (s.listen_fd >= 0 && !s.asked && start_pod(&s, &err) == 0)
		preempted = live(&s, &last_beat_ms);
	if (err.msg[0])
		COPY_TEXT(record->view.detail, err.msg);
	return finish(&s, preempted);
}
