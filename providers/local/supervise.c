/* supervise.c - the supervisor of a local pod, from its start to its end, and the pod's first
 * process */
#include "supervisor.h"
#include "vendor.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/guard.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "sandbox.h"

/* ---- the port of a pod that has a network of its own ---- */

enum { SSHD_PORT = 22, PORT_MOST = 65535, LISTEN_QUEUE = 64 };

static bool supervisor_shares_network(const struct supervisor *s)
{
	return s->plan->conf->shared_network || !s->record->namespaces;
}

static int sshd_port_inside_pod(const struct supervisor *s)
{
	int port = atoi(jsonx_text(s->plan->env, "BURST_SSH_PORT", ""));

	return port > 0 && port <= PORT_MOST ? port : SSHD_PORT;
}

/* Forwards connections to the pod's sshd, unless the pod shares the network. */
static int start_forwarding(struct supervisor *s, struct err *err)
{
	if (supervisor_shares_network(s))
		return 0;
	if (listen(s->listen_fd, LISTEN_QUEUE) < 0)
		return err_set(err, ERR_LOCAL, "listen: %s", strerror(errno));
	s->forward = forward_new(s->listen_fd, sshd_port_inside_pod(s));
	s->listen_fd = -1;
	return 0;
}

/* ---- a pod's first process, in namespaces or in a process group ---- */

#define POD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum { EXIT_NO_SHELL = 127, EXIT_KILLED = 128 };

struct env {
	char **list;
	size_t count, cap;
};

/* Descriptors of a pod's first process. */
struct ends {
	int go;     /* see tie_to_parent() */
	int report; /* takes the error if the process cannot become the start script */
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

static char *scratch_path(const struct supervisor *s, const char *name)
{
	return path_join(s->scratch, name);
}

/* Sets the real paths of a process group's folders: it has no root of its own. */
static void set_real_paths(const struct supervisor *s, struct env *env)
{
	static const char *const places[][2] = {{"HOME", "home"},
						{"TMPDIR", "tmp"},
						{"BURST_HOME", "burst"},
						{"BURST_VOLUME", "volume"}};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		CLEANUP(free_text) char *path = scratch_path(s, places[i][1]);
		mkdir(path, 0700);
		env_set(env, places[i][0], path);
	}
	if (s->volume)
		env_set(env, "BURST_VOLUME", s->volume);
	env_set(env, SUPERVISE_MARK, s->scratch);
}

/* The start script's environment, NULL-terminated. Never freed: execve() follows. */
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
	if (s->plan->claim.count) {
		CLEANUP(free_text) char *visible = gpus_visible(&s->plan->claim);
		env_set(&env, "CUDA_VISIBLE_DEVICES", visible);
	}
	if (supervisor_shares_network(s)) {
		snprintf(port, sizeof(port), "%d", s->record->view.port);
		env_set(&env, "BURST_SSH_PORT", port);
	}
	if (!s->record->namespaces)
		set_real_paths(s, &env);
	return env.list;
}

static void reset_signals(void)
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

/* Becomes the script: report closes then, or gets the error. Never returns. */
static void run_script(const char *script, char **env, int report)
{
	const char *const argv[] = {"sh", script, NULL};

	umask(022);
	reset_signals();
	guard_restore_limits();
	execve("/bin/sh", (char *const *)argv, env);
	dprintf(report, "/bin/sh: %s", strerror(errno));
	_exit(EXIT_NO_SHELL);
}

/* Replaces stdin, stdout and stderr by the pod's own /dev/null and a pipe. */
static int replace_standard_files(int output, struct err *err)
{
	int in = open("/dev/null", O_RDONLY);

	if (in < 0 || dup2(in, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
		return err_set(err, ERR_LOCAL, "/dev/null: %s", strerror(errno));
	close(output);
	if (in > 2)
		close(in);
	return 0;
}

/* Never returns. */
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
		.gpu = !gpu_is_none(s->record->view.gpu),
		.shared_network = supervisor_shares_network(s),
		.users = s->users,
	};
	struct err err = {0};

	if (sandbox_build(&box, &err) < 0 || replace_standard_files(ends.output, &err) < 0 ||
	    sandbox_confine(&box.users, &err) < 0) {
		(void)!write(ends.report, err.msg, strlen(err.msg));
		_exit(1);
	}
	/* after the change of users, which clears it */
	tie_to_parent(ends.go, SIGKILL);
	fd_close(box.users.namespace);
	run_script(SANDBOX_SCRIPT, env, ends.report);
}

/* Runs between supervisor and script, and exits as the script does. If one of supervisor and this
 * process is killed, the other one kills the rest. */
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
							: EXIT_KILLED + WTERMSIG(status));
	}
	process_kill_below(SUPERVISOR_KILL_MS);
	_exit(EXIT_KILLED + SIGTERM);
}

/* Never returns. */
static void boot_in_process_group(const struct supervisor *s, char **env, int go, int report)
{
	CLEANUP(free_text) char *script = scratch_path(s, "burst-start");
	struct err err = {0};

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	tie_to_parent(go, SIGTERM);
	setpgid(0, 0);
	bool written =
		path_write(script, s->plan->script, strlen(s->plan->script), 0600, &err) == 0;
	pid_t pid = written ? fork() : -1;
	if (written && pid < 0)
		err_set(&err, ERR_LOCAL, "no process for the pod: %s", strerror(errno));
	if (pid < 0) {
		(void)!write(report, err.msg, strlen(err.msg));
		_exit(1);
	}
	if (pid == 0)
		run_script(script, env, report);
	close(report);
	guard_script(pid);
}

/* Runs in the child that becomes the pod's first process. Never returns. */
static void boot(const struct supervisor *s, struct ends ends)
{
	char **env = make_env(s);
	int keep[] = {ends.go, ends.report, ends.output, s->users.namespace};

	process_close_all_but(keep, ARRAY_LEN(keep));
	if (s->record->namespaces)
		boot_in_namespaces(s, env, ends);
	else
		boot_in_process_group(s, env, ends.go, ends.report);
	_exit(1);
}

/* Waits until the child is the script (0), or returns -1 with the error that it reported. */
static int read_boot_error(int fd, struct err *err)
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

/* Makes the pipe for a pod in namespaces. *end: the pod's end; -1: the pod writes to the log. */
static int open_output_pipe(struct supervisor *s, int *end, struct err *err)
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

/* Starts the pod's first process and waits until it is the start script. Its pid is in the record
 * before it goes on, so that a killed supervisor's pod can be found. */
static int start_first_process(struct supervisor *s, struct err *err)
{
	int go[2], report[2], output;

	if (open_output_pipe(s, &output, err) < 0)
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
		result = read_boot_error(report[0], err);
	close(report[0]);
	return result;
}

/* Gives the volume to the pod's users if root started the pod. Root's process groups leave files of
 * root's, so the folder is marked for the next pod to examine. */
static int give_volume_to_pod(const struct supervisor *s, struct err *err)
{
	if (!s->volume)
		return 0;
	if (!s->record->namespaces)
		return ids_take_back(s->volume, err);
	/* the pod's users must enter the volume; the folder above keeps others out */
	if (s->users.ids.count && chmod(s->volume, 0755) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", s->volume, strerror(errno));
	return ids_give_tree(&s->users.ids, s->volume, err);
}

/* Starts the pod and records that it runs. */
static int start_pod(struct supervisor *s, struct err *err)
{
	if (mkdir(s->scratch, 0700) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", s->scratch, strerror(errno));
	if (s->record->namespaces &&
	    sandbox_enter(s->plan->conf->shared_network ? NETWORK_SHARED : NETWORK_PRIVATE,
			  &s->users, err) < 0)
		return -1;
	if (give_volume_to_pod(s, err) < 0)
		return -1;
	if (!s->record->namespaces)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (start_first_process(s, err) < 0 || start_forwarding(s, err) < 0)
		return -1;
	s->record->started_ms = clock_wall_ms();
	return record_save(s->store, s->record, err);
}

enum { LOG_MAX_BYTES = 16 << 20, BEAT_MARGIN_MS = 1000 };

/* ---- time and signals ---- */

/* Empties a long log (stdout), so that endless output cannot fill the disk. The script appends. */
static void truncate_long_log(void)
{
	struct stat st;

	if (fstat(1, &st) == 0 && st.st_size > LOG_MAX_BYTES)
		(void)!ftruncate(1, 0);
}

/* Shows that the supervisor lives. If the pod's folder was deleted, requests the end. */
static void touch_alive_file(struct supervisor *s)
{
	struct stat st;

	futimens(s->alive, NULL);
	/* without its record the pod cannot be released */
	if (fstat(s->alive, &st) == 0 && st.st_nlink == 0)
		s->asked = true;
	truncate_long_log();
}

/* Copies one read of the pod's output. Returns false when no more is available now. */
static bool copy_output_to_log(struct supervisor *s)
{
	char buf[65536];
	ssize_t n = s->output < 0 ? -1 : read(s->output, buf, sizeof(buf));

	if (n > 0) {
		(void)fd_write_all(1, buf, (size_t)n);
		truncate_long_log();
	} else if (n == 0) {
		close(s->output);
		s->output = -1;
	}
	return n > 0;
}

/* Blocks the signals that the supervisor handles. Returns a signalfd. */
static int open_signal_fd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE,
	       SIG_IGN); /* a failed first process does not read what the supervisor writes */
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void reap_children(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == s->init) {
			s->ended = true;
			s->status = status;
		}
}

/* Notes a request to end, and whether the first process has ended. */
static void handle_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			s->asked = true;
	reap_children(s);
}

/* Waits for signals, output and connections until the next beat, and handles them. */
static void wait_and_serve(struct supervisor *s)
{
	struct pollfd set[2 + FORWARD_POLL_MAX];
	int64_t next_ms = INT64_MAX;
	size_t count = s->forward ? forward_fill_poll(s->forward, set + 2, &next_ms) : 0;

	int64_t wait = MIN(SUPERVISE_BEAT_MS - BEAT_MARGIN_MS, MAX(next_ms - clock_boot_ms(), 0));
	set[0] = (struct pollfd){.fd = s->signals, .events = POLLIN};
	set[1] = (struct pollfd){.fd = s->output, .events = POLLIN};
	int n = poll(set, 2 + count, (int)wait);
	if (n > 0 && set[0].revents)
		handle_signals(s);
	if (n > 0 && set[1].revents)
		copy_output_to_log(s);
	if (n >= 0 && count)
		forward_serve(s->forward, set + 2, count);
}

/* Beats follow the clock, not turns: a busy connection makes thousands of turns. */
static void wait_and_serve_and_beat(struct supervisor *s, int64_t *last_beat_ms)
{
	wait_and_serve(s);
	if (clock_boot_ms() - *last_beat_ms < SUPERVISE_BEAT_MS - BEAT_MARGIN_MS)
		return;
	*last_beat_ms = clock_boot_ms();
	touch_alive_file(s);
	/* the start script ends the pod earlier, unless something has stopped it */
	int64_t hard_end_s = s->record->view.marker.hard_end_s;
	if (hard_end_s && pod_is_overdue(hard_end_s, clock_wall_ms()))
		s->asked = true;
}

/* ---- ports ---- */

/* Binds a port of the machine's loopback without listening, so that clients are refused until the
 * pod runs. Returns the socket, or -1. */
static int reserve_port(int *port, struct err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	/* reusable: if the pod shares the network, its own sshd binds the same port */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
		fd_close(fd);
		return err_set(err, ERR_LOCAL, "no port: %s", strerror(errno));
	}
	*port = ntohs(at.sin_port);
	return fd;
}

/* ---- the end ---- */

/* Kills everything in the pod and reaps its first process. */
static void kill_pod(struct supervisor *s)
{
	/* our own child, not reaped yet, so its pid cannot be reused */
	if (s->init && !s->ended)
		kill(s->init, SIGKILL);
	while (s->init && !s->ended) {
		pid_t pid = waitpid(s->init, &s->status, 0);
		s->ended = pid == s->init || (pid < 0 && errno == ECHILD);
	}
	if ((!s->record->namespaces && process_kill_below(SUPERVISOR_KILL_MS) < 0) ||
	    group_kill(s->record->group, SUPERVISOR_KILL_MS) < 0)
		dprintf(2, "burst: some of this pod's processes do not die\n");
}

/* Sets the record's detail unless it has the reason why the pod never started. */
static void record_how_it_ended(struct supervisor *s)
{
	char *to = s->record->view.detail;
	size_t room = sizeof(s->record->view.detail);

	if (to[0])
		return; /* it never started, which is recorded already */
	if (s->asked)
		snprintf(to, room, "released");
	else if (WIFEXITED(s->status))
		snprintf(to, room, "the start script ended with code %d", WEXITSTATUS(s->status));
	else
		snprintf(to, room, "the start script was killed by signal %d", WTERMSIG(s->status));
}

/* Returns the supervisor's exit status. */
static int end_and_retire_pod(struct supervisor *s)
{
	struct gpu_claim claim = s->plan->claim;
	struct err err = {0};

	record_how_it_ended(s);
	kill_pod(s);
	gpus_unclaim(&claim);
	while (copy_output_to_log(s))
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

/* Boots the pod, forwards its connections, ends it (on SIGTERM, or when the start
 * script exits), records all of that and retires it. stdin, stdout and stderr are /dev/null and the
 * pod's log; the only other open descriptor is alive. Returns an exit status. */
static int supervise(const struct store *store, struct pod_record *record,
		     const struct pod_plan *plan, int alive)
{
	struct supervisor s = {.store = store,
			       .record = record,
			       .plan = plan,
			       .alive = alive,
			       .users = {.namespace = -1},
			       .output = -1};
	struct err err = {0};
	int64_t last_beat_ms = clock_boot_ms();

	s.signals = open_signal_fd();
	s.scratch = record_path(store, record->view.id, "scratch");
	s.volume = record->volume[0] ? path_join(store->volumes, record->volume) : NULL;
	s.listen_fd = reserve_port(&record->view.port, &err);
	if (s.listen_fd >= 0 && start_pod(&s, &err) == 0)
		while (!s.asked && !s.ended)
			wait_and_serve_and_beat(&s, &last_beat_ms);
	if (err.msg[0])
		COPY_TEXT(record->view.detail, err.msg);
	return end_and_retire_pod(&s);
}

/* ---- starting a supervisor ---- */

enum { PLAN_BYTES_MAX = 16 << 20 };
enum { KILL_LIMIT_MS = 10000, RETIRE_LIMIT_MS = 100000, RELEASE_TRIES = 3, LOOK_MS = 1000 };

/* Leaves the session, folder and files of the client; output goes to the pod's log. */
static void detach_from_client(const struct store *store, const struct pod_record *record,
			       int ready, const int *keep, int count)
{
	CLEANUP(free_text) char *log = record_path(store, record->view.id, "log");
	int in = open("/dev/null", O_RDONLY);
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	setsid();
	if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
	    chdir("/") < 0) {
		dprintf(ready, "-%s: %s", log, strerror(errno));
		_exit(1);
	}
	process_close_all_but(keep, count);
	umask(077);
}

/* Supervises the pod once its record says so. ready gets "r", or "-" and why it cannot. Returns an
 * exit status. */
static int run_supervisor(const struct store *store, struct pod_record *record,
			  const struct pod_plan *plan, int alive, int ready)
{
	struct err err = {0};

	prctl(PR_SET_NAME, "burst-pod");
	record->supervisor = process_of(getpid());
	group_find_own(record->group);
	if (record_save(store, record, &err) < 0) {
		dprintf(ready, "-%s", err.msg);
		return 1;
	}
	if (write(ready, "r", 1) != 1)
		return 1;
	close(ready);
	return supervise(store, record, plan, alive);
}

/* ---- the supervisor as a program of its own, so that systemd can give it a control group ---- */

/* Lets a descriptor through an exec. Returns its number in JSON. */
static json_t *pass_on(int fd)
{
	fcntl(fd, F_SETFD, 0);
	return json_integer(fd);
}

/* Reads such a number, and lets the descriptor through no further exec. */
static int receive(const json_t *from, const char *key)
{
	int fd = (int)jsonx_int(from, key, -1);

	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

static json_t *cards_json(const struct gpu_claim *claim)
{
	json_t *list = json_array();

	for (int i = 0; i < claim->count; i++) {
		json_t *card = json_object();
		json_object_set_new(card, "uuid", json_string(claim->cards[i].uuid));
		json_object_set_new(card, "lock", pass_on(claim->locks[i]));
		json_array_append_new(list, card);
	}
	return list;
}

static void read_cards(const json_t *list, struct gpu_claim *claim)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		if (claim->count == GPUS_MOST)
			return;
		COPY_TEXT(claim->cards[claim->count].uuid, jsonx_text(item, "uuid", ""));
		claim->locks[claim->count++] = receive(item, "lock");
	}
}

/* Continues as pod_supervise() in a new program. Never returns. */
static void continue_in_group(const struct store *store, const struct pod_record *record,
			      const struct pod_plan *plan, int alive, int ready)
{
	CLEANUP(free_text) char *state_dir = path_dir(store->dir);
	json_t *to = json_object();
	int fd = memfd_create("burst-plan", 0);

	json_object_set_new(to, "id", json_string(record->view.id));
	json_object_set_new(to, "conf", wire_conf_json(plan->conf));
	json_object_set_new(to, "script", json_string(plan->script));
	json_object_set(to, "env", (json_t *)plan->env);
	json_object_set_new(to, "mount", json_string(plan->mount));
	json_object_set_new(to, "cards", cards_json(&plan->claim));
	json_object_set_new(to, "alive", pass_on(alive));
	json_object_set_new(to, "ready", pass_on(ready));
	CLEANUP(free_text) char *line = jsonx_line(to);
	if (fd < 0 || !line || fd_write_all(fd, line, strlen(line)) < 0)
		_exit(1);
	group_become(&plan->group, record, plan->conf->memory_gb, state_dir, fd);
}

int pod_supervise(const struct store *store, int plan_fd)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct wire_conf conf;
	struct pod_record record;
	struct pod_plan plan = {.conf = &conf};
	struct err err = {0};

	if (lseek(plan_fd, 0, SEEK_SET) < 0 ||
	    fd_read_all(plan_fd, "the plan", PLAN_BYTES_MAX, &text, &err) < 0)
		return 1;
	close(plan_fd);
	CLEANUP(json_decref) json_t *from = jsonx_parse(str_text(&text), text.len, &err);
	if (!from || record_load(store, jsonx_text(from, "id", ""), &record, &err) < 0) {
		dprintf(2, "burst: %s\n", err.msg);
		return 1;
	}
	wire_read_conf(json_object_get(from, "conf"), &conf);
	plan.script = jsonx_text(from, "script", "");
	plan.env = json_object_get(from, "env");
	plan.mount = jsonx_text(from, "mount", "");
	read_cards(json_object_get(from, "cards"), &plan.claim);
	int alive = receive(from, "alive"), ready = receive(from, "ready");
	return run_supervisor(store, &record, &plan, alive, ready);
}

/* Runs in the grandchild, which no process waits for. Never returns. The lock on `alive` shows that
 * it runs, even after the processes that started it have ended. */
static void become_supervisor(const struct store *store, struct pod_record *record,
			      const struct pod_plan *plan, int alive, int ready)
{
	int keep[2 + GPUS_MOST] = {alive, ready};

	memcpy(keep + 2, plan->claim.locks, (size_t)plan->claim.count * sizeof(int));
	detach_from_client(store, record, ready, keep, 2 + plan->claim.count);
	if (plan->group.works)
		continue_in_group(store, record, plan, alive, ready);
	_exit(run_supervisor(store, record, plan, alive, ready));
}

int pod_launch(const struct store *store, struct pod_record *record, const struct pod_plan *plan,
	       int alive, struct err *err)
{
	int ready[2];
	char said[300] = "";
	ssize_t n;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return err_set(err, ERR_LOCAL, "pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		pid_t own = fork();
		if (own == 0)
			become_supervisor(store, record, plan, alive, ready[1]);
		_exit(own < 0);
	}
	close(ready[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	while ((n = read(ready[0], said, sizeof(said) - 1)) < 0 && errno == EINTR)
		;
	close(ready[0]);
	if (n > 0 && said[0] == 'r')
		return 0;
	return err_set(err, ERR_LOCAL, "the pod's supervisor did not start%s%s", n > 1 ? ": " : "",
		       n > 1 ? said + 1 : "");
}

/* ---- ending and settling ---- */

/* Estimates the end if no process saw it: at most a beat after the supervisor's last. */
static int64_t likely_end_ms(const struct store *store, const char *id)
{
	CLEANUP(free_text) char *alive = record_path(store, id, "alive");
	struct stat st;
	int64_t now = clock_wall_ms();

	if (stat(alive, &st) < 0)
		return now;
	int64_t touch_alive_file = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	return MIN(now, touch_alive_file + SUPERVISE_BEAT_MS);
}

/* Kills what is left of a pod without a supervisor. ERR_TRANSIENT: something still runs. */
static int kill_leftovers(const struct store *store, const struct pod_record *record,
			  struct err *err)
{
	CLEANUP(free_text) char *scratch = record_path(store, record->view.id, "scratch");
	CLEANUP(free_text) char *mark = xasprintf("%s=%s", SUPERVISE_MARK, scratch);

	process_signal(&record->init, SIGKILL);
	if (!process_wait_end(&record->init, KILL_LIMIT_MS))
		return err_set(err, ERR_TRANSIENT, "pod %s: process %ld does not die",
			       record->view.id, (long)record->init.pid);
	/* the kernel ends a namespace with its first process; processes of a group must be found */
	if ((!record->namespaces && process_kill_by_env(mark, KILL_LIMIT_MS) < 0) ||
	    group_kill(record->group, KILL_LIMIT_MS) < 0)
		return err_set(err, ERR_TRANSIENT, "pod %s: some of its processes do not die",
			       record->view.id);
	return 0;
}

/* The supervisor is gone: kills the rest of the pod and retires its record. */
static int end_and_retire_record(const struct store *store, struct pod_record *record,
				 struct err *err)
{
	if (kill_leftovers(store, record, err) < 0)
		return -1;
	if (!record->ended_ms) {
		record->ended_ms = MAX(likely_end_ms(store, record->view.id), record->created_ms);
		COPY_TEXT(record->view.detail, "its supervisor was killed");
	}
	return record_retire(store, record, err);
}

/* Removes a pod whose `alive` is claimed by this process. */
static int settle_dead_pod(const struct store *store, const char *id, struct err *err)
{
	struct pod_record record;
	CLEANUP(free_text) char *dir = record_dir(store, id);
	CLEANUP(free_text) char *file = record_path(store, id, "pod.json");

	/* created without a record, or retired except for its folder: nothing runs */
	if (!path_exists(file))
		return record_remove_tree(dir, err);
	if (record_load(store, id, &record, err) == 0)
		return end_and_retire_record(store, &record, err);
	/* without a readable record there is no bill, but the marker finds the processes */
	struct pod_record nameless = {0};
	COPY_TEXT(nameless.view.id, id);
	return kill_leftovers(store, &nameless, err) < 0 ? -1 : record_remove_tree(dir, err);
}

int pod_settle(const struct store *store, const char *id, struct err *err)
{
	CLEANUP(free_text) char *dir = record_dir(store, id);
	CLEANUP(free_text) char *file = record_path(store, id, "alive");
	struct err why = {0};
	int alive;

	if (!path_exists(file))
		return record_remove_tree(dir, err);
	if (record_claim(store, id, &alive, &why) < 0 && why.kind != ERR_NOT_FOUND)
		return err_set(err, why.kind, "%s", why.msg);
	if (alive < 0)
		return 0; /* it runs, or has just retired */
	int result = settle_dead_pod(store, id, err);
	close(alive);
	return result;
}

/* Asks the supervisor to end its pod, and waits while it progresses (it kills the pod, then deletes
 * the pod's files); then kills it. */
static void stop_supervisor(const struct store *store, const struct pod_record *record)
{
	struct pod_record now;
	int64_t began = clock_boot_ms();

	process_signal(&record->supervisor, SIGTERM);
	process_signal(&record->supervisor, SIGCONT);
	while (!process_wait_end(&record->supervisor, LOOK_MS)) {
		bool pod_has_ended =
			record_load(store, record->view.id, &now, NULL) == 0 && now.ended_ms;
		if (clock_boot_ms() - began > (pod_has_ended ? RETIRE_LIMIT_MS : KILL_LIMIT_MS))
			break;
	}
	process_signal(&record->supervisor, SIGKILL);
	process_wait_end(&record->supervisor, KILL_LIMIT_MS);
}

/* Settles the pod and loads its record. A rent holds the lock until its record has a supervisor. */
static int load_settled_record(const struct store *store, const char *id, struct pod_record *record,
			       struct err *err)
{
	CLEANUP(fd_close) int lock = -1;

	if (store_lock(store, &lock, err) < 0 || pod_settle(store, id, err) < 0)
		return -1;
	return record_load(store, id, record, err);
}

int pod_release(const struct store *store, const char *id, struct err *err)
{
	struct pod_record record;
	CLEANUP(free_text) char *dir = record_dir(store, id);

	for (int i = 0; i < RELEASE_TRIES; i++) {
		if (load_settled_record(store, id, &record, err) < 0)
			return err->kind == ERR_NOT_FOUND ? 0 : -1;
		if (!path_exists(dir))
			return 0;
		stop_supervisor(store, &record);
	}
	return err_set(err, ERR_TRANSIENT, "pod %s: still there", id);
}
