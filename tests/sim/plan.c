/* plan.c - what a seed means: the surroundings of one schedule, and its faults. */
#include <stdlib.h>

#include "pool.h"

const char *const fault_names[F_KINDS] = {
#define X(name) #name,
	FAULT_KINDS(X)
#undef X
};

static uint64_t roll(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

int64_t roll_in(uint64_t *r, int64_t least, int64_t most)
{
	return least + (int64_t)(roll(r) % (uint64_t)(most - least + 1));
}

bool roll_chance(uint64_t *r, int percent)
{
	return roll_in(r, 1, 100) <= percent;
}

struct fault *plan_next_fault(struct plan *p)
{
	if (p->fault_count == ARRAY_LEN(p->faults)) {
		fprintf(stderr,
			"sim: a schedule has more than %d faults: make room in struct plan\n",
			p->fault_count);
		abort();
	}
	return &p->faults[p->fault_count++];
}

int64_t roll_spread(uint64_t *r, int64_t least, int64_t most)
{
	int64_t top = least;

	while (top < most && roll_chance(r, 80))
		top *= 2;
	return roll_in(r, least, MIN(MAX(top, least + 1), most));
}

static void make_vendor(struct plan *p, struct core_conf *c, uint64_t *r, int i)
{
	static const char *const names[] = {"alpha", "beta", "gamma"};
	struct vendor_plan *v = &p->vendors[i];
	struct core_provider *k = &c->providers[i];

	COPY_TEXT(k->name, names[i]);
	p->vendors[i].apart = roll_chance(r, 50);
	k->poll_ms = roll_in(r, 500, 3000);
	k->list_gap_ms = roll_chance(r, 25) ? 0 : 5000;
	v->latency_ms = roll_in(r, 20, 800);
	v->boot_ms = roll_spread(r, 500, 90000);
	k->makes_image = v->boot_ms % 3 == 0;
	v->lag_ms = k->list_gap_ms ? roll_in(r, 0, 1500) : 0;
	v->self_end_ms = roll_in(r, 0, POD_SELF_END_MS - 1000);
	v->keeps_gone = roll_chance(r, 40);
	v->vague = roll_chance(r, 50);
	v->offer_count = (int)roll_in(r, 1, 4);
	for (int n = 0; n < v->offer_count; n++) {
		struct offer *o = &v->offers[n];
		COPY_TEXT(o->provider, k->name);
		snprintf(o->id, sizeof(o->id), "%d", n);
		snprintf(o->gpu, sizeof(o->gpu), "GPU %d", n);
		snprintf(o->region, sizeof(o->region), "r%d", (int)roll_in(r, 0, 1));
		o->price_microusd_h = roll_chance(r, 5) ? 0 : roll_in(r, 200000, 2500000);
		o->wish = n / 2;
		v->capacity[n] = (int)roll_in(r, 0, 5);
	}
}

static void name_run(struct core_conf *c, int number, int laptop)
{
	snprintf(c->run, sizeof(c->run), "r%d", 1 + number);
	snprintf(c->machine, sizeof(c->machine), "%d123456789abcdef", laptop);
}

static void make_wishes(struct core_conf *c, bool *knows_boots, uint64_t *r)
{
	c->want_volume = roll_chance(r, 60);
	c->pods = (int)roll_in(r, 1, 5);
	c->workers = (int)roll_in(r, 1, 3);
	c->command = roll_chance(r, 10);
	c->max_batch = c->command ? 1 : (int)roll_in(r, 1, 8);
	c->max_batch_weight = roll_chance(r, 30) ? 25 : 0;
	c->canary = roll_chance(r, 70);
	c->needs_gpu = roll_chance(r, 30);
	c->detached = roll_chance(r, 30);
	c->unproven_ok = roll_chance(r, 30);
	c->max_cost_microusd = roll_chance(r, 60) ? roll_spread(r, 5000, 1000000) : 0;
	c->max_duration_ms = roll_chance(r, 50) ? roll_spread(r, 60000, HOUR_MS) : 0;
	c->retry_until_up = c->max_duration_ms && roll_chance(r, 20);
	c->max_price_microusd_h = roll_chance(r, 20) ? roll_in(r, 400000, 2500000) : 0;
	c->wait_ms = roll_in(r, 10000, 600000);
	c->lease_ms = roll_in(r, 120000, 600000);
	*knows_boots = roll_chance(r, 50);
	c->boot_limit_ms = roll_in(r, 60000, 600000);
	c->keep_ms = roll_chance(r, 10) ? 60000 : 0;
	c->check_tries = (int)roll_in(r, 1, 3);
}

static void make_segments(const struct plan *p, struct job_plan *job, int64_t most, uint64_t *r)
{
	job->count = (size_t)(roll_chance(r, 3) ? 0 : roll_spread(r, 1, most));
	job->segments = xcalloc(job->count, sizeof(*job->segments));
	uint32_t groups = (uint32_t)roll_in(r, 1, 3);
	bool cached = roll_chance(r, 20);
	for (size_t i = 0; i < job->count; i++) {
		struct core_segment *s = &job->segments[i];
		s->weight = (double)roll_in(r, 1, 10);
		s->est_s = s->weight * (double)p->ms_per_weight / 1000;
		s->group = (uint32_t)roll(r) % groups;
		s->done = cached && roll_chance(r, 50);
	}
}

/* A lid that is closed for a moment, for lunch, for the night: ms. */
static int how_long(int x)
{
	/* so that the rest of the seed's plan stays the same */
	uint64_t state = (uint64_t)x * 0x9e3779b97f4a7c15ull + 1, *r = &state;

	return (int)(roll_chance(r, 40)   ? 1000 + x
		     : roll_chance(r, 30) ? roll_spread(r, 1000, 10 * HOUR_MS)
					  : roll_in(r, 60000, 10 * HOUR_MS));
}

static void make_fault(struct plan *p, uint64_t *r, struct fault *f)
{
	*f = (struct fault){.kind = (enum fault_kind)roll_in(r, 0, F_REAP - 1),
			    .n = (int)roll_spread(r, 1, 12) - 1,
			    .count = (int)roll_spread(r, 1, 6),
			    .ms = roll_spread(r, 200, 900000),
			    .x = (int)roll_in(r, 0, 1 << 20)};
	switch (f->kind) {
	case F_POISON:
	case F_CHECK_BAD:
		f->n = p->jobs[0].count ? (int)roll_in(r, 0, (int64_t)p->jobs[0].count - 1) : 0;
		break;
	case F_LIST_FAILS:
	case F_LIST_RATE_LIMITED:
	case F_FETCH_UNTRUSTED:
	case F_FETCH_DROPS:
	case F_FILE_MISSING: f->n = (int)roll_spread(r, 1, 40) - 1; break;
	case F_RELEASE_FAILS: f->ms = roll_in(r, 1, 9); break;
	case F_LIST_MISSES_ONE: /* once: two listings in a row that miss it would be proof */
		f->n = (int)roll_spread(r, 1, 40) - 1;
		f->count = 1;
		break;
	case F_LEDGER_FULL:
	case F_DISK_FULL:
		f->n = (int)roll_spread(r, 1, 60) - 1;
		f->count = roll_chance(r, 50) ? 1 << 20 : f->count;
		break;
	case F_SIGNAL:
		f->ms = roll_spread(r, 10, 600000);
		f->x = (int)roll_in(r, 0, 3);
		break;
	case F_SLEEP: f->x = how_long(f->x); break;
	case F_WALL_JUMP: f->x = (f->x % 181 - 90) * 1000; break;
	case F_CRASH_RESUME:
	case F_CRASH_REAP:
	case F_CRASH_FOREVER:
		f->n = (int)roll_spread(r, 1, 600) - 1;
		f->count = 1;
		break;
	default: break;
	}
}

/* ---- others at the same account, from a stream of their own: what a seed means for the first
 * client stays ---- */

static void make_another(struct plan *p, int i, int *laptops, uint64_t *r)
{
	struct job_plan *job = &p->jobs[i];
	bool ignored;

	job->laptop = (int)roll_in(r, 0, MIN(*laptops, LAPTOPS_MAX - 1));
	*laptops = MAX(*laptops, job->laptop + 1);
	job->starts_at = roll_chance(r, 30) ? 0 : roll_spread(r, 100, 600000);
	job->conf = p->jobs[0].conf;
	name_run(&job->conf, i, job->laptop);
	make_wishes(&job->conf, &ignored, r);
	make_segments(p, job, 20, r);
	job->conf.seed = roll(r);
}

static void make_more_faults(struct plan *p, uint64_t *r)
{
	int more = (int)roll_spread(r, 1, MORE_FAULTS_MAX + 1) - 1;

	for (int i = 0; i < p->fault_count; i++)
		p->faults[i].who = (int)roll_in(r, 0, p->client_count - 1);
	for (int i = 0; i < more; i++)
		*plan_next_fault(p) = (struct fault){
			.kind = (enum fault_kind)roll_in(r, F_REAP, F_FIRST_OF_WIRES - 1),
			.n = (int)roll_spread(r, 1, 12) - 1,
			.count = (int)roll_spread(r, 1, 50),
			.ms = roll_spread(r, 1000, 2 * HOUR_MS),
			.x = (int)roll_in(r, 0, 1 << 20),
			.who = (int)roll_in(r, 0, p->client_count - 1)};
}

static void make_company(struct plan *p, uint64_t seed, bool pooled)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 0x5851f42d4c957f2dull, *r = &state;
	int percent = (int)roll_in(r, 1, 100), laptops = 1;

	if (percent <= 75 && !pooled)
		return;
	if (pooled)
		percent = 81 + percent / 5;
	p->client_count = percent <= 80 ? 1 : percent <= 91 ? 2 : percent <= 97 ? 3 : 4;
	for (int i = 1; i < p->client_count; i++)
		make_another(p, i, &laptops, r);
	p->laptops_made = laptops;
	for (int i = 0; i < LAPTOPS_MAX; i++) {
		p->wall_offset_ms[i] = roll_chance(r, 50) ? roll_in(r, -45000, 45000) : 0;
		if (i)
			p->boot_clock_ms[i] = roll_in(r, 1, 1ll << 40);
	}
	for (int i = 0; i < VENDORS_MAX; i++) {
		p->vendors[i].per_minute = roll_chance(r, 60) ? (int)roll_in(r, 20, 120) : 0;
		p->vendors[i].says_limit = roll_chance(r, 60);
	}
	make_more_faults(p, r);
}

/* ---- what runs that died or left in a hurry leave behind, with a reap that comes by while it is
 * there ---- */

void plan_add_leftover(struct plan *p, enum fault_kind kind, int n, int64_t ms, int x)
{
	*plan_next_fault(p) = (struct fault){.kind = kind, .n = n, .count = 1, .ms = ms, .x = x};
}

static void make_leftovers(struct plan *p, uint64_t seed)
{
	static const enum fault_kind kinds[] = {F_CREATE_TWICE, F_CREATE_LOST_MADE,
						F_RELEASE_IGNORED, F_RELEASE_NEVER,
						F_SURFACES_LATE};
	uint64_t state = seed * 0x8ebc6af09c88c6e3ull + 0x589965cc75374cc3ull, *r = &state;
	struct core_conf *c = &p->jobs[0].conf;

	if (!roll_chance(r, 3))
		return;
	for (int i = 0; i < 2; i++)
		plan_add_leftover(p, kinds[roll_in(r, 0, ARRAY_LEN(kinds) - 1)],
				  (int)roll_in(r, 0, 2), roll_spread(r, 1000, 60000),
				  (int)roll_in(r, 0, 99));
	if (roll_chance(r, 60)) {
		c->detached = c->want_volume = true;
		p->ms_per_weight = MAX(p->ms_per_weight, roll_in(r, 1000, 15000));
		/* and never returns */
		plan_add_leftover(p, F_CRASH_HANDED, 0, roll_spread(r, 1, 10000), 3);
	} else {
		plan_add_leftover(p, F_SIGNAL, 0, roll_spread(r, 1000, 300000), 3);
	}
	plan_add_leftover(p, F_REAP, 0, roll_spread(r, 10000, HOUR_MS), 0);
}

/* ---- pods of a client that never comes back, which a user of another machine names ---- */

static void make_strangers(struct plan *p, uint64_t seed)
{
	static const enum fault_kind kinds[] = {F_RELEASE_FAILS, F_RELEASE_LOST, F_RELEASE_LINGERS,
						F_RELEASE_IGNORED, F_RELEASE_DENIED};
	uint64_t state = seed * 0xd6e8feb86659fd93ull + 0x2545f4914f6cdd1dull, *r = &state;

	if (!roll_chance(r, 3))
		return;
	plan_add_leftover(p, kinds[roll_in(r, 0, ARRAY_LEN(kinds) - 1)], (int)roll_in(r, 0, 1),
			  roll_spread(r, 1000, 60000), (int)roll_in(r, 0, 99));
	/* while its pods are there; client_crash() reads in x that they are named, and when */
	plan_add_leftover(p, F_CRASH_FOREVER, (int)roll_spread(r, 5, 80), 0,
			  18 * (int)roll_in(r, 0, 8000) + 15);
}

/* ---- vendors that deny a pod that runs, refuse their lists, or take long to end what they have
 * accepted to end ---- */

static void make_refusals(struct plan *p, uint64_t seed)
{
	uint64_t state = seed * 0xc2b2ae3d27d4eb4full + 0x165667b19e3779f9ull, *r = &state;
	int denials = roll_chance(r, 12) ? (int)roll_in(r, 1, 2) : 0;

	for (int i = 0; i < VENDORS_MAX; i++)
		p->vendors[i].ends_ms = roll_chance(r, 10) ? roll_in(r, 20000, 35000) : 0;
	for (int i = 0; i < denials; i++)
		plan_add_leftover(p, F_RELEASE_DENIED, (int)roll_spread(r, 1, 4) - 1,
				  roll_in(r, 1000, 55000), 0);
	/* files of a released pod come from its volume, slowly, and their client dies meanwhile */
	if (roll_chance(r, 1)) {
		p->jobs[0].conf.want_volume = p->vendors[0].apart = true;
		*plan_next_fault(p) = (struct fault){
			.kind = F_FETCH_SLOW, .count = 100, .ms = roll_in(r, 1000, 30000)};
		plan_add_leftover(p, F_CRASH_RESUME, (int)roll_in(r, 20, 200),
				  roll_spread(r, 1000, 60000), 0);
	}
	if (roll_chance(r, 8))
		*plan_next_fault(p) = (struct fault){.kind = F_LIST_REFUSED,
						     .n = (int)roll_spread(r, 1, 40) - 1,
						     .count = (int)roll_spread(r, 1, 20)};
}

/* ---- a laptop that is closed, or a client that ends, when `run -d` returns; with --no-wait that
 * is before a pod is reached ---- */

static void make_left_alone(struct plan *p, uint64_t seed)
{
	static const enum fault_kind kinds[] = {F_LEFT_GONE, F_LEFT_FROZEN, F_LEFT_AT_RENT};
	uint64_t state = seed * 0x9fb21c651e98df25ull + 0x2545f4914f6cdd1dull, *r = &state;
	struct core_conf *c = &p->jobs[0].conf;

	if (!roll_chance(r, 5))
		return;
	c->detached = c->want_volume = true;
	p->ms_per_weight = roll_chance(r, 60) ? MAX(p->ms_per_weight, roll_in(r, 500, 15000))
					      : p->ms_per_weight;
	plan_add_leftover(p, kinds[roll_in(r, 0, ARRAY_LEN(kinds) - 1)], roll_chance(r, 80) ? 0 : 1,
			  roll_chance(r, 50) ? 0 : roll_spread(r, 1, 12000),
			  (int)roll_in(r, 0, 1 << 20));
	if (roll_chance(r, 30))
		plan_add_leftover(p, F_DROP, (int)roll_in(r, 0, 6), roll_spread(r, 100, 60000), 0);
	if (roll_chance(r, 40))
		plan_add_leftover(p, F_REAP, 0, roll_spread(r, 10000, HOUR_MS), 0);
}

/* ---- a vendor that accepts releases and lets the pod run, and bill ---- */

static void make_outlived(struct plan *p, uint64_t seed)
{
	uint64_t state = seed * 0xb5ad4eceda1ce2a9ull + 0x14057b7ef767814full, *r = &state;

	if (roll_chance(r, 6))
		plan_add_leftover(p, F_RELEASE_OUTLIVED, (int)roll_spread(r, 1, 3) - 1,
				  roll_in(r, 1, 4), 0);
}

/* ---- replies of extreme sizes and counts, which libcurl or burst refuses to take ---- */

static void make_wild_replies(struct plan *p, uint64_t seed)
{
	uint64_t state = seed * 0xe7037ed1a0b428dbull + 0x8ebc6af09c88c6e3ull, *r = &state;

	if (roll_chance(r, 6))
		*plan_next_fault(p) = (struct fault){.kind = F_REPLY_WILD,
						     .n = (int)roll_spread(r, 1, 60) - 1,
						     .count = (int)roll_spread(r, 1, 20)};
}

/* ---- an account that cannot pay ---- */

static void make_unpaid(struct plan *p, uint64_t seed)
{
	uint64_t state = seed * 0xa0761d6478bd642full + 0xe7037ed1a0b428dbull, *r = &state;

	if (roll_chance(r, 5))
		*plan_next_fault(p) = (struct fault){.kind = F_CREATE_UNPAID,
						     .n = (int)roll_spread(r, 1, 6) - 1,
						     .count = roll_chance(r, 50) ? 1 : 1 << 20};
}

/* ---- commands: their steps, and what is saved of them ---- */

static void make_commands(struct plan *p, uint64_t seed)
{
	uint64_t state = seed * 0x589965cc75374cc3ull + 0x1d8e4e27c47d124full, *r = &state;

	for (int i = 0; i < p->client_count; i++) {
		struct job_plan *job = &p->jobs[i];
		if (!job->conf.command)
			continue;
		job->steps = (int)roll_in(r, 1, STEPS_MAX);
		job->conf.canary = false; /* as a command job's order says */
		job->stream = roll_chance(r, 60);
		job->save_every_ms = roll_chance(r, 75) ? roll_spread(r, 500, 60000) : 0;
		job->save_ms = job->save_every_ms ? roll_spread(r, 20, 5000) : 0;
		job->file_ms = roll_spread(r, 10, 20000);
	}
}

/* ---- a resumed run may have other caps ---- */

static void make_later_caps(struct plan *p, uint64_t seed)
{
	uint64_t state = seed * 0xda942042e4dd58b5ull + 0x2127599bf4325c37ull, *r = &state;

	for (int i = 0; i < p->client_count; i++)
		p->jobs[i].later_cap_percent =
			roll_chance(r, 70) ? 100 : (int)roll_spread(r, 5, 400);
}

/* ---- queues that are free, and names that work once ---- */

static void make_queues(struct plan *p, uint64_t seed)
{
	uint64_t state = seed * 0x2127599bf4325c37ull + 0x9fb21c651e98df25ull, *r = &state;

	for (int v = 0; v < p->vendors_made; v++) {
		bool once = roll_chance(r, 80);
		p->vendors[v].free = !v || roll_chance(r, 60);
		p->vendors[v].limits_wait = roll_chance(r, 50);
		p->vendors[v].queue_seed = roll(r);
		for (int i = 0; i < p->client_count; i++) {
			struct core_provider *k = &p->jobs[i].conf.providers[v];
			k->waits_free = p->vendors[v].free;
			k->create_once = once;
		}
	}
	for (int i = 0; i < p->client_count; i++) /* nothing bounds the wait then */
		p->jobs[i].conf.retry_until_up = false;
	if (roll_chance(r, 50))
		plan_add_leftover(p, F_CREATE_LOST_MADE, (int)roll_in(r, 0, 2), 0, 0);
}

/* ---- speeds and prices that are not as planned ---- */

void plan_make(struct plan *p, uint64_t seed, bool alone)
{
	bool pooled = seed & SEED_POOL, queues = seed & SEED_QUEUE;

	seed &= ~(SEED_POOL | SEED_QUEUE);
	uint64_t state = (seed & ~SEED_WIRE) * 0x2545f4914f6cdd1dull + 1, *r = &state;

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	p->alone = alone;
	p->rtt_ms = roll_in(r, 1, 150);
	p->prepare_ms = roll_spread(r, 200, 120000);
	p->install_ms = roll_spread(r, 100, 20000);
	p->load_ms = roll_spread(r, 100, 40000);
	p->ms_per_weight = roll_spread(r, 10, 4000);
	p->keep_latency_ms = roll_in(r, 1, 200);
	p->boot_clock_ms[0] = roll_chance(r, 50) ? roll_in(r, 1, 100000) : roll_in(r, 0, 1ll << 40);
	p->replay_first = roll_chance(r, 70);
	p->own_ready = roll_chance(r, 70);
	p->client_count = 1;
	struct core_conf *c = &p->jobs[0].conf;
	name_run(c, 0, 0);
	c->provider_count = (int)roll_in(r, 1, VENDORS_MAX);
	for (int i = 0; i < c->provider_count; i++)
		make_vendor(p, c, r, i);
	p->vendors_made = c->provider_count;
	p->laptops_made = 1;
	make_wishes(c, &p->knows_boots, r);
	make_segments(p, &p->jobs[0], 80, r);
	c->seed = roll(r);
	p->fault_count = (int)(roll_chance(r, 10) ? 0 : roll_spread(r, 1, FAULTS_MAX));
	for (int i = 0; i < p->fault_count; i++)
		make_fault(p, r, &p->faults[i]);
	if (!alone) {
		make_company(p, seed & ~SEED_WIRE, pooled);
		make_leftovers(p, seed & ~SEED_WIRE);
		make_strangers(p, seed & ~SEED_WIRE);
	}
	make_refusals(p, seed & ~SEED_WIRE);
	make_left_alone(p, seed & ~SEED_WIRE);
	make_wild_replies(p, seed & ~SEED_WIRE);
	make_later_caps(p, seed & ~SEED_WIRE);
	make_outlived(p, seed & ~SEED_WIRE);
	make_unpaid(p, seed & ~SEED_WIRE);
	make_commands(p, seed & ~SEED_WIRE);
	plan_planned(p, seed & ~SEED_WIRE);
	if (seed & SEED_WIRE)
		plan_wire(p);
	plan_replans(p, seed & ~SEED_WIRE);
	plan_measuring(p, seed);
	if (queues) {
		make_queues(p, seed);
		p->seed |= SEED_QUEUE;
	}
	if (!pooled)
		return;
	p->seed |= SEED_POOL;
	plan_pool(p);
}

void plan_free(struct plan *p)
{
	for (int i = 0; i < CLIENTS_MAX; i++)
		free(p->jobs[i].segments);
}

static void print_job(const struct job_plan *job, int i)
{
	const struct core_conf *c = &job->conf;

	printf("  run %c on machine %d from %lld: %zu segments, %d providers, pods %d, workers %d, "
	       "max_batch %d%s%s%s%s\n",
	       'A' + i, job->laptop, (long long)job->starts_at, job->count, c->provider_count,
	       c->pods, c->workers, c->max_batch, c->canary ? ", canary" : "",
	       c->detached ? ", detached" : "", c->want_volume ? ", volume" : "",
	       c->command ? ", command" : "");
	if (c->at_once || job->padded || job->continuous)
		printf("   %s%s%s\n", c->at_once ? " all pods at once" : "",
		       job->padded ? " padded batches" : "",
		       job->continuous ? " continuous batching" : "");
	if (job->steps)
		printf("    %d steps%s, saved every %lld ms, which takes %lld ms; a file takes "
		       "%lld ms\n",
		       job->steps, job->stream ? ", each told" : "", (long long)job->save_every_ms,
		       (long long)job->save_ms, (long long)job->file_ms);
	if (job->planned)
		printf("    planned: batches take %d %% of that; goal %d, deadline %lld, pods at "
		       "most %d%s%s\n",
		       job->off_percent, (int)c->plan.goal, (long long)c->plan.deadline_ms,
		       c->plan.pods_most, c->plan.pods_open ? ", pods open" : "",
		       c->plan.gpus_open ? ", GPUs open" : "");
	printf("    max_cost %lld, max_duration %lld, max_price %lld, wait %lld, lease %lld, boot "
	       "limit %lld\n",
	       (long long)c->max_cost_microusd, (long long)c->max_duration_ms,
	       (long long)c->max_price_microusd_h, (long long)c->wait_ms, (long long)c->lease_ms,
	       (long long)c->boot_limit_ms);
	if (c->max_cost_microusd && job->later_cap_percent != 100)
		printf("    a later life of it has %d %% of max_cost\n", job->later_cap_percent);
}

void plan_print(const struct plan *p)
{
	printf("seed %llu:\n", (unsigned long long)p->seed);
	for (int i = 0; i < p->client_count; i++)
		if (!p->jobs[i].off)
			print_job(&p->jobs[i], i);
	for (int i = 0; i < p->jobs[0].conf.provider_count; i++)
		if (p->vendors[i].per_minute)
			printf("  %s: %d calls a minute%s\n", p->jobs[0].conf.providers[i].name,
			       p->vendors[i].per_minute,
			       p->vendors[i].says_limit ? ", and says what is left" : "");
	for (int i = 0; i < p->fault_count; i++)
		if (!p->faults[i].dropped)
			printf("  fault %d: %s n=%d count=%d ms=%lld x=%d who=%c\n", i,
			       fault_names[p->faults[i].kind], p->faults[i].n, p->faults[i].count,
			       (long long)p->faults[i].ms, p->faults[i].x, 'A' + p->faults[i].who);
}
