/* reap.c - `burst reap`, a process of its own: releases what dead runs of its machine left, then
 * lists each account, and a core of its own ends whatever the real rule (reap_pod()) says. Vendors
 * behind real translators are asked for that list as the program does, with all that can go wrong
 * on the way; others show it at once. */
#include "wire.h"

#include <stdlib.h>

#include "core/core.h"
#include "engine/caller.h"

/* ---- what the ledger knows ---- */

static bool run_detached(const struct laptop *l, int client)
{
	for (size_t i = 0; i < l->row_count; i++)
		if (l->rows[i].client == client && l->rows[i].pod.presence.lease != LEASE_CLIENT)
			return true;
	return false;
}

static struct reap_known known_of(const struct sim *s, const struct laptop *l,
				  const struct pod_view *view)
{
	for (size_t i = 0; i < l->row_count; i++) {
		const struct core_pod *p = &l->rows[i].pod;
		int client = l->rows[i].client;
		if (strcmp(p->rental.attempt, view->marker.attempt))
			continue;
		bool at_work = !strcmp(p->rental.id, view->id) && !pod_is_retired(p) &&
			       p->presence.ready_at;
		const struct client *cl = &s->clients[client];
		return (struct reap_known){.ours = true,
					   .alive = cl->up,
					   .ended = cl->exit_status >= 0 && !cl->dead_forever,
					   .detached = run_detached(l, client),
					   .at_work = at_work && !plant(PLANT_ORPHAN_ALL)};
	}
	return (struct reap_known){0};
}

/* Ended with exit 9: whatever its rows say, a pod may be left. */
static bool ended_in_doubt(const struct client *cl)
{
	return cl->exit_status == 9 && !cl->dead_forever;
}

bool reap_wants_run(const struct client *cl)
{
	const struct laptop *l = cl->laptop;
	int64_t last_s = 0;
	bool open = ended_in_doubt(cl);

	for (size_t i = 0; i < l->row_count; i++) {
		if (l->rows[i].client != cl->number || !pod_may_bill(&l->rows[i].pod))
			continue;
		open = true;
		last_s = MAX(last_s, l->rows[i].pod.rental.hard_end_s);
	}
	return open && reap_run(run_detached(l, cl->number), last_s, wall_now(cl));
}

/* ---- the sweep ---- */

/* Its run asked for its release, whether or not its vendor heard that. */
static bool was_let_go(const struct laptop *l, const struct machine *m)
{
	for (size_t i = 0; i < l->row_count; i++)
		if (!strcmp(l->rows[i].pod.rental.id, m->id) && pod_is_retired(&l->rows[i].pod))
			return true;
	return false;
}

static bool is_forced(const struct client *reaper, const struct machine *m)
{
	const struct client *owner = &reaper->sim->clients[m->client];

	return reaper->forces && owner->dead_forever && !owner->up;
}

/* What the rule says, and whether that is right. */
static bool ends(struct client *reaper, const struct machine *m, const struct pod_view *view,
		 int64_t now_ms)
{
	struct sim *s = reaper->sim;
	struct reap_known known = known_of(s, reaper->laptop, view);
	enum reap_what what = plant(PLANT_SWEEP_ALL) && view->state != POD_STATE_GONE
				      ? REAP_PAST
				      : reap_pod(view, &known, is_forced(reaper, m), now_ms);

	if (what == REAP_PASS || what == REAP_LEAVE)
		return false;
	trace(s, "reap ends pod %s: %s", m->id,
	      what == REAP_PAST ? "past its hard end" : "nothing to do");
	if (what == REAP_PAST && m->hard_end > s->now)
		broke(s, "reap ends pod %s %lld s before its hard end", m->id,
		      (long long)(m->hard_end - s->now) / 1000);
	if (what == REAP_ORPHAN && m->detached && !m->is_over && !was_let_go(reaper->laptop, m) &&
	    !m->unsaved)
		broke(s, "reap ends pod %s, whose agent was given work", m->id);
	return true;
}

/* As its core adopts it: just seen. */
static void add_target(struct client *reaper, const struct pod_view *view, int provider)
{
	int64_t now = boot_now(reaper), ahead = WALL_EPOCH_MS + reaper->sim->now - now;
	struct core_pod p = {
		.phase = POD_BOOTING,
		.rental.provider = provider,
		.rental.view = *view,
		.rental.create_at = MIN(view->created_at_s * 1000 - ahead, now - 1),
		.rental.rented_at = now,
		.presence.running_at = now,
		.rental.seen_at = now,
		.rental.listing = LISTING_SHOWS,
		.rental.price_microusd_h = view->price_microusd_h,
		.rental.hard_end_s = view->marker.hard_end_s,
		.rental.hard_end_ms = view->marker.hard_end_s * 1000 - ahead,
	};

	COPY_TEXT(p.rental.id, view->id);
	snprintf(p.rental.attempt, sizeof(p.rental.attempt), "%016zx", reaper->target_count);
	COPY_TEXT(p.rental.offer.provider, reaper->job->conf.providers[provider].name);
	GROW(reaper->targets, reaper->target_count, reaper->target_cap);
	reaper->targets[reaper->target_count++] = p;
}

static void sweep_plain(struct client *reaper)
{
	struct sim *s = reaper->sim;

	for (size_t i = 0; i < s->machine_count; i++) {
		const struct machine *m = &s->machines[i];
		struct pod_view view = cloud_view(s, m);
		if (!wire_is(s, m->vendor) && cloud_listed_now(s, m, m->vendor) &&
		    ends(reaper, m, &view, WALL_EPOCH_MS + s->now))
			add_target(reaper, &view, m->vendor);
	}
}

void reaper_ends(struct client *reaper)
{
	wire_end_life(reaper);
	core_free(reaper->core);
	reaper->core = NULL;
	reaper->target_count = 0;
	reaper->bills_open = 0;
	reaper->up = false;
	reaper->life++;
}

/* All lists are here: what they show and the rule ends is released at once. */
static void one_less(struct client *reaper)
{
	if (--reaper->bills_open)
		return;
	if (reaper->target_count)
		client_sweep(reaper);
	else
		reaper_ends(reaper);
}

static void swept(struct asked *a, struct op_result *result, const struct err *err)
{
	struct sim *s = a->cl->sim;
	int64_t now_ms = wire_time_there(a->cl, a->provider);

	for (size_t i = 0; !err && i < result->pod_count; i++) {
		const struct machine *m = wire_find(s, a->provider, result->pods[i].id);
		if (!m)
			broke(s, "a listing shows pod \"%s\", which nobody made",
			      result->pods[i].id);
		else if (ends(a->cl, m, &result->pods[i], now_ms))
			add_target(a->cl, &result->pods[i], a->provider);
	}
	one_less(a->cl);
}

static void sweep(struct client *reaper)
{
	reaper->up = true;
	wire_begin_life(reaper);
	reaper->bills_open = 1;
	sweep_plain(reaper);
	for (int i = 0; i < VENDORS_MAX; i++) {
		if (!wire_is(reaper->sim, i))
			continue;
		reaper->bills_open++;
		caller_prioritize(wire_begin(wire_request_new(reaper, i, -1), OP_LIST, swept));
	}
	one_less(reaper);
}

void reap(struct sim *s, struct client *by, bool forced)
{
	int laptop = ((int)(by->laptop - s->laptops) + forced) % LAPTOPS_MAX;
	struct client *reaper = &s->clients[CLIENTS_MAX + laptop];

	trace(s, "`burst reap` on machine %d", laptop);
	s->hit[F_REAP] = true;
	for (int i = 0; i < s->plan->client_count; i++)
		if (s->clients[i].laptop == reaper->laptop)
			client_reap(&s->clients[i]);
	if (s->broken[0] || reaper->up)
		return;
	reaper->forces = forced;
	sweep(reaper);
}
