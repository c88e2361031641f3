/* sim.h - one schedule of faults: the real core, clients that carry its actions as the engine
 * would, a cloud in memory and the agents on its pods, all against one virtual clock. A seed gives
 * the surroundings and a list of faults; faults can be dropped one at a time to find the fewest
 * that still break an invariant. */
#ifndef BURST_TESTS_SIM_H
#define BURST_TESTS_SIM_H

#include "core/impl.h"
#include "engine/limit.h"
#include "plan.h"
#include "plant.h"

/* ---- the queue ---- */

enum what {
	/* to the client; dropped when the life that asked is over, put off while the machine sleeps
	 */
	W_OFFERS,
	W_VOLUME,
	W_IMAGE,
	W_CREATED,
	W_SAVE_FAILED,
	W_LISTED,
	W_REACHED,
	W_LOST,
	W_ENTRY,
	W_SHARED,
	W_PREPARE_FAILED,
	W_FETCHED,
	W_KEPT,
	W_SALVAGED,
	W_SYNCED,
	W_RELEASED,
	W_LOG,
	W_INSPECTED,
	W_SIGNAL,
	W_ROOM,
	W_BILLED,
	W_CRASH,
	W_WIRE_REPLY,
	W_WIRE_AGAIN,
	W_TAKEN,
	W_UNASKED,
	W_HANDED,
	W_SOUGHT,
	W_FILES,
	W_OUTPUT,
	W_SNAPSHOT,
	/* in the cloud and on the pods */
	W_CALL,
	W_CREATE,
	W_LIST,
	W_RELEASE,
	W_FINISH,
	W_CONTAINER,
	W_ENDS,
	W_WATCH,
	W_STRUCK,
	W_COMMAND,
	W_PREPARED,
	W_WORKER,
	W_WORK,
	W_SAVE,
	W_HALTED,
	W_WIRE_CALL,
	/* to the machine that burst runs on */
	W_SLEEP,
	W_WAKE,
	W_JUMP,
	W_RESTART,
	W_REAP,
	W_PRICE,
};

struct given { /* to an attempt at a command: a save of so many steps, by this machine */
	int steps, machine;
	int least; /* it must not begin before this one */
};

struct happening {
	int64_t at;
	uint64_t seq;
	enum what what;
	int client, life, pod, machine, provider;
	uint64_t conn;
	uint32_t segment, batch;
	enum err_kind kind;
	int64_t x, y;
	void *data; /* freed with it */
	size_t count;
	struct given from;
	/* of an account with a limit: what a reply says of it, and when that was so */
	bool answers;
	int left, reset_s;
	int64_t said_at, retry_ms;
};

struct account { /* at one vendor: a window begins with the first call after the last one */
	int64_t began;
	int used;
	bool asked[LAPTOPS_MAX];
	int64_t requested_at[LAPTOPS_MAX];
};

/* ---- pods of the cloud ---- */

struct work {
	int life;
	uint32_t batch, *segments;
	size_t count, next;
	bool begun, over;
	bool crossed; /* begun while its new client was about to take it back */
	/* a command: */
	struct given from;
	bool halted;
	int told; /* outputs */
	/* true time: its begin; that of its newest save that its client has */
	int64_t began, safe_from;
	int64_t took_ms; /* 0: it has not finished */
};

struct folder { /* what a command saves, on its pod's disk: steps that are done, and were saved */
	int steps, saved, seed;
};

struct entry { /* of an agent's numbered log */
	enum event_type type;
	int life, number;
	uint32_t batch, segment;
	enum err_kind kind;
	int64_t t, elapsed_ms;
};

struct machine {
	int client; /* the client that made it or took it over */
	int made_by;
	unsigned held_by;  /* bits: runs that held it before */
	int64_t held_from; /* true time: since when it is this run's */
	int holds;
	int offered_by;        /* the run that offers it; -1: none */
	int64_t offered_until; /* wall clock */
	int64_t lease_ms;      /* as it was renewed last */
	int vendor, offer;
	char id[40], attempt[ATTEMPT_MAX];
	int64_t price, offered;        /* micro-dollars an hour */
	int64_t hard_end, first_lease; /* true time */
	/* where waiting is free: when it starts (INT64_MAX: never), how long its first lease lasts
	 * from then; marked_end: its hard end as its marker says it */
	int64_t starts_at, first_lease_ms, marked_end;
	int64_t late_start;  /* from the start of its container: if it starts late */
	int64_t clock_error; /* how far the clock was off when they were computed */
	int64_t created, visible, runs_at, ended, release_requested;
	int64_t known_at;    /* its client knows its id; -1: never */
	int64_t alone_until; /* its client was not there; -1: it always was */
	bool alone;          /* its client is not there now */
	/* when a client that is still there last asked for its release; -1: never */
	int64_t requested_at;
	bool unsaved; /* its row is older than what its client knows */
	bool running, is_over, stopped, failed, preempted, duplicate, never_runs, bad_key,
		bad_switch, no_gpu, unreachable;
	bool card_unfit;  /* no worker can start on any pod of its card */
	bool reply_lost;  /* the answer to its create never came */
	bool lease_shown; /* its lease was renewed at least once */
	int release_fails;
	int64_t linger;
	int outlives; /* so many of its releases are accepted and forgotten */
	/* when the newest list was requested that showed it running to its client, in which life */
	int64_t shown_at;
	int shown_in;
	/* after its first release its vendor denies it for this long */
	int64_t denied_ms, denied_until;
	bool running_then;           /* when its release was asked for first */
	bool ignores_release, stood; /* stood: its connection did when its release was asked for */
	bool queued, evicted, life_over, spot; /* where there is a real translator */
	int64_t odd_until;
	/* agent */
	bool agent, connected, detached, ending;
	uint64_t conn, epoch;
	int64_t lease, cut_until, watch_at;
	int64_t reached_at; /* first in its client's life `reached_in` */
	int reached_in;
	/* the newest reason for its lease: its holder renewed it, or a segment was done on its own
	 */
	int64_t renewed_at;
	bool was_detached, was_cut, let_go;
	struct entry *log;
	size_t log_count, log_cap;
	struct work *works;
	size_t work_count, work_cap, work_done;
	int workers_started, workers_ready;
	bool workers_never, workers_end;
	int64_t worker_work[SLOTS_MAX]; /* index in works, -1: idle */
	bool missed, shown;             /* by the newest listing; by any */
	/* finished segments on its volume; 2: of work that had crossed */
	uint8_t *files;
	int64_t idle_since;
	struct folder *folders; /* by segment */
	int64_t cut_ms;         /* time of commands that were cut off, since they were saved */
};

/* ---- clients, and the machines that they run on ---- */

struct row { /* of the ledger: the pod as saved, times on the wall clock */
	int client;
	struct core_pod pod;
	int64_t wall_minus_boot, billed_ms; /* by then */
};

struct create { /* a request on its way */
	int client, provider, offer;
	char attempt[ATTEMPT_MAX];
	int64_t hard_end_s, first_lease_end_s, late_start_s, price;
	int64_t wait_ms, run_ms, first_lease_ms; /* where waiting is free */
	int64_t clock_error;                     /* of the client's clock, then */
};

struct laptop { /* one clock, one ledger */
	bool asleep;
	int64_t boot_offset, wall_offset, wakes_at;
	int64_t woke_at, jumped_at; /* true time; -1: it never slept, its clock was never set */
	int64_t off_until;          /* it boots anew */
	int64_t wall_error;         /* the furthest that its wall clock was off */
	struct row *rows;
	size_t row_count, row_cap;
	bool unfit[VENDORS_MAX][4]; /* by its ledger: offers whose card cannot run the job */
	/* wall clock: offers that its ledger avoids; 0: none */
	int64_t bad_at[VENDORS_MAX][4];
	struct store *pool;               /* pods on offer; NULL: never one */
	struct store *facts;              /* what its limiters share; NULL: no account is limited */
	int64_t quiet_until[VENDORS_MAX]; /* what a 429 asked for */
	int64_t refused_at[VENDORS_MAX];
	bool takes_releases[VENDORS_MAX]; /* it has accepted one since */
	int64_t told_until[VENDORS_MAX];  /* the end of the window that the vendor spoke of */
};

struct client {
	bool unfit[VENDORS_MAX]
		  [4]; /* a pod has reported the offer's card to this client as unfit */
	struct sim *sim;
	struct laptop *laptop;
	const struct job_plan *job;
	int number;
	bool began;
	int64_t began_at, died_at;
	int64_t life_began, life_ended; /* the newest life, and the newest that is over */
	/* of this life, and the highest so far; 0: none. Not of a reap's */
	int64_t cap_now, cap_most;
	/* how long all of its pods have waited for free, by the cloud; since when they do (-1: they
	 * do not) */
	/* when a list last told it which pods wait, or none of them did; it has been without such
	 * a list for long, so it may not know that its time was free */
	int64_t told_at;
	bool untold;
	int64_t free_ms, free_since;
	int64_t metered;     /* by the cloud, when this life began, or its machine woke */
	int64_t asleep_from; /* the cloud's meter then */
	bool unsure;         /* a create was open when this life began */
	/* cost of pods that it handed on, and how much that may be off */
	int64_t handed_bill, handed_slack;
	struct limiter *limiter;
	struct core *core;
	struct actions out;
	int life;
	bool up, reaping, dead_forever, ever_crashed;
	bool ever_left;         /* at once, by a third signal: answers may have been under way */
	size_t *seen, seen_cap; /* log entries dealt with, by machine */
	bool *unsaved;          /* by pod of this life */
	size_t unsaved_cap;
	bool spoilt;      /* one of its files was bad, or could not be fetched */
	bool handed_over; /* this life had dealt all that was left to its pods */
	/* plans of this life beside the first; how many pods the newest left, if fewer */
	int replans, replans_seen, width_left;
	int64_t replanned_at;
	bool stop_seen;
	bool good_safe; /* a segment with a good check became local in this life */
	bool *local, *poison;
	uint8_t *renders; /* of each segment */
	int *bad_checks;
	int64_t settled_at, busy_second, ticked_at;
	int busy_events, ticks_here;
	int exit_status;
	int64_t retry_ms; /* Retry-After of the reply that is heard now */
	/* in this life it was offered something that its cap on prices allows */
	bool affords[VENDORS_MAX];
	bool unpaid[VENDORS_MAX]; /* in this life a create was refused for want of money */
	bool should_end;      /* no account can pay, and nothing is under way: since unpaid_since */
	int64_t unpaid_since; /* by its boot clock: no account can pay, and it has no pod */
	struct commands *commands;
	int64_t list_failed[VENDORS_MAX]; /* by its boot clock; 0: the newest list succeeded */
	/* likewise, of this life: when it heard of the newest create that may have made a pod, and
	 * when the newest complete list that it read was sent; -1: never */
	int64_t made_at[VENDORS_MAX], listed_at[VENDORS_MAX];
	bool list_refused[VENDORS_MAX]; /* by the newest list */
	/* the run is over and collects its bills; a reaper: what it waits for */
	int bills_open;
	bool forces;              /* of a reaper: pods are named */
	struct core_pod *targets; /* of a reaper: what its core is to end */
	size_t target_count, target_cap;
	/* how far its clock is off at least, by the newest reply's date */
	int64_t heard_off_ms[VENDORS_MAX];
};

struct sim {
	struct plan *plan;
	bool tracing;
	int64_t now; /* true time */
	uint64_t random, seq;
	struct happening *queue;
	size_t queue_count, queue_cap;
	int counts[F_KINDS]; /* occurrences so far */
	bool hit[F_KINDS];
	char broken[240]; /* the invariant that does not hold; empty: none */
	const char *how;  /* likewise, before its numbers were put in */

	struct machine *machines;
	size_t machine_count, machine_cap;
	struct create *creates;
	size_t create_count, create_cap;
	int in_use[VENDORS_MAX][4];
	int64_t prices[VENDORS_MAX][4]; /* as they are now */
	bool unfit[VENDORS_MAX][4];     /* offers whose card no worker can start on */
	bool has_volume[VENDORS_MAX];   /* of vendors without real translators */
	struct account accounts[VENDORS_MAX];
	int refused;      /* for an account's limit */
	int swept;        /* pods that a reap's core has proven gone */
	int handed;       /* pods that went from run to run */
	int handed_early; /* while other pods of their run worked */
	int replans[4];   /* more pods, fewer, other GPUs, an end */
	/* a listing failed, or lacked what is there, or was slow */
	int64_t unlisted_at[VENDORS_MAX];

	struct wire *wire;   /* of vendors with real translators */
	struct lines *lines; /* and the calls to them */
	struct laptop laptops[LAPTOPS_MAX];
	struct client clients[CLIENTS_ALL];
	int64_t actions, events;
	uint64_t digest;
	double core_s; /* spent in core_step, when measured */
	bool measuring;
};

/* sim.c */
void broke(struct sim *s, const char *fmt, ...) PRINTF(2, 3);
void trace(struct sim *s, const char *fmt, ...) PRINTF(2, 3);
struct happening *later(struct sim *s, int64_t delay, enum what what);
/* To the client that asked: its number and life are copied. */
struct happening *reply_later(struct sim *s, const struct happening *asked, int64_t delay,
			      enum what what);
struct fault *strikes(struct sim *s, enum fault_kind kind);
uint64_t sim_random(struct sim *s);
int64_t pick(struct sim *s, int64_t least, int64_t most);
void sim_run(struct sim *s, struct plan *plan, bool tracing);
void sim_free(struct sim *s);
void check_day(struct sim *s);

/* cloud.c, cloud_check.c */
void cloud_create(struct sim *s, struct happening *h);
void cloud_list(struct sim *s, struct happening *h);
void cloud_release(struct sim *s, struct happening *h);
void cloud_container(struct sim *s, struct machine *m);
void cloud_struck(struct sim *s, struct machine *m, int64_t how, int64_t ms);
void cloud_end(struct sim *s, struct machine *m, const char *why);
struct machine *cloud_machine(struct sim *s, const char *id);
/* How servers in memory handle it: */
/* a create; ERR_NONE: not at all */
enum err_kind cloud_refuses(struct sim *s, const struct create *c);
struct machine *cloud_make(struct sim *s, const struct create *c, bool duplicate);
enum err_kind cloud_let_go(struct sim *s, struct machine *m, int by); /* a release */
/* how long it asks for a pause when it cannot answer */
int64_t cloud_patience(const struct vendor_plan *v);
enum err_kind cloud_list_fails(struct sim *s, int provider, int64_t *slow_ms); /* a listing */
bool cloud_listed_now(struct sim *s, const struct machine *m, int provider);
bool cloud_missed(struct sim *s, struct machine *m); /* left out once */
void cloud_alone(struct client *cl, bool alone);
void cloud_release_requested(struct sim *s, struct machine *m); /* for its release */
void cloud_check(struct sim *s);                                /* at the very end */
void wire_check_volumes(struct sim *s);                         /* likewise: wire.c */
int64_t meter(const struct sim *s, const struct machine *m);
/* It waits for its start, which costs nothing; or it has ended so. */
bool cloud_waits(const struct sim *s, const struct machine *m);
int64_t cloud_bills_from(const struct sim *s, const struct machine *m); /* once it has started */
/* Measures how long all of the client's pods have waited for free. */
void cloud_note_waits(struct client *cl);
struct pod_view cloud_view(struct sim *s, const struct machine *m);

/* reap.c */
/* forced: by another machine, whose user names the pods of clients that never return */
void reap(struct sim *s, struct client *by, bool forced);
bool reap_wants_run(const struct client *cl); /* a dead one */
void reaper_ends(struct client *reaper);

/* account.c */
void account_send(struct client *cl, const struct happening *call, int64_t extra);
bool account_was_set(const struct client *cl); /* its clock, a moment ago */
void account_room(struct client *cl, struct happening *h);
void account_heard(struct client *cl, struct happening *h);
void account_call(struct sim *s, struct happening *h);
void account_says(struct sim *s, struct happening *answer, int provider);

/* podsim.c */
void pod_watch(struct sim *s, struct machine *m);
void pod_command(struct sim *s, struct happening *h);
void pod_prepared(struct sim *s, struct happening *h);
void pod_worker(struct sim *s, struct happening *h);
void pod_work(struct sim *s, struct happening *h);
void pod_restart_agent(struct sim *s, struct machine *m);
void pod_finish(struct sim *s, struct machine *m); /* its agent is asked to end it */
/* the connection drops; none again before ms are over */
void pod_cut(struct sim *s, struct machine *m, int64_t ms);
void pod_attach(struct sim *s, struct machine *m); /* a connection begins */
void pod_gone(struct sim *s, struct machine *m);
void pod_stream(struct sim *s, struct machine *m, size_t from); /* log entries go to the client */
bool drops_beyond_patience(const struct sim *s);
struct entry *pod_note(struct sim *s, struct machine *m, enum event_type type); /* in its log */
void pod_worker_free(struct sim *s, struct machine *m);
enum command { C_PREPARE, C_SEND, C_REVOKE, C_HALT, C_RENEW, C_HANDOVER, C_TAKEOVER };

/* plant.c */
void plant_conf(struct core_conf *conf);
bool plant_act(struct client *cl, const struct action *a);
void plant_stepped(struct client *cl);
void plant_exit(struct client *cl, struct core_summary *sum);
void plant_heard(struct client *cl, struct happening *h);
void plant_views(struct pod_view *views, size_t count);

/* digest.c */
extern bool by_pod;                      /* the actions of a step are carried out pod by pod */
void digest_actions(struct client *cl);  /* those of its newest step */
void digest_by_pod(struct actions *out); /* each pod's own order stays */

/* client.c */
int64_t boot_now(const struct client *cl);
int64_t wall_now(const struct client *cl);
struct happening *client_later(struct client *cl, int64_t delay, enum what what); /* of this life */
void client_start(struct client *cl, bool reap);
/* A reaper's core adopts its targets, whichever client rented them, and proves them gone. */
void client_sweep(struct client *reaper);
bool is_reaper(const struct client *cl);
void client_tick(struct client *cl);
/* a worker's time for it */
double client_ms_of(const struct client *cl, int vendor, int offer, double weight);
void client_hears(struct client *cl, struct happening *h);
void client_sleeps(struct client *cl);
void client_slept(struct client *cl);
void client_reap(struct client *cl); /* `burst reap`: settles what a run with a dead client left */
void client_restart(struct client *cl, struct happening *h);
bool client_wants(const struct client *cl, const struct machine *m);
void client_crash(struct client *cl, const struct fault *f);
void client_home(struct client *cl, int pod, uint32_t segment);
/* An entry of a pod's log that was read from its volume. */
void client_salvages(struct client *cl, int pod, const struct entry *e);
void client_leaves(struct client *cl);
void client_check_list(struct client *cl, int provider);
void client_told(struct client *cl, struct event *ev, const struct err *err);

struct happening *sim_at_client(struct sim *s, int who, int64_t delay, enum what what);
void sim_schedule_timed(struct sim *s);
void sim_sleep(struct sim *s, struct laptop *l, int64_t ms);
void sim_wakes(struct sim *s, struct laptop *l);
void sim_jump_clock(struct sim *s, struct laptop *l, int64_t ms);
/* All offers of one vendor, from a half to twice what they cost. */
void sim_prices_move(struct sim *s, int64_t x);
bool sim_put_off_to_boot(struct sim *s, struct happening *h);

#endif
