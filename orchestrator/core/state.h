/* state.h - what the core knows of a run: its segments, offers, providers, plan. Private to core/.
 */
#ifndef BURST_CORE_STATE_H
#define BURST_CORE_STATE_H

#include "core.h"

struct seg {
	double weight, est_s;
	uint32_t group;
	uint8_t state, losses, tries, file_tries;
	bool cached;
	bool suspect;  /* its check was never satisfied */
	bool arrived;  /* its file is home and verified; ACT_PLACE is under way */
	bool fetching; /* ACT_FETCH was not answered yet */
	uint8_t fetch_tries;
	int pod; /* who holds or rendered it */
	uint32_t batch, elapsed_ms;
};

/* of segments of one group, the heaviest first; entries that are not TODO any more are skipped */
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
	bool told; /* the log has reported that it is avoided */
	int rank;  /* of its GPU: as it was wished for, unless a re-plan puts another one first */
	int64_t planned_microusd_h; /* its price when the run was planned last */
};

struct forecast { /* as it is known by now, with what was measured since it was last corrected */
	struct core_forecast of;
	double measured_s, planned_s;
	size_t segments;
	int batches;
	bool seen; /* what this run has measured is in it */
};

struct replan { /* replan.c */
	struct forecast *forecasts;
	size_t count;
	int done; /* re-plans that changed something */
	char said[CORE_REPLANS_MAX][200];
	int64_t not_before; /* the last one takes effect until then */
	int64_t reprice_at; /* 0: not yet */
	char gpu[GPU_MAX];  /* goes before those that were planned; "": none */
	/* no more work is begun; when the last pod has ended so does the run */
	struct err stop;
};

struct pace { /* rendered weight and the worker-ms that it took */
	double weight, ms;
};

/* faded sums over batches: how many, their weight, time, weight squared, weight times time */
struct fit {
	double count, weight, ms, weight2, weight_ms;
};

enum query { QUERY_UNSENT, QUERY_SENT, QUERY_ANSWERED, QUERY_FAILED };

struct vendor { /* what the run knows of one provider */
	enum query volume_query, offers_query, image_query;
	int64_t asked_at; /* for its volume or its offers */
	bool repricing;   /* its offers are asked for once more, for their prices */
	bool filling;     /* its volume has answered, and takes as long as it takes */
	/* it has no such volume: one is made (volume_query: QUERY_SENT) once a pod could be rented
	 * beside it */
	bool to_make;
	int image_failures; /* in a row */
	struct volume volume;
	bool used; /* a create was sent there */
	/* a create was carried out there: the request itself is valid */
	bool accepted;
	bool listing;                   /* a list call is under way */
	int64_t listing_since, list_at; /* when to ask again */
	int64_t list_not_before;        /* the vendor wants to be left alone until then */
	int64_t listed_at;              /* when the newest complete listing was asked for */
	int64_t ahead_ms;               /* our wall clock, of its */
	bool clock_known;               /* the vendor has reported its time, so ahead_ms holds */
	int64_t created_at;             /* when the newest create was answered */
	/* when all that a create with a lost answer made, once or twice, is in the list */
	int64_t surfaced_at;
	int list_failures;
	bool list_refused; /* the newest one was refused: a listing may never succeed */
	/* fewer after the account's limits left no room for one, twice as many after each success;
	 * 0: all */
	int rents_at_once;
	int64_t rent_not_before;
	int rate_refusals;    /* creates that its limits refused, in a row */
	int unmade;           /* pods whose containers could not be made, in a row */
	int64_t diagnosed_by; /* why a pod failed is being read: nothing is rented before */
	int no_switch;        /* pods that cannot end themselves, in a row */
	int spot_refusals;    /* in a row */
	int64_t spot_rest_until;
	int owner; /* pod that prepares the volume; -1: none */
	bool shared_ready;
	struct err err;           /* why it gives us nothing */
	int64_t floor_microusd_h; /* of what is wanted there, sold out or not; 0: not known */
	bool dead;                /* credentials refused: never ask again */
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
	bool canary_bad_all; /* no good segment before as many bad ones as the canary has */
	uint32_t canary_batch;
	int signals, signal;
	int64_t grace_until; /* after the first signal or a fault: fetch until then */
	int64_t began_at, deadline_at, capacity_since, offers_again_at;
	int64_t settled_at;     /* no segment is open any more; 0: one is */
	int64_t spent_microusd; /* by pods that are gone */
	struct err fault;       /* why no more work is begun */

	int pod_failures; /* in a row, without a segment that became local */
	bool capped, handed_over, unreleased;
	bool rendered_something; /* some segment was rendered in this life of the run */
	bool seeking;            /* ACT_SEEK was not answered yet */
	bool waits;              /* it wants a pod, and could rent none */
	int64_t sought_at;       /* 0: never */
	struct err capacity;     /* the newest reason why nothing could be rented */
	/* of workers; and of the first batch of each, which counts until there is another one */
	struct pace pace, first_pace;
	struct pace warm_pace; /* of first batches after their first results */
	struct fit fit;        /* of batches after the first one of a worker */
	/* batches given to engines that render them at once, but the canary */
	size_t padded;
	size_t first_open; /* all batches before it are over */
	/* create to ready, the newest, without what it prepared for others too */
	int64_t cold_ms;
	/* by the ledger, of the offer that is to be rented; 0: too little is known */
	int64_t past_boot_ms;
	/* pods released while they came up, because their work would not have paid for it */
	int too_many;
	struct replan replan;
	/* a pod may take at least this long to come up: twice what the last one was given in vain
	 */
	int64_t patience_ms;
	uint64_t random;

	bool dirty; /* timers or phases changed in this step */
	bool aged;  /* a pod has cost more than was known */
	int64_t wake_at;

	/* of this step */
	int64_t now, wall;
	struct actions *out;
};

#endif
