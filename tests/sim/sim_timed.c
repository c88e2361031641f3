/* sim_timed.c - faults that come at a time of their own: sleep, jumps of clocks, prices that
 * move. */
#include "wire.h"

struct happening *sim_at_client(struct sim *s, int who, int64_t delay, enum what what)
{
	struct happening *h = later(s, delay, what);

	h->client = who;
	return h;
}

static void schedule_one(struct sim *s, int i)
{
	const struct fault *f = &s->plan->faults[i];
	struct client *cl = &s->clients[f->who];

	if (f->kind == F_SIGNAL) {
		for (int k = 0; k <= f->x % 4 && k < 3; k++)
			sim_at_client(s, f->who, f->ms + k * (1 + f->x % 9000), W_SIGNAL)->x = i;
	} else if (f->kind == F_SLEEP) {
		sim_at_client(s, f->who, f->ms, W_SLEEP)->x = f->x;
	} else if (f->kind == F_WALL_JUMP) {
		sim_at_client(s, f->who, f->ms, W_JUMP)->x = f->x;
	} else if (f->kind == F_POISON && cl->job->count) {
		cl->poison[(size_t)f->n % cl->job->count] = true;
	} else if (f->kind == F_CHECK_BAD && cl->job->count) {
		cl->bad_checks[(size_t)f->n % cl->job->count] = f->count;
	} else if (f->kind == F_REAP) {
		sim_at_client(s, f->who, f->ms, W_REAP)->x = f->x;
	} else if (f->kind == F_PRICE_MOVES) {
		later(s, f->ms, W_PRICE)->x = f->x;
	}
}

void sim_schedule_timed(struct sim *s)
{
	for (int i = 0; i < s->plan->fault_count; i++)
		if (!s->plan->faults[i].dropped)
			schedule_one(s, i);
}

void sim_sleep(struct sim *s, struct laptop *l, int64_t ms)
{
	if (l->asleep)
		return;
	trace(s, "the machine sleeps for %lld s", (long long)ms / 1000);
	s->hit[F_SLEEP] = true;
	l->asleep = true;
	l->wakes_at = s->now + ms;
	later(s, ms, W_WAKE)->x = l - s->laptops;
	for (int i = 0; i < CLIENTS_ALL; i++)
		if (s->clients[i].laptop == l)
			client_sleeps(&s->clients[i]);
	for (size_t i = 0; ms > 30000 && i < s->machine_count; i++)
		if (s->clients[s->machines[i].client].laptop == l)
			pod_cut(s, &s->machines[i], 0);
}

void sim_wakes(struct sim *s, struct laptop *l)
{
	l->asleep = false;
	l->woke_at = s->now;
	for (int i = 0; i < CLIENTS_ALL; i++)
		if (s->clients[i].laptop == l)
			client_slept(&s->clients[i]);
}

void sim_jump_clock(struct sim *s, struct laptop *l, int64_t ms)
{
	l->wall_offset += ms;
	l->jumped_at = s->now;
	l->wall_error = MAX(l->wall_error, llabs(l->wall_offset));
	s->hit[F_WALL_JUMP] = true;
	trace(s, "the wall clock jumps by %lld s", (long long)ms / 1000);
}

void sim_prices_move(struct sim *s, int64_t x)
{
	int vendor = (int)(x % s->plan->jobs[0].conf.provider_count);

	s->hit[F_PRICE_MOVES] = true;
	trace(s, "cloud: prices of vendor %d move to %lld %%", vendor, (long long)(50 + x % 151));
	for (int i = 0; i < 4; i++)
		s->prices[vendor][i] = s->prices[vendor][i] * (50 + x % 151) / 100;
}

bool sim_put_off_to_boot(struct sim *s, struct happening *h)
{
	int64_t off_until = s->clients[h->client].laptop->off_until;

	if (s->now >= off_until)
		return false;
	struct happening *again = sim_at_client(s, h->client, off_until - s->now, h->what);
	again->x = h->x;
	return true;
}
