/* waiting.c - loads the jobs that wait in all queues, and the pods that they may take over. */
#include "waiting.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cmd/unattended/commit_tree.h"
#include "engine/pooled.h"
#include "launch.h"
#include "offers.h"
#include "unattended/requests.h"
#include "volume.h"

/* ---- one job ---- */

/* A job with what the planner knows of it. */
struct loaded {
	struct estimate estimate;
	struct wanted wanted;
	struct caps caps;
	char *key; /* what its pods must be, to be shared */
	char name[64];
	char pool[96];
	double budget_usd;
	int64_t due_ms;   /* its deadline, if that is a time of day; 0: none */
	int64_t lasts_ms; /* its deadline, if that counts from the run's start; 0: none */
};

static void loaded_free(struct loaded *at)
{
	estimate_free(&at->estimate);
	wanted_free(&at->wanted);
	free(at->key);
}

static void add_words(struct str *to, const char *const *words)
{
	for (; words && *words; words++)
		str_addf(to, "%s,", *words);
	str_add(to, "\n");
}

/* Jobs with the same text can use the same pods: pooled.h compares the pool, an offer must be of a
 * provider and a GPU of both. */
static char *describe_pods(const struct launch *l, const struct plan_wish *wish)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_addf(&text, "%s\n%s\n%d %d %d\n", l->run.setup.job_ops->needs(l->run.setup.job)->engine,
		 l->run.setup.pool, l->order.spot, wish->pods, wish->staged);
	add_words(&text, l->order.providers);
	add_words(&text, l->order.gpus);
	return xstrdup(str_text(&text));
}

/* ---- offers ----
 * Jobs that ask the same of the same accounts share one answer. */

struct waiting_asked {
	char *question;
	struct known_offer *list;
	size_t count;
};

/* Adds the values of the section, with its groups. */
static void add_section(struct str *to, const struct section *s)
{
	for (const struct option_spec *o = s ? section_table(s) : NULL; o && o->key; o++) {
		if (!section_has(s, o->key))
			continue;
		str_addf(to, "%s=", o->key);
		switch (o->type) {
		case OPTION_PATH:
		case OPTION_TEXT: str_addf(to, "%s", section_text(s, o->key)); break;
		case OPTION_BOOL: str_addf(to, "%d", section_bool(s, o->key)); break;
		case OPTION_DECIMAL: str_addf(to, "%a", section_decimal(s, o->key)); break;
		case OPTION_INT:
		case OPTION_DURATION:
		case OPTION_MONEY: str_addf(to, "%lld", (long long)section_int(s, o->key)); break;
		case OPTION_TEXTS:
			for (size_t i = 0; i < section_count(s, o->key); i++)
				str_addf(to, "%s,", section_item(s, o->key, i));
			break;
		case OPTION_GROUP: add_section(to, section_group(s, o->key)); break;
		case OPTION_GROUPS:
			for (size_t i = 0; i < section_count(s, o->key); i++)
				add_section(to, section_group_at(s, o->key, i));
			break;
		}
		str_add(to, "\n");
	}
}

/* Everything that the answer to offer_list_fetch() hangs on but the time. */
static char *describe_question(const struct launch *l)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const struct order *o = &l->order;
	struct op_want want;

	order_fill_want(o, &want);
	str_addf(&text, "%d %d %lld %lld %lld\n%s\n%s\n%s %d\n", want.offers.vram_gb,
		 want.offers.spot, (long long)want.offers.cpu, (long long)want.offers.memory_gb,
		 (long long)want.offers.disk_gb, want.offers.image ? want.offers.image : "",
		 want.least_cuda ? want.least_cuda : "", o->volume ? o->volume : "",
		 o->volume_create);
	add_words(&text, want.offers.gpus);
	for (int i = 0; i < l->run.setup.provider_count; i++) {
		const char *name = l->run.setup.providers[i].ops->name;
		str_addf(&text, "%s\n", name);
		add_section(&text, config_provider(l->ctx->config, name));
	}
	return xstrdup(str_text(&text));
}

/* As offer_list_fetch(); the list stays the answer's. */
static int ask_once(struct waiting *w, struct launch *l, const struct waiting_asked **out,
		    struct err *err)
{
	CLEANUP(free_text) char *question = describe_question(l);

	for (size_t i = 0; i < w->asked_count; i++)
		if (!strcmp(w->asked[i].question, question)) {
			*out = &w->asked[i];
			return 0;
		}
	struct waiting_asked one = {0};
	if (offer_list_fetch(&l->order, &l->run, OFFERS_AT_VOLUME, &one.list, &one.count, err) < 0)
		return -1;
	one.question = TAKE(question);
	GROW(w->asked, w->asked_count, w->asked_cap);
	w->asked[w->asked_count] = one;
	*out = &w->asked[w->asked_count++];
	return 0;
}

/* ---- one job's estimate ---- */

static int estimate_job(struct waiting *w, struct loaded *out, struct launch *l, struct err *err)
{
	const struct waiting_asked *asked;

	out->wanted = (struct wanted){.order = &l->order, .store = l->ctx->store};
	out->budget_usd = (double)l->order.max_cost_microusd / 1e6;
	if (launch_peek_job(l, err) < 0 || launch_open_providers(&l->order, &l->run, err) < 0 ||
	    caps_plan(&out->caps, l, false, err) < 0 || ask_once(w, l, &asked, err) < 0)
		return -1;
	wanted_add_known(&out->wanted, asked->list, asked->count);
	wanted_end(&out->wanted);
	if (estimate_make(&out->estimate, l, out->wanted.list, out->wanted.count, err) < 0)
		return -1;
	out->due_ms = run_choice_due_ms(&l->choice.row);
	if (l->choice.row.deadline_ms && !out->due_ms)
		out->lasts_ms = l->choice.row.deadline_ms - l->ctx->began_ms;
	launch_set_engine_conf(l);
	keep_pool(l);
	out->key = describe_pods(l, &out->estimate.wish);
	COPY_TEXT(out->pool, l->run.setup.pool);
	return 0;
}

/* commit "": the files as they are. */
static int load_job(struct waiting *w, struct loaded *out, const struct cmd_context *ctx,
		    const char *config, const char *commit, struct err *err)
{
	struct cmd_context own = {.cmd = ctx->cmd,
				  .began_ms = ctx->began_ms,
				  .quiet = true,
				  .state_dir = ctx->state_dir,
				  .store = ctx->store,
				  .commands = ctx->commands,
				  .values = ctx->values};
	struct config_source ask = {.file = config,
				    .need_job = true,
				    .providers = provider_registry,
				    .jobs = job_registry};
	int status;

	*out = (struct loaded){0};
	cmd_open_runs(&own);
	status = cmd_open_config(&own, &ask, commit[0] ? commit : NULL, err);
	if (status == 0)
		status = config_check(own.config, err);
	if (status == 0) {
		struct launch l;
		COPY_TEXT(out->name, config_job_name(own.config));
		launch_init(&l, &own);
		status = estimate_job(w, out, &l, err);
		launch_free(&l);
	}
	config_free(own.config);
	commit_tree_free(own.tree);
	mistakes_free(&own.mistakes);
	return status;
}

/* ---- kinds ---- */

/* The kind of jobs with these needs, added with the job's machines if there is none. */
static int find_kind(struct waiting *w, struct loaded *job)
{
	const struct estimate *e = &job->estimate;

	for (size_t i = 0; i < w->kind_count; i++)
		if (!strcmp(w->keys[i], job->key))
			return (int)i;
	w->keys = xrealloc(w->keys, (w->kind_count + 1) * sizeof(*w->keys));
	w->offers = xrealloc(w->offers, (w->kind_count + 1) * sizeof(*w->offers));
	GROW(w->kinds, w->kind_count, w->kind_cap);
	struct plan_machine *machines = xcalloc(e->count + 1, sizeof(*machines));
	struct offer *offers = xcalloc(e->count + 1, sizeof(*offers));
	if (e->count) {
		memcpy(machines, e->machines, e->count * sizeof(*machines));
		memcpy(offers, e->offers, e->count * sizeof(*offers));
	}
	struct joint_kind *kind = &w->kinds[w->kind_count];
	*kind = (struct joint_kind){machines, e->count, e->wish};
	if (e->wish.pods > 0)
		kind->wish.pods_most = e->wish.pods;
	w->keys[w->kind_count] = TAKE(job->key);
	w->offers[w->kind_count] = offers;
	return (int)w->kind_count++;
}

/* The machine of this GPU at this provider; NULL: it is not offered now. */
static const struct plan_machine *find_machine(const struct waiting *w, int kind,
					       const struct pod_row *pod)
{
	for (size_t i = 0; i < w->kinds[kind].machine_count; i++) {
		const struct offer *o = &w->offers[kind][i];
		if (!strcmp(o->provider, pod->provider) && o->spot == pod->spot &&
		    !strcmp(o->gpu, pod->gpu_offered))
			return &w->kinds[kind].machines[i];
	}
	return NULL;
}

/* ---- pods that are up ---- */

static void add_up(struct waiting *w, int kind, const struct pod_row *pod, int pods, double free_s,
		   const char *run, const char *job)
{
	const struct plan_machine *m = find_machine(w, kind, pod);

	if (!m || !pods)
		return;
	size_t n = w->of.up_count++;
	GROW(w->joint_ups, n, w->up_cap);
	GROW(w->ups, n, w->up_names_cap);
	w->joint_ups[n] = (struct joint_up){kind, *m, pods, free_s};
	w->joint_ups[n].machine.price_h = (double)pod->price_microusd_h / 1e6;
	w->ups[n] = (struct waiting_up){""};
	COPY_TEXT(w->ups[n].run, run);
	COPY_TEXT(w->ups[n].job, job);
}

enum {
	OVERDUE_FREE_MS = 15 * 1000, /* a run that is later than its plan may end at any moment */
	OVERDUE_MOST_MS = 60 * 1000  /* later than twice its plan and this: no queue waits for it */
};

/* When the run should be done by its plan; -1: unknown. */
static int64_t free_in_ms(const struct run_row *run, int64_t now_ms)
{
	int64_t ran_ms = now_ms - run->started_ms;

	if (!run->planned_ms || ran_ms > 2 * run->planned_ms + OVERDUE_MOST_MS)
		return -1;
	return MAX(run->planned_ms - ran_ms, (int64_t)OVERDUE_FREE_MS);
}

/* Adds the pods of a run with a client, which are free when its plan says so. */
static void add_running(struct waiting *w, const struct cmd_context *ctx, const struct run_row *run)
{
	struct loaded job;
	struct err ignored = {0};
	struct pod_row *pods = NULL, *one = NULL;
	size_t count = 0;
	int64_t free_ms = free_in_ms(run, w->now_ms);
	int live = 0;

	if (free_ms < 0 || store_pods(ctx->store, run->id, true, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (pods[i].state == POD_ROW_LIVE) {
			one = &pods[i];
			live++;
		}
	if (live && load_job(w, &job, ctx, run->config, run->commit_id, &ignored) == 0)
		add_up(w, find_kind(w, &job), one, live, (double)free_ms / 1000, run->id, run->job);
	if (live)
		loaded_free(&job);
	free(pods);
}

/* Adds a pod that is on offer now, for the first kind that it serves. */
static void add_kept(struct waiting *w, const struct pod_row *pod, char pools[][96])
{
	for (size_t kind = 0; kind < w->kind_count; kind++)
		if (pooled_serves(pod->pool, pools[kind])) {
			add_up(w, (int)kind, pod, 1, 0, pod->run, "");
			return;
		}
}

/* ---- the queues ---- */

static bool is_bound(const struct request_row *rows, size_t count, const char *config,
		     const char **run)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].config, config) && rows[i].state == REQUEST_RUNNING) {
			*run = rows[i].run;
			return true;
		}
	return false;
}

/* When the job may start, and until when it may wait. A request without --by and --max-wait starts
 * as soon as it may. */
static void read_times(const struct waiting *w, struct waiting_job *job, struct joint_job *j,
		       const struct request_row *rows, size_t count, const char **waits)
{
	static const struct when_work unknown = {-1, -1, -1, -1, -1};
	struct when_request *list = xcalloc(count + 1, sizeof(*list));
	size_t n = 0;
	bool at_once = false;

	j->begin_by_s = INFINITY;
	for (size_t i = 0; i < count; i++) {
		const struct request_row *r = &rows[i];
		if (strcmp(r->config, job->config) != 0)
			continue;
		list[n++] = requests_for_when(r, w->now_ms);
		if (r->by_ms)
			job->by_ms = job->by_ms ? MIN(job->by_ms, r->by_ms) : r->by_ms;
		if (r->max_wait_ms && r->fills_pod)
			j->begin_by_s =
				MIN(j->begin_by_s,
				    (double)(r->created_ms + r->max_wait_ms - w->now_ms) / 1000);
		at_once |= !r->fills_pod && !r->below_microusd_h && r->min_segments <= 1;
		*waits = r->below_microusd_h   ? "it waits for its price (--below)"
			 : r->min_segments > 1 ? "it waits for segments (--min-segments)"
					       : *waits;
	}
	struct when_answer a = when_start(list, n, &unknown, w->now_ms);
	if (a.why == WHEN_QUIET || a.why == WHEN_RETRY)
		j->ready_s = (double)(a.until_ms - w->now_ms) / 1000;
	if (at_once)
		j->begin_by_s = MIN(j->begin_by_s, j->ready_s);
	if (at_once || a.why == WHEN_WAITED || a.why == WHEN_BY)
		*waits = NULL;
	j->by_s = job->by_ms ? (double)(job->by_ms - w->now_ms) / 1000 : INFINITY;
	free(list);
}

/* Takes in the deadline of the config. One that counts from the run's start matters where the job
 * has to begin by some time. */
static void read_deadline(const struct waiting *w, struct waiting_job *job, struct joint_job *j,
			  const struct loaded *loaded)
{
	int64_t by_ms = loaded->due_ms;

	if (loaded->lasts_ms && isfinite(j->begin_by_s))
		by_ms = w->now_ms + (int64_t)(MAX(j->begin_by_s, j->ready_s) * 1000) +
			loaded->lasts_ms;
	if (!by_ms || (job->by_ms && job->by_ms <= by_ms))
		return;
	job->by_ms = by_ms;
	j->by_s = (double)(by_ms - w->now_ms) / 1000;
}

static bool can_be_planned(struct waiting_job *job, const struct estimate *e)
{
	if (!e->open)
		COPY_TEXT(job->why, "nothing is to render");
	else if (!e->count)
		COPY_TEXT(job->why, "no provider offers what it needs now");
	else if (!e->known)
		COPY_TEXT(job->why, "no estimate: its speed is not known yet; a run measures it");
	return !job->why[0];
}

/* Adds what the job's caps over all runs leave to the budget of all. */
static void lower_budget(struct waiting *w, const struct caps *caps)
{
	for (size_t i = 0; i < caps->count; i++)
		if (!caps->list[i].project)
			w->of.budget_usd =
				MIN(w->of.budget_usd, (double)allow_left(&caps->list[i]) / 1e6);
}

static void add_queue(struct waiting *w, const struct cmd_context *ctx,
		      const struct request_row *rows, size_t count, size_t first, char pools[][96])
{
	struct waiting_job *job = &w->jobs[w->count++];
	struct joint_job *j = &w->joint[w->of.job_count];
	const char *run, *waits = NULL, *commit = "";
	struct loaded loaded = {0};
	struct err err = {0};

	*job = (struct waiting_job){.place = -1};
	*j = (struct joint_job){0};
	COPY_TEXT(job->config, rows[first].config);
	COPY_TEXT(job->request, rows[first].id);
	for (size_t i = first; i < count; i++)
		if (!strcmp(rows[i].config, job->config)) {
			job->requests++;
			commit = rows[i].commit_id; /* the newest says what to render */
		}
	if (is_bound(rows, count, job->config, &run)) {
		snprintf(job->why, sizeof(job->why), "run %s works on it", run);
		return;
	}
	read_times(w, job, j, rows, count, &waits);
	int status = load_job(w, &loaded, ctx, job->config, commit, &err);
	COPY_TEXT(job->name, loaded.name);
	COPY_TEXT(job->pool, loaded.pool);
	if (status < 0)
		COPY_TEXT(job->why, err.msg);
	else if (waits)
		COPY_TEXT(job->why, waits);
	else if (can_be_planned(job, &loaded.estimate)) {
		job->work = xcalloc(1, sizeof(*job->work));
		*job->work = loaded.estimate.work;
		job->place = (int)w->of.job_count++;
		j->kind = find_kind(w, &loaded);
		COPY_TEXT(pools[j->kind], loaded.pool);
		j->work = job->work;
		read_deadline(w, job, j, &loaded);
		j->budget_usd = loaded.budget_usd;
		lower_budget(w, &loaded.caps);
	}
	loaded_free(&loaded);
}

static bool is_first_of_queue(const struct request_row *rows, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(rows[k].config, rows[i].config))
			return false;
	return true;
}

static int add_pods(struct waiting *w, const struct cmd_context *ctx, char pools[][96],
		    struct err *err)
{
	struct run_row *runs = NULL;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (pooled_is_offered(&pods[i], w->now_ms))
			add_kept(w, &pods[i], pools);
	free(pods);
	if (store_runs(ctx->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (strcmp(runs[i].type, KEEP_RUN) != 0 && runs[i].config[0] && !runs[i].detached &&
		    run_is_alive(&ctx->runs, runs[i].id))
			add_running(w, ctx, &runs[i]);
	free(runs);
	return 0;
}

int waiting_load(struct waiting *out, const struct cmd_context *ctx, struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	*out = (struct waiting){.now_ms = clock_wall_ms(), .of.budget_usd = INFINITY};
	if (store_requests(ctx->store, NULL, true, &rows, &count, err) < 0)
		return -1;
	char(*pools)[96] = xcalloc(count + 1, sizeof(*pools));
	out->jobs = xcalloc(count + 1, sizeof(*out->jobs));
	out->joint = xcalloc(count + 1, sizeof(*out->joint));
	for (size_t i = 0; i < count; i++)
		if (is_first_of_queue(rows, i))
			add_queue(out, ctx, rows, count, i, pools);
	int status = out->of.job_count ? add_pods(out, ctx, pools, err) : 0;
	free(pools);
	free(rows);
	out->of.kinds = out->kinds;
	out->of.jobs = out->joint;
	out->of.ups = out->joint_ups;
	return status;
}

void waiting_free(struct waiting *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->jobs[i].work);
	for (size_t i = 0; i < w->kind_count; i++) {
		free((void *)w->kinds[i].machines);
		free(w->offers[i]);
		free(w->keys[i]);
	}
	for (size_t i = 0; i < w->asked_count; i++) {
		free(w->asked[i].question);
		free(w->asked[i].list);
	}
	free(w->asked);
	free(w->jobs);
	free(w->keys);
	free(w->offers);
	free(w->ups);
	free(w->kinds);
	free(w->joint);
	free(w->joint_ups);
	*w = (struct waiting){0};
}
