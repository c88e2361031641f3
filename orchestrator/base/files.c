/* files.c - raises the limit of open descriptors, and restores it for children. */
#include "files.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/resource.h>

enum { MOST = 1 << 20, ALWAYS_TAKEN = 10240, OPEN_GUESS = 16 };

/* The limit is the process's, and so is what it was. */
static struct rlimit before;
static bool raised;

long files_raise(void)
{
	/* macOS names no end and takes no more than so many */
	static const rlim_t steps[] = {MOST, ALWAYS_TAKEN};
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return OPEN_GUESS;
	if (!raised)
		before = now;
	raised = true;
	for (int i = 0; i < 2; i++) {
		rlim_t wanted = now.rlim_max < steps[i] ? now.rlim_max : steps[i];
		struct rlimit more = {.rlim_cur = wanted, .rlim_max = now.rlim_max};
		if (wanted > now.rlim_cur && setrlimit(RLIMIT_NOFILE, &more) == 0)
			return (long)wanted;
	}
	return now.rlim_cur > LONG_MAX ? LONG_MAX : (long)now.rlim_cur;
}

int files_open(void)
{
	DIR *dir = opendir("/dev/fd");
	int count = 0;

	if (!dir)
		return OPEN_GUESS;
	for (struct dirent *e; (e = readdir(dir));)
		count += e->d_name[0] != '.';
	closedir(dir);
	return count - 1; /* the folder itself */
}

void files_restore_limit(void)
{
	if (raised)
		setrlimit(RLIMIT_NOFILE, &before);
}
