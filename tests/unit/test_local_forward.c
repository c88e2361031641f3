/* test_local_forward.c - the forwarder of a local pod's ports, alone. */
#include "local_pods.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "providers/local/supervisor.h"

static int listen_anywhere(int *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 16), 0);
	getsockname(fd, (struct sockaddr *)&at, &len);
	*port = ntohs(at.sin_port);
	return fd;
}

static pid_t start_forwarder(int listen_fd, int port, int not_ours)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	close(not_ours);
	struct pollfd set[FORWARD_POLL_MAX];
	struct forward *f = forward_new(listen_fd, port);
	for (;;) {
		int64_t next_ms;
		size_t n = forward_fill_poll(f, set, &next_ms);
		int64_t wait = MIN(LIMIT_MS, MAX(next_ms - clock_boot_ms(), 0));
		if (poll(set, n, (int)wait) == 0 && wait == LIMIT_MS)
			_exit(0);
		forward_serve(f, set, n);
	}
}

/* Says back what it hears, all of it only after the client has said its last. */
static pid_t start_echo(int listen_fd)
{
	pid_t pid = fork();
	char buf[65536];
	ssize_t n;

	if (pid)
		return pid;
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept(listen_fd, NULL, NULL);
		if (fork() != 0) {
			close(fd);
			continue;
		}
		int kept = scratch_file();
		close(listen_fd); /* when the first of us is gone, nobody listens */
		while ((n = read(fd, buf, sizeof(buf))) > 0)
			(void)!write(kept, buf, (size_t)n);
		lseek(kept, 0, SEEK_SET);
		while ((n = read(kept, buf, sizeof(buf))) > 0)
			if (send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n)
				break;
		_exit(0);
	}
}

static void send_and_hear(int port, size_t bytes)
{
	CLEANUP(free_text) char *sent = xmalloc(bytes + 1);
	CLEANUP(free_text) char *heard = xmalloc(bytes + 1);
	CLEANUP(fd_close) int fd = connect_to(port);
	size_t got = 0;
	ssize_t n;

	for (size_t i = 0; i < bytes; i++)
		sent[i] = (char)(i * 2654435761u >> 13);
	for (size_t done = 0; done < bytes; done += (size_t)n) {
		n = send(fd, sent + done, bytes - done, MSG_NOSIGNAL);
		assert_true(n > 0);
	}
	shutdown(fd, SHUT_WR);
	while ((n = read(fd, heard + got, bytes + 1 - got)) > 0)
		got += (size_t)n;
	assert_int_equal(n, 0);
	assert_int_equal(got, bytes);
	assert_memory_equal(sent, heard, bytes);
}

static void forwards_both_ways_and_half_closed(void **state)
{
	int door, inside;
	int door_fd = listen_anywhere(&door), inside_fd = listen_anywhere(&inside);
	pid_t echo = start_echo(inside_fd), forwarder = start_forwarder(door_fd, inside, inside_fd);
	char c;

	(void)state;
	close(door_fd);
	close(inside_fd);
	send_and_hear(door, 0);
	send_and_hear(door, 1);
	send_and_hear(door, 16 << 20);
	int idle = connect_to(door); /* one that says nothing is in nobody's way */
	send_and_hear(door, 1 << 20);
	close(idle);
	kill(echo, SIGKILL);
	waitpid(echo, NULL, 0);
	/* nobody listens inside: dropped at once */
	CLEANUP(fd_close) int dropped = connect_to(door);
	errno = 0;
	assert_true(read(dropped, &c, 1) <= 0 && errno != EAGAIN);
	kill(forwarder, SIGKILL);
	waitpid(forwarder, NULL, 0);
}

/* Without a file for it, a connection waits, and so does the forwarder: its poll() must not return
 * again and again. */
static void without_files_it_does_not_spin(void **state)
{
	int door, inside, turns = 0;
	int door_fd = listen_anywhere(&door), inside_fd = listen_anywhere(&inside);
	int client = connect_to(door);
	struct forward *f = forward_new(door_fd, inside);
	struct pollfd set[FORWARD_POLL_MAX];
	struct rlimit before, none;
	int64_t next_ms, until = clock_boot_ms() + 1000;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	while (clock_boot_ms() < until) {
		size_t n = forward_fill_poll(f, set, &next_ms);
		poll(set, n, (int)MIN(until - clock_boot_ms(), MAX(next_ms - clock_boot_ms(), 0)));
		forward_serve(f, set, n);
		turns++;
	}
	setrlimit(RLIMIT_NOFILE, &before);
	assert_true(turns < 50); /* at 100 %: some hundred thousand */
	struct pollfd came = {.fd = inside_fd, .events = POLLIN};
	for (until = clock_boot_ms() + LIMIT_MS; poll(&came, 1, 0) == 0;) {
		size_t n = forward_fill_poll(f, set, &next_ms);
		poll(set, n, 10);
		forward_serve(f, set, n);
		assert_true(clock_boot_ms() < until);
	}
	close(client);
	close(inside_fd);
	forward_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwards_both_ways_and_half_closed),
		cmocka_unit_test(without_files_it_does_not_spin),
	};

	return cmocka_run_group_tests_name("local forward", tests, NULL, NULL);
}
