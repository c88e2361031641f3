#include "launch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/files.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/path.h"
#include "core/reap.h"
#include "deliver.h"
#include "deliver_run.h"
#include "jobs/common.h"
#include "output.h"
#include "report.h"
#include "run_flags.h"
#include "run_keys.h"
#include "volume_warm.h"

enum { OVERDUE_ASK_MS = 90 * 1000 /* a minute of it for the account's limits */, LEDGER_ROOM_BYTES = 16 << 20, PER_SEGMENT_BYTES = 1024, ERRORS_MOST = 100 };

void launch_init(struct launch *l, struct cmd_context *ctx)
{
	*l = (struct launch){.ctx = ctx, .run_lock = -1, .job_lock = -1, .output_lock = -1};
	l->setup.run = &l->run;
	l->setup.store = ctx->store;
	l->setup.verbose = ctx->verbose > 0;
	if (!store_fact(ctx->store, "machine", l->machine, sizeof(l->machine))) {
		random_hex(l->machine, 8);
		store_put_fact(ctx->store, "machine", l->machine, NULL);
	}
	COPY_TEXT(l->setup.conf.machine, l->machine);
}

void launch_free(struct launch *l)
{
	for (int i = 0; i < l->setup.provider_count; i++)
		l->setup.providers[i].ops->close(l->setup.providers[i].handle);
	if (l->setup.job)
		l->setup.job_ops->free(l->setup.job);
	free(l->setup.results);
	free(l->run_dir);
	free(l->output_dir);
	free(l->gpus);
	free(l->adopted);
	free(l->unsaved);
	fd_close(l->run_lock);
	fd_close(l->job_lock);
	fd_close(l->output_lock);
	json_decref(l->delivered);
}

/* ---- providers ---- */

int launch_open_provider(struct launch *l, const char *name, struct err *err)
{
	struct engine_setup *s = &l->setup;
	const struct provider_ops *ops = provider_find(name);

	for (int i = 0; i < s->provider_count; i++)
		if (!strcmp(s->providers[i].ops->name, name))
			return 0;
	if (!ops)
		return err_set(err, ERR_CONFIG, "this burst has no provider \"%s\" (BURST_PROVIDER_PATH names objects that hold more)", name);
	if (s->provider_count == CORE_PROVIDERS_MAX)
		return err_set(err, ERR_CONFIG, "more than %d providers", CORE_PROVIDERS_MAX);
	if (engine_ready(err) < 0)
		return -1;
	const struct section *conf = config_account(l->ctx->config, name, err);
	struct provider *handle = NULL;
	if (!conf || ops->open(&handle, conf, l->ctx->state_dir, err) < 0)
		return -1;
	s->providers[s->provider_count++] = (struct engine_provider){ops, handle, l->ctx->store};
	return 0;
}

int launch_open_providers(struct launch *l, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	size_t count = section_count(top, "provider");

	for (size_t i = 0; i < count; i++) {
		if (launch_open_provider(l, section_item(top, "provider", i), err) == 0)
			continue;
		if (!err_is_credentials(err->kind) || count == 1)
			return -1;
		log_line(LOG_WARN, "%s; going on without it", err->msg);
	}
	if (!l->setup.provider_count)
		return -1;
	err_clear(err);
	return 0;
}

/* ---- the job ---- */

static int lock_job(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	CLEANUP(free_text) char *dir = path_join(ctx->state_dir, "jobs");
	CLEANUP(free_text) char *identity = xasprintf("%s\n%s", config_path(ctx->config) ? config_path(ctx->config) : "",
						      config_job_name(ctx->config));
	char hex[SHA256_HEX], note[64];

	if (path_mkdirs(dir, 0700, err) < 0)
		return -1;
	sha256_hex(identity, strlen(identity), hex);
	CLEANUP(free_text) char *path = xasprintf("%s/%.24s.lock", dir, hex);
	snprintf(note, sizeof(note), "process %ld\n", (long)getpid());
	if (path_lock(path, note, &l->job_lock, err) < 0) {
		if (err->kind == ERR_BUSY)
			err_set(err, ERR_BUSY, "job \"%s\" is running already (see `burst ps`, `burst attach`)",
				config_job_name(ctx->config));
		return -1;
	}
	return 0;
}

static int lock_output(struct launch *l, struct err *err)
{
	if (path_mkdirs(l->output_dir, 0777, err) < 0) {
		err->kind = ERR_CONFIG;
		return err_wrap(err, "output");
	}
	l->output_lock = open(l->output_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->output_lock < 0 || access(l->output_dir, W_OK | X_OK) < 0)
		return err_set(err, ERR_CONFIG, "output %s: cannot be written: %m", l->output_dir);
	if (flock(l->output_lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_BUSY, "output %s: another run is writing there", l->output_dir);
	return 0;
}

/* What travels travels as JSON: a value that is no text would arrive empty. */
static int check_env(const struct section *conf, const struct job_needs *needs, struct err *err)
{
	for (const char *const *name = needs->env_names; name && *name; name++) {
		const char *value = getenv(*name);
		if (value && !utf8_valid(value, strlen(value)))
			return err_set(err, ERR_CONFIG, "%s: job.env: the value of %s in your environment is no UTF-8 text, and cannot travel to pods",
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
	struct engine_setup *s = &l->setup;
	const struct section *job = config_job(ctx->config);

	l->output_dir = path_join(config_dir(ctx->config), section_text(job, "output"));
	struct job_setup setup = {
		.conf = job,
		.base_dir = config_dir(ctx->config),
		.output_dir = l->output_dir,
		.name = config_job_name(ctx->config),
		.pods = section_has(top, "pods") ? (int)section_int(top, "pods") : 0,
		.verbose = ctx->verbose > 0,
		.may_read = may_read,
		.ctx = ctx->config,
	};
	s->job_ops = config_job_ops(ctx->config);
	if (s->job_ops->load(&s->job, &setup, err) < 0)
		return -1;
	return check_env(job, s->job_ops->needs(s->job), err);
}

static int read_whole_job(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->setup;
	size_t count;

	if (deliver_check(l->ctx->config, err) < 0 || launch_read_job(l, err) < 0)
		return -1;
	s->output_dir = l->output_dir;
	s->job_ops->segments(s->job, &count);
	s->results = xcalloc(count, sizeof(*s->results));
	return 0;
}

int launch_load_job(struct launch *l, struct err *err)
{
	if (read_whole_job(l, err) < 0 || lock_job(l, err) < 0 || lock_output(l, err) < 0 || job_check_output(l->output_dir, err) < 0)
		return -1;
	return l->setup.job_ops->find_cached(l->setup.job, l->setup.results, l->ctx->overwrite, err);
}

int launch_check_output(const struct launch *l, struct err *err)
{
	CLEANUP(free_text) char *path = xstrdup(l->output_dir);

	while (!path_exists(path) && strcmp(path, "/") && strcmp(path, ".")) {
		char *above = path_dir(path);
		free(path);
		path = above;
	}
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || access(path, W_OK | X_OK) < 0)
		return err_set(err, ERR_CONFIG, "output %s: %s: cannot be written: %m", l->output_dir, path);
	return 0;
}

static bool is_locked(const char *dir)
{
	CLEANUP(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

int launch_look_at_job(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->setup;
	size_t count;

	if (read_whole_job(l, err) < 0 || launch_check_output(l, err) < 0)
		return -1;
	if (s->job_ops->find_cached(s->job, s->results, l->ctx->overwrite, err) == 0 &&
	    (!launch_open_segments(l) || deliver_check_output(l, err) == 0))
		return 0;
	/* a file that came after the manifest was read is a living run's, and nobody else's */
	if (err->kind != ERR_CONFIG || !is_locked(l->output_dir))
		return -1;
	err_clear(err);
	s->job_ops->segments(s->job, &count);
	memset(s->results, 0, count * sizeof(*s->results));
	return s->job_ops->find_cached(s->job, s->results, true, err);
}

size_t launch_open_segments(const struct launch *l)
{
	size_t count, open = 0;

	l->setup.job_ops->segments(l->setup.job, &count);
	for (size_t i = 0; i < count; i++)
		open += l->setup.results[i].state != SEGMENT_SAFE;
	return open;
}

/* ---- runs in the ledger ---- */

static char *run_dir_of(const struct cmd_context *ctx, const char *run)
{
	return xasprintf("%s/runs/%s", ctx->state_dir, run);
}

bool run_is_alive(const struct cmd_context *ctx, const char *run)
{
	CLEANUP(free_text) char *path = xasprintf("%s/runs/%s/lock", ctx->state_dir, run);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	bool alive = flock(fd, LOCK_SH | LOCK_NB) < 0; /* shared: two that look at once take neither for a client */
	close(fd);
	return alive;
}

/* who: RUN_CLIENT, or what else holds it; `cancel` stops clients. */
static int take_run(struct launch *l, const char *who, struct err *err)
{
	CLEANUP(free_text) char *lock = NULL;
	char note[64];

	l->run_dir = run_dir_of(l->ctx, l->run.id);
	if (path_mkdirs(l->run_dir, 0700, err) < 0)
		return -1;
	lock = path_join(l->run_dir, "lock");
	snprintf(note, sizeof(note), "%s %ld\n", who, (long)getpid());
	if (path_lock(lock, note, &l->run_lock, err) < 0) {
		if (err->kind == ERR_BUSY && !strncmp(err->msg, RUN_CLIENT " ", sizeof(RUN_CLIENT)))
			err_set(err, ERR_BUSY, "run %s has a client already (see `burst attach %s`)", l->run.id, l->run.id);
		else if (err->kind == ERR_BUSY)
			err_wrap(err, "run %s: try again in a moment: its lock is held", l->run.id);
		return -1;
	}
	l->setup.run_dir = l->run_dir;
	COPY_TEXT(l->setup.conf.run, l->run.id);
	return 0;
}

static void conf_from_config(struct launch *l)
{
	const struct section *top = config_top(l->ctx->config);
	const struct section *caps = section_group(top, "caps"), *pod = section_group(top, "pod");
	const struct section *volume = section_group(top, "volume");
	struct engine_setup *s = &l->setup;
	struct core_conf *c = &s->conf;
	size_t gpus = section_count(top, "gpu"), segments = 0;

	s->job_ops->segments(s->job, &segments);
	c->pods = section_has(top, "pods") ? (int)section_int(top, "pods") : 1;
	c->pods = MIN((size_t)c->pods, MAX(segments, 1));
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
	l->gpus = xcalloc(gpus + 1, sizeof(*l->gpus));
	for (size_t i = 0; i < gpus; i++)
		l->gpus[i] = section_item(top, "gpu", i);
	s->gpus = gpus ? l->gpus : NULL;
	s->volume_name = section_text(volume, "name");
	s->volume_gb = section_int(volume, "size_gb");
	s->volume_create = section_bool(volume, "create");
	s->code_path = section_text(section_group(top, "code"), "path");
	s->more_to_come = section_has(top, "deliver") || (config_path(l->ctx->config) && deliver_run_is(l->ctx, config_path(l->ctx->config)));
	s->image = section_text(pod, "image");
	s->disk_gb = section_int(pod, "disk_gb");
	s->cpu = section_int(pod, "cpu");
	s->memory_gb = section_int(pod, "memory_gb");
}

static int room_for_ledger(const struct launch *l, struct err *err)
{
	size_t segments = 0;
	int64_t room = path_free_bytes(l->ctx->state_dir);

	l->setup.job_ops->segments(l->setup.job, &segments);
	int64_t wanted = LEDGER_ROOM_BYTES + (int64_t)segments * PER_SEGMENT_BYTES;
	if (room >= 0 && room < wanted)
		return err_set(err, ERR_LOCAL,
			       "%s: only %lld MB free, the ledger needs %lld: nothing is rented that could not be written down",
			       l->ctx->state_dir, (long long)(room >> 20), (long long)(wanted >> 20) + 1);
	return 0;
}

/* Half a path in the ledger would be another folder, or another job. */
static int fits_ledger(const char *what, const char *path, size_t room, struct err *err)
{
	if (strlen(path) < room)
		return 0;
	return err_set(err, ERR_CONFIG, "%s has a path of %zu bytes, and the ledger takes %zu: move it, or name another: %.200s...", what,
		       strlen(path), room - 1, path);
}

int launch_begin(struct launch *l, bool detached, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	struct run_row *r = &l->run;
	size_t segments = 0;
	char random[5];

	const char *config = config_path(ctx->config) ? config_path(ctx->config) : "";
	conf_from_config(l);
	l->setup.conf.detached = detached;
	if (fits_ledger("burst.cfg", config, sizeof(r->config), err) < 0 ||
	    fits_ledger("the output folder", l->output_dir, sizeof(r->output), err) < 0 || room_for_ledger(l, err) < 0)
		return -1;
	const struct segment *list = l->setup.job_ops->segments(l->setup.job, &segments);
	/* sortable by time, unique by chance: 1121-004107-9f3a */
	char when[32];
	clock_rfc3339(when, sizeof(when), clock_wall_ms());
	random_hex(random, 2);
	snprintf(r->id, sizeof(r->id), "%.2s%.2s-%.2s%.2s%.2s-%s", when + 5, when + 8, when + 11, when + 14, when + 17, random);
	COPY_TEXT(r->job, config_job_name(ctx->config));
	COPY_TEXT(r->type, l->setup.job_ops->type);
	COPY_TEXT(r->config, config);
	COPY_TEXT(r->output, l->output_dir);
	COPY_TEXT(r->machine, l->machine);
	COPY_TEXT(r->status, "running");
	r->started_ms = clock_wall_ms();
	r->max_cost_microusd = l->setup.conf.max_cost_microusd;
	r->deadline_ms = l->setup.conf.max_duration_ms ? r->started_ms + l->setup.conf.max_duration_ms : 0;
	r->total = (int64_t)segments;
	engine_hold_signals(); /* from here on the ledger says that it runs: the engine will hear them, and say how it ended */
	if (take_run(l, RUN_CLIENT, err) < 0 || run_keys_write(NULL, l->run_dir, list, segments, err) < 0 ||
	    run_flags_write(ctx, l->run_dir, err) < 0)
		return -1;
	return store_put_run(ctx->store, r, err);
}

static void note_provider(struct launch *l, const char *name)
{
	for (int i = 0; i < l->rented_at_count; i++)
		if (!strcmp(l->rented_at[i], name))
			return;
	if (l->rented_at_count < CORE_PROVIDERS_MAX)
		COPY_TEXT(l->rented_at[l->rented_at_count++], name);
}

static void add_up(struct run_row *run, const struct pod_row *pod)
{
	run->billed_ms += pod->billed_ms;
	run->compute_ms += pod->compute_ms;
	run->wasted_ms += pod->wasted_ms;
	run->cost_microusd += pod->cost_microusd;
}

/* Pods that are gone already have cost what their rows say: that much of the cap is used up. What some of them finished may
 * still be on its volume only. */
static int take_over_pods(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->setup;
	struct pod_row *pods = NULL;
	size_t count, open = 0;
	int64_t maybe = 0;

	if (store_pods(l->ctx->store, l->run.id, false, &pods, &count, err) < 0)
		return -1;
	l->run.billed_ms = l->run.compute_ms = l->run.wasted_ms = l->run.cost_microusd = 0;
	for (size_t i = 0; i < count; i++) {
		struct pod_row pod = pods[i];
		bool over = pod_row_over(&pod);
		note_provider(l, pod.provider);
		if (!over || (pod.volume_safe && !s->conf.reap))
			pods[open++] = pod;
		if (!over)
			continue;
		add_up(&l->run, &pod);
		maybe += report_may_have_cost(&pod);
	}
	if (s->conf.max_cost_microusd)
		s->conf.max_cost_microusd = MAX(s->conf.max_cost_microusd - l->run.cost_microusd - maybe, 1);
	l->adopted = pods;
	s->handed_over = l->run.detached;
	s->adopt = pods;
	s->adopt_count = open;
	return 0;
}

int launch_write_off(struct cmd_context *ctx, struct pod_row *pod, struct err *err)
{
	int64_t now_ms = clock_wall_ms(), end_ms = MIN(now_ms, pod->hard_end_s * 1000);
	int64_t most_ms = pod->create_ms ? MAX(end_ms - pod->create_ms, 0) : 0;

	pod->gone_ms = pod->create_ms ? MAX(end_ms, pod->create_ms) : now_ms;
	pod->billed_ms = MAX(pod->billed_ms, (most_ms + 999) / 1000 * 1000);
	pod->cost_microusd = MAX(pod->cost_microusd, money_for(pod->price_microusd_h, pod->billed_ms));
	COPY_TEXT(pod->state, "gone");
	COPY_TEXT(pod->error, "nobody could be asked whether it is gone");
	return store_put_pod(ctx->store, pod, err);
}

/* It has ended itself long ago, if ever it was; and whoever could be asked cannot be opened, maybe for ever. */
static int take_for_gone(struct launch *l, struct pod_row *pod, const struct err *why, struct err *err)
{
	struct core_conf *conf = &l->setup.conf;
	char when[32];

	if (launch_write_off(l->ctx, pod, err) < 0)
		return -1;
	log_line(LOG_WARN, "pod %s of %s: %s; it was to end itself at %s and counts as gone: look at its provider's console",
		 pod_row_called(pod), pod->provider, why->msg, clock_rfc3339(when, sizeof(when), pod->hard_end_s * 1000));
	add_up(&l->run, pod);
	if (conf->max_cost_microusd)
		conf->max_cost_microusd = MAX(conf->max_cost_microusd - pod->cost_microusd, 1);
	return 0;
}

/* What the providers said to their keys; each is asked once, however many pods it has. */
struct key_words {
	bool asked[CORE_PROVIDERS_MAX];
	struct err told[CORE_PROVIDERS_MAX];
	int64_t now_ms[CORE_PROVIDERS_MAX]; /* by their clocks, which a refusal tells, too */
};

/* The key is there and is refused, and it is past that time there. */
static bool is_refused_past(struct launch *l, const struct pod_row *pod, struct key_words *words, struct err *why)
{
	int i = 0;

	while (strcmp(l->setup.providers[i].ops->name, pod->provider))
		i++;
	if (!words->asked[i]) {
		struct op_result result = {0};
		words->now_ms[i] = clock_wall_ms();
		caller_list(&l->setup.providers[i], OVERDUE_ASK_MS, &result, &words->now_ms[i], &words->told[i]);
		op_result_free(&result);
		words->asked[i] = true;
	}
	*why = words->told[i];
	return why->kind == ERR_CREDENTIALS && pod_is_overdue(pod->hard_end_s, words->now_ms[i]);
}

/* Who has pods that may still bill must be asked; of the others, who can be: a create that was answered twice, or late, may
 * have left a pod that no row names. */
static int adopt_providers(struct launch *l, struct err *err)
{
	size_t count = l->setup.adopt_count;
	struct key_words words = {0};
	struct err why = {0};

	l->setup.adopt_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct pod_row *pod = &l->adopted[i];
		bool past = strcmp(pod->state, "gone") != 0 && pod_is_overdue(pod->hard_end_s, clock_wall_ms());
		bool reached = launch_open_provider(l, pod->provider, &why) == 0;
		if (past && (!reached || is_refused_past(l, pod, &words, &why))) {
			if (take_for_gone(l, pod, &why, err) < 0)
				return -1;
			continue;
		}
		l->adopted[l->setup.adopt_count++] = *pod;
		if (reached)
			continue;
		*err = why;
		err_wrap(err, "pod %s", pod_row_called(pod));
		if (!l->setup.conf.reap)
			return -1;
		log_line(LOG_WARN, "%s", err->msg); /* the others are given back all the same */
		l->out_of_reach++;
	}
	for (int i = 0; i < l->rented_at_count; i++) {
		if (launch_open_provider(l, l->rented_at[i], &why) < 0) {
			log_line(LOG_WARN, "%s: its account cannot be looked at for a pod that run %s may have left there: %s",
				 l->rented_at[i], l->run.id, why.msg);
			continue;
		}
		for (int k = 0; k < l->setup.provider_count; k++)
			if (!strcmp(l->setup.providers[k].ops->name, l->rented_at[i]))
				l->setup.used_before[k] = true;
	}
	return 0;
}

/* What its pods hold was made of the job as it was then. */
static int check_keys(struct launch *l, struct err *err)
{
	CLEANUP(run_keys_free) struct run_keys *keys = NULL;
	size_t count = 0, changed = 0, first = 0;
	const struct segment *list = l->setup.job_ops->segments(l->setup.job, &count);

	if (run_keys_read(&keys, l->run_dir, err) < 0)
		return -1;
	for (size_t i = count; i-- > 0;)
		if (!run_keys_fit(keys, &list[i])) {
			first = i;
			changed++;
		}
	if (changed)
		return err_set(err, ERR_CONFIG,
			       "%zu of the job's segments changed since run %s began (%s first): `burst cancel %s` ends it, "
			       "then `burst run` renders what is new",
			       changed, l->run.id, list[first].id, l->run.id);
	return run_keys_write(keys, l->run_dir, list, count, err);
}

static int by_row_id(const void *a, const void *b)
{
	return strcmp(((const struct segment_row *)a)->id, ((const struct segment_row *)b)->id);
}

static struct segment_row *row_of(struct segment_row *rows, size_t count, const struct segment *segment)
{
	struct segment_row wanted = {0};

	COPY_TEXT(wanted.id, segment->id);
	return count ? bsearch(&wanted, rows, count, sizeof(*rows), by_row_id) : NULL;
}

/* What is open again is so by the ledger, too: this life may end before it is safe anew. */
static int recall(struct launch *l, struct segment_row *rows, size_t count, struct err *err)
{
	const struct job_ops *ops = l->setup.job_ops;
	struct segment_result *results = l->setup.results;
	size_t segments, again = 0;
	const struct segment *list = ops->segments(l->setup.job, &segments);

	for (size_t k = 0; k < segments; k++) {
		const struct segment_row *row = row_of(rows, count, &list[k]);
		if (!row || row->state != SEGMENT_ROW_SAFE || strcmp(row->key, list[k].key))
			continue;
		COPY_TEXT(results[k].attempt, row->attempt);
		COPY_TEXT(results[k].sha256, row->sha256);
		results[k].seconds = row->seconds;
		results[k].tries = row->tries;
	}
	if (ops->recall(l->setup.job, results, err) < 0)
		return -1;
	for (size_t k = 0; k < segments; k++) {
		struct segment_row *row = row_of(rows, count, &list[k]);
		if (!row || row->state != SEGMENT_ROW_SAFE || results[k].state == SEGMENT_SAFE)
			continue;
		row->state = SEGMENT_ROW_FAILED;
		COPY_TEXT(row->reason, "what it brought was changed or removed");
		again++;
		if (store_put_segments(l->ctx->store, row, 1, err) < 0)
			return -1;
	}
	if (again)
		log_line(LOG_NOTE, "%zu of the command's segments run again: what they brought was changed or removed", again);
	return 0;
}

static int recall_segments(struct launch *l, struct err *err)
{
	struct segment_row *rows = NULL;
	size_t count = 0, segments = 0;
	const struct segment *list = l->setup.job_ops->segments(l->setup.job, &segments);

	if (store_segments(l->ctx->store, l->run.id, &rows, &count, err) < 0)
		return -1;
	if (count)
		qsort(rows, count, sizeof(*rows), by_row_id);
	for (size_t k = 0; k < segments; k++)
		if (row_of(rows, count, &list[k])) /* what this very run rendered is not "cached" */
			l->setup.results[k].cached = false;
	l->setup.conf.canary = l->setup.conf.canary && !count;
	int status = l->setup.job_ops->recall ? recall(l, rows, count, err) : 0;
	free(rows);
	return status;
}

int launch_resume(struct launch *l, const struct run_row *run, struct err *err)
{
	l->run = *run;
	conf_from_config(l);
	engine_hold_signals();
	if (take_run(l, RUN_CLIENT, err) < 0 || check_keys(l, err) < 0 || run_flags_write(l->ctx, l->run_dir, err) < 0 ||
	    take_over_pods(l, err) < 0 || adopt_providers(l, err) < 0 || recall_segments(l, err) < 0)
		return -1;
	COPY_TEXT(l->run.status, "running");
	l->run.ended_ms = 0;
	l->run.detached = false; /* its pods are ours to keep alive, and to be settled should we die */
	return store_put_run(l->ctx->store, &l->run, err);
}

/* ---- descriptors ---- */

int launch_check_width(struct launch *l, struct err *err)
{
	const struct section *top = config_top(l->ctx->config);
	int64_t pods = section_has(top, "pods") ? section_int(top, "pods") : 1;
	long limit = files_raise();
	int open = files_open(), fit = engine_pods_fit(limit, open);

	l->setup.files = limit - open;
	if (pods <= fit)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "pods: %lld are more than fit: this process may open %ld files (`ulimit -n`), which is enough for %d pods; "
		       "ask for fewer, or raise that limit",
		       (long long)pods, limit, fit);
}

/* ---- money ---- */

enum { BALANCE_MS = 10000 };

int launch_check_balance(struct launch *l, struct err *err)
{
	const struct engine_setup *s = &l->setup;
	int64_t cap_microusd = section_int(section_group(config_top(l->ctx->config), "caps"), "max_cost");
	struct err worst = {0};
	bool one_can_pay = false;

	for (int i = 0; i < s->provider_count; i++) {
		const struct engine_provider *p = &s->providers[i];
		struct op_result result = {.balance_microusd = -1};
		struct err why = {0};
		bool known = caller_ask(p, OP_BALANCE, NULL, BALANCE_MS, &result, &why) == 0 && result.balance_microusd >= 0;
		int64_t balance = result.balance_microusd;
		op_result_free(&result);
		if (!known || balance >= cap_microusd) {
			/* what cannot be asked now is found out by renting */
			one_can_pay = true;
			continue;
		}
		err_set(&worst, ERR_BALANCE, "%s: the balance of $%.2f cannot pay this run's cap of $%.2f: add credit, or lower caps.max_cost",
			p->ops->name, (double)balance / 1e6, (double)cap_microusd / 1e6);
		if (s->provider_count > 1)
			log_line(LOG_WARN, "%s", worst.msg);
	}
	return one_can_pay || !s->provider_count ? 0 : err_set(err, worst.kind, "%s", worst.msg);
}

/* ---- giving back ---- */

/* The run's pods as the ledger has them, and as they are where it could not be told. */
static struct pod_row *pods_of_run(const struct launch *l, size_t *count)
{
	struct pod_row *pods = NULL;
	size_t n = 0, at;

	if (!l->run.id[0] || store_pods(l->ctx->store, l->run.id, false, &pods, &n, NULL) < 0)
		pods = NULL, n = 0;
	pods = xrealloc(pods, (n + l->unsaved_count + 1) * sizeof(*pods));
	for (size_t i = 0; i < l->unsaved_count; i++) {
		for (at = 0; at < n && strcmp(pods[at].attempt, l->unsaved[i].attempt); at++)
			;
		pods[at] = l->unsaved[i];
		n += at == n;
	}
	*count = n;
	return pods;
}

static void name_unreleased(const struct pod_row *pods, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!pod_row_over(&pods[i]))
			output_line(stderr, "burst: pod %s of %s may still be billing; end it with: burst reap %s --force",
				    pod_row_called(&pods[i]), pods[i].provider,
				    pod_row_called(&pods[i]));
}

static void say_unreleased(const struct launch *l)
{
	size_t count = 0;
	struct pod_row *pods = pods_of_run(l, &count);

	name_unreleased(pods, count);
	free(pods);
}

/* Whoever asks an ended run how it ended (`attach && publish`) gets what its client would have said. */
void run_end(struct run_row *run, const char *status)
{
	static const struct {
		const char *status;
		int exit_status;
	} ends[] = {{"done", 0}, {"partial", 1}, {"interrupted", 128 + SIGTERM}, {"unreleased", 9}};

	COPY_TEXT(run->status, status);
	run->exit_status = 1;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (!strcmp(ends[i].status, status))
			run->exit_status = ends[i].exit_status;
	run->detached = false;
	run->ended_ms = run->ended_ms ? run->ended_ms : clock_wall_ms();
}

/* The run is ours from here on: 0. Its row may have been read long ago: 1, where somebody else has settled it since, or does, or
 * it is no longer what it was judged as. */
static int take_to_release(struct launch *l, const struct run_row *judged, struct err *err)
{
	l->setup.conf.reap = true;
	l->setup.conf.lease_ms = 600000;
	l->run = *judged;
	if (take_run(l, "settled by process", err) < 0)
		return err->kind == ERR_BUSY ? 1 : -1;
	if (store_run(l->ctx->store, judged->id, &l->run, err) < 0)
		return -1;
	if (strcmp(l->run.status, judged->status) || l->run.detached != judged->detached) {
		err_set(err, ERR_BUSY, "run %s: somebody else took it up meanwhile", judged->id);
		return 1;
	}
	return take_over_pods(l, err) < 0 || adopt_providers(l, err) < 0 ? -1 : 0;
}

/* 0: its pods are gone; 1: it is not ours to release (ERR_BUSY). */
static int release_run(struct cmd_context *ctx, const struct run_row *run, const char *status, struct err *err)
{
	struct launch l;
	bool gone = true;

	launch_init(&l, ctx);
	int result = take_to_release(&l, run, err);
	if (result) {
		launch_free(&l);
		return result;
	}
	if (l.setup.provider_count) {
		struct engine *e = engine_new(&l.setup);
		int exit_status = engine_run(e, err);
		struct core_summary s;
		core_summary(engine_core(e), clock_boot_ms(), &s);
		l.run.billed_ms += s.billed_ms;
		l.run.cost_microusd += s.cost_microusd;
		l.run.compute_ms += s.compute_ms;
		result = exit_status ? -1 : 0;
		gone = strcmp(s.status, "unreleased") != 0; /* also when a signal came in between */
		engine_free(e);
	}
	if (l.out_of_reach) {
		gone = false;
		result = err_set(err, ERR_UNRELEASED, "a pod could not be asked for: it may still be billing");
	}
	if (!gone)
		say_unreleased(&l);
	run_end(&l.run, gone ? status : "unreleased");
	if (gone && !strcmp(l.run.error_code, err_kind_name(ERR_UNRELEASED))) {
		snprintf(l.run.error, sizeof(l.run.error), "a pod could not be confirmed gone when it ended; it is gone now%s",
			 engine_is_unfinished(ctx->store, l.run.id) ?
			 ", and what follows the render is left to be done: `burst resume` does it" : "");
	} else if (gone && !l.run.error[0]) {
		COPY_TEXT(l.run.error_code, "interrupted");
		COPY_TEXT(l.run.error, "its client ended before the run did");
	}
	store_put_run(ctx->store, &l.run, NULL);
	launch_free(&l);
	return result;
}

int launch_release_run(struct cmd_context *ctx, const struct run_row *run, const char *status, struct err *err)
{
	return release_run(ctx, run, status, err) ? -1 : 0;
}

/* By its provider's clock: ours, by which it is over, may be wrong, and then its pods are at work. Who cannot be asked now is
 * asked the next time; where there is nobody to ask ours must do. Who refuses the key tells the time all the same. */
static bool overdue_there(struct cmd_context *ctx, const char *provider, int64_t last_s)
{
	struct op_result result = {0};
	struct err err = {0};
	struct launch l;
	int64_t now_ms = clock_wall_ms();

	launch_init(&l, ctx);
	bool told = launch_open_provider(&l, provider, &err) < 0 ||
		    caller_list(&l.setup.providers[0], OVERDUE_ASK_MS, &result, &now_ms, &err) == 0 ||
		    err.kind == ERR_CREDENTIALS;
	op_result_free(&result);
	launch_free(&l);
	return told && pod_is_overdue(last_s, now_ms);
}

/* The latest hard end of the pods there; provider NULL: of all. */
static int64_t last_end(const struct pod_row *pods, size_t count, const char *provider)
{
	int64_t last_s = 0;

	for (size_t i = 0; i < count; i++)
		if (!provider || !strcmp(pods[i].provider, provider))
			last_s = MAX(last_s, pods[i].hard_end_s);
	return last_s;
}

static bool is_left(struct cmd_context *ctx, const struct run_row *run)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, run->id, true, &pods, &count, NULL) < 0)
		return !run->detached;
	bool left = reap_run(run->detached, last_end(pods, count, NULL), clock_wall_ms());
	for (size_t i = 0; i < count && left && run->detached; i++)
		if (last_end(pods, i, pods[i].provider) == 0) /* the first one there */
			left = overdue_there(ctx, pods[i].provider, last_end(pods, count, pods[i].provider));
	free(pods);
	return left;
}

/* Of several that went wrong the one that may cost money is told. */
static int settle_one(struct cmd_context *ctx, const struct run_row *run, const char *status, int result, struct err *err)
{
	struct err why = {0};

	int released = release_run(ctx, run, status, &why);
	if (released == 0)
		log_line(LOG_NOTE, "run %s: nothing of it bills any more", run->id);
	if (released > 0)
		log_line(LOG_NOTE, "run %s: somebody else sees to it", run->id);
	if (released >= 0)
		return result;
	if (result == 0 || why.kind == ERR_UNRELEASED)
		*err = why;
	return -1;
}

bool launch_wants_out(int result, const struct err *err)
{
	return result < 0 && err->kind == ERR_UNRELEASED && err->signal;
}

const char *run_ended_as(const struct cmd_context *ctx, const struct run_row *run)
{
	return run->rendered + run->cached < run->total || engine_is_unfinished(ctx->store, run->id) ? "partial" : "done";
}

/* Runs that ended without being sure of a pod: exit 9. */
static int settle_unreleased(struct cmd_context *ctx, const char *except, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int result = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && !launch_wants_out(result, err); i++) {
		struct run_row run;
		bool seen = except && !strcmp(pods[i].run, except);
		for (size_t k = 0; k < i && !seen; k++)
			seen = !strcmp(pods[k].run, pods[i].run);
		if (seen || store_run(ctx->store, pods[i].run, &run, NULL) < 0 || strcmp(run.status, "unreleased") ||
		    run_is_alive(ctx, run.id))
			continue;
		log_line(LOG_NOTE, "run %s: it ended with a pod that may still bill; releasing it", run.id);
		result = settle_one(ctx, &run, run_ended_as(ctx, &run), result, err);
	}
	free(pods);
	return result;
}

int run_open_pods(const struct cmd_context *ctx, const char *run, size_t *count, struct err *err)
{
	struct pod_row *pods = NULL;

	if (store_pods(ctx->store, run, true, &pods, count, err) < 0)
		return -1;
	free(pods);
	return 0;
}

int launch_settle_run(struct cmd_context *ctx, const char *id, struct err *err)
{
	struct run_row run;
	size_t count;

	if (store_run(ctx->store, id, &run, err) < 0 || run_open_pods(ctx, run.id, &count, err) < 0)
		return -1;
	if (count || run_is_alive(ctx, run.id))
		return 0;
	if (!strcmp(run.status, "unreleased"))
		return settle_one(ctx, &run, run_ended_as(ctx, &run), 0, err);
	return strcmp(run.status, "running") ? 0 : settle_one(ctx, &run, "interrupted", 0, err);
}

int launch_settle(struct cmd_context *ctx, const char *except, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int result = settle_unreleased(ctx, except, err); /* first: what fails below is not to be tried twice */

	if (launch_wants_out(result, err))
		return -1;
	if (store_runs(ctx->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && !launch_wants_out(result, err); i++) {
		if (except && !strcmp(runs[i].id, except))
			continue;
		if (run_is_alive(ctx, runs[i].id))
			continue;
		if (!is_left(ctx, &runs[i]))
			continue; /* its agents finish it; `burst attach` brings the files home */
		log_line(LOG_NOTE, "run %s: its client is gone; releasing what it left", runs[i].id);
		result = settle_one(ctx, &runs[i], "interrupted", result, err);
	}
	free(runs);
	return result;
}

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
		if (!r->detached || strcmp(r->config, config ? config : "") || strcmp(r->job, config_job_name(ctx->config)))
			continue;
		result = err_set(err, ERR_BUSY,
				 "job \"%s\" is running already: pods of the detached run %s work on it (`burst attach %s` brings "
				 "its files home, `burst cancel %s` ends it)",
				 r->job, r->id, r->id, r->id);
	}
	free(runs);
	return result;
}

/* The newest one that has pods which may bill; false: none has. */
static bool run_with_pods(struct cmd_context *ctx, struct run_row *out)
{
	struct pod_row *pods = NULL;
	struct run_row run;
	size_t count = 0;
	bool found = false;

	if (store_pods(ctx->store, NULL, true, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (store_run(ctx->store, pods[i].run, &run, NULL) < 0 || (found && run.started_ms <= out->started_ms))
			continue;
		*out = run;
		found = true;
	}
	free(pods);
	return found;
}

int launch_find_run(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;

	if (name)
		return report_find_run(ctx->store, name, out, err);
	if (store_runs(ctx->store, NULL, true, 1, &runs, &count, err) < 0)
		return -1;
	if (!count && run_with_pods(ctx, out))
		return 0;
	if (!count && store_runs(ctx->store, NULL, false, 1, &runs, &count, err) < 0)
		return -1;
	if (count)
		*out = runs[0];
	free(runs);
	return count ? 0 : err_set(err, ERR_USAGE, "there is no run yet");
}

/* ---- running ---- */

static void draw(void *ctx, const struct engine *e)
{
	progress_draw(ctx, e);
}

static void show_output(void *ctx, const char *pod, const char *line)
{
	progress_clear(ctx);
	output_line(stderr, "%s | %s", pod, line);
}

/* What failed, and why; of very many the first ones. */
static void add_failures(struct launch *l, json_t *errors)
{
	const struct engine_setup *s = &l->setup;
	const struct segment *list;
	size_t count = 0;

	if (!s->job || !s->results)
		return;
	list = s->job_ops->segments(s->job, &count);
	for (size_t i = 0; i < count && json_array_size(errors) < ERRORS_MOST; i++) {
		if (s->results[i].state != SEGMENT_FAILED)
			continue;
		CLEANUP(free_text) char *text = xasprintf("%s: %s", list[i].id, s->results[i].reason);
		json_array_append_new(errors, report_error_json(err_kind_name(ERR_JOB), text, ""));
	}
}

static json_t *result_json(struct launch *l)
{
	size_t count = 0;
	struct pod_row *pods = pods_of_run(l, &count);

	json_t *object = report_run_json(&l->run, pods, count, clock_wall_ms());
	free(pods);
	add_failures(l, json_object_get(object, "errors"));
	if (l->delivered)
		json_object_set_new(object, "deliver", report_delivery_json(l->delivered));
	return object;
}

/* The user's own command gets the JSON; what it does is not our business, but it may not keep us. */
static void on_exit_command(struct launch *l)
{
	const char *command = section_text(config_top(l->ctx->config), "on_exit");
	int pipes[2];

	if (!command || pipe(pipes) < 0)
		return;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(pipes[0], STDIN_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		guard_leave();
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(pipes[0]);
	json_t *result = result_json(l);
	char *text = output_json_line(result);
	json_decref(result);
	for (size_t at = 0, len = strlen(text); at < len;) {
		ssize_t n = write(pipes[1], text + at, len - at);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	free(text);
	close(pipes[1]);
	int status = 0;
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status)
		log_line(LOG_WARN, "on_exit: the command ended with %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void say_end(struct launch *l)
{
	size_t count = 0;
	struct pod_row *pods = pods_of_run(l, &count);
	struct run_row *r = &l->run;

	if (!l->ctx->quiet && count) {
		report_print_phases(stderr, pods, count, clock_wall_ms());
		fputc('\n', stderr);
	}
	if (!strcmp(r->status, "unreleased"))
		name_unreleased(pods, count);
	if (!l->ctx->quiet && strcmp(r->type, VOLUME_WARM))
		output_line(stderr, "run %s: %s: %lld rendered, %lld cached, %lld failed of %lld; files in %s", r->id,
			    strcmp(r->status, "running") ? r->status : "all home",
			    (long long)r->rendered, (long long)r->cached, (long long)r->failed, (long long)r->total, r->output);
	free(pods);
}

void launch_say_suspects(const struct launch *l)
{
	size_t count = 0, suspects = 0, first = 0;
	const struct segment *list = l->setup.job_ops->segments(l->setup.job, &count);

	for (size_t i = count; i-- > 0;)
		if (l->setup.results[i].state == SEGMENT_SAFE && l->setup.results[i].suspect) {
			suspects++;
			first = i;
		}
	if (suspects)
		log_line(LOG_WARN, "%zu of %zu files sound%s wrong and %s kept all the same (%s%s: %s): \"suspect\" in manifest.jsonl; "
			 "what is removed is rendered again", suspects, count, suspects == 1 ? "s" : "", suspects == 1 ? "was" : "were",
			 list[first].id, suspects == 1 ? "" : " first", l->setup.results[first].reason);
}

void launch_print_json(struct launch *l)
{
	if (l->ctx->json)
		output_json(result_json(l));
	cmd_flush(NULL);
}

void launch_failed(struct cmd_context *ctx, const struct err *err)
{
	struct launch l = {.ctx = ctx};

	COPY_TEXT(l.run.status, err->kind == ERR_INTERRUPTED ? "interrupted" : err->kind == ERR_UNRELEASED ? "unreleased" :
		  err->kind == ERR_CAP ? "capped" : "failed");
	COPY_TEXT(l.run.error_code, err_kind_name(err->kind));
	COPY_TEXT(l.run.error, err->msg);
	output_json(result_json(&l));
	cmd_flush(NULL);
}

/* Written once: whoever reads the row before, or finds that we died, sees a run that has not ended. A pod that may still bill is the
 * delivery's, whose own run says so until it is settled: of this one there is only a look left to be done. */
static void write_end(struct launch *l, int status, const struct err *err)
{
	struct run_row *r = &l->run;
	struct err why = {0};

	COPY_TEXT(r->status, status == 0 ? "done" : status > 128 ? "interrupted" : "partial");
	COPY_TEXT(r->error_code, status ? err_kind_name(err->kind) : "");
	COPY_TEXT(r->error, status ? err->msg : "");
	r->exit_status = status == 9 ? 1 : status;
	if (!r->id[0])
		return;
	r->ended_ms = clock_wall_ms();
	engine_note_unfinished(l->ctx->store, r->id, status != 0);
	if (store_put_run(l->ctx->store, r, &why) < 0)
		log_line(LOG_ERROR, "the ledger could not be written: %s", why.msg);
}

int launch_deliver(struct launch *l, struct err *err)
{
	engine_hold_signals(); /* the delivery's own run hears of them */
	int status = deliver_run_is(l->ctx, l->run.config) ? deliver_run_judge(l, err) : deliver(l, &l->delivered, err);

	if (status < 0)
		status = err_exit_status(err);
	if (status || !strcmp(l->run.status, "running"))
		write_end(l, status, err);
	return status;
}

static struct progress *shown;

static void line_in_between(void)
{
	progress_clear(shown);
}

/* A delivery that went well is not done again because nobody is sure of its pod, or somebody wanted out while it was given back. */
static void keep_what_went_well(struct launch *l)
{
	struct err none;

	if (deliver_run_is(l->ctx, l->run.config) && l->run.rendered + l->run.cached == l->run.total && deliver_run_judge(l, &none) == 0)
		engine_note_unfinished(l->ctx->store, l->run.id, false);
}

int launch_run(struct launch *l)
{
	struct progress *p = progress_new(l->ctx);

	l->setup.progress = draw;
	l->setup.output = show_output;
	l->setup.ctx = p;
	shown = p;
	output_before_line(line_in_between);
	l->had_work = l->setup.job && launch_open_segments(l) > 0;
	struct engine *e = engine_new(&l->setup);
	int status = engine_run(e, &l->err);
	l->unsaved_count = engine_unsaved_pods(e, &l->unsaved);
	engine_free(e);
	output_before_line(NULL);
	progress_free(p);
	shown = NULL;
	say_end(l);
	launch_say_suspects(l);
	if (status == 0 && strcmp(l->run.type, VOLUME_WARM))
		status = launch_deliver(l, &l->err);
	else if (status == 9 || status > 128)
		keep_what_went_well(l);
	engine_let_signals_in();
	if (l->err.kind && l->err.kind != ERR_INTERRUPTED)
		output_error(l->ctx, &l->err);
	on_exit_command(l);
	launch_print_json(l);
	return status;
}
