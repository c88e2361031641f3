/* caps.c - reads from the ledger what counts toward caps over runs, and reserves a run's share. */
#include "caps.h"

#include <stdlib.h>

#include "base/clock.h"
#include "choice.h"
#include "base/path.h"
#include "impl.h"
#include "spend.h"
#include "store/pod_cost.h"

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

/* Until when its cost counts: a pod without a client ends at its hard end, whatever its row says.
 */
static int64_t cost_moment(const struct tally *t, const struct pod_row *pod)
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

static int count_run(struct tally *t, const struct run_row *run, bool with_client, struct err *err)
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
	if (store_pods_since(t->rs->store, since, &pods, &pod_count, err) < 0)
		return -1;
	for (size_t i = 0; i < pod_count; i++) {
		const struct pod_row *pod = &pods[i];
		bool ours = t->project && is_of_project(run_of(t, pod->run, &last), t->project);
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
		if (count_run(t, &t->running[i], run_has_client(t->rs, t->running[i].id), err) < 0)
			return -1;
	return count_pods(t, err);
}

static void begin_periods(struct caps *caps, int64_t now)
{
	for (size_t i = 0; i < caps->count; i++) {
		struct allowance *a = &caps->list[i];
		bool month = !strcmp(a->key, "per_month");

		a->begins_ms = month ? spend_month_ms(now) : spend_day_ms(now);
		a->ends_ms = month ? spend_next_month_ms(now) : spend_next_day_ms(now);
		a->spent_microusd = a->reserved_microusd = 0;
		a->holders = 0;
	}
}

/* Fills in what counts toward the caps over runs. self: a run whose own reservation does not count;
 * "": none. Inside store_begin() it stays true until the commit. */
static int tally_up(const struct runs *rs, struct run_caps *c, const char *self, struct err *err)
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

static void lower(const struct runs *rs, struct run_caps *c, const struct allowance *a,
		  int64_t given)
{
	CLEANUP(str_free) struct str used = STR_INIT;
	char may[32], cap[32];

	allow_say_used(&used, a);
	runs_note(rs, LOG_NOTE,
		  "%s (caps.%s): this run may cost %s instead of its caps.max_cost of %s",
		  str_text(&used), a->key, money_show(may, sizeof(may), given),
		  money_show(cap, sizeof(cap), c->max_cost_microusd));
	c->max_cost_microusd = given;
	c->lowered_by = a;
}

static int take_share(const struct runs *rs, struct run_caps *c, struct err *err)
{
	const struct allowance *a = allow_tightest(c->over.list, c->over.count);
	int64_t wanted = c->max_cost_microusd,
		given = allow_give(c->over.list, c->over.count, wanted, c->least_microusd);

	if (!a || given >= wanted)
		return 0;
	if (given <= 0)
		return allow_refuse(a, c->least_microusd, err);
	lower(rs, c, a, given);
	return 0;
}

int run_caps_fit(const struct runs *rs, struct run_caps *c, struct err *err)
{
	return tally_up(rs, c, "", err) < 0 ? -1 : take_share(rs, c, err);
}

int run_caps_plan(const struct runs *rs, struct run_caps *c, bool renders, struct err *err)
{
	if (tally_up(rs, c, "", err) < 0)
		return -1;
	const struct allowance *a = allow_tightest(c->over.list, c->over.count);
	if (a && renders && allow_left(a) > 0 && allow_left(a) < c->max_cost_microusd)
		lower(rs, c, a, allow_left(a));
	return 0;
}

int caps_refuse_least(const struct caps *caps, int64_t least_microusd, struct err *err)
{
	const struct allowance *a = allow_tightest(caps->list, caps->count);

	return a && !allow_left(a) ? allow_refuse(a, least_microusd, err) : 0;
}

static int put(const struct run *run, struct err *err)
{
	struct store *store = run->runs->store;

	if (store_put_run(store, &run->row, err) < 0)
		return -1;
	return run->choice ? run_choice_write(run->choice, store, run->row.id, err) : 0;
}

static int begin(struct run *run, struct run_caps *c, struct err *err)
{
	if (tally_up(run->runs, c, run->row.id, err) < 0 || take_share(run->runs, c, err) < 0)
		return -1;
	run->setup.conf.max_cost_microusd = run->row.max_cost_microusd = c->max_cost_microusd;
	return put(run, err);
}

static int in_transaction(struct run *run, struct run_caps *c,
			  int (*step)(struct run *run, struct run_caps *c, struct err *err),
			  struct err *err)
{
	struct store *store = run->runs->store;

	if (store_begin(store, err) < 0)
		return -1;
	if (step(run, c, err) < 0) {
		store_rollback(store);
		return -1;
	}
	return store_commit(store, err);
}

int run_caps_begin(struct run *run, struct run_caps *c, struct err *err)
{
	return in_transaction(run, c, begin, err);
}

/* The engine's cap counts from the create of living pods, so add what they have cost. */
static int resume(struct run *run, struct run_caps *c, struct err *err)
{
	struct engine_setup *s = &run->setup;
	int64_t now = clock_wall_ms(), to_come = 0, spent = 0,
		over = c->max_cost_microusd - s->conf.max_cost_microusd;

	if (tally_up(run->runs, c, run->row.id, err) < 0)
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
		lower(run->runs, c, a, over + s->conf.max_cost_microusd);
	}
	run->row.max_cost_microusd = c->max_cost_microusd;
	/* kept pods are taken only if they end within it (kept.h) */
	run->row.ends_by_ms = s->conf.max_duration_ms ? now + s->conf.max_duration_ms : 0;
	return put(run, err);
}

int run_caps_resume(struct run *run, struct run_caps *c, struct err *err)
{
	return in_transaction(run, c, resume, err);
}
