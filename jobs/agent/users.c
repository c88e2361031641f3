/* users.c - the users of workers and scripts, and their environment. */
#include "users.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "bounds.h"
#include "files.h"

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

void env_user(const struct agent *a, struct env *env, uid_t uid)
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
	char *home = xasprintf("%s/work/%s", a->disk, uid == SETUP_UID ? "setup-home" : "home");
	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		env_unset(env, roots[i]);
	env_set(env, "HOME", home);
	env_set(env, "USER", uid == SETUP_UID ? "burst-setup" : "burst-worker");
	env_set(env, "LOGNAME", uid == SETUP_UID ? "burst-setup" : "burst-worker");
	free(home);
}

void worker_env(struct agent *a, struct env *env, int w)
{
	char number[24];
	env_user(a, env, a->worker_root ? 0 : WORKER_UID);
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

/* Joins the group that owns a device. In a container made by burst, where only root's group owns
 * it, opens it to every user. */
static void group_of_device(struct agent *a, int dir, const char *name)
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

void groups_find(struct agent *a)
{
	static const struct {
		const char *dir, *prefix;
	} places[] = {
		{"/dev", "nvidia"}, {"/dev", "kfd"}, {"/dev/dri", ""}, {"/dev/nvidia-caps", ""}};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		DIR *d = opendir(places[i].dir);
		struct dirent *e;
		while (d && (e = readdir(d)))
			if (!strncmp(e->d_name, places[i].prefix, strlen(places[i].prefix)))
				group_of_device(a, dirfd(d), e->d_name);
		if (d)
			closedir(d);
	}
}

void passwd_add(struct agent *a)
{
	static const struct {
		uid_t uid;
		const char *name, *home;
	} users[] = {{WORKER_UID, "burst-worker", "home"},
		     {SETUP_UID, "burst-setup", "setup-home"}};
	struct str text = {0};
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
	str_free(&text);
}

bool can_separate(struct agent *a)
{
	int status = 1;
	char *home = work_path(a, "home");
	pid_t pid = geteuid() ? -1 : fork();
	if (pid == 0) {
		if (child_switch(a, WORKER_UID) < 0 || chdir(a->out_dir) < 0 ||
		    mkdir(".probe", 0700) < 0 || rmdir(".probe") < 0 || access(home, W_OK) < 0)
			_exit(1);
		_exit(0);
	}
	free(home);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}
