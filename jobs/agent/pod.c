/* pod.c - what `serve` has on the pod: its image, measurements, users, folders and lease. */
#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "files.h"
#include "json.h"

/* ---- what the pod's image contains ---- */

void python_of_image(char *name, size_t room)
{
	char file[PATH_MAX], real[PATH_MAX];
	bool there = find_program("python3", file) && realpath(file, real);
	snprintf(name, room, "%s", there ? strrchr(real, '/') + 1 : "");
}

#define IMAGE_DIR "/usr/local/lib/burst"

enum { IMAGE_ENVS_MOST = 32 };

char *image_path(const struct agent *a, const char *key)
{
	const char *image = env_get(&a->place.env, "BURST_IMAGE", getenv("BURST_IMAGE"));
	return xasprintf("%s/env/%s", image && *image ? image : IMAGE_DIR, key);
}

bool image_has(const struct agent *a, const char *key)
{
	CLEANUP(str_free) struct str text = {0};
	struct stat st;
	CLEANUP(free_text)
	char *path = image_path(a, key), *file = xasprintf("%s/.burst-key", path);
	return sha256_is_hex(key) && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_uid == 0 || st.st_uid == getuid()) && read_file(file, 100, &text) == 0 &&
	       !strncmp(str_text(&text), key, 64);
}

void add_image_envs(const struct agent *a, struct str *b)
{
	CLEANUP(free_text) char *path = image_path(a, "");
	CLEANUP(close_dir) DIR *d = opendir(path);
	struct dirent *e;
	int count = 0;
	js_key(b, "image_envs");
	str_addc(b, '[');
	while (d && count < IMAGE_ENVS_MOST && (e = readdir(d)))
		if (image_has(a, e->d_name)) {
			js_text(b, NULL, e->d_name);
			count++;
		}
	str_addc(b, ']');
}

/* ---- measurements of workers for the next pod, in cache/probe.jsonl on the volume ---- */

#define PROBE_FILE "cache/probe.jsonl"

#define PROBE_KEY_MOST 512

/* Reads the volume's list, complete lines only. Leaves it empty on failure. */
static void probe_read(int volume, struct str *list)
{
	struct stat st;
	int fd = open_below(volume, PROBE_FILE, &st);
	if (fd < 0 || read_all(fd, PROBE_LIST_MOST, list) < 0)
		str_drop(list, list->len);
	close_fd(&fd);
	while (list->len && list->s[list->len - 1] != '\n')
		list->len--;
}

bool probe_add(struct str *list, const char *line)
{
	size_t len = strlen(line);
	for (const char *at = str_text(list); (at = strstr(at, line)); at++)
		if (at == list->s || at[-1] == '\n')
			return false;
	while (list->len + len > PROBE_LIST_MOST) {
		const char *end = memchr(list->s, '\n', list->len);
		str_drop(list, end ? (size_t)(end - list->s) + 1 : list->len);
	}
	str_add(list, line);
	return true;
}

/* Replaces the list below `root` by a rename: several pods may use the volume. */
static void probe_write(const struct agent *a, int root, const char *path, struct str *list)
{
	const char *name;
	int dir = open_parent(root, path, true, &name);
	CLEANUP(free_text) char *temp = xasprintf(".%s.%s", name, a->attempt);
	int fd = dir < 0 ? -1
			 : openat(dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
				  0644);
	bool written = fd >= 0 && fd_write_all(fd, str_text(list), list->len) == 0;
	close_fd(&fd);
	if (!written || renameat(dir, temp, dir, name) < 0)
		unlinkat(dir, temp, 0);
	close_fd(&dir);
}

static char *probe_path(const struct agent *a)
{
	return xasprintf("tree/%d/probe.jsonl", a->starts);
}

void probe_bring(struct agent *a)
{
	CLEANUP(str_free) struct str list = {0};
	CLEANUP(free_text) char *path = probe_path(a), *whole = xasprintf("%s/%s", a->disk, path);
	probe_read(a->volume_fd, &list);
	if (list.len)
		probe_write(a, a->disk_fd, path, &list);
	env_set(&a->start_env, "BURST_PROBE", whole);
}

void probe_keep(struct agent *a, const struct json *hello)
{
	const struct json *probe = json_get(hello, "probe");
	if (!probe || probe->type != J_OBJECT)
		return;
	const char *key = json_text(probe, "key", "");
	int64_t most = json_int(probe, "max_batch", 0);
	if (!*key || strlen(key) > PROBE_KEY_MOST || most < 1 || most > (int64_t)1 << 20)
		return;
	struct str line = {0}, list = {0};
	str_addc(&line, '{');
	js_text(&line, "key", key);
	js_int(&line, "max_batch", most);
	str_add(&line, "}\n");
	probe_read(a->volume_fd, &list);
	if (probe_add(&list, str_text(&line))) {
		char *path = probe_path(a);
		probe_write(a, a->volume_fd, PROBE_FILE, &list);
		probe_write(a, a->disk_fd, path, &list);
		free(path);
	}
	str_free(&line);
	str_free(&list);
}

/* ---- the users of workers and scripts, and their variables ---- */

char *work_path(const struct agent *a, const char *name)
{
	return xasprintf("%s/work/%s", a->disk, name);
}

char *env_path(const struct agent *a, const char *name)
{
	return a->env_root ? xasprintf("%s/%s", a->env_root, name)
			   : xasprintf("%s/env/%s", a->place.volume, name);
}

int child_switch(const struct agent *a, uid_t uid)
{
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && fchown(fd, uid, uid) < 0)
			errno = 0;
	}
	if (setgroups(a->group_count, a->groups) < 0 || setresgid(uid, uid, uid) < 0 ||
	    setresuid(uid, uid, uid) < 0)
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void env_set_user(const struct agent *a, struct env *env, uid_t uid)
{
	static const char *const roots[] = {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
					    "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HF_HOME",
					    "TORCH_HOME",     "PIP_CACHE_DIR",   "UV_CACHE_DIR",
					    "MPLCONFIGDIR"};
	if (!a->separate || !uid) {
		if (!env_get(env, "HOME", NULL))
			env_set(env, "HOME", a->place.home);
		return;
	}
	CLEANUP(free_text)
	char *home = xasprintf("%s/work/%s", a->disk, uid == SETUP_UID ? "setup-home" : "home");
	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		env_unset(env, roots[i]);
	env_set(env, "HOME", home);
	env_set(env, "USER", uid == SETUP_UID ? "burst-setup" : "burst-worker");
	env_set(env, "LOGNAME", uid == SETUP_UID ? "burst-setup" : "burst-worker");
}

void worker_env(struct agent *a, struct env *env, int w)
{
	char number[24];
	env_set_user(a, env, a->worker_root ? 0 : WORKER_UID);
	for (size_t i = 0; i < a->start_env.count; i++) {
		char *pair = xstrdup(a->start_env.list[i]), *eq = strchr(pair, '=');
		*eq = 0;
		env_set(env, pair, eq + 1);
		free(pair);
	}
	/* the volume is compared with its listing, so nothing may be added */
	if (env_get(env, "BURST_ENV", NULL) && !env_get(env, "PYTHONDONTWRITEBYTECODE", NULL))
		env_set(env, "PYTHONDONTWRITEBYTECODE", "1");
	env_set(env, "BURST_OUT", a->out_dir);
	snprintf(number, sizeof(number), "%d", w);
	env_set(env, "BURST_WORKER", number);
	snprintf(number, sizeof(number), "%d", a->worker_count);
	env_set(env, "BURST_WORKERS", number);
}

/* Lets workers use a device: notes the group that owns it. In a container made by burst, where only
 * root's group owns it, opens it to every user. */
static void allow_device(struct agent *a, int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISCHR(st.st_mode) ||
	    (st.st_mode & 06) == 06)
		return;
	if (st.st_gid == 0 || (st.st_mode & 060) != 060) {
		if (env_is_container(&a->place.env) &&
		    fchmodat(dir, name, (st.st_mode & 0777) | 0666, 0) < 0)
			errno = 0;
		return;
	}
	for (size_t i = 0; i < a->group_count; i++)
		if (a->groups[i] == st.st_gid)
			return;
	if (a->group_count < GROUPS_MAX)
		a->groups[a->group_count++] = st.st_gid;
}

static void allow_devices(struct agent *a)
{
	static const struct {
		const char *dir, *prefix;
	} places[] = {
		{"/dev", "nvidia"}, {"/dev", "kfd"}, {"/dev/dri", ""}, {"/dev/nvidia-caps", ""}};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		CLEANUP(close_dir) DIR *d = opendir(places[i].dir);
		struct dirent *e;
		while (d && (e = readdir(d)))
			if (!strncmp(e->d_name, places[i].prefix, strlen(places[i].prefix)))
				allow_device(a, dirfd(d), e->d_name);
	}
}

/* Adds the users to /etc/passwd: some programs look up their own name. */
static void add_users(struct agent *a)
{
	static const struct {
		uid_t uid;
		const char *name, *home;
	} users[] = {{WORKER_UID, "burst-worker", "home"},
		     {SETUP_UID, "burst-setup", "setup-home"}};
	CLEANUP(str_free) struct str text = {0};
	if (!env_is_container(&a->place.env) || read_file("/etc/passwd", 1 << 20, &text) < 0)
		return;
	int fd = open("/etc/passwd", O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	for (size_t i = 0; fd >= 0 && i < ARRAY_LEN(users); i++) {
		char *id = xasprintf(":%d:", (int)users[i].uid);
		if (!strstr(str_text(&text), id))
			dprintf(fd, "%s%s:x:%d:%d::%s/work/%s:/bin/sh\n",
				text.len && text.s[text.len - 1] != '\n' && !i ? "\n" : "",
				users[i].name, (int)users[i].uid, (int)users[i].uid, a->disk,
				users[i].home);
		free(id);
	}
	close_fd(&fd);
}

/* Returns whether the agent can switch users and the new user can work in the workers' folders. */
static bool can_separate(struct agent *a)
{
	int status = 1;
	CLEANUP(free_text) char *home = work_path(a, "home");
	pid_t pid = geteuid() ? -1 : fork();
	if (pid == 0) {
		if (child_switch(a, WORKER_UID) < 0 || chdir(a->out_dir) < 0 ||
		    mkdir(".probe", 0700) < 0 || rmdir(".probe") < 0 || access(home, W_OK) < 0)
			_exit(1);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* ---- the folders that `serve` works in ---- */

bool open_run_folder(struct agent *a)
{
	char *path = xasprintf("runs/%s/%s", a->run, a->attempt);
	free(a->dir);
	a->dir = xasprintf("%s/%s", a->place.volume, path);
	a->dir_fd = a->volume_fd < 0 ? -1 : open_folder(a->volume_fd, path, true);
	bool fine = a->dir_fd >= 0 && faccessat(a->dir_fd, ".", W_OK, 0) == 0;
	free(path);
	if (!fine) {
		close_fd(&a->dir_fd);
		free(a->dir);
		a->dir = xasprintf("%s/out", a->place.home);
		mkdirs(a->dir, 0755);
		a->dir_fd = open(a->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return fine;
}

bool open_volume_and_run(struct agent *a)
{
	mkdirs(a->place.volume, 0755);
	a->volume_fd = open(a->place.volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return open_run_folder(a);
}

static bool is_container(const struct agent *a)
{
	return env_is_container(&a->place.env) || !strcmp(a->place.home, "/run/burst");
}

/* Chooses the folder for workers: $BURST_HOME if it is suitable, else the container's disk. A pod
 * that is only a group of processes on a user's machine always uses $BURST_HOME. The caller frees
 * it. */
static char *choose_disk(const struct agent *a)
{
	static const char *const others[] = {"/var/tmp", "/tmp"};
	if (is_container(a) && !disk_fits(a->place.home))
		for (size_t i = 0; i < ARRAY_LEN(others); i++) {
			struct stat st;
			char *path = xasprintf("%s/burst-%s", others[i], a->attempt);
			if (disk_fits(others[i]) && (mkdir(path, 0711) == 0 || errno == EEXIST) &&
			    lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
				return path;
			free(path);
		}
	return xstrdup(a->place.home);
}

void prepare_disk(struct agent *a)
{
	static const struct {
		const char *name;
		uid_t uid;
		mode_t mode;
	} folders[] = {{"out", WORKER_UID, 0755},
		       {"home", WORKER_UID, 0700},
		       {"setup-home", SETUP_UID, 0700}};
	a->disk = choose_disk(a);
	a->out_dir = xasprintf("%s/work/out", a->disk);
	a->disk_fd = open(a->disk, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->disk_fd < 0)
		return;
	remove_at(a->disk_fd, "work");
	remove_at(a->disk_fd, "tree");
	remove_at(a->disk_fd, "checkpoint");
	int work = open_folder(a->disk_fd, "work", true);
	for (size_t i = 0; work >= 0 && i < ARRAY_LEN(folders); i++) {
		mkdirat(work, folders[i].name, folders[i].mode);
		if (geteuid() == 0 && fchownat(work, folders[i].name, folders[i].uid,
					       folders[i].uid, AT_SYMLINK_NOFOLLOW) < 0)
			errno = 0;
	}
	a->out_fd = work < 0 ? -1 : open_folder(work, "out", false);
	close_fd(&work);
	if (geteuid() == 0)
		fchmod(a->disk_fd,
		       0711); /* folders closed to other users have modes of their own */
	allow_devices(a);
	a->separate = can_separate(a);
	if (a->separate) {
		struct stat st;
		chmod(a->place.home, 0711);
		/* environments are below this folder; a user who can write to it could replace one
		 */
		if (a->volume_fd >= 0 && fstat(a->volume_fd, &st) == 0 && (st.st_mode & 03) != 01)
			fchmod(a->volume_fd, ((st.st_mode & 07777) | 0111) & ~02u);
		add_users(a);
		return;
	}
	for (size_t i = 0; geteuid() == 0 && i < ARRAY_LEN(folders); i++) {
		char *path = work_path(a, folders[i].name);
		if (lchown(path, 0, 0) < 0)
			errno = 0;
		free(path);
	}
}

void prepare_env_folder(struct agent *a)
{
	const char *root = env_get(&a->place.env, "BURST_ENV_DISK",
				   is_container(a) ? "/var/tmp/burst-env" : NULL);
	struct stat st;
	int fd = !root || (mkdirs(root, 0755) < 0 && errno != EEXIST)
			 ? -1
			 : open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 &&
	    (fstat(fd, &st) < 0 || st.st_uid != geteuid() || faccessat(fd, ".", W_OK, 0) < 0))
		close_fd(&fd);
	if (fd < 0)
		return;
	tidy_folder(fd, "", NULL);
	fchmod(fd, 0755);
	a->env_fd = fd;
	a->env_root = root;
}

/* ---- the lease ---- */

int64_t lease_left_s(const struct agent *a)
{
	return a->lease_end_up_s - uptime_s();
}

void lease_renew(struct agent *a, int64_t lease_s)
{
	int64_t wall = time(NULL), up = uptime_s(),
		left = MIN(MAX(lease_s, (int64_t)1), (int64_t)7 * 86400);
	if (a->over)
		return;
	a->lease_asked_s = left;
	if (a->hard_end_s > 0)
		left = MAX(MIN(left, a->hard_end_s - wall), -up);
	char text[120];
	snprintf(text, sizeof(text), "%s %lld %lld\n", a->attempt, (long long)(wall + left),
		 (long long)(up + left));
	CLEANUP(free_text) char *file = xasprintf("%s/lease", a->place.home);
	if (write_beside(file, text, 0600) == 0)
		a->lease_end_up_s = up + left;
	a->renewed_ms = now_ms(a);
}

/* The first lease's end, later if the container started late (allow_late_start in start.sh). */
static int64_t first_lease_end(const struct agent *a, int64_t end)
{
	int64_t late = atoll(env_get(&a->place.env, "BURST_LATE_START_S", "0")),
		lease = atoll(env_get(&a->place.env, "BURST_LEASE_S", "0"));
	CLEANUP(free_text) char *file = xasprintf("%s/born", a->place.home);
	CLEANUP(str_free) struct str text = {0};
	if (late > 0 && read_file(file, 40, &text) == 0 && text.len)
		end = MAX(end, MIN((int64_t)atoll(text.s) + late, end + lease));
	return end;
}

void lease_read(struct agent *a)
{
	a->hard_end_s = atoll(env_get(&a->place.env, "BURST_HARD_END", "0"));
	a->life_s = a->hard_end_s ? MAX(a->hard_end_s - (int64_t)time(NULL), (int64_t)1) : 0;
	int64_t first = atoll(env_get(&a->place.env, "BURST_FIRST_LEASE_END", "0"));
	if (!first)
		first = a->hard_end_s ? a->hard_end_s : time(NULL) + 600;
	a->lease_end_up_s = uptime_s() + first_lease_end(a, first) - time(NULL);
	char *file = xasprintf("%s/lease", a->place.home), who[64];
	CLEANUP(str_free) struct str text = {0};
	long long wall, up;
	if (read_file(file, 200, &text) == 0 && text.len &&
	    sscanf(text.s, "%63s %lld %lld", who, &wall, &up) == 3 && !strcmp(who, a->attempt) &&
	    wall > 0 && wall < 1ll << 40)
		a->lease_end_up_s = MIN((int64_t)up, uptime_s() + (int64_t)wall - time(NULL));
	free(file);
}

void lease_report(struct agent *a)
{
	js_int(notice_begin(a, "lease"), "left_s", lease_left_s(a));
	notice_end(a);
}
