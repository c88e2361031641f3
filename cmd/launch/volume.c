/* volume.c - makes volumes and fills them from a pod without a GPU, and keeps pods for the next run
 */
#include "volume.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/err.h"
#include "base/guard.h"
#include "base/path.h"
#include "base/program.h"
#include "cmd/cmd.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "engine/caller.h"
#include "jobs/warm/warm.h"
#include "launch.h"
#include "net/child.h"

/* ---- keep pool ---- */

/* ---- the keeping client ---- */

/* In the child: becomes `burst keep RUN`, in a session that outlives the terminal and the run.
 * log: the descriptor for its output. */
static void become_keeper(const struct launch *l, int log)
{
	const char *argv[] = {"burst", "keep", l->run.row.id, NULL};
	sigset_t none;

	program_to_background(log);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	guard_restore_limits();
	execv(child_self() ? child_self() : l->ctx->argv[0], (char **)argv);
	_exit(127);
}

/* engine_setup.keep: starts, once, the client that keeps this run's pods for other runs. */
static void start_keeper(void *ctx)
{
	struct launch *l = ctx;

	if (l->keeper_started)
		return;
	l->keeper_started = true;
	CLEANUP(free_text) char *path = path_join(l->run.dir, "keep.log");
	CLEANUP(fd_close) int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		become_keeper(l, log);
	if (pid < 0)
		log_line(LOG_WARN, "no pod is kept: fork: %m");
}

/* ---- callbacks of the engine ---- */

/* engine_setup.wanted. */
static bool is_kept_pod_wanted(void *ctx, const struct pod_row *pod)
{
	const struct launch *l = ctx;

	return runs_want_pod(l->run.runs, pod);
}

/* engine_setup.take. */
static bool take_kept_pod(void *ctx, const json_t *want, struct pod_row *pod)
{
	struct launch *l = ctx;

	return run_take_kept(&l->run, want, pod);
}

void keep_pool(struct launch *l)
{
	struct engine_setup *s = &l->run.setup;

	s->conf.pooled = true;
	s->conf.keep_warm_ms = l->order.keep_warm_ms;
	s->keep = start_keeper;
	s->wanted = is_kept_pod_wanted;
	s->take = take_kept_pod;
	pooled_describe(s, s->pool);
}

static size_t list_kept(struct launch *l, int64_t planned_ms, struct pod_row **out)
{
	launch_set_engine_conf(l);
	keep_pool(l);
	l->run.row.planned_ms = planned_ms;
	return run_kept_pods(&l->run, out);
}

static bool is_of_kind(const struct pod_row *row, const struct offer *o)
{
	return !strcmp(row->provider, o->provider) && !strcmp(row->gpu_offered, o->gpu) &&
	       row->spot == o->spot && row->price_microusd_h == o->price_microusd_h;
}

static struct offer offer_of_kept(const struct pod_row *row)
{
	const struct gpu *known = gpu_find(row->gpu_offered);
	struct offer o = {.gpus = gpu_is_none(row->gpu_offered) ? 0 : 1,
			  .vram_gb = known ? known->vram_gb : 0,
			  .spot = row->spot,
			  .price_microusd_h = row->price_microusd_h};

	COPY_TEXT(o.provider, row->provider);
	COPY_TEXT(o.gpu, row->gpu_offered);
	COPY_TEXT(o.region, row->region);
	return o;
}

size_t keep_warm_offers(struct launch *l, struct offer **out)
{
	struct pod_row *rows = NULL;
	size_t count = list_kept(l, 0, &rows), n = 0;

	*out = xcalloc(count + 1, sizeof(**out));
	for (size_t i = 0; i < count; i++)
		if (!n || is_of_kind(&rows[i], *out))
			(*out)[n++] = offer_of_kept(&rows[i]);
	free(rows);
	return n;
}

int keep_warm_pods(struct launch *l, const struct offer *like, int64_t planned_ms)
{
	struct pod_row *rows = NULL;
	size_t count = list_kept(l, planned_ms, &rows);
	int n = 0;

	for (size_t i = 0; i < count; i++)
		n += is_of_kind(&rows[i], like);
	free(rows);
	return n;
}

bool keep_has_any(struct store *store)
{
	struct pod_row *rows = NULL;
	size_t count = 0;
	bool any = false;

	if (store_pods(store, NULL, true, &rows, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !any; i++)
		any = pooled_is_offered(&rows[i], clock_wall_ms());
	free(rows);
	return any;
}

/* ---- volume make ---- */

enum { MAKE_MS = 60000, LOCK_PAUSE_MS = 100 };

void volume_remember(struct store *store, const char *provider, const struct volume *v,
		     struct volume_row *row)
{
	struct volume_row seen = {.size_gb = v->size_gb,
				  .price_microusd_month = v->price_microusd_month,
				  .seen_ms = clock_wall_ms()};

	COPY_TEXT(seen.provider, provider);
	COPY_TEXT(seen.id, v->id);
	COPY_TEXT(seen.name, v->name);
	COPY_TEXT(seen.region, v->region);
	store_put_volume(store, &seen, NULL);
	if (row)
		*row = seen;
}

/* Locks the volumes of this state folder, since a run that starts now may create the same one.
 * Waits for MAKE_MS at most. The caller closes *lock. */
static int wait_for_volume_lock(const struct cmd_context *ctx, int *lock, struct err *err)
{
	int64_t until = clock_boot_ms() + MAKE_MS;

	while (engine_lock_volumes(ctx->state_dir, lock, err) < 0) {
		if (err->kind != ERR_BUSY || clock_boot_ms() >= until)
			return -1;
		poll(NULL, 0, LOCK_PAUSE_MS);
	}
	return 0;
}

/* Returns 1 if the volume exists, 0 if it may be created, -1 with *err. If an earlier create was
 * lost, waits until its volume appears or can appear no more. */
static int find_or_outwait_create(struct store *store, const struct engine_provider *p,
				  const char *name, struct err *err)
{
	char wait[24];

	for (bool said = false;; said = true) {
		int there = volume_is_there(p, name, err);
		int64_t wait_ms = volume_intent_wait_ms(store, p, name);
		if (there || !wait_ms)
			return there;
		if (!said)
			log_line(LOG_NOTE,
				 "volume %s: %s was told to create it a moment ago; looking for it "
				 "for %s before another one is created",
				 name, p->ops->name, duration_show(wait, sizeof(wait), wait_ms));
		poll(NULL, 0, VOLUME_LOOK_MS);
	}
}

int volume_make(struct cmd_context *ctx, const struct engine_provider *p, const char *name,
		int64_t size_gb, const char *const *gpus, struct volume_row *row, struct err *err)
{
	struct op_want want = {
		.volume = {.name = name, .create = true, .size_gb = size_gb, .gpus = gpus}};
	struct op_result result = {0};
	CLEANUP(fd_close) int lock = -1;

	if (wait_for_volume_lock(ctx, &lock, err) < 0)
		return -1;
	int was_there = find_or_outwait_create(ctx->store, p, name, err);
	if (was_there < 0 || (!was_there && volume_intent_put(ctx->store, p, name, err) < 0))
		return -1;
	int status = caller_perform(p, OP_VOLUME, &want, MAKE_MS, &result, err);
	if (!was_there)
		volume_intent_answered(ctx->store, p, name, status < 0 ? err : NULL);
	if (status < 0)
		return err_wrap(err, "%s", p->ops->name);
	if (!result.volume_count)
		return err_set(err, ERR_TRANSIENT, "%s named no volume", p->ops->name);
	volume_remember(ctx->store, p->ops->name, &result.volumes[0], row);
	op_result_free(&result);
	return !was_there;
}

/* ---- volume warm ---- */

/* A set-up downloads and unpacks, for which RunPod's smallest CPU pod is enough unless the job says
 * otherwise. */
enum { ASK_MS = 60000, WARM_CPU = 1, WARM_MEMORY_GB = 4 };

/* Replaces the launch's job by its set-up, and narrows the order to a pod for that beside the
 * volume. memory_gb 0: as the set-up needs it. */
static int narrow_to_setup(struct launch *l, const struct volume_row *v, int64_t memory_gb,
			   struct err *err)
{
	struct order *o = &l->order;

	if (launch_read_job(l, err) < 0)
		return -1;
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	o->memory_gb = memory_gb ? memory_gb : MAX(WARM_MEMORY_GB, needs->setup_memory_gb);
	launch_replace_job(l, &job_warm, warm_job(l->run.setup.job_ops, l->run.setup.job));
	order_gpus(o, (const char *const[]){"none", NULL});
	o->spot = false; /* an interrupted build starts again from nothing */
	o->cpu = WARM_CPU;
	o->disk_gb = 0;
	o->vram_gb = 0;
	o->card = (struct card_needs){0};
	o->volume = v->name;
	o->volume_create = false;
	return 0;
}

/* Keeps the provider with this name open. */
static void close_other_providers(struct engine_setup *s, const char *name)
{
	int kept = 0;

	for (int i = 0; i < s->provider_count; i++) {
		if (strcmp(s->providers[i].ops->name, name))
			s->providers[i].ops->close(s->providers[i].handle);
		else
			s->providers[kept++] = s->providers[i];
	}
	s->provider_count = kept;
}

/* Prices of the cheapest pod that is free beside the volume and could fill it, and of the dearest
 * that could be rented instead, within caps.max_price_per_hour; 0 and 0: none is free, and the run
 * waits for one. */
static int find_price_range(const struct order *o, const struct engine_provider *p,
			    const struct volume_row *v, int64_t *least, int64_t *most,
			    struct err *err)
{
	struct op_want want;
	struct op_result result = {0};

	order_fill_want(o, &want);
	COPY_TEXT(want.offers.volume.provider, v->provider);
	COPY_TEXT(want.offers.volume.id, v->id);
	COPY_TEXT(want.offers.volume.name, v->name);
	COPY_TEXT(want.offers.volume.region, v->region);
	*least = *most = 0;
	if (caller_perform(p, OP_OFFERS, &want, ASK_MS, &result, err) < 0) {
		if (err->kind != ERR_NO_CAPACITY)
			return err_wrap(err, "%s", v->provider);
		err_clear(err);
		return 0;
	}
	for (size_t i = 0; i < result.offer_count; i++) {
		int64_t price = result.offers[i].price_microusd_h;
		if (o->max_price_microusd_h && price > o->max_price_microusd_h)
			continue;
		*least = *most ? MIN(*least, price) : price;
		*most = MAX(*most, price);
	}
	op_result_free(&result);
	return 0;
}

/* least, most: of find_price_range(). */
static void say_price(const struct order *o, const struct volume_row *v, int64_t least,
		      int64_t most)
{
	int64_t ms = o->max_duration_ms, bound = o->max_cost_microusd;
	CLEANUP(str_free) struct str line = STR_INIT;
	char hour[32], all[32];

	if (most && ms && (!bound || money_for(most, ms) < bound))
		bound = money_for(most, ms);
	str_addf(&line, "volume %s of %s%s%s: filled from ", v->name, v->provider,
		 v->region[0] ? " in " : "", v->region);
	if (most)
		str_addf(&line, "a pod without a GPU for %s an hour",
			 money_show(hour, sizeof(hour), least));
	else
		str_add(&line, "a pod without a GPU, none of which is available now");
	if (bound)
		str_addf(&line, "; at most %s in all", money_show(all, sizeof(all), bound));
	else
		str_add(&line, "; no cap is set (caps.max_cost, caps.max_duration)");
	output_lines(stderr, str_text(&line));
}

/* Runs the set-up of the job on a pod beside v, which fills v. l is from narrow_to_setup(); least
 * and most: the price range for the message. memory_gb: as the user gave it; 0: burst chose it.
 * Prints on `to` that the volume is ready. Returns the exit status, or -1. */
static int fill_volume(struct launch *l, const struct volume_row *v, int64_t least, int64_t most,
		       int64_t memory_gb, FILE *to, struct err *err)
{
	char cost[32];

	say_price(&l->order, v, least, most);
	if (launch_check_can_rent(l, err) < 0 || launch_begin(l, false, err) < 0)
		return -1;
	int status = launch_run(l);
	if (status == 0)
		output_line(to, "volume %s of %s: ready for job \"%s\", for %s", v->name,
			    v->provider, l->run.row.job,
			    money_show(cost, sizeof(cost), l->run.row.cost_microusd));
	if (status == JOB_FAILED_STATUS && !memory_gb)
		log_line(LOG_NOTE,
			 "if its setup ran out of the pod's %lld GB of memory: burst volume warm "
			 "%s --memory GB",
			 (long long)l->order.memory_gb, v->name);
	return status;
}

int volume_warm(struct launch *l, const struct volume_row *v, int64_t memory_gb, struct err *err)
{
	int64_t least, most;

	if (!config_job(l->ctx->config))
		return err_set(err, ERR_CONFIG,
			       "no job for volume %s: give its burst.cfg with --config", v->name);
	close_other_providers(&l->run.setup, v->provider);
	if (narrow_to_setup(l, v, memory_gb, err) < 0 ||
	    find_price_range(&l->order, &l->run.setup.providers[0], v, &least, &most, err) < 0)
		return -1;
	if (!l->run.setup.job_ops->needs(l->run.setup.job)->setup)
		log_line(LOG_NOTE, "this job has no setup: only its worker files, its packages and "
				   "its code are put there");
	return fill_volume(l, v, least, most, memory_gb, stdout, err);
}

/* ---- warm first ----
 * Fills a run's volume from a pod without a GPU before the run rents GPUs. */

/* Describes the run's volume, after creating it if the config allows; the project then may use it.
 * Returns 1, 0 if it is missing and must not be created, or -1 with *err. */
static int find_or_make_volume(struct launch *l, const struct engine_provider *p, const char *gpu,
			       struct volume_row *row, struct err *err)
{
	const char *name = l->order.volume, *const gpus[] = {gpu, NULL};
	struct op_want want = {.volume.name = name};
	struct op_result result = {0};

	if (caller_perform(p, OP_VOLUME, &want, ASK_MS, &result, err) == 0 && result.volume_count) {
		volume_remember(l->ctx->store, p->ops->name, &result.volumes[0], row);
		op_result_free(&result);
		return 1;
	}
	op_result_free(&result);
	if (err->kind && err->kind != ERR_NOT_FOUND)
		return err_wrap(err, "%s: volume %s", p->ops->name, name);
	err_clear(err);
	if (!l->order.volume_create)
		return 0;
	int made = volume_make(l->ctx, p, name, l->order.volume_gb, gpus, row, err);
	if (made == 1 && volume_trust_note(l->ctx, p->ops->name, name, err) < 0)
		return -1;
	return made < 0 ? -1 : 1;
}

/* Whether a pod of this run has existed. */
static bool has_had_pod(const struct run *run)
{
	size_t count = 0;
	struct pod_row *pods = run_pods(run, &count);
	bool had = false;

	for (size_t i = 0; i < count; i++)
		had = had || (pods[i].state != POD_ROW_FAILED && pods[i].billed_ms > 0);
	free(pods);
	return had;
}

/* What the failed run that was to fill the volume means for the run that needs it. Returns 0 if a
 * GPU pod may run the set-up instead, else -1 with *err: work that a lost pod did not finish is
 * not done again at the price of a GPU. had: a pod has existed. */
static int judge_failed_fill(const struct volume_row *v, int status, bool had, struct err *err)
{
	if (status == NO_CAPACITY_STATUS && had)
		return err_set(
			err, ERR_NO_CAPACITY,
			"volume %s of %s: the pod without a GPU that filled it was lost, and "
			"no other was free in time: no GPU was rented; retry later, raise "
			"`wait`, or fill it now with `burst volume warm %s`",
			v->name, v->provider, v->name);
	if (status == NO_CAPACITY_STATUS) {
		log_line(LOG_NOTE, "volume %s: the first GPU pod runs the setup", v->name);
		return 0;
	}
	err_set(err,
		status == UNRELEASED_STATUS ? ERR_UNRELEASED
		: status == CAP_STATUS      ? ERR_CAP
		: status > SIGNAL_STATUS    ? ERR_INTERRUPTED
					    : ERR_JOB,
		"volume %s of %s could not be filled from a pod without a GPU (exit status %d): "
		"no GPU was rented",
		v->name, v->provider, status);
	if (status > SIGNAL_STATUS)
		err->signal = status - SIGNAL_STATUS;
	return -1;
}

/* w: the part of the run that fills the volume. Returns like warm_first(). */
static int fill_before_run(struct launch *w, const struct volume_row *v, struct err *err)
{
	int64_t least, most;
	int status = -1;

	if (launch_open_providers(&w->order, &w->run, err) == 0 &&
	    narrow_to_setup(w, v, 0, err) >= 0) {
		int found = find_price_range(&w->order, &w->run.setup.providers[0], v, &least,
					     &most, err);
		if (found < 0 || !most) {
			log_line(LOG_NOTE,
				 "no pod without a GPU is free beside volume %s of %s%s%s: the "
				 "first GPU pod runs the setup",
				 v->name, v->provider, found < 0 ? ": " : "",
				 found < 0 ? err->msg : "");
			err_clear(err);
			return 0;
		}
		log_line(LOG_NOTE,
			 "volume %s of %s lacks what the job's setup makes: a pod without a GPU "
			 "fills it before GPUs are rented",
			 v->name, v->provider);
		status = fill_volume(w, v, least, most, 0, stderr, err);
	}
	if (status < 0) {
		config_place_error(w->ctx->config, err);
		output_error(w->ctx, err);
		status = err_exit_status(err);
	}
	err_clear(err);
	return status ? judge_failed_fill(v, status, has_had_pod(&w->run), err) : 1;
}

int warm_first(struct launch *l, const struct estimate *e, const struct plan *pick,
	       int64_t *spent_microusd, struct err *err)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	const struct offer *offer = &e->offers[pick->machine];
	const struct engine_provider *p = launch_provider(&l->run, offer->provider);
	struct volume_row v;
	struct launch w;

	*spent_microusd = 0;
	if (!p || !needs->gpu || needs->setup_by_card || !e->volume || !e->volume[0] ||
	    !l->order.config[0] || cold_setup_s(&e->machines[pick->machine].cold) <= 0)
		return 0;
	int there = find_or_make_volume(l, p, offer->gpu, &v, err);
	if (there <= 0)
		return there;
	launch_within(&w, l);
	order_providers(&w.order, (const char *const[]){v.provider, NULL});
	int status = fill_before_run(&w, &v, err);
	*spent_microusd = w.run.row.cost_microusd;
	engine_unblock_signals();
	launch_free(&w);
	if (l->order.max_cost_microusd && *spent_microusd)
		l->order.max_cost_microusd = MAX(l->order.max_cost_microusd - *spent_microusd, 1);
	return status;
}
