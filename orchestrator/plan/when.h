/* when.h - decides when the requests that wait for one job's render start it. Pure.
 *
 * One run satisfies all requests that wait when it begins, so the first that may start takes the
 * others along. Times are wall clock ms. */
#ifndef BURST_PLAN_WHEN_H
#define BURST_PLAN_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct when_request {
	int64_t created_ms; /* one in the future counts as now */
	/* of the newest request: no start until no other has come for so long */
	int64_t quiet_ms;
	int64_t max_wait_ms;      /* start after so long whatever else it waits for; 0: no limit */
	int64_t by_ms;            /* when all should be done; 0: no such time */
	int64_t below_microusd_h; /* start below this price; 0: at any */
	int64_t min_segments;     /* start with so many segments to render; 0: with any number */
	bool fills_pod;           /* start when the work is worth a cold start */
	int64_t not_before_ms;    /* a start failed, and this is when to try again; 0: none did */
};

/* The planner's estimate for a run that starts now. */
struct when_work {
	int64_t segments;         /* seconds to render; -1: unknown */
	int64_t makespan_ms;      /* the estimate holds in nine of ten cases; -1: unknown */
	int64_t price_microusd_h; /* of the pod that it would rent; -1: unknown */
	int64_t work_ms, cold_ms; /* of all pods, cold starts included; -1: unknown */
	/* By the joint plan (joint.h), for requests that may wait: when the job takes over the pods
	 * of another one, and the latest start that makes no job of its group later; 0: none. */
	int64_t pod_until_ms, group_by_ms;
	int64_t by_ms; /* when the job itself should be done, as --by; 0: no such time */
};

enum when_why {
	WHEN_READY,    /* start: nothing is left to wait for */
	WHEN_WAITED,   /* start: --max-wait is over */
	WHEN_BY,       /* start: --by is near */
	WHEN_EMPTY,    /* wait: there is no request */
	WHEN_QUIET,    /* wait: another request may follow the newest one */
	WHEN_RETRY,    /* wait: the last start failed */
	WHEN_PRICE,    /* wait: the price is too high */
	WHEN_NO_PRICE, /* wait: no price is known yet */
	WHEN_SEGMENTS, /* wait: more segments may come */
	WHEN_WORK,     /* wait: the work so far is not worth a cold start */
	WHEN_POD,      /* wait: another job's pods will be free */
};

struct when_answer {
	bool start;
	int64_t until_ms; /* when to decide again; a request that arrives or is removed comes first
			   */
	enum when_why why;
};

enum {
	/* requests in close order put a start off no longer than this */
	WHEN_QUIET_MOST_MS = 30 * 60 * 1000,
	/* at prices, and at files that changed without a request */
	WHEN_LOOK_AGAIN_MS = 60 * 1000,
	WHEN_UNKNOWN_MS = 30 * 60 * 1000, /* assumed duration of a run without a plan */
};

/* The least work for which a cold start of so many ms pays: with it, 70 % of the time is rendering
 * (W >= 7/3 C). */
int64_t when_least_work_ms(int64_t cold_ms);
/* Whether the answer depends on the planner's estimate. If not, `work` may be unknown throughout.
 * */
bool when_needs_work(const struct when_request *requests, size_t count);
struct when_answer when_start(const struct when_request *requests, size_t count,
			      const struct when_work *work, int64_t now_ms);
/* "price", ... for --json; static. */
const char *when_name(enum when_why why);

#endif
