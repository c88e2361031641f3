/* start.c - prepares the process before the command line is read. */
#include "start.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/child.h"

void start_open_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void start_reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
}

void start_find_self(const char *name)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n > 0) {
		path[n] = '\0';
		child_set_self(path);
	} else if (realpath(name, path)) {
		child_set_self(path);
	}
}

void start_read_terminal(struct cmd_context *ctx)
{
	const char *term = getenv("TERM");
	const char *no_color = getenv("NO_COLOR");

	ctx->live = isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
	ctx->color = ctx->live && !(no_color && *no_color);
}
