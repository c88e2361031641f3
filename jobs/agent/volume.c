/* volume.c - `copy`, `ls` and `rm`: folders of the volume. */
#include "volume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "copy.h"
#include "files.h"
#include "json.h"
#include "place.h"
#include "take.h"
#include "walk.h"

int agent_copy(const char *path, const char *to)
{
	struct place place = {0};
	const char *id = strrchr(path, '/');
	place_load(&place);
	umask(022);
	/* the folder may allow entry but no listing */
	int volume = open(place.volume, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int into = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC), tree = -1;
	char *temp = xasprintf(".burst-copy.%d", getpid());
	enum taken taken = volume < 0 || into < 0 ? TAKEN_FAILED
			   : !path_is_safe(path) || !id || !sha256_is_hex(id + 1)
				   ? TAKEN_MISSING
				   : tree_take(volume, path, id + 1, into, temp);
	if (taken == TAKEN &&
	    ((tree = openat(into, temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	     move_over(tree, into) < 0))
		taken = TAKEN_FAILED;
	if (taken != TAKEN)
		fprintf(stderr, "burst-agent: copy: %s: %s\n", path,
			taken == TAKEN_MISSING   ? "it is not there"
			: taken == TAKEN_CHANGED ? "it is not what was put there"
						 : strerror(errno));
	if (into >= 0)
		remove_at(into, temp);
	close_fd(&tree);
	close_fd(&into);
	close_fd(&volume);
	free(temp);
	place_free(&place);
	return taken == TAKEN ? 0 : 1;
}

struct weight {
	int64_t bytes, files;
};

static enum walk_step weigh(void *ctx, const struct walked *w)
{
	struct weight *sum = ctx;
	struct stat st;
	if (fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return WALK_ON;
	if (S_ISDIR(st.st_mode))
		return WALK_INTO;
	sum->bytes += st.st_size;
	sum->files++;
	return WALK_ON;
}

int agent_ls(const char *path)
{
	struct place place = {0};
	place_load(&place);
	char *full = on_volume(&place, path);
	DIR *d = opendir(full);
	struct dirent *e;
	if (!d)
		fprintf(stderr, "burst-agent: ls: %s: %s\n", path, strerror(errno));
	while (d && (e = readdir(d))) {
		struct stat st;
		struct weight sum = {0};
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		struct walked top = {.dir = dirfd(d), .name = e->d_name};
		int fd = weigh(&sum, &top) == WALK_INTO ? open_folder(dirfd(d), e->d_name, false)
							: -1;
		if (fd >= 0)
			walk_tree(fd, -1, weigh, &sum);
		close_fd(&fd);
		struct str b = {0};
		str_addc(&b, '{');
		js_text(&b, "name", e->d_name);
		js_bool(&b, "folder", S_ISDIR(st.st_mode));
		js_int(&b, "bytes", sum.bytes);
		js_int(&b, "files", sum.files);
		js_int(&b, "changed_s", st.st_mtim.tv_sec);
		printf("%s}\n", b.s);
		str_free(&b);
	}
	int failed = !d;
	if (d)
		closedir(d);
	free(full);
	place_free(&place);
	return failed;
}

/* Renames a tree or an environment before removing its contents, so that it is always complete
 * under its own name. After an interruption its new name marks it as half built, and the next
 * cleanup removes it. */
static int remove_whole(int dir, const char *path, const char *name)
{
	struct stat st;
	char *aside = xasprintf(".%s.gone.%d", name, getpid());
	bool moves = (!strncmp(path, "code/", 5) || !strncmp(path, "env/", 4)) && name[0] != '.' &&
		     fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		     renameat(dir, name, dir, aside) == 0;
	int failed = remove_at(dir, moves ? aside : name);
	int saved = errno;
	free(aside);
	errno = saved;
	return failed;
}

int agent_rm(int count, char **paths)
{
	struct place place = {0};
	int status = 0;
	place_load(&place);
	int root = open(place.volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < count; i++) {
		const char *name;
		int dir = root >= 0 && path_inside(paths[i])
				  ? open_parent(root, paths[i], false, &name)
				  : -1;
		bool gone = dir >= 0 ? remove_whole(dir, paths[i], name) == 0
				     : root >= 0 && path_inside(paths[i]) && errno == ENOENT;
		if (!gone) {
			fprintf(stderr, "burst-agent: rm: %s: %s\n", paths[i],
				path_inside(paths[i]) ? strerror(errno)
						      : "not a path below the volume");
			status = 1;
		}
		close_fd(&dir);
	}
	close_fd(&root);
	place_free(&place);
	return status;
}
