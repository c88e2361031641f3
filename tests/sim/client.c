/* client.c - burst as the core sees it: its ledger, its lives, how it dies and restarts. */
#include "client.h"
#include "command.h"
#include "pool.h"

int64_t boot_now(const struct client *cl)
{
	return cl->sim->now + cl->laptop->boot_offset;
}

int64_t wall_now(const struct client *cl)
{
	return WALL_EPOCH_MS + cl->sim->now + cl->laptop->wall_offset;
}

int64_t client_woke_at(const struct client *cl)
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

char client_name_of(const struct client *cl)
{
	return (char)('A' + cl->number);
}

struct machine *client_machine_of(struct client *cl, int pod)
{
	struct machine *m = cloud_machine(cl->sim, core_pod_at(cl->core, pod)->rental.id);

	if (m && m->client != cl->number && pool_held(cl, m))
		return NULL;
	if (m && m->client != cl->number && !is_reaper(cl))
		broke(cl->sim, "pod %s of another run is taken for its own", m->id);
	return m;
}

int client_pod_of(struct client *cl, int machine)
{
	for (int i = 0; i < core_pod_count(cl->core); i++)
		if (client_machine_of(cl, i) == &cl->sim->machines[machine])
			return i;
	return -1;
}

size_t *client_seen_of(struct client *cl, int machine)
{
	while ((size_t)machine >= cl->seen_cap) {
		cl->seen = xrealloc(cl->seen, 2 * cl->seen_cap * sizeof(*cl->seen));
		memset(cl->seen + cl->seen_cap, 0, cl->seen_cap * sizeof(*cl->seen));
		cl->seen_cap *= 2;
	}
	return &cl->seen[machine];
}

/* ---- lives ---- */

int64_t client_bill(const struct client *cl)
{
	int64_t sum = cl->handed_bill;

	for (size_t i = 0; i < cl->sim->machine_count; i++)
		if (cl->sim->machines[i].client == cl->number)
			sum += meter(cl->sim, &cl->sim->machines[i]);
	return sum;
}

/* What this life may spend in all, and which pods it finds. */
static void take_caps(struct client *cl, bool reap)
{
	int percent = cl->life ? cl->job->later_cap_percent : 100;

	cl->cap_now = cl->job->conf.max_cost_microusd * percent / 100;
	cl->cap_most = MAX(cl->cap_most, reap ? 0 : cl->cap_now);
	cl->metered = client_bill(cl);
	cl->unsure = reap;
	for (size_t i = 0; i < cl->laptop->row_count; i++)
		cl->unsure = cl->unsure || (client_ours(cl, &cl->laptop->rows[i]) &&
					    !cl->laptop->rows[i].pod.rental.id[0]);
}

static struct core_conf conf_now(struct client *cl, bool reap)
{
	struct core_conf conf = cl->job->conf;
	bool any_safe = false;

	conf.seed = sim_random(cl->sim);
	conf.reap = reap;
	for (size_t i = 0; i < cl->laptop->row_count; i++) {
		const struct rental *r = &cl->laptop->rows[i].pod.rental;
		struct core_provider *there = &conf.providers[r->provider];
		bool in_doubt = cl->exit_status < 0 || cl->exit_status == 9;
		if (!client_ours(cl, &cl->laptop->rows[i]))
			continue;
		there->used_before = true;
		there->used_lately = there->used_lately ||
				     (in_doubt && !pod_is_overdue(r->hard_end_s, wall_now(cl)));
	}
	for (size_t i = 0; i < cl->job->count; i++)
		any_safe = any_safe || (cl->local[i] && !cl->job->segments[i].done);
	conf.canary = conf.canary && !any_safe;
	if (conf.max_cost_microusd) {
		conf.max_cost_microusd =
			(plant(PLANT_CAP_AS_IT_WAS) ? conf.max_cost_microusd : cl->cap_now) -
			client_spent_before(cl);
		if (!conf.max_cost_microusd)
			conf.max_cost_microusd = -1;
	}
	if (conf.max_duration_ms)
		conf.max_duration_ms =
			MAX(conf.max_duration_ms - (cl->sim->now - cl->began_at - cl->free_ms), 1);
	conf.make_volume = conf.want_volume;
	conf.plan.forecasts = cl->job->forecasts;
	if (!cl->job->planned || cl->ever_crashed || reap) /* a resumed run has no plan */
		memset(&conf.plan, 0, sizeof(conf.plan));
	/* by the usual time of its batches */
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
		if (!client_ours(cl, &cl->laptop->rows[i]))
			continue;
		if (!pod_may_bill(had) &&
		    (!had->presence.durable || had->phase != POD_GONE || cl->core->conf.reap))
			continue;
		struct core_pod p = client_from_row(cl, &cl->laptop->rows[i]);
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
			cl->local[i] && (!plant(PLANT_DONE_FORGOTTEN) || cl->job->segments[i].done);
	}
	memset(cl->affords, 0, sizeof(cl->affords));
	memset(cl->unpaid, 0, sizeof(cl->unpaid));
	command_life(cl);
	for (int i = 0; i < VENDORS_MAX; i++)
		cl->made_at[i] = cl->listed_at[i] = -1;
	memset(cl->list_refused, 0, sizeof(cl->list_refused));
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
	trace(cl->sim, "client %c: life %d begins%s", client_name_of(cl), cl->life,
	      reap ? " (reap)" : "");
	struct event ev = {.type = EV_START};
	wire_begin_life(cl);
	client_step(cl, &ev);
}

bool is_reaper(const struct client *cl)
{
	return cl->number >= CLIENTS_MAX;
}

void client_sweep(struct client *cl)
{
	struct core_conf conf = {.run = "-", /* no run has this name */
				 .reap = true,
				 .pods = 1,
				 .provider_count = cl->job->conf.provider_count,
				 .lease_ms = cl->job->conf.lease_ms,
				 .boot_limit_ms = cl->job->conf.boot_limit_ms,
				 .seed = sim_random(cl->sim)};
	struct event ev = {.type = EV_START};

	COPY_TEXT(conf.machine, cl->job->conf.machine);
	memcpy(conf.providers, cl->job->conf.providers, sizeof(conf.providers));
	plant_conf(&conf);
	cl->life_began = cl->sim->now;
	cl->reaping = true;
	cl->settled_at = -1;
	cl->replans = cl->replans_seen = 0;
	if (!cl->unsaved_cap) {
		cl->unsaved_cap = 64;
		cl->unsaved = xcalloc(cl->unsaved_cap, sizeof(*cl->unsaved));
	}
	cl->core = core_new(&conf, NULL, 0);
	for (size_t i = 0; i < cl->target_count; i++)
		core_adopt(cl->core, &cl->targets[i]);
	cl->target_count = 0;
	client_step(cl, &ev);
}

/* Pods that its full ledger could not record are unknown now: only a list can show them to the
 * next client. */
static void forget_unsaved(struct client *cl)
{
	for (size_t i = 0; i < cl->sim->machine_count; i++) {
		struct machine *m = &cl->sim->machines[i];
		const struct row *row = m->client == cl->number && m->unsaved
						? client_row_of(cl, m->attempt)
						: NULL;
		if (row && !row->pod.rental.id[0])
			m->known_at = -1;
	}
}

void client_dies(struct client *cl)
{
	cl->bills_open = 0;
	wire_end_life(cl);
	client_check_known(cl);
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

/* The machine restarts, with all that runs on it. */
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
	trace(cl->sim, "client %c: dies (%s)", client_name_of(cl), fault_names[f->kind]);
	if (is_reaper(cl)) {
		reaper_ends(cl);
		return;
	}
	forget_unsaved(cl);
	if (f->kind == F_CRASH_FOREVER) {
		client_dies(cl);
		cl->ever_crashed = cl->dead_forever = true;
		cl->died_at = cl->sim->now;
		if (f->x % 3 == 0) { /* a client returns a little later or, once, the next day */
			struct happening *h =
				later(cl->sim,
				      f->x % 2 || cl->sim->now > HOUR_MS
					      ? 1000 + f->x % 300000
					      : 24 * (int64_t)HOUR_MS + f->x % HOUR_MS,
				      W_REAP);
			h->client = cl->number;
			h->x = f->x / 6; /* and may name its pods */
		}
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
	/* `burst reap` holds the run's lock */
	struct happening *again = later(cl->sim, 60000, W_RESTART);
	again->client = h->client;
	again->x = h->x;
}

/* A client that ignores the run's lock. */
static void release_live(struct client *cl)
{
	int other = (cl->number + 1) % cl->sim->plan->client_count;

	for (size_t i = 0; i < cl->laptop->row_count; i++) {
		const struct row *row = &cl->laptop->rows[i];
		const struct machine *m =
			client_ours(cl, row) ? cloud_machine(cl->sim, row->pod.rental.id) : NULL;
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
		if (!strcmp(p->rental.id, m->id))
			return pod_is_active(p) && !core_is_stopping(cl->core) &&
			       boot_now(cl) < p->rental.hard_end_ms;
	}
	return false;
}

bool client_crashes_now(struct client *cl)
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
