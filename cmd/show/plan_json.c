/* plan_json.c - the JSON of `burst plan` (tests/schema/plan.json). */
#include "plan_show.h"

#include <math.h>

#include "base/gpus.h"
#include "base/mem.h"
#include "plan_figures.h"
#include "report.h"

/* null: unknown. */
static json_t *known_json(bool known, double value)
{
	return known ? json_real(value) : json_null();
}

/* How far its figures may be off: p10 and p90 are exceeded by nine runs in ten, and by one. */
static void add_intervals(json_t *plan, const struct plan_machine *m)
{
	double p50_s = cold_p50_s(&m->cold), p90_s = cold_p90_s(&m->cold),
	       factor = plan_speed_factor(m);

	json_object_set_new(plan, "speed_runs", json_integer(m->speed_runs));
	json_object_set_new(plan, "speed_p10_factor", json_real(1 / factor));
	json_object_set_new(plan, "speed_p90_factor", json_real(factor));
	json_object_set_new(plan, "cold_source",
			    json_string(plan_source_name(cold_source(&m->cold))));
	json_object_set_new(plan, "cold_p10_s", json_real(spread_p10(p50_s, p90_s)));
	json_object_set_new(plan, "cold_p50_s", json_real(p50_s));
	json_object_set_new(plan, "cold_p90_s", json_real(p90_s));
}

/* Every figure that the plan was made from, with its interval and its source. */
static json_t *figures_json(const struct estimate *e, const struct plan *p)
{
	struct plan_figure figures[PLAN_FIGURES];
	size_t count = plan_figures(figures, e, p);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		const struct plan_figure *f = &figures[i];
		json_array_append_new(
			list, json_pack("{s:s,s:s,s:f,s:f,s:o,s:s,s:i,s:o}", "name", f->name,
					"unit", f->unit, "p10", f->p10, "p50", f->p50, "p90",
					known_json(isfinite(f->p90), f->p90), "source", f->source,
					"samples", f->samples, "from", report_text(f->from)));
	}
	return list;
}

static json_t *plan_json(const struct estimate *e, const struct plan *p)
{
	const struct offer *o = &e->offers[p->machine];
	const struct plan_machine *m = &e->machines[p->machine];
	bool priced = price_is_given(o->provider, o->price_microusd_h);

	json_t *plan = json_pack(
		"{s:o,s:o,s:i,s:o,s:b,s:o,s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:o,s:o,s:o,s:o,s:f,s:o,s:s,"
		"s:s}",
		"provider", report_text(o->provider), "gpu", report_text(o->gpu), "gpus",
		gpu_is_none(o->gpu) ? 0 : MAX(o->gpus, 1), "region", report_text(o->region), "spot",
		o->spot, "price_usd_hour", known_json(priced, m->price_h), "pods", p->pods, "batch",
		p->batch, "makespan_p50_s", p->makespan_p50_s, "makespan_p90_s", p->makespan_p90_s,
		"billed_s", p->billed_s, "work_s", p->work_s, "used", p->used, "seats",
		known_json(p->seats > 0, p->seats), "cost_usd", known_json(priced, p->cost_usd),
		"usd_per_segment", known_json(priced, plan_each_usd(e, p)), "pods_usd",
		known_json(priced, p->pods_usd), "storage_usd", e->extras[p->machine].storage.value,
		"usd_per_audio_hour",
		known_json(priced && e->audio_s > 0, p->cost_usd * 3600 / e->audio_s),
		"speed_source", plan_source_name(m->speed_source), "speed_from",
		e->speed_from[p->machine]);
	json_object_set_new(plan, "cost_p90_usd", known_json(priced, p->cost_p90_usd));
	add_intervals(plan, m);
	json_object_set_new(plan, "figures", figures_json(e, p));
	return plan;
}

/* error: the first one; errors: all. */
static void add_errors(json_t *object, const struct mistakes *m, const struct err *err)
{
	json_t *errors = json_array();

	for (size_t i = 0; m && i < m->count; i++)
		json_array_append_new(errors, report_error_json(err_kind_name(m->list[i].err.kind),
								m->list[i].err.msg, ""));
	if (err && !json_array_size(errors))
		json_array_append_new(errors,
				      report_error_json(err_kind_name(err->kind), err->msg, ""));
	json_object_set_new(object, "error",
			    err ? report_error_json(err_kind_name(err->kind), err->msg, "")
				: json_null());
	json_object_set_new(object, "errors", errors);
}

static const char *verdict_name(enum plan_verdict verdict)
{
	switch (verdict) {
	case PLAN_FOUND: return "found";
	case PLAN_NOTHING_FITS: return "nothing fits";
	case PLAN_TOO_SLOW: return "too slow";
	case PLAN_TOO_EXPENSIVE: return "too expensive";
	case PLAN_NEITHER: return "too slow or too expensive";
	}
	return "";
}

static json_t *checkpoint_json(const struct extras *x)
{
	const struct extra *saves = &x->saves;

	if (!saves->from[0])
		return json_null();
	return json_pack("{s:o,s:s}", "every_s",
			 saves->value > 0 ? json_real(saves->value) : json_null(), "from",
			 saves->from);
}

static bool provider_had_card_before(const struct estimate *e, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(e->offers[k].gpu, e->offers[i].gpu) &&
		    !strcmp(e->offers[k].provider, e->offers[i].provider))
			return true;
	return false;
}

static json_t *misfits_json(const struct estimate *e)
{
	json_t *list = json_array();
	char why[ESTIMATE_UNFIT];

	for (size_t i = 0; i < e->count; i++) {
		const struct offer *o = &e->offers[i];
		if (!provider_had_card_before(e, i) && plan_offer_is_unfit(e, i, why))
			json_array_append_new(list, json_pack("{s:o,s:o,s:i,s:o}", "provider",
							      report_text(o->provider), "gpu",
							      report_text(o->gpu), "vram_gb",
							      o->vram_gb, "why", report_text(why)));
	}
	return list;
}

static json_t *plan_with_verdict_json(const struct estimate *e, const struct plan *pick,
				      enum plan_verdict verdict, const struct err *err)
{
	struct plan front[PLAN_FRONT_MAX];
	json_t *list = json_array();
	size_t count = e->open && e->known ? plan_front(front, PLAN_FRONT_MAX, &e->work,
							e->machines, e->count, &e->wish)
					   : 0;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, plan_json(e, &front[i]));
	json_t *object = json_pack(
		"{s:i,s:I,s:I,s:f,s:s,s:o,s:o,s:o}", "schema", 1, "segments",
		(json_int_t)e->segments, "to_render", (json_int_t)e->open, "audio_s", e->audio_s,
		"verdict",
		!e->open                                  ? "nothing to render"
		: !e->known && !e->never_fits && e->count ? "no estimate"
							  : verdict_name(verdict),
		"pick", e->open && verdict != PLAN_NOTHING_FITS ? plan_json(e, pick) : json_null(),
		"front", list, "cards_left_out", misfits_json(e));
	const struct extras *x =
		!e->open ? NULL : &e->extras[verdict == PLAN_NOTHING_FITS ? 0 : pick->machine];
	json_object_set_new(object, "checkpoint", x ? checkpoint_json(x) : json_null());
	add_errors(object, NULL, err);
	return object;
}

static json_t *better_json(const struct better *b)
{
	if (!b->found)
		return json_null();
	return json_pack("{s:o,s:o,s:b,s:i,s:f,s:f,s:o}", "provider",
			 report_text(b->offer.provider), "gpu", report_text(b->offer.gpu), "spot",
			 b->offer.spot, "pods", b->plan.pods, "makespan_p50_s",
			 b->plan.makespan_p50_s, "cost_usd", b->plan.cost_usd, "text",
			 report_text(b->line));
}

static json_t *variant_json(const struct variant *v, const struct estimate *e)
{
	if (!v->known)
		return json_null();
	const struct offer *o = v->fits ? &e->offers[v->plan.machine] : NULL;
	return json_pack("{s:s,s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "engine", v->engine, "fits", v->fits,
			 "provider", o ? report_text(o->provider) : json_null(), "gpu",
			 o ? report_text(o->gpu) : json_null(), "pods",
			 o ? json_integer(v->plan.pods) : json_null(), "makespan_p50_s",
			 o ? json_real(v->plan.makespan_p50_s) : json_null(), "cost_usd",
			 o ? json_real(v->plan.cost_usd) : json_null(), "text",
			 report_text(v->line));
}

static json_t *changes_json(const struct plan_result *r)
{
	struct job_changes c = {0};

	if (!r->job_ops->changes)
		return json_null();
	r->job_ops->changes(r->job, &c);
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "new", (json_int_t)c.added, "changed",
			 (json_int_t)c.changed, "gone", (json_int_t)c.gone, "reused",
			 (json_int_t)c.unchanged, "moved", (json_int_t)c.moved, "from_cache",
			 (json_int_t)c.from_cache, "stale_files", (json_int_t)c.stale);
}

static json_t *left_out_json(const struct plan_result *r)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (r->job_ops->left_out)
		r->job_ops->left_out(r->job, &text);
	return text.len ? report_text(str_text(&text)) : json_null();
}

static json_t *read_as_json(const struct plan_result *r)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (r->job_ops->read_as)
		r->job_ops->read_as(r->job, &text);
	return text.len ? report_text(str_text(&text)) : json_null();
}

static json_t *caps_to_json(const struct caps *caps)
{
	json_t *list = json_array();

	for (size_t i = 0; caps && i < caps->count; i++) {
		const struct allowance *a = &caps->list[i];
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "cap", a->key, "of",
				  a->project ? "project" : "all", "limit_usd",
				  report_dollars(a->cap_microusd), "spent_usd",
				  report_dollars(a->spent_microusd), "reserved_usd",
				  report_dollars(a->reserved_microusd), "left_usd",
				  report_dollars(allow_left(a)), "until", report_time(a->ends_ms)));
	}
	return list;
}

static json_t *stages_json(const struct plan_result *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->stage_count; i++) {
		const struct plan_stage *s = &r->stages[i];
		const struct offer *o = &s->offer;
		json_array_append_new(
			list,
			json_pack("{s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "name", report_text(s->name),
				  "pods", s->pods, "provider",
				  s->offered ? report_text(o->provider) : json_null(), "gpu",
				  s->offered ? report_text(o->gpu) : json_null(), "price_usd_hour",
				  s->offered ? price_json(o->provider, o->price_microusd_h)
					     : json_null(),
				  "makespan_s",
				  s->took_ms ? report_seconds(s->took_ms) : json_null(), "cost_usd",
				  known_json(s->took_ms && !s->unpriced_ms,
					     (double)s->cost_microusd / 1e6),
				  "from", s->from[0] ? report_text(s->from) : json_null()));
	}
	return list;
}

/* Hours of the day, local time; null: none are known. */
static json_t *cheaper_json(const struct forecast_cheaper *c)
{
	return c ? json_pack("{s:i,s:i,s:f,s:i,s:i}", "from_hour", c->from_hour, "to_hour",
			     c->to_hour, "saving", c->saving, "days", c->days, "days_cheaper",
			     c->cheaper)
		 : json_null();
}

/* null: no volume with a price. */
static json_t *volume_pays_json(const struct plan_result *r)
{
	struct volume_pays v;

	if (!r->estimate->count || !r->estimate->known || r->verdict == PLAN_NOTHING_FITS)
		return json_null();
	plan_volume_pays(&v, r->estimate, r->pick);
	return v.month_usd > 0
		       ? json_pack("{s:f,s:f,s:f,s:o,s:b}", "month_usd", v.month_usd, "saves_s",
				   v.saved_s, "saves_usd", v.saved_usd, "pays_from_runs",
				   known_json(v.saved_usd > 0, v.runs), "measured", v.measured)
		       : json_null();
}

json_t *plan_result_json(const struct plan_result *r, const struct err *err)
{
	json_t *object = plan_with_verdict_json(r->estimate, r->pick, r->verdict, err);

	json_object_set_new(object, "better", better_json(r->better));
	json_object_set_new(object, "variant", variant_json(r->variant, r->estimate));
	json_object_set_new(object, "changes", changes_json(r));
	json_object_set_new(object, "read_as", read_as_json(r));
	json_object_set_new(object, "left_out", left_out_json(r));
	json_object_set_new(object, "caps", caps_to_json(r->caps));
	json_object_set_new(object, "due_at", report_time(r->due_ms));
	json_object_set_new(object, "cheaper_hours", cheaper_json(r->cheaper));
	json_object_set_new(object, "volume_pays", volume_pays_json(r));
	json_object_set_new(
		object, "prewarm",
		r->ahead.ahead_s > 0
			? plan_ahead_json(&r->ahead,
					  plan_is_unpriced(r->estimate, r->pick->machine)
						  ? 0
						  : r->estimate->machines[r->pick->machine].price_h)
			: json_null());
	json_object_set_new(object, "warm_pods", json_integer(r->warm));
	json_object_set_new(object, "stages", stages_json(r));
	return object;
}

json_t *plan_failure_json(const struct mistakes *m, const struct err *err)
{
	json_t *object =
		json_pack("{s:i,s:n,s:n,s:n,s:s,s:n,s:[],s:[],s:n,s:n,s:n,s:n,s:n,s:n,s:[]}",
			  "schema", 1, "segments", "to_render", "audio_s", "verdict", "refused",
			  "pick", "front", "cards_left_out", "checkpoint", "better", "variant",
			  "changes", "read_as", "left_out", "caps");

	add_errors(object, m, err);
	return object;
}
