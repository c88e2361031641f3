/* joint_moves.c - changes groups of a joint plan while that helps: merges and splits them, moves
 * jobs between them, and swaps them with each other and with jobs that are left out. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "joint_impl.h"

#define ROUNDING 1e-9 /* dollars: no gain */

enum { FAILED_ROOM = 1 << 15, SPLITS = 8 };

static size_t draw(struct many *m, size_t below)
{
	m->random = m->random * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(m->random >> 33) % below;
}

double gangs_usd(const struct gangs *g)
{
	double usd = 0;

	for (size_t i = 0; i < g->count; i++)
		usd += g->list[i].best.rank.usd;
	return usd;
}

void many_note_ups(struct many *m, const struct gangs *g, size_t a, size_t b)
{
	for (size_t up = 0; up < m->of->up_count; up++)
		m->up_used[up] = false;
	for (size_t i = 0; i < g->count; i++)
		if (i != a && i != b && g->list[i].best.up >= 0)
			m->up_used[g->list[i].best.up] = true;
}

/* ---- moves that did not help ----
 * A move depends on the groups that it changes, and on what the budget leaves. */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t hash_gang(const struct gang *g)
{
	uint64_t hash = mix((uint64_t)g->best.machine + 2, (uint64_t)g->best.width);

	hash = mix(hash, (uint64_t)g->best.up + 2);
	for (size_t i = 0; i < g->count; i++)
		hash = mix(hash, (uint64_t)g->jobs[i]);
	return hash;
}

static uint64_t hash_move(const struct many *m, const struct gangs *g, size_t a, size_t b,
			  const int *first, size_t first_count)
{
	uint64_t hash = mix(m->by_cost, hash_gang(&g->list[a]) + hash_gang(&g->list[b]));

	for (size_t i = 0; i < first_count; i++)
		hash = mix(hash, (uint64_t)first[i]);
	if (isfinite(m->budget_usd))
		hash = mix(hash, (uint64_t)(gangs_usd(g) * 1e9));
	for (size_t up = 0; up < m->of->up_count; up++)
		hash = mix(hash, m->up_used[up]);
	return hash | 1;
}

/* The place of the hash, or an empty one. */
static uint64_t *find_failed(struct many *m, uint64_t hash)
{
	size_t at = hash % FAILED_ROOM;

	if (!m->failed)
		m->failed = xcalloc(FAILED_ROOM, sizeof(*m->failed));
	while (m->failed[at] && m->failed[at] != hash)
		at = (at + 1) % FAILED_ROOM;
	return &m->failed[at];
}

static void note_failed(struct many *m, uint64_t hash)
{
	if (m->failed_count > FAILED_ROOM / 2) {
		memset(m->failed, 0, FAILED_ROOM * sizeof(*m->failed));
		m->failed_count = 0;
	}
	uint64_t *place = find_failed(m, hash);
	m->failed_count += !*place;
	*place = hash;
}

/* ---- one move ---- */

/* Replaces two groups (b may be a: one) by one or two others. */
static void put(struct gangs *g, size_t a, size_t b, const int *first, size_t first_count,
		const struct variant *x, const int *second, size_t second_count,
		const struct variant *y)
{
	gangs_add(g, first, first_count, x);
	if (second_count)
		gangs_add(g, second, second_count, y);
	/* the later one first: removing moves the last into its place */
	gangs_remove(g, MAX(a, b));
	if (b != a)
		gangs_remove(g, MIN(a, b));
}

/* What the second of two groups must be better than, so that both are better than `both`. */
static struct rank rank_left(const struct rank *both, const struct rank *first)
{
	return (struct rank){both->out - first->out, both->late - first->late,
			     both->late_ms - first->late_ms, both->usd - first->usd};
}

/* Sets the best variants of both. Returns false if the groups are not better than `below`. */
static bool find_both(struct many *m, double usd_most, const struct rank *below, const int *first,
		      size_t first_count, struct variant *x, const int *second, size_t second_count,
		      struct variant *y)
{
	struct query q = {first, first_count, usd_most, *below};

	if (!many_find(m, &q, x))
		return false;
	if (!second_count)
		return true;
	if (x->up >= 0)
		m->up_used[x->up] = true;
	q = (struct query){second, second_count, usd_most - x->rank.usd,
			   rank_left(below, &x->rank)};
	return many_find(m, &q, y);
}

/* Replaces the groups if that is better and the budget pays. */
static bool replace(struct many *m, struct gangs *g, size_t a, size_t b, const int *first,
		    size_t first_count, const int *second, size_t second_count)
{
	struct rank was = g->list[a].best.rank;
	struct variant x, y;

	if (b != a)
		was = rank_sum(&was, &g->list[b].best.rank);
	double usd_most = m->budget_usd - (gangs_usd(g) - was.usd);
	was.usd -= ROUNDING;
	many_note_ups(m, g, a, b);
	uint64_t hash = hash_move(m, g, a, b, first, first_count);
	if (*find_failed(m, hash))
		return false;
	if (!find_both(m, usd_most, &was, first, first_count, &x, second, second_count, &y)) {
		note_failed(m, hash);
		return false;
	}
	put(g, a, b, first, first_count, &x, second, second_count, &y);
	return true;
}

static int kind_of(const struct many *m, const struct gangs *g, size_t a)
{
	return m->of->jobs[g->list[a].jobs[0]].kind;
}

/* ---- moves of groups ---- */

/* Another offer or width for what there is: the budget may pay for a better one by now. */
static bool render_otherwise(struct many *m, struct gangs *g)
{
	bool any = false;

	for (size_t a = 0; a < g->count && many_may_go_on(m); a++) {
		int *jobs = joint_join(m->of, g->list[a].jobs, g->list[a].count, NULL, 0);
		any |= replace(m, g, a, a, jobs, g->list[a].count, NULL, 0);
		free(jobs);
	}
	return any;
}

static bool merge_some(struct many *m, struct gangs *g)
{
	for (size_t a = 0; a < g->count; a++)
		for (size_t b = a + 1; b < g->count && many_may_go_on(m); b++) {
			if (kind_of(m, g, a) != kind_of(m, g, b))
				continue;
			size_t n = g->list[a].count + g->list[b].count;
			int *jobs = joint_join(m->of, g->list[a].jobs, g->list[a].count,
					       g->list[b].jobs, g->list[b].count);
			bool done = replace(m, g, a, b, jobs, n, NULL, 0);
			free(jobs);
			if (done)
				return true;
		}
	return false;
}

static bool split_some(struct many *m, struct gangs *g)
{
	for (size_t a = 0; a < g->count; a++) {
		size_t n = g->list[a].count, by = MAX(n / SPLITS, (size_t)1);
		for (size_t k = by; k < n && many_may_go_on(m); k += by) {
			int *jobs = joint_join(m->of, g->list[a].jobs, n, NULL, 0);
			bool done = replace(m, g, a, a, jobs, k, jobs + k, n - k);
			free(jobs);
			if (done)
				return true;
		}
	}
	return false;
}

/* ---- moves of jobs ---- */

/* The jobs of a group but that at k; the caller frees them. */
static int *without(const struct gang *g, size_t k)
{
	int *rest = xcalloc(g->count, sizeof(*rest));
	size_t n = 0;

	for (size_t i = 0; i < g->count; i++)
		if (i != k)
			rest[n++] = g->jobs[i];
	return rest;
}

/* The group to which a job goes, with the job; b is a: a group of its own. The caller frees it. */
static int *with_job(const struct many *m, const struct gangs *g, size_t a, size_t b, int job,
		     size_t *count)
{
	*count = b == a ? 1 : g->list[b].count + 1;
	return b == a ? joint_join(m->of, &job, 1, NULL, 0)
		      : joint_join(m->of, g->list[b].jobs, g->list[b].count, &job, 1);
}

/* Moves the job at k of group a to group b, or, where b is a, to a group of its own. */
static bool move_job(struct many *m, struct gangs *g, size_t a, size_t k, size_t b)
{
	size_t count;
	int *rest = without(&g->list[a], k),
	    *more = with_job(m, g, a, b, g->list[a].jobs[k], &count);
	bool done = replace(m, g, a, b, more, count, rest, g->list[a].count - 1);

	free(rest);
	free(more);
	return done;
}

static bool move_some(struct many *m, struct gangs *g)
{
	for (size_t a = 0; a < g->count; a++)
		for (size_t k = 0; k < g->list[a].count; k++)
			for (size_t b = 0; b < g->count && many_may_go_on(m); b++) {
				if (kind_of(m, g, a) != kind_of(m, g, b) ||
				    (b == a && g->list[a].count == 1))
					continue;
				if (move_job(m, g, a, k, b))
					return true;
			}
	return false;
}

/* Swaps job i of group a with job k of group b. */
static bool swap_jobs(struct many *m, struct gangs *g, size_t a, size_t i, size_t b, size_t k)
{
	const struct gang *x = &g->list[a], *y = &g->list[b];
	int *first = joint_join(m->of, x->jobs, x->count, NULL, 0),
	    *second = joint_join(m->of, y->jobs, y->count, NULL, 0);

	first[i] = y->jobs[k];
	second[k] = x->jobs[i];
	joint_sort(m->of, first, x->count);
	joint_sort(m->of, second, y->count);
	bool done = replace(m, g, a, b, first, x->count, second, y->count);
	free(first);
	free(second);
	return done;
}

static bool swap_some(struct many *m, struct gangs *g)
{
	for (size_t a = 0; a < g->count; a++)
		for (size_t b = a + 1; b < g->count; b++)
			for (size_t at = 0;
			     at < g->list[a].count * g->list[b].count &&
			     kind_of(m, g, a) == kind_of(m, g, b) && many_may_go_on(m);
			     at++)
				if (swap_jobs(m, g, a, at / g->list[b].count, b,
					      at % g->list[b].count))
					return true;
	return false;
}

/* ---- jobs that are left out ---- */

/* Which jobs no group has; the caller frees the list. */
static int *list_left_out(const struct many *m, const struct gangs *g, size_t *count)
{
	int *jobs = xcalloc(m->of->job_count + 1, sizeof(*jobs));
	bool *has = xcalloc(m->of->job_count + 1, sizeof(*has));

	*count = 0;
	for (size_t i = 0; i < g->count; i++)
		for (size_t k = 0; k < g->list[i].count; k++)
			has[g->list[i].jobs[k]] = true;
	for (size_t job = 0; job < m->of->job_count; job++)
		if (!has[job])
			jobs[(*count)++] = (int)job;
	free(has);
	return jobs;
}

/* Adds the job to the group where it adds least, or a group for it. A large group costs less for
 * each, so that a job's budget may pay its share there alone. */
static bool add_job(struct many *m, struct gangs *g, int job)
{
	double left_usd = m->budget_usd - gangs_usd(g);
	struct query alone = {&job, 1, left_usd, rank_worst};
	struct variant v, best;
	struct rank least = rank_worst;
	size_t into = SIZE_MAX;

	many_note_ups(m, g, SIZE_MAX, SIZE_MAX);
	bool any = many_find(m, &alone, &best);
	if (any)
		least = best.rank;
	for (size_t i = 0; i < g->count && many_may_go_on(m); i++) {
		const struct gang *x = &g->list[i];
		if (kind_of(m, g, i) != m->of->jobs[job].kind)
			continue;
		int *jobs = joint_join(m->of, x->jobs, x->count, &job, 1);
		struct query q = {jobs, x->count + 1, left_usd + x->best.rank.usd,
				  any ? rank_sum(&x->best.rank, &least) : rank_worst};
		many_note_ups(m, g, i, i);
		uint64_t hash = hash_move(m, g, i, i, jobs, x->count + 1);
		if (!*find_failed(m, hash) && many_find(m, &q, &v)) {
			best = v;
			least = rank_left(&v.rank, &x->best.rank);
			into = i;
			any = true;
		} else if (!any) {
			note_failed(m, hash);
		}
		free(jobs);
	}
	if (!any)
		return false;
	if (into == SIZE_MAX) {
		gangs_add(g, &job, 1, &best);
		return true;
	}
	size_t n = g->list[into].count + 1;
	int *jobs = joint_join(m->of, g->list[into].jobs, n - 1, &job, 1);
	put(g, into, into, jobs, n, &best, NULL, 0, NULL);
	free(jobs);
	return true;
}

/* Takes the job for that at k of group a, which is left out then, if that is better. */
static bool exchange(struct many *m, struct gangs *g, size_t a, size_t k, int job)
{
	int *jobs = joint_join(m->of, g->list[a].jobs, g->list[a].count, NULL, 0);

	jobs[k] = job;
	joint_sort(m->of, jobs, g->list[a].count);
	bool done = replace(m, g, a, a, jobs, g->list[a].count, NULL, 0);
	free(jobs);
	return done;
}

static bool exchange_some(struct many *m, struct gangs *g, const int *out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t a = 0; a < g->count; a++)
			for (size_t k = 0; k < g->list[a].count && many_may_go_on(m) &&
					   kind_of(m, g, a) == m->of->jobs[out[i]].kind;
			     k++)
				if (exchange(m, g, a, k, out[i]))
					return true;
	return false;
}

static bool take_some(struct many *m, struct gangs *g)
{
	size_t count;
	int *out = list_left_out(m, g, &count);
	bool any = false;

	for (size_t i = 0, from = count ? draw(m, count) : 0; i < count && many_may_go_on(m); i++)
		any |= add_job(m, g, out[(from + i) % count]);
	if (!any)
		any = exchange_some(m, g, out, count);
	free(out);
	return any;
}

void many_improve(struct many *m, struct gangs *g)
{
	while (many_may_go_on(m) &&
	       (take_some(m, g) || render_otherwise(m, g) || merge_some(m, g) || split_some(m, g) ||
		move_some(m, g) || swap_some(m, g)))
		;
}

/* ---- at random ---- */

/* Replaces the groups whatever that costs. */
static void replace_anyway(struct many *m, struct gangs *g, size_t a, size_t b, const int *first,
			   size_t first_count, const int *second, size_t second_count)
{
	struct variant x, y;

	many_note_ups(m, g, a, b);
	if (find_both(m, INFINITY, &rank_worst, first, first_count, &x, second, second_count, &y))
		put(g, a, b, first, first_count, &x, second, second_count, &y);
}

static void shake_job(struct many *m, struct gangs *g, size_t a, size_t b)
{
	size_t k = draw(m, g->list[a].count), count;
	int *rest = without(&g->list[a], k),
	    *more = with_job(m, g, a, b, g->list[a].jobs[k], &count);

	replace_anyway(m, g, a, b, more, count, rest, g->list[a].count - 1);
	free(rest);
	free(more);
}

static void shake_groups(struct many *m, struct gangs *g, size_t a, size_t b)
{
	size_t n = g->list[a].count + g->list[b].count;
	int *jobs = joint_join(m->of, g->list[a].jobs, g->list[a].count, g->list[b].jobs,
			       g->list[b].count);

	replace_anyway(m, g, a, b, jobs, n, NULL, 0);
	free(jobs);
}

/* Leaves a job out, or all of the group. */
static void shake_out(struct many *m, struct gangs *g, size_t a)
{
	size_t n = g->list[a].count;

	if (n < 2 || draw(m, 2)) {
		gangs_remove(g, a);
		return;
	}
	int *rest = without(&g->list[a], draw(m, n));
	replace_anyway(m, g, a, a, rest, n - 1, NULL, 0);
	free(rest);
}

void many_shake(struct many *m, struct gangs *g)
{
	enum { MOVES_MOST = 3, KINDS_OF_MOVES = 6 };

	for (size_t moves = 1 + draw(m, MOVES_MOST); moves && g->count; moves--) {
		size_t a = draw(m, g->count), b = draw(m, g->count), what = draw(m, KINDS_OF_MOVES);
		if (what == 0)
			shake_out(m, g, a);
		else if (kind_of(m, g, a) != kind_of(m, g, b))
			continue;
		else if (what == 1 && b != a)
			shake_groups(m, g, a, b);
		else if (b != a || g->list[a].count > 1)
			shake_job(m, g, a, b);
	}
}
