/* reap.h - what `burst reap` does with a run whose client is dead, and with each pod that a listing
 * shows. Pure. */
#ifndef BURST_CORE_REAP_H
#define BURST_CORE_REAP_H

#include "provider.h"

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
