/* proof.c - what proves that a pod is gone or never existed: listings without it. */
#include "impl.h"

#include "base/clock.h"

/* A list that lags shows a new pod late. Until it has shown the pod once, or has had enough time
 * since the create, its absence proves nothing. A list that does not lag needs no such time. */
static int64_t surfaced_by(const struct core *c, const struct core_pod *p)
{
	/* if lists omit it, its provider's reply about its id decides */
	if (p->rental.listing != LISTING_NEVER ||
	    !c->conf.providers[p->rental.provider].list_gap_ms)
		return INT64_MIN;
	return MAX(p->rental.create_at, p->rental.rented_at) + SURFACE_LIMIT_MS;
}

/* A provider that denies a pod has not ended it, and its list may miss that pod for as long. So a
 * denial needs the gap that closes an ambiguous create. The second denial comes after that gap and
 * needs none. */
int64_t proof_at(const struct core *c, const struct core_pod *p)
{
	int64_t list_gap_ms = c->conf.providers[p->rental.provider].list_gap_ms;
	int64_t gap_ms =
		list_gap_ms && p->rental.answer == ANSWER_DENIED ? AMBIGUOUS_GAP_MS : list_gap_ms;

	return MAX(p->rental.clean_at + gap_ms, surfaced_by(c, p));
}

/* This key may have no right to see the pod, so absence proves nothing. After its hard end it has
 * ended itself. */
static bool key_may_hide_pod(struct core *c, struct core_pod *p)
{
	if (p->rental.key == KEY_OURS || c->wall >= p->rental.hard_end_s * 1000 + PAST_HARD_END_MS)
		return false;
	if (p->rental.key == KEY_REPORTED)
		return true;
	p->rental.key = KEY_REPORTED;
	core_note(c, NOTE_WARN,
		  "pod %s of %s was rented with another key, and the current one cannot see it: "
		  "it may still be billing; `burst reap` with that key releases it",
		  core_pod_called(p), p->rental.offer.provider);
	return true;
}

/* A provider may deny a pod that bills, and lists may miss it twice. Release it once more before
 * trusting them. */
static bool releases_again(struct core *c, struct core_pod *p)
{
	if (p->rental.answer != ANSWER_DENIED || !c->conf.providers[p->rental.provider].list_gap_ms)
		return false;
	p->rental.answer = ANSWER_DENIED_REPEAT;
	leave_release_again(c, p);
	return true;
}

void proof_refuted(struct core_pod *p)
{
	p->rental.released_at = 0;
	if (p->rental.answer == ANSWER_DENIED_REPEAT)
		p->rental.answer = ANSWER_DENIED;
}

/* "12:00:01 UTC" */
static char *time_show(const struct core *c, char to[24], int64_t at)
{
	char text[32];

	clock_rfc3339(text, sizeof(text), c->wall + at - c->now);
	snprintf(to, 24, "%.8s UTC", text + 11);
	return to;
}

/* Lists lag, and a pod needs a moment to end: that is no news. */
static bool outlived_long(const struct core_pod *p, int64_t at)
{
	return p->rental.accepted_at && at - p->rental.accepted_at >= OUTLIVED_SAID_MS;
}

/* A list shows it although its release was accepted: while it runs, it counts as billed. */
static void outlives(struct core *c, struct core_pod *p, enum pod_state state, int64_t requested_at)
{
	bool runs = state == POD_STATE_RUNNING || state == POD_STATE_CREATING ||
		    state == POD_STATE_UNKNOWN;
	int64_t before = MAX(p->rental.outlived_at, p->rental.released_at);
	char accepted[24], at[24];

	if (!runs || p->rental.answer != ANSWER_ACCEPTED)
		return;
	p->rental.outlived_at = MAX(requested_at, p->rental.outlived_at);
	if (before == p->rental.released_at)
		pod_save(c, p);
	if (outlived_long(p, requested_at) &&
	    (!outlived_long(p, before) || before == p->rental.released_at))
		core_note(c, NOTE_WARN,
			  "pod %s: released at %s, still running at %s: it may still bill, and "
			  "counts until it is gone",
			  core_pod_called(p), time_show(c, accepted, p->rental.accepted_at),
			  time_show(c, at, requested_at));
}

/* The first list without a pod that outlived its release: it had ended by then. */
void proof_outlived_until(struct core *c, struct core_pod *p, int64_t requested_at)
{
	char accepted[24], seen[24], gone[24];

	if (!pod_outlives_release(p) || pod_is_omitted(p))
		return;
	if (outlived_long(p, p->rental.outlived_at))
		core_note(c, NOTE_NOTE,
			  "pod %s: released at %s, last seen running at %s, no longer listed at "
			  "%s: it counts as billed until then",
			  core_pod_called(p), time_show(c, accepted, p->rental.accepted_at),
			  time_show(c, seen, p->rental.outlived_at),
			  time_show(c, gone, requested_at));
	p->rental.released_at = MAX(requested_at, p->rental.released_at);
	pod_save(c, p);
}

void proof_confirm(struct core *c, struct core_pod *p, enum pod_state state, int64_t requested_at)
{
	if (requested_at < p->rental.released_at)
		return;
	if (state != POD_STATE_GONE) {
		p->rental.clean_lists = 0;
		outlives(c, p, state, requested_at);
		if (pod_is_denied(p) || (c->now - p->rental.released_at > 20000 &&
					 c->now - p->rental.release_at > 20000)) {
			/* It is still there: release it again; until then it bills. */
			p->rental.release_at = c->now;
			proof_refuted(p);
			leave_release_again(c, p);
		}
		return;
	}
	proof_outlived_until(c, p, requested_at);
	if (p->rental.clean_lists++ == 0)
		p->rental.clean_at = requested_at;
	if (p->rental.answer == ANSWER_DENIED && p->presence.link == LINK_CUT &&
	    p->rental.clean_lists <= 2)
		p->rental.released_at =
			requested_at; /* denied while its agent answered: it was there,
				     and the agent needs a moment to end it */
	c->dirty = true;
	if (requested_at < proof_at(c, p) || releases_again(c, p) || key_may_hide_pod(c, p))
		return;
	if (pod_is_omitted(p))
		core_act(c, ACT_INSPECT, pod_index(c, p)); /* lists prove nothing about it */
	else
		pod_set_gone(c, p);
}

/* Its release is refused. Only lists can show that it ended itself or was ended elsewhere. */
void proof_refused(struct core *c, struct core_pod *p, bool there, int64_t requested_at)
{
	bool lags = c->conf.providers[p->rental.provider].list_gap_ms > 0;

	if (!p->rental.tries || requested_at < p->rental.release_at)
		return;
	p->rental.clean_lists = there ? 0 : p->rental.clean_lists + 1;
	if (p->rental.clean_lists == 1)
		p->rental.clean_at = requested_at;
	c->dirty = true;
	if (p->rental.clean_lists < (lags ? 3 : 1) || key_may_hide_pod(c, p))
		return;
	if (requested_at <
	    MAX(p->rental.clean_at + (lags ? AMBIGUOUS_GAP_MS : 0), surfaced_by(c, p)))
		return;
	p->rental.released_at = MAX(p->rental.clean_at, p->rental.create_at);
	pod_set_gone(c, p);
}

void proof_ambiguous(struct core *c, struct core_pod *p, int64_t requested_at)
{
	int64_t list_gap_ms = c->conf.providers[p->rental.provider].list_gap_ms;
	int64_t gap_ms = list_gap_ms ? AMBIGUOUS_GAP_MS : AMBIGUOUS_SHORT_MS;
	struct err err;

	if (requested_at < p->rental.rented_at)
		return;
	/* The first list may predate the pod's appearance, and any list may miss a pod once. So two
	 * of the late lists must be clean as well. */
	if (p->rental.clean_lists++ == 0) {
		p->rental.clean_at = requested_at;
	} else if (requested_at - p->rental.clean_at >= gap_ms && !p->rental.late_clean_at &&
		   list_gap_ms) {
		p->rental.late_clean_at = requested_at;
	} else if (requested_at - p->rental.clean_at >= gap_ms &&
		   requested_at - p->rental.late_clean_at >= list_gap_ms &&
		   !key_may_hide_pod(c, p)) {
		err_set(&err, ERR_TRANSIENT, "%s", p->reason);
		resting_after_trouble(c, p, 0);
		/* It may have lived between two lists, or before it would have been listed:
		 * max_cost counts that as spent. */
		p->rental.released_at = budget_billed_until(p, requested_at);
		pod_never_existed(c, p, &err);
		c->spent_microusd += core_may_have_cost(p);
	}
}
