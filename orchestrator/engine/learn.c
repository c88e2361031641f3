/* learn.c - turns finished batches and pods into estimates for later plans. */
#include "learn.h"

#include <ctype.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../base/gpus.h"
#include "../base/mem.h"

enum { COLD_MOST = 40, COLD_LEAST = 3 };

/* ---- keys ---- */

static size_t add_part(char *key, size_t at, const char *text, size_t most)
{
	for (size_t n = 0; text && *text && n < most; text++, n++)
		key[at++] = isgraph((unsigned char)*text) && *text != '|' ? *text : '_';
	key[at++] = '|';
	return at;
}

void learn_key(const struct learn_what *what, char key[LEARN_KEY])
{
	const struct gpu *known = gpu_find(what->gpu ? what->gpu : "");
	size_t at = add_part(key, 0, what->engine, 23);

	at = add_part(key, at, what->options, 32);
	at = add_part(key, at, known ? known->name : what->gpu, 39);
	at = add_part(key, at, what->provider, 23);
	at = add_part(key, at, what->version, 31);
	key[at - 1] = '\0';
}

/* The part of a key with this number, from 0. */
static void part_of(const char *key, int number, char *out, size_t room)
{
	while (number-- > 0) {
		key = strchr(key, '|');
		if (!key++) {
			*out = '\0';
			return;
		}
	}
	snprintf(out, room, "%.*s", (int)strcspn(key, "|"), key);
}

/* ---- sums ---- */

struct speed_sums learn_sums(const struct speed_row *row)
{
	return (struct speed_sums){.n = row->n, .longest = row->longest, .sum = row->sum, .longest2 = row->longest2,
				   .longest_sum = row->longest_sum, .sum2 = row->sum2, .t = row->t, .longest_t = row->longest_t,
				   .sum_t = row->sum_t, .batches = (double)row->batches};
}

static void sums_into(struct speed_row *row, const struct speed_sums *s)
{
	row->n = s->n;
	row->longest = s->longest;
	row->sum = s->sum;
	row->longest2 = s->longest2;
	row->longest_sum = s->longest_sum;
	row->sum2 = s->sum2;
	row->t = s->t;
	row->longest_t = s->longest_t;
	row->sum_t = s->sum_t;
	row->batches = (int64_t)s->batches;
}

static int by_speed(const void *a, const void *b)
{
	return strcmp(((const struct batch_row *)a)->speed, ((const struct batch_row *)b)->speed);
}

static int row_of_key(struct store *store, const char *key, struct speed_row *out, struct err *err)
{
	struct speed_row *rows = NULL;
	size_t count = 0;

	if (store_speeds(store, key, &rows, &count, err) < 0)
		return -1;
	*out = (struct speed_row){0};
	COPY_TEXT(out->key, key);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].key, key))
			*out = rows[i];
	free(rows);
	return 0;
}

/* The first batches of the list, those of one key; *folded: how many. */
static int fold_key(struct store *store, const struct batch_row *list, size_t count, bool fade, int64_t wall_ms, size_t *folded,
		    struct err *err)
{
	struct speed_row row;

	if (row_of_key(store, list[0].speed, &row, err) < 0)
		return -1;
	struct speed_sums sums = learn_sums(&row);
	if (fade)
		speed_decay(&sums, SPEED_DECAY);
	for (*folded = 0; *folded < count && !strcmp(list[*folded].speed, row.key); ++*folded)
		speed_add(&sums, list[*folded].longest, list[*folded].sum, (double)list[*folded].took_ms / 1000);
	sums_into(&row, &sums);
	row.updated_ms = wall_ms;
	return store_put_speed(store, &row, err);
}

int learn_fold(struct store *store, struct batch_row *list, size_t count, bool fade, int64_t wall_ms, struct err *err)
{
	size_t folded;

	if (store_begin(store, err) < 0)
		return -1;
	qsort(list, count, sizeof(*list), by_speed);
	for (size_t at = 0; at < count; at += folded)
		if (fold_key(store, list + at, count - at, fade, wall_ms, &folded, err) < 0) {
			store_rollback(store);
			return -1;
		}
	return store_commit(store, err);
}

/* ---- estimates ---- */

/* How well a row suits what is asked: 0, not at all; the same GPU goes before another one, then the provider, then the version. */
static int suits(const struct speed_row *row, const struct learn_what *what, const char *wanted_key)
{
	char gpu[40], provider[24], version[32], wanted[40];

	if (row->batches < SPEED_MEASURED_MIN)
		return 0;
	part_of(row->key, 2, gpu, sizeof(gpu));
	part_of(row->key, 3, provider, sizeof(provider));
	part_of(row->key, 4, version, sizeof(version));
	part_of(wanted_key, 2, wanted, sizeof(wanted));
	int score = 1 + 4 * !strcmp(gpu, wanted) + 2 * !strcmp(provider, what->provider ? what->provider : "");
	return score + (what->version && !strcmp(version, what->version));
}

/* A key has '_' where a name has a blank. */
static const struct gpu *gpu_of_key(const char *key)
{
	char text[40];

	part_of(key, 2, text, sizeof(text));
	return gpu_find(text);
}

enum plan_source learn_speed(struct store *store, const struct learn_what *what, const struct speed *prior, struct speed *out,
			     char from[LEARN_FROM])
{
	struct speed_row *rows = NULL;
	const struct speed_row *best = NULL;
	size_t count = 0;
	int score = 0;
	char key[LEARN_KEY], provider[24], day[32];
	enum plan_source source = PLAN_PRIOR;

	learn_key(what, key);
	*out = *prior;
	if (from)
		from[0] = '\0';
	const char *after_options = strchr(strchr(key, '|') + 1, '|');
	CLEANUP(free_text) char *prefix = xstrndup(key, (size_t)(after_options + 1 - key));
	if (store_speeds(store, prefix, &rows, &count, NULL) < 0)
		return source;
	for (size_t i = 0; i < count; i++) {
		int its = suits(&rows[i], what, key);
		if (its > score || (its == score && best && rows[i].updated_ms > best->updated_ms)) {
			score = its;
			best = &rows[i];
		}
	}
	struct speed_sums sums = best ? learn_sums(best) : (struct speed_sums){0};
	const struct gpu *had = best ? gpu_of_key(best->key) : NULL, *wanted = gpu_of_key(key);
	struct speed fit;
	if (best && speed_fit(&fit, &sums, prior)) {
		if (score >= 5) {
			*out = fit;
			source = PLAN_MEASURED;
		} else if (what->host_share >= 1) {
			*out = fit;
			source = PLAN_CARRIED;
		} else if (had && wanted) {
			*out = speed_carry(&fit, had, wanted, what->host_share);
			source = PLAN_CARRIED;
		}
	}
	if (from && source != PLAN_PRIOR) {
		part_of(best->key, 3, provider, sizeof(provider));
		clock_rfc3339(day, sizeof(day), best->updated_ms);
		snprintf(from, LEARN_FROM, "%s at %s, %lld batches, %.10s", had ? had->name : "no GPU", provider, (long long)best->batches, day);
	}
	free(rows);
	return source;
}

/* ---- interruptions ---- */

double learn_interrupted_s(const struct pod_row *rows, size_t count, bool spot, double guess_s, int *taken, double *lived_s)
{
	*taken = 0;
	*lived_s = 0;
	for (size_t i = 0; i < count; i++) {
		if (rows[i].spot != spot)
			continue;
		*taken += rows[i].preempted;
		*lived_s += (double)rows[i].billed_ms / 1000;
	}
	int ends = *taken + (guess_s > 0);
	return ends ? (*lived_s + MAX(guess_s, 0.0)) / ends : 0;
}

/* ---- cold starts ---- */

/* Milliseconds between two marks; -1: one was not seen. */
static int64_t between(int64_t from_ms, int64_t to_ms)
{
	return from_ms <= 0 || to_ms <= 0 ? -1 : MAX(to_ms - from_ms, 0); /* steps may overlap: workers load while code is synced */
}

static int64_t phase_of(const struct pod_row *row, enum cold_phase phase)
{
	switch (phase) {
	case COLD_QUEUE: return between(row->create_ms, row->running_ms);
	case COLD_BOOT: return between(row->running_ms, row->reached_ms);
	case COLD_CONNECT: return between(row->reached_ms, row->connected_ms);
	case COLD_SYNC: return between(row->connected_ms, row->synced_ms);
	case COLD_LOAD: return between(row->synced_ms, row->ready_ms);
	case COLD_SETUP: /* within sync: the ledger has no mark of its own */
	case COLD_PHASES: break;
	}
	return -1;
}

static bool is_this_gpu(const struct pod_row *row, const char *gpu)
{
	const struct gpu *known = gpu_find(gpu);

	return !strcmp(row->gpu, gpu) || (known && known == gpu_find(row->gpu));
}

/* gpu NULL: any. */
static size_t samples(const struct pod_row *rows, size_t count, const char *gpu, enum cold_phase phase, double out[COLD_MOST])
{
	size_t n = 0;

	for (size_t i = 0; i < count && n < COLD_MOST; i++) {
		int64_t ms = phase_of(&rows[i], phase);
		if (ms >= 0 && (!gpu || is_this_gpu(&rows[i], gpu)))
			out[n++] = (double)ms / 1000;
	}
	return n;
}

void learn_cold(const struct pod_row *rows, size_t count, const char *gpu, struct cold *inout)
{
	double list[COLD_MOST];

	for (int phase = 0; phase < COLD_PHASES; phase++) {
		size_t n = samples(rows, count, gpu, (enum cold_phase)phase, list);
		if (n < COLD_LEAST)
			n = samples(rows, count, NULL, (enum cold_phase)phase, list);
		inout->phase[phase] = cold_learn(list, n, inout->phase[phase]);
	}
}
