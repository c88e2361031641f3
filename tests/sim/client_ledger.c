/* client_ledger.c - the ledger of a machine: what it says of the pods of its clients. */
#include "base/clock.h"
#include "client.h"
#include "pool.h"

struct row *client_row_of(struct client *cl, const char *attempt)
{
	for (size_t i = 0; i < cl->laptop->row_count; i++)
		if (!strcmp(cl->laptop->rows[i].pod.rental.attempt, attempt) ||
		    plant(PLANT_ROW_SHARED))
			return &cl->laptop->rows[i];
	return NULL;
}

bool client_ours(const struct client *cl, const struct row *row)
{
	return row->client == cl->number;
}

bool client_save(struct client *cl, int pod)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	if (is_reaper(cl) || pool_saved(cl, pod)) /* the row is of another run */
		return true;
	struct row *row = client_row_of(cl, p->rental.attempt);
	struct machine *m = p->rental.id[0] ? client_machine_of(cl, pod) : NULL;

	if (m && m->known_at < 0)
		m->known_at = cl->sim->now;
	bool full = strikes(cl->sim, F_LEDGER_FULL);
	if (m)
		m->unsaved = full;
	if (full) {
		struct happening *h = client_later(cl, 1, W_SAVE_FAILED);
		h->pod = p->phase == POD_RENTING && !p->rental.id[0] ? pod : -1;
		if (h->pod >= 0)
			cl->unsaved[pod] = true;
		return false;
	}
	if (plant(PLANT_INTENT_UNSAVED) && !p->rental.id[0])
		return true;
	if (row && row->pod.rental.id[0] && strcmp(row->pod.rental.id, p->rental.id) != 0)
		broke(cl->sim, "the row of pod %s is written over with pod %s", row->pod.rental.id,
		      p->rental.id);
	if (!row) {
		GROW(cl->laptop->rows, cl->laptop->row_count, cl->laptop->row_cap);
		row = &cl->laptop->rows[cl->laptop->row_count++];
	}
	row->client = cl->number;
	row->pod = *p;
	if (plant(PLANT_ROW_GONE) && p->phase == POD_RELEASING)
		row->pod.phase = POD_GONE;
	if (plant(PLANT_HANDOVER_UNSAVED))
		row->pod.presence.lease = LEASE_CLIENT;
	row->wall_minus_boot = wall_now(cl) - boot_now(cl);
	row->billed_ms = core_billed_ms(p, boot_now(cl));
	return true;
}

static int64_t moved(int64_t boot, int64_t by)
{
	return boot ? boot + by : 0;
}

int64_t client_past(struct client *cl, int64_t boot, int64_t by)
{
	return MIN(moved(boot, by), boot_now(cl));
}

struct core_pod client_carried(struct client *cl, const struct row *row)
{
	const struct core_pod *o = &row->pod;
	int64_t by = row->wall_minus_boot - (wall_now(cl) - boot_now(cl));
	struct core_pod p = {.rental.provider = o->rental.provider,
			     .rental.offer = o->rental.offer,
			     .rental.volume = o->rental.volume,
			     .rental.price_microusd_h = o->rental.price_microusd_h,
			     .rental.hard_end_ms = o->rental.hard_end_ms + o->rental.cut_ms + by,
			     .rental.hard_end_s = o->rental.hard_end_s,
			     .rental.wait_ms = o->rental.wait_ms,
			     .rental.run_ms = o->rental.run_ms,
			     .rental.first_lease_end_s = o->rental.first_lease_end_s};

	COPY_TEXT(p.rental.attempt, o->rental.attempt);
	COPY_TEXT(p.rental.id, o->rental.id);
	return p;
}

struct core_pod client_from_row(struct client *cl, const struct row *row)
{
	const struct core_pod *o = &row->pod;
	int64_t by = row->wall_minus_boot - (wall_now(cl) - boot_now(cl));
	struct core_pod p = client_carried(cl, row);

	p.presence.lease = o->presence.lease == LEASE_CLIENT ? LEASE_CLIENT : LEASE_AGENT;
	p.rental.reused = o->rental.reused;
	p.rental.cold_ms = o->rental.cold_ms;
	p.workload.compute_ms = core_compute_ms(o);
	p.workload.wasted_ms = o->workload.wasted_ms;
	p.phase = p.rental.id[0] ? POD_BOOTING : POD_AMBIGUOUS;
	p.leave = pod_is_retired(o) ? LEAVE_NOW : LEAVE_NOT;
	p.presence.durable = o->presence.durable;
	if (o->phase == POD_GONE) {
		p.phase = POD_GONE;
		p.workload.compute_ms = p.workload.wasted_ms = 0;
		return p;
	}
	p.rental.view.reach = o->rental.view.reach;
	p.rental.view.port = o->rental.view.port;
	p.rental.create_at =
		MIN(client_past(cl, o->rental.create_at, by), boot_now(cl) - row->billed_ms);
	if (o->rental.start_at)
		p.rental.start_at =
			MIN(client_past(cl, o->rental.start_at, by), boot_now(cl) - row->billed_ms);
	p.rental.queued_at = client_past(cl, o->rental.queued_at, by);
	p.rental.rented_at =
		p.rental.id[0] ? client_past(cl, o->rental.rented_at, by) : boot_now(cl);
	p.presence.running_at = client_past(cl, o->presence.running_at, by);
	p.presence.reached_at = client_past(cl, o->presence.reached_at, by);
	p.presence.connected_at = client_past(cl, o->presence.connected_at, by);
	p.presence.synced_at = client_past(cl, o->presence.synced_at, by);
	p.presence.ready_at = client_past(cl, o->presence.ready_at, by);
	return p;
}

int64_t client_spent_before(const struct client *cl)
{
	int64_t sum = 0;

	for (size_t i = 0; i < cl->laptop->row_count; i++) {
		const struct core_pod *p = &cl->laptop->rows[i].pod;
		if (client_ours(cl, &cl->laptop->rows[i]) && p->phase == POD_GONE &&
		    !pod_is_unstarted(p))
			sum += money_for(p->rental.price_microusd_h,
					 (p->rental.gone_at - pod_bills_from(p) + 999) / 1000 *
						 1000);
		if (client_ours(cl, &cl->laptop->rows[i]))
			sum += core_may_have_cost(p);
	}
	return sum;
}
