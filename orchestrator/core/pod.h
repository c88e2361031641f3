/* pod.h - what the core knows of one pod. Only core/ writes it, and the caller of core_adopt()
 * before. Times are ms of the boot clock unless they say otherwise, 0: not yet; money
 * micro-dollars. */
#ifndef BURST_CORE_POD_H
#define BURST_CORE_POD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "provider.h"

/* How an engine renders a batch, as its worker says. */
enum batching {
	/* one segment after the other: sizes shrink toward the end so that all workers finish
	   together */
	BATCHING_NONE,
	/* all at once, as long as the longest takes: full batches, then even shares */
	BATCHING_PADDED,
	/* segments join while others are rendered: small batches, several at a time with each
	   worker */
	BATCHING_CONTINUOUS,
};

/* What an engine takes for a batch, where the ledger has measured it; all 0: unknown. In ms, and in
 * ms for each unit of weight: of the batch by itself, of its heaviest segment, of all of its
 * segments. */
struct batch_speed {
	double once_ms, longest_ms, each_ms;
};

enum pod_phase {
	POD_RENTING = 1,     /* the create call is under way; 0: a zeroed pod, of no phase */
	POD_AMBIGUOUS,       /* it may exist: listings are read until one shows it or two clean ones
				disprove it */
	POD_BOOTING,         /* it exists, no address yet */
	POD_CONNECTING,      /* an address is known */
	POD_PREPARING,       /* the agent answers; volume, kit, code, packages */
	POD_AWAITING_VOLUME, /* waits for the pod that prepares the shared volume */
	POD_LOADING,         /* workers are starting */
	POD_WORKING,
	POD_RELEASING,  /* the release is under way, or is retried later */
	POD_CONFIRMING, /* the release was accepted; listings are read until they prove it gone */
	POD_GONE,       /* proven */
	POD_NEVER,      /* never existed */
};

/* A provider may accept a create long before a machine is free. A pod without a machine costs
 * nothing. */
enum pod_place {
	PLACE_GIVEN,
	PLACE_QUEUED, /* its provider has not assigned a machine yet */
	PLACE_NEVER,  /* it ended in the queue */
};

/* The control channel to its agent. */
enum pod_link {
	LINK_NONE,
	LINK_UP,
	LINK_LOST, /* reconnecting */
	LINK_CUT,  /* it stood when the pod's release was requested */
};

/* Whether this client knows what a pod that it took over did before. */
enum pod_past {
	PAST_NONE,   /* this client rented it, or has given it work anew */
	PAST_UNREAD, /* taken over; its agent's log has not been read yet */
	PAST_READ,
};

enum pod_listing {
	LISTING_NEVER, /* no list has shown it */
	LISTING_OMITS, /* no list has shown it, but its provider knows its id */
	LISTING_SHOWS,
	LISTING_STOPPED, /* lists showed it and now omit it, but its provider knows its id */
};

/* Whether it was rented with the current key. The current key may not see pods of another one. */
enum pod_key {
	KEY_OURS,
	KEY_OTHER,    /* set by the caller of core_adopt() */
	KEY_REPORTED, /* likewise; no list has shown it, and burst has warned that it may still be
			 billed */
};

/* What its provider answered to its release. */
enum pod_answer {
	ANSWER_NONE, /* no answer yet, or a rate limit refused the call */
	ANSWER_REFUSED,
	ANSWER_ACCEPTED,
	ANSWER_DENIED,        /* there is no such pod: it may be too new to be known */
	ANSWER_DENIED_REPEAT, /* denied; released once more after a minute of clean listings */
};

/* How a pod ended. */
enum pod_exit {
	EXIT_BY_RELEASE,
	EXIT_UNSEEN, /* by itself; released_at is when burst noticed */
	EXIT_TAKEN,  /* another run took it over; for this run it is gone */
};

/* What its provider's log said while it booted. */
enum boot_log {
	LOG_UNREAD,
	LOG_READ,
	LOG_DECIDES, /* the next reply decides whether the pod gets more time */
};

/* Who renews its lease. */
enum pod_lease {
	LEASE_CLIENT,
	LEASE_AGENT,      /* its agent, which does not know yet that it got more work */
	LEASE_AGENT_SENT, /* its agent got the order after its newest work */
	LEASE_AGENT_CONFIRMED,
};

/* Where its finished files are fetched from. */
enum pod_files {
	FILES_ON_POD,
	FILES_SYNCING,   /* from the pod; ACT_SYNC is not answered yet */
	FILES_ON_VOLUME, /* without the pod */
	FILES_SALVAGING, /* without the pod, while its log is read from the volume */
};

/* Why every pod of its kind would fail. */
enum pod_defect {
	DEFECT_NONE,
	DEFECT_IMAGE, /* its image cannot be pulled */
	DEFECT_CARD,  /* its card cannot run the job's image */
};

/* Whether it is to be released. From LEAVE_DECIDE on it gets no work. */
enum pod_leave {
	LEAVE_NOT,
	LEAVE_DRAINING, /* it gets no more work */
	LEAVE_DECIDE,   /* pods_decide() has yet to decide whether its files are fetched first */
	LEAVE_EMPTY,    /* its finished files are fetched first, or it stays for inspection */
	LEAVE_NOW,
	LEAVE_ENDED, /* at once; it seems to have ended by itself */
};

/* What burst requested of its provider, and what the provider reports. */
struct rental {
	int provider;
	struct offer offer;
	char attempt[ATTEMPT_MAX];
	char id[POD_ID_MAX];
	struct volume volume;
	int64_t price_microusd_h;
	int64_t hard_end_ms;
	int64_t cut_ms;     /* how much earlier than the pod's own hard end burst ends it */
	int64_t hard_end_s; /* epoch: the pod's own hard end */
	/* Where waiting is free: how long it may wait for its start, and how long it may run from
	 * then. Its hard end is the create and both, until its start is known. run_ms 0: it bills
	 * from its create. */
	int64_t wait_ms, run_ms;
	int64_t run_cut_ms; /* how much less than run_ms this client lets it run */
	/* Where waiting is free, boot clock: it started and bills from then (0: not that burst
	 * knows); its provider last showed it waiting. */
	int64_t start_at, queued_at;
	/* epoch: end of the first lease, a little more than boot_limit after the create. It ends a
	 * pod that no client ever reaches. */
	int64_t first_lease_end_s;
	/* set by the caller of core_adopt(): another run rented it, and cold_ms is what its cold
	 * start took */
	bool reused;
	int64_t cold_ms;
	/* boot clock, 0: not yet; create_at -1: before the clock began */
	int64_t create_at;   /* the create call was made */
	int64_t rented_at;   /* the create call was answered */
	int64_t release_at;  /* its release was first requested */
	int64_t accepted_at; /* a release was accepted for the first time */
	/* a release was accepted, or it had ended, or it outlived its release until then: billed
	 * until then */
	int64_t released_at;
	int64_t outlived_at; /* the newest list that showed it running after released_at */
	int64_t gone_at;     /* it was proven gone */
	/* epoch: when its container first started, as its provider reports; 0: unknown */
	int64_t vendor_started_s;
	/* what its provider says that it cost; 0: unknown. Our count stands beside it. */
	int64_t vendor_microusd;
	struct pod_view view; /* as last seen */
	enum pod_place place;
	enum pod_listing listing;
	enum pod_key key;
	enum pod_exit exit;

	/* private to core/ */
	/* when its provider last showed it; 0: not since this client started */
	int64_t seen_at;
	/* listings without it: while it lives, after its release was accepted */
	int missing_lists, clean_lists;
	int64_t clean_at, late_clean_at;
	enum pod_answer answer;
	int tries;        /* failed releases */
	int resends;      /* creates that were sent again after a lost reply */
	int finish_calls; /* requests to end it that went to its agent instead of its provider */
};

/* What is seen of the machine: how far it has come up, the connection, and the files it holds. */
struct presence {
	enum pod_link link;
	enum pod_lease lease;
	enum pod_past past;
	bool prepares_shared;

	enum pod_files files;
	/* all that it finished is durable on its volume and can be fetched from there */
	bool durable;
	/* boot clock, 0: not yet */
	int64_t running_at;   /* its provider first reported it as running */
	int64_t reached_at;   /* its sshd accepted the connection */
	int64_t connected_at; /* its agent answered */
	int64_t lost_at;      /* the connection was lost last */
	int64_t synced_at;    /* kit, code and environment were there */
	int64_t ready_at;     /* its first worker was ready */

	/* private to core/ */
	int64_t boot_limit_ms; /* its own; 0: adopted, or a stray */
	int64_t log_at;        /* when its provider's log is to be read next; 0: not */
	int log_reads;         /* reads of the log that were not answered yet */
	enum boot_log log;
	int tries; /* failed connects */
	/* adopted: until then its log is awaited and no work is dealt out again; 0: it had no work
	 */
	int64_t log_by;
	int64_t renew_at;
	/* of the newest ACT_HANDOVER: replies to earlier ones are ignored */
	uint32_t handover_turn;
	/* of the newest ACT_SYNC: replies to earlier ones are ignored */
	uint32_t sync_turn;
	int64_t sync_at;      /* when ACT_SYNC is sent again */
	int64_t refetch_at;   /* when its unfetched files are requested again; 0: not */
	int64_t rescue_until; /* until then, failed fetches from the volume of a durable pod are
				 retried */
	int refetches;
};

/* What it was given to render, and the results. */
struct workload {
	int workers_ready;
	int max_batch; /* of its engine; 0: not reported */
	enum batching batching;
	struct batch_speed speed; /* of its engine on its GPU, from earlier runs */
	int64_t worked_at;        /* boot clock: a batch of it last ended */
	int64_t local_at;         /* boot clock: a file of it was last renamed into place here */
	int64_t compute_ms, wasted_ms; /* wasted_ms: the part of core_compute_ms() that is lost */

	/* private to core/ */
	int batches, unfetched; /* batches in flight; rendered segments that are not fetched yet */
	int files;              /* outputs of its commands that are not fetched yet; 0: none */
	int saves;    /* snapshots of its commands that are on their way to this machine */
	bool halting; /* its commands were asked to end */
	size_t held;  /* segments that it has been given and has not finished */
	/* continuous: finished segments that the pace does not include yet, their weight, and since
	 * when they were rendered (agent's clock) */
	size_t unpaced;
	double unpaced_weight;
	int64_t unpaced_t;
	int busy; /* workers that hold a batch, by the agent's clock */
	int64_t busy_since_t, last_t;
	bool recounted;           /* adopted: its compute seconds are counted anew from its log */
	int64_t counted_waste_ms; /* likewise; wasted_ms has the ledger's until this is more */
	int64_t noted_ms; /* likewise: what the ledger has of them, until the log shows more */
	bool failed_here; /* the job failed on it, in part or whole */
	int bad_files;    /* segments in a row whose files did not match what was announced */
	uint32_t last_group;
	int begun;    /* batches, since its workers started */
	size_t given; /* of conf.batch_sizes */
	/* number + 1 of the batch that stands for what it was rendering when it was taken over */
	uint32_t inherited;
};

struct core_pod {
	enum pod_phase phase;
	enum pod_leave leave;
	struct rental rental;
	struct presence presence;
	struct workload workload;
	char reason[ERR_TEXT]; /* why it was released, for the user */
	enum err_kind fault;   /* ERR_NONE: it did its work */

	/* private to core/ */
	bool due; /* pods_decide() examines it at the end of this step */
	/* pods of a better GPU are coming to replace it; it works until they do */
	bool outgoing;
	enum pod_defect defect;
	int64_t wake_at;
	int64_t overdue_at;  /* when it is given up unless it answers, boots or ends; NEVER: it may
				take its time */
	int64_t fetch_until; /* its finished files are fetched until then, then it is released */
	int64_t offered_until; /* to other runs; 0: it is not on offer */
	int64_t inspect_until; /* kept until then so that the user can inspect a failure; 0: not
				  kept */
};

/* ---- questions about a pod's state ---- */

/* Of its phase. They alone depend on the order of phases. */

/* Its create is not answered, or its reply was lost: whether it exists is not known. */
static inline bool pod_lacks_id(const struct core_pod *p)
{
	return p->phase <= POD_AMBIGUOUS;
}

/* It cannot be given work yet: its workers are not ready, or it is being connected to again. */
static inline bool pod_is_coming_up(const struct core_pod *p)
{
	return p->phase < POD_WORKING;
}

/* The run is done with it: its release was requested, it is gone, or it never existed. */
static inline bool pod_is_retired(const struct core_pod *p)
{
	return p->phase >= POD_RELEASING;
}

/* It is known to exist, and its release was not requested. */
static inline bool pod_lives(const struct core_pod *p)
{
	return !pod_lacks_id(p) && !pod_is_retired(p);
}

/* It lives, and can be connected to. */
static inline bool pod_has_address(const struct core_pod *p)
{
	return p->phase >= POD_CONNECTING && !pod_is_retired(p);
}

/* Its release was accepted, it is gone, or it never existed. */
static inline bool pod_is_released(const struct core_pod *p)
{
	return p->phase >= POD_CONFIRMING;
}

/* Nothing proves that it is gone or never existed. */
static inline bool pod_may_bill(const struct core_pod *p)
{
	return p->phase != POD_GONE && p->phase != POD_NEVER;
}

/* Since when it bills (boot clock); 0: it waits for free. */
static inline int64_t pod_bills_from(const struct core_pod *p)
{
	return p->rental.run_ms ? p->rental.start_at : p->rental.create_at;
}

/* Waiting is free, and no view has shown that it has started. */
static inline bool pod_is_unstarted(const struct core_pod *p)
{
	return p->rental.run_ms && !p->rental.start_at;
}

/* Since when it boots (boot clock): a free wait does not count. */
static inline int64_t pod_boots_from(const struct core_pod *p, int64_t now)
{
	return pod_is_unstarted(p) ? now : pod_bills_from(p);
}

/* Its release was accepted, but a list showed it running later: it may bill. */
static inline bool pod_outlives_release(const struct core_pod *p)
{
	return p->phase == POD_CONFIRMING && p->rental.outlived_at &&
	       p->rental.outlived_at >= p->rental.released_at;
}

/* Of its leave. */

/* It gets no more work. */
static inline bool pod_is_draining(const struct core_pod *p)
{
	return p->leave >= LEAVE_DRAINING;
}

/* It is to be released: at once, or when its finished files are fetched. */
static inline bool pod_is_leaving(const struct core_pod *p)
{
	return p->leave >= LEAVE_DECIDE;
}

/* It is to be released, and its files are not waited for. */
static inline bool pod_leaves_now(const struct core_pod *p)
{
	return p->leave >= LEAVE_NOW;
}

/* Of what its provider shows and says. */

static inline bool pod_was_listed(const struct core_pod *p)
{
	return p->rental.listing == LISTING_SHOWS || p->rental.listing == LISTING_STOPPED;
}

/* Lists omit it, but its provider knows its id. */
static inline bool pod_is_omitted(const struct core_pod *p)
{
	return p->rental.listing == LISTING_OMITS || p->rental.listing == LISTING_STOPPED;
}

/* Its provider answered to its release that there is no such pod. */
static inline bool pod_is_denied(const struct core_pod *p)
{
	return p->rental.answer == ANSWER_DENIED || p->rental.answer == ANSWER_DENIED_REPEAT;
}

/* It has finished what is not fetched yet. */
static inline bool pod_owes(const struct core_pod *p)
{
	return p->workload.unfetched > 0 || p->workload.files > 0 || p->workload.saves > 0;
}

/* Its finished files are fetched without it. */
static inline bool pod_files_on_volume(const struct core_pod *p)
{
	return p->presence.files == FILES_ON_VOLUME || p->presence.files == FILES_SALVAGING;
}

/* ---- segments and batches ---- */

enum core_seg_state {
	SEG_TODO,     /* no pod was given it, or the pod that was has lost it */
	SEG_HELD,     /* a pod was given it and has not finished it */
	SEG_RENDERED, /* finished on a pod, its file not yet under its final name here */
	SEG_LOCAL,
	SEG_FAILED, /* it cannot succeed on any pod */
};

/* Some pod has yet to render it. */
static inline bool seg_is_unrendered(enum core_seg_state state)
{
	return state == SEG_TODO || state == SEG_HELD;
}

struct core_batch {
	int pod;
	bool started, over;
	bool first; /* the first of its worker, or its start time is unknown */
	/* result_t: of its first result, newest_t: of the newest one */
	int64_t started_t, result_t, newest_t, measured_t;
	int64_t started_at; /* boot clock; 0: an earlier client saw it start */
	int64_t saved_t;    /* command: what it had done by then is safe; 0: nothing is */
	/* weight of the batch, the part that is rendered, and the part that the measured pace
	 * includes */
	double weight, rendered, measured;
	size_t count;
	uint32_t *segments;
};

#endif
