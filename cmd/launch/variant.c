/* variant.c - plans the same job with the engine's other model */
#include "variant.h"

#include <math.h>

#include "base/err.h"
#include "launch.h"

/* Sets job.engine, as `where` says it was set. */
static int set_engine(struct cmd_context *ctx, const char *engine, const char *where)
{
	struct err ignored = {0};

	return config_override(ctx->config, "job.engine", engine, where, &ignored);
}

/* "$0.0003 (2%) more", "$0.01 (12%) less" or "as much". */
static void add_difference(struct str *to, double usd, double than_usd)
{
	double more = usd - than_usd;
	char money[32];

	if (fabs(more) < 0.005 * than_usd || than_usd <= 0)
		str_add(to, "costs as much");
	else
		str_addf(to, "costs %s (%.0f%%) %s", plan_dollars(money, fabs(more)),
			 100 * fabs(more) / than_usd, more > 0 ? "more" : "less");
}

/* "; takes 1.2 times as long". */
static void add_duration(struct str *to, double s, double than_s)
{
	if (fabs(s - than_s) < 0.005 * than_s)
		str_add(to, " and takes as long");
	else
		str_addf(to, " and takes %.2f times as long", s / than_s);
}

/* Writes out->line. */
static void describe(struct variant *out, const struct estimate *e, const struct plan *pick,
		     const struct estimate *other, const char *is)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char offer[PLAN_TEXT];
	double gib = other->need.base_gib + other->need.each_gib;

	str_addf(&line, "engine = \"%s\" (%s) ", out->engine, is);
	if (!out->fits) {
		str_addf(&line, "fits no card on offer: it needs %.1f GiB for one segment", gib);
	} else {
		const struct offer *o = &other->offers[out->plan.machine];
		str_addf(&line, "fits %s, ", plan_offer(offer, o));
		add_difference(&line, out->plan.cost_usd, pick->cost_usd);
		add_duration(&line, out->plan.makespan_p50_s, pick->makespan_p50_s);
		str_addf(&line, " (%s)",
			 plan_source_name(other->machines[out->plan.machine].speed_source));
		if (other->machines[pick->machine].batch_max <= 0)
			str_addf(&line, "; it does not fit %s",
				 plan_offer(offer, &e->offers[pick->machine]));
	}
	COPY_TEXT(out->line, str_text(&line));
}

/* Plans the job as it is read now; providers of l that are open are used, not opened again. */
static void plan_variant(struct variant *out, struct launch *l, const struct estimate *e,
			 const struct plan *pick, const char *is)
{
	struct launch own;
	struct estimate other = {0};
	struct err ignored = {0};

	launch_within(&own, l);
	memcpy(own.run.setup.providers, l->run.setup.providers, sizeof(own.run.setup.providers));
	own.run.setup.provider_count = l->run.setup.provider_count;
	if (launch_read_job(&own, &ignored) == 0 && !mistakes_any(&l->ctx->mistakes) &&
	    estimate_make(&other, &own, e->offers, e->count, &ignored) == 0) {
		other.in_any_order = e->in_any_order;
		enum plan_verdict verdict = estimate_choose(&other, &out->plan);
		out->fits = verdict != PLAN_NOTHING_FITS;
		out->known = out->fits || other.never_fits;
		if (out->known)
			describe(out, e, pick, &other, is);
	}
	mistakes_free(&l->ctx->mistakes);
	estimate_free(&other);
	own.run.setup.provider_count = 0;
	launch_free(&own);
}

void variant_find(struct variant *out, struct launch *l, const struct estimate *e,
		  const struct plan *pick)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	const struct section *job = config_job(l->ctx->config);

	*out = (struct variant){0};
	if (!needs->variant || !job || e->open < e->segments || mistakes_any(&l->ctx->mistakes))
		return;
	CLEANUP(free_text) char *engine = xstrdup(section_text(job, "engine"));
	CLEANUP(free_text) char *where = xstrdup(section_where(job, "engine"));
	out->engine = needs->variant;
	if (set_engine(l->ctx, needs->variant, where) == 0)
		plan_variant(out, l, e, pick, needs->variant_is);
	(void)set_engine(l->ctx, engine, where);
}
