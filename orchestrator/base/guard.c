#include "guard.h"

#include <stdlib.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "files.h"
#include "mem.h"

extern char **environ;

static struct {
	bool began;
	rlim_t cores; /* as we found it */
	char **hidden;
	size_t count, cap;
} state;

/* The hard limit stays: a child of an ordinary user could not get it back. A handler that the kernel pipes dumps to is not
 * kept by limits, but gets none of a process that is closed. */
void guard_begin(bool closed)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) == 0) {
		state.cores = limit.rlim_cur;
		state.began = true;
		limit.rlim_cur = 0;
		setrlimit(RLIMIT_CORE, &limit);
	}
#ifdef __linux__
	if (closed)
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#else
	(void)closed;
#endif
}

void guard_leave(void)
{
	struct rlimit limit;

	files_give_back();
	if (!state.began || getrlimit(RLIMIT_CORE, &limit) < 0)
		return;
	limit.rlim_cur = state.cores;
	setrlimit(RLIMIT_CORE, &limit);
}

void guard_hide(const char *name)
{
	GROW(state.hidden, state.count, state.cap);
	state.hidden[state.count++] = xstrdup(name);
}

static bool is_hidden(const char *pair)
{
	for (size_t i = 0; i < state.count; i++) {
		size_t len = strlen(state.hidden[i]);
		if (!strncmp(pair, state.hidden[i], len) && pair[len] == '=')
			return true;
	}
	return false;
}

char **guard_environ(void)
{
	size_t count = 0, kept = 0;

	while (environ && environ[count])
		count++;
	char **list = xcalloc(count + 1, sizeof(*list));
	for (size_t i = 0; i < count; i++)
		if (!is_hidden(environ[i]))
			list[kept++] = environ[i];
	return list;
}
