/* core.h - what a run does next. Events come in with the time in them, state changes, actions come
 * out.
 *
 * Nothing in core/ does I/O, reads a clock or draws a random number that was not seeded: the engine
 * (or the simulator) carries the actions out in order and reports what happened. now_ms is a clock
 * that never jumps back (boot clock), wall_ms the wall clock; durations are ms, money
 * micro-dollars.
 *
 * Journal before action: an ACT_SAVE stands before every action that can cost money or lose work.
 * If it cannot be carried out, the engine drops the ACT_RENT that follows it for that pod and
 * reports EV_RENT_FAILED with ERR_LOCAL. Releases and listings are carried out all the same.
 */
#ifndef BURST_CORE_H
#define BURST_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/states.h"
#include "plan/cost.h"
#include "plan/speed.h"
#include "pod.h"
#include "provider.h"

enum { CORE_PROVIDERS_MAX = 8, CORE_CANARY = 3 };

#define KEEP_WARM_AUTO (-1)

struct core_provider {
	char name[PROVIDER_NAME_MAX];
	bool pods_are_free; /* it is not released before all of its files are local */
	int64_t poll_ms;    /* how often its list may be requested while a pod boots */
	/* least gap between the two listings that prove a released pod gone */
	int64_t list_gap_ms;
	/* an earlier client of this run rented there: it is listed before the end */
	bool used_before;
	/* and ended in doubt about its pods, one of whose hard ends is still to come: without that
	 * list the run ends with exit 9 */
	bool used_lately;
	const char *caution; /* reported when the first pod is rented there; NULL: nothing */
	/* its pods' image is built, or found, before the first pod is rented */
	bool makes_image;
	/* pods do not see what another one prepares on a volume: each prepares it for itself */
	bool volume_lags;
	bool waits_free;  /* a pod that has not started costs nothing */
	bool create_once; /* a create whose reply was lost is sent again */
	/* why its pods could not end themselves a short while ago on this account; "": they could
	 */
	char no_switch[120];
};

/* What was expected of a provider's pods with this GPU when the run was planned. */
struct core_forecast {
	char provider[PROVIDER_NAME_MAX], gpu[GPU_MAX];
	struct speed speed;
	double speed_sigma; /* how far it may be off, as spread_of_factor() takes it */
	bool measured; /* on this very GPU; else it is carried over from another one, or a prior */
	double host_share; /* share of batch times that no GPU shortens; 1: the GPU plays no part */
	int batch_max;
	double cold_p50_s, cold_p90_s;
};

/* The plan that a run began with, and what may be changed of it (replan.c). Zeroed: there is none,
 * and nothing is changed. */
struct core_plan {
	const struct core_forecast *forecasts; /* copied by core_new() */
	size_t forecast_count;
	enum plan_goal goal;
	double value_of_time_h;
	int64_t deadline_ms; /* the user's, from the start; 0: none */
	int64_t cost_microusd;
	/* how many may be rented at once, never less than `pods` */
	int pods_most;
	bool pods_open; /* the planner chose how many */
	bool gpus_open; /* the user has named no GPU */
	bool on_demand; /* of one GPU, pods on demand come before spot pods, whatever they cost */
};

struct core_conf {
	char run[24];
	char machine[20];
	struct core_provider providers[CORE_PROVIDERS_MAX];
	int provider_count;
	bool want_volume;
	/* a missing volume is made, once a pod could be rented beside it */
	bool make_volume;
	int pods; /* how wide */
	/* all of them from the start, whatever they cost: a deadline needs that many. They work
	 * while the canary is checked */
	bool at_once;
	int workers;
	int max_batch;
	bool max_batch_is_cap; /* set by the user: a worker that reports more still gets no more */
	double max_batch_weight;
	/* To measure an engine: the sizes of the batches that a pod is sent, in this order, one for
	 * each of its workers at a time and no other before these are over; the last size again for
	 * what is left. No larger than its worker takes, and without regard to groups. Goes without
	 * a canary. The caller's; must outlive the core. NULL: the core sizes batches itself. */
	const int *batch_sizes;
	size_t batch_size_count;
	bool command; /* one segment a pod at a time */
	/* a few segments of the first pod are checked before more pods are rented; if all are bad,
	 * the run stops */
	bool canary;
	bool needs_gpu;
	bool detached; /* hand the queue over once the pods work */
	bool retry_until_up;
	bool unproven_ok; /* pods that may not be able to end themselves get work all the same */
	bool reap;        /* no work: release what was adopted, confirm, end */
	int64_t max_cost_microusd; /* what is left of the cap; 0: none */
	/* of the run, without the time in which all its pods wait for free; 0: none */
	int64_t max_duration_ms;
	int64_t max_price_microusd_h; /* 0: any */
	int64_t wait_ms;              /* for capacity */
	int64_t lease_ms;
	/* a pod's boot limit while its provider's log shows no progress */
	int64_t boot_limit_ms;
	int64_t keep_ms; /* after a failure pods are kept this long for inspection */
	/* A pod whose work is over is offered to other runs (ACT_OFFER) before it is released.
	 * Before one is rented, pods on offer are taken over (ACT_SEEK). */
	bool pooled;
	/* How long a pooled pod is kept for another run. 0: only a run that already waits gets it.
	 * KEEP_WARM_AUTO: at most as long as its own cold start took. */
	int64_t keep_warm_ms;
	int check_tries; /* renders of a segment whose check is not satisfied */
	struct core_plan plan;
	uint64_t seed;
};

struct core_segment {
	double weight, est_s;
	uint32_t group;
	bool done; /* cached, or local from an earlier life of this run */
};

/* What a worker that cannot start reports about its pod's card. */
enum card_fault {
	CARD_FITS,           /* nothing */
	CARD_UNFIT,          /* the image of this provider cannot use it */
	CARD_UNFIT_ANYWHERE, /* nor can that of any other provider: the images are alike */
};

/* What the ledger knows of an offer: earlier pods of it, and how quickly they booted. */
struct offer_past {
	int64_t boot_ms; /* median from the create to the handshake; 0: unknown */
	/* wall clock: when a pod of it was stuck or bad, and until when other offers are preferred;
	 * 0: never */
	int64_t bad_at_ms, bad_until_ms;
	char bad_why[100];
	/* why its card cannot run the job's image, as reported by a pod; "": nothing is known
	 * against it */
	char unfit[200];
};
bool offer_avoided(const struct offer_past *past, int64_t wall_ms);
/* "given up 12 min ago: sshd never spoke"; "" if it is not avoided. */
char *offer_past_show(char *to, size_t room, const struct offer_past *past, int64_t wall_ms);

/* ---- events ---- */

enum event_type {
	EV_START,
	EV_TICK,
	EV_OFFERS, /* provider; offers, count; past: one each, or NULL. Or err */
	/* provider: its volume is known and is being filled; EV_VOLUME follows */
	EV_VOLUME_FILLS,
	EV_VOLUME,      /* provider; volume. Or err: ERR_NOT_FOUND, there is none */
	EV_IMAGE,       /* provider: the image of its pods is there. Or err */
	EV_RENTED,      /* pod; view */
	EV_RENT_FAILED, /* pod; err */
	/* pod; views, count 1; requested_at: what its provider reports for its id. Or err */
	EV_INSPECTED,
	EV_LISTED, /* provider; views, count; requested_at: when the request was sent. Or err */
	/* pod; switch_ok; gpus; t: when TCP was accepted (boot clock); workers_alive (a pod taken
	   over) */
	EV_CONNECTED,
	EV_CONNECT_FAILED, /* pod; err */
	/* pod (taken over); segment; t: its workers hold it. Before EV_CONNECTED */
	EV_RUNNING,
	EV_LOST,           /* pod; err: the control channel is gone */
	EV_SWITCH_BAD,     /* pod: it now reports that it cannot end itself */
	EV_SHARED_READY,   /* pod: what the volume shares is prepared */
	EV_PREPARE_FAILED, /* pod; err */
	/* pod; number: ready workers now; max_batch: as the engine reports it (0: not reported);
	 * batching; speed */
	EV_WORKERS,
	/* pod; err: no worker can be started (any more); number: enum card_fault */
	EV_WORKERS_FAILED,
	EV_BATCH_STARTED,  /* pod; batch; t */
	EV_BATCH_DONE,     /* pod; batch; t */
	EV_RENDERED,       /* pod; segment; t; elapsed_ms: it is finished on the pod */
	EV_SEGMENT_FAILED, /* pod; segment; err: it cannot succeed on any pod */
	EV_FETCHED,        /* pod; segment; ok: arrived and verified; check_ok */
	/* pod; segment; err: ERR_UNTRUSTED, ERR_LOCAL, ERR_NETWORK, ERR_JOB (no place for it here)
	   ... */
	EV_FETCH_FAILED,
	EV_LOCAL, /* segment: fsynced under its final name */
	/* pod; number: outputs of its commands that it has reported, and that are neither under
	   their final names nor given up. Whenever that begins or ends to be 0 */
	EV_FILES,
	/* pod; batch: revoked before it began, or halted; t. Of a batch of an earlier client:
	 * segment, else UINT32_MAX */
	EV_REVOKED,
	/* pod; number: its snapshots that are on their way to this machine. ok: one is safe now:
	 * segment; t: when it was begun (agent's clock). The next attempt continues from there */
	EV_CHECKPOINT,
	EV_UNPULLED, /* pod; err: its provider's reason why its image cannot be pulled */
	/* pod; number: lines of its provider's log that the last reply did not have. Or err */
	EV_LOG,
	EV_SALVAGED, /* pod: all that the volume has was reported as EV_RENDERED; or err */
	/* pod; number: the turn of the ACT_HANDOVER that its agent has carried out */
	EV_HANDOVER_DONE,
	/* pod; number: the turn; ok: what was finished there is durable. Not ok: not now */
	EV_SYNCED,
	EV_RELEASED,   /* pod: accepted; number: enum release_word. Or err */
	EV_NOT_WANTED, /* pod: no run waits for it, and none is expected */
	EV_TAKEN,      /* pod: another run has it since t (boot clock), by the ledger */
	/* pod, added by core_adopt() a moment ago: it was another run's and is ours now */
	EV_ADOPTED,
	EV_SOUGHT, /* ACT_SEEK was carried out; EV_ADOPTED for each pod came before */
	/* number: which signal; the first stops, the second releases now, the third exits */
	EV_SIGNAL,
	EV_SLEPT, /* the machine slept: list pods before anything else */
	EV_FAULT, /* err: the run cannot go on (disk full, ledger gone) */
};

struct event {
	enum event_type type;
	int64_t now_ms, wall_ms;
	int pod, provider;
	uint32_t segment, batch;
	const struct err *err; /* NULL: it went well */
	const struct offer *offers;
	const struct offer_past *past;
	/* EV_OFFERS: nothing that is wanted costs less there, sold out or not; 0: unknown */
	int64_t floor_microusd_h;
	const struct pod_view *views;
	size_t count;
	const struct volume *volume;
	int64_t t, elapsed_ms, requested_at;
	/* EV_LISTED: our wall clock minus the clock by which its provider reports times */
	int64_t ahead_ms;
	int number, max_batch, gpus;
	/* EV_LISTED: the provider refuses its list; views has only pods inspected by id */
	bool partial;
	enum batching batching;
	struct batch_speed speed;
	bool clock_known; /* EV_LISTED: its provider reported its time */
	bool switch_ok, ok, check_ok, workers_alive;
};

/* ---- actions ----
 *
 * core_step() appends them; the engine carries them out in this order. "Answered by" names the
 * events that follow, one of them in every case, unless the comment says otherwise.
 *
 * Over the connection: the action is an order to the pod's agent. If the connection is lost
 * (EV_LOST) or dropped (ACT_CLOSE), the order or its answer may be lost. After the next
 * EV_CONNECTED the core sends again what still holds; agents ignore batches that they know. */

enum action_type {
	ACT_OFFERS, /* provider. Answered by EV_OFFERS */
	/* provider: find it; flag: make it if it is missing, in one of core_offer_regions().
	 * Answered by EV_VOLUME */
	ACT_VOLUME,
	ACT_IMAGE, /* provider. Answered by EV_IMAGE */
	/* pod: its row reaches the disk before the next action. Not answered; the head of this file
	 * says what a failure does */
	ACT_SAVE,
	/* pod. Answered by EV_RENTED or EV_RENT_FAILED; until then a listing may show the pod */
	ACT_RENT,
	/* provider. Answered by EV_LISTED, after minutes where the account's calls are limited */
	ACT_LIST,
	/* pod: lists omit it, so its id is inspected. Answered by EV_INSPECTED, or not at all: the
	 * next listing without the pod makes the core ask again */
	ACT_INSPECT,
	/* pod: read its provider's log of its boot. Answered by EV_LOG */
	ACT_LOG,
	/* pod; text: why it failed; its offer is avoided for a while, in later runs too. Not
	 * answered */
	ACT_BAD_HOST,
	ACT_GOOD_HOST, /* pod: it works, so its offer is no longer avoided. Not answered */
	/* pod. Answered by EV_CONNECTED or EV_CONNECT_FAILED, unless ACT_CLOSE follows */
	ACT_CONNECT,
	/* pod; flag: the shared part of the volume too. Over the connection. Answered by
	 * EV_SHARED_READY, then EV_WORKERS or EV_WORKERS_FAILED; or by EV_PREPARE_FAILED */
	ACT_PREPARE,
	/* pod, batch. Over the connection. Answered by EV_BATCH_STARTED, EV_RENDERED or
	 * EV_SEGMENT_FAILED for each segment, and EV_BATCH_DONE; or by EV_REVOKED */
	ACT_SEND,
	/* pod: every batch that has not begun. Over the connection. Answered by EV_REVOKED for each
	 * of them */
	ACT_REVOKE,
	/* pod; number: ms. Its commands end themselves, or are killed after so long, and it reports
	 * what they have finished. Takes back batches as ACT_REVOKE does. Over the connection.
	 * Answered by EV_REVOKED for each batch, EV_FILES before */
	ACT_HALT,
	/* pod: fetch the outputs that EV_FILES counts, from where pod.files says; flag: they are
	 * lost. Answered by EV_FILES once none is left */
	ACT_FILES,
	/* pod: its lease is renewed. Over the connection. Not answered, sent three times a lease */
	ACT_RENEW,
	/* pod, number: the turn. Its agent renews its lease from now on. Over the connection; sent
	 * again after each further batch. Answered by EV_HANDOVER_DONE */
	ACT_HANDOVER,
	/* pod: this client renews its lease again. Over the connection. Not answered; ACT_RENEW
	 * follows */
	ACT_TAKEOVER,
	/* pod, segment (over SSH, or from the volume when pod.files is FILES_ON_VOLUME). Answered
	 * by EV_FETCHED or EV_FETCH_FAILED, but never once its connection was lost or dropped */
	ACT_FETCH,
	/* segment: rename into place, record; flag: suspect (check not satisfied, tries used up).
	 * Answered by EV_LOCAL or EV_FETCH_FAILED */
	ACT_PLACE,
	/* segment: delete the file; the segment is rendered again. Not answered */
	ACT_DISCARD,
	/* pod: read its event log from the volume. Answered by EV_RENDERED for each finished
	 * segment, then EV_SALVAGED */
	ACT_SALVAGE,
	/* pod, number: the turn. Make durable what is finished there, unless the few files left are
	 * fetched sooner. Over the connection. Answered by EV_SYNCED */
	ACT_SYNC,
	/* pod; number: ms for which it may be kept, 0: none. Its row shows that it is on offer.
	 * Answered by EV_TAKEN or EV_NOT_WANTED, or not at all: after a while the pod is released
	 */
	ACT_OFFER,
	/* number: take over at most this many pods that other runs offer. core_waits() tells
	 * whether other runs learn that this one waits for a pod. Answered at once by EV_ADOPTED
	 * for each pod, then EV_SOUGHT */
	ACT_SEEK,
	/* pod. Answered by EV_RELEASED; or by EV_TAKEN if another run has it by now, and then the
	 * provider is not asked */
	ACT_RELEASE,
	/* pod: drop the connection; its keys can go when it is gone. Not answered. While its
	 * release is unanswered the engine may keep a connection for ACT_FINISH, of which the core
	 * receives no answer */
	ACT_CLOSE,
	/* pod: its release is refused, so its agent gets the request to end it by its own switch.
	 * Not answered; a listing shows the end. flag: only over a connection that still stands */
	ACT_FINISH,
	ACT_NOTE, /* text: for the user; level in number */
	ACT_END,  /* no action follows, and no event is handled any more */
};

struct action {
	enum action_type type;
	int pod, provider;
	uint32_t segment, batch;
	bool flag;
	int number;
	char text[640]; /* holds a reason of struct err and what follows from it */
};

struct actions {
	struct action *list;
	size_t count, cap;
};

struct core;

/* Copies segments. Free the core with core_free(). */
struct core *core_new(const struct core_conf *conf, const struct core_segment *segments,
		      size_t count);
void core_free(struct core *c);
/* Takes over a pod of an earlier client of this run (or of a dead run, with conf.reap) before
 * EV_START, or a pod of another run at ACT_SEEK. The caller sets the pod's ids, times (boot clock;
 * may be negative), prices and phase (AMBIGUOUS, BOOTING for "it was there", or GONE for a durable
 * one whose files may not all be local; that one has no times). Returns its number. */
int core_adopt(struct core *c, const struct core_pod *pod);
/* The ids of a provider's pods that may bill, NULL-terminated. Free them with core_ids_free(). */
char **core_pod_ids(const struct core *c, int provider);
void core_ids_free(char **ids); /* accepts NULL */
DEFINE_CLEANUP(core_ids_free, char **)
/* Handles one event. Appends to *out, which the caller empties; the caller frees out->list at the
 * end. */
void core_step(struct core *c, const struct event *ev, struct actions *out);
/* Returns the first invariant of the state that does not hold, as a static text; NULL: all hold.
 * Builds with CORE_CHECKED call it after every step and abort. */
const char *core_check(const struct core *c);
/* When the next EV_TICK is due (boot clock); INT64_MAX: never. */
int64_t core_wake_at(const struct core *c);

/* It needs a pod and could rent none: a pod that another run has finished with would help. */
bool core_waits(const struct core *c);
/* max_cost less what is spent and what living pods can still cost; INT64_MAX: no cap. */
int64_t core_money_left(const struct core *c);
/* Of a detached run. DONE: all that is left is with pods that renew their own leases and have
 * confirmed it; the client may exit. IN_PART: the rest is with pods that still need a client,
 * because their files cannot be fetched without them. */
enum core_handover { HANDOVER_NOT_YET, HANDOVER_DONE, HANDOVER_IN_PART };
enum core_handover core_handover(const struct core *c);
/* How long a pod may take to be reached if its container starts when its first lease is almost
 * over, or later: its image took long, and the client may have waited for it. */
int64_t core_late_start_ms(const struct core_conf *conf);
/* How long the first lease lasts: a little more than boot_limit. */
int64_t core_first_lease_ms(const struct core_conf *conf);
int core_pod_count(const struct core *c);
const struct core_pod *core_pod_at(const struct core *c, int pod);
/* Whether its provider's log is read before its release: it never came up. If the log ends with the
 * pod, the release waits for it for at most CORE_LOG_READ_MS. These end before its hard end, up to
 * which its cost is within the caps. */
enum { CORE_LOG_READ_MS = 1000 };
bool core_reads_log_first(const struct core_pod *p, int64_t now_ms);
const struct core_batch *core_batch_at(const struct core *c, uint32_t batch);
/* By the ledger's measurements of its pod's engine, else by the job's estimate; 0: unknown. */
double core_batch_expected_ms(const struct core *c, uint32_t batch);
bool core_has_batch(const struct core *c, uint32_t batch, int pod); /* of this very pod */
enum core_seg_state core_seg_state(const struct core *c, uint32_t segment);
/* the pod that was given it and has not finished it; -1: none */
int core_seg_holder(const struct core *c, uint32_t segment);
/* re-renders requested so far: the task's attempt number */
int core_seg_tries(const struct core *c, uint32_t segment);
/* The regions where this provider has offers that could be rented now within the caps: up to
 * `room`, borrowed until the next step. 0: anywhere. */
size_t core_offer_regions(const struct core *c, int provider, const char *regions[], size_t room);

/* How often the run was planned again (CORE_REPLANS_MAX at most), and why and how each time, for
 * the user. */
enum { CORE_REPLANS_MAX = 2 };
int core_replans(const struct core *c);
const char *core_replan_text(const struct core *c, int which);

struct core_summary {
	enum run_status status;
	struct err err; /* the one that decides the exit status; ERR_NONE when all is done */

	size_t total, local, failed, cached;
	/* so far; cost: of each pod the larger of our count and its provider's figure */
	int64_t billed_ms, compute_ms, wasted_ms, cost_microusd;
	int64_t counted_microusd, vendor_microusd; /* each by itself */
	int live;                                  /* pods that may bill */
	double weight_left, rate;                  /* rate: weight a second, all pods; 0: unknown */
};
void core_summary(const struct core *c, int64_t now_ms, struct core_summary *out);
/* From the create until its workers were ready, in the run that rented it; 0: unknown. */
int64_t core_cold_ms(const struct core_pod *p);

/* What to expect, by what was measured in this run or else by its plan. For displays alone. */
struct core_outlook {
	int64_t render_ms; /* until the last segment is rendered, pods that boot included; -1: not
			      known */
	int64_t gone_ms;   /* until every pod is proven gone; -1: not known */
	int64_t total_microusd; /* what all pods of this engine will have cost then; -1: not known
				 */
	int stops;              /* signals so far */
	bool stopping;          /* no new work is begun */
};
void core_outlook(const struct core *c, int64_t now_ms, struct core_outlook *out);
/* How many of these pods a new run with this cap would rent at a time; 0: it would rent none. The
 * same rule as for renting. cold_ms: until a pod of them has booted; 0: unknown. */
int core_pods_paid(int64_t cap_microusd, int64_t price_microusd_h, int pods, int64_t cold_ms);
/* How long a gone pod ran, by its provider's own record. If it ended itself while no client
 * watched, it was booked until a client looked. Whether it is now booked until its provider's end,
 * which is earlier. */
bool core_correct_end(struct core *c, int pod, int64_t ran_ms);
/* The name that messages use for the pod: its id, else its attempt. */
const char *core_pod_called(const struct core_pod *p);
/* Create call, or start where waiting is free, to accepted release (or gone, or now), whole seconds
 * upward, in ms. A pod that its provider shows running after that counts until a list omits it. */
int64_t core_billed_ms(const struct core_pod *p, int64_t now_ms);
/* While it held at least one batch, up to its last event. */
int64_t core_compute_ms(const struct core_pod *p);
/* By our own count; and what counts against caps and in sums: that, or its provider's figure where
 * that is larger. */
int64_t core_counted(const struct core_pod *p, int64_t now_ms);
int64_t core_cost(const struct core_pod *p, int64_t now_ms);
/* Takes the provider's figure of what a gone pod cost. */
void core_set_vendor_cost(struct core *c, int pod, int64_t microusd);
/* The possible cost of a pod whose create reply was lost and that ended before its id was known, or
 * that may have started after it was last seen waiting for free. The run's cost does not include
 * it. max_cost counts it as spent, in later lives, too. 0 for all other pods. */
int64_t core_may_have_cost(const struct core_pod *p);
const char *pod_phase_name(enum pod_phase phase);

/* ---- for `burst reap` ----
 * What to do with a run whose client is dead, and with each pod that a listing shows. Pure. */

enum reap_what {
	REAP_PASS,  /* gone: do not report it */
	REAP_LEAVE, /* report it, do not release it */
	REAP_PAST,  /* release: past its hard end, whichever client rented it */
	/* release: its run is over: a second pod of one create, or one that was listed late */
	REAP_ENDED,
	REAP_ORPHAN, /* release: its client is dead, and its agent has no work left */
	REAP_FORCED, /* release: the user named it with --force */
};

struct reap_known {    /* what our ledger says of it */
	bool ours;     /* this machine made it and has its run in the ledger */
	bool alive;    /* the client of that run lives */
	bool ended;    /* that run has ended */
	bool detached; /* its agents continue without a client */
	/* so does this pod's agent: its workers were ready, no release had been requested */
	bool at_work;
};

/* now_ms: wall clock, the vendor's: ours may be wrong, and then a pod that another machine wants
 * could seem to be of the past. */
enum reap_what reap_pod(const struct pod_view *view, const struct reap_known *known, bool forced,
			int64_t now_ms);

/* Whether to release a run whose client is dead as a whole: not while its agents continue, up to
 * the last hard end of its pods (0: it has none). What they do not need is REAP_ORPHAN. */
bool reap_run(bool detached, int64_t last_hard_end_s, int64_t now_ms);

#endif
