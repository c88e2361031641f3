/* git.c - runs the program git and reads its output. */
#include "git.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/guard.h"
#include "base/path.h"
#include "base/program.h"

enum { LIMIT_MS = 600 * 1000, WORDS_MAX = 64, OUT_MAX_BYTES = 64 << 20, ERRORS_MAX_BYTES = 4096 };

/* The variables of `git rev-parse --local-env-vars`, and others that change how git reads a path or
 * shows a difference. */
static const char *const others_words[] = {
	"GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_CONFIG",
	"GIT_CONFIG_PARAMETERS",
	"GIT_CONFIG_COUNT",
	"GIT_OBJECT_DIRECTORY",
	"GIT_DIR",
	"GIT_WORK_TREE",
	"GIT_IMPLICIT_WORK_TREE",
	"GIT_GRAFT_FILE",
	"GIT_INDEX_FILE",
	"GIT_NO_REPLACE_OBJECTS",
	"GIT_REPLACE_REF_BASE",
	"GIT_PREFIX",
	"GIT_SHALLOW_FILE",
	"GIT_COMMON_DIR",
	"GIT_INTERNAL_SUPER_PREFIX",
	"GIT_QUARANTINE_PATH",
	"GIT_NAMESPACE",
	"GIT_LITERAL_PATHSPECS",
	"GIT_GLOB_PATHSPECS",
	"GIT_NOGLOB_PATHSPECS",
	"GIT_ICASE_PATHSPECS",
	"GIT_EXTERNAL_DIFF",
	"GIT_DIFF_OPTS",
	"GIT_TERMINAL_PROMPT",
	"GIT_OPTIONAL_LOCKS",
	"LC_ALL", /* the last; not git's own */
};

static bool is_others(const char *pair)
{
	for (size_t i = 0; i < ARRAY_LEN(others_words); i++) {
		size_t len = strlen(others_words[i]);
		if (!strncmp(pair, others_words[i], len) && pair[len] == '=')
			return true;
	}
	return false;
}

void git_leave(void)
{
	for (size_t i = 0; i < ARRAY_LEN(others_words) && strcmp(others_words[i], "LC_ALL"); i++)
		unsetenv(others_words[i]);
}

/* The caller frees the array; its texts are borrowed. */
static char **make_environ(char *index)
{
	CLEANUP(free_text) char *held = (char *)guard_environ();
	char **all = (char **)held;
	size_t count = 0, kept = 0;

	while (all[count])
		count++;
	char **list = xcalloc(count + 5, sizeof(*list));
	for (size_t i = 0; i < count; i++)
		if (!is_others(all[i]))
			list[kept++] = all[i];
	list[kept++] = (char *)"GIT_TERMINAL_PROMPT=0";
	list[kept++] = (char *)"GIT_OPTIONAL_LOCKS=0";
	list[kept++] = (char *)"LC_ALL=C";
	list[kept] = index;
	return list;
}

/* Adds git's line with the error; other lines are hints and progress. */
static void add_complaint(struct str *to, const struct str *said)
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

int git_call_with_index(const char *dir, const char *index, struct str *out, struct err *err,
			const char *const *words)
{
	CLEANUP(free_text) char *own_index = index ? xasprintf("GIT_INDEX_FILE=%s", index) : NULL;
	CLEANUP(str_free) struct str said = STR_MAX(ERRORS_MAX_BYTES);
	CLEANUP(str_free) struct str complaint = STR_INIT;
	const char *argv[WORDS_MAX] = {"git", "-C", dir};

	for (size_t i = 3; *words && i < WORDS_MAX - 1; i++)
		argv[i] = *words++;
	if (out && !out->max)
		out->max = OUT_MAX_BYTES;
	struct program git = {
		.argv = argv, .environment = make_environ(own_index), .limit_ms = LIMIT_MS};
	int status = program_run(&git, out, &said, err);
	free(git.environment);
	if (status < 0 && err->kind == ERR_NOT_FOUND)
		return err_set(err, ERR_LOCAL, "the program git is not in PATH: install it");
	if (status < 0)
		return -1;
	if (out && out->over)
		return err_set(err, ERR_LOCAL, "git printed more than %d MiB", OUT_MAX_BYTES >> 20);
	if (!status)
		return 0;
	add_complaint(&complaint, &said);
	err_set(err, ERR_LOCAL, "git: %s",
		complaint.len ? str_text(&complaint) : "it failed without a message");
	return status;
}

int git_call(const char *dir, struct str *out, struct err *err, const char *const *words)
{
	return git_call_with_index(dir, NULL, out, err, words);
}

/* ---- a folder's repository ---- */

/* Reads a line with the path of an existing folder, and resolves links. */
static char *real_line(const char **at)
{
	size_t len = 0;
	const char *start = str_next_line(at, &len);
	char *line = xstrndup(start ? start : "", len);
	char real[PATH_MAX];

	if (!realpath(line, real))
		return line;
	free(line);
	return xstrdup(real);
}

static int find_top(struct git_place *p, const char *dir, struct err *err)
{
	CLEANUP(str_free) struct str out = STR_INIT;
	const char *at;

	int status = GIT(dir, &out, err, "rev-parse", "--path-format=absolute", "--show-toplevel");
	if (status < 0)
		return -1;
	err_clear(err);
	at = str_text(&out);
	if (status == 0 && *at)
		p->top = real_line(&at);
	return 0;
}

int git_find(struct git_place *out, const char *dir, struct err *err)
{
	CLEANUP(git_place_free) struct git_place p = {0};
	CLEANUP(str_free) struct str said = STR_INIT;

	int status = GIT(dir, &said, err, "rev-parse", "--path-format=absolute",
			 "--absolute-git-dir", "--git-common-dir", "--git-path", "hooks");
	if (status > 0 && strstr(err->msg, "not a git repository"))
		return err_set(err, ERR_CONFIG,
			       "%s is not in a git repository (`git init` makes one)", dir);
	if (status > 0)
		return err_set(err, ERR_CONFIG, "%s: %s", dir, err->msg);
	if (status < 0)
		return -1;
	const char *at = str_text(&said);
	p.dir = real_line(&at);
	p.common = real_line(&at);
	p.hooks = real_line(&at);
	if (!p.hooks[0])
		return err_set(err, ERR_CONFIG,
			       "%s: git does not report its hooks folder: install git 2.31 or "
			       "later",
			       dir);
	if (find_top(&p, dir, err) < 0)
		return -1;
	*out = p;
	p = (struct git_place){0};
	return 0;
}

void git_place_free(struct git_place *p)
{
	free(p->top);
	free(p->dir);
	free(p->common);
	free(p->hooks);
}

char *git_folder(const char *path)
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

int git_commit_id(const char *dir, const char *name, char id[GIT_ID], struct err *err)
{
	CLEANUP(free_text) char *wanted = xasprintf("%s^{commit}", name);
	CLEANUP(str_free) struct str out = STR_INIT;

	if (name[0] == '-')
		return err_set(err, ERR_CONFIG, "\"%.60s\" cannot name a commit", name);
	int status = GIT(dir, &out, err, "rev-parse", "--verify", "--quiet", wanted);
	if (status < 0)
		return -1;
	size_t len = strcspn(str_text(&out), "\n");
	if (status || len < 40 || len >= GIT_ID)
		return err_set(err, ERR_CONFIG, "%s: this repository has no commit \"%.60s\"", dir,
			       name);
	snprintf(id, GIT_ID, "%.*s", (int)len, str_text(&out));
	return 0;
}
