/* plan_json.c - writes a plan as JSON, for `plan --json`. */
#include "plan_parts.h"
#include "report.h"

static json_t *plan_json(const struct estimate *e, const struct plan *p)
{
	const struct offer *o = &e->offers[p->machine];
	const struct plan_machine *m = &e->machines[p->machine];

	return json_pack(
		"{s:o,s:o,s:o,s:b,s:f,s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:o,s:s,s:s}",
		"provider", report_text(o->provider), "gpu", report_text(o->gpu), "region",
		report_text(o->region), "spot", o->spot, "price_usd_hour", m->price_h, "pods",
		p->pods, "batch", p->batch, "makespan_p50_s", p->makespan_p50_s, "makespan_p90_s",
		p->makespan_p90_s, "billed_s", p->billed_s, "work_s", p->work_s, "used", p->used,
		"seats", p->seats, "cost_usd", p->cost_usd, "usd_per_segment", plan_each_usd(e, p),
		"pods_usd", p->pods_usd, "storage_usd", e->extras[p->machine].storage.value,
		"usd_per_audio_hour",
		e->audio_s > 0 ? json_real(p->cost_usd * 3600 / e->audio_s) : json_null(),
		"speed_source", plan_source_name(m->speed_source), "speed_from",
		e->speed_from[p->machine]);
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

json_t *plan_to_json(const struct estimate *e, const struct plan *pick, enum plan_verdict verdict,
		     const struct err *err)
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
		"front", list, "cards_left_out", plan_misfits_json(e));
	const struct extras *x =
		!e->open ? NULL : &e->extras[verdict == PLAN_NOTHING_FITS ? 0 : pick->machine];
	json_object_set_new(object, "checkpoint", x ? checkpoint_json(x) : json_null());
	add_errors(object, NULL, err);
	return object;
}

json_t *plan_failure_json(const struct mistakes *m, const struct err *err)
{
	json_t *object =
		json_pack("{s:i,s:n,s:n,s:n,s:s,s:n,s:[],s:[],s:n,s:n,s:n,s:n,s:[]}", "schema", 1,
			  "segments", "to_render", "audio_s", "verdict", "refused", "pick", "front",
			  "cards_left_out", "checkpoint", "better", "changes", "left_out", "caps");

	add_errors(object, m, err);
	return object;
}
