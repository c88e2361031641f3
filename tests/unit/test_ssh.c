/* test_ssh.c - ssh.c against the real sshd of this machine, directly and through a relay that
 * delays, cuts and freezes. */
#include "net_test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/path.h"
#include "base/str.h"
#include "net/ssh.h"

static const char sshd_path[] = "/usr/sbin/sshd";
static char dir[64];
static pid_t sshd_pid;
static int sshd_port;
static char *host_key, *private_key, *wrong_key, *user;
static struct loop *loop;

/* ---- the server ---- */

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

static char *slurp(const char *name)
{
	struct str text = STR_INIT;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(path_read(path, 1 << 16, &text, NULL), 0);
	return str_detach(&text);
}

/* more: lines for its configuration. Its pid. */
static pid_t start_sshd(const char *more, int *port)
{
	char conf[256];
	int fd = listen_on_loopback(port);

	close(fd);
	snprintf(conf, sizeof(conf), "%s/sshd_config.%d", dir, *port);
	FILE *f = fopen(conf, "w");
	assert_non_null(f);
	fprintf(f,
		"Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile "
		"%s/key.pub\nStrictModes no\n"
		"UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile "
		"none\n"
		"PermitRootLogin prohibit-password\nRekeyLimit 3M\nLogLevel ERROR\nMaxStartups "
		"100\n%s\n",
		*port, dir, dir, more);
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

static int set_up(void **state)
{
	(void)state;
	if (access(sshd_path, X_OK) != 0)
		return 0;
	snprintf(dir, sizeof(dir), "/tmp/burst-ssh-XXXXXX");
	assert_non_null(mkdtemp(dir));
	if (getuid() == 0)
		mkdir("/run/sshd", 0755);
	assert_int_equal(sh("cd %s && for k in host key other; do ssh-keygen -q -t ed25519 -N '' "
			    "-C t -f $k; done && "
			    "head -c 20000000 /dev/urandom > data",
			    dir),
			 0);
	host_key = slurp("host.pub");
	private_key = slurp("key");
	wrong_key = slurp("other");
	user = xstrdup(getpwuid(getuid())->pw_name);
	sshd_pid = start_sshd("", &sshd_port);
	loop = loop_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (!sshd_pid)
		return 0;
	kill(sshd_pid, SIGTERM);
	waitpid(sshd_pid, NULL, 0);
	sh("rm -rf %s", dir);
	loop_free(loop);
	free(host_key);
	free(private_key);
	free(wrong_key);
	free(user);
	return 0;
}

#define NEED_SSHD()                                                                                \
	do {                                                                                       \
		if (!sshd_pid) {                                                                   \
			print_message("SKIPPED: no %s on this machine\n", sshd_path);              \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

/* ---- the relay ---- */

struct relay {
	int listener, port, target_port;
	size_t chunk;            /* bytes at a time */
	long down_most, up_most; /* cut (or freeze) after so many; -1: never */
	bool freeze;
	atomic_int turns;   /* changes of direction */
	atomic_int hold_ms; /* the next bytes of the server come so much later, once */
	atomic_int stop;
	pthread_t thread;
};

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

static void relay_start(struct relay *r)
{
	r->target_port = r->target_port ? r->target_port : sshd_port;
	r->listener = listen_on_loopback(&r->port);
	assert_int_equal(pthread_create(&r->thread, NULL, relay_main, r), 0);
}

static void relay_end(struct relay *r)
{
	atomic_store(&r->stop, 1);
	shutdown(r->listener, SHUT_RDWR);
	pthread_join(r->thread, NULL);
	close(r->listener);
}

/* ---- a session and its commands ---- */

struct session {
	struct ssh *ssh;
	int ups, losses;
	struct err err;
};

static void on_up(void *ctx, const struct err *err)
{
	struct session *s = ctx;

	s->ups++;
	if (err)
		s->err = *err;
}

static void on_lost(void *ctx, const struct err *err)
{
	struct session *s = ctx;

	s->losses++;
	s->err = *err;
}

static struct ssh *open_with(struct session *s, int port, const char *host, const char *key,
			     int64_t deadline_ms, int64_t silence_ms)
{
	int fd = connect_to_loopback(port);

	assert_true(fd >= 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	*s = (struct session){0};
	s->ssh = ssh_open(loop,
			  &(struct ssh_setup){.fd = fd,
					      .user = user,
					      .host_key = host,
					      .private_key = key,
					      .deadline_ms = deadline_ms,
					      .silence_ms = silence_ms},
			  on_up, on_lost, s);
	assert_int_equal(s->ups, 0);
	return s->ssh;
}

static struct ssh *open_up(struct session *s, int port)
{
	open_with(s, port, host_key, private_key, 60000, 0);
	TURN_UNTIL(loop, s->ups);
	if (s->err.kind)
		fail_msg("no session: %s", s->err.msg);
	return s->ssh;
}

struct command {
	struct ssh_channel *channel;
	struct str out, errs;
	size_t got; /* of stdout */
	bool discard;
	size_t to_send, sent; /* from `data` */
	const char *data;
	bool compare, no_end;
	size_t pause_at;
	int closed, code;
	char signal[24];
	struct err err;
};

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

static void run(struct ssh *ssh, struct command *c, const char *command)
{
	c->channel = ssh_exec(ssh, command, &ops, c, true);
}

static void forget(struct command *c)
{
	str_free(&c->out);
	str_free(&c->errs);
}

static char *load_data(size_t *len)
{
	struct str text = STR_INIT;
	char path[128];

	snprintf(path, sizeof(path), "%s/data", dir);
	assert_int_equal(path_read(path, 1u << 30, &text, NULL), 0);
	*len = text.len;
	return str_detach(&text);
}

/* ---- tests ---- */

static const struct {
	const char *name, *command, *out, *errs, *signal;
	int code;
} commands[] = {
	{"output", "echo hello", "hello\n", "", "", 0},
	{"nothing", "true", "", "", "", 0},
	{"exit code", "exit 7", "", "", "", 7},
	{"exit code 255", "exit 255", "", "", "", 255},
	{"stderr apart", "echo out; echo err >&2; exit 3", "out\n", "err\n", "", 3},
	{"killed", "kill -KILL $$", "", "", "KILL", 128},
	{"terminated", "echo x; kill -TERM $$", "x\n", "", "TERM", 128},
	{"no such program", "/no/such/program 2>/dev/null", "", "", "", 127},
	{"no stdin yet", "true < /dev/null", "", "", "", 0},
};

static void test_commands(void **state)
{
	(void)state;
	NEED_SSHD();
	struct session s;
	open_up(&s, sshd_port);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		struct command c = {0};
		run(s.ssh, &c, commands[i].command);
		assert_int_equal(c.closed, 0);
		TURN_UNTIL(loop, c.closed);
		print_message("   %s\n", commands[i].name);
		assert_int_equal(c.err.kind, ERR_NONE);
		assert_int_equal(c.code, commands[i].code);
		assert_string_equal(c.signal, commands[i].signal);
		assert_string_equal(str_text(&c.out), commands[i].out);
		assert_string_equal(str_text(&c.errs), commands[i].errs);
		forget(&c);
	}
	assert_int_equal(s.losses, 0);
	ssh_close(s.ssh);
}

static void test_queued_before_up(void **state)
{
	(void)state;
	NEED_SSHD();
	struct session s;
	struct command c = {0}, d = {0};
	open_with(&s, sshd_port, host_key, private_key, 60000, 0);
	run(s.ssh, &c, "cat");
	run(s.ssh, &d, "echo second");
	assert_int_equal(ssh_write(c.channel, "early\n", 6), 0);
	ssh_send_eof(c.channel);
	assert_int_equal(ssh_write(c.channel, "late", 4), -1);
	TURN_UNTIL(loop, c.closed && d.closed);
	assert_string_equal(str_text(&c.out), "early\n");
	assert_string_equal(str_text(&d.out), "second\n");
	ssh_close(s.ssh);
	forget(&c);
	forget(&d);
}

static double seconds_since(int64_t ms)
{
	return (double)(clock_boot_ms() - ms) / 1000 + 1e-3;
}

/* sshd rekeys every 3 MB here. */
static void test_big_both_ways(void **state)
{
	(void)state;
	NEED_SSHD();
	struct session s;
	size_t len;
	char *data = load_data(&len), command[128];

	open_up(&s, sshd_port);
	struct command up = {.data = data, .to_send = len};
	snprintf(command, sizeof(command), "cmp - %s/data && echo same", dir);
	int64_t since = clock_boot_ms();
	run(s.ssh, &up, command);
	TURN_UNTIL(loop, up.closed);
	assert_string_equal(str_text(&up.out), "same\n");
	print_message("   up %.0f MB/s\n", (double)len / 1e6 / seconds_since(since));

	struct command down = {.data = data, .compare = true};
	snprintf(command, sizeof(command), "cat %s/data", dir);
	since = clock_boot_ms();
	run(s.ssh, &down, command);
	TURN_UNTIL(loop, down.closed);
	assert_int_equal(down.got, len);
	print_message("   down %.0f MB/s\n", (double)len / 1e6 / seconds_since(since));

	struct command echo = {.data = data, .to_send = len, .compare = true};
	run(s.ssh, &echo, "cat");
	TURN_UNTIL(loop, echo.closed);
	assert_int_equal(echo.got, len);
	assert_int_equal(s.losses, 0);
	ssh_close(s.ssh);
	forget(&up);
	free(data);
}

/* Every packet is half sent and half received, all the time. */
static void test_byte_by_byte(void **state)
{
	(void)state;
	NEED_SSHD();
	struct relay r = {.chunk = 1, .up_most = -1, .down_most = -1};
	struct session s;
	size_t len, part = 40000;
	char *data = load_data(&len);
	struct command c[3] = {{.data = data, .to_send = part, .compare = true},
			       {.data = data + 1000, .to_send = part, .compare = true},
			       {.data = data + 2000, .to_send = part, .compare = true}};

	relay_start(&r);
	open_with(&s, r.port, host_key, private_key, 60000, 0);
	for (size_t i = 0; i < 3; i++)
		run(s.ssh, &c[i], "cat");
	TURN_UNTIL(loop, c[0].closed && c[1].closed && c[2].closed);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(c[i].err.kind, ERR_NONE);
		assert_int_equal(c[i].got, part);
	}
	ssh_close(s.ssh);
	relay_end(&r);
	free(data);
}

/* What is paused is held back, and others go on. */
static void test_pause(void **state)
{
	(void)state;
	NEED_SSHD();
	struct session s;
	struct command flood = {.discard = true, .pause_at = 1}, other = {.discard = true};

	open_up(&s, sshd_port);
	run(s.ssh, &flood, "head -c 30000000 /dev/zero");
	TURN_UNTIL(loop, flood.got);
	size_t held = flood.got;
	run(s.ssh, &other, "head -c 20000000 /dev/zero");
	TURN_UNTIL(loop, other.closed);
	assert_int_equal(other.got, 20000000);
	assert_int_equal(flood.got, held);
	assert_int_equal(flood.closed, 0);
	flood.pause_at = 0;
	ssh_pause(flood.channel, false);
	TURN_UNTIL(loop, flood.closed);
	assert_int_equal(flood.got, 30000000);

	/* Paused alone: the loop must rest, not spin. */
	struct command alone = {.discard = true, .pause_at = 1};
	run(s.ssh, &alone, "head -c 30000000 /dev/zero");
	TURN_UNTIL(loop, alone.got);
	int turns = 0;
	for (int64_t end = clock_boot_ms() + 300; clock_boot_ms() < end; turns++)
		loop_turn(loop, 50);
	assert_true(turns < 300);
	ssh_channel_close(alone.channel);
	struct command after = {0};
	run(s.ssh, &after, "echo still here");
	TURN_UNTIL(loop, after.closed);
	assert_string_equal(str_text(&after.out), "still here\n");
	assert_int_equal(alone.closed, 0);
	ssh_close(s.ssh);
	forget(&after);
}

static void test_wrong_host_key(void **state)
{
	(void)state;
	NEED_SSHD();
	struct session s;
	char *other = slurp("other.pub"), *shown = slurp("host.pub");

	open_with(&s, sshd_port, other, private_key, 60000, 0);
	TURN_UNTIL(loop, s.ups);
	assert_int_equal(s.err.kind, ERR_UNTRUSTED);
	*strrchr(shown, ' ') = '\0';
	*strrchr(other, ' ') = '\0';
	assert_non_null(strstr(s.err.msg, "host key"));
	assert_non_null(strstr(s.err.msg, shown + strlen(shown) - 10));
	assert_non_null(strstr(s.err.msg, other + strlen(other) - 10));
	ssh_close(s.ssh);
	free(other);
	free(shown);
}

/* A server that offers nothing else: taken, or refused with words that say why. */
static void test_methods(void **state)
{
	static const struct {
		const char *offer;
		bool taken;
	} cases[] = {
		{"KexAlgorithms curve25519-sha256", true},
		{"KexAlgorithms curve25519-sha256@libssh.org", true},
		{"KexAlgorithms ecdh-sha2-nistp256", true},
		{"KexAlgorithms diffie-hellman-group14-sha256", true},
		{"KexAlgorithms diffie-hellman-group14-sha1", false},
		{"KexAlgorithms diffie-hellman-group1-sha1", false},
		{"KexAlgorithms diffie-hellman-group-exchange-sha1", false},
		{"Ciphers aes256-ctr", true},
		{"Ciphers aes128-ctr,aes128-cbc", true},
		{"Ciphers aes128-cbc", false},
		{"Ciphers 3des-cbc", false},
		{"MACs hmac-sha2-512", true},
		{"MACs hmac-sha2-256-etm@openssh.com,hmac-sha2-256", true},
		{"MACs hmac-sha1", false},
		{"MACs hmac-md5", false},
	};

	(void)state;
	NEED_SSHD();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct session s;
		int port;
		pid_t pid = start_sshd(cases[i].offer, &port);
		open_with(&s, port, host_key, private_key, 60000, 0);
		TURN_UNTIL(loop, s.ups);
		bool why = strstr(s.err.msg, "no method in common") != NULL;
		if (cases[i].taken ? s.err.kind != ERR_NONE : s.err.kind != ERR_NETWORK || !why)
			fail_msg("%s: %s", cases[i].offer, s.err.msg);
		ssh_close(s.ssh);
		kill(pid, SIGTERM);
		waitpid(pid, NULL, 0);
	}
}

static void test_bad_keys(void **state)
{
	(void)state;
	NEED_SSHD();
	struct session s;

	open_with(&s, sshd_port, host_key, wrong_key, 60000, 0);
	TURN_UNTIL(loop, s.ups);
	assert_int_equal(s.err.kind, ERR_REFUSED);
	assert_int_equal(s.losses, 0);
	ssh_close(s.ssh);

	open_with(&s, sshd_port, host_key, "not a key", 60000, 0);
	TURN_UNTIL(loop, s.ups);
	assert_int_equal(s.err.kind, ERR_CONFIG);
	ssh_close(s.ssh);

	open_with(&s, sshd_port, "ssh-rsa AAAAB3", private_key, 60000, 0);
	TURN_UNTIL(loop, s.ups);
	assert_int_equal(s.err.kind, ERR_CONFIG);
	ssh_close(s.ssh);
}

static void cut_at(long up_most, long down_most)
{
	struct relay r = {.chunk = 16384, .up_most = up_most, .down_most = down_most};
	struct session s;
	size_t len;
	char *data = load_data(&len), command[128];
	/* `cat -` goes on until the cut */
	struct command down = {.data = data, .compare = true, .no_end = true},
		       up = {.data = data, .to_send = len, .discard = true, .no_end = true};

	relay_start(&r);
	open_with(&s, r.port, host_key, private_key, 60000, 0);
	snprintf(command, sizeof(command), "cat %s/data -", dir);
	run(s.ssh, &down, command);
	run(s.ssh, &up, "cat >/dev/null");
	TURN_UNTIL(loop, (s.losses || s.err.kind) && down.closed && up.closed);
	assert_int_equal(s.err.kind, ERR_NETWORK);
	assert_int_equal(s.ups, 1);
	assert_int_equal(down.err.kind, ERR_NETWORK);
	assert_int_equal(up.err.kind, ERR_NETWORK);
	assert_int_equal(down.closed + up.closed, 2);
	struct command late = {0}; /* a dead session says so */
	run(s.ssh, &late, "true");
	TURN_UNTIL(loop, late.closed);
	assert_int_equal(late.err.kind, ERR_NETWORK);
	ssh_close(s.ssh);
	relay_end(&r);
	free(data);
}

static void test_cut(void **state)
{
	static const long at[] = {0,    1,    30,   41,   500,  1110,   1400,    1600,
				  1700, 1900, 2200, 2500, 3000, 100000, 3000000, 9000000};

	(void)state;
	NEED_SSHD();
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		cut_at(-1, at[i]);
		cut_at(at[i], -1);
	}
}

static void test_frozen(void **state)
{
	static const long at[] = {30, 1000, 2500, 200000};

	(void)state;
	NEED_SSHD();
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		struct relay r = {
			.chunk = 16384, .up_most = -1, .down_most = at[i], .freeze = true};
		struct session s;
		struct command c = {.discard = true};
		relay_start(&r);
		open_with(&s, r.port, host_key, private_key, 60000, 300);
		run(s.ssh, &c, "head -c 300000 /dev/zero; cat");
		TURN_UNTIL(loop, c.closed && s.err.kind);
		assert_int_equal(c.err.kind, ERR_NETWORK);
		assert_int_equal(s.err.kind, ERR_NETWORK);
		ssh_close(s.ssh);
		relay_end(&r);
	}
}

/* Nothing to say for several silences, but a server that answers. */
static void test_long_silence_is_fine(void **state)
{
	(void)state;
	NEED_SSHD();
	struct session s;
	struct command c = {0};

	open_with(&s, sshd_port, host_key, private_key, 60000, 250);
	run(s.ssh, &c, "sleep 1; echo done");
	TURN_UNTIL(loop, c.closed);
	assert_string_equal(str_text(&c.out), "done\n");
	assert_int_equal(s.losses, 0);
	ssh_close(s.ssh);
	forget(&c);
}

static void test_server_gone_while_idle(void **state)
{
	(void)state;
	NEED_SSHD();
	struct relay r = {.chunk = 16384, .up_most = -1, .down_most = -1};
	struct session s;
	struct command c = {0};

	relay_start(&r);
	open_up(&s, r.port);
	run(s.ssh, &c, "true");
	TURN_UNTIL(loop, c.closed);
	relay_end(&r);
	TURN_UNTIL(loop, s.losses);
	assert_int_equal(s.err.kind, ERR_NETWORK);
	ssh_close(s.ssh);
}

static void test_never_answers(void **state)
{
	(void)state;
	struct session s;
	int port, fd;

	loop = loop ? loop : loop_new();
	user = user ? user : xstrdup("nobody");
	fd = listen_on_loopback(&port);
	open_with(&s, port, "ssh-ed25519 AAAAx", "key", 200, 0);
	int64_t since = clock_boot_ms();
	TURN_UNTIL(loop, s.ups);
	assert_int_equal(s.err.kind, ERR_NETWORK);
	assert_true(clock_boot_ms() - since < 5000);
	ssh_close(s.ssh);
	close(fd);
}

struct babbler {
	int listener;
	const char *text;
	size_t len;
	int times;
};

static void *babble(void *arg)
{
	struct babbler *b = arg;
	int fd = accept(b->listener, NULL, NULL);
	char sink[256];

	for (int i = 0; i < b->times && send(fd, b->text, b->len, MSG_NOSIGNAL) > 0; i++)
		;
	shutdown(fd, SHUT_WR);
	while (recv(fd, sink, sizeof(sink), 0) > 0)
		;
	close(fd);
	return NULL;
}

static void test_garbage(void **state)
{
	static const struct {
		const char *name, *text;
		size_t len;
		int times;
	} cases[] = {
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 1},
		{"lines for ever", "hello there\r\n", 13, 1000000},
		{"one line for ever", "aaaaaaaaaaaaaaaa", 16, 1000000},
		{"zeros", "\0\0\0\0\0\0\0\0", 8, 100},
		{"a banner, then noise",
		 "SSH-2.0-x\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 26,
		 1},
		{"a banner, then an empty packet", "SSH-2.0-x\r\n\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0",
		 26, 1},
		{"a banner and an end", "SSH-2.0-x\r\n", 11, 1},
	};

	(void)state;
	loop = loop ? loop : loop_new();
	user = user ? user : xstrdup("nobody");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct babbler b = {
			.text = cases[i].text, .len = cases[i].len, .times = cases[i].times};
		struct session s;
		pthread_t thread;
		int port;
		b.listener = listen_on_loopback(&port);
		assert_int_equal(pthread_create(&thread, NULL, babble, &b), 0);
		open_with(&s, port, "ssh-ed25519 AAAAx", "key", 60000, 0);
		TURN_UNTIL(loop, s.ups);
		print_message("   %s: %s\n", cases[i].name, s.err.msg);
		assert_int_equal(s.err.kind, ERR_NETWORK);
		ssh_close(s.ssh);
		pthread_join(thread, NULL);
		close(b.listener);
	}
}

/* Everything may be closed at any time, from inside any callback. */
struct closer {
	struct session s;
	struct ssh_channel *channel;
	int step, calls;
};

static void close_now(struct closer *c, int step)
{
	c->calls++;
	if (c->step == step)
		ssh_close(TAKE(c->s.ssh));
}

static void closer_data(void *ctx, int stream, const void *bytes, size_t len)
{
	(void)stream, (void)bytes, (void)len;
	close_now(ctx, 1);
}

static void closer_writable(void *ctx)
{
	close_now(ctx, 2);
}

static void closer_closed(void *ctx, int code, const char *signal, const struct err *err)
{
	(void)code, (void)signal, (void)err;
	close_now(ctx, 3);
}

static void closer_up(void *ctx, const struct err *err)
{
	(void)err;
	close_now(ctx, 0);
}

static const struct ssh_channel_ops closer_ops = {closer_data, closer_writable, closer_closed};

static void test_close_inside_callbacks(void **state)
{
	(void)state;
	NEED_SSHD();
	for (int step = 0; step < 4; step++) {
		struct closer c = {.step = step};
		int fd = connect_to_loopback(sshd_port);
		fcntl(fd, F_SETFL, O_NONBLOCK);
		c.s.ssh = ssh_open(loop,
				   &(struct ssh_setup){.fd = fd,
						       .user = user,
						       .host_key = host_key,
						       .private_key = private_key,
						       .deadline_ms = 60000},
				   closer_up, on_lost, &c);
		ssh_exec(c.s.ssh, "echo a; echo b", &closer_ops, &c, false);
		ssh_exec(c.s.ssh, "echo c", &closer_ops, &c, false);
		TURN_UNTIL(loop, !c.s.ssh);
		int calls = c.calls;
		for (int i = 0; i < 3; i++)
			loop_turn(loop, 10);
		assert_int_equal(c.calls, calls);
	}
}

static void test_close_early(void **state)
{
	(void)state;
	NEED_SSHD();
	for (int turns = 0; turns < 25; turns++) {
		struct session s;
		struct command c = {.discard = true}, d = {.discard = true};
		open_with(&s, sshd_port, host_key, private_key, 60000, 0);
		run(s.ssh, &c, "cat /dev/zero");
		run(s.ssh, &d, "cat");
		for (int i = 0; i < turns; i++)
			loop_turn(loop, 20);
		ssh_channel_close(d.channel);
		loop_turn(loop, 5);
		ssh_close(s.ssh);
	}
}

static void test_many_channels(void **state)
{
	(void)state;
	NEED_SSHD();
	struct session s;
	struct command c[14] = {0};
	int refused = 0, good = 0;

	open_up(&s, sshd_port);
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		run(s.ssh, &c[i], "cat"); /* sshd allows 10 at once */
	TURN_UNTIL(loop, c[10].closed && c[11].closed && c[12].closed && c[13].closed);
	for (size_t i = 0; i < 10; i++)
		ssh_send_eof(c[i].channel);
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		TURN_UNTIL(loop, c[i].closed);
		refused += c[i].err.kind == ERR_REFUSED;
		good += c[i].err.kind == ERR_NONE;
		if (c[i].out.len || c[i].errs.len)
			print_message("   channel %zu said \"%s\" \"%s\"\n", i, str_text(&c[i].out),
				      str_text(&c[i].errs));
		forget(&c[i]);
	}
	assert_int_equal(refused, 4);
	assert_int_equal(good, 10);
	struct command after = {0};
	run(s.ssh, &after, "echo ok");
	TURN_UNTIL(loop, after.closed);
	assert_string_equal(str_text(&after.out), "ok\n");
	ssh_close(s.ssh);
	forget(&after);
}

static void test_round_trips(void **state)
{
	(void)state;
	NEED_SSHD();
	struct relay r = {.chunk = 16384, .up_most = -1, .down_most = -1};
	struct session s;
	struct command c = {0};

	relay_start(&r);
	open_up(&s, r.port);
	int handshake = atomic_load(&r.turns);
	run(s.ssh, &c, "true");
	TURN_UNTIL(loop, c.closed);
	print_message("   changes of direction: %d to be up, %d for a command\n", handshake,
		      atomic_load(&r.turns) - handshake);
	ssh_close(s.ssh);
	relay_end(&r);
}

/* The first channel opens late, for reasons of the server's own. */
static void test_round_trip_is_the_lines(void **state)
{
	(void)state;
	NEED_SSHD();
	struct relay r = {.chunk = 16384, .up_most = -1, .down_most = -1};
	struct session s;
	struct command c = {0};

	relay_start(&r);
	open_up(&s, r.port);
	assert_int_equal(ssh_round_trip_ms(s.ssh), -1);
	atomic_store(&r.hold_ms, 2000);
	run(s.ssh, &c, "true");
	TURN_UNTIL(loop, c.closed);
	TURN_UNTIL(loop, ssh_round_trip_ms(s.ssh) >= 0 && ssh_round_trip_ms(s.ssh) < 1500);
	ssh_close(s.ssh);
	relay_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_queued_before_up),
		cmocka_unit_test(test_big_both_ways),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_wrong_host_key),
		cmocka_unit_test(test_methods),
		cmocka_unit_test(test_bad_keys),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_long_silence_is_fine),
		cmocka_unit_test(test_server_gone_while_idle),
		cmocka_unit_test(test_never_answers),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_close_inside_callbacks),
		cmocka_unit_test(test_close_early),
		cmocka_unit_test(test_many_channels),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_round_trip_is_the_lines),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
