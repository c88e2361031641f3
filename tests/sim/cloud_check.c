/* cloud_check.c - checks what a schedule may have cost, and that no machine is left. */

#include "base/clock.h"
#include "cloud.h"

/* In whole seconds, at the offered price. Higher prices and ignored releases are checked elsewhere.
 */
static int64_t meter_until(const struct sim *s, const struct machine *m, int64_t most)
{
	int64_t end = MIN(m->is_over ? m->ended : s->now, most);

	if (m->queued || cloud_waits(s, m)) /* never placed: it cost nothing */
		return 0;
	if (m->release_requested >= 0 && m->release_requested < end)
		end = m->release_requested;
	return money_for(MIN(m->price, m->offered),
			 (MAX(end - cloud_bills_from(s, m), 0) + 999) / 1000 * 1000);
}

int64_t meter(const struct sim *s, const struct machine *m)
{
	return meter_until(s, m, INT64_MAX);
}

/* Only a client can end these, and none is left. */
static bool immortal(const struct sim *s, const struct machine *m)
{
	const struct client *cl = &s->clients[m->client];

	return (m->never_runs || m->failed || m->stopped || cloud_waits(s, m)) &&
	       (cl->dead_forever || cl->exit_status == 9);
}

/* No fault kept a listing from the clients since its create, or shortly before, and it did not
 * surface late. */
static bool was_shown(const struct sim *s, const struct machine *m)
{
	bool late = m->visible > m->created + s->plan->vendors[m->vendor].lag_ms;

	return !late && s->unlisted_at[m->vendor] + RELEASED_WITHIN_MS < m->created;
}

/* When its client releases it: a tenth of its life before its end, at most 20 s, and a moment for
 * the call. */
static int64_t near_end(const struct machine *m)
{
	int64_t began = m->starts_at && m->starts_at < m->hard_end ? m->starts_at : m->created;

	return m->hard_end - MIN((m->hard_end - began) / 10, INT64_C(20000)) - 2000;
}

/* By a client whose clock may be ahead by `off`: its end seems that much closer. */
static bool was_known(const struct machine *m, int64_t off)
{
	return m->known_at >= 0 && m->known_at + off < near_end(m);
}

/* No client that knew of it was there when its end was near. */
static bool was_alone(const struct sim *s, const struct machine *m)
{
	const struct client *cl = &s->clients[m->client];
	/* the ledger never got the result of its create */
	bool unheard = m->reply_lost || cl->ever_crashed || cl->ever_left;
	bool unseen = unheard && !was_known(m, 0) && !was_shown(s, m);

	return m->alone || m->alone_until > near_end(m) || unseen;
}

/* Until its container runs, only a client that knows of a pod can end it. What it costs after its
 * end then counts under no cap. */
static int64_t owed(const struct sim *s, const struct machine *m)
{
	bool late = m->never_runs || m->failed || m->stopped || m->runs_at >= m->hard_end;
	int64_t all = meter(s, m), in_time = meter_until(s, m, m->hard_end);

	if (!late)
		return all;
	if (was_alone(s, m))
		return in_time;
	return cloud_may_wait(s, m)
		       ? in_time + all - meter_until(s, m, m->hard_end + RELEASED_WITHIN_MS)
		       : all;
}

static bool known_before(const struct machine *m, const struct machine *other)
{
	return m->known_at >= 0 && (other->known_at < 0 || m->known_at < other->known_at);
}

/* Of the two pods of one create, the client plans with the one that it hears of first. Only its own
 * hard end caps the cost of the other while the client cannot see it: check_life(), check_twin().
 */
static bool is_spare(const struct sim *s, const struct machine *m)
{
	if (m->duplicate) /* made right after its twin */
		return !known_before(m, m - 1);
	return cloud_number_of(s, m) + 1 < (int)s->machine_count && m[1].duplicate &&
	       known_before(m + 1, m);
}

/* Only the client enforces a cap that is lower than the one its pods were rented under, from its
 * return on. What was spent by then is spent. */
static void check_later_cap(struct sim *s, const struct client *cl, int64_t sum, int64_t slack)
{
	if (cl->cap_now >= cl->cap_most || cl->unsure || cl->dead_forever)
		return;
	if (sum > MAX(cl->cap_now, cl->metered) + slack)
		broke(s,
		      "the cloud's bill is %lld, %lld when it was resumed, and its later cap is "
		      "%lld",
		      (long long)sum, (long long)cl->metered, (long long)cl->cap_now);
}

/* At the final price, if its client was there to see it: pods above their offer's price are
 * released at once. */
static int64_t owed_really(const struct sim *s, const struct machine *m)
{
	const struct vendor_plan *v = &s->plan->vendors[m->vendor];
	bool seen = !m->alone && m->alone_until < 0 && was_shown(s, m) && !m->reply_lost;
	int64_t end = m->is_over ? m->ended : s->now;

	if (m->price <= m->offered || !seen || cloud_waits(s, m))
		return owed(s, m);
	if (m->release_requested >= 0)
		end = MIN(end, m->release_requested);
	int64_t ms = end - cloud_bills_from(s, m) - 4 * v->latency_ms - 2000 -
		     (cloud_may_wait(s, m) ? RELEASED_WITHIN_MS : 0);
	if (m->spot) /* only a listing shows its final price */
		ms -= m->visible - m->created + 6000;
	return money_for(m->price, MAX(ms, 0));
}

static void check_money(struct sim *s, const struct client *cl)
{
	int64_t cap = cl->cap_most, sum = cl->handed_bill, real = sum, slack = cl->handed_slack,
		slack_later = slack;

	for (size_t i = 0; cap && i < s->machine_count; i++) {
		const struct machine *m = &s->machines[i];
		if (m->client != cl->number || is_spare(s, m))
			continue;
		sum += owed(s, m);
		real += owed_really(s, m);
		/* it may have used a clock that is wrong */
		bool by_itself = m->alone || m->alone_until >= 0 ||
				 !was_known(m, cl->laptop->wall_error) || cloud_may_wait(s, m);
		int64_t off = 1000 + (by_itself ? m->clock_error : 0);
		slack += money_for(m->price, off);
		/* the time until a vendor has noticed the end */
		int64_t heard = 4 * (int64_t)s->plan->vendors[m->vendor].latency_ms + 2000 +
				(s->hit[F_CALL_SLOW] ? CALL_TAKES_MS : 0);
		slack_later += money_for(
			m->price, off + heard + (cloud_may_wait(s, m) ? RELEASED_WITHIN_MS : 0));
	}
	if (cap && sum > cap + slack)
		broke(s, "the cloud's bill is %lld, the cap %lld", (long long)sum, (long long)cap);
	if (cap && real > cap + slack)
		broke(s, "the cloud's bill at its own prices is %lld, the cap %lld",
		      (long long)real, (long long)cap);
	if (cap)
		check_later_cap(s, cl, sum, slack_later);
}

/* Its own switch guarantees this from the moment its container runs; before that only a client can
 * end it. */
static void check_life(struct sim *s, const struct machine *m)
{
	const struct client *cl = &s->clients[m->client];
	int64_t lease = m->lease_shown ? m->renewed_at + m->lease_ms : m->first_lease;
	int64_t late = m->ended - 1000 - POD_SELF_END_MS;

	if (!m->is_over || m->ended <= m->runs_at || m->never_runs || m->failed || m->stopped)
		return;
	if (late > MAX(m->hard_end, m->runs_at))
		broke(s, "pod %s outlived its hard end", m->id);
	else if (late > MAX(MIN(lease, m->hard_end), m->runs_at))
		broke(s, "pod %s outlived its lease", m->id);
	else if (cl->dead_forever && !m->was_detached &&
		 m->renewed_at > cl->died_at + s->plan->rtt_ms)
		broke(s, "the lease of pod %s was renewed after its client had died", m->id);
}

/* Its vendor never ends it, but its connected client is still there: the agent must be asked to end
 * it. */
static void check_finished(struct sim *s, const struct machine *m)
{
	const struct vendor_plan *v = &s->plan->vendors[m->vendor];
	int64_t end = m->is_over ? m->ended : s->now, took = end - m->release_requested;
	bool there = !m->alone && m->alone_until < 0 && m->requested_at >= 0 &&
		     s->clients[m->client].laptop->woke_at < 0;
	bool able = m->stood && m->running_then && !m->bad_switch && !m->bad_key &&
		    !m->unreachable && m->cut_until < m->release_requested;
	int64_t most =
		FINISHED_MS + 8 * v->latency_ms + POD_SELF_END_MS + (v->wire ? CALL_TAKES_MS : 0);

	if (m->release_requested >= 0 && m->release_fails > 1000 && there && able &&
	    !cloud_may_wait(s, m) && took > most)
		broke(s, "pod %s bills for %lld ms, and its agent is not told to end it", m->id,
		      (long long)took);
}

/* No plan includes the second pod of a create. A client that is there lists pods until such a pod
 * must have surfaced, and releases it. */
static void check_twin(struct sim *s, const struct machine *m)
{
	int64_t end = m->is_over ? m->ended : s->now;
	bool shown = s->unlisted_at[m->vendor] + RELEASED_WITHIN_MS < m->created;
	bool seen = !m->alone && m->alone_until < 0 && shown && !cloud_may_wait(s, m);

	if (m->known_at >= 0) /* its twin may be gone, and it works in its place */
		end = MIN(end, m->known_at);
	/* a window that allows few calls must leave room for this list as well */
	int64_t window = s->plan->vendors[m->vendor].wire ? 60000 : 0;
	if (is_spare(s, m) && seen &&
	    end > m->visible + 32000 + window + 6 * s->plan->vendors[m->vendor].latency_ms)
		broke(s, "pod %s, the second of one create, bills for %lld ms and nobody knows it",
		      m->id, (long long)(end - m->visible));
}

void cloud_check(struct sim *s)
{
	for (size_t i = 0; i < s->machine_count; i++) {
		const struct machine *m = &s->machines[i];
		if (!m->is_over && !immortal(s, m))
			broke(s, "pod %s lives for ever", m->id);
		check_life(s, m);
		check_twin(s, m);
		check_finished(s, m);
	}
	for (int i = 0; i < s->plan->client_count; i++)
		check_money(s, &s->clients[i]);
}
