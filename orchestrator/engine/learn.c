/* learn.c - learns from runs how fast engines are and how long pods take. */
#include "learn.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/mem.h"
#include "image.h"
#include "impl.h"

/* ---- learn ----
 * Turns finished batches and pods into estimates for later plans. */

enum { COLD_MOST = 40, COLD_LEAST = 3, SIZES_LOOKED_AT = 1000 };

/* ---- keys ---- */

static size_t add_key_part(char *key, size_t at, const char *text, size_t most)
{
	for (size_t n = 0; text && *text && n < most; text++, n++)
		key[at++] = isgraph((unsigned char)*text) && *text != '|' ? *text : '_';
	key[at++] = '|';
	return at;
}

void learn_key(const struct learn_what *what, char key[LEARN_KEY])
{
	const struct gpu *known = gpu_find(what->gpu ? what->gpu : "");
	size_t at = add_key_part(key, 0, what->engine, 23);

	at = add_key_part(key, at, what->options, 32);
	at = add_key_part(key, at, known ? known->name : what->gpu, 39);
	at = add_key_part(key, at, what->provider, 23);
	at = add_key_part(key, at, what->version, 31);
	key[at - 1] = '\0';
}

/* Copies the part of a key with this number, from 0; "": it has none. */
static void copy_key_part(const char *key, int number, char *out, size_t room)
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

static struct speed_sums sums_of_row(const struct speed_row *row)
{
	return (struct speed_sums){.n = row->n,
				   .longest = row->longest,
				   .sum = row->sum,
				   .longest2 = row->longest2,
				   .longest_sum = row->longest_sum,
				   .sum2 = row->sum2,
				   .t = row->t,
				   .longest_t = row->longest_t,
				   .sum_t = row->sum_t,
				   .batches = (double)row->batches};
}

/* Of exactly this key; empty if the ledger has none. */
static struct speed_sums sums_of_key(struct store *store, const char *key)
{
	struct speed_sums sums = {0};
	struct speed_row *rows = NULL;
	size_t count = 0;

	if (store_speeds(store, key, &rows, &count, NULL) < 0)
		return sums;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].key, key))
			sums = sums_of_row(&rows[i]);
	free(rows);
	return sums;
}

bool learn_fit(struct speed *out, struct store *store, const char *key)
{
	struct speed_sums sums = sums_of_key(store, key);

	return speed_fit(out, &sums, NULL);
}

/* Whether the newest batches of this key have different numbers of segments. */
static bool has_several_sizes(struct store *store, const char *key)
{
	struct batch_row *rows = NULL;
	size_t count = 0;
	bool several = false;

	if (store_batches_of_speed(store, key, SIZES_LOOKED_AT, &rows, &count, NULL) < 0)
		return false;
	for (size_t i = 1; i < count && !several; i++)
		several = rows[i].segments != rows[0].segments;
	free(rows);
	return several;
}

double learn_seats(struct store *store, const char *key, double length, double mean, int full)
{
	struct speed_sums sums = sums_of_key(store, key);
	struct speed speed;

	if (mean >= full)
		return 1;
	if (!speed_shows_growth(&sums) || !has_several_sizes(store, key) ||
	    !speed_fit(&speed, &sums, NULL))
		return 0;
	double most = speed_gain(&speed, length, full);
	return most > 0 ? MIN(speed_gain(&speed, length, mean) / most, 1.0) : 0;
}

static void put_sums(struct speed_row *row, const struct speed_sums *s)
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

static int compare_speed_keys(const void *a, const void *b)
{
	return strcmp(((const struct batch_row *)a)->speed, ((const struct batch_row *)b)->speed);
}

/* The row of exactly this key, or an empty one if the ledger has none. */
static int read_row(struct store *store, const char *key, struct speed_row *out, struct err *err)
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

/* Adds a batch to the sums. longest 0: its time is a share of the GPU's (batches_done()). */
static void add_batch(struct speed_sums *sums, const struct batch_row *b)
{
	double seconds = (double)b->took_ms / 1000;

	if (b->longest > 0)
		speed_add(sums, b->longest, b->sum, seconds);
	else
		speed_add_share(sums, b->sum, seconds);
}

/* Adds the first batches of the list, those of one key, to its row. *folded: how many they are. */
static int fold_key(struct store *store, const struct batch_row *list, size_t count, bool fade,
		    int64_t wall_ms, size_t *folded, struct err *err)
{
	struct speed_row row;

	if (read_row(store, list[0].speed, &row, err) < 0)
		return -1;
	struct speed_sums sums = sums_of_row(&row);
	if (fade)
		speed_decay(&sums, SPEED_DECAY);
	for (*folded = 0; *folded < count && !strcmp(list[*folded].speed, row.key); ++*folded)
		add_batch(&sums, &list[*folded]);
	put_sums(&row, &sums);
	row.most = list[*folded - 1].most;
	row.batching = list[*folded - 1].batching;
	row.updated_ms = wall_ms;
	return store_put_speed(store, &row, err);
}

int learn_fold(struct store *store, struct batch_row *list, size_t count, bool fade,
	       int64_t wall_ms, struct err *err)
{
	size_t folded;

	if (store_begin(store, err) < 0)
		return -1;
	if (count)
		qsort(list, count, sizeof(*list), compare_speed_keys);
	for (size_t at = 0; at < count; at += folded)
		if (fold_key(store, list + at, count - at, fade, wall_ms, &folded, err) < 0) {
			store_rollback(store);
			return -1;
		}
	return store_commit(store, err);
}

/* ---- estimates ---- */

/* The same GPU counts before others, then the provider, then the version. If the engine ships no
 * prior, too few batches are better than none. */
enum { SUITS_GPU = 4, SUITS_PROVIDER = 2, SUITS_VERSION = 1, SUITS_MEASURED = 8 };

/* The parts of a key, in their order: learn_key(). */
enum { KEY_GPU = 2, KEY_PROVIDER = 3, KEY_VERSION = 4 };

/* How well a row matches: a sum of SUITS_*; 0: it has no batch. */
static int rate_row(const struct speed_row *row, const struct learn_what *what,
		    const char *wanted_gpu)
{
	char gpu[40], provider[24], version[32];

	if (row->batches < 1)
		return 0;
	copy_key_part(row->key, KEY_GPU, gpu, sizeof(gpu));
	copy_key_part(row->key, KEY_PROVIDER, provider, sizeof(provider));
	copy_key_part(row->key, KEY_VERSION, version, sizeof(version));
	return (row->batches >= SPEED_MEASURED_MIN ? SUITS_MEASURED : 0) +
	       SUITS_GPU * !strcmp(gpu, wanted_gpu) +
	       SUITS_PROVIDER * !strcmp(provider, what->provider ? what->provider : "") +
	       SUITS_VERSION * (what->version && !strcmp(version, what->version));
}

/* The best row of this GPU, or of another one; NULL: none is usable. */
static const struct speed_row *best_row(const struct speed_row *rows, size_t count,
					const struct learn_what *what, const char *wanted_gpu,
					bool same_gpu, bool few_will_do)
{
	const struct speed_row *best = NULL;
	int score = 0;

	for (size_t i = 0; i < count; i++) {
		int its = rate_row(&rows[i], what, wanted_gpu);
		if (!its || !(its & SUITS_GPU) == same_gpu ||
		    (!few_will_do && its < SUITS_MEASURED))
			continue;
		if (!best || its > score ||
		    (its == score && rows[i].updated_ms > best->updated_ms)) {
			score = its;
			best = &rows[i];
		}
	}
	return best;
}

/* NULL: none that burst knows. A key has '_' in place of a blank, which gpu_find() accepts. */
static const struct gpu *gpu_of_key(const char *key)
{
	char text[40];

	copy_key_part(key, KEY_GPU, text, sizeof(text));
	return gpu_find(text);
}

/* Fits a speed to a row. like: for what its batches cannot tell. False: there are too few. */
static bool fit_row(struct speed *out, const struct speed_row *row, const struct speed *like)
{
	struct speed_sums sums = sums_of_row(row);

	return speed_fit(out, &sums, like);
}

/* Whether neither the batches of a row nor `like` show what larger batches gain. */
static bool is_gain_unknown(const struct speed_row *row, const struct speed *like)
{
	struct speed_sums sums = sums_of_row(row);

	return like->once_s + like->longest_s <= 0 && !speed_shows_growth(&sums);
}

/* Computes the speed on another GPU or host from a row; false: the row does not allow that. */
static bool carry_row(struct speed *out, const struct speed_row *row, const struct speed *prior,
		      const struct gpu *to, double host_share)
{
	const struct gpu *had = gpu_of_key(row->key);
	struct speed fit;

	if ((host_share < 1 && (!had || !to)) || !fit_row(&fit, row, prior))
		return false;
	*out = host_share < 1 ? speed_carry(&fit, had, to, host_share) : fit;
	return true;
}

enum { SPREAD_LOOKED_AT = 5000 }; /* batches */

/* The sums of each run's batches of this key, the newest run first. */
static size_t sum_runs(struct store *store, const char *key, struct speed_sums out[SPEED_RUNS_MOST])
{
	struct batch_row *rows = NULL;
	size_t count = 0, runs = 0;
	const char *run[SPEED_RUNS_MOST];

	if (store_batches_of_speed(store, key, SPREAD_LOOKED_AT, &rows, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		size_t at = 0;
		while (at < runs && strcmp(run[at], rows[i].run) != 0)
			at++;
		if (at == SPEED_RUNS_MOST)
			continue;
		if (at == runs) {
			run[runs] = rows[i].run;
			out[runs++] = (struct speed_sums){0};
		}
		add_batch(&out[at], &rows[i]);
	}
	free(rows);
	return runs;
}

/* Notes how far the fit of a row may be off. */
static void note_sigma(struct learned_speed *out, struct store *store, const struct speed_row *row,
		       const char *provider)
{
	struct speed_sums runs[SPEED_RUNS_MOST];
	char its[24];

	copy_key_part(row->key, KEY_PROVIDER, its, sizeof(its));
	size_t count = sum_runs(store, row->key, runs);
	out->runs = (int)MAX(count, 1);
	out->sigma = speed_learn_sigma(&out->speed, runs, count);
	if (strcmp(its, provider ? provider : "") != 0)
		out->sigma = hypot(out->sigma, SPEED_SIGMA_ELSEWHERE);
}

static void note_source(struct learned_speed *out, const struct speed_row *row,
			enum plan_source source)
{
	const struct gpu *had = gpu_of_key(row->key);
	char provider[24], day[32];

	copy_key_part(row->key, KEY_PROVIDER, provider, sizeof(provider));
	clock_rfc3339(day, sizeof(day), row->updated_ms);
	out->source = source;
	out->batches = row->batches;
	out->batch_max = row->most;
	out->padded = row->batching == ROW_BATCHING_PADDED;
	bool command = starts_with(row->key, "command|"), one = row->batches == 1;
	snprintf(out->from, sizeof(out->from), "%s at %s, %lld %s%s, %.10s",
		 had ? had->name : "no GPU", provider, (long long)row->batches,
		 command ? "command" : "batch", one ? "" : (command ? "s" : "es"), day);
}

void learn_speed(struct store *store, const struct learn_what *what, const struct speed *prior,
		 struct learned_speed *out)
{
	struct speed_row *rows = NULL;
	size_t count = 0;
	char key[LEARN_KEY], wanted[40];
	bool no_prior = prior->once_s + prior->longest_s + prior->each_s <= 0;
	struct speed like = *prior, fit;

	learn_key(what, key);
	copy_key_part(key, KEY_GPU, wanted, sizeof(wanted));
	*out = (struct learned_speed){.speed = *prior, .sigma = SPEED_SIGMA_PRIOR_ELSEWHERE};
	const char *after_options = strchr(strchr(key, '|') + 1, '|');
	CLEANUP(free_text) char *prefix = xstrndup(key, (size_t)(after_options + 1 - key));
	if (store_speeds(store, prefix, &rows, &count, NULL) < 0)
		return;
	const struct speed_row *elsewhere = best_row(rows, count, what, wanted, false, no_prior);
	const struct speed_row *here = best_row(rows, count, what, wanted, true, no_prior);
	if (elsewhere && carry_row(&like, elsewhere, prior, gpu_of_key(key), what->host_share)) {
		out->speed = like;
		out->sigma = SPEED_SIGMA_CARRIED;
		out->gain_unknown = is_gain_unknown(elsewhere, prior);
		note_source(out, elsewhere, PLAN_CARRIED);
	}
	/* batches of one size cannot tell the fixed part of a batch's time from the rest: take the
	 * ratio from another GPU */
	if (here && (here->batches >= SPEED_MEASURED_MIN || !out->from[0]) &&
	    fit_row(&fit, here, &like)) {
		out->speed = fit;
		out->gain_unknown = is_gain_unknown(here, &like);
		note_source(out, here, PLAN_MEASURED);
		note_sigma(out, store, here, what->provider);
	}
	free(rows);
}

/* ---- interruptions ---- */

double learn_interrupted_s(const struct pod_row *rows, size_t count, bool spot, double guess_s,
			   int *taken, double *lived_s)
{
	*taken = 0;
	*lived_s = 0;
	for (size_t i = 0; i < count; i++) {
		if (rows[i].spot != spot)
			continue;
		*taken += rows[i].preempted;
		*lived_s += (double)rows[i].billed_ms / 1000;
	}
	if (*taken)
		return MAX(*lived_s, 1.0) / *taken;
	return guess_s > 0 ? MAX(guess_s, *lived_s) : 0;
}

/* ---- cold starts ---- */

_Static_assert(COLD_PROBE - COLD_UNPACK == LOAD_PROBE && COLD_IMPORT - COLD_UNPACK == LOAD_IMPORT &&
		       COLD_READ - COLD_UNPACK == LOAD_READ &&
		       COLD_BUILD - COLD_UNPACK == LOAD_BUILD &&
		       COLD_WARM_UP - COLD_UNPACK == LOAD_WARM_UP,
	       "both name the same phases");

/* Milliseconds between two times; -1: one is missing. */
static int64_t ms_between(int64_t from_ms, int64_t to_ms)
{
	/* steps may overlap: workers load during the sync */
	return from_ms <= 0 || to_ms <= 0 ? -1 : MAX(to_ms - from_ms, 0);
}

/* The part of load_ms that belongs to a phase, by what the worker reported. Phases may run at once
 * (it reads weights while it imports Python), so each counts by its share, and together they take
 * no longer than the load. */
static int64_t load_phase_ms(const struct pod_row *row, enum load_phase phase, int64_t load_ms)
{
	double sum = 0, own = (double)pod_row_load_ms(row, phase);

	for (int i = 0; i < LOAD_PHASES; i++)
		sum += (double)pod_row_load_ms(row, (enum load_phase)i);
	return (int64_t)(sum > (double)load_ms ? own * (double)load_ms / sum : own);
}

/* The part of the load that belongs to no phase. */
static int64_t load_rest_ms(const struct pod_row *row, int64_t load_ms)
{
	int64_t told = 0;

	for (int i = 0; i < LOAD_PHASES; i++)
		told += load_phase_ms(row, (enum load_phase)i, load_ms);
	return MAX(load_ms - told, 0);
}

/* How long a phase of the pod's cold start took; -1: this pod has no measurement of it. */
static int64_t phase_ms(const struct pod_row *row, enum cold_phase phase)
{
	/* its volume had everything: its workers started without the steps before */
	bool at_once = row->ready_ms > 0 && row->synced_ms <= 0;
	int64_t synced_ms = at_once ? row->connected_ms : row->synced_ms;
	int64_t load_ms = ms_between(synced_ms, row->ready_ms);

	if (row->handed_from[0]) /* it was warm */
		return -1;
	switch (phase) {
	case COLD_QUEUE: return ms_between(row->create_ms, row->running_ms);
	case COLD_BOOT: return ms_between(row->running_ms, row->reached_ms);
	case COLD_CONNECT: return ms_between(row->reached_ms, row->connected_ms);
	case COLD_SYNC:
		if (row->synced_bytes == SYNCED_BY_ANOTHER)
			return -1;
		return synced_ms > 0
			       ? MAX(ms_between(row->connected_ms, synced_ms) - row->setup_ms, -1)
			       : -1;
	case COLD_SETUP: return row->setup_ms > 0 ? row->setup_ms : -1;
	case COLD_UNPACK:
	case COLD_IMPORT:
	case COLD_READ:
	case COLD_BUILD:
	case COLD_WARM_UP:
	case COLD_PROBE:
		return load_ms < 0 ? -1
				   : load_phase_ms(row, (enum load_phase)(phase - COLD_UNPACK),
						   load_ms);
	case COLD_LOAD: return load_ms < 0 ? -1 : load_rest_ms(row, load_ms);
	case COLD_PHASES: break;
	}
	return -1;
}

/* What a pod must have in common with the wanted one; each step requires less. */
enum likeness { LIKE_ALL, LIKE_NO_GPU, LIKE_NO_IMAGE, LIKE_NOTHING };

static bool is_like(const struct pod_row *row, const struct cold_what *what, enum cold_phase phase,
		    enum likeness like)
{
	bool sent = row->synced_bytes > 0;

	if (phase == COLD_QUEUE && row->run_ms) /* a cluster has a queue for each GPU */
		return gpu_is_same(row->gpu, what->gpu);
	if (phase == COLD_SETUP)
		return !strncmp(row->setup, what->setup ? what->setup : "", SETUP_KEY_HEX);
	if (phase == COLD_SYNC && like < LIKE_NOTHING && row->synced_bytes >= 0 &&
	    sent == what->volume_ready)
		return false;
	return (like > LIKE_ALL || gpu_is_same(row->gpu, what->gpu)) &&
	       (like > LIKE_NO_GPU || !strcmp(row->image, what->image ? what->image : ""));
}

/* Collects the phase's durations, in seconds, of the newest pods that are like the wanted one.
 * Returns how many. */
static size_t collect_samples(const struct pod_row *rows, size_t count,
			      const struct cold_what *what, enum cold_phase phase,
			      enum likeness like, double out[COLD_MOST])
{
	size_t n = 0;

	for (size_t i = 0; i < count && n < COLD_MOST; i++) {
		int64_t ms = phase_ms(&rows[i], phase);
		if (ms >= 0 && is_like(&rows[i], what, phase, like))
			out[n++] = (double)ms / 1000;
	}
	return n;
}

void learn_cold(const struct pod_row *rows, size_t count, const struct cold_what *what,
		struct cold *inout)
{
	double list[COLD_MOST];

	for (int phase = 0; phase < COLD_PHASES; phase++) {
		size_t n =
			collect_samples(rows, count, what, (enum cold_phase)phase, LIKE_ALL, list);
		for (int like = LIKE_NO_GPU; n < COLD_LEAST && like <= LIKE_NOTHING; like++)
			n = collect_samples(rows, count, what, (enum cold_phase)phase,
					    (enum likeness)like, list);
		inout->phase[phase] = cold_learn(list, n, inout->phase[phase]);
	}
}

void learn_tail(const struct pod_row *rows, size_t count, struct cold_time *fetch,
		struct cold_time *release)
{
	double fetched[COLD_MOST], released[COLD_MOST];
	size_t n = 0;

	for (size_t i = 0; i < count && n < COLD_MOST; i++) {
		const struct pod_row *row = &rows[i];
		if (row->worked_ms <= 0 || row->safe_ms <= 0 || row->released_ms <= 0)
			continue;
		fetched[n] = (double)MAX(row->safe_ms - row->worked_ms, 0) / 1000;
		/* below 0: its files came from its volume */
		released[n++] =
			(double)(row->released_ms - MAX(row->worked_ms, row->safe_ms)) / 1000;
	}
	*fetch = cold_learn(fetched, n, *fetch);
	*release = cold_learn(released, n, *release);
}

/* ---- batches ----
 * Records what each batch took and how busy the GPUs were, for these estimates and for reports. */

enum {
	/* rows; a run that dies loses only these measurements */
	FLUSH_AT = 256,
	TOOK_MOST_MS = 86400000, /* a pod reports the time; it is not trusted beyond a day */
	USE_LEAST = 5,           /* samples that a median needs */
};

struct batches {
	struct batch_row *rows; /* not written yet */
	size_t count, cap;
	bool folded;
	unsigned char *begins; /* by batch: how often it began */
	size_t begins_count, begins_cap;
};

struct batches *batches_new(void)
{
	return xcalloc(1, sizeof(struct batches));
}

void batches_free(struct batches *b)
{
	free(b->rows);
	free(b->begins);
	free(b);
}

static const enum row_batching batching_rows[] = {
	[BATCHING_NONE] = ROW_BATCHING_NONE,
	[BATCHING_PADDED] = ROW_BATCHING_PADDED,
	[BATCHING_CONTINUOUS] = ROW_BATCHING_CONTINUOUS,
};

static struct learn_what what_runs_on(const struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return (struct learn_what){
		.engine = e->work.needs->engine,
		.options = e->work.needs->speed_options,
		.gpu = e->pods[pod].workers.gpu[0] ? e->pods[pod].workers.gpu : p->rental.offer.gpu,
		.provider = e->setup->providers[p->rental.provider].ops->name,
		.version = e->pods[pod].workers.version,
	};
}

static void make_key(const struct engine *e, int pod, char key[LEARN_KEY])
{
	struct learn_what what = what_runs_on(e, pod);

	learn_key(&what, key);
}

struct batch_speed batches_speed(const struct engine *e, int pod)
{
	struct learn_what what = what_runs_on(e, pod);
	struct speed none = {0};
	struct learned_speed s;

	learn_speed(e->setup->store, &what, &none, &s);
	if (s.batches < SPEED_MEASURED_MIN)
		return (struct batch_speed){0};
	return (struct batch_speed){s.speed.once_s * 1000, s.speed.longest_s * 1000,
				    s.speed.each_s * 1000};
}

/* How often a batch began; 255: often, or its time does not count. The time of a batch that began
 * more than once (its worker died, or it did not fit into memory) is not that of one batch. */
static unsigned char *begins_of(struct engine *e, uint32_t batch)
{
	while (e->batches->begins_count <= batch) {
		GROW(e->batches->begins, e->batches->begins_count, e->batches->begins_cap);
		e->batches->begins[e->batches->begins_count++] = 0;
	}
	return &e->batches->begins[batch];
}

void batches_begun(struct engine *e, int pod, uint32_t batch)
{
	if (!core_has_batch(e->core, batch, pod))
		return;
	unsigned char *begins = begins_of(e, batch);
	*begins = (unsigned char)MIN(*begins + 1, 255);
}

void batches_continued(struct engine *e, uint32_t batch)
{
	*begins_of(e, batch) = 255;
}

void batches_done(struct engine *e, int pod, uint32_t batch, int64_t busy_ms)
{
	struct batch_row row = {.took_ms = MIN(busy_ms, TOOK_MOST_MS), .done_ms = clock_wall_ms()};

	if (busy_ms <= 0 || !core_has_batch(e->core, batch, pod) || *begins_of(e, batch) != 1)
		return;
	*begins_of(e, batch) = 255; /* once */
	const struct core_batch *b = core_batch_at(e->core, batch);
	COPY_TEXT(row.attempt, core_pod_at(e->core, pod)->rental.attempt);
	CLEANUP(free_text) char *id = batch_id(e, batch);
	COPY_TEXT(row.id, id);
	COPY_TEXT(row.run, e->setup->run->id);
	make_key(e, pod, row.speed);
	row.segments = (int)b->count;
	row.most = core_pod_at(e->core, pod)->workload.max_batch;
	row.batching = batching_rows[core_pod_at(e->core, pod)->workload.batching];
	for (size_t i = 0; i < b->count; i++) {
		double weight = e->work.segments[b->segments[i]].weight;
		row.sum += weight;
		row.longest = MAX(row.longest, weight);
	}
	if (core_pod_at(e->core, pod)->workload.batching == BATCHING_CONTINUOUS)
		row.longest = 0; /* other batches ran beside it; took_ms is its share */
	GROW(e->batches->rows, e->batches->count, e->batches->cap);
	e->batches->rows[e->batches->count++] = row;
	if (e->batches->count >= FLUSH_AT)
		batches_flush(e);
}

/* Records all batches or none. */
static int write_batches(struct store *store, const struct batch_row *rows, size_t count)
{
	if (store_begin(store, NULL) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (store_put_batch(store, &rows[i], NULL) < 0) {
			store_rollback(store);
			return -1;
		}
	return store_commit(store, NULL);
}

void batches_flush(struct engine *e)
{
	struct err err = {0};

	if (!e->batches->count)
		return;
	/* A failed write loses measurements. It must not end the run. */
	if (write_batches(e->setup->store, e->batches->rows, e->batches->count) == 0 &&
	    learn_fold(e->setup->store, e->batches->rows, e->batches->count, !e->batches->folded,
		       clock_wall_ms(), &err) < 0)
		engine_log(e, LOG_INFO, "the ledger stores no measurements: %s", err.msg);
	e->batches->folded = true;
	e->batches->count = 0;
}

/* ---- how busy the GPUs are ---- */

void batches_usage(struct engine *e, int pod, const json_t *event)
{
	struct gpu_use *u = &e->pods[pod].use;
	int64_t busy = jsonx_bounded(event, "gpu", 0, 100),
		mib = jsonx_bounded(event, "memory_mb", 0, INT64_C(1) << 32);

	u->memory_peak_mib = MAX(u->memory_peak_mib, mib);
	if (core_pod_at(e->core, pod)->workload.batches <= 0)
		return; /* loading, or waiting */
	u->at[busy]++;
	u->samples++;
}

void batches_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	struct gpu_use *u = &e->pods[pod].use;

	u->memory_peak_mib = row->gpu_memory_peak_mib;
	u->earlier_samples = row->gpu_samples;
	u->earlier_p50 = row->gpu_busy_p50;
	u->earlier_p95 = row->gpu_busy_p95;
}

/* The percentage of being busy below or at which `percent` of the samples are. */
static int percentile(const struct gpu_use *u, int percent)
{
	int before = 0, busy = 0;

	for (; busy < 100; busy++) {
		before += u->at[busy];
		if (before * 100 >= u->samples * percent)
			break;
	}
	return busy;
}

void batches_put_use(const struct gpu_use *u, struct pod_row *row)
{
	row->gpu_memory_peak_mib = u->memory_peak_mib;
	if (u->samples < MAX(u->earlier_samples, USE_LEAST)) {
		row->gpu_samples = u->earlier_samples;
		row->gpu_busy_p50 = u->earlier_p50;
		row->gpu_busy_p95 = u->earlier_p95;
		return;
	}
	row->gpu_samples = u->samples;
	row->gpu_busy_p50 = percentile(u, 50);
	row->gpu_busy_p95 = percentile(u, 95);
}
