/* files.c - volumes of the local provider: folders of this machine. */
#include "vendor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

enum { COPY_BYTES = 256 * 1024, NAME_MOST = 63, BLOCK_BYTES = 512 /* of st_blocks */ };

/* Letters, digits, '.', '_', '-'; not first a '.' or '-': the name is a folder's. */
static bool is_volume_name(const char *name)
{
	size_t len = strlen(name);

	return len && len <= NAME_MOST && name[0] != '.' && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       len;
}

/* A new string. NULL with *err: not the name of a volume. */
static char *volume_path(const struct store *store, const char *name, struct err *err)
{
	if (is_volume_name(name))
		return path_join(store->volumes, name);
	err_set(err, ERR_CONFIG,
		"a volume's name may have only letters, digits, '.', '_' and '-', at most 63");
	return NULL;
}

int volume_ensure(const struct store *store, const char *name, enum volume_missing missing,
		  struct err *err)
{
	CLEANUP(free_text) char *path = volume_path(store, name, err);
	struct stat st;

	if (!path)
		return -1;
	if (lstat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? 0
					   : err_set(err, ERR_LOCAL, "%s: is not a folder", path);
	if (missing == VOLUME_MUST_EXIST)
		return err_set(err, ERR_NOT_FOUND, "no such volume: %s", name);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	return 0;
}

int volume_remove(const struct store *store, const char *name, struct err *err)
{
	CLEANUP(free_text) char *path = volume_path(store, name, err);

	if (!path || volume_ensure(store, name, VOLUME_MUST_EXIST, err) < 0)
		return -1;
	/* rename first: an interrupted removal leaves no partial volume; '.' hides it */
	CLEANUP(free_text) char *trash = xasprintf("%s/.removed-%s", store->volumes, name);
	if (record_remove_tree(trash, err) < 0)
		return -1;
	if (rename(path, trash) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	return record_remove_tree(trash, err);
}

/* ---- one file ---- */

/* Gives a file the owner of its folder: a pod's root may own the volume. */
static int give_to_owner_of(int parent, int fd, struct err *err)
{
	struct stat st;

	if (geteuid() != 0 || (fstat(parent, &st) == 0 && fchown(fd, st.st_uid, st.st_gid) == 0))
		return 0;
	return err_set(err, ERR_LOCAL, "owner: %s", strerror(errno));
}

static int make_folder_if_missing(int parent, const char *name, struct err *err)
{
	if (mkdirat(parent, name, 0755) < 0)
		return 0; /* it exists, or the open fails */
	CLEANUP(fd_close)
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? 0 : give_to_owner_of(parent, fd, err);
}

/* Opens the folder that has path's last part, which *last then is, within path. Makes missing
 * folders if wanted. Returns a descriptor, or -1. */
static int open_folder(const struct store *store, const char *name, const char *path,
		       enum volume_missing missing, const char **last, struct err *err)
{
	CLEANUP(free_text) char *top = volume_path(store, name, err);

	if (!top)
		return -1;
	if (!path_is_safe(path))
		return err_set(err, ERR_REFUSED, "not a safe path on a volume");
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *slash;
	while (fd >= 0 && (slash = strchr(path, '/'))) {
		CLEANUP(free_text) char *part = xstrndup(path, (size_t)(slash - path));
		if (missing == VOLUME_MAKE_MISSING && make_folder_if_missing(fd, part, err) < 0) {
			close(fd);
			return -1;
		}
		int next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int why = errno;
		close(fd);
		errno = why;
		fd = next;
		path = slash + 1;
	}
	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL,
			       "volume %s: %s: %s", name, path, strerror(errno));
	*last = path;
	return fd;
}

/* Copies to the end, or max bytes (0: no limit). */
static int copy_bytes(int from, int to, int64_t max, int64_t *moved, struct err *err)
{
	CLEANUP(free_text) char *buf = xmalloc(COPY_BYTES);

	*moved = 0;
	while (!max || *moved < max) {
		size_t want = max ? (size_t)MIN((int64_t)COPY_BYTES, max - *moved) : COPY_BYTES;
		ssize_t n = read(from, buf, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, ERR_LOCAL, "reading: %s", strerror(errno));
		if (n == 0)
			break;
		if (fd_write_all(to, buf, (size_t)n) < 0)
			return err_set(err, ERR_LOCAL, "writing: %s", strerror(errno));
		*moved += n;
	}
	return 0;
}

/* Writes stdin to dir/temp, syncs, and renames to dir/last. After an error temp may be left. */
static int write_and_rename(int dir, const char *temp, const char *last, int64_t least, int64_t max,
			    int64_t *moved, struct err *err)
{
	CLEANUP(fd_close)
	int fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", temp, strerror(errno));
	if (give_to_owner_of(dir, fd, err) < 0 ||
	    copy_bytes(STDIN_FILENO, fd, max ? max + 1 : 0, moved, err) < 0)
		return -1;
	if (max && *moved > max)
		return err_set(err, ERR_REFUSED, "more than %lld bytes", (long long)max);
	if (*moved < least)
		return err_set(err, ERR_TRANSIENT, "the input ended after %lld of %lld bytes",
			       (long long)*moved, (long long)least);
	if (fsync(fd) < 0 || renameat(dir, temp, dir, last) < 0 ||
	    (fsync(dir) < 0 && errno != EINVAL))
		return err_set(err, ERR_LOCAL, "%s: %s", last, strerror(errno));
	return 0;
}

int volume_stage(const struct store *store, const char *name, const char *path, int64_t least,
		 int64_t max, int64_t *moved, struct err *err)
{
	const char *last;
	CLEANUP(fd_close) int dir = open_folder(store, name, path, VOLUME_MAKE_MISSING, &last, err);
	CLEANUP(free_text) char *temp = xasprintf(".burst-stage-%ld", (long)getpid());

	if (dir < 0)
		return -1;
	unlinkat(dir, temp, 0); /* left by a dead process with our pid */
	if (write_and_rename(dir, temp, last, least, max, moved, err) == 0)
		return 0;
	unlinkat(dir, temp, 0);
	return err_wrap(err, "volume %s: %s", name, path);
}

int volume_fetch(const struct store *store, const char *name, const char *path, int64_t offset,
		 int64_t max, int64_t *moved, struct err *err)
{
	const char *last;
	CLEANUP(fd_close) int dir = open_folder(store, name, path, VOLUME_MUST_EXIST, &last, err);
	struct stat st;

	if (dir < 0)
		return -1;
	/* do not block: a pod may have left a fifo under this name */
	CLEANUP(fd_close)
	int fd = openat(dir, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL,
			       "volume %s: %s: %s", name, path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_UNTRUSTED, "volume %s: %s: is not a regular file", name,
			       path);
	if (lseek(fd, offset, SEEK_SET) < 0)
		return err_set(err, ERR_LOCAL, "volume %s: %s: %s", name, path, strerror(errno));
	if (copy_bytes(fd, STDOUT_FILENO, max, moved, err) < 0)
		return err_wrap(err, "volume %s: %s", name, path);
	return 0;
}

/* ---- tidying ---- */

/* Deeper files count as nothing: a pod can nest folders without end. */
enum { DEPTH_MAX = 64 };

struct sum {
	int64_t bytes, files, changed_s;
};

static void count_entry(int parent, const char *name, int depth, struct sum *sum);

/* Adds all in the folder fd to *sum, and closes fd. Unreadable folders count as nothing. */
static void count_folder(int fd, int depth, struct sum *sum)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		fd_close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			count_entry(dirfd(dir), entry->d_name, depth, sum);
	closedir(dir);
}

/* Adds an entry, and all below it, to *sum. Uses ctime: an unpacked file keeps its old mtime. */
static void count_entry(int parent, const char *name, int depth, struct sum *sum)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	sum->bytes += (int64_t)st.st_blocks * BLOCK_BYTES;
	sum->changed_s = MAX(sum->changed_s, (int64_t)st.st_ctim.tv_sec);
	if (!S_ISDIR(st.st_mode))
		sum->files++;
	else if (depth < DEPTH_MAX)
		count_folder(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
			     depth + 1, sum);
}

json_t *volume_list(const struct store *store)
{
	DIR *dir = opendir(store->volumes);
	json_t *list = json_array();
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		struct sum sum = {0};
		if (!is_volume_name(entry->d_name))
			continue;
		count_entry(dirfd(dir), entry->d_name, 0, &sum);
		json_array_append_new(list, json_pack("{s:s, s:I}", "name", entry->d_name,
						      "used_bytes", (json_int_t)sum.bytes));
	}
	if (dir)
		closedir(dir);
	return list;
}

/* One element of volume_measure_folder(). NULL: it is gone, or JSON cannot hold its name. */
static json_t *measure_entry(int dir, const char *name)
{
	struct sum sum = {0};
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return NULL;
	count_entry(dir, name, 0, &sum);
	return json_pack("{s:s, s:b, s:I, s:I, s:I}", "name", name, "folder", S_ISDIR(st.st_mode),
			 "bytes", (json_int_t)sum.bytes, "files", (json_int_t)sum.files,
			 "changed_s", (json_int_t)sum.changed_s);
}

int volume_measure_folder(const struct store *store, const char *name, const char *path,
			  json_t **out, struct err *err)
{
	const char *last;
	CLEANUP(fd_close)
	int parent = open_folder(store, name, path, VOLUME_MUST_EXIST, &last, err);
	struct dirent *entry;

	if (parent < 0)
		return -1;
	int fd = openat(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL,
			       "volume %s: %s: %s", name, path, strerror(errno));
	*out = json_array();
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			json_array_append_new(*out, measure_entry(fd, entry->d_name));
	closedir(dir);
	return 0;
}

/* Removes parent/last. Moves it out of the volume first, so that no pod can replace a part by a
 * link. The next removal finishes an interrupted one. */
static int remove_by_renaming(const struct store *store, const char *name, int parent,
			      const char *last, struct err *err)
{
	CLEANUP(free_text) char *trash = xasprintf("%s/.removed-%s", store->volumes, name);
	CLEANUP(free_text) char *to = xasprintf("%s/%ld", trash, (long)getpid());
	CLEANUP(fd_close)
	int folder = openat(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder >= 0)
		(void)fchmod(folder, 0700); /* a folder must be writable to be moved */
	if (path_mkdirs(trash, 0700, err) < 0)
		return -1;
	if (renameat(parent, last, AT_FDCWD, to) < 0 && errno != ENOENT)
		return err_set(err, ERR_LOCAL, "%s", strerror(errno));
	return record_remove_tree(trash, err);
}

int volume_delete(const struct store *store, const char *name, const char *path, struct err *err)
{
	const char *last;
	CLEANUP(fd_close)
	int parent = open_folder(store, name, path, VOLUME_MUST_EXIST, &last, err);

	if (parent < 0 && err->kind == ERR_NOT_FOUND &&
	    volume_ensure(store, name, VOLUME_MUST_EXIST, err) == 0) {
		err_clear(err);
		return 0;
	}
	if (parent < 0)
		return -1;
	if (remove_by_renaming(store, name, parent, last, err) < 0)
		return err_wrap(err, "volume %s: %s", name, path);
	return 0;
}
