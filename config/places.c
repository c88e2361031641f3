/* places.c - finds the user's config file and the folders of burst's state and cache. */
#include "places.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/path.h"
#include "config.h"

char *config_user_file(void)
{
	CLEANUP(free_text) char *dir = home_xdg("XDG_CONFIG_HOME", ".config");

	return dir ? path_join(dir, "burst/burst.cfg") : NULL;
}

static char *state_path(struct err *err)
{
	const char *own = getenv("BURST_STATE_DIR");

	if (own && own[0] == '/')
		return xstrdup(own);
	if (own && own[0]) {
		err_set(err, ERR_CONFIG,
			"BURST_STATE_DIR is \"%.200s\": it must be an absolute path", own);
		return NULL;
	}
	CLEANUP(free_text) char *dir = home_xdg("XDG_STATE_HOME", ".local/state");
	if (!dir)
		err_set(err, ERR_LOCAL,
			"no home folder: set BURST_STATE_DIR to a folder for the ledger");
	return dir ? path_join(dir, "burst") : NULL;
}

char *places_state(void)
{
	struct err none;

	return state_path(&none);
}

char *config_renders_dir(void)
{
	const char *own = getenv("BURST_CACHE_DIR");

	if (own && own[0] == '/')
		return path_join(own, "renders");
	if (own)
		return NULL;
	CLEANUP(free_text) char *dir = home_xdg("XDG_CACHE_HOME", ".cache");
	return dir ? path_join(dir, "burst/renders") : NULL;
}

char *config_trees_dir(void)
{
	const char *own = getenv("BURST_CACHE_DIR");

	if (own && own[0] == '/')
		return path_join(own, "trees");
	CLEANUP(free_text) char *dir = home_xdg("XDG_CACHE_HOME", ".cache");
	return dir ? path_join(dir, "burst/trees") : NULL;
}

/* Refuses a folder that other users can write: they could make burst release pods, or lose track of
 * them. */
static int check_ours(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(
			err, ERR_LOCAL,
			"%s: belongs to another user; set BURST_STATE_DIR to your own folder",
			path);
	if (st.st_mode & S_IWOTH)
		return err_set(err, ERR_LOCAL, "%s: other users can write there: chmod 700 %s",
			       path, path);
	return 0;
}

char *config_state_dir(struct err *err)
{
	CLEANUP(free_text) char *path = state_path(err);

	if (!path || path_mkdirs(path, 0700, err) < 0 || check_ours(path, err) < 0)
		return NULL;
	return TAKE(path);
}
