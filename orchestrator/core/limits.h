/* limits.h - the times, counts and shares by which the core decides. Private to core/. */
#ifndef BURST_CORE_LIMITS_H
#define BURST_CORE_LIMITS_H

enum {
	CONNECT_RETRY_MIN_MS = 50,
	CONNECT_RETRY_MAX_MS = 2000,
	/* its address is known, so its sshd is about to listen, and the pod bills */
	CONNECT_RETRY_SOON_MS = 250,
	CONNECT_RETRIES_SOON = 120, /* after this many retries its sshd is probably stuck */
	/* an adopted pod must answer within this once it can be reached */
	LOG_WITHIN_MS = 20 * 1000,
	/* a pod that its provider reports as running and that cannot be reached again */
	UNREACHABLE_LIMIT_MS = 90 * 1000,
	/* least gap between the two clean listings that close an ambiguous attempt */
	AMBIGUOUS_GAP_MS = 60 * 1000,
	/* how long work waits for an ambiguous pod whose provider cannot be listed */
	UNOBSERVABLE_MS = 2 * 60 * 1000,
	/* an ambiguous attempt delays the end of a run by at most this, then exit 9 */
	AMBIGUOUS_LIMIT_MS = 5 * 60 * 1000,
	/* replaces AMBIGUOUS_GAP_MS where lists do not lag: covers a create still under way */
	AMBIGUOUS_SHORT_MS = 5 * 1000,
	/* from the create until a pod that lists omit is inspected by its id */
	UNLISTED_MS = 5 * 1000,
	/* a create without a reply for this long: a list may show its pod, which bills */
	HUNG_CREATE_MS = 12 * 1000,
	/* from the create until its provider's list shows the pod, at the latest */
	SURFACE_LIMIT_MS = 60 * 1000,
	/* the second pod of a lost create may bill unseen: list this often */
	TWIN_LIST_MS = 15 * 1000,
	/* from connected to ready: the agent's own limits are shorter */
	PREPARE_LIMIT_MS = 60 * 60 * 1000,
	/* all segments are settled: agents have this long to report their batches as over */
	SETTLED_MS = 10 * 1000,
	FETCH_GRACE_MS = 30 * 1000, /* after the first signal */
	HALT_GRACE_MS = 5 * 1000,   /* for a command that is asked to end */
	LAST_SECONDS_MS = 6 * 1000, /* from a pod's end as its provider sees it, to its real one */
	RELEASE_RETRY_MIN_MS = 1000,
	RELEASE_RETRY_MAX_MS = 15 * 1000,
	/* a release delayed by its provider for longer: the agent must end the pod */
	FINISH_AFTER_MS = 5 * 1000,
	/* after this many rate-limited releases the agent must end the pod */
	LIMITED_RELEASES_MAX = 3,
	/* the longest time that a provider can delay the next release call */
	RELEASE_AFTER_MOST_MS = 60 * 1000,
	/* the longest time that a provider can delay the next listing */
	LIST_AFTER_MOST_MS = 60 * 1000,
	/* a pod that still runs so long after its accepted release is worth a message */
	OUTLIVED_SAID_MS = 5 * 1000,
	STILL_THERE_MS = 20 * 1000, /* a pod listed this long after its release is released again */
	CONFIRM_LIMIT_MS = 5 * 60 * 1000, /* then it is reported as unreleased, exit 9 */
	/* wait after a rate-limited create that names no time; doubled each time */
	RATE_LIMITED_MS = 1000,
	RATE_LIMITED_MOST_MS = 30 * 1000,
	/* in a row; then the offer counts as sold out: the limit may be on its GPU alone */
	RATE_REFUSALS = 2,
	/* in its provider's queue while another offer could be tried; at most a quarter of `wait`
	 */
	QUEUE_PATIENCE_MS = 60 * 1000,
	QUEUE_PATIENCE_MIN_MS = 5 * 1000,
	QUEUE_TICK_MS = 1000, /* shortest time between two checks of a queued pod */
	FREE_WAIT_MOST_MS = 7 * 24 * 3600 * 1000, /* in a queue where waiting is free */
	/* a lost create where a name works once: pause before it is sent again, doubled each time,
	   and how often */
	RESEND_MS = 1000,
	RESENDS_MOST = 5,
	RENTS_AT_ONCE = 16, /* creates under way at one provider */
	/* in a row; then nothing more is rented from that provider */
	UNMADE_MOST = 2,
	UNLIKE_MAX = 2,            /* pods in a row with another host key, or that refuse ours */
	NO_SWITCH_MOST = 2,        /* likewise */
	OFFER_REST_MS = 60 * 1000, /* a sold-out offer is not tried again before this */
	/* rest of an offer after a bad host; then, for AVOID_MS, it is used only if no other is
	 * available */
	BAD_HOST_REST_MS = 60 * 1000,
	AVOID_MS = 30 * 60 * 1000,     /* longer for repeat offenders: engine/past.c */
	BOOT_FACTOR = 3,               /* a pod may take this many times the median boot */
	BOOT_LIMIT_MIN_MS = 60 * 1000, /* a pod may take at least this long to boot */
	/* a pod with less time than this to boot is not worth a read of its provider's log */
	LOG_WORTH_MS = 30 * 1000,
	/* most pods run by then; a pod whose image cannot be pulled is released */
	LOG_EARLY_MS = 45 * 1000,
	/* providers take some seconds to return that log */
	LOG_WAIT_MS = 20 * 1000,
	OFFERS_RETRY_MS = 10 * 1000,
	/* a provider silent for this long is skipped while another is available */
	QUERY_OVERDUE_MS = 30 * 1000,
	/* a booting pod gets at least this long after a sleep */
	WOKEN_BOOT_MS = 30 * 1000,
	LIST_FAILURES_MAX = 5, /* in a row: no listing will succeed before the exit */
	UNPROVABLE_LIST_MS =
		60 * 1000, /* between listings for pods that may belong to another account */
	/* the exit does not wait longer for a listing: rate limits may block it for an hour */
	FINAL_LIST_MS = 30 * 1000,
	/* unless the listing may show a pod that burst does not know: then several windows of a
	 * rate limit, and after that exit 9 */
	HIDDEN_POD_LIST_MS = 5 * 60 * 1000,
	LOSSES_MAX = 4, /* pods that a segment may be lost with */
	/* transfers of one file that broke while the pod stayed */
	FETCH_TRIES_MAX = 5,
	/* between two requests for durability */
	SYNC_AGAIN_MS = 2 * 1000,
	/* without a file from the volume of a released pod, before its files count as lost */
	RESCUE_LIMIT_MS = 10 * 60 * 1000,
	REFETCH_MIN_MS = 500,
	REFETCH_MAX_MS = 15 * 1000,
	/* segments in a row with bad files: then the pod is at fault */
	BAD_FILES_MAX = 3,
	/* renders of a segment whose file never arrives as announced */
	FILE_TRIES_MAX = 3,
	/* after its hard end: then it has ended itself, whatever its clock */
	PAST_HARD_END_MS = 5 * 60 * 1000,
	/* longest possible life before a hard end, which is at most a day away */
	OLDEST_S = 25 * 3600,
	CLOCK_NOISE_MS = 2000, /* difference of two clocks that agree, each in whole seconds */
	/* from its hard end until a pod that ends itself stops billing, even if its provider
	 * refuses once */
	SELF_END_MS = 10 * 1000,
	/* a tenth of boot_limit, within these limits: the first lease ends this long after the
	 * client's boot limit */
	BOOT_GRACE_MIN_MS = 3 * 1000,
	BOOT_GRACE_MAX_MS = 30 * 1000,
	/* a pod whose container starts late must be reached within this */
	LATE_START_MS = 2 * 60 * 1000,
	MARGIN_MOST_MS =
		20 * 1000,         /* longest time before a hard end that is kept for the release */
	USEFUL_MIN_MS = 10 * 1000, /* a pod that could not live this long is not rented */
	/* boot time if neither this run nor the ledger has one */
	COLD_GUESS_MS = 60 * 1000,
	/* a worker's first batch took up to seven times as long as later ones of its size */
	FIRST_BATCH_SLOWER = 8,
	CONTINUOUS_BATCHES = 4, /* batches that fill a worker's places */
	SLOW_CANARY_FACTOR = 20,
	SLOW_CANARY_MIN_MS = 60 * 1000,
	/* a run, or the client that keeps the pod, must take it within this */
	OFFER_MS = 15 * 1000,
	KEEP_WARM_LEAST_MS =
		1000, /* a shorter offer would be over before another run could begin */
	KEEP_WARM_MOST_MS = 24 * 3600 * 1000,
	/* how long a search without a pod on offer holds; a waiting run searches this often */
	SEEK_MS = 250,
};

#endif
