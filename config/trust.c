/* trust.c - where burst's own files are, and which paths a project's file may name */
#include "trust.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/folders.h"
#include "base/path.h"
#include "config.h"
#include "secrets.h"

/* ---- real path ---- */

/* Removes the last part of a path. Returns false if none is left. */
static bool real_path_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || (slash == path && !path[1]))
		return false;
	slash[slash == path] = '\0';
	return true;
}

enum { LINKS_MAX = 64 };

/* The target of a link, with the rest appended; NULL: not a link. The caller frees it. */
static char *join_link_target(const char *link, const char *rest)
{
	char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target));

	return n > 0 && n < (ssize_t)sizeof(target) ? xasprintf("%.*s/%s", (int)n, target, rest)
						    : NULL;
}

/* Follows at most links_most links, part by part: ".." behind a missing folder can lead to
 * existing links, and a link can lead to nothing yet. */
static char *resolve_path(const char *path, int links_most)
{
	CLEANUP(free_text) char *rest = xstrdup(path);
	char *out = xstrdup("/");

	for (int links = 0; *rest;) {
		size_t len = strcspn(rest, "/");
		CLEANUP(free_text) char *part = xstrndup(rest, len);
		CLEANUP(free_text) char *behind = xstrdup(rest + len + (rest[len] == '/'));
		CLEANUP(free_text) char *next = xasprintf("%s%s%s", out, out[1] ? "/" : "", part);
		bool up = !strcmp(part, ".."), name = len && !up && strcmp(part, ".");
		char *led = name && links < links_most ? join_link_target(next, behind) : NULL;
		if (led) {
			links++;
			out[led[0] != '/' ? strlen(out) : 1] = '\0';
		} else if (up) {
			real_path_up(out);
		} else if (name) {
			free(out);
			out = TAKE(next);
		}
		free(rest);
		rest = led ? led : TAKE(behind);
	}
	return out;
}

char *real_path(const char *path)
{
	return resolve_path(path, LINKS_MAX);
}

char *real_path_plain(const char *path)
{
	return resolve_path(path, 0);
}

char *real_path_move(const char *path, const char *from, const char *to)
{
	return path_is_below(path, from) ? xasprintf("%s%s", to, path + strlen(from))
					 : xstrdup(path);
}

/* ---- places ---- */

char *config_user_file(void)
{
	CLEANUP(free_text) char *dir = home_xdg("XDG_CONFIG_HOME", ".config");

	return dir ? path_join(dir, "burst/burst.cfg") : NULL;
}

/* NULL with *err: there is no home, or BURST_STATE_DIR is relative. The caller frees it. */
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

/* Refuses a folder that others can write: they could make burst release or lose pods. */
static int check_only_user_writes(const char *path, struct err *err)
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

	if (!path || path_mkdirs(path, 0700, err) < 0 || check_only_user_writes(path, err) < 0)
		return NULL;
	return TAKE(path);
}

/* ---- trust ---- */

/* ---- paths that no project may name ---- */

/* Names below a home folder; those in .config also below XDG_CONFIG_HOME. */
static const char *const kept_at_home[] = {
	".ssh",
	".gnupg",
	".netrc",
	"_netrc",
	".git-credentials",
	".config/git/credentials",
	".config/gh",
	".config/gcloud",
	".config/rclone",
	".config/op",
	".aws",
	".azure",
	".boto",
	".s3cfg",
	".kube",
	".docker/config.json",
	".runpod",
	".config/vastai",
	".vast_api_key",
	".modal.toml",
	".npmrc",
	".pypirc",
	".pgpass",
	".my.cnf",
	".vault-token",
	".password-store",
	".local/share/keyrings",
	".huggingface",
	".cache/huggingface/token",
	".cache/huggingface/stored_tokens",
	".mozilla",
	".thunderbird",
	".config/google-chrome",
	".config/chromium",
};

struct places {
	char **list; /* real paths */
	size_t count, cap;
};

/* add_kept_places() puts burst's own folders first. */
enum { KEPT_OWN = 2 };

static void places_free(struct places *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->list[i]);
	free(p->list);
}

static inline void places_free_cleanup(struct places *p)
{
	places_free(p);
}

/* Takes ownership of path. Accepts NULL. */
static void places_add(struct places *p, char *path)
{
	if (path && path[0] == '/') {
		GROW(p->list, p->count, p->cap);
		p->list[p->count++] = real_path(path);
	}
	free(path);
}

/* Adds $HOME and the home in the password file, which differ under `sudo -E`. */
static void add_homes(struct places *homes)
{
	places_add(homes, home_dir());
	places_add(homes, home_of_account());
}

/* Adds the places of keys and of burst's own files, which no project may name. */
static void add_kept_places(struct places *kept, const struct places *homes)
{
	CLEANUP(free_text) char *file = config_user_file();
	CLEANUP(free_text) char *xdg = home_xdg("XDG_CONFIG_HOME", ".config");

	places_add(kept, places_state());
	places_add(kept, file ? path_dir(file) : NULL);
	places_add(kept, file ? xstrdup(file) : NULL); /* it may be a link */
	places_add(kept, config_renders_dir());
	for (size_t i = 0; i < secrets_file_count(); i++)
		places_add(kept, secrets_file(i));
	for (size_t i = 0; i < ARRAY_LEN(kept_at_home); i++) {
		for (size_t k = 0; k < homes->count; k++)
			places_add(kept, path_join(homes->list[k], kept_at_home[i]));
		if (xdg && starts_with(kept_at_home[i], ".config/"))
			places_add(kept, path_join(xdg, kept_at_home[i] + strlen(".config/")));
	}
}

void trust_keep_back(void (*keep)(const char *path))
{
	CLEANUP(places_free) struct places homes = {0};
	CLEANUP(places_free) struct places kept = {0};

	add_homes(&homes);
	add_kept_places(&kept, &homes);
	for (size_t i = 0; i < kept.count; i++)
		keep(kept.list[i]);
}

/* ---- the extent of a project ---- */

static bool contains_any(const char *folder, const struct places *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (path_is_below(list->list[i], folder))
			return true;
	return false;
}

/* Whether the folder is a repository of this user or of root: another user can make /tmp/.git. A
 * hidden folder (~/.config) is none. */
static bool is_repository(const char *folder)
{
	CLEANUP(free_text) char *git = path_join(folder, ".git");
	struct stat st;

	return lstat(git, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
	       path_base(folder)[0] != '.';
}

/* The repository that holds the folder `project`, else that folder. A repository that holds the
 * whole home folder is not a project. The caller frees it. */
static char *project_root(const char *project, const struct places *homes)
{
	CLEANUP(free_text) char *at = xstrdup(project);

	do {
		if (contains_any(at, homes))
			break;
		if (is_repository(at))
			return TAKE(at);
	} while (real_path_up(at));
	return xstrdup(project);
}

char *trust_root(const char *project)
{
	CLEANUP(places_free) struct places homes = {0};

	add_homes(&homes);
	return project_root(project, &homes);
}

/* ---- the verdict ---- */

static bool is_same_file(const char *a, const struct stat *b)
{
	struct stat st;

	return stat(a, &st) == 0 && st.st_dev == b->st_dev && st.st_ino == b->st_ino;
}

bool trust_is_below(const char *real, const char *folder)
{
	CLEANUP(free_text) char *place = real_path(folder);
	CLEANUP(free_text) char *at = xstrdup(real);
	struct stat st;

	if (path_is_below(real, place))
		return true;
	if (stat(place, &st) < 0)
		return false;
	do {
		if (is_same_file(at, &st))
			return true;
	} while (real_path_up(at));
	return false;
}

/* Whether the path is, or lies below, a place of keys or of burst's files. A folder for outputs
 * must not contain one either: a pod chooses the names of outputs. */
static bool touches_kept_place(const char *real, bool written, const struct places *kept)
{
	for (size_t i = 0; i < kept->count; i++)
		if (trust_is_below(real, kept->list[i]) ||
		    (written && (i < KEPT_OWN || path_exists(kept->list[i])) &&
		     trust_is_below(kept->list[i], real)))
			return true;
	return false;
}

/* Whether the path is in a system folder or another user's home that does not hold the project
 * itself: these are no part of a project above them. */
static bool is_system_or_other_home(const char *real, const char *root)
{
	static const char *const folders[] = {"/bin",   "/boot",  "/dev",  "/etc",  "/lib",
					      "/lib32", "/lib64", "/proc", "/root", "/run",
					      "/sbin",  "/sys",   "/usr",  "/var"};
	static const char *const homes[] = {"/home", "/Users", "/export/home"};

	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (path_is_below(real, folders[i]) && !path_is_below(root, folders[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
		size_t len = strlen(homes[i]);
		if (!path_is_below(real, homes[i]) || !real[len])
			continue;
		CLEANUP(free_text)
		char *home = xstrndup(real, len + 1 + strcspn(real + len + 1, "/"));
		if (!path_is_below(root, home))
			return true;
	}
	return false;
}

/* Whether a part of the path below base, inside a home folder, is hidden. A hidden folder that
 * holds the project itself does not count. */
static bool is_hidden_at_home(const char *real, const char *base, const struct places *homes,
			      const char *project)
{
	size_t len = strcmp(base, "/") ? strlen(base) : 0;

	for (const char *part = real + len; *part == '/'; part += 1 + strcspn(part + 1, "/")) {
		CLEANUP(free_text)
		char *upto = xstrndup(real, (size_t)(part - real) + 1 + strcspn(part + 1, "/"));
		if (part[1] != '.' || path_is_below(project, upto))
			continue;
		for (size_t i = 0; i < homes->count; i++)
			if (path_is_below(upto, homes->list[i]) && strcmp(upto, homes->list[i]))
				return true;
	}
	return false;
}

static bool is_any_of(const char *path, const struct places *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->list[i], path))
			return true;
	return false;
}

static bool is_below_one_of(const char *path, const struct places *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (path_is_below(path, list->list[i]))
			return true;
	return false;
}

/* The path that is judged. root: of the project. */
struct judged {
	const char *real, *project, *root;
	struct places homes, kept;
	bool written;
};

/* The deepest allowed folder that holds the path; NULL: none. */
static const char *deepest_allowed(const struct judged *j, const char *const *allowed)
{
	const char *base = NULL;

	for (; allowed && *allowed; allowed++)
		if (path_is_below(j->real, *allowed) && (!base || strlen(*allowed) > strlen(base)))
			base = *allowed;
	return base;
}

/* Whether the path is in git's own folder, which holds names and passwords of remotes, and
 * programs that git runs. may: the folder that allows it; it can allow reading. */
static bool is_in_git_folder(const struct judged *j, const char *may)
{
	if (!path_in_git_folder(j->real + 1) || path_in_git_folder(j->project + 1))
		return false;
	return j->written || !may || !path_in_git_folder(may + 1);
}

/* Why the project may not name the path, as the end of a sentence; NULL: it may. */
static const char *find_objection(const struct judged *j, const char *const *allowed)
{
	bool at_home = is_below_one_of(j->real, &j->homes) && contains_any(j->root, &j->homes);
	bool inside = path_is_below(j->real, j->root) &&
		      (at_home || !is_system_or_other_home(j->real, j->root));
	const char *may = deepest_allowed(j, allowed), *base = may ? may : j->root;

	if (touches_kept_place(j->real, j->written, &j->kept))
		return "holds keys, or files of burst itself";
	if (!strcmp(j->real, "/"))
		return "is the whole disk";
	if (is_in_git_folder(j, may))
		return "is git's own folder";
	if (is_any_of(j->real, &j->homes) && (j->written || !inside))
		return "is your home folder";
	if (contains_any(j->real, &j->homes) && !inside)
		return "contains your home folder";
	if (!inside && !may)
		return "lies outside of the project";
	if ((may || contains_any(j->root, &j->homes)) &&
	    is_hidden_at_home(j->real, base, &j->homes, j->project))
		return "is hidden in your home folder";
	return NULL;
}

/* The folder that the user could allow to permit the path; NULL: none. The caller frees it. */
static char *folder_to_allow(const struct judged *j)
{
	struct stat st;
	char *folder = stat(j->real, &st) < 0 || S_ISDIR(st.st_mode) ? xstrdup(j->real)
								     : path_dir(j->real);
	const char *only[] = {folder, NULL};
	struct err none;

	if (strlen(folder) < 160 && trust_check_allowed(folder, j->project, &none) == 0 &&
	    !find_objection(j, only))
		return folder;
	free(folder);
	return NULL;
}

int trust_path(const struct trust *t, const char *key, const char *path, bool written,
	       struct err *err)
{
	CLEANUP(free_text) char *place = real_path(path);
	CLEANUP(free_text)
	char *real = t->copy ? real_path_move(place, t->copy, t->top) : TAKE(place);
	CLEANUP(free_text) char *root = NULL;
	struct judged j = {.real = real, .project = t->project, .written = written};

	add_homes(&j.homes);
	add_kept_places(&j.kept, &j.homes);
	j.root = root = project_root(t->project, &j.homes);
	const char *why = find_objection(&j, t->allowed);
	CLEANUP(free_text) char *folder = why ? folder_to_allow(&j) : NULL;
	bool whole_home = !why && !written && is_any_of(real, &j.homes);
	places_free(&j.homes);
	places_free(&j.kept);
	if (whole_home)
		log_line(LOG_WARN,
			 "%s is your home folder: all of it except keys is sent to the pods", key);
	if (!why)
		return 0;
	const char *what = written ? "write there" : "send that to pods";
	if (folder)
		return err_set(err, ERR_CONFIG,
			       "%s %s (%.160s): a project may not %s unless you allow it: "
			       "--allow-path %s, or allow_paths in your own "
			       "burst.cfg",
			       key, why, real, what, folder);
	return err_set(err, ERR_CONFIG, "%s %s (%.200s): a project may not %s%s", key, why, real,
		       what, written ? "; name another folder with --output" : "");
}

static bool is_kernel_folder(const char *real)
{
	return path_is_below(real, "/proc") || path_is_below(real, "/sys") ||
	       (path_is_below(real, "/dev") && !path_is_below(real, "/dev/shm"));
}

int trust_check_allowed(const char *folder, const char *project, struct err *err)
{
	CLEANUP(places_free) struct places homes = {0};
	CLEANUP(free_text) char *real = folder[0] == '/' ? real_path(folder) : NULL;

	if (!real)
		return err_set(err, ERR_CONFIG, "\"%.200s\" is not an absolute path", folder);
	add_homes(&homes);
	CLEANUP(free_text) char *root = project_root(project, &homes);
	CLEANUP(free_text) char *typed = real_path_plain(folder);
	if (path_is_below(typed, root) && !path_is_below(real, root))
		return err_set(
			err, ERR_CONFIG,
			"\"%.200s\" leads out of the project, to %.200s: name that folder itself",
			folder, real);
	if (is_kernel_folder(real))
		return err_set(err, ERR_CONFIG, "\"%.200s\" is a kernel folder", folder);
	if (!strcmp(real, "/") || contains_any(real, &homes))
		return err_set(err, ERR_CONFIG,
			       "\"%.200s\" contains your whole home folder: name folders in it",
			       folder);
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

int trust_check_env(const char *path, const struct section *s, const char *key,
		    const struct provider_ops *const *providers, struct err *err)
{
	for (size_t i = 0; i < section_count(s, key); i++)
		for (const struct provider_ops *const *p = providers; *p; p++)
			if (is_key_of(section_item(s, key, i), *p))
				return err_set(err, ERR_CONFIG,
					       "%s: %s%s: %s is a key of your account at %s: it "
					       "is not sent to pods",
					       section_where(s, key), path, key,
					       section_item(s, key, i), (*p)->name);
	return 0;
}
