/* files.c - files below a folder, environment variables, the pod's places and its machine. */
#include "files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "sha256.h"

void close_fd(int *fd)
{
	int saved = errno;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

void close_dir(DIR *d)
{
	int saved = errno;
	if (d)
		closedir(d);
	errno = saved;
}

bool path_inside(const char *path)
{
	size_t len = strlen(path);
	if (!len || len >= PATH_BYTES_MAX || path[0] == '/')
		return false;
	for (const char *part = path; part;) {
		const char *slash = strchr(part, '/');
		size_t n = slash ? (size_t)(slash - part) : strlen(part);
		if (!n || n > NAME_MAX || (n == 1 && part[0] == '.') ||
		    (n == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part = slash ? slash + 1 : NULL;
	}
	return true;
}

bool name_safe(const char *name)
{
	return path_is_safe(name) && !strchr(name, '/') && strlen(name) <= 200;
}

int mkdirs(const char *path, mode_t mode)
{
	CLEANUP(free_text) char *copy = xstrdup(path);
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		mkdir(copy, mode);
		*p = '/';
	}
	return mkdir(copy, mode) < 0 && errno != EEXIST ? -1 : 0;
}

int open_at(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int make_at(int dir, const char *name)
{
	return mkdirat(dir, name, 0755) < 0 ? -1 : open_at(dir, name);
}

int create_at(int dir, const char *name, mode_t mode)
{
	return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* Opens a folder, and makes it if it is missing and `make` is set. */
static int open_or_make(int dir, const char *name, bool make)
{
	int fd = open_at(dir, name);
	if (fd < 0 && errno == ENOENT && make && (mkdirat(dir, name, 0755) == 0 || errno == EEXIST))
		fd = open_at(dir, name);
	return fd;
}

int open_parent(int root, const char *path, bool make, const char **name)
{
	int at = dup(root);
	const char *part = path, *slash;
	while (at >= 0 && (slash = strchr(part, '/'))) {
		char one[NAME_MAX + 1];
		snprintf(one, sizeof(one), "%.*s", (int)(slash - part), part);
		int next = open_or_make(at, one, make);
		close_fd(&at);
		at = next;
		part = slash + 1;
	}
	*name = part;
	return at;
}

int parent_open(struct parent *p, int root, const char *path, bool make, const char **name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	*name = slash ? slash + 1 : path;
	if (p->fd >= 0 && strlen(p->path) == len && !memcmp(p->path, path, len))
		return p->fd;
	parent_close(p);
	p->path = xstrndup(path, len);
	return p->fd = open_parent(root, path, make, name);
}

void parent_close(struct parent *p)
{
	close_fd(&p->fd);
	free(p->path);
	p->path = NULL;
}

int open_below(int root, const char *path, struct stat *st)
{
	int fd = path_open_below(root, path, O_RDONLY);
	if (fd < 0 && errno == ENOTDIR)
		errno = ELOOP;
	if (fd >= 0 && (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))) {
		close_fd(&fd);
		errno = ELOOP;
	}
	return fd;
}

int open_folder(int root, const char *path, bool make)
{
	const char *name;
	if (!make)
		return path_open_below(root, path, O_RDONLY | O_DIRECTORY);
	int dir = open_parent(root, path, true, &name);
	int fd = dir < 0 ? -1 : open_or_make(dir, name, true);
	close_fd(&dir);
	return fd;
}

struct dirent *next_entry(DIR *d)
{
	struct dirent *e;
	while ((errno = 0, e = readdir(d)) && (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")))
		;
	return e;
}

void tidy_folder(int dir, const char *begin, const char *but)
{
	int copy = open_at(dir, ".");
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	while (d && (e = next_entry(d)))
		if (!strncmp(e->d_name, begin, strlen(begin)) && (!but || strcmp(e->d_name, but)))
			remove_at(dir, e->d_name);
	if (d)
		closedir(d);
	else
		close_fd(&copy);
}

int remove_at(int dir, const char *name)
{
	return path_remove_tree_at(dir, name, name, NULL);
}

int write_beside(const char *path, const char *text, mode_t mode)
{
	CLEANUP(free_text) char *temp = xasprintf("%s.new", path);
	int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	int failed = fd < 0 || fd_write_all(fd, text, strlen(text)) < 0;
	close_fd(&fd);
	failed = failed || rename(temp, path) < 0;
	return failed ? -1 : 0;
}

int read_file(const char *path, size_t most, struct str *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	char part[4096];
	ssize_t n;
	while (out->len < most && (n = read(fd, part, MIN(sizeof(part), most - out->len))) > 0)
		str_addn(out, part, (size_t)n);
	close(fd);
	return 0;
}

int read_all(int fd, size_t most, struct str *out)
{
	char part[64 << 10];
	ssize_t n;
	while ((n = read(fd, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (out->len + (size_t)n > most)
			return errno = EBADMSG, -1;
		str_addn(out, part, (size_t)n);
	}
	return 0;
}

int pread_all(int fd, char *to, size_t len, int64_t offset)
{
	while (len) {
		ssize_t n = pread(fd, to, len, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return errno = n < 0 ? errno : EBADMSG, -1;
		to += n;
		offset += n;
		len -= (size_t)n;
	}
	return 0;
}

int copy_all(int in, int out, struct sha256 *sha)
{
	static char part[256 << 10];
	ssize_t n;
	while ((n = read(in, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (out >= 0 && fd_write_all(out, part, (size_t)n) < 0))
			return -1;
		if (sha)
			sha_add(sha, part, (size_t)n);
	}
	return 0;
}

ssize_t read_link(int dir, const char *name, char target[PATH_BYTES_MAX])
{
	ssize_t n = readlinkat(dir, name, target, PATH_BYTES_MAX - 1);
	target[MAX(n, (ssize_t)0)] = 0;
	return n;
}

void set_aside(int root, const char *path)
{
	const char *name;
	int dir = open_parent(root, path, false, &name);
	CLEANUP(free_text) char *aside = xasprintf(".%s.gone.%d", name, getpid());
	if (dir >= 0 && renameat(dir, name, dir, aside) == 0)
		remove_at(dir, aside);
	close_fd(&dir);
}

int make_pipe(int *read_end, int *write_end)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	*read_end = p[0];
	*write_end = p[1];
	return 0;
}

void nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* ---- environment variables, and the file of them that the start script leaves ---- */

void env_set(struct env *env, const char *name, const char *value)
{
	size_t len = strlen(name);
	char *pair = xasprintf("%s=%s", name, value);
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], name, len) && env->list[i][len] == '=') {
			free(env->list[i]);
			env->list[i] = pair;
			return;
		}
	env->list = xrealloc(env->list, (env->count + 2) * sizeof(char *));
	env->list[env->count++] = pair;
	env->list[env->count] = NULL;
}

const char *env_get(const struct env *env, const char *name, const char *absent)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], name, len) && env->list[i][len] == '=')
			return env->list[i] + len + 1;
	return absent;
}

bool env_is_container(const struct env *env)
{
	return !strcmp(env_get(env, "BURST_CONTAINER", ""), "1");
}

void env_free(struct env *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->list[i]);
	free(env->list);
	*env = (struct env){0};
}

struct env env_copy(const struct env *from)
{
	struct env to = {.list = xcalloc(1, (from->count + 1) * sizeof(char *)),
			 .count = from->count};
	for (size_t i = 0; i < from->count; i++)
		to.list[i] = xstrdup(from->list[i]);
	return to;
}

/* Reads a word in shell quoting ('..', "..", \x, plain). Returns its end, at most the line's end.
 */
static const char *shell_word(const char *p, struct str *out)
{
	while (*p && *p != '\n') {
		if (*p == '\'') {
			const char *close = strchr(p + 1, '\'');
			if (!close)
				return p + strlen(p);
			str_addn(out, p + 1, (size_t)(close - p - 1));
			p = close + 1;
		} else if (*p == '"') {
			for (p++; *p && *p != '"'; p++) {
				if (*p == '\\' && p[1] && strchr("\"\\$`", p[1]))
					p++;
				str_addc(out, *p);
			}
			p += *p == '"';
		} else {
			p += *p == '\\' && p[1];
			str_addc(out, *p++);
		}
	}
	return p;
}

void env_unset(struct env *env, const char *name)
{
	size_t len = strlen(name), kept = 0;
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], name, len) && env->list[i][len] == '=')
			free(env->list[i]);
		else
			env->list[kept++] = env->list[i];
	env->count = kept;
	if (env->list)
		env->list[kept] = NULL;
}

/* Drops the start script's own keys and those that the provider lists in BURST_HIDE. */
static void hide_keys(struct env *env)
{
	CLEANUP(free_text)
	char *names = xasprintf("BURST_HOST_KEY_B64 BURST_AUTHORIZED_KEY %s",
				env_get(env, "BURST_HIDE", ""));
	char *save = NULL;
	for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save))
		env_unset(env, name);
}

void env_parse(struct env *env, const char *text)
{
	for (const char *p = text; *p; p += *p == '\n') {
		size_t n = strspn(
			p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
		if (!n || p[n] != '=') {
			p += strcspn(p, "\n");
			continue;
		}
		char *name = xstrndup(p, n);
		struct str value = {0};
		p = shell_word(p + n + 1, &value);
		env_set(env, name, str_text(&value));
		free(name);
		str_free(&value);
	}
	hide_keys(env);
}

void env_add_object(struct env *env, const struct json *object)
{
	for (const struct json *m = object && object->type == J_OBJECT ? object->first : NULL; m;
	     m = m->next)
		if (m->type == J_TEXT && *m->key && !strchr(m->key, '='))
			env_set(env, m->key, m->text);
}

/* ---- where this pod keeps its files ---- */

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

/* ---- the machine ---- */

int64_t uptime_s(void)
{
	CLEANUP(str_free) struct str text = {0};
	return read_file("/proc/uptime", 64, &text) == 0 && text.len ? atoll(text.s)
								     : clock_boot_ms() / 1000;
}

bool find_program(const char *name, char file[PATH_MAX])
{
	const char *path = getenv("PATH");
	bool found = false;
	while (path && *path && !found) {
		size_t len = strcspn(path, ":");
		found = snprintf(file, PATH_MAX, "%.*s/%s", (int)len, path, name) < PATH_MAX &&
			access(file, X_OK) == 0;
		path += len + (path[len] == ':');
	}
	return found;
}

int cpu_count(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	CLEANUP(str_free) struct str text = {0};
	long long quota, period;
	if (read_file("/sys/fs/cgroup/cpu.max", 100, &text) == 0 && text.len &&
	    sscanf(text.s, "%lld %lld", &quota, &period) == 2 && period > 0 && quota > 0)
		count = (int)MIN((int64_t)count, MAX((quota + period - 1) / period, (long long)1));
	return count;
}

int64_t oom_kills(int fd)
{
	static const char key[] = "oom_kill ";
	char text[1024];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	text[MAX(n, (ssize_t)0)] = 0;
	const char *at = strstr(text, key);
	return at ? atoll(at + strlen(key)) : 0;
}

/* The file `name` of this process's group in the hierarchy that a line of /proc/self/cgroup
 * (groups) names by `key`. The caller frees the path. */
static char *cgroup_file(const char *groups, const char *key, const char *top, const char *name)
{
	const char *at = strstr(groups, key), *path = at ? at + strlen(key) : "";
	return xasprintf("%s%.*s/%s", top, (int)strcspn(path, "\n"), path, name);
}

int oom_open(void)
{
	static const struct {
		const char *key, *top, *name;
	} hierarchies[] = {{"0::", "/sys/fs/cgroup", "memory.events"},
			   {":memory:", "/sys/fs/cgroup/memory", "memory.oom_control"}};
	CLEANUP(str_free) struct str groups = {0};
	int fd = -1;
	read_file("/proc/self/cgroup", 4096, &groups);
	for (size_t i = 0; i < 2 * ARRAY_LEN(hierarchies) && fd < 0; i++) {
		/* in a container, its own group may be at the top */
		char *file = cgroup_file(i % 2 ? "" : str_text(&groups), hierarchies[i / 2].key,
					 hierarchies[i / 2].top, hierarchies[i / 2].name);
		fd = open(file, O_RDONLY | O_CLOEXEC);
		free(file);
	}
	return fd;
}

enum { TMPFS = 0x01021994 };

bool disk_fits(const char *path)
{
	struct statvfs v;
	struct statfs f;
	return statvfs(path, &v) == 0 && !(v.f_flag & ST_NOEXEC) && statfs(path, &f) == 0 &&
	       (long)f.f_type != TMPFS;
}
