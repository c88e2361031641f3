/* caps.c - sums a ledger: what pods cost, what counts toward caps over runs, the share that a run
 * reserves */
#include "caps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/path.h"
#include "choice.h"
#include "impl.h"
#include "store/pod_cost.h"

/* ---- spend: sums what pods cost by day, project, GPU or provider ---- */

bool spend_by_named(const char *word, enum spend_by *out)
{
	static const char *const words[] = {"day", "project", "gpu", "provider"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(word, words[i])) {
			*out = (enum spend_by)i;
			return true;
		}
	return false;
}

/* ---- days ---- */

int64_t spend_period_ms(int64_t wall_ms, bool month, bool next)
{
	time_t at = (time_t)(wall_ms / 1000);
	struct tm tm = {0};

	localtime_r(&at, &tm);
	tm.tm_mday = month ? 1 : tm.tm_mday + next;
	tm.tm_mon += month && next;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	int64_t begins = (int64_t)mktime(&tm) * 1000;
	/* if DST begins at midnight, mktime() may return the hour before */
	return next && begins <= wall_ms ? wall_ms + INT64_C(3600000) : begins;
}

/* ---- parts of pods ---- */

/* `part` of `of` shares of the whole. Differences for rising parts sum to the whole. */
static int64_t proportion(int64_t whole, int64_t part, int64_t of)
{
	return part >= of ? whole
			  : (int64_t)((long double)whole * (long double)part / (long double)of);
}

/* The part of a pod's cost since that moment. The cost arose in spread_ms from from_ms on. */
static int64_t spend_since(int64_t cost_microusd, int64_t spread_ms, int64_t from_ms,
			   int64_t since_ms)
{
	int64_t before = MIN(MAX(since_ms - from_ms, 0), spread_ms);

	return spread_ms > 0 ? cost_microusd - proportion(cost_microusd, before, spread_ms) : 0;
}

/* What a pod, or a part of it, used. */
struct use {
	int64_t billed_ms, compute_ms, wasted_ms, cost_microusd, counted_microusd, unpriced_ms;
};

struct sums {
	struct spend_row *rows;
	size_t count, cap;
};

/* The row of this key; adds one if there is none. */
static struct spend_row *spend_row_of(struct sums *to, const char *key)
{
	for (size_t i = to->count; i-- > 0;)
		if (!strcmp(to->rows[i].key, key))
			return &to->rows[i];
	GROW(to->rows, to->count, to->cap);
	struct spend_row *row = &to->rows[to->count++];
	*row = (struct spend_row){0};
	COPY_TEXT(row->key, key);
	return row;
}

/* Pods come sorted by their runs, and the parts of a pod one after the other. */
static void add_use(struct sums *to, const char *key, const struct pod_row *pod,
		    const struct use *use)
{
	struct spend_row *row = spend_row_of(to, key);

	row->runs += !row->last || strcmp(row->last->run, pod->run) != 0;
	row->pods += row->last != pod;
	row->last = pod;
	row->billed_ms += use->billed_ms;
	row->compute_ms += use->compute_ms;
	row->wasted_ms += use->wasted_ms;
	row->cost_microusd += use->cost_microusd;
	row->counted_microusd += use->counted_microusd;
	row->unpriced_ms += use->unpriced_ms;
}

/* The part of `whole` that falls into [from, until) of `of`. */
static int64_t proportion_between(int64_t whole, int64_t from, int64_t until, int64_t of)
{
	return proportion(whole, until, of) - proportion(whole, from, of);
}

/* spread_ms: in which its cost arose, from when it bills. */
static void add_use_by_day(struct sums *to, const struct pod_row *pod, const struct use *all,
			   int64_t spread_ms)
{
	int64_t billed = all->billed_ms, from_ms = pod_row_bills_from(pod);

	for (int64_t done = 0, end; done < spread_ms; done = end) {
		int64_t at = from_ms + done;
		char day[16];

		end = MIN(spend_period_ms(at, false, true) - from_ms, spread_ms);
		clock_local(day, sizeof(day), "%Y-%m-%d", at);
		add_use(to, day, pod,
			&(struct use){
				.billed_ms = MIN(end, billed) - MIN(done, billed),
				.compute_ms =
					proportion_between(all->compute_ms, done, end, billed),
				.wasted_ms = proportion_between(all->wasted_ms, done, end, billed),
				.cost_microusd = proportion_between(all->cost_microusd, done, end,
								    spread_ms),
				.counted_microusd = proportion_between(all->counted_microusd, done,
								       end, billed),
				.unpriced_ms =
					proportion_between(all->unpriced_ms, done, end, billed)});
	}
}

static int compare_id(const void *a, const void *b)
{
	return strcmp((*(const struct run_row *const *)a)->id,
		      (*(const struct run_row *const *)b)->id);
}

/* Runs sorted by their ids. */
static const struct run_row **sort_runs(const struct run_row *runs, size_t count)
{
	const struct run_row **sorted = xcalloc(count + 1, sizeof(*sorted));

	for (size_t i = 0; i < count; i++)
		sorted[i] = &runs[i];
	qsort(sorted, count, sizeof(*sorted), compare_id);
	return sorted;
}

/* The folder of the run's config; "unknown" if the ledger has no such run or config. */
static void project_of_run(char *to, size_t room, const struct run_row **runs, size_t count,
			   const char *id)
{
	struct run_row wanted = {0};
	const struct run_row *key = &wanted;

	COPY_TEXT(wanted.id, id);
	const struct run_row **found = bsearch(&key, runs, count, sizeof(*runs), compare_id);
	copy_text(to, room, found ? (*found)->config : "");
	char *slash = strrchr(to, '/');
	if (slash)
		slash[slash == to] = 0;
	if (!*to)
		copy_text(to, room, "unknown");
}

static int compare_run(const void *a, const void *b)
{
	return strcmp((*(const struct pod_row *const *)a)->run,
		      (*(const struct pod_row *const *)b)->run);
}

static int newest_first(const void *a, const void *b)
{
	return -strcmp(((const struct spend_row *)a)->key, ((const struct spend_row *)b)->key);
}

static int dearest_first(const void *a, const void *b)
{
	const struct spend_row *x = a, *y = b;

	if (x->cost_microusd != y->cost_microusd)
		return x->cost_microusd < y->cost_microusd ? 1 : -1;
	return strcmp(x->key, y->key);
}

struct spend_row *spend_sum(enum spend_by by, const struct run_row *runs, size_t run_count,
			    const struct pod_row *pods, size_t pod_count, int64_t now_ms,
			    size_t *count)
{
	const struct run_row **its_runs = sort_runs(runs, run_count);
	const struct pod_row **sorted = xcalloc(pod_count + 1, sizeof(*sorted));
	struct sums sums = {0};

	for (size_t i = 0; i < pod_count; i++)
		sorted[i] = &pods[i];
	qsort(sorted, pod_count, sizeof(*sorted), compare_run);
	for (size_t i = 0; i < pod_count; i++) {
		const struct pod_row *pod = sorted[i];
		int64_t spread_ms = pod_row_spread_ms(pod, now_ms);
		struct use all = {pod_row_billed_ms(pod, now_ms),
				  pod->compute_ms,
				  pod->wasted_ms,
				  pod_row_cost(pod, now_ms),
				  pod_row_counted(pod, now_ms),
				  pod_row_unpriced_ms(pod, now_ms)};
		const char *gpu = pod->gpu[0] ? pod->gpu : pod->gpu_offered;
		char project[512];
		if (spread_ms <= 0)
			continue;
		switch (by) {
		case SPEND_BY_DAY: add_use_by_day(&sums, pod, &all, spread_ms); break;
		case SPEND_BY_PROJECT:
			project_of_run(project, sizeof(project), its_runs, run_count, pod->run);
			add_use(&sums, project, pod, &all);
			break;
		case SPEND_BY_GPU: add_use(&sums, *gpu ? gpu : "none", pod, &all); break;
		case SPEND_BY_PROVIDER: add_use(&sums, pod->provider, pod, &all); break;
		}
	}
	free(its_runs);
	free(sorted);
	if (sums.count)
		qsort(sums.rows, sums.count, sizeof(*sums.rows),
		      by == SPEND_BY_DAY ? newest_first : dearest_first);
	*count = sums.count;
	return sums.rows;
}

/* ---- allow: computes what the caps over runs leave for one more run ---- */

enum { SELF_END_MS = 10 * 1000 }; /* as in core/, for a pod that ends itself */

int64_t allow_spent(const struct pod_row *pod, int64_t begins_ms, int64_t at_ms)
{
	int64_t maybe = pod_row_may_have_cost(pod),
		maybe_from = pod->run_ms ? pod->queued_ms : pod->create_ms;

	if (maybe)
		return spend_since(maybe, pod->released_ms - maybe_from, maybe_from, begins_ms);
	return spend_since(pod_row_cost(pod, at_ms), pod_row_spread_ms(pod, at_ms),
			   pod_row_bills_from(pod), begins_ms);
}

int64_t allow_to_come(const struct pod_row *pod, int64_t at_ms)
{
	if (pod_row_over(pod) || (pod->released_ms > 0 && !pod_row_outlives(pod)))
		return 0;
	return money_for(pod->price_microusd_h,
			 MAX(pod_row_to_come_ms(pod, at_ms) + SELF_END_MS, 0));
}

int64_t allow_reserved(const struct run_row *run, bool has_client, const struct pod_row *pods,
		       size_t count, int64_t at_ms)
{
	int64_t cost = 0, to_come = 0;

	for (size_t i = 0; i < count; i++) {
		cost += pod_row_cost(&pods[i], at_ms) + pod_row_may_have_cost(&pods[i]);
		to_come += allow_to_come(&pods[i], at_ms);
	}
	return has_client ? MAX(run->max_cost_microusd - cost, to_come) : to_come;
}

int64_t allow_left(const struct allowance *a)
{
	return MAX(a->cap_microusd - a->spent_microusd - a->reserved_microusd, 0);
}

const struct allowance *allow_tightest(const struct allowance *list, size_t count)
{
	const struct allowance *tightest = NULL;

	for (size_t i = 0; i < count; i++)
		if (!tightest || allow_left(&list[i]) < allow_left(tightest))
			tightest = &list[i];
	return tightest;
}

int64_t allow_give(const struct allowance *list, size_t count, int64_t wanted, int64_t least)
{
	const struct allowance *tightest = allow_tightest(list, count);
	int64_t given = tightest ? MIN(wanted, allow_left(tightest)) : wanted;

	return given < wanted && given < least ? 0 : given;
}

/* ---- messages ---- */

static bool is_month(const struct allowance *a)
{
	return !strcmp(a->key, "per_month");
}

void allow_add_used(struct str *to, const struct allowance *a)
{
	char used[32], cap[32];

	str_addf(to, "%s of %s %s%s are spent or reserved",
		 money_show(used, sizeof(used), a->spent_microusd + a->reserved_microusd),
		 money_show(cap, sizeof(cap), a->cap_microusd),
		 is_month(a) ? "this month" : "today", a->project ? " in this project" : "");
}

int allow_refuse(const struct allowance *a, int64_t least, struct err *err)
{
	CLEANUP(str_free) struct str why = STR_INIT;
	char money[32], until[32];
	int64_t left = allow_left(a);

	allow_add_used(&why, a);
	str_addf(&why, " (caps.%s)", a->key);
	if (a->holders)
		str_addf(&why,
			 "; %s of that is reserved by %d run%s in progress (see `burst "
			 "ps`)",
			 money_show(money, sizeof(money), a->reserved_microusd), a->holders,
			 a->holders == 1 ? "" : "s");
	if (left)
		str_addf(&why, "; %s is left", money_show(money, sizeof(money), left));
	if (left && least > left)
		str_addf(&why, ", but %s is spent before a pod is ready",
			 money_show(money, sizeof(money), least));
	str_addf(&why, ": wait until %s%s, or raise caps.%s; nothing was rented",
		 clock_local(until, sizeof(until), "%Y-%m-%d %H:%M", a->ends_ms),
		 a->holders ? " or until those have ended" : "", a->key);
	return err_set(err, ERR_CAP, "%s: %s", a->where, str_text(&why));
}

/* ---- reads from the ledger what counts toward caps over runs, and reserves a run's share ---- */

/* ---- what counts toward them ---- */

static bool is_of_project(const struct run_row *run, const char *project)
{
	CLEANUP(free_text) char *its = path_dir(run->config);

	return !strcmp(its, project);
}

struct tally {
	const struct runs *rs;
	struct caps *caps;
	const char *self, *project;
	/* the run that this one is a stage of, whose reservation passed to this one; "": none */
	const char *covered;
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

/* Adds what the pod cost in each cap's period. ours: its run is of this project. */
static void add_spent(struct tally *t, bool ours, const struct pod_row *pod, int64_t at)
{
	for (size_t i = 0; i < t->caps->count; i++)
		if (ours || !t->caps->list[i].project)
			t->caps->list[i].spent_microusd +=
				allow_spent(pod, t->caps->list[i].begins_ms, at);
}

/* Adds the amount to each cap that covers the run. another_run: the run holds no part of it yet. */
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

/* Until when the pod's cost counts: without a client, its hard end, whatever its row says. */
static int64_t cost_until_ms(const struct tally *t, const struct pod_row *pod)
{
	return pod_row_over(pod) ? t->now : run_pod_now(t->rs, pod, t->now).at_ms;
}

/* Whether a stage holds the run's reservation. A run passes what it may still spend to its stage,
 * which is a run of its own, and the same dollars must not count twice. The stage is this run
 * (t->covered) or another living one. */
static bool is_covered(const struct tally *t, const struct run_row *run)
{
	if (!strcmp(run->id, t->covered))
		return true;
	for (size_t i = 0; i < t->running_count; i++)
		if (!strcmp(t->running[i].part_of, run->id) &&
		    run_is_alive(t->rs, t->running[i].id))
			return true;
	return false;
}

/* Adds what a running run may still spend; nothing for this run itself. */
static int add_run_reservation(struct tally *t, const struct run_row *run, bool with_client,
			       struct err *err)
{
	struct pod_row *pods = NULL;
	size_t pod_count = 0;

	if (!strcmp(run->id, t->self))
		return 0;
	if (store_pods(t->rs->store, run->id, false, &pods, &pod_count, err) < 0)
		return -1;
	bool ours = t->project && is_of_project(run, t->project);
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

/* The row of a pod's run; reads it only if it differs from the last one. */
static const struct run_row *run_of(struct tally *t, const char *id, struct run_row *last)
{
	if (strcmp(last->id, id) != 0 && store_run(t->rs->store, id, last, NULL) < 0) {
		*last = (struct run_row){0};
		COPY_TEXT(last->id, id);
	}
	return last;
}

/* Whether a pod without a client may still bill: its run has ended or its client died. */
static bool is_without_client(const struct tally *t, const struct pod_row *pod)
{
	return !pod_row_over(pod) && !is_running(t, pod->run) && strcmp(pod->run, t->self) != 0;
}

/* Adds what pods have cost in the periods, and what pods without a client can still cost. */
static int add_pods_spending(struct tally *t, struct err *err)
{
	struct pod_row *pods = NULL;
	struct run_row last = {0};
	size_t pod_count = 0;
	int64_t since = INT64_MAX;
	const char *holder = "";

	for (size_t i = 0; i < t->caps->count; i++)
		since = MIN(since, t->caps->list[i].begins_ms);
	if (store_pods_since(t->rs->store, since, &pods, &pod_count, err) < 0)
		return -1;
	for (size_t i = 0; i < pod_count; i++) {
		const struct pod_row *pod = &pods[i];
		bool ours = t->project && is_of_project(run_of(t, pod->run, &last), t->project);
		int64_t at = cost_until_ms(t, pod);
		add_spent(t, ours, pod, at);
		if (!is_without_client(t, pod))
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
		if (add_run_reservation(t, &t->running[i], run_has_client(t->rs, t->running[i].id),
					err) < 0)
			return -1;
	return add_pods_spending(t, err);
}

static void begin_periods(struct caps *caps, int64_t now)
{
	for (size_t i = 0; i < caps->count; i++) {
		struct allowance *a = &caps->list[i];
		bool month = !strcmp(a->key, "per_month");

		a->begins_ms = spend_period_ms(now, month, false);
		a->ends_ms = spend_period_ms(now, month, true);
		a->spent_microusd = a->reserved_microusd = 0;
		a->holders = 0;
	}
}

/* Sets what counts toward the caps over runs; -1: the ledger failed. self: a run whose own
 * reservation does not count; "": none. Within store_begin() that stays true until the commit. */
static int fill_in_caps(const struct runs *rs, struct run_caps *c, const char *self,
			struct err *err)
{
	int64_t now = clock_wall_ms();
	c->lowered_by = NULL;
	if (!c->over.count)
		return 0;
	begin_periods(&c->over, now);
	CLEANUP(free_text)
	char *project = has_cap_of_project(&c->over) ? path_dir(c->config) : NULL;
	struct tally t = {.rs = rs,
			  .caps = &c->over,
			  .self = self,
			  .project = project,
			  .covered = c->part_of ? c->part_of : "",
			  .now = now};
	if (store_runs(rs->store, NULL, true, 0, &t.running, &t.running_count, err) < 0)
		return -1;
	int result = count_all(&t, err);
	free(t.running);
	return result;
}

/* ---- the share of a run ---- */

/* Lowers the run's cap to what this cap over runs leaves, with a note. */
static void lower_cap(const struct runs *rs, struct run_caps *c, const struct allowance *a,
		      int64_t given)
{
	CLEANUP(str_free) struct str used = STR_INIT;
	char may[32], cap[32];

	allow_add_used(&used, a);
	runs_note(rs, LOG_NOTE,
		  "%s (caps.%s): this run may cost %s instead of its caps.max_cost of %s",
		  str_text(&used), a->key, money_show(may, sizeof(may), given),
		  money_show(cap, sizeof(cap), c->max_cost_microusd));
	c->max_cost_microusd = given;
	c->lowered_by = a;
}

/* Lowers the run's cap to what is left. -1 with ERR_CAP: too little is left. */
static int reserve_share(const struct runs *rs, struct run_caps *c, struct err *err)
{
	const struct allowance *a = allow_tightest(c->over.list, c->over.count);
	int64_t wanted = c->max_cost_microusd,
		given = allow_give(c->over.list, c->over.count, wanted, c->least_microusd);

	if (!a || given >= wanted)
		return 0;
	if (given <= 0)
		return allow_refuse(a, c->least_microusd, err);
	lower_cap(rs, c, a, given);
	return 0;
}

int run_caps_fit(const struct runs *rs, struct run_caps *c, struct err *err)
{
	return fill_in_caps(rs, c, "", err) < 0 ? -1 : reserve_share(rs, c, err);
}

int run_caps_plan(const struct runs *rs, struct run_caps *c, bool renders, struct err *err)
{
	if (fill_in_caps(rs, c, "", err) < 0)
		return -1;
	const struct allowance *a = allow_tightest(c->over.list, c->over.count);
	if (a && renders && allow_left(a) > 0 && allow_left(a) < c->max_cost_microusd)
		lower_cap(rs, c, a, allow_left(a));
	return 0;
}

int caps_refuse_least(const struct caps *caps, int64_t least_microusd, struct err *err)
{
	const struct allowance *a = allow_tightest(caps->list, caps->count);

	return a && !allow_left(a) ? allow_refuse(a, least_microusd, err) : 0;
}

/* Writes the run's row, and what the run decided. */
static int put_run(const struct run *run, struct err *err)
{
	struct store *store = run->runs->store;

	if (store_put_run(store, &run->row, err) < 0)
		return -1;
	return run->choice ? run_choice_write(run->choice, store, run->row.id, err) : 0;
}

static int begin_in_transaction(struct run *run, struct run_caps *c, struct err *err)
{
	if (fill_in_caps(run->runs, c, run->row.id, err) < 0 ||
	    reserve_share(run->runs, c, err) < 0)
		return -1;
	run->setup.conf.max_cost_microusd = run->row.max_cost_microusd = c->max_cost_microusd;
	return put_run(run, err);
}

int run_caps_begin(struct run *run, struct run_caps *c, struct err *err)
{
	struct store *store = run->runs->store;

	return store_begin(store, err) < 0
		       ? -1
		       : store_end(store, begin_in_transaction(run, c, err), err);
}

/* The engine's cap counts from the create of living pods, so what they have cost is added. */
static int resume_in_transaction(struct run *run, struct run_caps *c, struct err *err)
{
	struct engine_setup *s = &run->setup;
	int64_t now = clock_wall_ms(), to_come = 0, spent = 0,
		over = c->max_cost_microusd - s->conf.max_cost_microusd;

	if (fill_in_caps(run->runs, c, run->row.id, err) < 0)
		return -1;
	for (size_t i = 0; i < s->adopt_count; i++) {
		to_come += allow_to_come(&s->adopt[i], now);
		spent += pod_row_over(&s->adopt[i]) ? 0 : pod_row_cost(&s->adopt[i], now);
	}
	const struct allowance *a = allow_tightest(c->over.list, c->over.count);
	int64_t wanted = MAX(s->conf.max_cost_microusd - spent, 0);
	int64_t given = MAX(allow_give(c->over.list, c->over.count, wanted, 0), to_come);
	if (a && given < wanted) {
		s->conf.max_cost_microusd = MAX(spent + given, 1);
		lower_cap(run->runs, c, a, over + s->conf.max_cost_microusd);
	}
	run->row.max_cost_microusd = c->max_cost_microusd;
	/* kept pods are taken only if they end within it (pooled.h) */
	run->row.ends_by_ms = s->conf.max_duration_ms ? now + s->conf.max_duration_ms : 0;
	return put_run(run, err);
}

int run_caps_resume(struct run *run, struct run_caps *c, struct err *err)
{
	struct store *store = run->runs->store;

	return store_begin(store, err) < 0
		       ? -1
		       : store_end(store, resume_in_transaction(run, c, err), err);
}
