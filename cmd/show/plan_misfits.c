/* plan_misfits.c - explains why offers cannot run the job. */
#include "base/gpus.h"
#include "plan_parts.h"
#include "report.h"

/* Why the offer cannot run the job. Returns false if it can, or no offer has a speed. */
static bool misfit_why(const struct estimate *e, size_t i, char to[ESTIMATE_UNFIT])
{
	const struct offer *o = &e->offers[i];
	const double one_gib = e->need.base_gib + e->need.each_gib,
		     usable_gib = estimate_usable_gib(o);

	if (e->machines[i].batch_max > 0 || !e->known)
		return false;
	if (e->unfit[i][0])
		copy_text(to, ESTIMATE_UNFIT, e->unfit[i]);
	else if (gpu_is_none(o->gpu))
		copy_text(to, ESTIMATE_UNFIT, "the job needs a GPU");
	else if (one_gib > usable_gib)
		format_text(to, ESTIMATE_UNFIT, "%.2f GiB for a segment, %.2f of %d GB can be used",
			    one_gib, usable_gib, o->vram_gb);
	else
		format_text(to, ESTIMATE_UNFIT, "%d GB needed, %d GB available", e->need_gb,
			    o->vram_gb);
	return true;
}

/* Whether an earlier offer has the same card (and the same provider if same_provider). */
static bool card_came_before(const struct estimate *e, size_t i, bool same_provider)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(e->offers[k].gpu, e->offers[i].gpu) &&
		    (!same_provider || !strcmp(e->offers[k].provider, e->offers[i].provider)))
			return true;
	return false;
}

const char *plan_unfit_name(enum estimate_unfit kind)
{
	switch (kind) {
	case UNFIT_NOT: return "does not fit"; /* its memory */
	case UNFIT_NAMED: return "not planned with";
	case UNFIT_IMAGE:
	case UNFIT_BF16:
	case UNFIT_UNKNOWN: break;
	}
	return "left out";
}

void plan_misfits_show(FILE *to, const struct estimate *e)
{
	char offer[PLAN_TEXT], why[ESTIMATE_UNFIT];

	for (size_t i = 0; i < e->count; i++) {
		const struct offer *o = &e->offers[i];
		if (card_came_before(e, i, false) || !misfit_why(e, i, why))
			continue;
		if (!e->unfit[i][0] && gpu_is_none(o->gpu))
			fprintf(to, "does not fit: a pod without a GPU\n");
		else
			plan_say(to, 2, "%s: %s: %s", plan_unfit_name(e->unfit_kind[i]),
				 plan_offer(offer, o), why);
	}
}

json_t *plan_misfits_json(const struct estimate *e)
{
	json_t *list = json_array();
	char why[ESTIMATE_UNFIT];

	for (size_t i = 0; i < e->count; i++) {
		const struct offer *o = &e->offers[i];
		if (!card_came_before(e, i, true) && misfit_why(e, i, why))
			json_array_append_new(list, json_pack("{s:o,s:o,s:i,s:o}", "provider",
							      report_text(o->provider), "gpu",
							      report_text(o->gpu), "vram_gb",
							      o->vram_gb, "why", report_text(why)));
	}
	return list;
}
