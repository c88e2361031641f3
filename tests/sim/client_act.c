/* client_act.c - carries out the core's actions on machines and vendors, and checks each one. */
#include "client.h"
#include "command.h"
#include "pool.h"

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

void client_call(struct client *cl, const struct action *a, enum what what, int64_t x, int machine,
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

/* Rendered by a pod that was released because all of its work was durable: only bad files are
 * rendered again. */
/* It was dealt out before the log of the pod that had finished it was read, and that log came
 * too late. */
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
		if (!client_ours(cl, &cl->laptop->rows[i]) || !p->presence.durable ||
		    !p->rental.id[0])
			continue;
		for (size_t k = 0; k < cl->sim->machine_count; k++) {
			const struct machine *m = &cl->sim->machines[k];
			if (!strcmp(m->id, p->rental.id) && m->files && m->files[segment] &&
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
	h->from = once.from;
	h->count = once.count;
	h->data = memcpy(xcalloc(once.count, sizeof(uint32_t)), once.data,
			 once.count * sizeof(uint32_t));
}

static void command(struct client *cl, const struct action *a, enum command what)
{
	struct machine *m = client_machine_of(cl, a->pod);

	const struct core_pod *p = core_pod_at(cl->core, a->pod);
	if (p->presence.link != LINK_UP && pod_is_retired(p))
		return; /* sent before the connection was dropped in the same step, so it never
			   arrives */
	if (p->presence.link != LINK_UP)
		broke(cl->sim, "a command (%d) to a pod without a connection", (int)what);
	if (!m)
		return;
	struct happening given = {0};
	int64_t bring_ms =
		what == C_SEND && cl->job->steps
			? command_given(cl, a->pod, core_batch_at(cl->core, a->batch)->segments[0],
					&given)
			: 0;
	struct happening *h = ask(cl, a, cl->sim->plan->rtt_ms / 2 + bring_ms, W_COMMAND);
	h->from = given.from;
	h->machine = (int)(m - cl->sim->machines);
	h->conn = m->conn;
	h->x = what;
	h->y = what == C_HANDOVER || what == C_HALT ? a->number : a->flag;
	if (what != C_SEND)
		return;
	const struct core_batch *b = core_batch_at(cl->core, a->batch);
	uint32_t *segments = xcalloc(b->count, sizeof(*segments));
	memcpy(segments, b->segments, b->count * sizeof(*segments));
	h->data = segments;
	h->count = b->count;
	for (size_t i = 0; i < b->count; i++) {
		if (cl->local[segments[i]])
			broke(cl->sim, "segment %u is safe and is rendered again", segments[i]);
		else if (on_a_volume(cl, segments[i]))
			broke(cl->sim, "segment %u is safe on a volume and is rendered again",
			      segments[i]);
	}
	if (plant(PLANT_SEND_TWICE))
		send_again(cl, h);
	if (cl->job->conf.batch_size_count &&
	    core_pod_at(cl->core, a->pod)->workload.batches >
		    MAX(core_pod_at(cl->core, a->pod)->workload.workers_ready, 1))
		broke(cl->sim, "a batch beside others that are measured");
	if (b->count > (size_t)MAX(cl->job->conf.max_batch, 1) || !b->count)
		broke(cl->sim, "a batch of %zu segments", b->count);
}

void client_fetch(struct client *cl, const struct action *a)
{
	const struct core_pod *p = core_pod_at(cl->core, a->pod);
	struct machine *m = client_machine_of(cl, a->pod);

	if (cl->local[a->segment])
		broke(cl->sim, "segment %u is safe and is fetched again", a->segment);
	/* its release follows in the same step and drops it */
	if (!pod_files_on_volume(p) && p->presence.link != LINK_UP && !pod_is_retired(p))
		broke(cl->sim, "a fetch from a pod without a connection");
	if (cl->job->steps) {
		command_fetch(cl, a->pod, a->segment);
		return;
	}
	if (pod_files_on_volume(p) && wire_fetch(cl, a->pod, a->segment))
		return;
	struct fault *slow = strikes(cl->sim, F_FETCH_SLOW);
	int64_t took =
		pod_files_on_volume(p) ? api(cl, a) : cl->sim->plan->rtt_ms + pick(cl->sim, 0, 30);
	struct happening *h = ask(cl, a, took + (slow ? slow->ms % 60000 : 0), W_FETCHED);
	h->machine = (int)(m - cl->sim->machines);
	h->conn = m->conn;
	h->y = pod_files_on_volume(p);
}

/* A sync takes a while, and sometimes waits for the last few files. */
static void sync_volume(struct client *cl, const struct action *a)
{
	struct machine *m = client_machine_of(cl, a->pod);
	const struct core_pod *p = core_pod_at(cl->core, a->pod);

	if (p->presence.link != LINK_UP && pod_is_retired(p))
		return; /* sent before the connection was dropped in the same step, as other
			   commands may be */
	if (p->presence.link != LINK_UP || !m)
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
	struct machine *m = cloud_machine(cl->sim, core_pod_at(cl->core, a->pod)->rental.id);

	if (!m) {
		broke(cl->sim, "a release without an id");
		return;
	}
	if (pool_withdraw(cl, a->pod))
		return;
	if (!plant(PLANT_OFFER_STANDS))
		client_machine_of(cl, a->pod); /* it is its own */
	command_check_release(cl, a->pod, m);
	m->let_go = m->let_go || m->client == cl->number;
	client_call(cl, a, W_RELEASE, 0, (int)(m - cl->sim->machines), 0);
}

/* Over a new connection, unless the one that stood at the release is required. */
static void finish(struct client *cl, const struct action *a)
{
	struct machine *m = client_machine_of(cl, a->pod);

	if (m && (!a->flag || m->stood))
		later(cl->sim, a->flag ? cl->sim->plan->rtt_ms / 2 : 3 * cl->sim->plan->rtt_ms,
		      W_FINISH)
			->machine = (int)(m - cl->sim->machines);
}

static void close_connection(struct client *cl, const struct action *a)
{
	struct machine *m = client_machine_of(cl, a->pod);

	if (m)
		m->stood = m->connected;
	if (m && m->connected) {
		m->connected = false;
		m->conn++;
	}
}

/* The client of a detached run may be gone for good once the agents have the rest; another
 * client may reap what it left. */
static void may_die_soon(struct client *cl)
{
	const struct fault *f = strikes(cl->sim, F_CRASH_HANDED);

	if (f)
		client_later(cl, cl->sim->plan->rtt_ms + f->ms % 60000, W_CRASH)->x =
			f->x - (f->x % 4 ? f->x % 3 : 0);
}

void client_left_alone(struct client *cl, const struct fault *f)
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

void client_check_handover(struct client *cl)
{
	const struct core *c = cl->core;
	const struct fault *f;

	if (cl->handed_over || cl->reaping || core_handover(c) != HANDOVER_DONE)
		return;
	cl->handed_over = true;
	trace(cl->sim, "client %c: the queue is with the pods", client_name_of(cl));
	for (uint32_t i = 0; i < c->seg_count; i++) {
		bool given = c->segs[i].state == SEG_LOCAL || c->segs[i].state == SEG_FAILED;
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
		client_left_alone(cl, f);
}

/* A pod bills meanwhile, so a vendor's Retry-After may delay a list only so long. */
void client_check_list(struct client *cl, int provider)
{
	enum { LOOKED_FOR_MS = 75 * 1000 };
	int64_t failed = cl->list_failed[provider];

	if (!failed || boot_now(cl) - MAX(failed, client_woke_at(cl)) <= LOOKED_FOR_MS)
		return;
	for (int i = 0; i < cl->core->pod_count; i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		if (p->rental.provider == provider &&
		    ((p->phase == POD_BOOTING && p->rental.rented_at &&
		      p->rental.rented_at < failed) ||
		     (p->phase == POD_CONFIRMING && p->rental.released_at &&
		      p->rental.released_at < failed)))
			broke(cl->sim,
			      "pod %s is not looked for again for %lld ms after a list that failed",
			      p->rental.id, (long long)(boot_now(cl) - failed));
	}
}

static bool makes_volume(const struct action *a)
{
	return a->type == ACT_VOLUME && (a->flag || plant(PLANT_VOLUME_EARLY));
}

/* It bills until the user removes it, and ties the run to its region. */
static void check_volume(struct client *cl, const struct action *a)
{
	if (makes_volume(a) && !cl->affords[a->provider])
		broke(cl->sim, "%c: a volume is made at provider %d, where nothing can be rented",
		      client_name_of(cl), a->provider);
}

void client_take_offers(struct client *cl, const struct event *ev)
{
	int64_t most = cl->core->conf.max_price_microusd_h;

	if (ev->err)
		return; /* the last list still counts */
	cl->affords[ev->provider] = false;
	for (size_t i = 0; i < ev->count; i++)
		if (!most || ev->offers[i].price_microusd_h <= most)
			cl->affords[ev->provider] = true;
}

static void act(struct client *cl, const struct action *a)
{
	check_volume(cl, a);
	/* it has neither connections to pods nor rows of them */
	if (is_reaper(cl) && (a->type == ACT_CLOSE || a->type == ACT_FINISH || a->type == ACT_SAVE))
		return;
	if (wire_act(cl, a))
		return;
	switch (a->type) {
	case ACT_OFFERS: client_call(cl, a, W_OFFERS, 0, -1, 0); break;
	case ACT_VOLUME: client_call(cl, a, W_VOLUME, makes_volume(a), -1, 0); break;
	case ACT_IMAGE:
		client_call(cl, a, W_IMAGE, 0, -1, cl->sim->plan->vendors[a->provider].boot_ms);
		break;
	case ACT_SAVE: client_save(cl, a->pod); break;
	case ACT_RENT: client_rent(cl, a); break;
	case ACT_LIST:
		client_check_list(cl, a->provider);
		client_call(cl, a, W_LIST, boot_now(cl), -1, 0);
		break;
	case ACT_INSPECT: client_call(cl, a, W_INSPECTED, boot_now(cl), -1, 0); break;
	case ACT_LOG: client_call(cl, a, W_LOG, 0, -1, 4000); break;
	case ACT_BAD_HOST: client_avoid_host(cl, a, wall_now(cl)); break;
	case ACT_GOOD_HOST: client_avoid_host(cl, a, 0); break;
	case ACT_CONNECT: ask(cl, a, 3 * cl->sim->plan->rtt_ms, W_REACHED); break;
	case ACT_PREPARE:
		wire_stage_stop(cl, core_pod_at(cl->core, a->pod)->rental.provider);
		if (cl->up)
			command(cl, a, C_PREPARE);
		break;
	case ACT_SEND: command(cl, a, C_SEND); break;
	case ACT_REVOKE: command(cl, a, C_REVOKE); break;
	case ACT_HALT: command(cl, a, C_HALT); break;
	case ACT_FILES: command_files(cl, a->pod, a->flag); break;
	case ACT_RENEW: command(cl, a, C_RENEW); break;
	case ACT_HANDOVER:
		if (client_row_of(cl, core_pod_at(cl->core, a->pod)->rental.attempt)
				    ->pod.presence.lease == LEASE_CLIENT &&
		    !client_machine_of(cl, a->pod)->unsaved)
			broke(cl->sim, "handed over before the ledger knows");
		command(cl, a, C_HANDOVER);
		may_die_soon(cl);
		break;
	case ACT_TAKEOVER: command(cl, a, C_TAKEOVER); break;
	case ACT_FETCH: client_fetch(cl, a); break;
	case ACT_PLACE: ask(cl, a, cl->sim->plan->keep_latency_ms, W_KEPT)->x = a->flag; break;
	case ACT_DISCARD: break;
	case ACT_SALVAGE:
		if (!wire_salvage(cl, a->pod))
			ask(cl, a, 2 * api(cl, a), W_SALVAGED);
		break;
	case ACT_SYNC: sync_volume(cl, a); break;
	case ACT_OFFER: pool_offer(cl, a); break;
	case ACT_SEEK: pool_seek(cl, a); break;
	case ACT_RELEASE: release(cl, a); break;
	case ACT_CLOSE: close_connection(cl, a); break;
	case ACT_FINISH: finish(cl, a); break;
	case ACT_NOTE: break;
	case ACT_END: client_end(cl); break;
	}
}

static const char *action_name(enum action_type type)
{
	static const char *const names[] = {
		"OFFERS",  "VOLUME",   "IMAGE",     "SAVE",     "RENT",     "LIST",    "INSPECT",
		"LOG",     "BAD_HOST", "GOOD_HOST", "CONNECT",  "PREPARE",  "SEND",    "REVOKE",
		"HALT",    "FILES",    "RENEW",     "HANDOVER", "TAKEOVER", "FETCH",   "KEEP",
		"DISCARD", "SALVAGE",  "SYNC",      "OFFER",    "SEEK",     "RELEASE", "CLOSE",
		"FINISH",  "NOTE",     "END"};

	return names[type];
}

void client_perform(struct client *cl)
{
	int life = cl->life;

	while ((size_t)core_pod_count(cl->core) > cl->unsaved_cap) {
		cl->unsaved = xrealloc(cl->unsaved, 2 * cl->unsaved_cap * sizeof(*cl->unsaved));
		memset(cl->unsaved + cl->unsaved_cap, 0, cl->unsaved_cap * sizeof(*cl->unsaved));
		cl->unsaved_cap *= 2;
	}
	for (size_t i = 0; i < cl->out.count && cl->life == life && !cl->sim->broken[0]; i++) {
		struct action *a = &cl->out.list[i];
		if (client_crashes_now(cl))
			return;
		cl->sim->actions++;
		if (cl->sim->tracing && a->type == ACT_SEND) {
			const struct core_batch *b = core_batch_at(cl->core, a->batch);
			trace(cl->sim, "  %c -> SEND pod %d batch %u: %zu segments from %u",
			      client_name_of(cl), a->pod, a->batch, b->count, b->segments[0]);
		} else if (cl->sim->tracing) {
			trace(cl->sim, "  %c -> %s pod %d provider %d segment %u %s",
			      client_name_of(cl), action_name(a->type), a->pod, a->provider,
			      a->segment, a->text);
		}
		if (!plant_act(cl, a))
			act(cl, a);
	}
}
