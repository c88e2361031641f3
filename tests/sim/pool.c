/* pool.c - pods that pass from run to run on one machine. The real engine/pooled.c says which pod
 * serves which run and whose it is, with a ledger in memory; the moments between its transactions
 * are those of the engine. */
#include "pool.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "engine/pooled.h"
#include "ledgers.h"

enum { TAKEN_SEEN_MS = 100, WANTED_MS = 10 * 1000 }; /* as in engine/journal.c and pool.c */

static struct store *ledger(struct client *cl)
{
	if (!cl->laptop->pool)
		cl->laptop->pool = ledger_take();
	return cl->laptop->pool;
}

static void run_name(int number, char name[24])
{
	snprintf(name, 24, "r%d", 1 + number);
}

static struct machine *rented_as(struct client *cl, int pod)
{
	return cloud_machine(cl->sim, core_pod_at(cl->core, pod)->rental.id);
}

bool pool_held(const struct client *cl, const struct machine *m)
{
	return m->held_by & (1u << cl->number);
}

/* ---- the run that has a pod ---- */

/* What its pods can be used for: a run with a volume cannot use pods without one. */
static void describe(const struct client *cl, char pool[96])
{
	snprintf(pool, 96, "volume-%d 0 0 0 0", cl->job->conf.want_volume);
}

static struct pod_row row_now(struct client *cl, int pod)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	const struct machine *m = rented_as(cl, pod);
	struct pod_row row = {.state = p->phase == POD_GONE || p->phase == POD_NEVER ? POD_ROW_GONE
				       : pod_is_retired(p) ? POD_ROW_RELEASING
							   : POD_ROW_LIVE,
			      .account = "a",
			      .host = "pod",
			      .reach = REACH_SSH,
			      .port = 22,
			      .price_microusd_h = p->rental.price_microusd_h,
			      .hard_end_s = p->rental.hard_end_s,
			      .create_ms = p->rental.create_at + wall_now(cl) - boot_now(cl),
			      .kept_until_ms = m->offered_until,
			      .holds = m->holds};

	COPY_TEXT(row.attempt, p->rental.attempt);
	run_name(cl->number, row.run);
	COPY_TEXT(row.provider, p->rental.offer.provider);
	COPY_TEXT(row.id, p->rental.id);
	return row;
}

static bool is_wanted(struct client *cl, const struct pod_row *row)
{
	for (int i = 0; i < cl->sim->plan->client_count; i++) {
		struct client *other = &cl->sim->clients[i];
		if (other == cl || !other->up || other->laptop != cl->laptop || other->bills_open ||
		    !core_waits(other->core))
			continue;
		CLEANUP(json_decref) json_t *want = pool_want(other);
		if (pooled_fits(want, row, wall_now(cl)))
			return true;
	}
	return false;
}

static void unasked(struct client *cl, int pod)
{
	client_later(cl, 0, W_UNASKED)->pod = pod;
}

void pool_offer(struct client *cl, const struct action *a)
{
	struct machine *m = rented_as(cl, a->pod);
	int64_t kept_ms = a->number && cl->sim->plan->keeps ? pick(cl->sim, 1000, 20000) : 0;

	m->offered_until = wall_now(cl) + MAX(kept_ms, (int64_t)WANTED_MS);
	struct pod_row row = row_now(cl, a->pod);
	describe(cl, row.pool);
	if ((!kept_ms && !is_wanted(cl, &row)) || strikes(cl->sim, F_LEDGER_FULL) ||
	    store_put_pod(ledger(cl), &row, NULL) < 0) {
		m->offered_until = 0;
		unasked(cl, a->pod);
		return;
	}
	m->offered_by = cl->number;
	trace(cl->sim, "pod %s: offered by %c", m->id, client_name_of(cl));
}

static void hears_taken(struct client *cl, int pod, int64_t delay)
{
	struct happening *h = client_later(cl, delay, W_TAKEN);

	h->pod = pod;
	h->x = rented_as(cl, pod)->held_from + cl->laptop->boot_offset;
}

bool pool_withdraw(struct client *cl, int pod)
{
	struct machine *m = rented_as(cl, pod);
	int64_t taken_ms = 0;
	bool ours = m->client == cl->number;

	if ((ours && m->offered_by != cl->number) || plant(PLANT_OFFER_STANDS))
		return false;
	struct pod_row row = row_now(cl, pod);
	if (pooled_put_row(ledger(cl), &row, &taken_ms, NULL) < 0 || !taken_ms) {
		m->offered_by = ours ? -1 : m->offered_by;
		return false;
	}
	hears_taken(cl, pod, 0);
	return true;
}

/* The row of its time with the pod, which has ended. */
static void save_part(struct client *cl, const struct core_pod *p)
{
	for (size_t i = 0; i < cl->laptop->row_count; i++) {
		struct row *row = &cl->laptop->rows[i];
		if (!client_ours(cl, row) || strcmp(row->pod.rental.id, p->rental.id) ||
		    !strcmp(row->pod.rental.attempt, p->rental.attempt))
			continue;
		char attempt[ATTEMPT_MAX];
		COPY_TEXT(attempt, row->pod.rental.attempt);
		row->pod = *p;
		COPY_TEXT(row->pod.rental.attempt, attempt);
	}
}

bool pool_saved(struct client *cl, int pod)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	const struct machine *m = p->rental.id[0] ? rented_as(cl, pod) : NULL;

	if (!m || m->client == cl->number || !pool_held(cl, m))
		return false;
	if (p->rental.exit == EXIT_TAKEN)
		save_part(cl, p);
	return true;
}

void pool_taken(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_TAKEN, .pod = h->pod, .t = MIN(h->x, boot_now(cl))};

	client_told(cl, &ev, NULL);
}

size_t pool_drop(struct client *cl, struct pod_view *views, size_t count)
{
	size_t n = 0;
	char run[24];

	run_name(cl->number, run);
	for (size_t i = 0; i < count; i++) {
		const struct machine *m = cloud_machine(cl->sim, views[i].id);
		bool known = false;
		for (int k = 0; k < core_pod_count(cl->core); k++)
			known = known || !strcmp(core_pod_at(cl->core, k)->rental.id, views[i].id);
		if (strcmp(views[i].marker.run, run) || known || m->client == cl->number ||
		    !pool_held(cl, m))
			views[n++] = views[i];
	}
	return n;
}

/* ---- the run that takes it over ---- */

json_t *pool_want(struct client *cl)
{
	char pool[96];

	describe(cl, pool);
	const struct core_conf *c = &cl->core->conf;
	json_t *accounts = json_array();
	for (int i = 0; i < c->provider_count; i++)
		json_array_append_new(accounts, json_pack("{s:s,s:s}", "provider",
							  c->providers[i].name, "account", "a"));
	int64_t until = cl->core->ends_at ? cl->core->ends_at - boot_now(cl) + wall_now(cl) : 0;
	return json_pack("{s:s,s:o,s:[],s:I,s:I,s:I,s:I,s:I}", "pool", pool, "accounts", accounts,
			 "gpus", "price", (json_int_t)c->max_price_microusd_h, "ms",
			 (json_int_t)5000, "lease_ms", (json_int_t)cl->job->conf.lease_ms, "cost",
			 (json_int_t)core_money_left(cl->core), "until", (json_int_t)until);
}

/* The time with the previous run becomes a row of its own. */
static void split_row(struct client *cl, const struct pod_row *got, const struct core_pod *mine)
{
	struct laptop *l = cl->laptop;
	struct row *row = client_row_of(cl, got->attempt);
	struct row part = *row;
	int64_t by = row->wall_minus_boot - (wall_now(cl) - boot_now(cl));

	pooled_part_name(got->attempt, got->holds - 1, part.pod.rental.attempt);
	part.pod.phase = POD_GONE;
	part.pod.rental.create_at = MIN(part.pod.rental.create_at + by, boot_now(cl));
	part.pod.rental.released_at = part.pod.rental.gone_at = boot_now(cl);
	part.pod.presence.durable = false;
	row->client = cl->number;
	row->pod = *mine;
	row->wall_minus_boot = wall_now(cl) - boot_now(cl);
	row->billed_ms = 0;
	GROW(l->rows, l->row_count, l->row_cap);
	l->rows[l->row_count++] = part;
}

static struct core_pod as_mine(struct client *cl, const struct row *row)
{
	struct core_pod p = client_carried(cl, row);

	p.phase = POD_BOOTING;
	p.rental.create_at = p.rental.rented_at = p.presence.running_at = boot_now(cl);
	p.rental.reused = true;
	p.rental.cold_ms = core_cold_ms(&row->pod);
	p.rental.view.reach = row->pod.rental.view.reach;
	p.rental.view.port = row->pod.rental.view.port;
	return p;
}

/* Its agent starts a new log and keeps its workers. */
static void agent_begins(struct client *cl, struct machine *m)
{
	for (size_t i = 0; i < m->work_count; i++)
		free(m->works[i].segments);
	m->work_count = m->work_done = m->log_count = 0;
	free(m->files);
	m->files = xcalloc(cl->job->count, 1);
	free(m->folders);
	m->folders = xcalloc(cl->job->count, sizeof(*m->folders));
	m->conn++;
	m->connected = m->let_go = m->was_cut = m->unsaved = false;
	m->reached_in = -1;
}

static bool works_elsewhere(const struct client *cl)
{
	for (int i = 0; cl->up && i < core_pod_count(cl->core); i++)
		if (core_pod_at(cl->core, i)->workload.batches)
			return true;
	return false;
}

static void pass_on(struct client *cl, struct machine *m)
{
	struct client *from = &cl->sim->clients[m->client];
	bool busy = m->detached;

	for (int w = 0; w < SLOTS_MAX; w++)
		busy = busy || m->worker_work[w] >= 0;
	if (busy || (m->release_requested >= 0 && m->release_requested < cl->sim->now))
		broke(cl->sim, "pod %s is handed on while its run uses or releases it", m->id);
	from->handed_bill += meter(cl->sim, m);
	from->handed_slack += money_for(m->price, 1000);
	m->held_by |= 1u << m->client;
	m->client = cl->number;
	m->held_from = cl->sim->now;
	m->holds++;
	m->offered_by = -1;
	m->offered_until = 0;
	m->known_at = m->known_at < 0 ? cl->sim->now : m->known_at;
	m->requested_at = m->alone_until = -1;
	m->alone = false;
	cl->sim->handed++;
	cl->sim->handed_early += works_elsewhere(from);
	agent_begins(cl, m);
}

/* Tells the previous run if it is there; else its next life finds no row. */
static void tell_before(struct client *cl, const struct machine *m, int number)
{
	struct client *from = &cl->sim->clients[number];

	for (int i = 0; from->up && !from->bills_open && i < core_pod_count(from->core); i++)
		if (!strcmp(core_pod_at(from->core, i)->rental.id, m->id))
			hears_taken(from, i, TAKEN_SEEN_MS);
}

static bool take_one(struct client *cl, const json_t *want)
{
	struct pod_row *rows = NULL;
	size_t count = 0;
	bool taken = false;
	char run[24];

	run_name(cl->number, run);
	if (store_pods(ledger(cl), NULL, true, &rows, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !taken; i++) {
		struct pod_row row = rows[i];
		if (!strcmp(row.run, run) || !pooled_fits(want, &row, wall_now(cl)) ||
		    strikes(cl->sim, F_LEDGER_FULL) ||
		    pooled_take(ledger(cl), run, NULL, false, wall_now(cl), &row, NULL) < 0)
			continue;
		struct machine *m = cloud_machine(cl->sim, row.id);
		struct core_pod mine = as_mine(cl, client_row_of(cl, row.attempt));
		int before = m->client;
		trace(cl->sim, "pod %s: %c has it from %c", m->id, client_name_of(cl),
		      (char)('A' + before));
		split_row(cl, &row, &mine);
		pass_on(cl, m);
		tell_before(cl, m, before);
		*client_seen_of(cl, (int)(m - cl->sim->machines)) = 0;
		client_later(cl, 0, W_HANDED)->pod = core_adopt(cl->core, &mine);
		taken = true;
	}
	free(rows);
	return taken;
}

void pool_seek(struct client *cl, const struct action *a)
{
	CLEANUP(json_decref) json_t *want = pool_want(cl);

	for (int i = 0; i < a->number && take_one(cl, want); i++)
		;
	client_later(cl, 0, W_SOUGHT);
}

/* ---- which worlds ---- */

void plan_pool(struct plan *p)
{
	uint64_t state = (p->seed & ~SEED_POOL) * 0x9e3779b97f4a7c15ull + 0x27d4eb2f165667c5ull,
		 *r = &state;

	p->keeps = roll_chance(r, 60);
	for (int i = 0; i < p->client_count; i++) {
		struct core_conf *c = &p->jobs[i].conf;
		c->pooled = !c->batch_size_count;
		c->keep_warm_ms = 20000;
		c->detached = c->detached && roll_chance(r, 30);
		if (roll_chance(r, 80))
			p->jobs[i].laptop = 0;
		snprintf(c->machine, sizeof(c->machine), "%d123456789abcdef", p->jobs[i].laptop);
		if (roll_chance(r, 70))
			c->want_volume = p->jobs[0].conf.want_volume;
		if (i && roll_chance(r, 70))
			p->jobs[i].starts_at = roll_spread(r, 100, 300000);
		/* a handed pod needs room for a lease */
		c->lease_ms = roll_in(r, 60000, 120000);
		c->max_cost_microusd = roll_chance(r, 40) ? roll_spread(r, 60000, 1000000) : 0;
		c->max_duration_ms = roll_chance(r, 30) ? roll_in(r, 600000, HOUR_MS) : 0;
		c->retry_until_up = false; /* a waiting run searches four times a second */
		c->wait_ms = MIN(c->wait_ms, (int64_t)180000);
	}
	for (int v = 0; v < p->vendors_made; v++)
		for (int i = 0; i < p->vendors[v].offer_count; i++)
			p->vendors[v].capacity[i] =
				MIN(p->vendors[v].capacity[i], (int)roll_in(r, v ? 0 : 1, 2));
}
