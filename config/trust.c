#include "trust.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "places.h"
#include "secrets.h"

/* Takes the last part off a path; false when there is none left. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || (slash == path && !path[1]))
		return false;
	slash[slash == path] = '\0';
	return true;
}

/* "/a/./b//../c" is "/a/c". */
static char *plain(const char *path)
{
	char *out = xstrdup("/");

	for (const char *part = path; *part;) {
		size_t len = strcspn(part, "/");
		bool stay = !len || (len == 1 && part[0] == '.'), up = len == 2 && part[0] == '.' && part[1] == '.';
		if (up)
			go_up(out);
		if (!stay && !up) {
			char *longer = xasprintf("%s%s%.*s", out, out[1] ? "/" : "", (int)len, part);
			free(out);
			out = longer;
		}
		part += len + (part[len] == '/');
	}
	return out;
}

/* Where it really is, links followed; of what is not there yet, where it would be made. */
static char *real_place(const char *path)
{
	char real[PATH_MAX];
	CLEANUP(free_text) char *there = xstrdup(path);

	while (!realpath(there, real))
		if (!go_up(there))
			return plain(path);
	CLEANUP(free_text) char *whole = xasprintf("%s/%s", real, path + strlen(there));
	return plain(whole);
}

static bool is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return !strcmp(folder, "/") || (!strncmp(path, folder, len) && (!path[len] || path[len] == '/'));
}

/* The folder of the repository that the project lies in, else its own. A repository of the whole home folder is none of a
 * project's. */
static char *project_root(const char *project, const char *home)
{
	CLEANUP(free_text) char *at = xstrdup(project);

	do {
		CLEANUP(free_text) char *git = path_join(at, ".git");
		if (home && is_below(home, at))
			break;
		if (path_exists(git))
			return TAKE(at);
	} while (go_up(at));
	return xstrdup(project);
}

static bool same_place(const char *a, const struct stat *b)
{
	struct stat st;

	return stat(a, &st) == 0 && st.st_dev == b->st_dev && st.st_ino == b->st_ino;
}

bool trust_is_below(const char *real, const char *folder)
{
	CLEANUP(free_text) char *place = real_place(folder);
	CLEANUP(free_text) char *at = xstrdup(real);
	struct stat st;

	if (is_below(real, place))
		return true;
	if (stat(place, &st) < 0)
		return false;
	do {
		if (same_place(at, &st))
			return true;
	} while (go_up(at));
	return false;
}

char *trust_root(const char *project)
{
	CLEANUP(free_text) char *named_home = places_home();
	CLEANUP(free_text) char *home = named_home ? real_place(named_home) : NULL;

	return project_root(project, home);
}

/* "~/.ssh", unless the project itself lies there. */
static bool is_hidden(const char *path, const char *home, const char *project)
{
	size_t len = strlen(home);

	if (!is_below(path, home) || len < 2)
		return false;
	for (const char *part = path + len; *part == '/'; part += 1 + strcspn(part + 1, "/")) {
		CLEANUP(free_text) char *upto = xstrndup(path, (size_t)(part - path) + 1 + strcspn(part + 1, "/"));
		if (part[1] == '.' && !is_below(project, upto))
			return true;
	}
	return false;
}

static bool is_systems(const char *path, bool written)
{
	static const char *const folders[] = {"/etc", "/proc", "/sys", "/dev", "/boot"};
	static const char *const programs[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/var/spool", "/var/lib"};

	if (is_below(path, "/dev/shm"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (is_below(path, folders[i]))
			return true;
	for (size_t i = 0; written && i < ARRAY_LEN(programs); i++)
		if (is_below(path, programs[i]))
			return true;
	return false;
}

static const char *why_not(const char *path, const char *home, const char *root, const char *project, bool written)
{
	if (!strcmp(path, "/"))
		return "is the whole disk";
	if (written && path_in_git_folder(path + 1) && !path_in_git_folder(project + 1))
		return "is git's own folder";
	bool inside = is_below(path, root);
	if (home && !(inside && !is_below(home, root)) && is_hidden(path, home, project))
		return "is hidden in your home folder";
	if (inside)
		return NULL;
	if (home && is_below(home, path))
		return !strcmp(home, path) ? "is your home folder" : "has your home folder in it";
	return is_systems(path, written) ? "is the system's" : NULL;
}

int trust_path(const char *key, const char *path, bool written, const char *project, const char *where, struct err *err)
{
	CLEANUP(free_text) char *named_home = places_home();
	CLEANUP(free_text) char *home = named_home ? real_place(named_home) : NULL;
	CLEANUP(free_text) char *real = real_place(path);
	CLEANUP(free_text) char *root = project_root(project, home);
	const char *why = why_not(real, home, root, project, written);

	if (why && written)
		return err_set(err, ERR_CONFIG, "%s %s (%.200s): a project may not write there; if you want it, name another with --output",
			       key, why, real);
	if (why)
		return err_set(err, ERR_CONFIG, "%s %s (%.200s): a project may not send that to pods", key, why, real);
	if (home && !written && !strcmp(home, real))
		log_line(LOG_WARN, "%s: %s is your home folder: all of it travels to the pods", where, key);
	else if (!is_below(real, root))
		log_line(LOG_NOTE, "%s: %s leads out of the project: %s %s", where, key, real,
			 written ? "is written to" : "travels to the pods");
	return 0;
}

static bool is_key_of(const char *name, const struct provider_ops *ops)
{
	for (const struct option_spec *spec = ops->options; spec->key; spec++) {
		CLEANUP(free_text) char *variable = secret_env_name(ops->name, spec->key);
		if ((spec->flags & OPTION_SECRET) && !strcmp(name, variable))
			return true;
	}
	return false;
}

int trust_env(const char *path, const struct section *s, const char *key, const struct provider_ops *const *providers,
	      struct err *err)
{
	for (size_t i = 0; i < section_count(s, key); i++)
		for (const struct provider_ops *const *p = providers; *p; p++)
			if (is_key_of(section_item(s, key, i), *p))
				return err_set(err, ERR_CONFIG,
					       "%s: %s%s: %s is a key of your account at %s: it does not travel to pods",
					       section_where(s, key), path, key, section_item(s, key, i), (*p)->name);
	return 0;
}
