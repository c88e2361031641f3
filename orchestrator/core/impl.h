/* impl.h - what the core knows of a run, and what its files call of each other. Private to them. */
#ifndef BURST_CORE_IMPL_H
#define BURST_CORE_IMPL_H

#include "core.h"
#include "limits.h"

/* ---- what the core knows of a run ---- */

struct seg {
	double weight, est_s;
	uint32_t group;
	uint8_t state, losses, tries, file_tries;
	bool cached;
	bool suspect;  /* its check was never satisfied */
	bool arrived;  /* its file arrived and is verified; ACT_PLACE is under way */
	bool fetching; /* ACT_FETCH is not answered yet */
	uint8_t fetch_tries;
	int pod; /* which pod holds or rendered it */
	uint32_t batch, elapsed_ms;
};

/* of segments of one group, the heaviest first; entries that are no longer TODO are skipped */
struct heap {
	uint32_t *list;
	size_t count, cap;
	double weight; /* of those that are TODO */
};

struct candidate {
	struct offer offer;
	int provider;
	int64_t rest_until;
	int refusals;
	bool refused; /* it is never tried again */
	struct offer_past past;
	bool told;      /* a note says that it is avoided */
	int rank;       /* of its GPU: by the user's order, unless a re-plan prefers another GPU */
	bool is_second; /* a spot pod, where the plan prefers pods on demand */
	int64_t planned_microusd_h; /* its price when the run was planned last */
};

struct forecast { /* what the plan expects, corrected by what was measured */
	struct core_forecast of;
	double measured_s, planned_s;
	size_t segments;
	int batches;
	bool seen; /* it includes what this run has measured */
};

struct replan { /* replan.c */
	struct forecast *forecasts;
	size_t count;
	int done; /* re-plans that changed something */
	char said[CORE_REPLANS_MAX][200];
	int64_t not_before; /* no new re-plan until the last one has taken effect */
	int64_t reprice_at; /* 0: not yet */
	char gpu[GPU_MAX];  /* preferred to the planned GPUs; "": none */
	/* set: no more work is begun, and the run ends with the last pod */
	struct err stop;
};

struct pace { /* rendered weight and the worker-ms that it took */
	double weight, ms;
};

/* decaying sums over batches: count, weight, time, weight squared, weight times time */
struct fit {
	double count, weight, ms, weight2, weight_ms;
};

enum query { QUERY_UNSENT, QUERY_SENT, QUERY_ANSWERED, QUERY_FAILED };

struct vendor { /* what the run knows of one provider */
	enum query volume_query, offers_query, image_query;
	int64_t requested_at; /* for its volume or its offers */
	bool repricing;       /* its offers are requested again, for their prices alone */
	bool filling;         /* its volume is known and is being filled, which has no time limit */
	/* it has no such volume: one is made (volume_query: QUERY_SENT) once a pod could be rented
	 * beside it */
	bool to_make;
	int image_failures; /* in a row */
	struct volume volume;
	bool used; /* a create was sent there */
	/* a create succeeded there, so the request itself is valid */
	bool accepted;
	bool listing;                   /* a list call is under way */
	int64_t listing_since, list_at; /* list_at: when the next list is sent */
	int64_t list_not_before;        /* the provider wants no listing before */
	int64_t listed_at;              /* when the newest complete listing was sent */
	int64_t ahead_ms;               /* our wall clock minus its clock */
	bool clock_known;               /* the provider has reported its time, so ahead_ms holds */
	int64_t created_at;             /* when the newest create was answered */
	/* when the newest create was answered that made a pod, or may have: it may have made two */
	int64_t made_at;
	/* from then on a listing shows all pods that a lost create may have made */
	int64_t surfaced_at;
	int list_failures;
	bool list_refused; /* the newest list was refused: no listing may ever succeed */
	/* halved by rate limits, doubled by each success; 0: no limit */
	int rents_at_once;
	int64_t rent_not_before;
	int rate_refusals;    /* creates that its rate limit refused, in a row */
	int unlike;           /* pods with another host key, or that refuse ours, in a row */
	int unmade;           /* pods whose containers could not be made, in a row */
	int64_t diagnosed_by; /* why a pod failed is being read until then: nothing is rented before
			       */
	int no_switch;        /* pods that cannot end themselves, in a row */
	int owner;            /* pod that prepares the volume; -1: none */
	bool shared_ready;
	struct err err;           /* why nothing can be rented there */
	int64_t floor_microusd_h; /* lowest price of what is wanted there, sold out or not; 0:
				     unknown */
	bool answered;            /* it has said what it offers */
	/* credentials refused, no money, not trusted, or its request is invalid: it is not asked
	 * again */
	bool dead;
};

struct core {
	struct core_conf conf;
	struct seg *segs;
	size_t seg_count;
	struct heap *heaps;
	uint32_t heap_count;
	double weight_todo;
	size_t todo, local, failed, cached;

	struct core_pod *pods;
	int pod_count;
	size_t pod_cap;
	int *due; /* pods that pods_decide() examines, in this order */
	size_t due_count, due_cap;
	struct core_batch *batches;
	size_t batch_count, batch_cap;

	struct vendor vendors[CORE_PROVIDERS_MAX];
	struct candidate *candidates;
	size_t candidate_count, candidate_cap;

	bool started, ending, ended;
	bool canary_sent, canary_ok;
	size_t canary_bad;
	bool canary_bad_all; /* as many bad segments as the canary has came before a good one */
	uint32_t canary_batch;
	int signals, signal;
	int64_t grace_until; /* after the first signal or a fault: files are fetched until then */
	int64_t began_at, capacity_since, offers_again_at;
	/* by caps.max_duration; 0: no such cap. Read it with budget_ends_at() */
	int64_t ends_at;
	int64_t free_since;     /* all pods wait for free since then; 0: not now */
	int64_t settled_at;     /* when the last open segment was settled; 0: one is open */
	int64_t spent_microusd; /* by pods that are gone */
	struct err fault;       /* why no more work is begun */

	int pod_failures; /* in a row, without a segment that became local */
	bool capped, handed_over, unreleased;
	bool rendered_something; /* this client has had a segment rendered */
	bool seeking;            /* ACT_SEEK is not answered yet */
	bool waits;              /* it needs a pod and could not rent one */
	int64_t sought_at;       /* 0: never */
	struct err capacity;     /* the newest reason why nothing could be rented */
	/* of workers; first_pace: of each worker's first batch, used until there is another */
	struct pace pace, first_pace;
	struct pace warm_pace; /* of first batches after their first results */
	struct fit fit;        /* of batches after the first one of a worker */
	/* batches, without the canary, given to engines that render a whole batch at once */
	size_t padded;
	size_t first_open; /* all batches before it are over */
	/* create to ready of the newest pod, without what it prepared for others */
	int64_t cold_ms;
	/* boot time in the ledger of the offer to be rented; 0: unknown */
	int64_t past_boot_ms;
	/* pods released while booting because the work left would not have paid for them */
	int too_many;
	struct replan replan;
	/* least boot limit of the next pod: twice that of the last pod that timed out */
	int64_t patience_ms;
	uint64_t random;

	bool dirty; /* timers or phases changed in this step */
	bool aged;  /* a pod turned out to have cost more */
	int64_t wake_at;

	/* of this step */
	int64_t now, wall;
	struct actions *out;
};

/* ---- what its files call of each other ---- */

#define NEVER INT64_MAX

/* state.c */
/* Appends an action to this step and returns it, so that the caller can fill it in. The pointer is
 * valid until the next one. pod: -1 for none, and then the caller sets the provider. */
struct action *core_act(struct core *c, enum action_type type, int pod);
enum note_level { NOTE_WARN = 1, NOTE_NOTE = 2, NOTE_INFO = 3 }; /* as enum log_level */
void core_note(struct core *c, enum note_level level, const char *fmt, ...) PRINTF(3, 4);
/* No new work from now on: finished files are fetched, pods are released. The first reason is kept
 * unless a graver one replaces it. */
void core_fault(struct core *c, int pod, const struct err *err);
void core_stop(struct core *c); /* like core_fault(), without an error */
/* Takes back the pod's batches that have not begun. Its commands end within grace_ms. */
void core_take_back_batches(struct core *c, struct core_pod *p, int64_t grace_ms);
int core_gravity(enum err_kind kind); /* of two kinds, the higher one decides the exit status */
/* Counts work of this length as wasted. Workers side by side can lose the same seconds, so a pod
 * never wastes more than it has computed. */
void core_count_wasted(struct core_pod *p, int64_t ms);
bool core_is_stopping(const struct core *c); /* no new work is begun */
/* Returns true while burst reads the log of an earlier client's work, which must not be rendered
 * again meanwhile. */
bool core_is_reading_past_logs(const struct core *c);
/* Sets the deadline for reading the log of a pod that was adopted at the start: none of its work is
 * dealt out again before. */
void pod_set_log_deadline(struct core *c, int pod);
bool pod_is_log_awaited(const struct core *c, const struct core_pod *p);
bool pod_is_active(const struct core_pod *p); /* rented or being rented, and not to be released */
/* Whether the pod's files can be read from its volume when the pod is gone. */
bool pod_files_outlive(const struct core_pod *p);
/* Whether the provider reports how or when the pod ended: a fact, to which lists add nothing. That
 * it merely does not know a pod proves little: see proof_after_release(). */
bool pod_end_is_reported(const struct pod_view *view);
/* How long a released pod may have run, although it was last seen waiting for free. */
int64_t pod_unseen_ms(const struct core_pod *p);
/* Whether the view shows the pod in its provider's queue. */
bool pod_is_queued(const struct core_pod *p, const struct pod_view *view);
bool pod_gets_no_more_work(const struct core *c, const struct core_pod *p);
struct vendor *pod_vendor(struct core *c, const struct core_pod *p);
bool vendors_has_any_left(const struct core *c); /* some provider was not given up */
/* Rents nothing more from the provider, and notes why. The message follows the provider's name. */
void vendor_give_up(struct core *c, int provider, enum err_kind kind, const char *fmt, ...)
	PRINTF(4, 5);
const struct core_provider *pod_provider(const struct core *c, const struct core_pod *p);
/* How long listings must miss the pod of a lost create before it counts as never made. */
int64_t pod_ambiguous_ms(const struct core *c, const struct core_pod *p);
/* The pod's lost or hanging create may have made a second pod, which a listing shows later. Where a
 * name works once it cannot. */
void pod_awaits_twin(struct core *c, const struct core_pod *p);
/* Returns the number of pods for which is() is true. */
int pods_count(const struct core *c, bool (*is)(const struct core_pod *p));
/* Converts epoch seconds of the provider's clock to ms of our boot clock. */
int64_t core_boot_time_of(const struct core *c, int provider, int64_t there_s);
int pod_index(const struct core *c, const struct core_pod *p);
/* Sets the pod's phase, and clears its wake time. */
void pod_enter(struct core *c, struct core_pod *p, enum pod_phase phase);
void pod_mark_due(struct core *c, int pod); /* pods_decide() examines it at the end of this step */
void pod_set_leave(struct core *c, struct core_pod *p, enum pod_leave leave); /* marks it due */
void pod_save(struct core *c, const struct core_pod *p); /* its row goes to the ledger */
void listing_make_due(struct core *c, int provider);     /* its next list is sent in this step */
/* Saves the pod's address and begins to connect to it. */
void pod_connect(struct core *c, struct core_pod *p);
/* Ignores the answer to a sync that is under way: it does not cover all files of the pod now. */
void pod_void_sync(struct core_pod *p);
/* For this run the pod is gone: closes its connection and saves it. */
void pod_close_gone(struct core *c, struct core_pod *p);
/* Appends a zeroed pod. Pointers to other pods are void afterwards. */
struct core_pod *pod_new(struct core *c);
void pod_name_attempt(struct core *c, struct core_pod *p); /* draws the name of its create */
/* When the pod must have booted at the latest, whatever its provider's log shows (boot clock). */
int64_t pod_boot_end(const struct core *c, const struct core_pod *p);
/* Returns true for an offer of another GPU while a re-plan replaces pods by one GPU. */
bool core_skips_offer(const struct core *c, const struct candidate *k);
bool core_may_add_pods(const struct core *c); /* part of the budget is reserved for more pods */
int core_pods_most(const struct core *c); /* at a time, including those that are being replaced */
int core_count_outgoing(const struct core *c); /* pods that work until others replace them */
/* From now on the pod's agent renews its lease: saves that, then orders it. */
void lease_hand_to_agent(struct core *c, int pod);
/* Orders the agent to renew the lease itself; batches sent before are in its queue by then. */
void lease_order_agent(struct core *c, int pod);
/* EV_HANDOVER_DONE. An answer to an earlier order does not confirm the newest one. */
void lease_on_confirmed(struct core_pod *p, uint32_t turn);
/* The pod got more work: an order to its agent must be sent again behind that. */
void lease_on_work_added(struct core_pod *p);
void lease_take_back(struct core *c, struct core_pod *p); /* this client renews it from now on */

/* budget.c */
/* Hard end (boot clock) of a pod at this price if it is rented now and `more` pods are to follow;
 * -1: the caps leave no room. */
int64_t budget_hard_end(const struct core *c, int64_t price_microusd_h, int more);
/* Whether a pod that is rented now and ends at `end` could do some work. */
bool budget_allows_work_until(const struct core *c, int64_t end);
/* What has been spent, and what living pods can still cost if no client reaches them again. */
int64_t budget_committed(const struct core *c);
/* Gives pods earlier hard ends where this client's caps need that: they may be lower than those
 * that adopted pods were rented under. */
void budget_fit_pods(struct core *c);
/* The same when another run has handed a pod over. */
void budget_fit_handed_over(struct core *c, struct core_pod *p);
/* Returns false while an adopted pod past its own hard end has not been listed by this client: it
 * may have cost more. A provider that cannot be listed does not count. */
bool budget_spending_is_known(const struct core *c);
/* Milliseconds before the hard end of a pod of this life that are kept for its release. */
int64_t budget_margin(int64_t life_ms);
int64_t budget_pod_margin(const struct core_pod *p); /* the same, of this pod */
/* When caps.max_duration ends the run (boot clock); 0: never. Later by each ms in which all pods
 * wait for free. */
int64_t budget_ends_at(const struct core *c);
/* At the end of a step: whether such a time has begun or ended. */
void budget_note_free_wait(struct core *c);
/* A pod that waited for free has started at `at` (boot clock): its bill and its run time begin. */
void budget_start_pod(struct core *c, struct core_pod *p, int64_t at);
/* How many pods may share what is left of the cap, if a single pod could live on it for left_ms and
 * a pod needs cold_ms to boot. Exported for tests. */
int budget_shares(int64_t left_ms, int most, int64_t cold_ms);
/* Boot time of a further pod: measured, else from the ledger, else a guess. */
int64_t budget_cold_ms(const struct core *c);
/* What was billed until now, of pods that are gone and of living ones. */
int64_t budget_spent(const struct core *c);
/* Returns why the pod's price breaks a cap, as a static text; NULL: it does not. A pod slightly
 * above its offer's price gets an earlier hard end. */
const char *budget_why_refused(const struct core *c, struct core_pod *p);
/* Returns `at`, or when the pod's provider last showed it if that is later (boot clock). */
int64_t budget_extend_to_seen(const struct core_pod *p, int64_t at);
/* Returns `at` (boot clock) or an earlier time. After a power cut or a sleep, no client may have
 * looked for a day. A pod that no list has shown since its hard end ended itself then, and the time
 * from then on is not billed. */
int64_t budget_billed_until(const struct core_pod *p, int64_t at);

/* rent.c: offers, and a pod from the create to its answer */
/* The best offer now; avoided ones only for offers_pick_any(). NULL: none, and c->capacity has the
 * reason. *again_at: when one may be available again; NEVER: not known. */
struct candidate *offers_pick(struct core *c, int64_t *again_at);
struct candidate *offers_pick_any(struct core *c, int64_t *again_at);
/* The offer that the pod was rented from; NULL: its provider no longer lists it. */
struct candidate *offers_of(struct core *c, const struct core_pod *p);
/* Whether an offer other than this pod's could be tried now, or a provider that was not asked yet
 * may have one. */
bool offers_has_other_than(const struct core *c, const struct core_pod *p);
/* Replaces the provider's list of offers. What was learned about an offer stays with it. past: one
 * for each offer; NULL: nothing new is known. */
void offers_replace(struct core *c, int provider, const struct offer *list,
		    const struct offer_past *past, size_t count);
void offers_sort(struct core *c); /* after the order of preference has changed */
/* Whether the offer could be rented now and is not avoided. */
bool offers_is_ready(const struct core *c, const struct candidate *k);
/* Rents nothing more with the pod's card, at its provider or anywhere. */
void offers_bar_card(struct core *c, const struct core_pod *p, bool anywhere, const char *why);
/* Whether something may be rented, now or later, or a provider was not asked yet. */
bool offers_has_any_left(const struct core *c);
/* Adds a pod of this offer and requests its create, after its row is saved. hard_end_at: if it
 * starts at once. */
void pod_rent(struct core *c, struct candidate *from, int64_t hard_end_at);
/* Sends the pod's lost create again; once the run stops, listings decide whether it exists. */
void pod_resend(struct core *c, struct core_pod *p);
/* The create was answered, or a list shows its pod: takes its id and its price. */
void pod_on_rented(struct core *c, struct core_pod *p, const struct pod_view *view);
/* EV_RENT_FAILED. Returns false if the reply was lost but p->rental.view shows the pod: then call
 * seen_on_rented(). */
bool pod_on_rent_failed(struct core *c, struct core_pod *p, const struct err *err);
void pod_set_never_existed(struct core *c, struct core_pod *p, const struct err *why);
/* The pod's offer is not tried for this long. After trouble the rest grows each time, from least_ms
 * on. */
void offers_rest_for(struct core *c, const struct core_pod *p, int64_t ms);
void offers_rest_after_trouble(struct core *c, const struct core_pod *p, int64_t least_ms);
/* The rest is 5 s at first and a minute at most. */
void offers_rest_sold_out(struct core *c, const struct core_pod *p, int64_t least_ms);
/* The pod's host failed: its offer rests for a moment and is avoided for a while. */
void offers_rest_bad_host(struct core *c, int pod, const char *why);

/* warm.c: pods that pass from run to run */
/* Whether pods may be rented. Returns false while burst looks for pods that other runs offer;
 * begins such a search, for `wanted` pods, if the last one is too old. */
bool warm_may_rent(struct core *c, int wanted);
void warm_on_seek_done(struct core *c);     /* EV_SOUGHT */
int64_t warm_wake_at(const struct core *c); /* of the next search */
/* Offers the pod to other runs if that is allowed and was not done yet. Returns true while it is on
 * offer; false: release it. */
bool warm_offer_or_keep(struct core *c, int pod);
void warm_on_not_wanted(struct core *c, struct core_pod *p);
/* Another run has the pod since `at` (boot clock): for this run it is gone. */
void warm_on_taken(struct core *c, struct core_pod *p, int64_t at);

/* width.c: what to ask providers for, and how many pods */
bool query_wait_is_over(const struct core *c); /* conf.wait_ms have passed without capacity */
/* Whether an answer is expected in time, or an image is being built. */
bool query_is_awaited(const struct core *c);
void query_on_slept(struct core *c);
void query_restart(struct core *c); /* asks every provider again for what it has now */
void query_on_answer(struct core *c, const struct event *ev); /* EV_OFFERS, EV_VOLUME */
void query_on_volume_fills(struct core *c, const struct event *ev);
void query_on_image_answer(struct core *c, const struct event *ev);
struct stint { /* of a pod, in ms from now: when it starts to work, and when it gets no more work */
	int64_t from_ms, to_ms;
};
/* Whether a pod that is ready at one.from_ms would then find work for least_ms, beside the others.
 * work_ms: what is left, as the time that one pod would take for it. */
bool width_pays(double work_ms, const struct stint *others, size_t count, struct stint one,
		int64_t least_ms);
/* Returns the number of pods that count toward the width, those that work, and those that come up.
 * The rest wait for a listing. */
int width_count_active(const struct core *c, int *working, int *coming);
/* Whether the rate is too uncertain to decide how many pods pay. */
bool width_is_undecided(const struct core *c, int active);
void width_advance(struct core *c); /* rents what is worth renting */
/* Releases one booting pod that would find too little work. */
void width_release_surplus(struct core *c);
/* When width.c has something to do next, apart from the pods. */
int64_t width_wake_at(const struct core *c);

/* queue.c: pods that wait for their machine or their start */
/* The deadline of a pod in its provider's queue has come: waits longer, or dismisses it. */
void queue_on_deadline(struct core *c, struct core_pod *p);
/* A view shows the pod, in the queue or on a machine. */
void queue_on_listed(struct core *c, struct core_pod *p, const struct pod_view *view);
/* Where waiting is free: takes in what a view shows of the pod's start. */
void queue_note_start(struct core *c, struct core_pod *p, const struct pod_view *view,
		      int64_t requested_at);
/* A view shows the pod's end: one that ended in the queue costs nothing. */
void queue_on_end(struct core_pod *p, const struct pod_view *view);
/* A listing shows the pod after it counted as gone: it did not end in the queue. */
void queue_on_listed_again(struct core_pod *p);

/* listing.c: what listings show, and when to request them */
void seen_on_inspection(struct core *c, const struct event *ev); /* EV_INSPECTED */
/* The create was answered, or a list shows its pod: takes it, or dismisses it above the caps. */
void seen_on_rented(struct core *c, struct core_pod *p, const struct pod_view *view);
void listing_send_due(struct core *c);                         /* requests the lists that are due */
void listing_on_reply(struct core *c, const struct event *ev); /* EV_LISTED */
/* Whether a lost create may have made a second pod: no list that must show it has been read. */
bool listing_awaits_twin(const struct vendor *v);
/* Whether an answered or lost create may have made a pod that burst does not know: no complete list
 * has been read since. */
bool listing_may_hide_pod(const struct vendor *v);
/* Whether every account that was used has been listed since nothing more can surface there, or
 * cannot be listed. Else makes those lists due. */
bool listing_all_final(struct core *c);
/* When the exit no longer waits for this provider's list; NEVER: it can be listed at once. */
int64_t listing_timeout_at(const struct core *c, const struct vendor *v);

/* pods.c: events of pods, and the decisions */
void pod_event(struct core *c, const struct event *ev);
/* Gives the provider up if its pods cannot end themselves, as this run or the ledger knows: they
 * would get no work. */
void switch_check_provider(struct core *c, int provider);
/* Prepares an adopted pod for this run, at the start or when another run hands it over. */
void pod_begin_adopted(struct core *c, int pod);
void pods_decide(struct core *c); /* what follows for each pod that is marked due */
void pods_decide_all(struct core *c);
/* When all segments are settled, dismisses pods whose agents do not report their batches as over:
 * they would bill for nothing. */
void pods_leave_settled(struct core *c);
void pod_tick(struct core *c, int pod); /* changes that depend on time alone */
void pod_keep_up(struct core *c,
		 int pod);          /* after the decisions: connects again, renews the lease */
void pods_on_slept(struct core *c); /* EV_SLEPT */
int64_t pod_wake_at(const struct core *c, const struct core_pod *p); /* when pod_tick() is due */

/* dispatch.c: batches */
void dispatch_free(struct core *c);
void dispatch_fill_pod(struct core *c, int pod); /* gives it the work that it should hold now */
/* The pod is lost: its unfinished work becomes open again and counts as wasted. */
void dispatch_on_pod_lost(struct core *c, int pod);
void dispatch_resend(struct core *c, int pod); /* sends batches again that may not have arrived */
void dispatch_deal_all(struct core *c);        /* deals what is left evenly to the pods that work */
void dispatch_on_running(struct core *c, const struct event *ev);
void dispatch_on_started(struct core *c, const struct event *ev);
void dispatch_on_done(struct core *c, const struct event *ev);
void dispatch_on_revoked(struct core *c, const struct event *ev);
void dispatch_on_checkpoint(struct core *c, const struct event *ev);
void dispatch_on_rendered(struct core *c, const struct event *ev);
void dispatch_on_failed(struct core *c, const struct event *ev); /* EV_SEGMENT_FAILED */

/* forecast.c: what the plan expects, and what is measured */
void forecast_init(struct core *c);
void forecast_free(struct core *c);
/* NULL: the plan has none for this provider and GPU. */
struct forecast *forecast_of(const struct core *c, const char *provider, const char *gpu);
/* Adds the time of a batch that is done, unless it was its worker's first. */
void forecast_add_batch(struct core *c, const struct core_batch *b, int64_t ms);
void forecast_note_prices(struct core *c); /* new offers: their prices now are the planned ones */
/* Returns true, and writes the reason to `to`, if speed or prices are far from the plan. */
bool forecast_is_off(const struct core *c, char *to, size_t room);
void forecast_correct(struct core *c);  /* the plan's figures, by what is measured now */
double pace_rate(const struct core *c); /* weight a second of one worker; 0: unknown */
/* Whether only first batches are known: the rate may be several times too low. */
bool pace_is_rough(const struct core *c);
double pace_at_best(const struct core *c);     /* an upper bound of the rate */
double pace_weight_held(const struct core *c); /* held by pods and not rendered */
/* A batch's own cost, as the weight that its time would render; 0: unknown, or hardly anything. */
double pace_fixed_weight(const struct core *c);
/* By t (agent's clock), so much more of the batch is rendered. */
void pace_add_rendered(struct core *c, struct core_batch *b, double weight, int64_t t);
void pace_add_segment(struct core *c, const struct event *ev); /* EV_RENDERED */
void pace_add_failed(struct core *c, const struct event *ev);  /* EV_SEGMENT_FAILED */
/* Adds a batch that is done to the fit of time by size. */
void pace_add_size(struct core *c, const struct core_batch *b, double ms);
/* How many segments a batch for this pod may have, at least 1. */
size_t speed_batch_most(const struct core *c, const struct core_pod *p);
/* Stops the run while it is cheap if the first batch was far slower than expected. */
void speed_judge_canary(struct core *c, const struct core_batch *b, int64_t ms);

/* replan.c: the rest is planned again */
void replan_advance(struct core *c);
int64_t replan_wake_at(const struct core *c);

/* fetch.c: segments until they are local */
void segments_init(struct core *c);
bool segments_settled(const struct core *c);       /* every segment is local or failed */
double segments_weight_left(const struct core *c); /* of what some pod has yet to render */
/* The heaviest open segment of a group; -1: there is none. */
int64_t segments_heaviest(struct core *c, struct heap *h);
void segment_reopen(struct core *c, uint32_t i); /* makes it TODO again */
/* Moves an open segment to another state, with its pod. */
void segment_assign(struct core *c, uint32_t i, enum core_seg_state to, int pod);
/* Call before a segment changes its state: if its pod holds it, that pod holds one less. */
void segment_uncount_held(struct core *c, struct seg *s);
/* Lost with its pod: reopened, or failed after LOSSES_MAX pods, since it may be what ends them. */
void segment_on_pod_lost(struct core *c, uint32_t i);
void fetch_on_arrived(struct core *c, const struct event *ev); /* EV_FETCHED */
void fetch_on_failed(struct core *c, const struct event *ev);  /* EV_FETCH_FAILED */
void fetch_on_placed(struct core *c, const struct event *ev);  /* EV_LOCAL */
void fetch_begin(struct core *c, int pod, uint32_t i);
void fetch_fail_segment(struct core *c, uint32_t i); /* the segment cannot succeed */
/* Requests the pod's finished files that are neither local nor under way. */
void fetch_request_pending(struct core *c, int pod);
/* The transfers under way ended with their connection. */
void fetch_forget_transfers(struct core *c, int pod);
/* The pod's finished files cannot be fetched: their segments are rendered again. */
void fetch_give_up_segments(struct core *c, int pod);
void fetch_on_files(struct core *c, const struct event *ev); /* EV_FILES */
/* Requests the outputs of the pod's commands again, from where its files are; or gives them up. */
void fetch_request_outputs(struct core *c, int pod);
void fetch_give_up_outputs(struct core *c, int pod);
/* Requests the pod's files that are not local later, each time after a longer delay. */
void fetch_retry_later(struct core *c, int pod);
void fetch_reset_delay(struct core *c, int pod);

/* handover.c */
void handover_begin(struct core *c);
/* Sends the order again to agents that got work since. */
void handover_resend_orders(struct core *c);

/* leave.c: the end of a pod */
/* The pod is to be released: it is not needed, or failed. fault ERR_NONE: its work is done. */
void pod_dismiss(struct core *c, int pod, enum err_kind fault, const char *fmt, ...) PRINTF(4, 5);
/* Returns false, and dismisses the pod, if its price breaks a cap. */
bool pod_check_caps(struct core *c, struct core_pod *p);
/* For pods_decide() alone: gives the pod no more work and fetches what is finished, within a time
 * limit; requests its release. */
void leave_fetch_first(struct core *c, struct core_pod *p);
void leave_release(struct core *c, struct core_pod *p);
void leave_release_again(struct core *c, struct core_pod *p); /* it is still there */
/* Whether the job failed on the pod and it is kept for inspection (conf.keep_ms). The first call
 * takes its work back and reports that. */
bool leave_for_inspection(struct core *c, int pod);
/* The pod ended without a release, as it seems: it is released all the same. pod_on_gone(): its
 * provider reports it gone. */
void pod_on_vanished(struct core *c, struct core_pod *p, const char *how);
void pod_on_gone(struct core *c, struct core_pod *p, const char *how);
void pod_on_unpulled(struct core *c, struct core_pod *p, const struct err *why); /* EV_UNPULLED */
/* The pod is gone because its container could not be made. */
void pod_on_unmade(struct core *c, struct core_pod *p, const char *how);
/* The pod is proven gone: fixes the end of its bill, and counts its cost as spent. */
void pod_set_gone(struct core *c, struct core_pod *p);
/* EV_RELEASED. err NULL: accepted; word: what the provider said. */
void pod_on_released(struct core *c, struct core_pod *p, enum release_word word,
		     const struct err *err);
/* Asks for the pod's finished files to become durable, if they can be fetched from its volume. */
void durable_request(struct core *c, struct core_pod *p);
void durable_on_synced(struct core *c, struct core_pod *p, const struct event *ev);
/* Reads the pod's log on the volume for what it finished. */
void durable_salvage(struct core *c, struct core_pod *p);
void durable_on_salvaged(struct core *c, struct core_pod *p, const struct err *err);

#endif
