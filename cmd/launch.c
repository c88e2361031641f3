/* launch.c - opens what a run needs: providers, locks, volumes, the job and the engine. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/path.h"
#include "caps.h"
#include "check.h"
#include "commit_tree.h"
#include "config/trust.h"
#include "deliver.h"
#include "deliver_run.h"
#include "jobs/common.h"
#include "net/http_trace.h"
#include "quick.h"
#include "run_flags.h"
#include "runs/keys.h"
#include "find_run.h"
#include "sync/tree.h"

enum { LEDGER_ROOM_BYTES = 16 << 20, PER_SEGMENT_BYTES = 1024, SECRET_LEAST = 8, PODS_MOST = 1000 };

void launch_init(struct launch *l, struct cmd_context *ctx)
{
	*l = (struct launch){.ctx = ctx, .starter = -1};
	run_init(&l->run, &ctx->runs);
	trust_keep_back(tree_keep_back);
}

void launch_free(struct launch *l)
{
	run_free(&l->run);
	free(l->renders_dir);
	free(l->gpus);
	for (char **gpu = l->chosen_gpus; gpu && *gpu; gpu++)
		free(*gpu);
	free(l->chosen_gpus);
	free(l->forecasts);
	json_decref(l->delivered);
}

/* ---- providers ---- */

int launch_open_providers(struct launch *l, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	size_t count = section_count(top, "provider");

	for (size_t i = 0; i < count; i++) {
		if (run_open_account(&l->run, section_item(top, "provider", i), err) == 0)
			continue;
		if (!err_is_credentials(err->kind) || count == 1)
			return -1;
		log_line(LOG_WARN, "%s; continuing without it", err->msg);
	}
	if (!l->run.setup.provider_count)
		return -1;
	err_clear(err);
	return 0;
}

/* ---- the job ---- */

static int lock_job(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	CLEANUP(free_text) char *dir = path_join(ctx->state_dir, "jobs");
	char key[DELIVER_KEY], note[64];

	if (path_mkdirs(dir, 0700, err) < 0)
		return -1;
	deliver_run_key(config_path(ctx->config) ? config_path(ctx->config) : "",
			config_job_name(ctx->config), key);
	CLEANUP(free_text) char *path = xasprintf("%s/%s.lock", dir, key);
	snprintf(note, sizeof(note), "process %ld\n", (long)getpid());
	if (path_lock(path, note, &l->run.job_lock, err) < 0) {
		if (err->kind == ERR_BUSY)
			err_set(err, ERR_BUSY,
				"job \"%s\" is already running (see `burst ps`, `burst attach`)",
				config_job_name(ctx->config));
		return -1;
	}
	return 0;
}

/* A delivery writes into the folder that its render has held, whatever stands at that path by now.
 */
static int given_output(void)
{
	const char *number = getenv(OUTPUT_FD_NAME);
	int fd = number ? atoi(number) : -1,
	    own = fd > 2 ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	unsetenv(OUTPUT_FD_NAME);
	if (own >= 0)
		close(fd);
	return own;
}

static int lock_output(struct launch *l, struct err *err)
{
	if (path_mkdirs(l->run.output_dir, 0777, err) < 0) {
		err->kind = ERR_CONFIG;
		return err_wrap(err, "output");
	}
	l->run.output_lock = given_output();
	if (l->run.output_lock < 0)
		l->run.output_lock = open(l->run.output_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->run.output_lock < 0 || faccessat(l->run.output_lock, ".", W_OK | X_OK, 0) < 0)
		return err_set(err, ERR_CONFIG, "output %s: cannot be written: %m",
			       l->run.output_dir);
	if (flock(l->run.output_lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_BUSY, "output %s: another run is writing there",
			       l->run.output_dir);
	path_hold_dir(l->run.output_dir, l->run.output_lock);
	return 0;
}

/* What travels travels as JSON: a value that is no text would arrive empty. From here on no log,
 * trace, error or ledger shows the values: short ones that no name calls secret ("1", "debug")
 * would only make the words around them unreadable. */
static int check_env(const struct section *conf, const struct job_needs *needs, struct err *err)
{
	for (const char *const *name = needs->env_names; name && *name; name++) {
		const char *value = getenv(*name);
		if (value && (strlen(value) >= SECRET_LEAST || http_trace_hides(*name)))
			log_secret(value);
		if (value && !utf8_valid(value, strlen(value)))
			return err_set(err, ERR_CONFIG,
				       "%s: job.env: the value of %s in your environment is not "
				       "UTF-8 text and cannot be sent to pods",
				       section_where(conf, "env"), *name);
	}
	return 0;
}

static int may_read(void *ctx, const char *key, const char *real, struct err *err)
{
	return config_may_read(ctx, key, real, err);
}

int launch_read_job(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	const struct section *top = config_top(ctx->config);
	struct engine_setup *s = &l->run.setup;
	const struct section *job = config_job(ctx->config);

	l->run.output_dir = path_join(config_dir(ctx->config), section_text(job, "output"));
	free(l->renders_dir);
	l->renders_dir = config_renders_dir();
	struct job_setup setup = {
		.conf = job,
		.base_dir = config_read_dir(ctx->config),
		.output_dir = l->run.output_dir,
		.name = config_job_name(ctx->config),
		.pods = section_has(top, "pods")
				? (int)MIN(MAX(section_int(top, "pods"), 1), PODS_MOST)
				: 0,
		.verbose = ctx->verbose > 0,
		.weights_url = section_text(top, "weights_url"),
		.may_read = may_read,
		.ctx = ctx->config,
		.commit = ctx->tree ? ctx->tree->commit : NULL,
		.renders_dir = l->renders_dir,
		.renders_max_bytes = section_int(top, "render_cache_mb") * 1000000,
		.image = section_text(section_group(top, "pod"), "image"),
		.code = section_has(section_group(top, "code"), "path"),
		.anew = ctx->anew &&
			ctx->cmd == &cmd_run, /* a resumed run has begun to: see run_resume() */
		.prune = ctx->prune,
		.mistakes = &ctx->mistakes,
	};
	s->job_ops = config_job_ops(ctx->config);
	if (s->job_ops->load(&s->job, &setup, err) < 0)
		return -1;
	return check_env(job, s->job_ops->needs(s->job), err);
}

/* renders: what only a new pod needs is checked as well. */
static int read_whole_job(struct launch *l, bool renders, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	size_t count;

	if (check_all(l, renders, err) < 0)
		return -1;
	s->output_dir = l->run.output_dir;
	s->job_ops->segments(s->job, &count);
	s->results = xcalloc(count, sizeof(*s->results));
	return 0;
}

static int find_cached(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	CLEANUP(str_free) struct str notes = STR_INIT;

	if (s->job_ops->find_cached(s->job, s->results, l->ctx->overwrite, err) < 0)
		return -1;
	int status = s->job_ops->bring ? s->job_ops->bring(s->job, s->results, &notes, err) : 0;
	for (const char *line = str_text(&notes); *line; line += strcspn(line, "\n") + 1)
		log_line(LOG_WARN, "%.*s", (int)strcspn(line, "\n"), line);
	return status;
}

int launch_load_job(struct launch *l, struct err *err)
{
	if (read_whole_job(l, l->ctx->cmd == &cmd_run, err) < 0 || lock_job(l, err) < 0 ||
	    lock_output(l, err) < 0 || job_check_output(l->run.output_dir, err) < 0)
		return -1;
	return find_cached(l, err);
}

/* Where something is left to be rendered, what its delivery would write over is told before that is
 * paid for. */
static int check_delivered(const struct launch *l, struct err *err)
{
	return launch_open_segments(l) ? deliver_check_output(l, err) : 0;
}

int launch_load_to_render(struct launch *l, struct err *err)
{
	return launch_load_job(l, err) < 0 ? -1 : check_delivered(l, err);
}

int launch_check_output(const struct launch *l, struct err *err)
{
	CLEANUP(free_text) char *path = xstrdup(l->run.output_dir);

	while (!path_exists(path) && strcmp(path, "/") && strcmp(path, ".")) {
		char *above = path_dir(path);
		free(path);
		path = above;
	}
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && access(path, W_OK | X_OK) == 0)
		return 0;
	if (strcmp(path, l->run.output_dir))
		err_set(err, ERR_CONFIG, "output %s: %s: cannot be written: %m", l->run.output_dir,
			path);
	else
		err_set(err, ERR_CONFIG, "output %s: cannot be written: %m", path);
	return err_about(err, "job.output");
}

static bool is_locked(const char *dir)
{
	CLEANUP(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

int launch_look_at_job(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	size_t count;

	if (read_whole_job(l, true, err) < 0)
		return -1;
	if (s->job_ops->find_cached(s->job, s->results, l->ctx->overwrite, err) == 0 &&
	    check_delivered(l, err) == 0)
		return 0;
	/* a file that came after the manifest was read belongs to a living run */
	if (err->kind != ERR_CONFIG || !is_locked(l->run.output_dir))
		return -1;
	err_clear(err);
	s->job_ops->segments(s->job, &count);
	memset(s->results, 0, count * sizeof(*s->results));
	return s->job_ops->find_cached(s->job, s->results, true, err);
}

size_t launch_open_segments(const struct launch *l)
{
	size_t count, open = 0;

	l->run.setup.job_ops->segments(l->run.setup.job, &count);
	for (size_t i = 0; i < count; i++)
		open += l->run.setup.results[i].state != SEGMENT_SAFE;
	return open;
}

/* ---- runs in the ledger ---- */

const char *const *launch_gpus(struct launch *l)
{
	const struct section *top = config_top(l->ctx->config);
	size_t count = section_count(top, "gpu");

	free(l->gpus);
	l->gpus = xcalloc(count + 1, sizeof(*l->gpus));
	for (size_t i = 0; i < count; i++)
		l->gpus[i] = section_item(top, "gpu", i);
	return count ? l->gpus : NULL;
}

void launch_conf_from_config(struct launch *l)
{
	const struct section *top = config_top(l->ctx->config);
	const struct section *caps = section_group(top, "caps"), *pod = section_group(top, "pod");
	const struct section *volume = section_group(top, "volume");
	struct engine_setup *s = &l->run.setup;
	struct core_conf *c = &s->conf;
	size_t segments = 0;

	s->job_ops->segments(s->job, &segments);
	c->pods = section_has(top, "pods") ? (int)section_int(top, "pods") : MAX(l->chosen_pods, 1);
	c->pods = MIN((size_t)c->pods, MAX(segments, 1));
	c->at_once = l->at_once;
	c->plan = l->plan;
	c->plan.pods_most = MAX(c->plan.pods_most, c->pods);
	c->canary = !s->job_ops->needs(s->job)->command;
	c->max_cost_microusd = section_int(caps, "max_cost");
	c->max_duration_ms = section_int(caps, "max_duration");
	c->max_price_microusd_h = section_int(caps, "max_price_per_hour");
	c->wait_ms = section_int(top, "wait");
	c->retry_until_up = section_bool(top, "retry_until_up");
	c->lease_ms = section_int(top, "lease");
	c->boot_limit_ms = section_int(top, "boot_limit");
	c->keep_ms = section_int(top, "keep_on_failure");
	c->unproven_ok = section_bool(pod, "allow_unproven_switch");
	c->check_tries = MAX(s->job_ops->needs(s->job)->tries, 1);
	s->want_spot = section_bool(top, "spot");
	s->gpus = l->chosen_gpus ? (const char *const *)l->chosen_gpus : launch_gpus(l);
	s->volume_name = section_text(volume, "name");
	s->volume_gb = section_int(volume, "size_gb");
	s->volume_create = section_bool(volume, "create");
	s->code_path = section_text(section_group(top, "code"), "path");
	s->more_to_come = section_has(top, "deliver") ||
			  (config_path(l->ctx->config) &&
			   deliver_run_is(l->ctx, config_path(l->ctx->config)));
	s->image = section_text(pod, "image");
	s->worker_root = section_bool(pod, "worker_root");
	s->disk_gb = section_int(pod, "disk_gb");
	s->cpu = section_int(pod, "cpu");
	s->memory_gb = section_int(pod, "memory_gb");
}

static int room_for_ledger(const struct launch *l, struct err *err)
{
	size_t segments = 0;
	int64_t room = path_free_bytes(l->ctx->state_dir);

	l->run.setup.job_ops->segments(l->run.setup.job, &segments);
	int64_t wanted = LEDGER_ROOM_BYTES + (int64_t)segments * PER_SEGMENT_BYTES;
	if (room >= 0 && room < wanted)
		return err_set(err, ERR_LOCAL,
			       "%s: only %lld MB free, but the ledger needs %lld MB: free some "
			       "space; nothing was rented",
			       l->ctx->state_dir, (long long)(room >> 20),
			       (long long)(wanted >> 20) + 1);
	return 0;
}

/* Half a path in the ledger would be another folder, or another job. */
static int fits_ledger(const char *what, const char *path, size_t room, struct err *err)
{
	if (strlen(path) < room)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s has a path of %zu bytes, more than the ledger's limit of %zu: move "
		       "it, or name another: %.*s...",
		       what, strlen(path), room - 1, utf8_fit(path, 200), path);
}

/* By its queue, which has written the id down for the requests that the run is for; else anew. */
static int name_run(struct launch *l, struct err *err)
{
	struct run_row same;

	if (!l->queued.run[0])
		return run_new_id(&l->ctx->runs, l->run.row.id, err);
	if (store_run(l->ctx->store, l->queued.run, &same, NULL) == 0)
		return err_set(err, ERR_BUG, "run %s of the queue has already started",
			       l->queued.run);
	COPY_TEXT(l->run.row.id, l->queued.run);
	return 0;
}

int launch_begin(struct launch *l, bool detached, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	struct run_row *r = &l->run.row;
	size_t segments = 0;

	const char *config = config_path(ctx->config) ? config_path(ctx->config) : "";
	launch_conf_from_config(l);
	l->run.setup.conf.detached = detached;
	if (fits_ledger("burst.cfg", config, sizeof(r->config), err) < 0 ||
	    fits_ledger("the output folder", l->run.output_dir, sizeof(r->output), err) < 0 ||
	    room_for_ledger(l, err) < 0)
		return -1;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &segments);
	if (name_run(l, err) < 0)
		return -1;
	COPY_TEXT(r->job, config_job_name(ctx->config));
	COPY_TEXT(r->type, l->run.setup.job_ops->type);
	COPY_TEXT(r->config, config);
	COPY_TEXT(r->output, l->run.output_dir);
	COPY_TEXT(r->machine, l->run.machine);
	COPY_TEXT(r->commit_id, ctx->tree ? ctx->tree->commit : "");
	r->status = RUN_RUNNING;
	r->started_ms = clock_wall_ms();
	r->max_cost_microusd = l->run.setup.conf.max_cost_microusd;
	r->deadline_ms = l->run.setup.conf.max_duration_ms
				 ? r->started_ms + l->run.setup.conf.max_duration_ms
				 : 0;
	r->total = (int64_t)segments;
	/* from here on the ledger says that it runs: the engine will hear them, and say how it
	 * ended */
	engine_hold_signals();
	if (run_take(&l->run, RUN_CLIENT, err) < 0 ||
	    run_keys_write(NULL, l->run.dir, list, segments, err) < 0 ||
	    run_flags_write(ctx, l->run.dir, err) < 0 || quick_keep(ctx, l->run.dir, err) < 0)
		return -1;
	if (caps_begin(l, err) == 0)
		return 0;
	if (err->kind == ERR_CAP) /* there is no such run: it has left no trace */
		path_remove_tree(l->run.dir, NULL);
	return -1;
}

/* ---- descriptors ---- */

int launch_check_width(struct launch *l, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	int64_t pods = section_has(top, "pods") ? section_int(top, "pods") : 1;
	long limit = files_raise();
	int open = files_open(), fit = engine_pods_fit(limit, open);

	l->run.setup.files = limit - open;
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

int launch_check_balance(struct launch *l, struct err *err)
{
	const struct engine_setup *s = &l->run.setup;
	int64_t cap_microusd =
		section_int(section_group(config_top(l->ctx->config), "caps"), "max_cost");
	struct err worst = {0};
	bool one_can_pay = false;

	for (int i = 0; i < s->provider_count; i++) {
		const struct engine_provider *p = &s->providers[i];
		struct op_result result = {.balance_microusd = -1};
		struct err why = {0};
		bool known = caller_ask(p, OP_BALANCE, NULL, BALANCE_MS, &result, &why) == 0 &&
			     result.balance_microusd >= 0;
		int64_t balance = result.balance_microusd;
		op_result_free(&result);
		if (!known || balance >= cap_microusd) {
			/* what cannot be asked now is found out by renting */
			one_can_pay = true;
			continue;
		}
		err_set(&worst, ERR_BALANCE,
			"%s: the balance of $%.2f cannot pay this run's cap of $%.2f: add credit, "
			"or lower caps.max_cost",
			p->ops->name, (double)balance / 1e6, (double)cap_microusd / 1e6);
		if (s->provider_count > 1)
			log_line(LOG_WARN, "%s", worst.msg);
	}
	return one_can_pay || !s->provider_count ? 0 : err_set(err, worst.kind, "%s", worst.msg);
}

/* ---- files without a pod ---- */

/* Keys of their own are tried before anything is rented: their pods would count on them. Whatever
 * else fails here, the run finds out. */
int launch_check_files(struct launch *l, struct err *err)
{
	const struct engine_setup *s = &l->run.setup;
	const char *volume =
		section_text(section_group(config_top(l->ctx->config), "volume"), "name");
	struct op_want want = {.volume = {.name = volume, .prove_files = true}};

	for (int i = 0; i < s->provider_count && volume && *volume; i++) {
		const struct engine_provider *p = &s->providers[i];
		struct op_result result = {0};
		struct err why = {0};
		if (!p->ops->files_ready || !p->ops->files_ready(p->handle, NULL))
			continue;
		bool fine = caller_ask(p, OP_VOLUME, &want, BALANCE_MS, &result, &why) == 0 ||
			    why.kind != ERR_CREDENTIALS;
		op_result_free(&result);
		if (!fine && s->provider_count == 1) {
			*err = why;
			return err_wrap(err, "%s", p->ops->name);
		}
		if (!fine)
			log_line(LOG_WARN, "%s: %s", p->ops->name, why.msg);
	}
	return 0;
}

/* ---- who works on it already ---- */

int launch_check_detached(const struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	const char *config = config_path(ctx->config);
	struct run_row *runs = NULL;
	size_t count = 0;
	int result = 0;

	if (store_runs(ctx->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		const struct run_row *r = &runs[i];
		if (!r->detached || strcmp(r->config, config ? config : "") ||
		    strcmp(r->job, config_job_name(ctx->config)))
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
