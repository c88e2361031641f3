/* sim.c - the virtual clock: one queue of everything that will happen, and one schedule from its first event to its last. */
#include "sim.h"

#include <stdarg.h>
#include <stdlib.h>

void broke(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->broken[0])
		return;
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

/* The caller fills in the rest (not the time: the place in the queue depends on it). Valid until the next call. */
struct happening *later(struct sim *s, int64_t delay, enum what what)
{
	GROW(s->queue, s->queue_count, s->queue_cap);
	s->queue[s->queue_count] = (struct happening){.at = s->now + MAX(delay, 0), .seq = s->seq++, .what = what,
						      .life = s->life, .machine = -1, .pod = -1};
	return &s->queue[rise(s, s->queue_count++)];
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
	struct happening *again = later(s, s->wakes_at - s->now, h->what);
	int64_t at = again->at;
	uint64_t seq = again->seq;

	*again = *h;
	again->at = at;
	again->seq = seq;
	h->data = NULL;
}

/* ---- faults that come at a time of their own ---- */

static void schedule_timed(struct sim *s)
{
	for (int i = 0; i < s->plan->fault_count; i++) {
		struct fault *f = &s->plan->faults[i];
		if (f->dropped)
			continue;
		if (f->kind == F_SIGNAL) {
			for (int k = 0; k <= f->x % 4 && k < 3; k++)
				later(s, f->ms + k * (1 + f->x % 9000), W_SIGNAL)->x = i;
		} else if (f->kind == F_SLEEP) {
			struct happening *h = later(s, f->ms, W_SLEEP);
			h->x = 1000 + f->x % (2 * HOUR_MS);
			h->y = i;
		} else if (f->kind == F_WALL_JUMP) {
			struct happening *h = later(s, f->ms, W_JUMP);
			h->x = (f->x % 181 - 90) * 1000;
		} else if (f->kind == F_POISON && s->plan->count) {
			s->poison[f->n] = true;
		} else if (f->kind == F_CHECK_BAD && s->plan->count) {
			s->bad_checks[f->n] = f->count;
		}
	}
}

static void sleep_now(struct sim *s, int64_t ms)
{
	if (s->asleep)
		return;
	trace(s, "the machine sleeps for %lld s", (long long)ms / 1000);
	s->hit[F_SLEEP] = true;
	s->asleep = s->ever_slept = true;
	s->wakes_at = s->now + ms;
	later(s, ms, W_WAKE);
	for (size_t i = 0; ms > 30000 && i < s->machine_count; i++)
		pod_cut(s, &s->machines[i], 0);
}

static void jump(struct sim *s, int64_t ms)
{
	s->wall_offset += ms;
	s->wall_error = MAX(s->wall_error, llabs(s->wall_offset));
	s->hit[F_WALL_JUMP] = true;
	trace(s, "the wall clock jumps by %lld s", (long long)ms / 1000);
}

/* ---- one happening ---- */

static void happens(struct sim *s, struct happening *h)
{
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
	case W_SIGNAL:
		if (s->asleep)
			put_off(s, h);
		else if (s->up && (h->life == s->life || h->what == W_SIGNAL))
			client_hears(s, h);
		break;
	case W_CREATE: cloud_create(s, h); break;
	case W_LIST: cloud_list(s, h); break;
	case W_RELEASE: cloud_release(s, h); break;
	case W_CONTAINER: cloud_container(s, &s->machines[h->machine]); break;
	case W_ENDS: cloud_end(s, &s->machines[h->machine], "it ended itself, or a release took effect"); break;
	case W_WATCH: pod_watch(s, &s->machines[h->machine]); break;
	case W_STRUCK: cloud_struck(s, &s->machines[h->machine], h->x, h->y); break;
	case W_COMMAND: pod_command(s, h); break;
	case W_PREPARED: pod_prepared(s, h); break;
	case W_WORKER: pod_worker(s, h); break;
	case W_WORK: pod_work(s, h); break;
	case W_SLEEP: sleep_now(s, h->x); break;
	case W_WAKE:
		s->asleep = false;
		client_slept(s);
		break;
	case W_JUMP: jump(s, h->x); break;
	case W_RESTART:
		if (s->asleep)
			put_off(s, h);
		else
			client_start(s, h->x == F_CRASH_REAP);
		break;
	}
	free(h->data);
}

static bool tick_is_next(const struct sim *s, int64_t *at)
{
	if (!s->up || s->asleep)
		return false;
	int64_t wake = core_wake_at(s->core);
	if (wake == INT64_MAX)
		return false;
	*at = MAX(wake - s->boot_offset, s->now);
	return !s->queue_count || *at <= s->queue[0].at;
}

static void tick(struct sim *s, int64_t at)
{
	if (at == s->now && ++s->ticks_here > 30)
		broke(s, "the core wants ticks without end at one moment");
	else if (at != s->now)
		s->ticks_here = 0;
	s->now = at;
	if (at > 30 * (int64_t)HOUR_MS)
		broke(s, "the run goes on for more than a day");
	client_tick(s);
}

void sim_run(struct sim *s, struct plan *plan, bool tracing)
{
	bool measuring = s->measuring;

	memset(s, 0, sizeof(*s));
	s->measuring = measuring;
	s->plan = plan;
	s->tracing = tracing;
	s->random = plan->seed;
	s->boot_offset = plan->boot_clock_ms;
	s->exit_status = -1;
	s->settled_at = -1;
	s->safe = xcalloc(plan->count, sizeof(*s->safe));
	s->suspect = xcalloc(plan->count, sizeof(*s->suspect));
	s->poison = xcalloc(plan->count, sizeof(*s->poison));
	s->bad_checks = xcalloc(plan->count, sizeof(*s->bad_checks));
	for (size_t i = 0; i < plan->count; i++)
		s->safe[i] = plan->segments[i].done;
	schedule_timed(s);
	client_start(s, false);
	while (!s->broken[0]) {
		int64_t at;
		if (tick_is_next(s, &at)) {
			tick(s, at);
		} else if (s->queue_count) {
			struct happening h = take_first(s);
			s->now = h.at;
			happens(s, &h);
		} else {
			break;
		}
	}
	if (!s->broken[0] && s->up)
		broke(s, "the run waits for nothing, for ever");
	if (!s->broken[0])
		cloud_check(s);
}

void sim_free(struct sim *s)
{
	core_free(s->core);
	for (size_t i = 0; i < s->queue_count; i++)
		free(s->queue[i].data);
	for (size_t i = 0; i < s->machine_count; i++) {
		struct machine *m = &s->machines[i];
		for (size_t k = 0; k < m->work_count; k++)
			free(m->works[k].segments);
		free(m->works);
		free(m->log);
		free(m->files);
	}
	free(s->queue);
	free(s->machines);
	free(s->creates);
	free(s->out.list);
	free(s->seen);
	free(s->unsaved);
	free(s->rows);
	free(s->safe);
	free(s->suspect);
	free(s->poison);
	free(s->bad_checks);
}
