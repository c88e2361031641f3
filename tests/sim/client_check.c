/* client_check.c - steps the core, and checks after each step and at the end what it must
 * guarantee. */
#include "base/clock.h"
#include "client.h"
#include "command.h"

#include <time.h>

/* ---- stepping, and what must hold after each step ---- */

static void check_step(struct client *cl);

static void check_replans(struct client *cl);

static void count_events(struct client *cl)
{
	if (cl->sim->now / 1000 != cl->busy_second)
		cl->busy_events = 0;
	cl->busy_second = cl->sim->now / 1000;
	if (++cl->busy_events > 3000 && !cl->sim->measuring)
		broke(cl->sim, "more than 3000 events in one second");
	if (++cl->sim->events > 100000 * cl->sim->plan->client_count && !cl->sim->measuring)
		broke(cl->sim, "100000 events and no end");
}

/* What it hears of creates and lists. */
static void note_heard(struct client *cl, const struct event *ev)
{
	bool lost = ev->type == EV_RENT_FAILED && ev->err->kind == ERR_AMBIGUOUS;

	if (ev->type == EV_RENT_FAILED && ev->err->kind == ERR_BALANCE)
		cl->unpaid[cl->core->pods[ev->pod].rental.provider] = true;
	if (ev->type == EV_RENTED || lost)
		cl->made_at[ev->provider] = ev->now_ms;
	if (ev->type != EV_LISTED || ev->err)
		return;
	for (size_t i = 0; i < ev->count; i++)
		for (size_t k = 0; k < cl->sim->machine_count; k++) {
			struct machine *m = &cl->sim->machines[k];
			if (ev->views[i].state != POD_STATE_RUNNING || m->vendor != ev->provider ||
			    strcmp(m->id, ev->views[i].id) != 0)
				continue;
			if (m->client == cl->number && m->shown_in != cl->life)
				m->shown_at = 0;
			if (m->client == cl->number) {
				m->shown_in = cl->life;
				m->shown_at = MAX(m->shown_at, ev->requested_at);
			}
		}
	cl->list_refused[ev->provider] = ev->partial;
	if (!ev->partial)
		cl->listed_at[ev->provider] = ev->requested_at;
}

/* While its vendor shows it running, it counts as billed, whatever was accepted. */
static void check_counted(struct client *cl)
{
	for (int i = 0; i < core_pod_count(cl->core) && !is_reaper(cl); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		const struct machine *m =
			pod_is_released(p) && p->rental.id[0] ? client_machine_of(cl, i) : NULL;
		if (!m || m->client != cl->number || m->shown_in != cl->life ||
		    p->rental.answer != ANSWER_ACCEPTED || p->rental.exit == EXIT_TAKEN)
			continue;
		int64_t until = pod_bills_from(p) + core_billed_ms(p, boot_now(cl));
		if (until < m->shown_at)
			broke(cl->sim, "pod %s runs at %lld and counts as billed until %lld",
			      p->rental.id, (long long)m->shown_at, (long long)until);
	}
}

/* A pod is drained so long before its end. */
enum { DRAINED_MS = 45000 };

/* While pods wait, a list tells so at least this often, unless lists fail. */
enum { TOLD_MS = 30000 };

/* No create, listing or release went wrong, and the client was there all the time. */
static bool all_was_well(const struct client *cl)
{
	static const enum fault_kind kinds[] = {
		F_CREATE_LOST_MADE, F_CREATE_LOST_NOTHING, F_CREATE_TWICE,    F_SURFACES_LATE,
		F_RELEASE_FAILS,    F_RELEASE_LOST,        F_RELEASE_LINGERS, F_RELEASE_IGNORED,
		F_RELEASE_NEVER,    F_POD_LOCKED,          F_RELEASE_UNKNOWN, F_RELEASE_DENIED,
		F_RELEASE_OUTLIVED};
	const struct sim *s = cl->sim;
	bool well = cl->core->signals < 2 && !cl->ever_crashed && cl->laptop->woke_at < 0 &&
		    !s->refused;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		well = well && !s->hit[kinds[i]];
	for (int v = 0; v < VENDORS_MAX; v++)
		well = well && s->unlisted_at[v] < 0;
	for (int v = 0; v < s->plan->vendors_made; v++) /* whatever was ambiguous stays so */
		well = well && (s->plan->vendors[v].wire != WIRE_MODAL ||
				s->plan->vendors[v].lists != LISTS_NONE);
	return well;
}

/* Where waiting is free, a pod is billed from its start as its vendor knows it, in whole seconds.
 */
static void check_free(struct client *cl)
{
	int64_t wait = cl->job->conf.max_duration_ms;

	cloud_note_waits(cl);
	for (int v = 0; v < cl->job->conf.provider_count; v++)
		cl->told_at = MAX(cl->told_at, cl->listed_at[v]);
	if (cl->free_since < 0)
		cl->told_at = cl->sim->now;
	cl->untold |= !all_was_well(cl) || cl->sim->now - cl->told_at > TOLD_MS;
	for (size_t i = 0; i < cl->sim->machine_count; i++) { /* it takes a while to notice that */
		const struct machine *m = &cl->sim->machines[i];
		cl->untold |= m->client == cl->number && m->is_over &&
			      (m->release_requested < 0 || m->ended < m->release_requested);
	}
	for (int i = 0; i < core_pod_count(cl->core) && !is_reaper(cl); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		const struct machine *m = p->rental.run_ms && p->rental.id[0] && pod_may_bill(p)
						  ? client_machine_of(cl, i)
						  : NULL;
		if (!m)
			continue;
		int64_t billed = core_billed_ms(p, boot_now(cl));
		if (billed && cloud_waits(cl->sim, m))
			broke(cl->sim, "pod %s is billed, and it waits", p->rental.id);
		else if (billed &&
			 billed > cl->sim->now - m->starts_at + 2000 + 2 * cl->laptop->wall_error)
			broke(cl->sim, "pod %s counts as billed for %lld ms", p->rental.id,
			      (long long)billed);
	}
	if (wait && !cl->untold && strstr(cl->core->fault.msg, "max_duration") &&
	    cl->sim->now - cl->began_at - cl->free_ms + DRAINED_MS + cl->core->cold_ms < wait)
		broke(cl->sim,
		      "caps.max_duration was reached after %lld ms, and its pods have waited for "
		      "%lld of them",
		      (long long)(cl->sim->now - cl->began_at), (long long)cl->free_ms);
}

void client_step(struct client *cl, struct event *ev)
{
	struct timespec a, b;

	if (!cl->up || cl->bills_open)
		return;
	ev->now_ms = boot_now(cl);
	ev->wall_ms = wall_now(cl);
	cl->out.count = 0;
	note_heard(cl, ev);
	if (cl->sim->measuring)
		clock_gettime(CLOCK_MONOTONIC, &a);
	core_step(cl->core, ev, &cl->out);
	if (cl->sim->measuring) {
		clock_gettime(CLOCK_MONOTONIC, &b);
		cl->sim->core_s +=
			(double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
	}
	count_events(cl);
	plant_stepped(cl);
	const char *untrue = cl->sim->measuring ? NULL : core_check(cl->core);
	if (untrue && !cl->sim->broken[0]) {
		broke(cl->sim, "%s", untrue);
		cl->sim->how = untrue;
	}
	check_replans(cl);
	check_counted(cl);
	if (cl->sim->plan->seed & SEED_QUEUE)
		check_free(cl);
	if (by_pod)
		digest_by_pod(&cl->out);
	digest_actions(cl);
	client_perform(cl);
	wire_prioritize(cl);
	if (cl->up && !cl->sim->measuring)
		check_step(cl);
}

double client_ms_of(const struct client *cl, int vendor, int offer, double weight)
{
	int slow = cl->sim->plan->vendors[vendor].slow[offer];

	return weight * (double)cl->sim->plan->ms_per_weight * (slow ? slow : 100) / 100;
}

double client_slowest_ms(const struct client *cl, double weight)
{
	double most = 0;

	for (int v = 0; v < cl->job->conf.provider_count; v++)
		for (int i = 0; i < cl->sim->plan->vendors[v].offer_count; i++)
			most = MAX(most, client_ms_of(cl, v, i, weight));
	return most;
}

/* ---- plans that change ---- */

/* The run must not stop if its pods would have been done in half of the time that was left. */
static void check_stop(struct client *cl)
{
	const struct core *c = cl->core;
	int64_t left = c->began_at + cl->job->conf.plan.deadline_ms - c->now;
	double rate = 0, work = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (p->phase == POD_WORKING && p->presence.link == LINK_UP && !pod_is_leaving(p) &&
		    p->rental.hard_end_ms > c->now + left)
			rate += p->workload.workers_ready /
				client_ms_of(cl, p->rental.provider, atoi(p->rental.offer.id), 1);
	}
	for (size_t i = 0; i < c->seg_count; i++)
		work += seg_is_unrendered(c->segs[i].state) ? cl->job->segments[i].weight : 0;
	if (!cl->sim->wire && strstr(c->replan.stop.msg, "deadline") && left > 0 && rate > 0 &&
	    work / rate < (double)left / 2)
		broke(cl->sim,
		      "it stops, and its pods would keep the deadline: %.0f ms are left, and %lld "
		      "to the deadline",
		      work / rate, (long long)left);
}

static void tally_replan(struct client *cl, const char *said)
{
	static const char *const words[] = {"more pod", "releasing", "continuing with", "stopping"};

	trace(cl->sim, "client %c: plans again: %s", client_name_of(cl), said);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		cl->sim->replans[i] += strstr(said, words[i]) != NULL;
}

static void check_replans(struct client *cl)
{
	struct core *c = cl->core;

	if (c->replan.stop.kind && !cl->stop_seen)
		check_stop(cl);
	cl->stop_seen = c->replan.stop.kind;
	for (; cl->replans_seen < c->replan.done; cl->replans_seen++) {
		const char *said = core_replan_text(c, cl->replans_seen);
		tally_replan(cl, said);
		if (++cl->replans > 2)
			broke(cl->sim, "planned again %d times, and twice is the most",
			      cl->replans);
		if (cl->replanned_at && c->now - cl->replanned_at < 60000)
			broke(cl->sim,
			      "planned again before the last plan has shown what it is good for");
		cl->replanned_at = c->now;
		cl->width_left = strstr(said, "releasing") ? client_active_now(cl, -1) : 0;
	}
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (p->outgoing && p->leave == LEAVE_DRAINING &&
		    c->now < p->rental.hard_end_ms - 2 * budget_pod_margin(p))
			broke(cl->sim, "pod %s is drained before another one has taken its place",
			      p->rental.id);
	}
}

static void check_delivered(struct client *cl)
{
	const struct core *c = cl->core;

	for (size_t i = 0; i < c->seg_count; i++) {
		if (c->segs[i].state == SEG_FAILED && cl->local[i])
			broke(cl->sim, "segment %zu is delivered and called failed", i);
		if (c->segs[i].state == SEG_LOCAL && !cl->local[i])
			broke(cl->sim, "segment %zu is called safe and is not", i);
	}
}

/* Of caps.max_duration, when this life began. */
static int64_t duration_left(const struct client *cl)
{
	return MAX(cl->job->conf.max_duration_ms -
			   (cl->core->began_at - cl->laptop->boot_offset - cl->began_at),
		   1);
}

static void check_pod(struct client *cl, int pod)
{
	const struct core *c = cl->core;
	const struct core_pod *p = &c->pods[pod];
	bool bare = p->workload.batches == 0 && !pod_owes(p);
	bool canary_waits =
		!c->canary_ok && c->canary_sent && !core_is_stopping(c) && !c->conf.at_once;
	bool offered =
		p->offered_until && c->now <= MAX(p->offered_until, client_woke_at(cl)) + 1000;

	bool goes = pod_is_leaving(p) && pod_lives(p);
	if (goes && c->now > MAX(MAX(p->fetch_until, p->inspect_until), client_woke_at(cl)) + 2000)
		broke(cl->sim, "pod %d is let go for %lld ms, and is not released", pod,
		      (long long)(c->now - p->fetch_until));
	/* it was handed over, and the core hears of it next */
	bool unheard = p->presence.past == PAST_UNREAD && p->rental.reused &&
		       p->phase == POD_BOOTING && p->overdue_at == NEVER &&
		       p->presence.lease == LEASE_CLIENT;
	if (pod_is_retired(p) || pod_is_leaving(p) || unheard)
		return;
	/* by a list, after a lost reply */
	int64_t found_at = MAX(pod_boots_from(p, c->now) + 2 * cl->job->conf.boot_limit_ms,
			       p->rental.rented_at);
	found_at = MAX(found_at, client_woke_at(cl) + WOKEN_BOOT_MS);
	if (!p->presence.boot_limit_ms) /* of an earlier life */
		found_at = MAX(found_at, c->began_at + cl->job->conf.boot_limit_ms);
	if ((p->phase == POD_BOOTING || p->phase == POD_CONNECTING) && !p->presence.connected_at &&
	    p->presence.lease == LEASE_CLIENT && c->now > found_at + LOG_WAIT_MS)
		broke(cl->sim, "pod %d is not up after %lld s and is waited for", pod,
		      (long long)(c->now - p->rental.create_at) / 1000);
	if (pod_is_unstarted(p) && p->phase == POD_BOOTING && p->presence.lease == LEASE_CLIENT &&
	    c->now > MAX(p->rental.create_at + p->rental.wait_ms,
			 MAX(client_woke_at(cl),
			     MAX(c->began_at, p->rental.rented_at) + cl->job->conf.boot_limit_ms)) +
			     WOKEN_BOOT_MS)
		broke(cl->sim, "pod %d is waited for in its queue for %lld ms", pod,
		      (long long)(c->now - p->rental.create_at));
	if (bare && !c->todo && c->started && !offered)
		broke(cl->sim, "pod %d (%s) has nothing to do and is kept", pod,
		      pod_phase_name(p->phase));
	if (p->phase == POD_WORKING && p->presence.link == LINK_UP && bare && !pod_is_draining(p) &&
	    !core_is_stopping(c) && !canary_waits && !core_is_reading_past_logs(c) && !offered)
		broke(cl->sim, "pod %d starves beside %zu open segments", pod, c->todo);
	/* core_adopt() knows no 0; its own end was noted by a clock that may have been set back
	 * since */
	if (p->rental.hard_end_ms > p->rental.create_at + p->rental.wait_ms +
					    24 * (int64_t)HOUR_MS + 1 + 2 * cl->laptop->wall_error)
		broke(cl->sim, "pod %d may live for more than a day", pod);
	/* one that waits is cut to it when it starts */
	int64_t end = pod_is_unstarted(p) ? 0 : p->rental.hard_end_ms;
	if (cl->job->conf.max_duration_ms && !c->conf.reap &&
	    end > (cl->sim->plan->seed & SEED_QUEUE ? budget_ends_at(c) + 1
						    : c->began_at + duration_left(cl)))
		broke(cl->sim, "pod %d may outlive caps.max_duration", pod);
}

static bool all_unpaid(const struct client *cl)
{
	for (int i = 0; i < cl->job->conf.provider_count; i++)
		if (!cl->unpaid[i])
			return false;
	return true;
}

static void check_step(struct client *cl)
{
	const struct core *c = cl->core;

	if (c->ended)
		return;
	client_check_handover(cl);
	check_delivered(cl);
	for (int i = 0; i < c->pod_count; i++)
		check_pod(cl, i);
	bool settled = segments_settled(c) || core_is_stopping(c);
	bool should_end = !settled && c->todo && !client_active_now(cl, -1) && all_unpaid(cl);
	if (!should_end || !cl->should_end)
		cl->unpaid_since = c->now;
	cl->should_end = should_end;
	if (c->now - MAX(cl->unpaid_since, client_woke_at(cl)) > 5000)
		broke(cl->sim, "it waits, and no account can pay");
	if (!settled)
		cl->settled_at = -1;
	else if (cl->settled_at < 0)
		cl->settled_at = cl->sim->now;
	if (cl->settled_at >= 0 &&
	    cl->sim->now - MAX(cl->settled_at, cl->laptop->woke_at) > 15 * 60000)
		broke(cl->sim, "the work is over since %lld s and the run does not end",
		      (long long)(cl->sim->now - cl->settled_at) / 1000);
}

/* ---- the end ---- */

static bool in_doubt(const struct core_pod *p, const struct machine *m)
{
	return pod_may_bill(p) && (p->rental.id[0] ? !strcmp(p->rental.id, m->id)
						   : !strcmp(p->rental.attempt, m->attempt));
}

/* Of two pods of one create, the one found first has the attempt's row, the other one a row of its
 * own. */
static bool is_known(struct client *cl, const struct machine *m)
{
	const struct row *row = client_row_of(cl, m->attempt);

	for (size_t i = 0; i < cl->laptop->row_count; i++)
		if (!strcmp(cl->laptop->rows[i].pod.rental.id, m->id) &&
		    in_doubt(&cl->laptop->rows[i].pod, m))
			return true;
	bool second = row && row->pod.rental.id[0] && strcmp(row->pod.rental.id, m->id) != 0 &&
		      cl->sim->hit[F_CREATE_TWICE];

	return second || (row && in_doubt(&row->pod, m));
}

void client_check_known(struct client *cl)
{
	for (size_t i = 0; i < cl->sim->machine_count; i++) {
		const struct machine *m = &cl->sim->machines[i];
		if (m->client != cl->number || m->is_over || m->duplicate || m->unsaved)
			continue;
		if (!is_known(cl, m))
			broke(cl->sim, "pod %s lives, and the ledger does not know it", m->id);
	}
}

/* No list since the reply to a create was lost, so a second pod of it may exist. */
static bool twin_unlisted(const struct client *cl)
{
	for (int i = 0; i < cl->job->conf.provider_count; i++) {
		const struct vendor *v = &cl->core->vendors[i];
		if (v->used && v->surfaced_at >= 0 && v->listed_at < v->surfaced_at)
			return true;
	}
	return false;
}

/* It does not know of all pods that its creates may have made. */
static bool create_unlisted(const struct client *cl)
{
	for (int i = 0; i < cl->job->conf.provider_count; i++)
		if (cl->made_at[i] >= 0 && cl->listed_at[i] <= cl->made_at[i] &&
		    !cl->list_refused[i])
			return true;
	return false;
}

/* A client of it died, or was in doubt, and this one could not list what may have been left. */
static bool past_unlisted(const struct client *cl)
{
	for (int i = 0; i < cl->job->conf.provider_count; i++)
		if (cl->core->conf.providers[i].used_lately && cl->listed_at[i] < 0 &&
		    !cl->list_refused[i])
			return true;
	return false;
}

static bool any_unpaid(const struct client *cl)
{
	for (int i = 0; i < cl->job->conf.provider_count; i++)
		if (cl->unpaid[i])
			return true;
	return false;
}

static void check_exit(struct client *cl, const struct core_summary *sum)
{
	bool all_local = true, all_gone = true, open = false;
	size_t local = 0;

	for (size_t i = 0; i < cl->job->count; i++)
		local += cl->local[i];
	all_local = local == cl->job->count;
	if (!cl->reaping && sum->local != local)
		broke(cl->sim, "%zu segments are delivered, and %zu are reported", local,
		      sum->local);
	for (size_t i = 0; i < cl->sim->machine_count; i++)
		all_gone = all_gone && (cl->sim->machines[i].is_over ||
					cl->sim->machines[i].client != cl->number);
	for (int i = 0; i < core_pod_count(cl->core); i++)
		open = open || pod_may_bill(core_pod_at(cl->core, i));
	if (cl->exit_status != 9 && !all_gone)
		broke(cl->sim, "exit %d, and a pod still lives", cl->exit_status);
	bool unlisted = create_unlisted(cl) || past_unlisted(cl);
	if (cl->exit_status != 9 && unlisted)
		broke(cl->sim, "exit %d, and its pods were not listed since its last create",
		      cl->exit_status);
	if (cl->exit_status == 9 && !open && !unlisted && !twin_unlisted(cl))
		broke(cl->sim, "exit 9, and no pod is in doubt");
	if (cl->exit_status == 9 && all_gone && all_was_well(cl))
		broke(cl->sim, "exit 9, and nothing kept it from seeing that all pods are gone");
	if (cl->exit_status != 9 && open)
		broke(cl->sim, "exit %d, and a pod is in doubt", cl->exit_status);
	if (cl->exit_status == 0 && !all_local && !cl->reaping)
		broke(cl->sim, "exit 0, and a segment is missing");
	if (cl->core->signals && cl->exit_status != 9 && cl->exit_status != 130 &&
	    cl->exit_status != 143)
		broke(cl->sim, "exit %d after a signal", cl->exit_status);
	if (!cl->core->signals && all_local && !cl->core->canary_bad_all && cl->exit_status != 0 &&
	    cl->exit_status != 9)
		broke(cl->sim, "exit %d, and all went well: %s", cl->exit_status, sum->err.msg);
	if (cl->exit_status == 5 && !cl->job->conf.max_cost_microusd &&
	    !cl->job->conf.max_duration_ms && !cl->core->replan.stop.kind)
		broke(cl->sim, "exit 5, and nothing was capped");
	if (cl->exit_status == 3 && !cl->sim->hit[F_CREATE_CREDENTIALS] && !any_unpaid(cl))
		broke(cl->sim, "exit 3, and no credentials were refused");
	if (cl->exit_status == 4 && any_unpaid(cl) && !strstr(sum->err.msg, "in a row"))
		broke(cl->sim, "exit 4, and an account cannot pay: %s", sum->err.msg);
	if (cl->exit_status > 128 && !cl->core->signals)
		broke(cl->sim, "exit %d, and there was no signal", cl->exit_status);
	if (cl->exit_status != 0 && !sum->err.msg[0])
		broke(cl->sim, "exit %d without a word", cl->exit_status);
}

/* What `burst reap` reports and writes about the pods that it ended. */
static void sweep_ends(struct client *cl)
{
	for (int i = 0; i < core_pod_count(cl->core); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		const struct machine *m = client_machine_of(cl, i);
		if (p->phase == POD_GONE && m && !m->is_over)
			broke(cl->sim, "reap calls pod %s gone, and it still lives", p->rental.id);
		if (p->phase == POD_GONE)
			cl->sim->swept++;
	}
	reaper_ends(cl);
}

/* What its vendors' meters say. The larger of that and our count is what its pods cost. */
static void vendors_say(struct client *cl)
{
	int64_t least = 0, spent = budget_spent(cl->core);
	struct core_summary before, sum;

	core_summary(cl->core, boot_now(cl), &before);
	for (int i = 0; i < core_pod_count(cl->core); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		const struct machine *m =
			p->phase == POD_GONE && p->rental.id[0] && p->rental.exit != EXIT_TAKEN
				? client_machine_of(cl, i)
				: NULL;
		int64_t bill =
			m && m->is_over && !m->queued && !cloud_waits(cl->sim, m)
				? money_for(m->price, m->ended - cloud_bills_from(cl->sim, m))
				: 0;
		core_set_vendor_cost(cl->core, i, bill);
		least += MAX(bill, core_counted(p, boot_now(cl)));
	}
	core_summary(cl->core, boot_now(cl), &sum);
	if (plant(PLANT_BILL_UNHEARD))
		sum.cost_microusd = sum.counted_microusd;
	if (sum.cost_microusd != least || sum.counted_microusd != before.counted_microusd)
		broke(cl->sim, "its pods cost %lld by the larger of both figures, and it says %lld",
		      (long long)least, (long long)sum.cost_microusd);
	if (budget_spent(cl->core) - spent != sum.cost_microusd - before.cost_microusd)
		broke(cl->sim, "the vendors' figures add %lld, and %lld counts toward max_cost",
		      (long long)(sum.cost_microusd - before.cost_microusd),
		      (long long)(budget_spent(cl->core) - spent));
}

void client_end(struct client *cl)
{
	struct core_summary sum;

	if (is_reaper(cl)) {
		sweep_ends(cl);
		return;
	}
	core_summary(cl->core, boot_now(cl), &sum);
	cl->exit_status = err_exit_status(&sum.err);
	cl->ever_left = cl->ever_left || cl->core->signals > 2;
	plant_exit(cl, &sum);
	trace(cl->sim, "client %c: ends: %s, exit %d (%s)", client_name_of(cl),
	      run_status_word(sum.status), cl->exit_status, sum.err.msg);
	for (int i = 0; i < core_pod_count(cl->core); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		/* an earlier life wrote it down by that clock */
		int64_t off = 2 * cl->laptop->wall_error;
		const struct machine *m =
			p->rental.place == PLACE_NEVER ? client_machine_of(cl, i) : NULL;
		if (m && !m->queued && !cloud_waits(cl->sim, m))
			broke(cl->sim, "pod %s is not billed, and it was placed", p->rental.id);
		if (p->workload.compute_ms > core_billed_ms(p, boot_now(cl)) + off)
			broke(cl->sim, "pod %s: computed %lld ms, billed %lld", p->rental.id,
			      (long long)p->workload.compute_ms,
			      (long long)core_billed_ms(p, boot_now(cl)));
	}
	check_exit(cl, &sum);
	command_check_end(cl);
	if (!cl->sim->wire)
		vendors_say(cl);
	if (cl->sim->wire)
		wire_bill(cl);
	if (cl->bills_open)
		client_later(cl, BILLING_MS, W_BILLED);
	else
		client_dies(cl);
}

/* The bills are there, or the client stops waiting for them. */
void client_leaves(struct client *cl)
{
	if (cl->up)
		client_dies(cl);
}
