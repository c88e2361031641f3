/* spend.c - sums what pods cost by day, project, GPU or provider. */
#include "spend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/pod_cost.h"

/* Use of one pod under one key. */
struct piece {
	char key[520];
	const char *run;
	int64_t billed_ms, compute_ms, wasted_ms, cost_microusd, counted_microusd;
	int64_t spread_ms; /* time in which its cost arose */
};

struct pieces {
	struct piece *list;
	size_t count, cap;
};

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

static struct tm local_time(int64_t wall_ms)
{
	time_t at = (time_t)(wall_ms / 1000);
	struct tm tm = {0};

	localtime_r(&at, &tm);
	return tm;
}

static int64_t midnight_ms(int64_t wall_ms, int days_later)
{
	struct tm tm = local_time(wall_ms);

	tm.tm_mday += days_later;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * 1000;
}

int64_t spend_day_ms(int64_t wall_ms)
{
	return midnight_ms(wall_ms, 0);
}

int64_t spend_next_day_ms(int64_t wall_ms)
{
	int64_t next = midnight_ms(wall_ms, 1);
	/* if DST begins at midnight, mktime() may return the hour before */
	return next > wall_ms ? next : wall_ms + INT64_C(3600000);
}

static int64_t first_of_month_ms(int64_t wall_ms, int months_later)
{
	struct tm tm = local_time(wall_ms);

	tm.tm_mon += months_later;
	tm.tm_mday = 1;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * 1000;
}

int64_t spend_month_ms(int64_t wall_ms)
{
	return first_of_month_ms(wall_ms, 0);
}

int64_t spend_next_month_ms(int64_t wall_ms)
{
	return first_of_month_ms(wall_ms, 1);
}

/* ---- parts of pods ---- */

static struct piece *add_piece(struct pieces *to, const char *run)
{
	GROW(to->list, to->count, to->cap);
	struct piece *piece = &to->list[to->count++];

	*piece = (struct piece){.run = run};
	return piece;
}

/* `part` of `of` shares of the whole. Differences for rising parts sum to the whole. */
static int64_t share(int64_t whole, int64_t part, int64_t of)
{
	return part >= of ? whole
			  : (int64_t)((long double)whole * (long double)part / (long double)of);
}

int64_t spend_since(int64_t cost_microusd, int64_t spread_ms, int64_t create_ms, int64_t since_ms)
{
	int64_t before = MIN(MAX(since_ms - create_ms, 0), spread_ms);

	return spread_ms > 0 ? cost_microusd - share(cost_microusd, before, spread_ms) : 0;
}

static void add_days(struct pieces *to, const struct pod_row *pod, const struct piece *all)
{
	int64_t billed = all->billed_ms, spread = all->spread_ms;
	struct piece *last = NULL;

	for (int64_t done = 0; done < spread;) {
		int64_t at = pod->create_ms + done,
			end = MIN(spend_next_day_ms(at) - pod->create_ms, spread);
		char day[16];

		clock_local(day, sizeof(day), "%Y-%m-%d", at);
		/* the hour that DST skips at midnight splits a day into two parts */
		struct piece *piece =
			last && !strcmp(last->key, day) ? last : add_piece(to, pod->run);
		COPY_TEXT(piece->key, day);
		piece->billed_ms += MIN(end, billed) - MIN(done, billed);
		piece->compute_ms +=
			share(all->compute_ms, end, billed) - share(all->compute_ms, done, billed);
		piece->wasted_ms +=
			share(all->wasted_ms, end, billed) - share(all->wasted_ms, done, billed);
		piece->cost_microusd += share(all->cost_microusd, end, spread) -
					share(all->cost_microusd, done, spread);
		piece->counted_microusd += share(all->counted_microusd, end, billed) -
					   share(all->counted_microusd, done, billed);
		last = piece;
		done = end;
	}
}

/* Runs sorted by id. */
struct by_id {
	const struct run_row **list;
	size_t count;
};

static int by_run_id(const void *a, const void *b)
{
	return strcmp((*(const struct run_row *const *)a)->id,
		      (*(const struct run_row *const *)b)->id);
}

static struct by_id sort_by_id(const struct run_row *runs, size_t count)
{
	struct by_id sorted = {xcalloc(count + 1, sizeof(*sorted.list)), count};

	for (size_t i = 0; i < count; i++)
		sorted.list[i] = &runs[i];
	qsort(sorted.list, count, sizeof(*sorted.list), by_run_id);
	return sorted;
}

/* The folder of its config. */
static void name_project(char *to, size_t room, const struct by_id *runs, const char *id)
{
	struct run_row wanted = {0};
	const struct run_row *key = &wanted;

	COPY_TEXT(wanted.id, id);
	const struct run_row **found =
		bsearch(&key, runs->list, runs->count, sizeof(*runs->list), by_run_id);
	copy_text(to, room, found ? (*found)->config : "");
	char *slash = strrchr(to, '/');
	if (slash)
		slash[slash == to] = 0;
	if (!*to)
		copy_text(to, room, "unknown");
}

static void add_pod(struct pieces *to, enum spend_by by, const struct by_id *runs,
		    const struct pod_row *pod, int64_t now_ms)
{
	struct piece all = {.run = pod->run,
			    .billed_ms = pod_row_billed_ms(pod, now_ms),
			    .compute_ms = pod->compute_ms,
			    .wasted_ms = pod->wasted_ms,
			    .cost_microusd = pod_row_cost(pod, now_ms),
			    .counted_microusd = pod_row_counted(pod, now_ms),
			    .spread_ms = pod_row_spread_ms(pod, now_ms)};

	if (all.spread_ms <= 0)
		return;
	switch (by) {
	case SPEND_BY_DAY: add_days(to, pod, &all); return;
	case SPEND_BY_PROJECT: name_project(all.key, sizeof(all.key), runs, pod->run); break;
	case SPEND_BY_GPU:
		COPY_TEXT(all.key, pod->gpu[0]           ? pod->gpu
				   : pod->gpu_offered[0] ? pod->gpu_offered
							 : "none");
		break;
	case SPEND_BY_PROVIDER: COPY_TEXT(all.key, pod->provider); break;
	}
	*add_piece(to, pod->run) = all;
}

/* ---- sums ---- */

static int by_key_and_run(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order ? order : strcmp(x->run, y->run);
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

static void add_to_row(struct spend_row *row, const struct piece *piece, bool new_run)
{
	row->runs += new_run;
	row->pods++;
	row->billed_ms += piece->billed_ms;
	row->compute_ms += piece->compute_ms;
	row->wasted_ms += piece->wasted_ms;
	row->cost_microusd += piece->cost_microusd;
	row->counted_microusd += piece->counted_microusd;
}

struct spend_row *spend_sum(enum spend_by by, const struct run_row *runs, size_t run_count,
			    const struct pod_row *pods, size_t pod_count, int64_t now_ms,
			    size_t *count)
{
	struct by_id sorted = sort_by_id(runs, run_count);
	struct pieces pieces = {0};
	struct spend_row *rows = NULL;
	size_t cap = 0;

	*count = 0;
	for (size_t i = 0; i < pod_count; i++)
		add_pod(&pieces, by, &sorted, &pods[i], now_ms);
	if (pieces.count)
		qsort(pieces.list, pieces.count, sizeof(*pieces.list), by_key_and_run);
	for (size_t i = 0; i < pieces.count; i++) {
		const struct piece *piece = &pieces.list[i];
		bool new_key = !i || strcmp(piece->key, piece[-1].key) != 0;
		if (new_key) {
			GROW(rows, *count, cap);
			rows[*count] = (struct spend_row){0};
			COPY_TEXT(rows[*count].key, piece->key);
			++*count;
		}
		add_to_row(&rows[*count - 1], piece,
			   new_key || strcmp(piece->run, piece[-1].run) != 0);
	}
	if (*count)
		qsort(rows, *count, sizeof(*rows),
		      by == SPEND_BY_DAY ? newest_first : dearest_first);
	free(pieces.list);
	free(sorted.list);
	return rows;
}
