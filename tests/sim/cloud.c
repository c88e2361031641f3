/* cloud.c - up to three vendors of pods: what they make, list, take back, charge for and get wrong.
 */
#include "wire.h"

#include "base/clock.h"
#include "cloud.h"

static struct vendor_plan *vendor(struct sim *s, const struct machine *m)
{
	return &s->plan->vendors[m->vendor];
}

static const struct job_plan *cloud_job_of(const struct sim *s, const struct machine *m)
{
	return &s->plan->jobs[m->client];
}

int cloud_number_of(const struct sim *s, const struct machine *m)
{
	return (int)(m - s->machines);
}

struct machine *cloud_machine(struct sim *s, const char *id)
{
	/* "m7"; "9k2m7" of RunPod's kind, "sb-0000m00007" of Modal's */
	const char *number = strrchr(id, 'm');

	return number ? &s->machines[atoi(number + 1)] : NULL;
}

/* ---- creating ---- */

static void answer(struct sim *s, const struct happening *asked, enum err_kind kind,
		   const struct machine *m)
{
	struct happening *h =
		reply_later(s, asked, s->plan->vendors[asked->provider].latency_ms, W_CREATED);

	account_says(s, h, asked->provider);
	h->pod = asked->pod;
	h->provider = asked->provider;
	h->kind = kind;
	h->machine = m ? cloud_number_of(s, m) : -1;
}

/* Every second pod whose workers never start blames its card: then all pods of that card do. */
static void fit_card(struct sim *s, struct machine *m)
{
	const struct vendor_plan *v = vendor(s, m);
	bool first = m->workers_never && (cloud_number_of(s, m) + (int)(s->plan->seed & 1)) % 2;

	for (int i = 0; first && i < v->offer_count; i++)
		s->unfit[m->vendor][i] = s->unfit[m->vendor][i] ||
					 !strcmp(v->offers[i].gpu, v->offers[m->offer].gpu);
	m->card_unfit = s->unfit[m->vendor][m->offer];
	m->workers_never = m->workers_never || m->card_unfit;
}

static void fit_faults(struct sim *s, struct machine *m)
{
	struct fault *f;

	m->never_runs = strikes(s, F_BOOT_STUCK);
	m->failed = strikes(s, F_BOOT_FAILS);
	f = strikes(s, F_BOOT_SLOW);
	m->runs_at = s->now + vendor(s, m)->boot_ms + (f ? f->ms : 0);
	m->bad_key = strikes(s, F_WRONG_HOST_KEY);
	m->bad_switch = strikes(s, F_SWITCH_BAD);
	m->no_gpu = strikes(s, F_NO_GPU);
	m->unreachable = strikes(s, F_UNREACHABLE);
	m->workers_never = strikes(s, F_WORKERS_NEVER);
	fit_card(s, m);
	m->workers_end = strikes(s, F_WORKERS_END);
	f = strikes(s, F_RELEASE_FAILS);
	m->release_fails = f ? (int)f->ms : 0;
	if (strikes(s, F_RELEASE_NEVER))
		m->release_fails = 1 << 30;
	m->ignores_release = strikes(s, F_RELEASE_IGNORED);
	f = strikes(s, F_RELEASE_OUTLIVED);
	m->outlives = f ? (int)f->ms : 0;
	f = strikes(s, F_RELEASE_LINGERS);
	m->linger = f ? 1 + f->ms % 60000 : vendor(s, m)->ends_ms;
	/* otherwise its list does not lag */
	f = cloud_job_of(s, m)->conf.providers[m->vendor].list_gap_ms ? strikes(s, F_RELEASE_DENIED)
								      : NULL;
	m->denied_ms = f ? f->ms : 0;
	static const enum fault_kind timed[] = {F_PREEMPTED, F_STOPPED, F_AGENT_RESTART, F_DROP,
						F_DROP_LONG};
	for (size_t i = 0; i < ARRAY_LEN(timed); i++) {
		f = strikes(s, timed[i]);
		if (!f)
			continue;
		struct happening *h = later(s, f->ms, W_STRUCK);
		h->machine = cloud_number_of(s, m);
		h->x = timed[i];
		h->y = f->x % 300000;
	}
}

/* When it starts, and what its vendor does of itself: it ends what has run as long as it may, and
 * perhaps what has waited as long. */
static void queue_machine(struct sim *s, struct machine *m, const struct create *c)
{
	const struct vendor_plan *v = vendor(s, m);
	uint64_t state = v->queue_seed + (uint64_t)cloud_number_of(s, m), *r = &state;

	if (!v->free)
		return;
	m->first_lease_ms = c->first_lease_ms;
	m->starts_at = roll_chance(r, 15)   ? INT64_MAX
		       : roll_chance(r, 25) ? s->now + c->wait_ms + roll_in(r, -5000, 60000)
					    : s->now + roll_spread(r, 500, 2 * c->wait_ms + 1000);
	m->starts_at = MAX(m->starts_at, s->now + 1);
	bool never = m->starts_at == INT64_MAX;
	m->runs_at = never ? INT64_MAX : m->starts_at + m->runs_at - s->now;
	m->hard_end = never ? m->hard_end : MIN(m->hard_end, m->starts_at + c->run_ms);
	if (!never)
		later(s, m->starts_at + c->run_ms - s->now, W_ENDS)->machine =
			cloud_number_of(s, m);
	if (v->limits_wait && m->starts_at > s->now + c->wait_ms)
		later(s, c->wait_ms, W_ENDS)->machine = cloud_number_of(s, m);
}

static void name_machine(struct sim *s, struct machine *m)
{
	static const char *const forms[] = {[WIRE_NONE] = "m%d",
					    [WIRE_RUNPOD] = "9k2m%d",
					    [WIRE_MODAL] = "sb-0000000000000000m%05d"};
	const char *form = forms[vendor(s, m)->wire];
	size_t len = strcspn(form, "%");

	memcpy(m->id, form, len);
	snprintf(m->id + len, sizeof(m->id) - len, form[len + 1] == '0' ? "%05d" : "%d",
		 cloud_number_of(s, m));
}

struct machine *cloud_make(struct sim *s, const struct create *c, bool duplicate)
{
	GROW(s->machines, s->machine_count, s->machine_cap);
	struct machine *m = &s->machines[s->machine_count++];

	*m = (struct machine){.client = c->client,
			      .made_by = c->client,
			      .held_from = s->now,
			      .offered_by = -1,
			      .lease_ms = s->plan->jobs[c->client].conf.lease_ms,
			      .vendor = c->provider,
			      .offer = c->offer,
			      .created = s->now,
			      .ended = -1,
			      .duplicate = duplicate,
			      .idle_since = -1,
			      .release_requested = -1,
			      .known_at = -1,
			      .requested_at = -1,
			      .alone_until = -1,
			      .reached_in = -1};
	name_machine(s, m);
	COPY_TEXT(m->attempt, c->attempt);
	m->offered = c->price;
	m->price = s->prices[c->provider][c->offer];
	if (strikes(s, F_PRICE_ABOVE_OFFER))
		m->price = m->price * 3 / 2;
	const struct client *cl = &s->clients[c->client];
	m->alone = !cl->up || cl->laptop->asleep;
	m->clock_error = MAX(c->clock_error, llabs(cl->laptop->wall_offset));
	m->hard_end = c->hard_end_s * 1000 - WALL_EPOCH_MS;
	m->first_lease = c->first_lease_end_s * 1000 - WALL_EPOCH_MS;
	m->late_start = c->late_start_s * 1000;
	m->marked_end = m->hard_end;
	struct fault *f = cloud_job_of(s, m)->conf.providers[c->provider].list_gap_ms
				  ? strikes(s, F_SURFACES_LATE)
				  : NULL;
	/* a pod whose create was answered twice surfaces before the lists that prove its twin gone
	 */
	m->visible = s->now + (f && !duplicate ? 1 + f->ms % 45000 : vendor(s, m)->lag_ms);
	m->files = xcalloc(cloud_job_of(s, m)->count, 1);
	m->folders = xcalloc(cloud_job_of(s, m)->count, sizeof(*m->folders));
	for (int w = 0; w < SLOTS_MAX; w++)
		m->worker_work[w] = -1;
	fit_faults(s, m);
	f = vendor(s, m)->wire ? strikes(s, F_ODD_STATE) : NULL;
	m->odd_until = f ? s->now + f->ms % 120000 : 0;
	s->in_use[c->provider][c->offer]++;
	queue_machine(s, m, c);
	if (m->runs_at < INT64_MAX)
		later(s, m->runs_at - s->now, W_CONTAINER)->machine = cloud_number_of(s, m);
	trace(s, "cloud: %s made at %s offer %d%s", m->id,
	      cloud_job_of(s, m)->conf.providers[m->vendor].name, c->offer,
	      duplicate ? " (a second time)" : "");
	return m;
}

enum err_kind cloud_refuses(struct sim *s, const struct create *c)
{
	static const struct {
		enum fault_kind fault;
		enum err_kind kind;
	} refusals[] = {
		{F_CREATE_SOLD_OUT, ERR_NO_CAPACITY}, {F_CREATE_RATE_LIMITED, ERR_RATE_LIMITED},
		{F_CREATE_TRANSIENT, ERR_TRANSIENT},  {F_CREATE_CREDENTIALS, ERR_CREDENTIALS},
		{F_CREATE_REFUSED, ERR_REFUSED},      {F_CREATE_LOST_NOTHING, ERR_AMBIGUOUS},
		{F_CREATE_UNPAID, ERR_BALANCE},
	};

	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (strikes(s, refusals[i].fault))
			return refusals[i].kind;
	if (s->plan->vendors[c->provider].free) /* there is room in its queue */
		return ERR_NONE;
	return s->in_use[c->provider][c->offer] >= s->plan->vendors[c->provider].capacity[c->offer]
		       ? ERR_NO_CAPACITY
		       : ERR_NONE;
}

/* Where a name works once: the pod of that name, if there is one. */
static struct machine *made_before(struct sim *s, const struct create *c)
{
	if (!s->plan->jobs[c->client].conf.providers[c->provider].create_once)
		return NULL;
	for (size_t i = 0; i < s->machine_count; i++)
		if (!strcmp(s->machines[i].attempt, c->attempt))
			return &s->machines[i];
	return NULL;
}

void cloud_create(struct sim *s, struct happening *h)
{
	const struct create *c = &s->creates[h->x];
	struct machine *m = made_before(s, c);
	bool once = s->plan->jobs[c->client].conf.providers[c->provider].create_once;
	enum err_kind kind = m ? ERR_NONE : cloud_refuses(s, c);

	if (kind != ERR_NONE) {
		answer(s, h, kind, NULL);
		return;
	}
	if (!m)
		m = cloud_make(s, c, false);
	m->reply_lost = strikes(s, F_CREATE_LOST_MADE) || strikes(s, F_REPLY_WILD);
	if (m->reply_lost)
		answer(s, h, ERR_AMBIGUOUS, NULL);
	else
		answer(s, h, ERR_NONE, m);
	if (!once && strikes(s, F_CREATE_TWICE))
		cloud_make(s, c, true);
}

/* ---- how long its client may take to let it go ---- */

bool cloud_may_wait(const struct sim *s, const struct machine *m)
{
	const struct vendor_plan *v = &s->plan->vendors[m->vendor];

	return v->per_minute || v->quota || (v->wire && s->hit[F_CALL_429]);
}

/* Whatever its vendor replies or does: until the pod is gone, its release must be repeated. */
static void check_release_repeated(struct sim *s, const struct machine *m)
{
	const struct vendor_plan *v = &s->plan->vendors[m->vendor];
	int64_t most = ASKED_AGAIN_MS + 8 * v->latency_ms +
		       (cloud_may_wait(s, m) ? 2 * RELEASED_WITHIN_MS : 0) +
		       (v->wire ? CALL_TAKES_MS : 0);

	if (m->requested_at >= 0 && !m->is_over && s->now - m->requested_at > most &&
	    s->unlisted_at[m->vendor] + RELEASED_WITHIN_MS < m->requested_at)
		broke(s, "pod %s is not asked for its release again for %lld ms", m->id,
		      (long long)(s->now - m->requested_at));
}

/* ---- a pod's life, as the vendor sees it ---- */

void cloud_container(struct sim *s, struct machine *m)
{
	if (!m->is_over && m->failed && vendor(s, m)->wire == WIRE_MODAL)
		cloud_end(s, m, "it could not be set up");
	if (m->is_over || m->never_runs || m->failed)
		return;
	if (!m->running && vendor(s, m)->free) /* as in start.sh */
		m->first_lease = MIN(s->now + m->first_lease_ms, m->hard_end);
	else if (!m->running)
		m->first_lease = MAX(m->first_lease,
				     MIN(s->now + m->late_start,
					 m->first_lease + cloud_job_of(s, m)->conf.lease_ms));
	m->running = true;
	trace(s, "cloud: %s runs", m->id);
	pod_watch(s, m);
}

void cloud_end(struct sim *s, struct machine *m, const char *why)
{
	if (m->is_over)
		return;
	trace(s, "cloud: %s is over: %s", m->id, why);
	check_release_repeated(s, m);
	m->is_over = true;
	m->running = false;
	m->ended = s->now;
	s->in_use[m->vendor][m->offer]--;
	pod_gone(s, m);
	if (vendor(s, m)->wire == WIRE_MODAL)
		wire_freed(s, m->vendor, m->offer);
}

void cloud_struck(struct sim *s, struct machine *m, int64_t how, int64_t ms)
{
	if (m->is_over || m->stopped)
		return;
	if (cloud_waits(s, m)) { /* it is removed from the queue, if anything happens to it */
		if (how == F_PREEMPTED || how == F_STOPPED)
			cloud_end(s, m, "removed from the queue");
		return;
	}
	m->evicted = how == F_STOPPED && vendor(s, m)->wire == WIRE_MODAL;
	switch (m->evicted ? F_PREEMPTED : how) {
	case F_LIFE_OVER:
		m->life_over = true;
		cloud_end(s, m, "its lifetime is over");
		return;
	case F_PREEMPTED:
		m->preempted = !m->evicted;
		cloud_end(s, m, "preempted");
		return;
	case F_STOPPED:
		trace(s, "cloud: %s stopped", m->id);
		m->stopped = true;
		m->running = false;
		pod_gone(s, m);
		return;
	case F_AGENT_RESTART: pod_restart_agent(s, m); return;
	case F_DROP: pod_cut(s, m, 0); return;
	case F_DROP_LONG: pod_cut(s, m, ms); return;
	default: break;
	}
}

/* ---- releasing ---- */

static struct happening *release_answered(struct sim *s, const struct happening *h,
					  const struct machine *m, enum err_kind kind)
{
	struct happening *r = reply_later(s, h, s->plan->vendors[m->vendor].latency_ms, W_RELEASED);

	r->provider = m->vendor;
	r->pod = h->pod;
	r->kind = kind == ERR_NOT_FOUND ? ERR_NONE : kind;
	r->x = kind == ERR_NOT_FOUND ? RELEASE_ABSENT : RELEASE_TAKEN;
	if (kind == ERR_TRANSIENT)
		r->retry_ms = cloud_patience(vendor(s, m));
	return r;
}

enum err_kind cloud_let_go(struct sim *s, struct machine *m, int by)
{
	enum err_kind kind = ERR_NONE;

	const struct client *owner = &s->clients[m->client];
	/* a sweep continues what it began when that client was dead */
	bool came_back = by >= CLIENTS_MAX && owner->life_began > s->clients[by].life_began;
	if (by != m->client && !came_back && client_wants(owner, m))
		broke(s, "pod %s is released by another run than its own, which lives and wants it",
		      m->id);
	if (plant(PLANT_RELEASE_FAKED)) {
		m->visible = INT64_MAX;
		return ERR_NONE;
	}
	cloud_release_requested(s, m);
	if (m->denied_ms && !m->denied_until && !m->is_over)
		m->denied_until = s->now + m->denied_ms;
	if (m->is_over || s->now < m->denied_until) {
		trace(s, "cloud: release of %s: %s", m->id,
		      m->is_over ? "already gone" : "denied, though it runs");
		kind = ERR_NOT_FOUND;
	} else if (m->release_fails > 0) {
		m->release_fails--;
		kind = m->release_fails % 2 ? ERR_TRANSIENT : ERR_RATE_LIMITED;
	} else if (m->ignores_release) {
		m->ignores_release = false;
		trace(s, "cloud: release of %s accepted and forgotten", m->id);
	} else if (m->outlives > 0) {
		m->outlives--;
		trace(s, "cloud: release of %s accepted, and it runs on", m->id);
	} else if (m->linger) {
		struct happening *end = later(s, m->linger, W_ENDS);
		end->machine = cloud_number_of(s, m);
	} else {
		cloud_end(s, m, "released");
	}
	return kind;
}

void cloud_release(struct sim *s, struct happening *h)
{
	struct machine *m = &s->machines[h->machine];
	enum err_kind kind = cloud_let_go(s, m, h->client);

	if (strikes(s, F_RELEASE_LOST))
		kind = ERR_NETWORK;
	if (strikes(s, F_REPLY_WILD))
		kind = ERR_UNTRUSTED;
	account_says(s, release_answered(s, h, m, kind), m->vendor);
}

/* ---- listing ---- */

struct pod_view cloud_view(struct sim *s, const struct machine *m)
{
	struct pod_view v = {.state = POD_STATE_CREATING, .price_microusd_h = m->price};

	COPY_TEXT(v.id, m->id);
	COPY_TEXT(v.marker.run, s->plan->jobs[m->made_by].conf.run);
	COPY_TEXT(v.marker.machine, s->plan->jobs[m->made_by].conf.machine);
	COPY_TEXT(v.marker.attempt, m->attempt);
	v.marker.hard_end_s = (m->marked_end + WALL_EPOCH_MS) / 1000;
	v.created_at_s = (m->created + WALL_EPOCH_MS) / 1000;
	v.preempted = m->preempted;
	if (vendor(s, m)->free && !cloud_waits(s, m))
		v.started_at_s = (m->starts_at + WALL_EPOCH_MS) / 1000;
	if (cloud_waits(s, m) && !m->is_over) {
		v.state = POD_STATE_QUEUED;
	} else if (m->is_over) {
		v.state = POD_STATE_GONE;
		v.ended_at_s = (m->ended + WALL_EPOCH_MS) / 1000;
	} else if (m->stopped) {
		v.state = POD_STATE_STOPPED;
	} else if (m->failed && s->now >= m->runs_at) {
		v.state = POD_STATE_FAILED;
	} else if (m->running) {
		v.state = POD_STATE_RUNNING;
		v.reach = REACH_SSH;
		v.port = 22;
		COPY_TEXT(v.host, "pod");
	}
	return v;
}

bool cloud_listed_now(struct sim *s, const struct machine *m, int provider)
{
	if (m->vendor != provider || m->visible > s->now)
		return false;
	if (s->now < m->denied_until && !m->is_over) {
		s->unlisted_at[provider] = s->now;
		return false;
	}
	if (m->is_over && !(vendor(s, m)->keeps_gone && s->now - m->ended < 300000))
		return false;
	return true;
}

/* Up to two hours. */
int64_t cloud_patience(const struct vendor_plan *v)
{
	return v->latency_ms % 4 ? 0 : v->boot_ms % 7200 * 1000;
}

enum err_kind cloud_list_fails(struct sim *s, int provider, int64_t *slow_ms)
{
	struct fault *f = strikes(s, F_LIST_SLOW);
	enum err_kind kind = strikes(s, F_LIST_FAILS) ? ERR_TRANSIENT : ERR_NONE;

	*slow_ms = f ? f->ms % 30000 : 0;
	kind = strikes(s, F_LIST_RATE_LIMITED) ? ERR_RATE_LIMITED : kind;
	kind = strikes(s, F_LIST_REFUSED) ? ERR_CREDENTIALS : kind;
	kind = strikes(s, F_REPLY_WILD) ? ERR_UNTRUSTED : kind;
	if (f || kind)
		s->unlisted_at[provider] = s->now;
	return kind;
}

/* Never twice in a row, since that would count as proof. A twin that surfaces late was missed
 * before. */
bool cloud_missed(struct sim *s, struct machine *m)
{
	bool lossy = cloud_job_of(s, m)->conf.providers[m->vendor].list_gap_ms,
	     before = m->duplicate && m->visible > m->created && !m->shown;

	m->missed = !m->missed && !before && lossy && strikes(s, F_LIST_MISSES_ONE);
	m->shown = m->shown || !m->missed;
	if (m->missed)
		s->unlisted_at[m->vendor] = s->now;
	return m->missed;
}

void cloud_list(struct sim *s, struct happening *h)
{
	int64_t slow_ms;
	enum err_kind kind = cloud_list_fails(s, h->provider, &slow_ms);
	struct happening *r =
		reply_later(s, h, s->plan->vendors[h->provider].latency_ms + slow_ms, W_LISTED);

	account_says(s, r, h->provider);
	r->provider = h->provider;
	r->x = h->x; /* when it was sent, by the client's clock */
	r->kind = kind;
	if (kind == ERR_TRANSIENT)
		r->retry_ms = cloud_patience(&s->plan->vendors[h->provider]);
	if (r->kind != ERR_NONE)
		return;
	struct pod_view *views = xcalloc(s->machine_count, sizeof(*views));
	size_t count = 0;
	for (size_t i = 0; i < s->machine_count; i++) {
		struct machine *m = &s->machines[i];
		if (!cloud_listed_now(s, m, h->provider))
			continue;
		if (!cloud_missed(s, m))
			views[count++] = cloud_view(s, m);
	}
	r->data = views;
	r->count = count;
}

/* ---- what it cost, and who is left ---- */

bool cloud_waits(const struct sim *s, const struct machine *m)
{
	return s->plan->vendors[m->vendor].free && m->starts_at > (m->is_over ? m->ended : s->now);
}

int64_t cloud_bills_from(const struct sim *s, const struct machine *m)
{
	return s->plan->vendors[m->vendor].free ? MAX(m->starts_at, m->held_from) : m->held_from;
}

void cloud_note_waits(struct client *cl)
{
	struct sim *s = cl->sim;
	int64_t until = s->now;
	bool waits = false, bills = false;

	for (size_t i = 0; i < s->machine_count; i++) {
		const struct machine *m = &s->machines[i];
		if (m->client == cl->number && m->is_over && m->ended >= cl->free_since)
			until = MIN(until, m->ended);
		if (m->client == cl->number && m->release_requested >= cl->free_since)
			until = MIN(until, MAX(m->release_requested, cl->free_since));
		if (m->client != cl->number || m->is_over)
			continue;
		waits = waits || (cloud_waits(s, m) && m->release_requested < 0);
		bills = bills || !cloud_waits(s, m);
		if (!cloud_waits(s, m) && s->plan->vendors[m->vendor].free)
			until = MIN(until, m->starts_at);
	}
	if (cl->free_since >= 0)
		cl->free_ms += MAX(until - cl->free_since, 0);
	cl->free_since = waits && !bills ? s->now : -1;
}

/* Its client has left, or has returned. */
void cloud_alone(struct client *cl, bool alone)
{
	struct sim *s = cl->sim;

	for (size_t i = 0; i < s->machine_count; i++) {
		struct machine *m = &s->machines[i];
		if (m->client != cl->number || m->is_over)
			continue;
		check_release_repeated(s, m);
		m->requested_at = -1;
		if (m->release_requested >= 0)
			continue;
		m->alone = alone;
		m->alone_until = s->now;
	}
}

/* From then on the pod bills because its vendor cannot be reached or ignores the release: that is
 * not the client's to cap. */
void cloud_release_requested(struct sim *s, struct machine *m)
{
	const struct client *cl = &s->clients[m->client];

	check_release_repeated(s, m);
	m->requested_at = cl->up && !cl->laptop->asleep ? s->now : -1;
	if (m->release_requested < 0) {
		m->release_requested = s->now;
		m->running_then = m->running;
	}
}
