/* run.c - one life of a run: its checks, id, row, locks, accounts, engine, end */
#include "runs.h"
#include "impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/path.h"
#include "base/str.h"

/* ---- runs: passes events to the caller's struct watch ---- */

void runs_note(const struct runs *rs, enum log_level level, const char *fmt, ...)
{
	va_list args;
	char *text;

	if (!rs->watch.note)
		return;
	va_start(args, fmt);
	int len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		abort();
	rs->watch.note(rs->watch.ctx, level, text);
	free(text);
}

/* ---- segment keys: keeps the identity of each segment from the run's begin ---- */

enum { KEYS_MAX_BYTES = 512 << 20, KEY_CHARS = SHA256_HEX - 1 };

struct run_keys {
	struct str text;   /* lines, each ended by a zero byte */
	const char **list; /* sorted by id */
	size_t count;
};

/* A line is "KEY ID". */
static const char *id_of(const char *line)
{
	return line + KEY_CHARS + 1;
}

static int compare_id(const void *a, const void *b)
{
	return strcmp(id_of(*(const char *const *)a), id_of(*(const char *const *)b));
}

/* Splits the text into keys->list. -1: a line is not "KEY ID". */
static int split_lines(struct run_keys *keys, struct err *err)
{
	size_t cap = 0, line = 0;

	for (char *at = keys->text.s, *end = at + keys->text.len; at < end;) {
		char *stop = memchr(at, '\n', (size_t)(end - at));
		line++;
		if (!stop || stop - at <= KEY_CHARS + 1 || at[KEY_CHARS] != ' ')
			return err_set(err, ERR_LOCAL, "line %zu is not \"KEY ID\"", line);
		*stop = '\0';
		GROW(keys->list, keys->count, cap);
		keys->list[keys->count++] = at;
		at = stop + 1;
	}
	if (keys->count)
		qsort(keys->list, keys->count, sizeof(*keys->list), compare_id);
	return 0;
}

int run_keys_read(struct run_keys **out, const char *run_dir, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(run_dir, "keys");
	struct run_keys *keys = xcalloc(1, sizeof(*keys));

	*out = NULL;
	keys->text = STR_INIT;
	if (path_read(path, KEYS_MAX_BYTES, &keys->text, err) < 0) {
		run_keys_free(keys);
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err);
		return 0;
	}
	if (split_lines(keys, err) < 0) {
		run_keys_free(keys);
		return err_wrap(err, "%s", path);
	}
	*out = keys;
	return 0;
}

void run_keys_free(struct run_keys *keys)
{
	if (!keys)
		return;
	str_free(&keys->text);
	free(keys->list);
	free(keys);
}

/* The line of the segment with this id; NULL: the run began without it. */
static const char *find_line(const struct run_keys *keys, const char *id)
{
	CLEANUP(free_text) char *wanted = xasprintf("%*s %s", KEY_CHARS, "", id);
	const char *line = wanted;
	const char **found = keys && keys->count ? bsearch(&line, keys->list, keys->count,
							   sizeof(*keys->list), compare_id)
						 : NULL;

	return found ? *found : NULL;
}

bool run_keys_fit(const struct run_keys *keys, const struct segment *segment)
{
	const char *line = find_line(keys, segment->id);

	return !line || !strncmp(line, segment->key, KEY_CHARS);
}

int run_keys_write(const struct run_keys *old, const char *run_dir, const struct segment *segments,
		   size_t count, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(run_dir, "keys");
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; old && i < old->count; i++)
		str_addf(&text, "%s\n", old->list[i]);
	for (size_t i = 0; i < count; i++)
		if (!find_line(old, segments[i].id))
			str_addf(&text, "%s %s\n", segments[i].key, segments[i].id);
	return path_write(path, str_text(&text), text.len, 0600, err);
}

/* ---- checks ----
 * Checks before anything is rented whether a run can succeed: descriptors, money, files, other
 * runs of its job. */

/* ---- descriptors ---- */

int run_check_width(struct run *run, int64_t pods, struct err *err)
{
	long limit = files_raise();
	int open = files_open(), fit = engine_pods_fit(limit, open);

	run->setup.files = limit - open;
	if (pods <= fit)
		return 0;
	err_set(err, ERR_CONFIG,
		"pods: %lld are too many: this process may open %ld files (`ulimit -n`), enough "
		"for %d pods; ask for fewer, or raise that limit",
		(long long)pods, limit, fit);
	return err_about(err, "pods");
}

/* ---- money ---- */

enum { BALANCE_MS = 10000 };

int run_check_balance(const struct run *run, int64_t cap_microusd, struct err *err)
{
	const struct engine_setup *s = &run->setup;
	struct err worst = {0};
	bool one_can_pay = false;

	for (int i = 0; i < s->provider_count; i++) {
		const struct engine_provider *p = &s->providers[i];
		struct op_result result = {.balance_microusd = -1};
		struct err why = {0};
		bool known = caller_perform(p, OP_BALANCE, NULL, BALANCE_MS, &result, &why) == 0 &&
			     result.balance_microusd >= 0;
		int64_t balance = result.balance_microusd;
		op_result_free(&result);
		if (!known || balance >= cap_microusd) {
			/* renting will show what cannot be checked now */
			one_can_pay = true;
			continue;
		}
		err_set(&worst, ERR_BALANCE,
			"%s: the balance of $%.2f cannot pay this run's cap of $%.2f: add credit, "
			"or lower caps.max_cost",
			p->ops->name, (double)balance / 1e6, (double)cap_microusd / 1e6);
		if (s->provider_count > 1)
			runs_note(run->runs, LOG_WARN, "%s", worst.msg);
	}
	return one_can_pay || !s->provider_count ? 0 : err_set(err, worst.kind, "%s", worst.msg);
}

/* ---- files without a pod ---- */

/* Tries separate keys for files before anything is rented, since pods would rely on them. The run
 * itself finds other faults. */
int run_check_files(const struct run *run, const char *volume, struct err *err)
{
	const struct engine_setup *s = &run->setup;
	struct op_want want = {.volume = {.name = volume, .prove_files = true}};

	for (int i = 0; i < s->provider_count && volume && *volume; i++) {
		const struct engine_provider *p = &s->providers[i];
		struct op_result result = {0};
		struct err why = {0};
		if (!p->ops->files_ready || !p->ops->files_ready(p->handle, NULL))
			continue;
		bool fine = caller_perform(p, OP_VOLUME, &want, BALANCE_MS, &result, &why) == 0 ||
			    why.kind != ERR_CREDENTIALS;
		op_result_free(&result);
		if (!fine && s->provider_count == 1) {
			*err = why;
			return err_wrap(err, "%s", p->ops->name);
		}
		if (!fine)
			runs_note(run->runs, LOG_WARN, "%s: %s", p->ops->name, why.msg);
	}
	return 0;
}

/* ---- other runs of the job ---- */

int runs_check_detached(const struct runs *rs, const char *config, const char *job, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int result = 0;

	if (store_runs(rs->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		const struct run_row *r = &runs[i];
		if (!r->detached || strcmp(r->config, config) || strcmp(r->job, job))
			continue;
		result = err_set(err, ERR_BUSY,
				 "job \"%s\" is already running: pods of the detached run %s "
				 "work on it (`burst attach %s` fetches its files, `burst "
				 "cancel %s` ends it)",
				 r->job, r->id, r->id, r->id);
	}
	free(runs);
	return result;
}

/* ---- lock: locks what only one client may use: its job and its output folder ---- */

enum { CHILD_MS = 3000, LOOK_MS = 20 };

int run_lock_job(struct run *run, const char *config, const char *job, struct err *err)
{
	CLEANUP(free_text) char *dir = path_join(run->runs->state_dir, "jobs");
	char key[RUN_JOB_KEY], note[64];

	if (path_mkdirs(dir, 0700, err) < 0)
		return -1;
	run_job_key(config, job, key);
	CLEANUP(free_text) char *path = xasprintf("%s/%s.lock", dir, key);
	snprintf(note, sizeof(note), "process %ld\n", (long)getpid());
	if (path_lock(path, note, &run->job_lock, err) < 0) {
		if (err->kind == ERR_BUSY)
			err_set(err, ERR_BUSY,
				"job \"%s\" is already running (see `burst ps`, `burst attach`)",
				job);
		return -1;
	}
	return 0;
}

/* Returns -1 if another holds it. A child of a killed client has this lock, too, until it executes
 * its program: waits for that. No lock but that of flock() is for folders. */
static int flock_folder(int fd)
{
	int64_t until = clock_boot_ms() + CHILD_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || clock_boot_ms() > until)
			return -1;
		poll(NULL, 0, LOOK_MS);
	}
	return 0;
}

int run_lock_output(struct run *run, struct err *err)
{
	if (path_mkdirs(run->output_dir, 0777, err) < 0) {
		err->kind = ERR_CONFIG;
		return err_wrap(err, "output");
	}
	run->output_lock = open(run->output_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run->output_lock < 0 || faccessat(run->output_lock, ".", W_OK | X_OK, 0) < 0)
		return err_set(err, ERR_CONFIG, "output %s: cannot be written: %m",
			       run->output_dir);
	if (flock_folder(run->output_lock) < 0)
		return err_set(err, ERR_BUSY, "output %s: another run is writing there",
			       run->output_dir);
	path_hold_dir(run->output_dir, run->output_lock);
	return 0;
}

void run_lend_output(struct run *to, const struct run *of)
{
	to->output_lock = of->output_lock;
	to->output_lent = true;
}

int run_check_output(const struct run *run, struct err *err)
{
	CLEANUP(free_text) char *path = xstrdup(run->output_dir);

	while (!path_exists(path) && strcmp(path, "/") && strcmp(path, ".")) {
		char *above = path_dir(path);
		free(path);
		path = above;
	}
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && access(path, W_OK | X_OK) == 0)
		return 0;
	if (strcmp(path, run->output_dir))
		err_set(err, ERR_CONFIG, "output %s: %s: cannot be written: %m", run->output_dir,
			path);
	else
		err_set(err, ERR_CONFIG, "output %s: cannot be written: %m", path);
	return err_about(err, "job.output");
}

bool run_output_is_locked(const char *dir)
{
	CLEANUP(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

/* ---- run ----
 * One life of a run: opens its accounts, takes its lock and its pods, and frees all of it. */

void run_init(struct run *run, const struct runs *rs)
{
	*run = (struct run){.runs = rs, .lock = -1, .job_lock = -1, .output_lock = -1};
	run->setup.kit = rs->kit;
	run->setup.run = &run->row;
	run->setup.verbose = rs->verbose;
	run->setup.store = rs->store;
	if (rs->store)
		runs_machine(rs, run->machine);
	COPY_TEXT(run->setup.conf.machine, run->machine);
}

void run_free(struct run *run)
{
	for (int i = 0; i < run->setup.provider_count; i++)
		run->setup.providers[i].ops->close(run->setup.providers[i].handle);
	if (run->setup.job)
		run->setup.job_ops->free(run->setup.job);
	free(run->setup.results);
	free(run->dir);
	free(run->output_dir);
	free(run->adopted);
	free(run->unsaved);
	fd_close(run->lock);
	fd_close(run->job_lock);
	if (run->output_lock >= 0 && !run->output_lent) {
		fd_close(run->output_lock);
		path_hold_dir(NULL, -1);
	}
}

const struct engine_provider *run_provider(const struct run *run, const char *name)
{
	for (int i = 0; i < run->setup.provider_count; i++)
		if (!strcmp(run->setup.providers[i].ops->name, name))
			return &run->setup.providers[i];
	return NULL;
}

int run_open_account(struct run *run, const char *provider, struct err *err)
{
	const struct runs *rs = run->runs;
	struct engine_setup *s = &run->setup;
	struct engine_provider account = {.store = rs->store};

	if (run_provider(run, provider))
		return 0;
	if (s->provider_count == CORE_PROVIDERS_MAX)
		return err_set(err, ERR_CONFIG, "more than %d providers", CORE_PROVIDERS_MAX);
	if (engine_ready(err) < 0 || rs->open_account(rs->ctx, provider, &account, err) < 0)
		return -1;
	s->providers[s->provider_count++] = account;
	return 0;
}

int run_lock_folder(struct run *run, const char *who, struct err *err)
{
	CLEANUP(free_text) char *lock = run_path(run->runs, run->row.id, "lock");
	char note[64];

	run->dir = run_path(run->runs, run->row.id, NULL);
	if (path_mkdirs(run->dir, 0700, err) < 0)
		return -1;
	snprintf(note, sizeof(note), "%s %ld\n", who, (long)getpid());
	if (path_lock(lock, note, &run->lock, err) < 0) {
		if (err->kind == ERR_BUSY && !strncmp(err->msg, RUN_CLIENT " ", sizeof(RUN_CLIENT)))
			err_set(err, ERR_BUSY,
				"run %s already has a client (see `burst attach %s`)", run->row.id,
				run->row.id);
		else if (err->kind == ERR_BUSY)
			err_wrap(err, "run %s: its lock is held; try again in a moment",
				 run->row.id);
		return -1;
	}
	run->setup.run_dir = run->dir;
	COPY_TEXT(run->setup.conf.run, run->row.id);
	return 0;
}

struct pod_row *run_pods(const struct run *run, size_t *count)
{
	struct pod_row *pods = NULL;
	size_t n = 0, at;

	if (!run->row.id[0] ||
	    store_pods(run->runs->store, run->row.id, false, &pods, &n, NULL) < 0)
		pods = NULL, n = 0;
	pods = xrealloc(pods, (n + run->unsaved_count + 1) * sizeof(*pods));
	for (size_t i = 0; i < run->unsaved_count; i++) {
		for (at = 0; at < n && strcmp(pods[at].attempt, run->unsaved[i].attempt); at++)
			;
		pods[at] = run->unsaved[i];
		n += at == n;
	}
	*count = n;
	return pods;
}

/* ---- begin: begins a new run: its id, its row, its folder, its lock ---- */

enum { LEDGER_ROOM_BYTES = 16 << 20, PER_SEGMENT_BYTES = 1024 };

/* Refuses to begin a run that the ledger may have no room for on the disk. */
static int check_ledger_room(const struct run *run, struct err *err)
{
	size_t segments = 0;
	int64_t room = path_free_bytes(run->runs->state_dir);

	run->setup.job_ops->segments(run->setup.job, &segments);
	int64_t wanted = LEDGER_ROOM_BYTES + (int64_t)segments * PER_SEGMENT_BYTES;
	if (room >= 0 && room < wanted)
		return err_set(err, ERR_LOCAL,
			       "%s: only %lld MB free, but the ledger needs %lld MB: free some "
			       "space; nothing was rented",
			       run->runs->state_dir, (long long)(room / 1000000),
			       (long long)(wanted / 1000000) + 1);
	return 0;
}

/* Refuses a path that the ledger would truncate: it would name another folder or job. */
static int check_path_length(const char *what, const char *path, size_t room, struct err *err)
{
	if (strlen(path) < room)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s has a path of %zu bytes, more than the ledger's limit of %zu: move "
		       "it, or name another: %.*s...",
		       what, strlen(path), room - 1, utf8_fit(path, 200), path);
}

/* Takes the id that a queue has recorded for its requests; "": draws a new one. */
static int take_or_draw_id(struct run *run, const char *id, struct err *err)
{
	struct run_row same;

	if (!id[0])
		return run_new_id(run->runs, run->row.id, err);
	if (store_run(run->runs->store, id, &same, NULL) == 0)
		return err_set(err, ERR_BUG, "run %s of the queue has already started", id);
	COPY_TEXT(run->row.id, id);
	return 0;
}

static void fill_row(struct run *run, const struct run_want *want, size_t segments)
{
	const struct core_conf *conf = &run->setup.conf;
	struct run_row *r = &run->row;

	COPY_TEXT(r->job, want->job);
	COPY_TEXT(r->type, run->setup.job_ops->type);
	COPY_TEXT(r->config, want->config);
	COPY_TEXT(r->output, run->output_dir);
	COPY_TEXT(r->machine, run->machine);
	COPY_TEXT(r->commit_id, want->commit);
	COPY_TEXT(r->stage, want->stage ? want->stage : "");
	COPY_TEXT(r->part_of, want->stage ? want->part_of : "");
	COPY_TEXT(r->stage_input, want->stage ? want->stage_input : "");
	r->status = RUN_RUNNING;
	r->started_ms = clock_wall_ms();
	r->max_cost_microusd = conf->max_cost_microusd;
	r->ends_by_ms = conf->max_duration_ms ? r->started_ms + conf->max_duration_ms : 0;
	r->total = (int64_t)segments;
}

int run_begin(struct run *run, const struct run_want *want, struct err *err)
{
	size_t segments = 0;

	if (check_path_length("burst.cfg", want->config, sizeof(run->row.config), err) < 0 ||
	    check_path_length("the output folder", run->output_dir, sizeof(run->row.output), err) <
		    0 ||
	    check_ledger_room(run, err) < 0 || take_or_draw_id(run, want->id, err) < 0)
		return -1;
	const struct segment *list = run->setup.job_ops->segments(run->setup.job, &segments);
	fill_row(run, want, segments);
	/* the ledger shows a running run from here on, so the engine handles signals and records
	 * the end */
	engine_block_signals();
	if (run_lock_folder(run, RUN_CLIENT, err) < 0 ||
	    run_keys_write(NULL, run->dir, list, segments, err) < 0 ||
	    want->keep(want->ctx, run, err) < 0)
		return -1;
	if (want->reserve(want->ctx, run, err) == 0)
		return 0;
	if (err->kind == ERR_CAP) /* the run does not exist and leaves no trace */
		path_remove_tree(run->dir, NULL);
	return -1;
}

/* ---- go: drives a run's engine until its last pod is gone, and records how the run ended ---- */

size_t run_open_segments(const struct run *run)
{
	size_t count, open = 0;

	run->setup.job_ops->segments(run->setup.job, &count);
	for (size_t i = 0; i < count; i++)
		open += run->setup.results[i].state != SEGMENT_SAFE;
	return open;
}

int run_go(struct run *run, const struct run_watch *watch)
{
	struct engine_setup *s = &run->setup;

	s->progress = watch->progress;
	s->output = watch->output;
	s->ctx = watch->ctx;
	run->had_work = s->job && run_open_segments(run) > 0;
	struct engine *e = engine_new(s);
	int status = engine_run(e, &run->err);
	run->finished_well = engine_finished_well(e);
	run->unsaved_count = engine_unsaved_pods(e, &run->unsaved);
	engine_free(e);
	return status;
}

/* Writes the end once, so that a reader never sees an end that may still change. Status 9 becomes
 * 1: a pod that may still bill belongs to the delivery, whose own run records it. */
void run_write_end(struct run *run, int status, const struct err *err)
{
	struct run_row *r = &run->row;
	struct err why = {0};

	r->status = status == 0 ? RUN_DONE : status > 128 ? RUN_INTERRUPTED : RUN_PARTIAL;
	COPY_TEXT(r->error_code, status ? err_kind_name(err->kind) : "");
	COPY_TEXT(r->error, status ? err->msg : "");
	r->exit_status = status == 9 ? 1 : status;
	if (!r->id[0])
		return;
	r->ended_ms = clock_wall_ms();
	engine_note_unfinished(run->runs->store, r->id, status != 0);
	if (store_put_run(run->runs->store, r, &why) < 0)
		runs_note(run->runs, LOG_ERROR, "cannot write the ledger: %s", why.msg);
}
