/* foreign.c - finds files in an output folder that burst did not make and a run would overwrite. */
#include "foreign.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/pattern.h"

enum { DEPTH_MAX = 32 };

struct search {
	const char *dir;
	const char *const *patterns, *const *also;
	const struct manifest *manifest;
	char *foreign; /* the first foreign file; NULL: none yet */
	size_t more;   /* number of further ones */
};

static bool is_among(const char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

/* Whether a join keeps its record in this file, or left it when it was interrupted. */
static bool is_join_leftover(const char *path)
{
	return starts_with(path, ".joined.");
}

/* Records the file in *search if it is foreign. -1: it cannot be read. */
static int check_file(struct search *search, const char *path, struct err *err)
{
	const struct manifest_entry *entry;
	bool absent;

	if (!pattern_match_any(search->patterns, path) || !path_may_be_output(path) ||
	    is_join_leftover(path) || is_among(search->also, path))
		return 0;
	if (manifest_match(search->manifest, search->dir, path, NULL, &entry, &absent, err) < 0)
		return -1;
	if (!entry && !absent && search->foreign)
		search->more++;
	else if (!entry && !absent)
		search->foreign = xstrdup(path);
	return 0;
}

static int visit_folder(struct search *search, int folder, const char *below, int depth,
			struct err *err);

static int visit(struct search *search, int folder, const char *below, const char *name, int depth,
		 struct err *err)
{
	CLEANUP(free_text) char *path = *below ? xasprintf("%s/%s", below, name) : xstrdup(name);
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return check_file(search, path, err);
	int next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return next < 0 ? 0 : visit_folder(search, next, path, depth + 1, err);
}

/* Visits all files below an open folder, whose path is `below`, and closes its descriptor. */
static int visit_folder(struct search *search, int folder, const char *below, int depth,
			struct err *err)
{
	DIR *dir = depth <= DEPTH_MAX ? fdopendir(folder) : NULL;
	struct dirent *entry;
	int result = 0;

	while (dir && result == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			result = visit(search, folder, below, entry->d_name, depth, err);
	if (dir)
		closedir(dir);
	else
		fd_close(folder);
	return result;
}

int foreign_refuse(const char *dir, const char *name, size_t more, struct err *err)
{
	char others[40] = "";

	if (more)
		snprintf(others, sizeof(others), " (and %zu more)", more);
	return err_set(err, ERR_CONFIG,
		       "%s/%s is there%s and was not made by this job; use --force to overwrite, "
		       "or another output folder",
		       dir, name, others);
}

int foreign_check(const char *dir, const char *const *patterns, const struct manifest *m,
		  const char *const *also, struct err *err)
{
	struct search search = {.dir = dir, .patterns = patterns, .also = also, .manifest = m};
	int folder = path_open_dir(dir);
	int result = folder < 0 ? 0 : visit_folder(&search, folder, "", 0, err);
	CLEANUP(free_text) char *foreign = search.foreign;

	return result < 0 || !foreign ? result : foreign_refuse(dir, foreign, search.more, err);
}
