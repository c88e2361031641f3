/* hook.c - the git hooks of a job: their text, their installation in git's folder, and the last
 * trigger.
 *
 * To install, it links an earlier hook to NAME.before-burst before it renames burst's hook over it.
 * At every moment one of them exists, and a process that dies in between loses none. Removal
 * renames the earlier file back, with its mode and times. */
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "net/child.h"
#include "store/facts.h"

enum { RECORD_MAX_BYTES = 4096 };

/* ==== the text of a hook ==== */

#define FIRST_LINES                                                                                \
	"#!/bin/sh\n"                                                                              \
	"# Written by `burst hook install`; `burst hook remove` takes it away. The lines \"# "     \
	"job\" are its settings: change them by installing "                                       \
	"again.\n"
#define JOB_MARK "# job "

const char *const hook_names[] = {"post-commit", "post-merge",   "post-rewrite",
				  "pre-push",    "post-receive", NULL};

bool hook_reads_stdin(const char *name)
{
	return strcmp(name, "post-commit") && strcmp(name, "post-merge");
}

static bool was_written_by_burst(const char *text)
{
	return starts_with(text, FIRST_LINES);
}

/* ---- its settings ---- */

static const struct {
	const char *key;
	size_t offset;
	bool required;
} job_fields[] = {
	{"repository", offsetof(struct hook_job, repository), true},
	{"config", offsetof(struct hook_job, config), true},
	{"into", offsetof(struct hook_job, into), false},
	{"made_tree", offsetof(struct hook_job, made_tree), false},
	{"branch", offsetof(struct hook_job, branch), false},
	{"path", offsetof(struct hook_job, path), false},
	{"quiet", offsetof(struct hook_job, quiet), false},
	{"min_segments", offsetof(struct hook_job, min_segments), false},
	{"max_wait", offsetof(struct hook_job, max_wait), false},
};

/* The member of *job that belongs to row i of job_fields. */
static char **job_field(const struct hook_job *job, size_t i)
{
	return (char **)((char *)job + job_fields[i].offset);
}

static void job_free(struct hook_job *job)
{
	for (size_t i = 0; i < ARRAY_LEN(job_fields); i++)
		free(*job_field(job, i));
}

static struct hook_job job_copy(const struct hook_job *job)
{
	struct hook_job copy = {0};

	for (size_t i = 0; i < ARRAY_LEN(job_fields); i++)
		*job_field(&copy, i) = *job_field(job, i) ? xstrdup(*job_field(job, i)) : NULL;
	return copy;
}

static int parse_job_line(struct hook_job *job, const char *line, size_t len, struct err *err)
{
	CLEANUP(json_decref) json_t *object = jsonx_parse(line, len, err);

	if (!object)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(job_fields); i++) {
		const char *text = jsonx_text(object, job_fields[i].key, NULL);
		*job_field(job, i) = text ? xstrdup(text) : NULL;
		if (job_fields[i].required && !text)
			return err_set(err, ERR_CONFIG, "\"%s\" is missing", job_fields[i].key);
	}
	return 0;
}

int hook_file_parse(struct hook_file *out, const char *text, struct err *err)
{
	struct hook_file f = {0};
	const char *line;
	size_t number = 1, len;

	for (; (line = str_next_line(&text, &len)); number++)
		if (starts_with(line, JOB_MARK)) {
			GROW(f.jobs, f.count, f.cap);
			f.jobs[f.count++] = (struct hook_job){0};
			if (parse_job_line(&f.jobs[f.count - 1], line + strlen(JOB_MARK),
					   len - strlen(JOB_MARK), err) < 0) {
				hook_file_free(&f);
				err->kind = ERR_CONFIG;
				return err_wrap(err, "line %zu", number);
			}
		}
	*out = f;
	return 0;
}

static int append_job_line(struct str *to, const struct hook_job *job, struct err *err)
{
	CLEANUP(json_decref) json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_LEN(job_fields); i++)
		if (*job_field(job, i) && json_object_set_new(object, job_fields[i].key,
							      json_string(*job_field(job, i))) < 0)
			return err_set(err, ERR_CONFIG,
				       "%s: not UTF-8 text, so a hook cannot contain it",
				       job_fields[i].key);
	CLEANUP(free_text) char *line = jsonx_line(object);
	str_addf(to, JOB_MARK "%s\n", line);
	return 0;
}

/* ---- the script ---- */

/* The part of a script that reads stdin into $lines. With an empty PATH git's hooks find only git
 * itself, so no script calls another program than git and burst. */
static void append_stdin_reader(struct str *to)
{
	str_add(to, "lines=\n"
		    "while IFS= read -r line || [ -n \"$line\" ]; do\n"
		    "\tlines=\"$lines$line\n\"\n"
		    "done\n");
}

/* The part of a script that sets $at to HEAD's branch or commit, or "rebase" during one, which
 * would end before a background process could notice it. */
#define SET_AT_TO_HEAD                                                                             \
	"at=$(git symbolic-ref -q HEAD) || {\n"                                                    \
	"\tat=$(git rev-parse HEAD)\n"                                                             \
	"\t[ ! -e \"$(git rev-parse --git-path rebase-merge)\" ] && [ ! -e \"$(git rev-parse "     \
	"--git-path rebase-apply/rebasing)\" ] || at=rebase\n"                                     \
	"}\n"

/* The script first runs an earlier hook, as git would have run it. burst continues in the
 * background: git waits only for the script. */
static void append_script(struct str *to, const char *name, const char *program)
{
	bool lines = hook_reads_stdin(name);
	bool has_head = strcmp(name, "pre-push") && strcmp(name, "post-receive");

	str_add(to, "burst=");
	str_add_shell(to, program);
	str_addf(to, "\nbefore=${0%%/*}/%s" HOOK_BEFORE "\ncode=0\n", name);
	if (lines)
		append_stdin_reader(to);
	str_addf(to,
		 "if [ -x \"$before\" ]; then\n"
		 "\t%s\"$before\" \"$@\"\n"
		 "\tcode=$?\n"
		 "fi\n",
		 lines ? "printf %s \"$lines\" | " : "");
	if (!strcmp(name, "pre-push"))
		str_add(to, "[ $code = 0 ] || exit $code\n");
	str_add(to, has_head ? SET_AT_TO_HEAD : "at=HEAD\n");
	str_addf(to,
		 "if [ -x \"$burst\" ]; then\n"
		 "\t%s\"$burst\" hook fire %s \"$0\" \"${at:-HEAD}\" >/dev/null 2>&1 %s&\n"
		 "else\n"
		 "\techo \"burst: $burst is gone, so nothing is rendered: \\`burst hook install\\` "
		 "with the new program mends this hook\" >&2\n"
		 "fi\n"
		 "exit $code\n",
		 lines ? "printf %s \"$lines\" | " : "", name, lines ? "" : "</dev/null ");
}

int hook_file_write(struct str *to, const struct hook_file *f, const char *name,
		    const char *program, struct err *err)
{
	str_add(to, FIRST_LINES);
	for (size_t i = 0; i < f->count; i++)
		if (append_job_line(to, &f->jobs[i], err) < 0)
			return -1;
	append_script(to, name, program);
	return 0;
}

/* ---- jobs of a hook ---- */

struct hook_job *hook_file_find(const struct hook_file *f, const char *repository,
				const char *config)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->jobs[i].repository, repository) &&
		    !strcmp(f->jobs[i].config, config))
			return &f->jobs[i];
	return NULL;
}

/* Replaces the job by a copy of this one, or appends the copy. */
static void set_job(struct hook_file *f, const struct hook_job *job)
{
	struct hook_job copy = job_copy(job),
			*old = hook_file_find(f, job->repository, job->config);

	if (old) {
		job_free(old);
		*old = copy;
		return;
	}
	GROW(f->jobs, f->count, f->cap);
	f->jobs[f->count++] = copy;
}

/* Removes the repository's job of this config (NULL: all of them). Returns the number removed. */
static size_t remove_jobs(struct hook_file *f, const char *repository, const char *config)
{
	size_t kept = 0, count = f->count;

	for (size_t i = 0; i < count; i++) {
		struct hook_job *job = &f->jobs[i];
		if (!strcmp(job->repository, repository) &&
		    (!config || !strcmp(job->config, config)))
			job_free(job);
		else
			f->jobs[kept++] = *job;
	}
	f->count = kept;
	return count - kept;
}

void hook_file_free(struct hook_file *f)
{
	for (size_t i = 0; i < f->count; i++)
		job_free(&f->jobs[i]);
	free(f->jobs);
}

/* ==== the hooks of a folder ==== */

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

static void read_hooks_path(void *ctx, const char *key, const char *value, bool own)
{
	struct folder_setting *set = ctx;

	(void)key;
	free(set->path);
	*set = (struct folder_setting){xstrdup(value), own};
}

/* Follows core.hooksPath, as git does. */
int hook_find_folder(struct hook_target *t, struct err *err)
{
	const struct repo *r = &t->place;
	const char *base = r->top ? r->top : r->dir;
	struct folder_setting set = {0};
	char real[PATH_MAX];
	struct stat st;

	if (git_config_paths(r, "^core\\.hookspath$", read_hooks_path, &set, err) < 0)
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
	    !was_written_by_burst(str_text(text)))
		return 0; /* a program, or a link */
	if (hook_file_parse(out, str_text(text), err) < 0)
		return err_wrap(err, "%s", path);
	*state = HOOK_OURS;
	return 0;
}

/* Sets *err from errno. Returns -1. what: "write". */
static int set_file_error(const char *what, const char *path, struct err *err)
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

/* Gives an earlier hook the name `before`, unless it has that: tools that own a hooks folder
 * rewrite their hooks (husky: at each npm install). Links it, so that one is always at path;
 * without hard links it renames it. */
static int keep_earlier_hook(const char *path, const char *before, struct err *err)
{
	if (same_file(path, before))
		return 0;
	if (same_bytes(path, before))
		unlink(before);
	if (link(path, before) == 0)
		return 0;
	if (errno == EEXIST)
		return err_set(err, ERR_CONFIG,
			       "%s and %s both exist: another program has replaced burst's hook; "
			       "keep the one that you want under the first name, remove the other, "
			       "and install again",
			       path, before);
	return rename(path, before) < 0 ? set_file_error("rename", path, err) : 0;
}

static int write_hook(const char *path, const struct str *text, struct err *err)
{
	CLEANUP(free_text) char *temporary = xasprintf("%s.burst-%ld", path, (long)getpid());
	CLEANUP(fd_close) int fd = path_open_new(temporary, O_WRONLY, 0777);

	if (fd < 0)
		return set_file_error("write", temporary, err);
	if (fd_write_all(fd, str_text(text), text->len) == 0 && fsync(fd) == 0 &&
	    rename(temporary, path) == 0)
		return 0;
	set_file_error("write", path, err);
	unlink(temporary);
	return -1;
}

/* Succeeds if the folder exists. */
static int make_hooks_folder(const char *folder, struct err *err)
{
	struct stat st;

	if ((stat(folder, &st) == 0 && S_ISDIR(st.st_mode)) || mkdir(folder, 0777) == 0)
		return 0;
	errno = errno == EEXIST ? ENOTDIR : errno;
	return set_file_error("make", folder, err);
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

	if (make_hooks_folder(folder, err) < 0 ||
	    hook_read_state(folder, name, &state, &f, &old, err) < 0)
		return -1;
	if (state == HOOK_INERT)
		return err_set(err, ERR_CONFIG,
			       "%s exists but is not executable, so git does not run it; nothing "
			       "was installed: make it executable or remove it, and install again",
			       path);
	set_job(&f, job);
	if (hook_file_write(&text, &f, name, child_self(), err) < 0 ||
	    (state == HOOK_FOREIGN && keep_earlier_hook(path, before, err) < 0))
		return -1;
	if (state == HOOK_OURS && is_executable(path) && !strcmp(str_text(&old), str_text(&text)))
		return 0;
	return write_hook(path, &text, err);
}

/* ---- removing ---- */

/* Replaces burst's hook by the earlier one, or removes it if there was none. */
static int restore_earlier_hook(const char *path, const char *before, struct err *err)
{
	if (rename(before, path) == 0)
		return 0;
	if (errno != ENOENT)
		return set_file_error("rename", before, err);
	return unlink(path) < 0 ? set_file_error("remove", path, err) : 0;
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
	if (state != HOOK_OURS || !remove_jobs(&f, t->place.common, config))
		return 0;
	str_reset(&text);
	if (!f.count) {
		if (restore_earlier_hook(path, before, err) < 0)
			return -1;
		rmdir(t->hooks); /* fails while the folder holds anything */
		return 1;
	}
	if (hook_file_write(&text, &f, name, child_self(), err) < 0 ||
	    write_hook(path, &text, err) < 0)
		return -1;
	return 1;
}

/* ==== the last trigger ==== */

json_t *hook_last_trigger(struct store *store, const char *path)
{
	char key[SHA256_NAME], text[RECORD_MAX_BYTES];

	sha256_name(path, key);
	return fact_get(store, FACT_HOOK, key, NULL, text, sizeof(text))
		       ? jsonx_parse(text, strlen(text), NULL)
		       : NULL;
}

int hook_record_trigger(struct store *store, const char *path, const json_t *record,
			struct err *err)
{
	CLEANUP(free_text) char *line = jsonx_line(record);
	char key[SHA256_NAME];

	sha256_name(path, key);
	return fact_put(store, FACT_HOOK, key, NULL, line, err);
}
