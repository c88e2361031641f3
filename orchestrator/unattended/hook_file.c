/* hook_file.c - writes and reads the text of burst's git hooks. */
#include "hook_file.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/jsonx.h"

#define FIRST_LINES                                                                                \
	"#!/bin/sh\n"                                                                              \
	"# Written by `burst hook install`; `burst hook remove` takes it away. The lines \"# "     \
	"job\" are its settings: change them by installing "                                       \
	"again.\n"
#define JOB_MARK    "# job "
#define FOLDER_MARK "# burst made this folder\n"

const char *const hook_names[] = {"post-commit", "post-merge",   "post-rewrite",
				  "pre-push",    "post-receive", NULL};

bool hook_has_lines(const char *name)
{
	return strcmp(name, "post-commit") && strcmp(name, "post-merge");
}

bool hook_file_is_ours(const char *text)
{
	return starts_with(text, FIRST_LINES);
}

/* ---- its settings ---- */

static const struct {
	const char *key;
	size_t offset;
	bool required;
} fields[] = {
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

static char **field(const struct hook_job *job, size_t i)
{
	return (char **)((char *)job + fields[i].offset);
}

static void job_free(struct hook_job *job)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		free(*field(job, i));
}

static struct hook_job job_copy(const struct hook_job *job)
{
	struct hook_job copy = {0};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		*field(&copy, i) = *field(job, i) ? xstrdup(*field(job, i)) : NULL;
	return copy;
}

static int read_job(struct hook_job *job, const char *line, size_t len, struct err *err)
{
	CLEANUP(json_decref) json_t *object = jsonx_parse(line, len, err);

	if (!object)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const char *text = jsonx_text(object, fields[i].key, NULL);
		*field(job, i) = text ? xstrdup(text) : NULL;
		if (fields[i].required && !text)
			return err_set(err, ERR_CONFIG, "\"%s\" is missing", fields[i].key);
	}
	return 0;
}

int hook_file_parse(struct hook_file *out, const char *text, struct err *err)
{
	struct hook_file f = {.made_folder = strstr(text, "\n" FOLDER_MARK) != NULL};
	const char *line;
	size_t number = 1, len;

	for (; (line = str_next_line(&text, &len)); number++)
		if (starts_with(line, JOB_MARK)) {
			GROW(f.jobs, f.count, f.cap);
			f.jobs[f.count++] = (struct hook_job){0};
			if (read_job(&f.jobs[f.count - 1], line + strlen(JOB_MARK),
				     len - strlen(JOB_MARK), err) < 0) {
				hook_file_free(&f);
				err->kind = ERR_CONFIG;
				return err_wrap(err, "line %zu", number);
			}
		}
	*out = f;
	return 0;
}

static int write_job(struct str *to, const struct hook_job *job, struct err *err)
{
	CLEANUP(json_decref) json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (*field(job, i) &&
		    json_object_set_new(object, fields[i].key, json_string(*field(job, i))) < 0)
			return err_set(err, ERR_CONFIG,
				       "%s: not UTF-8 text, so a hook cannot contain it",
				       fields[i].key);
	CLEANUP(free_text) char *line = jsonx_line(object);
	str_addf(to, JOB_MARK "%s\n", line);
	return 0;
}

/* ---- the script ---- */

/* In an empty PATH git's hooks find only git itself, so the script calls no other program. It first
 * runs an earlier hook, as git would have run it. burst continues in the background: git waits only
 * for the script. */
static void add_lines_read(struct str *to)
{
	str_add(to, "lines=\n"
		    "while IFS= read -r line || [ -n \"$line\" ]; do\n"
		    "\tlines=\"$lines$line\n\"\n"
		    "done\n");
}

/* Reads HEAD now: a rebase ends before a background process could notice it. */
#define FIND_HEAD                                                                                  \
	"at=$(git symbolic-ref -q HEAD) || {\n"                                                    \
	"\tat=$(git rev-parse HEAD)\n"                                                             \
	"\t[ ! -e \"$(git rev-parse --git-path rebase-merge)\" ] && [ ! -e \"$(git rev-parse "     \
	"--git-path rebase-apply/rebasing)\" ] || at=rebase\n"                                     \
	"}\n"

static void add_script(struct str *to, const char *name, const char *program)
{
	bool lines = hook_has_lines(name);
	bool has_head = strcmp(name, "pre-push") && strcmp(name, "post-receive");

	str_add(to, "burst=");
	str_add_shell(to, program);
	str_addf(to, "\nbefore=${0%%/*}/%s" HOOK_BEFORE "\ncode=0\n", name);
	if (lines)
		add_lines_read(to);
	str_addf(to,
		 "if [ -x \"$before\" ]; then\n"
		 "\t%s\"$before\" \"$@\"\n"
		 "\tcode=$?\n"
		 "fi\n",
		 lines ? "printf %s \"$lines\" | " : "");
	if (!strcmp(name, "pre-push"))
		str_add(to, "[ $code = 0 ] || exit $code\n");
	str_add(to, has_head ? FIND_HEAD : "at=HEAD\n");
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
	if (f->made_folder)
		str_add(to, FOLDER_MARK);
	for (size_t i = 0; i < f->count; i++)
		if (write_job(to, &f->jobs[i], err) < 0)
			return -1;
	add_script(to, name, program);
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

void hook_file_put(struct hook_file *f, const struct hook_job *job)
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

size_t hook_file_remove(struct hook_file *f, const char *repository, const char *config)
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
