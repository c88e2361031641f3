/* pod_rows.c - converts between a pod of the core and its row in the ledger. */
#include "pod_rows.h"

#include "base/clock.h"
#include "batches.h"
#include "impl.h"
#include "kept.h"
#include "known.h"

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
	COPY_TEXT(row->pool, p->rental.exit == EXIT_HANDED ? "" : h->pool);
	COPY_TEXT(row->handed_from, h->handed_from);
	COPY_TEXT(row->handed_to, h->handed_to);
	row->holds = h->holds;
	row->cold_ms = core_cold_ms(p);
	if (own->env_tree[0])
		snprintf(row->env, sizeof(row->env), "%s %s %s", own->env_name, own->env_tree,
			 own->env_python);
}

struct pod_row engine_pod_row(const struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	const struct engine_provider *v = &e->setup->providers[p->rental.provider];
	struct pod_row row = {0};

	COPY_TEXT(row.attempt, p->rental.attempt);
	COPY_TEXT(row.run, e->setup->run->id);
	if (p->rental.exit == EXIT_HANDED && pod < e->pod_count)
		kept_part(p->rental.attempt, e->pods[pod].hold.holds, row.attempt);
	COPY_TEXT(row.provider, v->ops->name);
	COPY_TEXT(row.account, pod < e->pod_count && e->pods[pod].account[0]
				       ? e->pods[pod].account
				       : v->ops->account(v->handle));
	snprintf(row.name, sizeof(row.name), "burst-%s", p->rental.attempt);
	COPY_TEXT(row.id, p->rental.id);
	row.state = row_state(p);
	COPY_TEXT(row.gpu, pod < e->pod_count && e->pods[pod].gpu_seen[0] ? e->pods[pod].gpu_seen
			   : p->rental.view.gpu[0]                        ? p->rental.view.gpu
									  : p->rental.offer.gpu);
	COPY_TEXT(row.gpu_offered, p->rental.offer.gpu);
	COPY_TEXT(row.region,
		  p->rental.view.region[0] ? p->rental.view.region : p->rental.offer.region);
	row.spot = p->rental.offer.spot;
	row.preempted = p->rental.view.preempted;
	row.volume_safe = p->presence.durable;
	COPY_TEXT(row.volume_id, p->rental.volume.id);
	COPY_TEXT(row.volume_name, p->rental.volume.name);
	row.price_microusd_h = p->rental.price_microusd_h;
	row.price_list_microusd_h = p->rental.offer.price_microusd_h;
	row.hard_end_s = p->rental.hard_end_s;
	COPY_TEXT(row.host, p->rental.view.host);
	row.port = p->rental.view.port;
	COPY_TEXT(row.user, p->rental.view.user);
	row.create_ms = pod_rows_wall_ms(p->rental.create_at);
	row.rented_ms = pod_rows_wall_ms(p->rental.rented_at);
	row.running_ms = pod_rows_wall_ms(p->presence.running_at);
	row.reached_ms = pod_rows_wall_ms(p->presence.reached_at);
	row.connected_ms = pod_rows_wall_ms(p->presence.connected_at);
	row.synced_ms = pod_rows_wall_ms(p->presence.synced_at);
	row.ready_ms = pod_rows_wall_ms(p->presence.ready_at);
	row.worked_ms = pod_rows_wall_ms(p->workload.worked_at);
	row.safe_ms = pod_rows_wall_ms(p->workload.local_at);
	row.release_ms = pod_rows_wall_ms(p->rental.release_at);
	row.released_ms = pod_rows_wall_ms(p->rental.released_at);
	row.gone_ms = pod_rows_wall_ms(p->rental.gone_at);
	row.compute_ms = core_compute_ms(p);
	row.wasted_ms = p->workload.wasted_ms;
	row.billed_ms = core_billed_ms(p, clock_boot_ms());
	row.cost_microusd = core_cost(p, clock_boot_ms());
	row.vendor_started_ms = p->rental.vendor_started_s * 1000;
	if (pod < e->pod_count) {
		row.billed_vendor_ms = e->pods[pod].bill.billed_ms;
		row.cost_vendor_microusd = e->pods[pod].bill.cost_microusd;
		row.cost_beside_microusd = e->pods[pod].bill.beside_microusd;
		row.vendor_reported = e->pods[pod].bill.reported;
		row.vendor_asked_ms = e->pods[pod].bill_asked_ms;
	}
	row.event = pod < e->pod_count ? e->pods[pod].last_event : 0;
	row.synced_bytes = SYNCED_UNKNOWN;
	if (pod < e->pod_count) {
		const struct epod *own = &e->pods[pod];
		batches_use_of(&own->use, &row);
		COPY_TEXT(row.image, own->image);
		COPY_TEXT(row.setup, own->setup);
		row.setup_ms = own->setup_ms;
		row.synced_bytes = own->synced_bytes;
		pod_row_set_load(&row, own->load_ms);
		row.unpack_bytes = own->unpack_bytes;
		keep_row(own, p, &row);
	}
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

/* The parts of a row that the core does not have. */
void pod_rows_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	struct epod *p = &e->pods[pod];

	COPY_TEXT(p->account, row->account);
	COPY_TEXT(p->image, row->image);
	COPY_TEXT(p->setup, row->setup);
	p->setup_ms = row->setup_ms;
	p->synced_bytes = row->synced_bytes;
	for (int i = 0; i < LOAD_PHASES; i++)
		p->load_ms[i] = pod_row_load_ms(row, (enum load_phase)i);
	p->unpack_bytes = row->unpack_bytes;
	p->use.memory_peak_mib = row->gpu_memory_peak_mib;
	p->use.earlier_samples = row->gpu_samples;
	p->use.earlier_p50 = row->gpu_busy_p50;
	p->use.earlier_p95 = row->gpu_busy_p95;
	p->hold.kept_ms = row->kept_ms;
	p->hold.kept_until_ms = row->kept_until_ms;
	COPY_TEXT(p->hold.pool, row->pool);
	COPY_TEXT(p->hold.handed_from, row->handed_from);
	p->hold.holds = row->holds;
	p->hold.offered = row->pool[0] != '\0';
	known_env_of(p, row->env);
}

void core_pod_of_row(const struct engine *e, const struct pod_row *row, struct core_pod *p)
{
	memset(p, 0, sizeof(*p));
	p->rental.provider = -1;
	for (int i = 0; i < e->setup->provider_count; i++)
		if (!strcmp(e->setup->providers[i].ops->name, row->provider))
			p->rental.provider = i;
	bool known = row->id[0] != '\0';
	p->phase = known ? POD_BOOTING : POD_AMBIGUOUS;
	COPY_TEXT(p->rental.attempt, row->attempt);
	COPY_TEXT(p->rental.id, row->id);
	COPY_TEXT(p->rental.offer.provider, row->provider);
	COPY_TEXT(p->rental.offer.gpu, row->gpu_offered[0] ? row->gpu_offered : row->gpu);
	COPY_TEXT(p->rental.offer.region, row->region);
	p->rental.offer.spot = row->spot;
	p->rental.view.preempted = row->preempted;
	COPY_TEXT(p->rental.volume.id, row->volume_id);
	COPY_TEXT(p->rental.volume.name, row->volume_name);
	COPY_TEXT(p->rental.volume.provider, row->provider);
	COPY_TEXT(p->rental.volume.region, row->region);
	if (p->rental.provider >= 0)
		p->rental.volume.apart = provider_can_fetch(
			e->setup->providers[p->rental.provider].ops,
			e->setup->providers[p->rental.provider].handle, &p->rental.volume);
	p->presence.durable = row->volume_safe;
	if (row->state == POD_ROW_GONE) {
		p->phase = POD_GONE; /* only the files on its volume are needed */
		return;
	}
	p->rental.price_microusd_h = row->price_microusd_h;
	p->rental.offer.price_microusd_h =
		row->price_list_microusd_h ? row->price_list_microusd_h : row->price_microusd_h;
	p->rental.vendor_started_s = row->vendor_started_ms / 1000;
	p->rental.hard_end_s = row->hard_end_s;
	p->rental.hard_end_ms = to_boot(row->hard_end_s * 1000);
	p->rental.first_lease_end_s = row->hard_end_s;
	p->presence.lease = known && e->setup->handed_over ? LEASE_AGENT : LEASE_CLIENT;
	/* the release may not have arrived: send it again */
	p->leave = known && row->state == POD_ROW_RELEASING ? LEAVE_NOW : LEAVE_NOT;
	p->rental.key = p->rental.provider >= 0 && is_elsewhere(e, p->rental.provider, row)
				? KEY_OTHER
				: KEY_OURS;
	p->rental.released_at = past_boot(row->released_ms);
	/* whatever the clock shows now, the cost in the row stands */
	p->rental.create_at =
		MIN(past_boot(row->create_ms),
		    (row->released_ms ? p->rental.released_at : clock_boot_ms()) - row->billed_ms);
	/* to tell its agent to end it, whatever a list reports */
	COPY_TEXT(p->rental.view.host, row->host);
	p->rental.view.port = row->port;
	COPY_TEXT(p->rental.view.user, row->user);
	p->rental.rented_at = known ? past_boot(row->rented_ms ? row->rented_ms : row->create_ms)
				    : clock_boot_ms();
	p->presence.running_at = past_boot(row->running_ms);
	/* a listing reported that it runs, unless the create's reply did */
	p->rental.listing =
		known && row->running_ms > (row->rented_ms ? row->rented_ms : row->create_ms)
			? LISTING_SHOWS
			: LISTING_NEVER;
	p->presence.reached_at = past_boot(row->reached_ms);
	p->presence.connected_at = past_boot(row->connected_ms);
	p->presence.synced_at = past_boot(row->synced_ms);
	p->presence.ready_at = past_boot(row->ready_ms);
	p->rental.release_at = past_boot(row->release_ms);
	p->workload.compute_ms = row->compute_ms;
	p->workload.wasted_ms = row->wasted_ms;
	p->rental.reused = row->handed_from[0] != '\0';
	p->rental.cold_ms = row->cold_ms;
	COPY_TEXT(p->reason, row->error);
	if (e->setup->sweeps) {
		p->rental.listing = LISTING_SHOWS;
		p->rental.seen_at = clock_boot_ms();
	}
}
