/* own_client.c - waits for a client that a run has started, and passes signals on to it. */
#include "own_client.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/mem.h"

static volatile sig_atomic_t waited_for;

static void pass_on(int number)
{
	int saved = errno;

	if (waited_for > 0)
		kill(waited_for, number);
	errno = saved;
}

int own_client_wait(pid_t pid)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction was[ARRAY_LEN(numbers)],
		act = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
	int status = 0;

	waited_for = pid;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &act, &was[i]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	waited_for = 0;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &was[i], NULL);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
