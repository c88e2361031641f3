/* place.c - where this pod keeps its files, and how its volume is made durable. */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "files.h"

void place_load(struct place *place)
{
	const char *home = getenv("BURST_HOME");
	place->home = xstrdup(home && *home ? home : "/run/burst");
	char *file = xasprintf("%s/env", place->home);
	struct str text = {0};
	if (read_file(file, 4 << 20, &text) == 0 && text.len)
		env_parse(&place->env, text.s);
	str_free(&text);
	free(file);
	const char *volume = env_get(&place->env, "BURST_VOLUME", getenv("BURST_VOLUME"));
	place->volume = volume && *volume ? volume : "/workspace";
	env_set(&place->env, "BURST_HOME", place->home);
	if (env_get(&place->env, "PATH", NULL))
		setenv("PATH", env_get(&place->env, "PATH", ""), 1);
	else
		env_set(&place->env, "PATH",
			"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

void place_free(struct place *place)
{
	free((char *)place->home);
	env_free(&place->env);
}

char *on_volume(const struct place *place, const char *path)
{
	return path[0] == '/' ? xstrdup(path) : xasprintf("%s/%s", place->volume, path);
}

int volume_flush(const struct place *place)
{
	int fd = open(place->volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC), status = 0;
	if (fd < 0)
		return -1;
	int failed = syncfs(fd) < 0;
	fsync(fd);
	close(fd);
	const char *program = env_get(&place->env, "BURST_SYNC_CMD", "");
	if (!*program)
		return failed ? -1 : 0;
	pid_t pid = fork();
	if (pid == 0) {
		execlp(program, program, place->volume, (char *)NULL);
		_exit(127);
	}
	if (failed || pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	errno = EIO;
	return status ? -1 : 0;
}
