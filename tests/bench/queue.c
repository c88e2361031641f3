/* queue.c - 20 submits of a day as arithmetic: each on pods of its own, by the rule for kept pods
 * alone, and by the joint plan, made anew at each arrival; then how long the joint plan's two
 * searches take. No pod is rented and nothing waits. Prints; tests nothing. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "joint_bed.h"
#include "plan/joint.h"
#include "plan_bed.h"

enum { SUBMITS = 20, KINDS = 2, OFFERS = 20, DAYS = 9, JOBS_MOST = 200, GAMES = 9 };
#define QUIET_S 20.0

/* ---- jobs ---- */

struct submits {
	struct plan_machine machines[KINDS][OFFERS];
	struct joint_kind kinds[KINDS];
	struct plan_work works[JOBS_MOST];
	struct joint_job jobs[JOBS_MOST]; /* ready_s and by_s from the day's begin */
	int count;
};

static void draw_kinds(struct submits *d)
{
	for (int k = 0; k < KINDS; k++) {
		for (int i = 0; i < OFFERS; i++) {
			double boot_s = random_between(40, 200);
			d->machines[k][i] = (struct plan_machine){
				.id = i,
				.price_h = random_between(.2, 4),
				.cold.phase[COLD_BOOT] = {boot_s, boot_s * 1.5, 3},
				.cold.phase[COLD_CONNECT] = {1, 2, 3},
				.cold.phase[COLD_LOAD] = {15, 20, 3},
				.speed = {random_between(0, .5), random_between(.002, .02),
					  random_between(.0002, .004)},
				.workers = 1,
				.batch_max = 8 + (int)random_between(0, 56),
				.tail_s = 1,
			};
		}
		d->kinds[k] = (struct joint_kind){
			d->machines[k], OFFERS, {.canary = 3, .staged = true, .pods_most = 8}};
	}
}

static void draw_submit(struct submits *d, double at_s)
{
	struct joint_job *j = &d->jobs[d->count];
	struct plan_work *w = &d->works[d->count++];
	double lengths[1000];
	size_t count = (size_t)(random_between(0, 1) < .25 ? random_between(300, 1000)
							   : random_between(10, 150));

	for (size_t i = 0; i < count; i++)
		lengths[i] = random_between(30, 280);
	plan_work_init(w, lengths, count, 64, 0);
	*j = (struct joint_job){.kind = random_between(0, 1) < .2,
				.work = w,
				.ready_s = at_s + QUIET_S,
				.by_s = at_s + random_between(10 * 60, 4 * 3600),
				.begin_by_s = INFINITY};
}

static int soonest_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Ten hours of work, with more submits before noon and in the evening. */
static void draw_day(struct submits *d, uint64_t number)
{
	double at[SUBMITS];

	seed = number;
	d->count = 0;
	draw_kinds(d);
	for (int i = 0; i < SUBMITS; i++)
		at[i] = random_between(0, 1) < .6
				? random_between(2, 3) * 3600 + (i % 2 ? 5 * 3600 : 0)
				: random_between(0, 10) * 3600;
	qsort(at, SUBMITS, sizeof(*at), soonest_first);
	for (int i = 0; i < SUBMITS; i++)
		draw_submit(d, at[i]);
}

/* ---- results ---- */

struct result {
	double billed_s, usd, late_s;
	int late, pods;
};

static void bill(struct result *r, const struct plan_machine *m, int pods, double seconds)
{
	r->billed_s += pods * seconds;
	r->usd += cost_usd(m->price_h, pods * seconds);
}

static void note_end(struct result *r, const struct joint_job *j, double end_s)
{
	if (end_s <= j->by_s)
		return;
	r->late++;
	r->late_s += end_s - j->by_s;
}

/* The best plan of one job that may start then. *out: its first group. */
static bool plan_alone(const struct submits *d, int job, double now_s, struct joint_group *out)
{
	struct joint_job j = d->jobs[job];
	struct joint_case of = {
		.kinds = d->kinds, .jobs = &j, .job_count = 1, .budget_usd = INFINITY};
	struct joint_plan p;

	j.ready_s = MAX(j.ready_s - now_s, 0.0);
	j.by_s -= now_s;
	joint_choose(&p, &of);
	bool found = p.group_count;
	if (found)
		*out = p.groups[0];
	joint_free(&p);
	return found;
}

/* Each job as soon as it is ready, on pods of its own. */
static struct result one_by_one(const struct submits *d)
{
	struct result r = {0};
	struct joint_group g;

	for (int i = 0; i < d->count; i++) {
		double at_s = d->jobs[i].ready_s;
		if (!plan_alone(d, i, at_s, &g))
			continue;
		bill(&r, &d->machines[g.kind][g.machine], g.pods, g.end_s - g.start_s);
		r.pods += g.pods;
		note_end(&r, &d->jobs[i], at_s + g.end_s);
	}
	return r;
}

/* ---- kept pods ---- */

struct kept {
	const struct plan_machine *m;
	int kind, pods;
	double from_s, until_s;
};

/* Seconds of the job on pods that are up. */
static double warm_s(const struct submits *d, int job, const struct kept *k)
{
	struct joint_job j = d->jobs[job];
	struct joint_up up = {k->kind, *k->m, k->pods, 0};
	struct joint_kind kind = d->kinds[k->kind];
	struct joint_case of = {.kinds = &kind,
				.jobs = &j,
				.job_count = 1,
				.ups = &up,
				.up_count = 1,
				.budget_usd = INFINITY};
	struct joint_plan p;

	kind.machine_count = 0; /* nothing else is to be had */
	up.kind = j.kind = 0;
	j.ready_s = 0;
	joint_choose(&p, &of);
	double end_s = p.groups[0].end_s;
	joint_free(&p);
	return end_s;
}

/* When the job starts by itself: at once if its work is worth a cold start, else so late that --by
 * is just kept. */
static double own_start(const struct submits *d, int job)
{
	struct joint_group g;
	const struct joint_job *j = &d->jobs[job];

	if (!plan_alone(d, job, j->ready_s, &g))
		return j->ready_s;
	double cold_s = cold_p50_s(&d->machines[g.kind][g.machine].cold),
	       work_s = g.end_s - g.start_s - cold_s;
	if (work_s * 3 >= cold_s * 7)
		return j->ready_s;
	return MAX(j->ready_s, j->by_s - g.end_p90_s * 1.1 - 60);
}

/* The rule of `burst submit --by` with keep_warm = "auto": a job waits for work, takes over a pod
 * that is kept when it could start, and its pods are kept for one cold start. */
static struct result by_kept_pods(const struct submits *d)
{
	struct result r = {0};
	bool done[SUBMITS] = {0};
	struct kept kept[SUBMITS];
	int kept_count = 0;

	for (int n = 0; n < d->count; n++) {
		int next = -1, on = -1;
		double start_s = INFINITY;
		for (int i = 0; i < d->count; i++) {
			if (done[i])
				continue;
			double at_s = own_start(d, i);
			int with = -1;
			for (int k = 0; k < kept_count; k++) {
				double warm_at_s = MAX(kept[k].from_s, d->jobs[i].ready_s);
				if (kept[k].kind == d->jobs[i].kind &&
				    warm_at_s <= kept[k].until_s && warm_at_s <= at_s) {
					at_s = warm_at_s;
					with = k;
				}
			}
			if (at_s < start_s) {
				start_s = at_s;
				next = i;
				on = with;
			}
		}
		struct kept now;
		double end_s;
		if (on >= 0) {
			now = kept[on];
			end_s = start_s + warm_s(d, next, &now);
			bill(&r, now.m, now.pods, end_s - now.from_s);
			kept[on] = kept[--kept_count];
		} else {
			struct joint_group g;
			if (!plan_alone(d, next, start_s, &g))
				continue;
			now = (struct kept){&d->machines[g.kind][g.machine], g.kind, g.pods, 0, 0};
			end_s = start_s + g.end_s;
			bill(&r, now.m, now.pods, g.end_s - g.start_s);
			r.pods += g.pods;
		}
		done[next] = true;
		note_end(&r, &d->jobs[next], end_s);
		now.from_s = end_s;
		now.until_s = end_s + cold_p50_s(&now.m->cold);
		kept[kept_count++] = now;
	}
	for (int k = 0; k < kept_count; k++) /* what nobody took */
		bill(&r, kept[k].m, kept[k].pods, kept[k].until_s - kept[k].from_s);
	return r;
}

/* ---- the joint plan ---- */

struct at_work {
	struct joint_up up; /* free_s from the day's begin */
};

/* When the group should begin: as soon as its work is worth a cold start, else as late as makes no
 * job later, since more work may come. */
static double begins_s(const struct submits *d, const struct joint_group *g)
{
	if (g->up >= 0)
		return g->start_s;
	double cold_s = cold_p50_s(&d->machines[g->kind][g->machine].cold);
	return (g->end_s - g->start_s - cold_s) * 3 >= cold_s * 7 ? g->start_s
								  : MAX(g->start_s, g->latest_s);
}

/* Begins those jobs of a group that begin before until_s. */
static void begin_group(struct submits *d, struct result *r, const struct joint_plan *p,
			const struct joint_group *g, const int *pending, double now_s,
			double until_s, struct at_work *ups, int *up_count, bool *done)
{
	double end_s = -1;

	for (size_t k = 0; k < g->count; k++) {
		int place = p->order[g->first + k], job = pending[place];
		const struct joint_fate *f = &p->fates[place];
		if (now_s + f->begin_s >= until_s && (k || g->up >= 0))
			break;
		done[job] = true;
		end_s = now_s + f->end_s;
		note_end(r, &d->jobs[job], end_s);
	}
	if (end_s < 0)
		return;
	if (g->up >= 0) {
		struct at_work *w = &ups[g->up];
		bill(r, &w->up.machine, w->up.pods, end_s - w->up.free_s);
		w->up.free_s = end_s;
		return;
	}
	const struct plan_machine *m = &d->machines[g->kind][g->machine];
	bill(r, m, g->pods, end_s - now_s - g->start_s);
	r->pods += g->pods;
	ups[(*up_count)++].up = (struct joint_up){g->kind, *m, g->pods, end_s};
}

/* One plan at now_s. Begins what begins now. Returns when to plan again, at most until_s. */
static double plan_once(struct submits *d, struct result *r, int submitted, double now_s,
			double until_s, struct at_work *ups, int *up_count, bool *done)
{
	struct joint_job jobs[SUBMITS];
	struct joint_up now_up[SUBMITS];
	int pending[SUBMITS], n = 0, live = 0;
	double next_s = until_s;
	struct joint_plan p;

	for (int i = 0; i < submitted; i++) {
		if (done[i])
			continue;
		jobs[n] = d->jobs[i];
		jobs[n].ready_s = MAX(jobs[n].ready_s - now_s, 0.0);
		jobs[n].by_s -= now_s;
		pending[n++] = i;
	}
	for (int i = 0; i < *up_count; i++) /* the others have been released */
		if (ups[i].up.free_s >= now_s)
			ups[live++] = ups[i];
	*up_count = live;
	for (int i = 0; i < live; i++) {
		now_up[i] = ups[i].up;
		now_up[i].free_s -= now_s;
	}
	struct joint_case of = {.kinds = d->kinds,
				.jobs = jobs,
				.job_count = (size_t)n,
				.ups = now_up,
				.up_count = (size_t)live,
				.budget_usd = INFINITY};
	joint_choose(&p, &of);
	for (size_t i = 0; i < p.group_count; i++) {
		const struct joint_group *g = &p.groups[i];
		double at_s = begins_s(d, g);
		if (g->up >= 0 || at_s <= 1e-6)
			begin_group(d, r, &p, g, pending, now_s, until_s, ups, up_count, done);
		else
			next_s = MIN(next_s, now_s + at_s);
	}
	joint_free(&p);
	return next_s;
}

static struct result jointly(struct submits *d)
{
	struct result r = {0};
	bool done[SUBMITS] = {0};
	struct at_work ups[SUBMITS];
	int up_count = 0;

	for (int event = 0; event < d->count; event++) {
		double now_s = d->jobs[event].ready_s - QUIET_S,
		       until_s = event + 1 < d->count ? d->jobs[event + 1].ready_s - QUIET_S
						      : INFINITY;
		while (now_s < until_s)
			now_s = plan_once(d, &r, event + 1, now_s, until_s, ups, &up_count, done);
	}
	return r;
}

/* ---- the table ---- */

static void add(struct result *to, const struct result *r)
{
	to->billed_s += r->billed_s;
	to->usd += r->usd;
	to->late += r->late;
	to->late_s += r->late_s;
	to->pods += r->pods;
}

static void print_result(const char *name, const struct result *r)
{
	printf("%-42s %4.0f pods, %6.0f s billed, $%.3f, %.1f late, %.0f s late in all\n", name,
	       (double)r->pods / DAYS, r->billed_s / DAYS, r->usd / DAYS, (double)r->late / DAYS,
	       r->late_s / DAYS);
}

/* ---- the searches ---- */

/* A queue whose jobs are all of one kind: the most partitions. */
struct game {
	const char *name;
	int jobs, pods_most;
	bool hopeless; /* most jobs are due before a pod is up */
};

static double play(const struct game *game, uint64_t number)
{
	static struct submits d;
	struct joint_plan p;

	seed = number;
	d.count = 0;
	draw_kinds(&d);
	d.kinds[0].wish.pods_most = game->pods_most;
	for (int k = 0; k < game->jobs; k++) {
		draw_submit(&d, random_between(0, 1800));
		d.jobs[k].kind = 0;
		if (game->hopeless && k % 8)
			d.jobs[k].by_s = random_between(0, 60);
	}
	struct joint_case of = {.kinds = d.kinds,
				.jobs = d.jobs,
				.job_count = (size_t)game->jobs,
				.budget_usd = INFINITY};
	double before = cpu_ms();
	joint_choose(&p, &of);
	double took = cpu_ms() - before;
	joint_free(&p);
	return took;
}

static void time_search(const struct game *game)
{
	double took[GAMES];

	for (int i = 0; i < GAMES; i++)
		took[i] = play(game, 100 + (uint64_t)i);
	qsort(took, GAMES, sizeof(*took), soonest_first);
	printf("%s: %d jobs x %d offers, up to %d pods: %.1f ms (median of %d; worst %.1f ms)\n",
	       game->name, game->jobs, OFFERS, game->pods_most, took[GAMES / 2], GAMES,
	       took[GAMES - 1]);
}

/* How often the search for many jobs is further than 2 % from the exact plan, where both take the
 * case. */
static void compare_searches(void)
{
	enum { CASES = 3000, JOBS = 8, MACHINES = 6, PODS = 4 };
	int far = 0;

	for (uint64_t number = 1; number <= CASES; number++) {
		struct joint_bed bed;
		struct joint_plan exact, found;
		seed = number;
		joint_bed_random(&bed, JOBS, MACHINES, PODS);
		if (number % 3 == 0)
			joint_bed_budget(&bed);
		joint_choose(&exact, &bed.of);
		joint_search(&found, &bed.of);
		far += !joint_is_near(&found.score, &exact.score);
		joint_free(&exact);
		joint_free(&found);
		joint_bed_free(&bed);
	}
	printf("search for many, of %d jobs: more than 2 %% from the exact plan in %d of %d "
	       "cases\n",
	       JOBS, far, CASES);
}

int main(void)
{
	static const struct game games[] = {
		{"exact", 8, 8, false},
		{"exact", 8, 64, false},
		{"exact, most late", 8, 64, true},
		{"search", JOBS_MOST, 8, false},
		{"search", JOBS_MOST, 64, false},
		{"search, most late", JOBS_MOST, 64, true},
	};
	struct result alone = {0}, kept = {0}, joint = {0};

	for (uint64_t number = 1; number <= DAYS; number++) {
		static struct submits d;
		draw_day(&d, number);
		struct result a = one_by_one(&d), b = by_kept_pods(&d), c = jointly(&d);
		add(&alone, &a);
		add(&kept, &b);
		add(&joint, &c);
	}
	printf("%d submits, mean of %d days:\n", SUBMITS, DAYS);
	print_result("one by one", &alone);
	print_result("each waits for work, pods kept (auto)", &kept);
	print_result("planned together, anew at each submit", &joint);
	for (size_t i = 0; i < ARRAY_LEN(games); i++)
		time_search(&games[i]);
	compare_searches();
	return 0;
}
