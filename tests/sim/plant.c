/* plant.c - one defect for each invariant: in the client, the core, the pods or the vendor, active
 * when it is named. They show that the simulator finds the defect, and how small a schedule it
 * needs. */
#include "sim.h"

#include <stdlib.h>

enum plant planted;

const struct planted_defect planted_defects[PLANTS_COUNT] = {
#define X(name, says) {#name, says},
	PLANTS(X)
#undef X
};

void plant_conf(struct core_conf *conf)
{
	if (plant(PLANT_CAP_FORGOTTEN))
		conf->max_cost_microusd *= 100;
	if (plant(PLANT_DURATION_FORGOTTEN))
		conf->max_duration_ms = 0;
	if (plant(PLANT_WIDER))
		conf->pods++;
	if (plant(PLANT_DEADLINE_MOVED))
		conf->plan.deadline_ms /= 10;
	if (plant(PLANT_BIG_BATCHES))
		conf->max_batch += 2;
	if (plant(PLANT_SAME_NAMES))
		conf->seed = 7;
	if (plant(PLANT_BOOT_PATIENCE))
		conf->boot_limit_ms *= 20;
	if (plant(PLANT_PATIENT)) {
		conf->wait_ms *= 1000;
		conf->max_duration_ms = 0;
	}
}

/* The client does what it should not, or not what it should, about an action; true: it is not
 * carried out. */
static void unhear(struct core_pod *p, enum plant defect)
{
	if (plant(defect) && p->presence.link == LINK_UP)
		p->presence.link = LINK_NONE;
}

bool plant_act(struct client *cl, const struct action *a)
{
	struct core *c = cl->core;
	struct core_pod *p = a->pod >= 0 ? &c->pods[a->pod] : NULL;

	for (size_t i = 0; plant(PLANT_CARD_FORGOTTEN) && i < c->candidate_count; i++)
		c->candidates[i].past.unfit[0] = '\0';
	switch (a->type) {
	case ACT_END: return plant(PLANT_END_UNHEARD);
	case ACT_RENT:
		c->canary_ok = c->canary_ok && !plant(PLANT_CANARY_ALONE);
		c->signals += plant(PLANT_RENT_STOPPING);
		p->rental.price_microusd_h *= plant(PLANT_BEYOND_CAP) ? 100 : 1;
		p->rental.hard_end_ms += plant(PLANT_LONG_LIFE) && !c->conf.max_cost_microusd
						 ? 48 * (int64_t)HOUR_MS
						 : 0;
		p->rental.first_lease_end_s += plant(PLANT_LONG_FIRST_LEASE) ? 48 * 3600 : 0;
		if (plant(PLANT_LEASE_BEHIND_BOOT))
			p->rental.first_lease_end_s =
				MIN(p->rental.hard_end_s,
				    p->rental.first_lease_end_s + c->conf.lease_ms / 1000);
		p->rental.first_lease_end_s -= plant(PLANT_LEASE_OF_BOOT) ? 30 : 0;
		break;
	case ACT_SEND:
		c->canary_ok = c->canary_ok || plant(PLANT_CANARY_SKIPPED);
		unhear(p, PLANT_COMMAND_UNHEARD);
		if (plant(PLANT_SEND_DROPPED)) {
			dispatch_on_pod_lost(c, a->pod);
			return true;
		}
		break;
	case ACT_FETCH:
		unhear(p, PLANT_FETCH_UNHEARD);
		if (plant(PLANT_FETCH_UNHEARD) && p->presence.files == FILES_ON_VOLUME)
			p->presence.files = FILES_ON_POD;
		break;
	case ACT_FINISH: return plant(PLANT_FINISH_UNSAID);
	case ACT_SYNC: unhear(p, PLANT_SYNC_UNHEARD); break;
	case ACT_RELEASE:
		if (plant(PLANT_RELEASE_REFUSED) && c->began_at + 1000 < c->now) {
			p->phase = POD_WORKING;
			p->leave = LEAVE_NOT;
			return true;
		}
		if (plant(PLANT_RELEASE_NAMELESS))
			p->rental.id[0] = '\0';
		break;
	default: break;
	}
	return false;
}

static void replans_on(struct client *cl)
{
	struct core *c = cl->core;

	if (cl->replans_seen < c->replan.done)
		return;
	cl->replans_seen = c->replan.done = 1;
	for (size_t i = 0; i < c->candidate_count && c->pod_count; i++)
		c->candidates[i].offer.price_microusd_h =
			MAX(c->pods[c->pod_count - 1].rental.price_microusd_h / 2, 1);
}

void plant_stepped(struct client *cl)
{
	struct core *c = cl->core;

	if (plant(PLANT_TICKS) && c->wake_at != NEVER)
		c->wake_at = c->now;
	for (int i = 0; plant(PLANT_LAST_LOOK) && core_is_stopping(c) && !c->ended &&
			i < c->conf.provider_count;
	     i++) {
		c->vendors[i].listed_at = INT64_MIN / 2;
		c->vendors[i].list_failures = 0;
		c->vendors[i].used = true;
		c->vendors[i].listing_since = c->now;
	}
	for (int i = 0; plant(PLANT_LIST_FORGOTTEN) && i < c->conf.provider_count; i++)
		c->vendors[i].used = false;
	for (size_t i = 0; plant(PLANT_DELIVERED_FAILED) && i < c->seg_count; i++)
		if (c->segs[i].state == SEG_LOCAL && !c->segs[i].cached) {
			c->segs[i].state = SEG_FAILED;
			c->local--;
			c->failed++;
		}
	for (int i = 0; plant(PLANT_SWEEP_TRUSTS) && is_reaper(cl) && i < c->pod_count; i++)
		if (c->pods[i].phase == POD_CONFIRMING) /* takes an accepted release as proof */
			pod_set_gone(c, &c->pods[i]);
	for (int i = 0; plant(PLANT_DENIAL_TRUSTED) && i < c->pod_count; i++)
		c->pods[i].rental.answer =
			c->pods[i].rental.answer == ANSWER_DENIED
				? ANSWER_DENIED_REPEAT
				: c->pods[i].rental.answer; /* takes two lists 5 s apart as proof */
	for (int i = 0; plant(PLANT_COUNT_STOPS) && i < c->pod_count; i++)
		c->pods[i].rental.outlived_at = 0; /* an accepted release ends what it costs */
	if (plant(PLANT_WAIT_COUNTED) && c->free_since)
		c->free_since = c->now;
	for (int i = 0; plant(PLANT_WAIT_BILLED) && i < c->pod_count; i++)
		if (pod_is_unstarted(&c->pods[i]))
			c->pods[i].rental.start_at = c->pods[i].rental.create_at;
	for (int i = 0; plant(PLANT_WAITS_ON) && i < c->pod_count; i++)
		if (pod_is_unstarted(&c->pods[i]))
			c->pods[i].overdue_at = NEVER / 2;
	c->cold_ms = plant(PLANT_BOOTS_FREE) ? 1 : c->cold_ms;
	c->too_many += plant(PLANT_WIDTH_WAVERS);
	for (int i = 0; plant(PLANT_HANDOVER_UNHEARD) && i < c->pod_count; i++)
		c->pods[i].presence.lease += c->pods[i].presence.lease == LEASE_AGENT_SENT;
	c->todo += plant(PLANT_MISCOUNT) && c->local > 1;
	c->replan.not_before *= !plant(PLANT_REPLANS_SOON);
	if (plant(PLANT_REPLANS_ON) && c->replan.done) /* all prices halve, each time */
		replans_on(cl);
	if (plant(PLANT_GIVES_AND_TAKES) && c->replan.done)
		c->conf.pods = MAX(c->conf.pods, c->conf.plan.pods_most);
	for (int i = 0; plant(PLANT_DRAINS_EARLY) && i < c->pod_count; i++)
		if (c->pods[i].outgoing && c->pods[i].leave == LEAVE_NOT)
			c->pods[i].leave = LEAVE_DRAINING;
	for (int i = 0; plant(PLANT_UNPAID_ASKED) && i < c->conf.provider_count; i++)
		c->vendors[i].dead = c->vendors[i].dead && c->vendors[i].err.kind != ERR_BALANCE;
	for (int i = 0; plant(PLANT_UNPAID_WAITS) && i < c->conf.provider_count; i++)
		if (c->vendors[i].err.kind == ERR_BALANCE) {
			c->vendors[i].dead = false;
			c->vendors[i].rent_not_before = c->now + 60000;
		}
	for (int i = 0; plant(PLANT_HALT_FORGOTTEN) && i < c->pod_count; i++)
		c->pods[i].workload.halting = false;
	for (int i = 0; plant(PLANT_WASTED_TWICE) && i < c->pod_count; i++)
		c->pods[i].workload.wasted_ms *= 2;
	for (size_t i = 0; plant(PLANT_SAVED_WASTED) && i < c->batch_count; i++)
		c->batches[i].saved_t = 0;
	c->spent_microusd -= plant(PLANT_SPENT_LESS) && c->spent_microusd > 1000;
	if (plant(PLANT_BATCH_LOST) && c->batch_count > 3)
		c->batches[c->batch_count - 1].over = true;
	for (int i = 0; plant(PLANT_MISCOUNT_POD) && i < c->pod_count; i++)
		c->pods[i].workload.unfetched += c->pods[i].workload.unfetched > 0;
}

/* What the client reports at its end. */
void plant_exit(struct client *cl, struct core_summary *sum)
{
	int *status = &cl->exit_status;
	bool doubt = *status == 9;

	if ((plant(PLANT_EXIT_0) && !doubt) || (plant(PLANT_EXIT_9_HIDDEN) && doubt))
		*status = 0;
	if (plant(PLANT_EXIT_1) && *status == 0)
		*status = 1;
	if (plant(PLANT_EXIT_SIGNAL_1) && *status > 128)
		*status = 1;
	if (plant(PLANT_EXIT_9))
		*status = 9;
	if (plant(PLANT_EXIT_5) && *status == 1)
		*status = 5;
	if (plant(PLANT_EXIT_4_UNPAID) && sum->err.kind == ERR_BALANCE)
		*status = 4;
	if (plant(PLANT_EXIT_3) && *status == 6)
		*status = 3;
	if (plant(PLANT_EXIT_130) && *status == 1)
		*status = 130;
	if (plant(PLANT_EXIT_WORDLESS))
		sum->err.msg[0] = '\0';
	if (plant(PLANT_FEWER_REPORTED) && sum->local)
		sum->local--;
	for (int i = 0; plant(PLANT_COMPUTE_MORE) && i < cl->core->pod_count; i++)
		cl->core->pods[i].workload.compute_ms *= 1000;
}

static void again_soon(struct client *cl, const struct happening *h, int64_t delay)
{
	struct happening *again = client_later(cl, delay, h->what);

	again->provider = h->provider;
	again->pod = h->pod;
	again->segment = h->segment;
	again->x = h->x;
	again->kind = ERR_TRANSIENT;
}

/* Listings and create replies of real translators. */
void plant_views(struct pod_view *views, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (plant(PLANT_QUEUE_UNSEEN) && views[i].state == POD_STATE_QUEUED)
			views[i].state = POD_STATE_CREATING;
		if (plant(PLANT_QUEUE_FREE) && views[i].state == POD_STATE_GONE)
			views[i].end = POD_END_QUEUED;
	}
}

/* The client gets something other than what was sent. */
void plant_heard(struct client *cl, struct happening *h)
{
	struct pod_view *views = h->data;

	if (h->what == W_LISTED && plant(PLANT_LISTED_STORM))
		again_soon(cl, h, 0);
	if (h->what == W_OFFERS && plant(PLANT_OFFERS_STORM))
		again_soon(cl, h, 1);
	for (size_t i = 0; h->what == W_LISTED && i < h->count; i++) {
		if (plant(PLANT_ALL_OURS))
			COPY_TEXT(views[i].marker.run, cl->job->conf.run);
		if (plant(PLANT_PRICE_UNSEEN))
			views[i].price_microusd_h = 0;
	}
	if (h->what == W_KEPT && plant(PLANT_KEEP_TWICE))
		again_soon(cl, h, 1);
}
