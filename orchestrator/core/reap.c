/* reap.c - decides what `burst reap` does with a run and with each pod. */
#include "reap.h"

enum reap_what reap_pod(const struct pod_view *view, const struct reap_known *known, bool forced,
			int64_t now_ms)
{
	if (view->state == POD_STATE_GONE)
		return REAP_PASS;
	if (!view->marker.attempt[0]) /* without a marker, its owner and its hard end are unknown */
		return forced ? REAP_FORCED : REAP_LEAVE;
	if (pod_is_overdue(view->marker.hard_end_s, now_ms))
		return REAP_PAST;
	if (forced)
		return REAP_FORCED;
	if (!known->ours || known->alive)
		return REAP_LEAVE;
	if (known->ended)
		return REAP_ENDED;
	/* a run that is not detached is settled as a whole */
	return known->detached && !known->at_work ? REAP_ORPHAN : REAP_LEAVE;
}

bool reap_run(bool detached, int64_t last_hard_end_s, int64_t now_ms)
{
	return !detached || pod_is_overdue(last_hard_end_s, now_ms);
}
