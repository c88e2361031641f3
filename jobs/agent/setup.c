/* setup.c - `setup` and `install`: run a script and keep its results on the volume. */
#include "setup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "bounds.h"
#include "env.h"
#include "events.h"
#include "files.h"
#include "image.h"
#include "lines.h"
#include "packed.h"
#include "place.h"
#include "process.h"
#include "room.h"
#include "start.h"
#include "strays.h"
#include "take.h"
#include "task.h"
#include "users.h"

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
		python_of_image(a, python, sizeof(python));
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
	env_user(a, env, uid);
	if (!t->hash) {
		char *kept = work_path(a, "kept");
		env_set(env, "BURST_KEPT", kept);
		env_set(env, "BURST_KEEP", t->build);
		free(kept);
		return;
	}
	char *final = env_path(a, t->hash);
	env_set(env, "BURST_ENV", t->build);
	env_set(env, "BURST_ENV_FINAL", final);
	free(final);
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

void task_start(struct agent *a, const char *kind, const struct json *op)
{
	struct task *t = &a->task;
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
	int from = open(t->build, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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
	DIR *d = opendir(path);
	struct dirent *e;
	bool empty = true;
	while (d && empty && (e = readdir(d)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

/* The reason why a script failed: its last line if that begins with "burst: ", else its last lines.
 */
static const char *task_words(char *tail)
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
		return start_checked(a, ok);
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
	const char *words = task_words(t->tail);
	snprintf(error, sizeof(error), "%s%s%s", t->timed_out ? "it took too long; " : "",
		 t->keeping ? "the result cannot be kept: " : "",
		 t->keeping ? str_text(&t->result) : words);
	if (ok && !strncmp(str_text(&t->result), "ok ", 3)) {
		id = t->result.s + 3;
		note_line(a, t->result.s);
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
