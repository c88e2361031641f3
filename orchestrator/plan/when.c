/* when.c - decides when queued requests of one job start a run. */
#include "when.h"

#include "base/mem.h"

/* A start so late that --by, or the job's deadline, is just kept: beside the planned time a tenth
 * of it, and a minute. */
#define LEAD_MARGIN_MS 60000

const char *when_name(enum when_why why)
{
	switch (why) {
	case WHEN_READY: return "ready";
	case WHEN_WAITED: return "waited";
	case WHEN_BY: return "deadline";
	case WHEN_EMPTY: return "empty";
	case WHEN_QUIET: return "quiet";
	case WHEN_RETRY: return "retry";
	case WHEN_PRICE: return "price";
	case WHEN_NO_PRICE: return "no_price";
	case WHEN_SEGMENTS: return "segments";
	case WHEN_WORK: return "work";
	case WHEN_POD: return "pod";
	}
	return "unknown";
}

int64_t when_least_work_ms(int64_t cold_ms)
{
	return (MAX(cold_ms, 0) * 7 + 2) / 3;
}

bool when_needs_work(const struct when_request *requests, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (requests[i].below_microusd_h || requests[i].min_segments > 1 ||
		    requests[i].fills_pod)
			return true;
	return false;
}

/* When the request came; a time in the future counts as now. */
static int64_t created_at_ms(const struct when_request *r, int64_t now_ms)
{
	return MIN(r->created_ms, now_ms);
}

/* How long before --by a start is still in time. */
static int64_t lead_ms(const struct when_work *work)
{
	int64_t makespan_ms = work->makespan_ms >= 0 ? work->makespan_ms : WHEN_UNKNOWN_MS;

	return makespan_ms + makespan_ms / 10 + LEAD_MARGIN_MS;
}

/* When it starts if nothing else happens; INT64_MAX: never. */
static int64_t latest_ms(const struct when_request *r, const struct when_work *work, int64_t now_ms,
			 enum when_why *why)
{
	int64_t waited_ms = r->max_wait_ms ? created_at_ms(r, now_ms) + r->max_wait_ms : INT64_MAX;
	int64_t by_ms = MIN(r->by_ms ? r->by_ms : INT64_MAX, work->by_ms ? work->by_ms : INT64_MAX),
		late_ms = by_ms < INT64_MAX ? by_ms - lead_ms(work) : INT64_MAX;

	if (r->fills_pod && work->group_by_ms)
		late_ms = MIN(late_ms, work->group_by_ms);
	*why = late_ms < waited_ms ? WHEN_BY : WHEN_WAITED;
	return MIN(waited_ms, late_ms);
}

/* What this request waits for beside quiet; WHEN_READY: nothing. Where all is rendered there is
 * nothing to pay for. */
static enum when_why waits_for(const struct when_request *r, const struct when_work *work,
			       int64_t now_ms)
{
	if (work->segments == 0)
		return WHEN_READY;
	if (r->below_microusd_h && work->price_microusd_h < 0)
		return WHEN_NO_PRICE;
	if (r->below_microusd_h && work->price_microusd_h >= r->below_microusd_h)
		return WHEN_PRICE;
	if (r->min_segments > 1 && work->segments < r->min_segments)
		return WHEN_SEGMENTS;
	if (r->fills_pod && work->pod_until_ms > now_ms)
		return WHEN_POD;
	if (r->fills_pod && work->work_ms >= 0 && work->work_ms < when_least_work_ms(work->cold_ms))
		return WHEN_WORK;
	return WHEN_READY;
}

struct round {
	const struct when_request *newest; /* of those that may start; NULL: there is none */
	int64_t oldest_ms, now_ms;
	/* of the newest that waits for more than quiet; WHEN_READY: none does */
	enum when_why waits;
	bool ready; /* one of them waits for nothing but quiet */
	struct when_answer answer;
};

/* The answer holds no longer than until at_ms. */
static void decide_again_at(struct round *r, int64_t at_ms)
{
	if (at_ms > r->now_ms)
		r->answer.until_ms = MIN(r->answer.until_ms, at_ms);
}

/* Takes in one request that may start: its forced start, and what it waits for. */
static void add_request(struct round *round, const struct when_request *r,
			const struct when_work *work)
{
	enum when_why forced;
	int64_t latest = latest_ms(r, work, round->now_ms, &forced);

	if (latest <= round->now_ms) {
		round->answer.start = true;
		round->answer.why = forced;
	}
	decide_again_at(round, latest);
	if (!round->newest ||
	    created_at_ms(r, round->now_ms) >= created_at_ms(round->newest, round->now_ms))
		round->newest = r;
	round->oldest_ms = MIN(round->oldest_ms, created_at_ms(r, round->now_ms));
	enum when_why waits = waits_for(r, work, round->now_ms);
	if (waits == WHEN_POD)
		decide_again_at(round, work->pod_until_ms);
	if (waits == WHEN_READY)
		round->ready = true;
	else
		round->waits = waits;
}

/* Whether no request is expected at once. If one is, the answer holds until then. */
static bool is_quiet_over(struct round *r)
{
	int64_t end_ms = MIN(created_at_ms(r->newest, r->now_ms) + r->newest->quiet_ms,
			     r->oldest_ms + WHEN_QUIET_MOST_MS);

	decide_again_at(r, end_ms);
	return end_ms <= r->now_ms;
}

/* Where no time forces a start and no request is expected at once. Rules about price, work and
 * waiting belong here. */
static void decide_when_quiet(struct round *r)
{
	r->answer.start = r->ready;
	r->answer.why = r->ready ? WHEN_READY : r->waits;
	if (!r->ready)
		decide_again_at(r, r->now_ms + WHEN_LOOK_AGAIN_MS);
}

struct when_answer when_start(const struct when_request *requests, size_t count,
			      const struct when_work *work, int64_t now_ms)
{
	struct round r = {.oldest_ms = INT64_MAX,
			  .now_ms = now_ms,
			  .answer = {.until_ms = INT64_MAX, .why = WHEN_EMPTY}};

	for (size_t i = 0; i < count; i++) {
		if (requests[i].not_before_ms > now_ms)
			decide_again_at(&r, requests[i].not_before_ms);
		else
			add_request(&r, &requests[i], work);
	}
	if (!r.newest)
		r.answer.why = count ? WHEN_RETRY : WHEN_EMPTY;
	else if (!r.answer.start && !is_quiet_over(&r))
		r.answer.why = WHEN_QUIET;
	else if (!r.answer.start)
		decide_when_quiet(&r);
	return r.answer;
}
