/* ssh_bed.c - a real sshd on loopback, a relay before it, and sessions with commands. */
#include "ssh_bed.h"
#include "net_test.h"

#include <pthread.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/path.h"
#include "base/str.h"
#include "net/ssh.h"

static const char sshd_path[] = "/usr/sbin/sshd";

char ssh_dir[FOLDER_MAX];

static pid_t sshd_pid;

int sshd_port;

char *host_key, *private_key, *wrong_key, *user;

struct loop *ssh_loop;
static int sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int sh(const char *fmt, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return system(command);
}

char *read_ssh_file(const char *name)
{
	struct str text = STR_INIT;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", ssh_dir, name);
	assert_int_equal(path_read(path, 1 << 16, &text, NULL), 0);
	return str_detach(&text);
}

pid_t start_sshd(const char *more, int *port)
{
	char conf[256];
	int fd = listen_on_loopback(port);

	close(fd);
	snprintf(conf, sizeof(conf), "%s/sshd_config.%d", ssh_dir, *port);
	FILE *f = fopen(conf, "w");
	assert_non_null(f);
	fprintf(f,
		"Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile "
		"%s/key.pub\nStrictModes no\n"
		"UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile "
		"none\n"
		"PermitRootLogin prohibit-password\nRekeyLimit 3M\nLogLevel ERROR\nMaxStartups "
		"100\n%s\n",
		*port, ssh_dir, ssh_dir, more);
	fclose(f);
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		execl(sshd_path, sshd_path, "-D", "-e", "-f", conf, (char *)NULL);
		_exit(127);
	}
	for (int64_t late = clock_boot_ms() + 10000; clock_boot_ms() < late;) {
		int probe = connect_to_loopback(*port);
		if (probe >= 0) {
			close(probe);
			return pid;
		}
		poll(NULL, 0, 10);
	}
	fail_msg("sshd does not listen (%s)", more);
	return -1;
}

int start_ssh_bed(void **state)
{
	(void)state;
	if (access(sshd_path, X_OK) != 0)
		return 0;
	new_folder_at(ssh_dir);
	if (getuid() == 0)
		mkdir("/run/sshd", 0755);
	assert_int_equal(sh("cd %s && for k in host key other; do ssh-keygen -q -t ed25519 -N '' "
			    "-C t -f $k; done && "
			    "head -c 20000000 /dev/urandom > data",
			    ssh_dir),
			 0);
	host_key = read_ssh_file("host.pub");
	private_key = read_ssh_file("key");
	wrong_key = read_ssh_file("other");
	user = xstrdup(getpwuid(getuid())->pw_name);
	sshd_pid = start_sshd("", &sshd_port);
	ssh_loop = loop_new();
	return 0;
}

int end_ssh_bed(void **state)
{
	(void)state;
	if (!sshd_pid)
		return 0;
	kill(sshd_pid, SIGTERM);
	waitpid(sshd_pid, NULL, 0);
	sh("rm -rf %s", ssh_dir);
	loop_free(ssh_loop);
	free(host_key);
	free(private_key);
	free(wrong_key);
	free(user);
	return 0;
}

void need_sshd(void)
{
	if (sshd_pid)
		return;
	print_message("SKIPPED: no %s on this machine\n", sshd_path);
	skip();
}

static bool pass(struct relay *r, int from, int to, long *left)
{
	char buf[16384];
	size_t most = MIN(sizeof(buf), r->chunk);

	if (*left >= 0)
		most = MIN(most, (size_t)*left);
	ssize_t n = most ? recv(from, buf, most, 0) : 0;
	if (n <= 0)
		return false;
	if (*left >= 0)
		*left -= n;
	for (ssize_t at = 0; at < n;) {
		ssize_t wrote = send(to, buf + at, (size_t)(n - at), MSG_NOSIGNAL);
		if (wrote < 0)
			return false;
		at += wrote;
	}
	return *left != 0 || r->freeze;
}

static void *relay_main(void *arg)
{
	struct relay *r = arg;
	int client = accept(r->listener, NULL, NULL), on = 1;
	int server = connect_to_loopback(r->target_port), last = -1;
	long left[2] = {r->up_most, r->down_most};

	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	bool going = client >= 0 && server >= 0 && left[0] && left[1];
	while (going && !atomic_load(&r->stop)) {
		bool frozen = r->freeze && (!left[0] || !left[1]);
		struct pollfd fds[2] = {{.fd = frozen ? -1 : client, .events = POLLIN},
					{.fd = frozen ? -1 : server, .events = POLLIN}};
		poll(fds, 2, 20);
		for (int i = 0; i < 2 && going; i++) {
			if (!fds[i].revents)
				continue;
			if (last != i)
				atomic_fetch_add(&r->turns, 1);
			last = i;
			if (i == 1)
				poll(NULL, 0, atomic_exchange(&r->hold_ms, 0));
			going = pass(r, i ? server : client, i ? client : server, &left[i]);
		}
	}
	close(client);
	close(server);
	return NULL;
}

void relay_start(struct relay *r)
{
	r->target_port = r->target_port ? r->target_port : sshd_port;
	r->listener = listen_on_loopback(&r->port);
	assert_int_equal(pthread_create(&r->thread, NULL, relay_main, r), 0);
}

void relay_end(struct relay *r)
{
	atomic_store(&r->stop, 1);
	shutdown(r->listener, SHUT_RDWR);
	pthread_join(r->thread, NULL);
	close(r->listener);
}

static void on_up(void *ctx, const struct err *err)
{
	struct session *s = ctx;

	s->ups++;
	if (err)
		s->err = *err;
}

void on_session_lost(void *ctx, const struct err *err)
{
	struct session *s = ctx;

	s->losses++;
	s->err = *err;
}

struct ssh *open_with(struct session *s, int port, const char *host, const char *key,
		      int64_t deadline_ms, int64_t silence_ms)
{
	int fd = connect_to_loopback(port);

	assert_true(fd >= 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	*s = (struct session){0};
	s->ssh = ssh_open(ssh_loop,
			  &(struct ssh_setup){.fd = fd,
					      .user = user,
					      .host_key = host,
					      .private_key = key,
					      .limit_ms = deadline_ms,
					      .silence_ms = silence_ms},
			  on_up, on_session_lost, s);
	assert_int_equal(s->ups, 0);
	return s->ssh;
}

struct ssh *open_up(struct session *s, int port)
{
	open_with(s, port, host_key, private_key, 60000, 0);
	TURN_UNTIL(ssh_loop, s->ups);
	if (s->err.kind)
		fail_msg("no session: %s", s->err.msg);
	return s->ssh;
}

static void on_data(void *ctx, int stream, const void *bytes, size_t len)
{
	struct command *c = ctx;

	assert_true(len > 0 && len <= 32 << 10);
	if (stream == 0) {
		if (c->compare)
			assert_memory_equal(bytes, c->data + c->got, len);
		c->got += len;
	}
	if (!c->discard && !c->compare)
		str_addn(stream ? &c->errs : &c->out, bytes, len);
	if (c->pause_at && c->got >= c->pause_at)
		ssh_pause(c->channel, true);
}

static void on_writable(void *ctx)
{
	struct command *c = ctx;
	size_t n = MIN(c->to_send - c->sent, (size_t)64 << 10);

	if (!c->data)
		return;
	assert_true(ssh_queued(c->channel) < SSH_WRITE_LOW);
	if (n)
		assert_int_equal(ssh_write(c->channel, c->data + c->sent, n), 0);
	else if (!c->no_end)
		ssh_send_eof(c->channel);
	c->sent += n;
}

static void on_closed(void *ctx, int code, const char *signal, const struct err *err)
{
	struct command *c = ctx;

	c->closed++;
	c->code = code;
	COPY_TEXT(c->signal, signal ? signal : "");
	if (err)
		c->err = *err;
}

static const struct ssh_channel_ops ops = {on_data, on_writable, on_closed};

void run_command(struct ssh *ssh, struct command *c, const char *command)
{
	c->channel = ssh_exec(ssh, command, &ops, c, true);
}

void free_command(struct command *c)
{
	str_free(&c->out);
	str_free(&c->errs);
}

char *load_data(size_t *len)
{
	struct str text = STR_INIT;
	char path[128];

	snprintf(path, sizeof(path), "%s/data", ssh_dir);
	assert_int_equal(path_read(path, 1u << 30, &text, NULL), 0);
	*len = text.len;
	return str_detach(&text);
}
