/* hook_fire.c - the command that burst's hooks start: decides whether a commit matters to a job,
 * and queues it.
 *
 * It runs in the background after git has finished. So it takes the newest commit of the branch,
 * which may be newer than the one that it was called for. Of several that run at once, each sees
 * the newest, and all but one find it queued. */
#include "unattended/hook.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "base/pattern.h"
#include "base/program.h"
#include "commit_tree.h"
#include "net/child.h"
#include "unattended.h"

enum {
	LINES_MAX_BYTES = 16 << 20, /* of stdin, and of what `burst submit` prints */
	LOCK_MS = 120 * 1000,       /* longest wait for the job's lock */
	PAUSE_MS = 20,              /* between two tries to lock */
	SUBMIT_MS = 120 * 1000      /* longest time that `burst submit` takes */
};

/* Tip of a branch. */
struct tip {
	char commit[GIT_ID];
	char branch[200]; /* short name; "": HEAD is detached */
};

struct trigger {
	struct cmd_context *ctx;
	const char *hook; /* "post-commit" */
	struct hook_target target;
	const struct hook_job *job;
	struct tip tip;
	bool rebasing; /* the hook ran during a rebase */
	/* result to record */
	const char *outcome; /* "queued", "skipped", "failed" */
	struct str why;
	char request[32];
};

/* Sets the result to record: the commit needs no render, for this reason. */
static void skip_commit(struct trigger *t, const char *why)
{
	t->outcome = "skipped";
	str_reset(&t->why);
	str_add(&t->why, why);
}

/* ---- does the commit need a render? ---- */

/* The branch that a clone of the bare repository checks out. The caller frees it. NULL: none. */
static char *branch_of_bare_head(const struct trigger *t)
{
	const struct repo common = repo_shared(&t->target.place);
	CLEANUP(str_free) struct str out = STR_INIT;
	struct err none;

	if (GIT(&common, &out, &none, "symbolic-ref", "--short", "HEAD"))
		return NULL;
	return xstrndup(str_text(&out), strcspn(str_text(&out), "\n"));
}

/* Whether the commit's branch matches --branch; without --branch, in a bare repository whether it
 * is HEAD's branch, else always true. */
static bool is_on_chosen_branch(const struct trigger *t)
{
	CLEANUP(free_text)
	char *list = t->job->branch ? xstrdup(t->job->branch)
		     : t->job->into ? branch_of_bare_head(t)
				    : NULL;
	char *rest = NULL;

	for (char *pattern = list ? strtok_r(list, ",", &rest) : NULL; pattern;
	     pattern = strtok_r(NULL, ",", &rest))
		if (t->tip.branch[0] && pattern_match(pattern, t->tip.branch))
			return true;
	return !list;
}

/* Whether this post-commit runs during a rebase, whose commits are on no branch yet, and the job's
 * post-rewrite hook will handle the result. */
static bool is_left_to_rewrite(const struct trigger *t)
{
	CLEANUP(hook_file_free) struct hook_file f = {0};
	CLEANUP(str_free) struct str text = STR_INIT;
	enum hook_state state;

	return t->rebasing && !strcmp(t->hook, "post-commit") &&
	       hook_read_state(t->target.hooks, "post-rewrite", &state, &f, &text, NULL) == 0 &&
	       hook_file_find(&f, t->job->repository, t->job->config);
}

/* Paths of the commit that the job reads. NULL: unknown, because a link among them leads elsewhere
 * or the config has a mistake. Free with texts_free(). */
static char **paths_the_job_reads(const struct trigger *t)
{
	CLEANUP(commit_tree_free) struct commit_tree *tree = NULL;
	CLEANUP(config_free) struct config *config = NULL;
	struct config_source ask = {
		.file = t->target.path, .providers = provider_registry, .jobs = job_registry};
	struct err none;

	if (commit_tree_open(&tree, t->target.path, t->tip.commit, &none) < 0)
		return NULL;
	ask.tree = &tree->at;
	if (config_open(&config, &ask, &none) < 0)
		return NULL;
	char **inputs = config_inputs(config);
	if (commit_tree_suffices(tree, inputs))
		return inputs;
	texts_free(inputs);
	return NULL;
}

/* The comma-separated paths, NULL-terminated. Free with texts_free(). */
static char **split_paths(const char *text)
{
	CLEANUP(free_text) char *list = xstrdup(text);
	size_t count = 0, cap = 0;
	char **paths = NULL, *rest = NULL;

	for (char *path = strtok_r(list, ",", &rest); path; path = strtok_r(NULL, ",", &rest)) {
		GROW(paths, count, cap);
		paths[count++] = xstrdup(path);
	}
	GROW(paths, count, cap);
	paths[count] = NULL;
	return paths;
}

/* Whether nothing differs between base and the commit at the paths of --path, else at those that
 * the job reads. false if git cannot tell (a shallow clone lacks the older commit). */
static bool changes_nothing_relevant(const struct trigger *t, const char *base)
{
	char **paths = t->job->path ? split_paths(t->job->path) : paths_the_job_reads(t);
	static const char *const anywhere[] = {NULL};
	const char *const compare[] = {t->job->path ? "--no-optional-locks" : "--literal-pathspecs",
				       "diff-tree",
				       "-r",
				       "--quiet",
				       base,
				       t->tip.commit,
				       "--",
				       NULL};
	CLEANUP(free_words)
	const char **words = words_join(compare, paths ? (const char *const *)paths : anywhere);
	struct err none;

	bool same = git_call(&t->target.place, NULL, &none, words) == 0;
	texts_free(paths);
	return same;
}

/* Sets base to the commit to compare with: the last base of `last`, the record of the trigger
 * before; for a first post-commit the tip's parent. "": there is none, so the tip is queued. */
static void find_base(const struct trigger *t, const json_t *last, char base[GIT_ID])
{
	CLEANUP(free_text) char *parent = xasprintf("%s^", t->tip.commit);
	const char *recorded = jsonx_text(last, "base", "");
	struct err none;

	base[0] = '\0';
	if (recorded[0] && git_commit_id(&t->target.place, recorded, base, &none) == 0)
		return;
	if (!recorded[0] && !strcmp(t->hook, "post-commit") &&
	    git_commit_id(&t->target.place, parent, base, &none) == 0)
		return;
	base[0] = '\0';
}

/* Returns whether the commit needs a render; if not, sets the result to record, with the reason. */
static bool needs_render(struct trigger *t, const json_t *last)
{
	char base[GIT_ID];

	if (!is_on_chosen_branch(t))
		skip_commit(t, t->tip.branch[0] ? "the hook is not for its branch"
						: "HEAD is on no branch");
	else if (jsonx_bool(last, "owed", false))
		return true;
	else if (find_base(t, last, base), !strcmp(base, t->tip.commit))
		skip_commit(t, "this commit was queued before");
	else if (base[0] && changes_nothing_relevant(t, base))
		skip_commit(t, "it changes nothing that the job reads");
	else
		return true;
	return false;
}

/* ---- queuing ---- */

/* Runs `burst submit --commit` with the hook's settings, and sets the result to record. */
static void submit_commit(struct trigger *t)
{
	const struct hook_job *job = t->job;
	CLEANUP(str_free) struct str out = STR_MAX(LINES_MAX_BYTES);
	CLEANUP(str_free) struct str said = STR_MAX(LINES_MAX_BYTES);
	struct err err = {0};
	const char *argv[20] = {child_self(), "submit",      t->target.path,
				"--commit",   t->tip.commit, "--json"};
	size_t count = 6;

	if (job->quiet)
		argv[count++] = "--quiet", argv[count++] = job->quiet;
	if (job->min_segments)
		argv[count++] = "--min-segments", argv[count++] = job->min_segments;
	if (job->max_wait)
		argv[count++] = "--max-wait", argv[count++] = job->max_wait;
	/* pass our keys on, since the program is burst itself */
	struct program submit = {.argv = argv,
				 .folder = t->target.place.top,
				 .environment = environ,
				 .limit_ms = SUBMIT_MS};
	if (program_must(&submit, &out, &said, &err) < 0) {
		t->outcome = "failed";
		str_add(&t->why, err.msg);
		return;
	}
	CLEANUP(json_decref) json_t *object = jsonx_parse(str_text(&out), out.len, NULL);
	COPY_TEXT(t->request, jsonx_text(object, "request", ""));
	t->outcome = "queued";
}

/* ---- one job ---- */

/* Locks the job among hooks, and waits for those that decide about it now. The lock lasts until *fd
 * is closed. */
static int lock_job(const struct trigger *t, int *fd, struct err *err)
{
	CLEANUP(free_text) char *dir = path_join(t->ctx->state_dir, "hooks");
	int64_t until = clock_boot_ms() + LOCK_MS;
	char key[SHA256_NAME];

	if (path_mkdirs(dir, 0700, err) < 0)
		return -1;
	sha256_name(t->target.path, key);
	CLEANUP(free_text) char *path = xasprintf("%s/%s.lock", dir, key);
	while (path_lock(path, t->hook, fd, err) < 0) {
		if (err->kind != ERR_BUSY || clock_boot_ms() > until)
			return -1;
		err_clear(err);
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000}, NULL);
	}
	return 0;
}

/* Whether the next commit is compared with this one: it was queued, or skipped for another reason
 * than its branch. */
static bool is_new_base(const struct trigger *t)
{
	return !strcmp(t->outcome, "queued") ||
	       (!strcmp(t->outcome, "skipped") && is_on_chosen_branch(t));
}

/* Writes the trigger's result to the ledger. last: the record before. */
static int record_trigger(const struct trigger *t, const json_t *last, struct err *err)
{
	const char *base = is_new_base(t) ? t->tip.commit : jsonx_text(last, "base", "");
	/* after a commit that could not be queued, queue the next one whatever it changes */
	bool owed = !strcmp(t->outcome, "failed") ||
		    (strcmp(t->outcome, "queued") && jsonx_bool(last, "owed", false));
	CLEANUP(json_decref)
	json_t *now = json_pack("{s:s, s:b, s:I, s:s, s:s, s:s, s:s, s:s, s:s}", "base", base,
				"owed", owed, "at_ms", (json_int_t)clock_wall_ms(), "hook", t->hook,
				"commit", t->tip.commit, "branch", t->tip.branch, "outcome",
				t->outcome, "why", str_text(&t->why), "request", t->request);

	return now ? hook_record_trigger(t->ctx->store, t->target.path, now, err)
		   : err_set(err, ERR_LOCAL, "the record of a trigger is not UTF-8 text");
}

/* Submits the commit for t->job if it needs a render, and records the result. Returns 0 also for a
 * skipped commit and for one that could not be queued. */
static int decide_and_submit(struct trigger *t, struct err *err)
{
	CLEANUP(fd_close) int lock = -1;

	if (is_left_to_rewrite(t))
		return 0;
	if (lock_job(t, &lock, err) < 0)
		return -1;
	CLEANUP(json_decref) json_t *last = hook_last_trigger(t->ctx->store, t->target.path);
	if (needs_render(t, last))
		submit_commit(t);
	/* keep the last queued commit in `burst hook status` */
	if (!strcmp(t->outcome, "skipped") &&
	    !strcmp(jsonx_text(last, "commit", ""), t->tip.commit))
		return 0;
	return record_trigger(t, last, err);
}

/* ---- finding the commit ---- */

static bool is_within_head(const struct repo *repo, const char *commit)
{
	struct err none;

	return GIT(repo, NULL, &none, "merge-base", "--is-ancestor", commit, "HEAD") == 0;
}

/* Sets t->tip to the newest commit of the branch `ref` or, if ref is no branch, of a detached HEAD
 * that has the hook's commit: newer ones may have come since. Else to the hook's commit. */
static int find_newest_commit(struct trigger *t, const char *ref, const char *commit,
			      struct err *err)
{
	static const char heads[] = "refs/heads/";
	const struct repo *repo = &t->target.place;
	bool is_branch = starts_with(ref, heads);

	COPY_TEXT(t->tip.branch, is_branch ? ref + strlen(heads) : "");
	if (is_branch && git_commit_id(repo, ref, t->tip.commit, err) == 0)
		return 0;
	return git_commit_id(repo, !is_branch && is_within_head(repo, commit) ? "HEAD" : commit,
			     t->tip.commit, err);
}

/* Sets t->target to t->job in its working tree: the one that the hook runs in (here) or, for a bare
 * repository, that of --into. */
static int find_job_tree(struct trigger *t, const struct repo *here, struct err *err)
{
	hook_target_free(&t->target);
	t->target = (struct hook_target){0};
	if (git_find_any(&t->target.place,
			 t->job->into ? t->job->into
			 : here->top  ? here->top
				      : here->common,
			 err) < 0)
		return -1;
	if (!t->target.place.top)
		return err_set(err, ERR_CONFIG,
			       "%s is a bare repository: install the hook again with --into",
			       here->common);
	t->target.config = xstrdup(t->job->config);
	t->target.path = path_join(t->target.place.top, t->job->config);
	return hook_find_folder(&t->target, err);
}

/* Records a failure in the ledger, because the output of a background hook is lost. */
static void record_failure(struct trigger *t, const struct err *why)
{
	CLEANUP(json_decref)
	json_t *last = t->target.path ? hook_last_trigger(t->ctx->store, t->target.path) : NULL;
	struct err none;

	t->outcome = "failed";
	str_reset(&t->why);
	str_add(&t->why, why->msg);
	if (t->target.path)
		record_trigger(t, last, &none);
}

/* Handles a commit of the branch ref ("": no branch) for each job of the hook that is in this
 * repository. Returns -1 with the last failure; each one is recorded. */
static int fire_for_branch(struct trigger *t, const struct repo *here, const struct hook_file *f,
			   const char *ref, const char *commit, struct err *err)
{
	int result = 0;

	for (size_t i = 0; i < f->count; i++) {
		t->job = &f->jobs[i];
		t->outcome = "";
		t->request[0] = '\0';
		str_reset(&t->why);
		if (strcmp(t->job->repository, here->common))
			continue;
		if (find_job_tree(t, here, err) == 0 &&
		    find_newest_commit(t, ref, commit, err) == 0 && decide_and_submit(t, err) == 0)
			continue;
		record_failure(t, err);
		result = -1;
	}
	return result;
}

/* For pre-push ("LOCAL-REF LOCAL-ID REMOTE-REF REMOTE-ID" on each line of stdin) and post-receive
 * ("OLD-ID NEW-ID REF"): handles each branch that still exists. */
static int fire_for_stdin_branches(struct trigger *t, const struct repo *here,
				   const struct hook_file *f, const char *lines, struct err *err)
{
	bool push = !strcmp(t->hook, "pre-push");
	const char *line;
	size_t len;
	int result = 0;

	while ((line = str_next_line(&lines, &len))) {
		char a[512], b[512], c[512];
		if (sscanf(line, "%511s %511s %511s", a, b, c) != 3)
			continue;
		const char *ref = push ? a : c, *commit = b;
		if (starts_with(ref, "refs/heads/") && strspn(commit, "0") != strlen(commit) &&
		    fire_for_branch(t, here, f, ref, commit, err) < 0)
			result = -1;
	}
	return result;
}

/* Hooks may run with a short PATH. */
static void add_usual_folders_to_path(void)
{
	static const char *const usual[] = {"/usr/local/bin", "/usr/bin", "/bin"};
	const char *given = getenv("PATH");
	CLEANUP(str_free) struct str path = STR_INIT;

	str_add(&path, given ? given : "");
	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		CLEANUP(free_text) char *all = xasprintf(":%s:", str_text(&path));
		CLEANUP(free_text) char *one = xasprintf(":%s:", usual[i]);
		if (!strstr(all, one))
			str_addf(&path, "%s%s", path.len ? ":" : "", usual[i]);
	}
	setenv("PATH", str_text(&path), 1);
}

/* For the other hooks, which run in a working tree: handles its HEAD. at: its branch, its commit or
 * "rebase". */
static int fire_for_head(struct trigger *t, const struct repo *here, const struct hook_file *f,
			 const char *at, struct err *err)
{
	bool is_ref = starts_with(at, "refs/");

	t->rebasing = !strcmp(at, "rebase");
	return fire_for_branch(t, here, f, is_ref ? at : "", is_ref || t->rebasing ? "HEAD" : at,
			       err);
}

int hook_fire(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(repo_free) struct repo here = {0};
	CLEANUP(hook_file_free) struct hook_file f = {0};
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str lines = STR_INIT;

	if (ctx->arg_count != 4)
		return err_set(err, ERR_USAGE,
			       "hook: expected install, status or remove (see `burst help hook`)");
	struct trigger t = {.ctx = ctx, .hook = ctx->args[1]};
	setsid(); /* programs that call git kill the processes left in its group */
	add_usual_folders_to_path();
	git_clear_environment();
	if (hook_reads_stdin(t.hook) &&
	    fd_read_all(STDIN_FILENO, "stdin", LINES_MAX_BYTES, &lines, err) < 0)
		return -1;
	if (path_read_plain(ctx->args[2], HOOK_FILE_MAX_BYTES, &text, err) < 0 ||
	    hook_file_parse(&f, str_text(&text), err) < 0 || git_find_any(&here, ".", err) < 0)
		return -1;
	bool by_lines = !strcmp(t.hook, "pre-push") || !strcmp(t.hook, "post-receive");
	int result = by_lines ? fire_for_stdin_branches(&t, &here, &f, str_text(&lines), err)
			      : fire_for_head(&t, &here, &f, ctx->args[3], err);
	hook_target_free(&t.target);
	str_free(&t.why);
	return result;
}
