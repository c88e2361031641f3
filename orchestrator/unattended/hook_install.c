/* hook_install.c - installs a hook in git's folder and removes it.
 *
 * It links an earlier hook to NAME.before-burst before it renames burst's hook over it. At every
 * moment one of them exists, and a process that dies in between loses none. Removal renames the
 * earlier file back, with its mode and times. */
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "net/child.h"

void hook_target_free(struct hook_target *t)
{
	repo_free(&t->place);
	free(t->hooks);
	free(t->config);
	free(t->path);
}

struct folder_setting {
	char *path;
	bool own;
};

static void take_folder(void *ctx, const char *key, const char *value, bool own)
{
	struct folder_setting *set = ctx;

	(void)key;
	free(set->path);
	*set = (struct folder_setting){xstrdup(value), own};
}

/* core.hooksPath counts, as for git. */
int hook_find_folder(struct hook_target *t, struct err *err)
{
	const struct repo *r = &t->place;
	const char *base = r->top ? r->top : r->dir;
	struct folder_setting set = {0};
	char real[PATH_MAX];
	struct stat st;

	if (git_config_paths(r, "^core\\.hookspath$", take_folder, &set, err) < 0)
		return -1;
	CLEANUP(free_text)
	char *path = path_join(set.path ? base : r->common, set.path ? set.path : "hooks");
	bool named = set.path, own = !named || set.own; /* .git/hooks may be a link */
	free(set.path);
	t->hooks = xstrdup(realpath(path, real) ? real : path);
	bool blocked = stat(t->hooks, &st) == 0 && !S_ISDIR(st.st_mode); /* /dev/null */
	if (!own || blocked || path_is_below(t->hooks, base) || path_is_below(t->hooks, r->common))
		return 0;
	if (!named)
		return err_set(err, ERR_CONFIG,
			       "%s leads out of the repository, to %s: if it is yours, name that "
			       "folder with `git config --global core.hooksPath`",
			       path, t->hooks);
	return err_set(err, ERR_CONFIG,
		       "core.hooksPath in %s/config leads out of the repository, to %s: if it is "
		       "yours, set it with `git config --global`",
		       r->common, t->hooks);
}

static bool is_executable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int hook_read_state(const char *folder, const char *name, enum hook_state *state,
		    struct hook_file *out, struct str *text, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(folder, name);
	struct err why = {0};
	struct stat st;

	*out = (struct hook_file){0};
	*state = HOOK_NONE;
	if (lstat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	*state = is_executable(path) ? HOOK_FOREIGN : HOOK_INERT;
	if (path_read_plain(path, HOOK_FILE_MAX_BYTES, text, &why) < 0 ||
	    !hook_file_is_ours(str_text(text)))
		return 0; /* a program, or a link */
	if (hook_file_parse(out, str_text(text), err) < 0)
		return err_wrap(err, "%s", path);
	*state = HOOK_OURS;
	return 0;
}

static int failed(const char *what, const char *path, struct err *err)
{
	const char *hint = errno == EACCES || errno == EPERM || errno == EROFS
				   ? ": git's hooks folder must be writable"
			   : errno == ENOTDIR ? ": core.hooksPath must name a folder"
					      : "";

	return err_set(err, ERR_LOCAL, "cannot %s %s: %s%s", what, path, strerror(errno), hint);
}

/* ---- installing ---- */

static bool same_file(const char *a, const char *b)
{
	struct stat one, two;

	return lstat(a, &one) == 0 && lstat(b, &two) == 0 && one.st_dev == two.st_dev &&
	       one.st_ino == two.st_ino;
}

static bool same_bytes(const char *a, const char *b)
{
	CLEANUP(str_free) struct str one = STR_INIT;
	CLEANUP(str_free) struct str two = STR_INIT;

	return path_read_plain(a, HOOK_FILE_MAX_BYTES, &one, NULL) == 0 &&
	       path_read_plain(b, HOOK_FILE_MAX_BYTES, &two, NULL) == 0 && one.len == two.len &&
	       !memcmp(str_text(&one), str_text(&two), one.len);
}

/* Tools that own a hooks folder rewrite their hooks (husky: at each npm install). Without hard
 * links there is a moment without a hook. */
static int keep_before(const char *path, const char *before, struct err *err)
{
	if (same_file(path, before))
		return 0;
	if (same_bytes(path, before))
		unlink(before);
	if (link(path, before) == 0)
		return 0;
	if (errno == EEXIST)
		return err_set(err, ERR_CONFIG,
			       "%s and %s both exist: another program has replaced burst's "
			       "hook; keep the one that you want under the first name, remove "
			       "the other, and install again",
			       path, before);
	return rename(path, before) < 0 ? failed("rename", path, err) : 0;
}

static int write_hook(const char *path, const struct str *text, struct err *err)
{
	CLEANUP(free_text) char *temporary = xasprintf("%s.burst-%ld", path, (long)getpid());
	CLEANUP(fd_close) int fd = path_open_new(temporary, O_WRONLY, 0777);

	if (fd < 0)
		return failed("write", temporary, err);
	if (fd_write_all(fd, str_text(text), text->len) == 0 && fsync(fd) == 0 &&
	    rename(temporary, path) == 0)
		return 0;
	failed("write", path, err);
	unlink(temporary);
	return -1;
}

static int make_folder(const char *folder, bool *made, struct err *err)
{
	struct stat st;

	*made = false;
	if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	if (mkdir(folder, 0777) < 0) {
		errno = errno == EEXIST ? ENOTDIR : errno;
		return failed("make", folder, err);
	}
	*made = true;
	return 0;
}

/* Whether one of burst's hooks records that burst made this folder: then it made it for the others
 * too. */
static bool is_made_by_us(const char *folder)
{
	for (const char *const *name = hook_names; *name; name++) {
		CLEANUP(hook_file_free) struct hook_file f = {0};
		CLEANUP(str_free) struct str text = STR_INIT;
		enum hook_state state;
		if (hook_read_state(folder, *name, &state, &f, &text, NULL) == 0 && f.made_folder)
			return true;
	}
	return false;
}

int hook_install(const struct hook_target *t, const char *name, const struct hook_job *job,
		 struct err *err)
{
	const char *folder = t->hooks;
	CLEANUP(free_text) char *path = path_join(folder, name);
	CLEANUP(free_text) char *before = xasprintf("%s" HOOK_BEFORE, path);
	CLEANUP(hook_file_free) struct hook_file f = {0};
	CLEANUP(str_free) struct str old = STR_INIT;
	CLEANUP(str_free) struct str text = STR_INIT;
	enum hook_state state;
	bool made;

	if (make_folder(folder, &made, err) < 0 ||
	    hook_read_state(folder, name, &state, &f, &old, err) < 0)
		return -1;
	if (state == HOOK_INERT)
		return err_set(err, ERR_CONFIG,
			       "%s exists but is not executable, so git does not run it; "
			       "nothing was installed: make it executable or remove it, and "
			       "install again",
			       path);
	f.made_folder = f.made_folder || made || is_made_by_us(folder);
	hook_file_put(&f, job);
	if (hook_file_write(&text, &f, name, child_self(), err) < 0 ||
	    (state == HOOK_FOREIGN && keep_before(path, before, err) < 0))
		return -1;
	if (state == HOOK_OURS && is_executable(path) && !strcmp(str_text(&old), str_text(&text)))
		return 0;
	return write_hook(path, &text, err);
}

/* ---- removing ---- */

static int restore_before(const char *path, const char *before, struct err *err)
{
	if (rename(before, path) == 0)
		return 0;
	if (errno != ENOENT)
		return failed("rename", before, err);
	return unlink(path) < 0 ? failed("remove", path, err) : 0;
}

int hook_remove(struct hook_target *t, const char *name, const char *config, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(t->hooks, name);
	CLEANUP(free_text) char *before = xasprintf("%s" HOOK_BEFORE, path);
	CLEANUP(hook_file_free) struct hook_file f = {0};
	CLEANUP(str_free) struct str text = STR_INIT;
	enum hook_state state;

	if (hook_read_state(t->hooks, name, &state, &f, &text, err) < 0)
		return -1;
	if (state != HOOK_OURS && same_file(path, before))
		unlink(before); /* left by an interrupted installation */
	const struct hook_job *job =
		state == HOOK_OURS && config ? hook_file_find(&f, t->place.common, config) : NULL;
	t->made_tree = t->made_tree || (job && job->made_tree);
	if (state != HOOK_OURS || !hook_file_remove(&f, t->place.common, config))
		return 0;
	str_reset(&text);
	if (!f.count) {
		if (restore_before(path, before, err) < 0)
			return -1;
		if (f.made_folder)
			rmdir(t->hooks); /* fails while the folder holds another hook */
		return 1;
	}
	if (hook_file_write(&text, &f, name, child_self(), err) < 0 ||
	    write_hook(path, &text, err) < 0)
		return -1;
	return 1;
}
