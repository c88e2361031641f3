/* checkpoint.c - $BURST_CHECKPOINT: the folder of a command that outlives it, and its snapshots. */
#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "bounds.h"
#include "env.h"
#include "events.h"
#include "files.h"
#include "json.h"
#include "place.h"
#include "process.h"
#include "snapshot.h"
#include "users.h"

enum {
	LOOK_MS = 1000, /* how often a folder is looked at that has not changed */
	AGAIN_MS = 200, /* after a change during the copy; doubles */
	AGAIN_MOST_MS = 5000,
	TRIES_AT_EXIT = 5,
	TRIES_TOLD = 12,        /* changes in a row after which the client warns: a minute or so */
	TROUBLE_MS = 30 * 1000, /* before the next try after a snapshot that could not be taken */
	ANSWER_MAX = 1024,
};

static const char PART[] = "checkpoint/.part";

void checkpoint_read_start(struct agent *a, const struct json *op)
{
	const struct json *how = json_get(op, "checkpoint");
	a->checkpoint_every_ms = MAX(json_int(how, "every_ms", 0), (int64_t)0);
	a->checkpoint_mean_s = MAX(json_int(how, "mean_s", 0), (int64_t)0);
	a->checkpoint_on_volume = json_yes(how, "volume");
	a->checkpoint_most = MAX(json_int(how, "most_bytes", INT64_MAX), (int64_t)0);
}

/* ---- the folder ---- */

/* Opens the folder of this run's checkpoints on the container's disk. Those of other runs go. */
static int run_checkpoints(struct agent *a)
{
	int all = open_folder(a->disk_fd, "checkpoint", true), of_run = -1;
	DIR *d = all < 0 ? NULL : fdopendir(dup(all));
	struct dirent *e;
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, a->run))
			remove_at(all, e->d_name);
	if (d)
		closedir(d);
	if (all >= 0)
		of_run = open_folder(all, a->run, true);
	close_fd(&all);
	return of_run;
}

/* Makes a folder that belongs to the command's user. */
static int make_theirs(const struct agent *a, int dir, const char *name)
{
	bool theirs = a->separate && !a->worker_root;
	if (remove_at(dir, name) < 0 || mkdirat(dir, name, 0755) < 0)
		return -1;
	return theirs ? fchownat(dir, name, WORKER_UID, WORKER_UID, AT_SYMLINK_NOFOLLOW) : 0;
}

/* The snapshot that the folder was filled from is noted beside it: after a restart of the agent the
 * folder is kept only if it continues the same one. */
static char *seed_path(const struct agent *a, const char *id)
{
	return xasprintf("%s/checkpoint/%s/.%s.from", a->disk, a->run, id);
}

static bool continues(const struct agent *a, const char *id, const struct json *given)
{
	struct str seed = {0};
	char *path = seed_path(a, id);
	bool same = !given || !strcmp(json_text(given, "attempt", ""), a->attempt) ||
		    (read_file(path, 64, &seed) == 0 &&
		     !strcmp(str_text(&seed), json_text(given, "sha256", "")));
	str_free(&seed);
	free(path);
	return same;
}

static void trouble(struct agent *a, const char *id, const char *error, const char *words,
		    int64_t bytes)
{
	struct str *b = event_begin(a, "checkpoint");
	js_text(b, "id", id);
	js_text(b, "error", error);
	js_text(b, "words", words);
	js_int(b, "bytes", bytes);
	event_end(a);
}

/* Runs in a child: unpacks the snapshot as the command's user. Prints what went wrong. */
static int fill(struct agent *a)
{
	const struct filling *f = &a->filling;
	char words[SNAPSHOT_WORDS] = "";
	if (a->separate && !a->worker_root && child_switch(a, WORKER_UID) < 0)
		snprintf(words, sizeof(words), "%s", strerror(errno));
	else if (snapshot_unpack(f->from, f->sha256, f->to, words) == 0)
		return 0;
	printf("%s", words);
	fflush(stdout);
	return 1;
}

/* Returns the child's pid, or 0 after reporting why the snapshot cannot be read. */
static pid_t fill_begin(struct agent *a, struct command *c, int dir, const struct json *given)
{
	struct filling *f = &a->filling;
	struct stat st;
	const char *path = json_text(given, "path", ""), *slash = strrchr(path, '/');
	char *fresh = xasprintf(".%s.new", c->id);
	int out = -1;
	*f = (struct filling){.from = -1, .to = -1};
	snprintf(f->sha256, sizeof(f->sha256), "%s", json_text(given, "sha256", ""));
	snprintf(c->checkpoint.spare, sizeof(c->checkpoint.spare), "%s", slash ? slash + 1 : "");
	f->from = path_inside(path) ? open_below(a->volume_fd, path, &st) : (errno = EINVAL, -1);
	if (f->from >= 0 && make_theirs(a, dir, fresh) == 0)
		f->to = openat(dir, fresh, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	pid_t pid = f->to < 0 || make_pipe(&c->filled, &out) < 0 ? -1 : spawn_own(a, fill, out);
	int saved = errno;
	close_fd(&out);
	close_fd(&f->from);
	close_fd(&f->to);
	if (pid <= 0)
		trouble(a, c->id, "lost", strerror(saved), 0);
	else
		snprintf(c->checkpoint.seed, sizeof(c->checkpoint.seed), "%s", f->sha256);
	free(fresh);
	return pid > 0 ? pid : 0;
}

static void folder_ready(struct agent *a, struct command *c)
{
	struct checkpoint *k = &c->checkpoint;
	k->began_ms = now_ms(a);
	k->due_ms = k->began_ms + a->checkpoint_every_ms;
}

pid_t checkpoint_prepare(struct agent *a, struct command *c, const char *task)
{
	struct json_doc doc;
	const struct json *given = json_get(json_read(&doc, task, strlen(task)), "checkpoint");
	struct stat st;
	int dir = run_checkpoints(a);
	pid_t pid = 0;
	c->checkpoint.dir = xasprintf("%s/checkpoint/%s/%s", a->disk, a->run, c->id);
	bool there = dir >= 0 && fstatat(dir, c->id, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		     S_ISDIR(st.st_mode) && continues(a, c->id, given);
	if (dir >= 0 && !there && make_theirs(a, dir, c->id) == 0 && given)
		pid = fill_begin(a, c, dir, given);
	if (there)
		snprintf(c->checkpoint.from, sizeof(c->checkpoint.from), "%s",
			 json_text(given, "sha256", ""));
	if (!pid)
		folder_ready(a, c);
	close_fd(&dir);
	json_free(&doc);
	return pid;
}

void checkpoint_filled(struct agent *a, struct command *c, int status)
{
	struct checkpoint *k = &c->checkpoint;
	struct str words = {0};
	char *fresh = xasprintf(".%s.new", c->id), *seed = seed_path(a, c->id);
	int dir = run_checkpoints(a);
	read_all(c->filled, ANSWER_MAX, &words);
	if (status == 0 && dir >= 0 && remove_at(dir, c->id) == 0 &&
	    renameat(dir, fresh, dir, c->id) == 0) {
		write_beside(seed, k->seed, 0600);
		memcpy(k->from, k->seed, sizeof(k->from));
		k->spare[0] = 0;
	} else {
		trouble(a, c->id, "lost", words.len ? words.s : "it could not be unpacked", 0);
		if (dir >= 0)
			remove_at(dir, fresh);
	}
	close_fd(&dir);
	close_fd(&c->filled);
	str_free(&words);
	free(fresh);
	free(seed);
	folder_ready(a, c);
}

void checkpoint_env(const struct command *c, struct env *env)
{
	env_set(env, "BURST_CHECKPOINT", c->checkpoint.dir);
}

void checkpoint_forget(struct agent *a, const char *id)
{
	char *path = xasprintf("%s/checkpoint/%s/%s", a->disk, a->run, id);
	if (access(path, F_OK) == 0)
		remove_in_background(path);
	free(path);
}

void checkpoint_free(struct command *c)
{
	close_fd(&c->filled);
	free(c->checkpoint.dir);
}

/* ---- snapshots ---- */

/* Older snapshots of the segment by this pod go: the newest one is durable. But the one that its
 * command could not begin with may hold more. */
static void remove_older(struct agent *a)
{
	const struct save *v = &a->save;
	int dir = open_folder(a->dir_fd, "checkpoint", false);
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *e;
	size_t len = strlen(v->id);
	char *newest = xasprintf("%s.%lld", v->id, (long long)v->number);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, v->id, len) && e->d_name[len] == '.' &&
		    !strchr(e->d_name + len + 1, '.') && strcmp(e->d_name, newest) != 0 &&
		    strcmp(e->d_name, v->spare) != 0)
			unlinkat(dir, e->d_name, 0);
	if (d)
		closedir(d);
	free(newest);
}

/* Gives the complete file its name. */
static int keep(struct agent *a, int fd)
{
	int dir = open_folder(a->dir_fd, "checkpoint", true);
	char *name = xasprintf("%s.%lld", a->save.id, (long long)a->save.number);
	int failed = dir < 0 || fsync(fd) < 0 || renameat(a->dir_fd, PART, dir, name) < 0;
	int saved = errno;
	close_fd(&dir);
	free(name);
	errno = saved;
	return failed ? -1 : 0;
}

static int open_part(struct agent *a)
{
	int folder = open_folder(a->dir_fd, "checkpoint", true);
	close_fd(&folder);
	unlinkat(a->dir_fd, PART, 0);
	return openat(a->dir_fd, PART, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

/* Runs in a child. Prints the result, by which save_answer() goes on. */
static int save_work(struct agent *a)
{
	struct snapshot s = {
		.from = open(a->save.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		.owner = a->separate && !a->worker_root ? WORKER_UID : 0,
		.most = a->checkpoint_most,
		.known = a->save.known};
	int fd = open_part(a);
	enum snapshot_end end = SNAPSHOT_FAILED;
	if (s.from < 0)
		snprintf(s.words, sizeof(s.words), "the folder is gone");
	else if (fd < 0)
		snprintf(s.words, sizeof(s.words), "it cannot be written: %s", strerror(errno));
	else
		end = snapshot_take(&s, fd);
	if (end == SNAPSHOT_TAKEN && keep(a, fd) < 0) {
		end = SNAPSHOT_FAILED;
		snprintf(s.words, sizeof(s.words), "it cannot be kept: %s", strerror(errno));
	}
	if (end != SNAPSHOT_TAKEN)
		unlinkat(a->dir_fd, PART, 0);
	printf("%d %lld %s %s %s", (int)end, (long long)s.bytes, *s.sha256 ? s.sha256 : "-",
	       *s.print ? s.print : "-", s.words);
	fflush(stdout);
	return 0;
}

static int flush_work(struct agent *a)
{
	return volume_flush(&a->place) < 0;
}

static bool save_child(struct agent *a, int (*work)(struct agent *))
{
	struct save *v = &a->save;
	int out = -1;
	v->pid = make_pipe(&v->out, &out) < 0 ? 0 : spawn_own(a, work, out);
	close_fd(&out);
	if (v->pid > 0)
		return true;
	v->pid = 0;
	close_fd(&v->out);
	return false;
}

static void save_begin(struct agent *a, struct command *c)
{
	struct save *v = &a->save;
	struct checkpoint *k = &c->checkpoint;
	*v = (struct save){.out = -1, .began_ms = now_ms(a)};
	snprintf(v->id, sizeof(v->id), "%s", c->id);
	snprintf(v->dir, sizeof(v->dir), "%s", k->dir);
	snprintf(v->known, sizeof(v->known), "%s", k->print);
	memcpy(v->from, k->from, sizeof(v->from));
	memcpy(v->spare, k->spare, sizeof(v->spare));
	v->ran_ms = v->began_ms - k->began_ms;
	v->number = (int64_t)a->next; /* no other snapshot of this pod has it */
	if (!save_child(a, save_work))
		k->due_ms = now_ms(a) + TROUBLE_MS;
}

static int64_t every_ms(const struct agent *a, const struct checkpoint *k)
{
	double took_s = (double)MAX(k->took_ms, (int64_t)1) / 1000,
	       between_s = (double)MAX(a->checkpoint_mean_s, (int64_t)1);
	return a->checkpoint_every_ms ? a->checkpoint_every_ms
				      : (int64_t)(checkpoint_every_s(took_s, between_s) * 1000);
}

static void report(struct agent *a, bool durable)
{
	const struct save *v = &a->save;
	struct str *b = event_begin(a, "checkpoint");
	js_text(b, "id", v->id);
	js_int(b, "number", v->number);
	js_int(b, "bytes", v->bytes);
	js_text(b, "sha256", v->sha256);
	js_int(b, "ms", now_ms(a) - v->began_ms);
	js_bool(b, "durable", durable);
	js_text(b, "from", v->from);
	js_int(b, "ran_ms", v->ran_ms);
	event_end(a);
	events_sync(a);
}

/* The file is complete. The event is written before the volume is made durable, so that a
 * client that finds the file there finds the event, too. */
static void taken(struct agent *a)
{
	report(a, false);
	if (a->checkpoint_on_volume)
		a->save.flushing = save_child(a, flush_work);
	else
		remove_older(a);
}

static void saved(struct agent *a, struct command *c)
{
	struct checkpoint *k = &c->checkpoint;
	k->took_ms = now_ms(a) - a->save.began_ms;
	k->due_ms = a->save.began_ms + every_ms(a, k);
	k->told = SNAPSHOT_TAKEN;
	snprintf(k->print, sizeof(k->print), "%s", a->save.print);
}

static void not_saved(struct agent *a, struct command *c, enum snapshot_end end, int64_t bytes,
		      const char *words)
{
	static const char *const errors[] = {[SNAPSHOT_MOVING] = "moving",
					     [SNAPSHOT_LARGE] = "large",
					     [SNAPSHOT_UNFIT] = "unfit",
					     [SNAPSHOT_FAILED] = "failed"};
	struct checkpoint *k = &c->checkpoint;
	k->due_ms = now_ms(a) + TROUBLE_MS;
	if (end == SNAPSHOT_MOVING)
		k->due_ms = now_ms(a) +
			    MIN((int64_t)AGAIN_MS << MIN(k->tries, 8), (int64_t)AGAIN_MOST_MS);
	if (k->told == (int)end || (end == SNAPSHOT_MOVING && k->tries < TRIES_TOLD))
		return;
	k->told = (int)end;
	trouble(a, c->id, errors[end], words, bytes);
}

static struct command *command_of(const struct agent *a, const char *id)
{
	for (int i = 0; i < a->worker_count; i++)
		if (a->workers[i].command && !strcmp(a->workers[i].command->id, id))
			return a->workers[i].command;
	return NULL;
}

/* What save_work() printed. */
static enum snapshot_end read_answer(struct save *v, char *text, const char **words)
{
	int end = SNAPSHOT_FAILED, at = 0;
	long long bytes = 0;
	*words = "its child ended early";
	if (sscanf(text, "%d %lld %64s %64s %n", &end, &bytes, v->sha256, v->print, &at) < 4 || !at)
		return SNAPSHOT_FAILED;
	v->bytes = bytes;
	*words = text + at;
	return (enum snapshot_end)end;
}

static void save_answer(struct agent *a, struct command *c, enum snapshot_end end,
			const char *words)
{
	struct checkpoint *k = &c->checkpoint;
	int64_t took_ms = now_ms(a) - a->save.began_ms;
	k->tries = end == SNAPSHOT_MOVING ? k->tries + 1 : 0;
	k->last = k->exited_ms && a->save.began_ms >= k->exited_ms &&
		  (end != SNAPSHOT_MOVING || k->tries > TRIES_AT_EXIT);
	if (end == SNAPSHOT_TAKEN)
		saved(a, c);
	else if (end == SNAPSHOT_SAME)
		k->due_ms = now_ms(a) + MAX((int64_t)LOOK_MS, 10 * took_ms);
	else
		not_saved(a, c, end, a->save.bytes, words);
}

/* The command whose snapshot this is, unless another one runs by now. */
static struct command *saved_command(const struct agent *a)
{
	struct command *c = command_of(a, a->save.id);
	int64_t began_ms = c ? c->checkpoint.began_ms : 0;
	return began_ms && began_ms <= a->save.began_ms ? c : NULL;
}

static void flushed(struct agent *a, bool fine)
{
	struct command *c = saved_command(a);
	if (fine) {
		report(a, true);
		remove_older(a);
	}
	if (c)
		save_answer(a, c, fine ? SNAPSHOT_TAKEN : SNAPSHOT_FAILED,
			    "the volume does not keep it");
}

bool checkpoint_exited(struct agent *a, pid_t pid, int status)
{
	struct save *v = &a->save;
	struct str text = {0};
	const char *words;
	if (!v->pid || pid != v->pid)
		return false;
	v->pid = 0;
	read_all(v->out, ANSWER_MAX, &text);
	close_fd(&v->out);
	str_addc(&text, 0);
	if (v->flushing) {
		flushed(a, status == 0);
	} else {
		enum snapshot_end end = read_answer(v, text.s, &words);
		struct command *c = saved_command(a);
		if (end == SNAPSHOT_TAKEN)
			taken(a);
		if (c && !v->flushing)
			save_answer(a, c, end, words);
	}
	str_free(&text);
	return true;
}

void checkpoint_tick(struct agent *a)
{
	struct command *first = NULL;
	if (a->save.pid || a->fatal)
		return;
	for (int i = 0; i < a->worker_count; i++) {
		struct command *c = a->workers[i].command;
		if (c && c->checkpoint.began_ms && now_ms(a) >= c->checkpoint.due_ms &&
		    (!first || c->checkpoint.due_ms < first->checkpoint.due_ms))
			first = c;
	}
	if (first)
		save_begin(a, first);
}

bool checkpoint_settled(struct agent *a, struct command *c)
{
	struct checkpoint *k = &c->checkpoint;
	if ((c->code == 0 && !c->halted) || k->last || !k->began_ms || a->fatal)
		return true;
	if (!k->exited_ms) {
		k->exited_ms = now_ms(a);
		k->due_ms = 0;
	}
	return false;
}
