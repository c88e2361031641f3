/* plan.h - what a seed means: the faults of a schedule, its vendors, its runs. */
#ifndef BURST_TESTS_SIM_PLAN_H
#define BURST_TESTS_SIM_PLAN_H

#include "core/impl.h"

enum {
	FAULTS_MAX = 12, /* of those that a single client can meet */
	MORE_FAULTS_MAX = 4,
	WIRE_FAULTS_MAX = 8,
	LEFTOVERS_MAX = 6,
	REFUSALS_MAX = 5,
	DETACHED_MAX = 3,
	WILD_MAX = 1,
	UNPAID_MAX = 1,
	STEPS_MAX = 8,  /* of a command */
	PRICES_MAX = 2, /* times that they move, beside PRICE_MOVES of a list of faults */
	LATE_BOOTS_MAX = 2,
	OUTLIVED_MAX = 1,
	TWINS_MAX = 1,
	VENDORS_MAX = 3,
	WORKERS_MAX = 4,
	SLOTS_MAX = 3 * WORKERS_MAX, /* batches in hand: a continuous worker has several */
	CLIENTS_MAX = 4,
	LAPTOPS_MAX = 3,
	CLIENTS_ALL = CLIENTS_MAX + LAPTOPS_MAX, /* and the reaper of each machine */
	/* the longest that a pod takes to end itself once it has decided to, its vendor refusing
	   once */
	POD_SELF_END_MS = 9000,
	/* a minute, the 5 s after which limit.c looks for room again, and a moment */
	RELEASED_WITHIN_MS = 60000 + 5000 + 2000,
	HOUR_MS = 3600 * 1000,
};

/* clang-format off */
#define FAULT_KINDS(X)                                                                                                  \
	X(CREATE_LOST_MADE) X(CREATE_LOST_NOTHING) X(CREATE_TWICE) X(CREATE_SOLD_OUT) X(CREATE_RATE_LIMITED)            \
	X(CREATE_TRANSIENT) X(CREATE_CREDENTIALS) X(CREATE_REFUSED) X(PRICE_ABOVE_OFFER) X(SURFACES_LATE)               \
	X(LIST_MISSES_ONE) X(LIST_FAILS) X(LIST_RATE_LIMITED) X(LIST_SLOW) X(RELEASE_FAILS) X(RELEASE_LOST)             \
	X(RELEASE_LINGERS) X(RELEASE_IGNORED) X(RELEASE_NEVER) X(OFFERS_FAIL) X(OFFERS_EMPTY) X(VOLUME_FAILS)           \
	X(BOOT_FAILS) X(BOOT_STUCK) X(BOOT_SLOW) X(PREEMPTED) X(STOPPED) X(WRONG_HOST_KEY) X(UNREACHABLE)               \
	X(SWITCH_BAD) X(NO_GPU) X(PREPARE_FAILS) X(PREPARE_TRANSIENT) X(PREPARE_HANGS) X(WORKERS_NEVER) X(WORKERS_END) X(POISON)         \
	X(CHECK_BAD) X(FILE_MISSING) X(AGENT_RESTART) X(DROP) X(DROP_LONG) X(FETCH_UNTRUSTED) X(FETCH_DROPS)            \
	X(SALVAGE_FAILS) X(LEDGER_FULL) X(DISK_FULL) X(SIGNAL) X(SLEEP) X(WALL_JUMP) X(CRASH_RESUME) X(CRASH_REAP)      \
	X(CRASH_FOREVER)                                                                                                \
	/* after these come those that only plans for several clients roll */                                          \
	X(REAP) X(PRICE_MOVES) X(FETCH_SLOW)                                                                            \
	/* of calls to real translators' servers: line.c */                                                             \
	X(CALL_LOST) X(CALL_REPLY_LOST) X(CALL_5XX) X(CALL_429) X(CALL_GARBAGE) X(CALL_SLOW) X(CRASH_AT_CALL)           \
	X(ODD_STATE) X(POD_LOCKED) X(IMAGE_GONE) X(LIFE_OVER) X(CRASH_HANDED) X(RELEASE_UNKNOWN)                \
	/* of vendors that refuse, or deny what is there: from a stream of their own */                                 \
	X(RELEASE_DENIED) X(LIST_REFUSED)                                                                               \
	/* a laptop is closed, or its client ends, when `run -d` returns or after a create: likewise */                 \
	X(LEFT_GONE) X(LEFT_FROZEN) X(LEFT_AT_RENT)                                                                     \
	/* a release is accepted, more than once, and does not end the pod: likewise */                                 \
	X(RELEASE_OUTLIVED)                                                                                             \
	/* another machine makes a volume of the same name at the same moment: of RunPod's translator */                \
	X(VOLUME_TWICE)                                                                                                 \
	/* any operation is answered by a reply that cannot be taken (tests/cloud/common/extremes.js): likewise */      \
	X(REPLY_WILD)                                                                                                   \
	/* a create is refused since the account cannot pay: likewise */                                                \
	X(CREATE_UNPAID)
/* clang-format on */

#define WALL_EPOCH_MS 1800000000000ll /* the true wall clock at true time 0 */

enum fault_kind {
#define X(name) F_##name,
	FAULT_KINDS(X)
#undef X
		F_KINDS,
	F_FIRST_OF_WIRES = F_CALL_LOST,
	F_FIRST_OF_REFUSALS = F_RELEASE_DENIED,
};

struct fault {
	enum fault_kind kind;
	int n, count; /* strikes occurrences n .. n + count - 1 of what it can strike */
	int64_t ms;   /* when, or how long */
	int x;
	int who; /* the client, or a client of the machine, that the fault is for */
	bool dropped;
};

enum wire_kind { WIRE_NONE, WIRE_RUNPOD, WIRE_MODAL };
#define SEED_WIRE                                                                                  \
	(1ull << 50) /* in a seed: one or two of its vendors are spoken to through their real      \
			translators */

#define SEED_QUEUE (1ull << 52) /* in a seed: some of its vendors have a queue that is free */

#define SEED_POOL (1ull << 51) /* in a seed: several runs, which pass pods on */

struct vendor_plan {
	struct offer offers[4];
	int capacity[4], offer_count;
	int64_t latency_ms, boot_ms, lag_ms, self_end_ms;
	int64_t ends_ms; /* from a release that it accepted to the end of the pod */
	bool apart;      /* files of its volumes can be fetched without a pod */
	bool keeps_gone; /* its list shows pods that are gone for a while */
	bool vague;      /* create replies carry no address; the list does */
	int per_minute;  /* calls that an account may make; 0: any */
	int slow[4];     /* percent of ms_per_weight that a pod of this offer takes; 0: 100 */
	bool says_limit; /* its replies report what is left */
	/* its pods wait for free, for any time (queue_seed draws it) or for ever; it ends those
	 * that have waited as long as they may */
	bool free, limits_wait;
	uint64_t queue_seed;
	/* of a real translator's server */
	enum wire_kind wire;
	bool has_volume, community, spot;
	bool boasts;  /* its catalog calls free what is not */
	bool forgets; /* an inspection does not find what its list does not show yet */
	int quota;    /* calls a minute; 0: any */
	int page_rows, token_s;
	/* at Modal: which lists it does not refuse */
	enum { LISTS_ALL, LISTS_V1, LISTS_NOT_WHOLE, LISTS_NONE } lists;
	bool full[4]; /* at Modal: what is made of this offer waits for ever */
};

struct job_plan { /* one run: what one client is to do */
	struct core_conf conf;
	struct core_segment *segments;
	size_t count;
	int laptop;
	int64_t starts_at;
	bool padded;     /* its engine renders a batch at once */
	bool continuous; /* it takes further segments while it renders */
	/* conf.plan counts: speeds were forecast, and batches take off_percent of that */
	bool planned;
	int off_percent;
	/* a command: each step leaves an output; 0: it leaves one result, at its end */
	int steps;
	bool stream; /* its outputs are reported one by one */
	/* how often it is saved (0: never); what a save takes on the pod; what a file takes on its
	 * way */
	int64_t save_every_ms, save_ms, file_ms;
	struct core_forecast forecasts[VENDORS_MAX * 4];
	/* of conf.max_cost_microusd is the cap of each life after the first */
	int later_cap_percent;
	bool off;   /* left out */
	bool plain; /* all segments alike, none done */
};

struct plan {
	uint64_t seed;
	bool alone;
	int vendors_made, laptops_made;
	struct job_plan jobs[CLIENTS_MAX];
	int client_count;
	struct vendor_plan vendors[VENDORS_MAX];
	int64_t rtt_ms, prepare_ms, install_ms, load_ms, ms_per_weight, keep_latency_ms;
	int64_t boot_clock_ms[LAPTOPS_MAX], wall_offset_ms[LAPTOPS_MAX];
	bool knows_boots; /* its ledger has seen such pods come up before */
	/* events that the agent logged meanwhile come before EV_CONNECTED */
	bool replay_first;
	/* a pod that prepares nothing shared sends EV_SHARED_READY all the same */
	bool own_ready;
	bool keeps; /* pods without work may be kept for later runs */
	struct fault faults[FAULTS_MAX + MORE_FAULTS_MAX + WIRE_FAULTS_MAX + LEFTOVERS_MAX +
			    REFUSALS_MAX + DETACHED_MAX + PRICES_MAX + LATE_BOOTS_MAX +
			    OUTLIVED_MAX + TWINS_MAX + WILD_MAX + UNPAID_MAX];
	int fault_count;
};

/* alone: with one client and all vendors' patience, whatever the seed means otherwise. */
void plan_make(struct plan *p, uint64_t seed, bool alone);
void plan_wire(struct plan *p); /* wire_plan.c */
void plan_free(struct plan *p);
/* What a stream of random numbers gives next. */
int64_t roll_in(uint64_t *stream, int64_t least, int64_t most);
bool roll_chance(uint64_t *stream, int percent);
/* small values as likely as large ones; to about most */
int64_t roll_spread(uint64_t *stream, int64_t least, int64_t most);
void plan_print(const struct plan *p);

/* shrink.c */
/* Turns down what it can while the run still breaks for the same reason. Returns how many runs that
 * took. */
int shrink(struct plan *p, const char *how, double most_s);
char *plan_text(struct plan *p); /* what `sim --plan` takes; to be freed */
int plan_read(struct plan *p, const char *text);
extern const char *const fault_names[F_KINDS];

void plan_planned(struct plan *p, uint64_t seed);
void plan_replans(struct plan *p, uint64_t seed);
/* A client that measures an engine. */
void plan_measuring(struct plan *p, uint64_t seed);
/* Adds a fault, which the caller fills. Aborts if there is no room. */
struct fault *plan_next_fault(struct plan *p);
void plan_add_leftover(struct plan *p, enum fault_kind kind, int n, int64_t ms, int x);

#endif
