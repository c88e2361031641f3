/* bring.c - brings what `start` names from the volume to the container's disk, in a child. */
#include "bring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "files.h"
#include "image.h"
#include "json.h"
#include "machine.h"
#include "packed.h"
#include "take.h"
#include "unpack.h"

enum { RESULT_MAX = 400 };

/* Moves what `path` names to the folder `to`. Returns false if that failed, after printing why.
 * An empty path is nothing to move. */
static bool start_take(struct agent *a, int to, const char *what, const char *path)
{
	const char *id = strrchr(path, '/');
	if (!*path)
		return true;
	enum taken taken = !id || !path_is_safe(path) || !sha256_is_hex(id + 1)
				   ? TAKEN_MISSING
				   : tree_take(a->volume_fd, path, id + 1, to, id + 1);
	if (taken == TAKEN)
		return true;
	printf("%s %s", what,
	       taken == TAKEN_MISSING   ? "is missing"
	       : taken == TAKEN_CHANGED ? "is not what was put there"
					: strerror(errno));
	/* a kept tree of the same name would pass for an intact one */
	if (taken == TAKEN_CHANGED || taken == TAKEN_MISSING)
		set_aside(a->volume_fd, path);
	return false;
}

/* Checks that the image has what the environment links to: .burst-needs names it in one line. */
static bool start_needs(const struct agent *a, const char *hash)
{
	char *path = env_path(a, hash), *file = xasprintf("%s/.burst-needs", path);
	struct str text = {0};
	bool fine = read_file(file, PATH_MAX, &text) < 0 || !text.len;
	if (!fine) {
		text.s[strcspn(text.s, "\n")] = 0;
		fine = access(text.s, F_OK) == 0;
	}
	str_free(&text);
	free(file);
	free(path);
	return fine;
}

/* Removes what an interrupted start left. */
static void env_tidy(const struct agent *a)
{
	DIR *d = fdopendir(openat(a->env_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	while (d && (e = readdir(d)))
		if (e->d_name[0] == '.' && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			remove_at(a->env_fd, e->d_name);
	if (d)
		closedir(d);
}

/* Unpacks an environment from its archive. result: "unpacked MS BYTES", or the reason for the log.
 */
static bool start_unpack(struct agent *a, const char *hash, const char *id, char result[RESULT_MAX])
{
	char why[WHY_MAX] = "it is in memory, or programs cannot run there";
	char *path = xasprintf("env/%s", hash),
	     *there = xasprintf("%s/env/%s", a->place.volume, hash);
	int64_t began_ms = clock_boot_ms(), bytes = 0;
	env_tidy(a);
	bool fits = disk_fits(a->env_root),
	     fine = fits &&
		    archive_take(a->volume_fd, path, there, id, a->env_fd, hash, &bytes, why) == 0;
	if (fine)
		snprintf(result, RESULT_MAX, "unpacked %lld %lld",
			 (long long)MAX(clock_boot_ms() - began_ms, (int64_t)1),
			 (long long)MAX(bytes, (int64_t)1));
	else
		snprintf(result, RESULT_MAX,
			 "in place\nthe environment is used from the volume, which may take "
			 "longer: %s%s",
			 fits ? "" : "the pod's disk: ", why);
	free(path);
	free(there);
	return fine;
}

/* Compares an environment that stays on the volume. Environments may hold their own path, so a
 * container gets a link to it on its disk. */
static bool start_use_in_place(struct agent *a, const char *hash, const char *id)
{
	char *path = xasprintf("env/%s", hash),
	     *there = xasprintf("%s/env/%s", a->place.volume, hash);
	enum taken taken = !name_safe(hash) || !sha256_is_hex(id)
				   ? TAKEN_MISSING
				   : tree_compare(a->volume_fd, path, id);
	bool fine = taken == TAKEN &&
		    (!a->env_root || symlinkat(there, a->env_fd, hash) == 0 || errno == EEXIST);
	if (!fine)
		printf("env %s", taken == TAKEN_MISSING   ? "is missing"
				 : taken == TAKEN_CHANGED ? "is not what was put there"
							  : strerror(errno));
	free(path);
	free(there);
	return fine;
}

/* Leaves an environment alone that this pod already uses: workers may be running from it. */
static bool start_bring(struct agent *a, const char *hash, const char *id, char result[RESULT_MAX])
{
	char *known = xasprintf("%s %s", hash, id);
	struct stat st;
	bool here = a->unpacked && !strcmp(a->unpacked, known);
	bool in_place = !a->env_root || !name_safe(hash) || !sha256_is_hex(id) ||
			fstatat(a->env_fd, hash, &st, AT_SYMLINK_NOFOLLOW) == 0;
	free(known);
	if (here)
		snprintf(result, RESULT_MAX, "unpacked");
	return here || (!in_place && start_unpack(a, hash, id, result)) ||
	       start_use_in_place(a, hash, id);
}

static bool start_env(struct agent *a, const char *hash, const char *id)
{
	char result[RESULT_MAX] = "";
	if (!start_bring(a, hash, id, result))
		return false;
	bool fine = start_needs(a, hash);
	printf("%s", fine ? result : "env needs packages that this image lacks");
	return fine;
}

int start_check(struct agent *a)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, a->task.op, strlen(a->task.op));
	const char *hash = json_text(op, "env_hash", ""), *id = json_text(op, "env_tree", ""),
		   *image = json_text(op, "env_image", "");
	char *dir = xasprintf("tree/%d", a->starts + 1);
	int to = open_folder(a->disk_fd, dir, true);
	bool fine = to >= 0;
	if (!fine)
		printf("disk %s", strerror(errno));
	fine = fine && start_take(a, to, "kit", json_text(op, "kit", "")) &&
	       start_take(a, to, "code", json_text(op, "code", ""));
	if (fine && *hash)
		fine = start_env(a, hash, id);
	if (fine && *image && !(fine = image_has(a, image)))
		printf("env is missing in this image");
	fflush(stdout);
	json_free(&doc);
	free(dir);
	close_fd(&to);
	return fine ? 0 : 1;
}
