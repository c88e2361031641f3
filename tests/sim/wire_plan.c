/* wire_plan.c - which vendors of a schedule are spoken to through their real translators, how their
 * servers behave, and which calls go wrong. It uses its own stream of random numbers: the rest of
 * the plan is what the same seed gives without SEED_WIRE. */
#include "wire.h"

#include "providers/modal/modal.h"
#include "providers/runpod/runpod.h"

/* One price for one kind of GPU, and none for nothing. */
static void set_offers(struct vendor_plan *v, const char *name)
{
	for (int i = 0; i < v->offer_count; i++) {
		struct offer *o = &v->offers[i];
		COPY_TEXT(o->provider, name);
		COPY_TEXT(o->gpu, wire_gpus[i / 2].name);
		o->price_microusd_h = i % 2 ? v->offers[i - 1].price_microusd_h
					    : MAX(o->price_microusd_h, INT64_C(200000));
	}
}

static void set_vendor(struct plan *p, uint64_t *r, int i, enum wire_kind kind)
{
	const struct provider_ops *ops = kind == WIRE_RUNPOD ? &provider_runpod : &provider_modal;
	struct vendor_plan *v = &p->vendors[i];

	v->wire = kind;
	v->has_volume = roll_chance(r, 50);
	v->community = roll_chance(r, 30);
	v->spot = kind == WIRE_RUNPOD && roll_chance(r, 25);
	v->boasts = roll_chance(r, 50);
	v->forgets = roll_chance(r, 30);
	v->quota = roll_chance(r, 80) ? 0 : (int)roll_in(r, 60, 400);
	/* a page begins with the last row of the one before */
	v->page_rows = (int)roll_in(r, 2, 5);
	v->token_s = roll_chance(r, 50) ? 1200 : (int)roll_in(r, 600, 3600);
	v->lag_ms = v->lag_ms ? v->lag_ms : roll_in(r, 0, 1500);
	set_offers(v, ops->name);
	for (int n = 0; n < p->client_count; n++) {
		struct core_provider *k = &p->jobs[n].conf.providers[i];
		COPY_TEXT(k->name, ops->name);
		k->poll_ms = ops->poll_ms;
		k->list_gap_ms = ops->list_gap_ms;
		k->makes_image = ops->makes_image;
		k->volume_lags = ops->volume_lags;
		k->caution = ops->caution;
	}
}

static void add_fault(struct plan *p, uint64_t *r)
{
	struct fault *f = plan_next_fault(p);

	*f = (struct fault){
		.kind = (enum fault_kind)roll_in(r, F_FIRST_OF_WIRES, F_FIRST_OF_REFUSALS - 1),
		.n = (int)roll_spread(r, 1, 80) - 1,
		.count = (int)roll_spread(r, 1, 8),
		.ms = roll_spread(r, 200, 900000),
		.x = (int)roll_in(r, 0, 1 << 20)};
	if (f->kind == F_ODD_STATE || f->kind == F_POD_LOCKED || f->kind == F_IMAGE_GONE ||
	    f->kind == F_LIFE_OVER || f->kind == F_RELEASE_UNKNOWN)
		f->n = (int)roll_spread(r, 1, 6) - 1;
	f->who = (int)roll_in(r, 0, p->client_count - 1);
	f->who = (int)roll_in(r, 0, p->client_count - 1);
	/* there must be a run to hand over, and work for its agents */
	if (f->kind == F_CRASH_HANDED) {
		f->n = 0;
		p->ms_per_weight = MAX(p->ms_per_weight, roll_in(r, 1000, 15000));
		p->jobs[f->who].conf.detached = p->jobs[f->who].conf.want_volume = true;
	}
	if (f->kind == F_CRASH_AT_CALL)
		f->count = roll_chance(r, 70) ? 1 : 2;
}

/* GPUs that Modal offers and never has, and lists that it refuses: from its own stream, so that the
 * rest of the plan stays the same. */
static void set_modal(struct plan *p)
{
	uint64_t state = p->seed ^ 0x717565756564ull, *r = &state;

	for (int i = 0; i < p->vendors_made; i++)
		for (int k = 0; k < 4; k++) {
			bool full = roll_chance(r, 15);
			p->vendors[i].full[k] = full && p->vendors[i].wire == WIRE_MODAL;
		}
	for (int i = 0; i < p->vendors_made; i++)
		p->vendors[i].lists =
			roll_chance(r, 60) ? LISTS_ALL : (int)roll_in(r, LISTS_V1, LISTS_NONE);
}

/* Sometimes a machine's clock is so far off, or jumps so far, that nothing may be rented from these
 * vendors. */
static void set_clock(struct plan *p, uint64_t *r)
{
	bool all_tell = true; /* the time, which those without wires do not */

	if (roll_chance(r, 4))
		p->wall_offset_ms[roll_in(r, 0, p->laptops_made - 1)] =
			roll_in(r, 125000, 200000) * (roll_chance(r, 50) ? 1 : -1);
	for (int i = 0; i < p->jobs[0].conf.provider_count; i++)
		all_tell = all_tell && p->vendors[i].wire;
	for (int i = 0; i < p->fault_count && all_tell; i++)
		if (p->faults[i].kind == F_WALL_JUMP && roll_chance(r, 70))
			p->faults[i].x = (int)roll_in(r, -26 * HOUR_MS, 26 * HOUR_MS);
}

/* RunPod lets several volumes have one name: another machine makes one at the same moment. */
static void set_twin(struct plan *p)
{
	uint64_t state = p->seed ^ 0x7477696e73ull, *r = &state;

	for (int i = 0; i < p->vendors_made; i++) {
		if (p->vendors[i].wire != WIRE_RUNPOD || !roll_chance(r, 15))
			continue;
		p->vendors[i].has_volume = false;
		for (int n = 0; n < p->client_count; n++)
			p->jobs[n].conf.want_volume = p->jobs[n].conf.make_volume = true;
		*plan_next_fault(p) = (struct fault){
			.kind = F_VOLUME_TWICE, .count = 1, .x = (int)roll_in(r, 0, 1)};
		return;
	}
}

void plan_wire(struct plan *p)
{
	uint64_t state = p->seed ^ 0x77697265ull, *r = &state;
	int vendors = p->jobs[0].conf.provider_count, first = (int)roll_in(r, 0, vendors - 1);
	enum wire_kind kind = roll_chance(r, 50) ? WIRE_RUNPOD : WIRE_MODAL;

	set_vendor(p, r, first, kind);
	if (vendors > 1 && roll_chance(r, 40))
		set_vendor(p, r, (first + 1) % vendors,
			   kind == WIRE_RUNPOD ? WIRE_MODAL : WIRE_RUNPOD);
	for (int left = roll_chance(r, 20) ? 0 : (int)roll_spread(r, 1, WIRE_FAULTS_MAX); left;
	     left--)
		add_fault(p, r);
	set_clock(p, r);
	set_modal(p);
	set_twin(p);
}
