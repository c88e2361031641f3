/* pod.c - the life of one pod, from the row in the ledger to the second look that no longer finds it. */
#include "impl.h"

#include <stdarg.h>

#include "../base/clock.h"

/* ---- small questions ---- */

const char *pod_phase_name(enum pod_phase phase)
{
	switch (phase) {
	case POD_WANTED: return "wanted";
	case POD_RENTING: return "renting";
	case POD_AMBIGUOUS: return "ambiguous";
	case POD_BOOTING: return "booting";
	case POD_CONNECTING: return "connecting";
	case POD_PREPARING: return "preparing";
	case POD_QUEUED: return "waiting";
	case POD_LOADING: return "loading";
	case POD_WORKING: return "working";
	case POD_RELEASING: return "releasing";
	case POD_CONFIRMING: return "confirming";
	case POD_GONE: return "gone";
	case POD_NEVER: return "never existed";
	}
	return "?";
}

bool pod_active(const struct core_pod *p)
{
	return p->phase <= POD_WORKING && !p->unwanted;
}

bool pod_may_bill(const struct core_pod *p)
{
	return p->phase != POD_GONE && p->phase != POD_NEVER;
}

static struct vendor *vendor_of(struct core *c, const struct core_pod *p)
{
	return &c->vendors[p->provider];
}

bool pod_files_outlive(const struct core *c, const struct core_pod *p)
{
	(void)c;
	return p->volume.id[0] && p->volume.apart;
}

static void enter(struct core *c, struct core_pod *p, enum pod_phase phase)
{
	p->phase = phase;
	p->wake_at = NEVER;
	c->dirty = true;
}

static int index_of(const struct core *c, const struct core_pod *p)
{
	return (int)(p - c->pods);
}

static void save(struct core *c, const struct core_pod *p)
{
	core_act(c, ACT_SAVE, index_of(c, p));
}

static void look_soon(struct core *c, int provider)
{
	c->vendors[provider].list_at = c->now;
	c->dirty = true;
}

/* ---- renting ---- */

static void name_attempt(struct core *c, struct core_pod *p)
{
	snprintf(p->attempt, sizeof(p->attempt), "%016llx", (unsigned long long)core_random(c));
}

/* A pod of this offer that takes longer, and whose provider's log does not move, is stuck. Unless the median is of no use, as
 * with an image that is new and large: each pod given up by it gives the next ones twice the time. */
static int64_t boot_limit(const struct core *c, const struct candidate *from)
{
	int64_t most = c->conf.boot_limit_ms, least = MAX((int64_t)BOOT_LIMIT_MIN_MS, c->patience_ms);

	return from->past.boot_ms ? MIN(MAX(BOOT_FACTOR * from->past.boot_ms, least), most) : most;
}

void pod_rent(struct core *c, struct candidate *from, int64_t hard_end_at)
{
	offers_tell(c, from);
	GROW(c->pods, (size_t)c->pod_count, c->pod_cap);
	struct core_pod *p = &c->pods[c->pod_count++];
	int64_t first_lease = c->conf.boot_limit_ms + c->conf.lease_ms;

	*p = (struct core_pod){.provider = from->provider, .offer = from->offer};
	name_attempt(c, p);
	p->volume = c->vendors[from->provider].volume;
	p->price_microusd_h = from->offer.price_microusd_h;
	p->hard_end_ms = hard_end_at;
	p->hard_end_s = (c->wall + hard_end_at - c->now) / 1000;
	p->first_lease_end_s = MIN(p->hard_end_s, (c->wall + first_lease) / 1000);
	p->create_at = c->now;
	p->boot_limit_ms = boot_limit(c, from);
	p->deadline_at = c->now + p->boot_limit_ms;
	p->log_at = p->boot_limit_ms >= LOG_WORTH_MS ? c->now + p->boot_limit_ms / 2 : 0;
	p->last_group = UINT32_MAX;
	enter(c, p, POD_RENTING);
	save(c, p);
	core_act(c, ACT_RENT, index_of(c, p));
	vendor_of(c, p)->used = true;
}

static void rest_candidate(struct core *c, const struct core_pod *p, int64_t ms)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->rest_until = c->now + ms;
}

void pod_bad_host(struct core *c, int pod, const char *why)
{
	struct candidate *k = offers_of(c, &c->pods[pod]);

	if (k) {
		k->rest_until = c->now + BAD_HOST_REST_MS;
		k->past.bad_at_ms = c->wall;
		k->past.bad_until_ms = MAX(k->past.bad_until_ms, c->wall + AVOID_MS);
		COPY_TEXT(k->past.bad_why, why);
		k->told = false;
	}
	COPY_TEXT(core_act(c, ACT_BAD_HOST, pod)->text, why);
}

/* Sold out may last a moment or a day: 5 s at first, a minute at most. */
static void rest_sold_out(struct core *c, const struct core_pod *p, int64_t least_ms)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->rest_until = c->now + MAX(least_ms, MIN(5000LL << MIN(k->refusals++, 5), (int64_t)OFFER_REST_MS));
}

/* There may be spot offers in thirty places, each as little worth as the last one. */
static void spot_refused(struct core *c, const struct core_pod *p)
{
	struct vendor *v = vendor_of(c, p);

	if (!p->offer.spot || ++v->spot_refusals < SPOT_REFUSALS)
		return;
	v->spot_refusals = 0;
	v->spot_rest_until = c->now + SPOT_REST_MS;
	core_note(c, NOTE_INFO, "%s: spot was refused twice: on demand goes before it for a while", p->offer.provider);
}

static void rest_after_trouble(struct core *c, const struct core_pod *p, int64_t least_ms)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->rest_until = c->now + MAX(least_ms, 2000LL << MIN(k->refusals++, 5));
}

static void never_existed(struct core *c, struct core_pod *p, const struct err *why)
{
	enter(c, p, POD_NEVER);
	p->fault = why->kind;
	COPY_TEXT(p->reason, why->msg);
	c->capacity = *why;
	if (!c->capacity_since)
		c->capacity_since = c->now;
	save(c, p);
}

static void rent_failed(struct core *c, struct core_pod *p, const struct err *err)
{
	struct vendor *v = vendor_of(c, p);

	v->created_at = c->now;
	switch (err->kind) {
	case ERR_AMBIGUOUS:
		enter(c, p, POD_AMBIGUOUS);
		p->rented_at = c->now; /* listings asked for from now on tell */
		if (c->conf.providers[p->provider].look_gap_ms)
			v->surfaced_at = c->now + SURFACE_LIMIT_MS;
		COPY_TEXT(p->reason, err->msg);
		save(c, p);
		look_soon(c, p->provider);
		core_note(c, NOTE_WARN, "%s: the answer to a create was lost (%s); looking for the pod",
			  c->conf.providers[p->provider].name, err->msg);
		return;
	case ERR_NO_CAPACITY:
		rest_sold_out(c, p, err->retry_after_ms);
		spot_refused(c, p);
		core_note(c, NOTE_INFO, "%s %s: %s", p->offer.provider, p->offer.gpu, err->msg);
		break;
	case ERR_CREDENTIALS:
	case ERR_BALANCE:
	case ERR_CONFIG: /* what we ask for is wrong for this vendor, whichever of its offers we take */
		v->dead = true;
		v->err = *err;
		break;
	case ERR_LOCAL:
	case ERR_BUG:
		core_fault(c, index_of(c, p), err);
		break;
	case ERR_RATE_LIMITED:
	case ERR_TRANSIENT:
	case ERR_NETWORK:
		rest_after_trouble(c, p, err->retry_after_ms);
		break;
	default:
		core_note(c, NOTE_WARN, "%s %s: %s", p->offer.provider, p->offer.gpu, err->msg);
		rest_candidate(c, p, NEVER / 2);
		break;
	}
	never_existed(c, p, err);
}

static void take_view(struct core *c, struct core_pod *p, const struct pod_view *view);

/* Dearer than it was offered. A little (some vendors bill the disk beside the GPU): it lives the shorter for it, by our clock.
 * More than that, and it could break the cap on cost in our absence: its own end was reckoned by the offer. */
static bool fits_cap(struct core *c, struct core_pod *p)
{
	int64_t over = c->conf.max_cost_microusd ? budget_committed(c) - c->conf.max_cost_microusd : 0;

	if (over <= 0 || p->price_microusd_h <= p->offer.price_microusd_h)
		return true;
	if (p->price_microusd_h > p->offer.price_microusd_h + p->offer.price_microusd_h / 20)
		return false;
	p->hard_end_ms -= (over * 3600 / p->price_microusd_h + 1) * 1000;
	return budget_useful(c, p->hard_end_ms);
}

static void rented(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	COPY_TEXT(p->id, view->id);
	p->rented_at = c->now;
	c->capacity_since = 0;
	vendor_of(c, p)->created_at = c->now;
	if (p->offer.spot)
		vendor_of(c, p)->spot_refusals = 0;
	if (view->price_microusd_h > 0)
		p->price_microusd_h = view->price_microusd_h;
	enter(c, p, POD_BOOTING);
	save(c, p);
	look_soon(c, p->provider);
	if (p->unwanted) {
		pod_release_now(c, index_of(c, p));
		return;
	}
	if (c->conf.max_price_microusd_h && p->price_microusd_h > c->conf.max_price_microusd_h) {
		rest_candidate(c, p, NEVER / 2);
		pod_let_go(c, index_of(c, p), ERR_CAP, "its price is above caps.max_price_per_hour");
		return;
	}
	if (!fits_cap(c, p)) {
		rest_candidate(c, p, NEVER / 2);
		pod_let_go(c, index_of(c, p), ERR_CAP, "it is dearer than it was offered: caps.max_cost would not hold");
		return;
	}
	take_view(c, p, view);
}

/* ---- on its way out ---- */

/* What it finished and is not home: from the volume, if that can be read without the pod; else it is rendered again. */
static void rescue_files(struct core *c, struct core_pod *p)
{
	if (p->unhome <= 0)
		return;
	if (pod_files_outlive(c, p)) {
		p->via_volume = true;
		dispatch_forget_fetches(c, index_of(c, p));
		dispatch_refetch(c, index_of(c, p));
	} else {
		dispatch_lost_files(c, index_of(c, p));
	}
}

/* Files of a durable pod are not rendered again because they cannot be had just now. */
void pod_file_delayed(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (!p->refetch_at)
		p->refetch_at = c->now + MIN((int64_t)REFETCH_MIN_MS << MIN(p->refetches++, 6), (int64_t)REFETCH_MAX_MS);
	c->dirty = true;
}

void pod_file_came(struct core *c, int pod)
{
	c->pods[pod].refetches = 0;
	c->pods[pod].rescue_until = c->now + RESCUE_LIMIT_MS;
}

static void count_failure(struct core *c, const struct core_pod *p)
{
	struct err err;

	if (p->fault == ERR_NONE || c->conf.reap)
		return;
	/* should nothing else be on offer, this is why */
	err_set(&c->capacity, p->fault == ERR_CAP ? ERR_NO_CAPACITY : p->fault, "pod %s: %s",
		p->id[0] ? p->id : p->attempt, p->reason);
	if (++c->pod_failures < 3 * c->conf.pods + 3)
		return;
	err_set(&err, p->fault == ERR_CAP ? ERR_NO_CAPACITY : p->fault,
		"%d pods in a row were of no use; the last: %s", c->pod_failures, p->reason);
	core_fault(c, index_of(c, p), &err);
}

void pod_release_now(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	p->unwanted = true;
	if (p->phase == POD_WANTED || p->phase == POD_RENTING || p->phase == POD_AMBIGUOUS ||
	    p->phase >= POD_RELEASING)
		return;
	p->release_at = c->now;
	p->tries = 0;
	core_act(c, ACT_RELEASE, pod);
	core_act(c, ACT_CLOSE, pod);
	p->connected = false;
	enter(c, p, POD_RELEASING);
	p->deadline_at = c->now + CONFIRM_LIMIT_MS;
	dispatch_lost(c, pod);
	rescue_files(c, p);
	save(c, p);
	struct vendor *v = vendor_of(c, p);
	if (v->owner == pod && !v->shared_ready)
		v->owner = -1;
}

/* Nothing is left for it to do: what is not home yet can come from its volume while nothing bills, as soon as it is there for
 * good. */
static void ask_durable(struct core *c, struct core_pod *p)
{
	if (!pod_files_outlive(c, p) || c->conf.providers[p->provider].pods_are_free || p->syncing || c->now < p->sync_at)
		return;
	p->syncing = true;
	p->sync_at = 0;
	core_act(c, ACT_SYNC, index_of(c, p))->number = (int)++p->sync_turn;
}

static bool nothing_comes(const struct core *c, const struct core_pod *p)
{
	return c->todo == 0 || p->draining || core_stopping(c);
}

static void synced(struct core *c, struct core_pod *p, const struct event *ev)
{
	int pod = index_of(c, p);

	if (!p->syncing || (uint32_t)ev->number != p->sync_turn)
		return;
	p->syncing = false;
	if (!ev->ok) {
		p->sync_at = c->now + SYNC_AGAIN_MS;
		return;
	}
	if (p->phase != POD_WORKING || p->unwanted || p->batches || p->unhome <= 0 || !nothing_comes(c, p))
		return;
	p->durable = p->via_volume = true;
	snprintf(p->reason, sizeof(p->reason), "done; the rest of its files comes from its volume");
	core_note(c, NOTE_INFO, "pod %s: all is done and on its volume; %d of its files come from there while nothing bills", p->id,
		  p->unhome);
	p->unwanted = true;
	pod_file_came(c, pod);
	if (!pod_kept(c, pod))
		pod_release_now(c, pod);
}

/* A pod on which the job failed stays as long as was asked for, but never past its hard end and only while we hold its lease. */
bool pod_kept(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	char when[32];

	if (!c->conf.keep_ms || !p->failed_here || !p->connected || p->detached || c->signals || c->conf.reap)
		return false;
	if (!p->kept_until) {
		p->kept_until = MIN(c->now + c->conf.keep_ms, p->hard_end_ms - 2 * budget_margin(p->hard_end_ms - p->create_at));
		p->deadline_at = NEVER; /* nothing is expected of it any more */
		p->unwanted = p->draining = true;
		if (p->batches) {
			dispatch_lost(c, pod);
			core_act(c, ACT_REVOKE, pod);
		}
		if (c->now < p->kept_until)
			core_note(c, NOTE_WARN, "pod %s is kept for a look until %s, and bills: `burst ssh %s`; `burst cancel` ends it now",
				  p->id, clock_rfc3339(when, sizeof(when), c->wall + p->kept_until - c->now), p->id);
	}
	return c->now < p->kept_until;
}

void pod_let_go(struct core *c, int pod, enum err_kind fault, const char *fmt, ...)
{
	struct core_pod *p = &c->pods[pod];
	va_list ap;

	if (p->phase >= POD_RELEASING || (p->kept_until && pod_kept(c, pod)))
		return;
	va_start(ap, fmt);
	vsnprintf(p->reason, sizeof(p->reason), fmt, ap);
	va_end(ap);
	p->fault = fault;
	if (fault != ERR_NONE) {
		core_note(c, NOTE_WARN, "pod %s: %s", p->id[0] ? p->id : p->attempt, p->reason);
		count_failure(c, p);
	}
	p->failed_here = p->failed_here || fault == ERR_JOB;
	p->unwanted = true;
	c->dirty = true;
	struct vendor *v = vendor_of(c, p);
	if (v->owner == pod && fault == ERR_UNTRUSTED)
		v->shared_ready = false; /* it said so: the next pod looks for itself */
	if (p->connected && p->unhome > 0 && c->signals < 2 && fault != ERR_UNTRUSTED) {
		/* what is finished comes home first, within bounds */
		p->draining = true;
		p->look_at = c->now + FETCH_GRACE_MS;
		dispatch_lost(c, pod);
		core_act(c, ACT_REVOKE, pod);
		return;
	}
	if (!pod_kept(c, pod))
		pod_release_now(c, pod);
}

static void mark_gone(struct core *c, struct core_pod *p)
{
	int64_t ended = p->view.ended_at_s ? p->view.ended_at_s * 1000 - c->wall + c->now : c->now;

	if (!p->released_at)
		p->released_at = MAX(MIN(ended, c->now), p->create_at);
	p->gone_at = c->now;
	c->spent_microusd += core_cost(p, c->now);
	enter(c, p, POD_GONE);
	core_act(c, ACT_CLOSE, index_of(c, p));
	p->connected = false;
	save(c, p);
}

/* It ended without being asked: preempted, crashed, or its lease was over. Unless the vendor itself calls it gone it is
 * released all the same: a release of what is not there does no harm, a pod that is only not listed bills. */
static void vanished(struct core *c, struct core_pod *p, const char *how, bool gone)
{
	int pod = index_of(c, p);
	bool finished = p->detached && !p->view.preempted;

	if (p->phase >= POD_RELEASING)
		return;
	snprintf(p->reason, sizeof(p->reason), "%s", how);
	if (!finished && !c->conf.reap) {
		p->fault = ERR_TRANSIENT;
		core_note(c, NOTE_WARN, "pod %s: %s; its unfinished segments go elsewhere", p->id, how);
		count_failure(c, p);
	}
	struct vendor *v = vendor_of(c, p);
	if (v->owner == pod && !v->shared_ready)
		v->owner = -1;
	bool salvage = !c->conf.reap && pod_files_outlive(c, p) && (p->connected_at || p->listed);
	if (!gone) {
		p->release_at = c->now;
		p->tries = 0;
		core_act(c, ACT_RELEASE, pod);
		core_act(c, ACT_CLOSE, pod);
		p->connected = false;
		p->unwanted = true;
		enter(c, p, POD_RELEASING);
		p->deadline_at = c->now + CONFIRM_LIMIT_MS;
	} else {
		mark_gone(c, p);
	}
	if (salvage) {
		dispatch_forget_fetches(c, pod);
		p->salvaging = p->via_volume = true;
		core_act(c, ACT_SALVAGE, pod);
	} else {
		dispatch_lost(c, pod);
		dispatch_lost_files(c, pod);
	}
}

static void salvaged(struct core *c, struct core_pod *p, const struct err *err)
{
	int pod = index_of(c, p);

	if (!p->salvaging)
		return;
	if (err && p->durable && c->now < p->rescue_until && c->signals == 0) {
		pod_file_delayed(c, pod); /* it is there: what it holds is not rendered again for want of a moment */
		return;
	}
	p->salvaging = false;
	dispatch_lost(c, pod);
	if (err)
		dispatch_lost_files(c, pod);
	else
		dispatch_refetch(c, pod);
	c->dirty = true;
}

static void released(struct core *c, struct core_pod *p, enum release_word word, const struct err *err)
{
	if (p->phase != POD_RELEASING)
		return;
	if (!err) {
		if (!p->released_at || word == RELEASE_ENDED)
			p->released_at = c->now;
		p->absent = word == RELEASE_ABSENT;
		p->looks = p->clean_looks = 0;
		enter(c, p, POD_CONFIRMING);
		save(c, p);
		look_soon(c, p->provider);
		return;
	}
	int64_t wait = MIN((int64_t)RELEASE_RETRY_MIN_MS << MIN(p->tries, 6), RELEASE_RETRY_MAX_MS);
	if (p->tries++ == 2)
		core_note(c, NOTE_WARN, "pod %s: release: %s; asking again until it is gone", p->id, err->msg);
	p->wake_at = c->now + MAX(wait, err->retry_after_ms);
	COPY_TEXT(p->reason, err->msg);
	c->dirty = true;
}

/* ---- what the vendor's listings say ---- */

static void connect(struct core *c, struct core_pod *p)
{
	enter(c, p, POD_CONNECTING);
	p->tries = 0;
	save(c, p); /* where it listens: `burst ssh`, and a client that takes over, need it */
	core_act(c, ACT_CONNECT, index_of(c, p));
}

static void take_view(struct core *c, struct core_pod *p, const struct pod_view *view)
{
	p->view = *view;
	p->looks = 0;
	if (!p->vendor_started_s)
		p->vendor_started_s = view->started_at_s; /* a container that starts again was billed before, too */
	if (view->state == POD_STATE_RUNNING && !p->running_at)
		p->running_at = c->now;
	if (p->phase == POD_CONFIRMING || p->phase == POD_RELEASING)
		return;
	switch (view->state) {
	case POD_STATE_UNKNOWN:
	case POD_STATE_CREATING:
	case POD_STATE_RUNNING:
		if (view->port && p->phase == POD_BOOTING)
			connect(c, p);
		break;
	case POD_STATE_STOPPED:
		vanished(c, p, view->preempted ? "the vendor took it back (preempted)" : "it stopped by itself", false);
		break;
	case POD_STATE_FAILED:
		pod_bad_host(c, index_of(c, p), view->detail[0] ? view->detail : "it failed to start");
		pod_let_go(c, index_of(c, p), ERR_TRANSIENT, "it failed to start: %s",
			   view->detail[0] ? view->detail : "the vendor does not say why");
		break;
	case POD_STATE_GONE:
		vanished(c, p, view->preempted ? "the vendor took it back (preempted)" :
			       view->detail[0] ? view->detail : "it is gone", true);
		break;
	}
}

/* A list that lags shows a new pod late: until it has shown it once, or has had its time since the create to do so, that it
 * does not show it proves nothing. Where the list is the truth there is no such time. */
static int64_t surfaced_by(const struct core *c, const struct core_pod *p)
{
	if (p->listed || !c->conf.providers[p->provider].look_gap_ms)
		return INT64_MIN;
	return MAX(p->create_at, p->rented_at) + SURFACE_LIMIT_MS;
}

int64_t pod_proof_at(const struct core *c, const struct core_pod *p)
{
	return MAX(p->clean_at + c->conf.providers[p->provider].look_gap_ms, surfaced_by(c, p));
}

static void confirm_look(struct core *c, struct core_pod *p, bool there, int64_t asked_at)
{
	if (asked_at < p->released_at)
		return;
	if (there) {
		p->clean_looks = 0;
		if (p->absent || (c->now - p->released_at > 20000 && c->now - p->release_at > 20000)) {
			p->release_at = c->now; /* it is still there: ask again, and until then it bills */
			p->released_at = 0;
			core_act(c, ACT_RELEASE, index_of(c, p));
			enter(c, p, POD_RELEASING);
		}
		return;
	}
	if (p->clean_looks++ == 0)
		p->clean_at = asked_at;
	if (asked_at >= pod_proof_at(c, p))
		mark_gone(c, p);
	c->dirty = true;
}

static void ambiguous_look(struct core *c, struct core_pod *p, int64_t asked_at)
{
	int64_t gap_ms = c->conf.providers[p->provider].look_gap_ms ? AMBIGUOUS_GAP_MS : AMBIGUOUS_SHORT_MS;
	struct err err;

	if (asked_at < p->rented_at)
		return;
	if (p->clean_looks++ == 0) {
		p->clean_at = asked_at;
	} else if (asked_at - p->clean_at >= gap_ms) {
		err_set(&err, ERR_TRANSIENT, "%s", p->reason);
		rest_after_trouble(c, p, 0);
		/* it may have lived between two looks, or before it would have been listed: the cap counts all that as spent */
		c->spent_microusd += money_for(p->price_microusd_h, MIN(asked_at, p->hard_end_ms) - p->create_at);
		never_existed(c, p, &err);
	}
}

static void missing(struct core *c, struct core_pod *p, int64_t asked_at)
{
	if (asked_at < p->rented_at + 1 || p->connected)
		return; /* a list may be wrong, a connection is not */
	/* one missing read is no proof: ids surface late */
	if (p->looks++ == 0) {
		p->clean_at = asked_at;
		c->dirty = true;
		return;
	}
	if (asked_at >= pod_proof_at(c, p))
		vanished(c, p, p->connected_at ? "it is gone" : "the vendor no longer lists it", false);
}

/* A pod of this run that we did not know under this id: a second pod of one create, or one that surfaced after all. */
static void stray(struct core *c, int provider, const struct pod_view *view)
{
	GROW(c->pods, (size_t)c->pod_count, c->pod_cap);
	struct core_pod *p = &c->pods[c->pod_count++];

	*p = (struct core_pod){.provider = provider, .view = *view, .last_group = UINT32_MAX, .listed = true};
	/* a row of its own in the ledger: that of its twin must not be lost */
	name_attempt(c, p);
	COPY_TEXT(p->id, view->id);
	COPY_TEXT(p->offer.provider, c->conf.providers[provider].name);
	COPY_TEXT(p->offer.gpu, view->gpu);
	COPY_TEXT(p->offer.region, view->region);
	p->price_microusd_h = view->price_microusd_h;
	p->create_at = view->created_at_s ? MIN(c->now, view->created_at_s * 1000 - c->wall + c->now) : c->now;
	p->rented_at = c->now;
	p->hard_end_s = view->marker.hard_end_s;
	p->hard_end_ms = p->hard_end_s * 1000 - c->wall + c->now;
	enter(c, p, POD_BOOTING);
	snprintf(p->reason, sizeof(p->reason), "a pod too many");
	core_note(c, NOTE_WARN, "pod %s: bears this run's mark and is not wanted; releasing it", p->id);
	pod_release_now(c, index_of(c, p));
}

static struct core_pod *pod_by_id(struct core *c, int provider, const char *id)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].provider == provider && !strcmp(c->pods[i].id, id))
			return &c->pods[i];
	return NULL;
}

static struct core_pod *pod_by_attempt(struct core *c, int provider, const char *attempt)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].provider == provider && !strcmp(c->pods[i].attempt, attempt) && !c->pods[i].id[0])
			return &c->pods[i];
	return NULL;
}

static void one_seen(struct core *c, int provider, const struct pod_view *view, int64_t asked_at)
{
	struct core_pod *p = pod_by_id(c, provider, view->id);
	bool ours = !strcmp(view->marker.run, c->conf.run) && view->marker.attempt[0];

	if (!p && ours && view->state != POD_STATE_GONE) {
		p = pod_by_attempt(c, provider, view->marker.attempt);
		if (!p) {
			stray(c, provider, view);
			return;
		}
		p->listed = true;
		if (p->phase == POD_RENTING)
			return; /* its reply is still under way */
		/* a create whose reply was lost: it exists after all */
		bool unwanted = p->unwanted || p->phase == POD_NEVER;
		p->phase = POD_AMBIGUOUS;
		p->unwanted = unwanted;
		p->fault = ERR_NONE;
		rented(c, p, view);
		return;
	}
	if (!p)
		return;
	if (p->phase == POD_GONE || p->phase == POD_NEVER) {
		if (view->state == POD_STATE_GONE || asked_at <= p->gone_at)
			return;
		core_note(c, NOTE_WARN, "pod %s: listed again after it was gone; releasing it again", p->id);
		c->spent_microusd -= core_cost(p, c->now);
		p->released_at = 0;
		p->unwanted = true;
		enter(c, p, POD_BOOTING);
		pod_release_now(c, index_of(c, p));
		return;
	}
	p->listed = true;
	if (p->phase == POD_CONFIRMING)
		confirm_look(c, p, view->state != POD_STATE_GONE, asked_at);
	else if (asked_at >= p->rented_at)
		take_view(c, p, view);
}

static bool in_list(const struct core_pod *p, const struct pod_view *views, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (p->id[0] ? !strcmp(views[i].id, p->id) : !strcmp(views[i].marker.attempt, p->attempt))
			return true;
	return false;
}

void pod_seen(struct core *c, int provider, const struct pod_view *views, size_t count, int64_t asked_at)
{
	for (size_t i = 0; i < count; i++)
		one_seen(c, provider, &views[i], asked_at);
	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		if (p->provider != provider || in_list(p, views, count))
			continue;
		if (p->phase == POD_AMBIGUOUS)
			ambiguous_look(c, p, asked_at);
		else if (p->phase == POD_CONFIRMING)
			confirm_look(c, p, false, asked_at);
		else if (p->phase >= POD_BOOTING && p->phase <= POD_WORKING)
			missing(c, p, asked_at);
	}
}

/* ---- coming up, and what its provider's log says of it ---- */

static const char *never_came(const struct core_pod *p)
{
	if (p->phase == POD_CONNECTING)
		return "sshd never spoke";
	return p->running_at ? "it ran and never had an address" : "its container never ran";
}

static void give_up(struct core *c, struct core_pod *p)
{
	int pod = index_of(c, p);
	char took[24], last[100];

	c->patience_ms = MAX(c->patience_ms, 2 * p->boot_limit_ms);
	pod_bad_host(c, pod, never_came(p));
	duration_show(took, sizeof(took), c->now - p->create_at);
	COPY_TEXT(last, p->reason);
	pod_let_go(c, pod, ERR_TRANSIENT, "it did not come up within %s%s%s", took, last[0] ? ": " : "", last);
}

static bool coming_up(const struct core_pod *p)
{
	return (p->phase == POD_BOOTING || p->phase == POD_CONNECTING) && !p->connected_at && !p->unwanted;
}

static void read_log(struct core *c, struct core_pod *p)
{
	p->log_asks++;
	p->log_at = 0;
	core_act(c, ACT_LOG, index_of(c, p));
	c->dirty = true;
}

/* Whatever its log says, its time is over then: the switch that nobody has reached yet would end it soon after. */
static int64_t boot_end(const struct core *c, const struct core_pod *p)
{
	return p->create_at + c->conf.boot_limit_ms + MIN(c->conf.boot_limit_ms, c->conf.lease_ms - c->conf.lease_ms / 10);
}

/* At its deadline: an image that is still being pulled is no stuck host. */
static bool log_may_help(struct core *c, struct core_pod *p)
{
	if (p->log_decides || !p->log_known || !coming_up(p) || c->now >= boot_end(c, p))
		return false;
	p->log_decides = true;
	p->deadline_at = c->now + LOG_WAIT_MS;
	read_log(c, p);
	return true;
}

static void log_was_read(struct core *c, struct core_pod *p, const struct event *ev)
{
	char left[24];

	p->log_asks--;
	bool moved = p->log_known && !ev->err && ev->number > 0;
	p->log_known = p->log_known || !ev->err;
	if (!p->log_decides || p->log_asks > 0)
		return;
	p->log_decides = false;
	if (!coming_up(p))
		return;
	if (!moved) {
		give_up(c, p);
		return;
	}
	p->deadline_at = MIN(c->now + p->boot_limit_ms, boot_end(c, p));
	core_note(c, NOTE_NOTE, "pod %s: not up yet, but its provider's log moves on: it has another %s", p->id,
		  duration_show(left, sizeof(left), p->deadline_at - c->now));
}

/* ---- with an agent on it ---- */

static void prepare(struct core *c, struct core_pod *p)
{
	struct vendor *v = vendor_of(c, p);
	int pod = index_of(c, p);
	bool shared = p->volume.id[0] != '\0';

	p->mine_to_prepare = !shared || (!v->shared_ready && (v->owner < 0 || v->owner == pod));
	if (shared && !v->shared_ready && !p->mine_to_prepare) {
		enter(c, p, POD_QUEUED);
		return;
	}
	if (shared && p->mine_to_prepare)
		v->owner = pod;
	enter(c, p, POD_PREPARING);
	p->deadline_at = c->now + PREPARE_LIMIT_MS;
	core_act(c, ACT_PREPARE, pod)->flag = p->mine_to_prepare;
}

/* Pods that waited for the volume go on: all of them if it is ready, the first if its preparer is gone. */
void pod_after_queue(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];
	const struct vendor *v = vendor_of(c, p);

	if (p->phase == POD_QUEUED && p->connected && !p->unwanted && (v->shared_ready || v->owner < 0))
		prepare(c, p);
}

static void volume_is_ready(struct core *c, const struct core_pod *p)
{
	if (p->volume.id[0])
		vendor_of(c, p)->shared_ready = true;
}

/* Its workers run: what was said to it last may have been lost with the connection, so it is said again. */
static void back_at_work(struct core *c, struct core_pod *p)
{
	int pod = index_of(c, p);

	p->workers_ready = MAX(p->workers_ready, 1);
	if (!p->ready_at)
		p->ready_at = c->now;
	volume_is_ready(c, p);
	enter(c, p, POD_WORKING);
	if (p->adopted) { /* its queue is of an earlier life: we deal anew */
		p->adopted = false;
		if (p->detached) {
			p->detached = false;
			core_act(c, ACT_TAKEOVER, pod);
			core_act(c, ACT_RENEW, pod);
			save(c, p);
		}
		core_act(c, ACT_REVOKE, pod);
	}
	if (p->draining)
		core_act(c, ACT_REVOKE, pod);
	else
		dispatch_resend(c, pod);
	if (p->detached)
		core_act(c, ACT_HANDOVER, pod);
	pod_after_work(c, pod);
}

static void switch_is_bad(struct core *c, struct core_pod *p)
{
	if (!c->conf.unproven_ok && !p->unwanted)
		pod_let_go(c, index_of(c, p), ERR_REFUSED, "it cannot end itself should we vanish, so it gets no work");
}

static void connected(struct core *c, struct core_pod *p, const struct event *ev)
{
	int pod = index_of(c, p);
	struct err err;

	if (p->phase != POD_CONNECTING)
		return;
	p->connected = true;
	p->lost = false;
	p->renew_at = c->now;
	if (!p->connected_at) {
		p->reached_at = ev->t ? ev->t : c->now;
		p->connected_at = c->now;
		c->patience_ms = 0;
		if (!p->running_at)
			p->running_at = p->rented_at;
		p->proven_switch = ev->switch_proven;
		save(c, p);
	}
	if (p->unwanted) { /* it is only still there for the files that are not home */
		dispatch_refetch(c, pod);
		pod_after_work(c, pod);
		return;
	}
	if (!ev->switch_ok && !c->conf.unproven_ok) {
		switch_is_bad(c, p);
		return;
	}
	if (c->conf.needs_gpu && !ev->gpus) {
		err_set(&err, ERR_JOB, "pod %s has no GPU that works, and this engine needs one", p->id);
		pod_bad_host(c, pod, "no GPU could be seen on it");
		pod_let_go(c, pod, ERR_JOB, "no GPU can be seen on it");
		core_fault(c, pod, &err);
		return;
	}
	dispatch_refetch(c, pod);
	if (ev->workers_alive) {
		back_at_work(c, p);
		return;
	}
	p->adopted = false;
	if (p->workers_ready || p->inherited) {
		/* the agent began anew: what it held is lost, what it finished is still on the volume */
		p->workers_ready = 0;
		dispatch_lost(c, pod);
	}
	prepare(c, p);
}

static void connect_failed(struct core *c, struct core_pod *p, const struct err *err)
{
	if (p->phase != POD_CONNECTING)
		return;
	if (err->kind == ERR_UNTRUSTED || err->kind == ERR_REFUSED) {
		pod_bad_host(c, index_of(c, p), err->msg);
		pod_let_go(c, index_of(c, p), err->kind, "%s", err->msg);
		return;
	}
	int64_t wait = (int64_t)CONNECT_RETRY_MIN_MS << MIN(p->tries++, 6);
	p->wake_at = c->now + MIN(wait, CONNECT_RETRY_MAX_MS);
	COPY_TEXT(p->reason, err->msg);
	c->dirty = true;
}

static void lost(struct core *c, struct core_pod *p, const struct err *err)
{
	if (!p->connected)
		return;
	p->connected = false;
	p->syncing = false;
	if (p->phase >= POD_RELEASING)
		return;
	if (err && err->kind == ERR_UNTRUSTED) { /* it would only lie again */
		pod_bad_host(c, index_of(c, p), err->msg);
		pod_let_go(c, index_of(c, p), ERR_UNTRUSTED, "%s", err->msg);
		return;
	}
	core_note(c, NOTE_INFO, "pod %s: connection lost (%s); connecting again", p->id, err ? err->msg : "closed");
	p->lost = true;
	dispatch_forget_fetches(c, index_of(c, p));
	/* a pod that keeps itself alive may work on out of our sight; its lease ends it if it does not */
	p->deadline_at = p->detached ? NEVER : c->now + UNREACHABLE_LIMIT_MS;
	look_soon(c, p->provider);
	connect(c, p);
}

static void good_host(struct core *c, struct core_pod *p)
{
	struct candidate *k = offers_of(c, p);

	if (k)
		k->past.bad_until_ms = 0;
	core_act(c, ACT_GOOD_HOST, index_of(c, p));
}

static void workers(struct core *c, struct core_pod *p, const struct event *ev)
{
	if (p->phase < POD_CONNECTING || p->phase > POD_WORKING)
		return;
	p->workers_ready = ev->number;
	if (ev->max_batch > 0 && ev->max_batch < c->conf.max_batch)
		c->conf.max_batch = ev->max_batch;
	if (!ev->number || p->phase == POD_CONNECTING)
		return; /* read from its log before it counts as connected */
	volume_is_ready(c, p);
	if (!p->ready_at) {
		p->ready_at = c->now;
		c->cold_ms = c->now - p->create_at;
		save(c, p);
		good_host(c, p);
	}
	if (p->phase != POD_WORKING)
		enter(c, p, POD_WORKING);
	pod_after_work(c, index_of(c, p));
}

static void useless(struct core *c, struct core_pod *p, const struct err *err)
{
	bool first = !c->kept_something;

	pod_let_go(c, index_of(c, p), err->kind, "%s", err->msg);
	/* before anything was ever rendered, another pod would fail the same way */
	if (first)
		core_fault(c, index_of(c, p), err);
}

static void prepare_failed(struct core *c, struct core_pod *p, const struct err *err)
{
	if (p->phase != POD_PREPARING && p->phase != POD_LOADING)
		return;
	if (err->kind == ERR_JOB || err->kind == ERR_CONFIG || err->kind == ERR_LOCAL) {
		pod_let_go(c, index_of(c, p), err->kind, "%s", err->msg);
		core_fault(c, index_of(c, p), err);
		return;
	}
	pod_let_go(c, index_of(c, p), err->kind == ERR_NONE ? ERR_TRANSIENT : err->kind, "%s", err->msg);
}

void pod_after_work(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->phase >= POD_RELEASING)
		return;
	if (p->unwanted) {
		if (p->unhome <= 0 && p->phase > POD_AMBIGUOUS && !pod_kept(c, pod))
			pod_release_now(c, pod);
		return;
	}
	if (p->phase != POD_WORKING || !p->connected) {
		if (!p->batches && !p->unhome)
			c->dirty = true; /* out of reach, and perhaps not needed any more */
		return;
	}
	dispatch_fill(c, pod);
	if (p->batches || !nothing_comes(c, p))
		return;
	if (p->unhome == 0)
		pod_let_go(c, pod, ERR_NONE, "done");
	else
		ask_durable(c, p);
}

void pod_event(struct core *c, const struct event *ev)
{
	struct core_pod *p = &c->pods[ev->pod];

	c->dirty = true;
	switch (ev->type) {
	case EV_RENTED:
		if (p->phase == POD_RENTING)
			rented(c, p, &ev->views[0]);
		break;
	case EV_RENT_FAILED:
		if (p->phase == POD_RENTING)
			rent_failed(c, p, ev->err);
		break;
	case EV_CONNECTED: connected(c, p, ev); break;
	case EV_CONNECT_FAILED: connect_failed(c, p, ev->err); break;
	case EV_LOST: lost(c, p, ev->err); break;
	case EV_SWITCH_BAD: switch_is_bad(c, p); break;
	case EV_SHARED_READY:
		if (p->phase != POD_PREPARING)
			break;
		p->synced_at = c->now;
		enter(c, p, POD_LOADING);
		volume_is_ready(c, p);
		break;
	case EV_PREPARE_FAILED: prepare_failed(c, p, ev->err); break;
	case EV_WORKERS: workers(c, p, ev); break;
	case EV_WORKERS_FAILED: useless(c, p, ev->err); break;
	case EV_LOG: log_was_read(c, p, ev); break;
	case EV_SALVAGED: salvaged(c, p, ev->err); break;
	case EV_SYNCED: synced(c, p, ev); break;
	case EV_RELEASED: released(c, p, (enum release_word)ev->number, ev->err); break;
	default: break;
	}
}

void pod_take_over(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->durable && !c->conf.reap && pod_files_outlive(c, p)) {
		p->salvaging = p->via_volume = true;
		pod_file_came(c, pod);
		core_act(c, ACT_SALVAGE, pod);
	}
	if (p->phase == POD_GONE)
		return;
	p->deadline_at = p->detached ? NEVER : c->now + c->conf.boot_limit_ms;
	if (p->phase == POD_AMBIGUOUS) {
		p->rented_at = c->now; /* its create call may have been on its way until now */
		return;
	}
	if (p->unwanted)
		pod_release_now(c, pod);
}

/* ---- time ---- */

static void watch_hard_end(struct core *c, struct core_pod *p)
{
	int64_t margin = budget_margin(p->hard_end_ms - p->create_at);
	int pod = index_of(c, p);

	if (p->phase >= POD_RELEASING || p->phase <= POD_AMBIGUOUS)
		return;
	if (c->now >= p->hard_end_ms - margin) {
		c->capped = c->capped || !dispatch_settled(c);
		snprintf(p->reason, sizeof(p->reason), "its time was over (cap on cost or duration)");
		pod_release_now(c, pod);
	} else if (c->now >= p->hard_end_ms - 2 * margin && !p->draining) {
		p->draining = true;
		if (p->connected)
			core_act(c, ACT_REVOKE, pod);
		pod_after_work(c, pod);
	}
}

static bool has_deadline(const struct core_pod *p)
{
	return p->phase == POD_BOOTING || p->phase == POD_CONNECTING || p->phase == POD_PREPARING ||
	       p->phase == POD_LOADING;
}

static void watch_deadline(struct core *c, struct core_pod *p)
{
	int pod = index_of(c, p);

	if (!has_deadline(p) || c->now < p->deadline_at)
		return;
	if (p->phase > POD_CONNECTING) {
		pod_let_go(c, pod, ERR_TRANSIENT, "its workers were not ready in time");
		return;
	}
	if (p->lost) {
		pod_let_go(c, pod, ERR_NETWORK, "it could not be reached again");
		return;
	}
	if (!log_may_help(c, p))
		give_up(c, p);
}

void pod_tick(struct core *c, int pod)
{
	struct core_pod *p = &c->pods[pod];

	if (p->refetch_at && c->now >= p->refetch_at) {
		p->refetch_at = 0;
		if (p->salvaging)
			core_act(c, ACT_SALVAGE, pod);
		else
			dispatch_refetch(c, pod);
		c->dirty = true;
	}
	if (p->sync_at && c->now >= p->sync_at) {
		p->sync_at = 0;
		pod_after_work(c, pod);
		c->dirty = true;
	}
	if (p->log_at && c->now >= p->log_at && coming_up(p))
		read_log(c, p);
	watch_deadline(c, p);
	watch_hard_end(c, p);
	if (p->unwanted && p->phase < POD_RELEASING && p->look_at && c->now >= p->look_at && !pod_kept(c, pod))
		pod_release_now(c, pod);
	if (p->kept_until && p->phase < POD_RELEASING && c->now >= p->kept_until)
		pod_release_now(c, pod);
	if (c->now >= p->wake_at) {
		p->wake_at = NEVER;
		if (p->phase == POD_CONNECTING)
			core_act(c, ACT_CONNECT, pod);
		else if (p->phase == POD_RELEASING)
			core_act(c, ACT_RELEASE, pod);
		c->dirty = true;
	}
	if (p->connected && !p->detached && p->phase < POD_RELEASING && c->now >= p->renew_at) {
		core_act(c, ACT_RENEW, pod);
		p->renew_at = c->now + c->conf.lease_ms / 3;
		c->dirty = true;
	}
}

/* The earliest moment at which pod_tick() has something to do. */
int64_t pod_wake_at(const struct core *c, const struct core_pod *p)
{
	int64_t at = p->refetch_at ? p->refetch_at : NEVER;

	if (!pod_may_bill(p))
		return at;
	if (p->phase >= POD_RELEASING)
		return MIN(at, p->deadline_at > c->now ? MIN(p->wake_at, p->deadline_at) : p->wake_at);
	if (p->sync_at)
		at = MIN(at, p->sync_at);
	if (p->phase > POD_AMBIGUOUS) {
		int64_t margin = budget_margin(p->hard_end_ms - p->create_at);
		at = MIN(at, MIN(p->wake_at, p->hard_end_ms - (p->draining ? margin : 2 * margin)));
		if (has_deadline(p))
			at = MIN(at, p->deadline_at);
		if (p->log_at && coming_up(p))
			at = MIN(at, p->log_at);
		if (p->kept_until)
			at = MIN(at, MAX(p->kept_until, c->now));
		else if (p->unwanted && p->look_at)
			at = MIN(at, p->look_at);
		if (p->connected && !p->detached)
			at = MIN(at, p->renew_at);
	}
	return at;
}
