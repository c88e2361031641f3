/* core_bench.c - drives a run of the core with events and its own clock. */
#include "core_bench.h"

void set_up(struct bench *b, size_t segments)
{
	*b = (struct bench){.now = 1000000, .count = segments};
	b->conf = (struct core_conf){
		.run = "r1",
		.machine = "0123456789abcdef",
		.provider_count = 1,
		.pods = 1,
		.workers = 1,
		.max_batch = 4,
		.wait_ms = MINUTE,
		.lease_ms = 10 * MINUTE,
		.boot_limit_ms = 5 * MINUTE,
		.check_tries = 1,
		.seed = 7,
		.providers = {{"alpha", false, 1000, 5000}, {"beta", false, 1000, 5000}},
	};
	for (size_t i = 0; i < segments; i++)
		b->segments[i] = (struct core_segment){.weight = 1, .est_s = 1};
}

void tear_down(struct bench *b)
{
	core_free(b->core);
	free(b->out.list);
}

static void say(struct bench *b, struct event ev)
{
	ev.now_ms = b->now;
	ev.wall_ms = WALL_MS + b->now;
	core_step(b->core, &ev, &b->out);
	const char *broken = core_check(b->core);
	if (broken)
		fail_msg("after event %d: not true: %s", ev.type, broken);
}

void tell(struct bench *b, struct event ev)
{
	b->out.count = 0;
	say(b, ev);
}

void tell_err(struct bench *b, enum event_type type, int pod, enum err_kind kind)
{
	struct err err;

	err_set(&err, kind, "words about it");
	tell(b, (struct event){.type = type, .pod = pod, .err = &err});
}

void wait_ms(struct bench *b, int64_t ms)
{
	int64_t until = b->now + ms;

	b->out.count = 0;
	for (int ticks = 0; core_wake_at(b->core) <= until; ticks++) {
		assert_true(ticks < 100000);
		b->now = MAX(b->now, core_wake_at(b->core));
		say(b, (struct event){.type = EV_TICK});
	}
	b->now = until;
}

int did(const struct bench *b, enum action_type type, int pod)
{
	int n = 0;

	for (size_t i = 0; i < b->out.count; i++)
		n += b->out.list[i].type == type && (pod < 0 || b->out.list[i].pod == pod);
	return n;
}

const struct action *first(const struct bench *b, enum action_type type)
{
	for (size_t i = 0; i < b->out.count; i++)
		if (b->out.list[i].type == type)
			return &b->out.list[i];
	fail_msg("an action of kind %d was expected", type);
	return NULL;
}

const struct core_pod *pod(const struct bench *b, int i)
{
	assert_true(i < core_pod_count(b->core));
	return core_pod_at(b->core, i);
}

void check_phase(const struct bench *b, const char *name, int i, enum pod_phase want)
{
	if (pod(b, i)->phase != want)
		fail_msg("%s: pod %d is %s, not %s", name, i, pod_phase_name(pod(b, i)->phase),
			 pod_phase_name(want));
}

void check_field(const char *name, const char *what, long long got, long long want)
{
	if (got != want)
		fail_msg("%s: %s is %lld, not %lld", name, what, got, want);
}

bool has_ended(const struct bench *b)
{
	return b->core->ended;
}

struct core_summary summary(const struct bench *b)
{
	struct core_summary s;

	core_summary(b->core, b->now, &s);
	return s;
}

int exit_status(const struct bench *b)
{
	struct core_summary s = summary(b);

	return err_exit_status(&s.err);
}

struct offer offer(int n, int64_t price)
{
	struct offer o = {.provider = "alpha", .price_microusd_h = price, .wish = n};

	snprintf(o.id, sizeof(o.id), "offer-%d", n);
	snprintf(o.gpu, sizeof(o.gpu), "GPU %d", n);
	return o;
}

void start(struct bench *b)
{
	b->core = core_new(&b->conf, b->segments, b->count);
	tell(b, (struct event){.type = EV_START});
}

void start_with(struct bench *b, const struct offer *offers, size_t count)
{
	start(b);
	tell(b, (struct event){.type = EV_OFFERS, .offers = offers, .count = count});
}

void start_simply(struct bench *b)
{
	struct offer o = offer(0, 1000000);

	start_with(b, &o, 1);
}

struct pod_view view_of(const struct bench *b, int i, enum pod_state state)
{
	struct pod_view v = {.state = state,
			     .reach = state == POD_STATE_RUNNING ? REACH_SSH : REACH_NONE,
			     .port = state == POD_STATE_RUNNING ? 22 : 0};

	snprintf(v.id, sizeof(v.id), "p%d", i);
	COPY_TEXT(v.marker.run, b->conf.run);
	COPY_TEXT(v.marker.attempt, pod(b, i)->rental.attempt);
	return v;
}

void rented_as(struct bench *b, int i, struct pod_view v)
{
	tell(b, (struct event){.type = EV_RENTED, .pod = i, .views = &v, .count = 1});
}

void rented(struct bench *b, int i)
{
	rented_as(b, i, view_of(b, i, POD_STATE_CREATING));
}

void list_in(struct bench *b, enum pod_state state, int i, int k)
{
	struct pod_view views[2];
	size_t count = 0;

	if (i >= 0)
		views[count++] = view_of(b, i, state);
	if (k >= 0)
		views[count++] = view_of(b, k, state);
	tell(b, (struct event){
			.type = EV_LISTED, .views = views, .count = count, .requested_at = b->now});
}

void list_running(struct bench *b, int i)
{
	list_in(b, POD_STATE_RUNNING, i, -1);
}

void list_nothing(struct bench *b)
{
	list_in(b, POD_STATE_GONE, -1, -1);
}

void connected(struct bench *b, int i)
{
	tell(b, (struct event){.type = EV_CONNECTED,
			       .pod = i,
			       .switch_ok = true,

			       .t = b->now});
}

void bring_up(struct bench *b, int i)
{
	rented(b, i);
	b->now += 15 * SECOND;
	list_running(b, i);
	connected(b, i);
	tell(b, (struct event){.type = EV_SHARED_READY, .pod = i});
	tell(b, (struct event){.type = EV_WORKERS,
			       .pod = i,
			       .number = b->conf.workers,
			       .max_batch = b->hello.max_batch,
			       .batching = b->hello.batching,
			       .speed = b->hello.speed});
	check_phase(b, "brought up", i, POD_WORKING);
}

void began(struct bench *b, int i, uint32_t batch)
{
	tell(b, (struct event){.type = EV_BATCH_STARTED, .pod = i, .batch = batch, .t = b->now});
}

void rendered(struct bench *b, int i, uint32_t segment)
{
	tell(b, (struct event){.type = EV_RENDERED,
			       .pod = i,
			       .segment = segment,
			       .t = b->now,
			       .elapsed_ms = 100});
}

void safe(struct bench *b, int i, uint32_t segment, bool good)
{
	tell(b, (struct event){.type = EV_FETCHED,
			       .pod = i,
			       .segment = segment,
			       .ok = true,
			       .check_ok = good});
	tell(b, (struct event){.type = EV_LOCAL, .pod = i, .segment = segment});
}

void done(struct bench *b, int i, uint32_t batch)
{
	tell(b, (struct event){.type = EV_BATCH_DONE, .pod = i, .batch = batch, .t = b->now});
}

void render_batch(struct bench *b, int i, uint32_t batch, int64_t ms, bool good)
{
	struct core_batch k = *core_batch_at(b->core, batch);

	began(b, i, batch);
	b->now += ms;
	for (size_t s = 0; s < k.count; s++) {
		rendered(b, i, k.segments[s]);
		safe(b, i, k.segments[s], good);
	}
	done(b, i, batch);
}

void end_well(struct bench *b)
{
	for (int round = 0; round < 20 && !has_ended(b); round++) {
		for (int i = 0; i < core_pod_count(b->core); i++) {
			if (pod(b, i)->phase == POD_RENTING)
				rented(b, i);
			if (pod(b, i)->phase == POD_RELEASING)
				tell(b, (struct event){.type = EV_RELEASED, .pod = i});
		}
		b->now += MINUTE;
		list_nothing(b);
	}
	if (!has_ended(b))
		fail_msg("the run does not end");
}

void check_saved_first(const struct bench *b, const char *name, enum action_type type, int i)
{
	for (size_t n = 0; n < b->out.count; n++) {
		if (b->out.list[n].type != type || b->out.list[n].pod != i)
			continue;
		if (!n || b->out.list[n - 1].type != ACT_SAVE || b->out.list[n - 1].pod != i)
			fail_msg("%s: not saved before it is done", name);
		return;
	}
	fail_msg("%s: not done at all", name);
}

void adopt_living(struct bench *b, int i, int64_t ready_at)
{
	struct core_pod p = {.phase = POD_BOOTING,
			     .rental.price_microusd_h = 1000000,
			     .rental.create_at = b->now - MINUTE,
			     .rental.rented_at = b->now - MINUTE,
			     .presence.running_at = b->now - MINUTE,
			     .presence.ready_at = ready_at,
			     .rental.listing = LISTING_SHOWS,
			     .rental.hard_end_ms = b->now + 4 * HOUR,
			     .rental.hard_end_s = (WALL_MS + b->now + 4 * HOUR) / 1000};

	snprintf(p.rental.id, sizeof(p.rental.id), "p%d", i);
	snprintf(p.rental.attempt, sizeof(p.rental.attempt), "a%d", i);
	COPY_TEXT(p.rental.offer.provider, "alpha");
	p.rental.offer.price_microusd_h = p.rental.price_microusd_h;
	core_adopt(b->core, &p);
}
