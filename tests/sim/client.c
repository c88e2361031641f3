/* client.c - burst itself as the core sees it: carries actions, tells what came of them, keeps the
 * ledger, dies and comes back; and after each step holds the core to what it must guarantee. */
#include "wire.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

int64_t boot_now(const struct client *cl)
{
	return cl->sim->now + cl->laptop->boot_offset;
}

int64_t wall_now(const struct client *cl)
{
	return WALL_EPOCH_MS + cl->sim->now + cl->laptop->wall_offset;
}

/* By its boot clock; long ago: it never slept. */
static int64_t woke_at(const struct client *cl)
{
	return cl->laptop->woke_at < 0 ? INT64_MIN / 2
				       : cl->laptop->woke_at + cl->laptop->boot_offset;
}

struct happening *client_later(struct client *cl, int64_t delay, enum what what)
{
	struct happening *h = later(cl->sim, delay, what);

	h->client = cl->number;
	h->life = cl->life;
	return h;
}

enum { BILLING_MS = 3000 }; /* as engine.c has it */

static char name_of(const struct client *cl)
{
	return (char)('A' + cl->number);
}

static struct machine *machine_of(struct client *cl, int pod)
{
	struct machine *m = cloud_machine(cl->sim, core_pod_at(cl->core, pod)->id);

	if (m && m->client != cl->number)
		broke(cl->sim, "pod %s of another run is taken for its own", m->id);
	return m;
}

static int pod_of(struct client *cl, int machine)
{
	for (int i = 0; i < core_pod_count(cl->core); i++)
		if (machine_of(cl, i) == &cl->sim->machines[machine])
			return i;
	return -1;
}

static size_t *seen_of(struct client *cl, int machine)
{
	while ((size_t)machine >= cl->seen_cap) {
		cl->seen = xrealloc(cl->seen, 2 * cl->seen_cap * sizeof(*cl->seen));
		memset(cl->seen + cl->seen_cap, 0, cl->seen_cap * sizeof(*cl->seen));
		cl->seen_cap *= 2;
	}
	return &cl->seen[machine];
}

/* ---- the ledger ---- */

static struct row *row_of(struct client *cl, const char *attempt)
{
	for (size_t i = 0; i < cl->laptop->row_count; i++)
		if (!strcmp(cl->laptop->rows[i].pod.attempt, attempt) || plant(PLANT_ROW_SHARED))
			return &cl->laptop->rows[i];
	return NULL;
}

static bool ours(const struct client *cl, const struct row *row)
{
	return row->client == cl->number;
}

static bool save(struct client *cl, int pod)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	struct row *row = row_of(cl, p->attempt);
	struct machine *m = p->id[0] ? machine_of(cl, pod) : NULL;

	if (m && m->known_at < 0)
		m->known_at = cl->sim->now;
	bool full = strikes(cl->sim, F_LEDGER_FULL);
	if (m)
		m->unsaved = full;
	if (full) {
		struct happening *h = client_later(cl, 1, W_SAVE_FAILED);
		h->pod = p->phase == POD_RENTING && !p->id[0] ? pod : -1;
		if (h->pod >= 0)
			cl->unsaved[pod] = true;
		return false;
	}
	if (plant(PLANT_INTENT_UNSAVED) && !p->id[0])
		return true;
	if (row && row->pod.id[0] && strcmp(row->pod.id, p->id) != 0)
		broke(cl->sim, "the row of pod %s is written over with pod %s", row->pod.id, p->id);
	if (!row) {
		GROW(cl->laptop->rows, cl->laptop->row_count, cl->laptop->row_cap);
		row = &cl->laptop->rows[cl->laptop->row_count++];
	}
	row->client = cl->number;
	row->pod = *p;
	if (plant(PLANT_ROW_GONE) && p->phase == POD_RELEASING)
		row->pod.phase = POD_GONE;
	row->pod.detached = p->detached && !plant(PLANT_HANDOVER_UNSAVED);
	row->wall_minus_boot = wall_now(cl) - boot_now(cl);
	row->billed_ms = core_billed_ms(p, boot_now(cl));
	row->seen = p->id[0] ? *seen_of(cl, (int)(machine_of(cl, pod) - cl->sim->machines)) : 0;
	return true;
}

static int64_t moved(int64_t boot, int64_t by)
{
	return boot ? boot + by : 0;
}

/* What was is not yet to come, though the clock was set back. */
static int64_t past(struct client *cl, int64_t boot, int64_t by)
{
	return MIN(moved(boot, by), boot_now(cl));
}

/* A row as burst reads it back: what was known, on the clock of this life. */
static struct core_pod from_row(struct client *cl, const struct row *row)
{
	const struct core_pod *o = &row->pod;
	int64_t by = row->wall_minus_boot - (wall_now(cl) - boot_now(cl));
	struct core_pod p = {.provider = o->provider,
			     .offer = o->offer,
			     .volume = o->volume,
			     .price_microusd_h = o->price_microusd_h,
			     .hard_end_ms = o->hard_end_ms + o->cut_ms + by,
			     .hard_end_s = o->hard_end_s,
			     .first_lease_end_s = o->first_lease_end_s,
			     .detached = o->detached,
			     .compute_ms = o->compute_ms,
			     .wasted_ms = o->wasted_ms};

	COPY_TEXT(p.attempt, o->attempt);
	COPY_TEXT(p.id, o->id);
	p.phase = p.id[0] ? POD_BOOTING : POD_AMBIGUOUS;
	p.unwanted = o->phase >= POD_RELEASING;
	p.durable = o->durable;
	if (o->phase == POD_GONE) {
		p.phase = POD_GONE;
		p.compute_ms = p.wasted_ms = 0;
		return p;
	}
	p.view.port = o->view.port;
	p.create_at = MIN(past(cl, o->create_at, by), boot_now(cl) - row->billed_ms);
	p.rented_at = p.id[0] ? past(cl, o->rented_at, by) : boot_now(cl);
	p.running_at = past(cl, o->running_at, by);
	p.reached_at = past(cl, o->reached_at, by);
	p.connected_at = past(cl, o->connected_at, by);
	p.synced_at = past(cl, o->synced_at, by);
	p.ready_at = past(cl, o->ready_at, by);
	return p;
}

static int64_t spent_before(const struct client *cl)
{
	int64_t sum = 0;

	for (size_t i = 0; i < cl->laptop->row_count; i++) {
		const struct core_pod *p = &cl->laptop->rows[i].pod;
		if (ours(cl, &cl->laptop->rows[i]) && p->phase == POD_GONE)
			sum += money_for(p->price_microusd_h,
					 (p->gone_at - p->create_at + 999) / 1000 * 1000);
		if (ours(cl, &cl->laptop->rows[i]))
			sum += core_may_have_cost(p);
	}
	return sum;
}

/* ---- stepping, and what must hold after each step ---- */

static void perform(struct client *cl);
static void check_handover(struct client *cl);
static void left_alone(struct client *cl, const struct fault *f);
static void mark_host(struct client *cl, const struct action *a, int64_t at);
static void check_step(struct client *cl, const struct event *ev);
static void check_replans(struct client *cl);
static int active_now(struct client *cl, int but);

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

static void step(struct client *cl, struct event *ev)
{
	struct timespec a, b;

	if (!cl->up || cl->bills_open)
		return;
	ev->now_ms = boot_now(cl);
	ev->wall_ms = wall_now(cl);
	cl->out.count = 0;
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
	check_replans(cl);
	if (by_pod)
		digest_by_pod(&cl->out);
	digest_actions(cl);
	perform(cl);
	wire_press(cl);
	if (cl->up && !cl->sim->measuring)
		check_step(cl, ev);
}

double client_ms_of(const struct client *cl, int vendor, int offer, double weight)
{
	int slow = cl->sim->plan->vendors[vendor].slow[offer];

	return weight * (double)cl->sim->plan->ms_per_weight * (slow ? slow : 100) / 100;
}

/* By the slowest of all offers. */
static double slowest_ms(const struct client *cl, double weight)
{
	double most = 0;

	for (int v = 0; v < cl->job->conf.provider_count; v++)
		for (int i = 0; i < cl->sim->plan->vendors[v].offer_count; i++)
			most = MAX(most, client_ms_of(cl, v, i, weight));
	return most;
}

/* ---- plans that change ---- */

/* The pods that worked when it gave up would have been done in half of the time that was left. */
static void check_stop(struct client *cl)
{
	const struct core *c = cl->core;
	int64_t left = c->began_at + cl->job->conf.plan.deadline_ms - c->now;
	double rate = 0, work = 0;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (p->phase == POD_WORKING && p->connected && !p->unwanted &&
		    p->hard_end_ms > c->now + left)
			rate += p->workers_ready /
				client_ms_of(cl, p->provider, atoi(p->offer.id), 1);
	}
	for (size_t i = 0; i < c->seg_count; i++)
		work += c->segs[i].state <= SEG_HELD ? cl->job->segments[i].weight : 0;
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

	trace(cl->sim, "client %c: plans again: %s", name_of(cl), said);
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
		const char *said = core_replan_said(c, cl->replans_seen);
		tally_replan(cl, said);
		if (++cl->replans > 2)
			broke(cl->sim, "planned again %d times, and twice is the most",
			      cl->replans);
		if (cl->replanned_at && c->now - cl->replanned_at < 60000)
			broke(cl->sim,
			      "planned again before the last plan has shown what it is good for");
		cl->replanned_at = c->now;
		cl->width_left = strstr(said, "releasing") ? active_now(cl, -1) : 0;
	}
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (p->outgoing && p->draining && !p->unwanted &&
		    c->now < p->hard_end_ms - 2 * budget_margin(p->hard_end_ms - p->create_at))
			broke(cl->sim, "pod %s is drained before another one has taken its place",
			      p->id);
	}
}

static bool counted_right(struct client *cl)
{
	const struct core *c = cl->core;
	size_t todo = 0, safe = 0, failed = 0;

	for (size_t i = 0; i < c->seg_count; i++) {
		todo += c->segs[i].state == SEG_TODO;
		safe += c->segs[i].state == SEG_SAFE;
		failed += c->segs[i].state == SEG_FAILED;
		if (c->segs[i].state == SEG_FAILED && cl->safe[i])
			broke(cl->sim, "segment %zu is delivered and called failed", i);
		if (c->segs[i].state == SEG_SAFE && !cl->safe[i])
			broke(cl->sim, "segment %zu is called safe and is not", i);
	}
	return todo == c->todo && safe == c->safe && failed == c->failed;
}

static bool pod_counted_right(const struct core *c, int pod)
{
	int unhome = 0, batches = 0;
	size_t held = 0;

	for (size_t i = 0; i < c->seg_count; i++) {
		unhome += c->segs[i].state == SEG_RENDERED && c->segs[i].pod == pod;
		held += c->segs[i].state == SEG_HELD && c->segs[i].pod == pod;
	}
	for (size_t i = 0; i < c->batch_count; i++)
		batches += c->batches[i].pod == pod && !c->batches[i].over;
	return unhome == c->pods[pod].unhome && batches == c->pods[pod].batches &&
	       held == c->pods[pod].held;
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
	bool bare = p->batches == 0 && p->unhome == 0;
	bool canary_waits = !c->canary_ok && c->canary_sent && !core_stopping(c);

	if (!pod_counted_right(c, pod))
		broke(cl->sim, "pod %d: batches %d, held %zu, not home %d: miscounted", pod,
		      p->batches, p->held, p->unhome);
	bool goes = p->unwanted && p->phase > POD_AMBIGUOUS && p->phase < POD_RELEASING;
	if (goes && c->now > MAX(MAX(p->look_at, p->kept_until), woke_at(cl)) + 2000)
		broke(cl->sim, "pod %d is let go for %lld ms, and is not released", pod,
		      (long long)(c->now - p->look_at));
	if (p->phase >= POD_RELEASING || p->unwanted)
		return;
	/* by a list, after a lost reply */
	int64_t found_at = MAX(p->create_at + 2 * cl->job->conf.boot_limit_ms, p->rented_at);
	found_at = MAX(found_at, woke_at(cl) + WOKEN_BOOT_MS);
	if (!p->boot_limit_ms) /* of an earlier life */
		found_at = MAX(found_at, c->began_at + cl->job->conf.boot_limit_ms);
	if ((p->phase == POD_BOOTING || p->phase == POD_CONNECTING) && !p->connected_at &&
	    !p->detached && c->now > found_at + LOG_WAIT_MS)
		broke(cl->sim, "pod %d is not up after %lld s and is waited for", pod,
		      (long long)(c->now - p->create_at) / 1000);
	if (bare && !c->todo && c->started)
		broke(cl->sim, "pod %d (%s) has nothing to do and is kept", pod,
		      pod_phase_name(p->phase));
	if (p->phase == POD_WORKING && p->connected && bare && !p->draining && !core_stopping(c) &&
	    !canary_waits && !core_reads_old(c))
		broke(cl->sim, "pod %d starves beside %zu open segments", pod, c->todo);
	/* core_adopt() knows no 0; its own end was noted by a clock that may have been set back
	 * since */
	if (p->hard_end_ms > p->create_at + 24 * (int64_t)HOUR_MS + 1 + 2 * cl->laptop->wall_error)
		broke(cl->sim, "pod %d may live for more than a day", pod);
	if (cl->job->conf.max_duration_ms && !c->conf.reap &&
	    p->hard_end_ms > c->began_at + duration_left(cl))
		broke(cl->sim, "pod %d may outlive caps.max_duration", pod);
}

static void check_step(struct client *cl, const struct event *ev)
{
	const struct core *c = cl->core;

	if (c->ended)
		return;
	check_handover(cl);
	if (!counted_right(cl))
		broke(cl->sim, "segments miscounted after event %d", (int)ev->type);
	for (int i = 0; i < c->pod_count; i++)
		check_pod(cl, i);
	bool settled = segments_settled(c) || core_stopping(c);
	if (!settled)
		cl->settled_at = -1;
	else if (cl->settled_at < 0)
		cl->settled_at = cl->sim->now;
	if (cl->settled_at >= 0 &&
	    cl->sim->now - MAX(cl->settled_at, cl->laptop->woke_at) > 15 * 60000)
		broke(cl->sim, "the work is over since %lld s and the run does not end",
		      (long long)(cl->sim->now - cl->settled_at) / 1000);
}

/* ---- lives ---- */

/* By the cloud's meter, until now. */
static int64_t bill(const struct client *cl)
{
	int64_t sum = 0;

	for (size_t i = 0; i < cl->sim->machine_count; i++)
		if (cl->sim->machines[i].client == cl->number)
			sum += meter(cl->sim, &cl->sim->machines[i]);
	return sum;
}

/* What this life may spend in all, and what it finds. */
static void take_caps(struct client *cl, bool reap)
{
	int percent = cl->life ? cl->job->later_cap_percent : 100;

	cl->cap_now = cl->job->conf.max_cost_microusd * percent / 100;
	cl->cap_most = MAX(cl->cap_most, reap ? 0 : cl->cap_now);
	cl->metered = bill(cl);
	cl->unsure = reap;
	for (size_t i = 0; i < cl->laptop->row_count; i++)
		cl->unsure = cl->unsure ||
			     (ours(cl, &cl->laptop->rows[i]) && !cl->laptop->rows[i].pod.id[0]);
}

static struct core_conf conf_now(struct client *cl, bool reap)
{
	struct core_conf conf = cl->job->conf;
	bool any_safe = false;

	conf.seed = sim_random(cl->sim);
	conf.reap = reap;
	for (size_t i = 0; i < cl->laptop->row_count; i++)
		if (ours(cl, &cl->laptop->rows[i]))
			conf.providers[cl->laptop->rows[i].pod.provider].used_before = true;
	for (size_t i = 0; i < cl->job->count; i++)
		any_safe = any_safe || (cl->safe[i] && !cl->job->segments[i].done);
	conf.canary = conf.canary && !any_safe;
	if (conf.max_cost_microusd) {
		conf.max_cost_microusd =
			(plant(PLANT_CAP_AS_IT_WAS) ? conf.max_cost_microusd : cl->cap_now) -
			spent_before(cl);
		if (!conf.max_cost_microusd)
			conf.max_cost_microusd = -1;
	}
	if (conf.max_duration_ms)
		conf.max_duration_ms = MAX(conf.max_duration_ms - (cl->sim->now - cl->began_at), 1);
	conf.make_volume = conf.want_volume;
	conf.plan.forecasts = cl->job->forecasts;
	if (!cl->job->planned || cl->ever_crashed || reap) /* a resumed run has no plan */
		memset(&conf.plan, 0, sizeof(conf.plan));
	/* by what its batches take at the usual speed */
	for (size_t i = 0; i < conf.plan.forecast_count; i++)
		((struct job_plan *)cl->job)->forecasts[i].speed.each_s =
			(double)cl->sim->plan->ms_per_weight / 10.0 / MAX(cl->job->off_percent, 1);
	plant_conf(&conf);
	return conf;
}

static void adopt_rows(struct client *cl)
{
	for (size_t i = 0; i < cl->laptop->row_count; i++) {
		const struct core_pod *had = &cl->laptop->rows[i].pod;
		if (!ours(cl, &cl->laptop->rows[i]))
			continue;
		if (!pod_may_bill(had) &&
		    (!had->durable || had->phase != POD_GONE || cl->core->conf.reap))
			continue;
		struct core_pod p = from_row(cl, &cl->laptop->rows[i]);
		core_adopt(cl->core, &p);
	}
}

void client_start(struct client *cl, bool reap)
{
	if (!cl->began) {
		cl->began = true;
		cl->began_at = cl->sim->now;
	}
	cl->life_began = cl->sim->now;
	cl->dead_forever = false;
	struct core_segment *segments = xcalloc(cl->job->count, sizeof(*segments));
	take_caps(cl, reap);
	struct core_conf conf = conf_now(cl, reap);

	for (size_t i = 0; i < cl->job->count; i++) {
		segments[i] = cl->job->segments[i];
		segments[i].done =
			cl->safe[i] && (!plant(PLANT_DONE_FORGOTTEN) || cl->job->segments[i].done);
	}
	memset(cl->affords, 0, sizeof(cl->affords));
	cl->core = core_new(&conf, segments, reap ? 0 : cl->job->count);
	free(segments);
	adopt_rows(cl);
	cl->up = true;
	cloud_alone(cl, false);
	cl->reaping = reap;
	cl->good_safe = cl->handed_over = cl->stop_seen = false;
	cl->replans = cl->replans_seen = cl->width_left = 0;
	cl->replanned_at = 0;
	cl->settled_at = -1;
	cl->seen_cap = cl->unsaved_cap = 0;
	free(cl->seen);
	free(cl->unsaved);
	cl->unsaved_cap = 64;
	cl->seen_cap = 64;
	cl->seen = xcalloc(cl->seen_cap, sizeof(*cl->seen));
	cl->unsaved = xcalloc(cl->unsaved_cap, sizeof(*cl->unsaved));
	trace(cl->sim, "client %c: life %d begins%s", name_of(cl), cl->life, reap ? " (reap)" : "");
	struct event ev = {.type = EV_START};
	wire_begin_life(cl);
	step(cl, &ev);
}

static void check_known(struct client *cl);

/* What it knew and its ledger had no room for is known to nobody now: whoever comes next learns of
 * such a pod from a list. */
static void forget_unsaved(struct client *cl)
{
	for (size_t i = 0; i < cl->sim->machine_count; i++) {
		struct machine *m = &cl->sim->machines[i];
		const struct row *row =
			m->client == cl->number && m->unsaved ? row_of(cl, m->attempt) : NULL;
		if (row && !row->pod.id[0])
			m->known_at = -1;
	}
}

static void client_dies(struct client *cl)
{
	cl->bills_open = 0;
	wire_end_life(cl);
	check_known(cl);
	core_free(cl->core);
	cl->core = NULL;
	cl->up = false;
	cl->life_ended = cl->sim->now;
	cloud_alone(cl, true);
	cl->life++;
	memset(cl->list_failed, 0, sizeof(cl->list_failed));
	for (size_t i = 0; i < cl->sim->machine_count; i++)
		if (cl->sim->machines[i].connected && cl->sim->machines[i].client == cl->number) {
			cl->sim->machines[i].connected = false;
			cl->sim->machines[i].conn++;
		}
}

static void dies_for_a_while(struct client *cl, int64_t away, enum fault_kind kind)
{
	client_dies(cl);
	cl->ever_crashed = true;
	struct happening *h = later(cl->sim, away, W_RESTART);
	h->client = cl->number;
	h->x = kind;
}

/* The machine itself begins anew, with all that runs on it. */
static void reboots(struct client *cl, int64_t away)
{
	cl->laptop->boot_offset = 5000 - cl->sim->now - away;
	cl->laptop->off_until = cl->sim->now + away;
	struct client *reaper = &cl->sim->clients[CLIENTS_MAX + (cl->laptop - cl->sim->laptops)];
	if (reaper->up)
		reaper_ends(reaper);
	for (int i = 0; i < cl->sim->plan->client_count; i++) {
		struct client *other = &cl->sim->clients[i];
		if (other != cl && other->laptop == cl->laptop && other->up)
			dies_for_a_while(other, away, F_CRASH_RESUME);
	}
}

void client_crash(struct client *cl, const struct fault *f)
{
	trace(cl->sim, "client %c: dies (%s)", name_of(cl), fault_names[f->kind]);
	if (cl->number >= CLIENTS_MAX) {
		reaper_ends(cl);
		return;
	}
	forget_unsaved(cl);
	if (f->kind == F_CRASH_FOREVER) {
		client_dies(cl);
		cl->ever_crashed = cl->dead_forever = true;
		cl->died_at = cl->sim->now;
		if (f->x % 3 == 0) /* somebody looks, a little later or, once, the next day */
			later(cl->sim,
			      f->x % 2 || cl->sim->now > HOUR_MS
				      ? 1000 + f->x % 300000
				      : 24 * (int64_t)HOUR_MS + f->x % HOUR_MS,
			      W_REAP)
				->client = cl->number;
		return;
	}
	int64_t away = 1000 + f->ms % 1200000;
	dies_for_a_while(cl, away, f->kind);
	if (f->x & 1)
		reboots(cl, away);
}

void client_restart(struct client *cl, struct happening *h)
{
	if (!cl->up) {
		client_start(cl, h->x == F_CRASH_REAP);
		return;
	}
	/* `burst reap` is at it: the run is locked */
	struct happening *again = later(cl->sim, 60000, W_RESTART);
	again->client = h->client;
	again->x = h->x;
}

/* As if nobody looked at the run's lock. */
static void release_live(struct client *cl)
{
	int other = (cl->number + 1) % cl->sim->plan->client_count;

	for (size_t i = 0; i < cl->laptop->row_count; i++) {
		const struct row *row = &cl->laptop->rows[i];
		const struct machine *m =
			ours(cl, row) ? cloud_machine(cl->sim, row->pod.id) : NULL;
		if (!m)
			continue;
		struct happening *h = later(cl->sim, 0, W_RELEASE);
		h->client = other;
		h->life = -1;
		h->machine = (int)(m - cl->sim->machines);
	}
}

void client_reap(struct client *cl)
{
	if (cl->up && plant(PLANT_REAP_LIVE))
		release_live(cl);
	if (!cl->up && reap_wants_run(cl))
		client_start(cl, true);
}

bool client_wants(const struct client *cl, const struct machine *m)
{
	for (int i = 0; cl->up && i < core_pod_count(cl->core); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		if (!strcmp(p->id, m->id))
			return pod_active(p) && !core_stopping(cl->core) &&
			       boot_now(cl) < p->hard_end_ms;
	}
	return false;
}

static bool crashes_now(struct client *cl)
{
	static const enum fault_kind kinds[] = {F_CRASH_RESUME, F_CRASH_REAP, F_CRASH_FOREVER};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct fault *f = strikes(cl->sim, kinds[i]);
		if (f) {
			client_crash(cl, f);
			return true;
		}
	}
	return false;
}

/* ---- the end ---- */

static bool in_doubt(const struct core_pod *p, const struct machine *m)
{
	return pod_may_bill(p) &&
	       (p->id[0] ? !strcmp(p->id, m->id) : !strcmp(p->attempt, m->attempt));
}

/* Of two pods of one create the one that was found first has the row of its attempt, the other one
 * a row of its own. */
static bool is_known(struct client *cl, const struct machine *m)
{
	const struct row *row = row_of(cl, m->attempt);

	for (size_t i = 0; i < cl->laptop->row_count; i++)
		if (!strcmp(cl->laptop->rows[i].pod.id, m->id) &&
		    in_doubt(&cl->laptop->rows[i].pod, m))
			return true;
	bool second = row && row->pod.id[0] && strcmp(row->pod.id, m->id) != 0 &&
		      cl->sim->hit[F_CREATE_TWICE];

	return second || (row && in_doubt(&row->pod, m));
}

/* Whatever lives and is not the second of one create stands in the ledger as something that may
 * bill. */
static void check_known(struct client *cl)
{
	for (size_t i = 0; i < cl->sim->machine_count; i++) {
		const struct machine *m = &cl->sim->machines[i];
		if (m->client != cl->number || m->is_over || m->duplicate || m->unsaved)
			continue;
		if (!is_known(cl, m))
			broke(cl->sim, "pod %s lives, and the ledger does not know it", m->id);
	}
}

/* No list since a create's answer was lost: nobody knows whether there is a second pod of it. */
static bool lost_sight(const struct client *cl)
{
	for (int i = 0; i < cl->job->conf.provider_count; i++) {
		const struct vendor *v = &cl->core->vendors[i];
		if (v->used && v->surfaced_at >= 0 && v->listed_at < v->surfaced_at)
			return true;
	}
	return false;
}

/* Nothing went wrong with a create, a listing or a release, and it was there all the time. */
static bool all_was_well(const struct client *cl)
{
	static const enum fault_kind kinds[] = {
		F_CREATE_LOST_MADE, F_CREATE_LOST_NOTHING, F_CREATE_TWICE,    F_SURFACES_LATE,
		F_RELEASE_FAILS,    F_RELEASE_LOST,        F_RELEASE_LINGERS, F_RELEASE_IGNORED,
		F_RELEASE_NEVER,    F_POD_LOCKED,          F_RELEASE_UNKNOWN, F_RELEASE_DENIED};
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

static void check_exit(struct client *cl, const struct core_summary *sum)
{
	bool all_safe = true, all_gone = true, open = false;
	size_t safe = 0;

	for (size_t i = 0; i < cl->job->count; i++)
		safe += cl->safe[i];
	all_safe = safe == cl->job->count;
	if (!cl->reaping && sum->safe != safe)
		broke(cl->sim, "%zu segments are delivered, and %zu are reported", safe, sum->safe);
	for (size_t i = 0; i < cl->sim->machine_count; i++)
		all_gone = all_gone && (cl->sim->machines[i].is_over ||
					cl->sim->machines[i].client != cl->number);
	for (int i = 0; i < core_pod_count(cl->core); i++)
		open = open || pod_may_bill(core_pod_at(cl->core, i));
	if (cl->exit_status != 9 && !all_gone)
		broke(cl->sim, "exit %d, and a pod still lives", cl->exit_status);
	if (cl->exit_status == 9 && !open && !lost_sight(cl))
		broke(cl->sim, "exit 9, and no pod is in doubt");
	if (cl->exit_status == 9 && all_gone && all_was_well(cl))
		broke(cl->sim, "exit 9, and nothing kept it from seeing that all pods are gone");
	if (cl->exit_status != 9 && open)
		broke(cl->sim, "exit %d, and a pod is in doubt", cl->exit_status);
	if (cl->exit_status == 0 && !all_safe && !cl->reaping)
		broke(cl->sim, "exit 0, and a segment is missing");
	if (cl->core->signals && cl->exit_status != 9 && cl->exit_status != 130 &&
	    cl->exit_status != 143)
		broke(cl->sim, "exit %d after a signal", cl->exit_status);
	if (!cl->core->signals && all_safe && !cl->core->canary_bad_all && cl->exit_status != 0 &&
	    cl->exit_status != 9)
		broke(cl->sim, "exit %d, and all went well: %s", cl->exit_status, sum->err.msg);
	if (cl->exit_status == 5 && !cl->job->conf.max_cost_microusd &&
	    !cl->job->conf.max_duration_ms && !cl->core->replan.stop.kind)
		broke(cl->sim, "exit 5, and nothing was capped");
	if (cl->exit_status == 3 && !cl->sim->hit[F_CREATE_CREDENTIALS])
		broke(cl->sim, "exit 3, and no credentials were refused");
	if (cl->exit_status > 128 && !cl->core->signals)
		broke(cl->sim, "exit %d, and there was no signal", cl->exit_status);
	if (cl->exit_status != 0 && !sum->err.msg[0])
		broke(cl->sim, "exit %d without a word", cl->exit_status);
}

static void end(struct client *cl)
{
	struct core_summary sum;

	core_summary(cl->core, boot_now(cl), &sum);
	cl->exit_status = err_exit_status(&sum.err);
	cl->ever_left = cl->ever_left || cl->core->signals > 2;
	plant_exit(cl, &sum);
	trace(cl->sim, "client %c: ends: %s, exit %d (%s)", name_of(cl),
	      run_status_word(sum.status), cl->exit_status, sum.err.msg);
	for (int i = 0; i < core_pod_count(cl->core); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		/* what an earlier life wrote down was by that clock */
		int64_t off = 2 * cl->laptop->wall_error;
		const struct machine *m = p->unplaced ? machine_of(cl, i) : NULL;
		if (m && !m->queued)
			broke(cl->sim, "pod %s is not billed, and it was placed", p->id);
		if (p->compute_ms > core_billed_ms(p, boot_now(cl)) + off)
			broke(cl->sim, "pod %s: computed %lld ms, billed %lld", p->id,
			      (long long)p->compute_ms, (long long)core_billed_ms(p, boot_now(cl)));
	}
	check_exit(cl, &sum);
	if (cl->sim->wire)
		wire_bill(cl);
	if (cl->bills_open)
		client_later(cl, BILLING_MS, W_BILLED);
	else
		client_dies(cl);
}

/* The bills are there, or are not waited for any longer. */
void client_leaves(struct client *cl)
{
	if (cl->up)
		client_dies(cl);
}

/* ---- actions ---- */

static struct happening *ask(struct client *cl, const struct action *a, int64_t delay,
			     enum what what)
{
	struct happening *h = client_later(cl, delay, what);

	h->pod = a->pod;
	h->provider = a->provider;
	h->segment = a->segment;
	h->batch = a->batch;
	return h;
}

/* To the vendor's API, within its limits. */
static void call(struct client *cl, const struct action *a, enum what what, int64_t x, int machine,
		 int64_t extra)
{
	struct happening h = {.what = what,
			      .pod = a->pod,
			      .provider = a->provider,
			      .segment = a->segment,
			      .batch = a->batch,
			      .x = x,
			      .machine = machine};

	account_send(cl, &h, extra);
}

static int64_t api(struct client *cl, const struct action *a)
{
	return cl->sim->plan->vendors[a->provider].latency_ms;
}

static int active_now(struct client *cl, int but)
{
	int active = 0;

	for (int i = 0; i < core_pod_count(cl->core); i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		/* a create without an answer, at a vendor that has not been able to say for two
		 * minutes what is there, is not waited for */
		bool lost = p->phase == POD_AMBIGUOUS && cl->core->now - p->rented_at >= 120000 &&
			    cl->core->vendors[p->provider].list_failures >= 5;
		active += i != but && pod_active(p) && !lost;
	}
	return active;
}

/* Of a pod that nothing goes wrong with, at the vendor where that is shortest, whatever the core
 * takes it for. */
static int64_t least_cold_ms(const struct client *cl)
{
	int64_t least = INT64_MAX / 8;

	for (int i = 0; i < cl->job->conf.provider_count; i++)
		least = MIN(least, cl->sim->plan->vendors[i].boot_ms);
	return least + cl->sim->plan->load_ms;
}

/* Beside pods that work there is as much to do, by the time that it truly takes, as pays for
 * another one that comes up. A pod that is replaced works until then only. */
static void check_it_pays(struct client *cl, int pod)
{
	const struct core *c = cl->core;
	int64_t cold = least_cold_ms(cl), busy_ms = cold;
	double left = 0;
	bool works = false;

	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (i == pod || p->phase != POD_WORKING || !p->connected || p->draining ||
		    p->unwanted)
			continue;
		works = true;
		busy_ms +=
			MIN(p->outgoing ? cold : 2 * cold,
			    MAX(p->hard_end_ms - 2 * budget_margin(p->hard_end_ms - p->create_at) -
					c->now,
				0));
	}
	for (size_t i = 0; i < c->seg_count; i++)
		left += c->segs[i].state <= SEG_HELD ? slowest_ms(cl, cl->job->segments[i].weight)
						     : 0;
	/* it died before its ledger knew how long a pod had taken */
	bool guesses = !c->cold_ms && cl->ever_crashed;
	/* the first pace of a continuous engine counts what was finished meanwhile, and not the
	 * longer segments in its places */
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
	const struct row *row = row_of(cl, p->attempt);

	if (!row || row->pod.hard_end_s != p->hard_end_s)
		broke(cl->sim, "create without a row of its intent");
	for (size_t i = 0; i < cl->sim->create_count; i++)
		if (!strcmp(cl->sim->creates[i].attempt, p->attempt))
			broke(cl->sim, "attempt %s is used twice", p->attempt);
	if (cl->core->conf.canary && !cl->good_safe && cl->core->canary_ok)
		broke(cl->sim, "the canary counts as good before a good segment is safe");
	int active = active_now(cl, pod);
	if (active && !cl->core->canary_ok && !cl->job->conf.at_once)
		broke(cl->sim, "a second pod before the canary");
	int most = MAX(cl->job->conf.pods, cl->replans ? cl->job->conf.plan.pods_most : 0);
	if (!cl->core->conf.at_once)
		check_it_pays(cl, pod);
	if (active >= most)
		broke(cl->sim, "wider than pods = %d", most);
	if (cl->width_left && active - core_outgoing(cl->core) >= cl->width_left)
		broke(cl->sim, "it rents again what it gave back: %d pods were left",
		      cl->width_left);
	if (!cl->sim->plan->vendors[p->provider].wire && cl->unfit[p->provider][atoi(p->offer.id)])
		broke(cl->sim, "a card that cannot run the job is rented again");
	if (core_stopping(cl->core))
		broke(cl->sim, "a create while stopping");
	if (cl->job->conf.max_cost_microusd &&
	    budget_committed(cl->core) > cl->core->conf.max_cost_microusd)
		broke(cl->sim, "rented beyond the cap");
	if (p->first_lease_end_s > p->hard_end_s)
		broke(cl->sim, "the first lease is longer than the hard end");
	int64_t patience = cl->core->conf.boot_limit_ms,
		first_lease = p->first_lease_end_s * 1000 - wall_now(cl);
	if (first_lease > patience + 30000)
		broke(cl->sim,
		      "the first lease is longer than boot_limit by more than half a minute");
	if (p->first_lease_end_s < p->hard_end_s && first_lease < patience + 1500)
		broke(cl->sim, "the first lease ends as the client gives the pod up");
}

static void rent(struct client *cl, const struct action *a)
{
	const struct core_pod *p = core_pod_at(cl->core, a->pod);

	if (cl->unsaved[a->pod]) /* the intent could not be written: W_SAVE_FAILED says so */
		return;
	check_rent(cl, p, a->pod);
	const struct fault *f = cl->job->conf.detached ? strikes(cl->sim, F_LEFT_AT_RENT) : NULL;
	if (f)
		left_alone(cl, f);
	GROW(cl->sim->creates, cl->sim->create_count, cl->sim->create_cap);
	struct create *c = &cl->sim->creates[cl->sim->create_count++];
	*c = (struct create){.client = cl->number,
			     .provider = p->provider,
			     .offer = atoi(p->offer.id),
			     .price = p->offer.price_microusd_h,
			     .hard_end_s = p->hard_end_s,
			     .first_lease_end_s = p->first_lease_end_s,
			     .late_start_s = core_late_start_ms(&cl->job->conf) / 1000,
			     .clock_error = llabs(cl->laptop->wall_offset)};
	COPY_TEXT(c->attempt, p->attempt);
	if (wire_rent(cl, a->pod))
		return;
	call(cl, a, W_CREATE, (int64_t)cl->sim->create_count - 1, -1, 0);
}

/* Rendered by a pod that was let go because all of its work was durable: only what was found bad is
 * rendered again. */
/* It was dealt out before the log of the pod that had finished it was read, and that pod's news
 * came too late for it. */
static bool was_dealt_before(const struct client *cl, const struct machine *m)
{
	return cl->ever_crashed && !cl->sim->plan->replay_first && m->reached_in == cl->life;
}

static bool on_a_volume(struct client *cl, uint32_t segment)
{
	if (cl->spoilt || drops_beyond_patience(cl->sim))
		return false;
	for (size_t i = 0; i < cl->laptop->row_count; i++) {
		const struct core_pod *p = &cl->laptop->rows[i].pod;
		if (!ours(cl, &cl->laptop->rows[i]) || !p->durable || !p->id[0])
			continue;
		for (size_t k = 0; k < cl->sim->machine_count; k++) {
			const struct machine *m = &cl->sim->machines[k];
			if (!strcmp(m->id, p->id) && m->files && m->files[segment] &&
			    !was_dealt_before(cl, m))
				return true;
		}
	}
	return false;
}

static void send_again(struct client *cl, const struct happening *said)
{
	struct happening once = *said, *h = client_later(cl, said->at - cl->sim->now, W_COMMAND);

	h->machine = once.machine;
	h->conn = once.conn;
	h->x = once.x;
	h->batch = once.batch + 1000;
	h->count = once.count;
	h->data = memcpy(xcalloc(once.count, sizeof(uint32_t)), once.data,
			 once.count * sizeof(uint32_t));
}

static void command(struct client *cl, const struct action *a, enum command what)
{
	struct machine *m = machine_of(cl, a->pod);

	const struct core_pod *p = core_pod_at(cl->core, a->pod);
	if (!p->connected && p->phase >= POD_RELEASING)
		return; /* said before the connection was dropped in the same step: nobody hears it
			 */
	if (!p->connected)
		broke(cl->sim, "a command (%d) to a pod without a connection", (int)what);
	if (!m)
		return;
	struct happening *h = ask(cl, a, cl->sim->plan->rtt_ms / 2, W_COMMAND);
	h->machine = (int)(m - cl->sim->machines);
	h->conn = m->conn;
	h->x = what;
	h->y = what == C_HANDOVER ? a->number : a->flag;
	if (what != C_SEND)
		return;
	const struct core_batch *b = core_batch_at(cl->core, a->batch);
	uint32_t *segments = xcalloc(b->count, sizeof(*segments));
	memcpy(segments, b->segments, b->count * sizeof(*segments));
	h->data = segments;
	h->count = b->count;
	for (size_t i = 0; i < b->count; i++) {
		if (cl->safe[segments[i]])
			broke(cl->sim, "segment %u is safe and is rendered again", segments[i]);
		else if (on_a_volume(cl, segments[i]))
			broke(cl->sim, "segment %u is safe on a volume and is rendered again",
			      segments[i]);
	}
	if (plant(PLANT_SEND_TWICE))
		send_again(cl, h);
	if (cl->job->conf.batch_size_count &&
	    core_pod_at(cl->core, a->pod)->batches >
		    MAX(core_pod_at(cl->core, a->pod)->workers_ready, 1))
		broke(cl->sim, "a batch beside others that are measured");
	if (b->count > (size_t)MAX(cl->job->conf.max_batch, 1) || !b->count)
		broke(cl->sim, "a batch of %zu segments", b->count);
}

static void fetch(struct client *cl, const struct action *a)
{
	const struct core_pod *p = core_pod_at(cl->core, a->pod);
	struct machine *m = machine_of(cl, a->pod);

	if (cl->safe[a->segment])
		broke(cl->sim, "segment %u is safe and is fetched again", a->segment);
	/* whose release follows in the same step: it is dropped */
	if (!p->via_volume && !p->connected && p->phase < POD_RELEASING)
		broke(cl->sim, "a fetch from a pod without a connection");
	if (p->via_volume && wire_fetch(cl, a->pod, a->segment))
		return;
	struct fault *slow = strikes(cl->sim, F_FETCH_SLOW);
	int64_t took = p->via_volume ? api(cl, a) : cl->sim->plan->rtt_ms + pick(cl->sim, 0, 30);
	struct happening *h = ask(cl, a, took + (slow ? slow->ms % 60000 : 0), W_FETCHED);
	h->machine = (int)(m - cl->sim->machines);
	h->conn = m->conn;
	h->y = p->via_volume;
}

/* Syncing takes a while, and now and then the little that is left is waited for. */
static void sync_volume(struct client *cl, const struct action *a)
{
	struct machine *m = machine_of(cl, a->pod);
	const struct core_pod *p = core_pod_at(cl->core, a->pod);

	if (!p->connected && p->phase >= POD_RELEASING)
		return; /* said before the connection was dropped in the same step, as other
			   commands may be */
	if (!p->connected || !m)
		broke(cl->sim, "a sync of a pod without a connection");
	if (!m)
		return;
	struct happening *h = ask(cl, a, cl->sim->plan->rtt_ms + pick(cl->sim, 0, 500), W_SYNCED);
	h->machine = (int)(m - cl->sim->machines);
	h->conn = m->conn;
	h->x = a->number;
	h->y = pick(cl->sim, 0, 9) > 1;
}

static void release(struct client *cl, const struct action *a)
{
	struct machine *m = machine_of(cl, a->pod);

	if (!m) {
		broke(cl->sim, "a release without an id");
		return;
	}
	m->let_go = true;
	call(cl, a, W_RELEASE, 0, (int)(m - cl->sim->machines), 0);
}

/* By a connection of its own, unless it is to be the one that stood when its release was asked for.
 */
static void finish(struct client *cl, const struct action *a)
{
	struct machine *m = machine_of(cl, a->pod);

	if (m && (!a->flag || m->stood))
		later(cl->sim, a->flag ? cl->sim->plan->rtt_ms / 2 : 3 * cl->sim->plan->rtt_ms,
		      W_FINISH)
			->machine = (int)(m - cl->sim->machines);
}

static void close_connection(struct client *cl, const struct action *a)
{
	struct machine *m = machine_of(cl, a->pod);

	if (m)
		m->stood = m->connected;
	if (m && m->connected) {
		m->connected = false;
		m->conn++;
	}
}

/* Who began a detached run may be gone for good once its agents have the rest, and somebody may
 * reap what it left. */
static void may_die_soon(struct client *cl)
{
	const struct fault *f = strikes(cl->sim, F_CRASH_HANDED);

	if (f)
		client_later(cl, cl->sim->plan->rtt_ms + f->ms % 60000, W_CRASH)->x =
			f->x - (f->x % 4 ? f->x % 3 : 0);
}

/* Its laptop is closed, or it ends and nobody comes back but, perhaps, a reap. */
static void left_alone(struct client *cl, const struct fault *f)
{
	if (f->kind == F_LEFT_FROZEN || (f->kind == F_LEFT_AT_RENT && f->x % 3 == 0)) {
		struct happening *h = later(cl->sim, f->ms, W_SLEEP);
		h->client = cl->number;
		h->x = 1000 + (int64_t)f->x * (f->x % 2 ? 30 : 1);
	} else {
		client_later(cl, f->ms, W_CRASH)->x = f->x;
	}
}

static bool was_given(const struct machine *m, uint32_t segment)
{
	for (size_t i = 0; i < m->work_count; i++)
		for (size_t k = 0; k < m->works[i].count; k++)
			if (m->works[i].segments[k] == segment)
				return true;
	return false;
}

/* `run -d` returns here: the client is needed no more. */
static void check_handover(struct client *cl)
{
	const struct core *c = cl->core;
	const struct fault *f;

	if (cl->handed_over || cl->reaping || core_handover(c) != HANDOVER_DONE)
		return;
	cl->handed_over = true;
	trace(cl->sim, "client %c: the queue is with the pods", name_of(cl));
	for (uint32_t i = 0; i < c->seg_count; i++) {
		bool given = c->segs[i].state == SEG_SAFE || c->segs[i].state == SEG_FAILED;
		for (size_t k = 0; k < cl->sim->machine_count && !given; k++) {
			const struct machine *m = &cl->sim->machines[k];
			given = m->client == cl->number &&
				(m->files[i] || (m->was_detached && was_given(m, i)));
		}
		if (!given)
			broke(cl->sim, "the queue is handed over, and no pod was given segment %u",
			      i);
	}
	if ((f = strikes(cl->sim, F_LEFT_GONE)) || (f = strikes(cl->sim, F_LEFT_FROZEN)))
		left_alone(cl, f);
}

/* Whatever a vendor says of when it is to be asked again: a pod bills meanwhile. */
void client_check_list(struct client *cl, int provider)
{
	enum { LOOKED_FOR_MS = 75 * 1000 };
	int64_t failed = cl->list_failed[provider];

	if (!failed || boot_now(cl) - MAX(failed, woke_at(cl)) <= LOOKED_FOR_MS)
		return;
	for (int i = 0; i < cl->core->pod_count; i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		if (p->provider == provider &&
		    ((p->phase == POD_BOOTING && p->rented_at && p->rented_at < failed) ||
		     (p->phase == POD_CONFIRMING && p->released_at && p->released_at < failed)))
			broke(cl->sim,
			      "pod %s is not looked for again for %lld ms after a list that failed",
			      p->id, (long long)(boot_now(cl) - failed));
	}
}

static bool makes_volume(const struct action *a)
{
	return a->type == ACT_VOLUME && (a->flag || plant(PLANT_VOLUME_EARLY));
}

/* It bills for ever, and ties the run to where it is. */
static void check_volume(struct client *cl, const struct action *a)
{
	if (makes_volume(a) && !cl->affords[a->provider])
		broke(cl->sim, "%c: a volume is made at provider %d, where nothing can be rented",
		      name_of(cl), a->provider);
}

static void take_offers(struct client *cl, const struct event *ev)
{
	int64_t most = cl->core->conf.max_price_microusd_h;

	if (ev->err)
		return; /* the last list holds */
	cl->affords[ev->provider] = false;
	for (size_t i = 0; i < ev->count; i++)
		if (!most || ev->offers[i].price_microusd_h <= most)
			cl->affords[ev->provider] = true;
}

static void act(struct client *cl, const struct action *a)
{
	check_volume(cl, a);
	if (wire_act(cl, a))
		return;
	switch (a->type) {
	case ACT_OFFERS: call(cl, a, W_OFFERS, 0, -1, 0); break;
	case ACT_VOLUME: call(cl, a, W_VOLUME, makes_volume(a), -1, 0); break;
	case ACT_IMAGE:
		call(cl, a, W_IMAGE, 0, -1, cl->sim->plan->vendors[a->provider].boot_ms);
		break;
	case ACT_SAVE: save(cl, a->pod); break;
	case ACT_RENT: rent(cl, a); break;
	case ACT_LIST:
		client_check_list(cl, a->provider);
		call(cl, a, W_LIST, boot_now(cl), -1, 0);
		break;
	case ACT_INSPECT: call(cl, a, W_INSPECTED, boot_now(cl), -1, 0); break;
	case ACT_LOG: call(cl, a, W_LOG, 0, -1, 4000); break;
	case ACT_BAD_HOST: mark_host(cl, a, wall_now(cl)); break;
	case ACT_GOOD_HOST: mark_host(cl, a, 0); break;
	case ACT_CONNECT: ask(cl, a, 3 * cl->sim->plan->rtt_ms, W_REACHED); break;
	case ACT_PREPARE:
		wire_stage_stop(cl, core_pod_at(cl->core, a->pod)->provider);
		if (cl->up)
			command(cl, a, C_PREPARE);
		break;
	case ACT_SEND: command(cl, a, C_SEND); break;
	case ACT_REVOKE: command(cl, a, C_REVOKE); break;
	case ACT_RENEW: command(cl, a, C_RENEW); break;
	case ACT_HANDOVER:
		if (!row_of(cl, core_pod_at(cl->core, a->pod)->attempt)->pod.detached &&
		    !machine_of(cl, a->pod)->unsaved)
			broke(cl->sim, "handed over before the ledger knows");
		command(cl, a, C_HANDOVER);
		may_die_soon(cl);
		break;
	case ACT_TAKEOVER: command(cl, a, C_TAKEOVER); break;
	case ACT_FETCH: fetch(cl, a); break;
	case ACT_KEEP: ask(cl, a, cl->sim->plan->keep_latency_ms, W_KEPT)->x = a->flag; break;
	case ACT_DISCARD: break;
	case ACT_SALVAGE:
		if (!wire_salvage(cl, a->pod))
			ask(cl, a, 2 * api(cl, a), W_SALVAGED);
		break;
	case ACT_SYNC: sync_volume(cl, a); break;
	case ACT_OFFER:
	case ACT_SEEK: break; /* only with conf.pooled */
	case ACT_RELEASE: release(cl, a); break;
	case ACT_CLOSE: close_connection(cl, a); break;
	case ACT_FINISH: finish(cl, a); break;
	case ACT_NOTE: break;
	case ACT_END: end(cl); break;
	}
}

static const char *action_name(enum action_type type)
{
	static const char *const names[] = {
		"OFFERS", "VOLUME",   "IMAGE",     "SAVE",    "RENT",    "LIST",    "INSPECT",
		"LOG",    "BAD_HOST", "GOOD_HOST", "CONNECT", "PREPARE", "SEND",    "REVOKE",
		"RENEW",  "HANDOVER", "TAKEOVER",  "FETCH",   "KEEP",    "DISCARD", "SALVAGE",
		"SYNC",   "RELEASE",  "CLOSE",     "FINISH",  "NOTE",    "END"};

	return names[type];
}

static void perform(struct client *cl)
{
	int life = cl->life;

	while ((size_t)core_pod_count(cl->core) > cl->unsaved_cap) {
		cl->unsaved = xrealloc(cl->unsaved, 2 * cl->unsaved_cap * sizeof(*cl->unsaved));
		memset(cl->unsaved + cl->unsaved_cap, 0, cl->unsaved_cap * sizeof(*cl->unsaved));
		cl->unsaved_cap *= 2;
	}
	for (size_t i = 0; i < cl->out.count && cl->life == life && !cl->sim->broken[0]; i++) {
		struct action *a = &cl->out.list[i];
		if (crashes_now(cl))
			return;
		cl->sim->actions++;
		if (cl->sim->tracing && a->type == ACT_SEND) {
			const struct core_batch *b = core_batch_at(cl->core, a->batch);
			trace(cl->sim, "  %c -> SEND pod %d batch %u: %zu segments from %u",
			      name_of(cl), a->pod, a->batch, b->count, b->segments[0]);
		} else if (cl->sim->tracing) {
			trace(cl->sim, "  %c -> %s pod %d provider %d segment %u %s", name_of(cl),
			      action_name(a->type), a->pod, a->provider, a->segment, a->text);
		}
		if (!plant_act(cl, a))
			act(cl, a);
	}
}

/* ---- what came of them ---- */

static struct err trouble(enum err_kind kind, int64_t retry_ms)
{
	struct err err = {0};

	err_set(&err, kind, "trouble: %s", err_kind_name(kind));
	err.retry_after_ms = kind == ERR_RATE_LIMITED && !retry_ms ? 5000 : retry_ms;
	return err;
}

void client_told(struct client *cl, struct event *ev, const struct err *err)
{
	ev->err = err;
	trace(cl->sim, "%c: event %d pod %d provider %d segment %u batch %d%s%s", name_of(cl),
	      (int)ev->type, ev->pod, ev->provider, ev->segment, (int)ev->batch, err ? " " : "",
	      err ? err->msg : "");
	if (ev->type == EV_OFFERS)
		take_offers(cl, ev);
	step(cl, ev);
}

static void send_event(struct client *cl, struct event *ev, enum err_kind kind)
{
	struct err err = trouble(kind, cl->retry_ms);

	client_told(cl, ev, kind ? &err : NULL);
}

/* The client writes into its ledger that this card cannot run the job. */
static void card_told(struct client *cl, const struct machine *m)
{
	const struct vendor_plan *v = &cl->sim->plan->vendors[m->vendor];

	for (int i = 0; i < v->offer_count; i++)
		if (!strcmp(v->offers[i].gpu, v->offers[m->offer].gpu))
			cl->unfit[m->vendor][i] = cl->laptop->unfit[m->vendor][i] = true;
}

static void entry_heard(struct client *cl, int machine, size_t n)
{
	const struct entry *e = &cl->sim->machines[machine].log[n];
	struct event ev = {.type = e->type,
			   .pod = pod_of(cl, machine),
			   .segment = e->segment,
			   .t = e->t,
			   .batch = e->life == cl->life ? e->batch : UINT32_MAX,
			   .elapsed_ms = e->elapsed_ms,
			   .number = e->number};
	if (e->type == EV_WORKERS && (cl->job->padded || cl->job->continuous)) {
		ev.max_batch = cl->job->conf.max_batch;
		ev.batching = cl->job->padded ? BATCHING_PADDED : BATCHING_CONTINUOUS;
	}

	if (e->type == EV_LEFT_ALONE && e->life != cl->life)
		ev.number = -1; /* its id is of another client's */
	size_t *seen = seen_of(cl, machine);
	if (n != *seen)
		return;
	(*seen)++;
	const struct row *row =
		ev.pod >= 0 ? row_of(cl, core_pod_at(cl->core, ev.pod)->attempt) : NULL;
	bool counted = row && e->life != cl->life && n < row->seen;
	if (counted && (e->type == EV_BATCH_STARTED || e->type == EV_BATCH_DONE))
		return; /* its seconds stand in the row */
	if (e->type == EV_WORKERS_FAILED && e->number == CARD_UNFIT && ev.pod >= 0 && !cl->reaping)
		card_told(cl, &cl->sim->machines[machine]);
	if (ev.pod >= 0 && !cl->reaping)
		send_event(cl, &ev, e->kind);
}

static void replay(struct client *cl, int machine)
{
	int life = cl->life;
	size_t count = cl->sim->machines[machine].log_count;

	for (size_t n = *seen_of(cl, machine); n < count && cl->life == life && cl->up; n++)
		entry_heard(cl, machine, n);
}

/* What its workers have in hand, as its agent's hello says. */
static void tell_running(struct client *cl, int machine, int pod)
{
	int life = cl->life;

	for (int w = 0; w < SLOTS_MAX; w++) {
		struct machine *m = &cl->sim->machines[machine];
		if (m->worker_work[w] < 0)
			continue;
		struct work k = m->works[m->worker_work[w]];
		for (size_t n = k.next; n < k.count && cl->life == life && cl->up; n++) {
			struct event ev = {.type = EV_RUNNING,
					   .pod = pod,
					   .segment = k.segments[n],
					   .t = cl->sim->now - m->created};
			send_event(cl, &ev, ERR_NONE);
		}
	}
}

static void reached(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_CONNECT_FAILED,
			   .pod = h->pod,
			   .t = boot_now(cl) - cl->sim->plan->rtt_ms};
	struct machine *m = machine_of(cl, h->pod);
	int machine = (int)(m - cl->sim->machines), life = cl->life;

	if (core_pod_at(cl->core, h->pod)->phase != POD_CONNECTING)
		return;
	if (m->is_over || !m->running || m->unreachable || m->cut_until > cl->sim->now) {
		send_event(cl, &ev, ERR_NETWORK);
		return;
	}
	if (m->bad_key) {
		send_event(cl, &ev, ERR_UNTRUSTED);
		return;
	}
	pod_attach(cl->sim, m);
	if (cl->sim->plan->replay_first)
		replay(cl, machine);
	if (cl->life != life || !cl->up || cl->sim->broken[0])
		return;
	m = &cl->sim->machines[machine];
	tell_running(cl, machine, h->pod);
	if (cl->life != life || !cl->up || cl->sim->broken[0])
		return;
	m = &cl->sim->machines[machine];
	ev.type = EV_CONNECTED;
	ev.switch_ok = ev.switch_proven = !m->bad_switch;
	ev.gpus = !m->no_gpu;
	ev.workers_alive = m->workers_ready > 0;
	pod_stream(cl->sim, m, *seen_of(cl, machine));
	send_event(cl, &ev, ERR_NONE);
}

static bool check_is_bad(struct client *cl, uint32_t segment)
{
	if (cl->bad_checks[segment] <= 0)
		return false;
	cl->bad_checks[segment]--;
	cl->sim->hit[F_CHECK_BAD] = cl->spoilt = true;
	return true;
}

/* It is here, and what its hash says. */
void client_home(struct client *cl, int pod, uint32_t segment)
{
	struct event ev = {.type = EV_HOME,
			   .pod = pod,
			   .segment = segment,
			   .ok = true,
			   .check_ok = !check_is_bad(cl, segment)};

	send_event(cl, &ev, ERR_NONE);
}

static void fetched(struct client *cl, struct happening *h)
{
	struct machine *m = &cl->sim->machines[h->machine];
	struct event ev = {.type = EV_HOME_FAILED, .pod = h->pod, .segment = h->segment};

	if (!h->y && h->conn != m->conn)
		return; /* with the connection */
	if (strikes(cl->sim, F_FETCH_UNTRUSTED)) {
		cl->spoilt = true;
		send_event(cl, &ev, ERR_UNTRUSTED);
	} else if (strikes(cl->sim, F_FETCH_DROPS)) {
		send_event(cl, &ev, ERR_NETWORK);
	} else if (!m->files[h->segment]) {
		broke(cl->sim, "a fetch of a file that never was");
	} else {
		client_home(cl, h->pod, h->segment);
	}
}

static void kept(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_SAFE, .pod = h->pod, .segment = h->segment};

	if (strikes(cl->sim, F_DISK_FULL)) {
		ev.type = EV_HOME_FAILED;
		send_event(cl, &ev, ERR_LOCAL);
		return;
	}
	if (cl->safe[h->segment])
		broke(cl->sim, "segment %u is kept twice", h->segment);
	cl->safe[h->segment] = !plant(PLANT_KEEP_LOST);
	cl->good_safe = cl->good_safe || !h->x;
	send_event(cl, &ev, ERR_NONE);
	if (plant(PLANT_FETCH_AGAIN) && cl->up)
		fetch(cl, &(struct action){
				  .pod = h->pod, .segment = h->segment, .provider = h->provider});
}

static void salvaged(struct client *cl, struct happening *h)
{
	struct machine *m = machine_of(cl, h->pod);
	int life = cl->life;
	struct event over = {.type = EV_SALVAGED, .pod = h->pod};

	if (strikes(cl->sim, F_SALVAGE_FAILS)) {
		cl->spoilt = true;
		send_event(cl, &over, ERR_NETWORK);
		return;
	}
	for (size_t n = 0; n < m->log_count && cl->life == life && cl->up; n++) {
		struct event ev = {.type = EV_RENDERED,
				   .pod = h->pod,
				   .segment = m->log[n].segment,
				   .t = m->log[n].t,
				   .elapsed_ms = m->log[n].elapsed_ms};
		if (m->log[n].type == EV_RENDERED && !plant(PLANT_VOLUME_FORGOTTEN))
			send_event(cl, &ev, ERR_NONE);
	}
	if (cl->life == life && cl->up)
		send_event(cl, &over, ERR_NONE);
}

static void synced(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_SYNCED, .pod = h->pod, .number = (int)h->x, .ok = h->y};

	if (h->conn == cl->sim->machines[h->machine].conn)
		send_event(cl, &ev, ERR_NONE);
}

/* Asked for by its id: what lists omit is seen. */
static void inspected(struct client *cl, struct happening *h)
{
	const struct machine *m = machine_of(cl, h->pod);
	struct pod_view view = {.state = POD_STATE_GONE};
	struct event ev = {.type = EV_INSPECTED,
			   .pod = h->pod,
			   .provider = h->provider,
			   .views = &view,
			   .count = 1,
			   .asked_at = h->x};

	if (m)
		view = cloud_view(cl->sim, m);
	else
		COPY_TEXT(view.id, core_pod_at(cl->core, h->pod)->id);
	send_event(cl, &ev, h->kind);
}

/* Its image is pulled bit by bit until it runs. */
static void log_read(struct client *cl, struct happening *h)
{
	const struct machine *m = machine_of(cl, h->pod);
	struct event ev = {.type = EV_LOG, .pod = h->pod, .provider = h->provider, .number = 1};

	if (m && (m->never_runs || m->failed || m->running))
		ev.number = 0;
	send_event(cl, &ev, h->kind ? h->kind : m && m->is_over ? ERR_NOT_FOUND : ERR_NONE);
}

static void mark_host(struct client *cl, const struct action *a, int64_t at)
{
	const struct core_pod *p = core_pod_at(cl->core, a->pod);
	const struct vendor_plan *v = &cl->sim->plan->vendors[p->provider];

	if (at && p->id[0] && machine_of(cl, a->pod)->queued && !machine_of(cl, a->pod)->is_over)
		broke(cl->sim, "pod %s is called a bad host, and it waits for a machine", p->id);
	if (wire_mark_host(cl, a->pod, at))
		return;
	for (int i = 0; i < v->offer_count; i++)
		if (!strcmp(v->offers[i].id, p->offer.id))
			cl->laptop->bad_at[p->provider][i] = at;
}

static void created(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_RENTED, .pod = h->pod, .provider = h->provider};
	struct pod_view view = {.state = POD_STATE_CREATING};

	if (h->kind != ERR_NONE) {
		ev.type = EV_RENT_FAILED;
		send_event(cl, &ev, h->kind);
		return;
	}
	const struct machine *m = &cl->sim->machines[h->machine];
	COPY_TEXT(view.id, m->id);
	view.price_microusd_h = plant(PLANT_PRICE_UNSEEN) ? 0 : m->price;
	if (!cl->sim->plan->vendors[m->vendor].vague && m->running) {
		view.state = POD_STATE_RUNNING;
		view.port = 22;
	}
	ev.views = &view;
	ev.count = 1;
	send_event(cl, &ev, ERR_NONE);
}

static void listed(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_LISTED,
			   .provider = h->provider,
			   .views = h->data,
			   .count = h->count,
			   .asked_at = h->x};

	cl->list_failed[h->provider] = h->kind ? boot_now(cl) : 0;
	ev.ahead_ms = cl->laptop->wall_offset;
	ev.clock_known = true;
	send_event(cl, &ev, h->kind);
	if (h->kind && plant(PLANT_LIST_PATIENT))
		cl->core->vendors[h->provider].list_not_before =
			cl->core->vendors[h->provider].list_at = boot_now(cl) + 600000;
}

static void offered(struct client *cl, struct happening *h)
{
	const struct vendor_plan *v = &cl->sim->plan->vendors[h->provider];
	struct offer_past past[4] = {0};
	struct offer offers[4];
	struct event ev = {.type = EV_OFFERS,
			   .provider = h->provider,
			   .offers = offers,
			   .count = (size_t)v->offer_count,
			   .past = past};

	for (int i = 0; i < v->offer_count; i++) {
		int64_t at = cl->laptop->bad_at[h->provider][i];
		offers[i] = v->offers[i];
		offers[i].price_microusd_h = cl->sim->prices[h->provider][i];
		past[i].boot_ms = cl->sim->plan->knows_boots ? v->boot_ms : 0;
		past[i].bad_at_ms = at;
		past[i].bad_until_ms = at ? at + 1800000 : 0;
		if (cl->laptop->unfit[h->provider][i])
			COPY_TEXT(past[i].unfit, "no kernels");
	}
	if (h->kind) {
		send_event(cl, &ev, h->kind);
		return;
	}
	if (strikes(cl->sim, F_OFFERS_FAIL)) {
		cl->retry_ms = cloud_patience(v);
		send_event(cl, &ev, ERR_TRANSIENT);
		return;
	}
	if (strikes(cl->sim, F_OFFERS_EMPTY))
		ev.count = 0;
	send_event(cl, &ev, ERR_NONE);
}

static void volume_found(struct client *cl, struct happening *h)
{
	struct volume v = {.id = "vol",
			   .name = "cache",
			   .used_bytes = -1,
			   .apart = cl->sim->plan->vendors[h->provider].apart};
	struct event ev = {.type = EV_VOLUME, .provider = h->provider, .volume = &v};

	enum err_kind kind = h->kind                            ? h->kind
			     : strikes(cl->sim, F_VOLUME_FAILS) ? ERR_TRANSIENT
								: ERR_NONE;

	if (!kind && h->x)
		cl->sim->has_volume[h->provider] = true;
	if (!kind && !cl->sim->has_volume[h->provider])
		kind = ERR_NOT_FOUND;
	send_event(cl, &ev, kind);
}

static void image_built(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_IMAGE, .provider = h->provider};

	send_event(cl, &ev,
		   h->kind                            ? h->kind
		   : strikes(cl->sim, F_VOLUME_FAILS) ? ERR_TRANSIENT
						      : ERR_NONE);
}

static void signalled(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_SIGNAL, .number = h->x % 2 ? 2 : 15};

	cl->sim->hit[F_SIGNAL] = true;
	send_event(cl, &ev, ERR_NONE);
}

static void client_fault(struct client *cl, enum err_kind kind)
{
	struct event ev = {.type = EV_FAULT};

	send_event(cl, &ev, kind);
}

static void about_machine(struct client *cl, struct happening *h, enum event_type type)
{
	struct event ev = {.type = type, .pod = pod_of(cl, h->machine)};
	const struct machine *m = &cl->sim->machines[h->machine];

	if (ev.pod < 0 || (type == EV_LOST ? h->conn + 1 != m->conn : h->conn != m->conn))
		return;
	send_event(cl, &ev, type == EV_LOST ? ERR_NETWORK : h->kind);
}

void client_hears(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_RELEASED, .pod = h->pod};

	account_heard(cl, h);
	plant_heard(cl, h);
	cl->retry_ms = h->retry_ms;
	switch (h->what) {
	case W_OFFERS: offered(cl, h); break;
	case W_VOLUME: volume_found(cl, h); break;
	case W_IMAGE: image_built(cl, h); break;
	case W_CREATED: created(cl, h); break;
	case W_SAVE_FAILED:
		ev.type = EV_RENT_FAILED;
		if (h->pod >= 0)
			send_event(cl, &ev, ERR_LOCAL);
		else if (!cl->reaping)
			client_fault(cl, ERR_LOCAL);
		break;
	case W_LISTED: listed(cl, h); break;
	case W_REACHED: reached(cl, h); break;
	case W_LOST: about_machine(cl, h, EV_LOST); break;
	case W_SHARED: about_machine(cl, h, EV_SHARED_READY); break;
	case W_PREPARE_FAILED: about_machine(cl, h, EV_PREPARE_FAILED); break;
	case W_ENTRY:
		if (h->conn == cl->sim->machines[h->machine].conn)
			entry_heard(cl, h->machine, (size_t)h->x);
		break;
	case W_FETCHED: fetched(cl, h); break;
	case W_KEPT: kept(cl, h); break;
	case W_SALVAGED: salvaged(cl, h); break;
	case W_SYNCED: synced(cl, h); break;
	case W_LOG: log_read(cl, h); break;
	case W_INSPECTED: inspected(cl, h); break;
	case W_WIRE_REPLY:
	case W_WIRE_AGAIN: wire_hears(cl, h); break;
	case W_RELEASED:
		ev.number = (int)h->x;
		send_event(cl, &ev, h->kind);
		break;
	case W_SIGNAL: signalled(cl, h); break;
	case W_ROOM: account_room(cl, h); break;
	case W_BILLED: client_leaves(cl); break;
	case W_CRASH:
		client_crash(cl, &(struct fault){.kind = F_CRASH_FOREVER, .x = (int)h->x});
		break;
	default: break;
	}
}

void client_tick(struct client *cl)
{
	struct event ev = {.type = EV_TICK};

	step(cl, &ev);
}

void client_sleeps(struct client *cl)
{
	cl->asleep_from = bill(cl);
	cloud_alone(cl, true);
}

/* What its pods took meanwhile, while they were rented by a higher cap, is spent: not what was
 * beyond the later one before. */
void client_slept(struct client *cl)
{
	struct event ev = {.type = EV_SLEPT};

	if (!cl->up)
		return;
	int64_t beyond = MAX(cl->asleep_from - MAX(cl->cap_now, cl->metered), 0);
	cl->metered = MAX(cl->metered, bill(cl) - beyond);
	cloud_alone(cl, false);
	send_event(cl, &ev, ERR_NONE);
}
