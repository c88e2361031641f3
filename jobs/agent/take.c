/* take.c - copies trees between the volume and the container's disk, and compares them with their
 * id. */
#include "take.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "files.h"
#include "moving.h"
#include "packed.h"

static enum taken taken_of(int moved)
{
	return moved == MOVED ? TAKEN : moved == MOVED_CHANGED ? TAKEN_CHANGED : TAKEN_FAILED;
}

enum taken open_listed(int root, const char *path, const char *id, int *from, struct listing *l)
{
	*from = open_folder(root, path, false);
	if (*from >= 0 && listing_read(l, *from, id) == 0)
		return TAKEN;
	int saved = errno;
	close_fd(from);
	errno = saved;
	return saved == EBADMSG || saved == ELOOP || saved == ENOTDIR ? TAKEN_CHANGED
	       : saved == ENOENT                                      ? TAKEN_MISSING
								      : TAKEN_FAILED;
}

enum taken tree_take(int root, const char *path, const char *id, int to, const char *name)
{
	struct listing l;
	int from;
	enum taken result = open_listed(root, path, id, &from, &l);
	if (result != TAKEN)
		return result;
	char *temp = xasprintf(".%s.%d", name, getpid());
	remove_at(to, temp);
	int dir = mkdirat(to, temp, 0755) < 0
			  ? -1
			  : openat(to, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	result = TAKEN_FAILED;
	if (dir >= 0 && listing_frame(&l, dir) == 0)
		result = taken_of(moving_wide((struct moving){.l = &l, .from = from, .to = dir}));
	if (result == TAKEN && renameat(to, temp, to, name) < 0)
		result = TAKEN_FAILED;
	int saved = errno;
	remove_at(to, temp);
	close_fd(&dir);
	close_fd(&from);
	listing_free(&l);
	free(temp);
	errno = saved;
	return result;
}

enum taken tree_compare(int root, const char *path, const char *id)
{
	struct listing l;
	int from;
	enum taken result = open_listed(root, path, id, &from, &l);
	if (result != TAKEN)
		return result;
	result = taken_of(moving_wide((struct moving){.l = &l, .from = from, .to = -1}));
	int saved = errno;
	close_fd(&from);
	listing_free(&l);
	errno = saved;
	return result;
}

int tree_keep(int from, uid_t owner, int root, const char *under, const char *name, char id[65],
	      char bad[PATH_BYTES_MAX], char *no_archive)
{
	struct listing l = {0};
	bad[0] = 0;
	if (listing_walk(&l, from, bad) < 0)
		return listing_free(&l), -1;
	bad[0] = 0;
	listing_sort(&l);
	size_t room = (l.count + 1) * 65;
	char(*hashes)[65] =
		mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int to = open_folder(root, under, true);
	char *temp = xasprintf(".kept.%ld.%d", (long)time(NULL), getpid());
	int dir = to < 0 || mkdirat(to, temp, 0755) < 0
			  ? -1
			  : openat(to, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int failed = hashes == MAP_FAILED || dir < 0 || listing_frame(&l, dir) < 0;
	if (!failed)
		failed = moving_wide((struct moving){.l = &l,
						     .from = from,
						     .to = dir,
						     .hashes = hashes,
						     .owner = owner}) != MOVED;
	for (size_t i = 0; !failed && i < l.count; i++)
		if (l.list[i].type == 'f' || l.list[i].type == 'x')
			memcpy(l.list[i].sha256, hashes[i], 65);
	if (!failed) {
		listing_id(&l, id);
		failed = listing_write(&l, dir) < 0;
		if (!failed && no_archive)
			archive_write(&l, from, dir, no_archive);
		failed = failed || syncfs(dir) < 0;
	}
	if (!failed && renameat(to, temp, to, name ? name : id) < 0)
		failed = name != NULL || (errno != EEXIST && errno != ENOTEMPTY);
	int saved = errno;
	if (to >= 0)
		remove_at(to, temp);
	if (hashes != MAP_FAILED)
		munmap(hashes, room);
	close_fd(&dir);
	close_fd(&to);
	listing_free(&l);
	free(temp);
	errno = saved;
	return failed ? -1 : 0;
}
