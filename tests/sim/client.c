/* client.c - burst itself as the core sees it: carries actions, tells what came of them, keeps the ledger, dies and comes
 * back; and after each step holds the core to what it must guarantee. */
#include "sim.h"

#include <stdlib.h>
#include <time.h>

#include "orchestrator/base/clock.h"

int64_t boot_now(const struct sim *s)
{
	return s->now + s->boot_offset;
}

int64_t wall_now(const struct sim *s)
{
	return WALL_EPOCH_MS + s->now + s->wall_offset;
}

static struct machine *machine_of(struct sim *s, int pod)
{
	return cloud_machine(s, core_pod_at(s->core, pod)->id);
}

static int pod_of(struct sim *s, int machine)
{
	for (int i = 0; i < core_pod_count(s->core); i++)
		if (machine_of(s, i) == &s->machines[machine])
			return i;
	return -1;
}

static size_t *seen_of(struct sim *s, int machine)
{
	while ((size_t)machine >= s->seen_cap) {
		s->seen = xrealloc(s->seen, 2 * s->seen_cap * sizeof(*s->seen));
		memset(s->seen + s->seen_cap, 0, s->seen_cap * sizeof(*s->seen));
		s->seen_cap *= 2;
	}
	return &s->seen[machine];
}

/* ---- the ledger ---- */

static struct row *row_of(struct sim *s, const char *attempt)
{
	for (size_t i = 0; i < s->row_count; i++)
		if (!strcmp(s->rows[i].pod.attempt, attempt))
			return &s->rows[i];
	return NULL;
}

static bool save(struct sim *s, int pod)
{
	const struct core_pod *p = core_pod_at(s->core, pod);
	struct row *row = row_of(s, p->attempt);

	if (strikes(s, F_LEDGER_FULL)) {
		struct happening *h = later(s, 1, W_SAVE_FAILED);
		h->pod = p->phase == POD_RENTING && !p->id[0] ? pod : -1;
		if (h->pod >= 0)
			s->unsaved[pod] = true;
		return false;
	}
	if (row && row->pod.id[0] && strcmp(row->pod.id, p->id) != 0)
		broke(s, "the row of pod %s is written over with pod %s", row->pod.id, p->id);
	if (!row) {
		GROW(s->rows, s->row_count, s->row_cap);
		row = &s->rows[s->row_count++];
	}
	row->pod = *p;
	row->wall_minus_boot = wall_now(s) - boot_now(s);
	row->seen = p->id[0] ? *seen_of(s, (int)(machine_of(s, pod) - s->machines)) : 0;
	return true;
}

static int64_t moved(int64_t boot, int64_t by)
{
	return boot ? boot + by : 0;
}

/* A row as burst reads it back: what was known, on the clock of this life. */
static struct core_pod from_row(struct sim *s, const struct row *row)
{
	const struct core_pod *o = &row->pod;
	int64_t by = row->wall_minus_boot - (wall_now(s) - boot_now(s));
	struct core_pod p = {.provider = o->provider, .offer = o->offer, .volume = o->volume,
			     .price_microusd_h = o->price_microusd_h, .hard_end_ms = o->hard_end_ms + by,
			     .hard_end_s = o->hard_end_s, .first_lease_end_s = o->first_lease_end_s,
			     .detached = o->detached, .compute_ms = o->compute_ms, .wasted_ms = o->wasted_ms};

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
	p.create_at = moved(o->create_at, by);
	p.rented_at = moved(o->rented_at, by);
	p.running_at = moved(o->running_at, by);
	p.reached_at = moved(o->reached_at, by);
	p.connected_at = moved(o->connected_at, by);
	p.synced_at = moved(o->synced_at, by);
	p.ready_at = moved(o->ready_at, by);
	return p;
}

static int64_t spent_before(const struct sim *s)
{
	int64_t sum = 0;

	for (size_t i = 0; i < s->row_count; i++) {
		const struct core_pod *p = &s->rows[i].pod;
		if (p->phase == POD_GONE)
			sum += money_for(p->price_microusd_h, (p->gone_at - p->create_at + 999) / 1000 * 1000);
	}
	return sum;
}

/* ---- stepping, and what must hold after each step ---- */

static void perform(struct sim *s);
static void mark_host(struct sim *s, const struct action *a, int64_t at);
static void check_step(struct sim *s, const struct event *ev);

static void count_events(struct sim *s)
{
	if (s->now / 1000 != s->busy_second)
		s->busy_events = 0;
	s->busy_second = s->now / 1000;
	if (++s->busy_events > 3000 && !s->measuring)
		broke(s, "more than 3000 events in one second");
	if (++s->events > 300000 && !s->measuring)
		broke(s, "300000 events and no end");
}

static void step(struct sim *s, struct event *ev)
{
	struct timespec a, b;

	if (!s->up)
		return;
	ev->now_ms = boot_now(s);
	ev->wall_ms = wall_now(s);
	s->out.count = 0;
	if (s->measuring)
		clock_gettime(CLOCK_MONOTONIC, &a);
	core_step(s->core, ev, &s->out);
	if (s->measuring) {
		clock_gettime(CLOCK_MONOTONIC, &b);
		s->core_s += (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
	}
	count_events(s);
	perform(s);
	if (s->up && !s->measuring)
		check_step(s, ev);
}

static bool counted_right(struct sim *s)
{
	const struct core *c = s->core;
	size_t todo = 0, safe = 0, failed = 0;

	for (size_t i = 0; i < c->seg_count; i++) {
		todo += c->segs[i].state == SEG_TODO;
		safe += c->segs[i].state == SEG_SAFE;
		failed += c->segs[i].state == SEG_FAILED;
		if (c->segs[i].state == SEG_SAFE && !s->safe[i])
			broke(s, "segment %zu is called safe and is not", i);
	}
	return todo == c->todo && safe == c->safe && failed == c->failed;
}

static bool pod_counted_right(const struct core *c, int pod)
{
	int unhome = 0, batches = 0;

	for (size_t i = 0; i < c->seg_count; i++)
		unhome += c->segs[i].state == SEG_RENDERED && c->segs[i].pod == pod;
	for (size_t i = 0; i < c->batch_count; i++)
		batches += c->batches[i].pod == pod && !c->batches[i].over;
	return unhome == c->pods[pod].unhome && batches == c->pods[pod].batches;
}

static void check_pod(struct sim *s, int pod)
{
	const struct core *c = s->core;
	const struct core_pod *p = &c->pods[pod];
	bool bare = p->batches == 0 && p->unhome == 0;
	bool canary_waits = !c->canary_ok && c->canary_sent && !core_stopping(c);

	if (!pod_counted_right(c, pod))
		broke(s, "pod %d: batches %d, not home %d: miscounted", pod, p->batches, p->unhome);
	if (p->phase >= POD_RELEASING || p->unwanted)
		return;
	if ((p->phase == POD_BOOTING || p->phase == POD_CONNECTING) && p->boot_limit_ms && !p->connected_at && !s->ever_slept &&
	    c->now > p->create_at + 2 * c->conf.boot_limit_ms + LOG_WAIT_MS)
		broke(s, "pod %d is not up after %lld s and is waited for", pod, (long long)(c->now - p->create_at) / 1000);
	if (bare && !c->todo && c->started)
		broke(s, "pod %d (%s) has nothing to do and is kept", pod, pod_phase_name(p->phase));
	if (p->phase == POD_WORKING && p->connected && bare && !p->draining && !core_stopping(c) && !canary_waits &&
	    !core_reads_old(c))
		broke(s, "pod %d starves beside %zu open segments", pod, c->todo);
	if (p->hard_end_ms > p->create_at + 24 * (int64_t)HOUR_MS)
		broke(s, "pod %d may live for more than a day", pod);
	if (s->plan->conf.max_duration_ms && !s->ever_crashed &&
	    p->hard_end_ms > c->began_at + s->plan->conf.max_duration_ms)
		broke(s, "pod %d may outlive caps.max_duration", pod);
}

static void check_step(struct sim *s, const struct event *ev)
{
	const struct core *c = s->core;

	if (c->ended)
		return;
	if (!counted_right(s))
		broke(s, "segments miscounted after event %d", (int)ev->type);
	for (int i = 0; i < c->pod_count; i++)
		check_pod(s, i);
	bool settled = dispatch_settled(c) || core_stopping(c);
	if (!settled)
		s->settled_at = -1;
	else if (s->settled_at < 0)
		s->settled_at = s->now;
	if (s->settled_at >= 0 && s->now - s->settled_at > 15 * 60000 && !s->ever_slept)
		broke(s, "the work is over since %lld s and the run does not end",
		      (long long)(s->now - s->settled_at) / 1000);
}

/* ---- lives ---- */

static struct core_conf conf_now(struct sim *s, bool reap)
{
	struct core_conf conf = s->plan->conf;
	bool any_safe = false;

	conf.seed = sim_random(s);
	conf.reap = reap;
	for (size_t i = 0; i < s->row_count; i++)
		conf.providers[s->rows[i].pod.provider].used_before = true;
	for (size_t i = 0; i < s->plan->count; i++)
		any_safe = any_safe || (s->safe[i] && !s->plan->segments[i].done);
	conf.canary = conf.canary && !any_safe;
	if (conf.max_cost_microusd) {
		conf.max_cost_microusd -= spent_before(s);
		if (!conf.max_cost_microusd)
			conf.max_cost_microusd = -1;
	}
	if (conf.max_duration_ms)
		conf.max_duration_ms = MAX(conf.max_duration_ms - s->now, 1);
	return conf;
}

static void adopt_rows(struct sim *s)
{
	for (size_t i = 0; i < s->row_count; i++) {
		const struct core_pod *had = &s->rows[i].pod;
		if (!pod_may_bill(had) && (!had->durable || had->phase != POD_GONE || s->core->conf.reap))
			continue;
		struct core_pod p = from_row(s, &s->rows[i]);
		core_adopt(s->core, &p);
	}
}

void client_start(struct sim *s, bool reap)
{
	struct core_segment *segments = xcalloc(s->plan->count, sizeof(*segments));
	struct core_conf conf = conf_now(s, reap);

	for (size_t i = 0; i < s->plan->count; i++) {
		segments[i] = s->plan->segments[i];
		segments[i].done = s->safe[i];
	}
	s->core = core_new(&conf, segments, reap ? 0 : s->plan->count);
	free(segments);
	adopt_rows(s);
	s->up = true;
	s->reaping = reap;
	s->good_safe = false;
	s->settled_at = -1;
	s->seen_cap = s->unsaved_cap = 0;
	free(s->seen);
	free(s->unsaved);
	s->unsaved_cap = 64;
	s->seen_cap = 64;
	s->seen = xcalloc(s->seen_cap, sizeof(*s->seen));
	s->unsaved = xcalloc(s->unsaved_cap, sizeof(*s->unsaved));
	trace(s, "client: life %d begins%s", s->life, reap ? " (reap)" : "");
	struct event ev = {.type = EV_START};
	step(s, &ev);
}

static void client_dies(struct sim *s)
{
	core_free(s->core);
	s->core = NULL;
	s->up = false;
	s->life++;
	for (size_t i = 0; i < s->machine_count; i++)
		if (s->machines[i].connected) {
			s->machines[i].connected = false;
			s->machines[i].conn++;
		}
}

void client_crash(struct sim *s, const struct fault *f)
{
	trace(s, "client: dies (%s)", fault_names[f->kind]);
	client_dies(s);
	s->ever_crashed = true;
	if (f->kind == F_CRASH_FOREVER) {
		s->dead_forever = true;
		return;
	}
	int64_t away = 1000 + f->ms % 1200000;
	if (f->x & 1)
		s->boot_offset = 5000 - s->now - away; /* the machine itself began anew */
	later(s, away, W_RESTART)->x = f->kind;
}

static bool crashes_now(struct sim *s)
{
	static const enum fault_kind kinds[] = {F_CRASH_RESUME, F_CRASH_REAP, F_CRASH_FOREVER};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct fault *f = strikes(s, kinds[i]);
		if (f) {
			client_crash(s, f);
			return true;
		}
	}
	return false;
}

/* ---- the end ---- */

static void check_exit(struct sim *s, const struct core_summary *sum)
{
	bool all_safe = true, all_gone = true, open = false;

	for (size_t i = 0; i < s->plan->count; i++)
		all_safe = all_safe && s->safe[i];
	for (size_t i = 0; i < s->machine_count; i++)
		all_gone = all_gone && s->machines[i].is_over;
	for (int i = 0; i < core_pod_count(s->core); i++)
		open = open || pod_may_bill(core_pod_at(s->core, i));
	if (s->exit_status != 9 && !all_gone)
		broke(s, "exit %d, and a pod still lives", s->exit_status);
	if (s->exit_status == 9 && !open)
		broke(s, "exit 9, and no pod is in doubt");
	if (s->exit_status != 9 && open)
		broke(s, "exit %d, and a pod is in doubt", s->exit_status);
	if (s->exit_status == 0 && !all_safe && !s->reaping)
		broke(s, "exit 0, and a segment is missing");
	if (s->core->signals && s->exit_status != 9 && s->exit_status != 130 && s->exit_status != 143)
		broke(s, "exit %d after a signal", s->exit_status);
	if (!s->core->signals && all_safe && !s->core->canary_bad_all && s->exit_status != 0 && s->exit_status != 9)
		broke(s, "exit %d, and all went well: %s", s->exit_status, sum->err.msg);
	if (s->exit_status != 0 && !sum->err.msg[0])
		broke(s, "exit %d without a word", s->exit_status);
}

static void end(struct sim *s)
{
	struct core_summary sum;

	core_summary(s->core, boot_now(s), &sum);
	s->exit_status = err_exit_status(&sum.err);
	trace(s, "client: ends: %s, exit %d (%s)", sum.status, s->exit_status, sum.err.msg);
	for (int i = 0; i < core_pod_count(s->core); i++) {
		const struct core_pod *p = core_pod_at(s->core, i);
		if (p->compute_ms > core_billed_ms(p, boot_now(s)) && !s->wall_error)
			broke(s, "pod %s: computed %lld ms, billed %lld", p->id, (long long)p->compute_ms,
			      (long long)core_billed_ms(p, boot_now(s)));
	}
	check_exit(s, &sum);
	s->ended_at = s->now;
	client_dies(s);
}

/* ---- actions ---- */

static struct happening *ask(struct sim *s, const struct action *a, int64_t delay, enum what what)
{
	struct happening *h = later(s, delay, what);

	h->pod = a->pod;
	h->provider = a->provider;
	h->segment = a->segment;
	h->batch = a->batch;
	return h;
}

static int64_t api(struct sim *s, const struct action *a)
{
	return s->plan->vendors[a->provider].latency_ms;
}

static int active_now(struct sim *s, int but)
{
	int active = 0;

	for (int i = 0; i < core_pod_count(s->core); i++)
		active += i != but && pod_active(core_pod_at(s->core, i));
	return active;
}

static void check_rent(struct sim *s, const struct core_pod *p, int pod)
{
	const struct row *row = row_of(s, p->attempt);

	if (!row || row->pod.hard_end_s != p->hard_end_s)
		broke(s, "create without a row of its intent");
	for (size_t i = 0; i < s->create_count; i++)
		if (!strcmp(s->creates[i].attempt, p->attempt))
			broke(s, "attempt %s is used twice", p->attempt);
	if (s->plan->conf.canary && !s->good_safe && s->core->canary_ok && !s->ever_crashed)
		broke(s, "the canary counts as good before a good segment is safe");
	int active = active_now(s, pod);
	if (active && !s->core->canary_ok)
		broke(s, "a second pod before the canary");
	if (active >= s->plan->conf.pods)
		broke(s, "wider than pods = %d", s->plan->conf.pods);
	if (core_stopping(s->core))
		broke(s, "a create while stopping");
	if (s->plan->conf.max_cost_microusd && budget_committed(s->core) > s->core->conf.max_cost_microusd)
		broke(s, "rented beyond the cap");
	if (p->first_lease_end_s > p->hard_end_s)
		broke(s, "the first lease is longer than the hard end");
}

static void rent(struct sim *s, const struct action *a)
{
	const struct core_pod *p = core_pod_at(s->core, a->pod);

	if (s->unsaved[a->pod]) /* the intent could not be written: W_SAVE_FAILED says so */
		return;
	check_rent(s, p, a->pod);
	GROW(s->creates, s->create_count, s->create_cap);
	struct create *c = &s->creates[s->create_count++];
	*c = (struct create){.provider = p->provider, .offer = atoi(p->offer.id), .hard_end_s = p->hard_end_s,
			     .first_lease_end_s = p->first_lease_end_s};
	COPY_TEXT(c->attempt, p->attempt);
	ask(s, a, api(s, a), W_CREATE)->x = (int64_t)s->create_count - 1;
}

/* Rendered by a pod that was let go because all of its work was durable: only what was found bad is rendered again. */
static bool on_a_volume(struct sim *s, uint32_t segment)
{
	if (s->hit[F_CHECK_BAD] || s->hit[F_FETCH_UNTRUSTED] || s->hit[F_SALVAGE_FAILS] || s->hit[F_LEDGER_FULL])
		return false;
	for (size_t i = 0; i < s->row_count; i++) {
		const struct core_pod *p = &s->rows[i].pod;
		if (!p->durable || !p->id[0])
			continue;
		for (size_t k = 0; k < s->machine_count; k++)
			if (!strcmp(s->machines[k].id, p->id) && s->machines[k].files && s->machines[k].files[segment])
				return true;
	}
	return false;
}

static void command(struct sim *s, const struct action *a, enum command what)
{
	struct machine *m = machine_of(s, a->pod);

	const struct core_pod *p = core_pod_at(s->core, a->pod);
	if (!p->connected && p->phase >= POD_RELEASING)
		return; /* said before the connection was dropped in the same step: nobody hears it */
	if (!p->connected)
		broke(s, "a command (%d) to a pod without a connection", (int)what);
	if (!m)
		return;
	struct happening *h = ask(s, a, s->plan->rtt_ms / 2, W_COMMAND);
	h->machine = (int)(m - s->machines);
	h->conn = m->conn;
	h->x = what;
	h->y = a->flag;
	if (what != C_SEND)
		return;
	const struct core_batch *b = core_batch_at(s->core, a->batch);
	uint32_t *segments = xcalloc(b->count, sizeof(*segments));
	memcpy(segments, b->segments, b->count * sizeof(*segments));
	h->data = segments;
	h->count = b->count;
	for (size_t i = 0; i < b->count; i++) {
		if (s->safe[segments[i]])
			broke(s, "segment %u is safe and is rendered again", segments[i]);
		else if (on_a_volume(s, segments[i]))
			broke(s, "segment %u is safe on a volume and is rendered again", segments[i]);
	}
	if (b->count > (size_t)MAX(s->core->conf.max_batch, 1) || !b->count)
		broke(s, "a batch of %zu segments", b->count);
}

static void fetch(struct sim *s, const struct action *a)
{
	const struct core_pod *p = core_pod_at(s->core, a->pod);
	struct machine *m = machine_of(s, a->pod);

	if (s->safe[a->segment])
		broke(s, "segment %u is safe and is fetched again", a->segment);
	if (!p->via_volume && !p->connected)
		broke(s, "a fetch from a pod without a connection");
	struct happening *h = ask(s, a, p->via_volume ? api(s, a) : s->plan->rtt_ms + pick(s, 0, 30), W_FETCHED);
	h->machine = (int)(m - s->machines);
	h->conn = m->conn;
	h->y = p->via_volume;
}

/* Syncing takes a while, and now and then the little that is left is waited for. */
static void sync_volume(struct sim *s, const struct action *a)
{
	struct machine *m = machine_of(s, a->pod);
	const struct core_pod *p = core_pod_at(s->core, a->pod);

	if (!p->connected || !m)
		broke(s, "a sync of a pod without a connection");
	if (!m)
		return;
	struct happening *h = ask(s, a, s->plan->rtt_ms + pick(s, 0, 500), W_SYNCED);
	h->machine = (int)(m - s->machines);
	h->conn = m->conn;
	h->x = a->number;
	h->y = pick(s, 0, 9) > 1;
}

static void release(struct sim *s, const struct action *a)
{
	struct machine *m = machine_of(s, a->pod);

	if (!m) {
		broke(s, "a release without an id");
		return;
	}
	ask(s, a, api(s, a), W_RELEASE)->machine = (int)(m - s->machines);
}

static void close_connection(struct sim *s, const struct action *a)
{
	struct machine *m = machine_of(s, a->pod);

	if (m && m->connected) {
		m->connected = false;
		m->conn++;
	}
}

static void act(struct sim *s, const struct action *a)
{
	switch (a->type) {
	case ACT_OFFERS: ask(s, a, 2 * api(s, a), W_OFFERS); break;
	case ACT_VOLUME: ask(s, a, 2 * api(s, a), W_VOLUME); break;
	case ACT_IMAGE: ask(s, a, 2 * api(s, a) + s->plan->vendors[a->provider].boot_ms, W_IMAGE); break;
	case ACT_SAVE: save(s, a->pod); break;
	case ACT_RENT: rent(s, a); break;
	case ACT_LIST: ask(s, a, api(s, a), W_LIST)->x = boot_now(s); break;
	case ACT_LOG: ask(s, a, 2 * api(s, a) + 4000, W_LOG); break;
	case ACT_BAD_HOST: mark_host(s, a, wall_now(s)); break;
	case ACT_GOOD_HOST: mark_host(s, a, 0); break;
	case ACT_CONNECT: ask(s, a, 3 * s->plan->rtt_ms, W_REACHED); break;
	case ACT_PREPARE: command(s, a, C_PREPARE); break;
	case ACT_SEND: command(s, a, C_SEND); break;
	case ACT_REVOKE: command(s, a, C_REVOKE); break;
	case ACT_RENEW: command(s, a, C_RENEW); break;
	case ACT_HANDOVER:
		if (!row_of(s, core_pod_at(s->core, a->pod)->attempt)->pod.detached && !s->counts[F_LEDGER_FULL])
			broke(s, "handed over before the ledger knows");
		command(s, a, C_HANDOVER);
		break;
	case ACT_TAKEOVER: command(s, a, C_TAKEOVER); break;
	case ACT_FETCH: fetch(s, a); break;
	case ACT_KEEP: ask(s, a, s->plan->keep_latency_ms, W_KEPT)->x = a->flag; break;
	case ACT_DISCARD: break;
	case ACT_SALVAGE: ask(s, a, 2 * api(s, a), W_SALVAGED); break;
	case ACT_SYNC: sync_volume(s, a); break;
	case ACT_RELEASE: release(s, a); break;
	case ACT_CLOSE: close_connection(s, a); break;
	case ACT_NOTE: break;
	case ACT_END: end(s); break;
	}
}

static const char *action_name(enum action_type type)
{
	static const char *const names[] = {"OFFERS", "VOLUME", "SAVE", "RENT", "LIST", "LOG", "BAD_HOST",
					    "GOOD_HOST", "CONNECT", "PREPARE", "SEND", "REVOKE",
					    "RENEW", "HANDOVER", "TAKEOVER", "FETCH", "KEEP", "DISCARD", "SALVAGE", "SYNC", "RELEASE", "CLOSE",
					    "NOTE", "END"};

	return names[type];
}

static void perform(struct sim *s)
{
	int life = s->life;

	while ((size_t)core_pod_count(s->core) > s->unsaved_cap) {
		s->unsaved = xrealloc(s->unsaved, 2 * s->unsaved_cap * sizeof(*s->unsaved));
		memset(s->unsaved + s->unsaved_cap, 0, s->unsaved_cap * sizeof(*s->unsaved));
		s->unsaved_cap *= 2;
	}
	for (size_t i = 0; i < s->out.count && s->life == life; i++) {
		struct action *a = &s->out.list[i];
		if (crashes_now(s))
			return;
		s->actions++;
		if (s->tracing && a->type == ACT_SEND) {
			const struct core_batch *b = core_batch_at(s->core, a->batch);
			trace(s, "  -> SEND pod %d batch %u: %zu segments from %u", a->pod, a->batch, b->count, b->segments[0]);
		} else if (s->tracing) {
			trace(s, "  -> %s pod %d provider %d segment %u %s", action_name(a->type), a->pod, a->provider,
			      a->segment, a->text);
		}
		act(s, a);
	}
}

/* ---- what came of them ---- */

static struct err trouble(enum err_kind kind)
{
	struct err err = {0};

	err_set(&err, kind, "trouble: %s", err_kind_name(kind));
	if (kind == ERR_RATE_LIMITED)
		err.retry_after_ms = 5000;
	return err;
}

static void send_event(struct sim *s, struct event *ev, enum err_kind kind)
{
	struct err err = trouble(kind);

	if (kind != ERR_NONE)
		ev->err = &err;
	trace(s, "event %d pod %d provider %d segment %u batch %d%s%s", (int)ev->type, ev->pod, ev->provider, ev->segment,
	      (int)ev->batch, kind ? " " : "", kind ? err.msg : "");
	step(s, ev);
}

static void entry_heard(struct sim *s, int machine, size_t n)
{
	const struct entry *e = &s->machines[machine].log[n];
	struct event ev = {.type = e->type, .pod = pod_of(s, machine), .segment = e->segment, .t = e->t,
			   .batch = e->life == s->life ? e->batch : UINT32_MAX, .elapsed_ms = e->elapsed_ms,
			   .number = e->number};

	size_t *seen = seen_of(s, machine);
	if (n != *seen)
		return;
	(*seen)++;
	const struct row *row = ev.pod >= 0 ? row_of(s, core_pod_at(s->core, ev.pod)->attempt) : NULL;
	bool counted = row && e->life != s->life && n < row->seen;
	if (counted && (e->type == EV_BATCH_STARTED || e->type == EV_BATCH_DONE))
		return; /* its seconds stand in the row */
	if (ev.pod >= 0 && !s->reaping)
		send_event(s, &ev, e->kind);
}

static void replay(struct sim *s, int machine)
{
	int life = s->life;
	size_t count = s->machines[machine].log_count;

	for (size_t n = *seen_of(s, machine); n < count && s->life == life && s->up; n++)
		entry_heard(s, machine, n);
}

/* What its workers have in hand, as its agent's hello says. */
static void tell_running(struct sim *s, int machine, int pod)
{
	int life = s->life;

	for (int w = 0; w < WORKERS_MAX; w++) {
		struct machine *m = &s->machines[machine];
		if (m->worker_work[w] < 0)
			continue;
		struct work k = m->works[m->worker_work[w]];
		for (size_t n = k.next; n < k.count && s->life == life && s->up; n++) {
			struct event ev = {.type = EV_RUNNING, .pod = pod, .segment = k.segments[n],
					   .t = s->now - m->created};
			send_event(s, &ev, ERR_NONE);
		}
	}
}

static void reached(struct sim *s, struct happening *h)
{
	struct event ev = {.type = EV_CONNECT_FAILED, .pod = h->pod, .t = boot_now(s) - s->plan->rtt_ms};
	struct machine *m = machine_of(s, h->pod);
	int machine = (int)(m - s->machines), life = s->life;

	if (core_pod_at(s->core, h->pod)->phase != POD_CONNECTING)
		return;
	if (m->is_over || !m->running || m->unreachable || m->cut_until > s->now) {
		send_event(s, &ev, ERR_NETWORK);
		return;
	}
	if (m->bad_key) {
		send_event(s, &ev, ERR_UNTRUSTED);
		return;
	}
	pod_attach(s, m);
	if (s->plan->replay_first)
		replay(s, machine);
	if (s->life != life || !s->up || s->broken[0])
		return;
	m = &s->machines[machine];
	tell_running(s, machine, h->pod);
	if (s->life != life || !s->up || s->broken[0])
		return;
	m = &s->machines[machine];
	ev.type = EV_CONNECTED;
	ev.switch_ok = ev.switch_proven = !m->bad_switch;
	ev.gpus = !m->no_gpu;
	ev.workers_alive = m->workers_ready > 0;
	pod_stream(s, m, *seen_of(s, machine));
	send_event(s, &ev, ERR_NONE);
}

static bool check_is_bad(struct sim *s, uint32_t segment)
{
	if (s->bad_checks[segment] <= 0)
		return false;
	s->bad_checks[segment]--;
	s->hit[F_CHECK_BAD] = true;
	return true;
}

static void fetched(struct sim *s, struct happening *h)
{
	struct machine *m = &s->machines[h->machine];
	struct event ev = {.type = EV_HOME_FAILED, .pod = h->pod, .segment = h->segment};

	if (!h->y && h->conn != m->conn)
		return; /* with the connection */
	if (strikes(s, F_FETCH_UNTRUSTED)) {
		send_event(s, &ev, ERR_UNTRUSTED);
	} else if (strikes(s, F_FETCH_DROPS)) {
		send_event(s, &ev, ERR_NETWORK);
	} else if (!m->files[h->segment]) {
		broke(s, "a fetch of a file that never was");
	} else {
		ev.type = EV_HOME;
		ev.ok = true;
		ev.check_ok = !check_is_bad(s, h->segment);
		send_event(s, &ev, ERR_NONE);
	}
}

static void kept(struct sim *s, struct happening *h)
{
	struct event ev = {.type = EV_SAFE, .pod = h->pod, .segment = h->segment};

	if (strikes(s, F_DISK_FULL)) {
		ev.type = EV_HOME_FAILED;
		send_event(s, &ev, ERR_LOCAL);
		return;
	}
	if (s->safe[h->segment])
		broke(s, "segment %u is kept twice", h->segment);
	s->safe[h->segment] = true;
	s->good_safe = s->good_safe || !h->x;
	send_event(s, &ev, ERR_NONE);
}

static void salvaged(struct sim *s, struct happening *h)
{
	struct machine *m = machine_of(s, h->pod);
	int life = s->life;
	struct event over = {.type = EV_SALVAGED, .pod = h->pod};

	if (strikes(s, F_SALVAGE_FAILS)) {
		send_event(s, &over, ERR_NETWORK);
		return;
	}
	for (size_t n = 0; n < m->log_count && s->life == life && s->up; n++) {
		struct event ev = {.type = EV_RENDERED, .pod = h->pod, .segment = m->log[n].segment,
				   .t = m->log[n].t, .elapsed_ms = m->log[n].elapsed_ms};
		if (m->log[n].type == EV_RENDERED)
			send_event(s, &ev, ERR_NONE);
	}
	if (s->life == life && s->up)
		send_event(s, &over, ERR_NONE);
}

static void synced(struct sim *s, struct happening *h)
{
	struct event ev = {.type = EV_SYNCED, .pod = h->pod, .number = (int)h->x, .ok = h->y};

	if (h->conn == s->machines[h->machine].conn)
		send_event(s, &ev, ERR_NONE);
}

/* Its image is pulled bit by bit until it runs. */
static void log_read(struct sim *s, struct happening *h)
{
	const struct machine *m = machine_of(s, h->pod);
	struct event ev = {.type = EV_LOG, .pod = h->pod, .provider = h->provider, .number = 1};

	if (m && (m->never_runs || m->failed || m->running))
		ev.number = 0;
	send_event(s, &ev, m && m->is_over ? ERR_NOT_FOUND : ERR_NONE);
}

static void mark_host(struct sim *s, const struct action *a, int64_t at)
{
	const struct core_pod *p = core_pod_at(s->core, a->pod);
	const struct vendor_plan *v = &s->plan->vendors[p->provider];

	for (int i = 0; i < v->offer_count; i++)
		if (!strcmp(v->offers[i].id, p->offer.id))
			s->bad_at[p->provider][i] = at;
}

static void created(struct sim *s, struct happening *h)
{
	struct event ev = {.type = EV_RENTED, .pod = h->pod, .provider = h->provider};
	struct pod_view view = {.state = POD_STATE_CREATING};

	if (h->kind != ERR_NONE) {
		ev.type = EV_RENT_FAILED;
		send_event(s, &ev, h->kind);
		return;
	}
	const struct machine *m = &s->machines[h->machine];
	COPY_TEXT(view.id, m->id);
	view.price_microusd_h = m->price;
	if (!s->plan->vendors[m->vendor].vague && m->running) {
		view.state = POD_STATE_RUNNING;
		view.port = 22;
	}
	ev.views = &view;
	ev.count = 1;
	send_event(s, &ev, ERR_NONE);
}

static void listed(struct sim *s, struct happening *h)
{
	struct event ev = {.type = EV_LISTED, .provider = h->provider, .views = h->data, .count = h->count, .asked_at = h->x};

	send_event(s, &ev, h->kind);
}

static void offered(struct sim *s, struct happening *h)
{
	const struct vendor_plan *v = &s->plan->vendors[h->provider];
	struct offer_past past[4] = {0};
	struct event ev = {.type = EV_OFFERS, .provider = h->provider, .offers = v->offers, .count = (size_t)v->offer_count,
			   .past = past};

	for (int i = 0; i < v->offer_count; i++) {
		int64_t at = s->bad_at[h->provider][i];
		past[i].boot_ms = s->plan->knows_boots ? v->boot_ms : 0;
		past[i].bad_at_ms = at;
		past[i].bad_until_ms = at ? at + 1800000 : 0;
	}
	if (strikes(s, F_OFFERS_FAIL)) {
		send_event(s, &ev, ERR_TRANSIENT);
		return;
	}
	if (strikes(s, F_OFFERS_EMPTY))
		ev.count = 0;
	send_event(s, &ev, ERR_NONE);
}

static void volume_found(struct sim *s, struct happening *h)
{
	struct volume v = {.id = "vol", .name = "cache", .used_bytes = -1, .apart = s->plan->vendors[h->provider].apart};
	struct event ev = {.type = EV_VOLUME, .provider = h->provider, .volume = &v};

	send_event(s, &ev, strikes(s, F_VOLUME_FAILS) ? ERR_TRANSIENT : ERR_NONE);
}

static void image_built(struct sim *s, struct happening *h)
{
	struct event ev = {.type = EV_IMAGE, .provider = h->provider};

	send_event(s, &ev, strikes(s, F_VOLUME_FAILS) ? ERR_TRANSIENT : ERR_NONE);
}

static void signalled(struct sim *s, struct happening *h)
{
	struct event ev = {.type = EV_SIGNAL, .number = h->x % 2 ? 2 : 15};

	s->hit[F_SIGNAL] = true;
	send_event(s, &ev, ERR_NONE);
}

void client_fault(struct sim *s, enum err_kind kind)
{
	struct event ev = {.type = EV_FAULT};

	send_event(s, &ev, kind);
}

static void about_machine(struct sim *s, struct happening *h, enum event_type type)
{
	struct event ev = {.type = type, .pod = pod_of(s, h->machine)};
	const struct machine *m = &s->machines[h->machine];

	if (ev.pod < 0 || (type == EV_LOST ? h->conn + 1 != m->conn : h->conn != m->conn))
		return;
	send_event(s, &ev, type == EV_LOST ? ERR_NETWORK : h->kind);
}

void client_hears(struct sim *s, struct happening *h)
{
	struct event ev = {.type = EV_RELEASED, .pod = h->pod};

	switch (h->what) {
	case W_OFFERS: offered(s, h); break;
	case W_VOLUME: volume_found(s, h); break;
	case W_IMAGE: image_built(s, h); break;
	case W_CREATED: created(s, h); break;
	case W_SAVE_FAILED:
		ev.type = EV_RENT_FAILED;
		if (h->pod >= 0)
			send_event(s, &ev, ERR_LOCAL);
		else if (!s->reaping)
			client_fault(s, ERR_LOCAL);
		break;
	case W_LISTED: listed(s, h); break;
	case W_REACHED: reached(s, h); break;
	case W_LOST: about_machine(s, h, EV_LOST); break;
	case W_SHARED: about_machine(s, h, EV_SHARED_READY); break;
	case W_PREPARE_FAILED: about_machine(s, h, EV_PREPARE_FAILED); break;
	case W_ENTRY:
		if (h->conn == s->machines[h->machine].conn)
			entry_heard(s, h->machine, (size_t)h->x);
		break;
	case W_FETCHED: fetched(s, h); break;
	case W_KEPT: kept(s, h); break;
	case W_SALVAGED: salvaged(s, h); break;
	case W_SYNCED: synced(s, h); break;
	case W_LOG: log_read(s, h); break;
	case W_RELEASED: send_event(s, &ev, h->kind); break;
	case W_SIGNAL: signalled(s, h); break;
	default: break;
	}
}

void client_tick(struct sim *s)
{
	struct event ev = {.type = EV_TICK};

	step(s, &ev);
}

void client_slept(struct sim *s)
{
	struct event ev = {.type = EV_SLEPT};

	if (s->up)
		send_event(s, &ev, ERR_NONE);
}
