/* plant.h - defects planted to see that each invariant can fail. */
#ifndef BURST_TESTS_SIM_PLANT_H
#define BURST_TESTS_SIM_PLANT_H

#include <stdbool.h>

/* name, and what the invariant says that it breaks */
/* clang-format off */
#define PLANTS(X) \
	X(NONE, "") \
	X(NO_LIMITER, "over the limit of") \
	X(429_UNHEARD, "that a 429 named") \
	X(RELEASE_WAITS, "a release waits for room") \
	X(ALL_OURS, "of another run is taken for its own") \
	X(REAP_LIVE, "is released by another run") \
	X(SWEEP_ALL, "before its hard end") \
	X(SWEEP_TRUSTS, "gone, and it still lives") \
	X(ROW_SHARED, "is written over") \
	X(INTENT_UNSAVED, "without a row of its intent") \
	X(ROW_GONE, "the ledger does not know it") \
	X(HANDOVER_UNSAVED, "before the ledger knows") \
	X(HANDOVER_UNHEARD, "and no pod was given segment") \
	X(SAME_NAMES, "is used twice") \
	X(RELEASE_FAKED, "and a pod still lives") \
	X(RELEASE_REFUSED, "has nothing to do and is kept") \
	X(RELEASE_NAMELESS, "a release without an id") \
	X(DENIAL_TRUSTED, "and a pod still lives") \
	X(FINISH_UNSAID, "is not told to end it") \
	X(SWITCH_DEAD, "lives for ever") \
	X(LEASE_IGNORED, "outlived its lease") \
	X(HARD_END_IGNORED, "outlived its hard end") \
	X(AGENT_HOLDS_LEASE, "after its client had died") \
	X(CAP_FORGOTTEN, "the cloud's bill is") \
	X(CAP_AS_IT_WAS, "its later cap is") \
	X(PRICE_UNSEEN, "at its own prices") \
	X(BEYOND_CAP, "rented beyond the cap") \
	X(DURATION_FORGOTTEN, "may outlive caps.max_duration") \
	X(LONG_LIFE, "more than a day") \
	X(LONG_FIRST_LEASE, "first lease is longer") \
	X(LEASE_BEHIND_BOOT, "longer than boot_limit") \
	X(LEASE_OF_BOOT, "as the client gives the pod up") \
	X(CARD_FORGOTTEN, "cannot run the job is rented again") \
	X(BOOT_PATIENCE, "is not up after") \
	X(PATIENT, "goes on for more than a day") \
	X(WIDER, "wider than pods") \
	X(REPLANS_ON, "times, and twice is the most") \
	X(REPLANS_SOON, "before the last plan has shown") \
	X(GIVES_AND_TAKES, "rents again what it gave back") \
	X(DEADLINE_MOVED, "would keep the deadline") \
	X(DRAINS_EARLY, "before another one has taken its place") \
	X(BOOTS_FREE, "without the work that pays for it") \
	X(WIDTH_WAVERS, "were rented and released while they came up") \
	X(CANARY_SKIPPED, "the canary counts as good") \
	X(CANARY_ALONE, "a second pod before the canary") \
	X(RENT_STOPPING, "a create while stopping") \
	X(BIG_BATCHES, "a batch of") \
	X(KEEP_LOST, "is called safe and is not") \
	X(KEEP_TWICE, "is kept twice") \
	X(DELIVERED_FAILED, "is delivered and called failed") \
	X(FEWER_REPORTED, "are reported") \
	X(DONE_FORGOTTEN, "is safe and is rendered again") \
	X(VOLUME_FORGOTTEN, "safe on a volume") \
	X(FETCH_AGAIN, "is fetched again") \
	X(FILE_UNWRITTEN, "a file that never was") \
	X(SEND_TWICE, "is paid for twice") \
	X(SEND_DROPPED, "starves") \
	X(MISCOUNT, "open segments are counted") \
	X(MISCOUNT_POD, "unfetched segments are counted") \
	X(COMMAND_UNHEARD, "to a pod without a connection") \
	X(FETCH_UNHEARD, "a fetch from a pod without") \
	X(SYNC_UNHEARD, "a sync of a pod without") \
	X(TICKS, "ticks without end") \
	X(LISTED_STORM, "3000 events") \
	X(OFFERS_STORM, "100000 events") \
	X(END_UNHEARD, "waits for nothing") \
	X(LAST_LOOK, "does not end") \
	X(LIST_PATIENT, "is not looked for again") \
	X(EXIT_0, "exit 0, and a segment is missing") \
	X(EXIT_1, "and all went well") \
	X(EXIT_SIGNAL_1, "after a signal") \
	X(EXIT_9, "no pod is in doubt") \
	X(EXIT_9_HIDDEN, "and a pod is in doubt") \
	X(EXIT_5, "nothing was capped") \
	X(EXIT_3, "no credentials were refused") \
	X(EXIT_130, "there was no signal") \
	X(EXIT_WORDLESS, "without a word") \
	X(VOLUME_EARLY, "where nothing can be rented") \
	X(COMPUTE_MORE, "computed") \
	X(COUNT_STOPS, "and counts as billed until") \
	X(UNPAID_ASKED, "whose account cannot pay") \
	X(UNPAID_WAITS, "no account can pay") \
	X(EXIT_4_UNPAID, "and an account cannot pay") \
	X(FILES_UNHEARD, "outputs and") \
	X(SAVES_UNHEARD, "saves of it are on their way") \
	X(HALT_FORGOTTEN, "before its commands have ended") \
	X(SAVE_UNGIVEN, "are safe") \
	X(SAVED_WASTED, "as wasted, and") \
	X(OUTPUT_DROPPED, "is done, and its output") \
	X(WASTED_TWICE, "wasted <= computed") \
	X(BATCH_LOST, "the batch of a segment in hand is not over") \
	X(SPENT_LESS, "what is spent is what the gone pods cost") \
	X(BILL_UNHEARD, "by the larger of both figures") \
	/* of runs that pass pods on */ \
	X(OFFER_STANDS, "is released by another run") \
	X(LIST_FORGOTTEN, "and its pods were not listed since its last create") \
	/* of calls to real translators' servers: caller.c is lied to */ \
	X(CREATE_AGAIN, "carried again") \
	X(TRIES_FOR_EVER, "and never answered") \
	X(RELEASE_LAST, "though nobody told it to") \
	X(RETRY_AFTER_UNHEARD, "that was named for it") \
	X(CREATE_WAITS, "for its turn") \
	X(CLOCK_UNHEARD, "a create by a clock") \
	X(ORPHAN_ALL, "whose agent was given work") \
	X(TWIN_KEPT, "is kept and bills for ever") \
	X(QUEUE_UNSEEN, "and it waits for a machine") \
	X(QUEUE_FREE, "and it was placed") \
	/* of queues that are free */ \
	X(WAIT_COUNTED, "and its pods have waited for") \
	X(WAIT_BILLED, "is billed, and it waits") \
	X(WAITS_ON, "is waited for in its queue")
/* clang-format on */

enum plant {
#define X(name, says) PLANT_##name,
	PLANTS(X)
#undef X
		PLANTS_COUNT,
	PLANT_FIRST_OF_WIRES = PLANT_CREATE_AGAIN,
	PLANT_FIRST_OF_QUEUES = PLANT_WAIT_COUNTED,
};
extern enum plant planted;
struct planted_defect {
	const char *name, *says;
};
extern const struct planted_defect planted_defects[PLANTS_COUNT];
static inline bool plant(enum plant p)
{
	return planted == p;
}

#endif
