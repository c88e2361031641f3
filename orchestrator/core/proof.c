/* proof.c - what proves that a pod is gone or never existed: listings without it. */
#include "impl.h"

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

void proof_confirm(struct core *c, struct core_pod *p, bool there, int64_t requested_at)
{
	if (requested_at < p->rental.released_at)
		return;
	if (there) {
		p->rental.clean_lists = 0;
		if (pod_is_denied(p) || (c->now - p->rental.released_at > 20000 &&
					 c->now - p->rental.release_at > 20000)) {
			/* It is still there: release it again; until then it bills. */
			p->rental.release_at = c->now;
			proof_refuted(p);
			leave_release_again(c, p);
		}
		return;
	}
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
