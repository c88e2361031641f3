/* estimate.c - turns a job, offers and the ledger into the planner's input */
#include "estimate.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "engine/image.h"
#include "engine/learn.h"
#include "engine/limit.h"
#include "engine/past.h"
#include "engine/prices.h"
#include "impl.h"
#include "plan/cost.h"
#include "store/facts.h"

/* ---- extras ----
 * Finds what comes on top of a pod's price, from the ledger or else from providers' lists. */

#define MONTH_MS INT64_C(2592000000)
enum { RUNS_LOOKED_AT = 200, FAILING_RUNS = 3, FAILING_SEGMENTS = 5000 };

static char *show_day(char to[32], int64_t wall_ms)
{
	clock_rfc3339(to, 32, wall_ms);
	to[10] = '\0';
	return to;
}

/* ---- storage ---- */

/* Runs of this config in 30 days, including the planned one. */
static int runs_a_month(const struct estimate_of *of)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int recent = 1;

	if (of->config[0] && store_runs(of->run->runs->store, of->config, false, RUNS_LOOKED_AT,
					&runs, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			recent += runs[i].started_ms > clock_wall_ms() - MONTH_MS;
	free(runs);
	return recent;
}

/* Dollars a run for the run's volume at this provider: a month's price over the runs of this job's
 * config in 30 days, including the next one. row: of the ledger; NULL: it has no such volume. */
static struct extra extras_storage(const struct estimate_of *of, const char *provider,
				   const struct volume_row *row, double *month_usd)
{
	const char *name = of->volume;
	struct extra e = {0};
	char day[32];

	if (!name || !name[0])
		return e;
	bool known = row && row->price_microusd_month > 0;
	*month_usd =
		known ? (double)row->price_microusd_month / 1e6
		      : prior_of_provider(provider)->volume_usd_gb_month * (double)of->volume_gb;
	int runs = runs_a_month(of);
	e.value = *month_usd / runs;
	format_text(e.from, sizeof(e.from),
		    "volume %.40s, $%.2f a month (%s, %s) over %d run%s in 30 days", name,
		    *month_usd, known ? "ledger" : "list price",
		    known ? show_day(day, row->seen_ms) : prior_of_provider(provider)->seen, runs,
		    runs == 1 ? "" : "s");
	return e;
}

/* ---- egress ---- */

/* Dollars to fetch this much from pods of the provider. */
static struct extra extras_egress(const struct estimate_of *of, const char *provider, double gb)
{
	const struct prior_provider *prior = prior_of_provider(provider);
	struct extra e = {0};
	int64_t microusd_gb = llround(prior->egress_usd_gb * 1e6);
	char amount[32];
	bool own = of->provider_setting(of->ctx, provider, "egress_price", &microusd_gb);
	double usd_gb = (double)microusd_gb / 1e6;

	e.value = gb * usd_gb;
	format_text(e.from, sizeof(e.from), "%s GB at $%.2f a GB (%s)", number_show(amount, gb, 3),
		    usd_gb, own ? "config" : prior->seen);
	return e;
}

/* ---- interruptions and failed renders ---- */

#define TAKEN_TELLS 3 /* fewer tell little of how often pods are taken */

/* How the mean was measured, and how far it may be off. */
static void describe_taken(char from[EXTRAS_FROM], int taken, double lived_s)
{
	struct between_limits limits = cost_between_limits(taken, MAX(lived_s, 1.0), .05);
	char lived[24], low[24], high[24];

	duration_show(lived, sizeof(lived), (int64_t)(lived_s * 1000));
	duration_show(low, sizeof(low), (int64_t)(limits.low_s * 1000));
	if (taken)
		snprintf(from, EXTRAS_FROM,
			 "measured: %d of these pods taken in %s; at 90%% between %s and %s%s",
			 taken, lived, low,
			 duration_show(high, sizeof(high), (int64_t)(limits.high_s * 1000)),
			 taken < TAKEN_TELLS ? ", too few to tell" : "");
	else
		snprintf(from, EXTRAS_FROM,
			 "measured: none of these pods taken in %s; at 95%% more than %s", lived,
			 low);
}

struct extra extras_interrupted(const char *provider, bool spot, const struct pod_row *pods,
				size_t count, int *taken)
{
	const struct prior_provider *prior = prior_of_provider(provider);
	struct extra e = {0};
	double lived_s = 0;

	e.value = learn_interrupted_s(pods, count, spot, spot ? prior->interrupted_every_s : 0,
				      taken, &lived_s);
	e.measured = *taken || lived_s >= prior->interrupted_every_s;
	if (e.measured)
		describe_taken(e.from, *taken, lived_s);
	else if (spot)
		snprintf(e.from, sizeof(e.from), "a guess until the first pods ran");
	return e;
}

/* How often a command's checkpoint is saved, if such pods are interrupted that seldom (value 0:
 * never). The source is empty for other jobs. */
static void extras_saves(struct store *store, const struct job_needs *needs, struct extras *x)
{
	double between_s = x->interrupted.value > 0 ? x->interrupted.value : PRIOR_ON_DEMAND_S;
	const char *from = x->interrupted.from[0] ? x->interrupted.from : "a guess";
	char took[24], between[24], ms[32];

	if (!needs->command)
		return;
	if (fact_get(store, FACT_SAVES, needs->speed_options, NULL, ms, sizeof(ms)))
		x->save_s = (double)atoll(ms) / 1000;
	duration_show(took, sizeof(took), (int64_t)(x->save_s * 1000));
	duration_show(between, sizeof(between), (int64_t)(between_s * 1000));
	x->saves.value = needs->checkpoint_every_ms ? (double)needs->checkpoint_every_ms / 1000
						    : checkpoint_every_s(x->save_s, between_s);
	if (needs->checkpoint_every_ms)
		format_text(x->saves.from, sizeof(x->saves.from), "job.checkpoint");
	else if (x->save_s > 0)
		format_text(x->saves.from, sizeof(x->saves.from),
			    "a save takes %s, measured; %s between interruptions, %s", took,
			    between, from);
	else
		format_text(x->saves.from, sizeof(x->saves.from),
			    "by what the first save takes; %s between interruptions, %s", between,
			    from);
}

/* Share of renders that fail their check, in the job's last runs. */
static struct extra extras_failing(const struct estimate_of *of)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int looked = 0, tries = 0, good = 0;
	struct extra e = {0};

	if (!of->config[0] || store_runs(of->run->runs->store, of->config, false, RUNS_LOOKED_AT,
					 &runs, &count, NULL) < 0)
		return e;
	for (size_t i = 0; i < count && looked < FAILING_RUNS; i++) {
		struct segment_row *rows = NULL;
		size_t n = 0;
		if (!runs[i].rendered || runs[i].total > FAILING_SEGMENTS ||
		    store_segments(of->run->runs->store, runs[i].id, &rows, &n, NULL) < 0)
			continue;
		for (size_t k = 0; k < n; k++) {
			tries += MAX(rows[k].tries, 1);
			good += rows[k].state == SEGMENT_ROW_SAFE;
		}
		looked++;
		free(rows);
	}
	free(runs);
	e.value = tries ? MIN(1 - (double)good / tries, 0.9) : 0;
	if (tries)
		snprintf(e.from, sizeof(e.from), "measured: %d of %d renders in %d run%s",
			 tries - good, tries, looked, looked == 1 ? "" : "s");
	return e;
}

/* ---- stages ---- */

/* Dollars of its stages, as they were measured. */
static struct extra extras_stages(const struct estimate_of *of)
{
	const struct runs *rs = of->run->runs;
	char day[32];
	struct run_row run;
	struct extra e = {0};

	for (size_t i = 0; of->stages && of->stages[i] && of->config[0]; i++) {
		if (stage_newest(rs, of->config, of->job, of->stages[i], false, &run, NULL) != 1 ||
		    run.billed_ms <= 0) {
			snprintf(e.from, sizeof(e.from), "unknown before the first one");
			e.value = 0;
			return e;
		}
		e.value += (double)run.cost_microusd / 1e6;
		snprintf(e.from, sizeof(e.from), "as measured on %s",
			 show_day(day, run.started_ms));
	}
	return e;
}

/* ---- estimate ----
 * Collects the inputs of a plan: lengths of segments, prices, learned speeds and cold starts. */

enum {
	PODS_LEARNED_FROM = 200,
};
#define GB_PER_AUDIO_S 48000e-9 /* 24 kHz, 16 bits, as engines write it */
/* From the last batch to the last file, and from there to the accepted release. */
static const struct cold_time fetch_prior = {0.3, 1, 0}, release_prior = {0.3, 1, 0};

/* ---- work ---- */

/* The lengths of the segments to render, which the caller frees. Sets their number and sum in *out,
 * and *estimated_s, their time by the job's estimates. */
static double *open_lengths(const struct estimate_of *of, struct estimate *out, double *estimated_s)
{
	const struct segment *segments =
		of->run->setup.job_ops->segments(of->run->setup.job, &out->segments);
	double *lengths = xcalloc(out->segments + 1, sizeof(*lengths));

	for (size_t i = 0; i < out->segments; i++) {
		if (of->run->setup.results && of->run->setup.results[i].state == SEGMENT_SAFE)
			continue;
		lengths[out->open++] = segments[i].weight;
		out->sum += segments[i].weight;
		*estimated_s += segments[i].est_seconds;
	}
	return lengths;
}

/* ---- machines ---- */

struct learned { /* of one provider */
	const char *provider;
	struct pod_row *rows;
	size_t count;
	struct volume_row volume; /* the config's volume there; id "": unknown */
	struct cold_time fetch, release;
	struct extras extras; /* the same for all of its offers */
};

/* Sets k->volume to the config's volume at the provider, if the ledger knows it. */
static void find_volume(struct learned *k, const struct estimate_of *of)
{
	const char *name = of->volume;
	struct volume_row *rows = NULL;
	size_t count = 0;

	if (!name || !*name || store_volumes(of->run->runs->store, &rows, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].provider, k->provider) && !strcmp(rows[i].name, name))
			k->volume = rows[i];
	free(rows);
}

static void learn_extras(struct learned *k, const struct estimate_of *of, double audio_s)
{
	struct extras *x = &k->extras;
	char day[32];

	if (k->count)
		snprintf(x->pods_seen, sizeof(x->pods_seen), "%.10s",
			 clock_rfc3339(day, sizeof(day), k->rows[0].create_ms));
	x->storage =
		extras_storage(of, k->provider, k->volume.id[0] ? &k->volume : NULL, &x->month_usd);
	x->egress = extras_egress(of, k->provider, audio_s * GB_PER_AUDIO_S);
	x->stages = extras_stages(of);
	int64_t delay_ms = 0;
	of->provider_setting(of->ctx, k->provider, "boot_delay", &delay_ms);
	x->boot_delay_s = (double)delay_ms / 1000;
}

/* Fills *k with what the ledger has of this provider, unless it has it already. Free k->rows. */
static void learn_provider(struct learned *k, const struct estimate_of *of, const char *provider,
			   double audio_s)
{
	if (k->provider && !strcmp(k->provider, provider))
		return;
	free(k->rows);
	*k = (struct learned){.provider = provider, .fetch = fetch_prior, .release = release_prior};
	store_pods_up(of->run->runs->store, provider, PODS_LEARNED_FROM, &k->rows, &k->count, NULL);
	find_volume(k, of);
	learn_tail(k->rows, k->count, &k->fetch, &k->release);
	learn_extras(k, of, audio_s);
}

/* Whether the job's pods have found all they need on this volume before. */
static bool is_volume_ready(const struct learned *pods, const char *image)
{
	for (size_t i = 0; i < pods->count; i++)
		if (pods->rows[i].ready_ms > 0 &&
		    !strcmp(pods->rows[i].volume_id, pods->volume.id) &&
		    !strcmp(pods->rows[i].image, image))
			return pods->volume.id[0] != '\0';
	return false;
}

/* The job as the engine sees it, to look up the ledger's facts about it. */
static struct engine_setup engine_setup_for(const struct estimate_of *of, struct run_row *run,
					    const char *image)
{
	struct engine_setup setup = of->run->setup;

	*run = (struct run_row){0};
	setup.run = run;
	setup.image = image;
	COPY_TEXT(run->job, of->job);
	COPY_TEXT(run->config, of->config);
	return setup;
}

/* Whether the job's environment is on the volume, so that pods skip the set-up. */
static bool is_env_on_volume(const struct estimate_of *of, const struct job_needs *needs,
			     const char *gpu, const struct learned *pods)
{
	struct run_row run;
	struct engine_setup setup = engine_setup_for(of, &run, of->image);

	return pods->volume.id[0] &&
	       engine_env_there(&setup, needs, gpu, pods->provider, pods->volume.id);
}

/* Whether the image of this provider has, or will have, the environment of the job. */
static bool is_env_in_image(const struct estimate_of *of, const struct job_needs *needs,
			    const char *provider)
{
	struct run_row run;
	struct engine_setup setup = engine_setup_for(of, &run, of->image);

	if (!needs->setup)
		return false;
	if (engine_env_in_image(&setup, needs, provider))
		return true;
	const struct engine_provider *p = run_provider(of->run, provider);
	return p && image_wanted(&setup, p, needs) == IMAGE_HAS_ALL;
}

/* A rehearsal's settings say for how long its pods seem to be created; a queue that is free ends
 * before that. */
static void add_boot_delay(struct cold *cold, double delay_s)
{
	struct cold_time *t = &cold->phase[cold->queue_is_free ? COLD_BOOT : COLD_QUEUE];

	t->p50_s += delay_s;
	t->p90_s += delay_s;
}

/* Sets the cold start from measured pods; with a ready environment, there is no set-up. */
static void fill_cold(struct cold *cold, const struct estimate_of *of,
		      const struct job_needs *needs, const char *gpu, const struct learned *pods,
		      bool in_image)
{
	const char *image = of->image;
	char setup[20];
	struct cold_what what = {.gpu = gpu, .image = image ? image : "", .setup = setup};

	engine_setup_key(needs, setup);
	what.volume_ready = is_volume_ready(pods, what.image);
	if (needs->setup)
		cold->phase[COLD_SETUP] = prior_setup;
	if (cold->queue_is_free) /* only the ledger knows how long */
		cold->phase[COLD_QUEUE] = (struct cold_time){0};
	add_boot_delay(cold, pods->extras.boot_delay_s);
	learn_cold(pods->rows, pods->count, &what, cold);
	if (!needs->setup || in_image || is_env_on_volume(of, needs, gpu, pods))
		cold->phase[COLD_SETUP] = (struct cold_time){0};
}

/* Sets what the volume saves of a cold start once it has all that pods need: the set-up, and most
 * of what is sent, less unpacking the environment. An image that has the environment saves it, too.
 */
static void compare_volume(struct extras *x, const struct estimate_of *of,
			   const struct job_needs *needs, const char *gpu,
			   const struct learned *pods)
{
	const char *image = of->image;
	char setup[20];
	struct cold_what what = {.gpu = gpu, .image = image ? image : "", .setup = setup};
	struct cold bare = prior_cold(pods->provider, needs->gpu), ready;

	if (!of->volume || !of->volume[0])
		return;
	engine_setup_key(needs, setup);
	if (needs->setup)
		bare.phase[COLD_SETUP] = prior_setup;
	ready = bare;
	learn_cold(pods->rows, pods->count, &what, &bare);
	what.volume_ready = true;
	learn_cold(pods->rows, pods->count, &what, &ready);
	bool sets_up = needs->setup && !x->env_in_image;
	x->volume_saves_s =
		bare.phase[COLD_SYNC].p50_s - ready.phase[COLD_SYNC].p50_s +
		(sets_up ? bare.phase[COLD_SETUP].p50_s - ready.phase[COLD_UNPACK].p50_s : 0);
	x->volume_measured = bare.phase[COLD_SYNC].samples && ready.phase[COLD_SYNC].samples &&
			     (!sets_up || bare.phase[COLD_SETUP].samples);
}

/* Advertised GB of one of the offer's cards; 0: unknown. */
static double card_gb_of(const struct offer *o)
{
	const struct gpu *known = gpu_find(o->gpu);

	return o->vram_gb ? o->vram_gb : known ? known->vram_gb : 0;
}

static double memory_gb_of(const struct offer *o)
{
	return card_gb_of(o) * MAX(o->gpus, 1);
}

double estimate_usable_gib(const struct offer *o)
{
	return gpu_is_none(o->gpu) ? 0 : vram_usable_gib(card_gb_of(o));
}

/* Each worker has its own copy of the weights. */
static struct vram_need vram_need_of(const struct job_needs *needs)
{
	int workers = MAX(needs->workers, 1);

	return (struct vram_need){needs->prior.base_gib * workers, needs->prior.each_gib * workers};
}

/* The largest batch that the engine takes and the card holds; 0: the job does not fit. As in the
 * dispatcher, the number that a worker reports only raises it if the worker renders whole batches.
 * */
static int batch_max_of(const struct job_needs *needs, const struct offer *o,
			const struct learned_speed *learned)
{
	const struct vram_need need = vram_need_of(needs);
	int most = MAX(needs->max_batch, 1);
	bool without = gpu_is_none(o->gpu);

	if (learned->batch_max > 0 &&
	    (learned->batch_max < most || (learned->padded && !needs->max_batch_is_cap)))
		most = learned->batch_max;
	if (!needs->gpu)
		return most;
	if (without || (memory_gb_of(o) > 0 && needs->vram_gb > memory_gb_of(o)))
		return 0;
	if (need.base_gib <= 0 || card_gb_of(o) <= 0)
		return most;
	/* an engine computes on one card, whatever the others of its pod have */
	return MIN(most, vram_batch_max(&need, card_gb_of(o)));
}

/* The job's figures hold for one card, and cannot be scaled to an unknown card. */
static bool is_speed_unknown(const struct job_needs *needs, const struct offer *o)
{
	const struct job_prior *p = &needs->prior;

	return p->gpu && p->host_share < 1 && !gpu_is_none(o->gpu) && !gpu_find(o->gpu);
}

/* The engine's figures, scaled to this card, else the job's estimates; 0: unknown. */
static struct speed prior_speed_for(const struct job_needs *needs, const struct speed *of_segments,
				    const struct offer *o)
{
	const struct job_prior *p = &needs->prior;
	const struct speed given = {p->once_s, p->longest_s, p->each_s};
	const struct gpu *had = p->gpu ? gpu_find(p->gpu) : NULL, *wanted = gpu_find(o->gpu);

	if (given.once_s + given.longest_s + given.each_s <= 0)
		return *of_segments;
	if (is_speed_unknown(needs, o))
		return (struct speed){0};
	return had && wanted ? speed_carry(&given, had, wanted, p->host_share) : given;
}

/* Whether the engine's figures are from this very card. */
static bool is_card_of_prior(const struct job_needs *needs, const struct offer *o)
{
	const struct gpu *had = needs->prior.gpu ? gpu_find(needs->prior.gpu) : NULL;

	return had && had == gpu_find(o->gpu);
}

/* Workers that share a card may take turns, so a batch takes at most so many times as long.
 * Measured times include that, since other numbers of workers are measured apart. */
static struct speed slow_by_sharing(const struct job_needs *needs, const struct speed *alone)
{
	const double turns = MAX(needs->workers, 1);

	if (!needs->gpu)
		return *alone;
	return speed_scale(alone, turns);
}

static void show_prior_source(const struct job_prior *p, const struct offer *o,
			      char to[ESTIMATE_FROM])
{
	bool other = p->gpu && gpu_find(p->gpu) && gpu_find(p->gpu) != gpu_find(o->gpu);

	snprintf(to, ESTIMATE_FROM, "%s%s%s", p->source ? p->source : "the engine's own figures",
		 other ? ", computed from " : "", other ? gpu_find(p->gpu)->name : "");
}

static void mark_unfit(struct estimate *e, size_t i, enum estimate_unfit kind, const char *why)
{
	e->unfit_kind[i] = kind;
	copy_text(e->unfit[i], ESTIMATE_UNFIT, why);
}

/* A card that cannot run the job: without BF16, or as a pod of an earlier run reported. */
static void mark_if_unfit(struct estimate *e, const struct estimate_of *of, size_t i)
{
	const struct job_needs *needs = of->run->setup.job_ops->needs(of->run->setup.job);
	const struct past_image image = {of->image, needs->setup, needs->bf16};
	const struct offer *o = &e->offers[i];
	int64_t now_ms = clock_wall_ms(), since_ms;
	char why[200], day[32], text[ESTIMATE_UNFIT];

	if (needs->bf16 && gpu_lacks_bf16(o->gpu)) {
		mark_unfit(e, i, UNFIT_BF16, PAST_NO_BF16);
	} else if (!gpu_is_none(o->gpu) &&
		   past_card_is_unfit(of->run->runs->store, &image, o->provider, o->gpu, now_ms,
				      why, sizeof(why), &since_ms)) {
		format_text(text, sizeof(text), "%s (image %s, reported by a pod on %.10s)", why,
			    image.image ? image.image : "by default",
			    clock_rfc3339(day, sizeof(day), since_ms));
		mark_unfit(e, i, UNFIT_IMAGE, text);
	}
}

/* A card without a speed gets no plan until it has run once. */
static void mark_if_speed_unknown(struct estimate *e, const struct estimate_of *of, size_t i)
{
	const struct job_needs *needs = of->run->setup.job_ops->needs(of->run->setup.job);
	const struct plan_machine *m = &e->machines[i];

	if (e->unfit[i][0] || !is_speed_unknown(needs, &e->offers[i]) ||
	    m->speed.once_s + m->speed.longest_s + m->speed.each_s > 0)
		return;
	if (of->gpus_named)
		mark_unfit(e, i, UNFIT_NAMED,
			   "speed unknown: burst does not know this card; a run may rent it, as "
			   "gpu names it, and measures it");
	else
		mark_unfit(e, i, UNFIT_UNKNOWN,
			   "speed unknown: burst does not know this card; --gpu NAME rents it all "
			   "the same");
}

/* The provider's limit, or fewer if more do not help: free pods that are processes of this machine
 * share its processors. 0: no limit. A pod with a price stands for a machine of its own. */
static int pods_max_of(const struct estimate_of *of, const struct offer *o, int workers)
{
	const struct provider_ops *ops = of->find_provider(o->provider);

	if (!ops || !ops->shares_machine || o->price_microusd_h != 0)
		return o->pods_max;
	int help = MAX((int)sysconf(_SC_NPROCESSORS_ONLN) / workers, 1);
	return o->pods_max ? MIN(help, o->pods_max) : help;
}

/* Sets what the offer costs beside its pods' price, and what follows for the machine. */
static void add_extras(struct plan_machine *m, struct extras *x, const struct estimate_of *of,
		       const struct offer *o, const struct learned *pods)
{
	const struct job_needs *needs = of->run->setup.job_ops->needs(of->run->setup.job);

	*x = pods->extras;
	x->interrupted = extras_interrupted(o->provider, o->spot, pods->rows, pods->count,
					    &m->interruptions);
	/* the volume bills with or without this run */
	m->per_run_usd = x->egress.value + x->stages.value;
	m->interrupted_every_s = x->interrupted.value;
	extras_saves(of->run->runs->store, needs, x);
	m->save_s = x->save_s;
	m->save_every_s = x->save_s > 0 ? x->saves.value : 0;
	x->env_in_image = is_env_in_image(of, needs, o->provider);
	const struct provider_ops *ops = of->find_provider(o->provider);
	m->cold.queue_is_free = ops && ops->waits_free;
	m->creates_a_minute = ops ? limits_creates_a_minute(ops->calls_per_minute) : 0;
	fill_cold(&m->cold, of, needs, o->gpu, pods, x->env_in_image);
	compare_volume(x, of, needs, o->gpu, pods);
}

/* Sets the price, and how high earlier looks found it. A price that the user's settings name does
 * not move. */
static void set_price(struct plan_machine *m, struct extras *x, const struct estimate_of *of,
		      const struct offer *o)
{
	int64_t own = 0;
	size_t count;

	m->price_h = (double)o->price_microusd_h / 1e6;
	if (of->provider_setting(of->ctx, o->provider, "price_per_hour", &own))
		return;
	struct forecast_price *looks = prices_read(of->run->runs->store, o, &count);
	forecast_prices(&x->prices, looks, count);
	free(looks);
	m->price_p90_h = (double)x->prices.most / 1e6;
}

/* Fills in e->machines[i]. of_segments: speed by the job's own estimates. */
static void make_machine(struct estimate *e, const struct estimate_of *of, size_t i,
			 const struct speed *of_segments, const struct learned *pods)
{
	const struct job_needs *needs = of->run->setup.job_ops->needs(of->run->setup.job);
	const struct offer *o = &e->offers[i];
	struct plan_machine *m = &e->machines[i];
	const struct speed alone = prior_speed_for(needs, of_segments, o),
			   prior = slow_by_sharing(needs, &alone);
	struct learn_what what = {.engine = needs->engine,
				  .options = needs->speed_options,
				  .gpu = o->gpu,
				  .provider = o->provider,
				  .host_share = needs->prior.host_share};
	struct learned_speed learned;

	*m = (struct plan_machine){
		.id = (int)i,
		.quantum_s = prior_of_provider(o->provider)->quantum_s,
		.cold = prior_cold(o->provider, needs->gpu),
		.workers = MAX(needs->workers, 1),
		.host_share = needs->prior.host_share,
		.tail_s = pods->fetch.p50_s,
		.release_s = pods->release.p50_s,
	};
	add_extras(m, &e->extras[i], of, o, pods);
	set_price(m, &e->extras[i], of, o);
	learn_speed(of->run->runs->store, &what, &prior, &learned);
	m->speed = learned.speed;
	m->speed_sigma = learned.source == PLAN_PRIOR && is_card_of_prior(needs, o)
				 ? SPEED_SIGMA_PRIOR
				 : learned.sigma;
	m->gain_unknown = learned.gain_unknown;
	m->speed_runs = learned.runs;
	m->speed_source = learned.source;
	m->batch_max = batch_max_of(needs, o, &learned);
	m->pods_max = pods_max_of(of, o, m->workers);
	copy_text(e->speed_from[i], sizeof(e->speed_from[i]), learned.from);
	if (m->speed_source == PLAN_PRIOR)
		show_prior_source(&needs->prior, o, e->speed_from[i]);
	if (m->speed.once_s + m->speed.longest_s + m->speed.each_s > 0)
		e->known = true;
	else
		m->batch_max = 0; /* nothing is known of it */
	mark_if_speed_unknown(e, of, i);
	if (e->unfit[i][0])
		m->batch_max = 0;
}

/* Leaves what a pod that is up does for another run. */
static void omit_boot(struct cold *c)
{
	static const enum cold_phase over[] = {COLD_QUEUE, COLD_BOOT, COLD_SETUP, COLD_UNPACK};

	for (size_t i = 0; i < ARRAY_LEN(over); i++)
		c->phase[over[i]].p50_s = c->phase[over[i]].p90_s = 0;
}

void estimate_fill(struct estimate *out, const struct estimate_of *of, const struct offer *offers,
		   size_t count)
{
	const struct job_needs *needs = of->run->setup.job_ops->needs(of->run->setup.job);
	struct learned pods = {0};
	struct speed prior = {0};
	double estimated_s = 0;
	bool any_fits = false, any_runs = false;
	int largest = 1;
	const size_t all = count + of->kept;

	*out = (struct estimate){.offers = offers,
				 .count = count,
				 .kept = of->kept,
				 .need_gb = needs->vram_gb,
				 .need = vram_need_of(needs)};
	out->setup_download_mb = needs->setup ? needs->setup_download_mb : 0;
	out->setup_on_gpu = needs->gpu;
	out->setup_by_card = needs->setup_by_card;
	out->shares_card = needs->gpu && needs->workers > 1;
	out->volume = of->volume;
	out->size_unit = needs->size_unit;
	char now[32];
	out->price_source = "quote";
	snprintf(out->price_from, sizeof(out->price_from), "quote of the provider, %.10s",
		 clock_rfc3339(now, sizeof(now), clock_wall_ms()));
	out->wish = of->wish;
	out->wish.canary = needs->command ? 0 : CORE_CANARY;
	double *lengths = open_lengths(of, out, &estimated_s);
	if (out->sum > 0)
		prior.each_s = estimated_s / out->sum;
	out->audio_s = needs->command ? 0 : out->sum * 60 / PRIOR_CHARS_PER_MINUTE;
	out->lengths = lengths;
	out->machines = xcalloc(all + 1, sizeof(*out->machines));
	out->speed_from = xcalloc(all + 1, sizeof(*out->speed_from));
	out->extras = xcalloc(all + 1, sizeof(*out->extras));
	out->unfit = xcalloc(all + 1, sizeof(*out->unfit));
	out->unfit_kind = xcalloc(all + 1, sizeof(*out->unfit_kind));
	out->failing = extras_failing(of);
	out->wish.failing_share = out->failing.value;
	for (size_t i = 0; i < all; i++) {
		learn_provider(&pods, of, offers[i].provider, out->audio_s);
		mark_if_unfit(out, of, i);
		make_machine(out, of, i, &prior, &pods);
		if (i >= count) {
			omit_boot(&out->machines[i].cold);
			continue;
		}
		bool fits = batch_max_of(needs, &offers[i], &(struct learned_speed){0}) > 0;
		any_fits |= fits;
		any_runs |= fits && (!out->unfit[i][0] || out->unfit_kind[i] == UNFIT_NAMED);
	}
	if (!count)
		extras_saves(of->run->runs->store, needs, &out->extras[0]);
	out->none_can_run = any_fits && !any_runs;
	out->never_fits = count && !any_fits;
	for (size_t i = 0; i < all; i++)
		largest = MAX(largest, out->machines[i].batch_max);
	plan_work_init(&out->work, lengths, out->open, largest, out->audio_s);
	free(pods.rows);
}

/* The offers that a run rents first: those of the first provider with a fitting one (unless they
 * are in no order of providers), and of these the first GPU in the config's list. machines and at
 * have room for all. Returns the count; at holds the indexes. */
static size_t list_rented_first(const struct estimate *e, struct plan_machine *machines, int *at)
{
	const struct offer *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < e->count; i++) {
		const struct offer *o = &e->offers[i];
		if (e->machines[i].batch_max <= 0 ||
		    (first && !e->in_any_order && strcmp(o->provider, first->provider) != 0))
			continue;
		if (!first || o->wish < first->wish) {
			first = o;
			count = 0;
		}
		if (o->wish != first->wish)
			continue;
		machines[count] = e->machines[i];
		at[count++] = (int)i;
	}
	return count;
}

enum plan_verdict estimate_choose(const struct estimate *e, struct plan *out)
{
	*out = (struct plan){0};
	if (!e->open || !e->known)
		return PLAN_NOTHING_FITS;
	struct plan_machine *machines = xcalloc(e->count + 1, sizeof(*machines));
	int *at = xcalloc(e->count + 1, sizeof(*at));
	enum plan_verdict verdict =
		plan_choose(out, &e->work, machines, list_rented_first(e, machines, at), &e->wish);
	if (verdict != PLAN_NOTHING_FITS)
		out->machine = at[out->machine];
	free(machines);
	free(at);
	return verdict;
}

/* The plan of kept pods with this wish. False: none keeps its limits. */
static bool plan_on_kept(const struct estimate *e, const struct plan_wish *wish, struct plan *out)
{
	struct plan p;

	if (!e->kept || !e->open ||
	    plan_choose(&p, &e->work, &e->machines[e->count], 1, wish) != PLAN_FOUND)
		return false;
	*out = p;
	out->machine = (int)e->count;
	return true;
}

bool estimate_choose_kept(const struct estimate *e, int kept, struct plan *out)
{
	struct plan_wish wish = e->wish;

	wish.pods_most = wish.pods_most ? MIN(wish.pods_most, kept) : kept;
	return kept > 0 && wish.pods <= kept && plan_on_kept(e, &wish, out);
}

bool estimate_is_on_kept(const struct estimate *e, const struct plan *p)
{
	return p->machine >= (int)e->count;
}

static double mix(double cold, double kept, double share)
{
	return cold + (kept - cold) * share;
}

void estimate_take_kept(const struct estimate *e, struct plan *pick, int kept)
{
	struct plan_wish wish = e->wish;
	struct plan up;

	wish.pods = pick->pods;
	wish.within_s = wish.cap_s = wish.budget_usd = 0;
	if (kept <= 0 || pick->pods <= 0 || !plan_on_kept(e, &wish, &up))
		return;
	double share = MIN((double)kept / pick->pods, 1.0);
	if (share >= 1) {
		*pick = up;
		return;
	}
	if (e->wish.staged) { /* the first pod renders while the others boot */
		pick->makespan_p50_s = mix(pick->makespan_p50_s, up.makespan_p50_s, share);
		pick->makespan_p90_s = mix(pick->makespan_p90_s, up.makespan_p90_s, share);
	}
	pick->billed_s = mix(pick->billed_s, up.billed_s, share);
	pick->pods_usd = mix(pick->pods_usd, up.pods_usd, share);
	pick->cost_usd = mix(pick->cost_usd, up.cost_usd, share);
	pick->cost_p90_usd = mix(pick->cost_p90_usd, up.cost_p90_usd, share);
	pick->used = pick->billed_s > 0 ? MIN(pick->work_s / pick->billed_s, 1.0) : 0;
}

void estimate_free(struct estimate *e)
{
	free(e->lengths);
	free(e->machines);
	free(e->speed_from);
	free(e->extras);
	free(e->unfit);
	free(e->unfit_kind);
	*e = (struct estimate){0};
}
