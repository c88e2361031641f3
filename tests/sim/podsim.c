/* podsim.c - what runs on a pod: the dead-man's switch, the agent with its queue and its numbered
 * log, the workers. */
#include "command.h"

#include <stdlib.h>

static int number_of(const struct sim *s, const struct machine *m)
{
	return (int)(m - s->machines);
}

/* Whose it is. */
static struct client *client_of(struct sim *s, const struct machine *m)
{
	return &s->clients[m->client];
}

static struct happening *on_pod(struct sim *s, struct machine *m, int64_t delay, enum what what)
{
	struct happening *h = later(s, delay, what);

	h->machine = number_of(s, m);
	h->conn = m->epoch;
	return h;
}

static void stop_workers(struct sim *s, struct machine *m)
{
	commands_cut(s, m);
	m->epoch++;
	m->workers_started = m->workers_ready = 0;
	for (int w = 0; w < SLOTS_MAX; w++)
		m->worker_work[w] = -1;
	for (size_t i = 0; i < m->work_count; i++)
		m->works[i].over = true;
	m->work_done = m->work_count;
}

/* ---- the switch ---- */

static int64_t lease_end(const struct machine *m)
{
	return MIN(m->hard_end, m->lease_shown ? m->lease : m->first_lease);
}

void pod_watch(struct sim *s, struct machine *m)
{
	if (m->is_over || !m->running || m->ending || plant(PLANT_SWITCH_DEAD))
		return;
	int64_t end = plant(PLANT_LEASE_IGNORED) ? m->hard_end : lease_end(m);
	if (plant(PLANT_HARD_END_IGNORED) && end == m->hard_end)
		end += HOUR_MS;
	if (s->now < end) {
		if (m->watch_at <= s->now || end < m->watch_at) {
			later(s, end - s->now, W_WATCH)->machine = number_of(s, m);
			m->watch_at = end;
		}
		return;
	}
	trace(s, "pod %s: its %s is over", m->id, end == m->hard_end ? "hard end" : "lease");
	m->ending = true;
	later(s, s->plan->vendors[m->vendor].self_end_ms, W_ENDS)->machine = number_of(s, m);
}

void pod_finish(struct sim *s, struct machine *m)
{
	if (m->is_over || !m->running || m->ending || m->unreachable || m->bad_key ||
	    m->bad_switch || m->cut_until > s->now)
		return;
	trace(s, "pod %s: it is told to end itself", m->id);
	m->ending = true;
	stop_workers(s, m);
	later(s, s->plan->vendors[m->vendor].self_end_ms, W_ENDS)->machine = number_of(s, m);
}

/* ---- the log ---- */

static void say_to_client(struct sim *s, struct machine *m, size_t n)
{
	struct happening *h = client_later(client_of(s, m), s->plan->rtt_ms / 2, W_ENTRY);

	h->machine = number_of(s, m);
	h->conn = m->conn;
	h->x = (int64_t)n;
}

struct entry *pod_note(struct sim *s, struct machine *m, enum event_type type)
{
	GROW(m->log, m->log_count, m->log_cap);
	struct entry *e = &m->log[m->log_count++];

	*e = (struct entry){.type = type, .life = client_of(s, m)->life, .t = s->now - m->created};
	if (m->connected)
		say_to_client(s, m, m->log_count - 1);
	return e;
}

void pod_stream(struct sim *s, struct machine *m, size_t from)
{
	for (size_t i = from; i < m->log_count; i++)
		say_to_client(s, m, i);
}

/* ---- connections ---- */

void pod_attach(struct sim *s, struct machine *m)
{
	m->connected = true;
	if (m->reached_in != client_of(s, m)->life)
		m->reached_at = s->now;
	m->reached_in = client_of(s, m)->life;
	m->conn++;
	m->agent = true;
	m->idle_since = s->now;
}

static void disconnect(struct sim *s, struct machine *m)
{
	if (!m->connected)
		return;
	m->connected = false;
	m->was_cut = true;
	struct happening *h = client_later(client_of(s, m), s->plan->rtt_ms, W_LOST);
	h->machine = number_of(s, m);
	h->conn = m->conn++;
}

void pod_cut(struct sim *s, struct machine *m, int64_t ms)
{
	trace(s, "pod %s: connection cut", m->id);
	m->cut_until = MAX(m->cut_until, s->now + ms);
	disconnect(s, m);
}

void pod_restart_agent(struct sim *s, struct machine *m)
{
	if (!m->agent)
		return;
	trace(s, "pod %s: its agent begins anew", m->id);
	stop_workers(s, m);
	m->detached = false;
	disconnect(s, m);
}

void pod_gone(struct sim *s, struct machine *m)
{
	stop_workers(s, m);
	disconnect(s, m);
}

/* ---- workers ---- */

static int64_t next_work(struct machine *m)
{
	while (m->work_done < m->work_count &&
	       (m->works[m->work_done].begun || m->works[m->work_done].over))
		m->work_done++;
	for (size_t i = m->work_done; i < m->work_count; i++)
		if (!m->works[i].begun && !m->works[i].over)
			return (int64_t)i;
	return -1;
}

static void finish_detached(struct sim *s, struct machine *m)
{
	for (int w = 0; w < SLOTS_MAX; w++)
		if (m->worker_work[w] >= 0)
			return;
	if (!m->detached || m->ending || next_work(m) >= 0)
		return;
	trace(s, "pod %s: its queue is done, it ends itself", m->id);
	m->ending = true;
	on_pod(s, m, 2000, W_ENDS);
}

static void render_on(struct sim *s, struct machine *m, int w)
{
	struct work *k = &m->works[m->worker_work[w]];
	struct client *cl = client_of(s, m);
	double ms = client_ms_of(cl, m->vendor, m->offer,
				 cl->job->segments[k->segments[k->next]].weight);
	struct happening *h = on_pod(s, m, 1 + (int64_t)ms, W_WORK);

	h->x = w;
}

/* Batches that are rendered side by side. */
static int slots(struct sim *s, const struct machine *m)
{
	return MIN(m->workers_ready * (client_of(s, m)->job->continuous ? 3 : 1), SLOTS_MAX);
}

static void feed_workers(struct sim *s, struct machine *m)
{
	for (int w = 0; w < slots(s, m); w++) {
		if (m->worker_work[w] >= 0)
			continue;
		int64_t i = next_work(m);
		if (i < 0)
			break;
		struct work *k = &m->works[i];
		k->begun = true;
		k->crossed = m->connected && k->life < client_of(s, m)->life;
		m->worker_work[w] = i;
		struct entry *e = pod_note(s, m, EV_BATCH_STARTED);
		e->life = k->life;
		e->batch = k->batch;
		if (client_of(s, m)->job->steps)
			command_begins(s, m, w);
		else
			render_on(s, m, w);
	}
	finish_detached(s, m);
}

/* A file counts as lost if its transfer breaks this often while the pod and its connection are
 * well. */
bool drops_beyond_patience(const struct sim *s)
{
	enum { PATIENCE = 5 };
	int drops = 0;

	for (int i = 0; i < s->plan->fault_count; i++)
		if (s->plan->faults[i].kind == F_FETCH_DROPS && !s->plan->faults[i].dropped)
			drops += s->plan->faults[i].count;
	return s->hit[F_FETCH_DROPS] && drops >= PATIENCE;
}

/* A client that takes a pod over revokes what waits there. Work that begins before that is done
 * twice. */
static bool crossed(const struct client *cl, const struct machine *m, const struct machine *k)
{
	int newest = cl->up ? cl->life : cl->life - 1;
	int64_t until = cl->up ? cl->sim->now : cl->life_ended;
	int64_t reached_at = k->reached_in == newest ? k->reached_at : until;
	/* at most as long as a client waits */
	bool was_awaited = reached_at > cl->life_began + LOG_WITHIN_MS - CONNECT_RETRY_MAX_MS;

	return cl->ever_crashed && (m == k || !cl->sim->plan->replay_first || was_awaited);
}

/* It was rendered before, and its result was not lost. */
static void check_paid_twice(struct sim *s, const struct machine *m, const struct work *work,
			     uint32_t seg)
{
	const struct client *cl = client_of(s, m);

	if (!cl->renders[seg] || work->crossed || m->let_go || cl->spoilt || s->measuring ||
	    drops_beyond_patience(s))
		return;
	for (size_t i = 0; i < s->machine_count; i++) {
		const struct machine *k = &s->machines[i];
		bool is_lost = k->is_over || k->let_go || (k->was_cut && !s->plan->replay_first) ||
			       crossed(cl, m, k) || k->files[seg] == 2;
		if (k->client == m->client && k->files[seg] && is_lost)
			return;
	}
	broke(s, "segment %u is paid for twice, at last on %s", seg, m->id);
}

static void rendered(struct sim *s, struct machine *m, const struct work *work, uint32_t seg)
{
	struct client *cl = client_of(s, m);

	check_paid_twice(s, m, work, seg);
	if (cl->renders[seg] < UINT8_MAX)
		cl->renders[seg]++;
	m->files[seg] = plant(PLANT_FILE_UNWRITTEN) ? 0 : work->crossed ? 2 : 1;
}

static void renew(struct sim *s, struct machine *m)
{
	m->renewed_at = s->now;
	m->lease_ms = client_of(s, m)->job->conf.lease_ms;
	m->lease = s->now + m->lease_ms;
	pod_watch(s, m);
}

static void segment_over(struct sim *s, struct machine *m, struct work *k)
{
	const struct client *cl = client_of(s, m);
	uint32_t seg = k->segments[k->next];
	s->hit[F_POISON] = s->hit[F_POISON] || cl->poison[seg];
	enum err_kind kind = cl->poison[seg]              ? ERR_JOB
			     : strikes(s, F_FILE_MISSING) ? ERR_NOT_FOUND
							  : ERR_NONE;
	struct entry *e = pod_note(s, m, kind ? EV_SEGMENT_FAILED : EV_RENDERED);

	e->life = k->life;
	e->batch = k->batch;
	e->segment = seg;
	e->kind = kind;
	e->elapsed_ms = cl->job->steps ? s->now - k->began
				       : 1 + (int64_t)client_ms_of(cl, m->vendor, m->offer,
								   cl->job->segments[seg].weight);
	k->took_ms = MAX(e->elapsed_ms, 1);
	if (kind == ERR_NONE)
		rendered(s, m, k, seg);
	if (m->detached)
		renew(s, m);
	else if (plant(PLANT_AGENT_HOLDS_LEASE))
		m->lease = (m->renewed_at = s->now) + cl->job->conf.lease_ms;
}

/* A worker has nothing in hand. */
void pod_worker_free(struct sim *s, struct machine *m)
{
	bool busy = false;

	feed_workers(s, m);
	for (int w = 0; w < SLOTS_MAX; w++)
		busy = busy || m->worker_work[w] >= 0;
	if (!busy)
		m->idle_since = s->now;
}

void pod_work(struct sim *s, struct happening *h)
{
	struct machine *m = &s->machines[h->machine];
	int w = (int)h->x;

	if (h->conn != m->epoch || m->is_over ||
	    (client_of(s, m)->job->steps && !command_step(s, m, h)))
		return;
	struct work *k = &m->works[m->worker_work[w]];
	segment_over(s, m, k);
	if (++k->next < k->count) {
		render_on(s, m, w);
		return;
	}
	k->over = true;
	m->worker_work[w] = -1;
	struct entry *e = pod_note(s, m, EV_BATCH_DONE);
	e->life = k->life;
	e->batch = k->batch;
	if (m->workers_end && m->work_done > 2) {
		stop_workers(s, m);
		m->workers_never = true;
		pod_note(s, m, EV_WORKERS_FAILED)->kind = ERR_JOB;
		return;
	}
	pod_worker_free(s, m);
}

void pod_worker(struct sim *s, struct happening *h)
{
	struct machine *m = &s->machines[h->machine];

	if (h->conn != m->epoch || m->is_over)
		return;
	if (m->workers_never) {
		struct entry *e = pod_note(s, m, EV_WORKERS_FAILED);
		e->kind = ERR_JOB;
		e->number = m->card_unfit ? CARD_UNFIT : CARD_FITS;
		return;
	}
	pod_note(s, m, EV_WORKERS)->number = ++m->workers_ready;
	feed_workers(s, m);
}

/* ---- what the client says ---- */

static void prepare_fails(struct sim *s, struct machine *m, enum err_kind kind)
{
	struct happening *h = client_later(client_of(s, m), s->plan->rtt_ms, W_PREPARE_FAILED);

	h->machine = number_of(s, m);
	h->conn = m->conn;
	h->kind = kind;
}

static void prepare(struct sim *s, struct machine *m, bool shared)
{
	if (strikes(s, F_PREPARE_FAILS)) {
		prepare_fails(s, m, ERR_JOB);
		return;
	}
	if (strikes(s, F_PREPARE_TRANSIENT)) {
		prepare_fails(s, m, ERR_TRANSIENT);
		return;
	}
	if (strikes(s, F_PREPARE_HANGS))
		return;
	struct happening *h =
		later(s, (shared ? s->plan->prepare_ms : 0) + s->plan->install_ms, W_PREPARED);
	h->machine = number_of(s, m);
	h->conn = m->conn;
	h->x = shared;
}

void pod_prepared(struct sim *s, struct happening *h)
{
	struct machine *m = &s->machines[h->machine];

	if (h->conn != m->conn || !m->connected)
		return;
	if (h->x || s->plan->own_ready) {
		struct happening *r = client_later(client_of(s, m), s->plan->rtt_ms / 2, W_SHARED);
		r->machine = h->machine;
		r->conn = m->conn;
	}
	if (m->workers_started) {
		if (m->workers_ready)
			pod_note(s, m, EV_WORKERS)->number = m->workers_ready;
		return;
	}
	m->workers_started = client_of(s, m)->job->conf.workers;
	for (int w = 0; w < m->workers_started; w++)
		on_pod(s, m, s->plan->load_ms + 50 * w, W_WORKER);
}

static bool known(const struct machine *m, const struct happening *h)
{
	for (size_t i = 0; i < m->work_count; i++)
		if (m->works[i].life == h->life && m->works[i].batch == h->batch)
			return true;
	return false;
}

static void take_batch(struct sim *s, struct machine *m, struct happening *h)
{
	if (!s->measuring && known(m, h))
		return;
	GROW(m->works, m->work_count, m->work_cap);
	m->works[m->work_count++] = (struct work){.life = h->life,
						  .batch = h->batch,
						  .count = h->count,
						  .segments = TAKE(h->data),
						  .from = h->from};
	feed_workers(s, m);
}

static void revoke(struct sim *s, struct machine *m)
{
	for (size_t i = m->work_done; i < m->work_count; i++) {
		struct work *k = &m->works[i];
		if (k->begun || k->over)
			continue;
		k->over = true;
		struct entry *e = pod_note(s, m, EV_REVOKED);
		e->life = k->life;
		e->batch = k->batch;
		e->segment = UINT32_MAX;
	}
	finish_detached(s, m);
}

void pod_command(struct sim *s, struct happening *h)
{
	struct machine *m = &s->machines[h->machine];

	if (h->conn != m->conn || !m->connected || m->is_over)
		return; /* lost with the connection */
	switch ((enum command)h->x) {
	case C_PREPARE: prepare(s, m, h->y); break;
	case C_SEND: take_batch(s, m, h); break;
	case C_REVOKE: revoke(s, m); break;
	case C_HALT:
		revoke(s, m);
		command_halt(s, m, h->y);
		break;
	case C_TAKEOVER: m->detached = false; break;
	case C_HANDOVER:
	case C_RENEW:
		m->lease_shown = true;
		renew(s, m);
		m->detached = m->detached || h->x == C_HANDOVER;
		m->was_detached = m->was_detached || m->detached;
		if (h->x == C_HANDOVER)
			pod_note(s, m, EV_HANDOVER_DONE)->number = (int)h->y;
		finish_detached(s, m);
		break;
	}
}
