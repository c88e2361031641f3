/* limits.h - the times, counts and shares by which the core decides. Private to core/. */
#ifndef BURST_CORE_LIMITS_H
#define BURST_CORE_LIMITS_H

enum {
	CONNECT_RETRY_MIN_MS = 50,
	CONNECT_RETRY_MAX_MS = 2000,
	/* where it listens is known, so its sshd is about to: it bills */
	CONNECT_RETRY_SOON_MS = 250,
	CONNECT_RETRIES_SOON = 120, /* after this many retries its sshd may well be stuck */
	/* how long a pod that was taken over has to answer once it can be reached */
	LOG_WITHIN_MS = 20 * 1000,
	/* a pod the vendor calls running, that we cannot reach again */
	UNREACHABLE_LIMIT_MS = 90 * 1000,
	/* between the two clean listings that close an ambiguous attempt */
	AMBIGUOUS_GAP_MS = 60 * 1000,
	/* how long the work waits for it where its vendor cannot be asked */
	UNOBSERVABLE_MS = 2 * 60 * 1000,
	/* it keeps a run that could end from ending for at most this long: exit 9 */
	AMBIGUOUS_LIMIT_MS = 5 * 60 * 1000,
	/* replaces AMBIGUOUS_GAP_MS where the vendor's list is the truth: covers a create still
	 * under way */
	AMBIGUOUS_SHORT_MS = 5 * 1000,
	/* from the create until a pod that lists omit is asked for by its id */
	UNLISTED_MS = 5 * 1000,
	/* a create without an answer for so long: a list may show its pod, which bills */
	HUNG_CREATE_MS = 12 * 1000,
	/* from the create until a vendor's list shows the pod, at the latest */
	SURFACE_LIMIT_MS = 60 * 1000,
	/* until then a second pod of a lost create bills unseen: look for it this often */
	TWIN_LIST_MS = 15 * 1000,
	/* from connected to ready: the agent's own limits are shorter */
	PREPARE_LIMIT_MS = 60 * 60 * 1000,
	/* all is safe: for agents to say that their batches are over */
	SETTLED_MS = 10 * 1000,
	FETCH_GRACE_MS = 30 * 1000, /* after the first signal */
	RELEASE_RETRY_MIN_MS = 1000,
	RELEASE_RETRY_MAX_MS = 15 * 1000,
	/* a release that its provider puts off for longer: the pod is told to end itself */
	FINISH_AFTER_MS = 5 * 1000,
	/* after this many rate-limited releases the pod is told, however short their delays */
	LIMITED_RELEASES_MAX = 3,
	/* the longest that a vendor can delay the next release call */
	RELEASE_AFTER_MOST_MS = 60 * 1000,
	/* a vendor cannot put off the search for its pods for longer */
	LIST_AFTER_MOST_MS = 60 * 1000,
	CONFIRM_LIMIT_MS = 5 * 60 * 1000, /* after that it is reported, exit 9 */
	/* wait after a rate-limited create that names no time; doubled each time */
	RATE_LIMITED_MS = 1000,
	RATE_LIMITED_MOST_MS = 30 * 1000,
	/* in a row; then the offer rests as if it were sold out: the limit may be on its GPU alone
	 */
	RATE_REFUSALS = 2,
	/* in its vendor's queue, where another offer could be tried; a quarter of `wait` at most */
	QUEUE_PATIENCE_MS = 60 * 1000,
	QUEUE_PATIENCE_MIN_MS = 5 * 1000,
	QUEUE_TICK_MS = 1000, /* a queued pod is looked at again no sooner */
	RENTS_AT_ONCE = 16,   /* creates under way at one vendor */
	/* in a row; then nothing more is rented of that vendor */
	UNMADE_MOST = 2,
	NO_SWITCH_MOST = 2, /* likewise */
	/* in a row; then a vendor's spot offers rest, where it has others that fit */
	SPOT_REFUSALS = 2,
	SPOT_REST_MS = 10 * 60 * 1000,
	OFFER_REST_MS = 60 * 1000, /* a sold-out offer is not asked again before this */
	/* rest of an offer after a bad host; then, for AVOID_MS, it is used only if no other is
	 * available */
	BAD_HOST_REST_MS = 60 * 1000,
	AVOID_MS = 30 * 60 * 1000,     /* longer for those that do it again: engine/past.c */
	BOOT_FACTOR = 3,               /* a pod may take this many times the median boot */
	BOOT_LIMIT_MIN_MS = 60 * 1000, /* a pod may take at least this long to boot */
	/* with less time than this to come up, its provider's log is not waited for */
	LOG_WORTH_MS = 30 * 1000,
	/* most pods are up by then: whose image cannot be pulled is given up */
	LOG_EARLY_MS = 45 * 1000,
	/* for that log, which takes some seconds by its nature */
	LOG_WAIT_MS = 20 * 1000,
	OFFERS_RETRY_MS = 10 * 1000,
	/* a vendor silent for this long is skipped while another is available */
	QUERY_OVERDUE_MS = 30 * 1000,
	/* after a sleep a pod that is coming up is looked at for so long at least */
	WOKEN_BOOT_MS = 30 * 1000,
	LIST_FAILURES_MAX = 5,          /* in a row: no listing will succeed before the exit */
	UNPROVABLE_LIST_MS = 60 * 1000, /* at pods that may be another account's */
	/* a listing under way for longer is not waited for: its limits may leave no room for an
	 * hour */
	FINAL_LIST_MS = 30 * 1000,
	LOSSES_MAX = 4, /* pods a segment may be lost with */
	/* of one file, where the transfer broke and the pod did not */
	FETCH_TRIES_MAX = 5,
	/* a pod whose last files take longer than this is let go before they are home */
	SYNC_AGAIN_MS = 2 * 1000,
	/* without one file that comes from the volume of a pod that was let go so */
	RESCUE_LIMIT_MS = 10 * 60 * 1000,
	REFETCH_MIN_MS = 500,
	REFETCH_MAX_MS = 15 * 1000,
	/* segments in a row with such files: then it is the pod */
	BAD_FILES_MAX = 3,
	/* renders of a segment whose file does not arrive as announced */
	FILE_TRIES_MAX = 3,
	/* after its hard end, whatever clock it goes by: then it has ended itself */
	PAST_HARD_END_MS = 5 * 60 * 1000,
	/* before its hard end no pod was made: none is given more than a day */
	OLDEST_S = 25 * 3600,
	CLOCK_NOISE_MS = 2000, /* two clocks that agree, each read by whole seconds */
	/* from its hard end until a pod that ends itself bills no more, though its vendor refuses
	   once */
	SELF_END_MS = 10 * 1000,
	/* a tenth of boot_limit, within these: a pod's first lease ends so long after its client
	   gives it up */
	BOOT_GRACE_MIN_MS = 3 * 1000,
	BOOT_GRACE_MAX_MS = 30 * 1000,
	/* a pod whose container starts late may take so long to be reached */
	LATE_START_MS = 2 * 60 * 1000,
	USEFUL_MIN_MS = 10 * 1000, /* a pod that could not live this long is not rented */
	/* what a pod takes to come up where neither this run nor the ledger has seen one */
	COLD_GUESS_MS = 60 * 1000,
	/* a worker's first batch took up to seven times as long as later ones of its size */
	FIRST_BATCH_SLOWER = 8,
	CONTINUOUS_BATCHES = 4, /* batches that a worker's places are filled with */
	SLOW_CANARY_FACTOR = 20,
	SLOW_CANARY_MIN_MS = 60 * 1000,
	/* a run, or the client that keeps the pod, takes it within this or not at all */
	OFFER_MS = 15 * 1000,
	KEEP_WARM_LEAST_MS = 1000, /* it would be over before another run could begin */
	KEEP_WARM_MOST_MS = 24 * 3600 * 1000,
	/* how long the answer holds that no run offers a pod; a run that waits asks this often */
	SEEK_MS = 250,
};

#endif
