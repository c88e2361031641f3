/* client_hear.c - tells the core the results of its actions. */
#include "command.h"
#include "pool.h"

/* ---- what came of them ---- */

static struct err trouble(enum err_kind kind, int64_t retry_ms)
{
	struct err err = {0};

	err_set(&err, kind, "trouble: %s", err_kind_name(kind));
	err.retry_after_ms = kind == ERR_RATE_LIMITED && !retry_ms ? 5000 : retry_ms;
	return err;
}

void client_told(struct client *cl, struct event *ev, const struct err *err)
{
	ev->err = err;
	trace(cl->sim, "%c: event %d pod %d provider %d segment %u batch %d%s%s",
	      client_name_of(cl), (int)ev->type, ev->pod, ev->provider, ev->segment, (int)ev->batch,
	      err ? " " : "", err ? err->msg : "");
	if (ev->type == EV_OFFERS)
		client_take_offers(cl, ev);
	client_step(cl, ev);
}

static void send_event(struct client *cl, struct event *ev, enum err_kind kind)
{
	struct err err = trouble(kind, cl->retry_ms);

	client_told(cl, ev, kind ? &err : NULL);
}

/* The client records in its ledger that this card cannot run the job. */
static void card_told(struct client *cl, const struct machine *m)
{
	const struct vendor_plan *v = &cl->sim->plan->vendors[m->vendor];

	for (int i = 0; i < v->offer_count; i++)
		if (!strcmp(v->offers[i].gpu, v->offers[m->offer].gpu))
			cl->unfit[m->vendor][i] = cl->laptop->unfit[m->vendor][i] = true;
}

static void entry_heard(struct client *cl, int machine, size_t n)
{
	const struct entry *e = &cl->sim->machines[machine].log[n];
	struct event ev = {.type = e->type,
			   .pod = client_pod_of(cl, machine),
			   .segment = e->segment,
			   .t = e->t,
			   .batch = e->life == cl->life ? e->batch : UINT32_MAX,
			   .elapsed_ms = e->elapsed_ms,
			   .number = e->number};
	if (e->type == EV_WORKERS && (cl->job->padded || cl->job->continuous)) {
		ev.max_batch = cl->job->conf.max_batch;
		ev.batching = cl->job->padded ? BATCHING_PADDED : BATCHING_CONTINUOUS;
	}

	if (e->type == EV_HANDOVER_DONE && e->life != cl->life)
		ev.number = -1; /* its id belongs to another client */
	size_t *seen = client_seen_of(cl, machine);
	if (n != *seen)
		return;
	(*seen)++;
	if (ev.pod >= 0 && !cl->reaping && command_entry(cl, machine, ev.pod, e))
		return;
	e = &cl->sim->machines[machine].log[n];
	if (e->type == EV_WORKERS_FAILED && e->number == CARD_UNFIT && ev.pod >= 0 && !cl->reaping)
		card_told(cl, &cl->sim->machines[machine]);
	if (ev.pod >= 0 && !cl->reaping)
		send_event(cl, &ev, e->kind);
}

static void replay(struct client *cl, int machine)
{
	int life = cl->life;
	size_t count = cl->sim->machines[machine].log_count;

	for (size_t n = *client_seen_of(cl, machine); n < count && cl->life == life && cl->up; n++)
		entry_heard(cl, machine, n);
}

/* What its workers hold, as its agent's hello reports it. */
static void tell_running(struct client *cl, int machine, int pod)
{
	int life = cl->life;

	for (int w = 0; w < SLOTS_MAX; w++) {
		struct machine *m = &cl->sim->machines[machine];
		if (m->worker_work[w] < 0)
			continue;
		struct work k = m->works[m->worker_work[w]];
		for (size_t n = k.next; n < k.count && cl->life == life && cl->up; n++) {
			struct event ev = {.type = EV_RUNNING,
					   .pod = pod,
					   .segment = k.segments[n],
					   .t = cl->sim->now - m->created};
			send_event(cl, &ev, ERR_NONE);
		}
	}
}

static void reached(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_CONNECT_FAILED,
			   .pod = h->pod,
			   .t = boot_now(cl) - cl->sim->plan->rtt_ms};
	struct machine *m = client_machine_of(cl, h->pod);
	int machine = (int)(m - cl->sim->machines), life = cl->life;

	if (core_pod_at(cl->core, h->pod)->phase != POD_CONNECTING)
		return;
	if (m->is_over || !m->running || m->unreachable || m->cut_until > cl->sim->now) {
		send_event(cl, &ev, ERR_NETWORK);
		return;
	}
	if (m->bad_key) {
		send_event(cl, &ev, ERR_UNTRUSTED);
		return;
	}
	pod_attach(cl->sim, m);
	if (cl->sim->plan->replay_first)
		replay(cl, machine);
	if (cl->life != life || !cl->up || cl->sim->broken[0])
		return;
	m = &cl->sim->machines[machine];
	tell_running(cl, machine, h->pod);
	if (cl->life != life || !cl->up || cl->sim->broken[0])
		return;
	m = &cl->sim->machines[machine];
	ev.type = EV_CONNECTED;
	ev.switch_ok = !m->bad_switch;
	ev.gpus = !m->no_gpu;
	ev.workers_alive = m->workers_ready > 0;
	pod_stream(cl->sim, m, *client_seen_of(cl, machine));
	if (cl->job->steps && !cl->reaping)
		command_connected(cl, h->pod);
	send_event(cl, &ev, ERR_NONE);
}

static bool check_is_bad(struct client *cl, uint32_t segment)
{
	if (cl->bad_checks[segment] <= 0)
		return false;
	cl->bad_checks[segment]--;
	cl->sim->hit[F_CHECK_BAD] = cl->spoilt = true;
	return true;
}

/* The file is here, with its hash. */
void client_home(struct client *cl, int pod, uint32_t segment)
{
	struct event ev = {.type = EV_FETCHED,
			   .pod = pod,
			   .segment = segment,
			   .ok = true,
			   .check_ok = !check_is_bad(cl, segment)};

	send_event(cl, &ev, ERR_NONE);
}

static void fetched(struct client *cl, struct happening *h)
{
	struct machine *m = &cl->sim->machines[h->machine];
	struct event ev = {.type = EV_FETCH_FAILED, .pod = h->pod, .segment = h->segment};

	if (!h->y && h->conn != m->conn)
		return; /* with the connection */
	if (h->kind) {
		send_event(cl, &ev, h->kind);
		return;
	}
	if (strikes(cl->sim, F_FETCH_UNTRUSTED)) {
		cl->spoilt = true;
		send_event(cl, &ev, ERR_UNTRUSTED);
	} else if (strikes(cl->sim, F_FETCH_DROPS)) {
		send_event(cl, &ev, ERR_NETWORK);
	} else if (!m->files[h->segment]) {
		broke(cl->sim, "a fetch of a file that never was");
	} else {
		client_home(cl, h->pod, h->segment);
	}
}

static void kept(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_LOCAL, .pod = h->pod, .segment = h->segment};

	if (strikes(cl->sim, F_DISK_FULL)) {
		ev.type = EV_FETCH_FAILED;
		send_event(cl, &ev, ERR_LOCAL);
		return;
	}
	if (cl->local[h->segment])
		broke(cl->sim, "segment %u is kept twice", h->segment);
	cl->local[h->segment] = !plant(PLANT_KEEP_LOST);
	cl->good_safe = cl->good_safe || !h->x;
	if (cl->job->steps)
		command_placed(cl, h->pod, h->segment);
	send_event(cl, &ev, ERR_NONE);
	if (plant(PLANT_FETCH_AGAIN) && cl->up)
		client_fetch(cl, &(struct action){.pod = h->pod,
						  .segment = h->segment,
						  .provider = h->provider});
}

void client_salvages(struct client *cl, int pod, const struct entry *e)
{
	struct event ev = {.type = EV_RENDERED,
			   .pod = pod,
			   .segment = e->segment,
			   .t = e->t,
			   .elapsed_ms = e->elapsed_ms};
	const struct machine *m = client_machine_of(cl, pod);

	if (!m || command_entry(cl, (int)(m - cl->sim->machines), pod, e))
		return;
	if (e->type == EV_RENDERED && !plant(PLANT_VOLUME_FORGOTTEN))
		send_event(cl, &ev, ERR_NONE);
}

static void salvaged(struct client *cl, struct happening *h)
{
	struct machine *m = client_machine_of(cl, h->pod);
	int life = cl->life;
	struct event over = {.type = EV_SALVAGED, .pod = h->pod};

	if (strikes(cl->sim, F_SALVAGE_FAILS)) {
		cl->spoilt = true;
		send_event(cl, &over, ERR_NETWORK);
		return;
	}
	for (size_t n = 0; n < m->log_count && cl->life == life && cl->up; n++) {
		struct entry e = m->log[n];
		client_salvages(cl, h->pod, &e);
	}
	if (cl->life == life && cl->up)
		send_event(cl, &over, ERR_NONE);
}

static void synced(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_SYNCED, .pod = h->pod, .number = (int)h->x, .ok = h->y};

	if (h->conn == cl->sim->machines[h->machine].conn)
		send_event(cl, &ev, ERR_NONE);
}

/* An inspection by id shows what lists omit. */
static void inspected(struct client *cl, struct happening *h)
{
	const struct machine *m = client_machine_of(cl, h->pod);
	struct pod_view view = {.state = POD_STATE_GONE};
	struct event ev = {.type = EV_INSPECTED,
			   .pod = h->pod,
			   .provider = h->provider,
			   .views = &view,
			   .count = 1,
			   .requested_at = h->x};

	if (m)
		view = cloud_view(cl->sim, m);
	else
		COPY_TEXT(view.id, core_pod_at(cl->core, h->pod)->rental.id);
	send_event(cl, &ev, h->kind);
}

/* Its image is pulled bit by bit until it runs. */
static void log_read(struct client *cl, struct happening *h)
{
	const struct machine *m = client_machine_of(cl, h->pod);
	struct event ev = {.type = EV_LOG, .pod = h->pod, .provider = h->provider, .number = 1};

	if (m && (m->never_runs || m->failed || m->running))
		ev.number = 0;
	send_event(cl, &ev, h->kind ? h->kind : m && m->is_over ? ERR_NOT_FOUND : ERR_NONE);
}

void client_avoid_host(struct client *cl, const struct action *a, int64_t at)
{
	const struct core_pod *p = core_pod_at(cl->core, a->pod);
	const struct vendor_plan *v = &cl->sim->plan->vendors[p->rental.provider];

	if (at && p->rental.id[0] && client_machine_of(cl, a->pod)->queued &&
	    !client_machine_of(cl, a->pod)->is_over)
		broke(cl->sim, "pod %s is called a bad host, and it waits for a machine",
		      p->rental.id);
	if (wire_avoid_host(cl, a->pod, at))
		return;
	for (int i = 0; i < v->offer_count; i++)
		if (!strcmp(v->offers[i].id, p->rental.offer.id))
			cl->laptop->bad_at[p->rental.provider][i] = at;
}

static void created(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_RENTED, .pod = h->pod, .provider = h->provider};
	struct pod_view view = {.state = POD_STATE_CREATING};

	if (h->kind != ERR_NONE) {
		ev.type = EV_RENT_FAILED;
		send_event(cl, &ev, h->kind);
		return;
	}
	const struct machine *m = &cl->sim->machines[h->machine];
	COPY_TEXT(view.id, m->id);
	view.price_microusd_h = plant(PLANT_PRICE_UNSEEN) ? 0 : m->price;
	if (!cl->sim->plan->vendors[m->vendor].vague && m->running) {
		view.state = POD_STATE_RUNNING;
		view.reach = REACH_SSH;
		view.port = 22;
	}
	if (cl->sim->plan->vendors[m->vendor].free) {
		struct pod_view now = cloud_view(cl->sim, m);
		view.state = now.state;
		view.started_at_s = now.started_at_s;
		view.ended_at_s = now.ended_at_s;
	}
	ev.views = &view;
	ev.count = 1;
	send_event(cl, &ev, ERR_NONE);
}

static void listed(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_LISTED,
			   .provider = h->provider,
			   .views = h->data,
			   .count = h->count,
			   .requested_at = h->x};

	cl->list_failed[h->provider] = h->kind ? boot_now(cl) : 0;
	ev.count = h->kind ? 0 : pool_drop(cl, h->data, h->count);
	ev.ahead_ms = cl->laptop->wall_offset;
	ev.clock_known = true;
	send_event(cl, &ev, h->kind);
	if (h->kind && plant(PLANT_LIST_PATIENT))
		cl->core->vendors[h->provider].list_not_before =
			cl->core->vendors[h->provider].list_at = boot_now(cl) + 600000;
}

static void offered(struct client *cl, struct happening *h)
{
	const struct vendor_plan *v = &cl->sim->plan->vendors[h->provider];
	struct offer_past client_past[4] = {0};
	struct offer offers[4];
	struct event ev = {.type = EV_OFFERS,
			   .provider = h->provider,
			   .offers = offers,
			   .count = (size_t)v->offer_count,
			   .past = client_past};

	for (int i = 0; i < v->offer_count; i++) {
		int64_t at = cl->laptop->bad_at[h->provider][i];
		offers[i] = v->offers[i];
		offers[i].price_microusd_h = cl->sim->prices[h->provider][i];
		client_past[i].boot_ms = cl->sim->plan->knows_boots ? v->boot_ms : 0;
		client_past[i].bad_at_ms = at;
		client_past[i].bad_until_ms = at ? at + 1800000 : 0;
		if (cl->laptop->unfit[h->provider][i])
			COPY_TEXT(client_past[i].unfit, "no kernels");
	}
	if (h->kind) {
		send_event(cl, &ev, h->kind);
		return;
	}
	if (strikes(cl->sim, F_OFFERS_FAIL)) {
		cl->retry_ms = cloud_patience(v);
		send_event(cl, &ev, ERR_TRANSIENT);
		return;
	}
	if (strikes(cl->sim, F_REPLY_WILD)) {
		send_event(cl, &ev, ERR_UNTRUSTED);
		return;
	}
	if (strikes(cl->sim, F_OFFERS_EMPTY))
		ev.count = 0;
	send_event(cl, &ev, ERR_NONE);
}

static void volume_found(struct client *cl, struct happening *h)
{
	struct volume v = {.id = "vol",
			   .name = "cache",
			   .used_bytes = -1,
			   .apart = cl->sim->plan->vendors[h->provider].apart};
	struct event ev = {.type = EV_VOLUME, .provider = h->provider, .volume = &v};

	enum err_kind kind = h->kind                            ? h->kind
			     : strikes(cl->sim, F_VOLUME_FAILS) ? ERR_TRANSIENT
			     : strikes(cl->sim, F_REPLY_WILD)   ? ERR_UNTRUSTED
								: ERR_NONE;

	if (!kind && h->x)
		cl->sim->has_volume[h->provider] = true;
	if (!kind && !cl->sim->has_volume[h->provider])
		kind = ERR_NOT_FOUND;
	send_event(cl, &ev, kind);
}

static void image_built(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_IMAGE, .provider = h->provider};

	send_event(cl, &ev,
		   h->kind                            ? h->kind
		   : strikes(cl->sim, F_VOLUME_FAILS) ? ERR_TRANSIENT
						      : ERR_NONE);
}

static void signalled(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_SIGNAL, .number = h->x % 2 ? 2 : 15};

	cl->sim->hit[F_SIGNAL] = true;
	send_event(cl, &ev, ERR_NONE);
}

static void client_fault(struct client *cl, enum err_kind kind)
{
	struct event ev = {.type = EV_FAULT};

	send_event(cl, &ev, kind);
}

static void about_machine(struct client *cl, struct happening *h, enum event_type type)
{
	struct event ev = {.type = type, .pod = client_pod_of(cl, h->machine)};
	const struct machine *m = &cl->sim->machines[h->machine];

	if (ev.pod < 0 || (type == EV_LOST ? h->conn + 1 != m->conn : h->conn != m->conn))
		return;
	send_event(cl, &ev, type == EV_LOST ? ERR_NETWORK : h->kind);
}

static void about_pod(struct client *cl, const struct happening *h, enum event_type type)
{
	struct event ev = {.type = type, .pod = h->pod};

	send_event(cl, &ev, ERR_NONE);
}

void client_hears(struct client *cl, struct happening *h)
{
	struct event ev = {.type = EV_RELEASED, .pod = h->pod};

	account_heard(cl, h);
	plant_heard(cl, h);
	cl->retry_ms = h->retry_ms;
	switch (h->what) {
	case W_OFFERS: offered(cl, h); break;
	case W_VOLUME: volume_found(cl, h); break;
	case W_IMAGE: image_built(cl, h); break;
	case W_CREATED: created(cl, h); break;
	case W_SAVE_FAILED:
		ev.type = EV_RENT_FAILED;
		if (h->pod >= 0)
			send_event(cl, &ev, ERR_LOCAL);
		else if (!cl->reaping)
			client_fault(cl, ERR_LOCAL);
		break;
	case W_LISTED: listed(cl, h); break;
	case W_REACHED: reached(cl, h); break;
	case W_LOST: about_machine(cl, h, EV_LOST); break;
	case W_SHARED: about_machine(cl, h, EV_SHARED_READY); break;
	case W_PREPARE_FAILED: about_machine(cl, h, EV_PREPARE_FAILED); break;
	case W_ENTRY:
		if (h->conn == cl->sim->machines[h->machine].conn)
			entry_heard(cl, h->machine, (size_t)h->x);
		break;
	case W_FETCHED: fetched(cl, h); break;
	case W_FILES:
	case W_OUTPUT:
	case W_SNAPSHOT: command_hears(cl, h); break;
	case W_KEPT: kept(cl, h); break;
	case W_SALVAGED: salvaged(cl, h); break;
	case W_SYNCED: synced(cl, h); break;
	case W_LOG: log_read(cl, h); break;
	case W_INSPECTED: inspected(cl, h); break;
	case W_WIRE_REPLY:
	case W_WIRE_AGAIN: wire_hears(cl, h); break;
	case W_RELEASED:
		ev.number = (int)h->x;
		send_event(cl, &ev, h->kind);
		break;
	case W_SIGNAL: signalled(cl, h); break;
	case W_ROOM: account_room(cl, h); break;
	case W_TAKEN: pool_taken(cl, h); break;
	case W_UNASKED: about_pod(cl, h, EV_NOT_WANTED); break;
	case W_HANDED: about_pod(cl, h, EV_ADOPTED); break;
	case W_SOUGHT: about_pod(cl, h, EV_SOUGHT); break;
	case W_BILLED: client_leaves(cl); break;
	case W_CRASH:
		client_crash(cl, &(struct fault){.kind = F_CRASH_FOREVER, .x = (int)h->x});
		break;
	default: break;
	}
}

void client_tick(struct client *cl)
{
	struct event ev = {.type = EV_TICK};

	client_step(cl, &ev);
}

void client_sleeps(struct client *cl)
{
	cl->asleep_from = client_bill(cl);
	cloud_alone(cl, true);
}

/* What its pods cost during the sleep, rented under a higher cap, is spent. */
void client_slept(struct client *cl)
{
	struct event ev = {.type = EV_SLEPT};

	if (!cl->up)
		return;
	int64_t beyond = MAX(cl->asleep_from - MAX(cl->cap_now, cl->metered), 0);
	cl->metered = MAX(cl->metered, client_bill(cl) - beyond);
	cloud_alone(cl, false);
	send_event(cl, &ev, ERR_NONE);
}
