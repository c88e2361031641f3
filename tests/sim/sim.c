/* sim.c - the virtual clock: one queue of everything that will happen, and one schedule from its
 * first event to its last. */
#include <stdlib.h>

#include "ledgers.h"
#include "command.h"
#include "wire.h"

void broke(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->broken[0])
		return;
	s->how = fmt;
	va_start(ap, fmt);
	vsnprintf(s->broken, sizeof(s->broken), fmt, ap);
	va_end(ap);
	trace(s, "BROKEN: %s", s->broken);
}

void trace(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->tracing)
		return;
	printf("%10.3f ", (double)s->now / 1000);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

uint64_t sim_random(struct sim *s)
{
	uint64_t z = (s->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

int64_t pick(struct sim *s, int64_t least, int64_t most)
{
	return least + (int64_t)(sim_random(s) % (uint64_t)(most - least + 1));
}

/* Counts one more occurrence of what this kind can strike; the fault that strikes it, or NULL. */
struct fault *strikes(struct sim *s, enum fault_kind kind)
{
	int n = s->counts[kind]++;

	for (int i = 0; i < s->plan->fault_count; i++) {
		struct fault *f = &s->plan->faults[i];
		if (f->kind != kind || f->dropped || n < f->n || n - f->n >= f->count)
			continue;
		s->hit[kind] = true;
		trace(s, "fault %d: %s", i, fault_names[kind]);
		return f;
	}
	return NULL;
}

/* ---- the queue: a heap by time, then by order of asking ---- */

static bool earlier(const struct happening *a, const struct happening *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void swap(struct happening *a, struct happening *b)
{
	struct happening was = *a;

	*a = *b;
	*b = was;
}

static void sink(struct sim *s, size_t i)
{
	for (;;) {
		size_t best = i;
		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < s->queue_count; k++)
			if (earlier(&s->queue[k], &s->queue[best]))
				best = k;
		if (best == i)
			return;
		swap(&s->queue[i], &s->queue[best]);
		i = best;
	}
}

static size_t rise(struct sim *s, size_t i)
{
	while (i && earlier(&s->queue[i], &s->queue[(i - 1) / 2])) {
		swap(&s->queue[i], &s->queue[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	return i;
}

/* The caller fills in the rest (not the time: the place in the queue depends on it). Valid until
 * the next call. */
struct happening *later(struct sim *s, int64_t delay, enum what what)
{
	GROW(s->queue, s->queue_count, s->queue_cap);
	s->queue[s->queue_count] = (struct happening){.at = s->now + MAX(delay, 0),
						      .seq = s->seq++,
						      .what = what,
						      .machine = -1,
						      .pod = -1};
	return &s->queue[rise(s, s->queue_count++)];
}

struct happening *reply_later(struct sim *s, const struct happening *asked, int64_t delay,
			      enum what what)
{
	int client = asked->client, life = asked->life;
	struct happening *h = later(s, delay, what);

	h->client = client;
	h->life = life;
	return h;
}

static struct happening take_first(struct sim *s)
{
	struct happening h = s->queue[0];

	s->queue[0] = s->queue[--s->queue_count];
	sink(s, 0);
	return h;
}

static void put_off(struct sim *s, struct happening *h)
{
	struct happening *again =
		later(s, s->clients[h->client].laptop->wakes_at - s->now, h->what);
	int64_t at = again->at;
	uint64_t seq = again->seq;

	*again = *h;
	again->at = at;
	again->seq = seq;
	h->data = NULL;
}

/* ---- one happening ---- */

static void happens(struct sim *s, struct happening *h)
{
	struct client *cl = &s->clients[h->client];

	switch (h->what) {
	case W_OFFERS:
	case W_VOLUME:
	case W_IMAGE:
	case W_CREATED:
	case W_SAVE_FAILED:
	case W_LISTED:
	case W_REACHED:
	case W_LOST:
	case W_ENTRY:
	case W_SHARED:
	case W_PREPARE_FAILED:
	case W_FETCHED:
	case W_KEPT:
	case W_SALVAGED:
	case W_SYNCED:
	case W_RELEASED:
	case W_LOG:
	case W_INSPECTED:
	case W_SIGNAL:
	case W_WIRE_REPLY:
	case W_WIRE_AGAIN:
	case W_BILLED:
	case W_CRASH:
	case W_ROOM:
	case W_TAKEN:
	case W_UNASKED:
	case W_HANDED:
	case W_SOUGHT:
	case W_FILES:
	case W_OUTPUT:
	case W_SNAPSHOT:
		if (cl->laptop->asleep)
			put_off(s, h);
		else if (cl->up && (h->life == cl->life || h->what == W_SIGNAL))
			client_hears(cl, h);
		break;
	case W_CALL: account_call(s, h); break;
	case W_CREATE: cloud_create(s, h); break;
	case W_WIRE_CALL: line_arrives(s, h); break;
	case W_LIST: cloud_list(s, h); break;
	case W_RELEASE: cloud_release(s, h); break;
	case W_FINISH: pod_finish(s, &s->machines[h->machine]); break;
	case W_CONTAINER: cloud_container(s, &s->machines[h->machine]); break;
	case W_ENDS:
		cloud_end(s, &s->machines[h->machine], "it ended itself, or a release took effect");
		break;
	case W_WATCH: pod_watch(s, &s->machines[h->machine]); break;
	case W_STRUCK: cloud_struck(s, &s->machines[h->machine], h->x, h->y); break;
	case W_COMMAND: pod_command(s, h); break;
	case W_PREPARED: pod_prepared(s, h); break;
	case W_WORKER: pod_worker(s, h); break;
	case W_WORK: pod_work(s, h); break;
	case W_SAVE: command_save(s, h); break;
	case W_HALTED: command_halted(s, h); break;
	case W_SLEEP: sim_sleep(s, cl->laptop, h->x); break;
	case W_WAKE: sim_wakes(s, &s->laptops[h->x]); break;
	case W_JUMP: sim_jump_clock(s, cl->laptop, h->x); break;
	case W_RESTART:
		if (cl->laptop->asleep)
			put_off(s, h);
		else if (!sim_put_off_to_boot(s, h))
			client_restart(cl, h);
		break;
	case W_REAP:
		if (cl->laptop->asleep)
			put_off(s, h);
		else if (!sim_put_off_to_boot(s, h))
			reap(s, cl, h->x % 3 == 2);
		break;
	case W_PRICE: sim_prices_move(s, h->x); break;
	}
	free(h->data);
}

/* The client whose tick comes before all that is in the queue; NULL: none. */
static struct client *tick_is_next(struct sim *s, int64_t *at)
{
	struct client *next = NULL;

	*at = INT64_MAX;
	for (int i = 0; i < CLIENTS_ALL; i++) {
		struct client *cl = &s->clients[i];
		int64_t wake = cl->up && !cl->bills_open && !cl->laptop->asleep
				       ? core_wake_at(cl->core)
				       : INT64_MAX;
		if (wake != INT64_MAX)
			wake = MAX(wake - cl->laptop->boot_offset, s->now);
		if (wake >= *at)
			continue;
		next = cl;
		*at = wake;
	}
	return next && (!s->queue_count || *at <= s->queue[0].at) ? next : NULL;
}

void check_day(struct sim *s)
{
	if (s->now > 30 * (int64_t)HOUR_MS)
		broke(s, "the run goes on for more than a day");
}

static void tick(struct sim *s, struct client *cl, int64_t at)
{
	if (at != cl->ticked_at)
		cl->ticks_here = 0;
	cl->ticked_at = at;
	if (++cl->ticks_here > 30)
		broke(s, "the core wants ticks without end at one moment");
	s->now = at;
	check_day(s);
	client_tick(cl);
}

static void make_laptop(struct sim *s, int number, bool limited)
{
	struct laptop *l = &s->laptops[number];

	l->boot_offset = s->plan->boot_clock_ms[number];
	l->woke_at = l->jumped_at = -1;
	l->wall_offset = s->plan->wall_offset_ms[number];
	l->wall_error = llabs(l->wall_offset);
	l->facts = limited ? ledger_take() : NULL;
}

static void make_cloud(struct sim *s)
{
	const struct plan *plan = s->plan;
	bool limited = false;

	for (int v = 0; v < plan->jobs[0].conf.provider_count; v++) {
		limited = limited || plan->vendors[v].per_minute || plan->vendors[v].wire;
		for (int i = 0; i < plan->vendors[v].offer_count; i++)
			s->prices[v][i] = plan->vendors[v].offers[i].price_microusd_h;
	}
	for (int v = 0; v < VENDORS_MAX; v++)
		s->unlisted_at[v] = INT64_MIN / 2;
	for (int i = 0; i < LAPTOPS_MAX; i++)
		make_laptop(s, i, limited);
}

static void make_client(struct sim *s, int number)
{
	struct client *cl = &s->clients[number];
	const struct job_plan *job = &s->plan->jobs[number];

	*cl = (struct client){.sim = s,
			      .job = job,
			      .number = number,
			      .laptop = &s->laptops[job->laptop],
			      .exit_status = -1,
			      .settled_at = -1,
			      .died_at = -1,
			      .free_since = -1};
	if (cl->laptop->facts)
		cl->limiter = limiter_new(cl->laptop->facts);
	cl->local = xcalloc(job->count, sizeof(*cl->local));
	cl->renders = xcalloc(job->count, sizeof(*cl->renders));
	cl->poison = xcalloc(job->count, sizeof(*cl->poison));
	cl->bad_checks = xcalloc(job->count, sizeof(*cl->bad_checks));
	for (size_t i = 0; i < job->count; i++)
		cl->local[i] = job->segments[i].done;
	command_new(cl);
}

/* `burst reap` on one of the machines. */
static void make_reaper(struct sim *s, int laptop)
{
	int number = CLIENTS_MAX + laptop;

	s->clients[number] = (struct client){.sim = s,
					     .job = &s->plan->jobs[0],
					     .number = number,
					     .laptop = &s->laptops[laptop],
					     .exit_status = -1};
	if (s->laptops[laptop].facts)
		s->clients[number].limiter = limiter_new(s->laptops[laptop].facts);
}

static void play(struct sim *s)
{
	while (!s->broken[0]) {
		int64_t at;
		struct client *cl = tick_is_next(s, &at);
		if (cl) {
			tick(s, cl, at);
		} else if (s->queue_count) {
			struct happening h = take_first(s);
			s->now = h.at;
			happens(s, &h);
		} else {
			break;
		}
	}
}

void sim_run(struct sim *s, struct plan *plan, bool tracing)
{
	bool measuring = s->measuring;

	memset(s, 0, sizeof(*s));
	s->measuring = measuring;
	s->plan = plan;
	s->tracing = tracing;
	s->random = plan->seed;
	make_cloud(s);
	for (int i = 0; i < plan->client_count; i++)
		make_client(s, i);
	for (int i = 0; i < LAPTOPS_MAX; i++)
		make_reaper(s, i);
	sim_schedule_timed(s);
	wire_open(s);
	for (int i = 0; i < plan->client_count; i++)
		if (plan->jobs[i].off)
			continue;
		else if (i)
			sim_at_client(s, i, plan->jobs[i].starts_at, W_RESTART);
		else
			client_start(&s->clients[i], false);
	play(s);
	for (int i = 0; i < plan->client_count; i++)
		if (!s->broken[0] && s->clients[i].up)
			broke(s, "run %d waits for nothing, for ever", i + 1);
	for (int i = CLIENTS_MAX; i < CLIENTS_ALL; i++)
		if (!s->broken[0] && s->clients[i].up)
			broke(s, "a reap waits for nothing, for ever");
	if (!s->broken[0])
		cloud_check(s);
	if (!s->broken[0] && s->wire)
		wire_check_volumes(s);
}

static void free_client(struct client *cl)
{
	core_free(cl->core);
	limiter_free(cl->limiter);
	free(cl->out.list);
	free(cl->seen);
	free(cl->unsaved);
	free(cl->local);
	free(cl->renders);
	free(cl->poison);
	free(cl->bad_checks);
	free(cl->targets);
	command_free(cl);
}

void sim_free(struct sim *s)
{
	wire_free(s);
	for (int i = 0; i < CLIENTS_ALL; i++)
		free_client(&s->clients[i]);
	for (int i = 0; i < LAPTOPS_MAX; i++)
		free(s->laptops[i].rows), ledger_give(s->laptops[i].facts),
			ledger_give(s->laptops[i].pool);
	for (size_t i = 0; i < s->queue_count; i++)
		free(s->queue[i].data);
	for (size_t i = 0; i < s->machine_count; i++) {
		struct machine *m = &s->machines[i];
		for (size_t k = 0; k < m->work_count; k++)
			free(m->works[k].segments);
		free(m->works);
		free(m->log);
		free(m->files);
		free(m->folders);
	}
	free(s->queue);
	free(s->machines);
	free(s->creates);
}
