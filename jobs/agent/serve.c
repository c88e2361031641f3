/* serve.c - the loop of `serve`, and the checks that run ten times a second. */
#include "agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "files.h"
#include "json.h"

/* ---- the checks that run ten times a second ---- */

enum {
	RENEW_EVERY_MS = 5 * 1000,
	LEAVING_MS = 30 * 1000, /* a container that still runs then was not ended */
	LEAVE_S = 10,           /* before the lease is over; a quarter of a short one */
	LEAVE_GRACE_MS = 2000,  /* a spot pod may have 5 s in all */
};

/* Without a client, renews the lease while work is running, and ends the pod once all work is done
 * and durable. */
static void renew_own_lease(struct agent *a)
{
	bool running = running_something(a);
	if (!a->detached || a->over)
		return;
	if (running && now_ms(a) - a->renewed_ms > RENEW_EVERY_MS)
		lease_renew(a, a->lease_s);
	if (running || a->queue)
		return;
	if (sync_alone(a))
		end_pod(a, "all work is done");
}

/* Tells the client if the start script changed its line about the switch. */
static void report_switch(struct agent *a)
{
	char line[sizeof(a->switch_line)];
	struct client *c = attached_client(a);
	if (!c || c->hello_due)
		return;
	read_switch(a, line, sizeof(line));
	if (!strcmp(line, a->switch_line))
		return;
	memcpy(a->switch_line, line, sizeof(line));
	js_text(notice_begin(a, "switch"), "switch", line);
	notice_end(a);
}

/* Sends the client a sign of life during long tasks: a client without news may release the pod. */
static void report_alive(struct agent *a)
{
	struct client *c = attached_client(a);
	if (!c || c->hello_due || now_ms(a) - a->alive_ms < ALIVE_MS)
		return;
	a->alive_ms = now_ms(a);
	notice_begin(a, "alive");
	notice_end(a);
}

/* Returns whether the start script said lately that the container ends. Removes its file. */
static bool is_machine_ending(struct agent *a)
{
	CLEANUP(free_text) char *file = xasprintf("%s/leaving", a->place.home);
	if (unlink(file) == 0)
		a->left_ms = now_ms(a);
	return a->left_ms && now_ms(a) - a->left_ms < LEAVING_MS;
}

/* Tells the start script that all is saved and no client is attached: it need not wait until the
 * vendor kills it. */
static void report_left(struct agent *a)
{
	CLEANUP(free_text) char *file = xasprintf("%s/left", a->place.home);
	CLEANUP(fd_close) int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		perror(file);
}

/* Halts commands and syncs shortly before the pod ends, so that what they have finished reaches the
 * volume. Begins again if the pod stays. */
static void leave_in_time(struct agent *a)
{
	int64_t shortest_s = a->life_s ? MIN(a->life_s, a->lease_asked_s) : a->lease_asked_s,
		last_s = MIN((int64_t)LEAVE_S, shortest_s / 4);
	bool leaving = is_machine_ending(a) || (!a->over && lease_left_s(a) <= last_s);
	if (leaving && !a->leaving)
		commands_halt(a, LEAVE_GRACE_MS);
	a->leaving = leaving;
	if (!leaving)
		a->left = false;
	if (!leaving || a->jobs || command_is_halting(a) || a->sync_pid)
		return;
	if (!a->left) {
		a->left = true;
		sync_start(a, 0);
	} else if (a->left_ms && !attached_client(a)) {
		report_left(a);
	}
}

static void run_checks(struct agent *a)
{
	int64_t now = now_ms(a);
	if (now - a->ticked_ms < 100)
		return;
	a->ticked_ms = now;
	for (int i = 0; i < a->worker_count; i++)
		worker_check_hang(a, &a->workers[i]);
	if (a->task.kind && now > a->task.until_ms) {
		a->task.timed_out = true;
		kill_child(a->task.pid);
	}
	if (a->task.kind && now > a->task.until_ms + a->kill_wait_ms)
		task_exited(a, SIGKILL);
	if (a->gpu_pid && now > a->gpu_until_ms)
		kill_child(a->gpu_pid);
	usage_follow_workers(a);
	checkpoint_tick(a);
	report_switch(a);
	leave_in_time(a);
	report_alive(a);
	renew_own_lease(a);
	/* exit if the start script fails to end the agent with the pod */
	if (lease_left_s(a) < -60 || (a->over && now - a->over_ms > 30000))
		a->quit = true;
}

/* ---- the loop ---- */

enum { KILL_WAIT_S = 30 /* a process alive after this long cannot be killed */ };

static void child_ended(struct agent *a, pid_t pid, int status)
{
	if (a->task.kind && pid == a->task.pid)
		return task_exited(a, status);
	if (pid == a->sync_pid)
		return sync_ended(a, status);
	if (checkpoint_exited(a, pid, status))
		return;
	if (pid == a->gpu_pid) {
		gpu_read(a, &a->gpu_out, &a->gpu_text, gpu_line);
		close_fd(&a->gpu_out);
		a->gpu_pid = 0;
	} else if (pid == a->usage_pid) {
		close_fd(&a->usage_out);
		a->usage_pid = 0;
	}
	for (int i = 0; i < a->worker_count; i++) {
		struct worker *w = &a->workers[i];
		if (pid != w->pid)
			continue;
		if (w->command)
			command_exited(a, w, status);
		else
			worker_exited(a, w, status);
		return;
	}
}

static void reap_children(struct agent *a)
{
	struct signalfd_siginfo info;
	while (read(a->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGTERM)
			a->quit = true;
	pid_t pid;
	int status;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		child_ended(a, pid, status);
}

struct polls {
	struct pollfd list[2 + 1 + 3 + 4 * WORKERS_MAX];
	nfds_t count;
};

static void poll_add(struct polls *p, int fd, int events)
{
	if (fd >= 0)
		p->list[p->count++] = (struct pollfd){.fd = fd, .events = (short)events};
}

static bool poll_ready(const struct polls *p, int fd)
{
	for (nfds_t i = 0; fd >= 0 && i < p->count; i++)
		if (p->list[i].fd == fd)
			return p->list[i].revents != 0;
	return false;
}

static void wait_for_something(struct agent *a, struct polls *p)
{
	p->count = 0;
	poll_add(p, a->signals, POLLIN);
	poll_add(p, now_ms(a) < a->deaf_until_ms ? -1 : a->listener, POLLIN);
	poll_add(p, a->client.fd, POLLIN | (a->client.out.len ? POLLOUT : 0));
	for (int i = 0; i < a->worker_count; i++) {
		const struct worker *w = &a->workers[i];
		if (w->to.len)
			poll_add(p, w->in, POLLOUT);
		poll_add(p, w->out, POLLIN);
		poll_add(p, w->err, POLLIN);
		if (w->command)
			poll_add(p, w->command->notify, POLLIN);
	}
	poll_add(p, a->task.kind ? a->task.out : -1, POLLIN);
	poll_add(p, a->gpu_out, POLLIN);
	poll_add(p, a->usage_out, POLLIN);
	bool active = running_something(a) || a->worker_count || a->gpu_pid || attached_client(a);
	poll(p->list, p->count, a->jobs ? 0 : active ? 100 : 1000);
}

static void serve_worker(struct agent *a, struct worker *w, const struct polls *p)
{
	if (w->command)
		return command_turn(a, w);
	if (w->to.len && poll_ready(p, w->in))
		worker_write(w);
	if (poll_ready(p, w->out) && !worker_read_out(a, w, 4))
		close_fd(&w->out);
	if (poll_ready(p, w->err) && !worker_read_err(a, w, 4))
		close_fd(&w->err);
}

static void stop_when_due(struct agent *a)
{
	if (!a->stop_due)
		return;
	a->stop_due = false;
	stop_work(a);
	events_sync(a);
	if (a->detached)
		end_pod(a, a->fatal_error);
}

static void serve_loop(struct agent *a)
{
	struct polls p;
	while (!a->quit) {
		wait_for_something(a, &p);
		for (int i = 0; i < a->worker_count; i++)
			serve_worker(a, &a->workers[i], &p);
		if (a->task.kind && poll_ready(&p, a->task.out) && !task_read(a, 4))
			close_fd(&a->task.out);
		gpu_read(a, &a->gpu_out, &a->gpu_text, gpu_line);
		gpu_read(a, &a->usage_out, &a->usage_text, usage_line);
		reap_children(a);
		if (poll_ready(&p, a->listener))
			client_accept(a);
		if (poll_ready(&p, a->client.fd))
			client_read(&a->client);
		jobs_step(a);
		obey_deferred_requests(a);
		dispatch(a);
		run_checks(a);
		client_turn(a);
		dispatch(a); /* handle what the client has just sent */
		client_send(a);
		stop_when_due(a);
	}
	stop_work(a);
	events_sync(a);
}

static int serve_listen(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "agent.sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	unlink(at.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 8) < 0)
		return -1;
	chmod(at.sun_path, 0600);
	return fd;
}

/* The pod's variable, if it can name a folder, else "unnamed". */
static const char *marker_or_unnamed(const struct agent *a, const char *name)
{
	const char *value = env_get(&a->place.env, name, getenv(name));
	return value && name_safe(value) ? value : "unnamed";
}

static int open_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGIO, SIG_IGN);   /* another process opens a file on which a lease was taken */
	signal(SIGXFSZ, SIG_IGN); /* make a write beyond the size limit fail with EFBIG */
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void agent_init(struct agent *a)
{
	*a = (struct agent){.events = -1,
			    .client.fd = -1,
			    .dir_fd = -1,
			    .listener = -1,
			    .signals = -1,
			    .gpu_out = -1,
			    .usage_out = -1,
			    .task.out = -1,
			    .volume_fd = -1,
			    .disk_fd = -1,
			    .env_fd = -1,
			    .out_fd = -1,
			    .save.out = -1,
			    .oom_fd = oom_open(),
			    .sync_next_turn = -1};
	place_load(&a->place);
	a->run = xasprintf("%s", marker_or_unnamed(a, "BURST_RUN"));
	a->attempt = marker_or_unnamed(a, "BURST_ATTEMPT");
	a->began_ms = clock_boot_ms();
	a->began_s = time(NULL);
	int64_t wait_s = atoll(env_get(&a->place.env, "BURST_KILL_WAIT_S", "0"));
	a->kill_wait_ms = (wait_s > 0 && wait_s < KILL_WAIT_S ? wait_s : KILL_WAIT_S) * 1000;
	lease_read(a);
}

void agent_free(struct agent *a)
{
	client_close(&a->client);
	start_forget(a);
	close_fd(&a->events);
	close_fd(&a->dir_fd);
	close_fd(&a->oom_fd);
	close_fd(&a->volume_fd);
	close_fd(&a->disk_fd);
	close_fd(&a->out_fd);
	task_forget(&a->task);
	close_fd(&a->env_fd);
	free(a->unpacked);
	free(a->disk);
	free(a->out_dir);
	free(a->built);
	close_fd(&a->listener);
	close_fd(&a->signals);
	free(a->offsets);
	free(a->dir);
	free(a->run);
	str_free(&a->spill);
	str_free(&a->text);
	str_free(&a->gpu_text);
	str_free(&a->usage_text);
	place_free(&a->place);
}

int agent_serve(void)
{
	struct agent a;
	umask(022);
	agent_init(&a);
	int lock = chdir(a.place.home) < 0 ? -1
					   : open("agent.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	/* not flock()'s, which a child would keep after our death */
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (lock < 0 || fcntl(lock, F_SETLK, &whole) < 0)
		return agent_free(&a), 1; /* another agent serves already */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	a.signals = open_signals();
	bool fine = open_volume_and_run(&a);
	prepare_disk(&a);
	prepare_env_folder(&a);
	events_open(&a);
	gpu_query(&a);
	a.listener = serve_listen();
	if (a.listener < 0 || a.signals < 0)
		return 1;
	if (!fine || a.events < 0)
		fatal(&a, "%s cannot be written", a.place.volume);
	else if (a.out_fd < 0)
		fatal(&a, "%s cannot be written", a.disk);
	serve_loop(&a);
	unlink("agent.sock");
	agent_free(&a);
	close(lock);
	return 0;
}
