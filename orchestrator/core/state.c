/* state.c - what all files of core/ need of a run's state: actions and notes, the reason to stop,
 * questions about a pod, who renews its lease. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "impl.h"

/* ---- actions ---- */

struct action *core_act(struct core *c, enum action_type type, int pod)
{
	struct actions *out = c->out;

	GROW(out->list, out->count, out->cap);
	struct action *a = &out->list[out->count++];
	*a = (struct action){.type = type, .pod = pod};
	if (pod >= 0)
		a->provider = c->pods[pod].rental.provider;
	return a;
}

void core_note(struct core *c, enum note_level level, const char *fmt, ...)
{
	struct action *a = core_act(c, ACT_NOTE, -1);
	va_list ap;

	a->number = (int)level;
	va_start(ap, fmt);
	vformat_text(a->text, sizeof(a->text), fmt, ap);
	va_end(ap);
}

static uint64_t next_random(struct core *c)
{
	/* splitmix64: distinct for every call from one seed */
	uint64_t z = (c->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* ---- stopping ---- */

int core_gravity(enum err_kind kind)
{
	return err_status_rank(err_exit_status(&(struct err){.kind = kind}));
}

bool core_is_stopping(const struct core *c)
{
	return c->fault.kind != ERR_NONE || c->signals > 0 || c->conf.reap;
}

void core_stop(struct core *c)
{
	c->grace_until = c->now + FETCH_GRACE_MS;
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].phase == POD_WORKING && c->pods[i].presence.link == LINK_UP &&
		    c->pods[i].leave != LEAVE_DECIDE)
			core_take_back_batches(c, &c->pods[i], HALT_GRACE_MS);
	c->dirty = true;
}

void core_take_back_batches(struct core *c, struct core_pod *p, int64_t grace_ms)
{
	if (c->conf.command && p->workload.batches > 0) {
		p->workload.halting = true;
		core_act(c, ACT_HALT, pod_index(c, p))->number = (int)grace_ms;
	} else {
		core_act(c, ACT_REVOKE, pod_index(c, p));
	}
}

void core_fault(struct core *c, int pod, const struct err *err)
{
	bool first = !core_is_stopping(c);

	if (core_gravity(err->kind) > core_gravity(c->fault.kind))
		c->fault = *err;
	if (pod >= 0 && err->kind == ERR_JOB)
		c->pods[pod].workload.failed_here = true;
	if (first)
		core_stop(c);
}

void pod_set_log_deadline(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	p->presence.log_by = p->presence.ready_at ? c->now + LOG_WITHIN_MS : 0;
}

bool pod_is_log_awaited(const struct core *c, const struct core_pod *p)
{
	return p->presence.past == PAST_UNREAD && pod_is_active(p) && c->now < p->presence.log_by;
}

bool core_is_reading_past_logs(const struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if ((c->pods[i].presence.files == FILES_SALVAGING &&
		     c->pods[i].presence.past != PAST_NONE) ||
		    pod_is_log_awaited(c, &c->pods[i]))
			return true;
	return false;
}

/* ---- a pod ---- */

const char *pod_phase_name(enum pod_phase phase)
{
	switch (phase) {
	case POD_RENTING: return "renting";
	case POD_AMBIGUOUS: return "ambiguous";
	case POD_BOOTING: return "booting";
	case POD_CONNECTING: return "connecting";
	case POD_PREPARING: return "preparing";
	case POD_AWAITING_VOLUME: return "waiting";
	case POD_LOADING: return "loading";
	case POD_WORKING: return "working";
	case POD_RELEASING: return "releasing";
	case POD_CONFIRMING: return "released";
	case POD_GONE: return "gone";
	case POD_NEVER: return "never existed";
	}
	return "?";
}

bool pod_is_active(const struct core_pod *p)
{
	return !pod_is_retired(p) && !pod_is_leaving(p);
}

bool pod_gets_no_more_work(const struct core *c, const struct core_pod *p)
{
	return c->todo == 0 || pod_is_draining(p) || core_is_stopping(c);
}

bool pod_is_queued(const struct core_pod *p, const struct pod_view *view)
{
	bool may_wait = view->state == POD_STATE_CREATING || view->state == POD_STATE_UNKNOWN;

	return view->state == POD_STATE_QUEUED ||
	       (may_wait && pod_is_unstarted(p) && !view->started_at_s);
}

bool pod_end_is_reported(const struct pod_view *view)
{
	return view->state == POD_STATE_GONE &&
	       (view->end != POD_END_UNKNOWN || view->ended_at_s > 0);
}

struct vendor *pod_vendor(struct core *c, const struct core_pod *p)
{
	return &c->vendors[p->rental.provider];
}

bool vendors_has_any_left(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].dead)
			return true;
	return false;
}

void vendor_give_up(struct core *c, int provider, enum err_kind kind, const char *fmt, ...)
{
	struct vendor *v = &c->vendors[provider];
	char why[sizeof(v->err.msg)];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(why, sizeof(why), fmt, ap);
	va_end(ap);
	v->dead = true;
	err_set(&v->err, kind, "%s: %s", c->conf.providers[provider].name, why);
	/* of the last one, the run ends with this message */
	core_note(c, vendors_has_any_left(c) ? NOTE_WARN : NOTE_INFO, "%s", v->err.msg);
}

const struct core_provider *pod_provider(const struct core *c, const struct core_pod *p)
{
	return &c->conf.providers[p->rental.provider];
}

int64_t pod_ambiguous_ms(const struct core *c, const struct core_pod *p)
{
	return pod_provider(c, p)->list_gap_ms ? AMBIGUOUS_GAP_MS : AMBIGUOUS_SHORT_MS;
}

void pod_awaits_twin(struct core *c, const struct core_pod *p)
{
	if (pod_provider(c, p)->list_gap_ms && !pod_provider(c, p)->create_once)
		pod_vendor(c, p)->surfaced_at = c->now + SURFACE_LIMIT_MS;
}

int pods_count(const struct core *c, bool (*is)(const struct core_pod *p))
{
	int count = 0;

	for (int i = 0; i < c->pod_count; i++)
		count += is(&c->pods[i]);
	return count;
}

bool pod_files_outlive(const struct core_pod *p)
{
	return p->rental.volume.id[0] && p->rental.volume.apart;
}

void pod_enter(struct core *c, struct core_pod *p, enum pod_phase phase)
{
	p->phase = phase;
	p->wake_at = NEVER;
	if (phase == POD_CONNECTING && p->presence.log_by)
		p->presence.log_by = c->now + LOG_WITHIN_MS;
	c->dirty = true;
}

int64_t core_boot_time_of(const struct core *c, int provider, int64_t there_s)
{
	return there_s * 1000 + c->vendors[provider].ahead_ms - c->wall + c->now;
}

int pod_index(const struct core *c, const struct core_pod *p)
{
	return (int)(p - c->pods);
}

void pod_mark_due(struct core *c, int pod)
{
	if (c->pods[pod].due)
		return;
	c->pods[pod].due = true;
	GROW(c->due, c->due_count, c->due_cap);
	c->due[c->due_count++] = pod;
}

void pod_set_leave(struct core *c, struct core_pod *p, enum pod_leave leave)
{
	p->leave = leave;
	pod_mark_due(c, pod_index(c, p));
}

void pod_save(struct core *c, const struct core_pod *p)
{
	core_act(c, ACT_SAVE, pod_index(c, p));
}

void listing_make_due(struct core *c, int provider)
{
	c->vendors[provider].list_at = c->now;
	c->dirty = true;
}

void pod_name_attempt(struct core *c, struct core_pod *p)
{
	snprintf(p->rental.attempt, sizeof(p->rental.attempt), "%0*llx", ATTEMPT_LEN,
		 (unsigned long long)next_random(c));
}

/* Soon after it, the switch of a pod that no client has reached ends the pod. */
int64_t pod_boot_end(const struct core *c, const struct core_pod *p)
{
	return pod_boots_from(p, c->now) + c->conf.boot_limit_ms +
	       MIN(c->conf.boot_limit_ms, c->conf.lease_ms - c->conf.lease_ms / 10);
}

void pod_connect(struct core *c, struct core_pod *p)
{
	pod_enter(c, p, POD_CONNECTING);
	p->presence.tries = 0;
	pod_save(c, p); /* its address: `burst ssh` and the next client need it */
	core_act(c, ACT_CONNECT, pod_index(c, p));
}

void pod_void_sync(struct core_pod *p)
{
	if (p->presence.files == FILES_SYNCING)
		p->presence.files = FILES_ON_POD;
}

void pod_close_gone(struct core *c, struct core_pod *p)
{
	pod_enter(c, p, POD_GONE);
	core_act(c, ACT_CLOSE, pod_index(c, p));
	if (p->presence.link == LINK_UP)
		p->presence.link = LINK_NONE;
	pod_save(c, p);
}

struct core_pod *pod_new(struct core *c)
{
	GROW(c->pods, (size_t)c->pod_count, c->pod_cap);
	struct core_pod *p = &c->pods[c->pod_count++];

	*p = (struct core_pod){.workload.last_group = UINT32_MAX};
	return p;
}

const char *core_pod_called(const struct core_pod *p)
{
	return p->rental.id[0] ? p->rental.id : p->rental.attempt;
}

char **core_pod_ids(const struct core *c, int provider)
{
	char **ids = xcalloc((size_t)c->pod_count + 1, sizeof(*ids));
	size_t n = 0;

	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].rental.provider == provider && c->pods[i].rental.id[0] &&
		    pod_may_bill(&c->pods[i]))
			ids[n++] = xstrdup(c->pods[i].rental.id);
	return ids;
}

void core_ids_free(char **ids)
{
	for (char **id = ids; id && *id; id++)
		free(*id);
	free(ids);
}

/* ---- what a re-plan has changed ---- */

static bool is_outgoing_pod(const struct core_pod *p)
{
	return p->outgoing && pod_is_active(p);
}

int core_count_outgoing(const struct core *c)
{
	return pods_count(c, is_outgoing_pod);
}

int core_pods_most(const struct core *c)
{
	return MAX(c->conf.plan.pods_most, c->conf.pods);
}

bool core_may_add_pods(const struct core *c)
{
	const struct core_plan *plan = &c->conf.plan;
	bool hurry = plan->deadline_ms || plan->goal != PLAN_COST;

	return c->replan.count && c->replan.done < CORE_REPLANS_MAX && hurry &&
	       plan->pods_most > c->conf.pods && !c->conf.detached;
}

bool core_skips_offer(const struct core *c, const struct candidate *k)
{
	return core_count_outgoing(c) && strcmp(k->offer.gpu, c->replan.gpu) != 0;
}

/* ---- what it costs ---- */

int64_t core_compute_ms(const struct core_pod *p)
{
	int64_t counted_ms =
		p->workload.compute_ms +
		(p->workload.busy > 0 ? p->workload.last_t - p->workload.busy_since_t : 0);

	return MAX(counted_ms, p->workload.noted_ms);
}

void core_count_wasted(struct core_pod *p, int64_t ms)
{
	struct workload *w = &p->workload;

	w->counted_waste_ms = MIN(w->counted_waste_ms + MAX(ms, (int64_t)0), core_compute_ms(p));
	w->wasted_ms = MAX(w->wasted_ms, w->counted_waste_ms);
}

int64_t core_billed_ms(const struct core_pod *p, int64_t now_ms)
{
	if (p->phase == POD_NEVER || p->rental.place == PLACE_NEVER)
		return 0;
	bool until_now = !p->rental.released_at || pod_outlives_release(p);
	return billed_ms(pod_bills_from(p), until_now ? now_ms : p->rental.released_at);
}

int64_t pod_unseen_ms(const struct core_pod *p)
{
	const struct rental *r = &p->rental;

	if (!pod_is_unstarted(p) || !r->released_at || r->place == PLACE_NEVER)
		return 0;
	return MIN(billed_ms(r->queued_at, r->released_at), r->run_ms + SELF_END_MS);
}

int64_t core_may_have_cost(const struct core_pod *p)
{
	const struct rental *r = &p->rental;
	bool maybe = p->phase == POD_NEVER ||
		     (p->phase == POD_GONE && pod_is_unstarted(p) && r->place != PLACE_NEVER);

	if (!maybe || !r->released_at)
		return 0;
	if (r->run_ms)
		return money_for(r->price_microusd_h,
				 MIN(billed_ms(r->queued_at, r->released_at), r->run_ms));
	return billed_microusd(r->price_microusd_h, r->create_at, r->released_at);
}

int64_t core_counted(const struct core_pod *p, int64_t now_ms)
{
	return money_for(p->rental.price_microusd_h, core_billed_ms(p, now_ms));
}

int64_t core_cost(const struct core_pod *p, int64_t now_ms)
{
	return MAX(core_counted(p, now_ms), p->rental.vendor_microusd);
}

/* ---- who renews a pod's lease ----
 * This client or its agent. No other file writes that. */

void lease_order_agent(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	p->presence.lease = LEASE_AGENT_SENT;
	core_act(c, ACT_HANDOVER, pod)->number = (int)++p->presence.handover_turn;
}

/* Its agent got the order to renew the lease, after the newest work that it got. */
static bool is_order_sent(const struct core_pod *p)
{
	return p->presence.lease == LEASE_AGENT_SENT || p->presence.lease == LEASE_AGENT_CONFIRMED;
}

void lease_on_confirmed(struct core_pod *p, uint32_t turn)
{
	if (is_order_sent(p))
		p->presence.lease = turn == p->presence.handover_turn ? LEASE_AGENT_CONFIRMED
								      : LEASE_AGENT_SENT;
}

void lease_on_work_added(struct core_pod *p)
{
	if (is_order_sent(p))
		p->presence.lease = LEASE_AGENT;
}

void lease_take_back(struct core *c, struct core_pod *p)
{
	int pod = pod_index(c, p);

	if (p->presence.lease == LEASE_CLIENT)
		return;
	p->presence.lease = LEASE_CLIENT;
	core_act(c, ACT_TAKEOVER, pod);
	core_act(c, ACT_RENEW, pod);
	pod_save(c, p);
}

void lease_hand_to_agent(struct core *c, int pod)
{
	c->pods[pod].presence.lease = LEASE_AGENT;
	core_act(c, ACT_SAVE, pod);
	lease_order_agent(c, pod);
}
