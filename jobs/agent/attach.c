/* attach.c - `attach`: between the SSH channel and the socket of `serve`. */
#include "attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "files.h"
#include "place.h"

static int connect_to_serve(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "agent.sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		close_fd(&fd);
	return fd;
}

static void start_serve(void)
{
	pid_t pid = fork();
	if (pid) {
		if (pid > 0)
			waitpid(pid, NULL, 0);
		return;
	}
	setsid();
	if (fork())
		_exit(0);
	int null = open("/dev/null", O_RDWR),
	    log = open("agent.log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(null, 0);
	dup2(null, 1);
	dup2(log >= 0 ? log : null, 2);
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	execl("/proc/self/exe", "burst-agent", "serve", (char *)NULL);
	_exit(127);
}

static int connect_or_start(void)
{
	int fd = connect_to_serve();
	for (int tries = 0; fd < 0 && tries < 3000; tries++) {
		if (tries % 200 == 0)
			start_serve();
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		fd = connect_to_serve();
	}
	return fd;
}

/* Copies one piece from one side to the other. Returns false if either side is closed. */
static bool relay(int from, int to)
{
	char part[64 << 10];
	ssize_t n = read(from, part, sizeof(part));
	return (n < 0 && errno == EINTR) || (n > 0 && fd_write_all(to, part, (size_t)n) == 0);
}

int agent_attach(void)
{
	struct place place = {0};
	place_load(&place);
	int fd = mkdirs(place.home, 0700) < 0 || chdir(place.home) < 0 ? -1 : connect_or_start();
	if (fd < 0) {
		fprintf(stderr, "burst-agent: no agent can be started in %s: %s\n", place.home,
			strerror(errno));
		return place_free(&place), 1;
	}
	signal(SIGPIPE, SIG_IGN);
	struct pollfd p[2] = {{.fd = 0, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	bool open = true;
	while (open) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			open = relay(fd, 1);
		if (open && p[0].revents)
			open = relay(0, fd);
	}
	close(fd);
	place_free(&place);
	return 0;
}
