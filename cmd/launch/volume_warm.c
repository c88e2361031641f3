/* volume_warm.c - `burst volume warm`: fills a volume from a pod without a GPU. */
#include "volume_warm.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/show/output.h"
#include "engine/caller.h"
#include "jobs/warm/warm.h"

/* A set-up downloads and unpacks, for which RunPod's smallest CPU pod is enough unless the job says
 * otherwise. */
enum { ASK_MS = 60000, WARM_CPU = 1, WARM_MEMORY_GB = 4 };

static int load(struct launch *l, struct err *err)
{
	if (launch_read_job(l, err) < 0)
		return -1;
	launch_replace_job(l, &job_warm, warm_job(l->run.setup.job_ops, l->run.setup.job));
	return 0;
}

/* ---- its cost ---- */

static const char *const no_gpu[] = {"none", NULL};

static void keep_provider(struct launch *l, const char *name)
{
	struct engine_setup *s = &l->run.setup;
	int kept = 0;

	for (int i = 0; i < s->provider_count; i++) {
		if (strcmp(s->providers[i].ops->name, name))
			s->providers[i].ops->close(s->providers[i].handle);
		else
			s->providers[kept++] = s->providers[i];
	}
	s->provider_count = kept;
}

int volume_warm_prices(struct launch *l, const struct engine_provider *p,
		       const struct volume_row *v, int64_t memory_gb, int64_t *least, int64_t *most,
		       struct err *err)
{
	int64_t cap = l->order.max_price_microusd_h;
	struct op_want want = {.offers = {.gpus = no_gpu,
					  .cpu = WARM_CPU,
					  .memory_gb = memory_gb,
					  .image = l->run.setup.image}};
	struct op_result result = {0};

	COPY_TEXT(want.offers.volume.provider, v->provider);
	COPY_TEXT(want.offers.volume.id, v->id);
	COPY_TEXT(want.offers.volume.name, v->name);
	COPY_TEXT(want.offers.volume.region, v->region);
	*least = *most = 0;
	if (caller_perform(p, OP_OFFERS, &want, ASK_MS, &result, err) < 0) {
		if (err->kind != ERR_NO_CAPACITY)
			return err_wrap(err, "%s", v->provider);
		err_clear(err); /* the run waits for it, as any run does */
		return 0;
	}
	for (size_t i = 0; i < result.offer_count; i++) {
		int64_t price = result.offers[i].price_microusd_h;
		if (cap && price > cap)
			continue;
		*least = *most ? MIN(*least, price) : price;
		*most = MAX(*most, price);
	}
	op_result_free(&result);
	return 0;
}

static void say_price(const struct launch *l, const struct volume_row *v, int64_t least,
		      int64_t most)
{
	int64_t ms = l->order.max_duration_ms, bound = l->order.max_cost_microusd;
	CLEANUP(str_free) struct str line = STR_INIT;
	char hour[32], all[32], region[48] = "";

	if (most && ms && (!bound || money_for(most, ms) < bound))
		bound = money_for(most, ms);
	if (v->region[0])
		snprintf(region, sizeof(region), " in %s", v->region);
	str_addf(&line, "volume %s of %s%s: filled from ", v->name, v->provider, region);
	if (most)
		str_addf(&line, "a pod without a GPU for %s an hour",
			 money_show(hour, sizeof(hour), least));
	else
		str_add(&line, "a pod without a GPU, none of which is available now");
	if (bound)
		str_addf(&line, "; at most %s in all", money_show(all, sizeof(all), bound));
	else
		str_add(&line, "; no cap is set (caps.max_cost, caps.max_duration)");
	output_lines(stderr, str_text(&line));
}

/* ---- the run ---- */

static void use_cheapest(struct engine_setup *s, const struct volume_row *v, int64_t memory_gb)
{
	s->gpus = no_gpu;
	s->want_spot = false; /* an interrupted build starts again from nothing */
	s->cpu = WARM_CPU;
	s->disk_gb = 0;
	s->memory_gb = memory_gb;
	s->volume_name = v->name;
	s->volume_create = false;
}

int64_t volume_warm_memory_gb(const struct job_needs *needs)
{
	return MAX(WARM_MEMORY_GB, needs->setup_memory_gb);
}

int volume_warm(struct launch *l, const struct volume_row *v, int64_t memory_gb, FILE *to,
		struct err *err)
{
	int64_t least, most;
	char cost[32];
	bool smallest = !memory_gb;

	if (!config_job(l->ctx->config))
		return err_set(err, ERR_CONFIG,
			       "no job for volume %s: give its burst.cfg with --config", v->name);
	keep_provider(l, v->provider);
	if (load(l, err) < 0)
		return -1;
	if (smallest)
		memory_gb = volume_warm_memory_gb(l->run.setup.job_ops->needs(l->run.setup.job));
	if (volume_warm_prices(l, &l->run.setup.providers[0], v, memory_gb, &least, &most, err) < 0)
		return -1;
	say_price(l, v, least, most);
	if (!l->run.setup.job_ops->needs(l->run.setup.job)->setup)
		log_line(LOG_NOTE, "this job has no setup: only its worker files, its packages and "
				   "its code are put there");
	if (runs_settle(&l->ctx->runs, NULL, err) < 0 || launch_check_balance(l, err) < 0 ||
	    launch_begin(l, false, err) < 0)
		return -1;
	use_cheapest(&l->run.setup, v, memory_gb);
	int status = launch_run(l);
	if (status == 0)
		output_line(to, "volume %s of %s: ready for job \"%s\", for %s", v->name,
			    v->provider, l->run.row.job,
			    money_show(cost, sizeof(cost), l->run.row.cost_microusd));
	if (status == 1 && smallest)
		log_line(LOG_NOTE,
			 "if its setup ran out of the pod's %lld GB of memory: burst volume warm "
			 "%s --memory GB",
			 (long long)memory_gb, v->name);
	return status;
}
