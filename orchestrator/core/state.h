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
	bool told; /* a note says that it is avoided */
	int rank;  /* of its GPU: by the user's order, unless a re-plan prefers another GPU */
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
	int spot_refusals;    /* in a row */
	int64_t spot_rest_until;
	int owner; /* pod that prepares the volume; -1: none */
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
	int64_t began_at, deadline_at, capacity_since, offers_again_at;
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

#endif
