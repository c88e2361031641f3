/* start.c - `setup`, `install` and `start`: make and bring what workers need, then start them. */
#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "files.h"
#include "json.h"
#include "trees.h"

/* ---- what `start` names, brought from the volume to the disk in a child ---- */

enum {
	RESULT_MAX = 400,
	START_CHECK_S = 3600, /* for the work of the agent itself: a large environment takes long */
};

/* Why a tree cannot be used; TAKEN_FAILED: by errno. */
static const char *taken_words(enum taken taken)
{
	return taken == TAKEN_MISSING   ? "is missing"
	       : taken == TAKEN_CHANGED ? "is not what was put there"
					: strerror(errno);
}

/* Copies the tree `path` of the volume to the folder `to`. Returns false, after printing what is
 * wrong with `what`, if it cannot be used. An empty path is nothing to copy. */
static bool bring_tree(struct agent *a, int to, const char *what, const char *path)
{
	const char *id = strrchr(path, '/');
	if (!*path)
		return true;
	enum taken taken = !id || !path_is_safe(path) || !sha256_is_hex(id + 1)
				   ? TAKEN_MISSING
				   : tree_take(a->volume_fd, path, id + 1, to, id + 1);
	if (taken == TAKEN)
		return true;
	printf("%s %s", what, taken_words(taken));
	/* a kept tree of the same name would pass for an intact one */
	if (taken == TAKEN_CHANGED || taken == TAKEN_MISSING)
		set_aside(a->volume_fd, path);
	return false;
}

/* Checks that the image has what the environment links to: .burst-needs names it in one line. */
static bool has_what_env_needs(const struct agent *a, const char *hash)
{
	CLEANUP(free_text)
	char *path = env_path(a, hash), *file = xasprintf("%s/.burst-needs", path);
	CLEANUP(str_free) struct str text = {0};
	bool fine = read_file(file, PATH_MAX, &text) < 0 || !text.len;
	if (!fine) {
		text.s[strcspn(text.s, "\n")] = 0;
		fine = access(text.s, F_OK) == 0;
	}
	return fine;
}

/* Unpacks an environment from its archive. Returns false if it is used from the volume instead.
 * result: "unpacked MS BYTES", or "in place" and the reason for the log. */
static bool unpack_env(struct agent *a, const char *hash, const char *id, char result[RESULT_MAX])
{
	char why[WHY_MAX] = "it is in memory, or programs cannot run there";
	CLEANUP(free_text)
	char *path = xasprintf("env/%s", hash),
	     *there = xasprintf("%s/env/%s", a->place.volume, hash);
	int64_t began_ms = clock_boot_ms(), bytes = 0;
	tidy_folder(a->env_fd, ".", NULL); /* what an interrupted start left */
	bool fits = disk_fits(a->env_root),
	     fine = fits &&
		    archive_take(a->volume_fd, path, there, id, a->env_fd, hash, &bytes, why) == 0;
	if (fine)
		snprintf(result, RESULT_MAX, "unpacked %lld %lld",
			 (long long)MAX(clock_boot_ms() - began_ms, (int64_t)1),
			 (long long)MAX(bytes, (int64_t)1));
	else
		snprintf(result, RESULT_MAX,
			 "in place\nthe environment is used from the volume, which may take "
			 "longer: %s%s",
			 fits ? "" : "the pod's disk: ", why);
	return fine;
}

/* Compares an environment that stays on the volume; prints what is wrong. Environments may hold
 * their own path, so a container gets a link to it on its disk. */
static bool use_env_in_place(struct agent *a, const char *hash, const char *id)
{
	CLEANUP(free_text)
	char *path = xasprintf("env/%s", hash),
	     *there = xasprintf("%s/env/%s", a->place.volume, hash);
	enum taken taken = !name_safe(hash) || !sha256_is_hex(id)
				   ? TAKEN_MISSING
				   : tree_compare(a->volume_fd, path, id);
	bool fine = taken == TAKEN &&
		    (!a->env_root || symlinkat(there, a->env_fd, hash) == 0 || errno == EEXIST);
	if (!fine)
		printf("env %s", taken_words(taken));
	return fine;
}

/* Unpacks an environment or uses it in place; returns false after printing why neither works.
 * Leaves one alone that this pod already uses: workers may be running from it. */
static bool bring_env(struct agent *a, const char *hash, const char *id, char result[RESULT_MAX])
{
	CLEANUP(free_text) char *known = xasprintf("%s %s", hash, id);
	struct stat st;
	bool here = a->unpacked && !strcmp(a->unpacked, known);
	bool in_place = !a->env_root || !name_safe(hash) || !sha256_is_hex(id) ||
			fstatat(a->env_fd, hash, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (here)
		snprintf(result, RESULT_MAX, "unpacked");
	return here || (!in_place && unpack_env(a, hash, id, result)) ||
	       use_env_in_place(a, hash, id);
}

/* Brings an environment and prints the result. Returns false if it cannot be used. */
static bool check_env(struct agent *a, const char *hash, const char *id)
{
	char result[RESULT_MAX] = "";
	if (!bring_env(a, hash, id, result))
		return false;
	bool fine = has_what_env_needs(a, hash);
	printf("%s", fine ? result : "env needs packages that this image lacks");
	return fine;
}

/* Runs in a child. Other pods can write to the volume, so the agent copies what workers run to the
 * container's disk and uses the copy only if its id matches the client's. An environment without an
 * archive is too large to copy and is compared on the volume. Prints what the volume lacks, else
 * the result for the environment and a line for the log. */
static int start_check(struct agent *a)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, a->task.op, strlen(a->task.op));
	const char *hash = json_text(op, "env_hash", ""), *id = json_text(op, "env_tree", ""),
		   *image = json_text(op, "env_image", "");
	CLEANUP(free_text) char *dir = xasprintf("tree/%d", a->starts + 1);
	int to = open_folder(a->disk_fd, dir, true);
	bool fine = to >= 0;
	if (!fine)
		printf("disk %s", strerror(errno));
	fine = fine && bring_tree(a, to, "kit", json_text(op, "kit", "")) &&
	       bring_tree(a, to, "code", json_text(op, "code", ""));
	if (fine && *hash)
		fine = check_env(a, hash, id);
	if (fine && *image && !(fine = image_has(a, image)))
		printf("env is missing in this image");
	fflush(stdout);
	json_free(&doc);
	close_fd(&to);
	return fine ? 0 : 1;
}

/* ---- the setup, install or start that runs; there is at most one ---- */

void task_forget(struct task *t)
{
	close_fd(&t->out);
	str_free(&t->line);
	str_free(&t->result);
	free(t->hash);
	free(t->build);
	free(t->op);
	*t = (struct task){.out = -1};
}

/* Returns whether a child of the agent does the work: what it prints is its result. The output of
 * scripts is logged. */
static bool task_is_own(const struct task *t)
{
	return t->op || t->keeping;
}

bool task_read(struct agent *a, int rounds)
{
	struct task *t = &a->task;
	char part[16 << 10];
	ssize_t n = -1;
	while (rounds-- > 0 && (n = read(t->out, part, sizeof(part))) > 0) {
		if (task_is_own(t)) {
			str_addn(&t->result, part, (size_t)n);
			continue;
		}
		keep_tail(t->tail, sizeof(t->tail), part, (size_t)n);
		str_addn(&t->line, part, (size_t)n);
		log_lines(a, &t->line, &t->skipping, 0, t->kind);
	}
	return n != 0;
}

/* Runs `work` in a child of the agent, whose output becomes task.result. Returns false if it cannot
 * start. */
static bool task_begin_own(struct agent *a, int (*work)(struct agent *))
{
	struct task *t = &a->task;
	close_fd(&t->out);
	t->pid = spawn_own(a, work, &t->out);
	if (t->pid > 0)
		nonblocking(t->out);
	return t->pid > 0;
}

/* ---- `start` ---- */

enum { HANG_DEFAULT_MS = 60 * 1000 };

char *copy_json_text(const struct json *op, const char *key)
{
	const char *text = json_text(op, key, NULL);
	return text && *text ? xstrdup(text) : NULL;
}

void start_forget(struct agent *a)
{
	env_free(&a->start_env);
	free(a->worker_command);
	free(a->code);
	for (char **p = a->outputs; p && *p; p++)
		free(*p);
	free(a->outputs);
	free(a->started);
	a->worker_command = a->code = a->started = NULL;
	a->outputs = NULL;
}

static void set_folder(struct agent *a, const char *variable, const char *path)
{
	if (path)
		env_set(&a->start_env, variable, path);
}

/* The path of a copied tree on the disk; NULL: the request names none. The caller frees it. */
static char *tree_path(const struct agent *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? xasprintf("%s/tree/%d/%s", a->disk, a->starts, slash + 1) : NULL;
}

static void start_read_env(struct agent *a, const struct json *op)
{
	const char *hash = json_text(op, "env_hash", ""), *image = json_text(op, "env_image", "");
	env_add_object(&a->start_env, json_get(op, "env"));
	CLEANUP(free_text) char *kit = tree_path(a, json_text(op, "kit", ""));
	CLEANUP(free_text)
	char *prepared = *image ? image_path(a, image) : *hash ? env_path(a, hash) : NULL;
	a->code = tree_path(a, json_text(op, "code", ""));
	set_folder(a, "BURST_KIT", kit);
	set_folder(a, "BURST_CODE", a->code);
	set_folder(a, "BURST_ENV", prepared);
}

static void start_read_outputs(struct agent *a, const struct json *op)
{
	size_t count = 0;
	a->outputs = xcalloc(1, sizeof(char *));
	for (const struct json *m = json_items(op, "outputs"); m; m = m->next) {
		if (m->type != J_TEXT || !m->len)
			continue;
		a->outputs = xrealloc(a->outputs, (count + 2) * sizeof(char *));
		a->outputs[count++] = xstrndup(m->text, m->len);
		a->outputs[count] = NULL;
	}
}

/* Reports a slot for commands as a worker that is ready. */
static void command_slot_ready(struct agent *a, struct worker *w)
{
	w->state = WORKER_IDLE;
	struct str *b = worker_event(a, w, "ready");
	js_text(b, "engine", "command");
	js_text(b, "version", BURST_VERSION);
	js_int(b, "sample_rate", 0);
	js_int(b, "max_batch", 1);
	js_bool(b, "gpu", a->gpu_count > 0);
	js_int(b, "load_ms", 0);
	event_end(a);
}

/* Reports what `start` lacks: result is "WHAT REASON". */
static void report_lacking(struct agent *a, const char *result)
{
	const char *space = strchr(result, ' ');
	struct str *b = event_begin(a, "start");
	js_bool(b, "ok", false);
	js_textn(b, "lacks", result, space ? (size_t)(space - result) : 0);
	js_text(b, "error", space ? space + 1 : "the check of its files ended early");
	event_end(a);
}

static void trees_remove(struct agent *a, int number)
{
	CLEANUP(free_text) char *dir = xasprintf("%s/tree/%d", a->disk, number);
	if (number > 0 && access(dir, F_OK) == 0)
		remove_in_background(dir);
}

/* Returns whether idle workers with the same settings exist: they serve like new ones. */
static bool start_matches(const struct agent *a, const struct json *op)
{
	bool same = a->started && strlen(a->started) == op->raw_len &&
		    !memcmp(a->started, op->raw, op->raw_len);
	for (int i = 0; same && i < a->worker_count; i++)
		same = a->workers[i].state == WORKER_IDLE && a->workers[i].hello;
	return same && a->worker_count && !a->queue && !a->fatal && !a->setup_failed &&
	       !a->install_failed;
}

/* Reports the idle workers as ready, with their old hello. */
static void report_ready_again(struct agent *a)
{
	for (int i = 0; i < a->worker_count; i++) {
		struct str *b = worker_event(a, &a->workers[i], "ready");
		str_add(b, a->workers[i].hello);
		js_int(b, "load_ms", 0);
		event_end(a);
	}
}

/* Replaces all workers by those of the request. */
static void start_begin(struct agent *a, const struct json *op)
{
	stop_workers_only(a);
	start_forget(a);
	a->started = json_yes(op, "command") ? NULL : xstrndup(op->raw, op->raw_len);
	trees_remove(a, a->starts++);
	a->part_limit = MIN(MAX(json_int(op, "max_batch", 0), (int64_t)0), (int64_t)1 << 20);
	a->worker_command = copy_json_text(op, "worker");
	a->command = json_yes(op, "command");
	a->stream = json_yes(op, "stream");
	a->worker_root = json_yes(op, "root");
	a->hang_ms = json_int(op, "hang_s", a->command ? 0 : HANG_DEFAULT_MS / 1000) * 1000;
	start_read_env(a, op);
	probe_bring(a);
	start_read_outputs(a, op);
	checkpoint_read_start(a, op);
	if (!a->command && !a->worker_command)
		return notice_error(a, "start needs a worker");
	int count = (int)MIN(MAX(json_int(op, "workers", 1), (int64_t)1), (int64_t)WORKERS_MAX);
	a->workers = xcalloc(1, (size_t)count * sizeof(struct worker));
	a->worker_count = count;
	for (int i = 0; i < count; i++)
		a->workers[i] =
			(struct worker){.w = i, .in = -1, .out = -1, .err = -1, .max_batch = 1};
	for (int i = 0; i < count && !a->fatal; i++) {
		if (a->setup_failed || a->install_failed)
			worker_failed(a, &a->workers[i], "what it needs could not be set up", NULL);
		else if (a->command)
			command_slot_ready(a, &a->workers[i]);
		else
			worker_start(a, &a->workers[i]);
	}
}

/* Logs the second line of what a child printed, if there is one, and cuts it off. */
static void log_second_line(struct agent *a, char *result)
{
	char *line = strchr(result, '\n');
	if (!line)
		return;
	*line++ = 0;
	event_log(a, -1, NULL, line, strlen(line));
}

/* Handles what check_env() printed. text: the request. */
static void on_env_result(struct agent *a, const char *text, char *result)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, text, strlen(text));
	long long ms, bytes;
	char line[160];
	if (sscanf(result, "unpacked %lld %lld", &ms, &bytes) == 2) {
		free(a->unpacked);
		a->unpacked = xasprintf("%s %s", json_text(op, "env_hash", ""),
					json_text(op, "env_tree", ""));
		a->unpack_ms = ms;
		a->unpack_bytes = bytes;
		snprintf(line, sizeof(line), "unpacked the environment: %lld MB in %.1f s",
			 (bytes + 500000) / 1000000, (double)ms / 1000);
		event_log(a, -1, NULL, line, strlen(line));
	} else if (strncmp(result, "unpacked", 8) != 0) {
		a->unpack_ms = a->unpack_bytes = 0;
		log_second_line(a, result);
	}
	json_free(&doc);
}

/* The child of start_check() has ended: starts the workers (fine), or reports what is missing. */
static void on_start_checked(struct agent *a, bool fine)
{
	struct task done = a->task;
	struct json_doc doc;
	a->task = (struct task){.out = -1};
	if (done.cancelled) {
		trees_remove(a, a->starts + 1);
	} else if (fine) {
		str_addc(&done.result, 0);
		on_env_result(a, done.op, done.result.s);
		start_begin(a, json_read(&doc, done.op, strlen(done.op)));
		json_free(&doc);
	} else {
		trees_remove(a, a->starts + 1);
		report_lacking(a, str_text(&done.result));
		check_volume_for(a, str_text(&done.result));
	}
	task_forget(&done);
}

void op_start(struct agent *a, const struct json *op)
{
	struct task *t = &a->task;
	if (start_matches(a, op))
		return report_ready_again(a);
	bool bare = !*json_text(op, "kit", "") && !*json_text(op, "code", "") &&
		    !*json_text(op, "env_hash", "") && !*json_text(op, "env_image", "");
	if (bare || a->setup_failed || a->install_failed)
		return start_begin(a, op); /* which reports what failed */
	char python[32], words[160];
	const char *wanted = json_text(op, "env_python", "");
	python_of_image(python, sizeof(python));
	if (*wanted && strcmp(wanted, python) != 0) {
		snprintf(words, sizeof(words), "env was made with %.40s, and this image has %s",
			 wanted, *python ? python : "no Python");
		return report_lacking(a, words);
	}
	trees_remove(a, a->starts + 1);
	*t = (struct task){.kind = "start",
			   .out = -1,
			   .began_ms = now_ms(a),
			   .op = xstrndup(op->raw, op->raw_len)};
	t->until_ms = now_ms(a) + START_CHECK_S * 1000;
	if (!task_begin_own(a, start_check)) {
		task_forget(t);
		notice_error(a, "the files of start cannot be checked");
	}
}

/* ---- `setup` and `install` ---- */

/* Reports the end of a setup or install. id: of the tree that was kept; "" or NULL: none. */
static void task_answer(struct agent *a, const char *kind, bool ok, bool skipped, int64_t ms,
			const char *error, const char *id)
{
	struct str *b = event_begin(a, kind);
	js_bool(b, "ok", ok);
	js_bool(b, "skipped", skipped);
	js_int(b, "ms", ms);
	if (ok && id && *id)
		js_text(b, !strcmp(kind, "setup") ? "tree" : "kept", id);
	if (ok && !strcmp(kind, "setup")) {
		char python[32];
		python_of_image(python, sizeof(python));
		js_text(b, "python", python);
	}
	if (!ok)
		js_text(b, "error", error);
	event_end(a);
	if (!strcmp(kind, "setup"))
		a->setup_failed = !ok;
	else
		a->install_failed = !ok;
}

/* Sets the folders of a script. `setup` fills $BURST_ENV. `install` finds earlier results in
 * $BURST_KEPT and leaves new ones in $BURST_KEEP. All are on the container's disk; the agent copies
 * them to the volume. */
static void task_env(struct agent *a, struct env *env, uid_t uid)
{
	struct task *t = &a->task;
	env_set(env, "BURST_OUT", a->out_dir);
	env_set_user(a, env, uid);
	if (!t->hash) {
		char *kept = work_path(a, "kept");
		env_set(env, "BURST_KEPT", kept);
		env_set(env, "BURST_KEEP", t->build);
		free(kept);
		return;
	}
	CLEANUP(free_text) char *final = env_path(a, t->hash);
	env_set(env, "BURST_ENV", t->build);
	env_set(env, "BURST_ENV_FINAL", final);
}

/* Waits for the packages that the start script installs: only one package manager can run at a
 * time. */
#define TASK_RUNS                                                                                  \
	"n=0; while [ -e \"$BURST_HOME/installing\" ] && [ $n -lt 120 ]; do n=$((n + 1)); sleep "  \
	"1; done; "                                                                                \
	"exec sh \"$BURST_HOME/%s.sh\""

static int task_script(struct agent *a, const char *file, const char *script, uid_t uid)
{
	if (write_beside(file, script, 0700) < 0)
		return -1;
	return a->separate && uid ? chown(file, uid, uid) : 0;
}

void op_task(struct agent *a, const struct json *op)
{
	struct task *t = &a->task;
	const char *kind = json_text(op, "op", "");
	const char *script = json_text(op, "script", ""), *hash = json_text(op, "hash", NULL);
	bool setup = !strcmp(kind, "setup");
	uid_t uid = setup && !json_yes(op, "root") && a->separate ? SETUP_UID : 0;
	if (setup && (!hash || !name_safe(hash)))
		return task_answer(a, kind, false, false, 0, "setup needs a hash", NULL);
	if (setup && a->built && !strcmp(a->built, hash))
		return task_answer(a, kind, true, true, 0, NULL, a->built_id);
	int out = -1;
	char *file = xasprintf("%s/%s.sh", a->place.home, kind), *run = xasprintf(TASK_RUNS, kind);
	*t = (struct task){.kind = setup ? "setup" : "install", .out = -1, .began_ms = now_ms(a)};
	t->until_ms = now_ms(a) +
		      MIN(MAX(json_int(op, "timeout_s", 900), (int64_t)1), (int64_t)86400) * 1000;
	t->hash = setup ? xstrdup(hash) : NULL;
	t->uid = uid;
	t->build = work_path(a, setup ? "env" : "keep");
	remove_at(AT_FDCWD, t->build);
	struct env env = env_copy(&a->place.env);
	if (setup)
		env_add_object(&env, json_get(op, "env"));
	task_env(a, &env, uid);
	struct spawn s = {.script = run,
			  .kept = setup ? NULL : json_text(op, "kept", NULL),
			  .uid = uid,
			  .env = &env,
			  .in = -1};
	bool made = mkdirs(t->build, 0755) == 0 &&
		    (!a->separate || !uid || lchown(t->build, uid, uid) == 0);
	if (made && task_script(a, file, script, uid) == 0 && make_pipe(&t->out, &out) == 0) {
		s.out = s.err = out;
		t->pid = spawn(a, &s);
		nonblocking(t->out);
	}
	close_fd(&out);
	env_free(&env);
	free(file);
	free(run);
	if (t->pid <= 0) {
		int saved = errno;
		task_forget(t);
		task_answer(a, kind, false, false, 0, strerror(saved), NULL);
		check_volume(a);
	}
}

/* Runs in a child: copies the script's results to the volume. Prints "ok ID" and a note in a second
 * line, or the reason of a failure. */
static int task_keep(struct agent *a)
{
	const struct task *t = &a->task;
	char id[65], bad[PATH_BYTES_MAX] = "", no_archive[WHY_MAX] = "";
	bool packed = t->hash && a->env_root;
	int from = open_at(AT_FDCWD, t->build);
	if (from < 0 ||
	    tree_keep(from, t->uid, a->volume_fd, t->hash ? "env" : "debs", t->hash, id, bad,
		      packed ? no_archive : NULL) < 0 ||
	    volume_flush(&a->place) < 0) {
		printf("%s%s%s", bad, *bad ? ": " : "",
		       errno == EINVAL && *bad ? "a name that cannot be kept" : strerror(errno));
		fflush(stdout);
		return 1;
	}
	printf("ok %s", id);
	if (*no_archive)
		printf("\nno archive is kept of the environment: %s", no_archive);
	fflush(stdout);
	return 0;
}

static bool folder_is_empty(const char *path)
{
	CLEANUP(close_dir) DIR *d = opendir(path);
	return !d || !next_entry(d);
}

/* The reason why a script failed: its last line if that begins with "burst: ", else its last lines.
 */
static const char *task_reason(char *tail)
{
	const char *last = last_line(tail);
	return strncmp(last, "burst: ", 7) ? tail : last + 7;
}

void task_exited(struct agent *a, int status)
{
	struct task *t = &a->task;
	bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	kill_group(t->pid);
	t->pid = 0;
	task_read(a, 64);
	if (t->op)
		return on_start_checked(a, ok);
	if (t->line.len)
		event_log(a, 0, t->kind, t->line.s, t->line.len);
	t->line.len = 0;
	char error[1200];
	const char *id = "";
	if (ok && !t->keeping) {
		kill_strays(a); /* nothing may change the results from now on */
		t->keeping = true;
		t->until_ms = MAX(t->until_ms, now_ms(a) + START_CHECK_S * 1000);
		if (!t->hash && folder_is_empty(t->build))
			str_add(&t->result, "ok ");
		else if (task_begin_own(a, task_keep))
			return;
		else
			ok = false;
	}
	const char *words = task_reason(t->tail);
	snprintf(error, sizeof(error), "%s%s%s", t->timed_out ? "it took too long; " : "",
		 t->keeping ? "the result cannot be kept: " : "",
		 t->keeping ? str_text(&t->result) : words);
	if (ok && !strncmp(str_text(&t->result), "ok ", 3)) {
		id = t->result.s + 3;
		log_second_line(a, t->result.s);
	}
	if (!ok && t->keeping && !t->hash) {
		/* the packages are installed here; only the next pod lacks the copy */
		event_log(a, 0, t->kind, error, strlen(error));
		ok = true;
	}
	if (ok && t->hash) {
		free(a->built);
		a->built = xstrdup(t->hash);
		snprintf(a->built_id, sizeof(a->built_id), "%s", id);
	}
	remove_in_background(t->build);
	struct task done = *t;
	*t = (struct task){.out = -1};
	task_answer(a, done.kind, ok, false, now_ms(a) - done.began_ms, error, id);
	if (!ok)
		check_volume_for(a, error);
	task_forget(&done);
}
