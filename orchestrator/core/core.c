/* core.c - the run as a whole: when to ask for offers, when to rent another pod, when to stop, and what to say at the end. */
#include "impl.h"

#include <stdarg.h>
#include <stdlib.h>

#include "../base/clock.h"

/* ---- actions ---- */

struct action *core_act(struct core *c, enum action_type type, int pod)
{
	struct actions *out = c->out;

	GROW(out->list, out->count, out->cap);
	struct action *a = &out->list[out->count++];
	*a = (struct action){.type = type, .pod = pod};
	if (pod >= 0)
		a->provider = c->pods[pod].provider;
	return a;
}

void core_note(struct core *c, enum note_level level, const char *fmt, ...)
{
	struct action *a = core_act(c, ACT_NOTE, -1);
	va_list ap;

	a->number = (int)level;
	va_start(ap, fmt);
	vsnprintf(a->text, sizeof(a->text), fmt, ap);
	va_end(ap);
}

uint64_t core_random(struct core *c)
{
	/* splitmix64: distinct for every call from one seed */
	uint64_t z = (c->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* ---- stopping ---- */

/* Which of two reasons decides the exit status: 9, signals, 5, 3, 6, 4, 1. */
static int gravity(enum err_kind kind)
{
	struct err err = {.kind = kind};

	switch (err_exit_status(&err)) {
	case 9: return 9;
	case 5: return 7;
	case 3: return 6;
	case 2:
	case 6: return 5;
	case 4: return 4;
	case 1: return 3;
	default: return kind == ERR_INTERRUPTED ? 8 : 0;
	}
}

bool core_stopping(const struct core *c)
{
	return c->fault.kind != ERR_NONE || c->signals > 0 || c->conf.reap;
}

static void stop_begin(struct core *c)
{
	c->grace_until = c->now + FETCH_GRACE_MS;
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].phase == POD_WORKING && c->pods[i].connected)
			core_act(c, ACT_REVOKE, i);
	c->dirty = true;
}

void core_fault(struct core *c, int pod, const struct err *err)
{
	bool first = !core_stopping(c);

	if (gravity(err->kind) > gravity(c->fault.kind)) {
		c->fault = *err;
		c->fault_pod = pod;
	}
	if (pod >= 0 && err->kind == ERR_JOB)
		c->pods[pod].failed_here = true;
	if (!first)
		return;
	stop_begin(c);
}

static void take_signal(struct core *c, int number)
{
	if (++c->signals == 1) {
		c->signal = number;
		stop_begin(c);
		core_note(c, NOTE_NOTE, "stopping: fetching what is finished, then releasing the pods "
					"(again: release them now)");
		return;
	}
	c->grace_until = c->now;
	c->dirty = true;
	if (c->signals >= 3)
		core_note(c, NOTE_WARN, "leaving at once");
}

static bool stoppable_now(const struct core *c, const struct core_pod *p)
{
	if (c->conf.reap || c->signals > 1)
		return true;
	return !(p->connected && p->unhome > 0 && c->now < c->grace_until);
}

static void let_all_go(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		if (p->phase >= POD_RELEASING)
			continue;
		if (stoppable_now(c, p) && !pod_kept(c, i))
			pod_release_now(c, i);
	}
}

/* ---- renting ---- */

static int count_active(const struct core *c, int *working, int *coming)
{
	int active = 0;

	*working = *coming = 0;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (!pod_active(p))
			continue;
		active++;
		*working += p->phase == POD_WORKING && !p->draining;
		*coming += p->phase < POD_WORKING && p->phase != POD_AMBIGUOUS;
	}
	return active;
}

/* What an earlier life finished is being learnt: nothing of it is rendered again meanwhile. */
bool core_reads_old(const struct core *c)
{
	for (int i = 0; i < c->pod_count; i++)
		if (c->pods[i].salvaging && c->pods[i].adopted)
			return true;
	return false;
}

/* A replacement is worth its cold start only if there is more work left than it takes to come up. */
static bool worth_another(const struct core *c, int working)
{
	double rate = dispatch_rate(c) * c->conf.workers;

	if (!working || rate <= 0 || !c->cold_ms)
		return true;
	return c->weight_todo / (rate * working) * 1000 > (double)c->cold_ms;
}

static int width_now(const struct core *c)
{
	if (!c->todo)
		return 0;
	if (!c->canary_ok)
		return 1;
	size_t most = c->todo; /* no more pods than segments */
	return (size_t)c->conf.pods < most ? c->conf.pods : (int)most;
}

static bool ask_next_vendor(struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		if (v->dead || v->offers_ask == ASK_FAILED || v->volume_ask == ASK_FAILED)
			continue;
		if (v->volume_ask == ASK_ASKED || v->offers_ask == ASK_ASKED)
			return true;
		if (c->conf.want_volume && v->volume_ask == ASK_NOT) {
			v->volume_ask = ASK_ASKED;
			core_act(c, ACT_VOLUME, -1)->provider = i;
			return true;
		}
		if (v->offers_ask == ASK_NOT) {
			v->offers_ask = ASK_ASKED;
			core_act(c, ACT_OFFERS, -1)->provider = i;
			return true;
		}
	}
	return false;
}

/* Offers may be listed for ever while every create says that they are sold out. */
static bool out_of_patience(const struct core *c)
{
	return !c->conf.retry_until_up && c->capacity_since && c->now - c->capacity_since >= c->conf.wait_ms &&
	       c->capacity.kind != ERR_NONE;
}

static bool any_vendor_left(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].dead)
			return true;
	return false;
}

static void no_capacity(struct core *c, int active, int64_t again_at)
{
	struct err err = {0};
	char waited[24];

	if (!c->capacity_since)
		c->capacity_since = c->now;
	bool hopeless = !any_vendor_left(c);
	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct err *why = &c->vendors[i].err;
		/* what one vendor cannot have at all is no reason while another one could */
		if (why->kind && gravity(why->kind) > gravity(err.kind) && (hopeless || why->kind != ERR_CONFIG))
			err = *why;
	}
	bool patient = c->conf.retry_until_up || c->now - c->capacity_since < c->conf.wait_ms;
	if (active || (patient && !hopeless)) {
		int64_t at = MAX(c->now + OFFERS_RETRY_MS, MIN(again_at, c->now + OFFER_REST_MS));
		if (!c->conf.retry_until_up && !active)
			at = MIN(at, c->capacity_since + c->conf.wait_ms);
		if (!active)
			core_note(c, NOTE_NOTE, "no pod to be had now (%s); asking again",
				  c->capacity.msg[0] ? c->capacity.msg : err.msg[0] ? err.msg : "no offers");
		c->offers_again_at = at;
		return;
	}
	if (err.kind == ERR_NONE) {
		duration_show(waited, sizeof(waited), c->now - c->capacity_since);
		err_set(&err, c->capacity.kind ? c->capacity.kind : ERR_NO_CAPACITY, "no usable pod could be rented within %s: %s",
			waited, c->capacity.msg[0] ? c->capacity.msg : "nobody offers what is wanted");
	}
	core_fault(c, -1, &err);
}

/* What a pod on its way out can still cost is held back until it is confirmed gone; then most of that is there again. */
static bool room_may_return(const struct core *c)
{
	if (c->deadline_at && !budget_useful(c, c->deadline_at))
		return false;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		if (pod_may_bill(p) && (p->phase < POD_RELEASING || c->now < p->deadline_at))
			return true;
	}
	return false;
}

/* No pod is there, and nothing is billed, while its image is built. */
static bool has_image(struct core *c, int provider)
{
	struct vendor *v = &c->vendors[provider];

	if (!c->conf.providers[provider].makes_image)
		return true;
	if (v->image_ask == ASK_NOT) {
		v->image_ask = ASK_ASKED;
		core_act(c, ACT_IMAGE, -1)->provider = provider;
	}
	return v->image_ask == ASK_HAVE;
}

static bool limits_shut(const struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (!c->vendors[i].dead && c->vendors[i].rent_not_before > c->now)
			return true;
	return false;
}

/* A thousand creates at once would all wait for the account's limits, and for each other. */
static bool rents_enough(const struct core *c, int provider)
{
	int most = c->vendors[provider].rents_at_once ? c->vendors[provider].rents_at_once : RENTS_AT_ONCE;
	int under_way = 0;

	for (int i = 0; i < c->pod_count; i++)
		under_way += c->pods[i].provider == provider && c->pods[i].phase <= POD_RENTING;
	return under_way >= most;
}

static void widen(struct core *c)
{
	int working, coming, active = count_active(c, &working, &coming);
	int64_t again_at;
	struct err err;

	if (core_reads_old(c))
		return;
	while (active < width_now(c)) {
		if (active && !worth_another(c, working))
			return;
		struct candidate *k = offers_pick(c, false, &again_at);
		if (!k && ask_next_vendor(c)) {
			if (!active && out_of_patience(c)) /* the answer may not come for an hour, where limits are used up */
				no_capacity(c, active, again_at);
			return;
		}
		if (!k)
			k = offers_pick(c, true, &again_at);
		if (!k && active && limits_shut(c))
			return; /* it is no lack of pods */
		if (!k) {
			if (c->now >= c->offers_again_at)
				no_capacity(c, active, again_at);
			return;
		}
		if (!active && out_of_patience(c)) {
			no_capacity(c, active, again_at);
			return;
		}
		int64_t end = budget_hard_end(c, k->offer.price_microusd_h, c->conf.pods - active);
		if (end < 0) {
			if (active || room_may_return(c))
				return;
			c->capped = true;
			err_set(&err, ERR_CAP, "%s", c->deadline_at && !budget_useful(c, c->deadline_at) ?
				"caps.max_duration was reached" : "caps.max_cost leaves no room for another pod");
			core_fault(c, -1, &err);
			return;
		}
		if (!has_image(c, k->provider) || rents_enough(c, k->provider))
			return;
		pod_rent(c, k, end);
		active++;
	}
}

/* Work may have come back from one pod while another had nothing to do; and who has nothing to do is let go. */
static void use_pods(struct core *c)
{
	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		if (p->phase == POD_WORKING)
			pod_after_work(c, i);
		else if (!c->todo && pod_active(p) && !p->batches && !p->unhome)
			pod_let_go(c, i, ERR_NONE, "no work is left for it");
		else if (p->phase == POD_QUEUED)
			pod_after_queue(c, i);
	}
}

static void ask_offers_again(struct core *c)
{
	c->offers_again_at = 0;
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		if (v->offers_ask != ASK_ASKED)
			v->offers_ask = ASK_NOT;
		if (v->volume_ask == ASK_FAILED)
			v->volume_ask = ASK_NOT;
	}
	c->dirty = true;
}

/* Detached: once as many pods work as can be had, all that is left is dealt out and the agents keep themselves alive. */
static void hand_over(struct core *c)
{
	int working, coming;

	if (!c->conf.detached || c->handed_over || !c->canary_ok || core_stopping(c) || core_reads_old(c))
		return;
	bool asking = false;
	count_active(c, &working, &coming);
	for (int i = 0; i < c->conf.provider_count; i++)
		asking = asking || c->vendors[i].offers_ask == ASK_ASKED || c->vendors[i].volume_ask == ASK_ASKED ||
			 c->vendors[i].image_ask == ASK_ASKED;
	if (!working || coming || asking)
		return;
	c->handed_over = true;
	dispatch_deal(c);
	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		if (p->phase != POD_WORKING || !p->connected || p->unwanted || p->draining)
			continue;
		if (!pod_files_outlive(p)) {
			core_note(c, NOTE_WARN, "pod %s: its files cannot be fetched without it, so it is not left alone",
				  p->id);
			continue;
		}
		p->detached = true;
		core_act(c, ACT_SAVE, i);
		core_act(c, ACT_HANDOVER, i);
	}
}

/* ---- listings: one for all pods of an account ---- */

static int64_t list_interval(const struct core *c, const struct vendor *v, const struct core_pod *p)
{
	const struct core_provider *k = &c->conf.providers[p->provider];
	int64_t age = c->now - p->create_at;

	if (p->unprovable)
		return UNPROVABLE_LOOK_MS;
	switch (p->phase) {
	case POD_BOOTING:
	case POD_CONNECTING: return MIN(MAX(age / 8, k->poll_ms), MAX((int64_t)5000, k->poll_ms));
	case POD_AMBIGUOUS: /* often at first: it bills, and it may be just the pod that is waited for */
		return p->late_clean_at ? MAX(k->look_gap_ms, 1000) : MIN(MAX((c->now - p->rented_at) / 4, k->poll_ms), (int64_t)15000);
	case POD_CONFIRMING:
		if (p->clean_looks)
			return MIN(MAX(pod_proof_at(c, p) - v->listed_at, 0), MAX((int64_t)5000, k->look_gap_ms));
		return MIN(MAX((c->now - p->release_at) / 4, k->poll_ms), MAX((int64_t)5000, k->poll_ms));
	case POD_PREPARING:
	case POD_QUEUED:
	case POD_LOADING:
	case POD_WORKING: return p->looks ? MAX(k->look_gap_ms, 1000) : 30000;
	case POD_WANTED:
	case POD_RENTING:
	case POD_RELEASING:
	case POD_GONE:
	case POD_NEVER: break;
	}
	return NEVER;
}

static void schedule_listings(struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		int64_t at = v->list_at;
		for (int k = 0; k < c->pod_count; k++) {
			if (c->pods[k].provider != i)
				continue;
			int64_t interval = list_interval(c, v, &c->pods[k]);
			if (interval != NEVER)
				at = MIN(at, MAX(v->listed_at, v->listing_since) + interval);
		}
		v->list_at = at;
		if (v->listing || MAX(at, v->list_not_before) > c->now)
			continue;
		v->listing = true;
		v->listing_since = c->now;
		v->list_at = NEVER;
		core_act(c, ACT_LIST, -1)->provider = i;
	}
}

/* Without its list no pod comes up and none is known to be gone. A list that burst cannot read stays so. */
static void note_no_list(struct core *c, int provider, const struct err *err)
{
	int failures = c->vendors[provider].list_failures;

	if (failures == (err->kind == ERR_BUG || err->kind == ERR_CREDENTIALS ? 0 : 2))
		core_note(c, NOTE_WARN, "%s: %s", c->conf.providers[provider].name, err->msg);
	if (err->kind == ERR_BUG && failures + 1 >= LIST_FAILURES_MAX)
		core_fault(c, -1, err);
}

static void listed(struct core *c, const struct event *ev)
{
	struct vendor *v = &c->vendors[ev->provider];

	v->listing = false;
	c->dirty = true;
	if (ev->err) {
		note_no_list(c, ev->provider, ev->err);
		v->list_failures += ev->err->kind == ERR_CREDENTIALS ? LIST_FAILURES_MAX : 1;
		v->list_at = v->list_not_before =
			c->now + MAX(ev->err->retry_after_ms,
				     MIN((int64_t)1000 << MIN(v->list_failures, 5), (int64_t)15000));
		return;
	}
	v->list_failures = 0;
	v->listed_at = ev->asked_at;
	pod_seen(c, ev->provider, ev->views, ev->count, ev->asked_at);
}

/* ---- the end ---- */

static bool all_looked(struct core *c)
{
	bool all = true;

	/* the listing before the exit: nothing of ours may be there that we do not know of */
	for (int i = 0; i < c->conf.provider_count; i++) {
		struct vendor *v = &c->vendors[i];
		int64_t from = c->signals > 1 ? v->created_at + 1 : MAX(v->created_at + 1, v->surfaced_at);
		if (!v->used || v->listed_at >= from)
			continue;
		if (v->list_failures >= LIST_FAILURES_MAX ||
		    (v->listing && c->now - MAX(v->listing_since, from) >= LAST_LOOK_MS))
			continue;
		all = false;
		v->list_at = MIN(v->list_at, MAX(c->now, from));
	}
	return all;
}

/* A create whose answer was lost may have made two pods, and no list could be had since the second would be in it. */
static bool lost_sight(struct core *c)
{
	bool lost = false;

	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if (!v->used || v->surfaced_at < 0 || v->listed_at >= v->surfaced_at || c->signals > 1)
			continue;
		lost = true;
		core_note(c, NOTE_WARN, "%s: no list of its pods could be had since the answer to a create was lost: a pod too many may be "
			  "billing; `burst reap` looks again", c->conf.providers[i].name);
	}
	return lost;
}

static bool pods_over(struct core *c)
{
	bool over = true;

	for (int i = 0; i < c->pod_count; i++) {
		struct core_pod *p = &c->pods[i];
		if (p->salvaging && c->signals < 2)
			over = false;
		if (!pod_may_bill(p))
			continue;
		bool given_up = p->unprovable || (p->phase == POD_AMBIGUOUS ?
			c->signals > 1 || c->now - p->rented_at > 5 * AMBIGUOUS_GAP_MS :
			p->phase >= POD_RELEASING && c->now >= p->deadline_at);
		over = over && given_up;
	}
	return over;
}

static void try_to_end(struct core *c)
{
	int working, coming;

	if (c->signals < 3) {
		bool done = core_stopping(c) || dispatch_settled(c);
		if (!done || count_active(c, &working, &coming) || !pods_over(c) || !all_looked(c))
			return;
		/* files that outlive their pod may still be on their way home */
		if (!core_stopping(c) && !dispatch_settled(c))
			return;
		if (core_stopping(c) && c->signals < 2 && c->now < c->grace_until)
			for (int i = 0; i < c->pod_count; i++)
				if (c->pods[i].unhome > 0)
					return;
	}
	c->unreleased = lost_sight(c);
	for (int i = 0; i < c->pod_count; i++)
		c->unreleased = c->unreleased || pod_may_bill(&c->pods[i]);
	c->ended = true;
	core_act(c, ACT_END, -1);
}

static void check_caps(struct core *c)
{
	struct err err;

	if (!c->deadline_at || c->now < c->deadline_at || core_stopping(c) || dispatch_settled(c))
		return;
	c->capped = true;
	err_set(&err, ERR_CAP, "caps.max_duration was reached");
	core_fault(c, -1, &err);
}

static void advance(struct core *c)
{
	if (c->ended || !c->started)
		return;
	check_caps(c);
	if (c->offers_again_at && c->now >= c->offers_again_at && !core_stopping(c))
		ask_offers_again(c);
	if (core_stopping(c)) {
		let_all_go(c);
	} else {
		use_pods(c);
		widen(c);
		hand_over(c);
		if (!c->todo)
			use_pods(c); /* the last of the work was just dealt out */
	}
	try_to_end(c);
	if (!c->ended)
		schedule_listings(c);
}

static void note_wake(struct core *c)
{
	int64_t at = NEVER;

	for (int i = 0; i < c->pod_count; i++)
		at = MIN(at, pod_wake_at(c, &c->pods[i]));
	for (int i = 0; i < c->conf.provider_count; i++) {
		const struct vendor *v = &c->vendors[i];
		if (v->listing && v->listing_since + LAST_LOOK_MS > c->now)
			at = MIN(at, v->listing_since + LAST_LOOK_MS);
		else if (!v->listing && v->list_at != NEVER)
			at = MIN(at, MAX(v->list_at, v->list_not_before));
		if (v->rent_not_before > c->now)
			at = MIN(at, v->rent_not_before);
	}
	if (c->offers_again_at && !core_stopping(c))
		at = MIN(at, c->offers_again_at);
	if (c->deadline_at && !core_stopping(c) && !dispatch_settled(c))
		at = MIN(at, c->deadline_at);
	if (c->capacity_since && !core_stopping(c) && c->capacity_since + c->conf.wait_ms > c->now)
		at = MIN(at, c->capacity_since + c->conf.wait_ms);
	if (core_stopping(c) && c->grace_until > c->now)
		at = MIN(at, c->grace_until);
	c->wake_at = c->ended ? NEVER : at;
}

/* ---- the step ---- */

static void tick(struct core *c)
{
	c->dirty = true;
	for (int i = 0; i < c->pod_count; i++)
		if (c->now >= pod_wake_at(c, &c->pods[i]))
			pod_tick(c, i);
}

static void start(struct core *c)
{
	c->started = c->dirty = true;
	c->began_at = c->now;
	c->capacity_since = c->now;
	if (c->conf.max_duration_ms)
		c->deadline_at = c->now + c->conf.max_duration_ms;
	for (int i = 0; i < c->conf.provider_count; i++)
		if (c->conf.providers[i].used_before) {
			c->vendors[i].used = true;
			pod_look_soon(c, i);
		}
	for (int i = 0; i < c->pod_count; i++) {
		c->vendors[c->pods[i].provider].used = true;
		pod_look_soon(c, c->pods[i].provider);
		pod_take_over(c, i);
	}
}

static void vendor_answered(struct core *c, const struct event *ev)
{
	struct vendor *v = &c->vendors[ev->provider];
	enum ask *ask = ev->type == EV_VOLUME ? &v->volume_ask : &v->offers_ask;

	c->dirty = true;
	*ask = ev->err ? ASK_FAILED : ASK_HAVE;
	if (ev->err) {
		v->err = *ev->err;
		if (ev->type == EV_VOLUME && v->err.kind == ERR_NOT_FOUND)
			v->err.kind = ERR_CONFIG; /* it will not come by itself */
		v->dead = v->err.kind == ERR_CREDENTIALS || v->err.kind == ERR_CONFIG;
		/* where it is the last one, this is what the run ends with */
		core_note(c, v->dead && any_vendor_left(c) ? NOTE_WARN : NOTE_INFO, "%s: %s",
			  c->conf.providers[ev->provider].name, ev->err->msg);
		return;
	}
	if (!v->dead) /* why it is stays, whatever was still under way */
		memset(&v->err, 0, sizeof(v->err));
	if (ev->type == EV_VOLUME)
		v->volume = *ev->volume;
	else
		offers_take(c, ev->provider, ev->offers, ev->past, ev->count);
}

static void slept(struct core *c)
{
	for (int i = 0; i < c->conf.provider_count; i++)
		if (c->vendors[i].used)
			c->vendors[i].list_at = c->now;
	for (int i = 0; i < c->pod_count; i++)
		c->pods[i].renew_at = c->now;
	c->dirty = true;
}

/* A recipe that cannot be built is wrong whichever offer is taken; all else may be better in a while. */
static void image_answered(struct core *c, const struct event *ev)
{
	struct vendor *v = &c->vendors[ev->provider];
	const char *name = c->conf.providers[ev->provider].name;

	c->dirty = true;
	if (!ev->err) {
		v->image_ask = ASK_HAVE;
		v->image_failures = 0;
		c->capacity_since = c->now; /* nothing could be rented until now */
		return;
	}
	v->image_ask = ASK_NOT;
	if (ev->err->kind == ERR_CONFIG || ev->err->kind == ERR_CREDENTIALS || ev->err->kind == ERR_REFUSED) {
		v->dead = true;
		v->err = *ev->err;
		core_note(c, any_vendor_left(c) ? NOTE_WARN : NOTE_INFO, "%s: %s", name, ev->err->msg);
		return;
	}
	if (!v->image_failures)
		c->capacity_since = c->now; /* how long it took until now is not held against it */
	core_note(c, NOTE_INFO, "%s: %s; trying again", name, ev->err->msg);
	err_set(&c->capacity, ev->err->kind, "%s: %s", name, ev->err->msg);
	int64_t rest = MAX(ev->err->retry_after_ms, 2000LL << MIN(v->image_failures++, 5));
	for (size_t i = 0; i < c->candidate_count; i++)
		if (c->candidates[i].provider == ev->provider)
			c->candidates[i].rest_until = MAX(c->candidates[i].rest_until, c->now + rest);
}

void core_step(struct core *c, const struct event *ev, struct actions *out)
{
	c->now = ev->now_ms;
	c->wall = ev->wall_ms;
	c->out = out;
	c->dirty = false;
	if (c->ended)
		return;
	switch (ev->type) {
	case EV_START: start(c); break;
	case EV_TICK: tick(c); break;
	case EV_OFFERS:
	case EV_VOLUME: vendor_answered(c, ev); break;
	case EV_IMAGE: image_answered(c, ev); break;
	case EV_LISTED: listed(c, ev); break;
	case EV_RENTED:
	case EV_RENT_FAILED:
	case EV_CONNECTED:
	case EV_CONNECT_FAILED:
	case EV_LOST:
	case EV_SWITCH_BAD:
	case EV_SHARED_READY:
	case EV_PREPARE_FAILED:
	case EV_WORKERS:
	case EV_WORKERS_FAILED:
	case EV_LOG:
	case EV_SALVAGED:
	case EV_SYNCED:
	case EV_RELEASED: pod_event(c, ev); break;
	case EV_RUNNING: dispatch_running(c, ev); break;
	case EV_BATCH_STARTED: dispatch_started(c, ev); break;
	case EV_BATCH_DONE: dispatch_done(c, ev); break;
	case EV_REVOKED: dispatch_revoked(c, ev); break;
	case EV_RENDERED: dispatch_rendered(c, ev); break;
	case EV_SEGMENT_FAILED: dispatch_failed(c, ev); break;
	case EV_HOME: dispatch_home(c, ev); break;
	case EV_HOME_FAILED: dispatch_home_failed(c, ev); break;
	case EV_SAFE: dispatch_safe(c, ev); break;
	case EV_SIGNAL: take_signal(c, ev->number); break;
	case EV_SLEPT: slept(c); break;
	case EV_FAULT: core_fault(c, -1, ev->err); break;
	}
	if (core_stopping(c))
		c->dirty = true;
	if (c->dirty) {
		advance(c);
		note_wake(c);
	}
}

int64_t core_wake_at(const struct core *c)
{
	return c->wake_at;
}

/* ---- making and asking ---- */

struct core *core_new(const struct core_conf *conf, const struct core_segment *segments, size_t count)
{
	struct core *c = xcalloc(1, sizeof(*c));

	c->conf = *conf;
	c->random = conf->seed;
	c->wake_at = NEVER;
	c->fault_pod = -1;
	c->canary_ok = !conf->canary;
	c->seg_count = count;
	c->segs = xcalloc(count, sizeof(*c->segs));
	for (size_t i = 0; i < count; i++)
		c->segs[i] = (struct seg){.weight = segments[i].weight, .est_s = segments[i].est_s,
					  .group = segments[i].group, .cached = segments[i].done};
	for (int i = 0; i < CORE_PROVIDERS_MAX; i++) {
		c->vendors[i].owner = -1;
		c->vendors[i].list_at = NEVER;
		c->vendors[i].listed_at = INT64_MIN / 2;
		c->vendors[i].listing_since = INT64_MIN / 2;
		c->vendors[i].created_at = c->vendors[i].surfaced_at = INT64_MIN / 4;
	}
	dispatch_init(c);
	return c;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	dispatch_free(c);
	free(c->segs);
	free(c->pods);
	free(c->candidates);
	free(c);
}

int core_adopt(struct core *c, const struct core_pod *pod)
{
	GROW(c->pods, (size_t)c->pod_count, c->pod_cap);
	struct core_pod *p = &c->pods[c->pod_count];

	*p = *pod;
	if (p->phase != POD_GONE && !p->create_at)
		p->create_at = -1; /* that very ms; 0 means never */
	p->wake_at = NEVER;
	p->last_group = UINT32_MAX;
	p->adopted = true;
	return c->pod_count++;
}

bool core_ended(const struct core *c)
{
	return c->ended;
}

int core_pod_count(const struct core *c)
{
	return c->pod_count;
}

const struct core_pod *core_pod_at(const struct core *c, int pod)
{
	return &c->pods[pod];
}

const struct core_batch *core_batch_at(const struct core *c, uint32_t batch)
{
	return &c->batches[batch];
}

enum core_seg_state core_seg_state(const struct core *c, uint32_t segment)
{
	return (enum core_seg_state)c->segs[segment].state;
}

int core_seg_tries(const struct core *c, uint32_t segment)
{
	return c->segs[segment].tries;
}

int64_t core_billed_ms(const struct core_pod *p, int64_t now_ms)
{
	if (p->phase == POD_NEVER || !p->create_at)
		return 0;
	int64_t end = p->released_at ? p->released_at : now_ms;
	int64_t ms = end - p->create_at;
	return ms <= 0 ? 0 : (ms + 999) / 1000 * 1000;
}

int64_t core_cost(const struct core_pod *p, int64_t now_ms)
{
	return money_for(p->price_microusd_h, core_billed_ms(p, now_ms));
}

static void verdict(const struct core *c, struct core_summary *s)
{
	bool all_safe = c->safe == c->seg_count && !c->canary_bad_all;

	if (c->unreleased) {
		s->status = "unreleased";
		err_set(&s->err, ERR_UNRELEASED, "a pod could not be confirmed gone: it may still be billing");
	} else if (c->signals) {
		s->status = "interrupted";
		err_set(&s->err, ERR_INTERRUPTED, "interrupted");
		s->err.signal = c->signal;
	} else if (all_safe || c->conf.reap) {
		s->status = "done";
	} else if (c->capped && c->fault.kind == ERR_CAP) {
		s->status = "capped";
		s->err = c->fault;
	} else {
		s->status = c->safe > 0 ? "partial" : "failed";
		s->err = c->fault;
		s->err_pod = c->fault_pod;
		if (s->err.kind == ERR_NONE)
			err_set(&s->err, ERR_JOB, "%zu of %zu segments failed", c->failed, c->seg_count);
	}
}

void core_summary(const struct core *c, int64_t now_ms, struct core_summary *s)
{
	*s = (struct core_summary){.err_pod = -1, .total = c->seg_count, .safe = c->safe, .failed = c->failed,
				   .cached = c->cached};
	int slots = 0;
	for (size_t i = 0; i < c->seg_count; i++) /* what a pod holds is not rendered yet */
		s->weight_left += c->segs[i].state <= SEG_HELD ? c->segs[i].weight : 0;
	for (int i = 0; i < c->pod_count; i++) {
		const struct core_pod *p = &c->pods[i];
		s->billed_ms += core_billed_ms(p, now_ms);
		s->cost_microusd += core_cost(p, now_ms);
		s->compute_ms += p->compute_ms;
		s->wasted_ms += p->wasted_ms;
		s->live += pod_may_bill(p);
		if (p->phase == POD_WORKING)
			slots += p->workers_ready;
	}
	s->rate = dispatch_rate(c) * slots;
	verdict(c, s);
}
