/* supervise.c - the supervisor of a local pod, from its start to its end. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/path.h"
#include "forward.h"
#include "supervise.h"
#include "supervisor.h"

enum { LOG_MAX_BYTES = 16 << 20 };

/* ---- time and signals ---- */

/* Truncates the log, so that a script that prints without end cannot fill the disk. The script
 * appends, so it continues at the start. */
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
	/* without its record the pod cannot be released */
	if (fstat(s->alive, &st) == 0 && st.st_nlink == 0)
		s->asked = true;
	bound_log();
}

/* Returns false when no more output is available now. */
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
	signal(SIGPIPE,
	       SIG_IGN); /* a failed first process does not read what the supervisor writes */
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

/* Waits for an event, for the next beat, or until `until_ms` (0: none). */
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

/* Beats follow the clock, not turns: a busy connection makes thousands of turns. */
static void turn_and_beat(struct supervisor *s, int64_t until_ms, int64_t *last_beat_ms)
{
	turn(s, until_ms);
	if (clock_boot_ms() - *last_beat_ms < SUPERVISE_BEAT_MS - 1000)
		return;
	*last_beat_ms = clock_boot_ms();
	beat(s);
}

/* ---- ports ---- */

/* Binds a port of the machine's loopback without listening, so that clients are refused until the
 * pod runs. */
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

static void kill_pod(struct supervisor *s)
{
	/* our own child, not reaped yet, so its pid cannot be reused */
	if (s->init && !s->ended)
		kill(s->init, SIGKILL);
	while (s->init && !s->ended) {
		pid_t pid = waitpid(s->init, &s->status, 0);
		s->ended = pid == s->init || (pid < 0 && errno == ECHILD);
	}
	if (!s->record->namespaces && process_kill_below(SUPERVISOR_KILL_MS) < 0)
		dprintf(2, "burst: some of this pod's processes do not die\n");
}

static void say_how_it_ended(struct supervisor *s, bool preempted)
{
	char *to = s->record->view.detail;
	size_t room = sizeof(s->record->view.detail);

	if (to[0])
		return; /* it never started, which is recorded already */
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

/* Returns true if the pod was preempted; false if a client released it or its script ended. */
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
	if (s.listen_fd >= 0 && !s.asked && supervisor_start_pod(&s, &err) == 0)
		preempted = live(&s, &last_beat_ms);
	if (err.msg[0])
		COPY_TEXT(record->view.detail, err.msg);
	return finish(&s, preempted);
}
