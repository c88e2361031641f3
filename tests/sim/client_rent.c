/* client_rent.c - carries out a create, and checks that it was right to rent. */
#include "client.h"

int client_active_now(struct client *cl, int but)
{
	int active = 0;

	for (int i = 0; i < core_pod_count(cl->core); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		/* the run does not wait for a lost create at a vendor that could not list its
		 * pods for two minutes */
		bool lost = p->phase == POD_AMBIGUOUS &&
			    cl->core->now - p->rental.rented_at >= 120000 &&
			    cl->core->vendors[p->rental.provider].list_failures >= 5;
		active += i != but && pod_is_active(p) && !lost;
	}
	return active;
}

/* Shortest boot of a pod without faults at any vendor, whatever the core assumes. */
static int64_t least_cold_ms(const struct client *cl)
{
	int64_t least = INT64_MAX / 8;

	for (int i = 0; i < cl->job->conf.provider_count; i++)
		least = MIN(least, cl->sim->plan->vendors[i].boot_ms);
	return least + cl->sim->plan->load_ms;
}

/* Beside the pods that work there must be enough work, by its true time, to pay for another
 * boot. A pod that is being replaced counts only until its replacement works. */
static void check_it_pays(struct client *cl, int pod)
{
	const struct core *c = cl->core;
	int64_t cold = least_cold_ms(cl), busy_ms = cold;
	double left = 0;
	bool works = false;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (i == pod || p->phase != POD_WORKING || p->presence.link != LINK_UP ||
		    pod_is_draining(p))
			continue;
		works = true;
		busy_ms += MIN(p->outgoing ? cold : 2 * cold,
			       MAX(p->rental.hard_end_ms - 2 * budget_pod_margin(p) - c->now, 0));
	}
	for (size_t i = 0; i < c->seg_count; i++)
		left += seg_is_unrendered(c->segs[i].state)
				? client_slowest_ms(cl, cl->job->segments[i].weight)
				: 0;
	/* it died before its ledger knew a pod's boot time */
	bool guesses = !c->cold_ms && cl->ever_crashed;
	/* the first pace of a continuous engine misses the longer segments that are still in its
	 * places */
	double sure = cl->job->continuous ? 0.5 : 0.8;
	if (works && !guesses && pace_rate(c) > 0 &&
	    left / c->conf.workers < sure * (double)busy_ms)
		broke(cl->sim,
		      "a pod without the work that pays for it: %.0f ms are left, and %lld are "
		      "needed",
		      left / c->conf.workers, (long long)busy_ms);
	if (c->too_many > cl->job->conf.pods)
		broke(cl->sim, "%d pods were rented and released while they came up", c->too_many);
}

static void check_rent(struct client *cl, const struct core_pod *p, int pod)
{
	const struct row *row = client_row_of(cl, p->rental.attempt);

	if (core_is_stopping(cl->core))
		broke(cl->sim, "a create while stopping");
	if (p->rental.resends) /* its create was right when it was sent first */
		return;
	if (!row || row->pod.rental.hard_end_s != p->rental.hard_end_s)
		broke(cl->sim, "create without a row of its intent");
	for (size_t i = 0; i < cl->sim->create_count; i++)
		if (!strcmp(cl->sim->creates[i].attempt, p->rental.attempt))
			broke(cl->sim, "attempt %s is used twice", p->rental.attempt);
	if (cl->core->conf.canary && !cl->good_safe && cl->core->canary_ok)
		broke(cl->sim, "the canary counts as good before a good segment is safe");
	int active = client_active_now(cl, pod);
	if (active && !cl->core->canary_ok && !cl->job->conf.at_once)
		broke(cl->sim, "a second pod before the canary");
	int most = MAX(cl->job->conf.pods, cl->replans ? cl->job->conf.plan.pods_most : 0);
	if (!cl->core->conf.at_once)
		check_it_pays(cl, pod);
	if (active >= most)
		broke(cl->sim, "wider than pods = %d", most);
	if (cl->width_left && active - core_count_outgoing(cl->core) >= cl->width_left)
		broke(cl->sim, "it rents again what it gave back: %d pods were left",
		      cl->width_left);
	if (!cl->sim->plan->vendors[p->rental.provider].wire &&
	    cl->unfit[p->rental.provider][atoi(p->rental.offer.id)])
		broke(cl->sim, "a card that cannot run the job is rented again");
	if (cl->unpaid[p->rental.provider])
		broke(cl->sim, "a create at a provider whose account cannot pay");
	if (cl->job->conf.max_cost_microusd &&
	    budget_committed(cl->core) > cl->core->conf.max_cost_microusd)
		broke(cl->sim, "rented beyond the cap");
	if (p->rental.first_lease_end_s > p->rental.hard_end_s)
		broke(cl->sim, "the first lease is longer than the hard end");
	int64_t patience = cl->core->conf.boot_limit_ms,
		first_lease = p->rental.first_lease_end_s * 1000 - wall_now(cl) - p->rental.wait_ms;
	if (first_lease > patience + 30000)
		broke(cl->sim,
		      "the first lease is longer than boot_limit by more than half a minute");
	if (p->rental.first_lease_end_s < p->rental.hard_end_s && first_lease < patience + 1500)
		broke(cl->sim, "the first lease ends as the client gives the pod up");
}

void client_rent(struct client *cl, const struct action *a)
{
	const struct core_pod *p = core_pod_at(cl->core, a->pod);

	if (cl->unsaved[a->pod]) /* the intent could not be written: W_SAVE_FAILED reports it */
		return;
	check_rent(cl, p, a->pod);
	const struct fault *f = cl->job->conf.detached ? strikes(cl->sim, F_LEFT_AT_RENT) : NULL;
	if (f)
		client_left_alone(cl, f);
	GROW(cl->sim->creates, cl->sim->create_count, cl->sim->create_cap);
	struct create *c = &cl->sim->creates[cl->sim->create_count++];
	*c = (struct create){.client = cl->number,
			     .provider = p->rental.provider,
			     .offer = atoi(p->rental.offer.id),
			     .price = p->rental.offer.price_microusd_h,
			     .hard_end_s = p->rental.hard_end_s,
			     .first_lease_end_s = p->rental.first_lease_end_s,
			     .wait_ms = p->rental.wait_ms,
			     .run_ms = p->rental.run_ms / 1000 * 1000,
			     .first_lease_ms = core_first_lease_ms(&cl->job->conf),
			     .late_start_s = core_late_start_ms(&cl->job->conf) / 1000,
			     .clock_error = llabs(cl->laptop->wall_offset)};
	COPY_TEXT(c->attempt, p->rental.attempt);
	if (wire_rent(cl, a->pod))
		return;
	client_call(cl, a, W_CREATE, (int64_t)cl->sim->create_count - 1, -1, 0);
}
