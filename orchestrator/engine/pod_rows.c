/* pod_rows.c - converts between a pod of the core and its row in the ledger. */
#include "pod_rows.h"

#include "base/clock.h"
#include "batches.h"
#include "impl.h"
#include "kept.h"
#include "store/pod_cost.h"

/* Rows have wall clock times, the core boot clock times; both are of this machine. */
int64_t pod_rows_wall_ms(int64_t boot_ms)
{
	return boot_ms ? boot_ms - clock_boot_ms() + clock_wall_ms() : 0;
}

static int64_t to_boot(int64_t wall_ms)
{
	return wall_ms ? wall_ms - clock_wall_ms() + clock_boot_ms() : 0;
}

/* A past event must not lie in the future, even if the clock was set back since. */
static int64_t past_boot(int64_t wall_ms)
{
	return MIN(to_boot(wall_ms), clock_boot_ms());
}

static enum pod_row_state row_state(const struct core_pod *p)
{
	switch (p->phase) {
	case POD_RENTING: return POD_ROW_INTENT;
	case POD_AMBIGUOUS: return POD_ROW_AMBIGUOUS;
	case POD_BOOTING:
	case POD_CONNECTING:
	case POD_PREPARING:
	case POD_AWAITING_VOLUME:
	case POD_LOADING:
	case POD_WORKING: return POD_ROW_LIVE;
	case POD_RELEASING:
	case POD_CONFIRMING: return POD_ROW_RELEASING;
	case POD_GONE: return POD_ROW_GONE;
	case POD_NEVER: return POD_ROW_FAILED;
	}
	return POD_ROW_LIVE;
}

/* What a run that takes the pod over must know. */
static void keep_row(const struct epod *own, const struct core_pod *p, struct pod_row *row)
{
	const struct holding *h = &own->hold;

	row->kept_ms = h->kept_ms;
	row->kept_until_ms = h->kept_until_ms;
	COPY_TEXT(row->pool, p->rental.exit == EXIT_TAKEN ? "" : h->pool);
	COPY_TEXT(row->handed_from, h->handed_from);
	COPY_TEXT(row->handed_to, h->handed_to);
	row->holds = h->holds;
	row->cold_ms = core_cold_ms(p);
	const struct pod_env *env = &own->env;
	if (env->tree[0])
		snprintf(row->env, sizeof(row->env), "%s %s %s", env->name, env->tree, env->python);
}

static void put_rental(const struct core_pod *p, struct pod_row *row)
{
	const struct rental *r = &p->rental;

	snprintf(row->name, sizeof(row->name), "burst-%s", r->attempt);
	COPY_TEXT(row->id, r->id);
	COPY_TEXT(row->gpu, r->view.gpu[0] ? r->view.gpu : r->offer.gpu);
	COPY_TEXT(row->gpu_offered, r->offer.gpu);
	COPY_TEXT(row->region, r->view.region[0] ? r->view.region : r->offer.region);
	row->spot = r->offer.spot;
	row->preempted = r->view.preempted;
	COPY_TEXT(row->volume_id, r->volume.id);
	COPY_TEXT(row->volume_name, r->volume.name);
	row->price_microusd_h = r->price_microusd_h;
	row->price_list_microusd_h = r->offer.price_microusd_h;
	row->hard_end_s = r->hard_end_s;
	COPY_TEXT(row->host, r->view.host);
	row->port = r->view.port;
	COPY_TEXT(row->user, r->view.user);
	row->vendor_started_ms = r->vendor_started_s * 1000;
}

static void put_times(const struct core_pod *p, struct pod_row *row)
{
	row->create_ms = pod_rows_wall_ms(p->rental.create_at);
	row->rented_ms = pod_rows_wall_ms(p->rental.rented_at);
	row->running_ms = pod_rows_wall_ms(p->presence.running_at);
	row->reached_ms = pod_rows_wall_ms(p->presence.reached_at);
	row->connected_ms = pod_rows_wall_ms(p->presence.connected_at);
	row->synced_ms = pod_rows_wall_ms(p->presence.synced_at);
	row->ready_ms = pod_rows_wall_ms(p->presence.ready_at);
	row->worked_ms = pod_rows_wall_ms(p->workload.worked_at);
	row->safe_ms = pod_rows_wall_ms(p->workload.local_at);
	row->release_ms = pod_rows_wall_ms(p->rental.release_at);
	row->released_ms = pod_rows_wall_ms(p->rental.released_at);
	row->gone_ms = pod_rows_wall_ms(p->rental.gone_at);
	row->accepted_ms = pod_rows_wall_ms(p->rental.accepted_at);
	row->outlived_ms = pod_rows_wall_ms(p->rental.outlived_at);
	row->compute_ms = core_compute_ms(p);
	row->wasted_ms = p->workload.wasted_ms;
	row->billed_ms = core_billed_ms(p, clock_boot_ms());
	row->cost_microusd = core_counted(p, clock_boot_ms());
}

/* What the engine keeps of the pod beside the core. */
static void put_own(const struct epod *own, const struct core_pod *p, struct pod_row *row)
{
	if (p->rental.exit == EXIT_TAKEN)
		kept_part(p->rental.attempt, own->hold.holds, row->attempt);
	if (own->origin.account[0])
		COPY_TEXT(row->account, own->origin.account);
	if (own->workers.gpu[0])
		COPY_TEXT(row->gpu, own->workers.gpu);
	row->billed_vendor_ms = own->billing.bill.billed_ms;
	row->cost_vendor_microusd = own->billing.bill.cost_microusd;
	row->cost_beside_microusd = own->billing.bill.beside_microusd;
	row->vendor_reported = own->billing.bill.reported;
	row->vendor_asked_ms = own->billing.answered_ms;
	row->event = own->reports.last_event;
	batches_use_of(&own->use, row);
	COPY_TEXT(row->image, own->origin.image);
	COPY_TEXT(row->setup, own->origin.setup);
	row->setup_ms = own->prep.setup_ms;
	row->synced_bytes = own->prep.synced_bytes;
	pod_row_set_load(row, own->workers.load_ms);
	row->unpack_bytes = own->workers.unpack_bytes;
	keep_row(own, p, row);
}

struct pod_row engine_pod_row(const struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	const struct engine_provider *v = &e->setup->providers[p->rental.provider];
	struct pod_row row = {.synced_bytes = SYNCED_UNKNOWN};

	COPY_TEXT(row.attempt, p->rental.attempt);
	COPY_TEXT(row.run, e->setup->run->id);
	COPY_TEXT(row.provider, v->ops->name);
	COPY_TEXT(row.account, v->ops->account(v->handle));
	row.state = row_state(p);
	row.volume_safe = p->presence.durable;
	put_rental(p, &row);
	put_times(p, &row);
	if (pod < e->pod_count)
		put_own(&e->pods[pod], p, &row);
	if (p->fault != ERR_NONE || p->phase == POD_NEVER)
		COPY_TEXT(row.error, p->reason);
	return row;
}

/* A key may have been replaced, or belong to another account: only pods seen with it are known to
 * be in its reach. */
static bool is_elsewhere(const struct engine *e, int provider, const struct pod_row *row)
{
	const struct engine_provider *v = &e->setup->providers[provider];

	return row->account[0] && strcmp(row->account, v->ops->account(v->handle)) != 0;
}

static int provider_of(const struct engine *e, const char *name)
{
	int found = -1;

	for (int i = 0; i < e->setup->provider_count; i++)
		if (!strcmp(e->setup->providers[i].ops->name, name))
			found = i;
	return found;
}

static void take_place(const struct engine *e, const struct pod_row *row, struct rental *r)
{
	COPY_TEXT(r->attempt, row->attempt);
	COPY_TEXT(r->id, row->id);
	COPY_TEXT(r->offer.provider, row->provider);
	COPY_TEXT(r->offer.gpu, row->gpu_offered[0] ? row->gpu_offered : row->gpu);
	COPY_TEXT(r->offer.region, row->region);
	r->offer.spot = row->spot;
	r->view.preempted = row->preempted;
	COPY_TEXT(r->volume.id, row->volume_id);
	COPY_TEXT(r->volume.name, row->volume_name);
	COPY_TEXT(r->volume.provider, row->provider);
	COPY_TEXT(r->volume.region, row->region);
	if (r->provider >= 0)
		r->volume.apart =
			provider_can_fetch(e->setup->providers[r->provider].ops,
					   e->setup->providers[r->provider].handle, &r->volume);
}

/* known: the row has the pod's id. */
static void take_rental(const struct engine *e, const struct pod_row *row, bool known,
			struct rental *r)
{
	int64_t rented_ms = row->rented_ms ? row->rented_ms : row->create_ms;

	r->price_microusd_h = row->price_microusd_h;
	r->offer.price_microusd_h =
		row->price_list_microusd_h ? row->price_list_microusd_h : row->price_microusd_h;
	r->vendor_started_s = row->vendor_started_ms / 1000;
	r->hard_end_s = row->hard_end_s;
	r->hard_end_ms = to_boot(row->hard_end_s * 1000);
	r->first_lease_end_s = row->hard_end_s;
	r->key = r->provider >= 0 && is_elsewhere(e, r->provider, row) ? KEY_OTHER : KEY_OURS;
	r->accepted_at = past_boot(row->accepted_ms);
	r->outlived_at = past_boot(row->outlived_ms);
	/* if it outlives its release, it has billed until now */
	bool released = row->released_ms > 0 && !pod_row_outlives(row);
	r->released_at = released ? past_boot(row->released_ms) : 0;
	/* whatever the clock shows now, the cost in the row stands */
	r->create_at = MIN(past_boot(row->create_ms),
			   (released ? r->released_at : clock_boot_ms()) - row->billed_ms);
	/* to tell its agent to end it, whatever a list reports */
	COPY_TEXT(r->view.host, row->host);
	r->view.port = row->port;
	COPY_TEXT(r->view.user, row->user);
	r->rented_at = known ? past_boot(rented_ms) : clock_boot_ms();
	/* a listing reported that it runs, unless the create's reply did */
	r->listing = known && row->running_ms > rented_ms ? LISTING_SHOWS : LISTING_NEVER;
	r->release_at = past_boot(row->release_ms);
	r->reused = row->handed_from[0] != '\0';
	r->cold_ms = row->cold_ms;
	if (e->setup->sweeps) {
		r->listing = LISTING_SHOWS;
		r->seen_at = clock_boot_ms();
	}
}

void core_pod_of_row(const struct engine *e, const struct pod_row *row, struct core_pod *p)
{
	bool known = row->id[0] != '\0';

	memset(p, 0, sizeof(*p));
	p->rental.provider = provider_of(e, row->provider);
	p->phase = known ? POD_BOOTING : POD_AMBIGUOUS;
	take_place(e, row, &p->rental);
	p->presence.durable = row->volume_safe;
	if (row->state == POD_ROW_GONE) {
		p->phase = POD_GONE; /* only the files on its volume are needed */
		return;
	}
	take_rental(e, row, known, &p->rental);
	p->presence.lease = known && e->setup->handed_over ? LEASE_AGENT : LEASE_CLIENT;
	/* the release may not have arrived: send it again */
	p->leave = known && row->state == POD_ROW_RELEASING ? LEAVE_NOW : LEAVE_NOT;
	p->presence.running_at = past_boot(row->running_ms);
	p->presence.reached_at = past_boot(row->reached_ms);
	p->presence.connected_at = past_boot(row->connected_ms);
	p->presence.synced_at = past_boot(row->synced_ms);
	p->presence.ready_at = past_boot(row->ready_ms);
	p->workload.compute_ms = row->compute_ms;
	p->workload.wasted_ms = row->wasted_ms;
	COPY_TEXT(p->reason, row->error);
}
