/* git.c - finds the repository of a folder, runs the program git and reads its output */
#include "git.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guard.h"
#include "path.h"
#include "program.h"
#include "str.h"

/* ---- repo ---- */

enum { LINE_MAX_BYTES = 8192, CONFIG_MAX_BYTES = 1 << 20 };

void repo_free(struct repo *repo)
{
	free(repo->top);
	free(repo->dir);
	free(repo->common);
}

static char *real_path(const char *path)
{
	char real[PATH_MAX];

	return realpath(path, real) ? xstrdup(real) : NULL;
}

static bool is_folder(const char *dir, const char *name)
{
	CLEANUP(free_text) char *path = path_join(dir, name);
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The first line of a small plain file, without `label` before it. NULL: not such a file. */
static char *read_line(const char *dir, const char *name, const char *label)
{
	CLEANUP(free_text) char *path = path_join(dir, name);
	CLEANUP(str_free) struct str text = STR_INIT;

	if (path_read_plain(path, LINE_MAX_BYTES, &text, NULL) < 0 ||
	    !starts_with(str_text(&text), label))
		return NULL;
	const char *line = str_text(&text) + strlen(label);
	return xstrndup(line, strcspn(line, "\r\n"));
}

/* ---- which folders are git's own ---- */

/* Whether the folder has a HEAD that names a branch or a commit. */
static bool has_head(const char *dir)
{
	CLEANUP(free_text) char *path = path_join(dir, "HEAD");
	CLEANUP(free_text) char *line = read_line(dir, "HEAD", "");
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n > 0)
		return n > 5 && !memcmp(target, "refs/", 5);
	return line && (starts_with(line, "ref:") || isxdigit((unsigned char)line[0]));
}

static bool is_git_dir(const char *dir)
{
	CLEANUP(free_text) char *shared = read_line(dir, "commondir", "");
	CLEANUP(free_text) char *common = shared ? path_join(dir, shared) : xstrdup(dir);

	return has_head(dir) && is_folder(common, "objects") && is_folder(common, "refs");
}

/* Trusts this user, root, and the user who called sudo. */
static bool is_trusted_owner(uid_t owner)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;

	return owner == geteuid() || owner == 0 ||
	       (sudo && (uid_t)strtoul(sudo, NULL, 10) == owner);
}

static int check_owner(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_set(err, ERR_CONFIG, "%s: %m", path);
	if (is_trusted_owner(st.st_uid))
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s belongs to another user (%lu), who can change what git does: copy the "
		       "project, or change its owner",
		       path, (unsigned long)st.st_uid);
}

/* ---- .git that leads to another folder ---- */

/* Whether `dir` is git's folder of the linked working tree `top`: it lies in the repository's
 * worktrees/, and its gitdir names top/.git. *common: the repository's folder; the caller frees it.
 */
static bool is_worktree_dir(const char *dir, const char *top, char **common)
{
	CLEANUP(free_text) char *back = read_line(dir, "gitdir", "");
	CLEANUP(free_text) char *named = back ? path_join(dir, back) : NULL;
	CLEANUP(free_text) char *folder = named ? path_dir(named) : NULL;
	CLEANUP(free_text) char *real = folder ? real_path(folder) : NULL;
	CLEANUP(free_text) char *shared = read_line(dir, "commondir", "");
	CLEANUP(free_text) char *path = shared ? path_join(dir, shared) : NULL;
	CLEANUP(free_text) char *found = path ? real_path(path) : NULL;
	CLEANUP(free_text) char *trees = found ? path_join(found, "worktrees") : NULL;

	if (!real || strcmp(real, top) || strcmp(path_base(named), ".git") || !trees ||
	    !path_is_below(dir, trees))
		return false;
	*common = TAKE(found);
	return true;
}

/* Whether a line of the config in `dir` is `worktree = TOP`. */
static bool is_worktree_setting(const char *line, size_t len, const char *dir, const char *top)
{
	CLEANUP(free_text) char *text = xstrndup(line, len);
	char *at = text + strspn(text, " \t");

	if (strncasecmp(at, "worktree", 8))
		return false;
	at += 8;
	at += strspn(at, " \t");
	if (*at++ != '=')
		return false;
	at += strspn(at, " \t\"");
	for (size_t n = strlen(at); n && strchr(" \t\r\"", at[n - 1]); n--)
		at[n - 1] = '\0';
	CLEANUP(free_text) char *path = path_join(dir, at);
	CLEANUP(free_text) char *real = real_path(path);
	return real && !strcmp(real, top);
}

/* Whether the config of git's folder `dir` names the working tree `top`: a submodule's does, and
 * one of `git clone --separate-git-dir` may. */
static bool has_worktree_setting(const char *dir, const char *top)
{
	CLEANUP(free_text) char *path = path_join(dir, "config");
	CLEANUP(free_text) char *shared = path_join(dir, "commondir");
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *line;
	size_t len;

	if (path_exists(shared) || path_read_plain(path, CONFIG_MAX_BYTES, &text, NULL) < 0)
		return false;
	for (const char *at = str_text(&text); (line = str_next_line(&at, &len));)
		if (is_worktree_setting(line, len, dir, top))
			return true;
	return false;
}

/* Takes `dir`, to which r->top/.git leads, as git's folder: sets r->dir and r->common. Returns 1,
 * or -1 (ERR_CONFIG) if dir does not name r->top back or belongs to another user. */
static int follow_dot_git(struct repo *r, const char *dir, struct err *err)
{
	CLEANUP(free_text) char *real = real_path(dir);
	CLEANUP(free_text) char *common = NULL;

	if (!real || !is_git_dir(real))
		return err_set(err, ERR_CONFIG, "%s/.git leads to %s, which is not a git folder",
			       r->top, dir);
	if (!is_worktree_dir(real, r->top, &common) && has_worktree_setting(real, r->top))
		common = xstrdup(real);
	if (!common)
		return err_set(err, ERR_CONFIG,
			       "%s/.git leads to %s, which does not name this folder: if both are "
			       "yours, run `git config core.worktree` there with it",
			       r->top, real);
	if (check_owner(real, err) < 0 || check_owner(common, err) < 0)
		return -1;
	r->dir = TAKE(real);
	r->common = TAKE(common);
	return 1;
}

/* Looks at r->top/.git. Returns 1 with r->dir and r->common; 0 if it is missing or nothing that git
 * would use (the search goes on above); -1 (ERR_CONFIG) if it must not be followed. */
static int read_dot_git(struct repo *r, struct err *err)
{
	CLEANUP(free_text) char *git = path_join(r->top, ".git");
	CLEANUP(free_text) char *shared = path_join(git, "commondir");
	struct stat st;

	if (lstat(git, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return is_git_dir(git) ? follow_dot_git(r, git, err) : 0;
	if (S_ISREG(st.st_mode)) {
		CLEANUP(free_text) char *named = read_line(r->top, ".git", "gitdir: ");
		CLEANUP(free_text) char *dir = named ? path_join(r->top, named) : NULL;
		if (!dir)
			return err_set(err, ERR_CONFIG, "%s is not a file of git", git);
		return check_owner(git, err) < 0 ? -1 : follow_dot_git(r, dir, err);
	}
	if (!S_ISDIR(st.st_mode) || !is_git_dir(git))
		return 0;
	if (path_exists(shared))
		return err_set(err, ERR_CONFIG,
			       "%s takes its commits from another repository (commondir): use a "
			       "worktree that git made",
			       git);
	if (check_owner(git, err) < 0)
		return -1;
	r->dir = TAKE(git);
	r->common = xstrdup(r->dir);
	return 1;
}

/* Refuses (ERR_CONFIG) pipes and devices in the place of files that git reads: it would block. */
static int check_plain_files(const struct repo *r, struct err *err)
{
	CLEANUP(free_text) char *branch = read_line(r->dir, "HEAD", "ref: ");
	const char *const names[] = {
		"config", "config.worktree", "index", "packed-refs", "shallow", "HEAD", branch};
	const char *const dirs[] = {r->dir, strcmp(r->dir, r->common) ? r->common : NULL};

	for (size_t d = 0; d < ARRAY_LEN(dirs) && dirs[d]; d++)
		for (size_t i = 0; i < ARRAY_LEN(names) && names[i]; i++) {
			CLEANUP(free_text) char *path = path_join(dirs[d], names[i]);
			struct stat st;
			if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
				return err_set(err, ERR_CONFIG, "%s is not a plain file", path);
		}
	return 0;
}

int repo_find(struct repo *out, const char *folder, struct err *err)
{
	CLEANUP(repo_free) struct repo r = {.top = real_path(folder)};
	struct stat st;
	dev_t device;

	if (!r.top || stat(r.top, &st) < 0)
		return 0;
	device = st.st_dev;
	for (;;) {
		int found = read_dot_git(&r, err);
		if (found > 0 && check_plain_files(&r, err) < 0) {
			free(r.dir);
			free(r.common);
			r.dir = r.common = NULL;
			found = -1;
		}
		if (found) {
			*out = r;
			r = (struct repo){0};
			return found;
		}
		if (!strcmp(r.top, "/"))
			return 0;
		char *above = path_dir(r.top);
		free(r.top);
		r.top = above;
		if (stat(r.top, &st) < 0 || st.st_dev != device)
			return 0;
	}
}

/* Returns true with *out if this very folder is a bare repository, or git's own folder of another
 * one. Only for folders that the user named: no search leads there. */
static bool find_bare(struct repo *out, const char *folder)
{
	CLEANUP(free_text) char *real = real_path(folder);
	CLEANUP(free_text) char *shared = real ? path_join(real, "commondir") : NULL;

	if (!real || !is_git_dir(real) || path_exists(shared) || check_owner(real, NULL) < 0)
		return false;
	CLEANUP(repo_free) struct repo r = {.dir = xstrdup(real), .common = xstrdup(real)};
	if (check_plain_files(&r, NULL) < 0)
		return false;
	*out = r;
	r = (struct repo){0};
	return true;
}

/* Returns the path of the first link in the folder, which the caller frees; NULL: none. */
static char *find_link(const char *folder)
{
	DIR *dir = opendir(folder);
	char *link = NULL;

	for (struct dirent *e; dir && !link && (e = readdir(dir));) {
		CLEANUP(free_text) char *path = path_join(folder, e->d_name);
		struct stat st;
		if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
			link = TAKE(path);
	}
	if (dir)
		closedir(dir);
	return link;
}

/* The path of the link or list to another repository's objects; NULL: none. The caller frees it. */
static char *find_borrowed_store(const struct repo *repo)
{
	CLEANUP(free_text) char *objects = path_join(repo->common, "objects");
	CLEANUP(free_text) char *packs = path_join(objects, "pack");
	CLEANUP(free_text) char *list = path_join(objects, "info/alternates");
	struct stat st;

	if (lstat(objects, &st) < 0 || !S_ISDIR(st.st_mode))
		return TAKE(objects);
	char *link = find_link(objects);
	if (!link)
		link = find_link(packs);
	if (!link && lstat(list, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size))
		link = TAKE(list);
	return link;
}

/* Refuses (ERR_CONFIG) a repository that reads objects of another one, by alternates or links: a
 * copied project could so show another repository of the user as its own. */
static int check_own_objects(const struct repo *repo, struct err *err)
{
	CLEANUP(free_text) char *store = find_borrowed_store(repo);

	if (!store)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s: this repository borrows commits from another one: run `git repack -a "
		       "-d` there, then remove that file or link",
		       store);
}

/* ---- git ---- */

enum {
	LIMIT_MS = 600 * 1000,
	CONFIG_LIMIT_MS = 10 * 1000,
	IGNORE_LIMIT_MS = 2 * 1000, /* an ignore file may be a pipe, or endless */
	OUT_MAX_BYTES = 64 * 1000 * 1000,
	ERRORS_MAX_BYTES = 4096
};

extern char **environ;

/* The GIT_ variables that burst's git gets too: the user's config and identity, and how git reaches
 * other machines. All others belong to an outer git, or change how git reads a path. */
static const char *const kept_variables[] = {
	"GIT_CONFIG_GLOBAL=",
	"GIT_CONFIG_SYSTEM=",
	"GIT_CONFIG_NOSYSTEM=",
	"GIT_ATTR_NOSYSTEM=",
	"GIT_EXEC_PATH=",
	"GIT_AUTHOR_",
	"GIT_COMMITTER_",
	"GIT_LFS_",
	"GIT_TRACE",
	"GIT_SSH",
	"GIT_SSL_",
	"GIT_ASKPASS=",
};

/* These outrank each repository's config, in git's children too. */
static const char *const fixed_variables[] = {
	"GIT_TERMINAL_PROMPT=0",
	"GIT_OPTIONAL_LOCKS=0",
	"LC_ALL=C",
	"GIT_NO_LAZY_FETCH=1",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_GRAFT_FILE=/dev/null",
	"GIT_ALLOW_PROTOCOL=none",
	"GIT_PROTOCOL_FROM_USER=0",
	"GIT_PAGER=cat",
	"GIT_EDITOR=:",
	"GIT_SEQUENCE_EDITOR=:",
	"GIT_ASKPASS=",
	"SSH_ASKPASS=",
	"GIT_SSH_COMMAND=false",
	"GIT_PROXY_COMMAND=false",
	"GIT_LFS_SKIP_DOWNLOAD_ERRORS=1", /* see lfs.url */
};

/* Passed by GIT_CONFIG_KEY_n, which outranks each repository's config. */
static const char *const fixed_settings[][2] = {
	{"safe.bareRepository", "explicit"},
	{"core.hooksPath", "/dev/null"},
	{"core.fsmonitor", "false"},
	{"core.splitIndex", "false"},
	{"core.pager", "cat"},
	{"core.editor", ":"},
	{"core.askPass", ""},
	{"core.sshCommand", "false"},
	{"core.gitProxy", "false"},
	{"core.alternateRefsCommand", "false"},
	{"credential.helper", ""},
	{"diff.external", ""},
	{"gpg.program", "false"},
	{"gpg.openpgp.program", "false"},
	{"gpg.ssh.program", "false"},
	{"gpg.x509.program", "false"},
	{"gpg.ssh.defaultKeyCommand", ""},
	{"commit.gpgSign", "false"},
	{"log.showSignature", "false"},
	{"submodule.recurse", "false"},
	{"protocol.allow", "never"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
};

/* Whether "NAME=value" is a variable that burst's git must not inherit. */
static bool is_outer_git(const char *pair)
{
	bool kept = false;

	for (size_t i = 0; i < ARRAY_LEN(kept_variables); i++)
		kept = kept || starts_with(pair, kept_variables[i]);
	return starts_with(pair, "GIT_") && !kept;
}

/* Whether "NAME=value" is an outer git's, or has a fixed value in git's environment. */
static bool is_left_out(const char *pair)
{
	for (size_t i = 0; i < ARRAY_LEN(fixed_variables); i++)
		if (!strncmp(pair, fixed_variables[i], strcspn(fixed_variables[i], "=") + 1))
			return true;
	return is_outer_git(pair);
}

void git_clear_environment(void)
{
	for (char **pair = environ; *pair;) {
		CLEANUP(free_text) char *name = xstrndup(*pair, strcspn(*pair, "="));
		if (is_outer_git(*pair))
			unsetenv(name); /* the next one moves up */
		else
			pair++;
	}
}

/* An environment in the making. */
struct variables {
	char **list; /* NULL-terminated once sealed */
	size_t count, cap;
	size_t borrowed; /* the first ones, which are texts of our own environment */
	size_t settings; /* number of GIT_CONFIG_KEY_n */
	bool sealed;
};

/* Adds "NAME=value", which the list then owns (see borrowed). */
static void add_pair(struct variables *v, char *pair)
{
	GROW(v->list, v->count, v->cap);
	v->list[v->count++] = pair;
}

/* Adds NAME=value; nothing if value is NULL. */
static void add_variable(struct variables *v, const char *name, const char *value)
{
	if (value)
		add_pair(v, xasprintf("%s=%s", name, value));
}

/* Adds a setting that outranks the config files. */
static void add_setting(struct variables *v, const char *key, const char *value)
{
	add_pair(v, xasprintf("GIT_CONFIG_KEY_%zu=%s", v->settings, key));
	add_pair(v, xasprintf("GIT_CONFIG_VALUE_%zu=%s", v->settings++, value));
}

/* Git's environment without the fixed settings, which would hide those of a config to be read. */
static struct variables variables_for_config(const struct repo *repo)
{
	CLEANUP(free_text) char *held = (char *)guard_environ();
	struct variables v = {0};

	for (char **all = (char **)held; *all; all++)
		if (!is_left_out(*all))
			add_pair(&v, *all);
	v.borrowed = v.count;
	for (size_t i = 0; i < ARRAY_LEN(fixed_variables); i++)
		add_pair(&v, xstrdup(fixed_variables[i]));
	add_variable(&v, "GIT_DIR", repo->dir);
	add_variable(&v, "GIT_WORK_TREE", repo->top);
	add_variable(&v, "GIT_COMMON_DIR", strcmp(repo->dir, repo->common) ? repo->common : NULL);
	return v;
}

/* Git's environment for all other calls. */
static struct variables variables_of(const struct repo *repo)
{
	struct variables v = variables_for_config(repo);

	for (size_t i = 0; i < ARRAY_LEN(fixed_settings); i++)
		add_setting(&v, fixed_settings[i][0], fixed_settings[i][1]);
	return v;
}

/* Completes the environment: counts its settings and ends its list. Only the first call does. */
static void variables_seal(struct variables *v)
{
	if (v->sealed)
		return;
	v->sealed = true;
	add_pair(v, xasprintf("GIT_CONFIG_COUNT=%zu", v->settings));
	GROW(v->list, v->count, v->cap);
	v->list[v->count] = NULL;
}

static void variables_free(struct variables *v)
{
	for (size_t i = v->borrowed; i < v->count; i++)
		free(v->list[i]);
	free(v->list);
}

static inline void variables_free_cleanup(struct variables *v)
{
	variables_free(v);
}

/* ---- a call ---- */

/* Appends the line with git's error, else the first line: others are hints and progress. */
static void add_error_line(struct str *to, const struct str *said)
{
	static const char mark[] = "fatal: ", other_mark[] = "error: "; /* of the same length */
	const char *at = str_text(said), *line;
	size_t len;

	while ((line = str_next_line(&at, &len)))
		if (starts_with(line, mark) || starts_with(line, other_mark)) {
			str_add_printable(to, line + strlen(mark), len - strlen(mark), 300);
			return;
		}
	at = str_text(said);
	if ((line = str_next_line(&at, &len)))
		str_add_printable(to, line, len, 300);
}

/* Runs git as git_call() does, with this environment, which it seals, and this limit of time. */
static int run_git(const struct repo *repo, struct variables *v, int64_t limit_ms, struct str *out,
		   struct err *err, const char *const *words)
{
	CLEANUP(str_free) struct str said = STR_MAX(ERRORS_MAX_BYTES);
	CLEANUP(str_free) struct str complaint = STR_INIT;
	const char *const git_in[] = {"git", "-C", repo->top ? repo->top : repo->dir, NULL};
	CLEANUP(free_words) const char **argv = words_join(git_in, words);

	if (out && !out->max)
		out->max = OUT_MAX_BYTES;
	variables_seal(v);
	struct program git = {.argv = argv, .environment = v->list, .limit_ms = limit_ms};
	int status = program_run(&git, out, &said, err);
	if (status < 0 && err->kind == ERR_NOT_FOUND)
		return err_set(err, ERR_LOCAL, "the program git is not in PATH: install it");
	if (status < 0)
		return -1;
	if (out && out->over)
		return err_set(err, ERR_LOCAL, "git printed more than %d MB",
			       OUT_MAX_BYTES / 1000000);
	if (!status)
		return 0;
	add_error_line(&complaint, &said);
	err_set(err, ERR_LOCAL, "git: %s",
		complaint.len ? str_text(&complaint) : "it failed without a message");
	return status;
}

int git_call(const struct repo *repo, struct str *out, struct err *err, const char *const *words)
{
	CLEANUP(variables_free) struct variables v = variables_of(repo);

	return run_git(repo, &v, strcmp(words[0], "check-ignore") ? LIMIT_MS : IGNORE_LIMIT_MS, out,
		       err, words);
}

/* ---- config ---- */

static const char *const list_config[] = {"config",     "-z",     "--show-scope",
					  "--includes", "--list", NULL};

/* Runs `git config -z --show-scope ...` (words) and calls each() for "SCOPE\0KEY\nVALUE\0". Returns
 * git's exit status, -1 with *err. Reading a config runs no program that it names. */
static int each_setting(const struct repo *repo, const char *const *words, struct err *err,
			git_setting *each, void *ctx)
{
	CLEANUP(variables_free) struct variables v = variables_for_config(repo);
	CLEANUP(str_free) struct str out = STR_INIT;
	int status = run_git(repo, &v, CONFIG_LIMIT_MS, &out, err, words);

	for (const char *at = str_text(&out), *stop = at + out.len; at < stop;) {
		const char *scope = at, *entry = scope + strlen(scope) + 1;
		if (entry >= stop)
			break;
		CLEANUP(free_text) char *key = xstrndup(entry, strcspn(entry, "\n"));
		const char *value = entry + strlen(key);
		each(ctx, key, value + (*value == '\n'),
		     strcmp(scope, "system") && strcmp(scope, "global"));
		at = entry + strlen(entry) + 1;
	}
	return status;
}

int git_config_paths(const struct repo *repo, const char *pattern, git_setting *each, void *ctx,
		     struct err *err)
{
	const char *words[] = {"config", "-z",           "--show-scope", "--includes",
			       "--path", "--get-regexp", pattern,        NULL};
	int status = each_setting(repo, words, err, each, ctx);

	if (status < 0 || status > 1) /* 1: there is none */
		return -1;
	err_clear(err);
	return 0;
}

/* A git_setting. Disables "hook.NAME.command", a hook without a file, in the environment (ctx). */
static void disable_hook(void *ctx, const char *key, const char *value, bool own)
{
	static const char head[] = "hook.";
	const char *last = strrchr(key, '.');

	(void)value, (void)own;
	if (!starts_with(key, head) || last < key + strlen(head) || strcmp(last, ".command"))
		return;
	CLEANUP(free_text) char *enabled = xasprintf("%.*s.enabled", (int)(last - key), key);
	add_setting(ctx, enabled, "false");
}

int git_change(const struct repo *repo, struct err *err, const char *const *words)
{
	CLEANUP(variables_free) struct variables v = variables_of(repo);
	int status = each_setting(repo, list_config, err, disable_hook, &v);

	return status ? status : run_git(repo, &v, LIMIT_MS, NULL, err, words);
}

/* ---- a folder's repository ---- */

int git_find(struct repo *out, const char *dir, struct err *err)
{
	CLEANUP(repo_free) struct repo r = {0};
	CLEANUP(repo_free) struct repo bare = {0};
	int found = repo_find(&r, dir, err);

	if (found < 0)
		return -1;
	if (!found && find_bare(&bare, dir))
		return err_set(err, ERR_CONFIG,
			       "%s: the repository is bare and has no working tree for outputs",
			       dir);
	if (!found)
		return err_set(err, ERR_CONFIG,
			       "%s is not in a git repository (`git init` makes one)", dir);
	if (check_own_objects(&r, err) < 0)
		return -1;
	*out = r;
	r = (struct repo){0};
	return 0;
}

int git_find_any(struct repo *out, const char *dir, struct err *err)
{
	CLEANUP(repo_free) struct repo r = {0};

	if (!find_bare(&r, dir))
		return git_find(out, dir, err);
	if (check_own_objects(&r, err) < 0)
		return -1;
	*out = r;
	r = (struct repo){0};
	return 0;
}

char *git_existing_folder(const char *path)
{
	char *at = xstrdup(path);
	struct stat st;

	while ((stat(at, &st) < 0 || !S_ISDIR(st.st_mode)) && strcmp(at, "/") && strcmp(at, ".")) {
		char *above = path_dir(at);
		free(at);
		at = above;
	}
	return at;
}

int git_commit_id(const struct repo *repo, const char *name, char id[GIT_ID], struct err *err)
{
	CLEANUP(free_text) char *wanted = xasprintf("%s^{commit}", name);
	CLEANUP(str_free) struct str out = STR_INIT;

	if (name[0] == '-')
		return err_set(err, ERR_CONFIG, "\"%.60s\" cannot name a commit", name);
	int status = GIT(repo, &out, err, "rev-parse", "--verify", "--quiet", wanted);
	if (status < 0)
		return -1;
	size_t len = strcspn(str_text(&out), "\n");
	if (status || len < 40 || len >= GIT_ID)
		return err_set(err, ERR_CONFIG, "%s: this repository has no commit \"%.60s\"",
			       repo->top ? repo->top : repo->dir, name);
	snprintf(id, GIT_ID, "%.*s", (int)len, str_text(&out));
	return 0;
}

/* ---- the files of a commit ---- */

/* Settings that a checkout keeps: they say how files are written, and name no program. */
static const char *const kept_settings[] = {
	"core.autocrlf",   "core.eol",         "core.safecrlf",
	"core.symlinks",   "core.filemode",    "core.ignorecase",
	"core.protecthfs", "core.protectntfs", "core.precomposeunicode",
};

struct checkout {
	struct variables *v; /* the environment of its calls */
	bool partial;        /* the repository leaves files at its remote */
	struct filter {
		char *name;
		bool is_users; /* the user's own config names it */
	} * filters;
	size_t count, cap;
	size_t unknown; /* filters that only the repository's config names */
};

static void checkout_free(struct checkout *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->filters[i].name);
	free(c->filters);
}

static inline void checkout_free_cleanup(struct checkout *c)
{
	checkout_free(c);
}

/* NAME of "filter.NAME.smudge" or ".process", which the caller frees; NULL: another key. */
static char *filter_name(const char *key)
{
	static const char head[] = "filter.";
	const char *last = strrchr(key, '.');

	if (!starts_with(key, head) || last < key + strlen(head) ||
	    (strcmp(last, ".smudge") && strcmp(last, ".process")))
		return NULL;
	return xstrndup(key + strlen(head), (size_t)(last - key) - strlen(head));
}

/* Adds a new filter. The user's come first, so one that both configs name is the user's. */
static void add_filter(struct checkout *c, const char *name, bool own)
{
	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->filters[i].name, name))
			return;
	GROW(c->filters, c->count, c->cap);
	c->filters[c->count++] = (struct filter){xstrdup(name), !own};
	c->unknown += own;
}

/* A git_setting. Notes in the checkout (ctx) kept settings, filters, and a partial clone. */
static void note_setting(void *ctx, const char *key, const char *value, bool own)
{
	struct checkout *c = ctx;
	CLEANUP(free_text) char *filter = filter_name(key);

	for (size_t i = 0; own && i < ARRAY_LEN(kept_settings); i++)
		if (!strcasecmp(key, kept_settings[i]))
			add_setting(c->v, key, value);
	if (!strcmp(key, "extensions.partialclone") || ends_with(key, ".promisor"))
		c->partial = true;
	if (filter && *value && strcmp(value, "cat"))
		add_filter(c, filter, own);
}

/* Makes a repository without settings in scratch/, with the commit as HEAD and `folder` as working
 * tree. Its objects come from GIT_OBJECT_DIRECTORY. Free with repo_free(). */
static int make_sterile_repo(struct repo *out, const char *commit, const char *scratch,
			     const char *folder, struct err *err)
{
	CLEANUP(repo_free)
	struct repo r = {.top = xstrdup(folder), .dir = path_join(scratch, "repository")};
	CLEANUP(free_text) char *objects = path_join(r.dir, "objects");
	CLEANUP(free_text) char *refs = path_join(r.dir, "refs");
	CLEANUP(free_text) char *head = path_join(r.dir, "HEAD");
	CLEANUP(free_text) char *config = path_join(r.dir, "config");
	CLEANUP(free_text) char *line = xasprintf("%s\n", commit);
	const char *words = strlen(commit) == 64 ? "[core]\nrepositoryformatversion = 1\nbare = "
						   "false\n[extensions]\nobjectformat = sha256\n"
						 : "[core]\nrepositoryformatversion = 0\nbare = "
						   "false\n";

	r.common = xstrdup(r.dir);
	if (path_mkdirs(objects, 0700, err) < 0 || path_mkdirs(refs, 0700, err) < 0 ||
	    path_mkdirs(folder, 0700, err) < 0 ||
	    path_write(head, line, strlen(line), 0600, err) < 0 ||
	    path_write(config, words, strlen(words), 0600, err) < 0)
		return -1;
	*out = r;
	r = (struct repo){0};
	return 0;
}

/* Completes the checkout's environment from the config of `repo`. Filters of the user's own config
 * run; one that only the repository names fails for each file that needs it. */
static int prepare_checkout(struct checkout *c, const struct repo *repo, const char *scratch,
			    struct err *err)
{
	CLEANUP(free_text) char *objects = path_join(repo->common, "objects");
	CLEANUP(free_text) char *lfs = path_join(repo->common, "lfs");
	CLEANUP(free_text) char *index = path_join(scratch, "index");

	if (each_setting(repo, list_config, err, note_setting, c))
		return -1;
	add_variable(c->v, "GIT_OBJECT_DIRECTORY", objects);
	add_variable(c->v, "GIT_INDEX_FILE", index);
	/* Git LFS uses local files only, and leaves the pointer of a missing one */
	add_setting(c->v, "lfs.storage", lfs);
	add_setting(c->v, "lfs.url", "none");
	for (size_t i = 0; i < c->count; i++) {
		CLEANUP(free_text) char *need = xasprintf("filter.%s.required", c->filters[i].name);
		CLEANUP(free_text) char *run = xasprintf("filter.%s.smudge", c->filters[i].name);
		if (c->filters[i].is_users)
			continue;
		add_setting(c->v, need, "true");
		add_setting(c->v, run, "");
	}
	return 0;
}

/* Replaces git's message of a failed checkout by one that says what the user can do. Returns -1. */
static int explain_failure(const struct checkout *c, const struct repo *repo, const char *commit,
			   struct err *err)
{
	if (c->unknown && strstr(err->msg, "smudge filter"))
		return err_set(err, ERR_CONFIG,
			       "commit %.12s: %.200s: only %s/config names it, and burst runs no "
			       "program that a repository names: if it is yours, set it with `git "
			       "config --global`",
			       commit, err->msg, repo->common);
	if (c->partial)
		return err_set(err, ERR_CONFIG,
			       "commit %.12s: %.200s: a partial clone, and burst fetches nothing "
			       "for it: run `git -C %s archive %.12s >/dev/null`",
			       commit, err->msg, repo->common, commit);
	return err_wrap(err, "commit %.12s", commit);
}

int git_export(const struct repo *repo, const char *commit, const char *folder, const char *scratch,
	       const char *const *paths, struct err *err)
{
	static const char *const all[] = {".", NULL};
	const char *const checkout[] = {"--literal-pathspecs",
					"checkout",
					"--quiet",
					"--ignore-skip-worktree-bits",
					commit,
					"--",
					NULL};
	/* fills the index with all paths, since the attributes of all folders count */
	const char *read_tree[] = {"read-tree", commit, NULL};
	CLEANUP(repo_free) struct repo sterile = {0};
	if (make_sterile_repo(&sterile, commit, scratch, folder, err) < 0)
		return -1;
	CLEANUP(variables_free) struct variables v = variables_of(&sterile);
	CLEANUP(checkout_free) struct checkout c = {.v = &v};
	if (prepare_checkout(&c, repo, scratch, err) < 0)
		return err_wrap(err, "commit %.12s", commit);
	CLEANUP(free_words) const char **words = words_join(checkout, paths ? paths : all);
	if (run_git(&sterile, &v, LIMIT_MS, NULL, err, read_tree) ||
	    run_git(&sterile, &v, LIMIT_MS, NULL, err, words))
		return explain_failure(&c, repo, commit, err);
	return 0;
}
