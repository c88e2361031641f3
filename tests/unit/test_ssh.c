/* test_ssh.c - commands over SSH to a real sshd: output, input, many channels, round trips,
 * closing. */
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
	need_sshd();
	struct session s;
	open_up(&s, sshd_port);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		struct command c = {0};
		run_command(s.ssh, &c, commands[i].command);
		assert_int_equal(c.closed, 0);
		TURN_UNTIL(ssh_loop, c.closed);
		print_message("   %s\n", commands[i].name);
		assert_int_equal(c.err.kind, ERR_NONE);
		assert_int_equal(c.code, commands[i].code);
		assert_string_equal(c.signal, commands[i].signal);
		assert_string_equal(str_text(&c.out), commands[i].out);
		assert_string_equal(str_text(&c.errs), commands[i].errs);
		free_command(&c);
	}
	assert_int_equal(s.losses, 0);
	ssh_close(s.ssh);
}

static void test_queued_before_up(void **state)
{
	(void)state;
	need_sshd();
	struct session s;
	struct command c = {0}, d = {0};
	open_with(&s, sshd_port, host_key, private_key, 60000, 0);
	run_command(s.ssh, &c, "cat");
	run_command(s.ssh, &d, "echo second");
	assert_int_equal(ssh_write(c.channel, "early\n", 6), 0);
	ssh_send_eof(c.channel);
	assert_int_equal(ssh_write(c.channel, "late", 4), -1);
	TURN_UNTIL(ssh_loop, c.closed && d.closed);
	assert_string_equal(str_text(&c.out), "early\n");
	assert_string_equal(str_text(&d.out), "second\n");
	ssh_close(s.ssh);
	free_command(&c);
	free_command(&d);
}

static double seconds_since(int64_t ms)
{
	return (double)(clock_boot_ms() - ms) / 1000 + 1e-3;
}

/* sshd rekeys every 3 MB here. */
static void test_big_both_ways(void **state)
{
	(void)state;
	need_sshd();
	struct session s;
	size_t len;
	char *data = load_data(&len), command[128];

	open_up(&s, sshd_port);
	struct command up = {.data = data, .to_send = len};
	snprintf(command, sizeof(command), "cmp - %s/data && echo same", ssh_dir);
	int64_t since = clock_boot_ms();
	run_command(s.ssh, &up, command);
	TURN_UNTIL(ssh_loop, up.closed);
	assert_string_equal(str_text(&up.out), "same\n");
	print_message("   up %.0f MB/s\n", (double)len / 1e6 / seconds_since(since));

	struct command down = {.data = data, .compare = true};
	snprintf(command, sizeof(command), "cat %s/data", ssh_dir);
	since = clock_boot_ms();
	run_command(s.ssh, &down, command);
	TURN_UNTIL(ssh_loop, down.closed);
	assert_int_equal(down.got, len);
	print_message("   down %.0f MB/s\n", (double)len / 1e6 / seconds_since(since));

	struct command echo = {.data = data, .to_send = len, .compare = true};
	run_command(s.ssh, &echo, "cat");
	TURN_UNTIL(ssh_loop, echo.closed);
	assert_int_equal(echo.got, len);
	assert_int_equal(s.losses, 0);
	ssh_close(s.ssh);
	free_command(&up);
	free(data);
}

/* Every packet is half sent and half received, all the time. */
static void test_byte_by_byte(void **state)
{
	(void)state;
	need_sshd();
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
		run_command(s.ssh, &c[i], "cat");
	TURN_UNTIL(ssh_loop, c[0].closed && c[1].closed && c[2].closed);
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
	need_sshd();
	struct session s;
	struct command flood = {.discard = true, .pause_at = 1}, other = {.discard = true};

	open_up(&s, sshd_port);
	run_command(s.ssh, &flood, "head -c 30000000 /dev/zero");
	TURN_UNTIL(ssh_loop, flood.got);
	size_t held = flood.got;
	run_command(s.ssh, &other, "head -c 20000000 /dev/zero");
	TURN_UNTIL(ssh_loop, other.closed);
	assert_int_equal(other.got, 20000000);
	assert_int_equal(flood.got, held);
	assert_int_equal(flood.closed, 0);
	flood.pause_at = 0;
	ssh_pause(flood.channel, false);
	TURN_UNTIL(ssh_loop, flood.closed);
	assert_int_equal(flood.got, 30000000);

	/* Paused alone: the loop must rest, not spin. */
	struct command alone = {.discard = true, .pause_at = 1};
	run_command(s.ssh, &alone, "head -c 30000000 /dev/zero");
	TURN_UNTIL(ssh_loop, alone.got);
	int turns = 0;
	for (int64_t end = clock_boot_ms() + 300; clock_boot_ms() < end; turns++)
		loop_turn(ssh_loop, 50);
	assert_true(turns < 300);
	ssh_channel_close(alone.channel);
	struct command after = {0};
	run_command(s.ssh, &after, "echo still here");
	TURN_UNTIL(ssh_loop, after.closed);
	assert_string_equal(str_text(&after.out), "still here\n");
	assert_int_equal(alone.closed, 0);
	ssh_close(s.ssh);
	free_command(&after);
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
	need_sshd();
	for (int step = 0; step < 4; step++) {
		struct closer c = {.step = step};
		int fd = connect_to_loopback(sshd_port);
		fcntl(fd, F_SETFL, O_NONBLOCK);
		c.s.ssh = ssh_open(ssh_loop,
				   &(struct ssh_setup){.fd = fd,
						       .user = user,
						       .host_key = host_key,
						       .private_key = private_key,
						       .limit_ms = 60000},
				   closer_up, on_session_lost, &c);
		ssh_exec(c.s.ssh, "echo a; echo b", &closer_ops, &c, false);
		ssh_exec(c.s.ssh, "echo c", &closer_ops, &c, false);
		TURN_UNTIL(ssh_loop, !c.s.ssh);
		int calls = c.calls;
		for (int i = 0; i < 3; i++)
			loop_turn(ssh_loop, 10);
		assert_int_equal(c.calls, calls);
	}
}

static void test_close_early(void **state)
{
	(void)state;
	need_sshd();
	for (int turns = 0; turns < 25; turns++) {
		struct session s;
		struct command c = {.discard = true}, d = {.discard = true};
		open_with(&s, sshd_port, host_key, private_key, 60000, 0);
		run_command(s.ssh, &c, "cat /dev/zero");
		run_command(s.ssh, &d, "cat");
		for (int i = 0; i < turns; i++)
			loop_turn(ssh_loop, 20);
		ssh_channel_close(d.channel);
		loop_turn(ssh_loop, 5);
		ssh_close(s.ssh);
	}
}

static void test_many_channels(void **state)
{
	(void)state;
	need_sshd();
	struct session s;
	struct command c[14] = {0};
	int refused = 0, good = 0;

	open_up(&s, sshd_port);
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		run_command(s.ssh, &c[i], "cat"); /* sshd allows 10 at once */
	TURN_UNTIL(ssh_loop, c[10].closed && c[11].closed && c[12].closed && c[13].closed);
	for (size_t i = 0; i < 10; i++)
		ssh_send_eof(c[i].channel);
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		TURN_UNTIL(ssh_loop, c[i].closed);
		refused += c[i].err.kind == ERR_REFUSED;
		good += c[i].err.kind == ERR_NONE;
		if (c[i].out.len || c[i].errs.len)
			print_message("   channel %zu said \"%s\" \"%s\"\n", i, str_text(&c[i].out),
				      str_text(&c[i].errs));
		free_command(&c[i]);
	}
	assert_int_equal(refused, 4);
	assert_int_equal(good, 10);
	struct command after = {0};
	run_command(s.ssh, &after, "echo ok");
	TURN_UNTIL(ssh_loop, after.closed);
	assert_string_equal(str_text(&after.out), "ok\n");
	ssh_close(s.ssh);
	free_command(&after);
}

static void test_round_trips(void **state)
{
	(void)state;
	need_sshd();
	struct relay r = {.chunk = 16384, .up_most = -1, .down_most = -1};
	struct session s;
	struct command c = {0};

	relay_start(&r);
	open_up(&s, r.port);
	int handshake = atomic_load(&r.turns);
	run_command(s.ssh, &c, "true");
	TURN_UNTIL(ssh_loop, c.closed);
	print_message("   changes of direction: %d to be up, %d for a command\n", handshake,
		      atomic_load(&r.turns) - handshake);
	ssh_close(s.ssh);
	relay_end(&r);
}

/* The first channel opens late, for reasons of the server's own. */
static void test_round_trip_is_the_lines(void **state)
{
	(void)state;
	need_sshd();
	struct relay r = {.chunk = 16384, .up_most = -1, .down_most = -1};
	struct session s;
	struct command c = {0};

	relay_start(&r);
	open_up(&s, r.port);
	assert_int_equal(ssh_round_trip_ms(s.ssh), -1);
	atomic_store(&r.hold_ms, 2000);
	run_command(s.ssh, &c, "true");
	TURN_UNTIL(ssh_loop, c.closed);
	TURN_UNTIL(ssh_loop, ssh_round_trip_ms(s.ssh) >= 0 && ssh_round_trip_ms(s.ssh) < 1500);
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
		cmocka_unit_test(test_close_inside_callbacks),
		cmocka_unit_test(test_close_early),
		cmocka_unit_test(test_many_channels),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_round_trip_is_the_lines),
	};
	return cmocka_run_group_tests(tests, start_ssh_bed, end_ssh_bed);
}
