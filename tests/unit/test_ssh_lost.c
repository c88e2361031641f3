/* test_ssh_lost.c - SSH connections that are cut, fall silent, never answer, or carry garbage. */
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
#include "ssh_bed.h"

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
	snprintf(command, sizeof(command), "cat %s/data -", ssh_dir);
	run_command(s.ssh, &down, command);
	run_command(s.ssh, &up, "cat >/dev/null");
	TURN_UNTIL(ssh_loop, (s.losses || s.err.kind) && down.closed && up.closed);
	assert_int_equal(s.err.kind, ERR_NETWORK);
	assert_int_equal(s.ups, 1);
	assert_int_equal(down.err.kind, ERR_NETWORK);
	assert_int_equal(up.err.kind, ERR_NETWORK);
	assert_int_equal(down.closed + up.closed, 2);
	struct command late = {0}; /* a dead session says so */
	run_command(s.ssh, &late, "true");
	TURN_UNTIL(ssh_loop, late.closed);
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
	need_sshd();
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		cut_at(-1, at[i]);
		cut_at(at[i], -1);
	}
}

static void test_frozen(void **state)
{
	static const long at[] = {30, 1000, 2500, 200000};

	(void)state;
	need_sshd();
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		struct relay r = {
			.chunk = 16384, .up_most = -1, .down_most = at[i], .freeze = true};
		struct session s;
		struct command c = {.discard = true};
		relay_start(&r);
		open_with(&s, r.port, host_key, private_key, 60000, 300);
		run_command(s.ssh, &c, "head -c 300000 /dev/zero; cat");
		TURN_UNTIL(ssh_loop, c.closed && s.err.kind);
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
	need_sshd();
	struct session s;
	struct command c = {0};

	open_with(&s, sshd_port, host_key, private_key, 60000, 250);
	run_command(s.ssh, &c, "sleep 1; echo done");
	TURN_UNTIL(ssh_loop, c.closed);
	assert_string_equal(str_text(&c.out), "done\n");
	assert_int_equal(s.losses, 0);
	ssh_close(s.ssh);
	free_command(&c);
}

static void test_server_gone_while_idle(void **state)
{
	(void)state;
	need_sshd();
	struct relay r = {.chunk = 16384, .up_most = -1, .down_most = -1};
	struct session s;
	struct command c = {0};

	relay_start(&r);
	open_up(&s, r.port);
	run_command(s.ssh, &c, "true");
	TURN_UNTIL(ssh_loop, c.closed);
	relay_end(&r);
	TURN_UNTIL(ssh_loop, s.losses);
	assert_int_equal(s.err.kind, ERR_NETWORK);
	ssh_close(s.ssh);
}

static void test_never_answers(void **state)
{
	(void)state;
	struct session s;
	int port, fd;

	ssh_loop = ssh_loop ? ssh_loop : loop_new();
	user = user ? user : xstrdup("nobody");
	fd = listen_on_loopback(&port);
	open_with(&s, port, "ssh-ed25519 AAAAx", "key", 200, 0);
	int64_t since = clock_boot_ms();
	TURN_UNTIL(ssh_loop, s.ups);
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
	ssh_loop = ssh_loop ? ssh_loop : loop_new();
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
		TURN_UNTIL(ssh_loop, s.ups);
		print_message("   %s: %s\n", cases[i].name, s.err.msg);
		assert_int_equal(s.err.kind, ERR_NETWORK);
		ssh_close(s.ssh);
		pthread_join(thread, NULL);
		close(b.listener);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_long_silence_is_fine),
		cmocka_unit_test(test_server_gone_while_idle),
		cmocka_unit_test(test_never_answers),
		cmocka_unit_test(test_garbage),
	};
	return cmocka_run_group_tests(tests, start_ssh_bed, end_ssh_bed);
}
