/* disk.c - the folders that `serve` works in. */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "bounds.h"
#include "env.h"
#include "files.h"
#include "machine.h"
#include "users.h"

bool run_folder(struct agent *a)
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

bool serve_folder(struct agent *a)
{
	mkdirs(a->place.volume, 0755);
	a->volume_fd = open(a->place.volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return run_folder(a);
}

static bool is_container(const struct agent *a)
{
	return env_is_container(&a->place.env) || !strcmp(a->place.home, "/run/burst");
}

/* Chooses the folder for workers: $BURST_HOME if it is suitable, else the container's disk. A pod
 * that is only a group of processes on a user's machine always uses $BURST_HOME. */
static char *disk_find(const struct agent *a)
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

void serve_disk(struct agent *a)
{
	static const struct {
		const char *name;
		uid_t uid;
		mode_t mode;
	} folders[] = {{"out", WORKER_UID, 0755},
		       {"home", WORKER_UID, 0700},
		       {"setup-home", SETUP_UID, 0700}};
	a->disk = disk_find(a);
	a->out_dir = xasprintf("%s/work/out", a->disk);
	a->disk_fd = open(a->disk, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->disk_fd < 0)
		return;
	remove_at(a->disk_fd, "work");
	remove_at(a->disk_fd, "tree");
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
	groups_find(a);
	a->separate = can_separate(a);
	if (a->separate) {
		struct stat st;
		chmod(a->place.home, 0711);
		/* environments are below this folder; a user who can write to it could replace one
		 */
		if (a->volume_fd >= 0 && fstat(a->volume_fd, &st) == 0 && (st.st_mode & 03) != 01)
			fchmod(a->volume_fd, ((st.st_mode & 07777) | 0111) & ~02u);
		passwd_add(a);
		return;
	}
	for (size_t i = 0; geteuid() == 0 && i < ARRAY_LEN(folders); i++) {
		char *path = work_path(a, folders[i].name);
		if (lchown(path, 0, 0) < 0)
			errno = 0;
		free(path);
	}
}

void serve_env(struct agent *a)
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
	remove_inside(dup(fd));
	fchmod(fd, 0755);
	a->env_fd = fd;
	a->env_root = root;
}
