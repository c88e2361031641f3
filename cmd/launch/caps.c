/* caps.c - reads from the ledger what counts against caps.per_day and caps.per_month, and reserves
 * a run's share. */
#include "caps.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "cmd/show/report.h"
#include "find_run.h"
#include "runs/spend.h"
#include "store/pod_cost.h"

/* ---- which caps there are ---- */

static void add_cap(struct caps *out, const struct config *config, const char *key, bool project,
		    int64_t now)
{
	struct config_cap cap = config_cap(config, key, project);
	bool month = !strcmp(key, "per_month");

	if (!cap.set)
		return;
	out->list[out->count++] = (struct allowance){
		.key = key,
		.where = cap.where,
		.project = project,
		.cap_microusd = cap.microusd,
		.begins_ms = month ? spend_month_ms(now) : spend_day_ms(now),
		.ends_ms = month ? spend_next_month_ms(now) : spend_next_day_ms(now),
	};
}

static void find_caps(struct caps *out, const struct config *config, int64_t now)
{
	*out = (struct caps){0};
	add_cap(out, config, "per_day", false, now);
	add_cap(out, config, "per_month", false, now);
	add_cap(out, config, "per_day", true, now);
	add_cap(out, config, "per_month", true, now);
}

/* ---- whose dollars they are ---- */

/* A delivery belongs to the project whose outputs it delivers. */
static char *project_of(struct cmd_context *ctx, const struct run_row *run)
{
	struct run_row render;

	return path_dir(delivery_render(&ctx->runs, run, &render) ? render.config : run->config);
}

static bool is_of_project(struct cmd_context *ctx, const struct run_row *run, const char *project,
			  const char *config)
{
	CLEANUP(free_text) char *its = project_of(ctx, run);

	return !strcmp(its, project) || delivery_is_of(&ctx->runs, run, config);
}

/* ---- what stands against them ---- */

struct tally {
	struct cmd_context *ctx;
	struct caps *caps;
	const char *self, *project, *config;
	/* the run whose delivery this one is: it has handed on what it may still spend */
	char covered[24];
	int64_t now;
	struct run_row *running;
	size_t running_count;
};

static bool has_cap_of_project(const struct caps *caps)
{
	for (size_t i = 0; i < caps->count; i++)
		if (caps->list[i].project)
			return true;
	return false;
}

static void add_spent(struct tally *t, bool ours, const struct pod_row *pod, int64_t at)
{
	for (size_t i = 0; i < t->caps->count; i++)
		if (ours || !t->caps->list[i].project)
			t->caps->list[i].spent_microusd +=
				allow_spent(pod, t->caps->list[i].begins_ms, at);
}

static void add_reserved(struct tally *t, bool ours, int64_t microusd, bool another_run)
{
	for (size_t i = 0; i < t->caps->count; i++) {
		struct allowance *a = &t->caps->list[i];
		if (!microusd || (a->project && !ours))
			continue;
		a->reserved_microusd += microusd;
		a->holders += another_run;
	}
}

/* As of when its cost counts: a pod without a client ends at its hard end, whatever its row says.
 */
static int64_t cost_moment(const struct tally *t, const struct pod_row *pod)
{
	return pod_row_over(pod) ? t->now : run_pod_now(&t->ctx->runs, pod, t->now).at_ms;
}

/* A render has handed what it may still spend to its delivery, which is a run of its own: while
 * that lives, it holds the reservation, and the same dollars must not count twice. The delivery is
 * our own run (t->covered) or another one. */
static bool is_covered(const struct tally *t, const struct run_row *run)
{
	struct run_row render;

	if (!strcmp(run->id, t->covered))
		return true;
	for (size_t i = 0; i < t->running_count; i++)
		if (delivery_is(&t->ctx->runs, t->running[i].config) &&
		    run_is_alive(&t->ctx->runs, t->running[i].id) &&
		    delivery_render(&t->ctx->runs, &t->running[i], &render) &&
		    !strcmp(render.id, run->id))
			return true;
	return false;
}

static int count_run(struct tally *t, const struct run_row *run, bool with_client, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t pod_count = 0;

	if (!strcmp(run->id, t->self))
		return 0;
	if (store_pods(t->ctx->store, run->id, false, &pods, &pod_count, err) < 0)
		return -1;
	bool ours = t->project && is_of_project(t->ctx, run, t->project, t->config);
	add_reserved(
		t, ours,
		allow_reserved(run, with_client && !is_covered(t, run), pods, pod_count, t->now),
		true);
	free(pods);
	return 0;
}

static bool is_running(const struct tally *t, const char *run)
{
	for (size_t i = 0; i < t->running_count; i++)
		if (!strcmp(t->running[i].id, run))
			return true;
	return false;
}

/* The row of a pod's run, read anew only where it is another one than the last. */
static const struct run_row *run_of(struct tally *t, const char *id, struct run_row *last)
{
	if (strcmp(last->id, id) != 0 && store_run(t->ctx->store, id, last, NULL) < 0) {
		*last = (struct run_row){0};
		COPY_TEXT(last->id, id);
	}
	return last;
}

/* Without a client: of runs that have ended, or died, a pod that may still bill. */
static bool is_left_alone(const struct tally *t, const struct pod_row *pod)
{
	return !pod_row_over(pod) && !is_running(t, pod->run) && strcmp(pod->run, t->self) != 0;
}

static int count_pods(struct tally *t, struct err *err)
{
	struct pod_row *pods = NULL;
	struct run_row last = {0};
	size_t pod_count = 0;
	int64_t since = INT64_MAX;
	const char *holder = "";

	for (size_t i = 0; i < t->caps->count; i++)
		since = MIN(since, t->caps->list[i].begins_ms);
	if (store_pods_since(t->ctx->store, since, &pods, &pod_count, err) < 0)
		return -1;
	for (size_t i = 0; i < pod_count; i++) {
		const struct pod_row *pod = &pods[i];
		bool ours = t->project && is_of_project(t->ctx, run_of(t, pod->run, &last),
							t->project, t->config);
		int64_t at = cost_moment(t, pod);
		add_spent(t, ours, pod, at);
		if (!is_left_alone(t, pod))
			continue;
		add_reserved(t, ours, allow_to_come(pod, at), strcmp(pod->run, holder) != 0);
		holder = pod->run;
	}
	free(pods);
	return 0;
}

static int count_all(struct tally *t, struct err *err)
{
	for (size_t i = 0; i < t->running_count; i++)
		if (count_run(t, &t->running[i], run_has_client(&t->ctx->runs, t->running[i].id),
			      err) < 0)
			return -1;
	return count_pods(t, err);
}

int caps_read(struct caps *out, const struct launch *l, const char *self, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	int64_t now = clock_wall_ms();
	struct run_row own = {0}, render;

	find_caps(out, ctx->config, now);
	if (!out->count)
		return 0;
	COPY_TEXT(own.config, config_path(ctx->config) ? config_path(ctx->config) : "");
	struct tally t = {.ctx = ctx, .caps = out, .self = self, .config = own.config, .now = now};
	CLEANUP(free_text) char *project = has_cap_of_project(out) ? project_of(ctx, &own) : NULL;
	t.project = project;
	if (delivery_render(&ctx->runs, &own, &render))
		COPY_TEXT(t.covered, render.id);
	if (store_runs(ctx->store, NULL, true, 0, &t.running, &t.running_count, err) < 0)
		return -1;
	int result = count_all(&t, err);
	free(t.running);
	return result;
}

/* ---- the share of a run ---- */

static int64_t own_cap(const struct launch *l)
{
	return section_int(section_group(config_top(l->ctx->config), "caps"), "max_cost");
}

/* From here on that is the run's own cap, for its plan, its delivery and its account's balance,
 * too. */
static int lower(struct launch *l, const struct allowance *a, int64_t given, struct err *err)
{
	CLEANUP(free_text) char *from = xasprintf("the remainder of caps.%s", a->key);
	CLEANUP(free_text)
	char *dollars = xasprintf("%lld.%06lld", (long long)(given / 1000000),
				  (long long)(given % 1000000));
	CLEANUP(str_free) struct str used = STR_INIT;
	char may[32], cap[32];

	allow_say_used(&used, a);
	log_line(LOG_NOTE, "%s (caps.%s): this run may cost %s instead of its caps.max_cost of %s",
		 str_text(&used), a->key, money_show(may, sizeof(may), given),
		 money_show(cap, sizeof(cap), own_cap(l)));
	snprintf(l->cap_words, sizeof(l->cap_words), "caps.%s (%s%s)", a->key,
		 money_show(cap, sizeof(cap), a->cap_microusd),
		 a->project ? " in this project" : "");
	return config_override(l->ctx->config, "caps.max_cost", dollars, from, err);
}

static int take_share(struct launch *l, const struct caps *caps, struct err *err)
{
	const struct allowance *a = allow_tightest(caps->list, caps->count);
	int64_t wanted = own_cap(l),
		given = allow_give(caps->list, caps->count, wanted, l->least_microusd);

	if (!a || given >= wanted)
		return 0;
	return given > 0 ? lower(l, a, given, err) : allow_refuse(a, l->least_microusd, err);
}

int caps_fit(struct launch *l, struct err *err)
{
	struct caps caps;

	return caps_read(&caps, l, "", err) < 0 ? -1 : take_share(l, &caps, err);
}

int caps_plan(struct caps *out, struct launch *l, struct err *err)
{
	if (caps_read(out, l, "", err) < 0)
		return -1;
	const struct allowance *a = allow_tightest(out->list, out->count);
	bool lowers =
		a && run_open_segments(&l->run) && allow_left(a) > 0 && allow_left(a) < own_cap(l);
	return lowers ? lower(l, a, allow_left(a), err) : 0;
}

int caps_refuse(const struct caps *caps, const struct launch *l, struct err *err)
{
	const struct allowance *a = allow_tightest(caps->list, caps->count);

	return a && !allow_left(a) ? allow_refuse(a, l->least_microusd, err) : 0;
}

void caps_show(FILE *to, const struct caps *caps)
{
	char left[32];

	for (size_t i = 0; caps && i < caps->count; i++) {
		CLEANUP(str_free) struct str used = STR_INIT;
		allow_say_used(&used, &caps->list[i]);
		fprintf(to, "%s (caps.%s), %s is left\n", str_text(&used), caps->list[i].key,
			money_show(left, sizeof(left), allow_left(&caps->list[i])));
	}
}

json_t *caps_to_json(const struct caps *caps)
{
	json_t *list = json_array();

	for (size_t i = 0; caps && i < caps->count; i++) {
		const struct allowance *a = &caps->list[i];
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "cap", a->key, "of",
				  a->project ? "project" : "all", "limit_usd",
				  report_dollars(a->cap_microusd), "spent_usd",
				  report_dollars(a->spent_microusd), "reserved_usd",
				  report_dollars(a->reserved_microusd), "left_usd",
				  report_dollars(allow_left(a)), "until", report_time(a->ends_ms)));
	}
	return list;
}

static int begin(struct launch *l, struct err *err)
{
	struct caps caps;

	if (caps_read(&caps, l, l->run.row.id, err) < 0 || take_share(l, &caps, err) < 0)
		return -1;
	l->run.setup.conf.max_cost_microusd = l->run.row.max_cost_microusd = own_cap(l);
	return store_put_run(l->ctx->store, &l->run.row, err);
}

static int in_transaction(struct launch *l, int (*step)(struct launch *l, struct err *err),
			  struct err *err)
{
	if (store_begin(l->ctx->store, err) < 0)
		return -1;
	if (step(l, err) < 0) {
		store_rollback(l->ctx->store);
		return -1;
	}
	return store_commit(l->ctx->store, err);
}

int caps_begin(struct launch *l, struct err *err)
{
	return in_transaction(l, begin, err);
}

/* What the engine may spend counts from the create of pods that live: that much of it is spent
 * already. */
static int go_on(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	struct caps caps;
	int64_t now = clock_wall_ms(), to_come = 0, spent = 0,
		over = own_cap(l) - s->conf.max_cost_microusd;

	if (caps_read(&caps, l, l->run.row.id, err) < 0)
		return -1;
	for (size_t i = 0; i < s->adopt_count; i++) {
		to_come += allow_to_come(&s->adopt[i], now);
		spent += pod_row_over(&s->adopt[i]) ? 0 : pod_row_cost(&s->adopt[i], now);
	}
	const struct allowance *a = allow_tightest(caps.list, caps.count);
	int64_t wanted = MAX(s->conf.max_cost_microusd - spent, 0);
	int64_t given = MAX(allow_give(caps.list, caps.count, wanted, 0), to_come);
	if (a && given < wanted) {
		s->conf.max_cost_microusd = MAX(spent + given, 1);
		if (lower(l, a, over + s->conf.max_cost_microusd, err) < 0)
			return -1;
	}
	l->run.row.max_cost_microusd = own_cap(l);
	return store_put_run(l->ctx->store, &l->run.row, err);
}

int caps_go_on(struct launch *l, struct err *err)
{
	return in_transaction(l, go_on, err);
}

void caps_explain(const struct launch *l, struct err *err)
{
	static const char words[] = "; its cap was the remainder of ";
	size_t len = strlen(err->msg);

	if (err->kind == ERR_CAP && l->cap_words[0] &&
	    len + strlen(l->cap_words) + sizeof(words) <= sizeof(err->msg))
		snprintf(err->msg + len, sizeof(err->msg) - len, "%s%s", words, l->cap_words);
}
