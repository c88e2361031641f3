/* main.c - the program that burst puts on every pod: one static file without dependencies, for
 * Linux.
 *
 *	burst-agent attach    talk to the pod's one `serve` over stdin and stdout (and start it if
 *	                      there is none)
 *	burst-agent serve     workers, queue, event log, lease; survives lost connections
 *	burst-agent send      files of the volume to stdout
 *	burst-agent tree      a tar stream into a folder of the volume
 *	burst-agent copy      a tree of the volume, checked, into a folder
 *	burst-agent ls, rm    for `burst volume gc`
 *
 * CONTROL.md says what it obeys and answers, ../PROTOCOL.md what workers and it say to each other.
 * One thread, one poll loop. Nothing that comes from outside is trusted: lines have a cap, names
 * are checked, links are not followed. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "files.h"
#include "trees.h"

/* ---- `attach`: between the SSH channel and the socket of `serve` ---- */

/* Returns -1 if no `serve` listens. */
static int connect_to_serve(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "agent.sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		close_fd(&fd);
	return fd;
}

static void start_serve_daemon(void)
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

/* Starts a `serve` if none listens. Returns -1 if there is none after 15 s. */
static int connect_or_start(void)
{
	int fd = connect_to_serve();
	for (int tries = 0; fd < 0 && tries < 3000; tries++) {
		if (tries % 200 == 0)
			start_serve_daemon();
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		fd = connect_to_serve();
	}
	return fd;
}

/* Copies one piece from one side to the other. Returns false if either side is closed. */
static bool relay_piece(int from, int to)
{
	char part[64 << 10];
	ssize_t n = read(from, part, sizeof(part));
	return (n < 0 && errno == EINTR) || (n > 0 && fd_write_all(to, part, (size_t)n) == 0);
}

static int agent_attach(void)
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
			open = relay_piece(fd, 1);
		if (open && p[0].revents)
			open = relay_piece(0, fd);
	}
	close(fd);
	place_free(&place);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "--version") || !strcmp(what, "version"))
		return printf("burst-agent %s\n", BURST_VERSION) < 0;
	if (!strcmp(what, "attach"))
		return agent_attach();
	if (!strcmp(what, "serve"))
		return agent_serve();
	if (!strcmp(what, "send"))
		return agent_send();
	if (!strcmp(what, "tree"))
		return agent_tree(argc, argv);
	if (!strcmp(what, "copy") && argc == 4)
		return agent_copy(argv[2], argv[3]);
	if (!strcmp(what, "lane") && argc == 3 && name_safe(argv[2]))
		return agent_lane(argv[2]);
	if (!strcmp(what, "ls") && argc == 3)
		return agent_ls(argv[2]);
	if (!strcmp(what, "rm") && argc > 2)
		return agent_rm(argc - 2, argv + 2);
	fprintf(stderr, "usage: burst-agent attach | serve | send | tree ... | copy TREE DIR | "
			"lane ID | ls DIR | rm PATH... | --version\n");
	return 2;
}
